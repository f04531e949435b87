//! A project's set-up between its repository and its agent's server.

use super::forge::{asked, repository, world as with_forge};
use super::*;
use bobbin_core::protocol::effect::RecipeAt;
use bobbin_core::records::card::{CardState, CardStep, StepState};
use bobbin_core::records::control::Operation;
use bobbin_core::records::recipe::{FoundRecipe, ProjectService, Recipe, RecipeSource, RecipeStep};
use bobbin_core::records::sandbox::SnapshotSeen;
use bobbin_core::records::set_up::{FailedStep, SetUpSeen, StepEnd};
use bobbin_sim::project::Project;

/// The project in the sandboxes, and its history.
#[derive(Default)]
pub(super) struct FakeProject {
    /// The repository's recipe.
    pub(super) found: Option<FoundRecipe>,
    /// Where the recipe was read.
    read_at: Vec<RecipeAt>,
    /// How long a set-up takes.
    pub(super) takes_ms: u64,
    /// Results of its steps, if not all succeed.
    pub(super) ends: Option<Vec<StepEnd>>,
    /// How many steps there is no time for.
    unrun: usize,
    /// Its processes cannot be stopped.
    is_left: bool,
    /// Its steps remove what says that they have begun.
    begins_again: bool,
    /// What does not start.
    pub(super) not_started: Vec<FailedStep>,
    /// The calls in order, without polls of a set-up under way.
    pub(super) calls: Vec<&'static str>,
    pub(super) by_generation: BTreeMap<u32, Project>,
    /// A server started beside a set-up.
    served_beside: bool,
    /// The prebuilds that sandboxes were created from, in order.
    pub(super) created_from: Vec<Option<String>>,
    /// How the next create from a prebuild fails.
    pub(super) create_fails: Option<Failure>,
    /// The state of the next sandbox, if it does not run.
    pub(super) created_state: Option<SandboxState>,
}

impl FakeProject {
    pub(super) fn read(&mut self, at: &RecipeAt) -> FoundRecipe {
        self.calls.push("read");
        self.read_at.push(at.clone());
        self.found.clone().unwrap_or_else(bobbin_sim::project::nothing)
    }

    pub(super) fn look(&mut self, generation: u32, steps: usize, now_ms: Ms) -> SetUpSeen {
        if !self.by_generation.contains_key(&generation) {
            self.calls.push("set up");
        }
        let project = self.by_generation.entry(generation).or_default();
        let seen = project.look(steps, self.takes_ms, now_ms);
        let ended = match (&self.ends, seen.is_over) {
            (Some(ends), true) => ends.clone(),
            _ => seen.ended,
        };
        let (took_s, said) = (vec![3; ended.len()], "no such table".to_owned());
        let has_begun = seen.has_begun || self.begins_again;
        let (unrun, is_left) = (self.unrun, self.is_left);
        SetUpSeen { ended, unrun, is_left, has_begun, took_s, said, ..seen }
    }

    pub(super) fn serves(&mut self, generation: u32) {
        self.calls.push("serve");
        self.served_beside |= self.by_generation.get(&generation).is_some_and(|one| one.runs);
    }
}

pub(super) fn recipe() -> Recipe {
    let step = |name: &str| RecipeStep { name: name.to_owned(), run: name.to_owned() };
    Recipe {
        set_up: vec![step("npm ci"), step("npm run build")],
        start: vec![step("npm run watch")],
        services: vec![ProjectService::Postgres],
        ports: vec![3000],
        tools: vec![("node".to_owned(), "22".to_owned())],
        ..Recipe::empty(RecipeSource::File(".bobbin/environment.yaml".to_owned()))
    }
}

/// A place whose repositories all have this recipe.
pub(super) fn world(recipe: Recipe) -> Fake {
    let world = Fake::new();
    world.with(|s| {
        s.project.found = Some(FoundRecipe {
            recipe: Some(Box::new(recipe)),
            commit: Some("abcdef0123".to_owned()),
            ticks: 7,
            locks: String::new(),
            image: None,
        });
    });
    world
}

pub(super) fn calls(world: &Fake) -> Vec<&'static str> {
    world.with(|s| s.project.calls.clone())
}

pub(super) fn told(world: &Fake) -> String {
    world.with(|s| s.told.last().cloned().unwrap())
}

#[test]
fn project_is_ready_before_the_server_starts() {
    let world = world(recipe());
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    assert_eq!(outcomes(&world), [Outcome::Answered]);
    assert_eq!(calls(&world), ["clone", "read", "set up", "start", "serve"]);
    assert_eq!(
        told(&world),
        "(The project was set up (by `.bobbin/environment.yaml`). PostgreSQL listens on 127.0.0.1:5432 (user and database postgres, no password). It wants `node 22`. It listens on 3000.)\n\ndo it"
    );
    // The next turn finds it unchanged.
    deliver_until_done(&world, &asked("m2", "acme/api"), 1);
    assert_eq!((calls(&world).len(), &*told(&world)), (5, "do it"));
}

#[test]
fn resumed_sandbox_only_starts_its_project() {
    let world = world(recipe());
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    later(&world, world.with(|s| s.limits.sandbox.idle_pause_ms));
    deliver_until_done(&world, &work("w", Work::Sweep), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Paused);
    deliver_until_done(&world, &asked("m2", "acme/api"), 1);
    assert_eq!(calls(&world)[5..], ["start", "serve"]);
}

#[test]
fn snapshot_given_up_starts_services_again() {
    let refused = Failure::NonRecoverable { advice: "the key may not".to_owned() };
    let last = Limits::DEFAULT.retry.attempts + 2;
    for (receive, failure, why) in [
        (1, None, "it was not created in time"),
        (1, Some(refused), "it was not created in time"),
        (last, None, "it kept failing"),
    ] {
        let world = world(recipe());
        deliver_until_done(&world, &asked("m1", "acme/api"), 1);
        let starts = if failure.is_none() { 2 } else { 1 };
        world.with(|s| {
            s.snapshots = vec![SnapshotSeen::UnderWay; 10];
            s.fail.insert("start_project", failure.into_iter().collect());
            s.names.clear();
        });
        let snapshot = work("k1", Work::Operate { want: Operation::Snapshot, by: None });
        let accepted_at_ms = world.now_ms() + 3_000 - Limits::DEFAULT.share.snapshot_ms;
        let snapshot = Message { accepted_at_ms, ..snapshot };
        deliver_until_done(&world, &snapshot, receive);
        let sandbox = record(&world).sandbox;
        assert_eq!(sandbox.history.operated[0].trouble.as_deref(), Some(why));
        assert!(sandbox.lease.is_none() && sandbox.phase == Phase::Active, "{sandbox:?}");
        let tries = |s: &mut State| s.names.iter().filter(|one| **one == "start_project").count();
        assert_eq!(world.with(tries), 1, "{why}");
        assert_eq!(calls(&world).iter().filter(|one| **one == "start").count(), starts, "{why}");
    }
}

#[test]
fn card_shows_each_step_once() {
    let world = world(recipe());
    world.with(|s| s.project.takes_ms = 10_000);
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    let step = |text: &str, state| CardStep { text: format!("`{text}`"), state };
    let cards = world.with(|s| s.cards.clone());
    let shown: Vec<_> = cards
        .iter()
        .filter_map(|card| match card.state {
            CardState::SettingUp { step, of } => Some((step, of, card.steps.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(
        shown,
        [
            (1, 2, vec![step("npm ci", StepState::Running)]),
            (
                2,
                2,
                vec![step("npm ci", StepState::Done), step("npm run build", StepState::Running)]
            ),
        ]
    );
    let last = cards.last().unwrap().set_up.clone();
    assert_eq!(last.unwrap(), "set up at abcdef0 in 12 s, by `.bobbin/environment.yaml`");
}

#[test]
fn failed_step_costs_the_turn_nothing() {
    let world = world(recipe());
    world.with(|s| s.project.ends = Some(vec![StepEnd::Done, StepEnd::Failed(2)]));
    world.with(|s| {
        let (name, log) = ("PostgreSQL".to_owned(), ".bobbin/start/postgres.log".to_owned());
        let end = StepEnd::Failed(127);
        s.project.not_started = vec![FailedStep { name, end, is_unrun: false, log }];
    });
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    assert_eq!(outcomes(&world), [Outcome::Answered]);
    assert_eq!(
        told(&world),
        "(The project's set-up (by `.bobbin/environment.yaml`) failed: `npm run build` ended with exit code 2; its output is in .bobbin/set-up/2.log. The steps after it were not run. `PostgreSQL` ended with exit code 127; its output is in .bobbin/start/postgres.log. It wants `node 22`. It listens on 3000.)\n\ndo it"
    );
    assert_eq!(
        share::notices(&world),
        [
            "The set-up is incomplete (by `.bobbin/environment.yaml`). The agent was told.\n- `npm run build` ended with exit code 2. The steps after it were not run\n- `PostgreSQL` ended with exit code 127"
        ]
    );
}

#[test]
fn step_without_time_is_told_as_not_run() {
    let unrun = "was not run: what comes before it took all the time.";
    let first = format!("`npm ci` {unrun} The steps after it were not run.");
    let each = format!("`npm ci` {unrun} `npm run build` {unrun}");
    for (is_derived, why) in [(false, first), (true, each)] {
        let world = world(Recipe { is_derived, ..recipe() });
        world.with(|s| (s.project.ends, s.project.unrun) = (Some(Vec::new()), 2));
        deliver_until_done(&world, &asked("m1", "acme/api"), 1);
        assert_eq!(outcomes(&world), [Outcome::Answered]);
        let told = told(&world);
        assert!(told.contains(&format!("failed: {why} PostgreSQL listens")), "{told}");
    }
}

#[test]
fn long_set_up_is_looked_at_now_and_then() {
    let world = world(recipe());
    world.with(|s| s.project.takes_ms = 15 * 60_000);
    let receives = deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    assert_eq!((outcomes(&world), receives), (vec![Outcome::Answered], 13));
    let calls = calls(&world).into_iter().filter(|call| *call != "clone").collect::<Vec<_>>();
    assert_eq!(calls, ["read", "set up", "start", "serve"]);
}

#[test]
fn late_first_look_has_all_its_time() {
    let world = world(recipe());
    world.with(|s| {
        (s.project.takes_ms, s.limits.set_up.all_ms) = (50_000, 60_000);
        let busy = Failure::Wait { after_ms: 0, seen: "busy".to_owned() };
        s.fail.insert("set_up", vec![busy]);
    });
    let first = deliver(&world, &asked("m1", "acme/api"), 1);
    assert!(matches!(first, Verdict::Hold { .. }), "{first:?}");
    later(&world, 300_000);
    deliver_until_done(&world, &asked("m1", "acme/api"), 2);
    assert_eq!(outcomes(&world), [Outcome::Answered]);
}

#[test]
fn set_up_begins_once() {
    let world = world(recipe());
    world.with(|s| (s.project.takes_ms, s.project.begins_again) = (u64::MAX, true));
    let asked_ms = world.now_ms();
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    let reason = choice::reason(&world);
    assert!(reason.starts_with("Set-up processes could not be stopped"), "{reason}");
    let took_ms = world.now_ms() - asked_ms;
    let all_ms = Limits::DEFAULT.set_up.all_ms;
    assert!((all_ms..all_ms + 10 * 60_000).contains(&took_ms), "{took_ms}");
}

#[test]
fn missing_lock_file_program_reaches_agent_only() {
    let world =
        world(Recipe { is_derived: true, start: Vec::new(), services: Vec::new(), ..recipe() });
    world.with(|s| s.project.ends = Some(vec![StepEnd::Failed(127), StepEnd::Done]));
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    assert_eq!(outcomes(&world), [Outcome::Answered]);
    assert!(
        told(&world).starts_with(
            "(The project's set-up (by `.bobbin/environment.yaml`) failed: `npm ci` ended with exit code 127; its output is in .bobbin/set-up/1.log. It wants"
        ),
        "{}",
        told(&world)
    );
    assert_eq!(share::notices(&world), [""; 0]);
}

#[test]
fn sandbox_made_again_is_set_up_again() {
    let world = world(recipe());
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    // It was lost before anybody saw it run, and the next delivery creates it again under its name.
    world.with(|s| {
        let sandbox = &mut s.record.as_mut().unwrap().sandbox;
        sandbox.phase = Phase::Creating;
        s.sandboxes.clear();
        s.project.by_generation.clear();
        s.left_out.is_new = true;
    });
    deliver_until_done(&world, &asked("m2", "acme/api"), 1);
    assert_eq!(calls(&world)[5..], ["clone", "read", "set up", "start", "serve"]);
    assert_eq!(record(&world).sandbox.generation, 1);
}

#[test]
fn sandboxes_without_a_bound_are_left_alone() {
    let world = world(recipe());
    world.with(|s| s.limits.set_up.all_ms = 0);
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    assert_eq!((calls(&world), told(&world)), (vec!["clone", "serve"], "do it".to_owned()));
    assert_eq!(record(&world).sandbox.project.set_up, None);
}

#[test]
fn processes_left_behind_start_no_agent() {
    let world = world(recipe());
    world.with(|s| s.project.is_left = true);
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    assert_eq!(
        choice::reason(&world),
        "Set-up processes could not be stopped, and the agent does not start beside them, so nothing was run. Fix the steps, or switch them off with the setting environment."
    );
    assert_eq!(calls(&world), ["clone", "read", "set up"]);
    assert_eq!(world.with(|s| s.sandboxes.len()), 0);
}

#[test]
fn stop_ends_the_wait_for_a_set_up() {
    let world = world(recipe());
    world.with(|s| s.project.takes_ms = 15 * 60_000);
    let first = deliver(&world, &asked("m1", "acme/api"), 1);
    assert!(matches!(first, Verdict::Hold { .. }), "{first:?}");
    world.with(|s| s.flags.cancelled.insert("m1".into(), person("ben")));
    deliver_until_done(&world, &asked("m1", "acme/api"), 2);
    assert_eq!(outcomes(&world), [Outcome::Cancelled { by: "ben".to_owned() }]);
}

#[test]
fn only_the_default_branch_says_how() {
    let found = FoundRepository::Here { repository: repository("acme/api", false), size_kb: 0 };
    let world = with_forge(found);
    forge::open(&world, None, "acme/api");
    world.with(|s| s.branches.insert("main".to_owned(), "c".repeat(40)));
    deliver_until_done(&world, &asked("m1", "acme/api@release-2"), 1);
    let at = world.with(|s| (s.brought.clone(), s.project.read_at.clone()));
    assert_eq!(at, (vec!["main".to_owned()], vec![RecipeAt::Brought("main".to_owned())]));
}

#[test]
fn checkout_of_a_snapshot_is_no_default_branch() {
    let found = FoundRepository::Here { repository: repository("acme/api", false), size_kb: 0 };
    let world = with_forge(found);
    forge::open(&world, None, "acme/api");
    world.with(|s| s.branches.insert("main".to_owned(), "c".repeat(40)));
    let mut message = asked("m1", "acme/api");
    let Work::Prompt(prompt) = &mut message.work else { panic!("{message:?}") };
    prompt.wants.snapshot = Some("kept".to_owned());
    deliver_until_done(&world, &message, 1);
    assert_eq!(outcomes(&world), [Outcome::Answered]);
    let at = world.with(|s| s.project.read_at.clone());
    assert_eq!(at, [RecipeAt::Brought("main".to_owned())]);
}

#[test]
fn refused_service_is_told_without_a_log() {
    let world = world(recipe());
    world.with(|s| {
        let (name, log) = ("PostgreSQL".to_owned(), ".bobbin/start/postgres.log".to_owned());
        let end = StepEnd::Refused;
        s.project.not_started = vec![FailedStep { name, end, is_unrun: false, log }];
    });
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    let why = "`PostgreSQL` was not started: other sandboxes of this machine would reach it. Choose another provider for this project";
    assert!(told(&world).contains(&format!("{why}. It wants")), "{}", told(&world));
}

#[test]
fn crash_at_any_call_sets_up_once() {
    let begun = || {
        let world = world(recipe());
        world.with(|s| s.project.takes_ms = 20_000);
        world
    };
    let crashes = each_crash(begun, &asked("m1", "acme/api"), |world, crash| {
        assert_eq!(outcomes(world), [Outcome::Answered], "{crash}");
        assert!(!world.with(|s| s.project.served_beside), "{crash}");
        let begun = calls(world).into_iter().filter(|call| *call == "set up").count();
        assert_eq!(begun, 1, "{crash}");
    });
    assert!(crashes >= 30, "{crashes}");
}
