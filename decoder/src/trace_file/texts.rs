//! Texts of blocks, which many entries share.

use std::collections::HashMap;

use crate::blocks::damage::Fault;

/// Texts by number, each once.
#[derive(Debug, Default)]
pub(super) struct Texts {
    texts: Vec<Box<[u8]>>,
    numbers: HashMap<Box<[u8]>, u32>,
}

impl Texts {
    /// The number of a text, which is added if it is new.
    pub(super) fn number(&mut self, text: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    /// The text of a number.
    pub(super) fn text(&self, number: u32) -> &[u8] {
        let text = self.texts.get(number as usize);
        text.map_or(&[], |text| text)
    }

    /// No text will be added.
    pub(super) fn finish(&mut self) {
        self.numbers = HashMap::new();
    }
}

/// The text of an entry among those of its block. `what` it is, for who reads of damage.
pub(super) fn part<'t>(
    texts: &'t [u8],
    (at, bytes): (u32, u32),
    what: &'static str,
) -> Result<&'t [u8], Fault> {
    let end = u64::from(at) + u64::from(bytes);
    let found = texts.get(at as usize..usize::try_from(end).unwrap_or(usize::MAX));
    found.ok_or(Fault::Value {
        what,
        found: end,
        expected: texts.len() as u64,
    })
}

/// The functions of a text, a line each.
pub(super) fn functions(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = lines.split(|byte| *byte == b'\n');
    lines.filter(|line| !line.is_empty())
}
