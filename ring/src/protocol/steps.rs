//! Where a signal handler may come between two steps of the writer. Only under `--cfg steps`: a
//! test runs a handler at each of them.
//!
//! A real signal comes between any two instructions. What a handler can tell apart are the places
//! before and after each access to a word that it uses as well. Those are the steps: each single
//! instruction, each ordered access, and both ends of a reservation.

use std::cell::RefCell;
use std::rc::Rc;

type Handler = Rc<dyn Fn()>;

thread_local! {
    static HANDLER: RefCell<Option<Handler>> = const { RefCell::new(None) };
}

/// Sets what this thread calls between two steps; `None`: nothing. The handler may emit events,
/// and is then itself called between their steps: the test bounds the depth.
pub fn set_handler(handler: Option<Handler>) {
    HANDLER.with(|h| *h.borrow_mut() = handler);
}

/// Between two steps: of the writer, or of a test that fills a reservation word by word.
pub fn between() {
    let handler = HANDLER.with(|h| h.borrow().clone());
    if let Some(handler) = handler {
        handler();
    }
}
