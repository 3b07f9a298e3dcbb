//! What a job says about its own reporting.

use super::Planner;
use super::job::note_unused;
use super::values::Values;
use trueio_model::{Grouping, JobSpec, LogKind, LogPlan, LogWindow, OutputPlan, Unified};

/// What says how logs look.
const LOOKS: [&str; 10] = [
    "log_avg_msec",
    "log_hist_msec",
    "log_hist_coarseness",
    "log_offset",
    "log_prio",
    "log_issue_time",
    "log_window_value",
    "log_alternate_epoch",
    "per_job_logs",
    "log_store_compressed",
];

pub(super) fn plan_output(planner: &mut Planner, values: &Values) -> OutputPlan {
    let reduces = values.bool("gtod_reduce");
    let ns = |name| values.number(name).unwrap_or(0) * 1_000_000;
    OutputPlan {
        // The command line's, not the job's.
        shows_ios: false,
        shows_draws: false,
        shows_verify: false,
        shows_files: false,
        // The engine's.
        names: None,
        grouping: match values.said_bool("group_reporting") {
            None => Grouping::Job,
            Some(true) => Grouping::Group,
            Some(false) => Grouping::Worker,
        },
        new_group: values.bool("new_group"),
        clat_percentiles: values.bool("clat_percentiles"),
        lat_percentiles: values.bool("lat_percentiles"),
        slat_percentiles: values.bool("slat_percentiles"),
        percentiles: values.percentiles("percentile_list").to_vec(),
        hides_clat: reduces || values.bool("disable_clat"),
        hides_lat: reduces || values.bool("disable_lat"),
        hides_slat: reduces || values.bool("disable_slat"),
        hides_bw: reduces || values.bool("disable_bw_measurement"),
        unified: match values.choice("unified_rw_reporting") {
            Some("mixed") => Unified::Mixed,
            Some("both") => Unified::Both,
            _ => Unified::No,
        },
        bw_average_ns: ns("bwavgtime"),
        iops_average_ns: ns("iopsavgtime"),
        logs: plan_logs(planner, values),
    }
}

/// What says how logs look is kept only where there is a log.
fn plan_logs(planner: &mut Planner, values: &Values) -> LogPlan {
    let logs = read_logs(values);
    if logs.is_empty() {
        note_unused(planner, values, &LOOKS, "no log is written");
        return LogPlan::default();
    }
    if logs.lat.is_some() && logs.left_out.len() == 3 {
        note_unused(planner, values, &["write_lat_log"], "every latency is left out");
    }
    logs
}

/// The logs of a job of fio's, for who must know before there is a plan; `None` if its words cannot be read, which the
/// plan says.
pub(crate) fn logs_of(spec: &JobSpec) -> Option<LogPlan> {
    Some(read_logs(&Values::resolve(spec).ok()?))
}

fn read_logs(values: &Values) -> LogPlan {
    let prefix = |name| values.paths(name).map(<[String]>::concat);
    let reduces = values.bool("gtod_reduce");
    let left_out = [("disable_slat", LogKind::Slat), ("disable_clat", LogKind::Clat), ("disable_lat", LogKind::Lat)];
    let left_out =
        left_out.into_iter().filter(|(name, _)| reduces || values.bool(name)).map(|(_, kind)| kind).collect();
    LogPlan {
        bw: prefix("write_bw_log"),
        iops: prefix("write_iops_log"),
        lat: prefix("write_lat_log"),
        hist: prefix("write_hist_log"),
        iolog: None,
        average_ns: values.number("log_avg_msec").unwrap_or(0) * 1_000_000,
        hist_ns: values.number("log_hist_msec").unwrap_or(0) * 1_000_000,
        hist_coarseness: values.number("log_hist_coarseness").map_or(0, |n| n as u8),
        has_offset: values.bool("log_offset"),
        has_priority: values.bool("log_prio"),
        has_issue_time: values.bool("log_issue_time"),
        window: match values.choice("log_window_value") {
            Some("max") => LogWindow::Max,
            Some("both") => LogWindow::Both,
            _ => LogWindow::Mean,
        },
        has_unix_time: values.bool("log_alternate_epoch"),
        is_shared: !values.bool("per_job_logs"),
        is_compressed: values.bool("log_store_compressed"),
        left_out,
    }
}
