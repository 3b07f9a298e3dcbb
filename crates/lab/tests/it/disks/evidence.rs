//! What the counters of these disks prove, held against what reached the simulated media.

use super::{EXT4, shelf};
use crate::common::{assert_check, assert_ended, check, io_count, record_of};
use trueio_lab::sim::Counts;
use trueio_lab::{Machine, on};
use trueio_model::{CheckOutcome, EvidenceLevel, OpKind, RunRecord};

/// Runs a job on a file of a fresh ext4, mounted with `options`, and gives the exit code, the record
/// and the counts of commands to the disk during the run.
fn run_on_ext4(machine: &mut Machine, name: &str, options: &str, job: &str) -> (i32, RunRecord, Counts) {
    let disk = machine.device(name);
    machine.ok(&format!("{EXT4} {disk}"));
    machine.ok(&format!("mount -o {options} {disk} /mnt && sync"));
    let before = machine.simulated(name).counts();
    let ran = machine.trueio(&format!("run {job} --directory /mnt --no-history --json -"));
    let after = machine.simulated(name).counts();
    machine.ok(&format!("umount /mnt && dd if=/dev/zero of={disk} bs=1M count=1 conv=fsync 2>/dev/null"));
    let counts = Counts {
        reads: after.reads - before.reads,
        writes: after.writes - before.writes,
        fua_writes: after.fua_writes - before.fua_writes,
        flushes: after.flushes - before.flushes,
        ..after
    };
    (ran.code, record_of(&ran), counts)
}

/// A job of 256 overwrites of a file that is written already, each durable before it returns.
const DSYNC: &str = "--rw randwrite --bs 4k --size 1m --direct require --sync dsync --overwrite";

/// Goal: a disk with FUA is durable with no flush at all, and is not accused of having had none.
/// Method: 256 `O_DSYNC` overwrites; the disk itself counts writes with FUA, and hardly a flush (the
/// file's making needs some).
#[test]
fn durable_writes_of_a_disk_with_fua_are_no_false_positive_without_flushes() {
    on(&shelf(), |machine| {
        let (code, record, counts) = run_on_ext4(machine, "stick", "noatime", DSYNC);
        assert_ended(&record, code, 0);
        assert_eq!(io_count(&record, OpKind::Write), 256);
        assert!(counts.fua_writes >= 256 && counts.flushes < 128, "{counts:?}");
        assert_check(&record, "flushes", CheckOutcome::NotSeen);
    });
}

/// The same job on a disk without FUA: there the flushes are the only proof, and they are there.
#[test]
fn durable_writes_of_a_disk_without_fua_are_proved_by_its_flushes() {
    on(&shelf(), |machine| {
        let (code, record, counts) = run_on_ext4(machine, "virt", "noatime", DSYNC);
        assert_ended(&record, code, 0);
        assert_eq!(counts.fua_writes, 0);
        assert!(counts.flushes >= 256, "{counts:?}");
        assert_check(&record, "flushes", CheckOutcome::Passed);
    });
}

/// Goal: a filesystem that does not pass flushes on is caught by the disk's counter.
/// Method: ext4 without barriers; the disk itself counts no flush in the measured part either.
#[test]
fn missing_flushes_without_barriers_are_detected() {
    on(&shelf(), |machine| {
        let job = "--rw randwrite --bs 4k --size 1m --direct require --fdatasync 1 --overwrite";
        let (code, record, counts) = run_on_ext4(machine, "emulated", "barrier=0", job);
        // A figure that is contradicted is withheld.
        assert_ended(&record, code, 1);
        assert!(counts.flushes < 128, "{counts:?}");
        assert_check(&record, "flushes", CheckOutcome::Contradicted);
        assert!(check(&record, "flushes").sentence.contains("without barriers"), "{:?}", check(&record, "flushes"));
    });
}

/// A disk that declares no volatile cache gets no flushes, so none can be missed.
#[test]
fn missing_flushes_of_a_disk_without_a_write_cache_are_no_false_positive() {
    on(&shelf(), |machine| {
        let (code, record, counts) = run_on_ext4(machine, "native", "noatime", DSYNC);
        assert_ended(&record, code, 0);
        assert_eq!(counts.flushes, 0);
        assert_check(&record, "flushes", CheckOutcome::NotSeen);
    });
}

/// Goal: the kernel's counters of a disk equal the disk's own counts of commands.
/// Method: 512 direct reads of 4 KiB, one at a time; the medium counts its reads.
#[test]
fn direct_reads_reach_the_disk_one_by_one_and_the_evidence_reaches_the_file() {
    on(&shelf(), |machine| {
        for name in ["fast", "virt", "emulated", "native", "forced", "stick"] {
            let device = machine.device(name);
            let before = machine.simulated(name).counts().reads;
            let job = "--rw randread --bs 4k --number_ios 512 --direct require --no-history --json -";
            let ran = machine.trueio(&format!("run {job} --filename {device}"));
            let record = record_of(&ran);
            assert_ended(&record, ran.code, 0);
            let reads = machine.simulated(name).counts().reads - before;
            // The program looks at the device, too, before it measures.
            assert!((512..640).contains(&reads), "{name}: {reads} reads");
            assert_eq!(io_count(&record, OpKind::Read), 512, "{name}");
            assert_check(&record, "block_layer_bytes", CheckOutcome::Passed);
            assert!(record.phases[0].level >= EvidenceLevel::E1, "{name}");
        }
    });
}

/// Reads through the page cache of a file that was read before: the disk receives no command.
#[test]
fn reads_from_memory_are_detected_by_the_disks_counters() {
    on(&shelf(), |machine| {
        let disk = machine.device("fast");
        machine.ok(&format!("{EXT4} {disk} && mount {disk} /mnt && dd if=/dev/urandom of=/mnt/data bs=1M count=32"));
        machine.ok("sync && cat /mnt/data > /dev/null");
        let before = machine.simulated("fast").counts().reads;
        let job = "--rw read --bs 64k --direct off --invalidate=false --no-history --json -";
        let ran = machine.trueio(&format!("run {job} --filename /mnt/data"));
        let reads = machine.simulated("fast").counts().reads - before;
        machine.ok(&format!("umount /mnt && dd if=/dev/zero of={disk} bs=1M count=1 conv=fsync"));
        // The file is 256 requests of 128 KiB. The program looks at the beginning of the disk.
        assert!(reads < 100, "the disk was read {reads} times");
        // The page cache was asked for, so that is a doubt about what was measured, not a lie.
        assert_check(&record_of(&ran.assert_code(0)), "block_layer_bytes", CheckOutcome::Suspect);
    });
}
