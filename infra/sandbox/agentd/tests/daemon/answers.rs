//! Answers are as the published description has them; `Daemon::call` checks each one in every test.

use bobbin_http::Method;
use serde_json::json;

use crate::world::{Daemon, TOKEN, http};

#[tokio::test(flavor = "multi_thread")]
async fn every_call_answers_as_described() {
    let daemon = Daemon::start().await;
    assert_eq!(daemon.get("/v1/health").await, json!({"status": "ok"}));
    let agents = daemon.get("/v1/agents").await;
    let ids: Vec<&str> = agents["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["opencode", "claude", "codex", "amp", "standin"]);
    let modes = daemon.get("/v1/agents/codex/modes").await;
    assert_eq!(modes["modes"][1]["id"], "plan");
    assert_eq!(daemon.get("/v1/sessions").await, json!({"sessions": []}));
    let made = daemon.create("s").await;
    assert_eq!(made["healthy"], true);
    assert!(made["agentSessionId"].as_str().unwrap().starts_with("standin-"), "{made}");
    daemon.send("s", "t", "say hello\nask rm -rf x\nquestion").await;
    let waiting = daemon.until("s", "t", "waiting").await;
    let ask = waiting["asks"][0]["permission"]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        daemon
            .post(&format!("/v1/sessions/s/permissions/{ask}/reply"), json!({"reply": "always"}))
            .await
            .status,
        204
    );
    let question = loop {
        let waiting = daemon.until("s", "t", "waiting").await;
        if let Some(id) = waiting["asks"][0]["question"]["id"].as_str() {
            break id.to_owned();
        }
    };
    let path = format!("/v1/sessions/s/questions/{question}");
    assert_eq!(
        daemon.post(&format!("{path}/reply"), json!({"answers": [["Postgres"]]})).await.status,
        204
    );
    assert_eq!(daemon.post(&format!("{path}/reject"), json!(null)).await.status, 404);
    daemon.until("s", "t", "done").await;
    assert_eq!(
        daemon.said("s", "t").await,
        "hellochosen: everanswered: {\"action\":\"accept\",\"content\":{\"db\":\"pg\"}}"
    );
    let list = daemon.get("/v1/sessions").await;
    assert_eq!(list["sessions"][0]["sessionId"], "s");
    assert_eq!(list["sessions"][0]["eventCount"], daemon.events("s").await.len());

    // `install` of an agent that is there, and what is refused.
    assert_eq!(daemon.post("/v1/agents/standin/install", json!({})).await.status, 204);
    let refused = [
        ("POST", "/v1/sessions/s", json!({"agent": "standin"}), 409, "session_already_exists"),
        ("POST", "/v1/sessions/new", json!({"agent": "nobody"}), 400, "unsupported_agent"),
        ("POST", "/v1/sessions/new", json!({"agent": "amp"}), 400, "agent_not_installed"),
        (
            "POST",
            "/v1/sessions/new",
            json!({"agent": "standin", "permissionMode": "wild"}),
            400,
            "mode_not_supported",
        ),
        (
            "POST",
            "/v1/sessions/new",
            json!({"agent": "standin", "directory": "nowhere"}),
            400,
            "invalid_request",
        ),
        ("POST", "/v1/sessions/new", json!({}), 400, "invalid_request"),
        ("POST", "/v1/sessions/none/messages", json!({"message": "x"}), 404, "session_not_found"),
        ("POST", "/v1/sessions/s/messages", json!({"message": " "}), 400, "invalid_request"),
        (
            "POST",
            "/v1/sessions/s/messages",
            json!({"message": "x", "turn": "é"}),
            400,
            "invalid_request",
        ),
        (
            "POST",
            "/v1/sessions/s/messages",
            json!({"message": "x".repeat(9 * 1024 * 1024)}),
            413,
            "invalid_request",
        ),
        (
            "POST",
            "/v1/sessions/s/permissions/none/reply",
            json!({"reply": "once"}),
            404,
            "not_found",
        ),
        (
            "POST",
            "/v1/sessions/s/permissions/none/reply",
            json!({"reply": "maybe"}),
            400,
            "invalid_request",
        ),
        ("POST", "/v1/sessions/s/turns/none/cancel", json!({}), 404, "not_found"),
        ("POST", "/v1/agents/nobody/install", json!({}), 404, "unsupported_agent"),
        ("POST", "/v1/agents/amp/install", json!({}), 400, "install_failed"),
        ("GET", "/v1/agents/nobody/modes", json!(null), 400, "unsupported_agent"),
        ("GET", "/v1/sessions/none/events", json!(null), 404, "session_not_found"),
        ("GET", "/v1/sessions/s/events?offset=-1", json!(null), 400, "invalid_request"),
        ("GET", "/v1/nothing", json!(null), 404, "not_found"),
        ("DELETE", "/v1/sessions", json!(null), 404, "not_found"),
    ];
    for (method, path, body, status, kind) in refused {
        let method = method.parse().unwrap();
        let answer = daemon.call(method, path, Some(body)).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert_eq!(
            answer.body["type"],
            format!("urn:sandbox-agent:error:{kind}"),
            "{path}: {}",
            answer.body
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_path_needs_the_token() {
    let daemon = Daemon::start().await;
    let almost = &TOKEN[..TOKEN.len() - 1];
    let wrong = [
        None,
        Some(format!("Bearer {almost}")),
        Some(format!("Bearer {TOKEN}x")),
        Some("Bearer ".to_owned()),
        Some(format!("Basic {TOKEN}")),
        Some(TOKEN.to_owned()),
    ];
    for authorization in wrong {
        for path in ["/v1/health", "/v1/sessions", "/opencode/global/health", "/nothing"] {
            let mut request = http().request(Method::GET, &daemon.url(path)).unwrap();
            if let Some(authorization) = &authorization {
                request = request.header("authorization", authorization);
            }
            let answer = http().send(request).await.unwrap();
            assert_eq!(answer.status, 401, "{path} with {authorization:?}");
            let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
            assert_eq!(
                body,
                json!({
                    "type": "urn:sandbox-agent:error:token_invalid", "title": "Token invalid", "status": 401,
                    "detail": "send `Authorization: Bearer` with the token that the daemon was started with",
                })
            );
        }
    }
    let request = http().request(Method::GET, &daemon.url("/v1/health")).unwrap();
    let answer =
        http().send(request.header("authorization", format!("bearer {TOKEN}"))).await.unwrap();
    assert_eq!(answer.status, 200);
}
