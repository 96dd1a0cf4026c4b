//! Which event types are enabled: directives at start, patterns at run time.
//!
//! | directive | effect |
//! | --- | --- |
//! | `info` | types of every target up to this level |
//! | `hyper=debug` | types whose target starts with `hyper`, up to this level |
//! | `hyper` | all types whose target starts with `hyper` |
//! | `off`, `hyper=off` | none |
//!
//! The longest target that matches decides, whatever the order. A list that starts with
//! `TARGET=LEVEL` leaves all other targets disabled, unless a bare level follows.

use ringmark_format::glob;

use crate::description::{EventType, Level};

/// `level` and `target=level` directives; the longest matching target decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directives {
    default: Option<Level>,
    targets: Vec<(String, Option<Level>)>,
}

/// A directive that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirectiveError {
    pub(crate) found: String,
}

impl Directives {
    /// Parses `info,hyper=debug,noisy=off`. Empty: everything is on.
    pub(crate) fn parse(text: &str) -> Result<Self, DirectiveError> {
        let mut directives = Self {
            default: Some(Level::Trace),
            targets: Vec::new(),
        };
        let mut any = false;
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            match part.split_once('=') {
                Some((target, level)) => {
                    directives
                        .targets
                        .push((target.to_owned(), parse_level(level, part)?));
                    if !any {
                        directives.default = None;
                    }
                }
                None => match parse_level(part, part) {
                    Ok(level) => directives.default = level,
                    // As in `EnvFilter`: a bare target turns all its levels on.
                    Err(error) if !is_target(part) => return Err(error),
                    Err(_) => directives
                        .targets
                        .push((part.to_owned(), Some(Level::Trace))),
                },
            }
            any = true;
        }
        Ok(directives)
    }

    /// The least important level that is on for some target.
    #[cfg(feature = "tracing")]
    pub(crate) fn level_max(&self) -> Option<Level> {
        let levels = self.targets.iter().map(|(_, level)| *level);
        levels.chain([self.default]).max().flatten()
    }

    /// Whether events of this target and level are on.
    pub(crate) fn enables(&self, target: &str, level: Level) -> bool {
        let speaks = |(prefix, _): &&(String, _)| target.starts_with(prefix.as_str());
        let found = self
            .targets
            .iter()
            .filter(speaks)
            .max_by_key(|(prefix, _)| prefix.len());
        let most = found.map_or(self.default, |(_, level)| *level);
        most.is_some_and(|most| level <= most)
    }
}

fn is_target(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '-' | '.'))
}

fn parse_level(text: &str, directive: &str) -> Result<Option<Level>, DirectiveError> {
    if text.eq_ignore_ascii_case("off") {
        return Ok(None);
    }
    let found = Level::ALL
        .iter()
        .find(|level| level.name().eq_ignore_ascii_case(text));
    found
        .map(|level| Some(*level))
        .ok_or_else(|| DirectiveError {
            found: directive.to_owned(),
        })
}

/// A change at run time: event types that match are switched on or off, also later ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) on: bool,
    pub(crate) name: String,
    pub(crate) level: Option<Level>,
    pub(crate) category: Option<String>,
}

impl Pattern {
    /// Whether the pattern speaks of this event type.
    pub(crate) fn matches(&self, event: &EventType) -> bool {
        let name = glob::matches(self.name.as_bytes(), event.name.as_bytes());
        let level = self.level.is_none_or(|most| event.level <= most);
        let category = self.category.as_deref().is_none_or(|c| c == event.category);
        name && level && category
    }

    /// Whether `later` speaks of all types that this one speaks of, as far as their texts tell.
    pub(crate) fn is_within(&self, later: &Self) -> bool {
        let is_any = !later.name.is_empty() && later.name.bytes().all(|byte| byte == b'*');
        let name = is_any || self.name == later.name;
        let level = later
            .level
            .is_none_or(|most| self.level.is_some_and(|level| level <= most));
        let category = later.category.is_none() || self.category == later.category;
        name && level && category
    }
}

#[cfg(test)]
mod tests {
    use super::{Directives, Level, Pattern};

    #[test]
    fn a_later_pattern_replaces_those_within_it() {
        let pattern = |name: &str, level, category: Option<&str>| Pattern {
            on: false,
            name: name.to_owned(),
            level,
            category: category.map(str::to_owned),
        };
        let one = pattern("db.*", Some(Level::Info), Some("net"));
        for within in [
            pattern("db.*", Some(Level::Info), Some("net")),
            pattern("db.*", None, None),
            pattern("*", Some(Level::Debug), None),
        ] {
            assert!(one.is_within(&within), "{within:?}");
        }
        for other in [
            pattern("db.query", None, None),
            pattern("*", Some(Level::Warn), None),
            pattern("*", None, Some("disk")),
            pattern("", None, None),
        ] {
            assert!(!one.is_within(&other), "{other:?}");
        }
        assert!(!pattern("a", None, None).is_within(&pattern("a", Some(Level::Trace), None)));
    }

    #[test]
    fn longest_target_decides() {
        let directives = Directives::parse("info,hyper=debug,hyper::proto=off").unwrap();
        assert!(directives.enables("app", Level::Info));
        assert!(!directives.enables("app", Level::Debug));
        assert!(directives.enables("hyper::client", Level::Debug));
        assert!(!directives.enables("hyper::proto::h1", Level::Error));
        assert!(Directives::parse("").unwrap().enables("any", Level::Trace));
        assert!(
            !Directives::parse("app=info")
                .unwrap()
                .enables("other", Level::Error)
        );
        assert!(Directives::parse("app=loud").is_err());
        assert!(Directives::parse("span[{x=1}]=info").is_err());
    }
}
