//! A condition on a field or on a duration, as `--where` has it: `status>=500`, `took>20ms`.

use ringmark_format::glob::matches as glob;

use crate::events::event::Event;
use crate::events::filter_error::FilterError;
use crate::events::span::Span;
use crate::trace_file::field::Field;
use crate::trace_file::function_words::FunctionWords;
use crate::trace_file::thread_times::ThreadTimes;
use crate::trace_file::value::Value;
use crate::words::duration::nanoseconds;

/// What a condition looks like, for errors.
const SHAPE: &str = "FIELD=VALUE, or FIELD with != < <= > >= and a value, such as took>20ms";
const NAME: &str = "the name of a field before the comparison, such as took>20ms";
const NUMBER: &str = "a number after < <= > >=, perhaps with ns, us, ms, s, min or h";
const VALUE: &str = "a value after the comparison, such as status=500";

const COMPARISONS: [(&str, Comparison); 7] = [
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("==", Comparison::Equal),
    ("=", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A field, a comparison and a value.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    pub(super) field: String,
    comparison: Comparison,
    text: String,
    number: Option<f64>,
    integer: Option<Integer>,
}

/// An integer of any kind that a field has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Integer {
    Small(i128),
    /// Above the largest `i128`.
    Large(u128),
}

impl Integer {
    fn of(number: u128) -> Self {
        i128::try_from(number).map_or(Self::Large(number), Self::Small)
    }

    const fn as_float(self) -> f64 {
        match self {
            Self::Small(n) => n as f64,
            Self::Large(n) => n as f64,
        }
    }
}

impl Condition {
    pub(super) fn parse(text: &str) -> Result<Self, FilterError> {
        let wrong = |rest: &str, expected| FilterError {
            what: "condition",
            text: text.to_owned(),
            at: Some(text.len() - rest.len()),
            expected,
        };
        let at = text.find(['=', '!', '<', '>']);
        let (field, rest) = text.split_at(at.ok_or_else(|| wrong("", SHAPE))?);
        let mut all = COMPARISONS.iter();
        let (value, comparison) = all
            .find_map(|(sign, c)| Some((rest.strip_prefix(sign)?, *c)))
            .ok_or_else(|| wrong(rest, SHAPE))?;
        let (field, at_value) = (field.trim(), value.trim_start());
        let value = at_value.trim_end();
        if field.is_empty() {
            return Err(wrong(rest, NAME));
        }
        let ordered = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        // `path=` asks for an empty text.
        if value.is_empty() && ordered {
            return Err(wrong("", VALUE));
        }
        let integer = parse_integer(value);
        let integer = integer.or_else(|| nanoseconds(value).map(|ns| Integer::of(ns.into())));
        let number = value.parse().ok().or(integer.map(Integer::as_float));
        let number = number.filter(|n: &f64| !n.is_nan());
        if ordered && number.is_none() {
            return Err(wrong(at_value, NUMBER));
        }
        Ok(Self {
            field: field.to_owned(),
            comparison,
            text: value.to_owned(),
            number,
            integer,
        })
    }

    /// Whether it needs to know how long what an event ends has taken.
    pub(super) fn asks_duration(&self) -> bool {
        self.field == "took" || part_called(&self.field).is_some()
    }

    /// Whether it holds for an event. `took_ns`: how long what the event ends has taken.
    pub(super) fn passes(&self, event: &Event<'_>, took_ns: Option<u64>) -> bool {
        let mut fields = event.ty.fields.iter();
        if let Some(field) = fields.find(|field| field.name == self.field.as_bytes()) {
            return self.holds(field, field.value(&event.payload));
        }
        if let Some(meaning) = event.ty.function
            && let Some(word) = FunctionWords::read(meaning, &event.payload).named(&self.field)
        {
            return self.compare(Value::U64(word));
        }
        let Some(ns) = took_ns else { return false };
        let number = match self.field.as_str() {
            "took" => Some(ns),
            name => part_called(name).and_then(|part| event.thread_times(ns).map(part)),
        };
        number.is_some_and(|number| self.compare(Value::U64(number)))
    }

    /// Whether it holds for a span with all its fields, or for a call with those of its entry and
    /// of its exit.
    pub(super) fn passes_span(&self, span: &Span<'_>) -> bool {
        let args = span.args();
        let named = |(field, _): &&(&Field, _)| field.name == self.field.as_bytes();
        if let Some((field, value)) = args.iter().find(named) {
            return self.holds(field, *value);
        }
        let number = match (self.field.as_str(), &span.entered) {
            ("took", _) => Some(span.total_ns),
            ("busy", Some(entered)) => Some(entered.busy_ns),
            ("idle", Some(entered)) => Some(entered.idle_ns),
            ("polls", Some(entered)) => Some(entered.polls),
            (name, _) => match part_called(name) {
                Some(part) => span.call_word(name).or(span.times.map(part)),
                None => span.call_word(name),
            },
        };
        number.is_some_and(|number| self.compare(Value::U64(number)))
    }

    fn holds(&self, field: &Field, value: Value<'_>) -> bool {
        if let Value::U64(number) = value
            && field.label(number).is_some_and(|l| self.text_is(l))
        {
            return self.comparison == Comparison::Equal;
        }
        self.compare(value)
    }

    fn text_is(&self, found: &[u8]) -> bool {
        glob(self.text.as_bytes(), found)
    }

    /// Compares a value with the text of the condition, by the kind of the value: numbers by order,
    /// texts and bytes by pattern. An array passes if one of its values does.
    fn compare(&self, value: Value<'_>) -> bool {
        let integer = match value {
            Value::U64(n) => Integer::of(n.into()),
            Value::I64(n) => Integer::Small(n.into()),
            Value::I128(n) => Integer::Small(n),
            Value::U128(n) => Integer::of(n),
            Value::F32(n) => return self.order_small_float(n),
            Value::F64(n) => return self.order_float(n),
            Value::Bool(b) => return self.equal(self.text == if b { "true" } else { "false" }),
            Value::Char(c) => return self.equal(self.text.chars().eq([c])),
            Value::Str(text) => return self.equal(self.text_is(text)),
            Value::Bytes(bytes) => {
                let mut hex = Vec::new();
                crate::words::escape::hex(bytes, &mut hex);
                return self.equal(self.text_is(&hex));
            }
            Value::Array(..) => return value.items().any(|item| self.compare(item)),
            Value::None => return self.equal(self.text == "none"),
            Value::Missing => return false,
        };
        match self.integer {
            Some(wanted) => self.order(Some(integer.cmp(&wanted))),
            None => self.order_float(integer.as_float()),
        }
    }

    fn equal(&self, equal: bool) -> bool {
        match self.comparison {
            Comparison::Equal => equal,
            Comparison::NotEqual => !equal,
            _ => false,
        }
    }

    /// The number that is wanted is rounded as the field's was: 0.1 is what is shown as 0.1.
    fn order_small_float(&self, found: f32) -> bool {
        let exact = self.text.parse::<f32>().ok();
        let wanted = exact.or(self.number.map(|wanted| wanted as f32));
        self.order(wanted.and_then(|wanted| found.partial_cmp(&wanted)))
    }

    fn order_float(&self, found: f64) -> bool {
        self.order(self.number.and_then(|wanted| found.partial_cmp(&wanted)))
    }

    fn order(&self, order: Option<std::cmp::Ordering>) -> bool {
        let Some(order) = order else {
            return self.comparison == Comparison::NotEqual;
        };
        match self.comparison {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// The part of what a thread did that is called so.
fn part_called(name: &str) -> Option<fn(ThreadTimes) -> u64> {
    Some(match name {
        "running" => |times| times.running_ns,
        "ready" => |times| times.ready_ns,
        "throttled" => |times| times.throttled_ns,
        "waiting" => |times| times.waiting_ns,
        "waits" => |times| times.waits,
        "preempted" => |times| times.preemptions,
        _ => return None,
    })
}

fn parse_integer(text: &str) -> Option<Integer> {
    if let Some(hex) = text.strip_prefix("0x") {
        return u128::from_str_radix(hex, 16).ok().map(Integer::of);
    }
    let small = text.parse().ok().map(Integer::Small);
    small.or_else(|| text.parse().ok().map(Integer::of))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Condition::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn errors_say_what_where_and_what_is_expected() {
        for (text, found) in [
            ("took", "it ends at character 5, expected FIELD=VALUE"),
            ("", "it ends at character 1, expected FIELD=VALUE"),
            (
                ">5",
                "found \">5\" at character 1, expected the name of a field",
            ),
            ("took>", "it ends at character 6, expected a value"),
            ("took>>5", "found \">5\" at character 6, expected a number"),
            (
                "took > 20 parsecs",
                "found \"20 parsecs\" at character 8, expected a number",
            ),
            (
                "took!5",
                "found \"!5\" at character 5, expected FIELD=VALUE",
            ),
            (
                "zeit\u{fc}<x",
                "found \"x\" at character 7, expected a number",
            ),
            // The end of a character would be the beginning of the value, counted from the end.
            ("2-041< \u{b5}s ", "at character 8, expected a number"),
            ("n<nan", "found \"nan\" at character 3, expected a number"),
        ] {
            assert!(error(text).contains(found), "{text}: {}", error(text));
        }
    }

    #[test]
    fn numbers_are_compared_as_they_are_shown() {
        let holds = |text: &str, value| Condition::parse(text).unwrap().compare(value);
        assert!(holds("f=0.1", Value::F32(0.1)));
        assert!(!holds("f<0.1", Value::F32(0.1)));
        assert!(holds("f>=0.1", Value::F32(0.1)));
        assert!(holds("f<20ms", Value::F32(19e6)));
        let large = u128::MAX - 1;
        let text = large.to_string();
        assert!(holds(&format!("n={text}"), Value::U128(large)));
        assert!(!holds(&format!("n={text}"), Value::U128(large - 1)));
        assert!(holds(&format!("n>{text}"), Value::U128(u128::MAX)));
        assert!(!holds(&format!("n>{text}"), Value::U128(large)));
        assert!(holds(&format!("n<{text}"), Value::I64(-1)));
        assert!(holds(
            "n=0xfffffffffffffffffffffffffffffffe",
            Value::U128(large)
        ));
    }

    #[test]
    fn units_are_exact() {
        for (text, ns) in [
            ("t=9007199254740993ns", 9_007_199_254_740_993_i128),
            ("t>20ms", 20_000_000),
            ("t>1.5us", 1_500),
            ("t>3\u{b5}s", 3_000),
            ("t<2 s", 2_000_000_000),
            ("t<0", 0),
            ("t>-3", -3),
        ] {
            let integer = Condition::parse(text).unwrap().integer;
            assert_eq!(integer, Some(Integer::Small(ns)), "{text}");
        }
        // More than there are: no time, so a text.
        assert_eq!(Condition::parse("t=99999999999h").unwrap().integer, None);
    }
}
