//! One connection to a host, as one user: commands with input and output, and streams to a port of its loopback.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use russh::client::{self, Handle, Handler, Msg};
use russh::keys::{HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey, PublicKeyOrCertificate};
use russh::{Channel, ChannelMsg, ChannelStream, Preferred};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout};

use super::bounds::{
    CHANNEL_MS_MAX, COMMANDS_AT_ONCE, CONNECT_MS_MAX, DRAIN_MS, KEEPALIVE_MS, KEEPALIVES_MAX,
};
use super::error::SshError;
use super::settings::SshHost;

/// The loopback address of a host, on which its sandboxes' agents listen.
const LOOPBACK: &str = "127.0.0.1";

/// Result of a command.
#[derive(Debug)]
pub(super) struct Ran {
    /// Exit status; `None` if a signal ended it.
    pub code: Option<u32>,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: Vec<u8>,
}

/// Accepts only the pinned key, and no certificate.
struct Pinned {
    key: PublicKey,
    shown: Arc<OnceLock<String>>,
}

impl Handler for Pinned {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        shown: &PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        let said = match shown {
            PublicKeyOrCertificate::PublicKey { key, .. }
                if key.key_data() == self.key.key_data() =>
            {
                return Ok(true);
            }
            PublicKeyOrCertificate::PublicKey { key, .. } => {
                key.fingerprint(HashAlg::Sha256).to_string()
            }
            PublicKeyOrCertificate::Certificate(_) => "a certificate".to_owned(),
        };
        let _ = self.shown.set(said);
        Ok(false)
    }
}

/// An established connection, logged in. It ends when its last holder drops it.
pub(super) struct Connection {
    host: String,
    handle: Handle<Pinned>,
    commands: Semaphore,
}

impl Connection {
    /// Connects, compares the host's key, and logs in.
    ///
    /// # Errors
    /// [`SshError`]; here an [`SshError::Unreachable`] is unsent.
    pub(super) async fn open(
        host: &SshHost,
        user: &str,
        key: &Arc<PrivateKey>,
    ) -> Result<Self, SshError> {
        let opening = Self::opened(host, user, key);
        match timeout(Duration::from_millis(CONNECT_MS_MAX), opening).await {
            Ok(opened) => opened,
            Err(_) => Err(unreachable(&host.name, "no answer in time", true)),
        }
    }

    async fn opened(host: &SshHost, user: &str, key: &Arc<PrivateKey>) -> Result<Self, SshError> {
        let pinned = host.pinned().map_err(|what| SshError::Settings { what })?;
        let shown = Arc::new(OnceLock::new());
        let config = client::Config {
            keepalive_interval: Some(Duration::from_millis(KEEPALIVE_MS)),
            keepalive_max: KEEPALIVES_MAX,
            nodelay: true,
            preferred: Preferred {
                // A host with several keys has to show the pinned one.
                key: vec![pinned.algorithm()].into(),
                ..Preferred::DEFAULT
            },
            ..client::Config::default()
        };
        let handler = Pinned { key: pinned, shown: Arc::clone(&shown) };
        let address = (host.address.as_str(), host.port);
        let connected = client::connect(Arc::new(config), address, handler).await;
        let changed = |shown: &str| SshError::HostKeyChanged {
            host: host.name.clone(),
            shown: shown.to_owned(),
        };
        let mut handle = connected.map_err(|error| match (&error, shown.get()) {
            (_, Some(shown)) => changed(shown),
            (russh::Error::NoCommonAlgo { kind: russh::AlgorithmKind::Key, .. }, None) => {
                changed("no key of the pinned kind")
            }
            _ => unreachable(&host.name, &error.to_string(), true),
        })?;
        let key = PrivateKeyWithHashAlg::new(Arc::clone(key), None);
        let login = handle.authenticate_publickey(user, key).await;
        let login = login.map_err(|error| unreachable(&host.name, &error.to_string(), true))?;
        // A connection that breaks meanwhile is also reported as a refusal.
        if handle.is_closed() {
            return Err(unreachable(&host.name, "the connection broke", true));
        }
        if !login.success() {
            return Err(SshError::KeyRefused { host: host.name.clone(), user: user.to_owned() });
        }
        Ok(Self { host: host.name.clone(), handle, commands: Semaphore::new(COMMANDS_AT_ONCE) })
    }

    /// Whether the connection is known to be closed.
    pub(super) fn is_closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Runs a command with this input, until it ends or its time is over. Then its channel is closed: if the command
    /// must end, run it under `timeout`.
    ///
    /// # Errors
    /// [`SshError::Unreachable`], unsent if no channel was opened; [`SshError::TooLarge`] beyond `bytes_max` of output.
    pub(super) async fn run(
        &self,
        command: &str,
        input: Vec<u8>,
        time: Duration,
        bytes_max: usize,
    ) -> Result<Ran, SshError> {
        let until = Instant::now() + time;
        let Ok(_permit) = self.commands.acquire().await else {
            return Err(self.broken("the connection is closed", true));
        };
        let opening = self.handle.channel_open_session();
        let channel = match timeout(Duration::from_millis(CHANNEL_MS_MAX), opening).await {
            Ok(Ok(channel)) => channel,
            Ok(Err(error)) => return Err(self.broken(&error.to_string(), true)),
            Err(_) => return Err(self.broken("the channel did not open in time", true)),
        };
        let running = self.ran(channel, command, input, bytes_max);
        match tokio::time::timeout_at(until, running).await {
            Ok(ran) => ran,
            Err(_) => Err(self.broken("the command did not end in time", false)),
        }
    }

    async fn ran(
        &self,
        channel: Channel<Msg>,
        command: &str,
        input: Vec<u8>,
        bytes_max: usize,
    ) -> Result<Ran, SshError> {
        let (mut read, write) = channel.split();
        let feed = async {
            write.exec(false, command).await?;
            write.data(&input[..]).await?;
            write.eof().await
        };
        tokio::pin!(feed);
        let mut is_fed = false;
        let mut ran = Ran { code: None, out: Vec::new(), err: Vec::new() };
        let mut has_ended = false;
        let mut drained: Option<Instant> = None;
        loop {
            // A command that ends without reading its input leaves the rest unsent.
            let message = tokio::select! {
                message = read.wait() => message,
                fed = &mut feed, if !is_fed => {
                    is_fed = true;
                    if let Err(error) = fed {
                        tracing::debug!(event = "ssh.input", error = %error, "a command did not read its input");
                    }
                    continue;
                }
                () = sleep_until(drained.unwrap_or_else(Instant::now)), if drained.is_some() => None,
            };
            match message {
                Some(ChannelMsg::Data { data }) => ran.out.extend_from_slice(&data),
                Some(ChannelMsg::ExtendedData { data, .. }) => ran.err.extend_from_slice(&data),
                Some(ChannelMsg::ExitStatus { exit_status }) => {
                    ran.code = Some(exit_status);
                    has_ended = true;
                    drained = Some(Instant::now() + Duration::from_millis(DRAIN_MS));
                }
                Some(ChannelMsg::ExitSignal { .. }) => {
                    has_ended = true;
                    drained = Some(Instant::now() + Duration::from_millis(DRAIN_MS));
                }
                Some(ChannelMsg::Close) | None => break,
                Some(_) => {}
            }
            if ran.out.len() + ran.err.len() > bytes_max {
                let _ = write.close().await;
                return Err(SshError::TooLarge { host: self.host.clone(), bytes_max });
            }
        }
        let _ = write.close().await;
        if !has_ended {
            return Err(self.broken("the connection broke", false));
        }
        Ok(ran)
    }

    /// A stream to a port of the host's loopback.
    ///
    /// # Errors
    /// [`SshError::Unreachable`]; unsent if the connection opens no channel, but not if the host refuses the stream:
    /// nothing listens there, or the login may not connect to it.
    pub(super) async fn stream(&self, port: u16) -> Result<ChannelStream<Msg>, SshError> {
        let opening = self.handle.channel_open_direct_tcpip(LOOPBACK, port.into(), LOOPBACK, 0);
        match timeout(Duration::from_millis(CHANNEL_MS_MAX), opening).await {
            Ok(Ok(channel)) => Ok(channel.into_stream()),
            Ok(Err(error @ russh::Error::ChannelOpenFailure(_))) => {
                Err(self.broken(&error.to_string(), false))
            }
            Ok(Err(error)) => Err(self.broken(&error.to_string(), true)),
            Err(_) => Err(self.broken("the stream did not open in time", true)),
        }
    }

    fn broken(&self, what: &str, unsent: bool) -> SshError {
        unreachable(&self.host, what, unsent)
    }
}

fn unreachable(host: &str, what: &str, unsent: bool) -> SshError {
    SshError::Unreachable { host: host.to_owned(), what: what.to_owned(), unsent }
}
