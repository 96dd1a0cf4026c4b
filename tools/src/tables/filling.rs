//! How long rings last at the present rate, and the size with which they last a minute.

use ringmark_console::units::duration;

/// The history for which a size of rings is said, in seconds.
const HISTORY_S: f64 = 60.0;
/// Most bytes of a ring that is advised.
const ADVISED_MAX: u64 = 1 << 40;

/// How fast a ring fills.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filling {
    pub(crate) pages: u32,
    pub(crate) page_bytes: u32,
    /// More than 0.
    pub(crate) bytes_per_s: f64,
}

impl Filling {
    /// How long what is written now stays, in seconds.
    pub(crate) fn lasts_s(&self) -> f64 {
        // The oldest page is gone before the newest one is full.
        let kept = u64::from(self.pages.saturating_sub(1)) * u64::from(self.page_bytes);
        kept as f64 / self.bytes_per_s
    }
}

/// Rings of which at least one lasts less than a minute.
pub(crate) struct Short {
    /// How long the busiest one lasts.
    lasts_s: f64,
    /// Bytes of a ring that would last a minute, a power of two.
    ring: u64,
}

/// What is to be said of these rings; `None`: each lasts a minute or longer, or nothing is written.
pub(crate) fn for_a_minute(rings: impl Iterator<Item = Filling> + Clone) -> Option<Short> {
    let lasts_s = rings
        .clone()
        .map(|ring| ring.lasts_s())
        .fold(f64::INFINITY, f64::min);
    let fastest = rings
        .clone()
        .map(|ring| ring.bytes_per_s)
        .fold(0.0, f64::max);
    let page = rings.map(|ring| u64::from(ring.page_bytes)).max()?;
    let wanted = (fastest * HISTORY_S) as u64 + page;
    (lasts_s < HISTORY_S).then(|| Short {
        lasts_s,
        ring: wanted.min(ADVISED_MAX).next_power_of_two(),
    })
}

impl Short {
    /// In the title of a table.
    pub(crate) fn in_short(&self) -> String {
        let (lasts, ring) = (lasting(self.lasts_s), setting(self.ring));
        format!("the busiest lasts {lasts}, ring={ring} keeps 60 s")
    }

    /// The settings for so many rings, as a line.
    pub(crate) fn settings(&self, rings: usize) -> String {
        // The first half of a session has rings of the wanted size.
        let session = (2 * self.ring)
            .saturating_mul(rings as u64)
            .next_power_of_two();
        let (ring, session) = (setting(self.ring), setting(session));
        format!(
            "at this rate the busiest ring lasts {}; for 60 s: RINGMARK=ring={ring},session={session}",
            lasting(self.lasts_s)
        )
    }
}

/// So many seconds, as text.
pub(crate) fn lasting(seconds: f64) -> String {
    duration((seconds * 1e9) as u64)
}

/// A power of two of bytes, as settings have it.
fn setting(bytes: u64) -> String {
    match bytes.trailing_zeros() {
        30.. => format!("{}G", bytes >> 30),
        20.. => format!("{}M", bytes >> 20),
        _ => format!("{}K", (bytes >> 10).max(4)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_settings() {
        let sizes = [1 << 12, 1 << 18, 1 << 23, 1 << 34].map(setting);
        assert_eq!(sizes, ["4K", "256K", "8M", "16G"]);
    }

    #[test]
    fn the_busiest_ring_decides() {
        let page = f64::from(64_u32 << 10);
        let ring = |bytes_per_s| Filling {
            pages: 4,
            page_bytes: 64 << 10,
            bytes_per_s,
        };
        let short = for_a_minute([page, 2.0 * page].map(ring).into_iter()).expect("short");
        assert_eq!(
            short.in_short(),
            "the busiest lasts 1.50 s, ring=8M keeps 60 s"
        );
        assert!(for_a_minute([page / 100.0].map(ring).into_iter()).is_none());
        assert!(for_a_minute(std::iter::empty()).is_none());
    }
}
