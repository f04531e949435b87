//! Tokens of an installation: each for one operation, on one repository, with the right of that operation.

use std::sync::Arc;

use bobbin_core::base::secret::Secret;
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;

use super::rest::{Call, RestClient, RestCredential};
use crate::forge::{RepositoryId, RepositoryName};

/// The right of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Right {
    Metadata,
    ReadContents,
    WriteContents,
    ReadPullRequests,
    WritePullRequests,
    /// To see a pull request with all that happens to it.
    PollPullRequests,
    /// To see why a check failed.
    ReadFailures,
    /// GitHub wants the right to write contents too.
    ResolveThreads,
}

impl Right {
    /// The permissions, each with its level.
    pub(super) const fn permissions(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Metadata => &[("metadata", "read")],
            Self::ReadContents => &[("contents", "read")],
            Self::WriteContents => &[("contents", "write")],
            Self::ReadPullRequests => &[("pull_requests", "read")],
            Self::WritePullRequests => &[("pull_requests", "write")],
            // Without one of them GitHub leaves holes in its answer.
            Self::PollPullRequests => &[
                ("actions", "read"),
                ("checks", "read"),
                ("contents", "read"),
                ("issues", "read"),
                ("pull_requests", "read"),
                ("statuses", "read"),
            ],
            Self::ReadFailures => &[("actions", "read"), ("checks", "read")],
            Self::ResolveThreads => &[("contents", "write"), ("pull_requests", "write")],
        }
    }
}

/// The repositories that a token is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum TokenScope<'a> {
    Id(RepositoryId),
    Name(&'a RepositoryName),
    /// All that the installation includes, to list them.
    All,
}

/// The body of the request for a token.
pub(super) fn request(scope: TokenScope<'_>, right: Right) -> Value {
    let permissions = right.permissions().iter();
    let permissions: Map<String, Value> =
        permissions.map(|(name, level)| ((*name).to_owned(), json!(level))).collect();
    match scope {
        TokenScope::Id(id) => json!({"repository_ids": [id.0], "permissions": permissions}),
        TokenScope::Name(name) => {
            json!({"repositories": [name.name()], "permissions": permissions})
        }
        TokenScope::All => json!({ "permissions": permissions }),
    }
}

/// A token that is alive. [`Token::end`] revokes it; so does a drop, for an operation that was given up.
pub(super) struct Token {
    rest: Arc<RestClient>,
    secret: Secret,
    /// The repository's present name, if the token is for one.
    pub(super) name: Option<RepositoryName>,
}

impl Token {
    pub(super) fn new(
        rest: &Arc<RestClient>,
        secret: Secret,
        name: Option<RepositoryName>,
    ) -> Self {
        Self { rest: Arc::clone(rest), secret, name }
    }

    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// As the installation, with this token.
    pub(super) fn by(&self) -> RestCredential<'_> {
        RestCredential::Installation(&self.secret)
    }

    /// Revokes it. If that fails, it ends by itself within the hour.
    pub(super) async fn end(mut self) {
        revoke(&self.rest, &self.secret).await;
        self.secret = Secret::default();
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if self.secret.is_empty() {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            let (rest, secret) = (Arc::clone(&self.rest), std::mem::take(&mut self.secret));
            runtime.spawn(async move { revoke(&rest, &secret).await });
        }
    }
}

async fn revoke(rest: &RestClient, secret: &Secret) {
    let call = Call::delete(RestCredential::Installation(secret), &["installation", "token"]);
    match rest.send(call).await {
        Ok(_) => {}
        // It has ended already.
        Err(error) if error.status() == Some(401) => {}
        Err(error) => tracing::warn!(
            event = "github.token.kept",
            ?error,
            "a token could not be revoked, and ends by itself within the hour"
        ),
    }
}
