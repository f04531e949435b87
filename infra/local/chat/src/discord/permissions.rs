//! Permission sets, and the bot's permissions.

use super::refusal::DiscordRefusal;
use crate::store::{ChatStore, ChatStoreError};
use serde_json::Value;

/// A member's permissions (Discord's usual set).
pub const MEMBER_PERMISSIONS: &str = "1071698660929";
/// An administrator's permissions.
pub const ADMIN_PERMISSIONS: &str = "9007199254740991";
/// The invitation's permissions: view, send, threads, history, embeds, files, reactions.
const BOT_PERMISSIONS: &str = "309237763136";

const ADMINISTRATOR: u128 = 1 << 3;
pub const VIEW_CHANNEL: u128 = 1 << 10;
pub const SEND_MESSAGES: u128 = 1 << 11;
pub const MANAGE_MESSAGES: u128 = 1 << 13;
pub const ATTACH_FILES: u128 = 1 << 15;
pub const READ_HISTORY: u128 = 1 << 16;
pub const MANAGE_THREADS: u128 = 1 << 34;
pub const CREATE_PUBLIC_THREADS: u128 = 1 << 35;
pub const CREATE_PRIVATE_THREADS: u128 = 1 << 36;
pub const SEND_IN_THREADS: u128 = 1 << 38;

/// The bot's permissions: the invitation's, until a control call changes them.
pub fn bot_permissions(store: &ChatStore) -> Result<String, ChatStoreError> {
    let set = store.get("d.app", "", "permissions")?;
    Ok(set.as_ref().and_then(Value::as_str).unwrap_or(BOT_PERMISSIONS).to_owned())
}

/// Whether the bot has all of these permissions.
pub fn has(store: &ChatStore, bits: u128) -> Result<bool, ChatStoreError> {
    let have: u128 = bot_permissions(store)?.parse().unwrap_or_default();
    Ok(have & ADMINISTRATOR != 0 || have & bits == bits)
}

/// Refuses with 50013 if the bot lacks a permission.
pub fn require(store: &ChatStore, bits: u128) -> Result<(), DiscordRefusal> {
    if has(store, bits)? {
        return Ok(());
    }
    Err(DiscordRefusal::permission())
}
