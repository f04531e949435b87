//! Which files of a repository are looked at.

use std::collections::{BTreeMap, BTreeSet};

use bobbin_core::records::recipe::{Recipe, RecipeSource};
use bobbin_core::text::visible;

use crate::gathered::Gathered;
use crate::node::{RecipeNode, Unread};
use crate::words::code;

/// Bytes of a file that is read.
pub const FILE_BYTES_MAX: usize = 65_536;
/// Bytes of the folder's name in `.devcontainer/<folder>/devcontainer.json`.
const FOLDER_BYTES_MAX: usize = 100;

/// Paths of the files whose content is wanted, beside `.devcontainer/<one folder>/devcontainer.json`.
pub const WANTED: &[&str] = &[
    ".bobbin/environment.yaml",
    ".devcontainer/devcontainer.json",
    ".devcontainer.json",
    ".cursor/environment.json",
    ".openinspect/setup.sh",
    ".openinspect/start.sh",
    ".openhands/setup.sh",
    ".github/workflows/copilot-setup-steps.yml",
    "mise.toml",
    ".tool-versions",
    ".nvmrc",
    ".node-version",
    ".python-version",
    "rust-toolchain.toml",
    "rust-toolchain",
];

/// Names of files that pin what is installed, in whichever folder: while none changes, a set-up is not done again.
pub const LOCK_FILES: &[&str] = &[
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
    "deno.lock",
    "uv.lock",
    "poetry.lock",
    "Pipfile.lock",
    "requirements.txt",
    "Cargo.lock",
    "Gemfile.lock",
    "composer.lock",
    "go.sum",
    "mix.lock",
    "gradle.lockfile",
    "packages.lock.json",
    "pubspec.lock",
    "flake.lock",
];

/// Other names in the top folder that count.
pub const ROOT_NAMES: &[&str] = &[".yarnrc.yml"];

/// Stands for the content of a wanted path that is a link to no file of the repository. No text is this.
pub const LINK_OUT: &[u8] = b"\xfflink";

/// The wanted files that a repository has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectFiles {
    /// Content of the wanted files that exist, by path; [`LINK_OUT`] of a link that is none.
    pub texts: BTreeMap<String, Vec<u8>>,
    /// Names in the top folder; others than [`LOCK_FILES`] and [`ROOT_NAMES`] do not count.
    pub root: BTreeSet<String>,
}

/// Whether the content of the file at this path is wanted.
#[must_use]
pub fn is_wanted(path: &str) -> bool {
    WANTED.contains(&path) || is_nested_devcontainer(path)
}

/// Whether this is a devcontainer in a folder of its own. A folder whose name hides something is nobody's.
pub(crate) fn is_nested_devcontainer(path: &str) -> bool {
    let folder = path.strip_prefix(".devcontainer/");
    folder.and_then(|rest| rest.strip_suffix("/devcontainer.json")).is_some_and(|folder| {
        (1..=FOLDER_BYTES_MAX).contains(&folder.len())
            && !folder.contains(['/', '\\', '\n', '\t'])
            && ![".", ".."].contains(&folder)
            && visible(folder) == folder
    })
}

/// A file's text, without the mark that some editors put before it.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Unread> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(Unread::whole("larger than 64 KB: move what its steps do into scripts"));
    }
    if bytes == LINK_OUT {
        return Err(Unread::whole("a link to no file of the repository: commit the file itself"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let lines = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        Unread::at(lines + 1, "not UTF-8: save the file as UTF-8")
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// The recipe of one file, if it is there: what it says is parsed, and `fill` takes from that what counts.
pub(crate) fn recipe(
    files: &ProjectFiles,
    path: &str,
    parse: fn(&str) -> Result<RecipeNode, Unread>,
    fill: fn(&RecipeNode, &mut Gathered) -> Result<(), Unread>,
) -> Option<Recipe> {
    let bytes = files.texts.get(path)?;
    let read = text(bytes).and_then(parse).and_then(|root| {
        let mut gathered = Gathered::of(path);
        fill(&root, &mut gathered)?;
        Ok(gathered.finish())
    });
    Some(read.unwrap_or_else(|unread| unreadable(path, &unread)))
}

/// The recipe of a file that cannot be read.
pub(crate) fn unreadable(path: &str, unread: &Unread) -> Recipe {
    let mut recipe = Recipe::empty(RecipeSource::File(path.to_owned()));
    recipe.refused.push(unread_in(path, unread));
    recipe
}

/// Says which file cannot be read, and why.
pub(crate) fn unread_in(path: &str, unread: &Unread) -> String {
    match unread.line {
        Some(line) => format!("{}, line {line}: {}.", code(path), unread.words),
        None => format!("{}: {}.", code(path), unread.words),
    }
}

#[cfg(test)]
mod tests {
    use bobbin_core::records::publication::is_protected;

    use super::*;

    #[test]
    fn lock_files_are_protected() {
        for name in LOCK_FILES {
            assert!(is_protected(name), "{name}");
        }
    }
}
