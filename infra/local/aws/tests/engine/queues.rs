//! Queues and what is sent to them: deduplication, delays, bounds, attributes.

use std::collections::BTreeMap;

use aws_sdk_sqs::error::ProvideErrorMetadata as _;
use aws_sdk_sqs::types::{
    MessageAttributeValue, MessageSystemAttributeName, QueueAttributeName,
    SendMessageBatchRequestEntry,
};

use crate::support::{Stack, bodies};

const VISIBILITY: (QueueAttributeName, &str) = (QueueAttributeName::VisibilityTimeout, "30");

#[tokio::test]
async fn duplicate_within_five_minutes_is_dropped() {
    let stack = Stack::start().await;
    let scope = (QueueAttributeName::DeduplicationScope, "messageGroup");
    for (name, attributes, expected) in [
        ("queuewide.fifo", vec![], vec!["first", "first"]),
        ("pergroup.fifo", vec![scope], vec!["first", "third", "first"]),
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
        stack.delete(&url, &taken[0]).await;
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
async fn content_deduplication_follows_queue_setting() {
    let stack = Stack::start().await;
    let content = (QueueAttributeName::ContentBasedDeduplication, "true");
    let url = stack.fifo("content.fifo", &[content]).await;
    let send = |url: &str, body: &str| {
        stack.sqs().send_message().queue_url(url).message_group_id("a").message_body(body).send()
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
async fn only_standard_queues_take_message_delays() {
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
    send.message_body("later").delay_seconds(5).send().await.unwrap();
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
        sqs.send_message_batch().queue_url(&url).set_entries(Some(entries)).send()
    };
    let ids = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];
    let many = |count: usize| ids[..count].iter().map(|id| (*id, "x".to_owned())).collect();
    let sent = batch(many(10)).await.unwrap();
    assert_eq!((sent.successful.len(), sent.failed.len()), (10, 0));
    for (entries, code) in [
        (many(11), "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"),
        (vec![], "AWS.SimpleQueueService.EmptyBatchRequest"),
        (
            vec![("a", "x".to_owned()), ("a", "y".to_owned())],
            "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
        ),
        (vec![("no spaces", "x".to_owned())], "AWS.SimpleQueueService.InvalidBatchEntryId"),
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
async fn message_carries_its_sqs_attributes() {
    let stack = Stack::start().await;
    let url = stack.fifo("told.fifo", &[VISIBILITY]).await;
    let attribute =
        MessageAttributeValue::builder().data_type("String").string_value("blue").build().unwrap();
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
    assert_eq!(sent.md5_of_message_body(), Some("5d41402abc4b2a76b9719d911017c592"));
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
    assert_eq!(of(MessageSystemAttributeName::ApproximateReceiveCount), Some("2"));
    assert_eq!(of(MessageSystemAttributeName::MessageGroupId), Some("a"));
    assert_eq!(of(MessageSystemAttributeName::MessageDeduplicationId), Some("one"));
    assert_eq!(of(MessageSystemAttributeName::SequenceNumber), sent.sequence_number());
    assert_eq!(sent.sequence_number().unwrap().len(), 20);
    assert_eq!(message.message_id(), sent.message_id());
    let colour = &message.message_attributes().unwrap()["colour"];
    assert_eq!(colour.string_value(), Some("blue"));
    assert_eq!(message.md5_of_message_attributes(), sent.md5_of_message_attributes());
}

#[tokio::test]
async fn retention_and_purge_remove_messages() {
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
    assert_eq!(refused.code(), Some("AWS.SimpleQueueService.PurgeQueueInProgress"));
}

#[tokio::test]
async fn blocked_group_messages_count_as_available() {
    let stack = Stack::start().await;
    let sqs = stack.sqs();
    let url = stack.fifo("counted.fifo", &[VISIBILITY]).await;
    for (group, body) in [("a", "a1"), ("a", "a2"), ("a", "a3")] {
        stack.post(&url, group, body).await;
    }
    let receive = || sqs.receive_message().queue_url(&url).max_number_of_messages(1);
    let count = async || {
        let told = sqs.get_queue_attributes().queue_url(&url);
        let told = told.attribute_names(QueueAttributeName::All).send().await;
        let told = told.unwrap().attributes.unwrap();
        [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        ]
        .map(|name| told[&name].clone())
    };
    assert_eq!(count().await, ["3", "0"]);
    assert_eq!(receive().send().await.unwrap().messages().len(), 1);
    assert_eq!(count().await, ["2", "1"]);
    assert!(receive().send().await.unwrap().messages().is_empty());
    assert_eq!(count().await, ["2", "1"]);
}

#[tokio::test]
async fn queues_are_created_described_tagged_deleted() {
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
    change.attributes(QueueAttributeName::DelaySeconds, "7").send().await.unwrap();
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

    sqs.tag_queue().queue_url(&url).tags("a", "1").tags("b", "2").send().await.unwrap();
    sqs.untag_queue().queue_url(&url).tag_keys("a").send().await.unwrap();
    let tags = sqs.list_queue_tags().queue_url(&url).send().await.unwrap();
    assert_eq!(tags.tags().unwrap().len(), 1);
    let listed = sqs.list_queues().queue_name_prefix("made").send().await;
    assert_eq!(listed.unwrap().queue_urls(), std::slice::from_ref(&url));

    sqs.delete_queue().queue_url(&url).send().await.unwrap();
    let refused = sqs.get_queue_url().queue_name("made.fifo").send().await;
    let refused = refused.unwrap_err().into_service_error();
    assert!(refused.is_queue_does_not_exist(), "{refused:?}");
}
