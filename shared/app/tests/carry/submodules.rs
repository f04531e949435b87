//! Submodules: those that the worker brings, as git expects them, and those that a hostile repository names.

use bobbin_core::protocol::event::{Event, NotCloned};
use bobbin_core::records::carried::{ForgeRepository, LeftOut, Submodule};

use super::carried;
use super::forge::Place;
use super::sandbox::Carrier;

/// Commits these lines as `.gitmodules`, and a link to the commit at each path.
fn with_submodules(place: &Place, modules: &str, links: &[(&str, &str)]) {
    std::fs::write(place.work.path().join(".gitmodules"), modules).unwrap();
    place.sh("git add .gitmodules");
    for (path, commit) in links {
        place.sh(&format!("git update-index --add --cacheinfo '160000,{commit},{path}'"));
    }
    place.sh("git commit -q -m Modules");
    place.push_past_the_server();
}

fn module(name: &str, path: &str, url: &str) -> String {
    format!("[submodule \"{name}\"]\n\tpath = {path}\n\turl = {url}\n")
}

/// What the checkout names, of what is left out.
async fn named(carrier: &Carrier, place: &Place) -> (Vec<String>, Vec<Submodule>) {
    let Event::Carried { left_out, .. } = carrier.carry(place).await else { panic!("not carried") };
    let LeftOut { submodules, named, .. } = *left_out;
    (submodules, named)
}

/// A repository with a submodule in `lib/one` that is two commits behind its branch.
async fn nested() -> (Place, ForgeRepository, String) {
    let place = Place::small().await;
    let lib = place.beside("lib", 3).await;
    let commit = place.sh("git rev-parse lib~2").trim().to_owned();
    place.sh("git checkout -q --orphan start && git rm -rfq . ; echo api >README.md");
    place.commit("Start");
    with_submodules(&place, &module("the lib", "lib/one", "../lib.git"), &[("lib/one", &commit)]);
    (place, lib, commit)
}

#[tokio::test(flavor = "multi_thread")]
async fn submodule_stands_as_git_expects() {
    let (place, lib, commit) = nested().await;
    let carrier = Carrier::new();
    let (left_out, named) = named(&carrier, &place).await;
    let one = Submodule {
        path: "lib/one".to_owned(),
        address: "../lib.git".to_owned(),
        commit: commit.clone(),
    };
    assert_eq!((left_out, &named), (vec!["lib/one".to_owned()], &vec![one.clone()]));
    let before = carrier.sh("git submodule status");
    assert_eq!(before, format!("-{commit} lib/one\n"));
    for _ in 0..2 {
        let (there, history) = carried(carrier.carry_submodule(&place.forge, &lib, &one).await);
        assert_eq!((there.base.as_deref(), history), (Some(&*commit), None));
        let status = carrier.sh("git submodule status");
        assert!(status.starts_with(&format!(" {commit} lib/one")), "{status}");
        assert_eq!(carrier.sh("git status --porcelain"), "");
        assert_eq!(
            carrier.sh("git -C lib/one log --format=%s; cat lib/one/README.md"),
            "Commit 0\n0"
        );
    }
    assert_eq!(carrier.sh("cat lib/one/.git"), "gitdir: ../../.git/modules/the lib\n");
    assert_eq!(
        carrier.sh("git -C lib/one remote get-url --push origin; git -C lib/one config remote.origin.url")
            .lines()
            .last(),
        Some(&*lib.address)
    );
    // What people do with one works, and nothing leaves.
    carrier.sh("git submodule update && git submodule foreach -q 'git fsck --strict' && git -C lib/one fetch && git fetch && git -C lib/one checkout -q -b work && echo x >lib/one/x && git -C lib/one add x && git -C lib/one commit -qm Work");
    assert!(carrier.sh("git status --porcelain").contains(" M lib/one"));
    let refused = carrier.sh("git -C lib/one push origin work 2>&1 || true");
    assert!(
        refused.contains("remote: Bobbin pushes, when somebody presses Open pull request."),
        "{refused}"
    );
    let again = carried(carrier.carry_submodule(&place.forge, &lib, &one).await);
    assert_eq!(again.0.base.as_deref(), Some(&*commit), "what was done stays: {again:?}");
    assert_eq!(carrier.sh("cat lib/one/x"), "x\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_that_the_forge_lacks_is_told() {
    let (place, lib, _) = nested().await;
    let carrier = Carrier::new();
    let (_, named) = named(&carrier, &place).await;
    let missing = Submodule { commit: "1".repeat(40), ..named[0].clone() };
    let event = carrier.carry_submodule(&place.forge, &lib, &missing).await;
    assert_eq!(event, Event::NotCloned { why: NotCloned::NoRef });
    assert_eq!(carrier.sh("ls lib/one; git status --porcelain"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn branch_named_like_the_commit_is_not_meant() {
    let (place, lib, commit) = nested().await;
    place.sh(&format!("git push -q '{}' lib:refs/heads/{commit}", place.address_of("lib")));
    let carrier = Carrier::new();
    let (_, named) = named(&carrier, &place).await;
    let (there, _) = carried(carrier.carry_submodule(&place.forge, &lib, &named[0]).await);
    assert_eq!(there.base, Some(commit));
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_modules_name_nothing_outside() {
    let place = Place::small().await.filled(1, 100);
    let commit = place.sh("git rev-parse HEAD").trim().to_owned();
    let secret = place.work.path().join("secret");
    let modules = [
        module("out", "../out", "../api"),
        module("absolute", "/tmp/out", "../api"),
        module("file", "README.md", "../api"),
        module("dot", ".", "../api"),
        module("git", ".git/hooks", "../api"),
        module("dash", "-x", "../api"),
        module("tab", "\"a\\tb\"", "../api"),
        module("line", "ok", "\"../api\\nnamed\\tx\""),
        module("none", "nothing", "../api"),
        module("long", "long", &"x".repeat(400)),
        format!("[include]\n\tpath = {}\n", secret.display()),
    ]
    .concat();
    std::fs::write(&secret, module("secret", "stolen", "../stolen")).unwrap();
    let links = ["ok", "long", "-x", "plain", "stolen"].map(|path| (path, &*commit));
    with_submodules(&place, &modules, &links);
    let carrier = Carrier::new();
    let (left_out, named) = named(&carrier, &place).await;
    assert_eq!(left_out, ["-x", "long", "ok", "plain", "stolen"]);
    assert_eq!(named, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_folder_of_the_checkout_is_filled() {
    let (place, lib, commit) = nested().await;
    let carrier = Carrier::new();
    named(&carrier, &place).await;
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), carrier.folder.root.path().join("project/link"))
        .unwrap();
    carrier.sh("mkdir full && echo mine >full/mine && mkdir -p ../beside");
    for path in ["link", "link/x", "../beside", "lib/../lib/one", "nowhere", "full", "lib"] {
        let one = Submodule {
            path: path.to_owned(),
            address: "../lib".to_owned(),
            commit: commit.clone(),
        };
        let event = carrier.carry_submodule(&place.forge, &lib, &one).await;
        assert!(matches!(event, Event::NotCloned { .. }), "{path}: {event:?}");
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(
        carrier.sh("cat full/mine; ls ../beside lib/one; git submodule status"),
        format!("mine\n../beside:\n\nlib/one:\n-{commit} lib/one\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_commands_that_git_refuses_do_nothing() {
    let mark = tempfile::tempdir().unwrap();
    let touched = mark.path().join("touched");
    for modules in [
        module("../../out", "lib", "../lib"),
        format!("{}\tupdate = !touch {}\n", module("lib", "lib", "../lib"), touched.display()),
    ] {
        let place = Place::small().await;
        let lib = place.beside("lib", 1).await;
        let commit = place.sh("git rev-parse lib").trim().to_owned();
        place.sh("git checkout -q --orphan start && git rm -rfq . ; echo api >README.md");
        place.commit("Start");
        with_submodules(&place, &modules, &[("lib", &commit)]);
        let carrier = Carrier::new();
        let (_, named) = named(&carrier, &place).await;
        for one in &named {
            let event = carrier.carry_submodule(&place.forge, &lib, one).await;
            assert!(
                matches!(event, Event::NotCloned { why: NotCloned::Other { .. } }),
                "{event:?}"
            );
        }
        assert_eq!(carrier.sh("ls -A lib; ls .git/modules 2>/dev/null || true"), "");
        assert!(!touched.exists());
        assert_eq!(std::fs::read_dir(carrier.folder.root.path()).unwrap().count(), 2);
    }
}
