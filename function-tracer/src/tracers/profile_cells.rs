//! The cells of profile tracers: one for each function that a profile tracer wanted.

use std::collections::BTreeMap;

use crate::record::profile_sum::{Sum, begun};
use crate::record::profile_tables::{CellUse, forget_extremes, make_room, set_uses};
use crate::record::thread_memory::{CELLS_MAX, LANES};
use crate::sites::{Module, Site};

/// Names for people of a function and its module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) function: String,
    /// File name of its module.
    pub(crate) module: String,
}

/// A tracer and a function that it wanted, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CellKey {
    pub(crate) tracer: u32,
    pub(crate) function: u32,
}

/// A function that is counted.
pub(super) struct CountedFunction<N> {
    pub(super) number: u32,
    /// Its number when its module was loaded before. It goes on in the same cell.
    pub(super) before: Option<u32>,
    pub(super) names: N,
}

/// What was gathered about a function.
pub(crate) struct CellOfFunction<'c> {
    /// Its number.
    pub(crate) function: u32,
    /// The cell's, which stays the same when the function's module is loaded again.
    pub(crate) cell: u32,
    pub(crate) names: &'c Names,
    pub(crate) sum: Sum,
}

#[derive(Debug)]
struct NamedCell {
    number: u32,
    names: Names,
    /// What was in it when its tracer was last started.
    before: Option<Box<Sum>>,
}

/// The cells of all profile tracers.
#[derive(Debug, Default)]
pub(crate) struct ProfileCells {
    /// By lane: the number of its tracer.
    lanes: [Option<u32>; LANES],
    cells: BTreeMap<CellKey, NamedCell>,
    next_cell: u32,
    /// The cell of the measured function's calls.
    measured: Option<u32>,
}

impl ProfileCells {
    /// Gives a tracer a lane. `false`: none is free.
    pub(crate) fn add(&mut self, tracer: u32) -> bool {
        let free = self.lanes.iter_mut().find(|lane| lane.is_none());
        free.map(|lane| *lane = Some(tracer)).is_some()
    }

    /// Takes a tracer's lane back. Its cells are not used again, so calls that are open count for
    /// no other tracer.
    pub(crate) fn remove(&mut self, tracer: u32) {
        for lane in &mut self.lanes {
            lane.take_if(|number| *number == tracer);
        }
        self.cells.retain(|key, _| key.tracer != tracer);
    }

    /// Sets what calls of a function type count in. Called before its patch sites are enabled, and
    /// makes room for the cells in every thread.
    pub(crate) fn describe(
        &mut self,
        type_number: u32,
        tracers: u64,
        function: &CountedFunction<impl Fn() -> Names>,
    ) {
        let mut uses = Vec::new();
        for lane in 0..LANES {
            let wanted = |tracer: &u32| tracers & (1 << tracer) != 0;
            let Some(tracer) = self.lanes[lane].filter(wanted) else {
                continue;
            };
            if let Some(cell) = self.cell(tracer, function) {
                let lane = lane as u32;
                uses.push(CellUse { cell, lane });
            }
        }
        make_room(self.next_cell as usize);
        // Without memory for the table nothing is counted.
        let _ = set_uses(type_number, uses);
    }

    fn cell(&mut self, tracer: u32, of: &CountedFunction<impl Fn() -> Names>) -> Option<u32> {
        let key = |function| CellKey { tracer, function };
        if let Some(cell) = self.cells.get(&key(of.number)) {
            return Some(cell.number);
        }
        let names = (of.names)();
        let when_loaded_before = of.before.map(key);
        let is_same = |cell: &NamedCell| cell.names == names;
        let known = when_loaded_before.filter(|key| self.cells.get(key).is_some_and(is_same));
        let (number, before) = match known.and_then(|key| self.cells.remove(&key)) {
            Some(cell) => (cell.number, cell.before),
            None => (self.next_cell()?, None),
        };
        self.cells.insert(
            key(of.number),
            NamedCell {
                number,
                names,
                before,
            },
        );
        Some(number)
    }

    fn next_cell(&mut self) -> Option<u32> {
        let cell = self.next_cell;
        self.next_cell += u32::from((cell as usize) < CELLS_MAX);
        (cell != self.next_cell).then_some(cell)
    }

    /// Has the calls of a type counted for no tracer, to measure them.
    pub(crate) fn describe_measured(&mut self, type_number: u32) {
        self.measured = self.measured.or_else(|| self.next_cell());
        if let Some(cell) = self.measured {
            make_room(self.next_cell as usize);
            // Without memory the calls are measured uncounted.
            let _ = set_uses(type_number, vec![CellUse { cell, lane: 0 }]);
        }
    }

    /// Number of calls that have begun, by cell.
    pub(crate) fn begun(&self) -> impl Iterator<Item = (CellKey, u64)> {
        let cells = self.cells.iter();
        cells.map(|(key, cell)| (*key, begun(cell.number)))
    }

    /// What was gathered about a tracer's functions from the one with this number on, by their
    /// numbers in rising order.
    pub(crate) fn of(&self, tracer: u32, from: u32) -> impl Iterator<Item = CellOfFunction<'_>> {
        let key = |function| CellKey { tracer, function };
        let rest = self.cells.range(key(from)..=key(u32::MAX));
        rest.map(|(key, cell)| CellOfFunction {
            function: key.function,
            cell: cell.number,
            names: &cell.names,
            sum: Sum::of(cell.number).since(cell.before.as_deref()),
        })
    }

    /// Begins to count at 0 for a tracer. Threads may be adding to its cells, so what is there is kept and taken off later.
    /// Calls that are open go on.
    pub(crate) fn begin_anew(&mut self, tracer: u32) {
        let key = |function| CellKey { tracer, function };
        for (_, cell) in self.cells.range_mut(key(0)..=key(u32::MAX)) {
            let sum = Sum::of(cell.number);
            cell.before = (sum.begun > 0).then(|| Box::new(sum));
            forget_extremes(cell.number);
        }
    }

    /// The cells are empty, in a forked child.
    pub(crate) fn were_emptied(&mut self) {
        self.cells.values_mut().for_each(|cell| cell.before = None);
    }
}

impl Names {
    /// The names of a site's function and its module.
    pub(super) fn of(module: &Module, site: &Site) -> Self {
        let function = module.function(site);
        let (symbol, address) =
            function.map_or((&[][..], site.address), |f| (&f.symbol, f.address));
        let function = module.name_of(symbol, address);
        let file = module.path.file_name().unwrap_or_default();
        let one_line = |text: &str| text.replace(['\n', '\t'], " ");
        Self {
            function: one_line(&function),
            module: one_line(&file.to_string_lossy()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_given_back() {
        let mut profiles = ProfileCells::default();
        assert!((0..LANES as u32).all(|tracer| profiles.add(tracer)));
        assert!(!profiles.add(40));
        profiles.remove(3);
        assert!(profiles.add(40));
        assert!(!profiles.add(41));
    }
}
