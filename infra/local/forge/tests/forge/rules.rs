//! Pushes that a repository's rules refuse, as git shows them.

use reqwest::Method;
use serde_json::{Value, json};

use crate::world::World;

async fn prepared(name: &str) -> (World, String) {
    let world = World::start(name).await;
    world.repository("web", json!({})).await;
    let token = world.mint(json!({ "permissions": { "contents": "write" } })).await;
    world.clone_of("laptop/web", &token, "clone").await;
    (world, token)
}

async fn ruleset(world: &World, rules: Value, include: &str) -> Value {
    let conditions = json!({ "ref_name": { "include": [include], "exclude": [] } });
    let body = json!({ "name": "r", "target": "branch", "enforcement": "active", "conditions": conditions, "rules": rules });
    world.as_ada(Method::POST, "/repos/laptop/web/rulesets", body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn rulesets_refuse_with_gh013() {
    let (world, token) = prepared("rules").await;
    let sha = world.commit("clone", "a.txt", "a\n").await;
    let review = json!([{ "type": "pull_request" }, { "type": "required_signatures" }]);
    let made = ruleset(&world, review, "~ALL").await;
    let page = format!("{}/laptop/web/rules?ref=refs%2Fheads%2Fbobbin%2Fx", world.forge.git());
    let refused = world.push("clone", "laptop/web", &token, "bobbin/x").await;
    refused.refused(&[
        "remote: error: GH013: Repository rule violations found for refs/heads/bobbin/x.",
        &format!("remote: Review all repository rules at {page}"),
        "remote: - Changes must be made through a pull request.",
        &format!("remote: - Commits must have verified signatures.\nremote:   Found 1 violation:\nremote:\nremote:   {sha}\nremote:"),
        "! [remote rejected] HEAD -> bobbin/x (push declined due to repository rule violations)",
    ]);
    let path = format!("/repos/laptop/web/rulesets/{}", made["id"]);
    world.as_ada(Method::DELETE, &path, json!({})).await;

    // What a pack holds counts, not what the commit on top shows.
    let limits = json!([
        { "type": "file_path_restriction", "parameters": { "restricted_file_paths": ["secrets/**/*"] } },
        { "type": "max_file_size", "parameters": { "max_file_size": 1 } },
    ]);
    ruleset(&world, limits, "refs/heads/bobbin/*").await;
    world.commit("clone", "secrets/deep/key.txt", "k\n").await;
    world.commit("clone", "large.bin", vec![7; 1024 * 1024 + 1]).await;
    world.git("clone", &["rm", "-q", "-r", "secrets", "large.bin"]).await.well();
    world.commit("clone", "b.txt", "b\n").await;
    let refused = world.push("clone", "laptop/web", &token, "bobbin/y").await;
    refused.refused(&[
        "remote:   secrets/deep/key.txt",
        "remote:   large.bin",
        "(push declined due to repository rule violations)",
    ]);
    world.push("clone", "laptop/web", &token, "elsewhere").await.well();
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn protected_branches_refuse_with_gh006() {
    let (world, token) = prepared("rules-protected").await;
    let path = "/repos/laptop/web/branches/main/protection";
    let reviews = json!({ "required_approving_review_count": 1 });
    let body = json!({
        "required_status_checks": { "strict": false, "contexts": ["build", "test"] }, "enforce_admins": null,
        "required_pull_request_reviews": reviews, "restrictions": null,
    });
    world.as_ada(Method::PUT, path, body).await;
    world.commit("clone", "a.txt", "a\n").await;
    let refused = world.push("clone", "laptop/web", &token, "main").await;
    refused.refused(&[
        "remote: error: GH006: Protected branch update failed for refs/heads/main.",
        "remote: - Changes must be made through a pull request.",
        "remote: - 2 of 2 required status checks are expected.",
        "! [remote rejected] HEAD -> main (protected branch hook declined)",
    ]);
    // Who administrates the repository passes, unless that is forbidden too.
    let ada = world.id.user_token.clone();
    world.push("clone", "laptop/web", &ada, "main").await.well();
    let body = json!({
        "required_status_checks": null, "enforce_admins": true, "required_pull_request_reviews": null,
        "restrictions": null,
    });
    world.as_ada(Method::PUT, path, body).await;
    world.git("clone", &["commit", "-q", "--amend", "-m", "Other"]).await.well();
    let force = ["push", "--force", &world.address("laptop/web", &ada), "HEAD:main"];
    let refused = world.git("clone", &force).await;
    refused.refused(&["GH006", "remote: - Cannot force-push to this branch"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_refuse_with_gh001_and_gh008() {
    let (world, token) = prepared("rules-files").await;
    let oid = "9b439f0ad3b1e8e965955487b72e84045e85fb844392890c7d34ba45b3430c1e";
    let pointer =
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 12\n");
    world.commit("clone", "video.mp4", &pointer).await;
    let refused = world.push("clone", "laptop/web", &token, "lfs").await;
    refused.refused(&[
        "remote: error: GH008: Your push referenced at least 1 unknown Git LFS object:",
        &format!("remote:     {oid}"),
        "remote: Try to push them with 'git lfs push --all'.",
        "! [remote rejected] HEAD -> lfs (pre-receive hook declined)",
    ]);
    world.git("clone", &["checkout", "-q", "--detach", "origin/main"]).await.well();
    world.commit("clone", "big file.bin", vec![0; 101 * 1024 * 1024]).await;
    let refused = world.push("clone", "laptop/web", &token, "big").await;
    refused.refused(&[
        "remote: error: See https://gh.io/lfs for more information.",
        "remote: error: File big file.bin is 101.00 MB; this exceeds GitHub's file size limit of 100.00 MB",
        "remote: error: GH001: Large files detected. You may want to try Git Large File Storage - https://git-lfs.github.com.",
        "! [remote rejected] HEAD -> big (pre-receive hook declined)",
    ]);
    // Half of that is warned of.
    world.git("clone", &["checkout", "-q", "--detach", "origin/main"]).await.well();
    world.commit("clone", "half.bin", vec![0; 51 * 1024 * 1024]).await;
    let taken = world.push("clone", "laptop/web", &token, "half").await;
    assert!(taken.err.contains("remote: warning: GH001: Large files detected."), "{}", taken.err);
    taken.well();
    // Nothing of what was refused is left.
    let (_, branches) = world.get("/repos/laptop/web/branches", &token).await;
    let names: Vec<&Value> = branches.as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["half", "main"]);
    let spool = std::fs::read_dir(world.folder.join("state/spool")).unwrap().count();
    assert_eq!(spool, 0);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workflows_and_secrets_are_refused() {
    let (world, token) = prepared("rules-workflows").await;
    world.commit("clone", ".github/workflows/ci.yml", "on: push\n").await;
    let refused = world.push("clone", "laptop/web", &token, "ci").await;
    refused.refused(&[
        "! [remote rejected] HEAD -> ci (refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows` permission)",
    ]);
    // A person may, and then the app may build on it.
    let ada = world.id.user_token.clone();
    world.push("clone", "laptop/web", &ada, "main").await.well();
    world.commit("clone", "a.txt", "a\n").await;
    world.push("clone", "laptop/web", &token, "more").await.well();

    let on = json!({ "secret_scanning_push_protection": { "status": "enabled" } });
    let on = json!({ "security_and_analysis": on });
    world.as_ada(Method::PATCH, "/repos/laptop/web", on).await;
    let secret = format!("key = \"ghp_{}\"\n", "a1B2".repeat(9));
    let sha = world.commit("clone", "key.txt", format!("one\n{secret}")).await;
    let refused = world.push("clone", "laptop/web", &token, "leak").await;
    refused.refused(&[
        "remote: error: GH013: Repository rule violations found for refs/heads/leak.",
        "remote: - GITHUB PUSH PROTECTION",
        "remote:     - Push cannot contain secrets",
        &format!("remote:          - commit: {sha}\nremote:            path: key.txt:2"),
    ]);
    world.end().await;
}
