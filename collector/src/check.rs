//! What a start would meet: the place of the store, and the addresses.

use std::io;
use std::net::TcpListener;

use ringmark_reader::stream::Address;

use crate::options::CollectorOptions;
use crate::server::{CollectorError, listen_at};

/// Tries what a collector with these options needs, and leaves nothing behind. A collector that runs with the same
/// options is no fault.
///
/// # Errors
/// It would not start.
pub fn check(options: &CollectorOptions) -> Result<(), CollectorError> {
    let is_remote = options.objects.is_some() && !options.store.root.is_absolute();
    if !is_remote {
        options.store.directory.check(&options.store.root)?;
    }
    for address in &options.listen {
        match address {
            Address::Tcp(place) | Address::Tls(place) => {
                try_at(place).map_err(listen_at(address))?;
            }
            Address::Unix(_) => {}
        }
    }
    match &options.metrics {
        Some(place) => try_at(place).map_err(listen_at(place)),
        None => Ok(()),
    }
}

fn try_at(place: &str) -> io::Result<()> {
    match TcpListener::bind(place) {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => Err(error),
        _ => Ok(()),
    }
}
