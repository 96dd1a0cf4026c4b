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

/// The names of an event type or a function.
#[derive(Debug, Default)]
pub(super) struct TypeNames {
    /// Number of the type, from 0.
    pub(super) number: u32,
    pub(super) event: Number,
    pub(super) arguments: Box<[Number]>,
    pub(super) categories: Box<[Number]>,
}

/// All names so far. Each is kept once, however many sequences use it.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// By [`NameOf`], printable.
    texts: [Texts; 3],
    /// Place in `types`, by address of the type or function, which stays where it is while a dump is
    /// read.
    places: SmallKeys<usize, usize>,
    types: Vec<TypeNames>,
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
    pub(super) fn of_type(&mut self, ty: &EventType) -> &TypeNames {
        let address = std::ptr::from_ref(ty) as usize;
        let place = match self.places.get(&address) {
            Some(place) => *place,
            None => {
                let names = self.make(ty);
                self.add(address, names)
            }
        };
        &self.types[place]
    }

    fn add(&mut self, address: usize, names: TypeNames) -> usize {
        self.places.insert(address, self.types.len());
        self.types.push(names);
        self.types.len() - 1
    }

    /// The name of what has this address.
    #[inline]
    pub(super) fn at(&mut self, address: usize, name: &[u8]) -> &TypeNames {
        let place = match self.places.get(&address) {
            Some(place) => *place,
            None => {
                let names = TypeNames {
                    number: self.types.len() as u32,
                    event: self.number(NameOf::Event, name),
                    ..TypeNames::default()
                };
                self.add(address, names)
            }
        };
        &self.types[place]
    }

    #[cold]
    fn make(&mut self, ty: &EventType) -> TypeNames {
        let category = match ty.category.as_slice() {
            [] => ty.target.as_slice(),
            category => category,
        };
        let level = ty.level.map_or("", |level| level.name());
        let categories = [category, level.as_bytes()].into_iter();
        let categories = categories.filter(|category| !category.is_empty());
        let fields = ty.fields.iter();
        TypeNames {
            number: self.types.len() as u32,
            event: self.number(NameOf::Event, &ty.name),
            arguments: fields
                .map(|field| self.number(NameOf::Argument, &field.name))
                .collect(),
            categories: categories
                .map(|category| self.number(NameOf::Category, category))
                .collect(),
        }
    }
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
        told.clear();
        assert!(told.insert(700));
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
