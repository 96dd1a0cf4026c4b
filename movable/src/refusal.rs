//! Why a function cannot be traced.

/// How code or data leads to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeadKind {
    /// A direct jump.
    Jump,
    /// A direct call.
    Call,
    /// An entry of a table by which code jumps.
    Table,
    /// A pointer in data.
    Pointer,
    /// An instruction that computes the address.
    Address,
    /// A symbol.
    Symbol,
}

impl LeadKind {
    const fn text(self) -> &'static str {
        match self {
            Self::Jump => "a jump",
            Self::Call => "a call",
            Self::Table => "an entry of a table",
            Self::Pointer => "a pointer in data",
            Self::Address => "an instruction that computes an address",
            Self::Symbol => "a symbol",
        }
    }
}

impl std::fmt::Display for LeadKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

/// Why a function cannot be traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// An IFUNC's resolver.
    #[error(
        "it chooses an implementation when it is bound (IFUNC): name the function that it chose"
    )]
    Resolver,
    /// A part of a function.
    #[error("a part of a function that lies elsewhere: it is traced with its function")]
    Part,
    /// The unwind table's first row is not that of code which was just called.
    #[error("no call enters it: its unwind entry does not begin as a function's does")]
    NotCalled,
    /// It returns from a signal.
    #[error("the kernel enters it to return from a signal")]
    Signal,
    /// It has no caller.
    #[error("it is the outermost frame, which has no caller")]
    Outermost,
    /// Its symbol leads into the middle of another one.
    #[error("it lies inside the function at {around:#x}")]
    Inside {
        /// Where that begins.
        around: u64,
    },
    /// The unwind table does not know it.
    #[error("no unwind entry says that a function begins here")]
    NoFrame,
    /// Its code can be written to.
    #[error("its code can be written to: what stands there may change")]
    Writable,
    /// The loader writes into its code.
    #[error("the loader writes into its first bytes (DT_TEXTREL)")]
    Relocated,
    /// Others compare addresses with its places.
    #[error("another part of the program knows the addresses of its instructions")]
    KnownPlaces,
    /// No instruction.
    #[error("its bytes at {at:#x} are no instruction")]
    Undefined {
        /// Where.
        at: u64,
    },
    /// A breakpoint.
    #[error("a trap (int3) stands at {at:#x}")]
    Trap {
        /// Where.
        at: u64,
    },
    /// Something leads into the bytes that would be moved.
    #[error("{kind} at {from:#x} leads into the bytes that a jump would replace, to {to:#x}")]
    LeadsInto {
        /// How.
        kind: LeadKind,
        /// Where from.
        from: u64,
        /// Where to.
        to: u64,
    },
    /// Addresses inside it are computed, from which distances may count.
    #[error(
        "an instruction at {from:#x} computes the address {to:#x} inside it: distances that count from there may lead anywhere in it"
    )]
    Label {
        /// Where that is.
        from: u64,
        /// The address.
        to: u64,
    },
    /// A loop.
    #[error(
        "a jump at {from:#x} inside it leads to its first byte: each turn would count as a call"
    )]
    Loop {
        /// Where from.
        from: u64,
    },
    /// A call that is not the last of the moved instructions.
    #[error("it calls at {at:#x}, within the bytes that would be moved")]
    CallInside {
        /// Where.
        at: u64,
    },
    /// The call that is last cannot be aimed elsewhere by one store.
    #[error(
        "it calls at {at:#x} by a pointer or across two words: that call cannot be aimed elsewhere"
    )]
    CallFixed {
        /// Where.
        at: u64,
    },
    /// A transaction begins.
    #[error("a transaction begins in its first bytes (xbegin)")]
    Transaction,
    /// It uses flags of its caller.
    #[error("it reads flags that its caller has set, which tracing changes")]
    ReadsFlags,
    /// It takes its return address off the stack.
    #[error("it takes its return address off the stack")]
    PopsReturnAddress,
    /// A jump that reaches 127 bytes only.
    #[error("its first bytes hold a jump that reaches 127 bytes only (loop, jrcxz)")]
    ShortJump,
    /// Too few bytes.
    #[error("too short: {bytes} bytes, and no padding after them")]
    Short {
        /// Its bytes.
        bytes: u64,
    },
}
