//! The account of a trace file, as lines of text and as a JSON object.

use std::fmt::{self, Write as _};

use crate::show::json_keys::{self, key, number};
use crate::sums::verify::Verification;
use crate::words::escape;
use crate::words::number::unsigned;
use crate::words::timestamp::Stamper;

impl Verification {
    fn numbers(&self) -> [(&'static str, u64); 19] {
        [
            ("events", self.events),
            ("lost", self.lost),
            ("overwritten", self.overwritten),
            ("missing", self.missing),
            ("removed", self.removed),
            ("cancelled", self.cancelled),
            ("uncommitted", self.uncommitted),
            ("reserved", self.reserved),
            ("backward", self.backward),
            ("clock_steps", self.clock_steps),
            ("sessions", self.sessions),
            ("rings", self.rings),
            ("pages", self.pages),
            ("repeated", self.repeated),
            ("conflicts", self.conflicts),
            ("contradictions", self.contradictions),
            ("removed_segments", self.removed_segments),
            ("cut_off", self.cut_off),
            ("damaged", self.damage.len() as u64),
        ]
    }

    /// The account as one JSON object, kind `verification`. `format-spec/JSON.md` describes it.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = Vec::new();
        json_keys::no_head(&mut out);
        key("kind", &mut out);
        escape::json(b"verification", &mut out);
        for (name, number) in self.numbers() {
            key(name, &mut out);
            unsigned(number, &mut out);
        }
        for (name, n) in [
            ("late", self.late),
            ("unknown", self.unknown),
            ("left_out", self.left_out),
            ("incomplete_schemas", self.incomplete_schemas),
            ("unwritten_profiles", self.unwritten_profiles),
            ("uncounted_calls", self.uncounted_calls),
            ("functions_switched_off", self.functions_switched_off),
            ("ring_wait_ns", self.ring_wait_ns),
            ("unknown_blocks", self.unknown_blocks),
        ] {
            key(name, &mut out);
            unsigned(n, &mut out);
        }
        key("clock_error_ns", &mut out);
        number(self.clock_error_ns, &mut out);
        for (name, ns) in [("first_ts_ns", self.first_ns), ("last_ts_ns", self.last_ns)] {
            key(name, &mut out);
            let digits = ns.map(|ns| ns.to_string()).unwrap_or_default();
            json_keys::text(digits.as_bytes(), &mut out);
        }
        key("complete", &mut out);
        out.extend_from_slice(self.complete.to_string().as_bytes());
        key("lost_by_cause", &mut out);
        let causes = self.lost_by_cause.iter();
        list(causes, &mut out, |lost, out| {
            out.extend_from_slice(b"{\"cause\":");
            escape::json(lost.cause.as_bytes(), out);
            key("count", out);
            unsigned(lost.events, out);
            out.push(b'}');
        });
        key("damage", &mut out);
        list(self.damage.iter(), &mut out, |damage, out| {
            escape::json(damage.to_string().as_bytes(), out);
        });
        key("endings", &mut out);
        list(self.endings.iter(), &mut out, |end, out| {
            out.extend_from_slice(end.to_json().as_bytes());
        });
        out.push(b'}');
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// Appends `[…]`, each item as `one` writes it.
fn list<T>(items: impl Iterator<Item = T>, out: &mut Vec<u8>, one: impl Fn(T, &mut Vec<u8>)) {
    out.push(b'[');
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        one(item, out);
    }
    out.push(b']');
}

impl fmt::Display for Verification {
    /// One `name: value` per line; damage at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, |_| true)
    }
}

/// Figures that a person looks for also where they are 0.
const ALWAYS: [&str; 3] = ["events", "lost", "missing"];

impl Verification {
    /// The account for a person: as [`fmt::Display`] writes it, without what is 0 and dull.
    ///
    /// Figures of trouble, such as pages that conflict, are there only where there is some. The
    /// numbers of events, lost events and missing events are always there.
    #[must_use]
    pub fn brief(&self) -> String {
        let mut text = String::new();
        // A string takes all that is written to it.
        let _ = self.write(&mut text, |(name, number)| {
            number > 0 || ALWAYS.contains(&name)
        });
        text
    }

    /// Writes the figures that `is_shown` wants, then all the rest.
    fn write(
        &self,
        f: &mut impl fmt::Write,
        is_shown: impl Fn((&'static str, u64)) -> bool,
    ) -> fmt::Result {
        let mut lines = String::new();
        for (name, number) in self.numbers().into_iter().filter(|one| is_shown(*one)) {
            writeln!(lines, "{name}: {number}")?;
            if name == "lost" {
                for lost in &self.lost_by_cause {
                    writeln!(lines, "  {}: {}", lost.cause, lost.events)?;
                }
            }
        }
        self.write_late(&mut lines)?;
        if self.left_out > 0 {
            writeln!(lines, "left_out: {}", self.left_out)?;
        }
        if let Some(ns) = self.clock_error_ns {
            writeln!(lines, "clock_error_ns: {ns}")?;
        }
        for (name, ns) in [("first", self.first_ns), ("last", self.last_ns)] {
            if let Some(ns) = ns {
                let mut stamper = Stamper::default();
                let text = String::from_utf8_lossy(stamper.stamp(ns)).into_owned();
                writeln!(lines, "{name}: {text}")?;
            }
        }
        self.write_left_out(&mut lines)?;
        for end in &self.endings {
            writeln!(lines, "ended: {end}")?;
        }
        let complete = match self.complete {
            true => "yes, each event is here or counted",
            false => "no, there may be more events than these",
        };
        writeln!(lines, "complete: {complete}{}", self.not_here())?;
        for damage in &self.damage {
            writeln!(lines, "damage: {damage}")?;
        }
        f.write_str(&lines)
    }

    /// `: 95.2 % are not here`, or nothing.
    fn not_here(&self) -> String {
        let gone = self.lost.saturating_add(self.missing);
        let all = self.events.saturating_add(gone);
        match gone {
            0 => String::new(),
            _ => format!(": {:.1} % are not here", gone as f64 * 100.0 / all as f64),
        }
    }

    /// Writes what the programs and this version left out, if there is any.
    fn write_left_out(&self, lines: &mut String) -> fmt::Result {
        for (name, number, why) in [
            (
                "incomplete_schemas",
                self.incomplete_schemas,
                "no room to describe all event types; \
                 a larger session has it (session_bytes, or session= in RINGMARK)",
            ),
            (
                "unwritten_profiles",
                self.unwritten_profiles,
                "their processes ended by _exit, exec or a signal, or go on",
            ),
            (
                "uncounted_calls",
                self.uncounted_calls,
                "of threads that could not be set up to count",
            ),
            (
                "functions_switched_off",
                self.functions_switched_off,
                "for their cost, so their later calls are not here; --budget off records all",
            ),
            (
                "ring_wait_ns",
                self.ring_wait_ns,
                "so long a thread waited for its ring, at its first event",
            ),
            (
                "unknown_blocks",
                self.unknown_blocks,
                "a newer version wrote them, and reads them",
            ),
        ] {
            if number > 0 {
                writeln!(lines, "{name}: {number}: {why}")?;
            }
        }
        Ok(())
    }

    /// Writes what may still come, if there is any.
    fn write_late(&self, lines: &mut String) -> fmt::Result {
        for (name, number, why) in [
            (
                "late",
                self.late,
                "sent, or still to be sent, and not here yet",
            ),
            (
                "unknown",
                self.unknown,
                "not here, and their hosts have been silent since",
            ),
        ] {
            if number > 0 {
                writeln!(lines, "{name}: {number}: {why}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters come from files that may say anything.
    #[test]
    fn the_largest_counts_are_shown() {
        let all = Verification {
            events: u64::MAX,
            lost: u64::MAX,
            missing: u64::MAX,
            ..Verification::default()
        };
        let text = all.to_string();
        assert!(text.contains("100.0 % are not here"), "{text}");
    }
}
