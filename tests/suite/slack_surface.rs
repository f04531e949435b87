//! What a person sees on Slack, line by line: tasks, plans, decisions, Slack's own Stop, the Home, commands, streams.

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::{Platform, Thread};
use bobbin_tests::limits::{ANSWER_MS_MAX, CANCEL_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::{Talk, marked};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::run::{CHAT, on, trial};
use crate::shown::shows;

pub fn trials() -> Vec<Trial> {
    vec![
        on(&CHAT, "embedded::slack_surface::slack_task_reads_well_throughout", task),
        on(&CHAT, "embedded::slack_surface::slack_stop_names_the_person", stopped),
        on(&CHAT, "embedded::slack_surface::decision_suspends_and_stays_visible", decided),
        on(&CHAT, "embedded::slack_surface::deleting_the_message_withdraws_the_prompt", deleted),
        on(&CHAT, "embedded::slack_surface::anothers_message_reaches_agent_as_quote", shortcut),
        on(&CHAT, "embedded::slack_surface::invalid_choice_is_told_privately", unusable),
        trial("embedded::slack_surface::home_shows_runs_and_default_settings", home),
        trial("embedded::slack_surface::answers_stream_when_switched_on", streamed),
    ]
}

async fn page(world: &World, thread: &Thread) -> String {
    world.slack.page(thread).await.unwrap()
}

/// Waits until the thread's session has this status.
async fn status(talk: &Talk<'_>, wanted: &str) {
    eventually(VISIBLE_MS_MAX, &format!("the status is {wanted}"), async || {
        let status = talk.world.slack.status(&talk.thread).await?;
        if status == wanted { Ok(()) } else { Err(status) }
    })
    .await;
}

async fn task(world: World) {
    let (talk, turn) = world
        .begin(
            Platform::Slack,
            "agent:build write: hello.txt Hello\nrun: cat hello.txt\necho: done",
        )
        .await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    shows(
        &page(&world, &talk.thread).await,
        "
a person
  <a person> agent:build write: hello.txt Hello
  run: cat hello.txt
  echo: done

Bobbin
  = Done
  - done: Wrote hello.txt
  - done: Ran `cat hello.txt`
  (scripted/scripted-1 · took <time> · 1 file changed, +1 -0 · <some> tokens)
  [View diff]

Bobbin
  Writing `hello.txt` finished:

  ```
  Wrote file successfully.
  ```

  `cat hello.txt` finished:

  ```
  Hello
  ```

  done
  <a person>
",
    );
    talk.finish().await;
}

async fn stopped(world: World) {
    let (talk, slow) = world.begin(Platform::Slack, "slow: 60 one two three four five six").await;
    talk.running(&slow).await;
    status(&talk, "processing").await;
    let act = json!({"type": "stop_session", "channel_id": talk.thread.channel, "thread_ts": talk.thread.root});
    let done = world.slack.act(&act).await.unwrap();
    assert_eq!(done["deliveries"][0]["status"], 200, "{done}");
    let ended = talk.ended_within(CANCEL_MS_MAX, &slow).await;
    assert!(matches!(ended.outcome, Outcome::Cancelled { .. }), "{:?}", ended.outcome);
    status(&talk, "active").await;
    let seen = page(&world, &talk.thread).await;
    assert!(seen.contains("By <a person>. The work done until then is kept."), "{seen}");
    talk.finish().await;
}

async fn decided(world: World) {
    let (talk, turn) = world.begin(Platform::Slack, "ask: date +%Y").await;
    let ask =
        talk.see(ANSWER_MS_MAX, "an ask stands", |one| one.button("Allow Once").is_some()).await;
    status(&talk, "suspended").await;
    talk.press(&ask, "Allow Once").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    status(&talk, "active").await;
    let seen = page(&world, &talk.thread).await;
    assert!(
        seen.contains("The agent wants to use a path outside of its folder. Allow it?"),
        "{seen}"
    );
    assert!(seen.contains("date +%Y") && !seen.contains("[Deny]"), "{seen}");
    assert!(seen.contains("llowed") && seen.contains("ada"), "{seen}");
    talk.finish().await;
}

async fn deleted(world: World) {
    let (mut talk, slow) =
        world.begin(Platform::Slack, "slow: 25 one two three four five six").await;
    talk.running(&slow).await;
    let second = talk.say("echo: the second").await;
    eventually(VISIBLE_MS_MAX, "the second waits", async || {
        let card = talk.card(&second).await;
        if card.text.contains("Queued") { Ok(()) } else { Err(card.text) }
    })
    .await;
    let ts = second.rsplit('_').next().unwrap();
    let act = json!({"type": "delete", "channel_id": talk.thread.channel, "message_ts": ts});
    world.slack.act(&act).await.unwrap();
    eventually(VISIBLE_MS_MAX, "it is withdrawn", async || {
        let card = talk.card(&second).await;
        if card.text.contains("Stopped") { Ok(()) } else { Err(card.text) }
    })
    .await;
    let running = talk.session().await.turn.map(|turn| turn.id);
    assert_eq!(running, Some(slow.as_str().into()), "what runs goes on");
    status(&talk, "processing").await;
    assert_eq!(talk.ended(&slow).await.outcome, Outcome::Answered);
    let ended = talk.ended(&second).await;
    assert!(matches!(ended.outcome, Outcome::Cancelled { .. }), "{:?}", ended.outcome);
    talk.finish().await;
}

async fn shortcut(world: World) {
    let seeds = world.slack.seeds().await.unwrap();
    let (text, mark) = marked("echo: from the message of another");
    let said = json!({"type": "message", "user_id": seeds["slack_member_user_id"], "text": text});
    let said = world.slack.act(&said).await.unwrap();
    let (channel, ts) = (said["channel"].as_str().unwrap(), said["ts"].as_str().unwrap());
    let used = json!({"type": "shortcut", "callback_id": "send_to_bobbin", "channel_id": channel, "message_ts": ts});
    world.slack.act(&used).await.unwrap();
    let thread = world.slack.thread(channel, ts).unwrap();
    let turn = eventually(ANSWER_MS_MAX, "the turn ends", async || {
        let session = world.session(&thread.key).await?;
        let ended = session.ended.first().map(|turn| turn.id.clone());
        ended.ok_or_else(|| format!("{:?}", session.turn))
    })
    .await;
    let talk = world.talk(Platform::Slack, thread, &turn, &mark);
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let entry = world.aws.entry(&world.deployment.table, &talk.thread.key, &turn).await.unwrap();
    assert!(entry.asked.contains("Do what this message asks for"), "{entry:?}");
    talk.finish().await;
}

async fn unusable(world: World) {
    let (channel, user) = (world.ready.slack_channel_id.clone(), world.ready.slack_user_id.clone());
    world.slack.mention(None, "repo:api fix it").await.unwrap();
    let told = eventually(VISIBLE_MS_MAX, "the person is told", async || {
        let told = world.slack.told(&channel, &user).await?;
        let found = told.iter().find(|one| one.contains("`api`")).cloned();
        found.ok_or_else(|| format!("{told:?}"))
    })
    .await;
    shows(
        &told,
        "
Bobbin (only you see it)
  `api` cannot be used as a repository: write it as owner/name or as an https address.
",
    );
}

/// A person's Home, once it satisfies `wanted`.
async fn home_of(world: &World, user: &str, wanted: impl Fn(&str) -> bool) -> (String, Value) {
    eventually(VISIBLE_MS_MAX, "the Home shows it", async || match world.slack.home(user).await? {
        Some((words, view)) if wanted(&words) => Ok((words, view)),
        other => Err(format!("{:?}", other.map(|(words, _)| words))),
    })
    .await
}

/// A slash command's private answer.
async fn commanded(world: &World, text: &str, wanted: &str) -> String {
    let (channel, user) = (&world.ready.slack_channel_id, &world.ready.slack_user_id);
    let act = json!({"type": "slash", "command": "/bobbin", "text": text});
    let done = world.slack.act(&act).await.unwrap();
    assert_eq!(done["status"], 200, "{done}");
    eventually(VISIBLE_MS_MAX, &format!("{text}: {wanted:?} is told"), async || {
        let told = world.slack.told(channel, user).await?;
        let last = told.last().filter(|one| one.contains(wanted)).cloned();
        last.ok_or_else(|| format!("{told:?}"))
    })
    .await
}

async fn home() {
    let stack = Stack::start(&Options::lean(quick()));
    let world = World::of(&stack);
    let seeds = world.slack.seeds().await.unwrap();
    let (ada, sam) = (
        seeds["slack_user_id"].as_str().unwrap().to_owned(),
        seeds["slack_member_user_id"].as_str().unwrap().to_owned(),
    );
    let dm = seeds["slack_dm_id"].as_str().unwrap().to_owned();
    let open = json!({"type": "home_opened", "channel_id": dm});
    world.slack.act(&open).await.unwrap();
    let (empty, view) =
        home_of(&world, &ada, |words| words.contains("None of your tasks is running")).await;
    shows(
        &empty,
        "
  # Your running tasks
  None of your tasks is running. Mention Bobbin in a channel with a task, for example `@Bobbin fix the failing test in api`, or write to it under Messages. Each thread gets its own sandbox.
  # Defaults of this workspace
  *Repository:* none; the operator's setting applies
  <Choose a default repository>
  *Model:* none; the operator's setting applies
  <Choose a default model>
  *Agent:* none; the operator's setting applies
  <Choose a default agent>
  *Sandbox provider:* none; the operator's setting applies
  <Choose a default sandbox provider>
  *Runtime:* none; the operator's setting applies
  <Choose a default runtime>
  *Pull requests:* none; they are opened as drafts
  <Choose how pull requests are opened>
  *Pull requests by:* none; everyone who may use me may open them
  <Choose who may open pull requests>
  *Submodules:* none; they are left out
  <Choose whether submodules come along>
  *Review bots:* none; only people's reviews count
  <Name bots whose reviews count>
  (Channels can have their own defaults: /bobbin config help.)
",
    );

    // Suggestions while typing, then a choice: it is made and shown.
    let typed = json!({"type": "block_suggestion", "channel_id": dm, "action_id": "v1:default:agent", "value": "plan"});
    let suggested = world.slack.act(&typed).await.unwrap();
    assert_eq!(suggested["options"][0]["value"], "plan", "{suggested}");
    let choice = json!({"type": "block_action", "channel_id": dm, "view_id": view["id"], "action_id": "v1:default:agent", "value": "plan"});
    world.slack.act(&choice).await.unwrap();
    let (chosen, view) = home_of(&world, &ada, |words| words.contains("*Agent:* `plan`")).await;
    assert!(chosen.starts_with("  Done: "), "{chosen}");
    let clear = json!({"type": "block_action", "channel_id": dm, "view_id": view["id"], "action_id": "v1:clear:agent"});
    world.slack.act(&clear).await.unwrap();
    home_of(&world, &ada, |words| words.contains("*Agent:* none")).await;

    // A run is shown, reported by the command, and stopped from the Home.
    let (talk, slow) = world.begin(Platform::Slack, "slow: 60 one two three four five six").await;
    talk.running(&slow).await;
    let told = commanded(&world, "status", "Working").await;
    assert!(told.contains("- Working, for <time>."), "{told}");
    world.slack.act(&open).await.unwrap();
    let (running, view) = home_of(&world, &ada, |words| words.contains("[Stop]")).await;
    assert!(running.contains("  *Working* in <a channel>, for <time>\n  [Stop]"), "{running}");
    let stop = json!({"type": "block_action", "channel_id": dm, "view_id": view["id"], "action_id": "v1:home-stop:0"});
    world.slack.act(&stop).await.unwrap();
    let ended = talk.ended_within(CANCEL_MS_MAX, &slow).await;
    assert!(matches!(ended.outcome, Outcome::Cancelled { .. }), "{:?}", ended.outcome);
    world.slack.act(&open).await.unwrap();
    let (after, _) = home_of(&world, &ada, |words| words.contains("# Recently")).await;
    assert!(after.contains("• stopped <time> ago, took <time>: slow: 60 one two three"), "{after}");

    // Another person sees none of it and can choose nothing.
    let colleague = json!({"type": "message", "user_id": sam, "text": "hello all"});
    world.slack.act(&colleague).await.unwrap();
    let opened =
        json!({"type": "home_opened", "user_id": sam, "channel_id": world.ready.slack_channel_id});
    world.slack.act(&opened).await.unwrap();
    let (theirs, _) =
        home_of(&world, &sam, |words| words.contains("None of your tasks is running")).await;
    assert!(!theirs.contains("slow:") && !theirs.contains("<Choose"), "{theirs}");

    // The same settings by the command.
    let told = commanded(&world, "config default model openai/gpt here", "Done: ").await;
    assert!(told.contains("openai/gpt"), "{told}");
    let told = commanded(&world, "config", "openai/gpt").await;
    assert!(told.starts_with("Bobbin (only you see it)"), "{told}");
    commanded(&world, "config default model none here", "Done: ").await;
    commanded(&world, "config what", "/bobbin config default repo").await;
    talk.finish().await;
    drop(world);
    stack.end().unwrap();
}

async fn streamed() {
    let stack = Stack::start(&Options {
        parameters: json!({"Overrides": r#"{"slack_stream_answers": true}"#}),
        ..Options::lean(quick())
    });
    let world = World::of(&stack);
    let (talk, turn) = world.begin(Platform::Slack, "long: 3000").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let answer = talk.answer(&turn).await;
    assert!(answer.chars().count() >= 3_000, "{}", answer.len());
    let log = world.slack.requests().await.unwrap();
    let calls = |method: &str| {
        let route = format!("/slack/api/{method}");
        log.iter().filter(|one| one["route"] == route).count()
    };
    assert_eq!((calls("chat.startStream"), calls("chat.stopStream")), (1, 1));
    assert!(calls("chat.appendStream") >= 2);
    talk.finish().await;
    drop(world);
    stack.end().unwrap();
}
