//! Repositories of the laptop's forge, carried into a folder by real git.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::Ordering;

use bobbin_app::sandboxes::Moving;
use bobbin_core::protocol::event::{Event, NotCloned};
use bobbin_core::records::carried::{Carried, LeftOut};
use bobbin_core::records::publication::{Outgoing, PushEnd};

use self::forge::Place;
use self::sandbox::Carrier;

#[path = "carry/beside.rs"]
mod beside;
#[path = "carry/forge.rs"]
mod forge;
#[path = "carry/merged.rs"]
mod merged;
#[path = "carry/moved.rs"]
mod moved;
#[path = "carry/odd.rs"]
mod odd;
#[path = "carry/pulls.rs"]
mod pulls;
#[path = "carry/sandbox.rs"]
mod sandbox;
#[path = "carry/submodules.rs"]
mod submodules;

/// What was carried, and how many commits of it if not all.
fn carried(event: Event) -> (Carried, Option<u64>) {
    match event {
        Event::Carried { carried, left_out } => {
            let LeftOut { submodules, named, large, history, .. } = *left_out;
            assert_eq!((submodules, named, large), (Vec::new(), Vec::new(), Vec::new()));
            (carried, history)
        }
        other => panic!("{other:?}"),
    }
}

fn refused(event: Event) -> String {
    match event {
        Event::NotCloned { why: NotCloned::Forge { why } } => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_repository_comes_once() {
    let place = Place::small().await.filled(3, 100);
    let carrier = Carrier::new();
    let (first, history) = carried(carrier.carry(&place).await);
    assert_eq!(first.base.as_deref(), Some(place.sh("git rev-parse HEAD").trim()));
    assert_eq!(history, None);
    assert_eq!(carrier.sh("git status --porcelain --branch"), "## main...origin/main\n");
    assert_eq!(carrier.sh("git log --format=%s"), "Commit 2\nCommit 1\nCommit 0\n");
    assert_eq!(
        carrier.sh("git remote get-url --push origin; git config remote.origin.url").lines().last(),
        Some(&*place.repository.address)
    );
    assert_eq!(
        carrier
            .sh("git fetch && git pull -q && git fsck 2>&1; git push 2>&1 || true")
            .lines()
            .last()
            .unwrap(),
        format!("Everything up-to-date")
    );
    let put = carrier.folder.put.load(Ordering::SeqCst);

    // A repeat finds what stands there, though the branch has moved since.
    carrier.sh("echo mine >README.md");
    std::fs::write(place.work.path().join("README.md"), "later\n").unwrap();
    place.commit("Later");
    place.push("main");
    assert_eq!(carried(carrier.carry(&place).await), (first, None));
    assert_eq!(carrier.sh("cat README.md"), "mine\n");
    assert_eq!(carrier.folder.put.load(Ordering::SeqCst), put);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_history_comes_as_two_packs() {
    let place = Place::small().await.filled(60, 4_000);
    let carrier = Carrier::new();
    let (carried, history) = carried(carrier.carry(&place).await);
    assert_eq!(history, Some(50));
    let whole_newest_before = [(None, false), (Some(1), false), (Some(50), true)];
    assert_eq!(place.forge.fetched(), whole_newest_before);

    // Whatever people do in a checkout works.
    assert_eq!(carrier.sh("git status --porcelain --branch"), "## main...origin/main\n");
    assert_eq!(carrier.sh("git rev-list --count HEAD"), "50\n");
    assert_eq!(carrier.sh("git log -p --format=%s -- README.md | grep -c ^+[0-9]"), "50\n");
    carrier.sh("git diff HEAD~49 && git show HEAD~48 && git blame README.md && git fetch && git pull && git gc -q && git fsck --strict");
    carrier.sh("git stash list && git worktree add -q ../beside && git -C ../beside revert --no-edit HEAD~3 2>&1 || true");

    // So does publishing, and what somebody else puts on the branch comes in.
    carrier.sh("echo work >work.txt && git add . && git commit -q -m Work");
    let (sandboxes, forge) = (&carrier.sandboxes, &place.forge);
    let read = sandboxes.read_outgoing(forge, carrier.target(), &carried, (0, None)).await.unwrap();
    let Event::OutgoingRead(Outgoing::Ready { commit, subject, files, .. }) = read else {
        panic!("{read:?}");
    };
    assert_eq!((subject.as_str(), files.len()), ("Work", 1));
    let first = Moving { branch: "bobbin/work-1", old: None, new: &commit, follows: None };
    let pushed = sandboxes.push_outgoing(forge, carrier.target(), &carried, first).await.unwrap();
    let Event::Pushed(PushEnd::Done { changed }) = pushed else { panic!("{pushed:?}") };
    // Since what the branch was before: nothing, as it was not there.
    assert_eq!(changed, []);
    place.pull("bobbin/work-1");
    assert_eq!(place.sh("cat work.txt && git rev-list --count HEAD"), "work\n61\n");
    // A file that the sandbox's part of the history never had in this form.
    place.sh("git checkout -q HEAD~58 -- noise.bin");
    place.commit("By a person");
    place.push("bobbin/work-1");
    let theirs = place.sh("git rev-parse HEAD").trim().to_owned();
    carrier.sh("echo more >>work.txt && git commit -q -a -m More");
    let new = carrier.sh("git rev-parse HEAD").trim().to_owned();
    let next = Moving { branch: "bobbin/work-1", old: Some(&commit), new: &new, follows: None };
    let pushed = sandboxes.push_outgoing(forge, carrier.target(), &carried, next).await.unwrap();
    assert_eq!(pushed, Event::Pushed(PushEnd::Theirs { at: theirs.clone() }));
    carrier.sh("git fetch -q && git merge -q --no-edit origin/bobbin/work-1 && git fsck --strict");
    assert_eq!(carrier.sh("git rev-parse HEAD^2").trim(), theirs);
}

#[tokio::test(flavor = "multi_thread")]
async fn surely_large_history_is_not_tried_whole() {
    let place = Place::small().await.filled(60, 4_000);
    let carrier = Carrier::new();
    let event = carrier.carry_of(&place, 250 * 1024).await.unwrap();
    assert_eq!(carried(event).1, Some(50));
    assert_eq!(place.forge.fetched(), [(Some(1), false), (Some(50), true)]);
    // An estimate counts more than the pack: the history is whole where it fits.
    let place = Place::small().await.filled(3, 4_000);
    let event = Carrier::new().carry_of(&place, 250 * 1024).await.unwrap();
    assert_eq!(carried(event).1, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn newest_commit_comes_where_more_has_no_room() {
    let place = Place::small().await.filled(20, 40_000);
    let carrier = Carrier::new();
    assert_eq!(carried(carrier.carry(&place).await).1, Some(1));
    assert_eq!(carrier.sh("git log --format=%s && git status --porcelain"), "Commit 19\n");
    carrier.sh("git fetch && git fsck --strict && git commit -q --allow-empty -m Work");
}

#[tokio::test(flavor = "multi_thread")]
async fn too_large_files_are_refused_in_words() {
    let place = Place::small().await.filled(1, 600_000);
    let carrier = Carrier::new();
    assert_eq!(
        refused(carrier.carry(&place).await),
        "its newest files alone are larger than 500 MB, the most that is carried."
    );
    assert!(!carrier.folder.root.path().join("project").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_carriage_begins_anew() {
    let place = Place::small().await.filled(60, 4_000);
    let carrier = Carrier::new();
    carrier.folder.until_failure.store(1, Ordering::SeqCst);
    let failure = carrier.carry_of(&place, 0).await.unwrap_err();
    assert_eq!(failure.to_string(), "it fell over");
    assert!(!carrier.folder.root.path().join("project").exists());
    assert_eq!(carried(carrier.carry(&place).await).1, Some(50));
    let left = sandbox_files(&carrier);
    assert_eq!(left, ["origin.git"]);
}

/// What is left of a carriage beside the checkout.
fn sandbox_files(carrier: &Carrier) -> Vec<String> {
    let listed = forge::sh(carrier.folder.root.path(), "ls .bobbin");
    listed.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_thousand_files_come() {
    let place = Place::full().await;
    place.import(
        r#"printf 'commit refs/heads/main\ncommitter Ada <ada@example.com> 1 +0000\ndata 4\nMany'
        awk 'BEGIN { for (n = 10000; n < 40000; n++)
            printf "\nM 644 inline src/%d/%d.txt\ndata 5\n%d", n / 100, n % 100, n }'"#,
    );
    let carrier = Carrier::new();
    assert_eq!(carried(carrier.carry(&place).await).1, None);
    assert_eq!(carrier.sh("git status --porcelain; git ls-files | wc -l"), "30000\n");
    assert_eq!(carrier.sh("cat src/123/45.txt"), "12345");
}

#[tokio::test(flavor = "multi_thread")]
async fn any_ref_comes_or_is_named() {
    let place = Place::small().await.filled(3, 100);
    place.sh("git branch release/2 HEAD~1 && git tag v1 HEAD~2 && git tag -a -m Two v2 HEAD~1");
    place.push_refs("release/2 v1 v2");
    let at = |name: &str| place.sh(&format!("git rev-parse {name}^{{commit}}")).trim().to_owned();

    let carrier = Carrier::new();
    let (there, _) = carried(carrier.carry_at(&place, "release/2").await);
    assert_eq!((there.base, &*there.repository.branch), (Some(at("release/2")), "release/2"));
    let status = "git status --porcelain --branch";
    assert_eq!(carrier.sh(status), "## release/2...origin/release/2\n");

    let commit = at("HEAD~1");
    for name in ["v1", "v2", &commit] {
        let carrier = Carrier::new();
        let (there, _) = carried(carrier.carry_at(&place, name).await);
        // A pull request cannot go to a tag.
        assert_eq!((there.base.clone(), &*there.repository.branch), (Some(at(name)), "main"));
        assert_eq!(carrier.sh(status), "## HEAD (no branch)\n");
        carrier.sh("git fetch -q && git fsck --strict && echo work >work.txt");
        let (sandboxes, forge) = (&carrier.sandboxes, &place.forge);
        let read =
            sandboxes.read_outgoing(forge, carrier.target(), &there, (0, None)).await.unwrap();
        assert!(matches!(read, Event::OutgoingRead(Outgoing::Ready { .. })), "{read:?}");
        assert_eq!(carried(carrier.carry_at(&place, name).await).0, there, "a repeat");
    }

    for name in ["release", "v9", &"1".repeat(40)] {
        let carrier = Carrier::new();
        let event = carrier.carry_at(&place, name).await;
        assert_eq!(event, Event::NotCloned { why: NotCloned::NoRef }, "{name}");
        assert!(!carrier.folder.root.path().join("project").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_repository_comes_without_a_base() {
    let place = Place::small().await;
    let carrier = Carrier::new();
    let (there, _) = carried(carrier.carry(&place).await);
    assert_eq!(there.base, None);
    assert_eq!(carrier.sh("git log --format=%s && git branch"), "Start\n* main\n");
    assert_eq!(carried(carrier.carry(&place).await).0, there);
    assert_eq!(place.forge.fetched(), []);
}

/// With the product's own bounds: 110 MB that cannot be made smaller.
#[tokio::test(flavor = "multi_thread")]
async fn hundred_megabytes_are_the_bound_of_a_whole_history() {
    let place = Place::full().await.filled(55, 2 * 1024 * 1024);
    let carrier = Carrier::new();
    assert_eq!(carried(carrier.carry(&place).await).1, Some(50));
    assert_eq!(place.forge.fetched().len(), 3);
    carrier.sh("git fsck --strict && git diff --stat HEAD~49");
}
