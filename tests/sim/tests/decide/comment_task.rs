//! Tasks that people write below the thread's pull request.

use super::fix::{by, comment, queued, responses, said, thread_of};
use super::forge::asked;
use super::publish::{notices, published};
use super::sibling_repositories::at_forge;
use super::watch::{QUIET_MS, hint, passes, polls, shows, sweep};
use super::*;
use bobbin_core::records::pull_request::Author;
use bobbin_core::records::responses::{PullRequestResponse, Remark};

/// Pull request with a comment that asks for a task; account 7 is Ann's.
fn asked_below(body: &str, is_linked: bool) -> Fake {
    let world = published();
    if is_linked {
        let membership = Membership { channel: "10".to_owned(), ..Membership::default() };
        world.with(|s| s.people.insert(7, (person("ann"), membership)));
    }
    shows(&world, |watched| {
        watched.pull.comments = vec![comment(40, by("ann-at-acme", false), body)];
    });
    hint(&world);
    world
}

#[test]
fn task_below_the_pull_request_begins_once() {
    let world = asked_below("/bobbin rename the page", true);
    for _ in 0..3 {
        hint(&world);
        passes(&world, QUIET_MS);
    }
    let ids: Vec<String> = queued(&world).iter().map(|one| one.id.to_string()).collect();
    assert_eq!(ids, ["remark-whole-40"]);
    let prompt = queued(&world)[0].prompt_of(&"remark-whole-40".into()).unwrap().clone();
    assert_eq!((&*prompt.text, &*prompt.by.id), ("rename the page", &*person("ann").id));
    assert!(
        notices(&world).contains(&"ann-at-acme asks below pull request #1 (https://git.example.com/acme/api/pull/1):\n> rename the page".to_owned()),
        "{:?}",
        notices(&world)
    );
    assert_eq!(responses(&world), [PullRequestResponse::Seen(Remark::Whole(40))]);
    // An edited comment is not another task.
    shows(&world, |watched| watched.pull.comments[0].body = "/bobbin delete it".to_owned());
    hint(&world);
    assert_eq!(queued(&world).len(), 1);
}

#[test]
fn comment_on_a_line_brings_its_line_along() {
    let world = asked_below("Looks fine", true);
    shows(&world, |watched| {
        watched.pull.threads =
            vec![thread_of("t1", vec![comment(11, by("ann-at-acme", false), "/bobbin rename it")])];
    });
    hint(&world);
    let prompt = queued(&world)[0].prompt_of(&"remark-line-11".into()).unwrap().clone();
    assert_eq!((&*prompt.text, &*prompt.quotes[0].text), ("rename it", "a.txt:3\n@@ -1 +1 @@"));
}

#[test]
fn who_may_not_ask_gets_one_reply() {
    let closed = |world: &Fake| world.with(|s| s.settings.open_to = ["bob".to_owned()].into());
    for (is_linked, is_closed) in [(false, false), (true, true)] {
        let world = asked_below("Looks fine", is_linked);
        if is_closed {
            closed(&world);
        }
        shows(&world, |watched| {
            let ask = |id| comment(id, by("ann-at-acme", false), "/bobbin rename the page");
            watched.pull.comments = vec![ask(40), ask(41)];
        });
        hint(&world);
        hint(&world);
        assert!(queued(&world).is_empty());
        assert_eq!(said(&world), [(None, words::CONNECT_TO_ASK.to_owned())]);
    }
}

#[test]
fn reopened_pull_request_is_not_heard_again() {
    let world = asked_below("/bobbin rename the page", true);
    shows(&world, |watched| {
        let eve = Author { id: 8, ..by("eve", false) };
        watched.pull.comments.push(comment(41, eve, "/bobbin delete the page"));
    });
    hint(&world);
    let dealt = |world: &Fake| (queued(world).len(), responses(world).len());
    assert_eq!(dealt(&world), (1, 2));
    for state in [PullRequestState::Closed, PullRequestState::Open] {
        shows(&world, |watched| watched.pull.state = state);
        world.with(|s| s.pulls[0].1.state = state);
        hint(&world);
    }
    // Eve has connected her account in the meantime.
    world.with(|s| s.people.insert(8, (person("eve"), Membership::default())));
    let before = polls(&world);
    deliver_until_done(&world, &prompt("m2"), 1);
    passes(&world, QUIET_MS);
    sweep(&world, "w1");
    assert!(polls(&world) > before);
    assert_eq!(dealt(&world), (1, 2));
}

#[test]
fn thread_with_another_repository_begins_nothing() {
    let asked_with = |change: fn(&Fake)| {
        let world = published();
        deliver_until_done(&world, &reset(), 1);
        at_forge(&world, "acme/web", 43);
        deliver_until_done(&world, &asked("m2", "acme/web"), 1);
        change(&world);
        let membership = Membership { channel: "10".to_owned(), ..Membership::default() };
        world.with(|s| s.people.insert(7, (person("ann"), membership)));
        shows(&world, |watched| {
            let ask = comment(40, by("ann-at-acme", false), "/bobbin rename the page");
            watched.pull.comments = vec![ask];
        });
        hint(&world);
        hint(&world);
        (queued(&world).len(), said(&world))
    };
    let elsewhere = vec![(None, words::WORKS_ELSEWHERE.to_owned())];
    assert_eq!(asked_with(|_| ()), (0, elsewhere));
    // It has no repository yet, or this one was only left out.
    let without = |world: &Fake| {
        world.with(|s| {
            let project = &mut s.record.as_mut().unwrap().sandbox.project;
            (project.carried, project.repo) = (None, None);
        });
    };
    let left_out = |world: &Fake| {
        let beside = ["acme/api".to_owned()];
        world.with(|s| assert!(s.settings.beside.set("acme/web", &beside)));
    };
    let changes: [fn(&Fake); 2] = [without, left_out];
    for change in changes {
        assert_eq!(asked_with(change), (1, Vec::new()));
    }
}

#[test]
fn programs_and_other_words_ask_for_nothing() {
    let world = asked_below("Please /bobbin rename it", true);
    shows(&world, |watched| {
        watched.pull.comments.push(comment(41, by("spam", true), "/bobbin buy this"));
    });
    hint(&world);
    assert!(queued(&world).is_empty() && responses(&world).is_empty());
}

#[test]
fn words_put_into_anothers_comment_ask_for_nothing() {
    let world = asked_below("Looks fine", true);
    shows(&world, |watched| {
        let one = &mut watched.pull.comments[0];
        (one.body, one.is_own) = ("/bobbin rename it".to_owned(), false);
    });
    hint(&world);
    assert!(queued(&world).is_empty() && responses(&world).is_empty());
}

#[test]
fn strangers_do_not_use_up_what_people_may_ask() {
    let world = asked_below("Looks fine", true);
    for round in 0..5 {
        shows(&world, |watched| {
            let ask = |id: u64| {
                let stranger = Author { id: 1_000 + id, ..by("eve", false) };
                comment(100 + 30 * round + id, stranger, "/bobbin buy this")
            };
            watched.pull.comments = (0..30).map(ask).collect();
        });
        hint(&world);
    }
    shows(&world, |watched| {
        watched.pull.comments = vec![comment(900, by("ann-at-acme", false), "/bobbin rename it")];
    });
    hint(&world);
    assert_eq!(queued(&world).len(), 1);
    assert_eq!(said(&world).len(), 1);
}

#[test]
fn comment_is_heard_once_the_chat_answers() {
    let world = asked_below("Looks fine", true);
    let away = Failure::Outage { after_ms: 0, seen: "away".to_owned() };
    world.with(|s| s.person_fails = Some(away));
    shows(&world, |watched| watched.pull.comments[0].body = "/bobbin rename it".to_owned());
    hint(&world);
    assert!(queued(&world).is_empty() && responses(&world).is_empty());
    world.with(|s| s.person_fails = None);
    passes(&world, QUIET_MS);
    sweep(&world, "w1");
    assert_eq!(queued(&world).len(), 1);
}

#[test]
fn crash_at_any_call_hears_once() {
    let asked = || {
        let world = asked_below("Looks fine", true);
        shows(&world, |watched| watched.pull.comments[0].body = "/bobbin rename it".to_owned());
        world
    };
    let now_ms = asked().with(|s| s.now_ms);
    let message = Message::poll(thread(), now_ms, QUIET_MS);
    each_crash(asked, &message, |world, crash| {
        passes(world, 20 * QUIET_MS);
        sweep(world, "w9");
        assert_eq!((queued(world).len(), responses(world).len()), (1, 1), "{crash}");
        assert_eq!(notices(world).iter().filter(|word| word.contains("asks below")).count(), 1);
    });
}
