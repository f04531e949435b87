//! The agent's input and output beside words: images, files that it shows, its plan, and its changes.

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::{ChatFile, ChatMessage, Platform};
use bobbin_tests::limits::VISIBLE_MS_MAX;
use bobbin_tests::talk::{Talk, marked};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::json;

use crate::run::{CHAT, COMMON, on};
use crate::scenarios::Scenario;

/// How OpenCode itself treats files.
const OF_AGENT: [Scenario; 3] = [
    ("card_shows_changes_on_demand", |world, on| Box::pin(changed(world, on))),
    ("odd_filename_makes_changes_unknown", |world, on| Box::pin(odd_name(world, on))),
    ("whole_images_reach_the_model", |world, on| Box::pin(images(world, on))),
];
/// How chats show them.
const OF_CHAT: [Scenario; 2] = [
    ("display_files_are_posted_once", |world, on| Box::pin(shown(world, on))),
    ("card_shows_the_plan", |world, on| Box::pin(planned(world, on))),
];

/// An image of one pixel, as hex.
const PNG: &str = "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da6364f8cf500f00038601805a347d6b0000000049454e44ae426082";

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for platform in Platform::ALL {
        let of_agent = OF_AGENT.map(|scenario| (&COMMON, scenario));
        let of_chat = OF_CHAT.map(|scenario| (&CHAT, scenario));
        for (stack, (name, scenario)) in of_agent.into_iter().chain(of_chat) {
            let name = format!("artifacts::{}::{name}", platform.word());
            trials.push(on(stack, &name, async move |world| scenario(world, platform).await));
        }
    }
    trials
}

/// Names of all files that the bot posted in the thread, oldest first.
pub async fn names(talk: &Talk<'_>) -> Vec<String> {
    let seen = talk.messages().await.unwrap();
    let ours = seen.into_iter().filter(|one| one.by_bot);
    ours.flat_map(|one| one.files).map(|file| file.name).collect()
}

async fn text_of(talk: &Talk<'_>, file: &ChatFile) -> String {
    let read = match talk.platform {
        Platform::Discord => talk.world.discord.file(file).await,
        Platform::Slack => talk.world.slack.file(file).await,
    };
    read.unwrap_or_else(|why| panic!("{file:?}: {why}"))
}

async fn shown(world: World, platform: Platform) {
    let lines = "run: mkdir -p output/display/sub && printf first > output/display/a.txt && sleep 1.1 && \
                 printf second > output/display/sub/b.txt && ln -s a.txt output/display/link.txt && \
                 : > output/display/empty.txt && seq 1 1700000 > output/display/big.bin\n\
                 write: kept.txt not shown";
    let (mut talk, first) = world.begin(platform, lines).await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    assert_eq!(names(&talk).await, ["a.txt", "sub_b.txt"]);
    let seen = talk.messages().await.unwrap();
    let files: Vec<&ChatFile> = seen.iter().flat_map(|one| &one.files).collect();
    assert_eq!(text_of(&talk, files[0]).await, "first");
    assert_eq!(text_of(&talk, files[1]).await, "second");
    let told = talk
        .see(VISIBLE_MS_MAX, "the files that are not shown are named", |one| {
            one.text.contains("are not shown here")
        })
        .await;
    for line in ["empty.txt` is empty", "big.bin` is larger than 10 MiB"] {
        assert!(told.text.contains(line), "{}", told.text);
    }
    assert!(!told.text.contains("link.txt"), "{}", told.text);
    // They are not changes of the project.
    let card = talk.card(&first).await;
    assert!(card.text.contains("1 file changed, +1 -0"), "{}", card.text);

    let second = talk
        .say("run: printf changed > output/display/a.txt && printf third > output/display/c.txt")
        .await;
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    let mut now = names(&talk).await;
    now[2..].sort();
    assert_eq!(now, ["a.txt", "sub_b.txt", "a.txt", "c.txt"]);
    let third = talk.say("echo: nothing new").await;
    assert_eq!(talk.ended(&third).await.outcome, Outcome::Answered);
    assert_eq!(names(&talk).await.len(), 4, "shown again");
    talk.finish().await;
}

pub async fn changed(world: World, platform: Platform) {
    let (mut talk, first) =
        world.begin(platform, "write: src/a.txt one\\ntwo\nwrite: b.txt three").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let card = talk.card(&first).await;
    assert!(card.text.contains("2 files changed, +3 -0"), "{}", card.text);
    talk.press(&card, "View diff").await;
    let told = whispered(&talk, "+++ b/src/a.txt").await;
    for line in ["2 files changed, +3 -0", "+++ b/b.txt", "+one", "+two"] {
        assert!(told.text.contains(line), "{line}: {}", told.text);
    }

    // A long one becomes a file, which stays the same after its sandbox is gone.
    let second = talk
        .say("run: seq 1 3000 > long.txt; rm b.txt; git add -A; git -c user.name=a -c user.email=a@b commit -qm x")
        .await;
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    let card = talk.card(&second).await;
    assert!(
        card.text.contains("2 files changed, +3,000 -1")
            || card.text.contains("2 files changed, +3000 -1"),
        "{}",
        card.text
    );
    world.provider.lose(&talk.sandbox().await).await.unwrap_or_else(|why| panic!("{why}"));
    talk.press(&card, "View diff").await;
    let holds = |one: &ChatMessage| {
        one.files.iter().any(|file| file.name.contains("changed") || file.name == "changes.diff")
    };
    let with_file = match platform {
        Platform::Discord => {
            eventually(VISIBLE_MS_MAX, "the diff comes as a file", async || {
                let seen = talk.whispers().await?;
                let found = seen.into_iter().find(holds);
                found.ok_or_else(|| "no file".to_owned())
            })
            .await
        }
        Platform::Slack => talk.see(VISIBLE_MS_MAX, "the diff comes as a file", holds).await,
    };
    assert!(with_file.text.contains("2 files changed"), "{}", with_file.text);
    let patch = text_of(&talk, &with_file.files[0]).await;
    for line in [
        "diff --git a/b.txt b/b.txt\ndeleted file mode 100644\n--- a/b.txt\n+++ /dev/null\n",
        "diff --git a/long.txt b/long.txt\nnew file mode 100644\n--- /dev/null\n+++ b/long.txt\n",
        "+2999\n+3000\n",
    ] {
        assert!(patch.contains(line), "{line} in {patch:.600}");
    }
    assert!(applies(&patch, "three"), "git does not take it: {patch:.600}");
    if platform == Platform::Slack {
        // Everybody sees that file, so a second click posts no second one.
        let before = names(&talk).await;
        talk.press(&card, "View diff").await;
        whispered(&talk, "already").await;
        assert_eq!(names(&talk).await, before);
    }
}

/// Whether git applies a patch to a folder that contains only `b.txt`.
fn applies(patch: &str, b: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("b.txt"), b).unwrap();
    let file = folder.path().join("changes.diff");
    std::fs::write(&file, patch).unwrap();
    let git = std::process::Command::new("git")
        .args(["apply", "changes.diff"])
        .current_dir(folder.path())
        .env("GIT_CEILING_DIRECTORIES", folder.path())
        .status();
    git.is_ok_and(|status| status.success())
        && !folder.path().join("b.txt").exists()
        && folder.path().join("long.txt").exists()
}

/// OpenCode reports no changes if one name is not UTF-8.
async fn odd_name(world: World, platform: Platform) {
    let lines = r#"run: echo x >> README.md; printf n > "$(printf 'bad\377n.txt')""#;
    let (talk, first) = world.begin(platform, lines).await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let card = talk.card(&first).await;
    assert!(card.text.contains("changed files unknown"), "{}", card.text);
    // Slack has only the button.
    if platform == Platform::Discord {
        let told = talk.told("diff").await;
        assert!(
            told.contains("Bobbin could not find out what the last task changed in the files."),
            "{told}"
        );
    }
    talk.finish().await;
}

/// What only the person sees, with these words in it.
async fn whispered(talk: &Talk<'_>, words: &str) -> ChatMessage {
    eventually(VISIBLE_MS_MAX, "the person is told", async || {
        let seen = talk.whispers().await?;
        let found = seen.iter().rev().find(|one| one.text.contains(words));
        found.cloned().ok_or_else(|| format!("{words} is not in {seen:?}"))
    })
    .await
}

pub async fn images(world: World, platform: Platform) {
    let png = hex::decode(PNG).unwrap();
    let whole = [("dot.png", "image/png", &png[..])];
    // One image that cannot be decoded takes the others with it; the text is still sent.
    let broken =
        [whole[0], ("notes.txt", "text/plain", b"a note"), ("broken.png", "image/png", &png[..40])];
    // Discord allows one file in a command.
    let files = match platform {
        Platform::Discord => &whole[..],
        Platform::Slack => &broken,
    };
    let text = "look\nrun: cat .bobbin/attachments/*/notes.txt";
    let (talk, turn) = begin_with_files(&world, platform, &[], text, files).await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let answer = talk.answer(&turn).await;
    match platform {
        Platform::Discord => assert!(answer.contains("I see 1 image: image/png."), "{answer}"),
        Platform::Slack => {
            assert!(answer.contains("I see no images."), "{answer}");
            assert!(answer.contains("a note"), "{answer}");
        }
    }
    let calls = world.model_calls().await.unwrap();
    let mark = talk.accepted[0].mark.as_ref().unwrap();
    let call = calls.iter().find(|call| call.user.contains(mark)).unwrap();
    assert!(call.user.contains("dot.png"), "{}", call.user);
    if platform == Platform::Slack {
        assert!(call.user.contains("could not be shown to you directly"), "{}", call.user);
    }
    talk.finish().await;
}

/// The same with a chosen agent: its model sees the image.
pub async fn image_with(world: &World, platform: Platform, agent: &str) {
    let png = hex::decode(PNG).unwrap();
    let files = [("dot.png", "image/png", &png[..])];
    let (talk, turn) = begin_with_files(world, platform, &[("agent", agent)], "look", &files).await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let answer = talk.answer(&turn).await;
    assert!(answer.contains("I see 1 image: image/png."), "{answer}");
    talk.finish().await;
}

/// Begins a thread with files: names, media types, bytes. Discord allows one file in a command.
pub async fn begin_with_files<'w>(
    world: &'w World,
    platform: Platform,
    choices: &[(&str, &str)],
    lines: &str,
    files: &[(&str, &str, &[u8])],
) -> (Talk<'w>, String) {
    let (text, mark) = marked(lines);
    let turn = match platform {
        Platform::Discord => {
            let (name, media_type, bytes) = files[0];
            let discord = &world.discord;
            let id = discord.upload(name, media_type, bytes).await.unwrap();
            let mut options = json!({"prompt": text, "file": id});
            for (name, value) in choices {
                options[*name] = json!(value);
            }
            let act = json!({"type": "command", "name": "sandbox", "options": options});
            discord.act(&act).await.unwrap().interaction
        }
        Platform::Slack => {
            let slack = &world.slack;
            let mut uploads = Vec::new();
            for (name, media_type, bytes) in files {
                uploads.push(slack.upload(name, media_type, bytes).await.unwrap());
            }
            let bot = &world.ready.slack_bot_user_id;
            let chosen = choices.iter().map(|(name, value)| format!("{name}:{value} "));
            let chosen: String = chosen.collect();
            let text = format!("<@{bot}> {chosen}{text}");
            let act = json!({"type": "message", "text": text, "uploads": uploads});
            let done = slack.act(&act).await.unwrap();
            let (channel, ts) = (done["channel"].as_str().unwrap(), done["ts"].as_str().unwrap());
            slack.turn(channel, ts)
        }
    };
    (world.found(platform, &turn, &mark).await, turn)
}

async fn planned(world: World, platform: Platform) {
    let (talk, turn) = world
        .begin(
            platform,
            "plan: [x] read it | [>] fix it | test it\nslow: 12 one two three four five six",
        )
        .await;
    let card = talk
        .see(VISIBLE_MS_MAX * 2, "the plan is on the card", |one| {
            one.by_bot && one.text.contains("read it")
        })
        .await;
    for line in ["☑ read it", "▶ ", "☐ test it", "Planned the work"] {
        assert!(card.text.contains(line), "{line}: {}", card.text);
    }
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let card = talk.card(&turn).await;
    assert!(card.text.contains("☐ test it"), "{}", card.text);
    talk.finish().await;
}
