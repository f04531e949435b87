//! Texts for people when something went wrong: what happened, and what to do next.

pub mod for_agent;
mod publish;

pub use publish::*;

use crate::base::ids::{Ms, SandboxName, ThreadKey};
use crate::protocol::event::NotCloned;
use crate::records::ask::About;
use crate::records::carried::LeftOut;
use crate::records::given_pull::GivenPull;
use crate::records::publication::PullRequestState;
use crate::tenant::budgets::{self, BudgetKind, MicroUsd};
use crate::tenant::commands::Command;
use crate::tenant::repositories::apart;
use crate::text::{and_more, dollars, one_line, shorten};

/// Names that a list shows.
const NAMES_SHOWN: usize = 10;
/// Characters (UTF-16 units) of the paths of one kind that a clone left out.
const LEFT_OUT_UNITS_MAX: usize = 200;

/// The run was aborted, but neither by a person in the thread nor by Bobbin.
pub const ABORTED_ELSEWHERE: &str =
    "The run was aborted inside the sandbox. Send the task again to run it once more.";
/// OpenCode lost its session while it ran.
pub const SESSION_VANISHED: &str = "The agent's session disappeared during the run. Your files are still there: send the task again.";
/// The prompt's message vanished from the queue.
pub const LOST_ITS_PLACE: &str =
    "This task stopped, and nobody can say how it ended. Send it again to run it once more.";
/// Mentions the requesters: the turn has failed.
pub const CALL_FAILED: &str = "This did not work. The card above says why, and what to do.";
/// Mentions the requesters: a budget is spent.
pub const CALL_OVER_BUDGET: &str =
    "A budget has stopped this. The card above says whose, and what to do.";
/// Mentions the requesters: somebody else stopped the turn.
pub const CALL_CANCELLED: &str = "This was stopped. The card above says by whom.";
/// Mentions the requesters: the sandbox is gone, and the turn with it.
pub const CALL_LOST: &str =
    "The sandbox was lost while this ran. \"Run again\" on the card above repeats it.";
/// Too many prompts wait in the thread.
pub const QUEUE_FULL: &str = "Too many tasks are waiting in this thread already. Send it again when some are done, or use another thread.";
/// A message became a dead letter.
pub const DEAD_LETTER: &str = "Bobbin tried many times to handle a message in this thread, and failed. Send it again; if it keeps failing, tell the operator.";
/// As [`DEAD_LETTER`], for a task whose thread was never created, and for a control message.
pub const NOT_DONE: &str = "Bobbin tried this many times, and failed. Try again in a few minutes; if it keeps failing, tell the operator.";
/// Something that somebody pressed or typed had no effect.
#[must_use]
pub fn not_carried_out(what: &str, seen: &str) -> String {
    let seen = seen.trim_end_matches('.');
    format!("{what} failed: {seen}. Try again.")
}

/// Told to the requester outside of the thread: the end of a task cannot be posted there.
#[must_use]
pub fn notified_outside(seen: &str) -> String {
    let seen = seen.trim_end_matches('.');
    format!(
        "Your task has ended, but Bobbin cannot post in its thread: {seen}. The message is kept and posted there as soon as that works again."
    )
}

/// After a reset that keeps the files.
pub const BEGUN_ANEW: &str = "A new conversation starts in this thread, in the same sandbox. The files stay as they are; the agent no longer knows what was said before.";

/// Ingress does not know whether the queue took a task.
pub const MAYBE_TAKEN: &str = "Bobbin does not know whether this was accepted. Wait a minute: if it shows up in the thread, it runs. Send it again only if it does not";
/// The run ended without an answer, and the agent does not say how it ended.
pub const UNEXPLAINED: &str = "The run ended without an answer, and the agent does not say why. Its files are kept: reply to go on, or send the task again.";
/// Below an answer if the agent does not say how the run ended.
pub const MAYBE_INCOMPLETE: &str =
    "(The agent does not say how this run ended, so the answer may be incomplete. Reply to go on.)";
/// Below an answer that was cut off by the output limit.
pub const CUT_OFF: &str = "(This answer was cut off at the model's output limit. Reply to go on.)";
/// Below the kept part of an answer, if its thread could not be written in and the rest was not kept.
pub const REST_NOT_KEPT: &str = "(The rest of this answer was not kept, because Bobbin could not post in this thread. Ask for it again.)";
/// In place of a part of an answer that the chat did not take, and of all after it.
#[must_use]
pub fn part_refused(is_rest: bool, why: &str) -> String {
    let what = if is_rest { "The rest of this answer" } else { "This answer" };
    let why = shorten(why.trim_end_matches('.'), 300);
    format!("({what} could not be posted here: {why}. The agent still has it: ask for it again.)")
}

/// The agent ended without an answer.
pub const NO_TEXT: &str =
    "The agent finished without a written answer. Its steps are in the card above.";
/// The agent ended without an answer after somebody declined a request.
pub const DECLINED: &str = "The agent stopped because its request was declined. Reply to go on.";
/// A sandbox expired.
pub const EXPIRED: &str = "This thread's sandbox was idle for a long time and has been deleted with its files. The next message starts a fresh one.";
/// The operator has deleted the sandbox.
pub const DESTROYED: &str = "The operator has deleted this thread's sandbox with its files. The next message starts a fresh one.";
/// A reset is done.
pub const RESET: &str =
    "Fresh start: the old sandbox and its files are gone. The next message starts a new one.";
/// A named sandbox expired.
pub const EXPIRED_SHARED: &str = "This thread's shared sandbox was idle for days and has been deleted with its files. Its name stays: the next message starts a fresh one.";
/// Somebody wants to name the thread's sandbox, but there is none.
pub const NOTHING_TO_NAME: &str = "This thread has no sandbox to name yet. Send it a task first.";
/// The thread works in its own sandbox again.
pub const CONNECTED_OWN: &str = "From now on this thread works in its own sandbox.";

/// Somebody wants to reset a thread whose sandbox has a name.
#[must_use]
pub fn reset_shared(thread: &ThreadKey) -> String {
    let (connect, destroy) = (thread.command(Command::Connect), thread.command(Command::Destroy));
    format!(
        "This thread works in a named sandbox that others may share, so the sandbox is kept. {connect} moves the thread to its own sandbox; {destroy} deletes this one for everybody."
    )
}

/// The sandbox that the thread was to move to does not exist.
#[must_use]
pub fn connect_gone(thread: &ThreadKey) -> String {
    let list = thread.command(Command::List);
    format!("That sandbox no longer exists, so nothing has changed. {list} shows those that do.")
}

/// A shared sandbox has been deleted; for a thread that shared it.
#[must_use]
pub fn destroyed_by(by: &str) -> String {
    let by = if by.is_empty() { "the operator" } else { by };
    format!(
        "This thread's sandbox and its files have been deleted by {by}. The next message here starts a fresh sandbox for this thread alone."
    )
}

/// A person wanted a sandbox deleted, and that failed; for the threads that work in it.
#[must_use]
pub fn not_destroyed(by: &str, trouble: &str) -> String {
    format!("{by} wanted this thread's sandbox deleted with its files, but that failed: {trouble}")
}

/// There is no sandbox with that name.
#[must_use]
pub fn no_sandbox(name: &SandboxName, thread: &ThreadKey) -> String {
    let list = thread.command(Command::List);
    format!(
        "There is no sandbox named {name} here. {list} shows the ones that exist; a task with `sandbox:{name}` and a `provider` creates one."
    )
}

/// Too many threads want to share a sandbox.
#[must_use]
pub fn too_many_threads(name: &SandboxName, thread: &ThreadKey) -> String {
    let connect = thread.command(Command::Connect);
    format!(
        "As many threads as allowed already share {name}. Move one of them to another sandbox with {connect}, or work in this thread's own sandbox."
    )
}

/// A turn has waited too long for the common checkout.
#[must_use]
pub fn waited_for_workspace(waited_ms: u64) -> String {
    let lasted = minutes(waited_ms);
    format!(
        "Others have been working in the sandbox's common checkout for {lasted}, so this task was not started. Send it again later, or connect the thread to its own sandbox."
    )
}

/// The sandbox has been named.
#[must_use]
pub fn named(name: &SandboxName, thread: &ThreadKey) -> String {
    let connect = thread.command(Command::Connect);
    format!(
        "This sandbox is now called {name}. Other threads can work in it: a task there can choose sandbox:{name}, and {connect} moves a whole thread to it."
    )
}

/// Another sandbox has that name.
#[must_use]
pub fn name_taken(name: &SandboxName) -> String {
    format!(
        "Another sandbox is already called {name}. Choose another name, or destroy that sandbox first."
    )
}

/// The thread works in a shared sandbox.
#[must_use]
pub fn connected(name: &SandboxName, common: bool) -> String {
    let how = if common {
        "It takes turns with others in the common checkout."
    } else {
        "It works beside others, in its own git worktree."
    };
    format!("From now on this thread works in the sandbox {name}. {how}")
}

/// "Send now" for a prompt that the agent already has.
pub const SENT_ALREADY: &str =
    "The agent already has it: it was sent into the running task. Stop ends that whole task.";
/// "Send now" was pressed before.
pub const SENDS_ALREADY: &str = "It is already being sent.";
/// "Send now" for a prompt that is no longer waiting.
pub const NOT_WAITING: &str = "This task is no longer waiting.";
/// "Send now" while there is no run to send it into.
pub const NOTHING_RUNS: &str = "Nothing is running any more, so it starts by itself.";
/// "Send now" for a prompt that is too large to be kept, or comes with files or choices of its own.
pub const NOT_KEPT: &str = "This task cannot be sent into a running one: it is too long, or it has its own files or choices. It runs when its turn comes.";

/// Result of "Stop all".
#[must_use]
pub fn stopped_all(running: bool, withdrawn: usize) -> String {
    let queue = match withdrawn {
        0 => "nothing was waiting".to_owned(),
        1 => "one waiting task is withdrawn".to_owned(),
        n => format!("{n} waiting tasks are withdrawn"),
    };
    if running {
        format!("Stopping the running task; {queue}.")
    } else {
        format!("Nothing is running here; {queue}.")
    }
}

/// The same thing failed again and again.
#[must_use]
pub fn kept_failing(trouble: Option<&str>) -> String {
    match trouble {
        Some(seen) => format!("It kept failing: {seen}. Try again in a few minutes; if that does not help, tell the operator."),
        None => "It kept failing, and the reason is unknown. Try again; if that does not help, tell the operator.".to_owned(),
    }
}

/// As [`DEAD_LETTER`], for a prompt, on its card.
pub const DEAD_PROMPT: &str = "Bobbin tried many times to run it, and failed. Run it again; if that does not help, tell the operator.";

/// The provider has been unavailable for too long. `begun`: the agent had been given the prompt.
#[must_use]
pub fn outage(seen: &str, outage_ms: u64, begun: bool) -> String {
    let so = if begun {
        "What the agent has done so far may be in the files; its answer could not be read."
    } else {
        "Nothing was run; try again later."
    };
    let lasted = minutes(outage_ms);
    format!("The sandbox provider has not answered for {lasted} ({seen}). {so}")
}

/// The tenant has the most sandboxes allowed.
#[must_use]
pub fn too_many_sandboxes(bound: u32) -> String {
    format!(
        "At most {bound} sandboxes are allowed here at a time, and there are that many. Reset a thread that is done, or wait: idle sandboxes are deleted automatically."
    )
}

/// What a clone left out, as part of a sentence: `submodules (lib) and Git LFS files (model.bin)`.
#[must_use]
pub fn left_out(left_out: &LeftOut) -> Option<String> {
    let part = |what: &str, paths: &[String]| {
        let paths: Vec<String> = paths.iter().map(|path| one_line(path)).collect();
        let paths = shorten(&paths.join(", "), LEFT_OUT_UNITS_MAX);
        (!paths.is_empty()).then(|| format!("{what} ({paths})"))
    };
    let history = left_out.history.map(|commits| match commits {
        1 => "commits older than the newest".to_owned(),
        _ => format!("commits older than the newest {commits}"),
    });
    let parts = [
        part("submodules", &left_out.submodules),
        part("repositories beside it", &left_out.beside),
        part("Git LFS files", &left_out.large),
        history,
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let (last, before) = parts.split_last()?;
    Some(if before.is_empty() { last.clone() } else { format!("{} and {last}", before.join(", ")) })
}

/// Said to the person who names a sandbox whose agent could read secrets.
pub const SECRETS_ON_DISK: &str =
    "The agent here could read secrets of the project: their values may be in its files.";

/// A sandbox with a private repository belongs to its thread alone.
pub const PRIVATE_NOT_SHARED: &str = "A private repository is in this sandbox, so it gets no name: anybody who knew the name could use it.";

/// The same of its snapshots.
pub const PRIVATE_NOT_KEPT: &str =
    "a private repository is in it, and a snapshot could be used elsewhere";

/// What a clone left out, for people.
#[must_use]
pub fn not_there(left_out: &str) -> String {
    format!(
        "Part of the repository is not in the sandbox: {left_out} are left out. The agent knows this, and can fetch what it needs if the host lets everybody read."
    )
}

/// Attachments that the agent does not get.
#[must_use]
pub fn missed(lines: &[String]) -> String {
    format!(
        "The agent works without these files. If it needs them, upload them again:\n- {}",
        lines.join("\n- ")
    )
}

/// The agent's files that are not shown.
#[must_use]
pub fn unshown(lines: &[String]) -> String {
    format!(
        "These files from the agent are not shown here; they are in its sandbox:\n- {}",
        lines.join("\n- ")
    )
}

/// The old sandbox could not be deleted.
#[must_use]
pub fn not_deleted(trouble: &str) -> String {
    format!(
        "The next message starts a fresh sandbox, but the old one could not be deleted: {trouble}"
    )
}

/// The model or the agent failed.
#[must_use]
pub fn model_failed(reason: &str) -> String {
    format!("The agent could not finish. {}. The sandbox is kept.", reason.trim_end_matches('.'))
}

/// Nobody answered the ask in time.
#[must_use]
pub const fn unanswered(about: &About) -> &'static str {
    match about {
        About::Permission { .. } => "Nobody decided in time, so it counts as no.",
        About::Question { .. } => "Nobody answered in time, so the agent got no answer.",
    }
}

/// The turn has run too long.
#[must_use]
pub fn ran_too_long(turn_ms: u64) -> String {
    format!(
        "It ran longer than {} and was stopped. The sandbox is kept; reply to go on from there.",
        minutes(turn_ms)
    )
}

/// OpenCode does not become healthy.
#[must_use]
pub fn server_unhealthy(seen: &str) -> String {
    format!(
        "The agent's server did not start: {seen}. Try again, or use reset for a fresh sandbox."
    )
}

/// OpenCode went away more often than Bobbin resends by itself.
#[must_use]
pub fn server_went_away(seen: &str) -> String {
    format!(
        "The agent's server went away during the run ({seen}). The sandbox is kept; reply to try again."
    )
}

/// The sandbox does not start.
#[must_use]
pub fn not_ready(bound_ms: u64) -> String {
    format!(
        "The sandbox was not ready within {}. Try again; if that does not help, tell the operator.",
        minutes(bound_ms)
    )
}

/// Two new sandboxes in a row did not put secrets in.
pub const SECRETS_NOT_PUT_IN: &str = "The sandbox provider adds the model key to requests outside the sandbox. It did not do this for two new sandboxes in a row, so nothing was run. Try again; if that does not help, the operator must ask the provider.";

/// The set-up could not be ended.
pub const SET_UP_LEFT: &str = "Set-up processes could not be stopped, and the agent does not start beside them, so nothing was run. Fix the steps, or switch them off with the setting environment.";

/// The provider gave up on the sandbox.
#[must_use]
pub fn broken(reason: &str) -> String {
    let reason = if reason.is_empty() { "no reason given" } else { reason };
    format!(
        "The sandbox provider reports an error: {reason}. Use reset for a fresh sandbox, or try again later."
    )
}

/// The repository could not be cloned.
#[must_use]
pub fn not_cloned(repo: &str, why: &NotCloned) -> String {
    let (seen, advice) = not_cloned_because(repo, why);
    match why {
        NotCloned::Forge { .. } => {
            format!("The repository {repo} was not fetched: {seen} Nothing was run.")
        }
        _ => {
            format!("The repository {repo} could not be cloned: {seen}. {advice} Nothing was run.")
        }
    }
}

/// What was seen, and what to do about it.
pub(super) fn not_cloned_because(repo: &str, why: &NotCloned) -> (String, &'static str) {
    match why {
        NotCloned::NotFound => (
            "it does not exist, or it is private".to_owned(),
            "Check its name; only public repositories can be cloned.",
        ),
        NotCloned::Unreachable => (
            "its host cannot be reached from the sandbox".to_owned(),
            "Check the address, or try again later.",
        ),
        NotCloned::TooLong { within_ms } => (
            format!("it took longer than {}", minutes(*within_ms)),
            "Try again, or name a smaller one.",
        ),
        NotCloned::NoRoom => {
            ("the sandbox's disk is too small for it".to_owned(), "Name a smaller one.")
        }
        NotCloned::Forge { why } => (why.clone(), ""),
        NotCloned::NotOpen => (
            "it is private, and no manager has opened it here".to_owned(),
            "A manager can open it in Bobbin's settings.",
        ),
        NotCloned::PrivateShared => (
            "it is private, and a sandbox with a name can be shared".to_owned(),
            "Begin a thread of its own for it.",
        ),
        NotCloned::NoRef => (
            format!("it has no branch, tag or commit {}", apart(repo).1.unwrap_or("to be found")),
            "Check the name; a commit needs all of its 40 digits.",
        ),
        NotCloned::Other { seen } => (
            format!("git says: {}", seen.trim_end_matches('.')),
            "Check its name, or try again later.",
        ),
    }
}

/// A pull request was named without its repository.
pub const PULL_REQUEST_ALONE: &str =
    "A pull request needs its repository: choose `repo` beside `pr`. Nothing was run.";
/// A pull request was named beside a branch, tag or commit.
pub const PULL_REQUEST_AND_REF: &str = "A pull request has a branch of its own: choose `repo` without the part after `@`, or leave out `pr`. Nothing was run.";
/// The agent works in a tool sandbox.
pub const PULL_REQUEST_OUTSIDE: &str = "An agent with the runtime outside cannot be given a pull request. Choose another runtime. Nothing was run.";
/// The repository is cloned from inside the sandbox.
pub const PULL_REQUEST_UNREACHED: &str = "a pull request is brought only from a repository that Bobbin's GitHub app includes and that a manager has opened here.";

/// The repository has no pull request with this number.
#[must_use]
pub fn no_such_pull_request(number: u64) -> String {
    format!("it has no pull request #{number}.")
}

/// The pull request is not open any more; `None`: it is.
#[must_use]
pub fn given_is_over(pull: &GivenPull) -> Option<String> {
    let state = match pull.state {
        PullRequestState::Open => return None,
        PullRequestState::Closed => "is closed",
        PullRequestState::Merged => "is merged",
    };
    let GivenPull { number, page, .. } = pull;
    Some(format!("Pull request #{number} {state}. The agent works from its last commit: {page}"))
}

/// The checkout stays where it is, although the pull request of its work has ended.
pub const STAYS_ON_OLD_BASE: &str = "The pull request of the earlier work has ended, but the sandbox holds work that is in no pull request. So nothing was moved: the agent goes on from there. To start from the newest commit instead, ask the agent to keep or drop that work and to fetch and check out the branch.";

/// A budget is set, and the agent does not report its costs.
#[must_use]
pub fn agent_tells_no_cost(agent: &str) -> String {
    format!(
        "A budget is set here, but {agent} does not report its costs. Choose another agent, such as build or claude."
    )
}

/// A budget is exhausted before the turn begins.
#[must_use]
pub fn budget_exhausted(kind: BudgetKind, limit: MicroUsd, now_ms: Ms) -> String {
    let limit = dollars(limit);
    let (whose, resets) = match kind {
        BudgetKind::Turn => ("The task's budget", None),
        BudgetKind::Thread => ("This thread's budget", None),
        BudgetKind::PersonDay => {
            ("The daily budget of each person", Some(budgets::next_day(now_ms)))
        }
        BudgetKind::ChannelMonth => {
            ("This channel's monthly budget", Some(budgets::next_month(now_ms)))
        }
        BudgetKind::Month => ("This place's monthly budget", Some(budgets::next_month(now_ms))),
        BudgetKind::Stack => ("Bobbin's overall monthly budget", Some(budgets::next_month(now_ms))),
    };
    let resets = resets.map(|day| format!(" It resets on {day}, 00:00 UTC."));
    let who = match kind {
        BudgetKind::Turn | BudgetKind::Thread => "Whoever may give tasks here can let it go on.",
        BudgetKind::Stack => "Only the operator can raise it.",
        _ => "A manager can let it go on, or raise it.",
    };
    let gone = match kind {
        BudgetKind::Turn | BudgetKind::Thread => "used up",
        _ => "used up, or set aside for tasks that run now",
    };
    format!(
        "{whose} of {limit} is {gone}, so this was not started.{} {who}",
        resets.unwrap_or_default()
    )
}

/// A turn has spent its budget.
#[must_use]
pub fn budget_spent(by: BudgetKind, amount: MicroUsd) -> String {
    let amount = dollars(amount);
    let of = match by {
        BudgetKind::Turn => {
            return format!(
                "It has spent its budget of {amount}. The sandbox and the conversation are kept."
            );
        }
        BudgetKind::Thread => "of the thread's budget",
        // How much that was is nobody else's business.
        BudgetKind::PersonDay => {
            return "It has spent what was left of its author's budget for today. The sandbox and the conversation are kept."
                .to_owned();
        }
        BudgetKind::ChannelMonth => "of the channel's budget for this month",
        BudgetKind::Month => "of this place's budget for this month",
        BudgetKind::Stack => "of the whole stack's budget for this month",
    };
    format!(
        "It has spent the {amount} that was left {of}. The sandbox and the conversation are kept."
    )
}

/// The existing sandbox has another repository, or none.
#[must_use]
pub fn other_repo(wanted: &str, there: Option<&str>) -> String {
    let there =
        there.map_or_else(|| "without a repository".to_owned(), |repo| format!("on {repo}"));
    format!(
        "This thread's sandbox works {there} and cannot change to {wanted}. Use reset for a fresh sandbox, or name the repository in another thread."
    )
}

/// The existing sandbox has another runtime.
#[must_use]
pub fn other_runtime(wanted: &str, there: &str) -> String {
    format!(
        "This thread's sandbox has the runtime {there} and cannot change to {wanted}. Use reset for a fresh sandbox, or choose the runtime in another thread."
    )
}

/// The agent needs another runtime than that of the existing or wanted sandbox.
#[must_use]
pub fn other_agent(agent: &str, needed: &str, there: &str) -> String {
    format!(
        "{agent} needs the runtime {needed}, and this thread's sandbox has the runtime {there}. Use reset for a fresh sandbox and choose {agent} again without a runtime, or choose it in another thread."
    )
}

/// The sandbox is only for tools: no agent runs in it.
pub const NO_AGENT_THERE: &str = "No agent runs in this sandbox: it is used through tools only. Disconnect the thread from it, or choose another sandbox.";

/// There is no key for the model's provider.
#[must_use]
pub fn no_key(model: &str, provider: &str, providers: &[String]) -> String {
    format!(
        "{model} cannot be used: there is no key for {provider} here. Choose a model of {}; the operator can add a key.",
        listed(providers, "")
    )
}

/// The agent does not know the model.
#[must_use]
pub fn unknown_model(model: &str, models: &[String]) -> String {
    let provider = model.split_once('/').map_or(model, |(provider, _)| provider);
    format!(
        "{model} is not a model that can be used here. Choose one of these: {}.",
        listed(models, &format!("{provider}/"))
    )
}

/// A budget counts on the price of a model that has none.
#[must_use]
pub fn unpriced_model(model: &str) -> String {
    format!(
        "A budget is set here, but the price of {model} is unknown, so it would count as free. Choose another model. The operator can name its price in the parameter Overrides (`prices`)."
    )
}

/// A budget counts on prices that the agent did not list.
pub const PRICES_NOT_SAID: &str = "A budget is set here, and the agent did not say in time which models have a price, so nothing was started. Run it again.";

/// OpenCode does not know the agent.
#[must_use]
pub fn unknown_agent(agent: &str, agents: &[String]) -> String {
    format!(
        "{agent} is not an agent that can be used here. Choose one of these: {}.",
        listed(agents, "")
    )
}

/// Added when the unusable value is a default, not the requester's choice.
#[must_use]
pub fn a_default(by: &str) -> String {
    let by = match by {
        "" => String::new(),
        by => format!(", set by {by}"),
    };
    format!(
        "It is the default here{by}. People who manage this server or workspace change it with the command config, and a task can name another one."
    )
}

/// Names, with those that begin with `first` in front, and the number of those left out.
fn listed(names: &[String], first: &str) -> String {
    let (alike, others): (Vec<&String>, Vec<&String>) =
        names.iter().partition(|name| name.starts_with(first));
    let all: Vec<&str> = alike.into_iter().chain(others).map(String::as_str).collect();
    match all.len() {
        0 => "the configured one only".to_owned(),
        n => and_more(&all[..n.min(NAMES_SHOWN)], n.saturating_sub(NAMES_SHOWN)),
    }
}

fn minutes(ms: u64) -> String {
    match ms {
        0..60_000 => format!("{} s", ms.div_ceil(1000)),
        7_200_000.. => format!("{} h", ms / 3_600_000),
        _ => format!("{} min", ms / 60_000),
    }
}
