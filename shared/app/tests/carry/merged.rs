//! Work into which the branch was merged that it is to go into.

use bobbin_app::sandboxes::Moving;
use bobbin_core::protocol::event::Event;
use bobbin_core::records::carried::Carried;
use bobbin_core::records::publication::{Outgoing, OutgoingChange, OutgoingFile, PushEnd};

use bobbin_forge::git::ObjectId;
use bobbin_forge::outgoing::{self, Compared, NotOutgoing};
use bobbin_forge::{RepositoryAt, RepositoryId, RepositoryName};

use super::carried;
use super::forge::Place;
use super::sandbox::Carrier;

async fn read(place: &Place, carrier: &Carrier, there: &Carried) -> Outgoing {
    let read =
        carrier.sandboxes.read_outgoing(&place.forge, carrier.target(), there, (0, None)).await;
    match read.unwrap() {
        Event::OutgoingRead(read) => read,
        other => panic!("{other:?}"),
    }
}

/// The work is read and pushed.
async fn pushed(
    place: &Place,
    carrier: &Carrier,
    there: &Carried,
    old: Option<&str>,
) -> (String, Vec<OutgoingFile>, PushEnd) {
    let Outgoing::Ready { commit, files, .. } = read(place, carrier, there).await else {
        panic!("no work");
    };
    let moving = Moving { branch: "bobbin/work-1", old, new: &commit, follows: None };
    let end = carrier.sandboxes.push_outgoing(&place.forge, carrier.target(), there, moving).await;
    match end.unwrap() {
        Event::Pushed(end) => (commit, files, end),
        other => panic!("{other:?}"),
    }
}

fn file(path: &str, how: OutgoingChange) -> OutgoingFile {
    OutgoingFile { path: path.to_owned(), how }
}

/// Main goes on with a branch that began before the commit that was brought, and with a workflow.
fn main_goes_on(place: &Place, name: &str) {
    place.sh(&format!("git checkout -q -b side-{name} main~1 && echo {name} >{name}.txt"));
    place.commit("Side");
    place.sh(&format!("git checkout -q main && git merge -q --no-ff --no-edit side-{name}"));
    place.sh(&format!(
        "mkdir -p .github/workflows && echo 'on: push' >.github/workflows/{name}.yml"
    ));
    place.commit("Workflow");
    place.push("main");
}

async fn bring(place: &Place, carrier: &Carrier, there: &Carried) {
    let brought =
        carrier.sandboxes.bring_named(&place.forge, carrier.target(), there, "main").await;
    assert!(brought.unwrap().is_some());
    carrier.sh("git fetch -q && git merge -q --no-edit origin/main");
}

#[tokio::test(flavor = "multi_thread")]
async fn merged_base_is_not_the_works() {
    let place = Place::small().await.filled(3, 100);
    let carrier = Carrier::new();
    let (there, _) = carried(carrier.carry(&place).await);
    carrier.sh("echo work >work.txt && git add . && git commit -q -m Work");
    let (first, files, end) = pushed(&place, &carrier, &there, None).await;
    let added = [file("work.txt", OutgoingChange::Added)];
    assert_eq!((&*files, end), (&added[..], PushEnd::Done { changed: Vec::new() }));

    main_goes_on(&place, "one");
    bring(&place, &carrier, &there).await;
    let (second, files, end) = pushed(&place, &carrier, &there, Some(&first)).await;
    assert_eq!((&*files, end), (&added[..], PushEnd::Done { changed: Vec::new() }));

    // Once more, with work: what has changed since the push before is the work's alone.
    main_goes_on(&place, "two");
    bring(&place, &carrier, &there).await;
    carrier.sh("echo more >>work.txt");
    let (_, files, end) = pushed(&place, &carrier, &there, Some(&second)).await;
    let changed = vec![file("work.txt", OutgoingChange::Modified)];
    assert_eq!((&*files, end), (&added[..], PushEnd::Done { changed }));
    place.pull("bobbin/work-1");
    assert_eq!(place.sh("cat work.txt two.txt"), "work\nmore\ntwo\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn older_commit_of_the_base_is_not_believed() {
    let place = Place::small().await.filled(3, 100);
    let carrier = Carrier::new();
    let (there, _) = carried(carrier.carry(&place).await);
    // The files of an older commit, with one of its own: everything since would be undone, unlisted.
    carrier.sh("git read-tree -u --reset HEAD~2 && echo work >work.txt && git add . && git commit -q -m Work");
    let honest = read(&place, &carrier, &there).await;
    let Outgoing::Ready { files, .. } = honest else { panic!("{honest:?}") };
    assert!(files.len() > 1, "{files:?}");
    let work: ObjectId = carrier.sh("git rev-parse HEAD").trim().parse().unwrap();
    let older: ObjectId = carrier.sh("git rev-parse HEAD~3").trim().parse().unwrap();
    let base: ObjectId = there.base.as_deref().unwrap().parse().unwrap();
    carrier.sh(&format!("printf '{work}\n^{base}\n' | git pack-objects -q --revs --stdout --no-reuse-delta --window=0 >../pack"));
    let pack = std::fs::read(carrier.folder.root.path().join("pack")).unwrap();
    let (owner, name) = there.repository.name.split_once('/').unwrap();
    let at = RepositoryAt {
        installation: there.repository.installation,
        repository: RepositoryId(there.repository.id),
        name: RepositoryName::new(owner, name).unwrap(),
    };
    let compared = Compared { base, from: older, into: Some(base), since: None };
    let believed = outgoing::read(&place.forge, &at, &compared, &work, pack).await;
    assert_eq!(believed.unwrap_err(), NotOutgoing::Refused(outgoing::elsewhere(&base)));
}

#[tokio::test(flavor = "multi_thread")]
async fn undone_work_of_a_person_is_listed() {
    let place = Place::small().await.filled(3, 100);
    let carrier = Carrier::new();
    let (there, _) = carried(carrier.carry(&place).await);
    carrier.sh("echo work >work.txt && git add . && git commit -q -m Work");
    pushed(&place, &carrier, &there, None).await;
    place.pull("bobbin/work-1");
    place.sh("echo theirs >README.md");
    place.commit("By a person");
    place.push("bobbin/work-1");
    let theirs = place.sh("git rev-parse HEAD").trim().to_owned();
    let (sandboxes, forge) = (&carrier.sandboxes, &place.forge);
    let brought = sandboxes.bring_named(forge, carrier.target(), &there, "bobbin/work-1").await;
    assert!(brought.unwrap().is_some());
    carrier.sh("git fetch -q && git merge -q -s ours --no-edit origin/bobbin/work-1");
    let read = sandboxes.read_outgoing(forge, carrier.target(), &there, (0, Some(&theirs))).await;
    let Event::OutgoingRead(Outgoing::Ready { files, .. }) = read.unwrap() else { panic!() };
    let paths: Vec<&str> = files.iter().map(|file| &*file.path).collect();
    assert_eq!(paths, ["README.md", "work.txt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pretended_base_hides_nothing() {
    let place = Place::small().await.filled(3, 100);
    let carrier = Carrier::new();
    let (there, _) = carried(carrier.carry(&place).await);
    carrier.sh("echo hidden >hidden.txt && git add . && git commit -q -m Hidden");
    carrier.sh("git update-ref refs/remotes/origin/main HEAD && echo work >work.txt");
    let refused = read(&place, &carrier, &there).await;
    let Outgoing::Refused { why } = refused else { panic!("{refused:?}") };
    assert!(why.starts_with("The work does not follow "), "{why}");
}
