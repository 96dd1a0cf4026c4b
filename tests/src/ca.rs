//! Certificates for tests of streams over TLS.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ringmark_collector::CollectorOptions;
use ringmark_collector::certs::{self, Validity};
use ringmark_reader::stream::{Address, Credentials, StreamOptions};

use crate::collecting::options;

/// Longer than any test: what waits for it waits for ever.
const NEVER: Duration = Duration::from_secs(3600);

/// A CA with a collector at 127.0.0.1 and the hosts `web-1` and `web-2`.
#[derive(Debug)]
pub struct Ca {
    /// Where it is.
    pub dir: PathBuf,
}

impl Ca {
    /// Makes it in `dir`.
    ///
    /// # Panics
    /// When it cannot.
    #[must_use]
    pub fn new(dir: PathBuf) -> Self {
        let year = Validity::days(365);
        certs::ca(&dir, year).expect("a certificate");
        let _ = certs::collector(&dir, &["127.0.0.1".to_owned()], Validity::days(30))
            .expect("a certificate");
        for name in ["web-1", "web-2"] {
            let _ = certs::host(&dir, name, Validity::days(30)).expect("a certificate");
        }
        Self { dir }
    }

    /// What a collector has.
    #[must_use]
    pub fn collector(&self) -> Credentials {
        load(&self.dir.join("collector"), &self.dir.join("ca.pem"))
    }

    /// What a host has.
    #[must_use]
    pub fn host(&self, name: &str) -> Credentials {
        load(&self.dir.join("hosts").join(name), &self.dir.join("ca.pem"))
    }
}

/// A certificate with its key, and whom it believes.
///
/// # Panics
/// When they are not there.
#[must_use]
pub fn load(at: &Path, ca: &Path) -> Credentials {
    Credentials::load(ca, &at.join("cert.pem"), &at.join("key.pem")).expect("a certificate")
}

/// A time that has been: certificates are made for it, and the CA was good for a day.
#[must_use]
pub fn past() -> Validity {
    let hour = Duration::from_secs(3600);
    let now = SystemTime::now();
    let (from, until) = (now - 20 * hour, now - hour);
    Validity { from, until }
}

/// Options of a collector that waits for handshakes for ever.
#[must_use]
pub fn tls_options(credentials: Credentials, root: &Path) -> CollectorOptions {
    let mut options = options(Address::Tls("127.0.0.1:0".to_owned()), root);
    options.credentials = Some(credentials);
    options.handshake_within = NEVER;
    options
}

/// Streams as this host.
pub fn as_host(name: &str, credentials: Credentials) -> impl FnOnce(&mut StreamOptions) {
    let name = name.to_owned();
    move |options| {
        options.introduction.host = name;
        options.credentials = Some(credentials);
    }
}

/// `tls://PLACE`.
pub fn tls(place: impl Into<String>) -> Address {
    Address::Tls(place.into())
}
