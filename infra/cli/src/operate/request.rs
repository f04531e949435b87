//! A request from a terminal that goes into a thread's group, and the wait for its end.

use std::time::Instant;

use bobbin_cloud::clock::now_ms;
use bobbin_core::base::ids::{ThreadKey, TurnId};
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::records::message::{Body, Message, Work};
use bobbin_core::records::session::Session;

use super::send::terminal_name;
use super::show;
use super::stack::Stack;
use crate::output::CommandError;
use crate::time::pause;

/// Poll interval.
const LOOK_MS: u64 = 500;

/// A request about a thread.
pub struct Request {
    /// The word in the message's id.
    pub name: &'static str,
    /// The command that shows its result.
    pub look: &'static str,
    /// How long its end is waited for.
    pub until: Instant,
}

/// Who asks in a terminal.
pub fn operator() -> (Person, Membership) {
    let by = Person { id: String::new(), name: terminal_name(None) };
    (by, Membership { operates: true, ..Membership::default() })
}

impl Request {
    /// Sends the work and waits for its end; `false`: it did not end within the wait.
    ///
    /// # Errors
    /// The queue or the table did not answer.
    pub async fn carry_out(
        &self,
        stack: &Stack,
        thread: &ThreadKey,
        work: Work,
    ) -> Result<(Session, bool), CommandError> {
        let accepted_at_ms = now_ms();
        let id = TurnId::from(format!("{}-{}-{accepted_at_ms}", self.name, thread.short_hash()));
        let message = Message { id: id.clone(), thread: thread.clone(), accepted_at_ms, work };
        let sent = stack.queues()?.send(&Body::Message(message)).await;
        sent.map_err(|e| {
            format!(
                "{e}. It is unknown whether this was requested; look with: bobbin {} {} {thread}",
                stack.said, self.look
            )
        })?;
        loop {
            let (session, _) = show::record(stack, thread).await?;
            let is_over = session.ended.iter().any(|one| one.id == id);
            if is_over || Instant::now() >= self.until {
                return Ok((session, is_over));
            }
            pause(LOOK_MS).await;
        }
    }
}
