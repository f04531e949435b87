//! Rules over the text of the workspace: words that must not come back, the width of comments, unnamed files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Columns of a comment line.
const COLUMNS_MAX: usize = 120;
/// Folders without files of ours, or with records of their time.
const SKIPPED: [&str; 6] = ["target", ".git", ".bobbin", "node_modules", "generated", "decisions"];
/// Phrases that read as translated, and the plain word for each (docs use the same words as code).
const WORDS: [(&str, &str); 13] = [
    ("what comes of", "the result"),
    ("what came of", "the result"),
    ("what becomes of", "what happens to"),
    ("by what it is known", "its id"),
    ("none where", "`None` if"),
    ("who runs the stack", "the operator"),
    ("control lane", "control messages"),
    ("gives it back", "retries it"),
    ("is given back", "is retried"),
    ("control word", "control message"),
    ("for want of", "because there is no"),
    ("so many of", "this many of"),
    ("looked at just now", "checked just now"),
];

/// The untidy places below this folder, a line each.
///
/// # Panics
/// If a file of the workspace cannot be read.
#[must_use]
pub fn untidy(root: &Path) -> Vec<String> {
    let files = files(root);
    let mut found = Vec::new();
    for file in &files {
        let name = file.strip_prefix(root).unwrap_or(file).display();
        let text = std::fs::read_to_string(file).expect("a text file");
        let is_code = file.extension() == Some(OsStr::new("rs"));
        let comments = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !is_code || line.trim_start().starts_with("//"));
        for (number, line) in comments {
            let lower = line.to_lowercase();
            for (phrase, plain) in WORDS.iter().filter(|(phrase, _)| lower.contains(phrase)) {
                found.push(format!("{name}:{}: \"{phrase}\"; say \"{plain}\"", number + 1));
            }
            let is_table = line.trim_start_matches(['/', '!', ' ']).starts_with('|');
            if is_code && !is_table && line.chars().count() > COLUMNS_MAX {
                found.push(format!("{name}:{}: a comment wider than {COLUMNS_MAX}", number + 1));
            }
        }
        if is_code && !is_named(file, &files) {
            found.push(format!("{name}: no file names this module"));
        }
    }
    found.sort();
    found
}

/// The Rust files and documents below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|it| it == "rs" || it == "md") {
            found.push(path);
        }
    }
    found
}

/// Whether a file below a crate's `src` is a root, or some file beside or above it says `mod` of it.
fn is_named(file: &Path, files: &[PathBuf]) -> bool {
    let in_src = file.components().any(|part| part.as_os_str() == "src");
    let stem = file.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let folder = file.parent().unwrap_or(file);
    if !in_src || ["lib", "main", "build"].contains(&stem) || folder.ends_with("bin") {
        return true;
    }
    let (name, around) = match stem {
        "mod" => (folder.file_name().and_then(OsStr::to_str), folder.parent()),
        stem => (Some(stem), Some(folder)),
    };
    let (Some(name), Some(around)) = (name, around) else { return true };
    let module = format!("mod {name};");
    let path = format!("{name}.rs\"]");
    files.iter().any(|other| {
        let is_around = other.parent() == Some(around) || other.with_extension("") == around;
        let reads = || std::fs::read_to_string(other).unwrap_or_default();
        is_around && other != file && {
            let text = reads();
            text.contains(&module) || text.contains(&path)
        }
    })
}
