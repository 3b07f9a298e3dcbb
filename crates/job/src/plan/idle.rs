//! Jobs without a measured part: those that only make files (`create_only`), and engines without I/O (`exec`, `cpuio`).
//!
//! What is said of measuring has no effect there, which is told, and none of it stays in the plan: no log is replaced by an
//! empty one, and nobody waits for what is never measured.

use crate::input::{Decisions, JobInput};
use crate::option::OptionRow;
use crate::options::content::rows::{VERIFY, VERIFY_ONLY};
use crate::options::durability::rows::{
    END_FDATASYNC, END_FSYNC, FDATASYNC, FSYNC, FSYNC_ON_CLOSE, PRE_READ, SYNC_FILE_RANGE,
};
use crate::options::engine::rows::{
    CPUCHUNKS, CPULOAD, CPUMODE, EXIT_ON_IO_DONE, GRACE_TIME, IOENGINE, NUMJOBS, PROGRAM, STD_REDIRECT,
};
use crate::options::limits::rows::{
    EXITALL, EXITALL_ON_ERROR, FILL_DEVICE, LOOPS, NUMBER_IOS, RAMP_TIME, RUNTIME, STARTDELAY, STEADYSTATE_DURATION,
    STONEWALL, TIME_BASED, WAIT_FOR,
};
use crate::options::output::rows::{
    BWAVGTIME, CLAT_PERCENTILES, DISABLE_BW_MEASUREMENT, DISABLE_CLAT, DISABLE_LAT, DISABLE_SLAT, GROUP_REPORTING,
    GTOD_REDUCE, IOPSAVGTIME, LAT_PERCENTILES, NEW_GROUP, PERCENTILE_LIST, SLAT_PERCENTILES, UNIFIED_RW_REPORTING,
    WRITE_BW_LOG, WRITE_HIST_LOG, WRITE_IOLOG, WRITE_IOPS_LOG, WRITE_LAT_LOG,
};
use crate::options::pace::rows::{
    FLOW, LATENCY_TARGET, MAX_LATENCY, RATE, RATE_IOPS, RATE_IOPS_MIN, RATE_MIN, THINKTIME,
};
use crate::options::pattern::rows::{RANDREPEAT, RANDSEED, READ_IOLOG};
use crate::options::process::rows::{
    CONTINUE_ON_ERROR, CPUS_ALLOWED, CPUS_ALLOWED_POLICY, GID, NICE, PRIO, PRIOCLASS, PRIOHINT, STRACE, TRACE_SYSCALLS,
    UID,
};
use crate::options::target::rows::{CREATE_ONLY, DIRECTORY, LOCKFILE, UNLINK, UNLINK_EACH_LOOP};
use crate::refusal::{Refusal, Rule};
use trueio_model::{EngineKind, Guard, JobPlan, LogPlan};

/// What means something for an engine without I/O.
const MEANINGFUL: &[&OptionRow] = &[
    BWAVGTIME.row(),
    CLAT_PERCENTILES.row(),
    CPUCHUNKS.row(),
    CPULOAD.row(),
    CPUMODE.row(),
    CPUS_ALLOWED.row(),
    CPUS_ALLOWED_POLICY.row(),
    DIRECTORY.row(),
    DISABLE_BW_MEASUREMENT.row(),
    DISABLE_CLAT.row(),
    DISABLE_LAT.row(),
    DISABLE_SLAT.row(),
    EXIT_ON_IO_DONE.row(),
    EXITALL.row(),
    EXITALL_ON_ERROR.row(),
    GID.row(),
    GRACE_TIME.row(),
    GROUP_REPORTING.row(),
    GTOD_REDUCE.row(),
    IOENGINE.row(),
    IOPSAVGTIME.row(),
    LAT_PERCENTILES.row(),
    NEW_GROUP.row(),
    NICE.row(),
    NUMJOBS.row(),
    PERCENTILE_LIST.row(),
    PRIO.row(),
    PRIOCLASS.row(),
    PRIOHINT.row(),
    PROGRAM.row(),
    RANDREPEAT.row(),
    RANDSEED.row(),
    RUNTIME.row(),
    SLAT_PERCENTILES.row(),
    STARTDELAY.row(),
    STD_REDIRECT.row(),
    STONEWALL.row(),
    TIME_BASED.row(),
    UID.row(),
    UNIFIED_RW_REPORTING.row(),
    UNLINK.row(),
    WAIT_FOR.row(),
];

/// What is said of I/O that is measured.
const MEASURED: &[&OptionRow] = &[
    CONTINUE_ON_ERROR.row(),
    END_FDATASYNC.row(),
    END_FSYNC.row(),
    FDATASYNC.row(),
    FILL_DEVICE.row(),
    FLOW.row(),
    FSYNC.row(),
    FSYNC_ON_CLOSE.row(),
    LATENCY_TARGET.row(),
    LOCKFILE.row(),
    LOOPS.row(),
    MAX_LATENCY.row(),
    NUMBER_IOS.row(),
    PRE_READ.row(),
    RAMP_TIME.row(),
    RATE.row(),
    RATE_IOPS.row(),
    RATE_IOPS_MIN.row(),
    RATE_MIN.row(),
    READ_IOLOG.row(),
    RUNTIME.row(),
    STEADYSTATE_DURATION.row(),
    STRACE.row(),
    SYNC_FILE_RANGE.row(),
    THINKTIME.row(),
    TIME_BASED.row(),
    TRACE_SYSCALLS.row(),
    UNLINK_EACH_LOOP.row(),
    VERIFY.row(),
    WRITE_BW_LOG.row(),
    WRITE_HIST_LOG.row(),
    WRITE_IOLOG.row(),
    WRITE_IOPS_LOG.row(),
    WRITE_LAT_LOG.row(),
];

/// Tells what has no effect on a job without a measured part.
///
/// # Errors
/// What would be a success that did nothing of what was asked.
pub(super) fn note_idle(values: &JobInput<'_>, engine: EngineKind) -> Result<((), Decisions), Refusal> {
    let mut decisions = Decisions::default();
    if values.get(CREATE_ONLY) {
        if values.get(VERIFY_ONLY) {
            let rule = Rule::Contradiction {
                one: values.quote(CREATE_ONLY),
                other: values.quote(VERIFY_ONLY),
                reason: "nothing would be compared",
                hint: "leave one of them out",
            };
            return Err(values.refuse(VERIFY_ONLY, rule));
        }
        note(values, &mut decisions, "only files are made (`create_only`)", |row| MEASURED.contains(row));
    } else if !engine.does_io() {
        let because = format!("{} does no I/O", engine.name());
        // With an end, the program runs through the ramps of those beside it.
        let has_ramp = values.get(RUNTIME).is_some();
        note(values, &mut decisions, &because, |row| {
            !(MEANINGFUL.contains(row) || has_ramp && *row == RAMP_TIME.row())
        });
    }
    Ok(((), decisions))
}

/// Notes what was said of these options, unless a note tells already that it has no effect.
fn note(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    because: &str,
    is_meant: impl Fn(&&'static OptionRow) -> bool,
) {
    for name in values.all_set().filter(|row| values.is_explicit(row) && is_meant(row)) {
        let sentence = format!("{} has no effect", values.quote(name));
        let beginning = format!("job `{}`: {sentence}", values.job);
        if !values.notes.iter().any(|note| note.starts_with(&beginning)) {
            decisions.note(format!("{sentence}: {because}"));
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
