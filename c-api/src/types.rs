//! Registering the event types that C code defines: static objects, to which the header leaves
//! pointers in a linker section of each program and shared object. A constructor says where that
//! section is.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;

use ringmark::__private::raw;
use ringmark::client::{self, Description, EventType, Field, Place, Shape};
use ringmark::{Kind, Level};
use ringmark_format::schema::semantic;

use crate::structs::{CField, CType};
use crate::{caught, layout};

/// Registers the event types from `start` to `stop`. Returns 0; 1 if the caller's header is of
/// another version of the library, or if `block`, the thread block that the caller has found, is that
/// of another copy of the library: its events stay off.
///
/// # Safety
/// Between `start` and `stop` lie pointers to types as `ringmark.h` defines them, or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ringmark_register_types(
    layout: u64,
    block: *const c_void,
    start: *const *const CType,
    stop: *const *const CType,
) -> c_int {
    if block.addr() != raw::thread_block_address() {
        caught((), || {
            report_off("it found the thread block of another copy of libringmark")
        });
        return 1;
    }
    // SAFETY: as the caller says.
    unsafe { register_between(layout, start, stop) }
}

/// As [`ringmark_register_types`], for programs that were compiled before it was there.
///
/// # Safety
/// As for [`ringmark_register_types`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ringmark_register(
    layout: u64,
    start: *const *const CType,
    stop: *const *const CType,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe { register_between(layout, start, stop) }
}

/// # Safety
/// As [`ringmark_register_types`].
unsafe fn register_between(
    layout: u64,
    start: *const *const CType,
    stop: *const *const CType,
) -> c_int {
    if layout != layout::number() {
        caught((), || {
            report_off("it was compiled with ringmark.h of another version than libringmark");
        });
        return 1;
    }
    caught((), || {
        let bytes = stop.addr().saturating_sub(start.addr());
        // Each translation unit has a constructor, all of one module speak of the same section.
        // The session looks at its types for ever.
        if start.is_null() || bytes == 0 || !client::keep_mapped(start.cast()) {
            return;
        }
        let count = bytes / size_of::<*const CType>();
        // SAFETY: the caller says what lies there; the module stays mapped.
        let types = unsafe { core::slice::from_raw_parts(start, count) };
        for place in types {
            // SAFETY: as above: null, or a type that lives as long as the module.
            if let Some(of) = unsafe { place.as_ref::<'static>() } {
                register(of);
            }
        }
    });
    0
}

/// Reports why the events stay off, where every other such reason is reported, too.
fn report_off(why: &str) {
    if raw::is_verbose() {
        let line = format!("ringmark: events of C code are off: {why}\n");
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
    }
}

fn register(of: &'static CType) {
    let fields: Vec<Field> = c_fields(of).iter().filter_map(field).collect();
    let (Ok(level), Ok(shape)) = (u8::try_from(of.level), u8::try_from(of.shape)) else {
        return;
    };
    let (Some(level), Some(shape)) = (Level::from_u8(level), Shape::from_u8(shape)) else {
        return;
    };
    let event = EventType {
        name: text(&of.name),
        target: text(&of.target),
        category: text(&of.category),
        level,
        shape,
        file: text(&of.file),
        line: of.line,
        state: &of.state,
    };
    let ends = fields.iter().map(end);
    let description = Description {
        event,
        fixed_bytes: ends.max().unwrap_or(0),
        fields: &fields,
    };
    description.register();
}

fn c_fields(of: &CType) -> &[CField] {
    if of.fields.is_null() {
        return &[];
    }
    // SAFETY: the header's macro counts the fields that it writes there.
    unsafe { core::slice::from_raw_parts(of.fields, of.field_count as usize) }
}

fn field(of: &CField) -> Option<Field> {
    Some(Field {
        name: text(&of.name),
        place: Place {
            kind: Kind::from_u8(u8::try_from(of.kind).ok()?)?,
            count: 0,
            offset: of.offset,
            optional: false,
        },
        semantic: of.semantic,
        unit: if of.semantic == semantic::DURATION {
            "ticks"
        } else {
            ""
        },
        redacted: false,
    })
}

fn end(field: &Field) -> u32 {
    field.place.offset + field.place.bytes()
}

/// A text of a type; empty if it is no UTF-8.
fn text(at: &*const c_char) -> &'static str {
    if ptr::eq(*at, ptr::null()) {
        return "";
    }
    // SAFETY: the header's macros write string literals there, which live as long as the module.
    let bytes: &'static CStr = unsafe { CStr::from_ptr(*at) };
    bytes.to_str().unwrap_or("")
}
