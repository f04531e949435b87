//! The named sandboxes of a tenant as people see them: a paged list, the actions for each, and what would be lost by
//! deleting one.
//!
//! Pure: it turns records into values and text. The wire modules draw them; the command line and the page print them.

use serde::Serialize;

use crate::base::credentials::redact;
use crate::base::ids::{Ms, SandboxKey, SandboxName, ThreadKey};
use crate::records::control::Operation;
use crate::records::sandbox::{KeptSnapshot, Operated, Phase, SandboxRecord};
use crate::tenant::commands::Command;
use crate::tenant::sandbox_hint::{SandboxHint, used};
use crate::tenant::settings::DefaultKind;
use crate::text::{and_more, one_line, shorten, span};

/// Sandboxes on one page in a chat: with four buttons each they fit into a message on either platform.
pub const PAGE_SANDBOXES: usize = 5;
/// Characters (UTF-16 units) of a provider or repository in a line.
const WORD_UNITS_MAX: usize = 80;
/// Characters (UTF-16 units) of the trouble of an operation.
const TROUBLE_UNITS_MAX: usize = 160;
/// Bytes of a snapshot's name.
const SNAPSHOT_BYTES_MAX: usize = 200;
/// How long the result of the last operation is shown, in milliseconds.
const RESULT_SHOWN_MS: u64 = 60 * 60_000;

/// A sandbox in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its key.
    pub key: SandboxKey,
    /// Its name; `None` for a thread's own.
    pub name: Option<SandboxName>,
    /// Its provider; `None` means the stack's first.
    pub provider: Option<String>,
    /// Phase of its life cycle.
    pub phase: Phase,
    /// Sandbox generation.
    pub generation: u32,
    /// The repository that it was created with.
    pub repo: Option<String>,
    /// When a turn last began or ended in it.
    pub last_used_ms: Ms,
    /// For a tool sandbox, the sandbox of its agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<SandboxKey>,
    /// The threads that work in it.
    pub threads: Vec<ThreadKey>,
    /// The threads with a turn that works in it now.
    pub in_use: Vec<ThreadKey>,
    /// Turns that wait for the common checkout.
    pub waiting: usize,
    /// Its snapshots, newest last.
    pub snapshots: Vec<KeptSnapshot>,
    /// Why its provider makes no snapshots; `None` if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_snapshots: Option<String>,
    /// Somebody wants it deleted: nothing begins in it any more.
    pub closing: bool,
    /// The last operation and its result.
    #[serde(skip)]
    pub operated: Option<Operated>,
}

impl Listed {
    /// A sandbox, by its record.
    #[must_use]
    pub fn of(key: &SandboxKey, record: &SandboxRecord) -> Self {
        Self {
            key: key.clone(),
            name: record.sharing.name.clone(),
            provider: record.spec.provider.clone(),
            phase: record.phase,
            generation: record.generation,
            repo: record.project.repo.clone(),
            last_used_ms: record.last_activity_ms,
            agent: record.tooling.agent.clone(),
            threads: record.sharing.threads.iter().cloned().collect(),
            in_use: record.sharing.in_use.iter().map(|one| one.thread.clone()).collect(),
            waiting: record.sharing.waiting.len(),
            snapshots: record.snapshots.clone(),
            no_snapshots: None,
            closing: record.sharing.closing.is_some(),
            operated: record.history.operated.last().cloned(),
        }
    }

    /// Notes that its provider makes no snapshots, and why.
    #[must_use]
    pub fn without_snapshots(self, why: Option<String>) -> Self {
        Self { no_snapshots: why, ..self }
    }

    /// Its name, as shown.
    #[must_use]
    pub fn called(&self) -> &str {
        self.name.as_ref().map_or("without a name", SandboxName::as_str)
    }

    /// Its state, in a word or two.
    #[must_use]
    pub const fn state(&self) -> &'static str {
        match self.phase {
            _ if self.closing => "being destroyed",
            Phase::Creating => "being created",
            Phase::Active => "running",
            Phase::Pausing => "being stopped",
            Phase::Paused => "stopped",
            Phase::Resuming => "being started",
            Phase::Destroying => "being destroyed",
            Phase::Destroyed => "not made",
            Phase::Error => "could not be created",
        }
    }

    /// Its provider as shown, also if none was chosen.
    #[must_use]
    pub fn provider(&self) -> String {
        let provider = self.provider.as_deref().unwrap_or("default provider");
        shorten(&one_line(provider), WORD_UNITS_MAX)
    }

    /// Its last use, as text.
    #[must_use]
    pub fn used(&self, now_ms: Ms) -> String {
        used(self.in_use.len(), self.last_used_ms, now_ms)
    }

    /// Its cached status, for suggestions.
    #[must_use]
    pub fn glance(&self) -> SandboxHint {
        SandboxHint {
            state: self.state().to_owned(),
            last_used_ms: self.last_used_ms,
            in_use: self.in_use.len(),
        }
    }

    /// The facts for its line, in this order: provider, state, last use, threads, and anything else.
    #[must_use]
    pub fn facts(&self, now_ms: Ms) -> Vec<String> {
        let mut facts = vec![self.provider(), self.state().to_owned(), self.used(now_ms)];
        facts.push(match self.threads.len() {
            0 if self.agent.is_some() => "for its agent only".to_owned(),
            0 => "no threads".to_owned(),
            1 => "1 thread".to_owned(),
            n => format!("{n} threads"),
        });
        match self.waiting {
            0 => {}
            1 => facts.push("1 task waits".to_owned()),
            n => facts.push(format!("{n} tasks wait")),
        }
        // The name is shown because it is needed to create a sandbox from the snapshot.
        if let Some(newest) = self.snapshots.last() {
            facts.push(match self.snapshots.len() {
                1 => format!("snapshot {}", newest.name),
                n => format!("{n} snapshots, newest {}", newest.name),
            });
        }
        facts.extend(self.no_snapshots.clone());
        facts
    }

    /// Result of the last operation, shown for a while after it.
    #[must_use]
    pub fn last_result(&self, now_ms: Ms) -> Option<String> {
        let last = self.operated.as_ref()?;
        let ago_ms = now_ms.saturating_sub(last.at_ms);
        let word = action_of(last.want)?.label();
        (ago_ms < RESULT_SHOWN_MS).then(|| match &last.trouble {
            None => format!("{word}: done {} ago", span(ago_ms)),
            Some(trouble) => {
                let trouble = shorten(&one_line(trouble), TROUBLE_UNITS_MAX);
                format!("{word}: failed {} ago: {trouble}", span(ago_ms))
            }
        })
    }

    /// The actions offered for it now; `in_thread` says whether there is a thread to connect to it.
    #[must_use]
    pub fn actions(&self, in_thread: bool) -> Vec<SandboxAction> {
        let mut actions = Vec::new();
        if in_thread && !self.closing && self.agent.is_none() {
            actions.push(SandboxAction::Connect);
        }
        let possible = [
            SandboxAction::Stop,
            SandboxAction::Start,
            SandboxAction::Snapshot,
            SandboxAction::Destroy,
        ];
        actions.extend(possible.into_iter().filter(|action| {
            let want = action.operation();
            want.is_some_and(|want| self.pointless(want).is_none())
        }));
        actions
    }

    /// Why an operation would do nothing, by the present record.
    #[must_use]
    pub fn pointless(&self, want: Operation) -> Option<&str> {
        if self.closing {
            return Some("it is being destroyed");
        }
        if want == Operation::Snapshot && self.no_snapshots.is_some() {
            return self.no_snapshots.as_deref();
        }
        match (want, self.phase) {
            // A sandbox that is only a name releases the name.
            (Operation::Destroy, _) => None,
            (_, Phase::Destroyed | Phase::Error) => {
                Some("there is none now; the next message in one of its threads creates one")
            }
            (_, Phase::Destroying) => Some("it is being destroyed"),
            (_, Phase::Creating) => Some("it is still being created"),
            (Operation::Pause, Phase::Paused) => Some("it is already stopped"),
            (Operation::Pause, Phase::Pausing) => Some("it is already being stopped"),
            (Operation::Resume, Phase::Active) => Some("it is already running"),
            (Operation::Resume, Phase::Resuming) => Some("it is already being started"),
            (Operation::Snapshot, Phase::Pausing | Phase::Resuming) => {
                Some("it is starting or stopping; try again in a minute")
            }
            _ => None,
        }
    }
}

/// Actions for a sandbox in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxAction {
    /// Let the thread work in it from now on.
    Connect,
    /// Stop it and keep its disk.
    Stop,
    /// Start it again.
    Start,
    /// Keep its disk as a snapshot.
    Snapshot,
    /// Ask for confirmation before deleting it.
    Destroy,
}

impl SandboxAction {
    /// All actions, in the order in which they are offered.
    pub const ALL: [Self; 5] =
        [Self::Connect, Self::Stop, Self::Start, Self::Snapshot, Self::Destroy];

    /// The label of its button.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Connect => "Connect",
            Self::Stop => "Stop",
            Self::Start => "Start",
            Self::Snapshot => "Snapshot",
            Self::Destroy => "Destroy",
        }
    }

    /// The word in its button's id.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Stop => "stop",
            Self::Start => "start",
            Self::Snapshot => "snapshot",
            Self::Destroy => "destroy",
        }
    }

    /// The action with this word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.word() == word)
    }

    /// The operation that it requests, if any.
    #[must_use]
    pub const fn operation(self) -> Option<Operation> {
        match self {
            Self::Connect => None,
            Self::Stop => Some(Operation::Pause),
            Self::Start => Some(Operation::Resume),
            Self::Snapshot => Some(Operation::Snapshot),
            Self::Destroy => Some(Operation::Destroy),
        }
    }
}

fn action_of(want: Operation) -> Option<SandboxAction> {
    let mut all = SandboxAction::ALL.into_iter();
    all.find(|action| action.operation() == Some(want))
}

/// One page of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxesPage {
    /// The sandboxes of the page.
    pub shown: Vec<Listed>,
    /// The page number, from 0.
    pub page: usize,
    /// Number of pages, at least one.
    pub pages: usize,
    /// Number of sandboxes on all pages.
    pub total: usize,
    /// The sandbox that the thread works in.
    pub here: Option<SandboxKey>,
    /// Where it was requested; the list's buttons connect this thread.
    pub thread: ThreadKey,
    /// It was requested in a thread, not in a channel.
    pub in_thread: bool,
    /// When this state was taken.
    pub now_ms: Ms,
}

/// Where a list is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListContext {
    /// Where it was requested.
    pub thread: ThreadKey,
    /// That is a thread, not only a channel.
    pub in_thread: bool,
    /// The sandbox that the thread works in.
    pub here: Option<SandboxKey>,
}

impl SandboxesPage {
    /// This page of the list, or the last page if there are fewer.
    #[must_use]
    pub fn of(mut all: Vec<Listed>, page: usize, place: ListContext, now_ms: Ms) -> Self {
        sort(&mut all);
        let total = all.len();
        let pages = total.div_ceil(PAGE_SANDBOXES).max(1);
        let page = page.min(pages - 1);
        let shown = all.into_iter().skip(page * PAGE_SANDBOXES);
        Self {
            shown: shown.take(PAGE_SANDBOXES).collect(),
            page,
            pages,
            total,
            here: place.here,
            thread: place.thread,
            in_thread: place.in_thread,
            now_ms,
        }
    }

    /// The heading of the list.
    #[must_use]
    pub fn heading(&self) -> String {
        match (self.total, self.pages) {
            (0, _) => format!(
                "No sandbox has a name here. `{}` in a thread gives its sandbox one, so that other threads can work in it.",
                self.thread.command(Command::Name)
            ),
            (1, _) => "One sandbox has a name here.".to_owned(),
            (n, 1) => format!("{n} sandboxes have a name here."),
            (n, pages) => {
                format!("{n} sandboxes have a name here. Page {} of {pages}.", self.page + 1)
            }
        }
    }
}

/// Sorts sandboxes in use, then recently used ones, to the top.
pub fn sort(all: &mut [Listed]) {
    all.sort_by(|a, b| {
        let rank = |one: &Listed| (one.in_use.is_empty(), std::cmp::Reverse(one.last_used_ms));
        rank(a).cmp(&rank(b)).then_with(|| a.name.cmp(&b.name))
    });
}

/// What would be lost with a sandbox, line by line; `named` formats a thread for display.
#[must_use]
pub fn losses(sandbox: &Listed, now_ms: Ms, named: impl Fn(&ThreadKey) -> String) -> Vec<String> {
    /// Threads that are listed by name.
    const NAMED_MAX: usize = 5;
    let listed = |threads: &[ThreadKey]| {
        let shown: Vec<String> = threads.iter().take(NAMED_MAX).map(&named).collect();
        and_more(&shown, threads.len().saturating_sub(NAMED_MAX))
    };
    let mut lines = Vec::new();
    match sandbox.in_use.len() {
        0 => {}
        1 => lines.push(format!(
            "The task that runs in it will be stopped: {}.",
            listed(&sandbox.in_use)
        )),
        n => lines.push(format!(
            "The {n} tasks that run in it will be stopped: {}.",
            listed(&sandbox.in_use)
        )),
    }
    match sandbox.threads.len() {
        0 => {}
        1 => lines.push(format!(
            "One thread works in it and will be notified: {}.",
            listed(&sandbox.threads)
        )),
        n => lines.push(format!(
            "{n} threads work in it and will be notified: {}.",
            listed(&sandbox.threads)
        )),
    }
    if let Some(agent) = &sandbox.agent {
        let whose = if agent.has_thread() {
            format!("the agent of {}", named(agent.thread()))
        } else {
            "the agent of another sandbox".to_owned()
        };
        lines.push(format!("It holds the code that {whose} works on."));
    }
    lines.push(
        "Everything in it that was not pushed will be lost, and its name becomes free.".to_owned(),
    );
    if let Some(newest) = sandbox.snapshots.last() {
        let ago = span(now_ms.saturating_sub(newest.at_ms));
        lines.push(match sandbox.snapshots.len() {
            1 => format!("Its snapshot from {ago} ago is kept."),
            n => format!("Its {n} snapshots are kept; the newest is {ago} old."),
        });
    }
    lines
}

/// What happens next after an operation was requested, worded for the requester.
#[must_use]
pub fn asked_for(sandbox: &Listed, want: Operation, thread: &ThreadKey) -> String {
    let list = thread.command(Command::List);
    let called = sandbox.called();
    let stopped = match sandbox.in_use.len() {
        0 => String::new(),
        1 => " The task that runs in it is being stopped.".to_owned(),
        n => format!(" The {n} tasks that run in it are being stopped."),
    };
    match want {
        Operation::Pause => format!(
            "Stopping {called} was requested.{stopped} Its files are kept, and the next message starts it again. {list} shows the result."
        ),
        Operation::Resume => {
            format!("Starting {called} was requested. {list} shows when it runs.")
        }
        Operation::Snapshot if sandbox.in_use.is_empty() => format!(
            "A snapshot of {called} was requested. No task starts in it meanwhile. {list} shows the result."
        ),
        Operation::Snapshot => format!(
            "A snapshot of {called} was requested. It is made when nobody works in it; if that takes too long, none is made. {list} shows the result."
        ),
        _ => format!(
            "Destroying {called} was requested.{stopped} Every thread that works in it is notified when it is gone."
        ),
    }
}

/// A choice typed beside a sandbox's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxOption {
    /// The provider of a new sandbox.
    Provider,
    /// The runtime mode of a new sandbox.
    Runtime,
    /// The snapshot to create a new sandbox from.
    Snapshot,
}

/// An invalid choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{shown:?} cannot be {what}")]
pub struct Unusable {
    shown: String,
    what: &'static str,
}

impl SandboxOption {
    /// The choice in its usable form.
    ///
    /// # Errors
    /// [`Unusable`], worded for the person.
    pub fn usable(self, typed: &str) -> Result<String, Unusable> {
        let typed = typed.trim();
        let of_name = |c: char| c.is_ascii_alphanumeric() || "-_.:/@".contains(c);
        let (usable, what) = match self {
            Self::Provider => (
                DefaultKind::Provider.usable(typed).ok(),
                "a provider: choose one that the list of sandboxes shows",
            ),
            Self::Runtime => (
                DefaultKind::Runtime.usable(typed).ok(),
                "a runtime: choose opencode, compat, native or outside",
            ),
            Self::Snapshot => (
                ((1..=SNAPSHOT_BYTES_MAX).contains(&typed.len()) && typed.chars().all(of_name))
                    .then(|| typed.to_owned()),
                "a snapshot: use its name at the provider",
            ),
        };
        usable.ok_or_else(|| Unusable { shown: shorten(&redact(&one_line(typed)), 60), what })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::records::sandbox::{InUse, SandboxSpec, Sharing, Tooling};

    fn thread(id: &str) -> ThreadKey {
        ThreadKey::discord("1", id).expect("a key")
    }

    fn record(name: &str, phase: Phase, last_activity_ms: Ms) -> SandboxRecord {
        SandboxRecord {
            phase,
            generation: 1,
            last_activity_ms,
            sharing: Sharing {
                name: Some(name.parse().expect("a name")),
                threads: [thread("2"), thread("3")].into(),
                ..Sharing::default()
            },
            ..SandboxRecord::default()
        }
    }

    fn busy(mut record: SandboxRecord) -> SandboxRecord {
        record.sharing.in_use.push(InUse {
            thread: thread("2"),
            turn: "t".into(),
            common: true,
            since_ms: 1,
            reserved: None,
            left: false,
        });
        record
    }

    fn listed(record: &SandboxRecord) -> Listed {
        Listed::of(&thread("2").sandbox(), record)
    }

    fn place() -> ListContext {
        ListContext { thread: thread("2"), in_thread: true, here: None }
    }

    #[test]
    fn sandbox_line_shows_its_facts() {
        let one = listed(&record("frontend", Phase::Paused, 60_000));
        assert_eq!(
            one.facts(120_000),
            ["default provider", "stopped", "used 1 min 0 s ago", "2 threads"]
        );
        let one = listed(&busy(SandboxRecord {
            spec: SandboxSpec {
                provider: Some("daytona".to_owned()),
                ..record("frontend", Phase::Active, 60_000).spec
            },
            ..record("frontend", Phase::Active, 60_000)
        }));
        assert_eq!(one.facts(120_000), ["daytona", "running", "one task works in it", "2 threads"]);
    }

    #[test]
    fn sandbox_line_names_newest_snapshot() {
        let kept = |name: &str, at_ms| KeptSnapshot {
            name: name.to_owned(),
            at_ms,
            by: crate::base::person::Person::default(),
            built: None,
        };
        let mut one = listed(&record("frontend", Phase::Active, 1));
        for (name, shown) in [("a-at1", "snapshot a-at1"), ("a-at2", "2 snapshots, newest a-at2")] {
            one.snapshots.push(kept(name, 1));
            assert_eq!(one.facts(1).last().map(String::as_str), Some(shown));
        }
    }

    #[test]
    fn only_possible_actions_are_offered() {
        use SandboxAction::{Connect, Destroy, Snapshot, Start, Stop};
        let offered = |phase, in_thread| listed(&record("a", phase, 1)).actions(in_thread);
        assert_eq!(offered(Phase::Active, true), [Connect, Stop, Snapshot, Destroy]);
        assert_eq!(offered(Phase::Paused, false), [Start, Snapshot, Destroy]);
        assert_eq!(offered(Phase::Destroyed, true), [Connect, Destroy]);
        let mut closing = listed(&record("a", Phase::Active, 1));
        closing.closing = true;
        assert_eq!(closing.actions(true), []);
    }

    #[test]
    fn tool_sandbox_line_names_its_agent() {
        let one = listed(&SandboxRecord {
            tooling: Tooling {
                agent: Some(thread("7").sandbox()),
                ..record("tools-1", Phase::Active, 1).tooling
            },
            sharing: Sharing {
                threads: BTreeSet::new(),
                ..record("tools-1", Phase::Active, 1).sharing
            },
            ..record("tools-1", Phase::Active, 1)
        });
        assert_eq!(one.facts(1).last().map(String::as_str), Some("for its agent only"));
        assert!(!one.actions(true).contains(&SandboxAction::Connect));
        let lost = losses(&one, 1, ToString::to_string);
        assert_eq!(lost[0], "It holds the code that the agent of discord:1:7 works on.");
    }

    #[test]
    fn page_number_is_clamped_to_last() {
        let all: Vec<Listed> =
            (0..11).map(|n| listed(&record(&format!("box-{n}"), Phase::Active, n))).collect();
        let page = SandboxesPage::of(all.clone(), 9, place(), 100);
        assert_eq!((page.page, page.pages, page.shown.len()), (2, 3, 1));
        assert_eq!(page.shown[0].called(), "box-0", "the longest unused comes last");
        assert_eq!(page.heading(), "11 sandboxes have a name here. Page 3 of 3.");
        assert_eq!(SandboxesPage::of(all, 0, place(), 100).shown.len(), PAGE_SANDBOXES);
        let none = SandboxesPage::of(Vec::new(), 3, place(), 100);
        assert!(none.heading().contains("/sandbox-name"), "{}", none.heading());
    }

    #[test]
    fn destroy_losses_are_listed() {
        let mut one = listed(&busy(record("frontend", Phase::Active, 1)));
        one.snapshots.push(KeptSnapshot {
            name: "s".to_owned(),
            at_ms: 1_000,
            by: crate::base::person::Person::default(),
            built: None,
        });
        assert_eq!(
            losses(&one, 61_000, ToString::to_string),
            [
                "The task that runs in it will be stopped: discord:1:2.",
                "2 threads work in it and will be notified: discord:1:2, discord:1:3.",
                "Everything in it that was not pushed will be lost, and its name becomes free.",
                "Its snapshot from 1 min 0 s ago is kept.",
            ]
        );
    }

    #[test]
    fn list_briefly_shows_last_operation() {
        let mut one = listed(&record("a", Phase::Active, 1));
        assert_eq!(one.last_result(1), None);
        one.operated = Some(Operated {
            id: "m".into(),
            want: Operation::Snapshot,
            at_ms: 1_000,
            trouble: Some("it was not\nmade".to_owned()),
        });
        let told = one.last_result(31_000);
        assert_eq!(told.as_deref(), Some("Snapshot: failed 30 s ago: it was not made"));
        assert_eq!(one.last_result(1_000 + RESULT_SHOWN_MS), None);
    }

    #[test]
    fn invalid_provider_or_snapshot_is_refused() {
        assert_eq!(SandboxOption::Provider.usable(" Daytona ").as_deref(), Ok("daytona"));
        assert_eq!(SandboxOption::Snapshot.usable("bobbin/a:1").as_deref(), Ok("bobbin/a:1"));
        let refused = SandboxOption::Provider.usable("a b").expect_err("a space");
        assert_eq!(
            refused.to_string(),
            "\"a b\" cannot be a provider: choose one that the list of sandboxes shows"
        );
        assert!(SandboxOption::Snapshot.usable("").is_err());
    }
}
