//! `sandbox-connect`, and the button of the list: moves the thread to another sandbox.

use bobbin_core::base::failure::Failure;
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::control::{Control, WhichSandbox};
use bobbin_core::records::message::Work;

use crate::arrival::Arrival;
use crate::control::Lane;

impl Lane<'_> {
    /// Takes effect after the thread's current run: the message goes through the thread's group.
    pub(super) async fn connect(
        &self,
        control: &Control,
        to: Option<&WhichSandbox>,
        found: &Loaded,
        arrival: Arrival,
    ) -> Result<(), Failure> {
        let meant = match to {
            None | Some(WhichSandbox::Here) => None,
            Some(which) => match self.find_sandbox(control, which, found).await? {
                Ok((key, _)) => Some(key),
                Err(words) => return self.chat.answer(&control.reply, &words).await,
            },
        };
        let work = Work::Connect {
            to: meant,
            by: control.by.clone(),
            membership: control.membership.clone(),
        };
        self.send(control, work, None, arrival.now_ms).await?;
        let runs = found.session.as_ref().is_some_and(|session| session.turn.is_some());
        self.answer_done(control, arrival, asked_for(runs)).await
    }
}

const fn asked_for(runs: bool) -> &'static str {
    if runs {
        "This was requested: the thread moves there when the running and waiting tasks are done, and says so."
    } else {
        "This was requested: the thread says when it is connected."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_hears_what_the_thread_waits_for() {
        assert!(asked_for(true).contains("when the running and waiting tasks are done"));
        assert!(!asked_for(false).contains("waiting"));
    }
}
