//! Shared sandboxes: how one gets a name, how a thread joins and leaves it, which thread works in the common checkout,
//! and which threads are told what happened to it.

use super::{Context, Next, finish, notice, record, secrets, stray_run, words};
use crate::base::ids::{SandboxKey, SandboxName, ThreadKey};
use crate::base::person::{Membership, Person};
use crate::protocol::effect::{ChatEffect, Effect};
use crate::records::message::Prompt;
use crate::records::observations::NameWrite;
use crate::records::outcome::Outcome;
use crate::records::sandbox::Phase;
use crate::records::session::Session;
use crate::records::tool_sandbox;
use crate::records::turn::EndedTurn;

/// Deliveries in which the common checkout is checked often; after these it is checked now and then.
const OFTEN: u32 = 20;
const NOW_AND_THEN: u32 = 120;
/// Milliseconds between two checks after those.
const SELDOM_MS: u64 = 15 * 60_000;
/// A waiting turn counts as gone after this many missed checks.
const MISSED_LOOKS: u64 = 3;

/// A prompt comes to a thread without a turn: the thread moves to the sandbox that the prompt names, or leaves a
/// sandbox that no longer exists. `None`: it is where it should be.
pub(super) fn arrive(
    session: &mut Session,
    prompt: &Prompt,
    context: &Context<'_>,
) -> Option<Next> {
    let Some(name) = &prompt.wants.sandbox else {
        let is_lost = session.place.link.is_some() && !session.sandbox.takes_threads();
        return is_lost.then(|| go_to(session, None, context));
    };
    if session.sandbox.sharing.name.as_ref() == Some(name) {
        join(session, context);
        return None;
    }
    match session.observed.sandbox.name_found.clone() {
        None => Some(Next::Do(Effect::FindName { name: name.clone() })),
        // A tool sandbox is not for threads.
        Some(Some(key)) if !tool_sandbox::is_seen_from(None, (name, &key)) => None,
        Some(Some(key)) if key != session.sandbox_key() => Some(go_to(session, Some(key), context)),
        // The name points to a record that does not have it: the turn says that there is no such sandbox.
        Some(Some(_)) => None,
        Some(None) if prompt.wants.provider.is_none() => None,
        Some(None) => {
            let id = &context.delivery.message.id;
            let key = SandboxKey::without_thread(&session.thread.tenant(), id);
            if session.sandbox_key() != key {
                return Some(go_to(session, Some(key), context));
            }
            give_name(session, name);
            join(session, context);
            None
        }
    }
}

/// Why the thread is not in the sandbox that the prompt names.
pub(super) fn missing(session: &Session, prompt: &Prompt) -> Option<String> {
    let name = prompt.wants.sandbox.as_ref()?;
    if session.sandbox.sharing.name.as_ref() != Some(name) {
        return Some(words::no_sandbox(name, &session.thread));
    }
    let is_in =
        session.place.link.is_none() || session.sandbox.sharing.threads.contains(&session.thread);
    (!is_in).then(|| words::too_many_threads(name, &session.thread))
}

/// Adds the thread to the sandbox's threads, if there is room.
fn join(session: &mut Session, context: &Context<'_>) {
    let threads = &mut session.sandbox.sharing.threads;
    if threads.len() < context.delivery.limits.share.sandbox_threads {
        threads.insert(session.thread.clone());
    }
}

/// Records the name in the same transaction as the records, on condition that no sandbox has it.
pub(super) fn give_name(session: &mut Session, name: &SandboxName) {
    session.observed.writes.names.push(NameWrite {
        name: name.clone(),
        sandbox: session.sandbox_key(),
        released: false,
    });
    session.sandbox.sharing.name = Some(name.clone());
}

/// Releases the sandbox's name in the same transaction as the records.
pub(super) fn give_up_name(session: &mut Session) {
    if let Some(name) = session.sandbox.sharing.name.take() {
        session.observed.writes.names.push(NameWrite {
            name,
            sandbox: session.sandbox_key(),
            released: true,
        });
    }
}

/// The thread moves to another sandbox, or with `None` to its own. That one is read with the message's next delivery.
fn go_to(session: &mut Session, to: Option<SandboxKey>, context: &Context<'_>) -> Next {
    // Others bring a shared sandbox up again, and the run with it. If the run cannot be reached, the sandbox's sweep
    // ends the wait.
    let may_run = match session.sandbox.phase {
        Phase::Active => true,
        Phase::Resuming | Phase::Pausing => session.sandbox.is_shared(),
        _ => false,
    };
    if may_run && let Some(next) = stray_run::end(session) {
        return next;
    }
    if may_run && session.stray.is_some() {
        return Next::Hold {
            delay_ms: context.delivery.limits.retry.backoff_ms_max,
            why: "a run of the thread may still be going on in the sandbox that it leaves"
                .to_owned(),
        };
    }
    record::leave_workspace(session);
    session.sandbox.sharing.threads.remove(&session.thread);
    session.sandbox.sharing.waiting.retain(|one| one.thread != session.thread);
    session.observed.sandbox.left = Some(session.sandbox_key());
    session.place.link = to.filter(|key| *key != session.thread.sandbox());
    record::leave(session);
    // The agent of this sandbox does not know what another sandbox's agent was told.
    session.conversation.briefed = None;
    session.place.in_common = false;
    Next::Hold { delay_ms: 0, why: "the thread moves to another sandbox".to_owned() }
}

/// The thread whose turn works in the common checkout, if the present turn waits for that.
pub(super) fn holder(session: &Session) -> Option<ThreadKey> {
    let turn = session.turn.as_ref()?;
    if session.sandbox.is_in_use_by(&session.thread, &turn.id) || !session.works_in_common() {
        return None;
    }
    let holder = session.sandbox.common_in_use_by(&session.thread)?;
    Some(holder.thread.clone())
}

/// The turn cannot have its workspace yet: it queues, and checks again later.
pub(super) fn wait_for_workspace(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    if session.place.link.is_some() && !session.sandbox.takes_threads() {
        return Some(go_to(session, None, context));
    }
    let limits = context.delivery.limits;
    let accepted_at_ms = session.turn.as_ref()?.accepted_at_ms;
    if context.now_ms >= accepted_at_ms + limits.share.workspace_wait_ms {
        record::fail(session, &words::waited_for_workspace(limits.share.workspace_wait_ms));
        return finish::step(session, context);
    }
    let delay_ms = look_again_ms(context);
    if let Some(turn) = &mut session.turn {
        turn.waits = true;
    }
    record::line_up(session, MISSED_LOOKS * delay_ms.max(limits.retry.backoff_ms_max), context);
    Some(Next::Hold { delay_ms, why: "another thread is working in the same directory".to_owned() })
}

/// How long a message that waits for turns of other threads goes on without a look.
pub(super) const fn look_again_ms(context: &Context<'_>) -> u64 {
    let retry = &context.delivery.limits.retry;
    match context.delivery.receive {
        few if few <= OFTEN => 2 * retry.backoff_ms,
        some if some <= NOW_AND_THEN => retry.backoff_ms_max,
        _ => SELDOM_MS,
    }
}

/// Checks before an operation that a person requested: a person without permission is told so, and a turn whose message
/// is gone is ended.
pub(super) fn before_a_wish(
    session: &mut Session,
    (by, membership): (&Person, &Membership),
    context: &Context<'_>,
) -> Option<Next> {
    if let Err(refusal) = context.settings.admit(membership, &by.id) {
        return Some(notice::once(session, &refusal.to_string(), context));
    }
    session.turn.as_ref()?;
    finish::leftover(session, context)
}

/// A person gives the thread's sandbox a name.
pub(super) fn name(
    session: &mut Session,
    name: &SandboxName,
    asker: (&Person, &Membership),
    context: &Context<'_>,
) -> Next {
    if let Some(next) = before_a_wish(session, asker, context) {
        return next;
    }
    if record::has_ended(session, &context.delivery.message.id) {
        let word = match &session.sandbox.sharing.name {
            Some(there) if there == name => named(session, name),
            _ => words::name_taken(name),
        };
        return notice::once(session, &word, context);
    }
    if !session.sandbox.is_alive() {
        return end(session, words::NOTHING_TO_NAME, context);
    }
    if session.sandbox.is_private() {
        return end(session, words::PRIVATE_NOT_SHARED, context);
    }
    if session.sandbox.sharing.name.as_ref() == Some(name) {
        let word = named(session, name);
        return end(session, &word, context);
    }
    match session.observed.sandbox.name_found.clone() {
        None => return Next::Do(Effect::FindName { name: name.clone() }),
        Some(Some(key)) if key != session.sandbox_key() => {
            return end(session, &words::name_taken(name), context);
        }
        Some(_) => {}
    }
    give_up_name(session);
    give_name(session, name);
    join(session, context);
    record::arm(session, context);
    let word = named(session, name);
    end(session, &word, context)
}

/// What the person is told. Its server is started again without the project's secrets before others use it, but files
/// stay.
fn named(session: &Session, name: &SandboxName) -> String {
    let word = words::named(name, &session.thread);
    if secrets::could_be_read(session) {
        format!("{word} {}", words::SECRETS_ON_DISK)
    } else {
        word
    }
}

/// A person connects the thread to another sandbox.
pub(super) fn connect(
    session: &mut Session,
    to: Option<&SandboxKey>,
    asker: (&Person, &Membership),
    context: &Context<'_>,
) -> Next {
    if let Some(next) = before_a_wish(session, asker, context) {
        return next;
    }
    let own = session.thread.sandbox();
    let target = to.unwrap_or(&own);
    let is_there = session.sandbox_key() == *target;
    if record::has_ended(session, &context.delivery.message.id) {
        let word = match (&session.sandbox.sharing.name, is_there) {
            (Some(name), true) => words::connected(name, session.works_in_common()),
            (_, true) => words::CONNECTED_OWN.to_owned(),
            (_, false) => words::connect_gone(&session.thread),
        };
        return notice::once(session, &word, context);
    }
    if target.tenant() != session.thread.tenant() {
        let word = words::connect_gone(&session.thread);
        return end(session, &word, context);
    }
    if !is_there {
        return go_to(session, Some(target.clone()), context);
    }
    let lost = !session.sandbox.takes_threads() || session.sandbox.sharing.closing.is_some();
    if session.place.link.is_some() && lost {
        // The failure is recorded first, so that the next delivery only tells it.
        remember(session, context);
        return go_to(session, None, context);
    }
    join(session, context);
    let word = match &session.sandbox.sharing.name {
        Some(name) if session.sandbox.sharing.threads.contains(&session.thread) => {
            words::connected(name, session.works_in_common())
        }
        Some(name) => words::too_many_threads(name, &session.thread),
        None => words::CONNECTED_OWN.to_owned(),
    };
    end(session, &word, context)
}

/// A shared sandbox is not deleted for a reset of one thread.
pub(super) fn reset(session: &mut Session, context: &Context<'_>) -> Next {
    let word = words::reset_shared(&session.thread);
    end(session, &word, context)
}

fn remember(session: &mut Session, context: &Context<'_>) {
    let ended = EndedTurn {
        id: context.delivery.message.id.clone(),
        outcome: Outcome::Answered,
        at_ms: context.now_ms,
    };
    record::remember(session, ended, context);
}

/// Records the operation as done, and says so in the thread.
fn end(session: &mut Session, word: &str, context: &Context<'_>) -> Next {
    remember(session, context);
    notice::once(session, word, context)
}

/// Tells the next thread what happened to its sandbox, besides the thread of this message.
pub(super) fn notify(
    session: &Session,
    word: &str,
    archive: bool,
    context: &Context<'_>,
) -> Option<Next> {
    let key = session.sandbox_key();
    let of_its_own = (!session.sandbox.is_shared() && key.has_thread()).then(|| key.thread());
    let untold = |thread: &&ThreadKey| {
        **thread != session.thread && !session.observed.chat.told.contains(*thread)
    };
    let thread = session.sandbox.sharing.threads.iter().chain(of_its_own).find(untold)?;
    Some(Next::Do(Effect::Chat(ChatEffect::Tell {
        thread: thread.clone(),
        turn: context.delivery.message.id.clone(),
        word: word.to_owned(),
        archive,
    })))
}
