//! Runtimes for the mode of a sandbox ([`RuntimeMode`]).

use std::sync::Arc;

use bobbin_agent::models::ModelSettings;
use bobbin_agent::opencode::{OpenCodeRuntime, Via};
use bobbin_agent::{Bare, Runtime, ToolServer};
use bobbin_agent_native::NativeRuntime;
use bobbin_core::base::limits::FileLimits;
use bobbin_core::records::artifacts::agent_instructions;
use bobbin_core::tenant::runtime_mode::RuntimeMode;

/// Reply if somebody wants an agent outside its sandbox and no tools are served.
const NO_TOOLS: &str = "An agent cannot work outside of its sandbox here, because the tools for that are off. The operator switches them on with the template's parameter ServeTools and a Concurrency of 200 or more; until then choose another runtime.";

/// The mode of a stack with this `SANDBOX_RUNTIME_MODE`: the first one if empty.
///
/// # Errors
/// A sentence that lists the modes.
pub fn configured(name: &str) -> Result<RuntimeMode, String> {
    if name.is_empty() {
        return Ok(RuntimeMode::default());
    }
    RuntimeMode::named(name).map_err(|unknown| format!("SANDBOX_RUNTIME_MODE: {unknown}"))
}

/// The runtime for sandboxes whose records name this mode, in a stack with this configuration.
///
/// # Errors
/// What is wrong with the name of a mode or a model.
pub(crate) fn runtime(
    of_stack: &str,
    recorded: Option<&str>,
    models: &ModelSettings,
    limits: &FileLimits,
    tools: Option<&ToolServer>,
) -> Result<Arc<dyn Runtime>, String> {
    let mode = RuntimeMode::of(configured(of_stack)?, recorded).map_err(|e| e.to_string())?;
    let via = match mode {
        RuntimeMode::OpenCode => Via::Server,
        RuntimeMode::Compat => Via::Daemon,
        RuntimeMode::Native => {
            let runtime = NativeRuntime::new(models, &agent_instructions(limits))?;
            return Ok(Arc::new(runtime));
        }
        RuntimeMode::Outside => {
            let tools = tools.ok_or(NO_TOOLS)?.clone();
            let runtime = OpenCodeRuntime::new(models)?.working_by(tools);
            return Ok(Arc::new(runtime));
        }
        RuntimeMode::Bare => {
            let runtime = Bare::instead_of(OpenCodeRuntime::new(models)?);
            return Ok(Arc::new(runtime));
        }
    };
    Ok(Arc::new(OpenCodeRuntime::new(models)?.reached(via)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_mode_names_setting_and_choices() {
        assert_eq!(configured(""), Ok(RuntimeMode::OpenCode));
        assert_eq!(
            configured("Compat"),
            Err(
                "SANDBOX_RUNTIME_MODE: \"Compat\" is not a runtime; the runtimes are opencode, compat, native and outside"
                    .to_owned()
            )
        );
    }
}
