//! Gates of the stack: one call of one function's process is held, before it is processed or before its answer goes
//! out, and told whose it is.

use reqwest::{Client, Method};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::call;

/// What a gate holds.
#[derive(Debug, Clone, Default)]
pub struct Order {
    /// Stands in the event of the invocation that makes the call.
    pub text: String,
    /// The function, by its id in the template.
    pub function: String,
    /// The call's name; empty: none is held, calls are only written down.
    pub call: String,
    /// Which one of the calls with this name, from 1.
    pub nth: usize,
    /// After it was processed, before its answer goes out; else before it is processed.
    pub after: bool,
}

/// How a gate stands.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Seen {
    /// `armed`, `held`, `passed`, or `gone` when the connection ended while it was held.
    pub state: String,
    /// Whose call is, or was, held.
    pub process: Option<u32>,
    /// The calls so far that it concerns, by name.
    pub calls: Vec<String>,
}

/// A gate that stands.
#[derive(Debug, Clone)]
pub struct Gate {
    client: Client,
    gates: String,
    control: String,
    id: u64,
}

impl Gate {
    /// Arms one at the engine of this address, whose test calls answer to this `Authorization`.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn arm(
        client: &Client,
        (aws_endpoint, control): (&str, &str),
        order: &Order,
    ) -> Result<Self, String> {
        let gates = format!("{}/_bobbin/gates", aws_endpoint.trim_end_matches('/'));
        let body = json!({
            "text": order.text, "function": order.function, "call": order.call, "nth": order.nth,
            "when": if order.after { "after" } else { "before" },
        });
        let made = call(client, Method::POST, &gates, control, &body)
            .await?
            .ok()?;
        let id = made["id"].as_u64().ok_or("the gate has no id")?;
        Ok(Self {
            client: client.clone(),
            gates,
            control: control.to_owned(),
            id,
        })
    }

    async fn call(&self, method: Method) -> Result<Value, String> {
        let url = format!("{}/{}", self.gates, self.id);
        call(&self.client, method, &url, &self.control, &Value::Null)
            .await?
            .ok()
    }

    /// Looks at it.
    ///
    /// # Errors
    /// When it does not stand any more.
    pub async fn look(&self) -> Result<Seen, String> {
        serde_json::from_value(self.call(Method::GET).await?).map_err(|error| error.to_string())
    }

    /// The process whose call is held at this moment.
    ///
    /// # Errors
    /// How it stands instead, with the calls so far.
    pub async fn holds(&self) -> Result<u32, String> {
        let seen = self.look().await?;
        match (seen.state.as_str(), seen.process) {
            ("held", Some(process)) => Ok(process),
            _ => Err(format!("{} after {:?}", seen.state, seen.calls)),
        }
    }

    /// Takes it away: what it holds goes on.
    ///
    /// # Errors
    /// When it does not stand any more.
    pub async fn remove(self) -> Result<(), String> {
        self.call(Method::DELETE).await.map(|_| ())
    }
}
