//! Parses entry and return of system calls from the kernel's ring buffers.
//!
//! Source: Linux `include/trace/events/syscalls.h` (`raw_syscalls:sys_enter`, `sys_exit`) and the format
//! files of the running kernel.

use crate::trace::format::{Field, PageFormat, id_of};

/// Both events, below `events` of tracefs.
pub(super) const EVENTS: [&str; 2] = ["raw_syscalls/sys_enter", "raw_syscalls/sys_exit"];

/// An entry or a return of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub(super) at_ns: u64,
    pub(super) thread: i32,
    /// Number of the call.
    pub(super) number: i64,
    pub(super) what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The call was entered with these arguments.
    Enter([u64; 6]),
    /// The call returned this value.
    Exit(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EventFormat {
    id: u64,
    kind: Field,
    thread: Field,
    number: Field,
    last: Field,
}

impl EventFormat {
    fn parse(text: &str, last: &str) -> Result<Self, String> {
        Ok(Self {
            id: id_of(text)?,
            kind: Field::of(text, "common_type")?,
            thread: Field::of(text, "common_pid")?,
            number: Field::of(text, "id")?,
            last: Field::of(text, last)?,
        })
    }
}

/// The formats needed to parse a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Formats {
    page: PageFormat,
    enter: EventFormat,
    exit: EventFormat,
}

impl Formats {
    /// Parses the format files of both events.
    ///
    /// # Errors
    /// A sentence that names the missing field.
    pub(super) fn new(page: PageFormat, [enter, exit]: &[String; 2]) -> Result<Self, String> {
        Ok(Self { page, enter: EventFormat::parse(enter, "args")?, exit: EventFormat::parse(exit, "ret")? })
    }

    fn event(&self, at_ns: u64, data: &[u8]) -> Option<Event> {
        let kind = self.enter.kind.number(data)?;
        let (format, what) = if kind == self.enter.id {
            let mut arguments = [0; 6];
            let bytes = self.enter.last.bytes(data)?;
            let word = bytes.len() / arguments.len();
            for (argument, bytes) in arguments.iter_mut().zip(bytes.chunks_exact(word.max(1))) {
                *argument = match *bytes {
                    [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
                    _ => u64::from_ne_bytes(bytes.try_into().ok()?),
                };
            }
            (&self.enter, What::Enter(arguments))
        } else if kind == self.exit.id {
            (&self.exit, What::Exit(self.exit.last.number(data)? as i64))
        } else {
            return None;
        };
        let thread = format.thread.number(data)? as i32;
        Some(Event { at_ns, thread, number: format.number.number(data)? as i64, what })
    }

    /// Calls `event` for each event of a page, oldest first.
    pub(super) fn read_page(&self, page: &[u8], mut event: impl FnMut(Event)) {
        self.page.read(page, |at_ns, fields| self.event(at_ns, fields).into_iter().for_each(&mut event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From Linux 6.18 (x86-64), without the two common fields that are not read.
    const ENTER: &str = "name: sys_enter\nID: 418\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n";
    const EXIT: &str = "name: sys_exit\nID: 417\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n";

    fn formats(enter: &str) -> Result<Formats, String> {
        let page = PageFormat::parse(include_str!("../../tests/ring/header_page")).expect("a page's head");
        Formats::new(page, &[enter.to_owned(), EXIT.to_owned()])
    }

    fn fields(id: u16, last: &[u64]) -> Vec<u8> {
        let mut data = [&id.to_ne_bytes()[..], &[0; 2], &77i32.to_ne_bytes(), &18i64.to_ne_bytes()].concat();
        last.iter().for_each(|word| data.extend(word.to_ne_bytes()));
        data
    }

    #[test]
    fn entry_and_return_are_parsed_by_the_format_files() {
        let formats = formats(ENTER).expect("two events");
        let arguments = [3, 0x7fff_0000_0000, 4096, 8192, 0, u64::MAX];
        let enter = Event { at_ns: 5, thread: 77, number: 18, what: What::Enter(arguments) };
        assert_eq!(formats.event(5, &fields(418, &arguments)), Some(enter));
        let exit = Event { what: What::Exit(-22), ..enter };
        assert_eq!(formats.event(5, &fields(417, &[(-22i64) as u64])), Some(exit));
        assert_eq!(formats.event(5, &fields(419, &[0])), None, "another event");
        assert_eq!(formats.event(5, &fields(418, &arguments[..5])), None, "cut off");
    }

    #[test]
    fn a_missing_field_is_reported_by_name() {
        assert!(formats(&ENTER.replace("args[6]", "words[6]")).expect_err("no args").contains("`args`"));
    }
}
