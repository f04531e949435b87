//! The stack that is operated: found by its name or beside this program, and what of it is spoken to.

use std::path::{Path, PathBuf};

use bobbin_adapters::daytona::Daytona;
use bobbin_adapters::deployed::Deployed;
use bobbin_adapters::letters::{Letters, Pair};
use bobbin_adapters::store::Store;
use bobbin_core::keys::Key;
use bobbin_core::limits::Limits;
use bobbin_core::overrides::Overrides;
use serde::Deserialize;

use crate::Trouble;
use crate::arguments::Place;

/// Where a checkout's laptop stack keeps its things.
const STATE_DIR: &str = ".bobbin/state";
/// What the laptop stack says of itself there while it runs.
const READY: &str = "ready.json";

/// A stack, with clients for what is always needed.
pub struct Stack {
    /// Its name: part of every sandbox's name.
    pub name: String,
    /// The records.
    pub store: Store,
    /// The bounds that it runs with.
    pub limits: Limits,
    /// How its commands are said: `--laptop` or `--stack NAME`.
    pub said: String,
    daytona_api: String,
    deployed: Deployed,
}

/// What is read of the laptop stack's ready file.
#[derive(Deserialize)]
struct Ready {
    stack: String,
    aws_endpoint: String,
}

impl Stack {
    /// Finds it.
    pub async fn find(place: &Place) -> Result<Self, Trouble> {
        let (deployed, said) = match (&place.stack, place.laptop) {
            (_, true) => {
                let (ready, said) = laptop(place.state_dir.as_deref())?;
                let found = Deployed::find_laptop(&ready.stack, &ready.aws_endpoint).await;
                let found = found.map_err(|why| {
                    format!(
                        "The laptop stack does not answer at {}: {why} Start it with cargo run.",
                        ready.aws_endpoint
                    )
                })?;
                (found, said)
            }
            (Some(name), false) => (
                Deployed::find(name, place.endpoint.as_deref()).await?,
                format!("--stack {name}"),
            ),
            (None, false) => {
                return Err("Which stack? Say --stack NAME for a deployed one (or set BOBBIN_STACK), or --laptop for the one that cargo run has started.".into());
            }
        };
        let text = deployed.parameter("Overrides").unwrap_or_default();
        let overrides = Overrides::parse(text).map_err(|why| {
            format!("{why}. Use the bobbin-operate of the commit that is deployed.")
        })?;
        let store = deployed.store()?;
        Ok(Self {
            name: deployed.name().to_owned(),
            store,
            limits: overrides.limits,
            daytona_api: overrides.daytona_api,
            said,
            deployed,
        })
    }

    /// Its sandbox provider, with the key of the stack's secret.
    pub async fn daytona(&self) -> Result<Daytona, Trouble> {
        let ring = self.deployed.keyring("ProviderSecretArn").await?;
        let name = Key::DaytonaApiKey.name();
        let key = ring.get(name).ok_or_else(|| {
            format!("The stack's secret holds no {name}: store it with bobbin-setup secrets.")
        })?;
        Daytona::new(&self.daytona_api, key.expose()).map_err(|e| {
            format!("The daytona_api of the stack's parameter Overrides cannot be used: {e}. Deploy it with another one.").into()
        })
    }

    /// Its queues of work.
    pub fn queues(&self) -> Result<bobbin_adapters::queue::Queues, Trouble> {
        let pairs = self.pairs()?;
        Ok(bobbin_adapters::queue::Queues::of(
            self.deployed.aws(),
            &pairs,
        ))
    }

    /// Its dead letters.
    pub fn letters(&self) -> Result<Letters, Trouble> {
        Ok(Letters::new(self.deployed.aws(), self.pairs()?))
    }

    fn pairs(&self) -> Result<[Pair; 2], Trouble> {
        let pair = |name, home: &str, dead: &str| -> Result<Pair, Trouble> {
            Ok(Pair {
                name,
                home_url: self.deployed.output(home)?.to_owned(),
                dead_url: self.deployed.output(dead)?.to_owned(),
            })
        };
        Ok([
            pair("messages", "MessagesQueueUrl", "MessagesDeadQueueUrl")?,
            pair("control", "ControlQueueUrl", "ControlDeadQueueUrl")?,
        ])
    }
}

/// What the laptop stack says of itself, and how it was named.
fn laptop(state_dir: Option<&Path>) -> Result<(Ready, String), Trouble> {
    let (folder, said) = match state_dir {
        Some(folder) => (
            folder.to_owned(),
            format!("--laptop --state-dir {}", folder.display()),
        ),
        None => (checkout()?.join(STATE_DIR), "--laptop".to_owned()),
    };
    let file = folder.join(READY);
    let text = std::fs::read_to_string(&file).map_err(|_| {
        format!(
            "No laptop stack runs with the state folder {}: start it with cargo run, or name its folder with --state-dir.",
            folder.display()
        )
    })?;
    let ready = serde_json::from_str(&text).map_err(|e| {
        format!(
            "{} cannot be read ({e}): start the laptop stack of this checkout again with cargo run.",
            file.display()
        )
    })?;
    Ok((ready, said))
}

/// The checkout: the folder upwards from here that holds the template, else the one that this program was built in.
fn checkout() -> Result<PathBuf, Trouble> {
    let here = std::env::current_dir()
        .map_err(|e| format!("The current folder cannot be read ({e}): go to another one."))?;
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    here.ancestors()
        .map(Path::to_owned)
        .chain([built_in])
        .find(|folder| folder.join("template.yaml").is_file())
        .ok_or_else(|| {
            "This is no checkout of Bobbin: go to one, or name the stack's folder with --state-dir."
                .into()
        })
}
