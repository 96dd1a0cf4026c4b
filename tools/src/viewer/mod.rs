//! Serves one file on loopback to one web page: `request` reads what a browser asks, `answer` is
//! what it is told, `server` waits for it.

mod answer;
mod request;
mod server;

pub(crate) use server::{Ended, Server};
