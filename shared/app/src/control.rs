//! The control lane: stop, status, decisions. Never waits behind a run, and writes nothing but control flags, by condition.

mod configure;
mod own_keys;
mod sandboxes;

use std::sync::Arc;
use std::time::Duration;

use bobbin_chat::{Chats, Say};
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::forward::bring_forward;
use bobbin_cloud::metrics::Metrics;
use bobbin_cloud::queue::{QueueError, Queues};
use bobbin_cloud::store::Store;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, PostKind, PostRef, SandboxKey, ThreadKey, TurnId, digest};
use bobbin_core::base::limits::Limits;
use bobbin_core::base::person::Person;
use bobbin_core::protocol::decide::queue::{Steering, steer};
use bobbin_core::protocol::decide::words;
use bobbin_core::protocol::drive::Verdict;
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::protocol::signals::{Alarm, CONTROL_DROPPED};
use bobbin_core::records::ask::{Ask, Choice};
use bobbin_core::records::card::{Card, CardState, Post, card_kind};
use bobbin_core::records::flags::{ControlFlags, Queued, StoppedAll};
use bobbin_core::records::ledger::Entry;
use bobbin_core::records::message::{Announce, Body, Control, Message, Prompt, Want, Work};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::session::Session;
use bobbin_core::records::turn::Turn;
use bobbin_core::records::usage::Usage;
use bobbin_core::records::workspace::Workspace;
use bobbin_core::shown::asks::{self, Ruling};
use bobbin_core::shown::status;
use bobbin_core::tenant::access::Refusal;
use bobbin_core::tenant::settings::{Change, Settings};
use bobbin_core::text::{one_line, shorten};

use crate::arrival::Arrival;
use crate::sandboxes::{Sandboxes, Target};
use crate::tenants::Tenants;

/// So long after a message was deleted the announcement of its prompt may still be under way.
const ANNOUNCED_MS: u64 = 5_000;
/// Characters of a task that are said where it runs again.
const AGAIN_CHARS_MAX: usize = 200;
/// The control lane waits no longer than this for an abort: other threads' Stops need its slots. The cancel flag stays, and the
/// worker that follows the run sees it and aborts.
const ABORT_MS_MAX: u64 = 5_000;

/// What the control lane works with.
pub struct Lane<'a> {
    /// Where the thread's record and its flags are.
    pub store: &'a Store,
    /// Where a prompt that is run again goes.
    pub queues: &'a Queues,
    /// Where people are answered.
    pub chat: &'a Chats,
    /// Where a run is ended and an ask is answered.
    pub tenants: &'a Tenants,
    /// The bounds of every wait, retry and size.
    pub limits: &'a Limits,
    /// Model of the agent, for cards.
    pub model: &'a str,
    /// Where it is counted that something was given up.
    pub metrics: &'a Metrics,
}

/// Counts something of the control lane that was given up.
pub(crate) fn dropped(metrics: &Metrics) {
    tracing::error!(event = CONTROL_DROPPED, "what somebody asked for was given up");
    metrics.count(Alarm::WorkDropped, now_ms());
}

impl Lane<'_> {
    /// Does what is wanted. What does not pass, or not in time, is told in the thread.
    pub async fn run(&self, control: &Control, arrival: Arrival) -> Verdict {
        let Err(failure) = self.carry(control, arrival).await else {
            return Verdict::Done;
        };
        if let Some(held) = arrival.held(&failure, self.limits.retry.control_ms, &self.limits.retry)
        {
            return held;
        }
        tracing::warn!(event = "control.failed", thread = %control.thread, control.id = %control.id, ?failure, "a control word could not be carried out");
        let verdict = match failure {
            Failure::Wait { seen, .. } | Failure::Outage { seen, .. } => {
                self.tell_in_thread(control, &seen, arrival).await
            }
            Failure::NonRecoverable { advice } => {
                self.tell_in_thread(control, &advice, arrival).await
            }
            // What it was about is over.
            _ => Verdict::Done,
        };
        if verdict == Verdict::Done {
            dropped(self.metrics);
        }
        verdict
    }

    /// Tells in the thread that nothing came of what somebody said, where they wait for it to have an effect.
    pub(crate) async fn tell_in_thread(
        &self,
        control: &Control,
        seen: &str,
        arrival: Arrival,
    ) -> Verdict {
        let Some(word) = control.want.effect() else {
            return Verdict::Done;
        };
        let words = words::not_carried_out(word, seen);
        let id = control.id.as_str().into();
        self.call(&control.thread, &id, &control.by, words, arrival).await
    }

    /// Calls a person in the thread with these words about the message with this id.
    pub(crate) async fn call(
        &self,
        thread: &ThreadKey,
        id: &TurnId,
        by: &Person,
        words: String,
        arrival: Arrival,
    ) -> Verdict {
        let post =
            Post::Calling { people: vec![by.id.clone()], post: Box::new(Post::Notice(words)) };
        let told =
            async { self.chat.of(thread)?.post(thread, id, &PostKind::Notice, None, &post).await };
        let Err(failure) = told.await else {
            return Verdict::Done;
        };
        let held = arrival.held(&failure, self.limits.retry.owed_ms, &self.limits.retry);
        held.unwrap_or_else(|| {
            tracing::error!(event = "control.untold", %thread, control.id = %id, ?failure, "who said it could not be told that nothing came of it");
            Verdict::Done
        })
    }

    async fn carry(&self, control: &Control, arrival: Arrival) -> Result<(), Failure> {
        let Arrival { receive, now_ms, .. } = arrival;
        // What ingress says itself needs nobody's leave.
        match &control.want {
            Want::Say { text } => return self.chat.tell(&control.reply, text).await,
            Want::Help { text } => return self.answer(control, text).await,
            _ => {}
        }
        let found = self.store.record_with_settings(&control.thread).await;
        let found = found.map_err(|e| e.failure())?;
        // Nor does what who runs the stack says.
        if let Want::Halt { turn } = &control.want {
            return self.halt(control, turn, &found).await;
        }
        if let Err(refusal) = admitted(control, &found.settings) {
            return self.chat.tell(&control.reply, &refusal.to_string()).await;
        }
        match &control.want {
            Want::Say { .. } | Want::Help { .. } | Want::Halt { .. } => Ok(()),
            Want::StopAll => self.stop_all(control, &found, arrival).await,
            Want::Now { turn } => self.now(control, &found, turn).await,
            Want::Diff { turn } => self.diff(control, turn.as_ref(), &found).await,
            Want::Configure { change } => {
                self.configure(control, change, found.settings, now_ms).await
            }
            Want::OwnKey { key } => self.own_key(control, key, found.settings, now_ms).await,
            Want::Withdraw { turn } => self.take_back(control, turn, &found.flags, arrival).await,
            Want::Sandboxes { page, in_thread } => {
                self.list(control, (*page, *in_thread), &found, now_ms).await
            }
            Want::Connect { to } => self.connect(control, to.as_ref(), &found, now_ms).await,
            Want::AskDestroy { sandbox } => {
                self.ask_destroy(control, sandbox, &found, now_ms).await
            }
            Want::Operate { sandbox, operation } => {
                self.operate(control, (sandbox, *operation), &found, now_ms).await
            }
            Want::Status => self.status(control, &found, now_ms).await,
            Want::Again { turn } => self.again(control, turn, now_ms).await,
            Want::Stop { turn } => self.stop(control, turn.as_ref(), &found, arrival).await,
            Want::Settle { ask, choice } => {
                self.settle(control, &found, (ask, choice), receive, now_ms).await
            }
        }
    }

    /// The sandboxes, with the credentials of the thread's own.
    async fn sandboxes(
        &self,
        thread: &ThreadKey,
        found: &Loaded,
    ) -> Result<Arc<Sandboxes>, Failure> {
        let (session, settings) = (found.session.as_ref(), &found.settings);
        let tenant = thread.tenant();
        self.tenants.of_record(&tenant, session, settings).await
    }

    /// The record, if there is one, and the control flags beside it.
    async fn record(&self, thread: &ThreadKey) -> Result<(Option<Session>, ControlFlags), Failure> {
        self.store.record(thread).await.map_err(|e| e.failure())
    }

    async fn entries(&self, thread: &ThreadKey, turns: &[TurnId]) -> Result<Vec<Entry>, Failure> {
        let found = self.store.entries(thread, turns).await;
        found.map_err(|e| e.failure())
    }

    async fn status(&self, control: &Control, found: &Loaded, now_ms: Ms) -> Result<(), Failure> {
        let Loaded { session, flags, .. } = found;
        let wanted = session.as_ref().map(status::wanted);
        let entries = self.entries(&control.thread, &wanted.unwrap_or_default()).await?;
        let words = status::words(session.as_ref(), flags, &entries, now_ms);
        let shared = session.as_ref().and_then(|session| {
            // Discord shows a thread's name, and pings nobody by it.
            status::shared(session, |thread| match thread {
                ThreadKey::Discord { thread, .. } => Some(format!("<#{thread}>")),
                _ => None,
            })
        });
        let words = match shared {
            Some(shared) => format!("{words}\n{shared}"),
            None => words,
        };
        self.answer(control, &words).await
    }

    /// What a turn (none: the last one that changed something) changed in the files, as the ledger keeps it: its sandbox
    /// may be paused or gone.
    async fn diff(
        &self,
        control: &Control,
        turn: Option<&TurnId>,
        found: &Loaded,
    ) -> Result<(), Failure> {
        let thread = &control.thread;
        let last = match turn {
            Some(_) => None,
            None => self.changed_last(thread, found).await?,
        };
        if last.as_ref().is_some_and(|last| last.usage.files == 0) {
            const UNKNOWN: &str = "What the last task changed in the files could not be found out. Ask the agent for git status and git diff.";
            return self.chat.tell(&control.reply, UNKNOWN).await;
        }
        let Some(turn) = turn.or(last.as_ref().map(|last| &last.turn)) else {
            const NOTHING: &str = "No task of this thread has changed files yet.";
            return self.chat.tell(&control.reply, NOTHING).await;
        };
        let patch = self.store.patch(thread, turn).await.map_err(|e| e.failure())?;
        match patch {
            Some(patch) => {
                let chat = self.chat.of(thread)?;
                chat.tell(&control.reply, Say::Diff { thread, turn, patch: &patch }).await
            }
            None => {
                const GONE: &str = "The changes of that task are not kept any more, or could not be read when it ended.";
                self.chat.tell(&control.reply, GONE).await
            }
        }
    }

    /// The last turn of the thread that changed files, or may have.
    async fn changed_last(
        &self,
        thread: &ThreadKey,
        found: &Loaded,
    ) -> Result<Option<Entry>, Failure> {
        let ended = found.session.iter().flat_map(|session| &session.ended);
        let turns: Vec<TurnId> = ended.map(|ended| ended.id.clone()).collect();
        let entries = self.entries(thread, &turns).await?;
        let may_have = |entry: &Entry| entry.usage.files > 0 || entry.usage.files_unknown;
        let changed = entries.into_iter().filter(may_have);
        Ok(changed.max_by_key(|entry| entry.ended_at_ms))
    }

    /// The prompt of a turn that came to nothing goes into the thread's group once more, as a turn of its own whose id
    /// is made of the first one's: however often it is clicked, it runs once.
    async fn again(&self, control: &Control, turn: &TurnId, now_ms: Ms) -> Result<(), Failure> {
        let found = self
            .entries(&control.thread, &[turn.to_owned()])
            .await?
            .pop()
            .and_then(|entry| entry.again);
        let Some(prompt) = found else {
            const GONE: &str =
                "The text of that task is not kept any more. Send it again as a new message.";
            return self.chat.tell(&control.reply, GONE).await;
        };
        let id: TurnId = again_id(&control.thread, turn).into();
        self.name_again(control, &id, &prompt.text).await;
        let message = Body::Message(Message {
            id,
            thread: control.thread.clone(),
            accepted_at_ms: now_ms,
            work: Work::Prompt(Prompt {
                by: control.by.clone(),
                membership: control.membership.clone(),
                ..prompt
            }),
        });
        let later = |e: QueueError| Failure::Wait { after_ms: 0, seen: e.to_string() };
        self.queues.send(&message).await.map_err(later)?;
        if let Some(announce) = Announce::of(&message) {
            self.queues.send(&Body::Announce(announce)).await.map_err(later)?;
        }
        self.chat.tell(&control.reply, "It runs again, below.").await
    }

    /// Says in the thread what runs again: its new card has no words of it. That it cannot be said stops nothing.
    async fn name_again(&self, control: &Control, id: &TurnId, task: &str) {
        let task = shorten(&one_line(task), AGAIN_CHARS_MAX);
        let words = format!("{} runs this again: {task}", one_line(&control.by.name));
        let notice = Post::Notice(words);
        // Not the turn's own name: what its run has to say goes by that.
        let name = TurnId::from(format!("{id}-task"));
        let thread = &control.thread;
        let said = async {
            self.chat.of(thread)?.post(thread, &name, &PostKind::Notice, None, &notice).await
        };
        if let Err(failure) = said.await {
            tracing::info!(event = "again.unnamed", thread = %control.thread, ?failure, "what runs again could not be named");
        }
    }

    /// Answers where the question stands: to who asked, or in the thread.
    async fn answer(&self, control: &Control, words: &str) -> Result<(), Failure> {
        let (thread, id) = (&control.thread, &control.id.as_str().into());
        let chat = self.chat.of(thread)?;
        chat.tell(&control.reply, Say::Answer { thread, id, words }).await
    }

    /// The flag first: whoever follows the run sees it, even if the abort does not get through.
    async fn stop(
        &self,
        control: &Control,
        wanted: Option<&TurnId>,
        found: &Loaded,
        arrival: Arrival,
    ) -> Result<(), Failure> {
        let now_ms = arrival.now_ms;
        let Loaded { session, flags, .. } = found;
        let running = session.as_ref().and_then(|session| session.turn.as_ref());
        let turn = match (wanted, running) {
            (Some(id), Some(turn)) if turn.id != *id && turn.covers(id) => {
                return self.sent_already(control, turn, id, now_ms).await;
            }
            (Some(id), running) if running.is_none_or(|turn| turn.id != *id) => {
                let ended = self.entries(&control.thread, std::slice::from_ref(id)).await?.pop();
                return match ended {
                    Some(turn) => self.show_ended(&control.thread, &turn).await,
                    None => self.withdraw(control, id, flags.queued.get(id), now_ms).await,
                };
            }
            (Some(_), Some(turn)) => turn,
            (None, Some(turn)) if arrival.may_mean(turn.accepted_at_ms) => turn,
            (_, _) => {
                return self.chat.tell(&control.reply, "Nothing is running here.").await;
            }
        };
        self.cancel(control, found, turn).await?;
        if wanted.is_none() {
            self.say_done(control, "Stopping…").await;
        }
        Ok(())
    }

    /// Says what has been done already. A word that cannot be said is no reason to do it again: the cards say it too, and what
    /// runs by then may be another turn.
    async fn say_done(&self, control: &Control, words: &str) {
        if let Err(failure) = self.chat.tell(&control.reply, words).await {
            tracing::warn!(event = "control.unsaid", thread = %control.thread, control.id = %control.id, ?failure, "what was asked for is done; it could not be said");
        }
    }

    /// The same for exactly this turn; one that runs no more, or never did, is left alone.
    async fn halt(&self, control: &Control, id: &TurnId, found: &Loaded) -> Result<(), Failure> {
        match found.session.as_ref().and_then(|session| session.turn.as_ref()) {
            Some(turn) if turn.id == *id => self.cancel(control, found, turn).await,
            _ => Ok(()),
        }
    }

    /// Control flags the running turn as cancelled, and ends its run.
    async fn cancel(&self, control: &Control, found: &Loaded, turn: &Turn) -> Result<(), Failure> {
        self.mark(&control.thread, &turn.id, control).await?;
        let session = found.session.as_ref();
        let agent_session = session.and_then(|session| session.conversation.session.as_ref());
        let (Some(agent_session), Some(prompted)) = (agent_session, turn.stage.prompted()) else {
            self.look_now(control, turn).await;
            return Ok(());
        };
        let aborted = async {
            let sandboxes = self.sandboxes(&control.thread, found).await?;
            let (sandbox, workspace) = place(&control.thread, found);
            let target = Target {
                thread: &control.thread,
                sandbox: &sandbox,
                generation: prompted.generation,
                workspace: &workspace,
            };
            let messages = turn.messages();
            sandboxes.abort_answering(target, prompted.generation, agent_session, &messages).await
        };
        let silent =
            |_| Err(Failure::SandboxDown { seen: "the agent did not answer in time".to_owned() });
        let aborted = tokio::time::timeout(Duration::from_millis(ABORT_MS_MAX), aborted);
        if let Err(failure) = aborted.await.unwrap_or_else(silent) {
            tracing::info!(event = "run.abort.failed", thread = %control.thread, ?failure, "the abort did not get through; the worker will see the mark");
        }
        self.look_now(control, turn).await;
        Ok(())
    }

    /// Who waits for what becomes of a word does not wait for the time of the next look.
    async fn look_now(&self, control: &Control, turn: &Turn) {
        // What does not come now comes by its time.
        let thread = &control.thread;
        let _ = bring_forward(self.store, self.queues, thread, &turn.id, None).await;
    }

    /// The queue first, so that nothing of it begins when the run ends: one flag for what nobody has announced yet, and a flag
    /// each, by which their cards are known. Nothing is said before all is flagged and the run is ended.
    async fn stop_all(
        &self,
        control: &Control,
        found: &Loaded,
        arrival: Arrival,
    ) -> Result<(), Failure> {
        let now_ms = arrival.now_ms;
        let Loaded { session, flags, .. } = found;
        let running = session.as_ref().and_then(|session| session.turn.as_ref());
        let running = running.filter(|turn| arrival.may_mean(turn.accepted_at_ms));
        let waiting = flags.waiting();
        let behind: Vec<_> = waiting
            .into_iter()
            .filter(|(turn, _)| !running.is_some_and(|running| running.covers(turn)))
            .filter(|(_, queued)| arrival.may_mean(queued.accepted_at_ms))
            .take(self.limits.record.thread_queue)
            .collect();
        let id = control.id.as_str().into();
        let all = StoppedAll { by: control.by.clone(), until_ms: arrival.sent_ms };
        let flagged = self.store.mark_stopped_all(&control.thread, &id, &all);
        flagged.await.map_err(|e| e.failure())?;
        for (turn, _) in &behind {
            self.mark(&control.thread, turn, control).await?;
        }
        if let Some(turn) = running {
            self.cancel(control, found, turn).await?;
        }
        let words = words::stopped_all(running.is_some(), behind.len());
        self.say_done(control, &words).await;
        let mut unshown = Ok(());
        for (turn, queued) in &behind {
            let shown = self.show_withdrawn(control, turn, queued, now_ms).await;
            unshown = unshown.and(shown);
        }
        if let Err(failure) = unshown {
            tracing::warn!(event = "control.unsaid", thread = %control.thread, control.id = %control.id, ?failure, "a card that waits is shown as withdrawn when its message comes");
        }
        Ok(())
    }

    /// The flag alone: whoever follows the run puts the intent on record and sends the words.
    async fn now(&self, control: &Control, found: &Loaded, turn: &TurnId) -> Result<(), Failure> {
        let words = match steer(found.session.as_ref(), &found.flags, turn) {
            Steering::Flag => {
                let marked = self
                    .store
                    .mark_now(&control.thread, turn, &control.by)
                    .await
                    .map_err(|e| e.failure())?;
                if marked {
                    if let Some(running) = found.session.as_ref().and_then(|it| it.turn.as_ref()) {
                        self.look_now(control, running).await;
                    }
                    return Ok(());
                } else {
                    words::SENDS_ALREADY
                }
            }
            Steering::Sent => words::SENT_ALREADY,
            Steering::Over => words::NOT_WAITING,
            Steering::NothingRuns => words::NOTHING_RUNS,
            Steering::NotKept => words::NOT_KEPT,
        };
        self.chat.tell(&control.reply, words).await
    }

    /// A prompt that was sent into the run cannot be taken out of it: its card, which may show that it is being withdrawn, gets
    /// its words back.
    async fn sent_already(
        &self,
        control: &Control,
        turn: &Turn,
        id: &TurnId,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let steered = turn.steered.iter().find(|one| one.turn == *id);
        if let Some((steered, at)) = steered.and_then(|one| Some((one, one.card.as_ref()?))) {
            let state = CardState::Ended {
                outcome: Outcome::Joined { turn: turn.id.clone() },
                usage: Usage::default(),
            };
            let card = Card::new(id, state, steered.accepted_at_ms, now_ms, self.model);
            self.show(&control.thread, at, &PostKind::Card, card).await?;
        }
        self.chat.tell(&control.reply, words::SENT_ALREADY).await
    }

    /// The click's own answer showed "stopping" on the card after its last words: they are put back.
    async fn show_ended(&self, thread: &ThreadKey, turn: &Entry) -> Result<(), Failure> {
        let Some(at) = &turn.card else { return Ok(()) };
        let state = CardState::Ended { outcome: turn.outcome.clone(), usage: turn.usage };
        let (since_ms, now_ms) = (turn.accepted_at_ms, turn.ended_at_ms);
        let model = turn.selection.model.as_deref().unwrap_or(self.model);
        let card = Card::new(&turn.turn, state, since_ms, now_ms, model);
        self.show(thread, at, &card_kind(turn.rolls), card).await
    }

    async fn show(
        &self,
        thread: &ThreadKey,
        at: &PostRef,
        kind: &PostKind,
        card: Card,
    ) -> Result<(), Failure> {
        let turn = card.turn.clone();
        let post = Post::Card(card);
        self.chat.of(thread)?.post(thread, &turn, kind, Some(at), &post).await?;
        Ok(())
    }

    /// The message of a prompt was deleted: it is withdrawn if it still waits. Nothing is written for any other message. Its
    /// announcement may be a moment behind, so one that is not known is looked for once more.
    async fn take_back(
        &self,
        control: &Control,
        turn: &TurnId,
        flags: &ControlFlags,
        arrival: Arrival,
    ) -> Result<(), Failure> {
        match flags.queued.get(turn) {
            Some(queued) if !queued.refused => {
                self.withdraw(control, turn, Some(queued), arrival.now_ms).await
            }
            None if !arrival.is_older_than(ANNOUNCED_MS) => Err(Failure::Wait {
                after_ms: ANNOUNCED_MS,
                seen: "its announcement may be under way".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// It still waits in the queue: it is told at once, and ends by the flag when its message comes.
    async fn withdraw(
        &self,
        control: &Control,
        turn: &TurnId,
        queued: Option<&Queued>,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        self.mark(&control.thread, turn, control).await?;
        match queued {
            Some(queued) => self.show_withdrawn(control, turn, queued, now_ms).await,
            None => Ok(()),
        }
    }

    async fn show_withdrawn(
        &self,
        control: &Control,
        turn: &TurnId,
        queued: &Queued,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let Some(at) = &queued.card else {
            return Ok(());
        };
        let state = CardState::Ended {
            outcome: Outcome::Cancelled { by: control.by.name.clone() },
            usage: Usage::default(),
        };
        let card = Card::new(turn, state, queued.accepted_at_ms, now_ms, self.model);
        self.show(&control.thread, at, &PostKind::Card, card).await
    }

    async fn mark(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        control: &Control,
    ) -> Result<(), Failure> {
        self.store.mark_cancelled(thread, turn, &control.by).await.map_err(|e| e.failure())
    }

    /// The first decision settles the ask; who comes later, or with something that does not fit, is told so.
    async fn settle(
        &self,
        control: &Control,
        found: &Loaded,
        (ask, choice): (&str, &Choice),
        receive: u32,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let Loaded { session, flags, .. } = found;
        let record = session.as_ref().map(|session| (session, flags));
        let ruling = asks::rule(record, (ask, choice), &control.by, receive, now_ms);
        let (generation, ask, settlement) = match ruling {
            Ruling::Mark { generation, ask, settlement } => (generation, ask, settlement),
            Ruling::TellAgent { generation, ask, choice } => {
                return self.carry_out(control, found, generation, (ask, &choice)).await;
            }
            Ruling::TellPerson(words) => return self.chat.tell(&control.reply, &words).await,
        };
        let first = self
            .store
            .mark_settled(&control.thread, &ask.id, &settlement)
            .await
            .map_err(|e| e.failure())?;
        if first {
            return self.carry_out(control, found, generation, (ask, &settlement.choice)).await;
        }
        let (_, flags) = self.record(&control.thread).await?;
        let words = flags
            .settled
            .get(&ask.id)
            .map_or_else(|| asks::OVER.to_owned(), |first| asks::too_late(ask, first));
        self.chat.tell(&control.reply, &words).await
    }

    async fn carry_out(
        &self,
        control: &Control,
        found: &Loaded,
        generation: u32,
        (ask, decision): (&Ask, &Choice),
    ) -> Result<(), Failure> {
        let sandboxes = self.sandboxes(&control.thread, found).await?;
        let (sandbox, workspace) = place(&control.thread, found);
        let target = Target {
            thread: &control.thread,
            sandbox: &sandbox,
            generation,
            workspace: &workspace,
        };
        sandboxes.settle(target, generation, (&ask.id, &ask.about), decision).await?;
        if let Some(turn) = found.session.as_ref().and_then(|it| it.turn.as_ref()) {
            self.look_now(control, turn).await;
        }
        Ok(())
    }
}

/// Where the thread's turns work.
fn place(thread: &ThreadKey, found: &Loaded) -> (SandboxKey, Workspace) {
    match &found.session {
        Some(session) => (session.sandbox_key(), session.workspace().unwrap_or_default()),
        None => (thread.sandbox(), Workspace::Common),
    }
}

/// Whether the settings let somebody say a word; checked with each click. Who manages the place may always see and
/// change the settings, or a list without them in it could never be mended.
fn admitted(control: &Control, settings: &Settings) -> Result<(), Refusal> {
    let mends = match &control.want {
        Want::Configure { change: Change::Show } => control.membership.manages,
        Want::Configure { .. } | Want::OwnKey { .. } => true,
        _ => false,
    };
    if mends { Ok(()) } else { settings.admit(&control.membership, &control.by.id) }
}

/// The id of the turn that runs a turn's task again.
fn again_id(thread: &ThreadKey, turn: &TurnId) -> String {
    format!("again-{}", &digest(&["again", &thread.to_string(), turn])[..24])
}
