//! A person's actions, once for every platform and engine.

use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::sandbox::Phase;
use bobbin_core::records::session::Session;
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::{ANSWER_MS_MAX, CANCEL_MS_MAX, PAUSE_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::shared::Shared;
use bobbin_tests::talk::Talk;
use bobbin_tests::wait::{eventually, within};
use bobbin_tests::world::World;
use libtest_mimic::Trial;

use crate::run::{BRISK, CHAT, COMMON, deep, on};

/// A scenario's name and what it does.
pub type Scenario =
    (&'static str, fn(World, Platform) -> std::pin::Pin<Box<dyn Future<Output = ()>>>);

/// Scenarios that need the usual limits.
pub const USUAL: [Scenario; 4] = [
    ("follow_up_finds_first_file", |world, on| Box::pin(conversation(world, on))),
    ("stop_ends_run_and_keeps_sandbox", |world, on| Box::pin(stopped(world, on))),
    ("two_threads_run_at_once", |world, on| Box::pin(parallel(world, on))),
    ("a_name_is_won_once", |world, on| Box::pin(crate::share::in_turns(world, on))),
];
/// This many of them are quick.
const FIRST: usize = 3;
/// Scenarios that need an idle time of seconds.
pub const IDLE: [Scenario; 1] =
    [("sweep_pauses_and_message_wakes_sandbox", |world, on| Box::pin(paused(world, on)))];
pub const SLICED: [Scenario; 1] =
    [("long_run_spans_several_deliveries", |world, on| Box::pin(sliced(world, on)))];
pub const ASKED: [Scenario; 2] = [
    ("allow_once_lets_the_command_run", |world, on| Box::pin(allowed(world, on))),
    ("model_refusal_is_reported", |world, on| Box::pin(refused(world, on))),
];

pub fn trials() -> Vec<Trial> {
    let everywhere = |stack: &'static Shared, scenarios: &[Scenario]| -> Vec<Trial> {
        let each = scenarios.iter().copied();
        let each = each.flat_map(|scenario| Platform::ALL.map(|platform| (scenario, platform)));
        each.map(|((name, scenario), platform)| {
            let name = format!("embedded::{}::{name}", platform.word());
            on(stack, &name, async move |world| scenario(world, platform).await)
        })
        .collect()
    };
    let (first, long) = USUAL.split_at(FIRST);
    let behind = everywhere(&CHAT, long).into_iter().chain(everywhere(&COMMON, &ASKED));
    let behind = behind.chain(everywhere(&BRISK, &[IDLE, SLICED].concat()));
    everywhere(&COMMON, first).into_iter().chain(deep(behind)).collect()
}

async fn conversation(world: World, platform: Platform) {
    let (mut talk, first) = world.begin(platform, "write: hello.txt Hello from the sandbox").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    assert!(talk.answer(&first).await.contains("hello.txt"), "{}", talk.answer(&first).await);
    let (before, sandbox) = (talk.session().await, talk.sandbox().await);

    let file = world.provider.download(&sandbox, "hello.txt").await;
    assert_eq!(file.as_deref().map(str::trim), Ok("Hello from the sandbox"));
    let on_disk = files_named("hello.txt", &world.state_dir.join("daytona"));
    let ours: Vec<_> = on_disk
        .iter()
        .filter(|path| path.components().any(|part| part.as_os_str() == sandbox.name.as_str()))
        .collect();
    let [ours] = ours[..] else {
        panic!("not one such file in the sandbox's directory: {on_disk:?}")
    };
    assert_eq!(std::fs::read_to_string(ours).unwrap().trim(), "Hello from the sandbox");

    let second = talk.say("run: cat hello.txt").await;
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    let answer = talk.answer(&second).await;
    assert!(answer.contains("Hello from the sandbox"), "{answer}");
    let after = talk.session().await;
    assert_eq!(
        (after.sandbox.generation, &after.conversation.session),
        (before.sandbox.generation, &before.conversation.session),
        "another sandbox or session"
    );
    assert_eq!(talk.sandbox().await.id, sandbox.id);

    let status = talk.status().await;
    assert!(status.contains("Sandbox 1") && status.contains("running"), "{status}");
    talk.finish().await;
}

async fn stopped(world: World, platform: Platform) {
    let (mut talk, slow) =
        world.begin(platform, "slow: 90 one two three four five six seven eight nine ten").await;
    talk.running(&slow).await;
    assert!(talk.card(&slow).await.button("Stop").is_some(), "{:?}", talk.card(&slow).await);
    talk.stop().await;
    let ended = talk.ended_within(CANCEL_MS_MAX, &slow).await;
    assert!(matches!(ended.outcome, Outcome::Cancelled { .. }), "{:?}", ended.outcome);
    let before = talk.session().await;

    let next = talk.say("echo: still here").await;
    assert_eq!(talk.ended(&next).await.outcome, Outcome::Answered);
    assert!(talk.answer(&next).await.contains("still here"));
    assert_eq!(
        talk.session().await.sandbox.generation,
        before.sandbox.generation,
        "the sandbox was lost by a stop"
    );
    talk.finish().await;
}

async fn parallel(world: World, platform: Platform) {
    // Each continues until it is released, however long the other one takes to begin.
    const HELD: &str = "run: until [ -d go-on ]; do sleep 0.1; done";
    let (mut one, first) = world.begin(platform, HELD).await;
    one.running(&first).await;
    let second = one.say("echo: only after the first").await;
    let (other, beside) = world.begin(platform, HELD).await;
    let running = |session: &Session, id: &str| {
        session.turn.as_ref().is_some_and(|turn| turn.id == id && turn.stage.is_running())
    };
    eventually(ANSWER_MS_MAX, "two threads run at once", async || {
        let (here, there) =
            (world.session(&one.thread.key).await?, world.session(&other.thread.key).await?);
        if running(&here, &first) && running(&there, &beside) {
            Ok(())
        } else {
            Err(format!("{:?} and {:?}", here.turn, there.turn))
        }
    })
    .await;
    for talk in [&one, &other] {
        let sandbox = talk.sandbox().await;
        let go_on = world.provider.make_folder(&sandbox, "go-on");
        go_on.await.unwrap();
    }
    let before = one.ended(&first).await;
    assert_eq!(one.ended(&second).await.outcome, Outcome::Answered);
    let mark = one.accepted[1].mark.clone().unwrap();
    let calls = world.model_calls().await.unwrap();
    let began = calls
        .iter()
        .filter(|call| call.user.contains(&mark) && !call.internal())
        .map(|call| call.time_ms)
        .min();
    assert!(
        began.is_some_and(|began| began >= before.at_ms),
        "the second prompt reached the agent during the first"
    );
    assert_eq!(other.ended(&beside).await.outcome, Outcome::Answered);
    one.finish().await;
    other.finish().await;
}

async fn paused(world: World, platform: Platform) {
    let (mut talk, first) = world.begin(platform, "write: keep.txt kept over the pause").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let sandbox = talk.sandbox().await;
    pause(&talk).await;
    let stopped = talk.sandbox().await;
    assert_eq!((stopped.id.as_str(), stopped.state.as_str()), (sandbox.id.as_str(), "stopped"));
    talk.check().await;

    let second = talk.say("run: cat keep.txt").await;
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    let answer = talk.answer(&second).await;
    assert!(answer.contains("kept over the pause"), "{answer}");
    let session = talk.session().await;
    assert_eq!(session.sandbox.generation, 1, "it was made anew instead of woken");
    let woken = session.sandbox.history.timeline.iter().any(|entry| entry.phase == Phase::Resuming);
    assert!(woken, "{:?}", session.sandbox.history.timeline);
    talk.finish().await;
}

/// Runs the sweeper until the idle sandbox is paused.
pub async fn pause(talk: &Talk<'_>) {
    let paused = async || {
        let phase = talk.world.session(&talk.thread.key).await?.sandbox.phase;
        if phase == Phase::Paused { Ok(()) } else { Err(format!("the phase is {}", phase.word())) }
    };
    // A sweep may come before the idle time is over; then it sends nothing.
    eventually(PAUSE_MS_MAX, "the sweep pauses the idle sandbox", async || {
        talk.world.sweep().await?;
        within(3_000, paused).await
    })
    .await;
}

async fn sliced(world: World, platform: Platform) {
    let (talk, turn) =
        world.begin(platform, "slow: 12 one two three four five six seven eight nine ten").await;
    let looks = eventually(VISIBLE_MS_MAX * 2, "the run goes over three deliveries", async || {
        let parked = world.parked(&talk.thread.key).await?;
        if parked.receive >= 3 { Ok(parked.receive) } else { Err(format!("{parked:?}")) }
    })
    .await;
    assert!(looks >= 3);
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    assert!(talk.answer(&turn).await.contains("one two three four five six seven eight nine ten"));
    talk.finish().await;
}

async fn allowed(world: World, platform: Platform) {
    let (talk, turn) = world.begin(platform, "ask: echo it ran > asked.txt; cat asked.txt").await;
    let ask = talk
        .see(VISIBLE_MS_MAX * 2, "the permission is asked for", |one| {
            one.button("Allow once").is_some()
        })
        .await;
    let sandbox = talk.sandbox().await;
    assert!(
        world.provider.download(&sandbox, "asked.txt").await.is_err(),
        "it ran before anybody allowed it"
    );
    talk.press(&ask, "Allow once").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    assert!(talk.answer(&turn).await.contains("it ran"));
    let settled = talk
        .see(VISIBLE_MS_MAX, "the ask says how it was settled", |one| {
            one.id == ask.id && one.buttons.is_empty()
        })
        .await;
    assert!(settled.text.contains("Allowed once"), "{}", settled.text);
    talk.finish().await;
}

async fn refused(world: World, platform: Platform) {
    let (mut talk, turn) = world.begin(platform, "fail: 401").await;
    let ended = talk.ended(&turn).await;
    let Outcome::Failed { reason } = &ended.outcome else { panic!("{:?}", ended.outcome) };
    assert!(reason.starts_with("The agent could not finish. "), "{reason}");
    assert!(talk.card(&turn).await.text.contains("The agent could not finish"));
    let next = talk.say("echo: the sandbox is kept").await;
    assert_eq!(talk.ended(&next).await.outcome, Outcome::Answered);
    assert_eq!(talk.session().await.sandbox.generation, 1);
    talk.finish().await;
}

/// Files of this name below a folder; links are not followed.
pub fn files_named(name: &str, folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_file() && entry.file_name() == name => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found
}
