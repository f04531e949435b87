//! `.cursor/environment.json`: what it installs, and what it starts.

use bobbin_core::records::recipe::Recipe;

use crate::files::{self, ProjectFiles};
use crate::gathered::{Gathered, KnownKeys, RunsAt};
use crate::node::{Pair, RecipeNode, Unread};
use crate::{steps, syntax};

const PATH: &str = ".cursor/environment.json";
const IMAGE: &str = "is not used: the sandbox has its own image";
const KNOWN: KnownKeys = KnownKeys {
    quiet: &["$schema", "name", "user", "install", "start", "agentCanUpdateSnapshot"],
    refused: &[
        ("snapshot", IMAGE),
        ("build", IMAGE),
        ("terminals", "are not opened: start what has to run in `start`"),
    ],
};

pub(crate) fn find(files: &ProjectFiles) -> Option<Recipe> {
    files::recipe(files, PATH, syntax::jsonc, fill)
}

fn fill(root: &RecipeNode, out: &mut Gathered) -> Result<(), Unread> {
    let pairs = root.map().ok_or_else(|| Unread::at(root.line, "not an object: begin with `{`"))?;
    for Pair { key, line, value } in pairs.iter().filter(|pair| pair.value.asks()) {
        let when = match key.as_str() {
            "install" => RunsAt::SetUp,
            "start" => RunsAt::Start,
            _ => continue,
        };
        let step = value.text().ok_or("is not text: it is not run");
        out.step(when, *line, key, step.and_then(|run| steps::step(None, "", run)));
    }
    out.refuse_keys(pairs, &KNOWN);
    Ok(())
}
