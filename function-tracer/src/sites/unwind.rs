//! Where functions begin, according to `.eh_frame_hdr`: its sorted table survives `strip`.

/// Addresses in the file at which functions begin, sorted. `header` is the section, `at` its
/// address in the file. Empty where it is not in the form that linkers write.
pub(super) fn starts(header: &[u8], at: u64) -> Vec<u64> {
    // Version 1; count as four bytes; table of pairs of four signed bytes, from the section.
    let [1, _, 0x03, 0x3b, rest @ ..] = header else {
        return Vec::new();
    };
    let Some((_, table)) = rest.split_at_checked(4) else {
        return Vec::new();
    };
    let mut words = table.chunks_exact(4).map(|word| {
        let word: [u8; 4] = word.try_into().unwrap_or_default();
        i32::from_le_bytes(word)
    });
    let count = words.next().unwrap_or(0).cast_unsigned() as usize;
    let firsts = words.step_by(2).take(count);
    let mut starts: Vec<_> = firsts
        .map(|distance| at.wrapping_add_signed(distance.into()))
        .collect();
    starts.sort_unstable();
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_and_a_cut_one_is_no_harm() {
        let mut header = vec![1, 0x1b, 0x03, 0x3b, 9, 9, 9, 9, 2, 0, 0, 0];
        for word in [-16_i32, 7, 32, 8] {
            header.extend(word.to_le_bytes());
        }
        assert_eq!(starts(&header, 0x2000), [0x1ff0, 0x2020]);
        for end in 0..header.len() {
            assert!(starts(&header[..end], 0x2000).len() <= 2);
        }
        header[3] = 0x1b;
        assert!(starts(&header, 0x2000).is_empty());
    }
}
