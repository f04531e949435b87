//! The engine behind AWS's own SDKs for Python and JavaScript, and every raw answer against AWS's own model of it.

use std::path::{Path, PathBuf};

use bobbin_local_aws::EngineKeys;
use bobbin_tests::tools;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::Stack;

/// What a walk found.
#[derive(Debug, Deserialize)]
struct Walked {
    /// What was answered, as the script names it.
    walked: Value,
    /// Calls that were answered without a body.
    empty: Vec<String>,
    faults: Vec<String>,
}

fn sdk() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk")
}

/// Runs a script that is told where everything is and tells what it found.
async fn walk(mut script: Command, extra: (&str, Value)) -> Walked {
    let keys = EngineKeys::generate();
    let stack = Stack::start_signed(&keys).await;
    let mut given = json!({
        "endpoint": stack.engine.endpoint(),
        "access_key_id": keys.person.id,
        "secret_access_key": keys.person.secret,
        "control_key": keys.control,
        "secret": stack.engine.resource("Keys"),
        "seal": stack.engine.resource("Seal"),
        "other_seal": stack.engine.resource("OtherSeal"),
        "function": stack.engine.resource("Echo"),
        "queue_arn": "arn:aws:sqs:us-east-1:000000000000:test-Plain",
        "stack": "test",
    });
    given[extra.0] = extra.1;
    script.env("AWS_EC2_METADATA_DISABLED", "true");
    tools::found(&mut script, &given).await
}

fn strings(names: &Value) -> Vec<&str> {
    names.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn python_sdk_accepts_every_answer() {
    let python = tools::python("aws-sdk-python", &sdk().join("requirements.txt")).unwrap();
    let mut script = tools::script(python.join("python"));
    script.arg("-B").arg(sdk().join("walk.py"));
    let found = walk(script, ("packages", Value::Null)).await;
    assert_eq!(found.faults, Vec::<String>::new());
    assert_eq!(
        found.empty,
        [
            "ChangeMessageVisibility",
            "DeleteMessage",
            "DeleteQueue",
            "DeleteSchedule",
            "DeleteScheduleGroup",
            "PurgeQueue",
            "SetQueueAttributes",
            "TagQueue",
            "TagResource",
            "UntagQueue",
            "UntagResource",
        ]
    );
    assert_eq!(strings(&found.walked["cloudformation"]), ["DescribeStacks"]);
    assert_eq!(
        strings(&found.walked["secretsmanager"]),
        ["DescribeSecret", "GetSecretValue", "PutSecretValue"]
    );
    assert_eq!(strings(&found.walked["kms"]), ["Decrypt", "DescribeKey", "Encrypt"]);
    for (service, count) in [("sqs", 17), ("dynamodb", 23), ("scheduler", 9), ("lambda", 1)] {
        assert_eq!(
            strings(&found.walked[service]).len(),
            count,
            "{service}: {}",
            found.walked[service]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn javascript_sdk_accepts_every_answer() {
    let packages = tools::node("aws-sdk-javascript", &sdk()).unwrap();
    let mut script = tools::script("node");
    script.arg(sdk().join("walk.mjs"));
    let found = walk(script, ("packages", json!(packages))).await;
    assert_eq!(found.faults, Vec::<String>::new());
    assert_eq!(
        found.empty,
        [
            "ChangeMessageVisibility",
            "DeleteMessage",
            "DeleteQueue",
            "DeleteSchedule",
            "DeleteScheduleGroup",
            "PurgeQueue",
            "SetQueueAttributes",
            "TagQueue",
            "UntagQueue",
        ]
    );
    assert_eq!(strings(&found.walked).len(), 48, "{:?}", found.walked);
}
