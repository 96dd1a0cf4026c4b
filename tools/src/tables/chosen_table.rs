//! The table of where the time of chosen spans and calls went, beside that of all of their names.

use std::collections::HashMap;

use ringmark_decoder::{ChosenPaths, PathSums, Paths};

use super::path_table::{Order, indented};
use ringmark_console::units::{count, duration};
use ringmark_console::{Table, printable};

/// A line of both trees: a path of the chosen ones, of all, or of both.
#[derive(Clone, Copy)]
struct Pair {
    /// Places of the paths.
    chosen: Option<usize>,
    all: Option<usize>,
    /// How many are at the top of their trees.
    tops: (u64, u64),
}

/// What is known of both trees.
struct Both<'p> {
    found: &'p ChosenPaths,
    /// See [`Paths::inside`].
    inside: (Vec<Vec<usize>>, Vec<Vec<usize>>),
}

impl Both<'_> {
    fn sums(&self, pair: Pair) -> (PathSums, PathSums) {
        let of = |paths: &Paths, place: Option<usize>| {
            place
                .map(|place| paths.paths[place].sums)
                .unwrap_or_default()
        };
        let chosen = of(&self.found.chosen, pair.chosen);
        (chosen, of(&self.found.all, pair.all))
    }

    fn name(&self, pair: Pair) -> usize {
        let of = |paths: &Paths, place: Option<usize>| place.map(|place| paths.paths[place].name);
        let chosen = of(&self.found.chosen, pair.chosen);
        chosen.or(of(&self.found.all, pair.all)).unwrap_or(0)
    }

    fn depth(&self, pair: Pair) -> usize {
        let of = |paths: &Paths, place: Option<usize>| place.map(|place| paths.paths[place].depth);
        let chosen = of(&self.found.chosen, pair.chosen);
        chosen.or(of(&self.found.all, pair.all)).unwrap_or(0)
    }

    /// What lies in a line of both, or the tops of the trees that begin with something chosen.
    fn inside(&self, around: Option<Pair>) -> Vec<Pair> {
        let (chosen, all) = (&self.found.chosen, &self.found.all);
        let places = |of: &[Vec<usize>], around: Option<usize>, is_top: bool| match (around, is_top)
        {
            (Some(place), _) => of[place + 1].clone(),
            (None, true) => of[0].clone(),
            (None, false) => Vec::new(),
        };
        let is_top = around.is_none();
        let mut others: HashMap<usize, usize> =
            places(&self.inside.1, around.and_then(|pair| pair.all), is_top)
                .into_iter()
                .map(|place| (all.paths[place].name, place))
                .collect();
        let in_chosen = places(&self.inside.0, around.and_then(|pair| pair.chosen), is_top);
        let mut pairs = Vec::new();
        for place in in_chosen {
            let path = &chosen.paths[place];
            let other = others.remove(&path.name);
            let counts = |paths: &Paths, place: usize| paths.paths[place].sums.count;
            let tops = (
                counts(chosen, place),
                other.map_or(0, |other| counts(all, other)),
            );
            pairs.push(Pair {
                chosen: Some(place),
                all: other,
                tops: around.map_or(tops, |pair| pair.tops),
            });
        }
        // What only the others have.
        if let Some(around) = around {
            pairs.extend(others.into_values().map(|place| Pair {
                chosen: None,
                all: Some(place),
                tops: around.tops,
            }));
        }
        pairs
    }
}

/// The trees of what was chosen, each line beside that of all of the names at their tops.
pub(crate) fn tree(found: &ChosenPaths, order: Order, columns: Option<usize>) -> Table {
    let both = Both {
        found,
        inside: (found.chosen.inside(), found.all.inside()),
    };
    let sorted = |mut pairs: Vec<Pair>| {
        order.sort(&mut pairs, |pair| {
            let (chosen, all) = both.sums(*pair);
            let name = &found.chosen.names[both.name(*pair)].name;
            let is_of_chosen = pair.chosen.is_some();
            (name.clone(), if is_of_chosen { chosen } else { all })
        });
        // What only the others have comes last.
        pairs.sort_by_key(|pair| pair.chosen.is_none());
        pairs.into_iter().rev()
    };
    let mut rows = Vec::new();
    let mut left: Vec<_> = sorted(both.inside(None)).collect();
    while let Some(pair) = left.pop() {
        let name = &found.chosen.names[both.name(pair)];
        let text = |bytes: &[u8]| printable(&String::from_utf8_lossy(bytes));
        let indented = indented(&text(&name.name), both.depth(pair), columns);
        rows.push(cells(
            both.sums(pair),
            pair.tops,
            [indented, text(&name.target)],
        ));
        left.extend(sorted(both.inside(Some(pair))));
    }
    table(rows, columns)
}

/// What lies directly in what was chosen, beside what lies in all of their names.
pub(crate) fn callees(found: &ChosenPaths, order: Order, columns: Option<usize>) -> Table {
    let tops = |paths: &Paths| {
        let tops = paths.paths.iter().filter(|path| path.around.is_none());
        tops.map(|path| path.sums.count).sum::<u64>()
    };
    let tops = (tops(&found.chosen), tops(&found.all));
    let mut sums: HashMap<usize, (PathSums, PathSums)> = HashMap::new();
    for (name, of) in found.chosen.directly_inside() {
        sums.entry(name.unwrap_or(0)).or_default().0 = of;
    }
    for (name, of) in found.all.directly_inside() {
        sums.entry(name.unwrap_or(0)).or_default().1 = of;
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    order.sort(&mut rows, |(name, (chosen, _))| {
        (found.chosen.names[*name].name.clone(), *chosen)
    });
    let mut shown = Vec::new();
    for (name, sums) in rows {
        let name = &found.chosen.names[name];
        let texts = [&name.name, &name.target];
        let texts = texts.map(|bytes| printable(&String::from_utf8_lossy(bytes)));
        shown.push(cells(sums, tops, texts));
    }
    table(shown, columns)
}

/// The table of these rows. Where all are of one target, a terminal has the room for names.
fn table(mut rows: Vec<Vec<String>>, columns: Option<usize>) -> Table {
    let mut headings = vec![
        ">COUNT",
        ">TOTAL",
        ">EACH",
        ">SELF",
        ">ALL",
        ">ALL EACH",
        ">ALL SELF",
        "NAME",
        "TARGET",
    ];
    let is_one = rows.windows(2).all(|two| two[0].last() == two[1].last());
    if columns.is_some() && is_one {
        let _ = headings.pop();
        rows.iter_mut().for_each(|row| drop(row.pop()));
    }
    let mut table = Table::new(&headings);
    rows.into_iter().for_each(|row| table.row(row));
    table
}

/// The cells of a line. Times but TOTAL are those in one at the top of its tree, as a mean.
fn cells(
    (chosen, all): (PathSums, PathSums),
    tops: (u64, u64),
    [name, target]: [String; 2],
) -> Vec<String> {
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), duration);
    let number = |of: u64| if of == 0 { "-".to_owned() } else { count(of) };
    let each = |ns: Option<u64>, tops: u64| time(ns.and_then(|ns| ns.checked_div(tops)));
    vec![
        number(chosen.count),
        time(chosen.total()),
        each(chosen.total(), tops.0),
        each(chosen.own(), tops.0),
        number(all.count),
        each(all.total(), tops.1),
        each(all.own(), tops.1),
        name,
        target,
    ]
}
