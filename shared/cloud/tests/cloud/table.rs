//! What is stored comes back, and what happens to calls that go wrong on the way.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::types::AttributeValue;
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use bobbin_cloud::aws::{ANSWER_BYTES_MAX, ATTEMPTS_MAX};
use bobbin_cloud::store::{Store, StoreError, Written};
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Tenant, ThreadKey};
use bobbin_core::base::person::Person;
use bobbin_core::protocol::ports::ExpectedVersions;
use bobbin_core::records::ask::{AskDecision, Choice};
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::sandbox::Phase;
use bobbin_core::records::session::{Place, Session};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Cloud, alone, answering, aws, both, sdk_dynamodb, silent};

fn store(endpoint: &str) -> Store {
    Store::new(&aws(endpoint), "table")
}

fn session(number: u32) -> Session {
    let thread = ThreadKey::discord("1", &number.to_string()).unwrap();
    Session::new(thread, 1)
}

fn entry() -> LedgerEntry {
    let entry = json!({
        "turn": "t", "by": Person::default(), "accepted_at_ms": 1, "ended_at_ms": 2,
        "outcome": Outcome::Answered, "asked": "a",
    });
    serde_json::from_value(entry).unwrap()
}

/// Answers each request with the next of these, and the last one again; and what was asked, by action.
async fn scripted(answers: Vec<(u16, Value)>) -> (String, Arc<Mutex<Vec<(String, Value)>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let asked: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let answer = move |headers: HeaderMap, body: Bytes| {
        let mut seen = seen.lock().unwrap();
        let (status, body_of) = answers.get(seen.len()).or(answers.last()).unwrap();
        let action = headers["x-amz-target"].to_str().unwrap().to_owned();
        seen.push((action, serde_json::from_slice(&body).unwrap()));
        std::future::ready((StatusCode::from_u16(*status).unwrap(), body_of.to_string()))
    };
    let app = Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (endpoint, asked)
}

/// Where each first request of an action reaches the table and its answer is lost with the connection.
async fn lossy(endpoint: &str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let target = endpoint.strip_prefix("http://").unwrap().to_owned();
    let lost = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&lost);
    tokio::spawn(async move {
        let mut is_next_lost = true;
        loop {
            let (mut ours, _) = listener.accept().await.unwrap();
            let mut theirs = TcpStream::connect(&target).await.unwrap();
            if !std::mem::replace(&mut is_next_lost, false) {
                is_next_lost = true;
                tokio::io::copy_bidirectional(&mut ours, &mut theirs).await.ok();
                continue;
            }
            // Hands the whole request on, waits until the table has answered, and hangs up.
            let mut request = Vec::new();
            while !is_whole(&request) {
                let mut bytes = [0; 4096];
                let read = ours.read(&mut bytes).await.unwrap();
                request.extend(&bytes[..read]);
            }
            theirs.write_all(&request).await.unwrap();
            assert!(theirs.read(&mut [0; 4096]).await.unwrap() > 0);
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, lost)
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("content-length:").map(str::to_owned));
    body.len() == length.unwrap().trim().parse::<usize>().unwrap()
}

#[tokio::test]
async fn record_uses_the_documented_attributes() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    let mut session = session(1);
    session.due_at_ms = Some(u64::MAX / 2);
    session.sandbox.phase = Phase::Active;
    session.sandbox.due_at_ms = Some(u64::MAX / 4);
    let text = "\"\\ \u{1}\u{7f} ä 漢 🧵 \u{2028}";
    let entry = LedgerEntry { asked: text.to_owned(), ..entry() };
    let written = store
        .save(&session, both(0), &ControlFlags::default(), std::slice::from_ref(&entry), 7_000)
        .await;
    assert_eq!(written.unwrap(), Written::Yes(None));
    let read = async |item: &str| {
        let get = sdk_dynamodb(cloud.engine.endpoint()).get_item();
        let got = get
            .table_name(cloud.resource("Table"))
            .key("thread", AttributeValue::S(session.thread.to_string()))
            .key("item", AttributeValue::S(item.to_owned()))
            .send()
            .await;
        got.unwrap().item.unwrap()
    };
    let number = |number: u64| AttributeValue::N(number.to_string());
    let record = read("session").await;
    assert_eq!(record["version"], number(1));
    assert_eq!(record["due_at"], number(u64::MAX / 2));
    assert_eq!(record["due_shard"], number(session.thread.due_shard().into()));
    assert_eq!(record["tenant"], AttributeValue::S("discord:1".to_owned()));
    let sandbox = read("sandbox").await;
    assert_eq!(sandbox["version"], number(1));
    assert_eq!(sandbox["phase"], AttributeValue::S("active".to_owned()));
    assert_eq!(sandbox["due_at"], number(u64::MAX / 4));
    assert_eq!(sandbox["due_shard"], record["due_shard"]);
    assert_eq!(sandbox["tenant"], record["tenant"]);
    assert_eq!(read("turn#t").await["expires_at"], number(7));
    let (stored, _) = store.record(&session.thread).await.unwrap();
    let stored = stored.unwrap();
    assert_eq!(stored.due_at_ms, session.due_at_ms);
    assert_eq!(stored.sandbox.phase, Phase::Active);
    assert_eq!(stored.sandbox.due_at_ms, session.sandbox.due_at_ms);
    let entries = store.entries(&session.thread, &["t".into()]).await;
    assert_eq!(entries.unwrap(), [entry]);
    assert!(store.load(&session.thread, &"t".into()).await.unwrap().in_ledger);
}

#[tokio::test]
async fn both_records_are_written_together() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    let none = ControlFlags::default();
    let mut session = session(1);
    session.sandbox.phase = Phase::Creating;
    let write = async |session: &Session, expected: ExpectedVersions| {
        store.save(session, expected, &none, &[], 0).await.unwrap()
    };
    assert_eq!(write(&session, both(0)).await, Written::Yes(None));
    session.sandbox.phase = Phase::Active;
    session.conversation.fresh_since_ms = 7;
    let (thread, sandbox) = (Some(1), Some(1));
    for behind in [
        ExpectedVersions { thread: Some(2), sandbox },
        ExpectedVersions { thread, sandbox: Some(2) },
        ExpectedVersions { thread, sandbox: Some(0) },
    ] {
        assert_eq!(write(&session, behind).await, Written::Conflict, "{behind:?}");
        let (stored, _) = store.record(&session.thread).await.unwrap();
        let stored = stored.unwrap();
        assert_eq!((stored.version, stored.sandbox.version), (1, 1), "{behind:?}");
        assert_eq!(
            (stored.conversation.fresh_since_ms, stored.sandbox.phase),
            (0, Phase::Creating)
        );
    }
    assert_eq!(write(&session, ExpectedVersions { thread, sandbox }).await, Written::Yes(None));
    let (stored, _) = store.record(&session.thread).await.unwrap();
    let stored = stored.unwrap();
    assert_eq!((stored.version, stored.sandbox.version), (2, 2));
    assert_eq!((stored.conversation.fresh_since_ms, stored.sandbox.phase), (7, Phase::Active));
}

#[tokio::test]
async fn threads_are_paged_and_indexed() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    for number in 0..5 {
        let mut session = session(number);
        let due_at_ms = Some(1_000 + u64::from(number));
        let none = ControlFlags::default();
        // A turn is due by its thread's record, an idle sandbox by its own.
        if number % 2 == 0 {
            session.due_at_ms = due_at_ms;
            let saved = store.save(&session, alone(0), &none, &[], 0).await;
            assert!(matches!(saved, Ok(Written::Yes(Some(_)))), "{saved:?}");
        } else {
            session.sandbox.due_at_ms = due_at_ms;
            let saved = store.save(&session, both(0), &none, &[], 0).await;
            assert!(matches!(saved, Ok(Written::Yes(None))), "{saved:?}");
        }
    }
    let (mut found, mut pages, mut after) = (Vec::new(), 0, None);
    loop {
        let page = store.page(after.as_ref(), 2).await.unwrap();
        found.extend(page.threads.iter().map(|(session, _)| session.thread.to_string()));
        pages += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    found.sort();
    let expected: Vec<String> = (0..5).map(|number| session(number).thread.to_string()).collect();
    assert_eq!((found, pages), (expected.clone(), 3));
    let armed = store.all_armed().await.unwrap();
    assert_eq!(armed.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    let mut due = Vec::new();
    for shard in 0..bobbin_cloud::store::DUE_SHARDS {
        due.extend(store.due(shard, 1_002).await.unwrap());
    }
    due.sort_by_key(|(_, at_ms)| *at_ms);
    assert_eq!(due.iter().map(|(_, at_ms)| *at_ms).collect::<Vec<_>>(), [1_000, 1_001, 1_002]);
    let thread = session(0).thread;
    assert_eq!(store.everything(&thread).await.unwrap().len(), 1);
}

#[tokio::test]
async fn throttled_table_is_retried() {
    let code = "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException";
    let busy = (400, json!({"__type": code, "message": "Slower."}));
    let item = json!({"Item": {"settings": {"S": "{}"}}});
    let (endpoint, asked) = scripted(vec![busy.clone(), (200, item)]).await;
    store(&endpoint).settings(&Tenant::slack("t")).await.unwrap();
    assert_eq!(asked.lock().unwrap().len(), 2);

    let (endpoint, asked) = scripted(vec![busy]).await;
    let told = store(&endpoint).settings(&Tenant::slack("t")).await.unwrap_err();
    let expected = format!(
        "the table does not answer: DynamoDB at {endpoint} answered ProvisionedThroughputExceededException: Slower. (status 400, request id none)"
    );
    assert_eq!(told.to_string(), expected);
    assert!(matches!(told, StoreError::Later(_)));
    assert_eq!(asked.lock().unwrap().len(), ATTEMPTS_MAX as usize);
}

#[tokio::test]
async fn unprocessed_batch_keys_are_reread() {
    let thread = session(1).thread;
    let key = |item: &str| json!({"thread": {"S": thread.to_string()}, "item": {"S": item}});
    let left = |key: &Value| json!({"table": {"Keys": [key], "ConsistentRead": true}});
    let (record, turn) = (key("session"), key("turn#t"));
    let part = json!({"Responses": {"table": []}, "UnprocessedKeys": left(&turn)});
    let rest = json!({"Responses": {"table": [turn]}, "UnprocessedKeys": {}});
    let (endpoint, asked) = scripted(vec![(200, part), (200, rest)]).await;
    let loaded = store(&endpoint).load(&thread, &"t".into()).await.unwrap();
    assert!(loaded.in_ledger && loaded.session.is_none());
    let asked = asked.lock().unwrap().clone();
    let again = json!({"RequestItems": {"table": {"Keys": [turn], "ConsistentRead": true}}});
    assert_eq!(asked[1], ("DynamoDB_20120810.BatchGetItem".to_owned(), again));

    let nothing = json!({"Responses": {"table": []}, "UnprocessedKeys": left(&record)});
    let (endpoint, asked) = scripted(vec![(200, nothing)]).await;
    let told = store(&endpoint).record(&thread).await.unwrap_err();
    assert!(matches!(told, StoreError::Later(_)), "{told:?}");
    assert_eq!(asked.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn malformed_table_answer_is_rejected() {
    let thread = session(1).thread;
    for strange in [
        json!({}),
        json!([]),
        json!({"Responses": 7}),
        json!({"Responses": {"table": [{"thread": "canary"}]}}),
    ] {
        let (endpoint, _) = scripted(vec![(200, strange.clone())]).await;
        let told = store(&endpoint).record(&thread).await.unwrap_err();
        let place = format!(
            "the table does not answer: the answer of DynamoDB at {endpoint} could not be read"
        );
        assert!(told.to_string().starts_with(&place), "{strange}: {told}");
        assert!(!told.to_string().contains("canary"), "{told}");
        assert!(store(&endpoint).due(0, 1).await.is_err(), "{strange}");
    }
    // An empty one must not be read as "there is none".
    for body in ["", "<html>canary</html>"] {
        let (endpoint, _) = answering(200, body).await;
        let told = store(&endpoint).settings(&Tenant::slack("t")).await.unwrap_err();
        assert!(matches!(told, StoreError::Later(_)), "{told:?}");
        assert!(!told.to_string().contains("canary"), "{told}");
    }
}

#[tokio::test]
async fn table_refusal_keeps_its_class() {
    let refused = |code: &str| json!({"__type": format!("x#{code}"), "Message": "m".repeat(9_000)});
    for (code, is_for_good) in [
        ("ResourceNotFoundException", true),
        ("AccessDeniedException", true),
        ("UnrecognizedClientException", true),
        ("InvalidSignatureException", true),
        ("ExpiredTokenException", true),
        ("ValidationException", true),
        ("RequestTimeoutException", false),
    ] {
        let (endpoint, asked) = scripted(vec![(400, refused(code))]).await;
        let told = store(&endpoint).record(&session(1).thread).await.unwrap_err();
        assert_eq!(matches!(told, StoreError::Refused(_)), is_for_good, "{told:?}");
        assert_eq!(matches!(told, StoreError::Later(_)), !is_for_good, "{told:?}");
        assert!(told.to_string().contains(code), "{told}");
        assert!(told.to_string().len() < 900, "{told}");
        let tries = asked.lock().unwrap().len();
        assert_eq!(tries > 1, code.starts_with("RequestTimeout"), "{code}");
    }
}

#[tokio::test]
async fn only_lost_conditions_are_conflicts() {
    let cancelled = |reasons: &[&str]| {
        let reasons: Vec<_> =
            reasons.iter().map(|code| json!({"Code": code, "Message": "m"})).collect();
        let code = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
        (400, json!({"__type": code, "Message": "m", "CancellationReasons": reasons}))
    };
    let entry = [entry()];
    let save = async |answer| {
        let (endpoint, asked) = scripted(vec![answer]).await;
        let saved =
            store(&endpoint).save(&session(1), alone(0), &ControlFlags::default(), &entry, 0).await;
        (saved, asked.lock().unwrap().clone())
    };
    let (lost, asked) = save(cancelled(&["ConditionalCheckFailed", "None"])).await;
    assert_eq!(lost.unwrap(), Written::Conflict);
    let (action, request) = &asked[0];
    assert_eq!(action, "DynamoDB_20120810.TransactWriteItems");
    assert_eq!(request["ClientRequestToken"].as_str().unwrap().len(), 36);
    assert_eq!(request["TransactItems"][0]["Update"]["TableName"], "table");
    assert_eq!(request["TransactItems"][1]["Put"]["TableName"], "table");
    let (busy, asked) = save(cancelled(&["None", "TransactionConflict"])).await;
    assert_eq!(busy.unwrap(), Written::Conflict, "it is read again");
    assert_eq!(asked.len(), 5, "a few times within the call");
    let (slow, _) = save(cancelled(&["None", "ThrottlingError"])).await;
    assert!(matches!(slow, Err(StoreError::Later(_))), "{slow:?}");
    let (wrong, _) = save(cancelled(&["None", "ValidationError"])).await;
    assert!(matches!(wrong, Err(StoreError::Refused(_))), "{wrong:?}");
}

#[tokio::test]
async fn contended_write_is_retried() {
    let code = "com.amazonaws.dynamodb.v20120810#TransactionConflictException";
    let met = (400, json!({"__type": code, "message": "m"}));
    let thread = session(1).thread;
    let stop = async |answers| {
        let (endpoint, asked) = scripted(answers).await;
        let store = store(&endpoint);
        let (turn, by) = ("t".into(), Person::default());
        let marked = store.mark_cancelled(&thread, &turn, &by).await;
        (marked, asked.lock().unwrap().len())
    };
    let (once, tries) = stop(vec![met.clone(), (200, json!({}))]).await;
    assert_eq!((once, tries), (Ok(()), 2));
    // A flag that could not be set is never taken for one that stands.
    let (always, tries) = stop(vec![met]).await;
    let told = always.unwrap_err();
    assert!(matches!(told, StoreError::Contended(_)), "{told:?}");
    assert!(matches!(told.failure(), Failure::Wait { .. }), "{told:?}");
    assert_eq!(tries, 5);
}

#[tokio::test]
async fn unacknowledged_write_applies_once() {
    let cloud = Cloud::start().await;
    let (endpoint, lost) = lossy(cloud.engine.endpoint()).await;
    let store = Store::new(&aws(&endpoint), &cloud.resource("Table"));
    let direct_store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));

    // A transaction bears a token: its repeat is the same one.
    let first = session(1);
    let entry = [entry()];
    let saved = store.save(&first, alone(0), &ControlFlags::default(), &entry, u64::MAX / 2).await;
    assert_eq!(saved.unwrap(), Written::Yes(None));
    assert_eq!(lost.load(Ordering::SeqCst), 1);
    let (stored, _) = direct_store.record(&first.thread).await.unwrap();
    assert_eq!(stored.unwrap().version, 1);

    // A single write bears none: the repeat loses against itself, and whoever reads again finds what was written.
    let (endpoint, lost) = lossy(cloud.engine.endpoint()).await;
    let store = Store::new(&aws(&endpoint), &cloud.resource("Table"));
    let second = session(2);
    let saved = store.save(&second, alone(0), &ControlFlags::default(), &[], 0).await;
    assert_eq!(saved.unwrap(), Written::Conflict);
    assert_eq!(lost.load(Ordering::SeqCst), 1);
    let (stored, _) = direct_store.record(&second.thread).await.unwrap();
    assert_eq!(stored.unwrap().version, 1);
}

#[tokio::test]
async fn unacknowledged_decision_stays_first() {
    let cloud = Cloud::start().await;
    let (endpoint, lost) = lossy(cloud.engine.endpoint()).await;
    let store = Store::new(&aws(&endpoint), &cloud.resource("Table"));
    let thread = session(1).thread;
    let by = |name: &str| AskDecision {
        by: Person { name: name.to_owned(), ..Person::default() },
        choice: Choice::Once,
    };
    let first = by("Ada");
    assert!(store.mark_settled(&thread, &"a".into(), &first).await.unwrap());
    assert_eq!(lost.load(Ordering::SeqCst), 1);
    let later = by("Robin");
    assert!(!store.mark_settled(&thread, &"a".into(), &later).await.unwrap());
}

#[tokio::test]
async fn equal_transactions_are_not_deduplicated() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    let entry = [entry()];
    let (session, flags) = (session(1), ControlFlags::default());
    let save = || store.save(&session, alone(0), &flags, &entry, u64::MAX / 2);
    assert_eq!(save().await.unwrap(), Written::Yes(None));
    assert_eq!(save().await.unwrap(), Written::Conflict);
}

#[tokio::test]
async fn silent_table_times_out() {
    let (endpoint, _listener) = silent().await;
    let silent = store(&endpoint);
    let (session, flags) = (session(1), ControlFlags::default());
    let thread = session.thread.clone();
    let tenant = Tenant::slack("t");
    let (one, many, write) = tokio::join!(
        silent.settings(&tenant),
        silent.record(&thread),
        silent.save(&session, alone(0), &flags, &[], 0)
    );
    for told in [one.unwrap_err(), many.unwrap_err(), write.unwrap_err()] {
        assert_eq!(
            told,
            StoreError::Later(format!("DynamoDB at {endpoint} has not answered within 10000 ms"))
        );
    }
}

#[tokio::test]
async fn table_answer_size_is_bounded() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    // As long as a page of the table can be, and then one that is longer, each time.
    let lengths = Arc::new(Mutex::new(vec![ANSWER_BYTES_MAX - 100]));
    let answer = move || {
        let length = lengths.lock().unwrap().pop();
        let length = length.unwrap_or(ANSWER_BYTES_MAX + 1);
        let (head, tail) = (r#"{"Items":[{"thread":{"S":""#, r#""}}]}"#);
        let filling = "x".repeat(length - head.len() - tail.len());
        std::future::ready(format!("{head}{filling}{tail}"))
    };
    let app = Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let store = store(&endpoint);
    // Read to its end: what is no key of a thread is told as such.
    assert_eq!(store.page(None, 9).await.unwrap().unreadable.len(), 1);
    let long = store.page(None, 9).await.unwrap_err();
    assert!(matches!(long, StoreError::Later(_)), "{long:?}");
}

#[tokio::test]
async fn record_write_clears_seen_flags() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    let session = session(1);
    let person = Person::default();
    store.mark_cancelled(&session.thread, &"t".into(), &person).await.unwrap();
    let (none, flags) = store.record(&session.thread).await.unwrap();
    assert_eq!(none, None);
    assert_eq!(flags.cancelled.keys().collect::<Vec<_>>(), ["t"]);
    // Only beside the one that says that it waits.
    assert!(!store.mark_now(&session.thread, &"t".into(), &person).await.unwrap());
    let saved = store.save(&session, alone(0), &ControlFlags::default(), &[], 0).await.unwrap();
    assert_eq!(saved, Written::Yes(Some(flags.clone())));
    let saved = store.save(&session, alone(1), &flags, &[], 0).await.unwrap();
    assert_eq!(saved, Written::Yes(Some(ControlFlags::default())));
    let late = store.save(&session, alone(1), &ControlFlags::default(), &[], 0).await.unwrap();
    assert_eq!(late, Written::Conflict);
    let (stored, flags) = store.record(&session.thread).await.unwrap();
    assert_eq!((stored.unwrap().version, flags), (2, ControlFlags::default()));
}

#[tokio::test]
async fn one_concurrent_sandbox_write_wins() {
    let cloud = Cloud::start().await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let address = format!("{}/_bobbin/transactions", cloud.engine.endpoint());
    let asked = reqwest::Client::new().post(address).body(r#"{"ms": 50}"#);
    assert!(asked.send().await.unwrap().status().is_success());
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    let shared = session(1).thread.sandbox();
    let begin = async |number: u32| {
        let place = Place { link: Some(shared.clone()), ..Place::default() };
        let session = Session { place, ..session(number) };
        store.save(&session, both(0), &ControlFlags::default(), &[], 0).await
    };
    let came = futures::future::join_all((1..=6).map(begin)).await;
    let written = came.iter().filter(|one| matches!(one, Ok(Written::Yes(_))));
    assert_eq!(written.count(), 1, "{came:?}");
    let lost = came.iter().filter(|one| **one == Ok(Written::Conflict));
    assert_eq!(lost.count(), 5, "{came:?}");
}
