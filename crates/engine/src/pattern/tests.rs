//! What the generator promises, on plans small enough to see.

use super::*;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use trueio_model::{BlockSizes, Checksum, Distribution, Verify};
use trueio_model::{EngineKind, FilePlan, Pattern, Prepare, RangeSync, WriteSteps, Zones};

const UNIT: u64 = 512;

/// One file of `blocks` times 512 bytes from `offset` on, uniform, each block once, without a limit.
fn plan(blocks: u64, offset: u64, mix: OpMix, order: Order, sizes: BlockSizes) -> JobPlan {
    let file = |size_bytes| FilePlan {
        path: String::new(),
        prepare: Prepare::Nothing,
        remove_after: false,
        offset_bytes: offset,
        size_bytes,
        extends_from: None,
    };
    JobPlan {
        files: vec![file(blocks * UNIT)],
        pattern: Pattern {
            mix,
            order,
            read_sizes: sizes.clone(),
            write_sizes: sizes.clone(),
            trim_sizes: sizes,
            steps: trueio_model::Steps::default(),
        },
        ..JobPlan::plain(EngineKind::Null, blocks * UNIT)
    }
}

const ONCE: Order = Order::Random { distribution: Distribution::Uniform, each_block_once: true };
const AGAIN: Order = Order::Random { distribution: Distribution::Uniform, each_block_once: false };
const READ: OpMix = OpMix::Only(OpKind::Read);
const WRITE: OpMix = OpMix::Only(OpKind::Write);

fn with_files(mut plan: JobPlan, count: usize, selection: FileSelection) -> JobPlan {
    plan.files = vec![plan.files[0].clone(); count];
    plan.limits.io_bytes *= count as u64;
    plan.file_selection = selection;
    plan
}

/// Returns requests until the generator is done, at most `most`.
/// A step, with what most tests read of it as fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Taken {
    op: OpKind,
    file: u16,
    offset: u64,
    length: u32,
    step: Step,
}

impl Taken {
    fn begins_pass(&self) -> bool {
        matches!(self.step, Step::NextPass { .. })
    }
}

impl From<Step> for Taken {
    fn from(step: Step) -> Self {
        let Request { op, file, offset, length } = step.request();
        Self { op, file, offset, length, step }
    }
}

fn take(plan: &JobPlan, worker: u32, most: usize) -> Vec<Taken> {
    let mut generator = Generator::new(plan, worker);
    let mut out = Vec::new();
    let mut block = [Step::NONE; REQUEST_BLOCK];
    while out.len() < most {
        let n = generator.refill(&mut block);
        if n == 0 {
            // Done once is done for good.
            assert_eq!(generator.refill(&mut block), 0);
            return out;
        }
        out.extend(block[..n].iter().copied().map(Taken::from));
    }
    out.truncate(most);
    out
}

fn bytes(requests: &[Taken]) -> u64 {
    requests.iter().map(|r| u64::from(r.length)).sum()
}

/// Goal: a job that verifies finds what another one wrote, however many passes each had time for: random blocks without a map are the same in
/// each pass. Method: three passes, by the plain way and by the general one (writes and reads, sync calls, several sizes); without `verify`, passes differ.
#[test]
fn random_blocks_without_a_map_are_the_same_in_each_pass_of_a_job_that_verifies() {
    let one = BlockSizes::Fixed(UNIT);
    let two = BlockSizes::Range { min_bytes: UNIT, max_bytes: 4 * UNIT };
    let mixed = OpMix::ReadWrite { read_percent: 50 };
    for (mix, sizes, syncs) in [(WRITE, &one, 0), (READ, &two, 0), (mixed, &one, 0), (WRITE, &one, 7)] {
        let mut plan = plan(100, 0, mix, AGAIN, sizes.clone());
        plan.limits.is_time_based = true;
        plan.flush.fsync_every = syncs;
        let first_passes = |plan: &JobPlan| {
            let transfers = |taken: &Taken| taken.op != OpKind::Sync;
            let taken: Vec<Taken> = take(plan, 0, 1_000).into_iter().filter(transfers).collect();
            let mut passes = vec![Vec::new()];
            for request in taken {
                let pass = passes.last_mut().expect("one");
                pass.push((request.offset, request.length, request.op));
                if pass.iter().map(|(_, length, _)| u64::from(*length)).sum::<u64>() >= 100 * UNIT {
                    passes.push(Vec::new());
                }
            }
            passes.truncate(3);
            passes
        };
        let differing = first_passes(&plan);
        assert!(differing[0] != differing[1], "{mix:?}");
        plan.verify = Some(Verify::new(Checksum::Crc32c));
        let same = first_passes(&plan);
        assert!(same[0] == same[1] && same[1] == same[2], "{mix:?} {syncs}");
    }
}

/// Goal: workers with regions of their own stay in them, in order and at random. Method: three workers, 16 units each, 20 units apart.
#[test]
fn each_worker_covers_its_own_region_once() {
    for order in [Order::Sequential, ONCE] {
        let mut plan = plan(2 * 20 + 16, 4 * UNIT, READ, order, BlockSizes::Fixed(512));
        (plan.workers, plan.offset_increment_bytes, plan.limits.io_bytes) = (3, 20 * UNIT, 16 * UNIT);
        for worker in 0..3 {
            let mut offsets: Vec<u64> = take(&plan, worker, 100).iter().map(|taken| taken.offset).collect();
            offsets.sort_unstable();
            let begin = 4 + 20 * u64::from(worker);
            assert_eq!(offsets, (begin..begin + 16).map(|unit| unit * UNIT).collect::<Vec<_>>(), "worker {worker}");
        }
    }
}

/// How often each unit of the file was touched.
fn touched(requests: &[Taken], plan: &JobPlan, file: u16) -> Vec<u32> {
    let region = &plan.files[usize::from(file)];
    let mut units = vec![0; (region.size_bytes / UNIT) as usize];
    for r in requests.iter().filter(|r| r.file == file && r.op != OpKind::Sync) {
        let first = (r.offset - region.offset_bytes) / UNIT;
        for unit in first..first + u64::from(r.length) / UNIT {
            units[unit as usize] += 1;
        }
    }
    units
}

fn any_sizes() -> impl Strategy<Value = BlockSizes> {
    prop_oneof![
        (1u64..9).prop_map(|n| BlockSizes::Fixed(n * UNIT)),
        (1u64..4, 1u64..9)
            .prop_map(|(min, more)| BlockSizes::Range { min_bytes: min * UNIT, max_bytes: (min + more) * UNIT }),
        (1u64..4, 4u64..17, 1u32..99)
            .prop_map(|(a, b, weight)| BlockSizes::Weighted(vec![(a * UNIT, weight), (b * UNIT, 100 - weight)])),
    ]
}

fn any_order() -> impl Strategy<Value = Order> {
    let random = |distribution| Order::Random { distribution, each_block_once: false };
    prop_oneof![
        Just(Order::Sequential),
        Just(ONCE),
        Just(AGAIN),
        Just(random(Distribution::Zipf { theta: 1.1, center: None })),
        Just(random(Distribution::Pareto { h: 0.2, center: Some(0.5) })),
        Just(random(Distribution::Normal { deviation_percent: 20.0, center: Some(1.0) })),
        Just(random(Distribution::Zoned { zones: vec![(60.0, 10.0), (40.0, 90.0)] })),
        Just(random(Distribution::ZonedBytes { zones: vec![(60.0, 20 * UNIT), (40.0, 300 * UNIT)] })),
    ]
}

fn any_mix() -> impl Strategy<Value = OpMix> {
    prop_oneof![
        Just(READ),
        Just(WRITE),
        Just(OpMix::Only(OpKind::Trim)),
        (0u8..=100).prop_map(|read_percent| OpMix::ReadWrite { read_percent })
    ]
}

fn any_selection() -> impl Strategy<Value = FileSelection> {
    let drawn = |distribution| Just(FileSelection::Drawn { distribution });
    prop_oneof![
        Just(FileSelection::RoundRobin),
        Just(FileSelection::Sequential),
        Just(FileSelection::Random),
        drawn(Distribution::Zipf { theta: 1.1, center: None }),
        drawn(Distribution::Normal { deviation_percent: 10.0, center: None }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_request_lies_within_its_region_at_a_multiple_of_the_unit(
        blocks in 32u64..300, offset in 0u64..5, sizes in any_sizes(), order in any_order(), mix in any_mix(),
        files in 1usize..4, selection in any_selection(), flush in 0u64..5, seed: u64,
    ) {
        let mut plan = with_files(plan(blocks, offset * UNIT, mix, order, sizes.clone()), files, selection);
        plan.seed = seed;
        plan.flush.fdatasync_every = flush;
        plan.limits.loops = 3;
        let unit = Sizes::new(&sizes, false).each().into_iter().fold(0, gcd);
        let requests = take(&plan, 0, 3_000);
        prop_assert!(!requests.is_empty());
        for r in requests.iter().filter(|r| r.op != OpKind::Sync) {
            let length = u64::from(r.length);
            prop_assert!(usize::from(r.file) < files);
            prop_assert!(r.offset >= offset * UNIT && r.offset + length <= (offset + blocks) * UNIT, "{r:?}");
            prop_assert!((r.offset - offset * UNIT).is_multiple_of(unit), "{r:?}");
            prop_assert!(length > 0 && length.is_multiple_of(unit) && length <= sizes.max_bytes(), "{r:?}");
        }
    }

    #[test]
    fn the_same_plan_and_worker_give_the_same_requests_and_another_worker_others(
        sizes in any_sizes(), order in any_order(), mix in any_mix(), seed: u64,
    ) {
        let mut plan = plan(4_096, 0, mix, order.clone(), sizes);
        plan.seed = seed;
        plan.limits.is_time_based = true;
        let requests = take(&plan, 0, 500);
        prop_assert_eq!(&requests, &take(&plan, 0, 500));
        plan.engine = EngineKind::Psync;
        prop_assert_eq!(&requests, &take(&plan, 0, 500));
        if order != Order::Sequential {
            prop_assert_ne!(&requests, &take(&plan, 1, 500));
            plan.seed ^= 1;
            prop_assert_ne!(&requests, &take(&plan, 0, 500));
        }
    }

    #[test]
    fn sequential_requests_follow_each_other_and_begin_again_at_the_end(blocks in 1u64..200, size in 1u64..9) {
        let size = size.min(blocks) * UNIT;
        let mut plan = plan(blocks, 8 * UNIT, READ, Order::Sequential, BlockSizes::Fixed(size));
        plan.limits.is_time_based = true;
        let whole = blocks * UNIT / size;
        for (i, r) in take(&plan, 0, 1_000).iter().enumerate() {
            prop_assert_eq!(r.offset, 8 * UNIT + i as u64 % whole * size);
        }
    }

    #[test]
    fn each_block_once_covers_every_unit_once_a_pass_whatever_the_sizes(
        blocks in 16u64..400, sizes in any_sizes(), files in 1usize..4, selection in any_selection(), seed: u64,
    ) {
        let mut plan = with_files(plan(blocks, 0, WRITE, ONCE, sizes), files, selection);
        plan.seed = seed;
        // Three passes over the first file, in order; a rest smaller than a unit is never touched.
        plan.limits.is_time_based = true;
        let unit = Sizes::new(&plan.pattern.write_sizes, false).each().into_iter().fold(0, gcd);
        let whole = blocks * UNIT / unit * unit;
        let requests: Vec<Taken> = take(&plan, 0, 30_000).into_iter().filter(|r| r.file == 0).collect();
        let mut rest = &requests[..];
        for pass in 0..2 {
            let mut end = 0;
            let mut sum = 0;
            while sum < whole {
                sum += u64::from(rest[end].length);
                end += 1;
            }
            prop_assert_eq!(sum, whole, "no request spans two passes");
            let units = touched(&rest[..end], &plan, 0);
            let (covered, left_over) = units.split_at((whole / UNIT) as usize);
            prop_assert!(covered.iter().all(|&n| n == 1), "pass {}: {:?}", pass, units);
            prop_assert!(left_over.iter().all(|&n| n == 0));
            rest = &rest[end..];
        }
    }

    #[test]
    fn a_limit_of_bytes_is_kept_to_the_unit(
        blocks in 32u64..300, io_blocks in 1u64..1_000, loops in 1u64..4, sizes in any_sizes(), order in any_order(),
        mix in any_mix(), flush in 0u64..4,
    ) {
        let mut plan = plan(blocks, 0, mix, order, sizes);
        plan.limits.io_bytes = io_blocks * UNIT;
        plan.limits.loops = loops;
        plan.flush.fsync_every = flush;
        let unit = Sizes::new(&plan.pattern.read_sizes, false).each().into_iter().fold(0, gcd);
        // Of one loop as far as whole I/Os go, which the plan sees to; several are rounded up together.
        let all = io_blocks * UNIT * loops;
        let expected = if loops == 1 { all / unit * unit } else { all.next_multiple_of(unit) };
        prop_assert_eq!(bytes(&take(&plan, 0, usize::MAX)), expected);
    }

    #[test]
    fn a_limit_of_ios_is_exact_and_does_not_count_sync_calls(
        count in 0u64..500, order in any_order(), sizes in any_sizes(), mix in any_mix(), flush in 0u64..4,
    ) {
        let mut plan = plan(64, 0, mix, order, sizes);
        plan.limits.io_count = Some(count);
        plan.limits.is_time_based = true;
        plan.flush.fsync_every = flush;
        let ios = take(&plan, 0, usize::MAX).iter().filter(|r| r.op != OpKind::Sync).count();
        prop_assert_eq!(ios as u64, count);
    }

    #[test]
    fn a_sync_call_comes_after_every_so_many_writes(every in 1u64..9, read_percent in 0u8..=90, data_only: bool) {
        let mut plan = plan(256, 0, OpMix::ReadWrite { read_percent }, ONCE, BlockSizes::Fixed(UNIT));
        plan.limits.is_time_based = true;
        *(if data_only { &mut plan.flush.fdatasync_every } else { &mut plan.flush.fsync_every }) = every;
        let mut writes = 0;
        for r in take(&plan, 0, 2_000) {
            match r.op {
                OpKind::Write => writes += 1,
                OpKind::Sync => {
                    prop_assert_eq!((writes, r.step), (every, Step::Sync { file: r.file, data_only }));
                    writes = 0;
                }
                _ => {}
            }
            prop_assert!(writes <= every);
        }
    }

    /// As fio's `get_rw_ddir` does: of the calls that are due after a write the first one is made.
    #[test]
    fn of_several_kinds_of_sync_calls_the_first_that_is_due_is_made(
        fsync in 0u64..6, fdatasync in 0u64..6, range in 1u64..6, read_percent in 0u8..=90,
    ) {
        let mut plan = plan(256, 0, OpMix::ReadWrite { read_percent }, ONCE, BlockSizes::Fixed(UNIT));
        plan.limits.is_time_based = true;
        plan.flush.fsync_every = fsync;
        plan.flush.fdatasync_every = fdatasync;
        plan.flush.range =
            Some(RangeSync { every: range, waits_before: false, writes: true, waits_after: false });
        let due = |writes: u64, every: u64| every > 0 && writes > 0 && writes.is_multiple_of(every);
        let (mut writes, mut is_written) = (0, false);
        for r in take(&plan, 0, 2_000) {
            let expected = match writes {
                _ if !is_written => None,
                n if due(n, fsync) => Some("fsync"),
                n if due(n, fdatasync) => Some("fdatasync"),
                n if due(n, range) => Some("sync_file_range"),
                _ => None,
            };
            let found = match r.step {
                Step::Sync { data_only: false, .. } => Some("fsync"),
                Step::Sync { data_only: true, .. } => Some("fdatasync"),
                Step::SyncRange { .. } => Some("sync_file_range"),
                _ => None,
            };
            prop_assert_eq!(found, expected, "after {} writes", writes);
            is_written = r.op == OpKind::Write;
            writes += u64::from(is_written);
        }
    }

    /// Each call is for what was written to its file since the call before, and not for less.
    #[test]
    fn a_range_call_is_for_what_its_file_was_written_since_the_last(
        every in 1u64..9, files in 1_usize..4, order in any_order(), sizes in any_sizes(),
    ) {
        let mut plan = with_files(plan(256, 7, WRITE, order, sizes), files, FileSelection::RoundRobin);
        plan.limits.is_time_based = true;
        plan.flush.range = Some(RangeSync { every, waits_before: false, writes: true, waits_after: false });
        let mut written: Vec<Option<(u64, u64)>> = vec![None; files];
        let (mut writes, mut last) = (0, 0);
        for r in take(&plan, 0, 2_000) {
            if r.op == OpKind::Write {
                writes += 1;
                last = r.file;
                let (begin, end) = written[usize::from(r.file)].unwrap_or((u64::MAX, 0));
                written[usize::from(r.file)] = Some((begin.min(r.offset), end.max(r.offset + u64::from(r.length))));
                continue;
            }
            let (begin, end) = written[usize::from(r.file)].take().expect("a call follows a write");
            prop_assert_eq!((writes, r.file, r.offset), (every, last, begin));
            let bytes = (end - begin).next_multiple_of(4096);
            prop_assert_eq!(r.step, Step::SyncRange { file: r.file, offset: r.offset, bytes });
            writes = 0;
        }
        prop_assert!(writes <= every);
    }

    #[test]
    fn files_in_sequence_are_each_done_to_their_end(
        blocks in 16u64..300, sizes in any_sizes(), order in any_order(), seed: u64,
    ) {
        let mut plan = with_files(plan(blocks, 0, READ, order.clone(), sizes), 3, FileSelection::Sequential);
        plan.seed = seed;
        plan.limits.is_time_based = true;
        let requests = take(&plan, 0, 10_000);
        let mut visits: Vec<(u16, u64)> = Vec::new();
        for r in &requests {
            match visits.last_mut() {
                Some((file, sum)) if *file == r.file => *sum += u64::from(r.length),
                _ => visits.push((r.file, u64::from(r.length))),
            }
        }
        let most = plan.pattern.read_sizes.max_bytes();
        visits.pop();
        prop_assert!(visits.len() >= 3);
        for (i, &(file, sum)) in visits.iter().enumerate() {
            prop_assert_eq!(usize::from(file), i % 3);
            prop_assert!(sum + most > blocks * UNIT && sum < blocks * UNIT + most, "{} of {}", sum, blocks * UNIT);
        }
    }
}

#[test]
fn files_in_turn_and_at_random_get_equal_shares() {
    for selection in [FileSelection::RoundRobin, FileSelection::Random] {
        let mut plan = with_files(plan(64, 0, READ, ONCE, BlockSizes::Fixed(UNIT)), 4, selection.clone());
        plan.limits.is_time_based = true;
        let requests = take(&plan, 0, 40_000);
        for file in 0..4 {
            let share = requests.iter().filter(|r| r.file == file).count();
            // √(40,000 · ¼ · ¾) = 87; four deviations.
            let slack = if selection == FileSelection::RoundRobin { 0 } else { 347 };
            assert!(share.abs_diff(10_000) <= slack, "{selection:?}: file {file} got {share}");
        }
    }
}

/// Goal: no block of a file comes again before every block of every file came, however long the files are.
#[test]
fn files_of_unlike_lengths_are_gone_over_once_before_any_is_again() {
    let blocks = [2, 16, 5, 16];
    for order in [Order::Sequential, ONCE] {
        for (selection, most) in [
            (FileSelection::RoundRobin, 0),
            (FileSelection::RoundRobin, 2),
            (FileSelection::Random, 0),
            (FileSelection::Random, 3),
        ] {
            let mut plan = with_files(plan(1, 0, READ, order.clone(), BlockSizes::Fixed(UNIT)), 4, selection.clone());
            plan.files.iter_mut().zip(blocks).for_each(|(file, blocks)| file.size_bytes = blocks * UNIT);
            plan.files_at_a_time = most;
            plan.limits.io_bytes = 39 * UNIT;
            plan.limits.loops = 2;
            let requests = take(&plan, 0, 100);
            assert_eq!(requests.len(), 78);
            for round in requests.chunks(39) {
                for (file, blocks) in (0..).zip(blocks) {
                    let units = touched(round, &plan, file);
                    assert_eq!(units, vec![1; blocks as usize], "{order:?} {selection:?} {most} file {file}");
                }
            }
        }
    }
}

/// Goal: where blocks may come again, a file is left for the next when as much as it holds was transferred, and
/// without a limit of files each request may go to any.
#[test]
fn a_limit_of_files_counts_bytes_where_blocks_may_come_again() {
    let mut plan = with_files(plan(8, 0, READ, AGAIN, BlockSizes::Fixed(UNIT)), 6, FileSelection::RoundRobin);
    plan.limits.io_bytes = 48 * UNIT;
    let files = |plan: &JobPlan| take(plan, 0, 100).iter().map(|r| r.file).collect::<Vec<_>>();
    assert_eq!(files(&plan), [0, 1, 2, 3, 4, 5].repeat(8));
    plan.files_at_a_time = 2;
    assert_eq!(files(&plan), [[0, 1].repeat(8), [2, 3].repeat(8), [4, 5].repeat(8)].concat());
}

#[test]
fn a_time_based_job_is_never_done_by_its_bytes_or_loops() {
    for order in [Order::Sequential, ONCE, AGAIN] {
        for flush in [0, 3] {
            let mut plan = plan(16, 0, WRITE, order.clone(), BlockSizes::Fixed(UNIT));
            plan.limits.is_time_based = true;
            plan.flush.fsync_every = flush;
            assert_eq!(take(&plan, 0, 100_000).len(), 100_000);
        }
    }
}

#[test]
fn the_second_pass_has_another_order() {
    let mut plan = plan(1_000, 0, READ, ONCE, BlockSizes::Fixed(UNIT));
    plan.limits.loops = 2;
    let requests = take(&plan, 0, usize::MAX);
    assert_eq!(requests.len(), 2_000);
    let equal = requests[..1_000].iter().zip(&requests[1_000..]).filter(|(a, b)| a.offset == b.offset).count();
    // A random order has one fixed point on average; more than ten in 10^8 orders.
    assert!(equal <= 10, "{equal}");
}

#[test]
fn the_mix_is_drawn_with_its_percentage() {
    for (percent, slack) in [(0, 0), (30, 367), (70, 367), (100, 0)] {
        let mut plan = plan(64, 0, OpMix::ReadWrite { read_percent: percent }, AGAIN, BlockSizes::Fixed(UNIT));
        plan.limits.is_time_based = true;
        let reads = take(&plan, 0, 40_000).iter().filter(|r| r.op == OpKind::Read).count();
        // √(40,000 · 0.3 · 0.7) = 92; four deviations.
        assert!(reads.abs_diff(usize::from(percent) * 400) <= slack, "{percent} %: {reads}");
    }
}

#[test]
fn sizes_are_drawn_with_their_weights_and_ranges_evenly() {
    let mut weighted =
        plan(4_096, 0, READ, AGAIN, BlockSizes::Weighted(vec![(UNIT, 60), (4 * UNIT, 30), (8 * UNIT, 10)]));
    weighted.limits.is_time_based = true;
    let mut counts: HashMap<u32, u64> = HashMap::new();
    take(&weighted, 0, 40_000).iter().for_each(|r| *counts.entry(r.length).or_default() += 1);
    for (length, expected) in [(512, 24_000), (2_048, 12_000), (4_096, 4_000)] {
        assert!(counts[&length].abs_diff(expected) < 400, "{counts:?}");
    }
    let range = BlockSizes::Range { min_bytes: 2 * UNIT, max_bytes: 9 * UNIT };
    let mut range = plan(4_096, 0, READ, AGAIN, range);
    range.limits.is_time_based = true;
    let seen: HashSet<u32> = take(&range, 0, 1_000).iter().map(|r| r.length).collect();
    // Multiples of the smallest, up to the largest that fits: 2, 4, 6, 8.
    assert_eq!(seen, [1_024, 2_048, 3_072, 4_096].into());
}

#[test]
fn a_plain_job_and_the_general_path_visit_the_same_blocks() {
    let plain = plan(1_000, 0, WRITE, ONCE, BlockSizes::Fixed(UNIT));
    let mut general = plain.clone();
    general.flush.fsync_every = 7;
    let general: Vec<Taken> = take(&general, 0, usize::MAX).into_iter().filter(|r| r.op == OpKind::Write).collect();
    assert_eq!(take(&plain, 0, usize::MAX), general);
}

#[test]
fn mean_sizes_are_those_of_the_draw() {
    for sizes in [
        BlockSizes::Fixed(4 * UNIT),
        BlockSizes::Range { min_bytes: UNIT, max_bytes: 7 * UNIT },
        BlockSizes::Weighted(vec![(UNIT, 75), (8 * UNIT, 25)]),
    ] {
        let mut plan = plan(4_096, 0, READ, AGAIN, sizes.clone());
        plan.limits.is_time_based = true;
        let mean = Generator::new(&plan, 0).mean_size_bytes(None);
        let drawn = bytes(&take(&plan, 0, 20_000)) as f64 / 20_000.0;
        assert!((drawn / mean - 1.0).abs() < 0.03, "{sizes:?}: {drawn} of {mean}");
    }
}

/// The first `count` requests of a plan with `steps` over 16 blocks of 4 KiB.
fn stepped(order: Order, steps: Steps, sizes: BlockSizes, count: u64) -> Vec<Taken> {
    let mut plan = plan(16 * 8, 0, OpMix::Only(OpKind::Write), order, sizes);
    plan.pattern.steps = steps;
    plan.limits.io_count = Some(count);
    plan.limits.is_time_based = true;
    let mut generator = Generator::new(&plan, 0);
    let mut block = [Step::NONE; REQUEST_BLOCK];
    let mut all = Vec::new();
    loop {
        let n = generator.refill(&mut block);
        if n == 0 {
            return all;
        }
        all.extend(block[..n].iter().copied().map(Taken::from));
    }
}

fn blocks_of(requests: &[Taken]) -> Vec<u64> {
    requests.iter().map(|request| request.offset / 4096).collect()
}

const RANDOM: Order = Order::Random { distribution: Distribution::Uniform, each_block_once: false };
const FOUR_K: BlockSizes = BlockSizes::Fixed(4096);

#[test]
fn a_sequential_job_skips_forwards_and_backwards_as_fios_does() {
    let of = |skip_bytes| blocks_of(&stepped(Order::Sequential, Steps { skip_bytes, ..Steps::default() }, FOUR_K, 10));
    assert_eq!(of(4096), [0, 2, 4, 6, 8, 10, 12, 14, 0, 2]);
    assert_eq!(of(-8192), [14, 13, 12, 11, 10, 9, 8, 7, 6, 5]);
}

#[test]
fn so_many_ios_share_a_random_offset_or_go_on_from_it() {
    let of = |repeats| {
        let steps = Steps { random_every: 4, repeats, ..Steps::default() };
        blocks_of(&stepped(RANDOM, steps, FOUR_K, 400))
    };
    assert!(of(true).chunks(4).all(|four| four.iter().all(|block| *block == four[0])));
    assert!(of(false).chunks(4).all(|four| four.windows(2).all(|w| w[1] == (w[0] + 1) % 16)));
    let firsts: HashSet<u64> = of(true).chunks(4).map(|four| four[0]).collect();
    assert_eq!(firsts.len(), 16, "the offsets are drawn over the whole region");
}

#[test]
fn a_share_of_random_offsets_goes_on_where_the_last_ended() {
    let steps = Steps { sequential_percent: 70, ..Steps::default() };
    let blocks = blocks_of(&stepped(RANDOM, steps, FOUR_K, 4000));
    let next = blocks.windows(2).filter(|w| w[1] == (w[0] + 1) % 16).count();
    // 70 %, and one in sixteen of the others by chance: 71.9 % of 3,999; four deviations are 114.
    assert!(next.abs_diff(2874) < 120, "{next} of 3,999");
}

/// Goal: `percentage_random=100,0` and `blockalign=512,8k` hold for reads and for writes, each for its own.
#[test]
fn writes_of_a_mixed_job_may_have_other_offsets_than_its_reads() {
    let of = |op: OpKind, of_writes, align_bytes| {
        let steps = Steps { align_bytes, of_writes: Some(of_writes), ..Steps::default() };
        let mut plan = plan(16 * 8, 0, OpMix::ReadWrite { read_percent: 50 }, RANDOM, FOUR_K);
        plan.pattern.steps = steps;
        plan.limits.io_count = Some(8000);
        plan.limits.is_time_based = true;
        let mut generator = Generator::new(&plan, 0);
        let mut block = [Step::NONE; REQUEST_BLOCK];
        let mut all = Vec::new();
        loop {
            match generator.refill(&mut block) {
                0 => break,
                n => all.extend(block[..n].iter().map(Step::request).filter(|io| io.op == op).map(|io| io.offset)),
            }
        }
        all
    };
    let goes_on = |offsets: Vec<u64>| offsets.windows(2).filter(|w| w[1] == (w[0] + 4096) % (16 * 4096)).count();
    let in_order = WriteSteps { align_bytes: 0, sequential_percent: 100 };
    let writes = of(OpKind::Write, in_order, 0);
    assert_eq!(goes_on(writes.clone()), writes.len() - 1);
    // By chance one read in sixteen: 250 of 4,000.
    assert!(goes_on(of(OpKind::Read, in_order, 0)) < 500);
    let coarse = WriteSteps { align_bytes: 8192, sequential_percent: 0 };
    let places = |op| of(op, coarse, 512).into_iter().collect::<HashSet<u64>>();
    assert_eq!(places(OpKind::Write).len(), 8);
    assert!(places(OpKind::Write).iter().all(|offset| offset % 8192 == 0));
    assert_eq!(places(OpKind::Read).len(), (16 * 4096 - 4096) / 512 + 1);
}

#[test]
fn random_offsets_are_multiples_of_blockalign_and_reach_both_ends() {
    let steps = Steps { align_bytes: 512, ..Steps::default() };
    let requests = stepped(RANDOM, steps, FOUR_K, 20_000);
    let offsets: HashSet<u64> = requests.iter().map(|request| request.offset).collect();
    assert!(requests.iter().all(|r| r.offset % 512 == 0 && r.length == 4096 && r.offset + 4096 <= 16 * 4096));
    assert_eq!(offsets.len(), (16 * 4096 - 4096) / 512 + 1, "every place, the first and the last included");
}

#[test]
fn unaligned_sizes_are_of_any_number_of_bytes_within_the_range() {
    let steps = Steps { is_unaligned: true, ..Steps::default() };
    let range = BlockSizes::Range { min_bytes: 1024, max_bytes: 4096 };
    for order in [RANDOM, Order::Sequential] {
        let requests = stepped(order, steps, range.clone(), 5000);
        let sizes: HashSet<u32> = requests.iter().map(|request| request.length).collect();
        assert!(sizes.iter().all(|size| (1024..=4096).contains(size)));
        assert!(sizes.len() > 1500, "{} sizes", sizes.len());
        assert!(requests.iter().all(|r| r.offset + u64::from(r.length) <= 16 * 4096));
    }
}

#[test]
fn zones_are_used_one_after_another_with_gaps_between() {
    let zones = Some(Zones { zone_bytes: 8192, range_bytes: 8192, skip_bytes: 8192 });
    let sequential = blocks_of(&stepped(Order::Sequential, Steps { zones, ..Steps::default() }, FOUR_K, 10));
    assert_eq!(sequential, [0, 1, 4, 5, 8, 9, 12, 13, 0, 1]);
    let random = blocks_of(&stepped(RANDOM, Steps { zones, ..Steps::default() }, FOUR_K, 400));
    assert!(random.chunks(2).zip((0..4).cycle()).all(|(two, zone)| two.iter().all(|block| block / 2 == zone * 2)));
    // More is transferred in a zone than it is long: it begins again within.
    let zones = Some(Zones { zone_bytes: 16384, range_bytes: 8192, skip_bytes: 0 });
    let again = blocks_of(&stepped(Order::Sequential, Steps { zones, ..Steps::default() }, FOUR_K, 8));
    assert_eq!(again, [0, 1, 0, 1, 2, 3, 2, 3]);
}

#[test]
fn each_block_is_trimmed_and_then_written_and_counts_once() {
    let requests = stepped(RANDOM, Steps { trims_first: true, ..Steps::default() }, FOUR_K, 50);
    assert_eq!(requests.len(), 100);
    for pair in requests.chunks(2) {
        assert_eq!((pair[0].op, pair[1].op), (OpKind::Trim, OpKind::Write));
        assert_eq!((pair[0].offset, pair[0].length), (pair[1].offset, pair[1].length));
    }
}

/// Goal: pages are dropped where a pass ends and another begins, never at the job's end, and the I/Os are those of a job
/// that drops nothing.
#[test]
fn pages_are_dropped_between_two_passes_and_nothing_else_changes() {
    let orders = [ONCE, AGAIN, Order::Sequential];
    let mixes = [READ, OpMix::ReadWrite { read_percent: 50 }];
    for order in orders {
        for mix in mixes {
            for (files, loops, io_bytes) in [(1, 3, 100), (1, 1, 300), (2, 2, 200), (1, 2, 150), (1, 3, 40)] {
                let mut plan = plan(100, 512, mix, order.clone(), BlockSizes::Fixed(UNIT));
                plan.files = vec![plan.files[0].clone(); files];
                (plan.limits.loops, plan.limits.io_bytes) = (loops, io_bytes * UNIT);
                let plain = take(&plan, 0, 10_000);
                plan.handling.invalidates_each_pass = true;
                let dropping = take(&plan, 0, 10_000);
                let name = format!("{order:?} {mix:?} {files} {loops} {io_bytes}");
                let kept: Vec<Taken> = dropping.iter().filter(|request| !request.begins_pass()).copied().collect();
                // Of mixed random I/Os a block of requests draws in another order than single ones, equally at random.
                if mix == READ || order == Order::Sequential {
                    assert_eq!(kept, plain, "{name}");
                } else {
                    assert_eq!(kept.len(), plain.len(), "{name}");
                }
                assert!(!dropping.last().unwrap().begins_pass() && !dropping[0].begins_pass(), "{name}");
                assert!(!dropping.windows(2).any(|two| two[0].begins_pass() && two[1].begins_pass()), "{name}");
                let count = dropping.len() - kept.len();
                // A mixed sequential job has a place for each direction, and each comes to the end by itself.
                if mix == READ || order != Order::Sequential {
                    let expected = match (files, loops, io_bytes) {
                        // The first of two files by itself in each loop, and all where the second begins.
                        (2, ..) => 3,
                        // Where a loop ends, and where a pass does.
                        (1, 2, 150) | (1, 3, 40) => 3,
                        _ => 2,
                    };
                    let most = if order == Order::Sequential || order == ONCE { expected } else { expected + 1 };
                    assert!((expected..=most).contains(&count), "{name}: {count}");
                }
            }
        }
    }
}

#[test]
fn a_job_without_end_drops_pages_with_each_pass() {
    let mut plan = plan(100, 0, READ, ONCE, BlockSizes::Fixed(UNIT));
    plan.limits.is_time_based = true;
    plan.handling.invalidates_each_pass = true;
    let requests = take(&plan, 0, 505);
    let places: Vec<usize> = (0..505).filter(|index| requests[*index].begins_pass()).collect();
    assert_eq!(places, [100, 201, 302, 403, 504]);
}

/// Goal: files are made again where a pass over all of them ends and another begins, whatever ends the passes.
#[test]
fn files_are_made_again_between_two_passes_over_all_of_them() {
    let write = OpMix::Only(OpKind::Write);
    for order in [ONCE, Order::Sequential] {
        for (files, selection) in
            [(1, FileSelection::RoundRobin), (2, FileSelection::RoundRobin), (2, FileSelection::Sequential)]
        {
            for (loops, passes) in [(3, 1), (1, 3)] {
                let mut plan = plan(100, 512, write, order.clone(), BlockSizes::Fixed(UNIT));
                plan.files = vec![plan.files[0].clone(); files];
                plan.file_selection = selection.clone();
                let of_pass = 100 * files;
                (plan.limits.loops, plan.limits.io_bytes) = (loops, (of_pass * passes) as u64 * UNIT);
                plan.handling.remakes_each_pass = true;
                let requests = take(&plan, 0, 10_000);
                let places: Vec<usize> = (0..requests.len()).filter(|at| requests[*at].begins_pass()).collect();
                assert_eq!(places, [of_pass, 2 * of_pass + 1], "{order:?} {files} {selection:?} {loops}");
                assert!(
                    places.iter().all(|at| requests[*at].step == Step::NextPass { file: None, ends_loop: false }),
                    "all files"
                );
            }
        }
    }
}

/// Goal: a file that was made again is written from its beginning on, whatever the others are up to.
/// Method: files of different lengths, in every way to choose among them; no sequential write begins after the end of the file.
#[test]
fn no_file_that_was_created_again_continues_after_a_hole() {
    let write = OpMix::Only(OpKind::Write);
    let sizes = [BlockSizes::Fixed(UNIT), BlockSizes::Range { min_bytes: UNIT, max_bytes: 4 * UNIT }];
    let drawn = FileSelection::Drawn { distribution: Distribution::Pareto { h: 0.4, center: None } };
    for selection in [FileSelection::RoundRobin, FileSelection::Sequential, FileSelection::Random, drawn] {
        for (sizes, loops, is_time_based) in
            [(&sizes[0], 1, true), (&sizes[1], 1, true), (&sizes[0], 5, false), (&sizes[1], 5, false)]
        {
            let mut plan = plan(100, 0, write, Order::Sequential, sizes.clone());
            plan.files =
                [16, 100, 7].map(|blocks| FilePlan { size_bytes: blocks * UNIT, ..plan.files[0].clone() }).into();
            plan.file_selection = selection.clone();
            (plan.limits.loops, plan.limits.io_bytes, plan.limits.is_time_based) = (loops, 123 * UNIT, is_time_based);
            plan.handling.remakes_each_pass = true;
            let name = format!("{selection:?} {sizes:?} {loops}");
            let (mut lengths, mut remade) = ([0; 3], 0);
            for request in take(&plan, 0, 2_000) {
                if request.begins_pass() {
                    (lengths, remade) = ([0; 3], remade + 1);
                    continue;
                }
                let offset = request.offset - plan.files[0].offset_bytes;
                let length = &mut lengths[usize::from(request.file)];
                assert!(offset <= *length, "{name}: {offset} beyond {length}");
                *length = (offset + u64::from(request.length)).max(*length);
            }
            assert!(remade >= 3, "{name}: {remade}");
        }
    }
    // Each block once: a pass that was left begins in whole.
    let mut plan = plan(100, 512, write, ONCE, BlockSizes::Fixed(UNIT));
    plan.files = [16, 100].map(|blocks| FilePlan { size_bytes: blocks * UNIT, ..plan.files[0].clone() }).into();
    plan.limits.is_time_based = true;
    plan.handling.remakes_each_pass = true;
    let requests = take(&plan, 0, 2_000);
    for pass in requests.split(Taken::begins_pass).skip(1).filter(|pass| pass.len() == 200) {
        let mut blocks: Vec<u64> = pass.iter().filter(|one| one.file == 1).map(|one| one.offset).collect();
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len(), 100, "all of the larger file, before it is removed");
    }
}

/// The files in the order in which fio 3.33 reads them.
#[test]
fn a_file_has_so_many_ios_before_the_next_one_is_chosen() {
    let order = |selection: &FileSelection, ios, blocks: u64, most| -> String {
        let sizes = BlockSizes::Fixed(UNIT);
        let mut plan = with_files(plan(1, 0, READ, Order::Sequential, sizes), 4, selection.clone());
        plan.files.iter_mut().for_each(|file| file.size_bytes = blocks * UNIT);
        plan.limits.io_bytes = 4 * blocks * UNIT;
        plan.files_at_a_time = most;
        plan.ios_per_file = ios;
        take(&plan, 0, 100).iter().map(|request| char::from(b'0' + request.file as u8)).collect()
    };
    let turns = FileSelection::RoundRobin;
    assert_eq!(order(&turns, 2, 10, 0), "00112233".repeat(5));
    assert_eq!(order(&turns, 4, 10, 0), "0000111122223333000011112222333300112233");
    assert_eq!(order(&turns, 3, 4, 0), "0001112223330123");
    assert_eq!(order(&turns, 3, 4, 2), "0001110122233323");
    let drawn = order(&FileSelection::Random, 4, 8, 0);
    for four in drawn.as_bytes().chunks(4) {
        assert!(four.iter().all(|file| *file == four[0]), "{drawn}");
    }
    assert_eq!(drawn.len(), 32);
}

/// Goal: blocks of several sizes end a file as fio's do: one that would reach over the end is drawn again, so that more and
/// smaller ones are there.
/// Method: the mean number of writes of a file of 50 units by the recursion of that law, and what is written of 2,000 files.
#[test]
fn a_block_that_would_reach_over_the_end_of_a_file_is_drawn_again() {
    let (most, units, files) = (16, 50, 2_000);
    let mut mean = vec![0.0; units + 1];
    for left in 1..=units {
        let choices = left.min(most);
        mean[left] = 1.0 + (1..=choices).map(|size| mean[left - size]).sum::<f64>() / choices as f64;
    }
    let sizes = BlockSizes::Range { min_bytes: UNIT, max_bytes: most as u64 * UNIT };
    let plan =
        with_files(plan(units as u64, 0, WRITE, Order::Sequential, sizes.clone()), files, FileSelection::Sequential);
    let requests = take(&plan, 0, usize::MAX);
    assert_eq!(bytes(&requests), files as u64 * units as u64 * UNIT);
    // A file has 7.5 of them, with a deviation below 2: five deviations of the mean of 2,000.
    let of_a_file = requests.len() as f64 / files as f64;
    assert!((of_a_file - mean[units]).abs() < 5.0 * 2.0 / (files as f64).sqrt(), "{of_a_file}, not {}", mean[units]);
    // Blocks that may come again begin everywhere alike, the last unit included, where only one unit fits.
    let plan = self::plan(units as u64, 0, WRITE, AGAIN, sizes);
    let requests =
        take(&JobPlan { limits: trueio_model::Limits { is_time_based: true, ..plan.limits }, ..plan }, 0, 100_000);
    let last: Vec<_> = requests.iter().filter(|request| request.offset == (units as u64 - 1) * UNIT).collect();
    assert!(last.iter().all(|request| u64::from(request.length) == UNIT));
    let expected = 100_000.0 / units as f64;
    assert!((last.len() as f64 - expected).abs() < 5.0 * expected.sqrt(), "{}", last.len());
}

/// Each block is trimmed and written once a pass, as fio's map sees to it.
#[test]
fn random_trims_and_writes_come_once_a_block() {
    let mut plan = plan(64, 0, WRITE, ONCE, BlockSizes::Fixed(UNIT));
    plan.pattern.steps.trims_first = true;
    let requests = take(&plan, 0, usize::MAX);
    assert_eq!(requests.len(), 128);
    let mut blocks = HashSet::new();
    for pair in requests.chunks(2) {
        assert_eq!((pair[0].op, pair[1].op, pair[0].offset), (OpKind::Trim, OpKind::Write, pair[1].offset));
        assert!(blocks.insert(pair[0].offset));
    }
}

/// As fio 3.33 goes over files with skips, one after another.
#[test]
fn a_pass_with_skips_ends_where_the_next_block_would_begin_in_the_file_and_end_beyond_it() {
    let mut plan =
        with_files(plan(0, 0, READ, Order::Sequential, BlockSizes::Fixed(UNIT)), 2, FileSelection::Sequential);
    // Blocks at 0, 2, 4 and 6, and half a block after them none fits.
    plan.files.iter_mut().for_each(|file| file.size_bytes = 8 * UNIT + UNIT / 2);
    plan.pattern.steps.skip_bytes = UNIT as i64;
    plan.limits.io_bytes = 8 * UNIT;
    assert_eq!(plan.pattern.steps.skipping_ios(8 * UNIT + UNIT / 2, UNIT), Some(4));
    let places: Vec<_> = take(&plan, 0, 100).iter().map(|request| (request.file, request.offset / UNIT)).collect();
    assert_eq!(places, [0, 1].map(|file| [0, 2, 4, 6].map(|block| (file, block))).concat());
    // It ends with a block; the next one begins beyond it, and so at its beginning.
    assert_eq!(plan.pattern.steps.skipping_ios(9 * UNIT, UNIT), Some(5));
    assert_eq!(plan.pattern.steps.skipping_ios(8 * UNIT, UNIT), None);
}
