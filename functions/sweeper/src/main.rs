//! The sweeper: turns what is due into messages, every minute, and deletes sandboxes that belong to nobody. It decides
//! nothing, and it touches no sandbox of a live generation: those are stopped and deleted in their thread's own group.

mod orphans;
mod tick;
mod vanished;

use std::process::ExitCode;
use std::rc::Rc;

use bobbin_app::keyed::KeyedProviders;
use bobbin_cloud::aws::Aws;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::config::Config;
use bobbin_cloud::events::Raw;
use bobbin_cloud::metrics::Metrics;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::store::Store;
use bobbin_cloud::{startup, telemetry};
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use serde_json::{Value, json};

use crate::orphans::Reaped;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::start();
    let sweeper = match Sweeper::from_environment() {
        Ok(sweeper) => Rc::new(sweeper),
        Err(why) => return startup::refuse(&why).await,
    };
    // What is in the event says nothing: the schedule has come round.
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

/// Everything that the sweeper needs, made once a process.
struct Sweeper {
    config: Config,
    store: Store,
    queues: Queues,
    providers: KeyedProviders,
    metrics: Metrics,
}

impl Sweeper {
    /// From the function's environment.
    fn from_environment() -> Result<Self, String> {
        startup::in_lambda()?;
        let config = Config::from_environment()?;
        let aws = Aws::from_environment()?;
        Ok(Self {
            providers: KeyedProviders::new(&aws, &config)?,
            store: Store::new(&aws, &config.table),
            queues: Queues::new(&aws, &config),
            metrics: Metrics::new(&config.stack),
            config,
        })
    }

    /// One tick. Both of its halves are done, whatever becomes of the other; an error of any is one of the tick's.
    async fn sweep(&self) -> Result<Value, String> {
        let (due, around) = tokio::join!(
            tick::tick(&self.store, &self.queues, &self.metrics),
            self.around()
        );
        let (mut told, around) = (json!({"due": due?}), around?);
        if let (Some(all), Value::Object(around)) = (told.as_object_mut(), around) {
            all.extend(around);
        }
        Ok(told)
    }

    /// What the providers have, beside what the records say. One that does not answer keeps nobody from looking at the others;
    /// but whether a record's sandbox has vanished can be told by all lists together alone.
    async fn around(&self) -> Result<Value, String> {
        let Self {
            config,
            store,
            queues,
            metrics,
            ..
        } = self;
        let providers = self.providers.get(now_ms()).await?;
        if providers.is_empty() {
            // Not set up yet: nothing can be there, and nobody is to be woken.
            let missing = self.providers.key()?.missing();
            tracing::warn!(
                event = "provider.key.missing",
                "{missing} No sandbox is looked for."
            );
            return Ok(json!({"orphans": missing}));
        }
        let (mut lists, mut trouble, mut is_whole) = (Vec::new(), None, true);
        for (name, provider) in &providers {
            match provider.list(None).await {
                Ok(mut listed) => {
                    is_whole &= listed.len() < provider.listed_max();
                    // Another stack of this name may share the organisation: its sandboxes are none of ours.
                    listed.retain(|sandbox| !sandbox.is_foreign(&config.stack_id));
                    lists.push((provider, listed));
                }
                Err(error) => {
                    let seen = format!("the sandboxes could not be listed: {error}");
                    tracing::warn!(event = "sweep.unlisted", provider = name, "{seen}");
                    trouble = Some(seen);
                }
            }
        }
        let reap = async {
            let (mut reaped, mut trouble) = (Reaped::default(), None);
            for (provider, listed) in &lists {
                match orphans::reap(config, store, &***provider, metrics, listed).await {
                    Ok(some) => reaped = reaped.and(some),
                    Err(seen) => trouble = Some(seen),
                }
            }
            trouble.map_or(Ok(reaped), Err)
        };
        let look = async {
            // Of what is not listed it cannot be told what is missing.
            match trouble {
                None => {
                    let all = lists.iter().flat_map(|(_, listed)| listed);
                    vanished::reconcile(store, queues, &config.limits, (all, is_whole), now_ms())
                        .await
                }
                Some(seen) => Err(seen),
            }
        };
        let (reaped, vanished) = tokio::join!(reap, look);
        Ok(json!({"orphans": reaped?.told(), "vanished": vanished?}))
    }
}
