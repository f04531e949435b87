//! Ids and timestamps in the platforms' formats: Discord snowflakes, Slack `ts`, strictly increasing even within a
//! millisecond.

use rand::{Rng, distr::Alphanumeric};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

const DISCORD_EPOCH_MS: u64 = 1_420_070_400_000;

/// Generates ids; `resume` keeps them increasing after a restart.
#[derive(Default)]
pub struct IdSource {
    snowflake: Mutex<u64>,
    ts_us: Mutex<u64>,
}

impl IdSource {
    pub fn resume(last_snowflake: Option<&str>, last_ts: Option<&str>) -> IdSource {
        let snowflake = last_snowflake.and_then(|id| id.parse().ok()).unwrap_or_default();
        let ts_us = last_ts.and_then(ts_micros).unwrap_or_default();
        IdSource { snowflake: Mutex::new(snowflake), ts_us: Mutex::new(ts_us) }
    }

    /// A new Discord id.
    pub fn snowflake(&self) -> String {
        grown(&self.snowflake, (now_ms() - DISCORD_EPOCH_MS) << 22).to_string()
    }

    /// A new Slack `ts`.
    pub fn ts(&self) -> String {
        let us = grown(&self.ts_us, now_us());
        format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
    }
}

fn grown(last: &Mutex<u64>, now: u64) -> u64 {
    let mut last = last.lock().expect("nothing panics while an id is minted");
    *last = now.max(*last + 1);
    *last
}

/// Microseconds of a well-formed `ts` (ten digits, a point, six digits).
pub fn ts_micros(ts: &str) -> Option<u64> {
    let (seconds, micros) = ts.split_once('.')?;
    let digits = |part: &str, n| part.len() == n && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(seconds, 10) || !digits(micros, 6) {
        return None;
    }
    Some(seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?)
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    now_us() / 1_000
}

fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is after 1970");
    u64::try_from(since.as_micros()).expect("microseconds fit for 500,000 years")
}

/// A time in Discord's format.
pub fn iso(ms: u64) -> String {
    let time = chrono::DateTime::from_timestamp_millis(i64::try_from(ms).unwrap_or(i64::MAX))
        .unwrap_or_default();
    time.format("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

/// Random letters and digits, unguessable.
pub fn random_text(length: usize) -> String {
    rand::rng().sample_iter(Alphanumeric).take(length).map(char::from).collect()
}

/// A Slack id: a letter for the kind, then ten capitals and digits.
pub fn slack_id(kind: char) -> String {
    format!("{kind}0{}", random_text(9).to_ascii_uppercase())
}

/// Whether a lifetime of `life_ms` from `since_ms` is not over yet.
pub fn alive(since_ms: u64, life_ms: u64) -> bool {
    now_ms().saturating_sub(since_ms) < life_ms
}
