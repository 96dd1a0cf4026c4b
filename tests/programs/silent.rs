//! A traced program in which little happens: `silent THREADS PAUSE_MS`. The threads emit a few events
//! and then nothing more; the main thread emits one every so often, until it is killed.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use ringmark::event;

fn main() {
    let numbers = std::env::args().skip(1).map(|text| text.parse());
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().expect("numbers");
    ringmark::start_from_env();
    let all_have = Arc::new(Barrier::new(numbers[0] as usize + 1));
    for number in 0..numbers[0] {
        let all_have = all_have.clone();
        thread::spawn(move || {
            (0..100).for_each(|seq| event!("silent.once", thread = number, seq = seq));
            all_have.wait();
            loop {
                thread::park();
            }
        });
    }
    all_have.wait();
    for seq in 0_u64.. {
        event!("silent.tick", seq = seq);
        thread::sleep(Duration::from_millis(numbers[1]));
    }
}
