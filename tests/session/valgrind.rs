//! Promise: a traced program runs as it does untraced, also under a tool that interprets its every
//! instruction and hides the kernel's page of code.

use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::read;
use ringmark_tests::require_tools;

const EMIT: &str = ringmark_tests::program!("emit");

#[test]
fn events_are_recorded_under_valgrind() {
    if !require_tools(&["valgrind"]) {
        return;
    }
    for more in ["", ",control=off", ",clock=coarse"] {
        let fixture = Fixture::new("valgrind");
        let arguments = format!("-q --tool=none {EMIT} 2 100");
        let program = fixture.start("valgrind", &format!("mode=discard{more}"), &arguments);
        let _ = program.finish(2 * SOON).expect_code(0);
        let account = Delivery::of(&read(&[fixture.ring_file()]));
        account.expect_exact(2, 100);
        assert_eq!(account.lost(), 0);
    }
}
