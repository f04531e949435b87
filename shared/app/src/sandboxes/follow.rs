//! Follows a run: the event stream keeps the card up to date, and polling detects the end even when the stream is
//! silent. Also polls a run that nobody follows any more: the same without the stream, once.
//!
//! Promised: the end is read from the agent's record, never from an event alone; a stream that breaks or falls silent
//! is reopened and caught up; control returns at the given time, or at once when there is news for `decide`.
//! Deliberately absent: aborting, answering and judging, which are separate effects and decisions.

use std::time::Duration;

use bobbin_agent::{
    Agent, AgentError, Observation, Observe, Reason, Retrying, RunCursor, RunRef, RunState,
};
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{AskId, Ms, PostRef, TurnId, digest};
use bobbin_core::base::limits::OTHERS_MS;
use bobbin_core::protocol::effect::Follow;
use bobbin_core::protocol::event::Event;
use bobbin_core::records::ask::{About, Ask};
use bobbin_core::records::card::{Card, CardState, CardStep, PlanLine, Spending};
use bobbin_core::records::flags::{ControlFlags, Queued};
use bobbin_core::records::parked::{Doubt, Doubtful, Seen};
use bobbin_core::records::run::{RunAnswer, RunEnd};
use bobbin_core::tenant::budgets::MicroUsd;
use tokio::time::{Instant, sleep, timeout};

use super::server::Starting;
use super::{RunContext, Sandboxes, WorkTarget};

/// Longest wait for the stream between two rounds of checks.
const TICK_MS: u64 = 250;
/// Interval of status checks while nothing suggests an end.
const LOOK_MS: u64 = 10_000;
/// Interval of checks that confirm a doubt.
const DOUBT_LOOK_MS: u64 = 2_000;
/// A run counts as broken off once it has looked so for this long.
const STOPPED_MS: u64 = 5_000;
/// A prompt that has had no effect for this long never will.
const PENDING_MS: u64 = 20_000;
/// Consecutive connections that ended without a result.
const CUTS_MAX: u32 = 5;
/// First pause before connecting again; doubled each time.
const CUT_PAUSE_MS: u64 = 500;
/// Interval of keep-alive calls to the provider.
const KEEP_ALIVE_MS: u64 = 60_000;
/// Longest time for a keep-alive call.
const KEEP_ALIVE_CALL_MS_MAX: u64 = 3_000;
/// Delay of the first check for waiting work, and of the check that confirms it: a message that has just arrived is
/// counted for a moment even if there is room for it.
const OTHERS_SOON_MS: u64 = 1_000;
/// Consecutive sightings after which there is no room for the waiting work.
const OTHERS_SEEN: u32 = 2;
/// Longest time for such a check.
const OTHERS_CALL_MS_MAX: u64 = 1_000;
/// Longest time to show a card.
const SHOW_MS_MAX: u64 = 20_000;
/// Length of the digest of a card's content.
const DIGEST_CHARS: usize = 16;

/// Follows a run until there is something for `decide`.
pub(super) async fn follow<B: RunContext>(
    sandboxes: &Sandboxes,
    context: &B,
    target: WorkTarget<'_>,
    what: &Follow,
) -> Result<Event, Failure> {
    let agent = sandboxes.agent_in(target).await?;
    let mut watch = Following::new(sandboxes, context, target, what);
    let mut cursor = RunCursor::default();
    let mut cuts = 0;
    loop {
        let error = match watch.listen(&*agent, &mut cursor).await {
            Ok(event) => return Ok(event),
            Err(error) => error,
        };
        let failure = error.failure;
        if !matches!(failure, Failure::SandboxDown { .. }) {
            return Err(failure);
        }
        cuts = if cursor.is_whole() { 1 } else { cuts + 1 };
        if cuts >= CUTS_MAX {
            return Err(failure);
        }
        sleep(Duration::from_millis(CUT_PAUSE_MS << cuts.min(4))).await;
    }
}

/// Polls a run once.
pub(super) async fn poll<B: RunContext>(
    sandboxes: &Sandboxes,
    context: &B,
    target: WorkTarget<'_>,
    what: &Follow,
) -> Result<Event, Failure> {
    let agent = sandboxes.agent_in(target).await?;
    let mut cuts = 0;
    loop {
        let mut watch = Following::new(sandboxes, context, target, what);
        let failure = match watch.once(&*agent).await {
            Ok(event) => return Ok(event),
            Err(error) => error.failure,
        };
        cuts += 1;
        if cuts >= CUTS_MAX || !matches!(failure, Failure::SandboxDown { .. }) {
            return Err(failure);
        }
        sleep(Duration::from_millis(CUT_PAUSE_MS << cuts.min(4))).await;
    }
}

/// Content of a card.
#[derive(PartialEq, Eq, Clone, Debug)]
struct CardContent {
    state: CardState,
    plan: Vec<PlanLine>,
    steps: Vec<CardStep>,
    waiting: usize,
    earlier: usize,
    ends_ms: Option<Ms>,
    spending: Option<Spending>,
}

impl CardContent {
    /// Distinguishes card contents, and the posts that show them.
    fn digest(&self, at: &PostRef) -> String {
        let mut digest = digest(&[&at.channel, &at.id, &format!("{self:?}")]);
        digest.truncate(DIGEST_CHARS);
        digest
    }
}

/// Result of the checks for waiting work.
struct Others {
    looked: Instant,
    /// Delay until the next check.
    pause_ms: u64,
    /// Consecutive checks that found some.
    seen: u32,
}

struct Following<'a, B> {
    sandboxes: &'a Sandboxes,
    context: &'a B,
    target: WorkTarget<'a>,
    what: &'a Follow,
    asked_marks: Option<Instant>,
    others: Others,
    /// Time of the last keep-alive call to the provider.
    kept_alive: Option<Instant>,
    /// Prompts that wait behind the turn.
    waiting: usize,
    /// New location of the card, if it had to be posted again.
    moved: Option<PostRef>,
    doubt: Option<Doubt>,
    /// What the run has spent.
    spent: Option<MicroUsd>,
    /// Digest of the card's content, if known: others may have edited it before.
    shown: Option<String>,
    /// When this worker last showed it.
    shown_at: Option<Instant>,
}

type Listened = Result<Event, AgentError>;

impl<'a, B: RunContext> Following<'a, B> {
    fn new(
        sandboxes: &'a Sandboxes,
        context: &'a B,
        target: WorkTarget<'a>,
        what: &'a Follow,
    ) -> Self {
        Self {
            sandboxes,
            context,
            target,
            what,
            asked_marks: None,
            others: Others { looked: Instant::now(), pause_ms: OTHERS_SOON_MS, seen: 0 },
            kept_alive: None,
            waiting: 0,
            moved: None,
            doubt: what.seen.doubt,
            spent: what.seen.spent,
            shown: what.seen.card.clone(),
            shown_at: None,
        }
    }

    /// Reads the run once, without listening for more.
    async fn once(&mut self, agent: &dyn Agent) -> Listened {
        if let Some(event) = self.flags(self.context.known()).await {
            return Ok(event);
        }
        let mut cursor = RunCursor::default();
        let mut seen = agent.observe(self.run(), &mut cursor, Observe::Once).await?;
        if let Some(event) = self.concluded(&mut seen).await {
            return Ok(event);
        }
        // Once per interval, no matter which delivery polls.
        let interval = |at_ms: Ms| at_ms / KEEP_ALIVE_MS;
        let now_ms = self.context.now_ms();
        if self.what.seen_at_ms.is_none_or(|at| interval(at) != interval(now_ms)) {
            self.keep_alive().await;
        }
        self.show(&seen).await;
        Ok(match self.moved.take() {
            Some(at) => Event::CardMoved(at),
            None => self.still_running(),
        })
    }

    fn is_over_budget(&self) -> bool {
        !self.what.cancel_known
            && self.what.card.budget.is_some_and(|budget| self.spent >= Some(budget))
    }

    fn still_running(&self) -> Event {
        Event::StillRunning(self.seen())
    }

    fn seen(&self) -> Seen {
        Seen { card: self.shown.clone(), spent: self.spent, doubt: self.doubt }
    }

    /// Listens on one connection, until there is an event or it breaks.
    async fn listen(&mut self, agent: &dyn Agent, cursor: &mut RunCursor) -> Listened {
        if let Some(event) = self.around().await {
            return Ok(event);
        }
        loop {
            let look_ms = if self.doubt.is_some() { DOUBT_LOOK_MS } else { LOOK_MS };
            let how = Observe::Follow {
                within: Duration::from_millis(TICK_MS),
                record_after: Duration::from_millis(look_ms),
            };
            let mut seen = agent.observe(self.run(), cursor, how).await?;
            self.keep_alive().await;
            if let Some(event) = self.around().await {
                return Ok(event);
            }
            if !seen.is_whole {
                continue;
            }
            if let Some(event) = self.concluded(&mut seen).await {
                return Ok(event);
            }
            self.show(&seen).await;
            if let Some(at) = self.moved.take() {
                return Ok(Event::CardMoved(at));
            }
        }
    }

    fn run(&self) -> RunRef<'a> {
        let Follow { agent_session, message, further, .. } = self.what;
        RunRef { session: agent_session, message, further }
    }

    /// Evaluates the observation: an ask, an exceeded bound, or the end.
    async fn concluded(&mut self, seen: &mut Observation<'_>) -> Option<Event> {
        if let Some(event) = self.asks(seen).await {
            return Some(event);
        }
        if let Some(event) = self.bounded(seen) {
            return Some(event);
        }
        self.spent = self.spent.max(Some(seen.spent));
        let ended = match seen.state.take() {
            Some(state) => self.ended(state, seen).await,
            None => None,
        };
        ended.or_else(|| self.is_over_budget().then(|| self.still_running()))
    }

    /// Checks that do not depend on the stream: the time limit, the control flags, and other work that needs the
    /// worker.
    async fn around(&mut self) -> Option<Event> {
        if self.context.now_ms() >= self.what.until_ms {
            return Some(self.still_running());
        }
        if let Some(event) = self.requested().await {
            return Some(event);
        }
        let gives_way = self.others_wait().await;
        gives_way.then(|| Event::OthersWait(self.seen()))
    }

    /// Whether there is work that no worker has room for. Prompts that wait behind this run do not count: they would
    /// not start sooner.
    async fn others_wait(&mut self) -> bool {
        if !self.what.gives_way || elapsed_ms(self.others.looked) < self.others.pause_ms {
            return false;
        }
        let bound = Duration::from_millis(OTHERS_CALL_MS_MAX);
        let waiting = timeout(bound, self.context.waiting()).await.unwrap_or(0);
        let behind = u64::try_from(self.waiting).unwrap_or(u64::MAX);
        let others = &mut self.others;
        others.looked = Instant::now();
        (others.seen, others.pause_ms) =
            if waiting > behind { (others.seen + 1, OTHERS_SOON_MS) } else { (0, OTHERS_MS) };
        others.seen >= OTHERS_SEEN
    }

    /// Checks what people have requested, if a check is due.
    async fn requested(&mut self) -> Option<Event> {
        let poll_ms = self.sandboxes.settings.limits.poll.poll_ms;
        let due = self.asked_marks.is_none_or(|at| elapsed_ms(at) >= poll_ms);
        if self.what.cancel_known || !due {
            return None;
        }
        let is_first = self.asked_marks.is_none();
        self.asked_marks = Some(Instant::now());
        // The last write has returned the flags.
        self.flags(self.context.known().filter(|_| is_first)).await
    }

    /// Evaluates the control flags: the known ones, or those read now.
    async fn flags(&mut self, known: Option<ControlFlags>) -> Option<Event> {
        if self.what.cancel_known {
            return None;
        }
        let flags = match known {
            Some(flags) => flags,
            None => self.context.flags(self.target.thread).await?,
        };
        if let Some(by) = self.what.cancelled_by(&flags) {
            return Some(Event::CancelSeen { by: by.clone() });
        }
        if let Some(known) = &self.what.steers
            && let Some(wish) = steer(&flags, &self.what.turn, known)
        {
            return Some(wish);
        }
        let behind = |(turn, _): &&(&TurnId, &Queued)| **turn != self.what.turn;
        self.waiting = flags.waiting().iter().filter(behind).count();
        None
    }

    /// Tells the provider that work goes on, so that a sandbox with a time limit stays alive. Best effort: one that
    /// stops is found stopped, and resumed.
    async fn keep_alive(&mut self) {
        let is_due = |at: Instant| elapsed_ms(at) >= KEEP_ALIVE_MS;
        if !self.kept_alive.is_none_or(is_due) {
            return;
        }
        self.kept_alive = Some(Instant::now());
        let told = self.sandboxes.keep_alive(self.target.sandbox, self.target.generation);
        let bound = Duration::from_millis(KEEP_ALIVE_CALL_MS_MAX);
        match timeout(bound, told).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(
                event = "sandbox.time",
                %error,
                "a sandbox's time could not be extended"
            ),
            Err(_) => tracing::warn!(
                event = "sandbox.time",
                "a sandbox's time could not be extended in time"
            ),
        }
    }

    async fn asks(&self, seen: &Observation<'_>) -> Option<Event> {
        let open = &seen.asks;
        let closed = self
            .what
            .asks
            .iter()
            .find(|ask| !ask.settled && !open.iter().any(|(id, _)| *id == ask.id));
        if let Some(ask) = closed {
            // Unread flags could hold a decision: the next look tells.
            let mut flags = self.context.flags(self.target.thread).await?;
            let settlement = flags.settled.remove(&ask.id);
            return Some(Event::AskClosed { id: ask.id.clone(), settlement });
        }
        self.tell_again(open).await;
        let news = open.iter().find(|(id, _)| !self.what.asks.iter().any(|ask| ask.id == *id));
        news.map(|(id, about)| Event::Asked { id: id.clone(), about: about.clone() })
    }

    /// Tells the agent a decision that was on record before this delivery but did not reach the agent.
    async fn tell_again(&self, open: &[(AskId, About)]) {
        let Some(flags) = self.context.known().filter(|flags| !flags.settled.is_empty()) else {
            return;
        };
        let is_open = |ask: &&Ask| !ask.settled && open.iter().any(|(id, _)| *id == ask.id);
        for ask in self.what.asks.iter().filter(is_open) {
            let Some(settlement) = flags.settled.get(&ask.id) else { continue };
            let asked = (&ask.id, &ask.about);
            let told = self.sandboxes.settle(self.target, asked, &settlement.choice).await;
            if let Err(failure) = told {
                tracing::warn!(event = "ask.untold", thread = %self.target.thread, ?failure, "the agent did not hear a decision; the next look tells it again");
            }
        }
    }

    fn bounded(&self, seen: &Observation<'_>) -> Option<Event> {
        let messages_max = self.what.messages_max;
        let made = u32::try_from(seen.told.messages()).unwrap_or(u32::MAX);
        let looped = (made > messages_max)
            .then(|| format!("The agent made more than {messages_max} steps without finishing."));
        if let Some(reason) = seen.told.retrying().as_ref().and_then(Retrying::over_budget) {
            return Some(Event::Failed(Failure::OverBudget { reason: reason.to_owned() }));
        }
        let waits = || seen.told.retrying()?.later_than(self.what.ends_ms);
        let reason = looped.or_else(waits)?;
        Some(Event::Failed(Failure::TurnFailed { reason }))
    }

    /// The final event, if the run is over.
    async fn ended(&mut self, state: RunState, seen: &Observation<'_>) -> Option<Event> {
        let about = match state {
            RunState::Done(answer) => return Some(Event::Finished(answer)),
            RunState::Busy => {
                self.doubt = None;
                return None;
            }
            RunState::Lost => return Some(broken_off()),
            RunState::Stopped => Doubtful::Stopped,
            RunState::Pending => Doubtful::Pending,
        };
        let now_ms = self.context.now_ms();
        let since_ms = match &self.doubt {
            Some(doubt) if doubt.about == about => doubt.since_ms,
            _ => now_ms,
        };
        self.doubt = Some(Doubt { about, since_ms });
        let lasted_ms = now_ms.saturating_sub(since_ms);
        match about {
            Doubtful::Stopped if lasted_ms >= STOPPED_MS => Some(broken_off()),
            Doubtful::Pending if lasted_ms >= PENDING_MS => Some(self.never_began(seen).await),
            _ => None,
        }
    }

    /// The prompt had no effect. If the agent gave a reason, the turn ends with it. Otherwise its server may be unable
    /// to start anything (as after an interrupted first run); a restart cures that, and then the prompt is sent again.
    async fn never_began(&self, seen: &Observation<'_>) -> Event {
        let trouble = seen.told.trouble().cloned();
        if trouble.is_none() && !self.what.cancel_known {
            let within_ms = self.sandboxes.settings.limits.turn.health_start_ms;
            let restarted = self.sandboxes.ensure_server(
                self.context,
                (self.target.sandbox, self.target.generation),
                Starting::AGAIN,
                within_ms,
            );
            return Event::Failed(match restarted.await {
                Ok(_) => Failure::SandboxDown {
                    seen: format!(
                        "the agent accepted the prompt but never began to answer; if that happens again, the operator has to check that its provider knows MODEL ({})",
                        self.what.card.model
                    ),
                },
                Err(failure) => failure,
            });
        }
        let never = || RunEnd::Error { reason: "it never began to answer".to_owned() };
        let (steps, earlier) = seen.told.steps(false);
        Event::Finished(RunAnswer {
            end: trouble.map_or_else(never, Reason::end),
            text: String::new(),
            usage: Default::default(),
            steps,
            earlier,
            plan: seen.told.plan(),
        })
    }

    /// Shows the card if it has changed, at the platform's pace.
    async fn show(&mut self, seen: &Observation<'_>) {
        let Some(at) = &self.what.card.at else { return };
        // A worker whose visibility has expired must not overwrite what the next one shows.
        if self.context.now_ms() >= self.context.visible_until_ms() {
            return;
        }
        let pace_ms = self.sandboxes.settings.limits.chat.card_edit_ms;
        if self.shown_at.is_some_and(|at| elapsed_ms(at) < pace_ms) {
            return;
        }
        let (steps, earlier) = seen.told.steps(false);
        let picture = CardContent {
            state: self.card_state(seen),
            plan: seen.told.plan(),
            steps,
            earlier,
            waiting: self.waiting,
            ends_ms: self.sandboxes.ends_soon(
                self.target.sandbox,
                self.target.generation,
                self.context.now_ms(),
            ),
            spending: self
                .what
                .card
                .budget
                .filter(|_| self.what.card.shows_budget)
                .map(|budget| Spending { spent: seen.spent, budget }),
        };
        let digest = picture.digest(at);
        if self.shown.as_ref() == Some(&digest) {
            return;
        }
        let (since_ms, now_ms) = (self.what.since_ms, self.context.now_ms());
        let state = picture.state.clone();
        let card = Card {
            plan: picture.plan.clone(),
            steps: picture.steps.clone(),
            earlier: picture.earlier,
            waiting: picture.waiting,
            ends_ms: picture.ends_ms,
            spending: picture.spending,
            set_up: self.what.card.set_up.clone(),
            ..Card::new(&self.what.turn, state, since_ms, now_ms, &self.what.card.model)
        };
        let showing = self.context.show(self.target.thread, &self.what.card.kind, at, card);
        match timeout(Duration::from_millis(SHOW_MS_MAX), showing).await {
            Ok(stands) => self.moved = stands,
            Err(_) => tracing::warn!(event = "card.late", "a card could not be shown in time"),
        }
        (self.shown, self.shown_at) = (Some(digest), Some(Instant::now()));
    }

    fn card_state(&self, seen: &Observation<'_>) -> CardState {
        match &self.what.card.state {
            CardState::Stopping => CardState::Stopping,
            _ if !seen.asks.is_empty() => CardState::Waiting,
            CardState::Waiting => CardState::Working,
            other => other.clone(),
        }
    }
}

/// The prompt has to be sent once more.
fn broken_off() -> Event {
    let seen = "the server restarted during the run".to_owned();
    Event::Failed(Failure::SandboxDown { seen })
}

/// The oldest waiting prompt that somebody wants to send into this turn's run; known requests are skipped.
fn steer(flags: &ControlFlags, turn: &TurnId, known: &[TurnId]) -> Option<Event> {
    let wanted = |(id, queued): &(&TurnId, &Queued)| {
        *id != turn && queued.prompt.is_some() && !known.contains(id)
    };
    let mut waiting = flags.waiting().into_iter().filter(wanted);
    waiting.find_map(|(id, queued)| {
        let by = flags.now.get(id)?.clone();
        Some(Event::SteerSeen { turn: id.clone(), queued: queued.clone(), by })
    })
}

fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
