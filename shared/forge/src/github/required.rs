//! Checks without which nothing is merged into a branch: those of rulesets, and those of the older protection of single
//! branches. Both may hold at once.

use bobbin_core::records::checks::RequiredCheck;
use serde::Deserialize;

use super::client::PAGE_ITEMS;
use super::rest::{Call, RestClient, RestCredential, RestError};
use crate::forge::RepositoryName;

#[derive(Deserialize)]
struct RuleBody {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    parameters: ParametersBody,
}

#[derive(Deserialize, Default)]
struct ParametersBody {
    #[serde(default)]
    required_status_checks: Vec<RuleCheckBody>,
}

#[derive(Deserialize)]
struct RuleCheckBody {
    context: String,
    integration_id: Option<u64>,
}

#[derive(Deserialize)]
struct BranchBody {
    protection: Option<ProtectionBody>,
}

#[derive(Deserialize)]
struct ProtectionBody {
    required_status_checks: Option<ProtectionChecksBody>,
}

#[derive(Deserialize)]
struct ProtectionChecksBody {
    #[serde(default)]
    contexts: Vec<String>,
    #[serde(default)]
    checks: Vec<ProtectionCheckBody>,
}

#[derive(Deserialize)]
struct ProtectionCheckBody {
    context: String,
    app_id: Option<i64>,
}

/// The required checks of a branch, each once.
pub(super) async fn read(
    rest: &RestClient,
    by: RestCredential<'_>,
    name: &RepositoryName,
    branch: &str,
) -> Result<Vec<RequiredCheck>, RestError> {
    let path = ["repos", name.owner(), name.name(), "rules", "branches", branch];
    let query = [("per_page", PAGE_ITEMS)];
    let rules: Vec<RuleBody> = match rest.read(Call::get(by, &path).with(&query)).await {
        Ok(rules) => rules,
        // The owner's plan has none for private repositories.
        Err(error) if error.status() == Some(403) && error.says("Upgrade to GitHub") => Vec::new(),
        Err(error) => return Err(error),
    };
    let path = ["repos", name.owner(), name.name(), "branches", branch];
    let found: BranchBody = match rest.read(Call::get(by, &path)).await {
        Ok(found) => found,
        // The branch is gone.
        Err(error) if error.status() == Some(404) => BranchBody { protection: None },
        Err(error) => return Err(error),
    };
    let of_rules = rules.into_iter().filter(|rule| rule.kind == "required_status_checks");
    let of_rules = of_rules.flat_map(|rule| rule.parameters.required_status_checks);
    let mut required: Vec<RequiredCheck> = of_rules
        .map(|check| RequiredCheck { name: check.context, app: check.integration_id })
        .collect();
    let checks = found.protection.and_then(|protection| protection.required_status_checks);
    if let Some(ProtectionChecksBody { contexts, checks }) = checks {
        let of_apps = checks.iter().map(|check| RequiredCheck {
            name: check.context.clone(),
            // -1 is any.
            app: check.app_id.and_then(|app| u64::try_from(app).ok()),
        });
        required.extend(of_apps);
        // The older list of the same.
        let is_new = |name: &String| checks.iter().all(|check| check.context != *name);
        let others = contexts.into_iter().filter(is_new);
        required.extend(others.map(|name| RequiredCheck { name, app: None }));
    }
    required.sort();
    required.dedup();
    Ok(required)
}
