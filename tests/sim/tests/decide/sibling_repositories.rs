//! Repositories beside a thread's own: fetched together, published one by one.

use super::fix::queued;
use super::forge::{asked, open, repository, world};
use super::publish::{FIRST, act, holds, notices, press, publish, reviews, show};
use super::watch::{QUIET_MS, check, hint, passes, sweep};
use super::*;
use bobbin_core::records::card::OfferOfAll;
use bobbin_core::records::checks::CheckState;
use bobbin_core::records::control::ShowOf;
use bobbin_core::records::watch::Watch;

const BASE: &str = "1111111111111111111111111111111111111111";
const OF_LIB: &str = "cccccccccccccccccccccccccccccccccccccccc";
const LIB: u64 = 43;

pub(super) fn at_forge(world: &Fake, name: &str, id: u64) {
    let repository = ForgeRepository { id, ..repository(name, true) };
    let found = FoundRepository::Here { repository, size_kb: 0 };
    world.with(|s| s.at_forge_too.insert(name.to_owned(), found));
}

/// A private repository with these beside it.
fn wanted(beside: &[&str]) -> Fake {
    let world =
        world(FoundRepository::Here { repository: repository("acme/api", true), size_kb: 0 });
    open(&world, None, "all");
    at_forge(&world, "acme/lib", LIB);
    let beside: Vec<String> = beside.iter().map(|name| (*name).to_owned()).collect();
    world.with(|s| {
        assert!(s.settings.beside.set("acme/api", &beside));
        s.branches.insert("main".to_owned(), BASE.to_owned());
    });
    world
}

fn work_in_lib(commit: &str) -> Outgoing {
    Outgoing::Ready {
        commit: commit.to_owned(),
        subject: "Add the part".to_owned(),
        files: vec![OutgoingFile { path: "b.txt".to_owned(), how: OutgoingChange::Added }],
        since: Vec::new(),
        workflows: 0,
        has_others: false,
    }
}

/// A thread whose turn has changed both repositories.
fn worked() -> Fake {
    let world = wanted(&["acme/lib"]);
    holds(&world, FIRST);
    world.with(|s| s.outgoing_beside.insert(LIB, work_in_lib(OF_LIB)));
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    world
}

/// Processes the queued messages.
fn works(world: &Fake) {
    for message in queued(world) {
        deliver_until_done(world, &message, 1);
    }
}

/// The work of both is shown.
fn shown() -> Fake {
    let world = worked();
    deliver_until_done(&world, &show("p1"), 1);
    works(&world);
    world
}

fn offer(world: &Fake) -> OfferOfAll {
    reviews(world).into_iter().find_map(|review| review.all).expect("a button for all")
}

fn press_all(id: &str, name: &str) -> Message {
    publish(id, PublishStep::PushAll { name: name.to_owned() }, "10")
}

/// Both are pull requests.
fn published() -> Fake {
    let world = shown();
    deliver_until_done(&world, &press_all("p2", &offer(&world).name), 1);
    works(&world);
    world
}

fn opened(world: &Fake) -> usize {
    world.with(|s| s.pulls.len())
}

fn watch_of_lib(world: &Fake) -> Watch {
    record(world).published.of(Some(LIB)).unwrap().watch.clone().unwrap()
}

#[test]
fn repositories_beside_come_and_the_agent_knows() {
    let world = wanted(&["acme/lib"]);
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    assert_eq!(outcomes(&world), [Outcome::Answered]);
    let came = ".bobbin/repositories/acme/lib: acme/lib";
    assert_eq!(world.with(|s| s.carried_beside.clone()), [came]);
    let told = world.with(|s| s.told.first().cloned()).unwrap();
    assert!(
        told.starts_with("(Beside this repository are others, each a git checkout of its own: `.bobbin/repositories/acme/lib` (acme/lib)."),
        "{told}"
    );
    // The next turn uses what is there and is told about it.
    deliver_until_done(&world, &asked("m2", "acme/api"), 1);
    assert_eq!(
        world.with(|s| (s.carried_beside.len(), s.told.last().cloned())),
        (1, Some("do it".to_owned()))
    );
    // There is no prebuild with only a part.
    assert_eq!(queued(&world), []);
}

#[test]
fn repository_beside_needs_the_right_of_one() {
    let not_open = "repositories beside it (acme/lib: it is not open here)";
    for (opened, found, words) in
        [("acme/web", true, not_open), ("all", false, not_open), ("acme/web", false, not_open)]
    {
        let world = wanted(&["acme/lib"]);
        world.with(|s| {
            s.settings.repositories = Default::default();
            s.settings.repositories.open(None, "acme/api".to_owned());
            s.settings.repositories.open(None, opened.to_owned());
            if !found {
                s.at_forge_too.insert("acme/lib".to_owned(), FoundRepository::NotInstalled);
            }
        });
        deliver_until_done(&world, &asked("m1", "acme/api"), 1);
        assert_eq!(outcomes(&world), [Outcome::Answered], "{opened} {found}");
        let project = record(&world).sandbox.project;
        assert_eq!(project.left_out.as_deref(), Some(words), "{opened} {found}");
        assert_eq!(project.beside, [], "{opened} {found}");
    }
    for (beside, words) in [
        ("other/lib", "repositories beside it (other/lib: it is elsewhere)"),
        ("acme/api", "repositories beside it (acme/api: it is there already)"),
    ] {
        let world = wanted(&[beside]);
        deliver_until_done(&world, &asked("m1", "acme/api"), 1);
        assert_eq!(record(&world).sandbox.project.left_out.as_deref(), Some(words));
    }
}

#[test]
fn strangers_work_has_nothing_beside_it() {
    let world = wanted(&["acme/lib"]);
    let id = "f".repeat(40);
    deliver_until_done(&world, &asked("m1", &format!("acme/api@{id}")), 1);
    assert_eq!(
        record(&world).sandbox.project.left_out.as_deref(),
        Some("repositories beside it (acme/lib: the checkout may be a stranger's work)")
    );
}

#[test]
fn one_that_cannot_be_carried_costs_no_turn() {
    let world = wanted(&["acme/lib", "acme/docs"]);
    at_forge(&world, "acme/docs", 44);
    world.with(|s| {
        s.not_cloned_too.insert(".bobbin/repositories/acme/lib".to_owned(), NotCloned::NoRef);
    });
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    assert_eq!(outcomes(&world), [Outcome::Answered]);
    let project = record(&world).sandbox.project;
    let left_out = project.left_out.unwrap();
    assert!(left_out.starts_with("repositories beside it (acme/lib: "), "{left_out}");
    let names: Vec<&str> = project.beside.iter().map(|one| &*one.repository.name).collect();
    assert_eq!(names, ["acme/docs"]);
}

#[test]
fn clone_from_inside_has_nothing_beside_it() {
    let world = wanted(&["acme/lib"]);
    world.with(|s| s.at_forge = Some(FoundRepository::NotInstalled));
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    assert_eq!(
        record(&world).sandbox.project.left_out.as_deref(),
        Some("repositories beside it (acme/lib: the thread's own is not one of the forge's)")
    );
}

#[test]
fn private_one_makes_the_sandbox_private() {
    let world = wanted(&["acme/lib"]);
    let public = FoundRepository::Here { repository: repository("acme/api", false), size_kb: 0 };
    world.with(|s| s.at_forge = Some(public));
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    assert!(record(&world).sandbox.is_private());
}

#[test]
fn each_repository_is_shown_by_itself() {
    let world = shown();
    let reviews = reviews(&world);
    let each: Vec<(&str, &str)> =
        reviews.iter().map(|review| (&*review.repository, &*review.proposal.commit)).collect();
    assert_eq!(each, [("acme/api", FIRST), ("acme/lib", OF_LIB)]);
    assert_eq!((reviews[0].all.clone(), offer(&world).repositories), (None, 2));
    assert_eq!(world.with(|s| s.pushes.len()), 0);
}

#[test]
fn card_offers_changes_that_are_only_beside() {
    let world = wanted(&["acme/lib"]);
    world.with(|s| s.outgoing_beside.insert(LIB, work_in_lib(OF_LIB)));
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    let has_offer = |post: &&Post| matches!(post, Post::Card(card) if card.publish.is_some());
    assert_eq!(world.with(|s| s.posts.values().filter(has_offer).count()), 1);
    deliver_until_done(&world, &show("p1"), 1);
    works(&world);
    assert_eq!(notices(&world), [format!("`acme/api`: {}", words::NOTHING_TO_PUBLISH)]);
    let names: Vec<String> = reviews(&world).into_iter().map(|one| one.repository).collect();
    assert_eq!(names, ["acme/lib"]);
}

#[test]
fn one_press_opens_all_in_order() {
    let world = published();
    let pushed: Vec<String> = world.with(|s| s.pushes.iter().map(|one| one.2.clone()).collect());
    assert_eq!((pushed, opened(&world)), (vec![FIRST.to_owned(), OF_LIB.to_owned()], 2));
    assert_eq!(
        notices(&world),
        [
            "`acme/api`: Pull request #1 is open as a draft: https://git.example.com/acme/api/pull/1",
            "`acme/lib`: Pull request #2 is open as a draft: https://git.example.com/acme/api/pull/2",
        ]
    );
    // A second press is answered and changes nothing.
    deliver_until_done(&world, &press_all("p3", &offer(&world).name), 1);
    assert!(notices(&world).iter().any(|word| word.ends_with(words::NOT_SHOWN)));
    assert_eq!(opened(&world), 2);
}

#[test]
fn refused_one_leaves_the_others_and_a_press_completes() {
    for refused in [FIRST, OF_LIB] {
        let world = shown();
        deliver_until_done(&world, &press_all("p2", &offer(&world).name), 1);
        for message in queued(&world) {
            let is_it = matches!(&message.work, Work::Publish { step: PublishStep::Push { commit }, .. } if commit == refused);
            if is_it {
                let why = "the branch is protected".to_owned();
                world.with(|s| s.push_ends = vec![PushEnd::Refused { why }]);
            }
            deliver_until_done(&world, &message, 1);
        }
        assert_eq!(opened(&world), 1, "{refused}");
        let named = if refused == FIRST { "`acme/api`: " } else { "`acme/lib`: " };
        let said = notices(&world).into_iter().find(|word| word.contains("protected")).unwrap();
        let begins = format!("{named}The push was refused");
        assert!(said.starts_with(&begins), "{said}");
        deliver_until_done(&world, &press("p3", refused), 1);
        assert_eq!(opened(&world), 2, "{refused}");
    }
}

#[test]
fn crash_at_any_call_shows_and_opens_each_once() {
    let crashes = each_crash(worked, &show("p1"), |world, crash| {
        works(world);
        assert_eq!((reviews(world).len(), notices(world).len()), (2, 0), "{crash}");
    });
    assert!(crashes > 5, "{crashes}");
    let name = offer(&shown()).name;
    let crashes = each_crash(shown, &press_all("p2", &name), |world, crash| {
        works(world);
        assert_eq!((opened(world), notices(world).len()), (2, 2), "{crash}");
    });
    assert!(crashes > 2, "{crashes}");
    each_crash(worked, &asked("m2", "acme/api"), |world, crash| {
        assert_eq!(world.with(|s| s.carried_beside.len()), 1, "{crash}");
    });
}

#[test]
fn crash_while_bringing_brings_each() {
    let begun = || wanted(&["acme/lib"]);
    let crashes = each_crash(begun, &asked("m1", "acme/api"), |world, crash| {
        assert_eq!(outcomes(world), [Outcome::Answered], "{crash}");
        let project = record(world).sandbox.project;
        assert_eq!((project.beside.len(), project.left_out), (1, None), "{crash}");
    });
    assert!(crashes > 20, "{crashes}");
}

#[test]
fn edited_text_is_the_one_of_its_repository() {
    let world = shown();
    let edited = |id: &str, commit: &str| {
        let step = PublishStep::Show {
            subject: Some("Another subject".to_owned()),
            body: None,
            of: Some(ShowOf::Commit(commit.to_owned())),
        };
        deliver_until_done(&world, &publish(id, step, "10"), 1);
    };
    edited("p2", OF_LIB);
    let record_of = |beside| record(&world).published.of(beside).unwrap().shown.clone().unwrap();
    assert_eq!(record_of(Some(LIB)).subject, "Another subject");
    assert_eq!(record_of(None).subject, "Add the page");
    // Nobody can tell whose text this is any more.
    edited("p3", "dddddddddddddddddddddddddddddddddddddddd");
    assert_eq!(record_of(None).subject, "Add the page");
    assert!(notices(&world).contains(&format!("`acme/api`: {}", words::NOT_SHOWN_LAST)));
}

#[test]
fn every_pull_request_is_watched() {
    let world = published();
    hint(&world);
    let cards = |world: &Fake| {
        let of = |post: &Post| match post {
            Post::PullRequest(card) => Some(card.repository.clone()),
            _ => None,
        };
        let mut cards: Vec<String> = world.with(|s| s.posts.values().filter_map(of).collect());
        cards.sort();
        cards
    };
    assert_eq!(cards(&world), ["acme/api", "acme/lib"]);
    // Only due pull requests are polled.
    let polls = world.with(|s| s.polls);
    sweep(&world, "w1");
    assert_eq!(world.with(|s| s.polls), polls);
    passes(&world, super::watch::POLL_MS + QUIET_MS);
    sweep(&world, "w2");
    assert_eq!(world.with(|s| s.polls), polls + 2);
}

#[test]
fn merged_one_moves_its_own_checkout() {
    let world = published();
    world.with(|s| s.pulls[1].1.state = PullRequestState::Merged);
    hint(&world);
    let newest = "d".repeat(40);
    world.with(|s| s.moves_to = Some(newest.clone()));
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(world.with(|s| s.checkouts_moved.clone()), [Some(OF_LIB.to_owned())]);
    let now = record(&world);
    assert_eq!(now.sandbox.project.carried.unwrap().base.as_deref(), Some(BASE));
    assert_eq!(now.sandbox.project.beside[0].base, Some(newest));
    assert!(now.published.publication.is_some() && now.published.beside.is_empty());
    let told = world.with(|s| s.told.last().cloned()).unwrap();
    assert!(
        told.starts_with(
            "(The earlier pull request in `.bobbin/repositories/acme/lib` was closed or merged."
        ),
        "{told}"
    );
}

#[test]
fn act_concerns_the_pull_request_showing_it() {
    let world = published();
    hint(&world);
    deliver_until_done(&world, &act("a1", PullRequestAct::MarkReady, OF_LIB), 1);
    deliver_until_done(&world, &act("a2", PullRequestAct::MarkReady, BASE), 1);
    let acts: Vec<String> = world.with(|s| s.acts.iter().map(|one| one.1.clone()).collect());
    assert_eq!(acts, [OF_LIB], "an old card is refused");
    assert!(notices(&world).contains(&format!("`acme/api`: {}", words::NOT_SHOWN_LAST)));
}

#[test]
fn fix_works_in_its_checkout_and_pushes_it() {
    let (world, fix) = fixing();
    let text = fix[0].prompt_of(&fix[0].id).unwrap().text.clone();
    assert!(
        text.starts_with("Fix pull request #2, whose work is in the checkout `.bobbin/repositories/acme/lib`: work there."),
        "{text}"
    );
    let fixed = "e".repeat(40);
    world.with(|s| s.outgoing_beside.insert(LIB, work_in_lib(&fixed)));
    for message in fix {
        deliver_until_done(&world, &message, 1);
    }
    assert_eq!(record(&world).published.of(Some(LIB)).unwrap().pushed, Some(fixed));
    assert_eq!(record(&world).published.publication.unwrap().pushed.as_deref(), Some(FIRST));
}

/// A fix of the second pull request was started; its task and its push are queued.
fn fixing() -> (Fake, Vec<Message>) {
    let world = published();
    hint(&world);
    world.with(|s| s.checks_of.insert(2, vec![check("build", 1, CheckState::Failed)]));
    for n in 0..2 {
        passes(&world, super::watch::POLL_MS + QUIET_MS);
        sweep(&world, &format!("w{n}"));
    }
    let name = watch_of_lib(&world).begun.offered.expect("a fix");
    let before = queued(&world).len();
    deliver_until_done(&world, &publish("x1", PublishStep::Fix { name }, "10"), 1);
    let fix = queued(&world).split_off(before);
    (world, fix)
}

#[test]
fn fix_of_a_merged_one_asks_for_it_alone() {
    let (world, fix) = fixing();
    deliver_until_done(&world, &fix[0], 1);
    world.with(|s| {
        s.outgoing_beside.insert(LIB, work_in_lib(&"e".repeat(40)));
        s.pulls[1].1.state = PullRequestState::Merged;
    });
    let before = reviews(&world).len();
    deliver_until_done(&world, &fix[1], 1);
    let shown: Vec<String> =
        reviews(&world).into_iter().map(|review| review.repository).skip(before).collect();
    assert_eq!(shown, ["acme/lib"], "{:?}", notices(&world));
}

#[test]
fn stale_button_never_acts_on_another() {
    let world = published();
    hint(&world);
    // The second one is merged, and nothing is left of it.
    world.with(|s| {
        s.pulls[1].1.state = PullRequestState::Merged;
        s.moves_to = Some("d".repeat(40));
    });
    hint(&world);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert!(record(&world).published.beside.is_empty());
    let before = queued(&world).len();
    deliver_until_done(&world, &act("a1", PullRequestAct::MarkReady, OF_LIB), 1);
    let name = "0123456789abcdef0123".to_owned();
    deliver_until_done(&world, &publish("x1", PublishStep::Fix { name }, "10"), 1);
    assert_eq!((world.with(|s| s.acts.len()), queued(&world).len()), (0, before));
    for word in [words::NOT_SHOWN_LAST, words::NOTHING_TO_FIX] {
        assert!(notices(&world).contains(&format!("`acme/api`: {word}")), "{:?}", notices(&world));
    }
}

#[test]
fn all_are_published_only_where_all_can_be_read() {
    let world = wanted(&["acme/lib"]);
    holds(&world, FIRST);
    world.with(|s| {
        s.outgoing_beside.insert(LIB, work_in_lib(OF_LIB));
        s.answers = Some("\u{2423}".repeat(500));
    });
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    deliver_until_done(&world, &show("p1"), 1);
    works(&world);
    assert!(reviews(&world).len() == 2 && reviews(&world).iter().all(|one| one.all.is_none()));
}

#[test]
fn public_one_quotes_nothing_of_a_private_thread() {
    let world = wanted(&["acme/lib"]);
    let public = ForgeRepository { id: LIB, ..repository("acme/lib", false) };
    let found = FoundRepository::Here { repository: public, size_kb: 0 };
    holds(&world, FIRST);
    world.with(|s| {
        s.at_forge_too.insert("acme/lib".to_owned(), found);
        s.outgoing_beside.insert(LIB, work_in_lib(OF_LIB));
        s.answers = Some("The plan is secret.".to_owned());
    });
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    deliver_until_done(&world, &show("p1"), 1);
    works(&world);
    let bodies: Vec<String> =
        reviews(&world).into_iter().map(|review| review.proposal.body).collect();
    assert!(bodies[0].contains("The plan is secret."), "{bodies:?}");
    assert_eq!(bodies[1], "Made by a coding agent.");
}
