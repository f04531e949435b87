//! The prompt's path on an active thread: one write, then the prompt and its card; and what follows from the prompt
//! when it is the first check of the server.

use super::*;

/// An active thread whose agent's options are known.
fn known() -> Fake {
    let world = Fake::new();
    world.with(|s| {
        s.offer = AgentOptions {
            models: vec!["m".to_owned()],
            agents: vec!["build".to_owned()],
            unpriced: Vec::new(),
        };
    });
    deliver_until_done(&world, &prompt("m1"), 1);
    world.with(|s| {
        s.names.clear();
        s.sendings.clear();
    });
    world
}

fn down() -> Failure {
    Failure::SandboxDown { seen: "no answer".to_owned() }
}

/// How a prompt is sent from the record alone.
fn at_once() -> Sending {
    Sending::First { within_ms: Some(Limits::DEFAULT.turn.health_active_ms) }
}

fn names(world: &Fake) -> Vec<&'static str> {
    world.with(|s| s.names.clone())
}

#[test]
fn known_thread_sends_after_two_calls() {
    let world = known();
    let before = world.with(|s| s.calls);
    // The third call sends the prompt: the worker crashes in it.
    world.with(|s| s.crash_at = Some((before + 3, true)));
    assert!(catch_unwind(AssertUnwindSafe(|| deliver(&world, &prompt("m2"), 1))).is_err());
    world.with(|s| {
        s.crash_at = None;
        assert_eq!(s.prompted.len(), 2);
    });
    let world = known();
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(names(&world)[..4], ["send_prompt", "post", "follow", "post"]);
    world.with(|s| assert_eq!(s.sendings, [at_once()]));
    assert_eq!(outcomes(&world), [Outcome::Answered, Outcome::Answered]);
}

#[test]
fn doubtful_follow_up_checks_server() {
    let with_file = Work::Prompt(Prompt {
        text: "read it".into(),
        by: person("ann"),
        attachments: vec![Attachment {
            name: "a.txt".into(),
            url: "https://files.test/a.txt".into(),
            size: 1,
            media_type: None,
        }],
        ..Prompt::default()
    });
    let other_agent = Work::Prompt(Prompt {
        by: person("ann"),
        wants: Selection { agent: Some("build".to_owned()), ..Selection::default() },
        ..Prompt::default()
    });
    for (message, receive) in [(work("m2", with_file), 1), (work("m2", other_agent), 1)] {
        let world = known();
        deliver_until_done(&world, &message, receive);
        assert_eq!(names(&world)[0], "check_server");
        assert_eq!(outcomes(&world)[1], Outcome::Answered);
    }
    // A turn that has failed before.
    let world = known();
    world.with(|s| {
        s.not_sent = Some(Failure::Wait { after_ms: 0, seen: "429".to_owned() });
    });
    assert!(matches!(deliver(&world, &prompt("m2"), 1), Verdict::Hold { .. }));
    world.with(|s| s.names.clear());
    deliver_until_done(&world, &prompt("m2"), 2);
    assert_eq!(names(&world)[0], "check_server");
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
}

#[test]
fn certainly_unsent_prompt_is_sent_again() {
    let wait = Failure::Wait { after_ms: 0, seen: "429".to_owned() };
    let outage = Failure::Outage { after_ms: 0, seen: "the provider does not answer".to_owned() };
    for failure in [down(), Failure::SessionMissing, wait, outage] {
        let world = known();
        world.with(|s| s.not_sent = Some(failure.clone()));
        deliver_until_done(&world, &prompt("m2"), 1);
        let context = format!("{failure:?}");
        assert_eq!(outcomes(&world)[1], Outcome::Answered, "{context}");
        world.with(|s| {
            let after_a_look = Sending::First { within_ms: None };
            assert_eq!(s.sendings, [at_once(), after_a_look], "{context}");
            assert_eq!(s.prompted.len(), 2, "{context}");
        });
    }
}

#[test]
fn missing_sandbox_costs_no_second_delivery() {
    type Change = fn(&mut State);
    let gone: Change = |s| s.sandboxes.clear();
    let parked: Change = |s| drop(s.sandboxes.insert(1, SandboxState::Stopped));
    for (change, generation) in [(gone, 2), (parked, 1)] {
        let world = known();
        world.with(change);
        assert_eq!(deliver(&world, &prompt("m2"), 1), Verdict::Done);
        assert_eq!(outcomes(&world)[1], Outcome::Answered);
        world.with(|s| {
            assert_eq!(s.prompted.len(), 2);
            assert_eq!(s.prompted[1].0, generation);
        });
    }
}

#[test]
fn possibly_sent_prompt_is_never_retracted() {
    // It arrived: it is found, and not sent again.
    let world = known();
    world.with(|s| s.unheard = Some(down()));
    assert_eq!(deliver(&world, &prompt("m2"), 1), Verdict::Done);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
    world.with(|s| {
        assert_eq!(s.sendings, [at_once()]);
        assert_eq!(s.prompted.len(), 2);
    });
    // It did not arrive: it is sent under the same ids, and that does not count as a second sending.
    let world = known();
    world.with(|s| s.fail.insert("send_prompt", vec![down()]));
    world.with(|s| s.fail.insert("follow", vec![down()]));
    assert_eq!(deliver(&world, &prompt("m2"), 1), Verdict::Done);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
    world.with(|s| {
        assert_eq!(s.sendings, [Sending::Again, Sending::Again]);
        assert_eq!(s.prompted.len(), 2);
    });
    // Nobody can be asked any more: the turn is lost and not repeated.
    let world = known();
    world.with(|s| {
        s.unheard = Some(down());
        s.fail.insert("observe", vec![Failure::SandboxGone]);
    });
    assert_eq!(deliver(&world, &prompt("m2"), 1), Verdict::Done);
    assert_eq!(outcomes(&world)[1], Outcome::Lost);
    world.with(|s| assert_eq!(s.prompted.len(), 2));
}

#[test]
fn redelivery_never_retracts_earlier_intent() {
    let world = known();
    world.with(|s| s.crash_at = Some((s.calls + 3, false)));
    assert!(catch_unwind(AssertUnwindSafe(|| deliver(&world, &prompt("m2"), 1))).is_err());
    world.with(|s| {
        s.crash_at = None;
        s.names.clear();
        // An answer that it was not sent concerns only this sending.
        s.not_sent = Some(Failure::SandboxGone);
    });
    deliver_until_done(&world, &prompt("m2"), 2);
    assert_eq!(outcomes(&world)[1], Outcome::Lost);
    world.with(|s| {
        assert!(s.names.starts_with(&["check_server"]), "{:?}", s.names);
        assert_eq!(s.prompted.len(), 1);
    });
}

#[test]
fn refused_card_leaves_the_run_alone() {
    let world = known();
    let wait = Failure::Wait { after_ms: 0, seen: "429".into() };
    world.with(|s| s.fail.insert("post", vec![wait]));
    assert_eq!(deliver(&world, &prompt("m2"), 1), Verdict::Done);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
    world.with(|s| {
        assert_eq!(s.prompted.len(), 2);
        let ended = |post: &&Post| matches!(post, Post::Card(card) if matches!(card.state, CardState::Ended { .. }));
        assert_eq!(s.posts.values().filter(ended).count(), 2);
    });
}

#[test]
fn run_of_a_deleted_thread_stops() {
    let world = known();
    let gone = || Failure::ThreadGone { seen: "the thread was deleted".into() };
    world.with(|s| s.fail.insert("post", (0..9).map(|_| gone()).collect()));
    deliver_until_done(&world, &prompt("m2"), 1);
    let reason = "the thread was deleted".to_owned();
    assert_eq!(outcomes(&world)[1], Outcome::Failed { reason });
    world.with(|s| assert!(s.aborted && s.prompted.len() == 2));
}

#[test]
fn first_card_posts_beside_sandbox_lookup() {
    let world = Fake::new();
    let calls = |at: u32| {
        let world = Fake::new();
        world.with(|s| s.crash_at = Some((at, true)));
        let died = catch_unwind(AssertUnwindSafe(|| deliver(&world, &prompt("m1"), 1)));
        assert!(died.is_err());
        names(&world)
    };
    deliver_until_done(&world, &prompt("m1"), 1);
    let with_count: Vec<_> = names(&world).into_iter().take(3).collect();
    assert_eq!(with_count, ["count", "post", "create"]);
    assert_eq!(calls(4), ["count", "post"], "after one read and one write");
}

#[test]
fn follow_up_crashes_double_nothing() {
    type Change = fn(&mut State);
    let changes: [Change; 4] = [
        |_| {},
        |s| s.sandboxes.clear(),
        |s| s.unheard = Some(down()),
        |s| s.not_sent = Some(down()),
    ];
    let mut points = 0;
    for change in changes {
        let begun = || {
            let world = known();
            world.with(change);
            world
        };
        points += each_crash(begun, &prompt("m2"), |world, crash| {
            let ends = outcomes(world);
            assert_eq!(ends.len(), 2, "{crash}: {ends:?}");
            // Lost only if it may have reached an agent whose sandbox then vanished.
            let lost = ends[1] == Outcome::Lost && world.with(|s| s.sandboxes.is_empty());
            assert!(lost || ends[1] == Outcome::Answered, "{crash}: {ends:?}");
            world.with(|s| {
                let ids: BTreeSet<_> = s.prompted.iter().map(|(_, id)| id).collect();
                assert_eq!(ids.len(), s.prompted.len(), "{crash}");
                assert!(s.prompted.len() <= 2, "{crash}");
                let cards =
                    s.posted.iter().filter(|key| matches!(s.posts[*key].bare(), Post::Card(_)));
                assert_eq!(cards.count(), 2, "{crash}");
            });
        });
    }
    assert!(points > 60, "{points} crash points");
}
