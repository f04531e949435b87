//! The end-to-end tests' observations of one thread, as the history that the promises check: its record, the provider's
//! list, the thread's posts, and the model's requests.

use std::collections::BTreeSet;

use bobbin_core::base::names::{PostKind, post_key};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::sandbox::Phase;
use bobbin_core::records::session::Session;
use bobbin_core::records::turn::EndedTurn;

use crate::chat::ChatMessage;
use crate::model::Call;
use crate::provider::Sandbox;
use bobbin_sim::promises::{self, End, Ending, Fact, History, Request};

/// How long the model may still answer a request that was made before the run was ended.
const ANSWER_LATE_MS: u64 = 15_000;
/// Maximum number of an answer's parts that are looked for.
const PARTS_MAX: u32 = 10;

/// A message that was accepted for a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Id of the turn, which is that of its message.
    pub turn: String,
    /// Words that only this prompt contains; empty for a reset.
    pub mark: Option<String>,
}

impl Accepted {
    /// A prompt with these words in it.
    #[must_use]
    pub fn prompt(turn: &str, mark: &str) -> Self {
        Self { turn: turn.to_owned(), mark: Some(mark.to_owned()) }
    }
}

/// The observations of one thread.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The thread's record as the table has it.
    pub session: Session,
    /// Its sandboxes at the provider, of any generation.
    pub sandboxes: Vec<Sandbox>,
    /// The accepted messages, in order.
    pub accepted: Vec<Accepted>,
    /// Its posts.
    pub posts: Vec<ChatMessage>,
    /// The model's requests from all threads.
    pub calls: Vec<Call>,
}

/// Checks all promises.
///
/// # Errors
/// Every broken promise, with what breaks it and the turns.
pub fn check(observed: &Observed) -> Result<(), String> {
    let history = observed.history();
    promises::check(&history).map_err(|why| {
        let turns: Vec<String> = (observed.accepted.iter().enumerate())
            .map(|(at, accepted)| observed.in_short(at, accepted))
            .collect();
        let thread = &observed.session.thread;
        let sandboxes: Vec<_> = (observed.live().map(|one| (&one.name, &one.state))).collect();
        format!("{thread}: {why}\n{}\nsandboxes: {sandboxes:?}", turns.join("\n"))
    })
}

impl Observed {
    /// The same as facts.
    #[must_use]
    pub fn history(&self) -> History {
        let mut facts = vec![Fact::Live(self.live().count())];
        facts.extend(self.prompted());
        for (turn, accepted) in self.accepted.iter().enumerate() {
            facts.extend(self.posted(turn, accepted));
            facts.extend(self.ended(turn, accepted));
            facts.extend(self.went_on(turn, accepted));
        }
        facts.extend(self.hits());
        let kind = |accepted: &Accepted| match accepted.mark {
            Some(_) => Request::Prompt,
            None => Request::Notice,
        };
        History {
            accepted: self.accepted.iter().map(kind).collect(),
            facts,
            parts: 1,
            files: false,
            partial: true,
            who_asks: None,
            end: Some(self.end()),
        }
    }

    fn live(&self) -> impl Iterator<Item = &Sandbox> {
        self.sandboxes.iter().filter(|sandbox| sandbox.live())
    }

    fn ends<'a>(&'a self, turn: &str) -> impl Iterator<Item = &'a EndedTurn> {
        let ended = self.session.ended.iter();
        ended.filter(move |ended| ended.id == turn)
    }

    fn named(&self, turn: &str, kind: &PostKind) -> Vec<&ChatMessage> {
        let key = post_key(&self.session.thread, &turn.into(), kind);
        let posts = self.posts.iter();
        posts.filter(|post| post.key.as_deref() == Some(&key)).collect()
    }

    /// The model's calls for a prompt, oldest first.
    fn calls_of(&self, accepted: &Accepted) -> Vec<&Call> {
        let Some(mark) = &accepted.mark else {
            return Vec::new();
        };
        let is_its = |call: &&Call| !call.internal() && said(call).contains(mark.as_str());
        let mut calls: Vec<&Call> = self.calls.iter().filter(is_its).collect();
        calls.sort_by_key(|call| call.time_ms);
        calls
    }

    /// The prompts in the order in which they reached the model, each as often as a run of it began: a run answers each
    /// of its steps once, in one agent session.
    fn prompted(&self) -> Vec<Fact> {
        let mut runs = Vec::new();
        for (turn, accepted) in self.accepted.iter().enumerate() {
            let calls = self.calls_of(accepted);
            let Some(first) = calls.first() else {
                continue;
            };
            let steps: Vec<usize> = (calls.iter())
                .filter(|call| call.answered())
                .map(|call| call.tool_results)
                .collect();
            let times = |step: &usize| steps.iter().filter(|other| *other == step).count();
            let sessions: BTreeSet<&str> =
                (calls.iter()).filter_map(|call| call.session_id.as_deref()).collect();
            let began = steps.iter().map(times).max().unwrap_or(1).max(sessions.len());
            runs.push((first.time_ms, turn, began));
        }
        runs.sort_unstable();
        let generation = self.session.sandbox.generation;
        let facts = runs.into_iter().flat_map(|(_, turn, began)| {
            std::iter::repeat_n(Fact::Prompted { turn, generation }, began)
        });
        facts.collect()
    }

    /// A turn's posts in the thread, and whether its card says how the turn ended.
    fn posted(&self, turn: usize, accepted: &Accepted) -> Vec<Fact> {
        let id = accepted.turn.as_str();
        let kinds = match accepted.mark {
            Some(_) => {
                [PostKind::Card].into_iter().chain((0..PARTS_MAX).map(PostKind::Chunk)).collect()
            }
            None => vec![PostKind::Notice],
        };
        let mut facts = Vec::new();
        for kind in kinds {
            for post in self.named(id, &kind) {
                facts.push(Fact::Posted { turn, kind: kind.clone() });
                if kind == PostKind::Card {
                    let told = (self.ends(id)).find(|ended| says(post, &ended.outcome));
                    facts.push(match told.filter(|_| post.button("Stop").is_none()) {
                        Some(ended) => Fact::Told { turn, ending: Ending::from(&ended.outcome) },
                        None => Fact::Shown { turn },
                    });
                }
            }
        }
        facts
    }

    fn ended(&self, turn: usize, accepted: &Accepted) -> Vec<Fact> {
        let ends = self.ends(&accepted.turn).map(|ended| Ending::from(&ended.outcome));
        // A prompt that was sent into a running turn overtook others because a person requested that.
        ends.flat_map(|ending| {
            let steered = (ending == Ending::Joined).then_some(Fact::Steered { turn });
            [Fact::Ended { turn, ending }].into_iter().chain(steered)
        })
        .collect()
    }

    /// Something was asked of the model for a turn that had ended.
    fn went_on(&self, turn: usize, accepted: &Accepted) -> Option<Fact> {
        let ended_ms = self.ends(&accepted.turn).next()?.at_ms;
        let last_ms = self.calls_of(accepted).last()?.time_ms;
        (last_ms.saturating_sub(ended_ms) > ANSWER_LATE_MS).then_some(Fact::Astray { turn })
    }

    /// Between a prompt's first call of the model and the turn's end a stop or deletion of the sandbox began, and no
    /// person had asked for a reset in this thread.
    fn hits(&self) -> Vec<Fact> {
        if self.accepted.iter().any(|accepted| accepted.mark.is_none()) {
            return Vec::new();
        }
        let stops = self.session.sandbox.history.timeline.iter();
        let stops: Vec<u64> = stops
            .filter(|entry| matches!(entry.phase, Phase::Pausing | Phase::Destroying))
            .map(|stop| stop.at_ms)
            .collect();
        let hit = |(turn, accepted): (usize, &Accepted)| {
            let began_ms = self.calls_of(accepted).first()?.time_ms;
            let ended_ms = self.ends(&accepted.turn).next()?.at_ms;
            let under_way = began_ms..ended_ms;
            let is_hit = stops.iter().any(|at_ms| under_way.contains(at_ms));
            let generation = self.session.sandbox.generation;
            is_hit.then_some(Fact::Hit { generation, turn })
        };
        self.accepted.iter().enumerate().filter_map(hit).collect()
    }

    fn end(&self) -> End {
        let session = &self.session;
        let is_settled =
            matches!(session.sandbox.phase, Phase::Active | Phase::Paused | Phase::Destroyed);
        // In transition from one state to another, the sandbox is in a state that the record does not name.
        let runs = |sandbox: &Sandbox| match (session.sandbox.phase, sandbox.state.as_str()) {
            (Phase::Paused, state) => !matches!(state, "stopped" | "paused" | "archived"),
            (_, state) => state == "started",
        };
        let listed = self.live().map(|sandbox| {
            let generation = sandbox.generation_of(&session.thread);
            // No record is ever at this one.
            (generation.unwrap_or(u32::MAX), runs(sandbox))
        });
        End {
            phase: session.sandbox.phase,
            generation: session.sandbox.generation,
            turn: session.turn.is_some(),
            listed: listed.collect(),
            is_settled,
        }
    }

    /// A turn, described for the reader of a broken promise.
    fn in_short(&self, at: usize, accepted: &Accepted) -> String {
        let id = &accepted.turn;
        let ends: Vec<&Outcome> = self.ends(id).map(|ended| &ended.outcome).collect();
        let cards = self.named(id, &PostKind::Card);
        let cards: Vec<_> = (cards.iter().map(|card| (&card.text, &card.buttons))).collect();
        let calls = self.calls_of(accepted);
        let steps: Vec<_> = (calls.iter().map(|call| (call.time_ms, call.tool_results))).collect();
        format!(
            "turn {at} is {id}: {ends:?}, its cards {cards:?}, its steps at the model {steps:?}"
        )
    }
}

/// Whether a card says how the turn ended, in either platform's words.
#[must_use]
pub fn says(card: &ChatMessage, outcome: &Outcome) -> bool {
    let words: &[&str] = match outcome {
        Outcome::Answered => &["Done"],
        Outcome::Joined { .. } => &["Sent into the running task"],
        Outcome::Failed { .. } => &["This did not work", "Failed"],
        Outcome::Cancelled { .. } => &["Stopped"],
        Outcome::OverBudget { .. } => &["Stopped by budget"],
        Outcome::Lost => &["The sandbox was lost", "Lost"],
    };
    words.iter().any(|word| card.text.contains(word))
}

/// The person's own words: a new agent session gets a digest before them, which contains earlier prompts.
fn said(call: &Call) -> &str {
    if call.user.starts_with("This thread's conversation began in another sandbox") {
        call.user.split_once("\n\n").map_or("", |(_, said)| said)
    } else {
        &call.user
    }
}

/// How often a turn's posts mention somebody at its end: in a line of the answer, or in a separate post.
///
/// # Errors
/// Who is mentioned besides `person`.
pub fn calls_at_end(observed: &Observed, turn: &str, person: &str) -> Result<usize, String> {
    let answer = (0..PARTS_MAX).map(PostKind::Chunk);
    let kinds = answer.chain([PostKind::Call]);
    let posts = kinds.flat_map(|kind| observed.named(turn, &kind));
    let mut calls = 0;
    for post in posts {
        let called = |line: &str| {
            let id = line.trim().strip_prefix("<@")?.strip_suffix('>')?;
            Some(id.to_owned())
        };
        // Slack has every text of a post twice, for notifications.
        let called: BTreeSet<String> = post.text.lines().filter_map(called).collect();
        if let Some(other) = called.iter().find(|id| *id != person) {
            return Err(format!("{turn} called {other}"));
        }
        calls += called.len();
    }
    Ok(calls)
}
