//! What people say of a pull request, and what a push makes of it.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::World;

const PULL: &str = "/repos/laptop/web/pulls/1";

/// A repository with a pull request by the app; its token, and one of a person who may write.
struct Talking {
    world: World,
    app: String,
    writer: String,
    sha: String,
}

impl Talking {
    async fn start(name: &str) -> Self {
        let world = World::start(name).await;
        world.repository("web", json!({})).await;
        let app = world.mint(json!({})).await;
        world.clone_of("laptop/web", &app, "clone").await;
        let sha = world.commit("clone", "a.txt", "one\ntwo\nthree\nfour\n").await;
        world.push("clone", "laptop/web", &app, "bobbin/a").await.well();
        let new = json!({ "title": "A", "head": "bobbin/a", "base": "main" });
        let made = world.api(Method::POST, "/repos/laptop/web/pulls", &app).json(&new);
        assert_eq!(world.send(made).await.0, 201);
        let writer = person(&world, "eve").await;
        let path = "/repos/laptop/web/collaborators/eve";
        world.as_ada(Method::PUT, path, json!({ "permission": "push" })).await;
        Self { world, app, writer, sha }
    }

    async fn call(&self, method: Method, path: &str, token: &str, body: Value) -> (u16, Value) {
        let (status, told) = self.world.send(self.world.api(method, path, token).json(&body)).await;
        (status.as_u16(), told)
    }

    async fn post(&self, path: &str, token: &str, body: Value) -> (u16, Value) {
        self.call(Method::POST, path, token, body).await
    }

    async fn line_of(&self, id: &Value) -> (Value, Value) {
        let path = format!("/repos/laptop/web/pulls/comments/{id}");
        // GitHub's description has no outdated comments: their line is null.
        let answer = self.world.api(Method::GET, &path, &self.app).send().await.unwrap();
        let told: Value = answer.json().await.unwrap();
        (told["line"].clone(), told["original_line"].clone())
    }
}

async fn person(world: &World, login: &str) -> String {
    world.control("person", json!({ "login": login })).await["token"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_decide_what_may_be_merged() {
    let talking = Talking::start("reviews").await;
    let (world, app, writer) = (&talking.world, &talking.app, &talking.writer);
    world.control("repository", json!({ "repository": "laptop/web", "unknown_looks": 0 })).await;
    let reader = person(world, "grace").await;
    let rule =
        json!([{ "type": "pull_request", "parameters": { "required_approving_review_count": 1 } }]);
    let set = json!({
        "name": "r", "target": "branch", "enforcement": "active", "rules": rule,
        "conditions": { "ref_name": { "include": ["~DEFAULT_BRANCH"], "exclude": [] } },
    });
    world.as_ada(Method::POST, "/repos/laptop/web/rulesets", set).await;
    let reviews = format!("{PULL}/reviews");
    let review = async |token: &str, body: Value| talking.post(&reviews, token, body).await;
    let merge = async || {
        talking
            .call(Method::PUT, &format!("{PULL}/merge"), app, json!({ "sha": talking.sha }))
            .await
    };
    let state = async || world.get(PULL, app).await.1["mergeable_state"].clone();

    let (status, told) = review(app, json!({ "event": "APPROVE" })).await;
    assert_eq!((status, &told["errors"]), (422, &json!(["Can not approve your own pull request"])));
    assert_eq!(review(writer, json!({ "event": "COMMENT" })).await.0, 422);
    assert_eq!(review(writer, json!({})).await.0, 422);
    let asked = json!({ "reviewers": ["eve"] });
    let reviewers = format!("{PULL}/requested_reviewers");
    assert_eq!(talking.post(&reviewers, app, asked.clone()).await.0, 201);
    let (_, told) = world.get(&reviewers, app).await;
    assert_eq!(told["users"][0]["login"], "eve");
    assert_eq!(talking.post(&reviewers, app, json!({ "reviewers": ["mallory"] })).await.0, 422);

    // Who only reads approves without weight.
    assert_eq!(review(&reader, json!({ "event": "APPROVE" })).await.0, 200);
    let needed = "At least 1 approving review is required by reviewers with write access.";
    assert_eq!(
        (merge().await.1["message"].clone(), state().await),
        (json!(needed), json!("blocked"))
    );
    let (_, made) = review(writer, json!({ "event": "APPROVE", "body": "Good" })).await;
    assert_eq!((&made["state"], &made["commit_id"]), (&json!("APPROVED"), &json!(talking.sha)));
    assert_eq!(world.get(&reviewers, app).await.1["users"], json!([]));
    assert_eq!(state().await, "clean");
    let path = format!("{reviews}/{}/dismissals", made["id"]);
    let (status, told) =
        talking.call(Method::PUT, &path, writer, json!({ "message": "Not yet" })).await;
    assert_eq!((status, &told["state"]), (200, &json!("DISMISSED")));
    assert_eq!(state().await, "blocked");
    review(writer, json!({ "event": "APPROVE" })).await;
    review(writer, json!({ "event": "REQUEST_CHANGES", "body": "Other" })).await;
    assert_eq!(state().await, "blocked");
    review(writer, json!({ "event": "APPROVE" })).await;
    let (_, all) = world.get(&reviews, app).await;
    let words: Vec<&Value> = all.as_array().unwrap().iter().map(|one| &one["state"]).collect();
    assert_eq!(words, ["APPROVED", "DISMISSED", "APPROVED", "CHANGES_REQUESTED", "APPROVED"]);
    assert_eq!(merge().await.0, 200);
    talking.world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn comments_follow_their_lines() {
    let talking = Talking::start("comments").await;
    let (world, app, writer) = (&talking.world, &talking.app, &talking.writer);
    let comments = format!("{PULL}/comments");
    let at = |line: u64| json!({ "body": format!("At {line}"), "commit_id": talking.sha, "path": "a.txt", "line": line, "side": "RIGHT" });
    let (status, top) = talking.post(&comments, writer, at(2)).await;
    assert_eq!((status, &top["diff_hunk"]), (201, &json!("@@ -0,0 +1,4 @@\n+one\n+two")));
    let (_, last) = talking.post(&comments, writer, at(4)).await;
    let (status, told) = talking.post(&comments, writer, at(9)).await;
    let outside = "pull_request_review_thread.line must be part of the diff";
    assert_eq!((status, &told["errors"][0]["message"]), (422, &json!(outside)));

    // Only the top comment is replied to.
    let replies = |id: &Value| format!("{comments}/{id}/replies");
    let (status, reply) = talking.post(&replies(&top["id"]), app, json!({ "body": "Done" })).await;
    assert_eq!(
        (status, &reply["in_reply_to_id"], &reply["user"]["login"]),
        (201, &top["id"], &json!("bobbin-laptop[bot]"))
    );
    assert_eq!(talking.post(&replies(&reply["id"]), app, json!({ "body": "Again" })).await.0, 404);
    let (_, all) = world.get(&comments, app).await;
    assert_eq!(all.as_array().unwrap().len(), 3);
    let review = format!("{PULL}/reviews/{}/comments", reply["pull_request_review_id"]);
    assert_eq!(world.get(&review, app).await.1[0]["id"], reply["id"]);

    // A push above moves the line; one that changes it leaves it outdated.
    world.commit("clone", "a.txt", "zero\none\ntwo\nthree\nfour\n").await;
    world.push("clone", "laptop/web", app, "bobbin/a").await.well();
    assert_eq!(talking.line_of(&top["id"]).await, (json!(3), json!(2)));
    world.commit("clone", "a.txt", "zero\none\n2\nthree\nfour\n").await;
    world.push("clone", "laptop/web", app, "bobbin/a").await.well();
    assert_eq!(talking.line_of(&top["id"]).await, (Value::Null, json!(2)));
    assert_eq!(talking.line_of(&last["id"]).await, (json!(5), json!(4)));

    // Changed by who wrote it, removed with its thread.
    let path = format!("/repos/laptop/web/pulls/comments/{}", last["id"]);
    let reader = person(world, "grace").await;
    let text = || json!({ "body": "Better" });
    assert_eq!(talking.call(Method::PATCH, &path, &reader, text()).await.0, 403);
    let (status, told) = talking.call(Method::PATCH, &path, writer, text()).await;
    assert_eq!((status, &told["body"]), (200, &json!("Better")));
    let removed = world.send(world.api(Method::DELETE, &path, writer)).await.0;
    assert_eq!(
        (removed, world.get(&path, app).await.0),
        (StatusCode::NO_CONTENT, StatusCode::NOT_FOUND)
    );
    let whole = json!({ "body": "All of it", "commit_id": talking.sha, "path": "a.txt", "subject_type": "file" });
    assert_eq!(talking.post(&comments, writer, whole).await.0, 201);
    talking.world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_wrong_line_refuses_the_whole_review() {
    let talking = Talking::start("whole-review").await;
    let (world, app) = (&talking.world, &talking.app);
    let reviews = format!("{PULL}/reviews");
    let at = |line: u64, start: u64| json!({ "path": "a.txt", "line": line, "start_line": start, "side": "RIGHT", "start_side": "RIGHT", "body": "Why?" });
    let review = |sha: &str, comments: Value| json!({ "commit_id": sha, "event": "COMMENT", "body": "Nearly", "comments": comments });
    let outside = "pull_request_review_thread.line must be part of the diff";
    for (wrong, said) in [
        (at(9, 8), outside),
        (json!({ "path": "a.txt", "line": 1, "side": "LEFT", "body": "Before?" }), outside),
        (
            json!({ "path": "b.txt", "line": 1, "body": "Where?" }),
            "pull_request_review_thread.path must be part of the diff",
        ),
    ] {
        let body = review(&talking.sha, json!([at(3, 2), wrong]));
        let (status, told) = talking.post(&reviews, app, body).await;
        assert_eq!((status, &told["errors"][0]["message"]), (422, &json!(said)));
    }
    let (_, main) = world.get("/repos/laptop/web/branches/main", app).await;
    let strange = main["commit"]["sha"].as_str().unwrap();
    for sha in [strange, &"0".repeat(40)] {
        let (status, told) = talking.post(&reviews, app, review(sha, json!([]))).await;
        let said = "commit_id is not part of the pull request";
        assert_eq!((status, &told["errors"][0]["message"]), (422, &json!(said)));
    }
    let (_, all) = world.get(&reviews, app).await;
    assert_eq!(all, json!([]), "nothing is kept of a refused one");

    // The reviewed commit stays one of the pull request's after another push; the line may be gone by then.
    world.commit("clone", "a.txt", "one\n2\n3\nfour\n").await;
    world.push("clone", "laptop/web", app, "bobbin/a").await.well();
    let (status, made) = talking.post(&reviews, app, review(&talking.sha, json!([at(3, 2)]))).await;
    assert_eq!((status, &made["commit_id"]), (200, &json!(talking.sha)));
    let path = format!("{reviews}/{}/comments", made["id"]);
    let (_, comments) = world.get(&path, app).await;
    assert_eq!(comments[0]["original_line"], 3);
    talking.world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn remarks_and_reactions_are_kept() {
    let talking = Talking::start("remarks").await;
    let (world, app, writer) = (&talking.world, &talking.app, &talking.writer);
    let remarks = "/repos/laptop/web/issues/1/comments";
    let (status, one) = talking.post(remarks, app, json!({ "body": "Hello" })).await;
    assert_eq!((status, &one["performed_via_github_app"]["slug"]), (201, &json!("bobbin-laptop")));
    let (_, other) = talking.post(remarks, writer, json!({ "body": "Hi" })).await;
    assert_eq!(
        (&other["performed_via_github_app"], &other["author_association"]),
        (&Value::Null, &json!("COLLABORATOR"))
    );
    assert_eq!(talking.post(remarks, writer, json!({ "body": " " })).await.0, 422);
    let path = |one: &Value| format!("/repos/laptop/web/issues/comments/{}", one["id"]);
    let (_, told) =
        talking.call(Method::PATCH, &path(&other), writer, json!({ "body": "Hi there" })).await;
    assert_eq!(told["body"], "Hi there");

    // Seen once, and once more says the same.
    let eyes = || json!({ "content": "eyes" });
    let seen = format!("{}/reactions", path(&other));
    let (first, made) = talking.post(&seen, app, eyes()).await;
    let (again, same) = talking.post(&seen, app, eyes()).await;
    assert_eq!((first, again, &made["id"]), (201, 200, &same["id"]));
    assert_eq!(talking.post(&seen, app, json!({ "content": "+1" })).await.0, 201);
    assert_eq!(talking.post(&seen, app, json!({ "content": "tea" })).await.0, 422);
    assert_eq!(talking.post("/repos/laptop/web/issues/1/reactions", app, eyes()).await.0, 201);
    let (_, told) = world.get(&path(&other), app).await;
    assert_eq!(
        (&told["reactions"]["eyes"], &told["reactions"]["total_count"]),
        (&json!(1), &json!(2))
    );
    let gone = world.api(Method::DELETE, &format!("{seen}/{}", made["id"]), app);
    assert_eq!(world.send(gone).await.0, 204);
    let removed = world.api(Method::DELETE, &path(&other), writer);
    assert_eq!(world.send(removed).await.0, 204);
    let (_, all) = world.get(remarks, app).await;
    assert_eq!(all.as_array().unwrap().len(), 1);
    assert_eq!(world.get(PULL, app).await.1["comments"], 1);

    // Not for who must not know of the repository, nor without a right.
    let stranger = person(world, "mallory").await;
    assert_eq!(talking.post(remarks, &stranger, json!({ "body": "Let me in" })).await.0, 404);
    let reading =
        world.mint(json!({ "permissions": { "issues": "read", "pull_requests": "read" } })).await;
    assert_eq!(talking.post(remarks, &reading, json!({ "body": "No" })).await.0, 403);
    talking.world.end().await;
}
