//! Discord's messages: each post has an id, and the same name finds the same post again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::{Reply, Request, Service, run};

/// How the call is named that posts the answer.
pub const ANSWER_POSTED: &str = "post the answer";

/// The platform.
#[derive(Default)]
pub(super) struct Chat {
    posts: Mutex<Posts>,
}

#[derive(Default)]
struct Posts {
    by_name: HashMap<String, u64>,
    made: u64,
}

impl Service for Chat {
    fn answer(&self, request: &Request) -> Reply {
        let segments: Vec<&str> = request.path.trim_matches('/').split('/').collect();
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let is_answer = String::from_utf8_lossy(&request.body).contains(run::ANSWER);
        match (request.method.as_str(), &segments[..]) {
            ("POST", ["api", "v10", "channels", channel, "messages"]) => {
                let mut posts = self.posts.lock().unwrap_or_else(PoisonError::into_inner);
                let next = posts.made + 1;
                let name = body["nonce"].as_str().unwrap_or_default().to_owned();
                let number = *posts.by_name.entry(name).or_insert(next);
                posts.made = posts.made.max(number);
                let id = (1_241_000_000_000_000_000 + number).to_string();
                let what = if is_answer {
                    ANSWER_POSTED
                } else {
                    "post the card"
                };
                shown(what, channel, &id, &body)
            }
            ("PATCH", ["api", "v10", "channels", channel, "messages", id]) => {
                shown("edit the card", channel, id, &body)
            }
            _ => Reply::unknown(request),
        }
    }
}

/// The message, as Discord answers it, with limits that are far away.
fn shown(what: &str, channel: &str, id: &str, body: &Value) -> Reply {
    let message = json!({
        "type": 0, "id": id, "channel_id": channel, "content": body["content"], "components": body["components"],
        "flags": body["flags"], "nonce": body["nonce"], "attachments": [], "embeds": [], "mentions": [],
        "mention_roles": [], "mention_everyone": false, "pinned": false, "tts": false,
        "timestamp": "2026-11-22T12:00:00.000000+00:00", "edited_timestamp": null,
        "author": {"id": "1240000000000000001", "username": "Bobbin", "avatar": null, "discriminator": "0001",
            "public_flags": 524_288, "flags": 524_288, "bot": true, "banner": null, "accent_color": null,
            "global_name": null, "avatar_decoration_data": null, "collectibles": null, "clan": null},
    });
    let mut reply = Reply::json(what, &message);
    for (name, value) in [
        ("x-ratelimit-bucket", "80c17d2f203122d936070c88c8d10f33"),
        ("x-ratelimit-limit", "5"),
        ("x-ratelimit-remaining", "4"),
        ("x-ratelimit-reset-after", "1.000"),
    ] {
        reply.headers.push((name, value.to_owned()));
    }
    reply
}
