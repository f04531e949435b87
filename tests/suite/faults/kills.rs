//! `kill -9` of the worker during one of its remote calls: before the other side has processed it, and after that but
//! before its answer arrives. An undisturbed turn shows which calls there are.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::time::Instant;

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::breakpoints::Condition;
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::{
    FAULTY_ANSWER_MS_MAX, KILLED_MS_MAX, KILLS_AT_ONCE, PEOPLE_AT_ONCE, QUEUE_VISIBILITY_MS,
    STAND_IN_KILLS_AT_ONCE,
};
use bobbin_tests::processes;
use bobbin_tests::stack::{Options, Stack, at_night, quick, words};
use bobbin_tests::talk::{Talk, marked};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use futures::future::join_all;
use futures::{FutureExt, StreamExt, stream};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::places::Place;
use crate::run::alone;

const PROMPT: &str = "echo: the first words";
/// Undisturbed turns on each platform: a call that is not in all of them is an extra poll, not a step.
const RECORDINGS: usize = 2;
/// Tested calls of one name, apart from writes of the record: a poll repeats as time passes.
const POLLS_MAX: usize = 3;
/// Threads that may miss a point, because a poll went differently, before it is given up.
const TRIES: usize = 3;
/// Points of a run that may be given up: on a busy machine a poll in both recordings need not come again.
const GIVEN_UP_MAX: usize = 3;
/// The claim of a message: a crash before it costs the thread the queue's own visibility timeout.
const CLAIM: &str = "sqs ChangeMessageVisibility";

/// Limits how many run at once, so that ingress stays within the platforms' three seconds.
static PERMITS: Semaphore = Semaphore::const_new(PEOPLE_AT_ONCE);

/// The agent in the sandboxes, and how much of it the machine can run.
#[derive(Clone, Copy)]
struct Agent {
    word: &'static str,
    is_stand_in: bool,
    /// Where its sandboxes are.
    place: Place,
    /// Its mode, if that is not the default.
    mode: Option<&'static str>,
    /// Kill points for each platform without `BOBBIN_KILLS`.
    sample: usize,
    at_once: usize,
}

/// OpenCode itself: 6 s of processor time and 450 MB for each thread.
const REAL: Agent = Agent {
    word: "with_opencode",
    is_stand_in: false,
    place: Place::Daytona,
    mode: None,
    sample: 4,
    at_once: KILLS_AT_ONCE,
};
/// The stand-in: the test kills the worker, whatever agent it uses.
const STAND_IN: Agent = Agent {
    word: "with_a_stand_in",
    is_stand_in: true,
    place: Place::Daytona,
    mode: None,
    sample: 8,
    at_once: STAND_IN_KILLS_AT_ONCE,
};
/// The same for sandboxes that are created, found and reached in another way.
const AT_VERCEL: Agent =
    Agent { word: "with_a_stand_in_at_vercel", place: Place::Vercel, sample: 4, ..STAND_IN };
const AT_SSH: Agent = Agent {
    word: "with_a_stand_in_on_an_ssh_host",
    place: Place::Ssh,
    sample: 4,
    at_once: KILLS_AT_ONCE,
    ..STAND_IN
};

/// The same in the daemon's own sessions, where a prompt reaches its agent in another way.
const NATIVE: Agent =
    Agent { word: "natively_with_a_stand_in", mode: Some("native"), sample: 6, ..STAND_IN };

impl Agent {
    fn options(self) -> Options {
        let mut options = self.place.options(limits());
        options.stand_in_agent = self.is_stand_in;
        if let Some(mode) = self.mode {
            options.parameters = json!({"SandboxRuntimeMode": mode});
        }
        options
    }
}

/// Where the worker is killed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Point {
    platform: Platform,
    call: String,
    nth: usize,
    after: bool,
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { platform, call, nth, after } = self;
        let when = if *after { "after" } else { "before" };
        write!(f, "{} {when} {call} #{nth}", platform.word())
    }
}

/// A thread whose worker was killed, and when.
struct Killed<'w> {
    talk: Talk<'w>,
    turn: String,
    at: Instant,
}

pub fn trials() -> Vec<Trial> {
    // The test kills the worker: with OpenCode itself, which takes minutes, only at night.
    let by_night = at_night().then_some(REAL);
    [STAND_IN, AT_VERCEL, AT_SSH, NATIVE]
        .into_iter()
        .chain(by_night)
        .map(|agent| {
            let name = format!("faults::{}_kill_9_costs_only_time", agent.word);
            alone(&name, async move || match agent.place.lacks() {
                Some(why) => eprintln!("SKIPPED: {why}"),
                None => kills(agent).await,
            })
        })
        .collect()
}

/// Deliveries of a crashed worker return after six seconds.
pub fn limits() -> Value {
    let mut limits = quick();
    limits["visibility_ms"] = json!(6_000);
    limits["heartbeat_ms"] = json!(2_000);
    limits["lifecycle_call_ms"] = json!(5_000);
    limits
}

async fn kills(agent: Agent) {
    let stack = Stack::start(&agent.options());
    let world = agent.place.world(&stack);
    let mut points = Vec::new();
    let recorded = join_all(Platform::ALL.map(|platform| record(&world, platform))).await;
    for (platform, all) in Platform::ALL.into_iter().zip(recorded) {
        let sampled = sampled(&all, agent.sample);
        println!(
            "{} {}: {} kill points, {} of them taken from BOBBIN_SEED={} on",
            agent.word,
            platform.word(),
            all.len(),
            sampled.len(),
            seed()
        );
        points.extend(sampled);
    }
    let count = points.len();
    // Before the claim only the queue's own clock returns the message, and moving it affects every thread.
    let (claims, others): (Vec<_>, Vec<_>) =
        points.into_iter().partition(|point| point.call == CLAIM && !point.after);
    let mut ends = at_once(agent.at_once, others, async |point| {
        let took_ms = match kill(&world, &point).await {
            Some(killed) => Some(survived(killed).await),
            None => None,
        };
        (took_ms, point)
    })
    .await;
    let killed =
        at_once(agent.at_once, claims, async |point| (kill(&world, &point).await, point)).await;
    world.advance_clock(QUEUE_VISIBILITY_MS).await.unwrap();
    for killed in killed {
        ends.push(match killed {
            Ok((Some(killed), point)) => Ok((Some(survived(killed).await), point)),
            Ok((None, point)) => Ok((None, point)),
            Err(why) => Err(why),
        });
    }
    let (mut survived, mut given_up, mut trouble) = (Vec::new(), Vec::new(), Vec::new());
    for end in ends {
        match end {
            Ok((Some(took_ms), point)) => survived.push((took_ms, point)),
            Ok((None, point)) => given_up.push(point.to_string()),
            Err(why) => trouble.push(why),
        }
    }
    survived.sort_by_key(|(took_ms, _)| *took_ms);
    for (took_ms, point) in survived.iter().rev().take(3) {
        println!("{took_ms:>6} ms from the kill to the answer: {point}");
    }
    println!("{}: kills survived: {} of {count}", agent.word, survived.len());
    assert!(trouble.is_empty(), "{}", trouble.join("\n"));
    println!("no thread came to: {given_up:?}");
    assert!(given_up.len() <= GIVEN_UP_MAX, "{given_up:?}");
    world.check_quiet().await;
    stack.end().unwrap();
}

/// The worker's calls that every undisturbed first turn makes, each before and after.
async fn record(world: &World, platform: Platform) -> Vec<Point> {
    let recordings = join_all((0..RECORDINGS).map(|_| undisturbed(world, platform))).await;
    let mut order = recordings[0].clone();
    // Apart from the claims, a change of the visibility is a heartbeat, which depends on time and not on a step.
    let claims = match platform {
        Platform::Discord => 2,
        Platform::Slack => 1,
    };
    order.retain(|(call, nth)| match call.as_str() {
        "dynamodb UpdateItem" | "dynamodb TransactWriteItems" => true,
        CLAIM => *nth <= claims,
        _ => *nth <= POLLS_MAX,
    });
    order.retain(|call| recordings.iter().all(|other| other.contains(call)));
    assert!(order.len() > 20, "a first message takes more calls than {order:?}");
    let points = order.into_iter().flat_map(|(call, nth)| {
        [false, true].map(|after| Point { platform, call: call.clone(), nth, after })
    });
    points.collect()
}

async fn begin<'w>(
    world: &'w World,
    platform: Platform,
    text: &str,
    mark: &str,
) -> (Talk<'w>, String) {
    let _permit = PERMITS.acquire().await;
    world.begin_marked(platform, text, mark).await
}

/// The calls of one undisturbed first turn in order; those of one name are numbered from 1.
async fn undisturbed(world: &World, platform: Platform) -> Vec<(String, usize)> {
    let (text, mark) = marked(PROMPT);
    let breakpoint = world.breakpoint(&condition_of(&mark, "", 0, false)).await;
    let (talk, turn) = begin(world, platform, &text, &mark).await;
    let ended = talk.ended_within(FAULTY_ANSWER_MS_MAX, &turn).await;
    assert_eq!(ended.outcome, Outcome::Answered);
    talk.check().await;
    let calls = breakpoint.status().await.unwrap().calls;
    breakpoint.remove().await.unwrap();
    talk.finish().await;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let number = |call: String| {
        let nth = seen.entry(call.clone()).or_insert(0);
        *nth += 1;
        (call, *nth)
    };
    calls.into_iter().map(number).collect()
}

/// Some of them, evenly spread, as the environment sets.
pub fn sampled<T: Clone>(all: &[T], count: usize) -> Vec<T> {
    let wanted = match std::env::var("BOBBIN_KILLS").as_deref() {
        Ok("all") => all.len(),
        Ok(number) => number.parse().expect("BOBBIN_KILLS is `all` or a number"),
        Err(_) => count,
    };
    let wanted = wanted.min(all.len());
    let mut taken: Vec<usize> =
        (0..wanted).map(|index| (index * all.len() / wanted + seed()) % all.len()).collect();
    taken.sort_unstable();
    taken.dedup();
    taken.into_iter().map(|index| all[index].clone()).collect()
}

fn seed() -> usize {
    std::env::var("BOBBIN_SEED").map_or(0, |seed| seed.parse().expect("BOBBIN_SEED is a number"))
}

/// Does the same for many points, as many at once as the machine can run. A failure names its point.
async fn at_once<T>(
    count: usize,
    points: Vec<Point>,
    each: impl AsyncFn(Point) -> T,
) -> Vec<Result<T, String>> {
    let each = &each;
    let runs = points.into_iter().map(|point| async move {
        let name = point.to_string();
        let run = AssertUnwindSafe(each(point)).catch_unwind();
        run.await.map_err(|panic| format!("{name}: {}", words(panic.as_ref())))
    });
    stream::iter(runs).buffer_unordered(count).collect().await
}

/// Begins a thread, waits until its worker's call is held, and kills exactly that process; `None` if no thread made
/// that call.
async fn kill<'w>(world: &'w World, point: &Point) -> Option<Killed<'w>> {
    for _ in 0..TRIES {
        let (text, mark) = marked(PROMPT);
        let breakpoint =
            world.breakpoint(&condition_of(&mark, &point.call, point.nth, point.after)).await;
        let (talk, turn) = begin(world, point.platform, &text, &mark).await;
        let held = eventually(FAULTY_ANSWER_MS_MAX, "the call is held", async || match breakpoint
            .held_process()
            .await
        {
            Ok(process) => Ok(Some(process)),
            Err(_) if talk.has_ended(&turn).await => Ok(None),
            Err(why) => Err(why),
        })
        .await;
        let Some(process) = held else {
            // One poll fewer than in the recordings: this thread finishes, another one tries again.
            breakpoint.remove().await.unwrap();
            talk.finish().await;
            continue;
        };
        let at = Instant::now();
        processes::kill(process);
        eventually(KILLED_MS_MAX, "the worker is gone", async || {
            let state = breakpoint.status().await?.state;
            assert_ne!(state, "passed", "the call was over before the worker was");
            if processes::alive(process) {
                Err(format!("{process} lives, the breakpoint is {state}"))
            } else {
                Ok(())
            }
        })
        .await;
        breakpoint.remove().await.unwrap();
        return Some(Killed { talk, turn, at });
    }
    None
}

/// Waits for the end of the thread's turn and checks the promises, then again after a reset, which waits behind the
/// redelivery. Returns the milliseconds from the kill to the end.
async fn survived(killed: Killed<'_>) -> u128 {
    let Killed { talk, turn, at } = killed;
    let ended = talk.ended_within(FAULTY_ANSWER_MS_MAX, &turn).await;
    let took_ms = at.elapsed().as_millis();
    assert_eq!(ended.outcome, Outcome::Answered);
    talk.finish().await;
    took_ms
}

fn condition_of(mark: &str, call: &str, nth: usize, after: bool) -> Condition {
    Condition {
        text: mark.to_owned(),
        function: "Worker".to_owned(),
        call: call.to_owned(),
        nth,
        after,
    }
}
