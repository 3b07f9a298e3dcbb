//! Options of section `limits`: when a job begins and ends.

use crate::option::{Opt, Scope, Section, TimeNs, Word, choice, count, criterion, extent, names, switch, time, word};
use crate::value::Choice;
use crate::value::Extent;
use trueio_model::Criterion;

const EXIT_WHAT_WORDS: &[Choice] = &[
    choice("stonewall", &["group"], "the jobs that run at the same time"),
    choice("all", &[], "those, and the run: jobs behind them do not begin"),
];

crate::option::rows! {
    Section::Limits;

    pub const RUNTIME: Opt<TimeNs> = time("runtime")
        .default("0s")
        .unit("time")
        .fio_names(&["timeout"])
        .scope(&[Scope::Measured, Scope::WithoutIo])
        .summary("Measured time after which the job ends, ramp excluded; 0: no limit");

    pub const TIME_BASED: Opt<bool> = switch("time_based")
        .scope(&[Scope::Measured, Scope::WithoutIo])
        .summary("Only `runtime` and `number_ios` end the job: it starts over when all bytes are done")
        .detail("Refused without `runtime`.");

    pub const RAMP_TIME: Opt<TimeNs> = time("ramp_time")
        .default("0s")
        .unit("time")
        .scope(&[Scope::Measured])
        .summary("I/O is done but not recorded for this long before the measured part");

    pub const STEADY_STATE: Opt<bool> = switch("steady_state")
        .not_in_fio()
        .summary("The phase is repeated in rounds until it is steady, and measured only then")
        .detail("The rule is SNIA's: over five rounds, throughput and 99th percentile of latency stay within a \
                 range of 20 % of their mean, and their fitted line gains or loses at most 10 %. What is \
                 measured is a fresh span after that. If it is not attained, the phase is measured all the same \
                 and is suspect. Jobs that run at the same time must all say the same.");

    pub const STEADY_STATE_ROUND: Opt<TimeNs> = time("steady_state_round")
        .default("10s")
        .unit("time")
        .not_in_fio()
        .summary("Length of a round of `steady_state`")
        .detail("A round needs some 400 I/Os, or its 99th percentile is not known.");

    pub const STEADY_STATE_ROUNDS: Opt<u32> = count("steady_state_rounds", 5, 10_000)
        .default("25")
        .unit("rounds")
        .not_in_fio()
        .summary("Rounds after which `steady_state` is given up");

    pub const IO_SIZE: Opt<Option<Extent>> = extent("io_size")
        .unset("as much as `size`")
        .unit("bytes, percent or zones")
        .fio_names(&["io_limit"])
        .scope(&[Scope::ByLog])
        .summary("How much each worker transfers in a loop")
        .detail("If it is not given, a loop is one pass over the files, each as far as whole blocks go; what \
                 has no end (blocks that may come again, reads and writes in order) ends when as much as the \
                 files hold was transferred. May be less or more than the files hold. A percentage is of the \
                 files' regions together. The last I/O is a whole one; files that are gone over block by block \
                 are not begun again for less than a block.");

    pub const LOOPS: Opt<u64> = count("loops", 1, u64::MAX)
        .default("1")
        .unit("times")
        .scope(&[Scope::Measured, Scope::ByLog])
        .summary("How often `io_size` is transferred")
        .detail("What is left of a loop for no whole I/O is transferred in the next; what is left of all is \
                 rounded up. Files that are gone over block by block are gone over in each loop: an `io_size` \
                 of more than a pass is then what all loops together are at least, by whole passes.");

    pub const FILL_DEVICE: Opt<bool> = switch("fill_device")
        .fio_names(&["fill_fs"])
        .scope(&[Scope::Measured, Scope::ByLog])
        .summary("A sequential write goes on until nothing is free (ENOSPC, EDQUOT), which is its end and no \
                  failure")
        .detail("Without `size`, a file is written for as long as there is room; with it, that far at most. A \
                 block device is written to its end, as without it.");

    pub const NUMBER_IOS: Opt<u64> = count("number_ios", 0, u64::MAX)
        .default("0")
        .unit("I/Os")
        .scope(&[Scope::Measured, Scope::ByLog])
        .summary("I/Os after which a worker ends, for each of its `loops`; 0: no limit");

    pub const STARTDELAY: Opt<TimeNs> = time("startdelay")
        .default("0s")
        .unit("time")
        .scope(&[Scope::WithoutIo, Scope::WithCommand])
        .summary("Wait before the job's first I/O");

    pub const STONEWALL: Opt<bool> = switch("stonewall")
        .fio_names(&["wait_for_previous"])
        .scope(&[Scope::WithoutIo, Scope::WithCommand])
        .summary("The job begins when all jobs before it have ended")
        .detail("Without it, jobs run at the same time, as in fio.");

    pub const WAIT_FOR: Opt<Option<Vec<String>>> = names("wait_for")
        .unset("the job begins with those beside it")
        .unit("names")
        .scope(&[Scope::WithoutIo])
        .summary("The job begins when all workers of the jobs of these names have ended")
        .detail("They stand before it; others that run beside it go on. Its time, its delay and its ramp count \
                 from then. `stonewall` waits for all, and what it begins is judged by itself.");

    pub const EXITALL: Opt<bool> = switch("exitall")
        .scope(&[Scope::WithoutIo])
        .summary("When a worker of this job ends, all that run at the same time are ended")
        .detail("They end as at their runtime: what they measured stands.");

    pub const STEADYSTATE: Opt<Criterion> = criterion("steadystate")
        .default("iops_slope:0.01%")
        .unit("criterion")
        .fio_names(&["ss"])
        .summary("What is to be steady for `steadystate_duration`, which then ends the job")
        .detail("fio's rule. `iops`, `bw`, `lat`: of the window's values none is further than the limit from \
                 their mean; with `_slope`: the straight line through them rises or falls by less than the \
                 limit from one to the next. With `%` the limit is a part of their mean. Jobs that are reported \
                 as one group are judged as one and end together. The figures are of the whole job, unlike \
                 those of `steady_state`, which come from a fresh span after it was steady.");

    pub const STEADYSTATE_DURATION: Opt<Option<TimeNs>> = time("steadystate_duration")
        .unset("the job does not end because it is steady")
        .unit("time")
        .fio_names(&["ss_dur"])
        .scope(&[Scope::Measured])
        .summary("How long `steadystate` must hold to end the job");

    pub const STEADYSTATE_RAMP_TIME: Opt<Option<TimeNs>> = time("steadystate_ramp_time")
        .unset("at once")
        .unit("time")
        .fio_names(&["ss_ramp"])
        .summary("How long `steadystate` waits for its first value");

    pub const STEADYSTATE_CHECK_INTERVAL: Opt<Option<TimeNs>> = time("steadystate_check_interval")
        .unset("1s")
        .unit("time")
        .fio_names(&["ss_interval"])
        .summary("How long each value of `steadystate` is measured");

    pub const EXIT_WHAT: Opt<Word> = word("exit_what", EXIT_WHAT_WORDS)
        .default("stonewall")
        .summary("What `exitall` ends");

    pub const EXITALL_ON_ERROR: Opt<bool> = switch("exitall_on_error")
        .scope(&[Scope::WithoutIo])
        .summary("When a worker of this job fails, all that run at the same time are ended")
        .detail("The run has failed in any case, and no later phase begins.");
}
