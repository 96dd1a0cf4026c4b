//! Strings that a program may record to do harm are inert in every format: nothing in the output
//! drives a terminal, reorders text, or ends a string, a line or a frame early.

use crate::common;
use crate::corpus;

use common::*;
use corpus::{corpus, is_harmful, trace};
use ringmark_export::{Cut, Format, Plan, write};

fn exported(text: &[u8], format: Format) -> Vec<u8> {
    let dump = read(&trace(text)).unwrap();
    let plan = Plan::new(&dump, Cut::default());
    let counts = plan.counts();
    assert_eq!((counts.slices, counts.instants, counts.counters), (1, 1, 1));
    let mut out = Vec::new();
    let written = write(&plan, format, &mut out, |_, _| {}).unwrap();
    assert_eq!(written.bytes, out.len() as u64);
    out
}

#[test]
fn folded_stacks_have_their_shape() {
    for text in corpus() {
        let out = String::from_utf8(exported(&text, Format::Folded(None))).unwrap();
        let lines: Vec<_> = out.lines().collect();
        assert_eq!(lines.len(), 1, "{out}");
        let (stack, ns) = lines[0].rsplit_once(' ').unwrap();
        assert_eq!((stack.split(';').count(), ns), (3, "5"), "{out}");
        assert!(!out.chars().any(is_harmful), "{out:?}");
    }
}

/// The texts of all fields of a message and of the messages in it that are no messages themselves.
fn texts(bytes: &[u8], found: &mut Vec<Vec<u8>>) -> Option<()> {
    let mut rest = bytes;
    let varint = |rest: &mut &[u8]| {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let (byte, after) = rest.split_first()?;
            *rest = after;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
    };
    let mut inside = Vec::new();
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        if tag >> 3 == 0 {
            return None;
        }
        match tag & 7 {
            0 => drop(varint(&mut rest)?),
            1 => rest = rest.get(8..)?,
            2 => {
                let length = varint(&mut rest)? as usize;
                inside.push(rest.get(..length)?);
                rest = &rest[length..];
            }
            _ => return None,
        }
    }
    for bytes in inside {
        let mut deeper = Vec::new();
        if bytes.is_empty() || texts(bytes, &mut deeper).is_none() {
            found.push(bytes.to_vec());
        }
        found.append(&mut deeper);
    }
    Some(())
}

#[test]
fn protobuf_holds_nothing_but_printable_text() {
    for text in corpus() {
        let mut found = Vec::new();
        texts(&exported(&text, Format::Perfetto), &mut found).expect("protobuf");
        let mut expected = Vec::new();
        ringmark_decoder::escape::text(&text, &mut expected);
        // An empty text is no text that can be told apart.
        let is_there = |texts: &[Vec<u8>]| texts.iter().filter(|t| **t == expected).count();
        assert!(text.is_empty() || is_there(&found) >= 2, "{text:?}");
        for text in found {
            let text = String::from_utf8(text).expect("UTF-8");
            assert!(
                !text.chars().any(|c| is_harmful(c) || c == '\n'),
                "{text:?}"
            );
        }
    }
}
