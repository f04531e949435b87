//! The tool sandbox: the second sandbox, used when the agent runs outside of the code's sandbox.
//!
//! The agent's sandbox holds the model's key and the conversation; the tool sandbox holds the code. It has a name, a
//! record and a group like a shared sandbox, and the same life cycle. This module only says which sandbox it is, how it
//! is created, and that it ends with the agent's.

use crate::base::ids::{Ms, SandboxKey, SandboxName, TurnId};
use crate::records::control::Operation;
use crate::records::message::{Message, NewSandbox, Work};
use crate::records::sandbox::{Phase, SandboxRecord};
use crate::tenant::runtime_mode::RuntimeMode;

/// Prefix of its name; digits follow.
const NAME: &str = "tools-";

/// The tool sandbox of this agent's sandbox.
#[must_use]
pub fn tools_of(agent: &SandboxKey) -> SandboxKey {
    let asked_by = TurnId::from(format!("tools-of-{agent}"));
    SandboxKey::without_thread(&agent.tenant(), &asked_by)
}

/// Its name.
///
/// # Panics
/// Never: the digits are valid in a name.
#[must_use]
pub fn name_of(tools: &SandboxKey) -> SandboxName {
    let name = format!("{NAME}{}", tools.group().short_hash());
    name.parse().expect("letters, digits and a hyphen")
}

/// Whether a thread that works in `here` sees the sandbox with this name. Nobody named the tool sandbox or shared its
/// code: only the people who work with its agent see it.
#[must_use]
pub fn is_seen_from(here: Option<&SandboxKey>, (name, key): (&SandboxName, &SandboxKey)) -> bool {
    *name != name_of(key) || here.is_some_and(|here| tools_of(here) == *key)
}

/// The message that has it created, once per `every_ms`: with the code that `agent` was to have, or from its newest
/// snapshot.
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
        provider: agent.tooling.tools_provider.clone(),
        runtime: Some(RuntimeMode::Bare.name().to_owned()),
        // A snapshot contains it already.
        repo: agent.project.repo.clone().filter(|_| kept.is_none()),
        snapshot: kept.or_else(|| agent.spec.snapshot.clone()),
        agent: Some(key.clone()),
    };
    let generation = before.map_or(0, |before| before.generation);
    let turn = now_ms / every_ms.max(1);
    let id = format!("make-{}-{generation}-{turn}", tools.group().short_hash());
    message(&tools, TurnId::from(id), now_ms, Work::Create(new))
}

/// What the record of an agent's sandbox says to its tool sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct AgentSeen {
    /// The agent's sandbox needs a tool sandbox ([`is_wanted_by`]).
    pub wants: bool,
    /// When the newest turn at work there began; `None` if no turn works there.
    pub at_work_since_ms: Option<Ms>,
}

/// Reads that from the record; `None` means that there is no such sandbox.
#[must_use]
pub fn seen(agent: Option<&SandboxRecord>) -> AgentSeen {
    let Some(agent) = agent else {
        return AgentSeen::default();
    };
    let at_work = agent.sharing.in_use.iter().filter(|one| !one.left);
    AgentSeen {
        wants: is_wanted_by(agent),
        at_work_since_ms: at_work.map(|one| one.since_ms).max(),
    }
}

/// Whether an agent's sandbox, by its record, needs a tool sandbox. Not while it is being deleted: a sandbox requested
/// then would be created after the end.
#[must_use]
pub fn is_wanted_by(agent: &SandboxRecord) -> bool {
    let is_there = agent.is_alive() && agent.phase != Phase::Destroying;
    is_there && agent.works_elsewhere() && !agent.ends_tools()
}

/// The name of its newest snapshot.
#[must_use]
pub fn newest(record: &SandboxRecord) -> Option<String> {
    let kept = record.snapshots.iter().max_by_key(|one| one.at_ms);
    kept.map(|one| one.name.clone())
}

/// The message that deletes it with this generation of its agent's sandbox; `None` if there is nothing to delete.
#[must_use]
pub fn ended(
    (key, generation): (&SandboxKey, u32),
    record: &SandboxRecord,
    now_ms: Ms,
) -> Option<Message> {
    if matches!(record.phase, Phase::Destroyed) && record.sharing.name.is_none() {
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
    use crate::records::sandbox::{KeptSnapshot, SandboxProject, Tooling};

    fn agent() -> (SandboxKey, SandboxRecord) {
        let key = ThreadKey::discord("1", "2").expect("ids").sandbox();
        let record = SandboxRecord {
            generation: 3,
            project: SandboxProject {
                repo: Some("acme/api".to_owned()),
                ..SandboxProject::default()
            },
            tooling: Tooling { tools_provider: Some("vercel".to_owned()), ..Tooling::default() },
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
            built: None,
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
