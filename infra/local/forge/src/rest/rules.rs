//! Rules of branches: rulesets, and the older protection of single branches.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, created, nothing, ok};
use crate::api_error::{Answer, ApiError};
use crate::git::rules::rules_of;
use crate::limits::RULES_MAX;
use crate::permission::Level;
use crate::record::{BranchRule, Protection, RepositoryRecord, Ruleset, StatusCheck};

/// A rule as it is told, with the parameters that GitHub always tells.
fn rule(rule: &BranchRule) -> Value {
    let mut told = serde_json::to_value(rule).unwrap_or_default();
    let more = match rule {
        BranchRule::PullRequest { .. } => json!({
            "dismiss_stale_reviews_on_push": false, "require_code_owner_review": false,
            "require_last_push_approval": false, "required_review_thread_resolution": false,
        }),
        BranchRule::MergeQueue {} => json!({
            "check_response_timeout_minutes": 60, "grouping_strategy": "ALLGREEN", "max_entries_to_build": 5,
            "max_entries_to_merge": 5, "merge_method": "MERGE", "min_entries_to_merge": 1,
            "min_entries_to_merge_wait_minutes": 5,
        }),
        _ => json!({}),
    };
    for (name, value) in more.as_object().into_iter().flatten() {
        told["parameters"][name] = value.clone();
    }
    told
}

pub(super) async fn of_branch(call: &Call) -> Answer {
    let found = call.repository("metadata", Level::Read)?;
    let full_name = call.engine.lock().full_name(&found);
    let rules = rules_of(&found, call.part("branch"));
    let told = rules.iter().map(|one| {
        let mut told = rule(one);
        let set = found.rulesets.iter().find(|set| set.rules.contains(one));
        told["ruleset_source_type"] = "Repository".into();
        told["ruleset_source"] = full_name.as_str().into();
        told["ruleset_id"] = set.map(|set| set.id).into();
        told
    });
    call.list(told.collect())
}

fn ruleset_view(call: &Call, repository: &RepositoryRecord, set: &Ruleset) -> Value {
    let inner = call.engine.lock();
    let show = call.show(&inner);
    let full_name = inner.full_name(repository);
    json!({
        "id": set.id, "name": set.name, "target": "branch", "source_type": "Repository", "source": full_name,
        "enforcement": "active", "bypass_actors": [], "current_user_can_bypass": "never",
        "node_id": show.node("RepositoryRuleset", set.id),
        "conditions": { "ref_name": { "include": set.include, "exclude": set.exclude } },
        "rules": set.rules.iter().map(rule).collect::<Vec<_>>(), "created_at": show.time(set.created_at),
        "updated_at": show.time(set.created_at),
        "_links": {
            "self": { "href": format!("{}/repos/{full_name}/rulesets/{}", show.at.api, set.id) },
            "html": { "href": format!("{}/{full_name}/rules/{}", show.at.web, set.id) },
        },
    })
}

pub(super) async fn rulesets(call: &Call) -> Answer {
    let found = call.repository("metadata", Level::Read)?;
    call.list(found.rulesets.iter().map(|set| ruleset_view(call, &found, set)).collect())
}

pub(super) async fn ruleset(call: &Call) -> Answer {
    let found = call.repository("metadata", Level::Read)?;
    let id = call.number("ruleset_id")?;
    let set = found.rulesets.iter().find(|set| set.id == id).ok_or_else(ApiError::not_found)?;
    ok(ruleset_view(call, &found, set))
}

#[derive(Deserialize)]
struct NewRuleset {
    name: String,
    target: Option<String>,
    enforcement: String,
    #[serde(default)]
    conditions: Conditions,
    #[serde(default)]
    rules: Vec<Value>,
}

#[derive(Default, Deserialize)]
struct Conditions {
    ref_name: Option<Names>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Names {
    include: Vec<String>,
    exclude: Vec<String>,
}

/// A rule as it comes. One without parameters has their defaults.
fn parsed(mut value: Value) -> Result<BranchRule, ApiError> {
    let has_defaults = value["type"] == "pull_request" || value["type"] == "merge_queue";
    if has_defaults && value["parameters"].is_null() {
        value["parameters"] = json!({});
    }
    let kind = value["type"].clone();
    serde_json::from_value(value)
        .map_err(|error| ApiError::unprocessable(format!("Invalid rule {kind}: {error}")))
}

pub(super) async fn create_ruleset(call: &Call) -> Answer {
    let found = call.repository("administration", Level::Write)?;
    let new: NewRuleset = call.read()?;
    if new.target.as_deref().is_some_and(|target| target == "tag") || new.enforcement != "active" {
        return Err(ApiError::unprocessable(
            "This forge has active rules of branches and pushes only",
        ));
    }
    // Rules of pushes hold for every branch.
    let names = new.conditions.ref_name.unwrap_or_default();
    let is_push = new.target.as_deref() == Some("push");
    let include = if is_push { vec!["~ALL".to_owned()] } else { names.include };
    let rules = new.rules.into_iter().map(parsed).collect::<Result<Vec<BranchRule>, _>>()?;
    let now = call.now();
    let set = call.engine.change(|inner| {
        let id = inner.new_id();
        let record = inner.repository_mut(found.id)?;
        let all: usize = record.rulesets.iter().map(|set| set.rules.len()).sum();
        if all + rules.len() > RULES_MAX || record.rulesets.len() >= RULES_MAX {
            return Err(ApiError::full("rules of one repository"));
        }
        let exclude = names.exclude;
        let set = Ruleset { id, name: new.name, include, exclude, rules, created_at: now };
        record.rulesets.push(set.clone());
        Ok(set)
    })?;
    created(ruleset_view(call, &found, &set))
}

pub(super) async fn delete_ruleset(call: &Call) -> Answer {
    let found = call.repository("administration", Level::Write)?;
    let id = call.number("ruleset_id")?;
    call.engine.change(|inner| {
        let sets = &mut inner.repository_mut(found.id)?.rulesets;
        let at = sets.iter().position(|set| set.id == id).ok_or_else(ApiError::not_found)?;
        sets.remove(at);
        Ok(())
    })?;
    nothing()
}

fn unprotected() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "Branch not protected")
}

fn protection_view(
    call: &Call,
    repository: &RepositoryRecord,
    branch: &str,
    one: &Protection,
) -> Value {
    let full_name = call.engine.lock().full_name(repository);
    let at = format!(
        "{}/repos/{full_name}/branches/{}/protection",
        call.engine.addresses.api,
        super::encoded(branch)
    );
    let has = |wanted: fn(&BranchRule) -> bool| one.rules.iter().any(wanted);
    let mut told = json!({
        "url": at, "enforce_admins": { "url": format!("{at}/enforce_admins"), "enabled": one.binds_administrators },
        "required_linear_history": { "enabled": false },
        "allow_force_pushes": { "enabled": !has(|rule| matches!(rule, BranchRule::NonFastForward)) },
        "allow_deletions": { "enabled": !has(|rule| matches!(rule, BranchRule::Deletion)) },
        "required_signatures": {
            "url": format!("{at}/required_signatures"),
            "enabled": has(|rule| matches!(rule, BranchRule::RequiredSignatures)),
        },
    });
    for rule in &one.rules {
        match rule {
            BranchRule::PullRequest { required_approving_review_count: count } => {
                told["required_pull_request_reviews"] = json!({
                    "url": format!("{at}/required_pull_request_reviews"), "dismiss_stale_reviews": false,
                    "require_code_owner_reviews": false, "required_approving_review_count": count,
                    "require_last_push_approval": false,
                });
            }
            BranchRule::RequiredStatusChecks {
                required_status_checks: checks,
                strict_required_status_checks_policy: strict,
            } => {
                let names: Vec<&String> = checks.iter().map(|one| &one.context).collect();
                let apps = checks
                    .iter()
                    .map(|one| json!({ "context": one.context, "app_id": one.integration_id }));
                let apps: Vec<Value> = apps.collect();
                told["required_status_checks"] = json!({
                    "url": format!("{at}/required_status_checks"), "strict": strict, "contexts": names,
                    "contexts_url": format!("{at}/required_status_checks/contexts"), "checks": apps,
                });
            }
            _ => {}
        }
    }
    told
}

pub(super) async fn protection(call: &Call) -> Answer {
    let found = call.repository("administration", Level::Read)?;
    let branch = call.part("branch");
    let one = found.protections.get(branch).ok_or_else(unprotected)?;
    ok(protection_view(call, &found, branch, one))
}

#[derive(Deserialize)]
struct NewProtection {
    required_status_checks: Option<Checks>,
    enforce_admins: Option<bool>,
    required_pull_request_reviews: Option<Reviews>,
    allow_force_pushes: Option<bool>,
    allow_deletions: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Checks {
    strict: bool,
    contexts: Vec<String>,
    checks: Vec<StatusCheck>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Reviews {
    required_approving_review_count: u64,
}

pub(super) async fn protect(call: &Call) -> Answer {
    let found = call.repository("administration", Level::Write)?;
    let new: NewProtection = call.read()?;
    let mut rules = Vec::new();
    if let Some(reviews) = new.required_pull_request_reviews {
        let required_approving_review_count = reviews.required_approving_review_count;
        rules.push(BranchRule::PullRequest { required_approving_review_count });
    }
    if let Some(checks) = new.required_status_checks {
        let named = checks.contexts.into_iter();
        let named = named.map(|context| StatusCheck { context, integration_id: None });
        rules.push(BranchRule::RequiredStatusChecks {
            required_status_checks: named.chain(checks.checks).collect(),
            strict_required_status_checks_policy: checks.strict,
        });
    }
    if new.allow_force_pushes != Some(true) {
        rules.push(BranchRule::NonFastForward);
    }
    if new.allow_deletions != Some(true) {
        rules.push(BranchRule::Deletion);
    }
    let one = Protection { rules, binds_administrators: new.enforce_admins == Some(true) };
    let branch = call.part("branch").to_owned();
    call.engine.change(|inner| {
        let protections = &mut inner.repository_mut(found.id)?.protections;
        if protections.len() >= RULES_MAX {
            return Err(ApiError::full("rules of one repository"));
        }
        protections.insert(branch.clone(), one.clone());
        Ok(())
    })?;
    ok(protection_view(call, &found, &branch, &one))
}

pub(super) async fn unprotect(call: &Call) -> Answer {
    let found = call.repository("administration", Level::Write)?;
    call.engine.change(|inner| {
        let protections = &mut inner.repository_mut(found.id)?.protections;
        protections.remove(call.part("branch")).map(drop).ok_or_else(unprotected)
    })?;
    nothing()
}

pub(super) async fn require_signatures(call: &Call) -> Answer {
    let found = call.repository("administration", Level::Write)?;
    let branch = call.part("branch");
    let one = call.engine.change(|inner| {
        let protections = &mut inner.repository_mut(found.id)?.protections;
        let one = protections.get_mut(branch).ok_or_else(unprotected)?;
        if !one.rules.contains(&BranchRule::RequiredSignatures) {
            one.rules.push(BranchRule::RequiredSignatures);
        }
        Ok(one.clone())
    })?;
    ok(protection_view(call, &found, branch, &one)["required_signatures"].clone())
}
