//! The providers: another one is a folder of `bobbin-sandbox` and a line here.

use std::sync::Arc;

use bobbin_cloud::config::{Config, optional};
use bobbin_cloud::secrets::StoredKeys;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::limits::Limits;
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::overrides::ProviderOverrides;
use bobbin_sandbox::{Provider, ProviderSettings, daytona, ssh, vercel};

/// Dockerfile of sandboxes if no snapshot is configured, and of the snapshot itself.
pub const DOCKERFILE: &str = include_str!("../../../infra/sandbox/Dockerfile");

/// The port of the agent's server; it gets a route if ports must be declared in advance.
const AGENT_PORT: u16 = 4096;
/// The variable that sets another port, used if several sandboxes share one loopback.
const AGENT_PORT_VARIABLE: &str = "OPENCODE_PORT";

/// Builds a provider's client from the settings and the key.
type Make = fn(&ProviderSettings<'_>, &str) -> Result<Arc<dyn Provider>, String>;

struct Registered {
    name: &'static str,
    key: Key,
    make: Make,
}

/// Every provider. The first one runs the sandboxes of tenants with their own account.
const REGISTERED: [Registered; 3] = [
    Registered { name: "daytona", key: Key::DaytonaApiKey, make: daytona::configured },
    Registered { name: "vercel", key: Key::VercelToken, make: vercel::configured },
    Registered { name: "ssh", key: Key::SshKey, make: ssh::configured },
];

/// Names of the providers, first the one for tenants' own accounts.
pub const PROVIDERS: [&str; REGISTERED.len()] = {
    let mut names = [""; REGISTERED.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = REGISTERED[at].name;
        at += 1;
    }
    names
};

/// The provider at which tenants have their own accounts.
pub const OF_TENANTS: &str = REGISTERED[0].name;

/// The providers' settings in a function.
#[must_use]
pub fn settings(config: &Config) -> ProviderSettings<'_> {
    let Config { stack, stack_id, providers, limits, .. } = config;
    ProviderSettings { variable: optional, ..settings_of((stack, stack_id), providers, limits) }
}

/// The providers' settings for the stack with this name and id; without a prepared image.
#[must_use]
pub fn settings_of<'a>(
    (stack, stack_id): (&'a str, &'a str),
    overrides: &'a ProviderOverrides,
    limits: &'a Limits,
) -> ProviderSettings<'a> {
    ProviderSettings {
        stack,
        stack_id,
        overrides,
        variable: |_| String::new(),
        dockerfile: DOCKERFILE,
        agent_port: AGENT_PORT,
        agent_port_variable: AGENT_PORT_VARIABLE,
        limits: &limits.sandbox,
    }
}

/// The provider with this name and key; without a key every call reports that it is missing.
///
/// # Errors
/// A sentence that names the unusable setting.
pub fn made(
    settings: &ProviderSettings<'_>,
    name: &str,
    key: &str,
) -> Result<Arc<dyn Provider>, String> {
    (registered(name)?.make)(settings, key)
}

/// The key for the provider with this name.
///
/// # Errors
/// A sentence that names the available providers.
pub fn key_of(name: &str) -> Result<Key, String> {
    registered(name).map(|found| found.key)
}

fn registered(name: &str) -> Result<&'static Registered, String> {
    let mut all = REGISTERED.iter();
    all.find(|one| one.name == name).ok_or_else(|| {
        let known = PROVIDERS.join(", ");
        format!("provider of the parameter Overrides is {name:?}: the providers are {known}")
    })
}

/// The providers of a stack, each with the stack's own key.
pub struct Providers {
    all: Vec<(&'static str, Arc<dyn Provider>)>,
    default: Arc<dyn Provider>,
}

impl Providers {
    /// The providers that have keys and settings, and the configured one. Another one with unusable settings is logged
    /// and left out: work at the configured one goes on.
    ///
    /// # Errors
    /// A sentence that names the unusable setting of the configured provider.
    pub fn new(settings: &ProviderSettings<'_>, keys: &StoredKeys) -> Result<Self, String> {
        let configured = registered(&settings.overrides.provider)?.name;
        let mut all = Vec::new();
        let mut default = None;
        for one in &REGISTERED {
            let key = keys.of(one.key).expose();
            if key.is_empty() && one.name != configured {
                continue;
            }
            match (one.make)(settings, key) {
                Ok(made) => {
                    if one.name == configured {
                        default = Some(Arc::clone(&made));
                    }
                    all.push((one.name, made));
                }
                Err(why) if one.name == configured => return Err(why),
                Err(why) => tracing::warn!(
                    event = "provider.unusable",
                    provider = one.name,
                    "{why}: no sandbox is created there"
                ),
            }
        }
        let default = default.ok_or_else(|| format!("there is no provider {configured}"))?;
        Ok(Self { all, default })
    }

    /// The provider with this name; `None` if the stack has no key for it or does not know it.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<Arc<dyn Provider>> {
        let mut all = self.all.iter();
        all.find(|(of, _)| *of == name).map(|(_, provider)| Arc::clone(provider))
    }

    /// The provider that a sandbox's record names; without a name the configured one.
    ///
    /// # Errors
    /// Words for people that list the available providers.
    pub fn named(&self, name: Option<&str>) -> Result<Arc<dyn Provider>, Failure> {
        let Some(name) = name else {
            return Ok(self.configured());
        };
        self.of(name).ok_or_else(|| Failure::NonRecoverable {
            advice: format!(
                "There is no provider named {name} here. Choose one of these: {}.",
                self.names().collect::<Vec<_>>().join(", ")
            ),
        })
    }

    /// The default provider of new sandboxes.
    #[must_use]
    pub fn configured(&self) -> Arc<dyn Provider> {
        Arc::clone(&self.default)
    }

    /// What the provider with this name lacks or does differently, in one line for people; `None` if nothing.
    #[must_use]
    pub fn lacking(&self, name: &str) -> Option<String> {
        let words = self.of(name)?.facts().lacking();
        (!words.is_empty()).then(|| format!("{name}: {}", words.join("; ")))
    }

    /// Names of the providers.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.all.iter().map(|(name, _)| *name)
    }
}

/// The provider of a tenant's own account, with its key.
///
/// # Errors
/// A sentence that names the unusable setting.
pub fn of_tenant(config: &Config, key: &str) -> Result<Arc<dyn Provider>, String> {
    made(&settings(config), OF_TENANTS, key)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bobbin_core::tenant::overrides::Overrides;

    use super::*;

    fn secret(text: &str) -> StoredKeys {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn only_configured_provider_works_without_key() {
        let overrides = Overrides::parse(r#"{"provider": "vercel"}"#).unwrap();
        let settings = settings_of(("dev", "a"), &overrides.providers, &overrides.limits);
        let providers = Providers::new(&settings, &secret("{}")).unwrap();
        assert_eq!(providers.names().collect::<Vec<_>>(), ["vercel"]);
        assert_eq!(providers.configured().facts().base, "https://vercel.com/api");
        assert!(providers.of("daytona").is_none());
        let both = Providers::new(&settings, &secret(r#"{"daytona_api_key": "k"}"#)).unwrap();
        let other = both.of("daytona").unwrap();
        assert_eq!(other.facts().base, "https://app.daytona.io/api");
        assert_eq!(both.configured().facts().base, "https://vercel.com/api");
        assert_eq!(both.named(None).unwrap().facts().base, "https://vercel.com/api");
        assert_eq!(both.named(Some("daytona")).unwrap().facts().base, "https://app.daytona.io/api");
        let unknown = both.named(Some("ssh")).unwrap_err();
        let advice = "There is no provider named ssh here. Choose one of these: daytona, vercel.";
        assert_eq!(unknown, Failure::NonRecoverable { advice: advice.to_owned() });
    }

    #[test]
    fn incomplete_extra_provider_is_skipped() {
        let overrides = Overrides::parse("{}").unwrap();
        let settings = settings_of(("dev", "a"), &overrides.providers, &overrides.limits);
        let keys = secret(r#"{"daytona_api_key": "k", "ssh_key": "k"}"#);
        let providers = Providers::new(&settings, &keys).unwrap();
        assert_eq!(providers.names().collect::<Vec<_>>(), ["daytona"]);
        assert_eq!(PROVIDERS, ["daytona", "vercel", "ssh"]);
        assert_eq!(key_of(OF_TENANTS), Ok(Key::OF_ACCOUNT));
    }

    #[test]
    fn ssh_provider_needs_named_hosts() {
        let host = r#"{"name": "one", "address": "one.example", "sandboxes": 2, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ"}"#;
        let made = |hosts: &str| {
            let overrides = format!(r#"{{"provider": "ssh", "ssh_hosts": [{hosts}]}}"#);
            let overrides = Overrides::parse(&overrides).unwrap();
            let settings = settings_of(("dev", "a"), &overrides.providers, &overrides.limits);
            let providers = Providers::new(&settings, &secret("{}"))?;
            Ok::<_, String>(providers.names().collect::<Vec<_>>())
        };
        assert_eq!(made(host).unwrap(), ["ssh"]);
        assert_eq!(
            made("").unwrap_err(),
            "ssh_hosts must name 1 to 16 hosts (of the parameter Overrides)"
        );
    }

    #[test]
    fn bad_provider_gives_one_line_error() {
        let refused = |overrides: &str| {
            let overrides = Overrides::parse(overrides).unwrap();
            let settings = settings_of(("dev", "a"), &overrides.providers, &overrides.limits);
            Providers::new(&settings, &secret("{}")).err().unwrap()
        };
        assert_eq!(
            refused(r#"{"provider": "cloud"}"#),
            r#"provider of the parameter Overrides is "cloud": the providers are daytona, vercel, ssh"#
        );
        let refused = refused(r#"{"provider": "vercel", "vercel_api": "http://vercel.example"}"#);
        assert!(
            refused.starts_with("vercel_api of the parameter Overrides: the address http://vercel.example is not allowed"),
            "{refused}"
        );
    }
}
