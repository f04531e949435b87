//! Two threads in one sandbox, each in a git worktree of its own, served by one real OpenCode at the same time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bobbin_agent::{
    Agent, ConversationKey, Observation, Observe, Refresh, RunCursor, RunRef, RunState, RunStop,
    Runtime as _, Submission, server_http,
};
use bobbin_app::sandboxes::Workplace;
use bobbin_core::base::ids::{AgentSessionId, AskId, ThreadKey};
use bobbin_core::base::names::{PromptIds, sandbox_name, sandbox_password};
use bobbin_core::protocol::effect::{AgentEffect, Effect, Follow, SandboxEffect, Sending};
use bobbin_core::protocol::event::Event;
use bobbin_core::records::ask::{About, Choice};
use bobbin_core::records::message::Attachment;
use bobbin_core::records::run::{PromptState, RunEnd};
use bobbin_core::records::sandbox::SandboxState;
use bobbin_core::records::session::StrayRun;
use bobbin_core::records::workspace::Workspace;
use bobbin_http::Http;
use bobbin_sandbox::Provider as _;

use super::{
    FIRST, GENERATION, STACK, STACK_ID, STEP_MS_MAX, Scene, asked, at, clone, hand_out, models,
    now_ms, pixel, runtime, still_running, whole,
};

/// One look at what is waited for takes no longer.
const POLL: Duration = Duration::from_millis(250);
/// A worktree takes git a fraction of a second; a busy machine needs more.
const MAKE_MS_MAX: u64 = 30_000;

/// A thread with its workspace, as the one server of the sandbox is asked about it.
struct Worker {
    thread: ThreadKey,
    workspace: Workspace,
    agent: Arc<dyn Agent>,
    session: AgentSessionId,
}

impl Worker {
    async fn ask(&self, scene: &Scene, turn: &str, text: &str) -> PromptIds {
        let ids = PromptIds::mint(&self.thread, &turn.into(), now_ms());
        let prompt = Submission {
            turn: &turn.into(),
            nudge: None,
            ids: &ids,
            model: &scene.model_name,
            agent: None,
            system: "",
            text,
            images: &[],
            sending: Sending::First { within_ms: None },
        };
        self.agent.submit(&self.session, prompt).await.unwrap();
        ids
    }

    fn run(&self, ids: &PromptIds) -> Run<'_> {
        Run { worker: self, message: ids.message.clone(), cursor: RunCursor::default() }
    }

    fn folder(&self) -> PathBuf {
        PathBuf::from(self.workspace.directory().unwrap())
    }
}

/// A run of a worker's, as it is followed.
struct Run<'a> {
    worker: &'a Worker,
    message: String,
    cursor: RunCursor,
}

impl Run<'_> {
    async fn observe(&mut self, how: Observe) -> Observation<'_> {
        let Worker { agent, session, .. } = self.worker;
        let run = RunRef { session, message: &self.message, further: &[] };
        agent.observe(run, &mut self.cursor, how).await.unwrap()
    }

    /// Listens until this holds of it.
    async fn until(&mut self, what: &str, holds: impl Fn(&Observation<'_>) -> bool) {
        let bound = Instant::now() + Duration::from_millis(STEP_MS_MAX);
        while !holds(&self.observe(Observe::Listen { within: POLL }).await) {
            assert!(Instant::now() < bound, "waited too long for {what}");
        }
    }

    /// What has been told of it, without waiting for more.
    async fn told(&mut self) -> Observation<'_> {
        self.observe(Observe::Listen { within: Duration::ZERO }).await
    }

    /// How it stands on the agent's record.
    async fn state(&mut self) -> RunState {
        self.observe(Observe::Once).await.state.unwrap()
    }

    /// Looks at it until it has ended.
    async fn ended(&mut self) -> RunEnd {
        let bound = Instant::now() + Duration::from_millis(STEP_MS_MAX);
        loop {
            if let RunState::Done(answer) = self.state().await {
                return answer.end;
            }
            assert!(Instant::now() < bound, "the run never ended");
            tokio::time::sleep(POLL).await;
        }
    }

    async fn ask(&mut self) -> (AskId, About) {
        self.told().await.asks.remove(0)
    }

    async fn steps(&mut self) -> Vec<String> {
        self.told().await.told.steps(false).0.into_iter().map(|step| step.text).collect()
    }
}

/// A thread's first conversation.
const fn conversation(thread: &ThreadKey) -> ConversationKey<'_> {
    ConversationKey { thread, since_ms: 0 }
}

/// The server of the scene's sandbox, as whoever has its password reaches it.
pub(super) async fn server(scene: &Scene) -> (Http, bobbin_core::base::endpoint::Endpoint, String) {
    let name = sandbox_name(STACK, &scene.sandbox, GENERATION);
    let sandboxes = at(&scene.provider, STACK, STACK_ID);
    let runtime = runtime(&models(&scene.model));
    let endpoint = sandboxes.endpoint(&name, runtime.facts().port).await.unwrap();
    let http = server_http(sandboxes.facts().base).unwrap();
    (http, endpoint, sandbox_password("stack-key", &name))
}

async fn worker(scene: &Scene, thread: &str) -> Worker {
    let thread = ThreadKey::discord("1", thread).unwrap();
    let make = async || {
        let made = scene.sandboxes.make_workspace(&scene.sandbox, GENERATION, &thread, MAKE_MS_MAX);
        made.await.unwrap().unwrap()
    };
    let made = make().await;
    let Workplace::Worktree { workspace, branch } = made.clone() else { panic!("{made:?}") };
    assert_eq!(branch, format!("bobbin/{}", thread.short_hash()));
    assert_eq!(make().await, made, "a repeat finds it");
    let (http, endpoint, password) = server(scene).await;
    let again = endpoint.clone();
    let refresh: Refresh = Arc::new(move || {
        let again = again.clone();
        Box::pin(async move { Ok(again) })
    });
    let agent = runtime(&models(&scene.model)).connect(http, endpoint, &password, refresh);
    let agent = agent.in_workspace(&workspace);
    let session = agent.ensure_session(conversation(&thread), None, None).await.unwrap();
    assert_eq!(
        agent.ensure_session(conversation(&thread), None, None).await.as_ref(),
        Ok(&session)
    );
    Worker { thread, workspace, agent, session }
}

/// The event stream of a workspace, open.
pub(super) async fn listen(scene: &Scene, workspace: &Workspace) -> reqwest::Response {
    let (http, endpoint, password) = server(scene).await;
    let mut url = reqwest::Url::parse(&format!("{}/event", endpoint.url)).unwrap();
    if let Some(directory) = workspace.directory() {
        url.query_pairs_mut().append_pair("directory", directory);
    }
    let request = http.request(reqwest::Method::GET, url.as_str()).unwrap();
    let mut request = request
        .timeout(Duration::from_millis(2 * STEP_MS_MAX))
        .basic_auth("opencode", Some(password));
    for (name, value) in endpoint.headers {
        request = request.header(name, value);
    }
    http.open(request).await.unwrap()
}

/// Reads a stream until an event of this kind has come.
pub(super) async fn heard(stream: &mut reqwest::Response, kind: &str) {
    let (kind, mut text) = (format!("\"type\":\"{kind}\""), String::new());
    let come = async {
        while !text.contains(&kind) {
            let bytes = stream.chunk().await.unwrap().expect("the stream goes on");
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
    };
    let come = tokio::time::timeout(Duration::from_millis(STEP_MS_MAX), come).await;
    assert!(come.is_ok(), "no {kind} came: {text}");
}

/// The sessions that something was told of on a stream, until it has been silent for a while.
async fn told_of(stream: &mut reqwest::Response) -> BTreeSet<String> {
    let mut text = String::new();
    while let Ok(Ok(Some(bytes))) = tokio::time::timeout(POLL, stream.chunk()).await {
        text.push_str(&String::from_utf8_lossy(&bytes));
    }
    assert!(text.contains("server.connected"), "{text}");
    let ids = text.split("\"sessionID\":\"").skip(1);
    ids.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
}

fn files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> = names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

/// The paths of what a run has changed.
async fn changed(worker: &Worker, ids: &PromptIds) -> Vec<String> {
    let changes = worker.agent.changes(&worker.session, &ids.message).await;
    let changes = changes.map(|reported| reported.changes);
    changes.unwrap().files.into_iter().map(|change| change.file).collect()
}

/// A new sandbox with a repository, and its server.
async fn with_repository(scene: &Scene) {
    scene.perform(Effect::Sandbox(SandboxEffect::Create { snapshot: None, prebuild: None })).await;
    scene.until(SandboxState::Running).await;
    assert_eq!(scene.perform(clone("acme/api")).await, whole(true));
    assert_eq!(scene.ensure_server(false).await, Event::Healthy);
}

/// The present thread's session, where it works.
async fn session(scene: &Scene) -> String {
    let find =
        Effect::Agent(AgentEffect::FindAgentSession { known: None, since_ms: 0, agent: None });
    match scene.perform(find).await {
        Event::AgentSession { id } => id.to_string(),
        other => panic!("no session: {other:?}"),
    }
}

/// A run that goes on for long, and has begun.
async fn slow(scene: &Scene, turn: &str) -> PromptIds {
    let ids = scene.send(turn, "slow: 60 a b c d e f g h i j k l", FIRST).await;
    let slice = Follow { until_ms: now_ms() + 1_500, ..scene.follow(&ids) };
    let followed = scene.perform(Effect::Agent(AgentEffect::Follow(slice)));
    assert_eq!(followed.await, still_running());
    ids
}

pub(super) async fn effects_of_a_thread_use_its_workspace(scene: &mut Scene) {
    with_repository(scene).await;
    let of_the_first = session(scene).await;
    // Another thread, which shares the sandbox.
    let guest = ThreadKey::discord("1", "51").unwrap();
    let made = scene.sandboxes.make_workspace(&scene.sandbox, GENERATION, &guest, MAKE_MS_MAX);
    let made = made.await.unwrap().unwrap();
    scene.thread = guest;
    scene.workspace = made.workspace().clone();
    let own = PathBuf::from(scene.workspace.path());
    scene.session = session(scene).await;
    assert_ne!(scene.session, of_the_first);

    // Files come there, and images are read from there.
    let dot = axum::routing::get(async || pixel());
    let (base, server) = hand_out(scene, axum::Router::new().route("/dot.png", dot));
    let attached = scene
        .perform(Effect::Agent(AgentEffect::Attach {
            turn: "w1".into(),
            files: vec![Attachment {
                name: "dot.png".to_owned(),
                url: format!("{base}/dot.png"),
                size: 0,
                media_type: Some("image/png".to_owned()),
            }],
        }))
        .await;
    server.abort();
    let Event::Attached { images, missed, .. } = attached else { panic!("{attached:?}") };
    assert_eq!((missed, images.len()), (Vec::new(), 1));
    assert!(own.join(&images[0].path).exists());
    let ids = PromptIds::mint(&scene.thread, &"w1".into(), now_ms());
    let sent = scene
        .perform(Effect::Agent(AgentEffect::SendPrompt {
            turn: "w1".into(),
            run_of: "w1".into(),
            agent_session: scene.session.clone().into(),
            ids: ids.clone(),
            text: "look".to_owned(),
            model: scene.model_name.clone(),
            agent: None,
            images,
            sending: FIRST,
            limit: None,
        }))
        .await;
    assert_eq!(sent, Event::Prompted);
    let seen = scene.finished(scene.follow(&ids)).await;
    assert_eq!(seen.text, "I see 1 image: image/png.");

    // The run is followed, asks and is answered; what it leaves is found.
    let text = "write: own.txt mine\nrun: mkdir -p output/display; printf shown >output/display/a.txt\n\
                ask: echo x >asked.txt";
    let ids = scene.send("w2", text, FIRST).await;
    let mut open = asked(scene, &ids).await;
    let settled = scene.sandboxes.settle(scene.target(), (&open.id, &open.about), &Choice::Once);
    assert_eq!(settled.await, Ok(()));
    open.settled = true;
    let rest = Follow { asks: vec![open], ..scene.follow(&ids) };
    assert_eq!(scene.finished(rest).await.end, RunEnd::Completed);
    assert_eq!(scene.find(&ids).await, PromptState::Taken);
    let changes = scene
        .perform(Effect::Agent(AgentEffect::ReadChanges {
            agent_session: scene.session.clone().into(),
            message: ids.message.clone(),
        }))
        .await;
    let Event::Changed(changes) = changes else { panic!("{changes:?}") };
    let changed: Vec<&str> = changes.files.iter().map(|one| one.file.as_str()).collect();
    assert_eq!(changed, ["asked.txt", "own.txt"]);
    let listed = scene.perform(Effect::Agent(AgentEffect::ListArtifacts)).await;
    let Event::Listed(shown) = listed else { panic!("{listed:?}") };
    assert_eq!(shown.len(), 1, "{shown:?}");
    let bytes = scene.sandboxes.fetch_artifact(scene.target(), &shown[0]);
    assert_eq!(bytes.await.unwrap(), b"shown");
    assert_eq!(files(&own), ["README.md", "asked.txt", "output", "own.txt"]);
    assert_eq!(files(&scene.home().join("project")), ["README.md"]);

    // Whichever way a run is ended, it is the one there.
    let ids = scene.send("w3", "ask: echo no >refused.txt", FIRST).await;
    let mut open = asked(scene, &ids).await;
    let decline =
        Effect::Agent(AgentEffect::Decline { ask: open.id.clone(), about: open.about.clone() });
    let id = open.id.clone();
    assert_eq!(scene.perform(decline).await, Event::Declined { id });
    open.settled = true;
    let rest = Follow { asks: vec![open], ..scene.follow(&ids) };
    scene.finished(rest).await;
    assert!(!own.join("refused.txt").exists());
    let aborted = async |ids: &PromptIds| scene.finished(scene.follow(ids)).await.end;
    let ids = slow(scene, "w4").await;
    let abort = Effect::Agent(AgentEffect::Abort {
        agent_session: scene.session.clone().into(),
        message: ids.message.clone(),
        messages: vec![ids.message.clone()],
    });
    assert_eq!(scene.perform(abort).await, Event::Aborted);
    assert_eq!(aborted(&ids).await, RunEnd::Aborted);
    let ids = slow(scene, "w5").await;
    let (session, turn) = (scene.session.clone().into(), [ids.message.clone()]);
    let ended = scene.sandboxes.abort_answering(scene.target(), &session, &turn);
    assert_eq!(ended.await, Ok(()));
    assert_eq!(aborted(&ids).await, RunEnd::Aborted);
    let ids = slow(scene, "w6").await;
    let stray = StrayRun {
        generation: GENERATION,
        agent_session: scene.session.clone().into(),
        messages: vec![ids.message.clone()],
    };
    let end = Effect::Agent(AgentEffect::EndRun(stray));
    assert_eq!(scene.perform(end).await, Event::RunEnded);
    assert_eq!(aborted(&ids).await, RunEnd::Aborted);
}

pub(super) async fn threads_of_one_sandbox_work_side_by_side(scene: &mut Scene) {
    with_repository(scene).await;
    let one = worker(scene, "41").await;
    let two = worker(scene, "42").await;
    assert_ne!(one.session, two.session);

    let mut of_one = listen(scene, &one.workspace).await;
    let mut of_common = listen(scene, &Workspace::Common).await;

    // Both at the same time: the first goes on for long, the second asks.
    let first =
        one.ask(scene, "1", "write: one.txt of one\nslow: 60 a b c d e f g h i j k l").await;
    let second = two.ask(scene, "2", "write: two.txt of two\nask: echo x >asked.txt").await;
    let (mut first_run, mut second_run) = (one.run(&first), two.run(&second));
    // Both are listened to from their beginning.
    first_run.told().await;
    second_run.until("an ask", |seen| !seen.asks.is_empty()).await;
    first_run
        .until("a file", |seen| {
            seen.told.steps(false).0.iter().any(|step| step.text == "Wrote one.txt")
        })
        .await;
    assert_eq!(first_run.told().await.asks, [], "the ask is the other's");
    assert_eq!(first_run.state().await, RunState::Busy);
    assert_eq!(second_run.state().await, RunState::Busy);
    assert!(!first_run.steps().await.iter().any(|text| text.contains("two.txt")));
    assert!(!second_run.steps().await.iter().any(|text| text.contains("one.txt")));
    assert_eq!(told_of(&mut of_one).await, [one.session.to_string()].into());
    assert_eq!(told_of(&mut of_common).await, BTreeSet::new());

    // An answer that is given in the wrong place counts as told, and settles nothing.
    let (ask, about) = second_run.ask().await;
    one.agent.answer(&ask, &about, &Choice::Once).await.unwrap();
    let mut second_run = two.run(&second);
    second_run.until("the ask again", |seen| seen.is_whole).await;
    assert_eq!(second_run.ask().await.0, ask);

    // The end of one run leaves the other where it is.
    let turn = std::slice::from_ref(&first.message);
    let stop = RunStop::Prompt { message: &first.message, turn };
    assert_eq!(one.agent.stop(&one.session, stop).await, Ok(true));
    assert_eq!(first_run.ended().await, RunEnd::Aborted);
    assert_eq!(second_run.state().await, RunState::Busy);
    two.agent.answer(&ask, &about, &Choice::Once).await.unwrap();
    assert_eq!(second_run.ended().await, RunEnd::Completed);

    // Each has its own files and changes, and the common checkout has none of them.
    assert_eq!(files(&one.folder()), ["README.md", "one.txt"]);
    assert_eq!(files(&two.folder()), ["README.md", "asked.txt", "two.txt"]);
    assert_eq!(files(&scene.home().join("project")), ["README.md"]);
    assert_eq!(changed(&two, &second).await, ["asked.txt", "two.txt"]);
    let third = one.ask(scene, "3", "write: three.txt of one").await;
    assert_eq!(one.run(&third).ended().await, RunEnd::Completed);
    assert_eq!(changed(&one, &third).await, ["three.txt"]);

    // A session belongs to its workspace: a thread that works elsewhere gets another one there.
    let common = one.agent.in_workspace(&Workspace::Common);
    let elsewhere = common.ensure_session(conversation(&one.thread), None, None).await.unwrap();
    assert_ne!(elsewhere, one.session);
    let moved = two
        .agent
        .ensure_session(conversation(&one.thread), Some(&one.session), None)
        .await
        .unwrap();
    assert!(moved != one.session && moved != elsewhere);
    assert_eq!(
        one.agent.ensure_session(conversation(&one.thread), Some(&one.session), None).await,
        Ok(one.session.clone())
    );

    // They share the server, and its end.
    let slow = two.ask(scene, "4", "slow: 60 a b c d e f g h i j k l").await;
    let mut slow_run = two.run(&slow);
    slow_run.until("words", |seen| seen.told.messages() > 0).await;
    assert_eq!(scene.ensure_server(true).await, Event::Healthy);
    let bound = Instant::now() + Duration::from_millis(STEP_MS_MAX);
    while slow_run.state().await != RunState::Stopped {
        assert!(Instant::now() < bound, "the run outlived its server");
    }
    let kept = one.agent.ensure_session(conversation(&one.thread), None, None).await;
    assert_eq!(kept, Ok(one.session.clone()), "sessions outlive it");
}
