//! Outages of the services that Bobbin needs, and of prompts that expire during them.

use super::*;
use bobbin_core::protocol::decide::words;

const HOUR_MS: u64 = 3_600_000;

/// Takes a service down now, for this long.
fn out(world: &Fake, of: Out, for_ms: u64) {
    world.with(|s| s.out = Some((of, s.now_ms + for_ms)));
}

/// How often each effect was performed before an outage can begin.
fn stages() -> u32 {
    let world = active();
    world.with(|s| s.calls = 0);
    deliver_until_done(&world, &prompt("m2"), 1);
    world.with(|s| s.calls)
}

#[test]
fn hour_long_outage_loses_nothing() {
    for of in [Out::Table, Out::Writes, Out::Chat] {
        for call in 1..=stages() {
            let world = active();
            let now_ms = world.now_ms();
            world.with(|s| {
                s.calls = 0;
                s.out_at = Some((call, of, now_ms + HOUR_MS));
            });
            deliver_until_done(&world, &prompt("m2"), 1);
            assert_eq!(
                outcomes(&world),
                [Outcome::Answered, Outcome::Answered],
                "{of:?} before call {call}"
            );
            assert_eq!(chunks(&world), ["the answer", "the answer"], "{of:?} {call}");
            assert_eq!(world.with(|s| s.prompted.len()), 2, "{of:?} {call}");
            let over_ms = world.now_ms() - now_ms;
            assert!(over_ms < HOUR_MS * 5 / 4, "{of:?} {call}: {over_ms}");
        }
    }
}

#[test]
fn weekend_outage_loses_no_answer() {
    for of in [Out::Table, Out::Writes, Out::Chat] {
        let world = active();
        out(&world, of, 70 * HOUR_MS);
        let receives = deliver_until_done(&world, &prompt("m2"), 1);
        assert!(receives < DELIVERIES_MAX, "{of:?}: {receives}");
        assert_eq!(outcomes(&world)[1], Outcome::Answered, "{of:?}");
        assert_eq!(chunks(&world).len(), 2, "{of:?}");
    }
}

#[test]
fn chat_outage_is_signalled_once() {
    let world = active();
    out(&world, Out::Chat, HOUR_MS);
    deliver_until_done(&world, &prompt("m2"), 1);
    let told = |name| world.with(|s| s.signalled.iter().filter(|one| **one == name).count());
    assert_eq!((told("chat.outage.began"), told("provider.outage.began")), (1, 0));
}

#[test]
fn endless_chat_outage_fails_turn() {
    let world = active();
    out(&world, Out::Chat, u64::MAX / 2);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert!(matches!(&outcomes(&world)[1], Outcome::Failed { .. }));
    assert!(world.with(|s| s.signalled.contains(&"turn.unposted")));
}

#[test]
fn provider_outage_fails_only_unbegun_turns() {
    for call in 1..=stages() {
        let world = active();
        let now_ms = world.now_ms();
        world.with(|s| {
            s.calls = 0;
            s.went_on = true;
            s.out_at = Some((call, Out::Provider, now_ms + HOUR_MS));
        });
        deliver_until_done(&world, &prompt("m2"), 1);
        match (&outcomes(&world)[1], world.with(|s| s.prompted.len())) {
            (Outcome::Answered, 2) => assert_eq!(chunks(&world).len(), 2),
            (Outcome::Failed { reason }, 1) => assert!(
                reason.contains("Nothing was run")
                    && world.with(|s| s.ledger["m2"].again.is_some()),
                "{call}: {reason}"
            ),
            other => panic!("before call {call}: {other:?}"),
        }
    }
}

#[test]
fn sweep_gives_up_early_in_outages() {
    let world = active();
    later(&world, Limits::DEFAULT.sandbox.idle_pause_ms + 1);
    out(&world, Out::Provider, HOUR_MS);
    let receives = deliver_until_done(&world, &work("s1", Work::Sweep), 1);
    assert!(receives <= Limits::DEFAULT.retry.attempts + 2, "{receives}");
    later(&world, HOUR_MS);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
}

#[test]
fn reset_gives_up_during_long_outages() {
    let world = active();
    out(&world, Out::Provider, 5 * HOUR_MS);
    let reset =
        Work::Reset { by: person("ann"), membership: Membership::default(), keeps_files: false };
    let began_ms = world.now_ms();
    deliver_until_done(&world, &work("r1", reset), 1);
    assert!(world.now_ms() - began_ms < HOUR_MS / 2);
    let told = world.with(|s| {
        s.posts.values().any(|post| {
            matches!(post, Post::Notice(words) if words.contains("has not answered for 15 min"))
        })
    });
    assert!(told, "{:?}", world.with(|s| s.posts.clone()));
}

/// The notice of a prompt with this text.
fn notice(id: &str, turn: &str) -> Message {
    let Work::Prompt(asked) = prompt(turn).work else {
        unreachable!("a prompt");
    };
    let dead = DeadPrompt { accepted_at_ms: 1_000_000, prompt: asked };
    let told = Work::DeadLetter { turn: turn.into(), prompt: Some(Box::new(dead)) };
    work(id, told)
}

#[test]
fn dead_prompt_is_reported_and_rerunnable() {
    let world = active();
    deliver_until_done(&world, &notice("b1", "m2"), 1);
    deliver_until_done(&world, &notice("b1", "m2"), 2);
    let failed = Outcome::Failed { reason: words::DEAD_PROMPT.to_owned() };
    assert_eq!(outcomes(&world), [Outcome::Answered, failed.clone()]);
    world.with(|s| {
        let cards = s.posts.values().filter(|post| {
            matches!(post.bare(), Post::Card(card) if matches!(&card.state, CardState::Ended { outcome, .. } if *outcome == failed))
        });
        assert_eq!(cards.count(), 1);
        let again = s.ledger["m2"].again.as_ref().unwrap();
        assert_eq!((again.text.as_str(), again.by.name.as_str()), ("do it", "ann"));
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world).len(), 2, "what was given up does not run after all");
}

#[test]
fn dead_recorded_turn_is_rerunnable() {
    let world = active();
    world.with(|s| s.crash_at = Some((s.calls + 4, false)));
    let crashed = catch_unwind(AssertUnwindSafe(|| deliver(&world, &prompt("m2"), 1)));
    assert!(crashed.is_err());
    world.with(|s| s.crash_at = None);
    deliver_until_done(&world, &notice("b1", "m2"), 1);
    assert!(matches!(outcomes(&world)[1], Outcome::Failed { .. }));
    assert!(world.with(|s| s.ledger["m2"].again.is_some()));
}

#[test]
fn dead_prompt_notice_survives_any_crash() {
    for of in [None, Some(Out::Table), Some(Out::Writes), Some(Out::Chat)] {
        for call in 1..12 {
            let world = active();
            let now_ms = world.now_ms();
            world.with(|s| {
                s.calls = 0;
                match of {
                    None => s.crash_at = Some((call, call % 2 == 0)),
                    Some(of) => s.out_at = Some((call, of, now_ms + HOUR_MS)),
                }
            });
            let told = notice("b1", "m2");
            let met = catch_unwind(AssertUnwindSafe(|| deliver_until_done(&world, &told, 1)));
            if met.is_err() {
                world.with(|s| s.crash_at = None);
                deliver_until_done(&world, &told, 2);
            }
            assert_eq!(outcomes(&world).len(), 2, "{of:?} {call}");
            assert!(world.with(|s| s.ledger["m2"].again.is_some()), "{of:?} {call}");
        }
    }
}
