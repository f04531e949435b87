//! `pr`: what a pull request of a thread's work would publish, and its opening. Both messages go into the thread's
//! group, behind what runs.

use std::time::{Duration, Instant};

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::records::control::PublishStep;
use bobbin_core::records::message::Work;
use bobbin_core::records::publication::{Proposal, Publication, PullRequestRef};
use bobbin_core::records::session::Session;
use serde::Serialize;

use super::arguments::{OpenPullRequest, ShowPullRequest};
use super::request::{self, Request};
use super::show;
use super::stack::Stack;
use crate::output::{CommandError, ExitStatus, Output};

/// The JSON answer.
#[derive(Serialize)]
struct PullRequestAnswer {
    thread: ThreadKey,
    /// `shown` (nothing is pushed yet), `open`, `failed`, `none`, or `waiting` (not finished within the wait).
    result: &'static str,
    /// Short name of the branch.
    branch: Option<String>,
    /// The commit to which Bobbin moved it last.
    pushed: Option<String>,
    /// What was shown last, and can be pushed.
    shown: Option<Proposal>,
    /// The pull request.
    pull_request: Option<PullRequestRef>,
    /// What stands beside it.
    beside: Vec<BesideAnswer>,
}

/// A repository beside the thread's.
#[derive(Serialize)]
struct BesideAnswer {
    /// `owner/name`.
    repository: String,
    /// Short name of the branch.
    branch: Option<String>,
    /// The pull request.
    pull_request: Option<PullRequestRef>,
}

impl PullRequestAnswer {
    fn new(thread: &ThreadKey, result: &'static str, session: Session) -> Self {
        let thread = thread.clone();
        let each = session.sandbox.project.beside.iter().map(|one| &one.repository);
        let beside = each.map(|repository| {
            let known = session.published.of(Some(repository.id));
            BesideAnswer {
                repository: repository.name.clone(),
                branch: known.map(|known| known.branch.clone()),
                pull_request: known.and_then(|known| known.pull_request.clone()),
            }
        });
        let beside = beside.collect();
        let Some(Publication { branch, pushed, shown, pull_request, .. }) =
            session.published.publication
        else {
            let (branch, pushed, shown, pull_request) = (None, None, None, None);
            return Self { thread, result, branch, pushed, shown, pull_request, beside };
        };
        Self { thread, result, branch: Some(branch), pushed, shown, pull_request, beside }
    }

    fn words(&self, stack: &Stack) -> String {
        let each = self.beside.iter().map(|one| match &one.pull_request {
            Some(there) => {
                format!("\n{}: pull request #{}: {}", one.repository, there.number, there.page)
            }
            None => format!("\n{}: no pull request; the thread has its button", one.repository),
        });
        let beside: String = each.collect();
        format!("{}{beside}", self.own_words(stack))
    }

    fn own_words(&self, stack: &Stack) -> String {
        let proposal = |shown: &Proposal| {
            format!("{}\n\n{}\n\nCommit {}", shown.subject, shown.body, shown.commit)
        };
        match (&self.pull_request, &self.shown) {
            _ if self.result == "failed" => "It failed, and the thread shows why.".to_owned(),
            (_, Some(shown)) => format!(
                "{}\n\nNone of this is pushed yet; its files are listed in the thread. Push it with: bobbin {} pr open {} --yes",
                proposal(shown),
                stack.said,
                self.thread
            ),
            (Some(there), None) => format!("Pull request #{}: {}", there.number, there.page),
            (None, None) if self.result == "waiting" => format!(
                "It was requested, but is not done yet. Check again with: bobbin {} pr show {}",
                stack.said, self.thread
            ),
            (None, None) => format!(
                "This thread has published nothing. Preview it with: bobbin {} pr open {}",
                stack.said, self.thread
            ),
        }
    }
}

pub async fn show(stack: &Stack, what: &ShowPullRequest) -> Result<Output, CommandError> {
    let thread = &what.thread.key(stack).await?;
    let (session, _) = show::record(stack, thread).await?;
    let (result, status) = match &session.published.publication {
        Some(Publication { pull_request: Some(_), .. }) => ("open", ExitStatus::Done),
        Some(Publication { shown: Some(_), .. }) => ("shown", ExitStatus::Done),
        _ => ("none", ExitStatus::Notice),
    };
    let answer = PullRequestAnswer::new(thread, result, session);
    Output::new(answer.words(stack), &answer, status)
}

pub async fn open(stack: &Stack, what: &OpenPullRequest) -> Result<Output, CommandError> {
    let thread = &what.thread.key(stack).await?;
    let step =
        PublishStep::Show { subject: what.subject.clone(), body: what.body.clone(), of: None };
    let until = Instant::now() + Duration::from_millis(what.wait_ms);
    let (mut session, mut is_over) = ask(stack, thread, step, until).await?;
    let shown = session.published.publication.as_ref().and_then(|known| known.shown.clone());
    let mut result = if shown.is_some() { "shown" } else { "failed" };
    if let (true, true, Some(Proposal { commit, .. })) = (what.yes, is_over, shown) {
        let step = PublishStep::Push { commit: commit.clone() };
        (session, is_over) = ask(stack, thread, step, until).await?;
        let is_there = session.published.publication.as_ref().is_some_and(|known| {
            known.pull_request.is_some() && known.pushed.as_ref() == Some(&commit)
        });
        result = if is_there { "open" } else { "failed" };
    }
    let (result, status) = match (is_over, result) {
        (false, _) => ("waiting", ExitStatus::Failed),
        (true, "failed") => (result, ExitStatus::Failed),
        (true, _) => (result, ExitStatus::Done),
    };
    let answer = PullRequestAnswer::new(thread, result, session);
    Output::new(answer.words(stack), &answer, status)
}

/// Sends the step and waits for its end; `false`: it did not end within the wait.
async fn ask(
    stack: &Stack,
    thread: &ThreadKey,
    step: PublishStep,
    until: Instant,
) -> Result<(Session, bool), CommandError> {
    let (by, membership) = request::operator();
    let asked = Request { name: "pr", look: "pr show", until };
    asked.carry_out(stack, thread, Work::Publish { step, by, membership }).await
}
