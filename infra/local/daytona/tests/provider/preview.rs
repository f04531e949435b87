use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::HeaderMap;
use axum::response::sse::{Event, Sse};
use axum::routing::{get, post};
use futures::StreamExt;
use serde_json::{Value, json};

use crate::world::World;

const TOKEN: &str = "x-daytona-preview-token";

/// A server of the test's own, on the port that stands for the sandbox's 4096.
struct Inside {
    posts: Arc<AtomicU32>,
    task: tokio::task::JoinHandle<()>,
}

impl Inside {
    async fn start(world: &World) -> Self {
        let posts = Arc::new(AtomicU32::new(0));
        let counted = posts.clone();
        let events = || async {
            let endless = futures::stream::unfold(0, |number| async move {
                if number > 0 {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Some((
                    Ok::<_, Infallible>(Event::default().data(format!("event {number}"))),
                    number + 1,
                ))
            });
            Sse::new(endless)
        };
        let headers = |headers: HeaderMap| async move {
            let seen = headers
                .iter()
                .map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap())));
            axum::Json(Value::Object(seen.collect()))
        };
        let router =
            Router::new().route("/headers", get(headers)).route("/events", get(events)).route(
                "/count",
                post(
                    move || async move { (counted.fetch_add(1, Ordering::SeqCst) + 1).to_string() },
                ),
            );
        let port = world.provider.sandboxes()[0].port;
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Inside { posts, task }
    }
}

async fn link(world: &World, id: &str) -> (String, String) {
    let (_, link) = world.get(&format!("/api/sandbox/{id}/ports/4096/preview-url")).await;
    (link["url"].as_str().unwrap().to_owned(), link["token"].as_str().unwrap().to_owned())
}

/// Asks for something with the token.
async fn open(world: &World, url: &str, token: &str) -> reqwest::Response {
    let request = world.http.get(url).header(TOKEN, token);
    request.send().await.unwrap()
}

#[tokio::test]
async fn preview_strips_its_token_keeps_authorization() {
    let world = World::sharing("preview").await;
    let id = world.sandbox("preview").await;
    let (url, token) = link(&world, &id).await;
    let closed = open(&world, &format!("{url}/x"), &token).await;
    assert_eq!(closed.status(), 502);
    assert!(closed.bytes().await.unwrap().is_empty(), "nothing listens: an empty body");

    let inside = Inside::start(&world).await;
    let seen = world
        .http
        .get(format!("{url}/headers"))
        .header(TOKEN, &token)
        .basic_auth("opencode", Some("pw"));
    let seen: Value = seen.send().await.unwrap().json().await.unwrap();
    assert_eq!(seen["authorization"], "Basic b3BlbmNvZGU6cHc=");
    assert!(seen.get(TOKEN).is_none(), "{seen}");
    assert!(seen["host"].as_str().unwrap().starts_with("localhost:"));
    assert!(url.ends_with(seen["x-forwarded-host"].as_str().unwrap()));

    for wrong in [world.http.get(&url), world.http.get(&url).header(TOKEN, "wrong")] {
        let answer = wrong.send().await.unwrap();
        assert_eq!(answer.status(), 307);
        assert!(answer.headers().contains_key("location"));
    }
    let key = world.http.get(format!("{url}/headers")).bearer_auth(world.provider.api_key());
    let seen: Value = key.send().await.unwrap().json().await.unwrap();
    assert!(seen.get("authorization").is_none(), "the key is taken off");

    let signed = world
        .get(&format!("/api/sandbox/{id}/ports/4096/signed-preview-url?expiresInSeconds=60"))
        .await
        .1;
    let signed = signed["url"].as_str().unwrap().replace("/?", "/headers?");
    let first = world.http.get(&signed).send().await.unwrap();
    assert_eq!(first.status(), 200);
    let cookie =
        first.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    assert!(cookie.contains(&id) && cookie.contains("4096"), "{cookie}");
    let second = world
        .http
        .get(format!("{url}/headers"))
        .header("cookie", format!("own=1; {cookie}; bobbin-key-4100=k"))
        .send()
        .await
        .unwrap();
    assert_eq!(second.status(), 200);
    let seen: Value = second.json().await.unwrap();
    assert_eq!(seen["cookie"], "own=1", "no token goes on inside");
    world.advance(2).await;
    assert_eq!(world.http.get(&signed).send().await.unwrap().status(), 307, "a signed link ends");
    inside.task.abort();
    world.end().await;
}

#[tokio::test]
async fn every_start_renews_preview_token() {
    let world = World::sharing("rotation").await;
    let id = world.sandbox("rotation").await;
    let (url, old) = link(&world, &id).await;
    world.act(&id, "stop").await;
    world.reach(&id, "stopped").await;
    let answer = open(&world, &url, &old).await;
    assert_eq!(answer.status(), 400);
    assert!(answer.text().await.unwrap().contains("Is the Sandbox started?"));
    world.arm(json!({ "fault": "stale_preview", "ms": 60_000 })).await;
    world.act(&id, "start").await;
    world.reach(&id, "started").await;
    let (url, new) = link(&world, &id).await;
    assert_ne!(old, new);
    let status = async |token: &str| open(&world, &url, token).await.status().as_u16();
    assert_eq!(
        (status(&old).await, status(&new).await),
        (502, 307),
        "the proxy's cache is stale for a while"
    );
    world.advance(2).await;
    assert_eq!((status(&old).await, status(&new).await), (307, 502));
    world.end().await;
}

#[tokio::test]
async fn streamed_events_count_as_activity() {
    let world = World::sharing("stream").await;
    let id = world.sandbox("stream").await;
    let inside = Inside::start(&world).await;
    let (url, token) = link(&world, &id).await;
    let stream = open(&world, &format!("{url}/events"), &token).await;
    let mut stream = stream.bytes_stream();
    let first = tokio::time::timeout(Duration::from_secs(5), stream.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(first.starts_with(b"data: event 0"), "{first:?}");
    world.advance(60).await;
    assert_eq!(
        world.get(&format!("/api/sandbox/{id}")).await.1["state"],
        "started",
        "an open stream is activity"
    );
    drop(stream);
    crate::world::wait_for("auto-stop without a stream", async || {
        world.advance(60).await;
        world.get(&format!("/api/sandbox/{id}")).await.1["state"] == "stopped"
    })
    .await;
    inside.task.abort();
    world.end().await;
}

#[tokio::test]
async fn armed_preview_faults_happen_once() {
    let world = World::sharing("preview-faults").await;
    let id = world.sandbox("preview-faults").await;
    let inside = Inside::start(&world).await;
    let (url, token) = link(&world, &id).await;
    let count = async || {
        let sent = world
            .http
            .post(format!("{url}/count"))
            .header(TOKEN, &token)
            .body("prompt")
            .send()
            .await
            .unwrap();
        sent.text().await.unwrap()
    };
    assert_eq!(count().await, "1");
    world.arm(json!({ "fault": "replay_post" })).await;
    assert_eq!(count().await, "3", "sent twice");
    assert_eq!(inside.posts.load(Ordering::SeqCst), 3);
    assert_eq!(count().await, "4");

    world.arm(json!({ "fault": "cut_stream", "after_bytes": 30 })).await;
    let stream = open(&world, &format!("{url}/events"), &token).await;
    let pieces: Vec<_> = stream.bytes_stream().collect().await;
    assert!(pieces.last().unwrap().is_err(), "the stream breaks off");
    let seen: usize = pieces.iter().flatten().map(|piece| piece.len()).sum();
    assert_eq!(seen, 30);

    world.arm(json!({ "fault": "runner_info" })).await;
    let stale = open(&world, &url, &token).await;
    assert_eq!(stale.status(), 400);
    assert!(stale.text().await.unwrap().contains("failed to get runner info"));
    inside.task.abort();
    world.end().await;
}
