//! Merges without a working tree.

use super::Git;
use super::commits::Signer;
use crate::api_error::ApiError;
use crate::limits::COMMITS_MAX;

/// Ways to merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Merge,
    Squash,
    Rebase,
}

/// Who makes commits on the page and over REST.
const COMMITTER: (&str, &str) = ("GitHub", "noreply@github.com");

impl Git {
    /// The tree of both commits together; `None` if they conflict.
    pub(crate) async fn merged_tree(
        &self,
        base: &str,
        head: &str,
    ) -> Result<Option<String>, ApiError> {
        let said = self.run(&["merge-tree", "--write-tree", "--no-messages", base, head]).await?;
        match said.code {
            Some(0) => Ok(Some(said.text())),
            Some(1) => Ok(None),
            _ => Err(ApiError::internal(said.err)),
        }
    }

    /// A commit of the merge, on no branch yet; `None` if the commits conflict.
    pub(crate) async fn merge(
        &self,
        base: &str,
        head: &str,
        method: Method,
        author: &Signer,
        message: &str,
    ) -> Result<Option<String>, ApiError> {
        if method == Method::Rebase {
            return self.rebase(base, head, author.at_ms).await;
        }
        let Some(tree) = self.merged_tree(base, head).await? else { return Ok(None) };
        let second = (method == Method::Merge).then_some(head);
        let parents: Vec<&str> = std::iter::once(base).chain(second).collect();
        self.commit_tree(&tree, &parents, author, author.at_ms, message).await.map(Some)
    }

    /// The head's own commits, one after the other on the base.
    async fn rebase(&self, base: &str, head: &str, now: i64) -> Result<Option<String>, ApiError> {
        let range = format!("{base}..{head}");
        let mut commits = self.log(&["--no-merges", "--topo-order", &range], COMMITS_MAX).await?;
        commits.reverse();
        let mut at = base.to_owned();
        for commit in commits {
            let Some(parent) = commit.parents.first() else { return Ok(None) };
            let from = format!("--merge-base={parent}");
            let said = self
                .run(&["merge-tree", "--write-tree", "--no-messages", &from, &at, &commit.sha])
                .await?;
            if !said.is_ok() {
                return Ok(None);
            }
            at = self
                .commit_tree(&said.text(), &[&at], &commit.author, now, &commit.message)
                .await?;
        }
        Ok(Some(at))
    }

    /// A commit without a parent, on no branch yet.
    pub(crate) async fn root_commit(
        &self,
        tree: &str,
        author: &Signer,
        message: &str,
    ) -> Result<String, ApiError> {
        self.commit_tree(tree, &[], author, author.at_ms, message).await
    }

    async fn commit_tree(
        &self,
        tree: &str,
        parents: &[&str],
        author: &Signer,
        now: i64,
        message: &str,
    ) -> Result<String, ApiError> {
        let (written, made) =
            (format!("{} +0000", author.at_ms / 1_000), format!("{} +0000", now / 1_000));
        let git = self.with(&[
            ("GIT_AUTHOR_NAME", &author.name),
            ("GIT_AUTHOR_EMAIL", &author.mail),
            ("GIT_AUTHOR_DATE", &written),
            ("GIT_COMMITTER_NAME", COMMITTER.0),
            ("GIT_COMMITTER_EMAIL", COMMITTER.1),
            ("GIT_COMMITTER_DATE", &made),
        ]);
        let mut arguments = vec!["commit-tree", tree, "-F", "-"];
        for parent in parents {
            arguments.extend(["-p", parent]);
        }
        let said = git.run_with(&arguments, message.as_bytes().to_vec()).await?;
        if said.is_ok() { Ok(said.text()) } else { Err(ApiError::internal(said.err)) }
    }
}
