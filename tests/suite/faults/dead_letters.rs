//! Dead-lettered messages: one that nobody can read, and one whose worker crashes each time.

use bobbin_core::base::limits::DELIVERIES_MAX;
use bobbin_core::records::outcome::Outcome;
use bobbin_tests::breakpoints::Condition;
use bobbin_tests::chat::{ChatMessage, Platform};
use bobbin_tests::limits::{DEAD_LETTER_MS_MAX, KILLED_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::processes;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::{Talk, marked};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use reqwest::Method;
use serde_json::{Value, json};

use crate::run::trial;

/// Deliveries until the queue gives a message up here: the template's number would take minutes.
const RECEIVES_MAX: usize = 6;
/// How far the queue's clock is moved while a returned message is awaited.
const STEP_MS: u32 = 1_000;
/// A little more than the visibility that a worker claims.
const CLAIMED_MS: u32 = 121_000;

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for platform in Platform::ALL {
        let name = platform.word();
        trials.push(trial(
            &format!("faults::{name}::poison_message_does_not_block_thread"),
            async move || poison(platform).await,
        ));
        trials.push(trial(
            &format!("faults::{name}::dead_letter_is_reported_in_thread"),
            async move || dead_letter(platform).await,
        ));
    }
    trials
}

/// Its own stack, because everybody's clock is moved.
fn stack() -> Stack {
    Stack::start(&Options { stand_in_agent: true, ..Options::limits(quick()) })
}

/// Makes the queue of messages give up earlier, as an operator could.
async fn give_up_early(world: &World) {
    let url = &world.deployment.messages_queue_url;
    let asked = json!({"QueueUrl": url, "AttributeNames": ["RedrivePolicy"]});
    let call = |action: &'static str, body: Value| async move {
        let action = format!("AmazonSQS.{action}");
        world.aws.call("sqs", &action, &body).await.unwrap()
    };
    let now = call("GetQueueAttributes", asked).await;
    let mut policy: Value =
        serde_json::from_str(now["Attributes"]["RedrivePolicy"].as_str().unwrap()).unwrap();
    assert_eq!(policy["maxReceiveCount"].as_u64(), Some(DELIVERIES_MAX.into()));
    policy["maxReceiveCount"] = json!(RECEIVES_MAX);
    let attributes = json!({"RedrivePolicy": policy.to_string()});
    let set = json!({"QueueUrl": url, "Attributes": attributes});
    call("SetQueueAttributes", set).await;
}

/// The dead letters leave their queue once their notices are on record.
async fn all_told(world: &World) {
    eventually(VISIBLE_MS_MAX, "no dead letter is left", async || {
        world.advance_clock(STEP_MS).await?;
        world.sweep().await?;
        match dead(world).await.len() {
            0 => Ok(()),
            left => Err(format!("{left} are left")),
        }
    })
    .await;
}

async fn poison(platform: Platform) {
    let stack = stack();
    let world = World::of(&stack);
    give_up_early(&world).await;
    let (mut talk, first) = world.begin(platform, "echo: before").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let unreadable = ["{\"kind\":\"from the future\"", "{\"kind\":\"from the future\"}"];
    for (told, body) in (1..).zip(unreadable) {
        put(&world, &talk, body).await;
        let next = talk.say("echo: after").await;
        eventually(DEAD_LETTER_MS_MAX, "the thread is told of what nobody can read", async || {
            world.advance_clock(STEP_MS).await?;
            world.sweep().await?;
            let words = |one: &ChatMessage| one.by_bot && one.text.contains("Bobbin tried ");
            let seen = talk.messages().await?.into_iter().filter(words).count();
            if seen == told {
                Ok(())
            } else {
                Err(format!("told {seen} times; dead: {:?}", dead(&world).await))
            }
        })
        .await;
        assert_eq!(talk.ended(&next).await.outcome, Outcome::Answered);
        talk.check().await;
    }
    all_told(&world).await;
    talk.finish().await;
    stack.end().unwrap();
}

/// Puts a body into the thread's group, without ingress.
async fn put(world: &World, talk: &Talk<'_>, body: &str) {
    let message = json!({
        "QueueUrl": world.deployment.messages_queue_url, "MessageBody": body,
        "MessageGroupId": talk.thread.key.to_string(),
    });
    world.aws.call("sqs", "AmazonSQS.SendMessage", &message).await.unwrap();
}

/// The dead letters of messages.
async fn dead(world: &World) -> Vec<Value> {
    let queue = world
        .deployment
        .messages_queue_url
        .rsplit('/')
        .next()
        .unwrap()
        .replace("Messages", "MessagesDead");
    let path = format!("queues/{queue}/messages");
    let listed = world.engine(Method::GET, &path, &Value::Null).await.unwrap();
    listed.as_array().cloned().unwrap_or_default()
}

/// The worker crashes at the same call of the same message until the queue gives it up.
async fn dead_letter(platform: Platform) {
    let stack = stack();
    let world = World::of(&stack);
    give_up_early(&world).await;
    let (mut talk, first) = world.begin(platform, "echo: before").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let (text, mark) = marked("echo: never");
    let condition = Condition {
        text: mark.clone(),
        function: "Worker".to_owned(),
        call: "dynamodb BatchGetItem".to_owned(),
        nth: 1,
        after: false,
    };
    let mut breakpoint = world.breakpoint(&condition).await;
    talk.say_marked(&text, &mark).await;
    let behind = talk.say("echo: behind it").await;
    for nth in 1..=RECEIVES_MAX {
        let process = eventually(VISIBLE_MS_MAX, "the message is worked on", async || {
            breakpoint.held_process().await
        })
        .await;
        processes::kill(process);
        eventually(KILLED_MS_MAX, "the worker is gone", async || {
            if processes::alive(process) { Err(format!("{process} lives")) } else { Ok(()) }
        })
        .await;
        // A living worker reads its dead letter; none of the crashed ones does.
        if nth == RECEIVES_MAX {
            breakpoint.clone().remove().await.unwrap();
        } else {
            let next = world.breakpoint(&condition).await;
            std::mem::replace(&mut breakpoint, next).remove().await.unwrap();
        }
        world.advance_clock(CLAIMED_MS).await.unwrap();
    }
    eventually(VISIBLE_MS_MAX, "a sweep sees it", async || {
        world.sweep().await?;
        let words = |one: &ChatMessage| one.by_bot && one.text.contains("Bobbin tried ");
        if talk.messages().await?.iter().any(words) {
            Ok(())
        } else {
            Err(format!("dead: {:?}", dead(&world).await))
        }
    })
    .await;
    let card = talk
        .see(VISIBLE_MS_MAX, "the dead letter is told", |one| {
            one.by_bot && one.text.contains("Bobbin tried ")
        })
        .await;
    assert_eq!(talk.ended(&behind).await.outcome, Outcome::Answered);
    let calls = world.model_calls().await.unwrap();
    assert!(
        calls.iter().all(|call| !call.user.contains(&mark)),
        "the agent was given what was told to have come to nothing"
    );
    all_told(&world).await;
    // It can be run again, and succeeds.
    talk.press(&card, "Run again").await;
    talk.see(VISIBLE_MS_MAX, "what was given up is answered", |one| {
        one.by_bot && one.text.contains("never") && !one.text.contains("echo: never")
    })
    .await;
    stack.end().unwrap();
}
