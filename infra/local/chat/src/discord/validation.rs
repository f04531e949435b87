//! Discord's message checks: lengths, component rules, flags, mentions.
//!
//! Beyond the documented rules it applies two seen in production: 4000 characters over all text displays together, and
//! a processed size beyond which Discord answers 500.

use super::components::Tally;
use super::flags::{COMPONENTS_V2, EPHEMERAL, HAS_THREAD, LOADING, SILENT, SUPPRESS_EMBEDS};
use super::refusal::{DiscordRefusal, FormErrors};
use crate::http::UploadedFile;
use crate::json::{JsonFields, loose_text, units};
use crate::limits::{
    COMPONENTS_MAX, CONTENT_UNITS_MAX, FILE_BYTES_MAX, FILES_PER_MESSAGE_MAX, NONCE_UNITS_MAX,
    TEXT_DISPLAY_BYTES_MAX, TEXT_DISPLAY_UNITS_MAX,
};
use serde_json::Value;

/// Origin of a message; decides its allowed flags.
#[derive(Clone, Copy, PartialEq)]
pub enum Origin {
    Bot,
    Interaction,
}

/// Checks the message after the request: `whole` has all of its fields, `sent` only the request's.
pub fn message(
    sent: &Value,
    whole: &Value,
    files: &[UploadedFile],
    origin: Origin,
) -> Result<(), DiscordRefusal> {
    let mut wrong = FormErrors::default();
    if !sent.is_object() {
        wrong.at("_", "MODEL_TYPE_CONVERT", "Only dictionaries may be used in a ModelType");
        return wrong.done();
    }
    check_files(files)?;
    let flags = whole.int("flags");
    let allowed = SUPPRESS_EMBEDS
        | SILENT
        | COMPONENTS_V2
        | if origin == Origin::Interaction { EPHEMERAL } else { 0 };
    if sent.int("flags") & !(allowed | HAS_THREAD | LOADING) != 0 {
        wrong.at("flags", "MESSAGE_FLAGS_INVALID", "These flags cannot be set here.");
    }
    wrong.longer("content", whole.str("content"), CONTENT_UNITS_MAX);
    check_nonce(sent, &mut wrong);
    check_embeds(whole, &mut wrong);
    check_mentions(sent, &mut wrong);
    let v2 = flags & COMPONENTS_V2 != 0;
    if v2 && (!whole.str("content").is_empty() || !whole.list("embeds").is_empty()) {
        let field = if whole.str("content").is_empty() { "embeds" } else { "content" };
        wrong.at(field, "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
            "The 'content', 'embeds', 'sticker_ids' and 'poll' fields cannot be used when using MessageFlags.IS_COMPONENTS_V2");
    }
    let mut tally = Tally::default();
    let top: &[u64] = if v2 { &[1, 10, 14, 17] } else { &[1] };
    if !v2 && whole.list("components").len() > 5 {
        wrong.at("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.");
    }
    for (at, component) in whole.list("components").iter().enumerate() {
        tally.component(component, top, &format!("components.{at}"), &mut wrong);
    }
    if tally.count > COMPONENTS_MAX {
        wrong.at(
            "components",
            "COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED",
            "The total number of components must be 40 or fewer.",
        );
    }
    if tally.text_units > TEXT_DISPLAY_UNITS_MAX {
        wrong.at(
            "components",
            "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED",
            "The total displayable text size must be 4000 or fewer.",
        );
    }
    wrong.done()?;
    if tally.text_bytes > TEXT_DISPLAY_BYTES_MAX {
        return Err(DiscordRefusal::new(500, 0, "500: Internal Server Error"));
    }
    if is_empty(whole, files) {
        return Err(DiscordRefusal::new(400, 50_006, "Cannot send an empty message"));
    }
    Ok(())
}

fn is_empty(whole: &Value, files: &[UploadedFile]) -> bool {
    whole.str("content").trim().is_empty()
        && files.is_empty()
        && ["embeds", "components", "attachments"].iter().all(|field| whole.list(field).is_empty())
}

fn check_files(files: &[UploadedFile]) -> Result<(), DiscordRefusal> {
    if files.len() > FILES_PER_MESSAGE_MAX {
        return Err(DiscordRefusal::new(
            400,
            30_015,
            "Maximum number of attachments in a message reached (10)",
        ));
    }
    match files.iter().find(|file| file.bytes.len() > FILE_BYTES_MAX) {
        Some(_) => Err(DiscordRefusal::new(413, 40_005, "Request entity too large")),
        None => Ok(()),
    }
}

fn check_nonce(sent: &Value, wrong: &mut FormErrors) {
    let nonce = loose_text(sent, "nonce");
    wrong.longer("nonce", &nonce, NONCE_UNITS_MAX);
    if sent.flag("enforce_nonce") && nonce.is_empty() {
        wrong.at("nonce", "BASE_TYPE_REQUIRED", "This field is required");
    }
}

fn check_embeds(whole: &Value, wrong: &mut FormErrors) {
    let embeds = whole.list("embeds");
    if embeds.len() > 10 {
        wrong.at("embeds", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.");
    }
    let mut total = 0;
    for (at, embed) in embeds.iter().enumerate() {
        let mut text = |field: &str, max: usize| {
            wrong.longer(&format!("embeds.{at}.{field}"), embed.str(field), max);
            total += units(embed.str(field));
        };
        text("title", 256);
        text("description", 4096);
        if embed.list("fields").len() > 25 {
            wrong.at(
                &format!("embeds.{at}.fields"),
                "BASE_TYPE_MAX_LENGTH",
                "Must be 25 or fewer in length.",
            );
        }
        total += embed
            .list("fields")
            .iter()
            .map(|field| units(field.str("name")) + units(field.str("value")))
            .sum::<usize>();
        total += units(embed["footer"].str("text")) + units(embed["author"].str("name"));
    }
    if total > 6000 {
        wrong.at("embeds", "MAX_EMBED_SIZE_EXCEEDED", "Embed size exceeds maximum size of 6000");
    }
}

fn check_mentions(sent: &Value, wrong: &mut FormErrors) {
    let mentions = &sent["allowed_mentions"];
    for kind in ["users", "roles"] {
        let parsed = mentions.list("parse").iter().any(|one| one == kind);
        if parsed && !mentions.list(kind).is_empty() {
            wrong.at(
                "allowed_mentions",
                "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
                &format!("parse:[\"{kind}\"] and {kind}: [ids...] are mutually exclusive."),
            );
        }
    }
    if mentions
        .list("parse")
        .iter()
        .any(|one| !["users", "roles", "everyone"].iter().any(|kind| one == kind))
    {
        wrong.at(
            "allowed_mentions.parse",
            "BASE_TYPE_CHOICES",
            "Value must be one of ('everyone', 'users', 'roles').",
        );
    }
}
