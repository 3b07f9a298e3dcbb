//! A disk that is served as a resumable block device: a small file, from which another process knows what to take over.
//!
//! The file is below `/run`, which a restart empties, as it ends the block device.
//!
//! Cannot see: a disk that lost its power while its bridge kept the link. If the disk reports that, the next flush fails.

use crate::claim::Claim;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trueio_uas::disk::Facts;

/// The folder of the files. A restart empties it.
pub const SERVED: &str = "/run/trueio/usb-serve";

/// The version of the file.
const VERSION: u32 = 1;

/// A served disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedDisk {
    version: u32,
    /// The kernel's name of the interface (`2-1:1.0`).
    pub interface: String,
    /// Its node of usbfs. A disk that is plugged in again gets another one.
    pub node: PathBuf,
    /// The number of the ublk device.
    pub number: u32,
    /// How long the block device waits for another server, in milliseconds.
    pub wait_ms: u64,
    /// Number of the logical unit, from 0.
    pub lun: u8,
    /// The serial number that the disk reports.
    pub serial: Option<String>,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Number of blocks.
    pub block_count: u64,
    /// True if nothing is written.
    pub is_read_only: bool,
}

/// Why a disk cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum ServedError {
    /// There is no file.
    #[error("no server of this disk left a block device behind: it had none with --resumable, or the time is over")]
    None,
    /// The file cannot be used.
    #[error("`{}` cannot be used", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl ServedDisk {
    /// A disk that is about to be served as ublk device `number`.
    pub fn new(plan: &Claim, facts: &Facts, number: u32, wait: Duration, is_read_only: bool) -> Self {
        Self {
            version: VERSION,
            interface: plan.name.clone(),
            node: plan.interface.node.clone(),
            number,
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            lun: facts.lun,
            serial: facts.serial.clone(),
            block_bytes: facts.capacity.block_bytes,
            block_count: facts.capacity.block_count,
            is_read_only,
        }
    }

    /// How long the block device waits for another server.
    pub fn wait(&self) -> Duration {
        Duration::from_millis(self.wait_ms)
    }

    /// Writes the file, completely or not at all.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn save(&self) -> io::Result<()> {
        self.save_in(Path::new(SERVED))
    }

    fn save_in(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let path = file_of(folder, &self.interface);
        let temporary = path.with_extension("new");
        std::fs::write(&temporary, serde_json::to_string_pretty(self).map_err(io::Error::other)?)?;
        std::fs::rename(temporary, path)
    }

    /// Reads the file of an interface.
    ///
    /// # Errors
    /// [`ServedError`].
    pub fn load(interface: &str) -> Result<Self, ServedError> {
        Self::load_from(Path::new(SERVED), interface)
    }

    fn load_from(folder: &Path, interface: &str) -> Result<Self, ServedError> {
        let path = file_of(folder, interface);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(ServedError::None),
            Err(source) => return Err(ServedError::File { path, source }),
        };
        let found: Result<Self, _> = serde_json::from_str(&text);
        match found {
            Ok(found) if found.version == VERSION => Ok(found),
            Ok(found) => {
                let source = io::Error::new(io::ErrorKind::InvalidData, format!("unknown version {}", found.version));
                Err(ServedError::File { path, source })
            }
            Err(error) => Err(ServedError::File { path, source: error.into() }),
        }
    }

    /// Removes the file of an interface. A missing file is no error.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn clear(interface: &str) -> io::Result<()> {
        match std::fs::remove_file(file_of(Path::new(SERVED), interface)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    /// Returns why a disk at this interface cannot be the one that was served, before it is claimed.
    pub fn differs_from(&self, plan: &Claim) -> Option<String> {
        (self.node != plan.interface.node).then(|| {
            "it was unplugged after its server had died: writes that the server acknowledged may be lost".to_owned()
        })
    }

    /// Returns why a disk is not the one that was served, from its facts.
    pub fn differs_from_facts(&self, facts: &Facts) -> Option<String> {
        let words = |serial: &Option<String>, blocks: u64, bytes: u32| {
            format!("serial number {}, {blocks} blocks of {bytes} bytes", serial.as_deref().unwrap_or("none"))
        };
        let then = words(&self.serial, self.block_count, self.block_bytes);
        let now = words(&facts.serial, facts.capacity.block_count, facts.capacity.block_bytes);
        (then != now).then(|| format!("it was another disk ({then}); this one has {now}"))
    }
}

/// The name of an interface has no `/`: it is one of a folder of sysfs.
fn file_of(folder: &Path, interface: &str) -> PathBuf {
    folder.join(format!("{interface}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_uas::disk::Quirks;
    use trueio_uas::scsi::{BlockLimits, Capacity, Inquiry, Provisioning};

    fn served() -> ServedDisk {
        ServedDisk {
            version: VERSION,
            interface: "2-1:1.0".into(),
            node: "/dev/bus/usb/002/003".into(),
            number: 4,
            wait_ms: 60_000,
            lun: 0,
            serial: Some("STICK".into()),
            block_bytes: 512,
            block_count: 1000,
            is_read_only: false,
        }
    }

    fn facts(serial: &str, block_count: u64) -> Facts {
        let capacity =
            Capacity { block_count, block_bytes: 512, physical_bytes: 512, can_unmap: false, unmapped_is_zero: false };
        Facts {
            lun: 0,
            inquiry: Inquiry::default(),
            serial: Some(serial.into()),
            capacity,
            caching: None,
            limits: BlockLimits::default(),
            provisioning: Provisioning::default(),
            quirks: Quirks::default(),
        }
    }

    #[test]
    fn a_file_is_read_as_it_was_written_and_a_bad_one_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let served = served();
        served.save_in(folder.path()).expect("it is writable");
        assert_eq!(ServedDisk::load_from(folder.path(), "2-1:1.0").expect("it is there"), served);
        assert!(matches!(ServedDisk::load_from(folder.path(), "2-2:1.0"), Err(ServedError::None)));
        ServedDisk { version: 9, ..served }.save_in(folder.path()).expect("it is writable");
        assert!(matches!(ServedDisk::load_from(folder.path(), "2-1:1.0"), Err(ServedError::File { .. })));
        std::fs::write(folder.path().join("2-1:1.0.json"), "{").expect("it is writable");
        assert!(matches!(ServedDisk::load_from(folder.path(), "2-1:1.0"), Err(ServedError::File { .. })));
    }

    #[test]
    fn another_disk_and_one_that_was_unplugged_are_not_taken_over() {
        assert_eq!(served().differs_from_facts(&facts("STICK", 1000)), None);
        let why = served().differs_from_facts(&facts("OTHER", 1000)).expect("another disk");
        assert!(why.contains("STICK") && why.contains("OTHER"), "{why}");
        assert!(served().differs_from_facts(&facts("STICK", 1001)).is_some(), "another size");
    }
}
