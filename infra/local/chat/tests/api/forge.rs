//! The forge pane's routes, against a forge with one pull request.

use crate::harness::{CONTROL_KEY, TEXT, TITLE, start};
use serde_json::{Value, json};

#[tokio::test]
async fn forge_texts_come_as_text() {
    let harness = start().await;
    assert_eq!(harness.ui("state").await["has_forge"], true);
    let (status, all) = harness.forge("?repository=acme/tool").await;
    let listed = &all["repositories"][0];
    assert_eq!(
        (status, &listed["branches"], &all["more"]),
        (200, &json!([{"name": "main"}]), &json!(0))
    );
    let pull = &listed["pull_requests"][0];
    assert_eq!(
        (&pull["title"], &pull["body"], &pull["files"]),
        (&json!(TITLE), &Value::Null, &Value::Null)
    );
    let (status, pull) = harness.forge("/pull?repository=acme/tool&number=1").await;
    assert_eq!((status, &pull["title"], &pull["body"]), (200, &json!(TITLE), &json!(TEXT)));
    assert_eq!(pull["files"][0]["patch"], "+b");
    harness.end().await;
}

#[tokio::test]
async fn forge_refusals_say_what_to_do() {
    let harness = start().await;
    let merge = r#"{"do":"merge","repository":"acme/tool","number":1,"seen_sha":"0"}"#;
    let long = format!(r#"{{"do":"create","name":"{}","private":true}}"#, "a".repeat(4_096));
    let presses = [
        (
            merge,
            422,
            "It was not merged: Pull Request is still a draft. Look at its state again, or open it on the forge.",
        ),
        (&long, 413, "This is longer than 4096 bytes. Use a shorter name."),
    ];
    for (body, status, told) in presses {
        assert_eq!(harness.press(body.to_owned()).await, (status, json!({"error": told})));
    }
    for body in
        ["", "{}", r#"{"do":"delete"}"#, r#"{"do":"merge","repository":"acme/tool","number":1}"#]
    {
        let (status, told) = harness.press(body.to_owned()).await;
        let told = told["error"].as_str().unwrap().to_owned();
        assert!(status == 400 && told.ends_with("Reload the page."), "{status} {told}");
    }
    for place in
        ["/pull?repository=acme/other&number=1", "/pull?repository=acme/tool&number=x", "/pull"]
    {
        let told = "The forge could not be read: Not Found. If it stays so, choose another entry of the list.";
        assert_eq!(harness.forge(place).await, (422, json!({"error": told})), "{place}");
    }
    harness.end().await;
}

#[tokio::test]
async fn only_own_page_presses_on_forge() {
    let harness = start().await;
    let body = r#"{"do":"ready","repository":"acme/tool","number":1}"#;
    let (status, done) = harness.press(body.to_owned()).await;
    let asked = r#"Ready { repository: "acme/tool", number: 1 }"#;
    assert_eq!((status, &done["asked"]), (200, &json!(asked)));
    let page = harness.chat.page();
    for (header, value) in [("origin", "http://127.0.0.1:1"), ("host", "elsewhere.example")] {
        let request = harness.http.post(format!("{page}/ui/forge")).bearer_auth(CONTROL_KEY);
        let sent = request.header(header, value).body(body).send().await.unwrap();
        assert_eq!(sent.status(), 403, "{header}");
    }
    harness.end().await;
}
