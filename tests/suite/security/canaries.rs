//! Secrets stay where they belong: a stack whose every secret is recognisable runs everything that can happen to a
//! thread, at the most verbose level of its logs, and then each place that anything was written to is searched.
//!
//! A canary may stand in the places of [`allowed`] and nowhere else. What a person writes is no secret, but no log
//! holds it either: a word that only prompts contain must be found in the chat, at the model and in the sandbox, which
//! shows that the search looks there, and must not be found in the logs.

use std::collections::BTreeMap;
use std::sync::Arc;

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::names::{sandbox_name, sandbox_password};
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::records::control::{Control, ControlAction};
use bobbin_core::records::message::{Body, Reply};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::tenant::budgets::BudgetKind;
use bobbin_core::tenant::commands::Command;
use bobbin_core::tenant::settings::SettingsChange;
use bobbin_tests::chat::Platform;
use bobbin_tests::forge::TestForge;
use bobbin_tests::limits::{ANSWER_MS_MAX, CANCEL_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::processes;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::Talk;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use reqwest::Method;
use serde_json::{Value, json};

use super::search::{Found, Search, Searched, Secret, files, of_file};
use super::{queue, requests};
use crate::choice::set;
use crate::forge::{a_name, pressed};
use crate::run::trial;

/// Name of the laptop stack, a part of its sandboxes' names.
const STACK: &str = "local";
/// Only in prompts.
const WORD: &str = "woodpecker-in-every-prompt";
/// In the prompt whose model uses a key of the sandbox's own.
const CAPPED: &str = "with-a-capped-key";

pub fn trials() -> Vec<Trial> {
    vec![trial("security::secrets_never_leave_their_places", canaries)]
}

/// Values with characters that URLs and base64 change, and without the prefixes that a scrubber could recognise.
fn keys() -> Vec<Secret> {
    let canary =
        |name: &str| Secret::new(name, format!("canary/{name}+must=stay.{}", std::process::id()));
    [
        "discord_bot_token",
        "slack_bot_token",
        "slack_signing_secret",
        "daytona_api_key",
        "vercel_token",
    ]
    .map(canary)
    .to_vec()
}

fn model_keys() -> Vec<Secret> {
    let canary =
        |name: &str| Secret::new(name, format!("canary/{name}+must=stay.{}", std::process::id()));
    ["openai_api_key", "anthropic_api_key", "openrouter_api_key", "openrouter_management_key"]
        .map(canary)
        .to_vec()
}

fn start(secrets: &[Secret]) -> Stack {
    let folder = tempfile::Builder::new().prefix("bobbin-test-").tempdir().unwrap();
    let of = |name: &str| secrets.iter().find(|one| one.name == name).unwrap().value.clone();
    let keys = json!({
        "discord_seed": "7e".repeat(32), "discord_application_id": "1240000000000000001", "discord_bot_token": of("discord_bot_token"),
        "slack_signing_secret": of("slack_signing_secret"), "slack_bot_token": of("slack_bot_token"),
        "slack_bot_user_id": "U0CANARYBOT", "slack_app_id": "A0CANARYAPP", "daytona_api_key": of("daytona_api_key"),
        "vercel_token": of("vercel_token"),
    });
    std::fs::create_dir(folder.path().join("state")).unwrap();
    std::fs::write(folder.path().join("state/keys.json"), keys.to_string()).unwrap();
    let mut limits = quick();
    limits["attempts"] = json!(2);
    limits["outage_ms"] = json!(4_000);
    for bound in ["breaker_open_ms", "breaker_open_ms_max", "breaker_probe_ms"] {
        limits[bound] = json!(500);
    }
    Stack::start_in(
        &Arc::new(folder),
        &Options {
            // A model behind a key: the scripted one under the name of a provider that needs one.
            parameters: json!({
                "Model": "anthropic/scripted-1",
                "Overrides": json!({"prices": {"anthropic/scripted-1": {"input": 1, "output": 1}}}).to_string(),
            }),
            keys: json!({
                "openai_api_key": of("openai_api_key"), "anthropic_api_key": of("anthropic_api_key"),
                "openrouter_api_key": of("openrouter_api_key"),
                "openrouter_management_key": of("openrouter_management_key"),
            }),
            environment: [("BOBBIN_LOG", "trace"), ("BOBBIN_LOG_LEVEL", "trace")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            ..Options::limits(limits)
        },
    )
}

async fn canaries() {
    let mut secrets = [keys(), model_keys()].concat();
    let stack = start(&secrets);
    let world = World::of(&stack);
    // Not among the allowed ones: a tenant's own key is only written sealed.
    let own = Secret::new(
        "own_daytona_key",
        format!("canary/own_daytona_key+must=stay.{}", std::process::id()),
    );
    world.provider.add_key(&own.value, 2).await.unwrap();
    let made = [
        ("control_key", &world.ready.control_key),
        ("aws_secret_access_key", &world.ready.aws_secret_access_key),
    ];
    secrets.extend(made.map(|(name, key)| Secret::new(name, key)));
    for platform in Platform::ALL {
        usual(&world, platform).await;
        troubled(&world, platform).await;
        gone(&world, platform).await;
        buried(&world, platform).await;
    }
    budgeted(&world).await;
    carried(&world).await;
    let project = Secret::new(
        "project_secret",
        format!("canary/project_secret+must=stay.{}", std::process::id()),
    );
    crate::secrets::enter_and_use(&world, &project.value).await;
    crate::own_keys::enter_and_list(&world, &own.value).await;
    let codes = crate::forge_accounts::sign_in_everywhere(&world).await;
    assert_eq!(codes.len(), 4);
    secrets.extend(codes.iter().map(|code| Secret::new("github_code", code)));
    secrets.push(Secret::new("github_client_secret", &*world.ready.github_client_secret));
    secrets.push(Secret::new("github_user_token", &*world.ready.github_user_token));
    secrets.push(Secret::new("github_private_key", key_line(&world)));
    secrets.push(own);
    secrets.push(project);
    let stack_key = stack_key(&world).await;
    for session in world.aws.sessions(&world.deployment.table).await.unwrap() {
        for generation in 1..=session.sandbox.generation {
            let name = sandbox_name(STACK, &session.thread.sandbox(), generation);
            let password = sandbox_password(&stack_key, &name);
            secrets.push(Secret::new(format!("password of {name}"), password));
        }
    }
    secrets.push(Secret::new("stack_key", stack_key));
    let passwords = secrets.iter().filter(|one| one.name.starts_with("password")).count();
    assert!(passwords >= 8, "only {passwords} sandboxes were made");

    let search = Search::new(&secrets);
    in_processes(&stack, &search);
    let (mut looked, mut bytes) = (0, 0);
    let mut leaks: Vec<Found> = Vec::new();
    let mut used: BTreeMap<&'static str, usize> = BTreeMap::new();
    let word = Search::new(&[Secret::new("a prompt", WORD)]);
    let mut prompts: Vec<String> = Vec::new();
    let folder = stack.folder().path();
    for place in everything(&world, folder).await {
        looked += 1;
        bytes += place.text.len();
        for found in search.find(&place) {
            match allowed(&found) {
                Some(why) => *used.entry(why).or_default() += 1,
                None => leaks.push(found),
            }
        }
        // The programs know how tokens begin.
        let may = ["state/forge/", "state/aws/functions/"];
        if !may.iter().any(|may| place.name.starts_with(may)) {
            let tokens = forge_tokens(&place.text);
            assert!(tokens.is_empty(), "{tokens:?} in {}", place.name);
        }
        prompts.extend(word.find(&place).into_iter().map(|found| found.place));
    }
    leaks.sort();
    assert!(leaks.is_empty(), "secrets stand where they must not: {leaks:#?}");
    for (why, _) in ALLOWED {
        assert!(used.contains_key(why), "nothing stands there any more: {why}");
    }
    // The search covered the places of people's words, and the logs have none of them.
    for there in [
        "the chat's requests of discord",
        "the chat's requests of slack",
        "the model's calls",
        "state/daytona/",
        "chat.sqlite: table item",
    ] {
        assert!(
            prompts.iter().any(|place| place.contains(there)),
            "{there} was not looked into: {prompts:?}"
        );
    }
    let logged: Vec<&String> =
        prompts.iter().filter(|place| place.contains("output.log")).collect();
    let log = std::fs::read_to_string(folder.join("output.log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(WORD)).collect();
    assert!(logged.is_empty(), "a prompt stands in the logs: {logged:?} {lines:#?}");
    tokens_are_not_logged(&world, folder).await;
    keys_reach_the_model(&world, &secrets).await;
    println!(
        "{} secrets in {} forms; {looked} places, {} MB searched; allowed places used: {used:?}",
        secrets.len(),
        search.len(),
        bytes / 1_000_000
    );
    world.check_orphans().await.unwrap();
    stack.end().unwrap();
}

/// Where a secret must be, by the beginning of the place's name.
const ALLOWED: [(&str, &str); 4] = [
    ("the forge's own state", "state/forge/"),
    ("the keys of the local platforms and provider, made by the stack itself", "state/keys.json"),
    ("the file of addresses and keys that --ready-file asks for", "ready.json"),
    ("Secrets Manager's own file", "state/aws/aws.sqlite"),
];

/// Why a secret may be where it was found.
fn allowed(found: &Found) -> Option<&'static str> {
    let platform = [
        "discord_bot_token",
        "slack_bot_token",
        "slack_signing_secret",
        "daytona_api_key",
        "vercel_token",
        "control_key",
        "aws_secret_access_key",
    ];
    let forge = [
        "github_user_token",
        "github_private_key",
        "github_client_secret",
        "github_webhook_secret",
    ];
    let (why, _) = ALLOWED.into_iter().find(|(_, place)| found.place.starts_with(place))?;
    let secrets = found.place == "state/aws/aws.sqlite: table secrets"
        // The same rows, as bytes of the file and of its log.
        || ["state/aws/aws.sqlite", "state/aws/aws.sqlite-wal"].contains(&found.place.as_str());
    let may = match found.place.as_str() {
        "ready.json" if forge.contains(&found.secret.as_str()) => true,
        "state/keys.json" | "ready.json" => platform.contains(&found.secret.as_str()),
        place if place.starts_with("state/forge/") => forge.contains(&found.secret.as_str()),
        _ => secrets && !found.secret.starts_with("password"),
    };
    (may && found.form == "as it is").then_some(why)
}

/// A sandbox gets its own model key, which the management key creates and ends.
async fn budgeted(world: &World) {
    let budget = |turn| SettingsChange::Budgets { set: [(BudgetKind::Turn, turn)].into() };
    set(world, Platform::Discord, budget(Some(1_000_000))).await;
    let lines = format!("echo: {WORD} {CAPPED}");
    let (talk, turn) = world.begin(Platform::Discord, &lines).await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    assert_eq!(world.model_keys().await.unwrap().len(), 1);
    talk.finish().await;
    assert_eq!(world.model_keys().await.unwrap().len(), 0);
    set(world, Platform::Discord, budget(None)).await;
}

/// A private repository is fetched into a sandbox, which stays, and its work is pushed.
async fn carried(world: &World) {
    let forge = TestForge::of(&world.ready);
    let repository = forge.private(&a_name(), &[("README.md", "begin\n")]).await;
    let choices = [("repo", &*repository.name)];
    let lines = "write: page.txt hello";
    let (talk, turn) = world.begin_with(Platform::Discord, &choices, lines).await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    pressed(&talk, &turn, &repository).await;
}

/// A line out of the middle of the app's key, which no other key has.
fn key_line(world: &World) -> String {
    let lines: Vec<&str> = world.ready.github_private_key.lines().collect();
    lines[lines.len() / 2].to_owned()
}

/// Tokens that the forge gave the app or a person, by GitHub's format.
fn forge_tokens(text: &str) -> Vec<&str> {
    let begins = ["ghs_", "ghu_", "ghr_"];
    let tokens = begins.iter().flat_map(|begin| text.match_indices(begin)).map(|(at, _)| {
        let rest = &text[at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"_.-".contains(c));
        &rest[..end.unwrap_or(rest.len())]
    });
    tokens.filter(|token| token.len() >= 24).collect()
}

/// A person's usual actions, and a model that refuses.
async fn usual(world: &World, platform: Platform) {
    let (mut talk, first) = world.begin(platform, &format!("write: hello.txt {WORD}")).await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let second = talk.say(&format!("run: cat hello.txt; echo {WORD}")).await;
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    // What the agent can find out about its models' keys, and print. It asks before it reads outside its folder.
    let keys = "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a _API_KEY= | sort -u";
    let third = talk.say(&format!("run: {keys}")).await;
    let ask = talk
        .see(VISIBLE_MS_MAX * 2, "it asks whether it may look", |one| {
            one.button("Allow once").is_some()
        })
        .await;
    talk.press(&ask, "Allow once").await;
    assert_eq!(talk.ended(&third).await.outcome, Outcome::Answered);
    for (label, lines) in [("Allow once", "ask: echo allowed"), ("Deny", "ask: echo denied")] {
        let turn = talk.say(lines).await;
        let ask = talk
            .see(VISIBLE_MS_MAX * 2, "the permission is asked for", |one| {
                one.button(label).is_some()
            })
            .await;
        talk.press(&ask, label).await;
        talk.ended(&turn).await;
    }
    let question = talk.say("question: Which? | red | blue").await;
    let asked = talk
        .see(VISIBLE_MS_MAX * 2, "the question stands", |one| one.button("red").is_some())
        .await;
    talk.press(&asked, "red").await;
    talk.ended(&question).await;
    let long = talk.say("long: 5000").await;
    assert_eq!(talk.ended(&long).await.outcome, Outcome::Answered);
    let slow = talk.say("slow: 60 one two three four five").await;
    talk.running(&slow).await;
    talk.stop().await;
    talk.ended_within(CANCEL_MS_MAX, &slow).await;
    for status in ["401", "400"] {
        let failing = talk.say(&format!("fail: {status}")).await;
        assert!(matches!(talk.ended(&failing).await.outcome, Outcome::Failed { .. }));
    }
    talk.status().await;
    talk.finish().await;

    let files = [("secret.txt", "https://10.0.0.1/f?token=none".to_owned())];
    let talk = super::outgoing::begin(world, platform, &format!("echo: {WORD}"), &files).await;
    let turn = talk.accepted[0].turn.clone();
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
}

/// The provider refuses, and the model fails for good.
async fn troubled(world: &World, platform: Platform) {
    for fault in [
        json!({"fault": "answer", "operation": "*", "status": 401, "for_ms": 600_000}),
        json!({"fault": "answer", "operation": "*", "status": 500, "for_ms": 600_000}),
        json!({"fault": "html", "operation": "*", "status": 502, "for_ms": 600_000}),
    ] {
        world.provider.arm(&fault).await.unwrap();
        let (talk, turn) = world.begin(platform, &format!("echo: {WORD}")).await;
        let ended = talk.ended(&turn).await;
        world.provider.clear().await.unwrap();
        assert!(matches!(ended.outcome, Outcome::Failed { .. }), "{fault}: {:?}", ended.outcome);
    }
    let (talk, turn) = world.begin(platform, "fail: 500").await;
    // Its server retries again and again: a person ends it.
    talk.running(&turn).await;
    talk.stop().await;
    talk.ended_within(CANCEL_MS_MAX, &turn).await;
}

/// The thread is deleted while the agent works.
async fn gone(world: &World, platform: Platform) {
    let (talk, turn) = world.begin(platform, "slow: 5 nobody will read this").await;
    talk.running(&turn).await;
    match platform {
        Platform::Discord => {
            let gone = json!({"channel_id": talk.thread.channel});
            world.discord.control(Method::POST, "delete_channel", &gone).await.unwrap();
        }
        Platform::Slack => {
            let fault =
                json!({"route": "chat.", "status": 200, "error": "channel_not_found", "count": 4});
            slack_fault(world, Method::POST, &fault).await;
        }
    }
    ends_on_record(world, &talk, &turn).await;
    if platform == Platform::Slack {
        slack_fault(world, Method::DELETE, &Value::Null).await;
    }
}

async fn ends_on_record(world: &World, talk: &Talk<'_>, turn: &str) {
    eventually(ANSWER_MS_MAX, "the turn ends on record", async || {
        let session = world.session(&talk.thread.key).await?;
        let ended = session.ended.iter().any(|one| one.id == turn);
        if ended { Ok(()) } else { Err(format!("{:?}", session.turn)) }
    })
    .await;
}

async fn slack_fault(world: &World, method: Method, fault: &Value) {
    let url = format!("{}/_control/slack/faults", world.ready.console);
    let client = bobbin_tests::http::client();
    let armed =
        bobbin_tests::http::call(&client, method, &url, &world.ready.control(), fault).await;
    armed.and_then(|answer| answer.ok()).unwrap();
}

/// A control message becomes a dead letter.
async fn buried(world: &World, platform: Platform) {
    let ready = &world.ready;
    let (thread, reply) = match platform {
        Platform::Discord => (
            ThreadKey::discord(&ready.discord_guild_id, &ready.discord_channel_id),
            Reply::Discord {
                application: ready.discord_application_id.clone(),
                token: "a-token-that-is-over".to_owned(),
            },
        ),
        Platform::Slack => (
            ThreadKey::slack(&ready.slack_team_id, &ready.slack_channel_id, "1700000000.000100"),
            Reply::Slack {
                channel: ready.slack_channel_id.clone(),
                thread_ts: None,
                user: ready.slack_user_id.clone(),
            },
        ),
    };
    let control = Control {
        id: format!("buried-{}", platform.word()),
        thread: thread.unwrap(),
        by: Person { id: "1".to_owned(), name: "Ada".to_owned() },
        reply,
        membership: Membership::default(),
        want: ControlAction::Command { command: Command::Status },
    };
    let body = Body::Control(control);
    let queue_url = world.deployment.control_queue_url.replace("Control.", "ControlDead.");
    let sent = json!({
        "QueueUrl": queue_url, "MessageBody": serde_json::to_string(&body).unwrap(),
        "MessageGroupId": body.group(), "MessageDeduplicationId": body.id(),
    });
    world.aws.call("sqs", "AmazonSQS.SendMessage", &sent).await.unwrap();
    eventually(VISIBLE_MS_MAX, "the dead letter is read", async || {
        world.sweep().await?;
        let left = queue(world, &queue_url).await;
        match left.as_array().map_or(1, Vec::len) {
            0 => Ok(()),
            left => Err(format!("{left} left")),
        }
    })
    .await;
}

async fn stack_key(world: &World) -> String {
    let secret = world.secret("StackKey").await.unwrap();
    secret["stack_key"].as_str().unwrap().to_owned()
}

/// What the stack's parts answer, and every file of the stack.
pub async fn everything(world: &World, folder: &std::path::Path) -> Vec<Searched> {
    let mut all = told(world).await;
    let written = files(folder).into_iter();
    all.extend(written.flat_map(|(path, bytes)| of_file(folder, &path, &bytes)));
    all
}

/// What the stack's parts answer.
async fn told(world: &World) -> Vec<Searched> {
    let mut told = Vec::new();
    for platform in ["discord", "slack"] {
        let made = Value::Array(requests(world, platform, 0).await);
        told.push(Searched::new(format!("the chat's requests of {platform}"), made.to_string()));
    }
    let items = world.aws.scan(&world.deployment.table).await.unwrap();
    told.push(Searched::new("the table", Value::Array(items).to_string()));
    let deployment = &world.deployment;
    for url in [&deployment.messages_queue_url, &deployment.control_queue_url] {
        for url in [url.clone(), url.replace(".fifo", "Dead.fifo")] {
            let name = url.rsplit('/').next().unwrap().to_owned();
            told.push(Searched::new(format!("queue {name}"), queue(world, &url).await.to_string()));
        }
    }
    told.push(Searched::new(
        "the model's calls",
        format!("{:?}", world.model_calls().await.unwrap()),
    ));
    let client = bobbin_tests::http::client();
    let bearer = format!("Bearer {}", world.ready.daytona_api_key);
    let asked = async |url: String| {
        let answer = bobbin_tests::http::call(&client, Method::GET, &url, &bearer, &Value::Null)
            .await
            .unwrap();
        Searched::new(
            format!("the provider's {}", url.split("/api").last().unwrap_or_default()),
            answer.text,
        )
    };
    let api = world.ready.daytona_api.trim_end_matches('/').to_owned();
    told.push(asked(format!("{api}/sandbox?limit=200")).await);
    for sandbox in world.provider.list().await.unwrap() {
        let toolbox = format!("{}/{}", sandbox.toolbox_proxy_url.trim_end_matches('/'), sandbox.id);
        told.push(asked(format!("{api}/sandbox/{}", sandbox.id)).await);
        told.push(asked(format!("{api}/sandbox/{}/ports/4096/preview-url", sandbox.id)).await);
        told.push(asked(format!("{toolbox}/process/session")).await);
        told.push(asked(format!("{toolbox}/files?path=project")).await);
    }
    told
}

/// Environments and arguments of every process of the stack. An agent's server has the password of its own sandbox, and
/// something that stands for the model keys; where sandboxes have no network of their own, the keys of the providers
/// whose models can be chosen (OpenAI's cannot beside an endpoint of one's own). The functions have nothing, they read
/// their secrets themselves.
fn in_processes(stack: &Stack, search: &Search) {
    let (mut servers, mut others) = (0, 0);
    for (pid, command) in processes::marked(stack.folder().path()) {
        // The keys of this test are arguments of the stack itself.
        if pid == stack.pid() {
            continue;
        }
        let read = |what: &str| {
            let bytes = std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let arguments = read("cmdline");
        let found = search.find(&Searched::new("arguments", arguments.clone()));
        assert!(found.is_empty(), "{command} has secrets among its arguments: {found:?}");
        let environment = Searched::new("environment", read("environ"));
        let mut found: Vec<String> =
            search.find(&environment).into_iter().map(|one| one.secret).collect();
        found.sort();
        found.dedup();
        if environment.text.contains("OPENCODE_SERVER_PASSWORD=") {
            servers += 1;
            let keys: &[&str] = if has_own_network(&environment.text) {
                &[]
            } else {
                &["anthropic_api_key", "openrouter_api_key"]
            };
            let (password, found) = found.split_last().unwrap();
            assert!(found == keys && password.starts_with("password of "), "{command}: {found:?}");
        } else {
            others += 1;
            assert!(found.is_empty(), "{command} has secrets in its environment: {found:?}");
        }
    }
    assert!(
        servers > 0 && others > 2,
        "{servers} servers and {others} other processes were looked at"
    );
}

/// Whether a process of a sandbox, by its environment, has a network of its own.
fn has_own_network(environment: &str) -> bool {
    environment.contains("BOBBIN_PORTS=")
}

/// The model was asked with the stack's key, and the agent that searched for keys printed their placeholder.
async fn keys_reach_the_model(world: &World, secrets: &[Secret]) {
    use sha2::Digest as _;
    let key = secrets.iter().find(|one| one.name == "anthropic_api_key");
    let digits = hex::encode(sha2::Sha256::digest(&key.unwrap().value));
    let calls = world.model_calls().await.unwrap();
    assert!(!calls.is_empty());
    for call in calls.iter().filter(|call| !call.user.contains(CAPPED)) {
        assert_eq!(call.key.as_deref(), Some(&digits[..16]), "{call:?}");
    }
    let printed =
        calls.iter().filter(|call| call.text.contains("ANTHROPIC_API_KEY=dtn_secret_")).count();
    // Processes with a project's secret print their environment too.
    assert!(printed >= Platform::ALL.len(), "{calls:#?}");
}

/// The tokens of interactions answer for fifteen minutes: the logs hold none.
async fn tokens_are_not_logged(world: &World, folder: &std::path::Path) {
    let log = std::fs::read_to_string(folder.join("output.log")).unwrap_or_default();
    assert!(
        log.contains("\"level\":\"INFO\"") || log.contains("a request was answered"),
        "the functions' logs are not there"
    );
    let mut tokens: Vec<String> = Vec::new();
    for request in requests(world, "discord", 0).await {
        let route = request["route"].as_str().unwrap_or_default().to_owned();
        let token = route.split("/webhooks/").nth(1).and_then(|rest| rest.split('/').nth(1));
        tokens.extend(token.map(str::to_owned));
    }
    tokens.sort();
    tokens.dedup();
    assert!(tokens.len() > 5, "only {} tokens were used", tokens.len());
    let logged: Vec<(&String, Option<&str>)> = tokens
        .iter()
        .filter(|token| log.contains(token.as_str()))
        .map(|token| (token, log.lines().find(|line| line.contains(token.as_str()))))
        .collect();
    assert!(logged.is_empty(), "tokens of interactions stand in the logs: {logged:?}");
}
