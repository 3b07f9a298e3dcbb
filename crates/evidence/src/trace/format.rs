//! Parses the pages of a ring buffer by the format files of the running kernel.
//!
//! Offsets of fields differ between kernels, so each is looked up by name. A page is a header followed by
//! events; an event is a word with a length and the time since the previous event, followed by its fields.
//!
//! The kernel's text output is not used: reading it cost 575 ns of CPU per event, reading pages 30 (Linux
//! 6.18, two cores, 8,000 events, twice).
//!
//! Source: Linux `Documentation/trace/ring-buffer-design.rst`, `include/linux/ring_buffer.h` (`enum
//! ring_buffer_type`); `events/header_page`, `events/*/format`.

use super::write_back::{PageEvent, PageFormats};

/// One event of the block layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub(crate) at_ns: u64,
    pub(crate) device: u32,
    /// First sector, of 512 bytes, from the beginning of the disk.
    pub(crate) sector: u64,
    pub(crate) sector_count: u32,
    pub(crate) flags: Flags,
    pub(crate) what: What,
}

/// The thread of an event, with its name at that time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Submitter {
    pub(crate) pid: i32,
    pub(crate) comm: [u8; 16],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Put into the queue of the I/O scheduler by this thread.
    Insert(Submitter),
    /// Passed to the driver by this thread.
    Issue(Submitter),
    /// Returned by the driver, which had no room: it is issued again.
    Requeue,
    /// Completed by the disk, with an errno or 0.
    Complete { error: i32 },
    /// Passed on by a device without a queue of its own, by this thread: the event's device and sector are those below.
    Remap { pid: i32, from_device: u32, from_sector: u64 },
}

/// The letters of `rwbs`, as `blk_fill_rwbs` writes them: `F` for a flush before it, the kind, `F` for
/// forced unit access, `A` read-ahead, `S` sync, `M` metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(crate) kind: Kind,
    pub(crate) is_fua: bool,
    pub(crate) is_ahead: bool,
    pub(crate) is_metadata: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Read,
    Write,
    Flush,
    Discard,
    Other,
}

impl Flags {
    pub(crate) fn parse(rwbs: &[u8]) -> Self {
        let end = rwbs.iter().position(|&byte| byte == 0).unwrap_or(rwbs.len());
        let letters = &rwbs[..end];
        // `FF` is a flush; an `F` before another kind is a flush that goes before it.
        let letters = match letters {
            [b'F', rest @ ..] if !rest.is_empty() => rest,
            _ => letters,
        };
        let (kind, rest) = match letters {
            [b'R', rest @ ..] => (Kind::Read, rest),
            [b'W', rest @ ..] => (Kind::Write, rest),
            [b'F', rest @ ..] => (Kind::Flush, rest),
            [b'D', rest @ ..] => (Kind::Discard, rest),
            [_, rest @ ..] => (Kind::Other, rest),
            [] => (Kind::Other, letters),
        };
        let has = |letter| rest.contains(&letter);
        Self { kind, is_fua: has(b'F'), is_ahead: has(b'A'), is_metadata: has(b'M') }
    }
}

/// Position of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    /// Returns the field `name` of a format file; its lines are `field:dev_t dev; offset:8; size:4;
    /// signed:0;`.
    pub(crate) fn of(text: &str, name: &str) -> Result<Self, String> {
        let find = |line: &str| {
            let mut parts = line.trim().split(';').map(str::trim);
            let declared = parts.next()?.strip_prefix("field:")?;
            let last = declared.rsplit([' ', '\t', '*']).next()?;
            if last.split('[').next()? != name {
                return None;
            }
            let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse::<usize>().ok();
            Some(Self { offset: number("offset:")?, size: number("size:")? })
        };
        text.lines().find_map(find).ok_or_else(|| format!("the kernel's trace format has no field `{name}`"))
    }

    pub(crate) fn bytes<'a>(&self, data: &'a [u8]) -> Option<&'a [u8]> {
        data.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// Reads an unsigned number of up to eight bytes, in this machine's byte order.
    pub(crate) fn number(&self, data: &[u8]) -> Option<u64> {
        let bytes = self.bytes(data)?;
        Some(match *bytes {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_ne_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
            _ => u64::from_ne_bytes(bytes.try_into().ok()?),
        })
    }
}

/// The header of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageFormat {
    timestamp: Field,
    commit: Field,
    data: usize,
    /// What is added to the times of events.
    offset_ns: i64,
}

impl PageFormat {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Ok(Self {
            timestamp: Field::of(text, "timestamp")?,
            commit: Field::of(text, "commit")?,
            data: Field::of(text, "data")?.offset,
            offset_ns: 0,
        })
    }

    /// Adds this to the times of events: the clock of this process's time namespace is so much ahead of the kernel's.
    pub(crate) fn ahead_by(self, offset_ns: i64) -> Self {
        Self { offset_ns, ..self }
    }

    /// Calls `event` for each event of a page, oldest first, with its time in nanoseconds of this process's
    /// `CLOCK_MONOTONIC`, and its fields. Returns false if the page ends in bytes that cannot be parsed; the events
    /// before them were passed.
    pub(crate) fn read(&self, page: &[u8], mut event: impl FnMut(u64, &[u8])) -> bool {
        let head = || Some((self.timestamp.number(page)?, self.commit.number(page)?));
        let Some((mut at_ns, commit)) = head() else { return false };
        // The low 20 bits are the length; the bits above are flags.
        let Some(data) = page.get(self.data..) else { return false };
        let data = &data[..data.len().min(commit as usize & 0xf_ffff)];
        let word = |at: usize| Some(u32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?));
        let mut at = 0;
        while at < data.len() {
            let Some(head) = word(at) else { return false };
            // Bit fields: the length is in the lowest five bits of the word on a little-endian machine, in
            // the highest on a big-endian one.
            let (kind, delta) =
                if cfg!(target_endian = "little") { (head & 31, head >> 5) } else { (head >> 27, head & 0x7ff_ffff) };
            at += 4;
            match kind {
                // A discarded event, or the rest of the page.
                29 => {
                    if delta == 0 {
                        return true;
                    }
                    let Some(length) = word(at) else { return false };
                    at_ns += u64::from(delta);
                    at += length as usize;
                }
                // The time since the last event, if it does not fit into 27 bits.
                30 => {
                    let Some(high) = word(at) else { return false };
                    at_ns += (u64::from(high) << 27) + u64::from(delta);
                    at += 4;
                }
                // The absolute time, except its highest five bits.
                31 => {
                    let Some(high) = word(at) else { return false };
                    at_ns = (at_ns & !((1 << 59) - 1)) | ((u64::from(high) << 27) + u64::from(delta));
                    at += 4;
                }
                _ => {
                    let (length, skip) = match kind {
                        0 => match word(at) {
                            Some(length) if length >= 4 => ((length as usize - 4).next_multiple_of(4), 4),
                            _ => return false,
                        },
                        words => (words as usize * 4, 0),
                    };
                    at += skip;
                    at_ns += u64::from(delta);
                    let Some(fields) = data.get(at..at + length) else { return false };
                    event(at_ns.wrapping_add_signed(self.offset_ns), fields);
                    at += length;
                }
            }
        }
        true
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EventFormat {
    id: u64,
    kind: Field,
    pid: Field,
    device: Field,
    sector: Field,
    sector_count: Field,
    rwbs: Field,
    /// The name of the thread (issue, insert), or the error (complete).
    last: Option<Field>,
}

/// Returns the number of an event, from its format file.
pub(crate) fn id_of(text: &str) -> Result<u64, String> {
    let id = text.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok());
    Ok(id.ok_or("the kernel's trace format has no ID")?)
}

impl EventFormat {
    fn parse(text: &str, last: Option<&str>) -> Result<Self, String> {
        Ok(Self {
            id: id_of(text)?,
            kind: Field::of(text, "common_type")?,
            pid: Field::of(text, "common_pid")?,
            device: Field::of(text, "dev")?,
            sector: Field::of(text, "sector")?,
            sector_count: Field::of(text, "nr_sector")?,
            rwbs: Field::of(text, "rwbs")?,
            last: last.map(|last| Field::of(text, last)).transpose()?,
        })
    }
}

impl EventFormat {
    /// Returns the thread of an event that ends with its name.
    fn submitter(&self, data: &[u8]) -> Option<Submitter> {
        let mut comm = [0; 16];
        let name = self.last?.bytes(data)?;
        let length = name.len().min(comm.len());
        comm[..length].copy_from_slice(&name[..length]);
        Some(Submitter { pid: self.pid.number(data)? as i32, comm })
    }
}

/// An event with a second position: that on the device above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RemapFormat {
    event: EventFormat,
    from_device: Field,
    from_sector: Field,
}

impl RemapFormat {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self {
            event: EventFormat::parse(text, None)?,
            from_device: Field::of(text, "old_dev")?,
            from_sector: Field::of(text, "old_sector")?,
        })
    }
}

/// The texts of the format files of a request's events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestEvents<'a> {
    pub(crate) issue: &'a str,
    pub(crate) complete: &'a str,
    pub(crate) insert: &'a str,
    pub(crate) requeue: &'a str,
    /// Only where a layer passes I/O on.
    pub(crate) remap: Option<&'a str>,
}

/// The formats needed to parse a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Formats {
    page: PageFormat,
    issue: EventFormat,
    complete: EventFormat,
    insert: EventFormat,
    requeue: EventFormat,
    remap: Option<RemapFormat>,
    /// Events of dirty pages; `None` if this kernel lacks one of them.
    pages: Option<PageFormats>,
}

/// An event of a page of the buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// Of a request.
    Request(Event),
    /// Of dirty pages.
    Page(PageEvent),
}

impl Recorded {
    pub(crate) fn at_ns(&self) -> u64 {
        match self {
            Self::Request(event) => event.at_ns,
            Self::Page(event) => event.at_ns,
        }
    }
}

impl Formats {
    /// Parses the format files of all events.
    ///
    /// # Errors
    /// A sentence that names the missing field.
    pub(crate) fn new(page: PageFormat, texts: &RequestEvents<'_>) -> Result<Self, String> {
        Ok(Self {
            page,
            issue: EventFormat::parse(texts.issue, Some("comm"))?,
            complete: EventFormat::parse(texts.complete, Some("error"))?,
            insert: EventFormat::parse(texts.insert, Some("comm"))?,
            requeue: EventFormat::parse(texts.requeue, None)?,
            remap: texts.remap.map(RemapFormat::parse).transpose()?,
            pages: None,
        })
    }

    /// Parses events of dirty pages, too.
    pub(crate) fn with_pages(self, pages: Option<PageFormats>) -> Self {
        Self { pages, ..self }
    }

    pub(crate) fn pages(&self) -> Option<&PageFormats> {
        self.pages.as_ref()
    }

    fn event(&self, at_ns: u64, data: &[u8]) -> Option<Event> {
        let kind = self.issue.kind.number(data)?;
        let remap = self.remap.as_ref();
        let formats = [&self.issue, &self.complete, &self.insert, &self.requeue];
        let mut formats = formats.into_iter().chain(remap.map(|remap| &remap.event));
        let format = formats.find(|format| format.id == kind)?;
        let what = if let Some(remap) = remap.filter(|remap| remap.event.id == kind) {
            What::Remap {
                pid: format.pid.number(data)? as i32,
                from_device: remap.from_device.number(data)? as u32,
                from_sector: remap.from_sector.number(data)?,
            }
        } else if format.id == self.issue.id {
            What::Issue(format.submitter(data)?)
        } else if format.id == self.complete.id {
            What::Complete { error: format.last?.number(data)? as i32 }
        } else if format.id == self.insert.id {
            What::Insert(format.submitter(data)?)
        } else {
            What::Requeue
        };
        Some(Event {
            at_ns,
            device: format.device.number(data)? as u32,
            sector: format.sector.number(data)?,
            sector_count: format.sector_count.number(data)? as u32,
            flags: Flags::parse(format.rwbs.bytes(data)?),
            what,
        })
    }

    /// Calls `event` for each event of a page, oldest first. Returns false if the page ends in bytes that
    /// cannot be parsed; the events before them were passed.
    pub(crate) fn read_page(&self, page: &[u8], event: impl FnMut(Recorded)) -> bool {
        let parse = |at_ns, fields: &[u8]| {
            let of_pages = || self.pages.as_ref()?.event(at_ns, fields).map(Recorded::Page);
            self.event(at_ns, fields).map(Recorded::Request).or_else(of_pages)
        };
        let mut event = event;
        self.page.read(page, |at_ns, fields| parse(at_ns, fields).into_iter().for_each(&mut event))
    }
}

/// Parses `dropped events: 12` of a processor's `stats`.
pub(crate) fn dropped_events(stats: &str) -> Option<u64> {
    stats.lines().find_map(|line| line.strip_prefix("dropped events:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of two processors and the formats, as Linux 6.18 (x86-64) returned them: `dd` with `oflag=dsync`
    /// on a loop device, and 0.3 s later two reads.
    const PAGES: [&[u8]; 2] =
        [include_bytes!("../../tests/ring/cpu0.page"), include_bytes!("../../tests/ring/cpu1.page")];
    /// The kernel's own text of the same events.
    const TEXT: &str = include_str!("../../tests/ring/trace.txt");

    const TEXTS: RequestEvents<'_> = RequestEvents {
        issue: include_str!("../../tests/ring/block_rq_issue.format"),
        complete: include_str!("../../tests/ring/block_rq_complete.format"),
        insert: include_str!("../../tests/ring/block_rq_insert.format"),
        requeue: include_str!("../../tests/ring/block_rq_requeue.format"),
        remap: Some(include_str!("../../tests/ring/block_bio_remap.format")),
    };

    fn formats() -> Formats {
        let page = PageFormat::parse(include_str!("../../tests/ring/header_page")).expect("a page's head");
        Formats::new(page, &TEXTS).expect("four events")
    }

    /// The values that the kernel's text and a parsed event have in common.
    fn line(event: &Event) -> String {
        let flags = event.flags;
        let (what, last) = match event.what {
            What::Issue(Submitter { comm, .. }) => {
                let end = comm.iter().position(|&byte| byte == 0).unwrap_or(comm.len());
                ("issue", String::from_utf8_lossy(&comm[..end]).into_owned())
            }
            What::Complete { error } => ("complete", error.to_string()),
            What::Insert(_) => ("insert", String::new()),
            What::Requeue => ("requeue", String::new()),
            What::Remap { from_device, from_sector, .. } => ("remap", format!("{from_device} {from_sector}")),
        };
        let microseconds = (event.at_ns + 500) / 1000;
        let (major, minor) = (event.device >> 20, event.device & 0xf_ffff);
        let (sector, count) = (event.sector, event.sector_count);
        format!("{microseconds} {what} {major},{minor} {:?} {sector} + {count} [{last}]", flags.kind)
    }

    fn line_of_text(text: &str) -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (seconds, micro) = words[1].trim_end_matches(':').split_once('.').expect("a moment");
        let microseconds = seconds.parse::<u64>().expect("seconds") * 1_000_000 + micro.parse::<u64>().expect("micro");
        let what = words[2].trim_start_matches("block_rq_").trim_end_matches(':');
        let plus = words.iter().position(|word| *word == "+").expect("a length");
        let kind = Flags::parse(words[4].as_bytes()).kind;
        let last = words.last().expect("a name");
        format!("{microseconds} {what} {} {kind:?} {} + {} {last}", words[3], words[plus - 1], words[plus + 1])
    }

    #[test]
    fn parsed_pages_agree_with_the_kernels_text() {
        let formats = formats();
        for (cpu, page) in PAGES.into_iter().enumerate() {
            let mut lines = Vec::new();
            assert!(formats.read_page(page, |event| match event {
                Recorded::Request(event) => lines.push(line(&event)),
                Recorded::Page(_) => unreachable!("none is parsed"),
            }));
            let of_cpu = TEXT.lines().filter(|line| line.starts_with(&format!("[00{cpu}]")));
            assert_eq!(lines, of_cpu.map(line_of_text).collect::<Vec<_>>());
            assert!(lines.len() > 10);
        }
    }

    #[test]
    fn a_truncated_page_returns_its_whole_events_and_never_panics() {
        let formats = formats();
        let mut all = 0;
        formats.read_page(PAGES[0], |_| all += 1);
        for length in 0..PAGES[0].len() {
            let mut count = 0;
            formats.read_page(&PAGES[0][..length], |_| count += 1);
            assert!(count <= all);
        }
        // Random bytes: each byte of a page changed in turn.
        for index in 0..PAGES[1].len() {
            let mut page = PAGES[1].to_vec();
            page[index] ^= 0xff;
            formats.read_page(&page, |_| ());
        }
    }

    #[test]
    fn letters_of_rwbs_are_distinguished_by_their_position() {
        let flags = |kind, is_fua, is_ahead, is_metadata| Flags { kind, is_fua, is_ahead, is_metadata };
        for (letters, expected) in [
            ("WS", flags(Kind::Write, false, false, false)),
            ("WFS", flags(Kind::Write, true, false, false)),
            ("FWFSM", flags(Kind::Write, true, false, true)),
            ("FF", flags(Kind::Flush, false, false, false)),
            ("RA", flags(Kind::Read, false, true, false)),
            ("RAM", flags(Kind::Read, false, true, true)),
            ("DS", flags(Kind::Discard, false, false, false)),
            ("N", flags(Kind::Other, false, false, false)),
            ("", flags(Kind::Other, false, false, false)),
        ] {
            assert_eq!(Flags::parse(letters.as_bytes()), expected, "{letters}");
            assert_eq!(Flags::parse(format!("{letters}\0xF").as_bytes()), expected, "{letters}");
        }
    }

    #[test]
    fn a_missing_field_is_reported_by_name() {
        let page = PageFormat::parse(include_str!("../../tests/ring/header_page")).expect("a page's head");
        let issue = TEXTS.issue.replace("rwbs", "flags");
        let texts = RequestEvents { issue: &issue, ..TEXTS };
        assert!(Formats::new(page, &texts).expect_err("no rwbs").contains("`rwbs`"));
        assert!(PageFormat::parse("").is_err());
    }

    #[test]
    fn lost_events_are_read_from_the_statistics_of_a_processor() {
        assert_eq!(dropped_events("entries: 4\noverrun: 0\ndropped events: 17\nread events: 3\n"), Some(17));
        assert_eq!(dropped_events("entries: 4\n"), None);
    }
}
