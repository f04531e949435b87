//! `sandbox tools`: what an agent elsewhere needs to work in a sandbox: the address of the tools, a bearer for the
//! present generation, and an `OpenCode` configuration with these tools and none of its own.

use bobbin_agent::ToolServer;
use bobbin_agent::opencode::tools_config;
use bobbin_core::base::ids::SandboxKey;
use bobbin_core::tokens::bearer::Bearer;
use serde::Serialize;
use serde_json::Value;

use super::super::arguments::OpenTools;
use super::super::stack::Stack;
use super::chosen;
use crate::output::{CommandError, ExitStatus, Output};

/// The JSON answer.
#[derive(Serialize)]
struct ToolsAnswer {
    sandbox: SandboxKey,
    name: Option<String>,
    /// Generation of the bearer.
    generation: u32,
    url: String,
    bearer: String,
    /// An `opencode.json`.
    opencode: Value,
}

pub async fn run(stack: &Stack, what: &OpenTools) -> Result<Output, CommandError> {
    let address = stack.tools().ok_or_else(|| {
        format!(
            "The tools are off in this stack. To switch them on: {} (it takes effect with a Concurrency of 200 or more).",
            stack.sam_deploy("ServeTools=yes")
        )
    })?;
    let chosen = chosen(stack, &what.sandbox, what.tenant.as_ref()).await?;
    let record = &chosen.record;
    if !record.is_alive() {
        return Err(CommandError::not_found(format!(
            "{} has no sandbox now ({}), so there is none to work in.",
            chosen.said,
            record.phase.word()
        )));
    }
    let bearer = Bearer { sandbox: chosen.key.clone(), generation: record.generation };
    let bearer = bearer.signed(stack.stack_key().await?.expose());
    let url = format!("{}/mcp", address.trim_end_matches('/'));
    let tools = ToolServer { url, ask: Vec::new() };
    let mut opencode = tools_config(&tools, &bearer);
    opencode["$schema"] = "https://opencode.ai/config.json".into();
    let url = tools.url;
    let text = format!(
        "The tools of {} are at {url}, with this bearer:\n{bearer}\nAnybody who has it can do anything in this sandbox, until the sandbox is created again (this is generation {}). For OpenCode, as opencode.json:\n{opencode:#}",
        chosen.said, record.generation
    );
    let answer = ToolsAnswer {
        sandbox: chosen.key,
        name: record.sharing.name.as_ref().map(ToString::to_string),
        generation: record.generation,
        url,
        bearer,
        opencode,
    };
    Output::new(text, &answer, ExitStatus::Done)
}
