//! What many events say together: the [`figures`] of a trace, and what they are made of.
//!
//! [`calls`] pairs function records (`call_walk`: those of a whole trace; `certain_calls`: which of
//! them are open for certain, [`chosen_calls`]: those that a filter chooses), [`function_times`] sums
//! the calls of each function ([`call_figures`]: what a table says of them), [`changes`]
//! compares two traces, [`profiled`] reads what a profile summed in the program, [`endings`] says how sessions
//! ended, [`open_spans`] and [`last_words`] what threads were in and did last, and [`verify`]
//! accounts for every reservation. [`span_times`] sums the spans of each name, whose durations
//! [`durations`] keeps (`durations_bytes`: as bytes). [`paths`] sums by what was around (`path_walk`: of a whole trace, `path_thread`: what waits in a thread,
//! `span_paths`: in spans over threads). [`sampled`] estimates what a living session did
//! since the last look at it. [`cover`] says which part of the time is here, [`hosts`] what is here of
//! each host, [`health`] how each host does. [`picker`] picks what passes a choice, for [`figures`] and for rows.

pub(crate) mod call;
pub(crate) mod call_figures;
mod call_walk;
pub(crate) mod calls;
mod certain_calls;
pub(crate) mod changes;
pub(crate) mod chosen_calls;
mod complete;
pub(crate) mod cover;
pub(crate) mod durations;
mod durations_bytes;
mod elsewhere;
pub(crate) mod endings;
pub(crate) mod figures;
pub(crate) mod function_times;
mod given_up;
pub(crate) mod health;
pub(crate) mod hosts;
pub(crate) mod last_words;
pub(crate) mod open_spans;
mod path_thread;
pub(crate) mod path_walk;
pub(crate) mod paths;
pub(crate) mod picker;
pub(crate) mod profiled;
pub(crate) mod ran_functions;
pub(crate) mod sampled;
pub(crate) mod slowest;
mod span_paths;
pub(crate) mod span_times;
pub(crate) mod verify;
