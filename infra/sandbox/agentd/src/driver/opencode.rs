//! OpenCode, through `opencode serve`: one server for all sessions of the daemon.
//!
//! Measured with 1.18.33: events only signal changes; the status and the message list tell whether a turn has ended. A
//! subagent's asks and messages carry its own session.

mod server;
mod turn;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bobbin_agent::opencode::{Events, OpenCode, OpenCodeError, OpenCodeStatus, drop_data};
use bobbin_agent_events::{Converter, UniversalEventData};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{AgentLaunch, AgentReport, Down, Handed, Order, Reports, text, with_attachments};
use crate::host::Host;
use crate::state::{AskAnswer, PermissionMode, TurnEnd, WaitingAsk};

pub(crate) use server::Server;
use server::ServerEndpoint;
use turn::{Look, Stand};

/// Poll interval of a turn without events.
const LOOK_MS: u64 = 5_000;
/// Events of a turn may arrive after its end is seen: those less than this apart still belong to it.
const QUIET_MS: u64 = 200;
/// Longest wait for them.
const LATE_MS_MAX: u64 = 2_000;
/// Longest row of calls without an answer: a running server may be slow for a while.
const UNANSWERED_MS_MAX: u64 = 60_000;
/// Pause before a session is opened again.
const OPEN_PAUSE_MS: u64 = 500;
/// A stream silent for this long is dead: there is a heartbeat every ten seconds.
const SILENCE_MS_MAX: u64 = 30_000;

struct DrivenSession {
    launch: AgentLaunch,
    client: OpenCode,
    id: String,
    /// The session and its subagents' sessions.
    family: BTreeSet<String>,
    converter: Converter,
    /// The running turn, by its message id.
    running: Option<OpenCodeTurn>,
    /// Open asks, to tell known ones from new ones.
    asks: BTreeSet<String>,
    /// Orders that the server has not taken yet, in order.
    waiting: VecDeque<Order>,
    /// An event asked for a poll.
    wants_look: bool,
}

struct OpenCodeTurn {
    look: Look,
    handed: Handed,
}

/// Tells the agent that its images could not be shown.
const IMAGES_NOT_SEEN: &str =
    "(The images of this message could not be shown to you directly; they are among its files.)";

/// Runs a session until its orders end or the server does.
pub(super) async fn drive(
    launch: AgentLaunch,
    host: &Host,
    server: &Server,
    mut orders: mpsc::Receiver<Order>,
    reports: &Reports,
) -> Down {
    let endpoint = match server.endpoint(&launch.agent, host).await {
        Ok(endpoint) => endpoint,
        Err(down) => return down,
    };
    let client = match endpoint.client() {
        Ok(client) => client.in_directory(Some(&launch.created.directory)),
        Err(error) => return down_of(&error),
    };
    match opened(&launch, &client, server, &endpoint).await {
        Ok((id, mut events)) => {
            reports.send(AgentReport::Ready { agent_session: Some(id.clone()) }).await;
            let mut session = DrivenSession::new(launch, client, id);
            let down = session.work(&mut events, &mut orders, reports, server, &endpoint).await;
            // A run without a driver must not go on.
            let _ = session.client.abort(&session.id).await;
            down
        }
        Err(error) => down_of(&error),
    }
}

fn down_of(error: &OpenCodeError) -> Down {
    let kind = if is_refusal(error) { "stream_error" } else { "agent_process_exited" };
    Down { kind, message: error.to_string() }
}

/// The agent's session and the server's events. A server that has just started may be slow: it is called again.
async fn opened(
    launch: &AgentLaunch,
    client: &OpenCode,
    server: &Server,
    endpoint: &ServerEndpoint,
) -> Result<(String, ServerEvents), OpenCodeError> {
    let began = Instant::now();
    let mut is_again = false;
    loop {
        let error = match open(launch, client, is_again).await {
            Err(error) if !is_lasting(&error, began, server, endpoint).await => error,
            done => return done,
        };
        tracing::warn!(session = launch.session, %error, "OpenCode opens no session yet; it is called again");
        tokio::time::sleep(Duration::from_millis(OPEN_PAUSE_MS)).await;
        is_again = true;
    }
}

/// Opens the stream first, so that no event of the session is missed, then the session. A creation without an answer
/// may have had its effect: it is looked for.
async fn open(
    launch: &AgentLaunch,
    client: &OpenCode,
    is_again: bool,
) -> Result<(String, ServerEvents), OpenCodeError> {
    let events = ServerEvents::open(client).await?;
    if let Some(id) = &launch.agent_session {
        return Ok((client.session(id).await?.id, events));
    }
    let made = if is_again { client.find_session(title(launch)).await? } else { None };
    let session = match made.filter(|made| made.metadata == metadata(launch)) {
        Some(made) => made,
        None => client.create(creation(launch)).await?,
    };
    Ok((session.id, events))
}

/// Whether calling again does not help, or has not helped since then.
async fn is_lasting(
    error: &OpenCodeError,
    since: Instant,
    server: &Server,
    endpoint: &ServerEndpoint,
) -> bool {
    let is_over = since.elapsed() >= Duration::from_millis(UNANSWERED_MS_MAX);
    is_refusal(error) || is_over || server.has_ended(endpoint).await
}

/// The server answered with a refusal.
const fn is_refusal(error: &OpenCodeError) -> bool {
    matches!(
        error,
        OpenCodeError::SessionMissing
            | OpenCodeError::NotFound { .. }
            | OpenCodeError::Refused { .. }
            | OpenCodeError::TooLarge { .. }
    )
}

/// The server's events, one by one.
struct ServerEvents {
    events: Events,
    /// Received events not taken yet.
    waiting: VecDeque<Value>,
    /// Time of the last data.
    heard: Instant,
}

impl ServerEvents {
    async fn open(client: &OpenCode) -> Result<Self, OpenCodeError> {
        let events = client.events().await?;
        Ok(Self { events, waiting: VecDeque::new(), heard: Instant::now() })
    }

    /// The next event; `None` if the stream broke or went silent. Cancel-safe.
    async fn next(&mut self) -> Option<Value> {
        while self.waiting.is_empty() {
            let silent = self.heard + Duration::from_millis(SILENCE_MS_MAX);
            let heard = tokio::time::timeout_at(silent, self.events.next()).await;
            self.waiting = heard.ok()?.ok()??.into();
            self.heard = Instant::now();
        }
        self.waiting.pop_front()
    }
}

impl DrivenSession {
    fn new(launch: AgentLaunch, client: OpenCode, id: String) -> Self {
        Self {
            converter: launch.converter(),
            family: BTreeSet::from([id.clone()]),
            launch,
            client,
            id,
            running: None,
            asks: BTreeSet::new(),
            waiting: VecDeque::new(),
            wants_look: false,
        }
    }

    async fn work(
        &mut self,
        events: &mut ServerEvents,
        orders: &mut mpsc::Receiver<Order>,
        reports: &Reports,
        server: &Server,
        endpoint: &ServerEndpoint,
    ) -> Down {
        let mut looks = interval(Duration::from_millis(LOOK_MS));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_cut = false;
        let mut unanswered_since = None;
        loop {
            let is_due = tokio::select! {
                biased;
                event = events.next(), if !is_cut => {
                    match event {
                        Some(event) => self.hear(event, reports).await,
                        None => is_cut = true,
                    }
                    is_cut
                }
                order = orders.recv() => match order {
                    Some(order) => {
                        self.take(order);
                        true
                    }
                    None => return Down::exited("the session was closed"),
                },
                _ = looks.tick() => {
                    self.wants_look = true;
                    true
                }
            };
            if !is_due && !self.wants_look {
                continue;
            }
            let Err(error) = self.call(events, &mut is_cut, reports).await else {
                unanswered_since = None;
                continue;
            };
            let since: Instant = *unanswered_since.get_or_insert_with(Instant::now);
            if is_lasting(&error, since, server, endpoint).await {
                return down_of(&error);
            }
            tracing::warn!(session = self.launch.session, %error, "OpenCode does not answer; it is called again");
            self.wants_look = false;
        }
    }

    /// Accepts an order. A stop settles the orders before it.
    fn take(&mut self, order: Order) {
        if matches!(order, Order::Cancel) {
            self.waiting.clear();
        }
        self.waiting.push_back(order);
    }

    /// Makes all calls that are due. After an error they are made again: each of them may be repeated.
    async fn call(
        &mut self,
        events: &mut ServerEvents,
        is_cut: &mut bool,
        reports: &Reports,
    ) -> Result<(), OpenCodeError> {
        self.hand_over(reports).await?;
        if *is_cut {
            *events = self.reconnect(reports).await?;
            *is_cut = false;
        }
        if std::mem::take(&mut self.wants_look)
            && let Some(ended) = self.look().await?
        {
            self.hear_the_rest(events, reports).await;
            self.end(ended, reports).await;
        }
        self.hand_over(reports).await
    }

    /// Passes the waiting orders on.
    async fn hand_over(&mut self, reports: &Reports) -> Result<(), OpenCodeError> {
        while let Some(order) = self.waiting.front().cloned() {
            self.obey(order, reports).await?;
            self.waiting.pop_front();
        }
        Ok(())
    }

    /// Reads late events of an ended turn.
    async fn hear_the_rest(&mut self, events: &mut ServerEvents, reports: &Reports) {
        let last = Instant::now() + Duration::from_millis(LATE_MS_MAX);
        loop {
            let quiet = Instant::now() + Duration::from_millis(QUIET_MS);
            match tokio::time::timeout_at(quiet.min(last), events.next()).await {
                Ok(Some(event)) => self.hear(event, reports).await,
                // The next reader notices a broken stream.
                Ok(None) | Err(_) => return,
            }
        }
    }

    async fn hear(&mut self, mut event: Value, reports: &Reports) {
        // Images that we sent need not come back.
        if let Some(part) = event.pointer_mut("/properties/part") {
            drop_data(part);
        }
        let properties = &event["properties"];
        let session =
            text(properties, "/sessionID").or_else(|| text(properties, "/info/sessionID"));
        let parent = text(properties, "/info/parentID");
        if let (Some(session), Some(parent)) = (session.or(text(properties, "/info/id")), parent)
            && self.family.contains(parent)
            && text(&event, "/type") == Some("session.created")
        {
            self.family.insert(session.to_owned());
        }
        let is_ours =
            session.or(text(properties, "/info/id")).is_some_and(|id| self.family.contains(id));
        if !is_ours {
            return;
        }
        let is_own = session == Some(&self.id);
        let kind = text(&event, "/type").unwrap_or("").to_owned();
        if kind == "session.error"
            && let (Some(running), true) = (&mut self.running, is_own)
        {
            running.look.error = text(properties, "/error/data/message").map(str::to_owned);
        }
        self.wants_look |= is_own && kind == "session.idle";
        self.tell(event, reports).await;
    }

    async fn tell(&mut self, event: Value, reports: &Reports) {
        let made = self.converter.convert(event);
        for one in &made {
            self.asks.extend(one.data.asked().map(str::to_owned));
            if let UniversalEventData::AskClosed { ask_closed, .. } = &one.data {
                self.asks.remove(&ask_closed.id);
            }
        }
        reports.send(AgentReport::Said(made)).await;
    }

    /// Reconnects a broken stream. If the server answers, new asks are reported as if by events; later messages bring
    /// missed ones.
    async fn reconnect(&mut self, reports: &Reports) -> Result<ServerEvents, OpenCodeError> {
        let events = ServerEvents::open(&self.client).await?;
        for (kind, list) in [
            ("permission.asked", self.client.permissions().await?),
            ("question.asked", self.client.questions().await?),
        ] {
            for ask in list {
                let is_ours = text(&ask, "/sessionID").is_some_and(|id| self.family.contains(id));
                let is_new = text(&ask, "/id").is_some_and(|id| !self.asks.contains(id));
                if is_ours && is_new {
                    self.tell(json!({"type": kind, "properties": ask}), reports).await;
                }
            }
        }
        self.wants_look = true;
        Ok(events)
    }

    async fn obey(&mut self, order: Order, reports: &Reports) -> Result<(), OpenCodeError> {
        match order {
            Order::Prompt(handed) => self.hand(handed, reports).await,
            Order::Answer { ask, answer } => {
                self.asks.remove(ask.id());
                self.answer(&ask, &answer).await
            }
            Order::Cancel => {
                if let Some(running) = &mut self.running {
                    running.look.is_cancelled = true;
                }
                self.wants_look = true;
                self.client.abort(&self.id).await
            }
        }
    }

    async fn hand(&mut self, handed: Handed, reports: &Reports) -> Result<(), OpenCodeError> {
        let message = turn::message_id(&self.launch.session, &handed.turn);
        // OpenCode would move a prompt that it has behind its answer.
        let is_again = self.running.as_ref().is_some_and(|one| one.handed.turn == handed.turn);
        if is_again && self.client.has(&self.id, &message).await? {
            return Ok(());
        }
        let body = self.prompt(&message, &handed);
        self.running = Some(OpenCodeTurn { look: Look::new(message), handed });
        match self.client.send(&self.id, &body).await {
            Ok(()) => Ok(()),
            // A permanent refusal: the turn ends, the session goes on.
            Err(refused) if is_refusal(&refused.error) => {
                self.end(turn::refused(&refused.error), reports).await;
                Ok(())
            }
            Err(missed) => Err(missed.error),
        }
    }

    fn prompt(&self, message: &str, handed: &Handed) -> Value {
        let prompt = &handed.prompt;
        let part = message.replacen("msg", "prt", 1);
        let mut parts = vec![json!({"id": part, "type": "text", "text": prompt.text})];
        let images = handed.images.iter().map(|image| {
            let url = format!("data:{};base64,{}", image.media_type, image.base64);
            (&image.file, url, image.media_type)
        });
        let files = prompt.attachments.iter().map(|file| {
            let mime = file.mime.as_deref().unwrap_or("text/plain");
            (file, format!("file://{}", file.path), mime)
        });
        for (number, (file, url, mime)) in images.chain(files).enumerate() {
            parts.push(json!({
                "id": format!("{part}_f{number}"), "type": "file", "url": url, "mime": mime,
                "filename": file.filename.as_deref().or_else(|| file.path.rsplit('/').next()),
            }));
        }
        let mut body = json!({"messageID": message, "parts": parts});
        let model = self.launch.model(prompt).and_then(|model| model.split_once('/'));
        if let Some((provider, model)) = model {
            body["model"] = json!({"providerID": provider, "modelID": model});
        }
        if let Some(variant) = &self.launch.created.variant {
            body["variant"] = json!(variant);
        }
        if let Some(agent) = prompt.mode.as_deref().or(agent(&self.launch)) {
            body["agent"] = json!(agent);
        }
        if let Some(instructions) = &self.launch.created.instructions {
            body["system"] = json!(instructions);
        }
        body
    }

    async fn answer(&self, ask: &WaitingAsk, answer: &AskAnswer) -> Result<(), OpenCodeError> {
        let id = ask.id();
        let done = match answer {
            AskAnswer::Once => self.client.reply_permission(id, "once").await,
            AskAnswer::Always => self.client.reply_permission(id, "always").await,
            AskAnswer::Reject => self.client.reply_permission(id, "reject").await,
            AskAnswer::Answers(answers) => self.client.reply_question(id, answers).await,
            AskAnswer::Declined => self.client.reject_question(id).await,
        };
        match done {
            // Already settled by an abort, or by "always".
            Err(OpenCodeError::NotFound { .. }) => Ok(()),
            done => done,
        }
    }

    /// Polls whether the running turn has ended.
    async fn look(&mut self) -> Result<Option<TurnEnd>, OpenCodeError> {
        let Some(running) = &mut self.running else {
            return Ok(None);
        };
        // In this order: a turn that ends between the two is seen as ended.
        let statuses = self.client.statuses().await?;
        let is_busy = !matches!(statuses.get(&self.id), None | Some(OpenCodeStatus::Idle));
        let is_there = !is_busy && self.client.has(&self.id, running.look.message()).await?;
        let last = if is_there { self.client.last_message(&self.id).await? } else { None };
        let stand = running.look.stand(is_busy, is_there, last.as_ref(), Instant::now());
        match stand {
            Stand::Goes => Ok(None),
            Stand::NeverBegun(_) if !running.handed.images.is_empty() => {
                // An undecodable image makes its whole prompt fail: send the text without it.
                let mut bare = running.handed.clone().without_images();
                let words = with_attachments(&bare.prompt);
                bare.prompt.text = format!("{words}\n\n{IMAGES_NOT_SEEN}");
                bare.prompt.attachments.clear();
                self.waiting.push_back(Order::Prompt(bare));
                Ok(None)
            }
            Stand::NeverBegun(ended) | Stand::Ended(ended) => Ok(Some(ended)),
        }
    }

    async fn end(&mut self, ended: TurnEnd, reports: &Reports) {
        if let Some(running) = self.running.take() {
            self.asks.clear();
            let turn = running.handed.turn;
            reports.send(AgentReport::Ended { turn, ended }).await;
        }
    }
}

fn agent(launch: &AgentLaunch) -> Option<&str> {
    match launch.created.permission_mode {
        PermissionMode::Plan => Some("plan"),
        PermissionMode::Default | PermissionMode::Bypass => launch.created.agent_mode.as_deref(),
    }
}

fn title(launch: &AgentLaunch) -> &str {
    launch.created.title.as_ref().unwrap_or(&launch.session)
}

fn metadata(launch: &AgentLaunch) -> Value {
    json!({"bobbin": launch.session})
}

/// Body of a session creation. It has a title, because OpenCode would otherwise ask a model for one.
fn creation(launch: &AgentLaunch) -> Value {
    let mut body = json!({"title": title(launch), "metadata": metadata(launch)});
    if launch.created.permission_mode == PermissionMode::Bypass {
        body["permission"] = json!([{"permission": "*", "pattern": "*", "action": "allow"}]);
    }
    body
}
