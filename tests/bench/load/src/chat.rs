//! Checks the posts of a Discord thread: each prompt answered once, in order, and when.

use bobbin_core::base::ids::Ms;
use bobbin_core::base::names::{PostKind, post_key};
use bobbin_tests::chat::{ChatMessage, Thread};

/// The epoch of Discord's ids.
const DISCORD_EPOCH_MS: u64 = 1_420_070_400_000;

/// An accepted prompt.
pub struct Asked {
    pub turn: String,
    pub accepted_ms: Ms,
}

/// How long each took, from acceptance to its answer in the thread.
///
/// # Errors
/// What was lost, doubled, or out of order.
pub fn latencies(
    thread: &Thread,
    asked: &[Asked],
    posts: &[ChatMessage],
) -> Result<Vec<u64>, String> {
    let answers: Vec<&ChatMessage> = asked
        .iter()
        .enumerate()
        .map(|(index, one)| answer(thread, one, &words(index), posts))
        .collect::<Result<_, _>>()?;
    let times: Vec<Ms> = answers.iter().filter_map(|post| posted_ms(post)).collect();
    if times.len() != answers.len() || !answers.is_sorted_by(|a, b| number(a) < number(b)) {
        return Err(format!("{}: answers are out of order", thread.key));
    }
    let pairs = asked.iter().zip(times);
    Ok(pairs.map(|(one, at_ms)| at_ms.saturating_sub(one.accepted_ms)).collect())
}

/// The agent's expected answer to the prompt at this place.
pub fn words(index: usize) -> String {
    format!("answer-{}", index + 1)
}

/// The only post that answers it; no other one has its key or words.
fn answer<'a>(
    thread: &Thread,
    one: &Asked,
    words: &str,
    posts: &'a [ChatMessage],
) -> Result<&'a ChatMessage, String> {
    let key = post_key(&thread.key, &one.turn.as_str().into(), &PostKind::Chunk(0));
    let is_it = |post: &&ChatMessage| post.key.as_deref() == Some(&key);
    let says = |post: &&ChatMessage| post.by_bot && post.text.lines().next() == Some(words);
    match (posts.iter().filter(is_it).count(), posts.iter().filter(says).count()) {
        (1, 1) => {}
        (answers, words_there) => {
            return Err(format!(
                "{}: {words} was answered {answers} times, its words stand there {words_there} times",
                thread.key
            ));
        }
    }
    posts
        .iter()
        .filter(is_it)
        .find(says)
        .ok_or_else(|| format!("{}: the answer to {words} says something else", thread.key))
}

fn number(post: &ChatMessage) -> Option<u64> {
    post.id.parse().ok()
}

fn posted_ms(post: &ChatMessage) -> Option<Ms> {
    number(post).map(|id| (id >> 22) + DISCORD_EPOCH_MS)
}
