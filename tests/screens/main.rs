//! What a person sees at a terminal.
#![forbid(unsafe_code)]

mod closed_pipe;
mod doctor;
mod pager;
mod paths;
mod screens;
mod top;
mod tree;
