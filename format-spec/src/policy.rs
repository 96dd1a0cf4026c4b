//! Policies: what an operator wants recorded and sent, per service, as text (SPEC, section 18).
//!
//! A policy only takes away. It disables event types and bounds bytes; what is off on a host stays off.
//! Its last line is a signature of all lines before.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::session_text::SessionRequest;

/// The first line of a policy.
const FIRST_LINE: &str = "ringmark-policy 1";
/// The name of the section for services that no other section names.
pub const ANY_SERVICE: &str = "*";
/// Most bytes of a signed policy.
pub const POLICY_BYTES_MAX: usize = 64 << 10;
/// Most bytes of the rules of one service, as the request that hands them to a session has them.
pub const RULES_BYTES_MAX: usize = 1536;
/// Bytes of a signature: Ed25519.
pub const SIGNATURE_BYTES: usize = 64;

/// A policy, without its signature.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// Its number: greater than that of the policy before it.
    pub serial: u64,
    /// When it ends, in seconds since 1970.
    pub until_s: u64,
    /// What holds for each service. At most one section for each name.
    pub services: Vec<ServicePolicy>,
}

/// What holds for one service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServicePolicy {
    /// The service, or the program's name where it has none; [`ANY_SERVICE`]: all that have no section.
    pub service: String,
    /// Requests to enable and to disable event types; the last one that matches a type decides.
    pub rules: Vec<String>,
    /// How many bytes of pages may be sent.
    pub budget: Budget,
}

/// How many bytes of pages of a service a host may send. In any hour these are at most both together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// Bytes in an hour; `None`: any number.
    pub bytes_per_hour: Option<u64>,
    /// Bytes that were not used before and may be sent at once; `None`: a tenth of an hour's.
    pub burst: Option<u64>,
}

impl Budget {
    /// The smaller of each.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        Self {
            bytes_per_hour: least(self.bytes_per_hour, other.bytes_per_hour),
            burst: least(self.burst, other.burst),
        }
    }
}

/// Why a text is no policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongPolicy {
    /// The line, from 1.
    pub line: usize,
    /// What was found there, and what was expected.
    pub why: String,
}

impl fmt::Display for WrongPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl core::error::Error for WrongPolicy {}

/// A policy and its signature, as they were found. Nothing says yet that the signature is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncheckedPolicy<'a> {
    /// The text that was signed.
    pub signed: &'a str,
    /// The signature.
    pub signature: [u8; SIGNATURE_BYTES],
}

impl<'a> UncheckedPolicy<'a> {
    /// Splits a signed policy; reads nothing of what was signed.
    ///
    /// # Errors
    /// It is too long, is no text, or does not end with a signature.
    pub fn split(bytes: &'a [u8]) -> Result<Self, WrongPolicy> {
        let wrong = |why: String| WrongPolicy { line: 1, why };
        if bytes.len() > POLICY_BYTES_MAX {
            let found = bytes.len();
            return Err(wrong(format!(
                "found {found} bytes, expected at most {POLICY_BYTES_MAX}"
            )));
        }
        let text = core::str::from_utf8(bytes).map_err(|_| wrong("is not text".to_owned()))?;
        let last = text
            .trim_end_matches('\n')
            .rfind('\n')
            .map_or(0, |at| at + 1);
        let (signed, end) = text.split_at(last);
        let digits = end.trim_end_matches('\n').strip_prefix("signature ");
        let signature = digits.and_then(hex).ok_or_else(|| WrongPolicy {
            line: signed.lines().count() + 1,
            why: "expected 'signature' and 128 hexadecimal digits".to_owned(),
        })?;
        Ok(Self { signed, signature })
    }
}

fn hex(digits: &str) -> Option<[u8; SIGNATURE_BYTES]> {
    let digits = digits.as_bytes();
    let mut bytes = [0; SIGNATURE_BYTES];
    if digits.len() != 2 * SIGNATURE_BYTES {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        for digit in pair {
            let value = char::from(*digit).to_digit(16)?;
            *byte = (*byte << 4) | value as u8;
        }
    }
    Some(bytes)
}

impl Policy {
    /// What holds for a service; `None`: nothing.
    #[must_use]
    pub fn of(&self, service: &str) -> Option<&ServicePolicy> {
        ServicePolicy::of(&self.services, service)
    }

    /// The text with its signature.
    #[must_use]
    pub fn with_signature(&self, signature: &[u8; SIGNATURE_BYTES]) -> String {
        let mut text = format!("{self}signature ");
        for byte in signature {
            text += &format!("{byte:02x}");
        }
        text.push('\n');
        text
    }

    /// Reads the lines that are signed.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &str) -> Result<Self, WrongPolicy> {
        let mut policy = Self::default();
        let mut seen = Seen::default();
        for (index, line) in text.lines().enumerate() {
            let wrong = |why: String| WrongPolicy {
                line: index + 1,
                why,
            };
            match index {
                0 if line == FIRST_LINE => {}
                0 => return Err(wrong(format!("found {line:?}, expected {FIRST_LINE:?}"))),
                _ => policy.take(line, &mut seen).map_err(wrong)?,
            }
        }
        match seen {
            Seen {
                serial: true,
                until: true,
            } => Ok(policy),
            _ => Err(WrongPolicy {
                line: text.lines().count() + 1,
                why: "expected lines with 'serial' and 'until'".to_owned(),
            }),
        }
    }

    fn take(&mut self, line: &str, seen: &mut Seen) -> Result<(), String> {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        match (key, self.services.last_mut()) {
            ("serial", None) if !seen.serial => {
                (self.serial, seen.serial) = (number(value)?, true);
            }
            ("until", None) if !seen.until => (self.until_s, seen.until) = (number(value)?, true),
            ("service", _) => self.begin(value)?,
            (_, Some(service)) => service.take(key, value, line)?,
            _ => {
                return Err(format!(
                    "found {line:?}, expected 'serial', 'until' or 'service'"
                ));
            }
        }
        Ok(())
    }

    fn begin(&mut self, service: &str) -> Result<(), String> {
        if service.is_empty() || self.services.iter().any(|one| one.service == service) {
            return Err(format!(
                "found service {service:?}, expected a name that no other section has"
            ));
        }
        self.services.push(ServicePolicy {
            service: service.to_owned(),
            ..ServicePolicy::default()
        });
        Ok(())
    }
}

/// Lines that come once.
#[derive(Default)]
struct Seen {
    serial: bool,
    until: bool,
}

fn number(text: &str) -> Result<u64, String> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let read = text.parse().ok().filter(|_| is_plain);
    read.ok_or_else(|| format!("found {text:?}, expected a whole number"))
}

impl ServicePolicy {
    /// The section that holds for a service; `None`: there is none.
    #[must_use]
    pub fn of<'a>(all: &'a [Self], service: &str) -> Option<&'a Self> {
        let named = |name: &str| all.iter().find(|one| one.service == name);
        named(service).or_else(|| named(ANY_SERVICE))
    }

    fn take(&mut self, key: &str, value: &str, line: &str) -> Result<(), String> {
        match (key, value) {
            ("budget", _) if self.budget.bytes_per_hour.is_none() => {
                self.budget.bytes_per_hour = Some(number(value)?);
            }
            ("burst", _) if self.budget.burst.is_none() => self.budget.burst = Some(number(value)?),
            ("enable" | "disable", _) => self.add_rule(line)?,
            _ => {
                return Err(format!(
                    "found {line:?}, expected 'enable', 'disable', one 'budget' or one 'burst'"
                ));
            }
        }
        Ok(())
    }

    /// Adds a rule in the words of a request to a session.
    ///
    /// # Errors
    /// It is no such request, or there are too many.
    pub fn add_rule(&mut self, rule: &str) -> Result<(), String> {
        let request = SessionRequest::parse(rule).map_err(|wrong| format!("{wrong}"))?;
        let Some(request @ SessionRequest::Switch(..)) = request else {
            return Err(format!("found {rule:?}, expected 'enable' or 'disable'"));
        };
        self.rules.push(format!("{request}"));
        let bytes: usize = self.rules.iter().map(|rule| rule.len() + 1).sum();
        match bytes <= RULES_BYTES_MAX {
            true => Ok(()),
            false => Err(format!(
                "found {bytes} bytes of rules for service {:?}, expected at most {RULES_BYTES_MAX}",
                self.service
            )),
        }
    }
}

impl fmt::Display for Policy {
    /// The lines that are signed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{FIRST_LINE}")?;
        writeln!(f, "serial {}\nuntil {}", self.serial, self.until_s)?;
        for service in &self.services {
            writeln!(f, "service {}", service.service)?;
            for rule in &service.rules {
                writeln!(f, "{rule}")?;
            }
            let Budget {
                bytes_per_hour,
                burst,
            } = service.budget;
            for (key, bytes) in [("budget", bytes_per_hour), ("burst", burst)] {
                if let Some(bytes) = bytes {
                    writeln!(f, "{key} {bytes}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ringmark-policy 1\nserial 7\nuntil 99\nservice *\ndisable noise.*\n\
        service shop\ndisable *\nenable * level=warn\nbudget 1000\nburst 10\n";

    #[test]
    fn what_is_written_is_read() {
        let policy = Policy::parse(TEXT).unwrap();
        assert_eq!((policy.serial, policy.until_s), (7, 99));
        assert_eq!(format!("{policy}"), TEXT);
        let shop = policy.of("shop").unwrap();
        assert_eq!(shop.rules, ["disable *", "enable * level=warn"]);
        assert_eq!(shop.budget.bytes_per_hour, Some(1000));
        assert_eq!(policy.of("other").unwrap().rules, ["disable noise.*"]);
        assert_eq!(Policy::default().of("shop"), None);
        let signed = policy.with_signature(&[0xA5; 64]);
        let split = UncheckedPolicy::split(signed.as_bytes()).unwrap();
        assert_eq!((split.signed, split.signature), (TEXT, [0xA5; 64]));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line, expected) in [
            ("", 1, "'serial' and 'until'"),
            ("ringmark-policy 2\n", 1, "expected \"ringmark-policy 1\""),
            ("ringmark-policy 1\nserial 1\n", 3, "'serial' and 'until'"),
            ("ringmark-policy 1\nserial -1\n", 2, "a whole number"),
            ("ringmark-policy 1\nserial +1\n", 2, "a whole number"),
            (
                "ringmark-policy 1\nserial 99999999999999999999\n",
                2,
                "a whole number",
            ),
            ("ringmark-policy 1\nserial 1\nserial 2\n", 3, "'service'"),
            ("ringmark-policy 1\nbudget 1\n", 2, "'service'"),
            ("ringmark-policy 1\nservice \n", 2, "a name"),
            (
                "ringmark-policy 1\nservice a\nservice a\n",
                3,
                "no other section",
            ),
            ("ringmark-policy 1\nservice a\nserial 1\n", 3, "'enable'"),
            (
                "ringmark-policy 1\nservice a\ndisable\n",
                3,
                "a pattern is missing",
            ),
            (
                "ringmark-policy 1\nservice a\ndisable x level=loud\n",
                3,
                "level",
            ),
            ("ringmark-policy 1\nservice a\nfilter info\n", 3, "'enable'"),
            (
                "ringmark-policy 1\nservice a\nbudget 1\nbudget 2\n",
                4,
                "one 'budget'",
            ),
        ] {
            let wrong = Policy::parse(text).unwrap_err();
            assert_eq!(wrong.line, line, "{text:?}");
            assert!(wrong.why.contains(expected), "{text:?}: {wrong}");
        }
        let long = format!("{}disable {}\n", TEXT, "x".repeat(RULES_BYTES_MAX));
        assert!(
            Policy::parse(&long)
                .unwrap_err()
                .why
                .contains("at most 1536")
        );
    }

    #[test]
    fn bytes_without_a_signature_are_no_policy() {
        let signed = Policy::parse(TEXT).unwrap().with_signature(&[1; 64]);
        for end in 0..signed.len() - 1 {
            assert!(
                UncheckedPolicy::split(&signed.as_bytes()[..end]).is_err(),
                "{end}"
            );
        }
        for bytes in [
            &b"\xFF\n"[..],
            b"signature \n",
            b"\n\n",
            &[b'x'; POLICY_BYTES_MAX + 1],
        ] {
            assert!(UncheckedPolicy::split(bytes).is_err());
        }
        // Digits of more bytes than one each.
        let odd = format!("signature {}\n", "\u{e9}".repeat(64));
        assert!(UncheckedPolicy::split(odd.as_bytes()).is_err());
    }

    #[test]
    fn of_two_budgets_the_smaller_counts() {
        let budget = |bytes_per_hour, burst| Budget {
            bytes_per_hour,
            burst,
        };
        let both = budget(Some(9), None).and(budget(Some(5), Some(1)));
        assert_eq!(both, budget(Some(5), Some(1)));
        assert_eq!(
            budget(None, None).and(budget(None, Some(3))),
            budget(None, Some(3))
        );
    }
}
