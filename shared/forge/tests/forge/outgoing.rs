//! What a push would bring: packs that real git made, compared with the folders of a scripted GitHub.

use std::path::Path;

use bobbin_core::records::publication::FILES_MAX;
use bobbin_forge::ForgeErrorKind;
use bobbin_forge::git::ObjectId;
use bobbin_forge::outgoing::{self, Compared, NotOutgoing, OutgoingWork};
use serde_json::{Value, json};

use crate::git::{ObjectPlace, git, raw};
use crate::world::{World, at, reply};

/// GitHub with every folder of a commit.
async fn forge(place: &ObjectPlace, commit: ObjectId) -> World {
    let world = World::start().await;
    world.minting();
    folders(&world, place, commit);
    world
}

fn folders(world: &World, place: &ObjectPlace, commit: ObjectId) {
    let has = |id: &str, tree: &str| {
        let listed = git(&place.work, &["ls-tree", "-z", tree]);
        let entry = |line: &str| {
            let (head, path) = line.split_once('\t').unwrap();
            let [mode, kind, sha] = head.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            json!({"path": path, "mode": mode, "type": kind, "sha": sha})
        };
        let lines = listed.split('\0').filter(|line| !line.is_empty());
        let entries: Vec<Value> = lines.map(entry).collect();
        let body = json!({"sha": tree, "truncated": false, "tree": entries});
        world.on(&format!("GET /repos/acme/web/git/trees/{id}"), reply(200, body));
    };
    let root = git(&place.work, &["rev-parse", &format!("{commit}^{{tree}}")]);
    has(&commit.to_string(), &root);
    has(&root, &root);
    let below = git(
        &place.work,
        &["ls-tree", "-r", "-d", "-z", "--format=%(objecttype) %(objectname)", &root],
    );
    for folder in below.split('\0').filter_map(|line| line.strip_prefix("tree ")) {
        has(folder, folder);
    }
}

async fn read(
    world: &World,
    base: ObjectId,
    head: ObjectId,
    pack: Vec<u8>,
) -> Result<Option<OutgoingWork>, String> {
    let read = outgoing::read(&world.github(), &at(), &Compared::with(base), &head, pack).await;
    read.map_err(|error| match error {
        NotOutgoing::Refused(why) => why,
        NotOutgoing::Failed(error) => panic!("{error:?}"),
    })
}

/// What the checkout's newest commit would bring to a GitHub that has `base`.
async fn brought(place: &ObjectPlace, base: ObjectId) -> Result<Option<OutgoingWork>, String> {
    let head = place.at("HEAD");
    read(&forge(place, base).await, base, head, place.pack(Some(base), head)).await
}

fn listed(work: &OutgoingWork) -> Vec<String> {
    work.files.iter().map(|file| format!("{} {}", file.how.sign(), file.path)).collect()
}

fn write(place: &ObjectPlace, path: &str, text: &str) {
    let file = place.work.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn link(place: &ObjectPlace, to: &str, path: &str) {
    std::os::unix::fs::symlink(to, place.work.join(path)).unwrap();
}

fn commit(place: &ObjectPlace, message: &str) -> ObjectId {
    git(&place.work, &["add", "--all"]);
    git(&place.work, &["commit", "--quiet", "--allow-empty", "--message", message]);
    place.at("HEAD")
}

/// A pack of exactly these objects.
fn pack_of(place: &ObjectPlace, objects: &str) -> Vec<u8> {
    raw(&place.work, &["pack-objects", "--stdout", "-q", "--window=0"], objects.as_bytes())
}

fn store(place: &ObjectPlace, kind: &str, content: &[u8]) -> ObjectId {
    let written =
        raw(&place.work, &["hash-object", "-t", kind, "-w", "--stdin", "--literally"], content);
    String::from_utf8(written).unwrap().trim().parse().unwrap()
}

/// A commit of this folder after the checkout's newest.
fn commit_of(place: &ObjectPlace, tree: ObjectId) -> ObjectId {
    let made = git(&place.work, &["commit-tree", &tree.to_string(), "-p", "HEAD", "-m", "made"]);
    made.parse().unwrap()
}

/// A folder with one entry again and again.
fn folder(place: &ObjectPlace, mode: &str, id: ObjectId, count: usize) -> ObjectId {
    let mut content = Vec::new();
    for number in 0..count {
        content.extend_from_slice(format!("{mode} {number:04}\0").as_bytes());
        content.extend_from_slice(&hex::decode(id.to_string()).unwrap());
    }
    store(place, "tree", &content)
}

fn remove(path: &Path) {
    std::fs::remove_dir_all(path).unwrap();
}

#[tokio::test]
async fn work_is_every_changed_file() {
    let place = ObjectPlace::empty();
    for path in ["a.txt", "gone.txt", "run.sh", "same/deep/x", "kind/inner/y", "turned", "to-link"]
    {
        write(&place, path, path);
    }
    for name in ["ci.yml", "release.yaml", "README.md"] {
        write(&place, &format!(".github/workflows/{name}"), "on: push\n");
    }
    let base = commit(&place, "Start");
    write(&place, "a.txt", "changed");
    std::fs::remove_file(place.work.join("gone.txt")).unwrap();
    std::fs::remove_file(place.work.join("turned")).unwrap();
    write(&place, "turned/into/folder", "new");
    remove(&place.work.join("kind"));
    write(&place, "kind", "a file now");
    std::fs::remove_file(place.work.join("to-link")).unwrap();
    link(&place, "a.txt", "to-link");
    commit(&place, "  Rework everything\n\nIn detail");
    git(&place.work, &["update-index", "--chmod=+x", "run.sh"]);
    git(
        &place.work,
        &["update-index", "--add", "--cacheinfo", &format!("160000,{},lib", "1".repeat(40))],
    );
    git(&place.work, &["commit", "--quiet", "--message", "Second"]);
    let work = brought(&place, base).await.unwrap().unwrap();
    let expected = [
        "M a.txt",
        "D gone.txt",
        "A kind",
        "D kind/inner/y",
        "A lib",
        "M run.sh",
        "M to-link",
        "D turned",
        "A turned/into/folder",
    ];
    assert_eq!(listed(&work), expected);
    assert_eq!((work.subject.as_str(), work.workflows), ("Rework everything", 2));
    assert_eq!(work.pack, place.pack(Some(base), place.at("HEAD")));
}

#[tokio::test]
async fn reverted_work_changes_nothing() {
    let place = ObjectPlace::filled();
    let base = place.at("HEAD");
    place.commit("src/a.txt", "three\n");
    place.commit("src/a.txt", "two\n");
    assert_eq!(brought(&place, base).await, Ok(None));
}

#[tokio::test]
async fn uncommitted_work_has_no_subject() {
    let place = ObjectPlace::filled();
    let base = place.at("HEAD");
    write(&place, "new.txt", "new");
    git(&place.work, &["add", "--all"]);
    let own = ["-c", "user.name=Bobbin", "-c", "user.email=bobbin@localhost"];
    let mut command = crate::git::command(&place.work);
    command.env_remove("GIT_AUTHOR_NAME").env_remove("GIT_AUTHOR_EMAIL").args(own);
    assert!(
        command
            .args(["commit", "--quiet", "--message", "Work in progress"])
            .status()
            .unwrap()
            .success()
    );
    let work = brought(&place, base).await.unwrap().unwrap();
    assert_eq!(
        (work.subject.as_str(), listed(&work).as_slice()),
        ("", &["A new.txt".to_owned()][..])
    );
    assert_eq!(work.workflows, 0);
}

#[tokio::test]
async fn merges_of_own_work_are_read() {
    let place = ObjectPlace::filled();
    let base = place.at("HEAD");
    git(&place.work, &["checkout", "--quiet", "-b", "side"]);
    place.commit("side.txt", "side");
    git(&place.work, &["checkout", "--quiet", "main"]);
    write(&place, "main.txt", "main");
    commit(&place, "On the first line");
    git(&place.work, &["merge", "--quiet", "--no-edit", "side"]);
    let work = brought(&place, base).await.unwrap().unwrap();
    assert_eq!(listed(&work), ["A main.txt", "A side.txt"]);
    assert_eq!(work.subject, "On the first line");
}

#[tokio::test]
async fn work_on_other_commits_is_refused() {
    let place = ObjectPlace::filled();
    let base = place.at("HEAD");
    let expected = outgoing::elsewhere(&base);
    assert!(expected.starts_with(&format!("The work does not follow {}", &base.to_string()[..7])));
    git(&place.work, &["checkout", "--quiet", "-b", "older", "HEAD^"]);
    place.commit("new.txt", "new");
    assert_eq!(brought(&place, base).await.unwrap_err(), expected, "an older commit");
    git(&place.work, &["merge", "--quiet", "--no-edit", "main"]);
    assert_eq!(brought(&place, base).await.unwrap_err(), expected, "an older commit beside it");
    git(&place.work, &["checkout", "--quiet", "--orphan", "alone"]);
    commit(&place, "Alone");
    let alone = place.at("HEAD");
    let world = forge(&place, base).await;
    let refusal = read(&world, base, alone, place.pack(None, alone)).await.unwrap_err();
    assert_eq!(refusal, expected, "none at all");
}

#[tokio::test]
async fn stray_and_missing_commits_are_refused() {
    let place = ObjectPlace::filled();
    let base = place.at("HEAD");
    let stray = place.commit("stray.txt", "stray");
    git(&place.work, &["reset", "--quiet", "--hard", &base.to_string()]);
    let head = place.commit("new.txt", "new");
    let world = forge(&place, base).await;
    let objects = format!("{head}\n{head}^{{tree}}\n{stray}\n");
    let objects = objects
        .replace(&format!("{head}^{{tree}}"), &git(&place.work, &["rev-parse", "HEAD^{tree}"]));
    let refusal = read(&world, base, head, pack_of(&place, &objects)).await.unwrap_err();
    assert!(refusal.contains("commits that are not part of the work"), "{refusal}");
    let refusal = read(&world, base, stray, place.pack(Some(base), head)).await.unwrap_err();
    assert!(refusal.starts_with("The sandbox did not send the newest commit."), "{refusal}");
    assert!(world.lines().is_empty(), "the forge is not asked for what is refused");
    let refusal =
        read(&world, base, head, pack_of(&place, &format!("{head}\n"))).await.unwrap_err();
    assert_eq!(refusal, "A folder is missing from what came out of the sandbox. Try again.");
}

#[tokio::test]
async fn damaged_and_dangerous_packs_are_refused() {
    let place = ObjectPlace::filled();
    let base = place.at("HEAD");
    let blob = store(&place, "blob", b"[core]\n");
    let id = hex::decode(blob.to_string()).unwrap();
    let tree = store(&place, "tree", &[&b"100644 .git\0"[..], &id].concat());
    let head = commit_of(&place, tree);
    let world = forge(&place, base).await;
    let pack = pack_of(&place, &format!("{head}\n{tree}\n{blob}\n"));
    let refusal = read(&world, base, head, pack).await.unwrap_err();
    assert_eq!(
        refusal,
        format!("The work cannot be read: {tree}: a folder has an entry named .git.")
    );
    let mut cut = place.pack(None, base);
    cut.truncate(100);
    let refusal = read(&world, base, base, cut).await.unwrap_err();
    assert_eq!(refusal, "The work cannot be read: the pack is damaged.");
}

#[tokio::test]
async fn changed_workflows_are_refused() {
    type Change = fn(&ObjectPlace);
    let table: [(&str, Change); 7] = [
        (".github/workflows/ci.yml", |place| {
            write(place, ".github/workflows/ci.yml", "on: issues\n")
        }),
        (".github/workflows/new.yml", |place| {
            write(place, ".github/workflows/new.yml", "on: push\n")
        }),
        (".github/workflows/a/b.txt", |place| write(place, ".github/workflows/a/b.txt", "b")),
        (".github/workflows/ci.yml", |place| {
            git(&place.work, &["mv", ".github/workflows/ci.yml", "ci.yml"]);
        }),
        (".github/workflows", |place| {
            remove(&place.work.join(".github/workflows"));
            link(place, "../plain", ".github/workflows");
        }),
        (".github", |place| {
            remove(&place.work.join(".github"));
            link(place, "plain", ".github");
        }),
        // The folder that comes is at the forge already, and not in the pack.
        (".github/workflows/", |place| {
            remove(&place.work.join(".github/workflows"));
            git(&place.work, &["mv", "plain", ".github/workflows"]);
        }),
    ];
    for (named, change) in table {
        let place = ObjectPlace::empty();
        write(&place, ".github/workflows/ci.yml", "on: push\n");
        write(&place, "plain/evil.yml", "on: pull_request_target\n");
        write(&place, ".github/CODEOWNERS", "* @a\n");
        let base = commit(&place, "Start");
        change(&place);
        commit(&place, "Change");
        let refusal = brought(&place, base).await.unwrap_err();
        assert!(refusal.starts_with(named), "{named}: {refusal}");
        assert!(refusal.contains("is a workflow, which Bobbin does not change."), "{refusal}");
    }
    let place = ObjectPlace::empty();
    write(&place, ".github/CODEOWNERS", "* @a\n");
    write(&place, "docs/workflows/x", "x");
    let base = commit(&place, "Start");
    write(&place, ".github/CODEOWNERS", "* @b\n");
    write(&place, "docs/.github/workflows/x", "x");
    commit(&place, "Change");
    let work = brought(&place, base).await.unwrap().unwrap();
    assert_eq!(listed(&work), ["M .github/CODEOWNERS", "A docs/.github/workflows/x"]);
}

/// What a fork's commit and work on it would bring into `main`, as GitHub describes them.
async fn of_fork(
    place: &ObjectPlace,
    (main, fork): (ObjectId, ObjectId),
    common: Option<ObjectId>,
) -> Result<Option<OutgoingWork>, String> {
    of_fork_since(place, (main, fork), common, None).await
}

/// The same, once a commit of it was pushed.
async fn of_fork_since(
    place: &ObjectPlace,
    (main, fork): (ObjectId, ObjectId),
    common: Option<ObjectId>,
    since: Option<ObjectId>,
) -> Result<Option<OutgoingWork>, String> {
    let head = place.at("HEAD");
    let world = World::start().await;
    world.minting();
    for commit in [Some(fork), Some(main), common, since].into_iter().flatten() {
        folders(&world, place, commit);
    }
    let compare = format!("GET /repos/acme/web/compare/{fork}...{main}");
    match common {
        Some(common) => {
            let body = json!({"merge_base_commit": {"sha": common.to_string()}});
            world.on(&compare, reply(200, body));
        }
        None => {
            let message = format!("No common ancestor between {fork} and {main}.");
            world.on(&compare, reply(404, json!({ "message": message })));
        }
    }
    let compared = Compared { into: Some(main), since, ..Compared::with(fork) };
    let pack = place.pack(Some(fork), head);
    let read = outgoing::read(&world.github(), &at(), &compared, &head, pack).await;
    read.map_err(|error| match error {
        NotOutgoing::Refused(why) => why,
        NotOutgoing::Failed(error) => panic!("{error:?}"),
    })
}

#[tokio::test]
async fn forks_commits_are_part_of_the_work() {
    let place = ObjectPlace::empty();
    write(&place, ".github/workflows/ci.yml", "on: push\n");
    write(&place, "package.json", "{}\n");
    write(&place, "tests/helper/a.txt", "a\n");
    let start = commit(&place, "Start");
    write(&place, "later.txt", "later\n");
    let main = commit(&place, "Later");
    git(&place.work, &["checkout", "--quiet", "-b", "fork", &start.to_string()]);
    write(&place, "package.json", "{\"scripts\": {}}\n");
    write(&place, "tests/helper/a.txt", "b\n");
    let fork = commit(&place, "By a stranger");
    write(&place, "README.md", "work\n");
    commit(&place, "Work");
    let work = of_fork(&place, (main, fork), Some(start)).await.unwrap().unwrap();
    assert_eq!(listed(&work), ["A README.md", "M package.json", "M tests/helper/a.txt"]);
    assert_eq!((work.has_others, work.workflows, &*work.subject), (true, 1, "Work"));
    let refusal = of_fork(&place, (main, fork), None).await.unwrap_err();
    assert!(refusal.contains("has no commit in common with"), "{refusal}");
    // If the branch has the commit, only the work is listed.
    let work = of_fork(&place, (main, fork), Some(fork)).await.unwrap().unwrap();
    assert_eq!((listed(&work), work.has_others), (vec!["A README.md".to_owned()], false));

    git(&place.work, &["reset", "--quiet", "--hard", &fork.to_string()]);
    commit(&place, "Nothing");
    assert_eq!(of_fork(&place, (main, fork), Some(start)).await, Ok(None));

    git(&place.work, &["reset", "--quiet", "--hard", &fork.to_string()]);
    write(&place, ".github/workflows/ci.yml", "on: [push, pull_request]\n");
    let fork = commit(&place, "Another by a stranger");
    write(&place, "README.md", "work\n");
    commit(&place, "Work");
    let refusal = of_fork(&place, (main, fork), Some(start)).await.unwrap_err();
    assert!(refusal.starts_with(".github/workflows/ci.yml is a workflow"), "{refusal}");
}

#[tokio::test]
async fn what_the_branch_has_by_now_is_no_change() {
    let place = ObjectPlace::empty();
    write(&place, ".github/workflows/ci.yml", "on: push\n");
    write(&place, "src/a.txt", "a\n");
    write(&place, "src/gone.txt", "gone\n");
    let start = commit(&place, "Start");
    // A pull request with a workflow, which is then squashed into the branch.
    git(&place.work, &["checkout", "--quiet", "-b", "fork"]);
    write(&place, ".github/workflows/ci.yml", "on: pull_request\n");
    write(&place, "src/a.txt", "b\n");
    std::fs::remove_file(place.work.join("src/gone.txt")).unwrap();
    let fork = commit(&place, "By somebody");
    git(&place.work, &["checkout", "--quiet", "main"]);
    git(&place.work, &["merge", "--quiet", "--squash", "fork"]);
    write(&place, "src/later.txt", "later\n");
    let main = commit(&place, "Squashed");
    git(&place.work, &["checkout", "--quiet", "fork"]);
    write(&place, "README.md", "work\n");
    commit(&place, "Work");
    let work = of_fork(&place, (main, fork), Some(start)).await.unwrap().unwrap();
    assert_eq!((listed(&work), work.has_others), (vec!["A README.md".to_owned()], true));
    // Its own change of the workflow is refused all the same.
    write(&place, ".github/workflows/ci.yml", "on: issues\n");
    commit(&place, "Another workflow");
    let refusal = of_fork(&place, (main, fork), Some(start)).await.unwrap_err();
    assert!(refusal.starts_with(".github/workflows/ci.yml is a workflow"), "{refusal}");
}

#[tokio::test]
async fn work_above_others_commits_is_undone() {
    let place = ObjectPlace::empty();
    write(&place, "a.txt", "a\n");
    let start = commit(&place, "Start");
    write(&place, "later.txt", "later\n");
    let main = commit(&place, "Later");
    git(&place.work, &["checkout", "--quiet", "-b", "fork", &start.to_string()]);
    write(&place, "a.txt", "b\n");
    let fork = commit(&place, "By a stranger");
    write(&place, "README.md", "work\n");
    let pushed = commit(&place, "Work");
    git(&place.work, &["revert", "--no-edit", "HEAD"]);
    let commits = (main, fork);
    let work = of_fork_since(&place, commits, Some(start), Some(pushed)).await.unwrap().unwrap();
    assert_eq!(listed(&work), ["D README.md", "M a.txt"]);
    let since: Vec<&str> = work.since.iter().map(|file| &*file.path).collect();
    assert_eq!(since, ["README.md"]);
    // Nothing was pushed, or that is undone already.
    assert_eq!(of_fork(&place, commits, Some(start)).await, Ok(None));
    let undone = place.at("HEAD");
    commit(&place, "Nothing");
    assert_eq!(of_fork_since(&place, commits, Some(start), Some(undone)).await, Ok(None));
}

#[tokio::test]
async fn moved_folder_is_listed_whole() {
    let place = ObjectPlace::empty();
    write(&place, "old/one.txt", "one");
    write(&place, "old/deep/two.txt", "two");
    write(&place, "same/deep/two.txt", "other");
    let base = commit(&place, "Start");
    git(&place.work, &["mv", "old", "new"]);
    let head = commit(&place, "Move");
    let world = forge(&place, base).await;
    let work = read(&world, base, head, place.pack(Some(base), head)).await.unwrap().unwrap();
    let expected = ["A new/deep/two.txt", "A new/one.txt", "D old/deep/two.txt", "D old/one.txt"];
    assert_eq!(listed(&work), expected);
    let same = git(&place.work, &["rev-parse", "HEAD:same"]);
    assert!(!world.lines().iter().any(|line| line.ends_with(&same)), "equal folders are skipped");
}

#[tokio::test]
async fn paths_hide_nothing() {
    let place = ObjectPlace::filled();
    let base = place.at("HEAD");
    write(&place, "a\nM src\t\u{1b}[2K/\u{202e}txt.é", "x");
    commit(&place, "Change");
    let work = brought(&place, base).await.unwrap().unwrap();
    assert_eq!(listed(&work), ["A a M src \\u{1b}[2K/\\u{202e}txt.é"]);
}

#[tokio::test]
async fn number_of_files_is_bounded() {
    let place = ObjectPlace::filled();
    let base = place.at("HEAD");
    for number in 0..FILES_MAX {
        write(&place, &format!("many/{}/{number}", number % 7), "x");
    }
    commit(&place, "Many");
    assert_eq!(brought(&place, base).await.unwrap().unwrap().files.len(), FILES_MAX);
    write(&place, "one-more", "x");
    commit(&place, "One more");
    let refusal = brought(&place, base).await.unwrap_err();
    assert!(refusal.starts_with("More than 500 files change."), "{refusal}");
}

#[tokio::test]
async fn folders_in_folders_are_bounded() {
    let place = ObjectPlace::filled();
    let base = place.at("HEAD");
    let world = forge(&place, base).await;
    let mut tree = store(&place, "tree", b"");
    let mut objects = format!("{tree}\n");
    for _ in 0..6 {
        tree = folder(&place, "40000", tree, 1_000);
        objects += &format!("{tree}\n");
    }
    let head = commit_of(&place, tree);
    let pack = pack_of(&place, &format!("{head}\n{objects}"));
    let refusal = read(&world, base, head, pack).await.unwrap_err();
    assert!(refusal.starts_with("More than 5,000 folders change."), "{refusal}");

    let file = store(&place, "blob", b"deep");
    let mut tree = folder(&place, "100644", file, 1);
    let mut objects = format!("{file}\n{tree}\n");
    for _ in 0..70 {
        tree = folder(&place, "40000", tree, 1);
        objects += &format!("{tree}\n");
    }
    let head = commit_of(&place, tree);
    let pack = pack_of(&place, &format!("{head}\n{objects}"));
    let refusal = read(&world, base, head, pack).await.unwrap_err();
    assert!(refusal.starts_with("A folder lies more than 64 levels deep"), "{refusal}");
}

#[tokio::test]
async fn calls_to_the_forge_are_bounded() {
    let place = ObjectPlace::empty();
    for number in 0..310 {
        write(&place, &format!("many/{number}/file"), &number.to_string());
    }
    write(&place, "kept", "x");
    let base = commit(&place, "Start");
    remove(&place.work.join("many"));
    commit(&place, "Remove");
    let refusal = brought(&place, base).await.unwrap_err();
    assert!(refusal.starts_with("More than 300 folders of the repository change."), "{refusal}");
}

#[tokio::test]
async fn number_of_commits_is_bounded() {
    let place = ObjectPlace::filled();
    let base = place.at("HEAD");
    let mut stream = String::new();
    for number in 0..1_001 {
        let from = if number == 0 { format!("from {base}\n") } else { String::new() };
        stream += &format!(
            "commit refs/heads/main\ncommitter A <a@b> {number} +0000\ndata 1\nx\n{from}M 100644 inline f\ndata 4\n{number:04}\n"
        );
    }
    raw(&place.work, &["fast-import", "--quiet", "--force"], stream.as_bytes());
    let refusal = brought(&place, base).await.unwrap_err();
    assert!(refusal.starts_with("The work has more than 1,000 commits."), "{refusal}");
}

#[tokio::test]
async fn silent_forge_is_a_failure() {
    let place = ObjectPlace::filled();
    let base = place.at("HEAD");
    let head = place.commit("src/a.txt", "three\n");
    let world = World::start().await;
    world.minting();
    let route = format!("GET /repos/acme/web/git/trees/{base}");
    world.on(&route, reply(502, Value::Null).undescribed());
    let pack = place.pack(Some(base), head);
    let failed =
        outgoing::read(&world.github(), &at(), &Compared::with(base), &head, pack.clone()).await;
    let is_other = |kind: &ForgeErrorKind| *kind == ForgeErrorKind::Other;
    assert!(matches!(failed, Err(NotOutgoing::Failed(error)) if is_other(&error.kind)));
    let empty = World::start().await;
    empty.minting();
    let unknown = outgoing::read(&empty.github(), &at(), &Compared::with(base), &head, pack).await;
    let is_unknown = |kind: &ForgeErrorKind| *kind == ForgeErrorKind::NotFound;
    assert!(matches!(unknown, Err(NotOutgoing::Failed(error)) if is_unknown(&error.kind)));
}
