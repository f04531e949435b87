//! A manager chooses in the chat where new sandboxes are created.

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::limits::VISIBLE_MS_MAX;
use bobbin_tests::wait::eventually;

use super::*;

pub fn trials() -> Vec<Trial> {
    let named = |platform: Platform| {
        format!("places::{}::setup_decides_where_sandboxes_are_made", platform.word())
    };
    let all = Platform::ALL.map(|platform| {
        beside(named(platform), move || {
            block_on(chosen(platform));
            Ok(())
        })
    });
    all.into()
}

/// The manager sends `/sandbox-setup` with a provider for this channel, or with nothing; returns the private answer.
async fn setup(world: &World, platform: Platform, provider: Option<&str>, wanted: &str) -> String {
    let World { discord, slack, ready, .. } = world;
    let told = async || match platform {
        Platform::Discord => {
            let (channel, user) = (&ready.discord_channel_id, &ready.discord_user_id);
            discord.whispered(channel, user).await
        }
        Platform::Slack => {
            let (channel, user) = (&ready.slack_channel_id, &ready.slack_user_id);
            slack.told(channel, user).await
        }
    };
    let before = told().await.unwrap().len();
    match platform {
        Platform::Discord => {
            let options = match provider {
                Some(name) => json!({"sandboxes": name, "channel": ready.discord_channel_id}),
                None => json!({}),
            };
            let act = json!({"type": "command", "name": "sandbox-setup", "options": options});
            discord.act(&act).await.unwrap();
        }
        Platform::Slack => {
            let words = provider.map(|name| format!(" sandboxes {name} here"));
            let text = format!("setup{}", words.unwrap_or_default());
            let act = json!({"type": "slash", "command": "/bobbin", "text": text});
            let done = slack.act(&act).await.unwrap();
            assert_eq!(done["status"], 200, "{done}");
        }
    }
    eventually(VISIBLE_MS_MAX, &format!("{wanted:?} is told"), async || {
        let told = told().await?;
        let last = told.iter().skip(before).next_back();
        let last = last.filter(|one| one.contains(wanted)).cloned();
        last.ok_or_else(|| format!("{told:?}"))
    })
    .await
}

async fn chosen(platform: Platform) {
    let stack = Stack::start(&Options { stand_in_agent: true, ..Options::limits(quick()) });
    let world = Place::Vercel.world(&stack);
    let told = setup(&world, platform, None, "New sandboxes are created at").await;
    for line in [
        "New sandboxes are created at daytona, as set up by the operator.",
        "Providers that are set up: daytona, vercel.",
        "vercel: a snapshot ends what runs in the sandbox",
        "This server or workspace has no keys of its own",
    ] {
        assert!(told.contains(line), "{line} is not in {told}");
    }
    setup(
        &world,
        platform,
        Some("ssh"),
        "There is no provider named ssh here. Choose one of these: daytona, vercel. Nothing was changed.",
    )
    .await;
    setup(&world, platform, Some("vercel"), "Done: the default sandbox provider").await;
    let told = setup(&world, platform, None, "New sandboxes are created at").await;
    assert!(
        told.contains("New sandboxes are created at vercel, the default of this channel."),
        "{told}"
    );

    let (talk, first) = world.begin(platform, "echo: at the other one").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let made = talk.sandbox().await;
    assert_eq!(made.state, "started");
    let session = talk.session().await;
    assert_eq!(session.sandbox.spec.provider.as_deref(), Some("vercel"));

    // An existing one stays where it is; the next one follows the operator's choice again.
    setup(&world, platform, Some("none"), "is cleared").await;
    let mut talk = talk;
    let second = talk.say("echo: still there").await;
    assert_eq!(talk.ended(&second).await.outcome, Outcome::Answered);
    assert_eq!(talk.sandbox().await.name, made.name);
    talk.finish().await;
    let world = Place::Daytona.world(&stack);
    let (talk, third) = world.begin(platform, "echo: at the first one").await;
    assert_eq!(talk.ended(&third).await.outcome, Outcome::Answered);
    assert_eq!(talk.session().await.sandbox.spec.provider, None);
    talk.finish().await;
    stack.end().unwrap();
}
