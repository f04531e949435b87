//! Files of a message.

use crate::http::{UploadedFile, percent_encoded};
use crate::hub::Hub;
use crate::ids::{now_ms, random_text};
use crate::json::{JsonFields, loose_text};
use crate::store::{Blob, ChatStore, ChatStoreError};
use serde_json::{Value, json};

/// Stores uploaded files and lists the message's attachments: kept ones, then new ones.
pub fn attach(
    hub: &Hub,
    store: &ChatStore,
    sent: &Value,
    files: &[UploadedFile],
    remaining: &[Value],
) -> Result<Value, ChatStoreError> {
    let mut list = remaining.to_vec();
    for (at, file) in files.iter().enumerate() {
        let slot = file
            .field
            .strip_prefix("files[")
            .and_then(|rest| rest.strip_suffix(']'))
            .map_or(at.to_string(), str::to_owned);
        let named = sent.list("attachments").iter().find(|one| loose_text(one, "id") == slot);
        let filename = named
            .map(|one| one.str("filename"))
            .filter(|name| !name.is_empty())
            .unwrap_or(&file.filename);
        let mut attachment =
            store_file(hub, store, filename, &file.content_type, file.bytes.to_vec())?;
        if let Some(description) = named.and_then(|one| one["description"].as_str()) {
            attachment["description"] = description.into();
        }
        list.push(attachment);
    }
    Ok(Value::Array(list))
}

/// Stores bytes as an attachment served by this server.
pub fn store_file(
    hub: &Hub,
    store: &ChatStore,
    name: &str,
    content_type: &str,
    bytes: Vec<u8>,
) -> Result<Value, ChatStoreError> {
    let id = hub.ids.snowflake();
    let size = bytes.len();
    store.put_blob(
        &id,
        &Blob { name: name.to_owned(), content_type: content_type.to_owned(), bytes },
    )?;
    let url = format!("{}/files/{id}/{}", hub.base, percent_encoded(name));
    let expiry = now_ms() / 1_000 + 86_400;
    Ok(json!({"id": id, "filename": name, "size": size, "content_type": content_type,
        "url": format!("{url}?ex={expiry:x}&is={:x}&hm={}", now_ms() / 1_000, random_text(32)), "proxy_url": url}))
}
