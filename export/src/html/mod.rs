//! A trace as one HTML page that needs nothing else: no server, no network, no other file.
//!
//! [`writer`] takes what the timeline gives and keeps it by row; [`packed`] makes the bytes of it
//! that the page reads; [`page`] joins the page's parts with those bytes. The page itself is in
//! `page/`: HTML, a style sheet, and the scripts in the order in which they are read.

pub(crate) mod about;
pub(crate) mod entered;
mod meta;
pub(crate) mod packed;
pub(crate) mod page;
pub(crate) mod profile_page;
pub(crate) mod rows;
pub(crate) mod writer;
