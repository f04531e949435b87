//! OpenCode, through `opencode serve`: one server for all sessions of the daemon.
//!
//! Measured with 1.18.33: events only say that something is to be seen; whether a turn has ended stands in the status and
//! the list of messages. A subagent's asks and messages carry a session of its own.

mod api;
mod server;
mod turn;

use std::collections::BTreeSet;
use std::time::Duration;

use bobbin_agent_events::{Converter, UniversalEventData};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval};

use super::{Down, Handed, Launch, Order, Report, Reports, text, with_attachments};
use crate::host::Host;
use crate::state::{Answer, Ask, Ended, PermissionMode};

use api::{Api, ApiError, Events};
pub(crate) use server::{Endpoint, Server};
use turn::{Look, Stand};

/// Between two looks at a turn of which no event says anything.
const LOOK_MS: u64 = 5_000;
/// Events of a turn may come after its end is seen: those that come within so long of one another are still its own.
const QUIET_MS: u64 = 200;
/// But no longer than this.
const LATE_MS_MAX: u64 = 2_000;

struct Session {
    launch: Launch,
    api: Api,
    id: String,
    /// Itself and its subagents'.
    family: BTreeSet<String>,
    converter: Converter,
    /// The turn that runs, by the id of its message.
    running: Option<Running>,
    /// Asks that are open, to tell those that are found again from new ones.
    asks: BTreeSet<String>,
    /// An event said that there is something to be seen.
    wants_look: bool,
}

struct Running {
    look: Look,
    handed: Handed,
}

/// Said to the agent when its images could not be taken as such.
const IMAGES_NOT_SEEN: &str =
    "(The images of this message could not be shown to you directly; they are among its files.)";

/// Runs a session until its orders end or the server does.
pub(super) async fn drive(
    launch: Launch,
    host: &Host,
    mut orders: mpsc::Receiver<Order>,
    reports: &Reports,
) -> Down {
    let endpoint = match host.opencode.endpoint(&launch.agent, host).await {
        Ok(endpoint) => endpoint,
        Err(down) => return down,
    };
    let api = Api::new(&endpoint, &launch.created.directory);
    match Session::open(launch, api, reports).await {
        Ok((mut session, mut events)) => {
            let down = match session.work(&mut events, &mut orders, reports).await {
                Ok(down) => down,
                Err(error) => down_of(&error),
            };
            // A run without anybody who follows it must not go on.
            let _ = session.api.abort(&session.id).await;
            down
        }
        Err(error) => down_of(&error),
    }
}

fn down_of(error: &ApiError) -> Down {
    let kind = match error {
        ApiError::Http(_) | ApiError::StreamEnded => "agent_process_exited",
        ApiError::Status { .. } | ApiError::Shape => "stream_error",
    };
    Down { kind, message: format!("OpenCode: {error}") }
}

impl Session {
    /// Opens the stream first, so that nothing of the session is missed, then the session.
    async fn open(launch: Launch, api: Api, reports: &Reports) -> Result<(Self, Events), ApiError> {
        let events = api.events().await?;
        let found = match &launch.agent_session {
            Some(id) => Some(api.session(id).await?),
            None => None,
        };
        let made = match found {
            Some(found) => found,
            None => api.create(&creation(&launch)).await?,
        };
        let id = text(&made, "/id").ok_or(ApiError::Shape)?.to_owned();
        reports.send(Report::Ready { agent_session: Some(id.clone()) }).await;
        let session = Self {
            converter: launch.converter(),
            family: BTreeSet::from([id.clone()]),
            launch,
            api,
            id,
            running: None,
            asks: BTreeSet::new(),
            wants_look: false,
        };
        Ok((session, events))
    }

    async fn work(
        &mut self,
        events: &mut Events,
        orders: &mut mpsc::Receiver<Order>,
        reports: &Reports,
    ) -> Result<Down, ApiError> {
        let mut looks = interval(Duration::from_millis(LOOK_MS));
        loop {
            tokio::select! {
                biased;
                event = events.next() => match event {
                    Ok(event) => self.hear(event, reports).await,
                    Err(_) => *events = self.reconnect(reports).await?,
                },
                order = orders.recv() => match order {
                    Some(order) => self.obey(order, reports).await?,
                    None => return Ok(Down::exited("the session was closed")),
                },
                _ = looks.tick() => self.wants_look = true,
            }
            if std::mem::take(&mut self.wants_look)
                && let Some(ended) = self.look(reports).await?
            {
                self.hear_the_rest(events, reports).await;
                self.end(ended, reports).await;
            }
        }
    }

    /// Hears what comes late of a turn that has ended.
    async fn hear_the_rest(&mut self, events: &mut Events, reports: &Reports) {
        let last = Instant::now() + Duration::from_millis(LATE_MS_MAX);
        loop {
            let quiet = Instant::now() + Duration::from_millis(QUIET_MS);
            match tokio::time::timeout_at(quiet.min(last), events.next()).await {
                Ok(Ok(event)) => self.hear(event, reports).await,
                // A stream that broke is seen by the next who reads it.
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }

    async fn hear(&mut self, mut event: Value, reports: &Reports) {
        shorten(&mut event);
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
        reports.send(Report::Said(made)).await;
    }

    /// The stream broke. If the server is there, asks that came meanwhile are told as if by events; messages are told by
    /// the next ones.
    async fn reconnect(&mut self, reports: &Reports) -> Result<Events, ApiError> {
        let events = self.api.events().await?;
        for (kind, list) in [
            ("permission.asked", self.api.permissions().await?),
            ("question.asked", self.api.questions().await?),
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

    async fn obey(&mut self, order: Order, reports: &Reports) -> Result<(), ApiError> {
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
                self.api.abort(&self.id).await
            }
        }
    }

    async fn hand(&mut self, handed: Handed, reports: &Reports) -> Result<(), ApiError> {
        let message = turn::message_id(&self.launch.session, &handed.turn);
        let body = self.prompt(&message, &handed);
        self.running = Some(Running { look: Look::new(message), handed });
        match self.api.prompt(&self.id, &body).await {
            Ok(()) => Ok(()),
            // Refused for good: the turn ends, the session goes on.
            Err(error @ ApiError::Status { .. }) => {
                self.end(turn::refused(&error), reports).await;
                Ok(())
            }
            Err(error) => Err(error),
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

    async fn answer(&self, ask: &Ask, answer: &Answer) -> Result<(), ApiError> {
        let id = ask.id();
        let done = match answer {
            Answer::Once => self.api.reply_permission(id, "once").await,
            Answer::Always => self.api.reply_permission(id, "always").await,
            Answer::Reject => self.api.reply_permission(id, "reject").await,
            Answer::Answers(answers) => self.api.reply_question(id, answers).await,
            Answer::Declined => self.api.reject_question(id).await,
        };
        match done {
            // It is settled already: by an abort, or by "always".
            Err(ApiError::Status { status: 404, .. }) => Ok(()),
            done => done,
        }
    }

    /// Looks whether the running turn has ended.
    async fn look(&mut self, reports: &Reports) -> Result<Option<Ended>, ApiError> {
        let Some(running) = &mut self.running else {
            return Ok(None);
        };
        // In this order: what ends between the two is seen to have ended.
        let is_busy = self.api.statuses().await?.get(&self.id).is_some();
        let is_there = !is_busy && self.api.has(&self.id, running.look.message()).await?;
        let last = if is_there { self.api.last_message(&self.id).await? } else { None };
        let stand = running.look.stand(is_busy, is_there, last.as_ref(), Instant::now());
        match stand {
            Stand::Goes => Ok(None),
            Stand::NeverBegun(_) if !running.handed.images.is_empty() => {
                // An image that cannot be decoded swallows its whole prompt: the words go without it.
                let mut bare = running.handed.clone().without_images();
                let words = with_attachments(&bare.prompt);
                bare.prompt.text = format!("{words}\n\n{IMAGES_NOT_SEEN}");
                bare.prompt.attachments.clear();
                self.hand(bare, reports).await?;
                Ok(None)
            }
            Stand::NeverBegun(ended) | Stand::Ended(ended) => Ok(Some(ended)),
        }
    }

    async fn end(&mut self, ended: Ended, reports: &Reports) {
        if let Some(running) = self.running.take() {
            self.asks.clear();
            let turn = running.handed.turn;
            reports.send(Report::Ended { turn, ended }).await;
        }
    }
}

/// An image that was handed over need not come back.
fn shorten(event: &mut Value) {
    let url = event.pointer_mut("/properties/part/url");
    if let Some(Value::String(url)) = url
        && url.starts_with("data:")
        && let Some(comma) = url.find(',')
    {
        url.truncate(comma + 1);
    }
}

fn agent(launch: &Launch) -> Option<&str> {
    match launch.created.permission_mode {
        PermissionMode::Plan => Some("plan"),
        PermissionMode::Default | PermissionMode::Bypass => launch.created.agent_mode.as_deref(),
    }
}

/// What a session is created with. With a title, because OpenCode asks a model for one otherwise.
fn creation(launch: &Launch) -> Value {
    let title = launch.created.title.as_ref().unwrap_or(&launch.session);
    let mut body = json!({"title": title, "metadata": {"bobbin": launch.session}});
    if launch.created.permission_mode == PermissionMode::Bypass {
        body["permission"] = json!([{"permission": "*", "pattern": "*", "action": "allow"}]);
    }
    body
}
