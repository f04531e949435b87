//! Posts that an outage has left in doubt: a nonce recognises a repeat for some minutes, and an outage can last for
//! days. Before such a post is made again, the newest messages of its thread are searched for it.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use bobbin_core::base::ids::{Ms, PostRef, ThreadKey, TurnId};
use bobbin_core::base::names::PostKind;
use bobbin_core::records::session::Session;
use reqwest::Method;
use serde_json::Value;

use super::Discord;
use super::call::in_channel;
use super::messages::post_ref;
use super::opening::earliest_id;
use crate::discord::custom_id::CustomId;
use crate::discord::render::Rendered;

/// Maximum number of threads that are remembered; a forgotten one is not searched.
const THREADS_MAX: usize = 1_024;
/// Messages of a thread that are searched: the most that Discord lists at once.
const SEARCHED_MAX: u32 = 100;

/// The turn whose posts are in doubt, and since when, by thread.
pub(super) type Doubts = BTreeMap<ThreadKey, (TurnId, Ms)>;

impl Discord {
    /// Learns from a record whether its turn has met an outage of the chat.
    pub(super) fn doubt(&self, session: &Session) {
        let turn = session.turn.as_ref();
        let doubt = turn.and_then(|turn| Some((turn.id.clone(), turn.outages.chat_since_ms?)));
        let mut doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(doubt) = doubt else {
            doubts.remove(&session.thread);
            return;
        };
        if doubts.len() >= THREADS_MAX {
            doubts.clear();
        }
        doubts.insert(session.thread.clone(), doubt);
    }

    /// The message of an earlier attempt whose answer was lost. Also `None` if nothing is in doubt, or if the thread's
    /// messages cannot be read.
    pub(super) async fn made_before(
        &self,
        (thread, channel): (&ThreadKey, &str),
        (turn, kind, nonce): (&TurnId, &PostKind, &str),
        rendered: &Rendered,
    ) -> Option<PostRef> {
        let since_ms = {
            let doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
            let doubt = doubts.get(thread).filter(|(doubtful, _)| doubtful == turn);
            doubt.map(|(_, since_ms)| *since_ms)
        }?;
        let rest = format!("/messages?limit={SEARCHED_MAX}");
        let call = in_channel("list messages", Method::GET, channel, &rest);
        let listed = match self.client.call(&call, None, None).await {
            Ok(listed) => listed,
            Err(error) => {
                tracing::info!(event = "discord.post.unread", %error, "discord: could not read whether a post exists already");
                return None;
            }
        };
        let content = rendered.body["content"].as_str().unwrap_or_default();
        let is_it = |message: &&Value| {
            let is_ours =
                message["author"]["bot"] == true && message["interaction_metadata"].is_null();
            // An earlier turn may have said the same before.
            let is_same = !content.is_empty()
                && message["content"] == content
                && is_since(message, since_ms, turn);
            let is_card = *kind == PostKind::Card && shows_turn(message, turn);
            is_ours && (message["nonce"] == nonce || is_same || is_card)
        };
        let found = listed.as_array()?.iter().find(is_it)?;
        post_ref(&call, channel, found).ok()
    }
}

/// Whether the message was made since that time, and after the one that the turn began with; Discord's ids hold theirs.
fn is_since(message: &Value, since_ms: Ms, turn: &TurnId) -> bool {
    let id = message["id"].as_str().and_then(|id| id.parse::<u64>().ok());
    let began = turn.parse::<u64>().unwrap_or(0);
    id.is_some_and(|id| id >= earliest_id(since_ms) && id > began)
}

/// Whether the message has a button of this turn's card.
fn shows_turn(message: &Value, turn: &TurnId) -> bool {
    let buttons = [
        CustomId::Stop { turn: turn.clone() },
        CustomId::Now { turn: turn.clone() },
        CustomId::Again { turn: turn.clone() },
        CustomId::Diff { turn: turn.clone() },
    ];
    let components = message["components"].to_string();
    buttons.iter().any(|button| components.contains(&format!("\"{}\"", button.text())))
}
