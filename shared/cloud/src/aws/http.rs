//! HTTP transport of the SDK's calls: its own client over rustls on ring, with one pool of connections.

use std::path::Path;
use std::time::Duration;

use aws_smithy_http_client::Connector;
#[cfg(feature = "deployed")]
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::ErrorKind;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::Limited;
use memchr::memmem;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// Largest answer: a page of the table has 1 MB and a batch 16 MB, most characters of it escaped.
pub const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Time to connect, TLS handshake included: less than an attempt of ingress has, which has two seconds in all.
const CONNECT: Duration = Duration::from_millis(800);
/// Time to connect from a person's machine, which may be far away, behind a proxy.
#[cfg(feature = "deployed")]
const CONNECT_OF_PERSON: Duration = Duration::from_secs(5);
/// A connection that has idled for longer is not reused: services close theirs, and a frozen function cannot notice.
const IDLE: Duration = Duration::from_secs(15);
/// Idle connections to one host that are kept.
const IDLE_MAX: usize = 16;
/// Certificate authorities of AWS's services in its commercial and government regions (Amazon Trust Services,
/// "Certificate Authorities"), by the names in their certificates.
const AMAZON: [&str; 2] = ["Amazon Root CA", "Starfield Services Root Certificate Authority - G2"];
/// Prefixes of regions in partitions that may use other authorities.
const ELSEWHERE: [&str; 4] = ["cn-", "eusc-", "us-iso", "eu-iso"];

/// For a function: compiled-in roots, no proxy. `bundle` (PEM, as [`bundle`] reads it) is trusted too.
///
/// Only Amazon's own roots are parsed where they suffice: parsing all hundred-odd would add a millisecond to each cold
/// start.
pub(super) fn of_function(region: &str, bundle: Option<Vec<u8>>) -> SharedHttpClient {
    let is_elsewhere = ELSEWHERE.iter().any(|prefix| region.starts_with(prefix));
    let mut trusted = TrustStore::empty();
    for root in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        if is_elsewhere || is_amazons(root) {
            trusted = trusted.with_pem_certificate(pem(root));
        }
    }
    if let Some(bundle) = bundle {
        trusted = trusted.with_pem_certificate(bundle);
    }
    client(Connector::builder(), CONNECT, trusted)
}

/// For a person: the roots of their machine, the certificates that `AWS_CA_BUNDLE` names, and the proxies of their
/// environment (`HTTPS_PROXY`, `NO_PROXY`).
#[cfg(feature = "deployed")]
pub(super) fn of_person(bundle: Option<Vec<u8>>) -> SharedHttpClient {
    let mut trusted = TrustStore::empty().with_native_roots(true);
    if let Some(bundle) = bundle {
        trusted = trusted.with_pem_certificate(bundle);
    }
    let builder = Connector::builder().proxy_config(ProxyConfig::from_env());
    client(builder, CONNECT_OF_PERSON, trusted)
}

/// Reads the certificates in the file that a variable names.
///
/// # Errors
/// Names both, if the file contains no certificate: the SDK would panic.
pub(super) fn bundle(variable: &str, file: &Path) -> Result<Vec<u8>, String> {
    let wrong = |why: String| {
        format!(
            "{variable} names {}, which {why}: give a file of certificates in PEM",
            file.display()
        )
    };
    let text = std::fs::read(file).map_err(|e| wrong(format!("cannot be read ({e})")))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = read.map_err(|e| wrong(format!("is not PEM ({e})")))?;
    let mut roots = rustls::RootCertStore::empty();
    let all_are_certificates =
        certificates.into_iter().all(|certificate| roots.add(certificate).is_ok());
    if all_are_certificates && !roots.is_empty() {
        Ok(text)
    } else {
        Err(wrong("holds no certificate that can be trusted".to_owned()))
    }
}

fn is_amazons(root: &CertificateDer<'_>) -> bool {
    let names = |name: &str| memmem::find(root, name.as_bytes()).is_some();
    AMAZON.into_iter().any(names)
}

fn pem(certificate: &CertificateDer<'_>) -> Vec<u8> {
    let text = STANDARD.encode(certificate);
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n").into_bytes()
}

fn client(
    builder: aws_smithy_http_client::ConnectorBuilder,
    connect: Duration,
    trusted: TrustStore,
) -> SharedHttpClient {
    let context = TlsContext::builder().with_trust_store(trusted).build();
    let settings = HttpConnectorSettings::builder().connect_timeout(connect);
    let builder = builder
        .connector_settings(settings.build())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_MAX)
        .tls_provider(Provider::Rustls(CryptoMode::Ring));
    let builder = match context {
        Ok(context) => builder.tls_context(context),
        // The builder has no way to fail; without it the machine's own roots would be trusted.
        Err(_) => builder,
    };
    let connector = SharedHttpConnector::new(CheckedConnector(builder.build()));
    // One for all clients, regardless of their bounds: they share its connections.
    http_client_fn(move |_, _| connector.clone())
}

/// Bounds the length of answers, and rejects an empty answer of the table: the SDK would read it as "there is no such
/// item".
#[derive(Debug)]
struct CheckedConnector(Connector);

impl HttpConnector for CheckedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target");
        let is_tables = target.is_some_and(|target| target.starts_with("DynamoDB_"));
        let answering = self.0.call(request);
        HttpConnectorFuture::new(async move {
            let answer = answering.await?;
            let is_empty = answer.body().content_length() == Some(0);
            if is_tables && answer.status().is_success() && is_empty {
                let transient = Some(ErrorKind::TransientError);
                return Err(ConnectorError::other("the answer is empty".into(), transient));
            }
            Ok(answer.map(|body| SdkBody::from_body_1_x(Limited::new(body, ANSWER_BYTES_MAX))))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amazon_roots_are_built_in() {
        let amazons =
            webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().filter(|root| is_amazons(root));
        assert_eq!(amazons.count(), 5, "Amazon Root CA 1 to 4, and Starfield's G2");
    }

    #[test]
    fn bundle_without_certificates_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("bundle.pem");
        let refused = || bundle("AWS_CA_BUNDLE", &file).expect_err("refused");
        assert!(refused().contains("cannot be read"), "{}", refused());
        for text in [
            "",
            "certificates",
            "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            std::fs::write(&file, text).expect("written");
            let why = refused();
            assert!(why.starts_with("AWS_CA_BUNDLE names ") && why.contains("PEM"), "{why}");
        }
        let certificate = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
        let certificate = certificate.expect("a certificate").cert.pem();
        std::fs::write(&file, &certificate).expect("written");
        assert_eq!(bundle("AWS_CA_BUNDLE", &file), Ok(certificate.into_bytes()));
    }
}
