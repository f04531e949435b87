//! One HTTP/1.1 connection to a service: opened, used for one request at a time, and asked whether it still lives.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use http::{HeaderMap, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::http::{is_loopback_host, tls_trusting};

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// Not reached, not trusted, or gone.
    Lost,
    /// Longer than is taken.
    TooLarge,
}

/// Who is trusted.
pub(super) struct Tls {
    public: TlsConnector,
    loopback: TlsConnector,
}

impl Tls {
    /// The compiled-in roots, and on loopback those in this file too: so that a function is run as it is deployed against
    /// a local endpoint with TLS. A file that cannot be read adds nobody, which the handshake then says.
    pub(super) fn new(bundle: Option<&Path>) -> Self {
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
pub(super) struct Connection {
    origin: Uri,
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    /// Connects, and says who it wants to speak to.
    pub(super) async fn open(uri: &Uri, tls: &Tls) -> Result<Self, Broken> {
        let host = uri.host().ok_or(Broken::Lost)?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let is_secure = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let stream = TcpStream::connect((bare, port))
            .await
            .map_err(|_| Broken::Lost)?;
        // A request is written in one piece and wants its answer at once.
        stream.set_nodelay(true).map_err(|_| Broken::Lost)?;
        let sender = if is_secure {
            let name = ServerName::try_from(bare.to_owned()).map_err(|_| Broken::Lost)?;
            let peer = stream.peer_addr().map_err(|_| Broken::Lost)?;
            let stream = tls.towards(host, peer.ip()).connect(name, stream).await;
            speak(stream.map_err(|_| Broken::Lost)?).await?
        } else {
            speak(stream).await?
        };
        Ok(Self {
            origin: uri.clone(),
            sender,
        })
    }

    /// Whether it was opened for this address.
    pub(super) fn leads_to(&self, uri: &Uri) -> bool {
        self.origin.authority() == uri.authority() && self.origin.scheme() == uri.scheme()
    }

    /// Whether a request can be sent. Waits until the answer before is out of the way.
    pub(super) async fn is_ready(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    /// Sends a request and reads the whole answer.
    pub(super) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        bytes_max: usize,
    ) -> Result<(StatusCode, HeaderMap, Bytes), Broken> {
        let answer: Response<Incoming> = self
            .sender
            .send_request(request)
            .await
            .map_err(|_| Broken::Lost)?;
        let (parts, body) = answer.into_parts();
        match Limited::new(body, bytes_max).collect().await {
            Ok(body) => Ok((parts.status, parts.headers, body.to_bytes())),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(Broken::TooLarge),
            Err(_) => Err(Broken::Lost),
        }
    }
}

/// Starts HTTP on a stream. Its task ends with the stream, or when nobody holds the other end.
async fn speak<S>(stream: S) -> Result<SendRequest<Full<Bytes>>, Broken>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, driving) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|_| Broken::Lost)?;
    // How it ends is seen by who sends next.
    tokio::spawn(async move { driving.await.ok() });
    Ok(sender)
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
