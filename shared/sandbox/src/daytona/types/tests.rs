#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn sandbox(state: &str, desired: &str) -> DaytonaSandbox {
    serde_json::from_value(json!({
        "id": "i", "name": "n", "state": state, "desiredState": desired, "recoverable": true, "errorReason": "disk full",
        "cpu": 2.0, "fromTheFuture": [1],
    }))
    .unwrap()
}

#[test]
fn unknown_daytona_state_means_busy() {
    let table = [
        (
            SandboxState::Provisioning,
            "pending_build building_snapshot pulling_snapshot creating restoring starting resuming",
        ),
        (SandboxState::Running, "started"),
        (SandboxState::Stopped, "stopped archived archiving paused"),
        (SandboxState::Busy, "stopping pausing snapshotting resizing forking unknown hibernating"),
        (SandboxState::Gone, "destroying destroyed"),
        (SandboxState::Broken { reason: "disk full".into(), recoverable: true }, "error"),
        (SandboxState::Broken { reason: "disk full".into(), recoverable: false }, "build_failed"),
    ];
    for (expected, states) in table {
        for state in states.split(' ') {
            assert_eq!(sandbox(state, "stopped").sandbox_state(), expected, "{state}");
        }
    }
    assert_eq!(sandbox("unknown", "started").sandbox_state(), SandboxState::Provisioning);
    let bare: DaytonaSandbox = serde_json::from_value(json!({"id": "i", "name": "n"})).unwrap();
    assert_eq!(bare.sandbox_state(), SandboxState::Busy);
}

#[test]
fn create_body_has_snapshot_or_build() {
    let key = bobbin_core::base::ids::ThreadKey::discord("1", "2").unwrap().sandbox();
    let body = |image| {
        serde_json::to_value(CreateSandbox::new(
            StackIdentity { name: "dev", id: "a" },
            &key,
            1,
            &image,
            &SandboxLimits::DEFAULT,
        ))
        .unwrap()
    };
    let snapshot = body(SourceImage::Snapshot("s".into()));
    assert_eq!(snapshot["snapshot"], "s");
    assert!(snapshot.get("buildInfo").is_none() && snapshot.get("cpu").is_none());
    let build = body(SourceImage::Dockerfile("FROM x\n".into()));
    assert_eq!(build["buildInfo"]["dockerfileContent"], "FROM x\n");
    assert!(build.get("snapshot").is_none() && build["memory"] == 4);
}

#[test]
fn preview_token_leaves_the_url() {
    let link =
        |url: &str, token: &str| PreviewLink { url: url.into(), token: token.into() }.normalised();
    assert_eq!(link("https://4096-x.test/?tkn=abc", ""), link("https://4096-x.test", "abc"));
    assert_eq!(link("https://4096-x.test?a=1&DAYTONA_SANDBOX_AUTH_KEY=abc", "").token, "abc");
    assert_eq!(link("https://4096-x.test/?tkn=old", "new").token, "new");
    assert!(!format!("{:?}", link("https://x.test", "secret")).contains("secret"));
}

#[test]
fn any_error_body_is_readable() {
    assert_eq!(ErrorBody::parse(br#"{"statusCode":400,"message":["a","b"]}"#).message(), "a, b");
    assert_eq!(ErrorBody::parse(b"<html>").message(), "");
    assert!(
        ErrorBody::parse(br#"{"message":"bad request: Is the Sandbox started?"}"#)
            .says_unreachable()
    );
    assert!(ErrorBody::parse(br#"{"message":"failed to get runner info: x"}"#).says_unreachable());
    assert!(!ErrorBody::parse(br#"{"message":"command cannot be empty"}"#).says_unreachable());
}
