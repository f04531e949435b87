//! Configuration errors fail at the start, with one clear line.

use bobbin_tests::function::{Function, Refused, Started};
use bobbin_tests::limits::SECRET_READ_MS_MAX;
use bobbin_tests::wait::eventually;
use serde_json::{Value, json};

use super::events::stored;
use super::secret;

const HIDE: &str = "AmazonSQS.ChangeMessageVisibility";

/// A function, the fault in its environment (`None`: not set), and its message.
struct Row(&'static str, &'static str, Option<&'static str>, &'static [&'static str]);

const NOT_SET: &[&str] =
    &["is not set: template.yaml sets it where it is deployed", "bobbin env writes that file"];

#[rustfmt::skip]
const TABLE: &[Row] = &[
    Row("ingress", "TABLE", None, NOT_SET),
    Row("ingress", "MESSAGES_QUEUE_URL", None, NOT_SET),
    Row("ingress", "CONTROL_QUEUE_URL", Some(""), NOT_SET),
    Row("ingress", "CONTROL_QUEUE_URL", Some("control.fifo"), &["\"control.fifo\", which is not an address", "bobbin env writes that file"]),
    Row("ingress", "INGRESS_SECRET_ID", None, NOT_SET),
    Row("ingress", "OVERRIDES", Some("{\"limits\": {\"prompt_chars\": \"many\"}}"), &["invalid type: string \"many\""]),
    Row("ingress", "LOG_LEVEL", Some("loud"), &["\"loud\"; it can be trace, debug, info, warn or error"]),
    Row("ingress", "DISCORD_PUBLIC_KEY", Some("not hex"), &["parameter DiscordPublicKey"]),
    Row("ingress", "AWS_REGION", None, &["is not set: this program runs as a Lambda function"]),
    Row("worker", "MESSAGES_QUEUE_URL", None, NOT_SET),
    Row("worker", "STACK", None, NOT_SET),
    Row("worker", "STACK_ID", None, NOT_SET),
    Row("worker", "OVERRIDES", Some("{\"limits\": {\"idle_pause\": 1000}}"), &["unknown field `idle_pause`", "`idle_pause_ms`"]),
    Row("worker", "OVERRIDES", Some("{\"daytona\": \"https://x\"}"), &["unknown field `daytona`", "`daytona_api`"]),
    Row("worker", "OVERRIDES", Some("{\"limits\": {\"attempts\": 0}}"), &["attempts must be at least 1"]),
    Row("worker", "OVERRIDES", Some("{\"limits\": {\"heartbeat_ms\": 100000}}"), &["heartbeat_ms must be at most half of visibility_ms"]),
    Row("worker", "OVERRIDES", Some("{\"limits\": {\"poll_ms\": -1}}"), &["invalid value"]),
    Row("worker", "OVERRIDES", Some("thirty minutes"), &["expected"]),
    Row("worker", "OVERRIDES", Some("{\"model_base_url\": \"localhost\"}"), &["model_base_url", "\"localhost\", which is not an address"]),
    Row("worker", "OVERRIDES", Some("{\"daytona_api\": \"daytona\"}"), &["daytona_api", "\"daytona\", which is not an address", "https://"]),
    Row("worker", "OVERRIDES", Some("{\"slack_stream_answers\": \"sometimes\"}"), &["expected a boolean"]),
    Row("worker", "MODEL", Some("claude"), &["\"claude\"; expected provider/model"]),
    Row("worker", "MESSAGES_DEAD_QUEUE_URL", None, NOT_SET),
    Row("worker", "STACK_KEY_ID", None, NOT_SET),
    Row("worker", "SCHEDULE_GROUP", Some("wakes"), &["SCHEDULE_ROLE_ARN is not set although SCHEDULE_GROUP is"]),
    Row("sweeper", "STACK", None, NOT_SET),
    Row("sweeper", "STACK_ID", Some(""), NOT_SET),
    Row("sweeper", "TABLE", Some(""), NOT_SET),
    Row("sweeper", "PROVIDER_SECRET_ID", None, NOT_SET),
    Row("sweeper", "OVERRIDES", Some("[]"), &["cannot be used"]),
    Row("sweeper", "OVERRIDES", Some("{\"daytona_api\": \"ftp://daytona.example\"}"), &["which is not an address"]),
    Row("tools", "TABLE", Some(""), NOT_SET),
    Row("tools", "STACK_KEY_ID", None, NOT_SET),
    Row("tools", "PROVIDER_SECRET_ID", None, NOT_SET),
    Row("sweeper", "AWS_ACCESS_KEY_ID", None, &["is not set: this program runs as a Lambda function"]),
];

/// Each row, then a start by hand.
pub async fn refused() {
    for Row(function, name, value, words) in TABLE {
        let started = Function::start(function, secret(), |environment| {
            environment.retain(|(known, _)| known != name);
            environment.extend(value.map(|value| ((*name).to_owned(), value.to_owned())));
        });
        let what = format!("{function} with {name} = {value:?}");
        let line = match started.await {
            Started::Ready(worker) if *function == "worker" => given_back(&what, *worker).await,
            started => one_line(&what, started, true),
        };
        let named = line.to_lowercase().contains(&name.to_lowercase());
        assert!(named, "{what}: it is not named in {line:?}");
        for word in *words {
            assert!(line.contains(word), "{what}: no {word:?} in {line:?}");
        }
    }
    for function in ["ingress", "worker", "sweeper", "tools"] {
        let by_hand = Function::start(function, secret(), |environment| {
            environment.retain(|(name, _)| name != "AWS_LAMBDA_RUNTIME_API");
        });
        let line = one_line("by hand", by_hand.await, false);
        assert!(
            line.contains("AWS_LAMBDA_RUNTIME_API is not set") && line.contains("cargo run"),
            "{line:?}"
        );
    }
}

/// A worker that cannot work has written the one line to its log, retries its messages within seconds, and gives Lambda
/// the same words.
async fn given_back(what: &str, mut worker: Function) -> String {
    let mut log = worker.log();
    log.retain(|line| line["event"] != "secret.unread");
    let [line] = &log[..] else { panic!("{what}: not one line: {log:?}") };
    assert_eq!(line["event"], "start.refused", "{what}");
    let message = line["message"].as_str().unwrap_or_default().to_owned();
    let events = stored("worker");
    for name in ["prompt", "stop"] {
        let (_, event) = events.iter().find(|(known, _)| known == name).unwrap();
        let _ = worker.calls();
        let failed = worker.invoke(event).await.unwrap_err();
        let told = json!({"errorMessage": message, "errorType": "Bobbin.Configuration"});
        assert_eq!(failed, told, "{what}: {name}");
        let calls = worker.calls();
        let hidden = calls.iter().find(|call| call.what == HIDE);
        let seconds = hidden.map(|call| &call.body["VisibilityTimeout"]);
        assert_eq!(seconds, Some(&json!(2)), "{what}: {name}: {calls:?}");
    }
    worker.end().await;
    message
}

/// Messages to a worker whose secrets cannot be read or used: claimed before that, and retried within seconds. They are
/// processed as soon as the secrets work.
pub async fn without_keys() {
    const READ: &str = "secretsmanager.GetSecretValue";
    let mut wrong = secret();
    wrong["stack_key"] = json!(["canary-in-a-secret"]);
    for (what, unusable) in [("no secret", Value::Null), ("one of another shape", wrong)] {
        let mut function = match Function::start("worker", unusable, |_| {}).await {
            Started::Ready(function) => function,
            Started::Refused(refused) => panic!("{what}: {refused:?}"),
        };
        let events = stored("worker");
        let named = |wanted: &str| events.iter().find(|(name, _)| name == wanted).unwrap();
        for (name, event) in ["prompt", "stop"].map(named) {
            let _ = function.calls();
            let answer = function.invoke(event).await.unwrap();
            let id = &event["Records"][0]["messageId"];
            let held = json!({"batchItemFailures": [{"itemIdentifier": id}]});
            assert_eq!(answer, held, "{what}: {name}");
            let calls = function.calls();
            assert_eq!(calls[0].what, HIDE, "{what}: {name} is not claimed first");
            let hidden = calls.iter().rfind(|call| call.what == HIDE).unwrap();
            assert_eq!(hidden.body["VisibilityTimeout"], 2, "{what}: {name}");
        }
        let log = json!(function.log()).to_string();
        assert!(log.contains("the secret everything"), "{what}: {log}");
        assert!(!log.contains("canary"), "{what}: {log}");
        let mended =
            json!({"ARN": "arn", "Name": "everything", "SecretString": secret().to_string()});
        function.answer(READ, 200, mended);
        // While the message returns again and again, an unreadable secret is not read each time.
        eventually(SECRET_READ_MS_MAX, what, async || {
            let answer = function.invoke(&named("stop").1).await.unwrap();
            let is_done = answer == json!({"batchItemFailures": []});
            is_done.then_some(()).ok_or(answer)
        })
        .await;
        function.end().await;
    }
}

pub async fn accepted() {
    for function in ["ingress", "worker", "sweeper", "tools"] {
        match Function::start(function, secret(), |_| {}).await {
            Started::Ready(function) => {
                assert_eq!(function.log(), [Value::Null; 0]);
                function.end().await;
            }
            Started::Refused(refused) => panic!("{function}: {refused:?}"),
        }
    }
}

/// The one line, which Lambda gets as well; nothing else is written, and the process has failed.
fn one_line(what: &str, started: Started, reported: bool) -> String {
    let Refused { report, status, said } = match started {
        Started::Refused(refused) => refused,
        Started::Ready(_) => panic!("{what}: it has started"),
    };
    assert_eq!(status.code(), Some(1), "{what}: {said}");
    let read = |line: &str| -> Value {
        serde_json::from_str(line).unwrap_or_else(|e| panic!("{what}: {e}: {said}"))
    };
    // An unreadable secret is a line of its own, whenever it is noticed.
    let mut lines: Vec<Value> = said.lines().map(read).collect();
    lines.retain(|line| line["event"] != "secret.unread");
    let [line] = &lines[..] else { panic!("{what}: not one line: {said}") };
    assert_eq!(
        (&line["event"], &line["level"]),
        (&json!("start.refused"), &json!("ERROR")),
        "{what}"
    );
    let message = line["message"].as_str().unwrap_or_default().to_owned();
    for foreign in ["panicked", "backtrace", "unwrap", "\n"] {
        assert!(!message.contains(foreign), "{what}: {message}");
    }
    assert!(message.len() < 4_000, "{what}: {} bytes", message.len());
    match report {
        Some(report) => assert_eq!(
            report,
            json!({"errorMessage": message, "errorType": "Bobbin.Configuration"}),
            "{what}"
        ),
        None => assert!(!reported, "{what}: Lambda was told nothing"),
    }
    message
}
