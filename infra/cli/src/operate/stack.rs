//! The stack that is operated: found by its name or beside this program, and what of it is spoken to.

use bobbin_adapters::daytona::Daytona;
use bobbin_adapters::deployed::Deployed;
use bobbin_adapters::laptop::Laptop;
use bobbin_adapters::letters::{Letters, Pair};
use bobbin_adapters::store::Store;
use bobbin_core::keys::Key;
use bobbin_core::limits::Limits;
use bobbin_core::overrides::Overrides;

use crate::Trouble;
use crate::arguments::Place;

/// A stack, with clients for what is always needed.
pub struct Stack {
    /// Its name: part of every sandbox's name.
    pub name: String,
    /// Its own id: a label of every sandbox.
    pub id: String,
    /// The records.
    pub store: Store,
    /// The bounds that it runs with.
    pub limits: Limits,
    /// How its commands are said: `--laptop` or `--stack NAME`.
    pub said: String,
    daytona_api: String,
    deployed: Deployed,
}

impl Stack {
    /// Finds it.
    pub async fn find(place: &Place) -> Result<Self, Trouble> {
        let (deployed, said) = match (&place.stack, place.laptop) {
            (_, true) => {
                let laptop = Laptop::find(place.state_dir.as_deref())?;
                (laptop.deployed().await?, laptop.said)
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
            id: deployed.id().to_owned(),
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
