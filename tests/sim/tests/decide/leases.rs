//! Who waits while a sandbox is stopped or deleted: only for a call that may still arrive.

use super::*;

#[test]
fn failed_delete_is_retried_by_reset() {
    let outage = Failure::Outage { after_ms: 0, seen: "503".to_owned() };
    for failure in [busy(), outage] {
        let world = active();
        let since_ms = world.now_ms();
        world.with(|s| s.fail.insert("delete", vec![failure.clone()]));
        assert_eq!(deliver_until_done(&world, &reset(), 1), 2, "{failure:?}");
        let took_ms = world.now_ms() - since_ms;
        assert_eq!(took_ms, Limits::DEFAULT.retry.backoff_ms, "{failure:?}");
        assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
    }
}

#[test]
fn reset_resumes_after_dying_at_delete() {
    for after in [false, true] {
        let world = active();
        // Load, save, then the delete.
        dies(&world, &reset(), 3, after);
        assert_eq!(record(&world).sandbox.phase, Phase::Destroying);
        assert_eq!(deliver(&world, &reset(), 2), Verdict::Done, "{after}");
        assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
    }
}

#[test]
fn stuck_deletion_does_not_hold_the_thread() {
    for is_refused in [true, false] {
        let world = active();
        world.with(|s| {
            s.undeletable = !is_refused;
            let refusals = if is_refused { 400 } else { 0 };
            s.fail.insert("delete", (0..refusals).map(|_| busy()).collect());
        });
        let since_ms = world.now_ms();
        deliver_until_done(&world, &reset(), 1);
        let (took_ms, limits) = (world.now_ms() - since_ms, Limits::DEFAULT.retry);
        let bound_ms = limits.outage_ms + limits.backoff_ms_max;
        assert!((limits.outage_ms..=bound_ms).contains(&took_ms), "{is_refused}: {took_ms}");
        assert_eq!(record(&world).sandbox.phase, Phase::Error);
        assert_eq!(deliver(&world, &prompt("m2"), 1), Verdict::Done);
        assert_eq!(
            (outcomes(&world)[1].clone(), record(&world).sandbox.generation),
            (Outcome::Answered, 2)
        );
    }
}

#[test]
fn long_delete_renews_its_lease() {
    let world = active();
    world.with(|s| s.fail.insert("delete", (0..2).map(|_| busy()).collect()));
    assert!(matches!(deliver(&world, &reset(), 1), Verdict::Hold { .. }));
    let until_ms = record(&world).sandbox.lease.unwrap().until_ms;
    later(&world, until_ms - world.now_ms());
    assert!(matches!(deliver(&world, &reset(), 2), Verdict::Hold { .. }));
    let sandbox = record(&world).sandbox;
    let lease = sandbox.lease.unwrap();
    assert_eq!(lease.until_ms, until_ms + 165_000);
    assert_eq!(sandbox.due_at_ms, Some(lease.until_ms));
}

#[test]
fn reset_waits_out_possible_stop() {
    let world = active();
    later(&world, Limits::DEFAULT.sandbox.idle_pause_ms);
    dies(&world, &work("s1", Work::Sweep), 3, false);
    let until_ms = record(&world).sandbox.lease.unwrap().until_ms;
    let mut waits_ms = Vec::new();
    while world.now_ms() < until_ms {
        let receive = 1 + u32::try_from(waits_ms.len()).unwrap();
        let Verdict::Hold { delay_ms, .. } = deliver(&world, &reset(), receive) else {
            panic!("the lease was not waited out")
        };
        waits_ms.push(delay_ms);
        later(&world, delay_ms);
    }
    assert_eq!(waits_ms[..3], [2_000, 2_000, 4_000]);
    deliver_until_done(&world, &reset(), 9);
    assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
    world.with(|s| assert!(!s.stopped_while_running));
}

#[test]
fn refused_stop_holds_no_lease() {
    let refused = Failure::NonRecoverable { advice: "Daytona does not allow this.".to_owned() };
    for failure in [busy(), refused] {
        let world = active();
        later(&world, Limits::DEFAULT.sandbox.idle_pause_ms);
        world.with(|s| s.fail.insert("stop", vec![failure.clone()]));
        deliver(&world, &work("s1", Work::Sweep), 1);
        let (asked, due) = {
            let sandbox = record(&world).sandbox;
            assert_eq!((sandbox.phase, sandbox.lease), (Phase::Pausing, None));
            (world.now_ms(), sandbox.due_at_ms.unwrap())
        };
        assert!(due > asked + 60_000, "the sweeper would ask all the time");
        assert_eq!(deliver(&world, &prompt("m2"), 1), Verdict::Done, "{failure:?}");
        assert_eq!(outcomes(&world)[1], Outcome::Answered);
    }
}

#[test]
fn refused_sweep_retries_are_bounded() {
    let world = active();
    later(&world, Limits::DEFAULT.sandbox.idle_pause_ms);
    let since_ms = world.now_ms();
    world.with(|s| s.fail.insert("stop", (0..40).map(|_| busy()).collect()));
    let receives = deliver_until_done(&world, &work("s1", Work::Sweep), 1);
    assert_eq!(receives, Limits::DEFAULT.retry.attempts + 1);
    assert_eq!(world.now_ms() - since_ms, 62_000);
    assert_eq!(record(&world).sandbox.phase, Phase::Pausing);
    assert_eq!(deliver(&world, &prompt("m2"), 1), Verdict::Done);
}
