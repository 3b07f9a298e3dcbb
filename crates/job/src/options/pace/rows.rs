//! Options of section `pace`: rates and pauses.

use crate::option::{
    FioUse, Opt, Rates, Scope, Section, TimeNs, count, percentiles, rate_bytes, rate_iops, switch, time, time_us, word,
};
use trueio_model::Arrivals;

crate::option::words_of! {
    impl Arrivals {
        Self::Linear => "linear", [], "at equal intervals";
        Self::Poisson => "poisson", [], "a Poisson process: independent arrivals with exponential intervals";
    }
}

crate::option::rows! {
    Section::Pace;

    pub const RATE: Opt<Rates> = rate_bytes("rate")
        .default("0")
        .unit("bytes/s")
        .replaces(&["rate_iops"])
        .scope(&[Scope::Measured])
        .fio_rule("bytes a second, of reads, writes and trims; a single number is for each of them")
        .summary("Bytes per second that each worker issues; 0: as fast as the depth allows")
        .detail("An open loop: latency also counts from the time an I/O was due, so a stall increases the \
                 latency of every I/O that was due in it. `20m,5m` are separate rates of reads and writes, \
                 each with its own schedule; a single rate is of all I/Os together. `20m,0` is a rate of reads \
                 only: writes have none, and are issued while no read is due.");

    pub const RATE_IOPS: Opt<Rates> = rate_iops("rate_iops")
        .default("0")
        .unit("I/Os/s")
        .replaces(&["rate"])
        .scope(&[Scope::Measured])
        .fio_rule("I/Os a second, of reads, writes and trims; a single number is for each of them")
        .summary("I/Os per second that each worker issues; 0: as fast as the depth allows")
        .detail("As `rate`, counted in I/Os, and separately for reads and writes if given (`300,100`). Cannot \
                 be combined with `rate`.");

    pub const RATE_MIN: Opt<Rates> = rate_bytes("rate_min")
        .default("0")
        .unit("bytes/s")
        .fio_names(&["ratemin"])
        .scope(&[Scope::Measured])
        .summary("Bytes per second below which a worker ends the run as failed; 0: none")
        .detail("`1m,2m`: of reads and of writes, each separately.");

    pub const RATE_IOPS_MIN: Opt<Rates> = rate_iops("rate_iops_min")
        .default("0")
        .unit("I/Os/s")
        .scope(&[Scope::Measured])
        .summary("I/Os per second below which a worker ends the run as failed; 0: none");

    pub const RATE_CYCLE: Opt<u64> = count("rate_cycle", 1, 3_600_000)
        .default("1000")
        .unit("ms")
        .fio_names(&["ratecycle"])
        .summary("The span over which `rate_min` and `rate_iops_min` are averaged")
        .detail("Checked when an I/O or a sync call completes: a span grows until the next one.");

    pub const RATE_SETTLE_TIME: Opt<TimeNs> = time("rate_settle_time")
        .default("0s")
        .unit("time")
        .not_in_fio()
        .fio_default_conditional("2s")
        .summary("Measured time before the first span of `rate_min` and `rate_iops_min`")
        .detail("fio's is two seconds.");

    pub const MAX_LATENCY: Opt<TimeNs> = time_us("max_latency")
        .default("0s")
        .unit("time (bare: µs)")
        .scope(&[Scope::Measured])
        .summary("Latency above which an I/O ends the run as failed; 0: none")
        .detail("The job issues no further I/O after the first one that took longer.");

    pub const LATENCY_TARGET: Opt<Option<TimeNs>> = time_us("latency_target")
        .unset("the queue depth is `iodepth`")
        .unit("time (bare: µs)")
        .scope(&[Scope::Measured])
        .summary("Searches for the highest queue depth, up to `iodepth`, with which I/Os do not take longer")
        .detail("Each depth is tried for a `latency_window`, `iodepth` first, then by halves; the job ends \
                 when the depth is found. The figures are of all windows. A window counts the I/Os that were \
                 issued and completed in it, and one without any is extended. If even one I/O at a time misses \
                 the target, the job runs to its end; if every I/O must meet it, the run has failed.");

    pub const LATENCY_WINDOW: Opt<Option<TimeNs>> = time_us("latency_window")
        .unset("required for `latency_target`")
        .unit("time (bare: µs)")
        .summary("The time for which each queue depth is tried for `latency_target`");

    pub const LATENCY_PERCENTILE: Opt<Vec<f64>> = percentiles("latency_percentile")
        .default("100")
        .unit("percent")
        .summary("The share of a window's I/Os that must meet `latency_target`");

    pub const LATENCY_RUN: Opt<bool> = switch("latency_run")
        .summary("The job continues when the queue depth for `latency_target` is found, and adjusts it")
        .detail("After a window that misses the target it searches for a lower depth, after five that meet it \
                 for a higher one.");

    pub const FLOW: Opt<Option<u32>> = count("flow", 0, 1000)
        .unset("the job runs as fast as it can")
        .unit("weight")
        .scope(&[Scope::Measured])
        .summary("Parallel workers of one `flow_id` keep their I/Os in the proportion of these weights; 0: no \
                  flow")
        .detail("A worker that is ahead by more than a few I/Os waits for the others. A worker that starts \
                 later starts even with them, and the others do not wait for a worker that has ended.");

    pub const FLOW_ID: Opt<Option<u64>> = count("flow_id", 0, u64::MAX)
        .unset("0")
        .unit("number")
        .summary("The flow of the job");

    pub const FLOW_SLEEP: Opt<Option<TimeNs>> = time_us("flow_sleep")
        .unset("it checks continuously")
        .unit("time (bare: µs)")
        .summary("The time that a worker ahead of its flow sleeps before it checks again");

    pub const FLOW_WATERMARK: Opt<u32> = count("flow_watermark", 1, 1 << 20)
        .default("4")
        .unit("I/Os a weight unit")
        .fio(FioUse::Ignored("fio deprecated it"))
        .summary("A worker of a flow waits when it is ahead of its share by this number of I/Os times its weight")
        .detail("A larger number makes workers wait less often, such as those that share a processor, and lets their \
                 I/Os deviate further from the proportion at any time.");

    pub const RATE_PROCESS: Opt<Arrivals> = word("rate_process")
        .default("linear")
        .summary("The distribution of a rate's I/Os over time");

    pub const THINKTIME: Opt<TimeNs> = time_us("thinktime")
        .default("0s")
        .unit("time (bare: µs)")
        .scope(&[Scope::Measured])
        .summary("A pause after every `thinktime_blocks` I/Os; 0: none")
        .detail("A bare number is microseconds, as in fio; all other durations are seconds.");

    pub const THINKTIME_BLOCKS: Opt<u64> = count("thinktime_blocks", 1, u64::MAX)
        .default("1")
        .unit("I/Os")
        .summary("I/Os between two pauses");

    pub const THINKTIME_SPIN: Opt<TimeNs> = time_us("thinktime_spin")
        .default("0s")
        .unit("time (bare: µs)")
        .summary("The part of a pause that keeps the processor busy");

    pub const THINKTIME_IOTIME: Opt<TimeNs> = time("thinktime_iotime")
        .default("0s")
        .unit("time")
        .summary("Time of I/O after which a pause follows; 0: only `thinktime_blocks` applies")
        .detail("Together with `thinktime_blocks`, the pause follows whichever comes first.");
}
