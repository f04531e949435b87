//! Seeds of the first start: one guild, one team, a few channels and people. Their ids are generated once and kept.

use crate::discord::permissions::MEMBER_PERMISSIONS;
use crate::identity::{DiscordKeys, SlackKeys};
use crate::ids::{IdSource, slack_id};
use crate::store::{ChatStore, ChatStoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Ids of the seeds. The first user of each platform is an administrator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Seeds {
    /// The only Discord guild.
    pub guild_id: String,
    /// Channel `general` of the guild; the page opens it.
    pub channel_id: String,
    /// Channel `builds` of the guild, a second channel.
    pub builds_channel_id: String,
    /// A Discord user with administrator permission.
    pub user_id: String,
    /// A Discord user without administrator permission.
    pub member_user_id: String,
    /// The second user's role in the guild; empty in a state from before roles existed.
    #[serde(default)]
    pub role_id: String,
    /// The only Slack team.
    pub team_id: String,
    /// Channel `general` of the team; the page opens it.
    pub slack_channel_id: String,
    /// Channel `builds` of the team, a second channel.
    pub slack_builds_channel_id: String,
    /// The direct message between the first user and the bot.
    pub slack_dm_id: String,
    /// A Slack administrator.
    pub slack_user_id: String,
    /// A Slack user who is not an administrator.
    pub slack_member_user_id: String,
    /// The bot's `B…` id.
    pub slack_bot_id: String,
}

/// Reads the seeds; creates them and their objects on the first start.
pub fn load_or_create(
    store: &ChatStore,
    ids: &IdSource,
    discord: &DiscordKeys,
    slack: &SlackKeys,
) -> Result<Seeds, ChatStoreError> {
    store.atomically(|store| {
        let seeds = match store.get("seeds", "", "")? {
            Some(kept) => serde_json::from_value(kept).expect("seeds were written by this program"),
            None => {
                let seeds = new_ids(ids);
                store.put(
                    "seeds",
                    "",
                    "",
                    &serde_json::to_value(&seeds).expect("seeds are plain strings"),
                )?;
                create_discord(store, &seeds)?;
                create_slack(store, &seeds)?;
                seeds
            }
        };
        put_bots(store, &seeds, discord, slack)?;
        Ok(seeds)
    })
}

fn new_ids(ids: &IdSource) -> Seeds {
    Seeds {
        guild_id: ids.snowflake(),
        channel_id: ids.snowflake(),
        builds_channel_id: ids.snowflake(),
        user_id: ids.snowflake(),
        member_user_id: ids.snowflake(),
        role_id: ids.snowflake(),
        team_id: slack_id('T'),
        slack_channel_id: slack_id('C'),
        slack_builds_channel_id: slack_id('C'),
        slack_dm_id: slack_id('D'),
        slack_user_id: slack_id('U'),
        slack_member_user_id: slack_id('U'),
        slack_bot_id: slack_id('B'),
    }
}

fn create_discord(store: &ChatStore, seeds: &Seeds) -> Result<(), ChatStoreError> {
    let guild = json!({"id": seeds.guild_id, "name": "Bobbin Workshop", "icon": null, "owner_id": seeds.user_id,
        "preferred_locale": "en-US", "features": [], "description": null, "emojis": [], "stickers": [],
        "roles": [{"id": seeds.guild_id, "name": "@everyone", "color": 0, "hoist": false, "position": 0,
            "permissions": MEMBER_PERMISSIONS, "managed": false, "mentionable": false, "flags": 0},
            {"id": seeds.role_id, "name": "builders", "color": 0, "hoist": false, "position": 1, "permissions": "0",
            "managed": false, "mentionable": false, "flags": 0}]});
    store.put("d.guild", "", &seeds.guild_id, &guild)?;
    for (position, (id, name, topic)) in [
        (&seeds.channel_id, "general", "Ask for anything: every thread gets its own sandbox"),
        (&seeds.builds_channel_id, "builds", "Failing builds and their repairs"),
    ]
    .into_iter()
    .enumerate()
    {
        let channel = json!({"id": id, "type": 0, "guild_id": seeds.guild_id, "name": name, "topic": topic, "position": position,
            "parent_id": null, "nsfw": false, "rate_limit_per_user": 0, "permission_overwrites": [], "last_message_id": null, "flags": 0});
        store.put("d.channel", &seeds.guild_id, id, &channel)?;
    }
    for (id, username, name, admin) in
        [(&seeds.user_id, "ada", "Ada", true), (&seeds.member_user_id, "sam", "Sam", false)]
    {
        let user = json!({"id": id, "username": username, "global_name": name, "discriminator": "0", "avatar": null,
            "public_flags": 0, "bot": false});
        let roles: &[&String] = if admin { &[] } else { &[&seeds.role_id] };
        store.put("d.user", "", id, &json!({"user": user, "admin": admin, "roles": roles}))?;
    }
    Ok(())
}

fn create_slack(store: &ChatStore, seeds: &Seeds) -> Result<(), ChatStoreError> {
    let team = json!({"id": seeds.team_id, "name": "Bobbin Workshop", "domain": "bobbin-workshop", "email_domain": ""});
    store.put("s.team", "", &seeds.team_id, &team)?;
    for (id, name, topic) in [
        (&seeds.slack_channel_id, "general", "Mention the bot: every thread gets its own sandbox"),
        (&seeds.slack_builds_channel_id, "builds", "Failing builds and their repairs"),
    ] {
        let channel = json!({"id": id, "name": name, "is_channel": true, "is_group": false, "is_im": false, "is_mpim": false, "is_private": false,
            "is_archived": false, "is_general": name == "general", "is_shared": false, "is_ext_shared": false, "is_pending_ext_shared": false,
            "is_org_shared": false, "is_member": true, "creator": seeds.slack_user_id, "context_team_id": seeds.team_id,
            "topic": {"value": topic, "creator": "", "last_set": 0}, "purpose": {"value": "", "creator": "", "last_set": 0}, "num_members": 3});
        store.put("s.channel", "", id, &channel)?;
    }
    for (id, name, real_name, admin) in [
        (&seeds.slack_user_id, "ada", "Ada", true),
        (&seeds.slack_member_user_id, "sam", "Sam", false),
    ] {
        store.put(
            "s.user",
            "",
            id,
            &slack_user(&seeds.team_id, id, name, real_name, admin, false),
        )?;
    }
    let dm = direct_message(&seeds.slack_dm_id, &seeds.slack_user_id, &seeds.team_id);
    store.put("s.channel", "", &seeds.slack_dm_id, &dm)
}

/// A direct-message channel between a person and the bot.
pub fn direct_message(id: &str, user: &str, team: &str) -> Value {
    json!({"id": id, "is_im": true, "is_channel": false, "is_group": false, "is_mpim": false, "is_archived": false, "is_org_shared": false,
        "is_ext_shared": false, "user": user, "context_team_id": team, "is_open": true})
}

/// The bot users follow the keys, which may change between starts.
fn put_bots(
    store: &ChatStore,
    seeds: &Seeds,
    discord: &DiscordKeys,
    slack: &SlackKeys,
) -> Result<(), ChatStoreError> {
    let bot = json!({"id": discord.application_id, "username": "Bobbin", "global_name": null, "discriminator": "0001",
        "avatar": null, "public_flags": 524_288, "bot": true});
    store.put("d.user", "", &discord.application_id, &json!({"user": bot, "admin": false}))?;
    let mut user = slack_user(&seeds.team_id, &slack.bot_user_id, "bobbin", "Bobbin", false, true);
    user["profile"]["bot_id"] = seeds.slack_bot_id.as_str().into();
    user["profile"]["api_app_id"] = slack.app_id.as_str().into();
    store.put("s.user", "", &slack.bot_user_id, &user)
}

/// A user of the workspace, as in `users.info`.
pub fn slack_user(
    team: &str,
    id: &str,
    name: &str,
    real_name: &str,
    admin: bool,
    bot: bool,
) -> Value {
    json!({"id": id, "team_id": team, "name": name, "real_name": real_name, "deleted": false, "color": "9f69e7", "tz": "Europe/London",
        "tz_label": "Greenwich Mean Time", "tz_offset": 0, "is_admin": admin, "is_owner": admin, "is_primary_owner": admin,
        "is_restricted": false, "is_ultra_restricted": false, "is_bot": bot, "is_app_user": false, "updated": 1_700_000_000,
        "profile": {"real_name": real_name, "display_name": real_name, "real_name_normalized": real_name,
            "display_name_normalized": real_name, "email": format!("{name}@bobbin-workshop.invalid"), "team": team}})
}
