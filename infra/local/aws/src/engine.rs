//! Start and stop of everything.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bobbin_local_breakpoint::{Breakpoints, own_only};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::account::Account;
use crate::clock::Clock;
use crate::cloudformation::CloudFormation;
use crate::dynamodb::{Dynamo, DynamoError};
use crate::endpoint::{self, Services};
use crate::folder::FolderLock;
use crate::lambda::{self, Functions, Launch, Traces};
use crate::limits;
use crate::log::LogSink;
use crate::scheduler::Scheduler;
use crate::secrets::Secrets;
use crate::serve::serve;
use crate::signature::{AccessKey, Keys};
use crate::sqs::Sqs;
use crate::store::Store;
use crate::tables::Tables;
use crate::template::{FunctionSettings, Plan, Template, TemplateError};

/// What the engine is started with.
#[derive(Clone)]
pub struct Settings {
    /// The template: the single source of the settings of queues, tables, functions and schedules.
    pub template: PathBuf,
    /// Values of the template's parameters by name; the others take their defaults.
    pub parameters: BTreeMap<String, String>,
    /// Values that secrets of the template have from the start, by logical id: they replace what stands there.
    pub secrets: BTreeMap<String, String>,
    /// Name of the stack; resource names start with it.
    pub stack_name: String,
    /// Region in ARNs and in the environment of functions.
    pub region: String,
    /// Where state is kept. One engine at a time may use it.
    pub state_dir: PathBuf,
    /// The executable of each function by its logical id.
    pub functions: BTreeMap<String, PathBuf>,
    /// Added to the environment of each function, over what the template says.
    pub extra_environment: BTreeMap<String, String>,
    /// A name or address of this machine by which callers reach the endpoint that do not share its loopback.
    pub also_named: Option<String>,
    /// Port of the function URL (of the first one by logical id, if there are several); 0 takes a free one.
    pub ingress_port: u16,
    /// Port of the endpoint; 0 takes a free one.
    pub endpoint_port: u16,
    /// The time that queues and schedules go by.
    pub clock: Clock,
    /// Receives what functions print.
    pub log: LogSink,
    /// Test control: holds calls of functions.
    pub breakpoints: Breakpoints,
}

/// Why the engine did not start; the text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The template or its parameters.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The state folder cannot be used.
    #[error("state folder {folder}: {reason}")]
    StateFolder {
        /// The folder.
        folder: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// A function has no executable, or one that cannot be used.
    #[error("function {logical_id}: {reason}")]
    Executable {
        /// The function in the template.
        logical_id: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// A port cannot be listened on.
    #[error("port {port} cannot be used ({error}); choose another, or 0 for a free one")]
    Port {
        /// The port that was asked for.
        port: u16,
        /// What the system said.
        error: io::Error,
    },
    /// A resource of the template was refused by its service.
    #[error("{resource} of the template could not be set up: {reason}")]
    Resource {
        /// The resource by its name.
        resource: String,
        /// What the service said.
        reason: String,
    },
}

/// A running engine.
pub struct Engine {
    account: Account,
    urls: BTreeMap<String, String>,
    outputs: BTreeMap<String, String>,
    references: BTreeMap<String, String>,
    unhonoured: Vec<String>,
    tables: Tables,
    functions: Arc<Functions>,
    tasks: TaskTracker,
    stopping: CancellationToken,
    /// Released when the engine is dropped, after everything else of it.
    _folder: FolderLock,
}

/// All twelve-digit accounts are equal here; the one that emulators commonly use.
const ACCOUNT_ID: &str = "000000000000";

impl Engine {
    /// Starts everything: reads the template, sets up what it declares, opens the ports, runs mappings and schedules.
    /// Whoever reaches the endpoint may call it, signed or not.
    ///
    /// # Errors
    ///
    /// [`Error`] says what stands in the way and what to do.
    pub async fn start(settings: Settings) -> Result<Self, Error> {
        Self::start_with(settings, None).await
    }

    /// The same, for calls of the services that are signed with these keys alone, and for test calls that say theirs.
    /// Functions have theirs in their environment.
    ///
    /// # Errors
    ///
    /// [`Error`] says what stands in the way and what to do.
    pub async fn start_signed(settings: Settings, keys: Keys) -> Result<Self, Error> {
        Self::start_with(settings, Some(keys)).await
    }

    async fn start_with(settings: Settings, keys: Option<Keys>) -> Result<Self, Error> {
        let template = Template::read(&settings.template, &settings.parameters)?;
        let state_dir = prepare_folder(&settings.state_dir)?;
        let folder = FolderLock::take(&state_dir).map_err(|error| Error::StateFolder {
            folder: state_dir.display().to_string(),
            reason: error.to_string(),
        })?;
        let has_looked = lambda::kill_leftovers(&state_dir).is_some();

        let endpoint_listener = listen(settings.endpoint_port).await?;
        let account = Account {
            id: ACCOUNT_ID.to_owned(),
            region: settings.region.clone(),
            endpoint: format!("http://{}", address(&endpoint_listener)?),
        };
        let (url_listeners, urls) = listen_for_urls(&template, settings.ingress_port).await?;
        let stack_id = stack_id(&state_dir, &settings.stack_name, &account)?;
        let plan = template.plan((&settings.stack_name, &stack_id), &account, &urls)?;
        let tasks = TaskTracker::new();
        let stopping = CancellationToken::new();
        // From here on tasks run: a start that fails must end them again.
        let guard = stopping.clone().drop_guard();
        let traces = Traces::start(&tasks, &stopping)
            .await
            .map_err(|error| Error::Port { port: 0, error })?;
        let daemon = traces.address;
        let launches = plan
            .functions
            .iter()
            .map(|function| {
                let key = keys.as_ref().map(|keys| &keys.functions);
                launch(function, daemon, &settings, &account, &state_dir, key)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let clock = settings.clock.clone();
        let unusable = |error: &dyn std::fmt::Display| Error::StateFolder {
            folder: state_dir.display().to_string(),
            reason: error.to_string(),
        };
        let store = Store::open(&state_dir.join("aws.sqlite")).map_err(|error| unusable(&error))?;
        let store = Arc::new(store);
        let sqs = Arc::new(Sqs::new(
            Arc::clone(&store),
            clock.clone(),
            account.clone(),
            stopping.clone(),
        ));
        let secrets = Secrets::new(Arc::clone(&store), clock.clone(), account.clone());
        let functions = Functions::new(launches, clock.clone(), &settings.log, &tasks, &stopping);
        let scheduler = Arc::new(Scheduler::new(
            Arc::clone(&store),
            clock.clone(),
            account.clone(),
            Arc::clone(&sqs),
            Arc::clone(&functions),
            stopping.clone(),
        ));
        let dynamo = Dynamo::start(state_dir.clone(), clock.clone(), &tasks, stopping.clone())
            .await
            .map_err(|error| unusable(&error))?;
        let dynamo = Arc::new(dynamo);
        deploy(&plan, &dynamo, &sqs, &secrets, &scheduler).await?;
        fill(&plan, &secrets, &settings.secrets)?;
        if has_looked {
            sqs.release_abandoned().map_err(|error| unusable(&error))?;
        }

        let cloudformation = CloudFormation {
            stack: settings.stack_name.clone(),
            id: stack_id,
            started_ms: clock.now_ms(),
            parameters: template.told_parameters(),
            outputs: plan.outputs.clone(),
        };
        let services = Arc::new(Services {
            control: keys.as_ref().map(|keys| keys.control.clone().into()),
            keys,
            region: account.region.clone(),
            cloudformation,
            clock: clock.clone(),
            dynamo: Arc::clone(&dynamo),
            sqs: Arc::clone(&sqs),
            secrets,
            scheduler: Arc::clone(&scheduler),
            functions: Arc::clone(&functions),
            traces,
            breakpoints: settings.breakpoints.clone(),
        });
        settings
            .breakpoints
            .set_invocations(Arc::clone(&functions) as _);
        let router = own_only(endpoint::router(services), settings.also_named.clone());
        let router = settings
            .breakpoints
            .before("aws", bobbin_local_breakpoint::peer, router);
        tasks.spawn(serve(endpoint_listener, router, stopping.clone()));
        for (logical_id, listener) in url_listeners {
            if let Some(function) = functions.by_logical_id(&logical_id) {
                let domain = address(&listener)?;
                let router = lambda::url_router(Arc::clone(function), clock.clone(), domain);
                tasks.spawn(serve(listener, router, stopping.clone()));
            }
        }
        for (logical_id, mapping) in &plan.mappings {
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
        tasks.spawn(scheduler.run());
        tasks.spawn(Arc::clone(&functions).end_idle());
        guard.disarm();
        Ok(Self {
            account,
            urls,
            outputs: plan.outputs,
            references: plan.references,
            unhonoured: plan.unhonoured,
            tables: Tables(dynamo),
            functions,
            tasks,
            stopping,
            _folder: folder,
        })
    }

    /// Address of all services, as for `AWS_ENDPOINT_URL`, without a slash at its end.
    pub fn endpoint(&self) -> &str {
        &self.account.endpoint
    }

    /// URL of a function by its logical id, with a slash at its end; `None` when it has none.
    pub fn function_url(&self, logical_id: &str) -> Option<String> {
        self.urls.get(logical_id).cloned()
    }

    /// Its tables, read within this program.
    pub fn tables(&self) -> Tables {
        self.tables.clone()
    }

    /// The template's outputs.
    pub fn outputs(&self) -> BTreeMap<String, String> {
        self.outputs.clone()
    }

    /// What `Ref` of a resource gives: a queue's URL, a table's name, a secret's ARN, a function's name.
    pub fn resource(&self, logical_id: &str) -> Option<String> {
        self.references.get(logical_id).cloned()
    }

    /// What of the template has no effect here, one line each, to be shown at start.
    pub fn unhonoured(&self) -> Vec<String> {
        self.unhonoured.clone()
    }

    /// Live processes of functions: logical id and process id.
    pub fn processes(&self) -> Vec<(String, u32)> {
        self.functions.processes()
    }

    /// Ends everything: kills the functions' processes, closes the ports, and returns when all is gone and the state
    /// folder can be used again.
    pub async fn stop(self) {
        self.stopping.cancel();
        self.functions.kill_all();
        self.tasks.close();
        let patience = Duration::from_millis(2 * limits::STOP_MS_MAX);
        if tokio::time::timeout(patience, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("some requests did not end in time; they end with the program");
        }
    }
}

impl Drop for Engine {
    /// An engine that is dropped without [`Engine::stop`] ends its processes as well, without waiting.
    fn drop(&mut self) {
        self.stopping.cancel();
        self.functions.kill_all();
    }
}

async fn deploy(
    plan: &Plan,
    dynamo: &Dynamo,
    sqs: &Sqs,
    secrets: &Secrets,
    scheduler: &Scheduler,
) -> Result<(), Error> {
    let refused = |resource: String, reason: &dyn std::fmt::Display| Error::Resource {
        resource,
        reason: reason.to_string(),
    };
    for table in &plan.tables {
        dynamo.deploy(table).await.map_err(|error: DynamoError| {
            refused(format!("table {}", table.create["TableName"]), &error)
        })?;
    }
    for queue in &plan.queues {
        sqs.deploy(&queue.name, &queue.attributes, &queue.tags)
            .map_err(|error| refused(format!("queue {}", queue.name), &error))?;
    }
    for (name, source) in &plan.secrets {
        secrets
            .deploy(name, source)
            .map_err(|error| refused(format!("secret {name}"), &error))?;
    }
    scheduler
        .deploy(&plan.groups, &plan.schedules)
        .map_err(|error| refused("a schedule".to_owned(), &error))
}

/// Puts the values that are there before any function runs.
fn fill(plan: &Plan, secrets: &Secrets, values: &BTreeMap<String, String>) -> Result<(), Error> {
    for (logical_id, value) in values {
        let refused = |reason: String| Error::Resource {
            resource: format!("secret {logical_id}"),
            reason,
        };
        let id = plan
            .references
            .get(logical_id)
            .ok_or_else(|| refused("the template has none".to_owned()))?;
        secrets
            .put(id, value)
            .map_err(|error| refused(error.to_string()))?;
    }
    Ok(())
}

fn launch(
    function: &FunctionSettings,
    daemon: SocketAddr,
    settings: &Settings,
    account: &Account,
    state_dir: &Path,
    key: Option<&AccessKey>,
) -> Result<Launch, Error> {
    let refuse = |reason: String| Error::Executable {
        logical_id: function.logical_id.clone(),
        reason,
    };
    let source = settings
        .functions
        .get(&function.logical_id)
        .ok_or_else(|| {
            refuse("the template has it, the settings name no executable for it".to_owned())
        })?;
    let folder = state_dir.join("functions").join(&function.logical_id);
    let executable = folder.join("bootstrap");
    place_executable(source, &folder, &executable).map_err(|error| {
        let source = source.display();
        refuse(format!(
            "{source} could not be made ready ({error}); build it first"
        ))
    })?;
    let mut environment = function.environment.clone();
    environment.extend(settings.extra_environment.clone());
    Ok(Launch {
        logical_id: function.logical_id.clone(),
        name: function.name.clone(),
        arn: account.arn("lambda", &format!("function:{}", function.name)),
        region: account.region.clone(),
        timeout: Duration::from_secs(function.timeout_seconds),
        memory_mb: function.memory_mb,
        daemon: function.is_traced.then_some(daemon),
        concurrency_max: function
            .concurrency_max
            .unwrap_or(limits::FUNCTION_CONCURRENCY_MAX),
        environment,
        key: key.cloned(),
        executable,
        endpoint: account.endpoint.clone(),
        state_dir: state_dir.to_owned(),
    })
}

/// Puts the executable under the name `bootstrap` in a folder of its own, so that a build that goes on meanwhile does
/// not pull it away. A hard link costs nothing; where the folder is on another disk it is copied.
fn place_executable(source: &Path, folder: &Path, executable: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    match fs::remove_file(executable) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::hard_link(source, executable).or_else(|_| fs::copy(source, executable).map(|_| ()))
}

/// The folder, made if it is not there, in the form that the marker of processes carries.
fn prepare_folder(folder: &Path) -> Result<PathBuf, Error> {
    fs::create_dir_all(folder)
        .and_then(|()| folder.canonicalize())
        .map_err(|error| Error::StateFolder {
            folder: folder.display().to_string(),
            reason: format!("{error}; choose a folder that can be written"),
        })
}

/// The stack's ARN. What is unique in it is made once and stays with the state, as a stack's own does with the stack.
fn stack_id(state_dir: &Path, name: &str, account: &Account) -> Result<String, Error> {
    let file = state_dir.join("stack-id");
    let kept = fs::read_to_string(&file).ok().filter(|id| !id.is_empty());
    let id = match kept {
        Some(id) => id,
        None => {
            let id = uuid::Uuid::new_v4().to_string();
            fs::write(&file, &id).map_err(|error| Error::StateFolder {
                folder: state_dir.display().to_string(),
                reason: format!("{error}; choose a folder that can be written"),
            })?;
            id
        }
    };
    Ok(account.arn("cloudformation", &format!("stack/{name}/{id}")))
}

type UrlListeners = Vec<(String, TcpListener)>;

async fn listen_for_urls(
    template: &Template,
    ingress_port: u16,
) -> Result<(UrlListeners, BTreeMap<String, String>), Error> {
    let mut listeners = Vec::new();
    let mut urls = BTreeMap::new();
    let mut port = ingress_port;
    for logical_id in template.functions_with_url() {
        let listener = listen(port).await?;
        port = 0;
        urls.insert(
            logical_id.clone(),
            format!("http://{}/", address(&listener)?),
        );
        listeners.push((logical_id, listener));
    }
    Ok((listeners, urls))
}

async fn listen(port: u16) -> Result<TcpListener, Error> {
    TcpListener::bind(("127.0.0.1", port))
        .await
        .map_err(|error| Error::Port { port, error })
}

fn address(listener: &TcpListener) -> Result<String, Error> {
    let address = listener
        .local_addr()
        .map_err(|error| Error::Port { port: 0, error })?;
    Ok(address.to_string())
}
