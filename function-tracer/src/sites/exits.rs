//! Which functions have a patch site at every exit: a compiler that marks exits marks all exits of
//! a function.
//!
//! A function's return address must be replaced unless every exit is a site. One exit that is none
//! would leave calls open for ever, so a doubt counts against the function: a refused exit without
//! a known function makes all functions of the module doubtful.

use std::collections::BTreeSet;

use super::module::{Function, Site, SiteKind};

/// Sets [`Function::has_exits`] in `functions`, whose sites are `sites`. `refused` has the
/// functions of exits that are no sites, `None` for an unknown function. `owners` gives the
/// functions that an outlying piece of code (`name.cold`) may belong to.
pub(super) fn mark<'o>(
    functions: &mut [Function],
    sites: &[Site],
    refused: &[Option<u64>],
    owners: impl Fn(u64) -> Option<&'o [u64]>,
) {
    let of_kind = |is_entry: bool| {
        let sites = sites
            .iter()
            .filter(move |s| (s.kind == SiteKind::Entry) == is_entry);
        sites.map(|site| site.function)
    };
    let left: BTreeSet<u32> = of_kind(false).collect();
    if left.is_empty() {
        return; // They have none as they were found.
    }
    let entered: BTreeSet<u32> = of_kind(true).collect();
    let mut incomplete: BTreeSet<u64> = refused.iter().copied().flatten().collect();
    let mut is_unknown = refused.contains(&None);
    // The others are pieces, or functions whose own entry is no site.
    let others = left.difference(&entered).copied();
    for other in others.filter_map(|place| functions.get(place as usize)) {
        match owners(other.address) {
            Some(owners) if !owners.is_empty() => incomplete.extend(owners),
            Some(_) => is_unknown = true,
            None => is_unknown |= other.symbol.is_empty(),
        }
    }
    for (place, function) in (0..).zip(functions) {
        let is_whole = entered.contains(&place) && left.contains(&place);
        function.has_exits = is_whole && !is_unknown && !incomplete.contains(&function.address);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{module::SiteId, scan};
    use super::*;

    /// Which of three functions, at 0, 1 and 2, have exits.
    fn marked(
        sites: &[(u32, SiteKind)],
        refused: &[Option<u64>],
        owners: Option<&[u64]>,
    ) -> [bool; 3] {
        let mut functions = [0, 1, 2].map(|address| Function {
            address,
            size: 1,
            symbol: b"name"[..].into(),
            has_exits: false,
            hands_on: false,
        });
        let site = |(function, kind): &(u32, SiteKind)| Site {
            id: SiteId(0),
            address: 0,
            kind: *kind,
            function: *function,
            form: scan::any_form(),
        };
        let sites: Vec<_> = sites.iter().map(site).collect();
        mark(&mut functions, &sites, refused, |_| owners);
        functions.map(|function| function.has_exits)
    }

    #[test]
    fn a_function_has_all_its_exits_or_counts_as_having_none() {
        use SiteKind::{BeforeReturn, Entry, Exit, TailExit};
        let sites = [(0, Entry), (0, Exit), (1, Entry), (2, Entry), (2, TailExit)];
        assert_eq!(marked(&sites, &[], None), [true, false, true]);
        assert_eq!(marked(&sites, &[Some(2)], None), [true, false, false]);
        assert_eq!(marked(&sites, &[None], None), [false; 3]);
        // The second one is a part of another, or its entry is no site.
        let sites = [
            (0, Entry),
            (0, Exit),
            (1, BeforeReturn),
            (2, Entry),
            (2, Exit),
        ];
        assert_eq!(marked(&sites, &[], Some(&[0, 7])), [false, false, true]);
        assert_eq!(marked(&sites, &[], Some(&[])), [false; 3]);
        assert_eq!(marked(&sites, &[], None), [true, false, true]);
    }
}
