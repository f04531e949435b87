//! Repositories carried beside a thread's own.

use bobbin_app::sandboxes::Moving;
use bobbin_core::protocol::event::{Event, NotCloned};
use bobbin_core::records::carried::{Carried, ForgeRepository};
use bobbin_core::records::publication::{Outgoing, PushEnd};

use super::carried;
use super::forge::Place;
use super::sandbox::Carrier;

const FOLDER: &str = ".bobbin/repositories/acme/lib";

/// A repository and another one of three commits, neither of them in the sandbox.
async fn two() -> (Place, ForgeRepository) {
    let place = Place::small().await;
    let lib = place.beside("lib", 3).await;
    place.sh("git checkout -q --orphan start && git rm -rfq . ; mkdir .bobbin; echo 'set-up: []' >.bobbin/environment.yaml; echo api >README.md");
    place.commit("Start");
    place.push("main");
    (place, lib)
}

async fn brought(place: &Place, carrier: &Carrier, lib: &ForgeRepository) -> Carried {
    let (there, _) = carried(carrier.carry_beside(&place.forge, lib, FOLDER).await);
    Carried { folder: Some(FOLDER.to_owned()), ..there }
}

#[tokio::test(flavor = "multi_thread")]
async fn repository_beside_is_a_checkout_of_its_own() {
    let (place, lib) = two().await;
    let carrier = Carrier::new();
    let (own, _) = carried(carrier.carry(&place).await);
    let there = brought(&place, &carrier, &lib).await;
    let in_lib = |script: &str| carrier.sh(&format!("cd {FOLDER} && {script}"));
    assert_eq!(in_lib("git status --porcelain --branch"), "## main...origin/main\n");
    assert_eq!(in_lib("git log --format=%s"), "Commit 2\nCommit 1\nCommit 0\n");
    assert_eq!(in_lib("git config remote.origin.url"), format!("{}\n", lib.address));
    assert_eq!(
        carrier.sh("git status --porcelain; git clean -ndx"),
        "Would skip repository .bobbin/repositories/acme/lib\n"
    );

    // What is done in one is not the other's work, and a repeat leaves it.
    in_lib("echo work >work.txt");
    assert_eq!(brought(&place, &carrier, &lib).await, there);
    let (sandboxes, forge) = (&carrier.sandboxes, &place.forge);
    let read = async |of: &Carried| {
        let read = sandboxes.read_outgoing(forge, carrier.target(), of, (0, None)).await.unwrap();
        let Event::OutgoingRead(outgoing) = read else { panic!("{read:?}") };
        outgoing
    };
    assert_eq!(read(&own).await, Outgoing::Unchanged);
    let Outgoing::Ready { commit, files, .. } = read(&there).await else { panic!("no work") };
    assert_eq!(files.iter().map(|file| &*file.path).collect::<Vec<_>>(), ["work.txt"]);
    let moving = Moving { branch: "bobbin/work-1", old: None, new: &commit, follows: None };
    let pushed = sandboxes.push_outgoing(forge, carrier.target(), &there, moving).await.unwrap();
    assert_eq!(pushed, Event::Pushed(PushEnd::Done { changed: Vec::new() }));
    let address = place.address_of("lib");
    let heads = place.sh(&format!("git ls-remote --heads '{address}' | cut -f 2"));
    assert_eq!(heads, "refs/heads/bobbin/work-1\nrefs/heads/main\n");
    assert_eq!(
        place.sh(&format!("git ls-remote --heads '{}' | cut -f 2", place.address_of("api"))),
        "refs/heads/main\n"
    );

    // The thread's own goes on from where its branch is, whatever stands beside it.
    place.sh("echo later >later.txt");
    place.commit("By a person");
    place.push("main");
    let newest = place.sh("git rev-parse HEAD").trim().to_owned();
    let moved = sandboxes.move_checkout(forge, carrier.target(), &own, None).await;
    assert_eq!(moved.unwrap(), Event::CheckoutMoved { base: Some(newest) });
    assert_eq!(in_lib("cat work.txt"), "work\n");

    // Once it is merged, this checkout goes on to the newest commit.
    place.sh(&format!("git fetch -q '{address}' bobbin/work-1 && git push -q '{address}' FETCH_HEAD:refs/heads/main"));
    let moved = sandboxes.move_checkout(forge, carrier.target(), &there, Some(&commit)).await;
    assert_eq!(moved.unwrap(), Event::CheckoutMoved { base: Some(commit) });
    assert_eq!(
        in_lib("git status --porcelain --branch; cat work.txt"),
        "## main...origin/main\nwork\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_the_repository_leads_it_elsewhere() {
    for own in [
        "rm -rf .bobbin && ln -s /tmp .bobbin",
        "ln -s .. .bobbin/repositories",
        "echo file >.bobbin/repositories",
        "mkdir -p .bobbin/repositories/acme && ln -s ../../.. .bobbin/repositories/acme/lib",
        "mkdir -p .bobbin/repositories/acme/lib && echo own >.bobbin/repositories/acme/lib/README.md",
    ] {
        let (place, lib) = two().await;
        place.sh(own);
        place.commit("Odd");
        place.push("main");
        let carrier = Carrier::new();
        carried(carrier.carry(&place).await);
        let event = carrier.carry_beside(&place.forge, &lib, FOLDER).await;
        let seen = "the repository has its own .bobbin/repositories/acme/lib".to_owned();
        assert_eq!(event, Event::NotCloned { why: NotCloned::Other { seen } }, "{own}");
        assert_eq!(carrier.sh("git status --porcelain; cat README.md"), "api\n", "{own}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repository_beside_is_never_in_the_threads_own_work() {
    let (place, lib) = two().await;
    let carrier = Carrier::new();
    let (own, _) = carried(carrier.carry(&place).await);
    brought(&place, &carrier, &lib).await;
    let read = async || {
        let (sandboxes, target) = (&carrier.sandboxes, carrier.target());
        let read = sandboxes.read_outgoing(&place.forge, target, &own, (0, None)).await;
        let Event::OutgoingRead(outgoing) = read.unwrap() else { panic!("not read") };
        outgoing
    };
    // A file of the repository outranks what its checkout ignores.
    carrier.sh("printf '.*\\n!.bobbin/\\n!.gitignore\\n' >.gitignore");
    let Outgoing::Ready { files, .. } = read().await else { panic!("no work") };
    assert_eq!(files.iter().map(|file| &*file.path).collect::<Vec<_>>(), [".gitignore"]);
    carrier.sh("git add -A 2>/dev/null && git commit -qm All");
    let Outgoing::Refused { why } = read().await else { panic!("it was taken") };
    assert!(why.starts_with("A repository beside this one is in its commits"), "{why}");
}
