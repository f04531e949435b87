//! Makes the project of a sandbox ready, between its repository and its agent's server.
//!
//! Promised: no set-up step runs beside a server or a key, and no process of one outlives it; set-up steps run once in
//! a generation, services and start steps at each start; a step that fails costs the turn nothing, and the agent is
//! told.
//! Deliberately absent: agents that work outside of their sandbox.

use super::{Context, Next, build, forge, provision, record, secrets, words};
use crate::base::limits::SetUpLimits;
use crate::protocol::effect::{
    Effect, ForgeEffect, ProjectWork, RecipeAt, SandboxEffect, SetUpBounds,
};
use crate::records::card::{CardState, CardStep, StepState};
use crate::records::carried::LeftOut;
use crate::records::control::Operation;
use crate::records::message::Work;
use crate::records::prebuild::BuildKey;
use crate::records::recipe::{FoundRecipe, ProjectService, Recipe, RecipeSource, RecipeStep};
use crate::records::sandbox::Phase;
use crate::records::session::Session;
use crate::records::set_up::{FailedStep, SetUp, SetUpSeen, StepEnd};
use crate::tenant::environments::ProjectSetting;
use crate::text::{one_line, shorten};

/// How long after its bound a set-up that still seems to run counts as over.
const LATE_MS: u64 = 60_000;
/// How long after its bound a look ends it, whatever its files say.
const END_MS: u64 = 30_000;
/// How much of the lease has to be left for another look.
const RENEW_MS: u64 = 120_000;
/// How many bytes of a failed step's output a builder's record keeps.
const SAID_BYTES_MAX: usize = 2_000;
/// How many characters (UTF-16 units) of a recipe are quoted.
const NAMED_UNITS_MAX: usize = 120;

/// The next step; `None` once the project is ready, or there is none.
pub(super) fn step(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let sandbox = &session.sandbox;
    let is_without = sandbox.works_elsewhere() || sandbox.tooling.agent.is_some();
    let is_off = context.delivery.limits.set_up.all_ms == 0;
    if is_off || sandbox.project.repo.is_none() || is_without || session.observed.agent.healthy {
        return None;
    }
    if sandbox.phase == Phase::Creating {
        match &sandbox.project.set_up {
            None => {
                if let Some(next) = read(session, context) {
                    return Some(next);
                }
            }
            Some(set_up) if set_up.over_ms.is_none() => {
                let set_up = set_up.clone();
                return Some(look(session, &set_up, context));
            }
            Some(_) => {}
        }
    }
    if session.sandbox.is_builder() { None } else { start(session, context) }
}

/// A manager's recipe outranks the repository's, which counts from the default branch alone: another branch's own
/// recipe is not read.
fn read(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let repo = session.sandbox.project.repo.as_deref().unwrap_or_default();
    let name = forge::name_of(repo, context).unwrap_or_default();
    let said = match context.settings.environments.of(&name) {
        ProjectSetting::Off => {
            session.sandbox.project.set_up = Some(SetUp::nothing(context.now_ms));
            return None;
        }
        ProjectSetting::Recipe(text) => Some(text.to_owned()),
        ProjectSetting::Own => None,
    };
    let carried = session.sandbox.project.carried.clone();
    let Some(carried) = carried else {
        return act(SandboxEffect::ReadRecipe { at: RecipeAt::Origin, said });
    };
    let default = carried.default.clone().unwrap_or_else(|| carried.repository.branch.clone());
    let at = match (build::is_base(session), session.observed.watch.brought.get(&default)) {
        (true, _) => RecipeAt::Base(carried.base.unwrap_or_default()),
        (false, _) if said.is_some() => RecipeAt::Nowhere,
        (false, None) => {
            let bring = ForgeEffect::Bring { carried, branch: default };
            return Some(Next::Do(Effect::Forge(bring)));
        }
        (false, Some(true)) => RecipeAt::Brought(default),
        (false, Some(false)) => RecipeAt::Nowhere,
    };
    act(SandboxEffect::ReadRecipe { at, said })
}

fn look(session: &mut Session, set_up: &SetUp, context: &Context<'_>) -> Next {
    let limits = &context.delivery.limits.set_up;
    let is_seen = session.observed.sandbox.project.is_set_up_seen;
    let held_until_ms = context.delivery.follow_until_ms.min(set_up.begun_ms + limits.hold_ms);
    let is_let_go = is_seen && context.now_ms >= held_until_ms;
    let lease = session.sandbox.lease.as_ref();
    let is_short = lease.is_none_or(|lease| lease.until_ms < context.now_ms + RENEW_MS);
    // The sandbox is this message's until it comes again.
    if is_let_go || is_short {
        record::lease_to_bring_up(session, context);
    }
    if is_let_go {
        if let Some(turn) = &mut session.turn {
            turn.waits = true;
        }
        return Next::Hold {
            delay_ms: limits.look_ms,
            why: "the project is being set up".to_owned(),
        };
    }
    let after_ms = if is_seen { record::pause_ms(set_up.begun_ms, context) } else { 0 };
    Next::Do(Effect::Sandbox(SandboxEffect::SetUp {
        work: work(&set_up.recipe, &set_up.recipe.set_up),
        since_ticks: set_up.since_ticks,
        after_ms,
        bounds: SetUpBounds {
            step_ms: limits.step_ms,
            all_ms: all_ms(set_up, limits),
            is_late: set_up.has_begun && is_late(set_up, END_MS, context),
            goes_on: set_up.recipe.is_derived,
            // Its sandbox is gone before anybody could look.
            said_bytes: if build::is_build(context) { SAID_BYTES_MAX } else { 0 },
        },
        watch: provision::watch(session),
    }))
}

/// The bound of all steps together.
fn all_ms(set_up: &SetUp, limits: &SetUpLimits) -> u64 {
    let of_lock_files = limits.lock_files_ms.min(limits.all_ms);
    if set_up.recipe.is_derived { of_lock_files } else { limits.all_ms }
}

/// Whether its bound is over for this long.
fn is_late(set_up: &SetUp, by_ms: u64, context: &Context<'_>) -> bool {
    let all_ms = all_ms(set_up, &context.delivery.limits.set_up);
    context.now_ms >= set_up.begun_ms + all_ms + by_ms
}

/// Starts again what was stopped for a snapshot that is given up; `None`: that was tried, or nothing was stopped.
pub(super) fn start_held(session: &Session, context: &Context<'_>) -> Option<Next> {
    let sandbox = &session.sandbox;
    let services = sandbox.project.set_up.as_ref().map(|set_up| &set_up.recipe.services);
    let has_services = services.is_some_and(|services| !services.is_empty());
    let is_held = has_services && sandbox.phase == Phase::Active && !sandbox.is_builder();
    is_held.then(|| start(session, context)).flatten()
}

/// Nobody waits for what was stopped for a snapshot: that ends all the same. False: the failure is about something
/// else.
pub(super) fn could_not_start_held(
    session: &mut Session,
    of: &Effect,
    context: &Context<'_>,
) -> bool {
    let is_start = matches!(of, Effect::Sandbox(SandboxEffect::StartProject { .. }));
    let work = &context.delivery.message.work;
    let is_held = is_start && matches!(work, Work::Operate { want: Operation::Snapshot, .. });
    session.observed.sandbox.project.is_started |= is_held;
    is_held
}

fn start(session: &Session, context: &Context<'_>) -> Option<Next> {
    let recipe = &session.sandbox.project.set_up.as_ref()?.recipe;
    let is_nothing = recipe.services.is_empty() && recipe.start.is_empty();
    if is_nothing || session.observed.sandbox.project.is_started {
        return None;
    }
    act(SandboxEffect::StartProject {
        work: work(recipe, &recipe.start),
        within_ms: context.delivery.limits.set_up.start_ms,
    })
}

fn work(recipe: &Recipe, steps: &[RecipeStep]) -> ProjectWork {
    let (services, variables) = (recipe.services.clone(), recipe.variables.clone());
    ProjectWork { services, steps: steps.to_vec(), variables }
}

fn act(effect: SandboxEffect) -> Option<Next> {
    Some(Next::Do(Effect::Sandbox(effect)))
}

/// The repository is there. In a sandbox that was made again under its generation nothing was set up yet.
pub(super) fn brought(session: &mut Session, there: &LeftOut) {
    session.observed.sandbox.project.is_prebuilt = there.is_prebuilt;
    if there.is_new && session.sandbox.phase == Phase::Creating {
        session.sandbox.project.set_up = None;
    }
}

/// The repository's recipe was looked up. That there is none is on record too, so that nothing begins later.
pub(super) fn recipe_read(session: &mut Session, found: FoundRecipe, context: &Context<'_>) {
    // Another delivery has begun it.
    if session.sandbox.project.set_up.is_some() || session.sandbox.phase != Phase::Creating {
        return;
    }
    let FoundRecipe { recipe, commit, ticks, locks, image } = found;
    let Some(recipe) = recipe else {
        session.sandbox.project.set_up = Some(SetUp::nothing(context.now_ms));
        return;
    };
    let key = image.map(|image| BuildKey::of(&image, &recipe.text(), &locks));
    let secrets = secrets::of_set_up(session, context);
    let mut set_up = SetUp { key, secrets, ..SetUp::begin(*recipe, commit, ticks, context.now_ms) };
    if let Some(commit) = build::done_at(session, &set_up) {
        set_up.was_done(commit, context.now_ms);
    }
    session.sandbox.project.set_up = Some(set_up);
}

/// The set-up was looked at.
pub(super) fn seen(session: &mut Session, seen: &SetUpSeen, context: &Context<'_>) {
    session.observed.sandbox.project.is_set_up_seen = true;
    // A machine that is busy with a set-up may be late more than once.
    if let Some(turn) = &mut session.turn {
        turn.tries.server_restarts = 0;
    }
    let secrets = secrets::of_set_up(session, context);
    let Some(set_up) =
        session.sandbox.project.set_up.as_mut().filter(|set_up| set_up.over_ms.is_none())
    else {
        return;
    };
    // The first look may come long after the set-up was wanted.
    if seen.has_begun && !set_up.has_begun {
        (set_up.begun_ms, set_up.secrets) = (context.now_ms, secrets);
        set_up.has_begun = true;
    }
    let is_late = is_late(set_up, LATE_MS, context);
    if build::is_build(context) {
        set_up.tell(seen);
    }
    set_up.see(seen, context.now_ms);
    let has_left = seen.is_left || (is_late && !seen.is_over);
    // The files of a prebuild may be the cause of a failure; an empty sandbox does not have them.
    let has_failed = failures(set_up).next().is_some();
    if seen.is_over && has_failed && build::begin_without(session, false, context) {
        return;
    }
    if has_left && !build::begin_without(session, true, context) {
        provision::abandon(session, words::SET_UP_LEFT, context);
    }
}

/// Services and start steps were started.
pub(super) fn started(session: &mut Session, failed: Vec<FailedStep>) {
    session.observed.sandbox.project.is_started = true;
    if let Some(set_up) = &mut session.sandbox.project.set_up {
        session.observed.sandbox.project.has_news = set_up.not_started != failed;
        set_up.not_started = failed;
    }
}

/// What the card shows of a set-up that runs.
pub(super) fn shown(session: &Session) -> Option<CardState> {
    let set_up = running(session)?;
    let of = set_up.recipe.set_up.len();
    Some(CardState::SettingUp { step: (set_up.ended.len() + 1).min(of), of })
}

/// Its steps, as the card lists them.
pub(super) fn steps(session: &Session) -> Vec<CardStep> {
    let Some(set_up) = running(session) else { return Vec::new() };
    let state = |nth: usize| match set_up.ended.get(nth) {
        Some(StepEnd::Done) => StepState::Done,
        Some(_) => StepState::Failed,
        None => StepState::Running,
    };
    let begun = set_up.recipe.set_up.iter().take(set_up.ended.len() + 1).enumerate();
    begun.map(|(nth, step)| CardStep { text: named(&step.name), state: state(nth) }).collect()
}

fn running(session: &Session) -> Option<&SetUp> {
    let turn = session.turn.as_ref()?;
    let set_up = session.sandbox.project.set_up.as_ref()?;
    (turn.stage.is_received() && set_up.over_ms.is_none()).then_some(set_up)
}

/// What the cards of the turn in which the project was made ready say.
pub(super) fn fact(session: &Session, context: &Context<'_>) -> Option<String> {
    let turn = session.turn.as_ref()?;
    let set_up = session.sandbox.project.set_up.as_ref()?;
    if let Some(commit) = &set_up.prebuilt_at {
        let at = commit.get(..7).unwrap_or("the default branch");
        let is_of_turn = set_up.begun_ms >= turn.accepted_at_ms;
        let by = source(&set_up.recipe);
        return is_of_turn.then(|| format!("begun with a prebuild of {at}, {by}"));
    }
    // A step that nobody wrote, and whose program is missing, has done nothing.
    let counts = |end: &StepEnd| !set_up.recipe.is_derived || *end != StepEnd::Failed(127);
    let has_run = set_up.ended.iter().any(counts);
    let over_ms = set_up.over_ms.filter(|_| has_run)?;
    let at = set_up.commit.as_ref().and_then(|commit| commit.get(..7));
    let at = at.map(|at| format!(" at {at}")).unwrap_or_default();
    let seconds = over_ms.saturating_sub(set_up.begun_ms).div_ceil(1_000);
    let is_of_turn = set_up.begun_ms >= turn.accepted_at_ms;
    let because = build::why_none(session, context).map(|why| format!(" (no prebuild: {why})"));
    let because = because.unwrap_or_default();
    let how = match failures(set_up).next() {
        Some(_) if set_up.ended.contains(&StepEnd::Done) && set_up.recipe.is_derived => {
            "set up in part"
        }
        Some(_) => "set-up failed",
        None => "set up",
    };
    let by = source(&set_up.recipe);
    is_of_turn.then(|| format!("{how}{at} in {seconds} s, {by}{because}"))
}

/// The failures that people are told: a missing program that nobody asked for is not among them.
fn failures(set_up: &SetUp) -> impl Iterator<Item = &FailedStep> {
    let is_derived = set_up.recipe.is_derived;
    set_up.failed.iter().filter(move |one| !(is_derived && one.is_missing()))
}

/// What people are told of a project that is not wholly ready; `None`: all is well.
pub(super) fn for_people(set_up: &SetUp) -> Option<String> {
    let of = source(&set_up.recipe);
    let behind = if set_up.recipe.is_derived { "" } else { ". The steps after it were not run" };
    let failed = failures(set_up).map(|one| format!("{}{behind}", failure(one)));
    let failed: Vec<String> = failed.chain(set_up.not_started.iter().map(failure)).collect();
    let refused: Vec<String> = set_up.recipe.refused.iter().map(|one| one_line(one)).collect();
    let parts = [
        (format!("The set-up is incomplete ({of}). The agent was told."), failed),
        (format!("Not supported here ({of}):"), refused),
    ];
    let told = parts.into_iter().filter(|(_, lines)| !lines.is_empty());
    let told = told.map(|(what, lines)| format!("{what}\n- {}", lines.join("\n- ")));
    let told = told.collect::<Vec<_>>().join("\n\n");
    (!told.is_empty()).then_some(told)
}

/// What the agent is told about the project that it finds.
pub(super) fn for_agent(set_up: &SetUp) -> Option<String> {
    let recipe = &set_up.recipe;
    if recipe.from == RecipeSource::Nothing {
        return None;
    }
    let mut said = vec![match &set_up.failed[..] {
        [] if set_up.prebuilt_at.is_some() => prebuilt(set_up),
        [] if set_up.ended.is_empty() => {
            format!("The project has no set-up steps ({}).", source(recipe))
        }
        [] => format!("The project was set up ({}).", source(recipe)),
        failed => {
            let each: Vec<String> = failed.iter().map(with_output).collect();
            let behind = if recipe.is_derived { "" } else { " The steps after it were not run." };
            format!(
                "The project's set-up ({}) failed: {}.{behind}",
                source(recipe),
                each.join(". ")
            )
        }
    }];
    let is_there = |service: &ProjectService| {
        !set_up.not_started.iter().any(|one| one.name == service.title())
    };
    said.extend(
        recipe.services.iter().filter(|one| is_there(one)).map(|one| one.where_it_is().to_owned()),
    );
    said.extend(set_up.not_started.iter().map(|one| format!("{}.", with_output(one))));
    if !recipe.tools.is_empty() {
        let tools = recipe.tools.iter().map(|(tool, version)| format!("{tool} {version}"));
        said.push(format!("It wants {}.", named(&tools.collect::<Vec<_>>().join(", "))));
    }
    if !recipe.ports.is_empty() {
        let ports: Vec<String> = recipe.ports.iter().map(u16::to_string).collect();
        said.push(format!("It listens on {}.", ports.join(", ")));
    }
    Some(format!("({})", said.join(" ")))
}

/// The steps ran at the prebuild's commit; a newer commit may need more.
fn prebuilt(set_up: &SetUp) -> String {
    let short = |commit: &Option<String>| commit.as_ref()?.get(..7).map(str::to_owned);
    let (then, now) = (short(&set_up.prebuilt_at), short(&set_up.commit));
    let by = source(&set_up.recipe);
    match then.filter(|then| now.as_ref().is_some_and(|now| now != then)) {
        Some(then) => format!(
            "The project was set up before, at commit {then} ({by}). Steps that newer commits need, such as migrations, were not run."
        ),
        None => format!("The project was set up before ({by})."),
    }
}

fn source(recipe: &Recipe) -> String {
    match &recipe.from {
        RecipeSource::Settings | RecipeSource::Nothing => "by the setting environment".to_owned(),
        RecipeSource::File(path) => format!("by {}", named(path)),
    }
}

/// The same, and where its output is.
fn with_output(one: &FailedStep) -> String {
    let has_output = !one.is_unrun && one.end != StepEnd::Refused;
    let log = if has_output { format!("; its output is in {}", one.log) } else { String::new() };
    format!("{}{log}", failure(one))
}

fn failure(one: &FailedStep) -> String {
    let name = named(&one.name);
    match one.end {
        StepEnd::TooLong if one.is_unrun => {
            format!("{name} was not run: what comes before it took all the time")
        }
        _ if one.is_unrun => format!("{name} was not run"),
        StepEnd::Done => format!("{name} succeeded"),
        StepEnd::Failed(code) => format!("{name} ended with exit code {code}"),
        StepEnd::TooLong => format!("{name} took too long and was ended"),
        StepEnd::Interrupted => format!("{name} was interrupted"),
        StepEnd::Refused => format!(
            "{name} was not started: other sandboxes of this machine would reach it. Choose another provider for this project"
        ),
    }
}

/// A repository's words, as a quotation of one line.
fn named(words: &str) -> String {
    format!("`{}`", shorten(&one_line(words).replace('`', "'"), NAMED_UNITS_MAX))
}
