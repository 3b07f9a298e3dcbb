//! Options of section `pace`: rates and pauses.

use crate::option::{
    Opt, Rates, Scope, Section, TimeNs, Word, choice, count, percentiles, rate_bytes, rate_iops, switch, time, time_us,
    word,
};
use crate::value::Choice;

const RATE_PROCESS_WORDS: &[Choice] = &[
    choice("linear", &[], "at equal distances"),
    choice("poisson", &[], "a Poisson process: independent arrivals with exponential distances"),
];

crate::option::rows! {
    Section::Pace;

    pub const RATE: Opt<Rates> = rate_bytes("rate")
        .default("0")
        .unit("bytes/s")
        .replaces(&["rate_iops"])
        .scope(&[Scope::Measured])
        .summary("Bytes a second that each worker offers; 0: as fast as the depth allows")
        .detail("An open loop: latency also counts from the moment an I/O was due, so a stall is charged to \
                 every I/O that was due in it. `20m,5m` gives reads and writes rates of their own, each with \
                 its own schedule; one rate is of all I/Os together. `20m,0` is a rate of reads only: writes \
                 have none, and are made whenever no read is due.");

    pub const RATE_IOPS: Opt<Rates> = rate_iops("rate_iops")
        .default("0")
        .unit("I/Os/s")
        .replaces(&["rate"])
        .scope(&[Scope::Measured])
        .summary("I/Os a second that each worker offers; 0: as fast as the depth allows")
        .detail("As `rate`, counted in I/Os, and for reads and writes apart if wanted (`300,100`); not both.");

    pub const RATE_MIN: Opt<Rates> = rate_bytes("rate_min")
        .default("0")
        .unit("bytes/s")
        .fio_names(&["ratemin"])
        .scope(&[Scope::Measured])
        .summary("Bytes a second below which a worker ends the run as failed; 0: none")
        .detail("`1m,2m`: of reads and of writes, each by itself.");

    pub const RATE_IOPS_MIN: Opt<Rates> = rate_iops("rate_iops_min")
        .default("0")
        .unit("I/Os/s")
        .scope(&[Scope::Measured])
        .summary("I/Os a second below which a worker ends the run as failed; 0: none");

    pub const RATE_CYCLE: Opt<u64> = count("rate_cycle", 1, 3_600_000)
        .default("1000")
        .unit("ms")
        .fio_names(&["ratecycle"])
        .summary("Over how long `rate_min` and `rate_iops_min` are averaged")
        .detail("Looked at ten times a second, so no finer than 100.");

    pub const MAX_LATENCY: Opt<TimeNs> = time_us("max_latency")
        .default("0s")
        .unit("time (bare: µs)")
        .scope(&[Scope::Measured])
        .summary("Latency above which an I/O ends the run as failed; 0: none")
        .detail("Looked at ten times a second.");

    pub const LATENCY_TARGET: Opt<Option<TimeNs>> = time_us("latency_target")
        .unset("the queue is as deep as `iodepth` says")
        .unit("time (bare: µs)")
        .scope(&[Scope::Measured])
        .summary("The highest queue depth is looked for, up to `iodepth`, at which I/Os take no longer")
        .detail("Each depth is tried for a `latency_window`, `iodepth` first, then by halves; the job ends when \
                 the depth is found. The figures are of all windows. A window counts the I/Os that were issued \
                 and completed in it, and one without any is longer. If not even one I/O at a time keeps the \
                 target, the job runs to its end; where every I/O must keep it, the run has failed.");

    pub const LATENCY_WINDOW: Opt<Option<TimeNs>> = time_us("latency_window")
        .unset("`latency_target` needs it")
        .unit("time (bare: µs)")
        .summary("How long each queue depth is tried for `latency_target`");

    pub const LATENCY_PERCENTILE: Opt<Vec<f64>> = percentiles("latency_percentile")
        .default("100")
        .unit("percent")
        .summary("The share of a window's I/Os that must keep `latency_target`");

    pub const LATENCY_RUN: Opt<bool> = switch("latency_run")
        .summary("The job goes on when the queue depth for `latency_target` is found, and adjusts it")
        .detail("After a window that misses the target a lower depth is looked for, after five that keep it a \
                 higher one.");

    pub const FLOW: Opt<Option<u32>> = count("flow", 0, 1000)
        .unset("the job runs as fast as it can")
        .unit("weight")
        .scope(&[Scope::Measured])
        .summary("Workers of one `flow_id` that run at the same time keep their I/Os in the proportion of these \
                  weights; 0: no flow")
        .detail("A worker that is ahead by more than a few I/Os waits for the others. One that begins later \
                 begins at par, and one that ends is not waited for.");

    pub const FLOW_ID: Opt<Option<u64>> = count("flow_id", 0, u64::MAX)
        .unset("0")
        .unit("number")
        .summary("Which flow the job belongs to");

    pub const FLOW_SLEEP: Opt<Option<TimeNs>> = time_us("flow_sleep")
        .unset("it keeps looking")
        .unit("time (bare: µs)")
        .summary("How long a worker that is ahead of its flow sleeps before it looks again");

    pub const RATE_PROCESS: Opt<Word> = word("rate_process", RATE_PROCESS_WORDS)
        .default("linear")
        .summary("How the I/Os of a rate are spread over time");

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
        .summary("How much of a pause keeps the processor busy");

    pub const THINKTIME_IOTIME: Opt<TimeNs> = time("thinktime_iotime")
        .default("0s")
        .unit("time")
        .summary("Time of I/O after which a pause comes; 0: `thinktime_blocks` alone says")
        .detail("Beside `thinktime_blocks`, a pause comes after whichever is first.");
}
