//! Waiting, loss and overload: people see them and can do something about them.

use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::sandbox::Phase;

use bobbin_tests::aws::schedule_at;
use bobbin_tests::chat::{ChatMessage, Platform};
use bobbin_tests::limits::{ANSWER_MS_MAX, CANCEL_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::observed::calls_at_end;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::Talk;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::json;

use crate::run::{CHAT, on, trial};

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for platform in Platform::ALL {
        trials.push(trial(
            &format!("embedded::waiting::{}::lost_turn_can_be_rerun", platform.word()),
            async move || narrow(platform).await,
        ));
        let name = |what: &str| format!("embedded::{}::{what}", platform.word());
        trials.extend([
            on(&CHAT, &name("waiting_prompt_is_shown_and_withdrawable"), async move |world| {
                withdrawn(world, platform).await
            }),
            on(&CHAT, &name("waiting_prompt_joins_running_turn"), async move |world| {
                sent_now(world, platform).await
            }),
            on(&CHAT, &name("stop_all_empties_run_and_queue"), async move |world| {
                all_stopped(world, platform).await
            }),
            on(&CHAT, &name("answer_updates_ledger_and_wake"), async move |world| {
                recorded(world, platform).await
            }),
        ]);
    }
    trials
}

pub async fn card_says(talk: &Talk<'_>, turn: &str, words: &str) -> ChatMessage {
    eventually(VISIBLE_MS_MAX, &format!("the card says {words:?}"), async || {
        let card = talk.card(turn).await;
        if card.text.contains(words) { Ok(card) } else { Err(card.text) }
    })
    .await
}

async fn withdrawn(world: World, platform: Platform) {
    let (mut talk, slow) = world.begin(platform, "slow: 25 one two three four five six").await;
    talk.running(&slow).await;
    let second = talk.say("echo: the second").await;
    let third = talk.say("echo: the third").await;
    card_says(&talk, &second, "Queued").await;
    let waiting = card_says(&talk, &third, "2 tasks").await;
    let status = talk.status().await;
    assert!(status.contains("2 tasks wait behind it"), "{status}");

    talk.press(&waiting, "Withdraw").await;
    card_says(&talk, &third, "Stopped").await;
    let session = talk.session().await;
    let first = session.turn.map(|turn| turn.id);
    assert_eq!(first, Some(slow.as_str().into()), "it was withdrawn while the first ran");

    assert_eq!(talk.ended(&slow).await.outcome, Outcome::Answered);
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    let ended = talk.ended(&third).await;
    assert!(matches!(ended.outcome, Outcome::Cancelled { .. }), "{:?}", ended.outcome);
    let mark = talk.accepted[2].mark.clone().unwrap();
    let heard = world.model_calls().await.unwrap();
    assert!(
        !heard.iter().any(|call| call.user.contains(&mark)),
        "the agent heard of a prompt that was withdrawn"
    );
    let status = talk.status().await;
    assert!(!status.contains("behind it"), "{status}");
    talk.finish().await;
}

/// The asker in the tests.
fn asker(world: &World, platform: Platform) -> String {
    match platform {
        Platform::Discord => world.ready.discord_user_id.clone(),
        Platform::Slack => world.ready.slack_user_id.clone(),
    }
}

async fn sent_now(world: World, platform: Platform) {
    let (mut talk, slow) = world.begin(platform, "slow: 15 one two three four five six").await;
    talk.running(&slow).await;
    let second = talk.say("echo: the second").await;
    let third = talk.say("echo: the third").await;
    let waiting = card_says(&talk, &third, "Queued").await;
    card_says(&talk, &slow, "2 more waiting").await;
    talk.press(&waiting, "Send now").await;
    card_says(&talk, &third, "Sent into the running task").await;
    let running = talk.session().await.turn.map(|turn| turn.id);
    assert_eq!(running, Some(slow.as_str().into()), "it was sent while the first ran");

    assert_eq!(talk.ended(&slow).await.outcome, Outcome::Answered);
    let joined = Outcome::Joined { turn: slow.clone().into() };
    assert_eq!(talk.ended(&third).await.outcome, joined);
    let answer = talk.answer(&slow).await;
    assert!(
        answer.contains("one two three four five six") && answer.contains("the third"),
        "the answer is to both: {answer}"
    );
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    let entry = world.aws.entry(&world.deployment.table, &talk.thread.key, &third).await.unwrap();
    assert_eq!((&entry.outcome, entry.again), (&joined, None));
    let seen = talk.observed().await.unwrap();
    let person = asker(&world, platform);
    for (turn, calls) in [(&slow, 1), (&second, 1), (&third, 0)] {
        assert_eq!(calls_at_end(&seen, turn, &person), Ok(calls), "{turn}");
    }
    talk.finish().await;
}

async fn all_stopped(world: World, platform: Platform) {
    let (mut talk, slow) = world.begin(platform, "slow: 25 one two three four five six").await;
    talk.running(&slow).await;
    let second = talk.say("echo: the second").await;
    let third = talk.say("echo: the third").await;
    card_says(&talk, &second, "Queued").await;
    let waiting = card_says(&talk, &third, "2 tasks").await;
    talk.press(&waiting, "Stop all").await;
    for turn in [&second, &third] {
        card_says(&talk, turn, "Stopped").await;
    }
    for turn in [&slow, &second, &third] {
        let ended = talk.ended_within(CANCEL_MS_MAX, turn).await;
        assert!(matches!(ended.outcome, Outcome::Cancelled { .. }), "{:?}", ended.outcome);
    }
    let heard = world.model_calls().await.unwrap();
    for accepted in &talk.accepted[1..] {
        let mark = accepted.mark.clone().unwrap();
        assert!(
            !heard.iter().any(|call| call.user.contains(&mark)),
            "the agent heard of a prompt that was withdrawn"
        );
    }
    // A person who stops their own tasks is not mentioned.
    let seen = talk.observed().await.unwrap();
    let person = asker(&world, platform);
    for turn in [&slow, &second, &third] {
        assert_eq!(calls_at_end(&seen, turn, &person), Ok(0), "{turn}");
    }
    let next = talk.say("echo: on it goes").await;
    assert_eq!(talk.ended(&next).await.outcome, Outcome::Answered);
    talk.finish().await;
}

async fn recorded(world: World, platform: Platform) {
    let (talk, turn) = world.begin(platform, "echo: for the ledger").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let table = &world.deployment.table;
    let entry = world.aws.entry(table, &talk.thread.key, &turn).await.unwrap();
    assert!(entry.asked.starts_with("echo: for the ledger"), "{entry:?}");
    assert!(entry.answered.contains("for the ledger"), "{entry:?}");
    assert_eq!((entry.posted.len(), entry.again), (1, None));
    assert!(entry.usage.tokens > 0 && entry.card.is_some());
    let status = talk.status().await;
    assert!(
        status.contains("answered (")
            && status.contains(" tokens")
            && status.contains("echo: for the ledger"),
        "{status}"
    );

    // The embedded engine names its resources `<stack>-<logical id>`.
    let group = table.replace("Table", "Wakes");
    let wake = eventually(VISIBLE_MS_MAX, "a wake-up is set", async || {
        world.aws.schedule(&group, &talk.thread.key).await
    })
    .await;
    let due_ms = talk.session().await.due_at_ms().unwrap();
    assert_eq!(wake["ScheduleExpression"], schedule_at(due_ms), "{wake}");
    assert_eq!(wake["ActionAfterCompletion"], "DELETE", "{wake}");
    assert_eq!(
        wake["Target"]["SqsParameters"]["MessageGroupId"],
        talk.thread.key.sandbox().group().to_string().as_str()
    );
    talk.finish().await;
}

/// Its own stack: it has little room, and sandboxes are lost in it.
async fn narrow(platform: Platform) {
    let mut limits = quick();
    limits["thread_queue"] = json!(1);
    limits["tenant_sandboxes"] = json!(1);
    limits["reconcile_ms"] = json!(60_000);
    let stack = Stack::start(&Options::lean(limits));
    let world = World::of(&stack);
    stopped_early(&world, platform).await;
    lost(&world, platform).await;
    full(&world, platform).await;
    vanished(&world, platform).await;
    world.check_orphans().await.unwrap();
    stack.end().unwrap();
}

/// Stop is pressed while the sandbox is being created: the turn ends long before the sandbox exists, and the next
/// prompt gets the same one.
async fn stopped_early(world: &World, platform: Platform) {
    let slow = json!({"fault": "hold_state", "state": "creating", "ms": 40_000});
    world.provider.arm(&slow).await.unwrap();
    let (mut talk, turn) = world.begin(platform, "echo: never").await;
    eventually(VISIBLE_MS_MAX, "the sandbox is being made", async || {
        let session = world.session(&talk.thread.key).await?;
        let made = world.provider.of(&talk.thread.key).await?;
        if session.sandbox.phase == Phase::Creating && made.len() == 1 {
            Ok(())
        } else {
            Err(format!("{} and {made:?}", session.sandbox.phase.word()))
        }
    })
    .await;
    let card = talk.card(&turn).await;
    talk.press(&card, "Stop").await;
    let ended = talk.ended_within(CANCEL_MS_MAX, &turn).await;
    assert!(matches!(ended.outcome, Outcome::Cancelled { .. }), "{:?}", ended.outcome);
    let [sandbox] = &world.provider.of(&talk.thread.key).await.unwrap()[..] else {
        panic!("not one sandbox")
    };
    assert_ne!(sandbox.state, "started", "it ended only when the sandbox was there");
    world.provider.clear().await.unwrap();
    let next = talk.say("echo: this one is wanted").await;
    assert_eq!(talk.ended(&next).await.outcome, Outcome::Answered);
    assert_eq!(talk.session().await.sandbox.generation, 1);
    talk.finish().await;
}

/// A sandbox vanishes under a run: the turn is lost, and a button runs it again; the agent in the new sandbox is told
/// the history.
async fn lost(world: &World, platform: Platform) {
    let (mut talk, first) = world.begin(platform, "echo: what was before").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let turn = talk.say("slow: 6 one two three four").await;
    talk.running(&turn).await;
    world.provider.lose(&talk.sandbox().await).await.unwrap();
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Lost);
    let seen = talk.observed().await.unwrap();
    let person = asker(world, platform);
    assert_eq!(calls_at_end(&seen, &turn, &person), Ok(1));
    let card = talk.card(&turn).await;
    talk.press(&card, "Run again").await;
    talk.press(&card, "Run again").await;
    let again = eventually(ANSWER_MS_MAX, "it has run again", async || {
        let session = world.session(&talk.thread.key).await?;
        let found = session.ended.iter().find(|one| one.id.starts_with("again-"));
        found.cloned().ok_or_else(|| format!("{:?}", session.turn))
    })
    .await;
    assert_eq!(again.outcome, Outcome::Answered);
    let answer = talk.answer(&again.id).await;
    assert!(answer.contains("one two three four"), "{answer}");
    let messages = talk.messages().await.unwrap();
    let named = messages
        .iter()
        .filter(|one| one.text.contains("runs this again: slow: 6 one two three four"));
    assert_eq!(named.count(), 1, "{messages:?}");
    let session = talk.session().await;
    assert_eq!(session.sandbox.generation, 2);
    let times = session.ended.iter().filter(|one| one.id.starts_with("again-"));
    assert_eq!(times.count(), 1, "two clicks ran it twice");
    // A click that runs nothing promises nothing.
    talk.press(&card, "Run again").await;
    talk.whispered("Somebody has already pressed this.").await;
    let mark = talk.accepted[1].mark.clone().unwrap();
    let heard = world.model_calls().await.unwrap();
    let told = heard
        .iter()
        .rfind(|call| call.user.contains(&mark) && !call.internal())
        .map(|call| call.user.clone())
        .unwrap_or_default();
    assert!(
        told.contains("echo: what was before")
            && told.contains("cut off when its sandbox vanished"),
        "the new agent session was not told what was before: {told}"
    );
    talk.reset().await;
}

/// Only one may wait here, and only one sandbox may exist.
async fn full(world: &World, platform: Platform) {
    let (mut talk, slow) = world.begin(platform, "slow: 25 one two three four five six").await;
    talk.running(&slow).await;
    let second = talk.say("echo: this one waits").await;
    card_says(&talk, &second, "Queued").await;
    let third = talk.say("echo: this one is too much").await;
    card_says(&talk, &third, "Too many tasks are waiting in this thread").await;

    let (other, refused) = world.begin(platform, "echo: no room").await;
    let ended = other.ended(&refused).await;
    let Outcome::Failed { reason } = &ended.outcome else { panic!("{:?}", ended.outcome) };
    assert!(reason.starts_with("At most 1 sandboxes are allowed here"), "{reason}");

    talk.stop().await;
    assert!(matches!(
        talk.ended_within(CANCEL_MS_MAX, &slow).await.outcome,
        Outcome::Cancelled { .. }
    ));
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    let ended = talk.ended(&third).await;
    assert!(matches!(ended.outcome, Outcome::Failed { .. }), "{:?}", ended.outcome);
    talk.finish().await;
}

/// An idle sandbox vanishes: the sweeper finds the record that still has one.
async fn vanished(world: &World, platform: Platform) {
    let (talk, turn) = world.begin(platform, "echo: soon gone").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    world.provider.lose(&talk.sandbox().await).await.unwrap();
    eventually(ANSWER_MS_MAX, "the record knows it", async || {
        world.sweep().await?;
        let session = world.session(&talk.thread.key).await?;
        if session.sandbox.phase == Phase::Destroyed {
            Ok(())
        } else {
            Err(session.sandbox.phase.word().to_owned())
        }
    })
    .await;
    talk.finish().await;
}
