//! The queue does not answer ingress. If one call fails, the next attempt succeeds and nobody notices. If none succeeds
//! in time, the platform hears that while it still listens, and the next try makes one turn, whether the queue had
//! taken the first or not. Slack itself sends the same event again; on Discord a person reads the message and asks
//! again, which is another interaction, and the first one never starts anything.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::breakpoints::{Breakpoint, Condition};
use bobbin_tests::chat::Platform;
use bobbin_tests::http::Answer;
use bobbin_tests::limits::PLATFORM_MS_MAX;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::marked;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::run::trial;

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for platform in Platform::ALL {
        for (after, word) in [(false, "takes_nothing"), (true, "takes_it_unheard")] {
            let name =
                format!("faults::{}::a_slow_queue_that_{word}_costs_one_more_try", platform.word());
            trials.push(trial(&name, async move || slow(platform, after).await));
            let name = format!(
                "faults::{}::one_call_of_a_queue_that_{word}_costs_nobody_anything",
                platform.word()
            );
            trials.push(trial(&name, async move || once(platform, after).await));
        }
    }
    trials
}

/// Most attempts of one call by ingress (AWS's SDK, standard retries).
const ATTEMPTS_MAX: usize = 3;

fn condition(nth: usize, after: bool) -> Condition {
    Condition {
        function: "Ingress".to_owned(),
        call: "sqs SendMessage".to_owned(),
        nth,
        after,
        ..Condition::default()
    }
}

async fn once(platform: Platform, after: bool) {
    let stack = stack();
    let world = World::of(&stack);
    let (text, mark) = marked("echo: said once");
    let (body, turn) = request(&world, platform, &text);
    let breakpoint = world.breakpoint(&condition(1, after)).await;
    let taken = deliver(&world, platform, &body).await;
    was_held(&breakpoint).await;
    breakpoint.remove().await.unwrap();
    assert_eq!(taken.status, 200, "{taken:?}");
    assert!(!taken.text.contains("try again"), "{taken:?}");
    made_one_turn(&world, platform, &turn, &mark).await;
    stack.end().unwrap();
}

async fn slow(platform: Platform, after: bool) {
    let stack = stack();
    let world = World::of(&stack);
    let (text, mark) = marked("echo: said once");
    let (body, turn) = request(&world, platform, &text);
    let mut breakpoints = Vec::new();
    for nth in 1..=ATTEMPTS_MAX {
        breakpoints.push(world.breakpoint(&condition(nth, after)).await);
    }
    let began = Instant::now();
    let refused = deliver(&world, platform, &body).await;
    let took_ms = began.elapsed().as_millis();
    assert!(
        took_ms < PLATFORM_MS_MAX,
        "the platform gave up after 3 s, the answer came after {took_ms} ms"
    );
    was_held(&breakpoints[0]).await;
    for breakpoint in breakpoints {
        breakpoint.remove().await.unwrap();
    }
    match platform {
        // Only the person sees this answer of the interaction.
        Platform::Discord => {
            let answer = refused.json();
            assert_eq!((refused.status, &answer["type"]), (200, &json!(4)));
            assert!(refused.text.contains("try again"), "{refused:?}");
        }
        // Slack tries again by itself when it is told that it failed.
        Platform::Slack => {
            assert_eq!(refused.status, 503, "{refused:?}");
            assert!(refused.text.contains("send it again"), "{refused:?}");
        }
    }
    let (body, turn) = match platform {
        Platform::Discord => request(&world, platform, &text),
        Platform::Slack => (body, turn),
    };
    let taken = deliver(&world, platform, &body).await;
    assert_eq!(taken.status, 200, "{taken:?}");
    made_one_turn(&world, platform, &turn, &mark).await;
    stack.end().unwrap();
}

fn stack() -> Stack {
    Stack::start(&Options { stand_in_agent: true, ..Options::limits(quick()) })
}

async fn was_held(breakpoint: &Breakpoint) {
    let seen = breakpoint.status().await.unwrap();
    assert!(seen.process.is_some(), "the queue was not slow at all: {seen:?}");
}

/// However often it was sent, it was asked once and is answered.
async fn made_one_turn(world: &World, platform: Platform, turn: &str, mark: &str) {
    let talk = world.found(platform, turn, mark).await;
    assert_eq!(talk.ended(turn).await.outcome, Outcome::Answered);
    talk.finish().await;
    world.check_quiet().await;
    let calls = world.model_calls().await.unwrap();
    let asked = calls.iter().filter(|call| call.user.contains(mark)).count();
    assert_eq!(asked, 1, "what was sent twice made {asked} turns");
}

/// The test's own request, and its turn.
fn request(world: &World, platform: Platform, text: &str) -> (String, String) {
    match platform {
        Platform::Discord => {
            let discord = &world.discord;
            let options = json!({"prompt": text});
            let body = discord.interaction("sandbox", &discord.channel(), &options);
            let turn = body["id"].as_str().unwrap_or_default().to_owned();
            (body.to_string(), turn)
        }
        Platform::Slack => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let ts = format!("{}.{:06}", now.as_secs(), now.subsec_micros());
            let said = format!("<@{}> {text}", world.ready.slack_bot_user_id);
            let id = format!("Ev0SLOW{}", now.as_micros());
            let body: Value = world.slack.envelope("app_mention", &id, &ts, &said);
            let turn = world.slack.turn(&world.ready.slack_channel_id, &ts);
            (body.to_string(), turn)
        }
    }
}

async fn deliver(world: &World, platform: Platform, body: &str) -> Answer {
    let answer = match platform {
        Platform::Discord => world.discord.deliver(body).await,
        Platform::Slack => world.slack.deliver(body).await,
    };
    answer.unwrap_or_else(|why| panic!("the ingress is silent: {why}"))
}
