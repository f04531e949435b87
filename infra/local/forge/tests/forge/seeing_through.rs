//! Bobbin's own client against this forge: what it reads of a pull request beside its poll, and what it does to it.

use bobbin_core::base::secret::Secret;
use bobbin_core::records::publication::{ActEnd, PullRequestAct};
use bobbin_core::records::responses::{NewRemark, PullRequestResponse, Remark};
use bobbin_forge::github::{Addresses, GitHub, GitHubSettings};
use bobbin_forge::{Forge as _, PullRequests as _, RepositoryAt, RepositoryId, RepositoryName};
use reqwest::Method;
use serde_json::{Value, json};

use crate::world::World;

const PULL: &str = "/repos/laptop/web/pulls/1";

struct Scene {
    world: World,
    github: GitHub,
    at: RepositoryAt,
    /// The head of pull request 1.
    head: String,
}

impl Scene {
    /// A draft of the app's, from a branch with one commit.
    async fn start(name: &str) -> Self {
        let world = World::start(name).await;
        let id = world.repository("web", json!({})).await;
        world.control("repository", json!({"repository": "laptop/web", "unknown_looks": 0})).await;
        let app = world.mint(json!({})).await;
        world.clone_of("laptop/web", &app, "clone").await;
        let head = world.commit("clone", "a.txt", "one\ntwo\n").await;
        world.push("clone", "laptop/web", &app, "bobbin/a").await.well();
        let new = json!({"title": "A", "head": "bobbin/a", "base": "main", "draft": true});
        let made = world.api(Method::POST, "/repos/laptop/web/pulls", &app).json(&new);
        assert_eq!(world.send(made).await.0, 201);
        let identity = world.forge.identity();
        let github = GitHub::new(GitHubSettings {
            addresses: Addresses {
                git: world.forge.git(),
                web: world.forge.git(),
                api: world.forge.api(),
            },
            issuer: identity.client_id.clone(),
            private_key: identity.private_key.clone().into(),
            slug: "bobbin-laptop".to_owned(),
            client_id: identity.client_id.clone(),
            client_secret: identity.client_secret.clone().into(),
        });
        let at = RepositoryAt {
            installation: identity.installation,
            repository: RepositoryId(id),
            name: RepositoryName::new("laptop", "web").unwrap(),
        };
        Self { world, github: github.unwrap(), at, head }
    }

    /// The administrator's access token.
    fn ada(&self) -> Secret {
        self.world.id.user_token.clone().into()
    }

    async fn seen(&self, path: &str) -> Value {
        self.world.get(path, &self.world.id.user_token).await.1
    }

    async fn merged(&self, head: &str) -> ActEnd {
        self.github.act(&self.at, 1, (PullRequestAct::Merge, head), &self.ada()).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_job_says_why() {
    let scene = Scene::start("client-failure").await;
    let said = json!({
        "repository": "laptop/web", "sha": scene.head, "name": "test", "conclusion": "failure",
        "title": "1 failed", "log": "npm test\nexpected 4", "annotations": [{
            "path": "a.txt", "start_line": 2, "end_line": 2, "annotation_level": "failure", "message": "Not two"}],
    });
    let run = scene.world.control("checks", said).await["check_run"].as_u64().unwrap();
    let failure = scene.github.check_failure(&scene.at, run).await.unwrap();
    assert_eq!((&*failure.summary, &*failure.log), ("1 failed", "npm test\nexpected 4\n"));
    let annotation = &failure.annotations[0];
    assert_eq!((&*annotation.path, annotation.line, &*annotation.message), ("a.txt", 2, "Not two"));
    scene.world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_say_what_is_required() {
    let scene = Scene::start("client-required").await;
    let rule = json!([{"type": "required_status_checks", "parameters": {
        "strict_required_status_checks_policy": false, "required_status_checks": [{"context": "test"}]}}]);
    let set = json!({
        "name": "r", "target": "branch", "enforcement": "active", "rules": rule,
        "conditions": {"ref_name": {"include": ["~DEFAULT_BRANCH"], "exclude": []}},
    });
    scene.world.as_ada(Method::POST, "/repos/laptop/web/rulesets", set).await;
    let classic = json!({
        "required_status_checks": {"strict": false, "contexts": ["lint"]}, "enforce_admins": true,
        "required_pull_request_reviews": null, "restrictions": null,
    });
    scene.world.as_ada(Method::PUT, "/repos/laptop/web/branches/main/protection", classic).await;
    let all = scene.github.required_checks(&scene.at, "main").await.unwrap();
    let names: Vec<&str> = all.iter().map(|check| &*check.name).collect();
    assert_eq!(names, ["lint", "test"]);
    scene.world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn review_comment_is_seen_answered_and_resolved() {
    let scene = Scene::start("client-remarks").await;
    let line = json!({"body": "Why two?", "commit_id": scene.head, "path": "a.txt", "line": 2, "side": "RIGHT"});
    let comment = scene.world.as_ada(Method::POST, &format!("{PULL}/comments"), line).await;
    let id = comment["id"].as_u64().unwrap();
    let answer =
        NewRemark { thread: Some(id), name: "turn-1".to_owned(), body: "One line now.".to_owned() };
    for _ in 0..2 {
        scene
            .github
            .respond(&scene.at, 1, &PullRequestResponse::Seen(Remark::Line(id)))
            .await
            .unwrap();
        scene
            .github
            .respond(&scene.at, 1, &PullRequestResponse::Say(answer.clone()))
            .await
            .unwrap();
    }
    let all = scene.seen(&format!("{PULL}/comments")).await;
    let bodies: Vec<&str> =
        all.as_array().unwrap().iter().map(|one| one["body"].as_str().unwrap()).collect();
    assert_eq!(bodies, ["Why two?", "One line now.\n\n<!-- bobbin:turn-1 -->"]);
    assert_eq!(all[0]["reactions"]["eyes"], 1);
    let thread = async || {
        let polled = scene.github.poll_pull_request(&scene.at, 1).await.unwrap();
        polled.threads.into_iter().next().unwrap()
    };
    let found = thread().await;
    assert!(!found.is_resolved);
    scene
        .github
        .respond(&scene.at, 1, &PullRequestResponse::Resolve { thread: found.id })
        .await
        .unwrap();
    assert!(thread().await.is_resolved);
    let whole = NewRemark { thread: None, ..answer };
    for _ in 0..2 {
        scene.github.respond(&scene.at, 1, &PullRequestResponse::Say(whole.clone())).await.unwrap();
    }
    let all = scene.seen("/repos/laptop/web/issues/1/comments").await;
    assert_eq!(all.as_array().unwrap().len(), 1);
    scene.world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn person_readies_updates_and_merges() {
    let scene = Scene::start("client-merge").await;
    assert_eq!(
        scene.merged(&scene.head).await,
        ActEnd::Refused { why: "Pull Request is still a draft".to_owned() }
    );
    for _ in 0..2 {
        scene
            .github
            .act(&scene.at, 1, (PullRequestAct::MarkReady, ""), &scene.ada())
            .await
            .unwrap();
    }
    assert_eq!(scene.seen(PULL).await["draft"], false);

    // The base has moved: it is merged into the branch, whose head is another one then.
    let ada = scene.world.id.user_token.clone();
    scene.world.clone_of("laptop/web", &ada, "base").await;
    scene.world.commit("base", "b.txt", "b\n").await;
    scene.world.push("base", "laptop/web", &ada, "main").await.well();
    let update = async |head: &str| {
        scene
            .github
            .act(&scene.at, 1, (PullRequestAct::UpdateBranch, head), &scene.ada())
            .await
            .unwrap()
    };
    assert_eq!(update(&"0".repeat(40)).await, ActEnd::HeadMoved);
    for _ in 0..2 {
        assert_eq!(update(&scene.head).await, ActEnd::Done);
    }
    assert_eq!(update(&"0".repeat(40)).await, ActEnd::HeadMoved);
    assert_eq!(scene.merged(&scene.head).await, ActEnd::HeadMoved);
    let head = scene.seen(PULL).await["head"]["sha"].as_str().unwrap().to_owned();
    assert_eq!(update(&head).await, ActEnd::Done);
    assert_eq!(scene.merged(&head).await, ActEnd::Done);
    assert_eq!(scene.merged(&head).await, ActEnd::Done);
    assert_eq!(scene.seen(PULL).await["merged"], true);
    scene.world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn merge_queue_takes_the_merge() {
    let scene = Scene::start("client-queue").await;
    scene.github.act(&scene.at, 1, (PullRequestAct::MarkReady, ""), &scene.ada()).await.unwrap();
    let set = json!({
        "name": "q", "target": "branch", "enforcement": "active", "rules": [{"type": "merge_queue"}],
        "conditions": {"ref_name": {"include": ["~DEFAULT_BRANCH"], "exclude": []}},
    });
    scene.world.as_ada(Method::POST, "/repos/laptop/web/rulesets", set).await;
    assert_eq!(scene.merged(&scene.head).await, ActEnd::Queued);
    assert_eq!(scene.merged(&scene.head).await, ActEnd::Queued);
    scene.world.end().await;
}
