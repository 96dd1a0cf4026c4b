//! Retention: the oldest segments are removed, by the times of their events, by the size of the
//! store and of what each host has in it, and by what is free.
//!
//! What is too much is taken from the host that has most. Segments that are being written count: if
//! there is no other, the largest is closed, and goes once it is durable.
//!
//! Removal cannot be undone, and the reason may be a mistyped option or a wrong clock. So at most a
//! tenth of the store goes at once beyond what came, and ages count only while the clock is steady.

mod by_host;
mod enforcement;
mod segment_times;
mod steady_clock;

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ringmark_decoder::store as files;

use super::error::io_at;
use super::free_space::FreeSpace;
use super::options::{Retention, StoreOptions};
use by_host::{ByHost, Candidate};
use enforcement::Enforcement;
pub(super) use enforcement::{Enforced, Occasion, Sessions};
use segment_times::SegmentTimes;
pub use steady_clock::Now;
use steady_clock::{ClockLook, SteadyClock};

/// A store may lose at most one part in this many at once, beyond what came: a mistake is noticed
/// before all is gone.
const PARTS: u64 = 10;

/// What is remembered from one enforcement to the next.
#[derive(Debug, Default)]
pub(super) struct RetentionState {
    /// Segments that are not written any more.
    known: HashMap<PathBuf, KnownSegment>,
    clock: SteadyClock,
    /// Bytes of all segments that the last enforcement left.
    left_bytes: Option<u64>,
    /// Bytes that came and may be removed on any occasion.
    came_bytes: u64,
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
    /// Removes the segments that `options` do not keep. `free` is what is free on the file system.
    pub(super) fn enforce(
        &mut self,
        options: &StoreOptions,
        now: Now,
        occasion: Occasion,
        free: Option<FreeSpace>,
        sessions: &impl Sessions,
    ) -> Enforced {
        let mut done = Enforced::default();
        let left = ByHost::of(self.segments(options, now, sessions, &mut done));
        let old = self.too_old(options.retention.age, now, &mut done);
        let bytes = left.bytes();
        self.came_bytes += bytes.saturating_sub(self.left_bytes.unwrap_or(bytes));
        let regular = match occasion {
            Occasion::Regular => bytes / PARTS,
            Occasion::TooMuchCame => 0,
        };
        let mut enforcement = Enforcement {
            sessions,
            left,
            done,
            most: self.came_bytes + regular,
            may_exceed: occasion == Occasion::Regular,
            is_held_back: false,
        };
        enforcement.remove_all(&options.retention, old, free);
        let Enforcement {
            mut done,
            is_held_back,
            ..
        } = enforcement;
        done.bytes = bytes - done.removed_bytes;
        self.came_bytes = match is_held_back {
            true => self.came_bytes.saturating_sub(done.removed_bytes),
            false => 0,
        };
        self.left_bytes = Some(done.bytes);
        if is_held_back && !self.is_held_back && occasion == Occasion::Regular {
            let text = "more than a tenth of the store is beyond --keep-age, --keep-size or \
                        --min-free: it is removed a tenth at a time; end the collector if that is \
                        not meant";
            done.notices.push(text.to_owned());
        }
        self.is_held_back = is_held_back;
        done
    }

    /// All segments.
    fn segments(
        &mut self,
        options: &StoreOptions,
        now: Now,
        sessions: &impl Sessions,
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
                    None if sessions.is_written(&path) => SegmentTimes::now(now),
                    None => SegmentTimes::read(&path, now),
                    Some(times) => times,
                },
            };
            if times.is_final {
                let known = KnownSegment { bytes, times };
                let _ = self.known.insert(path.clone(), known);
            }
            let is_open = needs_times && sessions.is_open(&path);
            all.push(Candidate {
                times,
                path,
                bytes,
                is_open,
            });
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::path::Path;

    use super::enforcement::stamp;
    use crate::store::StoreError;
    use crate::store::options::MinFree;

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

    /// Segments that must stay, and those that are open.
    #[derive(Default)]
    struct Kept {
        stay: Vec<PathBuf>,
        open: RefCell<Vec<PathBuf>>,
    }

    impl Sessions for Kept {
        fn is_written(&self, _: &Path) -> bool {
            false
        }

        fn is_open(&self, segment: &Path) -> bool {
            self.open.borrow().iter().any(|open| open == segment)
        }

        fn close(&self, segment: &Path) {
            self.open.borrow_mut().retain(|open| open != segment);
        }

        fn remove(&self, segment: &Path) -> Result<bool, StoreError> {
            let must_stay = self.stay.iter().any(|stay| stay == segment);
            assert!(!self.is_open(segment), "{}", segment.display());
            if !must_stay {
                fs::remove_file(segment).unwrap();
            }
            Ok(!must_stay)
        }
    }

    /// A store of segments without events, which have the times of their days.
    struct Days {
        root: PathBuf,
        options: StoreOptions,
        retaining: RetentionState,
        kept: Kept,
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
            let (retaining, kept) = (RetentionState::default(), Kept::default());
            Self {
                root,
                options,
                retaining,
                kept,
            }
        }

        fn tidy(&mut self, now: Now) -> Enforced {
            self.tidy_on(Occasion::Regular, now)
        }

        fn tidy_on(&mut self, occasion: Occasion, now: Now) -> Enforced {
            self.retaining
                .enforce(&self.options, now, occasion, None, &self.kept)
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
        Retention {
            age: Some(Duration::from_secs(days * 86_400)),
            ..Retention::default()
        }
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
        store.kept.stay.push(store.left()[1].clone());
        let first = store.tidy(at(2, 0));
        assert_eq!(
            (first.removed, first.removed_bytes, first.bytes),
            (2, 200, 1800)
        );
        let expected = "removed 2 segments of host host, 1970-06-30T00:00:00 to 1970-07-02T23:59:59, \
                        200 bytes: older than --keep-age, 864000 s";
        assert_eq!(first.notices[0], expected, "one line for all of a host");
        assert_eq!(first.notices.len(), 2, "{:?}", first.notices);
        assert!(first.notices[1].contains("a tenth"));
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
            ..Retention::default()
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
    #[test]
    fn what_is_open_counts_and_is_closed_if_nothing_else_can_go() {
        let much = Retention {
            bytes: Some(100),
            ..Retention::default()
        };
        let mut store = Days::new("open", much);
        *store.kept.open.borrow_mut() = store.left();
        for path in &store.left()[..18] {
            fs::remove_file(path).unwrap();
        }
        let first = store.tidy(at(0, 0));
        assert_eq!((first.removed, first.bytes), (0, 200));
        assert_eq!(store.kept.open.borrow().len(), 18 + 1, "one was closed");
        let second = store.tidy(at(0, 0));
        assert_eq!((second.removed, second.bytes), (1, 100));
    }

    #[test]
    fn between_the_times_only_as_much_goes_as_came() {
        let much = Retention {
            bytes: Some(1500),
            ..Retention::default()
        };
        let mut store = Days::new("came", much);
        assert_eq!(store.tidy(at(0, 0)).removed, 2);
        assert_eq!(store.tidy_on(Occasion::TooMuchCame, at(0, 0)).removed, 0);
        let newest = store.left().pop().unwrap();
        let path = newest.with_file_name(format!("{}.1.rmk", ringmark_format::Uuid([8; 16])));
        fs::write(path, [0; 250]).unwrap();
        let went = store.tidy_on(Occasion::TooMuchCame, at(0, 0));
        assert_eq!((went.removed, store.left().len()), (2, 17));
    }

    #[test]
    fn room_is_made_for_what_must_stay_free() {
        let mut store = Days::new("free", Retention::default());
        store.options.retention.min_free = MinFree::Bytes(1000);
        let free = Some(FreeSpace {
            whole_bytes: 4000,
            free_bytes: 850,
        });
        let (now, regular) = (at(0, 0), Occasion::Regular);
        let state = &mut store.retaining;
        let went = state.enforce(&store.options, now, regular, free, &store.kept);
        assert_eq!(went.removed, 2);
        let percent = MinFree::Percent(25);
        assert_eq!(
            (percent.bytes(4000), MinFree::default().bytes(4000)),
            (1000, 0)
        );
    }
}
