//! Which pages a sample takes: the newest ones of each ring, and of a ring with few of them all.

use crate::pages::drain::SessionDrain;

/// Sealed pages of a slot that were not taken.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    slot: usize,
    pages: u64,
    page_bytes: u64,
    sealed_end: u64,
}

impl Waiting {
    const fn bytes(&self) -> u64 {
        self.pages.saturating_mul(self.page_bytes)
    }
}

impl SessionDrain {
    /// Passes over sealed pages, the oldest of each ring first, until about `bytes` are left for the
    /// next pass.
    pub(crate) fn pass_over_older(&mut self, bytes: u64) {
        self.follow_new_slots();
        let ring = self.session.ring();
        let mut waiting = Vec::new();
        for (place, reader) in self.slots.iter_mut().enumerate() {
            let slot = ring.slot(reader.index());
            if let Some(there) = slot.and_then(|slot| reader.look(ring, &slot)) {
                waiting.push(Waiting {
                    slot: place,
                    pages: there.sealed_end.saturating_sub(reader.next()),
                    page_bytes: there.geometry.page_bytes.into(),
                    sealed_end: there.sealed_end,
                });
            }
        }
        let share = fair_share(waiting.iter().map(Waiting::bytes), bytes);
        for there in waiting {
            let kept = (share / there.page_bytes.max(1)).min(there.pages);
            self.slots[there.slot].skip_to(there.sealed_end - kept);
        }
    }
}

/// The most that each may have of what it wants, so that all together have no more than `room`: those
/// who want less leave the rest to the others.
fn fair_share(wanted: impl Iterator<Item = u64>, room: u64) -> u64 {
    let mut wanted: Vec<u64> = wanted.collect();
    wanted.sort_unstable();
    let (mut left, mut others) = (room, wanted.len() as u64);
    for one in wanted {
        if one > left / others {
            return left / others;
        }
        left -= one;
        others -= 1;
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_little_leaves_the_rest_to_the_others() {
        let share = |wanted: &[u64], room| fair_share(wanted.iter().copied(), room);
        assert_eq!(share(&[], 10), u64::MAX);
        assert_eq!(share(&[4, 4], 8), u64::MAX, "there is room for all");
        assert_eq!(share(&[100, 100], 8), 4);
        assert_eq!(share(&[100, 2, 100], 20), 9);
        assert_eq!(share(&[100, 0, 0], 20), 20);
        assert_eq!(share(&[5], 0), 0);
    }
}
