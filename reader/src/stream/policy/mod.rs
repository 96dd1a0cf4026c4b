//! Policies of an operator on this host: checked, kept, and applied to what is recorded and sent.
//!
//! A collector only carries them. What counts is the operator's signature, and what this host allows.

mod budgets;
mod host_policy;
mod key;
mod rule_order;

pub(super) use budgets::{Budgets, LeftOut, Verdict};
pub(super) use host_policy::{Heard, HostPolicy};
pub use key::{PolicyFault, PolicyKey, PolicySigner};
pub(super) use rule_order::RuleOrder;
