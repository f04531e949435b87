//! Runs that nobody holds: one delivery a look, and what is left for the next.

use super::*;

/// A thread whose second prompt runs, was held for as long as that is done, and has just been given back.
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

/// The next delivery, once its time has come: after how long the one after it comes.
fn look(world: &Fake, receive: u32) -> Option<u64> {
    let until_ms = world.with(|s| s.parked.as_ref().map_or(s.now_ms, |parked| parked.until_ms));
    world.with(|s| s.now_ms = s.now_ms.max(until_ms));
    delay_of(&deliver(world, &prompt("m2"), receive))
}

#[test]
fn a_run_is_held_for_its_first_minute_and_looked_at_further_and_further_apart_from_then_on() {
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
fn a_run_that_is_let_go_of_for_other_work_is_looked_at_from_then_on() {
    let world = active();
    world.with(|s| {
        (s.silent_agent, s.others_wait) = (true, true);
        s.names.clear();
    });
    let verdict = deliver(&world, &prompt("m2"), 1);
    assert_eq!(delay_of(&verdict), Some(5_000));
    assert_eq!(world.with(|s| s.now_ms) - sent_at_ms(&world), OTHERS_AFTER_MS);
    // Also where nobody waits any more: what lets go of it again and again has to write each time.
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
fn where_every_delivery_follows_and_where_a_run_is_wanted_over_nobody_lets_go_of_it() {
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
fn a_look_that_finds_nothing_new_reads_once_and_leaves_the_record_as_it_is() {
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
fn a_look_knows_what_the_one_before_has_seen() {
    let world = looked_at();
    look(&world, 2);
    look(&world, 3);
    let card = |n: u32| Seen { card: Some(format!("picture {n}")), doubt: None };
    assert_eq!(world.with(|s| s.saw.clone()), [Seen::default(), card(1), card(2)]);
}

#[test]
fn an_end_is_answered_by_the_look_that_sees_it() {
    let world = looked_at();
    world.with(|s| s.silent_agent = false);
    assert_eq!(look(&world, 2), None);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
}

#[test]
fn a_stop_is_carried_out_by_the_next_look_which_stays_until_the_run_has_ended() {
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
fn what_a_person_says_while_the_message_is_given_back_is_looked_at_at_once() {
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
fn a_waiting_prompt_is_sent_into_a_run_that_nobody_holds_by_the_next_look() {
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
fn an_ask_between_looks_is_posted_looked_at_soon_and_closed_once_it_is_settled() {
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
fn what_is_in_doubt_is_looked_at_again_soon() {
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
fn looks_that_die_are_counted_one_by_one_and_fail_the_turn_after_a_few() {
    let world = looked_at();
    world.with(|s| s.kills_followers = true);
    let died = deaths(&world, "m2", 2);
    // The first of them began with what the delivery before had left.
    assert_eq!(died, Limits::DEFAULT.retry.attempts + 1);
    assert!(matches!(outcomes(&world)[1], Outcome::Failed { .. }));
    world.with(|s| assert_eq!(s.ended_runs.len(), 1));
}

#[test]
fn a_look_that_comes_to_its_end_forgives_those_that_died_before() {
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
fn a_word_that_could_not_be_left_costs_one_try_and_a_message_that_comes_late_none() {
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
fn a_run_that_nobody_holds_is_ended_at_the_bound_of_turns_after_fewer_deliveries_than_the_queue_allows()
 {
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
fn beyond_the_eager_deliveries_looks_come_at_their_longest_interval_whatever_is_open() {
    let world = looked_at();
    world.with(|s| s.asks.push("per_1".into()));
    assert_eq!(look(&world, LOOKS_EAGER), Some(20_000));
}

#[test]
fn a_table_that_stumbles_under_a_turn_of_many_looks_is_waited_for_by_the_age_of_the_message() {
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
fn an_outage_of_the_chat_at_the_end_of_many_looks_begins_with_short_waits() {
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
fn wherever_a_look_or_its_giving_back_dies_the_turn_is_answered_once() {
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
