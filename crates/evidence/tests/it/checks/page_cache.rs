//! What the page cache, a hole or memory answered: `direct_granted`, `page_cache`, `holes`, `working_set`.

use crate::support::*;
use trueio_model::CheckOutcome::{Contradicted, NotApplicable, NotSeen, Passed, Suspect};
use trueio_model::{DirectPolicy, DirectSupport, TargetKind};

#[test]
fn direct_io_is_judged_by_policy_and_filesystem_support() {
    use DirectSupport::{Direct, Refused, SilentlyBuffered, Unknown};
    for (policy, support, outcome) in [
        (DirectPolicy::Require, Direct, Passed),
        (DirectPolicy::Require, SilentlyBuffered, Contradicted),
        (DirectPolicy::Require, Refused, Contradicted),
        (DirectPolicy::Require, Unknown, Suspect),
        (DirectPolicy::Prefer, Direct, Passed),
        (DirectPolicy::Prefer, SilentlyBuffered, Suspect),
        (DirectPolicy::Prefer, Refused, Suspect),
        (DirectPolicy::Prefer, Unknown, Suspect),
        (DirectPolicy::Off, SilentlyBuffered, NotApplicable),
    ] {
        let mut phase = Phase::honest_writes();
        phase.jobs[0].direct = policy;
        phase.targets[0].direct.support = support;
        assert_eq!(phase.judge().check("direct_granted").outcome, outcome, "{policy:?} {support:?}");
    }
}

#[test]
fn reads_measured_as_direct_override_the_filesystems_declaration() {
    let mut phase = Phase::honest_reads();
    phase.targets[0].direct.support = DirectSupport::SilentlyBuffered;
    phase.judge().assert("direct_granted", Passed, "These reads were direct");
    phase.observation.residency[0].2 = residency(400 * MIB, 0, 1024 * MIB);
    phase.judge().assert("direct_granted", Contradicted, "accepts O_DIRECT and ignores it");
}

#[test]
fn a_page_cache_that_grows_under_direct_io_contradicts_it() {
    let mut phase = Phase::honest_reads();
    let region = 1024 * MIB;
    phase.observation.residency[0].2 = residency(400 * MIB, 0, region);
    phase.judge().assert("page_cache", Contradicted, "grew by 400 MiB during direct I/O");
    // A few pages may come from another program that read the file.
    phase.observation.residency[0].2 = residency(MIB / 8, 0, region);
    phase.judge().assert("page_cache", Passed, "");
    phase.observation.residency[0].2 = None;
    phase.judge().assert("page_cache", NotSeen, "Cannot count");
}

/// Goal: a neighbour that reads the file of an honest direct run does not contradict it, and silent buffering does.
/// Method: the cache grows by 400 MiB. A neighbour's reads are counted by the disk in addition to ours; the pages of
/// silent buffering are our own reads.
#[test]
fn pages_that_a_neighbour_read_do_not_contradict_direct_io() {
    let grow = |mut phase: Phase| {
        phase.observation.residency[0].2 = residency(400 * MIB, 0, 1024 * MIB);
        phase
    };
    let mut reads = grow(Phase::honest_reads());
    reads.judge().assert("page_cache", Contradicted, "was not direct");
    reads.observation.devices = vec![delta(counted(800 * MIB, 0, 0))];
    reads.judge().assert("page_cache", Suspect, "other processes read 400 MiB from the disk meanwhile");
    reads.observation.devices = vec![delta(counted(755 * MIB, 0, 0))];
    reads.judge().assert("page_cache", Contradicted, "was not direct");
    // Our own reads are missing.
    reads.observation.devices = vec![delta(counted(800 * MIB, 0, 0))];
    reads.observation.process_read_bytes = Some(380 * MIB);
    reads.judge().assert("page_cache", Contradicted, "was not direct");
    let mut unknown = grow(Phase::honest_reads());
    unknown.observation.devices = vec![delta(counted(800 * MIB, 0, 0))];
    unknown.targets[0].direct.support = DirectSupport::Unknown;
    unknown.judge().assert("page_cache", Contradicted, "was not direct");

    let mut writes = grow(Phase::honest_writes());
    writes.observation.process_read_bytes = Some(0);
    writes.judge().assert("page_cache", Contradicted, "was not direct");
    writes.observation.devices = vec![delta(counted(400 * MIB, 400 * MIB, 0))];
    writes.judge().assert("page_cache", Suspect, "Another process read the same files");
    // Buffered writes reach the disk later.
    writes.observation.devices = vec![delta(counted(400 * MIB, 300 * MIB, 0))];
    writes.judge().assert("page_cache", Contradicted, "was not direct");
}

#[test]
fn pages_cached_before_or_dirty_after_a_buffered_phase_are_reported() {
    let region = 1024 * MIB;
    let mut cached = Phase::honest_reads();
    cached.jobs[0].direct = DirectPolicy::Off;
    cached.judge().assert("page_cache", Passed, "not cached at the start");
    cached.observation.residency[0].1 = residency(512 * MIB, 0, region);
    cached.judge().assert("page_cache", Suspect, "50 % of the files were in the page cache");
    let mut dirty = Phase::honest_writes();
    dirty.jobs[0].direct = DirectPolicy::Off;
    dirty.observation.residency[0].2 = residency(400 * MIB, 400 * MIB, region);
    dirty.judge().assert("page_cache", Suspect, "400 MiB of the written data was in memory only");
}

#[test]
fn reads_of_holes_are_contradicted() {
    let set = |hole: u64, unwritten: u64, encoded: u64| {
        let mut phase = Phase::honest_reads();
        let map = &mut phase.observation.maps[0];
        map.stored_bytes = map.region_bytes - hole - unwritten;
        (map.hole_bytes, map.unwritten_bytes, map.encoded_bytes) = (hole, unwritten, encoded);
        phase
    };
    set(1024 * MIB, 0, 0).judge().assert("holes", Contradicted, "100 % of the read region is not stored");
    set(0, 512 * MIB, 0).judge().assert("holes", Contradicted, "50 %");
    set(MIB, 0, 0).judge().assert("holes", Suspect, "A small part");
    set(0, 0, 1024 * MIB).judge().assert("holes", Suspect, "compressed");
    // Data in memory for preallocated space is no hole.
    let mut waiting = set(0, 512 * MIB, 0);
    waiting.observation.residency[0].1 = residency(512 * MIB, 512 * MIB, 1024 * MIB);
    waiting.judge().assert("holes", Passed, "");
}

#[test]
fn holes_do_not_apply_to_devices_and_an_unmapped_file_is_not_seen() {
    let mut device = Phase::honest_reads();
    device.targets[0].kind = TargetKind::BlockDevice;
    device.judge().assert("holes", NotApplicable, "no extents");
    let mut unmapped = Phase::honest_reads();
    unmapped.observation.maps.clear();
    unmapped.observation.notes = vec!["`/data/file` could not be mapped (not supported)".to_owned()];
    unmapped.judge().assert("holes", NotSeen, "could not be mapped");
}

#[test]
fn a_buffered_working_set_must_exceed_memory_or_be_read_from_the_disk() {
    let mut phase = Phase::honest_reads();
    phase.judge().assert("working_set", NotApplicable, "is unknown");
    phase.jobs[0].direct = DirectPolicy::Off;
    phase.judge().assert("working_set", Passed, "the disk read every requested byte");
    phase.observation.devices = vec![delta(counted(0, 0, 0))];
    phase.judge().assert("working_set", Suspect, "fit in memory");
    phase.jobs[0].files[0].size_bytes = 64 << 30;
    phase.judge().assert("working_set", Passed, "larger than the memory that this process may use");
    // A control group that allows less than the files need; the machine has more.
    phase.jobs[0].files[0].size_bytes = 1 << 30;
    phase.judge().assert("working_set", Suspect, "fit in memory");
    phase.environment.memory_limit_bytes = Some(512 * MIB);
    phase.judge().assert("working_set", Passed, "larger than the memory that this process may use");
    assert_eq!(
        phase.judge().check("working_set").found,
        "1 GiB of files, 512 MiB of memory that the control group allows"
    );
    phase.environment.memory_limit_bytes = Some(2 << 30);
    phase.judge().assert("working_set", Suspect, "fit in memory");
    // A limit above the machine's memory is none.
    phase.environment.memory_limit_bytes = Some(1 << 50);
    assert_eq!(phase.judge().check("working_set").found, "1 GiB of files, 16 GiB of memory");
    phase.environment.memory_limit_bytes = None;
    // Each write of a log waits for the disk.
    Phase::honest_log().judge().assert("working_set", NotApplicable, "");
}

/// Goal: reads that were direct by measurement are not said to include the page cache, whatever the filesystem promises.
/// Method: a job that prefers direct I/O on btrfs, whose reads the disk counted in full and which left no page.
#[test]
fn measured_direct_reads_outrank_the_word_of_the_filesystem() {
    let mut phase = Phase::honest_reads();
    phase.targets[0].direct.support = DirectSupport::SilentlyBuffered;
    phase.jobs[0].direct = DirectPolicy::Prefer;
    phase.judge().assert("direct_granted", Passed, "These reads were direct");
    phase.observation.residency[0].2 = residency(200 * MIB, 0, 1024 * MIB);
    phase.judge().assert("direct_granted", Suspect, "include the page cache");
    phase.observation.residency[0].2 = residency(0, 0, 1024 * MIB);
    phase.observation.devices = vec![delta(counted(0, 0, 0))];
    phase.judge().assert("direct_granted", Suspect, "include the page cache");
}
