//! Prebuilds: built after a first set-up, and the start of a repository's next sandbox.

use super::forge::{asked, open, repository, world as world_of_forge};
use super::set_up::{calls, recipe, told, world as with_recipe};
use super::*;
use bobbin_core::base::ids::SandboxKey;
use bobbin_core::protocol::event::NotCloned;
use bobbin_core::records::prebuild::{BeginsWith, BuildPurpose, NewBuild, builder_of};
use bobbin_core::records::recipe::FoundRecipe;
use bobbin_core::records::sandbox::{KeptSnapshot, SandboxRecord, SnapshotSeen};
use bobbin_core::records::set_up::{RanStep, StepEnd};
use bobbin_core::tenant::project_secrets::{ProjectSecret, SecretRequest};
use bobbin_core::tenant::settings::{DefaultKind, SettingsChange};

const SET_UP: &str = "set up at abcdef0 in 1 s, by `.bobbin/environment.yaml`";
const BEGUN: &str = "begun with a prebuild of abcdef0, by `.bobbin/environment.yaml`";

/// A place whose provider has snapshots.
fn world() -> Fake {
    let world = with_recipe(recipe());
    says(&world, |found| found.image = Some("image-1".to_owned()));
    world
}

/// Changes the repository's recipe.
fn says(world: &Fake, change: impl Fn(&mut FoundRecipe)) {
    world.with(|s| s.project.found.as_mut().into_iter().for_each(&change));
}

fn key() -> SandboxKey {
    builder_of(&thread().tenant(), "acme/api", None)
}

fn builder(world: &Fake) -> SandboxRecord {
    world.with(|s| s.sandbox_record(&key()).unwrap())
}

/// The requests for builds so far.
fn requests(world: &Fake) -> Vec<Message> {
    world.with(|s| s.queued.clone())
}

/// A thread's first turn, and the request for a prebuild after it. The thread's sandbox is deleted.
fn set_up_once() -> (Fake, Message) {
    let world = world();
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    deliver_until_done(&world, &reset(), 1);
    world.with(|s| {
        s.project.by_generation.clear();
        s.project.calls.clear();
    });
    let [request] = &requests(&world)[..] else { panic!("{:?}", requests(&world)) };
    let request = Message { accepted_at_ms: world.now_ms(), ..request.clone() };
    (world, request)
}

/// The same, with the prebuild built.
fn built() -> Fake {
    let (world, request) = set_up_once();
    deliver_until_done(&world, &request, 1);
    world.with(|s| {
        s.project.by_generation.clear();
        s.project.calls.clear();
        s.project.created_from.clear();
    });
    world
}

fn next_turn(world: &Fake) -> Option<String> {
    deliver_until_done(world, &asked("m2", "acme/api"), 1);
    assert_eq!(outcomes(world).pop(), Some(Outcome::Answered));
    world.with(|s| s.cards.last().unwrap().set_up.clone())
}

#[test]
fn first_set_up_requests_one_prebuild() {
    let (world, request) = set_up_once();
    assert_eq!(request.thread, key().group());
    let Work::Build(build) = &request.work else { panic!("{request:?}") };
    assert_eq!((&*build.repo, &build.provider), ("acme/api", &None));
    deliver_until_done(&world, &asked("m2", "acme/api"), 1);
    assert_eq!(requests(&world).len(), 1, "the same day, the same request");
}

#[test]
fn builder_has_no_server_and_is_not_kept() {
    let (world, request) = set_up_once();
    deliver_until_done(&world, &request, 1);
    assert_eq!(calls(&world), ["clone", "read", "set up"]);
    let builder = builder(&world);
    assert_eq!((builder.phase, builder.snapshots.len()), (Phase::Destroyed, 1));
    assert_eq!(builder.history.operated[0].trouble, None);
    assert!(world.with(|s| s.sandboxes.is_empty()));
    let built = builder.snapshots[0].built.clone().unwrap();
    assert_eq!((&*built.key.image, built.commit.as_deref()), ("image-1", Some("abcdef0123")));
    // A repeat finds it.
    deliver_until_done(&world, &Message { id: "k2".into(), ..request }, 1);
    assert_eq!(calls(&world).len(), 3);
}

#[test]
fn next_sandbox_begins_with_the_prebuild() {
    let world = built();
    assert_eq!(next_turn(&world).as_deref(), Some(BEGUN));
    assert_eq!(calls(&world), ["clone", "read", "start", "serve"]);
    let from = world.with(|s| s.project.created_from.clone());
    assert_eq!(from, [Some(builder(&world).snapshots[0].name.clone())]);
    assert!(
        told(&world).starts_with(
            "(The project was set up before (by `.bobbin/environment.yaml`). PostgreSQL"
        ),
        "{}",
        told(&world)
    );
    assert_eq!(requests(&world).len(), 1);
}

#[test]
fn changed_lock_files_are_set_up_and_built_again() {
    let world = built();
    says(&world, |found| found.locks = "others".to_owned());
    assert_eq!(next_turn(&world).as_deref(), Some(SET_UP));
    assert_eq!(calls(&world), ["clone", "read", "set up", "start", "serve"]);
    let [_, second] = &requests(&world)[..] else { panic!("{:?}", requests(&world)) };
    deliver_until_done(&world, &reset(), 1);
    world.with(|s| s.project.by_generation.clear());
    later(&world, 60_000);
    let second = Message { accepted_at_ms: world.now_ms(), ..second.clone() };
    deliver_until_done(&world, &second, 1);
    assert_eq!(builder(&world).snapshots.len(), 1);
    assert_eq!(world.with(|s| s.deleted_snapshots.len()), 1);
}

#[test]
fn branch_of_its_own_is_set_up() {
    let world = built();
    deliver_until_done(&world, &asked("m2", "acme/api@next"), 1);
    assert_eq!(calls(&world), ["clone", "read", "set up", "start", "serve"]);
    assert!(world.with(|s| s.project.created_from[0].is_some()));
    assert_eq!(requests(&world).len(), 1, "its lock files are not the default branch's");
}

#[test]
fn unusable_prebuild_costs_no_turn() {
    let gone = Failure::TurnFailed { reason: "no such snapshot".to_owned() };
    let refused = Failure::NonRecoverable { advice: "the snapshot is refused".to_owned() };
    let broken = SandboxState::Broken { reason: "no image".to_owned(), recoverable: false };
    // A slow or temporarily unavailable one is not rebuilt.
    for (failure, state, is_useless) in [
        (Some(gone), None, true),
        (Some(refused), None, true),
        (Some(busy()), None, false),
        (None, Some(broken), true),
        (None, Some(SandboxState::Provisioning), false),
    ] {
        let world = built();
        world.with(|s| {
            (s.project.create_fails, s.project.created_state) = (failure.clone(), state.clone());
        });
        assert_eq!(next_turn(&world).as_deref(), Some(SET_UP));
        let from = world.with(|s| s.project.created_from.clone());
        assert!(matches!(&from[..], [Some(_), None]), "{from:?}");
        assert_eq!(calls(&world), ["clone", "read", "set up", "start", "serve"]);
        let sandbox = record(&world).sandbox;
        assert_eq!((sandbox.generation, sandbox.project.begins), (3, BeginsWith::Image));
        let asked = requests(&world).len();
        assert_eq!(asked, 1 + usize::from(is_useless), "{failure:?} {state:?}");
    }
}

#[test]
fn failed_set_up_makes_no_prebuild() {
    let (world, request) = set_up_once();
    world.with(|s| s.project.ends = Some(vec![StepEnd::Done, StepEnd::Failed(2)]));
    deliver_until_done(&world, &request, 1);
    let builder = builder(&world);
    assert_eq!((builder.phase, builder.snapshots.len()), (Phase::Destroyed, 0));
    assert_eq!(
        builder.history.operated[0].trouble.as_deref(),
        Some("the project's set-up failed in it")
    );
    // Nor is one requested for it.
    let world = self::world();
    world.with(|s| s.project.ends = Some(vec![StepEnd::Done, StepEnd::Failed(2)]));
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    assert_eq!(requests(&world), []);
}

#[test]
fn full_quota_ends_the_build() {
    let (world, request) = set_up_once();
    let full = "there is no room for another snapshot: delete one first";
    world.with(|s| s.snapshots = vec![SnapshotSeen::Failed { why: full.to_owned() }]);
    deliver_until_done(&world, &request, 1);
    let builder = builder(&world);
    assert_eq!((builder.phase, &builder.snapshots[0].built), (Phase::Destroyed, &None));
    assert_eq!(builder.history.operated[0].trouble.as_deref(), Some(full));
    assert!(world.with(|s| s.sandboxes.is_empty()));
}

fn swept(world: &Fake, id: &str) {
    let sweep = Message { thread: key().group(), ..work(id, Work::Sweep) };
    deliver_until_done(world, &sweep, 1);
}

#[test]
fn unfinished_snapshot_goes_with_the_next_sweep() {
    let (world, request) = set_up_once();
    let failed = SnapshotSeen::Failed { why: "no disk".to_owned() };
    world.with(|s| s.snapshots = vec![SnapshotSeen::UnderWay, failed]);
    deliver_until_done(&world, &request, 1);
    let left = builder(&world);
    assert_eq!(left.history.operated[0].trouble.as_deref(), Some("no disk"));
    assert_eq!((left.snapshots.len(), &left.snapshots[0].built), (1, &None));
    assert!(left.due_at_ms.unwrap() <= world.now_ms());
    swept(&world, "w1");
    assert_eq!((builder(&world).snapshots.len(), builder(&world).due_at_ms), (0, None));
    assert_eq!(world.with(|s| s.deleted_snapshots.clone()), [left.snapshots[0].name.clone()]);
}

#[test]
fn refused_deletion_of_a_prebuild_ends_its_sweep() {
    let world = built();
    let refused = Failure::NonRecoverable { advice: "the key may not".to_owned() };
    world.with(|s| {
        s.now_ms = s.sandbox_record(&key()).unwrap().due_at_ms.unwrap();
        s.fail.insert("delete_snapshot", vec![refused]);
    });
    swept(&world, "w1");
    assert_eq!(builder(&world).snapshots.len(), 1);
    swept(&world, "w2");
    assert_eq!(builder(&world).snapshots.len(), 0);
}

/// A build whose worker crashed when the snapshot was about to begin.
fn before_its_snapshot() -> (Fake, Message) {
    let begun = (1..100).find_map(|call| {
        let (world, request) = set_up_once();
        world.with(|s| s.crash_at = Some((s.calls + call, false)));
        catch_unwind(AssertUnwindSafe(|| deliver(&world, &request, 1))).unwrap_err();
        world.with(|s| s.crash_at = None);
        let record = world.with(|s| s.sandbox_record(&key()));
        let is_begun = |one: SandboxRecord| one.phase == Phase::Active && one.lease.is_some();
        record.is_some_and(is_begun).then_some((world, request))
    });
    begun.unwrap()
}

#[test]
fn builder_that_vanished_under_its_snapshot_ends() {
    let (world, request) = before_its_snapshot();
    world.with(|s| {
        s.sandboxes.clear();
        s.fail.insert("snapshot", vec![Failure::SandboxGone; 1_000]);
    });
    deliver_until_done(&world, &request, 2);
    let builder = builder(&world);
    assert_eq!((builder.phase, builder.snapshots.len()), (Phase::Destroyed, 0));
    assert_eq!(
        builder.history.operated[0].trouble.as_deref(),
        Some("its sandbox no longer exists")
    );
    assert_eq!(world.with(|s| s.fail["snapshot"].len()), 999, "it is asked for once");
}

#[test]
fn late_delivery_of_a_build_notes_its_snapshot() {
    let (world, request) = before_its_snapshot();
    later(&world, Limits::DEFAULT.share.snapshot_ms);
    world.with(|s| s.snapshots = vec![SnapshotSeen::UnderWay]);
    deliver_until_done(&world, &request, 2);
    let builder = builder(&world);
    assert_eq!(builder.history.operated[0].trouble.as_deref(), Some("it was not created in time"));
    assert_eq!((builder.snapshots.len(), &builder.snapshots[0].built), (1, &None));
}

/// The snapshot may exist at the provider: only a recorded one can be deleted.
#[test]
fn build_switched_off_notes_its_snapshot() {
    let (world, request) = before_its_snapshot();
    world.with(|s| s.limits.set_up.prebuilds = 0);
    deliver_until_done(&world, &request, 2);
    let builder = builder(&world);
    assert_eq!((builder.phase, builder.snapshots.len()), (Phase::Destroyed, 1));
    assert_eq!(
        builder.history.operated[0].trouble.as_deref(),
        Some("this stack makes no prebuilds")
    );
    assert!(world.with(|s| s.sandboxes.is_empty()));
}

#[test]
fn builder_leaves_the_last_place_to_people() {
    for (others, is_built) in [(1, false), (2, true)] {
        let (world, request) = set_up_once();
        world.with(|s| s.tenant_sandboxes = Limits::DEFAULT.tenant.sandboxes - others);
        deliver_until_done(&world, &request, 1);
        let builder = builder(&world);
        assert_eq!(builder.snapshots.len(), usize::from(is_built), "{others}");
        assert_eq!(builder.history.operated[0].trouble.is_none(), is_built, "{others}");
    }
}

#[test]
fn build_that_keeps_failing_ends() {
    let (world, request) = set_up_once();
    let tries = Limits::DEFAULT.retry.attempts + 2;
    deliver_until_done(&world, &request, tries);
    let builder = builder(&world);
    assert_eq!((builder.snapshots.len(), builder.phase), (0, Phase::Destroyed));
    assert!(builder.history.operated[0].trouble.is_some());
    assert!(world.with(|s| s.sandboxes.is_empty()));
}

#[test]
fn vanished_builder_is_made_again() {
    let (world, request) = set_up_once();
    world.with(|s| s.project.takes_ms = 15 * 60_000);
    let first = deliver(&world, &request, 1);
    assert!(matches!(first, Verdict::Hold { .. }), "{first:?}");
    world.with(|s| {
        s.sandboxes.clear();
        s.project.by_generation.clear();
    });
    deliver_until_done(&world, &request, 2);
    let calls: Vec<_> = calls(&world).into_iter().filter(|call| *call != "clone").collect();
    assert_eq!(calls, ["read", "set up", "set up"]);
    assert_eq!(builder(&world).snapshots.len(), 1);
}

#[test]
fn long_set_up_of_a_builder_is_waited_for() {
    let (world, request) = set_up_once();
    world.with(|s| s.project.takes_ms = 15 * 60_000);
    deliver_until_done(&world, &request, 1);
    assert_eq!(builder(&world).snapshots.len(), 1);
}

#[test]
fn crash_at_any_call_builds_one_prebuild() {
    let begun = || set_up_once().0;
    let (_, request) = set_up_once();
    let crashes = each_crash(begun, &request, |world, crash| {
        let builder = builder(world);
        let trouble = &builder.history.operated[0].trouble;
        assert_eq!((builder.phase, trouble), (Phase::Destroyed, &None), "{crash}");
        assert_eq!(builder.snapshots.len(), 1, "{crash}");
        assert!(world.with(|s| s.sandboxes.is_empty()), "{crash}");
        assert!(!calls(world).contains(&"serve"), "{crash}");
    });
    assert!(crashes >= 30, "{crashes}");
}

#[test]
fn crash_at_any_call_begins_with_the_prebuild() {
    let crashes = each_crash(built, &asked("m2", "acme/api"), |world, crash| {
        assert_eq!(outcomes(world).pop(), Some(Outcome::Answered), "{crash}");
        assert!(!calls(world).contains(&"set up"), "{crash}");
    });
    assert!(crashes >= 30, "{crashes}");
}

#[test]
fn secret_for_the_set_up_means_no_prebuild() {
    let world = world();
    let wish = SecretRequest {
        repository: "acme/api".to_owned(),
        name: "NPM_TOKEN".to_owned(),
        hosts: vec!["registry.acme.dev".to_owned()],
        readable: false,
        set_up: true,
    };
    let secret = ProjectSecret {
        sealed: "one".to_owned(),
        hosts: wish.hosts.clone(),
        readable: false,
        set_up: true,
        by: person("ann"),
        since_ms: 1,
    };
    world.with(|s| s.settings = s.settings.with_secret("one", &wish, secret).unwrap());
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    assert_eq!(requests(&world), []);
    assert_eq!(world.with(|s| s.project.created_from.clone()), [None]);
    let shown = world.with(|s| s.cards.last().unwrap().set_up.clone());
    assert_eq!(
        shown.as_deref(),
        Some(
            "set up at abcdef0 in 1 s, by `.bobbin/environment.yaml` (no prebuild: a secret is for its set-up)"
        )
    );
}

#[test]
fn old_prebuild_expires() {
    let world = built();
    let due = builder(&world).due_at_ms.unwrap();
    let sweep = |id: &str| Message { thread: key().group(), ..work(id, Work::Sweep) };
    world.with(|s| s.now_ms = due - 1);
    deliver_until_done(&world, &sweep("w1"), 1);
    assert_eq!(builder(&world).snapshots.len(), 1);
    world.with(|s| s.now_ms = due);
    deliver_until_done(&world, &sweep("w2"), 1);
    assert_eq!((builder(&world).snapshots.len(), builder(&world).due_at_ms), (0, None));
}

#[test]
fn prebuild_of_other_credentials_is_left() {
    let world = built();
    world.with(|s| {
        let mut record = s.sandbox_record(&key()).unwrap();
        record.spec.credentials = Some("theirs".to_owned());
        s.apart.insert(key(), record);
    });
    assert_eq!(next_turn(&world).as_deref(), Some(SET_UP));
    assert_eq!(world.with(|s| s.project.created_from.clone()), [None]);
}

#[test]
fn share_of_zero_makes_and_uses_none() {
    let world = built();
    world.with(|s| s.limits.set_up.prebuilds = 0);
    next_turn(&world);
    assert_eq!(world.with(|s| s.project.created_from.clone()), [None]);
}

/// A useless prebuild is deleted and rebuilt; a temporarily unavailable one is kept.
#[test]
fn useless_prebuild_is_made_again() {
    let gone = Failure::TurnFailed { reason: "no such snapshot".to_owned() };
    for (failure, is_useless) in [(gone, true), (busy(), false)] {
        let world = built();
        let before = builder(&world).snapshots[0].name.clone();
        world.with(|s| s.project.create_fails = Some(failure.clone()));
        next_turn(&world);
        let Work::Build(build) = requests(&world).last().unwrap().work.clone() else { panic!() };
        assert_eq!(build.useless, is_useless.then_some(before.clone()));
        let Some(request) = requests(&world).get(1).cloned().filter(|_| is_useless) else {
            continue;
        };
        deliver_until_done(&world, &reset(), 1);
        world.with(|s| s.project.by_generation.clear());
        later(&world, 60_000);
        let request = Message { accepted_at_ms: world.now_ms(), ..request };
        deliver_until_done(&world, &request, 1);
        assert_ne!(builder(&world).snapshots[0].name, before);
        assert_eq!(world.with(|s| s.deleted_snapshots.clone()), [before]);
    }
}

#[test]
fn newer_commit_is_told_what_did_not_run() {
    let world = built();
    says(&world, |found| found.commit = Some("0123456789".to_owned()));
    next_turn(&world);
    let said = "(The project was set up before, at commit abcdef0 (by `.bobbin/environment.yaml`). Steps that newer commits need, such as migrations, were not run.";
    assert!(told(&world).starts_with(said), "{}", told(&world));
}

#[test]
fn refused_repository_costs_no_second_sandbox() {
    let world = built();
    world.with(|s| s.not_cloned = Some(NotCloned::NoRef));
    deliver_until_done(&world, &asked("m2", "acme/api"), 1);
    assert_eq!(world.with(|s| s.project.created_from.len()), 1);
    assert!(matches!(outcomes(&world).pop(), Some(Outcome::Failed { .. })));
}

#[test]
fn failed_clone_into_a_prebuild_is_tried_without() {
    let world = built();
    world.with(|s| s.not_cloned = Some(NotCloned::NoRoom));
    assert_eq!(next_turn(&world).as_deref(), Some(SET_UP));
    let from = world.with(|s| s.project.created_from.clone());
    assert!(matches!(&from[..], [Some(_), None]), "{from:?}");
}

/// A name may lead to another repository than when the prebuild was made, or the forge's app sees it now.
#[test]
fn prebuild_of_another_repository_is_left() {
    let world = built();
    for of in [Some(1), Some(2)] {
        let kept = |record: &mut SandboxRecord| {
            record.snapshots[0].built.as_mut().unwrap().repository = of;
        };
        world.with(|s| {
            let mut record = s.sandbox_record(&key()).unwrap();
            kept(&mut record);
            s.apart.insert(key(), record);
        });
        let id = format!("n{}", of.unwrap());
        deliver_until_done(&world, &asked(&id, "acme/api"), 1);
        assert_eq!(outcomes(&world).pop(), Some(Outcome::Answered));
        let from = world.with(|s| std::mem::take(&mut s.project.created_from));
        assert!(matches!(&from[..], [Some(_), None]), "{from:?}");
        deliver_until_done(&world, &Message { id: format!("r{id}").into(), ..reset() }, 1);
        world.with(|s| s.project.by_generation.clear());
    }
}

#[test]
fn queued_build_stops_where_it_is_not_wanted() {
    let (world, request) = set_up_once();
    world.with(|s| s.limits.set_up.prebuilds = 0);
    deliver_until_done(&world, &request, 1);
    assert_eq!((calls(&world).len(), builder(&world).generation), (0, 0));
}

#[test]
fn other_credentials_get_a_prebuild_of_their_own() {
    let (world, request) = set_up_once();
    deliver_until_done(&world, &request, 1);
    let before = builder(&world).snapshots[0].name.clone();
    world.with(|s| {
        let mut record = s.sandbox_record(&key()).unwrap();
        record.spec.credentials = Some("theirs".to_owned());
        s.apart.insert(key(), record);
        s.project.by_generation.clear();
    });
    later(&world, 60_000);
    let again = Message { id: "k2".into(), accepted_at_ms: world.now_ms(), ..request };
    deliver_until_done(&world, &again, 1);
    assert_eq!(world.with(|s| s.deleted_snapshots.clone()), [before]);
    assert_eq!((builder(&world).snapshots.len(), builder(&world).spec.credentials), (1, None));
}

#[test]
fn step_failing_in_prebuild_reruns_without_it() {
    let world = built();
    world.with(|s| s.project.ends = Some(vec![StepEnd::Done, StepEnd::Failed(2)]));
    deliver_until_done(&world, &asked("m2", "acme/api@next"), 1);
    assert_eq!(outcomes(&world).pop(), Some(Outcome::Answered));
    let from = world.with(|s| s.project.created_from.clone());
    assert!(matches!(&from[..], [Some(_), None]), "{from:?}");
    let set_ups = calls(&world).into_iter().filter(|call| *call == "set up").count();
    assert_eq!(set_ups, 2);
    assert!(told(&world).contains("exit code 2"), "{}", told(&world));
}

/// A person's request, later than everything before it.
fn wanted(world: &Fake, id: &str, purpose: BuildPurpose) -> Message {
    later(world, 60_000);
    world.with(|s| {
        s.project.by_generation.clear();
        s.project.calls.clear();
    });
    let build = NewBuild {
        repo: "acme/api".to_owned(),
        provider: None,
        channel: String::new(),
        hash: String::new(),
        useless: None,
        purpose,
    };
    let (thread, accepted_at_ms) = (key().group(), world.now_ms());
    Message { thread, accepted_at_ms, ..work(id, Work::Build(build)) }
}

/// How the last message of a builder ended.
fn trouble(world: &Fake) -> Option<String> {
    builder(world).history.operated.pop().unwrap().trouble
}

fn kept(world: &Fake) -> Vec<String> {
    builder(world).snapshots.into_iter().map(|kept| kept.name).collect()
}

#[test]
fn person_builds_again_whatever_is_there() {
    let world = built();
    let before = kept(&world);
    let request = wanted(&world, "p1", BuildPurpose::Build);
    deliver_until_done(&world, &request, 1);
    assert_eq!((calls(&world), trouble(&world)), (vec!["clone", "read", "set up"], None));
    let first = kept(&world);
    assert!(first.len() == 1 && first != before, "{first:?}");
    assert_eq!(world.with(|s| s.deleted_snapshots.clone()), before);
    // The same message again does nothing; another one builds.
    deliver_until_done(&world, &request, 2);
    assert_eq!((calls(&world).len(), kept(&world)), (3, first.clone()));
    deliver_until_done(&world, &wanted(&world, "p2", BuildPurpose::Build), 1);
    assert_ne!(kept(&world), first);
    world.with(|s| s.project.by_generation.clear());
    assert_eq!(next_turn(&world).as_deref(), Some(BEGUN));
}

#[test]
fn try_keeps_nothing_and_leaves_the_former_prebuild() {
    let world = built();
    let before = kept(&world);
    deliver_until_done(&world, &wanted(&world, "p1", BuildPurpose::Try), 1);
    assert_eq!((calls(&world), trouble(&world)), (vec!["clone", "read", "set up"], None));
    let builder = builder(&world);
    assert_eq!((kept(&world), builder.phase), (before, Phase::Destroyed));
    assert!(world.with(|s| s.sandboxes.is_empty() && s.deleted_snapshots.is_empty()));
    let passed = |name: &str| RanStep {
        name: name.to_owned(),
        end: StepEnd::Done,
        took_s: Some(3),
        said: String::new(),
    };
    let set_up = builder.project.set_up.unwrap();
    assert_eq!(set_up.ran, [passed("npm ci"), passed("npm run build")]);
    world.with(|s| s.project.by_generation.clear());
    assert_eq!(next_turn(&world).as_deref(), Some(BEGUN));
}

#[test]
fn failed_try_says_what_the_step_has_said() {
    let world = world();
    world.with(|s| s.project.ends = Some(vec![StepEnd::Done, StepEnd::Failed(2)]));
    deliver_until_done(&world, &wanted(&world, "p1", BuildPurpose::Try), 1);
    assert_eq!(trouble(&world).as_deref(), Some("the project's set-up failed in it"));
    let ran = builder(&world).project.set_up.unwrap().ran;
    let said: Vec<_> = ran.iter().map(|step| (&*step.name, step.end, &*step.said)).collect();
    let failed = ("npm run build", StepEnd::Failed(2), "no such table");
    assert_eq!(said, [("npm ci", StepEnd::Done, ""), failed]);
    // A thread's own set-up records nothing like that.
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    assert_eq!(record(&world).sandbox.project.set_up.unwrap().ran, []);
}

#[test]
fn try_needs_no_snapshots() {
    for (purpose, expected) in
        [(BuildPurpose::Try, None), (BuildPurpose::Build, Some("its provider makes no snapshots"))]
    {
        let world = with_recipe(recipe());
        deliver_until_done(&world, &wanted(&world, "p1", purpose), 1);
        assert_eq!((trouble(&world).as_deref(), kept(&world).len()), (expected, 0));
    }
}

#[test]
fn forgetting_deletes_each_and_a_build_works_again() {
    let world = built();
    world.with(|s| {
        let mut record = s.sandbox_record(&key()).unwrap();
        let older = KeptSnapshot { name: "older".to_owned(), ..record.snapshots[0].clone() };
        record.snapshots.insert(0, older);
        s.apart.insert(key(), record);
    });
    let before = kept(&world);
    assert_eq!(before.len(), 2);
    deliver_until_done(&world, &wanted(&world, "p1", BuildPurpose::Forget), 1);
    assert_eq!((trouble(&world), calls(&world).len(), kept(&world).len()), (None, 0, 0));
    assert_eq!(world.with(|s| s.deleted_snapshots.clone()), before);
    assert_eq!(builder(&world).due_at_ms, None);
    deliver_until_done(&world, &wanted(&world, "p2", BuildPurpose::Build), 1);
    assert_eq!((trouble(&world), kept(&world).len()), (None, 1));
}

#[test]
fn threads_go_on_without_a_forgotten_prebuild() {
    let world = built();
    deliver_until_done(&world, &wanted(&world, "p1", BuildPurpose::Forget), 1);
    assert_eq!(next_turn(&world).as_deref(), Some(SET_UP));
    assert_eq!(world.with(|s| s.project.created_from.clone()), [None]);
}

/// Without a record nothing is called.
#[test]
fn nothing_is_forgotten_where_nothing_is() {
    let world = world();
    deliver_until_done(&world, &wanted(&world, "p1", BuildPurpose::Forget), 1);
    assert_eq!((trouble(&world), builder(&world).generation), (None, 0));
    assert!(world.with(|s| s.deleted_snapshots.is_empty()));
}

#[test]
fn person_is_told_why_nothing_is_built() {
    let off = SettingsChange::Environment {
        repository: "acme/api".to_owned(),
        text: "off".to_owned(),
        beside: Vec::new(),
    };
    let with_docs = SettingsChange::Environment {
        repository: "acme/api".to_owned(),
        text: "own".to_owned(),
        beside: vec!["acme/docs".to_owned()],
    };
    let submodules = SettingsChange::Default {
        channel: None,
        of: DefaultKind::Submodules,
        value: Some("yes".to_owned()),
    };
    for (change, expected) in [
        (off, "managers have switched its set-up off"),
        (with_docs, "there are repositories beside it"),
        (submodules, "its submodules come with it there, and a builder brings none"),
    ] {
        for purpose in [BuildPurpose::Build, BuildPurpose::Try] {
            let world = world();
            let (manager, ann) =
                (Membership { manages: true, ..Membership::default() }, person("ann"));
            world.with(|s| {
                s.settings = s.settings.changed("c1", &change, &ann, &manager, 1).unwrap();
            });
            deliver_until_done(&world, &wanted(&world, "p1", purpose), 1);
            assert_eq!(trouble(&world).as_deref(), Some(expected), "{purpose:?}");
            assert_eq!((calls(&world).len(), builder(&world).generation), (0, 0));
        }
    }
}

#[test]
fn stack_limits_bound_requested_builds() {
    for (prebuilds, all_ms, purpose, expected) in [
        (0, 60_000, BuildPurpose::Build, Some("this stack makes no prebuilds")),
        (0, 60_000, BuildPurpose::Try, None),
        (5, 0, BuildPurpose::Try, Some("this stack makes no project ready")),
    ] {
        let world = world();
        world.with(|s| (s.limits.set_up.prebuilds, s.limits.set_up.all_ms) = (prebuilds, all_ms));
        deliver_until_done(&world, &wanted(&world, "p1", purpose), 1);
        assert_eq!(trouble(&world).as_deref(), expected, "{purpose:?}");
    }
}

#[test]
fn repository_that_is_not_open_is_not_built() {
    let private = || FoundRepository::Here { repository: repository("acme/api", true), size_kb: 0 };
    for (open_in, asked_in, is_open) in [
        (None, "", true),
        (Some("10"), "10", true),
        (Some("10"), "11", false),
        (Some("10"), "", false),
    ] {
        let world = world_of_forge(private());
        world
            .with(|s| s.project.found.clone_from(&self::world().with(|s| s.project.found.clone())));
        open(&world, open_in, "acme/api");
        let mut request = wanted(&world, "p1", BuildPurpose::Build);
        let Work::Build(build) = &mut request.work else { panic!() };
        build.channel = asked_in.to_owned();
        deliver_until_done(&world, &request, 1);
        let refused = "The repository acme/api could not be cloned: it is private, and no manager has opened it here. A manager can open it in Bobbin's settings. Nothing was run.";
        assert_eq!(trouble(&world).as_deref(), (!is_open).then_some(refused), "{asked_in}");
        assert_eq!(
            (kept(&world).len(), builder(&world).phase),
            (usize::from(is_open), Phase::Destroyed)
        );
    }
}

#[test]
fn person_is_told_of_a_full_place() {
    let world = world();
    world.with(|s| s.tenant_sandboxes = Limits::DEFAULT.tenant.sandboxes);
    deliver_until_done(&world, &wanted(&world, "p1", BuildPurpose::Try), 1);
    let told = trouble(&world).unwrap();
    assert!(told.contains("sandboxes") && !told.contains("not ready"), "{told}");
}

#[test]
fn requested_builds_end_despite_any_crash() {
    let request = |purpose| wanted(&built(), "p1", purpose);
    for (purpose, snapshots, least) in
        [(BuildPurpose::Build, 1, 30), (BuildPurpose::Try, 1, 20), (BuildPurpose::Forget, 0, 4)]
    {
        let before = kept(&built());
        let begun = || {
            let world = built();
            wanted(&world, "p1", purpose);
            world
        };
        let crashes = each_crash(begun, &request(purpose), |world, crash| {
            assert_eq!(trouble(world), None, "{purpose:?}, {crash}");
            let builder = builder(world);
            assert_eq!(
                (builder.phase, builder.snapshots.len()),
                (Phase::Destroyed, snapshots),
                "{crash}"
            );
            assert_eq!(kept(world) == before, purpose == BuildPurpose::Try, "{purpose:?}, {crash}");
            assert!(world.with(|s| s.sandboxes.is_empty()), "{crash}");
            assert!(!calls(world).contains(&"serve"), "{crash}");
        });
        assert!(crashes >= least, "{purpose:?}: {crashes}");
    }
}
