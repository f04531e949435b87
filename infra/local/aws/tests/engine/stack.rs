//! The template: what is set up from it, and what is named as without effect.

use std::sync::Arc;

use aws_sdk_secretsmanager::Client as Secrets;
use serde_json::{Value, json};

use crate::support::{FUNCTIONS, Folder, PROJECT, SMALL, SMALLS, Stack, map, sdk_config, settings};

async fn project(folder: &Arc<Folder>, parameters: &[(&str, &str)]) -> Stack {
    let mut settings = settings(folder, PROJECT, &FUNCTIONS);
    settings.parameters = map(parameters);
    Stack::start_with(folder.clone(), settings).await
}

fn secrets(stack: &Stack) -> Secrets {
    Secrets::from_conf(sdk_config!(aws_sdk_secretsmanager, stack.engine.endpoint()).build())
}

async fn secret(stack: &Stack, id: &str) -> Value {
    let arn = stack.engine.resource(id).unwrap();
    let asked = secrets(stack).get_secret_value().secret_id(arn);
    let value = asked.send().await.unwrap();
    serde_json::from_str(value.secret_string().unwrap()).unwrap()
}

/// The small template, with parameters and values of secrets.
async fn small(folder: &Arc<Folder>, parameters: &[(&str, &str)], keys: Option<&str>) -> Stack {
    let mut wanted = settings(folder, SMALL, &SMALLS);
    wanted.parameters = map(parameters);
    let values: Vec<_> = keys.map(|value| ("Keys", value)).into_iter().collect();
    wanted.secrets = map(&values);
    Stack::start_with(folder.clone(), wanted).await
}

#[tokio::test]
async fn generated_secret_survives_parameter_changes() {
    let folder = Arc::new(Folder::new());
    let first = small(&folder, &[], None).await;
    let before = secret(&first, "Login").await;
    assert_eq!(before["greeting"], "hello");
    let key = before["password"].as_str().unwrap();
    assert_eq!(key.len(), 48);
    assert!(key.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    first.engine.stop().await;

    let second = small(&folder, &[("Greeting", "salve")], None).await;
    let after = secret(&second, "Login").await;
    assert_eq!(after["greeting"], "salve");
    assert_eq!(after["password"], before["password"]);
}

#[tokio::test]
async fn stored_secret_stays_unless_start_overrides() {
    let folder = Arc::new(Folder::new());
    let first = small(&folder, &[], None).await;
    assert_eq!(secret(&first, "Keys").await, json!({}));
    let put = secrets(&first)
        .put_secret_value()
        .secret_id(first.engine.resource("Keys").unwrap())
        .secret_string(r#"{"key":"put"}"#);
    put.send().await.unwrap();
    assert_eq!(secret(&first, "Keys").await["key"], "put");
    first.engine.stop().await;

    let second = small(&folder, &[], None).await;
    assert_eq!(secret(&second, "Keys").await["key"], "put");
    second.engine.stop().await;

    let third = small(&folder, &[], Some(r#"{"key":"brought"}"#)).await;
    assert_eq!(secret(&third, "Keys").await["key"], "brought");
}

#[tokio::test]
async fn conditions_leave_resources_and_properties_out() {
    let without = small(&Arc::new(Folder::new()), &[], None).await;
    assert_eq!(without.engine.resource("Extra"), None);
    let unread = |line: &String| line.contains("Condition");
    assert!(!without.engine.unhonoured().iter().any(unread));

    let folder = Arc::new(Folder::new());
    let with = small(&folder, &[("Most", "1")], None).await;
    assert!(with.engine.resource("Extra").is_some());
    // One at a time: who comes meanwhile is refused at the function URL, as somebody who sends too much would be.
    let url = with.engine.function_url("Echo").unwrap();
    let go = folder.0.join("go");
    let slow = with.invoke("Echo", json!({ "do": "wait", "file": go }));
    let other = async {
        crate::support::until("the first runs", async || with.has_line("waiting")).await;
        let request = axum::http::Request::get(url).body(axum::body::Body::empty());
        let (status, _, _) = crate::support::send(request.unwrap()).await;
        std::fs::write(&go, "").unwrap();
        status
    };
    let ((failed, _), status) = tokio::join!(slow, other);
    assert_eq!((failed, status), (None, 429));
}

#[tokio::test]
async fn project_template_works_with_known_gaps() {
    let stack = project(&Arc::new(Folder::new()), &[]).await;
    let outputs = stack.engine.outputs();
    let ingress = stack.engine.function_url("Ingress").unwrap();
    assert_eq!(outputs["DiscordEndpoint"], format!("{ingress}discord/interactions"));
    assert_eq!(outputs["MessagesQueueUrl"], stack.engine.resource("Messages").unwrap());
    assert_eq!(outputs["TableName"], "test-Table");
    let unhonoured = stack.engine.unhonoured();
    for expected in [
        "AWS::Serverless::Function Role (Ingress, Sweeper, Worker): roles are not enforced, every call is allowed",
        "AWS::Serverless::Function MemorySize (Ingress, Sweeper, Worker): passed to the function, not enforced",
        "AWS::Serverless::Function EventInvokeConfig (Sweeper): no invocation is repeated",
        "AWS::DynamoDB::Table SSESpecification (Table): the file is not encrypted",
        "AWS::IAM::Role (IngressRole, SchedulerRole, SweeperRole, WorkerRole): roles are not enforced, every call is allowed",
    ] {
        assert!(unhonoured.iter().any(|line| line == expected), "{expected} in {unhonoured:#?}");
    }
    let unknown: Vec<_> = unhonoured.iter().filter(|line| line.contains("not known")).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

/// The body of a wake-up with what the template tells the worker, due in a minute.
fn wake(stack: &Stack, environment: &Value, queue: &Value, input: &str) -> Value {
    let at = chrono::DateTime::from_timestamp_millis(stack.clock.now_ms() + 60_000).unwrap();
    json!({
        "GroupName": environment["SCHEDULE_GROUP"],
        "ScheduleExpression": at.format("at(%Y-%m-%dT%H:%M:%S)").to_string(),
        "FlexibleTimeWindow": { "Mode": "OFF" },
        "ActionAfterCompletion": "DELETE",
        "Target": {
            "Arn": queue,
            "RoleArn": environment["SCHEDULE_ROLE_ARN"],
            "Input": input,
            "SqsParameters": { "MessageGroupId": "discord:1:2" },
            "DeadLetterConfig": { "Arn": environment["SCHEDULE_DEAD_QUEUE_ARN"] },
            "RetryPolicy": { "MaximumRetryAttempts": 0 },
        },
    })
}

#[tokio::test]
async fn only_worker_can_schedule_wakes() {
    let stack = project(&Arc::new(Folder::new()), &[]).await;
    let environment = async |name: &str| {
        let (failed, told) = stack.invoke(name, json!({ "do": "environment" })).await;
        assert_eq!(failed, None, "{told}");
        told
    };
    let worker = environment("Worker").await;
    assert_eq!(worker["SCHEDULE_GROUP"], "test-Wakes");
    assert_eq!(worker["SCHEDULE_ROLE_ARN"], "arn:aws:iam::000000000000:role/test-SchedulerRole");
    for name in ["Ingress", "Sweeper"] {
        let told = environment(name).await;
        for variable in
            ["SCHEDULE_GROUP", "SCHEDULE_ROLE_ARN", "SCHEDULE_DEAD_QUEUE_ARN", "MESSAGES_QUEUE_ARN"]
        {
            assert!(told[variable].is_null(), "{name} has {variable}");
        }
    }

    let good = wake(&stack, &worker, &worker["MESSAGES_QUEUE_ARN"], r#"{"name":"woken"}"#);
    let gone = json!("arn:aws:sqs:us-east-1:000000000000:test-Gone.fifo");
    let lost = wake(&stack, &worker, &gone, r#"{"name":"lost"}"#);
    for (name, body) in [("idle-1", good), ("idle-2", lost)] {
        let path = format!("/schedules/{name}");
        let (status, reply) = stack.call("POST", &path, Some(body)).await;
        assert_eq!(status, 200, "{reply}");
    }
    stack.advance(61);
    crate::support::until("the worker is woken", async || stack.has_line("end woken")).await;
    let grouped = |line: &String| line.contains("woken") && line.contains("discord:1:2");
    assert!(stack.texts().iter().any(grouped), "{:#?}", stack.texts());
    crate::support::until("what cannot arrive becomes a dead letter", async || {
        let dead_letters = stack.peek("test-WakesDead").await;
        dead_letters.len() == 1 && dead_letters[0]["body"] == r#"{"name":"lost"}"#
    })
    .await;
    for name in ["idle-1", "idle-2"] {
        let path = format!("/schedules/{name}?groupName=test-Wakes");
        assert_eq!(stack.call("GET", &path, None).await.0, 404);
    }
}

#[tokio::test]
async fn project_functions_get_messages_and_ticks() {
    let stack = project(&Arc::new(Folder::new()), &[]).await;
    crate::support::until("the sweeper ticks", async || {
        let lines = stack.lines.lock().unwrap().clone();
        lines.iter().any(|line| line.function == "Sweeper" && line.text.contains("aws.scheduler"))
    })
    .await;
    let url = stack.engine.resource("Messages").unwrap();
    let send = stack.sqs().send_message().queue_url(url).message_group_id("t");
    send.message_body("{\"name\":\"x\"}").send().await.unwrap();
    crate::support::until("the worker runs", async || stack.has_line("end x")).await;
}

#[tokio::test]
async fn template_parameters_and_functions_are_resolved() {
    let folder = Arc::new(Folder::new());
    let mut wanted = settings(&folder, SMALL, &SMALLS);
    wanted.parameters = map(&[("Greeting", "salve"), ("Days", "30")]);
    let stack = Stack::start_with(folder, wanted).await;
    let outputs = stack.engine.outputs();
    assert_eq!(outputs["Joined"], "salve-us-east-1");
    assert_eq!(outputs["Sized"], "long");
    assert_eq!(Some(outputs["Address"].clone()), stack.engine.function_url("Echo"));
    assert!(stack.engine.unhonoured().contains(
        &"AWS::CloudWatch::Alarm (Watch): resources of this type are not set up here".to_owned()
    ));
}

#[tokio::test]
async fn stack_is_described_by_name() {
    let stack = Stack::start().await;
    let (status, told) = describe(&stack, "test").await;
    assert_eq!(status, 200);
    for part in [
        "<StackName>test</StackName>",
        "<StackStatus>CREATE_COMPLETE</StackStatus>",
        "<member><OutputKey>Joined</OutputKey><OutputValue>hello-us-east-1</OutputValue></member>",
        "<member><ParameterKey>Greeting</ParameterKey><ParameterValue>hello</ParameterValue></member>",
        "<member><ParameterKey>Password</ParameterKey><ParameterValue>****</ParameterValue></member>",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    let (status, told) = describe(&stack, "other").await;
    assert_eq!(status, 400);
    assert!(
        told.contains(
            "<Code>ValidationError</Code><Message>Stack with id other does not exist</Message>"
        ),
        "{told}"
    );
}

async fn describe(stack: &Stack, name: &str) -> (u16, String) {
    let body = format!("Action=DescribeStacks&Version=2010-05-15&StackName={name}");
    let request = axum::http::Request::post(format!("{}/", stack.engine.endpoint()))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(axum::body::Body::from(body))
        .unwrap();
    let (status, _, told) = crate::support::send(request).await;
    (status, String::from_utf8(told).unwrap())
}
