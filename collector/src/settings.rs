//! What can change while a collector runs: certificates, who may come, what is kept, and what each
//! host may take. Everything else needs a restart, and is refused by name.

use std::sync::{Arc, Mutex};

use ringmark_reader::stream::{Credentials, Expiry};
use tokio_rustls::TlsAcceptor;

use crate::connection_context::{AdmissionRules, ConnectionContext};
use crate::figures::Figures;
use crate::mutex::lock;
use crate::options::CollectorOptions;

/// The credentials of all listeners.
#[derive(Clone, Default)]
pub(crate) struct SharedCredentials(Arc<Mutex<Option<Credentials>>>);

impl SharedCredentials {
    /// `None`: there are none.
    pub(crate) fn new(credentials: Option<Credentials>) -> Self {
        Self(Arc::new(Mutex::new(credentials)))
    }

    /// What does a handshake that begins now.
    pub(crate) fn acceptor(&self) -> Option<TlsAcceptor> {
        let credentials = lock(&self.0);
        Some(credentials.as_ref()?.as_collector().into())
    }

    /// When the certificate ends.
    pub(crate) fn expiry(&self) -> Option<Expiry> {
        lock(&self.0).as_ref()?.expiry()
    }

    fn replace(&self, credentials: Option<Credentials>) {
        *lock(&self.0) = credentials;
    }
}

/// Changes a collector that runs.
#[derive(Clone)]
pub struct CollectorSettings {
    context: Arc<ConnectionContext>,
    credentials: SharedCredentials,
    /// What the collector was started with.
    before: Arc<CollectorOptions>,
}

/// An option that a collector takes only when it starts.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}: found another value than at the start; a change of it needs a restart")]
pub struct NeedsRestart(&'static str);

impl CollectorSettings {
    pub(crate) fn new(
        context: Arc<ConnectionContext>,
        credentials: SharedCredentials,
        before: CollectorOptions,
    ) -> Self {
        let before = Arc::new(before);
        let settings = Self {
            context,
            credentials,
            before,
        };
        settings.show_expiry();
        settings
    }

    /// When the certificate ends now.
    pub(crate) fn expiry(&self) -> Option<Expiry> {
        self.credentials.expiry()
    }

    fn show_expiry(&self) {
        let (expiry, figures) = (self.expiry(), &self.context.figures);
        let until = expiry.map_or(0, |expiry| expiry.timestamp());
        Figures::set(&figures.certificate_expiry_timestamp_seconds, until);
        let renew_at = expiry.map_or(0, |expiry| expiry.renewal_timestamp());
        Figures::set(&figures.certificate_renewal_timestamp_seconds, renew_at);
    }

    /// Takes over what can change: certificates, token, denied hosts, what is kept, and the limits of
    /// each host. Connections go on, except those of hosts that are denied now.
    ///
    /// # Errors
    /// Another option differs. Then nothing changes.
    pub fn change(&self, options: CollectorOptions) -> Result<(), NeedsRestart> {
        if let Some(option) = first_difference(&self.before, &options) {
            return Err(NeedsRestart(option));
        }
        self.credentials.replace(options.credentials);
        self.show_expiry();
        let rules = AdmissionRules::new(options.token, &options.denied);
        let _ = self.context.admission.send_replace(rules);
        self.context.store.keep(options.store.retention);
        self.context.shares.limit(options.hosts);
        Ok(())
    }
}

/// The name of the first option that differs and cannot change.
fn first_difference(a: &CollectorOptions, b: &CollectorOptions) -> Option<&'static str> {
    let (x, y) = (&a.store, &b.store);
    let differences = [
        ("listen", a.listen != b.listen),
        ("metrics", a.metrics != b.metrics),
        ("connections", a.connections != b.connections),
        ("memory", a.memory_bytes != b.memory_bytes),
        ("store", x.root != y.root),
        ("objects, flush", a.objects != b.objects),
        ("sync", x.sync != y.sync),
        ("segment-size", x.segment_bytes != y.segment_bytes),
        ("segment-age", x.segment_age != y.segment_age),
        ("init, group-readable", x.directory != y.directory),
    ];
    let first = differences.into_iter().find(|(_, differs)| *differs);
    first.map(|(option, _)| option)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringmark_reader::stream::Address;

    use super::*;
    use crate::deny_rule::DenyRule;
    use crate::host_shares::HostLimits;
    use crate::store::{DirectoryOptions, Retention, StoreOptions, SyncMode};

    fn options() -> CollectorOptions {
        CollectorOptions {
            listen: vec![Address::Tcp("127.0.0.1:7".to_owned())],
            store: StoreOptions {
                root: "store".into(),
                sync: SyncMode::Disk,
                segment_bytes: 1,
                segment_age: Duration::from_secs(1),
                retention: Retention::default(),
                session_bytes: 1,
                directory: DirectoryOptions::default(),
            },
            objects: None,
            credentials: None,
            token: None,
            denied: Vec::new(),
            handshake_within: Duration::from_secs(1),
            connections: 1,
            hosts: HostLimits::default(),
            memory_bytes: 1,
            metrics: None,
        }
    }

    #[test]
    fn what_needs_a_restart_is_named() {
        let (before, mut now) = (options(), options());
        now.denied.push(DenyRule::host("web-1"));
        now.store.retention.bytes = Some(7);
        now.hosts.connections = 9;
        assert_eq!(first_difference(&before, &now), None);
        now.store.segment_bytes = 2;
        assert_eq!(first_difference(&before, &now), Some("segment-size"));
        let told = NeedsRestart("segment-size").to_string();
        assert!(told.ends_with("needs a restart"), "{told}");
    }
}
