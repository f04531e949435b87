//! What a sandbox starts with: its port, its environment, its entrypoint.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use rand::Rng;

use crate::confine::Confinement;
use crate::guest::{Guest, Launch};
use crate::init::protocol::Op;
use crate::limits::{PORT_FIRST, PORT_LAST, PORT_TRIES_MAX};
use crate::network::Network;
use crate::processes::{Mark, SANDBOX_VARIABLE, STATE_DIR_VARIABLE};
use crate::record::Record;
use crate::shared::Context;

/// The environment variable that holds the port which stands for 4096.
const PORT_VARIABLE: &str = "OPENCODE_PORT";

/// Starts the first process of a sandbox with everything that it finds around it.
///
/// # Errors
/// The reason, in words.
pub(crate) async fn start_guest(shared: &Context, record: &Record) -> Result<Guest, String> {
    let place = shared.store.place(&record.folder);
    let home = place.join("home");
    // A private folder stands in for the /tmp that an unconfined sandbox would share with the machine.
    let temporary = if shared.bwrap.is_some() {
        PathBuf::from("/tmp")
    } else {
        place.join("tmp")
    };
    if shared.bwrap.is_none() {
        // What the last run left there; that there is nothing is fine.
        let _ = std::fs::remove_dir_all(&temporary);
        std::fs::create_dir_all(&temporary).map_err(|error| error.to_string())?;
    }
    std::fs::create_dir_all(&home).map_err(|error| error.to_string())?;
    let mut readable = shared.tools.clone();
    readable.push(shared.init.clone());
    readable.extend(shared.git_mirror.clone());
    let text = |path: &PathBuf| path.to_string_lossy().into_owned();
    let mut env = BTreeMap::from([
        ("PATH".to_owned(), path_variable(shared)),
        ("HOME".to_owned(), text(&home)),
        ("TMPDIR".to_owned(), text(&temporary)),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ("USER".to_owned(), record.user.clone()),
        ("SHELL".to_owned(), "/bin/sh".to_owned()),
        ("DAYTONA_SANDBOX_ID".to_owned(), record.id.clone()),
        (PORT_VARIABLE.to_owned(), record.port.to_string()),
        (SANDBOX_VARIABLE.to_owned(), record.id.clone()),
        (STATE_DIR_VARIABLE.to_owned(), shared.state_dir.clone()),
    ]);
    if let Some(mirror) = &shared.git_mirror {
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
    let network = match shared.confinement {
        Confinement::Bubblewrap => {
            let (folder, id) = (place.join("network"), record.id.clone());
            let has_secrets = !record.secrets.is_empty();
            let store = Arc::downgrade(shared);
            let swaps = Arc::new(move |host: &str| {
                let shared = store.upgrade();
                shared.map_or_else(Vec::new, |shared| shared.store.swaps(&id, host))
            });
            let opened = Network::open(folder, &shared.ways, has_secrets, swaps, &shared.tasks);
            Some(opened.map_err(|error| error.to_string())?)
        }
        _ => None,
    };
    env.extend(network.iter().flat_map(Network::variables));
    let launch = Launch {
        bwrap: shared.bwrap.clone(),
        init: shared.init.clone(),
        readable,
        home,
        log: place.join("init.log"),
        env,
        network,
        mark: Mark::one(&shared.state_dir, &record.id),
    };
    Guest::start(&shared.starter, launch).await
}

fn path_variable(shared: &Context) -> String {
    let system = [
        "/opt/homebrew/bin",
        "/usr/local/sbin",
        "/usr/local/bin",
        "/usr/sbin",
        "/usr/bin",
        "/sbin",
        "/bin",
    ];
    let tools = shared
        .tools
        .iter()
        .map(|folder| folder.to_string_lossy().into_owned());
    tools
        .chain(system.map(str::to_owned))
        .collect::<Vec<_>>()
        .join(":")
}

/// As the daemon does at each start: in the session `entrypoint`, whose logs tell how it went.
pub(crate) async fn run_entrypoint(guest: &Guest, record: &Record) {
    let session = "entrypoint".to_owned();
    let quoted = record
        .entrypoint
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    let command = quoted.collect::<Vec<_>>().join(" ");
    let env = record.env.clone();
    // A sandbox that has ended meanwhile is noticed by its watcher.
    if guest
        .call(Op::SessionCreate {
            session: session.clone(),
            env,
        })
        .await
        .is_some()
    {
        let _ = guest
            .call(Op::SessionRun {
                session,
                command,
                wait: false,
            })
            .await;
    }
}

/// The port that the sandbox had, if it is still free, else another one.
pub(crate) fn free_port(shared: &Context, record: &Record) -> Option<u16> {
    let others: Vec<u16> = {
        let inner = shared.store.lock();
        inner
            .sandboxes
            .values()
            .map(|entry| &entry.record)
            .filter(|other| other.id != record.id)
            .map(|o| o.port)
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
