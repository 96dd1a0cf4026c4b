//! A small CA for a first deployment: one directory for each machine, to be copied there as a
//! whole.
//!
//! `DIR/ca.pem` and `DIR/ca.key` stay where they are. `DIR/collector/` and `DIR/hosts/NAME/` hold
//! `ca.pem`, `cert.pem` and `key.pem` each. A certificate is either a collector's or a host's: a
//! host that is broken into cannot pose as the collector. A key may also be made on the machine that
//! uses it: then only its request comes here.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertificateSigningRequestParams, DnType,
    ExtendedKeyUsagePurpose as Purpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKey, SanType,
    date_time_ymd,
};
use ringmark_reader::stream::hosts_of;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};

const DAY: Duration = Duration::from_secs(86_400);

/// Why a certificate was not made.
#[derive(Debug, thiserror::Error)]
pub enum CertsError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The certificate is there already.
    #[error("{}: is there already, and nothing is overwritten; remove it to make a new one", path.display())]
    Exists {
        /// The file or directory.
        path: PathBuf,
    },
    /// A text that cannot be the name of a machine.
    #[error(
        "{name:?}: expected the name of a machine: letters, digits, '-', '_' and '.', at most 63 characters between dots, 253 in all"
    )]
    Name {
        /// The text.
        name: String,
    },
    /// The CA is not one of ours, or ends too early.
    #[error("{}: cannot sign: {source}", path.display())]
    Ca {
        /// The CA's certificate.
        path: PathBuf,
        /// What is wrong with it.
        source: CaFault,
    },
    /// The request for a certificate cannot be used.
    #[error("{}: {source}, expected the request.pem of 'ringmark certs request'", path.display())]
    Request {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rcgen::Error,
    },
    /// The library could not make a certificate or a key.
    #[error("making a certificate: {0}")]
    Made(#[from] rcgen::Error),
}

/// Why a CA cannot sign.
#[derive(Debug, thiserror::Error)]
pub enum CaFault {
    /// It ends before the new certificate would.
    #[error("it ends before the new certificate would, expected fewer --days")]
    Ends,
    /// Its certificate does not belong to its key.
    #[error("not made by 'ringmark certs ca' with the ca.key next to it: {0}")]
    OtherKey(#[source] webpki::Error),
}

/// Makes an error of a failed system call on `path`.
fn at(path: &Path) -> impl FnOnce(io::Error) -> CertsError {
    let path = path.to_owned();
    |source| match source.kind() {
        io::ErrorKind::AlreadyExists => CertsError::Exists { path },
        _ => CertsError::Io { path, source },
    }
}

/// From when until when a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The first moment.
    pub from: SystemTime,
    /// The moment after the last one.
    pub until: SystemTime,
}

impl Validity {
    /// From now on for `days` days. It begins a day earlier, for machines whose clocks are slow.
    #[must_use]
    pub fn days(days: u32) -> Self {
        let now = SystemTime::now();
        Self {
            from: now - DAY,
            until: now + DAY * days,
        }
    }

    fn apply(self, params: &mut CertificateParams) {
        let date = |time: SystemTime| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH);
            date_time_ymd(1970, 1, 1) + since.unwrap_or_default()
        };
        params.not_before = date(self.from);
        params.not_after = date(self.until);
    }
}

/// Makes a CA in `dir`.
///
/// # Errors
/// There is one, or it cannot be written.
pub fn ca(dir: &Path, validity: Validity) -> Result<(), CertsError> {
    let key = KeyPair::generate()?;
    let mut params = ca_params(&key);
    validity.apply(&mut params);
    let cert = params.self_signed(&key)?;
    make_dir(dir)?;
    // No new key is left next to the certificate of another one.
    let path = dir.join("ca.pem");
    if path.symlink_metadata().is_ok() {
        return Err(CertsError::Exists { path });
    }
    write(&dir.join("ca.key"), &key.serialize_pem())?;
    write(&dir.join("ca.pem"), &cert.pem())
}

/// Makes the certificate of a collector that streamers reach by these names and addresses.
/// Returns the directory that holds it.
///
/// # Errors
/// There is one, the CA cannot sign it, a name is no machine's, or it cannot be written.
pub fn collector(dir: &Path, names: &[String], validity: Validity) -> Result<PathBuf, CertsError> {
    collector_for(dir, names, validity, Key::New)
}

/// The same for this key.
///
/// # Errors
/// As with [`collector`], or the request cannot be used.
pub fn collector_for(
    dir: &Path,
    names: &[String],
    validity: Validity,
    key: Key<'_>,
) -> Result<PathBuf, CertsError> {
    let to = dir.join("collector");
    let made = signed(dir, names, Role::Collector, validity, key)?;
    put(dir, &to, &made).map(|()| to)
}

/// Makes the certificate of a host that streams under this name. Returns the directory that
/// holds it.
///
/// # Errors
/// As with [`collector`].
pub fn host(dir: &Path, name: &str, validity: Validity) -> Result<PathBuf, CertsError> {
    host_for(dir, name, validity, Key::New)
}

/// The same for this key.
///
/// # Errors
/// As with [`collector_for`].
pub fn host_for(
    dir: &Path,
    name: &str,
    validity: Validity,
    key: Key<'_>,
) -> Result<PathBuf, CertsError> {
    let to = dir.join("hosts").join(name);
    let names = [name.to_owned()];
    let made = signed(dir, &names, Role::Host, validity, key)?;
    if hosts_of(&[made.cert.der().clone()]) != names {
        return Err(not_a_name(name));
    }
    put(dir, &to, &made).map(|()| to)
}

/// Checks that certificates can be for hosts of these names.
///
/// # Errors
/// The first name that is no machine's.
pub fn check_names(names: &[String]) -> Result<(), CertsError> {
    names.iter().try_for_each(|name| match subject(name)? {
        SanType::DnsName(_) => Ok(()),
        _ => Err(not_a_name(name)),
    })
}

/// Makes a key in `dir` on the machine that will use it, and the request for a certificate. Only the
/// request leaves that machine.
///
/// # Errors
/// There is one, or it cannot be written.
pub fn request(dir: &Path) -> Result<(), CertsError> {
    let key = KeyPair::generate()?;
    let request = CertificateParams::default().serialize_request(&key)?;
    make_dir(dir)?;
    write(&dir.join("key.pem"), &key.serialize_pem())?;
    write(&dir.join("request.pem"), &request.pem()?)
}

/// The key of a certificate.
#[derive(Debug, Clone, Copy)]
pub enum Key<'a> {
    /// One that is made now, and written next to the certificate.
    New,
    /// That of the request in this file. What else the request asks for has no part in the
    /// certificate.
    OfRequest(&'a Path),
}

/// The public key of a request.
fn requested_key(request: &Path) -> Result<PublicKey, CertsError> {
    let text = fs::read_to_string(request).map_err(at(request))?;
    let wrong = |source| CertsError::Request {
        path: request.to_owned(),
        source,
    };
    let read = CertificateSigningRequestParams::from_pem(&text).map_err(wrong)?;
    Ok(read.public_key)
}

/// What a certificate is for.
#[derive(Clone, Copy)]
enum Role {
    Collector,
    Host,
}

impl Role {
    fn purpose(self) -> Purpose {
        match self {
            Self::Collector => Purpose::ServerAuth,
            Self::Host => Purpose::ClientAuth,
        }
    }

    fn usage(self) -> KeyUsage {
        match self {
            Self::Collector => KeyUsage::server_auth(),
            Self::Host => KeyUsage::client_auth(),
        }
    }
}

/// A certificate with its key.
struct SignedCert {
    cert: Certificate,
    /// `None`: it is where the request was made.
    key: Option<KeyPair>,
}

fn not_a_name(name: &str) -> CertsError {
    let name = name.to_owned();
    CertsError::Name { name }
}

/// A name as a certificate holds it. Fewer characters are allowed than there: it will also be a
/// directory's name, here and in the store.
fn subject(name: &str) -> Result<SanType, CertsError> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    let is_good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let ends = ['.', '-'];
    let is_odd = name.starts_with(ends) || name.ends_with(ends) || name.contains("..");
    if name.is_empty() || is_odd || !name.chars().all(is_good) {
        return Err(not_a_name(name));
    }
    let name = name.try_into().map_err(|_| not_a_name(name))?;
    Ok(SanType::DnsName(name))
}

/// The CA of this key. Its name contains an id of the key, so two CAs are never mistaken for each
/// other, and the key alone is enough to sign with.
fn ca_params(key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    let id = params.key_identifier(key);
    let id: String = id.iter().take(8).map(|b| format!("{b:02x}")).collect();
    let name = &mut params.distinguished_name;
    name.push(DnType::CommonName, format!("Ringmark CA {id}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

/// A certificate for these names, signed by the CA in `dir`.
fn signed(
    dir: &Path,
    names: &[String],
    role: Role,
    validity: Validity,
    key: Key<'_>,
) -> Result<SignedCert, CertsError> {
    let (ca_pem, ca_key) = (dir.join("ca.pem"), dir.join("ca.key"));
    let subjects: Result<Vec<_>, _> = names.iter().map(|name| subject(name)).collect();
    let read = |path: &Path| fs::read_to_string(path).map_err(at(path));
    let ca_key = KeyPair::from_pem(&read(&ca_key)?)?;
    let issuer = Issuer::new(ca_params(&ca_key), ca_key);

    let mut params = CertificateParams::default();
    params.subject_alt_names = subjects?;
    // For people only, no verifier reads it. X.509 allows no more than 64 characters.
    if let Some(first) = names.first().filter(|name| name.len() <= 64) {
        params.distinguished_name.push(DnType::CommonName, first);
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![role.purpose()];
    params.use_authority_key_identifier_extension = true;
    validity.apply(&mut params);
    let (cert, key) = match key {
        Key::New => {
            let key = KeyPair::generate()?;
            (params.signed_by(&key, &issuer)?, Some(key))
        }
        Key::OfRequest(request) => (params.signed_by(&requested_key(request)?, &issuer)?, None),
    };
    check(&ca_pem, cert.der(), role, validity)?;
    Ok(SignedCert { cert, key })
}

/// Checks that a peer which trusts the CA will accept the certificate, to its last second.
fn check(
    ca: &Path,
    cert: &CertificateDer<'_>,
    role: Role,
    validity: Validity,
) -> Result<(), CertsError> {
    let wrong = |error: webpki::Error| {
        let source = match error {
            webpki::Error::CertExpired { .. } => CaFault::Ends,
            error => CaFault::OtherKey(error),
        };
        let path = ca.to_owned();
        CertsError::Ca { path, source }
    };
    let not_pem = |_| wrong(webpki::Error::BadDer);
    let pem = fs::read(ca).map_err(at(ca))?;
    let root = CertificateDer::from_pem_slice(&pem).map_err(not_pem)?;
    let anchors = [anchor_from_trusted_cert(&root).map_err(wrong)?];
    let until = validity.until.duration_since(SystemTime::UNIX_EPOCH);
    let last = until
        .unwrap_or_default()
        .saturating_sub(Duration::from_secs(1));
    let verify = |cert| {
        let time = UnixTime::since_unix_epoch(last);
        let cert = EndEntityCert::try_from(cert)?;
        let all = ALL_VERIFICATION_ALGS;
        let verified = cert.verify_for_usage(all, &anchors, &[], time, role.usage(), None, None);
        verified.map(drop)
    };
    // The verifier does not check an anchor's own validity, so it is checked as a certificate.
    if let Err(ended @ webpki::Error::CertExpired { .. }) = verify(&root) {
        return Err(wrong(ended));
    }
    verify(cert).map_err(wrong)
}

/// Writes a new directory with the CA, the certificate and its key if that was made here: all of it,
/// or nothing.
fn put(dir: &Path, to: &Path, SignedCert { cert, key }: &SignedCert) -> Result<(), CertsError> {
    if let Some(parent) = to.parent() {
        make_dir(parent)?;
    }
    make_new_dir(to).map_err(at(to))?;
    let ca = dir.join("ca.pem");
    let written = fs::read_to_string(&ca)
        .map_err(at(&ca))
        .and_then(|ca| write(&to.join("ca.pem"), &ca))
        .and_then(|()| write(&to.join("cert.pem"), &cert.pem()))
        .and_then(|()| match key {
            Some(key) => write(&to.join("key.pem"), &key.serialize_pem()),
            None => Ok(()),
        });
    if written.is_err() {
        let _ = fs::remove_dir_all(to);
    }
    written
}

pub(crate) fn make_dir(dir: &Path) -> Result<(), CertsError> {
    let mut builder = DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(at(dir))
}

fn make_new_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(dir)
}

/// Writes a new file that only this user may read, and makes it durable.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), CertsError> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path).map_err(at(path))?;
    file.write_all(text.as_bytes()).map_err(at(path))?;
    file.sync_all().map_err(at(path))
}
