//! The only writer of a session.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bobbin_agent_events::{Converted, TurnOutcome, UniversalEventData};
use tokio::sync::{RwLock, RwLockWriteGuard, mpsc, watch};
use tokio::task::JoinHandle;

use super::events::{Numbering, failure, turn_ended};
use super::{AgentStatus, Progress, ReplySender, SessionError, SessionInput};
use crate::driver::{self, AgentLaunch, AgentReport, Down, Handed, Order, Reports, SharedServers};
use crate::host::Host;
use crate::limits::{
    BATCH_MAX, CANCEL_MS_MAX, LOG_BYTES_MAX, NUDGED_ASKS_MAX, ORDERS_MAX, REPORTS_MAX,
    TURN_EVENTS_MAX,
};
use crate::log::{AppendError, LogDamage, LogEntry, LogRoom, SessionLog};
use crate::nudge::NudgeTarget;
use crate::state::{
    Acceptance, AskAnswer, PermissionMode, RequestRefusal, SessionChange, SessionState, TurnEnd,
    TurnPhase, WaitingAsk,
};

/// A log that was read.
pub(super) struct OpenedLog {
    path: PathBuf,
    pub(super) log: SessionLog,
    found: LogDamage,
    pub(super) last_event: u64,
    last_seq: u64,
    state: SessionState,
}

impl OpenedLog {
    pub(super) fn read(path: PathBuf) -> std::io::Result<Self> {
        let mut state = SessionState::default();
        let (mut last_event, mut last_seq) = (0, 0);
        let (log, found) = SessionLog::open(&path, LOG_BYTES_MAX, |line| {
            if let Some(event) = &line.event {
                (last_event, last_seq) = (event.id, event.seq);
            }
            if let Some(change) = line.change {
                state.apply(change);
            }
        })?;
        Ok(Self { path, log, found, last_event, last_seq, state })
    }
}

/// An action to take once its cause is on disk.
enum SessionEffect {
    Done(ReplySender<()>),
    /// A stop request is confirmed even if the disk is full.
    Stopped(ReplySender<()>),
    Accepted(ReplySender<Acceptance>, Acceptance),
    Order(Box<Order>),
    Launch,
    /// Stops the agent: its order channel is dropped.
    Stop(Option<mpsc::Sender<Order>>),
    /// Checks a cancelled turn again later.
    Watch(String),
    /// Nudges the sender of the turn.
    Nudge(NudgeTarget),
    Status(AgentStatus),
}

/// Result of a batch of inputs.
#[derive(Default)]
struct BatchResult {
    lines: Vec<LogEntry>,
    effects: Vec<SessionEffect>,
    /// It contains agent output, which is lost if it cannot be written.
    hears: bool,
    /// It ends a turn.
    ends: bool,
}

/// Context of a session.
pub(super) struct Around {
    pub(super) host: Arc<Host>,
    pub(super) shared: Arc<SharedServers>,
    /// For timers and agent readers.
    pub(super) inputs: mpsc::Sender<SessionInput>,
    pub(super) progress: watch::Sender<Progress>,
}

pub(super) struct SessionActor {
    path: PathBuf,
    log: Arc<Mutex<SessionLog>>,
    state: Arc<RwLock<SessionState>>,
    around: Around,
    numbering: Numbering,
    /// The running agent, by launch number.
    agent: Option<(u64, mpsc::Sender<Order>)>,
    /// Task of the newest launch: an agent's own session allows one process at a time.
    driver: Option<JoinHandle<()>>,
    /// The agent's own end of the running turn is in the log.
    told_end: bool,
    /// Events of the running turn.
    turn_events: u64,
    /// Damaged lines of the log file, for reporting.
    damaged_lines: u64,
    /// Nudges of open turns, with the number of asks nudged so far.
    nudges: HashMap<String, (NudgeTarget, u32)>,
    /// Ends that happened but could not be written: written before anything else.
    owed: Vec<SessionChange>,
}

impl SessionActor {
    /// Ends turns that were open when the daemon ended: the sender of one that had not begun may have given up on it.
    pub(super) async fn new(
        id: &str,
        opened: OpenedLog,
        state: Arc<RwLock<SessionState>>,
        around: Around,
    ) -> Self {
        *state.write().await = opened.state;
        let mut actor = Self {
            path: opened.path,
            log: Arc::new(Mutex::new(opened.log)),
            state,
            around,
            numbering: Numbering {
                session: id.to_owned(),
                last_id: opened.last_event,
                last_seq: opened.last_seq,
            },
            agent: None,
            driver: None,
            told_end: false,
            turn_events: 0,
            damaged_lines: opened.found.damaged_lines,
            nudges: HashMap::new(),
            owed: Vec::new(),
        };
        // Before any client can see the state: a turn that was cut off must not appear to run.
        actor.recovered().await;
        actor
    }

    /// Runs until no more requests can come; then ends the agent.
    pub(super) async fn run(mut self, mut inputs: mpsc::Receiver<SessionInput>) {
        let mut waiting = Vec::new();
        while inputs.recv_many(&mut waiting, BATCH_MAX).await > 0 {
            let shared = self.state.clone();
            let mut state = shared.write().await;
            self.pay(&state).await;
            let mut batch = BatchResult::default();
            for input in waiting.drain(..) {
                self.decide(&mut state, &mut batch, input);
            }
            self.go_on(&mut state, &mut batch);
            self.commit(state, batch).await;
        }
    }

    async fn recovered(&mut self) {
        let shared = self.state.clone();
        let mut state = shared.write().await;
        let mut batch = BatchResult::default();
        if self.damaged_lines > 0 {
            let message =
                format!("{} lines of this session's log could not be read", self.damaged_lines);
            let made = failure("stream_error", message);
            self.tell(&mut state, &mut batch, vec![made], None);
        }
        for turn in state.open_turns() {
            let ended = match state.phase(&turn) {
                Some(TurnPhase::Queued(_)) => not_begun(),
                _ => cut(),
            };
            self.end(&mut state, &mut batch, &turn, ended);
        }
        self.commit(state, batch).await;
    }

    fn decide(&mut self, state: &mut SessionState, batch: &mut BatchResult, input: SessionInput) {
        match input {
            SessionInput::Create { created, reply } => {
                self.change(state, batch, SessionChange::Created(created));
                batch.effects.push(SessionEffect::Done(reply));
            }
            SessionInput::Start => {
                if self.agent.is_none() && !state.is_terminated {
                    self.launch(state, batch);
                }
            }
            SessionInput::Prompt { turn, prompt, nudge, reply } => {
                match state.accept(&turn, &prompt) {
                    Ok((acceptance, change)) => {
                        if let Some(change) = change {
                            self.change(state, batch, change);
                        }
                        // A repeat may bring a nudge that the first request lacked.
                        if let (Some(nudge), true) = (nudge, state.is_open(&turn)) {
                            self.nudges.entry(turn).or_insert((nudge, 0));
                        }
                        batch.effects.push(SessionEffect::Accepted(reply, acceptance));
                    }
                    Err(refused) => refuse(reply, refused),
                }
            }
            SessionInput::Answer { ask, answer, reply } => {
                let open = state.ask(&ask).cloned();
                match (open, state.answer(&ask, answer.clone())) {
                    (Some(open), Ok(change)) => {
                        self.change(state, batch, change);
                        batch.effects.push(SessionEffect::Order(Box::new(Order::Answer {
                            ask: open,
                            answer,
                        })));
                        batch.effects.push(SessionEffect::Done(reply));
                    }
                    (_, Err(refused)) => refuse(reply, refused),
                    (None, Ok(_)) => refuse(reply, RequestRefusal::AskGone),
                }
            }
            SessionInput::Cancel { turn, reply } => match state.cancel(&turn) {
                Ok(change) => {
                    self.cancel(state, batch, &turn, change);
                    batch.effects.push(SessionEffect::Stopped(reply));
                }
                Err(refused) => refuse(reply, refused),
            },
            SessionInput::Terminate { reply } => {
                if !state.is_terminated {
                    for turn in state.open_turns() {
                        let ended = TurnEnd::of(TurnOutcome::Cancelled, "terminated", None);
                        self.end(state, batch, &turn, ended);
                    }
                    self.change(state, batch, SessionChange::Terminated);
                    let orders = self.agent.take().map(|(_, orders)| orders);
                    batch.effects.push(SessionEffect::Stop(orders));
                }
                batch.effects.push(SessionEffect::Stopped(reply));
            }
            SessionInput::Report { launch, report } => {
                if self.agent.as_ref().is_some_and(|(number, _)| *number == launch) {
                    batch.hears = true;
                    self.hear(state, batch, report);
                }
            }
            SessionInput::Down { launch, down } => {
                if self.agent.as_ref().is_some_and(|(number, _)| *number == launch) {
                    batch.hears = true;
                    self.agent_ended(state, batch, down);
                }
            }
            SessionInput::CancelOverdue { turn } => {
                if state.running() == Some(&turn) {
                    let orders = self.agent.take().map(|(_, orders)| orders);
                    batch.effects.push(SessionEffect::Stop(orders));
                    let message = "the agent did not stop by itself and was ended".to_owned();
                    let ended = TurnEnd::of(TurnOutcome::Cancelled, "cancelled", Some(message));
                    self.end(state, batch, &turn, ended);
                }
            }
        }
    }

    fn hear(&mut self, state: &mut SessionState, batch: &mut BatchResult, report: AgentReport) {
        match report {
            AgentReport::Ready { agent_session } => {
                if let Some(id) = agent_session {
                    self.agent_session(state, batch, id);
                }
                batch.effects.push(SessionEffect::Status(AgentStatus::Ready));
            }
            AgentReport::AgentSession(id) => self.agent_session(state, batch, id),
            AgentReport::Said(made) => {
                let turn = state.running().map(str::to_owned);
                self.tell(state, batch, made, turn.as_deref());
                self.turn_events += 1;
                if let Some(turn) = turn.filter(|_| self.turn_events == TURN_EVENTS_MAX)
                    && let Ok(change) = state.cancel(&turn)
                {
                    self.cancel(state, batch, &turn, change);
                }
            }
            AgentReport::Ended { turn, ended } => {
                if state.running() == Some(&turn) {
                    self.end(state, batch, &turn, ended);
                }
            }
        }
    }

    fn agent_session(&self, state: &mut SessionState, batch: &mut BatchResult, id: String) {
        if state.agent_session.as_deref() != Some(&id) {
            self.change(state, batch, SessionChange::AgentSession(id));
        }
    }

    fn cancel(
        &mut self,
        state: &mut SessionState,
        batch: &mut BatchResult,
        turn: &str,
        change: Option<SessionChange>,
    ) {
        match change {
            Some(SessionChange::Ended { ended, .. }) => self.end(state, batch, turn, ended),
            Some(change) => {
                self.change(state, batch, change);
                batch.effects.push(SessionEffect::Order(Box::new(Order::Cancel)));
                batch.effects.push(SessionEffect::Watch(turn.to_owned()));
            }
            None => {}
        }
    }

    fn agent_ended(&mut self, state: &mut SessionState, batch: &mut BatchResult, down: Down) {
        self.agent = None;
        match state.running().map(str::to_owned) {
            Some(turn) => {
                let is_cancelled = state.is_cancelled(&turn);
                let said = Some(down.message.clone());
                let ended = if is_cancelled {
                    TurnEnd::of(TurnOutcome::Cancelled, down.kind, said)
                } else if self.around.host.is_stopping() {
                    // The daemon ended the agent, not the reverse.
                    cut()
                } else {
                    TurnEnd::of(TurnOutcome::Failed, down.kind, said)
                };
                self.end(state, batch, &turn, ended);
            }
            None => {
                let made = failure(down.kind, down.message.clone());
                self.tell(state, batch, vec![made], None);
            }
        }
        batch.effects.push(SessionEffect::Status(AgentStatus::Down(down)));
    }

    /// Gives the agent the next prompt if it is free; starts it if needed.
    fn go_on(&mut self, state: &mut SessionState, batch: &mut BatchResult) {
        if self.around.host.is_stopping() {
            // It waits for the next start.
            return;
        }
        let Some(turn) = state.next().map(str::to_owned) else {
            return;
        };
        let Some(TurnPhase::Queued(prompt)) = state.phase(&turn).cloned() else {
            return;
        };
        if self.agent.is_none() {
            self.launch(state, batch);
        }
        self.told_end = false;
        self.turn_events = 0;
        self.change(state, batch, SessionChange::Submitted { turn: turn.clone() });
        batch.effects.push(SessionEffect::Order(Box::new(Order::Prompt(Handed {
            turn,
            prompt,
            images: Vec::new(),
            follows: batch.ends,
        }))));
    }

    fn launch(&mut self, state: &mut SessionState, batch: &mut BatchResult) {
        // A second launch in one batch would start two agents.
        if batch.effects.iter().any(|effect| matches!(effect, SessionEffect::Launch)) {
            return;
        }
        self.change(state, batch, SessionChange::Launched);
        batch.effects.push(SessionEffect::Launch);
    }

    fn change(&self, state: &mut SessionState, batch: &mut BatchResult, change: SessionChange) {
        batch.lines.push(LogEntry { change: Some(change.clone()), event: None });
        state.apply(change);
    }

    /// Ends a turn, with an event unless the agent has reported the end itself.
    fn end(
        &mut self,
        state: &mut SessionState,
        batch: &mut BatchResult,
        turn: &str,
        ended: TurnEnd,
    ) {
        let runs = state.running() == Some(turn);
        let is_told = self.told_end && runs;
        batch.ends |= runs;
        if let Some((nudge, _)) = self.nudges.remove(turn) {
            batch.effects.push(SessionEffect::Nudge(nudge));
        }
        let change = SessionChange::Ended { turn: turn.to_owned(), ended: ended.clone() };
        let event = if is_told {
            None
        } else {
            let made = vec![turn_ended(&ended)];
            let mut events = self.number(state, made, Some(turn));
            events.pop().map(|(event, _)| event)
        };
        batch.lines.push(LogEntry { change: Some(change.clone()), event });
        state.apply(change);
    }

    fn number(
        &mut self,
        state: &SessionState,
        made: Vec<Converted>,
        turn: Option<&str>,
    ) -> Vec<(crate::log::LoggedEvent, UniversalEventData)> {
        let agent = state.created.as_ref().map_or("", |created| &created.agent);
        let agent_session = state.agent_session.as_deref();
        self.numbering.input(made, agent, agent_session, turn)
    }

    /// Adds events to the batch, with the changes they cause.
    fn tell(
        &mut self,
        state: &mut SessionState,
        batch: &mut BatchResult,
        made: Vec<Converted>,
        turn: Option<&str>,
    ) {
        let own = state.agent_session.as_deref();
        let ends: Vec<bool> = made.iter().map(|one| one.ends_turn_of(own)).collect();
        for ((event, data), ends) in self.number(state, made, turn).into_iter().zip(ends) {
            let change = match data {
                UniversalEventData::PermissionAsked { permission_asked } => {
                    Some(SessionChange::Asked(WaitingAsk::Permission(permission_asked)))
                }
                UniversalEventData::QuestionAsked { question_asked } => {
                    Some(SessionChange::Asked(WaitingAsk::Question(question_asked)))
                }
                UniversalEventData::AskClosed { ask_closed, .. } => state
                    .ask(&ask_closed.id)
                    .is_some()
                    .then_some(SessionChange::Closed { ask: ask_closed.id }),
                UniversalEventData::TurnEnded { .. } => {
                    self.told_end |= ends;
                    None
                }
                _ => None,
            };
            batch.lines.push(LogEntry { change: change.clone(), event: Some(event) });
            let asked = match &change {
                Some(SessionChange::Asked(ask)) => Some((ask.clone(), state.takes_asks())),
                _ => None,
            };
            if let Some(change) = change {
                state.apply(change);
            }
            if let Some((ask, is_kept)) = asked {
                let id = ask.id().to_owned();
                self.answer_at_once(state, batch, ask, is_kept);
                if state.ask(&id).is_some() {
                    self.nudge_of_ask(batch, turn);
                }
            }
        }
    }

    fn nudge_of_ask(&mut self, batch: &mut BatchResult, turn: Option<&str>) {
        let known = turn.and_then(|turn| self.nudges.get_mut(turn));
        if let Some((nudge, asks)) = known
            && *asks < NUDGED_ASKS_MAX
        {
            *asks += 1;
            batch.effects.push(SessionEffect::Nudge(nudge.clone()));
        }
    }

    /// Answers asks that no person needs to see: permissions if everything is allowed, and asks beyond the bound.
    fn answer_at_once(
        &self,
        state: &mut SessionState,
        batch: &mut BatchResult,
        ask: WaitingAsk,
        is_kept: bool,
    ) {
        let bypasses = state
            .created
            .as_ref()
            .is_some_and(|created| created.permission_mode == PermissionMode::Bypass);
        let answer = match &ask {
            WaitingAsk::Permission(_) if bypasses => AskAnswer::Once,
            _ if is_kept => return,
            WaitingAsk::Permission(_) => AskAnswer::Reject,
            WaitingAsk::Question(_) => AskAnswer::Declined,
        };
        if let Ok(change) = state.answer(ask.id(), answer.clone()) {
            self.change(state, batch, change);
            batch.effects.push(SessionEffect::Order(Box::new(Order::Answer { ask, answer })));
        }
    }

    /// Writes the batch, then performs its effects.
    async fn commit(&mut self, mut state: RwLockWriteGuard<'_, SessionState>, batch: BatchResult) {
        if !batch.lines.is_empty()
            && let Err(error) = self.append(&batch.lines, LogRoom::Ordinary).await
        {
            self.not_written(&mut state, error, batch).await;
            return;
        }
        self.publish();
        for effect in batch.effects {
            self.perform(&state, effect).await;
        }
    }

    fn publish(&self) {
        self.around.progress.send_modify(|progress| {
            progress.last_event = self.numbering.last_id;
            progress.writes += 1;
        });
    }

    async fn append(&self, lines: &[LogEntry], room: LogRoom) -> Result<(), AppendError> {
        let log = self.log.clone();
        let lines = lines.to_vec();
        let written = tokio::task::spawn_blocking(move || {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.append(&lines, room)
        });
        match written.await {
            Ok(written) => written,
            Err(error) => Err(AppendError::Broken(error.to_string())),
        }
    }

    /// Nothing of the batch was written: the state is what is on disk, and requesters get the error. Stops take effect
    /// all the same, and are written to the reserved space. If agent output is lost, all open turns end.
    async fn not_written(
        &mut self,
        state: &mut SessionState,
        error: AppendError,
        batch: BatchResult,
    ) {
        tracing::error!(session = self.numbering.session, %error, "a session's log cannot be written");
        let told = match &error {
            AppendError::Full => SessionError::Full,
            AppendError::Broken(why) => SessionError::Broken(why.clone()),
        };
        let path = self.path.clone();
        let read = tokio::task::spawn_blocking(move || OpenedLog::read(path)).await;
        if let Ok(Ok(opened)) = read {
            self.numbering.last_id = opened.last_event;
            self.numbering.last_seq = opened.last_seq;
            *state = opened.state;
        }
        for change in &self.owed {
            state.apply(change.clone());
        }
        let changes = batch.lines.into_iter().filter_map(|line| line.change);
        for change in changes.filter(SessionChange::ends) {
            let is_lost = batch.hears
                && matches!(&change, SessionChange::Ended { ended, .. } if ended.outcome == TurnOutcome::Done);
            if state.is_ended_by(&change) && !is_lost {
                state.apply(change.clone());
                self.owed.push(change);
            }
        }
        if batch.hears {
            self.agent = None;
        }
        // Queued turns could not be begun either.
        if batch.hears || state.running().is_none() {
            for turn in state.open_turns() {
                let ended = unkept(&error, state.is_cancelled(&turn));
                let change = SessionChange::Ended { turn, ended };
                state.apply(change.clone());
                self.owed.push(change);
            }
        }
        self.told_end = false;
        self.pay(state).await;
        for effect in batch.effects {
            match effect {
                // The requester may be gone.
                SessionEffect::Done(reply) => drop(reply.send(Err(told.clone()))),
                SessionEffect::Accepted(reply, _) => drop(reply.send(Err(told.clone()))),
                SessionEffect::Launch => {}
                SessionEffect::Order(order) if !matches!(*order, Order::Cancel) => {}
                effect => self.perform(state, effect).await,
            }
        }
        for (turn, (nudge, asks)) in std::mem::take(&mut self.nudges) {
            match state.phase(&turn) {
                Some(TurnPhase::Ended(_)) => nudge.say(),
                Some(_) => drop(self.nudges.insert(turn, (nudge, asks))),
                None => {}
            }
        }
    }

    /// Writes owed ends into the reserved space; what does not fit stays owed.
    async fn pay(&mut self, state: &SessionState) {
        if self.owed.is_empty() {
            return;
        }
        let before = self.numbering.clone();
        let mut lines = Vec::new();
        for change in self.owed.clone() {
            let event = match &change {
                SessionChange::Ended { turn, ended } => {
                    let mut events = self.number(state, vec![turn_ended(ended)], Some(turn));
                    events.pop().map(|(event, _)| event)
                }
                _ => None,
            };
            lines.push(LogEntry { change: Some(change), event });
        }
        let mut written = self.append(&lines, LogRoom::Ends).await;
        if matches!(written, Err(AppendError::Full)) {
            self.around.host.give_up_reserve();
            written = self.append(&lines, LogRoom::Ends).await;
        }
        match written {
            Ok(()) => self.owed.clear(),
            Err(error) => {
                tracing::error!(session = self.numbering.session, %error, "the end of a turn cannot be written");
                self.numbering = before;
            }
        }
        self.publish();
    }

    async fn perform(&mut self, state: &SessionState, effect: SessionEffect) {
        match effect {
            // The requester may be gone.
            SessionEffect::Done(reply) | SessionEffect::Stopped(reply) => drop(reply.send(Ok(()))),
            SessionEffect::Accepted(reply, acceptance) => drop(reply.send(Ok(acceptance))),
            SessionEffect::Order(order) => {
                if let Some((_, orders)) = &self.agent {
                    // An agent that reads this slowly is ended when its turn is cancelled.
                    if let Err(error) = orders.try_send(*order) {
                        tracing::warn!(session = self.numbering.session, %error, "the agent does not accept commands");
                    }
                }
            }
            SessionEffect::Launch => self.start(state),
            SessionEffect::Stop(orders) => {
                drop(orders);
                self.around
                    .progress
                    .send_modify(|progress| progress.agent = AgentStatus::NotStarted);
            }
            SessionEffect::Watch(turn) => {
                let inputs = self.around.inputs.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(CANCEL_MS_MAX)).await;
                    // A session that is gone has no turn.
                    let _ = inputs.send(SessionInput::CancelOverdue { turn }).await;
                });
            }
            SessionEffect::Nudge(nudge) => nudge.say(),
            SessionEffect::Status(status) => {
                self.around.progress.send_modify(|progress| progress.agent = status);
            }
        }
    }

    fn start(&mut self, state: &SessionState) {
        let Some(created) = state.created.clone() else {
            return;
        };
        let number = state.launches;
        let (sender, mut told) = mpsc::channel(REPORTS_MAX);
        let reports = Reports::new(sender, self.around.host.clone(), &self.numbering.session);
        let (orders, queue) = mpsc::channel(ORDERS_MAX);
        self.agent = Some((number, orders));
        self.around.progress.send_modify(|progress| progress.agent = AgentStatus::Starting);
        let (host, shared) = (self.around.host.clone(), self.around.shared.clone());
        let inputs = self.around.inputs.clone();
        let session = self.numbering.session.clone();
        let agent_session = state.agent_session.clone();
        let before = self.driver.take();
        self.driver = Some(tokio::spawn(async move {
            if let Some(before) = before {
                // It ends by itself; its result does not matter.
                let _ = before.await;
            }
            let hear = async {
                while let Some(report) = told.recv().await {
                    // The session may be gone.
                    let _ = inputs.send(SessionInput::Report { launch: number, report }).await;
                }
            };
            // All reports come before the end.
            let drive = async move {
                let agent = match host.agents.find(&created.agent).await {
                    Ok(agent) => agent,
                    Err(missing) => {
                        return Down { kind: missing.kind(), message: missing.to_string() };
                    }
                };
                let launches = number.saturating_sub(1);
                let launch = AgentLaunch { session, agent, created, agent_session, launches };
                driver::drive(launch, &host, &shared, queue, &reports).await
            };
            let (down, ()) = tokio::join!(drive, hear);
            let _ = inputs.send(SessionInput::Down { launch: number, down }).await;
        }));
    }
}

/// The end of a turn that was cut off.
fn cut() -> TurnEnd {
    let message = "the daemon or its sandbox was stopped during the turn".to_owned();
    TurnEnd::of(TurnOutcome::Lost, "cut", Some(message))
}

/// The end of a turn whose log can no longer be written.
fn unkept(error: &AppendError, is_cancelled: bool) -> TurnEnd {
    let (kind, message) = match error {
        AppendError::Full => (
            "storage_full",
            "the sandbox's disk is full, and what the agent says cannot be kept".to_owned(),
        ),
        AppendError::Broken(_) => ("stream_error", error.to_string()),
    };
    if is_cancelled {
        TurnEnd::of(TurnOutcome::Cancelled, "cancelled", Some(message))
    } else {
        TurnEnd::of(TurnOutcome::Failed, kind, Some(message))
    }
}

/// The end of a turn that had not begun: it does not start by itself.
fn not_begun() -> TurnEnd {
    let message = "the daemon or its sandbox was stopped before the turn began".to_owned();
    TurnEnd::of(TurnOutcome::Lost, "cut", Some(message))
}

fn refuse<T>(reply: ReplySender<T>, refused: RequestRefusal) {
    // The requester may be gone.
    drop(reply.send(Err(SessionError::Refused(refused))));
}
