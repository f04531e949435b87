//! When a schedule fires: `at(...)`, `rate(...)`, `cron(...)`, the latter two in a time zone.

use std::collections::BTreeSet;

use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveDateTime, TimeZone, Utc, Weekday};
use chrono_tz::Tz;

use crate::limits;

/// A parsed `ScheduleExpression`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    /// Once, at this local time.
    At(NaiveDateTime),
    /// Every so many milliseconds.
    Rate {
        every_ms: i64,
    },
    Cron(Box<Cron>),
}

/// The six fields of a cron expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cron {
    minutes: BTreeSet<u32>,
    hours: BTreeSet<u32>,
    days: Vec<MonthDay>,
    months: BTreeSet<u32>,
    weekdays: Vec<WeekDay>,
    years: BTreeSet<u32>,
}

#[derive(Clone, Debug, PartialEq)]
enum MonthDay {
    Any,
    On(u32),
    Last,
    /// The weekday (Monday to Friday) nearest to this day of the month.
    Nearest(u32),
    LastWeekday,
}

/// Sunday is 1 (AWS).
#[derive(Clone, Debug, PartialEq)]
enum WeekDay {
    Any,
    On(u32),
    /// The last of the month that falls on this day.
    LastOn(u32),
    /// The n-th of the month.
    Nth(u32, u32),
}

const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl Expression {
    /// Parses an expression; the error says what AWS would refuse.
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
            "cron" => cron(inner)
                .map(|cron| Self::Cron(Box::new(cron)))
                .ok_or_else(refuse),
            _ => Err(refuse()),
        }
    }

    /// The first firing at or after `from_ms`; a rate counts from `anchor_ms`. `None`: never again.
    pub(crate) fn next_ms(&self, from_ms: i64, anchor_ms: i64, zone: Tz) -> Option<i64> {
        match self {
            // A time that the change to summer time skips is taken an hour later, where the clocks are then.
            Self::At(local) => zone
                .from_local_datetime(local)
                .earliest()
                .or_else(|| {
                    let later = local.checked_add_signed(chrono::TimeDelta::hours(1))?;
                    zone.from_local_datetime(&later).earliest()
                })
                .map(|at| at.timestamp_millis()),
            Self::Rate { every_ms } => {
                let passed_ms = (from_ms - anchor_ms).max(0);
                let periods = passed_ms.div_euclid(*every_ms)
                    + i64::from(passed_ms.rem_euclid(*every_ms) != 0);
                Some(anchor_ms + periods * every_ms)
            }
            Self::Cron(cron) => cron.next_ms(from_ms, zone),
        }
    }

    /// Whether it fires once only.
    pub(crate) fn is_once(&self) -> bool {
        matches!(self, Self::At(_))
    }
}

impl Cron {
    fn next_ms(&self, from_ms: i64, zone: Tz) -> Option<i64> {
        let from = DateTime::<Utc>::from_timestamp_millis(from_ms)?.with_timezone(&zone);
        // One day earlier, so that nothing is missed where a change of the clocks moves a time over midnight.
        let first = from.date_naive().checked_sub_days(Days::new(1))?;
        (0..limits::CRON_SEARCH_DAYS_MAX)
            .map_while(|days| first.checked_add_days(Days::new(days)))
            .filter(|date| self.has_day(*date))
            .flat_map(|date| self.times(date))
            // A local time that does not exist that day is skipped; one that exists twice counts once (AWS).
            .filter_map(|local| zone.from_local_datetime(&local).earliest())
            .map(|at| at.timestamp_millis())
            .find(|at_ms| *at_ms >= from_ms)
    }

    fn times(&self, date: NaiveDate) -> impl Iterator<Item = NaiveDateTime> + '_ {
        self.hours.iter().flat_map(move |hour| {
            self.minutes
                .iter()
                .filter_map(move |minute| date.and_hms_opt(*hour, *minute, 0))
        })
    }

    fn has_day(&self, date: NaiveDate) -> bool {
        u32::try_from(date.year()).is_ok_and(|year| self.years.contains(&year))
            && self.months.contains(&date.month())
            && self.days.iter().any(|day| day.is_on(date))
            && self.weekdays.iter().any(|day| day.is_on(date))
    }
}

impl MonthDay {
    fn is_on(&self, date: NaiveDate) -> bool {
        match self {
            Self::Any => true,
            Self::On(day) => date.day() == *day,
            Self::Last => date.day() == last_day(date),
            Self::LastWeekday => nearest_weekday(date, last_day(date)) == Some(date.day()),
            Self::Nearest(day) => {
                *day <= last_day(date) && nearest_weekday(date, *day) == Some(date.day())
            }
        }
    }
}

impl WeekDay {
    fn is_on(&self, date: NaiveDate) -> bool {
        let weekday = date.weekday().num_days_from_sunday() + 1;
        match self {
            Self::Any => true,
            Self::On(day) => weekday == *day,
            Self::LastOn(day) => weekday == *day && date.day() + 7 > last_day(date),
            Self::Nth(day, nth) => weekday == *day && (date.day() - 1) / 7 + 1 == *nth,
        }
    }
}

fn last_day(date: NaiveDate) -> u32 {
    (28..=31)
        .rev()
        .find(|day| date.with_day(*day).is_some())
        .unwrap_or(28)
}

/// The Monday to Friday nearest to a day, within the same month.
fn nearest_weekday(month: NaiveDate, day: u32) -> Option<u32> {
    let date = month.with_day(day)?;
    let last = last_day(month);
    Some(match date.weekday() {
        Weekday::Sat if day == 1 => 3,
        Weekday::Sat => day - 1,
        Weekday::Sun if day == last => day - 2,
        Weekday::Sun => day + 1,
        _ => day,
    })
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
    Some(Expression::Rate {
        every_ms: count.checked_mul(unit_ms)?,
    })
}

fn cron(inner: &str) -> Option<Cron> {
    let fields: Vec<&str> = inner.split_whitespace().collect();
    let [minutes, hours, days, months, weekdays, years] = fields.as_slice() else {
        return None;
    };
    // One of the two day fields must be `?` (AWS).
    if (*days == "?") == (*weekdays == "?") {
        return None;
    }
    Some(Cron {
        minutes: numbers(minutes, 0, 59, &[], 0)?,
        hours: numbers(hours, 0, 23, &[], 0)?,
        days: month_days(days)?,
        months: numbers(months, 1, 12, &MONTHS, 1)?,
        weekdays: week_days(weekdays)?,
        years: numbers(years, 1970, 2199, &[], 0)?,
    })
}

fn month_days(field: &str) -> Option<Vec<MonthDay>> {
    Some(match field {
        "?" | "*" => vec![MonthDay::Any],
        "L" => vec![MonthDay::Last],
        "LW" => vec![MonthDay::LastWeekday],
        _ => match field.strip_suffix('W') {
            Some(day) => {
                let day = day.parse().ok().filter(|day| (1..=31).contains(day))?;
                vec![MonthDay::Nearest(day)]
            }
            None => numbers(field, 1, 31, &[], 0)?
                .into_iter()
                .map(MonthDay::On)
                .collect(),
        },
    })
}

fn week_days(field: &str) -> Option<Vec<WeekDay>> {
    let day = |text: &str| {
        let mut found = numbers(text, 1, 7, &WEEKDAYS, 1)?.into_iter();
        found.next().filter(|_| found.next().is_none())
    };
    if field == "?" || field == "*" {
        return Some(vec![WeekDay::Any]);
    }
    if field == "L" {
        return Some(vec![WeekDay::On(7)]);
    }
    if let Some((weekday, nth)) = field.split_once('#') {
        let nth = nth.parse().ok().filter(|nth| (1..=5).contains(nth))?;
        return Some(vec![WeekDay::Nth(day(weekday)?, nth)]);
    }
    if let Some(weekday) = field.strip_suffix('L') {
        return Some(vec![WeekDay::LastOn(day(weekday)?)]);
    }
    Some(
        numbers(field, 1, 7, &WEEKDAYS, 1)?
            .into_iter()
            .map(WeekDay::On)
            .collect(),
    )
}

/// `*`, numbers, names, ranges, lists and steps.
fn numbers(field: &str, min: u32, max: u32, names: &[&str], first: u32) -> Option<BTreeSet<u32>> {
    let number = |text: &str| -> Option<u32> {
        let named = names
            .iter()
            .position(|name| name.eq_ignore_ascii_case(text))
            .and_then(|index| u32::try_from(index).ok());
        let number = match named {
            Some(index) => index + first,
            None => text.parse().ok()?,
        };
        (min..=max).contains(&number).then_some(number)
    };
    let mut found = BTreeSet::new();
    for part in field.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<u32>().ok().filter(|s| *s > 0)?)),
            None => (part, None),
        };
        let (from, to) = match (range, range.split_once('-')) {
            ("*", _) => (min, max),
            (_, Some((from, to))) => (number(from)?, number(to)?),
            // `5/10` means from 5 on.
            (_, None) if step.is_some() => (number(range)?, max),
            (_, None) => (number(range)?, number(range)?),
        };
        let step = usize::try_from(step.unwrap_or(1)).ok()?;
        if from <= to {
            found.extend((from..=to).step_by(step));
        } else {
            // `FRI-MON` goes round.
            found.extend((from..=max).chain(min..=to).step_by(step));
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn next(expression: &str, from: &str, zone: &str) -> Option<String> {
        let from = DateTime::parse_from_rfc3339(from).unwrap();
        let next_ms = Expression::parse(expression).unwrap().next_ms(
            from.timestamp_millis(),
            0,
            zone.parse().unwrap(),
        )?;
        Some(
            DateTime::<Utc>::from_timestamp_millis(next_ms)
                .unwrap()
                .to_rfc3339(),
        )
    }

    #[test]
    fn a_one_time_schedule_is_read_in_its_time_zone() {
        for (zone, at) in [
            ("UTC", "2026-07-01T09:30:00+00:00"),
            ("Europe/Berlin", "2026-07-01T07:30:00+00:00"),
            ("America/New_York", "2026-07-01T13:30:00+00:00"),
        ] {
            let found = next("at(2026-07-01T09:30:00)", "2026-01-01T00:00:00Z", zone);
            assert_eq!(found.as_deref(), Some(at), "{zone}");
        }
    }

    #[test]
    fn a_cron_schedule_finds_its_next_time() {
        for (expression, from, zone, at) in [
            (
                "cron(15 10 * * ? *)",
                "2026-03-01T10:16:00Z",
                "UTC",
                "2026-03-02T10:15:00+00:00",
            ),
            (
                "cron(0/20 * * * ? *)",
                "2026-03-01T10:21:00Z",
                "UTC",
                "2026-03-01T10:40:00+00:00",
            ),
            (
                "cron(0 8 ? * MON-FRI *)",
                "2026-03-06T09:00:00Z",
                "UTC",
                "2026-03-09T08:00:00+00:00",
            ),
            (
                "cron(0 8 L * ? *)",
                "2026-02-01T00:00:00Z",
                "UTC",
                "2026-02-28T08:00:00+00:00",
            ),
            (
                "cron(0 8 1W * ? *)",
                "2026-07-31T09:00:00Z",
                "UTC",
                "2026-08-03T08:00:00+00:00",
            ),
            (
                "cron(0 8 ? * 6L *)",
                "2026-03-01T00:00:00Z",
                "UTC",
                "2026-03-27T08:00:00+00:00",
            ),
            (
                "cron(0 8 ? * TUE#2 *)",
                "2026-03-01T00:00:00Z",
                "UTC",
                "2026-03-10T08:00:00+00:00",
            ),
            (
                "cron(0 0 29 2 ? *)",
                "2026-03-01T00:00:00Z",
                "UTC",
                "2028-02-29T00:00:00+00:00",
            ),
            (
                "cron(30 2 * * ? *)",
                "2026-03-28T12:00:00Z",
                "Europe/Berlin",
                "2026-03-30T00:30:00+00:00",
            ),
            (
                "cron(30 2 * * ? *)",
                "2026-10-24T12:00:00Z",
                "Europe/Berlin",
                "2026-10-25T00:30:00+00:00",
            ),
        ] {
            let found = next(expression, from, zone);
            assert_eq!(found.as_deref(), Some(at), "{expression} {zone}");
        }
        assert_eq!(
            next("cron(0 0 1 1 ? 2020)", "2026-01-01T00:00:00Z", "UTC"),
            None
        );
    }

    #[test]
    fn a_rate_keeps_its_beat_from_its_anchor() {
        let every_five = Expression::parse("rate(5 minutes)").unwrap();
        let next = |from_ms| every_five.next_ms(from_ms, 1_000, Tz::UTC);
        assert_eq!(next(0), Some(1_000));
        assert_eq!(next(1_001), Some(301_000));
        assert_eq!(next(301_000), Some(301_000));
    }

    #[test]
    fn what_aws_refuses_is_refused() {
        for expression in [
            "at(2026-07-01)",
            "rate(0 minutes)",
            "rate(5 parsecs)",
            "cron(* * * * * *)",
            "cron(61 * * * ? *)",
            "cron(0 8 * * ?)",
            "every minute",
        ] {
            assert!(Expression::parse(expression).is_err(), "{expression}");
        }
    }
}
