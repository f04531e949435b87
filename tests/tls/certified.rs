//! The certificate of a server on loopback; programs that need one include this file by its path.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// For a server of these names, by an authority that is made here; with the authority's certificate, in PEM.
///
/// # Errors
/// In words.
pub fn certified(names: &[&str]) -> Result<(ServerConfig, String), String> {
    let wrong = |e: rcgen::Error| e.to_string();
    let mut params = CertificateParams::new(Vec::new()).map_err(wrong)?;
    // Other than that of the certificate below, which would look self-signed.
    params.distinguished_name.push(DnType::CommonName, "authority on loopback");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().map_err(wrong)?;
    let authority = CertifiedIssuer::self_signed(params, key).map_err(wrong)?;
    let key = KeyPair::generate().map_err(wrong)?;
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).map_err(wrong)?;
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, &authority).map_err(wrong)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .map_err(|e| e.to_string())?;
    Ok((config, authority.pem()))
}
