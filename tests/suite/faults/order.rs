//! Fifty threads at once: each thread's messages are processed once, in the order of acceptance.

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::{LOADED_MS_MAX, PEOPLE_AT_ONCE, VISIBLE_MS_MAX};
use bobbin_tests::observed;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::Talk;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use futures::future::join_all;
use futures::{StreamExt, stream};
use libtest_mimic::Trial;

use crate::run::alone;

const THREADS: usize = 50;
/// Prompts of each thread after its first.
const FURTHER: usize = 2;

pub fn trials() -> Vec<Trial> {
    vec![alone("faults::fifty_threads_interleaved_keep_their_order", interleaved)]
}

/// With the stand-in agent: fifty real ones would take 22 GB and three minutes of two processors to start.
async fn interleaved() {
    let stack = Stack::start(&Options { stand_in_agent: true, ..Options::limits(quick()) });
    let world = World::of(&stack);
    let began = (0..THREADS).map(|index| {
        let platform = Platform::ALL[index % Platform::ALL.len()];
        let world = &world;
        async move { world.begin(platform, "echo: 1").await }
    });
    let mut talks: Vec<Talk<'_>> =
        stream::iter(began).buffered(PEOPLE_AT_ONCE).map(|(talk, _)| talk).collect().await;
    // Nobody can write to a Discord thread before it exists.
    join_all(talks.iter().map(async |talk| {
        eventually(LOADED_MS_MAX, "the thread is there", async || {
            world.session(&talk.thread.key).await.map(|_| ())
        })
        .await
    }))
    .await;
    for round in 0..FURTHER {
        let lines = format!("echo: {}", round + 2);
        stream::iter(talks.iter_mut().map(|talk| talk.say(&lines)))
            .buffered(PEOPLE_AT_ONCE)
            .for_each(async |_| {})
            .await;
    }
    join_all(talks.iter().map(async |talk| {
        for accepted in &talk.accepted {
            let ended = talk.ended_within(LOADED_MS_MAX, &accepted.turn).await;
            assert_eq!(ended.outcome, Outcome::Answered);
        }
        talk.check().await;
    }))
    .await;
    // Beside all promises: the record's own order, and each answer with the words of its prompt.
    for talk in &talks {
        let session = talk.session().await;
        let ended: Vec<&str> = session.ended.iter().map(|ended| ended.id.as_str()).collect();
        let accepted: Vec<&str> = talk.accepted.iter().map(|one| one.turn.as_str()).collect();
        assert_eq!(ended, accepted, "{}", talk.thread.key);
        for (index, turn) in accepted.iter().enumerate() {
            let answer = talk.answer(turn).await;
            let words = answer.lines().next().unwrap_or_default();
            assert_eq!(words, (index + 1).to_string(), "of {answer:?}");
        }
    }
    println!("{THREADS} threads with {} prompts each kept their order", FURTHER + 1);
    eventually(VISIBLE_MS_MAX, "nothing is left over", async || {
        for talk in &talks {
            observed::check(&talk.observed().await?)?;
        }
        Ok::<(), String>(())
    })
    .await;
    world.check_quiet().await;
    stack.end().unwrap();
}
