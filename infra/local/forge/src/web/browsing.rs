//! Pages of repositories and pull requests, with the buttons that the visitor may press.

use std::fmt::Write as _;

use axum::http::header;
use axum::response::IntoResponse as _;

use super::{PageAnswer, PageRequest, html, see};
use crate::access::Caller;
use crate::api_error::ApiError;
use crate::git::Git;
use crate::git::merge::Method;
use crate::permission::Level;
use crate::pulls::{self, Changed, Merge};
use crate::record::{Pull, PullState, RepositoryRecord};
use crate::state::ForgeState;

/// The repository of a page, and what the visitor may do with it.
fn found(
    visit: &PageRequest,
    inner: &ForgeState,
    owner: &str,
    name: &str,
) -> Result<(RepositoryRecord, Level), ApiError> {
    let caller = match visit.person {
        Some(id) => Caller::Person { id, app: None },
        None => Caller::Nobody,
    };
    let found = inner.named(owner, name).or_else(|| inner.formerly_named(owner, name));
    let found = found.ok_or_else(ApiError::not_found)?;
    match caller.level(inner, found, "contents")? {
        Level::None => Err(ApiError::not_found()),
        level => Ok((found.clone(), level)),
    }
}

pub(super) fn index(visit: &PageRequest) -> PageAnswer {
    let inner = visit.engine.lock();
    let mut content = match visit.person.and_then(|id| inner.accounts.get(&id)) {
        Some(person) => format!(
            "<p>You are signed in as <strong>{}</strong>.</p>{}",
            html::text(&person.login),
            html::form("/logout", "<button>Sign out</button>")
        ),
        None => format!("<p>{}</p>", html::link("/login", "Sign in")),
    };
    let seen = inner.repositories.values().filter(|one| {
        let full_name = inner.full_name(one);
        let (owner, name) = full_name.split_once('/').unwrap_or_default();
        found(visit, &inner, owner, name).is_ok()
    });
    content.push_str("<h2>Repositories</h2><ul>");
    for one in seen {
        let full_name = inner.full_name(one);
        let kind = if one.is_private { "private" } else { "public" };
        let _ = write!(
            content,
            "<li>{} ({kind})</li>",
            html::link(&format!("/{full_name}"), &full_name)
        );
    }
    content.push_str("</ul><h2>Apps</h2><ul>");
    for app in inner.apps.values() {
        let _ =
            write!(content, "<li>{}</li>", html::link(&format!("/apps/{}", app.slug), &app.name));
    }
    content.push_str("</ul>");
    Ok(html::page("Forge of the laptop stack", &content))
}

const fn word(pull: &Pull) -> &'static str {
    match pull.state {
        PullState::Open if pull.is_draft => "draft",
        PullState::Open => "open",
        PullState::Merged => "merged",
        PullState::Closed => "closed",
    }
}

pub(super) async fn repository(visit: &PageRequest, owner: &str, name: &str) -> PageAnswer {
    let (record, _) = found(visit, &visit.engine.lock(), owner, name)?;
    let branches = Git::new(&visit.engine, record.id).references("refs/heads/").await?;
    let inner = visit.engine.lock();
    let full_name = inner.full_name(&record);
    let clone = format!("{}/{full_name}.git", visit.engine.addresses.web);
    let mut content = format!("<p>Clone it from <code>{}</code>.</p>", html::text(&clone));
    if record.is_archived {
        content.push_str("<p>This repository was archived and is read-only.</p>");
    }
    content.push_str("<h2>Pull requests</h2><ul>");
    for pull in inner.pulls.iter().rev().filter(|one| one.repository == record.id) {
        let at = format!("/{full_name}/pull/{}", pull.number);
        let label = format!("#{} {}", pull.number, pull.title);
        let _ = write!(content, "<li>{} ({})</li>", html::link(&at, &label), word(pull));
    }
    content.push_str("</ul><h2>Branches</h2><ul>");
    for branch in &branches {
        let name = branch.name.trim_start_matches("refs/heads/");
        let _ = write!(
            content,
            "<li><code>{}</code> {} <code>{}</code></li>",
            html::text(name),
            html::text(&branch.subject),
            &branch.sha[..7]
        );
    }
    content.push_str("</ul>");
    Ok(html::page(&full_name, &content))
}

/// The buttons for which a visitor has the right.
fn buttons(pull: &Pull, at: &str) -> String {
    let all: &[(&str, &str)] = match pull.state {
        PullState::Open if pull.is_draft => {
            &[("ready", "Ready for review"), ("close", "Close pull request")]
        }
        PullState::Open => &[
            ("merge", "Merge pull request"),
            ("squash", "Squash and merge"),
            ("draft", "Convert to draft"),
            ("close", "Close pull request"),
        ],
        PullState::Closed => &[("reopen", "Reopen pull request")],
        PullState::Merged => &[],
    };
    if all.is_empty() {
        return String::new();
    }
    let seen = html::hidden("sha", &pull.head_sha);
    let buttons = all.iter().map(|(value, label)| html::button("action", value, label));
    html::form(at, &format!("{seen}{}", buttons.collect::<String>()))
}

pub(super) async fn pull(visit: &PageRequest, owner: &str, name: &str, number: &str) -> PageAnswer {
    let (number, is_text) = match number.strip_suffix(".diff") {
        Some(number) => (number, true),
        None => (number, false),
    };
    let number: u64 = number.parse().map_err(|_| ApiError::not_found())?;
    let (pull, level, full_name, author) = {
        let inner = visit.engine.lock();
        let (record, level) = found(visit, &inner, owner, name)?;
        let pull = inner.pull(record.id, number)?.clone();
        let author = inner.accounts.get(&pull.author).map_or("ghost", |one| &one.login).to_owned();
        (pull, level, inner.full_name(&record), author)
    };
    let git = Git::new(&visit.engine, pull.repository);
    let (base, head) = pulls::range(&git, &pull).await?;
    if is_text {
        let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
        return Ok((kind, git.patch(&base, &head).await?).into_response());
    }
    let changes = git.changes(&base, &head).await?;
    let at = format!("/{full_name}/pull/{number}");
    let mut content = format!(
        "<p>{}: {} wants to merge <code>{}</code> into <code>{}</code> of {}.</p><pre>{}</pre>",
        html::text(word(&pull)),
        html::text(&author),
        html::text(&pull.head),
        html::text(&pull.base),
        html::link(&format!("/{full_name}"), &full_name),
        html::text(pull.body.as_deref().unwrap_or("No description provided."))
    );
    if level >= Level::Write {
        content.push_str(&buttons(&pull, &at));
    } else if visit.person.is_none() {
        let back = format!("/login?return_to={at}");
        content.push_str(&format!("<p>{}</p>", html::link(&back, "Sign in to merge or close it")));
    }
    let _ = write!(content, "<h2>Changed files ({})</h2>", changes.len());
    for change in &changes {
        let _ = write!(
            content,
            "<h3>{}</h3><p>{}, {} added, {} removed</p><pre>{}</pre>",
            html::text(&change.path),
            change.status,
            change.additions,
            change.deletions,
            html::text(change.patch.as_deref().unwrap_or("Binary file"))
        );
    }
    Ok(html::page(&format!("#{number} {}", pull.title), &content))
}

/// A press of one of the buttons.
pub(super) async fn press(
    visit: &PageRequest,
    owner: &str,
    name: &str,
    number: &str,
) -> PageAnswer {
    let person = match visit.signed_in() {
        Ok(person) => person,
        Err(elsewhere) => return Ok(*elsewhere),
    };
    let number: u64 = number.parse().map_err(|_| ApiError::not_found())?;
    let (record, level) = found(visit, &visit.engine.lock(), owner, name)?;
    if level < Level::Write {
        return Err(ApiError::forbidden("You may not write to this repository"));
    }
    let merge = |method| Merge {
        sha: visit.field("sha").map(str::to_owned),
        method,
        title: None,
        message: None,
        by_queue: false,
    };
    let engine = &visit.engine;
    let changed = match visit.field("action") {
        Some("merge") => Err(Method::Merge),
        Some("squash") => Err(Method::Squash),
        Some("close") => Ok(Changed { is_open: Some(false), ..Changed::default() }),
        Some("reopen") => Ok(Changed { is_open: Some(true), ..Changed::default() }),
        Some("ready") => Ok(Changed { is_draft: Some(false), ..Changed::default() }),
        Some("draft") => Ok(Changed { is_draft: Some(true), ..Changed::default() }),
        _ => return Err(ApiError::bad("The form lacks what to do")),
    };
    match changed {
        Ok(changed) => drop(pulls::update(engine, record.id, number, person, changed).await?),
        Err(method) => {
            drop(pulls::merge(engine, record.id, number, person, merge(method)).await?);
        }
    }
    Ok(see(&visit.target))
}
