//! From the first message of a thread to the moment at which the agent has it: the sandbox is made, its server started, its
//! session made, with the laptop stack's provider and the real agent.
//!
//! What is whose: the provider's is the time in which the sandbox is not up yet or one of its calls is under way; the
//! agent's that from the start of its server until it listens, and each of its calls. Ours is what is left: computing, and
//! waiting between two looks when there would have been something to see. The round trips to AWS and the chat are counted and
//! their time is nobody's: what they take here says nothing about what they take elsewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::figures::Report;
use crate::harness::Harness;
use crate::process::{Running, cpu_of, runtime};
use crate::programs;
use crate::relay::{ANSWER, PROMPT_SENT};
use crate::trips::{Call, Peer, chain, first};
use crate::turn::{ms, single};
use crate::waterfall::{Bar, Picture};

/// Of so many runs one is made: it takes some seconds.
const SHARE: u64 = 8;
/// Between two looks whether the sandbox is up, and the agent's server there.
const POLL: Duration = Duration::from_millis(4);
/// Sandboxes that were ended are gone by then.
const GONE_MAX: Duration = Duration::from_secs(60);
/// Folders that are searched for an agent's log.
const DEPTH_MAX: u32 = 8;
/// What an agent's server writes when it can be reached.
const LISTENING: &str = "listening";
/// What is left to us: the goal.
const OURS_MS_GOAL: f64 = 100.0;
/// The picture's group of what no call shows.
const BOOT_GROUP: usize = 4;

/// One first turn of a thread.
struct First {
    calls: Vec<Call>,
    given: Duration,
    /// When the sandbox was up.
    up: Duration,
    /// When the agent's server listened.
    began: Duration,
    cpu: Duration,
}

/// Has sandboxes made, one after the other.
///
/// # Errors
/// What a program did instead.
pub fn provision(report: &mut Report, runs: u64) -> Result<(), String> {
    let harness = Harness::with_agent()?;
    let mut running = harness.ours("worker")?.start().map_err(|e| e.to_string())?;
    let (mut firsts, mut known) = (Vec::new(), Vec::new());
    // The first one reads the agent from the disk, and does not count.
    for number in 0..=runs.div_ceil(SHARE) {
        let one = one(&mut running, &harness, number, &mut known)?;
        clear(&harness)?;
        if number > 0 {
            firsts.push(one);
        }
    }
    running.end().map_err(|e| e.to_string())?;
    tell(report, &firsts)?;
    draw(&firsts)
}

fn one(
    running: &mut Running,
    harness: &Harness,
    number: u64,
    known: &mut Vec<PathBuf>,
) -> Result<First, String> {
    let (thread, text) = (harness.thread()?, format!("echo: {ANSWER}"));
    let _ = harness.relays.recorded();
    let before = running.cpu().map_err(|e| e.to_string())?;
    let now = || harness.relays.when(Instant::now());
    let sandboxes = harness.world.state_dir.join("daytona");
    let (mut up, mut began, mut cpu) = (None, None, None);
    let invoked = harness.turn(running, (&thread, number + 1, &text), POLL, |id| {
        if up.is_none() && is_up(harness)? {
            up = Some(now());
        }
        if began.is_none() && has_begun(&sandboxes, known) {
            began = Some(now());
        }
        if cpu.is_none() && harness.relays.has_recorded(PROMPT_SENT) {
            cpu = Some(cpu_of(id).map_err(|e| e.to_string())?);
        }
        Ok(())
    })?;
    Ok(First {
        calls: harness.relays.recorded().calls,
        given: harness.relays.when(invoked.given),
        up: up.ok_or("nobody saw the sandbox come up")?,
        began: began.ok_or("nobody saw the agent's server begin")?,
        cpu: cpu.ok_or("the prompt was not sent")?.saturating_sub(before),
    })
}

/// Whether a sandbox is up.
fn is_up(harness: &Harness) -> Result<bool, String> {
    let sandboxes = runtime().block_on(harness.world.provider.list())?;
    Ok(sandboxes.iter().any(|sandbox| sandbox.state == "started"))
}

/// Ends every sandbox, so that the next one has the machine to itself.
fn clear(harness: &Harness) -> Result<(), String> {
    let start = Instant::now();
    runtime().block_on(async {
        for sandbox in harness.world.provider.list().await? {
            harness.world.provider.lose(&sandbox).await?;
        }
        Ok::<_, String>(())
    })?;
    while !runtime()
        .block_on(harness.world.provider.list())?
        .is_empty()
    {
        if start.elapsed() > GONE_MAX {
            return Err("the sandboxes do not go away".to_owned());
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// Whether an agent's log that was not known before says that its server can be reached; notes it as known then.
fn has_begun(sandboxes: &Path, known: &mut Vec<PathBuf>) -> bool {
    let mut logs = Vec::new();
    find(sandboxes, 0, &mut logs);
    let says_so = |log: &PathBuf| {
        !known.contains(log) && fs::read_to_string(log).is_ok_and(|text| text.contains(LISTENING))
    };
    let found = logs.into_iter().find(says_so);
    let has_begun = found.is_some();
    known.extend(found);
    has_begun
}

/// The logs of agents below a folder.
fn find(folder: &Path, depth: u32, logs: &mut Vec<PathBuf>) {
    let log = folder.join(".bobbin/opencode.log");
    if log.is_file() {
        logs.push(log);
        return;
    }
    if depth == DEPTH_MAX {
        return;
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find(&entry.path(), depth + 1, logs);
        }
    }
}

/// Spans of time, and how long they take together where they overlap.
#[derive(Debug, Default, Clone)]
struct Spans(Vec<(Duration, Duration)>);

impl Spans {
    fn covered(&self) -> f64 {
        let mut spans = self.0.clone();
        spans.sort();
        let (mut sum, mut until) = (Duration::ZERO, Duration::ZERO);
        for (from, to) in spans {
            sum += to.saturating_sub(from.max(until));
            until = until.max(to);
        }
        ms(sum)
    }
}

impl First {
    fn sent(&self) -> Result<usize, String> {
        first(&self.calls, PROMPT_SENT).ok_or_else(|| "nobody sent the prompt".to_owned())
    }

    /// From when the sandbox was asked for until it was up.
    fn making(&self) -> Option<(Duration, Duration)> {
        let create = first(&self.calls, "create sandbox")?;
        Some((self.calls[create].begun, self.up))
    }

    /// From the end of the script that starts the agent's server until that listened.
    fn boot(&self) -> Option<(Duration, Duration)> {
        let mut scripts = self.calls.iter().filter(|call| call.name == "run a script");
        let script = scripts.rfind(|call| call.ended <= self.began)?;
        Some((script.ended, self.began))
    }

    /// Milliseconds until the prompt was sent: all of them, and the provider's, the agent's and ours.
    fn shares(&self) -> Result<[f64; 4], String> {
        let end = self.calls[self.sent()?].ended;
        // Looks at a server that does not listen yet are ours.
        let of = |peer: Peer, from: Duration| {
            let calls = self.calls.iter();
            let calls = calls.filter(move |call| call.peer == peer && call.begun >= from);
            calls
                .filter(move |call| call.begun < end)
                .map(move |call| (call.begun, call.ended.min(end)))
        };
        let agent = Spans(of(Peer::Agent, self.began).chain(self.boot()).collect());
        let mut taken = Spans(
            of(Peer::Provider, self.given)
                .chain(self.making())
                .collect(),
        );
        taken.0.extend(&agent.0);
        let (whole, theirs, agent) = (ms(end - self.given), taken.covered(), agent.covered());
        let around = of(Peer::Aws, self.given).chain(of(Peer::Chat, self.given));
        taken.0.extend(around);
        Ok([whole, theirs - agent, agent, whole - taken.covered()])
    }
}

fn tell(report: &mut Report, firsts: &[First]) -> Result<(), String> {
    let mut shares: [Vec<f64>; 4] = Default::default();
    let (mut trips, mut around) = (Vec::new(), Vec::new());
    for one in firsts {
        for (all, value) in shares.iter_mut().zip(one.shares()?) {
            all.push(value);
        }
        let row = chain(&one.calls, one.sent()?);
        let near = |index: &&usize| matches!(one.calls[**index].peer, Peer::Aws | Peer::Chat);
        trips.push(row.len() as f64);
        around.push(row.iter().filter(near).count() as f64);
    }
    let [whole, provider, agent, ours] = &shares;
    single(
        report,
        "provision: message to prompt sent",
        "ms",
        whole,
        None,
    );
    single(
        report,
        "provision: of that the provider's",
        "ms",
        provider,
        None,
    );
    single(report, "provision: of that the agent's", "ms", agent, None);
    single(
        report,
        "provision: of that ours",
        "ms",
        ours,
        Some(OURS_MS_GOAL),
    );
    let cpu: Vec<f64> = firsts.iter().map(|one| ms(one.cpu)).collect();
    single(
        report,
        "provision: CPU of the worker until then",
        "ms",
        &cpu,
        None,
    );
    let figure = "provision: round trips one after another until the prompt is sent";
    single(report, figure, "", &trips, None);
    let figure = "provision: of them those to AWS and the chat";
    single(report, figure, "", &around, None);
    Ok(())
}

/// Draws the first turn in the middle, up to its prompt.
fn draw(firsts: &[First]) -> Result<(), String> {
    let mut order: Vec<(&First, [f64; 4])> = Vec::new();
    for one in firsts {
        order.push((one, one.shares()?));
    }
    order.sort_by(|one, other| one.1[0].total_cmp(&other.1[0]));
    let (one, [_, provider, agent, ours]) = order.get(order.len() / 2).ok_or("nothing to draw")?;
    let sent = one.sent()?;
    let end = one.calls[sent].ended;
    let row = chain(&one.calls, sent);
    let at = |time: Duration| ms(time.saturating_sub(one.given));
    let bar = |name: &str, group: usize, (from, to): (Duration, Duration), is_critical| Bar {
        name: name.to_owned(),
        group,
        from_ms: at(from),
        to_ms: at(to.min(end)),
        is_critical,
    };
    let calls = one.calls.iter().enumerate();
    let calls = calls.filter(|(_, call)| call.begun < end);
    let mut bars: Vec<Bar> = calls
        .map(|(index, call)| {
            let span = (call.begun, call.ended);
            bar(&call.name, call.peer as usize, span, row.contains(&index))
        })
        .collect();
    let making = one
        .making()
        .map(|span| bar("the sandbox is made", BOOT_GROUP, span, true));
    let boot = one
        .boot()
        .map(|span| bar("the agent's server starts", BOOT_GROUP, span, true));
    bars.extend(making.into_iter().chain(boot));
    bars.sort_by(|one, other| one.from_ms.total_cmp(&other.from_ms));
    let mut groups = Peer::ALL.map(|peer| peer.word().to_owned()).to_vec();
    groups.push("waited for".to_owned());
    let picture = Picture {
        title: "The first turn of a thread, until its prompt is sent".to_owned(),
        notes: vec![
            "The laptop stack with the real agent; what its AWS and chat take is nobody's."
                .to_owned(),
            format!(
                "Provider {provider:.0} ms, agent {agent:.0} ms, ours {ours:.0} ms. Filled: what follows each other."
            ),
        ],
        groups,
        bars,
        marks: vec![("prompt sent".to_owned(), at(end))],
    };
    programs::picture("provision.svg", &picture.svg())
}
