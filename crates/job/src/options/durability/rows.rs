//! Options of section `durability`: the page cache and durability.

use crate::option::{Opt, Scope, Section, count, range_sync, switch, word};
use trueio_model::{DirectPolicy, RangeSync, StatCall, SyncMode, WriteHint};

crate::option::words_of! {
    impl DirectPolicy {
        Self::Require => "require", ["1", "true"], "direct I/O only: refused if it is not supported";
        Self::Prefer => "prefer", [], "direct if supported; the record shows what was granted";
        Self::Off => "off", ["0", "false"], "through the page cache";
    }
}

crate::option::words_of! {
    impl SyncMode {
        Self::None => "none", ["0", "false"], "none";
        Self::Dsync => "dsync", [], "O_DSYNC: the data, and the metadata that is needed to read it";
        Self::Sync => "sync", ["1", "true"], "O_SYNC: the data and all of the file's metadata";
    }
}

crate::option::words_of! {
    /// The times at which cached pages are dropped.
    pub enum Invalidate {
        Off => "off", ["0", "false"], "never";
        Start => "start", ["1", "true"], "before the measured part";
        EachPass => "each_pass", [], "also between two passes over a file, if the job is buffered";
    }
}

crate::option::words_of! {
    impl StatCall {
        Self::Statx => "statx", [], "statx(2)";
        Self::Stat => "stat", [], "stat(2)";
        Self::Lstat => "lstat", [], "lstat(2)";
    }
}

crate::option::words_of! {
    /// The access pattern that the kernel is advised of.
    pub enum AccessHint {
        None => "none", ["0", "false"], "nothing";
        Pattern => "pattern", ["1", "true"], "`random` for random jobs, `sequential` for the others";
        Random => "random", [], "random access: no read-ahead";
        Sequential => "sequential", [], "sequential access: twice the read-ahead";
        Noreuse => "noreuse", [], "single access: the pages need not be kept";
    }
}

crate::option::words_of! {
    impl WriteHint {
        Self::Unchanged => "unchanged", [], "the hint that the file has";
        Self::None => "none", [], "no lifetime of its own";
        Self::Short => "short", [], "short";
        Self::Medium => "medium", [], "medium";
        Self::Long => "long", [], "long";
        Self::Extreme => "extreme", [], "extremely long";
    }
}

crate::option::rows! {
    Section::Durability;

    pub const DIRECT: Opt<DirectPolicy> = word("direct")
        .default("prefer")
        .fio_default("off")
        .summary("Direct I/O, or I/O through the page cache")
        .detail("fio's `direct=1` is `require`, `direct=0` is `off`; fio's default is off. With `prefer`, a \
                 block size that direct I/O cannot transfer makes the plan fall back to the page cache, with a \
                 note.");

    pub const SYNC: Opt<SyncMode> = word("sync")
        .default("none")
        .scope(&[Scope::Writes])
        .summary("Open flags that make each write durable before it returns")
        .detail("`mmap`, to which open flags do not apply, calls `msync(MS_SYNC)` after each I/O and unmaps its pages, \
                 as fio does with `direct=1`.");

    pub const FSYNC: Opt<u64> = count("fsync", 0, u64::MAX)
        .default("0")
        .unit("writes")
        .scope(&[Scope::Measured, Scope::Writes])
        .summary("`fsync` after every N writes; 0: never")
        .detail("Where `fdatasync` or `sync_file_range` are due after the same write, only this call is made.");

    pub const FDATASYNC: Opt<u64> = count("fdatasync", 0, u64::MAX)
        .default("0")
        .unit("writes")
        .scope(&[Scope::Measured, Scope::Writes])
        .summary("`fdatasync` after every N writes; 0: never");

    pub const END_FSYNC: Opt<bool> = switch("end_fsync")
        .scope(&[Scope::Measured, Scope::WithCommand, Scope::Writes])
        .summary("`fsync` once at the end, inside the measured time")
        .detail("Metadata engines with `name_directory` call `syncfs` on its filesystem instead.");

    pub const END_FDATASYNC: Opt<bool> = switch("end_fdatasync")
        .not_in_fio()
        .scope(&[Scope::Measured, Scope::WithCommand, Scope::Writes])
        .summary("`fdatasync` once at the end, inside the measured time")
        .detail("Cannot be combined with `end_fsync` or `fsync_on_close`, which include it.");

    pub const FSYNC_ON_CLOSE: Opt<bool> = switch("fsync_on_close")
        .scope(&[Scope::Measured, Scope::WithCommand, Scope::Writes])
        .summary("`fsync` of each file before it is closed, inside the measured time")
        .detail("Files are closed when the job has ended, so with `end_fsync` it adds nothing. fio makes these \
                 calls after the time that it reports.");

    pub const SYNC_FILE_RANGE: Opt<Option<RangeSync>> = range_sync("sync_file_range")
        .unset("never")
        .unit("writes")
        .scope(&[Scope::Measured, Scope::Writes])
        .summary("`sync_file_range` on the data written since the last call, after every N writes")
        .detail("It makes the kernel write out pages, or waits for them, and makes nothing durable: the disk's \
                 cache and the file's metadata are not flushed. Its calls are counted as sync calls, but the \
                 evidence does not treat them as such. Where `fsync` or `fdatasync` is due, too, only that is called.");

    pub const RWF_DSYNC: Opt<bool> = switch("rwf_dsync")
        .not_in_fio()
        .scope(&[Scope::Writes])
        .summary("Each write carries RWF_DSYNC (pvsync2, libaio, io_uring)")
        .detail("On a device with FUA the write itself is durable and no flush is sent.");

    pub const UNCACHED: Opt<bool> = switch("uncached")
        .fio_engines(&["io_uring", "pvsync2", "libaio"])
        .summary("Each I/O carries RWF_DONTCACHE (pvsync2, libaio, io_uring)")
        .detail("Through the page cache, and the pages are dropped afterwards. Linux 6.14. Excludes direct \
                 I/O, and sets `direct = \"off\"` unless `direct` is set.");

    pub const NOWAIT: Opt<bool> = switch("nowait")
        .fio_engines(&["io_uring", "pvsync2", "libaio"])
        .summary("Each I/O carries RWF_NOWAIT (pvsync2, libaio, io_uring): one that would have to wait fails")
        .detail("With EAGAIN (the data is not cached, a lock is held, blocks would be allocated, no request is \
                 free), which ends the job; `continue_on_error = \"all\"` counts such I/Os as failed and \
                 continues. Not every filesystem supports it for buffered writes.");

    pub const ATOMIC: Opt<bool> = switch("atomic")
        .scope(&[Scope::Writes])
        .fio_engines(&["io_uring", "pvsync2", "libaio"])
        .summary("Each write carries RWF_ATOMIC (pvsync2, libaio, io_uring)")
        .detail("All or nothing across a power cut. Linux 6.11. Needs direct I/O, and sets `direct = \
                 \"require\"` unless `direct` is set.");

    pub const INVALIDATE: Opt<Invalidate> = word("invalidate")
        .default("start")
        .scope(&[Scope::WithCommand])
        .fio_default("each_pass")
        .summary("The times at which the files' cached pages are dropped")
        .detail("fio's `invalidate=1` is `each_pass`.");

    pub const STAT_TYPE: Opt<StatCall> = word("stat_type")
        .default("statx")
        .fio_default_conditional("stat")
        .fio_engines(&["filestat", "dirstat"])
        .summary("The call that `filestat` and `dirstat` make");

    pub const FADVISE_HINT: Opt<AccessHint> = word("fadvise_hint")
        .default("none")
        .fio_default("pattern")
        .summary("Advice to the kernel about the use of the files (posix_fadvise; madvise of a mapping)")
        .detail("It changes the read-ahead of buffered reads. fio's default is `pattern`.");

    pub const WRITE_HINT: Opt<WriteHint> = word("write_hint")
        .default("unchanged")
        .scope(&[Scope::Writes])
        .summary("Expected lifetime of what is written (fcntl, `F_SET_RW_HINT`)")
        .detail("The kernel keeps it with the file and passes it on to disks that accept hints.");

    pub const PRE_READ: Opt<bool> = switch("pre_read")
        .scope(&[Scope::Measured])
        .summary("The files are read into the page cache before the measured part")
        .detail("For measuring the cache deliberately, or its effect on a measurement. The disk's counters \
                 contradict reads from the cache, unless `--accept` names those checks. Data that does not fit \
                 into memory does not stay there.");
}
