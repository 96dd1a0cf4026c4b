//! The notice about spans that a trace does not hold from beginning to end.

use std::collections::BTreeMap;

use ringmark_decoder::CutSpans;

use ringmark_console::printable;
use ringmark_console::units::{count, counted};

/// Most names that a notice has.
const NAMES_SHOWN: usize = 5;

/// Notice about these spans, and those that were too many to follow; `None`: there are none.
pub(crate) fn notice(cut: &[CutSpans<'_>], left_out: u64) -> Option<String> {
    let mut parts = Vec::new();
    parts.extend(ends("end", cut.iter().map(|c| (c, c.no_end))));
    parts.extend(ends("beginning", cut.iter().map(|c| (c, c.no_start))));
    if left_out > 0 {
        let text = "not followed, because more than 1,048,576 were open at one time";
        parts.push(format!("{} {text}", counted(left_out, "span")));
    }
    let all = parts.join("; ");
    (!parts.is_empty()).then(|| {
        format!("{all}; 'ringmark cat --tree' shows those that go on, --raw all their records")
    })
}

/// `2 spans without an end here: order 1, query 1`.
fn ends<'c, 'd: 'c>(
    what: &str,
    cut: impl Iterator<Item = (&'c CutSpans<'d>, u64)>,
) -> Option<String> {
    let mut names: BTreeMap<String, u64> = BTreeMap::new();
    for (of_type, number) in cut.filter(|(_, number)| *number > 0) {
        let name = match of_type.ty {
            Some(ty) => printable(&String::from_utf8_lossy(&ty.name)),
            None => "name not known".to_owned(),
        };
        *names.entry(name).or_default() += number;
    }
    let total = names.values().sum();
    let mut shown: Vec<_> = names.into_iter().collect();
    shown.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let more = shown.len().saturating_sub(NAMES_SHOWN);
    shown.truncate(NAMES_SHOWN);
    let mut list: Vec<_> = shown
        .iter()
        .map(|(name, number)| format!("{name} {}", count(*number)))
        .collect();
    if more > 0 {
        list.push(format!("{} of other names", count(more as u64)));
    }
    let article = if what == "end" { "an" } else { "a" };
    (total > 0).then(|| {
        format!(
            "{} without {article} {what} here: {}",
            counted(total, "span"),
            list.join(", ")
        )
    })
}
