//! The observations of the end-to-end tests break a promise when they should: each is tested with a thread that keeps
//! all of them and one with a fault. `protocol/broken.rs` tests the checks themselves.

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::names::{PostKind, post_key};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::sandbox::{Phase, TimelineEntry};
use bobbin_core::records::session::Session;
use bobbin_core::records::turn::EndedTurn;
use bobbin_sim::promises::ALL;
use bobbin_tests::chat::{Button, ChatMessage};
use bobbin_tests::model::Call;
use bobbin_tests::observed::{Accepted, Observed, check};
use bobbin_tests::provider::Sandbox;
use bobbin_tests::tenants::{Tenant, tenants_apart};
use libtest_mimic::Trial;

/// A change that breaks a promise.
type Break = fn(&mut Observed);

/// By the promise's number.
const BREAKS: [(u8, &str, Break); 17] = [
    (1, "a second sandbox", |h| {
        h.sandboxes.push(Sandbox { id: "b".into(), ..h.sandboxes[0].clone() })
    }),
    (2, "an old generation's sandbox", |h| h.session.sandbox.generation = 2),
    (2, "a sandbox that runs while the record says paused", |h| {
        h.session.sandbox.phase = Phase::Paused
    }),
    (2, "no sandbox while the record says active", |h| h.sandboxes.clear()),
    (2, "a sandbox after the end", |h| h.session.sandbox.phase = Phase::Destroyed),
    (3, "a turn without an end", |h| drop(h.session.ended.pop())),
    (3, "a turn that ended twice", |h| h.session.ended.push(h.session.ended[0].clone())),
    (3, "no card", |h| drop(h.posts.remove(0))),
    (3, "a card that still offers Stop", |h| {
        h.posts[0].buttons.push(Button { label: "Stop".into(), id: "v1:stop:t1".into() })
    }),
    (3, "a card that says something else", |h| h.posts[0].text = "Working".into()),
    (3, "an answer that is missing", |h| drop(h.posts.remove(1))),
    (3, "an answer that stands twice", |h| h.posts.push(h.posts[1].clone())),
    (4, "prompts in another order", |h| {
        h.calls.iter_mut().for_each(|call| call.time_ms = 10_000 - call.time_ms)
    }),
    (5, "a prompt that ran again", |h| h.calls.push(Call { time_ms: 9_000, ..h.calls[1].clone() })),
    (5, "a prompt in two sessions", |h| h.calls[0].session_id = Some("ses_other".into())),
    (6, "a stop in the middle of a turn", |h| {
        h.session.sandbox.history.timeline.push(TimelineEntry {
            at_ms: 1_500,
            phase: Phase::Pausing,
            note: "idle".into(),
        });
    }),
    (10, "a run that goes on after the end of its turn", |h| {
        h.calls.push(Call { time_ms: 60_000, tool_results: 9, ..h.calls[0].clone() })
    }),
];

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![Trial::test("promises::good_history_keeps_every_promise", || {
        check(&good()).unwrap();
        Ok(())
    })];
    for (number, what, spoil) in BREAKS {
        let name = format!("promises::{what} is found").replace(' ', "_");
        trials.push(Trial::test(name, move || {
            let mut seen = good();
            spoil(&mut seen);
            let promise = ALL.iter().find(|one| one.number == number).unwrap();
            let broken = (promise.holds)(&seen.history());
            assert!(broken.is_err(), "{:?} does not notice {what}", promise.words);
            assert!(check(&seen).unwrap_err().contains(promise.words));
            Ok(())
        }));
    }
    trials.push(Trial::test("promises::leaked_word_between_tenants_is_found", || {
        let tenant = |name: &str, call: &str| Tenant {
            name: name.to_owned(),
            own: vec![format!("word of {name}")],
            calls: vec![call.to_owned()],
        };
        let apart = [tenant("a", "word of a"), tenant("b", "word of b")];
        tenants_apart(&apart).unwrap();
        let mixed = [tenant("a", "word of a"), tenant("b", "a word of a, too")];
        assert!(tenants_apart(&mixed).is_err());
        assert!(tenants_apart(&[Tenant::default(), tenant("a", "word of a")]).is_err());
        Ok(())
    }));
    trials
}

/// Two answered prompts in one sandbox.
fn good() -> Observed {
    let thread = ThreadKey::discord("1", "2").unwrap();
    let mut session = Session::new(thread.clone(), 0);
    session.sandbox.phase = Phase::Active;
    session.sandbox.generation = 1;
    let mut seen = Observed {
        sandboxes: vec![Sandbox {
            id: "a".into(),
            name: format!("bobbin-test-{}-g1", thread.short_hash()),
            state: "started".into(),
            toolbox_proxy_url: String::new(),
        }],
        accepted: Vec::new(),
        posts: Vec::new(),
        calls: Vec::new(),
        session,
    };
    for (turn, began) in [("t1", 1_000), ("t2", 3_000)] {
        let mark = format!("(mark {turn})");
        let ended = EndedTurn { id: turn.into(), outcome: Outcome::Answered, at_ms: began + 1_000 };
        seen.session.ended.push(ended);
        for (kind, text) in [(PostKind::Card, "Done"), (PostKind::Chunk(0), "hello")] {
            let key = Some(post_key(&thread, &turn.into(), &kind));
            seen.posts.push(ChatMessage {
                id: format!("{turn}-{text}"),
                key,
                text: text.into(),
                buttons: Vec::new(),
                by_bot: true,
                files: Vec::new(),
            });
        }
        for step in [0, 1] {
            let end = if step == 0 { "tool_calls" } else { "stop" };
            seen.calls.push(Call {
                model: String::new(),
                time_ms: began + 100 * step,
                key: None,
                session_id: Some("ses_1".into()),
                user: format!("run: ls\n{mark}"),
                tools: Vec::new(),
                tool_results: usize::try_from(step).unwrap(),
                text: String::new(),
                end: end.into(),
                status: 200,
            });
        }
        seen.accepted.push(Accepted { turn: turn.into(), mark: Some(mark) });
    }
    seen
}
