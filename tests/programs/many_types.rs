//! Registers event types at run time, and waits for a line of input: `many_types COUNT`. Prints how many
//! are on.
#![forbid(unsafe_code)]

use ringmark::Level;
use ringmark::client::{Description, EventType, Shape, TypeState};

fn register(number: usize) -> &'static TypeState {
    let state: &'static TypeState = Box::leak(Box::new(TypeState::new()));
    let event = EventType {
        name: format!("many.{number}").leak(),
        target: "many",
        category: "",
        level: Level::Info,
        shape: Shape::Instant,
        file: "",
        line: 0,
        state,
    };
    let description = Description {
        event,
        fields: &[],
        fixed_bytes: 0,
    };
    description.register();
    state
}

fn main() {
    let count = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let _session = ringmark::start_from_env().expect("a session");
    let states: Vec<_> = (0..count.expect("a number")).map(register).collect();
    let on = states.iter().filter(|state| state.enabled() != 0).count();
    println!("{on}");
    let _ = std::io::stdin().read_line(&mut String::new());
}
