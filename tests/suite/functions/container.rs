//! `sam local invoke` against a running stack: the output of `bobbin env` and `bobbin event`, and the real programs
//! with exactly that, in their own network, where the machine's loopback is not theirs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::records::outcome::Outcome;
use bobbin_tests::binaries::{self, workspace};
use bobbin_tests::function::{Function, Started};
use bobbin_tests::http;
use bobbin_tests::limits::{ANSWER_MS_MAX, CALL_MS_MAX};
use bobbin_tests::namespace::Namespace;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::wait::within;
use bobbin_tests::world::World;
use libtest_mimic::{Completion, Trial};
use serde_json::{Value, json};
use serde_yaml_ng::Value as Yaml;
use tokio::process::Command;

use crate::run::{CHAT, block_on, on};

pub fn environment() -> Trial {
    on(&CHAT, "functions::env_json_is_complete_without_keys", whole)
}

pub fn invoked() -> Trial {
    Trial::ignorable_test("functions::containerized_functions_work_with_laptop_stack", || {
        match Namespace::open() {
            Ok(namespace) => {
                block_on(container(&namespace));
                Ok(Completion::Completed)
            }
            Err(missing) => Ok(Completion::ignored_with(missing)),
        }
    })
}

/// Runs `bobbin` beside the stack with this state folder and an empty environment; returns its output.
async fn setup(state_dir: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(binaries::folder().join("bobbin"));
    command
        .args(["--laptop", "--state-dir"])
        .arg(state_dir)
        .args(arguments)
        .current_dir(workspace())
        .env_clear()
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let bound = std::time::Duration::from_millis(CALL_MS_MAX);
    let ended = tokio::time::timeout(bound, command.output()).await;
    let ended = ended.expect("it ends within its bound").unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success(), "{arguments:?}: {told}");
    String::from_utf8(ended.stdout).unwrap()
}

async fn env_json(state_dir: &Path, more: &[&str]) -> Value {
    let printed = setup(state_dir, &[&["env", "--file", "-"], more].concat()).await;
    serde_json::from_str(&printed).unwrap()
}

/// Each function's variables by the template, and whether each refers to something.
fn declared() -> BTreeMap<String, BTreeMap<String, bool>> {
    let text = std::fs::read_to_string(workspace().join("template.yaml")).unwrap();
    let template: Yaml = serde_yaml_ng::from_str(&text).unwrap();
    let variables = |of: &Yaml| -> Vec<(String, bool)> {
        let listed = of["Environment"]["Variables"].as_mapping();
        let pairs = listed.into_iter().flatten();
        pairs
            .map(|(name, value)| {
                (name.as_str().unwrap().to_owned(), is_reference(&template, value))
            })
            .collect()
    };
    let every = variables(&template["Globals"]["Function"]);
    let resources = template["Resources"].as_mapping().unwrap();
    let functions =
        resources.iter().filter(|(_, resource)| resource["Type"] == "AWS::Serverless::Function");
    functions
        .map(|(id, function)| {
            let own = variables(&function["Properties"]);
            let all = every.iter().cloned().chain(own).collect();
            (id.as_str().unwrap().to_owned(), all)
        })
        .collect()
}

/// To a resource, or to the stack itself; a reference to a parameter may be empty, as the parameter may.
fn is_reference(template: &Yaml, value: &Yaml) -> bool {
    let Yaml::Tagged(tagged) = value else {
        return false;
    };
    match tagged.value.as_str() {
        Some(name) if tagged.tag == "Ref" => {
            name.starts_with("AWS::") || template["Resources"].get(name).is_some()
        }
        _ => true,
    }
}

async fn whole(world: World) {
    let made = env_json(&world.state_dir, &["--container-host", "host.docker.internal"]).await;
    let functions = declared();
    assert_eq!(functions.len(), 4, "{functions:?}");
    let names =
        |of: &Value| -> BTreeSet<String> { of.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(names(&made), functions.keys().cloned().collect());
    for (function, variables) in &functions {
        // SAM skips a variable that the template does not declare, and takes a missing one from the shell.
        assert_eq!(names(&made[function]), variables.keys().cloned().collect(), "{function}");
        let referring = variables.iter().filter(|(_, refers)| **refers);
        for (name, _) in referring {
            assert_ne!(made[function][name], "", "{function}: {name}");
        }
    }
    let at = made["Worker"]["AWS_ENDPOINT_URL"].as_str().unwrap();
    let port = world.ready.aws_endpoint.rsplit(':').next().unwrap();
    assert_eq!(at, format!("http://host.docker.internal:{port}"));

    let text = made.to_string();
    let ready = &world.ready;
    let stack_key = world.secret("StackKey").await.unwrap()["stack_key"].clone();
    for key in [
        ready.daytona_api_key.as_str(),
        &ready.discord_bot_token,
        &ready.slack_bot_token,
        &ready.slack_signing_secret,
        &ready.discord_private_key,
        stack_key.as_str().unwrap(),
    ] {
        assert!(!key.is_empty() && !text.contains(key), "a key is in it");
    }
}

/// What SAM gives a function (samcli/local/lambdafn/env_vars.py): the template's variables with the values of env.json,
/// and Lambda's own.
fn of_sam(function: &str, env_json: &Value, key: &[String; 2]) -> Vec<(String, String)> {
    let [id, secret] = key;
    let lambda = [
        ("AWS_SAM_LOCAL", "true"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
        ("AWS_LAMBDA_FUNCTION_TIMEOUT", "900"),
        ("AWS_LAMBDA_FUNCTION_HANDLER", "bootstrap"),
        ("AWS_LAMBDA_FUNCTION_NAME", function),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "aws/lambda/local"),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "$LATEST"),
        ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", id),
        ("AWS_SECRET_ACCESS_KEY", secret),
        ("AWS_ACCOUNT_ID", "123456789012"),
    ];
    let declared = &declared()[function];
    let given = env_json[function].as_object().unwrap().iter();
    let given = given.filter(|(name, _)| declared.contains_key(*name));
    let given = given.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
    let lambda = lambda.map(|(name, value)| (name.to_owned(), value.to_owned()));
    lambda.into_iter().chain(given).collect()
}

/// What a shell reads from `bobbin credentials`: the variables that SAM passes on.
async fn credentials(state_dir: &Path) -> [String; 2] {
    let printed = setup(state_dir, &["credentials"]).await;
    let export = printed.lines().next().unwrap();
    let values = ["AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY="].map(|name| {
        let mut words = export.split(' ');
        let value = words.find_map(|word| word.strip_prefix(name)).unwrap();
        value.to_owned()
    });
    assert_eq!(
        printed,
        format!(
            "export AWS_ACCESS_KEY_ID={} AWS_SECRET_ACCESS_KEY={}\nunset AWS_SESSION_TOKEN\n",
            values[0], values[1]
        )
    );
    values
}

/// What SAM gives a stack's functions.
struct Given {
    env_json: Value,
    key: [String; 2],
}

async fn start(namespace: &Namespace, function: &str, given: &Given) -> Function {
    let variables = of_sam(function, &given.env_json, &given.key);
    match Function::start_in(namespace, &function.to_lowercase(), variables).await {
        Started::Ready(started) => *started,
        Started::Refused(refused) => panic!("{function}: {refused:?}"),
    }
}

async fn container(namespace: &Namespace) {
    let host = namespace.outside.to_string();
    let stack = tokio::task::spawn_blocking(move || {
        Stack::start(&Options {
            limits: quick(),
            stand_in_agent: true,
            containers: Some(host),
            ..Options::default()
        })
    });
    let stack = stack.await.unwrap();
    let world = World::of(&stack);
    let made = Given {
        env_json: env_json(&world.state_dir, &[]).await,
        key: credentials(&world.state_dir).await,
    };
    ingress(namespace, &world, &made).await;
    worker(namespace, &world, &made).await;
    sweeper(namespace, &made).await;
    stack.end().unwrap();
}

async fn event(world: &World, file: &str) -> Value {
    let made = setup(&world.state_dir, &["event", file]).await;
    serde_json::from_str(&made).unwrap()
}

async fn ingress(namespace: &Namespace, world: &World, given: &Given) {
    let mut function = start(namespace, "Ingress", given).await;
    let stored = std::fs::read_to_string(workspace().join("events/discord/ping.json")).unwrap();
    let stale = serde_json::from_str(&stored).unwrap();
    assert_eq!(function.invoke(&stale).await.unwrap()["statusCode"], 401);
    for (file, kind) in [
        ("events/discord/ping.json", json!(1)),
        ("events/discord/sandbox-in-channel.json", json!(5)),
    ] {
        let answer = function.invoke(&event(world, file).await).await.unwrap();
        let body = answer["body"].as_str().unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!((&answer["statusCode"], &body["type"]), (&json!(200), &kind), "{file}");
    }
    for file in [
        "events/slack/app_mention.json",
        "events/slack/url_verification.json",
        "events/slack/slash_help.json",
    ] {
        let answer = function.invoke(&event(world, file).await).await.unwrap();
        assert_eq!(answer["statusCode"], 200, "{file}: {answer}");
    }
    function.end().await;
    // The stack's own worker answers what it queued, where people see it.
    let (ready, client) = (&world.ready, http::client());
    let channel = format!("{}/channels/{}/messages", ready.discord_api, ready.discord_channel_id);
    let opened = async || {
        let request = client
            .get(&channel)
            .header("authorization", format!("Bot {}", ready.discord_bot_token));
        let messages: Value = request.send().await.unwrap().json().await.unwrap();
        let threads = messages.as_array().unwrap().iter();
        match threads.filter(|one| one["thread"].is_object()).count() {
            1 => Ok(()),
            found => Err(format!("{found} threads in {messages}")),
        }
    };
    within(ANSWER_MS_MAX, opened).await.unwrap();
}

async fn worker(namespace: &Namespace, world: &World, given: &Given) {
    let mut function = start(namespace, "Worker", given).await;
    let done = json!({"batchItemFailures": []});
    // The message is hidden from the stack's own worker, so only the container can process it.
    let prompt = event(world, "events/worker/prompt.json").await;
    let record = &prompt["Records"][0];
    assert_eq!(function.invoke(&prompt).await.unwrap(), done, "{:#?}", function.log());
    let thread: ThreadKey =
        record["attributes"]["MessageGroupId"].as_str().unwrap().parse().unwrap();
    let session = world.session(&thread).await.unwrap();
    let ended: Vec<_> = session.ended.iter().map(|turn| &turn.outcome).collect();
    assert!(matches!(ended[..], [Outcome::Answered]), "{session:?}");
    let sandboxes = world.provider.of(&thread).await.unwrap();
    assert_eq!(sandboxes.len(), 1, "{sandboxes:?}");

    let sweep = event(world, "events/worker/sweep.json").await;
    assert_eq!(function.invoke(&sweep).await.unwrap(), done, "{:#?}", function.log());

    // Without its message the record is retried and nothing happens.
    let mut invented = event(world, "events/worker/unreadable.json").await;
    let id = invented["Records"][0]["messageId"].take();
    invented["Records"][0]["messageId"] = id.clone();
    assert_eq!(
        function.invoke(&invented).await.unwrap(),
        json!({"batchItemFailures": [{"itemIdentifier": id}]})
    );
    function.end().await;
}

async fn sweeper(namespace: &Namespace, given: &Given) {
    let mut function = start(namespace, "Sweeper", given).await;
    let tick = std::fs::read_to_string(workspace().join("events/sweeper/tick.json")).unwrap();
    let answer = function.invoke(&serde_json::from_str(&tick).unwrap()).await.unwrap();
    // The sandbox of the worker's turn, at least, and it belongs to somebody.
    assert!(answer["orphans"]["listed"].as_u64().unwrap() >= 1, "{answer}");
    assert_eq!(answer["orphans"]["deleted"], 0, "{answer}");
    function.end().await;
}
