//! Errors of TLS, as texts for a person.

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// The text for an error of TLS; `other` names the other side, for example "collector".
#[must_use]
pub fn explain(error: &Error, other: &str) -> String {
    match error {
        Error::InvalidCertificate(wrong) => unacceptable(wrong, other),
        Error::NoCertificatesPresented => format!("the {other} shows no certificate"),
        Error::AlertReceived(alert) => alerted(*alert, other),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            format!("the {other} does not speak TLS here")
        }
        Error::PeerIncompatible(why) => {
            format!("the {other} speaks no TLS 1.3 that we do: {why:?}")
        }
        other => format!("TLS: {other}"),
    }
}

/// The text for a certificate of the other side that we do not accept.
fn unacceptable(wrong: &CertificateError, other: &str) -> String {
    use CertificateError as C;
    let days = |seconds: u64| seconds / 86_400;
    match wrong {
        C::UnknownIssuer | C::BadSignature => {
            format!("the {other}'s certificate is not from our CA")
        }
        C::ExpiredContext { time, not_after } => {
            let ago = time.as_secs().saturating_sub(not_after.as_secs());
            format!("the {other}'s certificate expired {} days ago", days(ago))
        }
        C::Expired => format!("the {other}'s certificate has expired"),
        C::NotValidYet | C::NotValidYetContext { .. } => {
            format!("the {other}'s certificate is not valid yet: is a clock wrong?")
        }
        C::NotValidForNameContext {
            expected,
            presented,
        } => {
            let names: Vec<_> = presented.iter().map(|name| bare(name)).collect();
            let (expected, names) = (expected.to_str(), names.join(", "));
            format!("the {other}'s certificate is for {names}, expected {expected}")
        }
        C::InvalidPurpose | C::InvalidPurposeContext { .. } => {
            format!("the certificate that the {other} shows is not one for a {other}")
        }
        wrong => format!("the {other}'s certificate: {wrong}"),
    }
}

/// The text for an alert, with which the other side says what is wrong.
fn alerted(alert: AlertDescription, other: &str) -> String {
    use AlertDescription as A;
    match alert {
        A::UnknownCA | A::DecryptError => {
            format!("the {other} says that our certificate is not from its CA")
        }
        A::CertificateExpired => {
            format!("the {other} says that our certificate has expired, or is not valid yet")
        }
        A::CertificateRequired => format!("the {other} wants a certificate, and we show none"),
        A::BadCertificate | A::UnsupportedCertificate | A::CertificateUnknown => {
            format!("the {other} does not accept our certificate: {alert:?}")
        }
        A::ProtocolVersion => format!("the {other} speaks no TLS 1.3"),
        alert => format!("the {other} ended TLS: {alert:?}"),
    }
}

/// The name in a description as rustls gives it: `DnsName("a")` becomes `a`.
fn bare(name: &str) -> &str {
    let mut parts = name.split(['(', ')', '"']).filter(|part| !part.is_empty());
    parts.nth(1).unwrap_or(name)
}
