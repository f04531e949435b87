//! Who somebody is in the workspace.

use super::{Slack, SlackError};

impl Slack {
    /// Whether somebody may manage the workspace: its admins and owners, and no guest (`users.info`, scope
    /// `users:read`).
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn manages(&self, user: &str) -> Result<bool, SlackError> {
        let answer = self
            .call_form("users.info", &[("user", user.to_owned())])
            .await?;
        let is = |name: &str| answer["user"][name] == true;
        let guest = is("is_restricted") || is("is_ultra_restricted") || is("deleted");
        let admin = is("is_admin") || is("is_owner") || is("is_primary_owner");
        Ok(admin && !guest)
    }
}
