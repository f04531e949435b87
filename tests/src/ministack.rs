//! The other engine: ministack, somebody else's emulator of AWS, installed by hash into the project's cache, with the
//! project's template deployed by its CloudFormation and every role enforced.

use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::aws::ROOT;
use crate::limits::{DEPLOY_MS_MAX, EMULATOR_START_MS_MAX, MAPPINGS, ROLES_MS_MAX, STOP_MS_MAX};
use crate::ready::Ready;
use crate::stack::tail;
use crate::wait::within_blocking;
use crate::world::Deployment;
use crate::{binaries, processes, tools};

/// Name of the deployed stack.
const STACK: &str = "bobbin";
const REQUIREMENTS: &str = "tests/ministack/requirements.txt";

/// A running emulator. It ends when this is dropped; [`Emulator::end`] also reports leftovers.
pub struct Emulator {
    program: Child,
    guard: Child,
    folder: TempDir,
    python: PathBuf,
    endpoint: String,
}

#[derive(Deserialize)]
struct Deployed {
    function_url: String,
    table: String,
    messages_queue_url: String,
    control_queue_url: String,
    sweeper: String,
}

/// One call that was tried with a role's credentials.
#[derive(Debug, Clone, Deserialize)]
pub struct Cell {
    /// Logical id of the function whose role it is.
    pub role: String,
    /// The action, as IAM names it.
    pub action: String,
    /// Logical id of the resource; `other` for one that is not of the stack.
    pub resource: String,
    /// The role was refused.
    pub refused: bool,
    /// Code and words of the answer.
    pub answer: String,
}

/// The result of trying roles.
#[derive(Debug, Clone, Deserialize)]
pub struct Tried {
    /// Every call that the emulator can refuse, for each role.
    pub cells: Vec<Cell>,
    /// Calls that it does not refuse even to a role without any policy.
    pub unenforced: Vec<String>,
}

impl Emulator {
    /// Starts it: environment cleared, loopback only, signatures and roles checked, everything of it in one folder.
    ///
    /// # Errors
    /// When it cannot be installed, or does not answer within its bound; with the end of its output.
    pub fn start() -> Result<Self, String> {
        let requirements = binaries::workspace().join(REQUIREMENTS);
        let programs = tools::python("ministack", &requirements)?;
        let folder = tempfile::Builder::new()
            .prefix("bobbin-ministack-")
            .tempdir()
            .map_err(|error| error.to_string())?;
        let tmp = folder.path().join("tmp");
        std::fs::create_dir(&tmp).map_err(|error| error.to_string())?;
        let port = TcpListener::bind(("127.0.0.1", 0))
            .and_then(|free| free.local_addr())
            .map_err(|error| error.to_string())?
            .port();
        let endpoint = format!("http://127.0.0.1:{port}");
        let log =
            File::create(folder.path().join("output.log")).map_err(|error| error.to_string())?;
        let program = Command::new(programs.join("ministack"))
            .env_clear()
            .envs(
                ["PATH", "HOME"]
                    .into_iter()
                    .filter_map(|name| Some((name, std::env::var_os(name)?))),
            )
            .env("TMPDIR", &tmp)
            .env("BIND_HOST", "127.0.0.1")
            .env("GATEWAY_PORT", port.to_string())
            .env("MINISTACK_HOST", "127.0.0.1")
            .env("IOT_MTLS_ENABLED", "0")
            .env("AUTH", "true")
            .env("AWS_ENDPOINT_URL", &endpoint)
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("AWS_DEFAULT_REGION", "us-east-1")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(|error| error.to_string())?)
            .stderr(log)
            .process_group(0)
            .spawn()
            .map_err(|error| format!("ministack cannot be started: {error}"))?;
        let guard = guard(program.id())?;
        let mut emulator =
            Self { program, guard, folder, python: programs.join("python"), endpoint };
        let up = within_blocking(EMULATOR_START_MS_MAX, || match emulator.program.try_wait() {
            Ok(None) if answers(port) => Ok(Ok(())),
            Ok(None) => Err("it does not answer yet".to_owned()),
            ended => Ok(Err(format!("it ended: {ended:?}"))),
        });
        match up {
            Ok(Ok(())) => Ok(emulator),
            Ok(Err(why)) | Err(why) => {
                Err(format!("ministack is not up: {why}\n{}", emulator.tail()))
            }
        }
    }

    /// Deploys the project's template with functions that use this stack's parts, and returns their addresses.
    ///
    /// # Errors
    /// What CloudFormation said.
    pub fn deploy(&self, ready: &Ready, limits: &Value) -> Result<Deployment, String> {
        let built = binaries::folder();
        let wanted = json!({
            "endpoint": self.endpoint, "stack": STACK, "mappings": MAPPINGS, "template": binaries::workspace().join("template.yaml"),
            "functions": {"Ingress": built.join("ingress"), "Worker": built.join("worker"), "Sweeper": built.join("sweeper"), "Tools": built.join("tools")},
            "parameters": parameters(ready, limits), "secrets": secrets(ready),
        });
        let output = self.script("deploy.py", &wanted, DEPLOY_MS_MAX)?;
        let deployed: Deployed =
            serde_json::from_slice(&output).map_err(|error| format!("the script said: {error}"))?;
        // Without its host name a function URL is reached by its id in the path.
        let id = deployed
            .function_url
            .split("://")
            .nth(1)
            .and_then(|host| host.split('.').next())
            .ok_or("the function URL has no host")?;
        Ok(Deployment {
            ingress: format!("{}/_aws/lambda-url/{id}", self.endpoint),
            aws_endpoint: self.endpoint.clone(),
            aws_key: (ROOT.to_owned(), ROOT.to_owned()),
            table: deployed.table,
            messages_queue_url: deployed.messages_queue_url,
            control_queue_url: deployed.control_queue_url,
            sweeper: deployed.sweeper,
        })
    }

    /// Tries every call of these services with the credentials of each function's role.
    ///
    /// # Errors
    /// What the script said.
    pub fn try_roles(&self, functions: &[&str], services: &[&str]) -> Result<Tried, String> {
        let wanted = json!({
            "endpoint": self.endpoint, "stack": STACK, "roles": functions, "services": services,
        });
        let output = self.script("roles.py", &wanted, ROLES_MS_MAX)?;
        serde_json::from_slice(&output).map_err(|error| format!("the script said: {error}"))
    }

    /// Runs a script of `tests/ministack`, which reads and prints one JSON object.
    fn script(&self, name: &str, wanted: &Value, within_ms: u64) -> Result<Vec<u8>, String> {
        let mut command = Command::new(&self.python);
        command
            .arg(binaries::workspace().join("tests/ministack").join(name))
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .stdin(Stdio::piped());
        let told = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        let said = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        // Files, because a pipe that nobody reads has a small buffer.
        let mut child = command
            .stdout(told.reopen().map_err(|error| error.to_string())?)
            .stderr(said.reopen().map_err(|error| error.to_string())?)
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut stdin = child.stdin.take().ok_or("the script has no standard input")?;
        stdin.write_all(wanted.to_string().as_bytes()).map_err(|error| error.to_string())?;
        drop(stdin);
        let status = finished(&mut child, within_ms)?;
        if status.success() {
            return std::fs::read(told.path()).map_err(|error| error.to_string());
        }
        Err(format!("{name} ended with {status}: {}\n{}", tail(said.path()), self.tail()))
    }

    /// The end of its output, the functions' included.
    #[must_use]
    pub fn tail(&self) -> String {
        tail(&self.folder.path().join("output.log"))
    }

    /// Ends it with its functions, and checks for leftovers.
    ///
    /// # Errors
    /// When processes of it are left; they are ended then.
    pub fn end(mut self) -> Result<(), String> {
        self.stop();
        processes::end_left(self.folder.path())
    }

    fn stop(&mut self) {
        processes::terminate(self.program.id());
        let _ = within_blocking(STOP_MS_MAX, || match self.program.try_wait() {
            Ok(Some(_)) => Ok(()),
            _ => Err("it still runs"),
        });
        // Its functions are in its group; it does not end them itself.
        processes::kill_group(self.program.id());
        let _ = self.program.wait();
        let _ = self.guard.kill();
        let _ = self.guard.wait();
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Ends the emulator's group when this program is gone, however it went.
fn guard(leader: u32) -> Result<Child, String> {
    Command::new("sh")
        .args(["-c", "read _; kill -KILL -- \"-$1\"", "sh", &leader.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| error.to_string())
}

fn answers(port: u16) -> bool {
    std::net::TcpStream::connect_timeout(&([127, 0, 0, 1], port).into(), Duration::from_millis(500))
        .is_ok()
}

/// Waits for a program, and ends it when it takes too long.
fn finished(child: &mut Child, within_ms: u64) -> Result<ExitStatus, String> {
    let ended = within_blocking(within_ms, || match child.try_wait() {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err("it still runs".to_owned()),
        Err(error) => Err(error.to_string()),
    });
    if ended.is_err() {
        let _ = child.kill();
    }
    child.wait().map_err(|error| error.to_string())
}

/// The template's parameters: the local platforms, provider and model.
fn parameters(ready: &Ready, limits: &Value) -> Value {
    let overrides = json!({
        "daytona_api": ready.daytona_api, "discord_api": ready.discord_api, "slack_api": ready.slack_api,
        "model_base_url": ready.model_api, "limits": limits,
    });
    json!({
        "DiscordApplicationId": ready.discord_application_id,
        "DiscordPublicKey": ready.discord_public_key,
        "AllowedGuilds": ready.discord_guild_id,
        "AllowedTeams": ready.slack_team_id,
        "Model": "scripted/scripted-1",
        "TenantCredentials": "yes",
        // With less there is no function for tools.
        "Concurrency": "200",
        "ServeTools": "yes",
        "Overrides": overrides.to_string(),
    })
}

/// The secrets that an operator stores after the deployment.
fn secrets(ready: &Ready) -> Value {
    json!({
        "IngressSecret": json!({"slack_signing_secret": ready.slack_signing_secret}).to_string(),
        "WorkerSecret": json!({
            "discord_bot_token": ready.discord_bot_token, "slack_bot_token": ready.slack_bot_token,
        }).to_string(),
        "ProviderSecret": json!({"daytona_api_key": ready.daytona_api_key}).to_string(),
    })
}
