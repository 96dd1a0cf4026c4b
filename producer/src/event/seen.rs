//! Values in the words of a payload, to be compared with a filter.

use ringmark_format::schema::Kind;
use ringmark_format::span_condition::SpanValue;

use crate::description::Place;

/// Gives `see` the value at `place`; nothing where it is absent, or cut.
pub(crate) fn value(words: &[u64], place: Place, see: impl FnOnce(SpanValue<'_>)) {
    let at = place.offset as usize;
    let bytes = place.kind.fixed_bytes();
    let bits = |at: usize| words.get(at / 8).map(|word| word >> (at % 8 * 8));
    let Some(low) = bits(at) else {
        return;
    };
    if place.count != 0 {
        return see(SpanValue::Other);
    }
    if place.optional && bits(at + bytes).is_none_or(|there| there & 1 == 0) {
        return;
    }
    if let Kind::Str | Kind::Bytes = place.kind {
        return text(words, low, see);
    }
    let wide = || u128::from(low) | u128::from(bits(at + 8).unwrap_or(0)) << 64;
    see(match place.kind {
        Kind::U8 => SpanValue::U64(u64::from(low as u8)),
        Kind::U16 => SpanValue::U64(u64::from(low as u16)),
        Kind::U32 => SpanValue::U64(u64::from(low as u32)),
        Kind::U64 => SpanValue::U64(low),
        Kind::I8 => SpanValue::I64(i64::from(low as i8)),
        Kind::I16 => SpanValue::I64(i64::from(low as i16)),
        Kind::I32 => SpanValue::I64(i64::from(low as i32)),
        Kind::I64 => SpanValue::I64(low.cast_signed()),
        Kind::U128 => SpanValue::U128(wide()),
        Kind::I128 => SpanValue::I128(wide().cast_signed()),
        Kind::F32 => SpanValue::F64(f32::from_bits(low as u32).into()),
        Kind::F64 => SpanValue::F64(f64::from_bits(low)),
        Kind::Bool => SpanValue::Bool(low as u8 != 0),
        _ => SpanValue::Other,
    });
}

/// A text, whose place and length are `at`.
fn text(words: &[u64], at: u64, see: impl FnOnce(SpanValue<'_>)) {
    let (first, length) = (at as u32 as usize, (at >> 32) as usize);
    let last = first.saturating_add(length).div_ceil(8);
    let Some(words) = words.get(first / 8..last) else {
        return;
    };
    let mut bytes = [0; 8 * 128];
    for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    see(SpanValue::Text(&bytes[..length.min(8 * 128)]));
}
