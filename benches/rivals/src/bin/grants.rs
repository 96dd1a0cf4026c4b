//! bbqueue: reserve and commit of bytes between two threads, without clock, schema or counts.
//! Emptied between windows.

use std::hint::black_box;

use bbqueue::nicknames::Churrasco;
use bbqueue::prod_cons::stream::{StreamConsumer, StreamProducer};
use ringmark_rivals::{Rival, serve};

type Queue = Churrasco<{ 1 << 18 }>;
static QUEUE: Queue = Churrasco::new();

struct Grants {
    write: StreamProducer<&'static Queue>,
    read: StreamConsumer<&'static Queue>,
}

impl Rival for Grants {
    fn events(&mut self, n: u64) {
        for i in 0..n {
            let Ok(mut grant) = self.write.grant_exact(16) else {
                continue;
            };
            let value = black_box(i).to_ne_bytes();
            grant[..8].copy_from_slice(&value);
            grant[8..].copy_from_slice(&value);
            grant.commit(16);
        }
    }

    fn between(&mut self) {
        while let Ok(grant) = self.read.read() {
            let all = grant.len();
            grant.release(all);
        }
    }
}

fn main() {
    let (write, read) = (QUEUE.stream_producer(), QUEUE.stream_consumer());
    serve(&mut Grants { write, read });
}
