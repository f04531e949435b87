//! `kill -9` of the worker during a call of a press, before the other side has processed it and after: one branch, one
//! pull request, one fix, one reply, reported once. An undisturbed press shows which calls there are.

use std::collections::BTreeMap;

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::breakpoints::Condition;
use bobbin_tests::chat::{ChatMessage, Platform};
use bobbin_tests::forge::{TestForge, TestRepository};
use bobbin_tests::limits::{ANSWER_MS_MAX, FAULTY_ANSWER_MS_MAX, KILLED_MS_MAX, KILLS_AT_ONCE};
use bobbin_tests::processes;
use bobbin_tests::stack::{Options, Stack};
use bobbin_tests::talk::Talk;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use futures::{StreamExt, stream};
use libtest_mimic::Trial;
use reqwest::Method;
use serde_json::{Value, json};

use super::kills::{limits, sampled};
use crate::forge::{a_name, card_offers, is_review, offered, opened, pressed, said};
use crate::run::alone;

/// Kill points without `BOBBIN_KILLS`.
const SAMPLE: usize = 8;
/// Tested calls of one name, apart from writes.
const POLLS_MAX: usize = 3;
/// A crash before it costs the thread the queue's own visibility timeout.
const CLAIM: &str = "sqs ChangeMessageVisibility";

pub fn trials() -> Vec<Trial> {
    vec![
        alone("faults::kill_9_while_publishing_pushes_once", async || kills(Press::Publish).await),
        alone("faults::kill_9_while_fixing_fixes_once", async || kills(Press::Fix).await),
    ]
}

/// The button that is pressed.
#[derive(Clone, Copy, PartialEq)]
enum Press {
    /// Publishes a proposal.
    Publish,
    /// Fixes a review of the pull request: a turn, its push and the reply.
    Fix,
}

impl Press {
    const fn label(self) -> &'static str {
        match self {
            Self::Publish => "Open draft pull request",
            Self::Fix => "Fix",
        }
    }

    /// What the thread is told at the end.
    const fn told(self) -> &'static str {
        match self {
            Self::Publish => "Pull request #1 is ",
            Self::Fix => "Pull request #1 is updated",
        }
    }

    /// Calls that an undisturbed press must make.
    const fn calls(self) -> &'static [&'static str] {
        match self {
            Self::Publish => &["git-receive-pack", "/pulls"],
            Self::Fix => &["git-receive-pack", "sqs SendMessage", "/replies"],
        }
    }
}

/// Something that can be pressed.
struct Pressable<'w> {
    press: Press,
    world: &'w World,
    talk: Talk<'w>,
    repository: TestRepository<'w>,
    card: ChatMessage,
    /// Part of all messages of the press.
    name: String,
}

async fn pressable<'w>(world: &'w World, forge: &'w TestForge, press: Press) -> Pressable<'w> {
    let repository = forge.private(&a_name(), &[("README.md", "begin\n")]).await;
    let (talk, turn) = world
        .begin_with(Platform::Discord, &[("repo", &repository.name)], "write: page.txt hello")
        .await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    if press == Press::Fix {
        pressed(&talk, &turn, &repository).await;
        said(&talk, "Pull request #1 is open").await;
        let pull = opened(&repository, 0).await;
        let comment = json!({"path": "page.txt", "line": 1, "side": "RIGHT", "body": "Say yes.\n\nwrite: fixed.txt yes"});
        let review = json!({
            "commit_id": pull["head"]["sha"], "event": "REQUEST_CHANGES", "body": "Please.",
            "comments": [comment],
        });
        repository.call(Method::POST, "/pulls/1/reviews", &review).await;
        let card = card_offers(world, &talk, "Fix").await;
        let button = card.button("Fix").unwrap().id.clone();
        let name = button.rsplit(':').next().unwrap().to_owned();
        return Pressable { press, world, talk, repository, card, name };
    }
    let card = offered(&talk, &turn, "Open pull request").await;
    talk.press(&card, "Open pull request").await;
    let card = talk.see(ANSWER_MS_MAX, "the work is shown", is_review).await;
    let publication = world.session(&talk.thread.key).await.unwrap().published.publication.unwrap();
    let name = publication.shown.unwrap().commit;
    Pressable { press, world, talk, repository, card, name }
}

/// Waits for the end, and checks that everything happened once.
async fn done_once(pressable: Pressable<'_>) {
    let Pressable { press, world, talk, repository, name, .. } = pressable;
    let told = |one: &ChatMessage| one.text.contains(press.told());
    talk.see(FAULTY_ANSWER_MS_MAX, "the end is told", told).await;
    let pulls = repository.pulls().await;
    assert_eq!(pulls.len(), 1, "{pulls:?}");
    let (branch, at) = repository.branches().await.remove(0);
    match press {
        Press::Publish => assert_eq!(at, name),
        Press::Fix => {
            assert_eq!(repository.file(&branch, "fixed.txt").trim(), "yes");
            let path = format!("/compare/main...{at}");
            let compared = repository.call(Method::GET, &path, &Value::Null).await;
            assert_eq!(compared["ahead_by"], 1, "{compared}");
            eventually(FAULTY_ANSWER_MS_MAX, "one reply is there", async || {
                world.sweep().await?;
                let all = repository.call(Method::GET, "/pulls/1/comments", &Value::Null).await;
                let all = all.as_array().cloned().unwrap_or_default();
                if all.len() == 2 { Ok(()) } else { Err(format!("{all:?}")) }
            })
            .await;
        }
    }
    let messages = talk.messages().await.unwrap();
    assert_eq!(messages.iter().filter(|one| told(one)).count(), 1, "{messages:?}");
    talk.finish().await;
}

async fn kills(press: Press) {
    let options = Options { stand_in_agent: true, ..Options::limits(limits()) };
    let stack = Stack::start(&options);
    let world = World::of(&stack);
    let forge = TestForge::of(&world.ready);
    let all = recorded(&world, &forge, press).await;
    let points = sampled(&all, SAMPLE);
    println!("{} kill points of a press, {} of them taken", all.len(), points.len());
    let runs = points.iter().map(|point| killed(&world, &forge, press, point));
    let ends: Vec<bool> = stream::iter(runs).buffer_unordered(KILLS_AT_ONCE).collect().await;
    let count = ends.iter().filter(|was_killed| **was_killed).count();
    println!("kills survived: {count} of {}", ends.len());
    assert!(count + 1 >= ends.len(), "{count} of {}", ends.len());
    world.check_quiet().await;
    stack.end().unwrap();
}

/// Waits for the reply of an undisturbed fix.
async fn said_there(repository: &TestRepository<'_>) {
    eventually(ANSWER_MS_MAX, "the reply is there", async || {
        let all = repository.call(Method::GET, "/pulls/1/comments", &Value::Null).await;
        if all.as_array().map_or(0, Vec::len) == 2 { Ok(()) } else { Err(all.to_string()) }
    })
    .await;
}

/// A call, its number among those of its name, and whether it was processed.
type Point = (String, usize, bool);

/// The calls of an undisturbed press, each before and after.
async fn recorded(world: &World, forge: &TestForge, press: Press) -> Vec<Point> {
    let there = pressable(world, forge, press).await;
    let breakpoint = world.breakpoint(&condition(&there.name, "", 0, false)).await;
    there.talk.press(&there.card, press.label()).await;
    let told = |one: &ChatMessage| one.text.contains(press.told());
    there.talk.see(ANSWER_MS_MAX, "the end is told", told).await;
    if press == Press::Fix {
        said_there(&there.repository).await;
    }
    let calls = breakpoint.status().await.unwrap().calls;
    breakpoint.remove().await.unwrap();
    done_once(there).await;
    for call in press.calls() {
        assert!(calls.iter().any(|one| one.contains(call)), "{call} is not among {calls:?}");
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut points = Vec::new();
    for call in calls {
        let nth = seen.entry(call.clone()).or_insert(0);
        *nth += 1;
        let is_write = call.starts_with("dynamodb ");
        if call != CLAIM && (is_write || *nth <= POLLS_MAX) {
            points.extend([false, true].map(|after| (call.clone(), *nth, after)));
        }
    }
    points
}

/// Kills the worker at that point of a press. `false`: this press made no such call, because a poll went differently.
async fn killed(
    world: &World,
    forge: &TestForge,
    press: Press,
    (call, nth, after): &Point,
) -> bool {
    let there = pressable(world, forge, press).await;
    let breakpoint = world.breakpoint(&condition(&there.name, call, *nth, *after)).await;
    there.talk.press(&there.card, press.label()).await;
    let told = |one: &ChatMessage| one.text.contains(press.told());
    let held = eventually(FAULTY_ANSWER_MS_MAX, "the call is held", async || {
        match breakpoint.held_process().await {
            Ok(process) => Ok(Some(process)),
            Err(why) => {
                let messages = there.talk.messages().await?;
                if messages.iter().any(told) { Ok(None) } else { Err(why) }
            }
        }
    })
    .await;
    if let Some(process) = held {
        processes::kill(process);
        eventually(KILLED_MS_MAX, "the worker is gone", async || {
            if processes::alive(process) { Err(format!("{process} lives")) } else { Ok(()) }
        })
        .await;
    }
    breakpoint.remove().await.unwrap();
    done_once(there).await;
    held.is_some()
}

fn condition(text: &str, call: &str, nth: usize, after: bool) -> Condition {
    Condition {
        text: text.to_owned(),
        function: "Worker".to_owned(),
        call: call.to_owned(),
        nth,
        after,
    }
}
