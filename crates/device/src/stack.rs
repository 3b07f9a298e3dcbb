//! The way from a file down to the disks.
//!
//! A filesystem stands on a device; a partition is a part of a whole disk; dm and md devices stand
//! on their slaves; a loop device stands on a file, which lies on a filesystem again. Each step is a
//! link or a small file of sysfs.
//!
//! Which disks are counted: the first whole disks on the way down that have no slaves, for they see
//! exactly our requests. A loop device is such a disk. What lies below its file is in the stack, so
//! that a loop device on tmpfs is seen to be one, but it is not counted: the file's filesystem may
//! serve the requests from the page cache, and others use the same disk.
//!
//! Cannot see: the pool below ZFS; an external journal, log or real-time device; disks behind a
//! network filesystem; an overlay's upper directory that lies in another mount namespace.

use crate::disk::{device_number_at, disk_facts};
use crate::identity::{DeviceNumber, PathIdentity, parse_number};
use crate::mounts::{Mount, mount_of};
use crate::system::System;
use std::path::Path;
use trueio_model::{DiskFacts, Fact, Layer, NamedFact, units};

/// More layers than anybody stacks; a loop device on a file on itself cannot make us go round.
const DEPTH_MAX: u32 = 24;

/// The layers found so far, and the disks at their bottom.
pub(crate) struct Stack<'a> {
    system: &'a System,
    mounts: &'a [Mount],
    pub(crate) layers: Vec<Layer>,
    pub(crate) disks: Vec<DiskFacts>,
}

/// Whether the disks found on the way are those that count our I/O.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Disks {
    Counted,
    /// Below a loop device's file.
    Named,
}

impl<'a> Stack<'a> {
    pub(crate) fn new(system: &'a System, mounts: &'a [Mount]) -> Self {
        Self { system, mounts, layers: Vec::new(), disks: Vec::new() }
    }

    /// From a path on a mounted filesystem downwards.
    pub(crate) fn descend_from_path(&mut self, kind: &str, identity: &PathIdentity) {
        self.file(kind, identity, 0, Disks::Counted);
    }

    /// From a block device downwards.
    pub(crate) fn descend_from_device(&mut self, number: DeviceNumber) {
        self.device(number, 0, Disks::Counted);
    }

    fn push(&mut self, kind: &str, name: String, source: String, depth: u32) {
        self.push_with(kind, name, source, depth, Vec::new());
    }

    fn push_with(&mut self, kind: &str, name: String, source: String, depth: u32, facts: Vec<NamedFact>) {
        let layer = Layer { kind: kind.to_owned(), name, source, depth, facts };
        if !self.layers.contains(&layer) {
            self.layers.push(layer);
        }
    }

    fn file(&mut self, kind: &str, identity: &PathIdentity, depth: u32, disks: Disks) {
        self.push(kind, identity.path.display().to_string(), "stat".to_owned(), depth);
        let Some(mount) = mount_of(self.mounts, identity) else {
            let source = "no mount in /proc/self/mountinfo has this path".to_owned();
            self.push("filesystem", "not known".to_owned(), source, depth + 1);
            return;
        };
        self.filesystem(mount, depth + 1, disks);
    }

    fn filesystem(&mut self, mount: &Mount, depth: u32, disks: Disks) {
        if depth > DEPTH_MAX {
            return;
        }
        let source = "/proc/self/mountinfo".to_owned();
        self.push("filesystem", format!("{} on {}", mount.kind, mount.mount_point.display()), source, depth);
        if mount.kind == "overlay" {
            return self.overlay(mount, depth + 1, disks);
        }
        for number in devices_of(self.system, mount) {
            self.device(number, depth + 1, disks);
        }
    }

    /// Files of an overlay lie on the filesystem of its upper directory; unchanged ones on those
    /// below it, which are not followed: what is written goes up.
    fn overlay(&mut self, mount: &Mount, depth: u32, disks: Disks) {
        let Some(upper) = mount.super_option("upperdir") else {
            let source = "the overlay has no upper directory: it is read-only".to_owned();
            return self.push("directory", "overlay without an upper directory".to_owned(), source, depth);
        };
        match self.system.identify(Path::new(upper)) {
            Ok(identity) => self.file("directory", &identity, depth, disks),
            Err(error) => {
                let source = format!(
                    "the overlay's upper directory is not seen from here ({error}): it lies in another mount \
                     namespace, as in a container"
                );
                self.push("directory", upper.to_owned(), source, depth);
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
            return self.push("device", format!("{major}:{minor}"), format!("{link} does not exist"), depth);
        };
        let name = directory.rsplit('/').next().unwrap_or_default().to_owned();
        if self.system.exists(&format!("{directory}/partition")) {
            self.push_with("partition", name, link, depth, partition_facts(self.system, &directory));
            let whole = directory.rsplit_once('/').map_or("", |(parent, _)| parent);
            if let Some(number) = device_number_at(self.system, whole) {
                self.device(number, depth + 1, disks);
            }
            return;
        }
        let slaves = self.system.list(&format!("{directory}/slaves"));
        if !slaves.is_empty() {
            let (kind, name) = self.stacked(&directory, &name);
            let facts = stacked_facts(self.system, kind, &directory);
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
        match self.system.read(&format!("{directory}/loop/backing_file")) {
            Ok(backing) => self.loop_device(&directory, &name, &backing, link, depth),
            Err(_) => self.push("disk", name, link, depth),
        }
    }

    /// What kind of stacked device it is, and its name for people.
    fn stacked(&self, directory: &str, name: &str) -> (&'static str, String) {
        if let Ok(dm_name) = self.system.read(&format!("{directory}/dm/name")) {
            // The part before the first hyphen says who made it: CRYPT-LUKS2-…, LVM-…, mpath-….
            let uuid = self.system.read(&format!("{directory}/dm/uuid")).unwrap_or_default();
            let maker = uuid.split('-').next().unwrap_or_default().to_ascii_lowercase();
            let words: Vec<&str> = [maker.as_str(), dm_name.as_str()].into_iter().filter(|w| !w.is_empty()).collect();
            return ("dm", format!("{name} ({})", words.join(" ")));
        }
        if let Ok(level) = self.system.read(&format!("{directory}/md/level")) {
            return ("md", format!("{name} ({level})"));
        }
        if self.system.exists(&format!("{directory}/bcache")) {
            return ("bcache", name.to_owned());
        }
        ("stacked", name.to_owned())
    }

    fn loop_device(&mut self, directory: &str, name: &str, backing: &str, link: String, depth: u32) {
        let how = match self.system.read(&format!("{directory}/loop/dio")).as_deref() {
            Ok("1") => "direct",
            Ok(_) => "buffered",
            Err(_) => "not known whether direct",
        };
        let facts = loop_facts(self.system, directory);
        self.push_with("loop", format!("{name} ({how})"), format!("{link}, loop/dio"), depth, facts);
        match self.system.identify(Path::new(backing)) {
            // A loop device may stand on another block device.
            Ok(identity) if identity.device != (0, 0) => self.device(identity.device, depth + 1, Disks::Named),
            Ok(identity) => self.file("file", &identity, depth + 1, Disks::Named),
            Err(error) => {
                let source = format!("{directory}/loop/backing_file; it is not seen from here ({error})");
                self.push("file", backing.to_owned(), source, depth + 1);
            }
        }
    }
}

/// A number of sysfs as a size in words; `unit` is what it counts, in bytes.
fn size_fact(system: &System, name: &str, path: &str, unit: u64) -> NamedFact {
    let fact: Fact<u64> = system.number(path);
    let fact = Fact { value: fact.value.map(|n| units::format_bytes(n.saturating_mul(unit))), source: fact.source };
    NamedFact { name: name.to_owned(), fact }
}

fn word_fact(system: &System, name: &str, path: &str) -> NamedFact {
    NamedFact { name: name.to_owned(), fact: system.text(path) }
}

/// Sectors of `start` and `size` are 512 bytes, whatever the disk's are: `Documentation/block/stat.rst`.
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

/// What a device that stands on others tells of itself.
fn stacked_facts(system: &System, kind: &str, directory: &str) -> Vec<NamedFact> {
    let at = |file: &str| format!("{directory}/{file}");
    let mut facts = vec![
        size_fact(system, "size", &at("size"), 512),
        size_fact(system, "logical sector", &at("queue/logical_block_size"), 1),
        word_fact(system, "write cache", &at("queue/write_cache")),
    ];
    let words: &[(&str, &str)] = match kind {
        "dm" => &[("name", "dm/name"), ("uuid", "dm/uuid"), ("suspended", "dm/suspended")],
        "md" => &[
            ("level", "md/level"),
            ("members", "md/raid_disks"),
            ("missing members", "md/degraded"),
            ("state", "md/array_state"),
            ("doing", "md/sync_action"),
        ],
        "bcache" => &[
            ("state", "bcache/state"),
            ("mode", "bcache/cache_mode"),
            ("backing device", "bcache/backing_dev_name"),
            ("not written back", "bcache/dirty_data"),
        ],
        _ => &[],
    };
    facts.extend(words.iter().map(|(name, file)| word_fact(system, name, &at(file))));
    if kind == "md" {
        facts.push(size_fact(system, "chunk", &at("md/chunk_size"), 1));
    }
    facts
}

fn loop_facts(system: &System, directory: &str) -> Vec<NamedFact> {
    let at = |file: &str| format!("{directory}/loop/{file}");
    vec![
        size_fact(system, "begins at", &at("offset"), 1),
        size_fact(system, "size limit", &at("sizelimit"), 1),
        word_fact(system, "detaches itself", &at("autoclear")),
    ]
}

/// The block devices of a mounted filesystem; empty if it has none.
///
/// btrfs says in sysfs which devices it has. Others name theirs by number in mountinfo, or by path
/// in the mount's source (bcachefs: several, with colons between).
pub(crate) fn devices_of(system: &System, mount: &Mount) -> Vec<DeviceNumber> {
    let named: Vec<DeviceNumber> = if mount.device.0 != 0 {
        vec![mount.device]
    } else if mount.source.starts_with('/') {
        mount.source.split(':').filter_map(|path| device_number_of(system, path)).collect()
    } else {
        Vec::new()
    };
    if mount.kind != "btrfs" {
        return named;
    }
    for filesystem in system.list("/sys/fs/btrfs") {
        let members: Vec<DeviceNumber> = btrfs_devices(system, &filesystem);
        if members.iter().any(|member| named.contains(member)) {
            return members;
        }
    }
    named
}

/// The devices of a mounted btrfs, by its UUID.
pub(crate) fn btrfs_devices(system: &System, uuid: &str) -> Vec<DeviceNumber> {
    let directory = format!("/sys/fs/btrfs/{uuid}/devices");
    system.list(&directory).iter().filter_map(|name| device_number_at(system, &format!("{directory}/{name}"))).collect()
}

/// The device number behind a path such as `/dev/mapper/home`. Where the node is not there (a
/// container has few), the kernel's name is looked for in sysfs.
pub(crate) fn device_number_of(system: &System, path: &str) -> Option<DeviceNumber> {
    if let Ok(identity) = system.identify(Path::new(path))
        && identity.device != (0, 0)
    {
        return Some(identity.device);
    }
    let name = path.strip_prefix("/dev/")?;
    if let Some(mapped) = name.strip_prefix("mapper/") {
        return system.list("/sys/block").iter().find_map(|disk| {
            let is_it = system.read(&format!("/sys/block/{disk}/dm/name")).is_ok_and(|found| found == mapped);
            if is_it { device_number_at(system, &format!("/sys/block/{disk}")) } else { None }
        });
    }
    // The kernel writes a slash in a name (`cciss/c0d0`) as an exclamation mark.
    let name = name.replace('/', "!");
    parse_number(&system.read(&format!("/sys/class/block/{name}/dev")).ok()?)
}
