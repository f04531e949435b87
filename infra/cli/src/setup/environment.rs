//! `env`: writes the template's variables for the functions, with a stack's values, as the file for `sam local invoke
//! --env-vars`. SAM resolves no reference to a resource, and takes variables of the same name from the shell; so every
//! variable is written, including empty ones.
//!
//! Promised: the file contains no secret; it names secrets, and the function reads them with the credentials that SAM
//! passes on.

use std::path::PathBuf;

use bobbin_cloud::deployed::Deployed;
use bobbin_http::is_loopback;
use clap::Args;
use serde_json::{Map, Value, json};

use super::report::Report;
use crate::target::StackTarget;

/// Package of this program, for `cargo run`.
const PACKAGE: &str = env!("CARGO_PKG_NAME");
/// Docker Desktop's name for the host.
const DOCKER_DESKTOP: &str = "host.docker.internal";

/// Write env.json.
#[derive(Debug, Clone, Args)]
pub struct EnvironmentOptions {
    /// Where to write it; `-` prints it
    #[arg(long, value_name = "FILE", default_value = "env.json")]
    file: PathBuf,
    /// How containers reach this machine if the stack runs on it: an address of its bridge, or a name. By default what
    /// the laptop stack was started with, or on macOS host.docker.internal
    #[arg(long, value_name = "HOST")]
    container_host: Option<String>,
}

impl EnvironmentOptions {
    /// Whether it goes to standard output.
    pub fn is_printed(&self) -> bool {
        self.file.as_os_str() == "-"
    }
}

/// Source of a variable's value.
#[derive(Debug, Clone, Copy)]
enum ValueSource {
    /// Stack name.
    Name,
    /// Unique stack id: the end of its ARN.
    Id,
    /// A stack output.
    Output(&'static str),
    /// An output that exists only if a feature is on; else empty.
    OutputIfAny(&'static str),
    /// A stack parameter.
    Parameter(&'static str),
    /// The log level, from the parameter `Observability`.
    LogLevel,
    /// The AWS endpoint override; empty for a deployed stack.
    Endpoint,
}

/// Variables of every function.
const EVERY: [(&str, ValueSource); 19] = [
    ("AWS_ENDPOINT_URL", ValueSource::Endpoint),
    ("STACK", ValueSource::Name),
    ("STACK_ID", ValueSource::Id),
    ("TABLE", ValueSource::Output("TableName")),
    ("MESSAGES_QUEUE_URL", ValueSource::Output("MessagesQueueUrl")),
    ("CONTROL_QUEUE_URL", ValueSource::Output("ControlQueueUrl")),
    ("MESSAGES_DEAD_QUEUE_URL", ValueSource::Output("MessagesDeadQueueUrl")),
    ("CONTROL_DEAD_QUEUE_URL", ValueSource::Output("ControlDeadQueueUrl")),
    ("DISCORD_APPLICATION_ID", ValueSource::Parameter("DiscordApplicationId")),
    ("DISCORD_PUBLIC_KEY", ValueSource::Parameter("DiscordPublicKey")),
    ("DAYTONA_SNAPSHOT", ValueSource::Parameter("DaytonaSnapshot")),
    ("MODEL", ValueSource::Parameter("Model")),
    ("SANDBOX_RUNTIME_MODE", ValueSource::Parameter("SandboxRuntimeMode")),
    ("ALLOWED_GUILDS", ValueSource::Parameter("AllowedGuilds")),
    ("ALLOWED_TEAMS", ValueSource::Parameter("AllowedTeams")),
    ("ALLOWED_CHANNELS", ValueSource::Parameter("AllowedChannels")),
    ("ALLOWED_USERS", ValueSource::Parameter("AllowedUsers")),
    ("OVERRIDES", ValueSource::Parameter("Overrides")),
    ("LOG_LEVEL", ValueSource::LogLevel),
];

/// The key that encrypts what tenants store.
const CREDENTIALS_KEY: (&str, ValueSource) =
    ("CREDENTIALS_KEY_ARN", ValueSource::OutputIfAny("CredentialsKeyArn"));

/// Further variables of each function, by its logical id.
const OWN: [(&str, &[(&str, ValueSource)]); 4] = [
    (
        "Ingress",
        &[
            ("INGRESS_SECRET_ID", ValueSource::Output("IngressSecretArn")),
            CREDENTIALS_KEY,
            ("GITHUB_APP_ID", ValueSource::Parameter("GitHubAppId")),
        ],
    ),
    (
        "Worker",
        &[
            ("SCHEDULE_GROUP", ValueSource::Output("ScheduleGroup")),
            ("SCHEDULE_ROLE_ARN", ValueSource::Output("ScheduleRoleArn")),
            ("SCHEDULE_DEAD_QUEUE_ARN", ValueSource::Output("ScheduleDeadQueueArn")),
            ("MESSAGES_QUEUE_ARN", ValueSource::Output("MessagesQueueArn")),
            ("WORKER_SECRET_ID", ValueSource::Output("WorkerSecretArn")),
            ("PROVIDER_SECRET_ID", ValueSource::Output("ProviderSecretArn")),
            ("STACK_KEY_ID", ValueSource::Output("StackKeyArn")),
            CREDENTIALS_KEY,
            ("GITHUB_APP_ID", ValueSource::Parameter("GitHubAppId")),
            ("GITHUB_OWNERS", ValueSource::Parameter("GitHubOwners")),
            ("INGRESS_URL", ValueSource::Output("IngressAddress")),
            ("TOOLS_URL", ValueSource::OutputIfAny("ToolsAddress")),
        ],
    ),
    (
        "Sweeper",
        &[
            ("PROVIDER_SECRET_ID", ValueSource::Output("ProviderSecretArn")),
            ("WAKES_DEAD_QUEUE_URL", ValueSource::Output("WakesDeadQueueUrl")),
        ],
    ),
    (
        "Tools",
        &[
            ("PROVIDER_SECRET_ID", ValueSource::Output("ProviderSecretArn")),
            ("STACK_KEY_ID", ValueSource::Output("StackKeyArn")),
        ],
    ),
];

/// Writes the file.
///
/// # Errors
/// The stack is not found or older than this program, containers cannot reach it, or the file cannot be written.
pub async fn run(
    target: &StackTarget,
    report: &mut Report,
    options: &EnvironmentOptions,
) -> Result<(), String> {
    let stack = target.stack().await?;
    let endpoint = endpoint(target, options)?;
    let variables = variables(stack, endpoint.as_deref().unwrap_or_default())?;
    let text = format!("{variables:#}\n");
    if options.is_printed() {
        show!("{}", text.trim_end());
        return Ok(());
    }
    let file = options.file.display();
    std::fs::write(&options.file, text).map_err(|e| {
        format!("{file} cannot be written: {e}. Name another file with --file, or print it with --file -.")
    })?;
    report.right(&format!(
        "{file} has every variable of Ingress, Worker and Sweeper for the stack {}; it contains no keys",
        stack.name()
    ));
    let is_laptop = matches!(target.laptop(), Ok(Some(_)));
    report.note(&how_to_go_on(&target.said(), is_laptop, stack.region(), &file.to_string()));
    if !is_of(target)? {
        report.note("The functions then work on the deployed stack itself: a Sweeper that you invoke really deletes sandboxes there.");
    }
    Ok(())
}

/// `credentials`: prints the laptop stack's AWS key as shell variables. For a deployed stack a person uses their own.
///
/// # Errors
/// It was not asked for the laptop stack's key, or none runs.
pub fn credentials(target: &StackTarget) -> Result<(), String> {
    let laptop = target.laptop()?.ok_or(
        "Only the laptop stack has its own credentials: add --laptop. For a deployed one, eval \"$(aws configure export-credentials --format env)\".",
    )?;
    let (id, secret) = laptop.aws_key()?;
    let secret = secret.expose();
    show!("export AWS_ACCESS_KEY_ID={id} AWS_SECRET_ACCESS_KEY={secret}\nunset AWS_SESSION_TOKEN");
    Ok(())
}

/// `page`: prints the address that opens the laptop stack's chat page.
///
/// # Errors
/// It was not asked for the laptop stack's page, or none runs.
pub fn page(target: &StackTarget) -> Result<(), String> {
    let laptop = target.laptop()?.ok_or("Only the laptop stack has a chat page: add --laptop.")?;
    show!("{}", laptop.page()?.expose());
    Ok(())
}

/// Whether the stack runs on this machine.
fn is_of(target: &StackTarget) -> Result<bool, String> {
    Ok(target.aws_endpoint()?.is_some_and(|at| is_loopback(&at)))
}

fn how_to_go_on(said: &str, is_laptop: bool, region: &str, file: &str) -> String {
    let keys = if is_laptop {
        format!("eval \"$(cargo run -q -p {PACKAGE} -- {said} credentials)\"\n")
    } else {
        String::new()
    };
    format!(
        "cargo run -p {PACKAGE} -- {said} event events/discord/ping.json --file event.json\n{keys}sam local invoke Ingress --region {region} --env-vars {file} --event event.json"
    )
}

/// The stack's AWS endpoint as seen from a container.
fn endpoint(target: &StackTarget, options: &EnvironmentOptions) -> Result<Option<String>, String> {
    let Some(endpoint) = target.aws_endpoint()? else {
        return Ok(None);
    };
    if !is_loopback(&endpoint) {
        return Ok(Some(endpoint));
    }
    let listening = target.laptop()?.and_then(|it| it.whereabouts.container_host);
    let desktop = cfg!(target_os = "macos").then(|| DOCKER_DESKTOP.to_owned());
    let host = options.container_host.clone().or(listening).or(desktop);
    let host = host.ok_or(
        "The stack listens only on loopback, which containers cannot reach. Start it with cargo run -- --containers, which also listens on Docker's bridge, and run this again; with Docker Desktop add --container-host host.docker.internal instead.",
    )?;
    // What follows the host: a port, if any.
    let port =
        endpoint.rsplit(':').next().and_then(|end| end.trim_end_matches('/').parse::<u16>().ok());
    Ok(Some(match port {
        Some(port) => format!("http://{host}:{port}"),
        None => format!("http://{host}"),
    }))
}

/// The `--env-vars` format: by function, a flat object of strings.
fn variables(stack: &Deployed, endpoint: &str) -> Result<Value, String> {
    let mut functions = Map::new();
    for (function, own) in OWN {
        let mut values = Map::new();
        for (name, from) in EVERY.iter().chain(own) {
            let value = match *from {
                ValueSource::Name => stack.name(),
                ValueSource::Id => stack.id(),
                ValueSource::Output(output) => stack.output(output)?,
                ValueSource::OutputIfAny(output) => stack.output(output).unwrap_or_default(),
                ValueSource::Parameter(parameter) => stack.parameter(parameter).unwrap_or_default(),
                ValueSource::LogLevel => match stack.parameter("Observability").unwrap_or_default()
                {
                    "full" => "info",
                    level => level,
                },
                ValueSource::Endpoint => endpoint,
            };
            values.insert((*name).to_owned(), json!(value));
        }
        functions.insert(function.to_owned(), Value::Object(values));
    }
    Ok(Value::Object(functions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_commands_name_this_package() {
        let told = how_to_go_on("--laptop", true, "eu-central-1", "env.json");
        assert_eq!(
            told,
            "cargo run -p bobbin-cli -- --laptop event events/discord/ping.json --file event.json
eval \"$(cargo run -q -p bobbin-cli -- --laptop credentials)\"
sam local invoke Ingress --region eu-central-1 --env-vars env.json --event event.json"
        );
        let told = how_to_go_on("--stack mine", false, "eu-central-1", "env.json");
        assert!(told.starts_with("cargo run -p bobbin-cli -- --stack mine event "), "{told}");
        assert!(!told.contains("credentials"), "{told}");
    }
}
