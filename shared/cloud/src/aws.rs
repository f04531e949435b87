//! How AWS is reached: one configuration for every client of the SDK.
//!
//! Promised for each call: over TLS on ring with compiled-in roots, except to an endpoint that the environment names; over
//! within the caller's bound, each attempt within less than half of it, so that a connection that died while the function
//! was frozen costs one attempt and not the call; an answer of a bounded length; connections are shared, and dropped when
//! they have idled. What may pass is repeated as the SDK's standard mode does. Deliberately absent: `aws-config` in a
//! function, which reads files and asks for credentials that Lambda has already put into the environment.
//!
//! A call whose answer is lost may have had its effect, and is repeated: every call that is made here is written for that.
//! The queue knows a message by its deduplication id, a write of the table has a condition or a token, and the others read
//! or set what stays the same.

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
pub use self::error::{CallError, Cause};
pub use self::http::ANSWER_BYTES_MAX;
#[cfg(feature = "deployed")]
pub(crate) use self::person::NO_CREDENTIALS;
use bobbin_http::{in_sam_local, is_loopback_host};

/// Requests of one call.
pub const ATTEMPTS_MAX: u32 = 3;
/// Before the second request of a call; twice that before the third. What is waited is a random part of it.
const PAUSE: Duration = Duration::from_millis(200);
/// Of a call's bound, what one of its attempts may take: two and the pause between them fit.
const ATTEMPT_PART: f64 = 0.45;
/// How AWS is reached. Clones share connections.
#[derive(Debug, Clone)]
pub struct Aws(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: SdkConfig,
    /// Where its services are, for the words of an error.
    place: String,
}

/// A client of one service, and how long its calls may take.
#[derive(Debug, Clone)]
pub(crate) struct Bounded<C> {
    pub(crate) client: C,
    place: Arc<str>,
    ms_max: u64,
}

impl<C> Bounded<C> {
    /// What a failed call comes to.
    pub(crate) fn failed<E: IntoCallError>(&self, error: E) -> CallError {
        error.told(&self.place, self.ms_max)
    }

    /// An answer without what the service's protocol demands of it.
    pub(crate) fn unreadable(&self, missing: &str) -> CallError {
        CallError::Unreadable {
            place: self.place.to_string(),
            why: format!("{missing} is missing in it"),
        }
    }
}

/// A client that its first call makes: what most processes never call costs them nothing.
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
    /// From the environment of a Lambda function: `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
    /// `AWS_SESSION_TOKEN`, and where something else than AWS answers `AWS_ENDPOINT_URL` and, with the certificates that
    /// are trusted on loopback besides the compiled-in ones, `AWS_CA_BUNDLE`. An empty variable is as good as none.
    ///
    /// # Errors
    /// A sentence that names the variable that is missing or wrong.
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

    /// With these credentials, at the services' own addresses or at one that stands for all of them.
    ///
    /// # Errors
    /// A sentence, if the endpoint is not an address.
    pub fn new(
        region: &str,
        credentials: Credentials,
        endpoint: Option<&str>,
    ) -> Result<Self, String> {
        Self::trusting(region, credentials, endpoint, None)
    }

    /// Clients as [`Aws::new`] makes them; towards an endpoint on loopback, and nowhere else, the certificates in the file
    /// `bundle` (PEM) are trusted too.
    ///
    /// # Errors
    /// A sentence, if the endpoint is not an address or there is no certificate in the file.
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

    /// With what was found of a person, or given to a function.
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

    /// Region of its services.
    #[must_use]
    pub fn region(&self) -> &str {
        self.0.config.region().map_or("", Region::as_ref)
    }

    /// Calls of SQS, each over within `ms_max` milliseconds.
    pub(crate) fn sqs(&self, ms_max: u64) -> Bounded<aws_sdk_sqs::Client> {
        self.bounded("SQS", ms_max, aws_sdk_sqs::Client::new)
    }

    pub(crate) fn dynamodb(&self, ms_max: u64) -> Bounded<aws_sdk_dynamodb::Client> {
        self.bounded("DynamoDB", ms_max, aws_sdk_dynamodb::Client::new)
    }

    /// Calls of Secrets Manager.
    pub(crate) fn secrets(&self, ms_max: u64) -> Bounded<aws_sdk_secretsmanager::Client> {
        self.bounded("Secrets Manager", ms_max, aws_sdk_secretsmanager::Client::new)
    }

    /// A client of KMS whose calls are over within so many milliseconds.
    pub(crate) fn kms(&self, ms_max: u64) -> Bounded<aws_sdk_kms::Client> {
        self.bounded("KMS", ms_max, aws_sdk_kms::Client::new)
    }

    /// Calls of `EventBridge` Scheduler.
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

/// What stands for the services' own addresses in a function: over TLS, but for the laptop stack, which is on loopback, or
/// for a container of `sam local` on the host that runs it.
fn function_endpoint(endpoint: &str, in_sam_local: bool) -> Result<(), String> {
    let url = address(endpoint)?;
    let plain = url.scheme() == "http";
    if plain && !is_loopback(endpoint) && !in_sam_local {
        Err(format!(
            "AWS_ENDPOINT_URL is {endpoint:?}: outside this machine only https is spoken; leave it empty for AWS itself"
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
