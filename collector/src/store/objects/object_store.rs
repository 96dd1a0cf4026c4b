//! What a store of objects must do. Whatever keeps objects can be one.

use std::fmt::Debug;
use std::io;
use std::ops::Range;

/// A place for objects. All calls may wait for a disk or a network.
pub trait ObjectStore: Debug + Send + Sync {
    /// Puts a whole object. No other object has its name, or else it has the same bytes, so that a put that failed or
    /// got no answer is done again. The object is durable when this returns, as far as [`Self::level`] says.
    ///
    /// # Errors
    /// It may be there or not.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Creates an object, unless there is one of that name.
    ///
    /// # Errors
    /// As [`Self::put`].
    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Names of the objects below `prefix`, which ends where a part of their names does; sorted.
    ///
    /// # Errors
    /// They cannot be listed.
    fn list(&self, prefix: &str) -> io::Result<Vec<String>>;

    /// Bytes of an object, as far as it has them.
    ///
    /// # Errors
    /// There is none of that name, or it cannot be read.
    fn get(&self, name: &str, range: Range<u64>) -> io::Result<Vec<u8>>;

    /// Deletes an object. Some places say so if there is none of that name, others do not.
    ///
    /// # Errors
    /// It cannot be deleted.
    fn delete(&self, name: &str) -> io::Result<()>;

    /// What of a loss an object survives once it is put: see [`ringmark_format::stream::ack_level`].
    fn level(&self) -> u32;
}

/// Checks that a name is made of parts that lead nowhere else.
///
/// # Errors
/// It is not.
pub(super) fn check_name(name: &str) -> io::Result<()> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_part =
        |part: &str| !part.is_empty() && !part.starts_with('.') && part.chars().all(is_allowed);
    match name.split('/').all(is_part) {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "found the name {name:?}, expected letters, digits, '.', '_' and '-' between slashes"
            ),
        )),
    }
}
