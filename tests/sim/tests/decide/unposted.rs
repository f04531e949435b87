//! A thread that cannot be written to, briefly or for long.

use super::*;
use bobbin_core::records::unposted::Said;

/// All posts find the thread closed.
const ALL: u32 = u32::MAX;

fn ends(world: &Fake) -> Vec<Outcome> {
    world.with(|s| {
        let of = |post: &Post| match post {
            Post::Card(card) => match &card.state {
                CardState::Ended { outcome, .. } => Some(outcome.clone()),
                _ => None,
            },
            _ => None,
        };
        s.posts.values().filter_map(of).collect()
    })
}

/// Its second prompt ended while the thread was closed.
fn untold() -> Fake {
    let world = active();
    world.with(|s| s.closed = ALL);
    deliver_until_done(&world, &prompt("m2"), 1);
    world
}

fn opens(world: &Fake) {
    world.with(|s| s.closed = 0);
}

fn sweep(world: &Fake, id: &str) {
    deliver_until_done(world, &work(id, Work::Sweep), 1);
}

#[test]
fn briefly_closed_thread_loses_no_answer() {
    for times in 1..=Limits::DEFAULT.retry.closed_tries {
        let world = active();
        let began_ms = world.now_ms();
        world.with(|s| s.closed = times);
        deliver_until_done(&world, &prompt("m2"), 1);
        assert_eq!(outcomes(&world), [Outcome::Answered, Outcome::Answered]);
        assert_eq!(chunks(&world).len(), 2, "{times}");
        assert_eq!(ends(&world).len(), 2, "{times}");
        assert!(record(&world).untold.is_empty(), "{times}");
        world.with(|s| {
            assert!(s.notified_outside.is_empty(), "{times}");
            assert!(s.now_ms - began_ms < 60_000, "the thread waits for it");
        });
    }
}

#[test]
fn reopened_thread_gets_kept_answer() {
    let world = untold();
    assert_eq!(outcomes(&world), [Outcome::Answered, Outcome::Answered]);
    assert_eq!(chunks(&world).len(), 1);
    world.with(|s| {
        let [(people, word)] = s.notified_outside.as_slice() else {
            panic!("{:?}", s.notified_outside);
        };
        assert_eq!(people, &["ann"]);
        assert!(word.contains("the thread is locked"), "{word}");
    });
    let kept = record(&world);
    assert_eq!(kept.untold.len(), 2, "the answer and the card");
    let due_ms = kept.due_at_ms.expect("it is tried again by itself");
    world.with(|s| s.now_ms = due_ms);
    sweep(&world, "s1");
    assert_eq!(record(&world).untold, kept.untold, "it is closed still");
    assert!(record(&world).due_at_ms.is_some_and(|at| at > due_ms));
    opens(&world);
    sweep(&world, "s2");
    assert_eq!(chunks(&world).len(), 2);
    assert_eq!(ends(&world), [Outcome::Answered, Outcome::Answered]);
    let told = record(&world);
    assert_eq!((told.untold.len(), told.due_at_ms), (0, None));
    world.with(|s| assert_eq!(s.called.len(), 2, "who asked is called by the answer"));
}

#[test]
fn kept_answer_precedes_next_prompt() {
    let world = untold();
    opens(&world);
    let before = world.with(|s| s.posted.len());
    deliver_until_done(&world, &prompt("m3"), 1);
    assert_eq!(chunks(&world).len(), 3);
    assert_eq!(ends(&world).len(), 3);
    world.with(|s| {
        let first = &s.posts[&s.posted[before]];
        assert!(matches!(first.bare(), Post::Chunk { .. }), "{first:?}");
    });
}

#[test]
fn crashes_double_no_kept_answer() {
    let begun = || {
        let world = untold();
        opens(&world);
        world
    };
    let points = each_crash(begun, &prompt("m3"), |world, crash| {
        assert_eq!(chunks(world).len(), 3, "{crash}");
        assert_eq!(ends(world).len(), 3, "{crash}");
        assert!(record(world).untold.is_empty(), "{crash}");
    });
    assert!(points > 20, "{points} crash points");
}

#[test]
fn kept_answers_are_bounded() {
    let given_up = |world: &Fake| {
        let is_untold = |name: &&&str| **name == "turn.unposted";
        world.with(|s| s.signalled.iter().filter(is_untold).count())
    };
    let world = active();
    world.with(|s| {
        s.closed = ALL;
        s.limits.record.untold_bytes = 1_500;
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!((record(&world).untold.len(), given_up(&world)), (2, 0));
    deliver_until_done(&world, &prompt("m3"), 1);
    let kept = record(&world).untold;
    assert!(kept.iter().map(|one| one.bytes()).sum::<usize>() <= 1_500);
    assert!(kept.iter().any(|one| one.turn == "m3"));
    assert_eq!(given_up(&world), 1);
    later(&world, Limits::DEFAULT.retry.telling_ms);
    sweep(&world, "s1");
    assert!(record(&world).untold.is_empty());
    assert!(given_up(&world) >= 2);
}

#[test]
fn long_kept_answer_is_cut_visibly() {
    let world = active();
    world.with(|s| {
        s.closed = ALL;
        s.limits.chat.answer_chars = 3;
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    let kept = record(&world).untold;
    let Said::Part { text, last: true } = &kept[0].said else {
        panic!("{kept:?}");
    };
    assert!(text.ends_with(words::REST_NOT_KEPT), "{text}");
}

#[test]
fn reset_notice_waits_for_reopening() {
    let world = active();
    world.with(|s| s.closed = ALL);
    let deliveries = deliver_until_done(&world, &reset(), 1);
    assert_eq!(deliveries, Limits::DEFAULT.retry.closed_tries + 1);
    let is_told = |world: &Fake| {
        let word = Post::Notice(words::RESET.to_owned());
        world.with(|s| s.posts.values().any(|post| *post == word))
    };
    assert!(!is_told(&world));
    opens(&world);
    sweep(&world, "s1");
    assert!(is_told(&world) && record(&world).untold.is_empty());
}

#[test]
fn deleted_thread_keeps_no_answer() {
    let world = untold();
    let gone = Failure::ThreadGone { seen: "deleted".into() };
    world.with(|s| {
        s.closed = 0;
        s.fail.insert("post", vec![gone]);
    });
    sweep(&world, "s1");
    assert_eq!((record(&world).untold.len(), record(&world).due_at_ms), (0, None));
}

#[test]
fn hidden_ask_is_shown_after_reopening() {
    let world = active();
    world.with(|s| {
        s.closed = 1;
        s.asks.push("per_1".into());
    });
    let verdict = deliver(&world, &prompt("m2"), 1);
    let turn = record(&world).turn.expect("the run goes on");
    assert!(matches!(verdict, Verdict::Hold { .. }), "{verdict:?}");
    assert_eq!((turn.asks.len(), turn.asks[0].post.is_none()), (1, true));
    deliver(&world, &prompt("m2"), 2);
    let turn = record(&world).turn.expect("the run goes on");
    assert!(turn.asks[0].post.is_some() && turn.tries.attempts == 0);
}

/// What a chat answers that never takes a post.
fn refused() -> Failure {
    Failure::NonRecoverable { advice: "This server's message filter blocked the answer.".into() }
}

fn unposted(world: &Fake) -> usize {
    let is_unposted = |name: &&&str| **name == "turn.unposted";
    world.with(|s| s.signalled.iter().filter(is_unposted).count())
}

#[test]
fn refused_answer_ends_in_a_note() {
    let most = usize::try_from(Limits::DEFAULT.retry.refusals).unwrap();
    for failures in [vec![refused()], vec![busy(); most + 1]] {
        let world = active();
        world.with(|s| s.fail_parts = failures);
        deliver_until_done(&world, &prompt("m2"), 1);
        assert_eq!(outcomes(&world), [Outcome::Answered, Outcome::Answered]);
        assert_eq!(ends(&world), [Outcome::Answered, Outcome::Answered]);
        let note = post_key(&thread(), &"m2".into(), &PostKind::Chunk(0));
        world.with(|s| {
            let Post::Chunk { text, last: true, .. } = s.posts[&note].bare() else {
                panic!("{:?}", s.posts[&note]);
            };
            assert!(text.contains("could not be posted here"), "{text}");
            assert_eq!(s.called[&note], ["ann"]);
            assert!(s.notified_outside.is_empty());
        });
        assert!(record(&world).untold.is_empty());
        assert_eq!(unposted(&world), 1, "the operator hears of the lost answer");
    }
}

#[test]
fn refused_answer_and_note_are_kept() {
    let world = active();
    world.with(|s| s.fail_parts = vec![refused(); 2]);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world), [Outcome::Answered, Outcome::Answered]);
    world.with(|s| assert_eq!(s.notified_outside.len(), 1));
    assert_eq!((record(&world).untold.len(), unposted(&world)), (2, 0), "the answer and the card");
    world.with(|s| s.fail_parts = vec![refused()]);
    sweep(&world, "s1");
    assert!(record(&world).untold.is_empty());
    assert!(unposted(&world) >= 1, "the answer is given up");
    assert_eq!(ends(&world), [Outcome::Answered, Outcome::Answered], "the card is not");
}

#[test]
fn refused_last_card_is_kept_and_its_requester_called() {
    let world = active();
    world.with(|s| {
        s.fail.insert("follow", vec![Failure::SandboxGone]);
        s.fail_ends = vec![refused()];
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world), [Outcome::Answered, Outcome::Lost]);
    assert_eq!((record(&world).untold.len(), ends(&world).len()), (1, 1));
    let line = post_key(&thread(), &"m2".into(), &PostKind::Call);
    world.with(|s| assert_eq!(s.called[&line], ["ann"]));
    sweep(&world, "s1");
    assert!(ends(&world).contains(&Outcome::Lost));
    assert_eq!((record(&world).untold.len(), unposted(&world)), (0, 0));
}

#[test]
fn rolled_card_without_successor_ends_too() {
    let world = active();
    world.with(|s| {
        s.silent_agent = true;
        s.fail_roll = u32::MAX;
        (s.limits.poll.look_ms_min, s.limits.poll.look_ms_max) = (480_000, 480_000);
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    let kept: Vec<PostKind> = record(&world).untold.iter().map(|one| one.kind.clone()).collect();
    assert_eq!(kept, [PostKind::Card, PostKind::Rolled(1)]);
    world.with(|s| s.fail_roll = 0);
    sweep(&world, "s1");
    assert!(record(&world).untold.is_empty());
    assert_eq!(ends(&world).len(), 3, "the card of the first turn, and both of the second");
    let is_card = |post: &&Post| matches!(post, Post::Card(_));
    assert_eq!(world.with(|s| s.posts.values().filter(is_card).count()), 3, "none looks alive");
}

#[test]
fn crashes_lose_no_kept_card() {
    let begun = || {
        let world = active();
        world.with(|s| s.fail_ends = vec![refused()]);
        world
    };
    let points = each_crash(begun, &prompt("m2"), |world, crash| {
        sweep(world, "s1");
        assert_eq!(ends(world), [Outcome::Answered, Outcome::Answered], "{crash}");
        assert_eq!((chunks(world).len(), unposted(world)), (2, 0), "{crash}");
        assert!(record(world).untold.is_empty(), "{crash}");
    });
    assert!(points > 10, "{points} crash points");
}
