//! Reads the header of an `.npy` file: checks it, then lets `npyz` parse it.
//!
//! A header is untrusted input, and `npyz` 0.9 trusts it: it allocates the length that the header
//! claims, follows its brackets by recursion, in time exponential in their depth, and multiplies
//! the shape unchecked.

use npyz::NpyHeader;
use std::io::{self, Read};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Max bytes of header text. That of a plain array takes 118.
const MAX_TEXT: usize = 4096;
/// Max nesting of brackets. A plain array has 2, a structure in a structure 6; that takes up to 0.2
/// s unoptimised.
const MAX_DEPTH: usize = 6;
/// Max digits of all numbers together. Their product and their sum are then at most 10^19 < 2^64.
const MAX_DIGITS: usize = 19;

/// Reads the header, returns it with its length in bytes, and leaves `input` at the first byte of
/// data.
///
/// The errors `InvalidData` and `UnexpectedEof` mean a bad file.
pub(super) fn read(input: &mut impl Read) -> io::Result<(NpyHeader, u64)> {
    let mut block = vec![0; 8];
    input.read_exact(&mut block)?;
    if !block.starts_with(MAGIC) {
        return Err(bad("it does not start with the .npy magic"));
    }
    let before = match (block[6], block[7]) {
        (1, 0) => 10,
        (2 | 3, 0) => 12,
        (major, minor) => return Err(bad(format!("version {major}.{minor} is not supported"))),
    };
    block.resize(before, 0);
    input.read_exact(&mut block[8..])?;
    let little_endian = block[8..].iter().rev();
    let length = little_endian.fold(0, |length, &byte| (length << 8) | usize::from(byte));
    if length > MAX_TEXT {
        return Err(bad(format!(
            "its header claims {length} bytes, more than {MAX_TEXT}"
        )));
    }
    block.resize(before + length, 0);
    input.read_exact(&mut block[before..])?;
    guard(&mut block[before..])?;
    // The parser's own message has several lines.
    let header = NpyHeader::from_reader(block.as_slice()).map_err(|_| malformed())?;
    Ok((header, block.len() as u64))
}

/// Rejects texts that the parser cannot handle safely.
///
/// Outside quotes it allows only the letters of `True` and `False`, which excludes hexadecimal
/// numbers, whose digits count for more.
fn guard(text: &mut [u8]) -> io::Result<()> {
    let (mut quote, mut depth, mut digits) = (None, 0_usize, 0);
    for byte in text {
        match (quote, *byte) {
            (_, b'\\') => return Err(malformed()),
            (Some(open), byte) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(*byte),
            (None, b'{' | b'[' | b'(') => depth += 1,
            (None, b'}' | b']' | b')') => depth = depth.saturating_sub(1),
            (None, b'0'..=b'9') => digits += 1,
            // Python 2 wrote a side as `3L`.
            (None, b'L') => *byte = b' ',
            (None, _) if b" \n,:TrueFals".contains(byte) => {}
            (None, _) => return Err(malformed()),
        }
        if depth > MAX_DEPTH {
            return Err(malformed());
        }
    }
    if digits > MAX_DIGITS {
        return Err(bad(format!(
            "its shape has {digits} digits, so it may have more than 2^64 elements"
        )));
    }
    Ok(())
}

fn bad(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

fn malformed() -> io::Error {
    bad("its header is malformed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use npyz::Order::{self, C, Fortran};

    fn parse(text: &str) -> Result<(String, Order, Vec<u64>), String> {
        let mut block = b"\x93NUMPY\x01\x00".to_vec();
        block.extend((text.len() as u16).to_le_bytes());
        block.extend(text.as_bytes());
        let (header, length) = read(&mut block.as_slice()).map_err(|e| e.to_string())?;
        assert_eq!(length, block.len() as u64);
        let (descr, shape) = (super::super::descr(&header), header.shape().to_vec());
        Ok((descr, header.order(), shape))
    }

    #[test]
    fn headers_of_numpy_parse_in_any_order_and_spacing() {
        let parsed = parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 6), }  \n");
        assert_eq!(parsed, Ok(("<f4".into(), C, vec![3, 6])));
        let parsed = parse("{\"shape\":(7L,),\"fortran_order\":True,\"descr\":\">i8\"}");
        assert_eq!(parsed, Ok((">i8".into(), Fortran, vec![7])));
        let parsed = parse(
            "{'descr': [('a]', '<f4'), ('b', [('c', '<i4', (2, ))])], 'fortran_order': False, 'shape': ()}",
        );
        let structured = "[('a]', '<f4'), ('b', [('c', '<i4', (2,))])]";
        assert_eq!(parsed, Ok((structured.into(), C, vec![])));
    }

    #[test]
    fn anything_else_is_rejected_in_one_line_without_a_panic() {
        let plain =
            |shape: &str| format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
        assert!(parse(&plain("(9999999999999, 999, 999)")).is_ok());
        let nested = |open: &str, depth| format!("{{'descr': {}", open.repeat(depth));
        for text in [
            "",
            "{",
            "{}",
            "{'descr': '<f4'}",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
            "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}",
            "{'é",
            "{'descr': [']",
            &plain("(1,)} x"),
            &plain("(-1,)"),
            &plain("(1, , 2)"),
            &plain("(1.5,)"),
            &plain("(0xffffffffffffffff, 0xffffffffffffffff)"),
            &plain("('\\', 9999999999999999999, 9999999999999999999, '\\')"),
            &plain("'''a'b''', 'shape': (9999999999999999999, 9999999999999999999), 'c': '"),
            &plain("(18446744073709551616,)"),
            &plain("(0, 99999999999, 99999999999)"),
            &plain(&"9".repeat(4000)),
            &nested("[", 4000),
            &nested("['])', ", 500),
            &nested("{", MAX_DEPTH - 1),
        ] {
            let refused = parse(text).expect_err(text);
            let known = ["its header is malformed", "more than 2^64 elements"];
            assert!(known.iter().any(|end| refused.ends_with(end)), "{refused}");
            assert_eq!(refused.lines().count(), 1, "{refused}");
        }
    }

    #[test]
    fn a_header_that_claims_gigabytes_is_rejected_before_it_is_read() {
        let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
        bytes.extend(u32::MAX.to_le_bytes());
        let message = read(&mut bytes.as_slice()).map(drop);
        let expected = "its header claims 4294967295 bytes, more than 4096";
        assert_eq!(message.expect_err("refused").to_string(), expected);
    }

    /// The parser's time is exponential in the depth: one more level takes up to three times as
    /// long.
    #[test]
    fn the_deepest_allowed_nesting_is_fast() {
        for (open, close) in [("{", "}"), ("{'':", "}"), ("[", "]"), ("(", ",)")] {
            for inside in [format!("'{}'", "a".repeat(3900)), "'',".repeat(1300)] {
                let (open, close) = (open.repeat(MAX_DEPTH), close.repeat(MAX_DEPTH));
                let start = std::time::Instant::now();
                assert!(parse(&format!("{open}{inside}{close}")).is_err());
                let took = start.elapsed();
                assert!(took.as_secs() < 5, "{open}: {took:?}");
            }
        }
    }
}
