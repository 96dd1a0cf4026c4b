//! `event!`, `span!`, `counter!`, `flow!`, `event_at!`, `async_span!`: one grammar, read by one
//! hidden macro.

/// Reads what the macros were given, step by step; `$to` is `(macro …)`, for the last step.
///
/// `@options`: `level:`, `category:`, `target:` in any order, one slot `[]` for each. `@name`: the
/// name, and what the macro has in front of its arguments. `@arguments`: one `+` for each so far,
/// their names and values. `@finish`: the code. `@callsite`, `@level`, `@text`: parts of it.
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
        struct Here;
        static STATE: $crate::client::TypeState = $crate::client::TypeState::new();
        impl $crate::__private::Callsite for Here {
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
                    state: &STATE,
                }
            }
            #[inline(always)]
            fn state() -> &'static $crate::client::TypeState {
                &STATE
            }
        }
        Here
    }};
    (@level) => { $crate::Level::Info };
    (@level $level:ident) => { $crate::Level::$level };
    (@text [$default:expr]) => { $default };
    (@text [$default:expr] $given:expr) => { $given };
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
    ($($all:tt)*) => { $crate::__record!(@options (event) [] [] [] $($all)*) };
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
    ($ticks:expr, $($all:tt)*) => { $crate::__record!(@options (event_at $ticks) [] [] [] $($all)*) };
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
    ($($all:tt)*) => { $crate::__record!(@options (span) [] [] [] $($all)*) };
}

/// Makes a span for a future, which may move between threads:
/// `work(n).in_span(async_span!("request", id = n)).await`. See [`crate::InSpan`]; it takes what
/// [`event!`](crate::event!) takes.
#[macro_export]
macro_rules! async_span {
    ($($all:tt)*) => { $crate::__record!(@options (async_span) [] [] [] $($all)*) };
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
    ($($all:tt)*) => { $crate::__record!(@options (counter) [] [] [] $($all)*) };
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
    ($($all:tt)*) => { $crate::__record!(@options (flow) [] [] [] $($all)*) };
}
