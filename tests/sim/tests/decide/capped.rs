//! Capped keys: a server's limit follows the reservations of the turns in its sandbox.

use super::budget::{CENT, DOLLAR, all_set, ask, asked, costing};
use super::*;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::run::RunEnd;
use bobbin_core::tenant::budgets::{BudgetKind, Budgets, MicroUsd};
use bobbin_core::tenant::capped_keys::{KeyLimit, LIFE_MS};

/// A place with capped keys.
fn capping(budgets: Budgets) -> Fake {
    let world = costing(budgets, CENT);
    world.with(|s| s.caps = true);
    world
}

fn made(world: &Fake) -> Vec<MicroUsd> {
    world.with(|s| s.capped.clone())
}

fn given(world: &Fake) -> Vec<KeyLimit> {
    world.with(|s| std::mem::take(&mut s.key_limits))
}

#[test]
fn a_server_gets_what_its_turn_set_aside() {
    let world = capping(all_set());
    assert_eq!(ask(&world, "m1"), Outcome::Answered);
    assert_eq!(
        (made(&world), given(&world)),
        (vec![2 * DOLLAR], vec![KeyLimit::Dollars(2 * DOLLAR)])
    );
    assert!(record(&world).sandbox.money.capped_until_ms.is_some());
    // The next turn reserves less, and the server stays.
    world.with(|s| s.settings.budgets.turn = Some(DOLLAR));
    assert_eq!(ask(&world, "m2"), Outcome::Answered);
    assert_eq!((made(&world).len(), given(&world)), (1, vec![KeyLimit::Dollars(DOLLAR)]));
    // Nothing limits the third, so its key has no limit either.
    world.with(|s| s.settings.budgets = Budgets::default());
    assert_eq!(ask(&world, "m3"), Outcome::Answered);
    assert_eq!((made(&world).len(), given(&world)), (1, vec![KeyLimit::Unlimited]));
}

#[test]
fn without_a_budget_no_key_is_made() {
    let world = capping(Budgets::default());
    assert_eq!(ask(&world, "m1"), Outcome::Answered);
    assert_eq!((made(&world), given(&world)), (vec![], vec![]));
    // A server that runs with the stack's key keeps it.
    world.with(|s| s.settings.budgets = all_set());
    assert_eq!(ask(&world, "m2"), Outcome::Answered);
    assert_eq!((made(&world), given(&world)), (vec![], vec![]));
    assert_eq!(record(&world).sandbox.money.capped_until_ms, None);
}

#[test]
fn paused_sandbox_has_no_key_any_more() {
    let world = capping(all_set());
    ask(&world, "m1");
    let idle_ms = world.with(|s| s.limits.sandbox.idle_pause_ms);
    world.with(|s| s.now_ms += idle_ms + 1);
    deliver_until_done(&world, &work("s1", Work::Sweep), 1);
    let sandbox = record(&world).sandbox;
    assert_eq!((sandbox.phase, sandbox.money.capped_until_ms), (Phase::Paused, None));
    assert_eq!(ask(&world, "m2"), Outcome::Answered);
    assert_eq!(made(&world), [2 * DOLLAR; 2]);
}

#[test]
fn key_that_ends_soon_is_replaced_first() {
    let world = capping(all_set());
    ask(&world, "m1");
    let until_ms = record(&world).sandbox.money.capped_until_ms.unwrap();
    world.with(|s| s.now_ms = until_ms - 1_000);
    assert_eq!(ask(&world, "m2"), Outcome::Answered);
    assert_eq!(made(&world).len(), 2);
    let sandbox = record(&world).sandbox;
    assert!(sandbox.money.capped_until_ms.unwrap() > until_ms, "{sandbox:?}");
    assert_eq!((sandbox.generation, sandbox.phase), (1, Phase::Active));
    assert!(sandbox.money.capped_until_ms.unwrap() <= world.with(|s| s.now_ms) + LIFE_MS);
}

#[test]
fn spent_key_is_the_spent_budget() {
    let refused = |caps: bool, of_key: bool| {
        let world = capping(all_set());
        world.with(|s| s.caps = caps);
        let reason = "The vendor takes no more.".to_owned();
        world.with(|s| s.run_end = Some(RunEnd::OverBudget { reason, of_key }));
        (ask(&world, "m1"), record(&world).spent)
    };
    let reason = "It has spent its budget of $2.00. The sandbox and the conversation are kept.";
    let own = Outcome::OverBudget {
        reason: reason.to_owned(),
        more: 2 * DOLLAR,
        by: Some(BudgetKind::Turn),
    };
    // The vendor counts what the agent does not report.
    assert_eq!(refused(true, true), (own, 2 * DOLLAR));
    let reason = "The vendor takes no more.".to_owned();
    let vendors = Outcome::OverBudget { reason, more: 0, by: None };
    for (caps, of_key) in [(true, false), (false, true), (false, false)] {
        assert_eq!(refused(caps, of_key), (vendors.clone(), CENT), "{caps} {of_key}");
    }
}

#[test]
fn no_crash_leaves_a_server_without_its_limit() {
    let begun = || capping(all_set());
    let crashes = each_crash(begun, &asked("m1", |_| ()), |world, crash| {
        let sandbox = record(world).sandbox;
        assert!(sandbox.money.capped_until_ms.is_some(), "{crash}");
        assert!(made(world).iter().all(|cap| *cap == 2 * DOLLAR), "{crash}");
        assert_eq!(given(world).last(), Some(&KeyLimit::Dollars(2 * DOLLAR)), "{crash}");
    });
    assert!(crashes > 20, "{crashes}");
}
