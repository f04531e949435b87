//! Repositories of a forge: who may have which, and how one comes into a new sandbox.
//!
//! Promised: a private repository comes only into a sandbox of a tenant to which its owner is bound, and only where
//! managers have opened it; every refusal is told. A repository that the forge's app cannot see is cloned
//! from inside, like any public one.

use super::{Context, Next, provision};
use crate::protocol::effect::{Effect, ForgeEffect, SandboxEffect};
use crate::protocol::event::NotCloned;
use crate::records::carried::FoundRepository;
use crate::records::message::Work;
use crate::records::session::Session;
use crate::tenant::repositories::apart;

/// The step that brings the repository of a new sandbox.
pub(super) fn bring(session: &mut Session, repo: &str, context: &Context<'_>) -> Option<Next> {
    let limits = &context.delivery.limits.turn;
    let watch = provision::watch(session);
    let inside = |repo: &str, watch| {
        let (repo, within_ms) = (repo.to_owned(), limits.clone_ms);
        Some(Next::Do(Effect::Sandbox(SandboxEffect::Clone { repo, within_ms, watch })))
    };
    let named = context.delivery.forge.and_then(|forge| forge.name_of(repo));
    let Some(name) = named else {
        return inside(repo, watch);
    };
    match session.observed.sandbox.found_repository.clone() {
        None => Some(Next::Do(Effect::Forge(ForgeEffect::Find { name }))),
        Some(FoundRepository::NotInstalled) => inside(repo, watch),
        Some(FoundRepository::Refused { why }) => {
            refuse(session, NotCloned::Forge { why }, context)
        }
        Some(FoundRepository::Here { repository: found, size_kb }) => {
            let is_bound = context.delivery.forge.is_some_and(|forge| forge.has(&found));
            let is_open = context.settings.repositories.are_open(&found.name, channel(context));
            if is_bound && is_open {
                if found.is_private && session.sandbox.is_shared() {
                    return refuse(session, NotCloned::PrivateShared, context);
                }
                return Some(Next::Do(Effect::Forge(ForgeEffect::Carry {
                    repository: found,
                    wanted: apart(repo).1.map(str::to_owned),
                    size_kb,
                    within_ms: limits.carry_ms,
                    watch,
                })));
            }
            if found.is_private {
                return refuse(session, NotCloned::NotOpen, context);
            }
            inside(repo, watch)
        }
    }
}

fn refuse(session: &mut Session, why: NotCloned, context: &Context<'_>) -> Option<Next> {
    provision::not_cloned(session, &why, context);
    None
}

/// The channel in which the message in hand was written; empty for work that comes from none.
pub(super) fn channel<'a>(context: &Context<'a>) -> &'a str {
    match &context.delivery.message.work {
        Work::Prompt(prompt) => &prompt.membership.channel,
        _ => "",
    }
}
