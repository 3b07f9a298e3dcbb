//! Options of section `output`: logs and fio's outputs.

use crate::option::{Opt, Remote, Scope, Section, count, flag, path, percentiles, switch, word};
use trueio_model::{LogWindow, Unified};

crate::option::words_of! {
    impl Unified {
        Self::No => "none", ["0"], "each separately";
        Self::Mixed => "mixed", ["1"], "only the total";
        Self::Both => "both", ["2"], "each separately, and the total";
    }
}

crate::option::words_of! {
    impl LogWindow {
        Self::Mean => "avg", ["0"], "the mean";
        Self::Max => "max", ["1"], "the maximum";
        Self::Both => "both", ["2"], "the mean, followed by a column with the maximum";
    }
}

crate::option::rows! {
    Section::Output;

    pub const GROUP_REPORTING: Opt<Option<bool>> = flag("group_reporting")
        .unset("a job's workers are reported together, jobs separately")
        .scope(&[Scope::WithoutIo])
        .summary("In fio's formats the jobs of a group are one result; `false`: each worker is one")
        .detail("With `false` the record contains each worker's results in addition to the total. fio's \
                 default is false.");

    pub const NEW_GROUP: Opt<bool> = flag("new_group")
        .scope(&[Scope::WithoutIo])
        .fio_rule("a new reporting group begins with this job; it does not wait")
        .summary("A group of results begins with this job, even without a stonewall");

    pub const CLAT_PERCENTILES: Opt<bool> = switch("clat_percentiles")
        .default("true")
        .scope(&[Scope::WithoutIo])
        .summary("Percentiles of the completion latency")
        .detail("This and the following options change the content of fio's formats. The record always \
                 contains every latency.");

    pub const LAT_PERCENTILES: Opt<bool> = switch("lat_percentiles")
        .scope(&[Scope::WithoutIo])
        .summary("Percentiles of the total latency")
        .detail("With a rate they are always included, and count from the time an I/O was due.");

    pub const SLAT_PERCENTILES: Opt<bool> = switch("slat_percentiles")
        .scope(&[Scope::WithoutIo])
        .summary("Percentiles of the submission latency");

    pub const PERCENTILE_LIST: Opt<Vec<f64>> = percentiles("percentile_list")
        .default("1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99")
        .unit("percent")
        .scope(&[Scope::WithoutIo])
        .summary("The percentiles, 20 at most");

    pub const DISABLE_CLAT: Opt<bool> = switch("disable_clat")
        .scope(&[Scope::WithoutIo])
        .summary("The completion latency is omitted");

    pub const DISABLE_LAT: Opt<bool> = switch("disable_lat")
        .scope(&[Scope::WithoutIo])
        .summary("The total latency is omitted");

    pub const DISABLE_SLAT: Opt<bool> = switch("disable_slat")
        .scope(&[Scope::WithoutIo])
        .summary("The submission latency is omitted");

    pub const DISABLE_BW_MEASUREMENT: Opt<bool> = switch("disable_bw_measurement")
        .fio_names(&["disable_bw"])
        .scope(&[Scope::WithoutIo])
        .summary("Bandwidth and IOPS over time are omitted");

    pub const GTOD_REDUCE: Opt<bool> = switch("gtod_reduce")
        .scope(&[Scope::WithoutIo])
        .summary("The three latencies are omitted")
        .detail("Every latency is measured nevertheless, and is in the record.");

    pub const UNIFIED_RW_REPORTING: Opt<Unified> = word("unified_rw_reporting")
        .default("none")
        .scope(&[Scope::WithoutIo])
        .summary("Reads, writes and trims are reported as one");

    pub const BWAVGTIME: Opt<u64> = count("bwavgtime", 1, 3_600_000)
        .default("500")
        .unit("ms")
        .scope(&[Scope::WithoutIo])
        .summary("The span whose bandwidths are used for minimum, maximum and deviation")
        .detail("Rounded to whole intervals of the record, which are 100 ms or longer.");

    pub const IOPSAVGTIME: Opt<u64> = count("iopsavgtime", 1, 3_600_000)
        .default("500")
        .unit("ms")
        .scope(&[Scope::WithoutIo])
        .summary("The same for IOPS");

    pub const WRITE_BW_LOG: Opt<Option<String>> = path("write_bw_log")
        .unset("no log")
        .unit("path")
        .scope(&[Scope::Measured])
        .remote(Remote::Allowed)
        .summary("Bandwidth is logged while the job runs, in `PATH_bw.N.log`")
        .detail("In fio's columns. `N` counts workers over all jobs. A log of that name is replaced; \
                 any other file is refused. Lines are written ten times a second, and memory does not grow; a worker that is faster than its \
                 log waits for it between two I/Os, and the record notes it.");

    pub const WRITE_IOPS_LOG: Opt<Option<String>> = path("write_iops_log")
        .unset("no log")
        .unit("path")
        .scope(&[Scope::Measured])
        .remote(Remote::Allowed)
        .summary("IOPS are logged, in `PATH_iops.N.log`");

    pub const WRITE_LAT_LOG: Opt<Option<String>> = path("write_lat_log")
        .unset("no log")
        .unit("path")
        .scope(&[Scope::Measured])
        .remote(Remote::Allowed)
        .summary("Latencies are logged, in `PATH_slat.N.log`, `PATH_clat.N.log` and `PATH_lat.N.log`");

    pub const WRITE_HIST_LOG: Opt<Option<String>> = path("write_hist_log")
        .unset("no log")
        .unit("path")
        .scope(&[Scope::Measured])
        .remote(Remote::Allowed)
        .summary("Histograms of completion latencies are logged, in `PATH_clat_hist.N.log`")
        .detail("One line every `log_hist_msec`; without that option there are none.");

    pub const WRITE_IOLOG: Opt<Option<String>> = path("write_iolog")
        .unset("no log")
        .unit("path")
        .scope(&[Scope::Measured])
        .remote(Remote::Refused("would write a file at the server"))
        .summary("The issued I/Os are logged while the job runs, in fio's iolog format (version 3), for \
                  `read_iolog`")
        .detail("An iolog of that name is replaced; any other file is refused. For a job with one worker. Times count from the worker's \
                 start.");

    pub const LOG_AVG_MSEC: Opt<u64> = count("log_avg_msec", 0, 3_600_000)
        .default("0")
        .unit("ms")
        .scope(&[Scope::Logs])
        .summary("Each line is the mean of this many milliseconds; 0: one line per I/O")
        .detail("Times of lines are multiples of it. Without I/O there is a line with 0 in the logs of \
                 bandwidth and IOPS.");

    pub const LOG_HIST_MSEC: Opt<u64> = count("log_hist_msec", 0, 3_600_000)
        .default("0")
        .unit("ms")
        .scope(&[Scope::Logs])
        .summary("A histogram is logged every N milliseconds; 0: never");

    pub const LOG_HIST_COARSENESS: Opt<u64> = count("log_hist_coarseness", 0, 6)
        .default("0")
        .unit("times")
        .scope(&[Scope::Logs])
        .summary("Number of times that neighbouring columns of a histogram are merged in pairs");

    pub const LOG_OFFSET: Opt<bool> = switch("log_offset")
        .scope(&[Scope::Logs])
        .summary("Logs have a column with each I/O's offset");

    pub const LOG_PRIO: Opt<bool> = switch("log_prio")
        .scope(&[Scope::Logs])
        .summary("The last column of the logs is each I/O's priority as the kernel's number, in hexadecimal")
        .detail("Without it the column is 1 for I/Os of the real-time class and 0 for all others. Averages \
                 have 0.");

    pub const LOG_ISSUE_TIME: Opt<bool> = switch("log_issue_time")
        .scope(&[Scope::Logs])
        .summary("The last column of the logs is the time when each I/O was issued, in nanoseconds")
        .detail("It counts from the start of the log's times, also with `log_alternate_epoch`: from the start \
                 of the measured part. 0 in averages, of I/Os that were issued in the ramp, and in the logs of \
                 `lat`, bandwidth and IOPS, as in fio.");

    pub const LOG_WINDOW_VALUE: Opt<LogWindow> = word("log_window_value")
        .default("avg")
        .fio_names(&["log_max_value"])
        .scope(&[Scope::Logs])
        .summary("The value in a line of averages")
        .detail("Of bandwidth and IOPS, the maximum is that of spans of `bwavgtime` and `iopsavgtime`.");

    pub const LOG_ALTERNATE_EPOCH: Opt<bool> = switch("log_alternate_epoch")
        .fio_names(&["log_unix_epoch"])
        .scope(&[Scope::Logs])
        .summary("Times in logs are milliseconds since 1970, not since the measured part began");

    pub const LOG_STORE_COMPRESSED: Opt<bool> = switch("log_store_compressed")
        .scope(&[Scope::Logs])
        .remote(Remote::Refused("is for logs of this machine; those of a client are sent as text"))
        .summary("Logs are stored compressed, as fio stores them, under names that end with `.fz`")
        .detail("`fio --inflate-log=FILE` prints their lines. Histograms stay text. A run that is killed loses \
                 up to 64 KiB of each log, counted before compression.");

    pub const PER_JOB_LOGS: Opt<bool> = switch("per_job_logs")
        .default("true")
        .scope(&[Scope::Logs])
        .summary("Each worker has separate log files; `false`: the workers of a job share them, without a \
                  number")
        .detail("Jobs with the same prefix share them, too, in all phases of a run.");
}
