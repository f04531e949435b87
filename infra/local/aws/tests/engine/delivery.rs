//! Delivery: the group lock, order, visibility, receipt handles, waking consumers.

use std::time::Duration;

use aws_sdk_sqs::error::ProvideErrorMetadata as _;
use aws_sdk_sqs::types::QueueAttributeName;

use crate::support::{Stack, bodies, receipt};

const VISIBILITY: (QueueAttributeName, &str) = (QueueAttributeName::VisibilityTimeout, "30");

#[tokio::test]
async fn in_flight_message_locks_its_group() {
    let stack = Stack::start().await;
    let url = stack.fifo("lock.fifo", &[VISIBILITY]).await;
    for (group, body) in [("a", "a1"), ("a", "a2"), ("b", "b1")] {
        stack.post(&url, group, body).await;
    }
    let first = stack.take(&url, 1).await;
    assert_eq!(bodies(&first), ["a1"]);
    let second = stack.take(&url, 10).await;
    assert_eq!(bodies(&second), ["b1"]);
    assert!(stack.take(&url, 10).await.is_empty());

    stack.delete(&url, &first[0]).await;
    assert_eq!(bodies(&stack.take(&url, 10).await), ["a2"]);
}

#[tokio::test]
async fn order_survives_a_partial_failure() {
    let stack = Stack::start().await;
    let url = stack.fifo("order.fifo", &[VISIBILITY]).await;
    for body in ["a1", "a2", "a3"] {
        stack.post(&url, "a", body).await;
    }
    let batch = stack.take(&url, 10).await;
    assert_eq!(bodies(&batch), ["a1", "a2", "a3"]);
    stack.delete(&url, &batch[0]).await;
    assert!(stack.take(&url, 10).await.is_empty());
    stack.advance(30);
    assert_eq!(bodies(&stack.take(&url, 10).await), ["a2", "a3"]);
}

#[tokio::test]
async fn visibility_can_change_within_twelve_hours() {
    let stack = Stack::start().await;
    let url = stack.fifo("visible.fifo", &[VISIBILITY]).await;
    stack.post(&url, "a", "a1").await;
    let change = |handle: &str, seconds| {
        stack
            .sqs()
            .change_message_visibility()
            .queue_url(&url)
            .receipt_handle(handle)
            .visibility_timeout(seconds)
            .send()
    };

    let taken = stack.take(&url, 1).await;
    change(receipt(&taken[0]), 0).await.unwrap();
    let taken = stack.take(&url, 1).await;
    assert_eq!(bodies(&taken), ["a1"], "0 gives it back at once");

    change(receipt(&taken[0]), 100).await.unwrap();
    stack.advance(99);
    assert!(stack.take(&url, 1).await.is_empty());
    change(receipt(&taken[0]), 43_100).await.unwrap();
    let refused = change(receipt(&taken[0]), 43_200).await.unwrap_err();
    assert_eq!(refused.code(), Some("InvalidParameterValue"));
    assert!(refused.message().unwrap().contains("beyond the limit"));
    stack.advance(43_100);
    assert_eq!(bodies(&stack.take(&url, 1).await), ["a1"]);
}

#[tokio::test]
async fn fifo_refuses_expired_receipt_handles() {
    let stack = Stack::start().await;
    let url = stack.fifo("expired.fifo", &[VISIBILITY]).await;
    stack.post(&url, "a", "a1").await;
    let old = stack.take(&url, 1).await;
    stack.advance(30);
    let delete =
        |handle: &str| stack.sqs().delete_message().queue_url(&url).receipt_handle(handle).send();
    let refused = delete(receipt(&old[0])).await.unwrap_err();
    assert_eq!(refused.code(), Some("InvalidParameterValue"));
    assert!(refused.message().unwrap().contains("has expired"));

    let new = stack.take(&url, 1).await;
    let refused = delete(receipt(&old[0])).await.unwrap_err();
    assert_eq!(refused.code(), Some("InvalidParameterValue"));
    let refused = stack
        .sqs()
        .change_message_visibility()
        .queue_url(&url)
        .receipt_handle(receipt(&old[0]))
        .visibility_timeout(10)
        .send()
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Some("InvalidParameterValue"));

    delete(receipt(&new[0])).await.unwrap();
    delete(receipt(&new[0])).await.unwrap();
    let refused = delete("no handle").await.unwrap_err();
    assert_eq!(refused.code(), Some("ReceiptHandleIsInvalid"));
}

#[tokio::test]
async fn standard_queue_ignores_superseded_receipt_handles() {
    let stack = Stack::start().await;
    let url = stack.engine.resource("Plain").unwrap();
    let sqs = stack.sqs();
    let send = sqs.send_message().queue_url(&url).message_body("one");
    send.send().await.unwrap();
    let old = stack.take(&url, 1).await;
    stack.advance(60);
    let new = stack.take(&url, 1).await;
    let delete = |handle: &str| sqs.delete_message().queue_url(&url).receipt_handle(handle).send();
    delete(receipt(&old[0])).await.unwrap();
    assert_eq!(stack.peek("test-Plain").await.len(), 1, "the old handle does no harm");
    stack.advance(60);
    delete(receipt(&new[0])).await.unwrap();
    assert!(stack.peek("test-Plain").await.is_empty());
}

#[tokio::test]
async fn a_waiting_consumer_wakes_at_once() {
    let stack = Stack::start().await;
    let url = stack.fifo("poll.fifo", &[VISIBILITY]).await;
    let wait = || {
        let receive = stack.sqs().receive_message().queue_url(&url);
        tokio::spawn(receive.wait_time_seconds(20).send())
    };
    let waiting = wait();
    tokio::task::yield_now().await;
    stack.post(&url, "a", "a1").await;
    stack.post(&url, "a", "a2").await;
    let first = waiting.await.unwrap().unwrap().messages.unwrap();
    assert_eq!(bodies(&first), ["a1"]);

    let waiting = wait();
    stack.delete(&url, &first[0]).await;
    let second = waiting.await.unwrap().unwrap().messages.unwrap();
    assert_eq!(bodies(&second), ["a2"], "a delete unlocks the group");

    // Shorter than the wait, so that it is the message that ends it.
    let change = stack.sqs().change_message_visibility().queue_url(&url);
    change.receipt_handle(receipt(&second[0])).visibility_timeout(10).send().await.unwrap();
    let waiting = wait();
    stack.advance(10);
    let third = waiting.await.unwrap().unwrap().messages.unwrap();
    assert_eq!(bodies(&third), ["a2"], "a visibility that ends wakes");

    let waiting = wait();
    tokio::time::timeout(Duration::from_secs(5), async {
        while !waiting.is_finished() {
            stack.advance(20);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("a wait ends with its own time");
}

#[tokio::test]
async fn groups_stay_ordered_despite_failing_consumers() {
    const GROUPS: usize = 8;
    const EACH: usize = 5;
    let stack = std::sync::Arc::new(Stack::start().await);
    let url = stack.fifo("storm.fifo", &[VISIBILITY]).await;
    for number in 0..EACH {
        for group in 0..GROUPS {
            stack.post(&url, &format!("g{group}"), &format!("g{group}-{number}")).await;
        }
    }
    let done = std::sync::Arc::new(std::sync::Mutex::new(Vec::<String>::new()));
    let consumers = (0..6).map(|consumer: usize| {
        let (stack, url, done) = (stack.clone(), url.clone(), done.clone());
        tokio::spawn(async move {
            let mut turn = consumer;
            while done.lock().unwrap().len() < GROUPS * EACH {
                for message in stack.take(&url, 1).await {
                    turn += 1;
                    let (sqs, handle) = (stack.sqs(), receipt(&message));
                    if turn.is_multiple_of(3) {
                        let change = sqs.change_message_visibility().queue_url(&url);
                        let change = change.receipt_handle(handle).visibility_timeout(0);
                        change.send().await.unwrap();
                    } else {
                        let body = message.body().unwrap().to_owned();
                        done.lock().unwrap().push(body);
                        stack.delete(&url, &message).await;
                    }
                }
            }
        })
    });
    for consumer in consumers.collect::<Vec<_>>() {
        consumer.await.unwrap();
    }
    let done = done.lock().unwrap();
    for group in 0..GROUPS {
        let prefix = format!("g{group}-");
        let order: Vec<_> = done.iter().filter_map(|body| body.strip_prefix(&prefix)).collect();
        assert_eq!(order, ["0", "1", "2", "3", "4"], "group {group}");
    }
}
