//! Missing and replaced keys with the real programs: everybody who waits is told in one sentence what is missing, and
//! running processes use every new key without a restart.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::sandbox::Phase;
use bobbin_tests::chat::Platform;
use bobbin_tests::http::{self, Answer};
use bobbin_tests::limits::VISIBLE_MS_MAX;
use bobbin_tests::operator::operate;
use bobbin_tests::processes;
use bobbin_tests::provider::Provider;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{now_s, requests};
use crate::run::trial;
use crate::waiting::card_says;

/// Maximum age of a function's copy of a secret here, instead of a minute.
const SECRETS_MS: u64 = 1_000;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("security::keys::stack_names_missing_keys_until_stored", missing),
        trial("security::keys::running_processes_use_replaced_keys", replaced),
        trial("security::keys::foreign_account_key_touches_no_sandbox", of_another_account),
    ]
}

fn start(keys: Value) -> Stack {
    let mut limits = quick();
    limits["secrets_ms"] = json!(SECRETS_MS);
    Stack::start(&Options {
        keys,
        stand_in_agent: true,
        environment: vec![("BOBBIN_LOG".to_owned(), "info".to_owned())],
        ..Options::limits(limits)
    })
}

async fn missing() {
    let stack = start(json!({
        "slack_signing_secret": "", "slack_bot_token": "", "discord_bot_token": "", "daytona_api_key": "",
    }));
    let world = World::of(&stack);

    // A stack that is not set up yet raises no alarm.
    world.sweep().await.unwrap();
    let signed = commanded(&world, &world.ready.slack_signing_secret).await;
    assert_eq!(signed.status, 503, "{signed:?}");
    assert!(signed.text.contains("`bobbin secrets`"), "{signed:?}");
    let unsigned = http::client().post(format!("{}/slack/commands", world.deployment.ingress));
    assert_eq!(http::send(unsigned).await.unwrap().status, 401);
    assert!(
        stack_log(&stack).contains("slack_signing_secret is missing in the secret IngressSecret")
    );

    // An interaction is answered without the bot's token, so the person is told that there is none.
    let act = json!({"type": "command", "name": "sandbox", "options": {"prompt": "echo: never"}});
    world.discord.act(&act).await.unwrap();
    told(
        &world,
        "The key discord_bot_token is missing in the secret WorkerSecret. The operator stores it with `bobbin secrets`.",
    )
    .await;

    let before = running(&stack);
    assert!(before.len() >= 3, "{before:?}");
    let ready = world.ready.clone();
    world
        .store("WorkerSecret", &json!({"discord_bot_token": ready.discord_bot_token}))
        .await
        .unwrap();
    copies_are_old().await;
    let (mut talk, turn) = world.begin(Platform::Discord, "echo: no sandbox").await;
    let ended = talk.ended(&turn).await;
    let Outcome::Failed { reason } = &ended.outcome else { panic!("{:?}", ended.outcome) };
    assert!(
        reason.contains("The key daytona_api_key is missing in the secret ProviderSecret. The operator stores it with `bobbin secrets`."),
        "{reason}"
    );

    world
        .store("ProviderSecret", &json!({"daytona_api_key": ready.daytona_api_key}))
        .await
        .unwrap();
    copies_are_old().await;
    let next = talk.say("echo: it works now").await;
    assert_eq!(talk.ended(&next).await.outcome, Outcome::Answered);
    talk.finish().await;

    let slack = (
        json!({"slack_signing_secret": ready.slack_signing_secret}),
        json!({"slack_bot_token": ready.slack_bot_token}),
    );
    world.store("IngressSecret", &slack.0).await.unwrap();
    world.store("WorkerSecret", &slack.1).await.unwrap();
    copies_are_old().await;
    let (talk, turn) = world.begin(Platform::Slack, "echo: here too").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    talk.finish().await;
    go_on(&stack, &before);
    stack.end().unwrap();
}

async fn replaced() {
    let stack = start(Value::Null);
    let world = World::of(&stack);
    let ready = world.ready.clone();
    let (mut talk, turn) = world.begin(Platform::Discord, "echo: before").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    let old = ready.slack_signing_secret.as_str();
    assert_eq!(commanded(&world, old).await.status, 200);
    let before = running(&stack);

    // Slack drops the old signing secret at once: the first request that is signed with the new one has to pass.
    let new = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
    world.store("IngressSecret", &json!({"slack_signing_secret": new})).await.unwrap();
    copies_are_old().await;
    assert_eq!(commanded(&world, new).await.status, 200);
    assert_eq!(commanded(&world, old).await.status, 401);
    world.store("IngressSecret", &json!({"slack_signing_secret": old})).await.unwrap();
    copies_are_old().await;
    assert_eq!(commanded(&world, old).await.status, 200);

    // The provider knows only one key: with another one stored its calls are refused, and with its own they are not.
    world.store("ProviderSecret", &json!({"daytona_api_key": "dtn_another"})).await.unwrap();
    // Nobody waits for the sweeper: its copy may be ten times as old.
    let refused =
        eventually(VISIBLE_MS_MAX, "the sweeper uses it too", async || match world.sweep().await {
            Err(refused) => Ok(refused),
            Ok(()) => Err("it uses the earlier one".to_owned()),
        })
        .await;
    assert!(refused.contains("could not be listed"), "{refused}");
    let (other, turn) = world.begin(Platform::Slack, "echo: never").await;
    let ended = other.ended(&turn).await;
    let Outcome::Failed { reason } = &ended.outcome else { panic!("{:?}", ended.outcome) };
    assert!(reason.contains("Daytona refused the API key."), "{reason}");
    world
        .store("ProviderSecret", &json!({"daytona_api_key": ready.daytona_api_key}))
        .await
        .unwrap();
    copies_are_old().await;
    eventually(VISIBLE_MS_MAX, "the sweeper uses the new one", async || world.sweep().await).await;
    let after = talk.say("echo: after").await;
    assert_eq!(talk.ended(&after).await.outcome, Outcome::Answered);
    talk.finish().await;
    go_on(&stack, &before);
    let log = stack_log(&stack);
    for secret in ["local-IngressSecret", "local-ProviderSecret"] {
        let line = |line: &str| {
            line.contains("a secret has changed and is used from now on") && line.contains(secret)
        };
        assert!(log.lines().any(line), "{secret}");
    }
    stack.end().unwrap();
}

async fn of_another_account() {
    const ELSEWHERE: &str = "dtn_key_of_another_organisation";
    const SAID: &str = "to another account than its sandboxes";
    let stack = start(Value::Null);
    let world = World::of(&stack);
    let (mut talk, first) = world.begin(Platform::Slack, "echo: the first").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);

    world.provider.add_key(ELSEWHERE, 2).await.unwrap();
    let key = json!({"daytona_api_key": ELSEWHERE});
    world.store("ProviderSecret", &key).await.unwrap();
    copies_are_old().await;
    let second = talk.say("echo: the second").await;
    card_says(&talk, &second, SAID).await;
    let (other, third) = world.begin(Platform::Discord, "echo: a new one").await;
    card_says(&other, &third, SAID).await;
    eventually(VISIBLE_MS_MAX, "the sweeper says so", async || match world.sweep().await {
        Err(told) if told.contains(SAID) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    let sandbox = talk.session().await.sandbox;
    assert_eq!(sandbox.generation, 1, "{sandbox:?}");
    assert_ne!(sandbox.phase, Phase::Destroyed, "{sandbox:?}");
    let elsewhere = Provider::new(&http::client(), &world.ready.daytona_api, ELSEWHERE);
    assert_eq!(elsewhere.list().await.unwrap(), [], "nothing is made there");

    let words = ["secrets", "--from-env", "--other-account", "--dry-run"];
    let dry = operate(&world, &words).await;
    assert_eq!(dry.code, 3, "{dry:?}");
    let confirmed = operate(&world, &words[..3]).await;
    assert_eq!(confirmed.code, 0, "{confirmed:?}");
    for (ran, says) in [(&dry, "would be given up"), (&confirmed, "are given up")] {
        let says = format!("daytona: 1 sandbox of another account {says}");
        assert!(ran.out.contains(&says), "{ran:?}");
    }
    for (talk, turn) in [(&talk, &second), (&other, &third)] {
        let ended = talk.ended(turn).await;
        assert_eq!(ended.outcome, Outcome::Answered, "{ended:?}");
    }
    assert_eq!(talk.session().await.sandbox.generation, 2);
    stack.end().unwrap();
}

/// A person's command on Slack, signed with this secret, sent directly to ingress.
async fn commanded(world: &World, secret: &str) -> Answer {
    let ready = &world.ready;
    let body = format!(
        "command=%2Fbobbin&text=help&team_id={}&channel_id={}&user_id={}",
        ready.slack_team_id, ready.slack_channel_id, ready.slack_user_id
    );
    let at = now_s().to_string();
    let request = http::client()
        .post(format!("{}/slack/commands", world.deployment.ingress))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("x-slack-signature", super::signatures::hmac(secret, &at, &body))
        .header("x-slack-request-timestamp", at)
        .body(body);
    http::send(request).await.unwrap()
}

/// These words are somewhere on Discord.
async fn told(world: &World, words: &str) {
    eventually(VISIBLE_MS_MAX, "a person is told", async || {
        let made = requests(world, "discord", 0).await;
        if made.iter().any(|one| one.to_string().contains(words)) {
            Ok(())
        } else {
            Err(format!("{words} in none of {} requests", made.len()))
        }
    })
    .await;
}

/// From now on every function's copy is older than the bound.
async fn copies_are_old() {
    let at = Instant::now() + Duration::from_millis(SECRETS_MS);
    eventually(VISIBLE_MS_MAX, "copies are older than the bound", async || {
        match at.checked_duration_since(Instant::now()) {
            None => Ok(()),
            Some(left) => Err(format!("{left:?} are left")),
        }
    })
    .await;
}

fn running(stack: &Stack) -> BTreeSet<u32> {
    let all = processes::marked(stack.folder().path()).into_iter();
    all.filter(|(_, command)| command.contains("/functions/") && command.contains("bootstrap"))
        .map(|(pid, _)| pid)
        .collect()
}

/// None has ended: what they use now they did not read at their start.
fn go_on(stack: &Stack, before: &BTreeSet<u32>) {
    let gone: Vec<_> = before.difference(&running(stack)).copied().collect();
    assert!(gone.is_empty(), "{gone:?} have ended\n{}", stack.tail());
}

fn stack_log(stack: &Stack) -> String {
    std::fs::read_to_string(stack.folder().path().join("output.log")).unwrap_or_default()
}
