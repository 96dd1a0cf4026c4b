//! Sessions that are read piece by piece: each event once, and what was lost between.

use crate::common;

use common::{PageOf, start};
use ringmark_decoder::{Follower, Loss, Output, Why};
use ringmark_format::counters::Cause;
use ringmark_format::record::{BUSY, pack_span};
use ringmark_format::session::Mode;

/// Numbers of the events that a piece brings, and the losses before them.
fn news(follower: &mut Follower, piece: &[u8]) -> (Vec<u64>, Vec<Loss>) {
    let dump = follower.read("x", piece).expect("a piece");
    assert_eq!(dump.damage, []);
    let (mut events, mut losses) = (Vec::new(), Vec::new());
    follower.news(&dump, |item| match item {
        Output::Event(event) => events.push(event.seq),
        Output::Lost(lost) => losses.push(lost.loss),
    });
    (events, losses)
}

/// A page whose events 0, 2 and 3 are there, and perhaps the one between.
fn first_page(is_committed: bool, sealed: bool) -> Vec<u8> {
    let (mut page, mut bytes) = (PageOf::new(0, 0), Vec::new());
    page.event(1, 16, &[0]);
    if is_committed {
        page.event(2, 16, &[1]);
    } else {
        page.word(pack_span(BUSY, 2)).word(0);
    }
    page.event(3, 16, &[2]);
    if sealed {
        page.event(4, 16, &[3]);
    }
    page.write(sealed, &mut bytes);
    bytes
}

/// The page after the next one, with one event.
fn third_page(lost_before: u64) -> Vec<u8> {
    let (mut page, mut bytes) = (PageOf::new(2, 6), Vec::new());
    page.header.lost_before = lost_before;
    page.event(1, 16, &[6]).write(false, &mut bytes);
    bytes
}

#[test]
fn each_event_is_new_once() {
    let mut follower = Follower::default();
    let first = [start(Mode::Discard), first_page(false, false)].concat();
    assert_eq!(news(&mut follower, &first), (vec![0, 2], vec![]));
    assert_eq!(
        news(&mut follower, &first_page(false, false)),
        (vec![], vec![])
    );
    let committed = first_page(true, true);
    assert_eq!(news(&mut follower, &committed), (vec![1, 3], vec![]));
    assert_eq!(news(&mut follower, &committed), (vec![], vec![]));
}

#[test]
fn what_is_lost_between_pieces_is_told_once_with_its_cause() {
    for (mode, gap, cause) in [
        (Mode::Discard, Why::Missing, Some(Cause::RingFull)),
        (Mode::Overwrite, Why::Overwritten, None),
    ] {
        let mut follower = Follower::default();
        let first = [start(mode), first_page(true, true)].concat();
        assert_eq!(news(&mut follower, &first), (vec![0, 1, 2, 3], vec![]));
        let lost = Loss {
            why: Why::Lost(cause),
            count: 5,
        };
        let not_here = Loss { why: gap, count: 2 };
        let (events, losses) = news(&mut follower, &third_page(5));
        assert_eq!((events, losses), (vec![6], vec![lost, not_here]));
        assert_eq!(news(&mut follower, &third_page(5)), (vec![], vec![]));
    }
}

#[test]
fn what_was_before_the_first_piece_is_history() {
    let mut follower = Follower::default();
    let late = [start(Mode::Discard), third_page(5)].concat();
    assert_eq!(news(&mut follower, &late), (vec![6], vec![]));
}

#[test]
fn a_piece_without_a_block_is_damage() {
    let mut follower = Follower::default();
    assert!(follower.read("x", b"no block").is_err());
    let first = [start(Mode::Discard), first_page(true, true)].concat();
    assert_eq!(news(&mut follower, &first).0, [0, 1, 2, 3]);
}
