//! Options of section `target`: files and devices.

use crate::option::{
    FioUse, Opt, Remote, Scope, Section, bytes, bytes_range, count, extent, file_selection, names, path, paths, ranks,
    switch, word,
};
use crate::value::Extent;
use trueio_model::{FileAccess, FileSelection, Locking};

crate::option::words_of! {
    /// The allocation of space in a new file.
    pub enum Fallocate {
        Native => "native", ["posix", "1", "true"], "space is allocated before the job and not written";
        Truncate => "truncate", [], "the file gets its length before the job and is one hole: no space is allocated";
        Keep => "keep", [], "space is allocated before the job and the file stays empty: the job extends it";
        None => "none", ["0", "false"], "the file is created empty and the job extends it";
    }
}

crate::option::words_of! {
    impl Locking {
        Self::None => "none", [], "no locks";
        Self::Exclusive => "exclusive", [], "one worker at a time does I/O on a file";
        Self::Readwrite => "readwrite", [], "several workers may read at a time; a write or trim excludes all others";
    }
}

crate::option::words_of! {
    impl FileAccess {
        Self::Private => "private", [], "mode 0600: only the job's user may use it";
        Self::Umask => "umask", [], "mode 0644 less the umask: others may read it (as in fio)";
        Self::Group => "group", [], "mode 0664 less the umask: the group may write it, too (as in IOR)";
    }
}

crate::option::words_of! {
    /// The unit in which the metadata engines count.
    pub enum NameAccounting {
        Names => "names", [], "each name is one I/O without bytes";
        Blocks => "blocks", [], "each name is `filesize` bytes in I/Os of `bs`, of which the first does the work (as in fio)";
    }
}

crate::option::words_of! {
    /// The part of a shared file that each rank uses.
    pub enum SharedRegion {
        Own => "own", [], "each rank a region of `size` bytes of its own, in the order of ranks";
        All => "all", [], "all ranks the same `size` bytes";
    }
}

crate::option::words_of! {
    /// Which random stream a rank draws from.
    pub enum RankStreams {
        Own => "own", [], "each rank has its own order, sizes, mix and content";
        Equal => "equal", [], "all ranks do the same I/Os in the same order with the same content";
    }
}

crate::option::words_of! {
    /// How the region of a file follows from the options that set it.
    pub enum RegionRules {
        Exact => "exact", [], "`filesize` is the length of the region, and a region that ends beyond an existing target is refused";
        Fio => "fio", [], "`filesize` is the length of the whole file, a percentage of a new file is 0, and the region ends where a device or a file ends that the job may not extend";
    }
}

crate::option::words_of! {
    /// What `rank_shift` counts.
    pub enum ShiftBy {
        Rank => "rank", [], "ranks";
        Host => "host", [], "hosts: the nearest distance at which each rank comes to another host, if there is one";
        Random => "random", [], "ranks: a distance that each rank draws (`rank_shift_seed`), at least `rank_shift`; several ranks may draw one region";
    }
}

crate::option::rows! {
    Section::Target;

    pub const FILENAME: Opt<Option<Vec<String>>> = paths("filename")
        .unset("generated files `trueio-JOB-N.dat`, whose names must not exist yet")
        .unit("paths")
        .scope(&[Scope::WithCommand, Scope::ByLog])
        .fio_rule("the files or devices; a job that writes them may overwrite them")
        .remote(Remote::Allowed)
        .summary("The files or devices under test")
        .detail("Existing ones are used unchanged: never truncated or removed, written only if \
                 `overwrite_existing` names them, and extended only if `extend_existing` does. A missing one \
                 is created, and removed at the end unless `unlink` is false. Several are separated by colons, \
                 or are a TOML list. All workers share them. With `ioengine = \"uas\"`, `usb:2-1` is the USB disk at \
                 that port, and `usb:2-1/1` its logical unit 1.");

    pub const DIRECTORY: Opt<Option<String>> = path("directory")
        .unset("the current directory")
        .unit("path")
        .scope(&[Scope::WithoutIo, Scope::WithCommand])
        .fio_rule("the directory of the files; of a list, each clone takes the next")
        .remote(Remote::Allowed)
        .summary("The directory of the files")
        .detail("It is prepended to relative names in `filename` and to the names of generated files.");

    pub const RANKS: Opt<Option<Vec<u32>>> = ranks("ranks")
        .unset("all ranks run the job")
        .unit("numbers")
        .not_in_fio()
        .scope(&[Scope::WithoutIo, Scope::WithCommand, Scope::ByLog])
        .summary("The ranks that run the job, in a run on several hosts")
        .detail("`0-3` or `0,2`. The others wait for it where a phase ends (`stonewall`). A process that is alone is \
                 rank 0.");

    pub const SHARED_FILE: Opt<bool> = switch("shared_file")
        .not_in_fio()
        .summary("The ranks of a run on several hosts use one file, which rank 0 creates")
        .detail("It needs one name in `filename`, and `size`: that of each rank's region. Without it, each rank has files \
                 of its own. With `$rank` or `${rank8}` (eight digits) in the name each rank creates its file, and the \
                 others can use it (`rank_shift`). The files are removed at the end unless `unlink` is false.");

    pub const SHARED_REGION: Opt<SharedRegion> = word("shared_region")
        .default("own")
        .not_in_fio()
        .summary("The part of a `shared_file` that each rank uses")
        .detail("With `all`, ranks that write overwrite each other's blocks.");

    pub const SHARED_SEGMENTS: Opt<u64> = count("shared_segments", 1, 1 << 40)
        .default("1")
        .unit("parts")
        .not_in_fio()
        .summary("The region of each rank in a `shared_file` has this number of parts, which alternate with those of the others")
        .detail("Each part is `size` divided by this number (IOR's `-s`). For sequential jobs.");

    pub const RANK_SHIFT: Opt<u32> = count("rank_shift", 0, 1 << 20)
        .default("0")
        .unit("ranks")
        .not_in_fio()
        .summary("Each rank uses the region of another rank in a `shared_file`, or its names: the one this number after it")
        .detail("After a phase that writes, `rank_shift = 1` reads what another host wrote, which no cache of this host \
                 holds (IOR's `-C`). The names are those of `name_directory`.");

    pub const RANK_SHIFT_BY: Opt<ShiftBy> = word("rank_shift_by")
        .default("rank")
        .not_in_fio()
        .summary("What `rank_shift` counts")
        .detail("If several ranks run on each host, the next rank may share its page cache; the next host does not.");

    pub const RANK_SHIFT_SEED: Opt<u64> = count("rank_shift_seed", 0, u64::MAX)
        .default("0")
        .unit("seed")
        .not_in_fio()
        .summary("The seed of the distances that `rank_shift_by = \"random\"` draws (IOR's `-X`)");

    pub const RANK_PLACE: Opt<u32> = count("rank_place", 0, 1 << 24)
        .default("0")
        .unit("rank")
        .not_in_fio()
        .summary("The rank whose region, random stream, names and number of I/Os the job uses")
        .detail("A run on several hosts sets it for each rank, from its number and `rank_shift`, for jobs with \
                 `rank_shift`, `name_directory`, `repeat_ios_of` or `complete_ios_of`. For others it is the rank's number.");

    pub const RANK_STREAMS: Opt<RankStreams> = word("rank_streams")
        .default("own")
        .not_in_fio()
        .scope(&[Scope::WithoutIo, Scope::WithCommand])
        .summary("Whether the ranks of a run on several hosts draw their I/Os and content from streams of their own")
        .detail("The stream is that of the rank whose region the job uses (`rank_shift`), so a job with the `randseed` of \
                 another one finds what that wrote. With `equal`, a cache or deduplication can serve most ranks, which the check \
                 `same_blocks` reports.");

    pub const EXTEND_EXISTING: Opt<Option<Vec<String>>> = paths("extend_existing")
        .unset("no existing file is extended")
        .unit("paths")
        .fio(FioUse::CommandLine)
        .summary("Existing files that may be extended, if the job needs more than their size")
        .detail("Existing data stays. The added part is prepared like a new file, and stays, too.");

    pub const FILE_APPEND: Opt<bool> = switch("file_append")
        .scope(&[Scope::ByLog])
        .summary("The region begins at the end of each file, and extends it by `size`")
        .detail("An existing file must be named in `overwrite_existing` and in `extend_existing`. Jobs that \
                 append to one file do so one after the other, in the order of the jobs. A further pass \
                 (`loops`) covers the same bytes again; fio ends after the first.");

    pub const OVERWRITE_EXISTING: Opt<Option<Vec<String>>> = paths("overwrite_existing")
        .unset("no existing file or device is written")
        .unit("paths")
        .fio(FioUse::CommandLine)
        .scope(&[Scope::WithCommand])
        .remote(Remote::Allowed)
        .summary("The existing files or devices that this job may destroy by writing or trimming")
        .detail("Each must be spelled exactly as the target (`directory` and `filename` joined), so that an \
                 overwrite is always requested by name.");

    pub const OVERWRITE_SIGNATURE: Opt<Option<Vec<String>>> = names("overwrite_signature")
        .unset("a device with a signature is not written")
        .unit("names")
        .fio(FioUse::CommandLine)
        .scope(&[Scope::WithCommand])
        .summary("The signatures on block devices that this job may destroy: filesystems, RAID, LVM, partition \
                  tables")
        .detail("Each existing signature must be named, as `blkid` and `wipefs` name it (`ext4`, \
                 `crypto_LUKS`, `gpt`, `dos` …), and each named one must exist: a wrong name may mean the \
                 wrong device. The device must also be named in `overwrite_existing`. A mounted device is \
                 never written.");

    pub const SIZE: Opt<Option<Extent>> = extent("size")
        .unset("the whole of an existing file or device; required for a new file")
        .unit("bytes, percent or zones")
        .scope(&[Scope::WithCommand, Scope::ByLog])
        .summary("The used size of the files, all files together")
        .detail("Divided evenly over several files. A percentage is of each existing file or device. More than \
                 the size of an existing file is refused; fio would rewrite the file.");

    pub const FILESIZE: Opt<Option<(u64, u64)>> = bytes_range("filesize")
        .unset("`size`, divided by the number of files")
        .unit("bytes")
        .scope(&[Scope::ByLog])
        .summary("The used size of each single file")
        .detail("If it is set, `size` limits the bytes that each worker transfers: one pass over the files, \
                 unless `io_size` or `loops` set more. `4k-1m` draws each file's size by the job's seed, in \
                 whole blocks.");

    pub const NRFILES: Opt<u64> = count("nrfiles", 1, 1 << 32)
        .default("1")
        .unit("files")
        .fio_names(&["nr_files"])
        .scope(&[Scope::ByLog])
        .fio_rule("number of generated files; no effect next to `filename`, as in fio")
        .summary("Number of generated files")
        .detail("Only without `filename`. All workers share them (fio generates files for each clone). At most 65536, \
                 except for the metadata engines: there it is the number of each worker's names.");

    pub const FILE_SERVICE_TYPE: Opt<FileSelection> = file_selection("file_service_type")
        .default("roundrobin")
        .unit("name and number")
        .scope(&[Scope::ByLog])
        .summary("The selection of the file for the next I/O")
        .detail("`roundrobin`: each in turn. `sequential`: one after another, each to its end. `random`: \
                 uniform. A file whose pass is complete waits for the others. A job whose blocks may repeat \
                 (`norandommap`, a `random_distribution`) has no passes, unless `openfiles` limits the files. \
                 `zipf:1.1`, `pareto:0.2`, `normal:20`: drawn by a distribution over 1024 slots per file, in \
                 the files' order, as `random_distribution` does for blocks; files do not wait. The seed \
                 selects the most popular file, or a second number from 0 to 1 gives its position \
                 (`zipf:1.1:0.3`); the files after it are next in popularity. `normal` is around the middle of \
                 the files; its deviation is in percent of all.");

    pub const FILE_SERVICE_IOS: Opt<u32> = count("file_service_ios", 1, 1 << 31)
        .default("1")
        .unit("I/Os")
        .not_in_fio()
        .scope(&[Scope::ByLog])
        .summary("I/Os to a file before the next one is selected, unless its pass is complete earlier")
        .detail("fio appends it to `file_service_type`: `file_service_type=roundrobin:4`.");

    pub const OPENFILES: Opt<Option<u32>> = count("openfiles", 0, 65_536)
        .unset("all of them")
        .unit("files")
        .scope(&[Scope::ByLog])
        .summary("Number of files in use at a time; 0: all")
        .detail("The next file begins when the pass over one of them is complete: if blocks may repeat, when \
                 the size of the file was transferred. All files stay open nevertheless, so that none is \
                 opened or closed between I/Os. The limit of open files is raised as far as the system \
                 permits; a run that needs more ends before a file is created, with the required number.");

    pub const OFFSET: Opt<Extent> = extent("offset")
        .default("0")
        .unit("bytes, percent or zones")
        .fio_names(&["fileoffset"])
        .scope(&[Scope::WithCommand, Scope::ByLog])
        .summary("The start of the used region in each file")
        .detail("A percentage is of an existing file or device, rounded down to a whole block.");

    pub const OFFSET_ALIGN: Opt<Option<u64>> = bytes("offset_align")
        .unset("an `offset` in percent is rounded down to a whole block")
        .unit("bytes")
        .fio_default_conditional("0")
        .summary("An `offset` in percent is rounded up to a multiple of this size; 0: the smallest block")
        .detail("fio rounds up to the smallest block by default, and so does `trueio fio`.");

    pub const OFFSET_INCREMENT: Opt<Extent> = extent("offset_increment")
        .default("0")
        .unit("bytes")
        .scope(&[Scope::WithCommand, Scope::ByLog])
        .fio_rule("difference between the `offset` of each clone and that of the clone before")
        .summary("The distance between the starts of the workers' regions, each of `size` bytes; 0: all workers use one")
        .detail("The first begins at `offset`. fio's option of this name moves its clones, which are jobs of their own; `trueio \
                 fio` does the same.");

    pub const REGION_NUMBER: Opt<u64> = count("region_number", 0, 1 << 20)
        .default("0")
        .unit("distances")
        .not_in_fio()
        .scope(&[Scope::WithCommand, Scope::ByLog])
        .summary("The first worker's region begins at `offset` and this number of `offset_increment`s")
        .detail("Jobs in fio's language have the number of their clone.");

    pub const REGION_RULES: Opt<RegionRules> = word("region_rules")
        .default("exact")
        .not_in_fio()
        .fio_default("fio")
        .scope(&[Scope::WithoutIo, Scope::WithCommand, Scope::ByLog])
        .summary("How the region of a file follows from `size`, `filesize`, `offset` and `offset_increment`")
        .detail("A region that ends earlier than it was set has a note. A job that writes or trims never leaves what was \
                 given.");

    pub const OVERWRITE: Opt<bool> = switch("overwrite")
        .scope(&[Scope::WithCommand])
        .summary("A file created for a write job is filled first, so that the job overwrites it")
        .detail("Without it, space is only allocated for jobs that only write, and the filesystem converts \
                 unwritten extents during the job. Jobs that read or trim always get a filled file.");

    pub const FALLOCATE: Opt<Fallocate> = word("fallocate")
        .default("native")
        .scope(&[Scope::WithCommand])
        .summary("The allocation of space in a file created for a write job")
        .detail("`none` measures appending: each write extends the file. `keep` measures it with allocated \
                 space. `truncate` measures the first write of a sparse file, including allocation. Where the \
                 filesystem does not allocate space ahead, `native` fills the file instead, with a note.");

    pub const UNLINK: Opt<bool> = switch("unlink")
        .default("true")
        .scope(&[Scope::WithoutIo, Scope::WithCommand])
        .fio_default("false")
        .summary("Files that the run created are removed at its end, however it ends")
        .detail("fio keeps them. A file that existed before is never removed.");

    pub const LOCKFILE: Opt<Locking> = word("lockfile")
        .default("none")
        .scope(&[Scope::Measured])
        .summary("Parallel workers and jobs that share a file wait for each other's I/O on it")
        .detail("A file is locked from just before an I/O is issued until it has completed, among the jobs \
                 that set this option. The I/Os that a worker keeps in flight are one use of the file, which \
                 ends when others wait. Waiting is not part of the latency, except with a rate, where latency \
                 counts from the time the I/O was due.");

    pub const UNLINK_EACH_LOOP: Opt<bool> = switch("unlink_each_loop")
        .scope(&[Scope::Measured, Scope::ByLog])
        .summary("The files are removed before each further pass, and created again, empty")
        .detail("For files that the run creates, in jobs of one worker that only write: a further pass begins \
                 when `loops`, `io_size` or `time_based` start again at the beginning of the files. The cost \
                 is measured with the job.");

    pub const CREATE_ONLY: Opt<bool> = switch("create_only")
        .summary("The files are prepared as the job needs them, and no I/O is done")
        .detail("They stay only with `unlink = false`.");

    pub const CREATE_DIRECTORIES: Opt<bool> = switch("create_directories")
        .default("false")
        .not_in_fio()
        .fio_default("true")
        .summary("Missing directories of new files are created, with mode 0700")
        .detail("They stay after the run. The directory that `directory` names must exist. Without this option a \
                 missing directory is refused. fio creates directories, and so do jobs in fio's language.");

    pub const NAME_FSYNC: Opt<bool> = switch("name_fsync")
        .default("false")
        .not_in_fio()
        .summary("`filecreate` flushes each file before it closes it (mdtest's `-y`)");

    pub const NAME_VERIFY: Opt<bool> = switch("name_verify")
        .default("false")
        .not_in_fio()
        .summary("`fileread` compares what it reads with what `filecreate` with the same `randseed` wrote (mdtest's `-X`)")
        .detail("A file that differs is a failed I/O (EBADMSG).");

    pub const RENEW_FILES: Opt<bool> = switch("renew_files")
        .default("false")
        .not_in_fio()
        .scope(&[Scope::WithoutIo, Scope::WithCommand])
        .summary("Files that an earlier job of the run created are emptied before this job writes them")
        .detail("The job then allocates their space again, as for new files (IOR's `-i`). Existing files stay as they are.");

    pub const NEW_FILE_ACCESS: Opt<FileAccess> = word("new_file_access")
        .default("private")
        .not_in_fio()
        .fio_default("umask")
        .scope(&[Scope::WithoutIo, Scope::WithCommand])
        .summary("The users that may use a file that the job creates")
        .detail("Directories that the run creates have mode 0700, as in fio.");

    pub const NAME_ACCOUNTING: Opt<NameAccounting> = word("name_accounting")
        .default("names")
        .not_in_fio()
        .fio_default("blocks")
        .summary("The unit in which the metadata engines (`filecreate`, `filestat`, `dirdelete`, …) count")
        .detail("Jobs in fio's language count blocks.");

    pub const NAME_DIRECTORY: Opt<Option<String>> = path("name_directory")
        .unset("each worker has a directory of its own, and its names exist during the job")
        .unit("path")
        .not_in_fio()
        .summary("The directory in which several jobs of the metadata engines, on all ranks, use the same names")
        .detail("It must not exist if a job creates names (`filecreate`, `dircreate`): rank 0 creates it before the first of \
                 these jobs, and removes it with all names that are left at the end, unless `unlink` is false. Without \
                 such a job it must exist, and nothing in it is removed. Each worker of each rank owns `nrfiles` names; \
                 `rank_shift` selects those of another rank. All jobs need the same `nrfiles` and `numjobs`.");

    pub const NAME_DEPTH: Opt<u32> = count("name_depth", 0, 60)
        .default("0")
        .unit("levels")
        .not_in_fio()
        .summary("Levels of directories below the top one of the tree in `name_directory`")
        .detail("The names are spread evenly over all directories. A job of `dircreate` with `name_tree` creates the tree.");

    pub const NAME_BRANCH: Opt<u32> = count("name_branch", 1, 1 << 20)
        .default("1")
        .unit("directories")
        .not_in_fio()
        .summary("Directories in each directory above the lowest level of the tree in `name_directory`");

    pub const NAME_LEAVES: Opt<bool> = switch("name_leaves")
        .not_in_fio()
        .summary("Names are only in directories of the lowest level of the tree");

    pub const NAME_PRIVATE: Opt<bool> = switch("name_private")
        .not_in_fio()
        .summary("Each worker of each rank has its own tree in `name_directory`")
        .detail("Otherwise all share one.");

    pub const NAME_TREE: Opt<bool> = switch("name_tree")
        .not_in_fio()
        .summary("The names of `dircreate`, `dirstat` and `dirdelete` are the directories of the tree itself")
        .detail("If all ranks share the tree, one of them creates it: `ranks = \"0\"`.");

    pub const NAME_BYTES: Opt<u64> = bytes("name_bytes")
        .default("0")
        .unit("bytes")
        .not_in_fio()
        .summary("Bytes that `filecreate` writes to each file, and that `fileread` reads from it")
        .detail("For names in a `name_directory`. At most 64 MiB.");
}
