//! The layers from a file down to the disks.
//!
//! A filesystem is on a device; a partition is a part of a whole disk; dm and md devices have slaves below them; a loop
//! device has a file below it, which is on a filesystem again. Each step is a link or a small file of sysfs.
//!
//! The counters are read from the first whole disks on the way down that have no slaves, because they receive exactly
//! our requests. A loop device is such a disk. The layers below its file are listed, so that a loop device on tmpfs is
//! recognised, but their counters are not read: the file's filesystem may serve requests from the page cache, and other
//! programs use the same disk.
//!
//! Cannot see: the pool below ZFS; an external journal, log or real-time device; the disks of a network filesystem; an
//! overlay's upper directory in another mount namespace.

use crate::disk::disk_facts;
use crate::identity::{DeviceNumber, PathIdentity};
use crate::mounts::{Mount, mount_of};
use crate::numbers::{device_number_at, devices_of};
use crate::system::System;
use std::path::Path;
use trueio_model::{DiskFacts, Fact, FilesystemKind, Layer, LayerKind, NamedFact, units};

/// The maximum number of layers; it ends the loop for a loop device whose file is on itself.
const DEPTH_MAX: u32 = 24;

/// The layers found so far, and the disks below them.
pub(crate) struct Stack<'a> {
    system: &'a System,
    mounts: &'a [Mount],
    pub(crate) layers: Vec<Layer>,
    pub(crate) disks: Vec<DiskFacts>,
    /// All block devices on the way down, also those below a loop device's file: kernel name and number.
    pub(crate) devices: Vec<(String, DeviceNumber)>,
}

/// Whether the counters of the disks found count our I/O.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Disks {
    Counted,
    /// Below a loop device's file.
    Named,
}

impl<'a> Stack<'a> {
    pub(crate) fn new(system: &'a System, mounts: &'a [Mount]) -> Self {
        Self { system, mounts, layers: Vec::new(), disks: Vec::new(), devices: Vec::new() }
    }

    /// Adds the layers below a path on a mounted filesystem.
    pub(crate) fn descend_from_path(&mut self, kind: LayerKind, identity: &PathIdentity) {
        self.file(kind, identity, 0, Disks::Counted);
    }

    /// Adds a block device and the layers below it.
    pub(crate) fn descend_from_device(&mut self, number: DeviceNumber) {
        self.device(number, 0, Disks::Counted);
    }

    fn push(&mut self, kind: LayerKind, name: String, source: String, depth: u32) {
        self.push_with(kind, name, source, depth, Vec::new());
    }

    fn push_with(&mut self, kind: LayerKind, name: String, source: String, depth: u32, facts: Vec<NamedFact>) {
        let layer = Layer { kind, name, source, depth, facts };
        if !self.layers.contains(&layer) {
            self.layers.push(layer);
        }
    }

    fn file(&mut self, kind: LayerKind, identity: &PathIdentity, depth: u32, disks: Disks) {
        self.push(kind, identity.path.display().to_string(), "stat".to_owned(), depth);
        let Some(mount) = mount_of(self.mounts, identity) else {
            let source = "no mount in /proc/self/mountinfo has this path".to_owned();
            self.push(LayerKind::Filesystem, "not known".to_owned(), source, depth + 1);
            return;
        };
        self.filesystem(mount, depth + 1, disks);
    }

    fn filesystem(&mut self, mount: &Mount, depth: u32, disks: Disks) {
        if depth > DEPTH_MAX {
            return;
        }
        let source = "/proc/self/mountinfo".to_owned();
        self.push(LayerKind::Filesystem, format!("{} on {}", mount.kind, mount.mount_point.display()), source, depth);
        if mount.kind == FilesystemKind::Overlay {
            return self.overlay(mount, depth + 1, disks);
        }
        for number in devices_of(self.system, mount) {
            self.device(number, depth + 1, disks);
        }
    }

    /// Adds the layers below an overlay. Changed files are on the filesystem of its upper directory. Unchanged files are
    /// on lower ones, which are not followed, because writes go to the upper directory.
    fn overlay(&mut self, mount: &Mount, depth: u32, disks: Disks) {
        let Some(upper) = mount.super_option("upperdir") else {
            let source = "the overlay has no upper directory: it is read-only".to_owned();
            return self.push(LayerKind::Directory, "overlay without an upper directory".to_owned(), source, depth);
        };
        match self.system.identify(Path::new(upper)) {
            Ok(identity) => self.file(LayerKind::Directory, &identity, depth, disks),
            Err(error) => {
                let source = format!(
                    "the overlay's upper directory is not seen from here ({error}): it lies in another mount \
                     namespace, as in a container"
                );
                self.push(LayerKind::Directory, upper.to_owned(), source, depth);
            }
        }
    }

    fn device(&mut self, number: DeviceNumber, depth: u32, disks: Disks) {
        if depth > DEPTH_MAX {
            return;
        }
        let (major, minor) = number;
        let link = format!("/sys/dev/block/{major}:{minor}");
        let Ok(directory) = self.system.resolve(&link) else {
            return self.push(LayerKind::Device, format!("{major}:{minor}"), format!("{link} does not exist"), depth);
        };
        let name = directory.rsplit('/').next().unwrap_or_default().to_owned();
        if !self.devices.iter().any(|(_, known)| *known == number) {
            self.devices.push((name.clone(), number));
        }
        if self.system.exists(&format!("{directory}/partition")) {
            self.push_with(LayerKind::Partition, name, link, depth, partition_facts(self.system, &directory));
            let whole = directory.rsplit_once('/').map_or("", |(parent, _)| parent);
            if let Some(number) = device_number_at(self.system, whole) {
                self.device(number, depth + 1, disks);
            }
            return;
        }
        let slaves = self.system.list(&format!("{directory}/slaves"));
        if !slaves.is_empty() {
            let (kind, name) = self.stacked(&directory, &name);
            let facts = stacked_facts(self.system, &kind, &directory);
            self.push_with(kind, name, format!("{link}, slaves/"), depth, facts);
            for slave in slaves {
                if let Some(number) = device_number_at(self.system, &format!("{directory}/slaves/{slave}")) {
                    self.device(number, depth + 1, disks);
                }
            }
            return;
        }
        if disks == Disks::Counted
            && !self.disks.iter().any(|disk| disk.name == name)
            && let Some(facts) = disk_facts(self.system, &name)
        {
            self.disks.push(facts);
        }
        match self.system.path_in(&format!("{directory}/loop/backing_file")) {
            Ok(backing) => self.loop_device(&directory, &name, &backing, link, depth),
            Err(_) => self.push(LayerKind::Disk, name, link, depth),
        }
    }

    /// Returns the kind of a stacked device, and its name.
    fn stacked(&self, directory: &str, name: &str) -> (LayerKind, String) {
        if let Ok(dm_name) = self.system.read(&format!("{directory}/dm/name")) {
            // The part before the first hyphen is the subsystem that created it: CRYPT-LUKS2-…, LVM-…, mpath-….
            let uuid = self.system.read(&format!("{directory}/dm/uuid")).unwrap_or_default();
            let maker = uuid.split('-').next().unwrap_or_default().to_ascii_lowercase();
            let words: Vec<&str> = [maker.as_str(), dm_name.as_str()].into_iter().filter(|w| !w.is_empty()).collect();
            return (LayerKind::DeviceMapper, format!("{name} ({})", words.join(" ")));
        }
        if let Ok(level) = self.system.read(&format!("{directory}/md/level")) {
            return (LayerKind::Md, format!("{name} ({level})"));
        }
        if self.system.exists(&format!("{directory}/bcache")) {
            return (LayerKind::Bcache, name.to_owned());
        }
        (LayerKind::Stacked, name.to_owned())
    }

    fn loop_device(&mut self, directory: &str, name: &str, backing: &Path, link: String, depth: u32) {
        let how = match self.system.read(&format!("{directory}/loop/dio")).as_deref() {
            Ok("1") => "direct",
            Ok(_) => "buffered",
            Err(_) => "unknown whether direct",
        };
        let facts = loop_facts(self.system, directory);
        self.push_with(LayerKind::Loop, format!("{name} ({how})"), format!("{link}, loop/dio"), depth, facts);
        match self.system.identify(backing) {
            // The backing file may be another block device.
            Ok(identity) if identity.device != (0, 0) => self.device(identity.device, depth + 1, Disks::Named),
            Ok(identity) => self.file(LayerKind::File, &identity, depth + 1, Disks::Named),
            Err(error) => {
                let source = format!("{directory}/loop/backing_file; it cannot be read ({error})");
                self.push(LayerKind::File, backing.display().to_string(), source, depth + 1);
            }
        }
    }
}

/// Formats a number of sysfs as a size; `unit` is its unit, in bytes.
fn size_fact(system: &System, name: &str, path: &str, unit: u64) -> NamedFact {
    let fact: Fact<u64> = system.number(path);
    let fact = Fact { value: fact.value.map(|n| units::format_bytes(n.saturating_mul(unit))), source: fact.source };
    NamedFact { name: name.to_owned(), fact }
}

fn word_fact(system: &System, name: &str, path: &str) -> NamedFact {
    NamedFact { name: name.to_owned(), fact: system.text(path) }
}

/// `start` and `size` count sectors of 512 bytes, independent of the disk's sector size: `Documentation/block/stat.rst`.
fn partition_facts(system: &System, directory: &str) -> Vec<NamedFact> {
    let alignment = system.fact(&format!("{directory}/alignment_offset"), |text| match text.parse::<i64>().ok()? {
        0 => Some("to the disk's physical sectors".to_owned()),
        bytes => Some(format!("no: {bytes} bytes off the disk's physical sectors")),
    });
    vec![
        size_fact(system, "begins at", &format!("{directory}/start"), 512),
        size_fact(system, "size", &format!("{directory}/size"), 512),
        NamedFact { name: "aligned".to_owned(), fact: alignment },
    ]
}

/// Returns the properties of a stacked device.
fn stacked_facts(system: &System, kind: &LayerKind, directory: &str) -> Vec<NamedFact> {
    let at = |file: &str| format!("{directory}/{file}");
    let mut facts = vec![
        size_fact(system, "size", &at("size"), 512),
        size_fact(system, "logical sector", &at("queue/logical_block_size"), 1),
        write_cache_fact(system, directory),
    ];
    let words: &[(&str, &str)] = match kind {
        LayerKind::DeviceMapper => &[("name", "dm/name"), ("uuid", "dm/uuid"), ("suspended", "dm/suspended")],
        LayerKind::Md => &[
            ("level", "md/level"),
            ("members", "md/raid_disks"),
            ("missing members", "md/degraded"),
            ("state", "md/array_state"),
            ("doing", "md/sync_action"),
        ],
        LayerKind::Bcache => &[
            ("state", "bcache/state"),
            ("mode", "bcache/cache_mode"),
            ("backing device", "bcache/backing_dev_name"),
            ("not written back", "bcache/dirty_data"),
        ],
        _ => &[],
    };
    facts.extend(words.iter().map(|(name, file)| word_fact(system, name, &at(file))));
    if *kind == LayerKind::Md {
        facts.push(size_fact(system, "chunk", &at("md/chunk_size"), 1));
    }
    facts
}

/// What the device declares: the kernel passes a flush on only to one with a volatile cache.
fn write_cache_fact(system: &System, directory: &str) -> NamedFact {
    word_fact(system, Layer::WRITE_CACHE, &format!("{directory}/queue/write_cache"))
}

fn loop_facts(system: &System, directory: &str) -> Vec<NamedFact> {
    let at = |file: &str| format!("{directory}/loop/{file}");
    vec![
        write_cache_fact(system, directory),
        size_fact(system, "begins at", &at("offset"), 1),
        size_fact(system, "size limit", &at("sizelimit"), 1),
        word_fact(system, "detaches itself", &at("autoclear")),
    ]
}
