//! The command `secrets`: which keys are stored, replaced and tried, without one that is shown.

use serde_json::json;

use crate::support::{
    DAYTONA_KEY, DISCORD_TOKEN, KEYED, MODEL_KEY, SIGNING_SECRET, SLACK_TOKEN, World,
};

#[tokio::test]
async fn keys_are_stored_per_function_secret() {
    let world = World::start().await;
    let dry = world.run_keyed(&["secrets", "--dry-run"]).await;
    dry.is(
        3,
        "  to do Anthropic API key would be stored
  to do Discord bot token would be stored
  to do Slack bot token would be stored
  to do Slack signing secret would be stored
  to do Daytona API key would be stored
",
    );
    assert_eq!(world.secret("ProviderSecret").await, json!({}));

    let stored = world.run_keyed(&["secrets"]).await;
    stored.is(
        0,
        "  ok    Anthropic API key is now stored
  ok    Discord bot token is now stored
  ok    Slack bot token is now stored
  ok    Slack signing secret is now stored
  ok    Daytona API key is now stored
  note  The functions use a changed key automatically; no deployment is needed.
",
    );
    assert_eq!(
        world.secret("WorkerSecret").await,
        json!({"kept": "as it is", "discord_bot_token": DISCORD_TOKEN, "slack_bot_token": SLACK_TOKEN, "anthropic_api_key": MODEL_KEY})
    );
    assert_eq!(
        world.secret("IngressSecret").await,
        json!({"slack_signing_secret": SIGNING_SECRET})
    );
    assert_eq!(world.secret("ProviderSecret").await, json!({"daytona_api_key": DAYTONA_KEY}));

    let again = world.run(&["secrets", "--from-env"], &KEYED[..1]).await;
    again.is(0, "  ok    Discord bot token is already stored\n");
    let other = world
        .run(&["secrets"], &[("DISCORD_BOT_TOKEN", "a-new-one"), ("OPENAI_API_KEY", "first")])
        .await;
    other.is(
        0,
        "  ok    Discord bot token was another one and is replaced
  ok    OpenAI API key is now stored
  note  The functions use a changed key automatically; no deployment is needed.
",
    );
    let held = world.secret("WorkerSecret").await;
    assert_eq!(
        (&held["discord_bot_token"], &held["slack_bot_token"]),
        (&json!("a-new-one"), &json!(SLACK_TOKEN))
    );

    let forgotten = world
        .run_keyed(&["secrets", "--forget", "OPENAI_API_KEY", "--forget", "openrouter_api_key"])
        .await;
    forgotten.is(
        0,
        "  ok    OpenAI API key is forgotten
  ok    OpenRouter API key was not stored
  note  The functions use a changed key automatically; no deployment is needed.
",
    );
    assert!(world.secret("WorkerSecret").await.get("openai_api_key").is_none());
}

#[tokio::test]
async fn nothing_is_stored_without_keys() {
    let world = World::start().await;
    world.run(&["secrets"], &[]).await.is(
        3,
        "  to do No key was given, so nothing is stored; --replace NAME asks for one that the stack has\n",
    );
    let unknown = world.run(&["secrets", "--forget", "STACK_KEY"], &[]).await;
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.err.contains("the keys are DISCORD_BOT_TOKEN, SLACK_SIGNING_SECRET,"),
        "{}",
        unknown.err
    );
    let stackless = world.run(&["secrets", "--stack", "other"], &KEYED).await;
    stackless.refused("There is no stack other in us-east-1.");
}

#[tokio::test]
async fn replaced_key_is_a_new_one() {
    let world = World::start().await;
    let old = [("OPENAI_API_KEY", "leaked")];
    assert_eq!(world.run(&["secrets"], &old).await.code, 0);
    let replace = ["secrets", "--from-env", "--replace", "OPENAI_API_KEY"];
    let same = world.run(&replace, &old).await;
    same.refused("The stack has this OpenAI API key already, so nothing is stored.");
    for arguments in [&replace[..], &["secrets", "--replace", "OPENAI_API_KEY"]] {
        let none = world.run(arguments, &[]).await;
        none.refused("No OpenAI API key was given, so nothing is stored.");
    }
    let new = [("OPENAI_API_KEY", "new"), ("SLACK_BOT_TOKEN", SLACK_TOKEN)];
    world.run(&replace, &new).await.is(
        0,
        "  ok    OpenAI API key was another one and is replaced
  note  The functions use a changed key automatically; no deployment is needed.
",
    );
    let held = world.secret("WorkerSecret").await;
    assert_eq!(held, json!({"kept": "as it is", "openai_api_key": "new"}), "no other key");
}

/// In a terminal, what neither environment nor stack has is asked for. `script` (of every Linux) gives the program one.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn terminal_prompts_for_missing_keys() {
    let world = World::start().await;
    let stored = world.run(&["secrets"], &[("SLACK_BOT_TOKEN", SLACK_TOKEN)]).await;
    assert_eq!(stored.code, 0, "{}", stored.err);
    let typed = [DISCORD_TOKEN, "", DAYTONA_KEY, "", "", "", "", "", "", "", "", ""];
    let said = world.type_in("secrets", "Enter to skip it: ", &typed).await;
    assert!(said.contains("Discord bot token (https://discord.com/developers/applications, the application, Bot, Reset Token)"), "{said}");
    assert!(!said.contains("Slack bot token ("), "it is known: {said}");
    assert!(said.contains("  ok    Daytona API key is now stored"), "{said}");
    assert_eq!(
        world.secret("WorkerSecret").await,
        json!({"kept": "as it is", "slack_bot_token": SLACK_TOKEN, "discord_bot_token": DISCORD_TOKEN})
    );
    assert_eq!(world.secret("ProviderSecret").await, json!({"daytona_api_key": DAYTONA_KEY}));
}

/// A key that has leaked is asked for although the stack has it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn terminal_prompts_for_replaced_key() {
    let world = World::start().await;
    let stored = world.run(&["secrets"], &[("ANTHROPIC_API_KEY", "leaked")]).await;
    assert_eq!(stored.code, 0, "{}", stored.err);
    let command = "secrets --replace ANTHROPIC_API_KEY";
    let said = world.type_in(command, "Enter to skip it: ", &[MODEL_KEY]).await;
    assert!(said.contains("  ok    Anthropic API key was another one and is replaced"), "{said}");
    let held = world.secret("WorkerSecret").await;
    assert_eq!(held, json!({"kept": "as it is", "anthropic_api_key": MODEL_KEY}));
}
