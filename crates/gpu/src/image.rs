//! Checks of kernel images: their kind, and whether they are complete.

/// Copies a kernel image to the form that the driver takes: aligned, and ended by a zero, because
/// PTX is a C string.
///
/// The driver trusts the lengths in the header of a binary image. An image that is shorter than its
/// header says is therefore refused here.
///
/// # Errors
///
/// A message that says what is wrong with the image.
pub(crate) fn prepare(image: &[u8]) -> Result<Vec<u64>, String> {
    let stated = match image {
        [] => return Err("it is empty".to_owned()),
        [0x7f, b'E', b'L', b'F', ..] => elf_len(image),
        // The fat binary's magic number, 0xba55ed50.
        [0x50, 0xed, 0x55, 0xba, ..] => fatbin_len(image),
        text if text.strip_suffix(&[0]).unwrap_or(text).contains(&0) => {
            return Err(
                "it is no cubin and no fatbin, and no PTX either, because it contains zero bytes"
                    .to_owned(),
            );
        }
        _ => Some(0),
    };
    match stated {
        None => {
            return Err(format!(
                "its header is cut off or damaged ({} bytes)",
                image.len()
            ));
        }
        Some(stated) if stated > image.len() as u64 => {
            return Err(format!("it is cut off: {} bytes of {stated}", image.len()));
        }
        Some(_) => {}
    }
    let mut words = vec![0u64; image.len() / 8 + 1];
    bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..image.len()].copy_from_slice(image);
    Ok(words)
}

fn field<const N: usize>(image: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let mut value = [0; 8];
    value[..N].copy_from_slice(image.get(at..at.checked_add(N)?)?);
    Some(u64::from_le_bytes(value))
}

/// Returns the length of an ELF file (64-bit, little-endian): where the last of its tables,
/// sections and segments ends. `None` if a table lies outside the file.
fn elf_len(image: &[u8]) -> Option<u64> {
    const NO_BITS: u64 = 8;
    let (segments, sections) = (field::<8>(image, 0x20)?, field::<8>(image, 0x28)?);
    let (segment_size, segment_count) = (field::<2>(image, 0x36)?, field::<2>(image, 0x38)?);
    let (section_size, section_count) = (field::<2>(image, 0x3a)?, field::<2>(image, 0x3c)?);
    let mut end = segments.checked_add(segment_size * segment_count)?;
    end = end.max(sections.checked_add(section_size * section_count)?);
    for section in (0..section_count).map(|i| sections + i * section_size) {
        if field::<4>(image, section + 4)? != NO_BITS {
            end = end.max(
                field::<8>(image, section + 0x18)?
                    .checked_add(field::<8>(image, section + 0x20)?)?,
            );
        }
    }
    for segment in (0..segment_count).map(|i| segments + i * segment_size) {
        end = end
            .max(field::<8>(image, segment + 8)?.checked_add(field::<8>(image, segment + 0x20)?)?);
    }
    Some(end)
}

/// Returns the length of a fat binary: its header and the content after it.
fn fatbin_len(image: &[u8]) -> Option<u64> {
    field::<2>(image, 6)?.checked_add(field::<8>(image, 8)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_is_ended_by_a_zero() {
        for len in 1..20 {
            let text = vec![b'x'; len];
            let words = prepare(&text).unwrap();
            let bytes: &[u8] = bytemuck::cast_slice(&words);
            assert_eq!((&bytes[..len], bytes[len]), (&text[..], 0));
        }
        prepare(b".version 7.0\0").unwrap();
        assert!(prepare(b"a\0b").unwrap_err().contains("zero bytes"));
        assert!(prepare(b"").unwrap_err().contains("empty"));
    }

    #[test]
    fn a_cut_off_fatbin_is_refused() {
        let mut image = 0xba55_ed50_u32.to_le_bytes().to_vec();
        image.extend([1, 0, 16, 0]);
        image.extend(32u64.to_le_bytes());
        image.extend([0; 32]);
        prepare(&image).unwrap();
        for len in 4..image.len() {
            prepare(&image[..len]).unwrap_err();
        }
        image[8..16].fill(0xff);
        prepare(&image).unwrap_err();
    }

    /// Like a cubin, the test binary is an ELF file with sections and segments, and its section
    /// table is at the end.
    #[test]
    fn a_cut_off_elf_is_refused() {
        let mut image = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let whole = elf_len(&image).unwrap();
        assert!(whole <= image.len() as u64, "{whole} of {}", image.len());
        for len in [4, 63, 64, 1000, image.len() / 2, whole as usize - 1] {
            prepare(&image[..len]).unwrap_err();
        }
        image[0x28..0x30].fill(0xff);
        prepare(&image).unwrap_err();
    }
}
