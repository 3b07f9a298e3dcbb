//! What the page cache, a hole or memory answered: `direct_granted`, `page_cache`, `holes`, `working_set`.

use crate::support::*;
use trueio_model::CheckOutcome::{Contradicted, NotApplicable, NotSeen, Passed, Suspect};
use trueio_model::{DirectPolicy, DirectSupport, EngineKind, EvidenceLevel, OpKind, Order, TargetKind};

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
    // Another program wrote the file: it is on the disk, or still dirty, which reads leave nothing.
    let mut written = grow(Phase::honest_reads());
    written.observation.devices = vec![delta(counted(400 * MIB, 400 * MIB, 0))];
    written.judge().assert("page_cache", Contradicted, "was not direct");
    written.observation.is_modified = true;
    written.judge().assert("page_cache", Suspect, "Another process wrote the same files through the page cache");
    let mut dirty = grow(Phase::honest_reads());
    dirty.observation.residency[0].2 = residency(400 * MIB, 390 * MIB, 1024 * MIB);
    dirty.observation.is_modified = true;
    dirty.judge().assert(
        "page_cache",
        Suspect,
        "other processes wrote 390 MiB to the disk, or to memory only, meanwhile",
    );
    let mut unknown = grow(Phase::honest_reads());
    unknown.observation.devices = vec![delta(counted(800 * MIB, 0, 0))];
    unknown.targets[0].direct.support = DirectSupport::Unknown;
    unknown.judge().assert("page_cache", Contradicted, "was not direct");

    let mut writes = grow(Phase::honest_writes());
    writes.observation.process_read_bytes = Some(0);
    writes.judge().assert("page_cache", Contradicted, "was not direct");
    writes.observation.devices = vec![delta(counted(400 * MIB, 400 * MIB, 0))];
    writes.judge().assert("page_cache", Suspect, "Another process read the same files");
    // Pages and modification of a phase that writes may be its own.
    writes.observation.is_modified = true;
    writes.observation.devices = vec![delta(counted(0, 400 * MIB, 0))];
    writes.observation.residency[0].2 = residency(400 * MIB, 400 * MIB, 1024 * MIB);
    writes.judge().assert("page_cache", Contradicted, "was not direct");
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
        map.holes = vec![(0, hole)];
        map.unwritten = vec![(hole, hole + unwritten)];
        // What is not stored is not fetched from the disk.
        let fetched = 400 * MIB * (1024 - (hole + unwritten) / MIB) / 1024;
        phase.observation.devices = vec![delta(counted(fetched, 0, 0))];
        phase.observation.process_read_bytes = Some(fetched);
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

/// Goal: a hole that is punched while the phase runs is the cause, and not a cache.
/// Method: the file is stored before and mostly a hole after; the disk read a tenth.
#[test]
fn a_hole_punched_within_the_phase_is_contradicted_as_a_hole() {
    let mut phase = Phase::honest_reads();
    let map = &mut phase.observation.maps_after[0];
    (map.stored_bytes, map.hole_bytes, map.holes) = (MIB, 1023 * MIB, vec![(MIB, 1024 * MIB)]);
    // It was punched after the last read.
    phase.judge().assert("holes", Passed, "the disk read every byte: none of them there");
    phase.observation.devices = vec![delta(counted(40 * MIB, 0, 0))];
    phase.observation.process_read_bytes = Some(40 * MIB);
    let judgement = phase.judge();
    judgement.assert(
        "holes",
        Contradicted,
        "100 % of the read region was not stored on the disk any more when the phase ended",
    );
    assert_eq!(judgement.check("holes").brief, "100 % holes at the end");
    judgement.assert("block_layer_bytes", Contradicted, "did_not_reach_device");
    assert_eq!(judgement.check("block_layer_bytes").cause, trueio_model::Cause::Setup, "not a cache");
    // Filled again before the phase ended: nothing but the time of modification shows it.
    phase.observation.maps_after = phase.observation.maps.clone();
    assert_eq!(phase.judge().check("block_layer_bytes").cause, trueio_model::Cause::Cache);
    phase.observation.is_modified = true;
    let judgement = phase.judge();
    judgement.assert("block_layer_bytes", Contradicted, "perhaps parts were cut out and filled again.");
    assert_eq!(judgement.check("block_layer_bytes").cause, trueio_model::Cause::Setup);
}

/// Goal: holes behind the part that was read in order accuse nothing; holes in it do.
/// Method: `ior -w -r -D 1`: of 1 GiB, 500 MiB were written, and 400 MiB of these read in order.
#[test]
fn only_holes_of_the_part_that_was_read_count() {
    let read = |holes: (u64, u64), order: Order| {
        let mut phase = Phase::honest_reads();
        phase.jobs[0].pattern.order = order;
        phase.jobs[0].direct = DirectPolicy::Off;
        for map in phase.observation.maps.iter_mut().chain(&mut phase.observation.maps_after) {
            (map.holes, map.hole_bytes) = (vec![(holes.0 * MIB, holes.1 * MIB)], (holes.1 - holes.0) * MIB);
            map.stored_bytes = map.region_bytes - map.hole_bytes;
        }
        let path = phase.observation.maps[0].path.clone();
        let blocks = (0..32).map(|block| (block * 32 * MIB, holes.0 <= block * 32 && block * 32 < holes.1)).collect();
        phase.observation.samples = vec![trueio_evidence::ContentSample { path, blocks }];
        phase.judge()
    };
    let honest = read((400, 1024), Order::Sequential);
    honest.assert("zero_blocks", Passed, "contain data");
    honest.assert("holes", Passed, "The whole part of the files that was read is stored on the disk.");
    read((300, 1024), Order::Sequential).assert("holes", Contradicted, "25 % of the part that was read is not stored");
    let random = Order::Random { distribution: trueio_model::Distribution::Uniform, each_block_once: true };
    let anywhere = read((500, 1024), random);
    anywhere.assert("holes", Contradicted, "51 % of the read region");
    anywhere.assert("zero_blocks", Suspect, "50 % of the sampled blocks");
}

/// Goal: the time of buffered writes that a sync call at the end covers is the disk's; without it, it is memory's.
#[test]
fn buffered_writes_that_end_with_a_sync_call_are_the_disks() {
    let written = |flush: trueio_model::Flush, counted_bytes: u64| {
        let mut phase = Phase::honest_writes();
        let distribution = trueio_model::Distribution::Uniform;
        phase.jobs[0].pattern.order = Order::Random { distribution, each_block_once: false };
        phase.jobs[0].direct = DirectPolicy::Off;
        phase.jobs[0].flush = flush;
        phase.records[0].ops.push(op(OpKind::Sync, 1, 0, 5_000_000));
        phase.observation.devices = vec![delta(counted(0, counted_bytes, 1))];
        phase.judge()
    };
    let none = trueio_model::Flush::default();
    let ends = [
        trueio_model::Flush { end_fsync: true, ..none },
        trueio_model::Flush { end_fdatasync: true, ..none },
        trueio_model::Flush { fsync_on_close: true, ..none },
    ];
    for end in ends {
        let honest = written(end, 400 * MIB);
        honest.assert("working_set", Passed, "the disk wrote every byte, and the time includes the sync calls");
        assert_eq!(honest.objections(), [], "{}", honest.report());
        // Blocks that were overwritten in memory reached the disk once.
        let overwritten = written(end, 100 * MIB);
        overwritten.assert("working_set", Suspect, "fit in memory");
        overwritten.assert("block_layer_bytes", Suspect, "overwritten before they were flushed");
    }
    written(none, 400 * MIB).assert("working_set", Suspect, "fit in memory");
}

/// Goal: reads of a mapping are judged by major faults, fetched bytes and cached pages, and reach a level.
#[test]
fn reads_of_a_mapping_are_judged_by_what_was_fetched() {
    let mapped = |fetched: u64, cached: u64, faults: u64| {
        let mut phase = Phase::honest_reads();
        phase.jobs[0].engine = EngineKind::Mmap;
        phase.jobs[0].direct = DirectPolicy::Off;
        phase.records[0].threads.major_fault_count = faults;
        phase.observation.devices = vec![delta(counted(fetched, 0, 0))];
        phase.observation.process_read_bytes = Some(fetched);
        phase.observation.residency[0].1 = residency(cached, 0, 1024 * MIB);
        phase.judge()
    };
    let cold = mapped(400 * MIB, 0, 102_400);
    assert_eq!((cold.objections(), cold.level), (vec![], EvidenceLevel::E2), "{}", cold.report());
    assert_eq!(cold.check("process_read_bytes").found, "400 MiB fetched, in 102,400 major faults for 102,400 accesses");
    let cached = mapped(0, 1024 * MIB, 0);
    let words = "Of 400 MiB read through a mapping, 0 B were fetched from storage during this phase, in 0 major faults";
    cached.assert("process_read_bytes", Suspect, words);
    cached.assert("page_cache", Suspect, "100 % of the files were in the page cache");
    cached.assert("working_set", Suspect, "");
    assert_eq!(cached.level, EvidenceLevel::E2);
    assert_eq!(cached.check("traced_requests").outcome, NotApplicable);
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
    // Others read 200 MiB of the counted 400, but the kernel read 400 for this process.
    phase.observation.devices[0].baseline = counted(50 * MIB, 0, 0);
    phase.judge().assert("working_set", Passed, "the disk read every requested byte");
    phase.observation.process_read_bytes = Some(200 * MIB);
    phase.judge().assert("working_set", Suspect, "fit in memory");
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
