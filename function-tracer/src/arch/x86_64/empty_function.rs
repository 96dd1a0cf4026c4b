//! A function that only returns, such as the one that the loader calls for debuggers.

use super::form::{CALL_BYTES, ENDBR64, Form, RETURN, Shape, run_length};
use crate::arch::UnfitCode;

/// Functions of libraries begin at multiples of this.
const FUNCTION_BLOCK: u64 = 16;

/// The site in the place of the return of a function that does nothing else, and its distance from
/// the function's start. The bytes after it must be padding that no function begins in.
pub(crate) fn read_empty_function(code: &[u8], at: u64) -> Result<(u64, Form), UnfitCode> {
    let start = if code.starts_with(&ENDBR64) {
        ENDBR64.len()
    } else {
        0
    };
    let found = || UnfitCode::NotEmpty(code.get(..12).unwrap_or(code).to_vec());
    let site = code.get(start..).unwrap_or_default();
    let is_return = site.first() == Some(&RETURN);
    let is_padded = is_return && run_length(&site[1..]) >= CALL_BYTES - 1;
    let offset = start as u64;
    let is_in_one_block = (at + offset) % FUNCTION_BLOCK <= FUNCTION_BLOCK - CALL_BYTES as u64;
    if !is_padded || !is_in_one_block {
        return Err(found());
    }
    let form = Form::new(Shape::SledExit, site);
    Ok((offset, form))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::SiteState;

    const DISTANCE: i32 = 0x1122_3344;

    #[test]
    fn the_return_of_an_empty_function_is_a_site() {
        let padding = [0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];
        let plain = [&[0xc3][..], &padding].concat();
        let (offset, form) = read_empty_function(&plain, 0x2060).unwrap();
        assert_eq!((offset, form.call_end()), (0, 5));
        assert_eq!(*form.bytes(SiteState::Disabled, 0), plain[..5]);
        let enabled = form.settled(DISTANCE).bytes(SiteState::Enabled, DISTANCE);
        assert_eq!((enabled[0], enabled.len()), (0xe9, 5));
        let marked = [&ENDBR64[..], &plain].concat();
        assert_eq!(read_empty_function(&marked, 0x2060).unwrap().0, 4);
        // Another function may begin four bytes after it.
        assert!(read_empty_function(&plain, 0x206c).is_err());
        // A debugger's breakpoint; a function that does something; no padding.
        for other in [
            &[0xcc, 0x90, 0x90, 0x90, 0x90][..],
            &[0x90, 0xc3, 0x90, 0x90, 0x90, 0x90],
            &[0xc3, 0x90, 0x90, 0x55, 0x90],
        ] {
            let found = read_empty_function(other, 0x2060);
            assert_eq!(found, Err(UnfitCode::NotEmpty(other.to_vec())));
        }
    }
}
