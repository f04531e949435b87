//! Tasks from a terminal on the laptop stack: the real program sends one in a channel, follows it, and reports its end;
//! then the promises hold, as after everything that people do.

use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::sandbox::Phase;

use bobbin_tests::chat::Platform;
use bobbin_tests::operator::{Ran, begun, in_terminal, operate};
use bobbin_tests::talk::marked;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::run::{CHAT, on};

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for platform in Platform::ALL {
        let name = platform.word();
        trials.push(on(
            &CHAT,
            &format!("send::{name}::sent_task_is_followed_in_terminal"),
            async move |world| answered(world, platform).await,
        ));
        trials.push(on(
            &CHAT,
            &format!("send::{name}::exit_code_reflects_the_outcome"),
            async move |world| otherwise(world, platform).await,
        ));
        trials.push(on(
            &CHAT,
            &format!("send::{name}::ctrl_c_ends_only_following"),
            async move |world| interrupted(world, platform).await,
        ));
        trials.push(on(
            &CHAT,
            &format!("send::{name}::unreachable_channel_is_explained"),
            async move |world| unseen(world, platform).await,
        ));
    }
    trials.push(on(&CHAT, "send::terminal_output_fits_lines_and_colours", in_a_terminal));
    trials
}

fn channel(world: &World, platform: Platform) -> String {
    match platform {
        Platform::Discord => world.ready.discord_channel_id.clone(),
        Platform::Slack => world.ready.slack_channel_id.clone(),
    }
}

/// The task's id, with which the program's first line begins.
fn id_of(said: &str) -> &str {
    said.split(' ').next().unwrap_or_default()
}

async fn send(world: &World, platform: Platform, text: &str, more: &[&str]) -> Ran {
    let channel = channel(world, platform);
    let words = ["send", "--channel", &channel, "--prompt", text, "--name", "田中"];
    operate(world, &[&words, more].concat()).await
}

async fn answered(world: World, platform: Platform) {
    let (text, mark) = marked("slow: 3 one two three four\necho: the last words");
    let ran = send(&world, platform, &text, &["--follow"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.out.starts_with("one two three four") && ran.out.ends_with("the last words\n"),
        "{ran:?}"
    );
    for told in ["getting its sandbox", "active · running", "Answered after"] {
        assert!(ran.err.contains(told), "{told}: {}", ran.err);
    }
    assert!(!ran.err.contains('\u{1b}'), "no terminal, no colours: {}", ran.err);

    let id = id_of(&ran.err).to_owned();
    let talk = world.found(platform, &id, &mark).await;
    let thread = talk.thread.key.to_string();
    assert!(ran.err.contains(&thread), "{}", ran.err);
    assert!(talk.answer(&id).await.contains("the last words"));
    let line = match platform {
        Platform::Discord => world.discord.line(&talk.thread.channel).await.unwrap(),
        Platform::Slack => world.slack.page(&talk.thread).await.unwrap(),
    };
    assert!(
        line.replace('\\', "").contains("田中 (terminal)")
            && line.contains(&format!("Sent from a terminal as {id}")),
        "{line}"
    );

    // A sender who does not know whether it arrived sends it again: nothing happens twice.
    let again = send(&world, platform, &text, &["--id", &id, "--json"]).await;
    assert_eq!(
        (again.code, again.json()),
        (0, json!({"id": id, "thread": thread, "link": again.json()["link"], "turn": null})),
        "{again:?}"
    );
    let follow = ["thread", "follow", &thread, "--turn", &id, "--json"];
    let followed = operate(&world, &follow).await;
    let turn = followed.json()["turn"].clone();
    assert_eq!((followed.code, &turn["outcome"]), (0, &json!("answered")), "{followed:?}");
    assert!(turn["answer"].as_str().unwrap().contains("the last words"), "{turn}");
    let session = talk.session().await;
    assert_eq!((session.ended.len(), session.turn), (1, None));
    let asked = world.discord.active_threads().await.unwrap();
    if platform == Platform::Discord {
        let same = asked.iter().filter(|one| **one == talk.thread.channel);
        assert_eq!(same.count(), 1);
    }
    talk.finish().await;
}

async fn otherwise(world: World, platform: Platform) {
    let (text, mark) = marked("echo: never");
    let failed =
        send(&world, platform, &text, &["--model", "nobody/none", "--follow", "--json"]).await;
    let turn = failed.json()["turn"].clone();
    assert_eq!((failed.code, &turn["outcome"]), (4, &json!("failed")), "{failed:?}");
    let why = turn["why"].as_str().unwrap_or_default();
    assert!(why.contains("nobody"), "{turn}");
    assert!(failed.err.contains(why), "{}", failed.err);
    world.found(platform, id_of(&failed.err), &mark).await.finish().await;

    let (text, mark) = marked("run: sleep 100");
    let sent = send(&world, platform, &text, &[]).await;
    assert_eq!(sent.code, 0, "{sent:?}");
    let id = id_of(&sent.err).to_owned();
    let talk = world.found(platform, &id, &mark).await;
    let thread = talk.thread.key.to_string();
    assert!(
        sent.out.starts_with(&format!("Sent: {thread}"))
            && sent.out.contains(&format!(" thread follow {thread} --turn {id}\n")),
        "{sent:?}"
    );
    talk.running(&id).await;
    let late = operate(&world, &["thread", "follow", &thread, "--for", "1s"]).await;
    assert_eq!(late.code, 7, "{late:?}");
    assert!(late.err.contains("The turn is still running after 1 s"), "{}", late.err);
    let stopped = operate(&world, &["sandbox", "stop", &thread, "--even-if-busy"]).await;
    assert_eq!(stopped.code, 0, "{stopped:?}");
    let ended = operate(&world, &["thread", "follow", &thread, "--json"]).await;
    let turn = ended.json()["turn"].clone();
    assert_eq!(
        (ended.code, &turn["outcome"], &turn["why"]),
        (5, &json!("cancelled"), &json!("the operator")),
        "{ended:?}"
    );
    assert_eq!(talk.session().await.sandbox.phase, Phase::Paused);
    talk.finish().await;
}

async fn interrupted(world: World, platform: Platform) {
    let (text, mark) = marked("slow: 1 before\nrun: sleep 6\necho: and after");
    let channel = channel(&world, platform);
    let words = ["send", "--channel", &channel, "--prompt", &text, "--follow"];
    let mut running = begun(&world, &words);
    let line = running.first_line_of_err().await;
    let id = id_of(&line);
    let talk = world.found(platform, id, &mark).await;
    // The words appear before their turn is over.
    running.says("before").await;
    assert!(!talk.has_ended(id).await);
    running.interrupt();
    let ran = running.ended().await;
    let thread = talk.thread.key.to_string();
    assert_eq!(ran.code, 130, "{ran:?}");
    let how = format!(" thread follow {thread} --turn {id}");
    assert!(
        ran.err.contains("The turn continues. Follow it again with: bobbin --laptop")
            && ran.err.contains(&how),
        "{}",
        ran.err
    );
    let followed = operate(&world, &["thread", "follow", &thread]).await;
    assert_eq!(followed.code, 0, "{followed:?}");
    assert!(
        followed.out.contains("before") && followed.out.ends_with("and after\n"),
        "{followed:?}"
    );
    assert_eq!(talk.ended(id).await.outcome, Outcome::Answered);
    talk.finish().await;
}

/// Moves to the beginning of the line and clears it.
const EMPTY_LINE: &str = "\r\u{1b}[2K";

async fn in_a_terminal(world: World) {
    let (text, mark) = marked("echo: a word\nslow: 3 two more words");
    let channel = channel(&world, Platform::Discord);
    let words = ["send", "--channel", &channel, "--prompt", &text, "--follow"];
    let (code, shown) = in_terminal(&world, &words, 60, &[]).await;
    assert_eq!(code, 0, "{shown}");
    let drawn = shown.matches(EMPTY_LINE).count();
    assert!(drawn > 3, "{drawn}: {shown:?}");
    let faint = "0:00  waiting for a worker\u{1b}[0m";
    assert!(shown.contains(&format!("{EMPTY_LINE}\u{1b}[2m{faint}")), "{shown:?}");
    // What remains after every line was redrawn: the words, and how it ended.
    let left: Vec<&str> = shown
        .lines()
        .map(|line| line.rsplit(EMPTY_LINE).next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
        .collect();
    let (first, last) = (left[0], left[left.len() - 1]);
    assert!(first.starts_with("send-") && last.starts_with("Answered after "), "{left:?}");
    // A poll between two words draws the line of progress between them.
    assert!(left[1..left.len() - 1].join(" ").contains("two more words"), "{left:?}");
    let talk = world.found(Platform::Discord, id_of(first), &mark).await;

    for (columns, environment, coloured) in [
        (50, [].as_slice(), true),
        (50, &[("NO_COLOR", "1")], false),
        (50, &[("TERM", "dumb")], false),
        (200, &[("NO_COLOR", "")], true),
    ] {
        let words = ["thread", "list", "--all"];
        let (code, shown) = in_terminal(&world, &words, columns, environment).await;
        assert_eq!(code, 0, "{shown}");
        assert_eq!(
            shown.contains("\u{1b}[1mTHREAD\u{1b}[0m"),
            coloured,
            "{environment:?}: {shown:?}"
        );
        assert_eq!(shown.contains('\u{1b}'), coloured, "{environment:?}: {shown:?}");
        let mut plain = shown;
        for code in ["0", "1", "2", "31", "32", "33"] {
            plain = plain.replace(&format!("\u{1b}[{code}m"), "");
        }
        let widest = plain.lines().map(|line| line.trim_end().chars().count()).max();
        // Six columns of at least eight, and the gaps between them.
        assert!(widest <= Some(usize::from(columns).max(58)), "{columns}: {plain}");
        let key = talk.thread.key.to_string();
        assert_eq!(plain.contains(&key), columns == 200, "{plain}");
    }
    talk.finish().await;
}

async fn unseen(world: World, platform: Platform) {
    let (nowhere, says) = match platform {
        Platform::Discord => (
            "199999999999999999",
            "Discord knows no channel 199999999999999999: with Developer Mode on, its id is in its menu as Copy Channel ID. Nothing was sent.",
        ),
        Platform::Slack => (
            "C0NOWHERE00",
            "The bot cannot see the channel C0NOWHERE00 (channel_not_found): say /invite @Bobbin in it, then repeat the command with --id send-",
        ),
    };
    let ran = operate(&world, &["send", "--channel", nowhere, "--prompt", "echo: x"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{ran:?}");
    let told = ran.err.split_once('\n').map_or("", |(_, told)| told);
    assert!(told.starts_with(says), "{}", ran.err);
    let empty = operate(&world, &["send", "--channel", nowhere, "--prompt", " "]).await;
    assert_eq!(empty.code, 1);
    assert_eq!(empty.err, "The prompt is empty: say what to do.\n");
    let after = threads(&world).await;
    let id = id_of(&ran.err);
    assert!(!after.iter().any(|line| line.to_string().contains(id)), "{after:?}");
}

async fn threads(world: &World) -> Vec<Value> {
    let listed = operate(world, &["thread", "list", "--gone", "--all", "--json"]).await;
    listed.json()["threads"].as_array().cloned().unwrap_or_default()
}
