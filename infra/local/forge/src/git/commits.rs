//! Commits, as they are told.

use std::collections::BTreeSet;

use super::Git;
use crate::api_error::ApiError;

/// Who wrote or made a commit, and when.
#[derive(Clone, Debug)]
pub(crate) struct Signer {
    pub(crate) name: String,
    pub(crate) mail: String,
    pub(crate) at_ms: i64,
}

/// A commit.
#[derive(Clone, Debug)]
pub(crate) struct CommitShown {
    pub(crate) sha: String,
    pub(crate) tree: String,
    pub(crate) parents: Vec<String>,
    pub(crate) author: Signer,
    pub(crate) committer: Signer,
    pub(crate) message: String,
    pub(crate) is_signed: bool,
}

const FORMAT: &str =
    "--format=tformat:%H%x00%T%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%B";
const FIELDS: usize = 10;

impl Git {
    /// The newest commits of a range, newest first.
    pub(crate) async fn log(
        &self,
        range: &[&str],
        max: usize,
    ) -> Result<Vec<CommitShown>, ApiError> {
        let count = format!("--max-count={max}");
        let arguments = ["log", "-z", "--no-show-signature", FORMAT, &count];
        let arguments: Vec<&str> =
            arguments.into_iter().chain(range.iter().copied()).chain(["--"]).collect();
        let text = String::from_utf8_lossy(&self.bytes(&arguments).await?).into_owned();
        let fields: Vec<&str> = text.split('\0').collect();
        let mut commits: Vec<CommitShown> = fields.chunks_exact(FIELDS).map(read).collect();
        let shas: Vec<String> = commits.iter().map(|one| one.sha.clone()).collect();
        let signed = self.signed(&shas).await?;
        for commit in &mut commits {
            commit.is_signed = signed.contains(&commit.sha);
        }
        Ok(commits)
    }

    /// One commit.
    pub(crate) async fn one(&self, sha: &str) -> Result<CommitShown, ApiError> {
        let found = self.log(&["--no-walk", sha], 1).await?;
        found.into_iter().next().ok_or_else(ApiError::not_found)
    }

    /// Those of the commits that carry a signature.
    pub(crate) async fn signed(&self, shas: &[String]) -> Result<BTreeSet<String>, ApiError> {
        let objects = self.objects(shas).await?;
        let is_signed = |content: &[u8]| {
            let text = String::from_utf8_lossy(content);
            let mut header = text.lines().take_while(|line| !line.is_empty());
            header.any(|line| line.starts_with("gpgsig "))
        };
        let signed = objects.into_iter().filter(|object| is_signed(&object.content));
        Ok(signed.map(|object| object.sha).collect())
    }
}

fn read(fields: &[&str]) -> CommitShown {
    let signer = |at: usize| Signer {
        name: fields[at].to_owned(),
        mail: fields[at + 1].to_owned(),
        at_ms: fields[at + 2].parse::<i64>().unwrap_or_default().saturating_mul(1_000),
    };
    CommitShown {
        sha: fields[0].trim_start().to_owned(),
        tree: fields[1].to_owned(),
        parents: fields[2].split_whitespace().map(str::to_owned).collect(),
        author: signer(3),
        committer: signer(6),
        message: fields[9].trim_end_matches('\n').to_owned(),
        is_signed: false,
    }
}
