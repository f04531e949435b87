//! Announces a waiting prompt with the product's own decisions, a step at a time. Like Slack, its chat finds a post
//! only by reading the thread.

use bobbin_core::base::ids::{PostRef, TurnId};
use bobbin_core::base::limits::RecordLimits;
use bobbin_core::base::names::{PostKind, post_key};
use bobbin_core::protocol::decide::queue::{Admission, Announced, admit, announced};
use bobbin_core::records::card::{Card, CardState, Post};
use bobbin_core::records::flags::Queued;
use bobbin_core::records::message::{Announce, Prompt};
use bobbin_core::records::usage::Usage;

use super::plan::{Out, PlannedEvent};
use super::state::Inner;

/// A step takes at most this long.
const STEP_MS: u64 = 4_000;
/// Its message is retried for this long.
const AGAIN_MS: u64 = 2_000;

/// Where the announcement is.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "there are few at a time")]
pub enum Announcing {
    /// Next: count the prompts before it.
    Begins(TurnId, Prompt),
    /// The flag is set. Next: look for the card.
    Looks(TurnId),
    /// There was no card. Next: post it.
    Posts(TurnId),
    /// The card is posted. Next: check whether its turn still waits.
    Settles(TurnId, PostRef),
    /// Its turn had begun. Next: read the flag again.
    Again(TurnId),
}

impl Inner {
    pub(super) fn announces(&mut self, place: usize, at: Announcing) {
        let Some(late_ms) = self.announcer.as_mut().map(|dice| dice.below(STEP_MS)) else {
            return;
        };
        let next = match at {
            at if self.is_out(Out::Table) || self.is_out(Out::Writes) => {
                // A posted card is settled; anything else is only a picture, and the prompt runs all the same.
                if let Announcing::Settles(..) | Announcing::Again(_) = at {
                    self.announces_later(place, Some(at), AGAIN_MS);
                }
                return;
            }
            Announcing::Begins(turn, prompt) => self.begins_to_announce(place, turn, prompt),
            Announcing::Looks(turn) => self.looks_for_card(place, turn),
            Announcing::Posts(turn) => self.posts_announced(place, turn),
            Announcing::Settles(turn, card) => {
                let (next, wait_ms) = self.settles(place, turn, card);
                if wait_ms > 0 {
                    self.announces_later(place, next, wait_ms);
                    return;
                }
                next
            }
            Announcing::Again(turn) => {
                let queued = self.places[place].flags.queued.get(&turn);
                let card = queued.and_then(|queued| queued.card.clone());
                card.map(|card| Announcing::Settles(turn, card))
            }
        };
        self.announces_later(place, next, late_ms);
    }

    pub(super) fn announces_later(&mut self, place: usize, next: Option<Announcing>, late_ms: u64) {
        if let Some(next) = next {
            let key = (self.now_ms + late_ms, self.planned);
            self.deeds.insert(key, (place, PlannedEvent::Announce(next)));
            self.planned += 1;
        }
    }

    fn begins_to_announce(
        &mut self,
        place: usize,
        turn: TurnId,
        prompt: Prompt,
    ) -> Option<Announcing> {
        let here = &mut self.places[place];
        let announce = Announce {
            turn: turn.clone(),
            thread: here.thread.clone(),
            by: prompt.by.clone(),
            accepted_at_ms: self.now_ms,
            prompt: Some(prompt.clone()),
        };
        let in_ledger = here.ledger.contains_key(&turn);
        let session = here.record.as_ref();
        let judged = admit(session, &here.flags, in_ledger, &announce, &RecordLimits::DEFAULT);
        let (Admission::Waits { ahead } | Admission::Known { ahead, .. }) = judged else {
            return None;
        };
        let queued = Queued {
            by: prompt.by.clone(),
            accepted_at_ms: announce.accepted_at_ms,
            card: None,
            refused: false,
            prompt: Some(Box::new(prompt)),
        };
        here.flags.queued.entry(turn.clone()).or_insert(queued);
        (ahead > 0).then_some(Announcing::Looks(turn))
    }

    fn looks_for_card(&mut self, place: usize, turn: TurnId) -> Option<Announcing> {
        let here = &self.places[place];
        let id = post_key(&here.thread, &turn, &PostKind::Card);
        if !here.posts.contains_key(&id) {
            return Some(Announcing::Posts(turn));
        }
        let channel = here.thread.to_string();
        Some(Announcing::Settles(turn, PostRef { channel, id }))
    }

    fn posts_announced(&mut self, place: usize, turn: TurnId) -> Option<Announcing> {
        if self.is_out(Out::Chat) || self.is_out(Out::Token) {
            return None;
        }
        self.met.insert("announced");
        let now_ms = self.now_ms;
        let here = &mut self.places[place];
        let id = post_key(&here.thread, &turn, &PostKind::Card);
        let channel = here.thread.to_string();
        if here.posts.contains_key(&id) {
            // Its turn was faster, and neither saw the other's card.
            self.met.insert("announced twice");
            let id = format!("{id}-announced");
            here.posts.insert(id.clone(), PostKind::Card);
            if let Some(number) = here.turn(&turn) {
                here.cards.insert(id.clone(), (number, true));
            }
            return Some(Announcing::Settles(turn, PostRef { channel, id }));
        }
        let state = CardState::Queued { ahead: 1, now: true };
        let card = Card::new(&turn, state, now_ms, now_ms, "m");
        here.post(&turn, &PostKind::Card, None, &Post::Card(card));
        Some(Announcing::Settles(turn, PostRef { channel, id }))
    }

    /// The next step, and how long it takes at least.
    fn settles(&mut self, place: usize, turn: TurnId, at: PostRef) -> (Option<Announcing>, u64) {
        let forgets = self.forgets_announced;
        let here = &mut self.places[place];
        let judged = announced(here.record.as_ref(), here.ledger.get(&turn), &turn, &at);
        let mark = |queued: &mut Queued| queued.card = Some(at.clone());
        match judged {
            Announced::Right => {}
            Announced::Waits => {
                here.flags.queued.entry(turn).and_modify(mark);
            }
            _ if forgets => {}
            Announced::Begins => {
                self.met.insert("announced late");
                let here = &mut self.places[place];
                let queued = Queued {
                    by: super::plan::ann(),
                    accepted_at_ms: self.now_ms,
                    card: Some(at),
                    refused: false,
                    prompt: None,
                };
                here.flags.queued.insert(turn.clone(), queued);
                return (Some(Announcing::Again(turn)), AGAIN_MS);
            }
            Announced::Moved(_) | Announced::Ended(_) => {
                if self.is_out(Out::Chat) || self.is_out(Out::Token) {
                    return (Some(Announcing::Settles(turn, at)), AGAIN_MS);
                }
                let here = &mut self.places[place];
                let post = match judged {
                    Announced::Ended(outcome) => {
                        let usage = Usage::default();
                        let state = CardState::Ended { outcome, usage };
                        Post::Card(Card::new(&turn, state, 1, 1, "m"))
                    }
                    _ => Post::Moved { to: at.clone(), link: None },
                };
                here.post(&turn, &PostKind::Card, Some(&at), &post);
            }
        }
        (None, 0)
    }
}
