//! The text of the workspace, and one planted fault for each rule.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use bobbin_house::untidy;

#[test]
fn workspace_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    assert_eq!(untidy(&root), Vec::<String>::new());
}

fn found(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    untidy(folder.path())
}

#[test]
fn tidy_files_are_left_alone() {
    let lib = ("src/lib.rs", "//! A crate.\nmod a;\nconst SAID: &str = \"none where\";\n");
    assert_eq!(found(&[lib, ("src/a.rs", ""), ("x.md", "Plain.")]), Vec::<String>::new());
}

#[test]
fn translated_words_are_found() {
    let said = found(&[
        ("x.md", "\nWhat comes of it"),
        ("src/lib.rs", "/// Its name; none where it has none."),
    ]);
    assert_eq!(
        said,
        [
            "src/lib.rs:1: \"none where\"; say \"`None` if\"",
            "x.md:2: \"what comes of\"; say \"the result\"",
        ]
    );
}

#[test]
fn wide_comments_are_found() {
    let wide = format!("// {}\n", "a".repeat(118));
    assert_eq!(found(&[("src/lib.rs", &wide)]), ["src/lib.rs:1: a comment wider than 120"]);
}

#[test]
fn unnamed_files_are_found() {
    assert_eq!(
        found(&[("src/lib.rs", ""), ("src/old.rs", "")]),
        ["src/old.rs: no file names this module"]
    );
}
