//! What server and clients agree on.

use std::error::Error;

/// Any error: the program ends with it, and the test shows it.
pub(crate) type Failed = Box<dyn Error + Send + Sync>;

/// The header that carries a request's number.
pub(crate) const NUMBER: &str = "x-number";
