//! Credentials for TLS: a certificate with its key, and the CA whose certificates are trusted.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use webpki::{EndEntityCert, KeyUsage};

use super::expiry::Expiry;
use super::secret_file::{self, CredentialsError, CredentialsFault, Unfit};
use crate::regular_file;

/// A CA, and a certificate with its key. Only TLS 1.3 is spoken, both sides show certificates, and
/// no connection resumes an earlier one: a certificate that has expired ends with its connection.
#[derive(Clone)]
pub struct Credentials {
    as_streamer: Arc<ClientConfig>,
    as_collector: Arc<ServerConfig>,
    hosts: Vec<String>,
    expiry: Option<Expiry>,
    chain: Arc<[CertificateDer<'static>]>,
    roots: Arc<RootCertStore>,
    files: Arc<Files>,
}

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// It proves which host a streamer is of.
    Streamer,
    /// It proves that a collector is the one that its address names.
    Collector,
}

/// Bytes of the TLS records of a streamer. Its collector reads as many at a time, and keeps what it read of a record
/// until all of that is there: of larger ones it would keep more, for each connection.
const RECORD_BYTES: usize = 4096;
/// What encryption adds to a record: its type and a tag.
const RECORD_TAIL: usize = 17;

/// Where credentials were read.
struct Files {
    ca: PathBuf,
    cert: PathBuf,
    key: PathBuf,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Credentials");
        shown.field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Reads PEM files: the CA whose certificates are trusted, our certificate, and its key.
    ///
    /// # Errors
    /// A file cannot be read or holds something else, other users may read the key, or it is not
    /// the certificate's.
    pub fn load(ca: &Path, cert: &Path, key: &Path) -> Result<Self, CredentialsError> {
        let in_ca = |source| CredentialsFault::Tls(source).in_file(ca);
        let mut roots = RootCertStore::empty();
        for root in certificates(ca)? {
            roots.add(root).map_err(in_ca)?;
        }
        let roots = Arc::new(roots);
        let chain = certificates(cert)?;
        let (hosts, expiry) = (hosts_of(&chain), Expiry::of(&chain));
        let (kept, kept_roots) = (chain.clone(), roots.clone());
        let pem = secret_file::read(key)?;
        let no_key = |source| CredentialsFault::NoKey(source).in_file(key);
        let secret = PrivateKeyDer::from_pem_slice(&pem).map_err(no_key)?;
        let mismatch = |source| {
            let cert = cert.to_owned();
            CredentialsFault::OtherKey { cert, source }.in_file(key)
        };

        let provider = Arc::new(ring::default_provider());
        let mut as_streamer = client_of(&provider)
            .map_err(in_ca)?
            .with_root_certificates(roots.clone())
            .with_client_auth_cert(chain.clone(), secret.clone_key())
            .map_err(mismatch)?;
        as_streamer.resumption = Resumption::disabled();
        as_streamer.max_fragment_size = Some(RECORD_BYTES - RECORD_TAIL);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone())
            .build()
            .map_err(|source| CredentialsFault::Verifier(source).in_file(ca))?;
        let mut as_collector = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(in_ca)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, secret)
            .map_err(mismatch)?;
        as_collector.session_storage = Arc::new(NoServerSessionStorage {});
        as_collector.send_tls13_tickets = 0;
        Ok(Self {
            as_streamer: Arc::new(as_streamer),
            as_collector: Arc::new(as_collector),
            hosts,
            expiry,
            chain: kept.into(),
            roots: kept_roots,
            files: Arc::new(Files {
                ca: ca.to_owned(),
                cert: cert.to_owned(),
                key: key.to_owned(),
            }),
        })
    }

    /// Whether the other side would take our certificate: the CA signed it, it is for this side, and it is good now.
    ///
    /// # Errors
    /// It would not.
    pub fn check(&self, side: Side, now: SystemTime) -> Result<(), CredentialsError> {
        let usage = match side {
            Side::Streamer => KeyUsage::client_auth(),
            Side::Collector => KeyUsage::server_auth(),
        };
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let algorithms = ring::default_provider().signature_verification_algorithms;
        let (first, above) = (&self.chain[..1], &self.chain[1..]);
        let checked = EndEntityCert::try_from(&first[0]).and_then(|certificate| {
            let (roots, now) = (&self.roots.roots, UnixTime::since_unix_epoch(now));
            let verified =
                certificate.verify_for_usage(algorithms.all, roots, above, now, usage, None, None);
            verified.map(drop)
        });
        checked.map_err(|source| {
            let unfit = Unfit {
                why: unfit(&source, side),
                ca: self.files.ca.clone(),
                source,
            };
            CredentialsFault::Unfit(Box::new(unfit)).in_file(&self.files.cert)
        })
    }

    /// What the same files hold now.
    ///
    /// # Errors
    /// As [`Credentials::load`].
    pub fn read_again(&self) -> Result<Self, CredentialsError> {
        let Files { ca, cert, key } = &*self.files;
        Self::load(ca, cert, key)
    }

    /// The host names in our certificate.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// When our certificate ends; `None`: it cannot be read from it.
    #[must_use]
    pub fn expiry(&self) -> Option<Expiry> {
        self.expiry
    }

    /// The configuration for a collector's side of a connection.
    #[must_use]
    pub fn as_collector(&self) -> Arc<ServerConfig> {
        self.as_collector.clone()
    }

    /// The configuration for a streamer's side of a connection.
    #[must_use]
    pub fn as_streamer(&self) -> Arc<ClientConfig> {
        self.as_streamer.clone()
    }
}

/// Why a certificate cannot be used, in words.
fn unfit(error: &webpki::Error, side: Side) -> String {
    let (whom, other) = match side {
        Side::Streamer => ("host", "collector"),
        Side::Collector => ("collector", "host"),
    };
    match error {
        webpki::Error::CertExpired { .. } => "it has ended: renew it".to_owned(),
        webpki::Error::CertNotValidYet { .. } => {
            "it is not valid yet: is the clock right?".to_owned()
        }
        webpki::Error::UnknownIssuer => "this CA did not sign it".to_owned(),
        webpki::Error::RequiredEkuNotFoundContext(_) => {
            format!(
                "found one for another use, such as that of a {other}, expected one of 'ringmark certs {whom}'"
            )
        }
        other => format!("{other}"),
    }
}

type ClientBuilder = rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>;

fn client_of(provider: &Arc<CryptoProvider>) -> Result<ClientBuilder, rustls::Error> {
    ClientConfig::builder_with_provider(provider.clone()).with_protocol_versions(&[&TLS13])
}

/// The certificates in a PEM file: at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CredentialsError> {
    let failed = |error| CredentialsFault::Io(error).in_file(path);
    let (pem, _) = regular_file::read(path).map_err(failed)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(CredentialsFault::NoCertificate.in_file(path)),
        Err(error) => Err(CredentialsFault::BadCertificate(error).in_file(path)),
    }
}

/// The host names in the first certificate of a chain; none in a certificate that cannot be read.
#[must_use]
pub fn hosts_of(chain: &[CertificateDer<'_>]) -> Vec<String> {
    let first = chain.first();
    let read = first.and_then(|der| EndEntityCert::try_from(der).ok());
    read.map(|cert| cert.valid_dns_names().map(str::to_owned).collect())
        .unwrap_or_default()
}
