//! Seconds since the Unix epoch as a date in UTC, and dates as they come in answers.
//!
//! Promised: the Gregorian calendar from 1970 to 9999, without leap seconds, as Unix time counts. Deliberately absent:
//! time zones by name, and every way of writing a date that no service of ours uses.

use bobbin_core::ids::Ms;

const SECONDS_A_DAY: u64 = 86_400;
/// From the 1st of March of the year 0 to the 1st of January 1970.
const EPOCH_DAYS: u64 = 719_468;
/// The calendar repeats every 400 years.
const ERA_DAYS: u64 = 146_097;

/// A second, as a calendar in UTC names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Four digits, where it is to be written down.
    pub year: u64,
    /// From 1.
    pub month: u64,
    /// Of the month, from 1.
    pub day: u64,
    /// To 23.
    pub hour: u64,
    /// To 59.
    pub minute: u64,
    /// To 59.
    pub second: u64,
}

impl Moment {
    /// The one that is so many seconds after the Unix epoch.
    #[must_use]
    pub const fn of(at_s: u64) -> Self {
        let (days, second) = (at_s / SECONDS_A_DAY, at_s % SECONDS_A_DAY);
        // Counted from the 1st of March, a leap day comes last in its year.
        let days = days + EPOCH_DAYS;
        let (era, day_of_era) = (days / ERA_DAYS, days % ERA_DAYS);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = match month_from_march {
            0..=9 => month_from_march + 3,
            _ => month_from_march - 9,
        };
        Self {
            year: era * 400 + year_of_era + (month <= 2) as u64,
            month,
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
            hour: second / 3_600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }

    /// Seconds since the Unix epoch; none before it, and of no day of the calendar.
    fn at_s(self) -> Option<u64> {
        let (year, month_from_march) = match self.month {
            3.. => (self.year, self.month - 3),
            _ => (self.year.checked_sub(1)?, self.month + 9),
        };
        let day_of_year = (153 * month_from_march + 2) / 5 + self.day.checked_sub(1)?;
        let year_of_era = year % 400;
        let day_of_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = (year / 400 * ERA_DAYS + day_of_era).checked_sub(EPOCH_DAYS)?;
        let at_s = days * SECONDS_A_DAY + self.hour * 3_600 + self.minute * 60 + self.second;
        // A 31st of February is another day.
        (Self::of(at_s) == self).then_some(at_s)
    }
}

/// Milliseconds of an RFC 3339 time; none if it is not one, or before 1970. What is finer is left out.
#[must_use]
pub fn milliseconds(time: &str) -> Option<Ms> {
    let (date, rest) = time.split_at_checked(10)?;
    let (clock, rest) = rest.strip_prefix(['T', 't'])?.split_at_checked(8)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let moment = Moment {
        year,
        month,
        day,
        hour,
        minute,
        second,
    };
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(
            rest.find(|c: char| !c.is_ascii_digit())
                .filter(|at| *at > 0)?,
        ),
        None => ("", rest),
    };
    let ms: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let ahead_s: i64 = match zone {
        "Z" | "z" => 0,
        zone => {
            let sign = match zone.get(..1)? {
                "+" => 1,
                "-" => -1,
                _ => return None,
            };
            let [hours, minutes] = numbers(&zone[1..], ':', [2, 2])?;
            sign * i64::try_from(hours * 3_600 + minutes * 60).ok()?
        }
    };
    let at_s = moment.at_s()?.checked_add_signed(-ahead_s)?;
    Some(at_s * 1_000 + ms)
}

/// Numbers of so many digits each, with this mark between them.
fn numbers<const N: usize>(text: &str, mark: char, digits: [usize; N]) -> Option<[u64; N]> {
    let mut found = [0; N];
    let mut parts = text.split(mark);
    for (number, digits) in found.iter_mut().zip(digits) {
        let part = parts.next()?;
        let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = is_number.then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_an_answer_is_read_to_the_millisecond_in_every_way_of_writing_it() {
        for (written, at_ms) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T23:59:59.9Z", Some(951_868_799_900)),
            ("2026-03-01T00:00:00.000Z", Some(1_772_323_200_000)),
            ("2026-11-21T21:02:45.123456789Z", Some(1_795_294_965_123)),
            ("2026-11-21T23:02:45+02:00", Some(1_795_294_965_000)),
            ("2026-11-21t15:32:45.5-05:30", Some(1_795_294_965_500)),
            ("2100-02-29T00:00:00Z", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-00-01T00:00:00Z", None),
            ("2026-01-00T00:00:00Z", None),
            ("2026-01-01T24:00:00Z", None),
            ("2026-01-01T00:00:00", None),
            ("2026-01-01T00:00:00.Z", None),
            ("2026-01-01T00:00:00.5", None),
            ("2026-01-01 00:00:00Z", None),
            ("2026-01-01T00:00:00+0200", None),
            ("+026-01-01T00:00:00Z", None),
            ("1969-12-31T23:59:59Z", None),
            ("2026-01-01Tä0:00:0Z", None),
            ("", None),
        ] {
            assert_eq!(milliseconds(written), at_ms, "{written}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_date_leads_back_to_its_second(at_s in 0_u64..253_402_300_800) {
            let Moment { year, month, day, hour, minute, second } = Moment::of(at_s);
            let written = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z");
            proptest::prop_assert_eq!(milliseconds(&written), Some(at_s * 1_000));
        }

        #[test]
        fn no_text_makes_it_stumble(text in "\\PC{0,30}", digits in "[0-9T:.Z+-]{0,30}") {
            let _ = (milliseconds(&text), milliseconds(&digits));
        }
    }
}
