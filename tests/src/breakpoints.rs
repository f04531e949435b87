//! Breakpoints of the stack: each holds one call of one function's process, before it is processed or before its answer
//! goes out, and says which process made it.

use reqwest::{Client, Method};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::call;

/// The calls that a breakpoint holds.
#[derive(Debug, Clone, Default)]
pub struct Condition {
    /// Text in the event of the invocation that makes the call.
    pub text: String,
    /// The function, by its id in the template.
    pub function: String,
    /// The call's name; empty: none is held, calls are only written down.
    pub call: String,
    /// Which of the calls with this name, from 1.
    pub nth: usize,
    /// After it was processed, before its answer goes out; else before it is processed.
    pub after: bool,
}

/// State of a breakpoint.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct BreakpointStatus {
    /// `armed`, `held`, `passed`, or `gone` when the connection ended while it was held.
    pub state: String,
    /// The process whose call is, or was, held.
    pub process: Option<u32>,
    /// The matching calls so far, by name.
    pub calls: Vec<String>,
}

/// A breakpoint that is set.
#[derive(Debug, Clone)]
pub struct Breakpoint {
    client: Client,
    breakpoints: String,
    control: String,
    id: u64,
}

impl Breakpoint {
    /// Arms one at the engine of this address, whose test calls answer to this `Authorization`.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn arm(
        client: &Client,
        (aws_endpoint, control): (&str, &str),
        condition: &Condition,
    ) -> Result<Self, String> {
        let breakpoints = format!("{}/_bobbin/breakpoints", aws_endpoint.trim_end_matches('/'));
        let body = json!({
            "text": condition.text, "function": condition.function, "call": condition.call, "nth": condition.nth,
            "when": if condition.after { "after" } else { "before" },
        });
        let made = call(client, Method::POST, &breakpoints, control, &body).await?.ok()?;
        let id = made["id"].as_u64().ok_or("the breakpoint has no id")?;
        Ok(Self { client: client.clone(), breakpoints, control: control.to_owned(), id })
    }

    async fn call(&self, method: Method) -> Result<Value, String> {
        let url = format!("{}/{}", self.breakpoints, self.id);
        call(&self.client, method, &url, &self.control, &Value::Null).await?.ok()
    }

    /// Asks for its state.
    ///
    /// # Errors
    /// When it is not set any more.
    pub async fn status(&self) -> Result<BreakpointStatus, String> {
        serde_json::from_value(self.call(Method::GET).await?).map_err(|error| error.to_string())
    }

    /// The process whose call is held now.
    ///
    /// # Errors
    /// Its actual state, with the calls so far.
    pub async fn held_process(&self) -> Result<u32, String> {
        let seen = self.status().await?;
        match (seen.state.as_str(), seen.process) {
            ("held", Some(process)) => Ok(process),
            _ => Err(format!("{} after {:?}", seen.state, seen.calls)),
        }
    }

    /// Removes it: a held call continues.
    ///
    /// # Errors
    /// When it is not set any more.
    pub async fn remove(self) -> Result<(), String> {
        self.call(Method::DELETE).await.map(|_| ())
    }
}
