//! A person's AWS: region, endpoint and credentials as the AWS command line finds them, for a terminal and never for a
//! function.
//!
//! Promised: credentials that end are asked for again before they do, so that a long command outlives them; one asks at a
//! time. Deliberately absent: clients of the SDK. Every call goes through [`crate::direct`] or [`crate::deployed`].

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use tokio::sync::Mutex;

use crate::direct::{Direct, Signer};
use crate::secrets::Secret;
use crate::signing::Keys;

/// How long finding a person's region or credentials may take; a role of the machine is asked for last.
const PERSON_WAIT: Duration = Duration::from_secs(20);
/// Credentials that end sooner are asked for again: a call that has begun must be over before.
const RENEWED_BEFORE: Duration = Duration::from_secs(60);
/// After this, credentials that do not say when they end are asked for again.
const RENEWED_AFTER: Duration = Duration::from_secs(15 * 60);
/// What to do without credentials.
const NO_CREDENTIALS: &str = "No AWS credentials were found. Set AWS_PROFILE to a profile of yours (aws configure, or aws configure sso and aws sso login), or take those of the AWS command line: eval \"$(aws configure export-credentials --format env)\"";

/// The last cause of an error: those of credentials wrap each other, and the outer ones say nothing.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    inner.to_string()
}

/// The SDK's own client, for what it asks for credentials: it believes the machine's certificates, a company's proxy's
/// among them.
fn https() -> aws_smithy_runtime_api::client::http::SharedHttpClient {
    use aws_smithy_http_client::Builder;
    use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
    Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .build_https()
}

/// Credentials that are asked for again before they end. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Renewed {
    provider: SharedCredentialsProvider,
    known: Arc<Mutex<Option<Known>>>,
}

#[derive(Debug)]
struct Known {
    keys: Keys,
    /// When to ask again.
    until: SystemTime,
}

impl Renewed {
    fn new(provider: SharedCredentialsProvider) -> Self {
        let known = Arc::default();
        Self { provider, known }
    }

    /// Keys that are good for a call.
    ///
    /// # Errors
    /// What is missing, and how it is given.
    pub(crate) async fn keys(&self) -> Result<Keys, String> {
        // Who comes second waits for what the first is given.
        let mut known = self.known.lock().await;
        let now = SystemTime::now();
        if let Some(known) = known.as_ref().filter(|known| now < known.until) {
            return Ok(known.keys.clone());
        }
        let given = tokio::time::timeout(PERSON_WAIT, self.provider.provide_credentials());
        let credentials = match given.await {
            Ok(Ok(credentials)) => credentials,
            Ok(Err(CredentialsError::CredentialsNotLoaded(_))) => {
                return Err(NO_CREDENTIALS.to_owned());
            }
            Ok(Err(error)) => {
                return Err(format!(
                    "AWS credentials are configured but cannot be used ({}). {NO_CREDENTIALS}",
                    innermost(&error)
                ));
            }
            Err(_) => {
                return Err(format!(
                    "AWS credentials were not given in time. {NO_CREDENTIALS}"
                ));
            }
        };
        let keys = Keys {
            access_key_id: credentials.access_key_id().to_owned(),
            secret_access_key: Secret::from(credentials.secret_access_key().to_owned()),
            session_token: credentials
                .session_token()
                .map(|token| Secret::from(token.to_owned())),
        };
        let until = match credentials.expiry() {
            Some(end) => end.checked_sub(RENEWED_BEFORE).unwrap_or(end),
            None => now + RENEWED_AFTER,
        };
        let keys = &known.insert(Known { keys, until }).keys;
        Ok(keys.clone())
    }
}

/// Where a person's AWS is.
#[derive(Debug, Clone)]
pub struct Account {
    region: String,
    endpoint: Option<String>,
    signer: Signer,
    direct: Direct,
}

impl Account {
    fn new(region: &str, endpoint: Option<&str>, signer: Signer) -> Result<Self, String> {
        Ok(Self {
            direct: Direct::signed_by(signer.clone(), region, endpoint, None)?,
            region: region.to_owned(),
            endpoint: endpoint.map(str::to_owned),
            signer,
        })
    }

    /// As the AWS command line finds it: variables, profiles, single sign-on, a credential process, a container's or
    /// machine's role. `endpoint` stands for every service's address, and before `AWS_ENDPOINT_URL`.
    ///
    /// # Errors
    /// What is missing, and how it is given.
    pub async fn of_person(endpoint: Option<&str>) -> Result<Self, String> {
        let found = aws_config::defaults(aws_config::BehaviorVersion::latest())
            .http_client(https())
            .load();
        let found = tokio::time::timeout(PERSON_WAIT, found).await.map_err(|_| {
            "AWS's region was not found in time: set AWS_REGION to the one that the stack is in"
        })?;
        let region = found.region().ok_or(
            "No AWS region is set. Set AWS_REGION to the one that the stack was deployed in (samconfig.toml names it), or run: aws configure set region REGION",
        )?;
        let provider = found.credentials_provider().ok_or(NO_CREDENTIALS)?;
        let signer = Signer::Renewed(Renewed::new(provider));
        Self::new(region.as_ref(), endpoint.or(found.endpoint_url()), signer)
    }

    /// The laptop stack's own: it takes any key, and stands in one region.
    ///
    /// # Errors
    /// That the endpoint is no address.
    pub fn of_laptop(endpoint: &str) -> Result<Self, String> {
        let keys = Keys {
            access_key_id: "local".to_owned(),
            secret_access_key: Secret::from("local".to_owned()),
            session_token: None,
        };
        Self::new("us-east-1", Some(endpoint), Signer::Fixed(keys))
    }

    /// With a person's credentials that stay as they are, for tests.
    #[cfg(test)]
    pub(crate) fn fixed(region: &str, endpoint: Option<&str>) -> Self {
        let keys = Keys {
            access_key_id: "an-id".to_owned(),
            secret_access_key: Secret::from("a-key".to_owned()),
            session_token: Some(Secret::from("a-token".to_owned())),
        };
        Self::new(region, endpoint, Signer::Fixed(keys)).expect("an address")
    }

    /// What its calls are made with.
    #[must_use]
    pub fn direct(&self) -> Direct {
        self.direct.clone()
    }

    /// Region, for [`crate::deployed`].
    pub(crate) fn region(&self) -> &str {
        &self.region
    }

    /// The address that stands for every service's own, where one does.
    pub(crate) fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    /// Keys for a request of [`crate::deployed`].
    pub(crate) async fn keys(&self) -> Result<Cow<'_, Keys>, String> {
        self.signer.keys().await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use aws_credential_types::Credentials;
    use aws_credential_types::provider::future;

    use super::*;

    /// Gives credentials of a number that grows, good for so many seconds.
    #[derive(Debug)]
    struct Counting {
        given: AtomicU64,
        good_s: Option<u64>,
    }

    impl ProvideCredentials for Counting {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            let id = self.given.fetch_add(1, Ordering::SeqCst).to_string();
            let end = self
                .good_s
                .map(|good_s| SystemTime::now() + Duration::from_secs(good_s));
            let credentials = Credentials::new(id, "canary", None, end, "test");
            future::ProvideCredentials::ready(Ok(credentials))
        }
    }

    fn renewed(good_s: Option<u64>) -> Renewed {
        let given = AtomicU64::new(0);
        Renewed::new(SharedCredentialsProvider::new(Counting { given, good_s }))
    }

    #[tokio::test]
    async fn credentials_are_asked_for_once_while_they_are_good_and_again_before_they_end() {
        let id = async |renewed: &Renewed| renewed.keys().await.map(|keys| keys.access_key_id);
        for good_s in [None, Some(3_600)] {
            let lasting = renewed(good_s);
            let both = futures::future::join(id(&lasting), id(&lasting)).await;
            assert_eq!(both, (Ok("0".to_owned()), Ok("0".to_owned())));
            assert_eq!(id(&lasting.clone()).await, Ok("0".to_owned()));
            assert!(!format!("{lasting:?}").contains("canary"));
        }
        let ending = renewed(Some(30));
        assert_eq!(id(&ending).await, Ok("0".to_owned()));
        assert_eq!(id(&ending).await, Ok("1".to_owned()));
    }
}
