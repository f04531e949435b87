//! What effects do.

use bobbin_core::changes::Changes;
use bobbin_core::effect::{AgentEffect, ChatEffect, Effect, Follow, SandboxEffect, Sending};
use bobbin_core::event::Event;
use bobbin_core::failure::Failure;
use bobbin_core::message::{Message, Operation, Work};
use bobbin_core::outside;
use bobbin_core::parked::Seen;
use bobbin_core::sandbox::{SandboxRecord, SandboxState};
use bobbin_core::settings::AgentOptions;

use super::Worker;
use crate::home::Caller;
use crate::plan::Late;
use crate::sandbox::down;
use crate::state::Inner;
use crate::tools::Use;

/// How long a caller waits that sets no bound of its own.
const REQUEST_MS: u64 = 15_000;
/// A message that is on its way to the queue arrives within this time, or not at all.
const SEND_MS_MAX: u64 = 10_000;
/// While things go wrong one look of so many does not find its sandbox, by the millisecond in which it comes.
const LIES_EVERY: u64 = 20;
/// While things go wrong one new sandbox of so many never gets its secrets put in, by the millisecond in which that is seen.
const LEFT_EVERY: u64 = 15;
/// Between two looks at a run.
const LOOK_MS: u64 = 5_000;

impl Worker {
    pub(super) async fn done(&self, effect: &Effect) -> Event {
        if let Effect::Agent(AgentEffect::Follow(follow)) = effect {
            return self.follow(follow).await;
        }
        if let Effect::Agent(AgentEffect::Look(follow)) = effect {
            self.world.lock().met.insert("looked");
            return self.seen(follow).await.unwrap_or_else(still_running);
        }
        if let Effect::Sandbox(
            SandboxEffect::Observe { after_ms, .. }
            | SandboxEffect::Confirm { after_ms, .. }
            | SandboxEffect::Snapshot { after_ms, .. },
        ) = effect
            && *after_ms > 0
        {
            self.world.pause(*after_ms).await;
        }
        // Who does not get through finds out after a while; who waits for a server waits for it within its bound.
        let cut_ms = {
            let inner = self.world.lock();
            inner.places[self.at()].home.cut_ms(inner.now_ms)
        };
        match effect {
            Effect::Sandbox(SandboxEffect::EnsureServer {
                generation, restart, within_ms, ..
            }) => {
                if *restart {
                    let mut inner = self.world.lock();
                    let now_ms = inner.now_ms;
                    inner.places[self.at()].home.restart(*generation, now_ms);
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
            && self.world.lock().places[self.at()].home.is_hanging(*generation)
        {
            self.world.pause(within_ms.unwrap_or(REQUEST_MS)).await;
        }
        self.act(effect)
    }

    /// What it does, at once.
    fn act(&self, effect: &Effect) -> Event {
        let mut guard = self.world.lock();
        let inner = &mut *guard;
        match effect {
            Effect::Sandbox(SandboxEffect::Count { older_than }) => self.count(inner, *older_than),
            Effect::FindName { name } => {
                let key = (inner.places[self.place].thread.tenant(), name.clone());
                Event::NameFound(inner.names.get(&key).cloned())
            }
            Effect::Chat(ChatEffect::TellBeside { .. }) => {
                inner.met.insert("told beside");
                Event::Told { thread: inner.places[self.place].thread.clone() }
            }
            Effect::Chat(ChatEffect::Tell { thread, .. }) => {
                inner.met.insert("told");
                Event::Told { thread: thread.clone() }
            }
            Effect::Sandbox(
                effect
                @ (SandboxEffect::Stop { generation } | SandboxEffect::Delete { generation }),
            ) => {
                let visible_ms = inner.visible_until_ms(self.token, &self.world.limits);
                let stops = matches!(effect, SandboxEffect::Stop { .. });
                // As the real one does: what cannot be recalled needs time in which nobody else acts.
                if stops && visible_ms <= inner.now_ms + self.world.limits.lifecycle_call_ms {
                    return Event::Failed(Failure::Wait {
                        after_ms: 0,
                        seen: "too little time is left for a stop".to_owned(),
                    });
                }
                let call = if stops {
                    if self.work == Work::Sweep {
                        inner.stops_second(self.at(), *generation);
                    }
                    Late::Stop(*generation)
                } else {
                    self.delete(*generation)
                };
                inner.land((self.caller(), self.at()), call);
                inner.places[self.at()].home.observed(*generation, inner.now_ms)
            }
            Effect::Sandbox(effect) => self.act_on_sandbox(inner, effect),
            Effect::Agent(effect) => self.act_on_agent(inner, effect),
            Effect::Recall { turns } => Event::Recalled(inner.places[self.place].recalled(turns)),
            Effect::EndTools { generation } => {
                if let Some(message) = self.end_of_tools(inner, *generation) {
                    inner.met.insert("second ended");
                    inner.send(message);
                }
                Event::ToolsEnded
            }
            Effect::FindAgent { of } => {
                let agent = inner.place_of(of.thread());
                let mut seen = outside::seen(inner.places[agent].home.record.as_ref());
                if self.work == Work::Sweep {
                    let now_ms = inner.now_ms;
                    inner.places[self.at()].home.looked_ms = Some(now_ms);
                    if seen.at_work_since_ms.is_some() {
                        inner.met.insert("second in use");
                    }
                    seen.at_work_since_ms.take_if(|_| inner.pauses_used);
                    return Event::AgentFound(seen);
                }
                let met = if seen.wants { "second made" } else { "wished too late" };
                inner.met.insert(met);
                seen.wants |= inner.makes_unwanted;
                Event::AgentFound(seen)
            }
            Effect::Wake { at_ms } => {
                inner.wake_up_at(self.at(), *at_ms);
                Event::Woken
            }
            Effect::ListOptions { .. } => Event::OptionsListed(AgentOptions {
                models: vec!["m".to_owned()],
                agents: vec!["build".to_owned()],
            }),
            Effect::Chat(ChatEffect::PostArtifact { generation, turn, index, file }) => {
                let now_ms = inner.now_ms;
                inner.with(self.place, self.at(), |here, home, _| {
                    here.post_artifact(home, *generation, (turn, *index, file), now_ms)
                })
            }
            Effect::Chat(ChatEffect::Post { turn, kind, at, post }) => {
                inner.places[self.place].post(turn, kind, at.as_ref(), post)
            }
        }
    }

    /// The message that ends the second sandbox of the one that is worked on.
    fn end_of_tools(&self, inner: &mut Inner, generation: u32) -> Option<Message> {
        let (at, now_ms) = (self.at(), inner.now_ms);
        let second = inner.second_of(at);
        let record = inner.places[second].home.record.clone()?;
        outside::ended((&inner.key_of(at), generation), &record, now_ms)
    }

    /// Sandboxes of the tenant, or those that were made before this one.
    fn count(&self, inner: &Inner, older_than: Option<u32>) -> Event {
        let tenant = inner.places[self.place].thread.tenant();
        let own = older_than.map(|generation| inner.made(self.at(), generation));
        let listed = (0..inner.places.len())
            .filter(|at| inner.places[*at].thread.tenant() == tenant)
            .flat_map(|at| inner.places[at].home.sandboxes.keys().map(move |one| (at, *one)));
        let listed = listed.map(|(at, generation)| inner.made(at, generation));
        let counted = match own {
            Some(_) if inner.counts_once => 0,
            Some(own) => listed.filter(|made| *made < own).count(),
            None => listed.count(),
        };
        Event::Counted(u32::try_from(counted).unwrap_or(u32::MAX))
    }

    fn act_on_sandbox(&self, inner: &mut Inner, effect: &SandboxEffect) -> Event {
        let (now_ms, troubled) = (inner.now_ms, inner.troubled());
        let watched = match effect {
            SandboxEffect::Observe { watch, .. }
            | SandboxEffect::Clone { watch, .. }
            | SandboxEffect::EnsureServer { watch, .. } => watch.as_ref(),
            _ => None,
        };
        let flags = &inner.places[self.place].flags;
        if let Some(by) = watched.and_then(|turn| turn.cancelled_by(flags)) {
            return Event::CancelSeen { by: by.clone() };
        }
        match effect {
            SandboxEffect::Snapshot { .. } => inner.met.insert("snapshot made"),
            SandboxEffect::MakeWorkspace { .. } => inner.met.insert("workspace"),
            _ => false,
        };
        let event = inner.with(self.place, self.at(), |here, home, dice| match effect {
            SandboxEffect::Create { generation, .. } => {
                let takes_ms = if troubled && dice.falls(30) { 400_000 } else { dice.below(5_000) };
                home.create(*generation, now_ms, takes_ms, troubled && dice.falls(20));
                home.observed(*generation, now_ms)
            }
            SandboxEffect::Start { generation } => {
                let takes_ms = dice.below(5_000);
                home.start(*generation, now_ms, takes_ms);
                home.observed(*generation, now_ms)
            }
            SandboxEffect::Clone { generation, .. } => {
                home.clone_into(*generation, now_ms, troubled && dice.falls(30))
            }
            SandboxEffect::EnsureServer { generation, is_new, .. } => {
                match home.ensure_server(*generation, now_ms) {
                    // By the moment, so that the rest of a history stays what it is without this.
                    Event::Healthy if troubled && *is_new && now_ms.is_multiple_of(LEFT_EVERY) => {
                        Event::SecretsNotPutIn
                    }
                    seen => seen,
                }
            }
            SandboxEffect::MakeWorkspace { generation, .. } => {
                here.make_workspace(home, *generation)
            }
            SandboxEffect::Snapshot { generation, at_ms, .. } => {
                let takes_ms = dice.below(20_000);
                home.snapshot(*generation, *at_ms, (now_ms, takes_ms))
            }
            SandboxEffect::DeleteSnapshot { name } => {
                home.snapshots.remove(name);
                Event::SnapshotDeleted { name: name.clone() }
            }
            // One look may lie; the list does not.
            SandboxEffect::Observe { .. } if troubled && now_ms.is_multiple_of(LIES_EVERY) => {
                Event::Observed(SandboxState::Gone)
            }
            SandboxEffect::Observe { generation, .. }
            | SandboxEffect::Confirm { generation, .. }
            | SandboxEffect::Stop { generation }
            | SandboxEffect::Delete { generation } => home.observed(*generation, now_ms),
            SandboxEffect::Count { .. } => Event::Counted(0),
        });
        if event == Event::SecretsNotPutIn {
            inner.met.insert("without secrets");
        }
        if let (SandboxEffect::EnsureServer { .. }, Event::Healthy) = (effect, &event) {
            inner.tools(self.at(), Use::Comes, self.world.limits.idle_pause_ms);
        }
        event
    }

    fn act_on_agent(&self, inner: &mut Inner, effect: &AgentEffect) -> Event {
        let (now_ms, troubled) = (inner.now_ms, inner.troubled());
        match effect {
            AgentEffect::SendPrompt { text, sending, .. } => {
                if let Sending::First { within_ms: Some(_) } = sending {
                    inner.met.insert("sent at once");
                }
                if text.contains("\n\n") {
                    inner.met.insert("digest");
                }
            }
            AgentEffect::EndRun(_) => drop(inner.met.insert("run ended")),
            _ => {}
        }
        let (at, workspace) = self.at.lock().expect("nobody panics here").clone();
        let record = inner.places[at].home.record.as_ref();
        if let AgentEffect::ReadChanges { .. } | AgentEffect::ListArtifacts { .. } = effect
            && record.is_some_and(SandboxRecord::works_elsewhere)
        {
            match inner.is_left_outside(at) {
                Some(true) => {}
                Some(false) => return down(),
                None => {
                    inner.places[self.place].withheld();
                    return match effect {
                        AgentEffect::ListArtifacts { .. } => Event::Listed(Vec::new()),
                        _ => Event::Changed(Changes::default()),
                    };
                }
            }
        }
        let event = inner.with(self.place, at, |here, home, dice| match effect {
            AgentEffect::CheckServer { generation, .. } => home.check_server(*generation, now_ms),
            AgentEffect::FindAgentSession { generation, .. } => {
                here.find_session(home, *generation, now_ms)
            }
            AgentEffect::Attach { .. } => {
                Event::Attached { note: String::new(), missed: Vec::new(), images: Vec::new() }
            }
            AgentEffect::SendPrompt { generation, ids, text, sending, .. } => {
                // What the thread was about comes before the person's words.
                let words = text.rsplit("\n\n").next().unwrap_or_default();
                let turn = words.split_whitespace().next().unwrap_or_default();
                here.send_prompt(
                    home,
                    *generation,
                    (ids, *sending),
                    (&turn.into(), &workspace),
                    now_ms,
                    (dice, troubled),
                )
            }
            AgentEffect::FindPrompt { generation, message, .. } => {
                here.find_prompt(home, *generation, message, now_ms)
            }
            AgentEffect::Abort { generation, messages, .. } => {
                here.abort(home, *generation, messages, Event::Aborted, now_ms)
            }
            AgentEffect::EndRun(run) => {
                here.abort(home, run.generation, &run.messages, Event::RunEnded, now_ms)
            }
            AgentEffect::Decline { generation, ask, .. } => {
                here.decline(home, *generation, ask, now_ms)
            }
            AgentEffect::ReadChanges { generation, .. } => {
                here.read_changes(home, *generation, now_ms)
            }
            AgentEffect::ListArtifacts { generation } => {
                here.list_artifacts(home, *generation, now_ms)
            }
            AgentEffect::Follow(_) | AgentEffect::Look(_) => unreachable!("followed above"),
        });
        if let (AgentEffect::SendPrompt { generation, .. }, Event::Prompted) = (effect, &event) {
            let home = &inner.places[at].home;
            let sandbox = home.sandboxes.get(generation);
            if sandbox.is_some_and(|sandbox| sandbox.is_native) {
                inner.met.insert("native");
            }
            inner.note_work(at, *generation, &workspace);
            inner.tools(at, Use::Calls, self.world.limits.idle_pause_ms);
        }
        event
    }

    fn caller(&self) -> Caller {
        Caller { place: self.place, is_turn: matches!(self.work, Work::Prompt(_)) }
    }

    /// A person asked for the deletion that this delivery is about.
    pub(super) fn is_asked_to_delete(&self) -> bool {
        matches!(self.work, Work::Reset { .. } | Work::Operate { want: Operation::Destroy, .. })
    }

    fn delete(&self, generation: u32) -> Late {
        Late::Delete { generation, by_person: self.is_asked_to_delete() }
    }

    async fn follow(&self, follow: &Follow) -> Event {
        loop {
            let is_over = |now_ms: u64| now_ms + self.skew_ms >= follow.until_ms;
            if is_over(self.world.lock().now_ms) {
                return still_running();
            }
            if let Some(event) = self.seen(follow).await {
                return event;
            }
            if follow.gives_way && self.world.lock().is_crowded() {
                self.world.lock().met.insert("gave way");
                return Event::OthersWait(Seen::default());
            }
            self.stand(LOOK_MS).await;
        }
    }

    /// What one look at a run finds; none where it goes on.
    async fn seen(&self, follow: &Follow) -> Option<Event> {
        // Who follows tries a few times before it says that nobody is there.
        let cut_ms = {
            let mut inner = self.world.lock();
            let home = &inner.places[self.at()].home;
            let cut_ms = home.cut_ms(inner.now_ms);
            // It is over with this worker when the call ends.
            if inner.places[self.place].kills(home, follow.generation, &follow.message) {
                inner.met.insert("killed");
                inner.kill(self.token);
                return Some(still_running());
            }
            cut_ms
        };
        if cut_ms > 0 {
            self.world.pause(cut_ms.min(REQUEST_MS)).await;
            return Some(Event::Failed(Failure::SandboxDown {
                seen: "connection reset".to_owned(),
            }));
        }
        let mut guard = self.world.lock();
        let inner = &mut *guard;
        let now_ms = inner.now_ms;
        inner.with(self.place, self.at(), |here, home, dice| {
            home.extend(follow.generation, now_ms);
            here.follow(home, follow, now_ms, dice)
        })
    }

    /// Sends a lifecycle call on its way, to arrive within its bound. False: this effect is none.
    pub(super) fn late(&self, effect: &Effect) -> bool {
        let mut inner = self.world.lock();
        let limits = &self.world.limits;
        let left_ms = inner.visible_until_ms(self.token, limits).saturating_sub(inner.now_ms);
        let after_ms = inner.dice.below(limits.lifecycle_call_ms);
        if let Effect::EndTools { generation } = effect {
            let end = self.end_of_tools(&mut inner, *generation);
            let late_ms = 1 + after_ms % SEND_MS_MAX;
            if let Some(message) = end {
                inner.say_later(self.at(), message, late_ms);
            }
            return true;
        }
        let call = match effect {
            Effect::Sandbox(SandboxEffect::Create { generation, .. }) => Late::Create(*generation),
            Effect::Sandbox(SandboxEffect::Stop { generation })
                if left_ms > limits.lifecycle_call_ms =>
            {
                Late::Stop(*generation)
            }
            Effect::Sandbox(SandboxEffect::Delete { generation }) => self.delete(*generation),
            Effect::Agent(AgentEffect::Abort { generation, messages, .. }) => {
                Late::Abort(*generation, messages.clone())
            }
            Effect::Agent(AgentEffect::EndRun(run)) => {
                Late::Abort(run.generation, run.messages.clone())
            }
            _ => return false,
        };
        let at_ms = inner.now_ms + after_ms;
        let spot = (self.caller(), self.at());
        inner.later.push((at_ms, spot, call));
        true
    }
}

fn still_running() -> Event {
    Event::StillRunning(Seen::default())
}
