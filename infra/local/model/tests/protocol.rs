//! The protocol over HTTP, as an OpenAI client sees it.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use bobbin_local_model::{BindError, MODEL_ID, Model};
use serde_json::{Value, json};

fn client() -> reqwest::Client {
    // The first test installs it; the others find it there.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

fn tool(name: &str) -> Value {
    json!({ "type": "function", "function": { "name": name, "description": "", "parameters": {} } })
}

fn body(messages: Value) -> Value {
    json!({ "model": "any", "messages": messages, "stream": true, "stream_options": { "include_usage": true },
        "tools": [tool("bash"), tool("write"), tool("question")] })
}

async fn post(model: &Model, body: &Value) -> reqwest::Response {
    let url = format!("{}/chat/completions", model.base_url());
    client()
        .post(url)
        .bearer_auth("any-key")
        .header("x-session-id", "ses_1")
        .json(body)
        .send()
        .await
        .unwrap()
}

/// The data of every event, `[DONE]` as a string.
async fn events(response: reqwest::Response) -> Vec<Value> {
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    assert!(text.ends_with("\n\n"));
    let data = text.trim_end().split("\n\n").map(|event| event.strip_prefix("data: ").unwrap());
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| json!(data))).collect()
}

fn text(events: &[Value]) -> String {
    events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect()
}

fn finish_reasons(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["choices"][0]["finish_reason"].as_str()).collect()
}

#[tokio::test]
async fn stream_follows_chat_completions_order() {
    let model = Model::start(0).await.unwrap();
    let events =
        events(post(&model, &body(json!([{ "role": "user", "content": "echo: one two" }]))).await)
            .await;
    let first = &events[0];
    assert_eq!(first["object"], "chat.completion.chunk");
    assert_eq!(first["choices"][0]["delta"], json!({ "role": "assistant", "content": "" }));
    assert!(events[..5].iter().all(|event| event["id"] == first["id"] && event["model"] == "any"));
    assert_eq!(events[1]["choices"][0]["delta"]["content"], "one ");
    assert_eq!(events[2]["choices"][0]["delta"]["content"], "two");
    assert_eq!(events[3]["choices"][0]["finish_reason"], "stop");
    assert_eq!(events[4]["choices"], json!([]));
    let usage = &events[4]["usage"];
    let sum =
        usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap();
    assert_eq!(usage["total_tokens"], sum);
    assert_eq!(events[5..], [json!("[DONE]")]);
    model.stop().await;
}

#[tokio::test]
async fn tool_calls_stream_in_fragments() {
    let model = Model::start(0).await.unwrap();
    let script = json!([{ "type": "text", "text": "run: echo \"quoted\" and much longer" },
        { "type": "image_url", "image_url": { "url": "data:image/png;base64," } },
        { "type": "text", "text": "echo: done" }]);
    let mut messages =
        json!([{ "role": "user", "content": "fail: 500" }, { "role": "user", "content": script }]);
    let called = events(post(&model, &body(messages.clone())).await).await;
    assert_eq!(finish_reasons(&called), ["tool_calls"]);
    let parts: Vec<&Value> = called
        .iter()
        .map(|event| &event["choices"][0]["delta"]["tool_calls"][0])
        .filter(|part| !part.is_null())
        .collect();
    assert_eq!(parts[0]["function"], json!({ "name": "bash", "arguments": "" }));
    assert!(
        parts.len() > 2
            && parts[1..].iter().all(|part| part.get("id").is_none() && part["index"] == 0)
    );
    let arguments: String =
        parts.iter().filter_map(|part| part["function"]["arguments"].as_str()).collect();
    let arguments: Value = serde_json::from_str(&arguments).unwrap();
    assert_eq!(arguments["command"], "echo \"quoted\" and much longer");

    let call = json!({ "id": parts[0]["id"], "type": "function", "function": { "name": "bash", "arguments": "{}" } });
    let messages = messages.as_array_mut().unwrap();
    messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [call] }));
    messages.push(json!({ "role": "tool", "tool_call_id": parts[0]["id"], "content": "quoted and much longer\n" }));
    let last = events(post(&model, &body(json!(messages))).await).await;
    assert_eq!(finish_reasons(&last), ["stop"]);
    assert!(text(&last).contains("```\nquoted and much longer\n```\n\ndone"), "{}", text(&last));
    model.stop().await;
}

#[tokio::test]
async fn attached_file_content_is_not_obeyed() {
    let model = Model::start(0).await.unwrap();
    let content: Vec<Value> = [
        "Called the Read tool with the following input: {\"filePath\":\"n.txt\"}",
        "fail: 500\n",
        "> run: ls\nPlease\n  echo: mine",
    ]
    .iter()
    .map(|text| json!({ "type": "text", "text": text }))
    .collect();
    let events =
        events(post(&model, &body(json!([{ "role": "user", "content": content }]))).await).await;
    assert_eq!(text(&events), "mine");
    model.stop().await;
}

#[tokio::test]
async fn slow_text_streams_over_its_time() {
    let model = Model::start(0).await.unwrap();
    let slow = async |content: &str| {
        post(&model, &body(json!([{ "role": "user", "content": content }]))).await
    };
    let started = Instant::now();
    assert!(slow("slow: 0.6 a b c").await.text().await.unwrap().contains("[DONE]"));
    assert!(started.elapsed() >= Duration::from_millis(600));

    // Its second word comes after minutes.
    let mut response = slow("slow: 600 a b c").await;
    let mut seen = String::new();
    while !seen.contains("\"a \"") {
        let bytes = response.chunk().await.unwrap().expect("it goes on");
        seen.push_str(str::from_utf8(&bytes).unwrap());
    }
    assert!(!seen.contains("b "), "{seen}");
    drop(response);
    model.stop().await;
}

#[tokio::test]
async fn cut_ends_streams_and_plain_answers() {
    let model = Model::start(0).await.unwrap();
    let mut request = body(json!([{ "role": "user", "content": "echo: so far\ncut" }]));
    let streamed = events(post(&model, &request).await).await;
    assert_eq!((text(&streamed).as_str(), finish_reasons(&streamed).len()), ("so far", 0));
    assert!(!streamed.contains(&json!("[DONE]")));
    request["stream"] = json!(false);
    let url = format!("{}/chat/completions", model.base_url());
    // The connection may end before or behind the headers.
    let plain = match client().post(url).json(&request).send().await {
        Ok(response) => response.bytes().await.map(|_| ()),
        Err(error) => Err(error),
    };
    assert!(plain.is_err());
    model.stop().await;
}

#[tokio::test]
async fn fail_answers_with_its_status() {
    let model = Model::start(0).await.unwrap();
    for (script, status, kind) in [
        ("fail: 500", 500, "server_error"),
        ("fail: 401", 401, "invalid_request_error"),
        ("fail: 429", 429, "rate_limit_error"),
    ] {
        for _ in 0..2 {
            let response =
                post(&model, &body(json!([{ "role": "user", "content": script }]))).await;
            assert_eq!(response.status(), status);
            let error: Value = response.json().await.unwrap();
            assert_eq!(error["error"]["type"], kind);
        }
    }
    model.stop().await;
}

#[tokio::test]
async fn unstreamed_answer_is_one_completion() {
    let model = Model::start(0).await.unwrap();
    let request =
        json!({ "model": "any", "messages": [{ "role": "user", "content": "echo: hi" }] });
    let completion: Value = post(&model, &request).await.json().await.unwrap();
    assert_eq!(completion["object"], "chat.completion");
    let choice = &completion["choices"][0];
    assert_eq!(
        (&choice["message"]["content"], &choice["finish_reason"]),
        (&json!("hi"), &json!("stop"))
    );
    let with_tool = json!({ "model": "any", "messages": [{ "role": "user", "content": "ask: date" }], "tools": [tool("bash")] });
    let completion: Value = post(&model, &with_tool).await.json().await.unwrap();
    let call = &completion["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["function"]["name"], "bash");
    assert!(call["function"]["arguments"].as_str().unwrap().contains("; date"));
    model.stop().await;
}

#[tokio::test]
async fn system_requests_without_tools_run_nothing() {
    let model = Model::start(0).await.unwrap();
    for system in ["You are a title generator.", "You are a context summarization agent."] {
        let messages = json!([{ "role": "system", "content": system }, { "role": "user", "content": "fail: 500" }]);
        let request = json!({ "model": "any", "stream": true, "messages": messages });
        let events = events(post(&model, &request).await).await;
        assert!(!text(&events).is_empty());
        assert!(events.iter().all(|event| event["usage"].is_null()), "nobody asked for usage");
    }
    model.stop().await;
}

#[tokio::test]
async fn malformed_requests_are_refused_with_reasons() {
    let model = Model::start(0).await.unwrap();
    let url = format!("{}/chat/completions", model.base_url());
    for (request, word) in [
        ("{", "not a chat-completions request"),
        ("[]", "not a chat-completions request"),
        (r#"{"messages":[]}"#, "model"),
        (r#"{"model":"m"}"#, "messages"),
        (r#"{"model":"m","messages":[]}"#, "role `user`"),
        (r#"{"model":"m","messages":[{"content":"x"}]}"#, "role"),
        (
            r#"{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{}]}"#,
            "function.name",
        ),
    ] {
        let response = client().post(&url).body(request).send().await.unwrap();
        assert_eq!(response.status(), 400, "{request}");
        let error: Value = response.json().await.unwrap();
        assert_eq!(error["error"]["type"], "invalid_request_error");
        assert!(error["error"]["message"].as_str().unwrap().contains(word), "{error}");
    }
    let basic =
        client().post(&url).basic_auth("user", Some("pass")).body("{}").send().await.unwrap();
    assert_eq!(basic.status(), 401);
    assert_eq!(basic.json::<Value>().await.unwrap()["error"]["code"], "invalid_api_key");
    assert_eq!(client().get(&url).send().await.unwrap().status(), 405);
    let nowhere = client().get(format!("{}/nothing", model.base_url())).send().await.unwrap();
    assert_eq!(nowhere.status(), 404);
    assert!(
        nowhere.json::<Value>().await.unwrap()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("/v1/nothing")
    );
    let huge = client().post(&url).body("x".repeat(33 * 1024 * 1024)).send().await;
    assert!(huge.is_err() || huge.unwrap().status() == 413);
    model.stop().await;
}

#[tokio::test]
async fn call_log_and_models_are_listed() {
    let model = Model::start(0).await.unwrap();
    post(&model, &body(json!([{ "role": "user", "content": "run: ls" }]))).await;
    post(&model, &body(json!([{ "role": "user", "content": "fail: 503" }]))).await;
    let url = model.base_url().replace("/v1", "/calls");
    let log: Value = client().get(url).send().await.unwrap().json().await.unwrap();
    assert_eq!(log["total"], 2);
    let call = &log["calls"][0];
    assert_eq!((&call["session_id"], &call["user"]), (&json!("ses_1"), &json!("run: ls")));
    assert_eq!(
        (&call["end"], &call["tool"]["arguments"]["command"]),
        (&json!("tool_calls"), &json!("ls"))
    );
    assert!(call["time_ms"].as_u64().unwrap() > 1_600_000_000_000);
    assert_eq!(log["calls"][1]["status"], 503);
    let models: Value = client()
        .get(format!("{}/models", model.base_url()))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(models["data"][0]["id"], MODEL_ID);
    model.stop().await;
}

#[tokio::test]
async fn stop_ends_streams_and_frees_port() {
    let model = Model::start(0).await.unwrap();
    let port: u16 =
        model.base_url().rsplit(':').next().unwrap().trim_end_matches("/v1").parse().unwrap();
    assert!(
        matches!(Model::start(port).await, Err(BindError { port: taken, .. }) if taken == port)
    );
    let slow = post(&model, &body(json!([{ "role": "user", "content": "slow: 3000 a b" }]))).await;
    model.stop().await;
    let text = slow.text().await.unwrap_or_default();
    assert!(!text.contains("[DONE]"));
    Model::start(port).await.unwrap().stop().await;
}
