//! One look at a pull request.

use serde_json::{Map, Value, json};

use super::FieldRefusal;
use super::document::{Field, Selection};
use super::nodes::{PullNodes, Rights};
use super::projection::forbidden;
use crate::access::Caller;
use crate::git::Git;
use crate::permission::Level;
use crate::pulls::{looked_at, rules_for};
use crate::record::{BranchRule, Pull, RepositoryRecord};
use crate::rest::Call;
use crate::state::ForgeState;

/// What is left of the caller's points; every known document costs one.
pub(super) fn rate_limit(call: &Call) -> Value {
    let limit = call.engine.settings.requests_max;
    let rate = call.engine.rate(&call.caller.points_counted_as(), limit, false);
    let inner = call.engine.lock();
    json!({
        "cost": 1, "limit": rate.limit, "used": rate.used, "remaining": rate.remaining(),
        "resetAt": call.show(&inner).time(rate.ends_at), "nodeCount": 1,
    })
}

/// What the caller may see and do of a repository's pull requests.
pub(super) fn rights(call: &Call, inner: &ForgeState, record: &RepositoryRecord) -> Rights {
    let has = |right: &str, needed: Level| {
        call.caller.level(inner, record, right).unwrap_or(Level::None) >= needed
    };
    Rights {
        contents: has("contents", Level::Read),
        checks: has("checks", Level::Read),
        statuses: has("statuses", Level::Read),
        actions: has("actions", Level::Read),
        resolves: has("contents", Level::Write) && has("pull_requests", Level::Write),
    }
}

/// A pull request with everything that a document may ask for.
pub(super) async fn pull_request(call: &Call, pull: &Pull) -> Result<Value, FieldRefusal> {
    let numbers = looked_at(&call.engine, pull).await?;
    let inner = call.engine.lock();
    let record = inner.repository(pull.repository)?;
    let rules = rules_for(&inner, pull);
    let checks = rules.iter().filter_map(|rule| match rule {
        BranchRule::RequiredStatusChecks { required_status_checks: checks, .. } => Some(checks),
        _ => None,
    });
    let required = checks.flatten().map(|one| one.context.clone()).collect();
    let rights = rights(call, &inner, record);
    let nodes = PullNodes { show: call.show(&inner), pull, rights, required };
    Ok(nodes.pull_request(&numbers, &rules))
}

/// The number of the pull request that is asked for.
fn number(field: &Field, variables: &Map<String, Value>) -> Option<u64> {
    let found = field.fields.iter().find_map(|one| match one {
        Selection::Field(field) if field.name == "pullRequest" => field.arguments.get("number"),
        _ => None,
    });
    found?.value(variables).as_u64()
}

pub(super) async fn repository(
    call: &Call,
    field: &Field,
    (owner, name): (&Value, &Value),
    variables: &Map<String, Value>,
) -> Result<Value, FieldRefusal> {
    let full_name =
        format!("{}/{}", owner.as_str().unwrap_or_default(), name.as_str().unwrap_or_default());
    let number = number(field, variables);
    let (record, level, pull, full_name) = {
        let inner = call.engine.lock();
        let unknown = || {
            let told = format!("Could not resolve to a Repository with the name '{full_name}'.");
            FieldRefusal::new("NOT_FOUND", told)
        };
        let parts = full_name.split_once('/').unwrap_or_default();
        // A former name is followed here.
        let record = inner.named(parts.0, parts.1);
        let record = record.or_else(|| inner.formerly_named(parts.0, parts.1));
        let record = record.ok_or_else(unknown)?.clone();
        if call.caller.level(&inner, &record, "metadata")? == Level::None {
            return Err(unknown());
        }
        let level = call.caller.level(&inner, &record, "pull_requests")?;
        let pull = number.and_then(|number| inner.pull(record.id, number).ok()).cloned();
        let full_name = inner.full_name(&record);
        (record, level, pull, full_name)
    };
    let is_app = !matches!(call.caller, Caller::Person { app: None, .. });
    let pull = match (&pull, number) {
        _ if level < Level::Read && is_app => forbidden(),
        (Some(pull), _) => pull_request(call, pull).await?,
        (None, Some(number)) => {
            let told = format!("Could not resolve to a PullRequest with the number of {number}.");
            return Err(FieldRefusal::new("NOT_FOUND", told));
        }
        (None, None) => Value::Null,
    };
    let git = Git::new(&call.engine, record.id);
    let head = git.branch(&record.default_branch).await?;
    let is_empty = git.references("refs/heads/").await?.is_empty();
    let inner = call.engine.lock();
    Ok(json!({
        "id": call.show(&inner).node("Repository", record.id), "databaseId": record.id, "name": record.name,
        "nameWithOwner": full_name, "isArchived": record.is_archived, "isEmpty": is_empty,
        "isPrivate": record.is_private,
        "defaultBranchRef": head.map(|_| json!({ "name": record.default_branch })), "pullRequest": pull,
    }))
}
