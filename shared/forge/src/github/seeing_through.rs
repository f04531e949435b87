//! GitHub's pull requests as they are seen through: each call with a token of its own, for its right alone.

use async_trait::async_trait;
use bobbin_core::base::secret::Secret;
use bobbin_core::records::drafted_review::{DiffFile, NewPullReview};
use bobbin_core::records::given_pull::GivenPull;
use bobbin_core::records::publication::{ActEnd, PullRequestAct};
use bobbin_core::records::responses::PullRequestResponse;
use serde_json::json;

use super::client::GitHub;
use super::finishing::Finishing;
use super::rest::RestCredential;
use super::token::Right;
use super::{failures, pulls, remarks, reviews};
use crate::error::{ForgeError, ForgeResult};
use crate::forge::RepositoryAt;
use crate::pull_requests::{CheckFailure, PullRequests};

const RESOLVE: &str = include_str!("resolve.graphql");

#[async_trait]
impl PullRequests for GitHub {
    async fn check_failure(&self, at: &RepositoryAt, check: u64) -> ForgeResult<CheckFailure> {
        let token = self.token(at, Right::ReadFailures).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let addresses = &self.settings.addresses;
        let read = failures::read(&self.rest, addresses, token.by(), name, check).await;
        self.ended(at, token, read).await
    }

    async fn respond(
        &self,
        at: &RepositoryAt,
        number: u64,
        what: &PullRequestResponse,
    ) -> ForgeResult<()> {
        let right = match what {
            PullRequestResponse::Resolve { .. } => Right::ResolveThreads,
            _ => Right::WritePullRequests,
        };
        let token = self.token(at, right).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let (rest, by) = (&*self.rest, token.by());
        let done: Result<(), ForgeError> = match what {
            PullRequestResponse::Seen(remark) => {
                remarks::mark_seen(rest, by, name, *remark).await.map_err(Into::into)
            }
            PullRequestResponse::Say(remark) => {
                remarks::say(rest, by, name, number, remark).await.map_err(Into::into)
            }
            PullRequestResponse::Resolve { thread } => {
                rest.graphql(by, RESOLVE, &json!({"thread": thread})).await.map(|_| ())
            }
            PullRequestResponse::AskForReview { logins } => {
                remarks::ask_for_review(rest, by, name, number, logins).await.map_err(Into::into)
            }
        };
        self.ended(at, token, done).await
    }

    async fn act(
        &self,
        at: &RepositoryAt,
        number: u64,
        (act, head): (PullRequestAct, &str),
        person: &Secret,
    ) -> ForgeResult<ActEnd> {
        let token = self.token(at, Right::ReadPullRequests).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let (rest, by, person) = (&*self.rest, token.by(), RestCredential::Person(person));
        let acted = Finishing { rest, by, person, name, number }.act(act, head).await;
        self.ended(at, token, acted).await
    }

    async fn given(
        &self,
        at: &RepositoryAt,
        number: u64,
    ) -> ForgeResult<Option<(GivenPull, String)>> {
        let token = self.token(at, Right::ReadPullRequests).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let found = pulls::numbered(&self.rest, token.by(), (at.repository, name), number).await;
        self.ended(at, token, found).await
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
        self.ended(at, token, read).await
    }

    async fn review(
        &self,
        at: &RepositoryAt,
        number: u64,
        review: &NewPullReview,
    ) -> ForgeResult<String> {
        let token = self.token(at, Right::WritePullRequests).await?;
        let name = token.name.as_ref().unwrap_or(&at.name);
        let posted = reviews::post(&self.rest, token.by(), name, number, review).await;
        self.ended(at, token, posted).await
    }
}
