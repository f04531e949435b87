//! Setting the app up, and checking it.

use bobbin_forge::github::manifest::{EVENTS, exchange, manifest, page};
use bobbin_forge::github::{Addresses, NotTheApp, PERMISSIONS};
use bobbin_forge::{ForgeErrorKind, OwnerKind};
use serde_json::{Map, Value, json};

use crate::world::{World, installation, owner, reply};

fn app() -> Value {
    let permissions = PERMISSIONS.map(|(name, level)| (name.to_owned(), json!(level)));
    json!({
        "id": 5, "slug": "bobbin-acme", "name": "Bobbin", "client_id": "Iv23abc", "owner": owner(),
        "html_url": "https://github.example/apps/bobbin-acme", "permissions": Map::from_iter(permissions),
    })
}

#[test]
fn manifest_asks_for_what_is_needed() {
    let back = "http://127.0.0.1:4180/made";
    assert_eq!(
        manifest(&"n".repeat(40), "https://in.example/", back),
        json!({
            "name": "n".repeat(34),
            "url": "https://in.example",
            "hook_attributes": {"url": "https://in.example/github/webhooks", "active": true},
            "redirect_url": back,
            "callback_urls": ["https://in.example/github/signed-in"],
            "public": false,
            "default_permissions": {
                "contents": "write", "pull_requests": "write", "metadata": "read", "checks": "read",
                "statuses": "read", "actions": "read", "issues": "read", "members": "read",
            },
            "default_events": EVENTS,
        })
    );
    let github = Addresses::default();
    assert_eq!(page(&github, None, "s"), "https://github.com/settings/apps/new?state=s");
    let server = Addresses::of("https://git.example/api/v3");
    let expected = "https://git.example/organizations/acme/settings/apps/new?state=s";
    assert_eq!(page(&server, Some("acme"), "s"), expected);
}

#[tokio::test]
async fn code_is_exchanged_for_the_app() {
    let world = World::start().await;
    let mut made = app();
    made["client_secret"] = json!("a-client-secret");
    made["webhook_secret"] = json!("a-webhook-secret");
    made["pem"] = json!("-----BEGIN RSA PRIVATE KEY-----");
    world.on("POST /app-manifests/c0de/conversions", reply(201, made.clone()));
    let addresses = world.settings().addresses;
    let found = exchange(&addresses, "c0de").await.unwrap();
    assert_eq!((found.slug.as_str(), found.client_id.as_str()), ("bobbin-acme", "Iv23abc"));
    assert_eq!((found.owner.login.as_str(), found.owner.kind), ("acme", OwnerKind::Organization));
    assert_eq!(found.private_key.expose(), "-----BEGIN RSA PRIVATE KEY-----");
    assert_eq!(found.client_secret.expose(), "a-client-secret");
    assert_eq!(found.webhook_secret.expose(), "a-webhook-secret");
    let seen = world.one("POST /app-manifests/c0de/conversions");
    assert!(seen.headers.get("authorization").is_none(), "the code is enough");

    made["webhook_secret"] = Value::Null;
    world.on("POST /app-manifests/other/conversions", reply(201, made));
    assert!(exchange(&addresses, "other").await.unwrap().webhook_secret.is_empty());
    for code in ["used", "", "../app", &"c".repeat(201)] {
        let error = exchange(&addresses, code).await.unwrap_err();
        assert_eq!(error.kind, ForgeErrorKind::NotFound, "{code}");
        assert!(error.seen.contains("begin again"), "{}", error.seen);
    }
    assert_eq!(world.lines().len(), 3, "what is no code is not sent");
}

#[tokio::test]
async fn app_says_whether_it_is_right() {
    let world = World::start().await;
    let said = |status, message: &str| reply(status, json!({"message": message}));
    let early = "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires";
    let late = "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued";
    world.on("GET /app", said(401, early));
    world.on("GET /app", said(401, late));
    world.on("GET /app", said(401, "A JSON web token could not be decoded"));
    world.on("GET /app", said(404, "Integration not found"));
    world.on("GET /app", said(403, "no"));
    let mut less = app();
    less["permissions"]["contents"] = json!("read");
    less["permissions"]["workflows"] = json!("write");
    world.on("GET /app", reply(200, less));
    world.on("GET /app", reply(200, app()));
    let github = world.github();
    for expected in [NotTheApp::Clock, NotTheApp::Clock, NotTheApp::Key, NotTheApp::Id] {
        assert_eq!(github.app().await, Err(expected));
    }
    assert!(matches!(github.app().await, Err(NotTheApp::Failed(_))));
    let found = github.app().await.unwrap();
    assert_eq!((found.name.as_str(), found.owner()), ("Bobbin", "acme"));
    assert_eq!(
        (found.lacks(), found.surplus()),
        (vec!["contents: write".to_owned()], vec!["workflows: write".to_owned()])
    );
    let found = github.app().await.unwrap();
    assert_eq!((found.lacks(), found.surplus()), (vec![], vec![]));
}

#[tokio::test]
async fn unknown_app_ends_no_installation() {
    let world = World::start().await;
    let unknown = reply(404, json!({"message": "Integration not found"}));
    world.on("GET /app/installations/7", unknown.clone());
    world.on("GET /repos/acme/web/installation", unknown);
    let github = world.github();
    let one = bobbin_forge::Forge::installation_by_id(&github, 7).await.unwrap_err();
    let other = bobbin_forge::Forge::repository(&github, &crate::world::name()).await.unwrap_err();
    for error in [one, other] {
        assert_eq!(error.kind, ForgeErrorKind::Other);
        assert!(error.seen.contains("GitHubAppId"), "{}", error.seen);
    }
}

#[tokio::test]
async fn installations_and_hook_are_listed() {
    let world = World::start().await;
    let page = |first: u64, count: u64| -> Value {
        (first..first + count)
            .map(|id| {
                let mut one = installation();
                one["id"] = json!(id);
                one
            })
            .collect()
    };
    world.on("GET /app/installations", reply(200, page(1, 100)));
    world.on("GET /app/installations", reply(200, page(101, 1)));
    let hook = json!({"url": "https://in.example/github/webhooks", "content_type": "form"});
    world.on("GET /app/hook/config", reply(200, hook));
    let github = world.github();
    let all = github.installations().await.unwrap();
    assert_eq!((all.len(), all[100].id), (101, 101));
    assert!(all[0].missing.is_empty());
    assert_eq!(
        world.lines(),
        [
            "GET /app/installations?per_page=100&page=1",
            "GET /app/installations?per_page=100&page=2"
        ]
    );
    let hook = github.hook().await.unwrap();
    assert_eq!(hook.url, "https://in.example/github/webhooks");
    assert!(!hook.is_json && !hook.is_signed);
}

#[tokio::test]
async fn lost_webhooks_are_sent_again() {
    let world = World::start().await;
    let delivery = |id: u64, guid: &str, status: &str| json!({"id": id, "guid": guid, "event": "pull_request", "status": status});
    let list = "GET /app/hook/deliveries";
    let next =
        format!("<{}/app/hook/deliveries?per_page=100&cursor=v1_7>; rel=\"next\"", world.base());
    // The newest first: one was sent again and taken, one was sent again in vain.
    let first = json!([delivery(9, "a", "OK"), delivery(8, "b", "timed out")]);
    world.on(list, reply(200, first).with("link", next));
    let second = json!([
        delivery(7, "b", "Invalid HTTP Response: 503"),
        delivery(6, "a", "failed to connect to host"),
        delivery(5, "c", "failed to connect to host"),
    ]);
    world.on(list, reply(200, second));
    let github = world.github();
    let lost = github.lost_webhooks().await.unwrap();
    let seen: Vec<(u64, &str)> = lost.iter().map(|one| (one.id, &*one.why)).collect();
    assert_eq!(seen, [(8, "timed out"), (5, "failed to connect to host")]);
    assert!(world.lines().iter().any(|line| line.ends_with("?per_page=100&cursor=v1_7")));
    world.on("POST /app/hook/deliveries/8/attempts", reply(202, json!({})));
    github.send_again(&lost[0]).await.unwrap();
    world.one("POST /app/hook/deliveries/8/attempts");
}
