//! Repositories of a forge: who may use which.

use super::choice::{nothing_ran, reason};
use super::*;
use bobbin_core::records::carried::Submodule;
use bobbin_core::records::control::Operation;

pub(super) fn asked(id: &str, repo: &str) -> Message {
    let prompt = Prompt {
        text: "do it".into(),
        by: person("ann"),
        wants: Selection { repo: Some(repo.to_owned()), ..Selection::default() },
        membership: Membership { channel: "10".to_owned(), ..Membership::default() },
        ..Prompt::default()
    };
    work(id, Work::Prompt(prompt))
}

pub(super) fn repository(name: &str, is_private: bool) -> ForgeRepository {
    ForgeRepository {
        installation: 7,
        id: 42,
        name: name.to_owned(),
        address: format!("https://git.example.com/{name}"),
        is_private,
        branch: "main".to_owned(),
    }
}

/// A forge in which the operator has bound acme to the tenant, and which has this repository.
pub(super) fn world(found: FoundRepository) -> Fake {
    let world = Fake::new();
    world.with(|s| {
        s.forge = Some(BoundForge {
            base: "https://git.example.com".to_owned(),
            owners: BTreeSet::from(["acme".to_owned()]),
            ..BoundForge::default()
        });
        s.at_forge = Some(found);
    });
    world
}

fn private() -> Fake {
    world(FoundRepository::Here { repository: repository("acme/api", true), size_kb: 0 })
}

pub(super) fn open(world: &Fake, channel: Option<&str>, name: &str) {
    world.with(|s| s.settings.repositories.open(channel, name.to_owned()));
}

fn brought(world: &Fake) -> (Vec<String>, Vec<String>) {
    world.with(|s| (s.clones.values().cloned().collect(), s.carried.values().cloned().collect()))
}

#[test]
fn opened_private_repository_is_carried() {
    for channel in [None, Some("10")] {
        let world = private();
        open(&world, channel, "acme/api");
        deliver_until_done(&world, &asked("m1", "Acme/api"), 1);
        assert_eq!(outcomes(&world), [Outcome::Answered]);
        assert_eq!(brought(&world), (vec![], vec!["acme/api".to_owned()]));
        let carried = record(&world).sandbox.project.carried.unwrap();
        assert_eq!(carried.repository, repository("acme/api", true));
        // The next turn uses what is there, and nobody is asked again.
        deliver_until_done(&world, &asked("m2", "acme/api"), 1);
        assert_eq!(world.with(|s| s.carried.len()), 1);
    }
}

#[test]
fn wanted_ref_is_carried_or_named() {
    let world = private();
    open(&world, None, "acme/api");
    deliver_until_done(&world, &asked("m1", "Acme/api@release-2"), 1);
    assert_eq!(brought(&world), (vec![], vec!["acme/api@release-2".to_owned()]));
    deliver_until_done(&world, &asked("m2", "acme/api"), 1);
    assert_eq!(
        reason(&world),
        "This thread's sandbox works on Acme/api@release-2 and cannot change to acme/api. Use reset for a fresh sandbox, or name the repository in another thread."
    );
    let world = private();
    open(&world, None, "acme/api");
    world.with(|s| s.not_cloned = Some(NotCloned::NoRef));
    deliver_until_done(&world, &asked("m1", "acme/api@v9"), 1);
    assert_eq!(
        reason(&world),
        "The repository acme/api@v9 could not be cloned: it has no branch, tag or commit v9. Check the name; a commit needs all of its 40 digits. Nothing was run."
    );
}

#[test]
fn private_repository_stays_closed_elsewhere() {
    for (channel, name) in [(Some("11"), "acme/api"), (None, "acme/web"), (Some("10"), "other/api")]
    {
        let world = private();
        open(&world, channel, name);
        deliver_until_done(&world, &asked("m1", "acme/api"), 1);
        assert_eq!(
            reason(&world),
            "The repository acme/api could not be cloned: it is private, and no manager has opened it here. A manager can open it in Bobbin's settings. Nothing was run."
        );
        assert_eq!(brought(&world), (vec![], vec![]));
        nothing_ran(&world);
        assert_eq!(record(&world).sandbox.phase, Phase::Destroyed);
    }
}

#[test]
fn renamed_repository_counts_by_its_new_name() {
    let world =
        world(FoundRepository::Here { repository: repository("other/api", true), size_kb: 0 });
    open(&world, None, "all");
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    assert!(reason(&world).contains("no manager has opened it here"), "{}", reason(&world));
    assert_eq!(brought(&world), (vec![], vec![]));
}

#[test]
fn others_repositories_are_cloned_inside() {
    let public = FoundRepository::Here { repository: repository("acme/api", false), size_kb: 0 };
    for (found, repo) in [
        (FoundRepository::NotInstalled, "acme/api"),
        (public, "acme/api"),
        (
            FoundRepository::Here { repository: repository("acme/api", true), size_kb: 0 },
            "else/api",
        ),
        (
            FoundRepository::Here { repository: repository("acme/api", true), size_kb: 0 },
            "https://elsewhere.example/acme/api",
        ),
    ] {
        let world = world(found);
        deliver_until_done(&world, &asked("m1", repo), 1);
        assert_eq!(outcomes(&world), [Outcome::Answered]);
        assert_eq!(brought(&world), (vec![repo.to_owned()], vec![]));
        assert_eq!(record(&world).sandbox.project.carried, None);
    }
}

#[test]
fn forges_refusal_is_told_in_its_words() {
    let why = "the installation is suspended: https://git.example.com/i/7.".to_owned();
    let world = world(FoundRepository::Refused { why });
    open(&world, None, "all");
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    assert_eq!(
        reason(&world),
        "The repository acme/api was not fetched: the installation is suspended: https://git.example.com/i/7. Nothing was run."
    );
    nothing_ran(&world);
}

#[test]
fn private_repository_is_never_shared() {
    let world = private();
    open(&world, None, "all");
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    let by = person("ann");
    let name = Work::Name { name: "web".parse().unwrap(), by, membership: Membership::default() };
    deliver_until_done(&world, &work("n1", name), 1);
    assert_eq!(record(&world).sandbox.sharing.name, None);
    let want = Operation::Snapshot;
    deliver_until_done(&world, &work("o1", Work::Operate { want, by: None }), 1);
    let operated = record(&world).sandbox.history.operated.pop().unwrap();
    assert_eq!(operated.trouble.as_deref(), Some(words::PRIVATE_NOT_KEPT));
}

fn submodule(path: &str, address: &str) -> Submodule {
    let commit = "c".repeat(40);
    Submodule { path: path.to_owned(), address: address.to_owned(), commit }
}

/// A private repository with these submodules; all of acme's are open.
fn with_submodules(named: &[(&str, &str)], choice: Option<&str>) -> Fake {
    let world = private();
    open(&world, None, "all");
    world.with(|s| {
        s.settings.defaults.submodules = choice.map(str::to_owned);
        s.left_out.submodules = named.iter().map(|(path, _)| (*path).to_owned()).collect();
        s.left_out.named = named.iter().map(|(path, address)| submodule(path, address)).collect();
    });
    world
}

fn at_forge(world: &Fake, name: &str, change: impl FnOnce(&mut ForgeRepository)) {
    let mut repository = repository(name, true);
    change(&mut repository);
    let found = FoundRepository::Here { repository, size_kb: 0 };
    world.with(|s| s.at_forge_too.insert(name.to_owned(), found));
}

#[test]
fn submodules_come_where_somebody_chose_so() {
    for choice in [None, Some("no"), Some("yes")] {
        let world = with_submodules(&[("lib", "../lib.git")], choice);
        at_forge(&world, "acme/lib", |_| ());
        world.with(|s| {
            s.left_out_too.insert(
                "lib".to_owned(),
                LeftOut {
                    submodules: vec!["vendor".to_owned()],
                    large: vec!["a.bin".to_owned()],
                    beside: Vec::new(),
                    history: Some(50),
                    is_new: true,
                    is_prebuilt: false,
                    named: vec![submodule("vendor", "../vendor")],
                },
            )
        });
        deliver_until_done(&world, &asked("m1", "acme/api"), 1);
        assert_eq!(outcomes(&world), [Outcome::Answered]);
        let left_out = record(&world).sandbox.project.left_out.unwrap();
        let (asked, carried) = world.with(|s| (s.asked_forge.clone(), s.submodules.clone()));
        if choice == Some("yes") {
            assert_eq!(asked, ["acme/api", "acme/lib"]);
            assert_eq!(carried, [format!("lib: acme/lib@{}", "c".repeat(40))]);
            assert_eq!(
                left_out,
                "submodules (lib/vendor, lib: all but 50 commits) and Git LFS files (lib/a.bin)"
            );
        } else {
            assert_eq!((asked, carried), (vec!["acme/api".to_owned()], vec![]));
            assert_eq!(left_out, "submodules (lib)");
        }
        // The next turn uses what is there.
        deliver_until_done(&world, &asked_again(), 1);
        assert!(world.with(|s| s.submodules.len()) <= 1);
    }
}

fn asked_again() -> Message {
    asked("m2", "acme/api")
}

#[test]
fn submodule_needs_the_right_of_a_repository() {
    let not_open = "submodules (lib: it is not open here)";
    let of = |installation| move |found: &mut ForgeRepository| found.installation = installation;
    let refused =
        FoundRepository::Refused { why: "it is suspended: https://x.example.".to_owned() };
    for (address, opened, found, words) in [
        ("https://elsewhere.example/acme/lib", "all", None, "submodules (lib: it is elsewhere)"),
        ("https://x:y@git.example.com/acme/lib", "all", None, "submodules (lib: it is elsewhere)"),
        ("../../other/lib", "all", None, "submodules (lib: it is elsewhere)"),
        ("../lib", "acme/web", Some("here"), not_open),
        ("../lib", "all", Some("another installation"), not_open),
        ("../lib", "all", Some("none"), not_open),
        ("../lib", "acme/web", Some("refused"), not_open),
        ("../lib", "all", Some("refused"), "submodules (lib: it is suspended: https://x.example)"),
    ] {
        let world = with_submodules(&[("lib", address)], Some("yes"));
        world.with(|s| {
            s.settings.repositories = Default::default();
            s.settings.repositories.open(None, "acme/api".to_owned());
            s.settings.repositories.open(None, opened.to_owned());
        });
        match found {
            Some("here") => at_forge(&world, "acme/lib", |_| ()),
            Some("another installation") => at_forge(&world, "acme/lib", of(8)),
            Some("refused") => {
                world.with(|s| s.at_forge_too.insert("acme/lib".to_owned(), refused.clone()));
            }
            _ => {
                let none = FoundRepository::NotInstalled;
                world.with(|s| s.at_forge_too.insert("acme/lib".to_owned(), none));
            }
        }
        deliver_until_done(&world, &asked("m1", "acme/api"), 1);
        assert_eq!(outcomes(&world), [Outcome::Answered], "{address} {found:?}");
        assert_eq!(
            record(&world).sandbox.project.left_out.as_deref(),
            Some(words),
            "{address} {found:?}"
        );
        assert_eq!(world.with(|s| s.submodules.clone()), Vec::<String>::new());
    }
}

#[test]
fn private_submodule_stays_out_of_a_public_repository() {
    let world = with_submodules(&[("lib", "../lib"), ("open", "../open")], Some("yes"));
    let public = FoundRepository::Here { repository: repository("acme/api", false), size_kb: 0 };
    world.with(|s| s.at_forge = Some(public));
    at_forge(&world, "acme/lib", |_| ());
    at_forge(&world, "acme/open", |found| found.is_private = false);
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    assert_eq!(
        record(&world).sandbox.project.left_out.as_deref(),
        Some("submodules (lib: it is private in a public repository)")
    );
    assert_eq!(world.with(|s| s.submodules.len()), 1);
}

#[test]
fn submodules_are_bounded_and_failures_told() {
    let paths: Vec<String> = (0..10).map(|n| format!("s{n}")).collect();
    let named: Vec<(&str, &str)> = paths.iter().map(|path| (&**path, "../lib")).collect();
    let world = with_submodules(&named, Some("yes"));
    at_forge(&world, "acme/lib", |_| ());
    world.with(|s| {
        s.left_out.submodules.push("odd".to_owned());
        s.not_cloned_too.insert("s1".to_owned(), NotCloned::NoRef);
        let why = "its newest files alone are larger than 500 MB, the most that is carried.";
        s.not_cloned_too.insert("s2".to_owned(), NotCloned::Forge { why: why.to_owned() });
    });
    deliver_until_done(&world, &asked("m1", "acme/api"), 1);
    assert_eq!(outcomes(&world), [Outcome::Answered]);
    assert_eq!(world.with(|s| s.submodules.len()), 8);
    assert_eq!(
        record(&world).sandbox.project.left_out.as_deref(),
        Some(
            "submodules (s8: only 8 are brought, s9: only 8 are brought, odd: its entry cannot be read, s1: it has no branch, tag or commit to be found, s2: its newest files alone are larger than 500 MB, the most that is…)"
        )
    );
}

#[test]
fn crash_between_submodules_ends_with_all() {
    let begun = || {
        let world = with_submodules(&[("lib", "../lib"), ("x", "../lib")], Some("yes"));
        at_forge(&world, "acme/lib", |_| ());
        world
    };
    each_crash(begun, &asked("m1", "acme/api"), |world, crash| {
        assert_eq!(outcomes(world), [Outcome::Answered], "{crash}");
        assert_eq!(record(world).sandbox.project.left_out, None, "{crash}");
        let carried = world.with(|s| s.submodules.clone());
        assert!(
            ["lib: ", "x: "].iter().all(|one| carried.iter().any(|path| path.starts_with(one)))
        );
    });
}

#[test]
fn crash_while_carrying_carries_once_more() {
    let begun = || {
        let world = private();
        open(&world, None, "all");
        world
    };
    each_crash(begun, &asked("m1", "acme/api"), |world, crash| {
        assert_eq!(outcomes(world), [Outcome::Answered], "{crash}");
        assert!(record(world).sandbox.is_private(), "{crash}");
    });
}
