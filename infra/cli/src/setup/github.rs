//! The GitHub App: made from a manifest with a few clicks, its keys stored in the stack's secrets.
//!
//! Promised: nothing is stored unless the answer belongs to this set-up (its state is compared), and no key is printed.
//! To undo it, delete the app on its settings page, and the keys with `bobbin undo`.

mod loopback;
mod page;

use std::io::{BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bobbin_cloud::secrets::Secret;
use bobbin_core::tenant::keys::Key;
use bobbin_forge::github::manifest::{self, MadeApp};
use bobbin_forge::github::{Addresses, PERMISSIONS};
use bobbin_http::is_loopback;
use clap::{Args, Subcommand};
use serde_json::{Map, Value};

use self::loopback::Loopback;
use super::report::Report;
use super::secrets;
use crate::target::StackTarget;

/// Longest name of an account (GitHub's sign-up page).
const ACCOUNT_CHARS_MAX: usize = 39;
/// Where the browser of another machine is led: nothing answers there, and its address bar shows the code.
const ELSEWHERE: &str = "http://127.0.0.1:4180/made";

/// Set-up of the application.
#[derive(Debug, Clone, Subcommand)]
pub enum GitHubSetup {
    /// Make the GitHub App for private repositories and pull requests, and store its keys
    App(NewApp),
}

/// Make the GitHub App, and store its keys.
#[derive(Debug, Clone, Args)]
pub struct NewApp {
    /// Make it in this organisation; without it, in your own account
    #[arg(long, value_name = "NAME", value_parser = account)]
    pub organization: Option<String>,
    /// Its name, which no other app on GitHub may have; you can still change it on GitHub's page
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Address of the ingress, such as a tunnel's; by default the stack's
    #[arg(long, value_name = "URL")]
    pub address: Option<String>,
    /// There is no browser on this machine: write the page to this file, to be opened elsewhere, and ask for the code
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// Make another app, although the stack has the key of one
    #[arg(long)]
    pub anew: bool,
    /// How many minutes to wait for the browser
    #[arg(long, value_name = "MINUTES", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub wait: u64,
    /// Show what would be done, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

impl Default for NewApp {
    fn default() -> Self {
        Self {
            organization: None,
            name: None,
            address: None,
            page: None,
            anew: false,
            wait: 15,
            dry_run: false,
        }
    }
}

/// Parses the name of an account: it becomes a part of an address.
pub fn account(text: &str) -> Result<String, String> {
    let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    if is_plain && (1..=ACCOUNT_CHARS_MAX).contains(&text.len()) {
        Ok(text.to_owned())
    } else {
        Err("give the organisation's name as in its address: letters, digits and hyphens"
            .to_owned())
    }
}

/// Runs a command.
///
/// # Errors
/// What failed; with advice.
pub async fn run(
    target: &StackTarget,
    report: &mut Report,
    command: &GitHubSetup,
) -> Result<(), String> {
    let GitHubSetup::App(options) = command;
    make(target, report, options).await
}

/// Makes the app and stores its keys.
///
/// # Errors
/// What failed; with advice.
pub async fn make(
    target: &StackTarget,
    report: &mut Report,
    options: &NewApp,
) -> Result<(), String> {
    // Before anybody clicks: the keys are shown once, so it has to be possible to store them.
    let stored = target.stored().await?;
    let has_key = stored.iter().any(|(one, _)| one.key == Key::GitHubPrivateKey);
    if has_key && !options.anew {
        report.right("The stack has the key of a GitHub App already; --anew makes another one");
        return Ok(());
    }
    let wish = AppRequest::of(target, options).await?;
    if options.dry_run {
        report.left(&format!("{}; nothing was made", wish.told()));
        return Ok(());
    }
    let code = match &options.page {
        None => in_browser(report, &wish, options.wait).await?,
        Some(file) => elsewhere(report, &wish, file)?,
    };
    let made = manifest::exchange(&wish.addresses, code.expose()).await;
    let made = made.map_err(|error| error.seen)?;
    report.right(&format!(
        "The GitHub App {} ({}) of {} is made: {}",
        made.name, made.slug, made.owner.login, made.page
    ));
    if let Err(why) = secrets::store(target, report, keys(&made)).await {
        return Err(format!(
            "The keys of the GitHub App {} could not be stored, and GitHub shows them only once: {why}\nDelete the app at {} and begin again, or make a new private key and secrets there and give them to bobbin secrets.",
            made.slug, made.page
        ));
    }
    left(target, report, &made);
    Ok(())
}

/// What is asked of GitHub.
struct AppRequest {
    addresses: Addresses,
    ingress: String,
    name: String,
    organization: Option<String>,
}

impl AppRequest {
    async fn of(target: &StackTarget, options: &NewApp) -> Result<Self, String> {
        let ingress = match &options.address {
            Some(address) => address.clone(),
            None => target.ingress().await?,
        };
        let overrides = target.overrides().forge;
        let addresses = Addresses::of(&overrides.github_api).with_pages(&overrides.github_git);
        if is_loopback(&ingress) && !is_loopback(&addresses.web) {
            return Err(format!(
                "This stack answers only on this machine, at {ingress}, and GitHub delivers only to addresses that it can reach. Open a tunnel to it and name the tunnel: bobbin github app --address https://TUNNEL"
            ));
        }
        let owner = options.organization.clone().unwrap_or_else(|| target.stack_name());
        let name = options.name.clone().unwrap_or_else(|| format!("bobbin-{owner}"));
        Ok(Self { addresses, ingress, name, organization: options.organization.clone() })
    }

    fn told(&self) -> String {
        let owner = match &self.organization {
            Some(name) => format!("the organisation {name}"),
            None => "your own account".to_owned(),
        };
        let permissions = PERMISSIONS.map(|(name, level)| format!("{name}: {level}"));
        format!(
            "A GitHub App would be made in {owner} at {}, with the permissions {}; its webhooks go to {}",
            self.addresses.web,
            permissions.join(", "),
            self.ingress
        )
    }

    /// The page with the manifest, which leads the browser to GitHub and from there back.
    fn page(&self, state: &str, back: &str) -> String {
        let manifest = manifest::manifest(&self.name, &self.ingress, back);
        let organization = self.organization.as_deref();
        let action = manifest::page(&self.addresses, organization, state);
        page::sending(&action, &manifest.to_string(), &self.told())
    }
}

/// Waits for the browser to come back with the code.
async fn in_browser(
    report: &mut Report,
    wish: &AppRequest,
    minutes: u64,
) -> Result<Secret, String> {
    let state = loopback::random();
    let loopback = Loopback::open().await?;
    let page = wish.page(&state, &loopback.back());
    report.call(&format!(
        "Open this in a browser on this machine, and press the button:\n{}\nIt is an address of this machine alone. Without a browser here: Ctrl-C, then bobbin github app --page FILE.",
        loopback.page()
    ));
    loopback.code(&page, &state, minutes).await
}

/// Writes the page to a file, and reads the address to which the browser was led from the terminal, or standard input.
fn elsewhere(report: &mut Report, wish: &AppRequest, file: &Path) -> Result<Secret, String> {
    let state = loopback::random();
    let shown = file.display();
    std::fs::write(file, wish.page(&state, ELSEWHERE))
        .map_err(|e| format!("{shown} cannot be written: {e}. Name another file."))?;
    report.call(&format!(
        "Copy {shown} to a machine with a browser, open it there, and press the button. At the end the browser cannot open {ELSEWHERE}…: copy the whole address from its address bar."
    ));
    let line = if std::io::stdin().is_terminal() {
        rpassword::prompt_password("  Paste it here (it is not shown): ")
    } else {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|_| line)
    };
    let line = line.map_err(|e| format!("The address could not be read: {e}."))?;
    code_of(line.trim(), &state)
}

/// The code in what was typed: the whole address, or the code alone.
fn code_of(typed: &str, state: &str) -> Result<Secret, String> {
    let Some((_, query)) = typed.split_once('?') else {
        return if typed.is_empty() {
            Err("No code was given, so nothing is stored. An app that was made can be deleted on its settings page.".to_owned())
        } else {
            Ok(Secret::from(typed.to_owned()))
        };
    };
    loopback::code_in(query, state).ok_or_else(|| {
        "This address does not belong to this run: it has another state. Open the page that was written just now.".to_owned()
    })
}

/// The keys of the app, by the names in the stack's secrets.
fn keys(made: &MadeApp) -> Vec<(Key, Secret)> {
    let pem = Secret::from(STANDARD.encode(made.private_key.expose()));
    let mut keys =
        vec![(Key::GitHubPrivateKey, pem), (Key::GitHubClientSecret, made.client_secret.clone())];
    if !made.webhook_secret.is_empty() {
        keys.push((Key::GitHubWebhookSecret, made.webhook_secret.clone()));
    }
    keys
}

/// Says what is left: the deployment with the app's id, and its installation.
fn left(target: &StackTarget, report: &mut Report, made: &MadeApp) {
    if made.webhook_secret.is_empty() {
        report.note("GitHub made no webhook secret: set one on the app's page, and store it with bobbin secrets");
    }
    let overrides = target.parameter("Overrides").unwrap_or("{}");
    let deployed = target.parameter("GitHubAppId") == Some(&made.client_id)
        && target.overrides().forge.github_app == made.slug;
    if !deployed {
        report.left(&format!(
            "Deploy the stack with it: {}",
            target.sam_deploy(&format!(
                "GitHubAppId={} {}",
                made.client_id,
                with_app(overrides, &made.slug)
            ))
        ));
    }
    report.note(&format!(
        "Install it for the repositories that agents may see: {}/installations/new\nWho may use them in the chat: docs/GITHUB.md",
        made.page
    ));
}

/// The parameter `Overrides` with the app's name in it, quoted for a shell.
fn with_app(overrides: &str, slug: &str) -> String {
    let mut all: Map<String, Value> = serde_json::from_str(overrides).unwrap_or_default();
    all.insert("github_app".to_owned(), slug.into());
    let text = Value::Object(all).to_string();
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\'', "'\\''");
    format!("'Overrides=\"{escaped}\"'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_code_is_read_with_its_state() {
        let code = |typed: &str| code_of(typed, "s").map(|code| code.expose().to_owned());
        assert_eq!(code("c0de").as_deref(), Ok("c0de"));
        let address = "http://127.0.0.1:4180/made?code=c0de&state=s";
        assert_eq!(code(address).as_deref(), Ok("c0de"));
        assert!(code("").is_err_and(|why| why.starts_with("No code was given")));
        for other in ["?code=c0de", "?code=c0de&state=t", "?state=s", "?code=&state=s"] {
            assert!(code(other).is_err_and(|why| why.contains("another state")), "{other}");
        }
    }

    #[test]
    fn other_overrides_stay_in_the_command() {
        assert_eq!(with_app("{}", "bobbin"), r#"'Overrides="{\"github_app\":\"bobbin\"}"'"#);
        assert_eq!(
            with_app(r#"{"slack_api":"it's"}"#, "bobbin"),
            r#"'Overrides="{\"github_app\":\"bobbin\",\"slack_api\":\"it'\''s\"}"'"#
        );
    }

    #[test]
    fn account_names_make_no_other_address() {
        assert_eq!(account("acme-1").as_deref(), Ok("acme-1"));
        for odd in ["", "a/b", "a b", "a?b", &"a".repeat(40)] {
            assert!(account(odd).is_err(), "{odd}");
        }
    }
}
