//! A repository on disk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bobbin_recipe::{ProjectFiles, Recipe, is_wanted, recipe_of};

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// The fixtures whose names begin so.
pub fn named(beginning: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(beginning)).collect()
}

pub fn files(fixture: &str) -> ProjectFiles {
    let mut files = ProjectFiles::default();
    read(&folder().join(fixture), "", &mut files);
    files
}

fn read(folder: &Path, before: &str, files: &mut ProjectFiles) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{before}{}", entry.file_name().into_string().unwrap());
        if before.is_empty() {
            files.root.insert(path.clone());
        }
        if entry.path().is_dir() {
            read(&entry.path(), &format!("{path}/"), files);
        } else if is_wanted(&path) {
            files.texts.insert(path, std::fs::read(entry.path()).unwrap());
        }
    }
}

pub fn recipe(fixture: &str) -> Recipe {
    recipe_of(&files(fixture)).unwrap()
}
