//! The newest policy that a streamer of this host took. It lies in the directory of the sessions, and outlives the
//! streamer.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use ringmark_format::policy::{POLICY_BYTES_MAX, Policy, UncheckedPolicy};
use ringmark_ring::session_dir;

/// Where it is kept.
pub(crate) fn path() -> PathBuf {
    session_dir::path().join("policy")
}

/// The bytes of a policy that was left there.
pub(crate) fn read(kept: &Path) -> Option<Vec<u8>> {
    let (mut bytes, most) = (Vec::new(), POLICY_BYTES_MAX as u64 + 1);
    let file = fs::File::open(kept).ok()?;
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The present second since 1970.
pub(crate) fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

/// The newest policy that a streamer of this host took, if it has not ended. Sessions keep its rules until then, also
/// without a streamer. Its signature was checked when it was taken.
#[must_use]
pub fn kept_policy() -> Option<Policy> {
    let bytes = read(&path())?;
    let split = UncheckedPolicy::split(&bytes).ok()?;
    let policy = Policy::parse(split.signed).ok()?;
    (now_s() < policy.until_s).then_some(policy)
}
