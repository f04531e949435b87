//! Starts and stops everything.

mod deployment;
mod error;
mod ports;
mod settings;
mod state;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bobbin_local_breakpoint::{FolderLock, own_only};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::account::AwsAccount;
use crate::cloudformation::CloudFormation;
use crate::dynamodb::Dynamo;
use crate::endpoint::{self, Services};
use crate::kms::Kms;
use crate::lambda::{self, FunctionUrl, Functions, Traces};
use crate::limits;
use crate::scheduler::Scheduler;
use crate::secrets::StackSecrets;
use crate::serve::serve;
use crate::signature::EngineKeys;
use crate::sqs::Sqs;
use crate::store::Database;
use crate::tables::Tables;
use crate::template::{Template, TemplatePlan};

pub use error::EngineError;
pub use settings::EngineSettings;

use deployment::{deploy, launches, put_secrets};
use ports::{UrlListeners, address, listen, listen_for_urls};
use state::{prepare_folder, stack_id};

/// A running engine; [`Engine::stop`] stops it and waits.
pub struct Engine {
    account: AwsAccount,
    urls: BTreeMap<String, String>,
    outputs: BTreeMap<String, String>,
    references: BTreeMap<String, String>,
    unhonoured: Vec<String>,
    tables: Tables,
    functions: Arc<Functions>,
    background: Background,
    /// Dropped last: releases the folder after everything else.
    _folder: FolderLock,
}

/// Any twelve digits would do; emulators commonly use these.
const ACCOUNT_ID: &str = "000000000000";

impl Engine {
    /// Starts everything: reads the template, sets up its resources, opens the ports, runs mappings and schedules.
    /// Anybody who can reach the endpoint may call it, signed or not.
    ///
    /// # Errors
    ///
    /// [`EngineError`], with advice.
    pub async fn start(settings: EngineSettings) -> Result<Self, EngineError> {
        Self::start_with(settings, None).await
    }

    /// Like [`Engine::start`], but accepts only requests signed with these keys, and test calls with theirs. Functions
    /// get their key through the environment.
    ///
    /// # Errors
    ///
    /// [`EngineError`], with advice.
    pub async fn start_signed(
        settings: EngineSettings,
        keys: EngineKeys,
    ) -> Result<Self, EngineError> {
        Self::start_with(settings, Some(keys)).await
    }

    async fn start_with(
        settings: EngineSettings,
        keys: Option<EngineKeys>,
    ) -> Result<Self, EngineError> {
        let template = Template::read(&settings.template, &settings.parameters)?;
        let state_dir = prepare_folder(&settings.state_dir)?;
        let unusable = |error: &dyn Display| EngineError::state_folder(&state_dir, &error);
        let folder = FolderLock::take(&state_dir).map_err(|error| unusable(&error))?;
        let leftovers = lambda::kill_leftovers(&state_dir);

        let listener = listen(settings.endpoint_port).await?;
        let account = AwsAccount {
            id: ACCOUNT_ID.to_owned(),
            region: settings.region.clone(),
            endpoint: format!("http://{}", address(&listener)?),
        };
        let (url_listeners, urls) = listen_for_urls(&template, settings.ingress_port).await?;
        let stack_id = stack_id(&state_dir, &settings.stack_name, &account)?;
        let plan = template.plan((&settings.stack_name, &stack_id), &account, &urls)?;
        let cloudformation = CloudFormation {
            stack: settings.stack_name.clone(),
            id: stack_id,
            started_ms: settings.clock.now_ms(),
            parameters: template.reported_parameters(),
            outputs: plan.outputs.clone(),
        };

        let background = Background::default();
        // Tasks run from here on: a failing start must end them.
        let guard = background.stopping.clone().drop_guard();
        let start = EngineStart {
            settings: &settings,
            account: &account,
            state_dir: &state_dir,
            plan: &plan,
            background: &background,
        };
        let services = start.services(keys, cloudformation).await?;
        deploy(&plan, &services).await?;
        put_secrets(&plan, &services.secrets, &settings.secrets)?;
        // Messages may be released only if no function of an earlier run can still be alive.
        if leftovers.is_some() {
            let released = services.sqs.release_abandoned();
            released.map_err(|error| unusable(&error))?;
        }
        let (dynamo, functions) = (services.dynamo.clone(), services.functions.clone());
        start.run(services, listener, url_listeners)?;
        guard.disarm();
        Ok(Self {
            account,
            urls,
            outputs: plan.outputs,
            references: plan.references,
            unhonoured: plan.unhonoured,
            tables: Tables(dynamo),
            functions,
            background,
            _folder: folder,
        })
    }

    /// Address of all services, as for `AWS_ENDPOINT_URL`, without a trailing slash.
    pub fn endpoint(&self) -> &str {
        &self.account.endpoint
    }

    /// URL of a function by its logical id, with a trailing slash; `None` if it has none.
    pub fn function_url(&self, logical_id: &str) -> Option<String> {
        self.urls.get(logical_id).cloned()
    }

    /// The tables, for reading in this process.
    pub fn tables(&self) -> Tables {
        self.tables.clone()
    }

    /// The template's outputs by name.
    pub fn outputs(&self) -> BTreeMap<String, String> {
        self.outputs.clone()
    }

    /// `Ref` of a resource: a queue's URL, a table's name, a secret's ARN, a function's name.
    pub fn resource(&self, logical_id: &str) -> Option<String> {
        self.references.get(logical_id).cloned()
    }

    /// The template's properties without effect here, one line each, to be shown at start.
    pub fn unhonoured(&self) -> Vec<String> {
        self.unhonoured.clone()
    }

    /// Live function processes: logical id and process id.
    pub fn processes(&self) -> Vec<(String, u32)> {
        self.functions.processes()
    }

    /// Stops everything: kills the functions' processes, closes the ports, and returns when all are gone and the state
    /// folder is free.
    pub async fn stop(self) {
        self.background.stopping.cancel();
        self.functions.kill_all();
        self.background.tasks.close();
        let limit = Duration::from_millis(2 * limits::STOP_MS_MAX);
        if tokio::time::timeout(limit, self.background.tasks.wait()).await.is_err() {
            tracing::warn!("some requests did not end in time; they end with the program");
        }
    }
}

impl Drop for Engine {
    /// Dropping an engine without [`Engine::stop`] ends its processes too, without waiting.
    fn drop(&mut self) {
        self.background.stopping.cancel();
        self.functions.kill_all();
    }
}

/// Background tasks of the engine.
#[derive(Clone, Default)]
struct Background {
    tasks: TaskTracker,
    stopping: CancellationToken,
}

/// Context of a start.
struct EngineStart<'a> {
    settings: &'a EngineSettings,
    account: &'a AwsAccount,
    state_dir: &'a Path,
    plan: &'a TemplatePlan,
    background: &'a Background,
}

impl EngineStart<'_> {
    /// Opens every service on its files; none answers yet.
    async fn services(
        &self,
        keys: Option<EngineKeys>,
        cloudformation: CloudFormation,
    ) -> Result<Services, EngineError> {
        let Self {
            settings, account, state_dir, background: Background { tasks, stopping }, ..
        } = self;
        let unusable = |error: &dyn Display| EngineError::state_folder(state_dir, &error);
        let traces = Traces::start(tasks, stopping)
            .await
            .map_err(|error| EngineError::Port { port: 0, error })?;
        let key = keys.as_ref().map(|keys| &keys.functions);
        let launches = launches(self.plan, settings, account, state_dir, traces.address, key)?;
        let clock = &settings.clock;
        let store =
            Database::open(&state_dir.join("aws.sqlite")).map_err(|error| unusable(&error))?;
        let store = Arc::new(store);
        let sqs = Arc::new(Sqs::new(
            Arc::clone(&store),
            clock.clone(),
            (*account).clone(),
            stopping.clone(),
        ));
        let functions = Functions::new(launches, clock.clone(), &settings.log, tasks, stopping);
        let scheduler = Scheduler::new(
            Arc::clone(&store),
            clock.clone(),
            (*account).clone(),
            Arc::clone(&sqs),
            Arc::clone(&functions),
            stopping.clone(),
        );
        let dynamo = Dynamo::start(state_dir, clock.clone(), tasks, stopping).await;
        Ok(Services {
            control: keys.as_ref().map(|keys| keys.control.clone().into()),
            keys,
            region: account.region.clone(),
            cloudformation,
            clock: clock.clone(),
            dynamo: Arc::new(dynamo.map_err(|error| unusable(&error))?),
            sqs,
            kms: Kms::new(Arc::clone(&store), clock.clone(), (*account).clone()),
            secrets: StackSecrets::new(store, clock.clone(), (*account).clone()),
            scheduler: Arc::new(scheduler),
            functions,
            traces,
            breakpoints: settings.breakpoints.clone(),
        })
    }

    /// Serves the ports, and runs mappings and schedules.
    fn run(
        &self,
        services: Services,
        listener: TcpListener,
        url_listeners: UrlListeners,
    ) -> Result<(), EngineError> {
        let Background { tasks, stopping } = self.background;
        let (sqs, functions) = (services.sqs.clone(), services.functions.clone());
        tasks.spawn(Arc::clone(&services.scheduler).run());
        tasks.spawn(Arc::clone(&functions).end_idle());
        let breakpoints = &self.settings.breakpoints;
        breakpoints.set_invocations(Arc::clone(&functions) as _);
        let router = endpoint::router(Arc::new(services));
        let router = own_only(router, self.settings.also_named.clone());
        let router = breakpoints.before("aws", bobbin_local_breakpoint::peer, router);
        tasks.spawn(serve(listener, router, stopping.clone()));
        for (logical_id, listener) in url_listeners {
            if let Some(function) = functions.by_logical_id(&logical_id) {
                let router = lambda::url_router(FunctionUrl {
                    function: Arc::clone(function),
                    clock: self.settings.clock.clone(),
                    domain: address(&listener)?,
                    also_named: self.settings.also_named.clone(),
                });
                tasks.spawn(serve(listener, router, stopping.clone()));
            }
        }
        for (logical_id, mapping) in &self.plan.mappings {
            if let Some(function) = functions.by_logical_id(logical_id) {
                tasks.spawn(lambda::run_mapping(
                    mapping.clone(),
                    Arc::clone(&sqs),
                    Arc::clone(function),
                    tasks.clone(),
                    stopping.clone(),
                ));
            }
        }
        Ok(())
    }
}
