//! Streams and bare loops, which send the same blocks to the same collector.

mod bare;
mod collecting;
mod place;
mod sent;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ringmark_collector::store::SyncMode;
use ringmark_reader::stream::{Address, Introduction, StreamOptions, Streamer, Upload};
use ringmark_reader::{Codec, Selection};

pub use bare::{fastest_piece, send_loop, sendfile_loop, tls_loop};
pub use collecting::Reached;
pub use place::{Place, fill};
pub use sent::Sent;

use crate::Row;
use place::HOST;
use sent::Begun;

/// A program or loop that sends all of the place's blocks, in rounds.
pub struct Sender {
    name: &'static str,
    send: Box<dyn Fn(&Place) -> Sent>,
    rounds: Vec<Sent>,
}

impl Sender {
    /// Sends to a collector with this store.
    pub fn to(
        sync: SyncMode,
        name: &'static str,
        send: impl Fn(&Reached, &Place) -> Sent + 'static,
    ) -> Self {
        Self::alone(name, move |place| place.collect(sync, |at| send(at, place)))
    }

    /// Needs no collector.
    pub fn alone(name: &'static str, send: impl Fn(&Place) -> Sent + 'static) -> Self {
        let (send, rounds) = (Box::new(send), Vec::new());
        Self { name, send, rounds }
    }
}

/// The figures of all rounds.
pub struct Results {
    senders: Vec<Sender>,
    bytes: u64,
}

/// Has all of them send in turn.
pub fn race(place: &Place, rounds: usize, mut senders: Vec<Sender>) -> Results {
    for _ in 0..rounds {
        for sender in &mut senders {
            sender.rounds.push((sender.send)(place));
        }
    }
    let bytes = place.bytes();
    Results { senders, bytes }
}

impl Results {
    /// In MB of blocks before any codec per second.
    #[must_use]
    pub fn rates(&self, name: &str) -> Vec<f64> {
        self.each(name, |sent| {
            Some(self.bytes as f64 / 1e6 / sent.time.as_secs_f64())
        })
    }

    fn cpu(&self, name: &str) -> Vec<f64> {
        let gigabytes = self.bytes as f64 / 1e9;
        self.each(name, |sent| Some(sent.cpu_seconds? * 1e3 / gigabytes))
    }

    fn each(&self, name: &str, of: impl Fn(&Sent) -> Option<f64>) -> Vec<f64> {
        let sender = self.senders.iter().find(|sender| sender.name == name);
        sender
            .into_iter()
            .flat_map(|s| s.rounds.iter().filter_map(&of))
            .collect()
    }

    /// Rows of rates, and of CPU time.
    #[must_use]
    pub fn rows(&self) -> [Vec<Row>; 2] {
        let rows = |of: &dyn Fn(&str) -> Vec<f64>| {
            let senders = self.senders.iter();
            let figures = senders.map(|s| (s.name, of(s.name)));
            let measured = figures.filter(|(_, values)| !values.is_empty());
            measured
                .map(|(name, values)| Row::of(name, values))
                .collect()
        };
        [rows(&|name| self.rates(name)), rows(&|name| self.cpu(name))]
    }
}

/// How a streamer sends.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// Pages as they are, or packed.
    pub codec: Codec,
    /// Without copying them.
    pub zero_copy: bool,
}

/// Pages are copied, and sent as they are.
pub const COPYING: Way = Way {
    codec: Codec::None,
    zero_copy: false,
};

/// Streams a ring file that no reader has read.
///
/// # Panics
/// When not all of it becomes durable.
#[must_use]
pub fn stream(to: &Address, place: &Place, way: Way) -> Sent {
    let options = StreamOptions {
        selection: Selection::Path(place.ring_file()),
        to: to.clone(),
        credentials: Some(place.credentials().clone()),
        introduction: Introduction {
            host: HOST.to_owned(),
            ..Introduction::of_this_host()
        },
        codec: way.codec,
        retry: Duration::from_millis(10),
        open_every: Duration::from_secs(5),
        spill: None,
        zero_copy: way.zero_copy,
        upload: Upload::Always,
        bytes_per_second: None,
    };
    let mut streamer = Streamer::new(options).expect("a session");
    // From the connection on, as for the others: a ring is mapped in once in its life, while there
    // is none.
    let mut begun = None;
    let done = streamer.run(&AtomicBool::new(false), |streamer| {
        if begun.is_none() && streamer.figures().connected {
            begun = Some(Begun::now());
        }
    });
    done.expect("all is durable");
    begun.expect("a connection").ended()
}
