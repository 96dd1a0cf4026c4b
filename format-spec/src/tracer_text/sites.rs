//! Functions that can be traced and those that cannot, as the answer to `functions` has them.

use core::fmt;

use super::{field, line};

/// How the ends of a function's calls are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exits {
    /// By its return address.
    Address,
    /// By sleds at all its exits.
    Sleds,
    /// Not at all.
    None,
}

impl Exits {
    const ALL: [Self; 3] = [Self::Address, Self::Sleds, Self::None];

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Sleds => "sleds",
            Self::None => "none",
        }
    }
}

/// A function that can be traced: `on|off ADDRESS BYTES EXITS NAME`, the address in hex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site<'a> {
    /// Whether its calls are traced now.
    pub is_on: bool,
    /// Address of the patch site in the process.
    pub address: u64,
    /// Size of the function in bytes; 0: not known.
    pub bytes: u64,
    /// How the ends of its calls are seen; [`Exits::Address`] for a word that is not known.
    pub exits: Exits,
    /// Its name, readable.
    pub name: &'a str,
}

impl fmt::Display for Site<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (state, exits) = (if self.is_on { "on" } else { "off" }, self.exits.name());
        let (address, bytes) = (self.address, self.bytes);
        write!(f, "{state} {address:x} {bytes} {exits} {}", line(self.name))
    }
}

impl<'a> Site<'a> {
    pub(super) fn parse(is_on: bool, text: &'a str) -> Option<Self> {
        let mut words = text.splitn(4, ' ');
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let (bytes, exits) = (words.next()?.parse().ok()?, words.next()?);
        let known = Exits::ALL.into_iter().find(|known| known.name() == exits);
        Some(Self {
            is_on,
            address,
            bytes,
            exits: known.unwrap_or(Exits::Address),
            name: words.next()?,
        })
    }
}

/// A function that cannot be traced: `no ADDRESS NAME<tab>REASON`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Untraceable<'a> {
    /// Its address in the process.
    pub address: u64,
    /// Its name, readable.
    pub name: &'a str,
    /// Why not, for people.
    pub reason: &'a str,
}

impl fmt::Display for Untraceable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, reason) = (field(self.name), line(self.reason));
        write!(f, "no {:x} {name}\t{reason}", self.address)
    }
}

impl<'a> Untraceable<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (address, text) = text.split_once(' ')?;
        let (name, reason) = text.split_once('\t')?;
        Some(Self {
            address: u64::from_str_radix(address, 16).ok()?,
            name,
            reason,
        })
    }
}
