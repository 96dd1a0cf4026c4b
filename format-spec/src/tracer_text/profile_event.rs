//! What a profile tracer has gathered, as records of the session: the event `function_profile` for each
//! function, with `function_profile_begin` before the first and `function_profile_end` after the last.
//!
//! The tracer writes the first when it is started, and in a forked child; the others when it is stopped and
//! when the program exits. Their fields are named here only:
//! [`emit_function_profile!`](crate::emit_function_profile) is the writer's side, [`ProfileEvent`] the
//! reader's.

use alloc::string::String;

use super::{Gathered, Histogram};

/// Writes a `function_profile` event: `emit_function_profile!([MACRO] TRACER, ID, GATHERED)`; or one that the
/// tracer begins, `emit_function_profile!([MACRO] begin TRACER)`, or has written all,
/// `emit_function_profile!([MACRO] end TRACER, UNCOUNTED)`.
///
/// `MACRO` is the path of the producer's `event!`, `TRACER` the tracer's name as `&str`, `ID` the function's
/// number, `GATHERED` a variable with a [`Gathered`](crate::tracer_text::Gathered), and `UNCOUNTED` the number
/// of calls so far that no thread could count.
#[macro_export]
macro_rules! emit_function_profile {
    ([$($event:tt)+] begin $tracer:expr) => {
        $($event)+! { target: "ringmark", "function_profile_begin", tracer = $tracer, }
    };
    ([$($event:tt)+] end $tracer:expr, $uncounted:expr) => {
        $($event)+! {
            target: "ringmark",
            "function_profile_end",
            tracer = $tracer,
            uncounted = $uncounted,
        }
    };
    ([$($event:tt)+] $tracer:expr, $id:expr, $gathered:ident) => {{
        let histogram = ::std::string::ToString::to_string(&$gathered.histogram);
        $($event)+! {
            target: "ringmark",
            "function_profile",
            tracer = $tracer,
            id = $id,
            function = &*$gathered.function,
            module = &*$gathered.module,
            calls = $gathered.calls,
            open = $gathered.open,
            unwound = $gathered.unwound,
            total_ns = $gathered.total,
            self_ns = $gathered.own,
            sum_ns = $gathered.sum,
            min_ns = $gathered.min,
            max_ns = $gathered.max,
            histogram = histogram.as_str(),
        }
    }};
}

/// Such an event while its fields are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileEvent {
    /// The function's number: the same in all events of a session and tracer that are about it.
    pub id: u64,
    /// Calls so far that no thread could count.
    pub uncounted: u64,
    /// Name of the tracer, once its field was met.
    pub tracer: Option<String>,
    /// What it gathered; fields that were not met are 0 or empty.
    pub gathered: Gathered<'static>,
}

impl ProfileEvent {
    /// Name of the event type.
    pub const NAME: &'static str = "function_profile";
    /// Name of the event type that says that a tracer begins to count.
    pub const BEGIN: &'static str = "function_profile_begin";
    /// Name of the event type that says that all has been written.
    pub const END: &'static str = "function_profile_end";
    /// Target of the event type.
    pub const TARGET: &'static str = "ringmark";

    /// Takes the value of a numeric field. Times are in ns. Other names are passed over.
    pub fn take_number(&mut self, field: &[u8], value: u64) {
        let gathered = &mut self.gathered;
        *match field {
            b"id" => &mut self.id,
            b"uncounted" => &mut self.uncounted,
            b"calls" => &mut gathered.calls,
            b"open" => &mut gathered.open,
            b"unwound" => &mut gathered.unwound,
            b"total_ns" => &mut gathered.total,
            b"self_ns" => &mut gathered.own,
            b"sum_ns" => &mut gathered.sum,
            b"min_ns" => &mut gathered.min,
            b"max_ns" => &mut gathered.max,
            _ => return,
        } = value;
    }

    /// Takes the value of a text field. Other names are passed over.
    pub fn take_text(&mut self, field: &[u8], value: &str) {
        let gathered = &mut self.gathered;
        match field {
            b"tracer" => self.tracer = Some(value.into()),
            b"function" => gathered.function = String::from(value).into(),
            b"module" => gathered.module = String::from(value).into(),
            b"histogram" => gathered.histogram = Histogram::parse(value),
            _ => {}
        }
    }
}
