//! Which host a streamer may speak for.

use std::time::SystemTime;

use ringmark_reader::stream::{Expiry, PeerCertificate};
use subtle::ConstantTimeEq;

use crate::connection_context::AdmissionRules;
use crate::connection_end::ConnectionEnd;
use crate::host_name::{NameTooLong, fits, short};
use crate::listen::PeerProof;
use crate::messages::Introduction;
use crate::reason::Reason;

/// Why a streamer may not speak for the host that it names.
#[derive(Debug, thiserror::Error)]
pub(super) enum Denied {
    #[error(transparent)]
    Name(#[from] NameTooLong),
    #[error("the certificate is for host {}, the streamer says it is {}", proved.join(", "), short(named))]
    OtherHost { proved: Vec<String>, named: String },
    #[error("a token is wanted (--token-file)")]
    NoToken,
    #[error("the token is not ours")]
    OtherToken,
    #[error("host {} is denied (--deny)", short(host))]
    Listed { host: String },
    #[error("the certificate is denied (--deny serial:{serial})")]
    Revoked { serial: String },
    #[error("the certificate has ended")]
    Over,
}

impl From<Denied> for ConnectionEnd {
    fn from(denied: Denied) -> Self {
        let reason = match &denied {
            Denied::Name(_) => Reason::HostName,
            Denied::OtherHost { .. } => Reason::OtherHost,
            Denied::NoToken => Reason::NoToken,
            Denied::OtherToken => Reason::WrongToken,
            Denied::Listed { .. } => Reason::DeniedHost,
            Denied::Revoked { .. } => Reason::DeniedCertificate,
            Denied::Over => Reason::CertificateEnded,
        };
        Self::refused(reason, denied)
    }
}

/// The host that a streamer may speak for: the one it names, if its certificate proves that host, or
/// without TLS if its token is right.
pub(super) fn prove(
    proof: &PeerProof,
    rules: &AdmissionRules,
    hello: &Introduction,
) -> Result<String, Denied> {
    let named = &hello.host;
    fits("host", named)?;
    check_denied(proof, rules, named)?;
    if let PeerProof::Certificate(PeerCertificate { hosts, .. }) = proof {
        // The certificate's spelling counts: it names the directory in the store.
        let proved = hosts.iter().find(|name| name.eq_ignore_ascii_case(named));
        return proved.cloned().ok_or_else(|| Denied::OtherHost {
            proved: hosts.clone(),
            named: named.clone(),
        });
    }
    match &rules.token {
        Some(_) if hello.token.is_empty() => Err(Denied::NoToken),
        // Compared in constant time: how much of a guess was right must not show.
        Some(token) if !bool::from(token.ct_eq(&hello.token)) => Err(Denied::OtherToken),
        _ => Ok(named.clone()),
    }
}

/// Refuses a host, or a certificate, that is denied.
pub(super) fn check_denied(
    proof: &PeerProof,
    rules: &AdmissionRules,
    host: &str,
) -> Result<(), Denied> {
    if rules.is_denied(host) {
        let host = host.to_owned();
        return Err(Denied::Listed { host });
    }
    match proof {
        PeerProof::Certificate(PeerCertificate { serial, .. }) if rules.is_revoked(serial) => {
            let serial = serial.clone();
            Err(Denied::Revoked { serial })
        }
        _ => Ok(()),
    }
}

/// Refuses a certificate that has ended since the handshake.
pub(super) fn check_validity(proof: &PeerProof) -> Result<(), Denied> {
    let PeerProof::Certificate(certificate) = proof else {
        return Ok(());
    };
    let is_over = |expiry: &Expiry| expiry.is_over(SystemTime::now());
    match certificate.expiry.as_ref().is_some_and(is_over) {
        true => Err(Denied::Over),
        false => Ok(()),
    }
}
