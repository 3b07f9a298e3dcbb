//! Options of section `limits`: when a job begins and ends.

use crate::option::{Opt, Scope, Section, TimeNs, count, criterion, extent, flag, names, switch, time, word};
use crate::value::Extent;
use trueio_model::{Criterion, DelayStart};

crate::option::words_of! {
    impl DelayStart {
        Self::Phase => "phase", [], "the start of the job's phase";
        Self::Run => "run", [], "the start of the first phase: a delay that ended during earlier phases has no effect";
    }
}

crate::option::words_of! {
    /// What a job that ends within its ramp is.
    pub enum ShortRamp {
        Fail => "fail", [], "failed: nothing was measured";
        Measure => "measure", [], "measured: its figures are those of the ramp";
    }
}

crate::option::words_of! {
    /// The jobs that `exitall` ends.
    pub enum ExitWhat {
        Stonewall => "stonewall", ["group"], "the parallel jobs";
        All => "all", [], "these, and the run: later jobs do not start";
    }
}

crate::option::rows! {
    Section::Limits;

    pub const RUNTIME: Opt<TimeNs> = time("runtime")
        .default("0s")
        .unit("time")
        .fio_names(&["timeout"])
        .scope(&[Scope::Measured, Scope::WithoutIo])
        .summary("Measured time after which the job ends, ramp excluded; 0: no limit");

    pub const TIME_BASED: Opt<bool> = flag("time_based")
        .scope(&[Scope::Measured, Scope::WithoutIo])
        .fio_rule("only `runtime` ends the job; no effect without `runtime`, as in fio")
        .summary("Only `runtime` and `number_ios` end the job: it starts over when all bytes are transferred")
        .detail("Refused without `runtime`.");

    pub const RAMP_TIME: Opt<TimeNs> = time("ramp_time")
        .default("0s")
        .unit("time")
        .scope(&[Scope::Measured])
        .summary("I/O is done but not recorded for this long before the measured part");

    pub const SHORT_RAMP: Opt<ShortRamp> = word("short_ramp")
        .default("fail")
        .not_in_fio()
        .fio_default_conditional("measure")
        .summary("What a job that ends within its `ramp_time` is")
        .detail("fio reports the figures of the ramp, and so does `trueio fio`.");

    pub const STEADY_STATE: Opt<bool> = switch("steady_state")
        .not_in_fio()
        .summary("The phase is repeated in rounds until it is steady, and measured after that")
        .detail("The rule is SNIA's: over five rounds, throughput and 99th percentile of latency stay within a \
                 range of 20 % of their mean, and their fitted line gains or loses at most 10 %. The measured \
                 part is a separate span after that. If the steady state is not reached, the phase is measured \
                 anyway and is suspect. Parallel jobs must all have the same setting.");

    pub const STEADY_STATE_ROUND: Opt<TimeNs> = time("steady_state_round")
        .default("10s")
        .unit("time")
        .not_in_fio()
        .summary("Length of a round of `steady_state`")
        .detail("A round needs about 400 I/Os; otherwise its 99th percentile is unknown.");

    pub const STEADY_STATE_ROUNDS: Opt<u32> = count("steady_state_rounds", 5, 10_000)
        .default("25")
        .unit("rounds")
        .not_in_fio()
        .summary("Maximum number of rounds of `steady_state`");

    pub const IO_SIZE: Opt<Option<Extent>> = extent("io_size")
        .unset("equal to `size`")
        .unit("bytes, percent or zones")
        .fio_names(&["io_limit"])
        .scope(&[Scope::ByLog])
        .summary("Bytes that each worker transfers in a loop")
        .detail("If it is not set, a loop is one pass over the files, each as far as whole blocks fit. A load \
                 without a pass (blocks that may repeat, sequential reads and writes) ends when the size of \
                 the files was transferred. It may be smaller or larger than the files. A percentage is of the \
                 files' regions together. The last I/O is a whole one; a pass over files with a map is not \
                 started again for less than a block.");

    pub const LOOPS: Opt<u64> = count("loops", 1, u64::MAX)
        .default("1")
        .unit("times")
        .scope(&[Scope::Measured, Scope::ByLog])
        .summary("Number of times that `io_size` is transferred")
        .detail("A remainder of a loop that is smaller than an I/O is transferred in the next loop; the total \
                 is rounded up. Files with a map have a pass in each loop: an `io_size` of more than a pass is \
                 then the minimum of all loops together, in whole passes.");

    pub const FILL_DEVICE: Opt<bool> = switch("fill_device")
        .fio_names(&["fill_fs"])
        .scope(&[Scope::Measured, Scope::ByLog])
        .summary("A sequential write continues until no space is free (ENOSPC, EDQUOT), which is its end and \
                  not a failure")
        .detail("Without `size`, a file is written until the space is used up; with it, at most to that size. \
                 A block device is written to its end, as without this option.");

    pub const NUMBER_IOS: Opt<u64> = count("number_ios", 0, u64::MAX)
        .default("0")
        .unit("I/Os")
        .scope(&[Scope::Measured, Scope::ByLog])
        .summary("I/Os after which a worker ends, for each of its `loops`; 0: no limit")
        .detail("As in fio, what `verify_backlog` reads back and `trim_backlog` trims counts, too.");

    pub const REPEAT_IOS_OF: Opt<Option<Vec<String>>> = names("repeat_ios_of")
        .unset("the number of I/Os does not depend on another job")
        .unit("name")
        .not_in_fio()
        .summary("The job does as many I/Os as this job of an earlier phase did, and uses its file as that left it")
        .detail("So a job that ended at its `runtime` is read back as far as it wrote. Both need one worker, the same block \
                 size and the same order (for random jobs the same `randseed`). In a run on several hosts the number is that \
                 of the rank whose region the job uses (`rank_shift`).");

    pub const COMPLETE_IOS_OF: Opt<Option<Vec<String>>> = names("complete_ios_of")
        .unset("the number of I/Os does not depend on another job")
        .unit("name")
        .not_in_fio()
        .summary("The job goes on where this job of an earlier phase ended, until it did as many I/Os as the rank with the most")
        .detail("After a `runtime`, all ranks then have done the same work (IOR's `stoneWallingWearOut`). The options must be \
                 those of the other job.");

    pub const STARTDELAY: Opt<TimeNs> = time("startdelay")
        .default("0s")
        .unit("time")
        .scope(&[Scope::WithoutIo, Scope::WithCommand])
        .fio_rule("wait before the first I/O; of a range, each clone draws its own, the same in each run unless `randseed` differs")
        .summary("Wait before the job's first I/O");

    pub const STARTDELAY_FROM: Opt<DelayStart> = word("startdelay_from")
        .default("phase")
        .not_in_fio()
        .fio_default("run")
        .summary("What `startdelay` counts from");

    pub const STONEWALL: Opt<bool> = flag("stonewall")
        .fio_names(&["wait_for_previous"])
        .scope(&[Scope::WithoutIo, Scope::WithCommand])
        .fio_rule("the job waits for all jobs before it, and a new reporting group begins")
        .summary("The job starts when all jobs before it have ended")
        .detail("Without it, jobs run at the same time, as in fio.");

    pub const WAIT_FOR: Opt<Option<Vec<String>>> = names("wait_for")
        .unset("the job starts with the parallel ones")
        .unit("names")
        .scope(&[Scope::WithoutIo])
        .fio_rule("the job begins when all clones of the job of that name have ended; other jobs go on")
        .summary("The job starts when all workers of the named jobs have ended")
        .detail("They must come before it; other parallel jobs continue. Its time, its delay and its ramp \
                 count from then. `stonewall` waits for all, and the jobs after it have a separate verdict.");

    pub const EXITALL: Opt<bool> = flag("exitall")
        .scope(&[Scope::WithoutIo])
        .summary("When a worker of this job ends, all parallel jobs are ended")
        .detail("They end as at their runtime: the figures so far are valid.");

    pub const STEADYSTATE: Opt<Criterion> = criterion("steadystate")
        .default("iops_slope:0.01%")
        .unit("criterion")
        .fio_names(&["ss"])
        .summary("The variable that must be steady for `steadystate_duration`, which then ends the job")
        .detail("fio's rule. `iops`, `bw`, `lat`: no value of the window deviates from their mean by more than \
                 the limit; with `_slope`: the fitted line rises or falls by less than the limit from one \
                 value to the next. With `%` the limit is a part of their mean. Jobs that are reported as one \
                 group are judged as one and end together. The figures are of the whole job, unlike those of \
                 `steady_state`, which come from a separate span afterwards.");

    pub const STEADYSTATE_DURATION: Opt<Option<TimeNs>> = time("steadystate_duration")
        .unset("a steady state does not end the job")
        .unit("time")
        .fio_names(&["ss_dur"])
        .scope(&[Scope::Measured])
        .summary("How long `steadystate` must hold to end the job");

    pub const STEADYSTATE_RAMP_TIME: Opt<Option<TimeNs>> = time("steadystate_ramp_time")
        .unset("none")
        .unit("time")
        .fio_names(&["ss_ramp"])
        .summary("Delay before the first value of `steadystate`");

    pub const STEADYSTATE_CHECK_INTERVAL: Opt<Option<TimeNs>> = time("steadystate_check_interval")
        .unset("1s")
        .unit("time")
        .fio_names(&["ss_interval"])
        .summary("Length of the interval of each value of `steadystate`");

    pub const EXIT_WHAT: Opt<ExitWhat> = word("exit_what")
        .default("stonewall")
        .summary("The jobs that `exitall` ends");

    pub const EXITALL_ON_ERROR: Opt<bool> = flag("exitall_on_error")
        .scope(&[Scope::WithoutIo])
        .summary("When a worker of this job fails, all parallel jobs are ended")
        .detail("The run has failed in any case. Later phases start only with `start_after_failure`.");

    pub const START_AFTER_FAILURE: Opt<bool> = switch("start_after_failure")
        .not_in_fio()
        .fio_default("true")
        .scope(&[Scope::WithoutIo, Scope::WithCommand])
        .summary("The job starts even if an earlier phase failed; jobs that start together must all set it")
        .detail("The run has failed in any case. If targets changed, or files could not be prepared, no later phase starts.");
}
