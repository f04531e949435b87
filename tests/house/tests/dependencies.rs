//! The workspace's own dependencies, and one planted fault for each rule.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use bobbin_house::{Metadata, broken, is_allowed};
use serde_json::{Value, json};

#[test]
fn dependencies_keep_to_the_rules() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let asked = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&asked.stderr);
    assert!(asked.status.success(), "{said}");
    let metadata: Metadata = serde_json::from_slice(&asked.stdout).unwrap();
    assert_eq!(broken(&metadata), Vec::<String>::new());
}

/// A workspace of one package with these dependencies, all of them at hand.
fn found(dependencies: &[Value], foreign: Value, source: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("lib.rs"), source).unwrap();
    let metadata = json!({
        "packages": [
            {
                "id": "ours", "name": "ours", "version": "0.1.0", "license": "MIT", "source": null,
                "manifest_path": folder.path().join("Cargo.toml"), "dependencies": dependencies,
            },
            foreign,
        ],
        "resolve": {"nodes": [{"id": "ours", "deps": [{"name": "its_library", "pkg": "theirs"}]}]},
    });
    broken(&serde_json::from_value(metadata).unwrap())
}

fn theirs() -> Value {
    json!({
        "id": "theirs", "name": "theirs", "version": "1.0.0", "license": "MIT",
        "source": "registry+https://example.invalid/crates.io-index",
        "manifest_path": "/nowhere/Cargo.toml", "dependencies": [],
    })
}

fn dependency(kind: Option<&str>) -> Value {
    json!({"name": "theirs", "rename": null, "kind": kind, "features": []})
}

#[test]
fn an_unused_dependency_is_found() {
    let used = found(&[dependency(None)], theirs(), "use its_library::Thing;");
    assert_eq!(used, Vec::<String>::new());
    let unused = found(&[dependency(None)], theirs(), "use its_library_too::Thing;");
    assert_eq!(unused, ["ours does not use theirs"]);
}

#[test]
fn a_dependency_declared_twice_is_found() {
    let both = [dependency(None), dependency(Some("dev"))];
    let twice = found(&both, theirs(), "use its_library::Thing;");
    assert_eq!(twice, ["ours declares theirs twice"]);
}

#[test]
fn a_foreign_source_is_found() {
    let mut elsewhere = theirs();
    elsewhere["source"] = "git+https://example.invalid/theirs".into();
    assert_eq!(
        found(&[], elsewhere, ""),
        ["theirs 1.0.0 comes from git+https://example.invalid/theirs, not from crates.io"]
    );
}

#[test]
fn copyleft_or_missing_licence_is_found() {
    let mut copyleft = theirs();
    copyleft["license"] = "AGPL-3.0-only".into();
    assert_eq!(
        found(&[], copyleft, ""),
        ["theirs 1.0.0 has the licence AGPL-3.0-only, which is not among ours"]
    );
    let mut silent = theirs();
    silent["license"] = Value::Null;
    assert_eq!(found(&[], silent, ""), ["theirs 1.0.0 names no licence"]);
}

#[test]
fn licence_expressions_are_read() {
    for allowed in [
        "MIT",
        "MIT/Apache-2.0",
        "MIT OR LGPL-2.1-or-later",
        "LGPL-2.1-or-later OR MIT",
        "(MIT OR GPL-2.0-only) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR GPL-2.0-only",
    ] {
        assert!(is_allowed(allowed), "{allowed}");
    }
    for refused in [
        "",
        "GPL-3.0-only",
        "MIT AND GPL-3.0-only",
        "GPL-2.0-only WITH Classpath-exception-2.0",
        "(MIT OR Apache-2.0",
        "MIT MIT",
    ] {
        assert!(!is_allowed(refused), "{refused}");
    }
}
