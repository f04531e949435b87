//! A repository's files into a [`Recipe`]: how its project is set up. Everything here is a stranger's text, unless it
//! comes from a tenant's settings.

mod cursor;
mod devcontainer;
mod files;
mod gathered;
mod node;
mod own;
mod scripts;
mod shell;
mod steps;
mod syntax;
mod variables;
mod versions;
mod words;
mod workflow;

pub use bobbin_core::records::recipe::{ProjectService, Recipe, RecipeSource, RecipeStep};
pub use files::{
    FILE_BYTES_MAX, LINK_OUT, LOCK_FILES, ProjectFiles, ROOT_NAMES, WANTED, is_wanted,
};

/// The recipe of a repository's files. The first kind of file that is found wins, and nothing is merged. A file that
/// cannot be read is found all the same: its recipe has no steps and says why.
#[must_use]
pub fn recipe_of(files: &ProjectFiles) -> Option<Recipe> {
    let kinds = [
        own::find,
        devcontainer::find,
        cursor::find,
        scripts::openinspect,
        scripts::openhands,
        workflow::find,
        versions::find,
    ];
    kinds.iter().find_map(|find| find(files))
}

/// What a tenant's own text says of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsRecipe {
    /// Its recipe; `None`: its own files count.
    pub recipe: Option<Recipe>,
    /// The repositories beside it, as `owner/name`.
    pub repositories: Vec<String>,
}

/// Reads a tenant's own text, which is written as `.bobbin/environment.yaml` is, with one key more: `repositories`.
///
/// # Errors
/// What to change, and on which line.
pub fn of_settings(text: &str) -> Result<SettingsRecipe, String> {
    let read = files::text(text.as_bytes()).and_then(own::of_settings);
    read.map_err(|unread| unread.to_string())
}
