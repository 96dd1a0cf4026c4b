//! The figures of a stream, and their text for monitoring.

use std::fmt::Write;
use std::time::Duration;

use crate::sessions::leases::Removals;

/// Figures of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamFigures {
    /// Whether there is a connection now.
    pub connected: bool,
    /// Number of connections that were greeted.
    pub connections: u64,
    /// Bytes sent on all connections.
    pub sent: u64,
    /// Bytes that are in flight: sent, and not known to be durable.
    pub in_flight: u64,
    /// Bytes that wait on disk.
    pub spilled: u64,
    /// How long the oldest page that is not durable has waited since it was taken, or for how long
    /// there has been no collector.
    pub lag: Duration,
    /// Page blocks sent. A page that is sent again counts again.
    pub pages: u64,
    /// Sessions being streamed.
    pub sessions_open: usize,
    /// Sessions whose every page is durable.
    pub sessions_done: usize,
    /// Sessions that the collector refused, and that are not sent any more.
    pub sessions_refused: u64,
    /// Sessions that could not be opened because descriptors or memory were short.
    pub sessions_left_out: usize,
    /// Events that the programs lost since their sessions started, and those of `removals`.
    pub lost: u64,
    /// Sessions that were removed before they could be read.
    pub removals: Removals,
    /// Pages that were overwritten before they could be sent.
    pub pages_skipped: u64,
    /// Events that were overwritten before they could be sent, those from before the stream
    /// included.
    pub overwritten: u64,
    /// How often something had the rings of a session in overwrite mode sent.
    pub uploads: u64,
    /// When our certificate ends, in seconds since 1970; `None`: there is none.
    pub certificate_until: Option<u64>,
    /// When it is to be renewed, in seconds since 1970.
    pub certificate_renewal: Option<u64>,
}

impl StreamFigures {
    /// All of them in Prometheus' text format. Those of a certificate only if there is one.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::from(BUILD_INFO);
        for (name, help, value) in self.listed() {
            let name = format!("ringmark_streamer_{name}");
            let kind = match name.ends_with("_total") {
                true => "counter",
                false => "gauge",
            };
            let _ = writeln!(
                text,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}"
            );
        }
        text
    }

    /// Name, meaning and value of each.
    fn listed(&self) -> Vec<(&'static str, &'static str, u64)> {
        let mut listed = self.of_connection();
        listed.extend(self.of_sessions());
        listed.extend(self.of_certificate());
        listed
    }

    fn of_certificate(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let ends = self.certificate_until.map(|until| {
            let help = "When the streamer's certificate ends, in seconds since 1970.";
            ("certificate_expiry_timestamp_seconds", help, until)
        });
        let renewal = self.certificate_renewal.map(|at| {
            let help = "When it is to be renewed: in the last tenth of its life, two weeks before its end at most.";
            ("certificate_renewal_timestamp_seconds", help, at)
        });
        ends.into_iter().chain(renewal)
    }

    fn of_connection(&self) -> Vec<(&'static str, &'static str, u64)> {
        vec![
            (
                "connected",
                "1 while there is a connection to the collector.",
                self.connected.into(),
            ),
            (
                "connections_total",
                "Connections that the collector accepted.",
                self.connections,
            ),
            (
                "pages_total",
                "Pages sent; what is sent again counts again.",
                self.pages,
            ),
            (
                "sent_bytes_total",
                "Bytes sent; what is sent again counts again.",
                self.sent,
            ),
            (
                "in_flight_bytes",
                "Bytes sent and not yet durable.",
                self.in_flight,
            ),
            ("spilled_bytes", "Bytes that wait on disk.", self.spilled),
            (
                "lag_seconds",
                "How long the oldest page has waited that is not durable.",
                self.lag.as_secs(),
            ),
        ]
    }

    fn of_sessions(&self) -> Vec<(&'static str, &'static str, u64)> {
        vec![
            (
                "sessions",
                "Sessions being streamed.",
                self.sessions_open as u64,
            ),
            (
                "sessions_done_total",
                "Sessions that the collector has to their end.",
                self.sessions_done as u64,
            ),
            (
                "refused_sessions_total",
                "Sessions that the collector refused, and that are not sent any more.",
                self.sessions_refused,
            ),
            (
                "sessions_left_out",
                "Sessions for which descriptors or memory were short.",
                self.sessions_left_out as u64,
            ),
            (
                "skipped_pages_total",
                "Pages that were overwritten before they could be sent.",
                self.pages_skipped,
            ),
            (
                "uploads_total",
                "Sessions in overwrite mode sent because something happened.",
                self.uploads,
            ),
            ("lost_events_total", "Events that programs lost.", self.lost),
            (
                "overwritten_events_total",
                "Events that were overwritten before they could be sent.",
                self.overwritten,
            ),
        ]
    }
}

/// The version that writes them.
const BUILD_INFO: &str = concat!(
    "# HELP ringmark_streamer_build_info The version of the streamer, as a label; always 1.\n",
    "# TYPE ringmark_streamer_build_info gauge\n",
    "ringmark_streamer_build_info{version=\"",
    env!("CARGO_PKG_VERSION"),
    "\"} 1\n"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_has_its_kind_and_value() {
        let mut figures = StreamFigures {
            connected: true,
            lost: 7,
            lag: Duration::from_millis(2900),
            ..StreamFigures::default()
        };
        let has = |figures: &StreamFigures, line: &str| {
            let text = figures.text();
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        };
        has(&figures, "ringmark_streamer_connected 1");
        has(
            &figures,
            "# TYPE ringmark_streamer_lost_events_total counter",
        );
        has(&figures, "ringmark_streamer_lost_events_total 7");
        has(&figures, "# TYPE ringmark_streamer_lag_seconds gauge");
        has(&figures, "ringmark_streamer_lag_seconds 2");
        assert!(!figures.text().contains("certificate"));
        figures.certificate_until = Some(100);
        figures.certificate_renewal = Some(90);
        for line in [
            "ringmark_streamer_certificate_expiry_timestamp_seconds 100",
            "ringmark_streamer_certificate_renewal_timestamp_seconds 90",
        ] {
            has(&figures, line);
        }
    }
}
