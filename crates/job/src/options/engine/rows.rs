//! Options of section `engine`: the I/O engine and its queue.

use crate::option::{
    Opt, Scope, Section, TimeNs, Word, choice, count, percent, simulated, switch, time, time_us, word, words,
};
use crate::value::Choice;
use trueio_model::SimulatedDevice;

const ENGINES: &[Choice] = &[
    choice("psync", &[], "pread and pwrite; one I/O at a time"),
    choice("sync", &[], "lseek where the position is another, then read and write; one I/O at a time"),
    choice("vsync", &[], "as sync, by readv and writev; one I/O at a time"),
    choice("pvsync", &[], "preadv and pwritev; one I/O at a time"),
    choice("pvsync2", &[], "preadv2 and pwritev2, with RWF flags; one I/O at a time"),
    choice("libaio", &["aio", "linuxaio"], "Linux native asynchronous I/O; asynchronous only with direct I/O"),
    choice("io_uring", &[], "io_uring, with registered buffers and files"),
    choice("mmap", &[], "copies to and from a mapping; one at a time"),
    choice("splice", &[], "splice and vmsplice through a pipe; one at a time"),
    choice("posixaio", &[], "a queue on threads that call pread and pwrite, as glibc's POSIX asynchronous I/O is"),
    choice(
        "falloc",
        &[],
        "fallocate: reads allocate and keep the file's length, writes lengthen it, trims punch holes",
    ),
    choice("ftruncate", &[], "ftruncate to the place where the write would begin; nothing behind its region is cut"),
    choice("filecreate", &[], "makes `nrfiles` files in a directory of its own; no data"),
    choice("filestat", &[], "asks about `nrfiles` files that were made before; no data"),
    choice("filedelete", &[], "removes `nrfiles` files that were made before; no data"),
    choice("dircreate", &[], "makes `nrfiles` directories; no data"),
    choice("dirstat", &[], "asks about `nrfiles` directories; no data"),
    choice("dirdelete", &[], "removes `nrfiles` directories; no data"),
    choice("cpuio", &[], "no I/O: keeps a processor busy while other jobs measure (`cpuload`)"),
    choice("exec", &[], "no I/O: runs another program while other jobs measure (`program`), if that was allowed"),
    choice("null", &[], "no I/O at all: what is left is the cost of the tool"),
    choice("simulated", &[], "a modelled disk in virtual time: exact and repeatable"),
];

const CPU_MODE: &[Choice] = &[
    choice("noop", &[], "multiplies numbers: the processor's core is busy, and nothing else"),
    choice("qsort", &[], "sorts 65,536 numbers, up and down: caches are used, too"),
];

crate::option::rows! {
    Section::Engine;

    pub const IOENGINE: Opt<Option<Word>> = word("ioengine", ENGINES)
        .unset("io_uring where it works; else libaio for a queue, psync or pvsync2 for one I/O")
        .scope(&[Scope::WithoutIo])
        .summary("How I/O is handed to the kernel");

    pub const COMMAND: Opt<Option<Vec<String>>> = words("command")
        .unset("an engine of this program does the I/O")
        .unit("words")
        .not_in_fio()
        .scope(&[Scope::WithCommand])
        .summary("Another program that does the job's I/O in place of an engine (studies only)")
        .detail("`dd if=/dev/zero of={file} bs={bs} count={count} conv=notrunc`: `{file}` becomes the path of \
                 the job's file, `{bs}`, `{size}` and `{count}` numbers. It is timed from its start to its end, \
                 with the sync calls that the job asks for at its end, and watched as an engine is; what it \
                 does within is not seen. `verify = \"pattern\"` reads back what it should have written. A job \
                 file cannot start a program: only a study can.");

    pub const IODEPTH: Opt<u32> = count("iodepth", 1, 32_768)
        .default("1")
        .unit("I/Os")
        .summary("I/Os that each worker keeps in flight")
        .detail("Engines that block hold one; the plan refuses more, and never lowers it in silence.");

    pub const IODEPTH_BATCH: Opt<Option<u32>> = count("iodepth_batch", 1, 32_768)
        .unset("adapted to the device's latency, so that batching does not lengthen it")
        .unit("I/Os")
        .fio_names(&["iodepth_batch_submit"])
        .summary("I/Os handed over in one submission")
        .detail("At most `iodepth`. fio's default is 1.");

    pub const IODEPTH_BATCH_COMPLETE_MIN: Opt<u32> = count("iodepth_batch_complete_min", 1, 32_768)
        .default("1")
        .unit("I/Os")
        .fio_names(&["iodepth_batch_complete"])
        .summary("Completions waited for at least when the queue is full");

    pub const IODEPTH_BATCH_COMPLETE_MAX: Opt<u32> = count("iodepth_batch_complete_max", 0, 32_768)
        .default("0")
        .unit("I/Os")
        .summary("Completions taken at most in one go; 0: all that are there");

    pub const IODEPTH_LOW: Opt<Option<u32>> = count("iodepth_low", 1, 32_768)
        .unset("it is refilled as soon as there is room")
        .unit("I/Os")
        .summary("Once the queue is full, nothing is issued until so few I/Os are in flight")
        .detail("The depth then swings between this and `iodepth`.");

    pub const SERIALIZE_OVERLAP: Opt<bool> = switch("serialize_overlap")
        .summary("An I/O that overlaps one in flight waits for it, unless both just read")
        .detail("Within a worker. fio lets reads wait for reads, too.");

    pub const NUMJOBS: Opt<u32> = count("numjobs", 1, 4096)
        .default("1")
        .unit("threads")
        .scope(&[Scope::WithoutIo])
        .summary("Workers (threads) that do the same to the same files")
        .detail("They share the job's files and differ in their seeds. fio gives each clone files of its own \
                 unless `filename` is said.");

    pub const FIXEDBUFS: Opt<bool> = switch("fixedbufs")
        .default("true")
        .summary("Buffers are registered with the ring (io_uring)")
        .detail("fio's default is false. The record says if the kernel refused.");

    pub const REGISTERFILES: Opt<bool> = switch("registerfiles")
        .default("true")
        .summary("Files are registered with the ring (io_uring)")
        .detail("fio's default is false.");

    pub const SQTHREAD_POLL: Opt<bool> = switch("sqthread_poll")
        .summary("A kernel thread polls the submission queue (io_uring)")
        .detail("It takes a processor for itself, so a plan with fewer than two processors a worker is refused.");

    pub const SQTHREAD_POLL_CPU: Opt<Option<u32>> = count("sqthread_poll_cpu", 0, 8191)
        .unset("any")
        .unit("processor")
        .summary("The processor of the kernel thread of `sqthread_poll`");

    pub const FORCE_ASYNC: Opt<u32> = count("force_async", 0, u32::MAX as u64)
        .default("0")
        .unit("I/Os")
        .summary("Every so manyth transfer is given to the kernel's own threads at once (io_uring: IOSQE_ASYNC)");

    pub const NONVECTORED: Opt<bool> = switch("nonvectored")
        .default("true")
        .summary("Transfers are READ and WRITE; without it READV and WRITEV with one piece (io_uring)")
        .detail("With `fixedbufs` they are READ_FIXED and WRITE_FIXED in either case.");

    pub const DRAIN: Opt<bool> = switch("drain")
        .not_in_fio()
        .summary("Each I/O begins when all before it have completed (io_uring: IOSQE_IO_DRAIN)")
        .detail("The queue is filled all the same, and the kernel works through it one by one. Not beside `hipri`.");

    pub const HIPRI: Opt<bool> = switch("hipri")
        .summary("Completions are polled for (io_uring: IOPOLL; pvsync2: RWF_HIPRI)")
        .detail("Needs direct I/O, and becomes `direct = \"require\"` if nothing was said.");

    pub const HIPRI_PERCENTAGE: Opt<u64> = percent("hipri_percentage")
        .default("100")
        .unit("percent")
        .summary("Of how many I/Os `hipri` polls for the completion (pvsync2)")
        .detail("Drawn at random. A ring of io_uring polls for all completions or for none.");

    pub const PROGRAM: Opt<Option<Vec<String>>> = words("program")
        .unset("must be said for `exec`")
        .unit("words")
        .scope(&[Scope::WithoutIo])
        .summary("The program that `exec` runs, with its arguments")
        .detail("Ends the job when it ends, and is ended with the job's `runtime`. A job file alone starts \
                 none: only `trueio fio --allow-exec` does, where arguments stand in `arguments`.");

    pub const GRACE_TIME: Opt<TimeNs> = time("grace_time")
        .default("1s")
        .unit("time")
        .scope(&[Scope::WithoutIo])
        .summary("How long the program of `exec` may take to end before it is killed");

    pub const STD_REDIRECT: Opt<bool> = switch("std_redirect")
        .default("true")
        .scope(&[Scope::WithoutIo])
        .summary("What the program of `exec` prints goes to `JOB.stdout` and `JOB.stderr` in the working directory")
        .detail("Otherwise to the standard error of this program.");

    pub const CPULOAD: Opt<Option<u64>> = count("cpuload", 1, 100)
        .unset("must be said for `cpuio`")
        .unit("percent")
        .scope(&[Scope::WithoutIo])
        .summary("The share of its time for which `cpuio` keeps a processor busy");

    pub const CPUCHUNKS: Opt<TimeNs> = time_us("cpuchunks")
        .default("50ms")
        .unit("time (bare: µs)")
        .scope(&[Scope::WithoutIo])
        .summary("Length of a busy span of `cpuio`");

    pub const CPUMODE: Opt<Word> = word("cpumode", CPU_MODE)
        .default("noop")
        .scope(&[Scope::WithoutIo])
        .summary("What `cpuio` does while it is busy");

    pub const EXIT_ON_IO_DONE: Opt<bool> = switch("exit_on_io_done")
        .scope(&[Scope::WithoutIo])
        .summary("`cpuio` ends when all jobs beside it that do I/O have ended")
        .detail("Then it needs no `runtime`. Jobs that wait for it are not waited for.");

    pub const SIMULATED: Opt<SimulatedDevice> = simulated("simulated")
        .default("service=100us,channels=1")
        .unit("model")
        .not_in_fio()
        .summary("The modelled disk of the `simulated` engine")
        .detail("`service`: time of one I/O. `channels`: how many are served at once. `stall=BEGIN+LENGTH`: a \
                 span of virtual time in which nothing is served. `slow=BEGIN*FACTOR`: from then on an I/O \
                 takes FACTOR times as long. `fail=N`: the I/O that fails, from 0. The last three may be \
                 repeated.");
}
