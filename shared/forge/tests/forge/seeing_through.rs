//! What is read of a pull request beside its poll, and what is done to it.

use bobbin_core::base::failure::Failure;
use bobbin_core::records::publication::{ActEnd, PullRequestAct};
use bobbin_core::records::responses::{NewRemark, PullRequestResponse, Remark};
use bobbin_forge::{CheckAnnotation, CheckFailure, ForgeErrorKind, PullRequests as _};
use serde_json::{Value, json};

use crate::world::{Reply, TOKEN, World, at, reply};

const MINT: &str = "POST /app/installations/7/access_tokens";
const PULL: &str = "GET /repos/acme/web/pulls/5";
const HEAD: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const PERSON: &str = "ghu_adasaccesstoken";

async fn world() -> World {
    let world = World::start().await;
    world.minting();
    world
}

/// The rights of the operation's only token, which is revoked.
fn rights(world: &World) -> Value {
    world.one("DELETE /installation/token");
    world.one(MINT).body["permissions"].clone()
}

/// Pull request 5 with these values.
fn pull(with: Value) -> Reply {
    let mut body = json!({
        "number": 5, "node_id": "PR_5", "state": "open", "draft": false, "merged_at": null,
        "head": {"sha": HEAD}, "base": {"ref": "main"},
    });
    body.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    reply(200, body)
}

fn refusal(status: u16, message: &str) -> Reply {
    reply(status, json!({"message": message, "documentation_url": "https://docs.example"}))
}

/// A failed job of GitHub's own continuous integration.
async fn failed_job(logs: impl IntoIterator<Item = Reply>) -> (World, CheckFailure) {
    let world = world().await;
    world.on(
        "GET /repos/acme/web/check-runs/9",
        reply(200, json!({
            "id": 9, "details_url": "https://github.example/acme/web/actions/runs/3/job/77?pr=5",
            "app": {"slug": "github-actions"},
            "output": {"title": "1 failed", "summary": "ghp_0123456789abcdefghijklmnopqrstuvwxyzA", "annotations_count": 1},
        })),
    );
    world.on(
        "GET /repos/acme/web/check-runs/9/annotations",
        reply(
            200,
            json!([{"path": "src/a.rs", "start_line": 3, "end_line": 3,
            "annotation_level": "failure", "message": "expected 4"}]),
        ),
    );
    let step = |name: &str, conclusion: &str, second: u32| {
        let time = format!("2026-11-28T08:00:0{second}Z");
        json!({"name": name, "status": "completed", "conclusion": conclusion, "number": second,
            "started_at": time, "completed_at": time})
    };
    let steps = json!([step("checkout", "success", 1), step("npm test", "failure", 2)]);
    world.on("GET /repos/acme/web/actions/jobs/77", reply(200, json!({"id": 77, "steps": steps})));
    let to = format!("{}/actions-results/77/job-logs.txt?sig=link", world.base());
    let led = reply(302, Value::Null).undescribed().with("location", to);
    world.on("GET /repos/acme/web/actions/jobs/77/logs", led);
    for log in logs {
        world.on("GET /actions-results/77/job-logs.txt", log);
    }
    let failure = world.github().check_failure(&at(), 9).await.unwrap();
    assert_eq!(rights(&world), json!({"actions": "read", "checks": "read"}));
    (world, failure)
}

#[tokio::test]
async fn failure_has_annotations_and_failed_step() {
    let log = "2026-11-28T08:00:01.1234567Z cloning\n\
        2026-11-28T08:00:02.0000000Z $ npm test\n\
        2026-11-28T08:00:02.5000000Z TOKEN=ghp_0123456789abcdefghijklmnopqrstuvwxyzA\n";
    let (world, failure) = failed_job([Reply::text(log)]).await;
    assert_eq!(failure.steps, ["npm test"]);
    assert!(failure.log.starts_with("$ npm test\nTOKEN="), "{}", failure.log);
    assert!(!format!("{failure:?}").contains("ghp_"), "{failure:?}");
    assert_eq!(
        failure.annotations,
        [CheckAnnotation {
            path: "src/a.rs".to_owned(),
            line: 3,
            level: "failure".to_owned(),
            message: "expected 4".to_owned(),
        }]
    );
    // The address of the log is a credential of its own, and gets no other.
    let led = world.one("GET /actions-results/77/job-logs.txt?sig=link");
    assert!(led.headers.get("authorization").is_none());
}

#[tokio::test]
async fn missing_log_leaves_the_rest() {
    let (_, failure) = failed_job([refusal(404, "BlobNotFound")]).await;
    assert_eq!((&*failure.log, failure.annotations.len()), ("", 1));
}

#[tokio::test]
async fn late_log_is_read_again() {
    let late = [refusal(404, "BlobNotFound"), Reply::text("2026-11-28T08:00:02.0000000Z red\n")];
    let (world, failure) = failed_job(late).await;
    assert_eq!(failure.log, "red\n");
    // Each link is good for a minute: the second read asks for its own.
    let asked = world.lines().iter().filter(|line| line.ends_with("/jobs/77/logs")).count();
    assert_eq!(asked, 2);
}

#[tokio::test]
async fn log_at_a_strange_host_is_not_read() {
    let world = world().await;
    let run = json!({"id": 9, "details_url": "https://github.example/job/77",
        "app": {"slug": "github-actions"}, "output": {"annotations_count": 0}});
    world.on("GET /repos/acme/web/check-runs/9", reply(200, run));
    world.on("GET /repos/acme/web/actions/jobs/77", reply(200, json!({"id": 77, "steps": []})));
    let led = reply(302, Value::Null).undescribed().with("location", "https://evil.example/log");
    world.on("GET /repos/acme/web/actions/jobs/77/logs", led);
    let failure = world.github().check_failure(&at(), 9).await.unwrap();
    assert_eq!(failure, CheckFailure::default());
}

#[tokio::test]
async fn other_apps_checks_have_no_job() {
    let world = world().await;
    let run = json!({"id": 9, "details_url": "https://ci.example/job/77", "app": {"slug": "ci"},
        "output": {"title": "Red", "summary": null, "annotations_count": 0}});
    world.on("GET /repos/acme/web/check-runs/9", reply(200, run));
    let failure = world.github().check_failure(&at(), 9).await.unwrap();
    assert_eq!(failure, CheckFailure { summary: "Red".to_owned(), ..CheckFailure::default() });
}

#[tokio::test]
async fn remark_is_said_once() {
    let world = world().await;
    let remark =
        NewRemark { thread: Some(11), name: "turn-1".to_owned(), body: "Renamed it.".to_owned() };
    let said =
        |id: u64, to: Value, body: &str| json!({"id": id, "in_reply_to_id": to, "body": body});
    let line = "GET /repos/acme/web/pulls/5/comments";
    // The same name in another thread is another remark.
    let other = said(13, json!(12), "Renamed it.\n\n<!-- bobbin:turn-1 -->");
    world.on(line, reply(200, json!([json!({"id": 11, "body": "Why?"}), other.clone()])));
    let own = said(14, json!(11), "Renamed it.\n\n<!-- bobbin:turn-1 -->");
    world.on(line, reply(200, json!([other, own])));
    let answer = "POST /repos/acme/web/pulls/5/comments/11/replies";
    world.on(answer, reply(201, json!({})));
    let github = world.github();
    github.respond(&at(), 5, &PullRequestResponse::Say(remark.clone())).await.unwrap();
    github.respond(&at(), 5, &PullRequestResponse::Say(remark.clone())).await.unwrap();
    assert_eq!(world.one(answer).body, json!({"body": "Renamed it.\n\n<!-- bobbin:turn-1 -->"}));
    let whole = NewRemark { thread: None, ..remark };
    world.on("GET /repos/acme/web/issues/5/comments", reply(200, json!([])));
    world.on("POST /repos/acme/web/issues/5/comments", reply(201, json!({})));
    github.respond(&at(), 5, &PullRequestResponse::Say(whole.clone())).await.unwrap();
    assert!(
        world.one("GET /repos/acme/web/issues/5/comments").line.ends_with("?per_page=100&page=1")
    );
    world.one("POST /repos/acme/web/issues/5/comments");
}

#[tokio::test]
async fn remarks_are_marked_as_seen() {
    let world = world().await;
    let (line, whole) = (
        "POST /repos/acme/web/pulls/comments/11/reactions",
        "POST /repos/acme/web/issues/comments/12/reactions",
    );
    world.on(line, reply(201, json!({})));
    // There is one already.
    world.on(whole, reply(200, json!({})));
    let github = world.github();
    github.respond(&at(), 5, &PullRequestResponse::Seen(Remark::Line(11))).await.unwrap();
    github.respond(&at(), 5, &PullRequestResponse::Seen(Remark::Whole(12))).await.unwrap();
    assert_eq!(world.one(line).body, json!({"content": "eyes"}));
    world.one(whole);
}

#[tokio::test]
async fn thread_is_resolved_with_both_rights() {
    let world = world().await;
    let done =
        json!({"data": {"resolveReviewThread": {"thread": {"id": "PRRT_1", "isResolved": true}}}});
    world.on("POST /graphql", reply(200, done).undescribed());
    world
        .github()
        .respond(&at(), 5, &PullRequestResponse::Resolve { thread: "PRRT_1".to_owned() })
        .await
        .unwrap();
    let seen = world.one("POST /graphql");
    assert_eq!((seen.bearer(), &seen.body["variables"]), (TOKEN, &json!({"thread": "PRRT_1"})));
    assert_eq!(rights(&world), json!({"contents": "write", "pull_requests": "write"}));
}

#[tokio::test]
async fn reviewers_are_asked_again() {
    let world = world().await;
    let ask = "POST /repos/acme/web/pulls/5/requested_reviewers";
    world.on(ask, reply(201, json!({})));
    world
        .github()
        .respond(&at(), 5, &PullRequestResponse::AskForReview { logins: vec!["ada".to_owned()] })
        .await
        .unwrap();
    assert_eq!(world.one(ask).body, json!({"reviewers": ["ada"]}));
}

#[tokio::test]
async fn draft_is_made_ready_by_the_person() {
    let world = world().await;
    world.on(PULL, pull(json!({"draft": true})));
    world.on(PULL, pull(json!({})));
    let done = json!({"data": {"markPullRequestReadyForReview": {"pullRequest": {"id": "PR_5", "isDraft": false}}}});
    world.on("POST /graphql", reply(200, done).undescribed());
    let github = world.github();
    github.act(&at(), 5, (PullRequestAct::MarkReady, ""), &PERSON.to_owned().into()).await.unwrap();
    github.act(&at(), 5, (PullRequestAct::MarkReady, ""), &PERSON.to_owned().into()).await.unwrap();
    let seen = world.one("POST /graphql");
    assert_eq!((seen.bearer(), &seen.body["variables"]), (PERSON, &json!({"pullRequest": "PR_5"})));
}

const MERGE: &str = "PUT /repos/acme/web/pulls/5/merge";

/// The end of a merge of [`HEAD`], and the world.
async fn merged(found: Reply, answer: Option<Reply>) -> (World, ActEnd) {
    let world = world().await;
    world.on(PULL, found);
    let ways = json!({"allow_merge_commit": false, "allow_squash_merge": true, "allow_rebase_merge": true});
    world.on("GET /repos/acme/web", reply(200, ways));
    if let Some(answer) = answer {
        world.on(MERGE, answer);
    }
    let end = world
        .github()
        .act(&at(), 5, (PullRequestAct::Merge, HEAD), &PERSON.to_owned().into())
        .await
        .unwrap();
    (world, end)
}

#[tokio::test]
async fn merge_is_bound_to_the_seen_head() {
    let done = reply(200, json!({"sha": HEAD, "merged": true, "message": "Merged"}));
    let (world, end) = merged(pull(json!({})), Some(done)).await;
    assert_eq!(end, ActEnd::Done);
    let seen = world.one(MERGE);
    assert_eq!(seen.bearer(), PERSON);
    assert_eq!(seen.body, json!({"sha": HEAD, "merge_method": "squash"}));
    assert_eq!(rights(&world), json!({"pull_requests": "read"}));
    // Another push came in before the press, or before the call.
    let (world, end) = merged(pull(json!({"head": {"sha": "b".repeat(40)}})), None).await;
    assert_eq!(end, ActEnd::HeadMoved);
    assert!(!world.lines().iter().any(|line| line.starts_with("PUT")));
    let moved = refusal(409, "Head branch was modified. Review and try the merge again.");
    assert_eq!(merged(pull(json!({})), Some(moved)).await.1, ActEnd::HeadMoved);
}

#[tokio::test]
async fn repeated_merge_finds_it_merged() {
    let found = pull(json!({"state": "closed", "merged_at": "2026-11-28T08:00:00Z"}));
    let (world, end) = merged(found, None).await;
    assert_eq!(end, ActEnd::Done);
    assert!(!world.lines().iter().any(|line| line.starts_with("PUT")));
}

#[tokio::test]
async fn refused_merge_says_githubs_reason() {
    let why = "At least 1 approving review is required by reviewers with write access.";
    let (_, end) = merged(pull(json!({})), Some(refusal(405, why))).await;
    assert_eq!(end, ActEnd::Refused { why: why.to_owned() });
    let (_, end) = merged(pull(json!({"state": "closed"})), None).await;
    assert_eq!(end, ActEnd::Refused { why: "It is closed.".to_owned() });
}

#[tokio::test]
async fn merge_queue_takes_it_where_one_is() {
    let world = world().await;
    world.on(PULL, pull(json!({})));
    world.on("GET /repos/acme/web", reply(200, json!({})));
    world.on(MERGE, refusal(405, "Changes must be made through the merge queue"));
    let done = json!({"data": {"enqueuePullRequest": {"mergeQueueEntry": {"id": "MQE_1", "position": 1, "state": "QUEUED"}}}});
    world.on("POST /graphql", reply(200, done).undescribed());
    let github = world.github();
    let person = PERSON.to_owned().into();
    assert_eq!(
        github.act(&at(), 5, (PullRequestAct::Merge, HEAD), &person).await.unwrap(),
        ActEnd::Queued
    );
    let seen = world.one("POST /graphql");
    assert_eq!(seen.bearer(), PERSON);
    assert_eq!(seen.body["variables"], json!({"pullRequest": "PR_5", "head": HEAD}));
}

/// An answer of GraphQL that has nothing but this error.
fn graphql_error(kind: &str, message: &str) -> Reply {
    let errors = json!([{"type": kind, "path": ["change"], "message": message}]);
    reply(200, json!({"data": {"change": null}, "errors": errors})).undescribed()
}

#[tokio::test]
async fn refused_queue_and_draft_say_githubs_reason() {
    let cases = [
        ("UNPROCESSABLE", "Pull request is not mergeable"),
        ("FORBIDDEN", "Resource protected by organization SAML enforcement."),
    ];
    for (kind, why) in cases {
        for act in [PullRequestAct::Merge, PullRequestAct::MarkReady] {
            let world = world().await;
            world.on(PULL, pull(json!({"draft": act == PullRequestAct::MarkReady})));
            world.on("GET /repos/acme/web", reply(200, json!({})));
            world.on(MERGE, refusal(405, "Changes must be made through the merge queue"));
            world.on("POST /graphql", graphql_error(kind, why));
            let person = PERSON.to_owned().into();
            let end = world.github().act(&at(), 5, (act, HEAD), &person).await.unwrap();
            assert_eq!(end, ActEnd::Refused { why: why.to_owned() });
        }
    }
}

#[tokio::test]
async fn thread_that_is_not_resolved_is_refused() {
    let world = world().await;
    let why = "Could not resolve the thread";
    world.on("POST /graphql", graphql_error("UNPROCESSABLE", why));
    let resolve = PullRequestResponse::Resolve { thread: "PRRT_1".to_owned() };
    let error = world.github().respond(&at(), 5, &resolve).await.unwrap_err();
    assert_eq!(error.failure, Failure::NonRecoverable { advice: why.to_owned() });
}

const UPDATE: &str = "PUT /repos/acme/web/pulls/5/update-branch";

#[tokio::test]
async fn repeated_branch_update_finds_it_done() {
    let (head, base, other) = ("b".repeat(40), "c".repeat(40), "d".repeat(40));
    for (parents, common, end) in [
        ([HEAD, &*base].as_slice(), &base, ActEnd::Done),
        // What was merged is not of the base.
        ([HEAD, &*base].as_slice(), &other, ActEnd::HeadMoved),
        // Somebody has pushed: onto the head, or onto what the update made of it.
        ([HEAD].as_slice(), &base, ActEnd::HeadMoved),
        ([&*other, &*base].as_slice(), &base, ActEnd::HeadMoved),
    ] {
        let world = world().await;
        world.on(UPDATE, refusal(422, "expected head sha didn’t match current head ref."));
        world.on(PULL, pull(json!({"head": {"sha": head}})));
        let parents: Vec<Value> = parents.iter().map(|sha| json!({"sha": sha})).collect();
        let commit = format!("GET /repos/acme/web/git/commits/{head}");
        world.on(&commit, reply(200, json!({"parents": parents})));
        let compared = format!("GET /repos/acme/web/compare/main...{base}");
        world.on(&compared, reply(200, json!({"merge_base_commit": {"sha": common}})));
        let person = PERSON.to_owned().into();
        let act = (PullRequestAct::UpdateBranch, HEAD);
        assert_eq!(world.github().act(&at(), 5, act, &person).await.unwrap(), end, "{parents:?}");
        // The app's own token of this operation may not read commits.
        assert_eq!(world.one(&commit).bearer(), PERSON);
    }
}

#[tokio::test]
async fn branch_update_is_bound_to_the_seen_head() {
    for (answer, end) in [
        (reply(202, json!({})), ActEnd::Done),
        (refusal(422, "There are no new commits on the base branch."), ActEnd::Done),
        (refusal(422, "merge conflict between base and head"), ActEnd::Conflicts),
        (
            refusal(403, "Resource not accessible by integration"),
            ActEnd::Refused { why: "Resource not accessible by integration".to_owned() },
        ),
    ] {
        let world = world().await;
        world.on(UPDATE, answer);
        let github = world.github();
        let person = PERSON.to_owned().into();
        assert_eq!(
            github.act(&at(), 5, (PullRequestAct::UpdateBranch, HEAD), &person).await.unwrap(),
            end
        );
        let seen = world.one(UPDATE);
        assert_eq!(seen.bearer(), PERSON);
        assert_eq!(seen.body, json!({"expected_head_sha": HEAD}));
    }
    let world = world().await;
    world.on(UPDATE, refusal(401, "Bad credentials"));
    let person = PERSON.to_owned().into();
    let error = world
        .github()
        .act(&at(), 5, (PullRequestAct::UpdateBranch, HEAD), &person)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ForgeErrorKind::SignInEnded);
}
