//! The application, as its owner reads and edits it.

use super::delivery;
use super::refusal::{DiscordRefusal, RouteResult};
use super::users::bot;
use crate::http::{ApiRequest, ApiResponse};
use crate::hub::Hub;
use crate::json::{JsonFields, fields};
use crate::store::ChatStore;
use serde_json::json;

pub fn get(hub: &Hub, store: &ChatStore) -> RouteResult {
    let mut app = json!({"id": hub.discord.application_id, "name": "Bobbin", "icon": null, "description": "", "summary": "", "bot_public": true,
        "bot_require_code_grant": false, "verify_key": hub.discord_public_key(), "flags": 1 << 19, "tags": [], "hook": true,
        "interactions_endpoint_url": null, "integration_types_config": {"0": {}}, "bot": bot(hub, store)?});
    for (name, value) in fields(&store.get("d.app", "", "settings")?.unwrap_or_default()) {
        app[name] = value;
    }
    Ok(ApiResponse::json(app))
}

/// Discord probes an endpoint before it saves its address: a PING must be answered, and a badly signed one refused.
/// Returns the refusal if either fails.
pub async fn unfit_endpoint(hub: &Hub, call: &ApiRequest) -> Option<ApiResponse> {
    let is_ours = call.token("Bot") == Some(hub.discord.bot_token.as_str());
    let url = call.body.str("interactions_endpoint_url");
    let segments = call.segments();
    if !is_ours
        || call.method != "PATCH"
        || !segments.ends_with(&["applications", "@me"])
        || url.is_empty()
    {
        return None;
    }
    let probed = delivery::probe(hub, Some(url)).await;
    let fits = probed["good"]["status"] == 200
        && probed["good"]["body"]["type"] == 1
        && probed["bad"]["status"] == 401;
    if fits {
        return None;
    }
    let refusal = DiscordRefusal::field(
        "interactions_endpoint_url",
        "APPLICATION_INTERACTIONS_ENDPOINT_URL_INVALID",
        "Validation failed. The specified interactions endpoint url could not be verified.",
    );
    Some(refusal.into())
}

/// Saves the address of the interactions endpoint, the only emulated setting.
pub fn patch(hub: &Hub, store: &ChatStore, call: &ApiRequest) -> RouteResult {
    let url = call.body.str("interactions_endpoint_url");
    if !url.is_empty() && !url.starts_with("https://") && !url.starts_with("http://127.0.0.1:") {
        return Err(DiscordRefusal::field(
            "interactions_endpoint_url",
            "URL_TYPE_INVALID_SCHEME",
            "Scheme must be one of ('https',).",
        ));
    }
    if let Some(url) = call.body.get("interactions_endpoint_url") {
        let settings = json!({"interactions_endpoint_url": url});
        store.put("d.app", "", "settings", &settings)?;
    }
    get(hub, store)
}
