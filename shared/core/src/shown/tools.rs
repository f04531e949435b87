//! What a call of a sandbox's tools meets, as that one's record stands, and what it has asked for in the sandbox's own group.
//!
//! Who serves the tools makes, starts and deletes nothing: it wishes, as who runs the stack would.

use crate::base::ids::{Ms, SandboxKey, TurnId};
use crate::records::message::{Message, Operation, Work};
use crate::records::outside;
use crate::records::sandbox::{Phase, SandboxRecord};

/// One wish to have it back, or made, is sent in so many milliseconds, however many calls want it.
pub const WISH_MS: u64 = 30_000;
/// Calls with one bearer that go on at once: each holds an execution of the account while it waits.
pub const CALLS_MAX: u8 = 16;
/// A call that never says that it is over counts for so long: no function runs for longer.
pub const CALL_MS_MAX: u64 = 15 * 60_000;
/// A sandbox that is used is said to be after this part of the time that it may be idle.
const USE_SHARE: u64 = 4;

/// Where tools work, by the records.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// The sandbox.
    pub key: &'a SandboxKey,
    /// Its record.
    pub record: &'a SandboxRecord,
    /// The sandbox whose agent it is for, where there is one: then it is made, and made anew, by itself.
    pub agent: Option<(&'a SandboxKey, &'a SandboxRecord)>,
}

/// How a sandbox stands for whoever wants its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It should run: the provider says whether it does.
    Up,
    /// It is stopped, or on its way up or down.
    Stopped,
    /// Its generation is being made.
    BeingMade,
    /// It is not there for long, or not any more: how.
    Gone(&'static str),
}

impl Site<'_> {
    /// How it stands.
    #[must_use]
    pub const fn standing(&self) -> Standing {
        if self.record.closing.is_some() {
            return Standing::Gone("is being deleted, as somebody wants");
        }
        match self.record.phase {
            Phase::Active => Standing::Up,
            Phase::Paused | Phase::Pausing | Phase::Resuming => Standing::Stopped,
            Phase::Creating => Standing::BeingMade,
            Phase::Destroying => Standing::Gone("is being deleted"),
            Phase::Destroyed | Phase::Error => Standing::Gone("is gone, with its files"),
        }
    }

    /// What an agent needs that has come and has not called a tool yet.
    #[must_use]
    pub fn expected(&self, now_ms: Ms) -> Option<Message> {
        self.agent?;
        match self.record.phase {
            Phase::Destroyed | Phase::Error => self.made(now_ms),
            Phase::Paused => Some(self.brought_back(now_ms)),
            _ => None,
        }
    }

    /// The wish that it is made, for an agent whose sandbox is there.
    #[must_use]
    pub fn made(&self, now_ms: Ms) -> Option<Message> {
        let agent = self.agent.filter(|(_, agent)| outside::is_wanted_by(agent))?;
        Some(outside::made(agent, Some(self.record), now_ms, WISH_MS))
    }

    /// The wish that it runs.
    #[must_use]
    pub fn brought_back(&self, now_ms: Ms) -> Message {
        self.running(now_ms, WISH_MS)
    }

    /// The word that it is used, now and then: else it would be stopped under whoever uses its tools.
    #[must_use]
    pub fn used(&self, now_ms: Ms, idle_pause_ms: u64) -> Option<Message> {
        let every_ms = idle_pause_ms / USE_SHARE;
        let since_ms = now_ms.saturating_sub(self.record.last_activity_ms);
        (since_ms >= every_ms).then(|| self.running(now_ms, every_ms))
    }

    /// Wants it to run, once within a time.
    fn running(&self, now_ms: Ms, every_ms: u64) -> Message {
        let group = self.key.group();
        let turn = now_ms / every_ms.max(1);
        Message {
            id: TurnId::from(format!("tools-{}-{every_ms}-{turn}", group.short_hash())),
            thread: group,
            accepted_at_ms: now_ms,
            work: Work::Operate { want: Operation::Resume, by: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::ThreadKey;
    use crate::records::sandbox::Tools;

    fn agent(phase: Phase) -> (SandboxKey, SandboxRecord) {
        let key = ThreadKey::discord("1", "2").expect("ids").sandbox();
        let record = SandboxRecord {
            phase,
            runtime: Some("outside".to_owned()),
            generation: 1,
            ..SandboxRecord::new(0)
        };
        (key, record)
    }

    fn wish((agent, of): (&SandboxKey, &SandboxRecord), phase: Phase) -> Option<Message> {
        let key = outside::tools_of(agent);
        let record = SandboxRecord { phase, ..SandboxRecord::new(0) };
        let site = Site { key: &key, record: &record, agent: Some((agent, of)) };
        site.expected(1)
    }

    #[test]
    fn tool_sandbox_is_created_or_resumed() {
        let (key, record) = agent(Phase::Creating);
        let work = |phase| wish((&key, &record), phase).map(|message| message.work);
        assert!(matches!(work(Phase::Destroyed), Some(Work::Create(_))));
        let resume = Work::Operate { want: Operation::Resume, by: None };
        assert_eq!(work(Phase::Paused), Some(resume));
        assert_eq!(work(Phase::Active), None);
    }

    #[test]
    fn ending_agent_gets_no_tool_sandbox() {
        for phase in [Phase::Destroying, Phase::Destroyed, Phase::Error] {
            let (key, record) = agent(phase);
            assert_eq!(wish((&key, &record), Phase::Destroyed), None, "{phase:?}");
        }
        let (key, mut record) = agent(Phase::Active);
        let (since, ends_with) = (1, Some(1));
        record.tools = Some(Tools { since, ends_with });
        assert_eq!(wish((&key, &record), Phase::Destroyed), None);
    }
}
