//! A stop takes effect before anything is said about it.

use bobbin_core::base::ids::PostRef;
use bobbin_core::base::person::Person;
use bobbin_core::records::flags::Queued;
use bobbin_core::schema::{self, Shape, UnknownFields};
use serde_json::{Value, json};

use super::events::{start, stored};

const THREAD: &str = "slack:T0BOBBIN01:C0BUILD0001:1790000000.000100";

/// The flag of a waiting prompt, and its card.
fn waiting(card: &str) -> Value {
    let queued = Queued {
        by: Person::default(),
        accepted_at_ms: 1_795_168_700_000,
        card: Some(PostRef { channel: "C0BUILD0001".to_owned(), id: card.to_owned() }),
        refused: false,
        prompt: None,
    };
    let flag = schema::write(Shape::Mark, &queued, &UnknownFields::default()).unwrap();
    json!({"S": flag})
}

/// Two prompts wait, and the chat refuses everything.
pub async fn stop_all() {
    let mut function = start("worker").await;
    let (_, mut stop) = stored("worker").into_iter().find(|(name, _)| name == "stop").unwrap();
    let body = stop["Records"][0]["body"].as_str().unwrap();
    let all = body.replace(r#"{"want":"stop","turn":null}"#, r#"{"want":"stop_all"}"#);
    assert_ne!(all, body, "the event is written otherwise");
    stop["Records"][0]["body"] = all.into();
    let record = json!({
        "thread": {"S": THREAD}, "item": {"S": "session"},
        "queued#m1": waiting("1790000000.000200"), "queued#m2": waiting("1790000000.000300"),
    });
    function.answer(
        "DynamoDB_20120810.BatchGetItem",
        200,
        json!({"Responses": {"local-Table": [record]}, "UnprocessedKeys": {}}),
    );
    for call in ["chat.update", "chat.postMessage", "chat.postEphemeral"] {
        function.answer(&format!("POST /slack/{call}"), 503, json!({}));
    }
    let _ = function.calls();
    let answer = function.invoke(&stop).await.unwrap();
    let calls = function.calls();
    let said = calls.iter().position(|call| call.what.starts_with("POST /slack/chat."));
    let before = &calls[..said.expect("somebody is told")];
    let flagged = |flag: &str| {
        let flagged = before.iter().filter(|call| call.body.to_string().contains(flag));
        flagged.count()
    };
    assert_eq!(flagged("cancel#m"), 2, "{calls:#?}");
    // For prompts that nobody has announced yet.
    assert_eq!(flagged("stop_all#"), 1, "{calls:#?}");
    // Whatever runs by the next delivery would be another turn.
    assert_eq!(answer, json!({"batchItemFailures": []}));
    function.end().await;
}
