//! From a pull request to the thread that watches it.

use bobbin_cloud::store::{Store, WatchedBy, Written};
use bobbin_core::base::ids::ThreadKey;
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::observations::WatchWrite;
use bobbin_core::records::session::Session;

use crate::support::{Cloud, aws, both};

fn session(number: u32, has_ended: bool) -> Session {
    let thread = ThreadKey::discord("1", &number.to_string()).unwrap();
    let mut session = Session::new(thread, 1);
    let branch = "bobbin/add-a".to_owned();
    session.observed.writes.watches =
        vec![WatchWrite { repository: 42, branch, number: 5, has_ended }];
    session
}

#[tokio::test]
async fn pull_request_leads_to_one_thread() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    let save = async |session: &Session, version| {
        let none = ControlFlags::default();
        store.save(session, both(version), &none, &[], 0).await.unwrap()
    };
    let (one, other) = (session(1, false), session(2, false));
    let ways = [WatchedBy::Branch("bobbin/add-a"), WatchedBy::Number(5)];
    let found = async || {
        let mut found = Vec::new();
        for by in ways {
            found.push(store.watched(42, by).await.unwrap());
        }
        found
    };
    assert_eq!(found().await, [None, None]);
    assert_eq!(save(&one, 0).await, Written::Yes(None));
    assert_eq!(found().await, [Some(one.thread.clone()), Some(one.thread.clone())]);
    assert_eq!(store.watched(43, ways[0]).await.unwrap(), None);
    // It leads to no second thread, and nothing of that one's is written.
    assert_eq!(save(&other, 0).await, Written::Conflict);
    assert_eq!(store.record(&other.thread).await.unwrap().0, None);
    assert_eq!(save(&session(2, true), 0).await, Written::Conflict);
    assert_eq!(save(&session(1, true), 1).await, Written::Yes(None));
    assert_eq!(found().await, [None, None]);
    assert_eq!(save(&other, 0).await, Written::Yes(None));
    assert_eq!(found().await, [Some(other.thread.clone()), Some(other.thread)]);
}
