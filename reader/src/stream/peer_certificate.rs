//! What a peer's certificate says of it.

use rustls::pki_types::CertificateDer;

use super::credentials::hosts_of;
use super::expiry::Expiry;

/// The certificate that a peer has shown, after the handshake has verified it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PeerCertificate {
    /// The host names in it.
    pub hosts: Vec<String>,
    /// Its serial number as `openssl x509 -serial` writes it, in lower case and without zeros in
    /// front; empty: it cannot be read.
    pub serial: String,
    /// When it ends; `None`: it cannot be read.
    pub expiry: Option<Expiry>,
}

impl PeerCertificate {
    /// The first certificate in a chain.
    #[must_use]
    pub fn of(chain: &[CertificateDer<'_>]) -> Self {
        let der = chain.first();
        let read = der.and_then(|der| x509_parser::parse_x509_certificate(der).ok());
        Self {
            hosts: hosts_of(chain),
            serial: read
                .map(|(_, read)| serial(read.raw_serial()))
                .unwrap_or_default(),
            expiry: Expiry::of(chain),
        }
    }
}

/// Bytes of a serial number as text.
fn serial(bytes: &[u8]) -> String {
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    text.trim_start_matches('0').to_owned()
}
