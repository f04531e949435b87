//! Commits, trees and files, and comparisons of two commits.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Call, encoded, ok};
use crate::api_error::{Answer, ApiError};
use crate::git::Git;
use crate::limits::{COMMITS_MAX, TREE_ENTRIES_MAX};
use crate::permission::Level;

/// The tree without entries, which every repository knows.
pub(crate) const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
/// Columns of a file's content in base64.
const COLUMNS: usize = 60;

fn is_id(text: &str) -> bool {
    text.len() == EMPTY_TREE.len() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(super) async fn git_commit(call: &Call) -> Answer {
    let found = call.repository("contents", Level::Read)?;
    let git = Git::new(&call.engine, found.id);
    let sha = call.part("commit_sha");
    let sha = git.commit(sha).await?.filter(|known| known == sha);
    let commit = git.one(&sha.ok_or_else(ApiError::not_found)?).await?;
    let inner = call.engine.lock();
    ok(call.show(&inner).git_commit(&inner.full_name(&found), &commit))
}

pub(super) async fn commit(call: &Call) -> Answer {
    let found = call.repository("contents", Level::Read)?;
    let git = Git::new(&call.engine, found.id);
    let name = call.part("ref");
    let unknown = || ApiError::unprocessable(format!("No commit found for SHA: {name}"));
    let sha = git.named(name).await?.ok_or_else(unknown)?;
    let commit = git.one(&sha).await?;
    let before = commit.parents.first().map_or(EMPTY_TREE, String::as_str);
    let changes = git.changes(before, &sha).await?;
    let inner = call.engine.lock();
    let (show, full_name) = (call.show(&inner), inner.full_name(&found));
    let mut told = show.commit(&full_name, &commit);
    let sum = |count: fn(&crate::git::diff::Change) -> u64| changes.iter().map(count).sum::<u64>();
    let (added, removed) = (sum(|one| one.additions), sum(|one| one.deletions));
    told["stats"] = json!({ "additions": added, "deletions": removed, "total": added + removed });
    told["files"] = changes.iter().map(|one| show.change(&full_name, &sha, one)).collect();
    ok(told)
}

pub(super) async fn tree(call: &Call) -> Answer {
    let found = call.repository("contents", Level::Read)?;
    let git = Git::new(&call.engine, found.id);
    let name = call.part("tree_sha");
    let start = if is_id(name) { Some(name.to_owned()) } else { git.named(name).await? };
    let start = start.ok_or_else(ApiError::not_found)?;
    let sha = git.object(&format!("{start}^{{tree}}")).await?.ok_or_else(ApiError::not_found)?;
    let recursive = call.asked("recursive").is_some();
    let entries = git.tree(&sha, recursive).await?;
    let full_name = call.engine.lock().full_name(&found);
    let base = format!("{}/repos/{full_name}/git", call.engine.addresses.api);
    let is_cut = entries.len() > TREE_ENTRIES_MAX;
    let told = entries.iter().take(TREE_ENTRIES_MAX).map(|entry| {
        let mut told = json!({
            "path": entry.path, "mode": entry.mode, "type": entry.kind, "sha": entry.sha,
        });
        if entry.kind != "commit" {
            told["url"] = format!("{base}/{}s/{}", entry.kind, entry.sha).into();
        }
        if let Some(size) = entry.size {
            told["size"] = size.into();
        }
        told
    });
    let told: Vec<Value> = told.collect();
    ok(
        json!({ "sha": sha, "url": format!("{base}/trees/{sha}"), "tree": told, "truncated": is_cut }),
    )
}

pub(super) async fn blob(call: &Call) -> Answer {
    let found = call.repository("contents", Level::Read)?;
    let sha = call.part("file_sha").to_owned();
    if !is_id(&sha) {
        return Err(ApiError::unprocessable(
            "The sha parameter must be exactly 40 characters and contain only [0-9a-f].",
        ));
    }
    let git = Git::new(&call.engine, found.id);
    let object = git.objects(std::slice::from_ref(&sha)).await?.into_iter().next();
    let object = object.filter(|one| one.kind == "blob").ok_or_else(ApiError::not_found)?;
    let text = STANDARD.encode(&object.content);
    let lines = text.as_bytes().chunks(COLUMNS).map(String::from_utf8_lossy);
    let content: String = lines.flat_map(|line| [line.into_owned(), "\n".to_owned()]).collect();
    let inner = call.engine.lock();
    let full_name = inner.full_name(&found);
    ok(json!({
        "sha": sha, "node_id": call.show(&inner).node("Blob", &sha), "size": object.content.len(),
        "url": format!("{}/repos/{full_name}/git/blobs/{sha}", call.engine.addresses.api),
        "content": content, "encoding": "base64",
    }))
}

pub(super) async fn compare(call: &Call) -> Answer {
    let found = call.repository("contents", Level::Read)?;
    let git = Git::new(&call.engine, found.id);
    let full_name = call.engine.lock().full_name(&found);
    let owner = full_name.split('/').next().unwrap_or_default();
    let spread = call.part("basehead");
    let (base, head) = spread.split_once("...").ok_or_else(ApiError::not_found)?;
    let own = |name: &str| match name.split_once(':') {
        Some((named, branch)) if named.eq_ignore_ascii_case(owner) => Some(branch.to_owned()),
        Some(_) => None,
        None => Some(name.to_owned()),
    };
    let mut shas = Vec::new();
    for name in [base, head] {
        let name = own(name).ok_or_else(ApiError::not_found)?;
        shas.push(git.named(&name).await?.ok_or_else(ApiError::not_found)?);
    }
    let [from, to] = shas.as_slice() else { return Err(ApiError::not_found()) };
    let unrelated = || ApiError {
        message: format!("No common ancestor between {base} and {head}."),
        ..ApiError::not_found()
    };
    let common = git.merge_base(from, to).await?.ok_or_else(unrelated)?;
    let (ahead, behind) = git.ahead_behind(from, to).await?;
    let mut commits = git.log(&[&format!("{from}..{to}")], COMMITS_MAX).await?;
    commits.reverse();
    let changes = git.changes(&common, to).await?;
    let (first, shared) = (git.one(from).await?, git.one(&common).await?);
    let inner = call.engine.lock();
    let show = call.show(&inner);
    let status = match (ahead, behind) {
        (0, 0) => "identical",
        (_, 0) => "ahead",
        (0, _) => "behind",
        _ => "diverged",
    };
    let page = format!("{}/{full_name}/compare/{}", call.engine.addresses.web, encoded(spread));
    ok(json!({
        "url": format!("{}/repos/{full_name}/compare/{}", call.engine.addresses.api, encoded(spread)),
        "html_url": page, "permalink_url": page, "diff_url": format!("{page}.diff"),
        "patch_url": format!("{page}.patch"), "base_commit": show.commit(&full_name, &first),
        "merge_base_commit": show.commit(&full_name, &shared), "status": status, "ahead_by": ahead,
        "behind_by": behind, "total_commits": ahead,
        "commits": commits.iter().map(|one| show.commit(&full_name, one)).collect::<Vec<_>>(),
        "files": changes.iter().map(|one| show.change(&full_name, to, one)).collect::<Vec<_>>(),
    }))
}
