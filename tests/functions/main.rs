//! Tracing of functions.
#![forbid(unsafe_code)]

#[path = "../session/c/mod.rs"]
#[expect(dead_code, reason = "compilers other than gcc")]
mod c;
mod calls;
mod function_patching;
mod functions_budget;
mod functions_callbacks;
mod functions_callers;
mod functions_calls;
mod functions_circumstances;
mod functions_conditions;
mod functions_control;
mod functions_cpp;
mod functions_interposed;
mod functions_left;
mod functions_left_records;
mod functions_many;
mod functions_modules;
mod functions_moved;
mod functions_off;
mod functions_profile;
mod functions_run;
mod functions_rust;
mod functions_sampled;
mod functions_selected;
mod functions_shown;
mod functions_sleds;
mod functions_stacks;
mod functions_stepped;
mod functions_triggers;
mod functions_under_signals;
mod functions_unwinding;
mod functions_wait;
mod functions_wait_events;
mod functions_with_events;
mod functions_with_events_ways;
mod movable;
mod one_request;
mod real_programs;
mod record_attached;
mod source_lines;
mod with_events;
