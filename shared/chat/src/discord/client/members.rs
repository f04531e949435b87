//! Whether somebody may see a channel, computed as Discord's page on permissions does: it does not answer that itself.

use std::collections::BTreeMap;
use std::time::SystemTime;

use bobbin_core::base::person::{Membership, Outside};
use chrono::{DateTime, Utc};
use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::call::{Call, in_channel};
use super::{Discord, DiscordError};

const ADMINISTRATOR: u128 = 1 << 3;
const MANAGE_GUILD: u128 = 1 << 5;
const VIEW_CHANNEL: u128 = 1 << 10;
const USE_APPLICATION_COMMANDS: u128 = 1 << 31;
/// Type of a private thread: who is in it is another question.
const PRIVATE_THREAD: u64 = 12;

/// Codes of a person who is not in the guild.
const UNKNOWN_MEMBER: u64 = 10_007;
const UNKNOWN_USER: u64 = 10_013;

#[derive(Deserialize)]
struct GuildBody {
    owner_id: String,
    roles: Vec<RoleBody>,
}

#[derive(Deserialize)]
struct RoleBody {
    id: String,
    permissions: String,
}

#[derive(Deserialize)]
struct MemberBody {
    roles: Vec<String>,
    /// Until when they may only read.
    communication_disabled_until: Option<String>,
}

#[derive(Deserialize)]
struct ChannelBody {
    #[serde(rename = "type", default)]
    kind: u64,
    #[serde(default)]
    permission_overwrites: Vec<OverwriteBody>,
}

#[derive(Deserialize)]
struct OverwriteBody {
    /// A role or a person; everybody's has the guild's id.
    id: String,
    allow: String,
    deny: String,
}

/// Permissions come as decimal numbers in text.
fn bits(text: &str) -> u128 {
    text.parse().unwrap_or_default()
}

/// A person's permissions in a channel of the guild.
fn permissions(
    (guild_id, guild): (&str, &GuildBody),
    (user, member): (&str, &MemberBody),
    channel: &ChannelBody,
) -> u128 {
    let has = |role: &RoleBody| role.id == guild_id || member.roles.contains(&role.id);
    let held = guild.roles.iter().filter(|role| has(role));
    let of_guild = held.fold(0, |all, role| all | bits(&role.permissions));
    if guild.owner_id == user || of_guild & ADMINISTRATOR != 0 {
        return u128::MAX;
    }
    let of: BTreeMap<&str, (u128, u128)> = channel
        .permission_overwrites
        .iter()
        .map(|one| (one.id.as_str(), (bits(&one.deny), bits(&one.allow))))
        .collect();
    let apply = |all: u128, (deny, allow): (u128, u128)| (all & !deny) | allow;
    let everybody = of.get(guild_id).copied().unwrap_or_default();
    let of_roles = member.roles.iter().filter_map(|role| of.get(role.as_str()));
    let roles = of_roles.fold((0, 0), |(deny, allow), one| (deny | one.0, allow | one.1));
    let own = of.get(user).copied().unwrap_or_default();
    apply(apply(apply(of_guild, everybody), roles), own)
}

/// Whether this time is still to come. Discord leaves one that is over where it was.
fn is_ahead(time: &str) -> bool {
    let now = DateTime::<Utc>::from(SystemTime::now());
    DateTime::parse_from_rfc3339(time).map_or(true, |time| time > now)
}

fn read<T: DeserializeOwned>(call: &Call, body: Value) -> Result<T, DiscordError> {
    serde_json::from_value(body)
        .map_err(|_| DiscordError::Unreadable { route: call.name, status: 200 })
}

impl Discord {
    /// Somebody's roles and permissions in a thread's channel. Who cannot see it, give commands in it or write at all
    /// counts as an outsider; so does everybody where the thread is private.
    pub(super) async fn seen_in(
        &self,
        (guild, thread): (&str, &str),
        channel: &str,
        user: &str,
    ) -> Result<Membership, DiscordError> {
        let outsider = || Membership {
            channel: channel.to_owned(),
            outside: Some(Outside::Outsider),
            ..Membership::default()
        };
        let in_guild = |name: &'static str, rest: String| Call {
            name,
            method: Method::GET,
            path: format!("/guilds/{guild}{rest}"),
            major: guild.to_owned(),
            by_token: false,
        };
        let call = in_guild("get member", format!("/members/{user}"));
        let member: MemberBody = match self.client.call(&call, None, None).await {
            Ok(body) => read(&call, body)?,
            Err(DiscordError::Api { code: UNKNOWN_MEMBER | UNKNOWN_USER, .. }) => {
                return Ok(outsider());
            }
            Err(error) => return Err(error),
        };
        let call = in_guild("get guild", String::new());
        let found: GuildBody = read(&call, self.client.call(&call, None, None).await?)?;
        let call = in_channel("get channel", Method::GET, channel, "");
        let place: ChannelBody = read(&call, self.client.call(&call, None, None).await?)?;
        let may = permissions((guild, &found), (user, &member), &place);
        let call = in_channel("get channel", Method::GET, thread, "");
        let talk: ChannelBody = read(&call, self.client.call(&call, None, None).await?)?;
        let wanted = VIEW_CHANNEL | USE_APPLICATION_COMMANDS;
        let is_muted = member.communication_disabled_until.as_deref().is_some_and(is_ahead);
        if may & wanted != wanted || is_muted || talk.kind == PRIVATE_THREAD {
            return Ok(outsider());
        }
        Ok(Membership {
            channel: channel.to_owned(),
            roles: member.roles,
            manages: may & (ADMINISTRATOR | MANAGE_GUILD) != 0,
            ..Membership::default()
        })
    }
}
