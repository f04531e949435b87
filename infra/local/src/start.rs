//! Starts everything in the order of dependencies.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bobbin_core::base::ids::Tenant;
use bobbin_core::tenant::repositories;
use bobbin_core::tenant::settings::Settings;
use bobbin_local_aws::{Clock, Engine, LogLine, Tables};
use bobbin_local_breakpoint::{Breakpoints, ControlKey};
use bobbin_local_chat::{ChatStartError, LocalChat};
use bobbin_local_daytona::{Confinement, LocalDaytona, StandIn, opencode};
use bobbin_local_forge::{ForgeSettings, LocalForge};
use bobbin_local_model::Model;
use bobbin_local_sandbox::disk::make_private;
use bobbin_local_sandbox::outbound::ReachablePorts;
use bobbin_local_sandbox::settings::RunSettings;
use serde_json::json;

use crate::STACK;
use crate::containers::{self, Containers, Relay};
use crate::deployment::Deployment;
use crate::failure::{SHOW_THE_LOG, START_AGAIN, engine_failed, failed};
use crate::forge_pane::LaptopForge;
use crate::functions;
use crate::ingress_proxy::IngressProxy;
use crate::inspector::StackInspector;
use crate::keys::StackKeys;
use crate::loopback;
use crate::nudge_gate::NudgeGate;
use crate::options::LaptopOptions;
use crate::parts::StartedParts;
use crate::platforms::{discord_keys, register_commands, slack_keys};
use crate::ready::{self, Ready};
use crate::real_services::RealServices;
use crate::shutdown::Shutdown;

/// Ports tried for the page: a bookmark stays valid after a restart.
const PAGE_PORTS: RangeInclusive<u16> = 4100..=4199;
/// Below this many megabytes of free memory a sandbox is stopped: an agent's server takes half of that.
const MEMORY_LEFT_MB: u64 = 1_024;
const REGION: &str = "us-east-1";
/// The only team and project of the Vercel-compatible provider.
const VERCEL_TEAM: &str = "team_local";
const VERCEL_PROJECT: &str = "prj_local";
/// Ready file for programs that know only the state folder, such as the operator's command line; present while the
/// stack runs.
pub const READY: &str = "ready.json";

/// What to print when everything is up.
pub struct StartedStack {
    /// Every address and key, as in the ready file.
    pub ready: Ready,
    /// Deviations from the defaults.
    pub notes: Vec<String>,
    /// The template's properties without effect here.
    pub unhonoured: Vec<String>,
}

/// The tables and the name of the stack's table, once they are up.
type StartedTable = Arc<OnceLock<(Tables, String)>>;

/// A start in progress.
struct StackStart<'a> {
    options: &'a LaptopOptions,
    root: &'a Path,
    state_dir: &'a Path,
    containers: Option<&'a Containers>,
    keys: StackKeys,
    breakpoints: Breakpoints,
    client: reqwest::Client,
    began: Instant,
    notes: Vec<String>,
    /// This machine's ports that sandboxes can reach.
    reachable: ReachablePorts,
}

/// Starts all parts; on an error, parts already running are left in `parts`.
///
/// # Errors
/// A sentence with advice.
pub async fn start(
    parts: &mut StartedParts,
    options: &LaptopOptions,
    shutdown: &Shutdown,
    root: &Path,
    state_dir: &Path,
) -> Result<StartedStack, String> {
    let real_services = RealServices::from_environment()?;
    let mut start = StackStart {
        options,
        root,
        state_dir,
        containers: options.containers.as_ref(),
        keys: StackKeys::load_or_create(state_dir)?,
        breakpoints: Breakpoints::default(),
        client: loopback::client()?,
        began: Instant::now(),
        notes: real_services.notes.clone(),
        reachable: ReachablePorts::default(),
    };
    println!("Starting Bobbin's laptop stack");
    if let Some(containers) = start.containers {
        containers.check().await?;
        start.notes.push(containers.exposed());
    }
    let mut tools = start.agent().await?;
    shutdown.check()?;
    let binaries = start.functions()?;
    if !binaries.is_empty() {
        let daemon = functions::daemon(root, state_dir)?;
        tools.extend(start.more_agents(&daemon).await?);
        tools.push(daemon);
    }
    shutdown.check()?;
    // Files that others may read have been built and installed by now.
    make_private();

    let model = start.model().await?;
    let model_api = model.base_url();
    start.let_reach(&model_api);
    parts.model = Some(model);
    let nudge_url = parts.nudge_gate.insert(NudgeGate::start().await?).url.clone();
    start.let_reach(&nudge_url);
    let provider = Arc::new(start.provider(tools.clone()).await?);
    parts.provider = Some(Arc::clone(&provider));
    let vercel = Arc::new(start.vercel(tools).await?);
    parts.vercel = Some(Arc::clone(&vercel));
    let forge = Arc::new(start.forge().await?);
    parts.forge = Some(Arc::clone(&forge));
    let table = StartedTable::default();
    let inspector = Arc::new(StackInspector {
        table: Arc::clone(&table),
        provider: Arc::clone(&provider),
        vercel: Arc::clone(&vercel),
        forge: LaptopForge(Arc::clone(&forge)),
    });
    let is_scripted = real_services.model_is_scripted();
    let chat = Arc::new(start.chat(inspector, is_scripted).await?);
    parts.chat = Some(Arc::clone(&chat));
    register_commands(&start.client, &chat, &start.keys).await?;
    shutdown.check()?;

    let mut ready = start.ready(&chat, &provider, &model_api)?;
    ready.vercel_api = vercel.api_url();
    known(&mut ready, &forge);
    let mut unhonoured = Vec::new();
    if !options.without_aws {
        let deployment =
            Deployment::new(&ready, options, &real_services, (&model_api, &nudge_url))?;
        let engine = start.engine(binaries, deployment).await?;
        unhonoured = engine.unhonoured();
        let engine = parts.engine.insert(engine);
        let proxy = start.proxy(engine, &chat, &table, &mut ready).await?;
        parts.ingress_proxy = Some(proxy);
        led_to_ingress(&forge, &ready.ingress)?;
        open_repositories(engine, &ready).await?;
        if let (Some(gate), Some(function_url)) =
            (&parts.nudge_gate, engine.function_url("Ingress"))
        {
            gate.open(&function_url);
        }
        healthy(&start.client, &ready.ingress).await?;
        let processes = engine.processes().into_iter();
        let named = processes.map(|(function, pid)| (function.to_lowercase(), pid));
        ready.pids.extend(named);
    }
    shutdown.check()?;
    start.relays(parts, &mut ready).await?;
    ready::write(&ready.whereabouts(), &state_dir.join(READY))?;
    if let Some(file) = &options.ready_file {
        ready::write(&ready, file)?;
    }
    start.print_step("everything is up");
    Ok(StartedStack { ready, notes: start.notes, unhonoured })
}

impl StackStart<'_> {
    /// Makes this address reachable for sandboxes.
    fn let_reach(&self, address: &str) {
        if let Some(port) = containers::port(address) {
            self.reachable.add(port);
        }
    }

    fn print_step(&self, line: &str) {
        println!("  [{:>5.1} s] {line}", self.began.elapsed().as_secs_f64());
    }

    /// Containers' name for this machine, if they are let in.
    fn also_named(&self) -> Option<String> {
        self.containers.map(|it| it.host.clone())
    }

    /// Folders with agents' programs; installs OpenCode if none is named.
    async fn agent(&mut self) -> Result<Vec<PathBuf>, String> {
        if let Some(folders) = std::env::var_os("BOBBIN_AGENT_DIR") {
            return Ok(std::env::split_paths(&folders).collect());
        }
        let cache = self.root.join(".bobbin/cache");
        let opencode = opencode::install(&cache, |line| self.print_step(line))
            .await
            .map_err(|e| failed("The agent could not be fetched", &e, "npm fetches OpenCode: check the network and npm, or set BOBBIN_AGENT_DIR to a folder with a program `opencode`."))?;
        self.notes.extend(opencode.warnings.iter().cloned());
        Ok(vec![opencode.bin_dir])
    }

    /// Folders with the further agents, which the daemon fetches once.
    async fn more_agents(&self, daemon: &Path) -> Result<Vec<PathBuf>, String> {
        let agents = &self.options.agents;
        if agents.is_empty() {
            return Ok(Vec::new());
        }
        self.print_step(&format!(
            "agents: {} (fetched once, some hundred megabytes)",
            agents.join(", ")
        ));
        let folder = self.root.join(".bobbin/cache/agents");
        functions::fetch_agents(daemon, agents, &folder).await
    }

    /// The functions' programs; empty without AWS.
    fn functions(&self) -> Result<BTreeMap<String, PathBuf>, String> {
        if self.options.without_aws {
            return Ok(BTreeMap::new());
        }
        functions::binaries(self.root)
    }

    async fn model(&self) -> Result<Model, String> {
        Model::start_keyed(0, self.control_key())
            .await
            .map_err(|e| failed("The scripted model could not be started", &e, START_AGAIN))
    }

    fn control_key(&self) -> ControlKey {
        ControlKey::from(self.keys.control_key.clone())
    }

    /// Settings of this machine for both providers.
    fn run_settings(&self, own: RunSettings, tools: Vec<PathBuf>) -> Result<RunSettings, String> {
        Ok(RunSettings {
            stand_ins: stand_ins()?,
            tools,
            reachable: self.reachable.clone(),
            memory_left_mb: self.options.memory_left_mb.unwrap_or(MEMORY_LEFT_MB),
            git_mirror: std::env::var_os("BOBBIN_GIT_MIRROR").map(PathBuf::from),
            breakpoints: self.breakpoints.clone(),
            also_on: self.containers.and_then(|it| it.address),
            also_named: self.also_named(),
            ..own
        })
    }

    async fn provider(&mut self, tools: Vec<PathBuf>) -> Result<LocalDaytona, String> {
        let mut settings = bobbin_local_daytona::LocalDaytonaSettings::new(
            self.state_dir.join("daytona"),
            self.keys.daytona_api_key.clone(),
        );
        settings.run = self.run_settings(settings.run, tools)?;
        let provider = LocalDaytona::start(settings)
            .await
            .map_err(|e| failed("The sandboxes could not be started", &e, START_AGAIN))?;
        match provider.confinement() {
            Confinement::Bubblewrap => {}
            Confinement::SharedNetwork { why } => self.notes.push(format!(
                "sandboxes share this machine's network ({why}): the agent's programs can reach everything that listens here, use the parts of this stack that need no key, and read the model keys"
            )),
            Confinement::None { why } => self.notes.push(format!(
                "sandboxes are NOT confined ({why}): the agent's programs run as you"
            )),
        }
        Ok(provider)
    }

    /// The second provider. Confinement is reported by the first one: it is the same machine.
    async fn vercel(
        &self,
        tools: Vec<PathBuf>,
    ) -> Result<bobbin_local_vercel::LocalVercel, String> {
        let mut settings = bobbin_local_vercel::LocalVercelSettings::new(
            self.state_dir.join("vercel"),
            self.keys.vercel_token.clone(),
            VERCEL_TEAM.to_owned(),
            VERCEL_PROJECT.to_owned(),
        );
        settings.run = self.run_settings(settings.run, tools)?;
        bobbin_local_vercel::LocalVercel::start(settings)
            .await
            .map_err(|e| failed("The sandboxes could not be started", &e, START_AGAIN))
    }

    /// The forge, with an organisation that both chats' tenants are bound to.
    async fn forge(&self) -> Result<LocalForge, String> {
        let mut settings = ForgeSettings::new(self.state_dir.join("forge"), self.control_key());
        settings.breakpoints = self.breakpoints.clone();
        LocalForge::start(settings)
            .await
            .map_err(|e| failed("The forge could not be started", &e, START_AGAIN))
    }

    /// The chat page, on the requested port or the first free one, so that its address survives a restart.
    async fn chat(
        &self,
        inspector: Arc<StackInspector>,
        model_is_scripted: bool,
    ) -> Result<LocalChat, String> {
        let wanted = match self.options.port {
            Some(port) => vec![port],
            None => PAGE_PORTS.chain([0]).collect(),
        };
        let mut started = Err("no port was tried".to_owned());
        for port in wanted {
            let inspector = Arc::clone(&inspector);
            match LocalChat::start(self.chat_settings(port, inspector, model_is_scripted)?).await {
                Err(ChatStartError::Io { source, .. }) if source.kind() == ErrorKind::AddrInUse => {
                    started = Err(format!("port {port} of this machine is taken"));
                }
                Ok(chat) => return Ok(chat),
                Err(other) => {
                    started = Err(other.to_string());
                    break;
                }
            }
        }
        started.map_err(|why| failed("The chat page could not be started", &why, "--port names another port (0 chooses a free one); --fresh starts with an empty state folder, --state-dir with another one."))
    }

    fn chat_settings(
        &self,
        port: u16,
        inspector: Arc<StackInspector>,
        model_is_scripted: bool,
    ) -> Result<bobbin_local_chat::LocalChatSettings, String> {
        Ok(bobbin_local_chat::LocalChatSettings {
            state_dir: self.state_dir.join("chat"),
            port,
            model_is_scripted,
            control_key: self.control_key(),
            also_named: self.also_named(),
            ingress: None,
            ingress_answer_ms: ingress_answer_ms()?,
            discord: discord_keys(&self.keys),
            slack: slack_keys(self.root, &self.keys)?,
            inspector,
            breakpoints: self.breakpoints.clone(),
        })
    }

    /// Addresses of everything that is up before AWS.
    fn ready(
        &self,
        chat: &LocalChat,
        provider: &LocalDaytona,
        model_api: &str,
    ) -> Result<Ready, String> {
        let (keys, seeds) = (&self.keys, chat.seeds());
        Ok(Ready {
            stack: STACK.to_owned(),
            console: chat.page(),
            aws_access_key_id: keys.aws_access_key_id.clone(),
            aws_secret_access_key: keys.aws_secret_access_key.clone(),
            control_key: keys.control_key.clone(),
            daytona_api: provider.api_url(),
            daytona_api_key: keys.daytona_api_key.clone(),
            vercel_token: keys.vercel_token.clone(),
            vercel_team_id: VERCEL_TEAM.to_owned(),
            vercel_project_id: VERCEL_PROJECT.to_owned(),
            discord_api: chat.discord_api(),
            slack_api: chat.slack_api(),
            model_api: model_api.to_owned(),
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
        })
    }

    async fn engine(
        &self,
        functions: BTreeMap<String, PathBuf>,
        deployment: Deployment,
    ) -> Result<Engine, String> {
        let settings = bobbin_local_aws::EngineSettings {
            template: self.root.join("template.yaml"),
            parameters: deployment.parameters,
            secrets: deployment.secrets,
            stack_name: STACK.to_owned(),
            region: REGION.to_owned(),
            state_dir: self.state_dir.join("aws"),
            functions,
            extra_environment: BTreeMap::from([("RUST_BACKTRACE".to_owned(), "1".to_owned())]),
            ingress_port: 0,
            endpoint_port: 0,
            also_named: self.also_named(),
            clock: Clock::system(),
            breakpoints: self.breakpoints.clone(),
            log: Arc::new(
                |line: LogLine| tracing::info!(target: "functions", function = %line.function, "{}", line.text),
            ),
        };
        let started = Engine::start_signed(settings, self.keys.aws()).await;
        started.map_err(|e| engine_failed(&e))
    }

    /// The ingress address, once AWS is up; also fills in what AWS created.
    async fn proxy(
        &self,
        engine: &Engine,
        chat: &Arc<LocalChat>,
        table: &StartedTable,
        ready: &mut Ready,
    ) -> Result<IngressProxy, String> {
        let function_url = engine
            .function_url("Ingress")
            .ok_or("template.yaml gives the function Ingress no FunctionUrlConfig")?;
        let resource = |id: &str| {
            engine.resource(id).ok_or_else(|| format!("template.yaml has no resource {id}"))
        };
        ready.table = resource("Table")?;
        ready.messages_queue_url = resource("Messages")?;
        ready.control_queue_url = resource("Control")?;
        ready.aws_endpoint = engine.endpoint().to_owned();
        // For agents that work in another sandbox than their own; access needs a bearer.
        ready.tools = engine
            .outputs()
            .get("ToolsAddress")
            .map(|address| address.trim_end_matches('/').to_owned())
            .unwrap_or_default();
        self.let_reach(&ready.tools);
        // The first tables stay; there is one engine.
        let _ = table.set((engine.tables(), ready.table.clone()));
        let proxy = IngressProxy::start(&function_url, Arc::clone(chat)).await?;
        ready.ingress = proxy.address.clone();
        chat.set_ingress(proxy.address.clone());
        Ok(proxy)
    }

    /// Lets containers reach what only listens on loopback; the provider listens for them itself.
    async fn relays(&self, parts: &mut StartedParts, ready: &mut Ready) -> Result<(), String> {
        let Some(containers) = self.containers else {
            return Ok(());
        };
        ready.container_host = Some(containers.host.clone());
        let ports = [&ready.console, &ready.aws_endpoint].map(|at| containers::port(at));
        for (address, port) in
            ports.into_iter().filter_map(|port| Some((containers.address?, port?)))
        {
            parts.relays.push(Relay::start(address, port).await?);
        }
        Ok(())
    }
}

/// The first request also starts the function's first process, so that errors show now rather than at the first task.
async fn healthy(client: &reqwest::Client, ingress: &str) -> Result<(), String> {
    let sent = client.get(format!("{ingress}/health")).send().await.map_err(|e| {
        let why = e.without_url();
        failed("The ingress does not answer", &why, SHOW_THE_LOG)
    })?;
    if sent.status().is_success() {
        return Ok(());
    }
    Err(failed("The ingress is not healthy", &sent.status(), SHOW_THE_LOG))
}

/// Time limit that a test may set if it is not about the platforms' three seconds: a busy machine may need longer.
const INGRESS_ANSWER_MS: &str = "BOBBIN_CHAT_ANSWER_MS";

/// The platforms' time limit for a first answer.
fn ingress_answer_ms() -> Result<u64, String> {
    match std::env::var(INGRESS_ANSWER_MS) {
        Ok(ms) => ms.parse().map_err(|_| format!("{INGRESS_ANSWER_MS} is not a number: {ms}")),
        Err(_) => Ok(bobbin_local_chat::INGRESS_ANSWER_MS_MAX),
    }
}

/// Hosts that something on this machine stands in for, by the file that the environment names.
fn stand_ins() -> Result<Vec<StandIn>, String> {
    let Some(file) = std::env::var_os("BOBBIN_STAND_INS") else { return Ok(Vec::new()) };
    let what = "BOBBIN_STAND_INS cannot be read";
    let text = std::fs::read(file).map_err(|e| failed(what, &e, START_AGAIN))?;
    serde_json::from_slice(&text).map_err(|e| failed(what, &e, START_AGAIN))
}

/// Opens the repositories of the laptop's own forge to both chats, where nobody has changed settings yet.
async fn open_repositories(engine: &Engine, ready: &Ready) -> Result<(), String> {
    let mut settings = Settings { version: 1, ..Settings::default() };
    settings.repositories.open(None, repositories::ALL.to_owned());
    let text = settings.encode().map_err(|error| error.to_string())?;
    for tenant in [Tenant::discord(&ready.discord_guild_id), Tenant::slack(&ready.slack_team_id)] {
        let item = json!({
            "thread": {"S": format!("tenant:{tenant}")},
            "item": {"S": "settings"},
            "settings": {"S": text},
            "version": {"N": "1"},
        });
        let put = engine.tables().put_new(&ready.table, &item).await;
        put.map_err(|e| failed("The chats' settings could not be written", &e, START_AGAIN))?;
    }
    Ok(())
}

/// Ingress takes the forge's webhooks, and the people who have signed in there.
fn led_to_ingress(forge: &LocalForge, ingress: &str) -> Result<(), String> {
    let webhook = format!("{ingress}/github/webhooks");
    let callback = format!("{ingress}/github/signed-in");
    forge
        .set_app_addresses(Some(webhook), vec![callback], None)
        .map_err(|e| failed("The forge does not take the ingress's address", &e, START_AGAIN))
}

/// Notes the forge's addresses and keys.
fn known(ready: &mut Ready, forge: &LocalForge) {
    let identity = forge.identity();
    (ready.github_api, ready.github_git) = (forge.api(), forge.git());
    ready.github_app_id = identity.app_id.to_string();
    ready.github_client_id = identity.client_id;
    ready.github_client_secret = identity.client_secret;
    ready.github_private_key = identity.private_key;
    ready.github_webhook_secret = identity.webhook_secret;
    ready.github_owner = identity.organization;
    ready.github_user_token = identity.user_token;
}
