//! Promise: a session that a collector refuses does not keep others from being streamed; hosts with long names are not
//! taken for each other; what a later version says is passed over, within bounds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ringmark_collector::certs::{self, Validity};
use ringmark_format::block::kind;
use ringmark_format::session::SessionHeader;
use ringmark_format::{Uuid, attribute};
use ringmark_reader::Selection;
use ringmark_reader::stream::Address;
use ringmark_tests::ca::{Ca, as_host, tls, tls_options};
use ringmark_tests::collecting::{
    Collecting, first_notice, segments, stream, stream_options, stream_with,
};
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::open_store::{StoredBlock, blocks};
use ringmark_tests::recording::decode;
use ringmark_tests::scripted_streamer::{ScriptedStreamer, block, page};
use ringmark_tests::store_contents::{ended_session, events, expected, sealed};
use ringmark_tests::{Running, binary, wait_until, workspace_root};
use rustix::process::Signal;

const EMIT: &str = ringmark_tests::program!("emit");
const RINGMARK: &str = "mode=discard,ring=64K,page=4K,keep=always";

/// One session of this host claims the uuid of a session of another host, and one claims that of
/// its neighbour. All three are stored whole.
#[test]
fn a_foreign_uuid_stops_nobody_else() {
    let fixture = Fixture::new("foreign");
    let socket = fixture.path("socket");
    let collecting = Collecting::start(&socket, &fixture.path("store"));
    let program = fixture.start(EMIT, RINGMARK, "1 1000");
    let _ = program.finish(SOON).expect_code(0);
    let claims = fixture.ring_file();
    let owner = fixture.path("owner.ring");
    let _ = fs::copy(&claims, &owner).unwrap();
    let _ = stream(&owner, &socket, ringmark_reader::Codec::None);
    let program = fixture.start(EMIT, RINGMARK, "1 1300");
    let _ = program.finish(SOON).expect_code(0);
    let files = fixture.ring_files();
    let neighbour = files.iter().find(|path| **path != claims).unwrap();
    // A session of its own inode under the same uuid.
    let twin = neighbour.with_file_name("1-00000000.ring");
    let _ = fs::copy(neighbour, &twin).unwrap();

    let mut command = fixture.command(binary::path());
    let to = format!("unix://{}", socket.display());
    command.args(["stream", "--all", "--host", "another", "--to", &to]);
    let streamer = Running::start(&mut command).unwrap();
    // The owner's session, the one that claimed its uuid, the neighbour and its twin.
    wait_until(SOON, "four sessions", || {
        let stored = collecting.stored();
        let of = Delivery::of(&stored).delivered();
        (stored.sessions.len() == 4 && of == 1000 + 1000 + 1300 + 1300).then_some(())
    });
    streamer.signal(Signal::INT).unwrap();
    let said = streamer.finish(SOON).expect_code(0).stderr_text();
    println!("{said}");
    assert!(
        said.contains("belongs to host") && said.contains("claims the uuid"),
        "{said}"
    );
    assert!(said.contains("refused, it goes on as session"), "{said}");
    let stored = collecting.stored();
    assert_eq!((stored.conflicts, stored.damage.len()), (0, 0));
    Delivery::of(&stored).expect_no_errors();
}

/// A number that no ring comes to would say of all real pages that they are stored.
#[test]
fn a_page_of_the_far_future_is_not_the_last_one() {
    let fixture = Fixture::new("future");
    let (socket, store) = (fixture.path("socket"), fixture.path("store"));
    let collecting = Collecting::start(&socket, &store);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    let session = Uuid([7; 16]);
    runtime.block_on(async {
        for number in [u64::MAX - 1, 1 << 50] {
            let mut liar = ScriptedStreamer::greeted(&socket, "host").await.unwrap();
            liar.announce(session).await.unwrap();
            liar.send(&page(session, 0)).await.unwrap();
            liar.settle().await.unwrap();
            liar.send(&page(session, number)).await.unwrap();
            let refused = liar.settle().await.unwrap_err().to_string();
            assert!(refused.contains(&number.to_string()), "{refused}");
        }
        let mut owner = ScriptedStreamer::greeted(&socket, "host").await.unwrap();
        owner.announce(session).await.unwrap();
        // This is no gap: the ring was overwritten in between.
        for number in (0..50).chain([1 << 30]) {
            owner.send(&page(session, number)).await.unwrap();
        }
        owner.settle().await.unwrap();
    });
    assert_eq!(collecting.figure("repeated_pages_total"), 2);
    assert_eq!(collecting.figure("refused_pages_total"), 2);
    assert_eq!(sealed(&segments(&store)), (51, 51));
}

/// A name of this number of characters, as certificates can have it: at most 63 between dots.
fn name(characters: usize) -> String {
    let labels = format!("{}.", "h".repeat(63)).repeat(4);
    labels[..characters].to_owned()
}

/// Two hosts whose names differ after the 64th character: one sends what has the uuid of the other's session.
#[test]
fn long_names_are_not_cut() {
    let fixture = Fixture::new("names");
    let (ca, root) = (Ca::new(fixture.path("ca")), fixture.path("store"));
    let hosts = [
        format!("{}.q.web-a", name(63)),
        format!("{}.q.web-b", name(63)),
        name(253),
    ];
    for host in &hosts {
        let _ = certs::host(&ca.dir, host, Validity::days(1)).unwrap();
    }
    let ring_file = ended_session(&fixture, EMIT);
    let expected = expected(&fixture, &ring_file);
    let streamed = |host: &str, root: &Path, collecting: &Collecting| {
        let copy = fixture.path("copy.ring");
        let _ = fs::copy(&ring_file, &copy).unwrap();
        let mut options = stream_options(Selection::Path(copy), tls(collecting.place()));
        as_host(host, ca.host(host))(&mut options);
        let _ = stream_with(options);
        let is_of_host = |path: &PathBuf| path.parent().unwrap().ends_with(host);
        let of_host: Vec<_> = segments(root).into_iter().filter(is_of_host).collect();
        assert!(!of_host.is_empty(), "{host} in {:?}", segments(root));
        assert_eq!(events(&decode(&of_host)).len(), expected.len());
    };
    let collecting = Collecting::with(tls_options(ca.collector(), &root));
    hosts[..2]
        .iter()
        .for_each(|host| streamed(host, &root, &collecting));
    let root = fixture.path("another");
    let collecting = Collecting::with(tls_options(ca.collector(), &root));
    streamed(&hosts[2], &root, &collecting);
    let long = certs::host(&ca.dir, &name(254), Validity::days(1)).unwrap_err();
    assert!(long.to_string().contains("253 in all"), "{long}");
}

/// Names that would have to be cut are refused, with a reason.
#[test]
fn names_that_are_too_long_are_refused() {
    let fixture = Fixture::new("long");
    let socket = fixture.path("socket");
    let mut collecting = Collecting::start(&socket, &fixture.path("store"));
    let of_host = "the name of the host has 254 characters, expected at most 253";
    let told = first_notice(Address::Unix(socket.clone()), |options| {
        options.introduction.host = name(254);
    });
    assert!(told.contains(of_host), "{told}");
    assert!(collecting.notice().contains(of_host));
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    let said = runtime.block_on(async {
        let mut peer = ScriptedStreamer::greeted(&socket, &name(253))
            .await
            .unwrap();
        let mut content = vec![0; SessionHeader::BYTES];
        let service = name(254);
        attribute::push(
            &mut content,
            attribute::tag::SERVICE_NAME,
            service.as_bytes(),
        );
        peer.send(&block(kind::SESSION, Uuid([1; 16]), &content))
            .await
            .unwrap();
        peer.end().await
    });
    let of_service = "the name of the service has 254 characters, expected at most 253";
    assert!(said.contains(of_service), "{said}");
}

/// The messages of `vectors/stream.txt`.
fn vectors() -> BTreeMap<String, Vec<u8>> {
    let path = workspace_root().join("format-spec/vectors/stream.txt");
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parsed = lines.map(|line| {
        let (name, hex) = line.split_once(' ').unwrap();
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (
            name.to_owned(),
            (0..hex.len()).step_by(2).map(byte).collect(),
        )
    });
    parsed.collect()
}

/// Blocks and messages of kinds that no version knows yet, between those that are known.
#[test]
fn what_a_later_version_says_is_passed_over() {
    let fixture = Fixture::new("later");
    let (socket, root) = (fixture.path("socket"), fixture.path("store"));
    let collecting = Collecting::start(&socket, &root);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    let (nobody, own, vectors) = (Uuid([0; 16]), Uuid([3; 16]), vectors());
    runtime.block_on(async {
        let mut peer = ScriptedStreamer::greeted(&socket, "later").await.unwrap();
        for kind in [42, 60, u16::MAX] {
            peer.say(&block(kind, nobody, b"news")).await.unwrap();
        }
        peer.announce(own).await.unwrap();
        peer.say(&vectors["later_message"]).await.unwrap();
        peer.send(&vectors["later_block"]).await.unwrap();
        for (kind, uuid) in [(0, nobody), (8, own), (20, nobody), (31, own)] {
            peer.send(&block(kind, uuid, b"news")).await.unwrap();
        }
        let packed = [vectors["later_block"].clone(), page(own, 0)].concat();
        peer.send(&block(kind::CONTAINER, nobody, &packed))
            .await
            .unwrap();
        peer.send(&page(own, 1)).await.unwrap();
        peer.settle().await.unwrap();
    });
    assert_eq!(sealed(&segments(&root)), (2, 2));
    assert_eq!(collecting.figure("skipped_blocks_total"), 4 + 1 + 4 + 1);
    let (stored, damaged) = blocks(&segments(&root)[0]);
    let is_known = |found: &StoredBlock| found.header.kind <= kind::INDEX && found.header.kind > 0;
    assert!(damaged == 0 && stored.iter().all(is_known), "{stored:?}");
}

/// Messages need no credit: more of them than a later version may send is refused.
#[test]
fn what_is_passed_over_is_bounded() {
    let fixture = Fixture::new("flood");
    let socket = fixture.path("socket");
    let _collecting = Collecting::start(&socket, &fixture.path("store"));
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    let said = runtime.block_on(async {
        let mut peer = ScriptedStreamer::greeted(&socket, "flood").await.unwrap();
        let message = block(60, Uuid([0; 16]), &[1; 60 << 10]);
        // The collector may close before all of it is sent.
        let _ = peer.say(&message.repeat(200)).await;
        peer.end().await
    });
    assert!(
        said.contains("bytes of messages of unknown kinds"),
        "{said}"
    );
}
