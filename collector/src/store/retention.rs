//! Retention: the oldest segments are removed, by the times of their events and by the size of the
//! store.
//!
//! Removal cannot be undone, and the reason may be a mistyped option or a wrong clock. So at most a
//! tenth of the store goes at once beyond what came, and ages count only while the clock is steady.

mod segment_times;
mod steady_clock;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringmark_decoder::Stamper;
use ringmark_decoder::store::{self as files, SegmentName};

use super::error::{StoreError, io_at};
use super::options::{Retention, StoreOptions};
use segment_times::SegmentTimes;
pub use steady_clock::Now;
use steady_clock::{ClockLook, SteadyClock};

/// A store may lose at most one part in this many at once, beyond what came: a mistake is noticed
/// before all is gone.
const PARTS: u64 = 10;

/// What an enforcement found and did.
#[derive(Debug, Default)]
pub(super) struct Enforced {
    /// Segments removed.
    pub(super) removed: u64,
    /// Their bytes.
    pub(super) removed_bytes: u64,
    /// Bytes of all segments that are left.
    pub(super) bytes: u64,
    pub(super) errors: Vec<StoreError>,
    /// Notices for the operator.
    pub(super) notices: Vec<String>,
}

/// A segment that may be removed. The order is that of removal.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    times: SegmentTimes,
    path: PathBuf,
    bytes: u64,
}

/// What is remembered from one enforcement to the next.
#[derive(Debug, Default)]
pub(super) struct RetentionState {
    /// Segments that are not written any more.
    known: HashMap<PathBuf, KnownSegment>,
    clock: SteadyClock,
    /// Bytes of all segments that the last enforcement left.
    left_bytes: Option<u64>,
    /// The notice that not all could be removed at once was made.
    is_held_back: bool,
}

/// A segment whose times need not be read again while it keeps its size.
#[derive(Debug)]
struct KnownSegment {
    bytes: u64,
    times: SegmentTimes,
}

impl RetentionState {
    /// Removes the segments that `options` do not keep, the oldest first. `is_written` says whether
    /// a segment may still change. `remove` removes one, and returns `false` if it must stay.
    pub(super) fn enforce(
        &mut self,
        options: &StoreOptions,
        now: Now,
        is_written: impl Fn(&Path) -> bool,
        remove: impl Fn(&Path) -> Result<bool, StoreError>,
    ) -> Enforced {
        let mut done = Enforced::default();
        let segments = self.segments(options, now, is_written, &mut done);
        let old = self.too_old(options.retention.age, now, &mut done);
        done.bytes = segments.iter().map(|segment| segment.bytes).sum();
        let came = done
            .bytes
            .saturating_sub(self.left_bytes.unwrap_or(done.bytes));
        let most = came + done.bytes / PARTS;
        let mut is_held_back = false;
        for segment in segments {
            let is_old = segment.times.last_ns < old;
            let is_much = options.retention.bytes.is_some_and(|b| done.bytes > b);
            if !(is_old || is_much) {
                break;
            }
            if done.removed > 0 && done.removed_bytes + segment.bytes > most {
                is_held_back = true;
                break;
            }
            match remove(&segment.path) {
                Ok(true) => done.count(&segment, options, is_old),
                Ok(false) => {}
                Err(error) => done.errors.push(error),
            }
        }
        self.left_bytes = Some(done.bytes);
        if is_held_back && !self.is_held_back {
            let text = "more than a tenth of the store is beyond --keep-age or --keep-size: it is \
                        removed a tenth at a time; end the collector if that is not meant";
            done.notices.push(text.to_owned());
        }
        self.is_held_back = is_held_back;
        done
    }

    /// All segments, the oldest first.
    fn segments(
        &mut self,
        options: &StoreOptions,
        now: Now,
        is_written: impl Fn(&Path) -> bool,
        done: &mut Enforced,
    ) -> Vec<Candidate> {
        let files = files::segments(&options.root).unwrap_or_else(|error| {
            done.errors.push(io_at("read", &options.root)(error));
            Vec::new()
        });
        let needs_times = options.retention != Retention::default();
        let mut known = std::mem::take(&mut self.known);
        let mut all = Vec::with_capacity(files.len());
        for path in files {
            let Ok(bytes) = fs::metadata(&path).map(|about| about.len()) else {
                continue;
            };
            let before = known.remove(&path).filter(|known| known.bytes == bytes);
            let times = match before {
                _ if !needs_times => SegmentTimes::now(now),
                Some(known) => known.times,
                None => match SegmentTimes::indexed(&path, now) {
                    None if is_written(&path) => SegmentTimes::now(now),
                    None => SegmentTimes::read(&path, now),
                    Some(times) => times,
                },
            };
            if times.is_final {
                let known = KnownSegment { bytes, times };
                let _ = self.known.insert(path.clone(), known);
            }
            all.push(Candidate { times, path, bytes });
        }
        all.sort();
        all
    }

    /// The time before which events are too old, in ns since 1970; 0: none are, because no age is
    /// configured or the clock is not steady.
    fn too_old(&mut self, age: Option<Duration>, now: Now, done: &mut Enforced) -> u64 {
        let Some(age) = age else {
            return 0;
        };
        let ClockLook { is_steady, notice } = self.clock.look(now, age);
        done.notices.extend(notice);
        let age = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        if is_steady {
            now.real_ns.saturating_sub(age)
        } else {
            0
        }
    }
}

impl Enforced {
    /// Counts a segment that was removed, and makes a notice of it.
    fn count(&mut self, segment: &Candidate, options: &StoreOptions, is_old: bool) {
        self.bytes -= segment.bytes;
        self.removed += 1;
        self.removed_bytes += segment.bytes;
        let why = match (is_old, options.retention.age, options.retention.bytes) {
            (true, Some(age), _) => format!("older than --keep-age, {} s", age.as_secs_f64()),
            (_, _, bytes) => format!(
                "the oldest beyond --keep-size, {} bytes",
                bytes.unwrap_or_default()
            ),
        };
        let host = segment.path.parent().and_then(Path::file_name);
        let host = host.unwrap_or_default().to_string_lossy();
        let of = match files::parse(&segment.path) {
            Some(SegmentName { session, number }) => {
                format!("segment {number} of session {session}")
            }
            None => segment.path.display().to_string(),
        };
        let [first, last] = [segment.times.first_ns, segment.times.last_ns].map(stamp);
        self.notices.push(format!(
            "removed {of} of host {host}, {first} to {last}, {} bytes: {why}",
            segment.bytes
        ));
    }
}

/// A time to the second, for notices.
fn stamp(ns: u64) -> String {
    String::from_utf8_lossy(&Stamper::default().stamp(ns)[..19]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    const S: u64 = 1_000_000_000;
    const HOUR: u64 = 3600 * S;
    const DAY: u64 = 24 * HOUR;

    /// Two hundred days since 1970, an hour since the machine started.
    fn at(hours: u64, ahead_hours: u64) -> Now {
        Now {
            real_ns: 200 * DAY + (hours + ahead_hours) * HOUR,
            boot_ns: (1 + hours) * HOUR,
        }
    }

    /// A store of segments without events, which have the times of their days.
    struct Days {
        root: PathBuf,
        options: StoreOptions,
        retaining: RetentionState,
        kept: RefCell<Vec<PathBuf>>,
    }

    impl Days {
        fn new(label: &str, retention: Retention) -> Self {
            let name = format!("ringmark-{label}-{}", std::process::id());
            let root = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&root);
            for day in 180..200 {
                let day = &stamp(day * DAY)[..10];
                let directory = root.join(day).join("service/host");
                fs::create_dir_all(&directory).unwrap();
                let path = files::segment(&directory, ringmark_format::Uuid([7; 16]), 0);
                fs::write(path, [0; 100]).unwrap();
            }
            let options = StoreOptions {
                root: root.clone(),
                sync: crate::store::SyncMode::Cache,
                segment_bytes: 1 << 20,
                segment_age: Duration::from_secs(1),
                retention,
                session_bytes: 1 << 20,
                directory: crate::store::DirectoryOptions::default(),
            };
            let (retaining, kept) = (RetentionState::default(), RefCell::default());
            Self {
                root,
                options,
                retaining,
                kept,
            }
        }

        fn tidy(&mut self, now: Now) -> Enforced {
            let remove = |path: &Path| {
                if self.kept.borrow().iter().any(|kept| kept == path) {
                    return Ok(false);
                }
                fs::remove_file(path).unwrap();
                Ok(true)
            };
            let is_written = |_: &Path| false;
            self.retaining
                .enforce(&self.options, now, is_written, remove)
        }

        fn left(&self) -> Vec<PathBuf> {
            files::segments(&self.root).unwrap()
        }
    }

    impl Drop for Days {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.root);
        }
    }

    fn of_age(days: u64) -> Retention {
        let age = Some(Duration::from_secs(days * 86_400));
        Retention { bytes: None, age }
    }

    #[test]
    fn what_is_old_goes_and_is_named_when_the_clock_was_steady() {
        let mut store = Days::new("old", of_age(10));
        assert_eq!(
            store.tidy(at(0, 0)).removed,
            0,
            "the clock is not known yet"
        );
        assert_eq!(store.tidy(at(0, 0)).removed, 0);
        // Ten of the twenty, two at a time; what must stay stands in no other's way.
        store.kept.borrow_mut().push(store.left()[1].clone());
        let first = store.tidy(at(2, 0));
        assert_eq!(
            (first.removed, first.removed_bytes, first.bytes),
            (2, 200, 1800)
        );
        let expected = format!(
            "removed segment 0 of session {} of host host, 1970-06-30T00:00:00 to \
             1970-06-30T23:59:59, 100 bytes: older than --keep-age, 864000 s",
            ringmark_format::Uuid([7; 16])
        );
        assert_eq!(first.notices[0], expected);
        assert_eq!(first.notices.len(), 3, "{:?}", first.notices);
        assert!(first.notices[2].contains("a tenth"));
        let mut told = 0;
        while store.left().len() > 11 {
            told += store.tidy(at(3, 0)).notices.len();
        }
        assert_eq!(told, 7, "each, and nothing else");
        assert_eq!(store.tidy(at(4, 0)).removed, 0);
        assert_eq!(store.left().len(), 11);
    }

    #[test]
    fn a_clock_that_jumps_makes_nothing_old() {
        let mut store = Days::new("jump", of_age(30));
        let mut tidy = |hours, ahead| {
            let done = store.tidy(at(hours, ahead));
            assert_eq!(done.removed, 0, "after {hours} h, {ahead} h ahead");
            done.notices
        };
        assert!(tidy(0, 0).is_empty() && tidy(5, 0).is_empty());
        let told = tidy(6, 1000).join("\n");
        assert!(
            told.contains("3600000 s") && told.contains("--keep-age"),
            "{told}"
        );
        // Said once, there and back.
        assert!(tidy(6, 1000).is_empty() && tidy(6, 0).is_empty() && tidy(7, 0).is_empty());
        assert!(tidy(9, 0).is_empty());
        assert_eq!(tidy(10, 1000).len(), 1);
        // It was right then.
        let done = store.tidy(at(12, 1000));
        assert_eq!(done.removed, 2);
    }

    #[test]
    fn what_is_too_much_goes_as_fast_as_it_comes() {
        let much = Retention {
            bytes: Some(1000),
            age: None,
        };
        let mut store = Days::new("much", much);
        assert_eq!(store.tidy(at(0, 0)).removed, 2);
        while store.left().len() > 10 {
            assert!(store.tidy(at(0, 0)).removed >= 1);
        }
        // What comes later need not wait.
        let path =
            store.left()[9].with_file_name(format!("{}.1.rmk", ringmark_format::Uuid([8; 16])));
        fs::write(path, [0; 900]).unwrap();
        assert_eq!(store.tidy(at(0, 0)).removed, 9);
        assert_eq!(store.left().len(), 2);
    }
}
