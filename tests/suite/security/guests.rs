//! A guest of a Slack workspace at every endpoint: nothing that they say or press has an effect, and they are told why.
//! One rule covers all endpoints, so that a person who becomes a member passes all of them.

use bobbin_core::records::outcome::Outcome;
use bobbin_core::tenant::access::Refusal;
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::VISIBLE_MS_MAX;
use bobbin_tests::talk::marked;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::run::{CHAT, on};

const GUEST: &str = "U0GUEST0001";
const NEWCOMER: &str = "U0GUEST0002";

pub fn trials() -> Vec<Trial> {
    vec![
        on(&CHAT, "security::every_endpoint_refuses_slack_guests", refused),
        on(&CHAT, "security::promoted_slack_guest_is_admitted", let_in),
    ]
}

fn mention(world: &World, who: &str, text: &str) -> Value {
    let bot = &world.ready.slack_bot_user_id;
    json!({"type": "message", "user_id": who, "text": format!("<@{bot}> {text}")})
}

/// Whether somebody was told in the channel why they are refused.
async fn told(world: &World, channel: &str, times: usize) {
    eventually(VISIBLE_MS_MAX, "the guest is told why", async || {
        let told = world.slack.told(channel, GUEST).await?;
        let why = Refusal::Outsider.to_string();
        let found = told.iter().filter(|one| one.contains(&why)).count();
        if found >= times { Ok(()) } else { Err(format!("{found} of {times}: {told:?}")) }
    })
    .await;
}

async fn refused(world: World) {
    let slack = &world.slack;
    let guest = json!({"is_restricted": true});
    slack.set_user(GUEST, &guest).await.unwrap();
    let channel = world.ready.slack_channel_id.clone();
    // Their own task.
    let (text, of_guest) = marked("echo: never");
    let done = slack.act(&mention(&world, GUEST, &text)).await.unwrap();
    let thread = slack.thread(&channel, done["ts"].as_str().unwrap()).unwrap();
    let ended = eventually(VISIBLE_MS_MAX, "the guest's task is refused", async || {
        let session = world.session(&thread.key).await?;
        let ended = session.ended.first().cloned();
        ended.ok_or_else(|| format!("{:?}", session.turn))
    })
    .await;
    let reason = Refusal::Outsider.to_string();
    assert_eq!(ended.outcome, Outcome::Failed { reason });

    // In somebody else's thread, where a permission is open.
    let (mut talk, first) = world.begin(Platform::Slack, "echo: before").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let turn = talk.say("ask: echo asked > asked.txt; cat asked.txt").await;
    let ask = talk
        .see(VISIBLE_MS_MAX * 2, "the permission is asked for", |one| {
            one.button("Allow once").is_some()
        })
        .await;
    let card = talk.card(&turn).await;
    let press = |message: &bobbin_tests::chat::ChatMessage, label: &str| {
        json!({"type": "block_action", "user_id": GUEST, "channel_id": talk.thread.channel,
            "message_ts": message.id, "action_id": message.button(label).unwrap().id})
    };
    slack.act(&press(&ask, "Allow once")).await.unwrap();
    told(&world, &channel, 1).await;
    slack.act(&press(&card, "Stop")).await.unwrap();
    told(&world, &channel, 2).await;
    let mut reply = mention(&world, GUEST, &text);
    reply["channel_id"] = talk.thread.channel.as_str().into();
    reply["thread_ts"] = talk.thread.root.as_str().into();
    slack.act(&reply).await.unwrap();
    let said = json!({"type": "shortcut", "user_id": GUEST, "callback_id": "send_to_bobbin",
        "channel_id": channel, "message_ts": done["ts"]});
    slack.act(&said).await.unwrap();
    // The turn still waits for a member's decision.
    let session = talk.session().await;
    let running = session.turn.expect("the turn still runs");
    assert!(running.id == turn && running.cancelled_by.is_none());
    talk.press(&ask, "Allow once").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    eventually(VISIBLE_MS_MAX, "the guest's reply is refused", async || {
        let session = talk.world.session(&talk.thread.key).await?;
        let refused = session.ended.iter().filter(|one| {
            matches!(&one.outcome, Outcome::Failed { reason } if *reason == Refusal::Outsider.to_string())
        });
        match refused.count() {
            0 => Err(format!("{:?}", session.ended)),
            _ => Ok(()),
        }
    })
    .await;
    let calls = world.model_calls().await.unwrap();
    assert!(
        calls.iter().all(|call| !call.user.contains(&of_guest)),
        "the agent was given what a guest said"
    );
}

async fn let_in(world: World) {
    let flags = |guest: bool| json!({"is_ultra_restricted": guest});
    world.slack.set_user(NEWCOMER, &flags(true)).await.unwrap();
    let channel = world.ready.slack_channel_id.clone();
    let mut outcomes = Vec::new();
    for guest in [true, false] {
        world.slack.set_user(NEWCOMER, &flags(guest)).await.unwrap();
        let (text, _) = marked("echo: hello");
        let asked = mention(&world, NEWCOMER, &text);
        let done = world.slack.act(&asked).await.unwrap();
        let thread = world.slack.thread(&channel, done["ts"].as_str().unwrap()).unwrap();
        let ended = eventually(VISIBLE_MS_MAX * 2, "the task ends", async || {
            let session = world.session(&thread.key).await?;
            let ended = session.ended.first().cloned();
            ended.ok_or_else(|| format!("{:?}", session.turn))
        })
        .await;
        outcomes.push(ended.outcome);
    }
    let reason = Refusal::Outsider.to_string();
    assert_eq!(outcomes, [Outcome::Failed { reason }, Outcome::Answered]);
}
