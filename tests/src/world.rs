//! One stack as the tests see it, on either engine.

use std::path::PathBuf;

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::person::Person;
use bobbin_core::records::parked::Parked;
use bobbin_core::records::session::Session;
use reqwest::Method;
use serde_json::{Value, json};

use crate::aws::Aws;
use crate::breakpoints::{Breakpoint, Condition};
use crate::chat::{Discord, Platform, Slack};
use crate::http;
use crate::limits::VISIBLE_MS_MAX;
use crate::model::{self, Call};
use crate::provider::{Provider, Sandbox};
use crate::ready::Ready;
use crate::stack::Stack;
use crate::wait::eventually;

/// Where the functions run.
#[derive(Debug, Clone)]
pub struct Deployment {
    /// Base of the ingress paths.
    pub ingress: String,
    /// Address of the AWS calls.
    pub aws_endpoint: String,
    /// Key that signs them: its id and the secret.
    pub aws_key: (String, String),
    /// Name of the stack's table.
    pub table: String,
    /// Address of the queue of messages.
    pub messages_queue_url: String,
    /// Queue of control messages.
    pub control_queue_url: String,
    /// The sweeper's function name.
    pub sweeper: String,
}

/// One stack, for one test.
#[derive(Debug, Clone)]
pub struct World {
    /// The stack's ready file.
    pub ready: Ready,
    /// Where the functions run.
    pub deployment: Deployment,
    /// Where the stack keeps its things.
    pub state_dir: PathBuf,
    /// Table, queues and schedules of the stack.
    pub aws: Aws,
    /// People and bots of the stack's Discord.
    pub discord: Discord,
    /// People and bots of the stack's Slack.
    pub slack: Slack,
    /// The sandboxes that the stack's provider has.
    pub provider: Provider,
    client: reqwest::Client,
}

impl World {
    /// A stack with the embedded engine.
    #[must_use]
    pub fn of(stack: &Stack) -> Self {
        let ready = &stack.ready;
        let deployment = Deployment {
            ingress: ready.ingress.clone(),
            aws_endpoint: ready.aws_endpoint.clone(),
            aws_key: (ready.aws_access_key_id.clone(), ready.aws_secret_access_key.clone()),
            table: ready.table.clone(),
            messages_queue_url: ready.messages_queue_url.clone(),
            control_queue_url: ready.control_queue_url.clone(),
            // The embedded engine names its resources `<stack>-<logical id>`, as the table's name shows.
            sweeper: ready.table.replace("Table", "Sweeper"),
        };
        Self::on(stack, deployment)
    }

    /// A stack with the embedded engine whose sandboxes run at the second provider.
    #[must_use]
    pub fn at_vercel(stack: &Stack) -> Self {
        let world = Self::of(stack);
        let ready = &stack.ready;
        let place = (ready.vercel_team_id.as_str(), ready.vercel_project_id.as_str());
        let (api, token) = (&ready.vercel_api, &ready.vercel_token);
        Self { provider: Provider::vercel(&world.client, api, token, place), ..world }
    }

    /// A stack whose sandboxes run on an SSH host, whose `/var/lib/bobbin` is this folder.
    #[must_use]
    pub fn on_host(stack: &Stack, folder: PathBuf) -> Self {
        let world = Self::of(stack);
        Self { provider: Provider::on_host(&world.client, folder), ..world }
    }

    /// A stack whose functions run elsewhere.
    #[must_use]
    pub fn on(stack: &Stack, deployment: Deployment) -> Self {
        let client = http::client();
        let ready = stack.ready.clone();
        Self {
            aws: Aws::new(&client, &deployment.aws_endpoint, &deployment.aws_key),
            discord: Discord::new(&client, &ready, &deployment.ingress),
            slack: Slack::new(&client, &ready, &deployment.ingress),
            provider: Provider::new(&client, &ready.daytona_api, &ready.daytona_api_key),
            state_dir: stack.state_dir(),
            ready,
            deployment,
            client,
        }
    }

    /// The model's requests so far.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub async fn model_calls(&self) -> Result<Vec<Call>, String> {
        let base = self.ready.model_api.trim_end_matches('/');
        let base = base.strip_suffix("/v1").unwrap_or(base);
        model::read(
            &http::call(
                &self.client,
                Method::GET,
                &format!("{base}/calls"),
                &self.ready.control(),
                &Value::Null,
            )
            .await?
            .ok()?,
        )
    }

    /// The keys that the model's vendor has made, newest first.
    ///
    /// # Errors
    /// When they are not listed.
    pub async fn model_keys(&self) -> Result<Vec<Value>, String> {
        let url = format!("{}/keys?include_disabled=true", self.ready.model_api);
        let answer = http::call(&self.client, Method::GET, &url, "Bearer a-manager", &Value::Null);
        let listed = answer.await?.ok()?;
        Ok(listed["data"].as_array().cloned().unwrap_or_default())
    }

    /// Has the model's vendor make a key with this name.
    ///
    /// # Errors
    /// When it does not.
    pub async fn make_model_key(&self, name: &str) -> Result<(), String> {
        let url = format!("{}/keys", self.ready.model_api);
        let body = json!({ "name": name, "limit": 1 });
        let made = http::call(&self.client, Method::POST, &url, "Bearer a-manager", &body);
        made.await?.ok().map(drop)
    }

    /// Sets the price of a million of the model's tokens.
    ///
    /// # Errors
    /// When it is not set.
    pub async fn set_model_price(&self, usd_per_million: f64) -> Result<(), String> {
        let base = self.ready.model_api.trim_end_matches('/');
        let url = format!("{}/price", base.strip_suffix("/v1").unwrap_or(base));
        let body = json!({ "usd_per_million": usd_per_million });
        let control = self.ready.control();
        let set = http::call(&self.client, Method::PUT, &url, &control, &body);
        set.await?.ok().map(drop)
    }

    /// The record of a thread.
    ///
    /// # Errors
    /// When there is none.
    pub async fn session(&self, thread: &ThreadKey) -> Result<Session, String> {
        self.aws.session(&self.deployment.table, thread).await
    }

    /// The state that the last delivery of a thread's turn has left for the next one.
    ///
    /// # Errors
    /// When there is nothing.
    pub async fn parked(&self, thread: &ThreadKey) -> Result<Parked, String> {
        self.aws.parked(&self.deployment.table, thread).await
    }

    /// The content of a secret of the embedded engine, by its logical id.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn secret(&self, logical: &str) -> Result<Value, String> {
        let asked = json!({"SecretId": self.secret_id(logical)});
        let target = "secretsmanager.GetSecretValue";
        let answer = self.aws.call("secretsmanager", target, &asked).await?;
        let text = answer["SecretString"].as_str().unwrap_or_default();
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Adds keys to a secret of the embedded engine; null removes one.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub async fn store(&self, logical: &str, keys: &Value) -> Result<(), String> {
        let mut value = self.secret(logical).await?;
        for (name, key) in keys.as_object().into_iter().flatten() {
            match key {
                Value::Null => {
                    value.as_object_mut().and_then(|all| all.remove(name));
                }
                key => value[name] = key.clone(),
            }
        }
        let put = json!({"SecretId": self.secret_id(logical), "SecretString": value.to_string()});
        let target = "secretsmanager.PutSecretValue";
        self.aws.call("secretsmanager", target, &put).await.map(drop)
    }

    /// The embedded engine names its resources `<stack>-<logical id>`, as the table's name shows.
    fn secret_id(&self, logical: &str) -> String {
        self.deployment.table.replace("Table", logical)
    }

    /// Lets the sweeper look now, instead of at the next full minute.
    ///
    /// # Errors
    /// When the function failed.
    pub async fn sweep(&self) -> Result<(), String> {
        self.aws.invoke(&self.deployment.sweeper, &json!({})).await.map(|_| ())
    }

    /// Loses the records of a thread, as a table may that was restored to an earlier point.
    ///
    /// # Errors
    /// When they cannot be deleted.
    pub async fn forget(&self, thread: &ThreadKey) -> Result<(), String> {
        for item in ["session", "sandbox"] {
            let key = json!({"thread": {"S": thread.to_string()}, "item": {"S": item}});
            let body = json!({"TableName": self.deployment.table, "Key": key});
            let target = "DynamoDB_20120810.DeleteItem";
            self.aws.call("dynamodb", target, &body).await?;
        }
        Ok(())
    }

    /// The platforms deliver to this address from now on.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn deliver_to(&self, url: &str) -> Result<(), String> {
        let address = format!("{}/_control/ingress", self.ready.console);
        http::call(
            &self.client,
            Method::POST,
            &address,
            &self.ready.control(),
            &json!({"url": url}),
        )
        .await?
        .ok()
        .map(|_| ())
    }

    /// Somebody else who may use it.
    ///
    /// # Panics
    /// When the chat does not tell its people.
    pub async fn colleague(&self, platform: Platform) -> Person {
        let address = format!("{}/_control/seeds", self.ready.console);
        let control = self.ready.control();
        let seeds = http::call(&self.client, Method::GET, &address, &control, &Value::Null)
            .await
            .and_then(|answer| answer.ok())
            .unwrap_or_else(|why| panic!("{why}"));
        let id = match platform {
            Platform::Discord => &seeds["member_user_id"],
            Platform::Slack => &seeds["slack_member_user_id"],
        };
        Person { id: id.as_str().unwrap_or_default().to_owned(), name: "Sam".to_owned() }
    }

    /// Arms a breakpoint at the embedded engine.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn breakpoint(&self, condition: &Condition) -> Breakpoint {
        let engine = (self.deployment.aws_endpoint.as_str(), &*self.ready.control());
        Breakpoint::arm(&self.client, engine, condition)
            .await
            .unwrap_or_else(|why| panic!("no breakpoint: {why}"))
    }

    /// A test call of the embedded engine, below `/_bobbin/`.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn engine(&self, method: Method, path: &str, body: &Value) -> Result<Value, String> {
        let url = format!("{}/_bobbin/{path}", self.deployment.aws_endpoint);
        let control = self.ready.control();
        http::call(&self.client, method, &url, &control, body).await?.ok()
    }

    /// Kills a function's processes (by its logical id) as the system would. Returns their ids.
    ///
    /// # Errors
    /// When there is no such function.
    pub async fn kill(&self, function: &str) -> Result<Vec<u64>, String> {
        let path = format!("functions/{function}/kill");
        let answer = self.engine(Method::POST, &path, &Value::Null).await?;
        let killed = answer["killed"].as_array().cloned().unwrap_or_default();
        Ok(killed.iter().filter_map(Value::as_u64).collect())
    }

    /// Pushes the clock of the embedded engine's queues and schedules forward.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn advance_clock(&self, ms: u32) -> Result<(), String> {
        let body = json!({"advance_ms": ms});
        self.engine(Method::POST, "clock", &body).await.map(|_| ())
    }

    /// Nothing is under way any more: both queues are empty, and every sandbox has a record.
    ///
    /// # Panics
    /// When it does not become so within its bound.
    pub async fn check_quiet(&self) {
        let queues = [&self.deployment.messages_queue_url, &self.deployment.control_queue_url];
        eventually(VISIBLE_MS_MAX, "the queues are empty", async || {
            for url in queues {
                match self.aws.queued(url).await? {
                    0 => {}
                    count => return Err(format!("{count} messages at {url}")),
                }
            }
            self.check_orphans().await
        })
        .await;
    }

    /// Every live sandbox belongs to a record's current generation; only at rest.
    ///
    /// # Errors
    /// The names of the orphans.
    pub async fn check_orphans(&self) -> Result<(), String> {
        let sessions = self.aws.sessions(&self.deployment.table).await?;
        let owned = |one: &Sandbox| {
            sessions.iter().any(|session| {
                one.generation_of(&session.thread) == Some(session.sandbox.generation)
            })
        };
        let orphans: Vec<String> = self
            .provider
            .list()
            .await?
            .into_iter()
            .filter(|one| one.live() && !owned(one))
            .map(|one| one.name)
            .collect();
        if orphans.is_empty() {
            Ok(())
        } else {
            Err(format!("sandboxes that no record knows: {orphans:?}"))
        }
    }
}
