//! Who may not come, whatever they prove.

use std::str::FromStr;

/// A host that may not come, or a certificate that is not accepted any more.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum DenyRule {
    /// The host of this name, in lower case.
    Host(String),
    /// The certificate of this serial number, in lower case and without zeros in front.
    Serial(String),
}

/// What stands before a serial number.
const SERIAL: &str = "serial:";

/// A rule that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a host, or serial: and the number that 'openssl x509 -serial' prints")]
pub struct BadRule;

impl DenyRule {
    /// The rule for a host.
    #[must_use]
    pub fn host(name: &str) -> Self {
        Self::Host(name.to_ascii_lowercase())
    }
}

impl FromStr for DenyRule {
    type Err = BadRule;

    fn from_str(text: &str) -> Result<Self, BadRule> {
        let Some(number) = text.strip_prefix(SERIAL) else {
            return match text.is_empty() || text.contains(':') {
                true => Err(BadRule),
                false => Ok(Self::host(text)),
            };
        };
        let digits: String = number.chars().filter(|c| *c != ':').collect();
        let digits = digits.trim_start_matches('0').to_ascii_lowercase();
        let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
        is_number.then_some(Self::Serial(digits)).ok_or(BadRule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_a_host_or_a_certificate() {
        let rule = |text: &str| text.parse::<DenyRule>();
        assert_eq!(rule("Web-1"), Ok(DenyRule::Host("web-1".to_owned())));
        let serial = DenyRule::Serial("a1b2".to_owned());
        for same in ["serial:00A1B2", "serial:a1:b2"] {
            assert_eq!(rule(same), Ok(serial.clone()), "{same}");
        }
        for wrong in ["", "serial:", "serial:0", "serial:xy", "sha256:ab"] {
            assert_eq!(rule(wrong), Err(BadRule), "{wrong}");
        }
    }
}
