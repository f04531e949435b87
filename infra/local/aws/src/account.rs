//! The account of all resources here, and its endpoint.

/// Account, region and endpoint; names and ARNs are built from them.
#[derive(Clone, Debug)]
pub(crate) struct AwsAccount {
    /// Account id of twelve digits.
    pub(crate) id: String,
    pub(crate) region: String,
    /// `http://127.0.0.1:PORT`, without a trailing slash.
    pub(crate) endpoint: String,
}

impl AwsAccount {
    /// An ARN in this account and region.
    pub(crate) fn arn(&self, service: &str, resource: &str) -> String {
        format!("arn:aws:{service}:{}:{}:{resource}", self.region, self.id)
    }

    /// The URL of a queue.
    pub(crate) fn queue_url(&self, queue: &str) -> String {
        format!("{}/{}/{queue}", self.endpoint, self.id)
    }
}
