//! Writes the types of all schemas: `cargo run -p bobbin-agent-events-generator`.

use std::error::Error;

use bobbin_agent_events_generator::{SCHEMAS, file_of, rust_of, schema_of};

fn main() -> Result<(), Box<dyn Error>> {
    for name in SCHEMAS {
        std::fs::write(file_of(name), rust_of(&schema_of(name)?)?)?;
    }
    Ok(())
}
