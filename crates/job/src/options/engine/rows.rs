//! Options of section `engine`: the I/O engine and its queue.

use crate::option::{
    FioUse, Opt, Scope, Section, TimeNs, count, flag, percent, simulated, switch, time, time_us, word, words,
};
use trueio_model::{EngineKind, SimulatedDevice};

crate::option::words_of! {
    impl EngineKind {
        Self::Psync => Self::Psync.name(), [], "pread and pwrite; one I/O at a time";
        Self::Sync => Self::Sync.name(), [], "lseek if the position differs, then read and write; one I/O at a time";
        Self::Vsync => Self::Vsync.name(), [], "as sync, with readv and writev; one I/O at a time";
        Self::Pvsync => Self::Pvsync.name(), [], "preadv and pwritev; one I/O at a time";
        Self::Pvsync2 => Self::Pvsync2.name(), [], "preadv2 and pwritev2, with RWF flags; one I/O at a time";
        Self::Libaio => Self::Libaio.name(), ["aio", "linuxaio"], "Linux native asynchronous I/O; asynchronous only with direct I/O";
        Self::IoUring => Self::IoUring.name(), [], "io_uring, with registered buffers and files";
        Self::Mmap => Self::Mmap.name(), [], "copies to and from a mapping; one at a time";
        Self::Splice => Self::Splice.name(), [], "splice and vmsplice through a pipe; one at a time";
        Self::PageFault => Self::PageFault.name(), [], "copies to and from new anonymous memory: how fast the kernel provides pages";
        Self::Posixaio => Self::Posixaio.name(), [], "a queue on threads that call pread and pwrite, like glibc's POSIX asynchronous I/O";
        Self::Falloc => Self::Falloc.name(), [], "fallocate: reads allocate and keep the file's length, writes extend it, trims punch holes";
        Self::Ftruncate => Self::Ftruncate.name(), [], "ftruncate to the offset of each write; data beyond its region is never truncated";
        Self::E4defrag => Self::E4defrag.name(), [], "exchanges the blocks of an ext4 file for new ones, as defragmenting does; its content stays";
        Self::Filecreate => Self::Filecreate.name(), [], "creates `nrfiles` files in a separate directory; no data";
        Self::Filestat => Self::Filestat.name(), [], "calls stat on `nrfiles` files that were created before; no data";
        Self::Fileread => Self::Fileread.name(), [], "opens, reads and closes `nrfiles` files that were created before (`name_bytes`)";
        Self::Filedelete => Self::Filedelete.name(), [], "removes `nrfiles` files that were created before; no data";
        Self::Dircreate => Self::Dircreate.name(), [], "creates `nrfiles` directories; no data";
        Self::Dirstat => Self::Dirstat.name(), [], "calls stat on `nrfiles` directories; no data";
        Self::Dirdelete => Self::Dirdelete.name(), [], "removes `nrfiles` directories; no data";
        Self::Cpuio => Self::Cpuio.name(), [], "no I/O: keeps a processor busy while other jobs measure (`cpuload`)";
        Self::Exec => Self::Exec.name(), [], "no I/O: runs another program while other jobs measure (`program`), if permitted";
        Self::Uas => Self::Uas.name(), [], "a USB disk, driven with UAS in user space, for kernels without that driver (`filename = \"usb:2-1\"`)";
        Self::Null => Self::Null.name(), [], "no I/O: the remaining cost is that of the tool";
        Self::Simulated => Self::Simulated.name(), [], "a simulated disk in virtual time: exact and repeatable";
    }
}

crate::option::words_of! {
    /// The work of `cpuio`.
    pub enum CpuMode {
        Noop => "noop", [], "multiplies numbers: only the processor's core is busy";
        Qsort => "qsort", [], "sorts 65,536 numbers, ascending and descending: also uses caches";
    }
}

crate::option::rows! {
    Section::Engine;

    pub const IOENGINE: Opt<Option<EngineKind>> = word("ioengine")
        .unset("io_uring if it works; else libaio for a queue, psync or pvsync2 for one I/O")
        .scope(&[Scope::WithoutIo])
        .fio_rule("the engine, under any of fio's names; `psync` by default")
        .fio_default_conditional("psync")
        .summary("The engine that submits I/O");

    pub const COMMAND: Opt<Option<Vec<String>>> = words("command")
        .unset("an engine of this program does the I/O")
        .unit("words")
        .fio(FioUse::Absent)
        .scope(&[Scope::WithCommand])
        .summary("Another program that does the job's I/O instead of an engine (studies only)")
        .detail("`dd if=/dev/zero of={file} bs={bs} count={count} conv=notrunc`: `{file}` is replaced by the \
                 path of the job's file, `{bs}`, `{size}` and `{count}` by numbers. It is timed from its start \
                 to its end, with the final sync calls of the job, and observed like an engine; its internal \
                 calls are not observed. `verify = \"pattern\"` reads back the data that it should have \
                 written. A job file cannot start a program; only a study can.");

    pub const INPLACE: Opt<bool> = switch("inplace")
        .fio_engines(&["e4defrag"])
        .summary("`e4defrag` allocates the new blocks just before each I/O, and frees the old ones after it")
        .detail("Otherwise as many blocks as the region has are allocated before the first I/O.");

    pub const IODEPTH: Opt<u32> = count("iodepth", 1, 32_768)
        .default("1")
        .unit("I/Os")
        .fio_rule("the queue depth; 1 with an engine that blocks, with a note, as in fio")
        .summary("I/Os that each worker keeps in flight")
        .detail("Blocking engines keep one; the plan refuses more, and never lowers it silently.");

    pub const IODEPTH_BATCH: Opt<Option<u32>> = count("iodepth_batch", 1, 32_768)
        .unset("adapted to the device's latency, so that batching does not increase it")
        .unit("I/Os")
        .fio_names(&["iodepth_batch_submit"])
        .fio_rule("at most `iodepth`; 0: `iodepth`")
        .fio_default_conditional("1")
        .summary("I/Os per submission")
        .detail("At most `iodepth`.");

    pub const IODEPTH_BATCH_COMPLETE_MIN: Opt<u32> = count("iodepth_batch_complete_min", 1, 32_768)
        .default("1")
        .unit("I/Os")
        .fio_names(&["iodepth_batch_complete"])
        .fio_rule("at most `iodepth`; 0 (polling) waits for one completion")
        .summary("Minimum number of completions to wait for when the queue is full");

    pub const IODEPTH_BATCH_COMPLETE_MAX: Opt<u32> = count("iodepth_batch_complete_max", 0, 32_768)
        .default("0")
        .unit("I/Os")
        .summary("Maximum number of completions per reap; 0: all available ones");

    pub const IODEPTH_LOW: Opt<Option<u32>> = count("iodepth_low", 1, 32_768)
        .unset("the queue is refilled as soon as there is room")
        .unit("I/Os")
        .fio_rule("0, or more than `iodepth`: `iodepth`, as in fio")
        .summary("Once the queue is full, nothing is issued until only this many I/Os are in flight")
        .detail("The depth then varies between this and `iodepth`.");

    pub const SERIALIZE_OVERLAP: Opt<bool> = switch("serialize_overlap")
        .summary("An I/O that overlaps one in flight waits for it, unless both are reads")
        .detail("Within a worker. fio lets reads wait for reads, too.");

    pub const NUMJOBS: Opt<u32> = count("numjobs", 1, 4096)
        .default("1")
        .unit("threads")
        .scope(&[Scope::WithoutIo])
        .fio_rule("number of clones, each a job with files and a seed of its own, unless `filename` names the files")
        .summary("Workers (threads) with the same load on the same files")
        .detail("They share the job's files and have different seeds. In fio each clone has its own files \
                 unless `filename` is set.");

    pub const FIXEDBUFS: Opt<bool> = flag("fixedbufs")
        .default("true")
        .fio_default("false")
        .fio_engines(&["io_uring"])
        .summary("Buffers are registered with the ring (io_uring)")
        .detail("fio's default is false. The record shows whether the kernel refused.");

    pub const REGISTERFILES: Opt<bool> = flag("registerfiles")
        .default("true")
        .fio_default("false")
        .fio_engines(&["io_uring"])
        .summary("Files are registered with the ring (io_uring)");

    pub const SQTHREAD_POLL: Opt<bool> = flag("sqthread_poll")
        .fio_engines(&["io_uring"])
        .summary("A kernel thread polls the submission queue (io_uring)")
        .detail("It occupies a processor. With fewer than two processors per worker the workers are slowed down, and a note \
                 states that.");

    pub const SQTHREAD_POLL_CPU: Opt<Option<u32>> = count("sqthread_poll_cpu", 0, 8191)
        .unset("any")
        .unit("processor")
        .fio_engines(&["io_uring"])
        .summary("The processor of the kernel thread of `sqthread_poll`");

    pub const FORCE_ASYNC: Opt<u32> = count("force_async", 0, u32::MAX as u64)
        .default("0")
        .unit("I/Os")
        .fio_engines(&["io_uring"])
        .summary("Every Nth I/O is submitted with `IOSQE_ASYNC`, so that a kernel thread does it (io_uring)");

    pub const NONVECTORED: Opt<bool> = switch("nonvectored")
        .default("true")
        .fio_engines(&["io_uring"])
        .summary("Transfers use READ and WRITE instead of READV and WRITEV with one piece (io_uring)")
        .detail("With `fixedbufs` they are READ_FIXED and WRITE_FIXED in either case.");

    pub const DRAIN: Opt<bool> = switch("drain")
        .not_in_fio()
        .summary("Each I/O starts when all before it have completed (io_uring: IOSQE_IO_DRAIN)")
        .detail("The queue is filled nevertheless, and the kernel processes it one I/O at a time. Cannot be \
                 combined with `hipri`.");

    pub const HIPRI: Opt<bool> = flag("hipri")
        .fio_engines(&["io_uring", "pvsync2"])
        .summary("Completions are polled (io_uring: IOPOLL; pvsync2: RWF_HIPRI)")
        .detail("Needs direct I/O, and sets `direct = \"require\"` unless `direct` is set.");

    pub const HIPRI_PERCENTAGE: Opt<u64> = percent("hipri_percentage")
        .default("100")
        .unit("percent")
        .fio_engines(&["pvsync2"])
        .summary("The share of I/Os whose completion `hipri` polls (pvsync2)")
        .detail("Drawn at random. An io_uring polls for all completions or for none.");

    pub const PROGRAM: Opt<Option<Vec<String>>> = words("program")
        .unset("required for `exec`")
        .unit("words")
        .scope(&[Scope::WithoutIo])
        .fio_rule("the program that `ioengine=exec` runs, only with `--allow-exec`; the job ends when it ends, and its failure fails the run")
        .fio_engines(&["exec"])
        .summary("The program that `exec` runs, with its arguments")
        .detail("The job ends when it ends, and it is ended at the job's `runtime`. A job file alone cannot \
                 start it: only `trueio fio --allow-exec` does, with its arguments in `arguments`.");

    pub const GRACE_TIME: Opt<TimeNs> = time("grace_time")
        .default("1s")
        .unit("time")
        .scope(&[Scope::WithoutIo])
        .fio_rule("seconds that `program` may take to end before it is killed")
        .fio_engines(&["exec"])
        .summary("Time for the program of `exec` to end before it is killed");

    pub const STD_REDIRECT: Opt<bool> = switch("std_redirect")
        .default("true")
        .scope(&[Scope::WithoutIo])
        .fio_engines(&["exec"])
        .summary("The output of the program of `exec` goes to `JOB.stdout` and `JOB.stderr` in the working \
                  directory")
        .detail("Otherwise to the standard error of this program.");

    pub const CPULOAD: Opt<Option<u64>> = count("cpuload", 1, 100)
        .unset("required for `cpuio`")
        .unit("percent")
        .scope(&[Scope::WithoutIo])
        .fio_engines(&["cpuio"])
        .summary("The share of its time for which `cpuio` keeps a processor busy");

    pub const CPUCHUNKS: Opt<TimeNs> = time_us("cpuchunks")
        .default("50ms")
        .unit("time (bare: µs)")
        .scope(&[Scope::WithoutIo])
        .fio_engines(&["cpuio"])
        .summary("Length of a busy span of `cpuio`");

    pub const CPUMODE: Opt<CpuMode> = word("cpumode")
        .default("noop")
        .scope(&[Scope::WithoutIo])
        .fio_engines(&["cpuio"])
        .summary("The work of `cpuio` while it is busy");

    pub const EXIT_ON_IO_DONE: Opt<bool> = switch("exit_on_io_done")
        .scope(&[Scope::WithoutIo])
        .fio_engines(&["cpuio"])
        .summary("`cpuio` ends when all parallel jobs that do I/O have ended")
        .detail("Then it needs no `runtime`. Jobs that wait for it are not waited for.");

    pub const SIMULATED: Opt<SimulatedDevice> = simulated("simulated")
        .default("service=100us,channels=1")
        .unit("model")
        .not_in_fio()
        .summary("The simulated disk of the `simulated` engine")
        .detail("`service`: time of one I/O. `channels`: number of I/Os that are served at once. \
                 `stall=BEGIN+LENGTH`: a span of virtual time in which nothing is served. `slow=BEGIN*FACTOR`: \
                 from then on an I/O takes FACTOR times as long. `fail=N`: the I/O that fails, from 0. The \
                 last three may be repeated.");
}
