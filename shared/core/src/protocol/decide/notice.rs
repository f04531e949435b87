//! Notices: what is said in a thread beside its cards.

use super::{Context, Next, words};
use crate::base::names::PostKind;
use crate::protocol::effect::{ChatEffect, Effect};
use crate::records::card::Post;
use crate::records::session::Session;

/// Posts a notice in the thread, once.
pub(super) fn once(session: &mut Session, word: &str, context: &Context<'_>) -> Next {
    if session.observed.chat.noticed {
        return Next::Done;
    }
    let word = session
        .observed
        .trouble
        .take()
        .map_or_else(|| word.to_owned(), |trouble| words::not_deleted(&trouble));
    let turn = context.delivery.message.id.clone();
    Next::Do(Effect::Chat(ChatEffect::Post {
        turn,
        kind: PostKind::Notice,
        at: None,
        post: Post::Notice(word),
    }))
}
