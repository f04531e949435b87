//! A prompt that real OpenCode answers in a sandbox on an SSH host: Debian's own sshd, the set-up script as operators
//! run it, and the scripted model.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bobbin_agent::models::{ModelKeys, ModelSettings};
use bobbin_agent::opencode::OpenCodeRuntime;
use bobbin_app::sandboxes::{RunContext, SandboxSettings, Sandboxes, WorkTarget};
use bobbin_core::base::ids::{AgentSessionId, Ms, PostRef, ThreadKey};
use bobbin_core::base::limits::{Limits, PollLimits};
use bobbin_core::base::names::{PostKind, PromptIds};
use bobbin_core::protocol::effect::{
    AgentEffect, Effect, Follow, KeptCard, SandboxEffect, Sending,
};
use bobbin_core::protocol::event::Event;
use bobbin_core::records::card::{Card, CardState};
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::run::{RunAnswer, RunEnd};
use bobbin_core::records::sandbox::SandboxState;
use bobbin_core::records::workspace::Workspace;
use bobbin_core::tenant::prices::ModelPrices;
use bobbin_local_daytona::opencode;
use bobbin_local_model::{MODEL_ID, Model};
use bobbin_sandbox::ssh::{AgentPort, SshSandboxes, SshSettings};

use self::host::{Host, key_pair, lacks};

#[path = "../../../tests/ssh/host.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod host;

const GENERATION: u32 = 1;
/// Longest time for one step of the test.
const STEP_MS_MAX: u64 = 90_000;

fn now_ms() -> Ms {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

/// What lies beside the sandbox: a clock, and nobody who wants anything.
struct Desk;

impl RunContext for Desk {
    fn now_ms(&self) -> Ms {
        now_ms()
    }

    fn visible_until_ms(&self) -> Ms {
        now_ms() + 3_600_000
    }

    async fn waiting(&self) -> u64 {
        0
    }

    async fn flags(&self, _: &ThreadKey) -> Option<ControlFlags> {
        Some(ControlFlags::default())
    }

    async fn show(&self, _: &ThreadKey, _: &PostKind, _: &PostRef, _: Card) -> Option<PostRef> {
        None
    }
}

struct Scene {
    sandboxes: Sandboxes,
    thread: ThreadKey,
}

impl Scene {
    async fn perform(&self, effect: Effect) -> Event {
        let sandbox = self.thread.sandbox();
        let target = WorkTarget {
            thread: &self.thread,
            sandbox: &sandbox,
            generation: GENERATION,
            workspace: &Workspace::Common,
        };
        let done = async {
            match &effect {
                Effect::Sandbox(effect) => {
                    let performed = self.sandboxes.perform_sandbox(&Desk, target, effect);
                    performed.await
                }
                Effect::Agent(effect) => {
                    let performed = self.sandboxes.perform_agent(&Desk, target, effect);
                    performed.await
                }
                other => panic!("{other:?} is none of a sandbox's"),
            }
        };
        tokio::time::timeout(Duration::from_millis(STEP_MS_MAX), done)
            .await
            .unwrap_or_else(|_| panic!("{effect:?} took too long"))
    }

    async fn sandbox(&self, effect: SandboxEffect) -> Event {
        self.perform(Effect::Sandbox(effect)).await
    }

    async fn serve(&self) {
        let served = self.sandbox(SandboxEffect::EnsureServer {
            is_new: false,
            restart: false,
            cap: None,
            within_ms: 60_000,
            watch: None,
        });
        assert_eq!(served.await, Event::Healthy);
    }

    async fn session(&self) -> AgentSessionId {
        let find = AgentEffect::FindAgentSession { known: None, since_ms: 0, agent: None };
        match self.perform(Effect::Agent(find)).await {
            Event::AgentSession { id } => id,
            other => panic!("no session: {other:?}"),
        }
    }

    async fn answered(&self, session: &AgentSessionId, turn: &str, text: &str) -> RunAnswer {
        let ids = PromptIds::mint(&self.thread, &turn.into(), now_ms());
        let model = format!("scripted/{MODEL_ID}");
        let sent = self.perform(Effect::Agent(AgentEffect::SendPrompt {
            turn: turn.into(),
            run_of: turn.into(),
            agent_session: session.clone(),
            ids: ids.clone(),
            text: text.to_owned(),
            model: model.clone(),
            agent: None,
            images: Vec::new(),
            sending: Sending::First { within_ms: None },
            limit: None,
        }));
        assert_eq!(sent.await, Event::Prompted);
        let follow = Follow {
            gives_way: false,
            seen: Default::default(),
            seen_at_ms: None,
            agent_session: session.clone(),
            message: ids.message.clone(),
            further: Vec::new(),
            turn: turn.into(),
            card: KeptCard {
                at: None,
                kind: PostKind::Card,
                state: CardState::Working,
                model,
                budget: None,
                shows_budget: false,
                set_up: None,
            },
            since_ms: now_ms(),
            asks: Vec::new(),
            cancel_known: false,
            steers: Some(Vec::new()),
            until_ms: now_ms() + STEP_MS_MAX,
            ends_ms: u64::MAX,
            messages_max: 200,
        };
        match self.perform(Effect::Agent(AgentEffect::Follow(follow))).await {
            Event::Finished(answer) => answer,
            other => panic!("not finished: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ssh_host_session_outlives_stop() {
    if let Some(why) = lacks() {
        eprintln!("SKIPPED: {why}");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let tools =
        opencode::install(&root.join(".bobbin/cache"), |step| eprintln!("{step}")).await.unwrap();
    let (key, public) = key_pair();
    let machine = Host::start("one", 2, &public);
    // Installed for all users of that machine.
    machine.as_root(&format!("mount --bind '{}' /usr/local/bin", tools.bin_dir.display()));
    let model = Model::start(0).await.unwrap();
    let provider = SshSandboxes::new(
        SshSettings {
            stack: "test".to_owned(),
            stack_id: "this-one".to_owned(),
            hosts: vec![machine.settings()],
            agent: AgentPort { port: 4096, variable: "OPENCODE_PORT".to_owned() },
        },
        &key,
    );
    let runtime = OpenCodeRuntime::new(&ModelSettings {
        model: format!("scripted/{MODEL_ID}"),
        models: Vec::new(),
        model_base_url: Some(model.base_url()),
        keys: ModelKeys::default(),
        prices: ModelPrices::new(),
    });
    let settings = SandboxSettings {
        stack: "test".to_owned(),
        stack_id: "this-one".to_owned(),
        project_config_of: Vec::new(),
        model_keys_inside: false,
        keys_of: None,
        nudge_url: String::new(),
        stack_key: "stack-key".to_owned(),
        files: Vec::new(),
        limits: Limits {
            poll: PollLimits { poll_ms: 200, ..PollLimits::DEFAULT },
            ..Limits::DEFAULT
        },
    };
    let sandboxes =
        Sandboxes::new(settings, Arc::new(provider.unwrap()), Arc::new(runtime.unwrap()));
    let scene =
        Scene { sandboxes: sandboxes.unwrap(), thread: ThreadKey::discord("1", "2").unwrap() };
    let running = Event::Observed(SandboxState::Running);

    let create = SandboxEffect::Create { snapshot: None, prebuild: None };
    assert_eq!(scene.sandbox(create).await, running);
    scene.serve().await;
    let session = scene.session().await;
    let answer = scene.answered(&session, "t1", "slow: 1 on it\nwrite: src/notes.txt hello").await;
    assert_eq!(answer.end, RunEnd::Completed);
    assert!(answer.text.contains("on it"), "{answer:?}");
    let notes = "cat /var/lib/bobbin/1/disk/*/project/src/notes.txt";
    assert_eq!(machine.as_root(notes).trim(), "hello");
    // A program that a server has just forked still bears its name, and so does a dead one that nobody has reaped.
    let servers = "ps -u bobbin-1 -o pid=,ppid=,stat=,comm= | \
        awk '$3 !~ /^Z/ && $4 == \"opencode\" { parent[$1] = $2 } \
        END { for (pid in parent) count += !(parent[pid] in parent); print count + 0 }'";
    assert_eq!(machine.as_root(servers).trim(), "1");

    let stopped = scene.sandbox(SandboxEffect::Stop).await;
    assert_eq!(stopped, Event::Observed(SandboxState::Stopped));
    assert_eq!(machine.as_root(servers).trim(), "0");
    assert_eq!(scene.sandbox(SandboxEffect::Start).await, running);
    scene.serve().await;
    assert_eq!(scene.session().await, session);
    let answer = scene.answered(&session, "t2", "run: cat src/notes.txt").await;
    assert!(answer.text.contains("hello"), "{answer:?}");

    let gone = scene.sandbox(SandboxEffect::Delete).await;
    assert_eq!(gone, Event::Observed(SandboxState::Gone));
    assert_eq!(machine.as_root("ls -A /var/lib/bobbin/1/disk"), "");
    model.stop().await;
}
