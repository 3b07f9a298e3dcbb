//! When a job ends.

use crate::input::{Decisions, JobInput};
use crate::option::OptionRow;
use crate::options::durability::direct::unit_sizes;
use crate::options::limits::rows::{
    IO_SIZE, LOOPS, NUMBER_IOS, RAMP_TIME, RUNTIME, SHORT_RAMP, STARTDELAY, STARTDELAY_FROM, STEADY_STATE,
    STEADY_STATE_ROUND, STEADY_STATE_ROUNDS, ShortRamp, TIME_BASED,
};
use crate::options::shape::Ops;
use crate::options::target::files::JobFile;
use crate::options::target::region::percent_of;
use crate::options::target::rows::{FILESIZE, SIZE};
use crate::refusal::{Case, Refusal, Rule};
use crate::value::{Extent, write_bytes};
use crate::values::Values;
use trueio_model::{
    BlockSizes, Distribution, EngineKind, Limits, OpKind, OpMix, Order, Prepare, SteadyPlan, Steps, Verify,
};

/// What the length of a pass over a job's files depends on.
pub(crate) struct Passing<'a> {
    pub(crate) engine: EngineKind,
    pub(crate) ops: Ops,
    pub(crate) order: &'a Order,
    pub(crate) steps: &'a Steps,
    pub(crate) used: &'a [(OpKind, &'a BlockSizes)],
    pub(crate) files: &'a [JobFile],
    /// What the regions of further workers add to that of one, in each file.
    pub(crate) spread_bytes: u64,
    /// Something else ends a pass: zones, or a body that is fetched.
    pub(crate) ends_otherwise: bool,
}

impl Passing<'_> {
    fn region_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.plan.size_bytes - self.spread_bytes).fold(0, u64::saturating_add)
    }

    /// Returns the only operation that the job has: also that of a mixed job in which the other one has no share.
    fn only(&self) -> Option<OpKind> {
        match self.ops.mix {
            OpMix::Only(op) => Some(op),
            OpMix::ReadWrite { read_percent: 0 } => Some(OpKind::Write),
            OpMix::ReadWrite { read_percent: 100.. } => Some(OpKind::Read),
            OpMix::ReadWrite { .. } => None,
        }
    }

    /// Returns the sizes of the operations that have a share.
    fn sizes(&self) -> Vec<(OpKind, &BlockSizes)> {
        let only = self.only();
        self.used.iter().copied().filter(|(op, _)| only.is_none_or(|only| only == *op)).collect()
    }

    /// Returns the unit of which every transfer is a multiple, in bytes.
    fn unit(&self) -> u64 {
        let unit = unit_of(&self.sizes());
        if self.steps.is_unaligned { 1 } else { unit }
    }

    /// Returns the bytes that one pass transfers, if the files end it. As in fio, that is so if each block is used once. All
    /// other jobs (blocks that may repeat, reads and writes each in their own order) transfer as much as the files hold.
    ///
    /// `length_bytes`: of the used region of each file.
    fn pass_bytes(&self, length_bytes: impl Fn(&JobFile) -> u64) -> Option<u64> {
        let unit = self.unit();
        let unskipped = Steps { skip_bytes: 0, ..*self.steps };
        if !unskipped.leaves_offsets_alone() {
            return None;
        }
        let of_file = |file: &JobFile| {
            let bytes = length_bytes(file) - self.spread_bytes;
            match self.order {
                Order::Sequential if self.only().is_none() => None,
                Order::Sequential if self.steps.skip_bytes > 0 => {
                    let is_fixed = self.sizes().iter().all(|(_, sizes)| **sizes == BlockSizes::Fixed(unit));
                    self.steps.skipping_ios(bytes, unit).filter(|_| is_fixed).map(|ios| ios * unit)
                }
                Order::Sequential if self.steps.skip_bytes < 0 => None,
                Order::Random { each_block_once: false, .. } => None,
                _ => Some(bytes / unit * unit),
            }
        };
        self.files.iter().map(of_file).try_fold(0, |sum: u64, bytes| Some(sum.saturating_add(bytes?)))
    }
}

/// The limits of a job, and the length of a pass over its files.
pub(crate) struct PassLimits {
    pub(crate) limits: Limits,
    /// Bytes that a pass transfers.
    pub(crate) pass_bytes: u64,
}

/// Plans the limits of a job.
pub(crate) fn plan_limits(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    passing: &Passing<'_>,
) -> Result<PassLimits, Refusal> {
    let (engine, used) = (passing.engine, passing.used);
    let region_bytes = passing.region_bytes();
    let ends_otherwise = engine.works_on_names() || passing.ends_otherwise;
    let end = if ends_otherwise { None } else { passing.pass_bytes(|file| file.plan.size_bytes) };
    let times = plan_times(values);
    let runtime_ns = values.get(RUNTIME);
    let is_time_based = values.get(TIME_BASED);
    if is_time_based && runtime_ns.is_none() {
        let rule = Rule::Incomplete {
            option: values.quote(TIME_BASED),
            needs: "`runtime`: nothing else ends the job",
            case: Case::TimeBasedAlone,
        };
        return Err(values.refuse(TIME_BASED, rule));
    }
    let size_is_io = values.is_set(FILESIZE) && values.is_set(SIZE);
    let size_bytes = values.get(SIZE).and_then(Extent::bytes).filter(|_| size_is_io);
    let share_bytes = match values.get(IO_SIZE) {
        Some(Extent::Percent(percent)) => Some(percent_of(region_bytes, percent).min(size_bytes.unwrap_or(u64::MAX))),
        _ => None,
    };
    // (The last I/O may end beyond them, but not the first.)
    let least = used.iter().map(|(_, sizes)| sizes.min_bytes()).min().filter(|_| !engine.works_on_names()).unwrap_or(0);
    for (option, bytes) in [(SIZE.row(), size_bytes), (IO_SIZE.row(), share_bytes)] {
        if let Some(bytes) = bytes.filter(|bytes| *bytes < least) {
            return Err(values.refuse(option, less_than_a_block(option, bytes, least)));
        }
    }
    let unit = passing.unit();
    // The last I/O is a whole one.
    let whole = |bytes: u64| bytes.max(1).checked_next_multiple_of(unit).unwrap_or(bytes);
    let pass_bytes = match end {
        Some(bytes) => bytes,
        None if ends_otherwise || times.loops > 1 => region_bytes,
        None => whole(region_bytes),
    };
    let physical_bytes = match passing.order {
        Order::Random { distribution: Distribution::Precondition { over_provisioning, .. }, .. } => {
            Some((region_bytes as f64 * (1.0 + over_provisioning)) as u64 / unit * unit)
        }
        _ => None,
    };
    let lacking_bytes = passing.files.iter().map(|file| file.lacking_bytes).fold(0, u64::saturating_add);
    let as_asked = |file: &JobFile| file.plan.size_bytes.saturating_add(file.lacking_bytes);
    let asked_bytes =
        end.and_then(|_| passing.pass_bytes(as_asked)).unwrap_or(pass_bytes.saturating_add(lacking_bytes));
    let (io_bytes, reason) = match (values.get(IO_SIZE), values.get(SIZE)) {
        _ if engine.works_on_names() => (region_bytes, Some("one for each name")),
        (Some(Extent::Bytes(bytes)), _) => (bytes, None),
        (Some(Extent::Percent(_)), _) => (share_bytes.expect("it is a percentage"), None),
        (None, Some(Extent::Bytes(bytes))) if size_is_io && bytes < asked_bytes => {
            (bytes, Some("`size`, which is less than the files hold (`filesize`)"))
        }
        (None, _) if lacking_bytes > 0 => (asked_bytes, Some("the bytes that were asked for: the files are shorter")),
        (None, _) => match physical_bytes {
            Some(bytes) => (bytes, Some("the regions and their over-provisioning")),
            None => (pass_bytes, Some("the files' regions once")),
        },
    };
    if let Some(reason) = reason {
        decisions.derive(IO_SIZE, write_bytes(io_bytes), reason);
    }
    let block_bytes_max = used.iter().map(|(_, sizes)| sizes.max_bytes()).max().unwrap_or(0);
    let is_set = values.is_set(IO_SIZE);
    // Each loop transfers what was asked for; the passes over shorter files are more.
    let (io_bytes, times) = match times.loops {
        loops if lacking_bytes > 0 && !is_set => (io_bytes.saturating_mul(loops), Limits { loops: 1, ..times }),
        _ => (io_bytes, times),
    };
    let is_given = (is_set || size_is_io || lacking_bytes > 0) && !engine.works_on_names();
    // As in fio, all loops together transfer the given bytes, in whole I/Os. If the files end a pass, each loop is a pass,
    // and one more transfers the rest of the given bytes unless that is less than a block.
    let (io_bytes, loops) = match end {
        Some(pass_bytes) if is_given && io_bytes > pass_bytes => {
            let (passes, rest) = (io_bytes / pass_bytes, io_bytes % pass_bytes);
            // (A file as long as `filesize` says has room for the rest.)
            let goes_on = rest >= block_bytes_max || (rest > 0 && size_is_io && io_bytes < asked_bytes);
            match times.loops {
                1 if goes_on => (whole(io_bytes), 1),
                1 => (io_bytes - rest, 1),
                loops => (pass_bytes, loops.max(passes + u64::from(goes_on))),
            }
        }
        _ if is_given && (times.loops == 1 || ends_otherwise) => (whole(io_bytes), times.loops),
        _ => (io_bytes, times.loops),
    };
    let is_mixed = used.iter().any(|(_, sizes)| !matches!(sizes, BlockSizes::Fixed(bytes) if *bytes == unit));
    if whole(io_bytes) < block_bytes_max && !engine.works_on_names() && !(is_set && is_mixed) {
        let option = if is_set { IO_SIZE.row() } else { SIZE.row() };
        return Err(values.refuse(option, less_than_a_block(option, io_bytes, block_bytes_max)));
    }
    Ok(PassLimits { limits: Limits { io_bytes, loops, ..times }, pass_bytes })
}

fn less_than_a_block(option: &OptionRow, bytes: u64, block_bytes: u64) -> Rule {
    let reason = format!("{} is less than one block of {}", write_bytes(bytes), write_bytes(block_bytes));
    Rule::BadValue { option: option.name, reason }
}

/// Returns the unit of which every size is a multiple, in bytes.
pub(crate) fn unit_of(used: &[(OpKind, &BlockSizes)]) -> u64 {
    used.iter().flat_map(|(_, sizes)| unit_sizes(sizes)).fold(0, gcd).max(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Reads the limits of time and count.
pub(crate) fn plan_times(values: &Values) -> Limits {
    let loops = values.get(LOOPS);
    let io_count = Some(values.get(NUMBER_IOS)).filter(|count| *count > 0);
    Limits {
        io_bytes: 0,
        loops,
        io_count: io_count.map(|count| count.saturating_mul(loops)),
        runtime_ns: values.get(RUNTIME),
        is_time_based: values.get(TIME_BASED),
        ramp_ns: values.get(RAMP_TIME).unwrap_or(0),
        measures_short_ramp: values.get(SHORT_RAMP) == ShortRamp::Measure,
        start_delay_ns: values.get(STARTDELAY).unwrap_or(0),
        delays_from: values.get(STARTDELAY_FROM),
    }
}

/// Plans the rounds before the measured phase. They repeat the job, so it must be repeatable on the same bytes.
pub(crate) fn plan_steady_state(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    files: &[JobFile],
    verify: Option<&Verify>,
) -> Result<Option<SteadyPlan>, Refusal> {
    if !values.get(STEADY_STATE) {
        let because = "`steady_state` is not set";
        decisions.note_unused(values, &[STEADY_STATE_ROUND.row(), STEADY_STATE_ROUNDS.row()], because);
        return Ok(None);
    }
    let refuse = |reason: &str, case| {
        let rule = Rule::SteadyState { reason: reason.to_owned(), case };
        Err(values.refuse(STEADY_STATE, rule))
    };
    if verify.is_some() {
        return refuse("the rounds overwrite the data that would be compared", Case::SteadyVerify);
    }
    if files.iter().any(|file| matches!(file.plan.prepare, Prepare::CreateEmpty | Prepare::CreateReserved)) {
        return refuse(
            "the job extends an empty file, and after the first round it would overwrite it",
            Case::SteadyExtends,
        );
    }
    if files.iter().any(|f| matches!(f.plan.prepare, Prepare::CreateAllocated | Prepare::CreateSparse)) {
        let sentence = "the new file holds no data: the rounds of `steady_state` write it, and the measured phase then overwrites \
                        it; `overwrite = true` fills it before";
        decisions.note(sentence);
    }
    let round_ns = values.get(STEADY_STATE_ROUND).unwrap_or(0);
    if round_ns < 100_000_000 {
        let reason = "a round shorter than 100 ms is too short to measure a device".to_owned();
        let option = STEADY_STATE_ROUND.row();
        return Err(values.refuse(option, Rule::BadValue { option: option.name, reason }));
    }
    Ok(Some(SteadyPlan { round_ns, rounds_max: values.get(STEADY_STATE_ROUNDS) }))
}
