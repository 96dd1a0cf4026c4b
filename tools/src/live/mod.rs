//! What `top` shows: sessions while they run.
//!
//! The way of the data: [`watch`] looks at the rings of living sessions within a [`budget`] of CPU
//! time; [`model`] makes rates of two looks and keeps their [`history`]; [`view`] makes the lines of a
//! screen out of the model, with a table for each of its [`panels`], and [`once`] those of a single look.
//! [`screen`] is the loop around them: it reads [`keys`], has [`requests`] done by a thread of their
//! own, and gives the [`terminal`] back however it ends. [`wakes`] has what ends its waits.

mod budget;
mod head;
mod history;
mod keys;
mod model;
pub(crate) mod names;
pub(crate) mod once;
mod panels;
mod requests;
pub(crate) mod screen;
mod terminal;
mod ui;
mod view;
#[cfg(test)]
mod view_tests;
mod wakes;
pub(crate) mod watch;
