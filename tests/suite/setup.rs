//! `bobbin test`: a visible turn through the whole stack, with every stage reported and nothing left behind.

use std::process::{Output, Stdio};

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::records::sandbox::Phase;

use bobbin_tests::binaries;
use bobbin_tests::limits::ANSWER_MS_MAX;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use tokio::process::Command;

use crate::run::{CHAT, on};

pub fn trials() -> Vec<Trial> {
    vec![
        on(&CHAT, "embedded::setup::discord_test_turn_is_visibly_answered", discord),
        on(&CHAT, "embedded::setup::slack_test_turn_passes_ingress", slack),
        on(&CHAT, "embedded::setup::refused_test_turn_says_what_helps", refused),
    ]
}

/// Runs the program with only the environment that reaches this stack.
async fn run(world: &World, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let ready = &world.ready;
    let mut command = Command::new(binaries::folder().join("bobbin"));
    command
        .args(["--stack", "local", "test"])
        .args(arguments)
        .env_clear()
        .env("AWS_ENDPOINT_URL", &ready.aws_endpoint)
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", &ready.aws_access_key_id)
        .env("AWS_SECRET_ACCESS_KEY", &ready.aws_secret_access_key)
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("DISCORD_BOT_TOKEN", &ready.discord_bot_token)
        .env("SLACK_BOT_TOKEN", &ready.slack_bot_token)
        .env("SLACK_SIGNING_SECRET", &ready.slack_signing_secret)
        .env("DAYTONA_API_KEY", &ready.daytona_api_key)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let ended =
        tokio::time::timeout(std::time::Duration::from_millis(2 * ANSWER_MS_MAX), command.output());
    ended.await.expect("it ends within its bound").unwrap()
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// The stages in order; those that end within one poll may be missing.
#[track_caller]
fn in_order(out: &str, stages: &[&str]) {
    let mut rest = out;
    for stage in stages {
        let at = rest.find(stage).unwrap_or_else(|| panic!("{stage:?} in its place in {out}"));
        rest = &rest[at + stage.len()..];
    }
}

async fn discord(world: World) {
    let channel = world.ready.discord_channel_id.clone();
    let (code, out, err) = said(&run(&world, &["--discord-channel", &channel], &[]).await);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    in_order(
        &out,
        &[
            "  ok    The ingress answers at http://127.0.0.1:",
            "  ok    The ingress refuses requests that Discord has not signed\n",
            "  ok    The ingress refuses requests that Slack has not signed\n",
            "  ok    #general has a thread for the test: discord:",
            "  ok    The task is in the queue\n",
            " s  the task is getting its sandbox\n",
            "  ok    The turn was answered after ",
            "  ok    The answer is in the thread: bobbin-",
            "  ok    The test's sandbox is deleted; its thread stays as proof\n",
        ],
    );
    left_nothing(&world, &out).await;
}

async fn slack(world: World) {
    let (channel, user) = (world.ready.slack_channel_id.clone(), world.ready.slack_user_id.clone());
    let arguments = ["--slack-channel", &channel, "--slack-user", &user];
    let (code, out, err) = said(&run(&world, &arguments, &[]).await);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    in_order(
        &out,
        &[
            "  ok    The channel has a message for the test: slack:",
            "  ok    The ingress accepts the mention, signed as Slack signs it\n",
            " s  the task is getting its sandbox\n",
            "  ok    The turn was answered after ",
            "  ok    The answer is in the thread: bobbin-",
            "  ok    The test's sandbox is deleted; its thread stays as proof\n",
        ],
    );
    left_nothing(&world, &out).await;
}

/// The reported thread has no sandbox, by its record and at the provider.
async fn left_nothing(world: &World, out: &str) {
    let told = out.split(" for the test: ").nth(1).unwrap();
    let thread: ThreadKey = told.lines().next().unwrap().parse().unwrap();
    let session = world.session(&thread).await.unwrap();
    assert_eq!((session.sandbox.phase, &session.turn), (Phase::Destroyed, &None), "{session:?}");
    assert_eq!(world.provider.of(&thread).await.unwrap(), []);
}

async fn refused(world: World) {
    let (code, _, err) = said(&run(&world, &[], &[]).await);
    assert_eq!(code, Some(1));
    assert!(err.starts_with("Choose a channel for the test: --discord-channel ID"), "{err}");

    let (code, out, err) =
        said(&run(&world, &["--discord-channel", "1300000000000009999"], &[]).await);
    assert_eq!(code, Some(1), "{out}");
    assert!(err.starts_with("Discord knows no channel 1300000000000009999: "), "{err}");

    let (channel, user) = (world.ready.slack_channel_id.clone(), world.ready.slack_user_id.clone());
    let arguments = ["--slack-channel", &channel, "--slack-user", &user];
    let wrong = [("SLACK_SIGNING_SECRET", "00000000000000000000000000000000")];
    let (code, out, err) = said(&run(&world, &arguments, &wrong).await);
    assert_eq!(code, Some(1), "{out}");
    assert!(
        err.starts_with("The ingress refuses the signature: the stack has another signing secret"),
        "{err}"
    );
}
