//! Statuses of commits over REST.

use serde_json::{Value, json};

use super::checks::commit_of;
use super::{Call, created, ok};
use crate::api_error::{Answer, ApiError};
use crate::checks::statuses::{self, combined};
use crate::checks::told;
use crate::git::Git;
use crate::permission::Level;

pub(super) async fn create(call: &Call) -> Answer {
    let repository = call.writable("statuses")?;
    let asked = call.part("sha").to_owned();
    let new = call.read()?;
    let git = Git::new(&call.engine, repository.id);
    let sha = git.commit(&asked).await?.filter(|known| *known == asked);
    let sha =
        sha.ok_or_else(|| ApiError::unprocessable(format!("No commit found for SHA: {asked}")))?;
    let (actor, now) = (call.actor()?, call.now());
    let status =
        call.engine.change(|inner| statuses::add(inner, repository.id, &sha, actor, new, now))?;
    told::status(&call.engine, &status).await?;
    let inner = call.engine.lock();
    created(call.show(&inner).commit_status(&status))
}

/// Every status of a commit, newest first.
pub(super) async fn list(call: &Call) -> Answer {
    let repository = call.repository("statuses", Level::Read)?;
    let sha = commit_of(call, &repository, call.part("ref")).await?;
    let inner = call.engine.lock();
    let all = inner.checks.statuses.iter().rev();
    let own = all.filter(|one| one.repository == repository.id && one.sha == sha);
    call.list(own.map(|one| call.show(&inner).commit_status(one)).collect())
}

/// The newest status of each context, and what they say together.
pub(super) async fn together(call: &Call) -> Answer {
    let repository = call.repository("statuses", Level::Read)?;
    let sha = commit_of(call, &repository, call.part("ref")).await?;
    let inner = call.engine.lock();
    let show = call.show(&inner);
    let newest = inner.checks.statuses_of(repository.id, &sha);
    let (base, _) = show.bases(repository.id);
    let told: Vec<Value> = newest.iter().map(|one| show.commit_status_simple(one)).collect();
    ok(json!({
        "state": combined(&newest), "statuses": told, "sha": sha, "total_count": newest.len(),
        "repository": show.repository(&repository, None), "commit_url": format!("{base}/commits/{sha}"),
        "url": format!("{base}/commits/{sha}/status"),
    }))
}
