//! HTTP/1.1 connections to services: opened when they are needed, used for one request at a time, kept for the next.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http::Uri;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::http::{is_loopback_host, tls_trusting};
use crate::http1::{Answer, Broken, Http1};

/// Time to connect, the handshake of TLS included.
const CONNECT_MS_MAX: u64 = 3_100;
/// Connections that are kept for the next request.
const IDLE_MAX: usize = 16;

/// The connections of a process.
#[derive(Debug)]
pub(super) struct Pool {
    bundle: Option<PathBuf>,
    tls: OnceLock<Tls>,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    /// None yet. The certificates in this file (PEM) are trusted on loopback.
    pub(super) fn new(bundle: Option<PathBuf>) -> Self {
        Self {
            bundle,
            tls: OnceLock::new(),
            idle: Mutex::default(),
        }
    }

    /// Sends a request to the host of this address, and reads the whole answer. A connection that had been kept and turns
    /// out to be dead, which a frozen function cannot have noticed, is replaced.
    pub(super) async fn exchange(
        &self,
        uri: &Uri,
        request: &[u8],
        bytes_max: usize,
    ) -> Result<Answer, Broken> {
        // As often as there are kept connections, of which each is used up by this.
        while let Some(mut connection) = self.kept(uri).await {
            match connection.exchange(request, bytes_max).await {
                Ok(answer) => return Ok(self.keep(connection, answer)),
                Err(Broken::Lost) => {}
                Err(Broken::TooLarge) => return Err(Broken::TooLarge),
            }
        }
        let tls = self.tls.get_or_init(|| Tls::new(self.bundle.as_deref()));
        let opening = Connection::open(uri, tls);
        let opening = tokio::time::timeout(Duration::from_millis(CONNECT_MS_MAX), opening);
        let mut connection = opening.await.map_err(|_| Broken::Lost)??;
        let answer = connection.exchange(request, bytes_max).await?;
        Ok(self.keep(connection, answer))
    }

    async fn kept(&self, uri: &Uri) -> Option<Connection> {
        loop {
            let mut connection = {
                let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                let position = idle.iter().rposition(|kept| kept.leads_to(uri))?;
                idle.swap_remove(position)
            };
            if connection.is_open().await {
                return Some(connection);
            }
        }
    }

    fn keep(&self, connection: Connection, answer: Answer) -> Answer {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX && !answer.is_last() {
            idle.push(connection);
        }
        answer
    }
}

/// Who is trusted.
struct Tls {
    public: TlsConnector,
    loopback: TlsConnector,
}

impl Tls {
    /// The compiled-in roots, and on loopback those in this file too: so that a function is run as it is deployed against
    /// a local endpoint with TLS. A file that cannot be read adds nobody, which the handshake then says.
    fn new(bundle: Option<&Path>) -> Self {
        let public = TlsConnector::from(Arc::new(tls_trusting(&[])));
        let loopback = match bundle.map(CertificateDer::pem_file_iter) {
            Some(read) => {
                let more: Vec<_> = read.into_iter().flatten().flatten().collect();
                TlsConnector::from(Arc::new(tls_trusting(&more)))
            }
            None => public.clone(),
        };
        Self { public, loopback }
    }

    /// The one to use towards a host of this name that turned out to be this address.
    fn towards(&self, host: &str, peer: IpAddr) -> &TlsConnector {
        match is_loopback_host(host) && peer.is_loopback() {
            true => &self.loopback,
            false => &self.public,
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// An open connection.
#[derive(Debug)]
struct Connection {
    origin: Uri,
    stream: Stream,
}

#[derive(Debug)]
enum Stream {
    Plain(Http1<TcpStream>),
    Secure(Box<Http1<TlsStream<TcpStream>>>),
}

impl Connection {
    /// Connects, and says who it wants to speak to.
    async fn open(uri: &Uri, tls: &Tls) -> Result<Self, Broken> {
        let host = uri.host().ok_or(Broken::Lost)?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let is_secure = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let stream = TcpStream::connect((bare, port))
            .await
            .map_err(|_| Broken::Lost)?;
        // A request is written in one piece and wants its answer at once.
        stream.set_nodelay(true).map_err(|_| Broken::Lost)?;
        let stream = if is_secure {
            let name = ServerName::try_from(bare.to_owned()).map_err(|_| Broken::Lost)?;
            let peer = stream.peer_addr().map_err(|_| Broken::Lost)?;
            let stream = tls.towards(host, peer.ip()).connect(name, stream).await;
            Stream::Secure(Box::new(Http1::new(stream.map_err(|_| Broken::Lost)?)))
        } else {
            Stream::Plain(Http1::new(stream))
        };
        Ok(Self {
            origin: uri.clone(),
            stream,
        })
    }

    /// Whether it was opened for this address.
    fn leads_to(&self, uri: &Uri) -> bool {
        self.origin.authority() == uri.authority() && self.origin.scheme() == uri.scheme()
    }

    /// Whether a request can be sent, as far as can be told.
    async fn is_open(&mut self) -> bool {
        match &mut self.stream {
            Stream::Plain(http) => http.is_open().await,
            Stream::Secure(http) => http.is_open().await,
        }
    }

    /// Sends a request and reads the whole answer.
    async fn exchange(&mut self, request: &[u8], bytes_max: usize) -> Result<Answer, Broken> {
        match &mut self.stream {
            Stream::Plain(http) => http.exchange(request, bytes_max).await,
            Stream::Secure(http) => http.exchange(request, bytes_max).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_certificates_is_believed_on_loopback_alone() {
        let tls = Tls::new(Some(Path::new("/nowhere")));
        let is_believed = |host: &str, peer: &str| {
            let chosen = tls.towards(host, peer.parse().expect("an address"));
            Arc::ptr_eq(chosen.config(), tls.loopback.config())
        };
        assert!(is_believed("localhost", "127.0.0.1"));
        assert!(is_believed("[::1]", "::1"));
        // A name that leads here, and one that says so and leads elsewhere.
        assert!(!is_believed("sqs.eu-west-1.amazonaws.com", "127.0.0.1"));
        assert!(!is_believed("localhost", "192.0.2.1"));
        assert!(!is_believed("sqs.eu-west-1.amazonaws.com", "192.0.2.1"));
    }
}
