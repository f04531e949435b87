//! Starting everything in order, saying so, and ending it again.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bobbin_chat::discord;
use bobbin_local_aws::{Clock, Engine, FolderError, FolderLock, LogLine, TemplateError};
use bobbin_local_breakpoint::{Breakpoints, ControlKey};
use bobbin_local_chat::{Chat, DiscordKeys, SlackCommand, SlackKeys, SlackShortcut};
use bobbin_local_daytona::{Confinement, Provider, opencode};
use bobbin_local_model::Model;
use tokio::sync::watch;

use crate::STACK;
use crate::containers::{self, Relay};
use crate::deployment::Deployment;
use crate::functions;
use crate::ingress_proxy::IngressProxy;
use crate::inspector::StackInspector;
use crate::keys::Keys;
use crate::loopback;
use crate::options::Options;
use crate::ready::{self, Ready};
use crate::real_services::RealServices;

const REGION: &str = "us-east-1";
/// The ready file of whoever knows the state folder alone, as the operator's command line does; there while it runs.
const READY: &str = "ready.json";

/// Ctrl-C or SIGTERM came.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// Listens from now on.
    ///
    /// # Errors
    /// What the system said.
    pub fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut interrupt, mut terminate) = (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        );
        let (tell, told) = watch::channel(false);
        tokio::spawn(async move {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            tell.send_replace(true);
            tell.closed().await;
        });
        Ok(Self(told))
    }

    /// Waits until the signal comes.
    pub async fn wait(&self) {
        // An error means that nobody can tell any more, which is an end too.
        let _ = self.0.clone().wait_for(|ended| *ended).await;
    }

    fn check(&self) -> Result<(), String> {
        if *self.0.borrow() {
            Err("Stopped before everything was up.".to_owned())
        } else {
            Ok(())
        }
    }
}

/// A stack that is up, with everything that it started.
pub struct Stack {
    parts: Parts,
    ready: Ready,
    ready_file: PathBuf,
    notes: Vec<String>,
    /// What of the template has no effect here.
    unhonoured: Vec<String>,
    /// Held for as long as the stack runs: one stack a state folder.
    _lock: FolderLock,
}

#[derive(Default)]
struct Parts {
    model: Option<Model>,
    provider: Option<Arc<Provider>>,
    chat: Option<Arc<Chat>>,
    engine: Option<Engine>,
    ingress_proxy: Option<IngressProxy>,
    relays: Vec<Relay>,
}

/// What is to be said when everything is up.
struct Started {
    ready: Ready,
    notes: Vec<String>,
    unhonoured: Vec<String>,
}

impl Parts {
    /// Ends what runs, the newest first.
    async fn stop(self) {
        if let Some(ingress_proxy) = self.ingress_proxy {
            ingress_proxy.stop();
        }
        if let Some(engine) = self.engine {
            engine.stop().await;
        }
        if let Some(chat) = self.chat
            && let Some(chat) = Arc::into_inner(chat)
        {
            chat.stop().await;
        }
        if let Some(provider) = self.provider
            && let Some(provider) = Arc::into_inner(provider)
        {
            provider.stop().await;
        }
        if let Some(model) = self.model {
            model.stop().await;
        }
    }
}

impl Stack {
    /// Starts everything; on an error nothing is left running.
    ///
    /// # Errors
    /// A sentence that says what to do.
    pub async fn start(options: &Options, shutdown: Shutdown) -> Result<Self, String> {
        let root = project_root()?;
        let state_dir = options
            .state_dir
            .clone()
            .unwrap_or_else(|| root.join(".bobbin/state"));
        let lock = lock(&state_dir, options.fresh)?;
        let state_dir = state_dir
            .canonicalize()
            .map_err(|e| format!("{} cannot be used: {e}", state_dir.display()))?;
        let mut parts = Parts::default();
        match start_parts(&mut parts, options, &shutdown, &root, &state_dir).await {
            Ok(Started {
                ready,
                notes,
                unhonoured,
            }) => Ok(Self {
                parts,
                ready,
                ready_file: state_dir.join(READY),
                notes,
                unhonoured,
                _lock: lock,
            }),
            Err(message) => {
                parts.stop().await;
                Err(message)
            }
        }
    }

    /// Says where everything is.
    pub fn announce(&self, options: &Options) {
        // A terminal is read by its person alone; what else takes in what is printed may be shown around.
        let (page, how) = if std::io::stdout().is_terminal() {
            let key = &self.ready.control_key;
            (bobbin_local_chat::login_url(&self.ready.console, key), "")
        } else {
            (
                self.ready.console.clone(),
                "/?key=KEY with control_key of keys.json in the state folder",
            )
        };
        println!("\n  Chat page   {page}{how}");
        if !options.without_aws {
            println!("  Ingress     {}", self.ready.ingress);
            println!("  AWS         {}", self.ready.aws_endpoint);
        }
        let unhonoured = self.unhonoured.len();
        let (listed, counted) = match (unhonoured, options.unhonoured) {
            (0, _) => (None, None),
            (_, true) => (Some(&self.unhonoured), None),
            (_, false) => (
                None,
                Some(format!(
                    "{unhonoured} settings of template.yaml have no effect on a laptop (alarms, roles, encryption and the like); --unhonoured lists them"
                )),
            ),
        };
        for (index, note) in self.notes.iter().chain(&counted).enumerate() {
            println!("{}  note: {note}", if index == 0 { "\n" } else { "" });
        }
        if let Some(listed) = listed {
            println!("\n  Of template.yaml, this has no effect here:");
            for line in listed {
                println!("    {line}");
            }
        }
        println!(
            "\nOpen the chat page and type /sandbox in #general, or mention @bobbin on the Slack side. Ctrl-C stops everything."
        );
    }

    /// Ends what was started, the newest first.
    pub async fn stop(self) {
        // A file that is left behind, as after a kill, names addresses at which nothing answers.
        let _ = fs::remove_file(&self.ready_file);
        self.parts.stop().await;
    }
}

async fn start_parts(
    parts: &mut Parts,
    options: &Options,
    shutdown: &Shutdown,
    root: &Path,
    state_dir: &Path,
) -> Result<Started, String> {
    let real_services = RealServices::from_environment()?;
    let keys = Keys::load_or_create(state_dir)?;
    let mut notes = real_services.notes.clone();
    let began = Instant::now();
    println!("Starting Bobbin's laptop stack");
    let containers = options.containers.as_ref();
    if let Some(containers) = containers {
        containers.check().await?;
        notes.push(containers.exposed());
    }

    let tools = match std::env::var_os("BOBBIN_AGENT_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => {
            let cache = root.join(".bobbin/cache");
            let opencode = opencode::install(&cache, |line| print_step(began, line))
                .await
                .map_err(|e| failed("The agent could not be got", &e, "OpenCode comes by npm: check the network and that npm works, or set BOBBIN_AGENT_DIR to a folder that holds a program `opencode`."))?;
            notes.extend(opencode.warnings.iter().cloned());
            opencode.bin_dir
        }
    };
    shutdown.check()?;

    let binaries = if options.without_aws {
        BTreeMap::new()
    } else {
        print_step(
            began,
            if options.no_build {
                "functions: using the binaries that are there"
            } else {
                "functions: building (the first time takes minutes)"
            },
        );
        functions::binaries(root, options.no_build).await?
    };
    shutdown.check()?;

    let control_key = ControlKey::from(keys.control_key.clone());
    let model = Model::start_keyed(0, control_key.clone())
        .await
        .map_err(|e| failed("The scripted model could not be started", &e, START_AGAIN))?;
    let model_api = model.base_url();
    parts.model = Some(model);

    let mut settings = bobbin_local_daytona::Settings::new(
        state_dir.join("daytona"),
        keys.daytona_api_key.clone(),
    );
    settings.tools = vec![tools];
    settings.reachable = containers::port(&model_api).into_iter().collect();
    settings.git_mirror = std::env::var_os("BOBBIN_GIT_MIRROR").map(PathBuf::from);
    let breakpoints = Breakpoints::default();
    settings.breakpoints = breakpoints.clone();
    settings.also_on = containers.and_then(|it| it.address);
    settings.also_named = containers.map(|it| it.host.clone());
    let provider = Provider::start(settings)
        .await
        .map_err(|e| failed("The sandboxes could not be started", &e, START_AGAIN))?;
    let provider = Arc::new(provider);
    match provider.confinement() {
        Confinement::Bubblewrap => {}
        Confinement::SharedNetwork { why } => notes.push(format!(
            "sandboxes share this machine's network ({why}): what the agent runs reaches what listens here, and of this stack what needs no key, and it can read the model keys"
        )),
        Confinement::None { why } => notes.push(format!(
            "sandboxes are NOT confined ({why}): what the agent runs, runs as you"
        )),
    }
    parts.provider = Some(Arc::clone(&provider));

    let table = Arc::new(OnceLock::new());
    let client = loopback::client()?;
    let inspector = Arc::new(StackInspector {
        table: Arc::clone(&table),
        provider: Arc::clone(&provider),
    });
    let chat = Chat::start(bobbin_local_chat::Settings {
        state_dir: state_dir.join("chat"),
        port: options.port,
        control_key,
        also_named: containers.map(|it| it.host.clone()),
        ingress: None,
        discord: DiscordKeys {
            application_id: keys.discord_application_id.clone(),
            seed: keys.discord_seed.clone(),
            bot_token: keys.discord_bot_token.clone(),
        },
        slack: slack_keys(root, &keys)?,
        inspector,
        breakpoints: breakpoints.clone(),
    })
    .await
    .map_err(|e| failed("The chat page could not be started", &e, "--port names another port (0 takes a free one); --fresh starts with an empty state folder, --state-dir with another one."))?;
    let chat = Arc::new(chat);
    parts.chat = Some(Arc::clone(&chat));
    register_commands(&client, &chat, &keys).await?;
    shutdown.check()?;

    let seeds = chat.seeds();
    let mut ready = Ready {
        stack: STACK.to_owned(),
        console: chat.page(),
        aws_access_key_id: keys.aws_access_key_id.clone(),
        aws_secret_access_key: keys.aws_secret_access_key.clone(),
        control_key: keys.control_key.clone(),
        daytona_api: provider.api_url(),
        daytona_api_key: keys.daytona_api_key.clone(),
        discord_api: chat.discord_api(),
        slack_api: chat.slack_api(),
        model_api: model_api.clone(),
        discord_public_key: keys.discord_public_key()?,
        discord_private_key: keys.discord_seed.clone(),
        slack_signing_secret: keys.slack_signing_secret.clone(),
        slack_bot_token: keys.slack_bot_token.clone(),
        discord_bot_token: keys.discord_bot_token.clone(),
        discord_application_id: keys.discord_application_id.clone(),
        discord_guild_id: seeds.guild_id.clone(),
        discord_channel_id: seeds.channel_id.clone(),
        discord_user_id: seeds.user_id.clone(),
        slack_team_id: seeds.team_id.clone(),
        slack_channel_id: seeds.slack_channel_id.clone(),
        slack_user_id: seeds.slack_user_id.clone(),
        slack_bot_user_id: keys.slack_bot_user_id.clone(),
        pids: BTreeMap::from([("bobbin-local".to_owned(), std::process::id())]),
        ..Ready::default()
    };
    let mut unhonoured = Vec::new();
    if !options.without_aws {
        let deployment = Deployment::new(&ready, options, &real_services, &model_api)?;
        let also_named = containers.map(|it| it.host.clone());
        let paths = (root, state_dir, also_named);
        let engine = start_engine(paths, &keys, binaries, deployment, breakpoints).await?;
        unhonoured = engine.unhonoured();
        let function_url = engine
            .function_url("Ingress")
            .ok_or("template.yaml gives the function Ingress no FunctionUrlConfig")?;
        let resource = |id: &str| {
            engine
                .resource(id)
                .ok_or_else(|| format!("template.yaml has no resource {id}"))
        };
        ready.table = resource("Table")?;
        ready.messages_queue_url = resource("Messages")?;
        ready.control_queue_url = resource("Control")?;
        ready.aws_endpoint = engine.endpoint().to_owned();
        let _ = table.set((engine.tables(), ready.table.clone()));
        let engine = parts.engine.insert(engine);
        let ingress_proxy = parts
            .ingress_proxy
            .insert(IngressProxy::start(&function_url, Arc::clone(&chat)).await?);
        ready.ingress = ingress_proxy.address.clone();
        chat.set_ingress(ingress_proxy.address.clone());
        healthy(&client, &ready.ingress).await?;
        ready.pids.extend(
            engine
                .processes()
                .into_iter()
                .map(|(function, pid)| (function.to_lowercase(), pid)),
        );
    }
    shutdown.check()?;
    if let Some(containers) = containers {
        ready.container_host = Some(containers.host.clone());
        // The provider listens there by itself.
        let ports = [&ready.console, &ready.aws_endpoint].map(|at| containers::port(at));
        for (address, port) in ports
            .into_iter()
            .filter_map(|port| Some((containers.address?, port?)))
        {
            parts.relays.push(Relay::start(address, port).await?);
        }
    }
    ready::write(&ready.whereabouts(), &state_dir.join(READY))?;
    if let Some(file) = &options.ready_file {
        ready::write(&ready, file)?;
    }
    print_step(began, "everything is up");
    Ok(Started {
        ready,
        notes,
        unhonoured,
    })
}

/// What to do where a port or the state folder is in the way.
const START_AGAIN: &str = "Start again; if it stays, --fresh starts with an empty state folder, --state-dir with another one.";

/// A step that failed, why, and what to do.
fn failed(step: &str, why: &impl std::fmt::Display, advice: &str) -> String {
    format!("{step}: {why}.\n{advice}")
}

fn engine_failed(why: &bobbin_local_aws::Error) -> String {
    let advice = match why {
        bobbin_local_aws::Error::Template(TemplateError::Parameter(..)) => {
            "Correct it where it was given: in --parameters, or in the environment that names a real service."
        }
        bobbin_local_aws::Error::Template(_) => {
            "git diff template.yaml shows what was changed since it was right."
        }
        bobbin_local_aws::Error::Executable { .. } => {
            "Start without --no-build, so that the functions are built."
        }
        _ => START_AGAIN,
    };
    failed("AWS could not be started", why, advice)
}

/// The first request also starts the function's first process: what is wrong with it shows now, not at the first task.
async fn healthy(client: &reqwest::Client, ingress: &str) -> Result<(), String> {
    let sent = client
        .get(format!("{ingress}/health"))
        .send()
        .await
        .map_err(|e| {
            let why = e.without_url();
            failed("The ingress does not answer", &why, HOW_TO_LOOK_INTO_IT)
        })?;
    if sent.status().is_success() {
        return Ok(());
    }
    Err(failed(
        "The ingress is not healthy",
        &sent.status(),
        HOW_TO_LOOK_INTO_IT,
    ))
}

/// How a function that does not start is looked into.
const HOW_TO_LOOK_INTO_IT: &str = "Start again with BOBBIN_LOG=info, which shows what the functions print: the line with start.refused says what is wrong.";

async fn start_engine(
    (root, state_dir, also_named): (&Path, &Path, Option<String>),
    keys: &Keys,
    functions: BTreeMap<String, PathBuf>,
    deployment: Deployment,
    breakpoints: Breakpoints,
) -> Result<Engine, String> {
    let settings = bobbin_local_aws::Settings {
        template: root.join("template.yaml"),
        parameters: deployment.parameters,
        secrets: deployment.secrets,
        stack_name: STACK.to_owned(),
        region: REGION.to_owned(),
        state_dir: state_dir.join("aws"),
        functions,
        extra_environment: BTreeMap::from([("RUST_BACKTRACE".to_owned(), "1".to_owned())]),
        ingress_port: 0,
        endpoint_port: 0,
        also_named,
        clock: Clock::system(),
        breakpoints,
        log: Arc::new(
            |line: LogLine| tracing::info!(target: "functions", function = %line.function, "{}", line.text),
        ),
    };
    let started = Engine::start_signed(settings, keys.aws()).await;
    started.map_err(|e| engine_failed(&e))
}

/// The Slack app as its manifest declares it.
fn slack_keys(root: &Path, keys: &Keys) -> Result<SlackKeys, String> {
    let file = root.join("infra/slack-manifest.json");
    let text =
        fs::read_to_string(&file).map_err(|e| format!("{} cannot be read: {e}", file.display()))?;
    let manifest: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| format!("{} is not JSON: {e}", file.display()))?;
    let list = |name: &str| {
        manifest["features"][name]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let word =
        |value: &serde_json::Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let scopes = manifest["oauth_config"]["scopes"]["bot"].as_array();
    Ok(SlackKeys {
        scopes: scopes
            .into_iter()
            .flatten()
            .filter_map(|scope| scope.as_str().map(str::to_owned))
            .collect(),
        signing_secret: keys.slack_signing_secret.clone(),
        bot_token: keys.slack_bot_token.clone(),
        bot_user_id: keys.slack_bot_user_id.clone(),
        app_id: keys.slack_app_id.clone(),
        shortcuts: list("shortcuts")
            .iter()
            .filter(|shortcut| shortcut["type"] == "message")
            .map(|shortcut| SlackShortcut {
                callback_id: word(shortcut, "callback_id"),
                name: word(shortcut, "name"),
            })
            .collect(),
        commands: list("slash_commands")
            .iter()
            .map(|command| SlackCommand {
                command: word(command, "command"),
                description: word(command, "description"),
                usage_hint: word(command, "usage_hint"),
            })
            .collect(),
    })
}

/// The same set of commands that a deployment registers, at the local Discord.
async fn register_commands(
    client: &reqwest::Client,
    chat: &Chat,
    keys: &Keys,
) -> Result<(), String> {
    let address = format!(
        "{}/applications/{}/guilds/{}/commands",
        chat.discord_api(),
        keys.discord_application_id,
        chat.seeds().guild_id
    );
    let sent = client
        .put(address)
        .header("authorization", format!("Bot {}", keys.discord_bot_token))
        .json(&discord::commands::guild_commands())
        .send()
        .await;
    let answer = sent.map_err(|e| format!("the local Discord did not take the commands: {e}"))?;
    if answer.status().is_success() {
        return Ok(());
    }
    Err(format!(
        "the local Discord refused the commands: {}",
        answer.text().await.unwrap_or_default()
    ))
}

fn print_step(began: Instant, line: &str) {
    println!("  [{:>5.1} s] {line}", began.elapsed().as_secs_f64());
}

/// The checkout: the folder upwards from here that holds the template, else the one that this program was built in.
fn project_root() -> Result<PathBuf, String> {
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let here =
        std::env::current_dir().map_err(|e| format!("the current folder cannot be read: {e}"))?;
    let upwards = here.ancestors().map(Path::to_path_buf).chain([built_in]);
    upwards
        .into_iter()
        .find(|folder| {
            folder.join("template.yaml").is_file() && folder.join("infra/local").is_dir()
        })
        .and_then(|folder| folder.canonicalize().ok())
        .ok_or_else(|| {
            "template.yaml was not found: run this inside a checkout of Bobbin.".to_owned()
        })
}

/// Makes the state folder (empty if that is wanted) and takes its lock.
fn lock(state_dir: &Path, fresh: bool) -> Result<FolderLock, String> {
    let shown = state_dir.display();
    let lock = FolderLock::take(state_dir).map_err(|error| match error {
        FolderError::Taken => format!(
            "Another stack runs with the state folder {shown}. Stop it, or use --state-dir for a second one."
        ),
        FolderError::Unusable(_) => format!("the state folder {shown} cannot be used: {error}"),
    })?;
    if fresh {
        empty(state_dir).map_err(|e| format!("the state folder {shown} cannot be used: {e}"))?;
    }
    Ok(lock)
}

/// Removes everything but the lock's own file.
fn empty(state_dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(state_dir)?.flatten() {
        let path = entry.path();
        if path == state_dir.join(FolderLock::FILE) {
            continue;
        }
        if path.is_dir() {
            fs::remove_dir_all(&path)?;
        } else {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
