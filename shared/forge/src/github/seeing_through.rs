//! GitHub's pull requests as they are seen through: each call with a token of its own, for its right alone.

use async_trait::async_trait;
use bobbin_core::base::secret::Secret;
use bobbin_core::records::drafted_review::{DiffFile, NewReview};
use bobbin_core::records::given_pull::GivenPull;
use serde_json::json;

use super::client::GitHub;
use super::finishing::Finishing;
use super::rest::By;
use super::token::Right;
use super::{failures, pulls, remarks, reviews};
use crate::error::ForgeResult;
use crate::forge::RepositoryAt;
use crate::pull_requests::{BranchUpdate, CheckFailure, Merged, NewRemark, PullRequests, Remark};

const RESOLVE: &str = include_str!("resolve.graphql");

#[async_trait]
impl PullRequests for GitHub {
    async fn check_failure(&self, at: &RepositoryAt, check: u64) -> ForgeResult<CheckFailure> {
        let token = self.token(at, Right::ReadFailures).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let read =
            failures::read(&self.rest, &self.settings.addresses, token.by(), name, check).await;
        token.end().await;
        read.map_err(|error| self.told(at, error))
    }

    async fn mark_seen(&self, at: &RepositoryAt, remark: Remark) -> ForgeResult<()> {
        let token = self.token(at, Right::WritePullRequests).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let marked = remarks::mark_seen(&self.rest, token.by(), name, remark).await;
        token.end().await;
        marked.map_err(|error| self.told(at, error))
    }

    async fn say(&self, at: &RepositoryAt, number: u64, remark: &NewRemark) -> ForgeResult<()> {
        let token = self.token(at, Right::WritePullRequests).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let said = remarks::say(&self.rest, token.by(), name, number, remark).await;
        token.end().await;
        said.map_err(|error| self.told(at, error))
    }

    async fn resolve_thread(&self, at: &RepositoryAt, thread: &str) -> ForgeResult<()> {
        let token = self.token(at, Right::ResolveThreads).await?;
        let resolved = self.rest.graphql(token.by(), RESOLVE, &json!({"thread": thread})).await;
        token.end().await;
        resolved.map(|_| ()).map_err(|error| self.told(at, error))
    }

    async fn ask_for_review(
        &self,
        at: &RepositoryAt,
        number: u64,
        logins: &[String],
    ) -> ForgeResult<()> {
        let token = self.token(at, Right::WritePullRequests).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let asked = remarks::ask_for_review(&self.rest, token.by(), name, number, logins).await;
        token.end().await;
        asked.map_err(|error| self.told(at, error))
    }

    async fn mark_ready(&self, at: &RepositoryAt, number: u64, person: &Secret) -> ForgeResult<()> {
        let token = self.token(at, Right::ReadPullRequests).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let (rest, by, person) = (&*self.rest, token.by(), By::Person(person));
        let marked = Finishing { rest, by, person, name, number }.mark_ready().await;
        token.end().await;
        marked.map_err(|error| self.told(at, error))
    }

    async fn merge(
        &self,
        at: &RepositoryAt,
        number: u64,
        head: &str,
        person: &Secret,
    ) -> ForgeResult<Merged> {
        let token = self.token(at, Right::ReadPullRequests).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let (rest, by, person) = (&*self.rest, token.by(), By::Person(person));
        let merged = Finishing { rest, by, person, name, number }.merge(head).await;
        token.end().await;
        merged.map_err(|error| self.told(at, error))
    }

    async fn update_branch(
        &self,
        at: &RepositoryAt,
        number: u64,
        head: &str,
        person: &Secret,
    ) -> ForgeResult<BranchUpdate> {
        let token = self.token(at, Right::ReadPullRequests).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let (rest, by, person) = (&*self.rest, token.by(), By::Person(person));
        let updated = Finishing { rest, by, person, name, number }.update_branch(head).await;
        token.end().await;
        updated.map_err(|error| self.told(at, error))
    }

    async fn given(
        &self,
        at: &RepositoryAt,
        number: u64,
    ) -> ForgeResult<Option<(GivenPull, String)>> {
        let token = self.token(at, Right::ReadPullRequests).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let found = pulls::numbered(&self.rest, token.by(), (at.repository, name), number).await;
        token.end().await;
        found.map_err(|error| self.told(at, error))
    }

    async fn difference(
        &self,
        at: &RepositoryAt,
        base: &str,
        head: &str,
    ) -> ForgeResult<Vec<DiffFile>> {
        let token = self.token(at, Right::ReadContents).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let read = reviews::difference(&self.rest, token.by(), name, (base, head)).await;
        token.end().await;
        read.map_err(|error| self.told(at, error))
    }

    async fn review(
        &self,
        at: &RepositoryAt,
        number: u64,
        review: &NewReview,
    ) -> ForgeResult<String> {
        let token = self.token(at, Right::WritePullRequests).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let posted = reviews::post(&self.rest, token.by(), name, number, review).await;
        token.end().await;
        posted.map_err(|error| self.told(at, error))
    }
}
