//! The REST-JSON API of EventBridge Scheduler.

use axum::body::Bytes;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde_json::{Value, json};

use super::definition::{Definition, check_name};
use super::error::ScheduleError;
use super::{DEFAULT_GROUP, NamedSchedule, Scheduler, save};
use crate::limits;
use crate::query::Query;

impl Scheduler {
    /// Whether a path belongs to this API.
    pub(crate) fn owns(path: &str) -> bool {
        let first = path.trim_start_matches('/').split('/').next();
        matches!(first, Some("schedules" | "schedule-groups"))
    }

    /// Answers one request to a path that [`Scheduler::owns`].
    pub(crate) fn answer(
        &self,
        method: &Method,
        path: &str,
        query: &str,
        body: &Bytes,
    ) -> Response {
        match self.act(method, path, &Query::parse(query), body) {
            Ok(value) => (
                StatusCode::OK,
                [("content-type", "application/json")],
                value.map_or_else(String::new, |value| value.to_string()),
            )
                .into_response(),
            Err(error) => refusal(&error),
        }
    }

    /// `None` is an empty body: AWS's answer for an action without an output.
    fn act(
        &self,
        method: &Method,
        path: &str,
        query: &Query,
        body: &Bytes,
    ) -> Result<Option<Value>, ScheduleError> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let reply = match (method.as_str(), parts.as_slice()) {
            ("GET", ["schedules"]) => self.list(query),
            ("POST", ["schedules", name]) => self.put(name, body, false),
            ("PUT", ["schedules", name]) => self.put(name, body, true),
            ("GET", ["schedules", name]) => self.get(name, query),
            ("DELETE", ["schedules", name]) => return self.delete(name, query),
            ("GET", ["schedule-groups"]) => self.list_groups(query),
            ("POST", ["schedule-groups", name]) => self.create_group(name),
            ("GET", ["schedule-groups", name]) => self.get_group(name),
            ("DELETE", ["schedule-groups", name]) => return self.delete_group(name),
            _ => Err(ScheduleError::UnknownOperation(format!(
                "This engine does not implement {method} {path}."
            ))),
        };
        reply.map(Some)
    }

    fn put(&self, name: &str, body: &Bytes, is_update: bool) -> Result<Value, ScheduleError> {
        let read = |error: serde_json::Error| {
            ScheduleError::Validation(format!("The request could not be read: {error}."))
        };
        let request: Value = serde_json::from_slice(body).map_err(read)?;
        let group = request["GroupName"].as_str().unwrap_or(DEFAULT_GROUP).to_owned();
        let token = request["ClientToken"].as_str().map(str::to_owned);
        let definition: Definition = serde_json::from_value(request).map_err(read)?;
        definition.check(name)?;
        let arn = self.arn(&group, name);
        let schedule = NamedSchedule { group, name: name.to_owned(), definition };
        self.store.transaction(|tx| {
            check_group(tx, &schedule.group)?;
            let present: Option<(Option<String>, String)> = tx
                .query_row(
                    "SELECT client_token, definition FROM schedules WHERE group_name = ?1 AND name = ?2",
                    [&schedule.group, &schedule.name],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()?;
            match (present, is_update) {
                (None, true) => return Err(missing(name)),
                // A repeated token is a repeat of the same call, or an error.
                (Some((used, definition)), _) if token.is_some() && used == token => {
                    if definition == schedule.definition.text() {
                        return Ok(());
                    }
                    return Err(ScheduleError::Conflict(
                        "The client token was used before with other parameters.".to_owned(),
                    ));
                }
                (Some(_), false) => {
                    return Err(ScheduleError::Conflict(format!(
                        "Schedule {name} already exists."
                    )));
                }
                (None, false) | (Some(_), true) => {}
            }
            save(tx, &schedule, token.as_deref(), false, self.clock.now_ms())
        })?;
        self.wake();
        Ok(json!({ "ScheduleArn": arn }))
    }

    fn get(&self, name: &str, query: &Query) -> Result<Value, ScheduleError> {
        let group = query.value("groupName").unwrap_or(DEFAULT_GROUP);
        let found = self.store.transaction(|tx| {
            tx.query_row(
                "SELECT group_name, name, definition, created_ms, modified_ms FROM schedules
                 WHERE group_name = ?1 AND name = ?2",
                [group, name],
                stored,
            )
            .optional()
            .map_err(ScheduleError::from)
        })?;
        let stored = found.ok_or_else(|| missing(name))?;
        let mut schedule = stored.definition;
        schedule["Arn"] = json!(self.arn(group, name));
        schedule["GroupName"] = json!(stored.group);
        schedule["Name"] = json!(stored.name);
        let policy = &mut schedule["Target"]["RetryPolicy"];
        for (name, default) in [
            ("MaximumEventAgeInSeconds", limits::SCHEDULE_AGE_SECONDS_MAX),
            ("MaximumRetryAttempts", limits::SCHEDULE_RETRIES_MAX),
        ] {
            if policy[name].is_null() {
                policy[name] = json!(default);
            }
        }
        schedule["CreationDate"] = json!(stored.created_ms / 1000);
        schedule["LastModificationDate"] = json!(stored.modified_ms / 1000);
        Ok(schedule)
    }

    fn delete(&self, name: &str, query: &Query) -> Result<Option<Value>, ScheduleError> {
        let group = query.value("groupName").unwrap_or(DEFAULT_GROUP);
        let deleted = self.store.transaction(|tx| {
            tx.execute("DELETE FROM schedules WHERE group_name = ?1 AND name = ?2", [group, name])
                .map_err(ScheduleError::from)
        })?;
        if deleted == 0 {
            return Err(missing(name));
        }
        Ok(None)
    }

    fn list(&self, query: &Query) -> Result<Value, ScheduleError> {
        let count_max = query
            .value("MaxResults")
            .and_then(|count| count.parse().ok())
            .unwrap_or(limits::LISTED_SCHEDULES_MAX)
            .clamp(1, limits::LISTED_SCHEDULES_MAX);
        let group = query.value("ScheduleGroup").unwrap_or_default();
        let prefix = query.value("NamePrefix").unwrap_or_default();
        let state = query.value("State").unwrap_or_default();
        let after = query.value("NextToken").unwrap_or_default();
        let mut found: Vec<StoredSchedule> = self.store.transaction(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT group_name, name, definition, created_ms, modified_ms FROM schedules
                 WHERE (?1 = '' OR group_name = ?1) AND substr(name, 1, length(?2)) = ?2
                   AND (?3 = '' OR json_extract(definition, '$.State') = ?3)
                   AND group_name || '/' || name > ?4
                 ORDER BY group_name || '/' || name LIMIT ?5",
            )?;
            let limit = i64::try_from(count_max + 1).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![group, prefix, state, after, limit], stored)?;
            rows.collect::<Result<_, _>>().map_err(ScheduleError::from)
        })?;
        let has_more = found.len() > count_max;
        found.truncate(count_max);
        let token = found
            .last()
            .filter(|_| has_more)
            .map(|stored| format!("{}/{}", stored.group, stored.name));
        let schedules: Vec<Value> = found
            .iter()
            .map(|stored| {
                json!({
                    "Arn": self.arn(&stored.group, &stored.name),
                    "GroupName": stored.group,
                    "Name": stored.name,
                    "State": stored.definition["State"],
                    "Target": { "Arn": stored.definition["Target"]["Arn"] },
                    "CreationDate": stored.created_ms / 1000,
                    "LastModificationDate": stored.modified_ms / 1000,
                })
            })
            .collect();
        let mut reply = json!({ "Schedules": schedules });
        if let Some(token) = token {
            reply["NextToken"] = json!(token);
        }
        Ok(reply)
    }

    fn create_group(&self, name: &str) -> Result<Value, ScheduleError> {
        check_name(name)?;
        let created = self.store.transaction(|tx| {
            tx.execute(
                "INSERT OR IGNORE INTO schedule_groups (name, created_ms) VALUES (?1, ?2)",
                params![name, self.clock.now_ms()],
            )
            .map_err(ScheduleError::from)
        })?;
        if created == 0 {
            return Err(ScheduleError::Conflict(format!("Schedule group {name} already exists.")));
        }
        Ok(json!({ "ScheduleGroupArn": self.group_arn(name) }))
    }

    fn get_group(&self, name: &str) -> Result<Value, ScheduleError> {
        let created_ms = self.store.transaction(|tx| check_group(tx, name))?;
        Ok(self.group_json(name, created_ms))
    }

    /// Deletes a group with its schedules.
    fn delete_group(&self, name: &str) -> Result<Option<Value>, ScheduleError> {
        if name == DEFAULT_GROUP {
            return Err(ScheduleError::Validation(
                "The default schedule group cannot be deleted.".to_owned(),
            ));
        }
        self.store.transaction(|tx| {
            check_group(tx, name)?;
            tx.execute("DELETE FROM schedules WHERE group_name = ?1", [name])?;
            tx.execute("DELETE FROM schedule_groups WHERE name = ?1", [name])?;
            Ok::<_, ScheduleError>(())
        })?;
        Ok(None)
    }

    fn list_groups(&self, query: &Query) -> Result<Value, ScheduleError> {
        let prefix = query.value("NamePrefix").unwrap_or_default();
        let found: Vec<(String, i64)> = self.store.transaction(|tx| {
            let mut statement = tx.prepare(
                "SELECT name, created_ms FROM schedule_groups WHERE substr(name, 1, length(?1)) = ?1 ORDER BY name",
            )?;
            let rows = statement.query_map([prefix], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<Result<_, _>>().map_err(ScheduleError::from)
        })?;
        let groups: Vec<Value> =
            found.iter().map(|(name, created_ms)| self.group_json(name, *created_ms)).collect();
        Ok(json!({ "ScheduleGroups": groups }))
    }

    fn group_arn(&self, name: &str) -> String {
        self.account.arn("scheduler", &format!("schedule-group/{name}"))
    }

    fn group_json(&self, name: &str, created_ms: i64) -> Value {
        json!({
            "Arn": self.group_arn(name),
            "Name": name,
            "State": "ACTIVE",
            "CreationDate": created_ms / 1000,
            "LastModificationDate": created_ms / 1000,
        })
    }
}

struct StoredSchedule {
    group: String,
    name: String,
    definition: Value,
    created_ms: i64,
    modified_ms: i64,
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredSchedule> {
    let definition: String = row.get(2)?;
    Ok(StoredSchedule {
        group: row.get(0)?,
        name: row.get(1)?,
        definition: serde_json::from_str(&definition).unwrap_or_default(),
        created_ms: row.get(3)?,
        modified_ms: row.get(4)?,
    })
}

/// Creation time of the group.
fn check_group(tx: &Transaction<'_>, name: &str) -> Result<i64, ScheduleError> {
    tx.prepare_cached("SELECT created_ms FROM schedule_groups WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?
        .ok_or_else(|| ScheduleError::NotFound(format!("Schedule group {name} does not exist.")))
}

fn missing(name: &str) -> ScheduleError {
    ScheduleError::NotFound(format!("Schedule {name} does not exist."))
}

fn refusal(error: &ScheduleError) -> Response {
    let (status, kind) = match error {
        ScheduleError::Validation(_) => (StatusCode::BAD_REQUEST, "ValidationException"),
        ScheduleError::Conflict(_) => (StatusCode::CONFLICT, "ConflictException"),
        ScheduleError::NotFound(_) => (StatusCode::NOT_FOUND, "ResourceNotFoundException"),
        ScheduleError::UnknownOperation(_) => (StatusCode::NOT_FOUND, "UnknownOperationException"),
        ScheduleError::Store(_) => (StatusCode::INTERNAL_SERVER_ERROR, "InternalServerException"),
    };
    (
        status,
        [("x-amzn-errortype", kind), ("content-type", "application/json")],
        json!({ "Message": error.to_string() }).to_string(),
    )
        .into_response()
}
