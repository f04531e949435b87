//! What a turn changed in the files, whatever its agent is, and what nobody sees of how that is found out.

use std::path::Path;
use std::process::Command;

use bobbin_http::Method;
use serde_json::{Value, json};

use crate::world::{Daemon, wait_for};

fn git(directory: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(done.status.success(), "{arguments:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// A repository with a commit, in the project.
fn repository(project: &Path) {
    git(project, &["init", "-q"]);
    for (name, text) in
        [(".gitignore", "ignored\nprompts\n"), ("kept.txt", "one\ntwo\n"), ("gone.txt", "x")]
    {
        std::fs::write(project.join(name), text).unwrap();
    }
    git(project, &["add", "-A"]);
    git(project, &["commit", "-qm", "first"]);
}

async fn changes(daemon: &Daemon, turn: &str) -> Value {
    daemon.get(&format!("/v1/sessions/s/turns/{turn}/changes")).await
}

/// Runs a turn to its end; its changes.
async fn turn(daemon: &Daemon, turn: &str, text: &str) -> Value {
    daemon.send("s", turn, text).await;
    daemon.until("s", turn, "done").await;
    changes(daemon, turn).await
}

fn file(name: &str, status: &str, (additions, deletions): (u64, u64), patch: &str) -> Value {
    json!({
        "file": name, "status": status, "additions": additions, "deletions": deletions, "patch": patch,
    })
}

/// Every file below a folder with its bytes and time.
fn everything(folder: &Path) -> Vec<(String, Vec<u8>, std::time::SystemTime)> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().flatten() {
            let path = entry.path();
            let found = entry.metadata().unwrap();
            if found.is_dir() {
                folders.push(path);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                all.push((path.display().to_string(), bytes, found.modified().unwrap()));
            }
        }
    }
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_changes_keeps_repository_untouched() {
    let daemon = Daemon::start().await;
    repository(&daemon.project());
    std::fs::write(daemon.project().join("before.txt"), "mine\n").unwrap();
    std::fs::write(daemon.project().join("gone.txt"), "y").unwrap();
    git(&daemon.project(), &["add", "gone.txt"]);
    daemon.create("s").await;
    let before = everything(&daemon.project().join(".git"));

    let told = turn(
        &daemon,
        "files",
        "run echo three >> kept.txt\nrun rm gone.txt\nrun mkdir 'a b'; echo new > 'a b/é.txt'\nrun printf 'a\\0b' > raw.bin\nrun echo x > ignored",
    )
    .await;
    let expected = [
        file(
            "a b/é.txt",
            "added",
            (1, 0),
            "diff --git \"a/a b/\\303\\251.txt\" \"b/a b/\\303\\251.txt\"\nnew file mode 100644\nindex 0000000..3e75765\n--- /dev/null\n+++ \"b/a b/\\303\\251.txt\"\t\n@@ -0,0 +1 @@\n+new\n",
        ),
        file(
            "gone.txt",
            "deleted",
            (0, 1),
            "diff --git a/gone.txt b/gone.txt\ndeleted file mode 100644\nindex e25f181..0000000\n--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-y\n\\ No newline at end of file\n",
        ),
        file(
            "kept.txt",
            "modified",
            (1, 0),
            "diff --git a/kept.txt b/kept.txt\nindex 814f4a4..4cb29ea 100644\n--- a/kept.txt\n+++ b/kept.txt\n@@ -1,2 +1,3 @@\n one\n two\n+three\n",
        ),
        file("raw.bin", "added", (0, 0), ""),
    ];
    assert_eq!(told, json!({"known": true, "files": expected}));
    assert_eq!(everything(&daemon.project().join(".git")), before);

    // A commit is none, and neither is what was there before.
    let told = turn(
        &daemon,
        "commit",
        "run git add -A; git -c user.name=a -c user.email=a@b commit -qm x; echo more >> before.txt",
    )
    .await;
    let patch = "diff --git a/before.txt b/before.txt\nindex 351be5b..12f959e 100644\n--- a/before.txt\n+++ b/before.txt\n@@ -1 +1,2 @@\n mine\n+more\n";
    let expected = [file("before.txt", "modified", (1, 0), patch)];
    assert_eq!(told, json!({"known": true, "files": expected}));
    let nothing = turn(&daemon, "nothing", "say hello").await;
    assert_eq!(nothing, json!({"known": true, "files": []}));

    // The earlier ones are kept, also over a stop of the sandbox.
    daemon.signal("TERM");
    let mut daemon = daemon;
    daemon.start_again().await;
    assert_eq!(changes(&daemon, "commit").await["files"], json!(expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_need_no_repository() {
    let daemon = Daemon::start().await;
    std::fs::write(daemon.project().join("old.txt"), "old\n").unwrap();
    daemon.create("s").await;
    let told = turn(&daemon, "t", "run echo new > new.txt; rm old.txt").await;
    let all = told["files"].as_array().unwrap();
    let names: Vec<String> =
        all.iter().map(|one| format!("{} {}", one["status"], one["file"])).collect();
    // The stand-in's own note of its prompts was made before the turn began to be worked on, in it.
    assert_eq!(
        names,
        ["\"added\" \"new.txt\"", "\"deleted\" \"old.txt\"", "\"added\" \"prompts\""]
    );
    assert!(!daemon.project().join(".git").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn turn_includes_changes_of_prompts_within() {
    let daemon = Daemon::start().await;
    repository(&daemon.project());
    daemon.create("s").await;
    daemon.send("s", "first", "run echo 1 > first.txt\nask ls").await;
    let waiting = daemon.until("s", "first", "waiting").await;
    assert_eq!(changes(&daemon, "first").await, json!({"known": false, "files": []}));
    daemon.send("s", "second", "run echo 2 > second.txt\ndie").await;
    let ask = waiting["asks"][0]["permission"]["id"].as_str().unwrap();
    let path = format!("/v1/sessions/s/permissions/{ask}/reply");
    let answered = daemon.post(&path, json!({"reply": "once"})).await;
    assert_eq!(answered.status, 204);
    daemon.until("s", "second", "failed").await;
    let names = async |turn: &str| {
        let told = changes(&daemon, turn).await;
        let files = told["files"].as_array().unwrap().clone();
        let names = files.iter().map(|one| one["file"].as_str().unwrap());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names("first").await, "first.txt second.txt");
    assert_eq!(names("second").await, "second.txt");

    // One that was not sent into it is another matter.
    turn(&daemon, "third", "run echo 3 > third.txt").await;
    assert_eq!(names("third").await, "third.txt");
    assert_eq!(names("first").await, "first.txt second.txt");

    let unseen = "/v1/sessions/s/turns/unseen/changes";
    assert_eq!(daemon.call(Method::GET, unseen, None).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn worktree_sessions_have_separate_changes() {
    let daemon = Daemon::start().await;
    repository(&daemon.project());
    for name in ["left", "right"] {
        let directory = daemon.folder.path().join(name);
        let path = directory.to_str().unwrap();
        git(&daemon.project(), &["worktree", "add", "-q", path]);
        let body = json!({"agent": "standin", "directory": path});
        daemon.create_with(name, body).await;
    }
    // Each waits until the other has begun: they see one another's branches.
    for (name, other) in [("left", "right"), ("right", "left")] {
        let text = format!(
            "run git branch begun-{name}; until git rev-parse -q --verify begun-{other}; do sleep 0.01; done; echo {name} >> kept.txt"
        );
        daemon.send(name, "t", &text).await;
    }
    for name in ["left", "right"] {
        daemon.until(name, "t", "done").await;
        let path = format!("/v1/sessions/{name}/turns/t/changes");
        let told = daemon.get(&path).await;
        let files = told["files"].as_array().unwrap();
        assert_eq!(files.len(), 1, "{told}");
        let patch = files[0]["patch"].as_str().unwrap();
        let end = format!("@@ -1,2 +1,3 @@\n one\n two\n+{name}\n");
        assert!(patch.ends_with(&end), "{patch}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_changes_are_unknown() {
    let daemon = Daemon::start().await;
    repository(&daemon.project());
    daemon.create("s").await;
    // A file that is large by itself is no part of it.
    let told =
        turn(&daemon, "large", "run truncate -s 3000000 large.bin; echo x > small.txt").await;
    assert_eq!(told["files"][0]["file"], "small.txt");
    assert_eq!(told["files"].as_array().unwrap().len(), 1);
    let many = "run for n in $(seq 70); do truncate -s 2000000 $n.bin; done";
    for (name, text) in [("many", many), ("after", "say hello")] {
        let told = turn(&daemon, name, text).await;
        assert_eq!(told, json!({"known": false, "files": []}), "{name}");
    }
    assert!(daemon.log().contains("too many files to read"), "{}", daemon.log());
    let left = everything(&daemon.state().join("changes"));
    assert!(left.iter().all(|(name, ..)| name.ends_with(".json")), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_changes_runs_no_repository_code() {
    let daemon = Daemon::start().await;
    let project = daemon.project();
    repository(&project);
    let stolen = project.join("stolen").display().to_string();
    let run = format!("touch {stolen}");
    for (name, value) in [
        ("core.fsmonitor", run.as_str()),
        ("filter.thief.clean", &run),
        ("diff.thief.textconv", &run),
        ("diff.external", &run),
        ("core.hooksPath", ".hooks"),
    ] {
        git(&project, &["config", name, value]);
    }
    std::fs::write(project.join(".gitattributes"), "* filter=thief diff=thief\n").unwrap();
    daemon.create("s").await;
    let told = turn(&daemon, "t", "run echo three >> kept.txt").await;
    assert_eq!(told["files"][0]["file"], "kept.txt");
    assert!(!Path::new(&stolen).exists());
    // What would run does run where it may.
    let status = Command::new("git").arg("status").current_dir(&project).output();
    assert!(status.is_ok());
    wait_for("the thief", async || Path::new(&stolen).exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_git_index_is_harmless() {
    for make in [
        "rm .git/index .git/info/exclude; mkfifo .git/index .git/info/exclude",
        "ln -sf /dev/zero .git/index",
        "truncate -s 1T .git/index",
    ] {
        let daemon = Daemon::start().await;
        repository(&daemon.project());
        daemon.create("s").await;
        let made = Command::new("sh").args(["-c", make]).current_dir(daemon.project()).status();
        assert!(made.unwrap().success(), "{make}");
        let found = turn(&daemon, "t", "run echo x >> kept.txt").await;
        let names = found["files"].as_array().unwrap();
        assert_eq!(names.len(), 1, "{make}: {found}");
        assert_eq!(names[0]["file"], "kept.txt", "{make}: {found}");
    }
}
