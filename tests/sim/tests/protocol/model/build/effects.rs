//! The answers of provider, agent and chat to an effect.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{AgentSessionId, Ms, PostRef, SandboxKey, TurnId};
use bobbin_core::base::names::PostKind;
use bobbin_core::base::person::Person;
use bobbin_core::protocol::effect::{Effect, Follow, RecipeAt, Watched};
use bobbin_core::protocol::event::{Event, NotCloned};
use bobbin_core::protocol::target::{Addressed, EffectTarget};
use bobbin_core::records::card::Post;
use bobbin_core::records::carried::LeftOut;
use bobbin_core::records::message::{Message, Work};
use bobbin_core::records::prebuild::{Prebuild, newest};
use bobbin_core::records::recipe::FoundRecipe;
use bobbin_core::records::run::{PromptState, RunAnswer, RunEnd};
use bobbin_core::records::sandbox::{SandboxState, SnapshotSeen};
use bobbin_core::records::session::Session;
use bobbin_core::records::set_up::{SetUpSeen, StepEnd};
use bobbin_core::records::usage::Usage;
use bobbin_sim::services::{Missed, Sent, Services, Serving, perform, silent};

use super::super::faults::Fault;
use super::{
    BUILDER, Building, Call, Kept, Making, Provided, State, TAKEN, Worker, breaks, build, content,
    kept_beside, name, recipe, snapshot_of,
};

/// What one effect of a worker can use.
struct BuildEffectContext<'a> {
    model: &'a Building,
    s: &'a mut State,
    known: Option<&'a Session>,
    worker: &'a Worker,
    /// The recorded names, if room is to be made for a snapshot.
    keeps: Option<Vec<String>>,
    /// The set-up fails.
    fails: bool,
}

impl BuildEffectContext<'_> {
    fn one(&mut self, generation: u32) -> &mut Provided {
        &mut self.s.provided[self.worker.group][generation as usize - 1]
    }

    /// This prompt's message, as a bit.
    fn bit(&self, ids: &str) -> u8 {
        let turn = ids.split('-').nth(1).and_then(|id| self.model.driver.turn_of(id));
        turn.map_or(0, |turn| 1 << turn)
    }
}

impl Services for BuildEffectContext<'_> {
    fn stands(&mut self, generation: u32) -> SandboxState {
        match self.one(generation) {
            Provided { there: false, .. } => SandboxState::Gone,
            Provided { is_coming: true, .. } => SandboxState::Provisioning,
            Provided { .. } => SandboxState::Running,
        }
    }

    fn cancelled_by(&mut self, _: &Watched) -> Option<Person> {
        None
    }

    fn create(&mut self, generation: u32) {
        create(self.s, self.worker.group, generation);
    }

    fn create_from(&mut self, generation: u32, prebuild: Option<&str>) -> Result<(), Failure> {
        let of = |one: &&Kept| prebuild == Some(&*name(one.generation));
        let found = self.s.snapshots.iter().find(of).map(|one| one.making);
        let is_new = !self.one(generation).there;
        if let Some(wanted) = prebuild
            && found != Some(Making::Ready)
            && is_new
        {
            let met = (1..).find(|generation| name(*generation) == wanted);
            self.s.met.extend(met.filter(|met| !self.s.met.contains(met)));
            let seen = "no such snapshot".to_owned();
            return Err(if self.model.has(Fault::GoneIsAnOutage) {
                Failure::Outage { after_ms: 0, seen }
            } else {
                Failure::TurnFailed { reason: seen }
            });
        }
        self.create(generation);
        if is_new {
            self.one(generation).prebuilt = prebuild.is_some();
        }
        Ok(())
    }

    fn start(&mut self, _: u32) {}

    fn stop(&mut self, _: u32) {}

    fn delete(&mut self, generation: u32) {
        *self.one(generation) = Provided::default();
    }

    fn clone_into(&mut self, generation: u32, _: &str) -> Result<LeftOut, NotCloned> {
        let one = self.one(generation);
        let is_new = !std::mem::replace(&mut one.cloned, true);
        Ok(LeftOut { is_new, is_prebuilt: one.prebuilt, ..LeftOut::default() })
    }

    fn read_recipe(&mut self, _: u32, _: &RecipeAt) -> FoundRecipe {
        FoundRecipe {
            recipe: Some(Box::new(recipe())),
            commit: None,
            ticks: 0,
            locks: content(self.s.locks),
            image: Some("image".to_owned()),
        }
    }

    fn set_up(&mut self, _: u32, steps: usize) -> SetUpSeen {
        let end = if self.fails { StepEnd::Failed(1) } else { StepEnd::Done };
        SetUpSeen { ended: vec![end; steps], is_over: true, ..SetUpSeen::default() }
    }

    fn queue(&mut self, messages: &[Message]) {
        for message in messages {
            let message = match &message.work {
                Work::Build(_) if self.model.has(Fault::UselessUnsaid) => {
                    self.model.message_of(&build(self.s.locks, None))
                }
                work => self.model.message_of(work),
            };
            Building::request(self.s, message);
        }
    }

    fn serve(&mut self, _: u32, _: bool) -> Serving {
        Serving::Healthy
    }

    fn reached(&mut self, generation: u32) -> Result<(), Failure> {
        if self.one(generation).there { Ok(()) } else { Err(Failure::SandboxGone) }
    }

    fn agent_session(&mut self, generation: u32, _: Ms) -> Result<AgentSessionId, Failure> {
        Ok(format!("ses_{generation}").into())
    }

    fn take(&mut self, sent: &Sent<'_>) -> Result<(), Missed> {
        self.s.prompted |= self.bit(&sent.ids.message);
        Ok(())
    }

    fn prompt_state(&mut self, _: u32, message: &str) -> Result<PromptState, Failure> {
        let is_taken = self.s.prompted & self.bit(message) != 0;
        Ok(if is_taken { PromptState::Taken } else { PromptState::Absent })
    }

    fn follow(&mut self, _: u32, _: &Follow, _: bool) -> Event {
        Event::Finished(RunAnswer {
            end: RunEnd::Completed,
            text: "a".into(),
            usage: Usage::default(),
            steps: Vec::new(),
            earlier: 0,
            plan: Vec::new(),
        })
    }

    fn abort(&mut self, _: u32, _: &[String]) {}

    fn snapshot(&mut self, generation: u32, _: Ms) -> Result<(String, SnapshotSeen), Failure> {
        // An existing one is found by name alone; only making room needs the sandbox.
        let is_made = self.s.snapshots.iter().any(|one| one.generation == generation);
        if self.keeps.is_some() || !is_made {
            self.reached(generation)?;
        }
        let wanted = self.known.map(snapshot_of).ok_or_else(silent)?;
        let seen = self.model.make(self.s, wanted, self.keeps.as_deref());
        Ok((name(generation), seen))
    }

    fn delete_snapshot(&mut self, wanted: &str) -> Result<(), Failure> {
        self.s.snapshots.retain(|one| name(one.generation) != wanted);
        Ok(())
    }

    fn prebuild(&mut self, _: &SandboxKey, at: &EffectTarget) -> Option<Prebuild> {
        newest(&self.model.record(self.s, BUILDER).sandbox, at.credentials.as_deref())
    }

    fn post(
        &mut self,
        turn: &TurnId,
        kind: &PostKind,
        _: Option<&PostRef>,
        _: &Post,
    ) -> Result<PostRef, Failure> {
        Ok(PostRef { channel: String::new(), id: format!("{turn}-{kind:?}") })
    }
}

/// Creates a sandbox, unless it exists. A builder's takes time.
fn create(s: &mut State, group: usize, generation: u32) {
    let one = &mut s.provided[group][generation as usize - 1];
    if !one.there {
        *one = Provided { there: true, is_coming: group == BUILDER, ..Provided::default() };
    }
}

impl Building {
    pub(super) fn perform(
        &self,
        s: &mut State,
        known: Option<&Session>,
        worker: &Worker,
        (effect, fails): (&Addressed<'_>, bool),
    ) -> Event {
        let keeps = match effect.effect {
            Effect::Sandbox(effect) => kept_beside(effect),
            _ => None,
        };
        perform(&mut BuildEffectContext { model: self, s, known, worker, keeps, fails }, effect)
    }

    /// A crashed worker's call reaches the provider.
    pub(super) fn land(&self, s: &mut State, call: Call) {
        let one = |generation: u32| generation as usize - 1;
        match call {
            Call::Create(generation) => create(s, BUILDER, generation),
            Call::Delete(generation) => s.provided[BUILDER][one(generation)] = Provided::default(),
            Call::Snapshot(wanted, keeps) => {
                let from = s.provided[BUILDER][one(wanted.generation)];
                if from.there && !from.is_coming {
                    self.make(s, wanted, keeps.as_deref());
                }
            }
            Call::DeleteSnapshot(wanted) => {
                s.snapshots.retain(|one| name(one.generation) != wanted);
            }
        }
    }

    /// Requests a snapshot of a running builder: makes room among the tenant's prebuilds and begins it, unless it
    /// exists.
    fn make(&self, s: &mut State, wanted: Kept, keeps: Option<&[String]>) -> SnapshotSeen {
        if let Some(keeps) = keeps {
            self.make_room(s, wanted, keeps);
        }
        let its = s.snapshots.iter().find(|one| one.generation == wanted.generation);
        if let Some(its) = its {
            return match its.making {
                Making::UnderWay => SnapshotSeen::UnderWay,
                Making::Ready => SnapshotSeen::Ready,
                Making::Failed => SnapshotSeen::Failed { why: "it failed".to_owned() },
            };
        }
        let taken = s.snapshots.len() + usize::from(s.of_person) + usize::from(s.of_other);
        if taken >= self.room {
            return SnapshotSeen::Failed { why: "there is no room".to_owned() };
        }
        s.snapshots.push(wanted);
        SnapshotSeen::UnderWay
    }

    /// Deletes the oldest prebuild of another repository, and leftovers of this one's failed builds.
    fn make_room(&self, s: &mut State, wanted: Kept, keeps: &[String]) {
        s.of_other = false;
        if self.has(Fault::AnythingGivesWay) {
            s.of_person = false;
        }
        let keeps_none = self.has(Fault::RecordedGivesWay);
        let is_left = |one: &Kept| {
            let is_kept = keeps.contains(&name(one.generation)) && !keeps_none;
            one.generation < wanted.generation && !is_kept
        };
        let is_wanted = |one: &&Kept| is_left(one) && self.is_usable(s, one);
        if !s.of_person || s.snapshots.iter().any(|one| is_wanted(&one)) {
            breaks(s, TAKEN);
        }
        s.snapshots.retain(|one| !is_left(one));
    }
}
