//! Each promise fails on a history that breaks it: the checks are tested first.

use bobbin_core::base::names::PostKind;
use bobbin_core::records::sandbox::Phase;

use bobbin_sim::promises::*;
use libtest_mimic::{Failed, Trial};

use crate::proof;

/// A history that keeps all promises: one prompt, answered, and its work published.
fn good() -> History {
    let facts = vec![
        Fact::Live(1),
        Fact::Posted { turn: 0, kind: PostKind::Card },
        Fact::Prompted { turn: 0, generation: 1 },
        Fact::Posted { turn: 0, kind: PostKind::Chunk(0) },
        Fact::Told { turn: 0, ending: Ending::Answered },
        Fact::Ended { turn: 0, ending: Ending::Answered },
        Fact::Proposed { commit: "c1".to_owned() },
        pushed(None, "c1"),
        Fact::Requested { branch: "b".to_owned() },
        Fact::Spent { what: "calls", times: 1, bound: 1 },
        Fact::Called { turn: 0, kind: PostKind::Chunk(0), who: vec![WHO_ASKS.to_owned()] },
    ];
    let end = End {
        phase: Phase::Active,
        generation: 1,
        turn: false,
        listed: vec![(1, true)],
        is_settled: true,
    };
    History {
        accepted: vec![Request::Prompt],
        facts,
        parts: 1,
        files: false,
        partial: false,
        who_asks: Some(WHO_ASKS),
        end: Some(end),
    }
}

/// A push that moves the recorded branch from where the record says that it is.
fn pushed(from: Option<&str>, to: &str) -> Fact {
    let (branch, from) = ("b".to_owned(), from.map(str::to_owned));
    let recorded = Some((branch.clone(), from.clone()));
    Fact::Pushed { branch, from, to: to.to_owned(), recorded, dropped: Vec::new() }
}

/// A change that breaks exactly one promise, by its number.
type Break = (u8, &'static str, fn(&mut History));

const BREAKS: [Break; 28] = [
    (1, "two sandboxes", |h| h.facts.push(Fact::Live(2))),
    (2, "an orphan", |h| h.end.as_mut().unwrap().listed.push((0, false))),
    (2, "a sandbox that is missing", |h| h.end.as_mut().unwrap().listed.clear()),
    (2, "a sandbox that runs while the record says paused", |h| {
        h.end.as_mut().unwrap().phase = Phase::Paused
    }),
    (3, "no end", |h| h.facts.retain(|fact| !matches!(fact, Fact::Ended { .. }))),
    (3, "two ends", |h| h.facts.push(Fact::Ended { turn: 0, ending: Ending::Failed })),
    (3, "a card that says something else", |h| h.facts.push(Fact::Shown { turn: 0 })),
    (3, "an answer that is missing", |h| drop(h.facts.remove(3))),
    (3, "an answer that stands twice", |h| h.facts.push(h.facts[3].clone())),
    (3, "a reset that was not told", |h| {
        (h.accepted[0], h.facts[4]) = (Request::Notice, Fact::Shown { turn: 0 })
    }),
    (3, "an operation without an end", |h| h.accepted.push(Request::Operation)),
    (4, "prompts out of order", |h| {
        h.facts.splice(0..0, [Fact::Prompted { turn: 1, generation: 1 }]).for_each(drop)
    }),
    (5, "a prompt in two generations", |h| h.facts.push(Fact::Prompted { turn: 0, generation: 2 })),
    (6, "a stop under a run", |h| h.facts.push(Fact::Hit { generation: 1, turn: 0 })),
    (8, "more calls than the bound", |h| {
        h.facts.push(Fact::Spent { what: "calls", times: 2, bound: 1 })
    }),
    (3, "a card that looks alive", |h| h.facts.push(Fact::Left { turn: 0 })),
    (12, "nobody who is called", |h| drop(h.facts.pop())),
    (12, "somebody who is called twice", |h| h.facts.push(h.facts[h.facts.len() - 1].clone())),
    (12, "somebody else who is called", |h| {
        h.facts.push(Fact::Called {
            turn: 0,
            kind: PostKind::Ask("a".into()),
            who: vec!["bob".to_owned()],
        })
    }),
    (10, "a run that goes on without its turn", |h| h.facts.push(Fact::Astray { turn: 0 })),
    (10, "two threads at work in one workspace", |h| {
        h.facts.push(Fact::Working {
            workspace: "1:project".to_owned(),
            who: vec!["a".to_owned(), "b".to_owned()],
        })
    }),
    (3, "a proposal that was not shown", |h| {
        h.accepted.push(Request::Publication);
        h.facts.push(Fact::Ended { turn: 1, ending: Ending::Answered });
    }),
    (15, "a push of what nobody was shown", |h| h.facts.push(pushed(Some("c1"), "c2"))),
    (15, "a push to a branch that is not on record", |h| {
        let (branch, to) = ("main".to_owned(), "c1".to_owned());
        let recorded = Some(("b".to_owned(), None));
        h.facts.push(Fact::Pushed { branch, from: None, to, recorded, dropped: Vec::new() });
    }),
    (15, "a push from a commit that is not on record", |h| {
        let (branch, to) = ("b".to_owned(), "c1".to_owned());
        let recorded = Some((branch.clone(), Some("c1".to_owned())));
        let (from, dropped) = (Some("c0".to_owned()), Vec::new());
        h.facts.push(Fact::Pushed { branch, from, to, recorded, dropped });
    }),
    (15, "a push over a person's commit", |h| {
        let mut over = pushed(Some("c0"), "c1");
        if let Fact::Pushed { dropped, .. } = &mut over {
            dropped.push("c0".to_owned());
        }
        h.facts.push(over);
    }),
    (15, "a second pull request of a branch", |h| {
        h.facts.push(Fact::Requested { branch: "b".to_owned() })
    }),
    (9, "a turn that stays", |h| h.end.as_mut().unwrap().turn = true),
];

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![proof("protocol::promises::good_history_keeps_every_promise", || {
        check(&good()).map_err(Failed::from)
    })];
    trials.extend(BREAKS.map(|(number, what, spoil)| {
        proof(format!("protocol::promises::{what} is found").replace(' ', "_"), move || {
            let mut history = good();
            spoil(&mut history);
            let broken: Vec<u8> = ALL
                .iter()
                .filter(|promise| (promise.holds)(&history).is_err())
                .map(|promise| promise.number)
                .collect();
            if broken == [number] {
                Ok(())
            } else {
                Err(format!("promise {number} is broken, found were {broken:?}").into())
            }
        })
    }));
    trials
}
