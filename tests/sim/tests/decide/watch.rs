//! A pull request is followed to its end: polled, shown on its card, reported when it ends.

use super::publish::{FIRST, holds, notices, press, publish, published, show};
use super::*;
use bobbin_core::base::limits::WatchLimits;
use bobbin_core::records::checks::{Check, CheckKind, CheckState, RequiredCheck};
use bobbin_core::records::publication::PullRequestState;
use bobbin_core::records::pull_request::{
    Author, Mergeability, ReviewState, ReviewThread, SeenComment, SeenReview, WatchedPullRequest,
};
use bobbin_core::records::watch::{CardSight, CheckWord, SeenPullRequest, Watch};
use bobbin_sim::services::polled;

pub(super) const QUIET_MS: u64 = WatchLimits::DEFAULT.quiet_ms;
pub(super) const POLL_MS: u64 = WatchLimits::DEFAULT.poll_ms;

pub(super) fn sweep(world: &Fake, id: &str) {
    deliver_until_done(world, &work(id, Work::Sweep), 1);
}

/// A webhook hints at the pull request now.
pub(super) fn hint(world: &Fake) {
    let now_ms = world.with(|s| s.now_ms);
    deliver_until_done(world, &Message::poll(thread(), now_ms, QUIET_MS), 1);
}

pub(super) fn passes(world: &Fake, ms: u64) {
    world.with(|s| s.now_ms += ms);
}

pub(super) fn polls(world: &Fake) -> u32 {
    world.with(|s| s.polls)
}

pub(super) fn watch(world: &Fake) -> Option<Watch> {
    record(world).published.publication?.watch
}

/// How often a card was posted or edited.
fn card_posts(world: &Fake) -> u32 {
    world.with(|s| s.pull_request_cards)
}

pub(super) fn sight(world: &Fake) -> CardSight {
    let card = world.with(|s| {
        s.posts.values().find_map(|post| match post {
            Post::PullRequest(card) => Some(card.seen.clone()),
            _ => None,
        })
    });
    card.expect("a card")
}

pub(super) fn seen(world: &Fake) -> SeenPullRequest {
    match sight(world) {
        CardSight::Seen(seen) => seen,
        other => panic!("{other:?}"),
    }
}

pub(super) fn check(name: &str, id: u64, state: CheckState) -> Check {
    Check {
        name: name.to_owned(),
        of: "ci".to_owned(),
        kind: CheckKind::Run { id, app: Some(15_368) },
        state,
        page: String::new(),
    }
}

/// The forge shows this from now on.
pub(super) fn shows(world: &Fake, change: impl FnOnce(&mut WatchedPullRequest)) {
    world.with(|s| {
        let (branch, pull) = s.pulls[0].clone();
        let head = s.branches[&branch].clone();
        let mut watched = s.watched.take().unwrap_or_else(|| polled(&pull, &branch, &head));
        change(&mut watched);
        watched.pull.totals.checks = watched.pull.totals.checks.max(watched.pull.checks.len());
        s.watched = Some(watched);
    });
}

pub(super) fn has_checks(world: &Fake, checks: &[Check]) {
    shows(world, |watched| watched.pull.checks = checks.to_vec());
}

#[test]
fn open_pull_request_gets_a_card() {
    let world = published();
    assert_eq!(polls(&world), 0, "the press waits for no poll");
    sweep(&world, "w1");
    assert_eq!((polls(&world), card_posts(&world)), (1, 1));
    let shown = seen(&world);
    assert_eq!((&*shown.head, shown.is_theirs, &*shown.base), (FIRST, false, "main"));
    // Nothing is news before the next poll is due.
    sweep(&world, "w2");
    assert_eq!(polls(&world), 1);
}

#[test]
fn unchanged_pull_request_is_not_edited() {
    let world = published();
    sweep(&world, "w1");
    passes(&world, QUIET_MS);
    sweep(&world, "w2");
    let posts = card_posts(&world);
    for nth in 0..4 {
        passes(&world, POLL_MS);
        sweep(&world, &format!("later-{nth}"));
    }
    assert_eq!((polls(&world), card_posts(&world)), (6, posts));
    // The next sweep of the thread is the next poll.
    let due_at_ms = watch(&world).map(|watch| watch.due_at_ms);
    assert_eq!(record(&world).due_at_ms, due_at_ms);
    assert_eq!(due_at_ms, Some(world.with(|s| s.now_ms) + POLL_MS));
}

#[test]
fn green_prefix_is_not_shown_green() {
    let world = published();
    has_checks(&world, &[check("build", 1, CheckState::Passed)]);
    sweep(&world, "w1");
    assert_eq!(seen(&world).checks.verdict, CheckWord::Unsettled);
    // It settles after the quiet time, and that poll comes automatically.
    passes(&world, QUIET_MS);
    has_checks(
        &world,
        &[check("build", 1, CheckState::Passed), check("test", 2, CheckState::Running)],
    );
    sweep(&world, "w2");
    assert_eq!(seen(&world).checks.running, 1);
    has_checks(
        &world,
        &[check("build", 1, CheckState::Passed), check("test", 2, CheckState::Passed)],
    );
    hint(&world);
    assert_eq!(seen(&world).checks.verdict, CheckWord::Unsettled);
    passes(&world, QUIET_MS);
    sweep(&world, "w3");
    assert_eq!(seen(&world).checks.verdict, CheckWord::Green);
}

#[test]
fn missing_required_check_keeps_it_open() {
    let world = published();
    has_checks(&world, &[check("build", 1, CheckState::Passed)]);
    shows(&world, |watched| {
        watched.required = vec![RequiredCheck { name: "deploy".to_owned(), app: None }];
    });
    sweep(&world, "w1");
    passes(&world, POLL_MS);
    sweep(&world, "w2");
    let checks = seen(&world).checks;
    assert_eq!(
        (checks.verdict, &*checks.missing.first),
        (CheckWord::Unsettled, &["deploy".to_owned()][..])
    );
}

#[test]
fn checks_of_another_head_settle_anew() {
    let world = published();
    sweep(&world, "w1");
    passes(&world, QUIET_MS);
    sweep(&world, "w2");
    assert_eq!(seen(&world).checks.verdict, CheckWord::None);
    // The new head has no check yet either.
    shows(&world, |watched| watched.pull.head = "cccc".to_owned());
    hint(&world);
    let shown = seen(&world);
    assert_eq!((shown.checks.verdict, shown.is_theirs), (CheckWord::Unsettled, true));
}

#[test]
fn more_checks_than_are_read_are_never_green() {
    let world = published();
    has_checks(&world, &[check("build", 1, CheckState::Passed)]);
    shows(&world, |watched| watched.pull.totals.checks = 101);
    sweep(&world, "w1");
    passes(&world, POLL_MS);
    sweep(&world, "w2");
    assert_eq!(seen(&world).checks.verdict, CheckWord::Unsettled);
}

#[test]
fn hundred_hints_are_one_poll() {
    let world = published();
    sweep(&world, "w1");
    passes(&world, POLL_MS / 2);
    let now_ms = world.with(|s| s.now_ms);
    let ids = (0..100)
        .map(|nth| Message::poll(thread(), now_ms - now_ms % QUIET_MS + nth * 100, QUIET_MS).id);
    assert_eq!(ids.collect::<BTreeSet<_>>().len(), 1);
    hint(&world);
    assert_eq!(polls(&world), 2);
    // Hints that waited behind a long run are older than the poll after them.
    let late = Message::poll(thread(), now_ms - POLL_MS / 4, QUIET_MS);
    deliver_until_done(&world, &late, 1);
    assert_eq!(polls(&world), 2);
}

#[test]
fn last_hint_of_a_minute_is_not_lost() {
    let world = published();
    let running = |state| [check("lint", 1, state), check("test", 2, CheckState::Running)];
    has_checks(&world, &running(CheckState::Running));
    sweep(&world, "w1");
    passes(&world, 4 * POLL_MS);
    sweep(&world, "w2");
    // A minute begins, and lint ends in it.
    let now_ms = world.with(|s| s.now_ms);
    passes(&world, QUIET_MS - now_ms % QUIET_MS + 5_000);
    has_checks(&world, &running(CheckState::Passed));
    hint(&world);
    let known = Message::poll(thread(), world.with(|s| s.now_ms), QUIET_MS).id;
    // So does the last one, and the queue drops that hint.
    passes(&world, 45_000);
    assert_eq!(Message::poll(thread(), world.with(|s| s.now_ms), QUIET_MS).id, known);
    let state = CheckState::Passed;
    has_checks(&world, &[check("lint", 1, state), check("test", 2, state)]);
    passes(&world, 20_000);
    sweep(&world, "w3");
    let checks = seen(&world).checks;
    assert_eq!((checks.running, checks.passed), (0, 2));
}

#[test]
fn long_run_is_polled_less_and_less() {
    let world = published();
    has_checks(&world, &[check("build", 1, CheckState::Running)]);
    let mut waits = Vec::new();
    for nth in 0..7 {
        sweep(&world, &format!("w{nth}"));
        let due_at_ms = watch(&world).unwrap().due_at_ms;
        waits.push((due_at_ms - world.with(|s| s.now_ms)) / QUIET_MS);
        world.with(|s| s.now_ms = due_at_ms);
    }
    assert_eq!((waits, polls(&world)), (vec![1, 1, 2, 4, 8, 15, 15], 7));
}

#[test]
fn hint_about_nothing_writes_nothing() {
    let world = Fake::new();
    hint(&world);
    assert_eq!(world.with(|s| (s.polls, s.record.is_none())), (0, true));
}

#[test]
fn failed_polls_are_told_and_bounded() {
    let world = published();
    sweep(&world, "w1");
    let posts = card_posts(&world);
    let seen_as = "GitHub left something out".to_owned();
    world.with(|s| s.poll_fails = Some(Failure::Outage { after_ms: 0, seen: seen_as }));
    let mut waits = Vec::new();
    for nth in 0..7 {
        let due_at_ms = watch(&world).unwrap().due_at_ms;
        let now_ms = world.with(|s| s.now_ms);
        waits.push(due_at_ms - now_ms);
        world.with(|s| s.now_ms = due_at_ms);
        sweep(&world, &format!("f{nth}"));
        // What a poll did not read is never called none.
        assert_eq!(matches!(sight(&world), CardSight::Unseen { .. }), nth >= 2);
    }
    assert_eq!(waits[1..], [1, 2, 4, 8, 15, 15].map(|minutes| minutes * QUIET_MS));
    assert_eq!(card_posts(&world), posts + 1);
    world.with(|s| s.poll_fails = None);
    hint(&world);
    assert!(matches!(sight(&world), CardSight::Seen(_)));
}

#[test]
fn watch_that_is_given_up_says_so() {
    let world = published();
    sweep(&world, "w1");
    let away = Failure::Outage { after_ms: 0, seen: "away".to_owned() };
    world.with(|s| {
        s.poll_fails = Some(away.clone());
        let watch = &mut s.record.as_mut().unwrap().published.publication.as_mut().unwrap().watch;
        watch.as_mut().unwrap().failures = 998;
    });
    let given_up = |world: &Fake| match sight(world) {
        CardSight::Unseen { is_given_up, .. } => is_given_up,
        other => panic!("{other:?}"),
    };
    passes(&world, POLL_MS);
    sweep(&world, "w2");
    assert!(!given_up(&world) && watch(&world).is_some());
    // The chat refuses the last card at first.
    world.with(|s| s.fail.insert("post", vec![away]));
    passes(&world, POLL_MS);
    sweep(&world, "w3");
    assert!(!given_up(&world) && watch(&world).is_some());
    passes(&world, POLL_MS);
    sweep(&world, "w4");
    assert!(given_up(&world));
    assert_eq!((watch(&world), record(&world).due_at_ms), (None, None));
    // An update starts it again.
    world.with(|s| s.poll_fails = None);
    deliver_until_done(&world, &show("p3"), 1);
    deliver_until_done(&world, &press("p4", FIRST), 1);
    assert_eq!(watch(&world).map(|watch| watch.id), Some("p4".into()));
}

#[test]
fn merged_pull_request_is_told_once() {
    for (state, word) in [
        (PullRequestState::Merged, "was merged"),
        (PullRequestState::Closed, "was closed without being merged"),
    ] {
        let world = published();
        sweep(&world, "w1");
        world.with(|s| s.pulls[0].1.state = state);
        hint(&world);
        assert_eq!(sight(&world), CardSight::Ended(state));
        assert_eq!(watch(&world), None);
        passes(&world, POLL_MS);
        sweep(&world, "w2");
        hint(&world);
        assert_eq!(polls(&world), 2);
        let told = notices(&world).into_iter().filter(|notice| notice.contains(word)).count();
        assert_eq!(told, 1, "{:?}", notices(&world));
        assert_eq!(record(&world).due_at_ms, None);
    }
}

/// A pull request that was merged while the thread was quiet.
fn merged() -> Fake {
    let world = published();
    world.with(|s| s.pulls[0].1.state = PullRequestState::Merged);
    hint(&world);
    world
}

fn told_last(world: &Fake) -> String {
    world.with(|s| s.told.last().cloned()).unwrap()
}

#[test]
fn next_task_starts_from_the_new_base() {
    let world = merged();
    let newest = "d".repeat(40);
    world.with(|s| s.moves_to = Some(newest.clone()));
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(world.with(|s| s.checkouts_moved.clone()), [Some(FIRST.to_owned())]);
    assert_eq!(
        told_last(&world),
        "(The earlier pull request was closed or merged. The checkout was moved to the newest commit of `main`, dddddddddddd: files may differ from before.)\n\ndo it"
    );
    let now = record(&world);
    assert_eq!(
        (now.published.publication, now.sandbox.project.carried.unwrap().base),
        (None, Some(newest))
    );
    deliver_until_done(&world, &prompt("m3"), 1);
    assert_eq!((world.with(|s| s.checkouts_moved.len()), &*told_last(&world)), (1, "do it"));
}

#[test]
fn reopened_pull_request_keeps_its_checkout() {
    let world = published();
    world.with(|s| s.pulls[0].1.state = PullRequestState::Closed);
    hint(&world);
    assert_eq!(watch(&world), None);
    world.with(|s| {
        (s.pulls[0].1.state, s.moves_to) = (PullRequestState::Open, Some("d".repeat(40)))
    });
    let before = record(&world);
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!((world.with(|s| s.checkouts_moved.len()), &*told_last(&world)), (0, "do it"));
    let now = record(&world);
    assert_eq!(now.sandbox.project.carried, before.sandbox.project.carried);
    let of = |session: &Session| session.published.publication.clone().map(|one| one.branch);
    assert_eq!(of(&now), of(&before));
    // It is watched again.
    assert!(now.due_at_ms.is_some_and(|at| at <= world.with(|s| s.now_ms)), "{:?}", now.due_at_ms);
    sweep(&world, "w2");
    assert!(matches!(sight(&world), CardSight::Seen(_)));
    // Once it is merged, the checkout moves.
    world.with(|s| s.pulls[0].1.state = PullRequestState::Merged);
    hint(&world);
    deliver_until_done(&world, &prompt("m3"), 1);
    assert_eq!(world.with(|s| s.checkouts_moved.len()), 1);
}

#[test]
fn fix_of_a_reopened_one_is_not_begun_twice() {
    let world = published();
    let failed = [check("build", 1, CheckState::Failed)];
    has_checks(&world, &failed);
    sweep(&world, "w1");
    passes(&world, QUIET_MS);
    sweep(&world, "w2");
    let name = seen(&world).fix.unwrap();
    let press = |id| publish(id, PublishStep::Fix { name: name.clone() }, "10");
    deliver_until_done(&world, &press("x1"), 1);
    for message in world.with(|s| s.queued.clone()) {
        deliver_until_done(&world, &message, 1);
    }
    for state in [PullRequestState::Closed, PullRequestState::Open] {
        shows(&world, |watched| watched.pull.state = state);
        world.with(|s| s.pulls[0].1.state = state);
        hint(&world);
    }
    deliver_until_done(&world, &prompt("m2"), 1);
    passes(&world, QUIET_MS);
    sweep(&world, "w3");
    deliver_until_done(&world, &press("x2"), 1);
    assert_eq!(world.with(|s| s.queued.len()), 2);
}

#[test]
fn unpushed_work_keeps_the_old_base() {
    let world = merged();
    let base = record(&world).sandbox.project.carried.unwrap().base;
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!(&*told_last(&world), "do it");
    let stays = "The pull request of the earlier work has ended, but the sandbox holds work that is in no pull request.";
    let told = |world: &Fake| notices(world).iter().filter(|word| word.starts_with(stays)).count();
    assert_eq!((record(&world).sandbox.project.carried.unwrap().base, told(&world)), (base, 1));
    deliver_until_done(&world, &prompt("m3"), 1);
    assert_eq!((world.with(|s| s.checkouts_moved.len()), told(&world)), (1, 1));
}

#[test]
fn base_that_cannot_come_is_asked_again() {
    let world = merged();
    let away = Failure::Outage { after_ms: 0, seen: "the forge is away".to_owned() };
    world.with(|s| s.move_fails = Some(away));
    deliver_until_done(&world, &prompt("m2"), 1);
    assert_eq!((outcomes(&world).last(), &*told_last(&world)), (Some(&Outcome::Answered), "do it"));
    world.with(|s| (s.move_fails, s.moves_to) = (None, Some("d".repeat(40))));
    deliver_until_done(&world, &prompt("m3"), 1);
    assert!(told_last(&world).starts_with("(The earlier pull request was closed or merged."));
    assert_eq!(world.with(|s| s.checkouts_moved.len()), 2);
}

#[test]
fn end_found_by_a_new_proposal_is_shown() {
    let world = published();
    sweep(&world, "w1");
    world.with(|s| s.pulls[0].1.state = PullRequestState::Merged);
    holds(&world, "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
    deliver_until_done(&world, &show("p3"), 1);
    assert_eq!(sight(&world), CardSight::Ended(PullRequestState::Merged));
    assert_eq!(watch(&world), None);
    deliver_until_done(&world, &press("p4", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"), 1);
    assert_eq!(watch(&world).map(|watch| watch.id), Some("p4".into()));
}

#[test]
fn untold_end_is_told_later() {
    let world = published();
    sweep(&world, "w1");
    world.with(|s| {
        s.pulls[0].1.state = PullRequestState::Merged;
        let away = Failure::Outage { after_ms: 0, seen: "the chat is away".to_owned() };
        s.fail.insert("post", vec![away.clone(), away]);
    });
    hint(&world);
    assert!(watch(&world).is_some());
    passes(&world, POLL_MS);
    sweep(&world, "w2");
    assert_eq!(watch(&world), None);
    assert_eq!(sight(&world), CardSight::Ended(PullRequestState::Merged));
    assert!(notices(&world).iter().any(|notice| notice.contains("was merged")));
}

#[test]
fn only_people_with_write_count() {
    let world = published();
    let by = |login: &str, is_bot| Author { login: login.to_owned(), id: 7, is_bot };
    let review = |id, by: Author| SeenReview {
        id,
        by,
        state: ReviewState::ChangesRequested,
        body: "Change it".to_owned(),
        at_ms: 1,
        commit: FIRST.to_owned(),
    };
    let thread_by = |by: Author| ReviewThread {
        id: by.login.clone(),
        path: "a.txt".to_owned(),
        line: Some(1),
        is_resolved: false,
        is_outdated: false,
        comments: vec![SeenComment {
            id: 1,
            by,
            is_own: true,
            body: "Here".to_owned(),
            at_ms: 1,
            page: String::new(),
        }],
        comments_total: 1,
        hunk: String::new(),
    };
    shows(&world, |watched| {
        watched.pull.reviews = vec![
            review(1, by("ada", false)),
            review(2, by("eve", false)),
            review(3, by("ci", true)),
        ];
        watched.pull.threads = vec![
            thread_by(by("ada", false)),
            thread_by(by("eve", false)),
            thread_by(by("ci", true)),
        ];
        watched.writers = vec!["ada".to_owned(), "ci".to_owned()];
        watched.pull.merge = Mergeability::Conflicts;
    });
    sweep(&world, "w1");
    let shown = seen(&world);
    assert_eq!(
        (&*shown.reviews.changes.first, shown.reviews.threads),
        (&["ada".to_owned()][..], 1)
    );
    assert_eq!(shown.merge, Mergeability::Conflicts);
}

#[test]
fn closed_repository_is_not_polled() {
    let world = published();
    sweep(&world, "w1");
    world.with(|s| s.settings.repositories.close(None, "all"));
    for nth in 0..4 {
        passes(&world, POLL_MS);
        sweep(&world, &format!("c{nth}"));
    }
    assert_eq!(polls(&world), 1);
    assert!(matches!(sight(&world), CardSight::Unseen { .. }));
}

#[test]
fn crash_at_any_call_leaves_one_true_card() {
    let begun = || {
        let world = published();
        has_checks(&world, &[check("build", 1, CheckState::Failed)]);
        sweep(&world, "w1");
        passes(&world, QUIET_MS);
        world
    };
    let crashes = each_crash(begun, &work("w2", Work::Sweep), |world, crash| {
        passes(world, QUIET_MS);
        sweep(world, "w3");
        let posts = world.with(|s| s.posts.clone());
        let cards = posts.values().filter(|post| matches!(post, Post::PullRequest(_))).count();
        assert_eq!((cards, seen(world).checks.verdict), (1, CheckWord::Red), "{crash}");
    });
    assert!(crashes >= 8, "{crashes}");
}

#[test]
fn crash_at_the_end_tells_it_once() {
    let begun = || {
        let world = published();
        sweep(&world, "w1");
        passes(&world, POLL_MS);
        world.with(|s| s.pulls[0].1.state = PullRequestState::Merged);
        world
    };
    let crashes = each_crash(begun, &work("w2", Work::Sweep), |world, crash| {
        passes(world, QUIET_MS);
        sweep(world, "w3");
        assert_eq!(sight(world), CardSight::Ended(PullRequestState::Merged), "{crash}");
        let told = notices(world).into_iter().filter(|word| word.contains("was merged")).count();
        assert_eq!((told, watch(world)), (1, None), "{crash}");
    });
    assert!(crashes >= 8, "{crashes}");
}
