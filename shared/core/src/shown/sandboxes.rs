//! The named sandboxes of a tenant as people see them: a list, a page at a time, what can be done about each, and what
//! would be lost with one.
//!
//! Pure: records in, values and words out. The wire modules draw them; the command line and the page print them.

use serde::Serialize;

use crate::base::credentials::redact;
use crate::base::ids::{Ms, SandboxKey, SandboxName, ThreadKey};
use crate::records::message::Operation;
use crate::records::sandbox::{KeptSnapshot, Operated, Phase, SandboxRecord};
use crate::tenant::commands::Command;
use crate::tenant::glance::{Glance, used};
use crate::tenant::settings::Kind;
use crate::text::{one_line, shorten, span};

/// Sandboxes of one page in a chat: with four buttons each they fit into a message of either platform.
pub const PAGE_SANDBOXES: usize = 5;
/// Characters (UTF-16 units) of a provider or repository in a line.
const WORD_UNITS_MAX: usize = 80;
/// Characters (UTF-16 units) of what an operation came to grief of.
const TROUBLE_UNITS_MAX: usize = 160;
/// Bytes of the name of a snapshot.
const SNAPSHOT_BYTES_MAX: usize = 200;
/// For how long it is said what became of the last operation, in milliseconds.
const TOLD_MS: u64 = 60 * 60_000;

/// A sandbox as the list has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Which one it is.
    pub key: SandboxKey,
    /// What people call it; none for a thread's own.
    pub name: Option<SandboxName>,
    /// The provider that runs it; none: the stack's first.
    pub provider: Option<String>,
    /// Where it is in its life.
    pub phase: Phase,
    /// Which of the provider's sandboxes that it has had it is in now.
    pub generation: u32,
    /// The repository that it was made with.
    pub repo: Option<String>,
    /// When a turn last began or ended in it.
    pub last_used_ms: Ms,
    /// The sandbox whose agent works in it by tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<SandboxKey>,
    /// The threads that work in it.
    pub threads: Vec<ThreadKey>,
    /// The threads of which a turn works in it now.
    pub in_use: Vec<ThreadKey>,
    /// Turns that wait for the common checkout.
    pub waiting: usize,
    /// Its snapshots, newest last.
    pub snapshots: Vec<KeptSnapshot>,
    /// That its provider makes no snapshots, and why, where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_snapshots: Option<String>,
    /// Somebody wants it destroyed: nothing begins in it any more.
    pub closing: bool,
    /// What was wanted of it last, and what came of it.
    #[serde(skip)]
    pub operated: Option<Operated>,
}

impl Listed {
    /// A sandbox, by its record.
    #[must_use]
    pub fn of(key: &SandboxKey, record: &SandboxRecord) -> Self {
        Self {
            key: key.clone(),
            name: record.name.clone(),
            provider: record.provider.clone(),
            phase: record.phase,
            generation: record.generation,
            repo: record.repo.clone(),
            last_used_ms: record.last_activity_ms,
            agent: record.agent.clone(),
            threads: record.threads.iter().cloned().collect(),
            in_use: record.in_use.iter().map(|one| one.thread.clone()).collect(),
            waiting: record.waiting.len(),
            snapshots: record.snapshots.clone(),
            no_snapshots: None,
            closing: record.closing.is_some(),
            operated: record.operated.last().cloned(),
        }
    }

    /// The same, where its provider makes no snapshots, and says why.
    #[must_use]
    pub fn without_snapshots(self, why: Option<String>) -> Self {
        Self { no_snapshots: why, ..self }
    }

    /// What people call it.
    #[must_use]
    pub fn called(&self) -> &str {
        self.name.as_ref().map_or("without a name", SandboxName::as_str)
    }

    /// How it stands, in a word or two.
    #[must_use]
    pub const fn state(&self) -> &'static str {
        match self.phase {
            _ if self.closing => "being destroyed",
            Phase::Creating => "being made",
            Phase::Active => "running",
            Phase::Pausing => "being stopped",
            Phase::Paused => "stopped",
            Phase::Resuming => "being started",
            Phase::Destroying => "being destroyed",
            Phase::Destroyed => "not made",
            Phase::Error => "could not be made",
        }
    }

    /// Its provider, as it is called where none was chosen too.
    #[must_use]
    pub fn provider(&self) -> String {
        let provider = self.provider.as_deref().unwrap_or("default provider");
        shorten(&one_line(provider), WORD_UNITS_MAX)
    }

    /// When it was used last.
    #[must_use]
    pub fn used(&self, now_ms: Ms) -> String {
        used(self.in_use.len(), self.last_used_ms, now_ms)
    }

    /// What is noted of it for suggestions.
    #[must_use]
    pub fn glance(&self) -> Glance {
        Glance {
            state: self.state().to_owned(),
            last_used_ms: self.last_used_ms,
            in_use: self.in_use.len(),
        }
    }

    /// Provider, state, last use, threads, and what else it has: the facts of its line, in this order.
    #[must_use]
    pub fn facts(&self, now_ms: Ms) -> Vec<String> {
        let mut facts = vec![self.provider(), self.state().to_owned(), self.used(now_ms)];
        facts.push(match self.threads.len() {
            0 if self.agent.is_some() => "for its agent alone".to_owned(),
            0 => "no threads".to_owned(),
            1 => "1 thread".to_owned(),
            n => format!("{n} threads"),
        });
        match self.waiting {
            0 => {}
            1 => facts.push("1 task waits".to_owned()),
            n => facts.push(format!("{n} tasks wait")),
        }
        // By its name a sandbox is made from it.
        if let Some(newest) = self.snapshots.last() {
            facts.push(match self.snapshots.len() {
                1 => format!("snapshot {}", newest.name),
                n => format!("{n} snapshots, newest {}", newest.name),
            });
        }
        facts.extend(self.no_snapshots.clone());
        facts
    }

    /// What became of the last operation, for a while after it.
    #[must_use]
    pub fn told(&self, now_ms: Ms) -> Option<String> {
        let last = self.operated.as_ref()?;
        let ago_ms = now_ms.saturating_sub(last.at_ms);
        let word = action_of(last.want)?.label();
        (ago_ms < TOLD_MS).then(|| match &last.trouble {
            None => format!("{word}: done {} ago", span(ago_ms)),
            Some(trouble) => {
                let trouble = shorten(&one_line(trouble), TROUBLE_UNITS_MAX);
                format!("{word}: not done, {} ago: {trouble}", span(ago_ms))
            }
        })
    }

    /// What can be done about it now; `in_thread` says whether there is a thread that could be connected to it.
    #[must_use]
    pub fn actions(&self, in_thread: bool) -> Vec<Action> {
        let mut actions = Vec::new();
        if in_thread && !self.closing && self.agent.is_none() {
            actions.push(Action::Connect);
        }
        let possible = [Action::Stop, Action::Start, Action::Snapshot, Action::Destroy];
        actions.extend(possible.into_iter().filter(|action| {
            let want = action.operation();
            want.is_some_and(|want| self.pointless(want).is_none())
        }));
        actions
    }

    /// Why an operation would come to nothing, as the record stands now.
    #[must_use]
    pub fn pointless(&self, want: Operation) -> Option<&str> {
        if self.closing {
            return Some("it is being destroyed");
        }
        if want == Operation::Snapshot && self.no_snapshots.is_some() {
            return self.no_snapshots.as_deref();
        }
        match (want, self.phase) {
            // What had only a name left gives that up.
            (Operation::Destroy, _) => None,
            (_, Phase::Destroyed | Phase::Error) => {
                Some("there is none at present; the next message of one of its threads makes one")
            }
            (_, Phase::Destroying) => Some("it is being destroyed"),
            (_, Phase::Creating) => Some("it is still being made"),
            (Operation::Pause, Phase::Paused) => Some("it is stopped already"),
            (Operation::Pause, Phase::Pausing) => Some("it is being stopped already"),
            (Operation::Resume, Phase::Active) => Some("it runs already"),
            (Operation::Resume, Phase::Resuming) => Some("it is being started already"),
            (Operation::Snapshot, Phase::Pausing | Phase::Resuming) => {
                Some("it is on its way up or down; try again in a minute")
            }
            _ => None,
        }
    }
}

/// Something that can be done about a sandbox of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The thread works in it from now on.
    Connect,
    /// Stop it, keep its disk.
    Stop,
    /// Bring it back.
    Start,
    /// Keep what its disk holds.
    Snapshot,
    /// Ask whether it is to be deleted.
    Destroy,
}

impl Action {
    /// All of them, in the order in which they are offered.
    pub const ALL: [Self; 5] =
        [Self::Connect, Self::Stop, Self::Start, Self::Snapshot, Self::Destroy];

    /// What its button says.
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

    /// The word of its button's name.
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

    /// Reads that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.word() == word)
    }

    /// The operation that it comes to.
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

fn action_of(want: Operation) -> Option<Action> {
    let mut all = Action::ALL.into_iter();
    all.find(|action| action.operation() == Some(want))
}

/// One page of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The sandboxes of the page.
    pub shown: Vec<Listed>,
    /// Which page it is, from 0.
    pub page: usize,
    /// How many there are, at least one.
    pub pages: usize,
    /// Sandboxes of all pages.
    pub total: usize,
    /// The sandbox that the thread works in.
    pub here: Option<SandboxKey>,
    /// Where it was asked; what is connected from the list is this thread.
    pub thread: ThreadKey,
    /// It was asked in a thread, and not in a channel.
    pub in_thread: bool,
    /// When the picture was taken.
    pub now_ms: Ms,
}

/// Where a list is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListContext {
    /// Where it was asked.
    pub thread: ThreadKey,
    /// It is a thread, and not only a channel.
    pub in_thread: bool,
    /// The sandbox that the thread works in.
    pub here: Option<SandboxKey>,
}

impl Page {
    /// This page of all of them; the last one where there are fewer.
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

    /// What stands above the list.
    #[must_use]
    pub fn heading(&self) -> String {
        match (self.total, self.pages) {
            (0, _) => format!(
                "There is no sandbox with a name here. `{}` in a thread gives its sandbox one, so that other threads can work in it.",
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

/// Sorts what is used now and what was used of late to the top.
pub fn sort(all: &mut [Listed]) {
    all.sort_by(|a, b| {
        let rank = |one: &Listed| (one.in_use.is_empty(), std::cmp::Reverse(one.last_used_ms));
        rank(a).cmp(&rank(b)).then_with(|| a.name.cmp(&b.name))
    });
}

/// What would be lost with a sandbox, line by line; `named` says how a thread is shown.
#[must_use]
pub fn losses(sandbox: &Listed, now_ms: Ms, named: impl Fn(&ThreadKey) -> String) -> Vec<String> {
    /// Threads that are named.
    const NAMED_MAX: usize = 5;
    let listed = |threads: &[ThreadKey]| {
        let shown: Vec<String> = threads.iter().take(NAMED_MAX).map(&named).collect();
        match threads.len().saturating_sub(NAMED_MAX) {
            0 => shown.join(", "),
            more => format!("{} and {more} more", shown.join(", ")),
        }
    };
    let mut lines = Vec::new();
    match sandbox.in_use.len() {
        0 => {}
        1 => {
            lines.push(format!("The task that runs in it is stopped: {}.", listed(&sandbox.in_use)))
        }
        n => lines.push(format!(
            "The {n} tasks that run in it are stopped: {}.",
            listed(&sandbox.in_use)
        )),
    }
    match sandbox.threads.len() {
        0 => {}
        1 => {
            lines.push(format!("One thread works in it: {}. It is told.", listed(&sandbox.threads)))
        }
        n => lines
            .push(format!("{n} threads work in it: {}. They are told.", listed(&sandbox.threads))),
    }
    if let Some(agent) = &sandbox.agent {
        let whose = if agent.has_thread() {
            format!("the agent of {}", named(agent.thread()))
        } else {
            "the agent of another sandbox".to_owned()
        };
        lines.push(format!("It holds the code that {whose} works on."));
    }
    lines.push("What is in it and was not pushed is lost, and its name is free again.".to_owned());
    if let Some(newest) = sandbox.snapshots.last() {
        let ago = span(now_ms.saturating_sub(newest.at_ms));
        lines.push(match sandbox.snapshots.len() {
            1 => format!("Its snapshot of {ago} ago stays."),
            n => format!("Its {n} snapshots stay; the newest is {ago} old."),
        });
    }
    lines
}

/// What happens next to an operation that has been asked for, in words for who asked.
#[must_use]
pub fn asked_for(sandbox: &Listed, want: Operation, thread: &ThreadKey) -> String {
    let list = thread.command(Command::List);
    let called = sandbox.called();
    let stopped = match sandbox.in_use.len() {
        0 => String::new(),
        1 => " The task that runs in it was told to end.".to_owned(),
        n => format!(" The {n} tasks that run in it were told to end."),
    };
    match want {
        Operation::Pause => format!(
            "Stopping {called} has been asked for.{stopped} Its files are kept, and the next message starts it again. {list} shows what came of it."
        ),
        Operation::Resume => {
            format!("Starting {called} has been asked for. {list} shows when it runs.")
        }
        Operation::Snapshot if sandbox.in_use.is_empty() => format!(
            "A snapshot of {called} has been asked for. Nothing begins in it meanwhile. {list} shows what came of it."
        ),
        Operation::Snapshot => format!(
            "A snapshot of {called} has been asked for. It is made when nobody works in it; if that takes too long, none is made. {list} shows what came of it."
        ),
        _ => format!(
            "Destroying {called} has been asked for.{stopped} Every thread that works in it is told when it is gone."
        ),
    }
}

/// A choice that somebody typed beside a sandbox's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxOption {
    /// The provider of a new sandbox.
    Provider,
    /// How agents are run in a new sandbox.
    Runtime,
    /// The snapshot that a new sandbox begins with.
    Snapshot,
}

/// A choice that cannot be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{shown:?} cannot be {what}")]
pub struct Unusable {
    shown: String,
    what: &'static str,
}

impl SandboxOption {
    /// The choice in the form in which it can be used.
    ///
    /// # Errors
    /// [`Unusable`], in words for the person.
    pub fn usable(self, typed: &str) -> Result<String, Unusable> {
        let typed = typed.trim();
        let of_name = |c: char| c.is_ascii_alphanumeric() || "-_.:/@".contains(c);
        let (usable, what) = match self {
            Self::Provider => (
                Kind::Provider.usable(typed).ok(),
                "a provider: take one that stands beside a sandbox in the list of them",
            ),
            Self::Runtime => (
                Kind::Runtime.usable(typed).ok(),
                "a way to run agents: there are opencode, compat, native and outside",
            ),
            Self::Snapshot => (
                ((1..=SNAPSHOT_BYTES_MAX).contains(&typed.len()) && typed.chars().all(of_name))
                    .then(|| typed.to_owned()),
                "a snapshot: take a name as the provider shows it",
            ),
        };
        usable.ok_or_else(|| Unusable { shown: shorten(&redact(&one_line(typed)), 60), what })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::records::sandbox::InUse;

    fn thread(id: &str) -> ThreadKey {
        ThreadKey::discord("1", id).expect("a key")
    }

    fn record(name: &str, phase: Phase, last_activity_ms: Ms) -> SandboxRecord {
        SandboxRecord {
            name: Some(name.parse().expect("a name")),
            phase,
            generation: 1,
            threads: [thread("2"), thread("3")].into(),
            last_activity_ms,
            ..SandboxRecord::default()
        }
    }

    fn busy(mut record: SandboxRecord) -> SandboxRecord {
        record.in_use.push(InUse {
            thread: thread("2"),
            turn: "t".into(),
            common: true,
            since_ms: 1,
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
            provider: Some("daytona".to_owned()),
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
        };
        let mut one = listed(&record("frontend", Phase::Active, 1));
        for (name, shown) in [("a-at1", "snapshot a-at1"), ("a-at2", "2 snapshots, newest a-at2")] {
            one.snapshots.push(kept(name, 1));
            assert_eq!(one.facts(1).last().map(String::as_str), Some(shown));
        }
    }

    #[test]
    fn only_possible_actions_are_offered() {
        use Action::{Connect, Destroy, Snapshot, Start, Stop};
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
            agent: Some(thread("7").sandbox()),
            threads: BTreeSet::new(),
            ..record("tools-1", Phase::Active, 1)
        });
        assert_eq!(one.facts(1).last().map(String::as_str), Some("for its agent alone"));
        assert!(!one.actions(true).contains(&Action::Connect));
        let lost = losses(&one, 1, ToString::to_string);
        assert_eq!(lost[0], "It holds the code that the agent of discord:1:7 works on.");
    }

    #[test]
    fn page_number_is_clamped_to_last() {
        let all: Vec<Listed> =
            (0..11).map(|n| listed(&record(&format!("box-{n}"), Phase::Active, n))).collect();
        let page = Page::of(all.clone(), 9, place(), 100);
        assert_eq!((page.page, page.pages, page.shown.len()), (2, 3, 1));
        assert_eq!(page.shown[0].called(), "box-0", "the longest unused comes last");
        assert_eq!(page.heading(), "11 sandboxes have a name here. Page 3 of 3.");
        assert_eq!(Page::of(all, 0, place(), 100).shown.len(), PAGE_SANDBOXES);
        let none = Page::of(Vec::new(), 3, place(), 100);
        assert!(none.heading().contains("/sandbox-name"), "{}", none.heading());
    }

    #[test]
    fn destroy_losses_are_listed() {
        let mut one = listed(&busy(record("frontend", Phase::Active, 1)));
        one.snapshots.push(KeptSnapshot {
            name: "s".to_owned(),
            at_ms: 1_000,
            by: crate::base::person::Person::default(),
        });
        assert_eq!(
            losses(&one, 61_000, ToString::to_string),
            [
                "The task that runs in it is stopped: discord:1:2.",
                "2 threads work in it: discord:1:2, discord:1:3. They are told.",
                "What is in it and was not pushed is lost, and its name is free again.",
                "Its snapshot of 1 min 0 s ago stays.",
            ]
        );
    }

    #[test]
    fn list_briefly_shows_last_operation() {
        let mut one = listed(&record("a", Phase::Active, 1));
        assert_eq!(one.told(1), None);
        one.operated = Some(Operated {
            id: "m".into(),
            want: Operation::Snapshot,
            at_ms: 1_000,
            trouble: Some("it was not\nmade".to_owned()),
        });
        let told = one.told(31_000);
        assert_eq!(told.as_deref(), Some("Snapshot: not done, 30 s ago: it was not made"));
        assert_eq!(one.told(1_000 + TOLD_MS), None);
    }

    #[test]
    fn invalid_provider_or_snapshot_is_refused() {
        assert_eq!(SandboxOption::Provider.usable(" Daytona ").as_deref(), Ok("daytona"));
        assert_eq!(SandboxOption::Snapshot.usable("bobbin/a:1").as_deref(), Ok("bobbin/a:1"));
        let refused = SandboxOption::Provider.usable("a b").expect_err("a space");
        assert_eq!(
            refused.to_string(),
            "\"a b\" cannot be a provider: take one that stands beside a sandbox in the list of them"
        );
        assert!(SandboxOption::Snapshot.usable("").is_err());
    }
}
