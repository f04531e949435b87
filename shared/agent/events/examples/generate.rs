//! Writes `src/generated/*.rs`: what typify makes of `schemas/*.json`. A test compares the two.
//!
//! `cargo run -p bobbin-agent-events --example generate`

use std::error::Error;
use std::path::Path;

use typify::{TypeSpace, TypeSpaceSettings};

/// The names of the schemas, and of the files of types.
pub const SCHEMAS: [&str; 6] = ["acp", "amp", "claude", "codex", "opencode", "stream_json"];

const HEAD: &str = "\
// Made by typify of `schemas/*.json` with `cargo run -p bobbin-agent-events --example generate`: change the schema instead.
";

/// The Rust types of a schema.
pub fn rust_of(schema: &str) -> Result<String, Box<dyn Error>> {
    let schema: schemars::schema::RootSchema = serde_json::from_str(schema)?;
    let mut settings = TypeSpaceSettings::default();
    settings.with_struct_builder(false);
    let mut types = TypeSpace::new(&settings);
    types.add_root_schema(schema)?;
    let mut file: syn::File = syn::parse2(types.to_stream())?;
    // Its module of errors is for types with enums and patterns, which ours deliberately are not.
    file.items
        .retain(|item| !matches!(item, syn::Item::Mod(one) if one.ident == "error"));
    Ok(format!("{HEAD}{}", prettyplease::unparse(&file)))
}

/// A schema.
pub fn schema_of(agent: &str) -> std::io::Result<String> {
    let file = format!("schemas/{agent}.json");
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file))
}

/// The file of its types.
pub fn file_of(agent: &str) -> std::path::PathBuf {
    let file = format!("src/generated/{agent}.rs");
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

#[allow(dead_code, reason = "the test takes the functions above alone")]
fn main() -> Result<(), Box<dyn Error>> {
    for agent in SCHEMAS {
        std::fs::write(file_of(agent), rust_of(&schema_of(agent)?)?)?;
        println!("{}", file_of(agent).display());
    }
    Ok(())
}
