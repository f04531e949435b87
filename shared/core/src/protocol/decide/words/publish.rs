//! Texts for people about publishing, pull requests, fixes and reviews.

use super::minutes;
use crate::base::ids::ThreadKey;
use crate::records::drafted_review::FILE;
use crate::records::publication::{
    ActEnd, OutgoingFile, PullRequestAct, PullRequestRef, PullRequestSeen, PullRequestState,
};
use crate::tenant::commands::Command;
use crate::text::{one_line, shorten};

/// A pull request was asked for where nothing came from a forge.
pub const NOTHING_CARRIED: &str =
    "There is nothing to publish: this thread's sandbox has no repository that Bobbin may push to.";
/// A button of a card that is not the last one.
pub const NOT_SHOWN_LAST: &str = "This button does not match the latest card of any repository here. The newest card, or `pr`, shows how it is now.";
/// A sentence about one of several repositories.
#[must_use]
pub fn of_repository(name: &str, word: &str) -> String {
    format!("`{name}`: {word}")
}

/// The sandbox has the files that the forge has.
pub const NOTHING_TO_PUBLISH: &str =
    "There is nothing to publish: the files are as they were when the repository was fetched.";
/// The setting says no.
pub const NO_PULL_REQUESTS: &str = "Pull requests are switched off in this channel. Somebody who manages this server or workspace can change that: `config default pull-requests draft`.";
/// Only people with an account of their own may have something pushed, and this person has linked none.
#[must_use]
pub fn not_linked(thread: &ThreadKey) -> String {
    let github = thread.command(Command::GitHub);
    format!(
        "Nothing was pushed: in this channel you need a GitHub account of your own. `{github} connect` connects it; then press again."
    )
}

/// The presser's own account may not push.
#[must_use]
pub fn may_not_push(login: &str, repository: &str) -> String {
    format!(
        "Nothing was pushed: in this channel you need an account that may push to {repository}, and {login} may not. Somebody else can press."
    )
}
/// The press does not match what was shown last.
pub const NOT_SHOWN: &str =
    "Nothing was pushed: this is not what was shown last. `pr` shows what there is now.";

/// The repository may not be reached from here any more.
#[must_use]
pub fn not_open_any_more(name: &str) -> String {
    format!(
        "{name} is not open here any more, so its work cannot be pushed. Somebody who manages this server or workspace can open it with `config open {name}`."
    )
}

/// Who works in a shared sandbox.
fn at_work(threads: &[ThreadKey]) -> String {
    let many = match threads.len() {
        1 => "another thread".to_owned(),
        n => format!("{n} other threads"),
    };
    let shown: Vec<String> = threads.iter().filter_map(ThreadKey::shown).collect();
    if shown.is_empty() { many } else { format!("{many} ({})", shown.join(", ")) }
}

/// A message about a pull request waits for turns of other threads.
#[must_use]
pub fn waits_for_turns(threads: &[ThreadKey]) -> String {
    format!(
        "This waits until nobody works in the sandbox. Working in it now: {}.",
        at_work(threads)
    )
}

/// It has waited too long for them.
#[must_use]
pub fn waited_for_turns(threads: &[ThreadKey], waited_ms: u64) -> String {
    let lasted = minutes(waited_ms);
    format!(
        "Others have been working in the sandbox for {lasted}, so nothing was done. Working in it now: {}. Press again when they are done.",
        at_work(threads)
    )
}

/// What there is cannot be published.
#[must_use]
pub fn not_published(why: &str) -> String {
    format!("Nothing was pushed: {why}")
}

/// Somebody else's commit is on the branch, and has been fetched.
#[must_use]
pub fn branch_has_theirs(branch: &str, at: &str) -> String {
    format!(
        "Nothing was pushed: somebody else has put {} on the branch `{branch}`. It stays, and the sandbox has it now. Ask the agent to fetch and merge `origin/{branch}`, then press again.",
        at.get(..12).unwrap_or(at)
    )
}

/// The base was merged into the branch, which has been fetched.
#[must_use]
pub fn branch_was_updated(branch: &str, at: &str) -> String {
    format!(
        "Nothing was pushed: Update branch has brought `{branch}` to {}, and the sandbox has that now. Ask the agent to fetch and merge `origin/{branch}`, then press again.",
        at.get(..12).unwrap_or(at)
    )
}

/// Somebody else has moved the branch.
#[must_use]
pub fn branch_moved(branch: &str, at: Option<&str>) -> String {
    match at {
        Some(at) => format!(
            "Nothing was pushed: somebody else has moved the branch `{branch}` to {}. Their work stays; Bobbin never pushes over it.",
            at.get(..12).unwrap_or(at)
        ),
        None => format!(
            "Nothing was pushed: somebody has deleted the branch `{branch}`. Press again to push it once more."
        ),
    }
}

/// The forge refused a push.
#[must_use]
pub fn push_refused(why: &str) -> String {
    format!("The push was refused: {why}")
}

/// The branch is there, and its pull request is not.
#[must_use]
pub fn pull_request_refused(branch: &str, why: &str) -> String {
    format!("The branch `{branch}` is pushed, but its pull request was refused: {why}")
}

/// Where the pull request is.
#[must_use]
pub fn pull_request_is_there(seen: &PullRequestSeen, is_known: bool) -> String {
    let what = match seen.state {
        PullRequestState::Merged => "was merged already",
        PullRequestState::Closed => "is closed",
        PullRequestState::Open if is_known => "is updated",
        PullRequestState::Open if seen.is_draft => "is open as a draft",
        PullRequestState::Open => "is open",
    };
    format!("Pull request #{} {what}: {}", seen.at.number, seen.at.page)
}

/// A press on Fix while the pull request could not be polled.
pub const NOT_LOOKED_AT: &str = "The pull request could not be checked just now, so nothing was started. Press again in a minute.";
/// A press on Fix that comes too late.
pub const NOTHING_TO_FIX: &str = "The pull request has changed since this was offered, so nothing was started. Its card shows the current state.";
/// A second press on Fix.
pub const FIX_WAS_BEGUN: &str =
    "This fix was already started. If it did not help, say in the thread what to do.";

/// The turn of a fix has ended without an answer.
#[must_use]
pub fn fix_unanswered(number: u64) -> String {
    format!(
        "The fix of pull request #{number} has ended without an answer, so nothing was pushed. Press Fix on its card to begin it again."
    )
}

/// A branch that a fix needs cannot be put into the sandbox.
#[must_use]
pub fn not_brought(branch: &str) -> String {
    format!(
        "`{branch}` could not be fetched into the sandbox, so nothing was started. Merge it at the forge, or reset the thread."
    )
}

/// Said at the forge to somebody whose `/bobbin` begins nothing.
pub const CONNECT_TO_ASK: &str = "Bobbin takes tasks here from people who have connected this account in the chat (`/github connect`) and may use Bobbin in the channel of the thread that opened this pull request.";
/// The same, where the thread has another repository by now.
pub const WORKS_ELSEWHERE: &str = "The thread that opened this pull request has another repository now, so Bobbin takes no tasks here. Begin another thread.";
/// Said at the forge once that was enough.
pub const NO_MORE_TASKS: &str =
    "Bobbin takes no more tasks from comments of this pull request. Go on in its thread.";

/// Somebody asked for a task below the pull request.
#[must_use]
pub fn asked_at_forge(by: &str, at: &PullRequestRef, page: &str, task: &str) -> String {
    let quoted: Vec<String> = shorten(task, 600).lines().map(|line| format!("> {line}")).collect();
    let page = if page.is_empty() { &at.page } else { page };
    format!(
        "{} asks below pull request #{} ({page}):\n{}",
        one_line(by),
        at.number,
        quoted.join("\n")
    )
}

/// A fix after which the branch is what it was.
pub const FIX_CHANGED_NOTHING: &str =
    "The agent changed no file for the fix, so nothing was pushed. Say in the thread what to do.";
/// The same, said at the forge.
pub const NOTHING_CHANGED: &str = "Nothing was changed for this, and it stays open.";

/// The reply at the forge about a push; it contains nothing of the conversation.
#[must_use]
pub fn changed_in(commit: &str, changed: &[OutgoingFile]) -> String {
    const SHOWN: usize = 10;
    let mut text = format!("Changed in {}.", commit.get(..12).unwrap_or(commit));
    for file in changed.iter().take(SHOWN) {
        text.push_str(&format!("\n- `{}`", file.path.replace('`', "'")));
    }
    if changed.len() > SHOWN {
        text.push_str(&format!("\n- and {} more files", changed.len() - SHOWN));
    }
    text
}

/// A fix begins.
#[must_use]
pub fn fix_begins(number: u64, by: &str) -> String {
    format!(
        "The agent fixes pull request #{number} now: {} pressed Fix. Bobbin pushes what it changes.",
        if by.is_empty() { "somebody".to_owned() } else { one_line(by) }
    )
}

/// A person pressed a button of a card whose pull request is not watched.
pub const NO_OPEN_PULL_REQUEST: &str =
    "Nothing was done: this thread has no open pull request any more.";

/// A person's act failed, and a retry cannot help.
#[must_use]
pub fn nothing_done(why: &str) -> String {
    format!("Nothing was done: {why}")
}

/// What a person did with the pull request, or why they could not.
#[must_use]
pub fn acted(
    thread: &ThreadKey,
    (act, number): (PullRequestAct, u64),
    name: &str,
    ended: &ActEnd,
) -> String {
    let who = if name.is_empty() { "Somebody" } else { name };
    match (ended, act) {
        (ActEnd::Done, PullRequestAct::MarkReady) => {
            format!("{who} marked pull request #{number} as ready for review.")
        }
        (ActEnd::Done, PullRequestAct::Merge) => format!("{who} merged pull request #{number}."),
        (ActEnd::Done, PullRequestAct::UpdateBranch) => {
            format!(
                "{who} had the base merged into the branch of pull request #{number}. Before the next push, ask the agent to fetch and merge it."
            )
        }
        (ActEnd::Queued, _) => format!("{who} put pull request #{number} into the merge queue."),
        (ActEnd::HeadMoved, _) => nothing_done(&format!(
            "somebody has pushed to pull request #{number} since its card showed it. The card shows the newest commit now: press again."
        )),
        (ActEnd::Conflicts, _) => nothing_done(&format!(
            "pull request #{number} conflicts with its base. Ask the agent to merge the base."
        )),
        (ActEnd::NotLinked { why }, _) => {
            let github = thread.command(Command::GitHub);
            nothing_done(&format!(
                "you need a GitHub account of your own. {why} `{github} connect` connects it; then press again."
            ))
        }
        (ActEnd::Refused { why }, _) => nothing_done(&format!("GitHub refused it: {why}")),
    }
}

/// The pull request was merged or closed.
#[must_use]
pub fn pull_request_has_ended(at: &PullRequestRef, state: PullRequestState) -> String {
    let what = match state {
        PullRequestState::Merged => "was merged",
        _ => "was closed without being merged",
    };
    format!(
        "Pull request #{} {what}: {} The next work here begins a new branch.",
        at.number, at.page
    )
}

/// The review that the agent wrote cannot be posted.
#[must_use]
pub fn review_unusable(why: &str) -> String {
    format!(
        "The agent has written a review that cannot be posted: {why}. Nothing was posted. Ask it to write `{FILE}` again."
    )
}

/// A press on a review that is not the one that was shown last.
pub const REVIEW_NOT_SHOWN: &str =
    "This review is not the last one that was shown here, so nothing was posted.";
/// A second press.
pub const REVIEW_WAS_POSTED: &str = "This review was posted already.";

/// The review is posted.
#[must_use]
pub fn review_is_posted(number: u64, page: &str) -> String {
    format!("The review of pull request #{number} is posted: {page}")
}

/// The review is not posted.
#[must_use]
pub fn review_refused(why: &str) -> String {
    let why = why.trim_end_matches('.');
    format!("The review was not posted: {why}. Press again to try once more.")
}

/// The account of the person who pressed may not read the repository.
#[must_use]
pub fn may_not_read(login: &str, repository: &str) -> String {
    format!(
        "Your GitHub account {login} may not read {repository}, and reviews from this channel are posted only for people whose own account may. Nothing was posted."
    )
}
