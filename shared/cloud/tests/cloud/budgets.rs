//! Sums of what was spent and set aside, in the table.

use bobbin_cloud::store::{Store, Written};
use bobbin_core::base::ids::{Tenant, ThreadKey};
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::session::Session;
use bobbin_core::records::spending::Reservation;
use bobbin_core::tenant::budgets::{BudgetKind, BudgetScope, BudgetWrite, MicroUsd};
use futures::future::join_all;
use serde_json::json;

use crate::support::{Cloud, Meter, aws, both, metered};

const DOLLAR: i64 = 1_000_000;

fn of_tenant() -> BudgetScope {
    BudgetScope::Tenant { month: "2026-11".to_owned() }
}

fn of_ann() -> BudgetScope {
    BudgetScope::Person { id: "ann".to_owned(), day: "2026-11-28".to_owned() }
}

fn write(scope: BudgetScope, add: i64, at_most: Option<MicroUsd>) -> BudgetWrite {
    BudgetWrite { scope, add, at_most, expires_at_ms: 4_000_000_000_000 }
}

fn session(number: usize, writes: Vec<BudgetWrite>) -> Session {
    let thread = ThreadKey::discord("1", &number.to_string()).unwrap();
    let mut session = Session::new(thread, 1);
    session.observed.writes.budgets = writes;
    session
}

async fn save(store: &Store, session: &Session, version: u64) -> Written {
    let none = ControlFlags::default();
    store.save(session, both(version), &none, &[], 0).await.unwrap()
}

#[tokio::test]
async fn sums_change_with_the_record_alone() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    let tenant: Tenant = ThreadKey::discord("1", "1").unwrap().tenant();
    let sums = async || store.sums(&tenant, &[of_ann(), of_tenant()]).await.unwrap();
    let reserves = || {
        let each = |scope, limit: MicroUsd| write(scope, 2 * DOLLAR, Some(limit - 2_000_000));
        vec![each(of_ann(), 3_000_000), each(of_tenant(), 9_000_000)]
    };
    assert_eq!(sums().await, [0, 0]);
    assert_eq!(save(&store, &session(1, reserves()), 0).await, Written::Yes(None));
    assert_eq!(sums().await, [2_000_000, 2_000_000]);
    // The first that leaves too little is named, and nothing is written.
    let over = Written::OverBudget { scope: of_ann(), used: 2_000_000 };
    let second = session(2, reserves());
    assert_eq!(save(&store, &second, 0).await, over);
    assert_eq!(
        (sums().await, store.record(&second.thread).await.unwrap().0),
        (vec![2_000_000; 2], None)
    );
    // Who has lost the record has nothing to say about money.
    assert_eq!(save(&store, &session(1, reserves()), 0).await, Written::Conflict);
    let settles = vec![
        write(of_ann(), 420_000 - 2 * DOLLAR, None),
        write(of_tenant(), 420_000 - 2 * DOLLAR, None),
    ];
    assert_eq!(save(&store, &session(1, settles), 1).await, Written::Yes(None));
    assert_eq!(sums().await, [420_000, 420_000]);
    let all = store.all_sums(&tenant).await.unwrap();
    let named = |name: &str| (name.to_owned(), 420_000);
    assert_eq!(all, [named("month#2026-11"), named("user#ann#2026-11-28")]);
    // Turns that run may still be settled in the sum of today.
    let today = ["2026-11-28".to_owned()];
    assert_eq!(store.forget_sums(&tenant, "ann", &today).await.unwrap(), 0);
    assert_eq!(store.forget_sums(&tenant, "ann", &[]).await.unwrap(), 1);
    assert_eq!(sums().await, [0, 420_000]);
}

/// What the two writes of a turn are billed as that is part of these sums, and has set something aside if it says so.
async fn units_of_a_turn(
    (store, meter): (&Store, &Meter),
    number: usize,
    scopes: Option<&[BudgetScope]>,
) -> f64 {
    let mut record = session(number, Vec::new());
    assert_eq!(save(store, &record, 0).await, Written::Yes(None));
    let before = meter.units();
    let each = |add, at_most| {
        let scopes = scopes.unwrap_or_default().iter().cloned();
        scopes.map(|scope| write(scope, add, at_most)).collect::<Vec<_>>()
    };
    let turn = json!({
        "id": "t", "by": {"id": "ann", "name": "Ann"}, "accepted_at_ms": 1,
        "stage": {"stage": "prompting", "ids": {"message": "m", "part": "p"}, "generation": 1, "at_ms": 1},
        "reserved": scopes.map(|scopes| Reservation {
            amount: 2_000_000, by: BudgetKind::Turn, scopes: scopes.to_vec(), spent: 0,
        }),
    });
    record.turn = Some(serde_json::from_value(turn).unwrap());
    record.observed.writes.budgets = each(2 * DOLLAR, Some(90_000_000));
    assert_eq!(save(store, &record, 1).await, Written::Yes(None));
    let entry = json!({
        "turn": "t", "by": {"id": "ann", "name": "Ann"}, "accepted_at_ms": 1, "ended_at_ms": 2,
        "outcome": {"outcome": "answered"}, "asked": "a", "answered": "b",
    });
    let entry: LedgerEntry = serde_json::from_value(entry).unwrap();
    record.turn = None;
    record.observed.writes.budgets = each(420_000 - 2 * DOLLAR, None);
    let none = ControlFlags::default();
    let closed = store.save(&record, both(2), &none, &[entry], 4_000_000_000_000).await;
    assert_eq!(closed.unwrap(), Written::Yes(None));
    meter.units() - before
}

/// By what the engine says that each call consumes.
#[tokio::test]
async fn each_sum_costs_a_turn_four_units() {
    let cloud = Cloud::start().await;
    let (endpoint, meter) = metered(cloud.engine.endpoint()).await;
    let store = Store::new(&aws(&endpoint), &cloud.resource("Table"));
    let month = || "2026-11".to_owned();
    let of_channel = BudgetScope::Channel { id: "C1".to_owned(), month: month() };
    let all = [of_ann(), of_channel, of_tenant(), BudgetScope::Stack { month: month() }];
    let by = (&store, &meter);
    let none = units_of_a_turn(by, 1, None).await;
    // Two records twice and an entry, a KB each, in transactions.
    assert_eq!(none, 10.0);
    assert_eq!(units_of_a_turn(by, 2, Some(&[])).await, none, "of the turn and the thread alone");
    for (number, sums) in (3..).zip(1..=all.len()) {
        let counted = units_of_a_turn(by, number, Some(&all[..sums])).await;
        assert_eq!(counted - none, 4.0 * sums as f64, "{sums} sums");
    }
    let costs = include_str!("../../../../docs/COSTS.md");
    assert!(
        costs.contains("two writes cost four write units more"),
        "docs/COSTS.md says otherwise"
    );
}

#[tokio::test]
async fn many_writers_never_pass_the_sum() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    let tenant = ThreadKey::discord("1", "1").unwrap().tenant();
    let begin = async |number: usize| {
        let wanted = write(of_tenant(), 2 * DOLLAR, Some(18_000_000));
        let wanted = session(number, vec![wanted]);
        loop {
            match save(&store, &wanted, 0).await {
                Written::Conflict => {}
                written => return written,
            }
        }
    };
    let written = join_all((1..=40).map(begin)).await;
    let begun = written.iter().filter(|one| **one == Written::Yes(None)).count();
    assert_eq!(begun, 10, "{written:?}");
    assert_eq!(store.sums(&tenant, &[of_tenant()]).await.unwrap(), [20_000_000]);
}
