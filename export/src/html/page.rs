//! The page's parts, joined.

use std::io::{self, Write};

const HEAD: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// In the order in which they are read: each uses only those before it, but for what it calls later.
const SCRIPTS: [&str; 14] = [
    include_str!("page/format.js"),
    include_str!("page/unpack.js"),
    include_str!("page/trace.js"),
    include_str!("page/sums.js"),
    include_str!("page/colours.js"),
    include_str!("page/layout.js"),
    include_str!("page/counter.js"),
    include_str!("page/timeline.js"),
    include_str!("page/flame.js"),
    include_str!("page/panels.js"),
    include_str!("page/tables.js"),
    include_str!("page/threads.js"),
    include_str!("page/main.js"),
    include_str!("page/input.js"),
];

/// Writes the page. `data` and `texts` are without `<`. Returns how many bytes it has.
pub(super) fn write(data: &[u8], texts: &[u8], out: &mut impl Write) -> io::Result<u64> {
    let (before, after) = HEAD.split_once("<!-- parts -->").unwrap_or((HEAD, ""));
    let mut written = 0;
    let mut put = |bytes: &[u8]| {
        written += bytes.len() as u64;
        out.write_all(bytes)
    };
    put(before.as_bytes())?;
    put(b"<style>\n")?;
    put(STYLE.as_bytes())?;
    put(b"</style>")?;
    put(after.as_bytes())?;
    put(b"<script type=\"application/octet-stream\" id=\"data\">")?;
    put(data)?;
    put(b"</script>\n<script>\n\"use strict\";\n")?;
    for script in SCRIPTS {
        put(script.as_bytes())?;
    }
    put(b"</script>\n<script type=\"application/octet-stream\" id=\"texts\">")?;
    put(texts)?;
    put(b"</script>\n</body>\n</html>\n")?;
    out.flush()?;
    Ok(written)
}
