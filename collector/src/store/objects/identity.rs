//! The identity of a store of objects: `ringmark-store.json`, created once and never replaced.

use std::path::Path;

use ringmark_decoder::store::OBJECTS_ID;
use ringmark_format::Uuid;
use ringmark_format::objects::OBJECTS_VERSION;

use super::object_store::ObjectStore;
use crate::store::error::{NotAStore, StoreError, io_at};

/// Most bytes of the object that are read.
const BYTES_MAX: u64 = 4096;

/// The identity of the store at `place`; makes it if there is none.
///
/// # Errors
/// It cannot be read or made, or is another's.
pub(in crate::store) fn take(objects: &dyn ObjectStore, place: &Path) -> Result<Uuid, StoreError> {
    let read = || objects.get(OBJECTS_ID, 0..BYTES_MAX);
    let found = match read() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let made = objects.create(OBJECTS_ID, text(random()?).as_bytes());
            made.map_err(io_at("create", &place.join(OBJECTS_ID)))?;
            // Another collector may have been first.
            read()
        }
        found => found,
    };
    let found = found.map_err(io_at("read", &place.join(OBJECTS_ID)))?;
    parse(&String::from_utf8_lossy(&found)).map_err(|source| StoreError::NotOurs {
        path: place.join(OBJECTS_ID),
        source,
    })
}

/// A uuid that no other collector has.
///
/// # Errors
/// The system gives no random bytes.
pub(in crate::store) fn random() -> Result<Uuid, StoreError> {
    let mut bytes = [0; 16];
    let flags = rustix::rand::GetRandomFlags::empty();
    let got = rustix::rand::getrandom(&mut bytes, flags);
    got.map_err(|error| io_at("read", Path::new("getrandom"))(error.into()))?;
    Ok(Uuid(bytes))
}

fn text(id: Uuid) -> String {
    format!("{{\"version\":{OBJECTS_VERSION},\"store\":\"{id}\"}}\n")
}

/// Version and identity, which stand in this order.
fn parse(text: &str) -> Result<Uuid, NotAStore> {
    let split = || {
        let rest = text
            .trim()
            .strip_prefix("{\"version\":")?
            .strip_suffix("\"}")?;
        let (version, id) = rest.split_once(",\"store\":\"")?;
        Some((version.parse::<u32>().ok()?, id))
    };
    let foreign = NotAStore::NoObjects;
    let (version, id) = split().ok_or(foreign)?;
    if version != OBJECTS_VERSION {
        return Err(NotAStore::Newer {
            found: version,
            newest: OBJECTS_VERSION,
        });
    }
    let digits: String = id.chars().filter(|c| *c != '-').collect();
    let id = u128::from_str_radix(&digits, 16).map_err(|_| NotAStore::NoObjects)?;
    Ok(Uuid(id.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_others_are_refused() {
        let id = Uuid([9; 16]);
        assert_eq!(parse(&text(id)), Ok(id));
        let newer = text(id).replace("\":2,", "\":3,");
        let newest = OBJECTS_VERSION;
        assert_eq!(parse(&newer), Err(NotAStore::Newer { found: 3, newest }));
        for other in [
            "",
            "{}",
            "{\"version\":2}",
            "{\"version\":2,\"store\":\"x\"}",
        ] {
            assert_eq!(parse(other), Err(NotAStore::NoObjects), "{other}");
        }
    }
}
