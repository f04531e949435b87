//! The command `check`: what of a stack, its account and its services is as it should be.

use crate::support::{APPLICATION, KEYED, MODEL_KEY, Options, World};

fn link() -> String {
    format!(
        "https://discord.com/oauth2/authorize?client_id={APPLICATION}&scope=bot+applications.commands&permissions=309237763136&integration_type=0"
    )
}

#[tokio::test]
async fn check_confirms_each_valid_key() {
    let world = World::start().await;
    let set = world.run(&["discord", "endpoint"], &KEYED).await;
    assert_eq!(set.code, 0, "{}", set.err);
    let said = world.run_keyed(&["check"]).await;
    let team = world.chat.seeds().team_id;
    said.is(0, &format!("  ok    Stack bobbin in us-east-1 (CREATE_COMPLETE)
  ok    Discord: the bot token of DISCORD_BOT_TOKEN is that of the application Bobbin ({APPLICATION})
  ok    Discord: the stack has that application's id and public key
  ok    Discord: interactions are delivered to this stack
  note  Discord: people who manage a server add the application with this link; it asks for no privileged intent:
        {}
  ok    Slack: the bot token of SLACK_BOT_TOKEN is that of U1 in the workspace Bobbin Workshop ({team})
  ok    Slack: it has the 15 needed scopes
  ok    Daytona: the API key of DAYTONA_API_KEY is \"laptop\", valid forever, and has the needed permissions
  ok    Daytona: in the organisation Laptop, region us, there is room for 1500 more sandboxes; disk runs out first
  note  Daytona: the stack names no snapshot, so the first sandbox of each day takes minutes to build; bobbin snapshot builds {}
  ok    Anthropic: the key of ANTHROPIC_API_KEY is valid
  note  GitHub: no app, so private repositories and pull requests are off; bobbin github app makes one
", link(), bobbin_sandbox::daytona::prepared::snapshot_name(include_str!("../../../sandbox/Dockerfile"))));
}

#[tokio::test]
async fn check_explains_each_wrong_setting() {
    let world = World::with(Options {
        parameters: vec![
            ("DiscordPublicKey", "ab".repeat(32)),
            ("AllowedGuilds", "-".to_owned()),
            ("AllowedTeams", "T999, T998".to_owned()),
            ("DaytonaSnapshot", "gone".to_owned()),
            ("Model", "openai/gpt-5".to_owned()),
        ],
        scopes: Some(vec!["chat:write".to_owned(), "admin".to_owned()]),
        permissions: Some(vec!["write:sandboxes".to_owned()]),
        ..Options::default()
    })
    .await;
    let team = world.chat.seeds().team_id;
    let more = [
        ("SLACK_SIGNING_SECRET", "not-one"),
        ("ANTHROPIC_API_KEY", "a-wrong-key"),
        ("OPENROUTER_API_KEY", MODEL_KEY),
        ("OPENROUTER_MANAGEMENT_KEY", MODEL_KEY),
    ];
    let said = world.run(&["check"], &[&KEYED[..], &more].concat()).await;
    said.is(1, &format!("  ok    Stack bobbin in us-east-1 (CREATE_COMPLETE)
  ok    Discord: the bot token of DISCORD_BOT_TOKEN is that of the application Bobbin ({APPLICATION})
  WRONG Discord: the stack has another application's id or public key, or none; it would refuse Discord's requests
        sam deploy --stack-name bobbin --region us-east-1 --parameter-overrides DiscordPublicKey={}
  WRONG Discord: AllowedGuilds is empty, so nobody may use it there
        sam deploy --stack-name bobbin --region us-east-1 --parameter-overrides AllowedGuilds=ID, the server's id: with Developer Mode on, Copy ID in the server's menu
  note  Discord: interactions are delivered nowhere yet; bobbin discord endpoint changes that
  note  Discord: people who manage a server add the application with this link; it asks for no privileged intent:
        {}
  WRONG Slack: what SLACK_SIGNING_SECRET holds is not a signing secret: one has 32 hex digits
        Use the Signing Secret from Basic Information, App Credentials, not the client secret or the verification token.
  ok    Slack: the bot token of SLACK_BOT_TOKEN is that of U1 in the workspace Bobbin Workshop ({team})
  WRONG Slack: it lacks app_mentions:read, assistant:write, channels:history, channels:read, commands, files:read, files:write, groups:history, groups:read, im:history, im:read, mpim:history, mpim:read, users:read
        Paste the manifest of bobbin slack manifest under App Manifest, then install the app again under OAuth & Permissions.
  note  Slack: it has more scopes than needed: admin
  WRONG Slack: AllowedTeams does not list {team}, so nobody may use it there
        sam deploy --stack-name bobbin --region us-east-1 --parameter-overrides AllowedTeams=T999,T998,{team}
  note  Daytona: the API key of DAYTONA_API_KEY lacks manage:secrets, so the model keys are in the sandboxes' environment, where the agent can read them; create a key with this permission at https://app.daytona.io/dashboard/keys
  WRONG Daytona: the API key of DAYTONA_API_KEY is \"laptop\", valid forever, and lacks delete:sandboxes (deletes them), write:snapshots (builds the snapshot, while setting up), delete:snapshots (removes it again)
        Create one with these permissions at https://app.daytona.io/dashboard/keys; a key's permissions cannot be changed.
  ok    Daytona: in the organisation Laptop, region us, there is room for 1500 more sandboxes; disk runs out first
  WRONG Daytona: the stack names the snapshot gone, which does not exist
        bobbin snapshot builds one and shows what to deploy.
  WRONG Anthropic: the key of ANTHROPIC_API_KEY is refused
        Create a new one: https://platform.claude.com/settings/keys.
  ok    OpenRouter: the key of OPENROUTER_API_KEY is valid, $4.50 left to spend
  ok    OpenRouter: the management key of OPENROUTER_MANAGEMENT_KEY is valid: budgets are enforced there
  WRONG Models: the stack's model is openai/gpt-5, and there is no key for openai
        Give that provider's key, or another model: sam deploy --stack-name bobbin --region us-east-1 --parameter-overrides Model=provider/model
  note  GitHub: no app, so private repositories and pull requests are off; bobbin github app makes one
", world.public_key, link()));
}

#[tokio::test]
async fn check_names_refused_keys() {
    let world = World::start().await;
    let wrong = [
        ("DISCORD_BOT_TOKEN", "wrong"),
        ("SLACK_BOT_TOKEN", "wrong"),
        ("DAYTONA_API_KEY", "wrong"),
        ("OPENROUTER_MANAGEMENT_KEY", "wrong"),
    ];
    let said = world.run(&["check"], &[&KEYED[..], &wrong].concat()).await;
    assert_eq!(said.code, 1);
    for words in [
        "  WRONG Discord: the bot token of DISCORD_BOT_TOKEN is refused\n        Tokens are shown once",
        "  WRONG OpenRouter: the management key of OPENROUTER_MANAGEMENT_KEY is refused\n        Create a new one: https://openrouter.ai/settings/management-keys",
        "  WRONG Slack: the bot token of SLACK_BOT_TOKEN is refused (invalid_auth)\n        Use the Bot User OAuth Token",
        "  WRONG Daytona: the API key of DAYTONA_API_KEY is refused\n        Create a new one",
    ] {
        said.holds(words);
    }
}

#[tokio::test]
async fn check_uses_stack_or_environment_keys() {
    let world = World::start().await;
    assert_eq!(world.run_keyed(&["secrets"]).await.code, 0);
    let said = world.run(&["check"], &[]).await;
    assert_eq!(said.code, 0, "{}", said.out);
    said.holds("  ok    Slack: the bot token of the stack is that of U1");

    let stackless = world.run(&["check", "--stack", "other"], &KEYED).await;
    assert_eq!(stackless.code, 0, "{}", stackless.out);
    assert!(stackless.out.starts_with("  note  No stack, so only the keys of the environment are checked.\n        There is no stack other in us-east-1."), "{}", stackless.out);
    stackless.holds(&format!(
        "  note  Discord: for sam deploy, DiscordApplicationId={APPLICATION} DiscordPublicKey={}\n",
        world.public_key
    ));
}

#[tokio::test]
async fn custom_endpoint_must_offer_model() {
    for (model, code, words) in [
        ("own/some-model", 0, "  ok    Models: the stack's endpoint offers some-model\n"),
        (
            "own/unheard-of",
            1,
            "  WRONG Models: the stack's endpoint does not offer unheard-of\n        It offers some-model, other-model.\n",
        ),
    ] {
        // The address of the endpoint is known only once the world has started.
        let first = World::start().await;
        let base = format!("{}/own", first.models);
        let world = World::with(Options {
            parameters: vec![("Model", model.to_owned())],
            model_base_url: Some(base),
            ..Options::default()
        })
        .await;
        let said = world.run_keyed(&["check"]).await;
        said.holds(words);
        assert_eq!(said.code, code);
    }
}

#[tokio::test]
async fn vercel_is_checked_when_configured() {
    let folder = tempfile::tempdir().unwrap();
    let text = str::to_owned;
    let vercel =
        bobbin_local_vercel::LocalVercel::start(bobbin_local_vercel::LocalVercelSettings::new(
            folder.path().to_owned(),
            text("a-token"),
            text("team_1"),
            text("prj_1"),
        ))
        .await
        .unwrap();
    let named = |project: &str| {
        let overrides = serde_json::json!({
            "provider": "vercel", "vercel_api": vercel.api_url(), "vercel_team_id": "team_1",
            "vercel_project_id": project,
        });
        Options { parameters: vec![("Overrides", overrides.to_string())], ..Options::default() }
    };
    let world = World::with(named("prj_1")).await;
    let said = world.run(&["check"], &[]).await;
    said.holds("  WRONG Vercel: no access token, so there can be no sandbox\n");
    assert!(!said.out.contains("Daytona"), "{}", said.out);
    let said = world.run(&["check"], &[("VERCEL_TOKEN", "a-token")]).await;
    said.holds("  ok    Vercel: the token of VERCEL_TOKEN opens the project local; it has 0 Bobbin sandboxes\n");
    let said = world.run(&["check"], &[("VERCEL_TOKEN", "another")]).await;
    said.holds("  WRONG Vercel: the token of VERCEL_TOKEN is refused\n");
    let world = World::with(named("")).await;
    let said = world.run(&["check"], &[("VERCEL_TOKEN", "a-token")]).await;
    said.holds("  WRONG Vercel: vercel_project_id is not set, so there can be no sandbox\n");
    vercel.stop().await;
}
