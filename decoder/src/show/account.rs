//! The account of a trace file, as lines of text and as a JSON object.

use std::fmt::{self, Write as _};

use crate::sums::verify::Verification;
use crate::words::escape;
use crate::words::number::json_unsigned;
use crate::words::timestamp::Stamper;

impl Verification {
    fn numbers(&self) -> [(&'static str, u64); 18] {
        [
            ("events", self.events),
            ("lost", self.lost),
            ("overwritten", self.overwritten),
            ("missing", self.missing),
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

    /// The account as one JSON object: the counts, `lost_by_cause`, `damage` (texts), `first_ts`
    /// and `last_ts` (UTC, or null), `complete`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = b"{".to_vec();
        for (name, number) in self.numbers() {
            escape::json(name.as_bytes(), &mut out);
            out.push(b':');
            json_unsigned(number, &mut out);
            out.push(b',');
        }
        out.extend_from_slice(b"\"lost_by_cause\":{");
        for (i, lost) in self.lost_by_cause.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            escape::json(lost.cause.as_bytes(), &mut out);
            out.push(b':');
            json_unsigned(lost.events, &mut out);
        }
        out.extend_from_slice(b"},\"damage\":[");
        for (i, damage) in self.damage.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            escape::json(damage.to_string().as_bytes(), &mut out);
        }
        out.push(b']');
        for (name, ns) in [("first_ts", self.first_ns), ("last_ts", self.last_ns)] {
            out.push(b',');
            escape::json(name.as_bytes(), &mut out);
            out.push(b':');
            match ns {
                Some(ns) => escape::json(Stamper::default().stamp(ns), &mut out),
                None => out.extend_from_slice(b"null"),
            }
        }
        out.extend_from_slice(b",\"clock_error_ns\":");
        match self.clock_error_ns {
            Some(ns) => json_unsigned(ns, &mut out),
            None => out.extend_from_slice(b"null"),
        }
        let (left_out, schemas) = (self.left_out, self.incomplete_schemas);
        let last = format!(",\"left_out\":{left_out},\"incomplete_schemas\":{schemas}");
        let last = format!("{last},\"unknown_blocks\":{}", self.unknown_blocks);
        let complete = format!("{last},\"complete\":{}}}", self.complete);
        out.extend_from_slice(complete.as_bytes());
        String::from_utf8_lossy(&out).into_owned()
    }
}

impl fmt::Display for Verification {
    /// One `name: value` per line; damage at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = String::new();
        for (name, number) in self.numbers() {
            writeln!(lines, "{name}: {number}")?;
            if name == "lost" {
                for lost in &self.lost_by_cause {
                    writeln!(lines, "  {}: {}", lost.cause, lost.events)?;
                }
            }
        }
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
        if self.incomplete_schemas > 0 {
            let number = self.incomplete_schemas;
            writeln!(
                lines,
                "incomplete_schemas: {number}: no room to describe all event types; \
                 a larger session has it (session_bytes, or session= in RINGMARK)"
            )?;
        }
        if self.unknown_blocks > 0 {
            let number = self.unknown_blocks;
            writeln!(
                lines,
                "unknown_blocks: {number}: a newer version wrote them, and reads them"
            )?;
        }
        let complete = if self.complete { "yes" } else { "no" };
        writeln!(lines, "complete: {complete}")?;
        for damage in &self.damage {
            writeln!(lines, "damage: {damage}")?;
        }
        f.write_str(&lines)
    }
}
