//! Reads the kernel's log about a USB disk and counts its resets, timeouts and errors.
//!
//! The source is `/dev/kmsg` (which needs CAP_SYSLOG if `kernel.dmesg_restrict` is 1), or a text as `dmesg` prints it.
//! Counts lines that name the device by its port (`usb 2-1:`), and lines that name its SCSI address or block device
//! after it was last plugged in, because the kernel reuses these names for other disks.
//!
//! Cannot see: lines that were overwritten in the ring buffer; lines of earlier boots; which of two devices was in the
//! port, if both were.
//!
//! Source: Linux `Documentation/ABI/testing/dev-kmsg`; the messages of `drivers/usb/core/hub.c`,
//! `drivers/usb/storage/uas.c`, `drivers/scsi/scsi_error.c`, `block/blk-core.c`.

use crate::system::System;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use trueio_model::{UsbBlock, UsbDisk, UsbTrouble, UsbTroubleKind as Kind};

/// More records than any ring buffer holds.
const RECORD_COUNT_MAX: usize = 1_000_000;

/// One line of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    /// Seconds since boot.
    pub at_s: Option<f64>,
    /// The message.
    pub text: String,
}

/// Reads the kernel's log, oldest line first.
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
    // Each read returns one record of at most 8 KiB (`CONSOLE_EXT_LOG_MAX`).
    let mut buffer = [0; 8192];
    while lines.len() < RECORD_COUNT_MAX {
        match rustix::io::read(&file, &mut buffer) {
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(length) => lines.extend(parse_line(&String::from_utf8_lossy(&buffer[..length]))),
            // The record was overwritten: the next read returns the oldest one that remains.
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

/// Parses a log in the format of `/dev/kmsg` or `dmesg`.
pub fn parse_log(text: &str) -> Vec<LogLine> {
    text.lines().filter_map(parse_line).collect()
}

/// Parses `6,339,5140900,-;text`, or `[    5.140900] text`, or text. Lines that begin with a space are the
/// previous record's dictionary; they are skipped.
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

/// Texts that identify the kind of a line, all of which it contains.
struct Pattern {
    kind: Kind,
    texts: &'static [&'static str],
}

/// The first pattern that a line contains gives its kind. A pattern matches a family of messages: the name of a function of
/// the driver's error handling, the end of `block/blk-core.c`'s `KIND error, dev NAME`, the word that names a failure.
const PATTERNS: [Pattern; 55] = [
    Pattern { kind: Kind::Abort, texts: &["eh_abort_handler"] },
    Pattern { kind: Kind::ResetFailed, texts: &["reset_handler", "FAILED"] },
    Pattern { kind: Kind::Reset, texts: &["reset_handler", "start"] },
    Pattern { kind: Kind::BusReset, texts: &[": reset ", " USB device number"] },
    Pattern { kind: Kind::Offlined, texts: &["offlined"] },
    Pattern { kind: Kind::FlushFailed, texts: &["Synchronize Cache(", "failed"] },
    Pattern { kind: Kind::Timeout, texts: &["timeout error, dev "] },
    Pattern { kind: Kind::Timeout, texts: &["timing out command"] },
    Pattern { kind: Kind::Timeout, texts: &["timed out"] },
    Pattern { kind: Kind::IoError, texts: &["error, dev "] },
    Pattern { kind: Kind::IoError, texts: &["I/O error on dev "] },
    Pattern { kind: Kind::IoError, texts: &["I/O error on device "] },
    Pattern { kind: Kind::IoError, texts: &["rejecting I/O to "] },
    Pattern { kind: Kind::IoError, texts: &["Sense Key : Medium Error"] },
    Pattern { kind: Kind::IoError, texts: &["Sense Key : Hardware Error"] },
    Pattern { kind: Kind::IoError, texts: &["Sense Key : Aborted Command"] },
    Pattern { kind: Kind::IoError, texts: &["hostbyte=DID_NO_CONNECT"] },
    Pattern { kind: Kind::Timeout, texts: &["hostbyte=DID_TIME_OUT"] },
    Pattern { kind: Kind::Abort, texts: &["hostbyte=DID_ABORT"] },
    Pattern { kind: Kind::TransferError, texts: &["cmplt err"] },
    Pattern { kind: Kind::TransferError, texts: &["urb", "status -"] },
    Pattern { kind: Kind::TransferError, texts: &["uas_zap_pending"] },
    Pattern { kind: Kind::TransferError, texts: &["submit err "] },
    Pattern { kind: Kind::TransferError, texts: &["submission err "] },
    Pattern { kind: Kind::TransferError, texts: &["alloc streams error"] },
    Pattern { kind: Kind::TransferError, texts: &["hostbyte=DID_TRANSPORT_"] },
    Pattern { kind: Kind::TransferError, texts: &["hostbyte=DID_ERROR"] },
    Pattern { kind: Kind::Disconnect, texts: &["USB disconnect"] },
    Pattern { kind: Kind::LinkError, texts: &["device descriptor read"] },
    Pattern { kind: Kind::LinkError, texts: &["unable to read config"] },
    Pattern { kind: Kind::LinkError, texts: &["not accepting address"] },
    Pattern { kind: Kind::LinkError, texts: &["not responding to set"] },
    Pattern { kind: Kind::LinkError, texts: &["can't set config"] },
    Pattern { kind: Kind::LinkError, texts: &["can't read configurations"] },
    Pattern { kind: Kind::LinkError, texts: &["descriptor", "read error"] },
    Pattern { kind: Kind::LinkError, texts: &["attempt power cycle"] },
    Pattern { kind: Kind::LinkError, texts: &["unable to enumerate USB device"] },
    Pattern { kind: Kind::LinkError, texts: &["connect-debounce failed"] },
    Pattern { kind: Kind::LinkError, texts: &["device firmware changed"] },
    Pattern { kind: Kind::LinkError, texts: &["cannot reset"] },
    Pattern { kind: Kind::LinkError, texts: &["cannot disable"] },
    Pattern { kind: Kind::LinkError, texts: &["USB cable is bad"] },
    Pattern { kind: Kind::Reset, texts: &["Power-on or device reset occurred"] },
    Pattern { kind: Kind::Reset, texts: &["hostbyte=DID_RESET"] },
    Pattern { kind: Kind::IoError, texts: &["hostbyte=DID_BAD_TARGET"] },
    Pattern { kind: Kind::IoError, texts: &["Read Capacity(", "failed"] },
    Pattern { kind: Kind::TransferError, texts: &["hostbyte=DID_SOFT_ERROR"] },
    Pattern { kind: Kind::TransferError, texts: &["hostbyte=DID_BUS_BUSY"] },
    Pattern { kind: Kind::LinkError, texts: &["over-current"] },
    Pattern { kind: Kind::LinkError, texts: &["disabled by hub"] },
    Pattern { kind: Kind::LinkError, texts: &["reset changed speed"] },
    Pattern { kind: Kind::LinkError, texts: &["unable to get BOS descriptor"] },
    Pattern { kind: Kind::LinkError, texts: &["can't restore configuration"] },
    Pattern { kind: Kind::LinkError, texts: &["config error"] },
    Pattern { kind: Kind::SlowLink, texts: &["not running at top speed"] },
];

/// Not a failure: the disk does not have an operation, such as a discard.
const NO_FAILURE: &str = "operation not supported error";

fn kind_of(text: &str) -> Option<Kind> {
    if text.contains(NO_FAILURE) {
        return None;
    }
    let is_of = |pattern: &&Pattern| pattern.texts.iter().all(|part| text.contains(part));
    PATTERNS.iter().find(is_of).map(|pattern| pattern.kind)
}

/// Counts the log's lines about trouble with a disk, by kind.
pub fn troubles(log: &[LogLine], disk: &UsbDisk) -> Vec<UsbTrouble> {
    let mut found: Vec<UsbTrouble> = Vec::new();
    for line in lines_of(log, disk) {
        let Some(kind) = kind_of(&line.text) else { continue };
        let index = found.iter().position(|trouble| trouble.kind == kind).unwrap_or_else(|| {
            found.push(UsbTrouble { kind, count: 0, last_s: None, example: String::new() });
            found.len() - 1
        });
        let trouble = &mut found[index];
        trouble.count += 1;
        trouble.last_s = line.at_s.or(trouble.last_s);
        trouble.example.clone_from(&line.text);
    }
    found
}

/// Returns the lines about a disk, oldest first.
///
/// Lines with the port's name count from the first time that this model was plugged in there, without another model in
/// between; those with the interface's name from the last time. Host numbers and disk names are given again to other disks,
/// so lines with these count only from the line with which the present driver was bound to the present host.
pub(super) fn lines_of<'a>(log: &'a [LogLine], disk: &UsbDisk) -> Vec<&'a LogLine> {
    let port = [format!("usb {}: ", disk.usb.device), format!("usb {}: ", port_of(&disk.usb.device))];
    let plugged_at = plugged(log, disk);
    let of_port = plugged_at.first().copied().unwrap_or(0);
    let since = plugged_at.last().copied().unwrap_or(0);
    let interfaces = ["uas", "usb-storage"].map(|driver| format!("{driver} {}: ", disk.usb.interface));
    let mut names = Vec::new();
    let mut bound_at = since;
    for block in &disk.blocks {
        names.push(format!("sd {}: ", block.address));
        names.push(format!("scsi {}: ", block.address));
        let host = format!("scsi host{}: ", block.address.split(':').next().unwrap_or_default());
        let binds = |line: &LogLine| {
            line.text.strip_prefix(&host).is_some_and(|rest| rest == "uas" || rest.starts_with("usb-storage "))
        };
        bound_at = bound_at.max(log.iter().rposition(binds).unwrap_or(0));
        names.push(host);
    }
    // `Buffer I/O error on device sda1,` up to Linux 4.3, `on dev sda1,` since then.
    let named = |block: &UsbBlock| [format!("dev {}", block.name), format!("device {}", block.name)];
    let devices: Vec<String> = disk.blocks.iter().flat_map(named).collect();
    let is_about = |(at, line): &(usize, &LogLine)| {
        let begins = |names: &[String]| names.iter().any(|name| line.text.starts_with(name));
        (*at >= of_port && begins(&port))
            || (*at >= since && (begins(&interfaces) || probe_failed(line, disk)))
            || (*at >= bound_at && (begins(&names) || devices.iter().any(|device| names_device(&line.text, device))))
    };
    log.iter().enumerate().filter(is_about).map(|(_, line)| line).collect()
}

/// Returns the name of the hub's port that a device is at: of `2-1` `usb2-port1`, of `2-1.5` `2-1-port5`.
fn port_of(device: &str) -> String {
    match (device.rsplit_once('.'), device.split_once('-')) {
        (Some((hub, port)), _) => format!("{hub}-port{port}"),
        (None, Some((bus, port))) => format!("usb{bus}-port{port}"),
        (None, None) => device.to_owned(),
    }
}

/// Returns true if a text names a device, or a partition of it: `dev sda,` and `dev sda1,`, not `dev sdab,`.
fn names_device(text: &str, device: &str) -> bool {
    text.match_indices(device).any(|(at, _)| {
        let rest = text[at + device.len()..].trim_start_matches(|c: char| c.is_ascii_digit());
        rest.starts_with(',')
    })
}

/// Returns the indices of the lines with which the disk was plugged in, oldest first: those at its port behind the last line
/// of another model. Empty if the log does not reach back that far.
fn plugged(log: &[LogLine], disk: &UsbDisk) -> Vec<usize> {
    let found = format!("usb {}: New USB device found", disk.usb.device);
    let id = disk.usb.id.value.as_deref().and_then(|id| id.split_once(':'));
    let is_model = |text: &str| {
        id.is_none_or(|(vendor, product)| {
            text.contains(&format!("idVendor={vendor}")) && text.contains(&format!("idProduct={product}"))
        })
    };
    let lines = log.iter().enumerate().rev().filter(|(_, line)| line.text.starts_with(&found));
    let mut indices: Vec<usize> = lines.take_while(|(_, line)| is_model(&line.text)).map(|(at, _)| at).collect();
    indices.reverse();
    indices
}

/// Returns whether the line reports that `uas` could not be bound: `uas: probe of 2-1:1.0 failed with error -22`, from 6.10 on
/// `uas 2-1:1.0: probe with driver uas failed with error -22`.
pub(super) fn probe_failed(line: &LogLine, disk: &UsbDisk) -> bool {
    let text = &line.text;
    text.starts_with("uas") && text.contains(&disk.usb.interface) && text.contains("failed with error")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formats_of_kmsg_and_dmesg_give_the_same_lines() {
        let kmsg = "6,339,5140900,-;usb 2-1: reset SuperSpeed USB device number 2\n SUBSYSTEM=usb\n DEVICE=c189:129\n";
        let dmesg = "[    5.140900] usb 2-1: reset SuperSpeed USB device number 2\n";
        assert_eq!(parse_log(kmsg), parse_log(dmesg));
        assert_eq!(parse_log(dmesg)[0].at_s, Some(5.1409));
        assert_eq!(parse_log("no time")[0], LogLine { at_s: None, text: "no time".to_owned() });
        assert_eq!(parse_log("\n \n"), []);
    }

    #[test]
    fn a_disk_that_is_plugged_in_is_not_counted_as_a_reset() {
        assert_eq!(kind_of("usb 2-1: new SuperSpeed USB device number 2 using xhci_hcd"), None);
        assert_eq!(kind_of("usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd"), Some(Kind::BusReset));
    }

    /// The lines are those of Linux 4.4 to 6.18, as users published them.
    #[test]
    fn each_family_of_messages_of_a_failing_disk_has_a_kind() {
        for (kind, lines) in [
            (
                Kind::IoError,
                &[
                    "I/O error, dev sda, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
                    "print_req_error: I/O error, dev sda, sector 53777216",
                    "device offline error, dev sda, sector 2048 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2",
                    "blk_update_request: critical medium error, dev sda, sector 9 op 0x0:(READ) flags 0x80700",
                    "critical target error, dev sda, sector 81 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2",
                    "recoverable transport error, dev sda, sector 5",
                    "Buffer I/O error on dev sda1, logical block 53777216, lost async page write",
                    "sd 0:0:0:0: rejecting I/O to offline device",
                    "sd 0:0:0:0: rejecting I/O to dead device",
                    "sd 0:0:0:0: [sda] tag#0 Sense Key : Medium Error [current]",
                    "Buffer I/O error on device sda1, logical block 0",
                    "sd 0:0:0:0: [sda] tag#0 Sense Key : Aborted Command [current]",
                    "sd 0:0:0:0: [sda] tag#0 FAILED Result: hostbyte=DID_NO_CONNECT driverbyte=DRIVER_OK",
                    "sd 0:0:0:0: [sda] tag#0 UNKNOWN(0x2003) Result: hostbyte=DID_BAD_TARGET driverbyte=DRIVER_OK",
                    "sd 0:0:0:0: [sda] Read Capacity(10) failed: Result: hostbyte=DID_OK driverbyte=DRIVER_OK",
                ][..],
            ),
            (
                Kind::Timeout,
                &["timeout error, dev sda, sector 7", "sd 0:0:0:0: [sda] tag#0 timing out command, waited 180s"],
            ),
            (
                Kind::ResetFailed,
                &[
                    "scsi host0: uas_eh_device_reset_handler FAILED err -19",
                    "scsi host0: uas_eh_device_reset_handler FAILED to get lock err -19",
                ],
            ),
            (
                Kind::Reset,
                &[
                    "scsi host0: uas_eh_device_reset_handler start",
                    "sd 0:0:0:0: Power-on or device reset occurred",
                    "sd 0:0:0:0: [sda] tag#3 FAILED Result: hostbyte=DID_RESET driverbyte=DRIVER_OK cmd_age=30s",
                ],
            ),
            (Kind::Abort, &["sd 0:0:0:0: [sda] tag#0 uas_eh_abort_handler 0 uas-tag 2 inflight: CMD IN "]),
            (
                Kind::TransferError,
                &[
                    "sd 0:0:0:0: [sda] tag#8 data cmplt err -71 uas-tag 9 inflight: CMD IN ",
                    "sd 0:0:0:0: [sda] tag#8 cmd cmplt err -2 uas-tag 9 inflight: ",
                    "usb 2-1.5: stat urb: status -71",
                    "sd 0:0:0:0: tag#0 uas_zap_pending 0 uas-tag 1 inflight: CMD ",
                    "sd 0:0:0:0: [sda] tag#8 sense urb submission err -19",
                    "sd 0:0:0:0: [sda] tag#8 data in submit err -2 uas-tag 1 inflight:",
                    "uas 2-1:1.0: uas_post_reset: alloc streams error -19 after reset",
                    "sd 0:0:0:0: [sda] tag#0 FAILED Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK cmd_age=0s",
                    "sd 0:0:0:0: [sda] tag#0 FAILED Result: hostbyte=DID_SOFT_ERROR driverbyte=DRIVER_OK",
                    "sd 0:0:0:0: [sda] tag#0 FAILED Result: hostbyte=DID_BUS_BUSY driverbyte=DRIVER_OK",
                ],
            ),
            (
                Kind::LinkError,
                &[
                    "usb 2-1: device not responding to setup address",
                    "usb 2-1: Device not responding to setup address.",
                    "usb 2-1: device not accepting address 4, error -71",
                    "usb 2-1: device descriptor read/64, error -110",
                    "usb 2-1: unable to read config index 0 descriptor/start: -71",
                    "usb 2-1: can't set config #1, error -71",
                    "usb 2-1: Device not responding to set address.",
                    "usb 2-1: can't read configurations, error -71",
                    "usb 2-1: string descriptor 0 read error: -71",
                    "usb usb2-port1: attempt power cycle",
                    "usb usb2-port1: unable to enumerate USB device",
                    "usb usb2-port1: connect-debounce failed",
                    "usb 2-1: device firmware changed",
                    "usb usb2-port1: over-current condition",
                    "usb usb2-port1: disabled by hub (EMI?), re-enabling...",
                    "usb 2-1: device reset changed speed!",
                    "usb 2-1: unable to get BOS descriptor or descriptor too short",
                    "usb 2-1: can't restore configuration #1 (error=-110)",
                    "usb usb2-port1: config error",
                ],
            ),
            (Kind::Offlined, &["sd 0:0:0:0: Device offlined - not ready after error recovery"]),
            (Kind::FlushFailed, &["sd 0:0:0:0: [sda] Synchronize Cache(10) failed: Result: hostbyte=DID_ERROR"]),
        ] {
            for line in lines {
                assert_eq!(kind_of(line), Some(kind), "{line}");
            }
        }
    }

    #[test]
    fn messages_that_report_no_failure_have_no_kind() {
        for line in [
            "operation not supported error, dev sda, sector 7 op 0x9:(WRITE_ZEROES) flags 0x800",
            "scsi host0: uas_eh_device_reset_handler success",
            "sd 0:0:0:0: [sda] Synchronizing SCSI cache",
        ] {
            assert_eq!(kind_of(line), None, "{line}");
        }
    }

    #[test]
    fn a_port_has_the_name_of_its_hub() {
        let of = ["2-1", "2-1.5", "10-3.2.4"].map(port_of);
        assert_eq!(of, ["usb2-port1", "2-1-port5", "10-3.2-port4"]);
    }

    #[test]
    fn a_partition_is_its_disk_and_a_longer_name_is_another() {
        for (text, is_its) in
            [("dev sda, sector 1", true), ("on dev sda12, logical", true), ("dev sdab, sector 1", false)]
        {
            assert_eq!(names_device(text, "dev sda"), is_its, "{text}");
        }
    }
}
