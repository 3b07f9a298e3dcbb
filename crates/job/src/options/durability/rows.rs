//! Options of section `durability`: the page cache and durability.

use crate::option::{Opt, Scope, Section, Word, choice, count, range_sync, switch, word};
use crate::value::Choice;
use trueio_model::RangeSync;

const DIRECT_WORDS: &[Choice] = &[
    choice("require", &["1", "true"], "direct or not at all: refused where it cannot be had"),
    choice("prefer", &[], "direct where it can be had; the record says what was granted"),
    choice("off", &["0", "false"], "through the page cache"),
];

const SYNC_WORDS: &[Choice] = &[
    choice("none", &["0", "false"], "none"),
    choice("dsync", &[], "O_DSYNC: the data, and what is needed to read it back"),
    choice("sync", &["1", "true"], "O_SYNC: the data and all of the file's metadata"),
];

const INVALIDATE_WORDS: &[Choice] = &[
    choice("off", &["0", "false"], "never"),
    choice("start", &["1", "true"], "before the measured part"),
    choice("each_pass", &[], "also where a pass over a file ends and the next begins, if the job is buffered"),
];

const STAT: &[Choice] =
    &[choice("statx", &[], "statx(2)"), choice("stat", &[], "stat(2)"), choice("lstat", &[], "lstat(2)")];

const ADVICE: &[Choice] = &[
    choice("none", &["0", "false"], "nothing"),
    choice("pattern", &["1", "true"], "`random` for random jobs, `sequential` for the others"),
    choice("random", &[], "in no order: no read-ahead"),
    choice("sequential", &[], "in order: twice the read-ahead"),
    choice("noreuse", &[], "once: the pages need not be kept"),
];

crate::option::rows! {
    Section::Durability;

    pub const DIRECT: Opt<Word> = word("direct", DIRECT_WORDS)
        .default("prefer")
        .summary("Past the page cache, or through it")
        .detail("fio's `direct=1` is `require`, `direct=0` is `off`; fio's default is off. With `prefer`, a \
                 block size that direct I/O cannot transfer makes the plan fall back to the page cache and say \
                 so.");

    pub const SYNC: Opt<Word> = word("sync", SYNC_WORDS)
        .default("none")
        .scope(&[Scope::Writes])
        .summary("Open flags that make each write durable before it returns");

    pub const FSYNC: Opt<u64> = count("fsync", 0, u64::MAX)
        .default("0")
        .unit("writes")
        .scope(&[Scope::Measured, Scope::Writes])
        .summary("`fsync` after every so many writes; 0: never")
        .detail("Not beside `fdatasync`: a job makes one kind of sync call.");

    pub const FDATASYNC: Opt<u64> = count("fdatasync", 0, u64::MAX)
        .default("0")
        .unit("writes")
        .scope(&[Scope::Measured, Scope::Writes])
        .summary("`fdatasync` after every so many writes; 0: never");

    pub const END_FSYNC: Opt<bool> = switch("end_fsync")
        .scope(&[Scope::Measured, Scope::WithCommand, Scope::Writes])
        .summary("`fsync` once at the end, inside the measured time");

    pub const END_FDATASYNC: Opt<bool> = switch("end_fdatasync")
        .not_in_fio()
        .scope(&[Scope::Measured, Scope::WithCommand, Scope::Writes])
        .summary("`fdatasync` once at the end, inside the measured time")
        .detail("Not beside `end_fsync` or `fsync_on_close`, which include what it does.");

    pub const FSYNC_ON_CLOSE: Opt<bool> = switch("fsync_on_close")
        .scope(&[Scope::Measured, Scope::WithCommand, Scope::Writes])
        .summary("`fsync` of each file before it is closed, inside the measured time")
        .detail("Files are closed when the job has ended, so beside `end_fsync` it adds nothing. fio makes \
                 these calls after the time that it reports.");

    pub const SYNC_FILE_RANGE: Opt<Option<RangeSync>> = range_sync("sync_file_range")
        .unset("never")
        .unit("writes")
        .scope(&[Scope::Measured, Scope::Writes])
        .summary("`sync_file_range` on what was written since the last call, after every so many writes")
        .detail("It has the kernel write out pages, or waits for them, and makes nothing durable: the disk's \
                 cache and the file's metadata stay as they are. Its calls are counted as sync calls are, and \
                 no evidence takes them for one. Not beside `fsync` or `fdatasync`.");

    pub const RWF_DSYNC: Opt<bool> = switch("rwf_dsync")
        .not_in_fio()
        .scope(&[Scope::Writes])
        .summary("Each write carries RWF_DSYNC (pvsync2, libaio, io_uring)")
        .detail("On a device with FUA the write itself is durable and no flush is sent.");

    pub const UNCACHED: Opt<bool> = switch("uncached")
        .summary("Each I/O carries RWF_DONTCACHE (pvsync2, libaio, io_uring)")
        .detail("Through the page cache, and the pages are dropped afterwards. Linux 6.14. Excludes direct I/O, \
                 and becomes `direct = \"off\"` if nothing was said.");

    pub const NOWAIT: Opt<bool> = switch("nowait")
        .summary("Each I/O carries RWF_NOWAIT (pvsync2, libaio, io_uring): one that would have to wait fails")
        .detail("With EAGAIN (the data is not cached, a lock is held, blocks would be allocated, no request is \
                 free), which ends the job; `continue_on_error = \"all\"` counts such I/Os as failed and goes \
                 on. Not every filesystem takes it for buffered writes.");

    pub const ATOMIC: Opt<bool> = switch("atomic")
        .scope(&[Scope::Writes])
        .summary("Each write carries RWF_ATOMIC (pvsync2, libaio, io_uring)")
        .detail("All or nothing across a power cut. Linux 6.11. Needs direct I/O, and becomes `direct = \
                 \"require\"` if nothing was said.");

    pub const INVALIDATE: Opt<Word> = word("invalidate", INVALIDATE_WORDS)
        .default("start")
        .scope(&[Scope::WithCommand])
        .summary("When the files' cached pages are dropped")
        .detail("fio's `invalidate=1` is `each_pass`.");

    pub const STAT_TYPE: Opt<Word> = word("stat_type", STAT)
        .default("statx")
        .summary("The call by which `filestat` and `dirstat` ask about names")
        .detail("fio's default is `stat`.");

    pub const FADVISE_HINT: Opt<Word> = word("fadvise_hint", ADVICE)
        .default("none")
        .summary("What the kernel is told of the way the files will be used (posix_fadvise; madvise of a mapping)")
        .detail("It changes how far buffered reads are read ahead. fio's default is `pattern`.");

    pub const PRE_READ: Opt<bool> = switch("pre_read")
        .scope(&[Scope::Measured])
        .summary("The files are read into the page cache before the measured part")
        .detail("For measuring the cache on purpose, or for telling what it does to a measurement. Reads that \
                 it then serves are contradicted by the disk's counters, unless `--accept` names those checks. \
                 What does not fit into memory does not stay there.");
}
