//! People: who they are, and as what they count where they speak.

use serde::{Deserialize, Serialize};

/// Somebody on a platform.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Person {
    /// The platform's id of the person.
    pub id: String,
    /// What others call them.
    pub name: String,
}

/// Where something was said, and as what its sender counts there: the platform said so with this very request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Membership {
    /// The channel; of a Discord thread the one that it belongs to. Empty where the platform did not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// Discord roles of the sender.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// The sender may manage the server (Discord: Administrator or Manage Server). Slack does not say it with a request.
    #[serde(default)]
    pub manages: bool,
    /// The sender is not known as a full member of the place. Slack does not say it with a request: the worker asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Outside>,
    /// Who runs the stack asks from a terminal, with leave to write into the stack's queues: nobody of the platform, and no
    /// tenant's settings can forbid it. No request of a platform ever says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operates: bool,
}

/// What somebody is who is not known as a full member of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outside {
    /// A guest, a person of another organisation, a bot, or somebody who has left.
    Outsider,
    /// The platform does not let the app ask.
    Unread,
}
