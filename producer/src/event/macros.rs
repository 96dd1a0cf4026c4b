//! `event!`, `span!`, `counter!`, `flow!`, `event_at!`.
//!
//! What users write is documented at [`event!`](crate::event!).

/// A place in the program, as a type of its own. Not for use by hand.
#[doc(hidden)]
#[macro_export]
macro_rules! __callsite {
    ($shape:ident, $first:literal, $semantics:expr, $level:ident, $category:expr, $target:expr, $name:expr, [$($field:expr),*]) => {{
        struct Here;
        static STATE: $crate::event::TypeState = $crate::event::TypeState::new();
        impl $crate::event::Callsite for Here {
            const FIELDS: &'static [&'static str] = &[$($field),*];
            const FIRST: usize = $first;
            const SEMANTICS: &'static [u32] = &$semantics;
            fn event() -> $crate::event::EventType {
                $crate::event::EventType {
                    name: $name,
                    target: $target,
                    category: $category,
                    level: $crate::event::Level::$level,
                    shape: $crate::event::Shape::$shape,
                    file: ::core::file!(),
                    line: ::core::line!(),
                    state: &STATE,
                }
            }
            #[inline(always)]
            fn state() -> &'static $crate::event::TypeState {
                &STATE
            }
        }
        Here
    }};
}

/// Takes the arguments apart, then calls `$then!($context… [names] [values])`.
#[doc(hidden)]
#[macro_export]
macro_rules! __arguments {
    ($then:ident $context:tt [$($names:expr,)*] [$($values:expr,)*] $(,)?) => {
        $crate::$then!($context [$($names),*] [$($values,)*])
    };
    ($then:ident $context:tt [$($names:expr,)*] [$($values:expr,)*] $($field:ident).+ = ?$value:expr $(, $($rest:tt)*)?) => {
        $crate::__arguments!($then $context
            [$($names,)* ::core::stringify!($($field).+),] [$($values,)* $crate::event::debug(&$value),] $($($rest)*)?)
    };
    ($then:ident $context:tt [$($names:expr,)*] [$($values:expr,)*] $($field:ident).+ = %$value:expr $(, $($rest:tt)*)?) => {
        $crate::__arguments!($then $context
            [$($names,)* ::core::stringify!($($field).+),] [$($values,)* $crate::event::display(&$value),] $($($rest)*)?)
    };
    ($then:ident $context:tt [$($names:expr,)*] [$($values:expr,)*] $($field:ident).+ = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__arguments!($then $context
            [$($names,)* ::core::stringify!($($field).+),] [$($values,)* $value,] $($($rest)*)?)
    };
    ($then:ident $context:tt [$($names:expr,)*] [$($values:expr,)*] $field:ident $(, $($rest:tt)*)?) => {
        $crate::__arguments!($then $context
            [$($names,)* ::core::stringify!($field),] [$($values,)* $field,] $($($rest)*)?)
    };
}

/// Fills in what was left out of `level:`, `category:`, `target:`.
#[doc(hidden)]
#[macro_export]
macro_rules! __options {
    ($then:ident ($($more:tt)*) level: $level:ident, $($rest:tt)*) => {
        $crate::__options!(@category $then ($($more)*) $level, $($rest)*)
    };
    ($then:ident ($($more:tt)*) $($rest:tt)*) => {
        $crate::__options!(@category $then ($($more)*) Info, $($rest)*)
    };
    (@category $then:ident ($($more:tt)*) $level:ident, category: $category:expr, $($rest:tt)*) => {
        $crate::__options!(@target $then ($($more)*) $level, $category, $($rest)*)
    };
    (@category $then:ident ($($more:tt)*) $level:ident, $($rest:tt)*) => {
        $crate::__options!(@target $then ($($more)*) $level, "", $($rest)*)
    };
    (@target $then:ident ($($more:tt)*) $level:ident, $category:expr, target: $target:expr, $name:expr $(, $($rest:tt)*)?) => {
        $crate::__arguments!($then ($($more)* $level, $category, $target, $name) [] [] $($($rest)*)?)
    };
    (@target $then:ident ($($more:tt)*) $level:ident, $category:expr, $name:expr $(, $($rest:tt)*)?) => {
        $crate::__arguments!($then ($($more)* $level, $category, ::core::module_path!(), $name) [] [] $($($rest)*)?)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __emit {
    (($shape:ident, $semantics:expr, $level:ident, $category:expr, $target:expr, $name:expr) [$($names:expr),*] [$($values:expr,)*]) => {
        $crate::event::emit(
            $crate::__callsite!($shape, 0, $semantics, $level, $category, $target, $name, [$($names),*]),
            #[inline(always)] || ($($values,)*),
        )
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __emit_at {
    (($ticks:expr, $level:ident, $category:expr, $target:expr, $name:expr) [$($names:expr),*] [$($values:expr,)*]) => {
        $crate::event::emit_at(
            $crate::__callsite!(Instant, 0, [], $level, $category, $target, $name, [$($names),*]),
            $ticks,
            #[inline(always)] || ($($values,)*),
        )
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __span {
    (($level:ident, $category:expr, $target:expr, $name:expr) [$($names:expr),*] [$($values:expr,)*]) => {
        $crate::event::span(
            $crate::__callsite!(Span, 8, [], $level, $category, $target, $name, [$($names),*]),
            #[inline(always)] || ($($values,)*),
        )
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __async_span {
    (($level:ident, $category:expr, $target:expr, $name:expr) [$($names:expr),*] [$($values:expr,)*]) => {
        $crate::event::async_span(
            $crate::__callsite!(
                SpanNew, 0,
                [$crate::event::description::semantic::SPAN_ID, $crate::event::description::semantic::PARENT_ID],
                $level, $category, $target, $name, ["span_id", "parent_id" $(, $names)*]
            ),
            #[inline(always)] |id: u64, parent: u64| (id, parent, $($values,)*),
        )
    };
}

/// What `#[instrument]` puts in front of a function's body.
#[doc(hidden)]
#[macro_export]
macro_rules! __instrument {
    ($($all:tt)+) => { $crate::__options!(__instrument_span () $($all)+) };
}

/// The same for an `async fn`.
#[doc(hidden)]
#[macro_export]
macro_rules! __instrument_async {
    ($($all:tt)+) => { $crate::__options!(__instrument_async_span () $($all)+) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __instrument_span {
    ($facts:tt [$($names:expr),*] [$($values:expr,)*]) => {
        $crate::__span!($facts [$($names),*] [$($crate::event::Snapshot::snapshot(&$values),)*])
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __instrument_async_span {
    ($facts:tt [$($names:expr),*] [$($values:expr,)*]) => {
        $crate::__async_span!($facts [$($names),*] [$($crate::event::Snapshot::snapshot(&$values),)*])
    };
}

/// Emits an instant event: `event!("request.done", status = 200u16, bytes = n)`.
///
/// The arguments are evaluated only if the event type is on. Without a session nothing happens.
///
/// # Grammar
///
/// ```text
/// event!([level: LEVEL,] [category: EXPR,] [target: EXPR,] NAME [, ARGUMENT]* [,])
/// ```
///
/// - The options are optional, and stand in this order. `level` is `Error`, `Warn`, `Info` (the
///   default), `Debug` or `Trace`; `category` is `""` by default, `target` the module's path.
/// - `NAME`, `category` and `target` are constant texts.
/// - An `ARGUMENT` is `name = value`, `name = ?value` for the value's `Debug` text,
///   `name = %value` for its `Display` text, or a variable's `name`. A name may have dots.
/// - A value is an integer, float, `bool`, `char`, `str`, `String`, `[u8]`, an array, or a
///   reference to one of them. `Option` is none: use `?value`, or a number that stands for nothing.
/// - An event has at most 12 arguments. Formatted text is cut at 512 bytes.
///
/// [`span!`](crate::span!) and [`async_span!`](crate::async_span!) take the same, and so does [`event_at!`](crate::event_at!) after its tick.
/// [`counter!`](crate::counter!) and [`flow!`](crate::flow!) take no options.
///
/// # Example
///
/// ```
/// use ringmark::event;
///
/// let (path, error) = ("/index.html", std::io::Error::other("reset"));
/// event!("request.done", status = 200_u16, bytes = 4096_u64);
/// event!(level: Warn, category: "http", "request.failed", path, error = %error, peer = ?[127_u8, 0, 0, 1]);
/// ```
#[macro_export]
macro_rules! event {
    ($($all:tt)+) => { $crate::__options!(__emit (Instant, [],) $($all)+) };
}

/// Emits an instant event at a tick of the session's clock that the caller already holds:
/// `event_at!(ticks, "packet.seen", bytes = n)`. See [`crate::ticks`]; the rest is as for [`event!`](crate::event!).
///
/// ```
/// let seen = ringmark::ticks();
/// ringmark::event_at!(seen, level: Debug, "packet.seen", bytes = 64_u32);
/// ```
#[macro_export]
macro_rules! event_at {
    ($ticks:expr, $($all:tt)+) => { $crate::__options!(__emit_at ($ticks,) $($all)+) };
}

/// Begins a span that ends when the guard is dropped: `let _span = span!("db.query", rows = n);`
///
/// It takes what [`event!`](crate::event!) takes. A guard that is not bound to a name ends at once.
///
/// ```
/// let _span = ringmark::span!(level: Debug, "db.query", table = "users", rows = 3_u32);
/// ```
#[macro_export]
macro_rules! span {
    ($($all:tt)+) => { $crate::__options!(__span () $($all)+) };
}

/// Makes a span for a future, which may move between threads:
/// `work(n).in_span(async_span!("request", id = n)).await`. See [`crate::InSpan`]; it takes what
/// [`event!`](crate::event!) takes.
#[macro_export]
macro_rules! async_span {
    ($($all:tt)+) => { $crate::__options!(__async_span () $($all)+) };
}

/// Records the value of a counter: `counter!("queue.depth", depth)`.
///
/// The value is an integer or a float. There are no options and no further arguments.
///
/// ```
/// ringmark::counter!("queue.depth", 7_u64);
/// ```
#[macro_export]
macro_rules! counter {
    ($name:expr, $value:expr $(,)?) => {
        $crate::__options!(__emit (Counter, [$crate::event::description::semantic::COUNTER],) $name, value = $value)
    };
}

/// Ties events of different threads together by an id: `flow!("job", job.id, step = "queued")`.
///
/// The id is an integer; arguments as for [`event!`](crate::event!). There are no options.
///
/// ```
/// ringmark::flow!("job", 42_u64, step = "queued");
/// ```
#[macro_export]
macro_rules! flow {
    ($name:expr, $id:expr $(, $($rest:tt)*)?) => {
        $crate::__options!(__emit (Flow, [$crate::event::description::semantic::FLOW],) $name, flow = $id $(, $($rest)*)?)
    };
}
