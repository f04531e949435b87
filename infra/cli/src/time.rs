//! Times for people.

use std::time::Duration;

use bobbin_core::base::ids::Ms;

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// A span in its largest unit: `3 min`.
pub fn span(ms: u64) -> String {
    match ms {
        0..MINUTE_MS => format!("{} s", ms / SECOND_MS),
        MINUTE_MS..HOUR_MS => format!("{} min", ms / MINUTE_MS),
        HOUR_MS..DAY_MS => format!("{} h", ms / HOUR_MS),
        _ => format!("{} d", ms / DAY_MS),
    }
}

/// Elapsed time for a progress line: `1:07`, `1:02:07`.
pub fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// A time relative to now: `3 min ago`, `in 3 min`, `now`.
pub fn when(at_ms: Ms, now_ms: Ms) -> String {
    match (now_ms.saturating_sub(at_ms), at_ms.saturating_sub(now_ms)) {
        (0..SECOND_MS, 0..SECOND_MS) => "now".to_owned(),
        (ago, 0) => format!("{} ago", span(ago)),
        (_, left) => format!("in {}", span(left)),
    }
}

/// Reads `90s`, `30m`, `2h` or `1d`.
pub fn duration_ms(word: &str) -> Result<u64, String> {
    let wrong = || "write it as 90s, 30m, 2h or 1d".to_owned();
    let unit = match word.chars().last() {
        Some('s') => SECOND_MS,
        Some('m') => MINUTE_MS,
        Some('h') => HOUR_MS,
        Some('d') => DAY_MS,
        _ => return Err(wrong()),
    };
    let number: u64 = word[..word.len() - 1].parse().map_err(|_| wrong())?;
    number.checked_mul(unit).ok_or_else(wrong)
}

pub async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_use_their_largest_unit() {
        let now = 10 * DAY_MS;
        let said = |at_ms| when(at_ms, now);
        assert_eq!(said(now), "now");
        assert_eq!(said(now - 999), "now");
        assert_eq!(said(now - 59_000), "59 s ago");
        assert_eq!(said(now - 3 * MINUTE_MS - 59_999), "3 min ago");
        assert_eq!(said(now - 26 * HOUR_MS), "1 d ago");
        assert_eq!(said(now + 2 * HOUR_MS), "in 2 h");
    }

    #[test]
    fn clock_shows_hours_when_needed() {
        for (seconds, said) in [(7, "0:07"), (67, "1:07"), (3_727, "1:02:07")] {
            assert_eq!(clock(Duration::from_secs(seconds)), said);
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration_ms("90s"), Ok(90_000));
        assert_eq!(duration_ms("2h"), Ok(2 * HOUR_MS));
        for wrong in ["", "5", "m", "1.5h", "-3m", "soon", "99999999999999999999d", "3µ"] {
            assert_eq!(
                duration_ms(wrong),
                Err("write it as 90s, 30m, 2h or 1d".to_owned()),
                "{wrong}"
            );
        }
    }
}
