//! What the page says about a trace in words.

/// What the page says about a trace in words. Texts are shown as they are, so they are to be
/// printable.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// What the page is of: the name of a trace file, or a process.
    pub title: String,
    /// How sessions ended that did not end well, a line each.
    pub ends: Vec<String>,
    /// Which thread ended a process, as far as that is known, a line each.
    pub whose: Vec<String>,
    /// Threads whose panic ended their process, by `Event::thread` of the decoder.
    pub panicked: Vec<u32>,
    /// Which part of the trace is shown, in words; empty: all of it.
    pub part: String,
    /// What part of the time is covered, and what is not there.
    pub covers: Vec<String>,
    /// What threads did last, and the spans that they had open.
    pub last_words: Vec<String>,
}
