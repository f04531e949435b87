//! A sandbox's possible fates, at each provider.

use std::sync::Arc;

use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::sandbox::Phase;
use bobbin_core::records::session::Session;
use bobbin_tests::limits::{ANSWER_MS_MAX, PAUSE_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::talk::Talk;
use bobbin_tests::wait::eventually;

use super::*;

type Scenario = (
    &'static str,
    &'static Shared,
    fn(Arc<Stack>, Place) -> std::pin::Pin<Box<dyn Future<Output = ()>>>,
);

const ALL: [Scenario; 5] = [
    ("private_work_becomes_a_pull_request", &KEPT, |stack, place| {
        Box::pin(published(stack, place))
    }),
    ("every_provider_pauses_and_wakes_sandboxes", &KEPT, |stack, place| {
        Box::pin(woken(stack, place))
    }),
    ("sandbox_lost_mid_turn_is_replaced", &KEPT, |stack, place| Box::pin(vanished(stack, place))),
    ("expired_sandbox_is_destroyed_and_announced", &BRIEF, |stack, place| {
        Box::pin(expired(stack, place))
    }),
    ("sweep_deletes_an_orphan", &BRIEF, |stack, place| Box::pin(orphaned(stack, place))),
];

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for place in Place::ALL {
        for (name, stack, scenario) in ALL {
            let name = format!("places::{}::{name}", place.word());
            trials.push(beside(name, move || {
                match place.lacks() {
                    Some(why) => eprintln!("SKIPPED: {why}"),
                    None => block_on(scenario(stack.get(), place)),
                }
                Ok(())
            }));
        }
    }
    trials.push(beside("places::daytona::message_restores_an_archived_sandbox", || {
        block_on(restored(KEPT.get()));
        Ok(())
    }));
    trials.push(beside("places::vercel::foreign_page_counts_as_no_answer", || {
        block_on(strange_page(KEPT.get()));
        Ok(())
    }));
    trials
}

/// Git objects go in and out by means that every provider has.
async fn published(stack: Arc<Stack>, place: Place) {
    let world = place.world(&stack);
    let provider = [("provider", place.word())];
    crate::forge::one_pull_request(&world, Platform::Slack, &provider).await;
}

/// Runs the sweeper until the record is in this phase.
async fn swept(talk: &Talk<'_>, phase: Phase) -> Session {
    let what = format!("the phase is {}", phase.word());
    eventually(PAUSE_MS_MAX, &what, async || {
        talk.world.sweep().await?;
        let session = talk.world.session(&talk.thread.key).await?;
        if session.sandbox.phase == phase {
            Ok(session)
        } else {
            Err(session.sandbox.phase.word().to_owned())
        }
    })
    .await
}

async fn woken(stack: Arc<Stack>, place: Place) {
    let world = place.world(&stack);
    let (mut talk, first) = place.begin(&world, "echo: here I am").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let answer = talk.answer(&first).await;
    assert!(answer.contains("here I am"), "{answer}");
    let made = talk.sandbox().await;
    assert_eq!(made.state, "started");
    let session = talk.session().await;
    assert_eq!(session.sandbox.spec.provider.as_deref(), Some(place.word()));
    for other in Place::ALL.into_iter().filter(|other| *other != place) {
        if other.lacks().is_some() {
            continue;
        }
        let there = other.world(&stack).provider.of(&talk.thread.key).await;
        assert_eq!(there, Ok(Vec::new()), "at {}", other.word());
    }

    swept(&talk, Phase::Paused).await;
    let paused = talk.sandbox().await;
    assert_eq!((&paused.name, paused.state.as_str()), (&made.name, "stopped"));

    let second = talk.say("echo: and again").await;
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    let session = talk.session().await;
    let again = session.sandbox.history.timeline.iter();
    let resumed = again.filter(|entry| entry.phase == Phase::Resuming).count();
    assert!(resumed > 0, "{:?}", session.sandbox.history.timeline);
    assert_eq!(session.sandbox.generation, 1);
    assert_eq!(talk.sandbox().await.name, made.name);
    talk.finish().await;
}

async fn vanished(stack: Arc<Stack>, place: Place) {
    let world = place.world(&stack);
    let (mut talk, first) = place.begin(&world, "slow: 60 one two three four five six").await;
    talk.running(&first).await;
    let lost = talk.sandbox().await;
    place.lose(&world, &lost).await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Lost);

    let second = talk.say("echo: a new one").await;
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    let session = talk.session().await;
    assert_eq!(session.sandbox.generation, 2);
    // What was created somewhere is created there again.
    assert_eq!(session.sandbox.spec.provider.as_deref(), Some(place.word()));
    assert_ne!(talk.sandbox().await.name, lost.name);
    talk.finish().await;
}

async fn expired(stack: Arc<Stack>, place: Place) {
    let world = place.world(&stack);
    let (talk, first) = place.begin(&world, "echo: not for long").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    swept(&talk, Phase::Destroyed).await;
    let left = world.provider.of(&talk.thread.key).await.unwrap();
    assert!(!left.iter().any(Sandbox::live), "{left:?}");
    let told = talk.see(VISIBLE_MS_MAX, "the thread is notified", |one| {
        one.text.contains("was idle for a long time and has been deleted")
    });
    told.await;
    talk.check().await;
}

/// A lost record leaves a sandbox that nobody knows.
async fn orphaned(stack: Arc<Stack>, place: Place) {
    let world = place.world(&stack);
    let (talk, first) = place.begin(&world, "echo: whose am I").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    world.forget(&talk.thread.key).await.unwrap();
    eventually(ANSWER_MS_MAX, "nobody's sandbox is gone", async || {
        world.sweep().await?;
        let left = world.provider.of(&talk.thread.key).await?;
        match left.iter().find(|one| one.live()) {
            None => Ok(()),
            Some(one) => Err(format!("{} is {}", one.name, one.state)),
        }
    })
    .await;
}

/// Daytona archives the disk of a sandbox that is stopped for long, and restores it at its start.
async fn restored(stack: Arc<Stack>) {
    let place = Place::Daytona;
    let world = place.world(&stack);
    let (mut talk, first) = place.begin(&world, "echo: put away").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    swept(&talk, Phase::Paused).await;
    let sandbox = talk.sandbox().await;
    world.provider.archive(&sandbox).await.unwrap();
    eventually(ANSWER_MS_MAX, "it is archived", async || {
        match talk.sandbox().await.state.as_str() {
            "archived" => Ok(()),
            other => Err(other.to_owned()),
        }
    })
    .await;
    let second = talk.say("echo: and back").await;
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    assert_eq!(talk.sandbox().await.name, sandbox.name);
    assert_eq!(talk.session().await.sandbox.generation, 1);
    talk.finish().await;
}

/// Somebody else may have the route of an ended session by now.
async fn strange_page(stack: Arc<Stack>) {
    let place = Place::Vercel;
    let world = place.world(&stack);
    let (mut talk, first) = place.begin(&world, "echo: mine").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let sandbox = talk.sandbox().await;
    let fault = json!({"fault": "page", "status": 200, "sandbox": sandbox.name, "times": 2});
    world.provider.arm(&fault).await.unwrap();
    let second = talk.say("echo: still mine").await;
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    let answer = talk.answer(&second).await;
    assert!(answer.contains("still mine") && !answer.contains("Somebody else"), "{answer}");
    assert_eq!(talk.sandbox().await.name, sandbox.name);
    talk.finish().await;
}
