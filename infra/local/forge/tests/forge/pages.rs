//! What a browser does: signing in, allowing an app, installing it, making one, and pressing a pull request's buttons.

use std::collections::BTreeMap;

use base64::Engine as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::world::{World, location};

const CALLBACK: &str = "http://127.0.0.1:9/github/callback";

/// Parameters of an address.
fn parameters(address: &str) -> BTreeMap<String, String> {
    let (_, query) = address.split_once('?').unwrap_or_default();
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

/// What a program trades for tokens.
async fn trade(world: &World, fields: &[(&str, &str)]) -> Value {
    let request = world.http.post(format!("{}/login/oauth/access_token", world.forge.git()));
    let secret = [
        ("client_id", world.id.client_id.as_str()),
        ("client_secret", world.id.client_secret.as_str()),
    ];
    let fields: BTreeMap<&str, &str> = secret.into_iter().chain(fields.iter().copied()).collect();
    let response = request.header("accept", "application/json").form(&fields).send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

/// The code with which a person who allows the app comes back.
async fn code(world: &World, cookie: &str, more: &[(&str, &str)]) -> String {
    let own = [
        ("client_id", world.id.client_id.as_str()),
        ("redirect_uri", CALLBACK),
        ("state", "s&1"),
        ("authorize", "1"),
    ];
    let fields: Vec<(&str, &str)> = own.into_iter().chain(more.iter().copied()).collect();
    let sent = world.form("/login/oauth/authorize", cookie, &fields).await;
    assert_eq!(sent.status(), 303);
    let back = location(&sent);
    assert!(back.starts_with(CALLBACK), "{back}");
    let parameters = parameters(&back);
    assert_eq!(parameters["state"], "s&1");
    parameters["code"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn people_sign_in_to_an_app() {
    let world = World::start("sign-in").await;
    let asked = format!(
        "/login/oauth/authorize?client_id={}&redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2Fgithub%2Fcallback&state=s%261",
        world.id.client_id
    );
    // Who is not signed in does that first, and comes back.
    let first = world.http.get(format!("{}{asked}", world.forge.git())).send().await.unwrap();
    assert_eq!(first.status(), 303);
    assert!(parameters(&location(&first))["return_to"].starts_with("/login/oauth/authorize?"));
    let wrong = [("login", "ada"), ("password", "wrong")];
    assert_eq!(world.form("/login", "", &wrong).await.status(), 401);
    let ada = world.signed_in("ada").await;
    let (status, page) = world.page(&asked, &ada).await;
    assert_eq!(status, 200);
    assert!(page.contains("<strong>ada</strong>") && page.contains("Authorize bobbin-laptop"));
    let elsewhere = asked.replace("127.0.0.1%3A9", "evil.example");
    let (status, page) = world.page(&elsewhere, &ada).await;
    assert_eq!(status, 400);
    assert!(page.contains("The redirect_uri is not associated with this application."));

    // Once, for this app and this address alone.
    let one = code(&world, &ada, &[]).await;
    let bad = trade(&world, &[("code", &one), ("client_secret", "wrong")]).await;
    assert_eq!(bad["error"], "incorrect_client_credentials");
    let tokens = trade(&world, &[("code", &one), ("redirect_uri", CALLBACK)]).await;
    assert_eq!(tokens["token_type"], "bearer");
    assert_eq!(tokens["expires_in"], 28_800);
    let again = trade(&world, &[("code", &one)]).await;
    assert_eq!(again["error"], "bad_verification_code");
    let two = code(&world, &ada, &[]).await;
    let moved =
        trade(&world, &[("code", &two), ("redirect_uri", "http://127.0.0.1:9/other")]).await;
    assert_eq!(moved["error"], "redirect_uri_mismatch");
    let text = "a-verifier-that-is-long-enough-to-be-one-of-them";
    let digest = Sha256::digest(text.as_bytes());
    let challenge = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(digest);
    let bound = [("code_challenge", challenge.as_str()), ("code_challenge_method", "S256")];
    let three = code(&world, &ada, &bound).await;
    assert_eq!(trade(&world, &[("code", &three)]).await["error"], "bad_verification_code");
    let four = code(&world, &ada, &bound).await;
    let verified = trade(&world, &[("code", &four), ("code_verifier", text)]).await;
    assert!(verified["access_token"].as_str().unwrap().starts_with("ghu_"));

    // The person's token has what both have.
    let token = tokens["access_token"].as_str().unwrap();
    assert_eq!(world.get("/user", token).await.1["login"], "ada");
    let membership = world.get("/user/memberships/orgs/laptop", token).await.1;
    assert_eq!((&membership["role"], &membership["state"]), (&json!("admin"), &json!("active")));
    let seen = world.get("/user/installations", token).await.1;
    assert_eq!(seen["installations"][0]["id"], world.id.installation);
    let mine = json!({ "name": "mine", "private": true, "auto_init": true });
    world.as_ada(Method::POST, "/user/repos", mine).await;
    assert_eq!(world.get("/repos/ada/mine", token).await.0, 404);
    world.repository("web", json!({})).await;
    assert_eq!(world.get("/repos/laptop/web", token).await.0, 200);
    let renamed = world.api(Method::PATCH, "/repos/laptop/web", token).json(&json!({"name": "x"}));
    assert_eq!(world.send(renamed).await.0, 403);

    // Members and strangers.
    for (login, status, role) in [("grace", 200, json!("member")), ("mallory", 404, Value::Null)] {
        let cookie = world.signed_in(login).await;
        let code = code(&world, &cookie, &[]).await;
        let tokens = trade(&world, &[("code", &code)]).await;
        let token = tokens["access_token"].as_str().unwrap();
        let (found, told) = world.get("/user/memberships/orgs/laptop", token).await;
        assert_eq!((found.as_u16(), &told["role"]), (status, &role), "{login}");
        let pulls = json!({ "title": "A", "head": "a", "base": "main" });
        let create = world.api(Method::POST, "/repos/laptop/web/pulls", token).json(&pulls);
        let refused = if login == "grace" { 403 } else { 404 };
        assert_eq!(world.send(create).await.0, refused, "{login}");
    }

    // Cancelled.
    let fields = [
        ("client_id", world.id.client_id.as_str()),
        ("redirect_uri", CALLBACK),
        ("authorize", "0"),
    ];
    let cancelled = world.form("/login/oauth/authorize", &ada, &fields).await;
    assert_eq!(parameters(&location(&cancelled))["error"], "access_denied");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_people_are_replaced_and_end() {
    let world = World::start("refresh").await;
    let ada = world.signed_in("ada").await;
    let code = code(&world, &ada, &[]).await;
    let first = trade(&world, &[("code", &code)]).await;
    let text = |value: &Value, name: &str| value[name].as_str().unwrap().to_owned();
    let refresh = async |token: &str| {
        let fields = [("grant_type", "refresh_token"), ("refresh_token", token)];
        trade(&world, &fields).await
    };
    let second = refresh(&text(&first, "refresh_token")).await;
    // Both were replaced.
    assert_eq!(world.get("/user", &text(&first, "access_token")).await.0, 401);
    assert_eq!(refresh(&text(&first, "refresh_token")).await["error"], "bad_refresh_token");
    assert_eq!(world.get("/user", &text(&second, "access_token")).await.0, 200);
    world.control("clock", json!({ "advance_ms": 8 * 3_600_000 + 1 })).await;
    assert_eq!(world.get("/user", &text(&second, "access_token")).await.0, 401);
    let third = refresh(&text(&second, "refresh_token")).await;
    let token = text(&third, "access_token");

    // The app looks at a token, and revokes it.
    let path = format!("/applications/{}/token", world.id.client_id);
    let by_app = |method: Method, path: &str| {
        let request = world.http.request(method, format!("{}{path}", world.forge.api()));
        let request = request.basic_auth(&world.id.client_id, Some(&world.id.client_secret));
        request.json(&json!({ "access_token": token }))
    };
    let (status, looked) = world.send(by_app(Method::POST, &path)).await;
    assert_eq!((status.as_u16(), &looked["user"]["login"]), (200, &json!("ada")));
    // The person ends everything on a page, and the app hears of it.
    let (_, page) = world.page("/settings/apps/authorizations", &ada).await;
    assert!(page.contains("Revoke bobbin-laptop"), "{page}");
    let fields = [("app", world.id.app_id.to_string())];
    let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
    world.form("/settings/apps/authorizations", &ada, &fields).await;
    let told = world.told("github_app_authorization", "revoked", 1).await;
    assert_eq!(told[0].json()["sender"]["login"], "ada");
    assert_eq!(world.get("/user", &token).await.0, 401);
    assert_eq!(refresh(&text(&third, "refresh_token")).await["error"], "bad_refresh_token");
    assert_eq!(world.send(by_app(Method::POST, &path)).await.0, 404);
    assert_eq!(world.send(by_app(Method::DELETE, &path)).await.0, 404);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_is_installed_and_changed_by_buttons() {
    let world = World::start("install").await;
    let web = world.repository("web", json!({})).await;
    let ada = world.signed_in("ada").await;
    let at = format!("/organizations/laptop/settings/installations/{}", world.id.installation);
    let web_id = web.to_string();
    let choose = [("action", "repositories"), ("selection", "selected")];
    // Only who administrates the account.
    for login in ["grace", "mallory"] {
        let cookie = world.signed_in(login).await;
        assert_eq!(world.page(&at, &cookie).await.0, 404, "{login}");
        assert_eq!(world.form(&at, &cookie, &choose).await.status(), 404, "{login}");
    }
    let none = world.form(&at, &ada, &choose).await;
    assert_eq!(none.status(), 303);
    let removed = world.told("installation_repositories", "removed", 1).await;
    assert_eq!(removed[0].json()["repositories_removed"][0]["full_name"], "laptop/web");
    let path = "/repos/laptop/web/installation";
    assert_eq!(world.get(path, &world.app_token()).await.0, 404);
    let one = [choose[0], choose[1], ("repository_ids", web_id.as_str())];
    world.form(&at, &ada, &one).await;
    world.told("installation_repositories", "added", 1).await;
    assert_eq!(world.get(path, &world.app_token()).await.0, 200);
    for (action, count) in [("suspend", 1), ("unsuspend", 1)] {
        world.form(&at, &ada, &[("action", action)]).await;
        world.told("installation", action, count).await;
    }
    let token = world.mint(json!({})).await;
    world.form(&at, &ada, &[("action", "uninstall")]).await;
    world.told("installation", "deleted", 1).await;
    assert_eq!(world.get("/installation/repositories", &token).await.0, 401);
    assert_eq!(world.get(path, &world.app_token()).await.0, 404);

    // Installed again, on an account of one's own too.
    let new = "/apps/bobbin-laptop/installations/new";
    let (_, page) = world.page(new, &ada).await;
    assert!(page.contains("Install on laptop") && page.contains("Install on ada"), "{page}");
    let organization = world.get("/users/laptop", "").await.1["id"].to_string();
    let fields = [("target_id", organization.as_str()), ("selection", "all"), ("state", "s")];
    let mallory = world.signed_in("mallory").await;
    assert_eq!(world.form(new, &mallory, &fields).await.status(), 404);
    assert_eq!(world.form(new, &ada, &fields).await.status(), 303);
    let created = world.told("installation", "created", 1).await;
    assert_eq!(created[0].json()["repositories"][0]["name"], "web");
    assert_eq!(world.get(path, &world.app_token()).await.0, 200);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_is_made_from_a_manifest() {
    let world = World::start("manifest").await;
    let manifest = json!({
        "name": "Bobbin of ours", "url": "https://bobbin.example", "redirect_url": "http://127.0.0.1:9/setup?a=b",
        "callback_urls": [CALLBACK], "hook_attributes": { "url": format!("{}/other", world.hook.base()) },
        "default_permissions": { "contents": "write" }, "default_events": ["push"],
    });
    let text = manifest.to_string();
    // Another page sends it.
    let at = format!("{}/organizations/laptop/settings/apps/new?state=s", world.forge.git());
    let request = world.http.post(at).header("origin", "http://127.0.0.1:9");
    let page = request.form(&[("manifest", &text)]).send().await.unwrap();
    assert_eq!(page.status(), 200);
    let page = page.text().await.unwrap();
    assert!(page.contains("Create GitHub App on laptop") && page.contains("name=\"password\""));
    let fields = [
        ("manifest", text.as_str()),
        ("state", "s"),
        ("owner", "laptop"),
        ("name", "Bobbin of ours"),
        ("login", "ada"),
        ("password", world.id.password.as_str()),
    ];
    let mut wrong = fields;
    wrong[4].1 = "grace";
    assert_eq!(world.form("/settings/apps/manifest", "", &wrong).await.status(), 404);
    let made = world.form("/settings/apps/manifest", "", &fields).await;
    let back = location(&made);
    assert!(back.starts_with("http://127.0.0.1:9/setup?a=b&code="), "{back}");
    assert_eq!(parameters(&back)["state"], "s");
    let trade = format!("/app-manifests/{}/conversions", parameters(&back)["code"]);
    let (status, app) = world.send(world.api(Method::POST, &trade, "")).await;
    assert_eq!(status, 201);
    assert_eq!(app["slug"], "bobbin-of-ours");
    assert!(app["pem"].as_str().unwrap().starts_with("-----BEGIN RSA PRIVATE KEY-----"));
    assert_eq!(world.send(world.api(Method::POST, &trade, "")).await.0, 404);
    crate::world::wait_for("ping", async || {
        world.hook.received().iter().any(|one| one.line == "POST /other")
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_shows_and_merges_pull_request() {
    let world = World::start("press").await;
    world.repository("web", json!({})).await;
    let ada = world.id.user_token.clone();
    world.clone_of("laptop/web", &ada, "clone").await;
    world.commit("clone", "a.html", "<script>alert(1)</script>\n").await;
    world.push("clone", "laptop/web", &ada, "a").await.well();
    let new =
        json!({ "title": "<b>A</b>", "head": "a", "base": "main", "body": "<i>", "draft": true });
    world.as_ada(Method::POST, "/repos/laptop/web/pulls", new).await;
    let at = "/laptop/web/pull/1";
    let cookie = world.signed_in("ada").await;
    let (_, page) = world.page(at, &cookie).await;
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains("&lt;b&gt;A"));
    assert!(!page.contains("<script") && !page.contains("<b>A"), "{page}");
    assert!(page.contains("Ready for review") && !page.contains("Merge pull request"));

    // The pane's own view, without a browser.
    let view = world.forge.pull_request("laptop/web", 1).await.unwrap();
    assert_eq!(
        (view.state, view.files[0].path.as_str(), view.files[0].additions),
        ("draft", "a.html", 1)
    );
    let all = world.forge.repositories().await.unwrap();
    let branches: Vec<&str> = all[0].branches.iter().map(|one| one.name.as_str()).collect();
    assert_eq!((branches, all[0].pull_requests.len()), (vec!["a", "main"], 1));

    // Who may not write sees no buttons, and who is nobody sees nothing.
    let grace = world.signed_in("grace").await;
    let (status, page) = world.page(at, &grace).await;
    assert!(status == 200 && !page.contains("<form"), "{page}");
    let merge = [("action", "merge")];
    assert_eq!(world.form(at, &grace, &merge).await.status(), 403);
    assert_eq!(world.page(at, "").await.0, StatusCode::NOT_FOUND);
    let base = world.forge.git();
    let foreign = world.http.post(format!("{base}{at}")).header("cookie", &cookie);
    let foreign =
        foreign.header("origin", "http://evil.example").form(&merge).send().await.unwrap();
    assert_eq!(foreign.status(), 403);

    assert_eq!(world.form(at, &cookie, &merge).await.status(), 405);
    assert_eq!(world.form(at, &cookie, &[("action", "ready")]).await.status(), 303);
    let stale = [("action", "merge"), ("sha", "0000000000000000000000000000000000000000")];
    assert_eq!(world.form(at, &cookie, &stale).await.status(), 409);
    let seen = [("action", "merge"), ("sha", view.head_sha.as_str())];
    assert_eq!(world.form(at, &cookie, &seen).await.status(), 303);
    let closed = world.told("pull_request", "closed", 1).await;
    let told = &closed[0].json()["pull_request"];
    assert_eq!((&told["merged"], &told["merged_by"]["login"]), (&json!(true), &json!("ada")));
    world.git("clone", &["pull", "-q", "origin", "main"]).await.well();
    let subject = world.git("clone", &["log", "-1", "--format=%s", "FETCH_HEAD"]).await.well();
    assert_eq!(subject, "Merge pull request #1 from laptop/a");

    // An address that signs in, once.
    let link = world.forge.sign_in_url("ada", at).unwrap();
    let opened = world.http.get(&link).send().await.unwrap();
    assert_eq!((opened.status().as_u16(), location(&opened).as_str()), (303, at));
    assert_eq!(world.http.get(&link).send().await.unwrap().status(), 401);
    world.end().await;
}
