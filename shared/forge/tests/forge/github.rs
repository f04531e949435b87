//! GitHub's API: every request as its description has it, every answer as small as it may be.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bobbin_core::base::failure::Failure;
use bobbin_core::base::secret::Secret;
use bobbin_forge::git::{EntryMode, Fetch, ObjectId, Push, Pushed, RefName};
use bobbin_forge::github::{Addresses, App, GitHub, GitHubSettings, PERMISSIONS};
use bobbin_forge::{
    Forge as _, ForgeError, ForgeErrorKind, NewPullRequest, OwnerKind, PullRequestChange,
    PullRequestState, RepositoryAt, RepositoryId, RepositoryName,
};
use serde_json::{Value, json};

use crate::carriage::Kept;
use crate::git::{MAIN, ObjectPlace};
use crate::world::{
    CLIENT_SECRET, Reply, TOKEN, World, at, installation, key, name, openssl, owner, reply,
    repository,
};

const ID: &str = "00000000000000000000000000000000000000aa";
const MINT: &str = "POST /app/installations/7/access_tokens";
const REVOKE: &str = "DELETE /installation/token";
const PAGE: &str = "https://github.example/organizations/acme/settings/installations/7";

fn one() -> ObjectId {
    ID.parse().unwrap()
}

fn listing() -> Value {
    json!({"total_count": 1, "repositories": [repository()]})
}

#[tokio::test]
async fn repository_is_found_by_name() {
    let world = World::start().await;
    world.minting();
    world.on("GET /repos/acme/web/installation", reply(200, installation()));
    world.on("GET /installation/repositories", reply(200, listing()));
    let found = world.github().repository(&name()).await.unwrap();
    assert_eq!((found.id, found.installation), (RepositoryId(42), 7));
    assert_eq!(found.name, name());
    assert_eq!((found.owner.id, found.owner.kind), (9, OwnerKind::Organization));
    assert_eq!((found.default_branch.as_str(), found.size_kb), ("main", 108));
    assert!(found.is_private && found.can_push && !found.is_archived);
    assert_eq!(found.at(), at());
    assert_eq!(
        world.lines(),
        [
            "GET /repos/acme/web/installation",
            MINT,
            "GET /installation/repositories?per_page=100&page=1",
            REVOKE,
        ]
    );
    let minted = world.one(MINT).body;
    assert_eq!(minted, json!({"repositories": ["web"], "permissions": {"metadata": "read"}}));
    for seen in world.seen() {
        assert_eq!(seen.headers["x-github-api-version"], "2022-11-28");
        assert_eq!(seen.headers["accept"], "application/vnd.github+json");
        assert!(seen.headers["user-agent"].to_str().unwrap().starts_with("bobbin/"));
    }
    assert_eq!(world.one(REVOKE).bearer(), TOKEN);
}

#[tokio::test]
async fn signature_is_one_that_openssl_verifies() {
    let world = World::start().await;
    let app = json!({"id": 5, "slug": "bobbin", "name": "Bobbin", "client_id": "Iv23abc"});
    world.on("GET /app", reply(200, app));
    let pkcs8 = std::fs::read_to_string(&key().pkcs8).unwrap();
    let on_one_line = std::fs::read_to_string(&key().private).unwrap().replace('\n', "\\n");
    let encoded = STANDARD.encode(std::fs::read(&key().private).unwrap());
    let keys = [world.settings().private_key, pkcs8.into(), on_one_line.into(), encoded.into()];
    for private_key in keys {
        let github = GitHub::new(GitHubSettings { private_key, ..world.settings() }).unwrap();
        let App { id, slug, .. } = github.app().await.unwrap();
        assert_eq!((id, slug.as_str()), (5, "bobbin"));
    }
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let seen = world.seen();
    assert_eq!(seen.len(), 4);
    for (number, seen) in seen.iter().enumerate() {
        let (signed, signature) = seen.bearer().rsplit_once('.').unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        let part = |part: &str| -> Value {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
        };
        assert_eq!(part(header), json!({"alg": "RS256", "typ": "JWT"}));
        let claims = part(claims);
        assert_eq!(claims["iss"], "Iv23abc");
        let (from, until) = (claims["iat"].as_u64().unwrap(), claims["exp"].as_u64().unwrap());
        assert!(until - from <= 600 && from + 30 < now_s && now_s + 300 < until, "{claims}");
        let at = |name: &str| key().folder.join(format!("{number}{name}"));
        std::fs::write(at("signed"), signed).unwrap();
        std::fs::write(at("signature"), URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        let verify = [
            "dgst",
            "-sha256",
            "-verify",
            key().public.to_str().unwrap(),
            "-signature",
            at("signature").to_str().unwrap(),
            at("signed").to_str().unwrap(),
        ]
        .map(str::to_owned);
        let verify: Vec<&str> = verify.iter().map(String::as_str).collect();
        assert_eq!(openssl(&key().folder, &verify).trim(), "Verified OK");
    }
}

#[tokio::test]
async fn enterprise_server_is_another_base() {
    let place = ObjectPlace::filled();
    let world = World::serving(&place).await;
    let git = format!("{}/git", world.base());
    let addresses = Addresses { git, ..Addresses::of(&format!("{}/api/v3/", world.base())) };
    let github = GitHub::new(GitHubSettings { addresses, ..world.settings() }).unwrap();
    github.refs(&at(), &[]).await.unwrap();
    let lines = world.lines();
    assert_eq!(lines[0], MINT.replacen('/', "/api/v3/", 1));
    assert_eq!(lines.last().unwrap(), &REVOKE.replacen('/', "/api/v3/", 1));
    let install = format!("{}/github-apps/bobbin/installations/new", world.base());
    assert_eq!(github.facts().install, install);
}

#[tokio::test]
async fn missing_key_is_told_and_nothing_sent() {
    let world = World::start().await;
    let pem = "-----BEGIN RSA PRIVATE KEY-----\naGVsbG8=\n-----END RSA PRIVATE KEY-----\n";
    for private_key in ["", "secret", pem] {
        let private_key = Secret::from(private_key.to_owned());
        let github = GitHub::new(GitHubSettings { private_key, ..world.settings() }).unwrap();
        let error = github.refs(&at(), &[]).await.unwrap_err();
        assert!(error.seen.contains("github_private_key"), "{error}");
        assert!(matches!(error.failure, Failure::NonRecoverable { .. }));
    }
    assert!(world.seen().is_empty());
}

#[tokio::test]
async fn renamed_repository_is_found_by_its_id() {
    let world = World::start().await;
    world.minting();
    let base = world.base().to_owned();
    let moved = reply(301, json!({"message": "Moved Permanently"}))
        .with("location", format!("{base}/repositories/42/installation"));
    world.on("GET /repos/acme/old/installation", moved);
    world.on("GET /repositories/42/installation", reply(200, installation()));
    world.on("GET /installation/repositories", reply(200, listing()));
    let old = RepositoryName::new("acme", "old").unwrap();
    let found = world.github().repository(&old).await.unwrap();
    assert_eq!(found.name, name());
    let minted = world.one(MINT).body;
    assert_eq!(minted, json!({"repository_ids": [42], "permissions": {"metadata": "read"}}));

    // A way to somewhere else is none.
    let elsewhere = reply(301, json!({"message": "Moved Permanently"}))
        .with("location", "https://elsewhere.example/repos/acme/web");
    world.on("GET /repos/acme/older/installation", elsewhere);
    let older = RepositoryName::new("acme", "older").unwrap();
    let error = world.github().repository(&older).await.unwrap_err();
    assert!(matches!(error.kind, ForgeErrorKind::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn operation_uses_the_present_name() {
    let place = ObjectPlace::filled();
    let world = World::serving(&place).await;
    let before = RepositoryAt { name: RepositoryName::new("former", "name").unwrap(), ..at() };
    let refs = world.github().refs(&before, &[]).await.unwrap();
    assert_eq!(refs.refs[MAIN].id, place.at("HEAD"));
    let lines = world.lines();
    assert!(lines.contains(&"GET /git/acme/web.git/info/refs?service=git-upload-pack".to_owned()));
    let minted = world.one(MINT).body;
    assert_eq!(minted, json!({"repository_ids": [42], "permissions": {"contents": "read"}}));
    assert_eq!(lines.last().unwrap(), REVOKE);
}

#[tokio::test]
async fn repository_is_found_by_id() {
    let world = World::start().await;
    world.minting();
    let archived = json!({"total_count": 1, "repositories": [{
        "id": 42, "name": "web", "private": false, "archived": true, "default_branch": "trunk",
        "size": 0, "owner": {"id": 3, "login": "ada", "type": "User"},
    }]});
    world.on("GET /app/installations/7", reply(200, installation()));
    world.on("GET /installation/repositories", reply(200, archived));
    let found = world.github().repository_by_id(7, RepositoryId(42)).await.unwrap();
    assert_eq!((found.name.to_string().as_str(), found.owner.kind), ("ada/web", OwnerKind::User));
    assert!(found.is_archived && !found.can_push && !found.is_private);
}

#[tokio::test]
async fn read_only_installation_cannot_push() {
    let world = World::start().await;
    world.minting();
    let mut granted = installation();
    granted["permissions"] = json!({"contents": "read", "metadata": "read", "members": "write"});
    world.on("GET /orgs/acme/installation", reply(200, granted.clone()));
    world.on("GET /app/installations/7", reply(200, granted));
    world.on("GET /installation/repositories", reply(200, listing()));
    let github = world.github();
    let found = github.installation("acme", OwnerKind::Organization).await.unwrap();
    assert_eq!(
        found.missing,
        [
            "contents: write",
            "pull_requests: write",
            "checks: read",
            "statuses: read",
            "actions: read",
            "issues: read",
        ]
    );
    assert_eq!((found.id, found.has_all, found.is_suspended), (7, false, false));
    assert_eq!((found.owner.login.as_str(), found.page.as_str()), ("acme", PAGE));
    let found = github.repository_by_id(7, RepositoryId(42)).await.unwrap();
    assert!(!found.can_push);
    assert_eq!(PERMISSIONS.len(), 8);
}

#[tokio::test]
async fn ended_installation_is_told_by_its_id() {
    let world = World::start().await;
    let mut suspended = installation();
    suspended["suspended_at"] = json!("2026-12-01T00:00:00Z");
    world.on("GET /app/installations/7", reply(200, suspended));
    let github = world.github();
    let found = github.installation_by_id(7).await.unwrap();
    assert_eq!((found.id, found.is_suspended), (7, true));
    let error = github.installation_by_id(8).await.unwrap_err();
    assert_eq!(error.kind, ForgeErrorKind::NotInstalled);
}

/// The error of a call for a token that this installation does not give.
async fn unminted(status: u16, message: &str, found: Reply) -> (ForgeError, World) {
    let world = World::start().await;
    world.on(MINT, reply(status, json!({"message": message})));
    world.on("GET /app/installations/7", found);
    let error = world.github().push(&at(), push(one())).await.unwrap_err();
    (error, world)
}

fn push(new: ObjectId) -> Push {
    Push { name: RefName::branch("bobbin/x").unwrap(), old: None, new, pack: Vec::new() }
}

#[tokio::test]
async fn missing_rights_are_told_with_their_page() {
    let refused = "The permissions requested are not granted to this installation.";
    let mut without = installation();
    without["permissions"] = json!({"contents": "read"});
    let (error, _) = unminted(422, refused, reply(200, without)).await;
    assert_eq!(error.kind, ForgeErrorKind::PermissionsMissing(vec!["contents: write".to_owned()]));
    assert_eq!(error.seen, "acme has not granted what Bobbin needs for this: contents: write.");
    assert_eq!(error.link.as_deref(), Some(PAGE));

    let mut suspended = installation();
    suspended["suspended_at"] = json!("2026-12-01T00:00:00Z");
    let words = "This installation has been suspended";
    let (error, _) = unminted(403, words, reply(200, suspended.clone())).await;
    assert_eq!(error.kind, ForgeErrorKind::Suspended);
    assert_eq!(error.seen, "acme has suspended Bobbin's installation.");
    assert_eq!(error.link.as_deref(), Some(PAGE));

    let outside = "There is at least one repository that does not exist or is not accessible";
    let (error, _) = unminted(422, outside, reply(200, installation())).await;
    assert_eq!(error.kind, ForgeErrorKind::NotInstalled);
    assert_eq!(error.seen, "Bobbin's installation at acme does not include the repository.");
    assert_eq!(error.link.as_deref(), Some(PAGE));

    let gone = reply(404, json!({"message": "Not Found"}));
    let (error, world) = unminted(404, "Not Found", gone).await;
    assert_eq!(error.kind, ForgeErrorKind::NotInstalled);
    let install = format!("{}/apps/bobbin/installations/new", world.base());
    assert_eq!(error.link, Some(install.clone()));
    assert_eq!(world.github().facts().install, install);
    assert_eq!(world.github().facts().name, "github");

    // The same is seen where the repository is looked for.
    let world = World::start().await;
    world.on("GET /repos/acme/web/installation", reply(200, suspended));
    let error = world.github().repository(&name()).await.unwrap_err();
    assert_eq!((error.kind, error.link.as_deref()), (ForgeErrorKind::Suspended, Some(PAGE)));
    let world = World::start().await;
    let error = world.github().repository(&name()).await.unwrap_err();
    assert_eq!(
        (error.kind, error.link),
        (
            ForgeErrorKind::NotInstalled,
            Some(format!("{}/apps/bobbin/installations/new", world.base()))
        )
    );
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let said = |status, message: &str| reply(status, json!({"message": message}));
    let in_a_minute = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 60;
    let allow_list = "Although you appear to have the correct authorization credentials, the `acme` organization has an IP allow list enabled, and your IP address is not permitted to access this resource.";
    let table = [
        (said(401, "Bad credentials"), "Other", "wait", 0),
        (said(403, allow_list), "NotAllowedAddress", "non_recoverable", 0),
        (said(403, "Repository was archived so is read-only."), "Archived", "non_recoverable", 0),
        (said(403, "This installation has been suspended"), "Suspended", "non_recoverable", 0),
        (said(403, "Resource not accessible by integration"), "Refused", "non_recoverable", 0),
        (said(404, "Not Found"), "NotFound", "non_recoverable", 0),
        (said(409, "Git Repository is empty."), "Refused", "non_recoverable", 0),
        (said(429, "Slow down").with("retry-after", "7"), "RateLimited", "wait", 7_000),
        (said(403, "You have exceeded a secondary rate limit."), "RateLimited", "wait", 60_000),
        (said(403, "Slow down").with("retry-after", "90"), "RateLimited", "wait", 90_000),
        (
            said(403, "API rate limit exceeded")
                .with("x-ratelimit-remaining", "0")
                .with("x-ratelimit-reset", (in_a_minute + 7_200).to_string()),
            "RateLimited",
            "wait",
            3_600_000,
        ),
        (said(500, "Oh"), "Other", "outage", 0),
        (Reply::page(404), "Other", "outage", 0),
        (Reply::page(502), "Other", "outage", 0),
        (Reply::page(200), "Other", "outage", 0),
        (said(301, "Moved Permanently"), "Refused", "non_recoverable", 0),
    ];
    for (answer, kind, class, after_ms) in table {
        let world = World::start().await;
        world.minting();
        let route = format!("GET /repos/acme/web/git/trees/{ID}");
        world.on(&route, answer);
        let error = world.github().tree(&at(), &one()).await.unwrap_err();
        let shown = format!("{:?}", error.kind);
        assert!(shown.starts_with(kind), "{error:?}");
        let failure = serde_json::to_value(&error.failure).unwrap();
        assert_eq!(failure["class"], class, "{error:?}");
        assert_eq!(failure["after_ms"].as_u64().unwrap_or(0), after_ms, "{error:?}");
        assert!(!format!("{error} {error:?}").contains("ghs_"));
        let page = match error.kind {
            ForgeErrorKind::NotAllowedAddress => {
                Some(format!("{}/organizations/acme/settings/security", world.base()))
            }
            ForgeErrorKind::Suspended => {
                Some(format!("{}/apps/bobbin/installations/new", world.base()))
            }
            _ => None,
        };
        assert_eq!(error.link, page);
        assert_eq!(world.one(REVOKE).bearer(), TOKEN, "revoked also after a failure");
    }
    let world = World::start().await;
    let github = world.github();
    drop(world);
    tokio::task::yield_now().await;
    let error = github.tree(&at(), &one()).await.unwrap_err();
    assert!(matches!(error.failure, Failure::Outage { .. }), "{error:?}");
}

#[tokio::test]
async fn primary_limit_is_waited_for() {
    let world = World::start().await;
    let in_a_minute = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 60;
    let limited = reply(403, json!({"message": "API rate limit exceeded"}))
        .with("x-ratelimit-remaining", "0")
        .with("x-ratelimit-reset", in_a_minute.to_string());
    world.on(MINT, limited);
    let error = world.github().refs(&at(), &[]).await.unwrap_err();
    let Failure::Wait { after_ms, .. } = error.failure else { panic!("{error:?}") };
    assert!((50_000..=60_000).contains(&after_ms), "{after_ms}");
    assert_eq!(world.lines().len(), 1, "nobody asks why");
}

#[tokio::test]
async fn token_of_an_operation_given_up_is_revoked() {
    let world = World::start().await;
    let body =
        json!({"token": TOKEN, "repositories": [{"id": 42, "name": "hangs", "owner": owner()}]});
    world.on(MINT, reply(201, body));
    world.on(REVOKE, reply(204, Value::Null));
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let git = format!("http://{}", silent.local_addr().unwrap());
    let settings = world.settings();
    let addresses = Addresses { git, ..settings.addresses };
    let github = GitHub::new(GitHubSettings { addresses, ..settings }).unwrap();
    let target = at();
    let call = github.refs(&target, &[]);
    tokio::select! {
        _ = call => panic!("nobody answers"),
        accepted = silent.accept() => { accepted.unwrap(); }
    }
    while !world.lines().contains(&REVOKE.to_owned()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(world.one(REVOKE).bearer(), TOKEN);
}

#[tokio::test]
async fn outcome_stands_where_revoking_fails() {
    let world = World::start().await;
    let body = json!({"token": TOKEN, "repositories": [repository()]});
    world.on(MINT, reply(201, body));
    world.on(REVOKE, Reply::page(502));
    let tree = json!({"sha": ID, "truncated": false, "tree": []});
    world.on(&format!("GET /repos/acme/web/git/trees/{ID}"), reply(200, tree));
    assert_eq!(world.github().tree(&at(), &one()).await.unwrap(), []);
}

#[tokio::test]
async fn repositories_are_listed_within_bounds() {
    let world = World::start().await;
    world.minting();
    world.on("GET /app/installations/7", reply(200, installation()));
    let page = json!({"total_count": 5_000, "repositories": vec![repository(); 3]});
    world.on("GET /installation/repositories", reply(200, page));
    let listed = world.github().repositories(7).await.unwrap();
    assert_eq!((listed.repositories.len(), listed.total), (30, 5_000));
    assert_eq!(world.one(MINT).body, json!({"permissions": {"metadata": "read"}}));
    assert_eq!(world.lines().last().unwrap(), REVOKE);

    let world = World::start().await;
    world.minting();
    world.on("GET /app/installations/7", reply(200, installation()));
    world.on("GET /installation/repositories", reply(200, listing()));
    let listed = world.github().repositories(7).await.unwrap();
    assert_eq!((listed.repositories.len(), listed.total), (1, 1));
    assert_eq!(world.lines().len(), 4);
}

#[tokio::test]
async fn folder_is_listed() {
    let world = World::start().await;
    world.minting();
    let entry = |path: &str, mode: &str, kind: &str| json!({"path": path, "mode": mode, "type": kind, "sha": ID});
    let tree = json!({"sha": ID, "truncated": false, "tree": [
        entry("a.txt", "100644", "blob"), entry("run", "100755", "blob"), entry("link", "120000", "blob"),
        entry("src", "040000", "tree"), entry("lib", "160000", "commit"),
    ]});
    let route = format!("GET /repos/acme/web/git/trees/{ID}");
    world.on(&route, reply(200, tree));
    world.on(&route, reply(200, json!({"sha": ID, "truncated": true, "tree": []})));
    let github = world.github();
    let found = github.tree(&at(), &one()).await.unwrap();
    let shown: Vec<_> = found.iter().map(|one| (one.name.as_slice(), one.mode)).collect();
    assert_eq!(
        shown,
        [
            (&b"a.txt"[..], EntryMode::File),
            (b"run", EntryMode::Executable),
            (b"link", EntryMode::Symlink),
            (b"src", EntryMode::Folder),
            (b"lib", EntryMode::Submodule),
        ]
    );
    let error = github.tree(&at(), &one()).await.unwrap_err();
    assert_eq!(error.seen, "A folder has more entries than GitHub lists.");
}

#[tokio::test]
async fn merge_base_is_githubs() {
    let world = World::start().await;
    world.minting();
    let other: ObjectId = "00000000000000000000000000000000000000bb".parse().unwrap();
    let route = format!("GET /repos/acme/web/compare/{other}...{ID}");
    world.on(&route, reply(200, json!({"merge_base_commit": {"sha": ID}})));
    assert_eq!(world.github().merge_base(&at(), &other, &one()).await.unwrap(), one());
}

fn pull(number: u64, state: &str, with: Value) -> Value {
    let mut pull = json!({
        "number": number, "state": state, "title": "Fix it", "draft": false, "merged_at": null,
        "html_url": format!("https://github.example/acme/web/pull/{number}"),
        "head": {"ref": "bobbin/fix", "sha": ID, "repo": {"id": 42}},
        "base": {"ref": "main", "sha": ID, "repo": {"id": 42}},
    });
    for (name, value) in with.as_object().unwrap() {
        pull[name] = value.clone();
    }
    pull
}

fn new() -> NewPullRequest {
    NewPullRequest {
        head: "bobbin/fix".to_owned(),
        base: "main".to_owned(),
        subject: "Fix it".to_owned(),
        body: "What was asked".to_owned(),
        is_draft: true,
        person: None,
    }
}

const PULLS: &str = "GET /repos/acme/web/pulls";
const OPEN: &str = "POST /repos/acme/web/pulls";

#[tokio::test]
async fn pull_request_is_found_by_its_branch() {
    let world = World::start().await;
    world.minting();
    let fork = json!({"head": {"ref": "bobbin/fix", "sha": ID, "repo": {"id": 43}}});
    let deleted = json!({"head": {"ref": "bobbin/fix", "sha": ID, "repo": null}});
    let other = json!({"head": {"ref": "bobbin/other", "sha": ID, "repo": {"id": 42}}});
    let merged = json!({"merged_at": "2026-12-01T00:00:00Z"});
    let all = json!([
        pull(9, "open", fork),
        pull(8, "open", deleted),
        pull(7, "open", other),
        pull(5, "closed", merged),
        pull(4, "closed", json!({})),
    ]);
    // A fork that was deleted leaves `null`.
    world.on(PULLS, reply(200, all).undescribed());
    world.on(PULLS, reply(200, json!([pull(4, "closed", json!({}))])));
    world.on(PULLS, reply(200, json!([])));
    let github = world.github();
    let found = github.pull_request(&at(), "bobbin/fix").await.unwrap().unwrap();
    assert_eq!((found.number, found.state), (5, PullRequestState::Merged));
    assert_eq!((found.head.as_str(), found.head_commit), ("bobbin/fix", one()));
    assert_eq!((found.base.as_str(), found.subject.as_str()), ("main", "Fix it"));
    assert_eq!(found.page, "https://github.example/acme/web/pull/5");
    let found = github.pull_request(&at(), "bobbin/fix").await.unwrap().unwrap();
    assert_eq!(found.state, PullRequestState::Closed);
    assert_eq!(github.pull_request(&at(), "bobbin/fix").await.unwrap(), None);
    let line = world.lines().into_iter().find(|line| line.starts_with(PULLS)).unwrap();
    assert_eq!(
        line,
        "GET /repos/acme/web/pulls?state=all&head=acme%3Abobbin%2Ffix&sort=created&direction=desc&per_page=100"
    );
    let minted = json!({"repository_ids": [42], "permissions": {"pull_requests": "read"}});
    assert!(world.seen().iter().any(|seen| seen.body == minted));
}

#[tokio::test]
async fn pull_request_is_opened_once() {
    let world = World::start().await;
    world.minting();
    world.on(PULLS, reply(200, json!([])));
    world.on(PULLS, reply(200, json!([pull(5, "open", json!({"draft": true}))])));
    world.on(OPEN, reply(201, pull(5, "open", json!({"draft": true}))));
    let github = world.github();
    for _ in 0..2 {
        let opened = github.open_pull_request(&at(), &new()).await.unwrap();
        assert_eq!(
            (opened.number, opened.state, opened.is_draft),
            (5, PullRequestState::Open, true)
        );
    }
    let sent = world.one(OPEN);
    assert_eq!(
        sent.body,
        json!({"title": "Fix it", "head": "bobbin/fix", "base": "main", "body": "What was asked", "draft": true})
    );
    assert_eq!(sent.bearer(), TOKEN);
    let revoked = world.lines().iter().filter(|line| *line == REVOKE).count();
    assert_eq!(revoked, 2);
}

#[tokio::test]
async fn existing_pull_request_is_adopted() {
    let world = World::start().await;
    world.minting();
    let invalid = |message: &str| {
        let errors = json!([{"resource": "PullRequest", "code": "custom", "message": message}]);
        reply(422, json!({"message": "Validation Failed", "errors": errors}))
    };
    world.on(PULLS, reply(200, json!([])));
    world.on(PULLS, reply(200, json!([pull(5, "open", json!({}))])));
    world.on(OPEN, invalid("A pull request already exists for acme:bobbin/fix."));
    let opened = world.github().open_pull_request(&at(), &new()).await.unwrap();
    assert_eq!(opened.number, 5);

    let world = World::start().await;
    world.minting();
    world.on(PULLS, reply(200, json!([])));
    world.on(OPEN, invalid("No commits between main and bobbin/fix"));
    let error = world.github().open_pull_request(&at(), &new()).await.unwrap_err();
    let why = "No commits between main and bobbin/fix".to_owned();
    assert_eq!(error.kind, ForgeErrorKind::Refused { why });
}

#[tokio::test]
async fn draft_is_opened_without_where_there_are_none() {
    let world = World::start().await;
    world.minting();
    let message = "Draft pull requests are not supported in this repository.";
    world.on(PULLS, reply(200, json!([])));
    world.on(OPEN, reply(422, json!({"message": message})));
    world.on(OPEN, reply(201, pull(5, "open", json!({}))));
    let opened = world.github().open_pull_request(&at(), &new()).await.unwrap();
    assert!(!opened.is_draft);
    let drafts: Vec<Value> = world
        .seen()
        .into_iter()
        .filter(|seen| seen.line == OPEN)
        .map(|seen| seen.body["draft"].clone())
        .collect();
    assert_eq!(drafts, [json!(true), json!(false)]);
}

#[tokio::test]
async fn person_is_the_author_with_their_token() {
    const PERSON: &str = "ghu_0123456789abcdef";
    let world = World::start().await;
    world.minting();
    world.on(PULLS, reply(200, json!([])));
    world.on(OPEN, reply(201, pull(5, "open", json!({}))));
    world.on(OPEN, reply(401, json!({"message": "Bad credentials"})));
    let sso =
        reply(403, json!({"message": "Resource protected by organization SAML enforcement."}))
            .with(
                "x-github-sso",
                "required; url=https://github.example/orgs/acme/sso?authorization_request=A",
            );
    world.on(OPEN, sso);
    let new = NewPullRequest { person: Some(PERSON.to_owned().into()), ..new() };
    let github = world.github();
    github.open_pull_request(&at(), &new).await.unwrap();
    assert_eq!(world.one(OPEN).bearer(), PERSON);
    let minted = world.one(MINT).body;
    assert_eq!(minted["permissions"], json!({"pull_requests": "read"}));
    let error = github.open_pull_request(&at(), &new).await.unwrap_err();
    assert_eq!(error.kind, ForgeErrorKind::SignInEnded);
    let error = github.open_pull_request(&at(), &new).await.unwrap_err();
    let page = "https://github.example/orgs/acme/sso?authorization_request=A";
    assert_eq!(error.link.as_deref(), Some(page));
    assert!(!format!("{new:?} {github:?} {error:?}").contains(PERSON));
}

#[tokio::test]
async fn pull_request_changes_by_what_is_named() {
    let world = World::start().await;
    world.minting();
    world
        .on("PATCH /repos/acme/web/pulls/5", reply(200, pull(5, "open", json!({"title": "More"}))));
    let change = PullRequestChange { number: 5, subject: Some("More".to_owned()), body: None };
    let changed = world.github().update_pull_request(&at(), &change).await.unwrap();
    assert_eq!(changed.subject, "More");
    assert_eq!(world.one("PATCH ").body, json!({"title": "More"}));
}

#[tokio::test]
async fn branch_is_carried_both_ways() {
    let place = ObjectPlace::filled();
    let world = World::serving(&place).await;
    let github = world.github();
    let base = place.at("HEAD");
    let mut kept = Kept::default();
    let what = Fetch { wants: vec![base], bytes_max: 1_000_000, ..Fetch::default() };
    let fetched = github.fetch(&at(), &what, &mut kept).await.unwrap();
    assert_eq!(fetched.bytes, kept.0.len() as u64);
    let small = Fetch { bytes_max: 100, ..what };
    let error = github.fetch(&at(), &small, &mut Kept::default()).await.unwrap_err();
    assert_eq!(error.kind, ForgeErrorKind::TooLarge { bytes_max: 100 });

    let next = place.commit("src/a.txt", "three\n");
    let branch = RefName::branch("bobbin/fix").unwrap();
    let pack = place.pack(Some(base), next);
    let push = Push { name: branch, old: None, new: next, pack };
    assert_eq!(github.push(&at(), push.clone()).await, Ok(Pushed::Done));
    assert_eq!(github.push(&at(), push).await, Ok(Pushed::Done));
    assert_eq!(place.branch("bobbin/fix"), Some(next));
    let revoked = world.lines().iter().filter(|line| *line == REVOKE).count();
    assert_eq!(revoked, 4, "one token for each operation");
    let rights: Vec<Value> = world
        .seen()
        .into_iter()
        .filter(|seen| seen.line == MINT)
        .map(|seen| seen.body["permissions"]["contents"].clone())
        .collect();
    assert_eq!(rights, [json!("read"), json!("read"), json!("write"), json!("write")]);
}

#[tokio::test]
async fn refused_push_has_a_sentence_of_ours() {
    let place = ObjectPlace::filled();
    let world = World::serving(&place).await;
    let base = place.at("HEAD");
    let next = place.commit("src/a.txt", "three\n");
    let table = [
        (
            "error: GH001: Large files detected.",
            "A file is larger than GitHub accepts: 100 MB at most.",
        ),
        (
            "error: GH006: Protected branch update failed for refs/heads/main.",
            "The branch is protected.",
        ),
        (
            "error: GH008: Your push referenced at least 1 unknown Git LFS object:",
            "A file belongs to Git LFS, and Bobbin does not carry what is stored there.",
        ),
        (
            "error: GH013: Repository rule violations found for refs/heads/main.\n- Commits must have verified signatures.",
            "The repository accepts only signed commits, and an agent's are not signed.",
        ),
        (
            "error: GH013: Repository rule violations found for refs/heads/main.\n- Push cannot contain secrets",
            "GitHub found a secret in the commits.",
        ),
        (
            "error: GH013: Repository rule violations found for refs/heads/main.\n- Cannot create ref due to creations being restricted.",
            "A rule of the repository refuses it.",
        ),
        (
            "refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows` permission",
            "A workflow was changed, which Bobbin may not do: a person has to.",
        ),
    ];
    let github = world.github();
    let push = || Push {
        name: MAIN.parse().unwrap(),
        old: Some(base),
        new: next,
        pack: place.pack(Some(base), next),
    };
    for (said, sentence) in table {
        place.hook("pre-receive", &format!("#!/bin/sh\ncat >&2 <<'END'\n{said}\nEND\nexit 1\n"));
        let Ok(Pushed::Refused { why }) = github.push(&at(), push()).await else {
            panic!("{said}");
        };
        assert_eq!(why, format!("{sentence}\npre-receive hook declined\n{said}"));
    }
    place.hook(
        "pre-receive",
        "#!/bin/sh\necho 'ERROR: This repository was archived so it is read-only.' >&2\nexit 1\n",
    );
    let error = github.push(&at(), push()).await.unwrap_err();
    assert_eq!(error.kind, ForgeErrorKind::Archived);
    let secret = "ghp_0123456789abcdefghij";
    place.hook("pre-receive", &format!("#!/bin/sh\necho 'found {secret}' >&2\nexit 1\n"));
    let Ok(Pushed::Refused { why }) = github.push(&at(), push()).await else { panic!("{secret}") };
    assert_eq!(why, "pre-receive hook declined\nfound ***");
    assert_eq!(place.branch("main"), Some(base));
}

#[tokio::test]
async fn repository_that_is_gone_is_not_found() {
    let place = ObjectPlace::filled();
    let world = World::serving(&place).await;
    std::fs::remove_dir_all(&place.bare).unwrap();
    let error = world.github().refs(&at(), &[]).await.unwrap_err();
    assert_eq!(error.kind, ForgeErrorKind::NotFound);
    assert_eq!(world.lines().last().unwrap(), REVOKE);
}

#[test]
fn addresses_follow_from_the_api() {
    for (api, web) in [
        ("https://api.github.com", "https://github.com"),
        ("https://github.acme.example/api/v3/", "https://github.acme.example"),
        ("https://api.acme.ghe.com", "https://acme.ghe.com"),
        ("http://127.0.0.1:4310", "http://127.0.0.1:4310"),
    ] {
        let addresses = Addresses::of(api);
        assert_eq!((addresses.web.as_str(), addresses.git.as_str()), (web, web));
        assert_eq!(addresses.api, api.trim_end_matches('/'));
    }
    assert_eq!(Addresses::default(), Addresses::of("https://api.github.com"));
    let settings = |api: &str| GitHubSettings {
        addresses: Addresses::of(api),
        issuer: "1".to_owned(),
        private_key: Secret::default(),
        slug: "bobbin".to_owned(),
        client_id: String::new(),
        client_secret: CLIENT_SECRET.to_owned().into(),
    };
    let server = GitHub::new(settings("https://github.acme.example/api/v3")).unwrap();
    assert_eq!(
        server.facts().install,
        "https://github.acme.example/github-apps/bobbin/installations/new"
    );
    assert!(!format!("{server:?} {:?}", settings("https://x.example")).contains(CLIENT_SECRET));
    assert!(GitHub::new(settings("http://api.github.com")).is_err(), "https alone");
    assert!(GitHub::new(settings("https://10.0.0.1/api/v3")).is_err(), "no private address");
}

#[test]
fn repository_names_follow_the_forge() {
    let git = "https://github.com";
    let parsed = |text: &str| RepositoryName::parse(text, git).map(|name| name.to_string());
    for text in [
        "acme/web",
        "https://github.com/acme/web",
        "https://github.com/acme/web.git",
        "https://github.com/acme/web/",
        "https://GitHub.com/acme/web.git",
        "git@github.com:acme/web.git",
        "ssh://git@github.com/acme/web.git",
    ] {
        assert_eq!(parsed(text).as_deref(), Some("acme/web"), "{text}");
    }
    assert_eq!(parsed("acme/.github").as_deref(), Some("acme/.github"));
    assert_eq!(parsed("a_b-c/x.y_z").as_deref(), Some("a_b-c/x.y_z"));
    for text in [
        "",
        "acme",
        "acme/",
        "/web",
        "acme/web/pull/1",
        "acme/..",
        "../web",
        "./.",
        "acme/we b",
        "acme/web?x",
        "acme/web#x",
        "acme/wéb",
        "https://gitlab.com/acme/web",
        "http://github.com/acme/web",
        "https://github.com.evil.example/acme/web",
        "https://ada:x@github.com/acme/web",
        "git@evil.example:acme/web.git",
        "acme/web\n",
        "acme%2fweb/x",
        "acme/.git",
    ] {
        assert_eq!(parsed(text), None, "{text}");
    }
    assert_eq!(parsed(&format!("acme/{}", "a".repeat(101))), None);
}
