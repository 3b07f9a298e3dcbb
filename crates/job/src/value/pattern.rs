//! Bytes as fio writes them: what `buffer_pattern` repeats.
//!
//! Pieces follow one another without separators. `0x` and digits are bytes in the order written (an odd
//! number of digits gives the first byte one digit); text in double quotes is itself, without escapes; a
//! decimal number is its bytes, the lowest first, as many as it needs, and four if it is negative.
//!
//! In the pattern of a verified block `%o` stands for the block's offset, eight bytes with the lowest first.
//!
//! Text in single quotes names a file, which is replaced by its content. The planner reads no files, so that is refused here;
//! the reader of fio's language puts the bytes in its place ([`with_files`]).
//!
//! Source: fio(1), `buffer_pattern`, and the examples in fio's `lib/pattern.c`.

use std::fmt::Write as _;
use trueio_model::BlockPattern;

/// The longest pattern, in bytes.
const BYTES_MAX: usize = 16_384;

/// Gives the content of a file by its name, and by how many bytes there is room for.
type FileContent<'a> = dyn FnMut(&str, usize) -> Result<Vec<u8>, String> + 'a;

/// Reads a pattern without the block's offset.
pub(super) fn read(text: &str) -> Result<Vec<u8>, String> {
    let pattern = read_block(text)?;
    if !pattern.offset_places.is_empty() {
        return Err("`%o`, the block's offset, is allowed only in patterns that are verified".to_owned());
    }
    Ok(pattern.bytes)
}

/// Parses a pattern, which may contain the block's offset.
pub(super) fn read_block(text: &str) -> Result<BlockPattern, String> {
    let not_here = "the content of a file (`'name'`) is a pattern only in fio's job files and command lines";
    read_pieces(text, &mut |_, _| Err(not_here.to_owned()))
}

/// Returns the canonical text of a pattern that may name files (`'name'`), whose bytes `content` returns.
///
/// # Errors
/// Why the text is no pattern, or what `content` reported.
pub fn with_files(text: &str, content: &mut FileContent) -> Result<String, String> {
    read_pieces(text, content).map(|pattern| write_block(&pattern))
}

fn read_pieces(text: &str, content: &mut FileContent) -> Result<BlockPattern, String> {
    let mut rest = text.trim();
    let (mut bytes, mut offset_places) = (Vec::new(), Vec::new());
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '"' => quoted(&rest[1..], &mut bytes).map(|length| length + 2)?,
            '\'' => {
                let end = rest[1..].find('\'').ok_or("the file's name has no closing `'`")?;
                let room = BYTES_MAX.saturating_sub(bytes.len());
                bytes.extend_from_slice(&content(&rest[1..=end], room)?);
                end + 2
            }
            '%' if rest.starts_with("%o") => {
                offset_places.push(bytes.len() as u32);
                bytes.extend_from_slice(&[0; 8]);
                2
            }
            '%' => return Err("only `o`, the block's offset, may follow `%`".to_owned()),
            _ if rest.len() >= 2 && rest.as_bytes()[..2].eq_ignore_ascii_case(b"0x") => {
                hexadecimal(&rest[2..], &mut bytes).map(|length| length + 2)?
            }
            _ => decimal(rest, &mut bytes)?,
        };
        rest = &rest[taken..];
        if bytes.len() > BYTES_MAX {
            return Err(format!("a pattern has at most {BYTES_MAX} bytes"));
        }
    }
    if bytes.is_empty() {
        return Err("a pattern needs at least one byte, such as `0xff`".to_owned());
    }
    Ok(BlockPattern { bytes, offset_places })
}

/// Returns the canonical text of a pattern that may contain the block's offset.
pub(super) fn write_block(pattern: &BlockPattern) -> String {
    let (mut text, mut from) = (String::new(), 0);
    for place in pattern.offset_places.iter().map(|place| *place as usize) {
        if place > from {
            text.push_str(&write(&pattern.bytes[from..place]));
        }
        text.push_str("%o");
        from = place + 8;
    }
    if from < pattern.bytes.len() {
        text.push_str(&write(&pattern.bytes[from..]));
    }
    text
}

/// The canonical text: all bytes in hexadecimal digits.
pub(super) fn write(bytes: &[u8]) -> String {
    let mut text = String::from("0x");
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Text up to a closing quote; its length in bytes.
fn quoted(text: &str, bytes: &mut Vec<u8>) -> Result<usize, String> {
    let end = text.find('"').ok_or("the text has no closing `\"`")?;
    bytes.extend_from_slice(&text.as_bytes()[..end]);
    Ok(end)
}

/// Hexadecimal digits; how many there were.
fn hexadecimal(text: &str, bytes: &mut Vec<u8>) -> Result<usize, String> {
    let mut count = text.bytes().take_while(u8::is_ascii_hexdigit).count();
    // In `0xff0x14` the second 0 begins the next piece.
    if text.as_bytes().get(count).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'x')) && text[..count].ends_with('0') {
        count -= 1;
    }
    if count == 0 {
        return Err("hexadecimal digits must follow `0x`".to_owned());
    }
    let digit = |at: usize| (text.as_bytes()[at] as char).to_digit(16).map_or(0, |digit| digit as u8);
    let mut at = 0;
    if count % 2 == 1 {
        bytes.push(digit(0));
        at = 1;
    }
    while at < count {
        bytes.push(digit(at) << 4 | digit(at + 1));
        at += 2;
    }
    Ok(count)
}

/// A decimal number; its length in characters.
fn decimal(text: &str, bytes: &mut Vec<u8>) -> Result<usize, String> {
    let sign = usize::from(text.starts_with(['-', '+']));
    let mut end = sign + text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    // In `-100xab` the digits of the number end before `0x`.
    if text.as_bytes().get(end).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'x')) && text[..end].ends_with('0') {
        end -= 1;
    }
    let number: i32 = text[..end].parse().map_err(|_| {
        let shown: String = text.chars().take(20).collect();
        format!("`{shown}` is neither `0x…`, nor \"text\", nor a number of 32 bits")
    })?;
    let all = number.to_le_bytes();
    let used = all.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    bytes.extend_from_slice(&all[..used]);
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_the_bytes_that_fio_makes_of_them() {
        let cases: [(&str, &[u8]); 12] = [
            ("\"abcd\"", b"abcd"),
            ("-1024", &[0x00, 0xfc, 0xff, 0xff]),
            ("66", &[0x42]),
            ("0", &[0]),
            ("256", &[0, 1]),
            ("0xFF0X1", &[0xff, 0x01]),
            ("\"123\"0xFFeeCC", &[0x31, 0x32, 0x33, 0xff, 0xee, 0xcc]),
            ("-100xab\"1\"", &[0xf6, 0xff, 0xff, 0xff, 0xab, 0x31]),
            ("0xdeadface", &[0xde, 0xad, 0xfa, 0xce]),
            ("0xfff", &[0x0f, 0xff]),
            ("0x58", b"X"),
            ("\"\"7", &[7]),
        ];
        for (text, bytes) in cases {
            assert_eq!(read(text).as_deref(), Ok(bytes), "{text}");
            assert_eq!(read(&write(bytes)).as_deref(), Ok(bytes), "{text}: its canonical text");
        }
    }

    #[test]
    fn the_blocks_offset_replaces_its_placeholder() {
        let pattern = read_block("%o0xdeadbeef%o").unwrap();
        assert_eq!(pattern.offset_places, [0, 12]);
        assert_eq!(pattern.bytes, [&[0; 8][..], &[0xde, 0xad, 0xbe, 0xef], &[0; 8]].concat());
        for text in ["%o0xdeadbeef%o", "%o", "0xab%o", "%o%o0x01"] {
            assert_eq!(write_block(&read_block(text).unwrap()), text);
        }
        assert!(read("%o").is_err());
    }

    /// Goal: the name of a file is replaced by its bytes, and a quote within text does not begin the name of a file.
    #[test]
    fn a_files_bytes_replace_its_name() {
        let of = |text| {
            with_files(text, &mut |name, room| match name {
                "a b" => Ok(vec![1, 2]),
                "big" => Ok(vec![7; room]),
                "none" => Ok(Vec::new()),
                _ => Err(format!("no `{name}`")),
            })
        };
        assert_eq!(of("0xff'a b'\"it's\"'none''a b'").as_deref(), Ok("0xff0102697427730102"));
        assert_eq!(of("%o'a b'").as_deref(), Ok("%o0x0102"));
        assert_eq!(read(&of("0xff'big'").unwrap()).map(|bytes| bytes.len()), Ok(BYTES_MAX));
        assert_eq!(of("'other'"), Err("no `other`".to_owned()));
        assert!(of("'none'").is_err() && of("'a b").is_err() && of("'big'0xff").is_err());
    }

    #[test]
    fn an_invalid_pattern_is_refused_with_its_reason() {
        for text in ["", "\"\"", "\"abc", "0x", "0xg", "99999999999", "abc", "'/etc/passwd'", "%o", "-", "é"] {
            assert!(read(text).is_err_and(|reason| reason.len() > 20), "{text}");
        }
        assert!(read(&format!("0x{}", "ab".repeat(BYTES_MAX))).is_ok());
        assert!(read(&format!("0x{}", "ab".repeat(BYTES_MAX + 1))).is_err());
    }
}
