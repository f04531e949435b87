//! What continuous integration says of a commit, as apps and a test's own word have it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::world::{World, location};

const CI: &str = "/repos/laptop/web";

/// A repository with a pull request, and its head.
async fn prepared(name: &str) -> (World, String) {
    let world = World::start(name).await;
    world.repository("web", json!({})).await;
    let ada = world.id.user_token.clone();
    world.clone_of("laptop/web", &ada, "clone").await;
    let sha = world.commit("clone", "a.txt", "a\n").await;
    world.push("clone", "laptop/web", &ada, "bobbin/a").await.well();
    let new = json!({ "title": "A", "head": "bobbin/a", "base": "main" });
    world.as_ada(Method::POST, "/repos/laptop/web/pulls", new).await;
    (world, sha)
}

async fn service(world: &World, permissions: Value) -> String {
    let body = json!({ "name": "ci", "owner": "laptop", "permissions": permissions });
    world.control("app", body).await["token"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn apps_report_check_runs() {
    let (world, sha) = prepared("checks").await;
    let ci = service(&world, json!({ "checks": "write" })).await;
    let reader =
        world.mint(json!({ "permissions": { "checks": "read", "contents": "read" } })).await;
    let new =
        json!({ "name": "build", "head_sha": sha, "status": "in_progress", "external_id": "7" });
    let request =
        |token: &str| world.api(Method::POST, &format!("{CI}/check-runs"), token).json(&new);
    assert_eq!(world.send(request(&reader)).await.0, 403);
    let (status, told) = world.send(request(&world.id.user_token)).await;
    assert_eq!(
        (status.as_u16(), &told["message"]),
        (403, &json!("You must authenticate via a GitHub App."))
    );
    let (status, made) = world.send(request(&ci)).await;
    assert_eq!(
        (status.as_u16(), &made["status"], &made["conclusion"]),
        (201, &json!("in_progress"), &Value::Null)
    );
    assert_eq!(made["pull_requests"][0]["number"], 1);

    let path = format!("{CI}/check-runs/{}", made["id"]);
    let place = json!({
        "path": "a.txt", "start_line": 1, "end_line": 1, "annotation_level": "failure", "message": "Not an a",
    });
    let ended = json!({
        "conclusion": "failure", "output": { "title": "One failed", "summary": "It is an a.", "annotations": [place] },
    });
    let (status, told) = world.send(world.api(Method::PATCH, &path, &ci).json(&ended)).await;
    assert_eq!(
        (status.as_u16(), &told["status"], &told["output"]["annotations_count"]),
        (200, &json!("completed"), &json!(1))
    );
    let (_, places) = world.get(&format!("{path}/annotations"), &reader).await;
    assert_eq!((&places[0]["path"], &places[0]["message"]), (&json!("a.txt"), &json!("Not an a")));
    let (_, one) = world.get(&path, &reader).await;
    assert_eq!(one["app"]["slug"], "ci");
    let unended = json!({ "status": "completed" });
    assert_eq!(world.send(world.api(Method::PATCH, &path, &ci).json(&unended)).await.0, 422);

    // A second one of the same name hides the first; suites are by app, and one without runs stays queued.
    let again = json!({ "name": "build", "head_sha": sha, "conclusion": "success" });
    world.send(world.api(Method::POST, &format!("{CI}/check-runs"), &ci).json(&again)).await;
    let runs = async |path: &str| world.get(&format!("{CI}/{path}"), &reader).await.1;
    let newest = runs("commits/bobbin%2Fa/check-runs").await;
    assert_eq!(
        (&newest["total_count"], &newest["check_runs"][0]["conclusion"]),
        (&json!(1), &json!("success"))
    );
    assert_eq!(runs(&format!("commits/{sha}/check-runs?filter=all")).await["total_count"], 2);
    assert_eq!(runs(&format!("commits/{sha}/check-runs?check_name=none")).await["total_count"], 0);
    world
        .control(
            "app",
            json!({ "name": "Idle", "owner": "laptop", "permissions": { "checks": "write" } }),
        )
        .await;
    let next = world.commit("clone", "b.txt", "b\n").await;
    world.push("clone", "laptop/web", &world.id.user_token, "bobbin/a").await.well();
    let suites = runs(&format!("commits/{next}/check-suites")).await;
    let told = suites["check_suites"].as_array().unwrap().iter();
    let told: Vec<Value> =
        told.map(|one| json!([one["app"]["slug"], one["status"], one["conclusion"]])).collect();
    assert_eq!(told, [json!(["ci", "queued", null]), json!(["idle", "queued", null])]);
    let first = format!("check-suites/{}", made["check_suite"]["id"]);
    assert_eq!(runs(&format!("{first}/check-runs")).await["total_count"], 1);
    for path in [format!("{path}/rerequest"), format!("{CI}/{first}/rerequest")] {
        assert_eq!(world.send(world.api(Method::POST, &path, &ci)).await.0, 201);
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statuses_say_the_newest_of_each_context() {
    let (world, sha) = prepared("statuses").await;
    let ci = service(&world, json!({ "statuses": "write", "contents": "read" })).await;
    let say = async |state: &str, context: &str| {
        let body =
            json!({ "state": state, "context": context, "target_url": "https://ci.example/1" });
        let request = world.api(Method::POST, &format!("{CI}/statuses/{sha}"), &ci).json(&body);
        world.send(request).await.0.as_u16()
    };
    let together = async || world.get(&format!("{CI}/commits/{sha}/status"), &ci).await.1;
    assert_eq!(together().await["state"], "pending");
    assert_eq!(say("pending", "deploy").await, 201);
    assert_eq!(say("success", "deploy").await, 201);
    assert_eq!(together().await["state"], "success");
    assert_eq!(say("error", "lint").await, 201);
    assert_eq!(say("fine", "lint").await, 422);
    let told = together().await;
    assert_eq!((&told["state"], &told["total_count"]), (&json!("failure"), &json!(2)));
    let (_, all) = world.get(&format!("{CI}/commits/{sha}/statuses"), &ci).await;
    assert_eq!(all.as_array().unwrap().len(), 3);
    assert_eq!(all[0]["creator"]["login"], "ci[bot]");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_of_jobs_are_behind_a_redirect() {
    let (world, sha) = prepared("logs").await;
    let token = service(&world, json!({ "actions": "write", "checks": "read" })).await;
    let said =
        json!({ "repository": "laptop/web", "sha": sha, "name": "test", "status": "in_progress" });
    let run = world.control("checks", said).await;
    let (job, workflow) = (run["check_run"].clone(), run["workflow_run"].clone());
    let jobs = async || world.get(&format!("{CI}/actions/runs/{workflow}/jobs"), &token).await.1;
    assert_eq!(
        (&jobs().await["jobs"][0]["id"], &jobs().await["jobs"][0]["status"]),
        (&job, &json!("in_progress"))
    );
    let again = async || {
        let path = format!("{CI}/actions/runs/{workflow}/rerun-failed-jobs");
        world.send(world.api(Method::POST, &path, &token)).await
    };
    assert_eq!(again().await.1["message"], "This workflow is already running");

    let logs = format!("{CI}/actions/jobs/{job}/logs");
    let link = async || {
        let answer = world.api(Method::GET, &logs, &token).send().await.unwrap();
        assert_eq!(answer.status(), 302);
        location(&answer)
    };
    let read = async |at: &str, token: Option<&str>| {
        let request = world.http.get(at);
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let code =
            answer.headers().get("x-ms-error-code").map(|code| code.to_str().unwrap().to_owned());
        (status, code.unwrap_or_default(), answer.text().await.unwrap())
    };
    let (status, code, _) = read(&link().await, None).await;
    assert_eq!((status, code.as_str()), (404, "BlobNotFound"));
    let said = json!({
        "repository": "laptop/web", "sha": sha, "name": "test", "conclusion": "failure", "log": "one\ntwo",
        "title": "Failed",
    });
    world.control("checks", said).await;
    let at = link().await;
    let (status, _, text) = read(&at, None).await;
    let lines: Vec<&str> = text.lines().map(|line| line.split_once("Z ").unwrap().1).collect();
    assert_eq!((status, lines.as_slice()), (200, ["one", "two"].as_slice()));
    let (status, code, _) = read(&at, Some(&token)).await;
    assert_eq!((status, code.as_str()), (400, "InvalidAuthenticationInfo"));
    world.control("clock", json!({ "advance_ms": 61_000 })).await;
    let (status, code, _) = read(&at, None).await;
    assert_eq!((status, code.as_str()), (403, "AuthenticationFailed"));

    // The same run, an attempt more, its failed jobs anew.
    assert_eq!(again().await.0, 201);
    let (_, told) = world.get(&format!("{CI}/actions/runs/{workflow}"), &token).await;
    assert_eq!(
        (&told["run_attempt"], &told["status"], &told["conclusion"]),
        (&json!(2), &json!("queued"), &Value::Null)
    );
    assert_ne!(jobs().await["jobs"][0]["id"], job);
    let attempt = async |number: u64| {
        world.get(&format!("{CI}/actions/runs/{workflow}/attempts/{number}/jobs"), &token).await.1
    };
    assert_eq!(attempt(1).await["jobs"][0]["conclusion"], "failure");
    assert_eq!(attempt(2).await["jobs"][0]["conclusion"], Value::Null);
    let cancelled = format!("{CI}/actions/runs/{workflow}/cancel");
    assert_eq!(world.send(world.api(Method::POST, &cancelled, &token)).await.0, 202);
    assert_eq!(world.send(world.api(Method::POST, &cancelled, &token)).await.0, 409);
    let found = async |query: &str| {
        world.get(&format!("{CI}/actions/runs?{query}"), &token).await.1["total_count"].clone()
    };
    assert_eq!(found(&format!("head_sha={sha}")).await, 1);
    assert_eq!(found(&format!("head_sha={}", &sha[..7])).await, 0);
    assert_eq!(found("head_sha=").await, 1);
    assert_eq!(found("status=cancelled").await, 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn required_checks_let_a_merge_pass() {
    let (world, sha) = prepared("required").await;
    world.control("repository", json!({ "repository": "laptop/web", "unknown_looks": 0 })).await;
    let token = world.mint(json!({})).await;
    let require = async |check: Value| {
        let name = check["context"].clone();
        let rule = json!([{ "type": "required_status_checks", "parameters": {
            "strict_required_status_checks_policy": false, "required_status_checks": [check],
        } }]);
        let set = json!({
            "name": name, "target": "branch", "enforcement": "active", "rules": rule,
            "conditions": { "ref_name": { "include": ["~DEFAULT_BRANCH"], "exclude": [] } },
        });
        world.as_ada(Method::POST, "/repos/laptop/web/rulesets", set).await;
    };
    require(json!({ "context": "test" })).await;
    let classic = json!({
        "required_status_checks": { "strict": false, "contexts": ["lint"] }, "enforce_admins": true,
        "required_pull_request_reviews": null, "restrictions": null,
    });
    world.as_ada(Method::PUT, "/repos/laptop/web/branches/main/protection", classic).await;
    let (_, rules) = world.get(&format!("{CI}/rules/branches/main"), &token).await;
    assert_eq!(rules[0]["parameters"]["required_status_checks"][0]["context"], "test");
    let (_, branch) = world.get(&format!("{CI}/branches/main"), &token).await;
    assert_eq!(branch["protection"]["required_status_checks"]["contexts"], json!(["lint"]));

    let merge = async || {
        let request = world.api(Method::PUT, &format!("{CI}/pulls/1/merge"), &token);
        let (status, told) = world.send(request.json(&json!({ "sha": sha }))).await;
        (status.as_u16(), told["message"].as_str().unwrap_or_default().to_owned())
    };
    let state =
        async || world.get(&format!("{CI}/pulls/1"), &token).await.1["mergeable_state"].clone();
    let say = async |name: &str, conclusion: &str| {
        let said = json!({ "repository": "laptop/web", "branch": "bobbin/a", "name": name, "conclusion": conclusion });
        world.control("checks", said).await;
    };
    assert_eq!(merge().await, (405, "Required status check \"lint\" is expected.".to_owned()));
    say("lint", "neutral").await;
    assert_eq!(merge().await, (405, "Required status check \"test\" is expected.".to_owned()));
    say("test", "failure").await;
    assert_eq!(merge().await, (405, "Required status check \"test\" is failing.".to_owned()));
    assert_eq!(state().await, "blocked");
    say("test", "success").await;
    require(json!({ "context": "coverage", "integration_id": 1 })).await;
    // Of another app, a check run does not count, and a status does.
    say("coverage", "success").await;
    assert_eq!(merge().await, (405, "Required status check \"coverage\" is expected.".to_owned()));
    let ci = service(&world, json!({ "statuses": "write" })).await;
    let status = json!({ "state": "success", "context": "coverage" });
    let request = world.api(Method::POST, &format!("{CI}/statuses/{sha}"), &ci).json(&status);
    assert_eq!(world.send(request).await.0, 201);
    assert_eq!(state().await, "clean");
    say("other", "failure").await;
    assert_eq!(state().await, "unstable");
    assert_eq!(merge().await.0, 200);
    world.end().await;
}
