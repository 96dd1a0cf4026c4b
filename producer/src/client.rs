//! For libraries that bring record types of their own, such as a function tracer: they describe
//! them in the schema, reserve records by [`reserve_words`], and answer requests.

/// What a record stands for; decides what its leading arguments mean.
///
/// ```
/// use ringmark::client::Shape;
///
/// assert_eq!(Shape::Counter.name(), "counter");
/// ```
#[doc(inline)]
pub use crate::description::Shape;
/// The number of an event type in a session, from 16.
///
/// ```
/// use ringmark::client::TypeId;
///
/// assert!(TypeId(16) < TypeId(17));
/// ```
#[doc(inline)]
pub use ringmark_format::TypeId;

pub use crate::description::{Description, EventType, Field, Now, Place, TypeState};
pub use crate::event::emit::reserve_words;
/// CPU time of the process, and of the calling thread.
///
/// ```
/// use ringmark::client::CpuTime;
///
/// let before = CpuTime::now();
/// assert!(before.process_ns > 0 && before.thread_ns > 0);
/// (0..1_000_000_u32).for_each(|n| drop(std::hint::black_box(n)));
/// assert!(CpuTime::now().process_ns > before.process_ns);
/// ```
#[doc(inline)]
pub use crate::ring::clock::CpuTime;
/// The system's monotonic clock in ns, read without a function that a program could replace.
///
/// ```
/// use ringmark::client::monotonic_ns;
///
/// let before = monotonic_ns();
/// assert!(monotonic_ns() >= before);
/// ```
#[doc(inline)]
pub use crate::ring::clock::monotonic_ns;
use crate::session;
pub use crate::session::RingCounts;

impl Description<'_> {
    /// Registers an event type that is no call site of a Rust macro, once for each type.
    ///
    /// It is in the schema from now on, also in that of forked children, and enabled or disabled as
    /// the filter says.
    ///
    /// Takes the lock of the control path: not for signal handlers.
    pub fn register(&self) {
        session::register_dynamic(self);
    }
}

/// Appends entries to the schema of the session, and of the sessions of forked children.
///
/// Each entry is a `ringmark_format::schema::EntryHeader` with the bytes that belong to it. Called
/// before the first record that needs them. `false`: there is no room, and readers show the
/// records raw.
///
/// Takes the lock of the control path: not for signal handlers.
///
/// ```
/// let _session = ringmark::Session::builder().start().expect("a session");
/// // An entry of an unknown kind, which readers skip: its size, its kind, its id.
/// let mut entry = [0; 16];
/// (entry[0], entry[4]) = (16, 0xFF);
/// assert!(ringmark::client::append_schema(&entry));
/// ```
pub fn append_schema(entries: &[u8]) -> bool {
    session::append_written(entries)
}

/// Registers the function that answers requests of tools whose first word is `word`.
///
/// `answer` gets the whole text, and returns the answer or what is wrong. `idle` is called at least
/// ten times a second between requests; the `idle` of the last call counts. Both run on the
/// session's helper thread; there is none with [`Builder::control`](crate::Builder::control) off.
///
/// ```
/// use ringmark::client::answer_requests;
///
/// fn answer(request: &str) -> Result<String, String> {
///     let name = request.strip_prefix("greet ").ok_or("expected `greet NAME`")?;
///     Ok(format!("hello {name}"))
/// }
///
/// answer_requests("greet", answer, || ());
/// assert_eq!(answer("greet you").as_deref(), Ok("hello you"));
/// ```
pub fn answer_requests(word: &'static str, answer: fn(&str) -> Result<String, String>, idle: fn()) {
    session::answer_requests(word, answer, idle);
}

/// Keeps the shared object in which `address` lies mapped until the process ends, also when it is
/// closed. `true`: this is the first call with this address.
///
/// Takes the lock of the control path: not for signal handlers.
///
/// ```
/// use ringmark::client::keep_mapped;
///
/// static TYPES: [u64; 2] = [0; 2];
/// let address = std::ptr::from_ref(&TYPES).cast();
/// assert!(keep_mapped(address));
/// assert!(!keep_mapped(address));
/// ```
pub fn keep_mapped(address: *const ()) -> bool {
    let is_first = session::is_first(address.addr());
    if is_first {
        session::keep_mapped(address.cast());
    }
    is_first
}
