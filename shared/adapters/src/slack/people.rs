//! Who somebody is in the workspace, and their Home.

use bobbin_core::wire::slack::people::Member;
use serde_json::{Value, json};

use super::{Slack, SlackError};

impl Slack {
    /// Who somebody is in the workspace (`users.info`, scope `users:read`).
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn member(&self, user: &str) -> Result<Member, SlackError> {
        let fields = [("user", user.to_owned())];
        let answer = self.call_form("users.info", &fields).await?;
        Ok(Member::read(&answer["user"]))
    }

    /// Whether somebody may manage the workspace: its admins and owners, and no guest.
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn manages(&self, user: &str) -> Result<bool, SlackError> {
        Ok(self.member(user).await?.manages)
    }

    /// Shows a Home to a person, in place of the one that they have.
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn publish_home(&self, user: &str, view: &Value) -> Result<(), SlackError> {
        let arguments = json!({ "user_id": user, "view": view });
        self.call("views.publish", &arguments).await?;
        Ok(())
    }
}
