//! The sandbox that an agent works in by tools, where it has its own for nothing but itself.
//!
//! The agent's sandbox holds the model's key and the conversation, the other one the code. The second one has a name, a record
//! and a group like one that people share, and goes through the same life; here is only which one it is, what it is made as,
//! and that it ends with the first.

use crate::base::ids::{Ms, SandboxKey, SandboxName, TurnId};
use crate::records::message::{Message, NewSandbox, Operation, Work};
use crate::records::sandbox::{Phase, SandboxRecord};
use crate::tenant::runtime_mode::RuntimeMode;

/// Before the digits of such a sandbox's name.
const NAME: &str = "tools-";

/// Which sandbox the agent of this one works in.
#[must_use]
pub fn tools_of(agent: &SandboxKey) -> SandboxKey {
    let asked_by = TurnId::from(format!("tools-of-{agent}"));
    SandboxKey::without_thread(&agent.tenant(), &asked_by)
}

/// What it is called.
///
/// # Panics
/// Never: the digits can stand in a name.
#[must_use]
pub fn name_of(tools: &SandboxKey) -> SandboxName {
    let name = format!("{NAME}{}", tools.group().short_hash());
    name.parse().expect("letters, digits and a hyphen")
}

/// Whether somebody whose thread works in `here` sees the sandbox of this name. Nobody gave the second one its name, nor its
/// code to others: it is the business of those alone who work with its agent.
#[must_use]
pub fn is_seen_from(here: Option<&SandboxKey>, (name, key): (&SandboxName, &SandboxKey)) -> bool {
    *name != name_of(key) || here.is_some_and(|here| tools_of(here) == *key)
}

/// The message that has it made, once within so many milliseconds: with the code that `agent` was to have, or with what the
/// newest snapshot of it kept.
#[must_use]
pub fn made(
    (key, agent): (&SandboxKey, &SandboxRecord),
    before: Option<&SandboxRecord>,
    now_ms: Ms,
    every_ms: u64,
) -> Message {
    let tools = tools_of(key);
    let kept = before.and_then(newest);
    let new = NewSandbox {
        name: name_of(&tools),
        provider: agent.tools_provider.clone(),
        runtime: Some(RuntimeMode::Bare.name().to_owned()),
        // A snapshot has it already.
        repo: agent.repo.clone().filter(|_| kept.is_none()),
        snapshot: kept.or_else(|| agent.snapshot.clone()),
        agent: Some(key.clone()),
    };
    let generation = before.map_or(0, |before| before.generation);
    let turn = now_ms / every_ms.max(1);
    let id = format!("make-{}-{generation}-{turn}", tools.group().short_hash());
    message(&tools, TurnId::from(id), now_ms, Work::Create(new))
}

/// What the record of an agent's sandbox says to the second one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct AgentSeen {
    /// It has use for a second one ([`is_wanted_by`]).
    pub wants: bool,
    /// A turn works there: the newest began then.
    pub at_work_since_ms: Option<Ms>,
}

/// Reads that from the record; none: there is no such sandbox.
#[must_use]
pub fn seen(agent: Option<&SandboxRecord>) -> AgentSeen {
    let Some(agent) = agent else {
        return AgentSeen::default();
    };
    let at_work = agent.in_use.iter().filter(|one| !one.left);
    AgentSeen {
        wants: is_wanted_by(agent),
        at_work_since_ms: at_work.map(|one| one.since_ms).max(),
    }
}

/// Whether an agent's sandbox, as its record stands, has use for one: not while it ends, because what is asked for then would
/// come after the end.
#[must_use]
pub fn is_wanted_by(agent: &SandboxRecord) -> bool {
    let is_there = agent.is_alive() && agent.phase != Phase::Destroying;
    is_there && agent.works_elsewhere() && !agent.ends_tools()
}

/// The name of the newest snapshot that was made of it.
#[must_use]
pub fn newest(record: &SandboxRecord) -> Option<String> {
    let kept = record.snapshots.iter().max_by_key(|one| one.at_ms);
    kept.map(|one| one.name.clone())
}

/// The message that has it deleted with this generation of the sandbox of its agent; none: there is nothing to delete.
#[must_use]
pub fn ended(
    (key, generation): (&SandboxKey, u32),
    record: &SandboxRecord,
    now_ms: Ms,
) -> Option<Message> {
    if matches!(record.phase, Phase::Destroyed) && record.name.is_none() {
        return None;
    }
    let tools = tools_of(key);
    let id = format!("end-{}-{generation}", tools.group().short_hash());
    let work = Work::Operate { want: Operation::Destroy, by: None };
    Some(message(&tools, TurnId::from(id), now_ms, work))
}

fn message(tools: &SandboxKey, id: TurnId, now_ms: Ms, work: Work) -> Message {
    Message { id, thread: tools.group(), accepted_at_ms: now_ms, work }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::ThreadKey;
    use crate::base::person::Person;
    use crate::records::sandbox::KeptSnapshot;

    fn agent() -> (SandboxKey, SandboxRecord) {
        let key = ThreadKey::discord("1", "2").expect("ids").sandbox();
        let record = SandboxRecord {
            repo: Some("acme/api".to_owned()),
            tools_provider: Some("vercel".to_owned()),
            generation: 3,
            ..SandboxRecord::new(0)
        };
        (key, record)
    }

    #[test]
    fn tool_sandbox_is_bare_and_named() {
        let (key, record) = agent();
        let tools = tools_of(&key);
        assert_eq!(tools.tenant(), key.tenant());
        assert!(!tools.has_thread() && tools != key);
        let message = made((&key, &record), None, 65_000, 30_000);
        assert_eq!(message.thread, tools.group());
        let Work::Create(new) = message.work else {
            panic!("it is made");
        };
        assert!(new.name.as_str().starts_with("tools-"), "{}", new.name);
        assert_eq!(
            (new.provider.as_deref(), new.runtime.as_deref(), new.repo.as_deref(), new.snapshot),
            (Some("vercel"), Some("bare"), Some("acme/api"), None)
        );
        let again = made((&key, &record), None, 89_999, 30_000);
        assert_eq!(again.id, message.id);
        assert_ne!(made((&key, &record), None, 90_000, 30_000).id, message.id);
    }

    #[test]
    fn only_agents_thread_sees_tool_sandbox() {
        let (agent, _) = agent();
        let tools = tools_of(&agent);
        let name = name_of(&tools);
        let other = ThreadKey::discord("1", "3").expect("ids").sandbox();
        for (here, seen) in [(Some(&agent), true), (Some(&other), false), (None, false)] {
            assert_eq!(is_seen_from(here, (&name, &tools)), seen, "{here:?}");
            assert!(is_seen_from(here, (&name, &other)), "a name that somebody gave");
        }
    }

    #[test]
    fn recreated_tool_sandbox_uses_newest_snapshot() {
        let (key, record) = agent();
        let kept = |name: &str, at_ms| KeptSnapshot {
            name: name.to_owned(),
            at_ms,
            by: Person::default(),
        };
        let before = SandboxRecord {
            snapshots: vec![kept("newest", 2), kept("older", 1)],
            ..SandboxRecord::new(0)
        };
        let message = made((&key, &record), Some(&before), 0, 30_000);
        let Work::Create(new) = message.work else {
            panic!("it is made");
        };
        assert_eq!((new.snapshot.as_deref(), new.repo), (Some("newest"), None));
    }

    #[test]
    fn tool_sandbox_ends_once_per_generation() {
        let (key, _) = agent();
        let mut tools = SandboxRecord::new(0);
        assert_eq!(ended((&key, 3), &tools, 1), None);
        tools.phase = Phase::Paused;
        let ids = [3, 4].map(|generation| ended((&key, generation), &tools, 1).map(|it| it.id));
        assert!(ids[0].is_some() && ids[0] != ids[1], "{ids:?}");
        assert_eq!(ended((&key, 3), &tools, 9).map(|it| it.id), ids[0]);
    }
}
