//! The Rust sources of a package, files of other folders that a `#[path]` names included.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// All sources as one text, without those of packages inside its folder.
pub fn read(folder: &Path, packages: &[&Path]) -> String {
    let mut files = BTreeSet::new();
    walk(folder, packages, &mut files);
    let mut text = String::new();
    let mut left: Vec<PathBuf> = files.iter().cloned().collect();
    while let Some(file) = left.pop() {
        let source = fs::read_to_string(&file).unwrap_or_default();
        for named in named_paths(&file, &source) {
            if files.insert(named.clone()) {
                left.push(named);
            }
        }
        text += &source;
        text.push('\n');
    }
    text
}

fn walk(folder: &Path, packages: &[&Path], files: &mut BTreeSet<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() {
            let is_own = !packages.contains(&path.as_path());
            if is_own && path.file_name().is_some_and(|name| name != "target") {
                walk(&path, packages, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.insert(path);
        }
    }
}

fn named_paths(file: &Path, source: &str) -> Vec<PathBuf> {
    let named = source.split("#[path = \"").skip(1);
    let named = named.filter_map(|rest| rest.split('"').next());
    let folder = file.parent().unwrap_or(Path::new(""));
    let found = named.filter_map(|path| fs::canonicalize(folder.join(path)).ok());
    found.collect()
}

/// Whether the text has this identifier as a word of its own.
pub fn names(text: &str, identifier: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(identifier).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}
