//! Messages that end among the dead letters: one that nobody can read, and one whose worker dies each time.

use bobbin_core::session::Outcome;
use bobbin_tests::chat::{Platform, Seen};
use bobbin_tests::gates::Order;
use bobbin_tests::limits::{DEAD_LETTER_MS_MAX, KILLED_MS_MAX, SEEN_MS_MAX};
use bobbin_tests::processes;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::{Talk, World, marked};
use libtest_mimic::Trial;
use reqwest::Method;
use serde_json::{Value, json};

use crate::run::trial;

/// `maxReceiveCount` of the queue in the template.
const RECEIVES_MAX: usize = 50;
/// How far the queue's clock is pushed while a message that was given back is waited for.
const STEP_MS: u32 = 1_000;
/// A little more than the visibility that a worker claims.
const CLAIMED_MS: u32 = 121_000;

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for platform in Platform::ALL {
        let name = platform.word();
        trials.push(trial(
            &format!("faults::{name}::a_poison_message_does_not_hold_its_thread"),
            async move || poison(platform).await,
        ));
        trials.push(trial(
            &format!("faults::{name}::a_dead_letter_is_told_in_its_thread"),
            async move || dead_letter(platform).await,
        ));
    }
    trials
}

/// A stack of its own: the clock that is pushed is everybody's.
fn stack() -> Stack {
    Stack::start(&Options {
        stand_in_agent: true,
        ..Options::limits(quick())
    })
}

async fn poison(platform: Platform) {
    let stack = stack();
    let world = World::of(&stack);
    let (mut talk, first) = world.begin(platform, "echo: before").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let unreadable = [
        "{\"kind\":\"from the future\"",
        "{\"kind\":\"from the future\"}",
    ];
    for (told, body) in (1..).zip(unreadable) {
        put(&world, &talk, body).await;
        let next = talk.say("echo: after").await;
        eventually(
            DEAD_LETTER_MS_MAX,
            "the thread is told of what nobody can read",
            async || {
                world.advance_clock(STEP_MS).await?;
                let words = |one: &Seen| one.by_bot && one.text.contains("in spite of many tries");
                let seen = talk.messages().await?.into_iter().filter(words).count();
                if seen == told {
                    Ok(())
                } else {
                    Err(format!("told {seen} times; dead: {:?}", dead(&world).await))
                }
            },
        )
        .await;
        assert_eq!(talk.ended(&next).await.outcome, Outcome::Answered);
        talk.check().await;
    }
    assert!(dead(&world).await.is_empty(), "a dead letter is left");
    talk.finish().await;
    stack.end().unwrap();
}

/// Puts a body into the thread's group, past the ingress.
async fn put(world: &World, talk: &Talk<'_>, body: &str) {
    let message = json!({
        "QueueUrl": world.deployment.messages_queue_url, "MessageBody": body,
        "MessageGroupId": talk.thread.key.to_string(),
    });
    world
        .aws
        .call("sqs", "AmazonSQS.SendMessage", &message)
        .await
        .unwrap();
}

/// What is among the dead letters of messages.
async fn dead(world: &World) -> Vec<Value> {
    let queue = world
        .deployment
        .messages_queue_url
        .rsplit('/')
        .next()
        .unwrap()
        .replace("Messages", "MessagesDead");
    let path = format!("queues/{queue}/messages");
    let listed = world
        .engine(Method::GET, &path, &Value::Null)
        .await
        .unwrap();
    listed.as_array().cloned().unwrap_or_default()
}

/// The worker dies at the same call of the same message until the queue gives it up.
async fn dead_letter(platform: Platform) {
    let stack = stack();
    let world = World::of(&stack);
    let (mut talk, first) = world.begin(platform, "echo: before").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let (text, mark) = marked("echo: never");
    let order = Order {
        text: mark.clone(),
        function: "Worker".to_owned(),
        call: "dynamodb BatchGetItem".to_owned(),
        nth: 1,
        after: false,
    };
    let mut gate = world.gate(&order).await;
    talk.say_marked(&text, &mark).await;
    let behind = talk.say("echo: behind it").await;
    for _ in 0..RECEIVES_MAX {
        let process = eventually(SEEN_MS_MAX, "the message is worked on", async || {
            gate.holds().await
        })
        .await;
        processes::kill(process);
        eventually(KILLED_MS_MAX, "the worker is gone", async || {
            if processes::alive(process) {
                Err(format!("{process} lives"))
            } else {
                Ok(())
            }
        })
        .await;
        let next = world.gate(&order).await;
        std::mem::replace(&mut gate, next).remove().await.unwrap();
        world.advance_clock(CLAIMED_MS).await.unwrap();
    }
    talk.see(SEEN_MS_MAX, "the dead letter is told", |one| {
        one.by_bot && one.text.contains("in spite of many tries")
    })
    .await;
    assert_eq!(
        gate.look()
            .await
            .unwrap()
            .calls
            .iter()
            .filter(|call| **call == order.call)
            .count(),
        0,
        "it was worked on more often than the queue allows"
    );
    gate.remove().await.unwrap();
    assert_eq!(talk.ended(&behind).await.outcome, Outcome::Answered);
    let calls = world.model_calls().await.unwrap();
    assert!(
        calls.iter().all(|call| !call.user.contains(&mark)),
        "the agent was given what was told to have come to nothing"
    );
    assert!(dead(&world).await.is_empty());
    stack.end().unwrap();
}
