//! Budgets: how much money each scope may spend. Nothing is capped until somebody sets it; of several, the first that
//! is exhausted decides. Amounts are millionths of a US dollar; days and months are UTC's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::credentials::redact;
use crate::base::ids::{Ms, Tenant};
use crate::text::{dollars, one_line, shorten};

/// Millionths of a US dollar.
pub type MicroUsd = u64;

/// What a turn may spend if budgets are set, but none for turns.
pub const TURN_DEFAULT: MicroUsd = 2_000_000;
/// A turn for which less than this is left is refused.
pub const RESERVED_MIN: MicroUsd = 50_000;
/// Largest budget that can be set: a million dollars.
pub const BUDGET_MAX: MicroUsd = 1_000_000_000_000;

const DAY_MS: u64 = 86_400_000;
/// Characters of something typed that an error repeats.
const SHOWN_CHARS_MAX: usize = 40;

/// The budgets of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Budgets {
    /// Of each turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<MicroUsd>,
    /// Of each thread, for all its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<MicroUsd>,
    /// Of each person, each day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person_day: Option<MicroUsd>,
    /// Of each channel, each month.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel_month: Option<MicroUsd>,
    /// Of the tenant, each month.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub month: Option<MicroUsd>,
}

/// A kind of budget that managers set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetKind {
    /// [`Budgets::turn`].
    Turn,
    /// [`Budgets::thread`].
    Thread,
    /// [`Budgets::person_day`].
    PersonDay,
    /// [`Budgets::channel_month`].
    ChannelMonth,
    /// [`Budgets::month`].
    Month,
    /// The operator's, of the whole stack, each month.
    Stack,
}

impl BudgetKind {
    /// Those that managers set, the narrowest first.
    pub const ALL: [Self; 5] =
        [Self::Turn, Self::Thread, Self::PersonDay, Self::ChannelMonth, Self::Month];

    /// The one that managers set by this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word().eq_ignore_ascii_case(name))
    }

    /// Its name in commands.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Thread => "thread",
            Self::PersonDay => "user-day",
            Self::ChannelMonth => "channel-month",
            Self::Month => "month",
            Self::Stack => "stack",
        }
    }

    /// What is set, for the list that a chat shows during typing.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Turn => "Dollars for each task, such as 2 or 2.50; none clears it",
            Self::Thread => "Dollars for each thread, for all its time",
            Self::PersonDay => "Dollars for each person, each day",
            Self::ChannelMonth => "Dollars for each channel, each month",
            Self::Month => "Dollars for all of this place, each month",
            Self::Stack => "Dollars for the whole stack, each month",
        }
    }

    /// Its name in sentences.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Turn => "each task",
            Self::Thread => "each thread",
            Self::PersonDay => "each person a day",
            Self::ChannelMonth => "each channel a month",
            Self::Month => "all of this place a month",
            Self::Stack => "the whole stack a month",
        }
    }
}

impl Budgets {
    /// Whether none is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// One of them.
    #[must_use]
    pub const fn of(&self, kind: BudgetKind) -> Option<MicroUsd> {
        match kind {
            BudgetKind::Turn => self.turn,
            BudgetKind::Thread => self.thread,
            BudgetKind::PersonDay => self.person_day,
            BudgetKind::ChannelMonth => self.channel_month,
            BudgetKind::Month => self.month,
            BudgetKind::Stack => None,
        }
    }

    /// Sets or clears one of them.
    pub const fn set(&mut self, kind: BudgetKind, amount: Option<MicroUsd>) {
        match kind {
            BudgetKind::Turn => self.turn = amount,
            BudgetKind::Thread => self.thread = amount,
            BudgetKind::PersonDay => self.person_day = amount,
            BudgetKind::ChannelMonth => self.channel_month = amount,
            BudgetKind::Month => self.month = amount,
            BudgetKind::Stack => {}
        }
    }
}

/// Who shares a stored sum, and for which time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "snake_case")]
pub enum BudgetScope {
    /// A person, on a day.
    Person {
        /// The chat's id of the person.
        id: String,
        /// `2026-11-28`.
        day: String,
    },
    /// A channel, in a month.
    Channel {
        /// The chat's id of the channel.
        id: String,
        /// `2026-11`.
        month: String,
    },
    /// The tenant, in a month.
    Tenant {
        /// `2026-11`.
        month: String,
    },
    /// The stack, in a month.
    Stack {
        /// `2026-11`.
        month: String,
    },
}

impl BudgetScope {
    /// Where the sum is stored: the partition, and the item in it.
    #[must_use]
    pub fn place(&self, tenant: &Tenant) -> (String, String) {
        let of_tenant = |item: String| (format!("budget:{tenant}"), item);
        match self {
            Self::Person { id, day } => of_tenant(format!("user#{id}#{day}")),
            Self::Channel { id, month } => of_tenant(format!("channel#{id}#{month}")),
            Self::Tenant { month } => of_tenant(format!("month#{month}")),
            Self::Stack { month } => ("budget:stack".to_owned(), format!("month#{month}")),
        }
    }

    /// The scope of a tenant's stored sum, by the name of its item; `None` if no build names one so.
    #[must_use]
    pub fn named(item: &str) -> Option<Self> {
        let mut parts = item.split('#');
        let parts = (parts.next()?, parts.next()?, parts.next(), parts.next());
        Some(match parts {
            ("user", id, Some(day), None) => {
                Self::Person { id: id.to_owned(), day: day.to_owned() }
            }
            ("channel", id, Some(month), None) => {
                Self::Channel { id: id.to_owned(), month: month.to_owned() }
            }
            ("month", month, None, None) => Self::Tenant { month: month.to_owned() },
            _ => return None,
        })
    }

    /// The kind of its budget.
    #[must_use]
    pub const fn kind(&self) -> BudgetKind {
        match self {
            Self::Person { .. } => BudgetKind::PersonDay,
            Self::Channel { .. } => BudgetKind::ChannelMonth,
            Self::Tenant { .. } => BudgetKind::Month,
            Self::Stack { .. } => BudgetKind::Stack,
        }
    }

    /// How long the sum is kept after its first change.
    #[must_use]
    pub const fn kept_ms(&self) -> u64 {
        match self {
            Self::Person { .. } => 40 * DAY_MS,
            Self::Channel { .. } | Self::Tenant { .. } | Self::Stack { .. } => 400 * DAY_MS,
        }
    }
}

/// A change of a stored sum, in the transaction that begins or ends a turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BudgetWrite {
    /// Whose.
    pub scope: BudgetScope,
    /// What is added, in millionths of a US dollar.
    pub add: i64,
    /// The sum before may not be larger; `None`: any.
    pub at_most: Option<MicroUsd>,
    /// When a new sum is deleted.
    pub expires_at_ms: Ms,
}

/// The day of a moment, as `2026-11-28`.
#[must_use]
pub fn day(at_ms: Ms) -> String {
    let (year, month, day) = civil(at_ms / DAY_MS);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The month of a moment, as `2026-11`.
#[must_use]
pub fn month(at_ms: Ms) -> String {
    month_of(&day(at_ms)).to_owned()
}

/// The month of a day, as `2026-11`.
#[must_use]
pub fn month_of(day: &str) -> &str {
    day.rsplit_once('-').map_or(day, |(month, _)| month)
}

/// The first day after the month of a moment, as `2026-12-01`.
#[must_use]
pub fn next_month(at_ms: Ms) -> String {
    let this = month(at_ms);
    let days = (1..=31).map(|days| at_ms + days * DAY_MS);
    days.map(day).find(|day| !day.starts_with(&this)).unwrap_or(this)
}

/// The next day, as `2026-11-29`.
#[must_use]
pub fn next_day(at_ms: Ms) -> String {
    day(at_ms + DAY_MS)
}

/// Year, month and day of a day since 1970, by the proleptic Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    // Counted from the first of March, so that the day that a leap year has more is the last one.
    let since = days + 719_468;
    let era = since / 146_097;
    let of_era = since % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

/// An amount as a person writes it: `2`, `$2.50`; `none` and `0` are no budget.
///
/// # Errors
/// What was expected.
pub fn parse(text: &str) -> Result<Option<MicroUsd>, String> {
    let text = text.trim().trim_start_matches('$');
    if text.eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    let wrong = || {
        let shown = shorten(&redact(&one_line(text)), SHOWN_CHARS_MAX);
        format!("{shown:?} is not an amount. Write dollars, such as 2 or 2.50, or none.")
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_plain = |digits: &str| digits.chars().all(|c| c.is_ascii_digit());
    if whole.is_empty() || part.len() > 2 || !is_plain(whole) || !is_plain(part) {
        return Err(wrong());
    }
    let cents = format!("{whole}{part:0<2}").parse::<u64>().map_err(|_| wrong())?;
    match cents.saturating_mul(10_000) {
        0 => Ok(None),
        amount if amount < RESERVED_MIN => {
            Err(format!("A budget is at least {}.", dollars(RESERVED_MIN)))
        }
        amount if amount > BUDGET_MAX => {
            Err(format!("A budget is at most {}.", dollars(BUDGET_MAX)))
        }
        amount => Ok(Some(amount)),
    }
}

/// Why budgets as typed cannot be set, in words for the person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoBudget {
    /// No budget has this name.
    #[error(
        "There is no budget {0:?}. Write one or more of turn:2 thread:5 user-day:10 channel-month:100 month:300, in dollars, or none instead of an amount. Nothing was changed."
    )]
    Unknown(String),
    /// The amount is none.
    #[error("{of}: {why} Nothing was changed.")]
    Amount {
        /// The name of the budget.
        of: &'static str,
        /// What was expected.
        why: String,
    },
}

/// Budgets as typed: pairs of a name and an amount. The last amount of a name counts.
///
/// # Errors
/// The first name or amount that cannot be used.
pub fn typed<'a>(
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<BTreeMap<BudgetKind, Option<MicroUsd>>, NoBudget> {
    let one = |(name, amount): (&str, &str)| {
        let kind = BudgetKind::named(name)
            .ok_or_else(|| NoBudget::Unknown(shorten(&redact(&one_line(name)), SHOWN_CHARS_MAX)))?;
        match parse(amount) {
            Ok(amount) => Ok((kind, amount)),
            Err(why) => Err(NoBudget::Amount { of: kind.word(), why }),
        }
    };
    pairs.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_those_of_the_calendar() {
        // 2028-02-29T23:59:59.999Z, and a millisecond later.
        let leap = 1_835_481_599_999;
        assert_eq!((day(leap), day(leap + 1)), ("2028-02-29".to_owned(), "2028-03-01".to_owned()));
        assert_eq!((day(0), month(951_782_400_000)), ("1970-01-01".to_owned(), "2000-02".into()));
        let end = 1_798_761_599_999;
        assert_eq!(
            (day(end), next_day(end), next_month(end)),
            ("2026-12-31".to_owned(), "2027-01-01".to_owned(), "2027-01-01".to_owned())
        );
    }

    #[test]
    fn typed_budgets_are_all_set_or_none() {
        let set = typed([("turn", "2"), ("User-Day", "$10.50"), ("month", "none")]);
        let expected = [
            (BudgetKind::Turn, Some(2_000_000)),
            (BudgetKind::PersonDay, Some(10_500_000)),
            (BudgetKind::Month, None),
        ];
        assert_eq!(set, Ok(expected.into()));
        let said =
            |pairs: &[(&str, &str)]| typed(pairs.iter().copied()).expect_err("refused").to_string();
        assert_eq!(
            said(&[("turn", "2"), ("week", "7")]),
            "There is no budget \"week\". Write one or more of turn:2 thread:5 user-day:10 channel-month:100 month:300, in dollars, or none instead of an amount. Nothing was changed."
        );
        assert_eq!(
            said(&[("turn", "2"), ("month", "much")]),
            "month: \"much\" is not an amount. Write dollars, such as 2 or 2.50, or none. Nothing was changed."
        );
        assert_eq!(
            said(&[("thread", "0.01")]),
            "thread: A budget is at least $0.05. Nothing was changed."
        );
    }

    #[test]
    fn a_stored_sum_names_its_scope() {
        let month = || "2026-11".to_owned();
        for scope in [
            BudgetScope::Person { id: "U1".to_owned(), day: "2026-11-28".to_owned() },
            BudgetScope::Channel { id: "C1".to_owned(), month: month() },
            BudgetScope::Tenant { month: month() },
        ] {
            let (_, item) = scope.place(&Tenant::slack("T1"));
            assert_eq!(BudgetScope::named(&item), Some(scope));
        }
        assert_eq!(BudgetScope::named("user#U1"), None);
    }

    #[test]
    fn amounts_are_read_as_people_write_them() {
        assert_eq!(parse("$2"), Ok(Some(2_000_000)));
        assert_eq!(parse("0.5"), Ok(Some(500_000)));
        assert_eq!(parse(" 300.05 "), Ok(Some(300_050_000)));
        assert_eq!((parse("none"), parse("0")), (Ok(None), Ok(None)));
        for wrong in ["", "two", "-1", "1.234", "1,5", "0.01", "99999999"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
