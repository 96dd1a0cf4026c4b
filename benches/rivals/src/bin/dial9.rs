//! dial9: segments on disk, written by its own thread. A span is two events.

use std::fs;
use std::hint::black_box;

use dial9::core::clock_monotonic_ns;
use dial9::format::{Decoder, TraceEvent};
use dial9::{Dial9Handle, DiskBuffer, recorder};
use ringmark_rivals::{Rival, account, serve};

#[derive(TraceEvent)]
struct Value {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    value: u64,
}

/// One end of a span.
#[derive(TraceEvent)]
struct End {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    value: u64,
}

struct Dial9(Dial9Handle);

impl Rival for Dial9 {
    fn events(&mut self, n: u64) {
        for i in 0..n {
            self.0.record_event(Value {
                timestamp_ns: clock_monotonic_ns(),
                value: black_box(i),
            });
        }
    }

    fn spans(&mut self, n: u64) {
        for i in 0..2 * n {
            self.0.record_event(End {
                timestamp_ns: clock_monotonic_ns(),
                value: black_box(i),
            });
        }
    }
}

fn main() {
    let directory = std::env::current_dir().expect("a directory").join("dial9");
    fs::create_dir_all(&directory).expect("a directory");
    let buffer = DiskBuffer::builder().base_path(directory.join("trace"));
    let buffer = buffer.max_total_size(4 << 30).build().expect("a buffer");
    let recorder = recorder(buffer).build();
    serve(&mut Dial9(recorder.handle().clone()));
    drop(recorder);
    let (mut events, mut bytes) = (0, 0);
    for file in walk(&directory) {
        let data = fs::read(file).expect("a segment");
        bytes += data.len() as u64;
        let Some(mut decoder) = Decoder::new(&data) else {
            continue;
        };
        let _ = decoder.for_each_event(|event| events += u64::from(event.name == "Value"));
    }
    account(events, 0, bytes);
}

fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                walk(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}
