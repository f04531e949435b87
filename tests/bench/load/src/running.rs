//! Turns that all run at the same time on the ten executions of a new account, as the template deploys it: begun as
//! fast as ingress accepts them, polled until the last has ended, a few of them stopped when all run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::Thread;
use bobbin_tests::stack::{Options, Stack};
use bobbin_tests::world::World;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use crate::chat::{Asked, latencies, words};
use crate::log::{Line, Log};
use crate::stack::{asked, now_ms, until};
use crate::watch::{Kind, Watch};

/// People who write at the same moment: each needs an execution of ingress, and three of ten are left for that.
const WRITERS: usize = 3;
/// The template's executions of the worker at `Concurrency` 10: for messages, and for control messages.
const WORKERS_MAX: usize = 4 + 2;
const EXECUTIONS_MAX: usize = 10;
/// Turns that are stopped while all run.
const STOPS: usize = 20;
/// Time between two stops.
const STOP_EVERY: Duration = Duration::from_secs(3);
/// Time between two checks whether a stopped turn has ended.
const STOP_POLL: Duration = Duration::from_millis(20);
const STOP_MAX: Duration = Duration::from_secs(60);

pub fn run(turns: usize, seconds: usize) -> Result<Value, String> {
    let stack = Stack::start(&Options {
        stand_in_agent: true,
        environment: vec![(
            "BOBBIN_LOG".to_owned(),
            "error,functions=info,dynoxide=error".to_owned(),
        )],
        parameters: json!({"Concurrency": "10"}),
        // All threads are in one guild here.
        ..Options::limits(json!({"tenant_sandboxes": 0}))
    });
    let watch = Watch::start(stack.pid(), stack.folder().path());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    let world = World::of(&stack);
    let load = load(&world, stack.folder().path(), &watch, turns, seconds);
    let load = runtime.block_on(load);
    let kinds = watch.end();
    let tail = load.is_err().then(|| stack.tail());
    let told = load.map_err(|why| format!("{why}\n{}", tail.unwrap_or_default()))?;
    stack.end()?;
    let at_most = |name: &str| kinds.get(name).map_or(0, |kind| kind.processes);
    let functions: usize = ["ingress", "worker", "sweeper"].map(at_most).iter().sum();
    if at_most("worker") > WORKERS_MAX || functions > EXECUTIONS_MAX {
        return Err(format!("{} workers and {functions} functions ran at once", at_most("worker")));
    }
    Ok(told)
}

/// A turn and its thread.
struct Begun {
    thread: Thread,
    asked: Asked,
}

async fn load(
    world: &World,
    folder: &Path,
    watch: &Watch,
    turns: usize,
    seconds: usize,
) -> Result<Value, String> {
    let prompt = &format!("quiet: {seconds} {}", words(0));
    let mut log = Log::of(folder);
    let began = Instant::now();
    // Ingress has three seconds for each, or the chat says that it was refused.
    let begun: Vec<(Begun, u64)> = stream::iter(0..turns)
        .map(|_| async move {
            let before = Instant::now();
            let (thread, turn) = world.discord.start(prompt).await?;
            let took_ms = u64::try_from(before.elapsed().as_millis()).unwrap_or(u64::MAX);
            let asked = asked(turn);
            Ok::<_, String>((Begun { thread, asked }, took_ms))
        })
        .buffered(WRITERS)
        .try_collect()
        .await?;
    let sending_s = began.elapsed().as_secs_f64();
    let accepted_ms: Vec<u64> = begun.iter().map(|(_, took_ms)| *took_ms).collect();
    let begun: Vec<Begun> = begun.into_iter().map(|(one, _)| one).collect();

    let mut parked = BTreeSet::new();
    until("every turn runs and nobody holds it", async || {
        for line in log.more()? {
            if line.event == "message.held" {
                parked.insert(line.turn);
            }
        }
        Ok((parked.len() < turns).then(|| format!("{} of {turns}", parked.len())))
    })
    .await?;
    let all_running_s = began.elapsed().as_secs_f64();
    if all_running_s > seconds as f64 {
        return Err(format!(
            "the first of {turns} turns had ended before the last was at work: that took {all_running_s:.0} s"
        ));
    }

    let (from, from_ms, cpu_before) = (Instant::now(), now_ms(), watch.so_far());
    let mut stopped_ms = Vec::new();
    let every = turns / STOPS.min(turns);
    let (to_stop, to_answer): (Vec<_>, Vec<_>) =
        begun.iter().enumerate().partition(|(at, _)| at % every == 0 && at / every < STOPS);
    for (_, one) in &to_stop {
        stopped_ms.push(stop(world, one).await?);
        tokio::time::sleep(STOP_EVERY).await;
    }
    let (plateau, cpu_after) = (from.elapsed(), watch.so_far());
    let mut in_plateau = Seen::of(&Log::of(folder).more()?).looks;
    in_plateau.retain(|look| look.at_ms >= from_ms);

    until("nothing is on the queue any more", async || {
        match world.aws.queued(&world.deployment.messages_queue_url).await? {
            0 => Ok(None),
            left => Ok(Some(format!("{left} messages"))),
        }
    })
    .await?;
    for (_, one) in to_answer {
        let posts = world.discord.messages(&one.thread.channel).await?;
        latencies(&one.thread, std::slice::from_ref(&one.asked), &posts)?;
    }
    let lines = Log::of(folder).more()?;
    let seen = Seen::of(&lines);
    let too_late = |looks: &[Look]| looks.iter().filter(|look| look.is_too_late).count();
    let late_ms = |looks: &[Look]| spread(looks.iter().map(|look| look.late_ms).collect());
    let kinds = cpu_after.iter().map(|(name, after)| {
        let before = cpu_before.get(name).map_or(0.0, |kind: &Kind| kind.cpu_s);
        (*name, after.cpu_s - before)
    });
    Ok(json!({
        "turns": turns,
        "running_at_once": seen.running_at_once,
        "sending_seconds": sending_s,
        "all_running_seconds": all_running_s,
        "accepted_ms": spread(accepted_ms),
        "looks": seen.looks.len(),
        "late_ms": late_ms(&seen.looks),
        "later_than_its_interval": too_late(&seen.looks),
        "stopped_ms": spread(stopped_ms),
        "plateau_seconds": plateau.as_secs_f64(),
        "plateau_looks": in_plateau.len(),
        "plateau_late_ms": late_ms(&in_plateau),
        "plateau_later_than_its_interval": too_late(&in_plateau),
        "plateau_cpu_seconds": kinds.collect::<BTreeMap<_, _>>(),
        "programs": watch.so_far(),
    }))
}

/// The median, the 99th of a hundred, and the longest.
fn spread(mut values: Vec<u64>) -> Value {
    values.sort_unstable();
    let at = |share: usize| values.get((values.len() * share / 100).min(values.len() - 1));
    if values.is_empty() {
        return Value::Null;
    }
    json!({"p50": at(50), "p99": at(99), "max": values.last()})
}

/// Stops a turn. Returns the milliseconds from the request until its end is on record.
async fn stop(world: &World, one: &Begun) -> Result<u64, String> {
    let said_ms = now_ms();
    let began = Instant::now();
    world.discord.command(&one.thread, "stop", &json!({})).await?;
    while began.elapsed() < STOP_MAX {
        let session = world.session(&one.thread.key).await?;
        let ended = session.ended.iter().find(|end| end.id == *one.asked.turn);
        match ended.map(|end| (&end.outcome, end.at_ms)) {
            Some((Outcome::Cancelled { .. }, at_ms)) => return Ok(at_ms.saturating_sub(said_ms)),
            Some((outcome, _)) => {
                return Err(format!("{} ended as {outcome:?}", one.thread.key));
            }
            None => tokio::time::sleep(STOP_POLL).await,
        }
    }
    Err(format!("{} was not stopped", one.thread.key))
}

/// A delivery of a retried message.
struct Look {
    at_ms: u64,
    /// How much later it came than the delivery before had scheduled.
    late_ms: u64,
    /// By more than the interval itself.
    is_too_late: bool,
}

/// The counts of the functions' log.
struct Seen {
    looks: Vec<Look>,
    running_at_once: usize,
}

impl Seen {
    fn of(lines: &[Line]) -> Self {
        let mut given_back: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        let mut looks = Vec::new();
        let (mut running, mut running_at_once) = (BTreeSet::new(), 0);
        for line in lines {
            let turn = line.turn.as_str();
            match line.event.as_str() {
                "message.held" => {
                    given_back.insert(turn, (line.at_ms, line.delay_ms));
                }
                "message.taken" => {
                    // A message that was brought forward is not late.
                    if let Some((at_ms, delay_ms)) = given_back.remove(turn) {
                        let late_ms = line.at_ms.saturating_sub(at_ms + delay_ms);
                        looks.push(Look {
                            at_ms: line.at_ms,
                            late_ms,
                            is_too_late: late_ms > delay_ms,
                        });
                    }
                }
                "prompt.sent" => {
                    running.insert(turn);
                    running_at_once = running_at_once.max(running.len());
                }
                "run.ended" => drop(running.remove(turn)),
                _ => {}
            }
        }
        Self { looks, running_at_once }
    }
}
