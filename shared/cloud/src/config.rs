//! The configuration of the functions: environment variables that the template sets. No secret is among them.

use std::env;

use bobbin_core::base::ids::Tenant;
use bobbin_core::base::limits::Limits;
use bobbin_core::tenant::access::Policy;
use bobbin_core::tenant::overrides::{
    AgentOverrides, ChatOverrides, ForgeOverrides, Overrides, ProviderOverrides,
};
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
    /// KMS key that seals tenants' own keys; empty: tenants have none in this stack.
    pub credentials_key: String,
    /// Settings of agents.
    pub agents: AgentOverrides,
    /// Settings of chats. The address of the page for keys is known, and ends in a slash; empty if the function does
    /// not know its own.
    pub chats: ChatOverrides,
    /// Settings of providers. The address for nudges is known, unless the function does not know its own.
    pub providers: ProviderOverrides,
    /// Id of the forge's app; empty: the stack has no forge.
    pub forge_app_id: String,
    /// Owners whose repositories a tenant may be given.
    pub forge_owners: Vec<(Tenant, String)>,
    /// Settings of the forge.
    pub forge: ForgeOverrides,
    /// Default model, as provider/model.
    pub model: String,
    /// Name of the default runtime mode; empty means the first one.
    pub runtime_mode: String,
    /// Address of the sandbox tools, with a trailing slash; empty: not served.
    pub tools_url: String,
    /// Ingress's own address, without a trailing slash; empty: unknown.
    pub own_url: String,
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
        let overrides = Overrides::parse(&optional("OVERRIDES"))?;
        for (name, value) in overrides.addresses() {
            if !value.is_empty() {
                address(&format!("{name} of the parameter Overrides"), value)?;
            }
        }
        let Overrides { limits, agents, mut chats, mut providers, forge } = overrides;
        let own = optional("INGRESS_URL");
        chats.page_url = page_url(&chats.page_url, &own);
        providers.nudge_url = nudge_url(&providers.nudge_url, &own);
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
            credentials_key: optional("CREDENTIALS_KEY_ARN"),
            agents,
            chats,
            providers,
            forge_app_id: optional("GITHUB_APP_ID"),
            forge_owners: owners(&optional("GITHUB_OWNERS"))?,
            forge,
            model: required("MODEL")?,
            runtime_mode: optional("SANDBOX_RUNTIME_MODE"),
            tools_url: optional("TOOLS_URL"),
            own_url: own.trim_end_matches('/').to_owned(),
            policy: Policy::from_lists(
                &optional("ALLOWED_GUILDS"),
                &optional("ALLOWED_TEAMS"),
                &optional("ALLOWED_CHANNELS"),
                &optional("ALLOWED_USERS"),
            ),
            limits,
        })
    }
}

/// A variable that may be empty or missing.
#[must_use]
pub fn optional(name: &str) -> String {
    env::var(name).unwrap_or_default()
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

/// The parameter `GitHubOwners`: entries `tenant=owner`, separated by commas or white space.
fn owners(list: &str) -> Result<Vec<(Tenant, String)>, String> {
    let entries = list.split([',', ' ', '\n']).map(str::trim).filter(|entry| !entry.is_empty());
    let read = |entry: &str| {
        let (tenant, owner) = entry.split_once('=')?;
        let owner = owner.trim().to_ascii_lowercase();
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
        let is_owner = !owner.is_empty() && owner.bytes().all(plain);
        is_owner.then_some((tenant.trim().parse().ok()?, owner))
    };
    let read = entries.map(|entry| {
        read(entry).ok_or_else(|| {
            format!("GitHubOwners has {entry:?}; expected discord:GUILD=owner or slack:TEAM=owner")
        })
    });
    read.collect()
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
    fn owners_are_bound_to_tenants() {
        let read = owners("slack:T1=Acme, discord:12=acme\nslack:T1=other");
        let read: Vec<String> = read
            .expect("all readable")
            .into_iter()
            .map(|(tenant, owner)| format!("{tenant} {owner}"))
            .collect();
        assert_eq!(read, ["slack:T1 acme", "discord:12 acme", "slack:T1 other"]);
        assert_eq!(
            owners("T1=acme"),
            Err(r#"GitHubOwners has "T1=acme"; expected discord:GUILD=owner or slack:TEAM=owner"#
                .to_owned())
        );
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
