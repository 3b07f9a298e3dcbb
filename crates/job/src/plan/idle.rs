//! Jobs without a measured part: those that only make files (`create_only`), and engines without I/O (`exec`, `cpuio`).
//!
//! What is said of measuring has no effect there, which is told, and none of it stays in the plan: no log is replaced by an
//! empty one, and nobody waits for what is never measured.

use super::Planner;
use super::values::Values;
use crate::refusal::{Refusal, Rule};
use trueio_model::{EngineKind, Guard, JobPlan, LogPlan};

/// What means something for an engine without I/O.
const MEANINGFUL: &[&str] = &[
    "bwavgtime",
    "clat_percentiles",
    "cpuchunks",
    "cpuload",
    "cpumode",
    "cpus_allowed",
    "cpus_allowed_policy",
    "directory",
    "disable_bw_measurement",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "exit_on_io_done",
    "exitall",
    "exitall_on_error",
    "gid",
    "grace_time",
    "group_reporting",
    "gtod_reduce",
    "ioengine",
    "iopsavgtime",
    "lat_percentiles",
    "new_group",
    "nice",
    "numjobs",
    "percentile_list",
    "prio",
    "prioclass",
    "priohint",
    "program",
    "randrepeat",
    "randseed",
    "runtime",
    "slat_percentiles",
    "startdelay",
    "std_redirect",
    "stonewall",
    "time_based",
    "uid",
    "unified_rw_reporting",
    "unlink",
    "wait_for",
];

/// What is said of I/O that is measured.
const MEASURED: &[&str] = &[
    "continue_on_error",
    "end_fdatasync",
    "end_fsync",
    "fdatasync",
    "fill_device",
    "flow",
    "fsync",
    "fsync_on_close",
    "latency_target",
    "lockfile",
    "loops",
    "max_latency",
    "number_ios",
    "pre_read",
    "ramp_time",
    "rate",
    "rate_iops",
    "rate_iops_min",
    "rate_min",
    "read_iolog",
    "runtime",
    "steadystate_duration",
    "strace",
    "sync_file_range",
    "thinktime",
    "time_based",
    "trace_syscalls",
    "unlink_each_loop",
    "verify",
    "write_bw_log",
    "write_hist_log",
    "write_iolog",
    "write_iops_log",
    "write_lat_log",
];

/// Tells what has no effect on a job without a measured part.
///
/// # Errors
/// What would be a success that did nothing of what was asked.
pub(super) fn note_idle(planner: &mut Planner, values: &Values, engine: EngineKind) -> Result<(), Refusal> {
    if values.bool("create_only") {
        if values.bool("verify_only") {
            let rule = Rule::Contradiction {
                one: values.quote("create_only"),
                other: values.quote("verify_only"),
                reason: "nothing would be compared",
                hint: "leave one of them out",
            };
            return Err(values.refuse("verify_only", rule));
        }
        note(planner, values, "only files are made (`create_only`)", |name| MEASURED.contains(&name));
    } else if !engine.does_io() {
        let because = format!("{} does no I/O", engine.name());
        // With an end, the program runs through the ramps of those beside it.
        let has_ramp = values.duration_ns("runtime").is_some();
        note(planner, values, &because, |name| !(MEANINGFUL.contains(&name) || has_ramp && name == "ramp_time"));
    }
    Ok(())
}

/// Notes what was said of these options, unless a note tells already that it has no effect.
fn note(planner: &mut Planner, values: &Values, because: &str, is_meant: impl Fn(&str) -> bool) {
    for name in values.said().filter(|name| values.is_asked(name) && is_meant(name)) {
        let sentence = format!("{} has no effect", values.quote(name));
        let beginning = format!("job `{}`: {sentence}", values.job);
        if !planner.notes.iter().any(|note| note.starts_with(&beginning)) {
            planner.note(&values.job, &format!("{sentence}: {because}"));
        }
    }
}

/// Leaves nothing in the plan of a job without a measured part that only a measured one has.
pub(super) fn strip(job: &mut JobPlan) {
    if job.is_measured() {
        return;
    }
    (job.pace, job.think, job.replay, job.verify) = (None, None, None, None);
    job.guard = Guard::default();
    (job.control.latency_target, job.control.criterion, job.control.flow) = (None, None, None);
    job.output.logs = LogPlan::default();
    (job.trace_syscalls, job.strace, job.pre_read) = (false, false, false);
}
