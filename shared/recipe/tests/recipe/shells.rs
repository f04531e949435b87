//! Steps as a shell runs them.

use std::path::Path;
use std::process::{Command, Output};

use bobbin_recipe::recipe_of;

use crate::expected::with;

/// What a devcontainer's command does in this folder.
fn ran(folder: &Path, command: &str) -> Output {
    let text = format!("{{ \"postCreateCommand\": {command} }}");
    let recipe = recipe_of(&with(".devcontainer.json", text)).unwrap();
    let mut bash = Command::new("bash");
    bash.arg("-c").arg(&recipe.set_up[0].run).current_dir(folder).output().unwrap()
}

fn said(folder: &Path, command: &str) -> String {
    let output = ran(folder, command);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn words_of_a_list_arrive_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let command = r#"["printf", "<%s>", "a b", "", "it's", "$HOME", "`id`", "\"", "*", "~", "a\\b", "x\ny", "&"]"#;
    assert_eq!(said(folder.path(), command), "<a b><><it's><$HOME><`id`><\"><*><~><a\\b><x\ny><&>");
    let odd = ran(folder.path(), r#"["time", "-x"]"#);
    assert!(!String::from_utf8_lossy(&odd.stderr).contains("real"), "{odd:?}");
}

#[test]
fn the_checkout_is_put_in() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("my project");
    std::fs::create_dir(&inside).unwrap();
    let path = inside.canonicalize().unwrap().display().to_string();
    let list =
        r#"["printf", "%s|", "${containerWorkspaceFolder}", "-${containerWorkspaceFolder}/a b"]"#;
    assert_eq!(said(&inside, list), format!("{path}|-{path}/a b|"));
    let text = r#""cd / && printf %s \"${containerWorkspaceFolder}/x\"""#;
    assert_eq!(said(&inside, text), format!("{path}/x"));
    let quoted = r#""bash -c 'cd / && printf %s \"${containerWorkspaceFolder}/x\"'""#;
    assert_eq!(said(&inside, quoted), format!("{path}/x"));
    let both = r#"{ "a": "cd / && printf %s \"${containerWorkspaceFolder}/x\"" }"#;
    assert_eq!(said(&inside, both), format!("{path}/x"));
}

#[test]
fn an_objects_commands_run_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    // Each reads what the other writes, which only two that run at once can.
    let made = Command::new("mkfifo").args(["there", "back"]).current_dir(folder.path()).status();
    assert!(made.unwrap().success());
    let command = r#"{
        "one": "echo hello > there; cat back",
        "two": ["sh", "-c", "cat there; echo goodbye > back"]
    }"#;
    let mut words: Vec<String> = said(folder.path(), command).lines().map(str::to_owned).collect();
    words.sort();
    assert_eq!(words, ["goodbye", "hello"]);
}

#[test]
fn one_failure_fails_an_object_after_all() {
    let folder = tempfile::tempdir().unwrap();
    let command = r#"{ "bad": "exit 3", "it's good": "touch done", "unclosed": "if true; then" }"#;
    let output = ran(folder.path(), command);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("bad failed\n"), "{told}");
    assert!(told.contains("unclosed failed\n"), "{told}");
    assert!(!told.contains("good failed"), "{told}");
    assert!(folder.path().join("done").exists());
}
