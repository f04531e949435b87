//! The same conversations in every mode of the agents, and a stack that changes its mode.

use std::sync::Arc;

use bobbin_core::records::outcome::Outcome;
use bobbin_core::tenant::settings::{DefaultKind, SettingsChange};
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::VISIBLE_MS_MAX;
use bobbin_tests::shared::Shared;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::json;

use crate::run::{brisk, on, trial};
use crate::scenarios::{ASKED, IDLE, SLICED, Scenario, USUAL};
use crate::{asks, choice, native};

/// The daemon runs in front of OpenCode, and idle sandboxes are paused soon.
pub static COMPAT: Shared = Shared::in_mode(brisk, "compat");
/// Agents run in the daemon's own sessions.
pub static NATIVE: Shared = Shared::in_mode(brisk, "native");

/// Scenarios that are not about agents and run elsewhere often enough.
const ELSEWHERE: [&str; 2] = ["a_name_is_won_once", "two_threads_run_at_once"];
/// The asks that concern the agent: the other forms are the chats' own.
const OF_ASKS: [&str; 2] =
    ["button_answers_a_question", "permission_shows_command_and_always_scope"];

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let all = || {
        let all = USUAL.into_iter().chain(ASKED).chain(IDLE);
        all.filter(|(name, _)| !ELSEWHERE.iter().any(|one| name.starts_with(one)))
    };
    // The chats' part of a turn does not depend on the way to the same server: each chat takes its half.
    for ((name, scenario), platform) in all().zip(Platform::ALL.into_iter().cycle()) {
        let name = format!("embedded::compat::{}::{name}", platform.word());
        trials.push(on(&COMPAT, &name, async move |world| scenario(world, platform).await));
    }
    for platform in Platform::ALL {
        let asked = asks::ALL.into_iter().filter(|(name, _)| OF_ASKS.contains(name));
        let alike = all().chain(SLICED).chain(asked);
        for (name, scenario) in alike.chain([DENIED]).chain(native::ALL) {
            let name = format!("embedded::native::{}::{name}", platform.word());
            trials.push(on(&NATIVE, &name, async move |world| scenario(world, platform).await));
        }
    }
    trials.push(trial("embedded::compat::thread_keeps_session_across_mode_changes", changed));
    trials.push(trial("embedded::native::thread_keeps_the_runtime_it_began", kept));
    trials.push(trial("embedded::native::sandbox_or_tenant_chooses_runtime", chosen));
    trials
}

const DENIED: Scenario = ("denied_command_does_not_run", |world, on| Box::pin(denied(world, on)));

/// A stack in this mode; messages of an earlier start's worker return after six seconds.
fn in_mode(mode: &str) -> Options {
    let mut limits = quick();
    limits["visibility_ms"] = json!(6_000);
    limits["heartbeat_ms"] = json!(2_000);
    limits["lifecycle_call_ms"] = json!(5_000);
    Options { parameters: json!({"SandboxRuntimeMode": mode}), ..Options::limits(limits) }
}

async fn changed() {
    let stack = Stack::start(&in_mode("opencode"));
    let folder = Arc::clone(stack.folder());
    let world = World::of(&stack);
    let (talk, first) = world.begin(Platform::Discord, "write: keep.txt said before").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let before = talk.session().await;
    stack.end().unwrap();
    for mode in ["compat", "opencode"] {
        let stack = Stack::start_in(&folder, &in_mode(mode));
        let world = World::of(&stack);
        let mut after = talk.again(&world);
        let turn = after.say("run: cat keep.txt").await;
        assert_eq!(after.ended(&turn).await.outcome, Outcome::Answered, "{mode}");
        let answer = after.answer(&turn).await;
        assert!(answer.contains("said before"), "{mode}: {answer}");
        let session = after.session().await;
        assert_eq!(session.conversation.session, before.conversation.session, "{mode}");
        assert_eq!(session.conversation.briefed, before.conversation.briefed, "{mode}");
        assert_eq!(session.sandbox.generation, 1, "{mode}");
        // The model is asked in OpenCode's own session.
        let mark = after.accepted.last().and_then(|one| one.mark.clone());
        let mark = mark.expect("a prompt bears its mark");
        let calls = world.model_calls().await.unwrap();
        let ours = calls.iter().find(|call| call.user.contains(&mark) && !call.internal());
        let own = before.conversation.session.as_ref().map(ToString::to_string);
        assert_eq!(ours.and_then(|call| call.session_id.clone()), own, "{mode}");
        stack.end().unwrap();
    }
}

async fn denied(world: World, platform: Platform) {
    let (talk, turn) = world.begin(platform, "ask: echo it ran > denied.txt\necho: after it").await;
    let ask = talk
        .see(VISIBLE_MS_MAX * 2, "the permission is asked for", |one| one.button("Deny").is_some())
        .await;
    talk.press(&ask, "Deny").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let sandbox = talk.sandbox().await;
    let made = world.provider.download(&sandbox, "denied.txt").await;
    assert!(made.is_err(), "it ran: {made:?}");
    talk.finish().await;
}

/// The person who has a sandbox created chooses its mode, or the tenant does; otherwise the stack's mode applies.
async fn chosen() {
    let stack = Stack::start(&in_mode("opencode"));
    let world = World::of(&stack);
    let daemons = "run: pgrep -cx bobbin-agentd || true";
    let choices = [("runtime", "native"), ("agent", "opencode")];
    let (mut talk, first) =
        world.begin_with(Platform::Discord, &choices, "write: keep.txt said before").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let turn = talk.say("run: cat keep.txt").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let session = talk.session().await;
    assert_eq!(session.sandbox.spec.runtime.as_deref(), Some("native"));
    assert_eq!(session.sandbox.generation, 1);

    let (mut plain, first) = world.begin(Platform::Slack, daemons).await;
    assert_eq!(plain.ended(&first).await.outcome, Outcome::Answered);
    assert_eq!(plain.session().await.sandbox.spec.runtime, None);
    let of_tenant = SettingsChange::Default {
        channel: None,
        of: DefaultKind::Runtime,
        value: Some("compat".to_owned()),
    };
    choice::set(&world, Platform::Slack, of_tenant).await;
    let (guarded, first) = world.begin(Platform::Slack, daemons).await;
    assert_eq!(guarded.ended(&first).await.outcome, Outcome::Answered);
    let recorded = guarded.session().await.sandbox.spec.runtime;
    assert_eq!(recorded.as_deref(), Some("compat"));
    let found = guarded.answer(&first).await;
    assert!(!found.contains("\n0\n"), "no daemon: {found}");
    // The existing sandbox does not change with the tenant's default.
    let turn = plain.say(daemons).await;
    assert_eq!(plain.ended(&turn).await.outcome, Outcome::Answered);
    let found = plain.answer(&turn).await;
    assert!(found.contains("\n0\n"), "a daemon: {found}");
    // A request does not change a living one either; the person is told.
    let turn = plain.say("runtime:native echo: hello").await;
    match plain.ended(&turn).await.outcome {
        Outcome::Failed { reason } => assert!(
            reason.starts_with(
                "This thread's sandbox has the runtime opencode and cannot change to native."
            ),
            "{reason}"
        ),
        other => panic!("{other:?}"),
    }
    stack.end().unwrap();
}

/// A sandbox keeps its mode whatever the stack's mode becomes; and a run that was cut with its sandbox's processes is
/// sent again.
async fn kept() {
    let stack = Stack::start(&in_mode("native"));
    let folder = Arc::clone(stack.folder());
    let world = World::of(&stack);
    let (mut talk, first) = world.begin(Platform::Slack, "write: keep.txt said before").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let before = talk.session().await;
    assert_eq!(before.sandbox.spec.runtime.as_deref(), Some("native"));
    let slow = talk.say("slow: 6 one two three four five").await;
    talk.running(&slow).await;
    stack.end().unwrap();

    let stack = Stack::start_in(&folder, &in_mode("opencode"));
    let world = World::of(&stack);
    let mut after = talk.again(&world);
    assert_eq!(after.ended(&slow).await.outcome, Outcome::Answered);
    let turn = after.say("run: cat keep.txt").await;
    assert_eq!(after.ended(&turn).await.outcome, Outcome::Answered);
    let answer = after.answer(&turn).await;
    assert!(answer.contains("said before"), "{answer}");
    let session = after.session().await;
    assert_eq!(session.conversation.session, before.conversation.session);
    assert_eq!(session.sandbox.spec.runtime.as_deref(), Some("native"));
    // Another thread of the same stack uses the stack's current mode.
    let (other, first) = world.begin(Platform::Slack, "echo: hello").await;
    assert_eq!(other.ended(&first).await.outcome, Outcome::Answered);
    assert_eq!(other.session().await.sandbox.spec.runtime, None);
    stack.end().unwrap();
}
