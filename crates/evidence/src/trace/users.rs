//! Names the programs that use disks, by the trace of their requests: for waits and displays, not for verdicts.
//!
//! A request carries the name that its thread had when it submitted it. So a program that ended, or became another one (`exec`), is named as it
//! was, and only what it did on these disks counts.
//!
//! Cannot see: requests after a buffer was full, until the next call; for whom a thread of the kernel writes pages back.

use super::attribution::ended;
use super::format::{Formats, Kind};
use super::layers::Layers;
use super::tracefs::{Instance, Recording, Tracefs};
use super::window::{OwnThreads, Window};
use std::collections::BTreeMap;
use trueio_device::System;

/// A trace of the requests of disks, until dropped.
#[derive(Debug)]
pub struct DiskUsers {
    instance: Instance,
    formats: Formats,
}

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
        let mut instance = Instance::new(tracefs, Recording::of_users(&layers.recorded()))?;
        instance.enable()?;
        Ok(Self { instance, formats })
    }

    /// Returns the other program that moved most bytes since the last call: `dd (pid 812)`; `None` if none was seen.
    pub fn busiest(&mut self) -> Option<String> {
        let mut events = Vec::new();
        let formats = &self.formats;
        self.instance.drain(|_, page| {
            formats.read_page(page, |event| events.push(event));
        });
        let mut own = OwnThreads::default();
        own.look();
        let mut window = Window::of(1, (0, u64::MAX), events, &own);
        own.describe(&mut window);
        let mut sums: BTreeMap<(&str, i32), u64> = BTreeMap::new();
        for request in window.requests.iter().filter(|request| !request.is_own && request.flags.kind != Kind::Flush) {
            let user = match request.is_kernel {
                true => ("", 0),
                false => (window.names[usize::from(request.name)].as_str(), request.process),
            };
            *sums.entry(user).or_default() += request.end - request.begin;
        }
        let ((name, process), _) = sums.into_iter().filter(|(_, bytes)| *bytes > 0).max_by_key(|(_, bytes)| *bytes)?;
        Some(match (name, process) {
            ("", _) => "write-back of dirty pages".to_owned(),
            (name, 0) => name.to_owned(),
            (name, process) if ended(process) => format!("{name} (pid {process}, which has ended)"),
            (name, process) => format!("{name} (pid {process})"),
        })
    }
}
