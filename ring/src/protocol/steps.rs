//! Where a signal handler may come between two steps of the writer. Only under `--cfg steps`: a
//! test runs a handler at each of them.

use std::cell::RefCell;
use std::rc::Rc;

type Handler = Rc<dyn Fn()>;

thread_local! {
    static HANDLER: RefCell<Option<Handler>> = const { RefCell::new(None) };
}

/// What this thread calls between steps from now on.
pub fn set_handler(handler: Option<Handler>) {
    HANDLER.with(|h| *h.borrow_mut() = handler);
}

/// Between two steps.
pub(crate) fn between() {
    let handler = HANDLER.with(|h| h.borrow().clone());
    if let Some(handler) = handler {
        handler();
    }
}
