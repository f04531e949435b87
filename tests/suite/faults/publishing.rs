//! `kill -9` of the worker while a call of a push or of a pull request is held, before the other side has processed it
//! and after: one branch, one pull request, told once. An undisturbed press tells which calls there are.

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

use super::kills::{limits, sampled};
use crate::forge::{a_name, is_review, offered};
use crate::run::alone;

/// Kill points without `BOBBIN_KILLS`.
const SAMPLE: usize = 8;
/// Calls of one name that are taken, but for writes.
const POLLS_MAX: usize = 3;
/// Who dies before it costs the thread the queue's own visibility.
const CLAIM: &str = "sqs ChangeMessageVisibility";

pub fn trials() -> Vec<Trial> {
    vec![alone("faults::kill_9_while_publishing_pushes_once", kills)]
}

/// Work that is shown and can be pressed.
struct Shown<'w> {
    talk: Talk<'w>,
    repository: TestRepository<'w>,
    review: ChatMessage,
    commit: String,
}

async fn shown<'w>(world: &'w World, forge: &'w TestForge) -> Shown<'w> {
    let repository = forge.private(&a_name(), &[("README.md", "begin\n")]).await;
    let (talk, turn) = world
        .begin_with(Platform::Discord, &[("repo", &repository.name)], "write: page.txt hello")
        .await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let card = offered(&talk, &turn, "Open pull request").await;
    talk.press(&card, "Open pull request").await;
    let review = talk.see(ANSWER_MS_MAX, "the work is shown", is_review).await;
    let publication = world.session(&talk.thread.key).await.unwrap().publication.unwrap();
    let commit = publication.shown.unwrap().commit;
    Shown { talk, repository, review, commit }
}

/// Waits for the end, and checks that everything is there once.
async fn published_once(shown: Shown<'_>) {
    let Shown { talk, repository, commit, .. } = shown;
    let told = |one: &ChatMessage| one.text.contains("Pull request #1 is ");
    talk.see(FAULTY_ANSWER_MS_MAX, "the pull request is told", told).await;
    let pulls = repository.pulls().await;
    assert_eq!(pulls.len(), 1, "{pulls:?}");
    let branches = repository.branches().await;
    let ends: Vec<&str> = branches.iter().map(|(_, at)| &**at).collect();
    assert_eq!(ends, [&*commit], "{branches:?}");
    let messages = talk.messages().await.unwrap();
    assert_eq!(messages.iter().filter(|one| told(one)).count(), 1, "{messages:?}");
    talk.finish().await;
}

async fn kills() {
    let options = Options { stand_in_agent: true, ..Options::limits(limits()) };
    let stack = Stack::start(&options);
    let world = World::of(&stack);
    let forge = TestForge::of(&world.ready);
    let all = recorded(&world, &forge).await;
    let points = sampled(&all, SAMPLE);
    println!("{} kill points of a press, {} of them taken", all.len(), points.len());
    let runs = points.iter().map(|point| killed(&world, &forge, point));
    let ends: Vec<bool> = stream::iter(runs).buffer_unordered(KILLS_AT_ONCE).collect().await;
    let count = ends.iter().filter(|was_killed| **was_killed).count();
    println!("kills survived: {count} of {}", ends.len());
    assert!(count + 1 >= ends.len(), "{count} of {}", ends.len());
    world.check_quiet().await;
    stack.end().unwrap();
}

/// A call, which one of its name, and whether it was processed.
type Point = (String, usize, bool);

/// The calls of an undisturbed press, each before and after.
async fn recorded(world: &World, forge: &TestForge) -> Vec<Point> {
    let shown = shown(world, forge).await;
    let breakpoint = world.breakpoint(&condition(&shown.commit, "", 0, false)).await;
    shown.talk.press(&shown.review, "Open draft pull request").await;
    let told = |one: &ChatMessage| one.text.contains("Pull request #1 is ");
    shown.talk.see(ANSWER_MS_MAX, "the pull request is told", told).await;
    let calls = breakpoint.status().await.unwrap().calls;
    breakpoint.remove().await.unwrap();
    published_once(shown).await;
    for call in ["git-receive-pack", "/pulls"] {
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

/// Kills the worker at that point of a press. `false`: this press made no such call, because a look came out
/// differently.
async fn killed(world: &World, forge: &TestForge, (call, nth, after): &Point) -> bool {
    let shown = shown(world, forge).await;
    let breakpoint = world.breakpoint(&condition(&shown.commit, call, *nth, *after)).await;
    shown.talk.press(&shown.review, "Open draft pull request").await;
    let told = |one: &ChatMessage| one.text.contains("Pull request #1 is ");
    let held = eventually(FAULTY_ANSWER_MS_MAX, "the call is held", async || {
        match breakpoint.held_process().await {
            Ok(process) => Ok(Some(process)),
            Err(why) => {
                let messages = shown.talk.messages().await?;
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
    published_once(shown).await;
    held.is_some()
}

fn condition(commit: &str, call: &str, nth: usize, after: bool) -> Condition {
    Condition {
        text: commit.to_owned(),
        function: "Worker".to_owned(),
        call: call.to_owned(),
        nth,
        after,
    }
}
