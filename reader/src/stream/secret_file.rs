//! Files that hold a secret: a key, a token.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustls::pki_types::pem;
use rustls::server::VerifierBuilderError;

use crate::regular_file;

/// A file with a key, a certificate or a token cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {fault}", path.display())]
pub struct CredentialsError {
    path: PathBuf,
    #[source]
    fault: CredentialsFault,
}

/// Why the other side would not take a certificate.
#[derive(Debug, thiserror::Error)]
#[error("with {}: {why}", ca.display())]
pub(super) struct Unfit {
    pub(super) why: String,
    pub(super) ca: PathBuf,
    #[source]
    pub(super) source: webpki::Error,
}

/// What is wrong with such a file.
#[derive(Debug, thiserror::Error)]
pub(super) enum CredentialsFault {
    #[error(transparent)]
    Io(io::Error),
    #[error("mode {mode:04o}: others may read it, expected 0600 (chmod 600)")]
    Readable { mode: u32 },
    #[error("is not text")]
    NotText(#[source] std::string::FromUtf8Error),
    #[error("is empty, expected a token in its first line")]
    NoToken,
    #[error("no certificate in PEM")]
    NoCertificate,
    #[error("no certificate in PEM: {0}")]
    BadCertificate(#[source] pem::Error),
    #[error("no private key in PEM: {0}")]
    NoKey(#[source] pem::Error),
    #[error("not the key of {}: {source}", cert.display())]
    OtherKey {
        cert: PathBuf,
        source: rustls::Error,
    },
    #[error(transparent)]
    Unfit(Box<Unfit>),
    #[error(transparent)]
    Tls(rustls::Error),
    #[error(transparent)]
    Verifier(VerifierBuilderError),
}

impl CredentialsError {
    /// Whether another moment would do: a certificate has ended, or is not valid yet.
    #[must_use]
    pub fn is_of_time(&self) -> bool {
        use webpki::Error::{CertExpired, CertNotValidYet};
        let CredentialsFault::Unfit(unfit) = &self.fault else {
            return false;
        };
        matches!(unfit.source, CertExpired { .. } | CertNotValidYet { .. })
    }
}

impl CredentialsFault {
    /// The error for a file with this fault.
    pub(super) fn in_file(self, path: &Path) -> CredentialsError {
        CredentialsError {
            path: path.to_owned(),
            fault: self,
        }
    }
}

/// The content of a file that must not be readable by other users.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, CredentialsError> {
    let failed = |error| CredentialsFault::Io(error).in_file(path);
    let (content, about) = regular_file::read(path).map_err(failed)?;
    let mode = about.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(CredentialsFault::Readable { mode }.in_file(path));
    }
    Ok(content)
}

/// The token in the first line of a file that must not be readable by other users.
///
/// # Errors
/// Other users may read the file, it cannot be read, or holds no token.
pub fn read_token(path: &Path) -> Result<String, CredentialsError> {
    let content = read(path)?;
    let text =
        String::from_utf8(content).map_err(|e| CredentialsFault::NotText(e).in_file(path))?;
    match text.lines().next().map(str::trim) {
        Some(token) if !token.is_empty() => Ok(token.to_owned()),
        _ => Err(CredentialsFault::NoToken.in_file(path)),
    }
}
