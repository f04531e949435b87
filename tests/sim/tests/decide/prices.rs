//! Budgets that somebody else counts: the vendor's account and keys have their own limits.

use super::choice::here;
use super::*;

const WORDS: &str = "The key has reached its limit.";

/// How the turn ended, and how often the prompt was sent.
fn ended(world: &Fake) -> (Outcome, usize) {
    let sent = world.with(|s| s.names.iter().filter(|name| **name == "send_prompt").count());
    (outcomes(world)[1].clone(), sent)
}

fn stopped() -> Outcome {
    Outcome::OverBudget { reason: WORDS.to_owned(), more: 0, by: None }
}

#[test]
fn vendors_refusal_stops_the_turn_by_budget() {
    let world = active();
    world.with(|s| s.names.clear());
    world.with(|s| s.run_end = Some(RunEnd::OverBudget { reason: WORDS.to_owned(), of_key: true }));
    assert_eq!(deliver(&world, &prompt("m2"), 1), Verdict::Done);
    assert_eq!(ended(&world), (stopped(), 1));
}

/// OpenCode would retry for another minute, and leaves no trace of the abort.
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

pub(super) fn offer(models: &[&str], unpriced: &[&str]) -> AgentOptions {
    let names = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    AgentOptions {
        models: names(models),
        agents: vec!["build".to_owned(), "claude".to_owned()],
        unpriced: names(unpriced),
    }
}

fn caps(world: &Fake) {
    world.with(|s| s.settings.budgets.turn = Some(1_000_000));
}

#[test]
fn unpriced_model_is_refused_under_a_budget() {
    let world = Fake::new();
    world.with(|s| s.offer = offer(&["m"], &["m"]));
    caps(&world);
    deliver_until_done(&world, &prompt("m1"), 1);
    assert_eq!(
        outcomes(&world),
        [Outcome::Failed {
            reason: "A budget is set here, but the price of m is unknown, so it would count as free. Choose another model. The operator can name its price in the parameter Overrides (`prices`).".to_owned()
        }]
    );
    world.with(|s| assert!(s.prompted.is_empty()));
    world.with(|s| s.offer = offer(&["m"], &[]));
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
}

/// The choice was accepted while nobody counted.
#[test]
fn budget_set_later_asks_for_prices_again() {
    let world = Fake::new();
    world.with(|s| s.offer = offer(&["m"], &["m"]));
    deliver_until_done(&world, &prompt("m1"), 1);
    assert_eq!(outcomes(&world), [Outcome::Answered]);
    caps(&world);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert!(
        matches!(&outcomes(&world)[1], Outcome::Failed { reason } if reason.contains("the price of m is unknown"))
    );
    world.with(|s| s.offer = offer(&["m"], &[]));
    deliver_until_done(&world, &prompt("m3"), 1);
    deliver_until_done(&world, &prompt("m4"), 1);
    assert_eq!(outcomes(&world)[2..], [Outcome::Answered, Outcome::Answered]);
    world.with(|s| assert_eq!(s.used.len(), 3, "the price is known now"));
}

#[test]
fn unsaid_prices_begin_nothing_under_a_budget() {
    let world = Fake::new();
    caps(&world);
    deliver_until_done(&world, &prompt("m1"), 1);
    assert_eq!(outcomes(&world), [Outcome::Failed { reason: words::PRICES_NOT_SAID.to_owned() }]);
    world.with(|s| assert!(s.prompted.is_empty()));
}

/// Other agents report their costs.
#[test]
fn agents_with_own_figures_need_no_price() {
    let world = Fake::new();
    world.with(|s| s.offer = offer(&["m"], &["m"]));
    caps(&world);
    let wants = Selection {
        runtime: Some("native".to_owned()),
        agent: Some("claude".to_owned()),
        ..Selection::default()
    };
    let asked = Prompt {
        text: "do it".into(),
        by: person("ann"),
        wants,
        membership: here(),
        ..Prompt::default()
    };
    deliver_until_done(&world, &work("m1", Work::Prompt(asked)), 1);
    assert_eq!(outcomes(&world), [Outcome::Answered]);
}
