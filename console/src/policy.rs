//! What people read about the policy that holds on a host.

use ringmark_decoder::Stamper;
use ringmark_reader::PolicyState;

use crate::printable;

/// Seconds as ns.
pub fn ns(seconds: u64) -> u64 {
    seconds.saturating_mul(1_000_000_000)
}

/// A moment to the second, UTC.
pub fn moment(seconds: u64) -> String {
    let stamp = Stamper::default().stamp(ns(seconds))[..19].to_vec();
    format!("{}Z", String::from_utf8_lossy(&stamp))
}

/// What a host says of policies: one line, or nothing where there is none.
pub fn state(policy: &PolicyState) -> Option<String> {
    let holds = policy.serial.map(|serial| {
        let until = policy.until_s.map_or_else(String::new, moment);
        format!("policy {serial} until {until}")
    });
    let refused = policy
        .refused
        .as_ref()
        .map(|why| format!("policy refused: {}", printable(why)));
    let said: Vec<_> = holds.into_iter().chain(refused).collect();
    (!said.is_empty()).then(|| said.join("; "))
}
