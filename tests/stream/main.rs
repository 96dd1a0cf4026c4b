//! From a host to a collector.
#![forbid(unsafe_code)]

mod alerts;
mod bad_days;
mod bad_host;
mod collector_config;
mod collector_drain;
mod collector_hanging;
mod collector_limits;
mod collector_memory;
#[path = "../../decoder/tests/common/mod.rs"]
mod common;
mod deploy;
mod fleet_memory;
mod full_store;
mod object_collectors;
mod object_memory;
mod several_collectors;
mod skewed_hosts;
mod streamer_operation;
mod streaming;
mod streaming_durable;
mod streaming_ends;
mod streaming_hostile;
mod streaming_packed;
mod streaming_protocol;
mod streaming_refused;
mod streaming_spill;
mod streaming_tls;
mod streaming_zero_copy;
mod uploads;
mod virtual_fleet;
