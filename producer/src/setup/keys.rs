//! The keys of `RINGMARK`, each with what it does: what parses them is what the reference shows.

use std::time::Duration;

use ringmark_format::session::{Clock, Mode};

use super::options::{Fork, Keep, OptionError, Options, wrong};

/// Shortest and longest time that a thread may be told to wait.
const WAIT_MIN: Duration = Duration::from_millis(1);
const WAIT_MAX: Duration = Duration::from_secs(10);

/// A key of `RINGMARK`, as the reference shows it.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// The value that it has if nothing is set.
    pub default: &'static str,
    /// Values that can be used: unit and range.
    pub values: &'static str,
    /// The effect, and when to change it.
    pub effect: &'static str,
}

/// Defines what sets each key, and [`KEYS`]. A key without a description does not compile.
macro_rules! keys {
    (
        ($options:ident, $value:ident)
        $($(#[doc = $effect:literal])+ $name:literal = $default:literal, $values:literal: $set:expr;)*
    ) => {
        /// Every key, in the order of the reference.
        pub const KEYS: &[Key] = &[$(Key {
            name: $name,
            default: $default,
            values: $values,
            effect: concat!($($effect),+),
        }),*];

        const NAMES: &str = concat!($($name, ", "),*);

        /// Sets one option.
        ///
        /// # Errors
        /// The key or its value cannot be used.
        pub(super) fn set($options: &mut Options, key: &str, $value: &str) -> Result<(), OptionError> {
            match key {
                $($name => $set,)*
                _ => return Err(wrong("RINGMARK", key, NAMES.split_at(NAMES.len() - 2).0)),
            }
            Ok(())
        }
    };
}

keys! {
    (options, value)
    /// What is lost when a ring is full. `overwrite` replaces the oldest events (flight recorder).
    /// `discard` keeps them and drops new ones until a reader frees pages. Both are counted.
    "mode" = "overwrite", "`overwrite`, `discard`": options.mode = parse_mode(value)?;
    /// Wanted size of a thread's ring. Increase it for a longer history (`overwrite`), or for longer
    /// bursts without loss (`discard`). Late threads get smaller rings when the session is half full.
    "ring" = "256K", "bytes: a multiple of 4K, from 8K": options.ring_bytes = parse_bytes("ring", value)?;
    /// Most bytes of the ring file; the default is 16M or eight rings, whichever is more. Increase it
    /// for many threads.
    "session" = "16M", "bytes: one ring to 1T":
        options.session_bytes = Some(parse_bytes("session", value)?);
    /// Unit of publishing, overwriting and moving. Smaller pages reach a collector sooner and cost a
    /// few per cent more space.
    "page" = "64K", "bytes: a power of two, 4K to 1M": options.page_bytes = parse_bytes("page", value)?;
    /// Source of time stamps. `tsc` is the processor's counter; `monotonic` the system's clock, more
    /// than twice as slow; `coarse` moves every few milliseconds; `none` records order only.
    "clock" = "tsc", "`tsc`, `monotonic`, `coarse`, `none`": options.clock = parse_clock(value)?;
    /// What happens to the ring file at the end. `crash` removes it after an exit with status 0 only,
    /// and not if a discard session has events that no reader took. It stays after a signal, another
    /// status, `_exit`, and where the C library does not report the status. `always` keeps it in any
    /// case, `never` removes it at every exit.
    "keep" = "crash", "`crash`, `always`, `never`": options.keep = parse_keep(value)?;
    /// A helper thread that prepares rings and answers tools. `off` leaves it out: no event types
    /// switched and no functions traced from outside, and new threads attach more slowly.
    "control" = "on", "a switch": options.control = parse_switch("control", value)?;
    /// Rings that are prepared before threads need them. Each costs about 0.1 ms at the start.
    /// Increase it for a program that starts many threads at once.
    "warm" = "4", "a number of rings":
        options.warm = value.parse().map_err(|_| wrong("warm", value, "a number"))?;
    /// How long a thread may wait for room in a full ring instead of losing its event: `ringmark run
    /// --wait 1s` sets it. With `mode=discard` only. No thread waits unless a reader takes the
    /// session's pages, or has announced that it will; [DESIGN.md](../../DESIGN.md) says when else
    /// none does.
    "wait" = "off", "`off`, or a time with its unit: 1ms to 10s": options.wait = parse_wait(value)?;
    /// Whether a forked child gets a session of its own at its first event.
    "fork" = "on", "a switch": options.fork = match parse_switch("fork", value)? {
        true => Fork::Follow,
        false => Fork::Off,
    };
    /// An anonymous file instead of a named one. No other process can shorten it. Only `-p PID` finds
    /// such a session, not `run`, `--all` or `--on-death`; nothing is left after the process's end,
    /// unless a recorder holds it.
    "memfd" = "off", "a switch": options.memfd = parse_switch("memfd", value)?;
    /// A handler for SIGBUS, so that the program survives if its named ring file is truncated. See
    /// [SECURITY.md](../../SECURITY.md).
    "guard" = "off", "a switch": options.guard = parse_switch("guard", value)?;
    /// An event for each panic of a Rust program, with message, file and line. `off` sets no panic
    /// hook, and keeps messages that hold secrets out of the trace.
    "panic" = "on", "a switch": options.panic = parse_switch("panic", value)?;
}

impl Options {
    /// Parses the value of `RINGMARK`: `1`, or `key=value,…`. `Ok(None)`: tracing is not wanted
    /// (empty or `0`).
    ///
    /// Sizes are bytes, with `K`, `M` or `G` for powers of 1024; switches are `on` or `off`.
    ///
    /// ```
    /// use ringmark::Options;
    ///
    /// let options = Options::parse("session=1G,guard=on")?.expect("not empty");
    /// assert_eq!((options.session_bytes, options.guard), (Some(1 << 30), true));
    /// # Ok::<(), ringmark::OptionError>(())
    /// ```
    ///
    /// # Errors
    /// The first key or value that cannot be used.
    pub fn parse(text: &str) -> Result<Option<Self>, OptionError> {
        match text.trim() {
            "" | "0" => Ok(None),
            "1" => Ok(Some(Self::default())),
            text => Self::default().with(text).map(Some),
        }
    }

    /// These options, changed as `key=value,…` says.
    pub(crate) fn with(mut self, text: &str) -> Result<Self, OptionError> {
        for pair in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| wrong("RINGMARK", pair, "1, 0, or key=value pairs"))?;
            set(&mut self, key, value)?;
        }
        self.check()?;
        Ok(self)
    }
}

fn parse_mode(value: &str) -> Result<Mode, OptionError> {
    Mode::parse(value).ok_or_else(|| wrong("mode", value, "discard or overwrite"))
}

fn parse_clock(value: &str) -> Result<Clock, OptionError> {
    Clock::parse(value).ok_or_else(|| wrong("clock", value, "tsc, monotonic, coarse or none"))
}

fn parse_keep(value: &str) -> Result<Keep, OptionError> {
    match value {
        "crash" => Ok(Keep::Crash),
        "always" => Ok(Keep::Always),
        "never" => Ok(Keep::Never),
        _ => Err(wrong("keep", value, "always, crash or never")),
    }
}

fn parse_switch(key: &str, value: &str) -> Result<bool, OptionError> {
    match value {
        "on" | "1" | "true" => Ok(true),
        "off" | "0" | "false" => Ok(false),
        _ => Err(wrong(key, value, "on or off")),
    }
}

/// A duration with its unit, or `off`.
fn parse_wait(value: &str) -> Result<Duration, OptionError> {
    let digits = |unit| value.strip_suffix(unit).and_then(|n: &str| n.parse().ok());
    let found = match value {
        "off" | "0" => Some(Duration::ZERO),
        _ => digits("ms")
            .map(Duration::from_millis)
            .or_else(|| digits("s").map(Duration::from_secs))
            .filter(|wait| (WAIT_MIN..=WAIT_MAX).contains(wait)),
    };
    found.ok_or_else(|| wrong("wait", value, "off, or a time from 1ms to 10s"))
}

/// Bytes with an optional unit K, M, G or T (powers of 1024).
fn parse_bytes<T: TryFrom<u64>>(key: &str, value: &str) -> Result<T, OptionError> {
    let expected = "bytes, with K, M, G or T";
    let shift = match value.chars().last() {
        Some('K' | 'k') => 10,
        Some('M' | 'm') => 20,
        Some('G' | 'g') => 30,
        Some('T' | 't') => 40,
        _ => 0,
    };
    let digits = if shift == 0 {
        value
    } else {
        &value[..value.len() - 1]
    };
    let number: u64 = digits.parse().map_err(|_| wrong(key, value, expected))?;
    let bytes = number
        .checked_mul(1 << shift)
        .ok_or_else(|| wrong(key, value, expected))?;
    T::try_from(bytes).map_err(|_| wrong(key, value, expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_the_default_that_the_reference_shows() {
        for key in KEYS {
            let mut options = Options::default();
            set(&mut options, key.name, key.default).expect(key.name);
            options.session_bytes = options.session_bytes.filter(|bytes| *bytes != 16 << 20);
            assert_eq!(options, Options::default(), "{}={}", key.name, key.default);
        }
        let error = set(&mut Options::default(), "no-such-key", "1").unwrap_err();
        let names: Vec<_> = KEYS.iter().map(|key| key.name).collect();
        assert_eq!(error.expected, names.join(", "));
    }

    #[test]
    fn the_table_of_limits_has_the_figures_of_the_code() {
        use crate::event::text::TEXT_BYTES_MAX;

        let table = include_str!("../limits.md");
        let options = Options::default();
        for row in [
            format!("text of `?value` and `%value` | {TEXT_BYTES_MAX} bytes |"),
            format!("its header: {} KiB by default", options.page_bytes >> 10),
            format!(
                "ring of a thread | {} KiB by default",
                options.ring_bytes >> 10
            ),
            format!(
                "ring file | {} MiB by default",
                options.session_bytes() >> 20
            ),
        ] {
            assert!(table.contains(&row), "{row}");
        }
    }
}
