//! The data of a page, read by its description in `packed.rs` alone.

use serde_json::Value;

/// A slice of the page: start and end since the first time, name, arguments, flags.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) name: String,
    pub(crate) args: Option<String>,
    /// 1: no end; 2: it began before the first record; 4: a time in which a thread was in a span.
    pub(crate) flags: u64,
    /// The slice around, or that the thread was in, by its number; only in tracks that have them.
    pub(crate) link: Option<u64>,
}

/// The data of a page.
pub(crate) struct Page {
    pub(crate) meta: Value,
    /// By track of `meta`, then by row.
    pub(crate) tracks: Vec<Vec<Vec<Slice>>>,
}

fn number(rest: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (byte, after) = rest.split_first().expect("a number");
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return number;
        }
    }
}

fn take<'a>(rest: &mut &'a [u8], length: u64) -> &'a [u8] {
    let (taken, after) = rest.split_at(length as usize);
    *rest = after;
    taken
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => panic!("{letter} is no digit"),
    };
    let text = text.trim_end_matches('=').as_bytes();
    let mut out = Vec::new();
    for four in text.chunks(4) {
        let bits = four
            .iter()
            .fold(0_u32, |bits, letter| bits << 6 | u32::from(digit(*letter)));
        let bits = bits << (6 * (4 - four.len()));
        out.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    out
}

/// What an element of data holds, and the page without it.
fn unpacked(page: &str, id: &str) -> (Vec<u8>, String) {
    let open = format!("<script type=\"application/octet-stream\" id=\"{id}\">");
    let (before, rest) = page.split_once(&open).expect("an element");
    let (data, after) = rest.split_once("</script>").expect("its end");
    let bytes = miniz_oxide::inflate::decompress_to_vec(&base64(data)).expect("deflate");
    (bytes, [before, after].concat())
}

impl Page {
    /// Reads the data of a page, and what is around it.
    pub(crate) fn read(page: &str) -> (Self, String) {
        let (data, frame) = unpacked(page, "data");
        let (texts, frame) = unpacked(&frame, "texts");
        (Self::of(&data, &texts), frame)
    }

    fn of(mut rest: &[u8], mut texts: &[u8]) -> Self {
        let mut section = || {
            let length = number(&mut rest);
            take(&mut rest, length)
        };
        let (meta, mut rows) = (section(), section());
        assert!(rest.is_empty());
        let meta: Value = serde_json::from_slice(meta).expect("JSON");
        let lengths = number(&mut texts);
        let lengths: Vec<_> = (0..lengths).map(|_| number(&mut texts)).collect();
        let text = |length: &u64| String::from_utf8(take(&mut texts, *length).into()).unwrap();
        let all: Vec<String> = lengths.iter().map(text).collect();
        let names: Vec<_> = meta["names"].as_array().unwrap().iter().collect();
        let mut met = 0;
        let mut row = |has_links: bool| {
            let count = number(&mut rows) as usize;
            let mut column = || (0..count).map(|_| number(&mut rows)).collect::<Vec<_>>();
            let (starts, long, words, args) = (column(), column(), column(), column());
            let links = if has_links { column() } else { vec![0; count] };
            let mut start = 0;
            let slice = |place: usize| {
                start += starts[place];
                let args = match args[place] {
                    0 => None,
                    1 => {
                        met += 1;
                        Some(all[met - 1].clone())
                    }
                    n => Some(all[n as usize - 2].clone()),
                };
                let name = names[words[place] as usize / 8]
                    .as_str()
                    .unwrap()
                    .to_owned();
                let (end, flags) = (start + long[place], words[place] % 8);
                Slice {
                    start,
                    end,
                    name,
                    args,
                    flags,
                    link: links[place].checked_sub(1),
                }
            };
            (0..count).map(slice).collect::<Vec<_>>()
        };
        let tracks = meta["tracks"].as_array().unwrap().iter();
        let tracks = tracks.map(|track| {
            let rows = 0..track[3].as_u64().unwrap();
            rows.map(|_| row(track[7] == 1)).collect()
        });
        let tracks: Vec<Vec<Vec<Slice>>> = tracks.collect();
        assert!(rows.is_empty());
        Self { meta, tracks }
    }
}
