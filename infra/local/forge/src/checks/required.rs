//! Whether the checks of a commit let it be merged.

use super::{CheckStatus, Checks};
use crate::record::StatusCheck;

/// What the checks and statuses of one name say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Passed {
    /// Nothing has been said yet.
    Expected,
    Failing,
    Running,
    Yes,
}

/// What is said of a commit under one name. A check and a status of one name must both pass; where an app is named,
/// checks of others do not count, and a status does.
pub(crate) fn passed(checks: &Checks, repository: u64, sha: &str, wanted: &StatusCheck) -> Passed {
    let (context, app) = (wanted.context.as_str(), wanted.integration_id);
    let is_its =
        |suite: u64| app.is_none_or(|app| checks.suite(suite).is_ok_and(|suite| suite.app == app));
    let runs = checks.runs_of(repository, sha, false).into_iter();
    let runs =
        runs.filter(|one| one.name == context && is_its(one.suite)).map(|one| {
            match one.conclusion {
                Some(conclusion) if one.status == CheckStatus::Completed => {
                    if conclusion.is_passed() { Passed::Yes } else { Passed::Failing }
                }
                _ => Passed::Running,
            }
        });
    let statuses = checks.statuses_of(repository, sha).into_iter();
    let statuses =
        statuses.filter(|one| one.context == context).map(|one| match one.state.as_str() {
            "success" => Passed::Yes,
            "pending" => Passed::Running,
            _ => Passed::Failing,
        });
    runs.chain(statuses).min().unwrap_or(Passed::Expected)
}

impl Checks {
    /// Whether anything that was said of a commit, required or not, has not passed.
    pub(crate) fn has_other(&self, repository: u64, sha: &str) -> bool {
        let runs = self.runs_of(repository, sha, false);
        let is_run = runs.iter().any(|one| !one.conclusion.is_some_and(|it| it.is_passed()));
        let statuses = self.statuses_of(repository, sha);
        is_run || statuses.iter().any(|one| one.state != "success")
    }
}
