//! The design's promises, each a function over the observations of one thread. The protocol's model, its histories and
//! crashes, and every end-to-end scenario at its end check all of them.

mod history;

use bobbin_core::base::names::PostKind;
use bobbin_core::records::sandbox::Phase;

pub use history::{End, Ending, Fact, History, Request};

/// A chat that refused this many of a turn's posts need not show its end.
const REFUSALS_MIN: usize = 5;

/// A promise: its number in the design, its sentence, and its check.
#[derive(Debug, Clone, Copy)]
pub struct Promise {
    /// The number by which DESIGN and PROTOCOL name it.
    pub number: u8,
    /// What is promised, in a sentence.
    pub words: &'static str,
    /// Fails with what breaks the promise.
    pub holds: fn(&History) -> Result<(), String>,
}

/// All promises that one thread can show, and the twelfth, which the design does not have. The seventh is about two
/// tenants, the eleventh about credentials in a sandbox. The ninth is about all reachable states: in one history, that
/// it ends at all.
pub const ALL: [Promise; 11] = [
    Promise { number: 1, words: "at most one live sandbox a thread", holds: one_live_sandbox },
    Promise { number: 2, words: "no orphan once all is quiet", holds: no_orphan },
    Promise {
        number: 3,
        words: "every accepted message ends exactly once, visibly",
        holds: ended_once_visibly,
    },
    Promise {
        number: 4,
        words: "prompts reach the agent in acceptance order, except where a person did not want to wait",
        holds: in_order,
    },
    Promise { number: 5, words: "no prompt reaches an agent twice", holds: never_twice },
    Promise {
        number: 6,
        words: "no stop or delete hits a running turn unless a person asked",
        holds: no_hit,
    },
    Promise { number: 8, words: "everything is bounded", holds: bounded },
    Promise { number: 9, words: "the thread converges", holds: converged },
    Promise {
        number: 12,
        words: "who asked is called once at the end and once for an ask, and nobody else ever is",
        holds: only_who_asked_is_called,
    },
    Promise {
        number: 10,
        words: "two turns never work in one workspace at the same time, and no run goes on that no turn owns",
        holds: one_at_a_time,
    },
    Promise {
        number: 15,
        words: "a push moves only the branch on record, from the commit on record to one that was shown",
        holds: pushed_as_shown,
    },
];

/// The person who asks everything in the simulators.
pub const WHO_ASKS: &str = "ann";

/// Bit n is set if the n-th of [`ALL`] is broken.
#[must_use]
pub fn broken(history: &History) -> u16 {
    ALL.iter().enumerate().fold(0, |bits, (at, promise)| {
        if (promise.holds)(history).is_err() { bits | 1 << at } else { bits }
    })
}

/// Whether these bits of [`broken`] include the promise with this number.
#[must_use]
pub fn is_broken(bits: u16, number: u8) -> bool {
    ALL.iter().position(|promise| promise.number == number).is_some_and(|at| bits & (1 << at) != 0)
}

/// Checks all of them at the end of a history.
///
/// # Errors
/// Every broken one with what breaks it.
pub fn check(history: &History) -> Result<(), String> {
    let broken: Vec<String> = ALL
        .iter()
        .filter_map(|promise| {
            (promise.holds)(history)
                .err()
                .map(|why| format!("promise {} ({}): {why}", promise.number, promise.words))
        })
        .collect();
    if broken.is_empty() { Ok(()) } else { Err(broken.join("; ")) }
}

fn one_live_sandbox(history: &History) -> Result<(), String> {
    let most = history
        .facts
        .iter()
        .filter_map(|fact| if let Fact::Live(count) = fact { Some(*count) } else { None })
        .max();
    match most {
        Some(count) if count > 1 => Err(format!("{count} sandboxes of the present generation")),
        _ => Ok(()),
    }
}

fn no_orphan(history: &History) -> Result<(), String> {
    let Some(end) = &history.end else {
        return Ok(());
    };
    if !end.is_settled {
        let orphan = |(generation, _): &&(u32, bool)| *generation != end.generation;
        return match end.listed.iter().find(orphan) {
            Some((generation, _)) => Err(format!(
                "the record is at generation {}, the provider lists {generation}",
                end.generation
            )),
            None => Ok(()),
        };
    }
    let wanted = match end.phase {
        Phase::Active => Some((end.generation, true)),
        Phase::Paused => Some((end.generation, false)),
        _ => None,
    };
    if end.listed.iter().copied().eq(wanted) {
        return Ok(());
    }
    // What the provider did by itself is noticed when the sandbox is next needed or due; an extra sandbox is never
    // right.
    let disturbed = history.facts.contains(&Fact::Disturbed { generation: end.generation });
    if disturbed
        && end
            .listed
            .iter()
            .all(|(generation, _)| wanted.is_some_and(|(live, _)| *generation == live))
    {
        return Ok(());
    }
    Err(format!(
        "the record says {} in generation {}, the provider lists {:?}",
        end.phase.word(),
        end.generation,
        end.listed
    ))
}

fn ended_once_visibly(history: &History) -> Result<(), String> {
    let mut posted: Vec<(usize, &PostKind)> = Vec::with_capacity(8);
    for fact in &history.facts {
        if let Fact::Posted { turn, kind } = fact {
            if posted.contains(&(*turn, kind)) {
                return Err(format!("{kind:?} of turn {turn} stands twice"));
            }
            posted.push((*turn, kind));
        }
    }
    for (turn, kind) in history.accepted.iter().enumerate() {
        let mut ends = history.facts.iter().filter_map(|fact| match fact {
            Fact::Ended { turn: at, ending } if *at == turn => Some(*ending),
            _ => None,
        });
        let (first, second) = (ends.next(), ends.next());
        if second.is_some() {
            return Err(format!("turn {turn} ended twice: {first:?}, {second:?}"));
        }
        if history.end.is_none() {
            continue;
        }
        let Some(ending) = first else {
            return Err(format!("turn {turn} has no end"));
        };
        let stands = |kind: &PostKind| posted.contains(&(turn, kind));
        let count = |wanted: &Fact| history.facts.iter().filter(|fact| *fact == wanted).count();
        // After repeated refusals only the record says it.
        if count(&Fact::Refused { turn }) >= REFUSALS_MIN {
            continue;
        }
        if *kind == Request::Operation {
            continue;
        }
        if let Request::Notice | Request::Publication = kind {
            let is_shown = *kind == Request::Publication && stands(&PostKind::Review);
            if !is_shown && !stands(&PostKind::Notice) {
                return Err(format!("what {turn} asked for was not answered"));
            }
            continue;
        }
        let shown = history.facts.iter().rev().find_map(|fact| match fact {
            Fact::Told { turn: at, ending } if *at == turn => Some(Some(*ending)),
            Fact::Shown { turn: at } if *at == turn => Some(None),
            _ => None,
        });
        if shown != Some(Some(ending)) {
            return Err(format!("turn {turn} ended as {ending:?}, but its card says {shown:?}"));
        }
        let parts = (0..history.parts).filter(|part| stands(&PostKind::Chunk(*part))).count();
        if count(&Fact::Left { turn }) > 0 {
            return Err(format!("a card of turn {turn} still looks alive"));
        }
        if ending == Ending::Answered && parts < history.parts as usize {
            return Err(format!(
                "turn {turn} was answered, but {parts} parts of {} stand",
                history.parts
            ));
        }
        // Nothing kept its file from being read and shown.
        let undisturbed = count(&Fact::Withheld { turn }) == 0
            && count(&Fact::Refused { turn }) == 0
            && count(&Fact::Closed { turn }) == 0
            && !history.facts.iter().any(|fact| matches!(fact, Fact::Disturbed { .. }));
        if history.files
            && ending == Ending::Answered
            && undisturbed
            && !stands(&PostKind::Artifact(0))
        {
            return Err(format!("turn {turn} was answered, but its file is not shown"));
        }
        // What was posted before the agent fell silent stays, whatever the end is then called.
        let cut_short = count(&Fact::Withheld { turn }) > 0
            || history.facts.iter().any(|fact| matches!(fact, Fact::Disturbed { .. }));
        let may_stand = match ending {
            Ending::Answered => true,
            Ending::Cancelled | Ending::OverBudget => history.partial || cut_short,
            Ending::Failed | Ending::Lost | Ending::Joined => cut_short,
        };
        if parts > 0 && !may_stand {
            return Err(format!("turn {turn} ended as {ending:?}, but an answer stands"));
        }
    }
    Ok(())
}

fn prompted(history: &History) -> impl Iterator<Item = (usize, u32)> {
    history.facts.iter().filter_map(|fact| {
        if let Fact::Prompted { turn, generation } = fact {
            Some((*turn, *generation))
        } else {
            None
        }
    })
}

fn in_order(history: &History) -> Result<(), String> {
    let mut latest = 0;
    let steered = |turn: &usize| history.facts.contains(&Fact::Steered { turn: *turn });
    for (turn, _) in prompted(history).filter(|(turn, _)| !steered(turn)) {
        if turn < latest {
            return Err(format!("turn {turn} reached the agent after turn {latest}"));
        }
        latest = turn;
    }
    Ok(())
}

fn never_twice(history: &History) -> Result<(), String> {
    let mut seen: Vec<(usize, u32)> = Vec::with_capacity(4);
    for (turn, generation) in prompted(history) {
        if let Some((_, before)) = seen.iter().find(|(other, _)| *other == turn) {
            return Err(format!(
                "turn {turn} reached the agent in generation {before} and again in {generation}"
            ));
        }
        seen.push((turn, generation));
    }
    Ok(())
}

fn only_who_asked_is_called(history: &History) -> Result<(), String> {
    let Some(who_asks) = history.who_asks else {
        return Ok(());
    };
    let calls = |wanted: usize| {
        history.facts.iter().filter_map(move |fact| match fact {
            Fact::Called { turn, kind, who } if *turn == wanted => Some((kind, who)),
            _ => None,
        })
    };
    for (turn, kind) in history.accepted.iter().enumerate() {
        if let Some((kind, who)) = calls(turn).find(|(_, who)| *who != &[who_asks]) {
            return Err(format!("{kind:?} of turn {turn} called {who:?}"));
        }
        let is_ask = |kind: &PostKind| matches!(kind, PostKind::Ask(_));
        let asks: Vec<&PostKind> =
            calls(turn).map(|(kind, _)| kind).filter(|kind| is_ask(kind)).collect();
        if asks.iter().enumerate().any(|(at, kind)| asks[..at].contains(kind)) {
            return Err(format!("turn {turn} called twice for one ask"));
        }
        let count = |wanted: &Fact| history.facts.iter().filter(|fact| *fact == wanted).count();
        let ended = history.facts.iter().find_map(|fact| match fact {
            Fact::Ended { turn: at, ending } if *at == turn => Some(*ending),
            _ => None,
        });
        let (Some(ending), Request::Prompt) = (ended, kind) else {
            continue;
        };
        // A joined prompt is answered, and its sender mentioned, with the turn it joined.
        let steered = count(&Fact::Steered { turn }) > 0;
        let least = match ending {
            _ if steered || count(&Fact::Refused { turn }) >= REFUSALS_MIN => 0,
            // Whoever stops their own turn needs no mention.
            Ending::Cancelled | Ending::Joined => 0,
            Ending::Answered | Ending::Failed | Ending::OverBudget | Ending::Lost => 1,
        };
        // An answer whose last part was posted but could not be read again is reported as failed or lost, with its own
        // mention.
        let cut_short = count(&Fact::Withheld { turn }) > 0
            || history.facts.iter().any(|fact| matches!(fact, Fact::Disturbed { .. }));
        let most =
            if steered { 0 } else { 1 + usize::from(cut_short && ending != Ending::Answered) };
        let ends = calls(turn).filter(|(kind, _)| !is_ask(kind)).count();
        if history.end.is_some() && !(least..=most).contains(&ends) {
            return Err(format!("turn {turn} ended as {ending:?} and called {ends} times"));
        }
    }
    Ok(())
}

fn no_hit(history: &History) -> Result<(), String> {
    match history.facts.iter().find(|fact| matches!(fact, Fact::Hit { .. })) {
        Some(hit) => Err(format!("{hit:?}")),
        None => Ok(()),
    }
}

fn one_at_a_time(history: &History) -> Result<(), String> {
    let crowded = |fact: &&Fact| matches!(fact, Fact::Working { who, .. } if who.len() > 1);
    if let Some(Fact::Working { workspace, who }) = history.facts.iter().find(crowded) {
        let who = who.join(" and ");
        return Err(format!("{who} worked in {workspace} at the same time"));
    }
    let astray = |fact: &&Fact| matches!(fact, Fact::Astray { .. });
    match history.facts.iter().find(astray) {
        Some(Fact::Astray { turn }) => {
            Err(format!("the agent went on with turn {turn}, which had ended"))
        }
        _ => Ok(()),
    }
}

/// A person's commits stay on a branch. A branch has one pull request, unless a person closes that while the call for
/// another is under way.
fn pushed_as_shown(history: &History) -> Result<(), String> {
    for (at, fact) in history.facts.iter().enumerate() {
        let before = &history.facts[..at];
        match fact {
            Fact::Pushed { branch, from, to, recorded, dropped } => {
                if recorded.as_ref() != Some(&(branch.clone(), from.clone())) {
                    return Err(format!(
                        "{branch} was moved from {from:?} to {to}, and on record was {recorded:?}"
                    ));
                }
                if !before.contains(&Fact::Proposed { commit: to.clone() }) {
                    return Err(format!("{to} was pushed, and nobody had been shown it"));
                }
                if let Some(commit) = dropped.first() {
                    return Err(format!("{branch} has a person's commit {commit} no more"));
                }
            }
            Fact::Requested { branch } => {
                let closed = Fact::PersonClosed { branch: branch.clone() };
                let last = before.iter().rev().find(|one| *one == fact || **one == closed);
                if last == Some(fact) {
                    return Err(format!("{branch} has two pull requests"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn bounded(history: &History) -> Result<(), String> {
    let over = history
        .facts
        .iter()
        .find(|fact| matches!(fact, Fact::Spent { times, bound, .. } if times > bound));
    match over {
        Some(spent) => Err(format!("{spent:?}")),
        None => Ok(()),
    }
}

/// The suite checks that it ends at all; this checks that the end is settled.
fn converged(history: &History) -> Result<(), String> {
    let Some(end) = &history.end else {
        return Ok(());
    };
    if end.turn {
        return Err("a turn is still on record".to_owned());
    }
    match end.phase {
        Phase::Active | Phase::Paused | Phase::Destroyed | Phase::Error => Ok(()),
        _ if !end.is_settled => Ok(()),
        phase => Err(format!("the sandbox stays {}", phase.word())),
    }
}
