//! Options of section `target`: files and devices.

use crate::option::{
    Opt, Scope, Section, Word, bytes, bytes_range, choice, count, extent, file_selection, names, path, paths, switch,
    word,
};
use crate::value::Choice;
use crate::value::Extent;
use trueio_model::FileSelection;

const FALLOCATE_WORDS: &[Choice] = &[
    choice("native", &["posix", "1", "true"], "space is allocated before the job, nothing is written to it"),
    choice("truncate", &[], "the file has its length before the job and is a hole: no space is allocated"),
    choice("keep", &[], "space is allocated before the job and the file stays empty: the job extends it"),
    choice("none", &["0", "false"], "the file is created empty and the job extends it"),
];

const LOCKING: &[Choice] = &[
    choice("none", &[], "nobody waits for anybody"),
    choice("exclusive", &[], "one worker at a time does I/O on a file"),
    choice("readwrite", &[], "several may read at a time; who writes or trims is alone"),
];

const NAME_ACCOUNTING_WORDS: &[Choice] = &[
    choice("names", &[], "one name is one I/O without bytes"),
    choice(
        "blocks",
        &[],
        "a name is `filesize` bytes in I/Os of `bs`, of which the first does the work (as fio counts)",
    ),
];

crate::option::rows! {
    Section::Target;

    pub const FILENAME: Opt<Option<Vec<String>>> = paths("filename")
        .unset("files of its own, `trueio-JOB-N.dat`, under names that must not exist yet")
        .unit("paths")
        .scope(&[Scope::WithCommand, Scope::ByLog])
        .summary("The files or devices under test")
        .detail("Existing ones are used as they are: never truncated or removed, written only if \
                 `overwrite_existing` names them, and extended only if `extend_existing` does. One that does \
                 not exist is created, and removed at the end unless `unlink` is false. Several are separated \
                 by colons, or are a TOML list. All workers share them.");

    pub const DIRECTORY: Opt<Option<String>> = path("directory")
        .unset("the current directory")
        .unit("path")
        .scope(&[Scope::WithoutIo, Scope::WithCommand])
        .summary("The directory of the files")
        .detail("Stands before relative names in `filename` and before the names of generated files.");

    pub const EXTEND_EXISTING: Opt<Option<Vec<String>>> = paths("extend_existing")
        .unset("no existing file is made longer")
        .unit("paths")
        .not_in_fio()
        .summary("Existing files that may be made longer, if the job needs more than they hold")
        .detail("What they hold stays. What is added is prepared as a new file would be, and stays, too.");

    pub const FILE_APPEND: Opt<bool> = switch("file_append")
        .scope(&[Scope::ByLog])
        .summary("The region used begins where each file ends, and makes it longer by `size`")
        .detail("An existing file must be named in `overwrite_existing` and in `extend_existing`. Jobs that \
                 append to one file do so one behind the other, in the order of the jobs. A further pass \
                 (`loops`) goes over the same bytes again; fio ends after the first.");

    pub const OVERWRITE_EXISTING: Opt<Option<Vec<String>>> = paths("overwrite_existing")
        .unset("nothing that exists is written")
        .unit("paths")
        .not_in_fio()
        .scope(&[Scope::WithCommand])
        .summary("The existing files or devices that this job may destroy by writing or trimming")
        .detail("Each must be spelled exactly as the target is (`directory` and `filename` joined), so that \
                 destruction is always asked for by name.");

    pub const OVERWRITE_SIGNATURE: Opt<Option<Vec<String>>> = names("overwrite_signature")
        .unset("a device that carries a signature is not written")
        .unit("names")
        .not_in_fio()
        .scope(&[Scope::WithCommand])
        .summary("The signatures on block devices that this job may destroy: filesystems, RAID, LVM, partition \
                  tables")
        .detail("Each that is found must be named, as `blkid` and `wipefs` call it (`ext4`, `crypto_LUKS`, \
                 `gpt`, `dos` …), and each that is named must be found: a wrong name may mean the wrong device. \
                 The device is named in `overwrite_existing` besides. No name makes a mounted device writable.");

    pub const SIZE: Opt<Option<Extent>> = extent("size")
        .unset("the whole of an existing file or device; must be said for a new file")
        .unit("bytes, percent or zones")
        .scope(&[Scope::WithCommand, Scope::ByLog])
        .summary("How much of the files is used, all files together")
        .detail("Divided evenly over several files. A percentage is of each existing file or device. More than \
                 an existing file holds is refused; fio would rewrite the file.");

    pub const FILESIZE: Opt<Option<(u64, u64)>> = bytes_range("filesize")
        .unset("`size`, divided by the number of files")
        .unit("bytes")
        .scope(&[Scope::ByLog])
        .summary("How much of each single file is used")
        .detail("If it is given, `size` says how much each worker transfers at most: one pass over the files, \
                 unless `io_size` or `loops` say more. `4k-1m` draws each file's size by the job's seed, in \
                 whole blocks.");

    pub const NRFILES: Opt<u64> = count("nrfiles", 1, 65_536)
        .default("1")
        .unit("files")
        .fio_names(&["nr_files"])
        .scope(&[Scope::ByLog])
        .summary("How many files are generated")
        .detail("Only without `filename`. All workers share them (fio generates files for each clone).");

    pub const FILE_SERVICE_TYPE: Opt<FileSelection> = file_selection("file_service_type")
        .default("roundrobin")
        .unit("name and number")
        .scope(&[Scope::ByLog])
        .summary("Which of several files the next I/O goes to")
        .detail("`roundrobin`: each in turn. `sequential`: one after another, each to its end. `random`: all \
                 alike. A file whose pass is over waits for the others. A job that draws blocks again \
                 (`norandommap`, a `random_distribution`) has no passes, unless `openfiles` limits the files. \
                 `zipf:1.1`, `pareto:0.2`, `normal:20`: drawn by a distribution over 1024 places a file, in the \
                 files' order, as `random_distribution` has it for blocks; files wait for none. The most \
                 popular file is the one that the seed says, or that where a second number is, from 0 to 1 \
                 (`zipf:1.1:0.3`); those behind it come next. `normal` is around the middle of them; its \
                 deviation is in percent of all.");

    pub const FILE_SERVICE_IOS: Opt<u32> = count("file_service_ios", 1, 1 << 31)
        .default("1")
        .unit("I/Os")
        .not_in_fio()
        .scope(&[Scope::ByLog])
        .summary("I/Os to a file before the next one is chosen, unless its pass is over before")
        .detail("fio writes it behind `file_service_type`: `file_service_type=roundrobin:4`.");

    pub const OPENFILES: Opt<Option<u32>> = count("openfiles", 0, 65_536)
        .unset("all of them")
        .unit("files")
        .scope(&[Scope::ByLog])
        .summary("How many of several files are in use at a time; 0: all")
        .detail("The next file begins when the pass over one of them is over: for blocks that may come again, \
                 when as much as it holds was transferred. All stay open nevertheless, so that nothing is \
                 opened or closed between the I/Os; the limit of open files is raised as far as the system lets \
                 it, and a run that needs more ends before a file is made, with the number that it needs.");

    pub const OFFSET: Opt<Extent> = extent("offset")
        .default("0")
        .unit("bytes, percent or zones")
        .fio_names(&["fileoffset"])
        .scope(&[Scope::WithCommand, Scope::ByLog])
        .summary("Where the region used begins in each file")
        .detail("A percentage is of an existing file or device, rounded down to a whole block.");

    pub const OFFSET_ALIGN: Opt<Option<u64>> = bytes("offset_align")
        .unset("an `offset` in percent is rounded down to a whole block")
        .unit("bytes")
        .summary("What an `offset` in percent is rounded up to a multiple of; 0: the smallest block")
        .detail("fio rounds up to the smallest block if nothing is said, and so does `trueio fio`.");

    pub const OVERWRITE: Opt<bool> = switch("overwrite")
        .scope(&[Scope::WithCommand])
        .summary("A file created for a write job is filled first, so that the job overwrites")
        .detail("Without it, space is only allocated for jobs that just write, and the filesystem converts \
                 unwritten extents as it goes. Jobs that read or trim always get a really written file.");

    pub const FALLOCATE: Opt<Word> = word("fallocate", FALLOCATE_WORDS)
        .default("native")
        .scope(&[Scope::WithCommand])
        .summary("How space is prepared in a file created for a write job")
        .detail("`none` measures appending: each write extends the file, and `keep` measures it with the space \
                 there. `truncate` measures the first writing of a sparse file, allocation included.");

    pub const UNLINK: Opt<bool> = switch("unlink")
        .default("true")
        .scope(&[Scope::WithoutIo, Scope::WithCommand])
        .summary("Files that the run created are removed at its end, however it ends")
        .detail("fio keeps them. A file that existed before is never removed.");

    pub const LOCKFILE: Opt<Word> = word("lockfile", LOCKING)
        .default("none")
        .scope(&[Scope::Measured])
        .summary("Workers and jobs that run at the same time and share a file wait for each other's I/O on it")
        .detail("A file is locked from just before an I/O is issued until it has completed, among the jobs that \
                 say so. What a worker keeps in flight is one use of the file; it ends when others wait. \
                 Waiting is no part of the latency, but for jobs with a rate, whose latency counts from when \
                 the I/O was due.");

    pub const UNLINK_EACH_LOOP: Opt<bool> = switch("unlink_each_loop")
        .scope(&[Scope::Measured, Scope::ByLog])
        .summary("The files are removed before each further pass, and made again, empty")
        .detail("For files that the run creates, in jobs of one worker that only write: a further pass begins \
                 where `loops`, `io_size` or `time_based` go over the files again. What that costs is measured \
                 with the job.");

    pub const CREATE_ONLY: Opt<bool> = switch("create_only")
        .summary("The files are made ready as the job needs them, and no I/O is done")
        .detail("They stay only with `unlink = false`.");

    pub const CREATE_DIRECTORIES: Opt<bool> = switch("create_directories")
        .default("false")
        .not_in_fio()
        .summary("Missing directories of new files are created, with mode 0700")
        .detail("They stay after the run. The directory that `directory` names must exist. Without this option a \
                 missing directory is refused. fio creates directories, and so do jobs in fio's language.");

    pub const NAME_ACCOUNTING: Opt<Word> = word("name_accounting", NAME_ACCOUNTING_WORDS)
        .default("names")
        .not_in_fio()
        .summary("What the metadata engines (`filecreate`, `filestat`, `dirdelete`, …) count")
        .detail("Jobs in fio's language count blocks.");
}
