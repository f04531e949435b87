//! Settings of an engine.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bobbin_local_breakpoint::Breakpoints;

use crate::clock::Clock;
use crate::log::LogSink;

/// Settings of an engine.
#[derive(Clone)]
pub struct EngineSettings {
    /// The template: the single source of queue, table, function and schedule settings.
    pub template: PathBuf,
    /// Template parameters by name; missing ones take their defaults.
    pub parameters: BTreeMap<String, String>,
    /// Initial values of the template's secrets by logical id; they replace stored values.
    pub secrets: BTreeMap<String, String>,
    /// Name of the stack; resource names start with it.
    pub stack_name: String,
    /// Region in ARNs and in the environment of functions.
    pub region: String,
    /// State folder; one engine at a time.
    pub state_dir: PathBuf,
    /// Executable of each function by logical id.
    pub functions: BTreeMap<String, PathBuf>,
    /// Extra environment of each function; overrides the template.
    pub extra_environment: BTreeMap<String, String>,
    /// Host name or address of the endpoint for callers that do not share this machine's loopback.
    pub also_named: Option<String>,
    /// Port of the function URL (of the first by logical id, if there are several); 0 picks a free one.
    pub ingress_port: u16,
    /// Port of the endpoint; 0 picks a free one.
    pub endpoint_port: u16,
    /// Clock of queues and schedules.
    pub clock: Clock,
    /// Receives the functions' output.
    pub log: LogSink,
    /// Test control: holds calls of functions.
    pub breakpoints: Breakpoints,
}
