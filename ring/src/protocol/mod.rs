//! The protocol of a ring: what its two sides do to the words that they share.
//!
//! A *writer* is one thread of the traced program, with the signal handlers nested in it. An
//! *observer* is any process that looks; a *consumer* is the one observer that also gives pages
//! back. They share memory and nothing else: no lock, no call, no wake-up between them. Every side
//! may be killed between any two instructions, and the other side goes on.
//!
//! # Files
//!
//! From the ground up:
//!
//! - The instructions: [`sync`] has the atomics, [`order`] each memory ordering by its label,
//!   [`single_instruction`] the updates that no signal handler can split.
//! - A page: `page_words` is what the writer does to its words, [`observe`] how a reader copies it.
//! - A ring: [`slot`] is its entry in the directory, `counts` and `full_ring` are private to its
//!   writer, [`writer`] and [`reservation`] put records in, `open_spans` puts spans on the
//!   stack of their thread ([`span_stack`]), `own_rings` links the rings of one thread.
//! - A session: [`directory`] hands out slots, [`schema_log`] carries the schema, [`mailbox`] the
//!   requests of a controller.
//! - The control path inside the producer: [`control_lock`], [`lease`], [`published_static`], [`withdrawal`]. They
//!   are process-private, but their orderings stand in the same table.
//!
//! # Life of a page
//!
//! Page slot `i` of a ring holds page numbers `i`, `i + pages`, `i + 2 * pages`, …. Its first word,
//! *generation*, says which one, and is stored by the writer only:
//!
//! ```text
//!  generation   0           BUSY            n + 1                     n + 1
//!           ┌───────┐   ┌──────────┐   ┌──────────────┐  PAD     ┌───────────────┐
//!           │ empty │──▶│ switched │──▶│ open         │─────────▶│ closed        │
//!           └───────┘ 1 └──────────┘ 2 │ produced =   │ 3        │ produced =    │
//!                           ▲          │        n + 1 │          │ n + 1         │
//!                           │          └──────────────┘          └───────────────┘
//!                           │                                            │ 4
//!                           │          ┌──────────────┐          ┌───────▼───────┐
//!                           │ 6        │ released     │        5 │ sealed        │
//!                           └──────────│ consumed > n │◀─────────│ produced > n+1│
//!                                      └──────────────┘          └───────────────┘
//! ```
//!
//! | step | actor | what is stored | who must not be in the way |
//! | --- | --- | --- | --- |
//! | 1 | writer | BUSY, then zeros, then the header | no reservation is under way but the caller's |
//! | 2 | writer | generation `n + 1`, then *produced* `n + 1` | |
//! | 3 | writer | a PAD record in the first empty word | |
//! | 4 | writer | *produced* `n + 2`, by step 2 of the next page; or slot state SEALED | |
//! | 5 | consumer, discard mode | *consumed* `n + 1` | another consumer |
//! | 6 | writer | as step 1, for page `n + pages` | discard: only if *consumed* > n |
//!
//! In overwrite mode steps 5 and 6 need no consumer: the writer switches a sealed page whenever it
//! comes round, and what was in it counts as overwritten. A reader that was copying it finds
//! another generation after its copy and throws the copy away.
//!
//! A page is *closed* when nothing fits into it any more. It is *sealed* when *produced*, or the
//! slot's state, says so. A full ring in discard mode has a closed page that is not sealed: its
//! last records are readable, but the page is neither counted nor released before the next switch.
//!
//! # Life of a record
//!
//! ```text
//!                 reserve: cmpxchg                commit: store, Release
//!        ┌───┐ ───────────────────▶ ┌──────────┐ ─────────────────────▶ ┌───────────┐
//!        │ 0 │                      │ BUSY + n │                        │ committed │
//!        └───┘ ─────┐               └──────────┘ ───────────┐           └───────────┘
//!                   │ the page is closed                    │ cancel, drop
//!                   ▼                                       ▼
//!                ┌─────┐                              ┌───────────┐
//!                │ PAD │                              │ CANCELLED │
//!                └─────┘                              └───────────┘
//! ```
//!
//! The right-hand states are final: no header word changes again before its page is switched.
//! A record that stays BUSY belongs to a context that was interrupted, killed, or left by
//! `longjmp`. Readers step over it by the length in the same word, and count it as reserved.
//!
//! # Life of a slot
//!
//! ```text
//!           producer:                thread:                    thread ends
//!  ┌──────┐ memory is there ┌──────┐ attaches  ┌────────┐ ─────────────────────▶ ┌────────┐
//!  │ FREE │ ──────────────▶ │ WARM │ ────────▶ │ ACTIVE │                        │ SEALED │
//!  └──────┘                 └──────┘           └────────┘ ◀───────────────────── └────────┘
//!                                               │      ▲   the next thread claims it ▲
//!                            goes on elsewhere  ▼      │  comes back                 │
//!                                              ┌───────────┐     thread ends         │
//!                                              │ ABANDONED │ ────────────────────────┘
//!                                              └───────────┘
//! ```
//!
//! Every arrow that changes the owner goes through CLAIMING, which one compare-exchange gives to
//! one thread. Positions and counts are not reset by any of them: they belong to the slot, and a
//! new claim is told from the last one by its ring id alone.
//!
//! # What happens when …
//!
//! - **a signal handler emits** in the middle of any step: it reserves after the record that is
//!   under way, in the same page. If that is full it may not switch the page, because the
//!   interrupted context could lose its place: the event is lost with cause NESTED.
//! - **the process is killed**: what was committed is in the file. The page in work is BUSY, or
//!   open with a last record BUSY; both are states that a reader knows.
//! - **the process exits** or a thread ends: the writer closes the page and publishes SEALED. A
//!   process that ends without it leaves an ACTIVE slot, which is as readable.
//! - **the process forks**: the child's writers are zeroed by the kernel, so they fit nothing, and
//!   the first event of each thread in the child takes the cold path. It never writes into the
//!   pages of its parent.
//! - **a reader is killed**: nothing depends on it. In discard mode the ring fills and counts what
//!   it loses until another consumer goes on from *consumed*.
//! - **the file is damaged** by a third process: readers bound every length and number before they
//!   use it. The writer trusts only words of its own memory; its page words may be damaged, and it
//!   then closes the page early, but it never leaves the page.
//!
//! # What this is not
//!
//! No queue between threads: one thread writes a ring. No blocking: a full ring loses and counts.
//! No wake-up: readers poll. No durability: a page is in memory until a reader has stored it.

pub mod clock_sample;
pub mod control_lock;
mod counts;
pub mod directory;
mod full_ring;
pub mod lease;
pub mod mailbox;
pub mod observe;
mod open_spans;
pub mod order;
mod own_rings;
mod page_words;
pub mod published_static;
pub mod raw_span;
pub mod reservation;
pub mod schema_log;
pub mod single_instruction;
pub mod slot;
pub mod span_stack;
pub mod sync;
pub mod withdrawal;
pub mod writer;
