//! The test turn on Discord.

use bobbin_chat::discord::{Application, Discord};
use bobbin_cloud::clock::now_ms;
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::records::message::{Body, Message, Open, Prompt, Reply, Work};

use super::follow::{Followed, TestTurn, follow, tell_answer, tidy};
use super::{TestOptions, TestTask};
use crate::setup::check::lists;
use crate::setup::discord::told;
use crate::setup::report::Report;
use crate::target::StackTarget;

/// Discord's code for an unknown channel.
const UNKNOWN_CHANNEL: u64 = 10_003;
/// Channel types with message threads: text and announcement.
const WITH_THREADS: [u64; 2] = [0, 5];

pub async fn run(
    target: &StackTarget,
    report: &mut Report,
    options: &TestOptions,
    channel: &str,
) -> Result<(), String> {
    let stack = target.stack().await?;
    let token = target.needed("discord_bot_token").await?.value;
    let app = target.discord_application(&token).await;
    let app = app.map_err(|error| told(&error, None, ""))?;
    let discord = target.discord(&app.id, &token)?;
    let (guild, channel_name) = channel_of(report, target, &discord, &app, channel).await?;
    let task = TestTask::new("discord");
    let open = opening(&task, &app, guild, channel);
    let thread = discord.open_thread(&open, now_ms()).await;
    let thread = thread.map_err(|error| told(&error, None, &app.id))?;
    report.right(&format!("#{} has a thread for the test: {thread}", channel_name));
    let message = Message {
        id: task.id.clone().into(),
        thread: thread.clone(),
        accepted_at_ms: now_ms(),
        work: Work::Prompt(open.prompt.clone()),
    };
    stack.send(&Body::Message(message)).await?;
    report.right("The task is in the queue");

    let turn = TestTurn {
        thread: thread.clone(),
        by: open.prompt.by.clone(),
        reply: open.reply.clone(),
        membership: open.prompt.membership.clone(),
    };
    let followed = follow(stack, report, &turn, options.wait).await?;
    if followed == Followed::Answered {
        let bobbin_core::base::ids::ThreadKey::Discord { thread: id, .. } = &thread else {
            return Err("Discord did not create a thread.".to_owned());
        };
        let words = discord.words_of_channel(id).await;
        let words = words.map_err(|error| told(&error, None, &app.id))?;
        let there = words.iter().any(|words| words.contains(&task.word));
        tell_answer(target, report, &task, there);
    }
    tidy(target, stack, report, &turn, options).await
}

/// Guild and name of a channel that allows threads.
async fn channel_of(
    report: &mut Report,
    target: &StackTarget,
    discord: &Discord,
    app: &Application,
    channel: &str,
) -> Result<(String, String), String> {
    let found = discord.channel(channel).await.map_err(|error| match error.code() {
        UNKNOWN_CHANNEL => format!("Discord knows no channel {channel}: with Developer Mode on, its id is in its menu as Copy ID."),
        _ => told(&error, None, &app.id),
    })?;
    let Some(guild) = found.guild.filter(|_| WITH_THREADS.contains(&found.kind)) else {
        return Err(format!("The channel {channel} is not a text channel of a server: name one."));
    };
    if !lists(target.parameter("AllowedGuilds"), &guild) {
        report.wrong(
            &format!("AllowedGuilds does not list {guild}, the server of that channel: the test works, but people would be refused"),
            &target.sam_deploy_listing("AllowedGuilds", &guild),
        );
    }
    Ok((guild, found.name))
}

/// The task, as if the app itself had requested it.
fn opening(task: &TestTask, app: &Application, guild: String, channel: &str) -> Open {
    let prompt = Prompt {
        text: task.text.clone(),
        by: Person { id: app.id.clone(), name: app.name.clone() },
        membership: Membership {
            channel: channel.to_owned(),
            manages: true,
            ..Membership::default()
        },
        ..Prompt::default()
    };
    Open {
        id: task.id.clone().into(),
        guild,
        channel: channel.to_owned(),
        // No interaction, so no answer to edit: an expired one makes the bot post the line.
        accepted_at_ms: 0,
        prompt,
        reply: Reply::Discord { application: app.id.clone(), token: String::new() },
    }
}
