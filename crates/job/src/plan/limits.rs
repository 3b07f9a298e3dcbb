//! When a job ends.

use super::Planner;
use super::direct::unit_sizes;
use super::files::JobFile;
use super::job::note_unused;
use super::values::Values;
use crate::refusal::{Refusal, Rule};
use crate::value::{Extent, write_bytes};
use trueio_model::{BlockSizes, EngineKind, Limits, OpKind, Prepare, SteadyPlan, Verify};

pub(super) fn plan_limits(
    values: &mut Values,
    engine: EngineKind,
    region_bytes: u64,
    used: &[(OpKind, &BlockSizes)],
) -> Result<Limits, Refusal> {
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
        (None, Some(Extent::Bytes(bytes))) if size_is_io => (bytes, Some("`size`, since `filesize` is said")),
        (None, _) => (region_bytes, Some("the files' regions once")),
    };
    if let Some(reason) = reason {
        values.derive("io_size", write_bytes(io_bytes), reason);
    }
    // What was said is reached by whole I/Os, the last of them included; files are gone over as far as whole ones fit.
    let unit = used.iter().flat_map(|(_, sizes)| unit_sizes(sizes)).fold(0, gcd).max(1);
    let io_bytes = match values.is_said("io_size") && !engine.works_on_names() {
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
    Ok(Limits { io_bytes, ..plan_times(values) })
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
    if files.iter().any(|file| file.plan.prepare == Prepare::CreateEmpty) {
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
