//! Files: the steps of an upload, and the file records.

use super::channels::channel;
use super::failure::{MethodResult, fail};
use super::messages::{root_of, save_new};
use crate::http::{ApiRequest, ApiResponse, percent_encoded};
use crate::hub::Hub;
use crate::ids::{now_ms, slack_id};
use crate::json::{JsonFields, loose_text};
use crate::limits::{FILE_BYTES_MAX, FILES_PER_MESSAGE_MAX};
use crate::store::{Blob, ChatStore, ChatStoreError};
use serde_json::{Value, json};

/// First step: an upload address for a file with this name and length.
pub fn begin_upload(hub: &Hub, store: &ChatStore, args: &Value) -> MethodResult {
    let length: usize = loose_text(args, "length").parse().unwrap_or_default();
    if args.str("filename").is_empty() || length == 0 {
        return fail("invalid_arguments");
    }
    if length > FILE_BYTES_MAX {
        return fail("file_too_large");
    }
    let id = slack_id('F');
    store.put(
        "s.file",
        "",
        &id,
        &json!({"id": id, "name": args["filename"], "size": length, "mode": "pending"}),
    )?;
    Ok(json!({"upload_url": format!("{}/slack/upload/{id}", hub.base), "file_id": id}))
}

/// The bytes of an announced file, raw or in a form.
pub fn receive(hub: &Hub, call: &ApiRequest, id: &str) -> ApiResponse {
    let bytes = call.files.first().map_or(&call.raw, |file| &file.bytes);
    let text = |status, body: &str| ApiResponse {
        status,
        body: Value::String(body.to_owned()),
        headers: Vec::new(),
    };
    let store = hub.store();
    let kept = store.atomically(|store| {
        let Some(file) = store.get("s.file", "", id)?.filter(|file| file.str("mode") == "pending")
        else {
            return Ok(text(404, "not found"));
        };
        if bytes.len() as u64 != file.int("size") {
            return Ok(text(400, "the length differs from the announced one"));
        }
        store_file(hub, store, id, file.str("name"), bytes.to_vec())?;
        Ok::<_, ChatStoreError>(text(200, &format!("OK - {}", bytes.len())))
    });
    kept.unwrap_or_else(|_| text(500, "the chat's state failed"))
}

/// Stores bytes and creates the file's record.
pub fn store_file(
    hub: &Hub,
    store: &ChatStore,
    id: &str,
    name: &str,
    bytes: Vec<u8>,
) -> Result<Value, ChatStoreError> {
    let (kind, size) = (content_type(name), bytes.len());
    store.put_blob(id, &Blob { name: name.to_owned(), content_type: kind.to_owned(), bytes })?;
    let (url, name_in_url) = (&hub.base, percent_encoded(name));
    let extension = name.rsplit_once('.').map_or("text", |(_, extension)| extension);
    let file = json!({"id": id, "created": now_ms() / 1_000, "timestamp": now_ms() / 1_000, "name": name, "title": name, "mimetype": kind,
        "filetype": extension, "pretty_type": extension.to_ascii_uppercase(), "user": hub.slack.bot_user_id, "size": size, "mode": "hosted",
        "is_external": false, "is_public": true, "url_private": format!("{url}/slack/files/{id}/{name_in_url}"),
        "url_private_download": format!("{url}/slack/files/{id}/{name_in_url}"), "permalink": format!("{url}/files/{id}/{name_in_url}")});
    store.put("s.file", "", id, &file)?;
    Ok(file)
}

/// Content type by file extension, as Slack guesses it.
fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "json" => "application/json",
        "zip" => "application/zip",
        "pdf" => "application/pdf",
        "txt" | "md" | "log" | "diff" | "patch" | "rs" | "py" | "js" | "ts" | "toml" | "yaml"
        | "yml" | "sh" | "csv" => "text/plain",
        _ => "application/octet-stream",
    }
}

/// Last step: shares the files in a message, if requested.
pub fn complete_upload(hub: &Hub, store: &ChatStore, args: &Value) -> MethodResult {
    let named = args.list("files");
    if named.is_empty() || named.len() > FILES_PER_MESSAGE_MAX {
        return fail("invalid_arguments");
    }
    let mut files = Vec::new();
    for one in named {
        let Some(mut file) =
            store.get("s.file", "", one.str("id"))?.filter(|file| file.str("mode") == "hosted")
        else {
            return fail("file_not_found");
        };
        if one.has("title") {
            file["title"] = one["title"].clone();
            store.put("s.file", "", one.str("id"), &file)?;
        }
        files.push(file);
    }
    if args.has("channel_id") {
        let id = channel(store, args, "channel_id")?.str("id").to_owned();
        let mut message = json!({"type": "message", "user": hub.slack.bot_user_id, "bot_id": hub.seeds.slack_bot_id, "app_id": hub.slack.app_id,
            "team": hub.seeds.team_id, "text": args.str("initial_comment"), "files": files, "upload": true});
        if args.has("thread_ts") {
            message["thread_ts"] = root_of(store, &id, args.str("thread_ts"))?.into();
        }
        save_new(hub, store, &id, &mut message)?;
    }
    let listed: Vec<Value> =
        files.iter().map(|file| json!({"id": file["id"], "title": file["title"]})).collect();
    Ok(json!({"files": listed}))
}
