//! The door to the terminal: all text that the program prints goes through [`print_text`] or [`print_message`].
//!
//! Names of files, jobs and disks, and sentences of clients and servers come from others. Here each character that
//! controls a terminal or reorders a line is written as its number: `\u001b`. In JSON that is the same string, so one
//! door serves documents, too. Colours of the program's own pages pass if the stream is a terminal with colours;
//! pages remove those of others before ([`clean`](crate::clean)).
//!
//! Limit: files, which a terminal may show later, are written without it.

use crate::text::controls_terminal;
use std::borrow::Cow;
use std::fmt::{Arguments, Write as _};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

/// Writes a message to standard error through [`print_message`]; the arguments are those of [`format!`].
#[macro_export]
macro_rules! message {
    ($($words:tt)*) => { $crate::print_message(::core::format_args!($($words)*)) };
}

/// Writes text to standard output. A closed pipe (`| head`) is no error.
///
/// # Errors
/// The kernel's.
pub fn print_text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let text = escaped(text, has_colors(&out));
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Writes a message to standard error, and a line feed if it does not end with one; or to the log of [`log_messages`]. A failure is ignored: there
/// is no other stream to report it on.
pub fn print_message(words: Arguments<'_>) {
    let mut text = words.to_string();
    if IS_LOGGED.load(Relaxed)
        && let Some((log, prefix)) = LOG.get()
    {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let _ = (&*log).write_all(record(prefix, line).as_bytes());
        }
        return;
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let mut out = io::stderr().lock();
    let text = escaped(&text, has_colors(&out));
    let _ = out.write_all(text.as_bytes());
}

/// The log of a process without a terminal, and what each of its lines begins with.
static LOG: OnceLock<(File, String)> = OnceLock::new();
/// Whether messages go to [`LOG`].
static IS_LOGGED: AtomicBool = AtomicBool::new(false);

/// Names the file to which [`log_messages`] will write, one line at a time. The first call counts.
pub fn prepare_log(file: File, prefix: &str) {
    let _ = LOG.set((file, prefix.to_owned()));
}

/// Sends messages to the log of [`prepare_log`] from now on, in all threads.
pub fn log_messages() {
    IS_LOGGED.store(true, Relaxed);
}

/// A line of a log. The kernel's log takes lines of less than 1 KiB, each in one write.
fn record(prefix: &str, line: &str) -> String {
    const LONGEST: usize = 900;
    let mut line = escaped(line, false).into_owned();
    if line.len() > LONGEST {
        line.truncate((0..=LONGEST).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0));
        line.push('…');
    }
    format!("{prefix}{line}\n")
}

/// When text has colours (`--color`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set or the terminal is `dumb`.
    #[default]
    Auto,
    /// Always, in a pipe or file, too.
    Always,
    /// Never.
    Never,
}

/// The [`Color`] of this process, as a number: pages and messages are printed from many places.
static COLOR: AtomicU8 = AtomicU8::new(0);

/// Sets when text has colours, for the rest of the process.
pub fn set_color(color: Color) {
    COLOR.store(color as u8, Relaxed);
}

/// Returns true if text on a stream has colours.
pub fn has_colors(stream: &impl IsTerminal) -> bool {
    const ALWAYS: u8 = Color::Always as u8;
    const NEVER: u8 = Color::Never as u8;
    match COLOR.load(Relaxed) {
        ALWAYS => true,
        NEVER => false,
        _ => stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && !is_dumb(),
    }
}

/// Returns true if the terminal can neither colour nor move its cursor (`TERM=dumb`).
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|name| name == "dumb")
}

/// Writes each character that controls a terminal, but line feeds and tabs, as its number: `\u009b`. Colours
/// (`ESC [ 31 m`) stay if `has_colors`.
pub fn escaped(text: &str, has_colors: bool) -> Cow<'_, str> {
    if first_bad(text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(at) = first_bad(rest) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match color_at(rest) {
            Some(length) if has_colors => {
                out.push_str(&rest[..length]);
                length
            }
            _ => {
                let bad = rest.chars().next().expect("it was found");
                // Writing to a String cannot fail. Each of them has at most four digits.
                let _ = write!(out, "\\u{:04x}", u32::from(bad));
                bad.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Length of the pieces in which text is examined: a word of the processor.
const PIECE: usize = 8;

/// Returns where the first character is that must not be printed as it is.
fn first_bad(text: &str) -> Option<usize> {
    let (pieces, _) = text.as_bytes().as_chunks::<PIECE>();
    let mut next = 0;
    while next * PIECE < text.len() {
        next += pieces[next..].iter().take_while(|piece| is_plain(piece)).count();
        let start = next * PIECE;
        next += 1;
        let end = text.ceil_char_boundary((start + PIECE).min(text.len()));
        let start = text.floor_char_boundary(start);
        let is_bad = |c: char| controls_terminal(c) && !matches!(c, '\n' | '\t');
        if let Some(at) = text[start..end].find(is_bad) {
            return Some(start + at);
        }
    }
    None
}

/// Returns true if a piece is printable ASCII and line feeds, as nearly every piece of a document is. All bytes are examined at
/// once: the highest bit of each tells the outcome, and no sum carries into the next byte.
fn is_plain(piece: &[u8; PIECE]) -> bool {
    const fn each(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; PIECE])
    }
    let word = u64::from_ne_bytes(*piece);
    let low = word & const { each(0x7f) };
    let is_printable = low.wrapping_add(const { each(0x80 - b' ') });
    let is_no_line_feed = (low ^ const { each(b'\n') }).wrapping_add(const { each(0x7f) });
    let is_delete = low.wrapping_add(const { each(1) });
    (word | is_delete | (!is_printable & is_no_line_feed)) & const { each(0x80) } == 0
}

/// Returns the length of a sequence that sets colours, if the text begins with one.
fn color_at(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let length = numbers.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    numbers[length..].starts_with('m').then_some(length + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: nothing but text, line feeds and tabs passes: neither C0 and C1 controls nor marks that reorder a line.
    #[test]
    fn characters_that_control_a_terminal_are_written_as_numbers() {
        let all: String = ('\0'..='\u{ffff}').filter(|c| controls_terminal(*c)).collect();
        assert!(["\u{1b}", "\u{9b}", "\u{7f}", "\u{202e}", "\u{2066}", "\u{200f}"].iter().all(|c| all.contains(*c)));
        let shown = escaped(&all, true).into_owned();
        assert!(shown.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t')), "{shown:?}");
        assert!(shown.is_ascii(), "{shown:?}");
        assert_eq!(
            escaped("a\u{1b}]0;x\u{7}b\u{9b}2J\u{202e}\r\n", true),
            "a\\u001b]0;x\\u0007b\\u009b2J\\u202e\\u000d\n"
        );
        assert!(matches!(escaped("größe\t1\n", false), Cow::Borrowed(_)));
    }

    #[test]
    fn a_line_of_a_log_is_one_short_line_without_controls() {
        assert_eq!(record("<4>trueio: ", "a\u{1b}[31mb"), "<4>trueio: a\\u001b[31mb\n");
        let long = record("p: ", &"ö".repeat(2000));
        assert!(long.len() < 960 && long.ends_with("ö…\n"), "{}", long.len());
    }

    /// Goal: pieces hide nothing: a bad character is found at every offset, also where it or its neighbour crosses a border.
    #[test]
    fn a_bad_character_is_found_at_every_offset() {
        for offset in 0..40 {
            for bad in ["\u{7}", "\u{7f}", "\u{9b}", "\u{202e}"] {
                for filler in ["x", "\n", "µ", "€"] {
                    let text = format!("{}{bad}{}", filler.repeat(offset), filler.repeat(30));
                    assert_eq!(first_bad(&text), Some(offset * filler.len()), "{text:?}");
                    assert_eq!(first_bad(&text.replace(bad, "")), None);
                }
            }
        }
    }

    #[test]
    fn a_piece_is_plain_if_each_of_its_bytes_is() {
        for byte in 0..=u8::MAX {
            let is_plain_byte = byte == b'\n' || (b' '..=b'~').contains(&byte);
            for at in 0..PIECE {
                for other in [b' ', b'~', b'\n'] {
                    let mut piece = [other; PIECE];
                    piece[at] = byte;
                    assert_eq!(is_plain(&piece), is_plain_byte, "{piece:?}");
                }
            }
        }
    }

    #[test]
    fn only_colors_pass_on_a_terminal_and_none_in_a_pipe() {
        let text = "\u{1b}[1;31mred\u{1b}[0m\u{1b}[2J\u{1b}[31";
        assert_eq!(escaped(text, true), "\u{1b}[1;31mred\u{1b}[0m\\u001b[2J\\u001b[31");
        assert_eq!(escaped(text, false), "\\u001b[1;31mred\\u001b[0m\\u001b[2J\\u001b[31");
    }

    #[test]
    fn a_document_holds_the_same_string() {
        let text = "a\u{1b}[31m\u{9b}\u{7f}\u{202e}\n\"b";
        let document = serde_json::to_string(text).expect("JSON");
        let read: String = serde_json::from_str(&escaped(&document, false)).expect("JSON");
        assert_eq!(read, text);
    }
}
