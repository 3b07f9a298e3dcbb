//! Options of section `process`: processors, priorities and errors.

use crate::option::{
    FioUse, Opt, Scope, Section, count, cpus, error_lists, integer, memory_policy, nodes, path, priorities, switch,
    word,
};
use trueio_model::{MemoryPolicy, PriorityShare};

crate::option::words_of! {
    /// The processors of each worker, out of those that the job may use.
    pub enum CpusPolicy {
        Split => "split", [], "each worker gets one of them";
        Shared => "shared", [], "each worker may run on all of them";
    }
}

crate::option::words_of! {
    /// The failed I/Os after which a job continues.
    pub enum ContinueOnError {
        None => "none", ["0", "false"], "the job ends at the first failed I/O";
        All => "all", ["1", "true"], "failed I/Os are counted and the job continues; the run still fails";
        Io => "io", [], "as `all`; in a job of fio's language a block that differs ends the job";
        Read => "read", [], "the job continues after failed reads, and ends at a failed write";
        Write => "write", [], "the job continues after failed writes and trims, and ends at a failed read";
        Verify => "verify", [], "as `none`: blocks that differ end a job only with `verify_fatal`";
    }
}

crate::option::rows! {
    Section::Process;

    pub const CPUS_ALLOWED: Opt<Option<Vec<u32>>> = cpus("cpus_allowed")
        .unset("workers are not pinned")
        .unit("processor numbers")
        .scope(&[Scope::WithoutIo])
        .fio_rule("each clone may run on all of them, or on one with `cpus_allowed_policy=split`")
        .summary("The processors to which the workers are pinned, one each in turn");

    pub const CPUS_ALLOWED_POLICY: Opt<CpusPolicy> = word("cpus_allowed_policy")
        .default("split")
        .scope(&[Scope::WithoutIo])
        .fio_rule("`split`: each clone has one of the processors; `shared`: each has all of them")
        .fio_default_conditional("shared")
        .summary("The distribution of the processors of `cpus_allowed` over the workers");

    pub const NUMA_CPU_NODES: Opt<Option<Vec<u32>>> = nodes("numa_cpu_nodes")
        .unset("workers are not pinned")
        .unit("node numbers")
        .summary("The nodes on whose processors the workers may run")
        .detail("Each worker may run on all of them that this process may use. Excludes `cpus_allowed`.");

    pub const NUMA_MEM_POLICY: Opt<Option<MemoryPolicy>> = memory_policy("numa_mem_policy")
        .unset("unchanged")
        .unit("policy")
        .summary("The nodes from which the workers' memory comes, I/O buffers included")
        .detail("Set by set_mempolicy(2) for the workers' threads. It also applies to pages that a worker \
                 brings into the page cache.");

    pub const PRIO: Opt<Option<u64>> = count("prio", 0, 7)
        .unset("unchanged")
        .unit("level")
        .scope(&[Scope::WithoutIo])
        .summary("The workers' level of I/O priority, 0 the highest")
        .detail("Within its class: best effort, unless `prioclass` sets another. Not every I/O scheduler uses \
                 it: `none` does not.");

    pub const PRIOCLASS: Opt<Option<u64>> = count("prioclass", 0, 3)
        .unset("unchanged")
        .unit("class")
        .scope(&[Scope::WithoutIo])
        .summary("The workers' class of I/O priority: 1 real time, 2 best effort, 3 idle")
        .detail("The real-time class needs a privilege.");

    pub const PRIOHINT: Opt<u64> = count("priohint", 0, 1023)
        .default("0")
        .unit("hint")
        .scope(&[Scope::WithoutIo])
        .summary("A hint for the device, in addition to the workers' I/O priority; 0: none")
        .detail("Linux 6.5; 1 to 7 are limits of duration. Best effort of level 0, unless `prioclass` and \
                 `prio` set another.");

    pub const CMDPRIO_BSSPLIT: Opt<Option<Vec<PriorityShare>>> = priorities("cmdprio_bssplit")
        .unset("all I/Os have the worker's priority")
        .unit("shares")
        .fio_rule("shares of the I/Os with priorities of their own, by size; not next to `cmdprio_percentage`")
        .fio_engines(&["io_uring", "libaio"])
        .summary("Shares of the I/Os with a separate priority: size, percentage, class, level, hint")
        .detail("`4k/10/2/1:64k/5/3/0`: of 4 KiB I/Os 10 % are best effort of level 1, of 64 KiB 5 % are idle. \
                 `*` is any size; `*/20/2/0,` is for reads only, `,*/20/2/0` for writes only. Without class \
                 and level they are real time of level 0, which needs a privilege; a hint is a fifth number \
                 (Linux 6.5). For `io_uring` and `libaio`; the results contain the latencies of each priority. \
                 In fio's language `cmdprio_percentage`, `cmdprio_class`, `cmdprio` and `cmdprio_hint` set it, \
                 too. Not every I/O scheduler uses priorities.");

    pub const NICE: Opt<Option<i64>> = integer("nice", -20, 19)
        .unset("unchanged")
        .unit("nice value")
        .scope(&[Scope::WithoutIo])
        .summary("The workers' nice value")
        .detail("Values below 0 need a privilege.");

    pub const UID: Opt<Option<u32>> = count("uid", 0, 4_294_967_294)
        .unset("the user who runs the program")
        .unit("user's number")
        .scope(&[Scope::WithoutIo])
        .summary("The user whose rights the job has")
        .detail("Its files are created and opened, and its I/O is done, with that user's rights, without \
                 further groups. Observation, and the check whether a target may be written, use the rights of \
                 the user who runs the program. Processors, priorities and the nice value are set before. \
                 Another user needs CAP_SETUID and CAP_SETGID. fio creates files before it changes users, so \
                 its job may not be able to write them.");

    pub const GID: Opt<Option<u32>> = count("gid", 0, 4_294_967_294)
        .unset("the group of the user who runs the program")
        .unit("group's number")
        .scope(&[Scope::WithoutIo])
        .summary("The group whose rights the job has")
        .detail("As `uid`. With `uid` alone the group does not change.");

    pub const CGROUP: Opt<Option<String>> = path("cgroup")
        .unset("that of the program")
        .unit("path")
        .scope(&[Scope::WithoutIo])
        .summary("The control group that the workers join")
        .detail("Its path below the hierarchy of block I/O, version 1. It is created if it does not exist, and then \
                 removed at the end of the phase. Groups of version 2 hold whole processes, and are not joined: start \
                 the program in one (`systemd-run --scope`).");

    pub const CGROUP_WEIGHT: Opt<Option<u32>> = count("cgroup_weight", 100, 1000)
        .unset("unchanged")
        .unit("weight")
        .scope(&[Scope::WithoutIo])
        .summary("The weight of the group of `cgroup` among its neighbours")
        .detail("In `blkio.weight`, or, where the kernel has that no more, `blkio.bfq.weight`. Only the scheduler `bfq` \
                 uses it.");

    pub const CGROUP_NODELETE: Opt<bool> = switch("cgroup_nodelete")
        .scope(&[Scope::WithoutIo])
        .summary("The group of `cgroup` is not removed");

    pub const CONTINUE_ON_ERROR: Opt<ContinueOnError> = word("continue_on_error")
        .default("none")
        .scope(&[Scope::Measured])
        .summary("Whether the job continues after a failed I/O");

    pub const IGNORE_ERROR: Opt<Option<[Vec<i32>; 2]>> = error_lists("ignore_error")
        .unset("none")
        .unit("errors")
        .summary("Expected errors: the job continues after them, and the run does not fail")
        .detail("Of reads, and after a comma of writes and trims: `EIO,ENOSPC:EDQUOT`. They are counted and \
                 reported; no figure includes them. With `ENOSPC` or `EDQUOT` a write may also be short. \
                 `verify` leaves out a block whose last write failed.");

    pub const TRACE_SYSCALLS: Opt<bool> = switch("trace_syscalls")
        .not_in_fio()
        .scope(&[Scope::Measured])
        .summary("Every system call of the workers in the measured part is recorded, with its cost")
        .detail("With the kernel's tracepoints, for root only (`--trace-syscalls` is the same flag). Each call \
                 costs some hundred nanoseconds more; the record shows how many events were lost if the \
                 kernel's buffers were full. Work of the kernel itself (io_uring's own threads) is no system \
                 call of ours.");

    pub const STRACE: Opt<bool> = switch("strace")
        .fio(FioUse::Absent)
        .scope(&[Scope::Measured])
        .summary("The phase runs under `strace -f -tt`, to measure the cost of strace")
        .detail("strace stops the workers twice in every call, so its cost dominates the measurement. Its \
                 output goes to `/dev/null`. For studies that repeat results that were published in this way.");
}
