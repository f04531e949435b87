//! What a restart keeps, and what a caller has to send.

use reqwest::Method;
use serde_json::json;

use crate::world::{World, location};

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_everything_but_sign_ins() {
    let world = World::start("restart").await;
    let id = world.repository("web", json!({})).await;
    let ada = world.id.user_token.clone();
    world.clone_of("laptop/web", &ada, "clone").await;
    let sha = world.commit("clone", "a.txt", "a\n").await;
    world.push("clone", "laptop/web", &ada, "a").await.well();
    let new = json!({ "title": "A", "head": "a", "base": "main" });
    world.as_ada(Method::POST, "/repos/laptop/web/pulls", new).await;
    let said = json!({ "repository": "laptop/web", "sha": sha, "name": "test", "conclusion": "failure", "log": "why" });
    let run = world.control("checks", said).await;
    let remarks = "/repos/laptop/web/issues/1/comments";
    world.as_ada(Method::POST, remarks, json!({ "body": "Hello" })).await;
    let token = world.mint(json!({ "repository_ids": [id] })).await;
    let cookie = world.signed_in("ada").await;
    let before = world.id.clone();
    // A crash in the middle of a push leaves this.
    let spool = world.folder.join("state/spool/half");
    std::fs::create_dir_all(spool.join("objects")).unwrap();

    let world = world.restarted().await;
    let identity = |one: &bobbin_local_forge::ForgeIdentity| serde_json::to_value(one).unwrap();
    assert_eq!(identity(&world.id), identity(&before));
    assert!(!spool.exists());
    let (_, pull) = world.get("/repos/laptop/web/pulls/1", &token).await;
    assert_eq!(pull["head"]["sha"], sha);
    let job = format!("/repos/laptop/web/actions/jobs/{}", run["check_run"]);
    assert_eq!(world.get(&job, &token).await.1["conclusion"], "failure");
    let link = world.api(Method::GET, &format!("{job}/logs"), &token).send().await.unwrap();
    let log = world.http.get(location(&link)).send().await.unwrap().text().await.unwrap();
    assert!(log.ends_with("Z why\n"), "{log}");
    assert_eq!(world.get(remarks, &token).await.1[0]["body"], "Hello");
    assert_eq!(world.get("/app", &world.app_token()).await.0, 200);
    let (_, page) = world.page("/", &cookie).await;
    assert!(page.contains("Sign in"), "{page}");
    let state = std::fs::read_to_string(world.folder.join("state/state.json")).unwrap();
    assert!(!state.contains(&token), "tokens are kept as hashes");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_is_checked() {
    let world = World::start("requests").await;
    let root = world.forge.api();
    let plain = reqwest::Client::builder().build().unwrap();
    let nameless = plain.get(format!("{root}/rate_limit")).send().await.unwrap();
    assert_eq!(nameless.status(), 403);
    assert!(nameless.text().await.unwrap().contains("User-Agent"));
    let old =
        world.api(Method::GET, "/rate_limit", "").header("x-github-api-version", "2021-01-01");
    assert_eq!(world.send(old).await.0, 400);
    for at in [format!("{root}/rate_limit"), format!("{}/", world.forge.git())] {
        let foreign = world.http.get(at).header("host", "evil.example").send().await.unwrap();
        assert_eq!(foreign.status(), 403);
    }
    assert_eq!(world.get("/no/such/call", &world.id.user_token).await.0, 404);
    assert_eq!(world.get("/_control/faults", "wrong").await.0, 401);
    let broken = world.api(Method::POST, "/user/repos", &world.id.user_token).body("{");
    let (status, told) = world.send(broken).await;
    assert_eq!((status.as_u16(), &told["message"]), (400, &json!("Problems parsing JSON")));
    // Its connection ends with it, so nobody else's request goes over that one.
    let large = plain.post(format!("{root}/user/repos")).bearer_auth(&world.id.user_token);
    let large = large.header("user-agent", "large").body(vec![b' '; 5 * 1024 * 1024]);
    assert_eq!(large.send().await.unwrap().status(), 413);

    // Nobody has few requests, and they end.
    let mut last = world.api(Method::GET, "/users/ada", "").send().await.unwrap();
    for _ in 0..60 {
        last = world.api(Method::GET, "/users/ada", "").send().await.unwrap();
    }
    assert_eq!(last.status(), 403);
    assert_eq!(last.headers()["x-ratelimit-remaining"], "0");
    assert!(last.text().await.unwrap().contains("API rate limit exceeded"));
    world.control("clock", json!({ "advance_ms": 3_600_001 })).await;
    assert_eq!(world.get("/users/ada", "").await.0, 200);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_takes_rights_and_drafts_away() {
    let world = World::start("rights").await;
    world.repository("web", json!({})).await;
    let token = world.mint(json!({})).await;
    let less = json!({ "id": world.id.installation, "permissions": { "contents": "read" } });
    world.control("installation", less).await;
    // Tokens that are there have less, too.
    let create = |draft: bool| {
        let body = json!({ "title": "A", "head": "a", "base": "main", "draft": draft });
        world.api(Method::POST, "/repos/laptop/web/pulls", &token).json(&body)
    };
    assert_eq!(world.send(create(true)).await.0, 403);
    let rights = json!({ "contents": "write", "pull_requests": "write" });
    let more = json!({ "id": world.id.installation, "permissions": rights });
    world.control("installation", more).await;
    world.told("installation", "new_permissions_accepted", 2).await;
    let ada = world.id.user_token.clone();
    world.clone_of("laptop/web", &ada, "clone").await;
    world.commit("clone", "a.txt", "a\n").await;
    world.push("clone", "laptop/web", &ada, "a").await.well();
    world.control("repository", json!({ "repository": "laptop/web", "drafts": false })).await;
    let (status, told) = world.send(create(true)).await;
    let sentence = json!("Draft pull requests are not supported in this repository.");
    assert_eq!((status.as_u16(), &told["message"]), (422, &sentence));
    assert_eq!(world.send(create(false)).await.0, 201);
    world.end().await;
}
