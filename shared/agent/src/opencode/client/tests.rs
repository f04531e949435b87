//! The client against a tiny server: which answers count as OpenCode's, and what each means.

#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use bobbin_core::base::endpoint::NoEndpoint;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{ThreadKey, TurnId};
use bobbin_core::base::names::PromptIds;
use bobbin_core::protocol::effect::Sending;
use bobbin_test_server::{Received, Reply, Server};
use serde_json::json;

use super::*;
use crate::opencode::submit::hand_over;
use crate::runtime::{Missed, Submission, server_http};

fn endpoint(url: &str, token: &str) -> Endpoint {
    Endpoint { url: url.to_owned(), headers: vec![("x-preview-token", token.to_owned())] }
}

async fn server(replies: Vec<Reply>) -> (Server, OpenCode) {
    let server = Server::answering(replies).await;
    let base = server.base();
    let client = OpenCode::new(server_http(base).unwrap(), endpoint(base, "tok"), "pw");
    (server, client)
}

fn own(status: u16, body: Value) -> Reply {
    Reply::json(status, &body)
}

fn class(error: &OpenCodeError) -> String {
    serde_json::to_value(error.failure()).unwrap()["class"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn error_answers_are_classified() {
    let proxy =
        |status: u16, message: &str| own(status, json!({"statusCode": status, "message": message}));
    let table = [
        (
            own(
                404,
                json!({"name": "NotFoundError", "data": {"message": "Session not found: ses_x"}}),
            ),
            "session_missing",
        ),
        (
            own(
                404,
                json!({"name": "NotFoundError", "data": {"message": "Message not found: msg_x"}}),
            ),
            "turn_failed",
        ),
        (
            own(
                400,
                json!({"name": "BadRequest", "data": {"message": "Missing key", "kind": "Payload"}}),
            ),
            "turn_failed",
        ),
        (own(400, json!({"_tag": "BadRequest"})), "turn_failed"),
        (own(409, json!({"_tag": "SessionBusyError", "message": "busy"})), "turn_failed"),
        (
            own(
                500,
                json!({"name": "UnknownError", "data": {"message": "Unexpected server error."}}),
            ),
            "turn_failed",
        ),
        (proxy(400, "bad request: Is the Sandbox started?"), "sandbox_down"),
        (proxy(400, "failed to get runner info: x"), "sandbox_down"),
        (proxy(404, "not found: sandbox container not found"), "sandbox_down"),
        (Reply::empty(502), "sandbox_down"),
        (Reply::new(500, "text/html", "<html>"), "sandbox_down"),
        (Reply::new(200, "text/html", "<html>"), "sandbox_down"),
        (Reply::new(200, "application/json", "{"), "sandbox_down"),
        (Reply::empty(307).with("location", "/login"), "sandbox_down"),
        (Reply::empty(401).with("www-authenticate", "Basic"), "sandbox_down"),
    ];
    for (reply, expected) in table {
        let (_server, client) = server(vec![reply.clone()]).await;
        let error = client.session("ses_x").await.expect_err("an error");
        assert_eq!(class(&error), expected, "{} {}: {error:?}", reply.status, reply.body);
    }
}

#[tokio::test]
async fn calls_authenticate_and_match_openapi() {
    let (server, client) = server(vec![
        own(200, json!({"id": "ses_1", "title": "t"})),
        Reply::empty(204),
        own(200, json!(true)),
        own(200, json!(true)),
    ])
    .await;
    let thread = ThreadKey::discord("1", "2").unwrap();
    let conversation = ConversationKey { thread: &thread, since_ms: 0 };
    client.create_session(conversation).await.unwrap();
    let turn = "t-1".into();
    let ids = PromptIds::mint(&thread, &turn, 1_795_294_965_124);
    let prompt = Submission { agent: Some("plan"), system: "Be brief.", ..saying_hi(&turn, &ids) };
    hand_over(&client, "ses_1", prompt).await.unwrap();
    client.reply_permission("per_1", "once").await.unwrap();
    client.reply_question("que_1", &[vec!["x".into()]]).await.unwrap();
    let seen = server.received();
    assert_eq!(
        server.lines(),
        [
            "POST /session",
            "POST /session/ses_1/prompt_async",
            "POST /permission/per_1/reply",
            "POST /question/que_1/reply",
        ]
    );
    for Received { headers, .. } in &seen {
        assert_eq!(headers["x-preview-token"], "tok");
        assert_eq!(headers["authorization"], "Basic b3BlbmNvZGU6cHc=");
    }
    let Some(spec) = bobbin_rules::description("opencode-1.18.33-openapi.json") else {
        return;
    };
    let paths = [
        "~1session",
        "~1session~1{sessionID}~1prompt_async",
        "~1permission~1{requestID}~1reply",
        "~1question~1{requestID}~1reply",
    ];
    for (path, sent) in paths.iter().zip(&seen) {
        let pointer = format!("/paths/{path}/post/requestBody/content/application~1json/schema");
        bobbin_rules::conforms(&spec, &pointer, &sent.json());
    }
}

#[tokio::test]
async fn stale_endpoint_is_refreshed_once() {
    let healthy = own(200, json!({"healthy": true, "version": "1.18.33"}));
    let (fresh, _) = server(vec![healthy]).await;
    let (stale, client) = server(vec![Reply::empty(307)]).await;
    let link = endpoint(fresh.base(), "new");
    let fetched = Arc::new(Mutex::new(0));
    let count = Arc::clone(&fetched);
    let client = client.refreshed_by(Arc::new(move || {
        *count.lock().unwrap() += 1;
        let link = link.clone();
        Box::pin(async move { Ok(link) })
    }));
    assert!(client.health().await.unwrap().healthy);
    assert!(client.health().await.unwrap().healthy);
    assert_eq!(*fetched.lock().unwrap(), 1);
    assert_eq!(stale.received().len(), 1);
    assert_eq!(fresh.received()[0].headers["x-preview-token"], "new");
}

#[tokio::test]
async fn bad_endpoint_is_retried_once() {
    let (bad, client) = server(vec![Reply::empty(502)]).await;
    let link = endpoint(bad.base(), "t");
    let same = client.clone().refreshed_by(Arc::new(move || {
        let link = link.clone();
        Box::pin(async move { Ok(link) })
    }));
    assert_eq!(class(&same.health().await.unwrap_err()), "sandbox_down");
    assert_eq!(bad.received().len(), 2);
    let none = NoEndpoint {
        is_gone: true,
        failure: Failure::SandboxGone,
        seen: "no such sandbox".to_owned(),
    };
    let gone = client.refreshed_by(Arc::new(move || {
        let none = none.clone();
        Box::pin(async move { Err(none) })
    }));
    assert_eq!(class(&gone.health().await.unwrap_err()), "sandbox_gone");
}

#[tokio::test]
async fn messages_are_read_until_prompt() {
    let message = |id: &str| json!({"info": {"id": id, "role": "user"}, "parts": []});
    let newest = own(200, json!([message("msg_b"), message("msg_c")])).with("x-next-cursor", "c1");
    let (server, client) =
        server(vec![newest, own(200, json!([message("msg_prompt"), message("msg_a")]))]).await;
    let found = client.messages_since("ses_1", "msg_prompt").await.unwrap();
    let ids: Vec<&str> = found.iter().map(|m| m.info.id.as_str()).collect();
    assert_eq!(ids, ["msg_prompt", "msg_a", "msg_b", "msg_c"]);
    assert_eq!(server.lines()[1], "GET /session/ses_1/message?limit=50&before=c1");
}

#[tokio::test]
async fn newest_exact_title_match_wins() {
    let session = |id: &str, title: &str, created: u64| json!({"id": id, "title": title, "time": {"created": created}});
    let list = json!([
        session("ses_1", "bobbin x", 1),
        session("ses_2", "bobbin x", 2),
        session("ses_3", "bobbin xy", 3)
    ]);
    let (_server, client) = server(vec![own(200, list)]).await;
    assert_eq!(client.find_session("bobbin x").await.unwrap().unwrap().id, "ses_2");
    assert!(client.find_session("bobbin").await.unwrap().is_none());
}

#[tokio::test]
async fn event_stream_yields_and_ends() {
    let body = "data: {\"type\":\"server.connected\",\"properties\":{}}\n\ndata: {\"type\":\"session.idle\",\"properties\":{\"sessionID\":\"ses_1\"}}\n\n";
    let (_server, client) = server(vec![Reply::new(200, "text/event-stream", body)]).await;
    let mut events = client.events().await.unwrap();
    let mut seen = Vec::new();
    while let Some(more) = events.next().await.unwrap() {
        seen.extend(more);
    }
    let idle = json!({"type": "session.idle", "properties": {"sessionID": "ses_1"}});
    assert_eq!(seen, [json!({"type": "server.connected", "properties": {}}), idle]);
    let (_html, client) = server(vec![Reply::new(200, "text/html", "<html>")]).await;
    assert!(matches!(client.events().await, Err(OpenCodeError::Unreachable { .. })));
}

/// A prompt that may have been sent before.
fn saying_hi<'a>(turn: &'a TurnId, ids: &'a PromptIds) -> Submission<'a> {
    Submission {
        turn,
        nudge: None,
        ids,
        model: "a/b/c",
        agent: None,
        system: "",
        text: "hi",
        images: &[],
        sending: Sending::Again,
    }
}

/// Sends a prompt and returns the result.
async fn sent(client: &OpenCode) -> Result<(), Missed> {
    let turn = "t".into();
    let ids = PromptIds::mint(&ThreadKey::discord("1", "2").unwrap(), &turn, 1);
    hand_over(client, "ses_1", saying_hi(&turn, &ids)).await
}

#[tokio::test]
async fn unsent_is_reported_only_when_certain() {
    let proxy =
        |status: u16, message: &str| own(status, json!({"statusCode": status, "message": message}));
    let missing = json!({"name": "NotFoundError", "data": {"message": "Session not found: ses_1"}});
    let table = [
        (Reply::empty(307), true),
        (Reply::empty(401), true),
        (proxy(400, "bad request: Is the Sandbox started?"), true),
        (proxy(404, "not found: sandbox container not found"), true),
        (own(404, missing), true),
        (own(400, json!({"_tag": "BadRequest"})), true),
        (Reply::empty(408), false),
        (Reply::empty(502), false),
        (Reply::empty(504), false),
        (own(500, json!({"name": "UnknownError"})), false),
        (Reply::new(200, "text/html", "<html>"), false),
        (Reply::new(200, "application/json", "{}"), false),
    ];
    for (reply, certain) in table {
        let (_server, client) = server(vec![reply.clone()]).await;
        let missed = sent(&client).await.expect_err("it was not accepted");
        assert_eq!(missed.certain, certain, "{} {}", reply.status, reply.body);
    }
    // Nothing listens.
    let (server, client) = server(vec![Reply::empty(204)]).await;
    server.stop().await;
    assert!(sent(&client).await.expect_err("it was not sent").certain);
}

#[tokio::test]
async fn refused_retry_keeps_earlier_doubt() {
    let proxy = own(404, json!({"statusCode": 404, "message": "not found"}));
    for (first, certain) in [(Reply::empty(502), false), (Reply::empty(307), true)] {
        let (server, client) = server(vec![first, proxy.clone()]).await;
        let link = endpoint(server.base(), "fresh");
        let client = client.refreshed_by(Arc::new(move || {
            let link = link.clone();
            Box::pin(async move { Ok(link) })
        }));
        assert_eq!(sent(&client).await.expect_err("refused").certain, certain);
        assert_eq!(server.received().len(), 2);
    }
}
