//! The clients of the AWS SDK: over the connections of [`crate::direct`], credentials from the function's environment.
//!
//! In a function without `aws-config` (see the workspace manifest), so the variables that it would read are read here:
//! `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`. Lambda sets them
//! for the life of the process, so nothing needs a refresh. A command line that a person runs finds its account as the
//! AWS command line does ([`Account::of_person`], with the feature `deployed`).

use std::env;
#[cfg(feature = "deployed")]
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_dynamodb::config::{Region, SharedHttpClient};
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use crate::direct::Direct;

/// What a failed call is told as: the service's code and message, or why there was no answer. Never a raw answer: one of
/// Secrets Manager holds the secret.
#[must_use]
pub fn words<E, R>(error: &SdkError<E, R>) -> String
where
    E: ProvideErrorMetadata,
{
    match error {
        SdkError::ServiceError(failed) => {
            let meta = failed.err().meta();
            format!(
                "{}: {}",
                meta.code().unwrap_or("an error without a code"),
                meta.message().unwrap_or("no message")
            )
        }
        SdkError::TimeoutError(_) => "no answer in time".to_owned(),
        SdkError::DispatchFailure(failed) if failed.is_timeout() => "no answer in time".to_owned(),
        SdkError::DispatchFailure(_) => "the connection failed".to_owned(),
        SdkError::ResponseError(_) => "the answer could not be read".to_owned(),
        _ => "the request could not be made".to_owned(),
    }
}

/// How long finding a person's region or credentials may take; a role of the machine is asked for last.
#[cfg(feature = "deployed")]
const PERSON_WAIT: Duration = Duration::from_secs(20);
/// What to do without credentials.
#[cfg(feature = "deployed")]
const NO_CREDENTIALS: &str = "No AWS credentials were found. Set AWS_PROFILE to a profile of yours (aws configure, or aws configure sso and aws sso login), or take those of the AWS command line: eval \"$(aws configure export-credentials --format env)\"";

/// The last cause of an error: those of credentials wrap each other, and the outer ones say nothing.
#[cfg(feature = "deployed")]
fn innermost(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    inner.to_string()
}

/// The SDK's own client, for a person's machine: it believes the machine's certificates, a company's proxy's among them.
#[cfg(feature = "deployed")]
fn https() -> SharedHttpClient {
    use aws_smithy_http_client::Builder;
    use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
    Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .build_https()
}

/// How AWS is reached. A client is made where it is used: one that the usual path does not
/// need costs it nothing.
#[derive(Debug, Clone)]
pub struct Account {
    region: Region,
    credentials: SharedCredentialsProvider,
    http: SharedHttpClient,
    endpoint: Option<String>,
}

macro_rules! client {
    ($(#[$about:meta])* $name:ident, $sdk:ident) => {
        $(#[$about])*
        #[must_use]
        pub fn $name(&self) -> $sdk::Client {
            let mut config = $sdk::Config::builder()
                .region(self.region.clone())
                .credentials_provider(self.credentials.clone())
                .http_client(self.http.clone());
            config.set_endpoint_url(self.endpoint.clone());
            $sdk::Client::from_conf(config.build())
        }
    };
}

impl Account {
    /// From the environment of a Lambda function, over these connections.
    ///
    /// # Errors
    /// A sentence that names the variable that is missing.
    pub fn from_environment(direct: &Direct) -> Result<Self, String> {
        let var = |name: &str| {
            env::var(name)
                .map_err(|_| format!("{name} is not set: this program runs as a Lambda function"))
        };
        let credentials = Credentials::new(
            var("AWS_ACCESS_KEY_ID")?,
            var("AWS_SECRET_ACCESS_KEY")?,
            env::var("AWS_SESSION_TOKEN")
                .ok()
                .filter(|token| !token.is_empty()),
            None,
            "lambda",
        );
        Ok(Self {
            region: Region::new(var("AWS_REGION")?),
            credentials: SharedCredentialsProvider::new(credentials),
            http: direct.for_sdk(),
            endpoint: env::var("AWS_ENDPOINT_URL")
                .ok()
                .filter(|url| !url.is_empty()),
        })
    }

    /// As the AWS command line finds it: variables, profiles, single sign-on, a credential process, a container's or
    /// machine's role. `endpoint` stands for every service's address, and before `AWS_ENDPOINT_URL`.
    ///
    /// # Errors
    /// What is missing, and how it is given.
    #[cfg(feature = "deployed")]
    pub async fn of_person(endpoint: Option<&str>) -> Result<Self, String> {
        let found = aws_config::defaults(aws_config::BehaviorVersion::latest())
            .http_client(https())
            .load();
        let found = tokio::time::timeout(PERSON_WAIT, found).await.map_err(|_| {
            "AWS's region was not found in time: set AWS_REGION to the one that the stack is in"
        })?;
        let region = found.region().cloned().ok_or(
            "No AWS region is set. Set AWS_REGION to the one that the stack was deployed in (samconfig.toml names it), or run: aws configure set region REGION",
        )?;
        let credentials = found.credentials_provider().ok_or(NO_CREDENTIALS)?;
        Ok(Self {
            region,
            credentials,
            http: https(),
            endpoint: endpoint.or(found.endpoint_url()).map(str::to_owned),
        })
    }

    /// The laptop stack's own: it takes any key, and stands in one region.
    #[cfg(feature = "deployed")]
    #[must_use]
    pub fn of_laptop(endpoint: &str) -> Self {
        let credentials = Credentials::new("local", "local", None, None, "laptop");
        Self {
            region: Region::from_static("us-east-1"),
            credentials: SharedCredentialsProvider::new(credentials),
            http: https(),
            endpoint: Some(endpoint.to_owned()),
        }
    }

    /// The calls that are made without the SDK, with the credentials as they are now.
    ///
    /// # Errors
    /// What is missing, and how it is given.
    #[cfg(feature = "deployed")]
    pub async fn direct(&self) -> Result<crate::direct::Direct, String> {
        use crate::secrets::Secret;
        let credentials = self.credentials().await?;
        let keys = crate::signing::Keys {
            access_key_id: credentials.access_key_id().to_owned(),
            secret_access_key: Secret::from(credentials.secret_access_key().to_owned()),
            session_token: credentials
                .session_token()
                .map(|token| Secret::from(token.to_owned())),
        };
        crate::direct::Direct::new(self.region(), keys, self.endpoint())
    }

    /// With a person's credentials that stay as they are, for tests.
    #[cfg(all(test, feature = "deployed"))]
    pub(crate) fn fixed(region: &str, endpoint: Option<&str>) -> Self {
        let token = Some("a-token".to_owned());
        let credentials = Credentials::new("an-id", "a-key", token, None, "test");
        Self {
            region: Region::new(region.to_owned()),
            credentials: SharedCredentialsProvider::new(credentials),
            http: https(),
            endpoint: endpoint.map(str::to_owned),
        }
    }

    /// Region, for [`crate::deployed`].
    #[cfg(feature = "deployed")]
    pub(crate) fn region(&self) -> &str {
        self.region.as_ref()
    }

    /// The address that stands for every service's own, where one does.
    #[cfg(feature = "deployed")]
    pub(crate) fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    /// Credentials for a request of our own.
    #[cfg(feature = "deployed")]
    pub(crate) async fn credentials(&self) -> Result<Credentials, String> {
        use aws_credential_types::provider::ProvideCredentials;
        use aws_credential_types::provider::error::CredentialsError;
        let given = tokio::time::timeout(PERSON_WAIT, self.credentials.provide_credentials());
        match given.await {
            Ok(Ok(credentials)) => Ok(credentials),
            Ok(Err(CredentialsError::CredentialsNotLoaded(_))) => Err(NO_CREDENTIALS.to_owned()),
            Ok(Err(error)) => Err(format!(
                "AWS credentials are configured but cannot be used ({}). {NO_CREDENTIALS}",
                innermost(&error)
            )),
            Err(_) => Err(format!(
                "AWS credentials were not given in time. {NO_CREDENTIALS}"
            )),
        }
    }

    client!(
        /// The table.
        dynamodb,
        aws_sdk_dynamodb
    );
    client!(
        /// The wake-ups.
        scheduler,
        aws_sdk_scheduler
    );
}

/// What the functions reach AWS with.
#[derive(Debug, Clone)]
pub struct Clients {
    /// The table.
    pub dynamodb: aws_sdk_dynamodb::Client,
    /// The queues and the secret.
    pub direct: Direct,
    /// The wake-ups.
    pub scheduler: aws_sdk_scheduler::Client,
}

impl Clients {
    /// From the environment of a Lambda function.
    ///
    /// # Errors
    /// A sentence that names the variable that is missing.
    pub fn from_environment() -> Result<Self, String> {
        let direct = Direct::from_environment()?;
        let account = Account::from_environment(&direct)?;
        Ok(Self {
            dynamodb: account.dynamodb(),
            direct,
            scheduler: account.scheduler(),
        })
    }
}
