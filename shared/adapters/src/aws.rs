//! The clients of the AWS SDK: over the connections of [`crate::direct`], credentials from the function's environment.
//!
//! Without `aws-config` (see the workspace manifest), so the variables that it would read are read here: `AWS_REGION`,
//! `AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`. Lambda sets them for the life
//! of the process, so nothing needs a refresh.

use std::env;

use aws_credential_types::Credentials;
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

/// How AWS is reached from inside of a function. A client is made where it is used: one that the usual path does not
/// need costs it nothing.
#[derive(Debug, Clone)]
pub struct Account {
    region: Region,
    credentials: Credentials,
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
            credentials,
            http: direct.for_sdk(),
            endpoint: env::var("AWS_ENDPOINT_URL")
                .ok()
                .filter(|url| !url.is_empty()),
        })
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
