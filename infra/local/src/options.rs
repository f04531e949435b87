//! Parses the command line; the environment is read in `real_services`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bobbin_core::tenant::keys::Key;

use crate::containers::Containers;

/// Text of `--help`, and the answer to a wrong argument.
pub const HELP: &str = "\
Bobbin's laptop stack: chat page, functions, queues, table, sandboxes and a scripted model, on loopback only
unless --containers is given.

Usage: cargo run -- [OPTIONS]

  --port N            port of the chat page (default: the first free one from 4100; 0: any free one)
  --state-dir DIR     folder for its state (default: .bobbin/state in the project)
  --memory-left MB    stop the longest unused sandbox while this machine has less memory left (default: 1024; 0: never);
                      its next message starts it again
  --agents LIST       add agents to the sandboxes besides OpenCode: claude (proprietary: Anthropic's commercial terms),
                      codex (Apache-2.0); by naming one you accept its licence, and npm fetches it once
  --fresh             start empty: delete the contents of the state folder first
  --no-build          use the existing function binaries
  --ready-file FILE   write one JSON object with every address and key when everything is up
  --limits JSON       limits to change, e.g. '{\"idle_pause_ms\": 60000}'
  --parameters JSON   parameters of template.yaml to change, e.g. '{\"AllowedUsers\": \"U0123\"}'
  --keys JSON         keys in the stack's secrets to change, e.g. '{\"openai_api_key\": \"...\"}'; an empty one is removed
  --containers[=HOST] for functions in containers of `sam local invoke`: also listen on Docker's bridge (172.17.0.1, or HOST);
                      anybody who reaches that address can then use this stack, so use it only while needed
  --unhonoured        list the settings of template.yaml that have no effect here
  --without-aws       start without the embedded AWS: chats, provider and model only
  --help              this text

From the environment: ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY for a real model (BOBBIN_MODEL picks
it, as provider/model), and with it DAYTONA_API_KEY, or VERCEL_TOKEN, VERCEL_TEAM_ID and VERCEL_PROJECT_ID, for real
sandboxes, OPENROUTER_MANAGEMENT_KEY for budgets that OpenRouter enforces, DISCORD_APPLICATION_ID, DISCORD_PUBLIC_KEY,
DISCORD_BOT_TOKEN and DISCORD_GUILD_ID or SLACK_SIGNING_SECRET, SLACK_BOT_TOKEN and SLACK_TEAM_ID for the real
platforms, GITHUB_APP_ID, GITHUB_PRIVATE_KEY and GITHUB_OWNERS for the real GitHub (GITHUB_CLIENT_SECRET for signing in,
GITHUB_WEBHOOK_SECRET for webhooks), BOBBIN_AGENT_DIR for folders with agents' programs (including `opencode`) instead
of the installed one, SANDBOX_RUNTIME_MODE for how agents run (opencode, compat or native), BOBBIN_GIT_MIRROR for a
folder of repositories (owner/name) to use instead of github.com's, BOBBIN_STAND_INS for a file of hosts that something
on this machine stands in for ([{host, address, authority}]), BOBBIN_LOG for a more detailed log.";

/// Agents that the sandbox daemon can fetch.
const AGENTS: [&str; 2] = ["claude", "codex"];

/// Options of the stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaptopOptions {
    /// Port of the page, 0 for any free one; `None`: the first free one of a fixed range, so that bookmarks stay valid.
    pub port: Option<u16>,
    /// State folder.
    pub state_dir: Option<PathBuf>,
    /// Sandboxes are stopped below this much free memory, in megabytes; `None`: the default.
    pub memory_left_mb: Option<u64>,
    /// Further agents for sandboxes besides OpenCode, by the daemon's ids.
    pub agents: Vec<String>,
    /// Delete the state first.
    pub fresh: bool,
    /// File for the addresses.
    pub ready_file: Option<PathBuf>,
    /// Overrides of the limits, in JSON.
    pub limits: Option<String>,
    /// Template parameters; take precedence over the stack's own.
    pub parameters: BTreeMap<String, String>,
    /// Keys for the stack's secrets; take precedence over the stack's own.
    pub keys: BTreeMap<String, String>,
    /// Lets containers reach the stack, and how.
    pub containers: Option<Containers>,
    /// List the template's ignored properties.
    pub unhonoured: bool,
    /// Run without the embedded AWS.
    pub without_aws: bool,
}

/// The parsed command line.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one")]
pub enum Parsed {
    /// Start the stack with these options.
    Run(LaptopOptions),
    /// Print the help and exit.
    Help,
}

impl LaptopOptions {
    /// Parses the arguments.
    ///
    /// # Errors
    /// A sentence that names the argument.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Parsed, String> {
        let mut options = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let (flag, inline) = match argument.split_once('=') {
                Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
                None => (argument, None),
            };
            let mut value = || {
                inline
                    .clone()
                    .or_else(|| arguments.next())
                    .ok_or_else(|| format!("{flag} needs a value."))
            };
            match flag.as_str() {
                "--help" | "-h" => return Ok(Parsed::Help),
                "--port" => {
                    let port = value()?.parse();
                    options.port = Some(
                        port.map_err(|_| "--port needs a number from 0 to 65535.".to_owned())?,
                    );
                }
                "--memory-left" => {
                    let left = value()?.parse();
                    options.memory_left_mb =
                        Some(left.map_err(|_| {
                            "--memory-left needs a number of megabytes.".to_owned()
                        })?);
                }
                "--agents" => {
                    let named = value()?;
                    options.agents = named.split(',').map(|one| one.trim().to_owned()).collect();
                    let unknown = options.agents.iter().find(|one| !AGENTS.contains(&one.as_str()));
                    if let Some(name) = unknown {
                        return Err(format!(
                            "--agents: {name:?} cannot be fetched; choose from {}.",
                            AGENTS.join(" and ")
                        ));
                    }
                }
                "--state-dir" => options.state_dir = Some(value()?.into()),
                "--ready-file" => options.ready_file = Some(value()?.into()),
                "--limits" => {
                    let text = value()?;
                    let limits: bobbin_core::base::limits::Limits = serde_json::from_str(&text)
                        .map_err(|e| {
                            format!("--limits is not a JSON object of known bounds: {e}")
                        })?;
                    limits.check()?;
                    options.limits = Some(text);
                }
                "--parameters" => {
                    // The decoder's message could quote a credential.
                    options.parameters = serde_json::from_str(&value()?)
                        .map_err(|_| "--parameters is not a JSON object of strings.".to_owned())?;
                }
                "--keys" => {
                    options.keys = serde_json::from_str(&value()?)
                        .map_err(|_| "--keys is not a JSON object of strings.".to_owned())?;
                    let unknown = |name: &&String| Key::named(name).is_none();
                    if let Some(name) = options.keys.keys().find(unknown) {
                        return Err(format!("--keys: {name} is not a key of a stack."));
                    }
                }
                // The next word may be another option, so the value must be joined to this one.
                "--containers" => {
                    options.containers = Some(match &inline {
                        Some(host) => Containers::named(host)?,
                        None => Containers::usual(),
                    });
                }
                "--unhonoured" => options.unhonoured = true,
                "--fresh" => options.fresh = true,
                // Handled by `bobbin-launch`.
                "--no-build" => {}
                "--without-aws" => options.without_aws = true,
                other => return Err(format!("{other} is not an option.")),
            }
        }
        Ok(Parsed::Run(options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Parsed, String> {
        LaptopOptions::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_take_both_spellings() {
        let options = LaptopOptions {
            port: Some(8080),
            state_dir: Some("s".into()),
            memory_left_mb: Some(500),
            agents: vec!["claude".to_owned(), "codex".to_owned()],
            fresh: true,
            ready_file: Some("r".into()),
            limits: None,
            parameters: BTreeMap::from([("Model".to_owned(), "a/b".to_owned())]),
            keys: BTreeMap::from([("openai_api_key".to_owned(), "k".to_owned())]),
            containers: Some(Containers::named("10.1.2.3").expect("an address")),
            unhonoured: true,
            without_aws: false,
        };
        assert_eq!(
            parse(
                r#"--containers=10.1.2.3 --memory-left 500 --agents claude,codex --unhonoured --port 8080 --state-dir=s --fresh --no-build --ready-file r --parameters {"Model":"a/b"} --keys {"openai_api_key":"k"}"#
            ),
            Ok(Parsed::Run(options))
        );
        assert_eq!(parse("--help"), Ok(Parsed::Help));
        let options = LaptopOptions {
            containers: Some(Containers::usual()),
            fresh: true,
            ..LaptopOptions::default()
        };
        assert_eq!(parse("--containers --fresh"), Ok(Parsed::Run(options)));
    }

    #[test]
    fn a_wrong_argument_is_named() {
        assert_eq!(parse("--prot 1"), Err("--prot is not an option.".to_owned()));
        assert_eq!(parse("--port"), Err("--port needs a value.".to_owned()));
        assert_eq!(
            parse("--agents claude,vim"),
            Err("--agents: \"vim\" cannot be fetched; choose from claude and codex.".to_owned())
        );
        assert!(
            parse("--containers=0.0.0.0")
                .is_err_and(|e| e.starts_with("--containers=0.0.0.0 is not an address"))
        );
        assert_eq!(
            parse(r#"--parameters {"Model":1,"x":"secret"}"#),
            Err("--parameters is not a JSON object of strings.".to_owned())
        );
        assert_eq!(
            parse(r#"--keys {"slack_bot_token":1,"x":"secret"}"#),
            Err("--keys is not a JSON object of strings.".to_owned())
        );
        assert_eq!(
            parse(r#"--keys {"slack_token":"secret"}"#),
            Err("--keys: slack_token is not a key of a stack.".to_owned())
        );
        assert!(
            parse(r#"--limits {"idle":1}"#)
                .is_err_and(|e| e.starts_with("--limits is not a JSON object of known bounds"))
        );
    }
}
