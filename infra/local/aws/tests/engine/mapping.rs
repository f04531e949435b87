//! From a queue to a function.

use serde_json::{Value, json};

use crate::support::{Stack, until};

const INBOX: &str = "test-Inbox.fifo";

async fn post(stack: &Stack, group: &str, command: Value) {
    let url = stack.engine.resource("Inbox").unwrap();
    let sqs = stack.sqs();
    let send = sqs.send_message().queue_url(url).message_group_id(group);
    send.message_body(command.to_string()).send().await.unwrap();
}

fn records(stack: &Stack, name: &str) -> Vec<Value> {
    stack
        .texts()
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("record ")?).ok())
        .filter(|record| record["body"].as_str().unwrap().contains(&format!("\"{name}\"")))
        .collect()
}

#[tokio::test]
async fn sqs_record_matches_aws() {
    let stack = Stack::start().await;
    post(&stack, "a", json!({ "name": "shape" })).await;
    until("the message is done", async || stack.peek(INBOX).await.is_empty()).await;
    let record = records(&stack, "shape").remove(0);
    assert_eq!(record["eventSource"], "aws:sqs");
    assert_eq!(record["eventSourceARN"], "arn:aws:sqs:us-east-1:000000000000:test-Inbox.fifo");
    assert_eq!(record["awsRegion"], "us-east-1");
    assert_eq!(record["body"], "{\"name\":\"shape\"}");
    let attributes = &record["attributes"];
    assert_eq!(attributes["MessageGroupId"], "a");
    assert_eq!(attributes["ApproximateReceiveCount"], "1");
    for name in [
        "SentTimestamp",
        "SequenceNumber",
        "MessageDeduplicationId",
        "SenderId",
        "ApproximateFirstReceiveTimestamp",
    ] {
        assert!(attributes[name].is_string(), "{name}");
    }
    assert!(record["messageId"].is_string() && record["md5OfBody"].is_string());
}

#[tokio::test]
async fn groups_run_in_parallel_each_serially() {
    let stack = Stack::start().await;
    let go = stack.folder.0.join("go");
    for name in ["a1", "b1"] {
        post(&stack, &name[..1], json!({ "name": name, "file": go })).await;
    }
    until("both groups run", async || stack.has_line("begin a1") && stack.has_line("begin b1"))
        .await;
    for name in ["a2", "a3"] {
        post(&stack, "a", json!({ "name": name })).await;
    }
    post(&stack, "c", json!({ "name": "c1" })).await;
    until("a third group runs", async || stack.has_line("end c1")).await;
    assert!(!stack.has_line("begin a2"), "its group is busy");
    std::fs::write(&go, "").unwrap();
    until("all is done", async || stack.peek(INBOX).await.is_empty()).await;
    let texts = stack.texts();
    let of_a: Vec<&str> = texts
        .iter()
        .map(String::as_str)
        .filter(|line| line.starts_with("begin a") || line.starts_with("end a"))
        .collect();
    assert_eq!(of_a, ["begin a1", "end a1", "begin a2", "end a2", "begin a3", "end a3"]);
}

#[tokio::test]
async fn only_failed_batch_items_are_redelivered() {
    let stack = Stack::start().await;
    let go = stack.folder.0.join("go");
    // The first holds its group, so that the others gather into one batch.
    post(&stack, "a", json!({ "name": "hold", "file": go })).await;
    until("the first runs", async || stack.has_line("begin hold")).await;
    post(&stack, "a", json!({ "name": "good" })).await;
    post(&stack, "a", json!({ "name": "bad", "outcome": "fail" })).await;
    std::fs::write(&go, "").unwrap();
    for times in 1..=3 {
        until("the bad one is left and has run", async || {
            let left = stack.peek(INBOX).await;
            let is_out = left.len() == 1 && left[0]["in_function"] == false;
            is_out && records(&stack, "bad").len() == times
        })
        .await;
        let left = &stack.peek(INBOX).await[0];
        assert!(left["body"].as_str().unwrap().contains("bad"));
        assert_eq!(left["state"], "in flight", "it waits for its visibility");
        stack.advance(300);
    }
    until("it is buried after three receives", async || {
        stack.peek("test-InboxDead.fifo").await.len() == 1
    })
    .await;
    assert_eq!(records(&stack, "bad").len(), 3);
    assert_eq!(records(&stack, "good").len(), 1);
}

#[tokio::test]
async fn failed_batch_deletes_no_message() {
    for outcome in ["error", "crash", "nonsense"] {
        let stack = Stack::start().await;
        post(&stack, "a", json!({ "name": "x", "outcome": outcome })).await;
        until("the batch ended", async || {
            let left = stack.peek(INBOX).await;
            stack.has_line("end x") && left.len() == 1 && left[0]["in_function"] == false
        })
        .await;
        assert_eq!(stack.peek(INBOX).await[0]["state"], "in flight", "{outcome}");
        stack.advance(300);
        until("it runs again", async || records(&stack, "x").len() == 2).await;
    }
}

#[tokio::test]
async fn the_functions_own_visibility_change_holds() {
    let stack = Stack::start().await;
    let go = stack.folder.0.join("go");
    post(&stack, "a", json!({ "name": "x", "file": go, "outcome": "fail" })).await;
    until("the function runs", async || stack.has_line("begin x")).await;
    let record = records(&stack, "x").remove(0);
    let change = stack.sqs().change_message_visibility();
    change
        .queue_url(stack.engine.resource("Inbox").unwrap())
        .receipt_handle(record["receiptHandle"].as_str().unwrap())
        .visibility_timeout(5)
        .send()
        .await
        .unwrap();
    std::fs::write(&go, "").unwrap();
    until("the batch ended", async || {
        stack.peek(INBOX).await.first().is_some_and(|left| left["in_function"] == false)
    })
    .await;
    assert_eq!(records(&stack, "x").len(), 1);
    stack.advance(5);
    until("it runs again", async || records(&stack, "x").len() == 2).await;
}

#[tokio::test]
async fn restart_redelivers_in_flight_messages() {
    let stack = Stack::start().await;
    let go = stack.folder.0.join("go");
    post(&stack, "a", json!({ "name": "x", "file": go })).await;
    until("the function runs", async || stack.has_line("begin x")).await;
    let folder = stack.folder.clone();
    stack.engine.stop().await;

    std::fs::write(&go, "").unwrap();
    let stack = Stack::start_in(folder).await;
    until("the message is done", async || stack.peek(INBOX).await.is_empty()).await;
    let record = records(&stack, "x").remove(0);
    assert_eq!(record["attributes"]["ApproximateReceiveCount"], "2");
}
