//! Features of the daemon's sessions that no other test tries in a thread: a prompt sent into a run, changes, images,
//! Amp.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::{ChatMessage, Platform};
use bobbin_tests::limits::{ANSWER_MS_MAX, CANCEL_MS_MAX};
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::Talk;
use bobbin_tests::world::World;
use futures::future::join_all;
use libtest_mimic::Trial;
use serde_json::json;

use crate::artifacts;
use crate::run::trial;
use crate::scenarios::Scenario;

/// Scenarios in a thread of both chats.
pub const ALL: [Scenario; 3] = [
    ("steered_prompt_joins_native_run", |world, on| Box::pin(sent_into(world, on))),
    ("card_shows_changes_on_demand", |world, on| Box::pin(artifacts::changed(world, on))),
    ("whole_images_reach_the_model", |world, on| Box::pin(artifacts::images(world, on))),
];

pub fn trials() -> Vec<Trial> {
    vec![trial("embedded::native::amp_works_in_a_thread", amp)]
}

async fn sent_into(world: World, platform: Platform) {
    let (mut talk, first) =
        world.begin(platform, "write: first.txt one\nslow: 8 the first one is done").await;
    talk.running(&first).await;
    let second = talk.say("write: second.txt two\necho: the second one is done").await;
    let waits = |one: &ChatMessage| one.button("Send now").is_some();
    let card = talk.see(ANSWER_MS_MAX, "the second can be sent now", waits).await;
    talk.press(&card, "Send now").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let joined = talk.ended(&second).await.outcome;
    assert!(matches!(joined, Outcome::Joined { .. }), "{joined:?}");
    // One answer and one card for both prompts, in the order in which the agent had them.
    let answer = talk.answer(&first).await;
    let (one, two) = (answer.find("the first one is done"), answer.find("the second one is done"));
    assert!(one.is_some() && one < two, "{answer}");
    let card = talk.card(&first).await;
    assert!(card.text.contains("2 files changed, +2 -0"), "{}", card.text);
    talk.finish().await;
}

/// A stack whose sandboxes have a stand-in for Amp.
async fn amp() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let programs = folder.path().join("agent");
    std::fs::create_dir(&programs).unwrap();
    let program = programs.join("amp");
    std::fs::write(&program, include_str!("native/amp.sh")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let stack = Stack::start_in(
        &folder,
        &Options {
            parameters: json!({"SandboxRuntimeMode": "native"}),
            stand_in_agent: true,
            ..Options::limits(quick())
        },
    );
    let world = World::of(&stack);
    join_all(Platform::ALL.map(|platform| in_a_thread(&world, platform))).await;
    stack.end().unwrap();
}

async fn in_a_thread(world: &World, platform: Platform) {
    let (mut talk, first) = world.begin_with(platform, &[("agent", "amp")], "list the files").await;
    let answer = answered(&talk, &first).await;
    assert!(answer.contains("There is a.txt in T-0000"), "{answer}");
    let card = talk.card(&first).await;
    for words in ["echo one >> a.txt", "1 file changed, +1 -0"] {
        assert!(card.text.contains(words), "{words}: {}", card.text);
    }
    talk.press(&card, "View diff").await;
    talk.whispered("+++ b/a.txt").await;
    // The next prompt continues in the same Amp thread.
    let next = talk.say("once more").await;
    assert_eq!(answered(&talk, &next).await, answer);

    let fails = talk.say("you are out of credits").await;
    let failed = talk.ended(&fails).await.outcome;
    assert!(
        matches!(&failed, Outcome::Failed { reason } if reason.contains("Out of credits.")),
        "{failed:?}"
    );
    let long = talk.say("take long").await;
    talk.running(&long).await;
    talk.stop().await;
    let stopped = talk.ended_within(CANCEL_MS_MAX, &long).await.outcome;
    assert!(matches!(stopped, Outcome::Cancelled { .. }), "{stopped:?}");
    let last = talk.say("and again").await;
    assert_eq!(answered(&talk, &last).await, answer);
}

async fn answered(talk: &Talk<'_>, turn: &str) -> String {
    assert_eq!(talk.ended(turn).await.outcome, Outcome::Answered);
    talk.answer(turn).await
}
