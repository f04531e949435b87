//! Runs every step in order, and undoes those of the stack.

use std::io::{BufRead as _, IsTerminal as _};

use clap::{Args, ValueEnum as _};

use super::github::{self, NewApp};
use super::image::ImageAgent;
use super::report::Report;
use super::{check, discord, secrets, slack, smoke_test, snapshot};
use crate::target::StackTarget;

/// Steps in all.
const STEPS: u32 = 9;
/// Steps of undoing.
const UNDO_STEPS: u32 = 4;

/// Do every step.
#[derive(Debug, Clone, Args)]
pub struct All {
    /// Use only the keys in the environment, and ask for none
    #[arg(long)]
    from_env: bool,
    /// Show what would be done, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    image: snapshot::ImageOptions,
    #[command(flatten)]
    test: smoke_test::TestOptions,
}

/// Undo Discord's settings and the stack's keys.
#[derive(Debug, Clone, Args)]
pub struct Undo {
    /// Do it; without this, only show what would be done
    #[arg(long)]
    yes: bool,
}

/// Runs every step; a missing requirement is reported, and the other steps go on where they can. Without a stack only
/// the steps that need none run, and the report says how to deploy one.
pub async fn run(target: &StackTarget, options: &All, json: bool) -> Report {
    let mut report = Report::of(STEPS).kept_for_json(json);
    report.step("The stack");
    let is_there = match target.stack().await {
        Ok(_) => {
            check::stack(target, &mut report).await;
            true
        }
        Err(why) => {
            report.note(&format!("{why}\nThe steps that need no stack run now."));
            false
        }
    };

    report.step("The Slack app");
    slack_app(target, &mut report, is_there).await;

    report.step("The GitHub App");
    github_app(target, &mut report, options, is_there && !json).await;
    // Its keys are in the stack by now, but not in the copy read first.
    let anew = target.afresh();
    let target = if is_there { &anew } else { target };

    // Typed keys are stored before the check: a wrong one is overwritten later.
    report.step("The keys in the stack's secrets");
    store_keys(target, &mut report, options, is_there).await;
    // The typed keys are in the stack by now, but not in the copy read first.
    let anew = target.afresh();
    let target = if is_there { &anew } else { target };

    report.step("Trying the keys");
    if is_there && let Err(why) = target.stack().await {
        report.wrong(&why, "");
    }
    check::run(target, &mut report).await;

    report.step("The sandboxes' snapshot");
    let ready = snapshot_step(target, &mut report, options).await;

    discord_steps(target, &mut report, options.dry_run, is_there).await;

    report.step("A test turn");
    test(target, &mut report, options, is_there).await;
    if !is_there {
        report.left(&deployment(target, ready.as_deref()).await);
    }
    report
}

async fn store_keys(target: &StackTarget, report: &mut Report, options: &All, is_there: bool) {
    if is_there {
        let keys = secrets::SecretsOptions {
            from_env: options.from_env,
            dry_run: options.dry_run,
            is_step: true,
            ..secrets::SecretsOptions::default()
        };
        let done = secrets::run(target, report, &keys).await;
        or_wrong(report, done);
    } else {
        report.note("They are stored when there is a stack.");
    }
}

/// Returns the snapshot's name if it is ready.
async fn snapshot_step(target: &StackTarget, report: &mut Report, options: &All) -> Option<String> {
    if target.key("daytona_api_key").await.is_none() {
        report.note("Skipped: there is no Daytona API key.");
        return None;
    }
    let snapshot = snapshot::SnapshotOptions {
        dry_run: options.dry_run,
        image: options.image.clone(),
        ..snapshot::SnapshotOptions::default()
    };
    let ready = snapshot::run(target, report, &snapshot).await.unwrap_or_else(|why| {
        report.wrong(&why, "");
        None
    });
    if let Some(more) = more_agents(&options.image.agents) {
        report.note(&more);
    }
    ready
}

/// Further agents for the snapshot, with their licences and the options that choose them.
fn more_agents(chosen: &[ImageAgent]) -> Option<String> {
    let left = ImageAgent::value_variants().iter().filter(|one| !chosen.contains(one));
    let left: Vec<ImageAgent> = left.copied().collect();
    if left.is_empty() {
        return None;
    }
    let licences: Vec<&str> = left.iter().map(|one| one.licence()).collect();
    let names: Vec<&str> = left.iter().map(|one| one.id()).collect();
    Some(format!(
        "Not in it: {}. To add them, put your build of bobbin-agentd at an address (docs/OPERATE.md) and run bobbin setup --daemon URL --daemon-sha512 HEX --agents {}; by choosing an agent you accept its licence.",
        licences.join(" and "),
        names.join(",")
    ))
}

async fn discord_steps(target: &StackTarget, report: &mut Report, dry_run: bool, is_there: bool) {
    let discord_is_on = target.key("discord_bot_token").await.is_some();
    report.step("Discord's commands");
    if discord_is_on {
        let commands =
            discord::RegisterCommands { dry_run, ..discord::RegisterCommands::default() };
        let done = discord::commands(target, report, &commands).await;
        or_wrong(report, done);
    } else {
        report.note("Skipped: there is no Discord bot token.");
    }

    report.step("Discord's endpoint");
    match (discord_is_on, is_there) {
        (true, true) => {
            let endpoint = discord::InteractionsEndpoint {
                dry_run,
                ..discord::InteractionsEndpoint::default()
            };
            let done = discord::endpoint(target, report, &endpoint).await;
            or_wrong(report, done);
        }
        (true, false) => report
            .note("It is set when there is a stack: Discord tries an address before accepting it."),
        (false, _) => report.note("Skipped: there is no Discord bot token."),
    }
}

async fn slack_app(target: &StackTarget, report: &mut Report, is_there: bool) {
    if target.key("slack_bot_token").await.is_some() {
        report.right("There is already a bot token");
    } else if is_there {
        match slack::link_for_stack(target).await {
            Ok(link) => report.note(&format!(
                "To use Slack, create the app with this link, install it to the workspace, and give its signing secret and bot token in the next step:\n{link}"
            )),
            Err(why) => report.note(&format!("Its manifest cannot be created: {why}")),
        }
    } else {
        report.note("It is created from the stack's address, when there is a stack.");
    }
}

/// Makes the app, if a person at the terminal names who is to own it.
async fn github_app(target: &StackTarget, report: &mut Report, options: &All, may_ask: bool) {
    if target.key("github_private_key").await.is_some() {
        return report.right("There is already an app's key");
    }
    let is_asked =
        may_ask && !options.dry_run && !options.from_env && std::io::stdin().is_terminal();
    let organization = if is_asked { typed_organization() } else { None };
    let Some(organization) = organization else {
        return report.note(
            "For private repositories and pull requests: bobbin github app --organization NAME makes one, when there is a stack.",
        );
    };
    let done = match github::account(&organization) {
        Ok(name) => {
            let app = NewApp { organization: Some(name), ..NewApp::default() };
            github::make(target, report, &app).await
        }
        Err(why) => Err(format!("{organization}: {why}")),
    };
    or_wrong(report, done);
}

fn typed_organization() -> Option<String> {
    tell_part!(
        "  For private repositories and pull requests: the GitHub organisation that is to own the app, or Enter to skip it: "
    );
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).ok()?;
    let name = line.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

async fn test(target: &StackTarget, report: &mut Report, options: &All, is_there: bool) {
    if !is_there {
        report.note("It is sent when there is a stack.");
    } else if !options.test.says_where() {
        report.note("Skipped: choose a channel with --discord-channel ID, or --slack-channel ID and --slack-user ID.");
    } else if options.dry_run {
        report.left("A test turn would be sent");
    } else if report.is_wrong() {
        report.note("Skipped until nothing above is wrong; bobbin test sends it anyway.");
    } else {
        let done = smoke_test::run(target, report, &options.test).await;
        or_wrong(report, done);
    }
}

/// The deploy command, with what is known so far; `snapshot` is ready to be started from.
async fn deployment(target: &StackTarget, snapshot: Option<&str>) -> String {
    let mut parameters = Vec::new();
    if let Some(found) = target.key("discord_bot_token").await
        && let Ok(app) = target.discord_application(&found.value).await
    {
        parameters.push(format!(
            "DiscordApplicationId={} DiscordPublicKey={} AllowedGuilds=YOUR_SERVER_ID",
            app.id, app.verify_key
        ));
    }
    parameters.extend(snapshot.map(|name| format!("DaytonaSnapshot={name}")));
    let overrides = if parameters.is_empty() {
        String::new()
    } else {
        format!(" --parameter-overrides {}", parameters.join(" "))
    };
    format!(
        "Deploy the stack, then run this again:\nsam build && sam deploy --guided --stack-name {}{overrides}",
        target.stack_name()
    )
}

/// Undoes the steps, last first.
pub async fn undo(target: &StackTarget, options: &Undo, json: bool) -> Report {
    let mut report = Report::of(UNDO_STEPS).kept_for_json(json);
    let dry_run = !options.yes;
    let discord_is_on = target.key("discord_bot_token").await.is_some();
    report.step("Discord's endpoint");
    if discord_is_on {
        let endpoint = discord::InteractionsEndpoint { clear: true, dry_run, address: None };
        let done = discord::endpoint(target, &mut report, &endpoint).await;
        or_wrong(&mut report, done);
    } else {
        report.note("Skipped: there is no Discord bot token.");
    }
    report.step("Discord's commands");
    if discord_is_on {
        let commands = discord::RegisterCommands {
            remove: true,
            dry_run,
            ..discord::RegisterCommands::default()
        };
        let done = discord::commands(target, &mut report, &commands).await;
        or_wrong(&mut report, done);
    } else {
        report.note("Skipped: there is no Discord bot token.");
    }
    report.step("The sandboxes' snapshot");
    // Without a readable stack its snapshot is unknown.
    let _ = target.stack().await;
    report.note(&format!(
        "It stays, because another stack may start from the same one. When none does, and DAYTONA_API_KEY is set: bobbin {} snapshot --remove --name {}",
        target.said(),
        target.parameter("DaytonaSnapshot").unwrap_or("NAME")
    ));
    report.step("The keys in the stack's secrets");
    let done = secrets::run(target, &mut report, &secrets::forget_all(dry_run)).await;
    or_wrong(&mut report, done);
    report.note(&format!("The Slack app is deleted at https://api.slack.com/apps, the GitHub App on its settings page, the stack with: sam delete --stack-name {}", target.stack_name()));
    if dry_run {
        report.note("Nothing was changed; --yes makes the changes.");
    }
    report
}

fn or_wrong(report: &mut Report, done: Result<(), String>) {
    if let Err(why) = done {
        report.wrong(&why, "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_offered_with_their_licences() {
        let offered = more_agents(&[]).unwrap_or_default();
        assert!(
            offered.starts_with(
                "Not in it: Claude Code (proprietary: Anthropic's commercial terms) and Codex (Apache-2.0). "
            ) && offered.contains("--agents claude,codex; by choosing an agent you accept its licence."),
            "{offered}"
        );
        let other = more_agents(&[ImageAgent::Claude]).unwrap_or_default();
        assert!(
            other.starts_with("Not in it: Codex (Apache-2.0). ")
                && other.contains("--agents codex;"),
            "{other}"
        );
        assert_eq!(more_agents(&[ImageAgent::Codex, ImageAgent::Claude]), None);
    }
}
