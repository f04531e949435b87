//! The same conversations, whichever way agents are run in the sandboxes, and a stack that changes its way.

use std::sync::Arc;

use bobbin_core::outcome::Outcome;
use bobbin_tests::chat::Platform;
use bobbin_tests::shared::Shared;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::json;

use crate::run::{brisk, on, trial};
use crate::scenarios::{ASKED, IDLE, USUAL};

/// The daemon stands in front of OpenCode, and what is idle is paused soon.
pub static COMPAT: Shared = Shared::in_mode(brisk, "compat");

/// What is not about agents, and is so often enough.
const ELSEWHERE: &str = "a_name_is_won_once";

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for platform in Platform::ALL {
        let all = USUAL.into_iter().chain(ASKED).chain(IDLE);
        for (name, scenario) in all.filter(|(name, _)| !name.starts_with(ELSEWHERE)) {
            let name = format!("embedded::compat::{}::{name}", platform.word());
            trials.push(on(&COMPAT, &name, async move |world| {
                scenario(world, platform).await
            }));
        }
    }
    trials.push(trial(
        "embedded::compat::a_thread_goes_on_in_its_session_when_the_stack_changes_its_mode_and_changes_it_back",
        changed,
    ));
    trials
}

fn in_mode(mode: &str) -> Options {
    Options {
        parameters: json!({"SandboxRuntimeMode": mode}),
        ..Options::limits(quick())
    }
}

async fn changed() {
    let stack = Stack::start(&in_mode("opencode"));
    let folder = Arc::clone(stack.folder());
    let world = World::of(&stack);
    let (talk, first) = world
        .begin(Platform::Discord, "write: keep.txt said before")
        .await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let before = talk.session().await;
    stack.end().unwrap();
    for mode in ["compat", "opencode"] {
        let stack = Stack::start_in(&folder, &in_mode(mode));
        let world = World::of(&stack);
        let mut after = talk.again(&world);
        let turn = after.say("run: cat keep.txt").await;
        assert_eq!(
            after.ended(&turn).await.outcome,
            Outcome::Answered,
            "{mode}"
        );
        let answer = after.answer(&turn).await;
        assert!(answer.contains("said before"), "{mode}: {answer}");
        let session = after.session().await;
        assert_eq!(session.agent_session, before.agent_session, "{mode}");
        assert_eq!(session.briefed, before.briefed, "{mode}");
        assert_eq!(session.sandbox.generation, 1, "{mode}");
        // It is OpenCode's own session that the model is asked in.
        let mark = after.accepted.last().and_then(|one| one.mark.clone());
        let mark = mark.expect("a prompt bears its mark");
        let calls = world.model_calls().await.unwrap();
        let ours = calls
            .iter()
            .find(|call| call.user.contains(&mark) && !call.internal());
        let own = before.agent_session.as_ref().map(ToString::to_string);
        assert_eq!(ours.and_then(|call| call.session_id.clone()), own, "{mode}");
        stack.end().unwrap();
    }
}
