//! What effects do.

use bobbin_core::effect::{AgentEffect, ChatEffect, Effect, Follow, SandboxEffect, Sending};
use bobbin_core::event::Event;
use bobbin_core::failure::Failure;
use bobbin_core::settings::AgentOptions;

use super::Worker;
use crate::sim::plan::Late;

/// How long a caller waits that sets no bound of its own.
const REQUEST_MS: u64 = 15_000;
/// Between two looks at a run.
const LOOK_MS: u64 = 5_000;

impl Worker {
    pub(super) async fn done(&self, effect: &Effect) -> Event {
        if let Effect::Agent(AgentEffect::Follow(follow)) = effect {
            return self.follow(follow).await;
        }
        if let Effect::Sandbox(SandboxEffect::Observe { after_ms, .. }) = effect
            && *after_ms > 0
        {
            self.world.pause(*after_ms).await;
        }
        // Who does not get through finds out after a while; who waits for a server waits for it within its bound.
        let cut_ms = {
            let inner = self.world.lock();
            inner.places[self.place].cut_ms(inner.now_ms)
        };
        match effect {
            Effect::Sandbox(SandboxEffect::EnsureServer {
                generation,
                restart,
                within_ms,
                ..
            }) => {
                if *restart {
                    let mut inner = self.world.lock();
                    let now_ms = inner.now_ms;
                    inner.places[self.place].restart(*generation, now_ms);
                }
                self.world.pause(cut_ms.min(*within_ms)).await;
                if cut_ms > *within_ms {
                    return Event::Failed(Failure::ResumeFailed {
                        seen: "not healthy in time".to_owned(),
                    });
                }
            }
            Effect::Agent(
                AgentEffect::CheckServer { .. }
                | AgentEffect::FindAgentSession { .. }
                | AgentEffect::FindPrompt { .. }
                | AgentEffect::SendPrompt { .. }
                | AgentEffect::Abort { .. }
                | AgentEffect::EndRun(_),
            ) => self.world.pause(cut_ms.min(REQUEST_MS)).await,
            _ => {}
        }
        // A server that hangs holds its caller for as long as that waits.
        if let Effect::Agent(AgentEffect::SendPrompt {
            generation,
            sending: Sending::First { within_ms },
            ..
        }) = effect
            && self.world.lock().places[self.place].is_hanging(*generation)
        {
            self.world.pause(within_ms.unwrap_or(REQUEST_MS)).await;
        }
        let visible_ms = self
            .world
            .lock()
            .visible_until_ms(self.token, &self.world.limits);
        let mut guard = self.world.lock();
        let inner = &mut *guard;
        let (now_ms, troubled) = (inner.now_ms, inner.troubled());
        let tenant = inner.places[self.place].thread.tenant();
        let older_than = match effect {
            Effect::Sandbox(SandboxEffect::Count { older_than }) => *older_than,
            _ => None,
        };
        let own = older_than.map(|generation| inner.made(self.place, generation));
        let listed = (0..inner.places.len())
            .filter(|at| inner.places[*at].thread.tenant() == tenant)
            .flat_map(|at| inner.places[at].sandboxes.keys().map(move |one| (at, *one)));
        let listed = listed.map(|(at, generation)| inner.made(at, generation));
        let counted = match own {
            Some(_) if inner.counts_once => 0,
            Some(own) => listed.filter(|made| *made < own).count(),
            None => listed.count(),
        };
        let (dice, here) = (&mut inner.dice, &mut inner.places[self.place]);
        match effect {
            Effect::Sandbox(SandboxEffect::Count { .. }) => {
                Event::Counted(u32::try_from(counted).unwrap_or(u32::MAX))
            }
            Effect::Recall { turns } => Event::Recalled(here.recalled(turns)),
            Effect::Wake { at_ms } => {
                here.wake_ms = Some(*at_ms);
                Event::Woken
            }
            Effect::Sandbox(SandboxEffect::Create { generation }) => {
                let takes_ms = if troubled && dice.falls(30) {
                    400_000
                } else {
                    dice.below(5_000)
                };
                here.create(*generation, now_ms, takes_ms, troubled && dice.falls(20));
                here.observed(*generation, now_ms)
            }
            Effect::Sandbox(
                SandboxEffect::Observe {
                    watch: Some(turn), ..
                }
                | SandboxEffect::Clone {
                    watch: Some(turn), ..
                }
                | SandboxEffect::EnsureServer {
                    watch: Some(turn), ..
                },
            ) if here.flags.cancelled.contains_key(turn) => {
                let by = here.flags.cancelled[turn].clone();
                Event::CancelSeen { by }
            }
            Effect::Sandbox(SandboxEffect::Observe { generation, .. }) => {
                here.observed(*generation, now_ms)
            }
            Effect::Sandbox(SandboxEffect::Start { generation }) => {
                let takes_ms = dice.below(5_000);
                here.start(*generation, now_ms, takes_ms);
                here.observed(*generation, now_ms)
            }
            Effect::Sandbox(SandboxEffect::Stop { generation }) => {
                // As the real one does: what cannot be recalled needs time in which nobody else acts.
                if visible_ms <= now_ms + self.world.limits.lifecycle_call_ms {
                    return Event::Failed(Failure::Wait {
                        after_ms: 0,
                        seen: "too little time is left for a stop".to_owned(),
                    });
                }
                here.land(Late::Stop(*generation), now_ms);
                here.observed(*generation, now_ms)
            }
            Effect::Sandbox(SandboxEffect::Delete { generation }) => {
                here.land(Late::Delete(*generation), now_ms);
                here.observed(*generation, now_ms)
            }
            Effect::Agent(AgentEffect::CheckServer { generation, .. }) => {
                here.check_server(*generation, now_ms)
            }
            Effect::Sandbox(SandboxEffect::Clone { generation, .. }) => {
                here.clone_into(*generation, now_ms, troubled && dice.falls(30))
            }
            Effect::ListOptions { .. } => Event::OptionsListed(AgentOptions {
                models: vec!["m".to_owned()],
                agents: vec!["build".to_owned()],
            }),
            Effect::Sandbox(SandboxEffect::EnsureServer { generation, .. }) => {
                here.ensure_server(*generation, now_ms)
            }
            Effect::Agent(AgentEffect::FindAgentSession { generation, .. }) => {
                here.find_session(*generation, now_ms)
            }
            Effect::Agent(AgentEffect::Attach { .. }) => Event::Attached {
                note: String::new(),
                missed: Vec::new(),
                images: Vec::new(),
            },
            Effect::Agent(AgentEffect::SendPrompt {
                generation,
                ids,
                text,
                sending,
                ..
            }) => {
                if let Sending::First { within_ms: Some(_) } = sending {
                    inner.met.insert("sent at once");
                }
                // What the thread was about comes before the person's words.
                let words = text.rsplit("\n\n").next().unwrap_or_default();
                if words.len() < text.len() {
                    inner.met.insert("digest");
                }
                let turn = words.split_whitespace().next().unwrap_or_default();
                here.send_prompt(
                    *generation,
                    (ids, *sending),
                    &turn.into(),
                    now_ms,
                    dice,
                    troubled,
                )
            }
            Effect::Agent(AgentEffect::FindPrompt {
                generation,
                message,
                ..
            }) => here.find_prompt(*generation, message, now_ms),
            Effect::Agent(AgentEffect::Abort {
                generation,
                messages,
                ..
            }) => here.abort(*generation, messages, Event::Aborted, now_ms),
            Effect::Agent(AgentEffect::EndRun(run)) => {
                inner.met.insert("run ended");
                here.abort(run.generation, &run.messages, Event::RunEnded, now_ms)
            }
            Effect::Agent(AgentEffect::Decline {
                generation, ask, ..
            }) => here.decline(*generation, ask, now_ms),
            Effect::Agent(AgentEffect::ReadChanges { generation, .. }) => {
                here.read_changes(*generation, now_ms)
            }
            Effect::Agent(AgentEffect::ListArtifacts { generation }) => {
                here.list_artifacts(*generation, now_ms)
            }
            Effect::Chat(ChatEffect::PostArtifact {
                generation,
                turn,
                index,
                file,
            }) => here.post_artifact(*generation, (turn, *index, file), now_ms),
            Effect::Chat(ChatEffect::Post {
                turn,
                kind,
                at,
                post,
            }) => here.post(turn, kind, at.as_ref(), post),
            Effect::Agent(AgentEffect::Follow(_)) => unreachable!("followed above"),
        }
    }

    async fn follow(&self, follow: &Follow) -> Event {
        loop {
            // Who follows tries a few times before it says that nobody is there.
            let cut_ms = {
                let mut inner = self.world.lock();
                let here = &inner.places[self.place];
                let cut_ms = here.cut_ms(inner.now_ms);
                // It is over with this worker when the call ends.
                if here.kills(follow.generation, &follow.message) {
                    inner.met.insert("killed");
                    inner.kill(self.token);
                    return Event::StillRunning;
                }
                cut_ms
            };
            if cut_ms > 0 {
                self.world.pause(cut_ms.min(REQUEST_MS)).await;
                return Event::Failed(Failure::SandboxDown {
                    seen: "connection reset".to_owned(),
                });
            }
            {
                let mut guard = self.world.lock();
                let inner = &mut *guard;
                if inner.now_ms + self.skew_ms >= follow.until_ms {
                    return Event::StillRunning;
                }
                let now_ms = inner.now_ms;
                if let Some(event) =
                    inner.places[self.place].follow(follow, now_ms, &mut inner.dice)
                {
                    return event;
                }
            }
            self.stand(LOOK_MS).await;
        }
    }

    /// Sends a lifecycle call on its way, to arrive within its bound. False: this effect is none.
    pub(super) fn late(&self, effect: &Effect) -> bool {
        let mut inner = self.world.lock();
        let limits = &self.world.limits;
        let left_ms = inner
            .visible_until_ms(self.token, limits)
            .saturating_sub(inner.now_ms);
        let after_ms = inner.dice.below(limits.lifecycle_call_ms);
        let call = match effect {
            Effect::Sandbox(SandboxEffect::Create { generation }) => Late::Create(*generation),
            Effect::Sandbox(SandboxEffect::Stop { generation })
                if left_ms > limits.lifecycle_call_ms =>
            {
                Late::Stop(*generation)
            }
            Effect::Sandbox(SandboxEffect::Delete { generation }) => Late::Delete(*generation),
            Effect::Agent(AgentEffect::Abort {
                generation,
                messages,
                ..
            }) => Late::Abort(*generation, messages.clone()),
            Effect::Agent(AgentEffect::EndRun(run)) => {
                Late::Abort(run.generation, run.messages.clone())
            }
            _ => return false,
        };
        let at_ms = inner.now_ms + after_ms;
        let place = self.place;
        inner.later.push((at_ms, place, call));
        true
    }
}
