//! One-time schedules, as AWS's own client makes, changes and removes them, and what happens to those that fire.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::support::{Stack, send, until};

const WAKES_ARN: &str = "arn:aws:sqs:us-east-1:000000000000:test-Wakes.fifo";
const PLAIN_ARN: &str = "arn:aws:sqs:us-east-1:000000000000:test-Plain";

fn schedule(expression: &str, input: &str) -> Value {
    json!({
        "GroupName": "wakes",
        "ScheduleExpression": expression,
        "FlexibleTimeWindow": { "Mode": "OFF" },
        "Target": {
            "Arn": WAKES_ARN,
            "RoleArn": "arn:aws:iam::000000000000:role/x",
            "Input": input,
            "SqsParameters": { "MessageGroupId": "thread-1" },
        },
    })
}

/// `at(…)` so many seconds ahead, in a time zone that is this many hours ahead of UTC.
fn at(stack: &Stack, seconds: i64, hours: i64) -> String {
    let ms = stack.clock.now_ms() + seconds * 1000 + hours * 3_600_000;
    let time = chrono::DateTime::from_timestamp_millis(ms).unwrap();
    time.format("at(%Y-%m-%dT%H:%M:%S)").to_string()
}

async fn wakes(stack: &Stack) -> Vec<Value> {
    stack.peek("test-Wakes.fifo").await
}

#[tokio::test]
async fn due_schedule_fires_and_is_deleted() {
    let stack = Stack::start().await;
    let input = r#"{"at":"<aws.scheduler.scheduled-time>","id":"<aws.scheduler.execution-id>","arn":"<aws.scheduler.schedule-arn>","attempt":"<aws.scheduler.attempt-number>"}"#;
    let mut body = schedule(&at(&stack, 3600, 0), input);
    body["ActionAfterCompletion"] = json!("DELETE");
    let (status, reply) = stack.call("POST", "/schedules/wake-1", Some(body)).await;
    assert_eq!(status, 200, "{reply}");
    let arn = "arn:aws:scheduler:us-east-1:000000000000:schedule/wakes/wake-1";
    assert_eq!(reply["ScheduleArn"], arn);

    stack.advance(3590);
    let (status, told) = stack.call("GET", "/schedules/wake-1?groupName=wakes", None).await;
    assert_eq!((status, &told["State"]), (200, &json!("ENABLED")));
    assert!(wakes(&stack).await.is_empty());
    stack.advance(10);
    until("the schedule fires", async || wakes(&stack).await.len() == 1).await;
    let message = &wakes(&stack).await[0];
    assert_eq!(message["group_id"], "thread-1");
    let payload: Value = serde_json::from_str(message["body"].as_str().unwrap()).unwrap();
    assert_eq!(payload["arn"], arn);
    assert_eq!(payload["attempt"], "1");
    assert!(payload["at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(payload["id"].as_str().unwrap().len(), 36);
    let (status, _) = stack.call("GET", "/schedules/wake-1?groupName=wakes", None).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn schedules_with_same_input_are_deduplicated() {
    let stack = Stack::start().await;
    for (name, input) in [("one", "same"), ("two", "same"), ("three", "other")] {
        let body = schedule(&at(&stack, 60, 0), input);
        stack.call("POST", &format!("/schedules/{name}"), Some(body)).await;
    }
    stack.advance(60);
    // A fourth that is due later shows that the first three have been handled.
    let last = schedule(&at(&stack, 1, 0), "last");
    stack.call("POST", "/schedules/last", Some(last)).await;
    stack.advance(1);
    until("the last arrives", async || {
        wakes(&stack).await.iter().any(|message| message["body"] == "last")
    })
    .await;
    assert_eq!(wakes(&stack).await.len(), 3);
}

#[tokio::test]
async fn a_time_zone_moves_the_time() {
    let stack = Stack::start().await;
    // Japan is nine hours ahead of UTC all year.
    let mut body = schedule(&at(&stack, 120, 9), "tokyo");
    body["ScheduleExpressionTimezone"] = json!("Asia/Tokyo");
    stack.call("POST", "/schedules/tokyo", Some(body)).await;
    stack.advance(110);
    assert!(wakes(&stack).await.is_empty());
    stack.advance(10);
    until("the schedule fires", async || wakes(&stack).await.len() == 1).await;
}

#[tokio::test]
async fn rate_fires_until_end_date() {
    let stack = Stack::start().await;
    let mut body = schedule("rate(5 minutes)", "<aws.scheduler.execution-id>");
    let start = stack.clock.now_ms() / 1000 + 60;
    body["StartDate"] = json!(start);
    body["EndDate"] = json!(start + 400);
    stack.call("POST", "/schedules/often", Some(body)).await;
    for (advance, count) in [(61, 1), (300, 2), (300, 2), (300, 2)] {
        stack.advance(advance);
        until("the next firing", async || wakes(&stack).await.len() >= count).await;
    }
    assert_eq!(wakes(&stack).await.len(), 2);
}

#[tokio::test]
async fn undeliverable_firing_becomes_dead_letter() {
    let stack = Stack::start().await;
    let mut body = schedule(&at(&stack, 10, 0), "lost <aws.scheduler.attempt-number>");
    body["Target"]["Arn"] = json!("arn:aws:sqs:us-east-1:000000000000:gone.fifo");
    body["Target"]["RetryPolicy"] = json!({ "MaximumRetryAttempts": 2 });
    body["Target"]["DeadLetterConfig"] = json!({ "Arn": PLAIN_ARN });
    let (status, reply) = stack.call("POST", "/schedules/lost", Some(body)).await;
    assert_eq!(status, 200, "{reply}");
    until("the firing is given up", async || {
        stack.advance(10);
        !stack.peek("test-Plain").await.is_empty()
    })
    .await;
    assert_eq!(stack.peek("test-Plain").await[0]["body"], "lost 3");
}

#[tokio::test]
async fn restart_repeats_no_fired_schedule() {
    let stack = Stack::start().await;
    let fired = schedule(&at(&stack, 1, 0), "fired");
    stack.call("POST", "/schedules/fired", Some(fired)).await;
    let later = schedule(&at(&stack, 600, 0), "later");
    stack.call("POST", "/schedules/later", Some(later)).await;
    stack.advance(1);
    until("the first fires", async || wakes(&stack).await.len() == 1).await;
    // Past the window in which a second firing would be taken for a duplicate.
    let offset = 400;
    let folder = stack.folder.clone();
    stack.engine.stop().await;

    let stack = Stack::start_in(folder).await;
    stack.advance(offset);
    let (_, listed) = stack.call("GET", "/schedules?ScheduleGroup=wakes", None).await;
    assert_eq!(listed["Schedules"].as_array().unwrap().len(), 2);
    assert_eq!(wakes(&stack).await.len(), 1);
    stack.advance(201);
    until("the second fires", async || wakes(&stack).await.len() == 2).await;
    let last = &wakes(&stack).await[1];
    assert_eq!(last["body"], "later");
}

#[tokio::test]
async fn a_schedule_invokes_a_function() {
    let stack = Stack::start().await;
    let mut body = schedule("rate(1 minute)", r#"{"do":"print","text":"tick"}"#);
    body["Target"]["Arn"] = json!("arn:aws:lambda:us-east-1:000000000000:function:test-Echo");
    body["Target"]["SqsParameters"] = Value::Null;
    let (status, reply) = stack.call("POST", "/schedules/tick", Some(body)).await;
    assert_eq!(status, 200, "{reply}");
    until("the function ran", async || stack.has_line("to out: \"tick\"")).await;
}

#[tokio::test]
async fn schedule_api_refuses_as_aws_does() {
    let stack = Stack::start().await;
    let good = schedule(&at(&stack, 600, 0), "x");
    let put = async |method: &str, body: &Value| {
        stack.call(method, "/schedules/name", Some(body.clone())).await.0
    };
    assert_eq!(put("PUT", &good).await, 404);
    let mut tokened = good.clone();
    tokened["ClientToken"] = json!("token");
    assert_eq!(put("POST", &tokened).await, 200);
    assert_eq!(put("POST", &tokened).await, 200, "the same token is a repeat");
    assert_eq!(put("POST", &good).await, 409);
    assert_eq!(put("PUT", &good).await, 200);

    type Change = fn(&mut Value);
    let wrong: [(&str, Change); 7] = [
        ("no group id", |body| body["Target"]["SqsParameters"] = Value::Null),
        ("expression", |body| body["ScheduleExpression"] = json!("at(soon)")),
        ("zone", |body| body["ScheduleExpressionTimezone"] = json!("Mars/Base")),
        ("target", |body| body["Target"]["Arn"] = json!("arn:aws:sns:us-east-1:0:topic")),
        ("role", |body| body["Target"]["RoleArn"] = json!("arn:aws:iam::000000000000:user/x")),
        ("window", |body| body["FlexibleTimeWindow"] = json!({ "Mode": "FLEXIBLE" })),
        ("dead letters", |body| {
            body["Target"]["DeadLetterConfig"] = json!({ "Arn": WAKES_ARN });
        }),
    ];
    for (what, change) in wrong {
        let mut body = good.clone();
        change(&mut body);
        assert_eq!(put("PUT", &body).await, 400, "{what}");
    }
    let mut elsewhere = good.clone();
    elsewhere["GroupName"] = json!("unknown");
    assert_eq!(put("POST", &elsewhere).await, 404);

    let request = Request::builder()
        .method("DELETE")
        .uri(format!("{}/schedules/name?groupName=wakes", stack.engine.endpoint()))
        .body(Body::empty())
        .unwrap();
    assert_eq!(send(request).await.0, 200);
    assert_eq!(stack.call("POST", "/schedule-groups/more", None).await.0, 200);
    assert_eq!(stack.call("POST", "/schedule-groups/more", None).await.0, 409);
    assert_eq!(stack.call("DELETE", "/schedule-groups/more", None).await.0, 200);
    assert_eq!(stack.call("DELETE", "/schedule-groups/default", None).await.0, 400);
}
