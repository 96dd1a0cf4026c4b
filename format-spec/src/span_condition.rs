//! Conditions on spans: which spans are meant by a filter that says "inside such a span only".
//!
//! | text | spans that are meant |
//! | --- | --- |
//! | `order` | those whose name matches the pattern `order` |
//! | `order[id=42]`, `order{id=42}` | of these, those whose field `id` is 42 |
//! | `order[id=42,user]` | of these, those that have a field `user`, too |
//! | `{id=42}` | spans of any name whose field `id` is 42 |
//!
//! A number is compared as a number of the field's kind, `true` and `false` with a `bool`, and a text as a pattern
//! ([`crate::glob`]), which may stand in `"`.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::glob;

/// Which spans are meant.
///
/// ```
/// use ringmark_format::span_condition::{SpanCondition, SpanValue};
///
/// let condition = SpanCondition::parse("order[id=42]").unwrap();
/// assert_eq!(condition.to_string(), "order[id=42]");
/// assert!(condition.fields[0].is(SpanValue::U64(42)));
/// assert!(SpanCondition::parse("order[id=42").is_none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanCondition {
    /// Pattern of their names.
    pub name: String,
    /// What their fields are; all of it.
    pub fields: Vec<FieldCondition>,
}

/// What a field of a span is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldCondition {
    /// Its name.
    pub name: String,
    /// Its value, as text; `None`: any.
    pub value: Option<String>,
}

/// A value of a field, to be compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SpanValue<'a> {
    /// An unsigned integer.
    U64(u64),
    /// A signed integer.
    I64(i64),
    /// A wide unsigned integer.
    U128(u128),
    /// A wide signed integer.
    I128(i128),
    /// A number with a fraction.
    F64(f64),
    /// Yes or no.
    Bool(bool),
    /// A text.
    Text(&'a [u8]),
    /// Something that cannot be compared, such as an array.
    Other,
}

impl SpanCondition {
    /// Parses a condition; `None`: it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (name, fields) = match text.find(['[', '{']) {
            Some(at) => (&text[..at], inside_brackets(&text[at..])?),
            None => (text, ""),
        };
        if name.is_empty() && fields.is_empty() || name.contains([']', '}', '=', ',', '"']) {
            return None;
        }
        let fields = fields
            .split(',')
            .map(str::trim)
            .filter(|field| !field.is_empty());
        Some(Self {
            name: if name.is_empty() { "*" } else { name }.to_owned(),
            fields: fields.map(FieldCondition::parse).collect::<Option<_>>()?,
        })
    }

    /// Whether it may mean spans of this name with these fields.
    pub fn is_of<'f>(&self, name: &str, fields: impl Iterator<Item = &'f str> + Clone) -> bool {
        glob::matches(self.name.as_bytes(), name.as_bytes())
            && (self.fields.iter()).all(|field| fields.clone().any(|other| other == field.name))
    }
}

/// What stands between the brackets around the whole text.
fn inside_brackets(text: &str) -> Option<&str> {
    let square = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let curly = || {
        text.strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
    };
    square
        .or_else(curly)
        .filter(|inside| !inside.contains(['[', ']', '{', '}']))
}

impl fmt::Display for SpanCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (at, field) in self.fields.iter().enumerate() {
            let before = if at == 0 { "[" } else { "," };
            write!(f, "{before}{}", field.name)?;
            if let Some(value) = &field.value {
                write!(f, "={value}")?;
            }
        }
        f.write_str(if self.fields.is_empty() { "" } else { "]" })
    }
}

impl FieldCondition {
    fn parse(text: &str) -> Option<Self> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
            None => (text, None),
        };
        let name = name.to_owned();
        (!name.is_empty()).then_some(Self { name, value })
    }

    /// Whether this value of the field is meant.
    #[must_use]
    pub fn is(&self, value: SpanValue<'_>) -> bool {
        let Some(wanted) = self.value.as_deref() else {
            return true;
        };
        match value {
            SpanValue::U64(value) => wanted.parse() == Ok(value),
            SpanValue::I64(value) => wanted.parse() == Ok(value),
            SpanValue::U128(value) => wanted.parse() == Ok(value),
            SpanValue::I128(value) => wanted.parse() == Ok(value),
            SpanValue::F64(value) => wanted.parse() == Ok(value),
            SpanValue::Bool(value) => wanted.parse() == Ok(value),
            SpanValue::Text(text) => glob::matches(unquoted(wanted).as_bytes(), text),
            SpanValue::Other => false,
        }
    }
}

/// A text without the quotation marks around it.
fn unquoted(text: &str) -> &str {
    let inside = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    inside.unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::{SpanCondition, SpanValue};

    #[test]
    fn texts_are_conditions_or_not() {
        for (text, shown) in [
            ("order", "order"),
            ("order[id=42]", "order[id=42]"),
            ("order{id=42, user}", "order[id=42,user]"),
            ("{id=42}", "*[id=42]"),
            ("order[]", "order"),
            ("or*[name=\"a b\"]", "or*[name=\"a b\"]"),
        ] {
            let found = SpanCondition::parse(text).map(|condition| condition.to_string());
            assert_eq!(found.as_deref(), Some(shown), "{text}");
        }
        for text in [
            "", "[]", "a]", "a[", "a[b}", "a[b[c]]", "a[=1]", "a=1", "a[b]c",
        ] {
            assert_eq!(SpanCondition::parse(text), None, "{text}");
        }
    }

    #[test]
    fn values_are_compared_as_their_kind() {
        let is = |wanted: &str, value| {
            let condition = SpanCondition::parse(&alloc::format!("s[f={wanted}]")).expect(wanted);
            condition.fields[0].is(value)
        };
        assert!(is("42", SpanValue::U64(42)) && !is("42", SpanValue::U64(421)));
        assert!(is("-1", SpanValue::I64(-1)) && !is("-1", SpanValue::U64(u64::MAX)));
        assert!(is("2.50", SpanValue::F64(2.5)) && is("true", SpanValue::Bool(true)));
        assert!(is("/orders/*", SpanValue::Text(b"/orders/42")));
        assert!(is("\"42\"", SpanValue::Text(b"42")) && !is("42", SpanValue::Text(b"421")));
        assert!(!is("42", SpanValue::Other));
    }
}
