//! Webhooks of checks and reviews, and what can go wrong with them.

use std::path::Path;

use bobbin_test_server::Received;
use bobbin_tests::tools;
use reqwest::Method;
use serde_json::{Value, json};

use crate::world::{WEBHOOK_SECRET, World, wait_for};

async fn prepared(name: &str) -> (World, String, String) {
    let world = World::start(name).await;
    world.repository("web", json!({})).await;
    let app = world.mint(json!({})).await;
    world.clone_of("laptop/web", &app, "clone").await;
    let sha = world.commit("clone", "a.txt", "one\ntwo\n").await;
    world.push("clone", "laptop/web", &app, "bobbin/a").await.well();
    let new = json!({ "title": "A", "head": "bobbin/a", "base": "main" });
    let made = world.api(Method::POST, "/repos/laptop/web/pulls", &app).json(&new);
    assert_eq!(world.send(made).await.0, 201);
    (world, app, sha)
}

fn event(one: &Received) -> &str {
    one.headers["x-github-event"].to_str().unwrap()
}

fn guid(one: &Received) -> &str {
    one.headers["x-github-delivery"].to_str().unwrap()
}

/// Whether GitHub's own library takes each one as GitHub's.
async fn verified(received: &[Received]) -> Vec<bool> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk");
    let packages = tools::node("octokit", &folder).unwrap();
    let deliveries = received.iter().map(|one| {
        let signature =
            one.headers.get("x-hub-signature-256").map_or("sha256=00", |it| it.to_str().unwrap());
        json!({ "body": String::from_utf8_lossy(&one.body), "signature": signature })
    });
    let deliveries: Vec<Value> = deliveries.collect();
    let given = json!({ "packages": packages, "secret": WEBHOOK_SECRET, "deliveries": deliveries });
    let mut script = tools::script("node");
    script.arg(folder.join("verify.mjs"));
    let told: Vec<(bool, bool, bool)> = tools::found(&mut script, &given).await;
    told.into_iter().map(|(own, _, _)| own).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_are_told_with_their_traps() {
    let (world, _, sha) = prepared("hooks-checks").await;
    let say = async |more: Value| {
        let mut said = json!({ "repository": "laptop/web", "sha": sha });
        said.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.control("checks", said).await
    };
    say(json!({ "name": "build", "status": "queued" })).await;
    say(json!({ "name": "test", "status": "queued" })).await;
    say(json!({ "name": "build", "conclusion": "success" })).await;
    world.told("check_run", "created", 2).await;
    let first = world.told("check_run", "completed", 1).await[0].json();
    assert_eq!(
        (&first["check_run"]["name"], &first["check_run"]["pull_requests"][0]["number"]),
        (&json!("build"), &json!(1))
    );
    assert_eq!(first["check_run"]["check_suite"]["status"], "in_progress");
    say(json!({ "name": "test", "conclusion": "failure" })).await;
    // "Completed" is one app's: another one still runs.
    say(json!({ "name": "lint", "status": "in_progress", "app": "ci" })).await;
    let suite = world.told("check_suite", "completed", 1).await[0].json();
    let told = &suite["check_suite"];
    assert_eq!(
        (&told["app"]["slug"], &told["conclusion"], &told["head_sha"]),
        (&json!("github-actions"), &json!("failure"), &json!(sha))
    );
    let run = world.told("workflow_run", "completed", 1).await[0].json();
    assert_eq!(
        (&run["workflow_run"]["run_attempt"], &run["workflow_run"]["conclusion"]),
        (&json!(1), &json!("failure"))
    );
    world.told("workflow_run", "requested", 1).await;
    world.told("workflow_run", "in_progress", 1).await;

    // As of a fork: the pull requests are not told.
    say(json!({ "name": "fork", "conclusion": "success", "app": "other", "hides_pulls": true }))
        .await;
    let all = world.told("check_run", "completed", 3).await;
    let fork =
        all.iter().map(Received::json).find(|one| one["check_run"]["name"] == "fork").unwrap();
    assert_eq!(fork["check_run"]["pull_requests"], json!([]));
    let path = format!("/repos/laptop/web/statuses/{sha}");
    world.as_ada(Method::POST, &path, json!({ "state": "success", "context": "deploy" })).await;
    wait_for("status", async || world.hook.received().iter().any(|one| event(one) == "status"))
        .await;
    let received = world.hook.received();
    let status = received.iter().find(|one| event(one) == "status").unwrap().json();
    assert_eq!(
        (&status["context"], &status["sha"], &status["branches"][0]["name"]),
        (&json!("deploy"), &json!(sha), &json!("bobbin/a"))
    );
    assert_eq!(status.get("pull_request"), None);

    // A suite that is asked for is told to its app alone.
    let service = json!({ "name": "ci", "owner": "laptop", "permissions": { "checks": "write" }, "events": ["check_suite"], "webhook": format!("{}/ci", world.hook.base()) });
    world.control("app", service).await;
    world.commit("clone", "b.txt", "b\n").await;
    world.push("clone", "laptop/web", &world.id.user_token, "bobbin/a").await.well();
    world.told("check_suite", "requested", 1).await;
    let moved = world.told("pull_request", "synchronize", 1).await[0].json();
    assert_eq!(moved["before"], json!(sha));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_are_told_once_more_than_comments() {
    let (world, app, _) = prepared("hooks-reviews").await;
    let at = |line: u64| json!({ "body": format!("At {line}"), "path": "a.txt", "line": line, "side": "RIGHT" });
    let review = json!({ "event": "COMMENT", "body": "Two things", "comments": [at(1), at(2)] });
    world.as_ada(Method::POST, "/repos/laptop/web/pulls/1/reviews", review).await;
    let told = world.told("pull_request_review", "submitted", 1).await[0].json();
    assert_eq!(
        (&told["review"]["state"], &told["review"]["body"]),
        (&json!("commented"), &json!("Two things"))
    );
    // A member of the organisation is not told as one.
    assert_eq!(told["review"]["author_association"], "CONTRIBUTOR");
    let comments = world.told("pull_request_review_comment", "created", 2).await;
    let top = comments[0].json()["comment"].clone();

    // A reply is a review of its own, without a text.
    let replies = format!("/repos/laptop/web/pulls/1/comments/{}/replies", top["id"]);
    let reply = world.api(Method::POST, &replies, &app).json(&json!({ "body": "Done" }));
    assert_eq!(world.send(reply).await.0, 201);
    let reviews = world.told("pull_request_review", "submitted", 2).await;
    let empty = reviews.iter().map(Received::json).find(|one| one["review"]["body"] == "").unwrap();
    assert_eq!(empty["sender"]["login"], "bobbin-laptop[bot]");
    let path = format!("/repos/laptop/web/pulls/comments/{}", top["id"]);
    world.as_ada(Method::PATCH, &path, json!({ "body": "Better" })).await;
    let edited = world.told("pull_request_review_comment", "edited", 1).await[0].json();
    assert_eq!(edited["changes"]["body"]["from"], top["body"]);
    let settled = json!({ "login": "ada", "comment": top["id"], "resolved": true });
    world.control("thread", settled).await;
    let thread = world.told("pull_request_review_thread", "resolved", 1).await[0].json();
    assert_eq!(thread["thread"]["comments"].as_array().unwrap().len(), 2);
    assert_eq!(thread["thread"].get("number"), None);

    let remarks = "/repos/laptop/web/issues/1/comments";
    let said = world.api(Method::POST, remarks, &app).json(&json!({ "body": "Hello" }));
    let (_, said) = world.send(said).await;
    let remark = world.told("issue_comment", "created", 1).await[0].json();
    assert_eq!(remark["comment"]["performed_via_github_app"]["id"], json!(world.id.app_id));
    assert!(remark["issue"]["pull_request"].is_object());
    let path = format!("/repos/laptop/web/issues/comments/{}", said["id"]);
    assert_eq!(world.send(world.api(Method::DELETE, &path, &app)).await.0, 204);
    world.told("issue_comment", "deleted", 1).await;
    world.as_ada(Method::PATCH, "/repos/laptop/web/pulls/1", json!({ "title": "B" })).await;
    let edited = world.told("pull_request", "edited", 1).await[0].json();
    assert_eq!(edited["changes"], json!({ "title": { "from": "A" } }));
    assert!(verified(&world.hook.received()).await.iter().all(|own| *own));

    // Without the right to read issues nothing of them is told.
    let fewer = json!({ "id": world.id.installation, "permissions": { "pull_requests": "write", "contents": "read" } });
    world.control("installation", fewer).await;
    world.as_ada(Method::POST, remarks, json!({ "body": "Unheard" })).await;
    world.as_ada(Method::PATCH, "/repos/laptop/web/pulls/1", json!({ "title": "C" })).await;
    world.told("pull_request", "edited", 2).await;
    world.told("issue_comment", "created", 1).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_go_wrong_as_told() {
    let (world, app, _) = prepared("hooks-faults").await;
    let remarks = "/repos/laptop/web/issues/1/comments";
    let say = async |body: &str| {
        let said = world.api(Method::POST, remarks, &app).json(&json!({ "body": body }));
        assert_eq!(world.send(said).await.0, 201);
    };
    let arm = async |fault: Value| {
        let mut fault = fault;
        fault["event"] = "issue_comment".into();
        world.control("hooks", json!({ "faults": [fault] })).await;
    };
    let heard = || {
        let all = world.hook.received();
        let own = all.into_iter().filter(|one| one.json()["comment"]["body"].is_string());
        own.map(|one| (one.json()["comment"]["body"].as_str().unwrap().to_owned(), one))
            .collect::<Vec<_>>()
    };
    let bodies = || heard().into_iter().map(|(body, _)| body).collect::<Vec<_>>();
    let after = async |count: usize| wait_for("a comment", async || heard().len() >= count).await;

    arm(json!({ "fault": "late" })).await;
    say("late").await;
    say("prompt").await;
    after(1).await;
    assert_eq!(bodies(), ["prompt"]);
    world.control("hooks/release", json!({})).await;
    after(2).await;
    arm(json!({ "fault": "out_of_order" })).await;
    say("first").await;
    say("second").await;
    after(4).await;
    assert_eq!(bodies(), ["prompt", "late", "second", "first"]);
    arm(json!({ "fault": "twice" })).await;
    say("twice").await;
    after(6).await;
    arm(json!({ "fault": "twice", "other_id": true })).await;
    say("two ids").await;
    after(8).await;
    let all = heard();
    assert_eq!(guid(&all[4].1), guid(&all[5].1));
    assert_ne!(guid(&all[6].1), guid(&all[7].1));
    assert_eq!(all[6].1.body, all[7].1.body);

    // What no signature covers, and what no signature is right for.
    arm(json!({ "fault": "misnamed", "event_as": "push" })).await;
    arm(json!({ "fault": "renumbered", "id": guid(&all[0].1) })).await;
    arm(json!({ "fault": "other_secret" })).await;
    arm(json!({ "fault": "unsigned" })).await;
    for (count, body) in (9..).zip(["misnamed", "renumbered", "other", "unsigned"]) {
        say(body).await;
        after(count).await;
    }
    let wrong: Vec<Received> = heard().into_iter().skip(8).map(|(_, one)| one).collect();
    assert_eq!((event(&wrong[0]), guid(&wrong[1])), ("push", guid(&all[0].1)));
    assert_eq!(verified(&wrong).await, [true, true, false, false]);

    // A lost one is in the list, and comes when it is asked for.
    arm(json!({ "fault": "lost" })).await;
    say("lost").await;
    let deliveries =
        async || world.get("/app/hook/deliveries?per_page=100", &world.app_token()).await.1;
    let lost = async || {
        let all = deliveries().await;
        all.as_array().unwrap().iter().find(|one| one["status"] != "OK").cloned()
    };
    wait_for("the lost delivery", async || lost().await.is_some()).await;
    let lost = lost().await.unwrap();
    assert_eq!(
        (&lost["status"], &lost["status_code"], &lost["event"]),
        (&json!("timed out"), &json!(0), &json!("issue_comment"))
    );
    let path = format!("/app/hook/deliveries/{}", lost["id"]);
    let (_, whole) = world.get(&path, &world.app_token()).await;
    assert_eq!(whole["request"]["payload"]["comment"]["body"], "lost");
    assert!(!bodies().contains(&"lost".to_owned()));
    let again = world.api(Method::POST, &format!("{path}/attempts"), &world.app_token());
    assert_eq!(world.send(again).await.0, 202);
    after(13).await;
    let (_, one) = heard().pop().unwrap();
    assert_eq!(
        (one.json()["comment"]["body"].clone(), guid(&one)),
        (json!("lost"), lost["guid"].as_str().unwrap())
    );

    // A stranger's.
    let payload = json!({ "action": "created", "comment": { "body": "forged" } });
    world.control("hooks/forged", json!({ "event": "issue_comment", "payload": payload })).await;
    let payload = json!({ "action": "created", "comment": { "body": "signed" } });
    let secret = json!({ "event": "issue_comment", "payload": payload, "secret": "guessed" });
    world.control("hooks/forged", secret).await;
    after(15).await;
    let forged: Vec<Received> = heard().into_iter().skip(13).map(|(_, one)| one).collect();
    assert_eq!(verified(&forged).await, [false, false]);
    world.end().await;
}
