//! SQS, one promise a test.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use aws_sdk_sqs::error::ProvideErrorMetadata as _;
use aws_sdk_sqs::types::{
    MessageAttributeValue, MessageSystemAttributeName, QueueAttributeName,
    SendMessageBatchRequestEntry,
};

use crate::support::{Stack, bodies, receipt};

const VISIBILITY: (QueueAttributeName, &str) = (QueueAttributeName::VisibilityTimeout, "30");

#[tokio::test]
async fn a_group_is_locked_while_one_of_its_messages_is_in_flight() {
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

    let delete = stack.sqs().delete_message().queue_url(&url);
    delete
        .receipt_handle(receipt(&first[0]))
        .send()
        .await
        .unwrap();
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
    let delete = stack.sqs().delete_message().queue_url(&url);
    delete
        .receipt_handle(receipt(&batch[0]))
        .send()
        .await
        .unwrap();
    assert!(stack.take(&url, 10).await.is_empty());
    stack.advance(30);
    assert_eq!(bodies(&stack.take(&url, 10).await), ["a2", "a3"]);
}

#[tokio::test]
async fn visibility_can_be_ended_extended_and_never_exceeds_twelve_hours() {
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
async fn an_expired_receipt_handle_is_refused_on_fifo() {
    let stack = Stack::start().await;
    let url = stack.fifo("expired.fifo", &[VISIBILITY]).await;
    stack.post(&url, "a", "a1").await;
    let old = stack.take(&url, 1).await;
    stack.advance(30);
    let delete = |handle: &str| {
        stack
            .sqs()
            .delete_message()
            .queue_url(&url)
            .receipt_handle(handle)
            .send()
    };
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
async fn a_standard_queue_takes_a_handle_until_the_message_is_received_again() {
    let stack = Stack::start().await;
    let url = stack.engine.resource("Plain").unwrap();
    let sqs = stack.sqs();
    let send = sqs.send_message().queue_url(&url).message_body("one");
    send.send().await.unwrap();
    let old = stack.take(&url, 1).await;
    stack.advance(60);
    let new = stack.take(&url, 1).await;
    let delete = |handle: &str| {
        sqs.delete_message()
            .queue_url(&url)
            .receipt_handle(handle)
            .send()
    };
    delete(receipt(&old[0])).await.unwrap();
    assert_eq!(
        stack.peek("test-Plain").await.len(),
        1,
        "the old handle does no harm"
    );
    stack.advance(60);
    delete(receipt(&new[0])).await.unwrap();
    assert!(stack.peek("test-Plain").await.is_empty());
}

#[tokio::test]
async fn a_duplicate_within_five_minutes_is_answered_and_dropped() {
    let stack = Stack::start().await;
    let scope = (QueueAttributeName::DeduplicationScope, "messageGroup");
    for (name, attributes, expected) in [
        ("queuewide.fifo", vec![], vec!["first", "first"]),
        (
            "pergroup.fifo",
            vec![scope],
            vec!["first", "third", "first"],
        ),
    ] {
        let url = stack.fifo(name, &attributes).await;
        let send = |group: &str, body: &str| {
            stack
                .sqs()
                .send_message()
                .queue_url(&url)
                .message_group_id(group)
                .message_deduplication_id("same")
                .message_body(body)
                .send()
        };
        let first = send("a", "first").await.unwrap();
        let second = send("a", "second").await.unwrap();
        assert_eq!(first.message_id(), second.message_id());
        assert_eq!(first.sequence_number(), second.sequence_number());
        send("b", "third").await.unwrap();

        let taken = stack.take(&url, 1).await;
        let delete = stack.sqs().delete_message().queue_url(&url);
        delete
            .receipt_handle(receipt(&taken[0]))
            .send()
            .await
            .unwrap();
        send("a", "after the delete").await.unwrap();
        stack.advance(299);
        send("a", "just before").await.unwrap();
        stack.advance(1);
        send("a", "first").await.unwrap();
        let found = stack.peek(name).await;
        let found: Vec<_> = found.iter().map(|m| m["body"].as_str().unwrap()).collect();
        assert_eq!(found, expected[1..], "{name}");
    }
}

#[tokio::test]
async fn content_is_deduplicated_where_the_queue_says_so() {
    let stack = Stack::start().await;
    let content = (QueueAttributeName::ContentBasedDeduplication, "true");
    let url = stack.fifo("content.fifo", &[content]).await;
    let send = |url: &str, body: &str| {
        stack
            .sqs()
            .send_message()
            .queue_url(url)
            .message_group_id("a")
            .message_body(body)
            .send()
    };
    send(&url, "same").await.unwrap();
    send(&url, "same").await.unwrap();
    send(&url, "other").await.unwrap();
    assert_eq!(stack.peek("content.fifo").await.len(), 2);

    let without = stack.fifo("without.fifo", &[]).await;
    let refused = send(&without, "same").await.unwrap_err();
    assert_eq!(refused.code(), Some("InvalidParameterValue"));
}

#[tokio::test]
async fn a_waiting_consumer_wakes_at_once() {
    let stack = Stack::start().await;
    let url = stack.fifo("poll.fifo", &[VISIBILITY]).await;
    let wait = || {
        let receive = stack.sqs().receive_message().queue_url(&url);
        tokio::spawn(receive.wait_time_seconds(20).send())
    };
    let start = Instant::now();
    let waiting = wait();
    tokio::task::yield_now().await;
    stack.post(&url, "a", "a1").await;
    stack.post(&url, "a", "a2").await;
    let first = waiting.await.unwrap().unwrap().messages.unwrap();
    assert_eq!(bodies(&first), ["a1"]);

    let waiting = wait();
    let delete = stack.sqs().delete_message().queue_url(&url);
    delete
        .receipt_handle(receipt(&first[0]))
        .send()
        .await
        .unwrap();
    let second = waiting.await.unwrap().unwrap().messages.unwrap();
    assert_eq!(bodies(&second), ["a2"], "a delete unlocks the group");

    // Shorter than the wait, so that it is the message that ends it.
    let change = stack.sqs().change_message_visibility().queue_url(&url);
    change
        .receipt_handle(receipt(&second[0]))
        .visibility_timeout(10)
        .send()
        .await
        .unwrap();
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
    assert!(start.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn a_delay_is_the_queues_on_fifo_and_the_messages_own_on_standard() {
    let stack = Stack::start().await;
    let delay = (QueueAttributeName::DelaySeconds, "60");
    let url = stack.fifo("delay.fifo", &[delay]).await;
    stack.post(&url, "a", "a1").await;
    assert!(stack.take(&url, 1).await.is_empty());
    stack.advance(60);
    assert_eq!(bodies(&stack.take(&url, 1).await), ["a1"]);

    let refused = stack
        .sqs()
        .send_message()
        .queue_url(&url)
        .message_group_id("a")
        .message_deduplication_id("x")
        .message_body("x")
        .delay_seconds(5)
        .send()
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Some("InvalidParameterValue"));

    let plain = stack.engine.resource("Plain").unwrap();
    let send = stack.sqs().send_message().queue_url(&plain);
    send.message_body("later")
        .delay_seconds(5)
        .send()
        .await
        .unwrap();
    assert!(stack.take(&plain, 1).await.is_empty());
    stack.advance(5);
    assert_eq!(bodies(&stack.take(&plain, 1).await), ["later"]);
}

#[tokio::test]
async fn sizes_and_batches_are_bounded() {
    let stack = Stack::start().await;
    let url = stack.engine.resource("Plain").unwrap();
    let sqs = stack.sqs();
    let largest = "x".repeat(1024 * 1024);
    let send = |body: String| sqs.send_message().queue_url(&url).message_body(body).send();
    send(largest.clone()).await.unwrap();
    let refused = send(largest + "x").await.unwrap_err();
    assert_eq!(refused.code(), Some("InvalidParameterValue"));
    let refused = send("\u{1}".to_owned()).await.unwrap_err();
    assert_eq!(refused.code(), Some("InvalidMessageContents"));

    let batch = |entries: Vec<(&str, String)>| {
        let entries: Vec<_> = entries
            .into_iter()
            .map(|(id, body)| {
                let entry = SendMessageBatchRequestEntry::builder();
                entry.id(id).message_body(body).build().unwrap()
            })
            .collect();
        sqs.send_message_batch()
            .queue_url(&url)
            .set_entries(Some(entries))
            .send()
    };
    let ids = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];
    let many = |count: usize| {
        ids[..count]
            .iter()
            .map(|id| (*id, "x".to_owned()))
            .collect()
    };
    let sent = batch(many(10)).await.unwrap();
    assert_eq!((sent.successful.len(), sent.failed.len()), (10, 0));
    for (entries, code) in [
        (
            many(11),
            "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
        ),
        (vec![], "AWS.SimpleQueueService.EmptyBatchRequest"),
        (
            vec![("a", "x".to_owned()), ("a", "y".to_owned())],
            "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
        ),
        (
            vec![("no spaces", "x".to_owned())],
            "AWS.SimpleQueueService.InvalidBatchEntryId",
        ),
        (
            vec![("a", "x".repeat(600_000)), ("b", "x".repeat(600_000))],
            "AWS.SimpleQueueService.BatchRequestTooLong",
        ),
    ] {
        let refused = batch(entries).await.unwrap_err();
        assert_eq!(refused.code(), Some(code));
    }
    let mixed = batch(vec![("good", "x".to_owned()), ("bad", "\u{1}".to_owned())]);
    let mixed = mixed.await.unwrap();
    assert_eq!(mixed.successful[0].id(), "good");
    assert_eq!(mixed.failed[0].code(), "InvalidMessageContents");
}

#[tokio::test]
async fn a_message_carries_what_aws_says_about_it() {
    let stack = Stack::start().await;
    let url = stack.fifo("told.fifo", &[VISIBILITY]).await;
    let attribute = MessageAttributeValue::builder()
        .data_type("String")
        .string_value("blue")
        .build()
        .unwrap();
    let sent = stack
        .sqs()
        .send_message()
        .queue_url(&url)
        .message_group_id("a")
        .message_deduplication_id("one")
        .message_body("hello")
        .message_attributes("colour", attribute)
        .send()
        .await
        .unwrap();
    assert_eq!(
        sent.md5_of_message_body(),
        Some("5d41402abc4b2a76b9719d911017c592")
    );
    stack.take(&url, 1).await;
    stack.advance(30);
    let taken = stack
        .sqs()
        .receive_message()
        .queue_url(&url)
        .message_system_attribute_names(MessageSystemAttributeName::All)
        .message_attribute_names("col.*")
        .send()
        .await
        .unwrap();
    let message = &taken.messages()[0];
    let told = message.attributes().unwrap();
    let of = |name| told.get(&name).map(String::as_str);
    assert_eq!(
        of(MessageSystemAttributeName::ApproximateReceiveCount),
        Some("2")
    );
    assert_eq!(of(MessageSystemAttributeName::MessageGroupId), Some("a"));
    assert_eq!(
        of(MessageSystemAttributeName::MessageDeduplicationId),
        Some("one")
    );
    assert_eq!(
        of(MessageSystemAttributeName::SequenceNumber),
        sent.sequence_number()
    );
    assert_eq!(sent.sequence_number().unwrap().len(), 20);
    assert_eq!(message.message_id(), sent.message_id());
    let colour = &message.message_attributes().unwrap()["colour"];
    assert_eq!(colour.string_value(), Some("blue"));
    assert_eq!(
        message.md5_of_message_attributes(),
        sent.md5_of_message_attributes()
    );
}

#[tokio::test]
async fn old_messages_go_and_a_purge_empties_a_queue() {
    let stack = Stack::start().await;
    let retention = (QueueAttributeName::MessageRetentionPeriod, "60");
    let url = stack.fifo("old.fifo", &[retention]).await;
    stack.post(&url, "a", "a1").await;
    stack.advance(60);
    assert!(stack.take(&url, 1).await.is_empty());

    stack.post(&url, "a", "a2").await;
    let purge = || stack.sqs().purge_queue().queue_url(&url).send();
    purge().await.unwrap();
    assert!(stack.peek("old.fifo").await.is_empty());
    let refused = purge().await.unwrap_err();
    assert_eq!(
        refused.code(),
        Some("AWS.SimpleQueueService.PurgeQueueInProgress")
    );
}

#[tokio::test]
async fn queues_are_made_told_tagged_and_deleted() {
    let stack = Stack::start().await;
    let sqs = stack.sqs();
    let url = stack.fifo("made.fifo", &[VISIBILITY]).await;
    assert_eq!(stack.fifo("made.fifo", &[VISIBILITY]).await, url);
    let refused = sqs
        .create_queue()
        .queue_name("made.fifo")
        .attributes(QueueAttributeName::FifoQueue, "true")
        .attributes(QueueAttributeName::VisibilityTimeout, "31")
        .send()
        .await
        .unwrap_err();
    assert!(refused.into_service_error().is_queue_name_exists());

    let change = sqs.set_queue_attributes().queue_url(&url);
    change
        .attributes(QueueAttributeName::DelaySeconds, "7")
        .send()
        .await
        .unwrap();
    stack.post(&url, "a", "a1").await;
    let told = sqs.get_queue_attributes().queue_url(&url);
    let told = told.attribute_names(QueueAttributeName::All).send().await;
    let told: BTreeMap<_, _> = told
        .unwrap()
        .attributes
        .unwrap()
        .into_iter()
        .map(|(name, value)| (name.as_str().to_owned(), value))
        .collect();
    for (name, value) in [
        ("DelaySeconds", "7"),
        ("VisibilityTimeout", "30"),
        ("ApproximateNumberOfMessagesDelayed", "1"),
        ("ApproximateNumberOfMessages", "0"),
        ("QueueArn", "arn:aws:sqs:us-east-1:000000000000:made.fifo"),
        ("DeduplicationScope", "queue"),
    ] {
        assert_eq!(told[name], value, "{name}");
    }

    sqs.tag_queue()
        .queue_url(&url)
        .tags("a", "1")
        .tags("b", "2")
        .send()
        .await
        .unwrap();
    sqs.untag_queue()
        .queue_url(&url)
        .tag_keys("a")
        .send()
        .await
        .unwrap();
    let tags = sqs.list_queue_tags().queue_url(&url).send().await.unwrap();
    assert_eq!(tags.tags().unwrap().len(), 1);
    let listed = sqs.list_queues().queue_name_prefix("made").send().await;
    assert_eq!(listed.unwrap().queue_urls(), std::slice::from_ref(&url));

    sqs.delete_queue().queue_url(&url).send().await.unwrap();
    let refused = sqs.get_queue_url().queue_name("made.fifo").send().await;
    let refused = refused.unwrap_err().into_service_error();
    assert!(refused.is_queue_does_not_exist(), "{refused:?}");
}

#[tokio::test]
async fn many_consumers_and_failures_keep_every_group_in_order() {
    const GROUPS: usize = 8;
    const EACH: usize = 5;
    let stack = std::sync::Arc::new(Stack::start().await);
    let url = stack.fifo("storm.fifo", &[VISIBILITY]).await;
    for number in 0..EACH {
        for group in 0..GROUPS {
            stack
                .post(&url, &format!("g{group}"), &format!("g{group}-{number}"))
                .await;
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
                        let delete = sqs.delete_message().queue_url(&url);
                        delete.receipt_handle(handle).send().await.unwrap();
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
        let order: Vec<_> = done
            .iter()
            .filter_map(|body| body.strip_prefix(&prefix))
            .collect();
        assert_eq!(order, ["0", "1", "2", "3", "4"], "group {group}");
    }
}
