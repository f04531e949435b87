//! A stack whose sandboxes run at the second provider: a conversation, the end of a sandbox's time in the middle of a
//! turn, and a fresh start.

use bobbin_core::base::limits::Limits;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::sandbox::Phase;
use bobbin_tests::chat::Platform;
use bobbin_tests::http;
use bobbin_tests::limits::ANSWER_MS_MAX;
use bobbin_tests::provider::Provider;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::json;

use crate::run::trial;

pub fn trials() -> Vec<Trial> {
    vec![trial("embedded::vercel::conversation_outlives_a_sandboxs_session", conversation)]
}

async fn conversation() {
    let stack = Stack::start(&Options {
        parameters: json!({"Overrides": json!({"provider": "vercel"}).to_string()}),
        ..Options::lean(quick())
    });
    let world = World::at_vercel(&stack);
    let (mut talk, first) =
        world.begin(Platform::Discord, "write: hello.txt Hello from the sandbox").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let sandbox = talk.sandbox().await;
    assert_eq!(sandbox.state, "started");
    let file = world.provider.download(&sandbox, "hello.txt").await;
    assert_eq!(file.as_deref().map(str::trim), Ok("Hello from the sandbox"));
    let ready = &stack.ready;
    let other = Provider::new(&http::client(), &ready.daytona_api, &ready.daytona_api_key);
    assert_eq!(other.list().await, Ok(Vec::new()), "nothing at the other");

    // Its time ends while the agent is at work: the turn continues in another session.
    let second = talk.say("slow: 40 one two three four five six").await;
    talk.running(&second).await;
    let time_ms = u64::from(Limits::DEFAULT.sandbox.auto_stop_min) * 60_000;
    world.provider.advance(time_ms).await.unwrap();
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    let answer = talk.answer(&second).await;
    assert!(answer.contains("six"), "{answer}");

    // The disk was kept, and the sandbox is the same.
    let third = talk.say("run: cat hello.txt").await;
    assert_eq!(talk.ended(&third).await.outcome, Outcome::Answered);
    let answer = talk.answer(&third).await;
    assert!(answer.contains("Hello from the sandbox"), "{answer}");
    assert_eq!(talk.sandbox().await.name, sandbox.name);
    assert_eq!(talk.session().await.sandbox.phase, Phase::Active);

    // The second turn's run began twice, which is allowed when its sandbox ends: the usual promises are not checked
    // here.
    talk.reset().await;
    eventually(ANSWER_MS_MAX, "nothing is left", async || {
        let left = world.provider.list().await?;
        let live = left.iter().filter(|one| one.live()).count();
        (live == 0).then_some(()).ok_or_else(|| format!("{live} are left"))
    })
    .await;
    stack.end().unwrap();
}
