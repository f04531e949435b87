//! Runs that nobody follows: one poll for each delivery, and what it leaves for the next.

use super::*;

/// A thread whose second prompt runs, was followed for the full time, and was just returned to the queue.
fn looked_at() -> Fake {
    let world = active();
    world.with(|s| {
        s.silent_agent = true;
        s.names.clear();
    });
    let verdict = deliver(&world, &prompt("m2"), 1);
    assert_eq!(delay_of(&verdict), Some(5_000));
    world
}

fn delay_of(verdict: &Verdict) -> Option<u64> {
    match verdict {
        Verdict::Hold { delay_ms, .. } => Some(*delay_ms),
        Verdict::Done | Verdict::Newer { .. } => None,
    }
}

/// The next delivery, when it is due: returns the time until the one after it.
fn look(world: &Fake, receive: u32) -> Option<u64> {
    let until_ms = world.with(|s| s.parked.as_ref().map_or(s.now_ms, |parked| parked.until_ms));
    world.with(|s| s.now_ms = s.now_ms.max(until_ms));
    delay_of(&deliver(world, &prompt("m2"), receive))
}

#[test]
fn polls_slow_down_after_first_minute() {
    let world = looked_at();
    let sent_at_ms = sent_at_ms(&world);
    world.with(|s| assert_eq!(s.now_ms, sent_at_ms + 60_000));
    assert_eq!(look(&world, 2), Some(5_416));
    let mut receive = 2;
    while world.with(|s| s.now_ms) < sent_at_ms + 250_000 {
        receive += 1;
        look(&world, receive);
    }
    assert_eq!(look(&world, receive + 1), Some(20_000));
    let names = world.with(|s| s.names.clone());
    assert_eq!(names.iter().filter(|name| **name == "follow").count(), 1);
}

#[test]
fn released_run_is_polled_thereafter() {
    let world = active();
    world.with(|s| {
        (s.silent_agent, s.others_wait) = (true, true);
        s.names.clear();
    });
    let verdict = deliver(&world, &prompt("m2"), 1);
    assert_eq!(delay_of(&verdict), Some(5_000));
    assert_eq!(world.with(|s| s.now_ms) - sent_at_ms(&world), OTHERS_AFTER_MS);
    // The same if nobody waits any more: letting go again and again needs a write each time.
    world.with(|s| s.others_wait = false);
    let before = record(&world);
    assert_eq!(look(&world, 2), Some(5_000));
    assert_eq!(record(&world), before);
    let mut names = world.with(|s| s.names.clone());
    names.retain(|name| ["follow", "look"].contains(name));
    assert_eq!(names, ["follow", "look"]);
    world.with(|s| s.silent_agent = false);
    assert_eq!(look(&world, 3), None);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
}

#[test]
fn full_hold_or_stop_prevents_release() {
    let world = active();
    world.with(|s| {
        (s.silent_agent, s.others_wait) = (true, true);
        s.limits.poll.hold_ms = HOLD_MS_MAX;
    });
    deliver(&world, &prompt("m2"), 1);
    assert!(!record(&world).turn.unwrap().stage.prompted().unwrap().let_go);

    let world = active();
    world.with(|s| {
        (s.silent_agent, s.others_wait) = (true, true);
        s.flags.cancelled.insert("m2".into(), person("bob"));
    });
    assert_eq!(delay_of(&deliver(&world, &prompt("m2"), 1)), None);
    assert_eq!(outcomes(&world)[1], Outcome::Cancelled { by: "bob".into() });
}

fn sent_at_ms(world: &Fake) -> Ms {
    let turn = record(world).turn.unwrap();
    turn.stage.prompted().unwrap().at_ms
}

#[test]
fn idle_poll_reads_once_writes_nothing() {
    let world = looked_at();
    let before = record(&world);
    let (writes, calls) = world.with(|s| {
        s.names.clear();
        (s.writes, s.calls)
    });
    look(&world, 2);
    world.with(|s| {
        assert_eq!(s.names, ["look"]);
        assert_eq!(s.writes, writes);
        assert_eq!(s.calls - calls, 3, "the read, the look, and the word for the next");
    });
    assert_eq!(record(&world), before);
}

#[test]
fn polls_pass_on_what_they_saw() {
    let world = looked_at();
    look(&world, 2);
    look(&world, 3);
    let card = |n: u32| Seen { card: Some(format!("picture {n}")), spent: None, doubt: None };
    assert_eq!(world.with(|s| s.saw.clone()), [Seen::default(), card(1), card(2)]);
}

#[test]
fn poll_that_sees_the_end_answers() {
    let world = looked_at();
    world.with(|s| s.silent_agent = false);
    assert_eq!(look(&world, 2), None);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
}

#[test]
fn next_poll_carries_out_stop() {
    let world = looked_at();
    world.with(|s| {
        s.flags.cancelled.insert("m2".into(), person("bob"));
        s.names.clear();
    });
    assert_eq!(look(&world, 2), None);
    assert_eq!(outcomes(&world)[1], Outcome::Cancelled { by: "bob".into() });
    let names = world.with(|s| s.names.clone());
    assert_eq!(names[..2], ["abort", "follow"]);
}

#[test]
fn control_during_release_polls_at_once() {
    let cancelled = ControlFlags {
        cancelled: [("m2".into(), person("bob"))].into(),
        ..ControlFlags::default()
    };
    let world = looked_at();
    world.with(|s| s.speaks_at_park = Some(cancelled));
    assert_eq!(look(&world, 2), Some(0));
    assert_eq!(look(&world, 3), None);
    assert_eq!(outcomes(&world)[1], Outcome::Cancelled { by: "bob".into() });
}

#[test]
fn next_poll_steers_waiting_prompt() {
    let world = looked_at();
    wants_now(&world, "m3");
    look(&world, 2);
    world.with(|s| {
        assert_eq!(s.told.last().map(String::as_str), Some("and m3"));
        s.silent_agent = false;
    });
    assert_eq!(look(&world, 3), None);
    assert!(matches!(&outcomes(&world)[2], Outcome::Answered));
}

#[test]
fn poll_posts_and_closes_asks() {
    let world = looked_at();
    for receive in 2..30 {
        look(&world, receive);
    }
    world.with(|s| s.asks.push("per_1".into()));
    assert_eq!(look(&world, 30), Some(5_000), "as soon as a young run");
    assert!(record(&world).turn.unwrap().asks[0].post.is_some());
    world.with(|s| s.asks.clear());
    look(&world, 31);
    assert!(record(&world).turn.unwrap().asks[0].settled);
    assert_eq!(look(&world, 32), Some(20_000));
}

#[test]
fn doubt_brings_next_poll_forward() {
    let world = looked_at();
    for receive in 2..30 {
        look(&world, receive);
    }
    let doubt = Some(Doubt { about: Doubtful::Stopped, since_ms: 1 });
    world.with(|s| s.doubt = doubt);
    assert_eq!(look(&world, 30), Some(5_000));
    look(&world, 31);
    assert_eq!(world.with(|s| s.saw.last().unwrap().doubt), doubt);
}

#[test]
fn dying_polls_fail_the_turn_eventually() {
    let world = looked_at();
    world.with(|s| s.kills_followers = true);
    let died = deaths(&world, "m2", 2);
    // The first of them began with the earlier delivery's state.
    assert_eq!(died, Limits::DEFAULT.retry.attempts + 1);
    assert!(matches!(outcomes(&world)[1], Outcome::Failed { .. }));
    world.with(|s| assert_eq!(s.ended_runs.len(), 1));
}

#[test]
fn finished_poll_resets_the_attempts() {
    let world = looked_at();
    let mut receive = 1;
    for _ in 0..3 * Limits::DEFAULT.retry.attempts {
        receive += 1;
        world.with(|s| s.kills_followers = true);
        let died = catch_unwind(AssertUnwindSafe(|| deliver(&world, &prompt("m2"), receive)));
        assert!(died.is_err());
        receive += 1;
        world.with(|s| s.kills_followers = false);
        assert!(look(&world, receive).is_some());
        assert_eq!(record(&world).turn.unwrap().tries.attempts, 0);
    }
}

#[test]
fn unmarked_or_late_poll_is_forgiven() {
    let world = looked_at();
    world.with(|s| s.parked = None);
    assert!(look(&world, 2).is_some());
    assert_eq!(record(&world).turn.unwrap().tries.attempts, 0, "it came to its end");
    later(&world, 7 * 60_000);
    assert!(look(&world, 3).is_some());
    world.with(|s| s.silent_agent = false);
    assert_eq!(look(&world, 4), None);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
}

#[test]
fn polled_run_ends_at_turn_bound() {
    let world = looked_at();
    let mut receive = 1;
    loop {
        receive += 1;
        if look(&world, receive).is_none() {
            break;
        }
    }
    assert!((250..350).contains(&receive), "{receive}");
    let Outcome::Failed { reason } = &outcomes(&world)[1] else { panic!("it did not fail") };
    assert!(reason.contains("90 min"), "{reason}");
    let due = world.with(|s| s.writes);
    assert!(due < 60, "{due} writes in 90 minutes");
}

#[test]
fn late_polls_use_longest_interval() {
    let world = looked_at();
    world.with(|s| s.asks.push("per_1".into()));
    assert_eq!(look(&world, LOOKS_EAGER), Some(20_000));
}

#[test]
fn table_backoff_follows_message_age() {
    let world = looked_at();
    later(&world, 10 * 60_000);
    world.with(|s| {
        let until_ms = s.now_ms + 1;
        s.out = Some((Out::Table, until_ms));
    });
    let delay_ms = delay_of(&deliver(&world, &prompt("m2"), 60)).unwrap();
    assert!((30_000..40_000).contains(&delay_ms), "{delay_ms}");
}

#[test]
fn chat_backoff_starts_short_after_polls() {
    let world = looked_at();
    world.with(|s| {
        s.silent_agent = false;
        s.out = Some((Out::Chat, s.now_ms + 60_000));
    });
    assert_eq!(delay_of(&deliver(&world, &prompt("m2"), 300)), Some(2_000));
    let ended = deliver_until_done(&world, &prompt("m2"), 301);
    assert!(ended < 330, "{ended}");
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
}

#[test]
fn poll_crashes_still_answer_once() {
    let begun = || {
        let world = looked_at();
        look(&world, 2);
        world
    };
    let calls = {
        let world = begun();
        let before = world.with(|s| s.calls);
        look(&world, 3);
        world.with(|s| s.calls) - before
    };
    for (call, after) in (1..=calls).flat_map(|call| [(call, false), (call, true)]) {
        let world = begun();
        world.with(|s| s.crash_at = Some((s.calls + call, after)));
        let died = catch_unwind(AssertUnwindSafe(|| look(&world, 3)));
        assert!(died.is_err(), "call {call}");
        world.with(|s| {
            s.crash_at = None;
            s.now_ms += Limits::DEFAULT.poll.visibility_ms;
        });
        assert!(look(&world, 4).is_some());
        assert_eq!(record(&world).turn.unwrap().tries.attempts, 0);
        world.with(|s| s.silent_agent = false);
        assert_eq!(look(&world, 5), None);
        assert_eq!(outcomes(&world)[1], Outcome::Answered, "call {call}, {after}");
        assert_eq!(chunks(&world).len(), 2);
    }
}
