//! One declaration per struct: the struct, the compile-time proof of its offsets, and its line in
//! the table of all layouts.

/// Where one field of a struct lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldLayout {
    /// Bytes from the start of the struct.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// The field's name.
    pub name: &'static str,
    /// The field's type as the code spells it.
    pub kind: &'static str,
}

/// The layout of one struct of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StructLayout {
    /// The struct's name.
    pub name: &'static str,
    /// Size in bytes.
    pub size: usize,
    /// Its fields in order.
    pub fields: &'static [FieldLayout],
}

/// Declares a `repr(C)` struct with explicit offsets: `OFFSET name: type`.
///
/// The offsets and the size are proved at compile time; `zerocopy` proves that there is no padding.
macro_rules! layout {
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $size:literal {
            $( $(#[$fmeta:meta])* $offset:literal $field:ident: $kind:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::KnownLayout, zerocopy::Immutable,
        )]
        #[repr(C)]
        pub struct $name { $( $(#[$fmeta])* pub $field: $kind, )* }

        impl $name {
            /// Size in bytes.
            pub const BYTES: usize = $size;
            /// The offset table, as `SPEC.md` prints it.
            pub const LAYOUT: $crate::layout::StructLayout = $crate::layout::StructLayout {
                name: stringify!($name),
                size: $size,
                fields: &[ $( $crate::layout::FieldLayout {
                    offset: $offset,
                    size: ::core::mem::size_of::<$kind>(),
                    name: stringify!($field),
                    kind: stringify!($kind),
                } ),* ],
            };
        }

        const _: () = {
            assert!(::core::mem::size_of::<$name>() == $size);
            $( assert!(::core::mem::offset_of!($name, $field) == $offset); )*
        };
    };
}

/// An enum whose numbers stand in the format and whose names stand in output.
macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $value:literal $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$vmeta])* $variant = $value,)* }

        impl $name {
            /// Every value in order.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The value with this number, if there is one.
            #[must_use]
            pub const fn from_u8(value: u8) -> Option<Self> {
                match value { $($value => Some(Self::$variant),)* _ => None }
            }

            /// Its name in output.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}
