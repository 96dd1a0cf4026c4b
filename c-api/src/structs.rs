//! The structs of `ringmark.h` that C code defines and the library reads.

use core::ffi::c_char;

use ringmark::client::TypeState;

/// `struct ringmark_field`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CField {
    pub(crate) name: *const c_char,
    pub(crate) offset: u32,
    pub(crate) kind: u32,
    pub(crate) semantic: u32,
    reserved: u32,
}

/// `struct ringmark_type`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CType {
    pub(crate) state: TypeState,
    pub(crate) name: *const c_char,
    pub(crate) target: *const c_char,
    pub(crate) category: *const c_char,
    pub(crate) file: *const c_char,
    pub(crate) fields: *const CField,
    pub(crate) field_count: u32,
    pub(crate) line: u32,
    pub(crate) level: u32,
    pub(crate) shape: u32,
}

/// Bytes of a type and of a field.
pub(crate) fn sizes() -> [u64; 2] {
    [size_of::<CType>() as u64, size_of::<CField>() as u64]
}
