//! Daytona's API and its toolbox: a sandbox runs as soon as it is asked for, and every script ends well.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::{Reply, Request, Service};

/// The provider.
pub(super) struct Provider {
    toolbox: String,
    preview: String,
    sandboxes: Mutex<BTreeMap<String, Value>>,
}

impl Provider {
    /// One that listens on this port, and whose sandboxes' agent listens on that one.
    pub(super) fn new(port: u16, agent: u16) -> Self {
        Self {
            toolbox: format!("http://127.0.0.1:{port}/toolbox"),
            preview: format!("http://127.0.0.1:{agent}"),
            sandboxes: Mutex::default(),
        }
    }
}

impl Service for Provider {
    fn answer(&self, request: &Request) -> Reply {
        let path = request.path.split('?').next().unwrap_or_default();
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let mut sandboxes = self
            .sandboxes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match (request.method.as_str(), &segments[..]) {
            ("GET", ["api", "sandbox"]) => {
                let items: Vec<&Value> = sandboxes.values().collect();
                Reply::json(
                    "list sandboxes",
                    &json!({"items": items, "nextCursor": null}),
                )
            }
            ("POST", ["api", "sandbox"]) => {
                let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
                let name = asked["name"].as_str().unwrap_or_default().to_owned();
                let number = sandboxes.len() + 1;
                let sandbox = json!({
                    "id": format!("0f0e4c0a-7d3c-4a55-9f0d-{number:012}"), "organizationId": "bench", "name": name,
                    "snapshot": asked["snapshot"], "user": "daytona", "env": {}, "public": false, "target": "eu",
                    "labels": asked["labels"], "cpu": 2, "gpu": 0, "memory": 4, "disk": 8, "state": "started",
                    "desiredState": "started", "createdAt": "2026-11-22T12:00:00.000Z", "toolboxProxyUrl": self.toolbox,
                });
                let sandbox = sandboxes.entry(name).or_insert(sandbox);
                Reply::json("create sandbox", sandbox)
            }
            ("GET", ["api", "sandbox", name]) => match sandboxes.get(*name) {
                Some(sandbox) => Reply::json("read sandbox", sandbox),
                None => Reply::of(
                    "read sandbox",
                    404,
                    &json!({"statusCode": 404, "message": "not found"}),
                ),
            },
            ("GET", ["api", "sandbox", _, "ports", _, "preview-url"]) => {
                let link = json!({"url": self.preview, "token": "a-token-of-the-bench"});
                Reply::json("read preview", &link)
            }
            ("POST", ["toolbox", _, "process", "execute"]) => {
                Reply::json("run a script", &json!({"exitCode": 0, "result": ""}))
            }
            _ => Reply::unknown(request),
        }
    }
}
