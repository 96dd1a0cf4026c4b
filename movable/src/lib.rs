//! Which functions of a program or shared object can be traced where their compiler left no patch
//! site, and why others cannot.
//!
//! A site is made by a jump over the function's first bytes. The instructions that were there are
//! *moved* into a trampoline. [`functions`] says for each function which bytes those are, and in which
//! [`Form`] the jump can be put there while threads run. It reads a file and changes nothing.
//!
//! 1. `image`: code and data by address. `frames`: what the unwind table says about functions.
//! 2. `starts`: where functions begin, and their names. The unwind table says whether a start is a
//!    function's: its first row must be that of code which was just called.
//! 3. `instructions`: one pass over all code. `leads`: each address that code or data leads to.
//!    `distances`: tables of distances, by which code jumps.
//! 4. `padding`: bytes between functions that nothing executes.
//! 5. `first_bytes`: one function's first instructions, judged. `return_address`: the functions whose
//!    return address must stay.
//! 6. `functions`: all of it together. `file_error`: why a file has none.
//!
//! Besides, [`source_lines`] says where code of such a file stands in the source.
//!
//! Whatever the file holds, the answer is a list or a [`FileError`]. A doubt counts against the
//! function.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod distances;
mod file_error;
mod first_bytes;
mod frames;
mod functions;
mod image;
mod instructions;
mod leads;
mod padding;
mod refusal;
mod return_address;
mod source_lines;
mod starts;

pub use file_error::FileError;
pub use first_bytes::{Form, Movable};
pub use functions::{Function, build_id, functions};
pub use refusal::{LeadKind, Refusal};
pub use source_lines::{SourceLine, source_lines};
