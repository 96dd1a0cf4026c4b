//! Values of a program's own types: recorded as bytes by any macro or typed event, read back as
//! the same values. In a program without `unsafe`.
#![forbid(unsafe_code)]

mod common;

use bytemuck::{AnyBitPattern, NoUninit, Pod, Zeroable};
use common::Recorded;
use common::schema::TypeInfo;
use ringmark::{Event, Plain, Session, emit, event, instrument, span};
use ringmark_decoder::{CastError, Field, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Odd {
    bytes: [u8; 13],
}

#[derive(Debug, Clone, Copy, PartialEq, NoUninit, AnyBitPattern)]
#[repr(C)]
struct Particle {
    position: [f64; 3],
    charge: i32,
    id: u32,
}

#[derive(Event)]
#[repr(C)]
#[event(name = "typed")]
struct Typed {
    before: u16,
    odd: Plain<Odd>,
    particle: Plain<Particle>,
    after: u8,
}

/// Numbers that differ from run to run of the loop, not of the test.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(0x5851_F42D_4C95_7F2D)
            .wrapping_add(0x1405_7B7E_F767_814F);
        self.0 ^ self.0 >> 29
    }

    fn odd(&mut self) -> Odd {
        Odd {
            bytes: std::array::from_fn(|_| self.next() as u8),
        }
    }

    fn particle(&mut self) -> Particle {
        Particle {
            position: std::array::from_fn(|_| self.next() as f64 / 3.0),
            charge: self.next() as i32,
            id: self.next() as u32,
        }
    }
}

#[instrument(fields(odd, n = 3_u8))]
fn traced(odd: Plain<Odd>) -> u8 {
    odd.0.bytes[0]
}

/// The field as the decoder has it.
fn field(of: &TypeInfo, name: &str) -> Field {
    let info = of.field(name);
    let mut field = Field::new(info.name.as_bytes(), info.kind);
    (field.count, field.offset, field.optional) = (info.count, info.offset, info.optional);
    field
}

/// The only record of this type among those from `first` on, and its type.
fn record(recorded: &Recorded, first: usize, name: &str) -> (TypeInfo, Vec<u8>) {
    let found = recorded.types.iter().find(|of| of.name == name);
    let found = found.unwrap_or_else(|| panic!("no type {name}"));
    let mut records = recorded.records[first..].iter();
    let record = records.find(|record| record.type_id == found.id);
    (found.clone(), record.expect(name).payload.clone())
}

#[track_caller]
fn expect<T>(recorded: &Recorded, first: usize, (of, name): (&str, &str), expected: &[T])
where
    T: AnyBitPattern + PartialEq + std::fmt::Debug,
{
    let (of, payload) = record(recorded, first, of);
    let value = field(&of, name).value(&payload);
    assert_eq!(value.copy_slice::<T>().as_deref(), Ok(expected), "{name}");
    match value.cast_slice::<T>() {
        Ok(found) => assert_eq!(found, expected, "{name}"),
        Err(CastError::Alignment { found, expected }) => {
            assert!(0 < found && found < expected && expected == align_of::<T>());
        }
        Err(error) => panic!("{name}: {error}"),
    }
}

fn round(session: &Session, numbers: &mut Numbers) {
    let first = common::read(session).records.len();
    let (odd, particle) = (numbers.odd(), numbers.particle());
    let samples: Vec<u32> = (0..numbers.next() % 9)
        .map(|_| numbers.next() as u32)
        .collect();
    let bytes: &[u8] = bytemuck::cast_slice(&samples);
    event!(
        "both",
        small = 1_u8,
        odd = Plain(odd),
        text = "t",
        particle = Plain(particle)
    );
    event!("slice", samples = bytes);
    drop(span!(
        "span",
        particle = Plain(particle),
        odd = Plain([odd; 2])
    ));
    emit(&Typed {
        before: 0xFFFF,
        odd: Plain(odd),
        particle: Plain(particle),
        after: 0xFF,
    });
    assert_eq!(traced(Plain(odd)), odd.bytes[0]);
    let recorded = common::read(session);
    for of in ["both", "typed", "traced"] {
        expect(&recorded, first, (of, "odd"), &[odd]);
    }
    for of in ["both", "typed", "span"] {
        expect(&recorded, first, (of, "particle"), &[particle]);
    }
    expect(&recorded, first, ("span", "odd"), &[odd, odd]);
    expect(&recorded, first, ("slice", "samples"), &samples);
    let (of, payload) = record(&recorded, first, "typed");
    assert_eq!(field(&of, "before").value(&payload), Value::U64(0xFFFF));
    assert_eq!(field(&of, "after").value(&payload), Value::U64(0xFF));
}

#[test]
fn what_is_recorded_is_read_back_and_wrong_sizes_are_refused() {
    let session = common::start(|builder| builder.ring_bytes(4 << 20));
    let mut numbers = Numbers(1);
    (0..200).for_each(|_| round(&session, &mut numbers));

    let (of, payload) = record(&common::read(&session), 0, "both");
    let odd = field(&of, "odd").value(&payload);
    let refused = CastError::Size {
        found: 13,
        expected: 32,
    };
    assert_eq!(odd.cast_slice::<Particle>(), Err(refused));
    assert_eq!(odd.copy_slice::<Particle>(), Err(refused));
    assert_eq!(
        refused.to_string(),
        "found 13 bytes, expected a multiple of 32, the size of the type"
    );
    let none = odd.cast_slice::<[u8; 0]>().unwrap_err();
    assert_eq!(
        none,
        CastError::Size {
            found: 13,
            expected: 0
        }
    );
    for other in [
        field(&of, "small").value(&payload),
        field(&of, "text").value(&payload),
    ] {
        assert_eq!(
            other.cast_slice::<u8>(),
            Err(CastError::NotBytes),
            "{other:?}"
        );
    }
}

#[test]
fn bytes_at_any_address_are_read_or_refused_with_the_distance() {
    let words = [0x0102_0304_0506_0708_u64, 0x1112_1314_1516_1718, 0];
    let bytes: &[u8] = bytemuck::cast_slice(&words);
    for at in 0..8 {
        let value = Value::Bytes(&bytes[at..at + 8]);
        let expected = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!(value.copy_slice::<u64>(), Ok(vec![expected]));
        let cast = value.cast_slice::<u64>();
        if at == 0 {
            assert_eq!(cast, Ok(&words[..1]));
        } else {
            let refused = CastError::Alignment {
                found: at,
                expected: 8,
            };
            assert_eq!(cast, Err(refused), "{at}");
        }
    }
}
