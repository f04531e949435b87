//! Turns that nobody follows, end to end: people's actions are not delayed, the next poll finds the agent's, and a
//! worker that crashes between two polls costs nothing.

use bobbin_core::base::limits::Limits;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::parked::Parked;
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::{ANSWER_MS_MAX, CANCEL_MS_MAX};
use bobbin_tests::stack::{Options, Stack};
use bobbin_tests::talk::Talk;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::json;

use crate::asks::{answered, asked, settled};
use crate::run::{BRISK, SELDOM, on, seldom, trial};
use crate::waiting::card_says;

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for platform in Platform::ALL {
        let name = |what: &str| format!("looks::{}::{what}", platform.word());
        trials.push(on(&SELDOM, &name("stop_does_not_wait_for_polls"), async move |world| {
            stopped(world, platform).await
        }));
        trials.push(on(&SELDOM, &name("send_now_does_not_await_polls"), async move |world| {
            sent_now(world, platform).await
        }));
        trials.push(on(&BRISK, &name("ask_between_polls_is_shown"), async move |world| {
            found(world, platform).await
        }));
    }
    trials.push(trial("looks::answer_does_not_wait_for_polls", decided));
    trials.push(trial("looks::killed_worker_between_polls_costs_nothing", killed));
    trials
}

/// Waits until the turn has been returned to the queue this often.
pub async fn parked(talk: &Talk<'_>, receive: u32) -> Parked {
    let what = format!("delivery {receive} gives the turn back");
    eventually(ANSWER_MS_MAX, &what, async || {
        let parked = talk.world.parked(&talk.thread.key).await?;
        if parked.receive >= receive { Ok(parked) } else { Err(format!("{parked:?}")) }
    })
    .await
}

/// Stops the turn, whose next poll is ten minutes away.
async fn stop(talk: &Talk<'_>, turn: &str, parked: &Parked) {
    talk.stop().await;
    let ended = talk.ended_within(CANCEL_MS_MAX, turn).await;
    assert!(matches!(ended.outcome, Outcome::Cancelled { .. }), "{:?}", ended.outcome);
    assert!(ended.at_ms < parked.until_ms, "it waited for the next look after all");
}

async fn stopped(world: World, platform: Platform) {
    let (talk, turn) =
        world.begin(platform, "slow: 90 one two three four five six seven eight").await;
    let first = parked(&talk, 1).await;
    assert_eq!(first.receive, 1);
    stop(&talk, &turn, &first).await;
    talk.finish().await;
}

async fn sent_now(world: World, platform: Platform) {
    let (mut talk, turn) =
        world.begin(platform, "slow: 90 one two three four five six seven eight").await;
    let first = parked(&talk, 1).await;
    let second = talk.say("echo: the second").await;
    let waiting = card_says(&talk, &second, "Queued").await;
    talk.press(&waiting, "Send now").await;
    card_says(&talk, &second, "Sent into the running task").await;
    let next = parked(&talk, 2).await;
    assert!(next.at_ms < first.until_ms, "it waited for the next look after all");
    stop(&talk, &turn, &next).await;
    talk.finish().await;
}

async fn found(world: World, platform: Platform) {
    let (talk, turn) = world
        .begin(
            platform,
            "slow: 9 one two three four five six\nquestion: Which colour? | red | blue",
        )
        .await;
    let before = parked(&talk, 2).await;
    let ask = asked(&talk, "blue").await;
    parked(&talk, before.receive + 1).await;
    talk.press(&ask, "blue").await;
    answered(&talk, &turn, &["was answered: blue"]).await;
    settled(&talk, &ask, &["answered: blue"]).await;
    // The last poll before saw it continue and scheduled the next one within the bound.
    let last = world.parked(&talk.thread.key).await.unwrap();
    let waited_ms = last.until_ms - last.at_ms;
    assert!(last.turn == turn && waited_ms <= Limits::DEFAULT.poll.look_ms_max, "{last:?}");
    talk.finish().await;
}

/// Its own stack: a question is asked while the run is still followed; then polls are ten minutes apart.
async fn decided() {
    let mut limits = seldom();
    limits["hold_ms"] = json!(15_000);
    let stack = Stack::start(&Options::lean(limits));
    let world = World::of(&stack);
    for platform in Platform::ALL {
        let (talk, turn) =
            world.begin(platform, "question: Which colour? | red | blue\nrun: sleep 100").await;
        let ask = asked(&talk, "blue").await;
        let first = parked(&talk, 1).await;
        talk.press(&ask, "blue").await;
        settled(&talk, &ask, &["answered: blue"]).await;
        let next = parked(&talk, first.receive + 1).await;
        assert!(next.at_ms < first.until_ms, "it waited for the next look after all");
        stop(&talk, &turn, &next).await;
        talk.finish().await;
    }
    stack.end().unwrap();
}

/// Its own stack: its workers are killed, and a crash between recording and returning costs six seconds.
async fn killed() {
    let mut limits = seldom();
    limits["visibility_ms"] = json!(6_000);
    limits["heartbeat_ms"] = json!(2_000);
    limits["lifecycle_call_ms"] = json!(5_000);
    limits["look_ms_min"] = json!(8_000);
    limits["look_ms_max"] = json!(20_000);
    let stack = Stack::start(&Options { stand_in_agent: true, ..Options::limits(limits) });
    let world = World::of(&stack);
    for platform in Platform::ALL {
        let (talk, turn) =
            world.begin(platform, "slow: 25 one two three four five six seven eight").await;
        let first = parked(&talk, 1).await;
        let dead = world.kill("Worker").await.unwrap();
        assert!(!dead.is_empty(), "no worker was there to be killed");
        let next = parked(&talk, first.receive + 1).await;
        assert_eq!(next.receive, first.receive + 1);
        let running = talk.session().await.turn.map(|turn| turn.tries.attempts);
        assert_eq!(running, Some(0), "it counts as a failure");
        assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
        let answer = talk.answer(&turn).await;
        assert!(answer.contains("one two three four five six seven eight"), "{answer}");
        talk.finish().await;
    }
    stack.end().unwrap();
}
