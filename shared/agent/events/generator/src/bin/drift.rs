//! Reports how agents' descriptions of themselves differ from our schemas.
//!
//! `cargo run -p bobbin-agent-events-generator --bin drift -- opencode=/usr/bin/opencode codex=/usr/bin/codex
//! claude=recorded.jsonl`: each argument names a schema and what to compare it with: the agent's program (those of
//! OpenCode and Codex describe themselves), a description (`.json`), or recorded lines. Exits with 1 if reading would
//! break.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use bobbin_agent_events_generator::drift::{Drift, with_description, with_recorded};
use bobbin_agent_events_generator::extract::{SelfDescription, said_by};
use bobbin_agent_events_generator::schema_of;
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        return Err(
            "usage: drift SCHEMA=PROGRAM|FILE... (opencode, codex, claude, amp, stream_json, acp)"
                .into(),
        );
    }
    let mut breaks = false;
    for argument in arguments {
        let (name, place) =
            argument.split_once('=').ok_or("an argument is SCHEMA=PROGRAM or SCHEMA=FILE")?;
        let schema: Value = serde_json::from_str(&schema_of(name)?)?;
        let place = Path::new(place);
        let said = said_by(name, place).await?;
        let found = match &said {
            SelfDescription::Description(document) => with_description(&schema, document),
            SelfDescription::Lines(lines) => with_recorded(&schema, lines),
        };
        println!("{name} against {}: {} differences", place.display(), found.len());
        for one in &found {
            println!("  {one}");
        }
        breaks |= found.iter().any(|one| matches!(one, Drift::Breaks { .. }));
    }
    Ok(if breaks { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
