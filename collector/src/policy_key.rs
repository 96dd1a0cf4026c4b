//! The key with which an operator signs policies. It is made here, and no collector needs it.

use std::path::{Path, PathBuf};

use rcgen::{KeyPair, PKCS_ED25519};

use crate::certs::{CertsError, make_dir, write};

/// Makes a key in `dir`: `policy.key`, and `policy.pub` for the hosts. Returns both paths.
///
/// # Errors
/// There is one, or it cannot be written.
pub fn make(dir: &Path) -> Result<(PathBuf, PathBuf), CertsError> {
    let key = KeyPair::generate_for(&PKCS_ED25519)?;
    let (secret, public) = (dir.join("policy.key"), dir.join("policy.pub"));
    make_dir(dir)?;
    // No new key is left next to the public half of another one.
    if public.symlink_metadata().is_ok() {
        return Err(CertsError::Exists { path: public });
    }
    write(&secret, &key.serialize_pem())?;
    write(&public, &key.public_key_pem())?;
    Ok((secret, public))
}
