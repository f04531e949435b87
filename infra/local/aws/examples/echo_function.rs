//! A function for the engine's tests: does what its event says, so that each behaviour of the runner can be provoked.

use std::path::Path;
use std::time::Duration;

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, json};

/// Longest wait for a file that a test makes, in steps of ten milliseconds.
const WAIT_STEPS_MAX: u32 = 3000;

#[tokio::main]
async fn main() -> Result<(), Error> {
    if std::env::var_os("FAIL_AT_START").is_some() {
        eprintln!("refusing to start");
        std::process::exit(3);
    }
    lambda_runtime::run(service_fn(handle)).await
}

async fn handle(event: LambdaEvent<Value>) -> Result<Value, Error> {
    let (event, context) = (event.payload, event.context);
    if event["Records"].is_array() {
        return records(&event).await;
    }
    if event["requestContext"]["http"].is_object() {
        return url(&event);
    }
    match event["do"].as_str().unwrap_or_default() {
        "error" => Err("asked to fail".into()),
        "crash" => std::process::exit(7),
        "environment" => Ok(json!(std::env::vars().collect::<std::collections::BTreeMap<_, _>>())),
        "wait" => {
            println!("waiting");
            wait_for(event["file"].as_str().unwrap_or_default()).await;
            Ok(json!(std::process::id()))
        }
        "deadline" => Ok(json!(context.deadline)),
        "print" => {
            println!("to out: {}", event["text"]);
            eprintln!("to error: {}", event["text"]);
            Ok(json!(context.request_id))
        }
        _ => {
            println!("event {event}");
            Ok(json!({ "echo": event, "process": std::process::id() }))
        }
    }
}

/// Each body is a command: `name` is printed, `file` is waited for, `outcome` is `fail`, `error`, `crash` or
/// `nonsense`.
async fn records(event: &Value) -> Result<Value, Error> {
    let mut failures = Vec::new();
    for record in event["Records"].as_array().into_iter().flatten() {
        let body = record["body"].as_str().unwrap_or_default();
        let command: Value = serde_json::from_str(body).unwrap_or_default();
        println!("record {record}");
        println!("begin {}", command["name"].as_str().unwrap_or_default());
        if let Some(file) = command["file"].as_str() {
            wait_for(file).await;
        }
        println!("end {}", command["name"].as_str().unwrap_or_default());
        match command["outcome"].as_str().unwrap_or_default() {
            "fail" => failures.push(json!({ "itemIdentifier": record["messageId"] })),
            "error" => return Err("asked to fail".into()),
            "crash" => std::process::exit(7),
            "nonsense" => failures.push(json!({ "itemIdentifier": "never-sent" })),
            _ => {}
        }
    }
    Ok(json!({ "batchItemFailures": failures }))
}

fn url(event: &Value) -> Result<Value, Error> {
    match event["rawPath"].as_str().unwrap_or_default() {
        "/error" => Err("asked to fail".into()),
        "/crash" => std::process::exit(7),
        "/plain" => Ok(json!({ "no": "status" })),
        "/binary" => Ok(json!({
            "statusCode": 201,
            "headers": { "content-type": "application/octet-stream" },
            "cookies": ["a=1", "b=2"],
            "body": "AAH/",
            "isBase64Encoded": true,
        })),
        _ => Ok(json!({
            "statusCode": 200,
            "headers": { "content-type": "application/json" },
            "body": event.to_string(),
        })),
    }
}

async fn wait_for(file: &str) {
    for _ in 0..WAIT_STEPS_MAX {
        if Path::new(file).exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
