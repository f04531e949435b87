//! GitHub's own client finds what its user expects, and its published description finds nothing wrong.

use std::collections::BTreeSet;
use std::path::Path;

use bobbin_rules::github::{Exchange, ExchangeVerdict, judge};
use bobbin_tests::tools;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::world::{WEBHOOK_SECRET, World};

#[derive(Deserialize)]
struct Walked {
    found: Value,
    exchanges: Vec<Sent>,
}

#[derive(Deserialize)]
struct Sent {
    method: String,
    path: String,
    request: Value,
    status: u16,
    answer: Value,
    has_answer: bool,
    moved: bool,
    is_diff: bool,
    limits: bool,
}

/// Calls that the kept part of the description lacks: a person's, not an app's.
const UNDESCRIBED: [&str; 17] = [
    "DELETE /app/installations/N/suspended",
    "DELETE /repos/O/R",
    "DELETE /repos/O/R/branches/main/protection",
    "DELETE /repos/O/R/collaborators/mallory",
    "DELETE /repos/O/R/rulesets/N",
    "GET /repositories/N",
    "GET /repos/O/R/branches/main/protection",
    "GET /repos/O/R/rulesets",
    "GET /user/memberships/orgs/laptop",
    "PATCH /repos/O/R",
    "POST /orgs/laptop/repos",
    "POST /repos/O/R/rulesets",
    "POST /repos/O/R/transfer",
    "POST /user/repos",
    "PUT /app/installations/N/suspended",
    "PUT /repos/O/R/branches/main/protection",
    "PUT /repos/O/R/collaborators/mallory",
];

fn sdk() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk")
}

/// Runs a script with what it is given, and answers what it found.
async fn run<T: serde::de::DeserializeOwned>(name: &str, given: Value) -> T {
    let mut script = tools::script("node");
    script.arg(sdk().join(name));
    tools::found(&mut script, &given).await
}

/// A call with its ids and names replaced.
fn general(sent: &Sent) -> String {
    let parts: Vec<&str> = sent.path.split('/').collect();
    let is_repository = parts.get(1) == Some(&"repos");
    let parts = parts.iter().enumerate().map(|(at, part)| match at {
        2 if is_repository => "O",
        3 if is_repository => "R",
        _ if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) => "N",
        _ if part.len() == 40 => "SHA",
        _ => part,
    });
    format!("{} {}", sent.method, parts.collect::<Vec<_>>().join("/"))
}

#[tokio::test(flavor = "multi_thread")]
async fn octokit_works_against_forge() {
    let world = World::start("octokit").await;
    let other = World::start("octokit-other").await;
    let packages = tools::node("octokit", &sdk()).unwrap();
    let mut given = serde_json::to_value(&world.id).unwrap();
    for (field, value) in [
        ("api", world.forge.api()),
        ("git", world.forge.git()),
        ("packages", packages.to_string_lossy().into_owned()),
        ("webhook", format!("{}/hook", world.hook.base())),
        ("other_key", other.id.private_key.clone()),
    ] {
        given[field] = value.into();
    }
    let Walked { found, exchanges } = run("walk.mjs", given).await;
    let expected = expected();
    for (what, right) in expected.as_object().unwrap() {
        assert_eq!(&found[what], right, "{what}");
    }
    assert_eq!(found.as_object().unwrap().len(), expected.as_object().unwrap().len());
    judged(&exchanges, &UNDESCRIBED, 38);

    // What was sent besides is signed as GitHub signs it.
    world.told("installation", "suspend", 1).await;
    let received = world.hook.received();
    let deliveries = received.iter().map(|one| {
        let signature = one.headers["x-hub-signature-256"].to_str().unwrap();
        json!({ "body": String::from_utf8_lossy(&one.body), "signature": signature })
    });
    let deliveries: Vec<Value> = deliveries.collect();
    let given = json!({ "packages": packages, "secret": WEBHOOK_SECRET, "deliveries": deliveries });
    let verified: Vec<Value> = run("verify.mjs", given).await;
    assert!(verified.len() > 10, "{verified:?}");
    assert!(verified.iter().all(|one| *one == json!([true, false, false])), "{verified:?}");
    world.end().await;
    other.end().await;
}

/// Calls of the loop that the kept part of the description lacks.
const LOOP_UNDESCRIBED: [&str; 9] = [
    "DELETE /repos/O/R/issues/comments/N",
    "DELETE /repos/O/R/pulls/N/requested_reviewers",
    "DELETE /repos/O/R/pulls/comments/N",
    "PATCH /repos/O/R/check-runs/N",
    "POST /graphql",
    "POST /repos/O/R/check-runs",
    "POST /repos/O/R/pulls/N/reviews",
    "POST /repos/O/R/statuses/SHA",
    "PUT /repos/O/R/pulls/N/reviews/N/dismissals",
];

#[tokio::test(flavor = "multi_thread")]
async fn octokit_walks_pull_requests_to_their_merge() {
    let world = World::start("octokit-loop").await;
    world.repository("web", json!({})).await;
    let rights = json!({ "checks": "write", "statuses": "write", "actions": "write" });
    let service = json!({ "name": "ci", "owner": "laptop", "permissions": rights });
    let ci = world.control("app", service).await;
    let eve = world.control("person", json!({ "login": "eve" })).await;
    let path = "/repos/laptop/web/collaborators/eve";
    world.as_ada(Method::PUT, path, json!({ "permission": "push" })).await;
    let mut given = serde_json::to_value(&world.id).unwrap();
    for (field, value) in [
        ("api", world.forge.api()),
        ("git", world.forge.git()),
        ("packages", tools::node("octokit", &sdk()).unwrap().to_string_lossy().into_owned()),
        ("installation_token", world.mint(json!({})).await),
        ("ci_token", ci["token"].as_str().unwrap().to_owned()),
        ("eve_token", eve["token"].as_str().unwrap().to_owned()),
        ("look", include_str!("../../src/graphql/look.graphql").to_owned()),
        ("control_key", crate::world::KEY.to_owned()),
    ] {
        given[field] = value.into();
    }
    let Walked { found, exchanges } = run("loop.mjs", given).await;
    let expected = expected_of_loop();
    for (what, right) in expected.as_object().unwrap() {
        assert_eq!(&found[what], right, "{what}");
    }
    assert_eq!(found.as_object().unwrap().len(), expected.as_object().unwrap().len());
    judged(&exchanges, &LOOP_UNDESCRIBED, 40);
    world.end().await;
}

fn expected_of_loop() -> Value {
    let none = json!([404, "Not Found"]);
    json!({
        "check": ["queued", "completed", "failure", 1],
        "others": [403, "You must authenticate via a GitHub App."],
        "annotations": [["a.txt", "Here"]],
        "one": "ci",
        "of_commit": ["build", "test"],
        "suites": [["ci", "completed", "failure"], ["github-actions", "completed", "failure"]],
        "of_suite": 1,
        "asked_again": [201, 201],
        "status": "success",
        "statuses": ["deploy"],
        "runs": [["CI", "push", "failure", 1]],
        "run": true,
        "job": ["test", "failure", ["Run"]],
        "log": "one failed",
        "rerun_right": [403, "Resource not accessible by integration"],
        "rerun": 201,
        "attempts": ["failure"],
        "cancelled": 202,
        "job_again": 201,
        "asked": ["eve"],
        "own": [422, "Unprocessable Entity", "Can not approve your own pull request"],
        "strange": [422, "Validation Failed", "commit_id is not part of the pull request"],
        "outside": [422, "Validation Failed", "pull_request_review_thread.line must be part of the diff"],
        "review": ["CHANGES_REQUESTED", "Why?", 1],
        "reply": [true, "a.txt", 2],
        "reply_to_reply": none,
        "comments": ["Why?", "Done", "And?"],
        "edited": "And so?",
        "read": "@@ -0,0 +1,2 @@\n+one",
        "seen": [201, 200],
        "removed": none,
        "dismissed": "DISMISSED",
        "remark": ["Bot", "bobbin-laptop"],
        "remarks": 1,
        "remark_read": "Hello again",
        "hooray": 201,
        "remark_gone": none,
        "look": [true, 1],
        "unknown": "GraphqlResponseError",
        "stale": [422, "expected head sha didn’t match current head ref."],
        "updated": 202,
        "tries": [[null, "unknown"], [true, "clean"]],
        "of_head": [1],
        "moved": [409, "Head branch was modified. Review and try the merge again."],
        "merged": true,
    })
}

/// Fails with everything that the description finds wrong.
fn judged(exchanges: &[Sent], undescribed: &[&str], known_min: usize) {
    let present =
        |value: &Value, is_there: bool| (is_there && !value.is_null()).then(|| value.clone());
    let (mut wrong, mut unknown, mut known) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for sent in exchanges {
        // The client followed to an address that only ids know, or to a log, or asked for a diff, which is not JSON.
        if sent.moved || sent.is_diff {
            continue;
        }
        assert!(sent.limits || sent.status == 401, "{} {}", sent.method, sent.path);
        let request = present(&sent.request, true);
        let answer = present(&sent.answer, sent.has_answer);
        let exchange = Exchange {
            method: &sent.method,
            path: &sent.path,
            request: request.as_ref(),
            status: sent.status,
            answer: answer.as_ref(),
        };
        match judge(&exchange) {
            ExchangeVerdict::NoDescription => return,
            ExchangeVerdict::Unknown => drop(unknown.insert(general(sent))),
            ExchangeVerdict::Known { call, wrong: found } => {
                wrong.extend(found.into_iter().map(|one| format!("{call} {}: {one}", sent.status)));
                known.insert(call);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // With the whole description in the place of its part, all but the address by id are known.
    let undescribed = undescribed.iter().map(|one| (*one).to_owned());
    let undescribed: BTreeSet<String> = undescribed.collect();
    assert!(unknown.is_subset(&undescribed), "{unknown:?}");
    assert!(known.len() >= known_min, "{} {known:?}", known.len());
}

fn expected() -> Value {
    let failed = |told: &str| json!([422, "Validation Failed", told]);
    let none = json!([404, "Not Found"]);
    let integration = json!([403, "Resource not accessible by integration"]);
    let undecoded = json!([401, "A JSON web token could not be decoded"]);
    let suspended = json!([403, "This installation has been suspended"]);
    let ungranted = json!([422, "The permissions requested are not granted to this installation."]);
    let mut expected = json!({
        "app": ["bobbin-laptop", "write", true],
        "by_client_id": true,
        "other_key": undecoded,
        "no_token": undecoded,
        "bad_token": [401, "Bad credentials"],
        "hook": true,
        "installations": ["laptop"],
        "of_org": true,
        "of_user": none,
        "one": "Organization",
        "made": ["laptop/web", true, true, true, "User"],
        "taken": [422, "Repository creation failed.", "name already exists on this account"],
        "bad_name": failed("name invalid"),
        "me": ["ada", "admin"],
        "bot": "Bot",
        "of_repo": true,
        "not_installed": none,
        "minted": [{"contents": "read", "metadata": "read"}, ["web"], true],
        "letters": [true, true],
        "too_much": ungranted,
        "more": ungranted,
        "outside": [422, "There is at least one repository that does not exist or is not accessible to the parent installation."],
        "by_name": 2,
        "unknown_key": [422, "Invalid request.\n\n\"repository_id\" is not a permitted key."],
        "reads": {"admin": false, "maintain": false, "pull": true, "push": false, "triage": false},
        "other_repo": none,
        "public_repo": false,
        "no_right": integration,
        "seen": ["web"],
        "all": 2,
        "pages": 2,
        "each": ["empty", "web"],
        "branches": ["bobbin/one", "main"],
        "branch": [true, false, "Add one"],
        "no_branch": [404, "Branch not found"],
        "ref": true,
        "matching": ["refs/heads/bobbin/one"],
        "empty": [409, "Git Repository is empty."],
        "commit": ["Add one", "Ada", 1, "unsigned"],
        "tree": [["README.md", "100644", "blob"], ["one.txt", "100644", "blob"]],
        "blob": "one\ntwo\n",
        "stats": [2, "@@ -0,0 +1,2 @@\n+one\n+two"],
        "compared": ["ahead", 1, 0, [["one.txt", "added"]]],
    });
    let more = json!({
        "pull": [1, true, "bobbin-laptop[bot]", "Bot", null, 1, "laptop:bobbin/one"],
        "again": failed("A pull request already exists for laptop:bobbin/one."),
        "no_base": failed("base invalid"),
        "no_head": failed("head invalid"),
        "no_commits": failed("No commits between main and main"),
        "foreign": failed("head invalid"),
        "by_head": [[1], [], [1], [], [1]],
        "unknown": [null, "unknown"],
        "draft": [true, "draft", [405, "Pull Request is still a draft"]],
        "files": [["one.txt", 2, "@@ -0,0 +1,2 @@\n+one\n+two"]],
        "commits": [true],
        "diff": "diff --git a/one.txt b/one.txt",
        "patched": "One, better",
        "pressed": [303, 303],
        "moved": [true, 2, false, "clean"],
        "late": [409, "Head branch was modified. Review and try the merge again."],
        "not_merged": none,
        "merge_right": integration,
        "merged": [true, "Pull Request successfully merged", 204],
        "closed": ["closed", true, true, "bobbin-laptop[bot]", 2],
        "reopened": failed("state cannot be changed. The pull request has been merged."),
        "gone": [422, "Reference does not exist"],
        "squashed": "a (#2)",
        "dirty": ["dirty", [405, "Pull Request is not mergeable"]],
        "rebased": 1,
        "headless": "closed",
        "created": ["refs/heads/d", [422, "Reference already exists"]],
        "not_forward": [422, "Update is not a fast forward"],
        "rules": ["required_signatures", "pull_request"],
        "rulesets": 1,
        "ruled_ref": [422, "Repository rule violations found\n\nChanges must be made through a pull request.\n\n"],
        "protected": [true, ["ci"]],
        "blocked": ["blocked", [405, "Required status check \"ci\" is expected."]],
        "levels": ["admin", "read", "read"],
        "nobody": ["none", none],
        "renamed": ["laptop/shop", true, "laptop/shop", [5]],
        "archived": [true, [403, "Repository was archived so is read-only."]],
        "transferred": ["ada/gift", none, true],
        "revoked": [[401, "Bad credentials"], 200],
        "suspended": [suspended, suspended, true],
        "back": 200,
        "limits": 5_000,
        "delivered": ["OK", 1, "pull_request"],
        "redelivered": 202,
        "no_delivery": none,
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut expected, more) {
        all.extend(more);
    }
    expected
}
