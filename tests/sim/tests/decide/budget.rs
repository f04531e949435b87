//! Budgets that somebody else counts: the model's vendor has an account and keys with limits of their own.

use super::*;

const WORDS: &str = "The key has reached its limit.";

/// How the turn ended, and how often the prompt was sent.
fn ended(world: &Fake) -> (Outcome, usize) {
    let sent = world.with(|s| s.names.iter().filter(|name| **name == "send_prompt").count());
    (outcomes(world)[1].clone(), sent)
}

fn stopped() -> Outcome {
    Outcome::OverBudget { reason: WORDS.to_owned(), more: 0 }
}

#[test]
fn vendors_refusal_stops_the_turn_by_budget() {
    let world = active();
    world.with(|s| s.names.clear());
    world.with(|s| s.run_end = Some(RunEnd::OverBudget { reason: WORDS.to_owned() }));
    assert_eq!(deliver(&world, &prompt("m2"), 1), Verdict::Done);
    assert_eq!(ended(&world), (stopped(), 1));
}

/// OpenCode would ask for another minute, and leaves no word of the abort.
#[test]
fn vendors_refusal_is_not_waited_for() {
    let world = active();
    world.with(|s| {
        s.names.clear();
        s.fail.insert("follow", vec![Failure::OverBudget { reason: WORDS.to_owned() }]);
        (s.run_end, s.answers) = (Some(RunEnd::Unexplained), Some(String::new()));
    });
    assert_eq!(deliver(&world, &prompt("m2"), 1), Verdict::Done);
    assert_eq!(ended(&world), (stopped(), 1));
    assert!(world.with(|s| s.aborted));
}
