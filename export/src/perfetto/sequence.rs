//! A packet sequence: the packets of one thread, with the names that they share.

use std::collections::HashMap;

use ringmark_decoder::{EventType, escape};

use super::fields::{clocks, defaults, interned, packet, trace};
use super::proto::Message;
use crate::timeline::small_keys::SmallKeys;

/// The clock of all times: `CLOCK_REALTIME`.
pub(super) const REALTIME: u64 = 1;
/// `CLOCK_MONOTONIC`.
pub(super) const MONOTONIC: u64 = 3;
/// A clock of the sequence's own, whose times count from the packet before.
const INCREMENTAL: u64 = 64;

/// The packet's sequence begins here: nothing from before counts.
const CLEARED: u64 = 1;
/// The packet is read with what the sequence has said before.
const NEEDS_STATE: u64 = 2;

/// What a name is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NameOf {
    /// A slice or an instant.
    Event,
    /// An argument.
    Argument,
    Category,
}

/// The names of an event type, by their numbers in a sequence.
#[derive(Debug, Clone, Default)]
pub(super) struct TypeNames {
    pub(super) event: u64,
    pub(super) arguments: Vec<u64>,
    pub(super) categories: Vec<u64>,
}

/// The state of a sequence.
#[derive(Debug)]
pub(super) struct Sequence {
    id: u64,
    track: u64,
    /// Whether something was written.
    is_begun: bool,
    /// Whether the next packet begins the sequence again.
    is_cut: bool,
    last_ns: u64,
    names: [HashMap<Vec<u8>, u64>; 3],
    /// By [`NameOf`]: each kind has numbers of its own, which are small.
    /// By address of the type, which stays where it is while a dump is read.
    types: SmallKeys<usize, TypeNames>,
    /// Names that the next packet brings: the field, the number, the name.
    new: Vec<(u32, u64, Vec<u8>)>,
}

impl Sequence {
    /// The sequence with this id, whose events are on this track unless they say another.
    pub(super) fn new(id: u64, track: u64) -> Self {
        Self {
            id,
            track,
            is_begun: false,
            is_cut: true,
            last_ns: 0,
            names: Default::default(),
            types: SmallKeys::default(),
            new: Vec::new(),
        }
    }

    /// Begins again with the next packet: events were lost.
    pub(super) fn cut(&mut self) {
        self.is_cut = true;
        self.names.iter_mut().for_each(HashMap::clear);
        self.types.clear();
        self.new.clear();
    }

    /// The number of a name.
    pub(super) fn name(&mut self, of: NameOf, name: &[u8]) -> u64 {
        if let Some(number) = self.names[of as usize].get(name) {
            return *number;
        }
        let number = self.names[of as usize].len() as u64 + 1;
        let field = match of {
            NameOf::Event => interned::EVENT_NAME,
            NameOf::Argument => interned::ANNOTATION_NAME,
            NameOf::Category => interned::CATEGORY,
        };
        let mut shown = Vec::new();
        escape::text(name, &mut shown);
        self.new.push((field, number, shown));
        self.names[of as usize].insert(name.to_vec(), number);
        number
    }

    /// The number of the name of what has this address.
    #[inline]
    pub(super) fn name_at(&mut self, address: usize, name: &[u8]) -> u64 {
        if let Some(names) = self.types.get(&address) {
            return names.event;
        }
        let event = self.name(NameOf::Event, name);
        let names = TypeNames {
            event,
            ..TypeNames::default()
        };
        self.types.insert(address, names);
        event
    }

    /// The number of the name of a type.
    #[inline]
    pub(super) fn name_of(&mut self, ty: &EventType) -> u64 {
        if let Some(names) = self.types.get(&(std::ptr::from_ref(ty) as usize)) {
            return names.event;
        }
        let names = self.make_names(ty);
        let name = names.event;
        self.put_back(ty, names);
        name
    }

    /// The numbers of all names of a type. They are given back by [`Self::put_back`].
    #[inline]
    pub(super) fn take_names(&mut self, ty: &EventType) -> TypeNames {
        let address = std::ptr::from_ref(ty) as usize;
        match self.types.get_mut(&address) {
            Some(names) if names.arguments.len() == ty.fields.len() => std::mem::take(names),
            _ => self.make_names(ty),
        }
    }

    pub(super) fn put_back(&mut self, ty: &EventType, names: TypeNames) {
        self.types.insert(std::ptr::from_ref(ty) as usize, names);
    }

    #[cold]
    fn make_names(&mut self, ty: &EventType) -> TypeNames {
        let fields = ty.fields.iter();
        let category = match ty.category.as_slice() {
            [] => ty.target.as_slice(),
            category => category,
        };
        let level = ty.level.map_or("", |level| level.name());
        let categories = [category, level.as_bytes()].into_iter();
        let categories = categories.filter(|category| !category.is_empty());
        TypeNames {
            event: self.name(NameOf::Event, &ty.name),
            arguments: fields
                .map(|f| self.name(NameOf::Argument, &f.name))
                .collect(),
            categories: categories.map(|c| self.name(NameOf::Category, c)).collect(),
        }
    }

    /// Appends a packet at this time.
    #[inline]
    pub(super) fn packet(
        &mut self,
        at_ns: u64,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Message<'_>),
    ) {
        if self.is_cut {
            self.begin(at_ns, out);
        }
        let delta = at_ns.checked_sub(self.last_ns);
        let new = &mut self.new;
        let id = self.id;
        Message(out).message(trace::PACKET, |packet| {
            match delta {
                Some(delta) => packet.number(packet::TIMESTAMP, delta),
                None => {
                    packet.number(packet::TIMESTAMP, at_ns);
                    packet.number(packet::TIMESTAMP_CLOCK_ID, REALTIME);
                }
            }
            packet.number(packet::SEQUENCE_ID, id);
            packet.number(packet::SEQUENCE_FLAGS, NEEDS_STATE);
            if !new.is_empty() {
                packet.message(packet::INTERNED_DATA, |data| intern(new, data));
            }
            write(packet);
        });
        if delta.is_some() {
            self.last_ns = at_ns;
        }
    }

    /// Appends a packet without a time.
    pub(super) fn timeless(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Message<'_>)) {
        let id = self.id;
        Message(out).message(trace::PACKET, |packet| {
            packet.number(packet::SEQUENCE_ID, id);
            write(packet);
        });
    }

    /// Defaults, and the clock of the sequence set to this time.
    #[cold]
    fn begin(&mut self, at_ns: u64, out: &mut Vec<u8>) {
        let (is_first, track) = (!self.is_begun, self.track);
        self.timeless(out, |packet| {
            packet.number(packet::SEQUENCE_FLAGS, CLEARED);
            match is_first {
                true => packet.number(packet::FIRST_ON_SEQUENCE, 1),
                false => packet.number(packet::PREVIOUS_PACKET_DROPPED, 1),
            }
            packet.message(packet::DEFAULTS, |all| {
                all.number(defaults::TIMESTAMP_CLOCK_ID, INCREMENTAL);
                all.message(defaults::TRACK_EVENT, |event| {
                    event.number(defaults::TRACK_UUID, track);
                });
            });
        });
        self.timeless(out, |packet| {
            packet.message(packet::CLOCK_SNAPSHOT, |snapshot| {
                snapshot.message(clocks::CLOCK, |clock| {
                    clock.number(clocks::ID, INCREMENTAL);
                    clock.number(clocks::TIMESTAMP, 0);
                    clock.number(clocks::IS_INCREMENTAL, 1);
                });
                snapshot.message(clocks::CLOCK, |clock| {
                    clock.number(clocks::ID, REALTIME);
                    clock.number(clocks::TIMESTAMP, at_ns);
                });
            });
        });
        (self.is_begun, self.is_cut, self.last_ns) = (true, false, at_ns);
    }
}

#[cold]
fn intern(new: &mut Vec<(u32, u64, Vec<u8>)>, data: &mut Message<'_>) {
    for (field, number, name) in new.drain(..) {
        data.message(field, |entry| {
            entry.number(interned::IID, number);
            entry.text(interned::NAME, &name);
        });
    }
}
