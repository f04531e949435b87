//! `GET /sandbox`: filters, order and cursor pages.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Query, State};
use axum::response::IntoResponse;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::page::check_limit;
use crate::accounts::may_see;
use crate::api_error::ApiError;
use crate::clock::system_ms;
use crate::engine::SharedEngine;
use crate::faults::Fault;
use crate::http::{ApiResult, EngineState};
use crate::limits::PAGE_DEFAULT;
use crate::record::Record;

type ListParameters = Vec<(String, String)>;

pub(super) async fn list(
    State(engine): EngineState,
    Query(parameters): Query<ListParameters>,
) -> ApiResult {
    let wanted = Filter::parse(&parameters)?;
    let mut rows: Vec<(String, Value)> = rows(&engine)
        .into_iter()
        .filter(|(record, _)| may_see(record.account) && wanted.admits(record))
        .map(|(record, item)| {
            (format!("{}\u{0}{}", sort_key(&record, &wanted.sort), record.id), item)
        })
        .collect();
    rows.sort_by(
        |(one, _), (other, _)| {
            if wanted.ascending { one.cmp(other) } else { other.cmp(one) }
        },
    );
    if let Some(after) = &wanted.after {
        rows.retain(|(key, _)| if wanted.ascending { key > after } else { key < after });
    }
    let more = rows.len() > wanted.limit;
    rows.truncate(wanted.limit);
    let next = rows.last().filter(|_| more).map(|(key, _)| URL_SAFE_NO_PAD.encode(key));
    let items: Vec<Value> = rows.into_iter().map(|(_, item)| item).collect();
    Ok(Json(json!({ "items": items, "nextCursor": next })).into_response())
}

/// All sandboxes, current or, under the fault, stale.
fn rows(engine: &SharedEngine) -> Vec<(Record, Value)> {
    let lag = engine.faults.take(&[], |fault| match fault {
        Fault::ListLag { ms } => Some(i64::try_from(*ms).unwrap_or(i64::MAX)),
        _ => None,
    });
    let now = system_ms();
    let mut inner = engine.store.lock();
    if let (Some(ms), Some((taken, rows))) = (lag, &inner.lagging)
        && now.saturating_sub(*taken) < ms
    {
        return rows.clone();
    }
    let rows: Vec<(Record, Value)> = inner
        .sandboxes
        .values()
        .map(|entry| (entry.record.clone(), entry.record.item(&engine.toolbox_url)))
        .collect();
    inner.lagging = Some((now, rows.clone()));
    rows
}

struct Filter {
    id: Option<String>,
    name: Option<String>,
    labels: BTreeMap<String, String>,
    states: Vec<String>,
    snapshots: Vec<String>,
    sort: String,
    ascending: bool,
    limit: usize,
    after: Option<String>,
}

impl Filter {
    fn parse(parameters: &ListParameters) -> Result<Self, ApiError> {
        let mut wanted = Filter {
            id: None,
            name: None,
            labels: BTreeMap::new(),
            states: Vec::new(),
            snapshots: Vec::new(),
            sort: "lastActivityAt".to_owned(),
            ascending: false,
            limit: PAGE_DEFAULT,
            after: None,
        };
        for (name, value) in parameters.iter().filter(|(_, value)| !value.is_empty()) {
            let value = value.clone();
            match name.as_str() {
                "id" => wanted.id = Some(value),
                "name" => wanted.name = Some(value),
                "labels" => {
                    let text = "labels must be a JSON object of strings";
                    wanted.labels =
                        serde_json::from_str(&value).map_err(|_| ApiError::bad(text))?;
                }
                "states" | "states[]" if value == "destroyed" => {
                    return Err(ApiError::bad("states must not contain destroyed"));
                }
                "states" | "states[]" => wanted.states.push(value),
                "snapshots" | "snapshots[]" => wanted.snapshots.push(value),
                "sort" if SORTS.contains(&value.as_str()) => wanted.sort = value,
                "sort" => {
                    return Err(ApiError::bad(format!("sort must be one of {}", SORTS.join(", "))));
                }
                "order" if value == "asc" || value == "desc" => wanted.ascending = value == "asc",
                "order" => return Err(ApiError::bad("order must be asc or desc")),
                "limit" => wanted.limit = check_limit(Some(value.parse().unwrap_or(0)))?,
                "cursor" => {
                    let bytes = URL_SAFE_NO_PAD.decode(&value).ok();
                    let key = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
                    wanted.after = Some(key.ok_or_else(|| ApiError::bad("Invalid cursor"))?);
                }
                // Filters in the specification that make no difference here.
                _ => {}
            }
        }
        Ok(wanted)
    }

    fn admits(&self, record: &Record) -> bool {
        let begins = |wanted: &Option<String>, with: &str| {
            wanted.as_ref().is_none_or(|wanted| with.starts_with(wanted))
        };
        begins(&self.id, &record.id)
            && begins(&self.name, &record.name)
            && self.labels.iter().all(|(name, value)| record.labels.get(name) == Some(value))
            && (self.states.is_empty()
                || self.states.iter().any(|state| state == record.state.name()))
            && (self.snapshots.is_empty()
                || record.snapshot.as_ref().is_some_and(|one| self.snapshots.contains(one)))
    }
}

const SORTS: [&str; 6] = ["name", "cpu", "memoryGib", "diskGib", "lastActivityAt", "createdAt"];

/// Text that sorts like the field.
fn sort_key(record: &Record, sort: &str) -> String {
    let number = match sort {
        "name" => return record.name.clone(),
        "cpu" => record.cpu,
        "memoryGib" => record.memory,
        "diskGib" => record.disk,
        "createdAt" => record.created_at,
        _ => record.last_activity,
    };
    format!("{number:020}")
}
