//! Who may ask, and what a turn runs with: decided once, when the turn begins, and kept in its record.
//!
//! The prompt's own choices come first, then the channel's defaults, then the tenant's, then the configuration. If only
//! one runtime has the chosen agent, choosing the agent chooses that runtime too, as long as the sandbox does not exist
//! yet. A repository belongs to a sandbox, not to a turn: it is chosen when the sandbox is created, and a turn that
//! wants another one is told how to get it.

use super::{Context, words};
use crate::protocol::effect::Effect;
use crate::records::message::{Prompt, Work};
use crate::records::sandbox::Phase;
use crate::records::session::{CheckedOptions, Session};
use crate::records::turn::Turn;
use crate::tenant::catalogue::AgentOptions;
use crate::tenant::repositories::{apart, with_number};
use crate::tenant::runtime_mode::{RuntimeMode, UnknownMode};
use crate::tenant::selection::Selection;
use crate::tenant::settings::{DefaultKind, is_same_checkout};

/// Selection of the turn.
///
/// # Errors
/// Why the turn does not run at all, worded for the requester.
pub(super) fn selection(
    session: &Session,
    prompt: &Prompt,
    context: &Context<'_>,
) -> Result<Selection, String> {
    let settings = context.settings;
    settings.admit(&prompt.membership, &prompt.by.id).map_err(|refusal| refusal.to_string())?;
    let wants = &prompt.wants;
    for kind in DefaultKind::ALL {
        if let Some(value) = kind.of(wants) {
            kind.usable(value).map_err(|unusable| unusable.to_string())?;
        }
    }
    let mut chosen = asked_for(prompt, context);
    let mode = mode(session, &chosen, context);
    if let Some(agent) = &chosen.agent
        && let Some(needed) = RuntimeMode::of_agent(agent)
        && let Ok(there) = &mode
        && *there != needed
    {
        if wants.agent.is_some() {
            return Err(words::other_agent(agent, needed.name(), there.name()));
        }
        // A default applies to new sandboxes: this one keeps the agent that it has.
        chosen.agent = None;
    }
    let has_agents = mode.as_ref().is_ok_and(|mode| mode.has_agents());
    if let (true, None, Some(kept)) = (has_agents, &wants.agent, &session.conversation.agent) {
        chosen.agent = Some(kept.clone());
    }
    if let Some(model) = &chosen.model
        && model != context.delivery.model
        && let Some((provider, _)) = model.split_once('/')
        && !context.delivery.providers.iter().any(|one| one == provider)
    {
        return Err(words::no_key(model, provider, context.delivery.providers));
    }
    if mode == Ok(RuntimeMode::Bare) {
        return Err(words::NO_AGENT_THERE.to_owned());
    }
    let is_outside = mode.as_ref().is_ok_and(|mode| mode.works_elsewhere());
    if let (Some(wanted), Ok(there)) = (&wants.runtime, mode)
        && RuntimeMode::named(wanted) != Ok(there)
    {
        return Err(words::other_runtime(wanted, there.name()));
    }
    let wanted = wanted_repo(session, wants, &chosen, is_outside)?;
    let repo = if is_over(session) {
        wanted.or(session.sandbox.project.repo.clone()).or(chosen.repo)
    } else {
        match (wanted, &session.sandbox.project.repo) {
            (Some(wanted), there)
                if !there.as_deref().is_some_and(|there| is_same_checkout(there, &wanted)) =>
            {
                return Err(words::other_repo(&wanted, there.as_deref()));
            }
            (_, there) => there.clone(),
        }
    };
    Ok(Selection { repo, pr: None, ..chosen })
}

/// The repository that the prompt names, with the number of the pull request.
fn wanted_repo(
    session: &Session,
    wants: &Selection,
    chosen: &Selection,
    is_outside: bool,
) -> Result<Option<String>, String> {
    let Some(number) = wants.pr else {
        return Ok(wants.repo.clone());
    };
    if is_outside {
        return Err(words::PULL_REQUEST_OUTSIDE.to_owned());
    }
    if wants.repo.as_deref().is_some_and(|repo| apart(repo).1.is_some()) {
        return Err(words::PULL_REQUEST_AND_REF.to_owned());
    }
    let there = session.sandbox.project.repo.as_ref();
    match wants.repo.as_ref().or(there).or(chosen.repo.as_ref()) {
        Some(repo) => Ok(Some(with_number(repo.trim(), number))),
        None => Err(words::PULL_REQUEST_ALONE.to_owned()),
    }
}

/// Runtime mode of the thread's sandbox, or of the one that it would get now with this choice.
fn mode(
    session: &Session,
    chosen: &Selection,
    context: &Context<'_>,
) -> Result<RuntimeMode, UnknownMode> {
    let of_stack = context.delivery.runtime;
    let recorded = match (is_over(session), &chosen.runtime) {
        (true, Some(name)) => Some(name.as_str()),
        (true, None) => of_stack.recorded(),
        (false, _) => session.sandbox.spec.runtime.as_deref(),
    };
    RuntimeMode::of(of_stack, recorded)
}

/// Whether the thread has no sandbox to continue in.
const fn is_over(session: &Session) -> bool {
    matches!(session.sandbox.phase, Phase::Destroyed | Phase::Error | Phase::Destroying)
}

/// Notes the agent that a turn's author chose for the thread.
pub(super) fn keep_agent(session: &mut Session, prompt: &Prompt, context: &Context<'_>) {
    if let Some(agent) = &prompt.wants.agent
        && mode(session, &asked_for(prompt, context), context).is_ok_and(RuntimeMode::has_agents)
    {
        session.conversation.agent = Some(agent.trim().to_owned());
    }
}

/// The prompt's choices with the defaults filled in, before they are checked.
pub(super) fn asked_for(prompt: &Prompt, context: &Context<'_>) -> Selection {
    let trimmed = |value: &Option<String>| value.as_deref().map(|value| value.trim().to_owned());
    let wants = Selection {
        repo: trimmed(&prompt.wants.repo),
        model: trimmed(&prompt.wants.model),
        agent: trimmed(&prompt.wants.agent),
        ..prompt.wants.clone()
    };
    let configured =
        Selection { model: Some(context.delivery.model.to_owned()), ..Selection::default() };
    let defaults = context.settings.defaults_of(&prompt.membership.channel);
    let mut chosen = wants.or(&defaults).or(&configured);
    let needed = chosen.agent.as_deref().and_then(RuntimeMode::of_agent);
    // A named agent overrides a default runtime, and a default runtime overrides a default agent.
    let is_free = match &wants.agent {
        Some(_) => wants.runtime.is_none(),
        None => chosen.runtime.is_none(),
    };
    if let Some(needed) = needed.filter(|_| is_free) {
        chosen.runtime = Some(needed.name().to_owned());
    }
    chosen
}

/// Asks the agent what it offers, unless it is known to offer the turn's selection.
pub(super) fn list_options(session: &Session) -> Option<Effect> {
    let turn = session.turn.as_ref()?;
    let known = session.conversation.options.as_ref().is_some_and(|checked| {
        checked.generation == session.sandbox.generation
            && checked.selection == turn.selection
            && (checked.is_priced || !needs_price(turn))
    });
    if known || session.observed.agent.options.is_some() {
        return None;
    }
    Some(Effect::ListOptions { used: turn.selection.clone() })
}

/// The agent besides OpenCode that says what a turn has cost, at its end.
const TELLS_COST: &str = "claude";

/// Whether a budget counts on the price of the turn's model: `OpenCode` multiplies by it, and other agents report what
/// they have spent.
fn needs_price(turn: &Turn) -> bool {
    let agent = turn.selection.agent.as_deref();
    turn.reserved.is_some() && agent.is_none_or(|agent| RuntimeMode::of_agent(agent).is_none())
}

/// Whether an agent never says what it has spent, so that no budget could hold.
fn tells_no_cost(agent: &str) -> bool {
    let name = agent.split(':').next().unwrap_or_default();
    RuntimeMode::of_agent(agent).is_some() && name != TELLS_COST
}

/// The agent has said what it offers, or has not answered.
pub(super) fn options_listed(session: &mut Session, offer: AgentOptions) {
    let said = !offer.models.is_empty() && !offer.agents.is_empty();
    let unpriced = offer.unpriced.clone();
    session.observed.agent.options = Some(offer);
    if said
        && unavailable(session).is_none()
        && let Some(turn) = &session.turn
    {
        let model = turn.selection.model.as_ref();
        session.conversation.options = Some(CheckedOptions {
            is_priced: model.is_none_or(|model| !unpriced.contains(model)),
            generation: session.sandbox.generation,
            selection: turn.selection.clone(),
        });
    }
}

/// Why the turn cannot run with its selection, as far as the agent said what it offers, and which choice is to blame,
/// if one is.
pub(super) fn unavailable(session: &Session) -> Option<(Option<DefaultKind>, String)> {
    let offer = session.observed.agent.options.as_ref()?;
    let turn = session.turn.as_ref().filter(|turn| turn.stage.is_received())?;
    let missing =
        |list: &[String], wanted: &str| !list.is_empty() && !list.iter().any(|one| one == wanted);
    if let Some(model) = &turn.selection.model
        && missing(&offer.models, model)
    {
        return Some((Some(DefaultKind::Model), words::unknown_model(model, &offer.models)));
    }
    if turn.reserved.is_some()
        && let Some(agent) = turn.selection.agent.as_deref()
        && tells_no_cost(agent)
    {
        return Some((Some(DefaultKind::Agent), words::agent_tells_no_cost(agent)));
    }
    if needs_price(turn) {
        if offer.models.is_empty() {
            return Some((None, words::PRICES_NOT_SAID.to_owned()));
        }
        if let Some(model) =
            turn.selection.model.as_ref().filter(|one| offer.unpriced.contains(one))
        {
            return Some((Some(DefaultKind::Model), words::unpriced_model(model)));
        }
    }
    match &turn.selection.agent {
        Some(agent) if missing(&offer.agents, agent) => {
            Some((Some(DefaultKind::Agent), words::unknown_agent(agent, &offer.agents)))
        }
        _ => None,
    }
}

/// The text of [`unavailable`] for the requester. If the choice was a default, it says so and names who set it.
pub(super) fn refusal(session: &Session, context: &Context<'_>) -> Option<String> {
    let (kind, words) = unavailable(session)?;
    let (Some(kind), Work::Prompt(prompt)) = (kind, &context.delivery.message.work) else {
        return Some(words);
    };
    if kind.of(&prompt.wants).is_some() {
        return Some(words);
    }
    let channel = &prompt.membership.channel;
    Some(match context.settings.default_set_by(kind, channel) {
        Some(by) => format!("{words} {}", words::a_default(&by.name)),
        None => words,
    })
}
