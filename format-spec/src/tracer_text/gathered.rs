//! What a profile tracer has gathered of a function.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

use super::{field, line};

/// Calls by their durations: pairs of LOW and CALLS, for durations from LOW ns to less than twice
/// LOW. Pairs have ascending LOW; buckets without a call are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram(pub Vec<(u64, u64)>);

/// `LOW:CALLS` with commas between; nothing for none.
impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (low, calls)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{low}:{calls}")?;
        }
        Ok(())
    }
}

impl Histogram {
    /// Takes its text apart. What is no pair of numbers is passed over.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let pairs = text.split(',').filter_map(|pair| pair.split_once(':'));
        let numbers = pairs.map(|(low, calls)| Some((low.parse().ok()?, calls.parse().ok()?)));
        Self(numbers.flatten().collect())
    }
}

/// What is known of a function, times in ns: `CALLS OPEN UNWOUND TOTAL SELF SUM MIN MAX HISTOGRAM`,
/// then function and module, each after a tab. `-` is the histogram of no calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gathered<'a> {
    /// Calls that ended.
    pub calls: u64,
    /// Calls that have begun and not ended.
    pub open: u64,
    /// Calls that ended without a return, because they were unwound; part of `calls`.
    pub unwound: u64,
    /// Time in it with what it called, in ns. Time in which it was open several times counts once.
    pub total: u64,
    /// Time in it without what it called, in ns.
    pub own: u64,
    /// Sum of the durations of all calls, in ns.
    pub sum: u64,
    /// Shortest duration, in ns; 0: none is known.
    pub min: u64,
    /// Longest duration, in ns; 0: none is known.
    pub max: u64,
    /// The calls by their durations.
    pub histogram: Histogram,
    /// Name of the function.
    pub function: Cow<'a, str>,
    /// File name of its module.
    pub module: Cow<'a, str>,
}

impl fmt::Display for Gathered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for number in self.numbers() {
            write!(f, "{number} ")?;
        }
        match self.histogram.0.as_slice() {
            [] => f.write_str("-")?,
            _ => write!(f, "{}", self.histogram)?,
        }
        write!(f, "\t{}\t{}", field(&self.function), line(&self.module))
    }
}

impl<'a> Gathered<'a> {
    fn numbers(&self) -> [u64; 8] {
        let (own, sum) = (self.own, self.sum);
        let (calls, open, unwound, total) = (self.calls, self.open, self.unwound, self.total);
        [calls, open, unwound, total, own, sum, self.min, self.max]
    }

    /// Takes the value of a `function` line apart; `None`: a number or a name is missing.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let (words, names) = text.split_once('\t')?;
        let (function, module) = names.split_once('\t')?;
        let mut words = words.split(' ');
        let mut number = || words.next()?.parse().ok();
        Some(Self {
            calls: number()?,
            open: number()?,
            unwound: number()?,
            total: number()?,
            own: number()?,
            sum: number()?,
            min: number()?,
            max: number()?,
            histogram: Histogram::parse(words.next()?),
            function: Cow::Borrowed(function),
            module: Cow::Borrowed(module),
        })
    }

    /// The same with names of its own.
    #[must_use]
    pub fn into_owned(self) -> Gathered<'static> {
        Gathered {
            function: Cow::Owned(self.function.into_owned()),
            module: Cow::Owned(self.module.into_owned()),
            ..self
        }
    }
}
