//! A job's own reporting: percentiles, grouping and logs.

use crate::input::{Decisions, JobInput};
use crate::option::{Opt, Scope};
use crate::options::output::rows::{
    BWAVGTIME, CLAT_PERCENTILES, DISABLE_BW_MEASUREMENT, DISABLE_CLAT, DISABLE_LAT, DISABLE_SLAT, GROUP_REPORTING,
    GTOD_REDUCE, IOPSAVGTIME, LAT_PERCENTILES, LOG_ALTERNATE_EPOCH, LOG_AVG_MSEC, LOG_HIST_COARSENESS, LOG_HIST_MSEC,
    LOG_ISSUE_TIME, LOG_OFFSET, LOG_PRIO, LOG_STORE_COMPRESSED, LOG_WINDOW_VALUE, NEW_GROUP, PER_JOB_LOGS,
    PERCENTILE_LIST, SLAT_PERCENTILES, UNIFIED_RW_REPORTING, WRITE_BW_LOG, WRITE_HIST_LOG, WRITE_IOPS_LOG,
    WRITE_LAT_LOG,
};
use crate::values::Values;
use trueio_model::{Grouping, JobSpec, LogKind, LogPlan, OutputPlan};

pub(crate) fn plan_output(values: &JobInput<'_>, decisions: &mut Decisions) -> OutputPlan {
    let reduces = values.get(GTOD_REDUCE);
    let ns = |option: Opt<u64>| values.get(option) * 1_000_000;
    OutputPlan {
        // Set by the command line, not by the job.
        shows_ios: false,
        shows_draws: false,
        shows_verify: false,
        shows_files: false,
        // Set by the engine.
        names: None,
        replaced: std::collections::BTreeMap::new(),
        grouping: match values.get(GROUP_REPORTING) {
            None => Grouping::Job,
            Some(true) => Grouping::Group,
            Some(false) => Grouping::Worker,
        },
        new_group: values.get(NEW_GROUP),
        clat_percentiles: values.get(CLAT_PERCENTILES),
        lat_percentiles: values.get(LAT_PERCENTILES),
        slat_percentiles: values.get(SLAT_PERCENTILES),
        percentiles: values.get(PERCENTILE_LIST).to_vec(),
        hides_clat: reduces || values.get(DISABLE_CLAT),
        hides_lat: reduces || values.get(DISABLE_LAT),
        hides_slat: reduces || values.get(DISABLE_SLAT),
        hides_bw: values.get(DISABLE_BW_MEASUREMENT),
        unified: values.get(UNIFIED_RW_REPORTING),
        bw_average_ns: ns(BWAVGTIME),
        iops_average_ns: ns(IOPSAVGTIME),
        logs: plan_logs(values, decisions),
    }
}

/// Plans the logs; their settings are kept only if there is a log.
fn plan_logs(values: &JobInput<'_>, decisions: &mut Decisions) -> LogPlan {
    let logs = read_logs(values);
    if logs.is_empty() {
        decisions.note_unused(values, &values.rows_of(Scope::Logs), "no log is written");
        return LogPlan::default();
    }
    if logs.lat.is_some() && logs.left_out.len() == 3 {
        decisions.note_unused(values, &[WRITE_LAT_LOG.row()], "every latency is left out");
    }
    logs
}

/// Returns the logs of a job before it is planned; `None` if its options cannot be read, which the plan reports.
pub fn logs_of(spec: &JobSpec) -> Option<LogPlan> {
    Some(read_logs(&Values::resolve(spec).ok()?))
}

fn read_logs(values: &Values) -> LogPlan {
    let prefix = |option: Opt<Option<String>>| values.get(option).map(str::to_owned);
    let reduces = values.get(GTOD_REDUCE);
    let left_out = [(DISABLE_SLAT, LogKind::Slat), (DISABLE_CLAT, LogKind::Clat), (DISABLE_LAT, LogKind::Lat)];
    let left_out =
        left_out.into_iter().filter(|(option, _)| reduces || values.get(*option)).map(|(_, kind)| kind).collect();
    LogPlan {
        bw: prefix(WRITE_BW_LOG),
        iops: prefix(WRITE_IOPS_LOG),
        lat: prefix(WRITE_LAT_LOG),
        hist: prefix(WRITE_HIST_LOG),
        iolog: None,
        average_ns: values.get(LOG_AVG_MSEC) * 1_000_000,
        hist_ns: values.get(LOG_HIST_MSEC) * 1_000_000,
        hist_coarseness: values.get(LOG_HIST_COARSENESS) as u8,
        has_offset: values.get(LOG_OFFSET),
        has_priority: values.get(LOG_PRIO),
        has_issue_time: values.get(LOG_ISSUE_TIME),
        window: values.get(LOG_WINDOW_VALUE),
        has_unix_time: values.get(LOG_ALTERNATE_EPOCH),
        is_shared: !values.get(PER_JOB_LOGS),
        is_compressed: values.get(LOG_STORE_COMPRESSED),
        left_out,
    }
}
