//! A person's status in the workspace, and their Home.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::person::Outside;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Slack, SlackError};
use crate::chat::Member;

/// How long somebody is trusted to be a full member.
const BELIEVED: Duration = Duration::from_secs(300);
/// Maximum number of people remembered.
const PEOPLE_MAX: usize = 1_024;
/// Members of a channel on a page, and the pages that are read: ten thousand people.
const PAGE_ITEMS: &str = "500";
const PAGES_MAX: usize = 20;

/// Full members, and until when that is trusted. Others are looked up each time: they may have become one.
pub(super) type Members = BTreeMap<String, Instant>;

impl Slack {
    /// Whether somebody was a full member a short while ago.
    pub(super) fn is_believed(&self, user: &str) -> bool {
        let members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.get(user).is_some_and(|until| Instant::now() < *until)
    }

    /// Remembers that somebody is a full member now.
    pub(super) fn believe(&self, user: &str) {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        if members.len() >= PEOPLE_MAX {
            members.clear();
        }
        members.insert(user.to_owned(), Instant::now() + BELIEVED);
    }

    /// A person's status in the workspace (`users.info`, scope `users:read`).
    pub(super) async fn user(&self, user: &str) -> Result<Member, SlackError> {
        let fields = [("user", user.to_owned())];
        let answer = self.call_form("users.info", &fields).await?;
        let me = self.auth_test().await?;
        Ok(Member::read(&answer["user"], &me.team, &me.enterprise))
    }

    /// Why somebody does not count as a full member.
    pub(super) async fn outside(&self, user: &str) -> Result<Option<Outside>, Failure> {
        if self.is_believed(user) {
            return Ok(None);
        }
        match self.user(user).await {
            Ok(member) if !member.outsider => {
                self.believe(user);
                Ok(None)
            }
            Ok(_) => Ok(Some(Outside::Outsider)),
            Err(error) if error.passes() || matches!(error, SlackError::Token { .. }) => {
                Err(error.into())
            }
            // Somebody who is not visible here does not belong to this workspace.
            Err(SlackError::Refused { error, .. }) if error.starts_with("user_not") => {
                Ok(Some(Outside::Outsider))
            }
            Err(error) => {
                tracing::error!(event = "slack.member.unread", %error, "Slack could not be asked whether somebody is a full member: they are refused");
                Ok(Some(Outside::Unread))
            }
        }
    }

    /// Whether somebody is in the channel (`conversations.members`, scopes `channels:read`, `groups:read`). In a larger
    /// one than is read, nobody is found.
    pub(super) async fn is_in(
        &self,
        thread: &ThreadKey,
        channel: &str,
        user: &str,
    ) -> Result<bool, Failure> {
        if let ThreadKey::SlackDirect { user: own, .. } = thread {
            return Ok(own == user);
        }
        let mut cursor = String::new();
        for _ in 0..PAGES_MAX {
            let fields = [
                ("channel", channel.to_owned()),
                ("limit", PAGE_ITEMS.to_owned()),
                ("cursor", cursor),
            ];
            let page = match self.call_form("conversations.members", &fields).await {
                Ok(page) => page,
                Err(error) if error.passes() || matches!(error, SlackError::Token { .. }) => {
                    return Err(error.into());
                }
                Err(error) => {
                    tracing::error!(event = "slack.member.unread", %error, "Slack could not be asked who is in a channel: nobody is taken to be");
                    return Ok(false);
                }
            };
            if page["members"].as_array().is_some_and(|all| all.iter().any(|one| *one == user)) {
                return Ok(true);
            }
            cursor =
                page["response_metadata"]["next_cursor"].as_str().unwrap_or_default().to_owned();
            if cursor.is_empty() {
                break;
            }
        }
        Ok(false)
    }

    /// Publishes a person's Home, replacing the previous one.
    pub(super) async fn publish_home(&self, user: &str, view: &Value) -> Result<(), SlackError> {
        let arguments = json!({ "user_id": user, "view": view });
        self.call("views.publish", &arguments).await?;
        Ok(())
    }
}
