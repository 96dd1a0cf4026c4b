//! `event!`, `span!`, `counter!`, `flow!`, `event_at!`, `async_span!`: one grammar, read by one
//! hidden macro.

/// Reads what the macros were given, step by step; `$to` is `(macro …)`, for the last step.
///
/// `@options`: `level:`, `category:`, `target:` in any order, one slot `[]` for each. `@name`: the
/// name, and what the macro has in front of its arguments. `@arguments`: one `+` for each so far,
/// their names and values. `@finish`: the code. `@callsite`, `@level`, `@text`: parts of it. Items of the
/// code have names that no program has: the program's constants are named next to them.
#[doc(hidden)]
#[macro_export]
macro_rules! __record {
    (@options $to:tt [] $category:tt $target:tt level: $level:ident, $($rest:tt)*) => {
        $crate::__record!(@options $to [$level] $category $target $($rest)*)
    };
    (@options $to:tt $level:tt [] $target:tt category: $category:expr, $($rest:tt)*) => {
        $crate::__record!(@options $to $level [$category] $target $($rest)*)
    };
    (@options $to:tt $level:tt $category:tt [] target: $target:expr, $($rest:tt)*) => {
        $crate::__record!(@options $to $level $category [$target] $($rest)*)
    };
    (@options $to:tt [$given:tt] $category:tt $target:tt level: $($rest:tt)*) => {
        ::core::compile_error!("`level:` is given twice")
    };
    (@options $to:tt $level:tt [$given:tt] $target:tt category: $($rest:tt)*) => {
        ::core::compile_error!("`category:` is given twice")
    };
    (@options $to:tt $level:tt $category:tt [$given:tt] target: $($rest:tt)*) => {
        ::core::compile_error!("`target:` is given twice")
    };
    (@options $to:tt $level:tt $category:tt $target:tt $option:ident: $($rest:tt)*) => {
        ::core::compile_error!(::core::concat!(
            "found `", ::core::stringify!($option), ":`, expected the options `level: LEVEL,`, ",
            "`category: TEXT,` and `target: TEXT,`, then the name",
        ))
    };
    (@options $to:tt $level:tt $category:tt $target:tt $($rest:tt)*) => {
        $crate::__record!(@name $to [$level $category $target] $($rest)*)
    };

    (@name (counter) $options:tt $name:expr, $value:expr $(, $($rest:tt)*)?) => {
        $crate::__record!(@arguments (counter) [$name $options] [] ["value",] [$value,] $($($rest)*)?)
    };
    (@name (counter) $options:tt $($rest:tt)*) => {
        ::core::compile_error!("expected `counter!([OPTIONS,] NAME, VALUE)`")
    };
    (@name (flow) $options:tt $name:expr, $id:expr $(, $($rest:tt)*)?) => {
        $crate::__record!(@arguments (flow) [$name $options] [] ["flow",] [$id,] $($($rest)*)?)
    };
    (@name (flow) $options:tt $($rest:tt)*) => {
        ::core::compile_error!("expected `flow!([OPTIONS,] NAME, ID)`")
    };
    (@name $to:tt $options:tt $name:expr $(, $($rest:tt)*)?) => {
        $crate::__record!(@arguments $to [$name $options] [] [] [] $($($rest)*)?)
    };
    (@name $to:tt $options:tt) => {
        ::core::compile_error!("expected the name, a constant text")
    };

    (@arguments $to:tt $facts:tt
        [+ + + + + + + + + + + + + + + + + + + + + + + + + + + + + + + + +] $($rest:tt)*) => {
        ::core::compile_error!(
            "found more than 32 arguments: record the others in a second event, or in an array"
        )
    };
    (@arguments $to:tt $facts:tt [$($count:tt)*] $names:tt $values:tt $(,)?) => {
        $crate::__record!(@finish $to $facts $names $values)
    };
    (@arguments $to:tt $facts:tt [$($count:tt)*] [$($names:tt)*] [$($values:tt)*]
        $($field:ident).+ = ?$value:expr $(, $($rest:tt)*)?) => {
        $crate::__record!(@arguments $to $facts [$($count)* +]
            [$($names)* ::core::stringify!($($field).+),]
            [$($values)* $crate::__private::Text::debug(&$value),] $($($rest)*)?)
    };
    (@arguments $to:tt $facts:tt [$($count:tt)*] [$($names:tt)*] [$($values:tt)*]
        $($field:ident).+ = %$value:expr $(, $($rest:tt)*)?) => {
        $crate::__record!(@arguments $to $facts [$($count)* +]
            [$($names)* ::core::stringify!($($field).+),]
            [$($values)* $crate::__private::Text::display(&$value),] $($($rest)*)?)
    };
    (@arguments $to:tt $facts:tt [$($count:tt)*] [$($names:tt)*] [$($values:tt)*]
        $($field:ident).+ = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__record!(@arguments $to $facts [$($count)* +]
            [$($names)* ::core::stringify!($($field).+),] [$($values)* $value,] $($($rest)*)?)
    };
    (@arguments $to:tt $facts:tt [$($count:tt)*] [$($names:tt)*] [$($values:tt)*]
        ?$($field:ident).+ $(, $($rest:tt)*)?) => {
        $crate::__record!(@arguments $to $facts [$($count)* +]
            [$($names)* ::core::stringify!($($field).+),]
            [$($values)* $crate::__private::Text::debug(&$($field).+),] $($($rest)*)?)
    };
    (@arguments $to:tt $facts:tt [$($count:tt)*] [$($names:tt)*] [$($values:tt)*]
        %$($field:ident).+ $(, $($rest:tt)*)?) => {
        $crate::__record!(@arguments $to $facts [$($count)* +]
            [$($names)* ::core::stringify!($($field).+),]
            [$($values)* $crate::__private::Text::display(&$($field).+),] $($($rest)*)?)
    };
    (@arguments $to:tt $facts:tt [$($count:tt)*] [$($names:tt)*] [$($values:tt)*]
        $($field:ident).+ $(, $($rest:tt)*)?) => {
        $crate::__record!(@arguments $to $facts [$($count)* +]
            [$($names)* ::core::stringify!($($field).+),] [$($values)* $($field).+,] $($($rest)*)?)
    };
    (@arguments $to:tt $facts:tt $count:tt $names:tt $values:tt $($rest:tt)+) => {
        ::core::compile_error!(::core::concat!(
            "found `", ::core::stringify!($($rest)+), "`, expected an argument: `name = value`, ",
            "`name = ?value`, `name = %value`, `variable`, `?variable` or `%variable`",
        ))
    };

    (@finish (event) $facts:tt $names:tt [$($values:tt)*]) => {
        $crate::__private::Entry::emit(
            $crate::__record!(@callsite Instant $facts $names),
            $crate::client::Now::Clock,
            #[inline(always)] || ($($values)*),
        )
    };
    (@finish (event_at $ticks:expr) $facts:tt $names:tt [$($values:tt)*]) => {
        $crate::__private::Entry::emit(
            $crate::__record!(@callsite Instant $facts $names),
            $crate::client::Now::At($ticks),
            #[inline(always)] || ($($values)*),
        )
    };
    (@finish (counter) $facts:tt $names:tt [$($values:tt)*]) => {
        $crate::__private::Entry::emit(
            $crate::__record!(@callsite Counter $facts $names),
            $crate::client::Now::Clock,
            #[inline(always)] || ($($values)*),
        )
    };
    (@finish (flow) $facts:tt $names:tt [$($values:tt)*]) => {
        $crate::__private::Entry::emit(
            $crate::__record!(@callsite Flow $facts $names),
            $crate::client::Now::Clock,
            #[inline(always)] || ($($values)*),
        )
    };
    (@finish (span) $facts:tt $names:tt [$($values:tt)*]) => {
        $crate::__private::Entry::span(
            $crate::__record!(@callsite Span $facts $names),
            #[inline(always)] || ($($values)*),
        )
    };
    (@finish (async_span) $facts:tt [$($names:tt)*] [$($values:tt)*]) => {
        $crate::__private::Entry::async_span(
            $crate::__record!(@callsite SpanNew $facts ["span_id", "parent_id", $($names)*]),
            #[inline(always)] |id: u64, parent: u64| (id, parent, $($values)*),
        )
    };
    (@finish (instrument) $facts:tt $names:tt [$($values:expr,)*]) => {
        $crate::__record!(@finish (span) $facts $names
            [$($crate::__private::Snapshot::snapshot(&$values),)*])
    };
    (@finish (instrument_async) $facts:tt $names:tt [$($values:expr,)*]) => {
        $crate::__record!(@finish (async_span) $facts $names
            [$($crate::__private::Snapshot::snapshot(&$values),)*])
    };

    (@callsite $shape:ident
        [$name:tt [[$($level:ident)?] [$($category:expr)?] [$($target:expr)?]]]
        [$($names:tt)*]) => {{
        struct __RingmarkHere;
        static __RINGMARK_STATE: $crate::client::TypeState =
            $crate::client::TypeState::new();
        impl $crate::__private::Callsite for __RingmarkHere {
            const FIELDS: &'static [&'static str] = &[$($names)*];
            const SHAPE: $crate::client::Shape = $crate::client::Shape::$shape;
            fn event() -> $crate::client::EventType {
                $crate::client::EventType {
                    name: $name,
                    target: $crate::__record!(@text [::core::module_path!()] $($target)?),
                    category: $crate::__record!(@text [""] $($category)?),
                    level: $crate::__record!(@level $($level)?),
                    shape: $crate::client::Shape::$shape,
                    file: ::core::file!(),
                    line: ::core::line!(),
                    state: &__RINGMARK_STATE,
                }
            }
            #[inline(always)]
            fn state() -> &'static $crate::client::TypeState {
                &__RINGMARK_STATE
            }
        }
        __RingmarkHere
    }};
    (@level) => { $crate::Level::Info };
    (@level $level:ident) => { $crate::Level::$level };
    (@text [$default:expr]) => { $default };
    (@text [$default:expr] $given:expr) => { $given };
}

/// Emits an event: something that happens at one moment.
///
/// Without a session, and while the filter disables the event type, nothing happens: the arguments
/// are not evaluated. Otherwise the event is recorded in this thread's ring, or counted as lost.
///
/// # Grammar
///
/// ```text
/// event!([OPTION,]* NAME [, ARGUMENT]* [,])
/// ```
///
/// [`event_at!`](crate::event_at!), [`span!`](crate::span!),
/// [`async_span!`](crate::async_span!), [`counter!`](crate::counter!) and
/// [`flow!`](crate::flow!) have the same grammar. Some take a value of their own before the
/// options or after the name.
///
/// | option | default | meaning |
/// | --- | --- | --- |
/// | `level: LEVEL` | `Info` | `Error`, `Warn`, `Info`, `Debug` or `Trace`: a variant of [`Level`](crate::Level) |
/// | `category: TEXT` | `""` | groups events of several modules |
/// | `target: TEXT` | the module's path | what filters such as `hyper=debug` compare |
///
/// Options stand before the name, in any order, each at most once. `NAME`, `category` and `target`
/// are constant texts.
///
/// | argument | records |
/// | --- | --- |
/// | `name = value` | the value, as a number or text of its type |
/// | `name = ?value` | its `Debug` text |
/// | `name = %value` | its `Display` text |
/// | `variable`, `?variable`, `%variable` | the same, under the variable's name |
/// | `place.field`, `?place.field`, `%place.field` | the same, under the name `place.field` |
///
/// A name may have dots: `http.status = 200_u16`. A raw identifier loses its `r#`.
///
/// # Values
///
/// Integers, floats, `bool`, `char`, `str`, `String`, `[u8]`, arrays of 1 to 65535 of them, and
/// references to them: the types that implement [`Value`](crate::Value). An `Option` of one is a
/// value, too: `None` is shown as `none`, in JSON as null. [`redact`](crate::redact) keeps a value
/// out of the trace.
///
/// An argument that is not a reference is moved into the event, as into a function. It is evaluated
/// in a closure, only if the event is recorded: `?`, `return`, `break` and `.await` stand before the
/// macro, not in it.
///
/// # Limits
///
/// An event has at most 32 arguments; more are a compile error. The texts of `?value` and `%value`
/// are cut at 512 bytes and then end in `…`; other texts are recorded whole. A record never spans
/// pages: an event larger than a page is lost, and counted.
///
/// # Examples
///
/// ```
/// use ringmark::{Session, event};
///
/// let session = Session::builder().start().expect("a session");
/// event!("request.done", status = 200_u16, bytes = 4096_u64);
///
/// let (path, error) = ("/index.html", std::io::Error::other("reset"));
/// event!(category: "http", level: Warn, "request.failed", path, %error, peer = ?[127, 0, 0, 1]);
///
/// let retry_after: Option<u32> = None;
/// event!("request.busy", retry_after);
/// assert_eq!(session.records(), 3);
///
/// let mut evaluated = false;
/// session.set_filter("warn").expect("a filter");
/// event!("request.done", status = { evaluated = true; 200_u16 });
/// assert!(!evaluated);
/// ```
///
/// One argument too many:
///
/// ```compile_fail
/// ringmark::event!(
///     "samples", a0 = 0, a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0, a8 = 0, a9 = 0,
///     b0 = 0, b1 = 0, b2 = 0, b3 = 0, b4 = 0, b5 = 0, b6 = 0, b7 = 0, b8 = 0, b9 = 0,
///     c0 = 0, c1 = 0, c2 = 0, c3 = 0, c4 = 0, c5 = 0, c6 = 0, c7 = 0, c8 = 0, c9 = 0,
///     d0 = 0, d1 = 0, d2 = 0,
/// );
/// ```
#[macro_export]
macro_rules! event {
    ($($all:tt)*) => { $crate::__record!(@options (event) [] [] [] $($all)*) };
}

/// Emits an event that happened at a tick of the session's clock: `event_at!(TICKS, …)`.
///
/// `TICKS` comes from [`ticks`](crate::ticks). After it stands what [`event!`](crate::event!)
/// takes.
///
/// ```
/// use ringmark::{Session, event_at, ticks};
///
/// let session = Session::builder().start().expect("a session");
/// let seen = ticks();
/// event_at!(seen, level: Debug, "packet.seen", bytes = 64_u32);
/// assert_eq!(session.records(), 1);
/// ```
#[macro_export]
macro_rules! event_at {
    ($ticks:expr, $($all:tt)*) => { $crate::__record!(@options (event_at $ticks) [] [] [] $($all)*) };
}

/// Begins a span that ends, and is recorded with its duration, when the guard is dropped.
///
/// It takes what [`event!`](crate::event!) takes and returns a [`SpanGuard`](crate::SpanGuard). The
/// arguments are evaluated when the span begins. A guard that is not bound to a name ends at once.
///
/// ```
/// use ringmark::{Session, span};
///
/// let session = Session::builder().start().expect("a session");
/// {
///     let _span = span!(level: Debug, "db.query", table = "users", rows = 3_u32);
///     assert_eq!(session.records(), 0);
/// }
/// assert_eq!(session.records(), 1);
/// ```
#[macro_export]
macro_rules! span {
    ($($all:tt)*) => { $crate::__record!(@options (span) [] [] [] $($all)*) };
}

/// Makes a span for a future, which may move between threads: an [`AsyncSpan`](crate::AsyncSpan).
///
/// It takes what [`event!`](crate::event!) takes. See [`InSpan::in_span`](crate::InSpan::in_span).
///
/// ```
/// use ringmark::{InSpan, Session, async_span};
///
/// let _session = Session::builder().start().expect("a session");
/// let span = async_span!("request", id = 7_u64);
/// assert!(span.id().is_some());
/// let future = async { 3 }.in_span(span);
/// # drop(future);
/// ```
#[macro_export]
macro_rules! async_span {
    ($($all:tt)*) => { $crate::__record!(@options (async_span) [] [] [] $($all)*) };
}

/// Records the value of a counter: `counter!([OPTION,]* NAME, VALUE [, ARGUMENT]*)`.
///
/// The value is an integer or a float, and is recorded under the name `value`. Options and further
/// arguments are those of [`event!`](crate::event!).
///
/// ```
/// use ringmark::{Session, counter};
///
/// let session = Session::builder().start().expect("a session");
/// counter!("queue.depth", 7_u64);
/// counter!(level: Debug, "pool.load", 0.5_f32, pool = "http");
/// assert_eq!(session.records(), 2);
/// ```
#[macro_export]
macro_rules! counter {
    ($($all:tt)*) => { $crate::__record!(@options (counter) [] [] [] $($all)*) };
}

/// Ties events of several threads together by an id: `flow!([OPTION,]* NAME, ID [, ARGUMENT]*)`.
///
/// The id is an integer, and is recorded under the name `flow`; events with the same id belong
/// together. Options and further arguments are those of [`event!`](crate::event!).
///
/// ```
/// use ringmark::{Session, flow};
///
/// let session = Session::builder().start().expect("a session");
/// flow!("job", 42_u64, step = "queued");
/// std::thread::spawn(|| flow!("job", 42_u64, step = "done")).join().expect("the thread");
/// assert_eq!(session.records(), 2);
/// ```
#[macro_export]
macro_rules! flow {
    ($($all:tt)*) => { $crate::__record!(@options (flow) [] [] [] $($all)*) };
}
