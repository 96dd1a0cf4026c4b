//! An event as a test of the program reads it back.

/// An event, as it was recorded.
///
/// ```
/// use ringmark::{counter, testing::{Mark, Recorded}};
///
/// let mark = Mark::here().expect("a session");
/// counter!("queue.depth", 7_u64);
/// let expected = Recorded {
///     name: "queue.depth".to_owned(),
///     fields: vec![("value".to_owned(), "7".to_owned())],
/// };
/// assert_eq!(mark.events(), [expected]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The name of the event, the span, the counter or the flow.
    pub name: String,
    /// What it was given, by name, as text; a value that was absent is left out, and so are durations and the
    /// ids of spans.
    pub fields: Vec<(String, String)>,
}

impl Recorded {
    /// The value of a field; `None`: there is none of this name, or it was absent.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields.find_map(|(found, value)| (found == name).then_some(value.as_str()))
    }
}
