//! Discord's message components that posts use.

use serde_json::{Value, json};

use super::content::mute;
use super::custom_id::CustomId;
use super::flags::COMPONENTS_V2;

pub(super) const BLURPLE: u32 = 0x0058_65f2;
pub(super) const YELLOW: u32 = 0x00fe_e75c;
pub(super) const GREEN: u32 = 0x0057_f287;
pub(super) const RED: u32 = 0x00ed_4245;
pub(super) const GREY: u32 = 0x0099_aab5;

/// Button styles, by Discord's numbers.
pub(super) const PRIMARY: u8 = 1;
pub(super) const SECONDARY: u8 = 2;
pub(super) const SUCCESS: u8 = 3;
pub(super) const DANGER: u8 = 4;

pub(super) fn container(accent: u32, parts: Vec<Value>) -> Value {
    mute(
        json!({"flags": COMPONENTS_V2, "components": [{"type": 17, "accent_color": accent, "components": parts}]}),
    )
}

pub(super) fn text(content: &str) -> Value {
    json!({"type": 10, "content": content})
}

pub(super) fn row(parts: &[Value]) -> Value {
    json!({"type": 1, "components": parts})
}

pub(super) fn button(style: u8, label: &str, id: &CustomId) -> Value {
    json!({"type": 2, "style": style, "label": label, "custom_id": id.text()})
}
