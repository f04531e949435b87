//! The program itself: what it prints for a Slack app.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

use serde_json::Value;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bobbin-setup"))
        .args(["slack", "manifest"])
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn the_manifest_is_printed_for_the_address_with_the_link_that_makes_the_app() {
    let done = run(&["--address", "https://bobbin.example"]);
    assert!(done.status.success());
    let printed = String::from_utf8(done.stdout).unwrap();
    let (manifest, rest) = printed.split_once("\n\n").unwrap();
    let manifest: Value = serde_json::from_str(manifest).unwrap();
    assert_eq!(
        manifest["settings"]["event_subscriptions"]["request_url"],
        "https://bobbin.example/slack/events"
    );
    assert!(
        rest.contains("https://api.slack.com/apps?new_app=1&manifest_json=%7B"),
        "{rest}"
    );
    let link = run(&["--address", "https://bobbin.example", "--link"]);
    let link = String::from_utf8(link.stdout).unwrap();
    assert!(link.starts_with("https://api.slack.com/apps?new_app=1") && link.lines().count() == 1);
}

#[test]
fn an_address_that_slack_would_not_take_is_refused_with_what_to_give() {
    let done = run(&["--address", "http://localhost:3000"]);
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains("https:// and a host name"), "{said}");
}
