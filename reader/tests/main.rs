//! Reading the ring files of programs, living and dead.

mod common;
mod dead_room;
mod group;
mod hostile;
mod live;
mod record;
mod write_errors;
