//! Who somebody is in the workspace, and their Home.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

use bobbin_core::base::person::Outside;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Slack, SlackError};
use crate::chat::Member;

/// For how long it is believed that somebody is a full member.
const BELIEVED: Duration = Duration::from_secs(300);
/// People that are remembered.
const PEOPLE_MAX: usize = 1_024;

/// Full members, and until when that is believed. Who is none is asked about each time: they may have become one.
pub(super) type Members = BTreeMap<String, Instant>;

impl Slack {
    /// Whether somebody is not known as a full member of the workspace; asked once in a while.
    ///
    /// # Errors
    /// [`SlackError`] that passes: it is no admission.
    pub async fn outside(&self, user: &str) -> Result<Option<Outside>, SlackError> {
        let now = Instant::now();
        let is_known = |members: &Members| members.get(user).is_some_and(|until| now < *until);
        if is_known(&self.members.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(None);
        }
        match self.member(user).await {
            Ok(member) if !member.outsider => {
                let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
                if members.len() >= PEOPLE_MAX {
                    members.clear();
                }
                members.insert(user.to_owned(), now + BELIEVED);
                Ok(None)
            }
            Ok(_) => Ok(Some(Outside::Outsider)),
            Err(passing) if passing.passes() || matches!(passing, SlackError::Token { .. }) => {
                Err(passing)
            }
            // Somebody who is not visible here is none of this workspace's.
            Err(SlackError::Refused { error, .. }) if error.starts_with("user_not") => {
                Ok(Some(Outside::Outsider))
            }
            Err(error) => {
                tracing::error!(event = "slack.member.unread", %error, "whether somebody is a full member could not be asked: they are refused");
                Ok(Some(Outside::Unread))
            }
        }
    }

    /// Who somebody is in the workspace (`users.info`, scope `users:read`).
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn member(&self, user: &str) -> Result<Member, SlackError> {
        let fields = [("user", user.to_owned())];
        let answer = self.call_form("users.info", &fields).await?;
        let me = self.auth_test().await?;
        Ok(Member::read(&answer["user"], &me.team, &me.enterprise))
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
