//! The operator's requests: done once, recorded, never under a running turn, and never with a new sandbox.

use super::*;
use bobbin_core::records::control::Operation;
use bobbin_core::records::sandbox::Operated;

fn operation(id: &str, want: Operation) -> Message {
    work(id, Work::Operate { want, by: None })
}

fn paused() -> Fake {
    let world = active();
    deliver_until_done(&world, &operation("o1", Operation::Pause), 1);
    world
}

fn came_of(world: &Fake) -> Vec<(Operation, Option<String>)> {
    let of = |one: Operated| (one.want, one.trouble);
    record(world).sandbox.history.operated.into_iter().map(of).collect()
}

fn told(world: &Fake, word: &str) -> usize {
    let post = Post::Notice(word.to_owned());
    world.with(|s| s.posts.values().filter(|one| **one == post).count())
}

#[test]
fn pause_stops_active_sandbox_early() {
    let world = paused();
    assert_eq!(record(&world).sandbox.phase, Phase::Paused);
    assert_eq!(came_of(&world), [(Operation::Pause, None)]);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world), [Outcome::Answered, Outcome::Answered]);
    assert_eq!(record(&world).sandbox.generation, 1);
}

#[test]
fn resume_restarts_the_idle_time() {
    let world = paused();
    later(&world, Limits::DEFAULT.sandbox.idle_pause_ms + 1);
    deliver_until_done(&world, &operation("o2", Operation::Resume), 1);
    let session = record(&world);
    assert_eq!(session.sandbox.phase, Phase::Active);
    assert_eq!(session.due_at_ms(), Some(world.now_ms() + Limits::DEFAULT.sandbox.idle_pause_ms));
    assert_eq!(came_of(&world)[1], (Operation::Resume, None));
}

#[test]
fn destroy_keeps_the_threads_history() {
    let world = active();
    deliver_until_done(&world, &operation("o1", Operation::Destroy), 1);
    assert!(world.with(|s| s.sandboxes.is_empty()));
    assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
    assert_eq!(told(&world, bobbin_core::protocol::decide::words::DESTROYED), 1);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(record(&world).sandbox.generation, 2);
    let digests = world
        .with(|s| s.told.iter().filter(|text| text.contains("began in another sandbox")).count());
    assert_eq!(digests, 1);
}

#[test]
fn operations_need_an_existing_sandbox() {
    for want in [Operation::Pause, Operation::Resume, Operation::Destroy] {
        let world = active();
        deliver_until_done(&world, &operation("o1", Operation::Destroy), 1);
        let posts = world.with(|s| s.posts.len());
        deliver_until_done(&world, &operation("o2", want), 1);
        assert_eq!(came_of(&world)[1], (want, Some("the thread has no sandbox".to_owned())));
        world.with(|s| assert_eq!((s.sandboxes.len(), s.posts.len()), (0, posts)));
    }
}

#[test]
fn forgotten_thread_keeps_no_personal_data() {
    let world = active();
    deliver_until_done(&world, &operation("o1", Operation::Forget), 1);
    assert_eq!(
        came_of(&world)[0].1.as_deref(),
        Some("it still has a sandbox with people's files: destroy that first")
    );
    world.with(|s| s.flags.cancelled.insert("m2".into(), person("ann")));
    deliver_until_done(&world, &prompt("m2"), 1);
    deliver_until_done(&world, &operation("o2", Operation::Destroy), 1);
    deliver_until_done(&world, &operation("o3", Operation::Forget), 1);
    let session = record(&world);
    assert_eq!(outcomes(&world), [Outcome::Answered, Outcome::Cancelled { by: String::new() }]);
    assert!(session.sandbox.history.timeline.is_empty() && session.sandbox.project.repo.is_none());
    assert!(!session.encode().contains("ann"), "{session:?}");
    deliver_until_done(&world, &prompt("m1"), 2);
    assert_eq!(outcomes(&world).len(), 2, "m1 does not run again");
    deliver_until_done(&world, &prompt("m3"), 1);
    assert_eq!(record(&world).sandbox.generation, 2, "a generation never comes back");
}

#[test]
fn outlook_names_busy_and_pointless_operations() {
    use bobbin_core::protocol::decide::operate::{Outlook, outlook};
    let session = record(&paused());
    assert_eq!(outlook(&session, Operation::Resume), Outlook::Open);
    assert_eq!(outlook(&session, Operation::Pause), Outlook::Pointless("it is already paused"));
    let running = Session {
        turn: serde_json::from_value(serde_json::json!({
            "id": "m2", "by": person("ann"), "accepted_at_ms": 1, "stage": {"stage": "running", "ids": {"message": "msg_1", "part": "prt_1"}, "generation": 1, "at_ms": 1},
        }))
        .unwrap(),
        ..session
    };
    for want in Operation::ALL {
        assert_eq!(outlook(&running, want), Outlook::Busy);
    }
}

#[test]
fn a_repeat_does_nothing() {
    let world = paused();
    deliver_until_done(&world, &prompt("m2"), 1);
    deliver_until_done(&world, &operation("o1", Operation::Pause), 2);
    assert_eq!(record(&world).sandbox.phase, Phase::Active);
    assert_eq!(came_of(&world).len(), 1);
}

#[test]
fn late_destroy_says_nothing_of_the_next_sandbox() {
    let world = active();
    let by = Some(person("ann"));
    let destroy = work("o1", Work::Operate { want: Operation::Destroy, by });
    deliver_until_done(&world, &destroy, 1);
    deliver_until_done(&world, &prompt("m2"), 1);
    let before = world.with(|s| (s.posts.len(), s.told_threads.len()));
    deliver_until_done(&world, &destroy, 2);
    assert_eq!(world.with(|s| (s.posts.len(), s.told_threads.len())), before);
    assert_eq!(record(&world).sandbox.phase, Phase::Active);
}

#[test]
fn resume_does_not_recreate_vanished_sandboxes() {
    let world = paused();
    world.with(|s| s.sandboxes.clear());
    deliver_until_done(&world, &operation("o2", Operation::Resume), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
    assert_eq!(came_of(&world)[1], (Operation::Resume, Some("it no longer exists".to_owned())));
}

#[test]
fn persistent_trouble_ends_the_operation() {
    let down = || Failure::SandboxDown { seen: "no answer".to_owned() };
    let world = paused();
    world.with(|s| s.fail.insert("ensure_server", vec![down(), down(), down(), down()]));
    deliver_until_done(&world, &operation("o2", Operation::Resume), 1);
    assert_eq!(came_of(&world)[1].1.as_deref(), Some("its server does not answer: no answer"));
    let world = active();
    world.with(|s| s.fail.insert("stop", (0..20).map(|_| busy()).collect()));
    let receives = deliver_until_done(&world, &operation("o1", Operation::Pause), 1);
    assert!(receives <= 2 * (Limits::DEFAULT.retry.attempts + 2), "{receives}");
    assert_eq!(came_of(&world)[0].1.as_deref(), Some("it kept failing"));
}

/// A mere wait does not count as an attempt.
#[test]
fn operation_runs_after_stale_lease() {
    let world = active();
    later(&world, Limits::DEFAULT.sandbox.idle_pause_ms);
    // Crash right after the lease was saved: load, save, then the stop.
    dies(&world, &work("s1", Work::Sweep), 3, false);
    let lease = record(&world).sandbox.lease.unwrap();
    let resume = operation("o1", Operation::Resume);
    let mut receive = 1;
    while world.now_ms() < lease.until_ms {
        let Verdict::Hold { delay_ms, .. } = deliver(&world, &resume, receive) else {
            panic!("the lease was not waited out")
        };
        later(&world, delay_ms);
        receive += 1;
    }
    let receive = receive.max(Limits::DEFAULT.retry.attempts + 2);
    deliver_until_done(&world, &resume, receive);
    assert_eq!(came_of(&world), [(Operation::Resume, None)]);
}

#[test]
fn provider_refusal_is_kept_on_record() {
    let refused = Failure::NonRecoverable { advice: "Daytona refused the API key.".to_owned() };
    for want in [Operation::Pause, Operation::Destroy] {
        let world = active();
        let effect = match want {
            Operation::Pause => "stop",
            _ => "delete",
        };
        world.with(|s| s.fail.insert(effect, vec![refused.clone()]));
        deliver_until_done(&world, &operation("o1", want), 1);
        assert_eq!(came_of(&world), [(want, Some("Daytona refused the API key.".to_owned()))]);
        assert_eq!(told(&world, bobbin_core::protocol::decide::words::DESTROYED), 0);
    }
}
