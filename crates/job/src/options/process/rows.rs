//! Options of section `process`: processors, priorities and errors.

use crate::option::{
    Opt, Scope, Section, Word, choice, count, cpus, error_lists, integer, memory_policy, nodes, priorities, switch,
    word,
};
use crate::value::Choice;
use trueio_model::{MemoryPolicy, PriorityShare};

const CPUS_POLICY: &[Choice] =
    &[choice("split", &[], "each worker has one of them"), choice("shared", &[], "each worker may run on all of them")];

const CONTINUE_ON_ERROR_WORDS: &[Choice] = &[
    choice("none", &["0", "false"], "the job ends at the first failed I/O"),
    choice("all", &["1", "true", "io"], "failed I/Os are counted and the job goes on; the run still fails"),
    choice("read", &[], "so it does after failed reads, and ends at a failed write"),
    choice("write", &[], "so it does after failed writes and trims, and ends at a failed read"),
    choice("verify", &[], "as `none`: blocks that differ end a job only with `verify_fatal`"),
];

crate::option::rows! {
    Section::Process;

    pub const CPUS_ALLOWED: Opt<Option<Vec<u32>>> = cpus("cpus_allowed")
        .unset("workers are not pinned")
        .unit("processor numbers")
        .scope(&[Scope::WithoutIo])
        .summary("The processors that the workers are pinned to, one each in turn");

    pub const CPUS_ALLOWED_POLICY: Opt<Word> = word("cpus_allowed_policy", CPUS_POLICY)
        .default("split")
        .scope(&[Scope::WithoutIo])
        .summary("How the workers share the processors of `cpus_allowed`")
        .detail("fio's default is `shared`.");

    pub const NUMA_CPU_NODES: Opt<Option<Vec<u32>>> = nodes("numa_cpu_nodes")
        .unset("workers are not pinned")
        .unit("node numbers")
        .summary("The nodes on whose processors the workers may run")
        .detail("Each worker on all of them, of those that this process may use. Excludes `cpus_allowed`.");

    pub const NUMA_MEM_POLICY: Opt<Option<MemoryPolicy>> = memory_policy("numa_mem_policy")
        .unset("left as it is")
        .unit("policy")
        .summary("The nodes from which the workers' memory comes, I/O buffers included")
        .detail("By set_mempolicy(2), for the workers' threads. Pages of the page cache that a worker brings in \
                 come from there, too.");

    pub const PRIO: Opt<Option<u64>> = count("prio", 0, 7)
        .unset("left as it is")
        .unit("level")
        .scope(&[Scope::WithoutIo])
        .summary("The workers' level of I/O priority, 0 the highest")
        .detail("Within its class: best effort, unless `prioclass` says another. Which schedulers heed it, the \
                 kernel decides: `none` does not.");

    pub const PRIOCLASS: Opt<Option<u64>> = count("prioclass", 0, 3)
        .unset("left as it is")
        .unit("class")
        .scope(&[Scope::WithoutIo])
        .summary("The workers' class of I/O priority: 1 real time, 2 best effort, 3 idle")
        .detail("Real time needs privilege.");

    pub const PRIOHINT: Opt<u64> = count("priohint", 0, 1023)
        .default("0")
        .unit("hint")
        .scope(&[Scope::WithoutIo])
        .summary("A hint for the device, beside the workers' I/O priority; 0: none")
        .detail("Linux 6.5; 1 to 7 are limits of duration. Best effort of level 0, unless `prioclass` and \
                 `prio` say another.");

    pub const CMDPRIO_BSSPLIT: Opt<Option<Vec<PriorityShare>>> = priorities("cmdprio_bssplit")
        .unset("all I/Os have the worker's priority")
        .unit("shares")
        .summary("Shares of the I/Os with a priority of their own: size, percentage, class, level, hint")
        .detail("`4k/10/2/1:64k/5/3/0`: of 4 KiB I/Os 10 % are best effort of level 1, of 64 KiB 5 % are idle. \
                 `*` is any size; `*/20/2/0,` is for reads only, `,*/20/2/0` for writes only. Without class and \
                 level they are real time of level 0, which needs privilege; a hint is a fifth number (Linux \
                 6.5). For `io_uring` and `libaio`; latencies of each priority stand in the results. In fio's \
                 language `cmdprio_percentage`, `cmdprio_class`, `cmdprio` and `cmdprio_hint` say it too. Which \
                 schedulers heed it, the kernel decides.");

    pub const NICE: Opt<Option<i64>> = integer("nice", -20, 19)
        .unset("left as it is")
        .unit("nice value")
        .scope(&[Scope::WithoutIo])
        .summary("The workers' nice value")
        .detail("Below 0 needs privilege.");

    pub const UID: Opt<Option<u32>> = count("uid", 0, 4_294_967_294)
        .unset("who runs the program")
        .unit("user's number")
        .scope(&[Scope::WithoutIo])
        .summary("The user that the job acts as")
        .detail("Its files are made and opened, and its I/O is done, with that user's rights, without further \
                 groups; what is looked at beside the I/O, and whether a target may be written, stays ours. \
                 Processors, priorities and the nice value are set before. Another user than who runs the \
                 program needs CAP_SETUID and CAP_SETGID. fio makes files before it changes users, so that its \
                 job may not write them.");

    pub const GID: Opt<Option<u32>> = count("gid", 0, 4_294_967_294)
        .unset("that of who runs the program")
        .unit("group's number")
        .scope(&[Scope::WithoutIo])
        .summary("The group that the job acts as")
        .detail("As `uid`. Beside a `uid` alone it stays ours.");

    pub const CONTINUE_ON_ERROR: Opt<Word> = word("continue_on_error", CONTINUE_ON_ERROR_WORDS)
        .default("none")
        .scope(&[Scope::Measured])
        .summary("Whether the job goes on after a failed I/O");

    pub const IGNORE_ERROR: Opt<Option<[Vec<i32>; 2]>> = error_lists("ignore_error")
        .unset("none")
        .unit("errors")
        .summary("Errors that are expected: the job goes on after them, and the run does not fail")
        .detail("Of reads, and behind a comma of writes and trims: `EIO,ENOSPC:EDQUOT`. They are counted and \
                 told of; no figure has them. With `ENOSPC` or `EDQUOT` a write may be short, too. Not for \
                 writes of a job that verifies.");

    pub const TRACE_SYSCALLS: Opt<bool> = switch("trace_syscalls")
        .not_in_fio()
        .scope(&[Scope::Measured])
        .summary("Every system call of the workers in the measured part is recorded, with its cost")
        .detail("By the kernel's tracepoints, for root only (`--trace-syscalls` is the same flag). Each call \
                 costs some hundred nanoseconds more; the record says what was lost if the kernel's buffers \
                 were full. What the kernel does by itself (io_uring's own threads) is no system call of ours.");

    pub const STRACE: Opt<bool> = switch("strace")
        .not_in_fio()
        .scope(&[Scope::Measured])
        .summary("The phase runs under `strace -f -tt`, to measure what that costs")
        .detail("strace stops the workers twice in every call: what is measured is strace. Its output goes to \
                 `/dev/null`. For studies that repeat what was published so.");
}
