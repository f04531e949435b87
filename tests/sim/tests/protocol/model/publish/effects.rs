//! The answers of sandbox, forge and chat to an effect of a publication.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{AgentSessionId, Ms, PostRef, TurnId};
use bobbin_core::base::names::PostKind;
use bobbin_core::base::person::Person;
use bobbin_core::protocol::effect::{Follow, Watched};
use bobbin_core::protocol::event::{Event, NotCloned};
use bobbin_core::protocol::target::Addressed;
use bobbin_core::records::card::Post;
use bobbin_core::records::carried::{Carried, LeftOut};
use bobbin_core::records::publication::{
    Opened, Outgoing, OutgoingChange, OutgoingFile, PullRequestRef, PullRequestSeen,
    PullRequestState, PushEnd,
};
use bobbin_core::records::pull_request::WatchedPullRequest;
use bobbin_core::records::run::PromptState;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_core::records::session::Session;
use bobbin_core::records::watch::CardSight;
use bobbin_sim::services::{Missed, Sent, Services, Serving, perform, polled, silent};

pub use bobbin_sim::services::Moving;

use super::super::super::promises::Fact;
use super::super::faults::Fault;
use super::{BASE, Branch, Call, Publishing, REPOSITORY, State, Worker, branch_of, commit, posted};

/// What one effect of a worker can use.
struct PublishEffectContext<'a> {
    model: &'a Publishing,
    s: &'a mut State,
    known: Option<&'a Session>,
}

impl Services for PublishEffectContext<'_> {
    fn stands(&mut self, _: u32) -> SandboxState {
        SandboxState::Running
    }

    fn cancelled_by(&mut self, _: &Watched) -> Option<Person> {
        None
    }

    fn create(&mut self, _: u32) {}

    fn start(&mut self, _: u32) {}

    fn stop(&mut self, _: u32) {}

    fn delete(&mut self, _: u32) {}

    fn clone_into(&mut self, _: u32, _: &str) -> Result<LeftOut, NotCloned> {
        Ok(LeftOut::default())
    }

    fn serve(&mut self, _: u32, _: bool) -> Serving {
        Serving::Healthy
    }

    fn reached(&mut self, _: u32) -> Result<(), Failure> {
        Ok(())
    }

    /// No turn works here.
    fn agent_session(&mut self, _: u32, _: Ms) -> Result<AgentSessionId, Failure> {
        Err(silent())
    }

    fn take(&mut self, _: &Sent<'_>) -> Result<(), Missed> {
        Err(Missed::Failed(silent()))
    }

    fn prompt_state(&mut self, _: u32, _: &str) -> Result<PromptState, Failure> {
        Err(silent())
    }

    fn follow(&mut self, _: u32, _: &Follow, _: bool) -> Event {
        Event::Failed(silent())
    }

    fn abort(&mut self, _: u32, _: &[String]) {}

    fn outgoing(&mut self, _: u32, _: &Carried) -> Outgoing {
        let file = OutgoingFile { path: "a".to_owned(), how: OutgoingChange::Added };
        Outgoing::Ready {
            commit: commit(self.s.files.work),
            subject: "Add a".to_owned(),
            files: vec![file],
            since: Vec::new(),
            workflows: 0,
            has_others: false,
        }
    }

    fn push(&mut self, _: u32, moving: &Moving<'_>) -> PushEnd {
        match self.model.push_call(self.s, self.known, moving) {
            Ok(call) => self.model.lands(self.s, call),
            Err(PushEnd::Moved { at: Some(at) }) => {
                let there = self.s.branches.iter().find(|branch| branch.name == moving.branch);
                self.s.files.brought |= there.map_or(0, |branch| branch.has);
                PushEnd::Theirs { at }
            }
            Err(ended) => ended,
        }
    }

    fn pull_request(&mut self, branch: &str) -> Option<PullRequestSeen> {
        self.s.branches.iter().find(|one| one.name == branch).and_then(seen)
    }

    fn poll(&mut self, _: u64) -> Result<WatchedPullRequest, Failure> {
        let publication = self.known.and_then(|known| known.published.publication.as_ref());
        let named = publication.map(|publication| publication.branch.as_str());
        let branch = self.s.branches.iter().find(|one| Some(&*one.name) == named);
        let found = branch.and_then(|branch| Some((branch, seen(branch)?))).ok_or_else(silent)?;
        let (branch, pull) = found;
        let mut watched = polled(&pull, &branch.name, branch.at.as_deref().unwrap_or_default());
        if self.model.has(Fault::PollsSeeThePast) {
            watched.pull.state = PullRequestState::Open;
        }
        Ok(watched)
    }

    fn open_pull_request(&mut self, branch: &str, _: bool) -> Opened {
        let is_looked_for = !self.model.has(Fault::OpensUnseen);
        if let Some(seen) = self.pull_request(branch).filter(|_| is_looked_for) {
            return Opened::There(seen);
        }
        self.model.lands(self.s, Call::Open { branch: branch.to_owned() });
        match self.pull_request(branch) {
            Some(seen) => Opened::There(seen),
            None => Opened::Refused { why: "Validation Failed".to_owned() },
        }
    }

    fn post(
        &mut self,
        turn: &TurnId,
        kind: &PostKind,
        edited: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, Failure> {
        let at = self.model.driver.turn_of(turn).map(usize::from);
        if let (Some(at), Post::PullRequest(card)) = (at, post) {
            let is_new = posted(self.s, at, kind);
            let is_shown = is_new || edited.is_some() && !self.model.has(Fault::EditsAreLost);
            if is_shown {
                branch_of(self.s, &card.branch).card = match &card.seen {
                    CardSight::Seen(_) => Some(PullRequestState::Open),
                    CardSight::Ended(state) => Some(*state),
                    CardSight::Unseen { .. } => None,
                };
            }
        }
        if at.is_some_and(|at| posted(self.s, at, kind))
            && let Post::Review(review) = post.bare()
        {
            let commit = review.proposal.commit.clone();
            self.s.facts.push(Fact::Proposed { commit });
        }
        Ok(PostRef { channel: String::new(), id: format!("{turn}-{kind:?}") })
    }
}

impl Publishing {
    pub(super) fn perform(
        &self,
        s: &mut State,
        known: Option<&Session>,
        _: &Worker,
        effect: &Addressed<'_>,
    ) -> Event {
        perform(&mut PublishEffectContext { model: self, s, known }, effect)
    }

    /// The call that moves a branch, as it is sent now; otherwise what its sender finds first.
    pub(super) fn push_call(
        &self,
        s: &State,
        known: Option<&Session>,
        moving: &Moving<'_>,
    ) -> Result<Call, PushEnd> {
        let there = s.branches.iter().find(|branch| branch.name == moving.branch);
        let there = there.and_then(|branch| branch.at.as_deref());
        if there == Some(moving.new) {
            return Err(PushEnd::Done { changed: Vec::new() });
        }
        if there != moving.old && !self.has(Fault::PushesOverAnything) {
            return Err(PushEnd::Moved { at: there.map(str::to_owned) });
        }
        let mut new = commit(s.files.work);
        if new != moving.new && !self.has(Fault::PushesUnshown) {
            return Err(PushEnd::Changed);
        }
        let followed = moving.follows.map_or(0, |commit| bits_of(s, commit));
        if followed & !s.files.has != 0 {
            return Err(PushEnd::Refused { why: "the work does not follow the branch".to_owned() });
        }
        if !self.has(Fault::PushesUnshown) {
            new = moving.new.to_owned();
        }
        let publication = known.and_then(|known| known.published.publication.as_ref());
        Ok(Call::Push {
            branch: moving.branch.to_owned(),
            old: moving.old.map(str::to_owned),
            new,
            has: s.files.has,
            recorded: publication.map(|one| (one.branch.clone(), one.pushed.clone())),
        })
    }

    /// A call reaches the forge, which moves a branch only from the commit that the call names, and has at most one
    /// open pull request for each branch.
    pub(super) fn lands(&self, s: &mut State, call: Call) -> PushEnd {
        match call {
            Call::Push { branch, old, new, has, recorded } => {
                let is_forced = self.has(Fault::PushesOverAnything);
                let there = branch_of(s, &branch);
                if there.at != old && !is_forced {
                    return PushEnd::Moved { at: there.at.clone() };
                }
                let from = there.at.replace(new.clone());
                let lost = there.has & !has;
                there.has = has;
                let dropped = (0..8).filter(|bit| lost & (1 << bit) != 0);
                let dropped = dropped.map(super::of_person).collect();
                s.facts.push(Fact::Pushed { branch, from, to: new, recorded, dropped });
            }
            Call::Open { branch } => {
                let takes_second = self.has(Fault::OpensUnseen);
                let there = branch_of(s, &branch);
                let is_open = there.pull == Some(PullRequestState::Open);
                if there.at.is_some() && (!is_open || takes_second) {
                    there.pull = Some(PullRequestState::Open);
                    there.pulls += 1;
                    s.facts.push(Fact::Requested { branch });
                }
            }
        }
        PushEnd::Done { changed: Vec::new() }
    }
}

/// The commits in a person's commit; none for any other.
fn bits_of(s: &State, commit: &str) -> u8 {
    let mut all = s.persons.iter().enumerate();
    all.find(|(number, _)| super::of_person(*number) == commit).map_or(0, |(_, has)| *has)
}

fn seen(branch: &Branch) -> Option<PullRequestSeen> {
    let number = u64::from(branch.pulls);
    let page = format!("{BASE}/{REPOSITORY}/pull/{number}");
    let at = PullRequestRef { number, page };
    branch.pull.map(|state| PullRequestSeen { at, state, is_draft: true })
}
