//! The block devices below measured files: disks whose requests are traced, and the devices that pass I/O on to them.
//!
//! A dm or md device has no queue of its own: it passes each I/O on to its members (`slaves` in sysfs), and the
//! kernel reports each hop (`block_bio_remap`). A member may be a partition; the hop onto it carries its disk's number with a
//! sector counted from the partition, and a second hop, from the partition, follows at once. The head of NVMe multipath passes
//! I/O on to a path, whose number is in no file of sysfs, with the same sectors; its paths' requests count as its own.
//!
//! Cannot see: below bcache and request-based dm multipath, which report no such hops; disks without a request queue (zram).
//! A device that reports none for another reason (dm's `raid` target) is noticed when the requests are matched.
//!
//! Source: Linux `include/trace/events/block.h` (`block_bio_remap`), `drivers/nvme/host/multipath.c`; `/sys/dev/block`.

use super::tracefs::RecordedDevices;
use trueio_device::System;
use trueio_model::WriteCache;

/// A disk whose requests can be traced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedDisk {
    /// Kernel name (`vda`).
    pub name: String,
    /// Device number, in the kernel's internal encoding.
    pub device: u32,
    /// True if the disk declares a volatile write cache, so that only flushed data survives a power cut.
    pub has_volatile_cache: bool,
    /// True if an I/O scheduler may hold its requests back (`queue/scheduler` is not `none`).
    pub has_scheduler: bool,
    /// True for the head of NVMe multipath, whose requests carry the numbers of its paths.
    pub has_paths: bool,
}

/// A device that passes I/O on to others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassingDevice {
    /// Kernel name (`dm-0`, `md127`).
    pub name: String,
    /// Device number, in the kernel's internal encoding.
    pub device: u32,
}

/// The block devices below measured files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layers {
    /// Disks, whose requests are traced.
    pub disks: Vec<TracedDisk>,
    /// Devices that pass I/O on (dm, md).
    pub passing: Vec<PassingDevice>,
    /// Partitions that I/O is passed on to, each with the number of its disk.
    pub partitions: Vec<(u32, u32)>,
}

/// The maximum number of devices below each other.
pub(crate) const DEPTH_MAX: u32 = 24;

/// Returns a device number in the kernel's internal encoding, which has 20 bits for the minor number.
pub(crate) fn encode(major: u32, minor: u32) -> u32 {
    major << 20 | minor
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, one: T) {
    if !list.contains(&one) {
        list.push(one);
    }
}

impl Layers {
    /// Adds a device and all below it. Returns the number of the whole device, and the start of the given one on it, in bytes.
    ///
    /// # Errors
    /// A sentence with the reason why its requests cannot be followed.
    pub(crate) fn add(&mut self, system: &System, major: u32, minor: u32) -> Result<(u32, u64), String> {
        self.add_at(system, major, minor, 0)
    }

    fn add_at(&mut self, system: &System, major: u32, minor: u32, depth: u32) -> Result<(u32, u64), String> {
        if depth > DEPTH_MAX {
            return Err("its devices are stacked in a circle".to_owned());
        }
        let read = |path: &str| std::fs::read_to_string(system.locate(path)).map(|text| text.trim().to_owned());
        let mut directory = format!("/sys/dev/block/{major}:{minor}");
        let mut start_bytes = 0;
        if let Ok(start) = read(&format!("{directory}/start")) {
            start_bytes = start.parse::<u64>().map_err(|_| format!("`{directory}/start` is no number"))? * 512;
            directory += "/..";
        }
        let dev = read(&format!("{directory}/dev")).map_err(|_| format!("/sys has no disk {major}:{minor}"))?;
        let name = std::fs::canonicalize(system.locate(&directory))
            .ok()
            .and_then(|found| Some(found.file_name()?.to_string_lossy().into_owned()))
            .ok_or_else(|| format!("`{directory}` cannot be resolved"))?;
        let parse = |text: &str| {
            let (major, minor) = text.split_once(':')?;
            Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
        };
        let (whole_major, whole_minor) = parse(&dev).ok_or_else(|| format!("`{directory}/dev` is no device number"))?;
        let device = encode(whole_major, whole_minor);
        if depth > 0 && start_bytes > 0 {
            push_new(&mut self.partitions, (encode(major, minor), device));
        }
        let mut slaves: Vec<String> = std::fs::read_dir(system.locate(&format!("{directory}/slaves")))
            .map(|slaves| slaves.flatten().map(|slave| slave.file_name().to_string_lossy().into_owned()).collect())
            .unwrap_or_default();
        slaves.sort_unstable();
        if slaves.is_empty() {
            let disk = disk_at(system, &directory, name, device)?;
            push_new(&mut self.disks, disk);
            return Ok((device, start_bytes));
        }
        if system.locate(&format!("{directory}/bcache")).exists() {
            return Err(format!("{name} is a bcache, which does not report where it passes I/O on to"));
        }
        if read(&format!("{directory}/dm/uuid")).is_ok_and(|uuid| uuid.starts_with("mpath-")) {
            return Err(format!("{name} is a multipath of the device mapper, whose requests are not followed"));
        }
        push_new(&mut self.passing, PassingDevice { name: name.clone(), device });
        for slave in slaves {
            let dev = read(&format!("{directory}/slaves/{slave}/dev")).unwrap_or_default();
            let (major, minor) = parse(&dev).ok_or_else(|| format!("the number of {slave} under {name} is unknown"))?;
            self.add_at(system, major, minor, depth + 1)?;
        }
        Ok((device, start_bytes))
    }

    /// Adds those of another file.
    pub(crate) fn join(&mut self, other: &Self) {
        other.disks.iter().for_each(|disk| push_new(&mut self.disks, disk.clone()));
        other.passing.iter().for_each(|device| push_new(&mut self.passing, device.clone()));
        other.partitions.iter().for_each(|pair| push_new(&mut self.partitions, *pair));
    }

    pub(crate) fn passes_on(&self, device: u32) -> bool {
        self.passing.iter().any(|passing| passing.device == device)
    }

    pub(crate) fn disk(&self, device: u32) -> Option<&TracedDisk> {
        self.disks.iter().find(|disk| disk.device == device)
    }

    pub(crate) fn name_of(&self, device: u32) -> &str {
        let passing = self.passing.iter().find(|passing| passing.device == device).map(|passing| &passing.name);
        passing.or(self.disk(device).map(|disk| &disk.name)).map_or("a device", String::as_str)
    }

    /// Returns what the kernel records of these devices.
    pub(crate) fn recorded(&self) -> RecordedDevices {
        let heads = self.disks.iter().filter(|disk| disk.has_paths).map(|disk| disk.device);
        let partitions = self.partitions.iter().map(|(partition, _)| *partition);
        RecordedDevices {
            disks: self.disks.iter().map(|disk| disk.device).collect(),
            has_scheduler: self.disks.iter().any(|disk| disk.has_scheduler),
            passing: self.passing.iter().map(|one| one.device).chain(partitions).chain(heads).collect(),
            has_paths: self.disks.iter().any(|disk| disk.has_paths),
        }
    }
}

fn disk_at(system: &System, directory: &str, name: String, device: u32) -> Result<TracedDisk, String> {
    let read = |path: &str| std::fs::read_to_string(system.locate(path)).map(|text| text.trim().to_owned());
    let has_queue = system.locate(&format!("{directory}/mq")).exists();
    let has_paths = !has_queue && name.starts_with("nvme");
    if !has_queue && !has_paths {
        return Err(format!("{name} has no request queue, so its requests cannot be traced"));
    }
    let cache = read(&format!("{directory}/queue/write_cache"));
    // `none [mq-deadline] kyber`; the brackets mark the one in use. Those of paths are unknown: they count as present.
    let scheduler = read(&format!("{directory}/queue/scheduler")).unwrap_or_default();
    let is_listed = !scheduler.is_empty() && scheduler != "none" && !scheduler.contains("[none]");
    Ok(TracedDisk {
        name,
        device,
        has_volatile_cache: cache.is_ok_and(|text| WriteCache::from(text.clone()) == WriteCache::WriteBack),
        has_scheduler: is_listed || has_paths,
        has_paths,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Writes a device of sysfs: its number, what is in its directory, and its members.
    fn device(root: &Path, name: &str, dev: &str, files: &[(&str, &str)], slaves: &[&str]) {
        let directory = root.join("sys/devices").join(name);
        fs::create_dir_all(directory.join("slaves")).expect("a directory");
        fs::write(directory.join("dev"), dev).expect("a file");
        for (file, text) in files {
            let path = directory.join(file);
            fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            fs::write(path, text).expect("a file");
        }
        for slave in slaves {
            let last = slave.rsplit('/').next().expect("a name");
            std::os::unix::fs::symlink(root.join("sys/devices").join(slave), directory.join("slaves").join(last))
                .expect("a link");
        }
        let link = root.join("sys/dev/block").join(dev);
        fs::create_dir_all(link.parent().expect("a directory")).expect("a directory");
        std::os::unix::fs::symlink(directory, link).expect("a link");
    }

    fn system(root: &Path) -> System {
        fs::write(root.join("paths"), "").expect("a file");
        System::recorded(root).expect("a recorded tree")
    }

    const QUEUE: (&str, &str) = ("mq/0/cpu_list", "0");

    /// Goal: the disks below a logical volume on an array of a partition and a disk are found, and what the kernel must record.
    #[test]
    fn the_disks_below_stacked_devices_and_their_partitions_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        device(root, "sda", "8:0", &[QUEUE, ("queue/write_cache", "write back"), ("queue/scheduler", "[none]")], &[]);
        device(root, "sda/sda1", "8:1", &[("start", "2048")], &[]);
        device(root, "sdb", "8:16", &[QUEUE, ("queue/scheduler", "none [bfq]")], &[]);
        device(root, "md0", "9:0", &[], &["sda/sda1", "sdb"]);
        device(root, "dm-0", "253:0", &[("dm/uuid", "LVM-x")], &["md0"]);
        let mut layers = Layers::default();
        assert_eq!(layers.add(&system(root), 253, 0), Ok((encode(253, 0), 0)));
        let names: Vec<&str> = layers.disks.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!(names, ["sda", "sdb"]);
        assert!(layers.disks[0].has_volatile_cache && !layers.disks[1].has_volatile_cache);
        assert_eq!(layers.partitions, [(encode(8, 1), encode(8, 0))]);
        assert!(layers.passes_on(encode(9, 0)) && layers.passes_on(encode(253, 0)) && !layers.passes_on(encode(8, 0)));
        let recorded = layers.recorded();
        assert_eq!(recorded.disks, [encode(8, 0), encode(8, 16)]);
        assert_eq!(recorded.passing, [encode(253, 0), encode(9, 0), encode(8, 1)]);
        assert_eq!((recorded.has_scheduler, recorded.has_paths), (true, false));
        // The partition itself, as a target: no hop is needed, its start is added.
        let mut plain = Layers::default();
        assert_eq!(plain.add(&system(root), 8, 1), Ok((encode(8, 0), 2048 * 512)));
        assert_eq!(plain.recorded().passing, [0; 0]);
    }

    #[test]
    fn devices_that_report_no_hops_are_refused_and_a_multipath_head_counts_as_a_disk() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        device(root, "sda", "8:0", &[QUEUE], &[]);
        device(root, "zram0", "252:0", &[], &[]);
        device(root, "bcache0", "250:0", &[("bcache/state", "clean")], &["sda"]);
        device(root, "dm-1", "253:1", &[("dm/uuid", "mpath-3600")], &["sda"]);
        device(root, "nvme0n1", "259:2", &[("queue/write_cache", "write back")], &[]);
        let add = |major, minor| Layers::default().add(&system(root), major, minor).expect_err("a reason");
        assert!(add(252, 0).contains("zram0 has no request queue"));
        assert!(add(250, 0).contains("bcache"));
        assert!(add(253, 1).contains("multipath of the device mapper"));
        assert!(add(77, 0).contains("/sys has no disk 77:0"));
        let mut layers = Layers::default();
        assert_eq!(layers.add(&system(root), 259, 2), Ok((encode(259, 2), 0)));
        assert!(layers.disks[0].has_paths && layers.recorded().has_paths);
        assert_eq!(layers.recorded().passing, [encode(259, 2)], "its hops show the paths");
    }
}
