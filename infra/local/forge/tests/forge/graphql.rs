//! GraphQL: the known documents and nothing else, in the shape of GitHub's own schema.

use std::path::Path;

use bobbin_tests::tools;
use reqwest::Method;
use serde_json::{Value, json};

use crate::world::World;

const LOOK: &str = include_str!("../../src/graphql/look.graphql");
const POLL: &str = include_str!("../../../../../shared/forge/src/github/poll.graphql");
const RESOLVE: &str = include_str!("../../../../../shared/forge/src/github/resolve.graphql");
const READY: &str = include_str!("../../../../../shared/forge/src/github/ready.graphql");
const ENQUEUE: &str = include_str!("../../../../../shared/forge/src/github/enqueue.graphql");

async fn ask(world: &World, token: &str, query: &str, variables: &Value) -> Value {
    let body = json!({ "query": query, "variables": variables });
    let (status, told) = world.send(world.api(Method::POST, "/graphql", token).json(&body)).await;
    assert_eq!(status, 200, "{told}");
    told
}

fn web() -> Value {
    json!({ "owner": "laptop", "name": "web", "number": 1 })
}

/// A pull request about which everything has been said that can be.
async fn talked_about(name: &str) -> (World, String) {
    let world = World::start(name).await;
    world.repository("web", json!({})).await;
    let app = world.mint(json!({})).await;
    world.clone_of("laptop/web", &app, "clone").await;
    let sha = world.commit("clone", "a.txt", "one\ntwo\n").await;
    world.push("clone", "laptop/web", &app, "bobbin/a").await.well();
    let new = json!({ "title": "A", "head": "bobbin/a", "base": "main", "draft": true });
    let made = world.api(Method::POST, "/repos/laptop/web/pulls", &app).json(&new);
    assert_eq!(world.send(made).await.0, 201);
    world.control("repository", json!({ "repository": "laptop/web", "unknown_looks": 0 })).await;
    let said = json!({ "repository": "laptop/web", "sha": sha, "name": "test", "conclusion": "startup_failure", "title": "No" });
    world.control("checks", said).await;
    let said = json!({ "repository": "laptop/web", "sha": sha, "name": "lint", "status": "in_progress", "app": "ci" });
    world.control("checks", said).await;
    let path = format!("/repos/laptop/web/statuses/{sha}");
    world.as_ada(Method::POST, &path, json!({ "state": "pending", "context": "deploy" })).await;
    let place = json!({ "body": "Why?", "path": "a.txt", "line": 2, "side": "RIGHT" });
    let review = json!({ "event": "REQUEST_CHANGES", "body": "Not so", "comments": [place] });
    world.as_ada(Method::POST, "/repos/laptop/web/pulls/1/reviews", review).await;
    world
        .as_ada(Method::POST, "/repos/laptop/web/issues/1/comments", json!({ "body": "Hello" }))
        .await;
    (world, app)
}

/// Fails with everything in which an answer differs from GitHub's schema.
async fn judged(answers: &[(&str, Value, &Value)]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk");
    let packages = tools::node("octokit", &folder).unwrap();
    let answers = answers.iter().map(|(query, variables, answer)| {
        json!({ "query": query, "variables": variables, "data": answer["data"] })
    });
    let given = json!({ "packages": packages, "answers": answers.collect::<Vec<_>>() });
    let mut script = tools::script("node");
    script.arg(folder.join("schema.mjs"));
    let wrong: Vec<Vec<String>> = tools::found(&mut script, &given).await;
    assert!(wrong.iter().all(Vec::is_empty), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn looks_tell_everything_at_once() {
    let (world, app) = talked_about("look").await;
    let look = ask(&world, &app, LOOK, &web()).await;
    let poll = ask(&world, &app, POLL, &web()).await;
    assert_eq!((&look["errors"], &poll["errors"]), (&Value::Null, &Value::Null));
    assert_eq!(look["data"]["rateLimit"]["cost"], 1);
    let pull = &look["data"]["repository"]["pullRequest"];
    assert_eq!(pull["author"]["login"], "bobbin-laptop");
    assert_eq!((&pull["mergeable"], &pull["isDraft"]), (&json!("MERGEABLE"), &json!(true)));
    let commit = &pull["commits"]["nodes"][0]["commit"];
    assert_eq!(
        (&commit["oid"], &commit["statusCheckRollup"]["state"]),
        (&pull["headRefOid"], &json!("FAILURE"))
    );
    let contexts = commit["statusCheckRollup"]["contexts"]["nodes"].as_array().unwrap();
    let told: Vec<Value> = contexts
        .iter()
        .map(|one| {
            json!([one["__typename"], one["name"], one["conclusion"], one["context"], one["state"]])
        })
        .collect();
    assert_eq!(
        told,
        [
            json!(["CheckRun", "test", "STARTUP_FAILURE", null, null]),
            json!(["CheckRun", "lint", null, null, null]),
            json!(["StatusContext", null, null, "deploy", "PENDING"]),
        ]
    );
    assert_eq!(contexts[0]["checkSuite"]["workflowRun"]["workflow"]["name"], "CI");
    assert_eq!(contexts[1]["checkSuite"]["workflowRun"], Value::Null);
    let thread = &pull["reviewThreads"]["nodes"][0];
    assert_eq!(
        (&thread["isResolved"], &thread["line"], &thread["viewerCanResolve"]),
        (&json!(false), &json!(2), &json!(true))
    );
    assert_eq!(
        thread["comments"]["nodes"][0]["author"],
        json!({ "__typename": "User", "login": "ada" })
    );
    assert_eq!(pull["latestReviews"]["nodes"][0]["state"], "CHANGES_REQUESTED");
    let polled = &poll["data"]["repository"]["pullRequest"];
    assert_eq!(polled["latestOpinionatedReviews"]["nodes"][0]["state"], "CHANGES_REQUESTED");
    assert_eq!(pull["comments"]["nodes"][0]["body"], "Hello");
    judged(&[(LOOK, web(), &look), (POLL, web(), &poll)]).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_rights_are_holes_and_errors() {
    let (world, _) = talked_about("holes").await;
    let with = async |rights: &[&str]| {
        let pairs = rights.iter().map(|right| ((*right).to_owned(), json!("read")));
        let permissions: serde_json::Map<String, Value> = pairs.collect();
        let token = world.mint(json!({ "permissions": permissions })).await;
        ask(&world, &token, LOOK, &web()).await
    };
    let paths = |told: &Value| -> Vec<String> {
        let errors = told["errors"].as_array().cloned().unwrap_or_default();
        let path = |one: &Value| {
            assert_eq!(
                (&one["type"], &one["message"]),
                (&json!("FORBIDDEN"), &json!("Resource not accessible by integration"))
            );
            let parts = one["path"].as_array().unwrap().iter();
            let parts: Vec<String> = parts.map(|part| part.to_string().replace('"', "")).collect();
            parts.join(".").replace("repository.pullRequest.commits.nodes.0", "commit")
        };
        errors.iter().map(path).collect()
    };
    let all = ["pull_requests", "contents", "checks", "statuses", "actions"];
    assert_eq!(paths(&with(&all).await), Vec::<String>::new());
    let contexts = "commit.commit.statusCheckRollup.contexts.nodes";
    let told = with(&["pull_requests", "contents", "checks", "actions"]).await;
    assert_eq!(paths(&told), [format!("{contexts}.2")]);
    let told = with(&["pull_requests", "contents", "checks", "statuses"]).await;
    let run = "checkSuite.workflowRun";
    assert_eq!(paths(&told), [format!("{contexts}.0.{run}"), format!("{contexts}.1.{run}")]);
    judged(&[(LOOK, web(), &told)]).await;
    assert_eq!(paths(&with(&["pull_requests"]).await), ["commit"]);
    assert_eq!(paths(&with(&["contents", "checks"]).await), ["repository.pullRequest"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_documents_are_refused() {
    let (world, app) = talked_about("unknown").await;
    let other = "query Other($owner: String!) { repository(owner: $owner, name: \"web\") { id } }";
    let told = ask(&world, &app, other, &web()).await;
    assert!(
        told["errors"][0]["message"]
            .as_str()
            .unwrap()
            .contains("\"query Other($owner:\" is none of them"),
        "{told}"
    );
    assert_eq!(told.get("data"), None);
    // White space says nothing, anything else does.
    let told = ask(&world, &app, &POLL.replace('\n', " \t"), &web()).await;
    assert_eq!(told["errors"], Value::Null);
    let told = ask(&world, &app, &POLL.replacen("isDraft", "title", 1), &web()).await;
    assert_eq!(told["errors"][0]["extensions"]["code"], "unknownDocument");
    let told = ask(&world, &app, POLL, &json!({ "owner": "laptop", "name": "web" })).await;
    assert_eq!(
        told["errors"][0]["message"],
        "Variable $number of type Int! was provided invalid value"
    );
    let told =
        ask(&world, &app, POLL, &json!({ "owner": "laptop", "name": "none", "number": 1 })).await;
    assert_eq!(
        (&told["errors"][0]["type"], &told["data"]["repository"]),
        (&json!("NOT_FOUND"), &Value::Null)
    );
    let told =
        ask(&world, &app, POLL, &json!({ "owner": "laptop", "name": "web", "number": 9 })).await;
    assert_eq!(
        told["errors"][0]["message"],
        "Could not resolve to a PullRequest with the number of 9."
    );
    let nobody = world.api(Method::POST, "/graphql", "").json(&json!({ "query": POLL }));
    assert_eq!(world.send(nobody).await.0, 401);
    let empty = world.api(Method::POST, "/api/graphql", &app).json(&json!({}));
    assert_eq!(world.send(empty).await.0, 400);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_change_threads_drafts_and_queues() {
    let (world, app) = talked_about("mutations").await;
    let look = ask(&world, &app, LOOK, &web()).await;
    let pull = &look["data"]["repository"]["pullRequest"];
    let thread = json!({ "thread": pull["reviewThreads"]["nodes"][0]["id"] });
    let weak = world
        .mint(json!({ "permissions": { "pull_requests": "write", "contents": "read" } }))
        .await;
    let told = ask(&world, &weak, RESOLVE, &thread).await;
    assert_eq!(
        (&told["errors"][0]["path"], &told["data"]["resolveReviewThread"]),
        (&json!(["resolveReviewThread"]), &Value::Null)
    );
    let resolved = ask(&world, &app, RESOLVE, &thread).await;
    assert_eq!(resolved["data"]["resolveReviewThread"]["thread"]["isResolved"], true);
    assert_eq!(ask(&world, &app, RESOLVE, &thread).await, resolved);
    let nothing = json!({ "thread": "nothing" });
    let told = ask(&world, &app, RESOLVE, &nothing).await;
    assert_eq!(
        told["errors"][0]["message"],
        "Could not resolve to a node with the global id of 'nothing'."
    );

    let id = json!({ "pullRequest": pull["id"] });
    let ready = ask(&world, &weak, READY, &id).await;
    assert_eq!(ready["data"]["markPullRequestReadyForReview"]["pullRequest"]["isDraft"], false);
    world.told("pull_request", "ready_for_review", 1).await;
    let entry = |head: &Value| json!({ "pullRequest": pull["id"], "head": head });
    let told = ask(&world, &app, ENQUEUE, &entry(&pull["headRefOid"])).await;
    assert_eq!(told["errors"][0]["type"], "UNPROCESSABLE");
    let set = json!({
        "name": "r", "target": "branch", "enforcement": "active", "rules": [{ "type": "merge_queue" }],
        "conditions": { "ref_name": { "include": ["~DEFAULT_BRANCH"], "exclude": [] } },
    });
    world.as_ada(Method::POST, "/repos/laptop/web/rulesets", set).await;
    let told = ask(&world, &app, ENQUEUE, &entry(&json!("0".repeat(40)))).await;
    assert_eq!(told["errors"][0]["path"], json!(["enqueuePullRequest"]));
    let queued = ask(&world, &app, ENQUEUE, &entry(&pull["headRefOid"])).await;
    assert_eq!(queued["data"]["enqueuePullRequest"]["mergeQueueEntry"]["position"], 1);
    let poll = ask(&world, &app, POLL, &web()).await;
    assert_eq!(poll["data"]["repository"]["pullRequest"]["isInMergeQueue"], true);
    let left = |merged: bool| json!({ "repository": "laptop/web", "number": 1, "merged": merged });
    world.control("queue", left(false)).await;
    ask(&world, &app, ENQUEUE, &entry(&pull["headRefOid"])).await;
    world.control("queue", left(true)).await;
    let poll = ask(&world, &app, POLL, &web()).await;
    assert_eq!(poll["data"]["repository"]["pullRequest"]["state"], "MERGED");
    world.told("pull_request", "enqueued", 2).await;
    world.told("pull_request", "dequeued", 1).await;
    let answers = [
        (RESOLVE, thread, &resolved),
        (READY, id, &ready),
        (ENQUEUE, entry(&pull["headRefOid"]), &queued),
    ];
    judged(&answers).await;
    world.end().await;
}
