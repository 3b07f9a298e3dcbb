//! Keeps a quirk across restarts: one line in a separate file below `/etc/modprobe.d`.
//!
//! `modprobe` uses the last `options` line of a parameter and ignores the others, so one line holds all
//! entries. A line in another file, or a word of the kernel's command line, is a reason to refuse, because
//! one of the two would be lost. The change is planned before the disk is touched, so a refusal leaves the
//! disk as it was. The initramfs has a copy of these files; the user must rebuild it, because the command
//! differs between distributions.
//!
//! Cannot see: whether the initramfs or the running system loads `usb-storage`; the boot loader.
//!
//! Source: modprobe.d(5); Linux `Documentation/admin-guide/kernel-parameters.txt`, `usb-storage.quirks`.

use std::io;
use std::path::{Path, PathBuf};
use trueio_device::System;
use trueio_device::usb::{PERSIST_FILE, quirks};

/// The first line of the file.
const HEAD: &str = "# Written by `trueio usb switch --persist`; `--unpersist` removes an entry.\n";

/// A change of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Persisted {
    /// The file now holds this line.
    Written {
        /// The line.
        line: String,
    },
    /// The file held nothing else and was removed.
    Removed,
    /// The file needed no change.
    Unchanged,
}

/// The reason why a quirk cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum PersistError {
    /// Another file, or the kernel's command line, sets the same parameter.
    #[error("`{path}` sets the quirks of usb-storage, too (`{line}`): modprobe uses only one of the two lines")]
    Other {
        /// Path of the file.
        path: String,
        /// Its line, or the word of the command line.
        line: String,
    },
    /// The driver is built into the kernel, so modprobe does not set its parameters.
    #[error(
        "usb-storage is part of this kernel: put `usb-storage.quirks={quirks}` on the kernel's command line instead"
    )]
    BuiltIn {
        /// The required value of the parameter.
        quirks: String,
    },
    /// The string is longer than the kernel accepts.
    #[error(transparent)]
    TooLong(#[from] quirks::TooLong),
    /// The file could not be written.
    #[error("`{}` cannot be written", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// Plans the change of the file that gives a device `entry` (`VID:PID:flags`), or none, after a restart. Call
/// it before the disk is touched; [`persist`] makes the change.
///
/// # Errors
/// [`PersistError`]: the change is impossible or would have no effect.
pub fn plan_persist(
    system: &System,
    vendor: u16,
    product: u16,
    entry: Option<&str>,
) -> Result<Persisted, PersistError> {
    let before = ours(system);
    let Some(entry) = entry else {
        // Another line that names this device takes effect.
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

/// Plans the change of the file that removes a device's entry.
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

/// Makes the planned change.
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

/// Returns every other line that sets the parameter: path and line number. modprobe also uses the words of the
/// kernel's command line (modprobe(8)).
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

/// Writes the file completely or not at all.
fn write(path: &Path, line: &str) -> io::Result<()> {
    let temporary = path.with_extension("conf.new");
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&temporary, format!("{HEAD}{line}\n"))?;
    std::fs::File::open(&temporary)?.sync_all()?;
    std::fs::rename(&temporary, path)
}
