//! What a person does with the thread's open pull request, in their own name.

use super::publish::{FIRST, act, holds, notices, press, published, show};
use super::*;
use bobbin_core::records::publication::PullRequestState;
use bobbin_core::records::watch::CardSight;

use super::watch::{POLL_MS, hint, polls, seen, sight, sweep, watch};

/// A watched pull request after this press with this result.
fn pressed(which: PullRequestAct, end: ActEnd) -> Fake {
    let world = published();
    sweep(&world, "w1");
    world.with(|s| s.act_end = Some(end));
    deliver_until_done(&world, &act("a1", which, FIRST), 1);
    world
}

fn last_notice(world: &Fake) -> String {
    notices(world).pop().unwrap_or_default()
}

#[test]
fn act_is_bound_to_person_and_head() {
    let world = pressed(PullRequestAct::MarkReady, ActEnd::Done);
    let made = (PullRequestAct::MarkReady, FIRST.to_owned(), "ann".to_owned());
    assert_eq!(world.with(|s| s.acts.clone()), [made]);
    assert!(
        notices(&world).contains(&"ann marked pull request #1 as ready for review.".to_owned())
    );
    assert_eq!(polls(&world), 2, "the card shows it at once");
    // The message comes again.
    deliver_until_done(&world, &act("a1", PullRequestAct::MarkReady, FIRST), 2);
    assert_eq!(world.with(|s| s.acts.len()), 1);
}

#[test]
fn merge_is_told_once_and_ends_the_watch() {
    let world = pressed(PullRequestAct::Merge, ActEnd::Done);
    assert_eq!(sight(&world), CardSight::Ended(PullRequestState::Merged));
    assert_eq!(watch(&world), None);
    let told = notices(&world).into_iter().filter(|notice| notice.contains("merged"));
    assert_eq!(told.count(), 1, "{:?}", notices(&world));
    deliver_until_done(&world, &act("a2", PullRequestAct::Merge, FIRST), 1);
    assert_eq!(
        last_notice(&world),
        "Nothing was done: this thread has no open pull request any more."
    );
}

#[test]
fn refused_acts_say_why() {
    for (end, said) in [
        (ActEnd::Queued, "ann put pull request #1 into the merge queue."),
        (
            ActEnd::HeadMoved,
            "Nothing was done: somebody has pushed to pull request #1 since its card showed it. The card shows the newest commit now: press again.",
        ),
        (
            ActEnd::NotLinked { why: "You have not connected it.".to_owned() },
            "Nothing was done: you need a GitHub account of your own. You have not connected it. `/github connect` connects it; then press again.",
        ),
        (
            ActEnd::Refused { why: "A review is missing.".to_owned() },
            "Nothing was done: GitHub refused it: A review is missing.",
        ),
    ] {
        let world = pressed(PullRequestAct::Merge, end.clone());
        assert!(notices(&world).contains(&said.to_owned()), "{end:?}: {:?}", notices(&world));
        assert!(watch(&world).is_some(), "{end:?}");
    }
}

/// The branch after **Update branch**, with the commit that the next push must follow.
fn updated(late_ms: u64) -> Fake {
    let world = pressed(PullRequestAct::UpdateBranch, ActEnd::Done);
    let told = "ann had the base merged into the branch of pull request #1. Before the next push, ask the agent to fetch and merge it.";
    assert!(notices(&world).contains(&told.to_owned()), "{:?}", notices(&world));
    world.with(|s| {
        let branch = s.pulls[0].0.clone();
        s.theirs.insert(MERGED.to_owned());
        s.branches.insert(branch, MERGED.to_owned());
        s.now_ms += late_ms;
    });
    world
}

const MERGED: &str = "cccccccccccccccccccccccccccccccccccccccc";
const NEXT: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

#[test]
fn updated_branch_is_no_strangers() {
    let world = updated(1_000);
    hint(&world);
    assert_eq!((&*seen(&world).head, seen(&world).is_theirs), (MERGED, false));
    // The next push must follow it, and needs no second press.
    holds(&world, NEXT);
    deliver_until_done(&world, &show("p3"), 1);
    deliver_until_done(&world, &press("p4", NEXT), 1);
    let last = world.with(|s| s.pushes.last().cloned()).unwrap();
    assert_eq!((last.1.as_deref(), &*last.2), (Some(MERGED), NEXT));
    assert!(world.with(|s| s.over_theirs.is_empty()));
}

#[test]
fn push_before_update_is_seen_is_explained() {
    let world = updated(1_000);
    holds(&world, NEXT);
    deliver_until_done(&world, &show("p3"), 1);
    deliver_until_done(&world, &press("p4", NEXT), 1);
    let branch = world.with(|s| s.pulls[0].0.clone());
    let told = format!(
        "Nothing was pushed: Update branch has brought `{branch}` to cccccccccccc, and the sandbox has that now. Ask the agent to fetch and merge `origin/{branch}`, then press again."
    );
    assert!(notices(&world).contains(&told), "{:?}", notices(&world));
}

#[test]
fn head_long_after_an_update_is_a_strangers() {
    let world = updated(2 * POLL_MS);
    hint(&world);
    assert!(seen(&world).is_theirs);
}

#[test]
fn closed_repository_lets_nobody_act() {
    let world = published();
    sweep(&world, "w1");
    world.with(|s| s.act_end = Some(ActEnd::Done));
    world.with(|s| s.settings.repositories.close(None, "all"));
    deliver_until_done(&world, &act("a1", PullRequestAct::Merge, FIRST), 1);
    assert!(world.with(|s| s.acts.is_empty()));
    assert!(last_notice(&world).contains("is not open here any more"), "{:?}", notices(&world));
}
