//! A patch site for a function whose compiler left none: where the tool has found room for it.

use core::fmt;

use super::line;

/// Such a site, in a request. Addresses are those in the module's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovedSite<'a> {
    /// Where the function begins.
    pub function: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Address of the first instruction that is moved.
    pub site: u64,
    /// How the jump is put there.
    pub jump: MovedJump<'a>,
    /// Whether its return address must stay.
    pub keeps_return_address: bool,
    /// What the file has at the site: two digits for each byte.
    pub code: &'a str,
    /// The name in the symbol table; empty for a function without a symbol.
    pub name: &'a str,
}

/// How a jump is put in the place of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MovedJump<'a> {
    /// By a store over one instruction.
    OneStore,
    /// By a store of a short jump over one instruction, to a longer one in padding: where that is, and what the file
    /// has there.
    Hop(u64, &'a str),
    /// Over several instructions, while no thread is between them.
    Several,
}

const ONE_STORE: &str = "-";
const SEVERAL: &str = "several";
const STAYS: &str = "stays";
const MAY_CHANGE: &str = "may_change";

impl fmt::Display for MovedSite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x} {} {:x} ", self.function, self.bytes, self.site)?;
        match self.jump {
            MovedJump::Hop(hop, code) => write!(f, "{hop:x}:{code}")?,
            MovedJump::OneStore => f.write_str(ONE_STORE)?,
            MovedJump::Several => f.write_str(SEVERAL)?,
        }
        let address = if self.keeps_return_address {
            STAYS
        } else {
            MAY_CHANGE
        };
        write!(f, " {address} {} {}", self.code, line(self.name))
    }
}

impl<'a> MovedSite<'a> {
    /// Takes the text apart; `None`: it is none.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut words = text.splitn(7, ' ');
        let address = |text: &str| u64::from_str_radix(text, 16).ok();
        Some(Self {
            function: address(words.next()?)?,
            bytes: words.next()?.parse().ok()?,
            site: address(words.next()?)?,
            jump: match words.next()? {
                ONE_STORE => MovedJump::OneStore,
                SEVERAL => MovedJump::Several,
                hop => {
                    let (hop, code) = hop.split_once(':')?;
                    MovedJump::Hop(address(hop)?, code)
                }
            },
            keeps_return_address: match words.next()? {
                STAYS => true,
                MAY_CHANGE => false,
                _ => return None,
            },
            code: words.next()?,
            name: words.next()?,
        })
    }
}
