//! The sweeper: every minute it turns due work into messages and deletes sandboxes that belong to nobody. It decides
//! nothing and touches no sandbox of a live generation: those are stopped and deleted in their thread's own group.

mod dead;
mod keys;
mod orphans;
mod tick;
mod vanished;

use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

use bobbin_app::accounts;
use bobbin_app::keyed::{KeyedProviders, NamedProviders};
use bobbin_cloud::aws::Aws;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::config::Config;
use bobbin_cloud::events::Raw;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::store::Store;
use bobbin_cloud::{startup, telemetry};
use bobbin_core::protocol::signals::ACCOUNT_OTHER;
use bobbin_core::records::account::of_another_account;
use bobbin_sandbox::{Provider, Sandbox};
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use serde_json::{Value, json};

use crate::dead::DeadQueues;
use crate::orphans::Reaped;

/// Maximum age of our copy of a secret, as a multiple of the worker's: nobody waits for a sweep, and a refused key is
/// read again at once.
const AGES: u64 = 10;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::start();
    let sweeper = match Sweeper::from_environment() {
        Ok(sweeper) => Rc::new(sweeper),
        Err(why) => return startup::refuse(&why).await,
    };
    // The event's content does not matter: the schedule fired.
    let sweep = service_fn(move |_: LambdaEvent<Raw>| {
        let sweeper = Rc::clone(&sweeper);
        async move {
            let swept = sweeper.sweep().await;
            swept.map_err(|error_message| Diagnostic {
                error_type: "Bobbin.Failed".to_owned(),
                error_message,
            })
        }
    });
    startup::work(sweep).await
}

/// Everything the sweeper needs, created once per process.
struct Sweeper {
    config: Config,
    store: Store,
    queues: Queues,
    providers: KeyedProviders,
    dead: DeadQueues,
}

/// What one provider lists of this stack.
struct ProviderList {
    provider: Arc<dyn Provider>,
    listed: Vec<Sandbox>,
    /// The provider has no more sandboxes than can be listed.
    is_whole: bool,
}

/// The providers' lists.
struct Listings {
    lists: Vec<ProviderList>,
    /// Why a provider could not be listed.
    trouble: Option<String>,
}

impl Sweeper {
    /// From the function's environment.
    fn from_environment() -> Result<Self, String> {
        startup::in_lambda()?;
        let config = Config::from_environment()?;
        let aws = Aws::from_environment()?;
        Ok(Self {
            providers: KeyedProviders::new(
                &aws,
                &config,
                config.limits.tenant.secrets_ms.saturating_mul(AGES),
            )?,
            store: Store::new(&aws, &config.table),
            queues: Queues::new(&aws, &config),
            dead: DeadQueues::new(&config)?,
            config,
        })
    }

    /// One tick. Every part runs even if another fails; an error of any part is an error of the tick.
    async fn sweep(&self) -> Result<Value, String> {
        let (due, dead, around) = tokio::join!(
            tick::tick(&self.store, &self.queues),
            self.dead.check(&self.queues, now_ms()),
            self.around()
        );
        for trouble in [&due, &dead, &around].into_iter().filter_map(|it| it.as_ref().err()) {
            tracing::error!(event = "sweep.failed", "{trouble}");
        }
        let (mut told, around) = (json!({"due": due?, "dead": dead?}), around?);
        if let (Some(all), Value::Object(around)) = (told.as_object_mut(), around) {
            all.extend(around);
        }
        Ok(told)
    }

    /// Compares the providers' lists with the records. A provider that does not answer does not stop the others; but
    /// only all lists together can tell that a record's sandbox has vanished.
    async fn around(&self) -> Result<Value, String> {
        let Self { config, store, queues, .. } = self;
        let mut listings = self.list(self.providers.get(now_ms()).await?).await;
        // Does not wait for a replaced key's copy to expire: as soon as the old key is refused, the secret is read
        // again.
        if (listings.lists.is_empty() || listings.trouble.is_some())
            && let Some(newer) = self.providers.newer(now_ms()).await?
        {
            listings = self.list(newer).await;
        }
        let Listings { lists, trouble } = listings;
        if lists.is_empty() && trouble.is_none() {
            // Not set up yet: there can be no sandboxes, and nobody should be alerted.
            let missing = self.providers.key()?.missing();
            tracing::warn!(event = "provider.key.missing", "{missing} Nothing is compared.");
            return Ok(json!({"orphans": missing}));
        }
        let reap = async {
            let (mut reaped, mut trouble) = (Reaped::default(), None);
            for ProviderList { provider, listed, .. } in &lists {
                match orphans::reap(config, (store, queues), &**provider, listed).await {
                    Ok(some) => reaped = reaped.and(some),
                    Err(seen) => trouble = Some(seen),
                }
            }
            trouble.map_or(Ok(reaped), Err)
        };
        let look = async {
            // Without a complete list nothing can be called missing.
            match trouble {
                None => {
                    let all = lists.iter().flat_map(|one| &one.listed);
                    let is_whole = lists.iter().all(|one| one.is_whole);
                    vanished::reconcile(config, (store, queues), (all, is_whole), now_ms()).await
                }
                Some(seen) => Err(seen),
            }
        };
        let keys = async {
            keys::forget(config, &lists).await?;
            let Some(capped) = self.providers.capped(now_ms()).await? else { return Ok(None) };
            keys::reap(config, store, &capped).await.map(Some)
        };
        let (reaped, vanished, keys) = tokio::join!(reap, look, keys);
        let (reaped, vanished) = (reaped?, vanished?);
        let keys: Option<Value> = keys.map_err(|why: String| format!("kept keys: {why}"))?;
        // This needs a person, so the tick fails with this message.
        reaped.is_believable()?;
        let mut told = json!({"orphans": reaped.summary(), "vanished": vanished});
        if let Some(keys) = keys {
            told["keys"] = keys;
        }
        Ok(told)
    }

    async fn list(&self, providers: NamedProviders) -> Listings {
        let (mut lists, mut trouble) = (Vec::new(), None);
        for (name, provider) in providers {
            let listed = match provider.list(None).await {
                Ok(listed) => self.is_same_account(name, &*provider).await.map(|()| listed),
                Err(error) => Err(format!("the sandboxes could not be listed: {error}")),
            };
            match listed {
                Ok(mut listed) => {
                    let is_whole = listed.len() < provider.facts().listed_max;
                    // Another stack with this name may share the organisation: its sandboxes are not ours.
                    listed.retain(|sandbox| !sandbox.is_foreign(&self.config.stack_id));
                    lists.push(ProviderList { provider, listed, is_whole });
                }
                Err(seen) => {
                    tracing::warn!(event = "sweep.unlisted", provider = name, "{seen}");
                    trouble = Some(seen);
                }
            }
        }
        Listings { lists, trouble }
    }

    /// A list from another account says nothing about our records.
    async fn is_same_account(&self, name: &str, provider: &dyn Provider) -> Result<(), String> {
        match accounts::is_same(&self.store, name, provider).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                let seen = of_another_account(name);
                tracing::error!(
                    event = ACCOUNT_OTHER,
                    provider = name,
                    "{seen}: its list is not used until a person has checked this (docs/RUNBOOK.md)"
                );
                Err(format!("{seen} (docs/RUNBOOK.md, SweeperFails)"))
            }
            Err(error) => Err(format!("the account could not be compared: {error}")),
        }
    }
}
