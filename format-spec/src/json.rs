//! Version of the JSON that the commands print; `JSON.md` describes it, `json.schema.json` is its
//! schema.

/// Version of the JSON objects, their key `v`. It changes only with a change that could break a
/// reader of them; new keys and new kinds of objects do not.
pub const VERSION: u32 = 2;
