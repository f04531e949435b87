//! The answer of `users.info` about a person.

use serde::Deserialize;
use serde_json::Value;

use crate::chat::Member;

impl Member {
    /// Reads the `user` of an answer, for an installation in this team and, if any, this organisation; somebody who
    /// cannot be read is an outsider.
    #[must_use]
    pub fn read(user: &Value, team: &str, enterprise: &str) -> Self {
        let Ok(user) = SlackUser::deserialize(user) else {
            return Self { manages: false, outsider: true };
        };
        let outsider = user.deleted
            || user.is_bot
            || user.is_restricted
            || user.is_ultra_restricted
            || user.is_stranger
            || user.is_workflow_bot
            || user.is_connector_bot
            || user.is_of_another(team, enterprise);
        Self {
            manages: !outsider && (user.is_admin || user.is_owner || user.is_primary_owner),
            outsider,
        }
    }
}

/// Slack's flags; a missing flag is false.
#[derive(Deserialize)]
struct SlackUser {
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
    #[serde(default)]
    team_id: Option<String>,
    #[serde(default)]
    enterprise_user: Option<EnterpriseUser>,
}

/// Identity of a person in an organisation with several workspaces.
#[derive(Deserialize)]
struct EnterpriseUser {
    #[serde(default)]
    enterprise_id: Option<String>,
    #[serde(default)]
    teams: Vec<String>,
}

impl SlackUser {
    /// Whether their home is neither the team nor its organisation: in a channel shared with others the flags alone do
    /// not tell. An organisation's installation has its id in place of a team's.
    fn is_of_another(&self, team: &str, enterprise: &str) -> bool {
        let is_ours = |id: &str| !id.is_empty() && [team, enterprise].contains(&id);
        let of_enterprise = self.enterprise_user.as_ref().is_some_and(|user| {
            let in_it = user.enterprise_id.iter().chain(&user.teams);
            in_it.into_iter().any(|id| is_ours(id))
        });
        let home = self.team_id.as_deref().filter(|home| !home.is_empty());
        home.is_some_and(|home| !is_ours(home)) && !of_enterprise
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_full_admins_and_owners_manage() {
        let read = |user: Value| {
            let member = Member::read(&user, "T1", "");
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

    #[test]
    fn members_of_other_organisations_are_outsiders() {
        let of = |enterprise: &str| json!({"enterprise_id": enterprise, "teams": ["T8"]});
        for (user, (team, enterprise), outsider) in [
            (json!({"id": "U1", "team_id": "T1"}), ("T1", ""), false),
            (json!({"id": "U1", "team_id": "T9"}), ("T1", ""), true),
            (json!({"id": "U1", "team_id": "T9"}), ("T1", "E1"), true),
            (json!({"id": "U1", "team_id": "E1"}), ("T1", "E1"), false),
            (
                json!({"id": "U1", "team_id": "T9", "enterprise_user": of("E1")}),
                ("T1", "E1"),
                false,
            ),
            (json!({"id": "U1", "team_id": "T9", "enterprise_user": of("E1")}), ("E1", ""), false),
            (json!({"id": "U1", "team_id": "T9", "enterprise_user": of("E9")}), ("T1", "E1"), true),
            (json!({"id": "U1", "team_id": "T9", "enterprise_user": of("E9")}), ("T8", ""), false),
            (json!({"id": "U1", "team_id": ""}), ("T1", ""), false),
        ] {
            let member = Member::read(&user, team, enterprise);
            assert_eq!(member.outsider, outsider, "{user} for {team} of {enterprise}");
        }
    }
}
