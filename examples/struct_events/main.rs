//! Events that are structs: the record has the layout of the struct, so recording copies its fields.
#![forbid(unsafe_code)]

use ringmark::{Event, emit, reserve};

/// A trade, as the schema of the trace file describes it.
#[derive(Event)]
#[repr(C)]
#[event(name = "trade", category = "market")]
struct Trade {
    id: u64,
    #[event(unit = "cents")]
    price: u64,
    amount: u32,
    is_sale: u32,
}

fn main() {
    let _session = ringmark::start_from_env();
    for id in 1..=4_u32 {
        emit(&trade(id));
    }
    // In two steps: the time is that of `reserve`, and nothing is seen before `commit`.
    if let Some(place) = reserve::<Trade>() {
        place.write(&trade(5)).commit();
    }
}

fn trade(id: u32) -> Trade {
    Trade {
        id: u64::from(id),
        price: 10_000 + 25 * u64::from(id),
        amount: 10 * id,
        is_sale: id % 2,
    }
}
