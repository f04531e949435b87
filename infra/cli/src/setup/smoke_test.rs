//! Step "test": one real turn, from a visible message to the answer in its thread, stage by stage.
//!
//! On Slack the message takes the whole path: a signed mention is delivered to the stack's ingress. Only Discord can
//! sign for Discord, so there the test checks that the ingress refuses unsigned requests (and, once the endpoint is
//! set, Discord's own probe does the rest), and the task goes into the queue where the ingress would put it. The rest
//! is the product's own path: worker, sandbox, agent, model, thread. At the end the sandbox is deleted; the thread
//! stays as proof.

mod discord;
mod follow;
mod slack;

use bobbin_cloud::clock::now_ms;
use bobbin_core::base::ids::digest;
use bobbin_http::{AllowedHosts, Http, Method};
use clap::Args;

use super::report::Report;
use crate::setup::discord::snowflake;
use crate::target::StackTarget;

/// Send a test turn, follow it to its end, and clean up.
#[derive(Debug, Clone, Args)]
pub struct TestOptions {
    /// Discord channel for the test
    #[arg(long, env = "DISCORD_CHANNEL_ID", value_name = "ID", value_parser = snowflake)]
    pub discord_channel: Option<String>,
    /// Slack channel for the test; the app must be in it
    #[arg(long, env = "SLACK_CHANNEL_ID", value_name = "ID", requires = "slack_user")]
    pub slack_channel: Option<String>,
    /// Who asks for the test on Slack: your member id (your profile, Copy member ID)
    #[arg(long, env = "SLACK_USER_ID", value_name = "ID")]
    pub slack_user: Option<String>,
    /// Minutes after which the turn is stopped
    #[arg(long = "wait", value_name = "MINUTES", default_value_t = 15)]
    pub wait: u64,
    /// Leave the sandbox as it is; it pauses and ends by itself
    #[arg(long)]
    pub keep: bool,
}

impl TestOptions {
    /// Whether a channel was named.
    #[must_use]
    pub const fn says_where(&self) -> bool {
        self.discord_channel.is_some() || self.slack_channel.is_some()
    }
}

/// The test prompt and its expected answer.
#[derive(Debug, Clone)]
struct TestTask {
    /// Test id; keeps tests apart.
    id: String,
    /// Word that the answer must contain.
    word: String,
    text: String,
}

impl TestTask {
    fn new(platform: &str) -> Self {
        let now = now_ms();
        let salt = format!("{now} {}", std::process::id());
        let word = format!("bobbin-{}", &digest(&["smoke-test", platform, &salt])[..8]);
        Self {
            id: format!("setup-{platform}-{now}"),
            // The last line scripts the answer of the laptop stack's model.
            text: format!(
                "This is a test of the installation. Answer with the word after the colon, and do nothing else.\necho: {word}"
            ),
            word,
        }
    }
}

/// Runs the test on each named platform.
///
/// # Errors
/// The test cannot start; with advice.
pub async fn run(
    target: &StackTarget,
    report: &mut Report,
    options: &TestOptions,
) -> Result<(), String> {
    if !options.says_where() {
        return Err("Choose a channel for the test: --discord-channel ID, or --slack-channel ID with --slack-user ID.".to_owned());
    }
    target.stack().await?;
    ingress(target, report).await?;
    if let Some(channel) = &options.discord_channel {
        discord::run(target, report, options, channel).await?;
    }
    if let (Some(channel), Some(user)) = (&options.slack_channel, &options.slack_user) {
        slack::run(target, report, options, channel, user).await?;
    }
    Ok(())
}

/// The ingress answers, and refuses unsigned requests.
async fn ingress(target: &StackTarget, report: &mut Report) -> Result<(), String> {
    let stack = target.stack().await?;
    let base = stack.output("IngressAddress")?.trim_end_matches('/');
    let http = Http::new(base, AllowedHosts::Named(Vec::new())).map_err(|e| e.to_string())?;
    let silent = |why: String| {
        format!(
            "The ingress does not answer: {why}. Check its log group in CloudWatch; a function that cannot start logs the reason there in one line."
        )
    };
    let ask = |method, path: &str| http.request(method, &format!("{base}{path}"));
    let health = ask(Method::GET, "/health").map_err(|e| e.to_string())?;
    let health = http.send(health).await.map_err(|e| silent(e.to_string()))?;
    if !health.ok() {
        return Err(silent(format!("status {}", health.status)));
    }
    report.right(&format!("The ingress answers at {base}"));
    for (path, name, on) in [
        ("/discord/interactions", "Discord", target.parameter("DiscordPublicKey").is_some()),
        ("/slack/events", "Slack", target.key("slack_signing_secret").await.is_some()),
    ] {
        if !on {
            continue;
        }
        let request = ask(Method::POST, path).map_err(|e| e.to_string())?;
        let answer = http.send(request.body("{}")).await.map_err(|e| silent(e.to_string()))?;
        match answer.status {
            401 => report.right(&format!("The ingress refuses requests that {name} has not signed")),
            status => report.wrong(
                &format!(
                    "The ingress answers {status} to a request that {name} has not signed; 401 is right"
                ),
                &format!(
                    "Deploy the template of this version: sam build && {}",
                    target.sam_deploy("")
                ),
            ),
        }
    }
    Ok(())
}
