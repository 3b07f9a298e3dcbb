//! When a job ends.

use super::Planner;
use super::direct::unit_sizes;
use super::files::JobFile;
use super::job::{Ops, note_unused};
use super::values::Values;
use crate::refusal::{Refusal, Rule};
use crate::value::{Extent, write_bytes};
use trueio_model::{BlockSizes, EngineKind, Limits, OpKind, OpMix, Order, Prepare, SteadyPlan, Steps, Verify};

/// What decides how much one pass over a job's files is.
pub(super) struct Passing<'a> {
    pub(super) engine: EngineKind,
    pub(super) ops: Ops,
    pub(super) order: &'a Order,
    pub(super) steps: &'a Steps,
    pub(super) used: &'a [(OpKind, &'a BlockSizes)],
    pub(super) files: &'a [JobFile],
    /// Something else says where a pass ends: zones, or a body that is fetched.
    pub(super) ends_otherwise: bool,
}

impl Passing<'_> {
    fn region_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.plan.size_bytes).fold(0, u64::saturating_add)
    }

    /// What every transfer is a multiple of.
    fn unit(&self) -> u64 {
        let unit = self.used.iter().flat_map(|(_, sizes)| unit_sizes(sizes)).fold(0, gcd).max(1);
        if self.steps.is_unaligned { 1 } else { unit }
    }

    /// Bytes that one pass transfers: as in fio, files end it that are gone over block by block; of what has no end
    /// (blocks that may come again, reads and writes each in their own order) as much as the files hold, by whole I/Os.
    fn pass_bytes(&self) -> u64 {
        let (region_bytes, unit) = (self.region_bytes(), self.unit());
        if self.engine.works_on_names() || self.ends_otherwise || self.steps.zones.is_some() {
            return region_bytes;
        }
        let sum = |of_file: fn(u64, u64) -> u64| {
            self.files.iter().map(|file| of_file(file.plan.size_bytes, unit)).fold(0, u64::saturating_add)
        };
        let has_end = match (self.order, self.ops.mix) {
            (Order::Sequential, mix) => matches!(mix, OpMix::Only(_)),
            (Order::Random { each_block_once, .. }, _) => *each_block_once,
        };
        match (has_end, self.steps.skip_bytes) {
            (true, 0) => sum(|bytes, unit| bytes / unit * unit),
            // Skipping leaves a file only where a block ends with it, and begins anew where one would end behind it.
            (true, skip @ 1..) => {
                let step = unit.saturating_add(skip as u64);
                let ends = |file: &JobFile| file.plan.size_bytes.checked_sub(unit).is_some_and(|rest| rest % step == 0);
                match self.used.iter().all(|(_, sizes)| **sizes == BlockSizes::Fixed(unit))
                    && self.files.iter().all(ends)
                {
                    true => self.files.iter().map(|file| (file.plan.size_bytes / step + 1) * unit).sum(),
                    false => region_bytes.checked_next_multiple_of(unit).unwrap_or(region_bytes),
                }
            }
            _ if self.steps.is_none() => region_bytes.checked_next_multiple_of(unit).unwrap_or(region_bytes),
            _ => region_bytes,
        }
    }
}

/// The limits of a job, and how many bytes a pass over its files transfers.
pub(super) fn plan_limits(values: &mut Values, passing: &Passing<'_>) -> Result<(Limits, u64), Refusal> {
    let (engine, used) = (passing.engine, passing.used);
    let (region_bytes, pass_bytes) = (passing.region_bytes(), passing.pass_bytes());
    let runtime_ns = values.duration_ns("runtime");
    let is_time_based = values.bool("time_based");
    if is_time_based && runtime_ns.is_none() {
        let rule = Rule::Incomplete {
            option: values.quote("time_based"),
            needs: "`runtime`: nothing would end the job",
            hint: "say `runtime`, such as `runtime = \"30s\"`",
        };
        return Err(values.refuse("time_based", rule));
    }
    let size_is_io = values.is_said("filesize") && values.is_said("size");
    let (io_bytes, reason) = match (values.extent("io_size"), values.extent("size")) {
        _ if engine.works_on_names() => (region_bytes, Some("one for each name")),
        (Some(Extent::Bytes(bytes)), _) => (bytes, None),
        (Some(Extent::Percent(percent)), _) => ((u128::from(region_bytes) * u128::from(percent) / 100) as u64, None),
        (None, Some(Extent::Bytes(bytes))) if size_is_io && bytes < pass_bytes => {
            (bytes, Some("`size`, which is less than the files hold (`filesize`)"))
        }
        (None, _) => (pass_bytes, Some("the files' regions once")),
    };
    if let Some(reason) = reason {
        values.derive("io_size", write_bytes(io_bytes), reason);
    }
    // What was said is reached by whole I/Os, the last of them included; files are gone over as far as whole ones fit.
    let unit = passing.unit();
    let io_bytes = match (values.is_said("io_size") || size_is_io) && !engine.works_on_names() {
        true => io_bytes.max(1).checked_next_multiple_of(unit).unwrap_or(io_bytes),
        false => io_bytes,
    };
    let is_mixed = used.iter().any(|(_, sizes)| !matches!(sizes, BlockSizes::Fixed(bytes) if *bytes == unit));
    let block_bytes_max = used.iter().map(|(_, sizes)| sizes.max_bytes()).max().unwrap_or(0);
    if io_bytes < block_bytes_max && !(values.is_said("io_size") && is_mixed) {
        let option = if values.is_said("io_size") { "io_size" } else { "size" };
        let reason = format!("{} is less than one block of {}", write_bytes(io_bytes), write_bytes(block_bytes_max));
        return Err(values.refuse(option, Rule::BadValue { option, reason }));
    }
    Ok((Limits { io_bytes, ..plan_times(values) }, pass_bytes))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What is said of times and counts.
pub(super) fn plan_times(values: &Values) -> Limits {
    Limits {
        io_bytes: 0,
        loops: values.number("loops").unwrap_or(1),
        io_count: values.number("number_ios").filter(|count| *count > 0),
        runtime_ns: values.duration_ns("runtime"),
        is_time_based: values.bool("time_based"),
        ramp_ns: values.duration_ns("ramp_time").unwrap_or(0),
        start_delay_ns: values.duration_ns("startdelay").unwrap_or(0),
    }
}

/// Rounds repeat a job, so it must be one that can be repeated on the same bytes.
pub(super) fn plan_steady_state(
    planner: &mut Planner,
    values: &Values,
    files: &[JobFile],
    verify: Option<&Verify>,
) -> Result<Option<SteadyPlan>, Refusal> {
    if !values.bool("steady_state") {
        let because = "`steady_state` is not asked for";
        note_unused(planner, values, &["steady_state_round", "steady_state_rounds"], because);
        return Ok(None);
    }
    let refuse = |reason: &str, hint| {
        let rule = Rule::SteadyState { reason: reason.to_owned(), hint };
        Err(values.refuse("steady_state", rule))
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
        planner.note(&values.job, sentence);
    }
    let round_ns = values.duration_ns("steady_state_round").unwrap_or(0);
    if round_ns < 100_000_000 {
        let reason = "a round shorter than 100 ms says little of a device".to_owned();
        let option = "steady_state_round";
        return Err(values.refuse(option, Rule::BadValue { option, reason }));
    }
    Ok(Some(SteadyPlan { round_ns, rounds_max: values.small("steady_state_rounds").unwrap_or(25) }))
}
