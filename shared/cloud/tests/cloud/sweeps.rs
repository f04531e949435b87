//! What the sweeper asks for in one call instead of many: the records of listed sandboxes, and messages by the ten.

use std::collections::BTreeMap;

use bobbin_app::orphans::{OrphanVerdict, judge_all};
use bobbin_cloud::dead_letters::QueuePair;
use bobbin_cloud::queue::{BATCH_MAX, Queues};
use bobbin_cloud::store::{Store, StoreError, Written};
use bobbin_core::base::ids::{Ms, ThreadKey, TurnId};
use bobbin_core::protocol::decide::orphan::Graces;
use bobbin_core::protocol::ports::ExpectedVersions;
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::message::{Message, Work};
use bobbin_core::records::sandbox::{Phase, SandboxRecord, SandboxState};
use bobbin_core::records::session::Session;
use bobbin_sandbox::Sandbox;
use bobbin_sandbox::labels::{LABEL_STACK_ID, StackIdentity, labels};

use crate::support::{Cloud, aws, both};

const MESSAGES: &str = "test-Messages.fifo";
const GRACES: Graces = Graces { young_ms: 300_000, vanished_ms: 600_000 };
/// When all the sandboxes were made, and a day later.
const CREATED_MS: u64 = NOW_MS - 86_400_000;
const NOW_MS: u64 = 1_767_312_000_000;

const STACK: StackIdentity<'_> = StackIdentity { name: "test", id: "this-one" };

fn thread(number: u32) -> ThreadKey {
    ThreadKey::discord("111", &number.to_string()).unwrap()
}

fn sandbox(thread: &ThreadKey, generation: u32) -> Sandbox {
    made(CREATED_MS, thread, generation)
}

fn made(created_ms: Ms, thread: &ThreadKey, generation: u32) -> Sandbox {
    Sandbox {
        id: "s".to_owned(),
        name: "s".to_owned(),
        labels: labels(STACK, &thread.sandbox(), generation),
        state: SandboxState::Running,
        said: String::new(),
        created_ms: Some(created_ms),
        ends_ms: None,
        exec_base: None,
    }
}

fn unmarked(thread: &ThreadKey, generation: u32) -> Sandbox {
    let mut sandbox = sandbox(thread, generation);
    sandbox.labels.remove(LABEL_STACK_ID);
    sandbox
}

fn foreign(thread: &ThreadKey, generation: u32) -> Sandbox {
    let mut sandbox = sandbox(thread, generation);
    sandbox.labels.insert(LABEL_STACK_ID.to_owned(), "another".to_owned());
    sandbox
}

#[tokio::test]
async fn batch_judges_every_sandbox() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    for (number, phase) in [(1, Phase::Active), (2, Phase::Destroyed)] {
        let record = Session {
            sandbox: SandboxRecord { phase, generation: 2, ..SandboxRecord::new(1) },
            ..Session::new(thread(number), 1)
        };
        let nothing: [LedgerEntry; 0] = [];
        let none = ControlFlags::default();
        store.save(&record, both(0), &none, &nothing, 0).await.unwrap();
    }
    let young = made(NOW_MS - 60_000, &thread(4), 1);
    let unnamed = Sandbox { labels: BTreeMap::new(), ..sandbox(&thread(5), 1) };
    let listed = [
        // Two generations of one thread: its record is asked for once, a batch takes no key twice.
        sandbox(&thread(1), 1),
        sandbox(&thread(1), 2),
        sandbox(&thread(2), 2),
        // Of a thread without a record.
        sandbox(&thread(3), 1),
        young,
        unnamed,
        // Of before the stack's id was a label: with a record of its thread it is ours, without one it may be
        // anybody's.
        unmarked(&thread(1), 1),
        unmarked(&thread(2), 2),
        unmarked(&thread(3), 1),
        // Of another stack of this name, whatever ours has of such a thread.
        foreign(&thread(1), 1),
        foreign(&thread(3), 1),
    ];
    let judged = judge_all(&store, STACK.id, &listed, NOW_MS, GRACES).await;
    let judged: Result<Vec<OrphanVerdict>, StoreError> = judged.into_iter().collect();
    assert_eq!(
        judged,
        Ok(vec![
            OrphanVerdict::Orphan,
            OrphanVerdict::Spared,
            OrphanVerdict::Orphan,
            OrphanVerdict::Orphan,
            OrphanVerdict::Spared,
            OrphanVerdict::Unknown,
            OrphanVerdict::Orphan,
            OrphanVerdict::Orphan,
            OrphanVerdict::Unknown,
            OrphanVerdict::Foreign,
            OrphanVerdict::Foreign,
        ])
    );
}

#[tokio::test]
async fn unreadable_records_prevent_judging() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), "no-such-table");
    let judged = judge_all(&store, STACK.id, &[sandbox(&thread(1), 1)], NOW_MS, GRACES).await;
    assert!(matches!(judged[..], [Err(StoreError::Refused(_))]), "{judged:?}");
}

#[tokio::test]
async fn batch_keeps_group_and_deduplication_id() {
    let cloud = Cloud::start().await;
    let pair = |home: &str, dead: &str| QueuePair {
        name: "messages",
        home_url: cloud.resource(home),
        dead_url: cloud.resource(dead),
    };
    let queues = Queues::of(
        &aws(cloud.engine.endpoint()),
        &[pair("Messages", "MessagesDead"), pair("Control", "ControlDead")],
    );
    let sweep = |number: usize| Message {
        id: format!("sweep-{number}").into(),
        thread: thread(u32::try_from(number).unwrap()),
        accepted_at_ms: 1,
        work: Work::Sweep,
    };
    let messages: Vec<Message> = (0..BATCH_MAX).map(sweep).collect();
    for _ in 0..2 {
        // A repeat under the same ids is taken, and puts nothing on the queue.
        let taken = queues.send_messages(messages.clone()).await;
        assert_eq!(taken.len(), BATCH_MAX);
        assert!(taken.iter().all(Result::is_ok), "{taken:?}");
    }
    let mut found: Vec<(String, String)> = cloud
        .waiting(MESSAGES)
        .await
        .iter()
        .map(|one| {
            let text = |name: &str| one[name].as_str().unwrap().to_owned();
            (text("group_id"), text("deduplication_id"))
        })
        .collect();
    found.sort();
    let mut wanted: Vec<(String, String)> =
        messages.into_iter().map(|one| (one.thread.to_string(), one.id.to_string())).collect();
    wanted.sort();
    assert_eq!(found, wanted);
}

const DUE_MS: Ms = NOW_MS - 60_000;
const AGAIN_MS: Ms = NOW_MS + 120_000;
const UNTIL_MS: Ms = NOW_MS + 288_000_000;

/// A thread with a record of which something is due.
async fn due_thread(store: &Store) -> ThreadKey {
    write_due(store, 0, Some(DUE_MS)).await;
    thread(1)
}

/// Its record as this version's successor, due then.
async fn write_due(store: &Store, version: u64, due_at_ms: Option<Ms>) {
    let record = Session { due_at_ms, version, ..Session::new(thread(1), 1) };
    let expected = ExpectedVersions { thread: Some(version), sandbox: None };
    let none = ControlFlags::default();
    let written = store.save(&record, expected, &none, &[], 0).await.unwrap();
    assert!(matches!(written, Written::Yes(_)), "{written:?}");
}

/// Its place in the index, by all that is due at some time.
async fn place(store: &Store) -> Option<Ms> {
    let due = store.due(thread(1).due_shard(), u64::MAX).await.unwrap();
    due.first().map(|(_, due_at_ms)| *due_at_ms)
}

#[tokio::test]
async fn outstanding_sweep_defers_its_group() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    let group = due_thread(&store).await;
    let sweep = TurnId::from("sweep-1");
    let meant = store.means_sweep((&group, DUE_MS), &sweep, AGAIN_MS);
    assert_eq!(meant.await, Ok(Some(sweep.clone())));
    assert_eq!(place(&store).await, Some(AGAIN_MS));
    store.sweep_is_out(&group, &sweep, UNTIL_MS).await.unwrap();
    assert_eq!(place(&store).await, Some(UNTIL_MS));
    write_due(&store, 1, Some(DUE_MS + 1)).await;
    assert_eq!(place(&store).await, Some(UNTIL_MS));
    // That of a wake-up says nothing of it.
    let other = TurnId::from("wake-1");
    store.sweep_is_done(&group, &other).await.unwrap();
    assert_eq!(place(&store).await, Some(UNTIL_MS));
    store.sweep_is_done(&group, &sweep).await.unwrap();
    assert_eq!(place(&store).await, Some(DUE_MS + 1));
    // It may be said that it is out after it is done.
    store.sweep_is_out(&group, &sweep, UNTIL_MS).await.unwrap();
    assert_eq!(place(&store).await, Some(DUE_MS + 1));
    let next = TurnId::from("sweep-2");
    let meant = store.means_sweep((&group, DUE_MS + 1), &next, AGAIN_MS);
    assert_eq!(meant.await, Ok(Some(next)));
}

#[tokio::test]
async fn resent_sweep_keeps_its_id() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    let group = due_thread(&store).await;
    let [first, second] = ["sweep-1", "sweep-2"].map(TurnId::from);
    let meant = store.means_sweep((&group, DUE_MS), &first, AGAIN_MS);
    assert_eq!(meant.await, Ok(Some(first.clone())));
    // Another tick, by an index that lags.
    let meant = store.means_sweep((&group, DUE_MS), &second, AGAIN_MS);
    assert_eq!(meant.await, Ok(None));
    let meant = store.means_sweep((&group, AGAIN_MS), &second, AGAIN_MS + 1);
    assert_eq!(meant.await, Ok(Some(first)));
}

#[tokio::test]
async fn finished_sweep_makes_nothing_due() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    let group = due_thread(&store).await;
    let sweep = TurnId::from("sweep-1");
    let meant = store.means_sweep((&group, DUE_MS), &sweep, AGAIN_MS);
    assert_eq!(meant.await, Ok(Some(sweep.clone())));
    write_due(&store, 1, None).await;
    store.sweep_is_out(&group, &sweep, UNTIL_MS).await.unwrap();
    assert_eq!(place(&store).await, None);
    store.sweep_is_done(&group, &sweep).await.unwrap();
    assert_eq!(place(&store).await, None);
    write_due(&store, 2, Some(DUE_MS)).await;
    assert_eq!(place(&store).await, Some(DUE_MS));
    // Of what has no record nothing is made.
    let unknown = thread(2);
    store.sweep_is_done(&unknown, &sweep).await.unwrap();
    assert_eq!(store.record(&unknown).await.unwrap().0, None);
}
