//! Branches and references.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, created, encoded, nothing, ok};
use crate::api_error::{Answer, ApiError};
use crate::git::repository::Reference;
use crate::git::rules::{Move, Push, rules_of};
use crate::git::{Git, ZEROS};
use crate::permission::Level;
use crate::record::{BranchRule, RepositoryRecord, StatusCheck};

fn is_protected(repository: &RepositoryRecord, branch: &str) -> bool {
    repository.protections.contains_key(branch) || !rules_of(repository, branch).is_empty()
}

fn protection(call: &Call, full_name: &str, branch: &str) -> String {
    let api = &call.engine.addresses.api;
    format!("{api}/repos/{full_name}/branches/{}/protection", encoded(branch))
}

pub(super) async fn branches(call: &Call) -> Answer {
    let found = call.repository("contents", Level::Read)?;
    let full_name = call.engine.lock().full_name(&found);
    let all = Git::new(&call.engine, found.id).references("refs/heads/").await?;
    let wanted = call.asked("protected").map(|word| word == "true");
    let told = all.iter().filter_map(|one| {
        let name = one.name.strip_prefix("refs/heads/")?;
        let is_protected = is_protected(&found, name);
        let url = format!("{}/repos/{full_name}/commits/{}", call.engine.addresses.api, one.sha);
        wanted.is_none_or(|wanted| wanted == is_protected).then(|| {
            json!({
                "name": name, "commit": { "sha": one.sha, "url": url }, "protected": is_protected,
                "protection": { "enabled": is_protected }, "protection_url": protection(call, &full_name, name),
            })
        })
    });
    call.list(told.collect())
}

pub(super) async fn branch(call: &Call) -> Answer {
    let found = call.repository("contents", Level::Read)?;
    let name = call.part("branch");
    let git = Git::new(&call.engine, found.id);
    let unknown = || ApiError::new(StatusCode::NOT_FOUND, "Branch not found");
    let sha = git.branch(name).await?.ok_or_else(unknown)?;
    let commit = git.one(&sha).await?;
    let inner = call.engine.lock();
    let full_name = inner.full_name(&found);
    let at = format!("{}/repos/{full_name}/branches/{}", call.engine.addresses.api, encoded(name));
    let page = format!("{}/{full_name}/tree/{}", call.engine.addresses.web, encoded(name));
    let is_protected = is_protected(&found, name);
    ok(json!({
        "name": name, "commit": call.show(&inner).commit(&full_name, &commit),
        "_links": { "self": at, "html": page }, "protected": is_protected,
        "protection": required(&found, name), "protection_url": protection(call, &full_name, name),
    }))
}

/// The part of a branch's older protection that callers who read contents are told.
fn required(repository: &RepositoryRecord, branch: &str) -> Value {
    let rules = repository.protections.get(branch).map(|one| &one.rules).into_iter().flatten();
    let checks = rules.filter_map(|one| match one {
        BranchRule::RequiredStatusChecks { required_status_checks: checks, .. } => Some(checks),
        _ => None,
    });
    let checks: Vec<&StatusCheck> = checks.flatten().collect();
    let names: Vec<&String> = checks.iter().map(|one| &one.context).collect();
    let apps =
        checks.iter().map(|one| json!({ "context": one.context, "app_id": one.integration_id }));
    let level = match repository.protections.get(branch) {
        Some(one) if one.binds_administrators && !names.is_empty() => "everyone",
        Some(_) if !names.is_empty() => "non_admins",
        _ => "off",
    };
    json!({
        "enabled": repository.protections.contains_key(branch),
        "required_status_checks": {
            "enforcement_level": level, "checks": apps.collect::<Vec<_>>(), "contexts": names,
        },
    })
}

fn view(call: &Call, full_name: &str, one: &Reference) -> Value {
    let base = format!("{}/repos/{full_name}/git", call.engine.addresses.api);
    let inner = call.engine.lock();
    json!({
        "ref": one.name, "node_id": call.show(&inner).node("Ref", &one.name),
        "url": format!("{base}/{}", encoded(&one.name)),
        "object": { "type": one.kind, "sha": one.sha, "url": format!("{base}/{}s/{}", one.kind, one.sha) },
    })
}

/// References of an empty repository are a conflict, not an absence.
async fn all(git: &Git, below: &str) -> Result<Vec<Reference>, ApiError> {
    let found = git.references(below).await?;
    if found.is_empty() && git.references("refs/heads/").await?.is_empty() {
        return Err(ApiError::conflict("Git Repository is empty."));
    }
    Ok(found)
}

pub(super) async fn get(call: &Call) -> Answer {
    let found = call.repository("contents", Level::Read)?;
    let name = format!("refs/{}", call.part("ref"));
    let all = all(&Git::new(&call.engine, found.id), &name).await?;
    let one = all.iter().find(|one| one.name == name).ok_or_else(ApiError::not_found)?;
    let full_name = call.engine.lock().full_name(&found);
    ok(view(call, &full_name, one))
}

/// Those whose names begin like this, in the middle of a word too.
pub(super) async fn matching(call: &Call) -> Answer {
    let found = call.repository("contents", Level::Read)?;
    let name = format!("refs/{}", call.part("ref"));
    let all = all(&Git::new(&call.engine, found.id), "refs/").await?;
    let full_name = call.engine.lock().full_name(&found);
    let fitting = all.iter().filter(|one| one.name.starts_with(&name));
    call.list(fitting.map(|one| view(call, &full_name, one)).collect())
}

/// Moves a reference in a caller's name, by the repository's rules.
async fn moved(call: &Call, record: &RepositoryRecord, one: Move) -> Result<(), ApiError> {
    let git = Git::new(&call.engine, record.id);
    let writer = call.engine.writer(record.id);
    let held = writer.lock().await;
    let lacks_workflows = call.caller.lacks_workflows(&call.engine.lock(), record);
    let moves = [one];
    let push = Push {
        repository: record,
        moves: &moves,
        lacks_workflows,
        is_administrator: false,
        rules_page: String::new(),
        trace: String::new(),
    };
    let (refusal, _) = push.check(&git).await?;
    if !refusal.is_none() {
        let told = refusal.told.lines().filter_map(|line| line.strip_prefix("- "));
        let told: Vec<&str> = told.collect();
        let told = format!("Repository rule violations found\n\n{}\n\n", told.join("\n\n"));
        return Err(ApiError::unprocessable(told));
    }
    let [one] = &moves;
    if !git.update(&one.name, &one.new, &one.old).await? {
        return Err(ApiError::unprocessable("Reference cannot be updated"));
    }
    drop(held);
    crate::pulls::after_push(&call.engine, record.id, &call.caller, &moves).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewRef {
    r#ref: String,
    sha: String,
}

pub(super) async fn create(call: &Call) -> Answer {
    let record = call.writable("contents")?;
    let NewRef { r#ref: name, sha } = call.read()?;
    let git = Git::new(&call.engine, record.id);
    let short = name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/tags/"));
    let Some(short) = short else {
        return Err(ApiError::unprocessable(format!("{name} is not a valid ref name.")));
    };
    if !git.is_branch_name(short).await? {
        return Err(ApiError::unprocessable(format!("{name} is not a valid ref name.")));
    }
    let known = git.commit(&sha).await?.filter(|known| *known == sha);
    let known = known.ok_or_else(|| ApiError::unprocessable("Object does not exist"))?;
    if git.object(&name).await?.is_some() {
        return Err(ApiError::unprocessable("Reference already exists"));
    }
    let one = Move { old: ZEROS.to_owned(), new: known.clone(), name: name.clone() };
    moved(call, &record, one).await?;
    let full_name = call.engine.lock().full_name(&record);
    let one = Reference { name, sha: known, kind: "commit".to_owned(), subject: String::new() };
    created(view(call, &full_name, &one))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RefUpdate {
    sha: String,
    #[serde(default)]
    force: bool,
}

/// The reference of the path, and where it is.
async fn present(call: &Call, git: &Git) -> Result<(String, String), ApiError> {
    let name = format!("refs/{}", call.part("ref"));
    let is_own = name.starts_with("refs/heads/") || name.starts_with("refs/tags/");
    let unknown = || ApiError::unprocessable("Reference does not exist");
    if !is_own {
        return Err(unknown());
    }
    let old = git.object(&name).await?.ok_or_else(unknown)?;
    Ok((name, old))
}

pub(super) async fn update(call: &Call) -> Answer {
    let record = call.writable("contents")?;
    let RefUpdate { sha, force } = call.read()?;
    let git = Git::new(&call.engine, record.id);
    let (name, old) = present(call, &git).await?;
    let known = git.commit(&sha).await?.filter(|known| *known == sha);
    let new = known.ok_or_else(|| ApiError::unprocessable("Object does not exist"))?;
    if !force && !git.is_ancestor(&old, &new).await? {
        return Err(ApiError::unprocessable("Update is not a fast forward"));
    }
    let one = Move { old, new: new.clone(), name: name.clone() };
    moved(call, &record, one).await?;
    let full_name = call.engine.lock().full_name(&record);
    let one = Reference { name, sha: new, kind: "commit".to_owned(), subject: String::new() };
    ok(view(call, &full_name, &one))
}

pub(super) async fn delete(call: &Call) -> Answer {
    let record = call.writable("contents")?;
    let git = Git::new(&call.engine, record.id);
    let (name, old) = present(call, &git).await?;
    if name == format!("refs/heads/{}", record.default_branch) {
        return Err(ApiError::unprocessable("Cannot delete the default branch"));
    }
    moved(call, &record, Move { old, new: ZEROS.to_owned(), name }).await?;
    nothing()
}
