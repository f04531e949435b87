//! Sandboxes apart from their threads: who works in which, what they are called, and when each is due.

use std::collections::BTreeSet;

use bobbin_cloud::store::{DUE_SHARDS, Store, Written};
use bobbin_core::base::ids::{SandboxKey, SandboxName, ThreadKey};
use bobbin_core::protocol::ports::ExpectedVersions;
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::observations::NameWrite;
use bobbin_core::records::sandbox::Phase;
use bobbin_core::records::session::Session;
use bobbin_core::shown::tools::{CALL_MS_MAX, CALLS_MAX};

use crate::support::{Cloud, alone, aws, both};

fn session(number: u32) -> Session {
    let thread = ThreadKey::discord("1", &number.to_string()).unwrap();
    Session::new(thread, 1)
}

fn name(text: &str) -> SandboxName {
    text.parse().unwrap()
}

async fn save(store: &Store, session: &Session, expected: ExpectedVersions) -> Written {
    let none = ControlFlags::default();
    store.save(session, expected, &none, &[], 0).await.unwrap()
}

/// The thread's sandbox, with this name, wanted or given up.
fn naming(session: &Session, text: &str, released: bool) -> Session {
    let mut session = session.clone();
    session.sandbox.sharing.name = (!released).then(|| name(text));
    session.observed.writes.names =
        vec![NameWrite { name: name(text), sandbox: session.sandbox_key(), released }];
    session
}

const SANDBOX_ALONE: ExpectedVersions = ExpectedVersions { thread: None, sandbox: Some(1) };

#[tokio::test]
async fn sandbox_name_has_one_owner() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    let (one, two) = (session(1), session(2));
    let tenant = one.thread.tenant();
    for session in [&one, &two] {
        save(&store, session, both(0)).await;
    }
    assert_eq!(save(&store, &naming(&one, "front", false), both(1)).await, Written::Yes(None));
    assert_eq!(save(&store, &naming(&two, "front", false), both(1)).await, Written::Conflict);
    let (kept, _) = store.record(&two.thread).await.unwrap();
    let kept = kept.unwrap();
    assert_eq!((kept.version, kept.sandbox.sharing.name), (1, None), "nothing of it was written");
    assert_eq!(save(&store, &naming(&two, "back", false), both(1)).await, Written::Yes(None));

    let named = store.names(&tenant).await.unwrap();
    assert_eq!(named, [(name("back"), two.sandbox_key()), (name("front"), one.sandbox_key())]);
    let elsewhere = ThreadKey::discord("2", "1").unwrap().tenant();
    assert_eq!(store.name(&elsewhere, &name("front")).await.unwrap(), None);

    // Who does not have it cannot give it up.
    assert_eq!(save(&store, &naming(&two, "front", true), both(2)).await, Written::Conflict);
    assert_eq!(save(&store, &naming(&one, "front", true), both(2)).await, Written::Yes(None));
    assert_eq!(store.name(&tenant, &name("front")).await.unwrap(), None);
    assert_eq!(save(&store, &naming(&two, "front", false), both(2)).await, Written::Yes(None));

    // One write gives up a name and takes another.
    let mut renamed = naming(&two, "middle", false);
    renamed.observed.writes.names.splice(..0, naming(&two, "front", true).observed.writes.names);
    assert_eq!(save(&store, &renamed, both(3)).await, Written::Yes(None));
    let named = store.names(&tenant).await.unwrap();
    assert_eq!(named, [(name("back"), two.sandbox_key()), (name("middle"), two.sandbox_key())]);
}

#[tokio::test]
async fn linked_threads_share_sandbox_record() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    let (founder, mut guest) = (session(1), session(2));
    save(&store, &founder, both(0)).await;
    guest.place.link = Some(founder.sandbox_key());
    save(&store, &guest, alone(0)).await;

    let found = store.load(&guest.thread, &"t".into()).await.unwrap();
    let mut guest = found.session.unwrap();
    assert_eq!((guest.version, guest.sandbox.version), (1, 1));
    guest.sandbox.phase = Phase::Active;
    let expected = ExpectedVersions { thread: Some(1), sandbox: Some(1) };
    assert_eq!(save(&store, &guest, expected).await, Written::Yes(None));
    for thread in [&founder.thread, &guest.thread] {
        let (read, _) = store.record(thread).await.unwrap();
        let read = read.unwrap();
        assert_eq!((read.sandbox.version, read.sandbox.phase), (2, Phase::Active), "{thread}");
    }
    let all = [founder.thread.clone(), guest.thread.clone()];
    let read = store.records(&all).await.unwrap();
    assert!(read.iter().all(|(one, _)| one.sandbox.version == 2) && read.len() == 2);
    let keys = BTreeSet::from([founder.sandbox_key(), guest.thread.sandbox()]);
    let records = store.sandboxes(&keys).await.unwrap();
    let of = |key: &SandboxKey| records[key].clone().unwrap();
    assert_eq!(of(&founder.sandbox_key()).unwrap().version, 2);
    assert_eq!(of(&guest.thread.sandbox()), None, "it has never had one of its own");
}

#[tokio::test]
async fn sandbox_is_due_under_its_group() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    let mut thread = session(1);
    thread.sandbox.due_at_ms = Some(1_000);
    save(&store, &thread, both(0)).await;
    let group = thread.sandbox_key().group();
    let found = store.load(&group, &"t".into()).await.unwrap().session.unwrap();
    assert_eq!((&found.thread, found.version, found.sandbox.version), (&group, 0, 1));
    let mut swept = found;
    swept.sandbox.phase = Phase::Pausing;
    assert_eq!(save(&store, &swept, SANDBOX_ALONE).await, Written::Yes(None));
    assert_eq!(save(&store, &swept, SANDBOX_ALONE).await, Written::Conflict);
    let (read, _) = store.record(&thread.thread).await.unwrap();
    let read = read.unwrap();
    assert_eq!((read.version, read.sandbox.phase), (1, Phase::Pausing));

    let mut busy = session(2);
    busy.due_at_ms = Some(1_001);
    save(&store, &busy, alone(0)).await;
    let (mut due, mut armed) = (Vec::new(), Vec::new());
    for shard in 0..DUE_SHARDS {
        due.extend(store.due(shard, 2_000).await.unwrap());
        armed.extend(store.armed_sandboxes(shard).await.unwrap());
    }
    due.sort_by_key(|(_, at_ms)| *at_ms);
    assert_eq!(due, [(group, 1_000), (busy.thread.clone(), 1_001)]);
    assert_eq!(armed, [thread.sandbox_key()]);
}

#[tokio::test]
async fn concurrent_sandbox_calls_are_bounded() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    let (one, two) = (session(1).sandbox_key(), session(2).sandbox_key());
    let mut held = Vec::new();
    for _ in 0..CALLS_MAX {
        held.push(store.begin_call(&one, 1_000).await.unwrap().expect("there is room"));
    }
    assert!(store.begin_call(&one, 1_000).await.unwrap().is_none());
    assert!(store.begin_call(&two, 1_000).await.unwrap().is_some(), "another's");
    store.end_call(&held[3]).await.unwrap();
    assert!(store.begin_call(&one, 1_001).await.unwrap().is_some());
    assert!(store.begin_call(&one, 1_001).await.unwrap().is_none());
    // The place is another call's by now.
    store.end_call(&held[3]).await.unwrap();
    assert!(store.begin_call(&one, 1_002).await.unwrap().is_none());
    let over = 1_000 + CALL_MS_MAX;
    assert!(store.begin_call(&one, over).await.unwrap().is_some());
}
