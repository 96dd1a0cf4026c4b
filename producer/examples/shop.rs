//! The program of the picture in README.md: it handles orders, until one cannot be paid.

use std::thread;
use std::time::Duration;

use ringmark::{event, span};

/// The order that cannot be paid.
const BAD_ORDER: u64 = 41;

fn main() {
    let _session = ringmark::start_from_env();
    for id in 1..=100_u64 {
        handle(id);
    }
}

fn handle(id: u64) {
    let _span = span!("order", id = id);
    event!("order.received", items = id % 5 + 1);
    pay(id);
    event!("order.shipped");
}

fn pay(id: u64) {
    let cents = if id == BAD_ORDER { -1 } else { 100 * id as i64 };
    let _span = span!("order.pay", cents = cents);
    thread::sleep(Duration::from_micros(200));
    assert!(cents >= 0, "cannot pay {cents} cents");
}
