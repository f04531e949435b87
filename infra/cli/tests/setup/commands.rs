//! The command `discord commands`: what is registered, shown and taken back at Discord.

use bobbin_core::tenant::commands::TABLE;
use reqwest::Method;
use serde_json::json;

use crate::support::{APPLICATION, DISCORD_TOKEN, Said, World};

const TOKEN: [(&str, &str); 1] = [("DISCORD_BOT_TOKEN", DISCORD_TOKEN)];

async fn run(world: &World, arguments: &[&str], environment: &[(&str, &str)]) -> Said {
    let arguments = [&["discord", "commands"], arguments].concat();
    world.run(&arguments, &[&TOKEN, environment].concat()).await
}

#[tokio::test]
async fn only_changed_commands_are_written() {
    let world = World::start().await;
    let list = |mark: &str| {
        let slash = TABLE.iter().map(|row| format!("/{}", row.name));
        let names = slash.chain(["Send to sandbox".to_owned()]);
        names.map(|name| format!("        {mark} {name}\n")).collect::<String>()
    };
    let dry = run(&world, &["--dry-run"], &[]).await;
    dry.is(3, &format!("  to do Discord application Bobbin (1300000000000000001), all servers: these commands would change, nothing was written\n{}", list("+")));
    let first = run(&world, &[], &[]).await;
    first.is(0, &format!("  ok    Discord application Bobbin (1300000000000000001), all servers: these commands were written\n{}", list("+")));
    let again = run(&world, &[], &[]).await;
    again.is(0, "  ok    Discord application Bobbin (1300000000000000001), all servers: the commands are up to date, nothing was written\n");
    let path = format!("/applications/{APPLICATION}/commands");
    let me = "GET /applications/@me".to_owned();
    let (get, put) = (format!("GET {path}"), format!("PUT {path}"));
    let made = [&me, &get, &me, &get, &put, &me, &get].map(String::clone);
    // The first one is that of the test itself.
    assert_eq!(world.requests("discord").await[1..], made);

    let dry = run(&world, &["--remove", "--dry-run"], &[]).await;
    assert_eq!(dry.code, 3);
    let removed = run(&world, &["--remove"], &[]).await;
    removed.is(0, &format!("  ok    Discord application Bobbin (1300000000000000001), all servers: these commands were written\n{}", list("-")));
    let again = run(&world, &["--remove"], &[]).await;
    again.is(0, "  ok    Discord application Bobbin (1300000000000000001), all servers: there are no commands, nothing was written\n");
}

#[tokio::test]
async fn guild_commands_use_guild_path() {
    let world = World::start().await;
    let guild = world.chat.seeds().guild_id;
    let id = [("DISCORD_APPLICATION_ID", APPLICATION)];
    let written = run(&world, &["--guild", &guild], &id).await;
    assert_eq!(written.code, 0, "{}", written.err);
    written.holds(&format!(
        "  ok    Discord application {APPLICATION}, server {guild}: these commands were written\n"
    ));
    let path = format!("/applications/{APPLICATION}/guilds/{guild}/commands");
    assert_eq!(
        world.requests("discord").await[1..],
        [format!("GET {path}"), format!("PUT {path}")]
    );
    let dry = run(&world, &["--guild", &guild, "--dry-run"], &id).await;
    assert_eq!(dry.code, 0);
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let world = World::start().await;
    let wrong = run(&world, &[], &[("DISCORD_BOT_TOKEN", "another")]).await;
    wrong.refused("Reset Token");

    let none = run(&world, &[], &[("DISCORD_BOT_TOKEN", " ")]).await;
    none.refused("DISCORD_BOT_TOKEN is not set. Put the Discord bot token into that environment variable: https://discord.com/developers/applications, the application, Bot, Reset Token. The stack bobbin has none either.\n");
    let stackless = run(&world, &["--stack", "other"], &[("DISCORD_BOT_TOKEN", "-")]).await;
    stackless.refused("It could not be read from a stack either: There is no stack other in us-east-1. Deploy it first (sam build && sam deploy --guided), or name yours with --stack, and its region with AWS_REGION.\n");
    let nobody =
        [("DISCORD_BOT_TOKEN", "-"), ("AWS_ACCESS_KEY_ID", "-"), ("AWS_SECRET_ACCESS_KEY", "-")];
    let nobody = run(&world, &[], &nobody).await;
    nobody.refused("It could not be read from a stack either: No AWS credentials were found. Set AWS_PROFILE to your profile (aws configure, or aws configure sso and aws sso login), or export the credentials of the AWS command line: eval \"$(aws configure export-credentials --format env)\"\n");
    let nowhere = run(&world, &[], &[("DISCORD_BOT_TOKEN", "-"), ("AWS_REGION", "-")]).await;
    nowhere.refused("No AWS region is set. Set AWS_REGION to the region in which the stack was deployed (samconfig.toml names it), or run: aws configure set region REGION\n");

    let elsewhere = run(&world, &["--guild", "1300000000000009999"], &[]).await;
    elsewhere.refused("oauth2/authorize?client_id=1300000000000000001&");

    let other = [("DISCORD_APPLICATION_ID", "1300000000000000002")];
    run(&world, &[], &other).await.refused("leave DISCORD_APPLICATION_ID out");

    let fault = json!({"route": "/commands", "status": 429, "retry_after": 60.0, "count": 3});
    world.control(Method::POST, "discord", "faults", &fault).await;
    run(&world, &[], &[]).await.refused("Try again in 60 s.");

    for odd in [&["--guild", "general"][..], &["--guilds"]] {
        let odd = run(&world, odd, &[]).await;
        assert_eq!(odd.code, 2, "{}", odd.err);
    }
}
