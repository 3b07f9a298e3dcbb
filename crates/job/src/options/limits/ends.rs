//! When a job ends.

use crate::input::{Decisions, JobInput};
use crate::options::durability::direct::unit_sizes;
use crate::options::limits::rows::{
    IO_SIZE, LOOPS, NUMBER_IOS, RAMP_TIME, RUNTIME, STARTDELAY, STEADY_STATE, STEADY_STATE_ROUND, STEADY_STATE_ROUNDS,
    TIME_BASED,
};
use crate::options::shape::Ops;
use crate::options::target::files::JobFile;
use crate::options::target::rows::{FILESIZE, SIZE};
use crate::refusal::{Refusal, Rule};
use crate::value::{Extent, write_bytes};
use crate::values::Values;
use trueio_model::{BlockSizes, EngineKind, Limits, OpKind, OpMix, Order, Prepare, SteadyPlan, Steps, Verify};

/// What decides how much one pass over a job's files is.
pub(crate) struct Passing<'a> {
    pub(crate) engine: EngineKind,
    pub(crate) ops: Ops,
    pub(crate) order: &'a Order,
    pub(crate) steps: &'a Steps,
    pub(crate) used: &'a [(OpKind, &'a BlockSizes)],
    pub(crate) files: &'a [JobFile],
    /// Something else says where a pass ends: zones, or a body that is fetched.
    pub(crate) ends_otherwise: bool,
}

impl Passing<'_> {
    fn region_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.plan.size_bytes).fold(0, u64::saturating_add)
    }

    /// What every transfer is a multiple of.
    fn unit(&self) -> u64 {
        let unit = unit_of(self.used);
        if self.steps.is_unaligned { 1 } else { unit }
    }

    /// Bytes that one pass transfers, if it has an end: as in fio, files end it that are gone over block by block. The
    /// others (blocks that may come again, reads and writes each in their own order) transfer as much as the files hold.
    fn pass_bytes(&self) -> Option<u64> {
        let unit = self.unit();
        let unskipped = Steps { skip_bytes: 0, ..*self.steps };
        if !unskipped.places_plainly() {
            return None;
        }
        let of_file = |file: &JobFile| {
            let bytes = file.plan.size_bytes;
            match self.order {
                Order::Sequential if !matches!(self.ops.mix, OpMix::Only(_)) => None,
                Order::Sequential if self.steps.skip_bytes > 0 => {
                    let is_fixed = self.used.iter().all(|(_, sizes)| **sizes == BlockSizes::Fixed(unit));
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

/// The limits of a job, and how many bytes a pass over its files transfers.
pub(crate) fn plan_limits(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    passing: &Passing<'_>,
) -> Result<(Limits, u64), Refusal> {
    let (engine, used) = (passing.engine, passing.used);
    let region_bytes = passing.region_bytes();
    let ends_otherwise = engine.works_on_names() || passing.ends_otherwise;
    let end = if ends_otherwise { None } else { passing.pass_bytes() };
    let times = plan_times(values);
    let runtime_ns = values.get(RUNTIME);
    let is_time_based = values.get(TIME_BASED);
    if is_time_based && runtime_ns.is_none() {
        let rule = Rule::Incomplete {
            option: values.quote(TIME_BASED),
            needs: "`runtime`: nothing would end the job",
            hint: "say `runtime`, such as `runtime = \"30s\"`",
        };
        return Err(values.refuse(TIME_BASED, rule));
    }
    let size_is_io = values.is_set(FILESIZE) && values.is_set(SIZE);
    let unit = passing.unit();
    // The last I/O is a whole one.
    let whole = |bytes: u64| bytes.max(1).checked_next_multiple_of(unit).unwrap_or(bytes);
    let pass_bytes = match end {
        Some(bytes) => bytes,
        None if ends_otherwise || times.loops > 1 => region_bytes,
        None => whole(region_bytes),
    };
    let (io_bytes, reason) = match (values.get(IO_SIZE), values.get(SIZE)) {
        _ if engine.works_on_names() => (region_bytes, Some("one for each name")),
        (Some(Extent::Bytes(bytes)), _) => (bytes, None),
        (Some(Extent::Percent(percent)), _) => ((u128::from(region_bytes) * u128::from(percent) / 100) as u64, None),
        (None, Some(Extent::Bytes(bytes))) if size_is_io && bytes < pass_bytes => {
            (bytes, Some("`size`, which is less than the files hold (`filesize`)"))
        }
        (None, _) => (pass_bytes, Some("the files' regions once")),
    };
    if let Some(reason) = reason {
        decisions.derive(IO_SIZE, write_bytes(io_bytes), reason);
    }
    let block_bytes_max = used.iter().map(|(_, sizes)| sizes.max_bytes()).max().unwrap_or(0);
    let is_set = values.is_set(IO_SIZE);
    let is_said = (is_set || size_is_io) && !engine.works_on_names();
    // As in fio: what is said for a loop is reached by all of them together, by whole I/Os; files that have an end are gone
    // over in each, and then again for as much as was said once, but not for less than a block.
    let (io_bytes, loops) = match end {
        Some(pass_bytes) if is_said && io_bytes > pass_bytes => {
            let (passes, rest) = (io_bytes / pass_bytes, io_bytes % pass_bytes);
            let goes_on = rest >= block_bytes_max;
            match times.loops {
                1 if goes_on => (whole(io_bytes), 1),
                1 => (io_bytes - rest, 1),
                loops => (pass_bytes, loops.max(passes + u64::from(goes_on))),
            }
        }
        _ if is_said && (times.loops == 1 || ends_otherwise) => (whole(io_bytes), times.loops),
        _ => (io_bytes, times.loops),
    };
    let is_mixed = used.iter().any(|(_, sizes)| !matches!(sizes, BlockSizes::Fixed(bytes) if *bytes == unit));
    if whole(io_bytes) < block_bytes_max && !engine.works_on_names() && !(is_set && is_mixed) {
        let option = if is_set { IO_SIZE.row() } else { SIZE.row() };
        let reason = format!("{} is less than one block of {}", write_bytes(io_bytes), write_bytes(block_bytes_max));
        return Err(values.refuse(option, Rule::BadValue { option: option.name, reason }));
    }
    Ok((Limits { io_bytes, loops, ..times }, pass_bytes))
}

/// What every size is a multiple of, in bytes.
pub(crate) fn unit_of(used: &[(OpKind, &BlockSizes)]) -> u64 {
    used.iter().flat_map(|(_, sizes)| unit_sizes(sizes)).fold(0, gcd).max(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What is said of times and counts.
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
        start_delay_ns: values.get(STARTDELAY).unwrap_or(0),
    }
}

/// Rounds repeat a job, so it must be one that can be repeated on the same bytes.
pub(crate) fn plan_steady_state(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    files: &[JobFile],
    verify: Option<&Verify>,
) -> Result<Option<SteadyPlan>, Refusal> {
    if !values.get(STEADY_STATE) {
        let because = "`steady_state` is not asked for";
        decisions.note_unused(values, &[STEADY_STATE_ROUND.row(), STEADY_STATE_ROUNDS.row()], because);
        return Ok(None);
    }
    let refuse = |reason: &str, hint| {
        let rule = Rule::SteadyState { reason: reason.to_owned(), hint };
        Err(values.refuse(STEADY_STATE, rule))
    };
    if verify.is_some() {
        return refuse(
            "the rounds write again what would be compared afterwards",
            "leave out `verify`, or compare in a job of its own",
        );
    }
    if files.iter().any(|file| matches!(file.plan.prepare, Prepare::CreateEmpty | Prepare::CreateReserved)) {
        return refuse(
            "the job extends an empty file, and after the first round it would overwrite it",
            "let the file be filled first: `overwrite = true`",
        );
    }
    if files.iter().any(|f| matches!(f.plan.prepare, Prepare::CreateAllocated | Prepare::CreateSparse)) {
        let sentence = "nothing was written to the file yet: the rounds of `steady_state` write it, and what is measured then \
                        overwrites; `overwrite = true` says so from the beginning";
        decisions.note(sentence);
    }
    let round_ns = values.get(STEADY_STATE_ROUND).unwrap_or(0);
    if round_ns < 100_000_000 {
        let reason = "a round shorter than 100 ms says little of a device".to_owned();
        let option = STEADY_STATE_ROUND.row();
        return Err(values.refuse(option, Rule::BadValue { option: option.name, reason }));
    }
    Ok(Some(SteadyPlan { round_ns, rounds_max: values.get(STEADY_STATE_ROUNDS) }))
}
