//! A sandbox that is not found: when that is believed.

use super::fake::*;
use super::*;
use bobbin_core::protocol::decide::orphan::{Graces, RecordVerdict, fate};
use bobbin_core::records::session::StrayRun;

/// How often a check was repeated before it was believed.
fn confirmed(world: &Fake) -> usize {
    world.with(|s| s.names.iter().filter(|name| **name == "confirm").count())
}

/// A thread whose sandbox is paused.
fn paused() -> Fake {
    let world = active();
    world.with(|s| {
        s.now_ms += Limits::DEFAULT.sandbox.idle_pause_ms;
    });
    deliver_until_done(&world, &work("w1", Work::Sweep), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Paused);
    world
}

#[test]
fn one_absent_answer_keeps_the_sandbox() {
    for work_of in [prompt("m2"), work("l1", Work::Reconcile)] {
        let world = paused();
        world.with(|s| s.lies = 1);
        let began_ms = world.with(|s| s.now_ms);
        deliver_until_done(&world, &work_of, 1);
        let took_ms = world.with(|s| s.now_ms) - began_ms;
        assert_eq!(record(&world).sandbox.generation, 1);
        assert_ne!(record(&world).sandbox.phase, Phase::Destroyed);
        assert_eq!(confirmed(&world), 1);
        assert!(took_ms >= Limits::DEFAULT.sandbox.gone_apart_ms, "{took_ms}");
    }
}

#[test]
fn sandbox_gone_error_is_verified_first() {
    let world = active();
    world.with(|s| {
        s.lies = 1;
        s.fail.insert("follow", vec![Failure::SandboxGone]);
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world), [Outcome::Answered, Outcome::Answered]);
    assert_eq!(record(&world).sandbox.generation, 1);
}

#[test]
fn repeated_gone_claims_are_bounded() {
    let world = active();
    world.with(|s| {
        s.lies = 100;
        s.fail.insert("check_server", vec![Failure::SandboxGone; 100]);
    });
    world.with(|s| s.sandboxes.insert(1, SandboxState::Running));
    deliver_until_done(&world, &prompt("m2"), 1);
    assert!(confirmed(&world) <= 10, "{}", confirmed(&world));
}

#[test]
fn false_absence_still_ends_stray_run() {
    let world = active();
    let run =
        StrayRun { generation: 1, agent_session: "ses_1".into(), messages: vec!["msg".to_owned()] };
    world.with(|s| {
        s.record.as_mut().unwrap().stray = Some(run.clone());
        s.lies = 1;
        s.fail.insert("end_run", vec![Failure::SandboxGone]);
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    world.with(|s| assert_eq!(s.ended_runs, [run]));
}

#[test]
fn our_own_delete_is_not_doubted() {
    let world = active();
    deliver_until_done(&world, &reset(), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
    assert_eq!((confirmed(&world), record(&world).sandbox.history.vanished), (0, None));
}

#[test]
fn new_sandbox_may_be_unlisted_briefly() {
    let world = Fake::new();
    world.with(|s| {
        s.lies = 3;
        s.fail.insert("ensure_server", vec![Failure::SandboxGone]);
    });
    deliver_until_done(&world, &prompt("m1"), 1);
    assert_eq!(record(&world).sandbox.generation, 1);
    assert_eq!(outcomes(&world), [Outcome::Answered]);
    assert_eq!(confirmed(&world), 0);
}

#[test]
fn vanished_sandbox_is_adopted_when_seen() {
    for (state, phase) in
        [(SandboxState::Stopped, Phase::Paused), (SandboxState::Running, Phase::Active)]
    {
        let world = paused();
        world.with(|s| s.lies = 2);
        deliver_until_done(&world, &work("l1", Work::Reconcile), 1);
        let lost = record(&world).sandbox;
        assert_eq!(lost.phase, Phase::Destroyed);
        let now_ms = world.with(|s| s.now_ms) + Limits::DEFAULT.sandbox.stale_grace_ms;
        let graces = Graces::from(&Limits::DEFAULT.sandbox);
        assert_eq!(fate(Some(&lost), 1, 0, now_ms, graces), RecordVerdict::TakenBack);
        world.with(|s| s.sandboxes.insert(1, state));
        deliver_until_done(&world, &work("l2", Work::Reconcile), 1);
        let back = record(&world).sandbox;
        assert_eq!((back.phase, back.generation, back.history.vanished), (phase, 1, None));
        assert_eq!(fate(Some(&back), 1, 0, now_ms, graces), RecordVerdict::Spared);
        deliver_until_done(&world, &prompt("m2"), 1);
        assert_eq!(outcomes(&world), [Outcome::Answered, Outcome::Answered]);
        assert_eq!(record(&world).sandbox.generation, 1);
    }
}

#[test]
fn reset_orphans_the_vanished_sandbox() {
    let world = paused();
    world.with(|s| s.lies = 2);
    deliver_until_done(&world, &work("l1", Work::Reconcile), 1);
    deliver_until_done(&world, &reset(), 1);
    deliver_until_done(&world, &work("l2", Work::Reconcile), 1);
    let now_ms = world.with(|s| s.now_ms) + Limits::DEFAULT.sandbox.stale_grace_ms;
    let fate =
        fate(Some(&record(&world).sandbox), 1, 0, now_ms, Graces::from(&Limits::DEFAULT.sandbox));
    assert_eq!(fate, RecordVerdict::Orphan);
}

#[test]
fn vanished_generation_is_kept_one_day() {
    let world = paused();
    world.with(|s| s.lies = 2);
    deliver_until_done(&world, &prompt("m2"), 1);
    let next = record(&world).sandbox;
    assert_eq!(next.generation, 2);
    let lost_ms = next.history.vanished.unwrap().at_ms;
    let at = |now_ms| fate(Some(&next), 1, 0, now_ms, Graces::from(&Limits::DEFAULT.sandbox));
    assert_eq!(at(lost_ms + Limits::DEFAULT.sandbox.vanished_grace_ms - 1), RecordVerdict::Kept);
    assert_eq!(at(lost_ms + Limits::DEFAULT.sandbox.vanished_grace_ms), RecordVerdict::Orphan);
}
