use crate::harness::{CONTROL_KEY, start, until};
use futures::StreamExt;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const SCRIPTS: [&str; 8] = [
    "app.js",
    "dom.js",
    "text.js",
    "discord.js",
    "slack.js",
    "composer.js",
    "panel.js",
    "forge.js",
];

#[tokio::test]
async fn page_runs_no_foreign_code() {
    let harness = start().await;
    let index = harness.http.get(harness.chat.page()).bearer_auth(CONTROL_KEY);
    let index = index.send().await.unwrap();
    let policy = index.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let html = index.text().await.unwrap();
    assert!(!html.contains("http://") && !html.contains("https://") && !html.contains("style="));
    for script in SCRIPTS {
        let text = harness
            .http
            .get(format!("{}/{script}", harness.chat.page()))
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        for way in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "createContextualFragment",
        ] {
            assert!(!text.contains(way), "{script} uses {way}");
        }
    }
    harness.end().await;
}

#[tokio::test]
async fn page_and_controls_need_key() {
    let harness = start().await;
    let plain =
        reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let page = harness.chat.page();
    for path in [
        "/live",
        "/ui/state",
        "/ui/inspector",
        "/ui/forge",
        "/ui/forge/pull?repository=acme/tool&number=1",
        "/ui/discord/messages?channel_id=1",
        "/ui/slack/messages?channel=C1",
        "/_control/seeds",
        "/_control/discord/requests",
    ] {
        let request = || plain.get(format!("{page}{path}"));
        for request in [
            request(),
            request().bearer_auth("another"),
            request().header("cookie", "bobbin-key-1=x"),
        ] {
            assert_eq!(request.send().await.unwrap().status(), 401, "{path}");
        }
    }
    for path in
        ["/ui/upload?name=x", "/ui/forge", "/_control/discord/interact", "/_control/slack/act"]
    {
        let sent = plain.post(format!("{page}{path}")).body("{}").send().await;
        assert_eq!(sent.unwrap().status(), 401, "{path}");
    }
    let asked = plain.get(format!("{page}/?key=another")).send().await.unwrap();
    assert_eq!(asked.status(), 401);
    assert!(asked.headers().get("set-cookie").is_none());
    let told = asked.text().await.unwrap();
    assert!(told.contains("the whole address that <code>cargo run</code> printed"), "{told}");

    let login_url = bobbin_local_chat::login_url(&page, CONTROL_KEY);
    let entered = plain.get(login_url).send().await.unwrap();
    assert_eq!(
        (entered.status().as_u16(), &entered.headers()["location"]),
        (303, &"/".parse().unwrap())
    );
    let cookie = entered.headers()["set-cookie"].to_str().unwrap().to_owned();
    let port = page.rsplit(':').next().unwrap();
    assert_eq!(
        cookie,
        format!("bobbin-key-{port}={CONTROL_KEY}; Path=/; HttpOnly; SameSite=Strict")
    );
    let cookie = cookie.split(';').next().unwrap();
    let shown = plain.get(&page).header("cookie", format!("a=b; {cookie}"));
    assert_eq!(shown.send().await.unwrap().status(), 200);
    let foreign = plain.get(&page).header("cookie", cookie).header("origin", "http://127.0.0.1:1");
    assert_eq!(foreign.send().await.unwrap().status(), 403);
    harness.end().await;
}

#[tokio::test]
async fn uploaded_files_cannot_run_scripts() {
    let harness = start().await;
    let url = format!("{}/ui/upload?name=x.html", harness.chat.page());
    let sent = harness
        .http
        .post(url)
        .bearer_auth(CONTROL_KEY)
        .header("content-type", "text/html")
        .body("<script>1</script>")
        .send()
        .await
        .unwrap();
    let file: Value = sent.json().await.unwrap();
    let served = harness.http.get(file["url"].as_str().unwrap()).send().await.unwrap();
    assert_eq!(served.headers()["content-disposition"], "attachment");
    assert!(served.headers()["content-security-policy"].to_str().unwrap().starts_with("sandbox"));
    harness.end().await;
}

#[tokio::test]
async fn viewers_get_live_updates() {
    let harness = start().await;
    let live = harness
        .http
        .get(format!("{}/live", harness.chat.page()))
        .bearer_auth(CONTROL_KEY)
        .send()
        .await
        .unwrap();
    let heard = Arc::new(Mutex::new(String::new()));
    let (ear, mut chunks) = (Arc::clone(&heard), live.bytes_stream());
    tokio::spawn(async move {
        while let Some(Ok(chunk)) = chunks.next().await {
            ear.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk));
        }
    });
    let hears = |word: &str| heard.lock().unwrap().contains(word);
    until("a new viewer reads everything", || hears("everything")).await;
    harness.slack("chat.postMessage", json!({"channel": "general", "text": "hi"})).await;
    until("the message is announced", || hears(r#""kind":"message""#)).await;
    until("the records are announced", || hears("inspector")).await;
    let inspected = harness.ui("inspector").await;
    assert_eq!(inspected["sessions"][0]["phase"], "active");
    harness.end().await;
}

#[tokio::test]
async fn replies_without_their_root_are_shown() {
    let harness = start().await;
    let posted = harness
        .slack(
            "chat.postMessage",
            json!({"channel": "general", "text": "answer", "thread_ts": "1700000000.000100"}),
        )
        .await;
    assert_eq!(posted["ok"], true);
    let state = harness.ui("state").await;
    assert_eq!(state["slack"]["threads"][0]["ts"], "1700000000.000100");
    let replies = harness
        .slack(
            "conversations.replies",
            json!({"channel": posted["channel"], "ts": "1700000000.000100"}),
        )
        .await;
    assert_eq!(replies["messages"][0]["text"], "answer");
    harness.end().await;
}
