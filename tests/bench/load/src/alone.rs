//! Our own limit: the core and `drive` over the simulator, in virtual time, on one thread, without trouble.
//!
//! Each thread has a world of its own, because the simulator looks at all its threads whenever one does something; the
//! product's functions know one thread at a time as well.

use std::time::{Duration, Instant};

use bobbin_core::base::limits::Limits;
use bobbin_sim::plan::{PlannedEvent, Trouble, prompt};
use bobbin_sim::promises;
use bobbin_sim::state::settled;
use bobbin_sim::world::World;
use serde_json::{Value, json};

/// Virtual time between two prompts, so that none waits behind another and the sandbox is not paused.
const BETWEEN_MS: u64 = 60_000;

pub fn run(threads: usize, turns: usize) -> Result<Value, String> {
    let (mut took, mut cpu_ns, mut calls) = (Duration::ZERO, 0, 0);
    for thread in 0..threads {
        let world = World::new(1, thread as u64, Trouble::None, Limits::DEFAULT);
        for turn in 0..turns {
            let message = world.message(0, &format!("m{turn}"), prompt("do it"));
            world.plan(turn as u64 * BETWEEN_MS, 0, PlannedEvent::Send(message));
        }
        let (began, before_ns) = (Instant::now(), on_cpu_ns()?);
        world.run(settled)?;
        cpu_ns += on_cpu_ns()? - before_ns;
        took += began.elapsed();
        world.settle();
        let inner = world.lock();
        calls += u64::from(inner.calls);
        let history = &inner.places[0].history;
        if history.accepted.len() != turns {
            return Err(format!("{} prompts were accepted", history.accepted.len()));
        }
        promises::check(history)?;
    }
    let all = (threads * turns) as f64;
    Ok(json!({
        "turns_a_second": all / took.as_secs_f64(),
        "cpu_us_a_turn": cpu_ns as f64 / 1e3 / all,
        "calls_a_turn": calls as f64 / all,
    }))
}

/// CPU of this thread so far.
fn on_cpu_ns() -> Result<u64, String> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").map_err(|e| e.to_string())?;
    let first = text.split_whitespace().next().and_then(|ns| ns.parse().ok());
    first.ok_or_else(|| "this kernel counts no CPU time a thread".to_owned())
}
