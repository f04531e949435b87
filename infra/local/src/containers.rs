//! For functions in containers of `sam local invoke`: the services that they need also listen on an address that
//! containers reach, on the same ports as on loopback. Off by default.
//!
//! Bytes are passed on unchanged, so a request still names a loopback address, and host checks (such as the chat
//! page's) see no difference. The sandbox provider listens there itself, because a sandbox port gets its listener on
//! demand.

use std::net::{IpAddr, Ipv4Addr};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// Docker's default bridge address (Docker's documentation, "Bridge network driver").
const BRIDGE: &str = "172.17.0.1";
/// Docker Desktop's name for the host; it reaches the host's loopback by itself.
const DOCKER_DESKTOP: &str = "host.docker.internal";

/// How containers reach this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Containers {
    /// Address or name for containers.
    pub host: String,
    /// Address to listen on; `None` if the name leads to loopback.
    pub address: Option<IpAddr>,
}

impl Containers {
    /// The default of `--containers` without a value.
    #[must_use]
    pub fn usual() -> Self {
        if cfg!(target_os = "macos") {
            Self { host: DOCKER_DESKTOP.to_owned(), address: None }
        } else {
            Self { host: BRIDGE.to_owned(), address: BRIDGE.parse().ok() }
        }
    }

    /// Parses an address of this machine, or the containers' name for its loopback.
    ///
    /// # Errors
    /// A sentence, if it is neither.
    pub fn named(host: &str) -> Result<Self, String> {
        let address: Option<IpAddr> = host.parse().ok();
        if let Some(address) = address.filter(|at| at.is_unspecified() || at.is_loopback()) {
            return Err(format!(
                "--containers={address} is not an address that leads from a container to this machine only: use the address of Docker's bridge on this machine, such as {BRIDGE}."
            ));
        }
        let is_name = |host: &str| {
            let known = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
            !host.is_empty() && host.chars().all(known)
        };
        if address.is_none() && !is_name(host) {
            return Err(format!(
                "--containers={host} is not an address or a name: use one such as {BRIDGE} or {DOCKER_DESKTOP}."
            ));
        }
        Ok(Self {
            host: match address {
                Some(IpAddr::V6(address)) => format!("[{address}]"),
                _ => host.to_owned(),
            },
            address,
        })
    }

    /// Checks that the address can be bound, before anything else is started.
    ///
    /// # Errors
    /// Advice.
    pub async fn check(&self) -> Result<(), String> {
        let Some(address) = self.address else {
            return Ok(());
        };
        match TcpListener::bind((address, 0)).await {
            Ok(_) => Ok(()),
            Err(error) => Err(format!(
                "The stack cannot listen on {address} ({error}), so no container could reach it. Start Docker, or name the address of its bridge on this machine: --containers=ADDRESS (docker network inspect bridge calls it Gateway). With Docker Desktop use --containers={DOCKER_DESKTOP}."
            )),
        }
    }

    /// The consequence, for people.
    #[must_use]
    pub fn exposed(&self) -> String {
        match self.address {
            Some(address) => format!(
                "for containers, AWS, the chats and the sandbox provider also listen on {address}. Every container on this machine, and anybody else who can reach that address, needs only this stack's keys to read and write its table, queues and secrets. Leave --containers out when you are done."
            ),
            None => format!(
                "containers reach this stack at {}; nothing extra listens for that besides loopback",
                self.host
            ),
        }
    }
}

/// Relays connections to the same loopback port, until dropped.
pub struct Relay(JoinHandle<()>);

impl Relay {
    /// Listens at `address`.
    ///
    /// # Errors
    /// The system's error, with advice.
    pub async fn start(address: IpAddr, port: u16) -> Result<Self, String> {
        let listener = TcpListener::bind((address, port)).await.map_err(|e| {
            format!("The stack cannot listen on port {port} of {address} ({e}): start again to get another port.")
        })?;
        Ok(Self(tokio::spawn(pass(listener, port))))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn pass(listener: TcpListener, port: u16) {
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((outer, _)) => {
                    open.spawn(one(outer, port));
                }
                Err(error) => tracing::warn!(%error, port, "a connection from a container could not be accepted"),
            },
            Some(_) = open.join_next() => {}
        }
    }
}

async fn one(mut outer: TcpStream, port: u16) {
    let Ok(mut inner) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else {
        return;
    };
    // Small events must not be delayed.
    let _ = (outer.set_nodelay(true), inner.set_nodelay(true));
    // Either side may hang up.
    let _ = copy_bidirectional(&mut outer, &mut inner).await;
}

/// Port of an address such as `http://127.0.0.1:8080/api`.
#[must_use]
pub fn port(address: &str) -> Option<u16> {
    let rest = address.split("://").nth(1)?;
    rest.split('/').next()?.rsplit(':').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_option_never_opens_every_interface() {
        let named = |host: &str| Containers::named(host).map(|it| (it.host, it.address.is_some()));
        assert_eq!(named("172.18.0.1"), Ok(("172.18.0.1".to_owned(), true)));
        assert_eq!(named("fd00::1"), Ok(("[fd00::1]".to_owned(), true)));
        assert_eq!(named("host.docker.internal"), Ok(("host.docker.internal".to_owned(), false)));
        for (host, words) in [
            ("0.0.0.0", "to this machine only"),
            ("::", "to this machine only"),
            ("127.0.0.1", "to this machine only"),
            ("http://x", "is not an address or a name"),
            ("", "is not an address or a name"),
        ] {
            assert!(named(host).is_err_and(|told| told.contains(words)), "{host}");
        }
    }

    #[test]
    fn ports_are_read_from_urls() {
        assert_eq!(port("http://127.0.0.1:8080"), Some(8080));
        assert_eq!(port("http://127.0.0.1:8080/api/v10"), Some(8080));
        assert_eq!(port("http://localhost/"), None);
    }

    #[tokio::test]
    async fn foreign_address_refusal_names_option() {
        // TEST-NET-3 is assigned to nobody.
        let containers = Containers::named("203.0.113.77").expect("an address");
        let told = containers.check().await.expect_err("not of this machine");
        assert!(
            told.starts_with("The stack cannot listen on 203.0.113.77 (")
                && told.contains("--containers=ADDRESS"),
            "{told}"
        );
    }
}
