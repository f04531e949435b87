//! A private repository of the laptop's forge: it is fetched into a thread's sandbox, and the agent's work becomes a
//! pull request on a press.

use bobbin_core::base::names::{PostKind, post_key};
use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::{ChatMessage, Platform};
use bobbin_tests::forge::{TestForge, TestRepository};
use bobbin_tests::limits::{ANSWER_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::talk::{Talk, marked};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use reqwest::Method;
use serde_json::{Value, json};

use crate::run::{CHAT, COMMON, on};

/// Once from end to end.
pub fn first() -> Vec<Trial> {
    vec![merged(Platform::Discord)]
}

pub fn trials() -> Vec<Trial> {
    let stays = "forge::persons_commit_stays_on_the_branch";
    let based = |platform: Platform| {
        let name = format!("forge::{}::branch_that_was_named_is_the_base", platform.word());
        on(&CHAT, &name, async move |world| based_on(world, platform).await)
    };
    vec![
        merged(Platform::Slack),
        watched(Platform::Discord),
        watched(Platform::Slack),
        on(&CHAT, stays, async move |world| theirs(world).await),
        based(Platform::Discord),
        based(Platform::Slack),
    ]
}

fn merged(platform: Platform) -> Trial {
    let name = format!("forge::{}::task_becomes_a_merged_pull_request", platform.word());
    on(&COMMON, &name, async move |world| published(world, platform).await)
}

fn watched(platform: Platform) -> Trial {
    let name = format!("forge::{}::pull_request_is_seen_through", platform.word());
    on(&CHAT, &name, async move |world| seen_through(world, platform).await)
}

/// A name that no other test uses.
pub fn a_name() -> String {
    let (_, mark) = marked("");
    mark.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

/// Whether it is a proposal.
pub fn is_review(message: &ChatMessage) -> bool {
    ["Edit text", "Show edited text"].iter().any(|label| message.button(label).is_some())
}

/// Waits for a proposal that differs from the earlier ones.
async fn review(talk: &Talk<'_>, commit_before: &str) -> ChatMessage {
    let wanted = |one: &ChatMessage| {
        is_review(one) && (commit_before.is_empty() || !one.text.contains(commit_before))
    };
    talk.see(ANSWER_MS_MAX, "what would be published is shown", wanted).await
}

pub async fn said(talk: &Talk<'_>, words: &str) -> ChatMessage {
    talk.see(ANSWER_MS_MAX, words, |one| one.text.contains(words)).await
}

/// The final card, once it offers this.
pub async fn offered(talk: &Talk<'_>, turn: &str, label: &str) -> ChatMessage {
    let key = post_key(&talk.thread.key, &turn.into(), &PostKind::Card);
    let wanted =
        |one: &ChatMessage| one.key.as_deref() == Some(&*key) && one.button(label).is_some();
    talk.see(VISIBLE_MS_MAX, label, wanted).await
}

pub fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The only pull request besides `before` others.
pub async fn opened(repository: &TestRepository<'_>, before: usize) -> Value {
    eventually(ANSWER_MS_MAX, "the pull request is there", async || {
        let mut all = repository.pulls().await;
        if all.len() == before + 1 { Ok(all.remove(before)) } else { Err(format!("{all:?}")) }
    })
    .await
}

/// A thread with these choices works on a private repository, and its work becomes a pull request.
pub async fn one_pull_request(world: &World, platform: Platform, choices: &[(&str, &str)]) {
    let forge = TestForge::of(&world.ready);
    let repository = forge.private(&a_name(), &[("README.md", "begin\n")]).await;
    let choices = [choices, &[("repo", &*repository.name)]].concat();
    let (talk, turn) = world.begin_with(platform, &choices, "write: page.txt hello").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    pressed(&talk, &turn, &repository).await;
    talk.finish().await;
}

/// Presses the turn's work through to its pull request, in which `page.txt` says hello.
pub async fn pressed(talk: &Talk<'_>, turn: &str, repository: &TestRepository<'_>) {
    let card = offered(talk, turn, "Open pull request").await;
    talk.press(&card, "Open pull request").await;
    let shown = review(talk, "").await;
    talk.press(&shown, "Open draft pull request").await;
    let pull = opened(repository, 0).await;
    assert_eq!(repository.file(text(&pull, "/head/ref"), "page.txt").trim(), "hello");
}

async fn published(world: World, platform: Platform) {
    let forge = TestForge::of(&world.ready);
    let files = [("README.md", "the secret plan\n"), (".github/workflows/ci.yml", "on: push\n")];
    let repository = forge.private(&a_name(), &files).await;

    // In: the files are there, without a credential.
    let look = "run: cat README.md; git push origin HEAD:other 2>&1; (env; git config --list) | grep -c gh[a-z]_";
    let (mut talk, first) = world.begin_with(platform, &[("repo", &repository.name)], look).await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let seen = talk.answer(&first).await;
    assert!(seen.contains("the secret plan"), "{seen}");
    assert!(seen.contains("Bobbin pushes, when somebody presses Open pull request."), "{seen}");
    assert!(seen.lines().any(|line| line == "0"), "a token is there: {seen}");

    // Out: nothing leaves before a press.
    let second = talk.say("write: page.txt hello\necho: I wrote it for @ada").await;
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    let card = offered(&talk, &second, "Open pull request").await;
    talk.press(&card, "Open pull request").await;
    let shown = review(&talk, "").await;
    for words in [&*repository.name, "page.txt", "1 file"] {
        assert!(shown.text.contains(words), "{words}: {}", shown.text);
    }
    assert_eq!(repository.branches().await, []);
    talk.press(&shown, "Open draft pull request").await;
    let pull = opened(&repository, 0).await;
    assert!(text(&pull, "/head/ref").starts_with("bobbin/"), "{pull}");
    assert_eq!((&pull["draft"], text(&pull, "/base/ref")), (&json!(true), "main"));
    assert!(!text(&pull, "/body").contains("@ada"), "{}", pull["body"]);
    let branch = text(&pull, "/head/ref").to_owned();
    assert_eq!(repository.file(&branch, "page.txt").trim(), "hello");
    said(&talk, "Pull request #1 is open as a draft").await;

    // More work comes to the same pull request, committed by the agent or not.
    let third = talk
        .say("run: echo more > more.txt; git add -A; git -c user.name=a -c user.email=a@b commit -qm More")
        .await;
    assert_eq!(talk.ended(&third).await.outcome, Outcome::Answered);
    let card = offered(&talk, &third, "Update pull request").await;
    talk.press(&card, "Update pull request").await;
    let head = text(&pull, "/head/sha")[..12].to_owned();
    let shown = review(&talk, &head).await;
    talk.press(&shown, "Update pull request").await;
    said(&talk, "Pull request #1 is updated").await;
    assert_eq!(repository.file(&branch, "more.txt").trim(), "more");
    assert_eq!(repository.pulls().await.len(), 1);

    // Merged on the page; later work starts from the merge and is another branch.
    let pull = opened(&repository, 0).await;
    repository.press("ready", &pull).await;
    repository.press("merge", &pull).await;
    card_says(&world, &talk, |card| card.contains("Merged.")).await;
    said(&talk, "Pull request #1 was merged").await;
    repository.push("main", "person.txt", "by a person\n");
    let fourth = talk.say("run: cat page.txt person.txt && echo later > later.txt").await;
    assert_eq!(talk.ended(&fourth).await.outcome, Outcome::Answered);
    let seen = talk.answer(&fourth).await;
    assert!(seen.contains("helloby a person"), "{seen}");
    talk.press(&offered(&talk, &fourth, "Open pull request").await, "Open pull request").await;
    let is_later = |one: &ChatMessage| is_review(one) && one.text.contains("later.txt");
    let shown = talk.see(ANSWER_MS_MAX, "the new work is shown", is_later).await;
    assert!(shown.text.contains("1 file"), "{}", shown.text);
    talk.press(&shown, "Open draft pull request").await;
    let next = opened(&repository, 1).await;
    assert_ne!(text(&next, "/head/ref"), branch);
    talk.finish().await;
}

async fn seen_through(world: World, platform: Platform) {
    let forge = TestForge::of(&world.ready);
    let repository = forge.private(&a_name(), &[("README.md", "begin\n")]).await;
    let (talk, first) =
        world.begin_with(platform, &[("repo", &repository.name)], "write: page.txt hello").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    pressed(&talk, &first, &repository).await;
    said(&talk, "Pull request #1 is open").await;
    card_says(&world, &talk, |card| {
        card.contains("Checks: none") && card.contains("Reviews: none")
    })
    .await;

    // A check fails; while others may still begin, the card does not call that settled and offers nothing.
    let red = opened(&repository, 0).await;
    let failed = json!({
        "repository": repository.name, "sha": red["head"]["sha"], "name": "test",
        "conclusion": "failure", "summary": "write: fixed.txt yes", "log": "It is red.",
    });
    forge.control("checks", &failed).await;
    card_says(&world, &talk, |card| card.contains("1 failed") && card.contains("More may begin"))
        .await;
    let card = card_offers(&world, &talk, "Fix").await;
    assert!(card.text.contains("1 failed") && !card.text.contains("More may begin"), "{card:?}");

    // Two presses are one fix: a turn that reads the log, and the push of its work.
    talk.press(&card, "Fix").await;
    talk.press(&card, "Fix").await;
    said(&talk, "The agent fixes pull request #1 now").await;
    let branch = text(&red, "/head/ref").to_owned();
    said(&talk, "Pull request #1 is updated").await;
    assert_eq!(repository.file(&branch, "fixed.txt").trim(), "yes");
    let messages = talk.messages().await.unwrap();
    let begun = messages.iter().filter(|one| one.text.contains("The agent fixes pull request #1"));
    assert_eq!(begun.count(), 1);
    let green = opened(&repository, 0).await;
    assert_ne!(green["head"]["sha"], red["head"]["sha"]);
    card_says(&world, &talk, |card| card.contains("Checks: none")).await;
    forge.check(&repository.name, text(&green, "/head/sha"), "success").await;
    card_says(&world, &talk, |card| card.contains("Checks: all 1 passed.")).await;

    repository.press("ready", &green).await;
    repository.press("merge", &green).await;
    said(&talk, "Pull request #1 was merged").await;
    card_says(&world, &talk, |card| card.contains("Merged.")).await;
    talk.finish().await;
}

/// Waits until the one card of the pull request says this.
pub async fn card_says(world: &World, talk: &Talk<'_>, says: impl Fn(&str) -> bool) {
    eventually(ANSWER_MS_MAX, "the card says it", async || {
        // Does what the sweeper does at each full minute.
        world.sweep().await?;
        card_has(talk, &says).await
    })
    .await;
}

/// Whether the one card of the pull request says this now.
pub async fn card_has(talk: &Talk<'_>, says: impl Fn(&str) -> bool) -> Result<(), String> {
    let messages = talk.messages().await?;
    let is_card =
        |one: &&ChatMessage| one.text.contains("Merging:") || one.text.contains("Merged.");
    let cards: Vec<&ChatMessage> = messages.iter().filter(is_card).collect();
    match &cards[..] {
        [card] if says(&card.text) => Ok(()),
        cards => Err(format!("{:?}", cards.iter().map(|card| &card.text).collect::<Vec<_>>())),
    }
}

/// The card of the pull request, once it offers this.
pub async fn card_offers(world: &World, talk: &Talk<'_>, label: &str) -> ChatMessage {
    eventually(ANSWER_MS_MAX, label, async || {
        world.sweep().await?;
        let messages = talk.messages().await?;
        let is_it =
            |one: &&ChatMessage| one.text.contains("Merging:") && one.button(label).is_some();
        messages.iter().find(is_it).cloned().ok_or_else(|| format!("no card offers {label}"))
    })
    .await
}

async fn based_on(world: World, platform: Platform) {
    let forge = TestForge::of(&world.ready);
    let repository = forge.private(&a_name(), &[("README.md", "begin\n")]).await;
    let main = repository.call(Method::GET, "/git/ref/heads/main", &Value::Null).await;
    let branch = json!({"ref": "refs/heads/release/2", "sha": main["object"]["sha"]});
    repository.call(Method::POST, "/git/refs", &branch).await;
    repository.push("release/2", "notes.txt", "of the release\n");
    let named = format!("{}@release/2", repository.name);
    let look = "run: cat notes.txt; git status --branch --porcelain";
    let (mut talk, turn) = world.begin_with(platform, &[("repo", &named)], look).await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let seen = talk.answer(&turn).await;
    assert!(seen.contains("of the release") && seen.contains("origin/release/2"), "{seen}");
    let turn = talk.say("write: page.txt hello").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    pressed(&talk, &turn, &repository).await;
    assert_eq!(text(&opened(&repository, 0).await, "/base/ref"), "release/2");
    talk.finish().await;
}

async fn theirs(world: World) {
    let forge = TestForge::of(&world.ready);
    let repository = forge.private(&a_name(), &[("README.md", "begin\n")]).await;
    let choices = [("repo", &*repository.name)];
    let (mut talk, first) =
        world.begin_with(Platform::Discord, &choices, "write: page.txt hello").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    pressed(&talk, &first, &repository).await;
    said(&talk, "Pull request #1 is open").await;
    let (branch, ours) = repository.branches().await.remove(0);
    repository.push(&branch, "person.txt", "by a person\n");
    let (_, person) = repository.branches().await.remove(0);

    let second = talk.say("write: more.txt more").await;
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    talk.press(&offered(&talk, &second, "Update pull request").await, "Update pull request").await;
    let shown = review(&talk, &ours[..12]).await;
    talk.press(&shown, "Update pull request").await;
    said(&talk, &format!("somebody else has put {}", &person[..12])).await;
    assert_eq!(repository.branches().await, [(branch.clone(), person.clone())]);

    let merge = format!(
        "run: git add -A && git -c user.name=a -c user.email=a@b commit -qm More && git fetch -q && git -c user.name=a -c user.email=a@b merge -q --allow-unrelated-histories origin/{branch} 2>&1; cat person.txt"
    );
    let third = talk.say(&merge).await;
    assert_eq!(talk.ended(&third).await.outcome, Outcome::Answered);
    assert!(talk.answer(&third).await.contains("by a person"), "{}", talk.answer(&third).await);
    talk.press(&offered(&talk, &third, "Update pull request").await, "Update pull request").await;
    let shown = talk
        .see(ANSWER_MS_MAX, "the merge is shown", |one| {
            is_review(one) && one.text.contains("person.txt")
        })
        .await;
    talk.press(&shown, "Update pull request").await;
    said(&talk, "Pull request #1 is updated").await;
    assert_eq!(repository.file(&branch, "person.txt"), "by a person\n");
    assert_eq!(repository.file(&branch, "more.txt").trim(), "more");
    talk.finish().await;
}
