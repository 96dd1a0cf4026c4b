//! What went wrong in a schedule, and how often.

/// What went wrong, and how often.
#[derive(Debug, Default, Clone)]
pub(crate) struct Troubles {
    pub(crate) kills: u64,
    /// Kills of collectors with bytes that were not acknowledged.
    pub(crate) kills_under_way: u64,
    pub(crate) cuts: u64,
    pub(crate) restarts: u64,
    pub(crate) hours_away: u64,
    pub(crate) puts: u64,
    pub(crate) failed_before: u64,
    pub(crate) failed_after: u64,
    pub(crate) landed_late: u64,
    pub(crate) stalls: u64,
    pub(crate) refused_all: u64,
    pub(crate) spilled: u64,
    pub(crate) in_vain: u64,
}

impl Troubles {
    /// All together.
    pub(crate) fn add(&mut self, of: &Self) {
        let other = of.each();
        for (mine, (_, theirs)) in self.each_mut().into_iter().zip(other) {
            *mine += theirs;
        }
    }

    pub(crate) fn each(&self) -> [(&'static str, u64); 13] {
        [
            ("kills", self.kills),
            ("kills with pages under way", self.kills_under_way),
            ("cuts", self.cuts),
            ("streamers restarted", self.restarts),
            ("hosts an hour away", self.hours_away),
            ("puts", self.puts),
            ("puts failed before", self.failed_before),
            ("puts failed after success", self.failed_after),
            ("puts landed late", self.landed_late),
            ("puts stalled", self.stalls),
            ("store away", self.refused_all),
            ("pages spilled", self.spilled),
            ("batches in vain", self.in_vain),
        ]
    }

    fn each_mut(&mut self) -> [&mut u64; 13] {
        [
            &mut self.kills,
            &mut self.kills_under_way,
            &mut self.cuts,
            &mut self.restarts,
            &mut self.hours_away,
            &mut self.puts,
            &mut self.failed_before,
            &mut self.failed_after,
            &mut self.landed_late,
            &mut self.stalls,
            &mut self.refused_all,
            &mut self.spilled,
            &mut self.in_vain,
        ]
    }
}
