//! Names by their numbers, the same in all packet sequences.

use ringmark_decoder::{EventType, SmallKeys, escape};

use crate::texts::Texts;

/// What a name is of. Each kind has numbers of its own, which are small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NameOf {
    /// A slice or an instant.
    Event,
    /// An argument.
    Argument,
    Category,
}

/// The number of a name among those of its kind, from 0.
pub(super) type Number = u32;

/// The names of an event type or a function, as they are kept: there may be very many types.
#[derive(Debug, Clone, Copy, Default)]
struct Kept {
    event: Number,
    /// Where the names of its fields begin in [`Names::parts`]; those of its categories follow.
    first: u32,
    fields: u16,
    categories: u16,
}

/// The names of an event type or a function.
#[derive(Debug, Clone, Copy)]
pub(super) struct TypeNames<'n> {
    /// Number of the type, from 0.
    pub(super) number: u32,
    pub(super) event: Number,
    kept: Kept,
    parts: &'n [Number],
}

impl<'n> TypeNames<'n> {
    /// Those of its fields.
    #[inline]
    pub(super) fn arguments(&self) -> &'n [Number] {
        let first = self.kept.first as usize;
        let fields = self.parts.get(first..first + usize::from(self.kept.fields));
        fields.unwrap_or_default()
    }

    pub(super) fn categories(&self) -> &'n [Number] {
        let first = self.kept.first as usize + usize::from(self.kept.fields);
        let categories = self
            .parts
            .get(first..first + usize::from(self.kept.categories));
        categories.unwrap_or_default()
    }
}

/// Places of types that were met last, so that most are found without a look into a map.
const RECENT: usize = 1 << RECENT_BITS;
const RECENT_BITS: u32 = 10;

/// All names so far. Each is kept once, however many sequences use it.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// By [`NameOf`], printable.
    texts: [Texts; 3],
    /// Place in `types`, by address of the type or function, which stays where it is while a dump is
    /// read.
    places: SmallKeys<usize, u32>,
    /// Some of them, by the address: see [`recent`].
    recent: Vec<(usize, u32)>,
    types: Vec<Kept>,
    parts: Vec<Number>,
    /// Memory for one name.
    shown: Vec<u8>,
}

impl Names {
    /// The number of a name.
    pub(super) fn number(&mut self, of: NameOf, name: &[u8]) -> Number {
        self.shown.clear();
        escape::text(name, &mut self.shown);
        self.texts[of as usize].number(&self.shown)
    }

    /// The name with this number.
    pub(super) fn text(&self, of: NameOf, number: Number) -> &[u8] {
        let text = self.texts[of as usize].get(number as usize);
        text.unwrap_or_default()
    }

    /// The names of a type.
    #[inline]
    pub(super) fn of_type(&mut self, ty: &EventType) -> TypeNames<'_> {
        let address = std::ptr::from_ref(ty) as usize;
        let place = match self.recent.get(recent(address)) {
            Some((known, place)) if *known == address => *place,
            _ => self.look_for(ty, address),
        };
        self.at_place(place)
    }

    #[cold]
    fn look_for(&mut self, ty: &EventType, address: usize) -> u32 {
        let place = match self.places.get(&address) {
            Some(place) => *place,
            None => {
                let names = self.make(ty);
                self.add(address, names)
            }
        };
        self.recent.resize(RECENT, (0, 0));
        self.recent[recent(address)] = (address, place);
        place
    }

    #[inline]
    fn at_place(&self, place: u32) -> TypeNames<'_> {
        let kept = self.types[place as usize];
        TypeNames {
            number: place,
            event: kept.event,
            kept,
            parts: &self.parts,
        }
    }

    fn add(&mut self, address: usize, names: Kept) -> u32 {
        let place = self.types.len() as u32;
        self.places.insert(address, place);
        self.types.push(names);
        place
    }

    /// The name of what has this address.
    #[inline]
    pub(super) fn at(&mut self, address: usize, name: &[u8]) -> Number {
        let place = match self.places.get(&address) {
            Some(place) => *place,
            None => {
                let event = self.number(NameOf::Event, name);
                let names = Kept {
                    event,
                    ..Kept::default()
                };
                self.add(address, names)
            }
        };
        self.types[place as usize].event
    }

    fn make(&mut self, ty: &EventType) -> Kept {
        let category = match ty.origin.category.as_slice() {
            [] => ty.origin.target.as_slice(),
            category => category,
        };
        let level = ty.level.map_or("", |level| level.name());
        let categories = [category, level.as_bytes()].into_iter();
        let categories = categories.filter(|category| !category.is_empty());
        let first = self.parts.len();
        for field in ty.fields.iter() {
            let number = self.number(NameOf::Argument, &field.name);
            self.parts.push(number);
        }
        let fields = self.parts.len() - first;
        for category in categories {
            let number = self.number(NameOf::Category, category);
            self.parts.push(number);
        }
        let categories = self.parts.len() - first - fields;
        let first = self.share(first);
        Kept {
            event: self.number(NameOf::Event, &ty.name),
            first: first as u32,
            fields: fields as u16,
            categories: categories as u16,
        }
    }

    /// Gives up the numbers from this place on if those before them are the same: types that follow each
    /// other often have the same fields. Returns where they are.
    fn share(&mut self, first: usize) -> usize {
        let (before, new) = self.parts.split_at(first);
        if new.is_empty() || !before.ends_with(new) {
            return first;
        }
        let count = new.len();
        self.parts.truncate(first);
        first - count
    }
}

/// Where the place of what has this address is noted.
#[inline]
const fn recent(address: usize) -> usize {
    // Types lie next to each other; the multiplication spreads them.
    (address >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (usize::BITS - RECENT_BITS)
}

/// A set of numbers.
#[derive(Debug, Default)]
pub(super) struct Told(Vec<u64>);

impl Told {
    /// Puts a number into the set; says whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, number: u32) -> bool {
        let (place, bit) = (number as usize / 64, 1 << (number % 64));
        if self.0.len() <= place {
            self.0.resize(place + 1, 0);
        }
        let is_new = self.0[place] & bit == 0;
        self.0[place] |= bit;
        is_new
    }

    #[inline]
    pub(super) fn has(&self, number: u32) -> bool {
        let word = self.0.get(number as usize / 64);
        word.is_some_and(|word| word & 1 << (number % 64) != 0)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_new_once() {
        let mut told = Told::default();
        let numbers = [0, 63, 64, 700, 63, 0];
        assert_eq!(
            numbers.map(|n| told.insert(n)),
            [true, true, true, true, false, false]
        );
        assert_eq!(
            [63, 64, 65, 9999].map(|n| told.has(n)),
            [true, true, false, false]
        );
        told.clear();
        assert!(!told.has(700) && told.insert(700));
    }

    #[test]
    fn kinds_of_names_have_their_own_numbers() {
        let mut names = Names::default();
        assert_eq!(names.number(NameOf::Event, b"a"), 0);
        assert_eq!(names.number(NameOf::Argument, b"\x1b"), 0);
        assert_eq!(names.number(NameOf::Event, b"b"), 1);
        assert_eq!(names.text(NameOf::Argument, 0), b"\\x1b");
    }
}
