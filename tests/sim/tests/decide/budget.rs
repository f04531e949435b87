//! Money is reserved before it is spent, and settled however a turn ends.

use super::prices::offer;
use super::publish::notices;
use super::*;
use bobbin_core::base::ids::TurnId;
use bobbin_core::base::person::Membership;
use bobbin_core::records::card::CardState;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::tenant::budgets::{BudgetKind, BudgetScope, Budgets, MicroUsd};

pub(super) const DOLLAR: MicroUsd = 1_000_000;
pub(super) const CENT: MicroUsd = 10_000;

fn month() -> String {
    "1970-01".to_owned()
}

fn of_tenant() -> BudgetScope {
    BudgetScope::Tenant { month: month() }
}

fn of_ann() -> BudgetScope {
    BudgetScope::Person { id: "ann".to_owned(), day: "1970-01-01".to_owned() }
}

fn of_channel() -> BudgetScope {
    BudgetScope::Channel { id: "10".to_owned(), month: month() }
}

/// A thread whose turns each cost this much.
pub(super) fn costing(budgets: Budgets, cost: MicroUsd) -> Fake {
    let world = Fake::new();
    world.with(|s| (s.settings.budgets, s.spent) = (budgets, Some(cost)));
    world.with(|s| s.offer = offer(&["m"], &[]));
    world
}

pub(super) fn asked(id: &str, change: impl FnOnce(&mut Prompt)) -> Message {
    let mut prompt = Prompt {
        text: "do it".into(),
        by: person("ann"),
        membership: Membership { channel: "10".into(), ..Membership::default() },
        ..Prompt::default()
    };
    change(&mut prompt);
    work(id, Work::Prompt(prompt))
}

pub(super) fn ask(world: &Fake, id: &str) -> Outcome {
    deliver_until_done(world, &asked(id, |_| ()), 1);
    outcomes(world).pop().unwrap()
}

fn sums(world: &Fake) -> Vec<(BudgetScope, MicroUsd)> {
    world.with(|s| s.sums.clone().into_iter().collect())
}

fn uses(world: &Fake, scope: BudgetScope, used: MicroUsd) {
    world.with(|s| s.sums.insert(scope, used));
}

/// The message of a turn that a budget ended.
fn words(outcome: Outcome) -> String {
    match outcome {
        Outcome::OverBudget { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

pub(super) fn all_set() -> Budgets {
    Budgets {
        turn: Some(2 * DOLLAR),
        thread: Some(20 * DOLLAR),
        person_day: Some(10 * DOLLAR),
        channel_month: Some(100 * DOLLAR),
        month: Some(300 * DOLLAR),
    }
}

#[test]
fn nothing_is_counted_before_somebody_sets_it() {
    let world = costing(Budgets::default(), 42 * CENT);
    assert_eq!(ask(&world, "m1"), Outcome::Answered);
    assert_eq!((sums(&world), record(&world).spent), (Vec::new(), 42 * CENT));
}

#[test]
fn what_is_set_aside_is_settled() {
    let world = costing(all_set(), 42 * CENT);
    world.with(|s| s.limits.budget.stack_month_cents = 100_000);
    world.with(|s| s.crash_at = Some((s.calls + 3, false)));
    let died = catch_unwind(AssertUnwindSafe(|| deliver(&world, &asked("m1", |_| ()), 1)));
    assert!(died.is_err());
    world.with(|s| s.crash_at = None);
    let stack = BudgetScope::Stack { month: month() };
    let scopes = [of_ann(), of_channel(), of_tenant(), stack];
    let each = |amount| scopes.clone().map(|scope| (scope, amount)).to_vec();
    assert_eq!(sums(&world), each(2 * DOLLAR));
    deliver_until_done(&world, &asked("m1", |_| ()), 2);
    assert_eq!((sums(&world), record(&world).spent), (each(42 * CENT), 42 * CENT));
    assert_eq!(ask(&world, "m2"), Outcome::Answered);
    assert_eq!((sums(&world), record(&world).spent), (each(84 * CENT), 84 * CENT));
}

#[test]
fn first_exhausted_budget_refuses_in_words() {
    let used_up = |scope: BudgetScope, used| {
        let world = costing(all_set(), CENT);
        world.with(|s| s.limits.budget.stack_month_cents = 100_000);
        uses(&world, scope.clone(), used);
        let words = words(ask(&world, "m1"));
        assert_eq!(sums(&world), [(scope, used)], "nothing was set aside");
        words
    };
    assert_eq!(
        used_up(of_ann(), 10 * DOLLAR),
        "The daily budget of each person of $10.00 is used up, or set aside for tasks that run now, so this was not started. It resets on 1970-01-02, 00:00 UTC. A manager can let it go on, or raise it."
    );
    assert_eq!(
        used_up(of_channel(), 100 * DOLLAR - CENT),
        "This channel's monthly budget of $100.00 is used up, or set aside for tasks that run now, so this was not started. It resets on 1970-02-01, 00:00 UTC. A manager can let it go on, or raise it."
    );
    assert_eq!(
        used_up(of_tenant(), 301 * DOLLAR),
        "This place's monthly budget of $300.00 is used up, or set aside for tasks that run now, so this was not started. It resets on 1970-02-01, 00:00 UTC. A manager can let it go on, or raise it."
    );
    assert_eq!(
        used_up(BudgetScope::Stack { month: month() }, 1_000 * DOLLAR),
        "Bobbin's overall monthly budget of $1,000.00 is used up, or set aside for tasks that run now, so this was not started. It resets on 1970-02-01, 00:00 UTC. Only the operator can raise it."
    );
    let world = costing(Budgets { thread: Some(DOLLAR), ..Budgets::default() }, DOLLAR);
    ask(&world, "m1");
    assert_eq!(
        words(ask(&world, "m2")),
        "This thread's budget of $1.00 is used up, so this was not started. Whoever may give tasks here can let it go on."
    );
    assert_eq!(world.with(|s| s.prompted.len()), 1);
}

#[test]
fn rest_of_a_budget_can_still_be_spent() {
    let world = costing(all_set(), CENT);
    uses(&world, of_tenant(), 300 * DOLLAR - 30 * CENT);
    world.with(|s| s.silent_agent = true);
    world.with(|s| s.spent = Some(29 * CENT));
    assert!(matches!(deliver(&world, &asked("m1", |_| ()), 1), Verdict::Hold { .. }));
    let reserved = record(&world).turn.unwrap().reserved.unwrap();
    assert_eq!((reserved.amount, sums(&world)[0].1), (30 * CENT, 30 * CENT));
    world.with(|s| s.spent = Some(31 * CENT));
    deliver_until_done(&world, &asked("m1", |_| ()), 2);
    assert_eq!(
        words(outcomes(&world).pop().unwrap()),
        "It has spent the $0.30 that was left of this place's budget for this month. The sandbox and the conversation are kept."
    );
    assert_eq!(world.with(|s| s.sums[&of_tenant()]), 300 * DOLLAR + CENT);
}

/// A turn that its own budget has stopped.
fn stopped(budgets: Budgets) -> Fake {
    let world = costing(budgets, 2 * DOLLAR);
    world.with(|s| s.silent_agent = true);
    deliver_until_done(&world, &asked("m1", |_| ()), 1);
    world.with(|s| (s.silent_agent, s.aborted, s.spent) = (false, false, Some(CENT)));
    world
}

#[test]
fn spent_turn_is_stopped_and_can_continue() {
    let world = stopped(all_set());
    let outcome = outcomes(&world).pop().unwrap();
    let reason =
        "It has spent its budget of $2.00. The sandbox and the conversation are kept.".to_owned();
    assert_eq!(
        outcome,
        Outcome::OverBudget { reason, more: 2 * DOLLAR, by: Some(BudgetKind::Turn) }
    );
    assert_eq!(outcome.again_label().as_deref(), Some("Continue (+$2.00)"));
    let card = world.with(|s| match s.posts.values().find(|post| matches!(post, Post::Card(_))) {
        Some(Post::Card(card)) => card.clone(),
        other => panic!("{other:?}"),
    });
    assert!(matches!(card.state, CardState::Ended { outcome: Outcome::OverBudget { .. }, .. }));
    assert_eq!(card.spending.unwrap().fact(), "$2.00 of $2.00");
    let again = world.with(|s| s.ledger[&TurnId::from("m1")].again.clone()).unwrap();
    assert_eq!(
        (&*again.text, again.extends),
        (
            "You were stopped because the budget of the task was spent. Continue where you stopped.",
            Some(BudgetKind::Turn)
        )
    );
    assert_eq!(world.with(|s| s.sums[&of_tenant()]), 2 * DOLLAR);
    deliver_until_done(&world, &work("m2", Work::Prompt(again)), 1);
    assert_eq!(outcomes(&world).pop(), Some(Outcome::Answered));
    assert_eq!(record(&world).sandbox.generation, 1);
    assert_eq!(world.with(|s| s.sums[&of_tenant()]), 2 * DOLLAR + CENT);
}

/// The request to continue is not recorded as a person's task.
#[test]
fn second_continue_quotes_the_first_task() {
    let world = stopped(all_set());
    let entry = |turn: &str| world.with(|s| s.ledger[&TurnId::from(turn)].clone());
    let again = entry("m1").again.unwrap();
    assert_eq!(again.task(), "do it");
    world.with(|s| (s.silent_agent, s.spent) = (true, Some(2 * DOLLAR)));
    deliver_until_done(&world, &work("m2", Work::Prompt(again)), 1);
    assert!(matches!(outcomes(&world).pop(), Some(Outcome::OverBudget { .. })));
    let entry = entry("m2");
    let again = entry.again.unwrap();
    assert_eq!((&*entry.asked, again.task()), ("do it", "do it"));
    assert!(again.text.starts_with("You were stopped"), "{again:?}");
}

#[test]
fn press_passes_only_what_its_author_may() {
    let spent = |scope: BudgetScope, used| {
        let world = costing(all_set(), CENT);
        world.with(|s| s.limits.budget.stack_month_cents = 100_000);
        uses(&world, scope, used);
        world
    };
    let press = |world: &Fake, kind, manages| {
        let message = asked("m1", |prompt| {
            (prompt.extends, prompt.membership.manages) = (Some(kind), manages);
        });
        deliver_until_done(world, &message, 1);
        outcomes(world).pop().unwrap() == Outcome::Answered
    };
    for (scope, used) in
        [(of_ann(), 10 * DOLLAR), (of_channel(), 100 * DOLLAR), (of_tenant(), 300 * DOLLAR)]
    {
        let kind = scope.kind();
        assert!(!press(&spent(scope.clone(), used), kind, false), "{scope:?}");
        assert!(press(&spent(scope.clone(), used), kind, true), "{scope:?}");
        // Only what the card has shown.
        assert!(!press(&spent(scope.clone(), used), BudgetKind::Turn, true), "{scope:?}");
    }
    let stack = BudgetScope::Stack { month: month() };
    assert!(!press(&spent(stack, 1_000 * DOLLAR), BudgetKind::Stack, true));
    let thread = stopped(Budgets { thread: Some(2 * DOLLAR), ..Budgets::default() });
    let message = asked("m2", |prompt| prompt.extends = Some(BudgetKind::Thread));
    deliver_until_done(&thread, &message, 1);
    assert_eq!(outcomes(&thread).pop(), Some(Outcome::Answered));
}

#[test]
fn nothing_stays_set_aside_after_a_crash() {
    let begun = || costing(all_set(), 42 * CENT);
    let crashes = each_crash(begun, &asked("m1", |_| ()), |world, crash| {
        assert_eq!(outcomes(world).len(), 1, "{crash}");
        let used: Vec<MicroUsd> = sums(world).into_iter().map(|(_, used)| used).collect();
        assert_eq!(used, [42 * CENT; 3], "{crash}");
        assert_eq!(record(world).spent, 42 * CENT, "{crash}");
    });
    assert!(crashes > 20, "{crashes}");
}

#[test]
fn lost_turn_counts_what_was_seen() {
    let world = costing(all_set(), 70 * CENT);
    world.with(|s| s.silent_agent = true);
    assert!(matches!(deliver(&world, &asked("m1", |_| ()), 1), Verdict::Hold { .. }));
    world.with(|s| s.sandboxes.clear());
    deliver_until_done(&world, &asked("m1", |_| ()), 2);
    assert_ne!(outcomes(&world), [Outcome::Answered]);
    assert_eq!(
        (world.with(|s| s.sums[&of_tenant()]), record(&world).spent),
        (70 * CENT, 70 * CENT)
    );
    assert_eq!(notices(&world), [""; 0]);
}

#[test]
fn turn_that_another_message_ends_is_settled() {
    let world = costing(all_set(), 70 * CENT);
    world.with(|s| s.silent_agent = true);
    assert!(matches!(deliver(&world, &asked("m1", |_| ()), 1), Verdict::Hold { .. }));
    world.with(|s| (s.silent_agent, s.spent) = (false, Some(CENT)));
    // Its message is gone from the queue, and the next one ends it and begins in one write.
    deliver_until_done(&world, &asked("m2", |_| ()), 1);
    assert_eq!(outcomes(&world).pop(), Some(Outcome::Answered));
    assert_eq!(world.with(|s| s.sums[&of_tenant()]), 71 * CENT);
    assert_eq!(record(&world).spent, 71 * CENT);
}

#[test]
fn refused_turn_pays_for_no_idle_time() {
    let budgets =
        Budgets { person_day: Some(10 * DOLLAR), month: Some(300 * DOLLAR), ..Budgets::default() };
    let world = costing(budgets, CENT);
    world.with(|s| s.limits.budget.sandbox_hour_cents = 60);
    assert_eq!(ask(&world, "m1"), Outcome::Answered);
    let (before, spent) = (world.with(|s| s.sums[&of_tenant()]), record(&world).spent);
    let idle_from_ms = record(&world).sandbox.money.metered_ms.unwrap();
    later(&world, 10 * 60_000);
    uses(&world, of_ann(), 10 * DOLLAR);
    assert!(matches!(ask(&world, "m2"), Outcome::OverBudget { .. }));
    assert_eq!(record(&world).spent, spent);
    later(&world, Limits::DEFAULT.sandbox.idle_pause_ms);
    deliver_until_done(&world, &work("s1", Work::Sweep), 1);
    let sandbox = record(&world).sandbox;
    assert_eq!((sandbox.phase, sandbox.money.metered_ms), (Phase::Paused, None));
    let idle_ms = sandbox.phase_since_ms - idle_from_ms;
    assert!(idle_ms >= 10 * 60_000 + Limits::DEFAULT.sandbox.idle_pause_ms, "{idle_ms}");
    let idle = world.with(|s| s.limits.budget.of_sandbox(idle_ms));
    assert_eq!(world.with(|s| s.sums[&of_tenant()]), before + idle);
}

#[test]
fn forged_figure_is_not_believed_without_bound() {
    let world = costing(all_set(), u64::MAX / 4);
    deliver_until_done(&world, &asked("m1", |_| ()), 1);
    assert_eq!(world.with(|s| s.sums[&of_tenant()]), 52 * DOLLAR);
}

#[test]
fn one_claim_does_not_end_everybodys_month() {
    let world = costing(all_set(), 40 * DOLLAR);
    world.with(|s| s.limits.budget.stack_month_cents = 100_000);
    deliver_until_done(&world, &asked("m1", |_| ()), 1);
    let stack = BudgetScope::Stack { month: month() };
    let counted = world.with(|s| [of_ann(), of_tenant(), stack].map(|scope| s.sums[&scope]));
    assert_eq!(counted, [40 * DOLLAR, 40 * DOLLAR, 4 * DOLLAR]);
}

#[test]
fn others_prompts_wait_where_people_have_budgets() {
    for (person_day, steered) in [(None, 1), (Some(10 * DOLLAR), 0)] {
        let world = costing(Budgets { person_day, ..Budgets::default() }, CENT);
        world.with(|s| s.silent_agent = true);
        assert!(matches!(deliver(&world, &asked("m1", |_| ()), 1), Verdict::Hold { .. }));
        wants_now(&world, "m2");
        deliver(&world, &asked("m1", |_| ()), 2);
        assert_eq!(record(&world).turn.unwrap().steered.len(), steered);
    }
}
