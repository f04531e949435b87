//! Discord's interactions endpoint.

use bobbin_chat::Inbound;
use bobbin_chat::discord::{self, App, bounds};
use bobbin_core::base::limits::Limits;
use bobbin_core::records::message::{Body, Prompt, Work};
use bobbin_core::tenant::access::Policy;
use bobbin_core::text::units;
use serde_json::{Value, json};

use super::endpoint::{self, nowhere};
use super::verify::{NOW_S, by_discord, discord_key};

/// The guild of `events/discord`.
const GUILD: &str = "1240000000000000100";

/// An input is the raw body.
pub(super) fn inbound(input: &[u8]) {
    let app = app("", "");
    let timestamp = NOW_S.to_string();
    let at = |signature: Option<&str>, app: &App| {
        discord::interactions(input, signature, Some(&timestamp), app, NOW_S * 1_000)
    };
    endpoint::refused(&at(None, &app));
    endpoint::refused(&at(Some(&"0".repeat(128)), &app));

    let signature = by_discord(timestamp.as_bytes(), input);
    let signed = at(Some(&signature), &app);
    assert_eq!(at(Some(&signature), &app), signed, "twice the same");
    endpoint::taken(&signed, &format!("discord:{GUILD}"));
    fits(&signed);
    if let Some(prompt) = signed.enqueue.as_ref().and_then(prompt_of) {
        let limits = Limits::DEFAULT;
        assert!(!prompt.text.trim().is_empty(), "an empty prompt");
        assert!(prompt.text.chars().count() <= limits.chat.prompt_chars);
        assert!(prompt.attachments.len() <= limits.files.attachments);
        assert!(prompt.attachments.iter().all(|file| file.size <= limits.files.attachment_bytes));
    }
    let closed = App { policy: Policy::default(), ..app.clone() };
    let elsewhere = self::app(&nowhere(input), "");
    let others = self::app("", &nowhere(input));
    for app in [closed, elsewhere, others] {
        let refused = at(Some(&signature), &app);
        assert_eq!(refused.enqueue, None, "work for somebody who may not");
        fits(&refused);
    }
}

fn app(channels: &str, people: &str) -> App {
    App {
        keys_by_form: true,
        key: discord_key().verifying_key(),
        application: "1240000000000000001".to_owned(),
        policy: Policy::from_lists(GUILD, "", channels, people),
        limits: Limits::DEFAULT,
    }
}

fn prompt_of(body: &Body) -> Option<&Prompt> {
    match body {
        Body::Open(open) => Some(&open.prompt),
        Body::Message(message) => match &message.work {
            Work::Prompt(prompt) => Some(prompt),
            _ => None,
        },
        Body::Control(_)
        | Body::Announce(_)
        | Body::Overview(_)
        | Body::DeadLetters(_)
        | Body::Forge(_) => None,
    }
}

/// What Discord accepts as the answer to an interaction, with pings for nobody.
fn fits(inbound: &Inbound) {
    for answer in [&inbound.answer, &inbound.on_queue_failure] {
        let Some(answer) = endpoint::json(answer) else {
            assert_ne!(answer.status, 200, "{inbound:?}");
            continue;
        };
        let kind = answer["type"].as_u64().expect("a callback has a type");
        let data = &answer["data"];
        match kind {
            1 | 6 => assert!(data.is_null(), "{answer}"),
            5 | 8 | 9 => assert!(data["content"].is_null(), "{answer}"),
            4 | 7 => {
                assert_eq!(data["allowed_mentions"], json!({"parse": []}), "it may ping: {answer}")
            }
            _ => panic!("no callback type of Discord's: {answer}"),
        }
        if kind == 4 {
            let content = data["content"].as_str().expect("words");
            assert!(!content.trim().is_empty(), "Discord refuses it as empty");
            assert!(units(content) <= bounds::CONTENT_UNITS_MAX, "{content}");
        }
        if kind == 7 {
            // A returned card is one that Discord had accepted, without what we removed.
            assert!(stopping(&data["components"]), "{answer}");
        }
    }
}

/// Whether it shows that it is being stopped.
fn stopping(node: &Value) -> bool {
    match node {
        Value::Array(list) => list.iter().any(stopping),
        Value::Object(fields) => {
            let words = node["label"] == "Stopping…" || node["label"] == "Withdrawing…";
            (fields.get("disabled") == Some(&json!(true)) && words) || fields.values().any(stopping)
        }
        _ => false,
    }
}
