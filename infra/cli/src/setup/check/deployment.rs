//! The deployed stack: whether the account has the concurrency that it needs, and whether its table is protected from
//! deletion.

use crate::setup::report::Report;
use crate::target::StackTarget;

/// Allowed values of the template's parameter `Concurrency`.
const SHARES: [u64; 7] = [10, 50, 100, 200, 500, 1000, 2000];
/// From this value on the template reserves concurrency: Lambda keeps 100 executions of an account unreserved.
const RESERVED_FROM: u64 = 200;
/// Lambda's usual limit for an account in use, and the least that can be requested.
const USUAL: u64 = 1000;

pub async fn check(target: &StackTarget, report: &mut Report) {
    let Ok(stack) = target.stack().await else {
        return;
    };
    // The laptop stack has no AWS account.
    if !matches!(target.laptop(), Ok(None)) {
        return;
    }
    if is_unprotected(target.parameter("ProtectTable")) {
        report.note(&format!(
            "Stack: its table can be deleted by mistake; now that it is deployed, protect it: {}",
            target.sam_deploy("ProtectTable=yes")
        ));
    }
    let share = target.parameter("Concurrency");
    let Some(share) = share.and_then(|share| share.parse().ok()) else {
        return;
    };
    let deploy = |share: u64| target.sam_deploy(&format!("Concurrency={share}"));
    match stack.concurrency().await {
        Ok(limit) => match room(share, limit, stack.region(), deploy) {
            AccountLimit::Enough(words) => report.right(&words),
            AccountLimit::Scarce(words) => report.note(&words),
            AccountLimit::Missing(words, advice) => report.wrong(&words, &advice),
        },
        Err(why) => report.note(&format!("Lambda: the account's limit is unknown. {why}")),
    }
}

/// Whether the table has no deletion protection. A stack of an earlier template lacks the parameter.
fn is_unprotected(parameter: Option<&str>) -> bool {
    parameter == Some("no")
}

/// An account's limit, judged for a stack.
#[derive(Debug, PartialEq, Eq)]
pub enum AccountLimit {
    /// The limit suffices.
    Enough(String),
    /// It works, with room to improve.
    Scarce(String),
    /// The stack needs more: the problem, and advice.
    Missing(String, String),
}

/// Judges the stack's parameter `Concurrency` by the account's limit of concurrent executions in the stack's region
/// (`ConcurrentExecutions` of Lambda's `GetAccountSettings`). `deploy` writes the command that changes it.
pub fn room(share: u64, limit: u64, region: &str, deploy: impl Fn(u64) -> String) -> AccountLimit {
    let raise = |to: u64| {
        format!(
            "aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value {to} --region {region}"
        )
    };
    let fitting = SHARES.into_iter().filter(|one| *one <= limit).max();
    if share > limit {
        let lower = match fitting {
            Some(fitting) => format!("Lower it: {}\nor raise", deploy(fitting)),
            None => "Raise".to_owned(),
        };
        return AccountLimit::Missing(
            format!(
                "Lambda: the stack expects {share} concurrent executions, and this account has {limit} in {region}"
            ),
            format!(
                "{lower} the account's limit, which costs nothing: {}",
                raise(share.max(USUAL))
            ),
        );
    }
    if limit < RESERVED_FROM {
        return AccountLimit::Scarce(format!(
            "Lambda: this account has {limit} concurrent executions in {region}, too few to reserve any, so a flood at the URL can block workers\nRaise the limit, which costs nothing: {}\nthen: {}",
            raise(USUAL),
            deploy(USUAL)
        ));
    }
    match fitting {
        Some(fitting) if share < RESERVED_FROM => AccountLimit::Scarce(format!(
            "Lambda: this account has {limit} concurrent executions in {region}, and the stack uses {share} and reserves none\nGive it more: {}",
            deploy(fitting)
        )),
        _ => AccountLimit::Enough(format!(
            "Lambda: the stack has {share} of the {limit} concurrent executions that this account has in {region}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deploy(share: u64) -> String {
        format!("sam deploy --stack-name mine --parameter-overrides Concurrency={share}")
    }

    #[test]
    fn missing_concurrency_offers_both_remedies() {
        assert_eq!(
            room(1000, 10, "eu-central-1", deploy),
            AccountLimit::Missing(
                "Lambda: the stack expects 1000 concurrent executions, and this account has 10 in eu-central-1".to_owned(),
                "Lower it: sam deploy --stack-name mine --parameter-overrides Concurrency=10\nor raise the account's limit, which costs nothing: aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value 1000 --region eu-central-1".to_owned(),
            )
        );
        let AccountLimit::Missing(_, advice) = room(10, 5, "eu-central-1", deploy) else {
            panic!("5 are not 10");
        };
        assert!(advice.starts_with("Raise the account's limit"), "{advice}");
        assert!(
            matches!(room(2000, 1999, "x", deploy), AccountLimit::Missing(_, advice) if advice.contains("Concurrency=1000\n") && advice.contains("--desired-value 2000"))
        );
    }

    #[test]
    fn small_account_is_advised_to_grow() {
        let AccountLimit::Scarce(words) = room(10, 10, "eu-central-1", deploy) else {
            panic!("it works");
        };
        assert_eq!(
            words,
            "Lambda: this account has 10 concurrent executions in eu-central-1, too few to reserve any, so a flood at the URL can block workers
Raise the limit, which costs nothing: aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value 1000 --region eu-central-1
then: sam deploy --stack-name mine --parameter-overrides Concurrency=1000"
        );
    }

    #[test]
    fn grown_account_suggests_more_concurrency() {
        assert!(
            matches!(room(10, 1000, "x", deploy), AccountLimit::Scarce(words) if words.ends_with("Concurrency=1000"))
        );
        assert!(
            matches!(room(100, 450, "x", deploy), AccountLimit::Scarce(words) if words.ends_with("Concurrency=200"))
        );
        assert_eq!(
            room(200, 1000, "x", deploy),
            AccountLimit::Enough(
                "Lambda: the stack has 200 of the 1000 concurrent executions that this account has in x"
                    .to_owned()
            )
        );
    }

    #[test]
    fn concurrency_shares_match_the_template() {
        let template = include_str!("../../../../../template.yaml");
        let listed: Vec<String> = SHARES.iter().map(u64::to_string).collect();
        let line = format!("AllowedValues: [{}]", listed.join(", "));
        assert_eq!(template.matches(&line).count(), 1, "{line}");
    }

    #[test]
    fn unprotected_table_is_reported() {
        assert_eq!([Some("no"), Some("yes"), None].map(is_unprotected), [true, false, false]);
    }
}
