//! Bobbin's own client polls this forge's pull requests: what it reads is what was said here.

use bobbin_core::records::pull_request::{PolledPullRequest, SeenComment};
use bobbin_forge::github::{Addresses, GitHub, GitHubSettings};
use bobbin_forge::{Forge as _, ForgeError, RepositoryAt, RepositoryId, RepositoryName};
use reqwest::Method;
use serde_json::{Value, json};

use crate::world::World;

/// A pull request from `bobbin/a`, and Bobbin's client.
struct Polling {
    world: World,
    client: GitHub,
    at: RepositoryAt,
    app: String,
    sha: String,
}

impl Polling {
    async fn start(name: &str, draft: bool) -> Self {
        let world = World::start(name).await;
        let id = world.repository("web", json!({})).await;
        let app = world.mint(json!({})).await;
        world.clone_of("laptop/web", &app, "clone").await;
        let sha = world.commit("clone", "a.txt", "one\ntwo\n").await;
        world.push("clone", "laptop/web", &app, "bobbin/a").await.well();
        let new = json!({ "title": "A", "head": "bobbin/a", "base": "main", "draft": draft });
        let made = world.api(Method::POST, "/repos/laptop/web/pulls", &app).json(&new);
        assert_eq!(world.send(made).await.0, 201);
        let settled = json!({ "repository": "laptop/web", "unknown_looks": 0 });
        world.control("repository", settled).await;
        let client = GitHub::new(GitHubSettings {
            addresses: Addresses::of(&world.forge.api()).with_pages(&world.forge.git()),
            issuer: world.id.client_id.clone(),
            private_key: world.id.private_key.clone().into(),
            slug: world.id.app_slug.clone(),
            client_id: world.id.client_id.clone(),
            client_secret: world.id.client_secret.clone().into(),
        })
        .unwrap();
        let at = RepositoryAt {
            installation: world.id.installation,
            repository: RepositoryId(id),
            name: RepositoryName::new("laptop", "web").unwrap(),
        };
        Self { world, client, at, app, sha }
    }

    async fn polled(&self) -> Result<PolledPullRequest, ForgeError> {
        self.client.poll_pull_request(&self.at, 1).await
    }

    /// What is polled, in words without ids and times.
    async fn shown(&self) -> String {
        let seen = self.polled().await.unwrap();
        assert_eq!((seen.number, &*seen.base, seen.is_from_fork), (1, "main", false));
        words(&seen).replace(&self.sha, "HEAD")
    }

    async fn ada(&self, method: Method, path: &str, body: Value) -> Value {
        self.world.as_ada(method, &format!("/repos/laptop/web/{path}"), body).await
    }
}

fn words(seen: &PolledPullRequest) -> String {
    let PolledPullRequest { state, merge, decision, branch, head, .. } = seen;
    let draft = if seen.is_draft { " draft" } else { "" };
    let mut lines = vec![
        format!("{state:?}{draft} {branch} at {head}: {merge:?}, review {decision:?}"),
        format!("{} checks", seen.totals.checks),
    ];
    lines.extend(
        seen.checks
            .iter()
            .map(|check| format!("  {} [{}] {:?}", check.name, check.of, check.state)),
    );
    let said = |one: &SeenComment| {
        let bot = if one.by.is_bot { " (bot)" } else { "" };
        assert!(one.at_ms > 0 && one.page.contains("laptop/web"), "{one:?}");
        format!("{}{bot}: {}", one.by.login, one.body)
    };
    lines.extend(seen.reviews.iter().map(|one| {
        format!("review of {} by {}: {:?} {:?}", one.commit, one.by.login, one.state, one.body)
    }));
    for thread in &seen.threads {
        let line = thread.line.map_or_else(|| "gone".to_owned(), |line| line.to_string());
        let is = |is: bool, word: &'static str| if is { word } else { "" };
        let marks = [is(thread.is_resolved, " resolved"), is(thread.is_outdated, " outdated")];
        lines.push(format!("thread on {}:{line}{}", thread.path, marks.concat()));
        lines.extend(thread.comments.iter().map(|one| format!("  {}", said(one))));
        lines.push(format!("  {:?}", thread.hunk));
    }
    lines.extend(seen.comments.iter().map(said));
    lines.join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn bobbins_poll_reads_all_that_was_said() {
    let polling = Polling::start("client", true).await;
    let (world, sha) = (&polling.world, polling.sha.clone());
    assert_eq!(
        polling.shown().await,
        "Open draft bobbin/a at HEAD: Clean, review NotNeeded\n0 checks"
    );
    for (name, said) in [
        ("build", json!({ "conclusion": "success" })),
        ("test", json!({ "conclusion": "failure", "title": "No" })),
        ("deploy", json!({ "conclusion": "cancelled" })),
        ("scan", json!({ "status": "in_progress", "app": "scanner" })),
    ] {
        let mut check = json!({ "repository": "laptop/web", "sha": sha, "name": name });
        for (field, value) in said.as_object().unwrap() {
            check[field] = value.clone();
        }
        world.control("checks", check).await;
    }
    for (state, context) in [("pending", "lint"), ("error", "docs"), ("success", "size")] {
        let status = json!({ "state": state, "context": context });
        polling.ada(Method::POST, &format!("statuses/{sha}"), status).await;
    }
    let place = json!({ "body": "Why two?", "path": "a.txt", "line": 2, "side": "RIGHT" });
    let review = json!({ "event": "REQUEST_CHANGES", "body": "Not so", "comments": [place] });
    polling.ada(Method::POST, "pulls/1/reviews", review).await;
    // A later comment does not take back what was wanted.
    let comment = json!({ "event": "COMMENT", "body": "By the way" });
    polling.ada(Method::POST, "pulls/1/reviews", comment).await;
    polling.ada(Method::POST, "issues/1/comments", json!({ "body": "Hello" })).await;
    let own = world.api(Method::POST, "/repos/laptop/web/issues/1/comments", &polling.app);
    assert_eq!(world.send(own.json(&json!({ "body": "I work on it" }))).await.0, 201);
    assert_eq!(
        polling.shown().await,
        "Open draft bobbin/a at HEAD: Clean, review NotNeeded\n\
         7 checks\n  build [CI (push)] Passed\n  test [CI (push)] Failed\n  deploy [CI (push)] Held\n  \
         scan [scanner] Running\n  lint [] Running\n  docs [] Failed\n  size [] Passed\n\
         review of HEAD by ada: ChangesRequested \"Not so\"\n\
         thread on a.txt:2\n  ada: Why two?\n  \"@@ -0,0 +1,2 @@\\n+one\\n+two\"\n\
         ada: Hello\nbobbin-laptop (bot): I work on it"
    );

    // A push makes the line another; a person settles the thread and approves.
    let comment = polling.polled().await.unwrap().threads[0].comments[0].id;
    let settled = json!({ "login": "ada", "comment": comment, "resolved": true });
    world.control("thread", settled).await;
    world.commit("clone", "a.txt", "one\nthree\n").await;
    world.push("clone", "laptop/web", &polling.app, "bobbin/a").await.well();
    polling.ada(Method::POST, "pulls/1/reviews", json!({ "event": "APPROVE", "body": "" })).await;
    let seen = polling.polled().await.unwrap();
    assert_eq!((seen.totals.checks, seen.threads[0].is_outdated), (0, true), "{seen:?}");
    assert_eq!(
        words(&seen).replace(&seen.head, "HEAD").replace(&sha, "BEFORE"),
        "Open draft bobbin/a at HEAD: Clean, review NotNeeded\n0 checks\n\
         review of HEAD by ada: Approved \"\"\n\
         thread on a.txt:gone resolved outdated\n  ada: Why two?\n  \"@@ -0,0 +1,2 @@\\n+one\\n+two\"\n\
         ada: Hello\nbobbin-laptop (bot): I work on it"
    );
    polling.world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bobbins_poll_reads_the_newest_of_too_much() {
    let polling = Polling::start("client-much", false).await;
    let world = &polling.world;
    let person = async |login: &str| {
        let token = world.control("person", json!({ "login": login })).await["token"].clone();
        let permission = json!({ "permission": if login == "zoe" { "push" } else { "pull" } });
        let path = format!("/repos/laptop/web/collaborators/{login}");
        let added = world.api(Method::PUT, &path, &world.id.user_token).json(&permission);
        assert!(world.send(added).await.0.is_success(), "{login}");
        token.as_str().unwrap().to_owned()
    };
    let said = async |token: &str, path: &str, body: Value| {
        let path = format!("/repos/laptop/web/{path}");
        let (status, answer) = world.send(world.api(Method::POST, &path, token).json(&body)).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    };
    let place = |nth: u32| json!({ "body": format!("t{nth}"), "path": "a.txt", "line": 1 + nth % 2, "side": "RIGHT" });
    let comments: Vec<Value> = (1..=51).map(place).collect();
    let review = json!({ "event": "COMMENT", "body": "Much", "comments": comments });
    polling.ada(Method::POST, "pulls/1/reviews", review).await;
    // Times have seconds.
    world.control("clock", json!({ "advance_ms": 2_000 })).await;
    for nth in 1..=21 {
        let token = person(&format!("p{nth}")).await;
        said(&token, "pulls/1/reviews", json!({ "event": "APPROVE" })).await;
    }
    let top = polling.polled().await.unwrap().threads[49].comments[0].id;
    let replies = format!("pulls/1/comments/{top}/replies");
    let (eve, zoe) = (person("eve").await, person("zoe").await);
    for nth in 1..=20 {
        said(&eve, &replies, json!({ "body": format!("r{nth}") })).await;
    }
    said(&zoe, &replies, json!({ "body": "r21" })).await;
    for nth in 1..=31 {
        said(&eve, "issues/1/comments", json!({ "body": format!("c{nth}") })).await;
    }

    let seen = polling.polled().await.unwrap();
    let bodies =
        |all: &[SeenComment]| all.iter().map(|one| one.body.clone()).collect::<Vec<_>>().join(" ");
    let first = &seen.threads[0];
    assert_eq!((seen.threads.len(), seen.totals.threads, &*first.comments[0].body), (50, 51, "t2"));
    assert!(!first.is_cut());
    let long = &seen.threads[49];
    assert_eq!(
        bodies(&long.comments),
        "t51 r2 r3 r4 r5 r6 r7 r8 r9 r10 r11 r12 r13 r14 r15 r16 r17 r18 r19 r20 r21"
    );
    assert_eq!((long.comments_total, long.is_cut()), (22, true));
    // Of ada, eve and zoe there are comments alone.
    let reviewers: Vec<&str> = seen.reviews.iter().map(|one| &*one.by.login).collect();
    assert_eq!((seen.totals.reviews, reviewers.len()), (21, 20));
    assert_eq!((reviewers[0], reviewers[19]), ("p2", "p21"));
    assert_eq!((seen.totals.comments, seen.comments.len()), (31, 30));
    assert_eq!((&*seen.comments[0].body, &*seen.comments[29].body), ("c2", "c31"));
    let authors = seen.authors();
    assert_eq!((authors.len(), &*authors[20], &*authors[22]), (23, "p3", "ada"));
    assert_eq!(authors[..3], ["zoe", "eve", "p21"]);
    let writers = polling.client.writers(&polling.at, &authors[..20]).await.unwrap();
    assert_eq!(writers, ["zoe"]);
    polling.world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bobbins_poll_reads_how_it_could_be_merged() {
    let polling = Polling::start("client-merge", false).await;
    let world = &polling.world;
    let first = async || polling.shown().await.lines().next().unwrap().to_owned();
    assert_eq!(first().await, "Open bobbin/a at HEAD: Clean, review NotNeeded");
    let unknown = json!({ "repository": "laptop/web", "unknown_looks": 1 });
    world.control("repository", unknown).await;
    world.commit("clone", "b.txt", "b\n").await;
    world.push("clone", "laptop/web", &polling.app, "bobbin/a").await.well();
    let merge = async || polling.polled().await.unwrap().merge;
    assert_eq!(format!("{:?} {:?}", merge().await, merge().await), "Unknown Clean");

    let rule =
        json!([{ "type": "pull_request", "parameters": { "required_approving_review_count": 1 } }]);
    let set = json!({
        "name": "r", "target": "branch", "enforcement": "active", "rules": rule,
        "conditions": { "ref_name": { "include": ["~DEFAULT_BRANCH"], "exclude": [] } },
    });
    let made = polling.ada(Method::POST, "rulesets", set).await;
    let seen = polling.polled().await.unwrap();
    assert_eq!(format!("{:?} {:?}", seen.merge, seen.decision), "Blocked Required");
    polling.ada(Method::POST, "pulls/1/reviews", json!({ "event": "APPROVE" })).await;
    let seen = polling.polled().await.unwrap();
    assert_eq!(format!("{:?} {:?}", seen.merge, seen.decision), "Clean Approved");

    // Somebody changes the same file of the base.
    let path = format!("rulesets/{}", made["id"]);
    let gone =
        world.api(Method::DELETE, &format!("/repos/laptop/web/{path}"), &world.id.user_token);
    assert_eq!(world.send(gone).await.0, 204);
    world.clone_of("laptop/web", &world.id.user_token, "beside").await;
    world.commit("beside", "a.txt", "other\n").await;
    world.push("beside", "laptop/web", &world.id.user_token, "main").await.well();
    let seen = async || {
        let seen = polling.polled().await.unwrap();
        (format!("{:?}", seen.state), format!("{:?}", seen.merge))
    };
    seen().await;
    assert_eq!(seen().await.1, "Conflicts");

    polling.ada(Method::PATCH, "pulls/1", json!({ "state": "closed" })).await;
    assert_eq!(seen().await.0, "Closed");
    polling.ada(Method::PATCH, "pulls/1", json!({ "state": "open" })).await;
    world.git("clone", &["fetch", "-q", "origin", "main"]).await.well();
    world.git("clone", &["merge", "-q", "-X", "ours", "-m", "Join", "FETCH_HEAD"]).await.well();
    world.push("clone", "laptop/web", &polling.app, "bobbin/a").await.well();
    seen().await;
    assert_eq!(seen().await, ("Open".to_owned(), "Clean".to_owned()));
    polling.ada(Method::PUT, "pulls/1/merge", json!({})).await;
    assert_eq!(seen().await.0, "Merged");
    polling.world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bobbins_poll_concludes_nothing_from_refusals() {
    let polling = Polling::start("client-refused", false).await;
    let missing = polling.client.poll_pull_request(&polling.at, 9).await.unwrap_err();
    assert_eq!(missing.seen, "GitHub does not know it.");
    let other = RepositoryAt { repository: RepositoryId(1), ..polling.at.clone() };
    assert!(polling.client.poll_pull_request(&other, 1).await.is_err(), "another took the name");
    let fewer = json!({ "id": polling.world.id.installation,
        "permissions": { "pull_requests": "write", "contents": "write", "metadata": "read" } });
    polling.world.control("installation", fewer).await;
    let refused = polling.polled().await.unwrap_err();
    assert_eq!(
        refused.seen,
        "laptop has not granted what Bobbin needs for this: actions: read, checks: read, issues: read, statuses: read."
    );
    let page = format!("/settings/installations/{}", polling.world.id.installation);
    assert!(refused.link.unwrap().ends_with(&page));
    polling.world.end().await;
}
