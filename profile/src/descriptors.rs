//! The descriptors that this process may have. A process of many threads takes one for each, and one more for each
//! thread and processor: some are always left for the files that a look opens and closes.

use std::os::fd::AsRawFd;

use rustix::process::{Resource, getrlimit};

/// Descriptors that are left for the files of a look.
const SPARE: u64 = 24;

/// How many descriptors there may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Descriptors {
    limit: u64,
}

impl Descriptors {
    /// As many as this process may have now.
    pub(crate) fn now() -> Self {
        Self {
            limit: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
        }
    }

    /// Whether this one, the newest, leaves room for the files of a look and for `more`. The kernel gives the least
    /// number that is free.
    pub(crate) fn has_room_beside(self, newest: &impl AsRawFd, more: usize) -> bool {
        let number = u64::try_from(newest.as_raw_fd()).unwrap_or(u64::MAX);
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        number.saturating_add(SPARE).saturating_add(more) < self.limit
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::{Descriptors, SPARE};

    #[test]
    fn the_last_ones_are_left() {
        let file = File::open("/dev/null").unwrap();
        let number = u64::try_from(std::os::fd::AsRawFd::as_raw_fd(&file)).unwrap();
        let with = |limit| Descriptors { limit };
        assert!(with(number + SPARE + 1).has_room_beside(&file, 0));
        assert!(!with(number + SPARE + 1).has_room_beside(&file, 1));
        assert!(!with(number + SPARE).has_room_beside(&file, 0));
        assert!(Descriptors::now().has_room_beside(&file, 0));
    }
}
