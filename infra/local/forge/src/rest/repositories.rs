//! Repositories: made, read, changed, moved to another owner, removed; and who works on them.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::{Call, created, json_answer, nothing, ok};
use crate::access::Caller;
use crate::api_error::{Answer, ApiError};
use crate::git::Git;
use crate::git::commits::Signer;
use crate::limits::{NAME_CHARS_MAX, REPOSITORIES_MAX};
use crate::permission::{Level, of_person};
use crate::record::{Kind, RepositoryRecord, one_look};
use crate::state::SharedEngine;
use crate::webhooks;

/// A repository to be made.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NewRepository {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) private: bool,
    pub(crate) visibility: Option<String>,
    /// With a first commit.
    pub(crate) auto_init: bool,
}

fn check_name(name: &str) -> Result<(), ApiError> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let is_name = (1..=NAME_CHARS_MAX).contains(&name.chars().count())
        && name.chars().all(is_letter)
        && ![".", ".."].contains(&name)
        && !name.ends_with(".git");
    if is_name { Ok(()) } else { Err(ApiError::field("Repository", "name", "invalid")) }
}

fn taken() -> ApiError {
    let errors = json!([{
        "resource": "Repository", "code": "custom", "field": "name",
        "message": "name already exists on this account",
    }]);
    ApiError { errors: Some(errors), ..ApiError::unprocessable("Repository creation failed.") }
}

/// Makes a repository.
///
/// # Errors
/// The name is no name or taken, or there are too many.
pub(crate) async fn make(
    engine: &SharedEngine,
    owner: u64,
    sender: u64,
    new: NewRepository,
) -> Result<RepositoryRecord, ApiError> {
    check_name(&new.name)?;
    let now = engine.clock.now_ms();
    let is_private = match new.visibility.as_deref() {
        None => new.private,
        Some(word) => word != "public",
    };
    let record = engine.change(|inner| {
        let login = inner.account(owner)?.login.clone();
        if inner.named(&login, &new.name).is_some() {
            return Err(taken());
        }
        if inner.repositories.len() >= REPOSITORIES_MAX {
            return Err(ApiError::full("repositories"));
        }
        let record = RepositoryRecord {
            id: inner.new_id(),
            owner,
            name: new.name.clone(),
            former: Vec::new(),
            description: new.description.clone(),
            is_private,
            is_archived: false,
            default_branch: "main".to_owned(),
            has_no_drafts: false,
            deletes_heads: false,
            unknown_looks: one_look(),
            protects_pushes: false,
            size_kb: 0,
            created_at: now,
            updated_at: now,
            pushed_at: now,
            collaborators: std::collections::BTreeMap::new(),
            rulesets: Vec::new(),
            protections: std::collections::BTreeMap::new(),
            next_number: 1,
        };
        inner.repositories.insert(record.id, record.clone());
        Ok(record)
    })?;
    let git = Git::new(engine, record.id);
    git.init(&record.default_branch).await?;
    if new.auto_init {
        first_commit(&git, &record, now).await?;
    }
    tell(engine, record.id, sender, "created");
    Ok(record)
}

async fn first_commit(git: &Git, record: &RepositoryRecord, now: i64) -> Result<(), ApiError> {
    let text = format!("# {}\n", record.name).into_bytes();
    let blob = git.run_with(&["hash-object", "-w", "--stdin"], text).await?.text();
    let line = format!("100644 blob {blob}\tREADME.md\n").into_bytes();
    let tree = git.run_with(&["mktree"], line).await?.text();
    let author =
        Signer { name: "GitHub".to_owned(), mail: "noreply@github.com".to_owned(), at_ms: now };
    let commit = git.root_commit(&tree, &author, "Initial commit").await?;
    git.set(&format!("refs/heads/{}", record.default_branch), &commit).await
}

fn tell(engine: &SharedEngine, repository: u64, sender: u64, action: &'static str) {
    webhooks::tell_all(
        engine,
        repository,
        Some(sender),
        "repository",
        |_, _| json!({ "action": action }),
    );
}

pub(super) async fn create_in_organization(call: &Call) -> Answer {
    let person = call.person()?;
    let owner = {
        let inner = call.engine.lock();
        let organization = inner.organization_of(call.part("org"))?;
        if !organization.members.contains_key(&person) {
            return Err(ApiError::forbidden(
                "You need admin access to the organization before adding a repository to it.",
            ));
        }
        organization.id
    };
    create(call, owner, person).await
}

pub(super) async fn create_own(call: &Call) -> Answer {
    let person = call.person()?;
    create(call, person, person).await
}

async fn create(call: &Call, owner: u64, person: u64) -> Answer {
    let made = make(&call.engine, owner, person, call.read()?).await?;
    let inner = call.engine.lock();
    created(call.show(&inner).repository(&made, Some(Level::Admin)))
}

pub(super) async fn list_of_organization(call: &Call) -> Answer {
    let inner = call.engine.lock();
    let organization = inner.organization_of(call.part("org"))?;
    let own = inner.repositories.values().filter(|one| one.owner == organization.id);
    let mut told = Vec::new();
    for one in own {
        let level = call.caller.level(&inner, one, "metadata")?;
        if level > Level::None {
            told.push(call.show(&inner).repository(one, Some(level)));
        }
    }
    call.list(told)
}

/// The caller's level on a repository in one word, as answers about it have it.
fn level(call: &Call, repository: &RepositoryRecord) -> Result<Level, ApiError> {
    let inner = call.engine.lock();
    match &call.caller {
        Caller::Person { id, app: None, .. } => {
            Ok(of_person(*id, repository, inner.account(repository.owner)?))
        }
        caller => caller.level(&inner, repository, "contents"),
    }
}

pub(super) async fn get(call: &Call) -> Answer {
    let found = call.repository("metadata", Level::Read)?;
    let level = level(call, &found)?;
    let inner = call.engine.lock();
    ok(call.show(&inner).repository(&found, Some(level)))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Changed {
    name: Option<String>,
    description: Option<String>,
    private: Option<bool>,
    visibility: Option<String>,
    default_branch: Option<String>,
    archived: Option<bool>,
    delete_branch_on_merge: Option<bool>,
    security_and_analysis: Option<serde_json::Value>,
}

pub(super) async fn update(call: &Call) -> Answer {
    let found = call.repository("administration", Level::Write)?;
    let changed: Changed = call.read()?;
    let git = Git::new(&call.engine, found.id);
    if found.is_archived && changed.archived != Some(false) {
        return Err(ApiError::archived());
    }
    if let Some(branch) = &changed.default_branch {
        if git.branch(branch).await?.is_none() {
            let told = format!(
                "The branch {branch} was not found. Please push that ref first or create it via the Git Data API."
            );
            return Err(ApiError::custom("Repository", &told));
        }
        git.point(branch).await?;
    }
    let now = call.now();
    let is_renamed = changed.name.as_ref().is_some_and(|name| *name != found.name);
    let record = call.engine.change(|inner| {
        if let Some(name) = changed.name.as_ref().filter(|_| is_renamed) {
            check_name(name)?;
            let owner = inner.account(found.owner)?.login.clone();
            if inner.named(&owner, name).is_some_and(|other| other.id != found.id) {
                return Err(taken());
            }
        }
        let full_name = inner.full_name(&found);
        let record = inner.repository_mut(found.id)?;
        if let Some(name) = changed.name.filter(|_| is_renamed) {
            record.remember(&full_name);
            record.name = name;
        }
        if let Some(description) = changed.description {
            record.description = Some(description);
        }
        if let Some(is_private) = changed.private {
            record.is_private = is_private;
        }
        if let Some(word) = changed.visibility {
            record.is_private = word != "public";
        }
        if let Some(branch) = changed.default_branch {
            record.default_branch = branch;
        }
        if let Some(deletes_heads) = changed.delete_branch_on_merge {
            record.deletes_heads = deletes_heads;
        }
        if let Some(is_archived) = changed.archived {
            record.is_archived = is_archived;
        }
        let status = changed.security_and_analysis;
        let status = status.as_ref().map(|it| &it["secret_scanning_push_protection"]["status"]);
        if let Some(word) = status.and_then(serde_json::Value::as_str) {
            record.protects_pushes = word == "enabled";
        }
        record.updated_at = now;
        Ok(record.clone())
    })?;
    let actor = call.actor()?;
    if is_renamed {
        tell(&call.engine, record.id, actor, "renamed");
    }
    if record.is_archived != found.is_archived {
        let action = if record.is_archived { "archived" } else { "unarchived" };
        tell(&call.engine, record.id, actor, action);
    }
    let inner = call.engine.lock();
    ok(call.show(&inner).repository(&record, Some(Level::Admin)))
}

pub(super) async fn delete(call: &Call) -> Answer {
    let found = call.repository("administration", Level::Write)?;
    let writer = call.engine.writer(found.id);
    let _held = writer.lock().await;
    call.engine.change(|inner| {
        inner.repositories.remove(&found.id);
        let own = inner.pulls.iter().filter(|one| one.repository == found.id);
        let own: Vec<u64> = own.map(|one| one.id).collect();
        inner.talk.forget(&own);
        inner.checks.forget(found.id);
        inner.pulls.retain(|one| one.repository != found.id);
        Ok(())
    })?;
    let folder = call.engine.folder(found.id);
    tokio::fs::remove_dir_all(folder).await.map_err(ApiError::internal)?;
    call.engine.forget_writer(found.id);
    nothing()
}

#[derive(Deserialize)]
struct Transfer {
    new_owner: String,
    new_name: Option<String>,
}

pub(super) async fn transfer(call: &Call) -> Answer {
    let found = call.repository("administration", Level::Write)?;
    let person = call.person()?;
    let Transfer { new_owner, new_name } = call.read()?;
    let now = call.now();
    let record = call.engine.change(|inner| {
        let owner = inner.account_of(&new_owner)?;
        let may = owner.id == person || owner.members.contains_key(&person);
        if !may || owner.kind == Kind::Bot {
            return Err(ApiError::forbidden(
                "You don't have the permission to create repositories on this account",
            ));
        }
        let (id, login) = (owner.id, owner.login.clone());
        let name = new_name.unwrap_or_else(|| found.name.clone());
        check_name(&name)?;
        if inner.named(&login, &name).is_some() {
            return Err(taken());
        }
        let full_name = inner.full_name(&found);
        let record = inner.repository_mut(found.id)?;
        record.remember(&full_name);
        (record.owner, record.name, record.updated_at) = (id, name, now);
        Ok(record.clone())
    })?;
    tell(&call.engine, record.id, person, "transferred");
    let inner = call.engine.lock();
    json_answer(StatusCode::ACCEPTED, call.show(&inner).repository(&record, None))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Collaborator {
    permission: Option<String>,
}

/// Unlike at GitHub nobody is invited: the person works on it at once.
pub(super) async fn add_collaborator(call: &Call) -> Answer {
    let found = call.repository("administration", Level::Write)?;
    let word = call.read::<Collaborator>()?.permission.unwrap_or_else(|| "push".to_owned());
    if Level::of(&word) == Level::None {
        return Err(ApiError::field("Repository", "permission", "invalid"));
    }
    call.engine.change(|inner| {
        let person = inner.account_of(call.part("username"))?.id;
        inner.repository_mut(found.id)?.collaborators.insert(person, word);
        Ok(())
    })?;
    nothing()
}

pub(super) async fn remove_collaborator(call: &Call) -> Answer {
    let found = call.repository("administration", Level::Write)?;
    call.engine.change(|inner| {
        let person = inner.account_of(call.part("username"))?.id;
        inner.repository_mut(found.id)?.collaborators.remove(&person);
        Ok(())
    })?;
    nothing()
}

/// `maintain` counts as `write`, `triage` as `read`.
pub(super) async fn permission(call: &Call) -> Answer {
    let found = call.repository("metadata", Level::Read)?;
    let inner = call.engine.lock();
    if call.caller.level(&inner, &found, "metadata")? == Level::None {
        return Err(ApiError::not_found());
    }
    let account = inner.account_of(call.part("username"))?;
    if account.kind != Kind::User {
        return Err(ApiError::new(
            StatusCode::NOT_FOUND,
            format!("{} is not a user", account.login),
        ));
    }
    let level = of_person(account.id, &found, inner.account(found.owner)?);
    let mut user = call.show(&inner).user(account);
    user["role_name"] = level.word().into();
    let role = found.collaborators.get(&account.id).map_or(level.word(), String::as_str);
    let role = match role {
        "push" => "write",
        "pull" => "read",
        other => other,
    };
    ok(json!({ "permission": level.word(), "role_name": role, "user": user }))
}
