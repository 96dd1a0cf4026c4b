//! Which event types are enabled: directives at start, patterns at run time.
//!
//! | directive | effect |
//! | --- | --- |
//! | `info` | types of every target up to this level |
//! | `hyper=debug` | types whose target starts with `hyper`, up to this level |
//! | `hyper` | all types whose target starts with `hyper` |
//! | `off`, `hyper=off` | none |
//! | `order[id=42]=debug` | types up to this level inside spans `order` whose field `id` is 42, and those spans |
//! | `order{id}` | all types inside spans `order` that have a field `id` |
//! | `db[order{id=42}]=debug` | as in `EnvFilter`: inside such spans, types whose target starts with `db` |
//! | `[order]` | as in `EnvFilter`: all types inside spans `order` |
//!
//! The longest target that matches decides, whatever the order. A list that starts with
//! `TARGET=LEVEL`, or with a span, leaves everything else disabled, unless a bare level follows. What is enabled inside
//! a span only is enabled besides what the other directives say.

use ringmark_format::glob;
use ringmark_format::span_condition::SpanCondition;

use crate::description::{EventType, Level};

/// `level` and `target=level` directives; the longest matching target decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directives {
    default: Option<Level>,
    targets: Vec<(String, Option<Level>)>,
    spans: Vec<InSpan>,
}

/// What is enabled inside certain spans.
#[derive(Debug, Clone, PartialEq, Eq)]
struct InSpan {
    condition: SpanCondition,
    target: String,
    level: Option<Level>,
}

/// What a directive may be.
pub(crate) const EXPECTED: &str = "LEVEL, TARGET=LEVEL or SPAN[FIELD=VALUE]=LEVEL";

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
            spans: Vec::new(),
        };
        let mut any = false;
        for part in parts(text) {
            if part.contains(['[', '{']) {
                directives.spans.push(InSpan::parse(part)?);
                if !any {
                    directives.default = None;
                }
                any = true;
                continue;
            }
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
        if !self.spans.is_empty() {
            // The spans themselves may have any level.
            return Some(Level::Trace);
        }
        let levels = self.targets.iter().map(|(_, level)| *level);
        levels.chain([self.default]).max().flatten()
    }

    /// The conditions that it has.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &SpanCondition> {
        self.spans.iter().map(|one| &one.condition)
    }

    /// The conditions of spans inside which events of this target and level are on.
    pub(crate) fn enables_inside(
        &self,
        target: &str,
        level: Level,
    ) -> impl Iterator<Item = &SpanCondition> {
        let speaks = move |one: &&InSpan| {
            target.starts_with(one.target.as_str()) && one.level.is_some_and(|most| level <= most)
        };
        self.spans.iter().filter(speaks).map(|one| &one.condition)
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

/// The directives of a list: parts between commas that stand in no brackets.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    let between = move |character| {
        match character {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            _ => {}
        }
        character == ',' && depth <= 0
    };
    text.split(between)
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

impl InSpan {
    /// Parses `SPAN[FIELD=VALUE]=LEVEL`, or as `EnvFilter` has it `TARGET[SPAN{FIELD=VALUE}]=LEVEL`; without a
    /// level: all of them.
    fn parse(part: &str) -> Result<Self, DirectiveError> {
        let wrong = || DirectiveError {
            found: part.to_owned(),
        };
        let end = part.rfind([']', '}']).ok_or_else(wrong)? + 1;
        let (spans, rest) = part.split_at(end);
        let level = match rest.strip_prefix('=') {
            Some(level) => parse_level(level, part)?,
            None if rest.is_empty() => Some(Level::Trace),
            None => return Err(wrong()),
        };
        let (target, condition) = split_target(spans);
        Ok(Self {
            condition: SpanCondition::parse(condition).ok_or_else(wrong)?,
            target: target.to_owned(),
            level,
        })
    }
}

/// Target and condition: square brackets that hold a name, with or without braces, are `EnvFilter`'s.
fn split_target(spans: &str) -> (&str, &str) {
    let inside = spans.split_once('[').and_then(|(target, rest)| {
        let inside = rest.strip_suffix(']')?;
        let name = inside.split('{').next()?;
        (!name.contains('=') || inside.starts_with('{')).then_some((target, inside))
    });
    inside.unwrap_or(("", spans))
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
    /// Inside such spans only.
    pub(crate) inside: Option<SpanCondition>,
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
        let inside = later.inside.is_none() || self.inside == later.inside;
        name && level && category && inside
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
            inside: None,
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
        assert!(Directives::parse("span[{x=1}=info").is_err());
    }

    #[test]
    fn directives_with_spans_stand_beside_the_others() {
        let inside = |text: &str, target, level| -> Vec<String> {
            let directives = Directives::parse(text).expect(text);
            let conditions = directives.enables_inside(target, level);
            conditions.map(ToString::to_string).collect()
        };
        for (text, target, level, conditions) in [
            ("order[id=42]=debug", "app", Level::Debug, "order[id=42]"),
            ("order[id=42]=debug", "app", Level::Trace, ""),
            (
                "order[id=42,user=7]",
                "app",
                Level::Trace,
                "order[id=42,user=7]",
            ),
            (
                "db[order{id=42}]=info",
                "db::pool",
                Level::Info,
                "order[id=42]",
            ),
            ("db[order{id=42}]=info", "app", Level::Info, ""),
            ("[order]=warn", "app", Level::Warn, "order"),
            ("[{id=42}]", "app", Level::Warn, "*[id=42]"),
            (
                "info,order{id=42}=debug,noisy=off",
                "app",
                Level::Debug,
                "order[id=42]",
            ),
        ] {
            assert_eq!(inside(text, target, level).join(" "), conditions, "{text}");
        }
        let alone = Directives::parse("order[id=42]=debug").unwrap();
        assert!(!alone.enables("app", Level::Error));
        let besides = Directives::parse("info,order[id=42]=debug").unwrap();
        assert!(besides.enables("app", Level::Info) && !besides.enables("app", Level::Debug));
        for text in [
            "order[id=42]=loud",
            "order[id=42",
            "order]",
            "order[id=42]debug",
            "[=1]",
        ] {
            assert!(Directives::parse(text).is_err(), "{text}");
        }
    }
}
