//! A pull request as one poll sees it.

use bobbin_core::base::failure::Failure;
use bobbin_core::records::checks::{Check, CheckKind, CheckState, RequiredCheck};
use bobbin_core::records::publication::PullRequestState;
use bobbin_core::records::pull_request::{
    Mergeability, PolledPullRequest, ReviewDecision, ReviewState,
};
use bobbin_forge::{Forge as _, ForgeError, ForgeErrorKind};
use serde_json::{Value, json};

use crate::world::{TOKEN, World, at, reply};

const QUERY: &str = "POST /graphql";
const HEAD: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// An open pull request with these checks.
fn pull(contexts: &Value) -> Value {
    json!({
        "number": 5, "state": "OPEN", "isDraft": true, "isInMergeQueue": false,
        "isCrossRepository": false, "headRefName": "bobbin/add-a", "headRefOid": HEAD,
        "baseRefName": "main", "mergeable": "MERGEABLE", "mergeStateStatus": "DRAFT",
        "reviewDecision": null,
        "commits": {"nodes": [{"commit": {"oid": HEAD, "statusCheckRollup": {
            "contexts": {"totalCount": 3, "nodes": contexts}}}}]},
        "reviewThreads": {"totalCount": 0, "nodes": []},
        "latestOpinionatedReviews": {"totalCount": 0, "nodes": []},
        "comments": {"totalCount": 0, "nodes": []},
    })
}

fn answer(pull: &Value) -> Value {
    json!({"data": {"repository": {"databaseId": 42, "pullRequest": pull}}})
}

async fn polled(answer: Value) -> Result<PolledPullRequest, ForgeError> {
    let world = World::start().await;
    world.minting();
    world.on(QUERY, reply(200, answer).undescribed());
    let polled = world.github().poll_pull_request(&at(), 5).await;
    let seen = world.one(QUERY);
    assert_eq!(seen.bearer(), TOKEN);
    assert_eq!(seen.body["variables"], json!({"owner": "acme", "name": "web", "number": 5}));
    let minted = world.one("POST /app/installations/7/access_tokens");
    assert_eq!(
        minted.body,
        json!({"repository_ids": [42], "permissions": {
            "actions": "read", "checks": "read", "contents": "read", "issues": "read",
            "pull_requests": "read", "statuses": "read"}})
    );
    world.one("DELETE /installation/token");
    polled
}

fn run(id: u64, status: &str, conclusion: Option<&str>) -> Value {
    json!({
        "__typename": "CheckRun", "databaseId": id, "name": "test", "status": status,
        "conclusion": conclusion, "detailsUrl": "https://github.example/run",
        "checkSuite": {"app": {"slug": "github-actions", "databaseId": 15368},
            "workflowRun": {"event": "push", "workflow": {"name": "CI"}}},
    })
}

#[tokio::test]
async fn poll_reads_checks_and_statuses() {
    let status = json!({
        "__typename": "StatusContext", "context": "lint", "state": "ERROR", "targetUrl": null,
        "createdAt": "2026-11-28T08:00:00Z",
    });
    let bare = json!({
        "__typename": "CheckRun", "databaseId": 8, "name": "scan", "status": "QUEUED",
        "conclusion": null, "detailsUrl": null, "checkSuite": {"app": {"slug": "scanner",
        "databaseId": 3}, "workflowRun": null},
    });
    let contexts = json!([run(7, "COMPLETED", Some("SUCCESS")), status, bare]);
    let seen = polled(answer(&pull(&contexts))).await.unwrap();
    assert_eq!((seen.state, seen.is_draft, &*seen.head), (PullRequestState::Open, true, HEAD));
    assert_eq!(
        (seen.merge, seen.decision, seen.totals.checks),
        (Mergeability::Clean, ReviewDecision::NotNeeded, 3)
    );
    let page = "https://github.example/run".to_owned();
    let check = |name: &str, of: &str, kind, state, page| Check {
        name: name.to_owned(),
        of: of.to_owned(),
        kind,
        state,
        page,
    };
    let app = |id| CheckKind::Run { id, app: Some(if id == 7 { 15_368 } else { 3 }) };
    let at_ms = 1_795_852_800_000;
    assert_eq!(
        seen.checks,
        [
            check("test", "CI (push)", app(7), CheckState::Passed, page),
            check("lint", "", CheckKind::Status { at_ms }, CheckState::Failed, String::new()),
            check("scan", "scanner", app(8), CheckState::Running, String::new()),
        ]
    );
}

#[tokio::test]
async fn unknown_conclusions_call_a_person() {
    for (conclusion, state) in [
        ("NEUTRAL", CheckState::Passed),
        ("SKIPPED", CheckState::Passed),
        ("FAILURE", CheckState::Failed),
        ("TIMED_OUT", CheckState::Failed),
        ("STARTUP_FAILURE", CheckState::Failed),
        ("CANCELLED", CheckState::Held),
        ("ACTION_REQUIRED", CheckState::Held),
        ("STALE", CheckState::Held),
        ("OF_TOMORROW", CheckState::Held),
    ] {
        let contexts = json!([run(1, "COMPLETED", Some(conclusion))]);
        let seen = polled(answer(&pull(&contexts))).await.unwrap();
        assert_eq!(seen.checks[0].state, state, "{conclusion}");
    }
}

#[tokio::test]
async fn poll_reads_reviews_and_threads() {
    let comment = |id: u64, kind: &str, edited: Value| {
        json!({
            "databaseId": id, "url": format!("https://github.example/{id}"), "body": "Why?",
            "diffHunk": "@@ -1 +1 @@\n-a\n+b", "createdAt": "2026-11-28T08:00:00Z",
            "lastEditedAt": edited, "author": {"__typename": kind, "login": "ada"},
        })
    };
    let mut body = pull(&json!([]));
    body["reviewThreads"]["nodes"] = json!([{
        "id": "PRRT_1", "isResolved": false, "isOutdated": true, "path": "src/a.rs", "line": null,
        "top": {"nodes": [comment(1, "User", Value::Null)]},
        "comments": {"totalCount": 2, "nodes": [
            comment(1, "User", Value::Null), comment(2, "Bot", json!("2026-11-28T08:00:01Z"))]},
    }]);
    body["latestOpinionatedReviews"]["nodes"] = json!([{
        "databaseId": 9, "state": "CHANGES_REQUESTED", "body": "", "author": null, "commit": {"oid": HEAD},
        "submittedAt": "2026-11-28T08:00:00Z",
    }]);
    body["reviewDecision"] = json!("CHANGES_REQUESTED");
    body["mergeable"] = json!("CONFLICTING");
    body["mergeStateStatus"] = json!("DIRTY");
    let seen = polled(answer(&body)).await.unwrap();
    let thread = &seen.threads[0];
    assert_eq!(
        (&*thread.path, thread.line, thread.is_outdated, &*thread.hunk),
        ("src/a.rs", None, true, "@@ -1 +1 @@\n-a\n+b")
    );
    let authors: Vec<bool> = thread.comments.iter().map(|one| one.by.is_bot).collect();
    assert_eq!(authors, [false, true]);
    assert_eq!(thread.comments[1].at_ms - thread.comments[0].at_ms, 1_000);
    let review = &seen.reviews[0];
    assert_eq!((review.state, &*review.by.login), (ReviewState::ChangesRequested, ""));
    assert_eq!(review.at_ms, thread.comments[0].at_ms);
    assert_eq!(
        (seen.merge, seen.decision),
        (Mergeability::Conflicts, ReviewDecision::ChangesRequested)
    );
}

#[tokio::test]
async fn long_thread_is_read_at_both_ends() {
    let comment = |id: u64| {
        json!({
            "databaseId": id, "url": "https://github.example/1", "body": format!("said {id}"),
            "createdAt": "2026-11-28T08:00:00Z", "lastEditedAt": null, "author": null, "editor": null,
        })
    };
    let mut top = comment(1);
    top["diffHunk"] = json!("@@ -1 +1 @@");
    let newest: Vec<Value> = (6..=25).map(comment).collect();
    let mut body = pull(&json!([]));
    body["reviewThreads"] = json!({"totalCount": 73, "nodes": [{
        "id": "PRRT_1", "isResolved": false, "isOutdated": false, "path": "a.rs", "line": 1,
        "top": {"nodes": [top]}, "comments": {"totalCount": 25, "nodes": newest},
    }]});
    body["latestOpinionatedReviews"]["totalCount"] = json!(21);
    body["comments"]["totalCount"] = json!(31);
    let seen = polled(answer(&body)).await.unwrap();
    let thread = &seen.threads[0];
    let ids: Vec<u64> = thread.comments.iter().map(|one| one.id).collect();
    assert_eq!(ids, [vec![1], (6..=25).collect()].concat());
    assert_eq!((thread.is_cut(), &*thread.hunk), (true, "@@ -1 +1 @@"));
    assert_eq!((seen.totals.threads, seen.totals.reviews, seen.totals.comments), (73, 21, 31));
}

#[tokio::test]
async fn answer_with_holes_is_no_answer() {
    let mut holes = answer(&pull(&json!([null])));
    holes["errors"] = json!([{"type": "FORBIDDEN", "message": "Resource not accessible by integration",
        "path": ["repository", "pullRequest", "commits"]}]);
    let error = polled(holes).await.unwrap_err();
    assert!(error.seen.contains("`bobbin check` says which"), "{error}");
    let limited =
        json!({"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]});
    let error = polled(limited).await.unwrap_err();
    assert_eq!(error.kind, ForgeErrorKind::RateLimited);
    let broken = json!({"data": null, "errors": [{"message": "Something went wrong"}]});
    let error = polled(broken).await.unwrap_err();
    assert!(matches!(error.failure, Failure::Outage { .. }), "{error:?}");
}

#[tokio::test]
async fn lagging_or_renamed_answers_are_not_used() {
    let mut lags = pull(&json!([]));
    lags["headRefOid"] = json!("b".repeat(40));
    let error = polled(answer(&lags)).await.unwrap_err();
    assert!(matches!(error.failure, Failure::Wait { .. }), "{error:?}");
    let mut other = answer(&pull(&json!([])));
    other["data"]["repository"]["databaseId"] = json!(43);
    assert_eq!(polled(other).await.unwrap_err().kind, ForgeErrorKind::NotFound);
    let gone = json!({"data": {"repository": null}, "errors": [{"type": "NOT_FOUND",
        "message": "Could not resolve to a Repository"}]});
    assert_eq!(polled(gone).await.unwrap_err().kind, ForgeErrorKind::NotFound);
}

#[tokio::test]
async fn required_checks_are_of_rules_and_protection() {
    let world = World::start().await;
    world.minting();
    let rules = json!([
        {"type": "deletion"},
        {"type": "required_status_checks", "parameters": {
            "strict_required_status_checks_policy": false,
            "required_status_checks": [{"context": "test", "integration_id": 15368}, {"context": "lint"}]}},
    ]);
    world.on("GET /repos/acme/web/rules/branches/release%2F2", reply(200, rules).undescribed());
    let protection = json!({"enabled": true, "required_status_checks": {
        "enforcement_level": "everyone", "contexts": ["lint", "old"],
        "checks": [{"context": "lint", "app_id": null}, {"context": "any", "app_id": -1}]}});
    world.on(
        "GET /repos/acme/web/branches/release%2F2",
        reply(200, json!({"name": "release/2", "protection": protection})).undescribed(),
    );
    let found = world.github().required_checks(&at(), "release/2").await.unwrap();
    let named = |name: &str, app| RequiredCheck { name: name.to_owned(), app };
    let all = ["any", "lint", "old"].map(|name| named(name, None));
    assert_eq!(found, [&all[..], &[named("test", Some(15_368))]].concat());
    world.one("DELETE /installation/token");
}

/// GitHub's words on private repositories of free plans, and of an app without the permission.
#[tokio::test]
async fn plan_without_rules_requires_no_check() {
    let world = World::start().await;
    world.minting();
    let refusal = |message: &str| reply(403, json!({"message": message, "documentation_url": "x"}));
    let rules = "GET /repos/acme/web/rules/branches/main";
    let plan = "Upgrade to GitHub Pro or make this repository public to enable this feature.";
    world.on(rules, refusal(plan));
    world.on(rules, refusal("Resource not accessible by integration"));
    let branch = json!({"name": "main", "protection": {"enabled": false}});
    world.on("GET /repos/acme/web/branches/main", reply(200, branch).undescribed());
    let github = world.github();
    let found = github.required_checks(&at(), "main").await.unwrap();
    assert!(found.is_empty(), "{found:?}");
    let error = github.required_checks(&at(), "main").await.unwrap_err();
    assert!(matches!(error.kind, ForgeErrorKind::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn writers_are_asked_for_by_permission() {
    let world = World::start().await;
    world.minting();
    for (login, permission) in [("ada", "write"), ("eve", "read"), ("root", "admin")] {
        let user = json!({"id": 3, "login": login, "type": "User"});
        // A maintainer is told as one who may write, a triager as one who may read.
        let body = json!({"permission": permission, "role_name": permission, "user": user});
        let path = format!("GET /repos/acme/web/collaborators/{login}/permission");
        world.on(&path, reply(200, body));
    }
    let logins = ["ada", "eve", "gone", "root"].map(str::to_owned);
    let writers = world.github().writers(&at(), &logins).await.unwrap();
    assert_eq!(writers, ["ada", "root"]);
    assert_eq!(world.github().writers(&at(), &[]).await.unwrap(), [""; 0]);
}
