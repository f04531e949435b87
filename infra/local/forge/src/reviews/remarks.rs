//! Comments below pull requests, and reactions.

use super::verdicts::{check_body, check_room};
use super::{Reaction, Remark, Speaker, told};
use crate::api_error::ApiError;
use crate::record::Pull;
use crate::state::SharedEngine;

const CONTENTS: [&str; 8] = ["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"];

/// Says something below a pull request.
///
/// # Errors
/// There is no text.
pub(crate) fn say(
    engine: &SharedEngine,
    pull: &Pull,
    voice: Speaker,
    body: String,
) -> Result<Remark, ApiError> {
    check_body("IssueComment", &body)?;
    let now = engine.clock.now_ms();
    let remark = engine.change(|inner| {
        check_room(inner)?;
        let id = inner.new_id();
        let remark = Remark { id, pull: pull.id, voice, body, created_at: now, updated_at: now };
        inner.talk.remarks.push(remark.clone());
        inner.pull_mut(pull.repository, pull.number)?.updated_at = now;
        Ok(remark)
    })?;
    told::remark(engine, &remark, "created", voice.author, None);
    Ok(remark)
}

/// Changes the text of a comment.
///
/// # Errors
/// There is no such comment, or no such text.
pub(crate) fn edit(
    engine: &SharedEngine,
    id: u64,
    actor: u64,
    body: String,
) -> Result<Remark, ApiError> {
    check_body("IssueComment", &body)?;
    let now = engine.clock.now_ms();
    let (former, remark) = engine.change(|inner| {
        let mut all = inner.talk.remarks.iter_mut();
        let remark = all.find(|one| one.id == id).ok_or_else(ApiError::not_found)?;
        let former = std::mem::replace(&mut remark.body, body);
        remark.updated_at = now;
        Ok((former, remark.clone()))
    })?;
    told::remark(engine, &remark, "edited", actor, Some(former));
    Ok(remark)
}

/// Removes a comment.
///
/// # Errors
/// There is no such comment.
pub(crate) fn delete(engine: &SharedEngine, id: u64, actor: u64) -> Result<(), ApiError> {
    let remark = engine.lock().talk.remark(id)?.clone();
    engine.change(|inner| {
        inner.talk.remarks.retain(|one| one.id != id);
        inner.talk.reactions.retain(|one| one.of != id);
        Ok(())
    })?;
    told::remark(engine, &remark, "deleted", actor, None);
    Ok(())
}

/// Reacts to something by its id; `false` if this person has reacted so before. Nobody is told.
///
/// # Errors
/// There is no such reaction.
pub(crate) fn react(
    engine: &SharedEngine,
    of: u64,
    author: u64,
    content: &str,
) -> Result<(Reaction, bool), ApiError> {
    if !CONTENTS.contains(&content) {
        return Err(ApiError::field("Reaction", "content", "invalid"));
    }
    let now = engine.clock.now_ms();
    engine.change(|inner| {
        let same = |one: &&Reaction| one.of == of && one.author == author && one.content == content;
        if let Some(known) = inner.talk.reactions.iter().find(same) {
            return Ok((known.clone(), false));
        }
        check_room(inner)?;
        let (id, content) = (inner.new_id(), content.to_owned());
        let reaction = Reaction { id, of, author, content, created_at: now };
        inner.talk.reactions.push(reaction.clone());
        Ok((reaction, true))
    })
}
