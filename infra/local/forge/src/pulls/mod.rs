//! Pull requests: opened and changed; how they are merged, reviewed and moved by pushes is beside.

mod allowed;
mod merging;
mod numbers;
mod pushes;
pub(crate) mod queue;
mod reviewers;

use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::git::Git;
use crate::limits::{PULLS_MAX, TEXT_CHARS_MAX, TITLE_CHARS_MAX};
use crate::record::{Pull, PullState};
use crate::state::SharedEngine;
use crate::webhooks;

pub(crate) use allowed::rules_for;
pub(crate) use merging::{Merge, merge, update_branch};
pub(crate) use numbers::{Numbers, looked_at, numbers, range};
pub(crate) use pushes::after_push;
pub(crate) use reviewers::ask_for_review;

/// A pull request to be opened.
pub(crate) struct New {
    pub(crate) title: String,
    pub(crate) body: Option<String>,
    /// A branch, with or without its owner.
    pub(crate) head: String,
    pub(crate) base: String,
    pub(crate) is_draft: bool,
    pub(crate) maintainer_can_modify: bool,
}

fn check_texts(title: Option<&str>, body: Option<&str>) -> Result<(), ApiError> {
    if title.is_some_and(|title| title.trim().is_empty()) {
        return Err(ApiError::field("PullRequest", "title", "missing_field"));
    }
    if title.is_some_and(|title| title.chars().count() > TITLE_CHARS_MAX) {
        return Err(ApiError::custom(
            "PullRequest",
            "title is too long (maximum is 256 characters)",
        ));
    }
    if body.is_some_and(|body| body.chars().count() > TEXT_CHARS_MAX) {
        return Err(ApiError::custom(
            "PullRequest",
            "body is too long (maximum is 65536 characters)",
        ));
    }
    Ok(())
}

/// Opens a pull request.
///
/// # Errors
/// As GitHub refuses it.
pub(crate) async fn open(
    engine: &SharedEngine,
    repository: u64,
    author: u64,
    new: New,
) -> Result<Pull, ApiError> {
    let (record, owner) = {
        let inner = engine.lock();
        let record = inner.repository(repository)?.clone();
        let owner = inner.account(record.owner)?.login.clone();
        (record, owner)
    };
    if record.is_archived {
        return Err(ApiError::archived());
    }
    check_texts(Some(&new.title), new.body.as_deref())?;
    let git = Git::new(engine, repository);
    let head = match new.head.split_once(':') {
        Some((named, branch)) if named.eq_ignore_ascii_case(&owner) => branch.to_owned(),
        Some(_) => return Err(ApiError::field("PullRequest", "head", "invalid")),
        None => new.head.clone(),
    };
    let base_sha = git.branch(&new.base).await?;
    let base_sha = base_sha.ok_or_else(|| ApiError::field("PullRequest", "base", "invalid"))?;
    let head_sha = git.branch(&head).await?;
    let head_sha = head_sha.ok_or_else(|| ApiError::field("PullRequest", "head", "invalid"))?;
    if git.merge_base(&base_sha, &head_sha).await?.is_none() {
        let told = format!("The {head} branch has no history in common with {}", new.base);
        return Err(ApiError::custom("PullRequest", &told));
    }
    if git.ahead_behind(&base_sha, &head_sha).await?.0 == 0 {
        let told = format!("No commits between {} and {head}", new.base);
        return Err(ApiError::custom("PullRequest", &told));
    }
    if new.is_draft && record.has_no_drafts {
        return Err(ApiError::unprocessable(
            "Draft pull requests are not supported in this repository.",
        ));
    }
    let now = engine.clock.now_ms();
    let pull = engine.change(|inner| {
        let same = |one: &&Pull| one.head == head && one.base == new.base;
        if inner.open_pulls(repository).any(|one| same(&one)) {
            let told = format!("A pull request already exists for {owner}:{head}.");
            return Err(ApiError::custom("PullRequest", &told));
        }
        if inner.pulls.len() >= PULLS_MAX {
            return Err(ApiError::full("pull requests"));
        }
        let id = inner.new_id();
        let record = inner.repository_mut(repository)?;
        let number = record.next_number;
        record.next_number += 1;
        let pull = Pull {
            id,
            repository,
            number,
            title: new.title,
            body: new.body.filter(|body| !body.is_empty()),
            head,
            head_sha,
            base: new.base,
            base_sha,
            state: PullState::Open,
            is_draft: new.is_draft,
            author,
            maintainer_can_modify: new.maintainer_can_modify,
            reviewers: Vec::new(),
            merge_sha: None,
            merged_by: None,
            queued_at: None,
            created_at: now,
            updated_at: now,
            closed_at: None,
        };
        inner.pulls.push(pull.clone());
        Ok(pull)
    })?;
    git.set(&format!("refs/pull/{}/head", pull.number), &pull.head_sha).await?;
    tell(engine, &pull, author, "opened", &[]).await;
    Ok(pull)
}

/// What is changed of a pull request.
#[derive(Default)]
pub(crate) struct Changed {
    pub(crate) title: Option<String>,
    pub(crate) body: Option<String>,
    pub(crate) is_open: Option<bool>,
    pub(crate) base: Option<String>,
    pub(crate) is_draft: Option<bool>,
    pub(crate) maintainer_can_modify: Option<bool>,
}

/// Changes a pull request.
///
/// # Errors
/// As GitHub refuses it.
pub(crate) async fn update(
    engine: &SharedEngine,
    repository: u64,
    number: u64,
    actor: u64,
    changed: Changed,
) -> Result<Pull, ApiError> {
    check_texts(changed.title.as_deref(), changed.body.as_deref())?;
    let git = Git::new(engine, repository);
    let before = engine.lock().pull(repository, number)?.clone();
    if engine.lock().repository(repository)?.is_archived {
        return Err(ApiError::archived());
    }
    let base_sha = match &changed.base {
        Some(base) => {
            let found = git.branch(base).await?;
            Some(found.ok_or_else(|| ApiError::field("PullRequest", "base", "invalid"))?)
        }
        None => None,
    };
    if changed.is_open == Some(true) && before.state == PullState::Merged {
        return Err(ApiError::custom(
            "PullRequest",
            "state cannot be changed. The pull request has been merged.",
        ));
    }
    let reopens = changed.is_open == Some(true) && before.state == PullState::Closed;
    if reopens && git.branch(&before.head).await?.is_none() {
        let told = format!("state cannot be changed. The {} branch has been deleted.", before.head);
        return Err(ApiError::custom("PullRequest", &told));
    }
    let now = engine.clock.now_ms();
    let pull = engine.change(|inner| {
        let pull = inner.pull_mut(repository, number)?;
        if let Some(title) = changed.title {
            pull.title = title;
        }
        if let Some(body) = changed.body {
            pull.body = Some(body).filter(|body| !body.is_empty());
        }
        if let (Some(base), Some(sha)) = (changed.base, base_sha) {
            (pull.base, pull.base_sha) = (base, sha);
        }
        if let Some(is_draft) = changed.is_draft {
            pull.is_draft = is_draft;
        }
        if let Some(may) = changed.maintainer_can_modify {
            pull.maintainer_can_modify = may;
        }
        match changed.is_open {
            Some(true) if reopens => (pull.state, pull.closed_at) = (PullState::Open, None),
            Some(false) if pull.state == PullState::Open => {
                (pull.state, pull.closed_at) = (PullState::Closed, Some(now));
            }
            _ => {}
        }
        pull.updated_at = now;
        Ok(pull.clone())
    })?;
    let mut changes = json!({});
    if before.title != pull.title {
        changes["title"] = json!({ "from": before.title });
    }
    if before.body != pull.body {
        changes["body"] = json!({ "from": before.body });
    }
    if before.base != pull.base {
        let (name, sha) = (json!({ "from": before.base }), json!({ "from": before.base_sha }));
        changes["base"] = json!({ "ref": name, "sha": sha });
    }
    let action = match (before.state, pull.state) {
        (PullState::Open, PullState::Closed) => "closed",
        (PullState::Closed, PullState::Open) => "reopened",
        _ if before.is_draft && !pull.is_draft => "ready_for_review",
        _ if !before.is_draft && pull.is_draft => "converted_to_draft",
        _ => "edited",
    };
    let more = [("changes", changes)];
    tell(engine, &pull, actor, action, if action == "edited" { &more } else { &[] }).await;
    Ok(pull)
}

/// Tells apps. Whether it can be merged is never known at that moment.
pub(super) async fn tell(
    engine: &SharedEngine,
    pull: &Pull,
    actor: u64,
    action: &str,
    more: &[(&'static str, Value)],
) {
    let numbers = numbers(engine, pull).await.unwrap_or_default();
    let numbers = Numbers { mergeable: None, ..numbers };
    webhooks::tell_all(engine, pull.repository, Some(actor), "pull_request", |show, _| {
        let mut payload = json!({
            "action": action, "number": pull.number, "pull_request": show.pull(pull, Some(&numbers)),
        });
        for (field, value) in more {
            payload[*field] = value.clone();
        }
        payload
    });
}
