//! The application as its owner sees and sets it.

use super::delivery;
use super::refusal::{FormErrors, RouteResult};
use super::users::bot;
use crate::http::{ApiRequest, ApiResponse};
use crate::hub::Hub;
use crate::json::{Read, fields, units};
use crate::store::Store;
use serde_json::json;

pub fn get(hub: &Hub, store: &Store) -> RouteResult {
    let mut app = json!({"id": hub.discord.application_id, "name": "Bobbin", "icon": null, "description": "", "summary": "", "bot_public": true,
        "bot_require_code_grant": false, "verify_key": hub.discord_public_key(), "flags": 1 << 19, "tags": [], "hook": true,
        "interactions_endpoint_url": null, "integration_types_config": {"0": {}}, "bot": bot(hub, store)?});
    for (name, value) in fields(&store.get("d.app", "", "settings")?.unwrap_or_default()) {
        app[name] = value;
    }
    Ok(ApiResponse::json(app))
}

/// Discord looks at an endpoint before it keeps its address: a PING must be answered, and one that is signed badly refused.
/// The refusal, where one of the two is not so.
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
    let mut wrong = FormErrors::default();
    wrong.at(
        "interactions_endpoint_url",
        "APPLICATION_INTERACTIONS_ENDPOINT_URL_INVALID",
        "Validation failed. The specified interactions endpoint url could not be verified.",
    );
    wrong.done().err().map(|refusal| ApiResponse {
        status: refusal.status,
        ..ApiResponse::json(refusal.body)
    })
}

pub fn patch(hub: &Hub, store: &Store, call: &ApiRequest) -> RouteResult {
    let mut wrong = FormErrors::default();
    let url = call.body.str("interactions_endpoint_url");
    if !url.is_empty() && !url.starts_with("https://") && !url.starts_with("http://127.0.0.1:") {
        wrong.at(
            "interactions_endpoint_url",
            "URL_TYPE_INVALID_SCHEME",
            "Scheme must be one of ('https',).",
        );
    }
    let tags = call.body.list("tags");
    if tags.len() > 5
        || tags
            .iter()
            .any(|tag| units(tag.as_str().unwrap_or_default()) > 20)
    {
        wrong.at(
            "tags",
            "BASE_TYPE_MAX_LENGTH",
            "Must be 5 or fewer tags of 20 or fewer in length.",
        );
    }
    wrong.done()?;
    let mut settings = store
        .get("d.app", "", "settings")?
        .unwrap_or_else(|| json!({}));
    let settable = [
        "description",
        "tags",
        "install_params",
        "integration_types_config",
        "interactions_endpoint_url",
        "event_webhooks_url",
        "event_webhooks_status",
        "event_webhooks_types",
        "flags",
    ];
    for (name, value) in fields(&call.body)
        .into_iter()
        .filter(|(name, _)| settable.contains(&name.as_str()))
    {
        settings[name] = value;
    }
    store.put("d.app", "", "settings", &settings)?;
    get(hub, store)
}
