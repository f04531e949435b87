//! `docs/PROTOCOL.md` against the code: the table of transitions in its appendix is exactly what the product did in
//! models, histories and crashes, and the page names every phase and every class of failure.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use bobbin_core::records::sandbox::Phase;
use libtest_mimic::{Failed, Trial};

use super::transitions::{FAILURES, Transition};
use super::{chaos, crash, model};
use crate::{deep, proof};

const DOCUMENT: &str = include_str!("../../../../docs/PROTOCOL.md");
const TRANSITIONS: &str = include_str!("../../../../docs/appendix/TRANSITIONS.md");
/// The head of the table of transitions.
const HEAD: &str = "| from | message | event | to |";
/// Most histories until every line of the table was seen, and histories between two checks.
const SEEDS_MAX: u64 = 2_000;
const SEEDS_AT_ONCE: usize = 100;

/// Runs and returns what it saw.
type Proof = fn() -> Result<BTreeSet<Transition>, String>;

/// A change of phase, in the document's words.
type Line = [String; 4];

fn documented() -> BTreeSet<Line> {
    let table = TRANSITIONS
        .lines()
        .skip_while(|line| *line != HEAD)
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    table
        .filter_map(|line| {
            let cells: Vec<String> =
                line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
            cells.try_into().ok()
        })
        .collect()
}

fn changes(transitions: &BTreeSet<Transition>) -> BTreeSet<Line> {
    let changes = transitions.iter().filter(|transition| transition.from != transition.to);
    changes.map(|t| [t.from, t.work, t.event, t.to].map(str::to_owned)).collect()
}

fn shown(lines: &[&Line]) -> String {
    lines.iter().map(|line| format!("| {} |", line.join(" | "))).collect::<Vec<_>>().join("\n")
}

/// What this run's proofs have seen so far.
static SEEN: Mutex<BTreeSet<Line>> = Mutex::new(BTreeSet::new());

/// Changes that the document does not have. All of them count as seen.
///
/// # Errors
/// Their lines.
pub fn has(transitions: &BTreeSet<Transition>) -> Result<(), String> {
    let (seen, documented) = (changes(transitions), documented());
    SEEN.lock().unwrap_or_else(PoisonError::into_inner).extend(seen.iter().cloned());
    let unsaid: Vec<&Line> = seen.difference(&documented).collect();
    if unsaid.is_empty() {
        Ok(())
    } else {
        Err(format!("docs/appendix/TRANSITIONS.md lacks:\n{}", shown(&unsaid)))
    }
}

/// Every line of the table happens. Each proof checks with [`has`] that nothing else happens.
fn the_table_is_what_happens() -> Result<(), Failed> {
    let documented = documented();
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let few = model::transitions_of_few_states();
    // Rare changes need many histories: as many as necessary, within a bound.
    let histories = (0..SEEDS_MAX).step_by(SEEDS_AT_ONCE);
    let histories = histories.map(|seeds| chaos::run(seeds..seeds + SEEDS_AT_ONCE as u64));
    let quick: [Proof; 3] = [crash::singly, chaos::run_shared, chaos::run_published];
    let quick = quick.into_iter().map(|run| run());
    let mut more = quick.chain(few).chain(histories);
    while !documented.is_subset(&seen) {
        let Some(transitions) = more.next() else {
            let unseen: Vec<&Line> = documented.difference(&seen).collect();
            let unseen = shown(&unseen);
            return Err(
                format!("docs/appendix/TRANSITIONS.md says, but nothing did:\n{unseen}").into()
            );
        };
        seen.extend(changes(&transitions?));
    }
    println!("{} changes of phase, all documented and all seen", documented.len());
    Ok(())
}

fn every_phase_and_failure_is_named() -> Result<(), Failed> {
    let words = Phase::ALL.iter().map(|phase| phase.word()).chain(FAILURES);
    let missing: Vec<&str> =
        words.filter(|word| !DOCUMENT.contains(&format!("| `{word}` |"))).collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("docs/PROTOCOL.md has no row for {missing:?}").into())
    }
}

/// Checking that every line happens takes minutes of histories, so it runs at night. By day each proof checks that
/// nothing else happens.
pub fn trials() -> Vec<Trial> {
    let mut trials = vec![proof(
        "protocol::document::every_phase_and_failure_is_named",
        every_phase_and_failure_is_named,
    )];
    if crate::at_night() {
        trials.push(deep(proof(
            "protocol::document::documented_table_matches_behaviour",
            the_table_is_what_happens,
        )));
    }
    trials
}
