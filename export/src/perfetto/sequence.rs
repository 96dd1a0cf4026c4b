//! A packet sequence: the packets of one thread, with the names that they share.

use ringmark_decoder::EventType;

use super::fields::{clocks, defaults, interned, packet, trace};
use super::names::{NameOf, Names, Number, Told, TypeNames};
use super::proto::{BYTES, Message, Short, Smalls};

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
    /// By [`NameOf`]: names that it has brought, or that the next packet brings.
    told: [Told; 3],
    /// Types all of whose names are told.
    told_types: Told,
    /// Names that the next packet brings.
    new: Vec<(NameOf, Number)>,
    /// The fields of an event's packet between its time and the event's length, which are always the
    /// same, and how many bytes they have.
    middle: ([u8; 16], usize),
}

/// The id of a name in the trace: 0 stands for none.
const fn iid(number: Number) -> u64 {
    number as u64 + 1
}

/// The names of a type, as ids.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ids<'n>(pub(super) TypeNames<'n>);

impl Ids<'_> {
    #[inline]
    pub(super) const fn event(&self) -> u64 {
        iid(self.0.event)
    }

    /// That of the field at this place.
    #[inline]
    pub(super) fn argument(&self, place: usize) -> u64 {
        self.0
            .arguments()
            .get(place)
            .map_or(0, |number| iid(*number))
    }

    pub(super) fn categories(&self) -> impl Iterator<Item = u64> {
        self.0.categories().iter().map(|number| iid(*number))
    }
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
            told: Default::default(),
            told_types: Told::default(),
            new: Vec::new(),
            middle: middle(id),
        }
    }

    /// Begins again with the next packet: events were lost.
    pub(super) fn cut(&mut self) {
        self.is_cut = true;
        self.told.iter_mut().for_each(Told::clear);
        self.told_types.clear();
        self.new.clear();
    }

    #[cold]
    fn tell_all(&mut self, names: TypeNames<'_>) {
        self.tell(NameOf::Event, names.event);
        let arguments = names.arguments().iter();
        arguments.for_each(|number| self.tell(NameOf::Argument, *number));
        let categories = names.categories().iter();
        categories.for_each(|number| self.tell(NameOf::Category, *number));
    }

    #[inline]
    fn tell(&mut self, of: NameOf, number: Number) {
        if self.told[of as usize].insert(number) {
            self.new.push((of, number));
        }
    }

    /// Appends a packet at this time.
    #[cold]
    pub(super) fn packet(
        &mut self,
        names: &Names,
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
                packet.message(packet::INTERNED_DATA, |data| intern(new, names, data));
            }
            write(packet);
        });
        if delta.is_some() {
            self.last_ns = at_ns;
        }
    }

    /// Appends the packet of an event, which begins with `front`.
    #[inline]
    pub(super) fn event(
        &mut self,
        names: &Names,
        at_ns: u64,
        (front, rest): (&Short, &[u8]),
        out: &mut Vec<u8>,
    ) {
        let delta = at_ns.checked_sub(self.last_ns);
        let (Some(delta), false, true) = (delta, self.is_cut, self.new.is_empty()) else {
            return self.packet(names, at_ns, out, |packet| {
                packet.short(packet::TRACK_EVENT, front, rest);
            });
        };
        let mut head = Short::default();
        head.number(packet::TIMESTAMP, delta);
        head.number(packet::SEQUENCE_ID, self.id);
        head.number(packet::SEQUENCE_FLAGS, NEEDS_STATE);
        head.before(packet::TRACK_EVENT, front.len() + rest.len());
        head.append(front);
        Message(out).short(trace::PACKET, &head, rest);
        self.last_ns = at_ns;
    }

    /// Begins `packet` with what stands before an event's first field. `None`: the packet needs more
    /// than an event, or names that were not told, and [`Self::event`] writes it.
    #[inline]
    pub(super) fn begin_small(
        &self,
        names: TypeNames<'_>,
        at_ns: u64,
        packet: &mut Smalls,
    ) -> Option<()> {
        let delta = at_ns.checked_sub(self.last_ns)?;
        if self.is_cut || !self.new.is_empty() || !self.told_types.has(names.number) {
            return None;
        }
        packet.begin(trace::PACKET);
        packet.number(packet::TIMESTAMP, delta);
        let (middle, bytes) = &self.middle;
        packet.append(middle, *bytes);
        packet.begin_inner();
        Some(())
    }

    /// Ends such a packet. `None`: it has become too large, and [`Self::event`] writes it.
    #[inline]
    pub(super) fn end_small(&mut self, packet: &mut Smalls, at_ns: u64) -> Option<()> {
        packet.finish()?;
        self.last_ns = at_ns;
        Some(())
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

/// See [`Sequence::middle`].
fn middle(id: u64) -> ([u8; 16], usize) {
    let mut bytes = Vec::new();
    let mut message = Message(&mut bytes);
    message.number(packet::SEQUENCE_ID, id);
    message.number(packet::SEQUENCE_FLAGS, NEEDS_STATE);
    message.tag(packet::TRACK_EVENT, BYTES);
    let mut middle = [0; 16];
    middle[..bytes.len()].copy_from_slice(&bytes);
    (middle, bytes.len())
}

/// A sequence, and the names that its packets use.
#[derive(Debug)]
pub(super) struct Namer<'s> {
    pub(super) sequence: &'s mut Sequence,
    pub(super) names: &'s mut Names,
}

impl Namer<'_> {
    /// The id of a name.
    pub(super) fn name(&mut self, of: NameOf, name: &[u8]) -> u64 {
        let number = self.names.number(of, name);
        self.sequence.tell(of, number);
        iid(number)
    }

    /// The id of the name of what has this address.
    #[inline]
    pub(super) fn name_at(&mut self, address: usize, name: &[u8]) -> u64 {
        let number = self.names.at(address, name);
        self.sequence.tell(NameOf::Event, number);
        iid(number)
    }

    /// The ids of all names of a type.
    #[inline]
    pub(super) fn of_type(&mut self, ty: &EventType) -> Ids<'_> {
        let names = self.names.of_type(ty);
        if self.sequence.told_types.insert(names.number) {
            self.sequence.tell_all(names);
        }
        Ids(names)
    }
}

#[cold]
fn intern(new: &mut Vec<(NameOf, Number)>, names: &Names, data: &mut Message<'_>) {
    for (of, number) in new.drain(..) {
        let field = match of {
            NameOf::Event => interned::EVENT_NAME,
            NameOf::Argument => interned::ANNOTATION_NAME,
            NameOf::Category => interned::CATEGORY,
        };
        data.message(field, |entry| {
            entry.number(interned::IID, iid(number));
            entry.text(interned::NAME, names.text(of, number));
        });
    }
}
