//! Comments below pull requests over REST, and reactions to everything.

use serde::Deserialize;

use super::{Call, created, nothing, ok, reviews};
use crate::api_error::{Answer, ApiError};
use crate::permission::Level;
use crate::record::RepositoryRecord;
use crate::reviews::{Remark, remarks};

/// Either right opens what is said below a pull request.
const RIGHTS: [&str; 2] = ["issues", "pull_requests"];

/// The comment of the path.
fn remark_of(call: &Call, repository: &RepositoryRecord) -> Result<Remark, ApiError> {
    let inner = call.engine.lock();
    let remark = inner.talk.remark(call.number("comment_id")?)?.clone();
    let pull = inner.pull_of_id(remark.pull)?;
    if pull.repository == repository.id { Ok(remark) } else { Err(ApiError::not_found()) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    body: String,
}

pub(super) async fn create(call: &Call) -> Answer {
    let repository = call.talkable(&RIGHTS)?;
    let pull = call.pull_in(&repository, "issue_number")?;
    let Text { body } = call.read()?;
    let remark = remarks::say(&call.engine, &pull, call.voice()?, body)?;
    let inner = call.engine.lock();
    created(call.show(&inner).remark(&remark))
}

pub(super) async fn list(call: &Call) -> Answer {
    let repository = call.one_of(&RIGHTS, Level::Read)?;
    let pull = call.pull_in(&repository, "issue_number")?;
    let inner = call.engine.lock();
    let own = inner.talk.remarks.iter().filter(|one| one.pull == pull.id);
    call.list(own.map(|one| call.show(&inner).remark(one)).collect())
}

pub(super) async fn get(call: &Call) -> Answer {
    let repository = call.one_of(&RIGHTS, Level::Read)?;
    let remark = remark_of(call, &repository)?;
    let inner = call.engine.lock();
    ok(call.show(&inner).remark(&remark))
}

pub(super) async fn edit(call: &Call) -> Answer {
    let repository = call.talkable(&RIGHTS)?;
    let remark = remark_of(call, &repository)?;
    let actor = call.changes(&repository, remark.voice.author)?;
    let Text { body } = call.read()?;
    let remark = remarks::edit(&call.engine, remark.id, actor, body)?;
    let inner = call.engine.lock();
    ok(call.show(&inner).remark(&remark))
}

pub(super) async fn delete(call: &Call) -> Answer {
    let repository = call.talkable(&RIGHTS)?;
    let remark = remark_of(call, &repository)?;
    let actor = call.changes(&repository, remark.voice.author)?;
    remarks::delete(&call.engine, remark.id, actor)?;
    nothing()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    content: String,
}

/// A reaction that is there already is answered with 200.
fn react(call: &Call, of: u64) -> Answer {
    let Content { content } = call.read()?;
    let (reaction, is_new) = remarks::react(&call.engine, of, call.actor()?, &content)?;
    let inner = call.engine.lock();
    let told = call.show(&inner).reaction(&reaction);
    if is_new { created(told) } else { ok(told) }
}

fn take_back(call: &Call, of: u64) -> Answer {
    let (id, actor) = (call.number("reaction_id")?, call.actor()?);
    call.engine.change(|inner| {
        let all = &mut inner.talk.reactions;
        let is_it =
            |one: &crate::reviews::Reaction| one.id == id && one.of == of && one.author == actor;
        let at = all.iter().position(is_it).ok_or_else(ApiError::not_found)?;
        all.remove(at);
        Ok(())
    })?;
    nothing()
}

fn own_remark(call: &Call) -> Result<u64, ApiError> {
    let repository = call.talkable(&RIGHTS)?;
    Ok(remark_of(call, &repository)?.id)
}

pub(super) async fn react_to_pull(call: &Call) -> Answer {
    let repository = call.talkable(&RIGHTS)?;
    react(call, call.pull_in(&repository, "issue_number")?.id)
}

pub(super) async fn react_to_remark(call: &Call) -> Answer {
    react(call, own_remark(call)?)
}

pub(super) async fn react_to_comment(call: &Call) -> Answer {
    react(call, reviews::reacted(call)?)
}

pub(super) async fn unreact_to_remark(call: &Call) -> Answer {
    take_back(call, own_remark(call)?)
}

pub(super) async fn unreact_to_comment(call: &Call) -> Answer {
    take_back(call, reviews::reacted(call)?)
}
