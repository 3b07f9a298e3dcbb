//! The kernel's log: what it said of a USB disk, and how often it had to help one up.
//!
//! Read from `/dev/kmsg` (which needs CAP_SYSLOG where `kernel.dmesg_restrict` is 1), or from a text
//! as `dmesg` prints it. Lines are counted that name the device by its port (`usb 2-1:`), and those
//! that name its SCSI address or block device after it was last plugged in, because these names are
//! given again to other disks.
//!
//! Cannot see: what the ring buffer has lost; what happened before the last boot; which of two
//! devices was in the port, where both were.
//!
//! Source: Linux `Documentation/ABI/testing/dev-kmsg`; the messages of `drivers/usb/core/hub.c`,
//! `drivers/usb/storage/uas.c`, `drivers/scsi/scsi_error.c`, `block/blk-core.c`.

use crate::system::System;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use trueio_model::{UsbDisk, UsbTrouble};

/// More records than any ring buffer holds.
const RECORD_COUNT_MAX: usize = 1_000_000;

/// One line of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    /// Seconds since boot.
    pub at_s: Option<f64>,
    /// What the kernel wrote.
    pub text: String,
}

/// The kernel's log, oldest line first.
///
/// # Errors
/// Why it cannot be read, in a sentence.
pub fn kernel_log(system: &System) -> Result<Vec<LogLine>, String> {
    if !system.is_live() {
        return match system.read("/dev/kmsg") {
            Ok(text) => Ok(parse_log(&text)),
            Err(_) => Err("the recorded machine has no kernel log".to_owned()),
        };
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open("/dev/kmsg", flags, Mode::empty()).map_err(why)?;
    let mut lines = Vec::new();
    // A record fits 8 KiB (`CONSOLE_EXT_LOG_MAX`); a read gives one.
    let mut buffer = [0; 8192];
    while lines.len() < RECORD_COUNT_MAX {
        match rustix::io::read(&file, &mut buffer) {
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(length) => lines.extend(parse_line(&String::from_utf8_lossy(&buffer[..length]))),
            // Overwritten while we read: the next read goes on with the oldest that is left.
            Err(Errno::PIPE | Errno::INTR) => {}
            Err(error) => return Err(why(error)),
        }
    }
    Ok(lines)
}

fn why(error: Errno) -> String {
    match error {
        Errno::PERM | Errno::ACCESS => "the kernel's log (/dev/kmsg) may not be read by this user; root may".to_owned(),
        _ => format!("the kernel's log (/dev/kmsg) could not be read: {}", std::io::Error::from(error)),
    }
}

/// Reads a log as `/dev/kmsg` or `dmesg` gives it.
pub fn parse_log(text: &str) -> Vec<LogLine> {
    text.lines().filter_map(parse_line).collect()
}

/// `6,339,5140900,-;text`, or `[    5.140900] text`, or text. Lines that begin with a space are the
/// previous record's dictionary.
fn parse_line(line: &str) -> Option<LogLine> {
    let line = line.lines().next()?;
    if line.starts_with(' ') || line.is_empty() {
        return None;
    }
    let in_brackets = || {
        let (at, text) = line.strip_prefix('[')?.split_once(']')?;
        Some((at.trim().parse::<f64>().ok()?, text))
    };
    let of_kmsg = || {
        let (prefix, text) = line.split_once(';')?;
        let at_us: u64 = prefix.split(',').nth(2)?.parse().ok()?;
        Some((at_us as f64 / 1e6, text))
    };
    let (at_s, text) = match in_brackets().or_else(of_kmsg) {
        Some((at, text)) => (Some(at), text),
        None => (None, line),
    };
    Some(LogLine { at_s, text: text.trim().to_owned() })
}

/// What a line tells of.
struct Pattern {
    kind: &'static str,
    text: &'static str,
}

/// In the order in which they are asked; the first that a line holds names it.
const PATTERNS: [Pattern; 14] = [
    Pattern { kind: "abort", text: "uas_eh_abort_handler" },
    Pattern { kind: "reset", text: "uas_eh_device_reset_handler start" },
    Pattern { kind: "bus_reset", text: " USB device number" },
    Pattern { kind: "offlined", text: "Device offlined" },
    Pattern { kind: "io_error", text: "I/O error, dev " },
    Pattern { kind: "io_error", text: "rejecting I/O to offline device" },
    Pattern { kind: "flush_failed", text: "Synchronize Cache(10) failed" },
    Pattern { kind: "flush_failed", text: "Synchronize Cache(16) failed" },
    Pattern { kind: "timeout", text: "timing out command" },
    Pattern { kind: "timeout", text: "timed out" },
    Pattern { kind: "disconnect", text: "USB disconnect" },
    Pattern { kind: "link_error", text: "device descriptor read" },
    Pattern { kind: "link_error", text: "device not accepting address" },
    Pattern { kind: "slow_link", text: "not running at top speed" },
];

fn kind_of(text: &str) -> Option<&'static str> {
    let kind = PATTERNS.iter().find(|pattern| text.contains(pattern.text)).map(|pattern| pattern.kind)?;
    // "new SuperSpeed USB device number 2" is a disk that was plugged in.
    if kind == "bus_reset" && !text.contains(": reset ") { None } else { Some(kind) }
}

/// What the log tells of trouble with a disk, kind by kind.
pub fn troubles(log: &[LogLine], disk: &UsbDisk) -> Vec<UsbTrouble> {
    let mut found: Vec<UsbTrouble> = Vec::new();
    for line in lines_of(log, disk) {
        let Some(kind) = kind_of(&line.text) else { continue };
        let place = match found.iter().position(|trouble| trouble.kind == kind) {
            Some(place) => place,
            None => {
                let empty = UsbTrouble { kind: kind.to_owned(), count: 0, last_s: None, example: String::new() };
                found.push(empty);
                found.len() - 1
            }
        };
        let trouble = &mut found[place];
        trouble.count += 1;
        trouble.last_s = line.at_s.or(trouble.last_s);
        trouble.example.clone_from(&line.text);
    }
    found
}

/// The lines about a disk, oldest first.
pub(super) fn lines_of<'a>(log: &'a [LogLine], disk: &UsbDisk) -> Vec<&'a LogLine> {
    let port = format!("usb {}: ", disk.usb.device);
    let plugged = format!("usb {}: New USB device found", disk.usb.device);
    let since = log.iter().rposition(|line| line.text.starts_with(&plugged)).unwrap_or(0);
    let mut names = vec![format!("uas {}: ", disk.usb.interface), format!("usb-storage {}: ", disk.usb.interface)];
    for block in &disk.blocks {
        names.push(format!("sd {}: ", block.address));
        names.push(format!("scsi {}: ", block.address));
        let host = block.address.split(':').next().unwrap_or_default();
        names.push(format!("scsi host{host}: "));
    }
    let devices: Vec<String> = disk.blocks.iter().map(|block| format!("dev {},", block.name)).collect();
    let is_about = |(at, line): &(usize, &LogLine)| {
        line.text.starts_with(&port)
            || (*at >= since
                && (names.iter().any(|name| line.text.starts_with(name))
                    || devices.iter().any(|device| line.text.contains(device))))
    };
    log.iter().enumerate().filter(is_about).map(|(_, line)| line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_kmsg_and_as_dmesg_write_them() {
        let kmsg = "6,339,5140900,-;usb 2-1: reset SuperSpeed USB device number 2\n SUBSYSTEM=usb\n DEVICE=c189:129\n";
        let dmesg = "[    5.140900] usb 2-1: reset SuperSpeed USB device number 2\n";
        assert_eq!(parse_log(kmsg), parse_log(dmesg));
        assert_eq!(parse_log(dmesg)[0].at_s, Some(5.1409));
        assert_eq!(parse_log("no time")[0], LogLine { at_s: None, text: "no time".to_owned() });
        assert_eq!(parse_log("\n \n"), []);
    }

    #[test]
    fn a_disk_that_is_plugged_in_is_no_reset() {
        assert_eq!(kind_of("usb 2-1: new SuperSpeed USB device number 2 using xhci_hcd"), None);
        assert_eq!(kind_of("usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd"), Some("bus_reset"));
    }
}
