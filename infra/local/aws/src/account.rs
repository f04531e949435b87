//! The account that everything here lives in, and the address it is reached at.

/// Account, region and endpoint; names and ARNs are built from them.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    /// The account's id of twelve digits.
    pub(crate) id: String,
    pub(crate) region: String,
    /// `http://127.0.0.1:PORT`, without a slash at its end.
    pub(crate) endpoint: String,
}

impl Account {
    /// An ARN in this account and region.
    pub(crate) fn arn(&self, service: &str, resource: &str) -> String {
        format!("arn:aws:{service}:{}:{}:{resource}", self.region, self.id)
    }

    /// The URL of a queue.
    pub(crate) fn queue_url(&self, queue: &str) -> String {
        format!("{}/{}/{queue}", self.endpoint, self.id)
    }
}
