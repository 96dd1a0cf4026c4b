//! The operator's key: it signs policies, and its public half says on each host that they are his.

use std::path::Path;
use std::sync::Arc;

use ringmark_format::policy::{Policy, SIGNATURE_BYTES, UncheckedPolicy, WrongPolicy};
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_eddsa_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use rustls::sign::SigningKey;

use crate::stream::secret_file::{self, CredentialsError, CredentialsFault};

/// What stands before the 32 bytes of an Ed25519 public key in its file (RFC 8410).
const ED25519_HEAD: [u8; 12] = [
    0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// The public half of an operator's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyKey([u8; 32]);

/// Why a policy does not count on this host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyFault {
    /// It is no policy.
    #[error("it is no policy: {0}")]
    Wrong(#[from] WrongPolicy),
    /// Another key signed it, or it was changed afterwards.
    #[error("its signature is not that of --policy-key")]
    Signature,
    /// It has ended.
    #[error("serial {serial} has ended")]
    Over {
        /// Its serial.
        serial: u64,
    },
    /// This host has taken a newer one.
    #[error("serial {serial} is older than {newest}, which was taken before")]
    Old {
        /// Its serial.
        serial: u64,
        /// The newest one.
        newest: u64,
    },
    /// Another policy with this serial was taken.
    #[error("serial {serial} was taken before with another content, expected a greater one")]
    Other {
        /// Its serial.
        serial: u64,
    },
}

impl PolicyKey {
    /// Reads a PEM file with an Ed25519 public key.
    ///
    /// # Errors
    /// It cannot be read, or holds something else.
    pub fn load(path: &Path) -> Result<Self, CredentialsError> {
        let pem = std::fs::read(path).map_err(|e| CredentialsFault::Io(e).in_file(path))?;
        let no_key = || CredentialsFault::NoPublicKey.in_file(path);
        let found = SubjectPublicKeyInfoDer::from_pem_slice(&pem).map_err(|_| no_key())?;
        Self::of(&found).ok_or_else(no_key)
    }

    fn of(info: &SubjectPublicKeyInfoDer<'_>) -> Option<Self> {
        let key = info.as_ref().strip_prefix(&ED25519_HEAD)?;
        key.try_into().ok().map(Self)
    }

    /// Reads a signed policy. Nothing of it is looked at before its signature was found right.
    ///
    /// # Errors
    /// It is damaged, or this key did not sign it.
    pub fn read(&self, bytes: &[u8]) -> Result<Policy, PolicyFault> {
        let UncheckedPolicy { signed, signature } = UncheckedPolicy::split(bytes)?;
        let checked =
            webpki::ring::ED25519.verify_signature(&self.0, signed.as_bytes(), &signature);
        checked.map_err(|_| PolicyFault::Signature)?;
        Ok(Policy::parse(signed)?)
    }
}

/// An operator's key.
#[derive(Debug)]
pub struct PolicySigner(Arc<dyn SigningKey>);

impl PolicySigner {
    /// Reads a PEM file with an Ed25519 private key, which other users must not be able to read.
    ///
    /// # Errors
    /// Other users can read it, or it holds something else.
    pub fn load(path: &Path) -> Result<Self, CredentialsError> {
        let pem = secret_file::read(path)?;
        let no_key = |source| CredentialsFault::NoKey(source).in_file(path);
        let key = PrivatePkcs8KeyDer::from_pem_slice(&pem).map_err(no_key)?;
        let wrong = |source| CredentialsFault::Tls(source).in_file(path);
        any_eddsa_type(&key).map(Self).map_err(wrong)
    }

    /// The public half.
    #[must_use]
    pub fn key(&self) -> Option<PolicyKey> {
        PolicyKey::of(&self.0.public_key()?)
    }

    /// The text of a policy with its signature; `None`: the key cannot sign.
    #[must_use]
    pub fn sign(&self, policy: &Policy) -> Option<String> {
        let signer = self.0.choose_scheme(&[SignatureScheme::ED25519])?;
        let signature = signer.sign(policy.to_string().as_bytes()).ok()?;
        let signature: [u8; SIGNATURE_BYTES] = signature.try_into().ok()?;
        Some(policy.with_signature(&signature))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use ringmark_format::policy::ServicePolicy;

    use super::*;

    /// A key for tests, as `openssl genpkey -algorithm ed25519` makes one.
    const PKCS8: [u8; 16] = [
        0x30, 0x2E, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20,
    ];

    pub(in crate::stream::policy) fn signer(secret: u8) -> PolicySigner {
        let der = [&PKCS8[..], &[secret; 32]].concat();
        PolicySigner(any_eddsa_type(&PrivatePkcs8KeyDer::from(der)).unwrap())
    }

    pub(in crate::stream::policy) fn policy(serial: u64, until_s: u64) -> Policy {
        Policy {
            serial,
            until_s,
            services: vec![ServicePolicy {
                service: "shop".to_owned(),
                rules: vec!["disable *".to_owned()],
                ..ServicePolicy::default()
            }],
        }
    }

    #[test]
    fn only_the_operators_signature_counts() {
        let signer = self::signer(1);
        let key = signer.key().unwrap();
        let signed = signer.sign(&policy(7, 99)).unwrap();
        assert_eq!(key.read(signed.as_bytes()), Ok(policy(7, 99)));
        let other = self::signer(2).key().unwrap();
        assert_eq!(other.read(signed.as_bytes()), Err(PolicyFault::Signature));
        // Any byte that differs, and any end.
        for at in 0..signed.len() {
            let mut damaged = signed.clone().into_bytes();
            damaged[at] ^= 1;
            assert!(key.read(&damaged).is_err(), "byte {at}");
            let cut = &signed.as_bytes()[..at];
            // The line feed at the end is no part of the signature.
            assert!(
                at + 1 == signed.len() || key.read(cut).is_err(),
                "cut at {at}"
            );
        }
    }

    #[test]
    fn a_text_that_is_signed_and_no_policy_is_refused() {
        let signer = self::signer(1);
        let scheme = signer.0.choose_scheme(&[SignatureScheme::ED25519]).unwrap();
        for text in [
            "",
            "\n",
            "ringmark-policy 1\nserial 1\nuntil 2\nservice a\nloud\n",
        ] {
            let digits: String = scheme
                .sign(text.as_bytes())
                .unwrap()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let signed = format!("{text}signature {digits}\n");
            let read = signer.key().unwrap().read(signed.as_bytes());
            assert!(
                matches!(read, Err(PolicyFault::Wrong(_))),
                "{text:?}: {read:?}"
            );
        }
    }
}
