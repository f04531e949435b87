//! Direct messages in Slack, in a workspace that wants one thread for each person: who shares what, what a switch does
//! to existing threads, a crash while posting, and retries that ingress puts into the other thread.

use std::ops::Not;

use bobbin_core::base::names::{PostKind, post_key};
use bobbin_core::protocol::decide::words;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::sandbox::{Phase, TimelineEntry};
use bobbin_core::tenant::settings::Settings;
use bobbin_tests::breakpoints::Condition;
use bobbin_tests::chat::{Platform, Thread};
use bobbin_tests::limits::{ANSWER_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::observed::Accepted;
use bobbin_tests::processes;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::{Talk, marked};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::run::trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("embedded::direct::direct_messages_share_one_personal_sandbox", shared),
        trial("embedded::direct::switched_setting_keeps_begun_conversations", switched),
        trial("embedded::direct::killed_worker_finds_its_post_again", killed),
        trial("embedded::direct::message_with_two_threads_runs_once", undecided),
        trial("embedded::direct::direct_messages_cover_whole_lifecycle", whole_life),
    ]
}

/// A person and the channel of their direct messages.
struct Someone {
    id: String,
    channel: String,
}

fn stack() -> Stack {
    stack_with(&[])
}

fn stack_with(more: &[(&str, u64)]) -> Stack {
    let mut limits = quick();
    for (name, ms) in more {
        limits[*name] = json!(ms);
    }
    for (name, ms) in
        [("visibility_ms", 15_000), ("heartbeat_ms", 3_000), ("lifecycle_call_ms", 10_000)]
    {
        limits[name] = json!(ms);
    }
    // The workers' log says which copies were dropped.
    let environment = vec![("BOBBIN_LOG".to_owned(), "info".to_owned())];
    Stack::start(&Options { environment, ..Options::lean(limits) })
}

async fn ada(world: &World) -> Someone {
    let id = world.ready.slack_user_id.clone();
    let channel = world.slack.direct_channel(&id).await.unwrap();
    Someone { id, channel }
}

async fn sam(world: &World) -> Someone {
    let id = world.colleague(Platform::Slack).await.id;
    let channel = world.slack.direct_channel(&id).await.unwrap();
    Someone { id, channel }
}

async fn settings(world: &World) -> Result<Settings, String> {
    let partition = format!("tenant:slack:{}", world.ready.slack_team_id);
    let key = json!({"thread": {"S": partition}, "item": {"S": "settings"}});
    let body = json!({"TableName": world.deployment.table, "ConsistentRead": true, "Key": key});
    let answer = world.aws.call("dynamodb", "DynamoDB_20120810.GetItem", &body).await?;
    let text = answer["Item"]["settings"]["S"].as_str().unwrap_or("{}");
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// A manager of the workspace sets how direct messages work, and that takes effect.
async fn switch(world: &World, word: &str, one_thread: bool) {
    let act =
        json!({"type": "slash", "command": "/bobbin", "text": format!("config direct {word}")});
    let done = world.slack.act(&act).await.unwrap();
    assert_eq!(done["status"], 200, "{done}");
    eventually(ANSWER_MS_MAX, "the switch counts", async || {
        let settings = settings(world).await?;
        if settings.direct_in_one_thread == one_thread {
            Ok(())
        } else {
            Err(format!("{settings:?}"))
        }
    })
    .await;
}

/// Somebody writes to the app; returns the message's `ts`.
async fn write(world: &World, who: &Someone, root: Option<&str>, text: &str) -> String {
    let written = world.slack.write(&who.id, &who.channel, root, text).await;
    written.unwrap_or_else(|why| panic!("{why}"))
}

fn one_thread(world: &World, who: &Someone) -> Thread {
    world.slack.direct(&who.id, &who.channel).unwrap()
}

/// A prompt in somebody's direct messages, in its conversation.
async fn say(
    talk: &mut Talk<'_>,
    who: &Someone,
    root: Option<&str>,
    lines: &str,
) -> (String, String) {
    let (text, mark) = marked(lines);
    let ts = write(talk.world, who, root, &text).await;
    let turn = talk.world.slack.turn(&who.channel, &ts);
    talk.accepted.push(Accepted::prompt(&turn, &mark));
    (turn, ts)
}

fn silent(world: &World, thread: Thread) -> Talk<'_> {
    Talk { world, platform: Platform::Slack, thread, accepted: Vec::new() }
}

/// No record and no sandbox of this thread.
async fn is_untouched(world: &World, thread: &Thread) {
    let sessions = world.aws.sessions(&world.deployment.table).await.unwrap();
    assert!(sessions.iter().any(|one| one.thread == thread.key).not());
    assert!(world.provider.of(&thread.key).await.unwrap().is_empty());
}

async fn shared() {
    let stack = stack();
    let world = World::of(&stack);
    let (ada, sam) = (ada(&world).await, sam(&world).await);
    switch(&world, "one", true).await;
    let mut talk = silent(&world, one_thread(&world, &ada));
    let (first, ts) = say(&mut talk, &ada, None, "write: note.txt kept between us").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let (sandbox, session) = (talk.sandbox().await, talk.session().await);
    let (second, _) = say(&mut talk, &ada, None, "run: cat note.txt").await;
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    assert!(talk.answer(&second).await.contains("kept between us"));
    let now = talk.session().await;
    assert_eq!(
        (talk.sandbox().await.id, &now.conversation.session, now.sandbox.generation),
        (sandbox.id, &session.conversation.session, 1)
    );
    is_untouched(&world, &world.slack.thread(&ada.channel, &ts).unwrap()).await;

    // No message gets its own thread, whatever it answers; an answer under a post of ours belongs to the thread too.
    let card = talk.card(&second).await;
    let (third, _) = say(&mut talk, &ada, Some(&card.id), "echo: under the card").await;
    assert_eq!(talk.ended(&third).await.outcome, Outcome::Answered);
    assert!(talk.answer(&third).await.contains("under the card"));

    // Slack's retry of an event that has ended.
    let (text, mark) = marked("run: echo again >> note.txt; wc -l < note.txt");
    let act =
        json!({"type": "message", "user_id": ada.id, "channel_id": ada.channel, "text": text});
    let done = world.slack.act(&act).await.unwrap();
    let fourth = world.slack.turn(&ada.channel, done["ts"].as_str().unwrap());
    talk.accepted.push(Accepted::prompt(&fourth, &mark));
    for number in [1, 2] {
        let event = &done["deliveries"][0]["event_id"];
        let retry =
            json!({"type": "retry", "event_id": event, "num": number, "reason": "http_timeout"});
        assert_eq!(world.slack.act(&retry).await.unwrap()["status"], 200);
        assert_eq!(talk.ended(&fourth).await.outcome, Outcome::Answered);
    }
    let file = world.provider.download(&talk.sandbox().await, "note.txt").await;
    assert_eq!(file.unwrap().matches("again").count(), 1);
    assert_eq!(talk.session().await.ended.len(), 4);

    // Words, Slack's own status and Stop, and a button.
    write(&world, &ada, None, "status").await;
    talk.see(VISIBLE_MS_MAX, "the status is told", |one| one.text.contains("Nothing is running."))
        .await;
    let (slow, slow_ts) = say(&mut talk, &ada, None, "slow: 60 one two three four five six").await;
    talk.running(&slow).await;
    let of_message = world.slack.thread(&ada.channel, &slow_ts).unwrap();
    eventually(VISIBLE_MS_MAX, "the status stands at the message", async || {
        match world.slack.status(&of_message).await?.as_str() {
            "processing" => Ok(()),
            other => Err(other.to_owned()),
        }
    })
    .await;
    let act = json!({"type": "stop_session", "channel_id": ada.channel, "thread_ts": slow_ts});
    world.slack.act(&act).await.unwrap();
    assert!(matches!(talk.ended(&slow).await.outcome, Outcome::Cancelled { .. }));
    let (slow, _) = say(&mut talk, &ada, None, "slow: 60 one two three four five six").await;
    talk.running(&slow).await;
    let card = talk.card(&slow).await;
    world.slack.press(&talk.thread, &card, "Stop").await.unwrap();
    assert!(matches!(talk.ended(&slow).await.outcome, Outcome::Cancelled { .. }));

    // Somebody else has their own thread.
    let mut other = silent(&world, one_thread(&world, &sam));
    let (turn, _) = say(&mut other, &sam, None, "run: ls").await;
    assert_eq!(other.ended(&turn).await.outcome, Outcome::Answered);
    assert!(other.answer(&turn).await.contains("note.txt").not());
    assert_ne!(other.sandbox().await.id, talk.sandbox().await.id);
    talk.check().await;
    other.check().await;
    stack.end().unwrap();
}

async fn whole_life() {
    let stack = stack_with(&[("idle_pause_ms", 4_000), ("paused_ttl_ms", 4_000)]);
    let world = World::of(&stack);
    let ada = ada(&world).await;
    switch(&world, "one", true).await;
    let mut talk = silent(&world, one_thread(&world, &ada));
    let (asking, _) = say(&mut talk, &ada, None, "question: Which colour? | red | blue").await;
    let ask = talk.see(ANSWER_MS_MAX, "the ask stands", |one| one.button("blue").is_some()).await;
    talk.press(&ask, "blue").await;
    assert_eq!(talk.ended(&asking).await.outcome, Outcome::Answered);
    assert!(talk.answer(&asking).await.contains("was answered: blue"));

    // Nobody writes: the sandbox is paused, then deleted, and that is reported where the person reads.
    talk.see(ANSWER_MS_MAX, "its end is told", |one| one.text.contains(words::EXPIRED)).await;
    let session = talk.session().await;
    assert_eq!(session.sandbox.phase, Phase::Destroyed);
    let was_paused = |entry: &TimelineEntry| entry.phase == Phase::Paused;
    assert!(session.sandbox.history.timeline.iter().any(was_paused));

    // The next message continues in the same thread, in a new sandbox that is told the history.
    let (next, _) = say(&mut talk, &ada, None, "echo: back again").await;
    assert_eq!(talk.ended(&next).await.outcome, Outcome::Answered);
    let session = talk.session().await;
    assert_eq!((session.sandbox.generation, session.ended.len()), (2, 2));

    let ts = write(&world, &ada, None, "reset").await;
    let turn = world.slack.turn(&ada.channel, &ts);
    talk.accepted.push(Accepted { turn, mark: None });
    talk.see(ANSWER_MS_MAX, "the reset is told", |one| one.text.contains(words::RESET)).await;
    assert_eq!(talk.session().await.sandbox.phase, Phase::Destroyed);
    talk.check().await;
    world.check_quiet().await;
    stack.end().unwrap();
}

async fn switched() {
    let stack = stack();
    let world = World::of(&stack);
    let ada = ada(&world).await;
    let (text, mark) = marked("write: own.txt of its own");
    let ts = write(&world, &ada, None, &text).await;
    let thread = world.slack.thread(&ada.channel, &ts).unwrap();
    let turn = world.slack.turn(&ada.channel, &ts);
    let mut own = world.talk(Platform::Slack, thread, &turn, &mark);
    assert_eq!(own.ended(&turn).await.outcome, Outcome::Answered);
    is_untouched(&world, &one_thread(&world, &ada)).await;

    switch(&world, "one", true).await;
    let (reply, _) = say(&mut own, &ada, Some(&ts), "run: cat own.txt").await;
    assert_eq!(own.ended(&reply).await.outcome, Outcome::Answered);
    assert!(own.answer(&reply).await.contains("of its own"));
    let mut all = silent(&world, one_thread(&world, &ada));
    let (first, first_ts) = say(&mut all, &ada, None, "write: all.txt of all of them").await;
    assert_eq!(all.ended(&first).await.outcome, Outcome::Answered);

    switch(&world, "each", false).await;
    let (text, mark) = marked("run: ls");
    let new_ts = write(&world, &ada, None, &text).await;
    let thread = world.slack.thread(&ada.channel, &new_ts).unwrap();
    let turn = world.slack.turn(&ada.channel, &new_ts);
    let new = world.talk(Platform::Slack, thread, &turn, &mark);
    assert_eq!(new.ended(&turn).await.outcome, Outcome::Answered);
    assert!(new.answer(&turn).await.contains(".txt").not());
    // Under an earlier message, and under a post of ours.
    let (reply, _) = say(&mut all, &ada, Some(&first_ts), "run: cat all.txt").await;
    assert_eq!(all.ended(&reply).await.outcome, Outcome::Answered);
    assert!(all.answer(&reply).await.contains("of all of them"));
    let card = all.card(&reply).await;
    let (reply, _) = say(&mut all, &ada, Some(&card.id), "run: cat all.txt").await;
    assert_eq!(all.ended(&reply).await.outcome, Outcome::Answered);
    for talk in [&own, &all, &new] {
        talk.check().await;
    }
    stack.end().unwrap();
}

async fn killed() {
    let stack = stack();
    let world = World::of(&stack);
    let ada = ada(&world).await;
    switch(&world, "one", true).await;
    let mut talk = silent(&world, one_thread(&world, &ada));
    // The first post of a turn is its card, the second its answer.
    for nth in [1, 2] {
        let (text, mark) = marked("echo: once and no more");
        let breakpoint = world
            .breakpoint(&Condition {
                text: mark.clone(),
                function: "Worker".to_owned(),
                call: "chat POST /slack/api/chat.postMessage".to_owned(),
                nth,
                after: true,
            })
            .await;
        let ts = write(&world, &ada, None, &text).await;
        let turn = world.slack.turn(&ada.channel, &ts);
        talk.accepted.push(Accepted::prompt(&turn, &mark));
        let process =
            eventually(ANSWER_MS_MAX, "the post is held", async || breakpoint.held_process().await)
                .await;
        processes::kill(process);
        breakpoint.remove().await.unwrap();
        assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
        // The promises check that each post exists once.
        talk.check().await;
        let posts = talk.messages().await.unwrap();
        for kind in [PostKind::Card, PostKind::Chunk(0)] {
            let key = post_key(&talk.thread.key, &turn.as_str().into(), &kind);
            let posted = posts.iter().filter(|one| one.key.as_ref() == Some(&key));
            assert_eq!(posted.count(), 1, "{kind:?}: {posts:?}");
        }
    }
    stack.end().unwrap();
}

/// How often the functions have written this event.
fn logged(stack: &Stack, event: &str) -> usize {
    let log = std::fs::read_to_string(stack.folder().path().join("output.log"));
    log.unwrap().matches(event).count()
}

const UNDECIDED: &str = "ingress.undecided";
const ELSEWHERE: &str = "message.elsewhere";

/// Makes a request with this content, for which the table does not answer ingress in time.
async fn unanswered(stack: &Stack, world: &World, mark: &str, act: &Value) -> Value {
    let breakpoint = world
        .breakpoint(&Condition {
            text: mark.to_owned(),
            function: "Ingress".to_owned(),
            call: "dynamodb GetItem".to_owned(),
            nth: 1,
            after: false,
        })
        .await;
    let before = logged(stack, UNDECIDED);
    let done = world.slack.act(act).await.unwrap();
    // A new process on a busy machine may not even reach its call in time.
    eventually(VISIBLE_MS_MAX, "ingress is not told", async || {
        let state = breakpoint.status().await?.state;
        if logged(stack, UNDECIDED) > before { Ok(()) } else { Err(state) }
    })
    .await;
    breakpoint.remove().await.unwrap();
    done
}

/// Somebody writes to the app, and Slack sends it twice; the table answers ingress the first or the second time.
async fn twice(
    stack: &Stack,
    world: &World,
    who: &Someone,
    (text, mark): (&str, &str),
    is_first: bool,
) -> String {
    let said =
        json!({"type": "message", "user_id": who.id, "channel_id": who.channel, "text": text});
    let done = if is_first {
        world.slack.act(&said).await.unwrap()
    } else {
        unanswered(stack, world, mark, &said).await
    };
    let ts = done["ts"].as_str().unwrap().to_owned();
    let taken = format!("direct#{}", world.slack.turn(&who.channel, &ts));
    eventually(ANSWER_MS_MAX, "a worker takes it", async || {
        let items = world.aws.scan(&world.deployment.table).await?;
        let is_taken = items.iter().any(|item| item["item"]["S"] == taken);
        is_taken.then_some(()).ok_or_else(|| taken.clone())
    })
    .await;
    let event = &done["deliveries"][0]["event_id"];
    let retry = json!({"type": "retry", "event_id": event, "num": 1, "reason": "http_timeout"});
    let again = if is_first {
        unanswered(stack, world, mark, &retry).await
    } else {
        world.slack.act(&retry).await.unwrap()
    };
    assert_eq!(again["status"], 200, "{again}");
    ts
}

async fn undecided() {
    let stack = stack();
    let world = World::of(&stack);
    let ada = ada(&world).await;
    let all = one_thread(&world, &ada);
    for (one, is_first) in [(false, false), (true, false), (true, true)] {
        if one {
            switch(&world, "one", true).await;
        }
        let before = logged(&stack, ELSEWHERE);
        let (text, mark) = marked("run: echo more >> count.txt; wc -l < count.txt");
        let ts = twice(&stack, &world, &ada, (&text, &mark), is_first).await;
        let turn = world.slack.turn(&ada.channel, &ts);
        let own = world.slack.thread(&ada.channel, &ts).unwrap();
        let (thread, other) = if is_first { (all.clone(), own) } else { (own, all.clone()) };
        let mut talk = world.talk(Platform::Slack, thread, &turn, &mark);
        assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
        // The copy and its announcement, if ingress chose another thread the second time.
        let copies = if one { 2 } else { 0 };
        eventually(VISIBLE_MS_MAX, "the copy is dropped", async || {
            let dropped = logged(&stack, ELSEWHERE) - before;
            if dropped == copies { Ok(()) } else { Err(dropped.to_string()) }
        })
        .await;
        world.check_quiet().await;
        let file = world.provider.download(&talk.sandbox().await, "count.txt").await;
        assert_eq!(file.unwrap().lines().count(), 1);
        is_untouched(&world, &other).await;

        // An answer goes where its message went, whatever the setting is.
        let (reply, _) = say(&mut talk, &ada, Some(&ts), "run: cat count.txt").await;
        assert_eq!(talk.ended(&reply).await.outcome, Outcome::Answered);
        is_untouched(&world, &other).await;
        talk.check().await;
    }

    // A word is answered once too.
    let before = logged(&stack, ELSEWHERE);
    let ts = twice(&stack, &world, &ada, ("status", "status"), true).await;
    eventually(VISIBLE_MS_MAX, "the copy is dropped", async || {
        let dropped = logged(&stack, ELSEWHERE) - before;
        if dropped == 1 { Ok(()) } else { Err(dropped.to_string()) }
    })
    .await;
    let told = async |thread: Thread| {
        let messages = silent(&world, thread).messages().await.unwrap();
        messages.iter().filter(|one| one.text.contains("Nothing is running.")).count()
    };
    assert_eq!(told(all).await, 1);
    assert_eq!(told(world.slack.thread(&ada.channel, &ts).unwrap()).await, 0);
    stack.end().unwrap();
}
