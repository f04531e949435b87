//! The scripts, by a real shell: as a sandbox that shares its user with others, and in a namespace of its own.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use tempfile::TempDir;

use super::*;

/// A sandbox's working directory with a project in it.
fn sandbox() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("project")).unwrap();
    root
}

fn steps(texts: &[&str]) -> Vec<RecipeStep> {
    let step = |text: &&str| RecipeStep { name: (*text).to_owned(), run: (*text).to_owned() };
    texts.iter().map(step).collect()
}

fn of_set_up(texts: &[&str], step_s: u64) -> BTreeMap<String, String> {
    let variables = BTreeMap::from([("GREETING".to_owned(), "it's \"$HOME\"".to_owned())]);
    let mut environment = written(&steps(texts), &variables);
    environment.extend([
        ("BOBBIN_OF".to_owned(), "sandbox#1".to_owned()),
        ("BOBBIN_SERVICES".to_owned(), String::new()),
        ("BOBBIN_SINCE".to_owned(), since().to_string()),
        ("BOBBIN_STEP_S".to_owned(), step_s.to_string()),
        ("BOBBIN_ALL_S".to_owned(), "600".to_owned()),
    ]);
    environment
}

/// The machine's clock in ticks, as the first script reads it.
fn since() -> u64 {
    let ran = Command::new("sh").args(["-c", READ]).env("BOBBIN_AT", "").output().unwrap();
    found(&String::from_utf8(ran.stdout).unwrap()).ticks
}

/// One look, by a shell that stands for the provider's exec.
fn ran(root: &Path, script: &str, environment: &BTreeMap<String, String>) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(root).envs(environment).stdin(Stdio::null());
    // The tests' user has other processes.
    shell
        .env("BOBBIN_SANDBOX_UNCONFINED", "1")
        .env("ANTHROPIC_API_KEY", "canary-key")
        .output()
        .unwrap()
}

/// Looks until the set-up is over: the ends of its steps.
fn over(root: &Path, environment: &BTreeMap<String, String>) -> Vec<StepEnd> {
    seen_over(root, environment).ended
}

fn seen_over(root: &Path, environment: &BTreeMap<String, String>) -> SetUpSeen {
    loop {
        let ran = ran(root, SET_UP, environment);
        let text = String::from_utf8(ran.stdout).unwrap();
        assert!(ran.status.success(), "{text}");
        assert!(!text.contains("left"), "{text}");
        let seen = seen(&text);
        if seen.is_over {
            return seen;
        }
    }
}

fn log(root: &Path, nth: usize) -> String {
    fs::read_to_string(root.join(bobbin_core::records::set_up::step_log(nth))).unwrap()
}

/// A branch carries a link where a log belongs, and a step leaves a pipe that nobody writes.
#[test]
fn logs_are_copied_over_nothing_that_is_planted() {
    let root = sandbox();
    let (place, logs) = (root.path(), root.path().join("project/.bobbin/set-up"));
    fs::create_dir_all(&logs).unwrap();
    fs::write(place.join("kept"), "mine").unwrap();
    std::os::unix::fs::symlink(place.join("kept"), logs.join("1.log")).unwrap();
    let texts = ["echo said; mkfifo ../.bobbin/set-up/9.log"];
    assert_eq!(over(place, &of_set_up(&texts, 60)), [StepEnd::Done]);
    assert_eq!(log(&place.join("project"), 0), "said\n");
    assert_eq!(fs::read_to_string(place.join("kept")).unwrap(), "mine");
    assert!(!logs.join("9.log").exists());
}

#[test]
fn steps_fork_within_a_bound() {
    let root = sandbox();
    // Shells name it differently.
    let texts = ["ulimit -u 2>/dev/null || ulimit -p"];
    assert_eq!(over(root.path(), &of_set_up(&texts, 60)), [StepEnd::Done]);
    assert_eq!(log(root.path(), 0), "4000\n");
}

#[test]
fn steps_run_once_in_order_without_keys() {
    let root = sandbox();
    let texts =
        ["env; echo \"$GREETING\"; pwd; echo run >>../runs", "exit 3", "echo run >>../runs"];
    let environment = of_set_up(&texts, 60);
    let ended = [StepEnd::Done, StepEnd::Failed(3)];
    assert_eq!(over(root.path(), &environment), ended);
    assert_eq!(over(root.path(), &environment), ended, "a repeat only looks");
    assert_eq!(fs::read_to_string(root.path().join("runs")).unwrap(), "run\n");
    let told = log(root.path(), 0);
    assert!(!told.contains("canary-key") && !told.contains("BOBBIN_STEP"), "{told}");
    assert!(told.contains("\nit's \"$HOME\"\n") && told.ends_with("/project\n"), "{told}");
}

#[test]
fn output_and_input_are_bounded() {
    let root = sandbox();
    let texts =
        ["echo first; yes noise | head -c 300000000; echo last", "cat; read -r line || echo none"];
    assert_eq!(over(root.path(), &of_set_up(&texts, 120)), [StepEnd::Done; 2]);
    let told = log(root.path(), 0);
    assert!(told.len() <= LOG_BYTES_MAX / 2, "{}", told.len());
    assert!(told.starts_with("first\nnoise\n") && told.ends_with("noise\nlast\n"));
    let odd: Vec<_> = told.lines().filter(|line| *line != "noise").collect();
    assert_eq!(odd, ["first", "...", "last"], "no line is there in part");
    assert_eq!(log(root.path(), 1), "none\n");
}

#[test]
fn one_long_line_does_not_vanish() {
    let root = sandbox();
    let line = "head -c 200000 /dev/zero | tr '\\0' x";
    let progress = "for nth in $(seq 10000 99999); do printf 'at %s\\r' $nth; done";
    assert_eq!(over(root.path(), &of_set_up(&[line, progress], 60)), [StepEnd::Done; 2]);
    let left_out = "(one long line left out)";
    assert_eq!(log(root.path(), 0), format!("{left_out}\n...\n{left_out}\n"));
    let told = log(root.path(), 1);
    assert!(told.starts_with("at 10000\nat 10001\n") && told.ends_with("\nat 99999\n"), "{told}");
    // What is shown is shorter than what is kept.
    let root = sandbox();
    let texts = ["head -c 5000 /dev/zero | tr '\\0' x", "true"];
    assert_eq!(over(root.path(), &of_set_up(&texts, 60)), [StepEnd::Done; 2]);
    let printed = ran(root.path(), READ_LOG, &BTreeMap::new()).stdout;
    let printed = String::from_utf8(printed).unwrap();
    assert_eq!(printed, format!("-- step 1\n{left_out}\n\n-- step 2\n\n"));
}

#[test]
fn failed_step_leaves_its_words() {
    let root = sandbox();
    let texts = ["sleep 1; echo fine", "sleep 300 & echo \"the reason\"; exit 1", "echo unreached"];
    let seen = seen_over(root.path(), &of_set_up(&texts, 60));
    assert_eq!(seen.ended, [StepEnd::Done, StepEnd::Failed(1)]);
    assert!(seen.took_s.len() == 2 && seen.took_s[0] >= 1, "{:?}", seen.took_s);
    assert_eq!(log(root.path(), 1), "the reason\n");
    let printed = |environment: BTreeMap<String, String>| {
        String::from_utf8(ran(root.path(), READ_LOG, &environment).stdout).unwrap()
    };
    let all = "-- step 1\nfine\n\n-- step 2\nthe reason\n\n";
    assert_eq!(printed(BTreeMap::new()), all);
    let only = BTreeMap::from([("BOBBIN_STEP".to_owned(), "2".to_owned())]);
    assert_eq!(last_words(&printed(only), 6), "reason");
}

#[test]
fn long_log_is_read_from_a_whole_line_on() {
    let root = sandbox();
    let texts = ["for nth in $(seq 1000 1999); do echo secret-$nth; done", "printf short"];
    assert_eq!(over(root.path(), &of_set_up(&texts, 60)), [StepEnd::Done; 2]);
    let printed = ran(root.path(), READ_LOG, &BTreeMap::new()).stdout;
    let printed = String::from_utf8(printed).unwrap();
    let (first, second) = printed.split_once("\n-- step 2\n").unwrap();
    let first: Vec<_> = first.lines().collect();
    assert!(first.len() > 200 && first[0] == "-- step 1", "{printed}");
    assert!(first[1..].iter().all(|line| line.len() == "secret-1000".len()), "{printed}");
    assert_eq!(second, "short\n");
}

#[test]
fn steps_of_lock_files_stand_for_themselves() {
    let root = sandbox();
    let mut environment = of_set_up(&["no-such-program install", "echo second"], 60);
    environment.insert("BOBBIN_GOES_ON".to_owned(), "on".to_owned());
    assert_eq!(over(root.path(), &environment), [StepEnd::Failed(127), StepEnd::Done]);
    assert_eq!(log(root.path(), 1).trim(), "second");
}

#[test]
fn variables_do_not_steer_the_runner() {
    let root = sandbox();
    let names = ["limit", "shell", "dir", "nth", "count", "PATH_OF"].map(str::to_owned);
    let mut environment = of_set_up(&["echo $limit"], 60);
    let variables = names.map(|name| (name, "0".to_owned())).into();
    environment.extend(written(&steps(&["echo $limit"]), &variables));
    assert_eq!(over(root.path(), &environment), [StepEnd::Done]);
    assert_eq!(log(root.path(), 0), "0\n");
}

#[test]
fn snapshot_of_another_sandbox_is_set_up_anew() {
    let root = sandbox();
    let mut environment = of_set_up(&["echo run >>../runs"], 60);
    assert_eq!(over(root.path(), &environment), [StepEnd::Done]);
    environment.insert("BOBBIN_OF".to_owned(), "sandbox#2".to_owned());
    assert_eq!(over(root.path(), &environment), [StepEnd::Done]);
    assert_eq!(fs::read_to_string(root.path().join("runs")).unwrap(), "run\nrun\n");
}

#[test]
fn step_that_hangs_is_ended() {
    let root = sandbox();
    let texts = ["echo begun; sleep 1000 & sleep 1000", "true"];
    assert_eq!(over(root.path(), &of_set_up(&texts, 1)), [StepEnd::TooLong]);
}

#[test]
fn steps_without_time_are_not_run() {
    let root = sandbox();
    let mut environment = of_set_up(&["sleep 2", "echo second", "echo third"], 60);
    environment.insert("BOBBIN_ALL_S".to_owned(), "1".to_owned());
    environment.insert("BOBBIN_GOES_ON".to_owned(), "on".to_owned());
    let seen = seen_over(root.path(), &environment);
    assert_eq!((seen.ended, seen.unrun), (vec![StepEnd::TooLong], 2));
    assert!(!root.path().join(".bobbin/set-up/2.log").exists());
}

#[test]
fn late_first_look_begins_a_whole_set_up() {
    let root = sandbox();
    let mut environment = of_set_up(&["sleep 1; echo whole"], 60);
    environment.insert("BOBBIN_ALL_S".to_owned(), "5".to_owned());
    // The recipe was read 100 seconds ago.
    environment.insert("BOBBIN_SINCE".to_owned(), since().saturating_sub(10_000).to_string());
    let first = String::from_utf8(ran(root.path(), SET_UP, &environment).stdout).unwrap();
    assert!(seen(&first).has_begun && !seen(&first).is_over, "{first}");
    assert_eq!(seen_over(root.path(), &environment).ended, [StepEnd::Done]);
    assert_eq!(log(root.path(), 0), "whole\n");
}

#[test]
fn a_step_cannot_set_its_own_clock() {
    let root = sandbox();
    let texts = ["cd ../.bobbin/set-up; rm -f began runs; touch ../gone; sleep 1000"];
    let mut environment = of_set_up(&texts, 600);
    let look = |environment: &BTreeMap<String, String>| {
        seen(&String::from_utf8(ran(root.path(), SET_UP, environment).stdout).unwrap())
    };
    assert!(look(&environment).has_begun);
    while !root.path().join(".bobbin/gone").exists() {
        thread::sleep(Duration::from_millis(20));
    }
    assert!(!look(&environment).is_over);
    environment.insert("BOBBIN_LATE".to_owned(), "on".to_owned());
    assert!(look(&environment).is_over);
}

#[test]
fn held_output_holds_up_nothing() {
    let root = sandbox();
    let texts = ["echo begun; setsid sleep 1000 &", "echo next"];
    assert_eq!(over(root.path(), &of_set_up(&texts, 60)), [StepEnd::Done; 2]);
    assert_eq!(log(root.path(), 1), "next\n");
}

#[test]
fn set_up_without_its_runner_is_over() {
    let root = sandbox();
    let texts = ["true", "kill -9 $PPID $(cut -d' ' -f1 ../.bobbin/set-up/runs)"];
    assert_eq!(over(root.path(), &of_set_up(&texts, 60)), [StepEnd::Done]);
}

#[test]
fn no_process_outlives_its_set_up() {
    let root = sandbox();
    let hides = r#"setsid sleep 1111 &
cd /
setsid env -i sleep 2222 &
cp "$(command -v sleep)" "$OLDPWD/$(printf 'sl\n) S 1 1')"
setsid env -i "$OLDPWD/$(printf 'sl\n) S 1 1')" 3333 &
(trap '' TERM HUP; exec sleep 4444) &"#;
    let environment = of_set_up(&[hides], 60);
    fs::write(root.path().join("set_up.sh"), SET_UP).unwrap();
    // A sandbox with a process of its own from before.
    let driver = r#"sleep 5555 &
sleep 1
BOBBIN_SINCE=$(($(cut -d. -f1 /proc/uptime) * $(getconf CLK_TCK)))
export BOBBIN_SINCE
sleep 1
until out=$(sh set_up.sh) && printf '%s\n' "$out" | grep -qx over; do sleep 0.1; done
printf '%s\n' "$out"
for of in /proc/[0-9]*/cmdline; do tr '\0\n' '  ' <"$of"; echo; done 2>/dev/null | grep -o '[1-5]\{4\} $'
"#;
    let mut sandbox = Command::new("bwrap");
    sandbox.args(["--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--die-with-parent"]);
    sandbox.args(["--as-pid-1", "sh", "-c", driver]).current_dir(root.path());
    let ran = sandbox.envs(&environment).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&ran.stdout);
    let is_told = |line: &&str| !line.starts_with("took ") && *line != "begun";
    let lines: Vec<_> = text.lines().filter(is_told).collect();
    assert_eq!(lines, ["over", "end 0", "5555 "], "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn start_steps_run_once_a_start() {
    let root = sandbox();
    let mut environment = written(&steps(&["echo run >>../runs", "exit 4"]), &BTreeMap::new());
    environment.extend([
        ("BOBBIN_SERVICES".to_owned(), String::new()),
        ("BOBBIN_WITHIN_S".to_owned(), "60".to_owned()),
    ]);
    let started = || {
        let ran = ran(root.path(), START, &environment);
        ends(&String::from_utf8(ran.stdout).unwrap())
    };
    let stopped = || {
        let kept = fs::read_to_string(root.path().join(".bobbin/start/runs")).unwrap();
        let pid = kept.split(' ').next().unwrap();
        let ends = "kill -KILL -$0; while kill -0 $0 2>/dev/null && ! grep -q '^State:.Z' /proc/$0/status; do :; done";
        let ended = Command::new("timeout").args(["30", "sh", "-c", ends, pid]).status();
        assert!(ended.unwrap().success());
    };
    let ended = [StepEnd::Done, StepEnd::Failed(4)];
    assert_eq!((started(), started()), (ended.to_vec(), ended.to_vec()));
    assert_eq!(fs::read_to_string(root.path().join("runs")).unwrap(), "run\n");
    // The sandbox stops and starts.
    stopped();
    assert_eq!(started(), ended);
    assert_eq!(fs::read_to_string(root.path().join("runs")).unwrap(), "run\nrun\n");
    stopped();
}

/// Runs a script in a folder, as somebody who commits.
fn sh(folder: &Path, script: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-ec", script]).current_dir(folder);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "A").env(format!("GIT_{who}_EMAIL"), "a@b.c");
    }
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{script}: {ran:?}");
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

/// What is read of the project in this folder.
fn read(root: &Path, at: &str, said: &str) -> FoundRecipe {
    let ran = ran(root, READ, &wanted(at.to_owned(), said, 40));
    assert!(ran.status.success(), "{ran:?}");
    found(&String::from_utf8(ran.stdout).unwrap())
}

/// A sandbox whose project is a repository with these files in its only commit.
fn committed(script: &str) -> TempDir {
    let root = sandbox();
    commit(root.path(), &format!("git init -q\nmkdir .bobbin\n{script}"));
    root
}

fn commit(root: &Path, script: &str) {
    sh(root, &format!("cd project\n{script}\ngit add -A\ngit commit -qm Next"));
}

#[test]
fn start_that_cannot_begin_is_no_success() {
    let root = sandbox();
    let (all, services) = (steps(&["true", "false"]), [ProjectService::Postgres]);
    let mut environment = written(&all, &BTreeMap::new());
    environment.extend([
        ("BOBBIN_SERVICES".to_owned(), "postgres".to_owned()),
        ("BOBBIN_WITHIN_S".to_owned(), "60".to_owned()),
    ]);
    // It stands where a folder has to be.
    fs::write(root.path().join(".bobbin"), "").unwrap();
    let ran = ran(root.path(), START, &environment);
    let text = String::from_utf8(ran.stdout).unwrap();
    let of = |exit_code: i64, text: &str| {
        let ran = ScriptOutput { exit_code, text: text.to_owned() };
        let failed = not_started(&services, &all, &ran).into_iter();
        failed.map(|one| (one.name, one.end, one.is_unrun)).collect::<Vec<_>>()
    };
    let named = |name: &str, is_unrun| (name.to_owned(), StepEnd::Failed(1), is_unrun);
    let unrun = [named("PostgreSQL", true), named("true", true), named("false", true)];
    assert_eq!(of(i64::from(ran.status.code().unwrap()), &text), unrun);
    assert_eq!(of(1, "service postgres 1\nserved\n")[0], named("PostgreSQL", false));
    assert_eq!(of(1, "served\n"), unrun[1..]);
    assert_eq!(of(1, "served\nbegun\n"), []);
    assert_eq!(of(0, "served\nbegun\nend 0\nend 1\n"), [named("false", false)]);
}

#[test]
fn recipe_comes_from_the_default_branch() {
    let root = tempfile::tempdir().unwrap();
    let origin = "git init -q -b main origin; cd origin; mkdir .bobbin
printf 'set-up: [make ready]\\n' >.bobbin/environment.yaml; ln -s /etc/passwd .nvmrc; touch package-lock.json
git add -A; git commit -qm One; git checkout -qb evil
printf 'set-up: [curl evil]\\n' >.bobbin/environment.yaml; git commit -qam Evil; git checkout -q main; git rev-parse main";
    let default = sh(root.path(), origin);
    for branch in ["main", "evil"] {
        let clone = "rm -rf project; git clone -q --depth 5 --single-branch";
        sh(root.path(), &format!("{clone} --branch {branch} file://$PWD/origin project"));
        let found = read(root.path(), "origin", "");
        assert_eq!(found.commit.as_deref(), Some(&*default), "{branch}");
        assert_eq!(found.recipe.unwrap().set_up, steps(&["make ready"]), "{branch}");
        assert!(found.ticks > 0);
    }
}

/// The checkout's branch has the commit of the default branch among its own.
#[test]
fn fetched_branch_cuts_no_history() {
    let root = tempfile::tempdir().unwrap();
    let made = "git init -q -b main origin; cd origin; mkdir .bobbin
printf 'set-up: [make ready]\\n' >.bobbin/environment.yaml
for nth in 1 2 3 4 5; do echo $nth >file; git add -A; git commit -qm $nth; done
git checkout -qb other; git commit -q --allow-empty -m Other; git checkout -q main; cd ..
git clone -q --depth 50 --single-branch --branch other file://$PWD/origin project";
    sh(root.path(), made);
    let found = read(root.path(), "origin", "");
    assert_eq!(found.recipe.unwrap().set_up, steps(&["make ready"]));
    assert_eq!(sh(root.path(), "git -C project rev-list --count HEAD"), "6");
    let left = "ls -A .bobbin project/.git/shallow 2>/dev/null || true";
    assert_eq!(sh(root.path(), left), ".bobbin:");
}

#[test]
fn slow_fetch_costs_the_files_alone() {
    let slow = "git config protocol.ext.allow always; git remote add origin 'ext::sleep 300'";
    let root = committed(&format!("{slow}; : >file"));
    let ran = ran(root.path(), READ, &wanted("origin".to_owned(), "", 1));
    let found = found(&String::from_utf8(ran.stdout).unwrap());
    assert!(found.ticks > 0 && found.commit.is_none() && found.recipe.is_none(), "{found:?}");
}

#[test]
fn lock_file_behind_many_names_is_found() {
    let many = "for nth in $(seq 100 700); do : >a$nth; done\n: >yarn.lock\n: >.yarnrc.yml";
    let root = committed(many);
    let recipe = read(root.path(), "base HEAD", "").recipe.unwrap();
    assert_eq!(recipe.set_up, steps(&["yarn install --immutable"]));
}

#[test]
fn link_is_read_inside_the_repository_alone() {
    let inside = "printf 'set-up: [make ready]\\n' >.bobbin/own
ln -s own .bobbin/environment.yaml";
    let recipe = read(committed(inside).path(), "base HEAD", "").recipe.unwrap();
    assert_eq!(recipe.set_up, steps(&["make ready"]));
    for to in ["/etc/passwd", "../../elsewhere", "../none"] {
        let root = committed(&format!("ln -s {to} .bobbin/environment.yaml; : >yarn.lock"));
        let recipe = read(root.path(), "base HEAD", "").recipe.unwrap();
        let why = "a link to no file of the repository: commit the file itself.";
        let why = format!("`.bobbin/environment.yaml`: {why}");
        assert_eq!((recipe.set_up, recipe.refused), (Vec::new(), vec![why]), "{to}");
    }
}

#[test]
fn scripts_of_steps_count_as_lock_files_do() {
    let made = "mkdir -p bin tools/db; echo 1 >bin/setup; echo 1 >tools/db/make.sh; echo 1 >main.rs
printf 'set-up:\\n  - ./bin/setup --all\\n' >.bobbin/environment.yaml";
    let root = committed(made);
    let locks = |said: &str| read(root.path(), "base HEAD", said).locks;
    let next = |script: &str| commit(root.path(), script);
    let (first, of_manager) = (locks(""), locks("{set-up: [tools/db/make.sh]}"));
    assert_ne!(first, of_manager);
    next("echo 2 >main.rs");
    assert_eq!(locks(""), first, "no step names it");
    next("echo 2 >tools/db/make.sh");
    assert_eq!(locks(""), first, "a manager's step names it");
    assert_ne!(locks("{set-up: [tools/db/make.sh]}"), of_manager);
    next("echo 2 >bin/setup");
    let second = locks("");
    assert_ne!(second, first);
    next("echo 1 >Cargo.lock");
    assert_ne!(locks(""), second);
}

#[test]
fn what_steps_run_counts_wherever_they_run_it() {
    let made = "mkdir -p bin lib web/bin web/src; echo 1 >web/bin/prepare; echo 1 >web/src/main
echo 1 >lib/real; ln -s ../lib/real bin/linked; ln -s none bin/broken; echo 1 >run";
    let root = committed(made);
    let said = "{set-up: [cd web && ./bin/prepare, ./bin/linked, ./bin/broken, bash run]}";
    for (script, said, counts) in [
        ("echo 2 >web/bin/prepare", said, true),
        ("echo 2 >lib/real", said, true),
        ("echo 2 >run", said, true),
        ("echo 2 >web/src/main", said, false),
        ("echo 3 >web/bin/prepare", "{set-up: ['$HERE/prepare']}", true),
        ("echo 4 >web/bin/prepare", "{set-up: [cp web/bin/ /srv]}", true),
        ("echo 5 >web/bin/prepare", "{set-up: [make]}", false),
    ] {
        let before = read(root.path(), "base HEAD", said).locks;
        commit(root.path(), script);
        assert_eq!(read(root.path(), "base HEAD", said).locks != before, counts, "{script} {said}");
    }
}
