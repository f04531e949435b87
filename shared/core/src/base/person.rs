//! People: who they are, and their roles and permissions where they write.

use serde::{Deserialize, Serialize};

/// Somebody on a platform.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Person {
    /// The platform's id of the person.
    pub id: String,
    /// Their display name.
    pub name: String,
}

/// The sender's channel, roles and permissions, as the platform stated them with this very request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Membership {
    /// The channel; for a Discord thread, its parent channel. Empty if the platform did not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// Discord roles of the sender.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// The sender may manage the server (Discord: Administrator or Manage Server). Slack does not say so with a
    /// request.
    #[serde(default)]
    pub manages: bool,
    /// Why the sender does not count as a full member. Slack does not say so with a request: the worker asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Outside>,
    /// The operator sent it from a terminal, with permission to write into the stack's queues. The sender is nobody on
    /// the platform, and no tenant's settings can forbid the request. No request of a platform ever sets this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operates: bool,
}

/// Why a sender does not count as a full member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outside {
    /// A guest, a person from another organisation, a bot, or somebody who has left.
    Outsider,
    /// The platform does not let the app find out.
    Unread,
}
