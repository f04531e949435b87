//! What Discord refuses about a message: lengths, component rules, flags, mentions.
//!
//! Beyond the documented rules it applies two that were seen in production: 4000 characters over all text displays together,
//! and a processed size beyond which Discord answers 500.

use super::Refusal;
use crate::gate::Upload;
use crate::json::{Read, units};
use crate::limits::{
    COMPONENTS_MAX, CONTENT_UNITS_MAX, FILE_BYTES_MAX, FILES_PER_MESSAGE_MAX, NONCE_UNITS_MAX,
    TEXT_DISPLAY_BYTES_MAX, TEXT_DISPLAY_UNITS_MAX,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

pub const SUPPRESS_EMBEDS: u64 = 4;
pub const HAS_THREAD: u64 = 32;
pub const EPHEMERAL: u64 = 64;
pub const LOADING: u64 = 128;
pub const SILENT: u64 = 4096;
pub const COMPONENTS_V2: u64 = 32_768;

/// Collects what is wrong, by path, into Discord's tree of errors (code 50035).
#[derive(Default)]
pub struct Faulty(Map<String, Value>);

impl Faulty {
    pub fn add(&mut self, path: &[String], code: &str, message: &str) {
        let mut node = &mut self.0;
        for part in path {
            let entry = node.entry(part.clone()).or_insert_with(|| json!({}));
            node = entry
                .as_object_mut()
                .expect("every node of the tree is made as an object");
        }
        let list = node.entry("_errors").or_insert_with(|| json!([]));
        let list = list.as_array_mut().expect("_errors is made as a list");
        list.push(json!({"code": code, "message": message}));
    }

    pub fn at(&mut self, path: &str, code: &str, message: &str) {
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        self.add(&path, code, message);
    }

    pub fn longer(&mut self, path: &str, text: &str, max: usize) {
        if units(text) > max {
            self.at(
                path,
                "BASE_TYPE_MAX_LENGTH",
                &format!("Must be {max} or fewer in length."),
            );
        }
    }

    pub fn done(self) -> Result<(), Refusal> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(Refusal {
            status: 400,
            body: json!({"message": "Invalid Form Body", "code": 50_035, "errors": self.0}),
        })
    }
}

/// Where the message comes from; it decides which flags it may carry.
#[derive(Clone, Copy, PartialEq)]
pub enum Origin {
    Bot,
    Interaction,
}

/// Checks a message as it would be after the request: `whole` has all of its fields, `sent` only those of the request.
pub fn message(
    sent: &Value,
    whole: &Value,
    files: &[Upload],
    origin: Origin,
) -> Result<(), Refusal> {
    let mut wrong = Faulty::default();
    if !sent.is_object() {
        wrong.at(
            "_",
            "MODEL_TYPE_CONVERT",
            "Only dictionaries may be used in a ModelType",
        );
        return wrong.done();
    }
    check_files(files)?;
    let flags = whole.int("flags");
    let allowed = SUPPRESS_EMBEDS
        | SILENT
        | COMPONENTS_V2
        | if origin == Origin::Interaction {
            EPHEMERAL
        } else {
            0
        };
    if sent.int("flags") & !(allowed | HAS_THREAD | LOADING) != 0 {
        wrong.at(
            "flags",
            "MESSAGE_FLAGS_INVALID",
            "These flags cannot be set here.",
        );
    }
    wrong.longer("content", whole.str("content"), CONTENT_UNITS_MAX);
    check_nonce(sent, &mut wrong);
    check_embeds(whole, &mut wrong);
    check_mentions(sent, &mut wrong);
    let v2 = flags & COMPONENTS_V2 != 0;
    if v2 && (!whole.str("content").is_empty() || !whole.list("embeds").is_empty()) {
        let field = if whole.str("content").is_empty() {
            "embeds"
        } else {
            "content"
        };
        wrong.at(field, "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
            "The 'content', 'embeds', 'sticker_ids' and 'poll' fields cannot be used when using MessageFlags.IS_COMPONENTS_V2");
    }
    let mut tally = Tally {
        files: file_names(whole, files),
        ..Tally::default()
    };
    let top: &[u64] = if v2 {
        &[1, 9, 10, 12, 13, 14, 17]
    } else {
        &[1]
    };
    if !v2 && whole.list("components").len() > 5 {
        wrong.at(
            "components",
            "BASE_TYPE_BAD_LENGTH",
            "Must be between 1 and 5 in length.",
        );
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
    if tally.text_bytes > TEXT_DISPLAY_BYTES_MAX || tally.media > 64 {
        return Err(Refusal::new(500, 0, "500: Internal Server Error"));
    }
    if is_empty(whole, files) {
        return Err(Refusal::new(400, 50_006, "Cannot send an empty message"));
    }
    Ok(())
}

fn is_empty(whole: &Value, files: &[Upload]) -> bool {
    whole.str("content").trim().is_empty()
        && files.is_empty()
        && ["embeds", "components", "attachments"]
            .iter()
            .all(|field| whole.list(field).is_empty())
}

fn check_files(files: &[Upload]) -> Result<(), Refusal> {
    if files.len() > FILES_PER_MESSAGE_MAX {
        return Err(Refusal::new(
            400,
            30_015,
            "Maximum number of attachments in a message reached (10)",
        ));
    }
    match files.iter().find(|file| file.bytes.len() > FILE_BYTES_MAX) {
        Some(_) => Err(Refusal::new(413, 40_005, "Request entity too large")),
        None => Ok(()),
    }
}

fn file_names(whole: &Value, files: &[Upload]) -> BTreeSet<String> {
    let kept = whole
        .list("attachments")
        .iter()
        .map(|one| one.str("filename").to_owned());
    kept.chain(files.iter().map(|file| file.filename.clone()))
        .collect()
}

fn check_nonce(sent: &Value, wrong: &mut Faulty) {
    let nonce = crate::gate::loose_text(sent, "nonce");
    wrong.longer("nonce", &nonce, NONCE_UNITS_MAX);
    if sent.flag("enforce_nonce") && nonce.is_empty() {
        wrong.at("nonce", "BASE_TYPE_REQUIRED", "This field is required");
    }
}

fn check_embeds(whole: &Value, wrong: &mut Faulty) {
    let embeds = whole.list("embeds");
    if embeds.len() > 10 {
        wrong.at(
            "embeds",
            "BASE_TYPE_MAX_LENGTH",
            "Must be 10 or fewer in length.",
        );
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
        wrong.at(
            "embeds",
            "MAX_EMBED_SIZE_EXCEEDED",
            "Embed size exceeds maximum size of 6000",
        );
    }
}

fn check_mentions(sent: &Value, wrong: &mut Faulty) {
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
    if mentions.list("parse").iter().any(|one| {
        !["users", "roles", "everyone"]
            .iter()
            .any(|kind| one == kind)
    }) {
        wrong.at(
            "allowed_mentions.parse",
            "BASE_TYPE_CHOICES",
            "Value must be one of ('everyone', 'users', 'roles').",
        );
    }
}

/// Running counts over the component tree.
#[derive(Default)]
struct Tally {
    count: usize,
    media: usize,
    text_units: usize,
    text_bytes: usize,
    custom_ids: BTreeSet<String>,
    numbers: BTreeSet<u64>,
    files: BTreeSet<String>,
}

impl Tally {
    fn component(&mut self, component: &Value, allowed: &[u64], path: &str, wrong: &mut Faulty) {
        self.count += 1;
        let kind = component.int("type");
        if !allowed.contains(&kind) {
            wrong.at(
                &format!("{path}.type"),
                "UNION_TYPE_CHOICES",
                &format!("Value of field \"type\" must be one of {allowed:?}."),
            );
            return;
        }
        let number = component.int("id");
        if number > 0 && !self.numbers.insert(number) {
            wrong.at(
                &format!("{path}.id"),
                "COMPONENT_ID_DUPLICATED",
                "Component id cannot be duplicated",
            );
        }
        match kind {
            1 => self.row(component, path, wrong),
            2 => self.button(component, path, wrong),
            3 | 5..=8 => self.select(component, path, wrong),
            9 => self.section(component, path, wrong),
            10 => self.text(component, path, wrong),
            11 => self.medium(&component["media"], &format!("{path}.media"), wrong),
            12 => self.gallery(component, path, wrong),
            13 => self.file(component, path, wrong),
            17 => self.container(component, path, wrong),
            _ => {}
        }
    }

    fn children(&mut self, list: &[Value], allowed: &[u64], path: &str, wrong: &mut Faulty) {
        for (at, child) in list.iter().enumerate() {
            self.component(child, allowed, &format!("{path}.components.{at}"), wrong);
        }
    }

    fn row(&mut self, row: &Value, path: &str, wrong: &mut Faulty) {
        let list = row.list("components");
        let selects = list.iter().filter(|one| one.int("type") != 2).count();
        if list.is_empty() || list.len() > 5 || (selects > 0 && list.len() > 1) {
            wrong.at(
                &format!("{path}.components"),
                "BASE_TYPE_BAD_LENGTH",
                "Must be 1 to 5 buttons or exactly one select.",
            );
        }
        self.children(list, &[2, 3, 5, 6, 7, 8], path, wrong);
    }

    fn custom_id(&mut self, component: &Value, path: &str, wrong: &mut Faulty) {
        let id = component.str("custom_id");
        if id.is_empty() {
            wrong.at(
                &format!("{path}.custom_id"),
                "BASE_TYPE_REQUIRED",
                "This field is required",
            );
        } else if !self.custom_ids.insert(id.to_owned()) {
            wrong.at(
                &format!("{path}.custom_id"),
                "COMPONENT_CUSTOM_ID_DUPLICATED",
                "Component custom id cannot be duplicated",
            );
        }
        wrong.longer(&format!("{path}.custom_id"), id, 100);
    }

    fn button(&mut self, button: &Value, path: &str, wrong: &mut Faulty) {
        wrong.longer(&format!("{path}.label"), button.str("label"), 80);
        if button.str("label").is_empty() && !button.has("emoji") {
            wrong.at(
                path,
                "BUTTON_COMPONENT_INVALID",
                "A button needs a label or an emoji",
            );
        }
        match (
            button.int("style"),
            button.has("url"),
            button.has("custom_id"),
        ) {
            (1..=4, false, _) => self.custom_id(button, path, wrong),
            (5, true, false) => {
                wrong.longer(&format!("{path}.url"), button.str("url"), 512);
                if !["http://", "https://", "discord://"]
                    .iter()
                    .any(|scheme| button.str("url").starts_with(scheme))
                {
                    wrong.at(
                        &format!("{path}.url"),
                        "URL_TYPE_INVALID_SCHEME",
                        "Scheme must be one of ('http', 'https', 'discord').",
                    );
                }
            }
            (5, ..) => wrong.at(
                path,
                "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE",
                "A link button needs a url and no custom_id",
            ),
            (1..=4, true, _) => wrong.at(
                path,
                "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE",
                "A custom id and url cannot both be specified",
            ),
            _ => wrong.at(
                &format!("{path}.style"),
                "BASE_TYPE_CHOICES",
                "Value must be one of {1, 2, 3, 4, 5, 6}.",
            ),
        }
    }

    fn select(&mut self, select: &Value, path: &str, wrong: &mut Faulty) {
        self.custom_id(select, path, wrong);
        wrong.longer(
            &format!("{path}.placeholder"),
            select.str("placeholder"),
            150,
        );
        let options = select.list("options");
        if select.int("type") == 3 && (options.is_empty() || options.len() > 25) {
            wrong.at(
                &format!("{path}.options"),
                "BASE_TYPE_BAD_LENGTH",
                "Must be between 1 and 25 in length.",
            );
        }
        for (at, option) in options.iter().enumerate() {
            for field in ["label", "value", "description"] {
                wrong.longer(
                    &format!("{path}.options.{at}.{field}"),
                    option.str(field),
                    100,
                );
            }
            for field in ["label", "value"] {
                if option.str(field).is_empty() {
                    wrong.at(
                        &format!("{path}.options.{at}.{field}"),
                        "BASE_TYPE_REQUIRED",
                        "This field is required",
                    );
                }
            }
        }
    }

    fn section(&mut self, section: &Value, path: &str, wrong: &mut Faulty) {
        let texts = section.list("components");
        if texts.is_empty() || texts.len() > 3 {
            wrong.at(
                &format!("{path}.components"),
                "BASE_TYPE_BAD_LENGTH",
                "Must be between 1 and 3 in length.",
            );
        }
        self.children(texts, &[10], path, wrong);
        if section.has("accessory") {
            self.component(
                &section["accessory"],
                &[2, 11],
                &format!("{path}.accessory"),
                wrong,
            );
        } else {
            wrong.at(
                &format!("{path}.accessory"),
                "BASE_TYPE_REQUIRED",
                "This field is required",
            );
        }
    }

    fn text(&mut self, display: &Value, path: &str, wrong: &mut Faulty) {
        let content = display.str("content");
        if content.is_empty() {
            wrong.at(
                &format!("{path}.content"),
                "BASE_TYPE_REQUIRED",
                "This field is required",
            );
        }
        wrong.longer(&format!("{path}.content"), content, TEXT_DISPLAY_UNITS_MAX);
        self.text_units += units(content);
        self.text_bytes += content.len() + 12;
    }

    fn gallery(&mut self, gallery: &Value, path: &str, wrong: &mut Faulty) {
        let items = gallery.list("items");
        if items.is_empty() || items.len() > 10 {
            wrong.at(
                &format!("{path}.items"),
                "BASE_TYPE_BAD_LENGTH",
                "Must be between 1 and 10 in length.",
            );
        }
        for (at, item) in items.iter().enumerate() {
            wrong.longer(
                &format!("{path}.items.{at}.description"),
                item.str("description"),
                1024,
            );
            self.medium(&item["media"], &format!("{path}.items.{at}.media"), wrong);
        }
    }

    fn medium(&mut self, media: &Value, path: &str, wrong: &mut Faulty) {
        self.media += 1;
        self.reference(media.str("url"), path, wrong);
    }

    fn file(&mut self, file: &Value, path: &str, wrong: &mut Faulty) {
        let url = file["file"].str("url");
        // A stored component has its served address already.
        if !url.starts_with("attachment://") && !file.has("name") {
            wrong.at(
                &format!("{path}.file.url"),
                "FILE_COMPONENT_INVALID_URL",
                "A file component only shows attachment:// references",
            );
        }
        self.reference(url, &format!("{path}.file"), wrong);
    }

    fn reference(&mut self, url: &str, path: &str, wrong: &mut Faulty) {
        let missing = match url.strip_prefix("attachment://") {
            Some(name) => !self.files.contains(name),
            None => !url.starts_with("http://") && !url.starts_with("https://"),
        };
        if missing {
            wrong.at(
                &format!("{path}.url"),
                "UNFURLED_MEDIA_ITEM_REFERENCED_ATTACHMENT_NOT_FOUND",
                "The referenced attachment was not found",
            );
        }
    }

    fn container(&mut self, container: &Value, path: &str, wrong: &mut Faulty) {
        if container.int("accent_color") > 0xFF_FFFF {
            wrong.at(
                &format!("{path}.accent_color"),
                "NUMBER_TYPE_MAX",
                "int value should be less than or equal to 16777215.",
            );
        }
        if container.list("components").is_empty() {
            wrong.at(
                &format!("{path}.components"),
                "BASE_TYPE_BAD_LENGTH",
                "Must be between 1 and 40 in length.",
            );
        }
        self.children(
            container.list("components"),
            &[1, 9, 10, 12, 13, 14],
            path,
            wrong,
        );
    }
}

/// Checks a modal as the ingress returns it (callback type 9).
pub fn modal(data: &Value) -> Result<(), Refusal> {
    let mut wrong = Faulty::default();
    for (field, max) in [("custom_id", 100), ("title", 45)] {
        if data.str(field).is_empty() {
            wrong.at(
                &format!("data.{field}"),
                "BASE_TYPE_REQUIRED",
                "This field is required",
            );
        }
        wrong.longer(&format!("data.{field}"), data.str(field), max);
    }
    let parts = data.list("components");
    if parts.is_empty() || parts.len() > 5 {
        wrong.at(
            "data.components",
            "BASE_TYPE_BAD_LENGTH",
            "Must be between 1 and 5 in length.",
        );
    }
    let mut seen = BTreeSet::new();
    for (at, part) in parts.iter().enumerate() {
        let path = format!("data.components.{at}");
        let inner = match part.int("type") {
            18 => {
                wrong.longer(&format!("{path}.label"), part.str("label"), 45);
                wrong.longer(&format!("{path}.description"), part.str("description"), 100);
                if part.str("label").is_empty() {
                    wrong.at(
                        &format!("{path}.label"),
                        "BASE_TYPE_REQUIRED",
                        "This field is required",
                    );
                }
                &part["component"]
            }
            1 => &part["components"][0],
            10 => continue,
            _ => {
                wrong.at(
                    &format!("{path}.type"),
                    "UNION_TYPE_CHOICES",
                    "Value of field \"type\" must be one of (1, 10, 18).",
                );
                continue;
            }
        };
        modal_input(inner, &format!("{path}.component"), &mut seen, &mut wrong);
    }
    wrong.done()
}

fn modal_input(input: &Value, path: &str, seen: &mut BTreeSet<String>, wrong: &mut Faulty) {
    if ![3, 4, 5, 6, 7, 8, 19, 21, 22, 23].contains(&input.int("type")) {
        wrong.at(
            &format!("{path}.type"),
            "UNION_TYPE_CHOICES",
            "This component cannot be used in a modal.",
        );
    }
    if input.str("custom_id").is_empty() || !seen.insert(input.str("custom_id").to_owned()) {
        wrong.at(
            &format!("{path}.custom_id"),
            "COMPONENT_CUSTOM_ID_DUPLICATED",
            "A unique custom_id is required",
        );
    }
    if input.has("disabled") {
        wrong.at(
            &format!("{path}.disabled"),
            "COMPONENT_INVALID",
            "disabled cannot be used in a modal",
        );
    }
    wrong.longer(
        &format!("{path}.placeholder"),
        input.str("placeholder"),
        if input.int("type") == 4 { 100 } else { 150 },
    );
    if input.int("type") == 4 {
        if ![1, 2].contains(&input.int("style")) {
            wrong.at(
                &format!("{path}.style"),
                "BASE_TYPE_CHOICES",
                "Value must be one of {1, 2}.",
            );
        }
        if input.int("max_length") > 4000 {
            wrong.at(
                &format!("{path}.max_length"),
                "NUMBER_TYPE_MAX",
                "int value should be less than or equal to 4000.",
            );
        }
        wrong.longer(&format!("{path}.value"), input.str("value"), 4000);
    }
    let options = input.list("options").len();
    let range = match input.int("type") {
        3 => 1..=25,
        21 => 2..=10,
        22 => 1..=10,
        _ => return,
    };
    if !range.contains(&options) {
        wrong.at(
            &format!("{path}.options"),
            "BASE_TYPE_BAD_LENGTH",
            "Wrong number of options.",
        );
    }
}
