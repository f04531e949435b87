//! AWS access: one configuration for every client of the SDK.
//!
//! Promised for each call: TLS on ring with compiled-in roots, except to an endpoint that the environment names. The
//! call ends within the caller's bound, and each attempt within less than half of it: a connection that died while the
//! function was frozen costs one attempt, not the call. Answers have a bounded length. Connections are shared, and
//! dropped when idle. Transient failures are retried as in the SDK's standard mode. Deliberately absent: `aws-config`
//! in a function, which reads files and asks for credentials that Lambda has already put into the environment.
//!
//! A call whose answer is lost may have had its effect, and is repeated; every call here allows for that. The queue
//! deduplicates messages by id, a write to the table has a condition or a token, and the other calls read or set a
//! value that stays the same.

mod error;
mod http;
#[cfg(feature = "deployed")]
mod person;
pub(crate) mod table;

use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_smithy_runtime_api::client::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::SdkConfig;
use aws_types::region::Region;
use reqwest::Url;

pub(crate) use self::error::IntoCallError;
pub use self::error::{CallError, FailureCause};
pub use self::http::ANSWER_BYTES_MAX;
#[cfg(feature = "deployed")]
pub(crate) use self::person::NO_CREDENTIALS;
use bobbin_http::{in_sam_local, is_loopback_host};

/// Attempts of one call.
pub const ATTEMPTS_MAX: u32 = 3;
/// Pause before the second attempt of a call, doubled before the third; the actual wait is a random part of it.
const PAUSE: Duration = Duration::from_millis(200);
/// Share of a call's bound that one attempt may take: two attempts and the pause between them fit.
const ATTEMPT_PART: f64 = 0.45;
/// Shared AWS configuration. Clones share connections.
#[derive(Debug, Clone)]
pub struct Aws(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: SdkConfig,
    /// Region or endpoint, for error messages.
    place: String,
}

/// A client of one service, and the time bound of its calls.
#[derive(Debug, Clone)]
pub(crate) struct Bounded<C> {
    pub(crate) client: C,
    place: Arc<str>,
    ms_max: u64,
}

impl<C> Bounded<C> {
    /// Converts an SDK error.
    pub(crate) fn failed<E: IntoCallError>(&self, error: E) -> CallError {
        error.told(&self.place, self.ms_max)
    }

    /// Error for an answer that lacks a field which the service's protocol requires.
    pub(crate) fn unreadable(&self, missing: &str) -> CallError {
        CallError::Unreadable {
            place: self.place.to_string(),
            why: format!("{missing} is missing in it"),
        }
    }
}

/// A client created on first use: most processes never need it.
#[derive(Debug, Clone)]
pub(crate) struct Late<C> {
    aws: Aws,
    made: OnceLock<Bounded<C>>,
    make: fn(&Aws, u64) -> Bounded<C>,
    ms_max: u64,
}

impl<C> Late<C> {
    pub(crate) const fn new(aws: Aws, make: fn(&Aws, u64) -> Bounded<C>, ms_max: u64) -> Self {
        Self { aws, made: OnceLock::new(), make, ms_max }
    }

    pub(crate) fn get(&self) -> &Bounded<C> {
        self.made.get_or_init(|| (self.make)(&self.aws, self.ms_max))
    }
}

impl Aws {
    /// Reads the environment of a Lambda function: `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
    /// `AWS_SESSION_TOKEN`. If something other than AWS answers, also `AWS_ENDPOINT_URL` and `AWS_CA_BUNDLE`, the
    /// certificates that are trusted on loopback besides the compiled-in ones. An empty variable counts as unset.
    ///
    /// # Errors
    /// Names the variable that is missing or wrong.
    pub fn from_environment() -> Result<Self, String> {
        let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let var = |name: &str| {
            set(name)
                .ok_or_else(|| format!("{name} is not set: this program runs as a Lambda function"))
        };
        let credentials = Credentials::new(
            var("AWS_ACCESS_KEY_ID")?,
            var("AWS_SECRET_ACCESS_KEY")?,
            set("AWS_SESSION_TOKEN"),
            None,
            "environment",
        );
        let endpoint = set("AWS_ENDPOINT_URL");
        if let Some(endpoint) = &endpoint {
            function_endpoint(endpoint, in_sam_local(set))?;
        }
        let bundle = set("AWS_CA_BUNDLE").map(PathBuf::from);
        Self::trusting(&var("AWS_REGION")?, credentials, endpoint.as_deref(), bundle.as_deref())
    }

    /// Uses these credentials, at the services' own addresses or at one endpoint that replaces all of them.
    ///
    /// # Errors
    /// The endpoint is not an address.
    pub fn new(
        region: &str,
        credentials: Credentials,
        endpoint: Option<&str>,
    ) -> Result<Self, String> {
        Self::trusting(region, credentials, endpoint, None)
    }

    /// Like [`Aws::new`], but for an endpoint on loopback, and nowhere else, the certificates in the file `bundle`
    /// (PEM) are trusted too.
    ///
    /// # Errors
    /// The endpoint is not an address, or the file contains no certificate.
    pub fn trusting(
        region: &str,
        credentials: Credentials,
        endpoint: Option<&str>,
        bundle: Option<&Path>,
    ) -> Result<Self, String> {
        let bundle = bundle.filter(|_| endpoint.is_some_and(is_loopback));
        let bundle = bundle.map(|file| http::bundle("AWS_CA_BUNDLE", file));
        let config = SdkConfig::builder()
            .region(Region::new(region.to_owned()))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .http_client(http::of_function(region, bundle.transpose()?))
            .behavior_version(BehaviorVersion::latest())
            .build();
        Self::of(config, endpoint)
    }

    /// From a person's or a function's SDK configuration.
    fn of(config: SdkConfig, endpoint: Option<&str>) -> Result<Self, String> {
        let region = config.region().map_or("", Region::as_ref);
        let place = match endpoint {
            Some(endpoint) => {
                address(endpoint)?;
                format!("at {endpoint}")
            }
            None => format!("in {region}"),
        };
        let mut builder = config
            .to_builder()
            .retry_config(
                RetryConfig::standard().with_max_attempts(ATTEMPTS_MAX).with_initial_backoff(PAUSE),
            )
            // Every answer is short, and every attempt has a bound.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        builder.set_endpoint_url(endpoint.map(str::to_owned));
        let config = builder.build();
        Ok(Self(Arc::new(Inner { config, place })))
    }

    /// The region.
    #[must_use]
    pub fn region(&self) -> &str {
        self.0.config.region().map_or("", Region::as_ref)
    }

    /// SQS client; each call ends within `ms_max` milliseconds.
    pub(crate) fn sqs(&self, ms_max: u64) -> Bounded<aws_sdk_sqs::Client> {
        self.bounded("SQS", ms_max, aws_sdk_sqs::Client::new)
    }

    pub(crate) fn dynamodb(&self, ms_max: u64) -> Bounded<aws_sdk_dynamodb::Client> {
        self.bounded("DynamoDB", ms_max, aws_sdk_dynamodb::Client::new)
    }

    /// Secrets Manager client; each call ends within `ms_max` milliseconds.
    pub(crate) fn secrets(&self, ms_max: u64) -> Bounded<aws_sdk_secretsmanager::Client> {
        self.bounded("Secrets Manager", ms_max, aws_sdk_secretsmanager::Client::new)
    }

    /// KMS client; each call ends within `ms_max` milliseconds.
    pub(crate) fn kms(&self, ms_max: u64) -> Bounded<aws_sdk_kms::Client> {
        self.bounded("KMS", ms_max, aws_sdk_kms::Client::new)
    }

    /// `EventBridge` Scheduler client; each call ends within `ms_max` milliseconds.
    pub(crate) fn scheduler(&self, ms_max: u64) -> Bounded<aws_sdk_scheduler::Client> {
        self.bounded("EventBridge Scheduler", ms_max, aws_sdk_scheduler::Client::new)
    }

    #[cfg(feature = "deployed")]
    pub(crate) fn cloudformation(&self, ms_max: u64) -> Bounded<aws_sdk_cloudformation::Client> {
        self.bounded("CloudFormation", ms_max, aws_sdk_cloudformation::Client::new)
    }

    #[cfg(feature = "deployed")]
    pub(crate) fn lambda(&self, ms_max: u64) -> Bounded<aws_sdk_lambda::Client> {
        self.bounded("Lambda", ms_max, aws_sdk_lambda::Client::new)
    }

    fn bounded<C>(
        &self,
        service: &str,
        ms_max: u64,
        client: impl FnOnce(&SdkConfig) -> C,
    ) -> Bounded<C> {
        let Inner { config, place } = &*self.0;
        let whole = Duration::from_millis(ms_max);
        let bounds = TimeoutConfig::builder()
            .operation_timeout(whole)
            .operation_attempt_timeout(whole.mul_f64(ATTEMPT_PART))
            .build();
        Bounded {
            client: client(&config.to_builder().timeout_config(bounds).build()),
            place: format!("{service} {place}").into(),
            ms_max,
        }
    }
}

/// Checks the endpoint that replaces the services' own addresses in a function: TLS only, except on loopback (the
/// laptop stack), or in a container of `sam local`, which calls the host that runs it.
fn function_endpoint(endpoint: &str, in_sam_local: bool) -> Result<(), String> {
    let url = address(endpoint)?;
    let plain = url.scheme() == "http";
    if plain && !is_loopback(endpoint) && !in_sam_local {
        Err(format!(
            "AWS_ENDPOINT_URL is {endpoint:?}: outside this machine only https is allowed; leave it empty for AWS itself"
        ))
    } else {
        Ok(())
    }
}

fn address(endpoint: &str) -> Result<Url, String> {
    let url = Url::parse(endpoint).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| {
        format!(
            "AWS_ENDPOINT_URL is {endpoint:?}; it must be an address such as https://sqs.eu-central-1.amazonaws.com"
        )
    })
}

fn is_loopback(endpoint: &str) -> bool {
    address(endpoint).is_ok_and(|url| url.host_str().is_some_and(is_loopback_host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_endpoints_use_plain_http() {
        for fine in [
            "http://127.0.0.1:4566",
            "http://localhost:4566",
            "https://sqs.eu-central-1.amazonaws.com",
        ] {
            assert_eq!(function_endpoint(fine, false), Ok(()), "{fine}");
        }
        let host = "http://host.docker.internal:4566";
        assert!(function_endpoint(host, false).is_err_and(|why| why.contains("only https")));
        assert_eq!(function_endpoint(host, true), Ok(()));
        for wrong in ["sqs.eu-central-1.amazonaws.com", "ftp://a", "http://", "/"] {
            let why = function_endpoint(wrong, true).expect_err(wrong);
            assert!(why.contains("AWS_ENDPOINT_URL") && why.contains("such as"), "{why}");
        }
    }
}
