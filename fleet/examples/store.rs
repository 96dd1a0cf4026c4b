//! Makes a store of objects of a trace file of one session, as collectors write it, to measure with:
//! `store FILE DIRECTORY`. Segments have 16 MiB.

use std::fs;
use std::path::Path;

use ringmark_decoder::store::{FooterEntry, OBJECTS_ID, SegmentFooter, raw_object, schema_object};
use ringmark_format::Uuid;
use ringmark_format::block::kind;
use ringmark_format::block_at::Blocks;
use ringmark_format::codec::write;

const HOST: &str = "web-1";
const SEGMENT_BYTES: usize = 16 << 20;

/// What every segment begins with, and what schema the session has.
#[derive(Default)]
struct Session {
    uuid: [u8; 16],
    front: Vec<u8>,
    schema: Vec<u8>,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, directory] = words.as_slice() else {
        eprintln!("usage: store FILE DIRECTORY");
        std::process::exit(2);
    };
    let root = Path::new(directory);
    let trace = fs::read(file).expect("FILE can be read");
    let (mut session, mut blocks, mut number) = (Session::default(), Vec::new(), 0);
    put(root, OBJECTS_ID, b"{}");
    for block in Blocks::new(&trace) {
        let content = block.content().expect("a sound block");
        let mut bytes = Vec::new();
        write::block(&mut bytes, block.header, content).expect("a block");
        match block.header.kind {
            kind::SESSION => {
                session.uuid = block.header.session;
                session.front = bytes;
            }
            kind::SCHEMA => session.schema.extend(bytes),
            _ => blocks.extend(bytes),
        }
        if blocks.len() >= SEGMENT_BYTES {
            session.segment(root, number, &std::mem::take(&mut blocks));
            number += 1;
        }
    }
    session.segment(root, number, &blocks);
    let range = (0, session.schema.len() as u64);
    let schema = schema_object(HOST, Uuid(session.uuid), range, 7);
    put(
        root,
        &schema,
        &[&session.front[..], &session.schema].concat(),
    );
}

impl Session {
    /// Puts a segment with these blocks.
    fn segment(&self, root: &Path, number: u64, blocks: &[u8]) {
        let mut bytes = [&self.front[..], blocks].concat();
        let entry = FooterEntry {
            session: Uuid(self.uuid),
            host: HOST.into(),
            service: b"shop".to_vec(),
            schema_bytes: self.schema.len() as u64,
            epoch: 1,
            bytes: blocks.len() as u32,
            index: None,
        };
        let footer = SegmentFooter {
            segment_bytes: bytes.len() as u64,
            sessions: vec![entry],
            is_grouped: true,
        };
        bytes.extend(footer.block());
        let name = raw_object("2026-11-21-01", Uuid([1; 16]), number);
        put(root, &name, &bytes);
    }
}

fn put(root: &Path, name: &str, bytes: &[u8]) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("one")).expect("DIRECTORY can be written");
    fs::write(path, bytes).expect("DIRECTORY can be written");
}
