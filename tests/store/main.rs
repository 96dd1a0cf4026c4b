//! What a collector keeps.
#![forbid(unsafe_code)]

#[path = "../../decoder/tests/common/mod.rs"]
mod common;
mod readers_memory;
mod scan_reads;
mod store;
mod store_bounds;
mod store_damage;
mod store_disk;
mod store_hosts;
mod store_ours;
mod store_power_loss;
mod store_retention;
mod store_times;
mod store_upkeep;
