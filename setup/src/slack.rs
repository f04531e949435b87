//! The Slack app: its manifest, made of the names that the code uses.

use bobbin_core::wire::slack::manifest::{link, manifest};
use clap::{Args, Subcommand};

use crate::Done;

/// What of it is set up.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Print the manifest of the app, and the link that makes the app from it
    Manifest(Manifest),
}

/// Print the manifest of the app, and the link that makes the app from it.
#[derive(Debug, Args)]
pub struct Manifest {
    /// Where the ingress answers: the function URL of the stack, or the address of a tunnel
    #[arg(long, value_name = "URL")]
    address: String,
    /// Print the link alone
    #[arg(long)]
    link: bool,
}

/// Does it.
///
/// # Errors
/// Why the address cannot be one.
pub fn run(what: &What) -> Result<Done, String> {
    let What::Manifest(wanted) = what;
    let manifest = manifest(&wanted.address).map_err(|e| format!("--address: {e}"))?;
    let link = link(&manifest);
    let words = match wanted.link {
        true => link,
        false => format!(
            "{manifest:#}\n\nPaste it under \"Create New App\", \"From a manifest\" at https://api.slack.com/apps, or open:\n{link}\n\n\
Then install the app to the workspace, and give its signing secret and bot token to the stack (SlackSigningSecret, SlackBotToken)."
        ),
    };
    Ok(Done {
        words,
        to_do: false,
    })
}
