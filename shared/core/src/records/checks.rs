//! The checks of a pull request's head, as one poll saw them, and whether they have settled.
//!
//! Promised: nothing is called green before every required check has passed, and nothing red before nothing runs any
//! more; both only when the same checks were seen for the quiet time, because a job that has no machine yet has no
//! check either. An unknown conclusion is left to a person.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, digest};

/// A check or a commit status.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Check {
    /// The name by which a rule requires it.
    pub name: String,
    /// What distinguishes it from others of its name: the workflow and its event, or the app; empty for a status.
    pub of: String,
    /// Which of the two it is.
    pub kind: CheckKind,
    /// Its state.
    pub state: CheckState,
    /// Its page; empty without one.
    pub page: String,
}

/// Kinds of check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckKind {
    /// A check run.
    Run {
        /// The forge's id; a repeat of a job has another.
        id: u64,
        /// The app that reports it.
        app: Option<u64>,
    },
    /// A commit status. A repeat overwrites it.
    Status {
        /// When it was reported.
        at_ms: Ms,
    },
}

/// State of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckState {
    /// It has not ended.
    Running,
    /// It ended well, or was skipped.
    Passed,
    /// It failed: there is something to mend.
    Failed,
    /// It ended otherwise, and only a person can tell why: cancelled, stale, or waiting for approval.
    Held,
}

/// A check without which a rule lets nothing be merged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequiredCheck {
    /// Its name.
    pub name: String,
    /// The app whose check run counts; `None`: any. A status counts whoever reported it.
    pub app: Option<u64>,
}

/// The checks that polls have seen lately.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SeenChecks {
    /// Digest of the checks with their states.
    pub digest: String,
    /// Since when they are the same.
    pub since_ms: Ms,
}

/// What a pull request's checks say.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ChecksVerdict {
    /// There are none.
    None,
    /// They have not settled.
    Unsettled {
        /// How many have ended.
        ended: usize,
        /// How many there are, with the required ones that have not been seen.
        total: usize,
        /// Required ones that have not been seen.
        missing: Vec<String>,
    },
    /// All have passed.
    Green,
    /// Some have failed.
    Red {
        /// Those.
        failed: Vec<Check>,
    },
    /// None has failed, and a person has to look after these.
    Held {
        /// Their names.
        names: Vec<String>,
    },
}

impl Check {
    /// Its identity, without its state. Of several with the same identity, the newest counts.
    fn key(&self) -> (bool, &str, &str) {
        (matches!(self.kind, CheckKind::Run { .. }), &self.name, &self.of)
    }

    const fn age(&self) -> u64 {
        match self.kind {
            CheckKind::Run { id, .. } => id,
            CheckKind::Status { at_ms } => at_ms,
        }
    }

    fn is(&self, required: &RequiredCheck) -> bool {
        let by_app = match self.kind {
            CheckKind::Run { app, .. } => required.app.is_none() || required.app == app,
            // Nothing tells which app has reported it, and the forge lets it count.
            CheckKind::Status { .. } => true,
        };
        self.name == required.name && by_app
    }
}

/// The newest of each: a repeated job leaves its earlier runs behind.
#[must_use]
pub fn newest(checks: &[Check]) -> Vec<Check> {
    let mut newest: BTreeMap<(bool, &str, &str), &Check> = BTreeMap::new();
    for check in checks {
        let one = newest.entry(check.key()).or_insert(check);
        if check.age() > one.age() {
            *one = check;
        }
    }
    newest.into_values().cloned().collect()
}

/// What these checks say, and what to remember for the next poll.
#[must_use]
pub fn judge(
    checks: &[Check],
    required: &[RequiredCheck],
    before: Option<&SeenChecks>,
    (now_ms, quiet_ms): (Ms, u64),
) -> (ChecksVerdict, SeenChecks) {
    let checks = newest(checks);
    let seen = seen(&checks, before, now_ms);
    let missing: Vec<String> = required
        .iter()
        .filter(|required| !checks.iter().any(|check| check.is(required)))
        .map(|required| required.name.clone())
        .collect();
    let ended = checks.iter().filter(|check| check.state != CheckState::Running).count();
    let is_quiet = now_ms.saturating_sub(seen.since_ms) >= quiet_ms;
    let total = checks.len() + missing.len();
    if ended < total || !is_quiet {
        return (ChecksVerdict::Unsettled { ended, total, missing }, seen);
    }
    let of = |state: CheckState| checks.iter().filter(move |check| check.state == state);
    let failed: Vec<Check> = of(CheckState::Failed).cloned().collect();
    let held: Vec<String> = of(CheckState::Held).map(|check| check.name.clone()).collect();
    let verdict = if checks.is_empty() {
        ChecksVerdict::None
    } else if !failed.is_empty() {
        ChecksVerdict::Red { failed }
    } else if !held.is_empty() {
        ChecksVerdict::Held { names: held }
    } else {
        ChecksVerdict::Green
    };
    (verdict, seen)
}

fn seen(checks: &[Check], before: Option<&SeenChecks>, now_ms: Ms) -> SeenChecks {
    let parts: Vec<String> = checks
        .iter()
        .flat_map(|check| {
            let Check { name, of, state, .. } = check;
            [name.clone(), of.clone(), check.age().to_string(), format!("{state:?}")]
        })
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let digest = digest(&parts);
    match before.filter(|before| before.digest == digest) {
        Some(before) => before.clone(),
        None => SeenChecks { digest, since_ms: now_ms },
    }
}

/// The name of one fix of these failed checks: the same however often it is asked for, another once a job was repeated
/// or something was pushed.
#[must_use]
pub fn fix_name((repository, pull_request): (u64, u64), head: &str, failed: &[Check]) -> String {
    let mut names: Vec<String> = failed
        .iter()
        .map(|check| format!("{}\n{}\n{}", check.name, check.of, check.age()))
        .collect();
    names.sort();
    let (repository, pull_request) = (repository.to_string(), pull_request.to_string());
    let mut parts = vec!["fix", &*repository, &*pull_request, head];
    parts.extend(names.iter().map(String::as_str));
    digest(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET_MS: u64 = 60_000;

    fn run(name: &str, id: u64, state: CheckState) -> Check {
        Check {
            name: name.to_owned(),
            of: "ci".to_owned(),
            kind: CheckKind::Run { id, app: Some(15_368) },
            state,
            page: String::new(),
        }
    }

    fn status(name: &str, at_ms: Ms, state: CheckState) -> Check {
        Check {
            name: name.to_owned(),
            of: String::new(),
            kind: CheckKind::Status { at_ms },
            state,
            page: String::new(),
        }
    }

    fn required(name: &str) -> RequiredCheck {
        RequiredCheck { name: name.to_owned(), app: None }
    }

    /// The verdict on checks that have been the same for the quiet time.
    fn settled(checks: &[Check], all: &[RequiredCheck]) -> ChecksVerdict {
        let (_, seen) = judge(checks, all, None, (0, QUIET_MS));
        judge(checks, all, Some(&seen), (QUIET_MS, QUIET_MS)).0
    }

    #[test]
    fn green_prefix_is_not_green() {
        let first = [run("build", 1, CheckState::Passed)];
        let (verdict, seen) = judge(&first, &[], None, (0, QUIET_MS));
        let early = ChecksVerdict::Unsettled { ended: 1, total: 1, missing: Vec::new() };
        assert_eq!(verdict, early);
        // Another job has got its machine: the quiet time begins again.
        let both = [run("build", 1, CheckState::Passed), run("test", 2, CheckState::Passed)];
        let (verdict, seen) = judge(&both, &[], Some(&seen), (QUIET_MS, QUIET_MS));
        assert_eq!(verdict, ChecksVerdict::Unsettled { ended: 2, total: 2, missing: Vec::new() });
        let (verdict, _) = judge(&both, &[], Some(&seen), (2 * QUIET_MS, QUIET_MS));
        assert_eq!(verdict, ChecksVerdict::Green);
    }

    #[test]
    fn missing_required_check_is_waited_for() {
        let checks = [run("build", 1, CheckState::Failed)];
        let all = [required("build"), required("deploy")];
        assert_eq!(
            settled(&checks, &all),
            ChecksVerdict::Unsettled { ended: 1, total: 2, missing: vec!["deploy".to_owned()] }
        );
        // Of check runs, only those of the app that the rule names count; a status always does.
        let of_app = [RequiredCheck { name: "build".to_owned(), app: Some(1) }];
        assert!(matches!(settled(&checks, &of_app), ChecksVerdict::Unsettled { .. }));
        let statuses = [status("build", 1, CheckState::Passed)];
        assert_eq!(settled(&statuses, &of_app), ChecksVerdict::Green);
    }

    #[test]
    fn repeated_job_replaces_its_failure() {
        let checks = [run("test", 1, CheckState::Failed), run("test", 2, CheckState::Passed)];
        assert_eq!(settled(&checks, &[]), ChecksVerdict::Green);
        let checks = [status("lint", 9, CheckState::Passed), status("lint", 3, CheckState::Failed)];
        assert_eq!(settled(&checks, &[]), ChecksVerdict::Green);
    }

    #[test]
    fn check_and_status_both_count() {
        let checks = [run("test", 1, CheckState::Passed), status("test", 2, CheckState::Failed)];
        let failed = vec![checks[1].clone()];
        assert_eq!(settled(&checks, &[required("test")]), ChecksVerdict::Red { failed });
    }

    #[test]
    fn running_check_hides_a_failure() {
        let checks = [run("lint", 1, CheckState::Failed), run("test", 2, CheckState::Running)];
        assert_eq!(
            settled(&checks, &[]),
            ChecksVerdict::Unsettled { ended: 1, total: 2, missing: Vec::new() }
        );
    }

    #[test]
    fn held_check_is_a_persons() {
        let checks = [run("deploy", 1, CheckState::Held), run("test", 2, CheckState::Passed)];
        assert_eq!(settled(&checks, &[]), ChecksVerdict::Held { names: vec!["deploy".to_owned()] });
        assert_eq!(settled(&[], &[]), ChecksVerdict::None);
    }

    #[test]
    fn fix_name_follows_head_and_attempt() {
        let name = |head: &str, failed: &[Check]| fix_name((42, 7), head, failed);
        let (lint, test) = (run("lint", 1, CheckState::Failed), run("test", 2, CheckState::Failed));
        let one = name("a", &[lint.clone(), test.clone()]);
        assert_eq!(name("a", &[test.clone(), lint.clone()]), one);
        let again = run("test", 3, CheckState::Failed);
        for other in [
            name("b", &[lint.clone(), test]),
            name("a", std::slice::from_ref(&lint)),
            name("a", &[lint, again]),
        ] {
            assert_ne!(other, one);
        }
    }
}
