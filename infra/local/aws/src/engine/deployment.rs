//! Sets up resources and executables from the template's plan.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::error::EngineError;
use super::settings::EngineSettings;
use crate::account::AwsAccount;
use crate::endpoint::Services;
use crate::lambda::FunctionLaunch;
use crate::limits;
use crate::secrets::StackSecrets;
use crate::signature::AccessKey;
use crate::template::{FunctionSettings, TemplatePlan};

/// Deploys the plan: tables, queues, secrets, keys, schedules.
pub(super) async fn deploy(plan: &TemplatePlan, services: &Services) -> Result<(), EngineError> {
    for table in &plan.tables {
        services.dynamo.deploy(table).await.map_err(|error| {
            EngineError::resource(format!("table {}", table.create["TableName"]), &error)
        })?;
    }
    for queue in &plan.queues {
        services
            .sqs
            .deploy(&queue.name, &queue.attributes, &queue.tags)
            .map_err(|error| EngineError::resource(format!("queue {}", queue.name), &error))?;
    }
    for (name, source) in &plan.secrets {
        services
            .secrets
            .deploy(name, source)
            .map_err(|error| EngineError::resource(format!("secret {name}"), &error))?;
    }
    for (name, description) in &plan.keys {
        services
            .kms
            .deploy(name, description)
            .map_err(|error| EngineError::resource(format!("key {name}"), &error))?;
    }
    services
        .scheduler
        .deploy(&plan.groups, &plan.schedules)
        .map_err(|error| EngineError::resource("a schedule", &error))
}

/// Stores the secret values given at start, before any function runs.
pub(super) fn put_secrets(
    plan: &TemplatePlan,
    secrets: &StackSecrets,
    values: &BTreeMap<String, String>,
) -> Result<(), EngineError> {
    for (logical_id, value) in values {
        let secret = format!("secret {logical_id}");
        let Some(id) = plan.references.get(logical_id) else {
            return Err(EngineError::resource(secret, &"the template does not declare it"));
        };
        secrets.put(id, value).map_err(|error| EngineError::resource(secret, &error))?;
    }
    Ok(())
}

/// How to start each function of the plan.
pub(super) fn launches(
    plan: &TemplatePlan,
    settings: &EngineSettings,
    account: &AwsAccount,
    state_dir: &Path,
    daemon: SocketAddr,
    key: Option<&AccessKey>,
) -> Result<Vec<FunctionLaunch>, EngineError> {
    let functions = plan.functions.iter();
    functions.map(|function| launch(function, settings, account, state_dir, daemon, key)).collect()
}

fn launch(
    function: &FunctionSettings,
    settings: &EngineSettings,
    account: &AwsAccount,
    state_dir: &Path,
    daemon: SocketAddr,
    key: Option<&AccessKey>,
) -> Result<FunctionLaunch, EngineError> {
    let refuse = |reason: String| EngineError::Executable {
        logical_id: function.logical_id.clone(),
        reason,
    };
    let source = settings.functions.get(&function.logical_id).ok_or_else(|| {
        refuse("the template declares it, but the settings name no executable for it".to_owned())
    })?;
    let folder = state_dir.join("functions").join(&function.logical_id);
    let executable = folder.join("bootstrap");
    install_executable(source, &folder, &executable).map_err(|error| {
        let source = source.display();
        refuse(format!("{source} could not be prepared ({error}); build it first"))
    })?;
    let mut environment = function.environment.clone();
    environment.extend(settings.extra_environment.clone());
    Ok(FunctionLaunch {
        logical_id: function.logical_id.clone(),
        name: function.name.clone(),
        arn: account.arn("lambda", &format!("function:{}", function.name)),
        region: account.region.clone(),
        timeout: Duration::from_secs(function.timeout_seconds),
        memory_mb: function.memory_mb,
        daemon: function.is_traced.then_some(daemon),
        concurrency_max: function.concurrency_max.unwrap_or(limits::FUNCTION_CONCURRENCY_MAX),
        environment,
        key: key.cloned(),
        executable,
        endpoint: account.endpoint.clone(),
        state_dir: state_dir.to_owned(),
    })
}

/// Installs the executable as `bootstrap` in its own folder, so that a concurrent build does not replace it. It is
/// hard-linked, or copied to another disk.
fn install_executable(source: &Path, folder: &Path, executable: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    match fs::remove_file(executable) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::hard_link(source, executable).or_else(|_| fs::copy(source, executable).map(|_| ()))
}
