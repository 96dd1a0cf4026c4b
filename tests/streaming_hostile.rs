//! Promise: a session that a collector refuses does not keep others from being streamed.

use std::fs;

use ringmark_format::Uuid;
use ringmark_tests::account::Account;
use ringmark_tests::collecting::{Collecting, segments, stream};
use ringmark_tests::peer::{Peer, page};
use ringmark_tests::stage::{SOON, Stage};
use ringmark_tests::stored::sealed;
use ringmark_tests::{Running, binary, wait_until};
use rustix::process::Signal;

const EMIT: &str = env!("CARGO_BIN_EXE_emit");
const RINGMARK: &str = "mode=lossless,ring=64K,page=4K,keep=always";

/// One session of this host claims the uuid of a session of another host, and one claims that of
/// its neighbour. All three are stored whole.
#[test]
fn a_foreign_uuid_stops_nobody_else() {
    let stage = Stage::new("foreign");
    let socket = stage.path("socket");
    let collecting = Collecting::start(&socket, &stage.path("store"));
    let program = stage.start(EMIT, RINGMARK, "1 1000");
    let _ = program.finish(SOON).expect_code(0);
    let claims = stage.ring_file();
    let owner = stage.path("owner.ring");
    let _ = fs::copy(&claims, &owner).unwrap();
    let _ = stream(&owner, &socket, ringmark_reader::Codec::None);
    let program = stage.start(EMIT, RINGMARK, "1 1300");
    let _ = program.finish(SOON).expect_code(0);
    let files = stage.ring_files();
    let neighbour = files.iter().find(|path| **path != claims).unwrap();
    // A session of its own inode under the same uuid.
    let twin = neighbour.with_file_name("1-00000000.ring");
    let _ = fs::copy(neighbour, &twin).unwrap();

    let mut command = stage.command(binary::path());
    let to = format!("unix://{}", socket.display());
    command.args(["stream", "--all", "--host", "another", "--to", &to]);
    let streamer = Running::start(&mut command).unwrap();
    // The owner's session, the one that claimed its uuid, the neighbour and its twin.
    wait_until(SOON, "four sessions", || {
        let stored = collecting.stored();
        let of = Account::of(&stored).delivered();
        (stored.sessions.len() == 4 && of == 1000 + 1000 + 1300 + 1300).then_some(())
    });
    streamer.signal(Signal::INT).unwrap();
    let said = streamer.finish(SOON).expect_code(0).stderr_text();
    println!("{said}");
    assert!(said.contains("belongs to host") && said.matches("claims the uuid").count() == 2);
    let stored = collecting.stored();
    assert_eq!((stored.conflicts, stored.damage.len()), (0, 0));
    Account::of(&stored).expect_no_errors();
}

/// A number that no ring comes to would say of all real pages that they are stored.
#[test]
fn a_page_of_the_far_future_is_not_the_last_one() {
    let stage = Stage::new("future");
    let (socket, store) = (stage.path("socket"), stage.path("store"));
    let collecting = Collecting::start(&socket, &store);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    let session = Uuid([7; 16]);
    runtime.block_on(async {
        for number in [u64::MAX - 1, 1 << 50] {
            let mut liar = Peer::greeted(&socket, "host").await.unwrap();
            liar.announce(session).await.unwrap();
            liar.send(&page(session, 0)).await.unwrap();
            liar.settle().await.unwrap();
            liar.send(&page(session, number)).await.unwrap();
            let refused = liar.settle().await.unwrap_err().to_string();
            assert!(refused.contains(&number.to_string()), "{refused}");
        }
        let mut owner = Peer::greeted(&socket, "host").await.unwrap();
        owner.announce(session).await.unwrap();
        // A gap is none: the ring was overwritten meanwhile.
        for number in (0..50).chain([1 << 30]) {
            owner.send(&page(session, number)).await.unwrap();
        }
        owner.settle().await.unwrap();
    });
    assert_eq!(collecting.figure("repeated_pages_total"), 2);
    assert_eq!(collecting.figure("refused_pages_total"), 2);
    assert_eq!(sealed(&segments(&store)), (51, 51));
}
