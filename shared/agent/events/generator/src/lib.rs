//! Generates the Rust types of agents' output from the schemas in `bobbin-agent-events`.
//!
//! A separate crate, so that no program that uses universal events depends on typify, and so that types can be
//! generated while the converters do not compile. Deliberately absent: a build script, which would bring typify back.

pub mod described;
pub mod drift;
pub mod extract;
pub mod place;
pub mod recorded;

use std::error::Error;
use std::path::PathBuf;

use typify::{TypeSpace, TypeSpaceSettings};

/// The names of the schemas, which are also those of the generated files.
pub const SCHEMAS: [&str; 6] = ["acp", "amp", "claude", "codex", "opencode", "stream_json"];

const HEAD: &str = "\
// Made by typify of `schemas/*.json` with `cargo run -p bobbin-agent-events-generator`: change the schema instead.
";

/// The Rust types of a schema.
///
/// # Errors
/// When it is not a JSON Schema of draft 7, or contains something that typify cannot express.
pub fn rust_of(schema: &str) -> Result<String, Box<dyn Error>> {
    let schema: schemars::schema::RootSchema = serde_json::from_str(schema)?;
    let mut settings = TypeSpaceSettings::default();
    settings.with_struct_builder(false);
    let mut types = TypeSpace::new(&settings);
    types.add_root_schema(schema)?;
    let mut file: syn::File = syn::parse2(types.to_stream())?;
    // Its module of errors is for types with enums and patterns, which ours deliberately are not.
    file.items.retain(|item| !matches!(item, syn::Item::Mod(one) if one.ident == "error"));
    Ok(format!("{HEAD}{}", prettyplease::unparse(&file)))
}

/// The schema of this name, as text.
///
/// # Errors
/// When there is none.
pub fn schema_of(name: &str) -> std::io::Result<String> {
    std::fs::read_to_string(crate_of_events().join(format!("schemas/{name}.json")))
}

/// The file with its generated types.
#[must_use]
pub fn file_of(name: &str) -> PathBuf {
    crate_of_events().join(format!("src/generated/{name}.rs"))
}

fn crate_of_events() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}
