//! rtrb: a queue between two threads without clock, schema or counts. Emptied between windows.

use std::hint::black_box;

use ringmark_rivals::{Rival, serve};
use rtrb::{Consumer, Producer, RingBuffer};

struct Queue {
    push: Producer<[u64; 2]>,
    pop: Consumer<[u64; 2]>,
}

impl Rival for Queue {
    fn events(&mut self, n: u64) {
        for i in 0..n {
            let _ = self.push.push(black_box([i, i]));
        }
    }

    fn between(&mut self) {
        while self.pop.pop().is_ok() {}
    }
}

fn main() {
    let (push, pop) = RingBuffer::new(1 << 14);
    serve(&mut Queue { push, pop });
}
