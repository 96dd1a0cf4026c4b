//! What Linux adds to the protocol: the file of a session, its directory, its process, the clocks.
//!
//! The protocol works on words wherever they lie. This room puts them into a file that two
//! processes map, and answers what the words cannot: whose file it is, whether its process still
//! lives, what time it is, and what may be removed. It imports the protocol; nothing there imports
//! this.
//!
//! # Files
//!
//! From the ground up:
//!
//! - Calls of the system: [`raw`] makes one without the C library, [`file_lock`] locks bytes of a file,
//!   [`small_file`] reads `/proc`, [`clock`] reads the clocks, [`environment`] the variables.
//! - Memory: [`guard`] handles the SIGBUS of a file that was truncated, [`mapping`] maps a file as
//!   atomic words.
//! - A session: [`session_dir`] is where its file lies, [`ring_file`] takes the file apart and maps
//!   it, [`identity`] says whether its process lives, [`process_end`] how it ended; [`room`] is how much
//!   memory it may take.
//! - The dead: `dead` finds them, `remains` counts what was left unread, [`removals`] keeps the
//!   record of it, [`consumer_lease`] tells that a consumer comes, [`clean`] removes.
//!
//! # Life of a session's file
//!
//! ```text
//!  ┌───────────┐ rename   ┌──────┐ exit, or     ┌──────┐ a recorder reads it,  ┌─────────┐
//!  │ .starting │ ───────▶ │ live │ killed       │ dead │ or a new session      │ removed │
//!  │ laid out  │          │      │ ───────────▶ │      │ needs the room:       │ counted │
//!  └───────────┘          └──────┘              └──────┘ ─────────────────────▶└─────────┘
//! ```
//!
//! | what happens | who notices | what follows |
//! | --- | --- | --- |
//! | the process starts a session | observers, by the directory's entries | they map the file |
//! | the process is killed | the kernel gives back its record lock | [`identity::liveness`] says dead |
//! | it calls `exec` | the same: a lock on a closed file ends | its session is dead, the pid lives |
//! | it forks | nothing: a record lock is not inherited | the child has a session of its own |
//! | a third process truncates the file | the next touch faults | [`guard`], if it is installed |
//! | the file system is full | space is allocated before it is touched | an error at the attach |
//!
//! # Trust
//!
//! A session directory belongs to one user and is writable by that user alone; [`session_dir`]
//! refuses any other. Within it, files may still be damaged, replaced, or written by a program with
//! bugs. So a reader opens nothing but regular files, and validates a header once, from a private
//! copy. A process is identified by more than its pid, and every number from a file is bounded
//! before use.

pub mod clean;
pub mod clock;
pub mod consumer_lease;
mod dead;
pub mod environment;
pub mod file_lock;
pub mod guard;
pub mod identity;
pub mod mapping;
pub mod own_maps;
pub mod process_end;
pub mod raw;
mod remains;
pub mod removals;
pub mod ring_file;
pub mod room;
pub mod session_dir;
pub mod small_file;
