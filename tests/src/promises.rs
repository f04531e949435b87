//! The promises of the design as functions over what was observed of a thread at the end of a scenario. Each says in
//! words what breaks it; none looks at how the product works inside.

use std::collections::BTreeSet;

use bobbin_core::ids::{PostKind, post_key};
use bobbin_core::outcome::Outcome;
use bobbin_core::session::{EndedTurn, Phase, Session};

use crate::chat::Seen;
use crate::model::Call;
use crate::provider::Sandbox;

/// What was accepted for a thread, in that order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The turn's id.
    pub turn: String,
    /// Words that stand in this prompt alone; none for a reset.
    pub mark: Option<String>,
}

/// What was observed of one thread.
#[derive(Debug, Clone)]
pub struct History {
    /// Its record.
    pub session: Session,
    /// Its sandboxes at the provider, of any generation.
    pub sandboxes: Vec<Sandbox>,
    /// What was accepted for it.
    pub accepted: Vec<Accepted>,
    /// What stands in it.
    pub posts: Vec<Seen>,
    /// What reached the model, from all threads.
    pub calls: Vec<Call>,
}

/// A promise: its words, and what breaks it.
pub type Promise = (&'static str, fn(&History) -> Result<(), String>);

/// All of them.
pub const ALL: [Promise; 7] = [
    ("at most one live sandbox a thread", one_live_sandbox),
    ("what the provider lists is what the record says", no_orphan),
    (
        "every accepted message ended exactly once, visibly",
        ended_once_visibly,
    ),
    ("prompts reached the agent in acceptance order", in_order),
    ("no prompt reached an agent twice", never_twice),
    (
        "no stop or delete hit a sandbox with a running turn",
        no_stop_under_a_turn,
    ),
    ("no run goes on that no turn owns", no_stray_run),
];

/// What was asked of the model before its run was ended may still be answered for so long.
const ANSWER_LATE_MS: u64 = 15_000;

/// Checks all of them.
///
/// # Errors
/// Every broken one with what breaks it.
pub fn check(history: &History) -> Result<(), String> {
    let broken: Vec<String> = ALL
        .iter()
        .filter_map(|(words, holds)| holds(history).err().map(|why| format!("- {words}: {why}")))
        .collect();
    if broken.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "promises of {} are broken:\n{}",
            history.session.thread,
            broken.join("\n")
        ))
    }
}

fn live(history: &History) -> Vec<&Sandbox> {
    history
        .sandboxes
        .iter()
        .filter(|sandbox| sandbox.live())
        .collect()
}

/// Promise 1.
///
/// # Errors
/// The names of the sandboxes.
pub fn one_live_sandbox(history: &History) -> Result<(), String> {
    let live = live(history);
    if live.len() <= 1 {
        Ok(())
    } else {
        Err(format!(
            "{:?}",
            live.iter()
                .map(|one| (&one.name, &one.state))
                .collect::<Vec<_>>()
        ))
    }
}

/// Promise 2, for a thread in which nothing is under way.
///
/// # Errors
/// What the provider lists beside what the record says.
pub fn no_orphan(history: &History) -> Result<(), String> {
    let session = &history.session;
    let wanted: &[&str] = match session.phase {
        Phase::Active => &["started"],
        Phase::Paused => &["stopped", "paused", "archived"],
        Phase::Destroyed => &[],
        // Whether there is something to keep is the provider's word in these.
        Phase::Error | Phase::Creating | Phase::Resuming | Phase::Pausing | Phase::Destroying => {
            return own_generation(history);
        }
    };
    own_generation(history)?;
    let states: Vec<&str> = live(history).iter().map(|one| one.state.as_str()).collect();
    let fits = if wanted.is_empty() {
        states.is_empty()
    } else {
        !states.is_empty() && states.iter().all(|state| wanted.contains(state))
    };
    if fits {
        Ok(())
    } else {
        Err(format!(
            "the record says {}, the provider lists {states:?}",
            session.phase.word()
        ))
    }
}

fn own_generation(history: &History) -> Result<(), String> {
    let session = &history.session;
    match live(history)
        .into_iter()
        .find(|one| one.generation_of(&session.thread) != Some(session.generation))
    {
        Some(orphan) => Err(format!(
            "{} is {}, but the record is at generation {}",
            orphan.name, orphan.state, session.generation
        )),
        None => Ok(()),
    }
}

fn ends<'a>(history: &'a History, turn: &str) -> Vec<&'a EndedTurn> {
    history
        .session
        .ended
        .iter()
        .filter(|ended| ended.id == turn)
        .collect()
}

fn named<'a>(history: &'a History, turn: &str, kind: &PostKind) -> Vec<&'a Seen> {
    let key = post_key(&history.session.thread, turn, kind);
    history
        .posts
        .iter()
        .filter(|post| post.key.as_deref() == Some(&key))
        .collect()
}

/// Promise 3: one end on record, and in the thread one card that says so, each part of an answer once.
///
/// # Errors
/// The turn, and what is missing or double.
pub fn ended_once_visibly(history: &History) -> Result<(), String> {
    for accepted in &history.accepted {
        let turn = &accepted.turn;
        let ends = ends(history, turn);
        let [ended] = ends[..] else {
            return Err(format!("turn {turn} has {} ends on record", ends.len()));
        };
        if accepted.mark.is_none() {
            match named(history, turn, &PostKind::Notice).len() {
                1 => continue,
                count => return Err(format!("the reset {turn} was told {count} times")),
            }
        }
        told(history, ended)?;
    }
    match &history.session.turn {
        Some(turn) => Err(format!("turn {} is still on record as running", turn.id)),
        None => Ok(()),
    }
}

fn told(history: &History, ended: &EndedTurn) -> Result<(), String> {
    let turn = &ended.id;
    let cards = named(history, turn, &PostKind::Card);
    let [card] = cards[..] else {
        return Err(format!("turn {turn} has {} cards", cards.len()));
    };
    if card.button("Stop").is_some() || !says(card, &ended.outcome) {
        return Err(format!(
            "turn {turn} ended as {:?}, but its card says {:?} {:?}",
            ended.outcome, card.text, card.buttons
        ));
    }
    let parts: Vec<usize> = (0..10)
        .map(|index| named(history, turn, &PostKind::Chunk(index)).len())
        .collect();
    if parts.iter().any(|count| *count > 1) {
        return Err(format!(
            "parts of the answer of turn {turn} stand more than once: {parts:?}"
        ));
    }
    match (&ended.outcome, parts[0]) {
        (Outcome::Answered, 0) => Err(format!(
            "turn {turn} was answered, but no answer stands in the thread"
        )),
        (Outcome::Failed { .. } | Outcome::Lost, 1) => Err(format!(
            "turn {turn} has no answer, but one stands in the thread"
        )),
        _ => Ok(()),
    }
}

/// Whether a card says how the turn ended, in either platform's words.
#[must_use]
pub fn says(card: &Seen, outcome: &Outcome) -> bool {
    let words: &[&str] = match outcome {
        Outcome::Answered => &["Done"],
        Outcome::Joined { .. } => &["Sent into the running task"],
        Outcome::Failed { .. } => &["This did not work", "Failed"],
        Outcome::Cancelled { .. } => &["Stopped"],
        Outcome::Lost => &["The sandbox was lost", "Lost"],
    };
    words.iter().any(|word| card.text.contains(word))
}

fn calls_of<'a>(history: &'a History, mark: &'a str) -> impl Iterator<Item = &'a Call> {
    history
        .calls
        .iter()
        .filter(move |call| !call.internal() && said(call).contains(mark))
}

/// What the person said: a new agent session is told before it what the thread was about, which names earlier prompts.
fn said(call: &Call) -> &str {
    if call
        .user
        .starts_with("The conversation of this thread went on elsewhere")
    {
        call.user.split_once("\n\n").map_or("", |(_, said)| said)
    } else {
        &call.user
    }
}

fn marks(history: &History) -> impl Iterator<Item = (&Accepted, &str)> {
    history
        .accepted
        .iter()
        .filter_map(|accepted| Some((accepted, accepted.mark.as_deref()?)))
}

/// Promise 10: nothing is asked of the model for a turn that has ended.
///
/// # Errors
/// The turn, and how long after its end.
pub fn no_stray_run(history: &History) -> Result<(), String> {
    for (accepted, mark) in marks(history) {
        let Some(ended_ms) = ends(history, &accepted.turn)
            .first()
            .map(|ended| ended.at_ms)
        else {
            continue;
        };
        let late = calls_of(history, mark)
            .map(|call| call.time_ms.saturating_sub(ended_ms))
            .find(|late_ms| *late_ms > ANSWER_LATE_MS);
        if let Some(late_ms) = late {
            return Err(format!(
                "the agent went on with turn {} {late_ms} ms after its end",
                accepted.turn
            ));
        }
    }
    Ok(())
}

/// How often posts of a turn call somebody at its end: by a line of the answer, or by one of its own.
///
/// # Errors
/// Who is called besides `person`.
pub fn calls_at_end(history: &History, turn: &str, person: &str) -> Result<usize, String> {
    let answer = (0..10).map(PostKind::Chunk);
    let kinds = answer.chain([PostKind::Call]);
    let posts = kinds.flat_map(|kind| named(history, turn, &kind));
    let mut calls = 0;
    for post in posts {
        let called = |line: &str| {
            let id = line.trim().strip_prefix("<@")?.strip_suffix('>')?;
            Some(id.to_owned())
        };
        // Slack has every word of a post a second time, for notifications.
        let called: BTreeSet<String> = post.text.lines().filter_map(called).collect();
        if let Some(other) = called.iter().find(|id| *id != person) {
            return Err(format!("{turn} called {other}"));
        }
        calls += called.len();
    }
    Ok(calls)
}

/// Promise 4. What was sent into a running turn came before others by a person's wish.
///
/// # Errors
/// The prompt that came before its turn.
pub fn in_order(history: &History) -> Result<(), String> {
    let joined = |turn: &String| {
        let mut ended = history.session.ended.iter();
        ended.any(|one| one.id == *turn && matches!(one.outcome, Outcome::Joined { .. }))
    };
    let waited = marks(history).filter(|(accepted, _)| !joined(&accepted.turn));
    let firsts = waited.filter_map(|(accepted, mark)| {
        Some((
            &accepted.turn,
            calls_of(history, mark).map(|call| call.time_ms).min()?,
        ))
    });
    let firsts: Vec<_> = firsts.collect();
    match firsts.windows(2).find(|pair| pair[0].1 > pair[1].1) {
        Some(pair) => Err(format!(
            "{} reached the agent before {}",
            pair[1].0, pair[0].0
        )),
        None => Ok(()),
    }
}

/// Promise 5: each step of a prompt's run was answered once, in one OpenCode session.
///
/// # Errors
/// The prompt and its steps.
pub fn never_twice(history: &History) -> Result<(), String> {
    for (accepted, mark) in marks(history) {
        let mut steps: Vec<usize> = calls_of(history, mark)
            .filter(|call| call.answered())
            .map(|call| call.tool_results)
            .collect();
        steps.sort_unstable();
        if steps.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(format!(
                "turn {} ran more than once: steps {steps:?}",
                accepted.turn
            ));
        }
        let mut sessions: Vec<&str> = calls_of(history, mark)
            .filter_map(|call| call.session_id.as_deref())
            .collect();
        sessions.sort_unstable();
        sessions.dedup();
        if sessions.len() > 1 {
            return Err(format!(
                "turn {} was prompted in the sessions {sessions:?}",
                accepted.turn
            ));
        }
    }
    Ok(())
}

/// Promise 6: between a prompt's first call of the model and the turn's end nothing began to stop or delete the
/// sandbox, unless a person asked for a reset in this thread.
///
/// # Errors
/// The turn and the change of phase.
pub fn no_stop_under_a_turn(history: &History) -> Result<(), String> {
    if history
        .accepted
        .iter()
        .any(|accepted| accepted.mark.is_none())
    {
        return Ok(());
    }
    let stops = history
        .session
        .timeline
        .iter()
        .filter(|entry| matches!(entry.phase, Phase::Pausing | Phase::Destroying));
    for stop in stops {
        for (accepted, mark) in marks(history) {
            let began = calls_of(history, mark).map(|call| call.time_ms).min();
            let ended = ends(history, &accepted.turn)
                .first()
                .map(|ended| ended.at_ms);
            let (Some(began), Some(ended)) = (began, ended) else {
                continue;
            };
            if (began..ended).contains(&stop.at_ms) {
                return Err(format!(
                    "{} began ({}) while turn {} was running",
                    stop.phase.word(),
                    stop.note,
                    accepted.turn
                ));
            }
        }
    }
    Ok(())
}

/// What belongs to one tenant, and what was said to it or done for it: the calls that the bot made in its threads, and
/// what reached the model in its sessions.
#[derive(Debug, Clone, Default)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// Its words, sandboxes, sessions and credentials: none of them may be seen by another tenant.
    pub own: Vec<String>,
    /// Its calls, each as text.
    pub calls: Vec<String>,
}

/// Promise 7: nothing of a tenant shows up in the calls of another.
///
/// # Errors
/// Whose, and where; or that a tenant has nothing to look for or in, which would prove nothing.
pub fn tenants_apart(tenants: &[Tenant]) -> Result<(), String> {
    for one in tenants {
        if one.own.iter().all(String::is_empty) || one.calls.is_empty() {
            return Err(format!("nothing is known of {}", one.name));
        }
        for other in tenants.iter().filter(|other| other.name != one.name) {
            let seen = one
                .own
                .iter()
                .filter(|own| !own.is_empty())
                .find_map(|own| {
                    let call = other
                        .calls
                        .iter()
                        .find(|call| call.contains(own.as_str()))?;
                    Some((own, call))
                });
            if let Some((own, call)) = seen {
                return Err(format!(
                    "{own:?} of {} shows up in a call of {}: {call}",
                    one.name, other.name
                ));
            }
        }
    }
    Ok(())
}
