//! Whether a pull request can be merged, and what merging leaves.

use reqwest::Method;
use serde_json::{Value, json};

use crate::world::World;

const PULL: &str = "/repos/laptop/web/pulls/1";

async fn prepared(name: &str) -> (World, String, String) {
    let world = World::start(name).await;
    world.repository("web", json!({})).await;
    let app = world.mint(json!({})).await;
    world.clone_of("laptop/web", &app, "clone").await;
    let sha = world.commit("clone", "a.txt", "a\n").await;
    world.push("clone", "laptop/web", &app, "bobbin/a").await.well();
    let new = json!({ "title": "A", "head": "bobbin/a", "base": "main" });
    world.as_ada(Method::POST, "/repos/laptop/web/pulls", new).await;
    (world, app, sha)
}

async fn put(world: &World, path: &str, token: &str, body: Value) -> (u16, Value) {
    let (status, told) = world.send(world.api(Method::PUT, path, token).json(&body)).await;
    (status.as_u16(), told["message"].clone())
}

async fn seen(world: &World, token: &str) -> (Value, Value) {
    let (_, told) = world.get(PULL, token).await;
    (told["mergeable"].clone(), told["mergeable_state"].clone())
}

/// Rules of the default branch.
async fn rules(world: &World, rules: Value) {
    let set = json!({
        "name": "r", "target": "branch", "enforcement": "active", "rules": rules,
        "conditions": { "ref_name": { "include": ["~DEFAULT_BRANCH"], "exclude": [] } },
    });
    world.as_ada(Method::POST, "/repos/laptop/web/rulesets", set).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn merges_are_tried_when_somebody_looks() {
    let (world, app, _) = prepared("looks").await;
    assert_eq!(seen(&world, &app).await, (Value::Null, json!("unknown")));
    assert_eq!(seen(&world, &app).await, (json!(true), json!("clean")));
    // The base gets another text of the same file.
    let ada = world.id.user_token.clone();
    world.git("clone", &["checkout", "-q", "--detach", "origin/main"]).await.well();
    world.commit("clone", "a.txt", "b\n").await;
    world.push("clone", "laptop/web", &ada, "main").await.well();
    assert_eq!(seen(&world, &app).await, (Value::Null, json!("unknown")));
    assert_eq!(seen(&world, &app).await, (json!(false), json!("dirty")));
    let slow = json!({ "repository": "laptop/web", "unknown_looks": 3 });
    world.control("repository", slow).await;
    assert_eq!(seen(&world, &app).await, (Value::Null, json!("unknown")));
    assert_eq!(seen(&world, &app).await, (json!(false), json!("dirty")));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bases_are_merged_into_heads() {
    let (world, app, sha) = prepared("update").await;
    let path = format!("{PULL}/update-branch");
    let none = json!("There are no new commits on the base branch.");
    assert_eq!(put(&world, &path, &app, json!({})).await, (422, none));
    rules(
        &world,
        json!([{ "type": "required_status_checks", "parameters": {
            "strict_required_status_checks_policy": true, "required_status_checks": [{ "context": "ci" }],
        } }]),
    )
    .await;
    let say = async |branch: &str| {
        let said = json!({ "repository": "laptop/web", "branch": branch, "name": "ci", "conclusion": "success" });
        world.control("checks", said).await;
    };
    say("bobbin/a").await;
    let ruled = world.get("/repos/laptop/web/rulesets", &world.id.user_token).await.1;
    let at = format!("/repos/laptop/web/rulesets/{}", ruled[0]["id"]);
    assert_eq!(world.get(&at, &world.id.user_token).await.1["name"], "r");
    seen(&world, &app).await;
    assert_eq!(seen(&world, &app).await.1, "clean");
    world.control("repository", json!({ "repository": "laptop/web", "unknown_looks": 0 })).await;
    // Who administrates a repository is bound by its rulesets too: the base moves by another pull request.
    world.git("clone", &["checkout", "-q", "--detach", "origin/main"]).await.well();
    world.commit("clone", "b.txt", "b\n").await;
    world.push("clone", "laptop/web", &app, "other").await.well();
    say("other").await;
    let new = json!({ "title": "Other", "head": "other", "base": "main" });
    world.as_ada(Method::POST, "/repos/laptop/web/pulls", new).await;
    let other = "/repos/laptop/web/pulls/2/merge";
    assert_eq!(put(&world, other, &app, json!({})).await.0, 200);
    assert_eq!(seen(&world, &app).await.1, "behind");

    let stale = json!({ "expected_head_sha": "0".repeat(40) });
    let told = json!("expected head sha didn’t match current head ref.");
    assert_eq!(put(&world, &path, &app, stale).await, (422, told));
    let (status, told) = put(&world, &path, &app, json!({ "expected_head_sha": sha })).await;
    assert_eq!((status, told), (202, json!("Updating pull request branch.")));
    let (_, pull) = world.get(PULL, &app).await;
    let head = pull["head"]["sha"].as_str().unwrap().to_owned();
    let (_, commit) = world.get(&format!("/repos/laptop/web/commits/{head}"), &app).await;
    assert_eq!(
        (&commit["parents"][0]["sha"], commit["parents"].as_array().unwrap().len()),
        (&json!(sha), 2)
    );
    assert_eq!(commit["commit"]["message"], "Merge branch 'main' into bobbin/a");
    let (_, pulls) = world.get(&format!("/repos/laptop/web/commits/{head}/pulls"), &app).await;
    assert_eq!(pulls[0]["number"], 1);
    world.told("pull_request", "synchronize", 1).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn merged_heads_are_removed_where_set() {
    let (world, app, sha) = prepared("heads").await;
    world
        .as_ada(Method::PATCH, "/repos/laptop/web", json!({ "delete_branch_on_merge": true }))
        .await;
    let path = format!("{PULL}/merge");
    let stale = put(&world, &path, &app, json!({ "sha": "0".repeat(40) })).await;
    assert_eq!(stale, (409, json!("Head branch was modified. Review and try the merge again.")));
    assert_eq!(put(&world, &path, &app, json!({ "sha": sha })).await.0, 200);
    let (status, _) = world.get("/repos/laptop/web/git/ref/heads/bobbin/a", &app).await;
    assert_eq!(status, 404);
    world.told("pull_request", "closed", 1).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_branches_are_merged_by_the_queue() {
    let (world, app, sha) = prepared("queue").await;
    rules(&world, json!([{ "type": "merge_queue" }])).await;
    let (_, told) = world.get("/repos/laptop/web/rules/branches/main", &app).await;
    assert_eq!(
        (&told[0]["type"], &told[0]["parameters"]["merge_method"]),
        (&json!("merge_queue"), &json!("MERGE"))
    );
    let refused = put(&world, &format!("{PULL}/merge"), &app, json!({ "sha": sha })).await;
    assert_eq!(refused, (405, json!("Changes must be made through the merge queue")));
    world.end().await;
}
