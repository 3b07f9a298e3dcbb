//! Names the programs that use disks, by the trace of their requests: for waits and displays, not for verdicts.
//!
//! A request carries the name that its thread had when it submitted it. So a program that ended, or became another one (`exec`), is named as it
//! was, and only what it did on these disks counts.
//!
//! Threads of the kernel are named by what they do, and write-back by the programs that dirtied the pages, if they did so in the trace. What the
//! driver of a loop device does in its file is counted for the device only.
//!
//! Cannot see: requests after a buffer was full, until the next call.

use super::attribution::{WRITE_BACK, contains, ended, ranges_of, work_of};
use super::format::{Formats, Kind, Recorded};
use super::layers::Layers;
use super::loops::OpenLoops;
use super::tracefs::{Instance, Recording, Tracefs};
use super::window::{OwnThreads, Request, Window};
use super::write_back::{DirtiedFile, Dirtiers, disks_of};
use std::collections::BTreeMap;
use trueio_device::System;

/// A trace of the requests of disks, until dropped.
#[derive(Debug)]
pub struct DiskUsers {
    instance: Instance,
    formats: Formats,
    system: System,
    layers: Layers,
    dirtiers: Dirtiers,
}

/// What uses a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskUser {
    /// `dd (pid 812)`.
    pub who: String,
    /// Kernel name of the disk.
    pub disk: String,
}

/// Programs whose dirty pages are written back, in words.
const PROGRAMS_MAX: usize = 2;

impl DiskUsers {
    /// Begins to trace the requests of disks, given by their kernel names.
    ///
    /// # Errors
    /// A sentence with the reason why they cannot be traced.
    pub fn begin(system: &System, disks: &[String]) -> Result<Self, String> {
        if !system.is_live() {
            return Err("a recorded machine has no trace".to_owned());
        }
        let mut layers = Layers::default();
        for disk in disks {
            let dev = std::fs::read_to_string(format!("/sys/block/{disk}/dev")).unwrap_or_default();
            let number = dev.trim().split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
            let (major, minor) = number.ok_or_else(|| format!("the number of {disk} is unknown"))?;
            layers.add(system, major, minor)?;
        }
        let tracefs = Tracefs::open()?;
        let formats = tracefs.formats(false)?;
        let mut instance = Instance::new(tracefs, Recording::of_users(&layers.recorded()).with_pages(&formats, true))?;
        instance.enable()?;
        Ok(Self { instance, formats, system: system.clone(), layers, dirtiers: Dirtiers::default() })
    }

    /// Returns the other program that moved most bytes to and from one disk since the last call; `None` if none was seen.
    pub fn busiest(&mut self) -> Option<DiskUser> {
        let (mut events, mut pages) = (Vec::new(), Vec::new());
        let formats = &self.formats;
        self.instance.drain(|_, page| {
            formats.read_page(page, |event| match event {
                Recorded::Request(event) => events.push(event),
                Recorded::Page(event) => pages.push(event),
            });
        });
        let mut own = OwnThreads::default();
        own.look();
        let written_back = self.dirtiers.written_back(&own.pages(pages));
        let mut window = Window::of(1, (0, u64::MAX), events, &own);
        own.describe(&mut window);
        let loops = OpenLoops::below(&self.system, &self.layers.disks);
        let of_loops = ranges_of(loops.seen.files.iter().map(|file| &file.extents));
        let mut sums: BTreeMap<(&str, i32, u32), u64> = BTreeMap::new();
        let is_of_others = |request: &&Request| {
            let is_passed_on = request.is_kernel && contains(&of_loops, request);
            !request.is_own && !request.is_rank && !is_passed_on && request.flags.kind != Kind::Flush
        };
        for request in window.requests.iter().filter(is_of_others) {
            let name = window.names[usize::from(request.name)].as_str();
            let user = match request.is_kernel {
                true => (work_of(name, request.flags.kind), 0, request.device),
                false => (name, request.process, request.device),
            };
            *sums.entry(user).or_default() += request.end - request.begin;
        }
        let found = sums.into_iter().filter(|(_, bytes)| *bytes > 0).max_by_key(|(_, bytes)| *bytes);
        let ((name, process, device), _) = found?;
        let who = if name == WRITE_BACK { self.write_back_words(written_back) } else { words_of(name, process) };
        Some(DiskUser { who, disk: self.layers.name_of(device).to_owned() })
    }

    /// `write-back of dirty pages, by dd (thread 812, which has ended)`.
    fn write_back_words(&self, written_back: Vec<DirtiedFile>) -> String {
        let mut sums: BTreeMap<(String, i32), u64> = BTreeMap::new();
        for DirtiedFile { file, process, name, bytes } in written_back {
            if disks_of(&self.system, &file.backing).iter().any(|disk| self.layers.disk(*disk).is_some()) {
                *sums.entry((name, process)).or_default() += bytes;
            }
        }
        let mut programs: Vec<((String, i32), u64)> = sums.into_iter().collect();
        programs.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let words = programs.iter().take(PROGRAMS_MAX).map(|((name, process), _)| words_of(name, *process));
        let words: Vec<String> = words.collect();
        if words.is_empty() { WRITE_BACK.to_owned() } else { format!("{WRITE_BACK}, by {}", words.join(" and ")) }
    }
}

/// `dd (thread 812, which has ended)`.
fn words_of(name: &str, process: i32) -> String {
    match process {
        0 => name.to_owned(),
        process if ended(process) => format!("{name} (thread {process}, which has ended)"),
        process => format!("{name} (pid {process})"),
    }
}
