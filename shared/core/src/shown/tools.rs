//! What a call of a sandbox's tools finds, by the sandbox's record, and the messages that it sends to the sandbox's own
//! group.
//!
//! The tools function creates, starts and deletes nothing: it sends requests, as the operator would.

use crate::base::ids::{Ms, SandboxKey, TurnId};
use crate::records::control::Operation;
use crate::records::message::{Message, Work};
use crate::records::sandbox::{Phase, SandboxRecord};
use crate::records::tool_sandbox;

/// Time within which at most one request to start or create it is sent, however many calls want it.
pub const WISH_MS: u64 = 30_000;
/// Concurrent calls with one bearer token: each holds one of the account's executions while it waits.
pub const CALLS_MAX: u8 = 16;
/// A call that never reports its end counts for this long: no function runs longer.
pub const CALL_MS_MAX: u64 = 15 * 60_000;
/// A sandbox in use is reported as used after this fraction of its allowed idle time.
const USE_SHARE: u64 = 4;

/// The sandbox in which tools work, by the records.
#[derive(Debug, Clone, Copy)]
pub struct ToolSandbox<'a> {
    /// The sandbox.
    pub key: &'a SandboxKey,
    /// Its record.
    pub record: &'a SandboxRecord,
    /// For a tool sandbox, the sandbox of its agent: then it is created, and created anew, automatically.
    pub agent: Option<(&'a SandboxKey, &'a SandboxRecord)>,
}

/// State of a sandbox, for a caller of its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxStanding {
    /// It should be running: the provider knows whether it is.
    Up,
    /// It is stopped, being started or being stopped.
    Stopped,
    /// Its generation is being created.
    BeingMade,
    /// It is gone, or soon will be; the text says how.
    Gone(&'static str),
}

impl ToolSandbox<'_> {
    /// Its state.
    #[must_use]
    pub const fn standing(&self) -> SandboxStanding {
        if self.record.sharing.closing.is_some() {
            return SandboxStanding::Gone("is being deleted on request");
        }
        match self.record.phase {
            Phase::Active => SandboxStanding::Up,
            Phase::Paused | Phase::Pausing | Phase::Resuming => SandboxStanding::Stopped,
            Phase::Creating => SandboxStanding::BeingMade,
            Phase::Destroying => SandboxStanding::Gone("is being deleted"),
            Phase::Destroyed | Phase::Error => SandboxStanding::Gone("is gone, with its files"),
        }
    }

    /// The message for an agent that has connected and has not called a tool yet.
    #[must_use]
    pub fn expected(&self, now_ms: Ms) -> Option<Message> {
        self.agent?;
        match self.record.phase {
            Phase::Destroyed | Phase::Error => self.made(now_ms),
            Phase::Paused => Some(self.brought_back(now_ms)),
            _ => None,
        }
    }

    /// The message that requests its creation, if the agent's sandbox still wants it.
    #[must_use]
    pub fn made(&self, now_ms: Ms) -> Option<Message> {
        let agent = self.agent.filter(|(_, agent)| tool_sandbox::is_wanted_by(agent))?;
        Some(tool_sandbox::made(agent, Some(self.record), now_ms, WISH_MS))
    }

    /// The message that requests its start.
    #[must_use]
    pub fn brought_back(&self, now_ms: Ms) -> Message {
        self.running(now_ms, WISH_MS)
    }

    /// The message that reports its use, sent now and then: otherwise it would be stopped while its tools are in use.
    #[must_use]
    pub fn used(&self, now_ms: Ms, idle_pause_ms: u64) -> Option<Message> {
        let every_ms = idle_pause_ms / USE_SHARE;
        let since_ms = now_ms.saturating_sub(self.record.last_activity_ms);
        (since_ms >= every_ms).then(|| self.running(now_ms, every_ms))
    }

    /// Requests that it runs, once per `every_ms`.
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
    use crate::records::sandbox::{SandboxSpec, Tools};

    fn agent(phase: Phase) -> (SandboxKey, SandboxRecord) {
        let key = ThreadKey::discord("1", "2").expect("ids").sandbox();
        let record = SandboxRecord {
            phase,
            generation: 1,
            spec: SandboxSpec { runtime: Some("outside".to_owned()), ..SandboxSpec::default() },
            ..SandboxRecord::new(0)
        };
        (key, record)
    }

    fn wish((agent, of): (&SandboxKey, &SandboxRecord), phase: Phase) -> Option<Message> {
        let key = tool_sandbox::tools_of(agent);
        let record = SandboxRecord { phase, ..SandboxRecord::new(0) };
        let site = ToolSandbox { key: &key, record: &record, agent: Some((agent, of)) };
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
        record.tooling.tools = Some(Tools { since, ends_with });
        assert_eq!(wish((&key, &record), Phase::Destroyed), None);
    }
}
