//! What a person does with a pull request that is finished: ready for review, merged, or brought up to its base.

use bobbin_core::records::publication::{ActEnd, PullRequestAct};
use bobbin_http::Method;
use serde::Deserialize;
use serde_json::json;

use super::rest::{Call, RestClient, RestCredential, RestError};
use super::trees::{CommitBody, ComparisonBody};
use crate::error::{ForgeError, ForgeErrorKind, ForgeResult};
use crate::forge::RepositoryName;

const READY: &str = include_str!("ready.graphql");
const ENQUEUE: &str = include_str!("enqueue.graphql");

#[derive(Deserialize)]
struct OpenPullBody {
    node_id: String,
    state: String,
    merged_at: Option<String>,
    #[serde(default)]
    draft: bool,
    head: OpenHeadBody,
    base: OpenBaseBody,
}

#[derive(Deserialize)]
struct OpenHeadBody {
    sha: String,
}

#[derive(Deserialize)]
struct OpenBaseBody {
    #[serde(rename = "ref")]
    branch: String,
}

#[derive(Deserialize)]
struct ParentsBody {
    parents: Vec<CommitBody>,
}

/// The ways to merge that a repository allows; callers who may not push are not told.
#[derive(Deserialize)]
struct WaysBody {
    allow_merge_commit: Option<bool>,
    allow_squash_merge: Option<bool>,
    allow_rebase_merge: Option<bool>,
}

impl WaysBody {
    fn first(&self) -> &'static str {
        let ways = [
            ("merge", self.allow_merge_commit),
            ("squash", self.allow_squash_merge),
            ("rebase", self.allow_rebase_merge),
        ];
        let allowed = ways.iter().find(|(_, is_allowed)| is_allowed.unwrap_or(true));
        allowed.map_or("merge", |(way, _)| way)
    }
}

/// A pull request of a repository, for one operation.
pub(super) struct Finishing<'a> {
    pub(super) rest: &'a RestClient,
    /// The caller: the installation.
    pub(super) by: RestCredential<'a>,
    /// Who acts.
    pub(super) person: RestCredential<'a>,
    pub(super) name: &'a RepositoryName,
    pub(super) number: u64,
}

impl Finishing<'_> {
    pub(super) async fn act(&self, act: PullRequestAct, head: &str) -> ForgeResult<ActEnd> {
        match act {
            PullRequestAct::MarkReady => self.mark_ready().await,
            PullRequestAct::Merge => self.merge(head).await,
            PullRequestAct::UpdateBranch => self.update_branch(head).await,
        }
    }

    async fn pull(&self) -> Result<OpenPullBody, RestError> {
        let number = self.number.to_string();
        let path = ["repos", self.name.owner(), self.name.name(), "pulls", &number];
        self.rest.read(Call::get(self.by, &path)).await
    }

    async fn mark_ready(&self) -> ForgeResult<ActEnd> {
        let pull = self.pull().await?;
        if pull.draft {
            let variables = json!({"pullRequest": pull.node_id});
            let readied = self.rest.graphql(self.person, READY, &variables).await;
            return readied.map_or_else(refused, |_| Ok(ActEnd::Done));
        }
        Ok(ActEnd::Done)
    }

    async fn merge(&self, head: &str) -> ForgeResult<ActEnd> {
        let pull = self.pull().await?;
        if pull.head.sha != head {
            return Ok(ActEnd::HeadMoved);
        }
        if pull.merged_at.is_some() {
            return Ok(ActEnd::Done);
        }
        let refused = |why: &str| Ok(ActEnd::Refused { why: why.to_owned() });
        if pull.state != "open" {
            return refused("It is closed.");
        }
        let (owner, name) = (self.name.owner(), self.name.name());
        let ways: WaysBody =
            self.rest.read(Call::get(self.person, &["repos", owner, name])).await?;
        let number = self.number.to_string();
        let path = ["repos", owner, name, "pulls", &number, "merge"];
        let body = json!({"sha": head, "merge_method": ways.first()});
        let call = Call::sending(self.person, Method::PUT, &path, &body);
        let error = match self.rest.send(call).await {
            Ok(_) => return Ok(ActEnd::Done),
            Err(error) => error,
        };
        match (&error, error.status()) {
            (_, Some(409)) => Ok(ActEnd::HeadMoved),
            (_, Some(405)) if error.says("merge queue") => self.enqueue(&pull.node_id, head).await,
            (RestError::Refused(refusal), Some(403 | 405 | 422)) => refused(&refusal.said),
            _ => Err(error.into()),
        }
    }

    async fn enqueue(&self, node: &str, head: &str) -> ForgeResult<ActEnd> {
        let variables = json!({"pullRequest": node, "head": head});
        match self.rest.graphql(self.person, ENQUEUE, &variables).await {
            Ok(_) => Ok(ActEnd::Queued),
            Err(error) if is_queued(&error) => Ok(ActEnd::Queued),
            Err(error) => refused(error),
        }
    }

    async fn update_branch(&self, head: &str) -> ForgeResult<ActEnd> {
        let number = self.number.to_string();
        let path =
            ["repos", self.name.owner(), self.name.name(), "pulls", &number, "update-branch"];
        let body = json!({"expected_head_sha": head});
        let call = Call::sending(self.person, Method::PUT, &path, &body);
        let error = match self.rest.send(call).await {
            Ok(_) => return Ok(ActEnd::Done),
            Err(error) => error,
        };
        match (&error, error.status()) {
            (_, Some(422)) if error.says("expected head sha") => self.updated_before(head).await,
            (_, Some(422)) if error.says("no new commits") => Ok(ActEnd::Done),
            (_, Some(422)) if error.says("conflict") => Ok(ActEnd::Conflicts),
            (RestError::Refused(refusal), Some(403 | 422)) => {
                Ok(ActEnd::Refused { why: refusal.said.clone() })
            }
            _ => Err(error.into()),
        }
    }

    /// The head is another than the one that was seen: perhaps since an earlier call merged the base into that one.
    async fn updated_before(&self, seen: &str) -> ForgeResult<ActEnd> {
        let pull = self.pull().await?;
        let (owner, name) = (self.name.owner(), self.name.name());
        let path = ["repos", owner, name, "git", "commits", &pull.head.sha];
        let head: ParentsBody = self.rest.read(Call::get(self.person, &path)).await?;
        let [before, merged] = &*head.parents else {
            return Ok(ActEnd::HeadMoved);
        };
        if before.sha.to_string() != seen {
            return Ok(ActEnd::HeadMoved);
        }
        let both = format!("{}...{}", pull.base.branch, merged.sha);
        let path = ["repos", owner, name, "compare", &both];
        // The first page lists changed files with their differences; no other does.
        let query = [("per_page", "1"), ("page", "2")];
        let compared = self.rest.read(Call::get(self.person, &path).with(&query)).await;
        let compared: ComparisonBody = compared?;
        let is_of_base = compared.merge_base_commit.sha == merged.sha;
        Ok(if is_of_base { ActEnd::Done } else { ActEnd::HeadMoved })
    }
}

/// GitHub's refusal is an end, in its own words.
fn refused(error: ForgeError) -> ForgeResult<ActEnd> {
    match error.kind {
        ForgeErrorKind::Refused { why } => Ok(ActEnd::Refused { why }),
        _ => Err(error),
    }
}

/// A repeat finds it in the queue.
fn is_queued(error: &ForgeError) -> bool {
    let said = error.seen.to_ascii_lowercase();
    said.contains("already") && said.contains("queue")
}
