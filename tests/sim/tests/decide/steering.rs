//! Prompts that are sent into a running turn, cards that grow old, and when people are mentioned.

use super::*;
use bobbin_core::records::card::Card;
use bobbin_core::records::turn::CardPlace;

/// A turn runs, and the waiting `m3` is sent into it.
fn steered() -> Fake {
    let world = active();
    wants_now(&world, "m3");
    world
}

fn joined(turn: &str) -> Outcome {
    Outcome::Joined { turn: turn.into() }
}

#[test]
fn steered_prompt_joins_running_answer() {
    let world = steered();
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world)[1..], [joined("m2"), Outcome::Answered]);
    world.with(|s| {
        assert_eq!(s.told[1..], ["do it", "and m3"]);
        assert!(s.flags.queued.is_empty() && s.flags.now.is_empty());
        assert_eq!(s.ledger["m3"].outcome, joined("m2"));
        assert_eq!((s.ledger["m3"].asked.as_str(), &s.ledger["m3"].again), ("and m3", &None));
    });
    assert!(matches!(
        waiting_card(&world, "m3"),
        CardState::Ended { outcome: Outcome::Joined { .. }, .. }
    ));
    assert_eq!(chunks(&world).len(), 2, "one answer for both");
    // Its own message reaches the head: its turn has ended.
    let calls = world.with(|s| s.calls);
    assert_eq!(deliver(&world, &prompt("m3"), 1), Verdict::Done);
    assert_eq!(world.with(|s| s.calls) - calls, 1, "only the record is read");
}

#[test]
fn late_steer_runs_as_own_turn() {
    let world = active();
    deliver_until_done(&world, &prompt("m2"), 1);
    wants_now(&world, "m3");
    deliver_until_done(&world, &prompt("m3"), 1);
    assert_eq!(outcomes(&world)[2], Outcome::Answered);
    world.with(|s| {
        assert_eq!(s.prompted.len(), 3);
        assert!(s.flags.now.is_empty() && s.flags.queued.is_empty());
    });
}

#[test]
fn recorded_steer_is_sent_on_redelivery() {
    let world = steered();
    // The first attempt fails: the message is retried, and the intent stays on record.
    world.with(|s| {
        let wait = Failure::Wait { after_ms: 0, seen: "429".into() };
        s.fail_steer = Some(wait);
    });
    let Verdict::Hold { .. } = deliver(&world, &prompt("m2"), 1) else { panic!("it was sent") };
    let turn = record(&world).turn.unwrap();
    assert_eq!((turn.steered.len(), turn.steered[0].sent), (1, false));
    let ids = turn.steered[0].ids.clone();
    deliver_until_done(&world, &prompt("m2"), 2);
    assert_eq!(outcomes(&world)[1..], [joined("m2"), Outcome::Answered]);
    world.with(|s| assert_eq!(s.prompted.last().unwrap().1, ids.message));
}

#[test]
fn newest_prompt_revives_lost_run() {
    let world = steered();
    world.with(|s| {
        s.down_after_steer = true;
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world)[1..], [joined("m2"), Outcome::Answered]);
    world.with(|s| {
        assert_eq!(s.prompted.len(), 3, "nothing was prompted twice");
        let again: Vec<&String> = s.sent_again.iter().collect();
        let newest = &s.prompted[2].1;
        assert_eq!(again, [newest, newest], "into the run, and once more");
    });
}

#[test]
fn lost_steered_prompts_are_rerunnable() {
    let world = steered();
    world.with(|s| s.lost_after_steer = true);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world)[1..], [Outcome::Lost, Outcome::Lost]);
    world.with(|s| {
        let again = |turn: &str| s.ledger[turn].again.as_ref().map(|prompt| prompt.text.clone());
        assert_eq!((again("m2"), again("m3")), (Some("do it".into()), Some("and m3".into())));
    });
    assert!(matches!(waiting_card(&world, "m3"), CardState::Ended { outcome: Outcome::Lost, .. }));
    assert_eq!(called(&world)[1..], [vec!["ann".to_owned(), "cy".to_owned()]]);
}

#[test]
fn stop_cancels_steered_prompts_too() {
    let world = steered();
    world.with(|s| {
        s.silent_agent = true;
        s.stop_after_steer = true;
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    let by_bob = Outcome::Cancelled { by: "bob".into() };
    assert_eq!(outcomes(&world)[1..], [by_bob.clone(), by_bob]);
    world.with(|s| assert_eq!(s.ledger["m3"].again, None));
}

#[test]
fn steers_per_run_are_bounded() {
    let world = active();
    let most = Limits::DEFAULT.record.steers;
    for n in 0..=most {
        wants_now(&world, &format!("w{n}"));
    }
    deliver_until_done(&world, &prompt("m2"), 1);
    world.with(|s| {
        assert_eq!(s.prompted.len(), 2 + most);
        assert_eq!(s.flags.now.len(), 1, "one goes on waiting");
    });
}

#[test]
fn steering_crashes_lose_and_double_nothing() {
    let calls = {
        let world = steered();
        let before = world.with(|s| s.calls);
        deliver_until_done(&world, &prompt("m2"), 1);
        world.with(|s| s.calls) - before
    };
    for call in 1..=calls {
        for after in [false, true] {
            let world = steered();
            world.with(|s| s.crash_at = Some((s.calls + call, after)));
            let died = catch_unwind(AssertUnwindSafe(|| deliver(&world, &prompt("m2"), 1)));
            assert!(died.is_err(), "crash point {call} {after} was not reached");
            world.with(|s| s.crash_at = None);
            deliver_until_done(&world, &prompt("m2"), 2);
            deliver_until_done(&world, &prompt("m3"), 1);
            let context = format!("call {call}, after={after}: {:?}", outcomes(&world));
            assert_eq!(outcomes(&world).len(), 3, "{context}");
            world.with(|s| {
                let ids: BTreeSet<_> = s.prompted.iter().map(|(_, id)| id).collect();
                assert_eq!((ids.len(), s.prompted.len()), (3, 3), "{context}");
            });
            assert_eq!(outcomes(&world)[1..], [joined("m2"), Outcome::Answered], "{context}");
            assert_eq!(called(&world).len(), 2, "{context}");
            assert!(matches!(waiting_card(&world, "m3"), CardState::Ended { .. }), "{context}");
        }
    }
}

/// A turn's cards that still look alive.
fn live_cards(world: &Fake) -> usize {
    world.with(|s| {
        let live = |post: &&Post| match post {
            Post::Card(card) => !matches!(card.state, CardState::Ended { .. }),
            _ => false,
        };
        s.posts.values().filter(live).count()
    })
}

#[test]
fn announced_card_links_to_turns_card() {
    announced_beside_own(true);
}

#[test]
fn announced_card_links_to_unrecorded_card() {
    announced_beside_own(false);
}

/// The worker crashed after it posted the turn's own card.
fn announced_beside_own(is_recorded: bool) {
    let world = active();
    world.with(|s| s.kills_followers = true);
    let died = catch_unwind(AssertUnwindSafe(|| {
        deliver_until_done(&world, &prompt("m2"), 1);
    }));
    assert!(died.is_err(), "it was followed");
    let own = record(&world).turn.and_then(|turn| turn.card.at);
    let own = own.expect("it has a card of its own");
    world.with(|s| {
        s.kills_followers = false;
        if !is_recorded {
            s.record.as_mut().unwrap().turn.as_mut().unwrap().card = CardPlace::default();
        }
        let announced = PostRef { id: "announced".to_owned(), ..own.clone() };
        let queued = CardState::Queued { ahead: 1, now: true };
        let card = Card::new(&"m2".into(), queued, 1, 1, "m");
        s.posts.insert(announced.id.clone(), Post::Card(card));
        let queued = Queued {
            by: person("ann"),
            accepted_at_ms: 1,
            card: Some(announced),
            refused: false,
            prompt: None,
        };
        s.flags.queued.insert("m2".into(), queued);
    });
    deliver_until_done(&world, &prompt("m2"), 2);
    world.with(|s| {
        let announced = &s.posts["announced"];
        assert!(matches!(announced, Post::Moved { to, .. } if *to == own), "{announced:?}");
        assert!(s.flags.queued.is_empty());
    });
    assert_eq!(live_cards(&world), 0);
}

#[test]
fn rolled_card_links_to_successor() {
    let world = active();
    world.with(|s| s.silent_agent = true);
    deliver_until_done(&world, &prompt("m2"), 1);
    // The run was silent until its bound of 90 minutes: one new card.
    let first = post_key(&thread(), &"m2".into(), &PostKind::Card);
    let second = post_key(&thread(), &"m2".into(), &PostKind::Rolled(1));
    world.with(|s| {
        assert!(
            matches!(&s.posts[&first], Post::Moved { to, .. } if to.id == second),
            "{:?}",
            s.posts[&first]
        );
        assert!(matches!(&s.posts[&second], Post::Card(_)));
        assert_eq!(s.ledger["m2"].rolls, 1);
    });
    assert_eq!(live_cards(&world), 0);
}

#[test]
fn crashes_leave_no_live_card_behind() {
    // Polls far apart, so that there are few: every call is a crash point.
    let long = || {
        let world = active();
        world.with(|s| {
            s.silent_agent = true;
            (s.limits.poll.look_ms_min, s.limits.poll.look_ms_max) = (480_000, 480_000);
        });
        world
    };
    let calls = {
        let world = long();
        let before = world.with(|s| s.calls);
        deliver_until_done(&world, &prompt("m2"), 1);
        world.with(|s| s.calls) - before
    };
    for call in 1..=calls {
        for after in [false, true] {
            let world = long();
            world.with(|s| s.crash_at = Some((s.calls + call, after)));
            let died =
                catch_unwind(AssertUnwindSafe(|| deliver_until_done(&world, &prompt("m2"), 1)));
            assert!(died.is_err(), "crash point {call} {after} was not reached");
            world.with(|s| s.crash_at = None);
            deliver_until_done(&world, &prompt("m2"), 2);
            assert_eq!(live_cards(&world), 0, "call {call}, after={after}");
            assert_eq!(called(&world).len(), 2, "call {call}, after={after}");
        }
    }
}

#[test]
fn refused_card_roll_is_retried() {
    let world = active();
    world.with(|s| {
        s.silent_agent = true;
        s.fail_roll = 3;
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    assert!(
        matches!(&outcomes(&world)[1], Outcome::Failed { reason } if reason.contains("90 min")),
        "{:?}",
        outcomes(&world)
    );
    assert_eq!(record(&world).ended.len(), 2);
    assert_eq!(world.with(|s| s.fail_roll), 0);
    assert_eq!(live_cards(&world), 0);
}

#[test]
fn requester_is_called_once_per_event() {
    let ann = || vec!["ann".to_owned()];
    let world = active();
    assert_eq!(called(&world), [ann()], "answered: by the answer");
    world.with(|s| s.asks.push("per_1".into()));
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(called(&world).len(), 3, "an ask, and the answer");
    world.with(|s| {
        s.fail.insert("follow", vec![Failure::SandboxGone]);
    });
    deliver_until_done(&world, &prompt("m3"), 1);
    assert_eq!(outcomes(&world)[2], Outcome::Lost);
    assert_eq!(called(&world)[3..], [ann()], "lost: by a line of its own");
    let line = post_key(&thread(), &"m3".into(), &PostKind::Call);
    world.with(|s| {
        assert_eq!(
            s.posts[&line].bare(),
            &Post::Notice(bobbin_core::protocol::decide::words::CALL_LOST.into())
        )
    });

    // A person who stops their own turn is not mentioned; one who is stopped by somebody else is.
    for (by, calls) in [("ann", 0), ("bob", 1)] {
        let world = active();
        world.with(|s| {
            s.flags.cancelled.insert("m2".into(), person(by));
        });
        deliver_until_done(&world, &prompt("m2"), 1);
        assert_eq!(called(&world).len(), 1 + calls, "{by}");
    }
}

#[test]
fn final_card_is_retried_until_accepted() {
    let world = active();
    let most = usize::try_from(Limits::DEFAULT.retry.refusals).unwrap();
    let limited = || Failure::Wait { after_ms: 30_000, seen: "429".into() };
    // The turn's first two posts succeed: its card and the answer.
    world.with(|s| {
        s.fail_ends = (0..most - 1).map(|_| limited()).collect();
    });
    let began_ms = world.with(|s| s.now_ms);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
    assert_eq!(live_cards(&world), 0);
    world.with(|s| {
        assert!(s.fail_ends.is_empty());
        assert!(s.now_ms - began_ms >= 30_000 * (most as u64 - 1), "its time was waited for");
    });
}

#[test]
fn undelivered_end_is_signalled_once() {
    let untold = |world: &Fake| {
        let is_untold = |name: &&&str| **name == "turn.unposted";
        world.with(|s| s.signalled.iter().filter(is_untold).count())
    };
    let most = usize::try_from(Limits::DEFAULT.retry.refusals).unwrap();
    let limited = Failure::Wait { after_ms: 30_000, seen: "429".into() };
    let forbidden = Failure::NonRecoverable { advice: "may not write here".into() };
    let gone = Failure::ThreadGone { seen: "deleted".into() };
    for (failures, expected, live) in [
        (vec![], 0, 0),
        // The last card is kept, and the next message brings it.
        (vec![limited; most + 1], 0, 0),
        (vec![forbidden.clone()], 0, 0),
        // The kept card is refused as well: it is given up.
        (vec![forbidden; 2], 1, 1),
        // Somebody deleted the thread: there is nobody to tell.
        (vec![gone], 0, 1),
    ] {
        let world = active();
        world.with(|s| s.fail_ends.clone_from(&failures));
        deliver_until_done(&world, &prompt("m2"), 1);
        assert_eq!(untold(&world), 0, "{failures:?}");
        for id in ["m3", "m4"] {
            deliver_until_done(&world, &prompt(id), 1);
            assert_eq!((untold(&world), live_cards(&world)), (expected, live), "{failures:?}");
        }
    }
}
