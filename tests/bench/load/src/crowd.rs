//! Very many turns at once over the simulator, on few executions.

use std::time::Instant;

use bobbin_sim::crowd::Crowd;
use serde_json::{Value, json};

pub fn run(turns: usize, executions: usize, call_ms: usize) -> Result<Value, String> {
    let began = Instant::now();
    let crowd = Crowd { turns, executions, call_ms: call_ms as u64, seed: 1 };
    let came = crowd.run()?;
    Ok(json!({
        "seconds": began.elapsed().as_secs_f64(),
        "looks_until_all_were_at_work": came.looks_before.all,
        "too_late_of_them": came.looks_before.too_late,
        "latest_of_them_ms": came.looks_before.latest_ms,
        "looks_since": came.looks.all,
        "latest_since_ms": came.looks.latest_ms,
        "stopped_ms": came.stopped_ms,
        "calls": came.calls,
    }))
}
