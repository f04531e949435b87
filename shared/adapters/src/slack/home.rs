//! A person's Home, and who they are in the workspace.

use bobbin_core::wire::slack::people::Member;
use serde_json::{Value, json};

use super::{Slack, SlackError};

impl Slack {
    /// Shows a Home to a person, in place of the one that they have.
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn publish_home(&self, user: &str, view: &Value) -> Result<(), SlackError> {
        let arguments = json!({ "user_id": user, "view": view });
        self.call("views.publish", &arguments).await?;
        Ok(())
    }

    /// Who somebody is in the workspace.
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn member(&self, user: &str) -> Result<Member, SlackError> {
        let fields = [("user", user.to_owned())];
        let answer = self.call_form("users.info", &fields).await?;
        Ok(Member::read(&answer["user"]))
    }
}
