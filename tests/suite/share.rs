//! Sandboxes that people name and share, on both chats: named, listed, connected, used in turns, destroyed while a turn
//! runs in one.

use bobbin_core::base::ids::SandboxName;
use bobbin_core::base::names::{PostKind, post_key};
use bobbin_core::protocol::decide::words;
use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::{ChatMessage, Platform};
use bobbin_tests::limits::{ANSWER_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::Talk;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::run::trial;

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for platform in Platform::ALL {
        let name = |what: &str| format!("embedded::share::{}::{what}", platform.word());
        trials.push(trial(&name("named_sandbox_is_shared_between_threads"), async move || {
            shared(platform).await
        }));
        trials.push(trial(&name("confirmed_destroy_reaches_every_thread"), async move || {
            destroyed(platform).await
        }));
    }
    trials
}

fn frontend() -> SandboxName {
    "frontend".parse().unwrap()
}

/// A command on Discord, the same in words on Slack; returns its id.
pub async fn wants(talk: &Talk<'_>, command: &str, options: &Value, words: &str) -> String {
    let World { discord, slack, .. } = talk.world;
    let sent = match talk.platform {
        Platform::Discord => {
            let acted = discord.command(&talk.thread, command, options).await;
            acted.map(|acted| acted.interaction)
        }
        Platform::Slack => slack.mention(Some(&talk.thread), words).await.map(|done| {
            let ts = done["ts"].as_str().unwrap_or_default();
            slack.turn(&talk.thread.channel, ts)
        }),
    };
    sent.unwrap_or_else(|why| panic!("{command} was not accepted: {why}"))
}

/// The thread's answer to the request with this id.
async fn told(talk: &Talk<'_>, id: &str) -> String {
    let key = post_key(&talk.thread.key, &id.into(), &PostKind::Notice);
    let named = |one: &ChatMessage| one.key.as_deref() == Some(&key);
    talk.see(ANSWER_MS_MAX, "it is told in the thread", named).await.text
}

/// One person's private answer in the thread, with these words in it.
pub async fn whispered(talk: &Talk<'_>, words: &str) -> ChatMessage {
    eventually(VISIBLE_MS_MAX, &format!("{words:?} is told"), async || {
        let seen = talk.whispers().await?;
        let found = seen.iter().rfind(|one| one.text.contains(words)).cloned();
        found.ok_or_else(|| format!("{:?}", seen.iter().map(|one| &one.text).collect::<Vec<_>>()))
    })
    .await
}

/// A thread whose sandbox has the name, and a file in it.
async fn named(world: &World, platform: Platform) -> Talk<'_> {
    let (talk, turn) = world.begin(platform, "write: note.txt from the first thread").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let id =
        wants(&talk, "sandbox-name", &json!({"name": "frontend"}), "sandbox name frontend").await;
    let told = told(&talk, &id).await;
    assert!(told.contains("is now called frontend"), "{told}");
    talk
}

/// Another thread, connected to it.
async fn connected(world: &World, platform: Platform) -> Talk<'_> {
    let (talk, turn) = world.begin(platform, "echo: the second thread").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let options = json!({"name": "frontend"});
    let id = wants(&talk, "sandbox-connect", &options, "sandbox connect frontend").await;
    let told = told(&talk, &id).await;
    assert!(told.contains("frontend"), "{told}");
    talk
}

/// Requests this name for the thread's sandbox; returns whether it got it.
async fn gets_name(talk: &Talk<'_>, name: &SandboxName) -> bool {
    let options = json!({"name": name.as_str()});
    let words = format!("sandbox name {name}");
    let id = wants(talk, "sandbox-name", &options, &words).await;
    let said = told(talk, &id).await;
    let got = said.contains(&format!("is now called {name}"));
    assert!(got || said.contains(&words::name_taken(name)), "{said}");
    got
}

/// Two threads request one name at the same time and one gets it; three use its sandbox, which has no repository, one
/// after the other; it is deleted for all of them.
pub async fn in_turns(world: World, platform: Platform) {
    let (first, turn) = world.begin(platform, "echo: the first thread").await;
    assert_eq!(first.ended(&turn).await.outcome, Outcome::Answered);
    let (second, turn) = world.begin(platform, "echo: the second thread").await;
    assert_eq!(second.ended(&turn).await.outcome, Outcome::Answered);
    let name = format!("team-{}", first.thread.key.short_hash());
    let name: SandboxName = name.parse().unwrap();
    let got = tokio::join!(gets_name(&first, &name), gets_name(&second, &name));
    let (mut owner, mut second) = match got {
        (true, false) => (first, second),
        (false, true) => (second, first),
        both => panic!("not one of them got the name: {both:?}"),
    };
    // A sandbox can be called something else, and what it was called is free again.
    let other: SandboxName = format!("{name}-too").parse().unwrap();
    for renamed in [&other, &name] {
        assert!(gets_name(&owner, renamed).await, "{renamed}");
    }
    let (mut third, turn) = world.begin(platform, "echo: the third thread").await;
    assert_eq!(third.ended(&turn).await.outcome, Outcome::Answered);
    for talk in [&second, &third] {
        let options = json!({"name": name.as_str()});
        let words = format!("sandbox connect {name}");
        let id = wants(talk, "sandbox-connect", &options, &words).await;
        let told = told(talk, &id).await;
        assert!(told.contains(&words::connected(&name, true)), "{told}");
    }

    let slow = owner.say("slow: 12 one two three four").await;
    owner.running(&slow).await;
    let writes = ["second", "third"].map(|who| format!("run: echo {who} >> turns.txt"));
    let turns = [second.say(&writes[0]).await, third.say(&writes[1]).await];
    for talk in [&second, &third] {
        let waits = |one: &ChatMessage| one.text.contains("another thread");
        talk.see(ANSWER_MS_MAX, "who waits sees for whom", waits).await;
    }
    assert_eq!(owner.ended(&slow).await.outcome, Outcome::Answered);
    for (talk, turn) in [(&second, &turns[0]), (&third, &turns[1])] {
        assert_eq!(talk.ended(turn).await.outcome, Outcome::Answered);
    }
    let read = owner.say("run: sort turns.txt").await;
    assert_eq!(owner.ended(&read).await.outcome, Outcome::Answered);
    let answer = owner.answer(&read).await;
    assert!(answer.contains("second\nthird"), "{answer}");

    wants(&owner, "sandbox-destroy", &json!({}), "sandbox destroy").await;
    let asked = whispered(&owner, "3 threads work in it").await;
    owner.press(&asked, "Destroy").await;
    for talk in [&owner, &second, &third] {
        let told = |one: &ChatMessage| one.text.contains("have been deleted by");
        talk.see(ANSWER_MS_MAX, "each thread is told", told).await;
    }
}

async fn shared(platform: Platform) {
    let stack = Stack::start(&Options::lean(quick()));
    let world = World::of(&stack);
    let first = named(&world, platform).await;
    let mut second = connected(&world, platform).await;
    assert_eq!(second.session().await.sandbox_key(), first.thread.key.sandbox());

    let turn = second.say("run: cat note.txt").await;
    assert_eq!(second.ended(&turn).await.outcome, Outcome::Answered);
    let answer = second.answer(&turn).await;
    assert!(answer.contains("from the first thread"), "{answer}");
    let status = second.status().await;
    assert!(status.contains("frontend") && status.contains("one other thread"), "{status}");

    wants(&second, "sandbox-list", &json!({}), "sandbox list").await;
    let list = whispered(&second, "One sandbox has a name here.").await;
    for words in ["frontend", "running", "2 threads"] {
        assert!(list.text.contains(words), "{words}: {}", list.text);
    }
    second.press(&list, "Stop").await;
    whispered(&second, "Stopping frontend was requested.").await;
    eventually(ANSWER_MS_MAX, "the list says that it is stopped", async || {
        wants(&second, "sandbox-list", &json!({}), "sandbox list").await;
        let seen = second.whispers().await?;
        let stopped = seen.iter().any(|one| one.text.contains("· stopped ·"));
        stopped.then_some(()).ok_or_else(|| "it is not stopped".to_owned())
    })
    .await;

    let (third, turn) = world.begin(platform, "echo: the third thread").await;
    assert_eq!(third.ended(&turn).await.outcome, Outcome::Answered);
    let id =
        wants(&third, "sandbox-name", &json!({"name": "frontend"}), "sandbox name frontend").await;
    let taken = words::name_taken(&frontend());
    let told = told(&third, &id).await;
    assert!(told.contains(&taken), "{told}");
    let options = json!({"name": "backend"});
    wants(&third, "sandbox-connect", &options, "sandbox connect backend").await;
    whispered(&third, "There is no sandbox named backend here.").await;
    stack.end().unwrap();
}

async fn destroyed(platform: Platform) {
    let stack = Stack::start(&Options::lean(quick()));
    let world = World::of(&stack);
    let first = named(&world, platform).await;
    let mut second = connected(&world, platform).await;
    let slow = second.say("slow: 25 one two three four five six").await;
    second.running(&slow).await;

    wants(&first, "sandbox-destroy", &json!({}), "sandbox destroy").await;
    let asked = whispered(&first, "Destroy").await;
    assert!(asked.text.contains("The task that runs in it will be stopped"), "{}", asked.text);
    assert!(asked.text.contains("2 threads work in it"), "{}", asked.text);
    first.press(&asked, "Destroy").await;
    whispered(&first, "Destroying frontend was requested.").await;

    let ended = second.ended(&slow).await;
    assert!(matches!(ended.outcome, Outcome::Cancelled { .. }), "{ended:?}");
    for talk in [&first, &second] {
        let told = |one: &ChatMessage| one.text.contains("have been deleted by");
        talk.see(ANSWER_MS_MAX, "each thread is told", told).await;
    }
    eventually(ANSWER_MS_MAX, "the sandbox is gone", async || {
        let left = world.provider.of(&first.thread.key).await?;
        let live = left.iter().filter(|one| one.live()).count();
        (live == 0).then_some(()).ok_or_else(|| format!("{live} are left"))
    })
    .await;
    if platform == Platform::Discord {
        eventually(VISIBLE_MS_MAX, "the threads are archived", async || {
            let active = world.discord.active_threads().await?;
            let open = [&first, &second].map(|talk| active.contains(&talk.thread.channel));
            (open == [false, false]).then_some(()).ok_or_else(|| format!("{open:?}"))
        })
        .await;
        // No command reaches an archived thread; a message wakes it.
        let act = json!({"type": "message", "channel_id": second.thread.channel, "text": "again"});
        world.discord.say(&act).await.unwrap();
    }
    // Its name is free, and either thread continues in its own sandbox.
    wants(&second, "sandbox-list", &json!({}), "sandbox list").await;
    whispered(&second, "No sandbox has a name here.").await;
    let turn = second.say("echo: it goes on").await;
    assert_eq!(second.ended(&turn).await.outcome, Outcome::Answered);
    assert_eq!(second.session().await.sandbox_key(), second.thread.key.sandbox());
    stack.end().unwrap();
}
