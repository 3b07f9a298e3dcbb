//! Keeps a quirk over a restart: one line in a file of our own below `/etc/modprobe.d`.
//!
//! `modprobe` takes the last `options` line of a parameter and forgets the others, so all entries
//! stand in one line, and a line in another file is a reason to refuse: one of the two would be
//! lost. The initramfs has a copy of these files; rebuilding it is left to the user, who knows his
//! distribution.
//!
//! Cannot see: whether `usb-storage` is loaded by the initramfs or later; the boot loader.
//!
//! Source: modprobe.d(5); Linux `Documentation/admin-guide/kernel-parameters.txt`,
//! `usb-storage.quirks`.

use std::io;
use std::path::PathBuf;
use trueio_device::System;
use trueio_device::usb::{PERSIST_FILE, quirks};

/// What our file opens with.
const HEAD: &str = "# Written by `trueio usb switch --persist`; `--unpersist` takes an entry out again.\n";

/// What was done to the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Persisted {
    /// It holds this line now.
    Written {
        /// The line.
        line: String,
    },
    /// It held nothing else, and was removed.
    Removed,
    /// It was as wanted before.
    Unchanged,
}

/// Why a quirk is not kept.
#[derive(Debug, thiserror::Error)]
pub enum PersistError {
    /// Another file sets the same parameter.
    #[error("`{path}` sets the quirks of usb-storage, too (`{line}`): modprobe would take only one of the two lines")]
    Other {
        /// Which file.
        path: String,
        /// Its line.
        line: String,
    },
    /// The driver is part of the kernel, and modprobe is never asked.
    #[error(
        "usb-storage is part of this kernel: put `usb-storage.quirks={quirks}` on the kernel's command line instead"
    )]
    BuiltIn {
        /// What the parameter should be.
        quirks: String,
    },
    /// The string is longer than the kernel takes.
    #[error(transparent)]
    TooLong(#[from] quirks::TooLong),
    /// The file could not be written.
    #[error("`{}` cannot be written", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Keeps `entry` (`VID:PID:flags`) for its device.
///
/// # Errors
/// [`PersistError`]; nothing was written then.
pub fn persist(system: &System, vendor: u16, product: u16, entry: &str) -> Result<Persisted, PersistError> {
    let before = ours(system);
    let quirks = quirks::with_entry(before.as_deref().unwrap_or(""), vendor, product, entry)?;
    if trueio_device::usb::Driver::find(system, "usb-storage").is_built_in {
        return Err(PersistError::BuiltIn { quirks });
    }
    refuse_others(system)?;
    if before.as_deref() == Some(&quirks) {
        return Ok(Persisted::Unchanged);
    }
    write(system, &quirks)
}

/// Takes the entry of a device out again.
///
/// # Errors
/// [`PersistError::Io`].
pub fn unpersist(system: &System, vendor: u16, product: u16) -> Result<Persisted, PersistError> {
    let Some(before) = ours(system) else { return Ok(Persisted::Unchanged) };
    let quirks = quirks::without_entry(&before, vendor, product);
    if quirks == before {
        return Ok(Persisted::Unchanged);
    }
    if !quirks.is_empty() {
        return write(system, &quirks);
    }
    let path = system.locate(PERSIST_FILE);
    std::fs::remove_file(&path).map_err(|source| PersistError::Io { path, source })?;
    Ok(Persisted::Removed)
}

/// The quirks of a line `options usb-storage … quirks=…`.
fn quirks_of(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let is_ours = words.next() == Some("options") && matches!(words.next(), Some("usb-storage" | "usb_storage"));
    if is_ours { words.find_map(|word| word.strip_prefix("quirks=")) } else { None }
}

fn ours(system: &System) -> Option<String> {
    let text = std::fs::read_to_string(system.locate(PERSIST_FILE)).ok()?;
    text.lines().find_map(quirks_of).map(str::to_owned)
}

fn refuse_others(system: &System) -> Result<(), PersistError> {
    for folder in ["/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d"] {
        let Ok(entries) = std::fs::read_dir(system.locate(folder)) else { continue };
        let mut names: Vec<String> = entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort();
        for name in names.iter().filter(|name| name.ends_with(".conf")) {
            let path = format!("{folder}/{name}");
            if path == PERSIST_FILE {
                continue;
            }
            let text = std::fs::read_to_string(system.locate(&path)).unwrap_or_default();
            if let Some(line) = text.lines().find(|line| quirks_of(line).is_some()) {
                return Err(PersistError::Other { path, line: line.trim().to_owned() });
            }
        }
    }
    Ok(())
}

/// Whole or not at all.
fn write(system: &System, quirks: &str) -> Result<Persisted, PersistError> {
    let path = system.locate(PERSIST_FILE);
    let line = format!("options usb-storage quirks={quirks}");
    let beside = path.with_extension("conf.new");
    let result = (|| {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&beside, format!("{HEAD}{line}\n"))?;
        std::fs::File::open(&beside)?.sync_all()?;
        std::fs::rename(&beside, &path)
    })();
    match result {
        Ok(()) => Ok(Persisted::Written { line }),
        Err(source) => Err(PersistError::Io { path, source }),
    }
}
