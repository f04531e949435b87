//! Sandboxes with names from a terminal, on the laptop stack: one is created, used by several threads, listed, kept as
//! a snapshot that another one begins with, and destroyed.

use bobbin_core::protocol::decide::words::destroyed_by;
use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::VISIBLE_MS_MAX;
use bobbin_tests::operator::{Ran, operate};
use bobbin_tests::talk::marked;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::run::{CHAT, on};

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for platform in Platform::ALL {
        let name = |what: &str| format!("named::{}::{what}", platform.word());
        trials.push(on(&CHAT, &name("terminal_manages_whole_sandbox_life"), async move |world| {
            lived(world, platform).await
        }));
        trials.push(on(
            &CHAT,
            &name("unknown_sandbox_is_refused_before_posting"),
            async move |world| missing(world, platform).await,
        ));
    }
    trials
}

fn channel(world: &World, platform: Platform) -> String {
    match platform {
        Platform::Discord => world.ready.discord_channel_id.clone(),
        Platform::Slack => world.ready.slack_channel_id.clone(),
    }
}

/// A name that no other test uses.
fn a_name(platform: Platform) -> String {
    let (_, mark) = marked("");
    let digits: String = mark.chars().filter(char::is_ascii_digit).collect();
    format!("box-{}-{digits}", platform.word())
}

/// Gives a task in a sandbox and follows it to its answer.
async fn worked(world: &World, platform: Platform, lines: &str, more: &[&str]) -> Ran {
    let channel = channel(world, platform);
    let (text, _) = marked(lines);
    let words = ["send", "--channel", &channel, "--prompt", &text, "--follow", "--json"];
    let ran = operate(world, &[&words, more].concat()).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

/// The list's line with this name.
async fn listed(world: &World, name: &str) -> Value {
    let listed = operate(world, &["sandbox", "list", "--json"]).await.json();
    let lines = listed["sandboxes"].as_array().cloned();
    let mut lines = lines.unwrap_or_default().into_iter();
    lines.find(|line| line["called"] == name).unwrap_or_default()
}

async fn lived(world: World, platform: Platform) {
    let (name, second) = (a_name(platform), a_name(platform));
    let channel = channel(&world, platform);

    let made =
        operate(&world, &["sandbox", "create", &name, "--channel", &channel, "--json"]).await;
    assert_eq!(made.code, 0, "{made:?}");
    let key = made.json()["sandbox"].as_str().unwrap().to_owned();
    let tenant = made.json()["tenant"].as_str().unwrap().to_owned();
    assert_eq!(
        made.json(),
        json!({"sandbox": key, "name": name, "tenant": tenant, "provider": null, "runtime": null, "repo": null, "snapshot": null,
            "result": "done", "trouble": null, "phase": "active"})
    );
    let taken = operate(&world, &["sandbox", "create", &name, "--tenant", &tenant]).await;
    assert_eq!(taken.code, 1, "{taken:?}");
    assert!(
        taken.err.starts_with(&format!("There is already a sandbox named {name} in {tenant}")),
        "{}",
        taken.err
    );

    let sent =
        worked(&world, platform, "write: kept.txt one word\necho: written", &["--sandbox", &name])
            .await;
    let first = sent.json()["thread"].as_str().unwrap().to_owned();
    let line = listed(&world, &name).await;
    assert_eq!(
        (&line["belongs"], &line["phase"], &line["threads"], &line["thread"]),
        (&json!("live"), &json!("active"), &json!([first]), &json!(key)),
        "{line}"
    );
    let shown = operate(&world, &["thread", "show", &first, "--json"]).await;
    assert_eq!(shown.json()["sandbox_name"], name, "{shown:?}");
    assert_eq!(shown.json()["sandbox"], line["name"], "{shown:?}");
    let threads = operate(&world, &["thread", "list", "--all"]).await;
    assert!(threads.out.contains(&first), "{}", threads.out);
    assert!(!threads.out.contains(&key), "{}", threads.out);

    // A thread that had its own sandbox goes there and finds the same files.
    let (mut talk, turn) = world.begin(platform, "echo: in my own").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let other = talk.thread.key.to_string();
    let connected = operate(&world, &["sandbox", "connect", &other, &name]).await;
    assert_eq!(
        (connected.code, connected.out.as_str()),
        (0, format!("From now on {other} works in {name}.\n").as_str()),
        "{connected:?}"
    );
    let turn = talk.say("run: cat kept.txt").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    assert!(talk.answer(&turn).await.contains("one word"));
    assert_eq!(listed(&world, &name).await["threads"].as_array().unwrap().len(), 2);

    let kept = operate(&world, &["sandbox", "snapshot", &name, "--json"]).await;
    assert_eq!((kept.code, &kept.json()["result"]), (0, &json!("done")), "{kept:?}");
    let snapshot = kept.json()["snapshot"].as_str().unwrap().to_owned();
    let snapshots = operate(&world, &["sandbox", "snapshot", &name, "--list", "--json"]).await;
    let line = &snapshots.json()["snapshots"][0];
    assert_eq!(
        (&line["id"], &line["name"], &line["state"]),
        (&json!(snapshot), &json!(name), &json!("ready")),
        "{snapshots:?}"
    );

    let refused = operate(&world, &["sandbox", "destroy", &name]).await;
    assert_eq!(refused.code, 1, "{refused:?}");
    for told in [
        "--yes destroys it:",
        "2 threads work in it and will be notified: ",
        "Everything in it that was not pushed will be lost",
    ] {
        assert!(refused.err.contains(told), "{told}: {}", refused.err);
    }
    let destroyed = operate(&world, &["sandbox", "destroy", &name, "--yes"]).await;
    assert_eq!(
        (destroyed.code, destroyed.out.as_str()),
        (
            0,
            "It is deleted with its files, and its name is free again. The 2 threads that worked in it are notified.\n"
        ),
        "{destroyed:?}"
    );
    assert_eq!(listed(&world, &name).await, Value::Null);
    let again = operate(&world, &["sandbox", "stop", &name]).await;
    assert_eq!(again.code, 3, "{again:?}");
    eventually(VISIBLE_MS_MAX, "the thread is told once", async || {
        let messages = talk.messages().await?;
        let told = messages.iter().filter(|one| one.text.contains(&destroyed_by("")));
        match told.count() {
            1 => Ok(()),
            n => Err(format!("{n} times")),
        }
    })
    .await;

    // The kept files are there in another one.
    let words = ["sandbox", "create", &second, "--channel", &channel, "--snapshot", &snapshot];
    let made = operate(&world, &words).await;
    assert_eq!(made.code, 0, "{made:?}");
    let read = worked(&world, platform, "run: cat kept.txt", &["--sandbox", &second]).await;
    let answer = read.json()["turn"]["answer"].to_string();
    assert!(answer.contains("one word"), "{read:?}");
    let words = ["sandbox", "destroy", &second, "--yes", "--snapshot", "--json"];
    let destroyed = operate(&world, &words).await;
    assert_eq!(
        (destroyed.code, &destroyed.json()["want"]),
        (0, &json!("destroy")),
        "{destroyed:?}"
    );
    let last = destroyed.json()["snapshot"].as_str().unwrap().to_owned();
    assert_ne!(last, snapshot);
    let deleted = operate(&world, &["sandbox", "snapshot", "--delete", &last]).await;
    assert_eq!(deleted.code, 0, "it was kept: {deleted:?}");
    let deleted = operate(&world, &["sandbox", "snapshot", "--delete", &snapshot]).await;
    assert_eq!(deleted.code, 0, "{deleted:?}");
    let gone = operate(
        &world,
        &["sandbox", "create", &second, "--tenant", &tenant, "--snapshot", &snapshot],
    )
    .await;
    assert_eq!(gone.code, 3, "{gone:?}");
    assert!(gone.err.contains("it has expired or was deleted. Nothing was done."), "{}", gone.err);
    let gone = operate(&world, &["sandbox", "snapshot", "--delete", &snapshot]).await;
    assert_eq!(gone.code, 3, "{gone:?}");
}

async fn missing(world: World, platform: Platform) {
    let channel = channel(&world, platform);
    let name = a_name(platform);
    let (text, mark) = marked("echo: never");
    let words = ["send", "--channel", &channel, "--prompt", &text, "--sandbox", &name];
    let refused = operate(&world, &words).await;
    assert_eq!((refused.code, refused.out.as_str()), (3, ""), "{refused:?}");
    assert!(
        refused.err.contains(&format!("There is no sandbox named {name} in "))
            && refused.err.contains(
                "Nothing was sent. Add --sandbox-provider to create it (daytona, vercel),"
            ),
        "{}",
        refused.err
    );
    let id = refused.err.lines().next().unwrap_or_default();
    let threads = operate(&world, &["thread", "list", "--gone", "--all", "--json"]).await;
    assert!(!threads.out.contains(id) && !threads.out.contains(&mark), "{}", threads.out);

    // With a provider it is created.
    let more = ["--sandbox", &name, "--sandbox-provider", "daytona"];
    let sent = worked(&world, platform, "echo: made", &more).await;
    let line = listed(&world, &name).await;
    assert_eq!(line["threads"], json!([sent.json()["thread"]]), "{line}");
    assert_eq!(line["provider"], "daytona", "{line}");
    let destroyed = operate(&world, &["sandbox", "destroy", &name, "--yes"]).await;
    assert_eq!(destroyed.code, 0, "{destroyed:?}");
}
