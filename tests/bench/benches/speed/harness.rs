//! The environment of the measured programs: the laptop stack, relays to its parts, an application that signs commands,
//! and a function's environment that leads through the relays.
//!
//! The stack's own functions are given nothing from its queues: what they would do, the programs that are measured do.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bobbin_local_aws::Invoked;
use bobbin_tests::http;
use bobbin_tests::stack::{Options, Stack};
use bobbin_tests::world::World;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::Application;
use crate::figures::Report;
use crate::process::{Program, Running, runtime};
use crate::programs;
use crate::relay::Relays;
use crate::stand_in::certified::certified;
use crate::trips::Peer;

pub const PEER: &str = "peer";
/// The name of the stack whose functions are measured; the stack's own sweeper leaves its sandboxes alone.
pub const STACK: &str = "bench";
pub const STACK_ID: &str = "this-one";

/// The environment variable with the parameter of that name.
const OVERRIDES: &str = "OVERRIDES";
const REGION: &str = "us-east-1";
const ACCOUNT: &str = "123456789012";
/// The queues from which the stack's own functions would get work.
const QUEUES: [&str; 4] = ["Messages", "Control", "MessagesDead", "ControlDead"];
/// A turn that takes longer is given up.
const TURN_MAX: Duration = Duration::from_secs(120);

/// Ends with its value.
pub struct Harness {
    /// The relays between the programs and the stack.
    pub relays: Arc<Relays>,
    pub application: Application,
    /// The stack, as tests see it.
    pub world: World,
    /// Each program's environment.
    environment: Vec<(String, String)>,
    authority: PathBuf,
    _stack: Stack,
    folder: TempDir,
}

impl Harness {
    /// A new one, with the stand-in for the agent in its sandboxes.
    ///
    /// # Errors
    /// A sentence with what failed.
    pub fn new() -> Result<Self, String> {
        Self::start(true)
    }

    /// A new one with the real agent.
    ///
    /// # Errors
    /// A sentence with what failed.
    pub fn with_agent() -> Result<Self, String> {
        Self::start(false)
    }

    fn start(stand_in_agent: bool) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let stack = Stack::start(&Options {
            binaries: Some(programs::folder()?.to_owned()),
            stand_in_agent,
            ..Options::default()
        });
        let world = World::of(&stack);
        let application = Application::default();
        let (config, authority) = certified(&["localhost"])?;
        let file = folder.path().join("authority.pem");
        fs::write(&file, authority).map_err(|e| e.to_string())?;
        let ready = &world.ready;
        let (relays, ports) = runtime().block_on(async {
            for queue in QUEUES {
                let path = format!("queues/{}/mapping", resource(&world, queue, ".fifo"));
                let off = json!({"enabled": false});
                world.engine(Method::POST, &path, &off).await?;
            }
            let relays = Relays::new();
            let open = |peer, to: &str, tls| {
                let opened = relays.open(peer, host(to), tls);
                opened.map_err(|e| e.to_string())
            };
            let aws = open(Peer::Aws, &ready.aws_endpoint, Some(config))?;
            let chat = open(Peer::Chat, &ready.discord_api, None)?;
            let provider = open(Peer::Provider, &ready.daytona_api, None)?;
            Ok::<_, String>((Arc::clone(&relays), [aws, chat, provider]))
        })?;
        Ok(Self {
            relays,
            environment: environment(&world, &application, ports, &file),
            application,
            world,
            authority: file,
            _stack: stack,
            folder,
        })
    }

    /// A program of this build, with a function's environment.
    ///
    /// # Errors
    /// A sentence, if it cannot be built.
    pub fn ours(&self, name: &str) -> Result<Program, String> {
        Ok(self.program(name, programs::folder()?.join(name)))
    }

    /// The same with these additional settings of the parameter `Overrides`, an object.
    ///
    /// # Errors
    /// As [`Harness::ours`].
    pub fn ours_with(&self, name: &str, overrides: &Value) -> Result<Program, String> {
        let mut program = self.ours(name)?;
        let mut all: Value =
            serde_json::from_str(program.variable(OVERRIDES)).map_err(|e| e.to_string())?;
        for (setting, value) in overrides.as_object().into_iter().flatten() {
            all[setting] = value.clone();
        }
        let mut variables = program.environment.iter_mut();
        if let Some((_, value)) = variables.find(|(name, _)| name == OVERRIDES) {
            *value = all.to_string();
        }
        Ok(program)
    }

    /// An executable, with the environment of a function.
    #[must_use]
    pub fn program(&self, name: &str, executable: PathBuf) -> Program {
        Program {
            name: name.to_owned(),
            executable,
            arguments: Vec::new(),
            environment: self.environment.clone(),
        }
    }

    /// The peer in Node, if Node is installed.
    ///
    /// # Errors
    /// A sentence, if it cannot be built.
    pub fn peer(&self, report: &mut Report) -> Result<Option<Program>, String> {
        let Some((bundle, version)) = programs::peer()? else {
            return Ok(None);
        };
        let condition = format!("peer: Node {version}");
        if !report.conditions.contains(&condition) {
            report.conditions.push(condition);
        }
        Ok(Some(Program {
            arguments: vec![bundle.display().to_string()],
            ..self.program(PEER, programs::on_path("node")?)
        }))
    }

    /// Other builds of the worker and the sweeper, if the environment names a folder with them.
    #[must_use]
    pub fn compared_functions(&self) -> Vec<Program> {
        let folder = env::var_os("BOBBIN_BENCH_COMPARED_FUNCTIONS").map(PathBuf::from);
        let found = folder.into_iter().flat_map(|folder| {
            ["worker", "sweeper"].map(|name| self.program(&compared(name), folder.join(name)))
        });
        found.collect()
    }

    /// Another build of ingress, if the environment names one.
    ///
    /// # Errors
    /// A sentence, if there is nothing that it can trust.
    pub fn compared(&self) -> Result<Option<Program>, String> {
        let Some(executable) = env::var_os("BOBBIN_BENCH_COMPARED") else {
            return Ok(None);
        };
        let mut program = self.program("compared", executable.into());
        // Builds before the first bench trusted the machine's roots.
        let roots = all_roots(&self.authority, self.folder.path())?;
        let roots = ("SSL_CERT_FILE".to_owned(), roots.display().to_string());
        program.environment.push(roots);
        Ok(Some(program))
    }

    /// Number of calls with this name since the last question. Each was done as requested, which means for AWS that its
    /// signature was right, and for a message that it has a group and a deduplication id.
    ///
    /// # Errors
    /// A call that was refused.
    pub fn taken(&self, name: &str) -> Result<u64, String> {
        let calls = self.relays.recorded().calls;
        match calls.iter().find(|call| call.status != 200) {
            Some(refused) => Err(format!("{} was answered with {}", refused.name, refused.status)),
            None => Ok(calls.iter().filter(|call| call.name == name).count() as u64),
        }
    }

    /// A new thread on Discord, as queue messages name it.
    ///
    /// # Errors
    /// What Discord said.
    pub fn thread(&self) -> Result<String, String> {
        let ready = &self.world.ready;
        let url = format!("{}/channels/{}/threads", ready.discord_api, ready.discord_channel_id);
        let authorization = format!("Bot {}", ready.discord_bot_token);
        let thread = json!({"name": "a thread of the bench", "type": 11});
        let made = runtime().block_on(async {
            let client = http::client();
            http::call(&client, Method::POST, &url, &authorization, &thread).await?.ok()
        })?;
        let id = made["id"].as_str().ok_or("the thread has no id")?;
        Ok(self.world.discord.thread(id)?.key.to_string())
    }

    /// Puts a prompt with this number on the queue, has the worker process it as Lambda would, and checks that it is
    /// done. From time to time `look` checks the worker's process.
    ///
    /// # Errors
    /// What the worker did instead.
    pub fn turn(
        &self,
        running: &mut Running,
        (thread, number, text): (&str, u64, &str),
        every: Duration,
        look: impl FnMut(u32) -> Result<(), String>,
    ) -> Result<Invoked, String> {
        let prompt = json!({
            "work": "prompt", "text": text, "attachments": [],
            "by": {"id": self.world.ready.discord_user_id, "name": "Anna"},
        });
        self.work(running, (thread, number, &prompt), every, look)
    }

    /// The same with any work of a thread.
    ///
    /// # Errors
    /// As [`Harness::turn`].
    pub fn work(
        &self,
        running: &mut Running,
        message: (&str, u64, &Value),
        every: Duration,
        look: impl FnMut(u32) -> Result<(), String>,
    ) -> Result<Invoked, String> {
        let (event, receipt) = runtime().block_on(self.accepted(message))?;
        let invoked = running.invoke_watched(event, TURN_MAX, every, look)?;
        let body = invoked.result.as_ref().unwrap_or_else(|error| error);
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        if answer["batchItemFailures"] != json!([]) {
            return Err(format!("the message of a turn was given back: {answer}"));
        }
        runtime().block_on(self.delete(&receipt))?;
        Ok(invoked)
    }

    /// The event of a message as ingress accepts it, and its receipt.
    async fn accepted(
        &self,
        (thread, number, work): (&str, u64, &Value),
    ) -> Result<(Vec<u8>, Value), String> {
        let (aws, queue) = (&self.world.aws, &self.world.deployment.messages_queue_url);
        let id = (1_240_000_000_000_000_000 + number).to_string();
        let message = json!({
            "schema": 1, "kind": "message", "id": id, "thread": thread, "accepted_at_ms": now_ms(), "work": work,
        });
        let send = json!({
            "QueueUrl": queue, "MessageBody": message.to_string(), "MessageGroupId": thread, "MessageDeduplicationId": id,
        });
        aws.call("sqs", "AmazonSQS.SendMessage", &send).await?;
        let receive = json!({"QueueUrl": queue, "MessageSystemAttributeNames": ["All"]});
        loop {
            let received = aws.call("sqs", "AmazonSQS.ReceiveMessage", &receive).await?;
            let received = &received["Messages"][0];
            let receipt = received["ReceiptHandle"].clone();
            if received["Attributes"]["MessageDeduplicationId"] == id {
                let record = json!({
                    "messageId": received["MessageId"], "receiptHandle": receipt, "body": received["Body"],
                    "attributes": received["Attributes"], "messageAttributes": {}, "eventSource": "aws:sqs",
                    "eventSourceARN": arn("sqs", &resource(&self.world, "Messages", ".fifo")), "awsRegion": REGION,
                });
                let event = json!({ "Records": [record] });
                return Ok((event.to_string().into_bytes(), receipt));
            }
            if receipt.is_null() {
                return Err("the message is not on the queue".to_owned());
            }
            // A wake-up of an earlier turn, which would block its thread.
            self.delete(&receipt).await?;
        }
    }

    async fn delete(&self, receipt: &Value) -> Result<(), String> {
        let queue = &self.world.deployment.messages_queue_url;
        let delete = json!({"QueueUrl": queue, "ReceiptHandle": receipt});
        let deleted = self.world.aws.call("sqs", "AmazonSQS.DeleteMessage", &delete);
        deleted.await.map(drop)
    }
}

/// The name of another build of a program.
#[must_use]
pub fn compared(name: &str) -> String {
    format!("{name} compared")
}

/// Milliseconds since the epoch.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

/// The host and port of an address.
#[must_use]
pub fn host(address: &str) -> &str {
    let rest = address.strip_prefix("http://").unwrap_or(address);
    rest.split('/').next().unwrap_or(rest)
}

/// The laptop stack names its resources `<stack>-<logical id>`, as the table's name shows.
fn resource(world: &World, logical: &str, suffix: &str) -> String {
    let name = world.deployment.table.replace("Table", logical);
    format!("{name}{suffix}")
}

fn arn(service: &str, name: &str) -> String {
    format!("arn:aws:{service}:{REGION}:{ACCOUNT}:{name}")
}

/// The environment of a function of the stack, as the template and Lambda set it, with the relays' ports.
fn environment(
    world: &World,
    application: &Application,
    [aws, chat, provider]: [u16; 3],
    authority: &Path,
) -> Vec<(String, String)> {
    let endpoint = format!("https://localhost:{aws}");
    let named = |logical: &str| resource(world, logical, "");
    let fifo = |logical: &str| resource(world, logical, ".fifo");
    let queue = |logical: &str| format!("{endpoint}/{ACCOUNT}/{}", fifo(logical));
    let path = |address: &str| address.replace("http://", "").replace(host(address), "");
    let ready = &world.ready;
    let overrides = json!({
        "discord_api": format!("http://127.0.0.1:{chat}{}", path(&ready.discord_api)),
        "daytona_api": format!("http://127.0.0.1:{provider}{}", path(&ready.daytona_api)),
        "model_base_url": ready.model_api,
    });
    let authority = authority.display().to_string();
    let guilds = format!("{},{}", application.guild(), ready.discord_guild_id);
    let (id, secret) = world.deployment.aws_key.clone();
    [
        ("AWS_LAMBDA_FUNCTION_NAME", STACK.to_owned()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128".to_owned()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/bench".to_owned()),
        ("AWS_LAMBDA_LOG_STREAM_NAME", STACK.to_owned()),
        ("AWS_REGION", REGION.to_owned()),
        ("AWS_ACCESS_KEY_ID", id),
        ("AWS_SECRET_ACCESS_KEY", secret),
        ("AWS_ENDPOINT_URL", endpoint.clone()),
        // How each is told which roots to trust on loopback.
        ("AWS_CA_BUNDLE", authority.clone()),
        ("NODE_EXTRA_CA_CERTS", authority),
        // The peer need not warn about the age of its Node.
        ("AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED", "true".to_owned()),
        ("PATH", "/usr/bin:/bin".to_owned()),
        ("STACK", STACK.to_owned()),
        ("STACK_ID", STACK_ID.to_owned()),
        ("TABLE", named("Table")),
        ("MESSAGES_QUEUE_URL", queue("Messages")),
        ("CONTROL_QUEUE_URL", queue("Control")),
        ("MESSAGES_DEAD_QUEUE_URL", queue("MessagesDead")),
        ("CONTROL_DEAD_QUEUE_URL", queue("ControlDead")),
        ("WAKES_DEAD_QUEUE_URL", format!("{endpoint}/{ACCOUNT}/{}", named("WakesDead"))),
        ("INGRESS_SECRET_ID", named("IngressSecret")),
        ("WORKER_SECRET_ID", named("WorkerSecret")),
        ("PROVIDER_SECRET_ID", named("ProviderSecret")),
        ("STACK_KEY_ID", named("StackKey")),
        ("SCHEDULE_GROUP", named("Wakes")),
        ("SCHEDULE_ROLE_ARN", format!("arn:aws:iam::{ACCOUNT}:role/bench")),
        ("MESSAGES_QUEUE_ARN", arn("sqs", &fifo("Messages"))),
        ("SCHEDULE_DEAD_QUEUE_ARN", arn("sqs", &named("WakesDead"))),
        ("DISCORD_APPLICATION_ID", application.id().to_owned()),
        ("DISCORD_PUBLIC_KEY", application.public_key()),
        ("MODEL", "scripted/scripted-1".to_owned()),
        ("ALLOWED_GUILDS", guilds),
        (OVERRIDES, overrides.to_string()),
        ("LOG_LEVEL", "info".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// The machine's roots and the authority's, in one file.
fn all_roots(authority: &Path, folder: &Path) -> Result<PathBuf, String> {
    let read = |path: &Path| fs::read_to_string(path).map_err(|e| e.to_string());
    let roots = read(Path::new("/etc/ssl/certs/ca-certificates.crt")).unwrap_or_default();
    let file = folder.join("roots.pem");
    let text = format!("{roots}\n{}", read(authority)?);
    fs::write(&file, text).map_err(|e| e.to_string())?;
    Ok(file)
}
