//! Pull requests over REST.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::{Call, created, nothing, ok};
use crate::api_error::{Answer, ApiError};
use crate::git::Git;
use crate::git::merge::Method;
use crate::limits::COMMITS_MAX;
use crate::permission::Level;
use crate::pulls::{self, Changed, Merge, New, Numbers};
use crate::record::{Pull, PullState};

/// The pull request of the path.
fn found(call: &Call) -> Result<Pull, ApiError> {
    let repository = call.repository("pull_requests", Level::Read)?;
    let number = call.number("pull_number")?;
    call.engine.lock().pull(repository.id, number).cloned()
}

/// Newest first, unless it is asked otherwise. A head without its owner filters nothing, as at GitHub.
pub(super) async fn list(call: &Call) -> Answer {
    let repository = call.repository("pull_requests", Level::Read)?;
    let inner = call.engine.lock();
    let full_name = inner.full_name(&repository);
    let owner = full_name.split('/').next().unwrap_or_default();
    let head = call.asked("head").and_then(|head| head.split_once(':'));
    let is_wanted = |pull: &&Pull| {
        let is_open = pull.state == PullState::Open;
        let state = match call.asked("state").unwrap_or("open") {
            "all" => true,
            "closed" => !is_open,
            _ => is_open,
        };
        let has_head = head
            .is_none_or(|(named, branch)| named.eq_ignore_ascii_case(owner) && pull.head == branch);
        let has_base = call.asked("base").is_none_or(|base| pull.base == base);
        pull.repository == repository.id && state && has_head && has_base
    };
    let mut all: Vec<&Pull> = inner.pulls.iter().filter(is_wanted).collect();
    if call.asked("sort") == Some("updated") {
        all.sort_by_key(|pull| pull.updated_at);
    }
    if call.asked("direction") != Some("asc") {
        all.reverse();
    }
    call.list(all.into_iter().map(|pull| call.show(&inner).pull(pull, None)).collect())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewPullBody {
    title: Option<String>,
    head: String,
    head_repo: Option<String>,
    base: String,
    body: Option<String>,
    maintainer_can_modify: Option<bool>,
    #[serde(default)]
    draft: bool,
    issue: Option<u64>,
}

pub(super) async fn create(call: &Call) -> Answer {
    let repository = call.repository("pull_requests", Level::Write)?;
    let asked: NewPullBody = call.read()?;
    let is_own = asked.head_repo.as_ref().is_none_or(|name| *name == repository.name);
    if asked.issue.is_some() || !is_own {
        return Err(ApiError::unprocessable("This forge has neither issues nor forks"));
    }
    let new = New {
        title: asked.title.unwrap_or_default(),
        body: asked.body,
        head: asked.head,
        base: asked.base,
        is_draft: asked.draft,
        maintainer_can_modify: asked.maintainer_can_modify.unwrap_or(false),
    };
    let pull = pulls::open(&call.engine, repository.id, call.actor()?, new).await?;
    // Whether it can be merged is not known yet.
    let numbers = Numbers { mergeable: None, ..pulls::numbers(&call.engine, &pull).await? };
    let inner = call.engine.lock();
    created(call.show(&inner).pull(&pull, Some(&numbers)))
}

pub(super) async fn get(call: &Call) -> Answer {
    let pull = found(call)?;
    let git = Git::new(&call.engine, pull.repository);
    let accept = call.header("accept");
    if accept.contains("diff") || accept.contains("patch") {
        let (base, head) = pulls::range(&git, &pull).await?;
        if accept.contains("diff") {
            let text = git.patch(&base, &head).await?;
            return call.plain("application/vnd.github.diff; charset=utf-8", text);
        }
        let range = format!("{base}..{head}");
        let text = git.text(&["format-patch", "--stdout", &range, "--"]).await?;
        return call.plain("application/vnd.github.patch; charset=utf-8", text);
    }
    whole(call, &pull).await
}

async fn whole(call: &Call, pull: &Pull) -> Answer {
    let numbers = pulls::looked_at(&call.engine, pull).await?;
    let inner = call.engine.lock();
    ok(call.show(&inner).pull(pull, Some(&numbers)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PullUpdate {
    title: Option<String>,
    body: Option<String>,
    state: Option<String>,
    base: Option<String>,
    maintainer_can_modify: Option<bool>,
}

pub(super) async fn update(call: &Call) -> Answer {
    let repository = call.repository("pull_requests", Level::Write)?;
    let asked: PullUpdate = call.read()?;
    let is_open = match asked.state.as_deref() {
        None => None,
        Some("open") => Some(true),
        Some("closed") => Some(false),
        Some(_) => return Err(ApiError::field("PullRequest", "state", "invalid")),
    };
    let changed = Changed {
        title: asked.title,
        body: asked.body,
        is_open,
        base: asked.base,
        is_draft: None,
        maintainer_can_modify: asked.maintainer_can_modify,
    };
    let number = call.number("pull_number")?;
    let pull = pulls::update(&call.engine, repository.id, number, call.actor()?, changed).await?;
    whole(call, &pull).await
}

pub(super) async fn files(call: &Call) -> Answer {
    let pull = found(call)?;
    let git = Git::new(&call.engine, pull.repository);
    let (base, head) = pulls::range(&git, &pull).await?;
    let changes = git.changes(&base, &head).await?;
    let inner = call.engine.lock();
    let full_name = inner.full_name(inner.repository(pull.repository)?);
    let show = call.show(&inner);
    call.list(changes.iter().map(|one| show.change(&full_name, &head, one)).collect())
}

pub(super) async fn commits(call: &Call) -> Answer {
    let pull = found(call)?;
    let git = Git::new(&call.engine, pull.repository);
    let (base, head) = pulls::range(&git, &pull).await?;
    let mut commits = git.log(&[&format!("{base}..{head}")], COMMITS_MAX).await?;
    commits.reverse();
    let inner = call.engine.lock();
    let full_name = inner.full_name(inner.repository(pull.repository)?);
    call.list(commits.iter().map(|one| call.show(&inner).commit(&full_name, one)).collect())
}

pub(super) async fn is_merged(call: &Call) -> Answer {
    match found(call)?.state {
        PullState::Merged => nothing(),
        _ => Err(ApiError::not_found()),
    }
}

/// Pull requests whose head or merge this commit is.
pub(super) async fn of_commit(call: &Call) -> Answer {
    let repository = call.repository("pull_requests", Level::Read)?;
    let sha = call.part("commit_sha");
    let inner = call.engine.lock();
    let own = inner.pulls.iter().filter(|one| one.repository == repository.id);
    let own = own.filter(|one| one.head_sha == sha || one.merge_sha.as_deref() == Some(sha));
    call.list(own.map(|one| call.show(&inner).pull(one, None)).collect())
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Updated {
    expected_head_sha: Option<String>,
}

pub(super) async fn update_branch(call: &Call) -> Answer {
    let repository = call.writable("pull_requests")?;
    let pull = call.engine.lock().pull(repository.id, call.number("pull_number")?)?.clone();
    let seen = call.read::<Option<Updated>>()?.unwrap_or_default().expected_head_sha;
    pulls::update_branch(&call.engine, &pull, &call.caller, seen).await?;
    let inner = call.engine.lock();
    let page = call.show(&inner).pull(&pull, None)["html_url"].clone();
    let told = json!({ "message": "Updating pull request branch.", "url": page });
    super::json_answer(StatusCode::ACCEPTED, told)
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AskedMerge {
    commit_title: Option<String>,
    commit_message: Option<String>,
    sha: Option<String>,
    merge_method: Option<String>,
}

pub(super) async fn merge(call: &Call) -> Answer {
    let repository = call.repository("contents", Level::Write)?;
    let asked: Option<AskedMerge> = call.read()?;
    let asked = asked.unwrap_or_default();
    let method = match asked.merge_method.as_deref() {
        None | Some("merge") => Method::Merge,
        Some("squash") => Method::Squash,
        Some("rebase") => Method::Rebase,
        Some(_) => {
            return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid merge method"));
        }
    };
    let how = Merge {
        sha: asked.sha,
        method,
        title: asked.commit_title,
        message: asked.commit_message,
        by_queue: false,
    };
    let number = call.number("pull_number")?;
    let sha = pulls::merge(&call.engine, repository.id, number, call.actor()?, how).await?;
    ok(json!({ "sha": sha, "merged": true, "message": "Pull Request successfully merged" }))
}
