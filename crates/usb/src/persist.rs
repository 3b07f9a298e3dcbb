//! Keeps a quirk over a restart: one line in a file of our own below `/etc/modprobe.d`.
//!
//! `modprobe` takes the last `options` line of a parameter and forgets the others, so all entries
//! stand in one line, and a line in another file, or a word of the kernel's command line, is a reason to refuse: one of
//! the two would be lost. What is to be done is asked before the disk is touched, so that a refusal finds it as it was. The initramfs has a copy of these files; rebuilding it is left to the user, who knows his
//! distribution.
//!
//! Cannot see: whether `usb-storage` is loaded by the initramfs or later; the boot loader.
//!
//! Source: modprobe.d(5); Linux `Documentation/admin-guide/kernel-parameters.txt`,
//! `usb-storage.quirks`.

use std::io;
use std::path::{Path, PathBuf};
use trueio_device::System;
use trueio_device::usb::{PERSIST_FILE, quirks};

/// What our file opens with.
const HEAD: &str = "# Written by `trueio usb switch --persist`; `--unpersist` takes an entry out again.\n";

/// What is done to the file.
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
    /// Another file, or the kernel's command line, sets the same parameter.
    #[error("`{path}` sets the quirks of usb-storage, too (`{line}`): modprobe would take only one of the two")]
    Other {
        /// Which file.
        path: String,
        /// Its line, or the word of the command line.
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

/// What is to be done to the file so that a device has `entry` (`VID:PID:flags`), or none, after a restart. It is asked
/// before the disk is touched, and done by [`persist`].
///
/// # Errors
/// [`PersistError`]: it cannot be done, or would not count.
pub fn plan_persist(
    system: &System,
    vendor: u16,
    product: u16,
    entry: Option<&str>,
) -> Result<Persisted, PersistError> {
    let before = ours(system);
    let Some(entry) = entry else {
        // What another line says of this device would count.
        return match others(system).into_iter().find(|(_, line)| {
            let quirks = quirks_of(line).unwrap_or_default();
            quirks::entry_letters(quirks, vendor, product).is_some()
        }) {
            Some((path, line)) => Err(PersistError::Other { path, line }),
            None => Ok(plan_unpersist(system, vendor, product)),
        };
    };
    let quirks = quirks::with_entry(before.as_deref().unwrap_or(""), vendor, product, entry)?;
    if trueio_device::usb::Driver::find(system, "usb-storage").is_built_in {
        return Err(PersistError::BuiltIn { quirks });
    }
    if let Some((path, line)) = others(system).into_iter().next() {
        return Err(PersistError::Other { path, line });
    }
    if before.as_deref() == Some(&quirks) {
        return Ok(Persisted::Unchanged);
    }
    Ok(Persisted::Written { line: line(&quirks) })
}

/// What is to be done to the file so that it has no entry of a device.
pub fn plan_unpersist(system: &System, vendor: u16, product: u16) -> Persisted {
    let Some(before) = ours(system) else { return Persisted::Unchanged };
    let quirks = quirks::without_entry(&before, vendor, product);
    if quirks == before {
        Persisted::Unchanged
    } else if quirks.is_empty() {
        Persisted::Removed
    } else {
        Persisted::Written { line: line(&quirks) }
    }
}

/// Does what was planned.
///
/// # Errors
/// [`PersistError::Io`].
pub fn persist(system: &System, planned: &Persisted) -> Result<(), PersistError> {
    let path = system.locate(PERSIST_FILE);
    let result = match planned {
        Persisted::Unchanged => Ok(()),
        Persisted::Removed => std::fs::remove_file(&path),
        Persisted::Written { line } => write(&path, line),
    };
    result.map_err(|source| PersistError::Io { path, source })
}

/// The quirks of a line `options usb-storage … quirks=…`, or of a word `usb-storage.quirks=…` of the kernel's command line.
fn quirks_of(line: &str) -> Option<&str> {
    if let Some(quirks) = ["usb-storage.quirks=", "usb_storage.quirks="].iter().find_map(|head| line.strip_prefix(head))
    {
        return Some(quirks);
    }
    let mut words = line.split_whitespace();
    let is_ours = words.next() == Some("options") && matches!(words.next(), Some("usb-storage" | "usb_storage"));
    if is_ours { words.find_map(|word| word.strip_prefix("quirks=")) } else { None }
}

fn ours(system: &System) -> Option<String> {
    let text = std::fs::read_to_string(system.locate(PERSIST_FILE)).ok()?;
    text.lines().find_map(quirks_of).map(str::to_owned)
}

/// Who else sets the parameter: path and line. modprobe takes the words of the kernel's command line, too (modprobe(8)).
fn others(system: &System) -> Vec<(String, String)> {
    let mut found = Vec::new();
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
            let lines = text.lines().filter(|line| quirks_of(line).is_some());
            found.extend(lines.map(|line| (path.clone(), line.trim().to_owned())));
        }
    }
    let path = "/proc/cmdline";
    let text = std::fs::read_to_string(system.locate(path)).unwrap_or_default();
    let words = text.split_whitespace().filter(|word| quirks_of(word).is_some());
    found.extend(words.map(|word| (path.to_owned(), word.to_owned())));
    found
}

fn line(quirks: &str) -> String {
    format!("options usb-storage quirks={quirks}")
}

/// Whole or not at all.
fn write(path: &Path, line: &str) -> io::Result<()> {
    let beside = path.with_extension("conf.new");
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&beside, format!("{HEAD}{line}\n"))?;
    std::fs::File::open(&beside)?.sync_all()?;
    std::fs::rename(&beside, path)
}
