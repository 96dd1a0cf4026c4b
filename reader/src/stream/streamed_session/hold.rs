//! Whether the pages of a session stay in their rings until something happens.

/// Whether the pages of a session are sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::stream) enum Hold {
    /// They are, as they come.
    #[default]
    Never,
    /// They stay in their rings until the process ends badly or they are asked for.
    Waiting,
    /// What is there now is being sent.
    Uploading,
    /// The process ended well, and they were not asked for: nothing of it is sent.
    Unwanted,
}
