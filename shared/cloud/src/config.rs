//! The configuration of the functions: environment variables that the template sets. No secret is among them.

use std::env;

use bobbin_core::base::limits::Limits;
use bobbin_core::tenant::access::Policy;
use bobbin_core::tenant::overrides::Overrides;
use bobbin_core::tokens::nudge;
use reqwest::Url;

/// Who sets the variables that refer to something of the stack.
const SET_BY: &str = "template.yaml sets it where it is deployed, and for `sam local invoke --env-vars env.json` bobbin env writes that file (docs/appendix/SAM.md)";

/// Where wake-ups are set, and what they do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeTarget {
    /// Name of the schedule group that holds the stack's wake-ups.
    pub group: String,
    /// Role in which Scheduler sends.
    pub role_arn: String,
    /// Queue that they are sent to.
    pub queue_arn: String,
    /// Standard queue for those that could not be sent.
    pub dead_queue_arn: String,
}

impl WakeTarget {
    /// From `SCHEDULE_GROUP`, `SCHEDULE_ROLE_ARN`, `MESSAGES_QUEUE_ARN` and `SCHEDULE_DEAD_QUEUE_ARN`: the worker alone
    /// has them, and without a group there are no wake-ups.
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

/// What the template's parameters say.
#[derive(Debug, Clone)]
pub struct Config {
    /// Name of the stack: part of every sandbox's name and label.
    pub stack: String,
    /// What no other stack has, of this name either: a label of every sandbox.
    pub stack_id: String,
    /// Tenants whose repositories may configure the agent that works in them.
    pub project_config_of: Vec<String>,
    /// Model keys go into the sandboxes, also where the provider could keep them.
    pub model_keys_inside: bool,
    /// Name of the table that holds every record of the stack.
    pub table: String,
    /// Address of `messages.fifo`, whose messages are worked on in each thread's order.
    pub messages_queue_url: String,
    /// Queue of control words.
    pub control_queue_url: String,
    /// Dead letters of the two.
    pub dead_queue_urls: [String; 2],
    /// Where wake-ups are set; none where the function sets none.
    pub wakes: Option<WakeTarget>,
    /// Base of Discord's API.
    pub discord_api: String,
    /// Discord application id; empty switches Discord off.
    pub discord_application_id: String,
    /// Discord public key, hex.
    pub discord_public_key: String,
    /// Base of Slack's API.
    pub slack_api: String,
    /// Slack answers are streamed where a workspace takes that.
    pub slack_stream_answers: bool,
    /// The key of KMS that seals the keys of tenants' own; empty: tenants have none here.
    pub credentials_key: String,
    /// Keys of tenants' own are entered in a form of Discord's.
    pub keys_by_form: bool,
    /// Where the page for keys is, with a slash at its end; empty where the function does not say it.
    pub page_url: String,
    /// Where daemons in sandboxes say that something has happened; empty where nobody says where that is.
    pub nudge_url: String,
    /// Base of Daytona's control API.
    pub daytona_api: String,
    /// Prepared snapshot; empty builds from the Dockerfile.
    pub daytona_snapshot: String,
    /// The provider that runs the sandboxes, by its name.
    pub provider: String,
    /// Base of Vercel's API.
    pub vercel_api: String,
    /// The team at Vercel, by id.
    pub vercel_team_id: String,
    /// The project at Vercel that sandboxes are made in, by id.
    pub vercel_project_id: String,
    /// Image in Vercel's registry; empty is Vercel's own.
    pub vercel_image: String,
    /// The hosts that run sandboxes over SSH, as their provider reads them.
    pub ssh_hosts: Vec<serde_json::Value>,
    /// The model of turns that choose none, as provider/model.
    pub model: String,
    /// How agents are run in the sandboxes, by the name of the mode; empty is the first one.
    pub runtime_mode: String,
    /// Where the tools of sandboxes are served, with a slash at its end; empty: nowhere.
    pub tools_url: String,
    /// Tools of which each use needs a person's leave.
    pub tools_ask: Vec<String>,
    /// Further models of the endpoint that can be chosen.
    pub models: Vec<String>,
    /// OpenAI-compatible endpoint; empty uses the provider's own.
    pub model_base_url: String,
    /// Who may use Bobbin.
    pub policy: Policy,
    /// The bounds: those of the code, with what `Overrides` changes.
    pub limits: Limits,
}

impl Config {
    /// Reads the environment.
    ///
    /// # Errors
    /// A sentence that names the variable and what is wrong with it.
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

/// A variable that the template sets for this function. What is called an address (`…_URL`) is one.
///
/// # Errors
/// A sentence that names it.
pub fn required(name: &str) -> Result<String, String> {
    let value = env::var(name)
        .ok()
        .filter(|value| !value.is_empty())
        .ok_or_else(|| format!("{name} is not set: {SET_BY}"))?;
    if name.ends_with("_URL") {
        // What SAM gives a container without --env-vars is the name of the resource.
        address(name, &value).map_err(|why| format!("{why}; {SET_BY}"))?;
    }
    Ok(value)
}

/// An address has a scheme that is spoken, and a host.
fn address(name: &str, value: &str) -> Result<(), String> {
    let usable = Url::parse(value)
        .is_ok_and(|url| matches!(url.scheme(), "https" | "http") && url.has_host());
    if usable {
        Ok(())
    } else {
        Err(format!(
            "{name} is {value:?}, which is no address: expected one such as https://example.com"
        ))
    }
}

/// The end of `CloudFormation`'s id of a stack (`arn:…:stack/NAME/UUID`), which is unique by itself and holds no account.
#[must_use]
pub fn stack_id(arn: &str) -> &str {
    arn.rsplit('/').next().unwrap_or(arn)
}

/// Where the page is: what an operator says, else the function's own address.
fn page_url(said: &str, own: &str) -> String {
    let base = if said.is_empty() { own } else { said };
    match base.trim_end_matches('/') {
        "" => String::new(),
        base => format!("{base}/"),
    }
}

/// Where daemons call: what an operator says, else at the function's own address.
fn nudge_url(said: &str, own: &str) -> String {
    match (said, own.trim_end_matches('/')) {
        ("", "") => String::new(),
        ("", own) => format!("{own}{}", nudge::PATH),
        (said, _) => said.to_owned(),
    }
}

/// Whether it is a level; empty stands for `info`.
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
