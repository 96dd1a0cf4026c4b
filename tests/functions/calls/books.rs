//! The books of a dump of function records: what each thread entered, left, and left behind.

use std::collections::BTreeMap;

use ringmark_decoder::{Calls, Dump, Ended, Event, FunctionWords, Output, Step};
use ringmark_format::Uuid;

/// What was recorded of one function.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    /// Entries, those whose end is not recorded among them; calls of one record each, too.
    pub(crate) calls: u64,
    /// Entries whose end is not recorded.
    pub(crate) loose: u64,
    /// Exits by a return.
    pub(crate) returned: u64,
    /// Exits otherwise.
    pub(crate) unwound: u64,
}

/// A thread's calls.
#[derive(Debug, Default)]
struct Thread {
    /// Those that are open.
    open: Vec<u32>,
    errors: Vec<String>,
}

/// Open calls on stacks that are not their thread's own, by session and slot.
type Elsewhere = BTreeMap<(Uuid, u64), u32>;

/// What was recorded of all functions.
#[derive(Default)]
pub(crate) struct Books {
    /// By name without parameters and scopes.
    pub(crate) functions: BTreeMap<String, Function>,
    /// Records that are not there, by cause.
    pub(crate) lost: BTreeMap<&'static str, u64>,
    /// Calls that are open at the end, all threads.
    pub(crate) open: u64,
    /// The same, as the decoder's own library for calls sees it.
    pub(crate) open_by_library: u64,
    /// Calls of which that library did not see the end, or the beginning.
    pub(crate) unseen: u64,
    /// Exits without an entry: of calls that a forked child took over from its parent.
    pub(crate) taken_over: u64,
    /// Records of calls on stacks that are not their thread's own.
    pub(crate) elsewhere: u64,
    /// Calls there without an exit, whose slot another call had afterwards.
    pub(crate) left: u64,
    /// Threads.
    pub(crate) threads: usize,
    /// Payload words of entries and exits, in order: (name, exit, words).
    pub(crate) words: Vec<(String, bool, Vec<u64>)>,
    errors: Vec<String>,
}

impl std::fmt::Debug for Books {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sum = self.sum();
        let (open, threads, lost) = (self.open, self.threads, &self.lost);
        let (elsewhere, left) = (self.elsewhere, self.left);
        write!(f, "{sum:?} open {open} threads {threads} lost {lost:?}")?;
        write!(f, " elsewhere {elsewhere} left {left}")
    }
}

/// `scope::name<T>(parameters) [clone .part.0]`, and `<type as trait>::name` of Rust, without what
/// surrounds the name.
fn plain_name(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name).replace("(anonymous namespace)::", "");
    let name = match name.rsplit_once(">::") {
        Some((front, last)) if front.starts_with('<') => last.to_owned(),
        _ => name,
    };
    // `name::<T>`, as newer symbols have it.
    let name = match name.split_once("::<") {
        Some((front, _)) => front.to_owned(),
        None => name,
    };
    let front = name.split(['(', ' ']).next().unwrap_or("");
    let last = front.rsplit("::").next().unwrap_or("");
    last.split('.').next().unwrap_or("").to_owned()
}

impl Books {
    /// Goes over a dump.
    #[must_use]
    pub(crate) fn of(dump: &Dump) -> Self {
        let mut books = Self::default();
        let mut threads: BTreeMap<(Uuid, u64), Thread> = BTreeMap::new();
        let mut elsewhere = Elsewhere::new();
        let mut calls = Calls::new(None);
        for item in dump.events() {
            match item {
                Output::Event(event) => {
                    let key = (event.session.uuid, event.ring().0);
                    let has_slot = event.ty.function.is_some_and(|meaning| meaning.has_slot);
                    books.elsewhere += u64::from(has_slot);
                    if has_slot {
                        books.take_elsewhere(&event, &mut elsewhere);
                    }
                    books.take(&event, threads.entry(key).or_default());
                    calls.take(&event, |step| books.unseen += u64::from(is_unseen(&step)));
                }
                Output::Lost(lost) => {
                    *books.lost.entry(lost.loss.why.cause()).or_default() += lost.loss.count;
                }
            }
        }
        books.threads = threads.len();
        for thread in threads.into_values() {
            books.open += thread.open.len() as u64;
            books.errors.extend(thread.errors);
        }
        books.open += elsewhere.len() as u64;
        books.open_by_library = calls.open().count() as u64;
        books
    }

    fn take(&mut self, event: &Event<'_>, thread: &mut Thread) {
        let functions = event.session.schema.functions();
        let meaning = event.ty.function;
        let Some((meaning, function)) =
            meaning.and_then(|m| Some((m, functions.function(m.function)?)))
        else {
            self.errors
                .push("an event that is no function record".into());
            return;
        };
        let name = plain_name(&function.name);
        let words = event.payload.as_chunks::<8>().0;
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        self.words
            .push((name.clone(), meaning.exit, words.collect()));
        let counts = self.functions.entry(name.clone()).or_default();
        match (meaning.exit, meaning.loose) {
            _ if meaning.timed => counts.calls += 1,
            (false, loose) => {
                counts.calls += 1;
                counts.loose += u64::from(loose);
                if !loose && !meaning.has_slot {
                    thread.open.push(meaning.function);
                }
            }
            (true, unwound) => {
                counts.returned += u64::from(!unwound);
                counts.unwound += u64::from(unwound);
                if meaning.has_slot {
                    return;
                }
                match thread.open.pop() {
                    Some(open) if open == meaning.function => {}
                    None => self.taken_over += 1,
                    Some(_) => thread.errors.push(format!("{name} was not the innermost")),
                }
            }
        }
    }

    /// A record of a call on a stack that is not its thread's own: it ends by its slot.
    fn take_elsewhere(&mut self, event: &Event<'_>, open: &mut Elsewhere) {
        let Some(meaning) = event.ty.function else {
            return;
        };
        let slot = FunctionWords::read(meaning, &event.payload).slot;
        let key = (event.session.uuid, slot.expect("a slot"));
        if !meaning.exit {
            self.left += u64::from(open.insert(key, meaning.function).is_some());
        } else if open.remove(&key) != Some(meaning.function) {
            self.errors
                .push(format!("an exit without its entry at {key:x?}"));
        }
    }

    /// All functions together.
    #[must_use]
    pub(crate) fn sum(&self) -> Function {
        let mut sum = Function::default();
        for one in self.functions.values() {
            sum.calls += one.calls;
            sum.loose += one.loose;
            sum.returned += one.returned;
            sum.unwound += one.unwound;
        }
        sum
    }

    /// Nothing is lost, calls nest, and each call has returned, was unwound or is open.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub(crate) fn expect_closed(&self, what: &str) {
        assert!(self.lost.is_empty(), "{what}: lost {:?}", self.lost);
        assert!(self.errors.is_empty(), "{what}: {:?}", self.first_errors());
        let sum = self.sum();
        let ended = sum.returned + sum.unwound - self.taken_over;
        let open = self.open + self.left;
        assert_eq!(sum.calls - sum.loose, ended + open, "{what}: {self:?}");
        assert_eq!(self.open, self.open_by_library, "{what}");
        assert_eq!(self.unseen, self.taken_over, "{what}");
    }

    /// Records are missing for one cause only, all of them counted: entry and exit of each call
    /// that the program counted are there or lost. Exits of `open` calls are neither; nor are those
    /// of calls that were not to have one, which may be among the `lost`.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub(crate) fn expect_all_but(
        &self,
        cause: &str,
        open: u64,
        own: &BTreeMap<String, u64>,
        what: &str,
    ) {
        let is_only = self.lost.keys().all(|found| *found == cause);
        assert!(is_only, "{what}: lost {:?}", self.lost);
        let lost: u64 = self.lost.values().sum();
        let counted = self
            .functions
            .iter()
            .filter(|(name, _)| own.contains_key(*name));
        let found: u64 = counted.map(|(_, f)| f.calls + f.returned + f.unwound).sum();
        let calls: u64 = own.values().sum();
        let (loose, all) = (self.sum().loose, found + lost);
        let most = 2 * calls - loose - open;
        // A handler in the middle of a page's turn runs on a stack of ours: its calls are loose.
        let least = if cause == "nested" { most - lost } else { most };
        assert!(
            (least..=most).contains(&all),
            "{what}: {all}, {least}..={most}: {self:?}"
        );
    }

    /// The same where a thread's ring was full from some call on: of calls whose entry is there the
    /// exit may be lost, and they look open.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub(crate) fn expect_full(&self, own: &BTreeMap<String, u64>, open: u64) {
        let calls: u64 = own.values().sum::<u64>() + 1; // And main.
        let lost: u64 = self.lost.values().sum();
        let sum = self.sum();
        let found = sum.calls + sum.returned + sum.unwound;
        assert_eq!(found + lost, 2 * calls, "{self:?}, {open} look open");
    }

    fn first_errors(&self) -> &[String] {
        &self.errors[..self.errors.len().min(10)]
    }

    /// Each function was recorded as often as it counted itself.
    ///
    /// # Panics
    /// When one was not.
    #[track_caller]
    pub(crate) fn expect_calls(&self, own: &BTreeMap<String, u64>, what: &str) {
        for (name, count) in own {
            let found = self.functions.get(name).map_or(0, |f| f.calls);
            assert_eq!(found, *count, "{what}: calls of {name}");
        }
    }
}

fn is_unseen(step: &Step<'_>) -> bool {
    match step {
        Step::Left(call) => call.ended == Ended::Unseen || call.entered_ns.is_none(),
        _ => false,
    }
}
