//! What a stream costs beside a bare loop that sends the same blocks to the same collector, which
//! checks every checksum and stores in memory; then what a synced disk takes of it.
//!
//! Not run by `./test`: it fills a quarter of a gigabyte of memory several times over.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use ringmark::event;
use ringmark_benches::{child_argument, finish, percentiles, print_bar, thread_cpu_seconds};
use ringmark_collector::store::{Retention, StoreOptions, Sync};
use ringmark_collector::{Collector, CollectorOptions};
use ringmark_format::Uuid;
use ringmark_format::attribute::{self, tag};
use ringmark_format::block::BlockHeader;
use ringmark_format::codec::write;
use ringmark_format::stream::{Ack, Hello, STREAM_MAJOR, STREAM_MINOR, kind};
use ringmark_reader::stream::{Address, Introduction, StreamOptions, Streamer};
use ringmark_reader::{Codec, Destination, Dump, RecordOptions, Recorder, Selection};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use zerocopy::{FromBytes, IntoBytes};

const ROUNDS: usize = 7;
const PIECE: usize = 1 << 20;
/// Rings of threads, filled to the brim.
const RINGMARK: &str = "mode=lossless,ring=16M,page=64K,session=400M,keep=always";
const THREADS: usize = 16;

#[derive(Clone, Copy)]
struct Cost {
    mb_per_s: f64,
    cpu_ms_per_gb: f64,
}

fn main() {
    if child_argument().is_some() {
        return fill();
    }
    let place = Place::new();
    let mut all: [Vec<Cost>; 4] = Default::default();
    for _ in 0..ROUNDS {
        all[0].push(place.measure(Sync::Cache, |to| send_loop(to, &place.dump)));
        all[1].push(place.measure(Sync::Cache, |to| stream(to, &place.ring_file(), false)));
        all[2].push(place.measure(Sync::Cache, |to| sendfile_loop(to, &place.dump)));
        all[3].push(place.measure(Sync::Cache, |to| stream(to, &place.ring_file(), true)));
    }
    let names = [
        "send loop",
        "streamer",
        "sendfile loop",
        "streamer --zero-copy",
    ];
    let mut rates = [0.0; 4];
    println!("{:24} {:>8} {:>12}", "", "MB/s", "CPU ms/GB");
    for (index, (name, costs)) in names.iter().zip(&all).enumerate() {
        let median = |of: fn(&Cost) -> f64| percentiles(costs.iter().map(of).collect())[1];
        rates[index] = median(|cost| cost.mb_per_s);
        let cpu = median(|cost| cost.cpu_ms_per_gb);
        println!("{name:24} {:8.0} {cpu:12.0}", rates[index]);
    }
    let bars = [
        (
            "copying: bare send loop / streamer",
            rates[0] / rates[1],
            1.0 / 0.85,
        ),
        (
            "zero-copy: bare sendfile / streamer",
            rates[2] / rates[3],
            1.0 / 0.85,
        ),
        (
            "collector: 400 MB/s / bare send loop",
            400.0 / rates[0],
            1.0,
        ),
    ];
    let mut missed = false;
    for (what, value, most) in bars {
        missed |= value > most;
        print_bar("S1", what, value, most, value <= most);
    }
    place.disk();
    drop(place);
    finish(missed)
}

/// A process that fills its rings, and leaves them.
fn fill() {
    ringmark::start_from_env();
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for i in 0..600_000_u64 {
                    event!("streaming.work", i = i, j = i, k = i);
                }
                // A ring is not to be used again.
                barrier.wait();
            });
        }
    });
}

/// A directory in memory with a ring file to stream, and the dump of it.
struct Place {
    directory: PathBuf,
    original: PathBuf,
    dump: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Place {
    fn new() -> Self {
        let name = format!("ringmark-streaming-{}", std::process::id());
        let directory = Path::new("/dev/shm").join(name);
        let sessions = directory.join("sessions");
        let program = std::env::current_exe().expect("the path of this program");
        let mut child = Command::new(program);
        child.arg("fill").env("RINGMARK", RINGMARK);
        fs::create_dir_all(&directory).expect("a directory");
        let filled = child.env("RINGMARK_DIR", &sessions).status();
        assert!(filled.is_ok_and(|status| status.success()), "a filled ring");
        let mut files = fs::read_dir(&sessions).expect("sessions").flatten();
        let original = files
            .find(|entry| entry.metadata().is_ok_and(|about| about.len() > 1 << 20))
            .expect("a ring file")
            .path();
        let place = Self {
            dump: directory.join("dump"),
            directory,
            original,
        };
        place.record();
        place
    }

    /// A ring file that nobody has read.
    fn ring_file(&self) -> PathBuf {
        let copy = self.directory.join("copy.ring");
        let _ = fs::copy(&self.original, &copy).expect("a copy");
        copy
    }

    fn record(&self) {
        let dump = Dump::create(&Destination::File(self.dump.clone()), false).expect("a dump");
        let selection = Selection::Path(self.ring_file());
        let options = RecordOptions::default();
        let mut recorder = Recorder::new(selection, dump, options).expect("a session");
        recorder.finish().expect("a recording");
        let bytes = fs::metadata(&self.dump).expect("a dump").len();
        println!("{} MB in pages of 64 KiB", bytes / 1_000_000);
        assert!(bytes > 100_000_000, "a full ring");
    }

    /// Has the bytes sent to a new collector, until it has acknowledged all of them.
    fn measure(&self, sync: Sync, send: impl FnOnce(&str) -> (u64, Duration, f64)) -> Cost {
        self.measure_at(&self.directory.join("store"), sync, send)
    }

    fn measure_at(
        &self,
        store: &Path,
        sync: Sync,
        send: impl FnOnce(&str) -> (u64, Duration, f64),
    ) -> Cost {
        let collecting = Collecting::start(store, sync);
        let (bytes, time, cpu) = send(&collecting.address);
        drop(collecting);
        let _ = fs::remove_dir_all(store);
        Cost {
            mb_per_s: bytes as f64 / 1e6 / time.as_secs_f64(),
            cpu_ms_per_gb: cpu * 1e3 / (bytes as f64 / 1e9),
        }
    }

    /// The same on a disk, beside `dd conv=fdatasync`.
    fn disk(&self) {
        let store = std::env::temp_dir().join(format!("ringmark-store-{}", std::process::id()));
        let mut rates = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let ours = self.measure_at(&store, Sync::Disk, |to| {
                stream(to, &self.ring_file(), false)
            });
            rates.0.push(ours.mb_per_s);
            rates.1.push(self.dd(&store.with_extension("dd")));
        }
        let (ours, dd) = (percentiles(rates.0)[1], percentiles(rates.1)[1]);
        println!("synced disk: streamer {ours:.0} MB/s, dd conv=fdatasync {dd:.0} MB/s");
    }

    fn dd(&self, to: &Path) -> f64 {
        let bytes = fs::metadata(&self.dump).expect("a dump").len();
        let begun = Instant::now();
        let mut dd = Command::new("dd");
        dd.arg(format!("if={}", self.dump.display()));
        dd.arg(format!("of={}", to.display()));
        let done = dd.args(["bs=1M", "conv=fdatasync", "status=none"]).status();
        assert!(done.is_ok_and(|status| status.success()), "dd");
        let rate = bytes as f64 / 1e6 / begun.elapsed().as_secs_f64();
        let _ = fs::remove_file(to);
        rate
    }
}

/// A collector of its own, on two cores.
struct Collecting {
    runtime: Option<Runtime>,
    stop: Option<oneshot::Sender<()>>,
    address: String,
}

impl Collecting {
    fn start(root: &Path, sync: Sync) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let options = CollectorOptions {
            listen: vec![Address::Tcp("127.0.0.1:0".to_owned())],
            store: StoreOptions {
                root: root.to_owned(),
                sync,
                segment_bytes: 256 << 20,
                session_bytes: 64 << 20,
                segment_age: Duration::from_secs(3600),
                retention: Retention::default(),
            },
            credentials: None,
            token: None,
            handshake_within: Duration::from_secs(8),
            connections: 16,
            memory_bytes: 64 << 20,
            metrics: None,
        };
        let (notices, _) = tokio::sync::mpsc::unbounded_channel();
        let collector = runtime.block_on(Collector::start(options, notices));
        let collector = collector.expect("a collector");
        let address = collector.addresses().first().map(ToString::to_string);
        let (stop, stopped) = oneshot::channel();
        drop(runtime.spawn(collector.run(async move { drop(stopped.await) })));
        Self {
            runtime: Some(runtime),
            stop: Some(stop),
            address: address.expect("an address"),
        }
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }
}

/// Bytes, time and CPU time of a streamer.
fn stream(to: &str, ring_file: &Path, zero_copy: bool) -> (u64, Duration, f64) {
    let options = StreamOptions {
        selection: Selection::Path(ring_file.to_owned()),
        to: to.parse().expect("an address"),
        credentials: None,
        introduction: Introduction::of_this_host(),
        codec: Codec::None,
        retry: Duration::from_millis(10),
        open_every: Duration::from_secs(5),
        spill: None,
        zero_copy,
    };
    let mut streamer = Streamer::new(options).expect("a session");
    // From the connection on, as for the others: a ring is mapped in once in its life, while there
    // is none.
    let mut begun = None;
    let done = streamer.run(&AtomicBool::new(false), |streamer| {
        if begun.is_none() && streamer.figures().connected {
            begun = Some((Instant::now(), thread_cpu_seconds()));
        }
    });
    done.expect("all is durable");
    let (begun, cpu) = begun.expect("a connection");
    let (time, cpu) = (begun.elapsed(), thread_cpu_seconds() - cpu);
    (streamer.figures().sent, time, cpu)
}

/// A bare connection: greeted, and its acknowledgements read by a thread of its own.
struct Bare {
    socket: TcpStream,
    begun: Instant,
    cpu: f64,
}

impl Bare {
    /// Says HELLO and SESSION, the block at the front of `dump`; returns its size, too.
    fn greet(to: &str, dump: &[u8]) -> (Self, usize) {
        let place = to.strip_prefix("tcp://").expect("a TCP address");
        let (begun, cpu) = (Instant::now(), thread_cpu_seconds());
        let mut socket = TcpStream::connect(place).expect("a connection");
        socket.set_nodelay(true).expect("an option");
        let mut attributes = Vec::new();
        attribute::push(&mut attributes, tag::HOST, b"bench");
        let hello = Hello {
            version_major: STREAM_MAJOR,
            version_minor: STREAM_MINOR,
            attributes_bytes: attributes.len() as u32,
            host: [0; 16],
            boot_id: [0; 16],
            real_ns: 0,
        };
        let content = [hello.as_bytes(), &attributes].concat();
        let mut block = Vec::new();
        write::block(
            &mut block,
            write::header(kind::HELLO, Uuid([0; 16])),
            &content,
        )
        .expect("HELLO");
        let (header, _) = BlockHeader::read_from_prefix(dump).expect("a block");
        let session = BlockHeader::BYTES + (header.stored_bytes as usize).next_multiple_of(8);
        block.extend_from_slice(&dump[..session]);
        socket.write_all(&block).expect("sent");
        while message(&mut socket).0 != kind::RESUME {}
        (Self { socket, begun, cpu }, session)
    }

    /// Returns when all of it is durable.
    fn end(self, bytes: u64, acks: thread::JoinHandle<()>) -> (u64, Duration, f64) {
        let cpu = thread_cpu_seconds() - self.cpu;
        acks.join().expect("acknowledgements");
        (bytes, self.begun.elapsed(), cpu)
    }

    fn read_acks(&self, bytes: u64) -> thread::JoinHandle<()> {
        let mut socket = self.socket.try_clone().expect("a socket");
        thread::spawn(move || {
            loop {
                let (of, content) = message(&mut socket);
                if of == kind::ACK
                    && let Ok((ack, _)) = Ack::read_from_prefix(&content)
                    && ack.durable >= bytes
                {
                    break;
                }
            }
        })
    }
}

/// Kind and content of the next message.
fn message(socket: &mut TcpStream) -> (u16, Vec<u8>) {
    let mut header = [0; BlockHeader::BYTES];
    socket.read_exact(&mut header).expect("a message");
    let (header, _) = BlockHeader::read_from_prefix(&header).expect("a header");
    let mut content = vec![0; (header.stored_bytes as usize).next_multiple_of(8)];
    socket.read_exact(&mut content).expect("a message");
    (header.kind, content)
}

fn send_loop(to: &str, dump: &Path) -> (u64, Duration, f64) {
    let bytes = fs::read(dump).expect("a dump");
    let (mut bare, session) = Bare::greet(to, &bytes);
    let acks = bare.read_acks(bytes.len() as u64);
    for piece in bytes[session..].chunks(PIECE) {
        bare.socket.write_all(piece).expect("sent");
    }
    bare.end(bytes.len() as u64, acks)
}

fn sendfile_loop(to: &str, dump: &Path) -> (u64, Duration, f64) {
    let mut head = vec![0; 64 << 10];
    let mut file = File::open(dump).expect("a dump");
    file.read_exact(&mut head).expect("a dump");
    let bytes = file.metadata().expect("a dump").len();
    let (bare, session) = Bare::greet(to, &head);
    let acks = bare.read_acks(bytes);
    let mut at = session as u64;
    while at < bytes {
        let sent = rustix::fs::sendfile(&bare.socket, &file, Some(&mut at), PIECE);
        assert!(sent.expect("sent") > 0, "the dump's end");
    }
    bare.end(bytes, acks)
}
