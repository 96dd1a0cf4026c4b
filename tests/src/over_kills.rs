//! A program that is streamed while its collectors are killed, one after the other.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::fixture::{Counters, Fixture};
use crate::random::Random;
use crate::{Running, binary, is_long};

/// How long a streamer may take to end: its collectors may just have been killed.
const WITHIN: Duration = Duration::from_secs(120);

/// Streams `emit`, the program of that name, with these settings to the socket `way`, and calls `kill`
/// with 0, 1, 2 … at random moments. Then the program is killed, and the streamer ends.
///
/// # Panics
/// When one of them does not start, or the streamer fails.
pub fn stream_over_kills(
    (fixture, emit, ringmark): (&Fixture, &str, &str),
    counters: &Counters,
    way: &Path,
    mut kill: impl FnMut(usize),
) {
    let arguments = format!("2 100000000 burst=20 pause=2000 {}", counters.argument());
    let program = fixture.start(emit, ringmark, &arguments);
    counters.wait_for(2);
    let to = format!("unix://{}", way.display());
    let mut command = fixture.command(binary::path());
    command.args(["stream", "-p", &program.id().to_string(), "--to", &to]);
    command.args(["--open-every", "10ms"]);
    let streamer = Running::start(&mut command).expect("a streamer");
    let mut random = Random::seeded();
    for number in 0..if is_long() { 100 } else { 9 } {
        sleep(Duration::from_millis(40 + random.below(150)));
        kill(number);
    }
    drop(program.kill().expect("it was there"));
    let ended = streamer.finish(WITHIN).expect_code(0);
    println!("{}", ended.stderr_text());
}
