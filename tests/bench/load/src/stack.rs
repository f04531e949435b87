//! Load on the laptop stack: its people write as fast as ingress accepts it, and read at rest.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bobbin_core::base::ids::Ms;
use bobbin_tests::chat::Thread;
use bobbin_tests::stack::{Options, Stack};
use bobbin_tests::world::World;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use crate::chat::{Asked, latencies, words};
use crate::watch::Watch;

/// People who write at the same moment: each needs a process of ingress.
const WRITERS: usize = 4;
/// The template's share that is nearest to the 100 workers of earlier figures, and its workers for messages.
const SHARE: &str = "200";
const WORKERS: u32 = 60;
const POLL: Duration = Duration::from_millis(500);
/// When to give up.
const DEADLINE: Duration = Duration::from_secs(40 * 60);

/// A thread and its prompts.
struct Talk {
    thread: Thread,
    asked: Vec<Asked>,
}

pub fn run(threads: usize, turns: usize) -> Result<Value, String> {
    let stack = Stack::start(&Options {
        stand_in_agent: true,
        parameters: json!({"Concurrency": SHARE}),
        // All threads are in one guild here.
        ..Options::limits(json!({"tenant_sandboxes": 0}))
    });
    let watch = Watch::start(stack.pid(), stack.folder().path());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    let load = runtime.block_on(load(&World::of(&stack), threads, turns));
    let kinds = watch.end();
    let tail = load.is_err().then(|| stack.tail());
    let told = load.map_err(|why| format!("{why}\n{}", tail.unwrap_or_default()))?;
    stack.end()?;
    Ok(json!({
        "workers": WORKERS,
        "turns_a_second": (threads * turns) as f64 / told.took.as_secs_f64(),
        "seconds": told.took.as_secs_f64(),
        "sending_seconds": told.sending.as_secs_f64(),
        "latencies_ms": told.latencies_ms,
        "programs": kinds,
    }))
}

struct LoadResult {
    /// From the first prompt to the last answer.
    took: Duration,
    /// The part of it until the last prompt was accepted.
    sending: Duration,
    latencies_ms: Vec<u64>,
}

async fn load(world: &World, threads: usize, turns: usize) -> Result<LoadResult, String> {
    let began_ms = now_ms();
    let began = Instant::now();
    let first = &words(0);
    let mut talks: Vec<Talk> = stream::iter(0..threads)
        .map(|_| async move {
            let (thread, turn) = world.discord.start(&format!("echo: {first}")).await?;
            let asked = vec![asked(turn)];
            Ok::<_, String>(Talk { thread, asked })
        })
        .buffered(WRITERS)
        .try_collect()
        .await?;
    // Nobody can write to a Discord thread before it exists.
    until("every thread is there", async || match world.discord.active_threads().await?.len() {
        there if there >= threads => Ok(None),
        there => Ok(Some(format!("{there} of {threads}"))),
    })
    .await?;
    for index in 1..turns {
        let prompt = json!({"prompt": format!("echo: {}", words(index))});
        let prompt = &prompt;
        let accepted: Vec<Asked> = stream::iter(talks.iter().map(|talk| &talk.thread))
            .map(|thread| async move {
                let acted = world.discord.command(thread, "say", prompt).await?;
                Ok::<_, String>(asked(acted.interaction))
            })
            .buffered(WRITERS)
            .try_collect()
            .await?;
        for (talk, asked) in talks.iter_mut().zip(accepted) {
            talk.asked.push(asked);
        }
    }
    let sending = began.elapsed();
    until("nothing is on the queue any more", async || {
        match world.aws.queued(&world.deployment.messages_queue_url).await? {
            0 => Ok(None),
            left => Ok(Some(format!("{left} messages"))),
        }
    })
    .await?;

    let mut latencies_ms = Vec::new();
    let mut last_ms = began_ms;
    for talk in &talks {
        let posts = world.discord.messages(&talk.thread.channel).await?;
        let took = latencies(&talk.thread, &talk.asked, &posts)?;
        let ends = talk.asked.iter().zip(&took);
        last_ms = ends.fold(last_ms, |last, (one, ms)| last.max(one.accepted_ms + ms));
        latencies_ms.extend(took);
    }
    Ok(LoadResult { took: Duration::from_millis(last_ms - began_ms), sending, latencies_ms })
}

/// Polls until there is nothing left to wait for.
pub async fn until(
    what: &str,
    mut look: impl AsyncFnMut() -> Result<Option<String>, String>,
) -> Result<(), String> {
    let began = Instant::now();
    loop {
        let left = match look().await? {
            None => return Ok(()),
            Some(left) => left,
        };
        if began.elapsed() > DEADLINE {
            return Err(format!("after {DEADLINE:?} it is not so that {what}: {left}"));
        }
        tokio::time::sleep(POLL).await;
    }
}

pub fn asked(turn: String) -> Asked {
    Asked { turn, accepted_ms: now_ms() }
}

pub fn now_ms() -> Ms {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| Ms::try_from(since.as_millis()).unwrap_or(Ms::MAX))
}
