//! What `decide` and its driver do, in a small world in memory. `protocol` has crashes at every call and all promises
//! after each.
#![allow(clippy::unwrap_used, clippy::panic)]

mod absence;
mod acts;
mod budget;
mod capped;
mod choice;
mod comment_task;
mod fake;
mod fix;
mod forge;
mod handover;
mod histories;
mod leases;
mod looks;
mod operate;
mod outages;
mod outside;
mod prebuild;
mod prices;
mod publish;
mod review;
mod runs;
mod secrets;
mod set_up;
mod share;
mod sibling_repositories;
mod steering;
mod unposted;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context as TaskContext, Poll, Waker};

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, PostRef, ThreadKey};
use bobbin_core::base::limits::{DELIVERIES_MAX, HOLD_MS_MAX, LOOKS_EAGER, Limits};
use bobbin_core::base::names::{PostKind, post_key};
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::protocol::decide::words;
use bobbin_core::protocol::drive::{Delivery, Verdict, drive};
use bobbin_core::protocol::effect::{Effect, Sending};
use bobbin_core::protocol::event::{Event, NotCloned};
use bobbin_core::protocol::ports::{ExpectedVersions, Loaded, Saved, World};
use bobbin_core::records::artifacts::Artifact;
use bobbin_core::records::ask::About;
use bobbin_core::records::card::{CardState, Post, ShownFile};
use bobbin_core::records::carried::{
    Carried, CarriedTo, ForgeRepository, FoundRepository, LeftOut,
};
use bobbin_core::records::changes::{self, Changes, How};
use bobbin_core::records::control::PublishStep;
use bobbin_core::records::flags::{ControlFlags, Queued, StoppedAll};
use bobbin_core::records::images::Image;
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::message::{Attachment, DeadPrompt, Message, Prompt, Quote, Work};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::parked::{Doubt, Doubtful, Parked, Seen};
use bobbin_core::records::publication::{
    ActEnd, Opened, Outgoing, OutgoingChange, OutgoingFile, Presser, PullRequestAct,
    PullRequestRef, PullRequestSeen, PullRequestState, PushEnd,
};
use bobbin_core::records::run::{PromptState, RunAnswer, RunEnd};
use bobbin_core::records::sandbox::{Phase, SandboxState};
use bobbin_core::records::session::{Session, StrayRun};
use bobbin_core::records::usage::Usage;
use bobbin_core::tenant::catalogue::AgentOptions;
use bobbin_core::tenant::repositories::BoundForge;
use bobbin_core::tenant::selection::Selection;
use bobbin_core::tenant::settings::{DefaultKind, Settings, SettingsChange, SettingsList};
use fake::*;

#[test]
fn first_message_is_answered_once() {
    let world = active();
    assert_eq!(record(&world).sandbox.phase, Phase::Active);
    assert_eq!(outcomes(&world), [Outcome::Answered]);
    assert_eq!(chunks(&world), ["the answer"]);
    world.with(|s| {
        assert_eq!(s.prompted.len(), 1);
        assert!(s.posts.values().any(
            |p| matches!(p, Post::Card(card) if matches!(card.state, CardState::Ended { .. }))
        ));
        assert_eq!(s.posted.len(), 2, "one card and one answer");
    });
}

#[test]
fn redelivered_ended_message_does_nothing() {
    let world = active();
    let calls = world.with(|s| s.calls);
    assert_eq!(deliver(&world, &prompt("m1"), 2), Verdict::Done);
    assert_eq!(world.with(|s| s.calls) - calls, 1, "only the record is read");
}

#[test]
fn follow_up_reuses_sandbox_and_session() {
    let world = active();
    deliver_until_done(&world, &prompt("m2"), 1);
    let session = record(&world);
    assert_eq!(
        (session.sandbox.generation, session.conversation.session.as_deref()),
        (1, Some("ses_1"))
    );
    world.with(|s| assert_eq!(s.prompted.iter().map(|(g, _)| *g).collect::<Vec<_>>(), [1, 1]));
}

#[test]
fn message_resumes_idle_paused_sandbox() {
    let world = active();
    deliver_until_done(&world, &work("s1", Work::Sweep), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Active, "not idle for long enough");
    later(&world, Limits::DEFAULT.sandbox.idle_pause_ms);
    deliver_until_done(&world, &work("s2", Work::Sweep), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Paused);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Active);
    assert_eq!(record(&world).sandbox.generation, 1);
    assert_eq!(outcomes(&world), [Outcome::Answered, Outcome::Answered]);
}

#[test]
fn expired_sandbox_is_destroyed_with_notice() {
    let world = active();
    later(&world, Limits::DEFAULT.sandbox.idle_pause_ms);
    deliver_until_done(&world, &work("s1", Work::Sweep), 1);
    later(&world, Limits::DEFAULT.sandbox.paused_ttl_ms);
    deliver_until_done(&world, &work("s2", Work::Sweep), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
    world.with(|s| {
        assert!(s.sandboxes.is_empty());
        assert!(s.posts.values().any(|p| *p == Post::Notice(words::EXPIRED.to_owned())));
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(record(&world).sandbox.generation, 2);
}

#[test]
fn reset_deletes_sandbox_with_notice() {
    let world = active();
    deliver_until_done(&world, &reset(), 1);
    world.with(|s| {
        assert!(s.sandboxes.is_empty());
        assert!(s.posts.values().any(|p| *p == Post::Notice(words::RESET.to_owned())));
    });
}

#[test]
fn vanished_sandbox_is_replaced_before_prompting() {
    let world = active();
    world.with(|s| s.sandboxes.clear());
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(record(&world).sandbox.generation, 2);
    assert_eq!(outcomes(&world), [Outcome::Answered, Outcome::Answered]);
}

#[test]
fn vanishing_mid_turn_loses_the_turn() {
    let world = active();
    world.with(|s| {
        s.fail.insert("follow", vec![Failure::SandboxGone]);
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world)[1], Outcome::Lost);
    world.with(|s| assert_eq!(s.prompted.len(), 2));
}

#[test]
fn lost_server_gets_one_more_prompt() {
    let world = active();
    let down = || Failure::SandboxDown { seen: "connection refused".into() };
    world.with(|s| {
        s.fail.insert("follow", vec![down()]);
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
    world.with(|s| {
        s.fail.insert("follow", vec![down(), down()]);
    });
    deliver_until_done(&world, &prompt("m3"), 1);
    assert!(
        matches!(&outcomes(&world)[2], Outcome::Failed { reason } if reason.contains("connection refused"))
    );
}

#[test]
fn refused_key_is_reported_with_advice() {
    let world = Fake::new();
    let advice = "Daytona refused the API key: set DaytonaApiKey".to_owned();
    world.with(|s| {
        s.fail.insert("create", vec![Failure::NonRecoverable { advice: advice.clone() }]);
    });
    deliver_until_done(&world, &prompt("m1"), 1);
    assert_eq!(outcomes(&world), [Outcome::Failed { reason: advice }]);
    assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
}

#[test]
fn busy_provider_wait_is_bounded() {
    let world = Fake::new();
    let wait = || Failure::Wait { after_ms: 0, seen: "429".into() };
    world.with(|s| {
        s.fail.insert("create", vec![wait(), wait()]);
    });
    let receives = deliver_until_done(&world, &prompt("m1"), 1);
    assert_eq!((receives, outcomes(&world)), (3, vec![Outcome::Answered]));
    let world = Fake::new();
    world.with(|s| {
        s.fail.insert("create", (0..100).map(|_| wait()).collect());
    });
    deliver_until_done(&world, &prompt("m1"), 1);
    assert!(matches!(&outcomes(&world)[0], Outcome::Failed { reason } if reason.contains("429")));
}

#[test]
fn sandbox_broken_at_creation_is_deleted() {
    let world = Fake::new();
    world.with(|s| {
        s.sandboxes
            .insert(1, SandboxState::Broken { reason: "no capacity".into(), recoverable: false });
    });
    deliver_until_done(&world, &prompt("m1"), 1);
    assert!(
        matches!(&outcomes(&world)[0], Outcome::Failed { reason } if reason.contains("no capacity"))
    );
    world.with(|s| assert!(s.sandboxes.is_empty()));
}

#[test]
fn early_stop_cancels_without_prompting() {
    let world = Fake::new();
    world.with(|s| {
        s.flags.cancelled.insert("m1".into(), person("bob"));
        s.record = Some(Session { version: 1, ..Session::new(thread(), 0) });
    });
    deliver_until_done(&world, &prompt("m1"), 1);
    assert_eq!(outcomes(&world), [Outcome::Cancelled { by: "bob".into() }]);
    world.with(|s| assert!(s.prompted.is_empty()));
}

#[test]
fn unrecorded_card_still_shows_end() {
    let world = Fake::new();
    // The card is posted, then the worker dies: load, save, post.
    world.with(|s| s.crash_at = Some((3, true)));
    assert!(catch_unwind(AssertUnwindSafe(|| deliver(&world, &prompt("m1"), 1))).is_err());
    world.with(|s| s.flags.cancelled.insert("m1".into(), person("bob")));
    deliver_until_done(&world, &prompt("m1"), 2);
    assert_eq!(outcomes(&world), [Outcome::Cancelled { by: "bob".into() }]);
    world.with(|s| {
        let cards = s.posts.values().filter(|post| matches!(post, Post::Card(_)));
        let [Post::Card(card)] = cards.collect::<Vec<_>>()[..] else { panic!("one card") };
        assert!(matches!(card.state, CardState::Ended { .. }), "{card:?}");
    });
}

#[test]
fn stop_aborts_run_as_cancelled() {
    let world = active();
    world.with(|s| {
        s.silent_agent = true;
        s.stop_in_follow = true;
    });
    assert_eq!(deliver(&world, &prompt("m2"), 1), Verdict::Done);
    assert_eq!(outcomes(&world)[1], Outcome::Cancelled { by: "bob".into() });
    world.with(|s| assert!(s.aborted && s.prompted.len() == 2));
}

#[test]
fn fast_abort_still_ends_as_cancelled() {
    let world = active();
    world.with(|s| (s.silent_agent, s.stop_in_follow, s.abort_wins) = (true, true, true));
    assert_eq!(deliver(&world, &prompt("m2"), 1), Verdict::Done);
    assert_eq!(outcomes(&world)[1], Outcome::Cancelled { by: "bob".into() });
}

/// OpenCode leaves no trace of an abort while it waits to ask the model again.
#[test]
fn stop_counts_despite_unexplained_end() {
    let world = active();
    world.with(|s| {
        (s.silent_agent, s.stop_in_follow) = (true, true);
        (s.run_end, s.answers) = (Some(RunEnd::Unexplained), Some(String::new()));
    });
    assert_eq!(deliver(&world, &prompt("m2"), 1), Verdict::Done);
    assert_eq!(outcomes(&world)[1], Outcome::Cancelled { by: "bob".into() });
}

#[test]
fn unexplained_end_is_marked() {
    let told = |end: RunEnd, text: &str| {
        let world = active();
        world.with(|s| (s.run_end, s.answers) = (Some(end), Some(text.to_owned())));
        deliver_until_done(&world, &prompt("m2"), 1);
        let key = post_key(&thread(), &"m2".into(), &PostKind::Chunk(0));
        let told = world.with(|s| match s.posts.get(&key).map(Post::bare) {
            Some(Post::Chunk { text, .. }) => Some(text.clone()),
            _ => None,
        });
        (outcomes(&world)[1].clone(), told)
    };
    let under = |text: &str, line: &str| Some(format!("{text}\n\n{line}"));
    assert_eq!(
        told(RunEnd::Cut, "half of it and then"),
        (Outcome::Answered, under("half of it and then", words::CUT_OFF))
    );
    assert_eq!(
        told(RunEnd::Unexplained, "half"),
        (Outcome::Answered, under("half", words::MAYBE_INCOMPLETE))
    );
    let nothing = Outcome::Failed { reason: words::UNEXPLAINED.to_owned() };
    assert_eq!(told(RunEnd::Unexplained, ""), (nothing, None));
}

#[test]
fn longest_hold_prompts_once_across_windows() {
    let world = active();
    world.with(|s| (s.silent_agent, s.limits.poll.hold_ms) = (true, HOLD_MS_MAX));
    let message = prompt("m2");
    assert_eq!(
        deliver(&world, &message, 1),
        Verdict::Hold { delay_ms: 0, why: "follow window 1 of the run is over".into() }
    );
    assert_eq!(
        deliver(&world, &message, 2),
        Verdict::Hold { delay_ms: 0, why: "follow window 2 of the run is over".into() }
    );
    world.with(|s| s.silent_agent = false);
    assert_eq!(deliver(&world, &message, 3), Verdict::Done);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
    world.with(|s| assert_eq!(s.prompted.len(), 2));
}

#[test]
fn endless_run_fails_at_bound() {
    let world = active();
    world.with(|s| s.silent_agent = true);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert!(
        matches!(&outcomes(&world)[1], Outcome::Failed { reason } if reason.contains("90 min"))
    );
}

#[test]
fn unanswered_ask_counts_as_no() {
    let world = active();
    world.with(|s| s.asks.push("per_1".into()));
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
    let asks = world.with(|s| {
        s.posts
            .values()
            .filter_map(|p| match p {
                Post::Ask { settled, .. } => Some(settled.clone()),
                _ => None,
            })
            .collect::<Vec<_>>()
    });
    assert_eq!(asks, [Some("Nobody decided in time, so it counts as no.".to_owned())]);
}

#[test]
fn abandoned_turn_ends_before_next() {
    let world = active();
    world.with(|s| s.crash_at = Some((s.calls + 4, true)));
    assert!(catch_unwind(AssertUnwindSafe(|| deliver(&world, &prompt("m2"), 1))).is_err());
    world.with(|s| s.crash_at = None);
    deliver_until_done(&world, &prompt("m3"), 1);
    assert!(
        matches!(&outcomes(&world)[1], Outcome::Failed { reason } if reason == words::LOST_ITS_PLACE)
    );
    assert_eq!(outcomes(&world)[2], Outcome::Answered);
}

#[test]
fn missing_attachment_is_named_not_fatal() {
    let world = Fake::new();
    let file = Attachment {
        name: "notes.txt".into(),
        url: "https://x/y".into(),
        size: 1,
        media_type: None,
    };
    let asked = Prompt {
        text: "read it".into(),
        by: person("ann"),
        attachments: vec![file],
        ..Prompt::default()
    };
    deliver_until_done(&world, &work("m1", Work::Prompt(asked)), 1);
    let word = "The agent works without these files. If it needs them, upload them again:\n- notes.txt is gone";
    world.with(|s| assert!(s.posts.values().any(|p| *p == Post::Notice(word.to_owned()))));
    assert_eq!(outcomes(&world), [Outcome::Answered]);
}

#[test]
fn deleted_thread_ends_the_turn() {
    let world = active();
    let gone = Failure::ThreadGone { seen: "the thread was deleted".into() };
    world.with(|s| s.fail.insert("post", vec![gone]));
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world)[1], Outcome::Failed { reason: "the thread was deleted".into() });
    assert!(record(&world).turn.is_none());
}

#[test]
fn unreadable_answer_fails_the_turn() {
    let world = active();
    // The answer's outcome is on record, then the worker dies before its first part is posted.
    let calls = |world: &Fake| world.with(|s| s.calls);
    let before = calls(&world);
    deliver_until_done(&world, &prompt("m2"), 1);
    // What remains: the part and its record, two checks of what is left behind, the card and its record.
    let chunk_call = calls(&world) - before - 5;
    world.with(|s| s.crash_at = Some((s.calls + chunk_call, false)));
    assert!(catch_unwind(AssertUnwindSafe(|| deliver(&world, &prompt("m3"), 1))).is_err());
    world.with(|s| s.fail.insert("find_agent_session", (0..100).map(|_| busy()).collect()));
    deliver_until_done(&world, &prompt("m3"), 2);
    assert!(matches!(&outcomes(&world)[2], Outcome::Failed { reason } if reason.contains("429")));
    world.with(|s| {
        let ended = |card: &bobbin_core::records::card::Card| {
            matches!(card.state, CardState::Ended { outcome: Outcome::Failed { .. }, .. })
        };
        assert!(
            s.posts
                .values()
                .any(|post| matches!(post, Post::Card(card) if card.turn == "m3" && ended(card)))
        );
    });
}

#[test]
fn crashes_do_not_spend_telling_retries() {
    let world = active();
    world.with(|s| {
        s.silent_agent = true;
        s.stop_in_follow = true;
    });
    // The last call is the write that closes the turn: each crash before it costs a delivery.
    let before = world.with(|s| s.calls);
    deliver_until_done(&world, &prompt("m2"), 1);
    let calls = world.with(|s| s.calls) - before;
    world.with(|s| s.stop_in_follow = true);
    for receive in 1..=Limits::DEFAULT.retry.attempts + 1 {
        let call = if receive == 1 { calls } else { 3 };
        world.with(|s| s.crash_at = Some((s.calls + call, false)));
        let crash = catch_unwind(AssertUnwindSafe(|| deliver(&world, &prompt("m3"), receive)));
        assert!(crash.is_err(), "delivery {receive}");
    }
    world.with(|s| s.crash_at = None);
    world.with(|s| s.fail.insert("post", vec![busy()]));
    deliver_until_done(&world, &prompt("m3"), 20);
    assert_eq!(outcomes(&world)[2], Outcome::Cancelled { by: "bob".into() });
}

#[test]
fn refused_reset_notice_is_retried() {
    let world = active();
    world.with(|s| s.fail.insert("post", vec![busy()]));
    let reset = reset();
    assert!(matches!(deliver(&world, &reset, 1), Verdict::Hold { .. }));
    deliver_until_done(&world, &reset, 2);
    world.with(|s| assert!(s.posts.values().any(|p| *p == Post::Notice(words::RESET.to_owned()))));
}

#[test]
fn only_unended_dead_letters_are_reported() {
    let world = active();
    let dead =
        |id: &str, turn: &str| work(id, Work::DeadLetter { prompt: None, turn: turn.into() });
    deliver_until_done(&world, &dead("b1", "m1"), 1);
    assert_eq!(outcomes(&world), [Outcome::Answered]);
    deliver_until_done(&world, &dead("b2", "m2"), 1);
    deliver_until_done(&world, &dead("b2", "m2"), 2);
    let notices = world.with(|s| {
        s.posts.values().filter(|p| **p == Post::Notice(words::DEAD_LETTER.to_owned())).count()
    });
    assert_eq!((notices, outcomes(&world).len()), (1, 2));
    deliver_until_done(&world, &prompt("m2"), 2);
    assert_eq!(outcomes(&world).len(), 2, "what was given up does not run after all");
}

#[test]
fn expired_delivery_does_nothing_more() {
    let world = active();
    world.with(|s| s.lapsed = true);
    let posted = world.with(|s| s.posted.len());
    assert!(matches!(deliver(&world, &prompt("m2"), 1), Verdict::Hold { .. }));
    world.with(|s| assert_eq!((s.posted.len(), s.prompted.len()), (posted, 1)));
    world.with(|s| s.lapsed = false);
    deliver_until_done(&world, &prompt("m2"), 2);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
}

#[test]
fn deliveries_wait_out_pausing_lease() {
    let world = active();
    later(&world, Limits::DEFAULT.sandbox.idle_pause_ms);
    // Crash right after the flag was saved: load, save, then the stop.
    dies(&world, &work("s1", Work::Sweep), 3, false);
    assert_eq!(record(&world).sandbox.phase, Phase::Pausing);
    let lease = record(&world).sandbox.lease.unwrap();
    assert!(lease.until_ms > world.now_ms() + 60_000);
    // The sweeper sends it again when the lease is over: nobody waits behind this one.
    assert_eq!(deliver(&world, &work("s1", Work::Sweep), 2), Verdict::Done);
    assert_eq!(record(&world).sandbox.due_at_ms, Some(lease.until_ms));
    let names = world.with(|s| s.names.len());
    let mut receive = 1;
    while world.now_ms() < lease.until_ms {
        let Verdict::Hold { delay_ms, .. } = deliver(&world, &prompt("m2"), receive) else {
            panic!("the lease was not waited out")
        };
        assert!(delay_ms > 0 && world.with(|s| s.names.len()) == names);
        later(&world, delay_ms);
        receive += 1;
    }
    deliver_until_done(&world, &prompt("m2"), receive);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
    world.with(|s| assert!(!s.stopped_while_running));
}

/// The thread's sandbox vanishes during its second turn; the third message comes to a new one.
#[test]
fn new_agent_session_gets_thread_history() {
    let world = active();
    world.with(|s| {
        s.sandboxes.clear();
        s.fail.insert("follow", vec![Failure::SandboxGone]);
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    world.with(|s| s.sandboxes.clear());
    deliver_until_done(&world, &prompt("m3"), 1);
    let told = world.with(|s| s.told.clone());
    assert_eq!(told[0], "do it");
    let last = told.last().unwrap();
    assert!(
        last.ends_with("- ann asked: do it | answered: the answer\n\ndo it")
            || last.contains("| this was cut off when its sandbox vanished\n\ndo it"),
        "{last}"
    );
    // A person who was told is not told again.
    deliver_until_done(&world, &prompt("m4"), 1);
    assert_eq!(world.with(|s| s.told.last().cloned()).unwrap(), "do it");
}

#[test]
fn reset_agent_gets_no_history() {
    let world = active();
    deliver_until_done(&world, &reset(), 1);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(world.with(|s| s.told.clone()), ["do it", "do it"]);
}

#[test]
fn ledger_keeps_only_lost_turns_prompts() {
    let world = active();
    world.with(|s| {
        s.silent_agent = true;
        s.fail.insert("follow", vec![Failure::SandboxGone]);
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world), [Outcome::Answered, Outcome::Lost]);
    world.with(|s| {
        assert_eq!(s.ledger["m1"].again, None);
        assert_eq!(s.ledger["m1"].answered, "the answer");
        assert_eq!(s.ledger["m1"].posted.len(), 1);
        let again = s.ledger["m2"].again.clone().unwrap();
        assert_eq!((again.text.as_str(), again.by.name.as_str()), ("do it", "ann"));
    });
}

#[test]
fn ledger_alone_prevents_a_rerun() {
    let world = active();
    world.with(|s| s.record.as_mut().unwrap().ended.clear());
    assert_eq!(deliver(&world, &prompt("m1"), 2), Verdict::Done);
    assert_eq!(world.with(|s| s.prompted.len()), 1);
}

#[test]
fn outage_wait_costs_no_attempts() {
    let world = Fake::new();
    let outage = || Failure::Outage { after_ms: 0, seen: "Daytona does not answer".into() };
    world.with(|s| {
        let many = (0..12).map(|_| outage()).collect();
        s.fail.insert("create", many);
    });
    let receives = deliver_until_done(&world, &prompt("m1"), 1);
    assert!(receives > Limits::DEFAULT.retry.attempts + 2, "{receives} deliveries");
    assert_eq!(outcomes(&world), [Outcome::Answered]);

    let world = Fake::new();
    world.with(|s| {
        let many = (0..100).map(|_| outage()).collect();
        s.fail.insert("create", many);
    });
    deliver_until_done(&world, &prompt("m1"), 1);
    assert_eq!(
        outcomes(&world),
        [Outcome::Failed {
            reason: "The sandbox provider has not answered for 15 min (Daytona does not answer). Nothing was run; try again later.".into()
        }]
    );
}

#[test]
fn card_shows_the_provider_outage() {
    let world = Fake::new();
    let outage = Failure::Outage { after_ms: 0, seen: "Daytona does not answer".into() };
    world.with(|s| s.fail.insert("create", vec![outage.clone(), outage]));
    deliver(&world, &prompt("m1"), 1);
    deliver(&world, &prompt("m1"), 2);
    let trouble = world.with(|s| {
        s.posts.values().find_map(|post| match post {
            Post::Card(card) => card.trouble.clone(),
            _ => None,
        })
    });
    assert_eq!(trouble.as_deref(), Some("Daytona does not answer"));
}

#[test]
fn tenant_sandbox_limit_is_enforced() {
    let world = Fake::new();
    world.with(|s| s.tenant_sandboxes = Limits::DEFAULT.tenant.sandboxes);
    deliver_until_done(&world, &prompt("m1"), 1);
    let [Outcome::Failed { reason }] = &outcomes(&world)[..] else {
        panic!("{:?}", outcomes(&world));
    };
    assert!(reason.starts_with("At most 100 sandboxes are allowed here"), "{reason}");
    world.with(|s| assert!(s.sandboxes.is_empty()));
    world.with(|s| s.tenant_sandboxes -= 1);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
}

#[test]
fn racing_threads_respect_sandbox_limit() {
    let world = Fake::new();
    world.with(|s| {
        s.tenant_sandboxes = Limits::DEFAULT.tenant.sandboxes - 1;
        s.older_sandboxes = Limits::DEFAULT.tenant.sandboxes;
    });
    deliver_until_done(&world, &prompt("m1"), 1);
    assert!(
        matches!(&outcomes(&world)[..], [Outcome::Failed { reason }] if reason.starts_with("At most 100"))
    );
    world.with(|s| assert!(s.sandboxes.is_empty() && s.prompted.is_empty()));
    world.with(|s| s.older_sandboxes -= 1);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
}

#[test]
fn wake_is_rescheduled_only_when_early() {
    let limits = Limits::DEFAULT;
    let world = active();
    let first = world.with(|s| s.now_ms) + limits.sandbox.idle_pause_ms;
    assert_eq!(world.with(|s| s.wakes.clone()), [first]);
    later(&world, 60_000);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(world.with(|s| s.wakes.len()), 1, "an activity does not move it");
    world.with(|s| s.now_ms = first);
    deliver_until_done(&world, &work("w1", Work::Sweep), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Active);
    let second = world.with(|s| s.wakes[1]);
    assert_eq!(second, record(&world).sandbox.last_activity_ms + limits.sandbox.idle_pause_ms);
    world.with(|s| s.now_ms = second);
    deliver_until_done(&world, &work("w2", Work::Sweep), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Paused);
    assert_eq!(world.with(|s| s.wakes[2]), second + limits.sandbox.paused_ttl_ms);
}

#[test]
fn reconcile_notices_only_vanished_sandboxes() {
    let world = active();
    deliver_until_done(&world, &work("l1", Work::Reconcile), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Active);
    world.with(|s| s.sandboxes.insert(1, SandboxState::Stopped));
    deliver_until_done(&world, &work("l2", Work::Reconcile), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Active);
    world.with(|s| s.sandboxes.clear());
    deliver_until_done(&world, &work("l3", Work::Reconcile), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
    assert_eq!(record(&world).due_at_ms, None);
}

#[test]
fn prompt_beyond_the_queue_never_runs() {
    let world = active();
    let card = PostRef { channel: "c".into(), id: "waiting".into() };
    world.with(|s| {
        let queued = Queued {
            by: person("ann"),
            accepted_at_ms: 1,
            card: Some(card.clone()),
            refused: true,
            prompt: None,
        };
        s.flags.queued.insert("m2".into(), queued);
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    assert!(
        matches!(&outcomes(&world)[1], Outcome::Failed { reason } if reason == words::QUEUE_FULL)
    );
    world.with(|s| {
        assert_eq!(s.prompted.len(), 1);
        assert!(matches!(
            &s.posts["waiting"],
            Post::Card(card) if matches!(card.state, CardState::Ended { .. })
        ));
    });
}

#[test]
fn only_ended_turns_marks_are_spent() {
    let world = active();
    let mut flags = ControlFlags::default();
    for turn in ["m1", "m2"] {
        flags.cancelled.insert(turn.into(), person("bob"));
    }
    let spent = flags.spent(&record(&world));
    assert_eq!(spent.cancelled.keys().collect::<Vec<_>>(), ["m1"]);
}

#[test]
fn stop_all_reaches_unannounced_prompts() {
    let world = active();
    let (accepted_at_ms, now_ms) = (prompt("m2").accepted_at_ms, world.with(|s| s.now_ms));
    let all = StoppedAll { by: person("bob"), until_ms: accepted_at_ms };
    world.with(|s| s.flags.stopped_all.insert("all".into(), all));
    deliver_until_done(&world, &prompt("m2"), 1);
    let mut later = prompt("m3");
    later.accepted_at_ms = accepted_at_ms.max(now_ms) + 1;
    deliver_until_done(&world, &later, 1);
    assert_eq!(outcomes(&world)[1..], [Outcome::Cancelled { by: "bob".into() }, Outcome::Answered]);
    // It has no more use, and the record's next write removes it.
    assert!(world.with(|s| s.flags.stopped_all.is_empty()));
}

#[test]
fn stop_all_aborts_followed_run() {
    let world = active();
    let message = prompt("m2");
    let all = StoppedAll { by: person("bob"), until_ms: message.accepted_at_ms };
    world.with(|s| (s.silent_agent, s.stop_all_in_follow) = (true, Some(all)));
    assert_eq!(deliver(&world, &message, 1), Verdict::Done);
    assert_eq!(outcomes(&world)[1], Outcome::Cancelled { by: "bob".into() });
    world.with(|s| assert!(s.aborted));
}

#[test]
fn stop_all_ends_sandbox_wait() {
    let world = Fake::new();
    let message = prompt("m1");
    let all = StoppedAll { by: person("bob"), until_ms: message.accepted_at_ms };
    world.with(|s| {
        s.sandboxes.insert(1, SandboxState::Provisioning);
        s.stop_all_in_wait = Some(all);
    });
    deliver_until_done(&world, &message, 1);
    assert_eq!(outcomes(&world), [Outcome::Cancelled { by: "bob".into() }]);
    world.with(|s| assert!(s.prompted.is_empty()));
}

#[test]
fn stopped_waiting_prompt_never_reaches_agent() {
    let world = active();
    world.with(|s| s.flags.cancelled.insert("m2".into(), person("bob")));
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world)[1], Outcome::Cancelled { by: "bob".into() });
    assert_eq!(world.with(|s| s.prompted.len()), 1);
}

#[test]
fn stop_during_creation_ends_turn() {
    let world = Fake::new();
    world.with(|s| {
        s.sandboxes.insert(1, SandboxState::Provisioning);
        s.flags.cancelled.insert("m1".into(), person("bob"));
        // The flag arrives after the message was read.
        s.late_flags = true;
    });
    assert_eq!(deliver(&world, &prompt("m1"), 1), Verdict::Done);
    assert_eq!(outcomes(&world), [Outcome::Cancelled { by: "bob".into() }]);
    assert!(world.with(|s| s.now_ms) < 1_000_000 + 2 * Limits::DEFAULT.poll.poll_ms);
    assert_eq!(record(&world).sandbox.phase, Phase::Creating);
}

fn artifact(path: &str, sum: &str) -> Artifact {
    Artifact { path: path.to_owned(), size: 3, sum: sum.to_owned() }
}

fn changes() -> Changes {
    Changes {
        files: vec![changes::ChangedFile {
            file: "a.txt".to_owned(),
            how: How::Added,
            added: 2,
            removed: 0,
            patch: "--- a.txt\n+++ a.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n".to_owned(),
        }],
        unknown: false,
    }
}

/// Names of the agent's files in the thread, and the notes about the missing ones.
fn shown(world: &Fake) -> (Vec<String>, Vec<String>) {
    world.with(|s| {
        let mut names = Vec::new();
        let mut words = Vec::new();
        for post in s.posted.iter().map(|key| &s.posts[key]) {
            match post {
                Post::File(file) => names.push(file.name.clone()),
                Post::Notice(word) => words.push(word.clone()),
                _ => {}
            }
        }
        (names, words)
    })
}

fn last_usage(world: &Fake, turn: &str) -> Usage {
    world.with(|s| s.ledger[turn].usage)
}

#[test]
fn agent_files_post_once_after_answer() {
    let world = active();
    world.with(|s| s.display = vec![artifact("a.png", "1"), artifact("sub/b.txt", "1")]);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(shown(&world).0, ["a.png", "sub_b.txt"]);
    world.with(|s| {
        let kinds: Vec<bool> = s.posted[s.posted.len() - 3..]
            .iter()
            .map(|key| matches!(s.posts[key].bare(), Post::Chunk { .. }))
            .collect();
        assert_eq!(kinds, [true, false, false], "the answer comes first");
        // One file is rewritten, one is unchanged, one is new.
        s.display = vec![artifact("sub/b.txt", "1"), artifact("a.png", "2"), artifact("c", "1")];
    });
    deliver_until_done(&world, &prompt("m3"), 1);
    assert_eq!(shown(&world).0, ["a.png", "sub_b.txt", "a.png", "c"]);
    assert_eq!(shown(&world).1, Vec::<String>::new());
}

#[test]
fn unpostable_files_are_named() {
    let refusals = [
        Failure::NonRecoverable { advice: "no uploads".into() },
        Failure::SandboxDown { seen: "x".into() },
        Failure::SandboxGone,
        Failure::TurnFailed { reason: "x".into() },
    ];
    for failure in refusals {
        let world = active();
        world.with(|s| {
            s.display = vec![artifact("a.png", "1"), artifact("b.png", "1")];
            s.fail.insert("post_artifact", vec![failure.clone()]);
        });
        deliver_until_done(&world, &prompt("m2"), 1);
        assert_eq!(outcomes(&world)[1], Outcome::Answered, "{failure:?}");
        let (names, words) = shown(&world);
        assert_eq!(names, ["b.png"], "{failure:?}");
        assert_eq!(
            words,
            [
                "These files from the agent are not shown here; they are in its sandbox:\n- `a.png` could not be posted"
            ]
        );
    }
    let world = active();
    world.with(|s| {
        s.display = vec![artifact("a.png", "1")];
        s.unshowable = Some("is gone".to_owned());
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    assert!(shown(&world).1[0].ends_with("- `a.png` is gone"));
}

#[test]
fn refused_files_never_block_end() {
    let world = active();
    world.with(|s| {
        s.display = (0..9).map(|n| artifact(&format!("f{n}"), "1")).collect();
        s.fail.insert("post_artifact", vec![busy(); 100]);
    });
    let deliveries = deliver_until_done(&world, &prompt("m2"), 1);
    assert!(deliveries <= Limits::DEFAULT.retry.refusals, "{deliveries}");
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
    assert_eq!(shown(&world).0, Vec::<String>::new());
    assert_eq!(shown(&world).1[0].lines().count(), 10);
}

#[test]
fn unreadable_changes_cost_only_themselves() {
    let world = active();
    world.with(|s| {
        s.display = vec![artifact("a.png", "1")];
        s.changes = changes();
        for effect in ["read_changes", "list_artifacts"] {
            let down = Failure::SandboxDown { seen: "x".into() };
            s.fail.insert(effect, vec![down]);
        }
    });
    assert_eq!(deliver(&world, &prompt("m2"), 1), Verdict::Done);
    assert_eq!(outcomes(&world)[1], Outcome::Answered);
    assert_eq!(last_usage(&world, "m2"), Usage::default());
    assert_eq!(shown(&world).0, Vec::<String>::new());
    // The files are still there for the next turn.
    deliver_until_done(&world, &prompt("m3"), 1);
    assert_eq!(shown(&world).0, ["a.png"]);
    assert_eq!(last_usage(&world, "m3").files, 1);
}

#[test]
fn turn_changes_reach_card_and_ledger() {
    let world = active();
    world.with(|s| s.changes = changes());
    deliver_until_done(&world, &prompt("m2"), 1);
    world.with(|s| {
        let entry = &s.ledger["m2"];
        assert_eq!((entry.usage.files, entry.usage.added), (1, 2));
        let patch = entry.patch.as_deref().unwrap_or_default();
        assert!(patch.contains("+++ b/a.txt"), "{patch}");
        assert!(s.posts.values().any(
            |post| matches!(post, Post::Card(card) if matches!(card.state, CardState::Ended { usage, .. } if usage.files == 1))
        ));
        assert_eq!(s.ledger["m1"].patch, None);
    });
}

#[test]
fn crashes_post_each_file_once() {
    let begun = || {
        let world = active();
        world.with(|s| {
            s.display =
                vec![artifact("a.png", "1"), artifact("b.png", "1"), artifact("empty", "1")];
            s.display[2].size = 0;
            s.changes = changes();
        });
        world
    };
    let points = each_crash(begun, &prompt("m2"), |world, crash| {
        let (names, words) = shown(world);
        assert_eq!(names, ["a.png", "b.png"], "{crash}");
        assert_eq!(words.len(), 1, "{crash}: {words:?}");
        assert_eq!(outcomes(world), [Outcome::Answered, Outcome::Answered]);
        assert_eq!(last_usage(world, "m2").files, 1);
        assert!(world.with(|s| s.ledger["m2"].patch.is_some()), "{crash}");
    });
    assert!(points > 30, "{points} crash points");
}

#[test]
fn stopped_turn_leaves_files_for_next() {
    let world = active();
    world.with(|s| {
        s.silent_agent = true;
        s.stop_in_follow = true;
        s.display = vec![artifact("a.png", "1")];
        s.changes = changes();
    });
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(outcomes(&world)[1], Outcome::Cancelled { by: "bob".into() });
    assert_eq!(last_usage(&world, "m2").files, 1);
    assert_eq!(shown(&world).0, Vec::<String>::new());
    world.with(|s| (s.silent_agent, s.aborted) = (false, false));
    deliver_until_done(&world, &prompt("m3"), 1);
    assert_eq!(shown(&world).0, ["a.png"]);
}

#[test]
fn quotes_and_images_survive_resending() {
    let mut message = prompt("m2");
    if let Work::Prompt(prompt) = &mut message.work {
        prompt.quotes = vec![Quote { by: "Cy".to_owned(), text: "do not\ndo it".to_owned() }];
        prompt.attachments = vec![Attachment {
            name: "shot.png".to_owned(),
            url: "https://files.example/1".to_owned(),
            size: 3,
            media_type: Some("image/png".to_owned()),
        }];
    }
    each_crash(active, &message, |world, crash| {
        world.with(|s| {
            assert!(
                s.told[1].ends_with("Quoted message by Cy:\n> do not\n> do it\n\ndo it\n\nfiles"),
                "{}",
                s.told[1]
            );
            assert_eq!(s.seen_images[1][0].path, "in/shot.png", "{crash}");
        });
    });
}

#[test]
fn overlong_answer_becomes_a_file() {
    let world = active();
    let long = format!("# All\n\n{}\n\n# Summary\n\nIt works.", "word ".repeat(10_000));
    world.with(|s| s.answers = Some(long.clone()));
    deliver_until_done(&world, &prompt("m2"), 1);
    world.with(|s| {
        let beside = s.posts.values().find_map(|post| match post.bare() {
            Post::Chunk { text, last, file: Some(file), .. } => {
                Some((text.clone(), *last, file.clone()))
            }
            _ => None,
        });
        assert_eq!(beside, Some(("# Summary\n\nIt works.".to_owned(), true, long)));
    });
}
