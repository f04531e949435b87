//! The configuration of the functions: environment variables that the template sets. No secret is among them.

use std::env;

use bobbin_core::base::limits::Limits;
use bobbin_core::tenant::access::Policy;
use bobbin_core::tenant::overrides::Overrides;
use bobbin_core::tokens::nudge;
use reqwest::Url;

/// Advice: what sets the variables that refer to resources of the stack.
const SET_BY: &str = "template.yaml sets it where it is deployed, and for `sam local invoke --env-vars env.json` bobbin env writes that file (docs/appendix/SAM.md)";

/// Where wake-ups are created, and what they do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeTarget {
    /// Name of the schedule group for the stack's wake-ups.
    pub group: String,
    /// Role that Scheduler assumes to send.
    pub role_arn: String,
    /// ARN of the queue that receives them.
    pub queue_arn: String,
    /// ARN of the standard queue for wake-ups that could not be sent.
    pub dead_queue_arn: String,
}

impl WakeTarget {
    /// Reads `SCHEDULE_GROUP`, `SCHEDULE_ROLE_ARN`, `MESSAGES_QUEUE_ARN` and `SCHEDULE_DEAD_QUEUE_ARN`. Only the worker
    /// has them; without a group there are no wake-ups.
    fn read(value: impl Fn(&str) -> String) -> Result<Option<Self>, String> {
        let group = value("SCHEDULE_GROUP");
        if group.is_empty() {
            return Ok(None);
        }
        let needed = |name: &str| match value(name) {
            empty if empty.is_empty() => {
                Err(format!("{name} is not set although SCHEDULE_GROUP is: {SET_BY}"))
            }
            set => Ok(set),
        };
        Ok(Some(Self {
            group,
            role_arn: needed("SCHEDULE_ROLE_ARN")?,
            queue_arn: needed("MESSAGES_QUEUE_ARN")?,
            dead_queue_arn: needed("SCHEDULE_DEAD_QUEUE_ARN")?,
        }))
    }
}

/// The template's parameters.
#[derive(Debug, Clone)]
pub struct Config {
    /// Name of the stack: part of every sandbox's name and label.
    pub stack: String,
    /// Unique id of the stack, even among stacks with this name: a label of every sandbox.
    pub stack_id: String,
    /// Tenants whose repositories may configure the agent that works in them.
    pub project_config_of: Vec<String>,
    /// Puts model keys into the sandboxes even if the provider could keep them outside.
    pub model_keys_inside: bool,
    /// Name of the table with every record of the stack.
    pub table: String,
    /// Address of `messages.fifo`, whose messages are processed in order within each thread.
    pub messages_queue_url: String,
    /// Address of the queue of control messages.
    pub control_queue_url: String,
    /// Addresses of the dead letter queues of the two.
    pub dead_queue_urls: [String; 2],
    /// Where wake-ups are created; `None` if this function creates none.
    pub wakes: Option<WakeTarget>,
    /// Base address of Discord's API.
    pub discord_api: String,
    /// Discord application id; empty switches Discord off.
    pub discord_application_id: String,
    /// Discord public key, hex.
    pub discord_public_key: String,
    /// Base address of Slack's API.
    pub slack_api: String,
    /// Slack answers are streamed if the workspace supports it.
    pub slack_stream_answers: bool,
    /// KMS key that seals tenants' own keys; empty: tenants have none in this stack.
    pub credentials_key: String,
    /// Tenants' own keys are entered in a Discord form.
    pub keys_by_form: bool,
    /// Address of the page for keys, with a trailing slash; empty if the function does not know it.
    pub page_url: String,
    /// Address for the nudges of sandbox daemons; empty if unknown.
    pub nudge_url: String,
    /// Base address of Daytona's control API.
    pub daytona_api: String,
    /// Prepared snapshot; if empty, sandboxes are built from the Dockerfile.
    pub daytona_snapshot: String,
    /// Name of the sandbox provider.
    pub provider: String,
    /// Base address of Vercel's API.
    pub vercel_api: String,
    /// Id of the Vercel team.
    pub vercel_team_id: String,
    /// Id of the Vercel project in which sandboxes are created.
    pub vercel_project_id: String,
    /// Image in Vercel's registry; empty means Vercel's own.
    pub vercel_image: String,
    /// The SSH hosts that run sandboxes, as their provider parses them.
    pub ssh_hosts: Vec<serde_json::Value>,
    /// Default model, as provider/model.
    pub model: String,
    /// Name of the default runtime mode; empty means the first one.
    pub runtime_mode: String,
    /// Address of the sandbox tools, with a trailing slash; empty: not served.
    pub tools_url: String,
    /// Tools that need a person's permission for each use.
    pub tools_ask: Vec<String>,
    /// Further models of the endpoint that can be chosen.
    pub models: Vec<String>,
    /// OpenAI-compatible endpoint; empty uses the vendor's own.
    pub model_base_url: String,
    /// Who may use Bobbin.
    pub policy: Policy,
    /// The limits: the defaults, changed by `Overrides`.
    pub limits: Limits,
}

impl Config {
    /// Reads the environment.
    ///
    /// # Errors
    /// Names the variable and says what is wrong with it.
    pub fn from_environment() -> Result<Self, String> {
        let optional = |name: &str| env::var(name).unwrap_or_default();
        let overrides = Overrides::parse(&optional("OVERRIDES"))?;
        for (name, value) in [
            ("discord_api", &overrides.chats.discord_api),
            ("slack_api", &overrides.chats.slack_api),
            ("daytona_api", &overrides.providers.daytona_api),
            ("vercel_api", &overrides.providers.vercel_api),
            ("model_base_url", &overrides.agents.model_base_url),
            ("page_url", &overrides.chats.page_url),
            ("nudge_url", &overrides.providers.nudge_url),
        ] {
            if !value.is_empty() {
                address(&format!("{name} of the parameter Overrides"), value)?;
            }
        }
        log_level(&optional("LOG_LEVEL"))?;
        Ok(Self {
            stack: required("STACK")?,
            stack_id: stack_id(&required("STACK_ID")?).to_owned(),
            table: required("TABLE")?,
            messages_queue_url: required("MESSAGES_QUEUE_URL")?,
            control_queue_url: required("CONTROL_QUEUE_URL")?,
            dead_queue_urls: [
                required("MESSAGES_DEAD_QUEUE_URL")?,
                required("CONTROL_DEAD_QUEUE_URL")?,
            ],
            wakes: WakeTarget::read(optional)?,
            discord_api: overrides.chats.discord_api,
            discord_application_id: optional("DISCORD_APPLICATION_ID"),
            discord_public_key: optional("DISCORD_PUBLIC_KEY"),
            slack_api: overrides.chats.slack_api,
            slack_stream_answers: overrides.chats.slack_stream_answers,
            credentials_key: optional("CREDENTIALS_KEY_ARN"),
            keys_by_form: overrides.chats.keys_by_form,
            page_url: page_url(&overrides.chats.page_url, &optional("INGRESS_URL")),
            nudge_url: nudge_url(&overrides.providers.nudge_url, &optional("INGRESS_URL")),
            daytona_api: overrides.providers.daytona_api,
            daytona_snapshot: optional("DAYTONA_SNAPSHOT"),
            provider: overrides.providers.provider,
            vercel_api: overrides.providers.vercel_api,
            vercel_team_id: overrides.providers.vercel_team_id,
            vercel_project_id: overrides.providers.vercel_project_id,
            vercel_image: overrides.providers.vercel_image,
            ssh_hosts: overrides.providers.ssh_hosts,
            model: required("MODEL")?,
            runtime_mode: optional("SANDBOX_RUNTIME_MODE"),
            tools_url: optional("TOOLS_URL"),
            tools_ask: overrides.agents.tools_ask,
            models: overrides.agents.models,
            project_config_of: overrides.agents.project_config_of,
            model_keys_inside: overrides.agents.model_keys_inside,
            model_base_url: overrides.agents.model_base_url,
            policy: Policy::from_lists(
                &optional("ALLOWED_GUILDS"),
                &optional("ALLOWED_TEAMS"),
                &optional("ALLOWED_CHANNELS"),
                &optional("ALLOWED_USERS"),
            ),
            limits: overrides.limits,
        })
    }
}

/// A variable that the template sets for this function. If its name ends in `_URL`, it must be an address.
///
/// # Errors
/// Names the variable.
pub fn required(name: &str) -> Result<String, String> {
    let value = env::var(name)
        .ok()
        .filter(|value| !value.is_empty())
        .ok_or_else(|| format!("{name} is not set: {SET_BY}"))?;
    if name.ends_with("_URL") {
        // SAM gives a container without --env-vars the name of the resource.
        address(name, &value).map_err(|why| format!("{why}; {SET_BY}"))?;
    }
    Ok(value)
}

/// An address needs a supported scheme and a host.
fn address(name: &str, value: &str) -> Result<(), String> {
    let usable = Url::parse(value)
        .is_ok_and(|url| matches!(url.scheme(), "https" | "http") && url.has_host());
    if usable {
        Ok(())
    } else {
        Err(format!(
            "{name} is {value:?}, which is not an address: expected one such as https://example.com"
        ))
    }
}

/// The end of `CloudFormation`'s stack id (`arn:…:stack/NAME/UUID`), which is unique by itself and does not contain the
/// account.
#[must_use]
pub fn stack_id(arn: &str) -> &str {
    arn.rsplit('/').next().unwrap_or(arn)
}

/// Address of the page: the operator's setting, else the function's own address.
fn page_url(said: &str, own: &str) -> String {
    let base = if said.is_empty() { own } else { said };
    match base.trim_end_matches('/') {
        "" => String::new(),
        base => format!("{base}/"),
    }
}

/// Address for nudges: the operator's setting, else the function's own address.
fn nudge_url(said: &str, own: &str) -> String {
    match (said, own.trim_end_matches('/')) {
        ("", "") => String::new(),
        ("", own) => format!("{own}{}", nudge::PATH),
        (said, _) => said.to_owned(),
    }
}

/// Checks a log level; empty means `info`.
fn log_level(value: &str) -> Result<(), String> {
    match value {
        "" | "trace" | "debug" | "info" | "warn" | "error" => Ok(()),
        other => {
            Err(format!("LOG_LEVEL is {other:?}; it can be trace, debug, info, warn or error"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nudge_url_has_a_default() {
        assert_eq!(nudge_url("", "https://x/"), "https://x/nudge");
        assert_eq!(nudge_url("https://y/z", "https://x/"), "https://y/z");
        assert_eq!(nudge_url("", ""), "");
    }

    #[test]
    fn wake_target_is_complete_or_absent() {
        assert_eq!(WakeTarget::read(|_| String::new()), Ok(None));
        let all = WakeTarget::read(str::to_lowercase).expect("all set");
        assert_eq!(all.map(|all| all.queue_arn).as_deref(), Some("messages_queue_arn"));
        for missing in ["SCHEDULE_ROLE_ARN", "MESSAGES_QUEUE_ARN", "SCHEDULE_DEAD_QUEUE_ARN"] {
            let without = |name: &str| {
                if name == missing { String::new() } else { name.to_owned() }
            };
            let refused = WakeTarget::read(without).expect_err(missing);
            assert!(refused.starts_with(missing), "{refused}");
        }
    }
}
