//! The command `snapshot`: the image that sandboxes begin with, built and removed at the provider.

use bobbin_sandbox::daytona::prepared::snapshot_name;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{DAYTONA_KEY, Options, World};

const KEY: [(&str, &str); 1] = [("DAYTONA_API_KEY", DAYTONA_KEY)];

fn name() -> String {
    snapshot_name(include_str!("../../../sandbox/Dockerfile"))
}

/// Without what depends on how quick the machine is: seconds, and which states were seen on the way.
fn steady(out: &str) -> String {
    let timed = |line: &&str| !line.contains(" s  ");
    out.lines().filter(timed).map(|line| format!("{line}\n")).collect()
}

async fn state(world: &World) -> Value {
    let path = format!("/api/snapshots/{}", name());
    world.provider(Method::GET, &path, Value::Null).await["state"].clone()
}

#[tokio::test]
async fn snapshot_is_built_activated_and_removed() {
    let world = World::start().await;
    let name = name();
    let deploy = format!(
        "  to do The stack does not use it yet: sam deploy --stack-name bobbin --region us-east-1 --parameter-overrides DaytonaSnapshot={name}\n"
    );
    let dry = world.run(&["snapshot", "--dry-run"], &KEY).await;
    dry.is(3, &format!("  to do Snapshot {name} would be built\n"));

    let built = world.run(&["snapshot"], &KEY).await;
    assert_eq!(built.code, 3, "{}", built.err);
    let steps = "  ...   | Step 1/8 : FROM node:22-bookworm-slim\n";
    built.holds(steps);
    built.holds("  ...   | Step 8/8 : ENTRYPOINT [\"sleep\", \"infinity\"]\n");
    built.holds(" s  active\n");
    let told = steady(&built.out);
    assert!(told.starts_with(&format!("  ...   Daytona is building the snapshot {name} from infra/sandbox/Dockerfile; that takes some minutes\n")), "{told}");
    assert!(told.ends_with(&format!("  ok    Snapshot {name} is ready\n{deploy}")), "{told}");

    let again = world.run(&["snapshot"], &KEY).await;
    again.is(3, &format!("  ok    Snapshot {name} is ready\n{deploy}"));
    let stackless = world.run(&["snapshot", "--stack", "other"], &KEY).await;
    stackless.is(
        0,
        &format!(
            "  ok    Snapshot {name} is ready\n  note  For sam deploy: DaytonaSnapshot={name}\n"
        ),
    );

    world.provider(Method::POST, &format!("/api/snapshots/{name}/deactivate"), json!({})).await;
    assert_eq!(state(&world).await, "inactive");
    let woken = world.run(&["snapshot"], &KEY).await;
    assert!(
        woken
            .out
            .starts_with(&format!("  ...   Snapshot {name} is inactive and is being activated\n")),
        "{}",
        woken.out
    );
    assert_eq!(state(&world).await, "active");

    let removed = world.run(&["snapshot", "--remove"], &KEY).await;
    removed.is(0, &format!("  ok    Snapshot {name} is removed\n"));
    let again = world.run(&["snapshot", "--remove"], &KEY).await;
    again.is(0, &format!("  ok    Snapshot {name} does not exist\n"));
}

#[tokio::test]
async fn failed_snapshot_is_explained_and_rebuilt() {
    let world = World::start().await;
    let name = name();
    let fault = json!({ "faults": [{ "fault": "fail_build" }] });
    world.provider(Method::POST, "/_control/faults", fault).await;
    let failed = world.run(&["snapshot"], &KEY).await;
    failed.refused(&format!(
        "The build of {name} failed: the build failed. The last lines of its log are above;"
    ));
    failed.holds("  ...   | ERROR: the build failed\n");
    let built = world.run(&["snapshot"], &KEY).await;
    assert!(
        built.out.starts_with(&format!(
            "  ...   Snapshot {name} had failed (the build failed) and is being rebuilt\n"
        )),
        "{}",
        built.out
    );
    assert_eq!(state(&world).await, "active");
}

#[tokio::test]
async fn used_snapshot_is_not_removed() {
    let parameters = vec![("DaytonaSnapshot", name())];
    let world = World::with(Options { parameters, ..Options::default() }).await;
    let name = name();
    let old = json!({ "name": "bobbin-sandbox-0123456789ab", "buildInfo": { "dockerfileContent": "FROM a\n" } });
    world.provider(Method::POST, "/api/snapshots", old).await;
    let built = world.run(&["snapshot"], &KEY).await;
    assert_eq!(built.code, 0, "{}{}", built.out, built.err);
    built.holds("  ok    The stack creates its sandboxes from it\n  note  bobbin-sandbox-0123456789ab belongs to another version; when nothing uses it: bobbin snapshot --remove --name bobbin-sandbox-0123456789ab\n");
    let kept = world.run(&["snapshot", "--remove"], &KEY).await;
    kept.refused(&format!("The stack bobbin creates its sandboxes from {name}. Deploy without it first (sam deploy --stack-name bobbin --region us-east-1 --parameter-overrides 'DaytonaSnapshot=\"\"'), or add --anyway."));
    let removed = world.run(&["snapshot", "--remove", "--anyway"], &KEY).await;
    removed.is(0, &format!("  ok    Snapshot {name} is removed\n"));
    let older = ["snapshot", "--remove", "--name", "bobbin-sandbox-0123456789ab"];
    world
        .run(&older, &KEY)
        .await
        .is(0, "  ok    Snapshot bobbin-sandbox-0123456789ab is removed\n");
}

#[tokio::test]
async fn refused_daytona_key_names_its_needs() {
    let world = World::start().await;
    let wrong = world.run(&["snapshot"], &[("DAYTONA_API_KEY", "wrong")]).await;
    wrong.refused(
        "Daytona refused the API key: create a new one at https://app.daytona.io/dashboard/keys",
    );
    let fault =
        json!({ "faults": [{ "fault": "answer", "operation": "snapshots", "status": 403 }] });
    world.provider(Method::POST, "/_control/faults", fault).await;
    world.run(&["snapshot"], &KEY).await.refused("The API key needs write:snapshots");
}

#[tokio::test]
async fn snapshot_build_installs_chosen_agents() {
    let world = World::start().await;
    let hash = "ab".repeat(64);
    let daemon = ["snapshot", "--daemon", "https://example.org/bobbin-agentd"];
    let with = |more: &[&'static str], hash: &str| -> Vec<String> {
        let words = daemon.iter().chain(&["--daemon-sha512"]);
        let words = words.map(|word| (*word).to_owned());
        let more = more.iter().map(|word| (*word).to_owned());
        words.chain([hash.to_owned()]).chain(more).collect()
    };
    let run = async |words: Vec<String>| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        world.run(&words, &KEY).await
    };
    let refused = run(with(&[], "abc")).await;
    assert_eq!(refused.code, 1, "{}", refused.out);
    assert!(refused.err.contains("128 hexadecimal digits"), "{}", refused.err);
    let built = run(with(&["--agents", "claude"], &hash)).await;
    assert_eq!(built.code, 3, "{}", built.err);
    built.holds("  ...   | Step 5/11 : RUN bobbin-agentd install claude --into /opt/bobbin/agents && rm -rf /root/.npm\n");
    let name = name();
    assert!(!built.out.contains(&format!("Snapshot {name} is ready")), "{}", built.out);
}
