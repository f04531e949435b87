//! How a platform's client reaches one stack.

use std::time::{SystemTime, UNIX_EPOCH};

use bobbin_core::base::ids::Ms;
use reqwest::{Client, Method};
use serde_json::Value;

use crate::http::{Answer, call, send};
use crate::ready::Ready;

/// One stack, as a platform's client reaches it.
#[derive(Debug, Clone)]
pub(super) struct Side {
    client: Client,
    pub(super) ready: Ready,
    ingress: String,
}

impl Side {
    /// A client for this stack; the test's own signed requests go to `ingress`.
    pub(super) fn new(client: &Client, ready: &Ready, ingress: &str) -> Self {
        Self {
            client: client.clone(),
            ready: ready.clone(),
            ingress: ingress.trim_end_matches('/').to_owned(),
        }
    }

    /// A control call of the chat.
    pub(super) async fn control(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Value, String> {
        let url = format!("{}/_control/{path}", self.ready.console);
        let control = self.ready.control();
        call(&self.client, method, &url, &control, body).await?.ok()
    }

    /// A read call of a platform's API.
    pub(super) async fn read(&self, url: &str, authorization: &str) -> Result<Value, String> {
        call(&self.client, Method::GET, url, authorization, &Value::Null).await?.ok()
    }

    /// The text of a file of the platform.
    pub(super) async fn file(&self, url: &str, authorization: &str) -> Result<String, String> {
        let request = self.client.get(url).header("authorization", authorization);
        match send(request).await? {
            answer if answer.status == 200 => Ok(answer.text),
            answer => Err(format!("{}: {}", answer.status, answer.text)),
        }
    }

    /// Keeps a file at the chat, to be sent along with an act; answers its id.
    pub(super) async fn upload(
        &self,
        name: &str,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<String, String> {
        let url = format!("{}/ui/upload?name={name}", self.ready.console);
        let request = self.client.post(url).body(bytes.to_vec());
        let request = request.header("authorization", self.ready.control());
        let kept = send(request.header("content-type", media_type)).await?.ok()?;
        let id = kept["id"].as_str().map(str::to_owned);
        id.ok_or_else(|| format!("the file was not kept: {kept}"))
    }

    /// Posts a body to the ingress under these headers, right or wrong.
    pub(super) async fn post(
        &self,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Result<Answer, String> {
        let request = self.client.post(format!("{}/{path}", self.ingress));
        let request = request.body(body.to_owned());
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        send(request).await
    }
}

pub(super) fn now_ms() -> Ms {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| Ms::try_from(since.as_millis()).unwrap_or(Ms::MAX))
}
