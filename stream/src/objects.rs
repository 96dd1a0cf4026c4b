//! Stores of objects that are no directories: another binary has them.

use std::io;
use std::sync::{Arc, OnceLock};

use ringmark_collector::store::objects::ObjectStore;
use ringmark_console::Failure;
use ringmark_console::extension;

/// The stores of this binary.
static INSTALLED: OnceLock<Box<dyn Objects>> = OnceLock::new();

/// What a binary can put objects into.
pub trait Objects: Send + Sync {
    /// The store at an address such as `s3://BUCKET/PREFIX`.
    ///
    /// # Errors
    /// The address is wrong, or settings are.
    fn place(&self, url: &str) -> io::Result<Arc<dyn ObjectStore>>;
}

/// Makes them those of this binary.
pub fn install(objects: Box<dyn Objects>) {
    let _ = INSTALLED.set(objects);
}

/// The store at an address. Where this binary has none, goes on as `ringmark-fleet` with the same command line.
///
/// # Errors
/// There is no `ringmark-fleet`, or the address cannot be used.
pub(crate) fn place(url: &str) -> Result<Arc<dyn ObjectStore>, Failure> {
    let Some(objects) = INSTALLED.get() else {
        let _ = extension::required(url)?;
        return Err(Failure::usage(format!(
            "{url}: this command keeps no objects there"
        )));
    };
    let place = objects.place(url);
    place.map_err(|error| Failure::usage(format!("{url}: {error}")))
}
