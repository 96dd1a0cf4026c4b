//! Function records as text.
//!
//! An entry with a known caller is a line of the classic form
//! `CPU 1: comm:tid function+0x0/0x40 <-- parent+0x1c/0x90`.

use crate::blocks::page::Page;
use crate::events::event::Event;
use crate::trace_file::function_words::FunctionWords;
use crate::trace_file::functions::{Function, FunctionUse, Functions};
use crate::trace_file::session::Session;
use crate::words::escape;
use crate::words::number::unsigned;

/// Appends what follows the timestamp in a line of text.
pub(crate) fn text(event: &Event<'_>, meaning: FunctionUse, out: &mut Vec<u8>) {
    let functions = event.session.schema.functions();
    let words = FunctionWords::read(meaning, &event.payload);
    if let Some(cpu) = words.cpu {
        out.extend_from_slice(b" CPU ");
        unsigned(cpu.into(), out);
        out.push(b':');
    }
    thread(event.session, event.page, out);
    if let Some(function) = functions.of_use(&meaning) {
        place(function, 0, out);
    }
    if words.caller != 0 {
        out.extend_from_slice(b" <--");
        caller(functions, words.caller, out);
    }
    out.extend_from_slice(match meaning.kind() {
        "function_exit" => b" returned".as_slice(),
        "function_unwound" => b" unwound",
        _ => b"",
    });
    self::words(&words, out);
    if let Some(ns) = event.duration_ns() {
        out.extend_from_slice(b" took=");
        unsigned(ns, out);
        out.extend_from_slice(b"ns");
    }
}

/// Appends ` arg1=… result=…`: the arguments and the result that were recorded.
pub(crate) fn words(words: &FunctionWords<'_>, out: &mut Vec<u8>) {
    for (number, value) in words.arguments().enumerate() {
        out.extend_from_slice(format!(" arg{}={value:#x}", number + 1).as_bytes());
    }
    if let Some(value) = words.result {
        out.extend_from_slice(format!(" result={value:#x}").as_bytes());
    }
}

fn thread(session: &Session, page: &Page, out: &mut Vec<u8>) {
    let name = match page.thread_name() {
        [] => session.process_name(),
        name => name,
    };
    out.push(b' ');
    escape::text(name, out);
    out.push(b':');
    unsigned(page.header.tid.into(), out);
}

/// ` name+0x0/0x40`.
fn place(function: &Function, offset: u64, out: &mut Vec<u8>) {
    out.push(b' ');
    escape::text(&function.name, out);
    out.extend_from_slice(format!("+{offset:#x}/{:#x}", function.bytes).as_bytes());
}

/// Appends a space and the place that a call came from, as exactly as it is known.
pub(crate) fn caller(functions: &Functions, address: u64, out: &mut Vec<u8>) {
    if let Some(function) = functions.function_at(address) {
        return place(function, address - function.address, out);
    }
    match functions.module_at(address) {
        Some(module) => {
            out.push(b' ');
            escape::text(module.file_name(), out);
            out.extend_from_slice(format!("+{:#x}", address - module.base).as_bytes());
        }
        None => out.extend_from_slice(format!(" {address:#x}").as_bytes()),
    }
}
