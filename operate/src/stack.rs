//! The stack that is operated: found by its name or beside this program, and what of it is spoken to.

use bobbin_adapters::daytona::Daytona;
use bobbin_adapters::deployed::Deployed;
use bobbin_adapters::direct::Direct;
use bobbin_adapters::laptop::Laptop;
use bobbin_adapters::letters::{Letters, Pair};
use bobbin_adapters::secrets::{self, ProviderSecret};
use bobbin_adapters::store::Store;
use bobbin_core::limits::Limits;
use bobbin_core::overrides::Overrides;

use crate::Trouble;
use crate::arguments::Place;

/// Longest wait for the secret.
const SECRET_MS_MAX: u64 = 10_000;

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
    aws: Direct,
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
            store,
            limits: overrides.limits,
            daytona_api: overrides.daytona_api,
            said,
            aws: deployed.account().direct(),
            deployed,
        })
    }

    /// Its sandbox provider, with the key of the stack's secret.
    pub async fn daytona(&self) -> Result<Daytona, Trouble> {
        let id = self.deployed.output("ProviderSecretArn")?;
        let text = secrets::text(&self.aws, id, SECRET_MS_MAX)
            .await
            .map_err(|why| {
                format!("{why}. Your credentials need secretsmanager:GetSecretValue for it.")
            })?;
        // The decoder's message can quote the value.
        let secret: ProviderSecret = serde_json::from_str(text.expose()).map_err(|_| {
            format!(
                "The secret {id} is no JSON object: store the key again with bobbin-setup secrets."
            )
        })?;
        if secret.daytona_api_key.is_empty() {
            return Err(format!(
                "The secret {id} holds no daytona_api_key: store it with bobbin-setup secrets."
            )
            .into());
        }
        Daytona::new(&self.daytona_api, secret.daytona_api_key.expose()).map_err(|e| {
            format!("The daytona_api of the stack's parameter Overrides cannot be used: {e}. Deploy it with another one.").into()
        })
    }

    /// Its queues of work.
    pub fn queues(&self) -> Result<bobbin_adapters::queue::Queues, Trouble> {
        let pairs = self.pairs()?;
        Ok(bobbin_adapters::queue::Queues::of(self.aws.clone(), &pairs))
    }

    /// Its dead letters.
    pub fn letters(&self) -> Result<Letters, Trouble> {
        Ok(Letters::new(self.aws.clone(), self.pairs()?))
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
