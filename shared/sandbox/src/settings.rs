//! What every provider is set up with.

use std::fmt;

use bobbin_core::base::limits::SandboxLimits;
use bobbin_core::tenant::overrides::ProviderOverrides;

/// Settings of all providers; each takes what it needs.
#[derive(Debug, Clone, Copy)]
pub struct ProviderSettings<'a> {
    /// Name of the stack.
    pub stack: &'a str,
    /// Id of the stack.
    pub stack_id: &'a str,
    /// What the parameter `Overrides` says of providers.
    pub overrides: &'a ProviderOverrides,
    /// Reads a variable of the function; empty if it has none of this name.
    pub variable: fn(&str) -> String,
    /// Image of sandboxes where the provider has none prepared.
    pub dockerfile: &'a str,
    /// The port of the agent's server; it gets a route if ports must be declared in advance.
    pub agent_port: u16,
    /// The variable that sets another port, used if several sandboxes share one loopback.
    pub agent_port_variable: &'a str,
    /// The bounds of every wait, retry and size.
    pub limits: &'a SandboxLimits,
}

/// The value of this setting is unusable.
pub(crate) fn unusable<E: fmt::Display>(setting: &str) -> impl Fn(E) -> String {
    move |error| format!("{setting} of the parameter Overrides: {error}")
}
