//! Checks the transfers of a USB disk that a job drives in user space.
//!
//! - **Reads** the length of each USB transfer as the host controller reported it, the kernel's count of all transfers to the device
//!   (`urbnum` in sysfs), and the disk's reports: sense data, deferred errors, full queues. With `ioengine = uas` there is no block
//!   device, and no other counter.
//! - **Sees** calls that succeeded without data on the bus; transfers that never reached the kernel; acknowledged writes that were lost
//!   (deferred errors); other programs that use the device.
//! - **Misses** I/O that the disk's own cache or its bridge answered.
//! - **Thresholds**: fewer bytes or transfers than the calls need, and deferred errors, contradict. Timeouts, resets, protocol errors,
//!   short transfers, and more than 2 % and 200 transfers of other programs are suspect. Without `urbnum` it is not seen.
//! - **Cost**: two reads of a small file for each phase.
//! - **By hand**: `cat /sys/bus/usb/devices/2-1/urbnum` before and after; a command has three transfers (command, data, status).
//!
//! Source: Linux `Documentation/ABI/testing/sysfs-bus-usb`, `urbnum`; T10 SPC-4, 4.5.7 (deferred errors).

use super::block_layer_bytes::{bytes_before_begin, has_arrived};
use crate::facts::{PhaseFacts, Work, finding, not_applicable, not_seen};
use crate::observation::UsbTransfers;
use trueio_model::units::{format_bytes, format_count};
use trueio_model::{Cause, Check, CheckOutcome, OpKind};

pub(crate) const NAME: &str = "usb_transfers";

const SOURCE: &str = "lengths of USB transfers, urbnum, sense data";

/// A count of a disk's transfers.
type Count = fn(&UsbTransfers) -> u64;

/// Transfers of other programs that are not worth a doubt: reading descriptors takes some.
const FOREIGN_MIN: u64 = 200;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let works: Vec<Work<'_>> = facts.works().filter(|work| work.job.engine.drives_usb_disks()).collect();
    if works.is_empty() {
        return not_applicable(NAME, "No job drives a USB disk in user space.");
    }
    let seen = &facts.observation.usb;
    if seen.is_empty() {
        return not_seen(NAME, SOURCE, "The transfers were not counted.");
    }
    let sum = |value: Count| seen.iter().map(value).sum::<u64>();
    let early = bytes_before_begin(&works);
    let claimed = |op| works.iter().map(|work| work.bytes(op)).sum::<u64>();
    let (read, written) = (claimed(OpKind::Read), claimed(OpKind::Write));
    let (moved_in, moved_out) = (sum(|one| one.in_bytes), sum(|one| one.out_bytes));
    let transfers = sum(|one| one.transfers);
    let kernel: Option<u64> = seen.iter().map(|one| one.kernel_transfers).sum();
    let counted = kernel.map_or_else(
        || "not counted by the kernel".to_owned(),
        |count| format!("{} by the kernel", format_count(count)),
    );
    let expected = format!("{} in, {} out", format_bytes(read), format_bytes(written));
    let found = format!(
        "{} in, {} out; {} transfers, {counted}",
        format_bytes(moved_in),
        format_bytes(moved_out),
        format_count(transfers)
    );
    let report = |outcome, sentence: String| finding(NAME, outcome, SOURCE, expected.clone(), found.clone(), sentence);
    for (claimed, moved, direction) in [(read, moved_in, "from"), (written, moved_out, "to")] {
        if !has_arrived(claimed, moved, early) {
            let (claimed, moved) = (format_bytes(claimed), format_bytes(moved));
            let sentence =
                format!("The calls reported {claimed}, but the host controller moved {moved} {direction} the disk.");
            let brief = format!("{moved} of {claimed} were on the bus");
            return report(CheckOutcome::Contradicted, sentence).with_cause(Cause::Calls).with_brief(brief);
        }
    }
    if let Some(count) = kernel.filter(|count| *count < transfers) {
        let (count, transfers) = (format_count(count), format_count(transfers));
        let sentence =
            format!("This program submitted {transfers} transfers, but the kernel counted {count} to the device.");
        let brief = format!("the kernel counted {count} of {transfers} transfers");
        return report(CheckOutcome::Contradicted, sentence).with_cause(Cause::Calls).with_brief(brief);
    }
    let last = seen.iter().find_map(|one| one.last_failure.as_deref());
    let last = last.map_or_else(String::new, |last| format!(" The last failure: {last}."));
    if sum(|one| one.deferred) > 0 {
        let sentence = format!(
            "The disk reported {} errors of writes that it had reported as done.{last}",
            format_count(sum(|one| one.deferred))
        );
        return report(CheckOutcome::Contradicted, sentence).with_brief("acknowledged writes were lost");
    }
    let doubts = doubts(seen);
    if !doubts.is_empty() {
        let repeated = format_count(sum(|one| one.repeated));
        let sentence = format!("The disk had {}; {repeated} commands were sent again.{last}", doubts.join(", "));
        return report(CheckOutcome::Suspect, sentence).with_brief(doubts.join(", "));
    }
    let Some(kernel) = kernel else {
        let sentence = format!(
            "The lengths of the transfers agree with the calls, but the kernel does not count them (urbnum).{}{last}",
            remarks(seen)
        );
        return report(CheckOutcome::NotSeen, sentence);
    };
    let foreign = kernel - transfers;
    if foreign > FOREIGN_MIN && foreign > transfers / 50 {
        let foreign = format_count(foreign);
        let sentence = format!("Other programs submitted {foreign} transfers to the device meanwhile.");
        let brief = format!("{foreign} transfers of other programs");
        return report(CheckOutcome::Suspect, sentence).with_cause(Cause::Neighbour).with_brief(brief);
    }
    let sentence = format!(
        "The bytes on the bus and the kernel's count of transfers agree with the calls; whether the disk's own cache \
         served them is unknown.{}{last}",
        remarks(seen)
    );
    report(CheckOutcome::Passed, sentence)
}

/// Describes what a healthy disk does not do.
fn doubts(seen: &[UsbTransfers]) -> Vec<String> {
    let kinds: [(&str, Count); 4] = [
        ("timeouts", |one| one.timeouts),
        ("resets", |one| one.resets),
        ("protocol errors", |one| one.violations),
        ("short transfers", |one| one.short),
    ];
    let count = |value: Count| seen.iter().map(value).sum::<u64>();
    let found = kinds.into_iter().map(|(name, value)| (name, count(value))).filter(|(_, count)| *count > 0);
    found.map(|(name, count)| format!("{} {name}", format_count(count))).collect()
}

/// Describes what a healthy disk may do.
fn remarks(seen: &[UsbTransfers]) -> String {
    let full: u64 = seen.iter().map(|one| one.queue_full).sum();
    match full {
        0 => String::new(),
        count => format!(
            " The disk reported {} times that its queue was full, so fewer commands were in flight than the depth.",
            format_count(count)
        ),
    }
}
