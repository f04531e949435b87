//! What an engine is started with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bobbin_local_breakpoint::Breakpoints;

use crate::clock::Clock;
use crate::log::LogSink;

/// What the engine is started with.
#[derive(Clone)]
pub struct Settings {
    /// The template: the single source of the settings of queues, tables, functions and schedules.
    pub template: PathBuf,
    /// Values of the template's parameters by name; the others take their defaults.
    pub parameters: BTreeMap<String, String>,
    /// Values that secrets of the template have from the start, by logical id: they replace what stands there.
    pub secrets: BTreeMap<String, String>,
    /// Name of the stack; resource names start with it.
    pub stack_name: String,
    /// Region in ARNs and in the environment of functions.
    pub region: String,
    /// Where state is kept. One engine at a time may use it.
    pub state_dir: PathBuf,
    /// The executable of each function by its logical id.
    pub functions: BTreeMap<String, PathBuf>,
    /// Added to the environment of each function, over what the template says.
    pub extra_environment: BTreeMap<String, String>,
    /// A name or address of this machine by which callers reach the endpoint that do not share its loopback.
    pub also_named: Option<String>,
    /// Port of the function URL (of the first one by logical id, if there are several); 0 takes a free one.
    pub ingress_port: u16,
    /// Port of the endpoint; 0 takes a free one.
    pub endpoint_port: u16,
    /// The time that queues and schedules go by.
    pub clock: Clock,
    /// Receives what functions print.
    pub log: LogSink,
    /// Test control: holds calls of functions.
    pub breakpoints: Breakpoints,
}
