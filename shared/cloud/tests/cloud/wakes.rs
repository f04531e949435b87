//! A wake-up is one schedule a thread: set, moved, removed, and delivered into the thread's group.

use std::time::Duration;

use bobbin_cloud::config::WakeTarget;
use bobbin_cloud::wake::{WakeError, Wakes};
use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::names::wake_name;
use bobbin_core::records::message::{Body, Work};
use serde_json::Value;

use crate::support::{Calls, Cloud, WAIT_MAX, aws, refusing, sdk_scheduler, silent, until};

const MESSAGES: &str = "test-Messages.fifo";

fn thread(number: u32) -> ThreadKey {
    ThreadKey::discord("1", &number.to_string()).unwrap()
}

async fn target(cloud: &Cloud) -> WakeTarget {
    WakeTarget {
        group: cloud.resource("Wakes"),
        role_arn: format!("arn:aws:iam::000000000000:role/{}", cloud.resource("SchedulerRole")),
        queue_arn: cloud.queue_arn("Messages").await,
        dead_queue_arn: cloud.queue_arn("WakesDead").await,
    }
}

fn wakes(endpoint: &str, target: Option<WakeTarget>) -> Wakes {
    Wakes::to(&aws(endpoint), target)
}

fn methods(calls: &Calls) -> Vec<&str> {
    calls.iter().map(|(method, _)| method.as_str()).collect()
}

fn body(message: &Value) -> Body {
    serde_json::from_str(message["body"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn thread_is_swept_on_time() {
    let cloud = Cloud::start().await;
    let wakes = wakes(cloud.engine.endpoint(), Some(target(&cloud).await));
    let at_ms = cloud.now_ms() + 3_600_500;
    wakes.set(&thread(2), at_ms).await.unwrap();

    cloud.advance(3590);
    let kept = sdk_scheduler(cloud.engine.endpoint())
        .get_schedule()
        .group_name(cloud.resource("Wakes"))
        .name(wake_name(&thread(2)));
    let schedule = kept.clone().send().await.unwrap();
    assert_eq!(schedule.action_after_completion.unwrap().as_str(), "DELETE");
    assert_eq!(schedule.flexible_time_window.unwrap().mode.as_str(), "OFF");
    assert!(cloud.waiting(MESSAGES).await.is_empty());

    cloud.advance(11);
    until("the thread is woken", async || cloud.waiting(MESSAGES).await.len() == 1).await;
    let message = &cloud.waiting(MESSAGES).await[0];
    assert_eq!(message["group_id"], "discord:1:2");
    let Body::Message(message) = body(message) else {
        panic!("not a thread's message: {message}");
    };
    assert_eq!(message.thread, thread(2));
    assert_eq!(message.work, Work::Sweep);
    assert_eq!(message.accepted_at_ms, at_ms);
    assert!(message.id.ends_with(&format!("-{at_ms}")), "{}", message.id);
    assert!(kept.send().await.is_err());
}

#[tokio::test]
async fn setting_wake_again_moves_it() {
    let cloud = Cloud::start().await;
    let wakes = wakes(cloud.engine.endpoint(), Some(target(&cloud).await));
    let now_ms = cloud.now_ms();
    wakes.set(&thread(2), now_ms + 60_000).await.unwrap();
    wakes.set(&thread(2), now_ms + 600_000).await.unwrap();
    // Another thread's, due after the first time: once it is there, the first would be too.
    wakes.set(&thread(3), now_ms + 120_000).await.unwrap();
    cloud.advance(121);
    until("the other thread is woken", async || !cloud.waiting(MESSAGES).await.is_empty()).await;
    let groups = |messages: Vec<Value>| -> Vec<String> {
        let group = |message: &Value| message["group_id"].as_str().unwrap().to_owned();
        messages.iter().map(group).collect()
    };
    assert_eq!(groups(cloud.waiting(MESSAGES).await), ["discord:1:3"]);
    cloud.advance(480);
    until("the thread is woken", async || cloud.waiting(MESSAGES).await.len() == 2).await;
}

#[tokio::test]
async fn close_wakes_are_not_deduplicated() {
    let cloud = Cloud::start().await;
    let wakes = wakes(cloud.engine.endpoint(), Some(target(&cloud).await));
    for count in 1..=2 {
        wakes.set(&thread(2), cloud.now_ms() + 20_000).await.unwrap();
        cloud.advance(21);
        until("the thread is woken", async || cloud.waiting(MESSAGES).await.len() == count).await;
    }
}

#[tokio::test]
async fn undeliverable_wake_becomes_dead_letter() {
    let cloud = Cloud::start().await;
    let mut target = target(&cloud).await;
    target.queue_arn = target.queue_arn.replace("Messages", "Gone");
    let wakes = wakes(cloud.engine.endpoint(), Some(target));
    wakes.set(&thread(2), cloud.now_ms() + 10_000).await.unwrap();
    until("it is given up", async || {
        cloud.advance(300);
        cloud.waiting("test-WakesDead").await.len() == 1
    })
    .await;
    let dead = &cloud.waiting("test-WakesDead").await[0];
    assert!(matches!(body(dead), Body::Message(message) if message.thread == thread(2)));
}

#[tokio::test]
async fn no_group_means_no_call() {
    let (endpoint, listener) = silent().await;
    wakes(&endpoint, None).set(&thread(2), 1).await.unwrap();
    let called = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
    assert!(called.is_err(), "somebody called");
}

#[tokio::test]
async fn missing_schedule_group_is_refused() {
    let cloud = Cloud::start().await;
    let mut target = target(&cloud).await;
    target.group = "elsewhere".to_owned();
    let refused = wakes(cloud.engine.endpoint(), Some(target.clone()))
        .set(&thread(2), cloud.now_ms() + 60_000)
        .await;
    assert!(matches!(&refused, Err(WakeError::Refused(seen)) if seen.contains("elsewhere")));

    let (endpoint, _listener) = silent().await;
    let wakes = wakes(&endpoint, Some(target));
    let thread = thread(2);
    let silence = tokio::time::timeout(WAIT_MAX, wakes.set(&thread, 1));
    let silence = silence.await.expect("silence is given up");
    assert!(matches!(silence, Err(WakeError::Later(_))), "{silence:?}");
}

#[tokio::test]
async fn wake_fired_meanwhile_is_recreated() {
    // It is there, then it has fired and deleted itself, then it is not there.
    let conflict = (409, "ConflictException");
    let gone = (404, "ResourceNotFoundException");
    let (endpoint, calls) = refusing(vec![conflict, gone]).await;
    let cloud = Cloud::start().await;
    let target = target(&cloud).await;
    let overtaken = wakes(&endpoint, Some(target.clone()));
    overtaken.set(&thread(2), 1).await.unwrap();
    assert_eq!(methods(&calls()), ["POST", "PUT", "POST"]);

    // One that is always somebody else's is given up, to be set again later.
    let (endpoint, calls) = refusing(vec![conflict; 20]).await;
    let contested = wakes(&endpoint, Some(target));
    let set = contested.set(&thread(2), 1).await;
    assert!(matches!(set, Err(WakeError::Later(_))), "{set:?}");
    assert_eq!(methods(&calls()), ["POST", "PUT", "POST", "PUT"]);
}

#[tokio::test]
async fn retries_share_an_idempotency_token() {
    let cloud = Cloud::start().await;
    let target = target(&cloud).await;
    let (busy, gone) = ((500, "InternalServerException"), (409, "ConflictException"));
    let (endpoint, calls) = refusing(vec![busy, gone, busy]).await;
    let wakes = wakes(&endpoint, Some(target));
    wakes.set(&thread(2), 1).await.unwrap();
    let calls = calls();
    assert_eq!(methods(&calls), ["POST", "POST", "PUT", "PUT"]);
    let tokens: Vec<&String> = calls.iter().map(|(_, token)| token).collect();
    assert_eq!((tokens[0], tokens[2]), (tokens[1], tokens[3]));
    assert_ne!(tokens[1], tokens[2]);
    // As long as Scheduler lets a token be.
    assert!((1..=64).contains(&tokens[0].len()), "{}", tokens[0]);
}
