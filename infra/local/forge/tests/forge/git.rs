//! Real git clones, fetches and pushes as its token may, and is refused in GitHub's words.

use reqwest::Method;
use serde_json::json;

use crate::world::World;

/// What git says of a token that is nobody's.
const NO_TOKEN: &str = "remote: Invalid username or token. Password authentication is not supported for Git operations.\nfatal: Authentication failed for";

#[tokio::test(flavor = "multi_thread")]
async fn a_token_opens_what_it_was_made_for() {
    let world = World::start("git").await;
    let id = world.repository("web", json!({})).await;
    world.repository("other", json!({})).await;
    let ids = json!([id]);
    let read =
        world.mint(json!({ "repository_ids": ids, "permissions": { "contents": "read" } })).await;
    let write =
        world.mint(json!({ "repository_ids": ids, "permissions": { "contents": "write" } })).await;
    let seeing = world.mint(json!({ "permissions": { "metadata": "read" } })).await;

    world.clone_of("laptop/web", &read, "clone").await;
    let sha = world.commit("clone", "a.txt", "a\n").await;
    let refused = world.push("clone", "laptop/web", &read, "bobbin/a").await;
    refused.refused(&[
        "remote: Write access to repository not granted.",
        "The requested URL returned error: 403",
    ]);
    world.push("clone", "laptop/web", &write, "bobbin/a").await.well();
    let listed = ["ls-remote", &world.address("laptop/web", &read), "refs/heads/bobbin/a"];
    assert!(world.git("", &listed).await.well().starts_with(&sha));

    // Another repository, another right, nobody.
    let clone = async |repository: &str, token: &str| {
        world.git("", &["clone", "-q", &world.address(repository, token), "refused"]).await
    };
    let unknown = ["remote: Repository not found.", "not found"];
    clone("laptop/other", &read).await.refused(&unknown);
    clone("laptop/web", &seeing).await.refused(&unknown);
    clone("laptop/none", &read).await.refused(&unknown);
    clone("laptop/web", "ghs_nobody").await.refused(&[NO_TOKEN]);
    clone("laptop/web", "").await.refused(&["could not read Username"]);

    // Its end, and its installation's.
    let request = world.api(Method::DELETE, "/installation/token", &read);
    assert_eq!(world.send(request).await.0, 204);
    clone("laptop/web", &read).await.refused(&[NO_TOKEN]);
    let suspended = format!("/app/installations/{}/suspended", world.id.installation);
    let request = world.api(Method::PUT, &suspended, &world.app_token());
    assert_eq!(world.send(request).await.0, 204);
    let told = "This installation has been suspended";
    world.push("clone", "laptop/web", &write, "bobbin/b").await.refused(&[told]);
    let request = world.api(Method::DELETE, &suspended, &world.app_token());
    assert_eq!(world.send(request).await.0, 204);
    world.control("addresses", json!({ "organization": "laptop", "refused": true })).await;
    let told = "remote: The 'laptop' organization has an IP allow list enabled, and 127.0.0.1 is not permitted to access this repository.";
    world.push("clone", "laptop/web", &write, "bobbin/b").await.refused(&[told]);
    world.control("addresses", json!({ "organization": "laptop", "refused": false })).await;
    world.push("clone", "laptop/web", &write, "bobbin/b").await.well();
    world.control("clock", json!({ "advance_ms": 61 * 60_000 })).await;
    world.push("clone", "laptop/web", &write, "bobbin/c").await.refused(&[NO_TOKEN]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn git_serves_what_github_serves() {
    let world = World::start("git-serves").await;
    world.repository("web", json!({})).await;
    world.repository("empty", json!({ "auto_init": false })).await;
    let ada = world.id.user_token.clone();
    world.clone_of("laptop/web", &ada, "clone").await;
    let first = world.git("clone", &["rev-parse", "HEAD"]).await.well();
    let mut last = first.clone();
    for number in 0..5 {
        last = world.commit("clone", "a.txt", format!("{number}\n")).await;
    }
    world.push("clone", "laptop/web", &ada, "main").await.well();

    // By depth, without files, by a commit's own id, and what the last fetch brought.
    let address = world.address("laptop/web", &ada);
    world.git("", &["clone", "-q", "--depth", "2", &address, "shallow"]).await.well();
    assert_eq!(world.git("shallow", &["rev-list", "--count", "HEAD"]).await.well(), "2");
    world.git("", &["clone", "-q", "--bare", "--filter=blob:none", &address, "bare"]).await.well();
    world.git("", &["init", "-q", "one"]).await.well();
    world.git("one", &["fetch", "-q", &address, &first]).await.well();
    assert_eq!(world.git("one", &["rev-parse", "FETCH_HEAD"]).await.well(), first);
    world.git("shallow", &["fetch", "-q", "--unshallow"]).await.well();
    assert_eq!(world.git("shallow", &["rev-parse", "origin/main"]).await.well(), last);

    // An empty repository tells its first branch; the first push decides it.
    let empty = world.address("laptop/empty", &ada);
    let listed = ["-c", "protocol.version=2", "clone", "-q", &empty, "new"];
    let said = world.git("", &listed).await;
    assert!(said.err.contains("You appear to have cloned an empty repository."), "{}", said.err);
    assert_eq!(world.git("new", &["symbolic-ref", "HEAD"]).await.well(), "refs/heads/main");
    world.commit("new", "a.txt", "a\n").await;
    world.push("new", "laptop/empty", &ada, "trunk").await.well();
    let (_, told) = world.get("/repos/laptop/empty", &ada).await;
    assert_eq!(told["default_branch"], "trunk");

    // A push goes from where the branch is, or not at all.
    world.git("clone", &["checkout", "-q", &first]).await.well();
    let behind = world.push("clone", "laptop/web", &ada, "main").await;
    behind.refused(&["[rejected]", "non-fast-forward"]);
    let lease = format!("--force-with-lease=main:{first}");
    let stale = world.git("clone", &["push", &lease, &address, "HEAD:main"]).await;
    stale.refused(&["stale info"]);
    let hidden = world.git("clone", &["push", &address, "HEAD:refs/pull/1/head"]).await;
    hidden.refused(&["deny updating a hidden ref"]);
    world.git("clone", &["push", "-q", &address, "HEAD:refs/heads/x"]).await.well();
    world.git("clone", &["push", "-q", &address, ":refs/heads/x"]).await.well();
    let whole = world.git("clone", &["push", &address, ":refs/heads/main"]).await;
    whole.refused(&["refusing to delete the current branch: refs/heads/main"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn moved_and_archived_repositories_are_told() {
    let world = World::start("git-moved").await;
    world.repository("old", json!({})).await;
    let ada = world.id.user_token.clone();
    world.clone_of("laptop/old", &ada, "clone").await;
    world.commit("clone", "a.txt", "a\n").await;
    world.as_ada(Method::PATCH, "/repos/laptop/old", json!({ "name": "new" })).await;
    // Git follows by itself.
    world.push("clone", "laptop/old", &ada, "a").await.well();
    world.git("clone", &["fetch", "-q", "origin"]).await.well();
    world.as_ada(Method::PATCH, "/repos/laptop/new", json!({ "archived": true })).await;
    let refused = world.push("clone", "laptop/new", &ada, "b").await;
    refused.refused(&[
        "remote: This repository was archived so it is read-only.",
        "The requested URL returned error: 403",
    ]);
    world.git("clone", &["fetch", "-q", "origin"]).await.well();
    world.as_ada(Method::PATCH, "/repos/laptop/new", json!({ "archived": false })).await;
    // Out of the installation's reach.
    let app = world.mint(json!({})).await;
    let path = "/repos/laptop/new/transfer";
    world.as_ada(Method::POST, path, json!({ "new_owner": "ada" })).await;
    let gone = world.git("", &["ls-remote", &world.address("laptop/new", &app)]).await;
    gone.refused(&["remote: Repository not found."]);
    world.git("", &["ls-remote", &world.address("laptop/old", &ada)]).await.well();
    world.told("repository", "renamed", 1).await;
    world.told("repository", "archived", 1).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pushed_content_configures_nothing() {
    let world = World::start("git-hostile").await;
    let id = world.repository("web", json!({})).await;
    let ada = world.id.user_token.clone();
    world.clone_of("laptop/web", &ada, "clone").await;
    let mark = world.folder.join("ran");
    let script = format!("#!/bin/sh\ntouch {}\n", mark.display());
    world.commit("clone", "hooks/pre-receive", &script).await;
    world.commit("clone", ".gitattributes", "* diff=evil merge=evil filter=evil\n").await;
    world.push("clone", "laptop/web", &ada, "main").await.well();
    world.git("clone", &["checkout", "-q", "-b", "x"]).await.well();
    world.commit("clone", "b.txt", "b\n").await;
    world.push("clone", "laptop/web", &ada, "x").await.well();
    // A tree that git's own check refuses.
    let blob = world.git("clone", &["hash-object", "-w", "hooks/pre-receive"]).await.well();
    let cache = format!("100644,{blob},.git/config");
    let said = world.git("clone", &["update-index", "--add", "--cacheinfo", &cache]).await;
    assert!(!said.is_ok, "git would not take it either");
    let line = format!("100644 blob {blob}\t.GIT\n");
    std::fs::write(world.folder.join("work/tree"), line).unwrap();
    let made = ["-c", "core.protectHFS=false", "mktree"];
    let mut command = tokio::process::Command::new("git");
    command.args(made).current_dir(world.folder.join("work/clone"));
    command.stdin(std::fs::File::open(world.folder.join("work/tree")).unwrap());
    let tree = String::from_utf8(command.output().await.unwrap().stdout).unwrap();
    let commit = world.git("clone", &["commit-tree", tree.trim(), "-m", "x"]).await.well();
    let to = format!("{commit}:refs/heads/evil");
    let evil = world.git("clone", &["push", &world.address("laptop/web", &ada), &to]).await;
    evil.refused(&["hasDotgit"]);

    // Merged, compared and read without any of it.
    let new = json!({ "title": "X", "head": "x", "base": "main" });
    world.as_ada(Method::POST, "/repos/laptop/web/pulls", new).await;
    world.forge.merge("laptop/web", 1, None).await.unwrap();
    assert!(!mark.exists());
    let hooks = world.folder.join(format!("state/repositories/{id}.git/hooks"));
    assert!(!hooks.exists());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_come_between() {
    let world = World::start("git-faults").await;
    world.repository("web", json!({})).await;
    let ada = world.id.user_token.clone();
    world.clone_of("laptop/web", &ada, "clone").await;
    let sha = world.commit("clone", "a.txt", "a\n").await;
    let faults = json!({ "faults": [{ "fault": "answer", "operation": "git/receive-pack", "status": 503, "sandbox": "laptop/web" }] });
    world.control("faults", faults).await;
    let refused = world.push("clone", "laptop/web", &ada, "a").await;
    refused.refused(&["The requested URL returned error: 503"]);
    // The branch moves, and nobody hears of it.
    let dropped =
        json!({ "fault": "drop", "operation": "git/receive-pack", "sandbox": "laptop/web" });
    let twice = json!({ "faults": [{ "fault": "delay", "operation": "git/receive-pack", "ms": 1 }, dropped] });
    world.control("faults", twice).await;
    let lost = world.push("clone", "laptop/web", &ada, "a").await;
    assert!(!lost.is_ok);
    world
        .control(
            "faults",
            json!({ "faults": [
        { "fault": "answer", "operation": "pulls/create", "status": 502 },
        { "fault": "drop", "operation": "pulls/create" },
    ] }),
        )
        .await;
    world.push("clone", "laptop/web", &ada, "a").await.well();
    let new = json!({ "title": "A", "head": "a", "base": "main" });
    let create = || world.api(Method::POST, "/repos/laptop/web/pulls", &ada).json(&new);
    assert_eq!(world.send(create()).await.0, 502);
    assert!(create().send().await.is_err());
    let (_, listed) = world.get("/repos/laptop/web/pulls?head=laptop:a", &ada).await;
    assert_eq!(listed[0]["head"]["sha"], sha);
    world.end().await;
}
