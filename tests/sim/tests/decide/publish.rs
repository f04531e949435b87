//! From work in a sandbox to a pull request.

use super::fix::queued;
use super::forge::{asked, open, repository, world};
use super::sibling_repositories::at_forge;
use super::watch::{POLL_MS, QUIET_MS, check, passes, polls, seen, sweep};
use super::*;
use bobbin_core::records::card::{PublishOffer, Review};
use bobbin_core::records::checks::CheckState;

const BASE: &str = "1111111111111111111111111111111111111111";
pub(super) const FIRST: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const SECOND: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// A thread whose turn has changed a private repository that is open everywhere.
fn worked() -> Fake {
    let world =
        world(FoundRepository::Here { repository: repository("acme/api", true), size_kb: 0 });
    open(&world, None, "all");
    world.with(|s| {
        s.branches.insert("main".to_owned(), BASE.to_owned());
        s.answers = Some("Added the page. Ask @bob.".to_owned());
        s.changes = Changes {
            files: vec![changes::ChangedFile {
                file: "a.txt".to_owned(),
                how: How::Added,
                added: 1,
                removed: 0,
                patch: String::new(),
            }],
            unknown: false,
        };
    });
    holds(&world, FIRST);
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    world
}

/// The sandbox's work ends in this commit.
pub(super) fn holds(world: &Fake, commit: &str) {
    let files = vec![OutgoingFile { path: "a.txt".to_owned(), how: OutgoingChange::Added }];
    let subject = "Add the page".to_owned();
    world.with(|s| {
        s.outgoing = Some(Outgoing::Ready {
            commit: commit.to_owned(),
            subject,
            files,
            since: Vec::new(),
            workflows: 2,
            has_others: false,
        });
    });
}

pub(super) fn publish(id: &str, step: PublishStep, channel: &str) -> Message {
    let membership = Membership { channel: channel.to_owned(), ..Membership::default() };
    work(id, Work::Publish { step, by: person("ann"), membership })
}

pub(super) fn show(id: &str) -> Message {
    publish(id, PublishStep::Show { subject: None, body: None, of: None }, "10")
}

pub(super) fn press(id: &str, commit: &str) -> Message {
    publish(id, PublishStep::Push { commit: commit.to_owned() }, "10")
}

pub(super) fn act(id: &str, act: PullRequestAct, head: &str) -> Message {
    publish(id, PublishStep::Act { act, head: head.to_owned() }, "10")
}

pub(super) fn reviews(world: &Fake) -> Vec<Review> {
    world.with(|s| {
        let shown = s.posts.values().filter_map(|post| match post {
            Post::Review(review) => Some(review.clone()),
            _ => None,
        });
        shown.collect()
    })
}

pub(super) fn notices(world: &Fake) -> Vec<String> {
    world.with(|s| {
        let said = s.posts.values().filter_map(|post| match post {
            Post::Notice(word) => Some(word.clone()),
            _ => None,
        });
        said.collect()
    })
}

fn branch(world: &Fake) -> String {
    record(world).published.publication.unwrap().branch
}

pub(super) fn published() -> Fake {
    let world = worked();
    deliver_until_done(&world, &show("p1"), 1);
    deliver_until_done(&world, &press("p2", FIRST), 1);
    world
}

#[test]
fn work_is_shown_before_it_is_pushed() {
    let world = worked();
    deliver_until_done(&world, &show("p1"), 1);
    let shown = reviews(&world).pop().unwrap();
    assert_eq!(
        (&*shown.proposal.commit, &*shown.proposal.subject, &*shown.into, shown.workflows),
        (FIRST, "Add the page", "main", 2)
    );
    assert_eq!(
        shown.proposal.body,
        "The coding agent that made this says:\n\n> Added the page. Ask @\u{200b}bob.\n\nAsked for by:\n\n> ann"
    );
    assert!(shown.branch.starts_with("bobbin/add-the-page-"), "{}", shown.branch);
    assert!(shown.is_draft && !shown.is_public && shown.offer == PublishOffer::Open);
    assert_eq!(world.with(|s| (s.pushes.len(), s.pulls.len())), (0, 0));
}

#[test]
fn press_pushes_what_was_shown() {
    let world = published();
    let branch = branch(&world);
    assert_eq!(world.with(|s| s.pushes.clone()), [(branch.clone(), None, FIRST.to_owned())]);
    let opened = world.with(|s| s.pulls.clone());
    assert_eq!((opened.len(), &opened[0].0, opened[0].1.is_draft), (1, &branch, true));
    assert_eq!(
        notices(&world),
        ["Pull request #1 is open as a draft: https://git.example.com/acme/api/pull/1"]
    );
    // A second press on the same message is answered and changes nothing.
    deliver_until_done(&world, &press("p3", FIRST), 1);
    assert!(notices(&world).contains(&words::NOT_SHOWN.to_owned()));
    assert_eq!(world.with(|s| (s.pushes.len(), s.pulls.len())), (1, 1));
}

#[test]
fn thread_asleep_for_a_week_goes_on() {
    let world = published();
    world.with(|s| s.now_ms += 7 * 24 * 3_600_000);
    for id in ["w1", "w2", "w3"] {
        world.with(|s| s.now_ms += 4 * 3_600_000);
        deliver_until_done(&world, &work(id, Work::Sweep), 1);
    }
    assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
    // The next task gets another sandbox with the fetched repository; its work is pushed to the same branch.
    deliver_until_done(&world, &asked("m2", "acme/api"), 1);
    assert_eq!(world.with(|s| s.carried.len()), 2);
    holds(&world, SECOND);
    deliver_until_done(&world, &show("p3"), 1);
    deliver_until_done(&world, &press("p4", SECOND), 1);
    let branch = branch(&world);
    let last = (branch, Some(FIRST.to_owned()), SECOND.to_owned());
    assert_eq!(world.with(|s| (s.pushes.last().cloned(), s.pulls.len())), (Some(last), 1));
}

#[test]
fn later_work_updates_the_pull_request() {
    let world = published();
    let card = world.with(|s| s.posts.clone()).into_values().find_map(|post| match post {
        Post::Card(card) => card.publish,
        _ => None,
    });
    assert_eq!(card, Some(PublishOffer::Open));
    holds(&world, SECOND);
    deliver_until_done(&world, &asked("m2", "acme/api"), 1);
    deliver_until_done(&world, &show("p3"), 1);
    assert!(reviews(&world).iter().any(|shown| shown.offer == PublishOffer::Update));
    deliver_until_done(&world, &press("p4", SECOND), 1);
    let branch = branch(&world);
    let last = world.with(|s| s.pushes.last().cloned());
    assert_eq!(last, Some((branch, Some(FIRST.to_owned()), SECOND.to_owned())));
    assert_eq!(world.with(|s| s.pulls.len()), 1);
    assert!(notices(&world).iter().any(|word| word.starts_with("Pull request #1 is updated: ")));
}

#[test]
fn merged_work_begins_a_new_branch() {
    let world = published();
    let before = branch(&world);
    world.with(|s| s.pulls[0].1.state = PullRequestState::Merged);
    holds(&world, SECOND);
    deliver_until_done(&world, &show("p3"), 1);
    deliver_until_done(&world, &press("p4", SECOND), 1);
    assert_ne!(branch(&world), before);
    assert_eq!(world.with(|s| (s.pushes.last().unwrap().1.clone(), s.pulls.len())), (None, 2));
}

#[test]
fn another_repository_begins_its_own_branch() {
    let world = published();
    let of_api = branch(&world);
    let pass = |id: &str| {
        passes(&world, POLL_MS + QUIET_MS);
        sweep(&world, id);
    };
    world.with(|s| s.checks_of.insert(1, vec![check("build", 1, CheckState::Failed)]));
    pass("w1");
    pass("w2");
    let name = seen(&world).fix.unwrap();
    deliver_until_done(&world, &reset(), 1);
    at_forge(&world, "acme/web", 43);
    holds(&world, SECOND);
    deliver_until_done(&world, &asked("m2", "acme/web"), 1);
    let offers: Vec<PublishOffer> = world.with(|s| {
        let offer = |post: &Post| match post {
            Post::Card(card) => card.publish,
            _ => None,
        };
        s.posts.values().filter_map(offer).collect()
    });
    assert_eq!(offers, [PublishOffer::Open, PublishOffer::Open]);
    deliver_until_done(&world, &show("p3"), 1);
    deliver_until_done(&world, &press("p4", SECOND), 1);
    let of_web = branch(&world);
    assert_ne!(of_web, of_api);
    let last = world.with(|s| s.pushes.last().cloned());
    assert_eq!(last, Some((of_web, None, SECOND.to_owned())));
    // Both pull requests are followed, each in its repository.
    let before = polls(&world);
    pass("w3");
    assert_eq!(polls(&world), before + 2);
    let published = record(&world).published;
    for (beside, id) in [(None, 43), (Some(42), 42)] {
        let publication = published.of(beside).unwrap();
        let watched = publication.watch.as_ref().unwrap().repository.id;
        assert_eq!((publication.repository, watched), (id, id));
    }
    assert_eq!(published.of(Some(42)).unwrap().branch, of_api);
    // Nothing of the first one is done in the checkout of the second.
    let before = queued(&world).len();
    deliver_until_done(&world, &publish("x1", PublishStep::Fix { name }, "10"), 1);
    assert_eq!(queued(&world).len(), before);
    assert!(notices(&world).contains(&words::NOTHING_CARRIED.to_owned()), "{:?}", notices(&world));
}

#[test]
fn other_files_than_shown_are_shown_anew() {
    let world = worked();
    deliver_until_done(&world, &show("p1"), 1);
    holds(&world, SECOND);
    deliver_until_done(&world, &press("p2", FIRST), 1);
    assert_eq!(world.with(|s| s.pushes.len()), 0);
    assert!(reviews(&world).iter().any(|shown| shown.proposal.commit == SECOND));
    deliver_until_done(&world, &press("p3", SECOND), 1);
    assert_eq!(world.with(|s| (s.pushes.len(), s.pulls.len())), (1, 1));
}

#[test]
fn persons_commit_on_the_branch_stays() {
    let world = published();
    let branch = branch(&world);
    world.with(|s| s.branches.insert(branch.clone(), "cccc".to_owned()));
    holds(&world, SECOND);
    deliver_until_done(&world, &show("p3"), 1);
    deliver_until_done(&world, &press("p4", SECOND), 1);
    assert_eq!(world.with(|s| s.branches[&branch].clone()), "cccc");
    let told = words::branch_has_theirs(&branch, "cccc");
    assert!(notices(&world).contains(&told), "{:?}", notices(&world));
    // Work that follows it goes on from there.
    let third = "dddddddddddddddddddddddddddddddddddddddd";
    holds(&world, third);
    deliver_until_done(&world, &show("p5"), 1);
    deliver_until_done(&world, &press("p6", third), 1);
    let last = world.with(|s| s.pushes.last().cloned());
    assert_eq!(last, Some((branch, Some("cccc".to_owned()), third.to_owned())));
    assert_eq!(record(&world).published.publication.unwrap().theirs.as_deref(), Some("cccc"));
}

#[test]
fn deleted_branch_is_pushed_by_another_press() {
    let world = published();
    let branch = branch(&world);
    world.with(|s| {
        s.branches.remove(&branch);
        s.pulls.clear();
    });
    holds(&world, SECOND);
    deliver_until_done(&world, &show("p3"), 1);
    deliver_until_done(&world, &press("p4", SECOND), 1);
    assert_eq!(world.with(|s| s.branches.get(&branch).cloned()), None);
    deliver_until_done(&world, &press("p5", SECOND), 1);
    assert_eq!(world.with(|s| s.branches[&branch].clone()), SECOND);
}

#[test]
fn refused_push_is_told_in_the_forges_words() {
    let world = worked();
    deliver_until_done(&world, &show("p1"), 1);
    let why = "GH013: Commits must have verified signatures.".to_owned();
    world.with(|s| s.push_ends = vec![PushEnd::Refused { why }]);
    deliver_until_done(&world, &press("p2", FIRST), 1);
    assert_eq!(
        notices(&world),
        ["The push was refused: GH013: Commits must have verified signatures."]
    );
    assert_eq!(world.with(|s| s.pulls.len()), 0);
}

#[test]
fn closed_repository_is_not_published() {
    for change in [
        |s: &mut State| s.settings.repositories.close(None, "all"),
        |s: &mut State| s.forge = None,
        |s: &mut State| {
            let off = Some("off".to_owned());
            let defaults = Selection { pull_requests: off, ..Selection::default() };
            s.settings.channels.insert("10".to_owned(), defaults);
        },
    ] {
        let world = worked();
        deliver_until_done(&world, &show("p1"), 1);
        world.with(change);
        deliver_until_done(&world, &press("p2", FIRST), 1);
        deliver_until_done(&world, &show("p3"), 1);
        assert_eq!(world.with(|s| (s.pushes.len(), s.pulls.len())), (0, 0));
        assert_eq!((notices(&world).len(), reviews(&world).len()), (2, 1));
    }
}

#[test]
fn only_linked_account_with_write_pushes() {
    let linked = |account: Option<Presser>| {
        let world = worked();
        world.with(|s| {
            let by = Some("linked".to_owned());
            let defaults = Selection { pull_requests_by: by, ..Selection::default() };
            s.settings.channels.insert("10".to_owned(), defaults);
            s.accounts.extend(account.map(|account| (person("ann").id, account)));
        });
        deliver_until_done(&world, &show("p1"), 1);
        deliver_until_done(&world, &press("p2", FIRST), 1);
        (world.with(|s| (s.pushes.len(), s.pulls.len())), notices(&world).pop().unwrap())
    };
    assert_eq!(linked(None), ((0, 0), words::not_linked(&thread())));
    assert_eq!(
        linked(Some(Presser::MayNotPush { login: "ann-at-acme".to_owned() })),
        ((0, 0), "Nothing was pushed: in this channel you need an account that may push to acme/api, and ann-at-acme may not. Somebody else can press.".to_owned())
    );
    let (done, word) = linked(Some(Presser::MayPush));
    assert_eq!(done, (1, 1));
    assert!(word.starts_with("Pull request #1 is open"), "{word}");
}

#[test]
fn nothing_is_published_of_nothing() {
    let world = worked();
    world.with(|s| s.outgoing = None);
    deliver_until_done(&world, &show("p1"), 1);
    assert_eq!(notices(&world), [words::NOTHING_TO_PUBLISH]);
    let empty = Fake::new();
    deliver_until_done(&empty, &show("p1"), 1);
    assert_eq!(notices(&empty), [words::NOTHING_CARRIED]);
    assert_eq!(empty.with(|s| s.sandboxes.len()), 0);
}

#[test]
fn paused_sandbox_wakes_and_publishes() {
    let world = worked();
    let operation = bobbin_core::records::control::Operation::Pause;
    deliver_until_done(&world, &work("o1", Work::Operate { want: operation, by: None }), 1);
    assert_eq!(record(&world).sandbox.phase, Phase::Paused);
    deliver_until_done(&world, &show("p1"), 1);
    deliver_until_done(&world, &press("p2", FIRST), 1);
    assert_eq!(world.with(|s| (s.pushes.len(), s.pulls.len())), (1, 1));
}

#[test]
fn press_waits_out_any_outage() {
    for of in [Out::Table, Out::Writes, Out::Chat, Out::Provider] {
        let world = worked();
        deliver_until_done(&world, &show("p1"), 1);
        world.with(|s| s.out = Some((of, s.now_ms + 10 * 60_000)));
        let receives = deliver_until_done(&world, &press("p2", FIRST), 1);
        assert!(receives > Limits::DEFAULT.retry.attempts + 2, "{of:?}: {receives}");
        assert_eq!(world.with(|s| (s.pushes.len(), s.pulls.len())), (1, 1), "{of:?}");
        let told = notices(&world);
        assert!(told.len() == 1 && told[0].starts_with("Pull request #1 is "), "{of:?}: {told:?}");
        assert_eq!(record(&world).published.waited, None, "{of:?}");
    }
}

#[test]
fn press_that_keeps_failing_is_given_up() {
    let world = worked();
    deliver_until_done(&world, &show("p1"), 1);
    world.with(|s| s.fail.insert("push", vec![busy(); 100]));
    let receives = deliver_until_done(&world, &press("p2", FIRST), 1);
    assert_eq!(receives, Limits::DEFAULT.retry.attempts + 2);
    assert_eq!(notices(&world), [words::kept_failing(None)]);
}

#[test]
fn crash_while_publishing_pushes_once() {
    let begun = || {
        let world = worked();
        deliver_until_done(&world, &show("p1"), 1);
        world
    };
    let crashes = each_crash(begun, &press("p2", FIRST), |world, crash| {
        assert_eq!(world.with(|s| (s.pushes.len(), s.pulls.len())), (1, 1), "{crash}");
        let told = notices(world);
        assert_eq!(told.len(), 1, "{crash}: {told:?}");
        assert!(told[0].starts_with("Pull request #1 is "), "{crash}: {told:?}");
        assert_eq!(record(world).published.publication.unwrap().pressed, None, "{crash}");
    });
    assert!(crashes > 10, "{crashes}");
}

#[test]
fn crash_while_proposing_shows_once() {
    each_crash(worked, &show("p1"), |world, crash| {
        assert_eq!((reviews(world).len(), notices(world).len()), (1, 0), "{crash}");
    });
}
