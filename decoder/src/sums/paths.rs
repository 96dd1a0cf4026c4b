//! The ways by which calls and spans were reached: each path from the outermost one, with what took
//! place at its end. Calls lie in calls, spans in spans.

use std::collections::HashMap;

use crate::sums::calls::{Call, Ended};
use crate::trace_file::thread_times::ThreadTimes;

/// Longest path; what lies deeper is counted.
pub(super) const LONGEST: usize = 256;

/// A function or a span, as tables name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PathName {
    /// Its name.
    pub name: Vec<u8>,
    /// File name of the function's module, or the span's target.
    pub target: Vec<u8>,
}

/// What took place at the end of a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathSums {
    /// Calls or spans.
    pub count: u64,
    /// Part of `count`: the beginning is not known, so neither is what was around it.
    pub no_start: u64,
    /// Part of `count`: the end is not known.
    pub no_end: u64,
    /// Part of `count`: the duration is known.
    pub timed: u64,
    /// Those durations together, in ns.
    pub total_ns: u64,
    /// Part of `timed`: the time of its own is not known.
    pub unknown_self: u64,
    /// Time of their own of all others in `timed`, in ns.
    pub self_ns: u64,
    /// What threads did while they lasted, of those of which that is known.
    pub did: ThreadTimes,
}

/// A path: what is at its end, and the path to it.
#[derive(Debug, Clone)]
pub struct Path {
    /// Its place in [`Paths::paths`] without its end; `None`: it has one member.
    pub around: Option<usize>,
    /// Number of members before the last one.
    pub depth: usize,
    /// Place in [`Paths::names`] of the last one.
    pub name: usize,
    /// What took place there.
    pub sums: PathSums,
}

/// Paths from somewhere, with what took place at their ends.
pub(super) type Inside = Vec<(Vec<usize>, PathSums)>;

/// All paths of a trace. A path stands after those that it goes on from.
///
/// A function that is called from two places has two paths, and one that calls itself has one for
/// each depth. So the counts of all paths that end in a function are those of its calls:
///
/// ```text
/// main                  1 call
/// main, read           10 calls
/// main, parse           1 call
/// main, parse, read     3 calls
/// ```
///
/// Here `read` has the callers `main`, with 10 calls, and `parse`, with 3.
#[derive(Debug, Default)]
pub struct Paths {
    /// What the paths are made of.
    pub names: Vec<PathName>,
    /// The paths.
    pub paths: Vec<Path>,
    /// Calls and spans with more than 255 around them. They have no path.
    pub deeper: u64,
    /// Calls and spans in `paths` of which it is not known what is around them: they begin or end at the same tick
    /// as others. Their path begins with themselves.
    pub unplaced: u64,
    name_places: HashMap<PathName, usize>,
    places: HashMap<(Option<usize>, usize), usize>,
    /// The paths from what is chosen, and from what has such names; `None`: nothing is asked for.
    apart: Option<Box<ChosenPaths>>,
}

/// The paths from spans and calls that were chosen, beside those from all of their names: each begins with one
/// of them, whatever is around that. The members of both have the names of one list.
#[derive(Debug, Default)]
pub struct ChosenPaths {
    /// From what was chosen.
    pub chosen: Paths,
    /// From all that has the name of something that was chosen.
    pub all: Paths,
}

/// What a span or a call is for [`ChosenPaths`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Choice {
    /// It is chosen.
    pub(super) is_chosen: bool,
    /// It may have the name of one that is.
    pub(super) is_like: bool,
}

impl PathSums {
    /// Adds those of another path.
    pub fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.no_start += other.no_start;
        self.no_end += other.no_end;
        self.timed += other.timed;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.unknown_self += other.unknown_self;
        self.self_ns = self.self_ns.saturating_add(other.self_ns);
        self.did = self.did.and(other.did);
    }

    /// The same with what a thread did in it, as far as that is known.
    pub(super) fn with(self, did: Option<ThreadTimes>) -> Self {
        Self {
            did: did.unwrap_or_default(),
            ..self
        }
    }

    /// The durations together, in ns; `None`: no duration is known.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        (self.timed > 0).then_some(self.total_ns)
    }

    /// Their own time together, in ns; `None`: of none it is known.
    #[must_use]
    pub fn own(&self) -> Option<u64> {
        (self.unknown_self < self.timed).then_some(self.self_ns)
    }

    /// Its own time, as part of something else's.
    pub(super) fn own_alone(&self) -> Self {
        Self {
            self_ns: self.self_ns,
            ..Self::default()
        }
    }

    /// One that has begun, and has no end here.
    pub(super) fn endless() -> Self {
        Self {
            count: 1,
            no_end: 1,
            ..Self::default()
        }
    }

    /// One with its duration, and its own time if that is known.
    /// `None`: its session has no times.
    pub(super) fn timed(total_ns: Option<u64>, self_ns: Option<u64>) -> Self {
        let Some(total_ns) = total_ns else {
            return Self {
                count: 1,
                ..Self::default()
            };
        };
        Self {
            count: 1,
            timed: 1,
            total_ns,
            unknown_self: u64::from(self_ns.is_none()),
            self_ns: self_ns.unwrap_or(0),
            ..Self::default()
        }
    }

    /// A call, counted as the table of functions does.
    pub(super) fn of_call(call: &Call<'_>) -> Self {
        if call.unsure && call.ended == Ended::Unseen {
            return Self::endless();
        }
        match call.duration_ns() {
            Some(_) => Self::timed(call.took_ns(), call.self_ns()),
            None => Self {
                count: 1,
                no_start: 1,
                ..Self::default()
            },
        }
    }
}

impl Paths {
    /// The place of a name.
    pub(super) fn name(&mut self, name: &[u8], target: &[u8]) -> usize {
        let name = PathName {
            name: name.to_vec(),
            target: target.to_vec(),
        };
        let next = self.names.len();
        let place = *self.name_places.entry(name.clone()).or_insert(next);
        if place == next {
            self.names.push(name);
        }
        place
    }

    /// The path of these names, the outermost first, which have no target.
    pub(super) fn root(&mut self, names: &[Vec<u8>]) -> Option<usize> {
        names.iter().fold(None, |around, name| {
            let name = self.name(name, b"");
            self.path(around, name)
        })
    }

    /// The path that goes on from another; `None`: it would be too long.
    pub(super) fn path(&mut self, around: Option<usize>, name: usize) -> Option<usize> {
        let depth = around.map_or(0, |around| self.paths[around].depth + 1);
        if depth >= LONGEST {
            return None;
        }
        let next = self.paths.len();
        let place = *self.places.entry((around, name)).or_insert(next);
        if place == next {
            self.paths.push(Path {
                around,
                depth,
                name,
                sums: PathSums::default(),
            });
        }
        Some(place)
    }

    /// Adds what took place at the end of a path; `None`: it is too long.
    pub(super) fn add(&mut self, path: Option<usize>, sums: &PathSums) {
        match path {
            Some(path) => self.paths[path].sums.add(sums),
            None => self.deeper = self.deeper.saturating_add(sums.count),
        }
    }

    /// Adds paths that go on from another; `None`: from nothing.
    pub(super) fn settle(&mut self, around: Option<usize>, all: Vec<(Vec<usize>, PathSums)>) {
        for (names, sums) in all {
            let mut path = around;
            for (place, name) in names.into_iter().enumerate() {
                path = match (place, path) {
                    (1.., None) => None,
                    _ => self.path(path, name),
                };
            }
            self.add(path, &sums);
        }
    }

    /// Has it gather paths from what is chosen.
    pub(super) fn gather_chosen(&mut self) {
        self.apart = Some(Box::default());
    }

    /// Takes something that has ended, and all in it: paths from there.
    pub(super) fn choose(&mut self, choice: Choice, all: &Inside) {
        let Some(apart) = &mut self.apart else { return };
        if choice.is_chosen {
            apart.chosen.settle(None, all.clone());
        }
        if choice.is_like {
            apart.all.settle(None, all.clone());
        }
    }

    /// The paths from what was chosen.
    pub(super) fn into_chosen(self) -> ChosenPaths {
        let mut found = self.apart.map(|apart| *apart).unwrap_or_default();
        found.chosen.names.clone_from(&self.names);
        found.all.names = self.names;
        found
    }

    /// The places of the paths that go on from others with one more member: by place of the other, plus 1; those
    /// with one member at 0.
    #[must_use]
    pub fn inside(&self) -> Vec<Vec<usize>> {
        let mut inside = vec![Vec::new(); self.paths.len() + 1];
        for (place, path) in self.paths.iter().enumerate() {
            inside[path.around.map_or(0, |around| around + 1)].push(place);
        }
        inside
    }

    /// What lies in something that was chosen and in nothing inside that. In the order of [`Self::names`].
    pub fn directly_inside(&self) -> Vec<(Option<usize>, PathSums)> {
        self.sums_by(|path| (path.depth == 1).then_some(Some(path.name)))
    }

    /// What threads did at the end of each path and in nothing that lay inside, by place of the path.
    #[must_use]
    pub fn own_times(&self) -> Vec<ThreadTimes> {
        let mut own: Vec<_> = self.paths.iter().map(|path| path.sums.did).collect();
        for path in &self.paths {
            if let Some(around) = path.around {
                own[around] = own[around].without(path.sums.did);
            }
        }
        own
    }

    /// What called something, with its calls from there; `None` in place of a caller: none is
    /// known. In the order of [`Self::names`].
    ///
    /// Calls of a function by itself count like others: their caller is the function.
    pub fn callers(&self, is_it: impl Fn(&PathName) -> bool) -> Vec<(Option<usize>, PathSums)> {
        self.sums_by(|path| {
            let caller = path.around.map(|around| self.paths[around].name);
            is_it(&self.names[path.name]).then_some(caller)
        })
    }

    /// What something called, with the calls from there. In the order of [`Self::names`].
    pub fn callees(&self, is_it: impl Fn(&PathName) -> bool) -> Vec<(Option<usize>, PathSums)> {
        self.sums_by(|path| {
            let caller = &self.names[self.paths[path.around?].name];
            is_it(caller).then_some(Some(path.name))
        })
    }

    fn sums_by(
        &self,
        key: impl Fn(&Path) -> Option<Option<usize>>,
    ) -> Vec<(Option<usize>, PathSums)> {
        let mut sums: HashMap<Option<usize>, PathSums> = HashMap::new();
        for path in self.paths.iter().filter(|path| path.sums.count > 0) {
            if let Some(key) = key(path) {
                sums.entry(key).or_default().add(&path.sums);
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(name, _)| *name);
        sums
    }
}

/// Makes one of those with the same path, and of those that are too long.
pub(super) fn merge(all: &mut Vec<(Vec<usize>, PathSums)>) {
    all.iter_mut()
        .for_each(|(path, _)| path.truncate(LONGEST + 1));
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        if is_same {
            kept.1.add(&next.1);
        }
        is_same
    });
}
