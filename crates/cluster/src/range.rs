//! Numbers and texts with ranges: a message of another rank with a value outside of its range is rejected.
//!
//! A rank with the token may still run another build, or a damaged program, or be under an attacker's control. So each value with which rank 0
//! computes, and each size, time and text from a rank, has a type with a safe range. The range is checked where the message is parsed.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;

/// A value of a message that is outside of its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {found}, and must be {range}")]
pub struct OutOfRange {
    /// The value's name.
    pub what: &'static str,
    /// What was sent.
    pub found: String,
    /// The range.
    pub range: String,
}

impl OutOfRange {
    pub(crate) fn new(what: &'static str, found: impl fmt::Display, range: impl fmt::Display) -> Self {
        Self { what, found: cut(&found.to_string()), range: range.to_string() }
    }
}

/// Longest part of a text of a peer that a message repeats, in characters.
pub const ECHO_CHARS_MAX: usize = 200;

/// Returns the beginning of a text that a peer sent, for a message, in one line.
pub fn cut(text: &str) -> String {
    // A line feed would begin a line of the peer's.
    let in_one_line = |text: &str| text.replace(char::is_control, "\u{fffd}");
    match text.char_indices().nth(ECHO_CHARS_MAX) {
        Some((end, _)) => format!("{}…", in_one_line(&text[..end])),
        None => in_one_line(text),
    }
}

/// Checks that a number is at most `most`.
///
/// # Errors
/// It is larger.
pub(crate) fn at_most(what: &'static str, found: u64, most: u64) -> Result<(), OutOfRange> {
    if found <= most { Ok(()) } else { Err(OutOfRange::new(what, found, format_args!("at most {most}"))) }
}

/// Checks that a number is in ±`most`.
///
/// # Errors
/// It is outside.
pub(crate) fn within(what: &'static str, found: i64, most: i64) -> Result<(), OutOfRange> {
    if (-most..=most).contains(&found) {
        Ok(())
    } else {
        Err(OutOfRange::new(what, found, format_args!("between -{most} and {most}")))
    }
}

/// Checks that a text has at most `most` bytes.
///
/// # Errors
/// It is longer.
pub(crate) fn short(what: &'static str, text: &str, most: usize) -> Result<(), OutOfRange> {
    if text.len() <= most {
        Ok(())
    } else {
        Err(OutOfRange::new(what, format_args!("{} bytes long", text.len()), format_args!("at most {most}")))
    }
}

/// A number from 0 to `MAX`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub(crate) struct UpTo<const MAX: u64>(u64);

impl<const MAX: u64> UpTo<MAX> {
    /// Returns the number, or the largest one.
    pub(crate) fn clamped(number: u64) -> Self {
        Self(number.min(MAX))
    }

    pub(crate) fn get(self) -> u64 {
        self.0
    }
}

impl<const MAX: u64> TryFrom<u64> for UpTo<MAX> {
    type Error = OutOfRange;

    fn try_from(number: u64) -> Result<Self, OutOfRange> {
        at_most("a number", number, MAX).map(|()| Self(number))
    }
}

impl<const MAX: u64> From<UpTo<MAX>> for u64 {
    fn from(number: UpTo<MAX>) -> u64 {
        number.0
    }
}

/// A text of at most `MAX` bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Text<const MAX: usize>(String);

impl<const MAX: usize> Text<MAX> {
    /// Returns the text, or its beginning.
    pub(crate) fn cut(text: &str) -> Self {
        Self(text[..text.floor_char_boundary(MAX)].to_owned())
    }
}

impl<const MAX: usize> TryFrom<String> for Text<MAX> {
    type Error = OutOfRange;

    fn try_from(text: String) -> Result<Self, OutOfRange> {
        short("a text", &text, MAX).map(|()| Self(text))
    }
}

impl<const MAX: usize> From<Text<MAX>> for String {
    fn from(text: Text<MAX>) -> String {
        text.0
    }
}

impl<const MAX: usize> Deref for Text<MAX> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const MAX: usize> fmt::Display for Text<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_outside_of_their_range_are_not_read_and_named() {
        assert_eq!(serde_json::from_str::<UpTo<7>>("7").expect("in range").get(), 7);
        let error = serde_json::from_str::<UpTo<7>>("8").expect_err("beyond it").to_string();
        assert!(error.starts_with("a number is 8, and must be at most 7"), "{error}");
        assert_eq!(&*serde_json::from_str::<Text<3>>("\"abc\"").expect("in range"), "abc");
        assert!(serde_json::from_str::<Text<3>>("\"abcd\"").is_err());
        assert_eq!(&*Text::<4>::cut("aäöü"), "aä", "no half of a character");
        assert!(within("t", i64::MIN, 5).is_err() && within("t", -5, 5).is_ok());
    }

    #[test]
    fn a_text_of_a_peer_is_cut_in_messages() {
        assert_eq!(cut("short"), "short");
        let long = "ä".repeat(5_000);
        assert_eq!(cut(&long).chars().count(), ECHO_CHARS_MAX + 1);
        assert!(OutOfRange::new("x", &long, "short").to_string().len() < 500);
    }
}
