//! The envelope of all JSON objects that commands print: version and kind.

use ringmark_decoder::JSON_VERSION;
use serde_json::Value;

/// The object `fields` with `v`, the version of the dialect, and `kind`, what it describes.
pub(crate) fn object(kind: &str, mut fields: Value) -> Value {
    if let Value::Object(fields) = &mut fields {
        fields.insert("v".to_owned(), JSON_VERSION.into());
        fields.insert("kind".to_owned(), kind.into());
    }
    fields
}
