//! Reads and writes the header of an `.npy` file: the literal of a Python dict, which is rewritten
//! as JSON and parsed as that.
//!
//! A header is untrusted input: it may claim any length, nest brackets, or have a shape whose
//! product does not fit.

use serde_json::Value;
use std::io::{self, Read};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Max bytes of header text. That of a plain array takes 118.
const MAX_TEXT: usize = 4096;

/// What a header says of its array.
#[derive(Debug)]
pub(super) struct Header {
    /// The type in NumPy's notation.
    pub descr: String,
    /// Whether the first index varies fastest in the data.
    pub fortran_order: bool,
    pub shape: Vec<u64>,
    /// The number of elements, the product of the shape.
    pub len: u64,
}

/// Reads the header, returns it with its length in bytes, and leaves `input` at the first byte of
/// data.
///
/// The errors `InvalidData` and `UnexpectedEof` mean a bad file.
pub(super) fn read(input: &mut impl Read) -> io::Result<(Header, u64)> {
    let mut block = Vec::new();
    input.by_ref().take(8).read_to_end(&mut block)?;
    if !block.starts_with(&MAGIC[..block.len().min(MAGIC.len())]) {
        return Err(bad("it does not start with the .npy magic"));
    }
    if block.len() < 8 {
        return Err(io::ErrorKind::UnexpectedEof.into());
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
    let text = String::from_utf8_lossy(&block[before..]);
    let (descr, fortran_order, shape) =
        parse(&text).ok_or_else(|| bad("its header is malformed"))?;
    // Where a side is 0, the others must fit as well.
    let sides = shape.iter().map(|&side| side.max(1));
    let most = sides.clone().try_fold(1_u64, u64::checked_mul);
    let most = most.ok_or_else(|| bad("its shape has more than 2^64 elements"))?;
    let header = Header {
        descr,
        fortran_order,
        len: if shape.contains(&0) { 0 } else { most },
        shape,
    };
    Ok((header, block.len() as u64))
}

/// Returns the header that NumPy writes for an array in C order; `None` for a shape of thousands of
/// sides.
pub(super) fn block(descr: &str, shape: &[u64]) -> Option<Vec<u8>> {
    let shape = tuple(shape);
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // The data starts at a multiple of 64 bytes, after 10 bytes, the text and a line break.
    let length = u16::try_from((dict.len() + 11).next_multiple_of(64) - 10).ok()?;
    let width = usize::from(length) - 1;
    let text = format!("{dict:<width$}\n");
    Some([MAGIC, &[1, 0][..], &length.to_le_bytes(), text.as_bytes()].concat())
}

/// Formats a shape as Python does.
pub(super) fn tuple(shape: &[u64]) -> String {
    let sides: Vec<_> = shape.iter().map(u64::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    format!("({}{comma})", sides.join(", "))
}

/// Parses a header's dict, which has exactly three entries.
fn parse(text: &str) -> Option<(String, bool, Vec<u64>)> {
    let dict: Value = serde_json::from_str(&json(text)?).ok()?;
    let dict = dict.as_object().filter(|dict| dict.len() == 3)?;
    let descr = match dict.get("descr")? {
        Value::String(name) => name.clone(),
        fields @ Value::Array(_) => python(fields),
        _ => return None,
    };
    let sides = dict.get("shape")?.as_array()?.iter();
    let shape: Option<_> = sides.map(Value::as_u64).collect();
    Some((descr, dict.get("fortran_order")?.as_bool()?, shape?))
}

/// Rewrites the literal of a Python dict as JSON; tuples become lists. Returns `None` for an
/// escape, which no header has. What is no literal is no JSON either.
fn json(text: &str) -> Option<String> {
    let mut json = String::with_capacity(text.len());
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (_, '\\') => return None,
            (Some(open), c) if c == open => {
                quote = None;
                json.push('"');
            }
            (Some(_), '"') => json.push_str("\\\""),
            (None, '\'' | '"') => {
                quote = Some(c);
                json.push('"');
            }
            (None, '(') => json.push('['),
            (None, ')' | ']' | '}') => {
                // Python allows a comma after the last entry.
                if let Some(entries) = json.trim_end().strip_suffix(',')
                    && !entries.trim_end().ends_with(['[', '{', ','])
                {
                    json.truncate(entries.len());
                }
                json.push(if c == ')' { ']' } else { c });
            }
            (None, 'T' | 'F') => json.push(c.to_ascii_lowercase()), // True, False
            // Python 2 wrote a side as `3L`.
            (None, 'L') => json.push(' '),
            (_, c) => json.push(c),
        }
    }
    Some(json)
}

/// Formats the type of a structure as Python does: a list of fields, which are tuples of a name, a
/// type, and possibly a shape.
fn python(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{text}'"),
        Value::Array(all) => {
            let inner = all.iter().map(python).collect::<Vec<_>>().join(", ");
            match all.as_slice() {
                [Value::Array(_), ..] => format!("[{inner}]"),
                [_] => format!("({inner},)"),
                _ => format!("({inner})"),
            }
        }
        other => other.to_string(),
    }
}

fn bad(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(String, bool, Vec<u64>), String> {
        let mut block = b"\x93NUMPY\x01\x00".to_vec();
        block.extend((text.len() as u16).to_le_bytes());
        block.extend(text.as_bytes());
        let (header, length) = read(&mut block.as_slice()).map_err(|e| e.to_string())?;
        assert_eq!(length, block.len() as u64);
        Ok((header.descr, header.fortran_order, header.shape))
    }

    #[test]
    fn headers_of_numpy_parse_in_any_order_and_spacing() {
        let parsed = parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 6), }  \n");
        assert_eq!(parsed, Ok(("<f4".into(), false, vec![3, 6])));
        let parsed = parse("{\"shape\":(7L,),\"fortran_order\":True,\"descr\":\">i8\"}");
        assert_eq!(parsed, Ok((">i8".into(), true, vec![7])));
        let parsed = parse(
            "{'descr': [('a]', '<f4'), ('b', [('c', '<i4', (2, ))])], 'fortran_order': False, 'shape': ()}",
        );
        let structured = "[('a]', '<f4'), ('b', [('c', '<i4', (2,))])]";
        assert_eq!(parsed, Ok((structured.into(), false, vec![])));
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
            &plain("(,)"),
            &plain("3"),
            &plain("(1,), 'extra': 1"),
            &plain("(1.5,)"),
            &plain("(0xffffffffffffffff, 0xffffffffffffffff)"),
            &plain("('\\', 9999999999999999999, 9999999999999999999, '\\')"),
            &plain("'''a'b''', 'shape': (9999999999999999999, 9999999999999999999), 'c': '"),
            &plain("(18446744073709551616,)"),
            &plain("(0, 99999999999, 99999999999)"),
            &plain(&"9".repeat(4000)),
            &nested("[", 4000),
            &nested("['])', ", 500),
            &nested("{", 5),
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

    #[test]
    fn a_written_header_reads_back_at_a_multiple_of_64_bytes() {
        for shape in [&[][..], &[7], &[3, 6], &[u64::MAX], &[1; 400]] {
            let block = block("<u4", shape).expect("a header");
            assert_eq!(block.len() % 64, 0);
            let (header, length) = read(&mut block.as_slice()).expect("a header");
            assert_eq!(
                (header.shape.as_slice(), length),
                (shape, block.len() as u64)
            );
        }
        assert!(block("<u4", &[1; 1 << 16]).is_none());
    }
}
