//! Existing pull requests, the lines of their differences, and the reviews that are posted.

use bobbin_core::records::drafted_review::{DiffHunk, DiffSide, DraftedComment, NewPullReview};
use bobbin_core::records::publication::PullRequestState;
use bobbin_forge::{ForgeErrorKind, PullRequests as _};
use serde_json::{Value, json};

use crate::world::{World, at, reply};

const HEAD: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const BASE: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const REVIEWS: &str = "GET /repos/acme/web/pulls/5/reviews";
const POST: &str = "POST /repos/acme/web/pulls/5/reviews";

async fn world() -> World {
    let world = World::start().await;
    world.minting();
    world
}

/// The rights of the operation's only token, which is revoked.
fn rights(world: &World) -> Value {
    world.one("DELETE /installation/token");
    world.one("POST /app/installations/7/access_tokens").body["permissions"].clone()
}

fn review() -> NewPullReview {
    let comment = |line, start_line, side| DraftedComment {
        path: "src/a b.rs".to_owned(),
        line,
        start_line,
        side,
        body: "Why?".to_owned(),
    };
    NewPullReview {
        name: "review-0123".to_owned(),
        commit: HEAD.to_owned(),
        body: "Nearly.".to_owned(),
        comments: vec![comment(4, None, DiffSide::Right), comment(9, Some(7), DiffSide::Left)],
    }
}

fn known(body: &str, id: u64) -> Value {
    let page = format!("https://github.example/acme/web/pull/5#pullrequestreview-{id}");
    json!({"id": id, "body": body, "html_url": page})
}

#[tokio::test]
async fn pull_request_is_found_by_its_number() {
    for (repo, branch) in
        [(json!({"id": 42}), Some("feature")), (json!({"id": 43}), None), (Value::Null, None)]
    {
        let world = world().await;
        let body = json!({
            "number": 5, "state": "closed", "merged_at": "2026-11-28T08:00:00Z", "title": "@all",
            "html_url": "https://github.example/acme/web/pull/5",
            "head": {"ref": "feature", "sha": HEAD, "repo": repo},
            "base": {"ref": "main", "sha": BASE, "repo": {"id": 42}},
        });
        // Deleted forks are no part of the description.
        world.on("GET /repos/acme/web/pulls/5", reply(200, body).undescribed());
        let (pull, head) = world.github().given(&at(), 5).await.unwrap().unwrap();
        assert_eq!((pull.number, pull.state, &*head), (5, PullRequestState::Merged, HEAD));
        assert_eq!(
            (pull.branch.as_deref(), &*pull.into, &*pull.into_commit),
            (branch, "main", BASE)
        );
        assert_eq!(rights(&world), json!({"pull_requests": "read"}));
    }
    let world = world().await;
    assert_eq!(world.github().given(&at(), 6).await.unwrap(), None);
}

#[tokio::test]
async fn difference_tells_lines_of_each_file() {
    let world = world().await;
    let file = |name: &str, patch: Option<&str>| {
        let mut file = json!({"filename": name, "status": "modified"});
        if let Some(patch) = patch {
            file["patch"] = patch.into();
        }
        file
    };
    let files = [
        file("a.rs", Some("@@ -1,2 +1,3 @@\n a\n+b\n c\n@@ -9 +10,0 @@\n-d")),
        file("b.png", None),
    ];
    let route = format!("GET /repos/acme/web/compare/{BASE}...{HEAD}");
    world.on(&route, reply(200, json!({ "files": files })));
    let found = world.github().difference(&at(), BASE, HEAD).await.unwrap();
    let hunk = |left, right| DiffHunk { left, right };
    assert_eq!(found[0].hunks, [hunk((1, 2), (1, 3)), hunk((9, 1), (10, 0))]);
    assert_eq!((found.len(), &*found[1].path, found[1].hunks.len()), (2, "b.png", 0));
    assert_eq!(rights(&world), json!({"contents": "read"}));
}

#[tokio::test]
async fn review_is_posted_with_its_comments() {
    let world = world().await;
    world.on(REVIEWS, reply(200, json!([known("<!-- bobbin:review-9999 -->", 1)])));
    world.on(POST, reply(200, known("", 2)));
    let page = world.github().review(&at(), 5, &review()).await.unwrap();
    assert!(page.ends_with("#pullrequestreview-2"), "{page}");
    assert_eq!(
        world.one(POST).body,
        json!({
            "commit_id": HEAD, "event": "COMMENT",
            "body": "Nearly.\n\n<!-- bobbin:review-0123 -->",
            "comments": [
                {"path": "src/a b.rs", "body": "Why?", "line": 4, "side": "RIGHT"},
                {"path": "src/a b.rs", "body": "Why?", "line": 9, "side": "LEFT", "start_line": 7, "start_side": "LEFT"},
            ],
        })
    );
    assert_eq!(rights(&world), json!({"pull_requests": "write"}));
}

#[tokio::test]
async fn review_that_is_there_is_not_posted_again() {
    let world = world().await;
    world.on(REVIEWS, reply(200, json!(vec![known("Others", 1); 100])));
    world.on(REVIEWS, reply(200, json!([known("Nearly.\n\n<!-- bobbin:review-0123 -->", 7)])));
    let page = world.github().review(&at(), 5, &review()).await.unwrap();
    assert!(page.ends_with("#pullrequestreview-7"), "{page}");
    assert!(!world.lines().iter().any(|line| line.starts_with("POST /repos")));
}

#[tokio::test]
async fn refused_review_says_why() {
    let world = world().await;
    world.on(REVIEWS, reply(200, json!([])));
    let refusal = json!({"message": "Unprocessable Entity", "errors": ["Line could not be resolved"],
        "documentation_url": "https://docs.example"});
    world.on(POST, reply(422, refusal));
    let error = world.github().review(&at(), 5, &review()).await.unwrap_err();
    let ForgeErrorKind::Refused { why } = &error.kind else { panic!("{error:?}") };
    assert_eq!(why, "Line could not be resolved");
}
