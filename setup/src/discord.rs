//! The Discord application: its commands.

use bobbin_adapters::discord::{Application, Discord, DiscordError, application};
use bobbin_adapters::http::{Hosts, Http};
use bobbin_core::wire::discord::commands::Difference;
use clap::{Args, Subcommand};

use crate::Done;

/// Discord's permissions that Bobbin asks for when it is invited: view channels, send messages, also in threads, create
/// public threads, read message history, embed links, attach files, add reactions.
const PERMISSIONS: &str = "309237763136";
/// Discord's code for a server that the application is not in.
const MISSING_ACCESS: u64 = 50_001;
/// Discord's code for a server that does not exist, or not for this application.
const UNKNOWN_GUILD: u64 = 10_004;

/// What of it is set up.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Register the slash and menu commands
    Commands(Commands),
}

/// Register the slash and menu commands.
#[derive(Debug, Args)]
pub struct Commands {
    /// Only in this server, where they appear at once; without it everywhere
    #[arg(long, value_name = "ID", value_parser = snowflake)]
    guild: Option<String>,
    /// Tell what would change, and write nothing (exit code 3 where something would)
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    access: Access,
}

/// How Discord is reached. The token is read from the environment alone: an argument could be seen by others.
#[derive(Debug, Args)]
struct Access {
    /// Id of the application; asked of Discord where it is not set
    #[arg(long, env = "DISCORD_APPLICATION_ID", value_name = "ID", value_parser = snowflake)]
    application: Option<String>,
    /// Base of Discord's API
    #[arg(
        long,
        env = "DISCORD_API",
        default_value = "https://discord.com/api/v10",
        value_name = "URL"
    )]
    api: String,
}

/// Does it.
///
/// # Errors
/// What went wrong and what to do about it.
pub async fn run(what: &What) -> Result<Done, String> {
    let What::Commands(commands) = what;
    let token = std::env::var("DISCORD_BOT_TOKEN").unwrap_or_default();
    if token.trim().is_empty() {
        return Err("DISCORD_BOT_TOKEN is not set. In Discord's developer portal, open the application, then Bot, then Reset Token, and put the token into that environment variable.".to_owned());
    }
    register(commands, token.trim()).await
}

async fn register(commands: &Commands, token: &str) -> Result<Done, String> {
    let base = &commands.access.api;
    let http = Http::new(base, Hosts::Named(Vec::new())).map_err(|e| format!("--api: {e}"))?;
    let app = match &commands.access.application {
        Some(id) => Application {
            id: id.clone(),
            name: String::new(),
            verify_key: String::new(),
            endpoint: None,
        },
        None => application(http.clone(), base, token)
            .await
            .map_err(|error| told(&error, None, ""))?,
    };
    let discord = Discord::new(http, base, &app.id, token);
    let guild = commands.guild.as_deref();
    let changes = if commands.dry_run {
        discord.command_differences(guild).await
    } else {
        discord.register_commands(guild).await
    };
    let changes = changes.map_err(|error| told(&error, guild, &app.id))?;
    Ok(Done {
        words: summary(&app, guild, &changes, commands.dry_run),
        to_do: commands.dry_run && !changes.is_empty(),
    })
}

fn summary(app: &Application, guild: Option<&str>, changes: &[Difference], dry: bool) -> String {
    let name = match app.name.as_str() {
        "" => app.id.clone(),
        name => format!("{name} ({})", app.id),
    };
    let place = guild.map_or_else(|| "all servers".to_owned(), |id| format!("server {id}"));
    let done = match (changes.is_empty(), dry) {
        (true, _) => "the commands are as they should be, nothing was written",
        (false, true) => "these commands would change, nothing was written",
        (false, false) => "these commands were written",
    };
    let mut lines = vec![format!("Discord application {name}, {place}: {done}.")];
    lines.extend(changes.iter().map(|change| match change {
        Difference::Added(name) => format!("  + {name}"),
        Difference::Changed(name) => format!("  ~ {name}"),
        Difference::Removed(name) => format!("  - {name}"),
    }));
    lines.join("\n")
}

/// What to do about a refusal; the token is in none of it.
fn told(error: &DiscordError, guild: Option<&str>, application: &str) -> String {
    match error {
        DiscordError::Revoked => "Discord refused the bot token. Tokens are shown once and end when they are reset: in the developer portal, open the application, then Bot, then Reset Token, and set DISCORD_BOT_TOKEN to the new one.".to_owned(),
        DiscordError::Api { code: MISSING_ACCESS | UNKNOWN_GUILD, .. } => {
            let place = guild.map_or_else(String::new, |id| format!(" {id}"));
            format!(
                "The application is not in server{place}, or was invited without its commands. Somebody who manages the server opens https://discord.com/oauth2/authorize?client_id={application}&scope=bot+applications.commands&permissions={PERMISSIONS}&integration_type=0 and adds it."
            )
        }
        DiscordError::Api { status: 403, .. } => format!("The bot token is not one of application {application}: leave DISCORD_APPLICATION_ID away, or set it to the token's own. ({error})"),
        DiscordError::RateLimited { after_ms } => format!("Discord takes no more changes just now. Try again in {} s.", after_ms.div_ceil(1000)),
        other => format!("The commands could not be registered: {other}"),
    }
}

/// An id of Discord's.
fn snowflake(text: &str) -> Result<String, String> {
    let plain = (15..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    match plain {
        true => Ok(text.to_owned()),
        false => Err("an id of Discord's has 15 to 20 digits; with Developer Mode on, it is in the menu of a server or application as Copy ID".to_owned()),
    }
}
