//! `send`: starts a task from a terminal, in a channel of Discord or Slack.
//!
//! The thread is opened here, with the client and names that the worker uses, because the sender wants to know the
//! thread and whether the bot has access. Then the prompt goes into the thread's own group, like anybody's. Promised:
//! an invocation has one id, shown before anything is done; a repeat under that id finds the existing thread, and the
//! queue, the record and the ledger know the prompt by it. The stack's allowlists of tenants and channels apply to a
//! terminal too. The lists of people and a tenant's settings do not: only the operator can write to the queues.

use std::io::Read as _;

use bobbin_chat::discord::{Discord, DiscordError};
use bobbin_chat::slack::{Slack, SlackError};
use bobbin_cloud::clock::now_ms;
use bobbin_core::base::ids::{Tenant, ThreadKey, TurnId};
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::records::message::{Body, Message, Open, Prompt, Reply, Work};
use bobbin_core::tenant::access::Refusal;
use bobbin_core::tenant::selection::Selection;

use super::arguments::Send;
use super::follow;
use super::named;
use super::sandbox::snapshots;
use super::stack::Stack;
use super::task::{SendId, TaskChannel};
use crate::output::{CommandError, ExitStatus, Output};

/// Channel types with message threads: text and announcement.
const WITH_THREADS: [u64; 2] = [0, 5];
/// Discord's error codes: unknown channel, missing access, missing permission.
const UNKNOWN_CHANNEL: u64 = 10_003;
const MISSING_ACCESS: u64 = 50_001;
const MISSING_PERMISSIONS: u64 = 50_013;
/// Base of links to threads.
const DISCORD_SITE: &str = "https://discord.com/";
/// Sender's name if the login name is unknown.
const NOBODY: &str = "somebody (terminal)";
/// Most bytes read from standard input; far above the bound of a prompt.
const INPUT_BYTES_MAX: u64 = 1024 * 1024;

/// A task whose thread is open.
struct OpenedThread {
    thread: ThreadKey,
    /// Link to the thread, if known.
    link: Option<String>,
}

/// Opens the thread, sends the prompt, and follows it on request.
pub async fn run(stack: &Stack, what: &Send, json: bool) -> Result<Output, CommandError> {
    let text = words(stack, &what.prompt)?;
    let id = what.id.clone().unwrap_or_else(SendId::mint);
    let turn = TurnId::from(id.to_string());
    let prompt = prompt(what, text);
    tell!(
        "{id} is the id of this task: with --id you can repeat the command, and nothing is done twice."
    );
    let opened = match &what.channel {
        TaskChannel::Discord(channel) => on_discord(stack, &id, channel, &prompt).await,
        TaskChannel::Slack(channel) => on_slack(stack, &id, channel, &prompt).await,
    }?;
    let message = Message {
        id: turn.clone(),
        thread: opened.thread.clone(),
        accepted_at_ms: id.at_ms,
        work: Work::Prompt(prompt),
    };
    let sent = stack.queues()?.send(&Body::Message(message)).await;
    sent.map_err(|e| {
        format!(
            "{e}. The thread is open, but it is unknown whether the task was sent: {}",
            again(&id)
        )
    })?;
    let link = opened.link.iter().map(|link| format!(" {link}"));
    let place = opened.thread.to_string() + &link.collect::<String>();
    let on = follow::command(stack, &opened.thread, &turn);
    if what.follow {
        tell!("{place}");
        let wanted = follow::WantedTurn {
            thread: &opened.thread,
            turn: &turn,
            within_ms: what.within_ms,
            is_sent: true,
        };
        return follow::follow(stack, wanted, opened.link, json).await;
    }
    let text = format!("Sent: {place}\nFollow it with: {on}");
    let answer = follow::FollowAnswer::of(&opened.thread, &turn, opened.link, None);
    Output::new(text, &answer, ExitStatus::Done)
}

/// The prompt's text, within the bound for all prompts.
fn words(stack: &Stack, given: &str) -> Result<String, CommandError> {
    let text = if given == "-" {
        let mut text = String::new();
        let mut input = std::io::stdin().lock().take(INPUT_BYTES_MAX);
        let read = input.read_to_string(&mut text);
        read.map_err(|e| format!("Standard input cannot be read as text: {e}."))?;
        text
    } else {
        given.to_owned()
    };
    let text = text.trim().to_owned();
    let length = text.chars().count();
    if text.is_empty() {
        return Err("The prompt is empty: say what to do.".into());
    }
    if length > stack.limits.chat.prompt_chars {
        return Err(format!(
            "The prompt has {length} characters, and the limit is {}: put the long part into a file of the repository.",
            stack.limits.chat.prompt_chars
        )
        .into());
    }
    Ok(text)
}

fn prompt(what: &Send, text: String) -> Prompt {
    let (TaskChannel::Discord(channel) | TaskChannel::Slack(channel)) = &what.channel;
    Prompt {
        text,
        by: Person {
            // No platform user: there is no id to mention.
            id: String::new(),
            name: terminal_name(what.name.as_deref()),
        },
        wants: Selection {
            repo: what.sandbox_repo.clone(),
            pr: what.sandbox_pr,
            model: what.model.clone(),
            agent: what.agent.clone(),
            sandbox: what.sandbox.clone(),
            provider: what.sandbox_provider.clone(),
            runtime: what.sandbox_runtime.clone(),
            snapshot: what.sandbox_snapshot.clone(),
            ..Selection::default()
        },
        membership: Membership {
            channel: channel.clone(),
            operates: true,
            ..Membership::default()
        },
        ..Prompt::default()
    }
}

/// The sender's name in a thread: as given, or the login name.
pub fn terminal_name(said: Option<&str>) -> String {
    let login = || ["USER", "LOGNAME", "USERNAME"].map(std::env::var);
    let known = login().into_iter().flatten().find(|name| !name.is_empty());
    let name = said.map(str::to_owned).or(known);
    name.map_or_else(|| NOBODY.to_owned(), |name| format!("{name} (terminal)"))
}

/// The tenant of a channel.
///
/// # Errors
/// The bot cannot see the channel, or is not allowed there; with advice.
pub async fn tenant_of(stack: &Stack, channel: &TaskChannel) -> Result<Tenant, CommandError> {
    match channel {
        TaskChannel::Discord(channel) => {
            let (discord, _) = stack.discord().await?;
            let again = "repeat the command.";
            Ok(Tenant::discord(&guild_of(stack, &discord, channel, again).await?))
        }
        TaskChannel::Slack(channel) => {
            let slack = stack.slack().await?;
            let again = "repeat the command.";
            Ok(Tenant::slack(&team_of(stack, &slack, channel, again).await?))
        }
    }
}

/// The guild of a Discord channel, if it is allowed.
async fn guild_of(
    stack: &Stack,
    discord: &Discord,
    channel: &str,
    again: &str,
) -> Result<String, CommandError> {
    let found = discord.channel(channel).await;
    let found = found.map_err(|error| discord_trouble(&error, channel, again))?;
    let guild = found.guild.filter(|_| WITH_THREADS.contains(&found.kind));
    let guild = guild.ok_or_else(|| {
        format!("The channel {channel} is not a text channel of a server, so it cannot have threads: name a text channel.")
    })?;
    let verdict = stack.policy().discord(&guild, &[channel], &[]);
    admitted(stack, verdict, "AllowedGuilds", &guild, channel)?;
    Ok(guild)
}

/// The bot's Slack team, if it is allowed.
async fn team_of(
    stack: &Stack,
    slack: &Slack,
    channel: &str,
    again: &str,
) -> Result<String, CommandError> {
    let installed = slack.installed().await;
    let installed = installed.map_err(|error| slack_trouble(&error, channel, again))?;
    let team = installed.identity.team;
    // The list of people does not apply to a terminal.
    let verdict = stack.policy().slack(&team, channel, "");
    admitted(stack, verdict, "AllowedTeams", &team, channel)?;
    Ok(team)
}

/// Refuses a missing sandbox or an unusable snapshot before anything is posted.
async fn look_at_sandbox(
    stack: &Stack,
    tenant: &Tenant,
    wants: &Selection,
) -> Result<(), CommandError> {
    stack.has_provider(wants.provider.as_deref()).await?;
    let found = match &wants.sandbox {
        Some(name) => {
            let found = stack.store.name(tenant, name).await;
            found.map_err(|e| named::unread(&e))?
        }
        None => None,
    };
    let Some(key) = found else {
        if let (Some(name), None) = (&wants.sandbox, &wants.provider) {
            return Err(CommandError::not_found(format!(
                "There is no sandbox named {name} in {tenant}. Nothing was sent. Add --sandbox-provider to create it ({}), or list the sandboxes with: bobbin {} sandbox list --tenant {tenant}",
                stack.provider_names().await?.join(", "),
                stack.said
            )));
        }
        return match &wants.snapshot {
            Some(snapshot) => {
                let provider = wants.provider.as_deref();
                snapshots::look_at(stack, tenant, snapshot, provider).await
            }
            None => Ok(()),
        };
    };
    let record = named::record(stack, &key).await?.unwrap_or_default();
    if record.sharing.closing.is_some() {
        return Err(format!(
            "The sandbox {} is being destroyed, so no task can start in it. Nothing was sent.",
            wants.sandbox.as_ref().map_or("", |name| name.as_str())
        )
        .into());
    }
    if wants.provider.is_some() || wants.snapshot.is_some() {
        tell!(
            "There is already a sandbox of that name: the provider and the snapshot are for a new one, and are ignored here."
        );
    }
    Ok(())
}

async fn on_discord(
    stack: &Stack,
    id: &SendId,
    channel: &str,
    prompt: &Prompt,
) -> Result<OpenedThread, CommandError> {
    let (discord, application) = stack.discord().await?;
    let repeat = again(id);
    let guild = guild_of(stack, &discord, channel, &repeat).await?;
    look_at_sandbox(stack, &Tenant::discord(&guild), &prompt.wants).await?;
    let open = Open {
        id: id.to_string().into(),
        guild: guild.clone(),
        channel: channel.to_owned(),
        accepted_at_ms: id.at_ms,
        prompt: prompt.clone(),
        // Without an interaction the bot posts the line itself.
        reply: Reply::Discord { application, token: String::new() },
    };
    let thread = discord.open_thread(&open, now_ms()).await;
    let thread = thread.map_err(|error| discord_trouble(&error, channel, &repeat))?;
    let link = match &thread {
        ThreadKey::Discord { thread, .. } if stack.discord_api().starts_with(DISCORD_SITE) => {
            Some(format!("{DISCORD_SITE}channels/{guild}/{thread}"))
        }
        _ => None,
    };
    Ok(OpenedThread { thread, link })
}

async fn on_slack(
    stack: &Stack,
    id: &SendId,
    channel: &str,
    prompt: &Prompt,
) -> Result<OpenedThread, CommandError> {
    let slack = stack.slack().await?;
    let repeat = again(id);
    let team = team_of(stack, &slack, channel, &repeat).await?;
    look_at_sandbox(stack, &Tenant::slack(&team), &prompt.wants).await?;
    let turn = TurnId::from(id.to_string());
    let opened = slack.open_thread(&turn, channel, id.at_ms, prompt).await;
    let thread = opened.map_err(|error| slack_trouble(&error, channel, &repeat))?;
    let link = match &thread {
        ThreadKey::Slack { root_ts, .. } => {
            slack.thread_link(channel, root_ts).await.unwrap_or_default()
        }
        _ => None,
    };
    Ok(OpenedThread { thread, link })
}

/// Checks the stack's allowlists.
fn admitted(
    stack: &Stack,
    verdict: Result<(), Refusal>,
    list: &str,
    tenant: &str,
    channel: &str,
) -> Result<(), CommandError> {
    let told = |list: &str, id: &str| {
        CommandError::from(format!(
            "The stack's {list} does not name {id}, so Bobbin may not be used there. Nothing was sent. To allow it: {}",
            stack.sam_deploy_listing(list, id)
        ))
    };
    match verdict {
        Ok(()) => Ok(()),
        Err(Refusal::Tenant) => Err(told(list, tenant)),
        Err(_) => Err(told("AllowedChannels", channel)),
    }
}

fn again(id: &SendId) -> String {
    format!("repeat the command with --id {id}; nothing is done twice.")
}

fn discord_trouble(error: &DiscordError, channel: &str, again: &str) -> CommandError {
    match error.code() {
        UNKNOWN_CHANNEL => CommandError::not_found(format!(
            "Discord knows no channel {channel}: with Developer Mode on, its id is in its menu as Copy Channel ID. Nothing was sent."
        )),
        MISSING_ACCESS | MISSING_PERMISSIONS => CommandError::not_found(format!(
            "The bot cannot see the channel {channel}, or may not write there: in the channel's settings give its role View Channel, Send Messages, Create Public Threads, Send Messages in Threads and Read Message History, then {}",
            again
        )),
        _ => format!("{error}. It is unknown whether the thread was created: {}", again).into(),
    }
}

fn slack_trouble(error: &SlackError, channel: &str, again: &str) -> CommandError {
    match error {
        SlackError::NotInvited { error } => CommandError::not_found(format!(
            "The bot cannot see the channel {channel} ({error}): say /invite @Bobbin in it, then {}",
            again
        )),
        SlackError::Closed { error } => {
            format!("Nothing can be posted in the channel {channel} ({error}): name another one. Nothing was sent.").into()
        }
        SlackError::Token { .. } | SlackError::Scope { .. } => {
            format!("{error}. Install the app again with the manifest of this version, and store its token with bobbin secrets. Nothing was sent.").into()
        }
        _ => format!("{error}. It is unknown whether the task was posted: {}", again).into(),
    }
}
