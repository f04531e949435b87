//! DynamoDB behind the endpoint.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem, Update};
use serde_json::json;
use std::sync::Arc;
use tokio::task::JoinSet;

use crate::support::{FUNCTIONS, Folder, PROJECT, Stack, sdk_config, settings, until};

const TABLE: &str = "test-Table";

async fn stack(folder: Arc<Folder>) -> Stack {
    let settings = settings(&folder, PROJECT, &FUNCTIONS);
    Stack::start_with(folder, settings).await
}

fn client(stack: &Stack) -> Client {
    Client::from_conf(sdk_config!(aws_sdk_dynamodb, stack.engine.endpoint()).build())
}

async fn put(client: &Client, thread: &str, due_at: u32) {
    client
        .put_item()
        .table_name(TABLE)
        .item("thread", AttributeValue::S(thread.to_owned()))
        .item("item", AttributeValue::S("session".to_owned()))
        .item("due_shard", AttributeValue::N("1".to_owned()))
        .item("due_at", AttributeValue::N(due_at.to_string()))
        .send()
        .await
        .unwrap();
}

async fn due(client: &Client) -> Vec<String> {
    let query = client.query().table_name(TABLE).index_name("due");
    let found = query
        .key_condition_expression("due_shard = :s")
        .expression_attribute_values(":s", AttributeValue::N("1".to_owned()))
        .send()
        .await
        .unwrap();
    let threads = found.items().iter().map(|item| item["thread"].as_s().unwrap().clone());
    threads.collect()
}

#[tokio::test]
async fn project_table_survives_a_restart() {
    let folder = Arc::new(Folder::new());
    let first = stack(folder.clone()).await;
    assert_eq!(first.engine.resource("Table").as_deref(), Some(TABLE));
    put(&client(&first), "t1", 5).await;
    let refused = client(&first)
        .put_item()
        .table_name(TABLE)
        .item("thread", AttributeValue::S("t1".to_owned()))
        .item("item", AttributeValue::S("session".to_owned()))
        .condition_expression("attribute_not_exists(thread)")
        .send()
        .await
        .unwrap_err();
    assert!(refused.into_service_error().is_conditional_check_failed_exception());
    first.engine.stop().await;

    let second = stack(folder).await;
    let key = HashMap::from([
        ("thread".to_owned(), AttributeValue::S("t1".to_owned())),
        ("item".to_owned(), AttributeValue::S("session".to_owned())),
    ]);
    let get = client(&second).get_item().table_name(TABLE).set_key(Some(key));
    assert!(get.send().await.unwrap().item().is_some());
    let ttl = client(&second).describe_time_to_live().table_name(TABLE);
    let ttl = ttl.send().await.unwrap().time_to_live_description.unwrap();
    assert_eq!(ttl.attribute_name(), Some("expires_at"));
}

#[tokio::test]
async fn index_lag_leaves_the_table_fresh() {
    let stack = stack(Arc::new(Folder::new())).await;
    let client = client(&stack);
    put(&client, "before", 1).await;
    let lag = |ms: u32| stack.call("POST", "/_bobbin/index-lag", Some(json!({ "ms": ms })));
    assert_eq!(lag(60_000).await.0, 200);
    put(&client, "first", 2).await;
    stack.advance(30);
    put(&client, "second", 3).await;
    assert_eq!(due(&client).await, ["before"]);
    let scan = client.scan().table_name(TABLE).send().await.unwrap();
    assert_eq!(scan.count(), 3);
    stack.advance(31);
    assert_eq!(due(&client).await, ["before", "first"]);
    stack.advance(30);
    assert_eq!(due(&client).await, ["before", "first", "second"]);
    put(&client, "third", 4).await;
    assert_eq!(due(&client).await.len(), 3);
    lag(0).await;
    assert_eq!(due(&client).await.len(), 4);
}

#[tokio::test]
async fn deletion_protection_follows_the_template() {
    let folder = Arc::new(Folder::new());
    let with = async |protect: &str| {
        let mut settings = settings(&folder, PROJECT, &FUNCTIONS);
        let parameter = ("ProtectTable".to_owned(), protect.to_owned());
        settings.parameters = [parameter].into();
        Stack::start_with(folder.clone(), settings).await
    };
    let delete = async |stack: &Stack| {
        let asked = client(stack).delete_table().table_name(TABLE);
        let answer = asked.send().await;
        answer.map_err(|error| error.message().unwrap_or_default().to_owned())
    };
    let protected = with("yes").await;
    let refused = delete(&protected).await.unwrap_err();
    assert!(refused.contains("deletion protection"), "{refused}");
    protected.engine.stop().await;

    let free = with("no").await;
    delete(&free).await.unwrap();
    free.engine.stop().await;
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

/// Counts in one item, and puts another that nobody else knows.
async fn count(client: &Client, by: usize) -> Result<(), Vec<String>> {
    let counted = Update::builder()
        .table_name(TABLE)
        .key("thread", text("shared"))
        .key("item", text("sandbox"))
        .update_expression("ADD version :one")
        .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
        .build()
        .unwrap();
    let put = Put::builder()
        .table_name(TABLE)
        .item("thread", text(&format!("own-{by}")))
        .item("item", text("session"))
        .build()
        .unwrap();
    let writes = client
        .transact_write_items()
        .transact_items(TransactWriteItem::builder().update(counted).build())
        .transact_items(TransactWriteItem::builder().put(put).build());
    let Err(error) = writes.send().await else {
        return Ok(());
    };
    let TransactWriteItemsError::TransactionCanceledException(cancelled) =
        error.into_service_error()
    else {
        panic!("it is refused otherwise")
    };
    let codes = cancelled.cancellation_reasons().iter();
    Err(codes.filter_map(|one| one.code().map(str::to_owned)).collect())
}

async fn last(stack: &Stack, ms: u32) {
    let (status, _) = stack.call("POST", "/_bobbin/transactions", Some(json!({ "ms": ms }))).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn conflicting_transactions_are_cancelled() {
    let stack = stack(Arc::new(Folder::new())).await;
    let client = client(&stack);
    last(&stack, 500).await;
    let mut all = JoinSet::new();
    for by in 0..8 {
        let client = client.clone();
        all.spawn(async move { count(&client, by).await });
    }
    let came = all.join_all().await;
    let counted = came.iter().filter(|one| one.is_ok()).count();
    let cancelled: Vec<_> = came.into_iter().filter_map(Result::err).collect();
    assert!(counted > 0 && !cancelled.is_empty(), "{cancelled:?}");
    for codes in cancelled {
        assert_eq!(codes, ["TransactionConflict", "None"]);
    }
    last(&stack, 0).await;
    count(&client, 8).await.unwrap();
    let read = client.get_item().table_name(TABLE);
    let read = read.key("thread", text("shared")).key("item", text("sandbox"));
    let item = read.send().await.unwrap().item.unwrap();
    let version: usize = item["version"].as_n().unwrap().parse().unwrap();
    assert_eq!(version, counted + 1);
}

#[tokio::test]
async fn items_in_a_transaction_refuse_writes() {
    let stack = stack(Arc::new(Folder::new())).await;
    let client = client(&stack);
    last(&stack, 3_000).await;
    let transaction = count(&client, 1);
    let meanwhile = async {
        let put = |thread: &str| {
            let put = client.put_item().table_name(TABLE);
            put.item("thread", text(thread)).item("item", text("session"))
        };
        until("the transaction is in flight", async || {
            let refused = put("own-1").send().await.err();
            refused.is_some_and(|e| e.into_service_error().is_transaction_conflict_exception())
        })
        .await;
        // Another item, and another one of the same thread.
        put("own-2").send().await.unwrap();
        let update = client.update_item().table_name(TABLE);
        let update = update.key("thread", text("shared"));
        let free = update.clone().key("item", text("session")).send().await;
        free.unwrap();
        let refused = update.key("item", text("sandbox")).send().await;
        let refused = refused.unwrap_err().into_service_error();
        assert!(refused.is_transaction_conflict_exception(), "{refused:?}");
        // What is read by itself meets nothing.
        let read = client.get_item().table_name(TABLE);
        let read = read.key("thread", text("shared")).key("item", text("sandbox"));
        assert!(read.send().await.unwrap().item.is_none());
    };
    let (counted, ()) = tokio::join!(transaction, meanwhile);
    counted.unwrap();
}
