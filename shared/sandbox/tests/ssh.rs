//! Sandboxes on SSH hosts, against Debian's own OpenSSH server on machines that the set-up script has made ready.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{SandboxKey, Tenant, ThreadKey};
use bobbin_core::base::names::sandbox_name;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_http::{AllowedHosts, Http};
use bobbin_sandbox::ssh::{AgentPort, SshHost, SshSandboxes, SshSettings};
use bobbin_sandbox::{
    Deletion, ErrorKind, Provider, ProviderError, ProviderResult, Sandbox, SandboxSpec,
    ScriptOutput,
};
use tokio::time::{Instant, timeout};

use self::host::{Host, key_of_kind, key_pair, lacks};

/// Skips a test where no machine can be made, and says so.
macro_rules! machines {
    () => {
        if let Some(why) = lacks() {
            eprintln!("SKIPPED: {why}");
            return;
        }
    };
}

#[path = "../../../tests/ssh/host.rs"]
mod host;
#[path = "ssh/snapshots.rs"]
mod snapshots;

const AGENT_PORT: u16 = 4096;
/// Answers each request with the path that was asked for, from the port that the sandbox has.
const SERVER: &str = r#"
import http.server, os
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = (os.environ.get("WHO", "agent") + " " + self.path).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
server = Server((os.environ.get("ADDRESS", "127.0.0.1"), int(os.environ["AGENT_PORT"])), Answer)
open("ready", "w").close()
server.serve_forever()
"#;
/// Starts it, and ends when it listens.
const SERVE: &str = "rm -f ready; setsid python3 server.py >server.log 2>&1 </dev/null &\nuntil [ -e ready ]; do sleep 0.05; done";

/// Takes one connection at the port, says its own last word, listens no more, and keeps what it is still told.
const BURST: &str = r#"
import os, socket
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(os.environ["AGENT_PORT"])))
listener.listen(1)
open("ready", "w").close()
taken, _ = listener.accept()
taken.shutdown(socket.SHUT_WR)
listener.close()
with open("told", "wb", buffering=0) as told:
    while heard := taken.recv(4096):
        told.write(heard)
open("over", "w").close()
"#;
/// Tries for the port until it has it, and answers whoever comes.
const EAGER: &str = r#"
import os, socket, time
until = time.monotonic() + 30
open("ready", "w").close()
while True:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", int(os.environ["AGENT_PORT"])))
        listener.listen(8)
        break
    except OSError:
        listener.close()
        assert time.monotonic() < until
while True:
    taken, _ = listener.accept()
    taken.recv(4096)
    taken.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nagent")
    taken.close()
"#;

fn at(hosts: Vec<SshHost>, key: &str) -> SshSandboxes {
    of_stack("this-one", hosts, key)
}

fn of_stack(stack_id: &str, hosts: Vec<SshHost>, key: &str) -> SshSandboxes {
    let settings = SshSettings {
        stack: "dev".to_owned(),
        stack_id: stack_id.to_owned(),
        hosts,
        agent: AgentPort { port: AGENT_PORT, variable: "AGENT_PORT".to_owned() },
    };
    SshSandboxes::new(settings, key).unwrap()
}

fn key_of(thread: &str) -> SandboxKey {
    ThreadKey::discord("1", thread).unwrap().sandbox()
}

fn name_of(thread: &str) -> String {
    sandbox_name("dev", &key_of(thread), 1)
}

async fn ensure(provider: &SshSandboxes, thread: &str) -> Result<SandboxState, Failure> {
    let secrets = BTreeMap::new();
    let spec = SandboxSpec { secrets: &secrets, snapshot: None };
    Ok(provider.create(&key_of(thread), 1, spec).await?)
}

/// What it is now, as a delivery of its sandbox sees it.
async fn state(provider: &SshSandboxes, name: &str) -> ProviderResult<SandboxState> {
    match provider.observe(name).await {
        Ok(found) => Ok(found.state),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(SandboxState::Gone),
        Err(error) => Err(error),
    }
}

async fn delete(provider: &SshSandboxes, name: &str) -> ProviderResult<SandboxState> {
    provider.delete(Deletion::Named(name)).await
}

async fn made(provider: &SshSandboxes, thread: &str) -> Sandbox {
    assert_eq!(ensure(provider, thread).await, Ok(SandboxState::Running));
    provider.observe(&name_of(thread)).await.unwrap()
}

/// The host that a sandbox is on.
fn host_of(sandbox: &Sandbox) -> &str {
    sandbox.exec_base.as_deref().unwrap().split('/').next().unwrap()
}

async fn ran(provider: &SshSandboxes, sandbox: &Sandbox, script: &str) -> ScriptOutput {
    let time = Duration::from_secs(20);
    let done = provider.exec(sandbox, script, &BTreeMap::new(), time).await;
    done.unwrap()
}

fn later() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

async fn got(provider: &SshSandboxes, name: &str, path: &str) -> Result<String, String> {
    let endpoint = provider.endpoint(name, AGENT_PORT).await.map_err(|e| e.seen)?;
    let http = Http::new(provider.facts().base, AllowedHosts::Public).unwrap();
    let request = http.request(reqwest::Method::GET, &format!("{}{path}", endpoint.url)).unwrap();
    let answer = http.send(request).await.map_err(|e| e.to_string())?;
    Ok(String::from_utf8(answer.body).unwrap())
}

/// The advice of a failure that no repeat mends.
fn advice(failure: Failure) -> String {
    match failure {
        Failure::NonRecoverable { advice } => advice,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sandbox_lifecycle_works_over_ssh() {
    machines!();
    let (key, public) = key_pair();
    let host = Host::start("one", 3, &public);
    let provider = at(vec![host.settings()], &key);
    let name = name_of("2");
    assert_eq!(state(&provider, &name).await, Ok(SandboxState::Gone));

    // Made once: a repeat, and another worker, find it.
    let sandbox = made(&provider, "2").await;
    assert_eq!(ensure(&provider, "2").await, Ok(SandboxState::Running));
    let other_worker = at(vec![host.settings()], &key);
    assert_eq!(ensure(&other_worker, "2").await, Ok(SandboxState::Running));
    assert_eq!(provider.list(None).await.unwrap(), std::slice::from_ref(&sandbox));
    assert_eq!(sandbox.owner(), Some((key_of("2"), 1)));
    assert_eq!(host_of(&sandbox), "one");
    let age_ms = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis()
        .abs_diff(sandbox.created_ms.unwrap().into());
    assert!(age_ms < 60_000, "{age_ms}");

    // Commands: one stream of output, an exit status, an environment of their own, the script as input.
    let env = BTreeMap::from([("WORD".to_owned(), "it's $HOME\nhere".to_owned())]);
    let script = "printf '%s|' \"$WORD\"; echo complaint >&2; pwd; id -un; exit 7";
    let told = provider.exec(&sandbox, script, &env, Duration::from_secs(10)).await;
    assert_eq!(
        told.unwrap(),
        ScriptOutput {
            exit_code: 7,
            text: format!("it's $HOME\nhere|complaint\n/var/lib/bobbin/1/disk/{name}\nbobbin-1\n"),
        }
    );
    assert_eq!(ran(&provider, &sandbox, "echo \"$WORD\"").await.text, "\n");

    // Files.
    let files = vec![
        ("project/a b.txt".to_owned(), b"one".to_vec()),
        ("project/deep/er/b".to_owned(), vec![0, 255, 10]),
        ("project/.hidden".to_owned(), Vec::new()),
    ];
    provider.put_files(&sandbox, files).await.unwrap();
    let listed = provider.list_files(&sandbox, "project").await.unwrap();
    assert_eq!(listed, BTreeMap::from([("a b.txt".to_owned(), 3), (".hidden".to_owned(), 0)]));
    let read = provider.get_file(&sandbox, "project/deep/er/b").await;
    assert_eq!(read.unwrap(), [0, 255, 10]);
    for missing in ["project/none", "project", "none/at/all"] {
        let error = provider.get_file(&sandbox, missing).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound, "{missing}");
    }
    let error = provider.list_files(&sandbox, "none").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    for outside in ["/etc/passwd", "../x", "project/../../x"] {
        let error = provider.get_file(&sandbox, outside).await.unwrap_err();
        assert!(error.seen.contains("below the sandbox's directory"), "{error}");
        let error =
            provider.put_files(&sandbox, vec![(outside.to_owned(), Vec::new())]).await.unwrap_err();
        assert!(error.seen.contains("below the sandbox's directory"), "{error}");
    }

    // A stop ends what was left running and keeps the directory.
    let background = "setsid sleep 4000 >/dev/null 2>&1 </dev/null &\nnohup sh -c 'trap \"\" TERM; while :; do sleep 4000; done' >/dev/null 2>&1 </dev/null &\nuntil [ \"$(pgrep -u \"$(id -u)\" -c sleep)\" = 2 ]; do :; done";
    ran(&provider, &sandbox, background).await;
    let sleepers = || host.as_root("pgrep -u bobbin-1 -c sleep || true").trim().to_owned();
    assert_eq!(sleepers(), "2");
    let too_late = provider.stop(&name, Instant::now()).await;
    assert!(
        matches!(too_late.as_ref().map_err(|e| &e.failure), Err(Failure::Wait { .. })),
        "{too_late:?}"
    );
    assert_eq!(provider.stop(&name, later()).await, Ok(SandboxState::Stopped));
    let others = "pgrep -u bobbin-1 -l | grep -v sshd || true";
    assert_eq!(host.as_root(others), "");
    assert_eq!(provider.stop(&name, later()).await, Ok(SandboxState::Stopped));
    assert_eq!(state(&provider, &name).await, Ok(SandboxState::Stopped));
    // Who found it while it ran starts nothing in it now.
    let refused = provider
        .exec(&sandbox, "echo hello", &BTreeMap::new(), Duration::from_secs(5))
        .await
        .unwrap_err();
    assert!(matches!(refused.failure, Failure::SandboxDown { .. }), "{refused:?}");

    assert_eq!(provider.start(&name).await, Ok(SandboxState::Running));
    assert_eq!(provider.start(&name).await, Ok(SandboxState::Running));
    let read = provider.get_file(&sandbox, "project/a b.txt").await;
    assert_eq!(read.unwrap(), b"one");

    // The end takes everything along, also what the sandbox's user has left elsewhere or made unwritable.
    host.as_root("install -d -m 700 -o bobbin-1 /run/user/$(id -u bobbin-1)");
    let left = "mkdir -p locked/in; touch locked/in/x /tmp/left ../beside; chmod 0 locked
mkdir -p /run/user/$(id -u)/systemd; touch /run/user/$(id -u)/systemd/left /run/lock/left
[ ! -d /dev/mqueue ] || touch /dev/mqueue/left
ipcmk -M 64; ipcmk -Q; ipcmk -S 1";
    let told = ran(&provider, &sandbox, left).await;
    assert_eq!(told.exit_code, 0, "{}", told.text);
    assert_eq!(delete(&provider, &name).await, Ok(SandboxState::Gone));
    assert_eq!(delete(&provider, &name).await, Ok(SandboxState::Gone));
    assert_eq!(provider.start(&name).await, Ok(SandboxState::Gone));
    assert_eq!(state(&provider, &name).await, Ok(SandboxState::Gone));
    assert_eq!(provider.observe(&name).await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(
        host.as_root("ls -A /var/lib/bobbin/1/disk /tmp"),
        "/tmp:\n\n/var/lib/bobbin/1/disk:\n"
    );
    let elsewhere = "find /run/user /run/lock /dev/mqueue -user bobbin-1 -mindepth 1 ! -path \"/run/user/$(id -u bobbin-1)\"; tail -q -n +2 /proc/sysvipc/*";
    assert_eq!(host.as_root(elsewhere), "");
    assert_eq!(provider.list(None).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn sandboxes_of_one_host_are_isolated() {
    machines!();
    let (key, public) = key_pair();
    let host = Host::start("one", 3, &public);
    let provider = at(vec![host.settings()], &key);
    let (one, two) = (made(&provider, "2").await, made(&provider, "3").await);
    let secret = vec![("secret".to_owned(), b"s3cret".to_vec())];
    provider.put_files(&one, secret).await.unwrap();
    // While a command with a secret runs, and while files are written.
    let env = BTreeMap::from([("MODEL_API_KEY".to_owned(), "sk-very-secret".to_owned())]);
    let holds = "setsid sleep 300 >/dev/null 2>&1 </dev/null & until false; do [ -e go ] && exit 0; sleep 0.05; done";
    let time = Duration::from_secs(30);
    let look = async {
        let spied = ran(
            &provider,
            &two,
            "grep -las 'sk-very-[s]ecret' /proc/*/cmdline /proc/*/environ 2>/dev/null; cat /var/lib/bobbin/1/disk/*/secret; ls /var/lib/bobbin/1 /var/lib/bobbin/registry; true",
        );
        let spied = spied.await;
        // It can end what is its own, its login among that, and nothing else.
        let kill = "setsid sh -c 'kill -9 -1' >/dev/null 2>&1 </dev/null & sleep 60";
        let own_end = provider.exec(&two, kill, &BTreeMap::new(), time).await;
        assert!(own_end.is_err(), "{own_end:?}");
        ran(&provider, &one, "touch go").await;
        spied
    };
    let (held, spied) = tokio::join!(provider.exec(&one, holds, &env, time), look);
    assert_eq!(held.unwrap().exit_code, 0);
    assert!(!spied.text.contains("s3cret") && !spied.text.contains("/proc/"), "{}", spied.text);
    assert_eq!(spied.text.matches("Permission denied").count(), 3, "{}", spied.text);
    assert_eq!(host.as_root("pgrep -u bobbin-1 -c sleep").trim(), "1");
    // The registry is the control user's alone, so that no sandbox can pass itself off as another.
    let forged = ran(&provider, &two, "touch /var/lib/bobbin/registry/9.x.running /var/lib/bobbin/host /var/lib/bobbin/2/.profile").await;
    assert_eq!(forged.text.matches("Permission denied").count(), 3, "{}", forged.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_is_reachable_after_host_restart() {
    machines!();
    let (key, public) = key_pair();
    let mut host = Host::start("one", 2, &public);
    let provider = at(vec![host.settings()], &key);
    let (one, two) = (made(&provider, "2").await, made(&provider, "3").await);
    for sandbox in [&one, &two] {
        let files = vec![("server.py".to_owned(), SERVER.as_bytes().to_vec())];
        provider.put_files(sandbox, files).await.unwrap();
    }
    let serve = |who: &str| format!("export WHO={who}\n{SERVE}");
    assert!(got(&provider, &one.name, "/x").await.is_err(), "nobody listens");
    ran(&provider, &one, &serve("first")).await;
    ran(&provider, &two, &serve("second")).await;
    assert_eq!(got(&provider, &one.name, "/x").await.unwrap(), "first /x");
    assert_eq!(got(&provider, &two.name, "/y?z=1").await.unwrap(), "second /y?z=1");
    // Many at once, over one login.
    let many = (0..40).map(|at| {
        let (provider, name) = (&provider, &one.name);
        async move { got(provider, name, &format!("/{at}")).await.unwrap() }
    });
    for (at, answer) in futures::future::join_all(many).await.iter().enumerate() {
        assert_eq!(*answer, format!("first /{at}"));
    }
    let error = provider.endpoint(&one.name, 8080).await.unwrap_err();
    assert!(error.seen.contains("only port 4096"), "{error}");

    // The machine goes down and comes back, with its directories and without its processes.
    let before = provider.endpoint(&one.name, AGENT_PORT).await.unwrap();
    host.restart();
    assert!(got(&provider, &one.name, "/x").await.is_err());
    ran(&provider, &one, &serve("again")).await;
    assert_eq!(got(&provider, &one.name, "/x").await.unwrap(), "again /x");
    let after = provider.endpoint(&one.name, AGENT_PORT).await.unwrap();
    assert_eq!(before.url, after.url);

    ran(&provider, &two, &serve("second")).await;
    provider.stop(&one.name, later()).await.unwrap();
    assert!(got(&provider, &one.name, "/x").await.unwrap_err().contains("not running"));
    assert_eq!(got(&provider, &two.name, "/x").await.unwrap(), "second /x");
}

#[tokio::test(flavor = "multi_thread")]
async fn squatter_on_agent_port_hears_nothing() {
    machines!();
    let (key, public) = key_pair();
    let host = Host::start("one", 2, &public);
    let provider = at(vec![host.settings()], &key);
    let (one, two) = (made(&provider, "2").await, made(&provider, "3").await);
    let files = || vec![("server.py".to_owned(), SERVER.as_bytes().to_vec())];
    provider.put_files(&one, files()).await.unwrap();
    provider.put_files(&two, files()).await.unwrap();
    let port = ran(&provider, &one, "echo $AGENT_PORT").await.text;
    for address in ["127.0.0.1", "0.0.0.0"] {
        let squat = format!("export WHO=thief ADDRESS={address} AGENT_PORT={port}\n{SERVE}");
        ran(&provider, &two, &squat).await;
        let told = got(&provider, &one.name, "/?password=1").await;
        assert!(told.is_err(), "{told:?}");
        provider.stop(&two.name, later()).await.unwrap();
        provider.start(&two.name).await.unwrap();
    }
    ran(&provider, &one, SERVE).await;
    assert_eq!(got(&provider, &one.name, "/").await.unwrap(), "agent /");
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_open_connection_hears_nothing() {
    machines!();
    let (key, public) = key_pair();
    let host = Host::start("one", 2, &public);
    let provider = at(vec![host.settings()], &key);
    let (one, two) = (made(&provider, "2").await, made(&provider, "3").await);
    let file = |text: &str| vec![("server.py".to_owned(), text.as_bytes().to_vec())];
    provider.put_files(&one, file(EAGER)).await.unwrap();
    provider.put_files(&two, file(BURST)).await.unwrap();
    let port = ran(&provider, &one, "echo $AGENT_PORT").await.text;
    // Who is first at the port is a race, so there are some of them.
    for _ in 0..5 {
        let burst = format!("rm -f told over; export AGENT_PORT={port}\n{SERVE}");
        ran(&provider, &two, &burst).await;
        ran(&provider, &one, SERVE).await;
        let answer = got(&provider, &one.name, "/?password=1").await;
        let heard = "for _ in $(seq 100); do [ -e over ] && break; sleep 0.05; done; cat told";
        assert_eq!(ran(&provider, &two, heard).await.text, "", "{answer:?}");
        assert!(answer.is_err(), "{answer:?}");
        // The neighbour's socket is closed: what listens now is the sandbox's own.
        assert_eq!(got(&provider, &one.name, "/").await.unwrap(), "agent");
        provider.stop(&one.name, later()).await.unwrap();
        provider.start(&one.name).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn roomiest_host_is_chosen_until_full() {
    machines!();
    let (key, public) = key_pair();
    let (small, large) = (Host::start("small", 1, &public), Host::start("large", 3, &public));
    // The setting is a bound of its own: of three slots two are to be used.
    let mut bounded = large.settings();
    bounded.sandboxes = 2;
    let provider = at(vec![small.settings(), bounded], &key);
    let mut places = Vec::new();
    for thread in ["2", "3", "4"] {
        places.push(host_of(&made(&provider, thread).await).to_owned());
    }
    // Of as much room, the first in the settings.
    assert_eq!(places, ["large", "small", "large"]);
    let full = advice(ensure(&provider, "5").await.unwrap_err());
    assert_eq!(
        full,
        "Every SSH host is full: small has 1 of 1, large has 2 of 2. End a sandbox that nobody needs, or ask the operator for another host."
    );
    assert_eq!(provider.list(None).await.unwrap().len(), 3);
    let (ours, others) = (Tenant::discord("1"), Tenant::discord("2"));
    assert_eq!(provider.list(Some(&others)).await.unwrap(), []);
    assert_eq!(provider.count(&ours, None).await.unwrap(), 3);
    assert_eq!(provider.count(&others, None).await.unwrap(), 0);
    let before = provider.count(&ours, Some(&name_of("9"))).await.unwrap();
    assert_eq!(before, 3, "one that is not listed yet is the last");

    delete(&provider, &name_of("3")).await.unwrap();
    assert_eq!(host_of(&made(&provider, "5").await), "small");
    // In order of creation, of the same second by name.
    let listed = provider.list(Some(&ours)).await.unwrap();
    for (at, sandbox) in listed.iter().enumerate() {
        let older = provider.count(&ours, Some(&sandbox.name)).await.unwrap();
        assert_eq!(older, u32::try_from(at).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_host_affects_only_itself() {
    machines!();
    let (key, public) = key_pair();
    let (mut one, two) = (Host::start("one", 4, &public), Host::start("two", 2, &public));
    let provider = at(vec![one.settings(), two.settings()], &key);
    let sandbox = made(&provider, "2").await;
    assert_eq!(host_of(&sandbox), "one");
    one.stop();
    // It is not known to be gone, and is not made a second time while it is wanted as it was.
    for seen in [
        state(&provider, &sandbox.name).await,
        delete(&provider, &sandbox.name).await,
        provider.stop(&sandbox.name, later()).await,
    ] {
        let Err(ProviderError { failure: Failure::Wait { seen, .. }, .. }) = seen else {
            panic!("{seen:?}");
        };
        assert!(seen.contains("the SSH host one cannot be reached"), "{seen}");
    }
    let inside = provider
        .exec(&sandbox, "true", &BTreeMap::new(), Duration::from_secs(5))
        .await
        .unwrap_err();
    assert!(matches!(inside.failure, Failure::SandboxDown { .. }), "{inside:?}");
    // Others go on at the other host; a list says that it would not be whole.
    assert_eq!(host_of(&made(&provider, "3").await), "two");
    assert!(provider.list(None).await.is_err());
    assert_eq!(provider.count(&Tenant::discord("1"), None).await.unwrap(), 1);

    // Alone it is an outage, which is waited for.
    let alone = at(vec![one.settings()], &key);
    let seen = ensure(&alone, "4").await;
    assert!(matches!(seen, Err(Failure::Outage { .. })), "{seen:?}");
    let counted = alone.count(&Tenant::discord("1"), None).await.unwrap_err();
    assert!(matches!(counted.failure, Failure::Outage { .. }), "{counted:?}");

    one.restart();
    assert_eq!(state(&provider, &sandbox.name).await, Ok(SandboxState::Running));
    assert_eq!(provider.list(None).await.unwrap().len(), 2);
    assert_eq!(delete(&provider, &sandbox.name).await, Ok(SandboxState::Gone));
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_is_removed_when_host_returns() {
    machines!();
    let (key, public) = key_pair();
    let (mut one, two) = (Host::start("one", 4, &public), Host::start("two", 2, &public));
    let hosts = || vec![one.settings(), two.settings()];
    // The answer to the first making is lost with the host.
    assert_eq!(host_of(&made(&at(hosts(), &key), "2").await), "one");
    let provider = at(hosts(), &key);
    one.stop();
    let again = made(&provider, "2").await;
    assert_eq!(host_of(&again), "two");
    ran(&provider, &again, "echo work >done").await;
    one.restart();
    // For a worker that knows nothing of all that, too.
    let fresh = at(vec![one.settings(), two.settings()], &key);
    assert_eq!(host_of(&fresh.observe(&again.name).await.unwrap()), "two");
    assert_eq!(fresh.count(&Tenant::discord("1"), None).await.unwrap(), 1);
    assert_eq!(fresh.list(None).await.unwrap(), std::slice::from_ref(&again));
    assert_eq!(
        one.as_root("ls -A /var/lib/bobbin/registry /var/lib/bobbin/1/disk"),
        "/var/lib/bobbin/1/disk:\n\n/var/lib/bobbin/registry:\n.lock\n"
    );
    assert_eq!(fresh.get_file(&again, "done").await.unwrap(), b"work\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn host_with_changed_key_gets_nothing() {
    machines!();
    let (key, public) = key_pair();
    let mut host = Host::start("one", 2, &public);
    let pinned = host.settings();
    let provider = at(vec![pinned.clone()], &key);
    let sandbox = made(&provider, "2").await;
    host.restart_with_another_key();
    let said = advice(provider.observe(&sandbox.name).await.unwrap_err().failure);
    assert!(
        said.starts_with("The SSH host one showed another host key than the pinned one: SHA256:"),
        "{said}"
    );
    assert!(said.contains("Nothing was sent to it") && said.contains("ssh_hosts"), "{said}");
    let inside = provider
        .exec(&sandbox, "true", &BTreeMap::new(), Duration::from_secs(5))
        .await
        .unwrap_err();
    assert!(inside.seen.contains("another host key"), "{inside}");
    assert!(!host.log().contains("Accepted publickey"), "{}", host.log());
    // One of another kind than all that it has.
    let other_kind = SshHost { host_key: key_of_kind("ecdsa").1, ..pinned };
    let provider = at(vec![other_kind], &key);
    let said = advice(provider.observe(&sandbox.name).await.unwrap_err().failure);
    assert!(said.contains("no key of the pinned kind"), "{said}");
    // The operator has looked, and pins the new one.
    let provider = at(vec![host.settings()], &key);
    assert_eq!(state(&provider, &sandbox.name).await, Ok(SandboxState::Running));
}

#[tokio::test(flavor = "multi_thread")]
async fn unusable_ssh_key_advises_operator() {
    machines!();
    let (key, public) = key_pair();
    let (stranger, _) = key_pair();
    let host = Host::start("one", 1, &public);
    for (key, says) in [
        ("", "The key ssh_key is missing in the secret ProviderSecret."),
        ("-----BEGIN NOTHING-----", "The key for SSH hosts cannot be read"),
        (stranger.as_str(), "The SSH host one refused the key for the user bobbin."),
    ] {
        let provider = at(vec![host.settings()], key);
        let found = provider.observe("x").await.unwrap_err();
        assert_eq!(found.kind, ErrorKind::KeyRefused);
        let said = advice(ensure(&provider, "2").await.unwrap_err());
        assert!(said.starts_with(says) && said.contains("The operator"), "{said}");
        let counted = provider.count(&Tenant::discord("1"), None).await;
        assert_eq!(counted.unwrap_err().kind, ErrorKind::KeyRefused);
    }
    // A key that was entered in one line.
    use base64::Engine as _;
    let line = base64::engine::general_purpose::STANDARD.encode(&key);
    let provider = at(vec![host.settings()], &line);
    assert_eq!(provider.list(None).await.unwrap(), []);
    // The slot's own login is refused: the host was set up for another key once more, but not that user.
    std::fs::write(host.folder("keys/bobbin-1"), "").unwrap();
    let provider = at(vec![host.settings()], &key);
    let said = advice(ensure(&provider, "2").await.unwrap_err());
    assert!(said.contains("refused the key for the user bobbin-1"), "{said}");
    assert_eq!(provider.list(None).await.unwrap(), [], "the slot is given back");
    // And one that is no host of ours at all.
    std::fs::remove_file(host.folder("host")).unwrap();
    let said = advice(ensure(&provider, "2").await.unwrap_err());
    assert!(said.contains("is not set up") && said.contains("bobbin sandbox host ssh"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_repairs_an_interrupted_call() {
    machines!();
    let (key, public) = key_pair();
    let host = Host::start("one", 2, &public);
    let name = name_of("2");
    let mut cut = 0;
    for after_ms in (10..810).step_by(80) {
        let after = Duration::from_millis(after_ms);
        // Each is a worker of its own that ends in the middle; the next one knows nothing of it.
        let worker = at(vec![host.settings()], &key);
        cut += u32::from(timeout(after, ensure(&worker, "2")).await.is_err());
        let provider = at(vec![host.settings()], &key);
        let sandbox = made(&provider, "2").await;
        assert_eq!(provider.list(None).await.unwrap(), std::slice::from_ref(&sandbox));
        ran(&provider, &sandbox, "echo kept >file; setsid sleep 4000 >/dev/null 2>&1 </dev/null &")
            .await;

        let worker = at(vec![host.settings()], &key);
        cut += u32::from(timeout(after, worker.stop(&name, later())).await.is_err());
        let provider = at(vec![host.settings()], &key);
        assert_eq!(settled(&provider, |p| p.stop(&name, later())).await, SandboxState::Stopped);
        assert_eq!(host.as_root("pgrep -u bobbin-1 -c sleep || true").trim(), "0");

        let worker = at(vec![host.settings()], &key);
        cut += u32::from(timeout(after, worker.start(&name)).await.is_err());
        let provider = at(vec![host.settings()], &key);
        assert_eq!(settled(&provider, |p| p.start(&name)).await, SandboxState::Running);
        assert_eq!(ran(&provider, &sandbox, "cat file").await.text, "kept\n");

        let worker = at(vec![host.settings()], &key);
        cut += u32::from(timeout(after, delete(&worker, &name)).await.is_err());
        let provider = at(vec![host.settings()], &key);
        // A look finishes what was begun.
        let seen = settled(&provider, |p| state(p, &name)).await;
        assert!(matches!(seen, SandboxState::Running | SandboxState::Gone), "{seen:?}");
        assert_eq!(settled(&provider, |p| delete(p, &name)).await, SandboxState::Gone);
        assert_eq!(host.as_root("ls -A /var/lib/bobbin/registry /var/lib/bobbin/1/disk /var/lib/bobbin/2/disk | grep -v : ; true").trim(), ".lock");
    }
    assert!(cut > 10, "{cut} calls were cut off");
}

/// Asks until nobody else is at it: a script of the one that was cut off may still run on the host.
async fn settled<'a, F>(
    provider: &'a SshSandboxes,
    ask: impl Fn(&'a SshSandboxes) -> F,
) -> SandboxState
where
    F: Future<Output = ProviderResult<SandboxState>> + 'a,
{
    for _ in 0..20 {
        match ask(provider).await {
            Ok(state) => return state,
            Err(ProviderError { failure: Failure::Wait { .. }, .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    panic!("it never settled");
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_sandboxes_are_never_touched() {
    machines!();
    let (key, public) = key_pair();
    let host = Host::start("one", 2, &public);
    let ours = at(vec![host.settings()], &key);
    let theirs = of_stack("another", vec![host.settings()], &key);
    // A namesake of this stack, with a thread of the same key.
    let sandbox = made(&theirs, "2").await;
    ran(&theirs, &sandbox, "echo theirs >file; setsid sleep 4000 >/dev/null 2>&1 </dev/null &")
        .await;
    for refused in [
        ensure(&ours, "2").await.map_err(ProviderError::from),
        state(&ours, &sandbox.name).await,
        ours.stop(&sandbox.name, later()).await,
        ours.start(&sandbox.name).await,
        delete(&ours, &sandbox.name).await,
    ] {
        let said = advice(refused.unwrap_err().failure);
        assert!(said.contains("Another stack created the sandbox"), "{said}");
    }
    assert!(ours.delete(Deletion::Found(&sandbox)).await.is_err());
    assert_eq!(ours.observe(&sandbox.name).await.unwrap_err().kind, ErrorKind::Foreign);
    assert_eq!(ours.count(&Tenant::discord("1"), None).await.unwrap(), 0);
    let listed = ours.list(None).await.unwrap();
    assert!(listed.len() == 1 && listed[0].is_foreign("this-one"));
    assert_eq!(
        host.as_root("cat /var/lib/bobbin/1/disk/*/file; pgrep -u bobbin-1 -c sleep"),
        "theirs\n1\n"
    );

    // A slot that is free by the registry, and holds what nobody of ours has left there.
    host.as_root("echo precious >/var/lib/bobbin/2/disk/.notes");
    let said = advice(ensure(&ours, "3").await.unwrap_err());
    assert_eq!(
        said,
        "The directory of the user bobbin-2 on the SSH host one has files that do not come from a Bobbin sandbox. It was left alone. The operator has to check it and remove it."
    );
    assert_eq!(host.as_root("cat /var/lib/bobbin/2/disk/.notes"), "precious\n");
    // With a further slot it is that one.
    drop((ours, theirs));
    let wide = Host::start("wide", 2, &public);
    wide.as_root("echo precious >/var/lib/bobbin/1/disk/notes");
    let provider = at(vec![wide.settings()], &key);
    let sandbox = made(&provider, "3").await;
    assert_eq!(ran(&provider, &sandbox, "id -un").await.text, "bobbin-2\n");
    assert_eq!(delete(&provider, &sandbox.name).await, Ok(SandboxState::Gone));
    assert_eq!(wide.as_root("cat /var/lib/bobbin/1/disk/notes"), "precious\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn command_time_and_output_are_bounded() {
    machines!();
    let (key, public) = key_pair();
    let host = Host::start("one", 1, &public);
    let provider = at(vec![host.settings()], &key);
    let sandbox = made(&provider, "2").await;
    let nothing = BTreeMap::new();
    let endless = "trap '' TERM; while :; do sleep 600; done";
    let over = provider.exec(&sandbox, endless, &nothing, Duration::from_secs(1)).await;
    assert_eq!(over.unwrap_err().kind, ErrorKind::CommandTimeout);
    // A killed process is seen until the kernel has buried it.
    let none =
        "timeout 30 sh -c 'while pgrep -u bobbin-1 sleep >/dev/null; do :; done' && echo none";
    assert_eq!(host.as_root(none).trim(), "none");
    let flood =
        provider.exec(&sandbox, "yes", &nothing, Duration::from_secs(20)).await.unwrap_err();
    assert!(flood.seen.contains("more than 16777216 bytes"), "{flood}");
    let large = provider.exec(
        &sandbox,
        "head -c 20000000 /dev/zero >large",
        &nothing,
        Duration::from_secs(20),
    );
    large.await.unwrap();
    let read = provider.get_file(&sandbox, "large").await.unwrap_err();
    assert!(read.seen.contains("more than 16777216 bytes"), "{read}");
    let files = vec![("a".to_owned(), vec![0; 9_000_000]), ("b".to_owned(), vec![0; 9_000_000])];
    let written = provider.put_files(&sandbox, files).await.unwrap_err();
    assert!(written.seen.contains("more than 16777216 bytes"), "{written}");
    // What is left running with the command's own output open holds nobody up.
    let left = ran(&provider, &sandbox, "sleep 600 & echo started").await;
    assert_eq!(left.text, "started\n");
    assert_eq!(host.as_root("pgrep -u bobbin-1 -c sleep || true").trim(), "1");
}
