//! What holds for every command, whatever it does: help, how a stack is named, and the exit code that says how it
//! ended.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the program with these variables alone in its environment: its exit code, and what it printed on either side.
fn run(arguments: &[&str], environment: &[(&str, &str)]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_bobbin"))
        .args(arguments)
        .env_clear()
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

#[test]
fn missing_command_shows_help() {
    let (_, help, _) = run(&["--help"], &[]);
    for (arguments, environment) in
        [(&[][..], &[][..]), (&[], &[("BOBBIN_STACK", "mine")]), (&["--stack", "mine"], &[])]
    {
        let (code, out, shown) = run(arguments, environment);
        assert_eq!((code, out.as_str()), (2, ""), "{shown}");
        // Below the commands stand the options, with what the environment says of them.
        let first = |text: &str| text.split("\n      --stack").next().unwrap().to_owned();
        assert_eq!(first(&shown), first(&help));
        assert!(shown.contains("\nSet-up:\n") && shown.contains("\nOperation:\n"));
    }
}

#[test]
fn operation_never_guesses_the_stack() {
    for command in [&["thread", "list"][..], &["dead", "replay", "--all"]] {
        let (code, out, err) = run(command, &[]);
        assert_eq!((code, out.as_str()), (1, ""));
        assert_eq!(
            err,
            "Which stack? Use --stack NAME for a deployed one (or set BOBBIN_STACK), or --laptop for the one that cargo run has started.\n"
        );
    }
    for (command, environment) in [
        (&["env"][..], &[][..]),
        (&["sandbox", "list"], &[("BOBBIN_STACK", "mine")]),
        (&["thread", "list", "--stack", "mine"], &[]),
    ] {
        let (code, _, err) = run(command, environment);
        assert_eq!(code, 1);
        assert!(err.starts_with("No AWS region is set."), "{err}");
    }
}

#[test]
fn laptop_option_overrides_the_environment() {
    let other = [("BOBBIN_STACK", "mine"), ("AWS_ENDPOINT_URL", "http://127.0.0.1:9")];
    for command in [&["env"][..], &["credentials"], &["thread", "list"]] {
        let laptop = [&["--laptop", "--state-dir", "/nowhere"], command].concat();
        let (code, out, err) = run(&laptop, &other);
        assert_eq!((code, out.as_str()), (1, ""), "{command:?}");
        assert!(
            err.starts_with("No laptop stack runs with the state folder /nowhere: "),
            "{command:?}: {err}"
        );
    }
}

#[test]
fn closed_pipe_keeps_exit_code() {
    for (arguments, code) in [
        (&["thread", "list"][..], 1),
        (&["thread", "--nonsense"], 2),
        (&["completions", "bash"], 0),
        (&["sandbox", "host", "ssh", "--key", "none.pub"], 1),
        (&[], 2),
    ] {
        let gone = || Stdio::from(std::io::pipe().unwrap().1);
        let status = Command::new(env!("CARGO_BIN_EXE_bobbin"))
            .args(arguments)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(gone())
            .stderr(gone())
            .status();
        assert_eq!(status.unwrap().code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn nothing_uses_print_macros() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            read += 1;
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                let code = line.split("//").next().unwrap();
                let panics = ["println!", "print!"].iter().any(|name| code.contains(name));
                assert!(!panics, "{}: {line}", path.display());
            }
        }
    }
    assert!(read > 40, "{read}");
}

#[test]
fn json_failure_is_on_stdout() {
    let (code, out, err) = run(&["--json", "thread", "list"], &[]);
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 1);
    assert_eq!(told["exit"], 1);
    assert_eq!(told["error"].as_str(), Some(err.trim_end()));
    assert_eq!(keys(&documented("\"exit\"")), keys(&told));
}

/// The example of the page that has this in it.
fn documented(part: &str) -> serde_json::Value {
    let page = include_str!("../../../docs/appendix/JSON.md");
    let mut blocks = page.split("```").filter_map(|block| block.strip_prefix("json\n"));
    serde_json::from_str(blocks.find(|block| block.contains(part)).unwrap()).unwrap()
}

fn keys(answer: &serde_json::Value) -> BTreeSet<&String> {
    answer.as_object().unwrap().keys().collect()
}

/// Runs a shell with the completion of this program in `$1`, and a script that asks it something; `None` where that
/// shell is not installed.
fn asked(shell: &str, options: &[&str], script: &str) -> Option<String> {
    let (code, completion, _) = run(&["completions", shell], &[]);
    assert_eq!(code, 0);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("_bobbin");
    std::fs::write(&file, completion).unwrap();
    let output = Command::new(shell)
        .args(options)
        .args(["-c", script])
        .args((shell != "fish").then_some("shell"))
        .args([&file, folder.path()])
        .env("TERM", "xterm")
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => {
            assert!(std::env::var_os("CI").is_none(), "{shell} is not installed");
            eprintln!("NOT TESTED: {shell} is not installed");
            return None;
        }
        output => output.unwrap(),
    };
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shell}: {err}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn bash_completes_commands_options_and_values() {
    let script = r#"
source "$1"
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _bobbin bobbin "${@: -1}" "${@: -2:1}"; echo "${COMPREPLY[*]}"; }
ask bobbin sa
ask bobbin sandbox st
ask bobbin sandbox s
ask bobbin thread list --phase pa
ask bobbin send --sandbox
ask bobbin sandbox setup --provider da
ask bobbin completions z
complete -p bobbin"#;
    let told = asked("bash", &["--noprofile", "--norc"], script).expect("bash is installed");
    let told: Vec<&str> = told.lines().collect();
    assert_eq!(
        told[..7],
        [
            "sandbox",
            "stop start",
            "stop start snapshot setup",
            "pausing paused",
            "--sandbox --sandbox-provider --sandbox-runtime --sandbox-repo --sandbox-pr --sandbox-snapshot",
            "daytona",
            "zsh"
        ]
    );
    assert!(told[7].contains("_bobbin") && told[7].ends_with(" bobbin"), "{}", told[7]);
}

#[test]
fn fish_completes_commands_with_descriptions() {
    let script = "source $argv[1]; complete -C 'bobbin sandbox sta'; complete -C 'bobbin thread list --phase pau'";
    let Some(told) = asked("fish", &["--no-config"], script) else {
        return;
    };
    assert_eq!(
        told.lines().collect::<Vec<_>>(),
        ["start\tStart a stopped sandbox and its server", "paused", "pausing"],
        "{told}"
    );
}

#[test]
fn zsh_completes_commands_on_tab() {
    // A shell of its own in a pseudo-terminal, in which somebody presses Tab.
    let script = r#"
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "fpath=(${(q)2} \$fpath); autoload -Uz compinit; compinit -u -D; print rea''dy"
zpty -r -m z told '*ready*'
zpty -w -n z $'bobbin sandbox sta\t'
zpty -r -m z told '*sandbox start*'
zpty -w -n z $'frontend --even\t'
zpty -r -m z told '*--even-if-busy*'
print -r -- completed
zpty -d z"#;
    let Some(told) = asked("zsh", &["-f"], script) else {
        return;
    };
    assert_eq!(told, "completed\n");
}

#[test]
fn host_script_needs_a_public_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let public = file(
        "bobbin.pub",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ bobbin\n",
    );
    let private = file("bobbin", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn\n");
    let ssh = ["sandbox", "host", "ssh", "--key"];
    let with = |more: &[&str]| {
        let line: Vec<&str> = ssh.iter().chain(more).copied().collect();
        run(&line, &[])
    };
    let (code, script, err) = with(&[&public, "--sandboxes", "3", "--memory", "2G"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        script.starts_with(
            "#!/bin/sh\nuser=bobbin\nsandboxes=3\nfirst_port=21000\nkey='ssh-ed25519 AAAA"
        ),
        "{script}"
    );
    // A shell reads it to its end.
    let read = Command::new("sh").args(["-n", "-c", &script]).status();
    assert!(read.unwrap().success());
    let (code, json, _) = with(&[&public, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(code, 0);
    assert!(json["script"].as_str().unwrap().contains("\nsandboxes=8\n"));
    for (more, says) in [
        (&[private.as_str()][..], "is a private key, which must stay here"),
        (&["none.pub"], "--key none.pub cannot be read"),
        (&[&public, "--sandboxes", "0"], "sandboxes must be 1 to 250"),
        (&[&public, "--user", "a b"], "lower-case letters"),
    ] {
        let (code, out, err) = with(more);
        assert_eq!((code, out.as_str()), (1, ""));
        assert!(err.contains(says) && !err.contains("b3Blbn"), "{err}");
    }
}

/// Without a tenant it is about a folder here, and needs no stack.
#[test]
fn environment_of_a_checkout_needs_no_stack() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    std::fs::create_dir(folder.path().join(".bobbin")).unwrap();
    let recipe = folder.path().join(".bobbin/environment.yaml");
    std::fs::write(recipe, "set-up: [npm ci]\n").unwrap();
    for line in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "One"]] {
        let person = ["-C", path, "-c", "user.name=A", "-c", "user.email=a@b"];
        let ran = Command::new("git").args(person).args(line).status().unwrap();
        assert!(ran.success(), "{line:?}");
    }
    let path_of_programs = std::env::var("PATH").unwrap();
    let programs = [("PATH", &*path_of_programs)];
    let (code, out, err) = run(&["environment", "show", path], &programs);
    assert_eq!(
        (code, out.as_str()),
        (0, "By .bobbin/environment.yaml:\n- once: npm ci\n"),
        "{err}"
    );
    let (code, out, _) = run(&["environment", "show", path, "--json"], &programs);
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &answer["recipe"]["set_up"][0]["run"]), (0, &"npm ci".into()));
    assert_eq!(keys(&documented("{\"recipe\": ")), keys(&answer));
    let (code, _, err) = run(&["environment", "show", "acme/api"], &programs);
    assert_eq!(code, 1);
    assert!(
        err.starts_with("acme/api is not a checkout") && err.contains("--tenant TENANT"),
        "{err}"
    );
    let (code, _, err) =
        run(&["environment", "show", "acme/api", "--tenant", "slack:T1"], &programs);
    assert_eq!(code, 1);
    assert!(err.starts_with("Which stack?"), "{err}");
}
