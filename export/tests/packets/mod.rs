//! The events of Perfetto's packets, read by the fields of its `.proto` files alone.

use std::collections::HashMap;

/// The clock of a sequence whose times count from the packet before.
const INCREMENTAL: u64 = 64;
/// `CLOCK_REALTIME`.
const REALTIME: u64 = 1;

/// Where a slice begins or ends.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) track: u64,
    pub(crate) at_ns: u64,
    pub(crate) is_begin: bool,
    /// Its first argument that is a number.
    pub(crate) number: Option<u64>,
}

/// A field of a message: its number, and a number or the bytes of a text or a message.
enum Field<'b> {
    Number(u64, u64),
    Bytes(u64, &'b [u8]),
    /// Eight bytes.
    Fixed(u64, u64),
}

/// A message.
#[derive(Clone, Copy)]
struct Message<'b>(&'b [u8]);

fn varint(rest: &mut &[u8]) -> u64 {
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

impl<'b> Message<'b> {
    fn fields(self) -> Vec<Field<'b>> {
        let (mut rest, mut fields) = (self.0, Vec::new());
        while !rest.is_empty() {
            let tag = varint(&mut rest);
            fields.push(match tag & 7 {
                0 => Field::Number(tag >> 3, varint(&mut rest)),
                2 => {
                    let length = varint(&mut rest) as usize;
                    let (bytes, after) = rest.split_at(length);
                    rest = after;
                    Field::Bytes(tag >> 3, bytes)
                }
                1 => {
                    let (bytes, after) = rest.split_first_chunk().expect("eight bytes");
                    rest = after;
                    Field::Fixed(tag >> 3, u64::from_le_bytes(*bytes))
                }
                other => panic!("wire type {other}"),
            });
        }
        fields
    }

    fn number(self, wanted: u64) -> Option<u64> {
        self.fields().into_iter().find_map(|field| match field {
            Field::Number(number, value) if number == wanted => Some(value),
            _ => None,
        })
    }

    fn messages(self, wanted: u64) -> impl Iterator<Item = Message<'b>> {
        self.fields()
            .into_iter()
            .filter_map(move |field| match field {
                Field::Bytes(number, bytes) if number == wanted => Some(Message(bytes)),
                _ => None,
            })
    }

    fn message(self, wanted: u64) -> Option<Message<'b>> {
        self.messages(wanted).next()
    }
}

/// What a sequence has said before.
#[derive(Debug, Default)]
struct State {
    track: u64,
    now_ns: u64,
}

/// Where slices begin and end, in the order of the packets.
pub(crate) fn edges(trace: &[u8]) -> Vec<Edge> {
    let mut sequences: HashMap<u64, State> = HashMap::new();
    let mut edges = Vec::new();
    for packet in Message(trace).messages(1) {
        let state = sequences
            .entry(packet.number(10).expect("a sequence"))
            .or_default();
        let default = packet.message(59).and_then(|defaults| defaults.message(11));
        if let Some(track) = default.and_then(|event| event.number(11)) {
            state.track = track;
        }
        if let Some(snapshot) = packet.message(6) {
            let clock = |id| {
                snapshot
                    .messages(1)
                    .find(|clock| clock.number(1) == Some(id))
            };
            if let (Some(_), Some(real)) = (clock(INCREMENTAL), clock(REALTIME)) {
                state.now_ns = real.number(2).expect("a time");
            }
        }
        let Some(event) = packet.message(11) else {
            continue;
        };
        let time = packet.number(8).expect("a time");
        let at_ns = match packet.number(58) {
            Some(REALTIME) => time,
            Some(clock) => panic!("clock {clock}"),
            None => {
                state.now_ns += time;
                state.now_ns
            }
        };
        let is_begin = match event.number(9) {
            Some(1) => true,
            Some(2) => false,
            _ => continue,
        };
        edges.push(Edge {
            track: event.number(11).unwrap_or(state.track),
            at_ns,
            is_begin,
            number: event
                .messages(4)
                .find_map(|annotation| annotation.number(3)),
        });
    }
    edges
}

/// The flows of the events, one by one.
pub(crate) fn flows(trace: &[u8]) -> Vec<u64> {
    let packets = Message(trace).messages(1);
    let events = packets.filter_map(|packet| packet.message(11));
    let fields = events.flat_map(|event| event.fields());
    fields
        .filter_map(|field| match field {
            Field::Fixed(47, flow) => Some(flow),
            _ => None,
        })
        .collect()
}
