//! Dead letters and the way back.

use aws_sdk_sqs::error::ProvideErrorMetadata as _;
use aws_sdk_sqs::types::{MessageSystemAttributeName, QueueAttributeName};

use crate::support::{Stack, bodies};

const MAIN_ARN: &str = "arn:aws:sqs:us-east-1:000000000000:main.fifo";
const DEAD_ARN: &str = "arn:aws:sqs:us-east-1:000000000000:dead.fifo";

/// A queue whose messages die after two receives, and its dead-letter queue.
async fn queues(stack: &Stack) -> (String, String) {
    let dead = stack.fifo("dead.fifo", &[]).await;
    let policy = format!(r#"{{"deadLetterTargetArn":"{DEAD_ARN}","maxReceiveCount":"2"}}"#);
    let attributes = [
        (QueueAttributeName::RedrivePolicy, policy.as_str()),
        (QueueAttributeName::VisibilityTimeout, "30"),
    ];
    let main = stack.fifo("main.fifo", &attributes).await;
    (main, dead)
}

#[tokio::test]
async fn a_message_received_too_often_moves_and_its_group_flows_on() {
    let stack = Stack::start().await;
    let (main, dead) = queues(&stack).await;
    stack.post(&main, "a", "poison").await;
    stack.post(&main, "a", "next").await;
    let first = stack.take(&main, 1).await;
    stack.advance(30);
    assert_eq!(bodies(&stack.take(&main, 1).await), ["poison"]);
    stack.advance(30);
    assert_eq!(bodies(&stack.take(&main, 1).await), ["next"]);

    let buried = stack.take(&dead, 10).await;
    assert_eq!(bodies(&buried), ["poison"]);
    assert_eq!(buried[0].message_id(), first[0].message_id());
    let told = buried[0].attributes().unwrap();
    assert_eq!(told[&MessageSystemAttributeName::MessageGroupId], "a");
    // Not the one that it was sent with, which was its body.
    assert_eq!(
        told[&MessageSystemAttributeName::MessageDeduplicationId],
        first[0].message_id().unwrap()
    );
    assert_eq!(
        told[&MessageSystemAttributeName::ApproximateReceiveCount],
        "3"
    );
    assert_eq!(
        told[&MessageSystemAttributeName::DeadLetterQueueSourceArn],
        MAIN_ARN
    );
}

#[tokio::test]
async fn dead_letters_go_back_to_where_they_came_from() {
    let stack = Stack::start().await;
    let (main, dead) = queues(&stack).await;
    for body in ["a1", "a2"] {
        stack.post(&main, "a", body).await;
    }
    for _ in 0..2 {
        assert_eq!(stack.take(&main, 10).await.len(), 2);
        stack.advance(30);
    }
    assert!(stack.take(&main, 10).await.is_empty());
    assert_eq!(stack.peek("dead.fifo").await.len(), 2);

    let sqs = stack.sqs();
    let sources = sqs.list_dead_letter_source_queues().queue_url(&dead);
    let sources = sources.send().await.unwrap();
    assert_eq!(sources.queue_urls(), std::slice::from_ref(&main));

    let start = sqs.start_message_move_task().source_arn(DEAD_ARN);
    start.send().await.unwrap();
    let tasks = sqs.list_message_move_tasks().source_arn(DEAD_ARN);
    let tasks = tasks.send().await.unwrap();
    assert_eq!(tasks.results()[0].status(), Some("COMPLETED"));
    assert_eq!(tasks.results()[0].approximate_number_of_messages_moved(), 2);
    let back = stack.take(&main, 10).await;
    assert_eq!(bodies(&back), ["a1", "a2"]);
    let told = back[0].attributes().unwrap();
    assert_eq!(
        told[&MessageSystemAttributeName::ApproximateReceiveCount],
        "1"
    );
    assert!(stack.peek("dead.fifo").await.is_empty());
}

#[tokio::test]
async fn a_redrive_keeps_its_rate_and_can_be_cancelled() {
    let stack = Stack::start().await;
    let (_, dead) = queues(&stack).await;
    for number in 0..5 {
        stack.post(&dead, "a", &format!("a{number}")).await;
    }
    let sqs = stack.sqs();
    let start = || {
        sqs.start_message_move_task()
            .source_arn(DEAD_ARN)
            .destination_arn(MAIN_ARN)
            .max_number_of_messages_per_second(1)
            .send()
    };
    let task = start().await.unwrap();
    let refused = start().await.unwrap_err();
    assert_eq!(
        refused.code(),
        Some("AWS.SimpleQueueService.UnsupportedOperation")
    );
    stack.advance(3);
    let moved = stack.peek("main.fifo").await.len();
    assert!((3..5).contains(&moved), "{moved} after three seconds");
    let cancel = sqs.cancel_message_move_task();
    let cancelled = cancel.task_handle(task.task_handle().unwrap()).send().await;
    assert!(cancelled.unwrap().approximate_number_of_messages_moved() >= 3);
    stack.advance(10);
    assert!(stack.peek("dead.fifo").await.len() <= 2);
    assert!(!stack.peek("dead.fifo").await.is_empty());
}
