//! Every step in one command, and everything undone.

use bobbin_sandbox::daytona::prepared::snapshot_name;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{APPLICATION, KEYED, Options, World};

fn name() -> String {
    snapshot_name(include_str!("../../../sandbox/Dockerfile"))
}

fn steps(out: &str) -> Vec<&str> {
    out.lines().filter(|line| line.starts_with('[')).collect()
}

const STEPS: [&str; 9] = [
    "[1/9] The stack",
    "[2/9] The Slack app",
    "[3/9] The GitHub App",
    "[4/9] The keys in the stack's secrets",
    "[5/9] Trying the keys",
    "[6/9] The sandboxes' snapshot",
    "[7/9] Discord's commands",
    "[8/9] Discord's endpoint",
    "[9/9] A test turn",
];

#[tokio::test]
async fn setup_without_stack_spells_out_deployment() {
    let world = World::start().await;
    let said = world.run(&["setup", "--stack", "mine"], &KEYED).await;
    assert_eq!((said.code, said.err.as_str()), (3, ""), "{}", said.out);
    assert_eq!(steps(&said.out), STEPS);
    said.holds(&format!("  ok    Snapshot {} is ready\n", name()));
    said.holds(&format!(
        "  to do Deploy the stack, then run this again:
        sam build && sam deploy --guided --stack-name mine --parameter-overrides DiscordApplicationId={APPLICATION} DiscordPublicKey={} AllowedGuilds=YOUR_SERVER_ID DaytonaSnapshot={}
",
        world.public_key,
        name()
    ));
}

/// The image with more in it has another name, and one that was not built is not deployed.
#[tokio::test]
async fn deployment_names_only_built_snapshot() {
    let world = World::start().await;
    let hash = "ab".repeat(64);
    let daemon =
        ["--daemon", "https://example.org/bobbin-agentd", "--daemon-sha512", hash.as_str()];
    let setup = [&["setup", "--stack", "mine"][..], &daemon, &["--agents", "claude"]].concat();
    let fault = json!({ "faults": [{ "fault": "fail_build" }] });
    world.provider(Method::POST, "/_control/faults", fault).await;
    let failed = world.run(&setup, &KEYED).await;
    assert_eq!(failed.code, 1, "{}", failed.out);
    failed.holds("sam deploy --guided --stack-name mine --parameter-overrides Discord");
    assert!(!failed.out.contains("DaytonaSnapshot="), "{}", failed.out);
    let planned = world.run(&[&setup[..], &["--dry-run"]].concat(), &KEYED).await;
    assert!(!planned.out.contains("DaytonaSnapshot="), "{}", planned.out);

    let said = world.run(&setup, &KEYED).await;
    assert_eq!((said.code, said.err.as_str()), (3, ""), "{}", said.out);
    let (_, after) = said.out.split_once(" AllowedGuilds=YOUR_SERVER_ID DaytonaSnapshot=").unwrap();
    let built = after.lines().next().unwrap();
    said.holds(&format!("  ok    Snapshot {built} is ready\n"));
    assert_ne!(built, name());
}

#[tokio::test]
async fn setup_is_repeatable_and_undone() {
    let parameters = vec![("DaytonaSnapshot", name())];
    let world = World::with(Options { parameters, ..Options::default() }).await;
    let dry = world.run_keyed(&["setup", "--dry-run", "--from-env"]).await;
    // The stack names a snapshot that is not built yet, which is wrong; nothing was written all the same.
    assert_eq!(dry.code, 1, "{}", dry.out);
    assert_eq!(world.secret("ProviderSecret").await, json!({}));

    let snapshot = world.run_keyed(&["snapshot"]).await;
    assert_eq!(snapshot.code, 0, "{}", snapshot.err);
    let first = world.run_keyed(&["setup", "--from-env"]).await;
    assert_eq!((first.code, first.err.as_str()), (0, ""), "{}", first.out);
    assert_eq!(steps(&first.out), STEPS);
    first.holds("  ok    Daytona API key is now stored\n");
    first.holds("all servers: these commands were written\n");
    first.holds(&format!(
        "interactions are now delivered to {}/discord/interactions instead of nowhere\n",
        world.ingress
    ));
    first.holds("  note  Skipped: choose a channel with --discord-channel ID, or --slack-channel ID and --slack-user ID.\n");

    // No key in the environment: those of the stack are used. `all` is the same command.
    let second = world.run(&["all"], &[]).await;
    assert_eq!((second.code, second.err.as_str()), (0, ""), "{}", second.out);
    second.holds("  note  No key was given, so nothing is stored.\n");
    second.holds("all servers: the commands are up to date, nothing was written\n");
    second.holds("interactions are already delivered to ");

    let told = world.run(&["undo"], &[]).await;
    assert_eq!(told.code, 3, "{}", told.out);
    told.holds("  to do Daytona API key would be forgotten\n");
    told.holds("  note  Nothing was changed; --yes makes the changes.\n");
    assert_ne!(world.secret("ProviderSecret").await, json!({}));
    let undone = world.run(&["undo", "--yes"], &[]).await;
    assert_eq!((undone.code, undone.err.as_str()), (0, ""), "{}", undone.out);
    // The stack may be one of several that start from it.
    undone.holds(&format!("bobbin --stack bobbin snapshot --remove --name {}\n", name()));
    undone.holds("        - /sandbox\n");
    undone.holds("interactions are now delivered to nowhere");
    assert_eq!(world.secret("ProviderSecret").await, json!({}));
    assert_eq!(world.secret("WorkerSecret").await, json!({"kept": "as it is"}));
    let snapshot =
        world.provider(Method::GET, &format!("/api/snapshots/{}", name()), Value::Null).await;
    assert_eq!(snapshot["state"], "active");
}

#[tokio::test]
async fn wrong_key_skips_test_turn() {
    let parameters = vec![("DaytonaSnapshot", name())];
    let world = World::with(Options { parameters, ..Options::default() }).await;
    let channel = world.chat.seeds().channel_id;
    let wrong = [("ANTHROPIC_API_KEY", "wrong"), ("DISCORD_CHANNEL_ID", channel.as_str())];
    let said = world.run(&["setup", "--from-env"], &[&KEYED[..], &wrong].concat()).await;
    assert_eq!(said.code, 1, "{}", said.out);
    said.holds("  WRONG Anthropic: the key of ANTHROPIC_API_KEY is refused\n");
    said.holds("all servers: these commands were written\n");
    said.holds("  note  Skipped until nothing above is wrong; bobbin test sends it anyway.\n");
}
