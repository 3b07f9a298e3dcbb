//! Options of section `output`: logs and fio's outputs.

use crate::option::{Opt, Scope, Section, Word, choice, count, path, percentiles, switch, word};
use crate::value::Choice;

const UNIFIED: &[Choice] = &[
    choice("none", &["0"], "each by itself"),
    choice("mixed", &["1"], "only all of them together"),
    choice("both", &["2"], "each by itself, and all together"),
];

const LOG_WINDOW: &[Choice] = &[
    choice("avg", &["0"], "the mean"),
    choice("max", &["1"], "the largest value"),
    choice("both", &["2"], "the mean, and the largest value in a column behind it"),
];

crate::option::rows! {
    Section::Output;

    pub const GROUP_REPORTING: Opt<Option<bool>> = switch("group_reporting")
        .unset("a job's workers are reported together, jobs apart")
        .scope(&[Scope::WithoutIo])
        .summary("In fio's formats the jobs of a group are one result; `false`: each worker is one")
        .detail("With `false` the record keeps each worker's results beside those of all together. fio's \
                 default is false.");

    pub const NEW_GROUP: Opt<bool> = switch("new_group")
        .scope(&[Scope::WithoutIo])
        .summary("A group of results begins with this job, even without a stonewall");

    pub const CLAT_PERCENTILES: Opt<bool> = switch("clat_percentiles")
        .default("true")
        .scope(&[Scope::WithoutIo])
        .summary("Percentiles of the completion latency")
        .detail("This and what follows changes what fio's formats show. The record has every latency all the same.");

    pub const LAT_PERCENTILES: Opt<bool> = switch("lat_percentiles")
        .scope(&[Scope::WithoutIo])
        .summary("Percentiles of the total latency")
        .detail("Under a rate they are always there, and count from the moment an I/O was due.");

    pub const SLAT_PERCENTILES: Opt<bool> = switch("slat_percentiles")
        .scope(&[Scope::WithoutIo])
        .summary("Percentiles of the submission latency");

    pub const PERCENTILE_LIST: Opt<Vec<f64>> = percentiles("percentile_list")
        .default("1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99")
        .unit("percent")
        .scope(&[Scope::WithoutIo])
        .summary("Which percentiles, 20 at most");

    pub const DISABLE_CLAT: Opt<bool> = switch("disable_clat")
        .scope(&[Scope::WithoutIo])
        .summary("The completion latency is left out");

    pub const DISABLE_LAT: Opt<bool> = switch("disable_lat")
        .scope(&[Scope::WithoutIo])
        .summary("The total latency is left out");

    pub const DISABLE_SLAT: Opt<bool> = switch("disable_slat")
        .scope(&[Scope::WithoutIo])
        .summary("The submission latency is left out");

    pub const DISABLE_BW_MEASUREMENT: Opt<bool> = switch("disable_bw_measurement")
        .fio_names(&["disable_bw"])
        .scope(&[Scope::WithoutIo])
        .summary("Bandwidth and IOPS over time are left out");

    pub const GTOD_REDUCE: Opt<bool> = switch("gtod_reduce")
        .scope(&[Scope::WithoutIo])
        .summary("All four of them are left out")
        .detail("Every latency is measured all the same; it is cheap, and the record has it.");

    pub const UNIFIED_RW_REPORTING: Opt<Word> = word("unified_rw_reporting", UNIFIED)
        .default("none")
        .scope(&[Scope::WithoutIo])
        .summary("Reads, writes and trims as one");

    pub const BWAVGTIME: Opt<u64> = count("bwavgtime", 1, 3_600_000)
        .default("500")
        .unit("ms")
        .scope(&[Scope::WithoutIo])
        .summary("The span whose bandwidths are compared for minimum, maximum and deviation")
        .detail("Counted in whole rows of the record, which are 100 ms or longer.");

    pub const IOPSAVGTIME: Opt<u64> = count("iopsavgtime", 1, 3_600_000)
        .default("500")
        .unit("ms")
        .scope(&[Scope::WithoutIo])
        .summary("The same for IOPS");

    pub const WRITE_BW_LOG: Opt<Option<String>> = path("write_bw_log")
        .unset("no log")
        .unit("path")
        .scope(&[Scope::Measured])
        .summary("Bandwidth is logged while the job runs, in `PATH_bw.N.log`")
        .detail("In fio's columns. `N` counts workers over all jobs. A file of that name is replaced. Lines are \
                 written ten times a second, and memory does not grow; a worker that is faster than its log \
                 waits for it between two I/Os, and the record says so.");

    pub const WRITE_IOPS_LOG: Opt<Option<String>> = path("write_iops_log")
        .unset("no log")
        .unit("path")
        .scope(&[Scope::Measured])
        .summary("IOPS are logged, in `PATH_iops.N.log`");

    pub const WRITE_LAT_LOG: Opt<Option<String>> = path("write_lat_log")
        .unset("no log")
        .unit("path")
        .scope(&[Scope::Measured])
        .summary("Latencies are logged, in `PATH_slat.N.log`, `PATH_clat.N.log` and `PATH_lat.N.log`");

    pub const WRITE_HIST_LOG: Opt<Option<String>> = path("write_hist_log")
        .unset("no log")
        .unit("path")
        .scope(&[Scope::Measured])
        .summary("Histograms of completion latencies are logged, in `PATH_clat_hist.N.log`")
        .detail("A line every `log_hist_msec`; without that there are none.");

    pub const WRITE_IOLOG: Opt<Option<String>> = path("write_iolog")
        .unset("no log")
        .unit("path")
        .scope(&[Scope::Measured])
        .summary("What is issued is written down while the job runs, in fio's iolog format (version 3), for \
                  `read_iolog`")
        .detail("A file of that name is replaced. For a job with one worker. Times count from the worker's \
                 beginning.");

    pub const LOG_AVG_MSEC: Opt<u64> = count("log_avg_msec", 0, 3_600_000)
        .default("0")
        .unit("ms")
        .scope(&[Scope::Logs])
        .summary("A line is the mean of so many milliseconds; 0: a line an I/O")
        .detail("Lines stand at multiples of it. Without I/O there is a line with 0 in the logs of bandwidth \
                 and IOPS.");

    pub const LOG_HIST_MSEC: Opt<u64> = count("log_hist_msec", 0, 3_600_000)
        .default("0")
        .unit("ms")
        .scope(&[Scope::Logs])
        .summary("A histogram is logged every so many milliseconds");

    pub const LOG_HIST_COARSENESS: Opt<u64> = count("log_hist_coarseness", 0, 6)
        .default("0")
        .unit("times")
        .scope(&[Scope::Logs])
        .summary("How often neighbouring columns of a histogram are joined in pairs");

    pub const LOG_OFFSET: Opt<bool> = switch("log_offset")
        .scope(&[Scope::Logs])
        .summary("Logs have a column with each I/O's offset");

    pub const LOG_PRIO: Opt<bool> = switch("log_prio")
        .scope(&[Scope::Logs])
        .summary("The last column of the logs is each I/O's priority as the kernel's number, in hexadecimal")
        .detail("Without it the column is 1 for I/Os of the class real time and 0 for all others. Averages have 0.");

    pub const LOG_ISSUE_TIME: Opt<bool> = switch("log_issue_time")
        .scope(&[Scope::Logs])
        .summary("The last column of the logs is when each I/O was issued, in nanoseconds")
        .detail("It counts from where the log's times begin, also with `log_alternate_epoch`: from the \
                 beginning of the measured part. Averages, and what was issued in the ramp, have 0; in fio all \
                 lines of `lat`, bandwidth and IOPS have it, too.");

    pub const LOG_WINDOW_VALUE: Opt<Word> = word("log_window_value", LOG_WINDOW)
        .default("avg")
        .fio_names(&["log_max_value"])
        .scope(&[Scope::Logs])
        .summary("What a line of averaged latencies says");

    pub const LOG_ALTERNATE_EPOCH: Opt<bool> = switch("log_alternate_epoch")
        .fio_names(&["log_unix_epoch"])
        .scope(&[Scope::Logs])
        .summary("Times in logs are milliseconds since 1970, not since the measured part began");

    pub const LOG_STORE_COMPRESSED: Opt<bool> = switch("log_store_compressed")
        .scope(&[Scope::Logs])
        .summary("Logs are stored compressed, as fio stores them, under names that end with `.fz`")
        .detail("`fio --inflate-log=FILE` prints their lines. Histograms stay text. A run that is killed loses \
                 up to 64 KiB of each log, of what that is before it is compressed.");

    pub const PER_JOB_LOGS: Opt<bool> = switch("per_job_logs")
        .default("true")
        .scope(&[Scope::Logs])
        .summary("Each worker has log files of its own; `false`: those of a job share them, without a number")
        .detail("Jobs that name the same prefix share them, too, in all phases of a run.");
}
