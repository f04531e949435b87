//! Snapshots on SSH hosts, and sandboxes that begin with them.

use bobbin_sandbox::labels::StackIdentity;
use bobbin_sandbox::{SnapshotName, SnapshotState};

use super::*;

fn stack() -> StackIdentity<'static> {
    StackIdentity { name: "dev", id: "this-one" }
}

fn snapshot_of(thread: &str) -> SnapshotName {
    SnapshotName::new(stack(), &key_of(thread), 1, 5)
}

fn store(provider: &SshSandboxes) -> &dyn bobbin_sandbox::SnapshotStore {
    provider.facts().snapshots().unwrap()
}

/// Asks for a snapshot until it is over, as its delivery does.
async fn kept(provider: &SshSandboxes, name: &SnapshotName) -> SnapshotState {
    for _ in 0..600 {
        match store(provider).create(name).await {
            Ok(SnapshotState::Underway)
            | Err(ProviderError { failure: Failure::Wait { .. }, .. }) => {}
            other => return other.unwrap(),
        }
    }
    panic!("it is never over");
}

async fn ensure_from(
    provider: &SshSandboxes,
    thread: &str,
    name: &SnapshotName,
) -> ProviderResult<SandboxState> {
    let secrets = BTreeMap::new();
    let spec = SandboxSpec { secrets: &secrets, snapshot: Some(name) };
    provider.create(&key_of(thread), 1, spec).await
}

/// Looks until the sandbox is no longer being made.
async fn unpacked(provider: &SshSandboxes, thread: &str) -> Sandbox {
    for _ in 0..600 {
        let found = provider.observe(&name_of(thread)).await.unwrap();
        if found.state != SandboxState::Provisioning {
            return found;
        }
    }
    panic!("it is never made");
}

/// What the host keeps of snapshots, and what is on the way once the control user is at nothing.
fn left(host: &Host) -> String {
    await_end(host, "sh");
    host.as_root("cd /var/lib/bobbin && find snapshots pipes -mindepth 1 ! -name .lock | sort")
}

fn failed(reason: &str) -> SnapshotState {
    SnapshotState::Failed { reason: reason.to_owned() }
}

/// What holds commands.
const HOLD: &str = include_str!("../../../../tests/ssh/hold.sh");
/// More than a pipe takes.
const BULKY: &str = "head -c 2000000 /dev/urandom >bulk; sha256sum bulk >sum; mkdir -p tree && cd tree && seq 2000 | xargs touch";
const IS_BULKY: &str = "sha256sum --quiet -c sum && ls tree | wc -l";

/// From now on packing and unpacking wait on the machine until they are let go.
fn hold(host: &Host) {
    host.as_root(
        r#"rm -f /tmp/go
[ ! -e /usr/local/bin/zstd ] || exit 0
mount -t tmpfs -o mode=755 tmpfs /usr/local/bin
printf '#!/bin/sh\nuntil [ -e /tmp/go ]; do sleep 0.05; done\nexec /usr/bin/zstd "$@"\n' >/usr/local/bin/zstd
chmod 755 /usr/local/bin/zstd"#,
    );
}

fn let_go(host: &Host) {
    host.as_root("touch /tmp/go");
}

/// Kills what bears this name of a user's, once zstd of that slot waits.
fn kill_at_work(host: &Host, slot: u16, (user, program): (&str, &str)) {
    host.as_root(&format!(
        "timeout 30 sh -c 'until pgrep -u bobbin-{slot} -x zstd && pkill -KILL -u {user} -x {program}; do sleep 0.05; done' >/dev/null"
    ));
}

/// Returns when the control user runs none of these.
fn await_end(host: &Host, program: &str) {
    host.as_root(&format!(
        "timeout 30 sh -c 'while pgrep -u bobbin -x {program}; do sleep 0.05; done' >/dev/null"
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshot_begins_a_sandbox_on_its_host() {
    machines!();
    let (key, public) = key_pair();
    let (one, two) = (Host::start("one", 3, &public), Host::start("two", 2, &public));
    let provider = at(vec![one.settings(), two.settings()], &key);
    let builder = made(&provider, "2").await;
    let fill = r#"umask 022
mkdir -p project/bin .git/objects "a b" sub tmp
printf '#!%s/project/bin/python\nprint(1)\n' "$HOME" >project/bin/tool; chmod 750 project/bin/tool
printf '%s:%s/x:%s2\n' "$HOME" "$HOME" "$HOME" >"a b/new
line"
ln -s "$HOME/project/bin" "a b/link"; ln -s ../project near; ln -s /etc/passwd far; ln -s "${HOME}2/x" other
printf 'blob\0%s' "$HOME" >binary; printf %s "$HOME" >.git/objects/1; printf %s "$HOME" >.git/config
echo twice >hard; ln hard harder; mkfifo pipe; truncate -s 1G sparse; touch tmp/away
printf %s "$HOME" >sub/held; chmod 640 sub/held; chmod 4711 hard; mkdir -m 555 locked"#;
    assert_eq!(ran(&provider, &builder, fill).await.text, "");
    let name = snapshot_of("2");
    assert_eq!(store(&provider).observe(&name).await.unwrap(), SnapshotState::Absent);
    assert_eq!(kept(&provider, &name).await, SnapshotState::Ready);
    let listed = store(&provider).list().await.unwrap();
    assert_eq!((listed.len(), &listed[0].name), (1, &name));
    assert!(listed[0].gib.unwrap() < 0.001, "{listed:?}");
    // It runs on, and the snapshot outlives it.
    assert_eq!(state(&provider, &builder.name).await, Ok(SandboxState::Running));
    delete(&provider, &builder.name).await.unwrap();
    assert_eq!(kept(&provider, &name).await, SnapshotState::Ready);

    // The other host has more room.
    made(&provider, "8").await;
    made(&provider, "9").await;
    assert_eq!(ensure_from(&provider, "3", &name).await, Ok(SandboxState::Provisioning));
    let sandbox = unpacked(&provider, "3").await;
    assert_eq!((host_of(&sandbox), &sandbox.state), ("one", &SandboxState::Running));
    assert_eq!(ensure_from(&provider, "3", &name).await, Ok(SandboxState::Running));
    let look = r#"cd "$HOME"; here() { sed "s#$HOME#HERE#g"; }
stat -c '%a %n' project/bin/tool sub/held hard locked; here <project/bin/tool; cat "a b/new
line" sub/held .git/config | here; echo
readlink "a b/link" near far other | here; tr '\0' ' ' <binary | here; echo; cat .git/objects/1 | here; echo
[ hard -ef harder ] && [ -p pipe ] && [ -d tmp ] && ls tmp && stat -c %s sparse && du -k sparse | cut -f1"#;
    let old = format!("/var/lib/bobbin/1/disk/{}", builder.name);
    assert_eq!(
        ran(&provider, &sandbox, look).await.text,
        format!(
            "750 project/bin/tool\n640 sub/held\n4711 hard\n555 locked\n#!HERE/project/bin/python\nprint(1)\n\
             HERE:HERE/x:{old}2\nHEREHERE\nHERE/project/bin\n../project\n/etc/passwd\n{old}2/x\n\
             blob {old}\n{old}\n1073741824\n0\n"
        )
    );

    store(&provider).delete(&name).await.unwrap();
    store(&provider).delete(&name).await.unwrap();
    assert_eq!(store(&provider).observe(&name).await.unwrap(), SnapshotState::Absent);
    assert_eq!(store(&provider).list().await.unwrap(), []);
    let none = store(&provider).create(&name).await.unwrap_err();
    assert_eq!(none.kind, ErrorKind::NotFound);
    assert_eq!(ran(&provider, &sandbox, "cat hard").await.text, "twice\n");
    assert_eq!(left(&one), "");
    // One that is stopped has a disk, too.
    provider.stop(&sandbox.name, later()).await.unwrap();
    assert_eq!(kept(&provider, &snapshot_of("3")).await, SnapshotState::Ready);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_packing_ends_in_a_whole_snapshot() {
    machines!();
    let (key, public) = key_pair();
    let mut host = Host::start("one", 2, &public);
    let provider = at(vec![host.settings()], &key);
    let other_worker = at(vec![host.settings()], &key);
    let sandbox = made(&provider, "2").await;
    ran(&provider, &sandbox, BULKY).await;
    let name = snapshot_of("2");
    let whole = format!("snapshots/{name}.tar.zst\n");
    let victims = [
        ("bobbin", "head"),
        ("bobbin", "sh"),
        ("bobbin-1", "tar"),
        ("bobbin-1", "zstd"),
        ("bobbin-1", "sh"),
    ];
    for victim in victims {
        hold(&host);
        let (one, two) =
            tokio::join!(store(&provider).create(&name), store(&other_worker).create(&name));
        assert_eq!(one.unwrap(), SnapshotState::Underway);
        assert_eq!(two.unwrap(), SnapshotState::Underway);
        kill_at_work(&host, 1, victim);
        let_go(&host);
        // Never is it taken for whole: what was cut off is gone, or was begun again by the other.
        for _ in 0..600 {
            match store(&provider).observe(&name).await.unwrap() {
                SnapshotState::Underway => {}
                seen => {
                    assert_eq!(seen, SnapshotState::Absent, "{victim:?}");
                    break;
                }
            }
        }
        let (one, two) = tokio::join!(kept(&provider, &name), kept(&other_worker, &name));
        assert_eq!((one, two), (SnapshotState::Ready, SnapshotState::Ready));
        host.as_root(&format!("zstd -qt /var/lib/bobbin/{}", whole.trim()));
        assert_eq!(left(&host), whole);
        store(&provider).delete(&name).await.unwrap();
    }
    // With the whole machine.
    hold(&host);
    assert_eq!(store(&provider).create(&name).await.unwrap(), SnapshotState::Underway);
    host.restart();
    assert_eq!(store(&provider).observe(&name).await.unwrap(), SnapshotState::Absent);
    assert_eq!(kept(&provider, &name).await, SnapshotState::Ready);
    assert_eq!(ensure_from(&provider, "3", &name).await, Ok(SandboxState::Provisioning));
    let copy = unpacked(&provider, "3").await;
    assert_eq!(ran(&provider, &copy, IS_BULKY).await.text, "2000\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_snapshot_ends_its_making() {
    machines!();
    let (key, public) = key_pair();
    let host = Host::start("one", 1, &public);
    let provider = at(vec![host.settings()], &key);
    let sandbox = made(&provider, "2").await;
    ran(&provider, &sandbox, BULKY).await;
    let name = snapshot_of("2");
    hold(&host);
    assert_eq!(store(&provider).create(&name).await.unwrap(), SnapshotState::Underway);
    store(&provider).delete(&name).await.unwrap();
    assert_eq!(store(&provider).observe(&name).await.unwrap(), SnapshotState::Absent);
    await_end(&host, "head");
    assert_eq!(store(&provider).list().await.unwrap(), []);
    // Nor does the end of the first come in the way of a second.
    assert_eq!(store(&provider).create(&name).await.unwrap(), SnapshotState::Underway);
    store(&provider).delete(&name).await.unwrap();
    let_go(&host);
    assert_eq!(kept(&provider, &name).await, SnapshotState::Ready);
    assert_eq!(left(&host), format!("snapshots/{name}.tar.zst\n"));

    // A sandbox that ends takes its half of the work along.
    store(&provider).delete(&name).await.unwrap();
    hold(&host);
    assert_eq!(store(&provider).create(&name).await.unwrap(), SnapshotState::Underway);
    delete(&provider, &sandbox.name).await.unwrap();
    await_end(&host, "head");
    let none = "ls -A /var/lib/bobbin/1/disk; pgrep -u bobbin-1 -l | grep -v sshd || true";
    assert_eq!(host.as_root(none), "");
    assert_eq!(left(&host), "");
    let none = store(&provider).create(&name).await.unwrap_err();
    assert_eq!(none.kind, ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_unpacking_is_begun_again() {
    machines!();
    let (key, public) = key_pair();
    let mut host = Host::start("one", 2, &public);
    let provider = at(vec![host.settings()], &key);
    let sandbox = made(&provider, "2").await;
    ran(&provider, &sandbox, BULKY).await;
    let name = snapshot_of("2");
    assert_eq!(kept(&provider, &name).await, SnapshotState::Ready);
    let disk = "ls -A /var/lib/bobbin/2/disk; pgrep -u bobbin-2 -l | grep -v sshd || true";
    let victims = [
        ("bobbin", "cat"),
        ("bobbin", "sh"),
        ("bobbin-2", "tar"),
        ("bobbin-2", "zstd"),
        ("bobbin-2", "sh"),
    ];
    for victim in victims {
        hold(&host);
        let other_worker = at(vec![host.settings()], &key);
        let (one, two) = tokio::join!(
            ensure_from(&provider, "3", &name),
            ensure_from(&other_worker, "3", &name)
        );
        assert_eq!(one, Ok(SandboxState::Provisioning));
        assert_eq!(two, Ok(SandboxState::Provisioning));
        kill_at_work(&host, 2, victim);
        let_go(&host);
        let copy = unpacked(&provider, "3").await;
        assert_eq!(copy.state, SandboxState::Running, "{victim:?}");
        assert_eq!(ran(&provider, &copy, IS_BULKY).await.text, "2000\n");
        assert_eq!(host.as_root("ls -A /var/lib/bobbin/2/disk"), format!("{}\n", copy.name));
        delete(&provider, &copy.name).await.unwrap();
        assert_eq!(host.as_root(disk), "");
    }
    // With the whole machine, and with the sandbox itself.
    hold(&host);
    assert_eq!(ensure_from(&provider, "3", &name).await, Ok(SandboxState::Provisioning));
    host.restart();
    let copy = unpacked(&provider, "3").await;
    assert_eq!(ran(&provider, &copy, IS_BULKY).await.text, "2000\n");
    delete(&provider, &copy.name).await.unwrap();
    hold(&host);
    assert_eq!(ensure_from(&provider, "3", &name).await, Ok(SandboxState::Provisioning));
    assert_eq!(delete(&provider, &name_of("3")).await, Ok(SandboxState::Gone));
    assert_eq!(host.as_root(disk), "");
    await_end(&host, "cat");
    made(&provider, "4").await;
}

/// A worker that was cut off long ago goes on in a slot that another tenant has by then.
#[tokio::test(flavor = "multi_thread")]
async fn late_unpacking_gets_no_foreign_files() {
    machines!();
    let (key, public) = key_pair();
    let mut host = Host::start("one", 2, &public);
    host.as_root(&format!(
        "mkdir -m 1777 /var/lib/hold
printf 'Match User bobbin\\nForceCommand sh /etc/ssh/hold.sh\\n' >/etc/ssh/sshd_config.d/0-hold.conf
cat >/etc/ssh/hold.sh <<'HOLD'\n{HOLD}\nHOLD"
    ));
    host.restart();
    let provider = at(vec![host.settings()], &key);
    let sandbox = made(&provider, "2").await;
    ran(&provider, &sandbox, BULKY).await;
    let name = snapshot_of("2");
    assert_eq!(kept(&provider, &name).await, SnapshotState::Ready);
    // It is about to be told where the archive is sent from.
    host.as_root(
        "cd /var/lib/hold; echo 0 >count; : >lock; chmod 666 count lock; echo '4 after' >armed",
    );
    let late = at(vec![host.settings()], &key);
    let name_too = name.clone();
    let late = tokio::spawn(async move { ensure_from(&late, "3", &name_too).await });
    host.as_root("timeout 30 sh -c 'until [ -e /var/lib/hold/held ]; do sleep 0.05; done'");
    assert_eq!(delete(&provider, &name_of("3")).await, Ok(SandboxState::Gone));
    let other = made(&provider, "4").await;
    host.as_root("touch /var/lib/hold/go");
    assert_eq!(late.await.unwrap(), Ok(SandboxState::Provisioning));
    let at_work = "timeout 30 sh -c 'while pgrep -u bobbin -x sh || pgrep -u bobbin-2 -x sh; do sleep 0.05; done' >/dev/null";
    host.as_root(at_work);
    let disk = host.as_root("ls -A /var/lib/bobbin/2/disk; ls -A /var/lib/bobbin/2/disk/*");
    assert_eq!(disk, format!("{}\ntmp\n", other.name));
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_snapshot_fails_the_new_sandbox() {
    machines!();
    let (key, public) = key_pair();
    let host = Host::start("one", 2, &public);
    let provider = at(vec![host.settings()], &key);
    let sandbox = made(&provider, "2").await;
    let (name, prebuild) = (snapshot_of("2"), SnapshotName::prebuild(stack(), &key_of("2"), 1, 6));
    let gone = "The snapshot for the new sandbox no longer exists. Choose another snapshot, or create the sandbox without one.";
    let reason = |refused: ProviderResult<SandboxState>| match refused.unwrap_err().failure {
        Failure::TurnFailed { reason } => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(ensure_from(&provider, "3", &name).await), gone);
    ran(&provider, &sandbox, BULKY).await;
    for name in [&name, &prebuild] {
        assert_eq!(kept(&provider, name).await, SnapshotState::Ready);
    }

    // Deleted while it is unpacked: the sandbox is broken, and a repeat takes it away.
    hold(&host);
    assert_eq!(ensure_from(&provider, "3", &name).await, Ok(SandboxState::Provisioning));
    store(&provider).delete(&name).await.unwrap();
    await_end(&host, "cat");
    let_go(&host);
    let SandboxState::Broken { reason: told, recoverable: false } =
        unpacked(&provider, "3").await.state
    else {
        panic!("it is not broken");
    };
    assert_eq!(told, "the snapshot for the new sandbox no longer exists");
    assert_eq!(reason(ensure_from(&provider, "3", &name).await), gone);
    assert_eq!(state(&provider, &name_of("3")).await, Ok(SandboxState::Gone));
    assert_eq!(host.as_root("ls -A /var/lib/bobbin/2/disk"), "");

    // No room to unpack it.
    host.as_root(
        "mount -t tmpfs -o size=1m,mode=700,uid=$(id -u bobbin-2) tmpfs /var/lib/bobbin/2/disk",
    );
    assert_eq!(ensure_from(&provider, "3", &prebuild).await, Ok(SandboxState::Provisioning));
    let SandboxState::Broken { reason: told, .. } = unpacked(&provider, "3").await.state else {
        panic!("it is not broken");
    };
    assert!(told.contains("cannot be unpacked on the SSH host one: its disk is full"), "{told}");
    assert_eq!(delete(&provider, &name_of("3")).await, Ok(SandboxState::Gone));
    assert_eq!(host.as_root("ls -A /var/lib/bobbin/2/disk; umount /var/lib/bobbin/2/disk"), "");

    // Its host is full: a person is told, and a prebuild is done without.
    made(&provider, "4").await;
    assert_eq!(kept(&provider, &name).await, SnapshotState::Ready);
    let told = advice(ensure_from(&provider, "3", &name).await.unwrap_err().failure);
    assert_eq!(
        told,
        "The SSH host one, which has the snapshot, is full. End a sandbox that nobody needs there, or create the sandbox without the snapshot."
    );
    let refused = ensure_from(&provider, "3", &prebuild).await.unwrap_err();
    assert!(matches!(refused.failure, Failure::Wait { .. }), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_of_one_host_are_isolated() {
    machines!();
    let (key, public) = key_pair();
    let host = Host::start("one", 3, &public);
    let provider = at(vec![host.settings()], &key);
    let (sandbox, spy) = (made(&provider, "2").await, made(&provider, "3").await);
    ran(&provider, &sandbox, BULKY).await;
    let name = snapshot_of("2");
    // One loop notes what a user can see, and one what there is to be seen.
    let watch = "rm -f go; setsid sh -c 'until [ -e go ]; do cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ; ls -R /var/lib/bobbin/pipes; done' >seen 2>/dev/null </dev/null & echo";
    ran(&provider, &spy, watch).await;
    host.as_root("cd /tmp && setsid sh -c 'until [ -e go ]; do ls /var/lib/bobbin/pipes; done' >names 2>/dev/null </dev/null &");
    assert_eq!(kept(&provider, &name).await, SnapshotState::Ready);
    assert_eq!(ensure_from(&provider, "4", &name).await, Ok(SandboxState::Provisioning));
    let copy = unpacked(&provider, "4").await;
    ran(&provider, &spy, "touch go").await;
    let names = host.as_root("touch /tmp/go; sort -u /tmp/names");
    let names: Vec<&str> = names.lines().collect();
    assert!(names.len() >= 2 && names.iter().all(|name| name.len() == 24), "{names:?}");
    let found = names.iter().map(|name| format!("grep -ac {name} seen; "));
    let found = ran(&provider, &spy, &found.collect::<String>()).await.text;
    assert!(found.lines().all(|count| count == "0"), "{found}");
    let saw = ran(&provider, &spy, "grep -ac sshd seen").await.text;
    assert_ne!(saw.trim(), "0");

    let pry = format!(
        "ls /var/lib/bobbin/pipes; ls /var/lib/bobbin/snapshots; cat /var/lib/bobbin/snapshots/{name}.tar.zst; touch /var/lib/bobbin/snapshots/x /var/lib/bobbin/pipes/x; rm -f /var/lib/bobbin/snapshots/{name}.tar.zst; mkfifo /var/lib/bobbin/pipes/y; true"
    );
    for sandbox in [&sandbox, &spy, &copy] {
        let pried = ran(&provider, sandbox, &pry).await.text;
        assert_eq!(pried.matches("ermission denied").count(), 7, "{pried}");
    }
    assert_eq!(left(&host), format!("snapshots/{name}.tar.zst\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_snapshots_are_never_touched() {
    machines!();
    let (key, public) = key_pair();
    let host = Host::start("one", 2, &public);
    let ours = at(vec![host.settings()], &key);
    let theirs = of_stack("another", vec![host.settings()], &key);
    made(&theirs, "2").await;
    let namesake = StackIdentity { id: "another", ..stack() };
    let name = SnapshotName::new(namesake, &key_of("2"), 1, 5);
    assert_eq!(kept(&theirs, &name).await, SnapshotState::Ready);
    assert_eq!(store(&theirs).list().await.unwrap().len(), 1);
    assert_eq!(store(&ours).list().await.unwrap(), []);
    let refused = store(&ours).create(&snapshot_of("2")).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Foreign);
    store(&ours).delete(&snapshot_of("2")).await.unwrap();
    assert_eq!(left(&host), format!("snapshots/{name}.tar.zst\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_snapshot_says_why() {
    machines!();
    let (key, public) = key_pair();
    let host = Host::start("one", 2, &public);
    let provider = at(vec![host.settings()], &key);
    let sandbox = made(&provider, "2").await;
    ran(&provider, &sandbox, "head -c 4000000 /dev/urandom >bulk").await;
    let at_ms = |at_ms| SnapshotName::new(stack(), &key_of("2"), 1, at_ms);
    // The host is full, with the snapshots of any stack.
    host.as_root("cd /var/lib/bobbin/snapshots && seq -f 'other-%g.tar.zst' 250 | xargs touch");
    let full = store(&provider).create(&at_ms(1)).await.unwrap_err();
    assert_eq!(full.kind, ErrorKind::SnapshotsFull);
    assert_eq!(
        advice(full.failure),
        "The SSH host one has 250 snapshots, which is as many as it may have. Delete one that nobody needs."
    );
    host.as_root("rm /var/lib/bobbin/snapshots/other-*");

    ran(&provider, &sandbox, "touch closed; chmod 0 closed").await;
    let unread = failed("it has a file that its own user may not read");
    assert_eq!(kept(&provider, &at_ms(2)).await, unread);
    assert_eq!(kept(&provider, &at_ms(2)).await, unread);
    ran(&provider, &sandbox, "rm -f closed").await;
    // While it is received, it grows beyond what one may have.
    hold(&host);
    let name = at_ms(3);
    assert_eq!(store(&provider).create(&name).await.unwrap(), SnapshotState::Underway);
    host.as_root(&format!("truncate -s 9G /var/lib/bobbin/snapshots/{name}.part"));
    let_go(&host);
    assert_eq!(kept(&provider, &name).await, failed("packed it has more than 8589934592 bytes"));

    host.as_root(
        "mount -t tmpfs -o size=1m,mode=700,uid=$(id -u bobbin) tmpfs /var/lib/bobbin/snapshots",
    );
    let full = failed("the disk of the SSH host is full");
    assert_eq!(kept(&provider, &at_ms(4)).await, full);
    assert_eq!(store(&provider).list().await.unwrap(), []);
    assert_eq!(
        host.as_root("du -s /var/lib/bobbin/snapshots | cut -f1; umount /var/lib/bobbin/snapshots"),
        "0\n"
    );

    // A host of before there were snapshots.
    host.as_root("rm -r /var/lib/bobbin/snapshots; rmdir /var/lib/bobbin/pipes");
    let SnapshotState::Failed { reason } = kept(&provider, &at_ms(5)).await else {
        panic!("there is one");
    };
    assert_eq!(
        reason,
        "The SSH host one is not set up: it has no place for snapshots, or no zstd. The operator runs the script of `bobbin sandbox host ssh` on that host."
    );
    assert_eq!(store(&provider).list().await.unwrap(), []);
    assert_eq!(store(&provider).observe(&at_ms(5)).await.unwrap(), SnapshotState::Absent);
    store(&provider).delete(&at_ms(5)).await.unwrap();
    let refused = ensure_from(&provider, "3", &at_ms(5)).await.unwrap_err();
    assert!(matches!(refused.failure, Failure::TurnFailed { .. }), "{refused:?}");
    made(&provider, "3").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshot_of_a_lost_host_is_in_doubt() {
    machines!();
    let (key, public) = key_pair();
    let (mut one, two) = (Host::start("one", 3, &public), Host::start("two", 1, &public));
    let provider = at(vec![one.settings(), two.settings()], &key);
    made(&provider, "2").await;
    let name = snapshot_of("2");
    assert_eq!(kept(&provider, &name).await, SnapshotState::Ready);
    one.stop();
    let in_doubt = |error: ProviderError| match error.failure {
        Failure::Wait { seen, .. } => {
            assert!(seen.contains("host one cannot be reached"), "{seen}")
        }
        other => panic!("{other:?}"),
    };
    in_doubt(store(&provider).observe(&name).await.unwrap_err());
    in_doubt(store(&provider).list().await.unwrap_err());
    in_doubt(store(&provider).delete(&name).await.unwrap_err());
    in_doubt(ensure_from(&provider, "3", &name).await.unwrap_err());
    one.restart();
    assert_eq!(store(&provider).observe(&name).await.unwrap(), SnapshotState::Ready);
}
