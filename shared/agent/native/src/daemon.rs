//! Calls to a sandbox's daemon: at the present endpoint, and once more at a fresh one.

use std::future::Future;
use std::sync::{Arc, PoisonError, RwLock};

use bobbin_agent::{AgentError, AgentErrorKind, Missed, Refresh};
use bobbin_agent_client::{AgentClient, ClientError, ClientResult};
use bobbin_core::base::endpoint::{Endpoint, NoEndpoint};
use bobbin_core::base::failure::Failure;
use bobbin_http::{Http, HttpError};

use crate::attempt::{self, Newest};

/// The daemon of one sandbox.
#[derive(Clone)]
pub(crate) struct Daemon {
    http: Http,
    endpoint: Arc<RwLock<Endpoint>>,
    token: String,
    refresh: Refresh,
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Trouble {
    Client(ClientError),
    NoEndpoint(NoEndpoint),
}

impl Daemon {
    pub(crate) fn new(http: Http, endpoint: Endpoint, token: &str, refresh: Refresh) -> Self {
        Self { http, endpoint: Arc::new(RwLock::new(endpoint)), token: token.to_owned(), refresh }
    }

    /// The client of the present endpoint.
    pub(crate) fn client(&self) -> AgentClient {
        let endpoint = self.endpoint.read().unwrap_or_else(PoisonError::into_inner);
        let headers = endpoint.headers.iter();
        let headers = headers.map(|(name, value)| ((*name).to_owned(), value.clone()));
        AgentClient::over(self.http.clone(), &endpoint.url, &self.token)
            .with_headers(headers.collect())
    }

    /// Makes a call, and if the endpoint may be to blame, once more with a fresh one: every call of ours can be
    /// repeated.
    pub(crate) async fn call<T, F>(&self, call: impl Fn(AgentClient) -> F) -> Result<T, Trouble>
    where
        F: Future<Output = ClientResult<T>>,
    {
        match call(self.client()).await {
            Err(error) if is_of_the_endpoint(&error) => {
                let fresh = (self.refresh)().await.map_err(Trouble::NoEndpoint)?;
                *self.endpoint.write().unwrap_or_else(PoisonError::into_inner) = fresh;
                call(self.client()).await.map_err(Trouble::Client)
            }
            answered => answered.map_err(Trouble::Client),
        }
    }

    /// The newest attempt at a prompt.
    pub(crate) async fn newest(&self, session: &str, message: &str) -> Result<Newest, Trouble> {
        let look = |client: AgentClient| async move {
            attempt::newest(message, |turn: String| {
                let client = client.clone();
                async move { client.turn(session, &turn).await }
            })
            .await
        };
        self.call(look).await
    }
}

/// Whether a fresh endpoint may help: the answer, if any, was not the daemon's.
fn is_of_the_endpoint(error: &ClientError) -> bool {
    match error {
        ClientError::Http(error) => {
            !matches!(error, HttpError::Refused { .. } | HttpError::TooLarge { .. })
        }
        ClientError::Refused { kind, .. } => kind.is_empty(),
        ClientError::NotADaemon => true,
        ClientError::NotStarted(_) | ClientError::StreamEnded => false,
    }
}

impl Trouble {
    pub(crate) fn is_kind(&self, kind: &str) -> bool {
        matches!(self, Self::Client(error) if error.is_kind(kind))
    }

    /// Whether the daemon certainly did nothing.
    pub(crate) fn is_certain(&self) -> bool {
        match self {
            Self::Client(ClientError::Http(error)) => error.is_unsent(),
            // A proxy's 5xx, or its "took too long", may come after the request was passed on.
            Self::Client(ClientError::Refused { status, kind, .. }) => {
                !kind.is_empty() || matches!(status, 300..=407 | 409..=499)
            }
            Self::Client(_) => false,
            Self::NoEndpoint(_) => true,
        }
    }
}

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<Trouble> for AgentError {
    fn from(trouble: Trouble) -> Self {
        let error = match trouble {
            Trouble::NoEndpoint(none) => {
                let kind = if none.is_gone { AgentErrorKind::Final } else { AgentErrorKind::Other };
                return Self { kind, failure: none.failure.clone(), seen: none.to_string() };
            }
            Trouble::Client(error) => error,
        };
        let seen = error.to_string();
        match &error {
            ClientError::Http(HttpError::Refused { .. }) => Self {
                kind: AgentErrorKind::Final,
                failure: Failure::NonRecoverable {
                    advice: format!(
                        "The sandbox's address cannot be used: {seen}. The operator has to check the provider's address in the parameter Overrides."
                    ),
                },
                seen,
            },
            ClientError::Refused { kind, .. } if kind == "session_not_found" => {
                Failure::SessionMissing.into()
            }
            ClientError::Refused { kind, status, .. } if !kind.is_empty() && *status != 401 => {
                Failure::TurnFailed { reason: seen }.into()
            }
            _ => Failure::SandboxDown {
                seen: format!("the sandbox's daemon does not answer: {seen}"),
            }
            .into(),
        }
    }
}

impl From<Trouble> for Missed {
    fn from(trouble: Trouble) -> Self {
        Self { certain: trouble.is_certain(), error: trouble.into() }
    }
}
