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
    /// Address of the instruction that is moved.
    pub site: u64,
    /// Padding for a longer jump, where the site's is short, and what the file has there.
    pub hop: Option<(u64, &'a str)>,
    /// Whether its return address must stay.
    pub keeps_return_address: bool,
    /// What the file has at the site: two digits for each byte.
    pub code: &'a str,
    /// The name in the symbol table; empty for a function without a symbol.
    pub name: &'a str,
}

const NO_HOP: &str = "-";
const STAYS: &str = "stays";
const MAY_CHANGE: &str = "may_change";

impl fmt::Display for MovedSite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x} {} {:x} ", self.function, self.bytes, self.site)?;
        match self.hop {
            Some((hop, code)) => write!(f, "{hop:x}:{code}")?,
            None => f.write_str(NO_HOP)?,
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
            hop: match words.next()? {
                NO_HOP => None,
                hop => {
                    let (hop, code) = hop.split_once(':')?;
                    Some((address(hop)?, code))
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
