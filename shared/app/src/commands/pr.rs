//! `pr`, and the buttons that lead to a pull request.

use bobbin_core::base::failure::Failure;
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::control::{Control, PublishStep};
use bobbin_core::records::message::Work;

use crate::arrival::Arrival;
use crate::control::Lane;

impl Lane<'_> {
    /// Takes effect after the thread's current run: the message goes through the thread's group.
    pub(super) async fn publish(
        &self,
        control: &Control,
        step: &PublishStep,
        found: &Loaded,
        arrival: Arrival,
    ) -> Result<(), Failure> {
        let work = Work::Publish {
            step: step.clone(),
            by: control.by.clone(),
            membership: control.membership.clone(),
        };
        self.send(control, work, None, arrival.now_ms).await?;
        let runs = found.session.as_ref().is_some_and(|session| session.turn.is_some());
        self.answer_done(control, arrival, asked_for(step, runs)).await
    }
}

const fn asked_for(step: &PublishStep, runs: bool) -> &'static str {
    match (step, runs) {
        (PublishStep::Show { .. }, false) => {
            "This was requested: the thread shows what would be published. Nothing is pushed before somebody presses."
        }
        (PublishStep::Show { .. }, true) => {
            "This was requested: the thread shows what would be published when the running and waiting tasks are done."
        }
        (PublishStep::Push { .. }, false) => {
            "This was requested: the thread says when the pull request is open."
        }
        (PublishStep::PushAll { .. }, false) => {
            "This was requested: the thread says for each repository when its pull request is open."
        }
        (PublishStep::Fix { .. } | PublishStep::Fixed { .. }, false) => {
            "This was requested: Bobbin looks at the pull request, and the thread shows the task."
        }
        (PublishStep::Fix { .. } | PublishStep::Fixed { .. }, true) => {
            "This was requested: it begins after the running and waiting tasks."
        }
        (PublishStep::Push { .. } | PublishStep::PushAll { .. }, true) => {
            "This was requested: it is done after the running and waiting tasks, if the files are still those that were shown."
        }
        (PublishStep::Review { .. }, false) => {
            "This was requested: the thread says when the review is posted."
        }
        (PublishStep::Review { .. }, true) => {
            "This was requested: it is posted after the running and waiting tasks."
        }
        (PublishStep::Act { .. }, false) => "This was requested: the thread says how it went.",
        (PublishStep::Act { .. }, true) => {
            "This was requested: it is done after the running and waiting tasks, if nobody has pushed by then."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presser_hears_what_the_push_waits_for() {
        let push = PublishStep::Push { commit: String::new() };
        assert!(asked_for(&push, true).contains("after the running and waiting tasks"));
        assert!(!asked_for(&push, false).contains("waiting"));
    }
}
