//! A thread's sandboxes at the provider, and the servers in them.

use bobbin_core::event::{Event, NotCloned};
use bobbin_core::failure::Failure;
use bobbin_core::ids::Ms;
use bobbin_core::sandbox::{Phase, SandboxState};

use super::SimThread;
use crate::promises::Fact;
use crate::sim::agent::Agent;
use crate::sim::plan::Late;
use crate::sim::sandbox::{Sandbox, down};

impl SimThread {
    pub fn observed(&self, generation: u32, now_ms: Ms) -> Event {
        Event::Observed(match self.sandboxes.get(&generation) {
            None => SandboxState::Gone,
            Some(sandbox) if sandbox.broken => SandboxState::Broken {
                reason: "no capacity".to_owned(),
                recoverable: false,
            },
            Some(sandbox) if sandbox.ready_ms > now_ms => SandboxState::Provisioning,
            Some(sandbox) if sandbox.stopped => SandboxState::Stopped,
            Some(_) => SandboxState::Running,
        })
    }

    pub fn create(&mut self, generation: u32, now_ms: Ms, takes_ms: u64, broken: bool) {
        let ready_ms = now_ms + takes_ms;
        self.sandboxes.entry(generation).or_insert(Sandbox {
            created_ms: now_ms,
            ready_ms,
            stopped: false,
            broken,
            cloned: false,
            server: false,
            hangs: false,
            session: false,
            agent: Agent::default(),
        });
    }

    pub fn start(&mut self, generation: u32, now_ms: Ms, takes_ms: u64) {
        if let Some(sandbox) = self
            .sandboxes
            .get_mut(&generation)
            .filter(|sandbox| sandbox.stopped)
        {
            sandbox.stopped = false;
            sandbox.ready_ms = now_ms + takes_ms;
        }
    }

    /// A call reaches the provider. A stop or delete may hit what it must not.
    pub fn land(&mut self, call: Late, now_ms: Ms) {
        let session = self.record.as_ref();
        let hit = |generation: u32| {
            session.is_some_and(|session| {
                let under_way = session.turn.as_ref().filter(|turn| !turn.stage.is_ending());
                let wanted = matches!(
                    session.sandbox.phase,
                    Phase::Creating | Phase::Active | Phase::Resuming
                );
                session.sandbox.generation == generation && wanted && under_way.is_some()
            })
        };
        match call {
            Late::Create(generation) => self.create(generation, now_ms, 1_000, false),
            Late::Stop(generation) | Late::Delete(generation) if hit(generation) => {
                self.history.facts.push(Fact::Hit {
                    generation,
                    turn: 0,
                });
            }
            Late::Stop(generation) => self.park(generation, now_ms),
            Late::Delete(generation) => {
                self.deleted.insert(generation);
                self.sandboxes.remove(&generation);
            }
            Late::Abort(generation, messages) => {
                if let Some(sandbox) = self.sandboxes.get_mut(&generation) {
                    sandbox.agent.abort(&messages, now_ms);
                }
            }
        }
    }

    fn park(&mut self, generation: u32, now_ms: Ms) {
        if let Some(sandbox) = self.sandboxes.get_mut(&generation) {
            (sandbox.stopped, sandbox.server) = (true, false);
            sandbox.agent.dies(now_ms);
        }
    }

    pub fn lose(&mut self) {
        if let Some((generation, _)) = self.sandboxes.pop_last() {
            self.history.facts.push(Fact::Disturbed { generation });
        }
    }

    pub fn server_dies(&mut self, now_ms: Ms) {
        if let Some(mut sandbox) = self.sandboxes.last_entry() {
            let sandbox = sandbox.get_mut();
            sandbox.server = false;
            sandbox.agent.dies(now_ms);
        }
    }

    /// The way to its servers leads nowhere for a while, and what runs there goes on.
    pub fn cut(&mut self, until_ms: Ms) {
        self.cut_until_ms = until_ms;
    }

    /// A server is ended and started anew, also where nobody can hear from it.
    pub fn restart(&mut self, generation: u32, now_ms: Ms) {
        if let Some(sandbox) = self.sandboxes.get_mut(&generation) {
            sandbox.agent.dies(now_ms);
        }
    }

    /// For how long nobody reaches its servers any more.
    pub fn cut_ms(&self, now_ms: Ms) -> u64 {
        self.cut_until_ms.saturating_sub(now_ms)
    }

    pub fn hangs(&mut self) {
        if let Some(mut sandbox) = self.sandboxes.last_entry() {
            sandbox.get_mut().hangs = true;
        }
    }

    pub fn is_hanging(&self, generation: u32) -> bool {
        let sandbox = self.sandboxes.get(&generation);
        sandbox.is_some_and(|sandbox| sandbox.hangs && sandbox.server && !sandbox.stopped)
    }

    pub fn stops_by_itself(&mut self, now_ms: Ms) {
        if let Some(generation) = self
            .sandboxes
            .last_key_value()
            .map(|(generation, _)| *generation)
        {
            self.park(generation, now_ms);
            self.history.facts.push(Fact::Disturbed { generation });
        }
    }

    /// The sandbox's server, if it can be talked to.
    #[expect(
        clippy::result_large_err,
        reason = "the error is the event that is returned as it is"
    )]
    pub(super) fn server(&mut self, generation: u32, now_ms: Ms) -> Result<&mut Sandbox, Event> {
        let is_cut = self.cut_ms(now_ms) > 0;
        match self.sandboxes.get_mut(&generation) {
            None => Err(Event::Failed(Failure::SandboxGone)),
            Some(sandbox)
                if sandbox.server
                    && !is_cut
                    && !sandbox.hangs
                    && !sandbox.stopped
                    && sandbox.ready_ms <= now_ms
                    && !sandbox.broken =>
            {
                Ok(sandbox)
            }
            Some(_) => Err(down()),
        }
    }

    pub fn check_server(&mut self, generation: u32, now_ms: Ms) -> Event {
        match self.server(generation, now_ms) {
            Ok(_) => Event::Healthy,
            // A server that does not answer tells nothing of its sandbox.
            Err(_) => down(),
        }
    }

    /// The repository comes into the sandbox, or cannot be had.
    pub fn clone_into(&mut self, generation: u32, now_ms: Ms, missing: bool) -> Event {
        match self.sandboxes.get_mut(&generation) {
            None => Event::Failed(Failure::SandboxGone),
            Some(_) if missing => Event::NotCloned {
                why: NotCloned::NotFound,
            },
            Some(sandbox) if !sandbox.stopped && sandbox.ready_ms <= now_ms && !sandbox.broken => {
                sandbox.cloned = true;
                Event::Cloned
            }
            Some(_) => down(),
        }
    }

    pub fn ensure_server(&mut self, generation: u32, now_ms: Ms) -> Event {
        let bare = |sandbox: &Sandbox| !sandbox.cloned;
        if self.sandboxes.get(&generation).is_some_and(bare) {
            self.history.facts.push(Fact::Spent {
                what: "servers in a sandbox without its repository",
                times: 1,
                bound: 0,
            });
        }
        match self.sandboxes.get_mut(&generation) {
            None => Event::Failed(Failure::SandboxGone),
            Some(sandbox) if !sandbox.stopped && sandbox.ready_ms <= now_ms && !sandbox.broken => {
                // One that does not answer is ended and started anew.
                if std::mem::take(&mut sandbox.hangs) {
                    sandbox.agent.dies(now_ms);
                }
                sandbox.server = true;
                Event::Healthy
            }
            Some(_) => down(),
        }
    }
}
