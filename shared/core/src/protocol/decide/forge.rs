//! Repositories of a forge: who may have which, and how one comes into a new sandbox.
//!
//! Promised: a private repository comes only into a sandbox of a tenant to which its owner is bound, and only where
//! managers have opened it; every refusal is told. A repository that the forge's app cannot see is cloned
//! from inside, like any public one. Submodules, and repositories beside the thread's, come by the same right, each
//! asked for by itself; what does not come costs the turn nothing.

use super::words::for_agent;
use super::{Context, Next, build, provision, set_up, watch, words};
use crate::base::failure::Failure;
use crate::protocol::effect::{Effect, ForgeEffect, SandboxEffect};
use crate::protocol::event::NotCloned;
use crate::records::carried::{
    Carried, CarriedTo, ForgeRepository, FoundRepository, LeftOut, Submodule,
};
use crate::records::given_pull::{FoundPull, GivenPull};
use crate::records::message::Work;
use crate::records::observations::CheckoutKeptReason;
use crate::records::publication::{Publication, PullRequestSeen, PullRequestState};
use crate::records::session::Session;
use crate::tenant::environments;
use crate::tenant::project_secrets::is_foreign;
use crate::tenant::repositories::{apart, numbered};
use crate::tenant::repositories_beside::folder;
use crate::tenant::selection::SUBMODULES;

/// Most submodules that are brought.
const SUBMODULES_MAX: usize = 8;
/// Why something does not come that may not be had here.
const NOT_OPEN: &str = "it is not open here";
/// Less time is none.
const CARRY_MS_MIN: u64 = 5_000;

/// The step that brings the repository of a new sandbox.
pub(super) fn bring(session: &mut Session, repo: &str, context: &Context<'_>) -> Option<Next> {
    if session.observed.sandbox.bringing.is_some() {
        return bring_submodules(session, context).or_else(|| bring_beside(session, repo, context));
    }
    let limits = &context.delivery.limits.turn;
    let (_, number) = numbered(repo);
    let named = context.delivery.forge.and_then(|forge| forge.name_of(repo));
    let Some(name) = named else {
        return inside(session, repo, context);
    };
    match session.observed.sandbox.found_repository.clone() {
        None => Some(Next::Do(Effect::Forge(ForgeEffect::Find { name }))),
        Some(FoundRepository::NotInstalled) => inside(session, repo, context),
        Some(FoundRepository::Refused { why }) => {
            refuse(session, NotCloned::Forge { why }, context)
        }
        Some(FoundRepository::Here { repository: found, size_kb }) => {
            let is_bound = context.delivery.forge.is_some_and(|forge| forge.has(&found));
            let is_open = context.settings.repositories.are_open(&found.name, channel(context));
            if is_bound && is_open {
                if !build::is_of(session, Some(found.id)) {
                    return without_prebuild(session, context);
                }
                if found.is_private && session.sandbox.is_shared() {
                    return refuse(session, NotCloned::PrivateShared, context);
                }
                let given =
                    number.map(|number| (number, session.observed.forge.given_pull.clone()));
                let pull = match given {
                    None => None,
                    Some((number, None)) => {
                        let find = ForgeEffect::FindGivenPull { repository: found, number };
                        return Some(Next::Do(Effect::Forge(find)));
                    }
                    Some((_, Some(FoundPull::There { pull, .. }))) => Some(pull),
                    Some((number, Some(FoundPull::Missing))) => {
                        let why = words::no_such_pull_request(number);
                        return refuse(session, NotCloned::Forge { why }, context);
                    }
                    Some((_, Some(FoundPull::Refused { why }))) => {
                        return refuse(session, NotCloned::Forge { why }, context);
                    }
                };
                return Some(Next::Do(Effect::Forge(ForgeEffect::Carry {
                    repository: found,
                    wanted: apart(repo).1.map(str::to_owned),
                    pull,
                    to: CarriedTo::Project,
                    size_kb,
                    within_ms: limits.carry_ms,
                    watch: provision::watch(session),
                })));
            }
            if found.is_private {
                return refuse(session, NotCloned::NotOpen, context);
            }
            inside(session, repo, context)
        }
    }
}

/// The repository is cloned from inside the sandbox, as anybody could.
fn inside(session: &mut Session, repo: &str, context: &Context<'_>) -> Option<Next> {
    if numbered(repo).1.is_some() {
        let why = words::PULL_REQUEST_UNREACHED.to_owned();
        return refuse(session, NotCloned::Forge { why }, context);
    }
    if !build::is_of(session, None) {
        return without_prebuild(session, context);
    }
    let watch = provision::watch(session);
    let (repo, within_ms) = (repo.to_owned(), context.delivery.limits.turn.clone_ms);
    Some(Next::Do(Effect::Sandbox(SandboxEffect::Clone { repo, within_ms, watch })))
}

/// Given up: another sandbox is created.
fn without_prebuild(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    build::begin_without(session, true, context);
    None
}

fn refuse(session: &mut Session, why: NotCloned, context: &Context<'_>) -> Option<Next> {
    provision::not_cloned(session, &why, context);
    None
}

/// A repository, or a submodule of it, is there.
pub(super) fn carried(
    session: &mut Session,
    of: &Effect,
    carried: Carried,
    left_out: LeftOut,
    context: &Context<'_>,
) {
    let to = target(of);
    if to == CarriedTo::Project {
        let found = session.observed.sandbox.found_repository.as_ref();
        let default = found.and_then(|found| match found {
            FoundRepository::Here { repository, .. } => Some(repository.branch.clone()),
            _ => None,
        });
        let default = default.filter(|default| *default != carried.repository.branch);
        let carried = Carried { default, ..carried };
        set_up::brought(session, &left_out);
        session.observed.sandbox.bringing = Some(chosen(left_out, context));
        session.observed.sandbox.found_repository = None;
        session.observed.forge.given_pull = None;
        session.sandbox.project.pull = given(of);
        session.sandbox.project.carried = Some(carried);
        session.settle_published();
        return;
    }
    let observed = &mut session.observed.sandbox;
    let Some(bringing) = &mut observed.bringing else { return };
    observed.found_repository = None;
    let path = match &to {
        CarriedTo::Beside(folder) => {
            if let Some(left) = &mut observed.to_bring {
                left.remove(0);
            }
            let beside = &mut session.sandbox.project.beside;
            beside.retain(|one| one.folder.as_ref() != Some(folder));
            beside.push(Carried { folder: Some(folder.clone()), ..carried });
            folder
        }
        CarriedTo::Submodule(path) => {
            bringing.named.retain(|one| one.path != *path);
            path
        }
        CarriedTo::Project => return,
    };
    let inside = |what: String| format!("{path}/{what}");
    bringing.submodules.extend(left_out.submodules.into_iter().map(inside));
    bringing.large.extend(left_out.large.into_iter().map(inside));
    let history = left_out.history.map(|commits| format!("{path}: all but {commits} commits"));
    bringing.submodules.extend(history);
}

/// The step that moves the checkout to the newest commit of its branch, once the pull request of its work has ended and
/// is not open again.
pub(super) fn move_on(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    // Others in a shared sandbox work from the commit on its record.
    if session.sandbox.is_shared() {
        return None;
    }
    let ended = session.published.all().filter(|(_, publication)| publication.is_over());
    let ended: Vec<Option<u64>> = ended.map(|(beside, _)| beside).collect();
    let step = ended.into_iter().find_map(|beside| {
        let is_tried = session.observed.stays.contains_key(&beside);
        session.observed.beside = beside;
        let Some(carried) = session.carried().cloned() else {
            // Its checkout is gone: later work begins from another one.
            session.forget_publication();
            return None;
        };
        if is_tried || !is_ours(&carried.repository, context) {
            return None;
        }
        let Publication { branch, pushed, .. } = session.publication()?.clone();
        match session.observed.forge.pull_request.clone() {
            None => {
                let repository = carried.repository;
                let find = ForgeEffect::FindPullRequest { repository, branch };
                Some(Next::Do(Effect::Forge(find)))
            }
            Some(Some(PullRequestSeen { state: PullRequestState::Open, at, .. })) => {
                session.observed.forge.pull_request = None;
                session.publication_mut()?.pull_request = Some(at);
                watch::begin(session, &carried.repository, context);
                None
            }
            Some(_) => Some(Next::Do(Effect::Forge(ForgeEffect::MoveCheckout { carried, pushed }))),
        }
    });
    if step.is_none() {
        session.observed.beside = None;
    }
    step
}

/// Whether the channel of the message in hand may have the repository.
fn is_ours(repository: &ForgeRepository, context: &Context<'_>) -> bool {
    context.settings.repositories.are_open(&repository.name, channel(context))
        && context.delivery.forge.is_some_and(|forge| forge.has(repository))
}

/// The checkout was moved, or holds other work.
pub(super) fn moved(session: &mut Session, base: Option<String>) {
    // What comes next begins a new branch.
    session.forget_publication();
    session.observed.forge.pull_request = None;
    let beside = session.observed.beside.take();
    let Some(base) = base else {
        session.observed.stays.insert(beside, CheckoutKeptReason::HasWork);
        return;
    };
    let project = &mut session.sandbox.project;
    let carried = match beside {
        None => project.carried.as_mut(),
        Some(id) => project.beside.iter_mut().find(|one| one.repository.id == id),
    };
    if let (Some(turn), Some(carried)) = (&mut session.turn, carried) {
        let word = for_agent::moved(carried, &base);
        turn.moved = Some(match turn.moved.take() {
            Some(before) if before.contains(&word) => before,
            Some(before) => format!("{before}\n\n{word}"),
            None => word,
        });
        carried.base = Some(base);
    }
}

/// The turn goes on from where the checkout is; the next one tries again. False: the failure is about something else.
pub(super) fn could_not_be_moved(
    session: &mut Session,
    of: &Effect,
    failure: &Failure,
    context: &Context<'_>,
) -> bool {
    let is_prompt = matches!(context.delivery.message.work, Work::Prompt(_));
    let is_moving = match of {
        Effect::Forge(ForgeEffect::MoveCheckout { .. }) => true,
        Effect::Forge(ForgeEffect::FindPullRequest { .. }) => is_prompt,
        _ => false,
    };
    let is_down = matches!(failure, Failure::SandboxDown { .. } | Failure::SandboxGone);
    if is_moving && !is_down {
        session.observed.forge.pull_request = None;
        let beside = session.observed.beside.take();
        session.observed.stays.insert(beside, CheckoutKeptReason::Failed);
    } else if is_moving {
        session.observed.beside = None;
    }
    is_moving && !is_down
}

fn given(of: &Effect) -> Option<GivenPull> {
    match of {
        Effect::Forge(ForgeEffect::Carry { pull, .. }) => pull.clone(),
        _ => None,
    }
}

/// Notes that a submodule, or a repository beside the thread's, does not come. False: the effect was about something
/// else.
pub(super) fn left_out(session: &mut Session, of: &Effect, why: &NotCloned) -> bool {
    let (seen, _) = words::not_cloned_because("", why);
    match target(of) {
        CarriedTo::Project => return false,
        CarriedTo::Submodule(path) => leave_out(session, &path, &seen),
        CarriedTo::Beside(_) => leave_out_beside(session, &seen),
    }
    true
}

fn target(of: &Effect) -> CarriedTo {
    match of {
        Effect::Forge(ForgeEffect::Carry { to, .. }) => to.clone(),
        _ => CarriedTo::Project,
    }
}

/// What is left out, with the submodules that are to come.
fn chosen(mut left_out: LeftOut, context: &Context<'_>) -> LeftOut {
    let defaults = context.settings.defaults_of(channel(context));
    if build::is_build(context) || defaults.submodules.as_deref() != Some(SUBMODULES[1]) {
        left_out.named.clear();
        return left_out;
    }
    let is_named = |path: &String| left_out.named.iter().position(|one| one.path == *path);
    let words = left_out.submodules.iter().filter_map(|path| match is_named(path) {
        Some(place) if place < SUBMODULES_MAX => None,
        Some(_) => Some(format!("{path}: only {SUBMODULES_MAX} are brought")),
        None => Some(format!("{path}: its entry cannot be read")),
    });
    left_out.submodules = words.collect();
    left_out.named.truncate(SUBMODULES_MAX);
    left_out
}

/// The step that brings the next submodule; `None` when none is left.
fn bring_submodules(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let next = |session: &Session| {
        let bringing = session.observed.sandbox.bringing.as_ref();
        bringing.and_then(|bringing| bringing.named.first()).cloned()
    };
    while let Some(one) = next(session) {
        match ask_for(session, &one, context) {
            Ok(effect) => return Some(Next::Do(Effect::Forge(effect))),
            Err(why) => leave_out(session, &one.path, &why),
        }
    }
    None
}

/// The step that brings the next repository beside the thread's; `None` once the sandbox has all that it gets.
fn bring_beside(session: &mut Session, repo: &str, context: &Context<'_>) -> Option<Next> {
    if session.observed.sandbox.to_bring.is_none() {
        session.sandbox.project.beside.clear();
        session.observed.sandbox.to_bring = Some(wanted_beside(session, repo, context));
    }
    let next = |session: &Session| session.observed.sandbox.to_bring.as_ref()?.first().cloned();
    while let Some(name) = next(session) {
        match ask_for_beside(session, &name, context) {
            Ok(effect) => return Some(Next::Do(Effect::Forge(effect))),
            Err(why) => leave_out_beside(session, &why),
        }
    }
    let left_out = session.observed.sandbox.bringing.take().unwrap_or_default();
    session.sandbox.project.left_out = words::left_out(&left_out);
    session.observed.sandbox.cloned = true;
    None
}

/// The repositories that managers want beside this one.
pub(super) fn wanted_beside(session: &Session, repo: &str, context: &Context<'_>) -> Vec<String> {
    // Nobody is told of what a builder, or a sandbox of several threads, does not have.
    if build::is_build(context) || session.sandbox.is_shared() {
        return Vec::new();
    }
    let name = name_of(repo, context);
    name.map_or_else(Vec::new, |name| context.settings.beside.of(&name).to_vec())
}

/// The name under which settings know a repository, as it was chosen for a sandbox; `None`: they cannot name it.
pub(super) fn name_of(repo: &str, context: &Context<'_>) -> Option<String> {
    let named = context.delivery.forge.and_then(|forge| forge.name_of(repo));
    environments::name_of(repo, named.as_deref())
}

/// What a clone from inside left out: nothing comes beside it.
pub(super) fn without_beside(
    session: &Session,
    mut left_out: LeftOut,
    context: &Context<'_>,
) -> LeftOut {
    let repo = session.sandbox.project.repo.as_deref().unwrap_or_default();
    let each = wanted_beside(session, repo, context).into_iter();
    let why = "the thread's own is not one of the forge's";
    left_out.beside.extend(each.map(|name| format!("{name}: {why}")));
    left_out
}

/// The next effect for a repository beside the thread's, or why it does not come.
fn ask_for_beside(
    session: &Session,
    name: &str,
    context: &Context<'_>,
) -> Result<ForgeEffect, String> {
    let of = session.sandbox.project.carried.as_ref().map(|carried| &carried.repository);
    let (Some(forge), Some(_)) = (context.delivery.forge, of) else {
        return Err("no forge is set up".to_owned());
    };
    if is_foreign(&session.sandbox) {
        return Err("the checkout may be a stranger's work".to_owned());
    }
    let name = forge.name_of(name).ok_or("it is elsewhere")?;
    let Some((repository, size_kb)) = looked_up(session, &name, context)? else {
        return Ok(ForgeEffect::Find { name });
    };
    let there = session.sandbox.project.beside.iter().chain(&session.sandbox.project.carried);
    if there.into_iter().any(|one| one.repository.id == repository.id) {
        return Err("it is there already".to_owned());
    }
    let to = CarriedTo::Beside(folder(&name));
    carry(session, (repository, size_kb), (None, to), context)
}

/// What the forge has under this name, with its size; `None`: it was not asked yet. The error says why it cannot be
/// used: a forbidden repository looks like a missing one.
fn looked_up(
    session: &Session,
    name: &str,
    context: &Context<'_>,
) -> Result<Option<(ForgeRepository, u64)>, String> {
    match session.observed.sandbox.found_repository.clone() {
        None => Ok(None),
        Some(FoundRepository::Refused { why })
            if context.settings.repositories.are_open(name, channel(context)) =>
        {
            Err(why)
        }
        Some(FoundRepository::Here { repository, size_kb }) if is_ours(&repository, context) => {
            Ok(Some((repository, size_kb)))
        }
        Some(_) => Err(NOT_OPEN.to_owned()),
    }
}

/// The effect that brings what belongs to the repository that is there.
fn carry(
    session: &Session,
    (repository, size_kb): (ForgeRepository, u64),
    (wanted, to): (Option<String>, CarriedTo),
    context: &Context<'_>,
) -> Result<ForgeEffect, String> {
    let within_ms = time_left(session, context).ok_or("no time was left for it")?;
    let watch = provision::watch(session);
    Ok(ForgeEffect::Carry { repository, wanted, pull: None, to, size_kb, within_ms, watch })
}

fn leave_out_beside(session: &mut Session, why: &str) {
    let observed = &mut session.observed.sandbox;
    observed.found_repository = None;
    if let (Some(left), Some(bringing)) = (&mut observed.to_bring, &mut observed.bringing)
        && !left.is_empty()
    {
        bringing.beside.push(format!("{}: {}", left.remove(0), why.trim_end_matches('.')));
    }
}

/// How long a carriage may take whose failure costs the turn nothing; `None`: no time is left.
fn time_left(session: &Session, context: &Context<'_>) -> Option<u64> {
    let limits = &context.delivery.limits.turn;
    let lease = session.sandbox.lease.as_ref();
    let until_ms = lease.map_or(0, |lease| lease.until_ms.saturating_sub(limits.health_start_ms));
    let within_ms = until_ms.saturating_sub(context.now_ms).min(limits.carry_ms);
    (within_ms >= CARRY_MS_MIN).then_some(within_ms)
}

/// The next effect for a submodule, or why it does not come.
fn ask_for(
    session: &Session,
    one: &Submodule,
    context: &Context<'_>,
) -> Result<ForgeEffect, String> {
    let of = session.sandbox.project.carried.as_ref().map(|carried| &carried.repository);
    let (Some(forge), Some(of)) = (context.delivery.forge, of) else {
        return Err("no forge is set up".to_owned());
    };
    let name = forge.submodule(&of.name, &one.address).ok_or("it is elsewhere")?;
    let Some((repository, size_kb)) = looked_up(session, &name, context)? else {
        return Ok(ForgeEffect::Find { name });
    };
    if repository.installation != of.installation {
        return Err(NOT_OPEN.to_owned());
    }
    // As far as is known, everybody may see what is in the sandbox.
    if repository.is_private && !of.is_private {
        return Err("it is private in a public repository".to_owned());
    }
    let to = CarriedTo::Submodule(one.path.clone());
    carry(session, (repository, size_kb), (Some(one.commit.clone()), to), context)
}

fn leave_out(session: &mut Session, path: &str, why: &str) {
    session.observed.sandbox.found_repository = None;
    if let Some(bringing) = &mut session.observed.sandbox.bringing {
        bringing.named.retain(|one| one.path != path);
        bringing.submodules.push(format!("{path}: {}", why.trim_end_matches('.')));
    }
}

/// The channel in which the message in hand was written; empty for work that comes from none.
pub(super) fn channel<'a>(context: &Context<'a>) -> &'a str {
    context.delivery.channel()
}
