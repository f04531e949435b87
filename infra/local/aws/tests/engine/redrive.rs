//! What is received too often becomes a dead letter, and can be moved back.

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
async fn poison_message_moves_and_frees_group() {
    let stack = Stack::start().await;
    let (main, dead) = queues(&stack).await;
    stack.post(&main, "a", "poison").await;
    stack.post(&main, "a", "next").await;
    let first = stack.take(&main, 1).await;
    stack.advance(30);
    assert_eq!(bodies(&stack.take(&main, 1).await), ["poison"]);
    stack.advance(30);
    assert_eq!(bodies(&stack.take(&main, 1).await), ["next"]);

    let dead_letters = stack.take(&dead, 10).await;
    assert_eq!(bodies(&dead_letters), ["poison"]);
    assert_eq!(dead_letters[0].message_id(), first[0].message_id());
    let told = dead_letters[0].attributes().unwrap();
    assert_eq!(told[&MessageSystemAttributeName::MessageGroupId], "a");
    // Not the one that it was sent with, which was its body.
    assert_eq!(
        told[&MessageSystemAttributeName::MessageDeduplicationId],
        first[0].message_id().unwrap()
    );
    assert_eq!(told[&MessageSystemAttributeName::ApproximateReceiveCount], "3");
    assert_eq!(told[&MessageSystemAttributeName::DeadLetterQueueSourceArn], MAIN_ARN);
}
