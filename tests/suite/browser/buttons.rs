//! Buttons in a thread other than forms: a permission, "Run again" after a failure, "Send now" for a waiting task, and
//! a task's changes.

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::browser::Browser;
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::{ANSWER_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;

use super::{THREAD, button, open, picture_of_thread};

/// The agent wants to run a command; a person allows it once, and the card says who did.
pub async fn allow(world: &World, browser: &Browser, platform: Platform) {
    let (talk, turn) = world.begin(platform, "ask: date +%Y && echo allowed-by-hand").await;
    open(browser, &talk).await;
    browser.reads(ANSWER_MS_MAX, THREAD, "date +%Y && echo allowed-by-hand").await;
    picture_of_thread(browser, &format!("permission-{}", platform.word())).await;
    browser
        .press(&button(match platform {
            Platform::Discord => "Allow once",
            Platform::Slack => "Allow Once",
        }))
        .await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let answer = talk.answer(&turn).await;
    assert!(answer.contains("allowed-by-hand"), "{answer}");
    browser.reads(VISIBLE_MS_MAX, THREAD, "Allowed").await;
    talk.finish().await;
}

/// A task has failed; "Run again" runs it as a new turn, once.
pub async fn again(world: &World, browser: &Browser, platform: Platform) {
    let (mut talk, turn) = world.begin(platform, "fail: 401").await;
    open(browser, &talk).await;
    assert!(matches!(talk.ended(&turn).await.outcome, Outcome::Failed { .. }));
    picture_of_thread(browser, &format!("failed-{}", platform.word())).await;
    browser.press(&button("Run again")).await;
    let second = eventually(ANSWER_MS_MAX, "the task has run again", async || {
        let session = world.session(&talk.thread.key).await?;
        match &session.ended[..] {
            [_, second] => Ok(second.clone()),
            ended => Err(format!("{} turns have ended", ended.len())),
        }
    })
    .await;
    assert!(matches!(second.outcome, Outcome::Failed { .. }));
    assert!(second.id.starts_with("again-"), "{}", second.id);
    talk.reset().await;
}

/// A second task waits behind the first; "Send now" sends it to the agent during the first one's run.
pub async fn now(world: &World, browser: &Browser, platform: Platform) {
    let (mut talk, first) = world.begin(platform, "slow: 20 one two three four five six").await;
    talk.running(&first).await;
    open(browser, &talk).await;
    let second = talk.say("echo: the second").await;
    browser.reads(VISIBLE_MS_MAX, THREAD, "Queued").await;
    picture_of_thread(browser, &format!("waiting-{}", platform.word())).await;
    browser.press(&button("Send now")).await;
    browser.reads(ANSWER_MS_MAX, THREAD, "Sent into the running task").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    assert!(matches!(talk.ended(&second).await.outcome, Outcome::Joined { .. }));
    talk.finish().await;
}

/// The person who asks for a task's changes sees them.
pub async fn diff(world: &World, browser: &Browser, platform: Platform) {
    let (talk, turn) = world
        .begin(
            platform,
            "plan: [x] read the notes | [>] write them down | tell about it\nwrite: notes/today.md # Today\\n\\n- fix the build\nrun: cat notes/today.md",
        )
        .await;
    open(browser, &talk).await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    browser.reads(VISIBLE_MS_MAX, THREAD, "1 file").await;
    browser.press(&button("View diff")).await;
    browser.reads(VISIBLE_MS_MAX, THREAD, "+- fix the build").await;
    picture_of_thread(browser, &format!("diff-{}", platform.word())).await;
    talk.finish().await;
}
