//! The table without the SDK: that it says and reads what the SDK does, and what becomes of calls that go wrong on the way.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::types::AttributeValue;
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use bobbin_adapters::direct::{ATTEMPTS_MAX, CallError, ITEMS_BYTES_MAX};
use bobbin_adapters::store::{Store, StoreError, Written};
use bobbin_adapters::table::{Attribute, Item, Request, Table};
use bobbin_core::ids::ThreadKey;
use bobbin_core::ledger::Entry;
use bobbin_core::message::Person;
use bobbin_core::session::{Marks, Outcome, Session};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Cloud, answering, direct, sdk_dynamodb, silent};

const MS_MAX: u64 = 60_000;

fn table(cloud: &Cloud) -> Table {
    through(cloud, cloud.engine.endpoint())
}

fn through(cloud: &Cloud, endpoint: &str) -> Table {
    Table::new(direct(endpoint), &cloud.resource("Table")).within(MS_MAX)
}

fn key(thread: &str, item: &str) -> Item {
    HashMap::from([
        ("thread".to_owned(), thread.into()),
        ("item".to_owned(), item.into()),
    ])
}

fn with(mut item: Item, name: &str, value: impl Into<Attribute>) -> Item {
    item.insert(name.to_owned(), value.into());
    item
}

fn session(number: u32) -> Session {
    let thread = ThreadKey::discord("1", &number.to_string()).unwrap();
    Session::new(thread, 1)
}

fn entry() -> Entry {
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
                tokio::io::copy_bidirectional(&mut ours, &mut theirs)
                    .await
                    .ok();
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
    let length = head.lines().find_map(|line| {
        line.to_lowercase()
            .strip_prefix("content-length:")
            .map(str::to_owned)
    });
    body.len() == length.unwrap().trim().parse::<usize>().unwrap()
}

#[tokio::test]
async fn what_is_written_is_what_the_sdk_reads_and_the_other_way_round() {
    let cloud = Cloud::start().await;
    let (table, sdk) = (table(&cloud), sdk_dynamodb(cloud.engine.endpoint()));
    let text = "\"\\ \u{1}\u{7f} ä 漢 🧵 \u{2028}";
    let item = with(with(key("a", "b"), "text", text), "number", u64::MAX);
    assert!(table.write(Request::put(item.clone())).await.unwrap());
    let read = sdk
        .get_item()
        .table_name(cloud.resource("Table"))
        .key("thread", AttributeValue::S("a".to_owned()))
        .key("item", AttributeValue::S("b".to_owned()))
        .send()
        .await
        .unwrap();
    let read = read.item.unwrap();
    assert_eq!(read["text"], AttributeValue::S(text.to_owned()));
    assert_eq!(read["number"], AttributeValue::N(u64::MAX.to_string()));
    assert_eq!(read.len(), item.len());

    sdk.put_item()
        .table_name(cloud.resource("Table"))
        .item("thread", AttributeValue::S("a".to_owned()))
        .item("item", AttributeValue::S("c".to_owned()))
        .item("text", AttributeValue::S(text.to_owned()))
        .item("is", AttributeValue::Bool(true))
        .item("list", AttributeValue::L(vec![AttributeValue::Null(true)]))
        .send()
        .await
        .unwrap();
    let read = table.get(key("a", "c")).await.unwrap().unwrap();
    let expected = with(key("a", "c"), "text", text);
    let expected = with(expected, "is", Attribute::Other);
    assert_eq!(read, with(expected, "list", Attribute::Other));
    assert_eq!(table.get(key("a", "d")).await, Ok(None));
}

#[tokio::test]
async fn pages_follow_each_other_to_the_end_and_an_index_can_be_left_and_entered_again() {
    let cloud = Cloud::start().await;
    let table = table(&cloud);
    for number in 0..5_u64 {
        let item = with(key("a", &number.to_string()), "due_shard", 3);
        let item = with(with(item, "due_at", number), "tenant", "t");
        assert!(table.write(Request::put(item)).await.unwrap());
    }
    let queries: [fn() -> Request; 3] = [
        || {
            Request::query("#thread = :thread")
                .name("#thread", "thread")
                .value(":thread", "a")
        },
        || {
            Request::query_index("due", "#shard = :shard")
                .name("#shard", "due_shard")
                .value(":shard", 3)
        },
        Request::scan,
    ];
    for query in queries {
        let (mut found, mut pages, mut start) = (Vec::new(), 0, None);
        loop {
            let page = table.page(query().limit(2).after(start)).await.unwrap();
            let names = page
                .items
                .iter()
                .map(|item| item["item"].text().unwrap().to_owned());
            found.extend(names);
            pages += 1;
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        found.sort();
        assert_eq!(found, ["0", "1", "2", "3", "4"]);
        assert_eq!(pages, 3);
    }
    for number in 0..5 {
        let delete = Request::delete(key("a", &number.to_string()));
        assert!(table.write(delete).await.unwrap());
    }
    assert!(table.page(Request::scan()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_table_that_has_too_much_to_do_is_asked_again_and_then_told_of() {
    let code = "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException";
    let busy = (400, json!({"__type": code, "message": "Slower."}));
    let item = json!({"Item": {"thread": {"S": "a"}}});
    let (endpoint, asked) = scripted(vec![busy.clone(), (200, item)]).await;
    let table = Table::new(direct(&endpoint), "table");
    assert!(table.get(key("a", "b")).await.unwrap().is_some());
    assert_eq!(asked.lock().unwrap().len(), 2);

    let (endpoint, asked) = scripted(vec![busy]).await;
    let store = Store::new(direct(&endpoint), "table");
    let told = store.settings("t").await.unwrap_err();
    assert_eq!(
        told.to_string(),
        "the table does not answer: ProvisionedThroughputExceededException: Slower."
    );
    assert!(matches!(told, StoreError::Later(_)));
    assert_eq!(asked.lock().unwrap().len(), ATTEMPTS_MAX as usize);
}

#[tokio::test]
async fn what_a_batch_leaves_out_is_asked_for_again_and_never_taken_for_what_is_not_there() {
    let one = json!({"thread": {"S": "a"}, "item": {"S": "1"}});
    let two = json!({"thread": {"S": "a"}, "item": {"S": "2"}});
    let left = |key: &Value| json!({"table": {"Keys": [key], "ConsistentRead": true}});
    let part = json!({"Responses": {"table": [one]}, "UnprocessedKeys": left(&two)});
    let rest = json!({"Responses": {"table": [two]}, "UnprocessedKeys": {}});
    let (endpoint, asked) = scripted(vec![(200, part), (200, rest)]).await;
    let table = Table::new(direct(&endpoint), "table");
    let wanted = vec![key("a", "1"), key("a", "2")];
    assert_eq!(table.get_all(wanted.clone()).await.unwrap(), wanted);
    let asked = asked.lock().unwrap().clone();
    let again = json!({"RequestItems": {"table": {"Keys": [two], "ConsistentRead": true}}});
    assert_eq!(
        asked[1],
        ("DynamoDB_20120810.BatchGetItem".to_owned(), again)
    );

    let nothing = json!({"Responses": {"table": []}, "UnprocessedKeys": left(&two)});
    let (endpoint, asked) = scripted(vec![(200, nothing)]).await;
    let store = Store::new(direct(&endpoint), "table");
    let thread = session(1).thread;
    let told = store.record(&thread).await.unwrap_err();
    assert!(matches!(told, StoreError::Later(_)), "{told:?}");
    assert_eq!(asked.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn an_answer_that_is_not_the_tables_is_no_answer() {
    let thread = session(1).thread;
    for strange in [
        json!({}),
        json!([]),
        json!({"Responses": 7}),
        json!({"Responses": {"table": [{"thread": "canary"}]}}),
    ] {
        let (endpoint, _) = scripted(vec![(200, strange.clone())]).await;
        let store = Store::new(direct(&endpoint), "table");
        let told = store.record(&thread).await.unwrap_err();
        let expected = "the table does not answer: the answer could not be read";
        assert_eq!(told.to_string(), expected, "{strange}");
        assert!(store.due(0, 1).await.is_err(), "{strange}");
    }
    let (endpoint, _) = answering(200, "<html>canary</html>").await;
    let told = Store::new(direct(&endpoint), "table").settings("t").await;
    assert!(!told.unwrap_err().to_string().contains("canary"));
}

#[tokio::test]
async fn a_refusal_keeps_its_class_and_its_words_within_bounds() {
    let refused = |code: &str| json!({"__type": format!("x#{code}"), "Message": "m".repeat(9_000)});
    for (code, is_for_good) in [
        ("ResourceNotFoundException", true),
        ("AccessDeniedException", true),
        ("UnrecognizedClientException", true),
        ("ValidationException", true),
        ("ExpiredTokenException", false),
        ("TransactionConflictException", false),
    ] {
        let (endpoint, asked) = scripted(vec![(400, refused(code))]).await;
        let store = Store::new(direct(&endpoint), "table");
        let told = store.record(&session(1).thread).await.unwrap_err();
        assert_eq!(
            matches!(told, StoreError::Refused(_)),
            is_for_good,
            "{told:?}"
        );
        assert_eq!(
            matches!(told, StoreError::Later(_)),
            !is_for_good,
            "{told:?}"
        );
        assert!(told.to_string().contains(code), "{told}");
        assert!(told.to_string().len() < 600, "{told}");
        assert_eq!(asked.lock().unwrap().len(), 1, "{code}");
    }
}

#[tokio::test]
async fn of_a_transaction_a_lost_condition_is_a_conflict_and_another_reason_is_not() {
    let cancelled = |reasons: &[&str]| {
        let reasons: Vec<_> = reasons
            .iter()
            .map(|code| json!({"Code": code, "Message": "m"}))
            .collect();
        let code = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
        (
            400,
            json!({"__type": code, "Message": "m", "CancellationReasons": reasons}),
        )
    };
    let entry = [entry()];
    let save = async |answer| {
        let (endpoint, asked) = scripted(vec![answer]).await;
        let store = Store::new(direct(&endpoint), "table");
        let saved = store
            .save(&session(1), 0, &Marks::default(), &entry, 0)
            .await;
        (saved, asked.lock().unwrap().clone())
    };
    let (lost, asked) = save(cancelled(&["ConditionalCheckFailed", "None"])).await;
    assert_eq!(lost.unwrap(), Written::Conflict);
    let (action, request) = &asked[0];
    assert_eq!(action, "DynamoDB_20120810.TransactWriteItems");
    assert_eq!(request["ClientRequestToken"].as_str().unwrap().len(), 32);
    assert_eq!(request["TransactItems"][0]["Update"]["TableName"], "table");
    assert_eq!(request["TransactItems"][1]["Put"]["TableName"], "table");
    let (busy, _) = save(cancelled(&["None", "TransactionConflict"])).await;
    assert!(matches!(busy, Err(StoreError::Later(_))), "{busy:?}");
    let (unsaid, _) = save((400, json!({"__type": "TransactionCanceledException"}))).await;
    assert!(matches!(unsaid, Err(StoreError::Later(_))), "{unsaid:?}");
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_has_its_effect_once() {
    let cloud = Cloud::start().await;
    let (endpoint, lost) = lossy(cloud.engine.endpoint()).await;
    let store = Store::new(direct(&endpoint), &cloud.resource("Table"));
    let direct_store = Store::new(direct(cloud.engine.endpoint()), &cloud.resource("Table"));

    // A transaction bears a token: its repeat is the same one.
    let first = session(1);
    let entry = [entry()];
    let saved = store
        .save(&first, 0, &Marks::default(), &entry, u64::MAX / 2)
        .await;
    assert_eq!(saved.unwrap(), Written::Yes(None));
    assert_eq!(lost.load(Ordering::SeqCst), 1);
    let (stored, _) = direct_store.record(&first.thread).await.unwrap();
    assert_eq!(stored.unwrap().version, 1);

    // A single write bears none: the repeat loses against itself, and whoever reads again finds what was written.
    let (endpoint, lost) = lossy(cloud.engine.endpoint()).await;
    let store = Store::new(direct(&endpoint), &cloud.resource("Table"));
    let second = session(2);
    let saved = store.save(&second, 0, &Marks::default(), &[], 0).await;
    assert_eq!(saved.unwrap(), Written::Conflict);
    assert_eq!(lost.load(Ordering::SeqCst), 1);
    let (stored, _) = direct_store.record(&second.thread).await.unwrap();
    assert_eq!(stored.unwrap().version, 1);
}

#[tokio::test]
async fn a_transaction_of_the_same_content_is_another_one() {
    let cloud = Cloud::start().await;
    let store = Store::new(direct(cloud.engine.endpoint()), &cloud.resource("Table"));
    let entry = [entry()];
    let (session, marks) = (session(1), Marks::default());
    let save = || store.save(&session, 0, &marks, &entry, u64::MAX / 2);
    assert_eq!(save().await.unwrap(), Written::Yes(None));
    assert_eq!(save().await.unwrap(), Written::Conflict);
}

#[tokio::test]
async fn a_call_of_a_silent_table_is_over_in_time() {
    let (endpoint, _listener) = silent().await;
    let table = Table::new(direct(&endpoint), "table").within(50);
    assert_eq!(table.get(key("a", "b")).await, Err(CallError::Late(50)));
    assert_eq!(
        table.get_all(vec![key("a", "b")]).await,
        Err(CallError::Late(50))
    );
}

#[tokio::test]
async fn an_answer_is_read_up_to_its_bound_and_not_further() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    // As long as a page of the table can be, and then one that is longer.
    let lengths = Arc::new(Mutex::new(vec![ITEMS_BYTES_MAX + 1, ITEMS_BYTES_MAX - 100]));
    let answer = move || {
        let length = lengths.lock().unwrap().pop().unwrap();
        let (head, tail) = (r#"{"Items":[{"a":{"S":""#, r#""}}]}"#);
        let filling = "x".repeat(length - head.len() - tail.len());
        std::future::ready(format!("{head}{filling}{tail}"))
    };
    let app = Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let table = Table::new(direct(&endpoint), "table").within(MS_MAX);
    assert_eq!(table.page(Request::scan()).await.unwrap().items.len(), 1);
    let long = table.page(Request::scan()).await.unwrap_err();
    assert_eq!(long, CallError::Unreadable);
}

#[tokio::test]
async fn marks_stand_beside_a_record_and_go_with_its_write() {
    let cloud = Cloud::start().await;
    let store = Store::new(direct(cloud.engine.endpoint()), &cloud.resource("Table"));
    let session = session(1);
    let person = Person::default();
    store
        .mark_cancelled(&session.thread, "t", &person)
        .await
        .unwrap();
    let (none, marks) = store.record(&session.thread).await.unwrap();
    assert_eq!(none, None);
    assert_eq!(marks.cancelled.keys().collect::<Vec<_>>(), ["t"]);
    // Only beside the one that says that it waits.
    assert!(!store.mark_now(&session.thread, "t", &person).await.unwrap());
    let saved = store
        .save(&session, 0, &Marks::default(), &[], 0)
        .await
        .unwrap();
    assert_eq!(saved, Written::Yes(Some(marks.clone())));
    let saved = store.save(&session, 1, &marks, &[], 0).await.unwrap();
    assert_eq!(saved, Written::Yes(Some(Marks::default())));
    let late = store
        .save(&session, 1, &Marks::default(), &[], 0)
        .await
        .unwrap();
    assert_eq!(late, Written::Conflict);
    let (stored, marks) = store.record(&session.thread).await.unwrap();
    assert_eq!((stored.unwrap().version, marks), (2, Marks::default()));
}
