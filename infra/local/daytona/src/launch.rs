//! What a sandbox starts with: its port, its environment, its entrypoint.

use std::borrow::Cow;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::Rng;

use crate::confine::{Confinement, SYSTEM_PATH};
use crate::engine::{Engine, SharedEngine};
use crate::init::protocol::{Environment, Op};
use crate::init_process::{InitProcess, Launch};
use crate::limits::{PORT_FIRST, PORT_LAST, PORT_TRIES_MAX};
use crate::network::SandboxNetwork;
use crate::processes::{ProcessSet, SANDBOX_VARIABLE, STATE_DIR_VARIABLE};
use crate::record::Record;

/// The environment variable that holds the port which stands for 4096.
const PORT_VARIABLE: &str = "OPENCODE_PORT";

/// Starts the first process of a sandbox with everything that it finds around it.
///
/// # Errors
/// The reason, in words.
pub(crate) async fn start_init(
    engine: &SharedEngine,
    record: &Record,
) -> Result<InitProcess, String> {
    let words = |error: std::io::Error| error.to_string();
    let sandbox_dir = engine.store.sandbox_dir(&record.folder);
    let home = sandbox_dir.join("home");
    let temporary = temporary_dir(engine, &sandbox_dir).map_err(words)?;
    std::fs::create_dir_all(&home).map_err(words)?;
    let mut readable = engine.tools.clone();
    readable.push(engine.init.clone());
    readable.extend(engine.git_mirror.clone());
    let network = open_network(engine, record, sandbox_dir.join("network")).map_err(words)?;
    let mut env = environment(engine, record, &home, &temporary);
    env.extend(network.iter().flat_map(SandboxNetwork::variables));
    let launch = Launch {
        bwrap: engine.bwrap.clone(),
        init: engine.init.clone(),
        readable,
        home,
        log: sandbox_dir.join("init.log"),
        env,
        network,
        processes: ProcessSet::of_sandbox(&engine.state_dir, &record.id),
    };
    InitProcess::start(&engine.spawner, launch).await
}

/// A private folder stands in for the /tmp that an unconfined sandbox would share with the machine.
fn temporary_dir(engine: &Engine, sandbox_dir: &Path) -> std::io::Result<PathBuf> {
    if engine.bwrap.is_some() {
        return Ok(PathBuf::from("/tmp"));
    }
    let temporary = sandbox_dir.join("tmp");
    // What the last run left there; that there is nothing is fine.
    let _ = std::fs::remove_dir_all(&temporary);
    std::fs::create_dir_all(&temporary)?;
    Ok(temporary)
}

/// The network of the sandbox's own, where this machine allows it one.
fn open_network(
    engine: &SharedEngine,
    record: &Record,
    folder: PathBuf,
) -> std::io::Result<Option<SandboxNetwork>> {
    if engine.confinement != Confinement::Bubblewrap {
        return Ok(None);
    }
    // Weak, since the engine holds the network through its sandbox.
    let (weak, id) = (Arc::downgrade(engine), record.id.clone());
    let substitutions = Arc::new(move |host: &str| {
        let engine = weak.upgrade();
        engine.map_or_else(Vec::new, |engine| engine.store.substitutions(&id, host))
    });
    let has_secrets = !record.secrets.is_empty();
    SandboxNetwork::open(
        folder,
        &engine.egress,
        has_secrets,
        substitutions,
        &engine.tasks,
    )
    .map(Some)
}

/// The variables that every process of the sandbox starts with.
fn environment(engine: &Engine, record: &Record, home: &Path, temporary: &Path) -> Environment {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut env = Environment::from([
        ("PATH".to_owned(), path_variable(engine)),
        ("HOME".to_owned(), text(home)),
        ("TMPDIR".to_owned(), text(temporary)),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ("USER".to_owned(), record.user.clone()),
        ("SHELL".to_owned(), "/bin/sh".to_owned()),
        ("DAYTONA_SANDBOX_ID".to_owned(), record.id.clone()),
        (PORT_VARIABLE.to_owned(), record.port.to_string()),
        (SANDBOX_VARIABLE.to_owned(), record.id.clone()),
        (STATE_DIR_VARIABLE.to_owned(), engine.state_dir.clone()),
    ]);
    if let Some(mirror) = &engine.git_mirror {
        // The sandbox's own configuration of git: who clones asks for the true address.
        let base = format!("url.file://{}/.insteadOf", text(mirror));
        env.extend([
            ("GIT_CONFIG_COUNT".to_owned(), "1".to_owned()),
            ("GIT_CONFIG_KEY_0".to_owned(), base),
            (
                "GIT_CONFIG_VALUE_0".to_owned(),
                "https://github.com/".to_owned(),
            ),
        ]);
    }
    env
}

fn path_variable(engine: &Engine) -> String {
    let tools = engine.tools.iter().map(|folder| folder.to_string_lossy());
    let system = SYSTEM_PATH.map(Cow::Borrowed);
    tools.chain(system).collect::<Vec<_>>().join(":")
}

/// As the daemon does at each start: in the session `entrypoint`, whose logs tell how it went.
pub(crate) async fn run_entrypoint(process: &InitProcess, record: &Record) {
    let session = "entrypoint".to_owned();
    let quoted = record
        .entrypoint
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    let command = quoted.collect::<Vec<_>>().join(" ");
    let env = record.env.clone();
    // A sandbox that has ended meanwhile is noticed by its watcher.
    if process
        .call(Op::SessionCreate {
            session: session.clone(),
            env,
        })
        .await
        .is_some()
    {
        let _ = process
            .call(Op::SessionRun {
                session,
                command,
                wait: false,
            })
            .await;
    }
}

/// The port that the sandbox had, if it is still free, else another one.
pub(crate) fn free_port(engine: &Engine, record: &Record) -> Option<u16> {
    let others: Vec<u16> = {
        let inner = engine.store.lock();
        inner
            .sandboxes
            .values()
            .map(|entry| &entry.record)
            .filter(|other| other.id != record.id)
            .map(|other| other.port)
            .collect()
    };
    let free = |port: u16| {
        (PORT_FIRST..=PORT_LAST).contains(&port)
            && !others.contains(&port)
            && TcpListener::bind(("127.0.0.1", port)).is_ok()
    };
    let mut random = rand::rng();
    std::iter::once(record.port)
        .chain((0..PORT_TRIES_MAX).map(|_| random.random_range(PORT_FIRST..=PORT_LAST)))
        .find(|port| free(*port))
}
