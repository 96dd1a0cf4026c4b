//! Reads trace files: blocks become events, and events become text, JSON or sums.
//!
//! The decoder works offline and is total: any input ends in events, in [`Damage`] with its place,
//! or in [`Lost`] with a count. The folders follow the way of the data; each one knows only those
//! before it:
//!
//! 1. `words`: single values as text (numbers, timestamps, escaped strings), names compared.
//! 2. `blocks`: bytes to checked blocks ([`BlockReader`]), blocks to pages ([`Page`]).
//! 3. `trace_file`: the model. [`DumpBuilder`] groups blocks by session; a [`Dump`] holds each
//!    [`Session`] with its [`Schema`], its clock, its slots and pages.
//! 4. `events`: pages to [`Event`]s and [`Lost`] in the order of time ([`Dump::events`]); filters.
//! 5. `sums`: what events say together: [`Calls`], times of functions, [`Verification`].
//! 6. `show`: events and calls as lines of text and JSON.
//! 7. `rows`: spans, calls and events as rows of a table ([`Dump::each_row`]), and as CSV.
//! 8. `cut`: a piece of a dump as a trace file ([`Dump::cut`]).
//! 9. `parts`: a trace that comes in parts, each read once ([`Part`]).
//! 10. [`store`]: the segments of a collector's store and their indexes.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut builder = ringmark_decoder::DumpBuilder::new();
//! builder.read("ringmark.rmk", std::fs::File::open("ringmark.rmk")?)?;
//! let dump = builder.finish();
//! let mut writer = ringmark_decoder::TextWriter::new();
//! let mut lines = Vec::new();
//! for item in dump.events() {
//!     writer.write(&item, &mut lines);
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

#[cfg(target_endian = "big")]
compile_error!("Ringmark's format is little-endian and its types are read in place");

pub mod store;

mod blocks;
mod cut;
mod events;
mod parts;
mod rows;
mod show;
mod sums;
mod trace_file;
mod words;

pub use blocks::block_reader::{Block, BlockReader, Item};
pub use blocks::damage::{Damage, Fault, PageId, looks_like};
pub use blocks::page::{Page, Summary};
pub use cut::{Piece, PieceFigures};
pub use events::call_took::CallTook;
pub use events::event::{Event, Lost, NearStart, Output, Start};
pub use events::filter::Filter;
pub use events::filter_error::FilterError;
pub use events::follow::Follower;
pub use events::merge::Events;
pub use events::payload::Payload;
pub use events::span::{Entered, Span};
pub use events::span_contents::SpanContents;
pub use events::span_pairs::{CutSpans, Paired, SpanPairs};
pub use events::stats::{RingCount, Stats, TypeCount};
pub use parts::{CoveredSession, CoveredSlot, LossRow, Part, PartEnd, Settled};
pub use rows::args::{ArgColumn, ArgKind, value_text};
pub use rows::cell::text as csv_text;
pub use rows::column::Column;
pub use rows::csv::CsvWriter;
pub use rows::each::{Chosen, RowsEnd};
pub use rows::groups::{Group, Groups};
pub use rows::row::Row;
pub use show::call_graph::{CallGraph, GraphLine};
pub use show::call_json::{CallJsonWriter, CallLimits};
pub use show::json::JsonWriter;
pub use show::text::{TextWriter, event_text, event_words, span_args};
pub use show::unplaced::{unordered_notice, unplaced_notice};
pub use show::word_forms::WordForms;
pub use store::{IndexBuilder, SegmentIndex};
pub use sums::call_figures::{CallCounts, CallTimes};
pub use sums::calls::{Call, Calls, Ended, OpenCall, Step};
pub use sums::changes::{Change, Compared, Figure, Side};
pub use sums::chosen_calls::ChosenCalls;
pub use sums::cover::Cover;
pub use sums::durations::{Bucket, Durations};
pub use sums::endings::{PanicRecord, SessionEnd};
pub use sums::figures::{Counted, Figures};
pub use sums::function_times::{FunctionTimes, NoEnd, Profile};
pub use sums::health::{HealthLimits, HostHealth, HostState};
pub use sums::hosts::HostFigures;
pub use sums::last_words::{LastWords, Moment};
pub use sums::open_spans::{Kept, OpenSpan, OpenThread};
pub use sums::path_walk::{PathRoot, PathRoots};
pub use sums::paths::{ChosenPaths, Path, PathName, PathSums, Paths};
pub use sums::profiled::{ProfiledByTracer, ProfiledFunction};
pub use sums::ran_functions::{RanFunction, RanFunctions};
pub use sums::sampled::{Sampled, SampledKind, SampledName, Samples};
pub use sums::slowest::Slowest;
pub use sums::span_times::{SpanProfile, SpanTimes};
pub use sums::verify::{LostByCause, Verification};
pub use trace_file::choice::SessionChoice;
pub use trace_file::dump::{Dump, DumpBuilder};
pub use trace_file::field::Field;
pub use trace_file::finished_spans::lies_in;
pub use trace_file::function_words::FunctionWords;
pub use trace_file::functions::{Function, FunctionUse, Functions, Module, Tracer};
pub use trace_file::loss::{Loss, Why};
#[cfg(feature = "bytemuck")]
pub use trace_file::plain::CastError;
#[doc(hidden)]
pub use trace_file::progress::{AbsentPages, AbsentPart, HostProgress};
pub use trace_file::samples::{RanIn, SampleAt, StackText};
pub use trace_file::schema::{EventType, Origin, Schema};
pub use trace_file::session::{Counters, Session, Slot};
pub use trace_file::thread_states::{ThreadDoes, ThreadState};
pub use trace_file::thread_times::ThreadTimes;
pub use trace_file::time::SessionClock;
pub use trace_file::value::Value;
pub use trace_file::wait_text::WaitText;
pub use trace_file::waited_for::WaitedFor;
pub use words::duration::nanoseconds as duration_ns;
pub use words::small_keys::{Multiply, SmallKeys};
pub use words::timestamp::{Stamper, TIMESTAMP_BYTES, parse as parse_timestamp, parse_anywhere};
pub use words::{escape, number};
