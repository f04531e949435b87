//! One step under its bounds.

use bobbin_core::records::recipe::{NAME_BYTES_MAX, RecipeStep, STEP_BYTES_MAX};
use bobbin_core::text::{one_line, visible};

/// A step that runs this behind `before`, lines of ours. Without a name of its own it is called by the first line of
/// what it runs.
///
/// # Errors
/// What has to change, as the end of a sentence.
pub(crate) fn step(
    name: Option<&str>,
    before: &str,
    run: &str,
) -> Result<RecipeStep, &'static str> {
    if run.trim().is_empty() {
        return Err("runs nothing: say what to run, or leave it out");
    }
    if before.len() + run.len() > STEP_BYTES_MAX {
        return Err("is longer than 4,096 bytes: move it into a script and run that");
    }
    if run.contains('\0') {
        return Err("has a NUL character: leave that out");
    }
    let named = name.map(str::trim).filter(|name| !name.is_empty());
    let name = title(named.unwrap_or_else(|| first_line(run)));
    Ok(RecipeStep { name, run: format!("{before}{run}") })
}

/// The first line that is no comment.
pub(crate) fn first_line(run: &str) -> &str {
    let mut lines = run.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().next().unwrap_or_default();
    lines.find(|line| !line.starts_with('#')).unwrap_or(first)
}

/// A name on one line, with nothing hidden in it, cut to its bound.
fn title(name: &str) -> String {
    let mut title = visible(&one_line(name));
    if title.len() > NAME_BYTES_MAX {
        title.truncate(title.floor_char_boundary(NAME_BYTES_MAX - '…'.len_utf8()));
        title.push('…');
    }
    title
}
