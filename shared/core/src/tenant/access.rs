//! Who may use Bobbin: deny by default, checked on every request and every click.

use std::collections::BTreeSet;

/// The access policy, from configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// Discord guilds that may use Bobbin. Empty means none.
    pub guilds: BTreeSet<String>,
    /// Slack teams or enterprises that may use Bobbin. Empty means none.
    pub teams: BTreeSet<String>,
    /// Channels. Empty means every channel of an allowed guild or team.
    pub channels: BTreeSet<String>,
    /// Users, or Discord roles. Empty means every member.
    pub people: BTreeSet<String>,
}

/// Why a person was refused, worded for that person. Says nothing about repositories or sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The guild or team is not on the list.
    #[error(
        "Bobbin is not enabled here. Its operator can add this server or workspace to the allowed ones."
    )]
    Tenant,
    /// The channel is not on the list.
    #[error(
        "Bobbin is not enabled in this channel. Try a channel where it is, or ask its operator."
    )]
    Channel,
    /// The person is not on the list.
    #[error("You may not use Bobbin here. Ask its operator to add you or one of your roles.")]
    Person,
    /// The person is a guest, or from another organisation.
    #[error("Bobbin works only for full members of this workspace.")]
    Outsider,
    /// It could not be found out whether the person is a full member.
    #[error(
        "Bobbin is not allowed to ask Slack whether you are a full member of this workspace. Its operator finds the missing permission in the log."
    )]
    Unread,
}

impl Policy {
    /// Reads the four comma-separated lists.
    #[must_use]
    pub fn from_lists(guilds: &str, teams: &str, channels: &str, people: &str) -> Self {
        let set = |list: &str| {
            list.split(',').map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect()
        };
        Self {
            guilds: set(guilds),
            teams: set(teams),
            channels: set(channels),
            people: set(people),
        }
    }

    /// A Discord request: `channels` are the channel and, for a thread, its parent; `ids` are the user's and their
    /// roles'.
    ///
    /// # Errors
    /// The [`Refusal`] to tell the person.
    pub fn discord(&self, guild: &str, channels: &[&str], ids: &[&str]) -> Result<(), Refusal> {
        if self.guilds.contains(guild) { self.inside(channels, ids) } else { Err(Refusal::Tenant) }
    }

    /// A Slack request from a member of the team (or enterprise) itself.
    ///
    /// # Errors
    /// The [`Refusal`] to tell the person.
    pub fn slack(&self, tenant: &str, channel: &str, user: &str) -> Result<(), Refusal> {
        if self.teams.contains(tenant) {
            self.inside(&[channel], &[user])
        } else {
            Err(Refusal::Tenant)
        }
    }

    /// A Slack request outside of any channel: a person's Home.
    ///
    /// # Errors
    /// The [`Refusal`] to tell the person.
    pub fn slack_home(&self, tenant: &str, user: &str) -> Result<(), Refusal> {
        if !self.teams.contains(tenant) {
            return Err(Refusal::Tenant);
        }
        if self.people.is_empty() || self.people.contains(user) {
            Ok(())
        } else {
            Err(Refusal::Person)
        }
    }

    fn inside(&self, channels: &[&str], ids: &[&str]) -> Result<(), Refusal> {
        let admits = |set: &BTreeSet<String>, ids: &[&str]| {
            set.is_empty() || ids.iter().any(|id| set.contains(*id))
        };
        if !admits(&self.channels, channels) {
            return Err(Refusal::Channel);
        }
        if admits(&self.people, ids) { Ok(()) } else { Err(Refusal::Person) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_policy_admits_nobody() {
        assert_eq!(Policy::default().discord("1", &["2"], &["3"]), Err(Refusal::Tenant));
        assert_eq!(Policy::default().slack("T1", "C1", "U1"), Err(Refusal::Tenant));
    }

    #[test]
    fn parent_channel_and_role_grant_access() {
        let policy = Policy::from_lists("1", "", "20", "role-a");
        assert_eq!(policy.discord("1", &["99", "20"], &["me", "role-a"]), Ok(()));
        assert_eq!(policy.discord("1", &["99"], &["me", "role-a"]), Err(Refusal::Channel));
        assert_eq!(policy.discord("1", &["20"], &["me"]), Err(Refusal::Person));
    }
}
