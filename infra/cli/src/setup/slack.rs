//! The Slack app's manifest, generated from the names in the code.

use bobbin_chat::slack::manifest::{link, manifest};
use bobbin_http::is_loopback;
use clap::{Args, Subcommand};

use crate::target::StackTarget;

/// Set-up of the application.
#[derive(Debug, Clone, Subcommand)]
pub enum SlackSetup {
    /// Print the app's manifest, and a link that creates the app from it
    Manifest(Manifest),
}

/// Print the app's manifest, and a link that creates the app from it.
#[derive(Debug, Clone, Default, Args)]
pub struct Manifest {
    /// Address of the ingress, such as a tunnel's; by default the stack's
    #[arg(long, value_name = "URL")]
    pub address: Option<String>,
    /// Print only the link
    #[arg(long)]
    pub link: bool,
}

/// An unreachable address is reported before the manifest's own rules: the laptop stack's address is valid but of no
/// use to Slack.
fn of_this_machine(address: &str) -> Option<String> {
    is_loopback(address).then(|| {
        format!(
            "This stack answers only on this machine, at {address}, and Slack delivers only to https addresses that it can reach. Open a tunnel to it and name the tunnel: bobbin slack manifest --address https://TUNNEL. The chat page of the laptop stack needs no app."
        )
    })
}

/// Prints the bare manifest, for pipes. Writes nothing here; to undo it, delete the app at Slack.
///
/// # Errors
/// The address is invalid or unknown.
pub async fn run(target: &StackTarget, command: &SlackSetup) -> Result<(), String> {
    let SlackSetup::Manifest(options) = command;
    let address = match &options.address {
        Some(address) => address.clone(),
        None => address_of(target).await?,
    };
    let manifest = manifest(&address).map_err(|e| format!("--address: {e}"))?;
    let link = link(&manifest);
    if options.link {
        show!("{link}")
    } else {
        show!(
            "{manifest:#}\n\nPaste it under \"Create New App\", \"From a manifest\" at https://api.slack.com/apps, or open:\n{link}\n\n\
Then install the app to the workspace, and store its signing secret and bot token: bobbin secrets."
        )
    }
    Ok(())
}

/// The link that creates the app for the stack.
///
/// # Errors
/// Why there is no link.
pub async fn link_for_stack(target: &StackTarget) -> Result<String, String> {
    let manifest = manifest(&address_of(target).await?).map_err(|e| e.to_string())?;
    Ok(link(&manifest))
}

async fn address_of(target: &StackTarget) -> Result<String, String> {
    let address = target.ingress().await?;
    match of_this_machine(&address) {
        Some(why) => Err(why),
        None => Ok(address),
    }
}
