//! Scripts at a path that another tool knows.

use bobbin_core::records::recipe::Recipe;

use crate::files::ProjectFiles;
use crate::gathered::{Gathered, RunsAt};
use crate::shell::quoted;
use crate::steps::step;

pub(crate) fn openinspect(files: &ProjectFiles) -> Option<Recipe> {
    let scripts =
        [(".openinspect/setup.sh", RunsAt::SetUp), (".openinspect/start.sh", RunsAt::Start)];
    run(files, &scripts)
}

pub(crate) fn openhands(files: &ProjectFiles) -> Option<Recipe> {
    run(files, &[(".openhands/setup.sh", RunsAt::SetUp)])
}

/// Runs each script that is there. It runs as a file, since it may look for others beside itself.
fn run(files: &ProjectFiles, scripts: &[(&str, RunsAt)]) -> Option<Recipe> {
    let there = |path: &str| files.texts.contains_key(path);
    let mut there = scripts.iter().filter(|(path, _)| there(path)).peekable();
    let mut gathered = Gathered::of(there.peek()?.0);
    for (path, when) in there {
        gathered.step(*when, 1, path, step(None, "", &format!("bash {}", quoted(path))));
    }
    Some(gathered.finish())
}
