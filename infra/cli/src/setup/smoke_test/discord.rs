//! The test turn on Discord.

use bobbin_cloud::clock::now_ms;
use bobbin_core::message::{Body, Message, Open, Prompt, Reply, Work};
use bobbin_core::person::{Person, Standing};

use super::follow::{Followed, Turn, follow, tidy};
use super::{Options, Task};
use crate::setup::check::lists;
use crate::setup::discord::told;
use crate::setup::report::Report;
use crate::target::Target;

/// Discord's code for a channel that does not exist, or not for the bot.
const UNKNOWN_CHANNEL: u64 = 10_003;
/// Kinds of channels on whose messages threads hang: text and announcements.
const WITH_THREADS: [u64; 2] = [0, 5];

pub async fn run(
    target: &Target,
    report: &mut Report,
    options: &Options,
    channel: &str,
) -> Result<(), String> {
    let stack = target.stack().await?;
    let token = target.needed("discord_bot_token").await?.value;
    let app = target.discord_application(&token).await;
    let app = app.map_err(|error| told(&error, None, ""))?;
    let discord = target.discord(&app.id, &token)?;
    let found = discord.channel(channel).await.map_err(|error| match error.code() {
        UNKNOWN_CHANNEL => format!("Discord knows no channel {channel}: with Developer Mode on, its id is in its menu as Copy ID."),
        _ => told(&error, None, &app.id),
    })?;
    let Some(guild) = found.guild.filter(|_| WITH_THREADS.contains(&found.kind)) else {
        return Err(format!(
            "The channel {channel} is not a text channel of a server: name one."
        ));
    };
    if !lists(target.parameter("AllowedGuilds"), &guild) {
        report.wrong(
            &format!("AllowedGuilds does not list {guild}, the server of that channel: the test works, people would be refused"),
            &format!("sam deploy --parameter-overrides AllowedGuilds={guild}"),
        );
    }

    let task = Task::new("discord");
    let prompt = Prompt {
        text: task.text.clone(),
        by: Person {
            id: app.id.clone(),
            name: app.name.clone(),
        },
        standing: Standing {
            channel: channel.to_owned(),
            manages: true,
            ..Standing::default()
        },
        ..Prompt::default()
    };
    let open = Open {
        id: task.id.clone(),
        guild,
        channel: channel.to_owned(),
        // Nobody has asked by an interaction, so there is no answer to edit: one that is over has the bot post the line.
        accepted_at_ms: 0,
        prompt: prompt.clone(),
        reply: Reply::Discord {
            application: app.id.clone(),
            token: String::new(),
        },
    };
    let thread = discord.open(&open, now_ms()).await;
    let thread = thread.map_err(|error| told(&error, None, &app.id))?;
    report.right(&format!(
        "#{} has a thread for the test: {thread}",
        found.name
    ));
    let message = Message {
        id: task.id.clone(),
        thread: thread.clone(),
        accepted_at_ms: now_ms(),
        work: Work::Prompt(prompt),
    };
    stack.send(&Body::Message(message)).await?;
    report.right("The task is in the queue");

    let turn = Turn {
        thread: thread.clone(),
        by: open.prompt.by.clone(),
        reply: open.reply.clone(),
        standing: open.prompt.standing.clone(),
    };
    let followed = follow(stack, report, &turn, options.wait).await?;
    if followed == Followed::Answered {
        let bobbin_core::ids::ThreadKey::Discord { thread: id, .. } = &thread else {
            return Err("Discord made no thread of its own.".to_owned());
        };
        let words = discord.words_of_channel(id).await;
        let words = words.map_err(|error| told(&error, None, &app.id))?;
        seen(
            report,
            &task,
            words.iter().any(|words| words.contains(&task.word)),
        );
    }
    tidy(target, stack, report, &turn, options).await
}

/// The answer stands where people read it, or it does not.
pub fn seen(report: &mut Report, task: &Task, is_there: bool) {
    if is_there {
        report.right(&format!("The answer stands in the thread: {}", task.word));
    } else {
        report.wrong(
            &format!("The turn has ended, but its thread does not hold {}", task.word),
            "Read the thread: the model may have answered in its own words; another model can be set with sam deploy --parameter-overrides Model=provider/model",
        );
    }
}
