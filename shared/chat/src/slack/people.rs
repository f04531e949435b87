//! What `users.info` says of a person.

use serde::Deserialize;
use serde_json::Value;

use crate::chat::Member;

impl Member {
    /// Reads the `user` of an answer; whoever cannot be read is an outsider.
    #[must_use]
    pub fn read(user: &Value) -> Self {
        let Ok(user) = User::deserialize(user) else {
            return Self {
                manages: false,
                outsider: true,
            };
        };
        let outsider = user.deleted
            || user.is_bot
            || user.is_restricted
            || user.is_ultra_restricted
            || user.is_stranger
            || user.is_workflow_bot
            || user.is_connector_bot;
        Self {
            manages: !outsider && (user.is_admin || user.is_owner || user.is_primary_owner),
            outsider,
        }
    }
}

/// Slack's flags; what is missing is not so.
#[derive(Deserialize)]
struct User {
    #[serde(rename = "id")]
    _id: String,
    #[serde(default)]
    deleted: bool,
    #[serde(default)]
    is_bot: bool,
    #[serde(default)]
    is_admin: bool,
    #[serde(default)]
    is_owner: bool,
    #[serde(default)]
    is_primary_owner: bool,
    #[serde(default)]
    is_restricted: bool,
    #[serde(default)]
    is_ultra_restricted: bool,
    #[serde(default)]
    is_stranger: bool,
    #[serde(default)]
    is_workflow_bot: bool,
    #[serde(default)]
    is_connector_bot: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_manages_is_an_administrator_or_owner_and_no_guest() {
        let read = |user: Value| {
            let member = Member::read(&user);
            (member.manages, member.outsider)
        };
        assert_eq!(read(json!({"id": "U1", "is_admin": true})), (true, false));
        assert_eq!(read(json!({"id": "U1", "is_owner": true})), (true, false));
        assert_eq!(read(json!({"id": "U1"})), (false, false));
        for flag in [
            "deleted",
            "is_bot",
            "is_restricted",
            "is_ultra_restricted",
            "is_stranger",
            "is_workflow_bot",
            "is_connector_bot",
        ] {
            let user = json!({"id": "U1", "is_admin": true, (flag): true});
            assert_eq!(read(user), (false, true), "{flag}");
        }
        assert_eq!(read(json!({})), (false, true));
        assert_eq!(read(json!("U1")), (false, true));
    }
}
