//! A traced program that answers another one: `exchange FIRST END`. Takes a byte from its standard input
//! before each event but the first of FIRST = 0, gives one to its standard output behind each; its events are
//! numbered FIRST, FIRST + 2, … below END.

use std::io::{Read, Write};
use std::time::Duration;

use ringmark::event;

fn main() {
    ringmark::start_from_env();
    let mut numbers = std::env::args().skip(1).map(|n| n.parse::<u64>());
    let mut next = || numbers.next().and_then(Result::ok).expect("a number");
    let (first, end) = (next(), next());
    let (mut input, mut output) = (std::io::stdin(), std::io::stdout());
    for n in (first..end).step_by(2) {
        let mut token = [0];
        if n > 0 && input.read_exact(&mut token).is_err() {
            break;
        }
        event!("exchange.turn", n = n);
        std::thread::sleep(Duration::from_millis(2));
        if output
            .write_all(&token)
            .and_then(|()| output.flush())
            .is_err()
        {
            break;
        }
    }
}
