//! The rings of a function tracer that is loaded into a running process.

use std::ffi::CString;

use ringmark_format::session::{Mode, SessionHeader};

use ringmark_console::units::{parse_size, size};
use ringmark_console::{Failure, note};

/// Smallest and largest ring of a thread that is recorded. What the recorder does not read while it
/// waits for a CPU must lie in it; but a thread that calls a function for the first time makes it.
const RECORDED_RING: [u32; 2] = [1 << 20, 16 << 20];
/// Most bytes of all rings that are recorded, unless `--ring` asks for more.
const RECORDED_SESSION: u64 = 64 << 20;
/// Most bytes of all rings that are not recorded, unless `--ring` asks for more.
const KEPT_SESSION: u64 = 16 << 20;
/// Rings of the wanted size that a session has room for: half of it is for late threads.
const RINGS: u64 = 16;

/// What the function tracer's session is to be like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rings {
    /// Size of each, if `--ring` names it.
    ring: Option<u32>,
    /// A recorder takes what is in them.
    are_recorded: bool,
}

/// Parses the size of a ring.
pub(crate) fn parse_ring(text: &str) -> Result<u32, String> {
    let expected = || format!("found {text:?}, expected a multiple of 4K from 8K to 2G");
    let bytes = u32::try_from(parse_size(text)?).map_err(|_| expected())?;
    let is_fit = (8 << 10..=2 << 30).contains(&bytes) && bytes.is_multiple_of(4 << 10);
    is_fit.then_some(bytes).ok_or_else(expected)
}

impl Rings {
    /// Rings that hold the last part of what happened.
    pub(crate) fn kept(ring: Option<u32>) -> Self {
        Self {
            ring,
            are_recorded: false,
        }
    }

    /// Rings that a recorder empties.
    pub(crate) fn recorded(ring: Option<u32>) -> Self {
        Self {
            ring,
            are_recorded: true,
        }
    }

    /// As settings of the session of a process with this number of threads, as in `RINGMARK`. Empty:
    /// the process's own settings, or the default ones. `is_nameless`: the ring file has no name.
    pub(super) fn settings(self, threads: usize, is_nameless: bool) -> CString {
        let least = |ring: u32, session: u64| session.max(RINGS * u64::from(ring));
        let text = match (self.ring, self.are_recorded) {
            (None, false) => String::new(),
            (Some(ring), false) => {
                format!("ring={ring},session={}", least(ring, KEPT_SESSION))
            }
            (ring, true) => {
                let ring = ring.unwrap_or_else(|| recorded_ring(threads));
                let session = least(ring, RECORDED_SESSION);
                format!("mode=discard,ring={ring},session={session}")
            }
        };
        let words = [text.as_str(), if is_nameless { "memfd=on" } else { "" }];
        let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        // Digits and names.
        CString::new(words.join(",")).unwrap_or_default()
    }

    /// Compares a session that was there before with what is wanted: its rings cannot be changed.
    ///
    /// # Errors
    /// They are smaller than `--ring` wants them.
    pub(super) fn check(self, pid: u32, header: &SessionHeader) -> Result<(), Failure> {
        let found = size(header.ring_bytes.into());
        if self.ring.is_some_and(|wanted| wanted > header.ring_bytes) {
            return Err(Failure::no_target(format!(
                "pid {pid}: --ring: the function tracer is there already, with rings of {found}, which \
                 cannot be changed; RINGMARK=ring=… of a program that starts says how large they are"
            )));
        }
        if self.are_recorded && !is_roomy(header) {
            note(&format!(
                "pid {pid}: the function tracer was there already, with rings of {found} in {} mode; \
                 calls of a busy thread may be missing",
                mode(header)
            ));
        }
        Ok(())
    }
}

/// A ring for each of these threads, all together in half of a session.
fn recorded_ring(threads: usize) -> u32 {
    let [least, most] = RECORDED_RING;
    let each = RECORDED_SESSION / 2 / threads.max(1) as u64;
    let each = u32::try_from(each).unwrap_or(most).clamp(least, most);
    // The largest power of two in it.
    1 << each.ilog2()
}

fn is_roomy(header: &SessionHeader) -> bool {
    header.mode == Mode::Discard as u32 && header.ring_bytes >= RECORDED_RING[0]
}

fn mode(header: &SessionHeader) -> &'static str {
    Mode::from_u32(header.mode).map_or("unknown", Mode::name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_as_settings() {
        let settings = |rings: Rings| rings.settings(8, false).into_string().expect("text");
        assert_eq!(settings(Rings::kept(None)), "");
        let kept = settings(Rings::kept(Some(4 << 20)));
        assert_eq!(kept, "ring=4194304,session=67108864");
        let recorded = settings(Rings::recorded(None));
        assert_eq!(recorded, "mode=discard,ring=4194304,session=67108864");
        let nameless = |rings: Rings| rings.settings(8, true).into_string().expect("text");
        assert_eq!(nameless(Rings::kept(None)), "memfd=on");
        let in_container = nameless(Rings::recorded(None));
        assert_eq!(in_container, format!("{recorded},memfd=on"));
        for settings in [kept, recorded, in_container] {
            assert!(ringmark::Options::parse(&settings).is_ok_and(|options| options.is_some()));
        }
        let rings = [0, 1, 3, 20, 1000].map(recorded_ring);
        assert_eq!(rings, [16 << 20, 16 << 20, 8 << 20, 1 << 20, 1 << 20]);
        assert_eq!(parse_ring("4M"), Ok(4 << 20));
        for wrong in ["4K", "9000", "4G", "", "much"] {
            assert!(parse_ring(wrong).is_err(), "{wrong}");
        }
    }
}
