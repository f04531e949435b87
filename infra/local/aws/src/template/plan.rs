//! A template's plan: everything that the engine sets up.

use std::collections::BTreeMap;

use crate::dynamodb::TableSettings;
use crate::lambda::Mapping;
use crate::scheduler::NamedSchedule;
use crate::secrets::SecretSource;

/// A queue to create.
#[derive(Clone, Debug)]
pub(crate) struct QueueSettings {
    pub(crate) name: String,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) tags: BTreeMap<String, String>,
}

/// A function to run.
#[derive(Clone, Debug)]
pub(crate) struct FunctionSettings {
    pub(crate) logical_id: String,
    pub(crate) name: String,
    pub(crate) timeout_seconds: u64,
    pub(crate) memory_mb: u64,
    pub(crate) is_traced: bool,
    pub(crate) concurrency_max: Option<usize>,
    pub(crate) environment: BTreeMap<String, String>,
}

/// Everything that the engine sets up.
#[derive(Debug, Default)]
pub(crate) struct TemplatePlan {
    pub(crate) tables: Vec<TableSettings>,
    pub(crate) queues: Vec<QueueSettings>,
    pub(crate) secrets: Vec<(String, SecretSource)>,
    /// Keys of KMS: name and description.
    pub(crate) keys: Vec<(String, String)>,
    pub(crate) functions: Vec<FunctionSettings>,
    /// Logical id of the function, and its mapping.
    pub(crate) mappings: Vec<(String, Mapping)>,
    pub(crate) groups: Vec<String>,
    pub(crate) schedules: Vec<NamedSchedule>,
    pub(crate) outputs: BTreeMap<String, String>,
    /// `Ref` of each resource.
    pub(crate) references: BTreeMap<String, String>,
    pub(crate) unhonoured: Vec<String>,
}
