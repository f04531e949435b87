//! What a person sees on Discord, line by line: tasks, forms, quotes, suggestions, settings, refusals, ends.

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::{Platform, Thread, view};
use bobbin_tests::limits::{ANSWER_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::observed::Accepted;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::marked;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use reqwest::Method;
use serde_json::{Value, json};

use crate::run::{CHAT, on, trial};
use crate::shown::shows;

/// The longest wait for a message in one thread.
const WITHIN_MS: u64 = VISIBLE_MS_MAX;

pub fn trials() -> Vec<Trial> {
    vec![
        on(&CHAT, "embedded::surface::discord_task_reads_well_throughout", task),
        on(&CHAT, "embedded::surface::reply_form_offers_text_files_timing", reply_form),
        on(&CHAT, "embedded::surface::replies_and_forwards_travel_as_quotes", quotes),
        on(&CHAT, "embedded::surface::archived_thread_still_shows_end", archived),
        on(&CHAT, "embedded::surface::unlocked_thread_gets_withheld_answer", locked),
        on(&CHAT, "embedded::surface::single_refused_write_loses_no_answer", refused_once),
        trial("embedded::surface::only_the_permitted_use_server_settings", settings),
        trial("embedded::surface::discord_limits_and_permissions_are_respected", limits),
    ]
}

/// Does an act and returns its private answer.
async fn told(world: &World, user: &str, act: &Value) -> String {
    let channel = act["channel_id"].as_str().unwrap_or(&world.ready.discord_channel_id).to_owned();
    let heard = async || world.discord.whispered(&channel, user).await;
    let before = heard().await.unwrap().len();
    let mut act = act.clone();
    act["user_id"] = json!(user);
    world.discord.act(&act).await.unwrap();
    eventually(WITHIN_MS, "the person is told", async || {
        let words = heard().await?;
        words.get(before).cloned().ok_or_else(|| format!("{words:?}"))
    })
    .await
}

async fn task(world: World) {
    let (text, mark) = marked("write: hello.txt Hello\necho: done");
    let act = json!({"type": "command", "name": "sandbox", "options": {"prompt": text, "agent": "build"}});
    let acted = world.discord.act(&act).await.unwrap();
    let id = acted.outcome["message_id"].as_str().unwrap().to_owned();
    let thread = world.discord.thread(&id).unwrap();
    let talk = world.talk(Platform::Discord, thread, &acted.interaction, &mark);
    assert_eq!(talk.ended(&acted.interaction).await.outcome, Outcome::Answered);
    let channel = world.discord.page(&world.ready.discord_channel_id).await;
    let line = world.discord.line(&id).await.unwrap();
    assert!(channel.unwrap().contains(&line));
    shows(
        &line,
        "
Bobbin
  **Ada** asked: write: hello.txt Hello echo: done
  -# build · The work continues in the thread below.",
    );
    // The card's footer has the run's figures; its state and the answer are what the person came for.
    let page = world.discord.page(&talk.thread.channel).await.unwrap();
    for words in ["**Done**", "Writing `hello.txt` finished", "done", "[Reply]"] {
        assert!(page.contains(words), "{words} is not in:\n{page}");
    }
    talk.finish().await;
}

async fn reply_form(world: World) {
    let (mut talk, first) = world.begin(Platform::Discord, "echo: first").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let answer = talk
        .see(WITHIN_MS, "the answer has a Reply button", |one| one.button("Reply").is_some())
        .await;
    let opened = world.discord.press(&talk.thread, &answer, "Reply").await.unwrap();
    shows(
        &view::form(&opened.outcome["modal"]),
        "
Reply to the sandbox
  What should happen next? (text)
  If something is running (choice)
    (x) Queue: Starts when all current tasks are done
    ( ) Send now: Goes to the agent at once, into the running task
  Files (files, optional)",
    );
    let file = world.discord.upload("notes.txt", "text/plain", b"remember the milk").await.unwrap();
    let (text, mark) = marked("echo: by the form");
    let fields = json!({"prompt": text, "when": "now", "files": [file]});
    let form = opened.outcome["modal"]["custom_id"].clone();
    let sent = world
        .discord
        .act(&json!({"type": "modal", "channel_id": talk.thread.channel, "custom_id": form, "fields": fields}))
        .await
        .unwrap();
    let said = sent.outcome["message_id"].as_str().unwrap();
    shows(
        &world.discord.message(&talk.thread.channel, said).await.unwrap(),
        "
Bobbin
  **Ada**: echo: by the form
  -# for the running task
  -# with 1 file",
    );
    talk.accepted.push(Accepted { turn: sent.interaction.clone(), mark: Some(mark) });
    assert_eq!(talk.ended(&sent.interaction).await.outcome, Outcome::Answered);
    talk.finish().await;
}

async fn quotes(world: World) {
    let (mut talk, first) = world.begin(Platform::Discord, "echo: first").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let channel = talk.thread.channel.clone();
    let sam = world.colleague(Platform::Discord).await.id;
    let type_in = async |body: Value| {
        let mut act = json!({"type": "message", "channel_id": channel});
        for (name, value) in body.as_object().unwrap() {
            act[name] = value.clone();
        }
        world.discord.say(&act).await.unwrap()
    };
    let others = type_in(json!({"text": "The build is red", "user_id": sam})).await;
    let own = type_in(json!({"text": "echo: looking at it", "reply_to": others})).await;
    let forward = type_in(json!({"forward": {"channel_id": channel, "message_id": others}})).await;
    let mut seen = Vec::new();
    for message in [&others, &own, &forward] {
        let act = json!({"type": "message_command", "name": "Send to sandbox", "channel_id": channel, "message_id": message});
        let acted = world.discord.act(&act).await.unwrap();
        let said = acted.outcome["message_id"].as_str().unwrap();
        seen.push(world.discord.message(&channel, said).await.unwrap());
        assert_eq!(talk.ended(&acted.interaction).await.outcome, Outcome::Answered);
    }
    shows(
        &seen.join("\n\n"),
        "
Bobbin
  **Ada**: Work on the quoted message.
  > **Sam**: The build is red

Bobbin
  **Ada**: echo: looking at it
  > **Sam**: The build is red

Bobbin
  **Ada**: Work on the quoted message.
  > The build is red",
    );
    // A quote reached the agent as a quote.
    let heard = world.model_calls().await.unwrap();
    assert!(
        heard.iter().any(|call| call.user.contains("Quoted message by Sam")
            && call.user.contains("The build is red")),
        "no call of the model has the quote"
    );
    talk.reset().await;
}

async fn archived(world: World) {
    let (talk, turn) =
        world.begin(Platform::Discord, "slow: 4 one two three\necho: still here").await;
    talk.running(&turn).await;
    let archive = json!({"channel_id": talk.thread.channel, "archived": true});
    world.discord.control(Method::POST, "thread", &archive).await.unwrap();
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    assert!(talk.answer(&turn).await.contains("still here"));
    let active = world.discord.active_threads().await.unwrap();
    assert!(active.contains(&talk.thread.channel));
    talk.finish().await;
}

async fn locked(world: World) {
    let (mut talk, turn) = world.begin(Platform::Discord, "slow: 4 nobody can read this yet").await;
    talk.running(&turn).await;
    let lock = async |locked: bool| {
        let lock = json!({"channel_id": talk.thread.channel, "archived": locked, "locked": locked});
        let set = world.discord.control(Method::POST, "thread", &lock);
        set.await.unwrap()
    };
    lock(true).await;
    ends_on_record(&world, &talk.thread, &turn).await;
    assert!(!talk.answer(&turn).await.contains("yet"));
    let channel = world.discord.page(&world.ready.discord_channel_id).await;
    let beside = format!("<#{}>", talk.thread.channel);
    let is_told = |line: &str| line.contains(&beside) && line.contains("the thread is locked");
    assert!(channel.unwrap().lines().any(is_told));
    lock(false).await;
    let next = talk.say("echo: the next one").await;
    assert_eq!(talk.ended(&next).await.outcome, Outcome::Answered);
    assert!(talk.answer(&turn).await.contains("nobody can read this yet"));
    talk.finish().await;
}

async fn refused_once(world: World) {
    let (talk, turn) = world.begin(Platform::Discord, "slow: 4 a role was edited").await;
    talk.running(&turn).await;
    let route = format!("POST /api/v10/channels/{}/messages", talk.thread.channel);
    let fault = json!({"route": route, "status": 403, "code": 50_001});
    let set = world.discord.control(Method::POST, "faults", &fault).await;
    set.unwrap();
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    assert!(talk.answer(&turn).await.contains("a role was edited"));
    talk.finish().await;
}

/// Nothing can be shown any more: the turn ends all the same, and its message leaves the queue.
async fn ends_on_record(world: &World, thread: &Thread, turn: &str) {
    eventually(ANSWER_MS_MAX, "the turn ends on record", async || {
        let session = world.session(&thread.key).await?;
        match (&session.turn, session.ended.iter().any(|one| one.id == turn)) {
            (None, true) => Ok(()),
            (turn, ended) => Err(format!("{turn:?}, ended: {ended}")),
        }
    })
    .await;
}

async fn settings() {
    let stack = Stack::start(&Options::lean(quick()));
    let world = World::of(&stack);
    let ada = world.ready.discord_user_id.clone();
    let sam = world.colleague(Platform::Discord).await.id;
    let general = world.ready.discord_channel_id.clone();
    let config = |words: &str, options: Value| json!({"type": "command", "name": format!("sandbox-config {words}"), "options": options});
    let mut heard = Vec::new();
    heard.push(told(&world, &ada, &config("show", json!({}))).await);
    let model = json!({"what": "model", "value": "openai/gpt-5"});
    heard.push(told(&world, &ada, &config("default", model)).await);
    let repo = json!({"what": "repo", "value": "octo/service", "channel": general});
    heard.push(told(&world, &ada, &config("default", repo)).await);
    let clear = json!({"what": "model"});
    heard.push(told(&world, &ada, &config("default", clear)).await);
    let odd = json!({"what": "repo", "value": "no such thing"});
    heard.push(told(&world, &ada, &config("default", odd)).await);
    heard.push(told(&world, &sam, &config("allow", json!({"person": sam}))).await);
    shows(
        &heard.join("\n\n"),
        &format!(
            "
Bobbin (only you see it)
  Channels: all channels that the operator allows
  People: everyone whom the operator allows
  Defaults: none
  Defaults of this channel: none of its own
  Repositories of the forge: all
  Budgets: none

Bobbin (only you see it)
  Done: the default model is openai/gpt-5.

Bobbin (only you see it)
  Done: the default repository of <#{general}> is octo/service.

Bobbin (only you see it)
  Done: the default model is cleared.

Bobbin (only you see it)
  `no such thing` cannot be used as a repository: write it as owner/name or as an https address.

Bobbin (only you see it)
  Only people who may manage this server or workspace can change Bobbin's settings."
        ),
    );

    // Suggestions: recent choices, for people who may see them.
    let typing = async |user: &str, name: &str, options: Value, focused: &str| {
        let act = json!({"type": "autocomplete", "name": name, "options": options, "focused": focused, "user_id": user});
        let acted = world.discord.act(&act).await.unwrap();
        assert_eq!(acted.outcome["kind"], "choices", "{}", acted.outcome);
        let choices = acted.outcome["choices"].as_array().cloned();
        let name = |one: &Value| one["name"].as_str().unwrap().to_owned();
        choices.unwrap().iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(
        typing(&ada, "sandbox", json!({"repo": "octo/other"}), "repo").await,
        ["octo/other"]
    );
    // The first role on the list closes the server to all others; a manager can fix that.
    let seeds = world.discord.seeds().await.unwrap();
    let role = seeds["role_id"].as_str().unwrap();
    let closed = told(&world, &ada, &config("allow", json!({"role": role}))).await;
    let refused =
        json!({"type": "command", "name": "sandbox", "options": {"prompt": "echo: may I?"}});
    let refused = world.discord.act(&refused).await.unwrap();
    let line = refused.outcome["message_id"].as_str().unwrap().to_owned();
    let may_not = eventually(WITHIN_MS, "the refusal is told", async || {
        let line = world.discord.line(&line).await?;
        if line.contains("may not") { Ok(line) } else { Err(line) }
    })
    .await;
    assert_eq!(
        typing(&ada, "sandbox", json!({"repo": "octo/other"}), "repo").await,
        ["octo/other"],
        "who manages the server sets its defaults"
    );
    let started = json!({"type": "command", "name": "sandbox", "user_id": sam, "options": {"prompt": "echo: I may"}});
    let started = world.discord.act(&started).await.unwrap();
    assert_eq!(started.outcome["kind"], "deferred");
    let open = told(&world, &ada, &config("disallow", json!({"role": role}))).await;
    let end = told(&world, &ada, &config("show", json!({}))).await;
    shows(
        &[closed, may_not, open, end].join("\n\n"),
        &format!(
            "
Bobbin (only you see it)
  Done: allowed `{role}`.

Bobbin
  You may not use Bobbin here. Ask its operator to add you or one of your roles.

Bobbin (only you see it)
  Done: removed `{role}` from the list.

Bobbin (only you see it)
  Channels: all channels that the operator allows
  People: everyone whom the operator allows
  Defaults: none
  Defaults of this channel: repository octo/service
  Repositories of the forge: all
  Budgets: none
  Last changes:
  - <some time> ago, Ada: removed `{role}` from the list
  - <some time> ago, Ada: allowed `{role}`
  - <some time> ago, Ada: the default model is cleared
  - <some time> ago, Ada: the default repository of <#{general}> is octo/service
  - <some time> ago, Ada: the default model is openai/gpt-5"
        ),
    );
    stack.end().unwrap();
}

async fn limits() {
    let stack = Stack::start(&Options::lean(quick()));
    let world = World::of(&stack);
    let enforce = json!({"enforce": true});
    world.discord.control(Method::POST, "limits", &enforce).await.unwrap();
    let (talk, turn) = world
        .begin(
            Platform::Discord,
            "run: echo 1\nrun: echo 2\nslow: 8 one two three four\nrun: echo 3\necho: at last",
        )
        .await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    assert!(talk.answer(&turn).await.contains("at last"));
    let requests = world.discord.control(Method::GET, "requests", &Value::Null);
    let requests = requests.await.unwrap();
    let refused = requests["requests"].as_array().unwrap().iter();
    let refused = refused.filter(|one| one["status"] == 429).count();
    assert_eq!(refused, 0, "a used-up bucket is waited for, not run into");
    world.discord.control(Method::POST, "limits", &json!({"enforce": false})).await.unwrap();

    let (talk, turn) = world.begin(Platform::Discord, "slow: 4 nobody will see this").await;
    talk.running(&turn).await;
    let none = json!({"permissions": "66560"});
    world.discord.control(Method::POST, "permissions", &none).await.unwrap();
    ends_on_record(&world, &talk.thread, &turn).await;
    // A new task is refused before anything is started, and the missing permissions are named.
    let act = json!({"type": "command", "name": "sandbox", "options": {"prompt": "echo: hello"}});
    let refused = told(&world, &world.ready.discord_user_id.clone(), &act).await;
    shows(
        &refused,
        "
Bobbin (only you see it)
  The app lacks permissions in this channel: Send Messages, Create Public Threads, Send Messages in Threads. Someone who manages the server can grant them.",
    );
    stack.end().unwrap();
}
