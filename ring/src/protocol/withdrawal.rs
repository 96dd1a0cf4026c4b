//! Something that any thread may take away from its owner, for as long as a condition holds: the owner, who gives it
//! back to itself where the condition does not hold, never keeps it while it does.
//!
//! Each side writes one word and looks at the other's: so a full fence stands between the two on both sides. Neither
//! waits for the other.

use crate::protocol::order;

/// The condition begins to hold by `begin`; then `take` takes away what the owner has.
pub fn withdraw(begin: impl FnOnce(), take: impl FnOnce()) {
    begin();
    order::withdrawal_fence(); // [G1] pairs with [G2]
    take();
}

/// The owner has `give` give it back, and `take` take it away again where the condition `holds`.
pub fn give_back(give: impl FnOnce(), holds: impl FnOnce() -> bool, take: impl FnOnce()) {
    give();
    order::giving_back_fence(); // [G2] pairs with [G1]
    if holds() {
        take();
    }
}
