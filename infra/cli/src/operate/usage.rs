//! `usage`: what was spent, by months; `usage forget`: the sums of a person.

use std::collections::BTreeMap;

use bobbin_cloud::clock::now_ms;
use bobbin_core::base::ids::Tenant;
use bobbin_core::tenant::budgets::{self, BudgetScope, MicroUsd, month_of};
use bobbin_core::text::dollars;
use serde::Serialize;

use super::arguments::{ForgetSums, ShowUsage};
use super::named::tenants;
use super::stack::Stack;
use crate::output::{CommandError, ExitStatus, Output};
use crate::table::{Style, table};

const DAY_MS: u64 = 86_400_000;

#[derive(Serialize)]
struct UsageAnswer {
    usage: Vec<UsageLine>,
}

/// What one scope has spent and set aside in a month.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct UsageLine {
    /// Such as `2026-11`.
    month: String,
    /// `None`: the whole stack.
    tenant: Option<String>,
    /// `stack`, `tenant`, `channel` or `person`.
    of: &'static str,
    /// The chat's id of the channel or person.
    id: Option<String>,
    micro_usd: MicroUsd,
}

#[derive(Serialize)]
struct ForgottenSums {
    tenant: String,
    person: String,
    /// Sums that were deleted.
    deleted: usize,
}

pub async fn run(stack: &Stack, what: &ShowUsage) -> Result<Output, CommandError> {
    let mut lines = Vec::new();
    if what.tenant.is_none() {
        let sums = stack.store.stack_sums().await.map_err(|e| e.to_string())?;
        lines.extend(collected(None, sums, false));
    }
    for tenant in tenants(stack, what.tenant.as_ref()).await? {
        let sums = stack.store.all_sums(&tenant).await.map_err(|e| e.to_string())?;
        lines.extend(collected(Some(&tenant), sums, stack.usage_by_person));
    }
    lines.sort();
    let text = if what.csv { csv(&lines) } else { words(&lines) };
    let code = if lines.is_empty() { ExitStatus::Notice } else { ExitStatus::Done };
    Output::new(text, &UsageAnswer { usage: lines }, code)
}

/// The months of one partition; a person's days are added up.
fn collected(
    tenant: Option<&Tenant>,
    sums: Vec<(String, MicroUsd)>,
    with_people: bool,
) -> Vec<UsageLine> {
    let mut all: BTreeMap<(String, &'static str, Option<String>), MicroUsd> = BTreeMap::new();
    for (name, sum) in sums {
        let key = match BudgetScope::named(&name) {
            Some(BudgetScope::Person { id, day }) if with_people => {
                (month_of(&day).to_owned(), "person", Some(id))
            }
            Some(BudgetScope::Channel { id, month }) => (month, "channel", Some(id)),
            Some(BudgetScope::Tenant { month } | BudgetScope::Stack { month }) => {
                (month, if tenant.is_some() { "tenant" } else { "stack" }, None)
            }
            Some(BudgetScope::Person { .. }) | None => continue,
        };
        *all.entry(key).or_default() += sum;
    }
    let line = |((month, of, id), micro_usd)| UsageLine {
        month,
        tenant: tenant.map(ToString::to_string),
        of,
        id,
        micro_usd,
    };
    all.into_iter().map(line).collect()
}

fn words(lines: &[UsageLine]) -> String {
    if lines.is_empty() {
        return "Nothing is counted without a budget (/sandbox-config budget month:300, or \
                stack_month_cents in the parameter Overrides)."
            .to_owned();
    }
    let rows: Vec<[String; 5]> = lines
        .iter()
        .map(|line| {
            [
                line.month.clone(),
                line.tenant.clone().unwrap_or_else(|| "-".to_owned()),
                line.of.to_owned(),
                line.id.clone().unwrap_or_else(|| "-".to_owned()),
                dollars(line.micro_usd),
            ]
        })
        .collect();
    table(["MONTH", "TENANT", "OF", "ID", "SPENT"], &rows, Style::of_output())
}

fn csv(lines: &[UsageLine]) -> String {
    let mut text = "month,tenant,of,id,usd\n".to_owned();
    for UsageLine { month, tenant, of, id, micro_usd } in lines {
        let (tenant, id) =
            (tenant.as_deref().unwrap_or_default(), id.as_deref().unwrap_or_default());
        let (whole, rest) = (micro_usd / 1_000_000, micro_usd % 1_000_000);
        text.push_str(&format!("{month},{tenant},{of},{id},{whole}.{rest:06}\n"));
    }
    text
}

/// Deletes what is stored of a person's spending.
pub async fn forget(stack: &Stack, what: &ForgetSums) -> Result<Output, CommandError> {
    let ForgetSums { person, tenant } = what;
    let kept = [now_ms(), now_ms() - DAY_MS].map(budgets::day);
    let deleted = stack.store.forget_sums(tenant, person, &kept).await;
    let deleted =
        deleted.map_err(|e| format!("{e}. Some sums may be left: repeat the command."))?;
    let text = format!(
        "{deleted} sums are deleted. Those of today and yesterday are kept, because tasks that run are still settled in them: repeat the command in two days. What this person has spent still counts in the sums of the channels, the tenant and the stack, which name no person."
    );
    let forgotten = ForgottenSums { tenant: tenant.to_string(), person: person.clone(), deleted };
    let code = if deleted == 0 { ExitStatus::Notice } else { ExitStatus::Done };
    Output::new(text, &forgotten, code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums() -> Vec<(String, MicroUsd)> {
        let sums = [
            ("channel#C1#2026-11", 7_500_000),
            ("month#2026-10", 250_000_000),
            ("month#2026-11", 123_400_000),
            ("user#U1#2026-11-27", 1_000_000),
            ("user#U1#2026-11-28", 250_001),
            ("another build's", 1),
        ];
        sums.map(|(name, sum)| (name.to_owned(), sum)).to_vec()
    }

    #[test]
    fn people_are_listed_only_where_the_operator_says_so() {
        let tenant = Tenant::slack("T1");
        let all = csv(&collected(Some(&tenant), sums(), true));
        assert_eq!(
            all,
            "\
month,tenant,of,id,usd
2026-10,slack:T1,tenant,,250.000000
2026-11,slack:T1,channel,C1,7.500000
2026-11,slack:T1,person,U1,1.250001
2026-11,slack:T1,tenant,,123.400000
"
        );
        let without = collected(Some(&tenant), sums(), false);
        assert!(without.iter().all(|line| line.of != "person"), "{without:?}");
    }

    #[test]
    fn the_stacks_months_are_nobodys() {
        let lines = collected(None, vec![("month#2026-11".to_owned(), 5_000_000)], true);
        assert_eq!(
            words(&lines),
            "\
MONTH    TENANT  OF     ID  SPENT
2026-11  -       stack  -   $5.00"
        );
        assert!(words(&[]).starts_with("Nothing is counted without a budget"));
    }
}
