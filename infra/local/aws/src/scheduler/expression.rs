//! Firing times: `at(...)` in the schedule's time zone, or `rate(...)`. AWS's `cron(...)` is refused.

use chrono::{NaiveDateTime, TimeDelta, TimeZone as _};
use chrono_tz::Tz;

/// A parsed `ScheduleExpression`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    /// Once, at this local time.
    At(NaiveDateTime),
    /// At a fixed interval.
    Rate {
        /// Interval between firings.
        every_ms: i64,
    },
}

impl Expression {
    /// Parses an expression; the error is AWS's, or names what this engine lacks.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let refuse = || format!("Invalid Schedule Expression {text}.");
        let (kind, inner) = text
            .trim()
            .strip_suffix(')')
            .and_then(|text| text.split_once('('))
            .ok_or_else(refuse)?;
        match kind {
            "at" => NaiveDateTime::parse_from_str(inner.trim(), "%Y-%m-%dT%H:%M:%S")
                .map(Self::At)
                .map_err(|_| refuse()),
            "rate" => rate(inner).ok_or_else(refuse),
            "cron" => Err(format!("This engine implements at(...) and rate(...), not {text}.")),
            _ => Err(refuse()),
        }
    }

    /// First firing at or after `from_ms`; a rate counts from `anchor_ms`. `None` if there is none.
    pub(crate) fn next_ms(&self, from_ms: i64, anchor_ms: i64, zone: Tz) -> Option<i64> {
        match self {
            // A time skipped by the change to summer time is taken an hour later.
            Self::At(local) => zone
                .from_local_datetime(local)
                .earliest()
                .or_else(|| {
                    let later = local.checked_add_signed(TimeDelta::hours(1))?;
                    zone.from_local_datetime(&later).earliest()
                })
                .map(|at| at.timestamp_millis()),
            Self::Rate { every_ms } => {
                let passed_ms = (from_ms - anchor_ms).max(0);
                let periods = passed_ms.div_euclid(*every_ms)
                    + i64::from(passed_ms.rem_euclid(*every_ms) != 0);
                Some(anchor_ms + periods * every_ms)
            }
        }
    }

    /// Whether it fires only once.
    pub(crate) fn is_once(&self) -> bool {
        matches!(self, Self::At(_))
    }
}

fn rate(inner: &str) -> Option<Expression> {
    let (count, unit) = inner.trim().split_once(' ')?;
    let count: i64 = count.parse().ok().filter(|count| *count > 0)?;
    let unit_ms = match unit.trim() {
        "minute" | "minutes" => 60_000,
        "hour" | "hours" => 3_600_000,
        "day" | "days" => 86_400_000,
        _ => return None,
    };
    Some(Expression::Rate { every_ms: count.checked_mul(unit_ms)? })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn at_expression_honours_time_zone() {
        for (local, zone, at) in [
            ("2026-07-01T09:30:00", "UTC", "2026-07-01T09:30:00Z"),
            ("2026-07-01T09:30:00", "Europe/Berlin", "2026-07-01T07:30:00Z"),
            ("2026-07-01T09:30:00", "America/New_York", "2026-07-01T13:30:00Z"),
            // Skipped by the change to summer time.
            ("2026-03-29T02:30:00", "Europe/Berlin", "2026-03-29T01:30:00Z"),
        ] {
            let expression = Expression::parse(&format!("at({local})")).unwrap();
            let found = expression.next_ms(0, 0, zone.parse().unwrap());
            let expected = chrono::DateTime::parse_from_rfc3339(at).unwrap();
            assert_eq!(found, Some(expected.timestamp_millis()), "{local} {zone}");
        }
    }

    #[test]
    fn rate_repeats_from_its_anchor() {
        let every_five = Expression::parse("rate(5 minutes)").unwrap();
        let next = |from_ms| every_five.next_ms(from_ms, 1_000, Tz::UTC);
        assert_eq!(next(0), Some(1_000));
        assert_eq!(next(1_001), Some(301_000));
        assert_eq!(next(301_000), Some(301_000));
    }

    #[test]
    fn invalid_or_unsupported_expressions_are_refused() {
        for expression in [
            "at(2026-07-01)",
            "rate(0 minutes)",
            "rate(5 parsecs)",
            "cron(0 8 * * ? *)",
            "every minute",
        ] {
            assert!(Expression::parse(expression).is_err(), "{expression}");
        }
    }
}
