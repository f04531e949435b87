use crate::fake::{until, world};
use futures::StreamExt;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const SCRIPTS: [&str; 7] = [
    "app.js",
    "dom.js",
    "text.js",
    "discord.js",
    "slack.js",
    "composer.js",
    "panel.js",
];

#[tokio::test]
async fn the_page_loads_nothing_foreign_and_never_parses_text_as_markup() {
    let world = world().await;
    let index = world.http.get(world.chat.page()).send().await.unwrap();
    let policy = index.headers()["content-security-policy"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    let html = index.text().await.unwrap();
    assert!(!html.contains("http://") && !html.contains("https://") && !html.contains("style="));
    for script in SCRIPTS {
        let text = world
            .http
            .get(format!("{}/{script}", world.chat.page()))
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
    world.end().await;
}

#[tokio::test]
async fn a_kept_file_runs_nothing() {
    let world = world().await;
    let url = format!("{}/ui/upload?name=x.html", world.chat.page());
    let sent = world
        .http
        .post(url)
        .header("content-type", "text/html")
        .body("<script>1</script>")
        .send()
        .await
        .unwrap();
    let file: Value = sent.json().await.unwrap();
    let served = world
        .http
        .get(file["url"].as_str().unwrap())
        .send()
        .await
        .unwrap();
    assert_eq!(served.headers()["content-disposition"], "attachment");
    assert!(
        served.headers()["content-security-policy"]
            .to_str()
            .unwrap()
            .starts_with("sandbox")
    );
    world.end().await;
}

#[tokio::test]
async fn viewers_hear_of_messages_and_of_session_records() {
    let world = world().await;
    let live = world
        .http
        .get(format!("{}/live", world.chat.page()))
        .send()
        .await
        .unwrap();
    let heard = Arc::new(Mutex::new(String::new()));
    let (ear, mut chunks) = (Arc::clone(&heard), live.bytes_stream());
    tokio::spawn(async move {
        while let Some(Ok(chunk)) = chunks.next().await {
            ear.lock()
                .unwrap()
                .push_str(&String::from_utf8_lossy(&chunk));
        }
    });
    let hears = |word: &str| heard.lock().unwrap().contains(word);
    until("a new viewer reads everything", || hears("everything")).await;
    world
        .slack(
            "chat.postMessage",
            json!({"channel": "general", "text": "hi"}),
        )
        .await;
    until("the message is announced", || hears(r#""kind":"message""#)).await;
    until("the records are announced", || hears("backstage")).await;
    let behind: Value = world
        .http
        .get(format!("{}/ui/backstage", world.chat.page()))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(behind["sessions"][0]["phase"], "active");
    world.end().await;
}

#[tokio::test]
async fn replies_to_a_root_that_is_not_kept_are_shown() {
    let world = world().await;
    let posted = world
        .slack(
            "chat.postMessage",
            json!({"channel": "general", "text": "answer", "thread_ts": "1700000000.000100"}),
        )
        .await;
    assert_eq!(posted["ok"], true);
    let state: Value = world
        .http
        .get(format!("{}/ui/state", world.chat.page()))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(state["slack"]["threads"][0]["ts"], "1700000000.000100");
    let replies = world
        .slack(
            "conversations.replies",
            json!({"channel": posted["channel"], "ts": "1700000000.000100"}),
        )
        .await;
    assert_eq!(replies["messages"][0]["text"], "answer");
    world.end().await;
}
