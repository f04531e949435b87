//! A person's status in the workspace, and their Home.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Slack, SlackError};
use crate::chat::Member;

/// How long somebody is trusted to be a full member.
const BELIEVED: Duration = Duration::from_secs(300);
/// Maximum number of people remembered.
const PEOPLE_MAX: usize = 1_024;

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

    /// Publishes a person's Home, replacing the previous one.
    pub(super) async fn publish_home(&self, user: &str, view: &Value) -> Result<(), SlackError> {
        let arguments = json!({ "user_id": user, "view": view });
        self.call("views.publish", &arguments).await?;
        Ok(())
    }
}
