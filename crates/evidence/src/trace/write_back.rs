//! Whose dirty pages the kernel writes back: threads of the kernel submit those requests, and the requests do not name the program.
//!
//! Two kinds of events relate them: a thread dirties a page of an inode, and a thread of the kernel begins or ends to write an inode back.
//! A program is named only if pages that it dirtied belong to an inode that was written back after that. Of 64 pages of a file one is
//! recorded, so what a program dirtied is known in units of 256 KiB (with pages of 4 KiB), about. Names are those that threads had when they dirtied the page:
//! a later `exec` and the end of a thread are recorded, too.
//!
//! Cannot see: who dirtied pages before the trace began, or between windows; files on filesystems whose disks are in no file of sysfs.
//!
//! Source: Linux `include/trace/events/writeback.h` (`writeback_dirty_folio`, before Linux 5.18 `writeback_dirty_page`;
//! `writeback_single_inode`), `include/trace/events/task.h`, `include/trace/events/sched.h`.

use super::format::{Field, id_of};
use super::layers::Layers;
use super::tracefs::RecordedEvent;
use std::collections::{BTreeMap, BTreeSet};
use trueio_device::System;

/// Pages of a file for each one that is recorded.
const SAMPLED_PAGES: u64 = 64;
/// The kernel's filter for that.
const SAMPLED: &str = "!(index & 63)";
/// Files whose writers are remembered.
const FILES_MAX: usize = 4096;

/// The events, by the names that kernels have had for them, each with the kernel's filter.
const DIRTY: [&str; 2] = ["writeback/writeback_dirty_folio", "writeback/writeback_dirty_page"];
const WRITTEN: [&str; 2] = ["writeback/writeback_single_inode_start", "writeback/writeback_single_inode"];
const RENAME: &str = "task/task_rename";
const EXIT: &str = "sched/sched_process_exit";

/// A file with dirty pages: its backing device as the kernel names it (`254:0`, `btrfs-1`), and its inode.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PageFile {
    pub(crate) backing: String,
    pub(crate) inode: u64,
}

/// An event of dirty pages, or of the name of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageEvent {
    pub(crate) at_ns: u64,
    pub(crate) thread: i32,
    pub(crate) what: PageWhat,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageWhat {
    /// The thread dirtied a page.
    Dirtied(PageFile),
    /// The thread began or ended to write dirty pages of a file.
    Written(PageFile),
    /// Until now the thread had this name: it has another one (`exec`), or ends.
    WasNamed(String),
}

/// The format of an event with one or two fields of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PageEventFormat {
    id: u64,
    thread: Field,
    name: Field,
    inode: Option<Field>,
}

impl PageEventFormat {
    fn parse(text: &str, thread: &str, name: &str, inode: Option<&str>) -> Result<Self, String> {
        Ok(Self {
            id: id_of(text)?,
            thread: Field::of(text, thread)?,
            name: Field::of(text, name)?,
            inode: inode.map(|inode| Field::of(text, inode)).transpose()?,
        })
    }
}

/// The formats of these events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageFormats {
    kind: Field,
    dirty: (&'static str, PageEventFormat),
    written: [PageEventFormat; 2],
    rename: PageEventFormat,
    exit: PageEventFormat,
}

impl PageFormats {
    /// Parses the format files, which `text` returns by the name of an event.
    ///
    /// # Errors
    /// A sentence with the event or field that this kernel lacks: programs behind write-back are not named then.
    pub(crate) fn new(text: impl Fn(&str) -> Result<String, String>) -> Result<Self, String> {
        let of_file = |event: &str| PageEventFormat::parse(&text(event)?, "common_pid", "name", Some("ino"));
        let dirty = match of_file(DIRTY[0]) {
            Ok(format) => (DIRTY[0], format),
            Err(_) => (DIRTY[1], of_file(DIRTY[1])?),
        };
        Ok(Self {
            kind: Field::of(&text(EXIT)?, "common_type")?,
            dirty,
            written: [of_file(WRITTEN[0])?, of_file(WRITTEN[1])?],
            rename: PageEventFormat::parse(&text(RENAME)?, "pid", "oldcomm", None)?,
            exit: PageEventFormat::parse(&text(EXIT)?, "pid", "comm", None)?,
        })
    }

    /// Returns the events to record. That of a dirtied page is rare unless this program dirties pages itself while they are recorded.
    pub(crate) fn events(&self, dirties_pages: bool) -> impl Iterator<Item = RecordedEvent> + use<> {
        let dirty = if dirties_pages { RecordedEvent::frequent } else { RecordedEvent::rare };
        let others = WRITTEN.into_iter().chain([RENAME, EXIT]);
        [dirty(self.dirty.0, SAMPLED)].into_iter().chain(others.map(|event| RecordedEvent::rare(event, "")))
    }

    /// Parses the fields of an event; `None` for one of another kind.
    pub(crate) fn event(&self, at_ns: u64, data: &[u8]) -> Option<PageEvent> {
        let kind = self.kind.number(data)?;
        let Self { dirty: (_, dirty), written, rename, exit, .. } = self;
        let mut formats = [dirty, &written[0], &written[1], rename, exit].into_iter();
        let format = formats.find(|format| format.id == kind)?;
        let bytes = format.name.bytes(data)?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        let name = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let what = match format.inode {
            None => PageWhat::WasNamed(name),
            Some(inode) => {
                let file = PageFile { backing: name, inode: inode.number(data)? };
                if format.id == dirty.id { PageWhat::Dirtied(file) } else { PageWhat::Written(file) }
            }
        };
        Some(PageEvent { at_ns, thread: format.thread.number(data)? as i32, what })
    }
}

/// What one program dirtied of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirtiedFile {
    pub(crate) file: PageFile,
    pub(crate) process: i32,
    /// Its name when it dirtied the pages; of a program with threads, now.
    pub(crate) name: String,
    /// About how many bytes.
    pub(crate) bytes: u64,
}

/// What other programs dirtied in a window, and which files threads of the kernel wrote back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PageWindow {
    pub(crate) dirtied: Vec<DirtiedFile>,
    pub(crate) written: BTreeSet<PageFile>,
}

impl PageWindow {
    /// Joins events. `name_of` returns the name that a thread has now, `process_of` number and name of the process of a thread that is not its
    /// first, `is_other` is true for threads that do not belong to this run, `is_kernel` for those of the kernel.
    pub(crate) fn of(
        mut events: Vec<PageEvent>,
        name_of: impl Fn(i32) -> Option<String>,
        process_of: impl Fn(i32) -> Option<(i32, String)>,
        is_other: impl Fn(i32) -> bool,
        is_kernel: impl Fn(i32) -> bool,
    ) -> Self {
        events.sort_by_key(|event| event.at_ns);
        let mut sums: BTreeMap<(PageFile, i32, String), u64> = BTreeMap::new();
        let mut written = BTreeSet::new();
        // From the end: the names that threads had until a later time.
        let mut names: BTreeMap<i32, Option<String>> = BTreeMap::new();
        for PageEvent { thread, what, .. } in events.into_iter().rev() {
            match what {
                PageWhat::WasNamed(name) => drop(names.insert(thread, Some(name))),
                PageWhat::Written(file) if is_kernel(thread) => drop(written.insert(file)),
                PageWhat::Dirtied(file) if is_other(thread) => {
                    if let Some(name) = names.entry(thread).or_insert_with(|| name_of(thread)) {
                        let (process, name) = process_of(thread).unwrap_or_else(|| (thread, name.clone()));
                        *sums.entry((file, process, name)).or_default() += 1;
                    }
                }
                PageWhat::Written(_) | PageWhat::Dirtied(_) => {}
            }
        }
        let bytes = SAMPLED_PAGES * rustix::param::page_size() as u64;
        let dirtied = sums.into_iter().map(|((file, process, name), samples)| DirtiedFile {
            file,
            process,
            name,
            bytes: samples * bytes,
        });
        Self { dirtied: dirtied.collect(), written }
    }
}

/// Who dirtied which files so far.
#[derive(Debug, Default)]
pub(crate) struct Dirtiers {
    files: BTreeMap<PageFile, Vec<DirtiedFile>>,
}

impl Dirtiers {
    /// Adds what was dirtied in a window; returns the part of it and of earlier windows that was written back in this one. It is forgotten
    /// then: what is written back later was dirtied later.
    pub(crate) fn written_back(&mut self, window: &PageWindow) -> Vec<DirtiedFile> {
        for dirtied in &window.dirtied {
            if self.files.len() < FILES_MAX || self.files.contains_key(&dirtied.file) {
                let of_file = self.files.entry(dirtied.file.clone()).or_default();
                match of_file.iter_mut().find(|of| (of.process, &of.name) == (dirtied.process, &dirtied.name)) {
                    Some(known) => known.bytes += dirtied.bytes,
                    None => of_file.push(dirtied.clone()),
                }
            }
        }
        window.written.iter().filter_map(|file| self.files.remove(file)).flatten().collect()
    }
}

/// Returns the numbers of the disks below a backing device (`254:0`, `btrfs-1`); empty if they are unknown.
pub(crate) fn disks_of(system: &System, backing: &str) -> Vec<u32> {
    let mut layers = Layers::default();
    let mut add = |number: &str| {
        let parsed = number.trim().split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        if let Some((major, minor)) = parsed {
            let _ = layers.add(system, major, minor);
        }
    };
    if backing.starts_with("btrfs-") {
        let entries = |path: &str| std::fs::read_dir(system.locate(path)).into_iter().flatten().flatten();
        let is_it = |path: &std::path::Path| {
            let link = std::fs::read_link(path.join("bdi"));
            link.is_ok_and(|link| link.file_name().is_some_and(|name| name.to_string_lossy() == backing))
        };
        for filesystem in entries("/sys/fs/btrfs").map(|entry| entry.path()).filter(|path| is_it(path)) {
            let devices = std::fs::read_dir(filesystem.join("devices")).into_iter().flatten().flatten();
            devices.for_each(|device| add(&std::fs::read_to_string(device.path().join("dev")).unwrap_or_default()));
        }
    } else {
        add(backing);
    }
    layers.disks.iter().map(|disk| disk.device).collect()
}
