//! Runs that are unreachable for a while, that nobody follows any more, and that crash their follower.

use super::*;

fn down() -> Failure {
    Failure::SandboxDown { seen: "connection reset".to_owned() }
}

/// The server is unreachable this many times while a run is followed.
fn cut(world: &Fake, times: usize) {
    world.with(|s| s.fail.insert("follow", vec![down(); times]));
}

#[test]
fn run_behind_broken_connection_is_found() {
    let world = active();
    world.with(|s| {
        s.went_on = true;
        s.sendings.clear();
    });
    cut(&world, 5);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
    world.with(|s| {
        assert_eq!(s.sendings.len(), 1);
        assert!(matches!(s.sendings[0], Sending::First { .. }));
        assert!(s.ended_runs.is_empty());
    });
}

#[test]
fn steered_prompt_is_checked_before_resending() {
    let world = active();
    wants_now(&world, "m3");
    world.with(|s| {
        s.went_on = true;
        s.down_after_steer = true;
        s.sent_again.clear();
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world)[2], Outcome::Answered);
    let steered = world.with(|s| s.prompted[2].1.clone());
    world.with(|s| assert_eq!(s.sent_again, [steered], "once: after the look that found nothing"));
}

#[test]
fn repeatedly_unreachable_run_fails() {
    let world = active();
    wants_now(&world, "m3");
    world.with(|s| {
        s.went_on = true;
        s.stays_down_after_steer = true;
        s.names.clear();
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    assert!(
        matches!(outcomes(&world).last(), Some(Outcome::Failed { .. })),
        "{:?}",
        outcomes(&world)
    );
    let looks = world.with(|s| s.names.iter().filter(|name| **name == "follow").count());
    assert!(looks < 10, "{looks} looks");
}

#[test]
fn stopped_run_is_not_sent_again() {
    let ends_unsent = |world: &Fake, receive| {
        deliver_until_done(world, &prompt("m2"), receive);
        assert_eq!(outcomes(world)[1], Outcome::Cancelled { by: "bob".into() });
        world.with(|s| assert_eq!((s.prompted.len(), s.sent_again.len()), (2, 0)));
    };
    // The abort does not arrive.
    let world = active();
    world.with(|s| {
        (s.silent_agent, s.stop_in_follow) = (true, true);
        s.fail.insert("abort", vec![down()]);
    });
    ends_unsent(&world, 1);
    // It arrives, and then the server goes away.
    let world = active();
    world.with(|s| s.silent_agent = true);
    assert!(matches!(deliver(&world, &prompt("m2"), 1), Verdict::Hold { .. }));
    world.with(|s| s.flags.cancelled.insert("m2".into(), person("bob")));
    cut(&world, 1);
    ends_unsent(&world, 2);
}

#[test]
fn failed_turns_run_ends_before_report() {
    let world = active();
    cut(&world, 2);
    world.with(|s| s.names.clear());
    deliver_until_done(&world, &prompt("m2"), 1);
    assert!(matches!(outcomes(&world)[1], Outcome::Failed { .. }));
    let (ended, prompted, names) =
        world.with(|s| (s.ended_runs.clone(), s.prompted[1].1.clone(), s.names.clone()));
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0].messages, [prompted]);
    let at = |name| names.iter().rposition(|one| *one == name).unwrap();
    assert!(at("end_run") < at("post"), "{names:?}");
    assert_eq!(record(&world).stray, None);
}

#[test]
fn stray_run_ends_before_next_prompt() {
    let world = active();
    cut(&world, 2);
    world.with(|s| s.fail.insert("end_run", vec![down()]));
    deliver_until_done(&world, &prompt("m2"), 1);
    assert!(matches!(outcomes(&world)[1], Outcome::Failed { .. }));
    assert!(record(&world).stray.is_some());
    world.with(|s| s.names.clear());
    deliver_until_done(&world, &prompt("m3"), 1);
    assert_eq!(outcomes(&world)[2], Outcome::Answered);
    let names = world.with(|s| s.names.clone());
    let at = |name| names.iter().position(|one| *one == name).unwrap();
    assert!(at("end_run") < at("send_prompt"), "{names:?}");
    assert_eq!(record(&world).stray, None);
}

#[test]
fn unstoppable_run_fails_next_turn() {
    let world = active();
    cut(&world, 2);
    world.with(|s| s.fail.insert("end_run", vec![down(); 9]));
    deliver_until_done(&world, &prompt("m2"), 1);
    deliver_until_done(&world, &prompt("m3"), 1);
    assert!(
        matches!(&outcomes(&world)[2], Outcome::Failed { reason } if reason.contains("connection reset"))
    );
    world.with(|s| assert_eq!(s.prompted.len(), 2, "m3 never reached the agent"));
    assert!(record(&world).stray.is_some());
}

#[test]
fn sweep_ends_an_unfollowed_run() {
    let world = active();
    world.with(|s| {
        s.kills_followers = true;
    });
    assert!(catch_unwind(AssertUnwindSafe(|| deliver(&world, &prompt("m2"), 1))).is_err());
    world.with(|s| {
        s.kills_followers = false;
        s.fail.insert("end_run", vec![down()]);
    });
    // Its message is gone: a sweep reports its end and does not reach the agent.
    assert_eq!(deliver(&world, &work("s1", Work::Sweep), 1), Verdict::Done);
    assert!(matches!(outcomes(&world)[1], Outcome::Failed { .. }));
    world.with(|s| assert_eq!(s.ended_runs.len(), 1, "tried again once the turn was closed"));
    assert_eq!((record(&world).stray, record(&world).sandbox.phase), (None, Phase::Active));
}

#[test]
fn run_that_kills_workers_is_ended() {
    let world = active();
    world.with(|s| s.kills_followers = true);
    let died = deaths(&world, "m2", 1);
    assert_eq!(died, Limits::DEFAULT.retry.attempts + 1);
    assert!(matches!(outcomes(&world)[1], Outcome::Failed { .. }));
    world.with(|s| assert_eq!((s.prompted.len(), s.ended_runs.len()), (2, 1)));
}

#[test]
fn follow_windows_are_no_failures() {
    let world = active();
    world.with(|s| (s.silent_agent, s.limits.poll.hold_ms) = (true, HOLD_MS_MAX));
    for receive in 1..=Limits::DEFAULT.retry.attempts + 1 {
        let verdict = deliver(&world, &prompt("m2"), receive);
        assert!(matches!(verdict, Verdict::Hold { delay_ms: 0, .. }));
        let turn = record(&world).turn.unwrap();
        assert_eq!((turn.tries.attempts, turn.stage.prompted().unwrap().windows), (0, receive));
    }
}
