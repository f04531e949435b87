//! AWS access from a person's terminal, never in a function: region, endpoint and credentials are found as the AWS
//! command line finds them. The SDK renews credentials before they expire.

use std::env;
use std::time::Duration;

use aws_credential_types::Credentials;

use super::{Aws, http};

/// Time to find a person's region; the machine's own metadata is asked last.
const WAIT: Duration = Duration::from_secs(20);
/// Advice when there are no credentials.
pub(crate) const NO_CREDENTIALS: &str = "Set AWS_PROFILE to your profile (aws configure, or aws configure sso and aws sso login), or export the credentials of the AWS command line: eval \"$(aws configure export-credentials --format env)\"";

impl Aws {
    /// Finds the configuration as the AWS command line does: variables, profiles, single sign-on, a credential process,
    /// a container's or machine's role. Every call uses the machine's certificates and proxies. `endpoint` replaces
    /// every service's address and takes precedence over `AWS_ENDPOINT_URL`.
    ///
    /// # Errors
    /// What is missing, and how to supply it.
    pub async fn of_person(endpoint: Option<&str>) -> Result<Self, String> {
        let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let bundle = set("AWS_CA_BUNDLE").map(|file| http::bundle("AWS_CA_BUNDLE", file.as_ref()));
        let found = aws_config::defaults(aws_config::BehaviorVersion::latest())
            .http_client(http::of_person(bundle.transpose()?))
            .load();
        let found = tokio::time::timeout(WAIT, found).await.map_err(
            |_| "the AWS region was not found in time: set AWS_REGION to the stack's region",
        )?;
        if found.region().is_none() {
            return Err("No AWS region is set. Set AWS_REGION to the region in which the stack was deployed (samconfig.toml names it), or run: aws configure set region REGION".to_owned());
        }
        let endpoint = endpoint.or(found.endpoint_url()).map(str::to_owned);
        let endpoint = endpoint.filter(|endpoint| !endpoint.is_empty());
        Self::of(found, endpoint.as_deref())
    }

    /// For the laptop stack, with its key (id and secret). It has one region, and needs nothing from the person's
    /// environment.
    ///
    /// # Errors
    /// The endpoint is not an address.
    pub fn of_laptop(endpoint: &str, (id, secret): (&str, &str)) -> Result<Self, String> {
        let credentials = Credentials::new(id, secret, None, None, "laptop");
        Self::new("us-east-1", credentials, Some(endpoint))
    }
}
