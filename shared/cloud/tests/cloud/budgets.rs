//! Sums of what was spent and set aside, in the table.

use bobbin_cloud::store::{Store, Written};
use bobbin_core::base::ids::{Tenant, ThreadKey};
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::session::Session;
use bobbin_core::tenant::budgets::{BudgetScope, BudgetWrite, MicroUsd};
use futures::future::join_all;

use crate::support::{Cloud, aws, both};

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
    assert_eq!(store.forget_sums(&tenant, "ann").await.unwrap(), 1);
    assert_eq!(sums().await, [0, 420_000]);
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
