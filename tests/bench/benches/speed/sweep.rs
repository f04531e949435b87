//! The sweeper's tick over very many sessions: its time and its billed amount.
//!
//! `BOBBIN_BENCH_SESSIONS` is the number of sessions at the most.

use std::env;
use std::time::Duration;

use serde_json::{Value, json};

use crate::account::{Account, Asked};
use crate::figures::{Report, Sample};
use crate::harness::Harness;
use crate::ingress::ms;
use crate::process::Program;
use crate::table::{NAME, Table};

/// The event of a tick.
const TICK: &[u8] = include_bytes!("../../../../events/sweeper/tick.json");
/// Most sessions, unless `BOBBIN_BENCH_SESSIONS` says otherwise; it begins with a hundredth of them.
const SESSIONS: u64 = 1_000_000;
const DUE: u64 = 1_000;
/// More than one tick may send, to see what it does then.
const FLOOD: u64 = 100_000;
/// Sandboxes that the provider lists, if any.
const LISTED: u64 = 1_000;
/// One run in this many is of the sweep: it takes that much longer.
const SHARE: u64 = 4;
/// Duration of an answer over an imitated network.
const NETWORK: Duration = Duration::from_millis(5);
/// Ticks in a month of 30 days.
const TICKS_A_MONTH: f64 = 43_200.0;
/// Price of a read unit, in dollars (docs/COSTS.md).
const UNIT_DOLLARS: f64 = 0.125 / 1e6;
/// A check of every armed session is part of every tick, or of none.
const LOOK_MS_EVERY_TICK: u64 = 60_000;
/// Ten times as many as the provider's list can hold; beyond that no check is made.
const LOOK_SESSIONS_MAX: u64 = 100_000;
const LOOK_MS_NEVER: u64 = u64::MAX / 2;
/// How much the computed and the reported units may differ.
const UNITS_APART_MAX: f64 = 0.02;
const MIB: f64 = 1024.0 * 1024.0;

/// The conditions of a tick.
#[derive(Clone, Copy)]
struct Condition {
    what: &'static str,
    /// Messages that it must send; `None`: any number.
    messages: Option<u64>,
    reconcile_ms: u64,
    answer_after: Duration,
    listed: u64,
    /// It is not measured with more sessions.
    sessions_max: u64,
}

const NOTHING: Condition = Condition {
    what: "nothing due",
    messages: Some(0),
    reconcile_ms: LOOK_MS_NEVER,
    answer_after: Duration::ZERO,
    listed: 0,
    sessions_max: u64::MAX,
};

/// The measurements of some ticks.
#[derive(Default)]
struct Taken {
    time: Vec<f64>,
    cpu: Vec<f64>,
    calls: Vec<f64>,
    units: Vec<f64>,
    messages: Vec<f64>,
    peak: f64,
}

struct Measured {
    condition: Condition,
    /// By the number of sessions.
    sizes: Vec<(u64, Taken)>,
}

/// Fills the table step by step, and makes the sweeper tick at each size.
///
/// # Errors
/// What failed.
pub fn sweep(report: &mut Report, runs: u64) -> Result<(), String> {
    let most = match env::var("BOBBIN_BENCH_SESSIONS").map(|text| text.parse()) {
        Err(_) => SESSIONS,
        Ok(Ok(most)) if most >= 100 * DUE => most,
        Ok(_) => {
            return Err(format!("BOBBIN_BENCH_SESSIONS must be a number from {}", 100 * DUE));
        }
    };
    let runs = runs.div_ceil(SHARE);
    let harness = Harness::new()?;
    let mut table = Table::start()?;
    let tenant = format!("discord:{}", table.ready.guild);
    let thread = |number| format!("{tenant}:{}", table.ready.first_thread + number);
    let threads = (0..LISTED).map(|number| (tenant.clone(), thread(number)));
    let account = Account::start(&harness, table.ready.address, threads)?;
    let program = harness.ours("sweeper")?;
    let place = Setup { account: &account, program: &program, runs };

    let due = Condition { what: "1,000 due", messages: Some(DUE), ..NOTHING };
    let conditions = [
        NOTHING,
        due,
        Condition { what: "1,000 due, 5 ms a call", answer_after: NETWORK, ..due },
        Condition { what: "nothing due, 1,000 sandboxes", listed: LISTED, ..NOTHING },
        Condition {
            what: "nothing due, 1,000 sandboxes, 5 ms a call",
            listed: LISTED,
            answer_after: NETWORK,
            ..NOTHING
        },
        Condition {
            what: "nothing due, a look at all that is armed",
            messages: None,
            reconcile_ms: LOOK_MS_EVERY_TICK,
            sessions_max: LOOK_SESSIONS_MAX,
            ..NOTHING
        },
    ];
    let mut all = conditions.map(|condition| Measured { condition, sizes: Vec::new() });
    let mut item_bytes = 0;
    for sessions in [most / 100, most / 10, most] {
        let filled = table.fill(sessions, 0)?;
        item_bytes = filled.item_bytes.max(item_bytes);
        eprintln!(
            "{sessions} sessions: {:.0} MB, in {} ms",
            filled.file_bytes as f64 / 1e6,
            filled.took_ms
        );
        let mut is_due = false;
        for measured in &mut all {
            if sessions > measured.condition.sessions_max {
                continue;
            }
            let wants_due = measured.condition.messages == Some(DUE);
            if is_due && !wants_due {
                table.fill(sessions, 0)?;
            }
            is_due = wants_due;
            // An item for which a tick has sent a message is not due for the next.
            let due =
                |table: &mut Table| if wants_due { table.due_anew(sessions, DUE) } else { Ok(()) };
            let taken = place.ticks(&measured.condition, || due(&mut table))?;
            measured.sizes.push((sessions, taken));
        }
    }
    let flood = FLOOD.min(most);
    table.due_anew(most, flood)?;
    let condition = Condition {
        what: "100,000 due, 5 ms a call",
        messages: None,
        answer_after: NETWORK,
        ..NOTHING
    };
    let flooded = Measured { sizes: vec![(most, place.ticks(&condition, || Ok(()))?)], condition };
    report
        .conditions
        .push(format!("sweep: items of {item_bytes} bytes, every session in the due index"));
    for measured in all.iter().chain([&flooded]) {
        tell(report, measured);
    }
    Ok(())
}

/// The sweeper with an account that the measurements share.
struct Setup<'a> {
    account: &'a Account,
    program: &'a Program,
    runs: u64,
}

impl Setup<'_> {
    /// A new process; its first tick does not count. The table is prepared before each tick.
    fn ticks(
        &self,
        condition: &Condition,
        mut ready: impl FnMut() -> Result<(), String>,
    ) -> Result<Taken, String> {
        let wrong = |what: String| format!("{}: {what}", condition.what);
        self.account.list_many(condition.listed > 0);
        self.account.answer_after(condition.answer_after);
        let mut program = self.program.clone();
        let overrides = json!({
            "daytona_api": self.account.provider(),
            "limits": {"reconcile_ms": condition.reconcile_ms},
        });
        program.environment.extend([
            ("AWS_ENDPOINT_URL".to_owned(), self.account.endpoint()),
            ("OVERRIDES".to_owned(), overrides.to_string()),
            ("TABLE".to_owned(), NAME.to_owned()),
        ]);
        let mut running = program.start().map_err(|e| wrong(e.to_string()))?;
        ready()?;
        running.invoke(TICK.to_vec()).map_err(wrong)?;
        self.account.asked();
        let mut taken = Taken::default();
        for _ in 0..self.runs {
            ready()?;
            let before = running.cpu().map_err(|e| wrong(e.to_string()))?;
            let invoked = running.invoke(TICK.to_vec()).map_err(wrong)?;
            let cpu = running.cpu().map_err(|e| wrong(e.to_string()))? - before;
            let asked = self.account.asked();
            let body = invoked.result.as_ref().unwrap_or_else(|error| error);
            check(condition, body, &asked).map_err(wrong)?;
            let took = invoked.answered.duration_since(invoked.given);
            taken.time.push(ms(took));
            taken.cpu.push(ms(cpu));
            taken.calls.push(asked.calls() as f64);
            taken.units.push(asked.units);
            taken.messages.push(asked.messages.len() as f64);
        }
        taken.peak = running.peak_bytes().map_err(|e| wrong(e.to_string()))? as f64 / MIB;
        running.end().map_err(|e| wrong(e.to_string()))?;
        Ok(taken)
    }
}

/// Whether the tick did its work.
fn check(condition: &Condition, body: &[u8], asked: &Asked) -> Result<(), String> {
    let answer: Value = serde_json::from_slice(body).map_err(|e| e.to_string())?;
    let sent = asked.messages.len() as u64;
    let told = answer["due"]["sent"].as_u64().unwrap_or_default();
    let looked = answer["vanished"]["asked"].as_u64().unwrap_or_default();
    let listed = answer["orphans"]["listed"].as_u64();
    if told + looked != sent || listed != Some(condition.listed) {
        return Err(format!("{sent} messages came, and it says {answer}"));
    }
    // A page of 1 MB ends within an item, which the two count slightly differently.
    if (asked.units - asked.told_units).abs() > UNITS_APART_MAX * asked.units {
        return Err(format!(
            "{} units by the documentation, {} by the engine",
            asked.units, asked.told_units
        ));
    }
    match condition.messages {
        Some(wanted) if wanted != sent => Err(format!("{sent} messages came, not {wanted}")),
        _ => Ok(()),
    }
}

fn tell(report: &mut Report, measured: &Measured) {
    let what = measured.condition.what;
    let name = |sessions: &u64| format!("{sessions} sessions");
    let mut add = |figure: &str, unit, of: &dyn Fn(&Taken) -> Vec<f64>| {
        let sample = |(sessions, taken): &(u64, Taken)| Sample {
            program: name(sessions),
            values: of(taken),
        };
        let samples: Vec<Sample> = measured.sizes.iter().map(sample).collect();
        let figure = format!("sweep, {what}: {figure}");
        report.add(&figure, unit, &samples, "", &[]);
    };
    add("a tick", "ms", &|taken| taken.time.clone());
    // A network adds only time.
    if measured.condition.answer_after.is_zero() {
        add("CPU", "ms", &|taken| taken.cpu.clone());
        add("calls", "calls", &|taken| taken.calls.clone());
        add("read", "units", &|taken| taken.units.clone());
        add("reads of a month of such ticks", "$", &|taken| {
            let dollars = |units: &f64| units * TICKS_A_MONTH * UNIT_DOLLARS;
            taken.units.iter().map(dollars).collect()
        });
        add("peak memory", "MiB", &|taken| vec![taken.peak]);
    }
    if measured.condition.messages.is_none() {
        add("messages", "messages", &|taken| taken.messages.clone());
    }
}
