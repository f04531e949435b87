//! A forge: each thread's repository, the calls that Bobbin makes, and what people do there.

use std::collections::{BTreeMap, BTreeSet};

use bobbin_core::base::ids::digest;
use bobbin_core::records::carried::{Carried, ForgeRepository};
use bobbin_core::records::message::Message;
use bobbin_core::records::publication::{
    Opened, Outgoing, OutgoingChange, OutgoingFile, PullRequestRef, PullRequestSeen,
    PullRequestState, PushEnd,
};
use bobbin_core::tenant::repositories::BoundForge;

use super::home::Home;
use super::plan::{self, AtForge};
use super::services::Moving;
use super::state::Inner;
use super::thread::SimThread;
use crate::promises::Fact;

/// The branch that pull requests go into.
const MAIN: &str = "main";
/// Where the forge is.
const BASE: &str = "https://git.example.com";

/// The forge, with the owner that the operator has bound to every tenant.
pub(super) fn bound() -> BoundForge {
    BoundForge {
        base: BASE.to_owned(),
        owners: ["acme".to_owned()].into(),
        ..BoundForge::default()
    }
}

/// The repository that every prompt names; each thread has its own.
pub(super) fn repository(name: &str) -> ForgeRepository {
    ForgeRepository {
        installation: 7,
        id: 42,
        name: name.to_owned(),
        address: format!("{BASE}/{name}"),
        is_private: true,
        branch: MAIN.to_owned(),
    }
}

/// A commit made of these parts.
fn commit(parts: &[&str]) -> String {
    digest(parts)[..40].to_owned()
}

/// A repository at the forge.
pub struct Repository {
    /// Branches and their commits.
    pub branches: BTreeMap<String, String>,
    /// Branch and state of each pull request, by number.
    pub pulls: Vec<(String, PullRequestSeen)>,
    /// The planted fault: nobody checks where a branch is before moving it.
    pub overwrites: bool,
    /// What each commit on a branch contains: itself and its ancestors.
    has: BTreeMap<String, BTreeSet<String>>,
    /// Commits that people have made.
    persons: BTreeSet<String>,
}

impl Default for Repository {
    fn default() -> Self {
        Self {
            branches: [(MAIN.to_owned(), commit(&[MAIN]))].into(),
            pulls: Vec::new(),
            overwrites: false,
            has: BTreeMap::new(),
            persons: BTreeSet::new(),
        }
    }
}

impl Repository {
    /// The result of a push that need not, or must not, be sent.
    pub fn before(&self, moving: &Moving<'_>) -> Option<PushEnd> {
        let there = self.branches.get(moving.branch).map(String::as_str);
        if there == Some(moving.new) {
            return Some(PushEnd::Done { changed: Vec::new() });
        }
        let is_moved = there != moving.old && !self.overwrites;
        is_moved.then(|| PushEnd::Moved { at: there.map(str::to_owned) })
    }

    /// The newest pull request of a branch.
    pub fn pull_request(&self, branch: &str) -> Option<PullRequestSeen> {
        let (_, seen) = self.pulls.iter().rev().find(|(head, _)| head == branch)?;
        Some(seen.clone())
    }

    /// What a commit contains, as the forge sees it.
    fn had_by(&self, commit: &str) -> BTreeSet<String> {
        self.has.get(commit).cloned().unwrap_or_default()
    }

    fn is_open(&self, branch: &str) -> bool {
        let seen = self.pull_request(branch);
        seen.is_some_and(|seen| seen.state == PullRequestState::Open)
    }
}

/// The newest commit in a sandbox.
#[derive(Debug, Clone)]
pub struct Work {
    commit: String,
    /// Fetched commits that it follows, with their ancestors.
    follows: BTreeSet<String>,
}

/// A call that moves a branch, as it was sent.
#[derive(Debug, Clone)]
pub struct PushCall {
    branch: String,
    old: Option<String>,
    new: Work,
    /// Branch and commit that the thread's record named then.
    recorded: Option<(String, Option<String>)>,
}

impl SimThread {
    /// What is fetched into a sandbox.
    pub(super) fn carried(&self, repository: &ForgeRepository) -> Carried {
        let base = self.forge.branches.get(&repository.branch).cloned();
        Carried { repository: repository.clone(), default: None, folder: None, base }
    }

    fn prompts_in(&self, home: &Home, generation: u32) -> usize {
        let sandbox = home.sandboxes.get(&generation);
        let agent = sandbox.and_then(|sandbox| sandbox.agents.get(&self.place));
        agent.map_or(0, |agent| agent.runs().count())
    }

    /// The work in a sandbox, if any: another commit after each prompt and after each change without a prompt. A prompt
    /// merges what was fetched before it.
    pub fn work(&self, home: &Home, generation: u32) -> Option<Work> {
        let sandbox = home.sandboxes.get(&generation)?;
        let prompts = self.prompts_in(home, generation);
        let done = prompts + sandbox.changes;
        let merged = sandbox.brought.iter().filter(|(_, before)| **before < prompts);
        let follows = merged.flat_map(|(commit, _)| self.forge.had_by(commit)).collect();
        let parts = [self.place, generation as usize, done].map(|part| part.to_string());
        let commit = commit(&["work", &parts[0], &parts[1], &parts[2]]);
        (done > 0).then_some(Work { commit, follows })
    }

    pub(super) fn outgoing(&self, home: &Home, generation: u32) -> Outgoing {
        let Some(Work { commit, .. }) = self.work(home, generation) else {
            return Outgoing::Unchanged;
        };
        let file = OutgoingFile { path: "a".to_owned(), how: OutgoingChange::Added };
        Outgoing::Ready {
            commit,
            subject: "Add a".to_owned(),
            files: vec![file],
            since: Vec::new(),
            workflows: 0,
            has_others: false,
        }
    }

    /// The call that moves a branch, as it is sent now; otherwise what its sender finds first.
    pub fn push_call(
        &self,
        home: &Home,
        generation: u32,
        moving: &Moving<'_>,
    ) -> Result<PushCall, PushEnd> {
        if let Some(ended) = self.forge.before(moving) {
            return Err(ended);
        }
        let work = self.work(home, generation).filter(|work| work.commit == moving.new);
        let work = work.ok_or(PushEnd::Changed)?;
        if moving.follows.is_some_and(|commit| !work.follows.contains(commit)) {
            return Err(PushEnd::Refused { why: "the work does not follow the branch".to_owned() });
        }
        Ok(self.call(moving, work))
    }

    fn call(&self, moving: &Moving<'_>, new: Work) -> PushCall {
        let publication =
            self.record.as_ref().and_then(|record| record.published.publication.as_ref());
        PushCall {
            branch: moving.branch.to_owned(),
            old: moving.old.map(str::to_owned),
            new,
            recorded: publication.map(|one| (one.branch.clone(), one.pushed.clone())),
        }
    }

    /// The call reaches the forge, which moves the branch only from the commit that the call names.
    pub(super) fn pushed(&mut self, call: PushCall) -> PushEnd {
        let PushCall { branch, old, new, recorded } = call;
        let old = old.as_deref();
        let repository = 42;
        let moving = Moving { repository, branch: &branch, old, new: &new.commit, follows: None };
        if let Some(ended) = self.forge.before(&moving) {
            return ended;
        }
        let (to, mut has) = (new.commit, new.follows);
        has.insert(to.clone());
        let from = self.forge.branches.insert(branch.clone(), to.clone());
        let had = from.as_ref().map(|from| self.forge.had_by(from)).unwrap_or_default();
        let dropped = had.difference(&has).filter(|one| self.forge.persons.contains(*one));
        let dropped = dropped.cloned().collect();
        self.forge.has.insert(to.clone(), has);
        self.history.facts.push(Fact::Pushed { branch, from, to, recorded, dropped });
        PushEnd::Done { changed: Vec::new() }
    }

    /// A push that finds the branch elsewhere fetches its commits into the sandbox, beside the checkout.
    pub(super) fn pushes(
        &mut self,
        home: &mut Home,
        generation: u32,
        moving: &Moving<'_>,
    ) -> PushEnd {
        match self.push_call(home, generation, moving) {
            Ok(call) => self.pushed(call),
            Err(PushEnd::Moved { at: Some(at) }) => {
                self.bring(home, generation, &at);
                PushEnd::Theirs { at }
            }
            Err(ended) => {
                // A new sandbox lacks what was fetched into the one before.
                if let (PushEnd::Refused { .. }, Some(old)) = (&ended, moving.old) {
                    self.bring(home, generation, old);
                }
                ended
            }
        }
    }

    fn bring(&self, home: &mut Home, generation: u32, commit: &str) {
        let prompts = self.prompts_in(home, generation);
        if let Some(sandbox) = home.sandboxes.get_mut(&generation) {
            sandbox.brought.entry(commit.to_owned()).or_insert(prompts);
        }
    }

    /// The planted fault: pushes what the sandbox has, whatever was shown.
    pub(super) fn pushes_unshown(
        &mut self,
        home: &mut Home,
        generation: u32,
        moving: &Moving<'_>,
    ) -> PushEnd {
        match self.work(home, generation) {
            Some(work) => self.pushed(self.call(moving, work)),
            None => PushEnd::Changed,
        }
    }

    /// A pull request is opened, and nobody looks for an earlier one: the forge has at most one open for each branch.
    pub(super) fn requested(&mut self, branch: &str, is_draft: bool) -> Opened {
        if !self.forge.branches.contains_key(branch) || self.forge.is_open(branch) {
            return Opened::Refused { why: "Validation Failed".to_owned() };
        }
        let number = self.forge.pulls.len() as u64 + 1;
        let at = PullRequestRef { number, page: format!("{BASE}/acme/api/pull/{number}") };
        let seen = PullRequestSeen { at, state: PullRequestState::Open, is_draft };
        self.forge.pulls.push((branch.to_owned(), seen.clone()));
        self.history.facts.push(Fact::Requested { branch: branch.to_owned() });
        Opened::There(seen)
    }

    /// A person does something at the forge. False: there was nothing to do it with.
    fn at_forge(&mut self, what: AtForge) -> bool {
        let publication =
            self.record.as_ref().and_then(|record| record.published.publication.as_ref());
        let Some(branch) = publication.map(|publication| publication.branch.clone()) else {
            return false;
        };
        match what {
            AtForge::Pushes => {
                let commit = commit(&["person", &self.forge.persons.len().to_string()]);
                let before = self.forge.branches.insert(branch, commit.clone());
                let mut has = before.map(|before| self.forge.had_by(&before)).unwrap_or_default();
                has.insert(commit.clone());
                self.forge.persons.insert(commit.clone());
                self.forge.has.insert(commit, has);
                true
            }
            AtForge::Merges => {
                let is_merged = self.closes(&branch, PullRequestState::Merged);
                if let Some(commit) = self.forge.branches.get(&branch).filter(|_| is_merged) {
                    self.forge.branches.insert(MAIN.to_owned(), commit.clone());
                }
                is_merged
            }
            AtForge::Closes => self.closes(&branch, PullRequestState::Closed),
            // The forge closes the pull request with this head.
            AtForge::Deletes => {
                self.closes(&branch, PullRequestState::Closed);
                self.forge.branches.remove(&branch).is_some()
            }
        }
    }

    /// Closes or merges the branch's open pull request. False: there is none.
    fn closes(&mut self, branch: &str, to: PullRequestState) -> bool {
        let newest = self.forge.pulls.iter_mut().rev().find(|(head, _)| head == branch);
        let Some((_, seen)) = newest.filter(|(_, seen)| seen.state == PullRequestState::Open)
        else {
            return false;
        };
        seen.state = to;
        self.history.facts.push(Fact::PersonClosed { branch: branch.to_owned() });
        true
    }
}

impl Inner {
    /// Somebody presses on the newest or the oldest proposal in the thread, if there is one.
    pub(super) fn press(&mut self, place: usize, id: &str, is_oldest: bool) {
        let here = &self.places[place];
        let proposals = &here.proposals;
        let pressed = if is_oldest { proposals.first() } else { proposals.last() };
        let Some(commit) = pressed else {
            return;
        };
        if pressed != proposals.last() {
            self.met.insert("pressed an old one");
        }
        let message = Message {
            id: id.into(),
            thread: here.thread.clone(),
            accepted_at_ms: self.now_ms,
            work: plan::press(commit),
        };
        self.send(message);
    }

    /// A person does something at the forge.
    pub(super) fn at_forge(&mut self, place: usize, what: AtForge) {
        if self.places[place].at_forge(what) {
            self.met.insert(match what {
                AtForge::Pushes => "pushed by a person",
                AtForge::Merges => "merged",
                AtForge::Closes => "closed",
                AtForge::Deletes => "branch deleted",
            });
        }
    }

    /// Files change without a prompt.
    pub(super) fn files_change(&mut self, place: usize) {
        let sandboxes = &mut self.places[place].home.sandboxes;
        if let Some(mut sandbox) = sandboxes.last_entry() {
            sandbox.get_mut().changes += 1;
        }
    }

    /// A manager of the thread's tenant opens all repositories to it, or closes them.
    pub(super) fn opens(&mut self, place: usize, are_open: bool) {
        let lists = &mut self.places[place].settings.repositories;
        if are_open {
            lists.open(None, "all".to_owned());
        } else {
            lists.close(None, "all");
            self.met.insert("repositories closed");
        }
    }
}
