//! The posts of a thread.

use bobbin_core::base::ids::{Ms, PostRef, TurnId};
use bobbin_core::base::names::{PostKind, post_key};
use bobbin_core::records::artifacts::Artifact;
use bobbin_core::records::card::{Card, CardState, Post};

use super::SimThread;
use crate::home::Home;
use crate::promises::{Ending, Fact};

impl SimThread {
    pub fn post_artifact(
        &mut self,
        home: &mut Home,
        generation: u32,
        (turn, index, file): (&TurnId, u32, &Artifact),
        now_ms: Ms,
    ) -> Result<PostRef, String> {
        if home.server(generation, now_ms).is_err() {
            return Err("could not be read".to_owned());
        }
        let kind = PostKind::Artifact(index);
        let id = post_key(&self.thread, turn, &kind);
        if !self.posts.contains_key(&id) {
            self.posts.insert(id.clone(), kind.clone());
            if let Some(turn) = self.turn(turn) {
                self.history.facts.push(Fact::Posted { turn, kind });
            }
            let times = self.showings.entry(file.path.clone()).or_insert(0);
            *times += 1;
            self.history.facts.push(Fact::Spent {
                what: "showings of one file",
                times: *times,
                bound: 1,
            });
        }
        Ok(PostRef { channel: self.thread.to_string(), id })
    }

    pub fn post(
        &mut self,
        turn: &TurnId,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> PostRef {
        let id = at.map_or_else(|| post_key(&self.thread, turn, kind), |at| at.id.clone());
        let stands = self.posts.contains_key(&id);
        let turn = self.turn(turn);
        if let (Some(turn), false, [_, ..]) = (turn, stands, post.calls()) {
            self.history.facts.push(Fact::Called {
                turn,
                kind: kind.clone(),
                who: post.calls().to_vec(),
            });
        }
        let post = post.bare();
        match (turn, post) {
            (Some(turn), Post::Card(card)) if !stands || at.is_some() => {
                let live = !matches!(card.state, CardState::Ended { .. });
                self.cards.insert(id.clone(), (turn, live));
            }
            (Some(_), Post::Review(review)) if !stands => {
                let commit = review.proposal.commit.clone();
                self.proposals.push(commit.clone());
                self.history.facts.push(Fact::Proposed { commit });
            }
            (Some(turn), Post::Moved { .. }) => {
                self.cards.insert(id.clone(), (turn, false));
            }
            _ => {}
        }
        if !stands {
            self.posts.insert(id.clone(), kind.clone());
        }
        if let Some(turn) = turn {
            if !stands {
                self.history.facts.push(Fact::Posted { turn, kind: kind.clone() });
            }
            if let Post::Card(card) = post
                && (!stands || at.is_some())
            {
                self.shown(turn, card);
            }
        }
        PostRef { channel: self.thread.to_string(), id }
    }

    fn shown(&mut self, turn: usize, card: &Card) {
        self.history.facts.push(match &card.state {
            CardState::Ended { outcome, .. } => Fact::Told { turn, ending: Ending::from(outcome) },
            _ => Fact::Shown { turn },
        });
    }

    /// The chat refused a post of this turn.
    pub fn refused(&mut self, turn: &TurnId) {
        if let Some(turn) = self.turn(turn) {
            self.history.facts.push(Fact::Refused { turn });
        }
    }

    /// A post of this turn found the thread closed.
    pub fn closed(&mut self, turn: &TurnId) {
        if let Some(turn) = self.turn(turn) {
            self.history.facts.push(Fact::Closed { turn });
        }
    }

    /// The agent could not be asked again after it had answered.
    pub fn withheld(&mut self) {
        let turn = self.record.as_ref().and_then(|session| session.turn.as_ref());
        let ending = turn.filter(|turn| turn.stage.is_ending());
        if let Some(turn) = ending.and_then(|turn| self.turn(&turn.id)) {
            self.history.facts.push(Fact::Withheld { turn });
        }
    }
}
