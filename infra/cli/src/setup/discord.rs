//! The Discord application: its commands and its interactions endpoint.

use bobbin_chat::discord::{Application, Difference, Discord, DiscordError};
use clap::{Args, Subcommand};

use super::report::Report;
use crate::target::StackTarget;

/// Discord permissions in the invitation: view channels, send messages (also in threads), create public threads, read
/// message history, embed links, attach files, add reactions.
const PERMISSIONS: &str = "309237763136";
/// Discord's code for a guild without the application.
const MISSING_ACCESS: u64 = 50_001;
/// Discord's code for an unknown guild.
const UNKNOWN_GUILD: u64 = 10_004;
/// Discord's code for an invalid form field.
const INVALID_FORM: u64 = 50_035;

/// Set-up of the application.
#[derive(Debug, Clone, Subcommand)]
pub enum DiscordSetup {
    /// Register the slash and menu commands
    Commands(RegisterCommands),
    /// Tell Discord to deliver interactions to the stack
    Endpoint(InteractionsEndpoint),
}

/// Register the slash and menu commands.
#[derive(Debug, Clone, Default, Args)]
pub struct RegisterCommands {
    /// Only in this server, where they appear at once; by default everywhere
    #[arg(long, value_name = "ID", value_parser = snowflake)]
    pub guild: Option<String>,
    /// Remove them again
    #[arg(long)]
    pub remove: bool,
    /// Show what would change, and write nothing (exit code 3 if something would)
    #[arg(long)]
    pub dry_run: bool,
    /// Id of the application; by default Discord is asked
    #[arg(long, env = "DISCORD_APPLICATION_ID", value_name = "ID", value_parser = snowflake)]
    pub application: Option<String>,
}

/// Tell Discord to deliver interactions to the stack.
#[derive(Debug, Clone, Default, Args)]
pub struct InteractionsEndpoint {
    /// Address to use, such as a tunnel's or the previous one; by default the stack's
    #[arg(long, value_name = "URL")]
    pub address: Option<String>,
    /// Tell Discord to deliver nowhere
    #[arg(long, conflicts_with = "address")]
    pub clear: bool,
    /// Show what would change, and write nothing (exit code 3 if something would)
    #[arg(long)]
    pub dry_run: bool,
}

/// Runs a command.
///
/// # Errors
/// What failed; with advice.
pub async fn run(
    target: &StackTarget,
    report: &mut Report,
    command: &DiscordSetup,
) -> Result<(), String> {
    match command {
        DiscordSetup::Commands(options) => commands(target, report, options).await,
        DiscordSetup::Endpoint(options) => endpoint(target, report, options).await,
    }
}

/// The link with which a guild's manager adds the application.
#[must_use]
pub fn invitation(application: &str) -> String {
    format!(
        "https://discord.com/oauth2/authorize?client_id={application}&scope=bot+applications.commands&permissions={PERMISSIONS}&integration_type=0"
    )
}

/// Registers or removes the commands.
///
/// # Errors
/// What failed; with advice.
pub async fn commands(
    target: &StackTarget,
    report: &mut Report,
    options: &RegisterCommands,
) -> Result<(), String> {
    let token = target.needed("discord_bot_token").await?.value;
    let app = match &options.application {
        Some(id) => Application {
            id: id.clone(),
            name: String::new(),
            verify_key: String::new(),
            endpoint: None,
        },
        None => target.discord_application(&token).await.map_err(|error| told(&error, None, ""))?,
    };
    let discord = target.discord(&app.id, &token)?;
    let guild = options.guild.as_deref();
    let changes = changed(&discord, guild, options).await;
    let changes = changes.map_err(|error| told(&error, guild, &app.id))?;
    let words = summary(&app, options, &changes);
    if options.dry_run && !changes.is_empty() {
        report.left(&words);
    } else {
        report.right(&words);
    }
    Ok(())
}

async fn changed(
    discord: &Discord,
    guild: Option<&str>,
    options: &RegisterCommands,
) -> Result<Vec<Difference>, DiscordError> {
    match (options.remove, options.dry_run) {
        (false, true) => discord.command_differences(guild).await,
        (false, false) => discord.register_commands(guild).await,
        (true, true) => discord.removable_commands(guild).await,
        (true, false) => discord.remove_commands(guild).await,
    }
}

fn summary(app: &Application, options: &RegisterCommands, changes: &[Difference]) -> String {
    let place = match &options.guild {
        Some(id) => format!("server {id}"),
        None => "all servers".to_owned(),
    };
    let done = match (changes.is_empty(), options.dry_run, options.remove) {
        (true, _, false) => "the commands are up to date, nothing was written",
        (true, _, true) => "there are no commands, nothing was written",
        (false, true, _) => "these commands would change, nothing was written",
        (false, false, _) => "these commands were written",
    };
    let mut lines = vec![format!("Discord application {}, {place}: {done}", called(app))];
    lines.extend(changes.iter().map(|change| match change {
        Difference::Added(name) => format!("+ {name}"),
        Difference::Changed(name) => format!("~ {name}"),
        Difference::Removed(name) => format!("- {name}"),
    }));
    lines.join("\n")
}

fn called(app: &Application) -> String {
    match app.name.as_str() {
        "" => app.id.clone(),
        name => format!("{name} ({})", app.id),
    }
}

/// Sets or clears the interactions endpoint.
///
/// # Errors
/// What failed; with advice.
pub async fn endpoint(
    target: &StackTarget,
    report: &mut Report,
    options: &InteractionsEndpoint,
) -> Result<(), String> {
    let token = target.needed("discord_bot_token").await?.value;
    let address = match (&options.address, options.clear) {
        (_, true) => None,
        (Some(address), false) => Some(address.clone()),
        (None, false) => Some(target.stack().await?.output("DiscordEndpoint")?.to_owned()),
    };
    let app = target.discord_application(&token).await.map_err(|error| told(&error, None, ""))?;
    let name = called(&app);
    let nowhere =
        |address: &Option<String>| address.clone().unwrap_or_else(|| "nowhere".to_owned());
    let (before, after) = (nowhere(&app.endpoint), nowhere(&address));
    if app.endpoint == address {
        report.right(&format!(
            "Discord application {name}: interactions are already delivered to {after}"
        ));
        return Ok(());
    }
    if options.dry_run {
        report.left(&format!("Discord application {name}: interactions would be delivered to {after} instead of {before}; nothing was written"));
        return Ok(());
    }
    let discord = target.discord(&app.id, &token)?;
    match discord.set_endpoint(address.as_deref()).await {
        Ok(_) => {
            let undo = match &app.endpoint {
                Some(before) => format!("--address {before}"),
                None => "--clear".to_owned(),
            };
            report.right(&format!("Discord application {name}: interactions are now delivered to {after} instead of {before}\nTo go back: bobbin discord endpoint {undo}"));
            Ok(())
        }
        Err(DiscordError::Api { code: INVALID_FORM, .. }) => Err(unverified(target, &app, &after)),
        Err(error) => Err(told(&error, None, &app.id)),
    }
}

/// Discord probes a new address twice before it saves it; this explains what can be wrong with the answers.
fn unverified(target: &StackTarget, app: &Application, address: &str) -> String {
    let mut words = format!(
        "Discord does not accept {address}. Before it saves an address it sends a PING there, which must be answered within 3 s, and one with a wrong signature, which must be refused with 401."
    );
    match target.parameter("DiscordPublicKey") {
        Some(key) if key.eq_ignore_ascii_case(&app.verify_key) => words.push_str(
            " The stack has this application's public key, so check whether the ingress runs: its log group in CloudWatch, and GET /health at its address.",
        ),
        Some(_) => words.push_str(&format!(
            " The stack has the public key of another application: {}",
            target.sam_deploy(&format!(
                "DiscordApplicationId={} DiscordPublicKey={}",
                app.id, app.verify_key
            ))
        )),
        None => words.push_str(&format!(
            " Deploy with this application's id and key first: DiscordApplicationId={} DiscordPublicKey={}",
            app.id, app.verify_key
        )),
    }
    words
}

/// Advice for a refusal; never contains the token.
pub fn told(error: &DiscordError, guild: Option<&str>, application: &str) -> String {
    match error {
        DiscordError::Revoked => "Discord refused the bot token. Tokens are shown once and become invalid when they are reset: in the developer portal, open the application, then Bot, then Reset Token, and set DISCORD_BOT_TOKEN to the new one.".to_owned(),
        DiscordError::Api { code: MISSING_ACCESS | UNKNOWN_GUILD, .. } => {
            let place = guild.map_or_else(String::new, |id| format!(" {id}"));
            format!(
                "The application is not in server{place}, or was invited without its commands. Somebody who manages the server must open {} and add it.",
                invitation(application)
            )
        }
        DiscordError::Api { status: 403, .. } => format!("The bot token does not belong to application {application}: leave DISCORD_APPLICATION_ID out, or set it to the token's own application. ({error})"),
        DiscordError::RateLimited { after_ms } => format!("Discord accepts no more changes right now. Try again in {} s.", after_ms.div_ceil(1000)),
        other => format!("Discord could not be set up: {other}"),
    }
}

/// Parses a Discord id.
pub fn snowflake(text: &str) -> Result<String, String> {
    let plain = (15..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if plain {
        Ok(text.to_owned())
    } else {
        Err("a Discord id has 15 to 20 digits; with Developer Mode on, it is in the menu of a server or application as Copy ID".to_owned())
    }
}
