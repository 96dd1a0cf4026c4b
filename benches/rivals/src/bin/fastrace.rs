//! fastrace: events and spans without a value (a value is a string there) below a root. Its thread hands them to a reporter that counts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use fastrace::collector::{Config, Reporter, SpanRecord};
use fastrace::prelude::*;
use ringmark_rivals::{Rival, account, serve};

/// Events below one root: it drops those after 10,240 without a word.
const TRACE: usize = 4096;

static EVENTS: AtomicU64 = AtomicU64::new(0);

struct Counter;

impl Reporter for Counter {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        let events: usize = spans.iter().map(|span| span.events.len()).sum();
        EVENTS.fetch_add(events as u64, Relaxed);
    }
}

struct Fastrace;

impl Rival for Fastrace {
    fn events(&mut self, n: u64) {
        for at in (0..n).step_by(TRACE) {
            let root = Span::root("window", SpanContext::random());
            let _parent = root.set_local_parent();
            let _span = LocalSpan::enter_with_local_parent("events");
            for _ in at..n.min(at + TRACE as u64) {
                LocalSpan::add_event(Event::new("bench.event"));
            }
        }
    }

    fn spans(&mut self, n: u64) {
        let root = Span::root("window", SpanContext::random());
        let _parent = root.set_local_parent();
        for _ in 0..n {
            let _span = LocalSpan::enter_with_local_parent("bench.span");
        }
    }
}

fn main() {
    fastrace::set_reporter(Counter, Config::default());
    serve(&mut Fastrace);
    fastrace::flush();
    account(EVENTS.load(Relaxed), 0, 0);
}
