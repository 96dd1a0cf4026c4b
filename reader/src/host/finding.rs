//! One thing that was looked at.

/// How well something works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As it should.
    Works,
    /// It is not there, and few need it.
    Absent,
    /// In part: programs are traced, but something is less than it could be, or not to be had.
    Limited,
    /// Not at all.
    Fails,
}

impl Verdict {
    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Works => "ok",
            Self::Absent => "absent",
            Self::Limited => "limited",
            Self::Fails => "fails",
        }
    }
}

/// What was looked at, what was found, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at, in a word or two.
    pub about: &'static str,
    /// How well it works.
    pub verdict: Verdict,
    /// What was found. Parts of it may be names of files: to be escaped before they are shown.
    pub found: String,
    /// What to do about it; `None`: nothing.
    pub advice: Option<String>,
}

impl Finding {
    /// Something that works.
    #[must_use]
    pub fn works(about: &'static str, found: impl Into<String>) -> Self {
        Self {
            about,
            verdict: Verdict::Works,
            found: found.into(),
            advice: None,
        }
    }

    /// Something that is not there and few need, and how to get it.
    #[must_use]
    pub fn absent(
        about: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Absent,
            ..Self::limited(about, found, advice)
        }
    }

    /// Something that works in part, and what to do.
    #[must_use]
    pub fn limited(
        about: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Limited,
            advice: Some(advice.into()),
            ..Self::works(about, found)
        }
    }

    /// Something that does not work, and what to do.
    #[must_use]
    pub fn fails(about: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Fails,
            ..Self::limited(about, found, advice)
        }
    }
}

/// Bytes in the unit that people count memory in.
pub(super) fn mib(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        mib => format!("{mib} MiB"),
    }
}
