//! Perfetto's SDK with its service in the same process and a buffer of 64 MiB. Read when it ends.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use perfetto_sdk::heap_buffer::HeapBuffer;
use perfetto_sdk::pb_msg::{PbMsg, PbMsgWriter};
use perfetto_sdk::producer::{Backends, Producer, ProducerInitArgsBuilder};
use perfetto_sdk::protos::config::data_source_config::DataSourceConfig;
use perfetto_sdk::protos::config::trace_config::{
    TraceConfig, TraceConfigBufferConfig, TraceConfigDataSource,
};
use perfetto_sdk::protos::config::track_event::track_event_config::TrackEventConfig;
use perfetto_sdk::tracing_session::TracingSession;
use perfetto_sdk::track_event::*;
use perfetto_sdk::{
    track_event_begin, track_event_categories, track_event_end, track_event_instant,
};
use ringmark_rivals::{Rival, serve};

track_event_categories! {
    pub mod categories {
        ( "bench", "Events of a race", [] ),
    }
}

use categories as perfetto_te_ns;

struct Perfetto;

impl Rival for Perfetto {
    fn events(&mut self, n: u64) {
        for i in 0..n {
            track_event_instant!("bench", "bench.event", |context: &mut EventContext| {
                context.add_debug_arg("value", TrackEventDebugArg::Uint64(black_box(i)));
            });
        }
    }

    fn spans(&mut self, n: u64) {
        for i in 0..n {
            track_event_begin!("bench", "bench.span", |context: &mut EventContext| {
                context.add_debug_arg("value", TrackEventDebugArg::Uint64(black_box(i)));
            });
            track_event_end!("bench");
        }
    }
}

fn configuration() -> Vec<u8> {
    let writer = PbMsgWriter::new();
    let buffer = HeapBuffer::new(writer.stream_writer());
    let mut message = PbMsg::new(&writer).expect("a message");
    {
        let mut config = TraceConfig { msg: &mut message };
        config.set_buffers(|buffers: &mut TraceConfigBufferConfig| {
            buffers.set_size_kb(64 << 10);
        });
        config.set_data_sources(|sources: &mut TraceConfigDataSource| {
            sources.set_config(|source: &mut DataSourceConfig| {
                source.set_name("track_event");
                source.set_track_event_config(|events: &mut TrackEventConfig| {
                    events.set_enabled_categories("bench");
                });
            });
        });
    }
    message.finalize();
    let mut bytes = vec![0; writer.stream_writer().get_written_size()];
    buffer.copy_into(&mut bytes);
    bytes
}

fn main() {
    let arguments = ProducerInitArgsBuilder::new().backends(Backends::IN_PROCESS);
    Producer::init(arguments.build());
    TrackEvent::init();
    perfetto_te_ns::register().expect("a category");
    let mut session = TracingSession::in_process().expect("a session");
    session.setup(&configuration());
    session.start_blocking();
    serve(&mut Perfetto);
    session.stop_blocking();
    let bytes = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&bytes);
    session.read_trace_blocking(move |data, _| {
        counted.fetch_add(data.len() as u64, Relaxed);
    });
    println!("bytes {}", bytes.load(Relaxed));
}
