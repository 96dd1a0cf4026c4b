//! What the payload of a function record holds.

use ringmark_format::function::CallerWord;

use crate::trace_file::functions::FunctionUse;

/// The words of a function record's payload, by their meaning.
#[derive(Debug, Clone, Copy, Default)]
pub struct FunctionWords<'a> {
    /// Address of the return address, of a call on another stack than the thread's own.
    pub slot: Option<u64>,
    /// Return address of an entry; 0: not known.
    pub caller: u64,
    /// Processor that an entry was recorded on.
    pub cpu: Option<u32>,
    /// Duration of a whole call, in ticks of the session's clock.
    pub duration_ticks: Option<u64>,
    /// Return value of an exit.
    pub result: Option<u64>,
    arguments: &'a [u8],
}

fn first(words: &[u8]) -> Option<(u64, &[u8])> {
    let (word, rest) = words.split_first_chunk()?;
    Some((u64::from_le_bytes(*word), rest))
}

impl<'a> FunctionWords<'a> {
    /// Takes the payload of a record apart whose type means `meaning`.
    #[must_use]
    pub fn read(meaning: FunctionUse, payload: &'a [u8]) -> Self {
        let mut words = Self::default();
        let mut rest = payload;
        if meaning.has_slot
            && let Some((slot, after)) = first(rest)
        {
            words.slot = Some(slot);
            rest = after;
        }
        if !meaning.exit {
            if let Some((word, arguments)) = first(rest) {
                let CallerWord { address, cpu } = CallerWord::unpack(word);
                (words.caller, words.cpu) = (address, cpu);
                words.arguments = arguments;
            }
            return words;
        }
        if meaning.timed
            && let Some((ticks, after)) = first(rest)
        {
            words.duration_ticks = Some(ticks);
            rest = after;
        }
        words.result = first(rest).map(|(word, _)| word);
        words
    }

    /// Integer arguments of an entry, in order.
    pub fn arguments(&self) -> impl Iterator<Item = u64> + use<'a> {
        let words = self.arguments.chunks_exact(8);
        words.filter_map(|word| Some(first(word)?.0))
    }

    /// The word that output calls so: `arg1` and so on of an entry, `result` of an exit.
    pub(crate) fn named(&self, name: &str) -> Option<u64> {
        if name == "result" {
            return self.result;
        }
        let number: usize = name.strip_prefix("arg")?.parse().ok()?;
        self.arguments().nth(number.checked_sub(1)?)
    }
}
