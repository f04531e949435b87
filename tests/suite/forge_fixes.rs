//! A pull request for which somebody presses **Fix**: a review is answered where it was written, and a conflict is
//! resolved.

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::Platform;
use bobbin_tests::forge::{TestForge, TestRepository};
use bobbin_tests::limits::ANSWER_MS_MAX;
use bobbin_tests::talk::Talk;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use reqwest::Method;
use serde_json::{Value, json};

use crate::forge::{a_name, card_offers, card_says, opened, pressed, said, text};
use crate::run::{CHAT, on};

pub fn trials() -> Vec<Trial> {
    let of = |platform: Platform| {
        let named = |what: &str| format!("forge_fixes::{}::{what}", platform.word());
        [
            on(&CHAT, &named("review_is_fixed_and_answered"), async move |world| {
                reviewed(world, platform).await;
            }),
            on(&CHAT, &named("conflict_is_merged_and_green"), async move |world| {
                conflict(world, platform).await;
            }),
        ]
    };
    Platform::ALL.into_iter().flat_map(of).collect()
}

/// A thread whose work, in `page.txt`, is an open pull request.
pub async fn published<'w>(
    world: &'w World,
    platform: Platform,
    repository: &TestRepository<'_>,
) -> Talk<'w> {
    let choices = [("repo", &*repository.name)];
    let (talk, turn) = world.begin_with(platform, &choices, "write: page.txt hello").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    pressed(&talk, &turn, repository).await;
    said(&talk, "Pull request #1 is open").await;
    talk
}

async fn reviewed(world: World, platform: Platform) {
    let forge = TestForge::of(&world.ready);
    let repository = forge.private(&a_name(), &[("README.md", "begin\n")]).await;
    let talk = published(&world, platform, &repository).await;
    let pull = opened(&repository, 0).await;
    let comment =
        |body: &str| json!({"path": "page.txt", "line": 1, "side": "RIGHT", "body": body});
    let review = json!({
        "commit_id": pull["head"]["sha"], "event": "REQUEST_CHANGES", "body": "Please greet everybody.",
        "comments": [
            comment("Say hello to all.\n\nwrite: page.txt hello everybody"), comment("Why so short?"),
            comment("Is this translated?")],
    });
    repository.call(Method::POST, "/pulls/1/reviews", &review).await;

    let card = card_offers(&world, &talk, "Fix").await;
    assert!(card.text.contains("3 open threads"), "{}", card.text);
    talk.press(&card, "Fix").await;
    said(&talk, "Pull request #1 is updated").await;
    let branch = text(&pull, "/head/ref").to_owned();
    assert_eq!(repository.file(&branch, "page.txt").trim(), "hello everybody");

    // One turn, and a reply in each thread; the reviewer is asked again.
    let head = text(&opened(&repository, 0).await, "/head/sha").to_owned();
    let wanted = format!("Changed in {}.\n- `page.txt`", &head[..12]);
    eventually(ANSWER_MS_MAX, "each thread has its reply", async || {
        world.sweep().await?;
        let all = repository.call(Method::GET, "/pulls/1/comments", &Value::Null).await;
        let all = all.as_array().cloned().unwrap_or_default();
        let replies: Vec<&Value> =
            all.iter().filter(|one| text(one, "/body").starts_with(&wanted)).collect();
        let seen = all.iter().filter(|one| one["reactions"]["eyes"] == 1).count();
        let pull = repository.call(Method::GET, "/pulls/1", &Value::Null).await;
        let is_asked = pull["requested_reviewers"][0]["login"] == "ada";
        match (all.len(), replies.len(), seen, is_asked) {
            (6, 3, 3, true) => Ok(()),
            state => Err(format!("{state:?}: {all:?}")),
        }
    })
    .await;
    let messages = talk.messages().await.unwrap();
    let begun = messages.iter().filter(|one| one.text.contains("The agent fixes pull request #1"));
    assert_eq!(begun.count(), 1);
    talk.finish().await;
}

async fn conflict(world: World, platform: Platform) {
    let forge = TestForge::of(&world.ready);
    let repository = forge.private(&a_name(), &[("README.md", "begin\n")]).await;
    let talk = published(&world, platform, &repository).await;
    // By now the base has a file of that name too, and a workflow that is not the agent's.
    repository.push("main", "page.txt", "good day\n");
    repository.push("main", ".github/workflows/ci.yml", "on: push\n");
    let pull = opened(&repository, 0).await;
    let merge = "run: git add -A; git -c user.name=a -c user.email=a@b commit -qm Page; git fetch -q; git -c user.name=a -c user.email=a@b merge -q -X ours origin/main 2>&1; git log --oneline | head -3";
    let failed = json!({
        "repository": repository.name, "sha": pull["head"]["sha"], "name": "test",
        "conclusion": "failure", "summary": merge, "log": "It is red.",
    });
    forge.control("checks", &failed).await;

    // Until the checks are settled only a fix of the conflict is offered, and the next poll withdraws it.
    card_says(&world, &talk, |card| {
        card.contains("1 failed") && !card.contains("More may begin") && card.contains("conflict")
    })
    .await;
    let card = card_offers(&world, &talk, "Fix").await;
    talk.press(&card, "Fix").await;
    said(&talk, "Pull request #1 is updated").await;
    let branch = text(&pull, "/head/ref").to_owned();
    assert_eq!(repository.file(&branch, "page.txt").trim(), "hello");
    assert_eq!(repository.file(&branch, ".github/workflows/ci.yml").trim(), "on: push");
    let head = text(&opened(&repository, 0).await, "/head/sha").to_owned();
    forge.check(&repository.name, &head, "success").await;
    card_says(&world, &talk, |card| {
        card.contains("Checks: all 1 passed.") && !card.contains("conflict")
    })
    .await;
    talk.finish().await;
}
