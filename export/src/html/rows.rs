//! What the page shows, by track and row.

/// What a track shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Native spans of a thread, by depth; the number is 0 but for those that overlap.
    Spans(u32),
    /// Calls with an entry and an exit, by depth.
    Calls,
    /// Calls that one record describes, by depth.
    TimedCalls(u32),
    /// Events without a duration.
    Events,
    /// Values of a counter of one name.
    Counter,
    /// The times in which a thread was in a span over threads, by depth.
    Entered,
    /// Spans over threads of one name, a lane each.
    Lasting,
}

impl Kind {
    /// Whether its slices have no duration.
    pub(super) const fn is_of_events(self) -> bool {
        matches!(self, Self::Events | Self::Counter)
    }

    /// Whether its slices say which span over threads they are of, or lie in.
    pub(super) const fn has_links(self) -> bool {
        matches!(self, Self::Entered | Self::Lasting)
    }

    /// What the page calls it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Spans(_) => "spans",
            Self::Calls => "functions",
            Self::TimedCalls(_) => "functions, timed",
            Self::Events => "events",
            Self::Counter => "counter",
            Self::Entered => "in spans over threads",
            Self::Lasting => "over threads",
        }
    }
}

/// What threads do, by numbers in place of those of names.
pub(super) mod does {
    use ringmark_decoder::ThreadDoes;

    pub(in crate::html) const WORDS: [&str; 3] = ["running", "ready", "waiting"];

    pub(in crate::html) const fn number(does: ThreadDoes) -> u32 {
        match does {
            ThreadDoes::Runs => 0,
            ThreadDoes::Ready => 1,
            ThreadDoes::Waits => 2,
        }
    }
}

/// What a slice has besides its times and name.
pub(super) mod flag {
    /// It has not ended.
    pub(in crate::html) const OPEN: u32 = 1;
    /// It began before the first record of its thread.
    pub(in crate::html) const BEFORE: u32 = 2;
    /// It is a time in which a thread was in a span over threads.
    pub(in crate::html) const ENTERED: u32 = 4;
    /// Bits of the flags below the number of the name.
    pub(in crate::html) const BITS: u32 = 3;
}

/// Something with a beginning and an end; an event has both at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    /// Wall times in ns.
    pub(super) start: u64,
    pub(super) end: u64,
    /// Number of its name.
    pub(super) name: u32,
    /// Number of its arguments' text; `None`: it has none.
    pub(super) args: Option<u32>,
    pub(super) flags: u32,
    /// Of a span over threads: its number, and that of the one around it. Of a time in which a thread was
    /// in one: that one's number in place of `around`.
    pub(super) life: Option<u32>,
    pub(super) around: Option<u32>,
}

/// A stretch of time in which events are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Loss {
    /// Number of the process.
    pub(super) process: usize,
    /// Number of the thread; `None`: not known.
    pub(super) thread: Option<u32>,
    /// Wall times in ns.
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) events: u64,
    pub(super) cause: &'static str,
}

/// Rows of slices, and what is still open in them.
#[derive(Debug, Default)]
pub(super) struct Track {
    pub(super) rows: Vec<Vec<Slice>>,
    /// Name of the argument that is a counter's value; empty: this is no counter.
    pub(super) value: Vec<u8>,
    /// Unit of the values, or empty.
    pub(super) unit: Vec<u8>,
    open: Vec<Slice>,
}

impl Track {
    /// Begins a slice inside those that are open.
    pub(super) fn begin(&mut self, slice: Slice) {
        self.open.push(slice);
    }

    /// The number of slices that are open.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Takes the innermost slice that is open.
    pub(super) fn end(&mut self) -> Option<Slice> {
        self.open.pop()
    }

    /// Puts a slice into a row.
    pub(super) fn put(&mut self, row: usize, slice: Slice) {
        if self.rows.len() <= row {
            self.rows.resize_with(row + 1, Vec::new);
        }
        self.rows[row].push(slice);
    }

    /// Ends what is open at `end` without an end of its own, and sorts every row.
    pub(super) fn finish(&mut self, end: u64) {
        for (row, mut slice) in std::mem::take(&mut self.open).into_iter().enumerate() {
            slice.end = end.max(slice.start);
            slice.flags |= flag::OPEN;
            self.put(row, slice);
        }
        for row in &mut self.rows {
            row.sort_by_key(|slice| slice.start);
        }
    }
}
