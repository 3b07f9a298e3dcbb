//! The files of loop devices, and where they are on the disks below.
//!
//! A loop device has requests of its own, and reports no hop: its driver reads and writes a file. The extents of that file
//! (`FIEMAP`) give the place of each of its bytes, as for a measured file. So a request of the loop device is found again on the disk
//! below, also if the file is on another loop device, on dm or md, or is a block device itself.
//!
//! Requests of disks below are kept apart from those of the measured disks: other programs use these disks, too, at other places than the file.
//!
//! Cannot see: files that can no longer be opened by their name (another mount namespace, deleted); files on filesystems without
//! disk offsets (tmpfs, overlays).
//!
//! Source: loop(4) (`LOOP_GET_STATUS64`); Linux `drivers/block/loop.c`.

use super::extents::{FileExtents, FileLocation};
use super::layers::{Layers, TracedDisk};
use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use trueio_device::{FileId, LoopStatus, System};

/// A loop device whose file is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopFile {
    /// Kernel name (`loop0`).
    pub name: String,
    /// Device number, in the kernel's internal encoding.
    pub device: u32,
    /// The first byte of the device in its file.
    pub offset_bytes: u64,
    /// The file's extents.
    pub extents: FileExtents,
    /// True if the extents are those before and after the phase: what neither has is a hole.
    pub is_mapped: bool,
}

impl LoopFile {
    /// Returns true if the file had no place for a part of this range when the phase ended.
    pub(crate) fn is_hole_after(&self, offset: u64, length: u64) -> bool {
        self.is_mapped && !self.extents.has_after(offset, length)
    }
}

/// The loop devices under measured files, and what is below them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loops {
    /// Those whose files are known.
    pub files: Vec<LoopFile>,
    /// Device numbers of the others.
    pub unknown: Vec<u32>,
    /// The reason why the first of the others is unknown, with its name.
    pub missing: Option<String>,
    /// The disks of the files, and the devices above those.
    pub layers: Layers,
}

impl Loops {
    pub(crate) fn file_of(&self, device: u32) -> Option<&LoopFile> {
        self.files.iter().find(|file| file.device == device)
    }

    /// Returns true if the device is a loop device.
    pub(crate) fn has(&self, device: u32) -> bool {
        self.unknown.contains(&device) || self.file_of(device).is_some()
    }
}

/// The open files of loop devices. They are opened for their extents only; nothing is read.
#[derive(Debug, Default)]
pub(crate) struct OpenLoops {
    /// One per entry of `seen.files`: the file, its location, and the length of the device.
    files: Vec<(File, FileLocation, u64)>,
    pub(crate) seen: Loops,
}

impl OpenLoops {
    /// Opens the files of those of the disks that are loop devices, and of loop devices below them.
    pub(crate) fn below(system: &System, disks: &[TracedDisk]) -> Self {
        let mut open = Self::default();
        let mut pending: Vec<TracedDisk> = disks.to_vec();
        while let Some(disk) = pending.pop() {
            let directory = format!("/sys/dev/block/{}:{}", disk.device >> 20, disk.device & 0xf_ffff);
            // A recorded machine has no device that could be opened.
            let is_loop = system.is_live() && system.locate(&format!("{directory}/loop")).exists();
            if !is_loop || open.seen.has(disk.device) {
                continue;
            }
            match open.add(system, &disk, &directory) {
                Ok(below) => pending.extend(below),
                Err(why) => {
                    open.seen.unknown.push(disk.device);
                    open.seen.missing.get_or_insert(format!("{}: {why}", disk.name));
                }
            }
        }
        open
    }

    /// Adds a loop device; returns the disks of its file.
    fn add(&mut self, system: &System, disk: &TracedDisk, directory: &str) -> Result<Vec<TracedDisk>, String> {
        let read = |file: &str| std::fs::read_to_string(system.locate(&format!("{directory}/{file}")));
        let path = read("loop/backing_file").map_err(|error| format!("its file is unknown ({error})"))?;
        let path = Path::new(path.trim_end_matches('\n'));
        let sectors = read("size").ok().and_then(|text| text.trim().parse::<u64>().ok());
        let size_bytes = sectors.ok_or("its size is unknown")? * 512;
        let open = |path: &Path| {
            let mut options = File::options();
            options.read(true).custom_flags(libc::O_NONBLOCK);
            options.open(path).map_err(|error| format!("`{}` cannot be opened ({error})", path.display()))
        };
        let device = open(&Path::new("/dev").join(&disk.name))?;
        let status = LoopStatus::of(&device).map_err(|error| format!("its status is unknown ({error})"))?;
        let file = open(path)?;
        let metadata = file.metadata().map_err(|error| format!("stat: {error}"))?;
        if (FileId { device: metadata.dev(), inode: metadata.ino() }) != status.file {
            return Err(format!("`{}` is another file than its own", path.display()));
        }
        let facts = trueio_device::target_facts_unasked(system, path).map_err(|error| error.to_string())?;
        let location = FileLocation::of(system, &file, &[facts])?;
        let (before, _) = location.pieces(&file, status.offset_bytes, size_bytes)?;
        self.seen.layers.join(&location.layers);
        self.seen.files.push(LoopFile {
            name: disk.name.clone(),
            device: disk.device,
            offset_bytes: status.offset_bytes,
            extents: FileExtents {
                path: path.display().to_string(),
                space: location.space.clone(),
                moves_on_write: location.moves_on_write,
                before,
                after: Vec::new(),
            },
            is_mapped: false,
        });
        let below = location.layers.disks.clone();
        self.files.push((file, location, size_bytes));
        Ok(below)
    }

    /// Maps the files again, and returns what is known of all.
    pub(crate) fn end(mut self, system: &System) -> Loops {
        for ((file, location, size_bytes), seen) in self.files.iter_mut().zip(&mut self.seen.files) {
            let refreshed = location.refresh(system, file);
            let mapped = refreshed.and_then(|()| location.pieces(file, seen.offset_bytes, *size_bytes));
            // Without extents at the end, no place is certain.
            seen.is_mapped = mapped.is_ok();
            let (after, _) = mapped.unwrap_or_default();
            seen.extents.space = location.space.clone();
            seen.extents.after = after;
        }
        self.seen
    }
}
