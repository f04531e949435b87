//! TLS between a sandbox and a host with rewritten requests: terminated here, with the provider's own authority, which
//! the sandbox trusts, and re-established to the host itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::limits::{CERTIFICATES_MAX, CONNECT_MS_MAX};
use crate::stand_in::StandIn;

/// The authority that sandboxes trust, and the roots that this end trusts.
pub(crate) struct TlsInterceptor {
    issuer: CertifiedIssuer<'static, KeyPair>,
    certificates: Mutex<BTreeMap<String, Arc<ServerConfig>>>,
    client: Arc<ClientConfig>,
    /// All certificates that a program inside must trust, in PEM.
    pub(crate) bundle: String,
}

/// HTTP/1.1 only: requests are read here.
const PROTOCOL: &[u8] = b"http/1.1";

impl TlsInterceptor {
    /// A new authority, bundled with this machine's authorities and the stand-ins'.
    ///
    /// # Errors
    /// A certificate cannot be generated or read; in words.
    pub(crate) fn new(stand_ins: &[StandIn]) -> Result<Self, String> {
        let wrong = |error: rcgen::Error| error.to_string();
        let mut params = CertificateParams::new(Vec::new()).map_err(wrong)?;
        let named = &mut params.distinguished_name;
        named.push(DnType::CommonName, "Bobbin's sandboxes on this machine");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().map_err(wrong)?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(wrong)?;

        let mut known = rustls_native_certs::load_native_certs().certs;
        for one in stand_ins {
            let read = CertificateDer::from_pem_slice(one.authority.as_bytes());
            known.push(read.map_err(|error| format!("the authority of {}: {error}", one.host))?);
        }
        let mut bundle = issuer.pem();
        let mut roots = RootCertStore::empty();
        for certificate in known {
            bundle.push_str(&pem(&certificate));
            // An authority of this machine that rustls cannot read is skipped.
            let _ = roots.add(certificate);
        }
        let mut client = ClientConfig::builder_with_provider(ring())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Self { issuer, certificates: Mutex::default(), client: Arc::new(client), bundle })
    }

    /// Acceptor for a host; its certificate is generated on first use.
    fn acceptor(&self, host: &str) -> Result<TlsAcceptor, String> {
        let mut certificates = self.certificates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = certificates.get(host) {
            return Ok(TlsAcceptor::from(Arc::clone(config)));
        }
        let wrong = |error: rcgen::Error| error.to_string();
        let mut params = CertificateParams::new(vec![host.to_owned()]).map_err(wrong)?;
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().map_err(wrong)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(wrong)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(ring())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .map_err(|error| error.to_string())?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        let config = Arc::new(config);
        if certificates.len() >= CERTIFICATES_MAX {
            certificates.clear();
        }
        certificates.insert(host.to_owned(), Arc::clone(&config));
        Ok(TlsAcceptor::from(config))
    }

    /// Accepts a TLS connection from inside to a host.
    pub(crate) async fn accept<S>(&self, host: &str, stream: S) -> Option<impl ByteStream + use<S>>
    where
        S: ByteStream,
    {
        let acceptor = match self.acceptor(host) {
            Ok(acceptor) => acceptor,
            Err(error) => {
                tracing::warn!(error, "nothing can be shown for a host");
                return None;
            }
        };
        let bound = Duration::from_millis(CONNECT_MS_MAX);
        // A program that does not trust this end hangs up.
        tokio::time::timeout(bound, acceptor.accept(stream)).await.ok()?.ok()
    }

    /// Connects to the host itself.
    pub(crate) async fn connect(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> Option<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).ok()?;
        let connector = TlsConnector::from(Arc::clone(&self.client));
        let bound = Duration::from_millis(CONNECT_MS_MAX);
        let connected = tokio::time::timeout(bound, connector.connect(name, stream)).await;
        let Ok(connected) = connected else {
            return None;
        };
        connected.inspect_err(|error| tracing::warn!(%error, "a host is not who it should be")).ok()
    }
}

/// A bidirectional connection.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> ByteStream for S {}

fn ring() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn pem(certificate: &CertificateDer<'_>) -> String {
    let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in STANDARD.encode(certificate).as_bytes().chunks(64) {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    }
    text.push_str("-----END CERTIFICATE-----\n");
    text
}
