//! Jobs on zones: every write is at the write pointer, no zone has two writes in flight, and what is read was
//! written.

use crate::common::{Job, KIB, MIB, MS, Open, S, assert_clean, filled, folder, op};
use std::collections::BTreeMap;
use std::sync::Arc;
use trueio_engine::{IssuedIo, LoggedIo, Start, ZoneMap, log_channel};
use trueio_model::{Checksum, EarlyResets, EngineKind, OpKind, Order, Verify, ZonePlan};

const ZONE: u64 = 64 * KIB;
const CAPACITY: u64 = 48 * KIB;
const ZONES: u64 = 8;
/// Longer than any of these jobs takes.
const MINUTE: u64 = 60 * S;

fn zone_plan() -> ZonePlan {
    ZonePlan::emulated(ZONE, CAPACITY)
}

/// A job on eight zones of 64 KiB, 48 KiB of each used.
fn zoned(mut job: Job, plan: ZonePlan) -> Job {
    let end = job.plan.files[0].offset_bytes + job.plan.files[0].size_bytes;
    job.zones = vec![Arc::new(ZoneMap::emulated(plan.zone_bytes, plan.capacity_bytes, end))];
    job.plan.zones = Some(plan);
    job
}

fn modelled() -> Job {
    Job::simulated(100_000, 4).region(ZONES * ZONE)
}

/// Follows the write pointers of what was issued: panics where a write is not at one. The numbers of resets.
fn resets_of(writes: &[IssuedIo]) -> u64 {
    let mut pointers: BTreeMap<u64, u64> = BTreeMap::new();
    let mut resets = 0;
    for io in writes.iter().filter(|io| io.step.request().op == OpKind::Write) {
        let (offset, length) = (io.step.request().offset, u64::from(io.step.request().length));
        let start = offset - offset % ZONE;
        let pointer = pointers.entry(start).or_insert(start);
        if offset == start && *pointer > start {
            resets += 1;
            *pointer = start;
        }
        assert_eq!(offset, *pointer, "a write is at the write pointer");
        *pointer += length;
        assert!(*pointer <= start + CAPACITY, "a write ends within the zone's capacity");
    }
    resets
}

/// No two writes of one zone are in flight together.
fn assert_alone(ios: &[LoggedIo]) {
    let mut spans: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for io in ios.iter().filter(|io| io.op == OpKind::Write) {
        spans.entry(io.offset / ZONE).or_default().push((io.end_ns - io.total_ns, io.end_ns));
    }
    for (zone, mut spans) in spans {
        spans.sort_unstable();
        assert!(spans.windows(2).all(|two| two[0].1 <= two[1].0), "zone {zone}: {spans:?}");
    }
}

#[test]
fn a_sequential_job_fills_one_zone_after_another_and_leaves_out_what_cannot_be_written() {
    let job = || zoned(modelled().sequential().op(OpKind::Write), zone_plan());
    let (report, issued) = job().run_issued();
    assert_clean(&report, "one pass");
    let offsets: Vec<u64> = issued.iter().map(|io| io.step.request().offset).collect();
    let expected: Vec<u64> = (0..ZONES).flat_map(|zone| (0..12).map(move |block| zone * ZONE + block * 4096)).collect();
    assert_eq!(offsets, expected);
    assert_eq!(report.zones.as_ref().map(|zones| (zones.reset_count, zones.sequential_count)), Some((0, ZONES)));
    // The second pass resets each zone before it writes it.
    let (report, issued) = job().with(|plan| plan.limits.loops = 2).run_issued();
    assert_eq!((issued.len(), resets_of(&issued)), (2 * 96, ZONES));
    assert_eq!(report.zones.map(|zones| zones.reset_count), Some(ZONES));
    // Every other zone.
    let skips = ZonePlan { skip_zones: 1, ..zone_plan() };
    let (_, issued) = zoned(modelled().sequential().op(OpKind::Write), skips).run_issued();
    assert!(issued.len() == 48 && issued.iter().all(|io| (io.step.request().offset / ZONE).is_multiple_of(2)));
}

#[test]
fn a_deep_random_job_writes_at_the_pointers_one_at_a_time_in_each_zone() {
    let job = || {
        let job = modelled().op(OpKind::Write).depth(8).ios(2_000).with(|plan| {
            plan.pattern.order =
                Order::Random { distribution: trueio_model::Distribution::Uniform, each_block_once: false };
        });
        zoned(job, zone_plan())
    };
    let (report, issued) = job().run_issued();
    assert_clean(&report, "random");
    assert_eq!(issued.len(), 2_000);
    assert_eq!(report.zones.map(|zones| zones.reset_count), Some(resets_of(&issued)));
    let (report, ios) = job().run_logged();
    assert_clean(&report, "random");
    assert_alone(&ios);
    // It is still deep: several zones are written at a time.
    assert!(report.queue.is_some_and(|queue| queue.depth[1..].iter().sum::<u64>() > 500));
}

#[test]
fn no_more_zones_are_partly_written_than_may_be() {
    for (open_max, worker_open_max) in [(3, 0), (0, 2)] {
        let plan = ZonePlan { open_max, worker_open_max, ..zone_plan() };
        let (report, issued) = zoned(modelled().op(OpKind::Write).depth(8).ios(1_000), plan).run_issued();
        assert_clean(&report, "limited");
        let mut pointers: BTreeMap<u64, u64> = BTreeMap::new();
        for io in &issued {
            pointers.insert(
                io.step.request().offset / ZONE,
                io.step.request().offset % ZONE + u64::from(io.step.request().length),
            );
            let open = pointers.values().filter(|pointer| **pointer < CAPACITY).count();
            assert!(open <= open_max.max(worker_open_max) as usize, "{open} zones are open");
        }
        assert!(pointers.len() == ZONES as usize, "all zones get their turn");
    }
}

#[test]
fn a_mixed_job_begins_with_a_write_and_reads_only_what_was_written() {
    let job = zoned(modelled().mixed(70).depth(4).ios(2_000), zone_plan());
    let (report, ios) = job.run_logged();
    assert_clean(&report, "mixed");
    // By the end of a write; a zone that is reset holds nothing until the next.
    let mut writes: Vec<_> = ios.iter().filter(|io| io.op == OpKind::Write).collect();
    writes.sort_by_key(|io| io.end_ns);
    let reads = ios.iter().filter(|io| io.op == OpKind::Read);
    let mut count = 0;
    for read in reads {
        count += 1;
        let issued = read.end_ns - read.total_ns;
        let was_written = writes.iter().any(|write| write.offset == read.offset && write.end_ns <= issued);
        assert!(was_written, "{read:?}");
    }
    assert!(count > 1_000, "{count} reads");
}

#[test]
fn reads_of_empty_zones_fail_or_go_beyond_the_pointers_if_that_is_set() {
    let report = zoned(modelled().sequential(), zone_plan()).run();
    let fatal = report.fatal.expect("nothing can be read");
    assert!(fatal.starts_with("no zone of") && fatal.contains("read_beyond_wp"), "{fatal}");
    let beyond = ZonePlan { reads_beyond: true, ..zone_plan() };
    let report = zoned(modelled().sequential(), beyond).run();
    assert_clean(&report, "beyond");
    assert_eq!(op(&report, OpKind::Read).io_count, ZONES * CAPACITY / 4096);
}

#[test]
fn a_zone_that_was_written_by_one_job_is_read_and_trimmed_by_the_next() {
    let mut writer = zoned(modelled().sequential().op(OpKind::Write), zone_plan());
    writer.plan.limits.io_count = Some(14);
    assert_clean(&writer.run(), "writes");
    let map = writer.zones[0].clone();
    assert_eq!((map.pointer_at(0), map.pointer_at(ZONE)), (Some(CAPACITY), Some(ZONE + 2 * 4096)));
    let with_map = |mut job: Job| {
        job.plan.zones = Some(zone_plan());
        job.zones = vec![map.clone()];
        job
    };
    let report = with_map(modelled().sequential()).run();
    assert_eq!(op(&report, OpKind::Read).io_count, 14, "as much as was written");
    let sizes = trueio_model::BlockSizes::Fixed(ZONE);
    let trims = with_map(modelled().op(OpKind::Trim).sizes(sizes.clone()));
    let report = trims.run();
    assert_clean(&report, "trims");
    assert_eq!(op(&report, OpKind::Trim).io_count, 2, "the two that held data");
    assert_eq!(map.pointer_at(0), Some(0));
    assert_eq!(report.zones.map(|zones| zones.reset_count), Some(0), "trims are not counted as resets");
    // A sequential job trims every zone, empty or not.
    let report = with_map(modelled().sequential().op(OpKind::Trim).sizes(sizes)).run();
    assert_eq!(op(&report, OpKind::Trim).io_count, ZONES);
}

#[test]
fn zones_are_reset_early_where_a_garbage_collector_is_played() {
    let fullest = |early_resets| {
        let job = modelled().op(OpKind::Write).ios(1_000);
        let (report, issued) = zoned(job, ZonePlan { early_resets, ..zone_plan() }).run_issued();
        assert_eq!(report.zones.map(|zones| zones.reset_count), Some(resets_of(&issued)));
        let mut pointers: BTreeMap<u64, u64> = BTreeMap::new();
        let written = issued.iter().map(|io| {
            pointers.insert(io.step.request().offset / ZONE, io.step.request().offset % ZONE / 4096 + 1);
            pointers.values().sum::<u64>()
        });
        written.max().unwrap()
    };
    let capacity = ZONES * CAPACITY / 4096;
    // A zone of each write beyond half of the capacity is reset, unless it is empty.
    let at_half = fullest(Some(EarlyResets { threshold: 0.5, every: 1 }));
    let seldom = fullest(Some(EarlyResets { threshold: 0.5, every: 20 }));
    let never = fullest(None);
    assert!(at_half <= capacity / 2 + ZONES, "{at_half} of {capacity} blocks");
    assert!(at_half < seldom && seldom <= never, "{at_half} {seldom} {never}");
}

#[test]
fn a_write_that_fails_keeps_the_pointer_and_the_next_goes_to_the_same_offset() {
    let mut job = zoned(modelled().sequential().op(OpKind::Write), zone_plan());
    job.plan.continue_on_error = true;
    job.plan.limits.io_count = Some(6);
    job.device().failing_ios = vec![2];
    let (report, issued) = job.run_issued();
    assert_eq!(op(&report, OpKind::Write).error_count, 1);
    let offsets: Vec<u64> = issued.iter().map(|io| io.step.request().offset / 4096).collect();
    let again = offsets.windows(2).filter(|two| two[0] == two[1]).count();
    assert_eq!((again, offsets.last()), (1, Some(&4)), "{offsets:?}");
}

/// Goal: two workers never write to one offset at a time, nor leave a hole. Method: a job reads and compares the
/// blocks; each one was sealed by its writer.
#[test]
fn workers_share_the_write_pointers_and_verify_finds_what_they_left() {
    let folder = folder();
    let path = filled(folder.path(), "zones", ZONES * ZONE);
    let job = || Job::new(EngineKind::Libaio).on(&[&path], ZONES * ZONE, Open::ReadWrite).verify(Checksum::Crc32c);
    let map = Arc::new(ZoneMap::emulated(ZONE, CAPACITY, ZONES * ZONE));
    let on_map = |mut job: Job| {
        job.plan.zones = Some(zone_plan());
        job.zones = vec![map.clone()];
        job
    };
    let writer = |seed| {
        let job = on_map(job().depth(4).op(OpKind::Write).ios(400).seed(seed));
        // Each would compare what the other has reset.
        job.with(|plan| plan.verify.as_mut().expect("it verifies").reads_back = false)
    };
    let writers = [writer(7), writer(8)];
    let start = Start::new();
    std::thread::scope(|scope| {
        let threads = writers.each_ref().map(|job| scope.spawn(|| job.run_from(&start)));
        start.wait_for(2);
        start.open();
        for thread in threads {
            let report = thread.join().unwrap();
            assert_clean(&report, "shared");
            assert_eq!(op(&report, OpKind::Write).io_count, 400);
        }
    });
    let held: u64 = (0..ZONES).map(|zone| map.pointer_at(zone * ZONE).unwrap() - zone * ZONE).sum();
    let report = on_map(job().sequential()).run();
    assert_clean(&report, "what they left");
    assert_eq!(report.verified_block_count, held / 4096);
    // It would find it.
    let zone = (0..ZONES).find(|zone| map.pointer_at(zone * ZONE) > Some(zone * ZONE)).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"torn", zone * ZONE + 2000).unwrap();
    assert_eq!(on_map(job().sequential()).run().verify_failure_count, 1);
}

#[test]
fn a_block_that_fits_in_no_zone_ends_the_job_and_so_do_zones_of_another_job() {
    let block = |bytes| modelled().op(OpKind::Write).sizes(trueio_model::BlockSizes::Fixed(bytes)).time(MINUTE);
    let report = zoned(block(CAPACITY + 4096), zone_plan()).run();
    assert!(report.fatal.as_ref().is_some_and(|fatal| fatal.contains("does not fit")), "{:?}", report.fatal);
    assert_clean(&zoned(block(CAPACITY), zone_plan()).time(MS).run(), "all of a zone");
    let mut other = zoned(modelled().op(OpKind::Write), zone_plan());
    other.plan.zones = Some(ZonePlan { capacity_bytes: ZONE, ..zone_plan() });
    let fatal = other.run().fatal.expect("another capacity");
    assert!(fatal.contains(&format!("{CAPACITY} of them used")), "{fatal}");
    let mut longer = zoned(modelled().op(OpKind::Write), zone_plan());
    longer.plan.files[0].size_bytes += ZONE;
    let fatal = longer.run().fatal.expect("more zones than there are");
    assert!(fatal.contains("end at byte"), "{fatal}");
}

#[test]
fn random_reads_go_to_all_written_blocks_of_the_region_and_the_files() {
    let mut writer = zoned(modelled().sequential().op(OpKind::Write), zone_plan());
    writer.plan.limits.io_count = Some(2 * 12);
    assert_clean(&writer.run(), "two zones are written");
    // A region that begins less than a block before the end of the written part of zone 0, and reads of 16 KiB.
    let sizes = trueio_model::BlockSizes::Fixed(16 * KIB);
    let mut reader = modelled().sizes(sizes).ios(200);
    reader.plan.files[0].offset_bytes = 40 * KIB;
    reader.plan.files[0].size_bytes -= 40 * KIB;
    (reader.plan.zones, reader.zones) = (Some(zone_plan()), writer.zones.clone());
    let (report, issued) = reader.run_issued();
    assert_clean(&report, "a part of the zones");
    let mut offsets: Vec<u64> = issued.iter().map(|io| io.step.request().offset).collect();
    offsets.sort_unstable();
    offsets.dedup();
    assert_eq!((issued.len(), offsets), (200, vec![ZONE, ZONE + 16 * KIB, ZONE + 32 * KIB]));
    // In order, from the middle of a block on: the next whole one.
    let mut reader = modelled().sequential().sizes(trueio_model::BlockSizes::Fixed(16 * KIB)).region(2 * ZONE);
    reader.plan.files[0].offset_bytes = 20 * KIB;
    (reader.plan.zones, reader.zones) = (Some(zone_plan()), writer.zones.clone());
    let offsets: Vec<u64> = reader.run_issued().1.iter().map(|io| io.step.request().offset).collect();
    assert_eq!(offsets, [32 * KIB, ZONE, ZONE + 16 * KIB, ZONE + 32 * KIB]);
    // A second file that holds nothing, as the first and as the last.
    let empty = Arc::new(ZoneMap::emulated(ZONE, CAPACITY, ZONES * ZONE));
    for (written, maps) in [(1, [&empty, &writer.zones[0]]), (0, [&writer.zones[0], &empty])] {
        for is_random in [true, false] {
            let mut reader = if is_random { modelled().ios(200) } else { modelled().sequential().ios(200) };
            reader.plan.files.push(reader.plan.files[0].clone());
            (reader.plan.zones, reader.zones) = (Some(zone_plan()), maps.map(Clone::clone).to_vec());
            let (report, issued) = reader.run_issued();
            assert_clean(&report, "two files");
            assert!(
                issued.len() == 200 && issued.iter().all(|io| io.step.request().file == written),
                "{}",
                issued.len()
            );
        }
    }
}

/// Goal: a job that finds nothing to read does not end as if it had read all. Method: a writer that begins late, and
/// then one that has ended before another job trims what it wrote.
#[test]
fn a_reader_without_data_waits_for_writers_and_fails_if_there_are_none() {
    let folder = folder();
    let path = filled(folder.path(), "waits", ZONES * ZONE);
    let map = Arc::new(ZoneMap::emulated(ZONE, CAPACITY, ZONES * ZONE));
    let on_map = |mut job: Job| {
        job = job.on(&[&path], ZONES * ZONE, Open::ReadWrite);
        job.plan.zones = Some(zone_plan());
        job.zones = vec![map.clone()];
        job
    };
    let late = on_map(Job::new(EngineKind::Psync)).sequential().op(OpKind::Write);
    let mut in_vain = modelled().time(S);
    (in_vain.plan.zones, in_vain.zones) = (Some(zone_plan()), vec![map.clone()]);
    let readers =
        [on_map(Job::new(EngineKind::Psync)).ios(100), on_map(Job::new(EngineKind::Psync)).sequential().ios(100)];
    let (start, later) = (Start::new(), Start::new());
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| late.run_from(&later));
        later.wait_for(1);
        // It is there and does nothing: in virtual time a second goes by.
        let report = in_vain.run();
        assert_eq!((report.fatal, report.ops.iter().map(|op| op.io_count).sum::<u64>()), (None, 0));
        assert!(report.engine_notes.iter().any(|note| note.contains("the job waited")), "{:?}", report.engine_notes);
        let threads = readers.each_ref().map(|job| scope.spawn(|| job.run_from(&start)));
        start.wait_for(2);
        start.open();
        later.open();
        assert_clean(&writer.join().unwrap(), "late");
        for thread in threads {
            let report = thread.join().unwrap();
            assert_clean(&report, "it waited");
            assert_eq!(op(&report, OpKind::Read).io_count, 100);
        }
    });
    // No writer is left; a reader runs while the zones are reset.
    let mut reader = on_map(Job::new(EngineKind::Psync)).time(10 * MINUTE);
    let (channel, chunks) = log_channel();
    reader.log = Some(channel);
    let report = std::thread::scope(|scope| {
        // The log ends when the job that holds the channel is dropped.
        let reading = scope.spawn(move || reader.run());
        let mut chunks = chunks.into_iter();
        chunks.next().expect("it reads").give_back();
        let rest = scope.spawn(|| chunks.for_each(|chunk| chunk.give_back()));
        let trims = on_map(Job::new(EngineKind::Psync)).op(OpKind::Trim).time(10 * MINUTE);
        let trimmed = trims.sizes(trueio_model::BlockSizes::Fixed(ZONE)).run();
        assert_clean(&trimmed, "trims");
        assert_eq!(op(&trimmed, OpKind::Trim).io_count, ZONES);
        assert!(trimmed.engine_notes.iter().any(|note| note.contains("held data to trim any more")), "{trimmed:?}");
        rest.join().unwrap();
        reading.join().unwrap()
    });
    let fatal = report.fatal.expect("what it read is gone");
    assert!(fatal.contains("holds data to read any more"), "{fatal}");
}

/// Goal: no zone is reset, and with `verify` or `serialize_overlap` nothing is written, where a read of the same job is
/// under way. Method: in virtual time, with slow I/Os of all zones; `read_beyond_wp` reads where the next write goes.
#[test]
fn what_is_being_read_is_neither_reset_nor_written() {
    type Change = fn(&mut trueio_model::JobPlan);
    let cases: [(bool, Change); 3] = [
        (false, |_| {}),
        (true, |plan| plan.verify = Some(Verify::new(Checksum::Null))),
        (true, |plan| plan.queue.serializes_overlap = true),
    ];
    for (reads_beyond, change) in cases {
        let plan = ZonePlan { reads_beyond, ..zone_plan() };
        let (report, ios) = zoned(modelled().mixed(50).depth(8).ios(4_000).with(change), plan).run_logged();
        assert_eq!((report.fatal, report.failures.len()), (None, 0));
        let of = |op: OpKind| ios.iter().filter(move |io| io.op == op);
        let mut count = 0;
        for write in of(OpKind::Write) {
            let reads = of(OpKind::Read).filter(|read| read.offset == write.offset);
            let is_apart = |read: &&LoggedIo| {
                read.end_ns <= write.end_ns - write.total_ns || write.end_ns <= read.end_ns - read.total_ns
            };
            let mut reads = reads.inspect(|_| count += 1);
            assert!(reads.all(|read| is_apart(&read)), "{write:?}");
        }
        assert!(count > 1_000 && of(OpKind::Write).count() > 1_000, "{count} pairs");
        assert!(report.zones.is_some_and(|zones| zones.reset_count > 100), "zones were reset");
    }
}

#[test]
fn a_mixed_job_that_verifies_reads_while_it_writes_and_finds_all_right() {
    let folder = folder();
    let path = filled(folder.path(), "mixed", ZONES * ZONE);
    for engine in [EngineKind::Libaio, EngineKind::Posixaio] {
        let job = Job::new(engine).depth(16).on(&[&path], ZONES * ZONE, Open::ReadWrite).mixed(50).ios(3_000);
        let report = zoned(job.verify(Checksum::Crc32c), zone_plan()).run();
        assert_clean(&report, engine.name());
        assert!(report.verified_block_count > 1_000, "{}", report.verified_block_count);
    }
}

#[test]
fn verify_compares_what_the_zones_hold_at_the_end_and_finds_a_changed_byte() {
    use std::os::unix::fs::FileExt;
    let folder = folder();
    let path = filled(folder.path(), "verified", ZONES * ZONE);
    for backlog in [0, 16] {
        let job = Job::new(EngineKind::Libaio).depth(8).on(&[&path], ZONES * ZONE, Open::ReadWrite).op(OpKind::Write);
        let verify = Verify { backlog, ..Verify::new(Checksum::Crc32c) };
        let job =
            zoned(job.ios(if backlog == 0 { 500 } else { 1_000 }).with(|plan| plan.verify = Some(verify)), zone_plan());
        let report = job.run();
        assert_clean(&report, "verified");
        assert!(report.zones.is_some_and(|zones| zones.reset_count > 20));
        let held: u64 = (0..ZONES).map(|zone| job.zones[0].pointer_at(zone * ZONE).unwrap() - zone * ZONE).sum();
        if backlog == 0 {
            assert_eq!(report.verified_block_count, held / 4096, "each block that is still there, once");
        } else {
            assert!(report.verified_block_count > held / 4096);
        }
    }
    // The file is changed while the job compares: the job that reads it next finds it.
    let job = Job::new(EngineKind::Psync).on(&[&path], ZONES * ZONE, Open::ReadWrite).op(OpKind::Write).sequential();
    let verify = Verify::new(Checksum::Crc32c);
    let mut writer = zoned(job.with(|plan| plan.verify = Some(verify)), zone_plan());
    assert_clean(&writer.run(), "written");
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, ZONE + 5000).unwrap();
    file.write_all_at(&[byte[0] ^ 1], ZONE + 5000).unwrap();
    writer.plan.pattern.mix = trueio_model::OpMix::Only(OpKind::Read);
    let report = writer.run();
    assert_eq!((report.verified_block_count, report.verify_failure_count), (ZONES * CAPACITY / 4096, 1));
    assert_eq!(report.verify_failures[0].offset, ZONE + 4096);
}

#[test]
fn a_file_is_trimmed_and_its_zone_is_empty_then() {
    let folder = folder();
    let path = filled(folder.path(), "trimmed", ZONES * ZONE);
    let sizes = trueio_model::BlockSizes::Fixed(ZONE);
    let job = Job::new(EngineKind::Psync).on(&[&path], ZONES * ZONE, Open::ReadWrite).op(OpKind::Trim).sequential();
    let job = zoned(job.sizes(sizes), ZonePlan { capacity_bytes: ZONE, ..zone_plan() });
    assert_clean(&job.run(), "trims");
    assert!(std::fs::read(&path).unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn the_rest_of_a_zone_is_left_or_written() {
    let sizes = || trueio_model::BlockSizes::Fixed(20 * KIB);
    let job = || modelled().sequential().op(OpKind::Write).sizes(sizes());
    let (_, issued) = zoned(job(), zone_plan()).run_issued();
    assert!(
        issued.len() == 2 * ZONES as usize && issued.iter().all(|io| u64::from(io.step.request().length) == 20 * KIB)
    );
    let (report, issued) = zoned(job(), ZonePlan { writes_remainder: true, ..zone_plan() }).run_issued();
    assert_eq!(issued.iter().map(|io| u64::from(io.step.request().length)).sum::<u64>(), ZONES * CAPACITY);
    assert_eq!(op(&report, OpKind::Write).byte_count, ZONES * CAPACITY);
}

#[test]
fn what_is_no_zoned_device_is_not_taken_for_one() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(MIB).unwrap();
    assert!(ZoneMap::of_device(&file, 0, 0).is_err());
}
