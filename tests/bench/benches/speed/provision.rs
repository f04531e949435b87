//! From a message to the moment at which the agent has it, at each place: of the first message of a thread, for which
//! the sandbox is made, its server started and its session made; and of the first one after a pause, for which it is
//! started again. With the laptop stack's providers and an SSH host, and the real agent. Whose the time was,
//! `shares.rs` says.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;

use crate::figures::Report;
use crate::harness::Harness;
use crate::place::{self, Place};
use crate::process::{Running, cpu_of, runtime};
use crate::programs;
use crate::relay::ANSWER;
use crate::shares::{Delivery, PROMPT_SENT, Shares, ms};
use crate::trips::{Peer, chain};
use crate::turn::single;
use crate::waterfall::{Bar, Picture};

/// One run in this many is made: it takes some seconds.
const SHARE: u64 = 8;
/// Time between two checks whether the sandbox is up, and its agent's server.
const POLL: Duration = Duration::from_millis(4);
/// Time until a sandbox is in the requested state.
const SETTLED_MAX: Duration = Duration::from_secs(60);
/// Folders that are searched for an agent's log.
const DEPTH_MAX: u32 = 8;
/// What an agent's server writes when it is reachable.
const LISTENING: &str = "listening";
/// The goal for our own part.
const OURS_MS_GOAL: f64 = 100.0;
/// The picture's group of what no call shows.
const BOOT_GROUP: usize = 4;

/// A delivery, and the worker's CPU until its prompt was sent.
type Measured = (Delivery, Duration);

/// A thread's worker at a place, and the number of the next message.
struct Course<'a> {
    harness: &'a Harness,
    place: &'a Place,
    running: Running,
    number: &'a mut u64,
}

/// Creates, stops and restarts sandboxes, one after the other, at each place.
///
/// # Errors
/// What a program did instead.
pub fn provision(report: &mut Report, runs: u64) -> Result<(), String> {
    let harness = Harness::with_agent()?;
    let mut number = 0;
    for place in place::all(&harness)? {
        let mut course = Course {
            running: place.worker.start().map_err(|e| e.to_string())?,
            harness: &harness,
            place: &place,
            number: &mut number,
        };
        let (mut firsts, mut resumed) = (Vec::new(), Vec::new());
        // The first one reads the agent from the disk, and does not count.
        for run in 0..=runs.div_ceil(SHARE) {
            let [first, next] = course.thread()?;
            if run > 0 {
                firsts.push(first);
                resumed.push(next);
            }
        }
        course.running.end().map_err(|e| e.to_string())?;
        let word = place.word;
        tell(report, &format!("provision, {word}"), &firsts)?;
        tell(report, &format!("resume, {word}"), &resumed)?;
        let title = format!("The first turn of a thread, until its prompt is sent: {word}");
        draw(&title, &format!("provision-{word}.svg"), &firsts)?;
        let title = format!("The first turn after a pause, until its prompt is sent: {word}");
        draw(&title, &format!("resume-{word}.svg"), &resumed)?;
    }
    Ok(())
}

impl Course<'_> {
    /// A new thread: its first turn, and the first one after a pause. Then its sandbox is deleted, so that the next one
    /// has the machine to itself.
    fn thread(&mut self) -> Result<[Measured; 2], String> {
        let thread = self.harness.thread()?;
        let first = self.turn(&thread)?;
        self.operate(&thread, "pause")?;
        self.settled(Some("stopped"))?;
        let next = self.turn(&thread)?;
        self.operate(&thread, "destroy")?;
        self.settled(None)?;
        Ok([first, next])
    }

    fn turn(&mut self, thread: &str) -> Result<Measured, String> {
        let (harness, place) = (self.harness, self.place);
        let text = format!("echo: {ANSWER}");
        let _ = harness.relays.recorded();
        let before = self.running.cpu().map_err(|e| e.to_string())?;
        let now = || harness.relays.when(Instant::now());
        let begun = (Instant::now(), SystemTime::now());
        // Converts a time of the system's to one of the calls'.
        let when = |at: SystemTime| {
            let since = at.duration_since(begun.1).unwrap_or_default();
            harness.relays.when(begun.0 + since)
        };
        let (mut up, mut boot, mut cpu, mut door) = (None, None, None, None);
        *self.number += 1;
        let message = (thread, *self.number, text.as_str());
        let invoked = harness.turn(&mut self.running, message, POLL, |id| {
            if up.is_none() && state(place)?.as_deref() == Some("started") {
                up = Some(now());
            }
            if boot.is_none()
                && let Some(started) = listens(&place.disks, begun.1)
            {
                door = place.lead(harness)?;
                boot = Some((when(started), now()));
            }
            if cpu.is_none() && harness.relays.has_recorded(PROMPT_SENT) {
                cpu = Some(cpu_of(id).map_err(|e| e.to_string())?);
            }
            Ok(())
        })?;
        drop(door);
        let delivery = Delivery {
            calls: harness.relays.recorded().calls,
            given: harness.relays.when(invoked.given),
            up: up.ok_or("nobody saw the sandbox come up")?,
            boot: boot.ok_or("nobody saw the agent's server begin")?,
        };
        let cpu = cpu.ok_or("the prompt was not sent")?;
        Ok((delivery, cpu.saturating_sub(before)))
    }

    /// Runs an operator command.
    fn operate(&mut self, thread: &str, want: &str) -> Result<(), String> {
        *self.number += 1;
        let work = json!({"work": "operate", "want": want});
        let message = (thread, *self.number, &work);
        let done = self.harness.work(&mut self.running, message, POLL, |_| Ok(()));
        done.map(drop)
    }

    /// Waits until the only sandbox is in this state; `None`: until it is gone.
    fn settled(&self, wanted: Option<&str>) -> Result<(), String> {
        let start = Instant::now();
        loop {
            let seen = state(self.place)?;
            if seen.as_deref() == wanted {
                return Ok(());
            }
            if start.elapsed() > SETTLED_MAX {
                let word = self.place.word;
                return Err(format!("at {word} the sandbox is {seen:?}, not {wanted:?}"));
            }
            thread::sleep(POLL);
        }
    }
}

/// The state of the only sandbox.
fn state(place: &Place) -> Result<Option<String>, String> {
    let mut all = runtime().block_on(place.provider.list())?;
    all.retain(bobbin_tests::provider::Sandbox::live);
    Ok(all.pop().map(|sandbox| sandbox.state))
}

/// When an agent's server was started whose log, written since then, says that it is reachable.
fn listens(disks: &Path, since: SystemTime) -> Option<SystemTime> {
    let mut logs = Vec::new();
    find(disks, 0, &mut logs);
    let started = logs.iter().filter_map(|log| {
        let of = |file: &Path| fs::metadata(file).ok()?.modified().ok();
        let is_new = of(log)? >= since;
        let says_so = is_new && fs::read_to_string(log).ok()?.contains(LISTENING);
        // Written as soon as the server runs.
        let pid_file = log.with_extension("pid");
        says_so.then(|| of(&pid_file)).flatten()
    });
    started.max()
}

/// The logs of agents below a folder.
fn find(folder: &Path, depth: u32, logs: &mut Vec<std::path::PathBuf>) {
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

fn tell(report: &mut Report, of: &str, all: &[Measured]) -> Result<(), String> {
    let (mut shares, mut trips) = (Vec::new(), Vec::new());
    let mut around = Vec::new();
    for (one, _) in all {
        shares.push(one.shares()?);
        let row = chain(&one.calls, one.sent()?);
        let near = |index: &&usize| matches!(one.calls[**index].peer, Peer::Aws | Peer::Chat);
        trips.push(row.len() as f64);
        around.push(row.iter().filter(near).count() as f64);
    }
    let share = |of: fn(&Shares) -> f64| -> Vec<f64> { shares.iter().map(of).collect() };
    let cpu: Vec<f64> = all.iter().map(|(_, cpu)| ms(*cpu)).collect();
    let figures = [
        ("message to prompt sent", "ms", share(|it| it.whole), None),
        ("of that the provider's", "ms", share(|it| it.provider), None),
        ("of that the agent's", "ms", share(|it| it.agent), None),
        ("of that ours", "ms", share(|it| it.ours), Some(OURS_MS_GOAL)),
        ("CPU of the worker until then", "ms", cpu, None),
        ("round trips one after another until the prompt is sent", "", trips, None),
        ("of them those to AWS and the chat", "", around, None),
    ];
    for (figure, unit, values, goal) in figures {
        single(report, &format!("{of}: {figure}"), unit, &values, goal);
    }
    Ok(())
}

/// Draws the delivery in the middle, up to its prompt.
fn draw(title: &str, file: &str, all: &[Measured]) -> Result<(), String> {
    let mut order: Vec<(&Delivery, Shares)> = Vec::new();
    for (one, _) in all {
        order.push((one, one.shares()?));
    }
    order.sort_by(|one, other| one.1.whole.total_cmp(&other.1.whole));
    let (one, shares) = order.get(order.len() / 2).ok_or("nothing to draw")?;
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
    let making = one.making().map(|span| bar("the sandbox comes up", BOOT_GROUP, span, true));
    bars.extend(making);
    bars.push(bar("the agent's server starts", BOOT_GROUP, one.boot, true));
    bars.sort_by(|one, other| one.from_ms.total_cmp(&other.from_ms));
    let mut groups = Peer::ALL.map(|peer| peer.word().to_owned()).to_vec();
    groups.push("waited for".to_owned());
    let Shares { provider, agent, ours, .. } = shares;
    let picture = Picture {
        title: title.to_owned(),
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
    programs::picture(file, &picture.svg())
}
