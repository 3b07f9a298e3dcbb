//! Every option that fio 3.42 has, and what becomes of it here.
//!
//! One table. [`find`] knows an option by any of fio's names, so that nothing that fio knows is
//! called unknown, and nothing is ignored in silence: an option goes to a row of our own table, is
//! read here, is kept for fio's outputs, has no effect for a reason that is told, or is refused with
//! a reason and the nearest thing that works.
//!
//! Where our own table (`trueio_job::table`) gets a row under fio's name, the row has it, whatever this
//! table says; only what the reader handles itself stays with the reader.
//!
//! Names, kinds, defaults and words: `fio --cmdhelp=all` of 3.42; options of single engines: their
//! documentation, HOWTO of fio 3.42. Tiers: how often an option occurs in 52 public repositories.

use trueio_job::option::OptionRow;
use trueio_job::table::row;

/// One option of fio.
#[derive(Debug, Clone, Copy)]
pub struct FioOption {
    /// fio's first name.
    pub name: &'static str,
    /// fio's other names.
    pub aliases: &'static [&'static str],
    /// What it takes.
    pub kind: Kind,
    /// fio's default; empty: none.
    pub default: &'static str,
    /// The words that it takes, separated by spaces; empty: any.
    pub words: &'static str,
    /// How common it is.
    pub tier: Tier,
    fate: Fate,
}

/// What an option takes, in fio's own terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing, 0 or 1; on the command line a value only behind `=`.
    Flag,
    /// 0 or 1.
    Bool,
    /// A number, with a suffix if wanted.
    Number,
    /// A span of time.
    Time,
    /// Two numbers.
    Range,
    /// Numbers with fractions, separated by colons.
    Floats,
    /// A size, a percentage or a number of zones.
    Size,
    /// Text or words.
    Text,
}

impl Kind {
    /// Its name, as `--cmdhelp` says it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Flag => "flag (0, 1 or nothing)",
            Kind::Bool => "boolean (0 or 1)",
            Kind::Number => "number, with a suffix if wanted (k, m, g)",
            Kind::Time => "time (us, ms, s, m, h, d)",
            Kind::Range => "range of numbers (LOW-HIGH)",
            Kind::Floats => "numbers, separated by colons",
            Kind::Size => "size, or percentage",
            Kind::Text => "text",
        }
    }
}

/// How common an option is: job files and command lines of 52 public repositories were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// In common use.
    One,
    /// Met now and then.
    OneC,
    /// Rare.
    Two,
    /// For single drivers and laboratories.
    Three,
}

impl Tier {
    /// Its number in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Tier::One => "1",
            Tier::OneC => "1c",
            Tier::Two => "2",
            Tier::Three => "3",
        }
    }
}

/// What becomes of an option.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fate {
    /// The row of our table under its name has it.
    Row,
    /// The reader of fio's language has it; what it makes of it.
    Reader(&'static str),
    /// Kept with the job, for fio's outputs; what for.
    Output(&'static str),
    /// It changes nothing here; why. Told in a note.
    NoEffect(&'static str),
    /// These values ask for what is done anyway; any other is refused.
    Only {
        /// The values.
        values: &'static [&'static str],
        /// Why no other.
        reason: &'static str,
        /// The nearest thing that works.
        instead: &'static str,
    },
    /// Refused.
    Refused {
        /// Why.
        reason: &'static str,
        /// The nearest thing that works.
        instead: &'static str,
    },
}

impl FioOption {
    /// What becomes of it.
    pub fn fate(&self) -> Fate {
        match self.fate {
            Fate::Reader(_) => self.fate,
            _ if self.row().is_some() => Fate::Row,
            fate => fate,
        }
    }

    /// The row of our own table that has it, if one has.
    pub fn row(&self) -> Option<&'static OptionRow> {
        std::iter::once(&self.name).chain(self.aliases).find_map(|name| row(name)).filter(|row| row.is_in_fio)
    }
}

/// The option of a name: one of fio's, in whatever case of hyphens (`time-based`).
pub fn find(name: &str) -> Option<&'static FioOption> {
    let has = |name: &str| OPTIONS.iter().find(move |option| option.name == name || option.aliases.contains(&name));
    has(name).or_else(|| has(&name.replace('-', "_")))
}

const fn option(
    name: &'static str,
    aliases: &'static [&'static str],
    kind: Kind,
    default: &'static str,
    words: &'static str,
    tier: Tier,
    fate: Fate,
) -> FioOption {
    FioOption { name, aliases, kind, default, words, tier, fate }
}

/// Every option, in fio's order; those of single engines last.
#[rustfmt::skip]
pub const OPTIONS: &[FioOption] = &[
    option("allow_file_create", &[], Kind::Bool, "1", "", Tier::One, Fate::Reader("0: a file that does not exist is refused")),
    option("allow_mounted_write", &[], Kind::Bool, "0", "", Tier::One, Fate::Only { values: &["0"], reason: "what is mounted is never written, by whatever name", instead: "unmount it" }),
    option("atomic", &[], Kind::Bool, "0", "", Tier::OneC, Fate::Row),
    option("ba", &["blockalign"], Kind::Number, "", "", Tier::OneC, Fate::Row),
    option("block_error_percentiles", &[], Kind::Bool, "0", "", Tier::Three, Fate::Only { values: &["0"], reason: "I/Os fail the run, and failures are listed", instead: "`continue_on_error=all`" }),
    option("bs", &["blocksize"], Kind::Number, "4096", "", Tier::One, Fate::Row),
    option("bs_unaligned", &["blocksize_unaligned"], Kind::Flag, "", "", Tier::OneC, Fate::Row),
    option("bsrange", &["blocksize_range"], Kind::Range, "", "", Tier::One, Fate::Row),
    option("bssplit", &[], Kind::Text, "", "", Tier::One, Fate::Row),
    option("buffer_compress_chunk", &[], Kind::Number, "512", "", Tier::One, Fate::Row),
    option("buffer_compress_percentage", &[], Kind::Number, "", "", Tier::One, Fate::Row),
    option("buffer_pattern", &[], Kind::Text, "", "", Tier::OneC, Fate::Row),
    option("buffered", &[], Kind::Bool, "1", "", Tier::One, Fate::Reader("`direct` the other way round; the two must agree")),
    option("bwavgtime", &[], Kind::Number, "500", "", Tier::OneC, Fate::Row),
    option("cgroup", &[], Kind::Text, "", "", Tier::Three, Fate::Refused { reason: "no control group is made", instead: "`systemd-run --scope -p IOWeight=…` before the command" }),
    option("cgroup_nodelete", &[], Kind::Bool, "0", "", Tier::Three, Fate::NoEffect("no control group is made")),
    option("cgroup_weight", &[], Kind::Number, "", "", Tier::Three, Fate::Refused { reason: "no control group is made", instead: "`systemd-run --scope -p IOWeight=…` before the command" }),
    option("clat_percentiles", &[], Kind::Bool, "1", "", Tier::One, Fate::Row),
    option("clocksource", &[], Kind::Text, "", "gettimeofday clock_gettime cpu", Tier::One, Fate::NoEffect("the clock is chosen by what it costs, and its cost stands in the record")),
    option("comm", &[], Kind::Text, "", "", Tier::Three, Fate::NoEffect("threads are called after their jobs")),
    option("continue_on_error", &[], Kind::Text, "none", "none read write io verify all 0 1", Tier::OneC, Fate::Row),
    option("cpumask", &[], Kind::Number, "", "", Tier::OneC, Fate::Reader("`cpus_allowed` as a mask of bits")),
    option("cpus_allowed", &[], Kind::Text, "", "", Tier::One, Fate::Reader("the processors")),
    option("cpus_allowed_policy", &[], Kind::Text, "", "shared split", Tier::One, Fate::Reader("`split`: each clone has one of the processors; `shared`: each has all of them")),
    option("create_fsync", &[], Kind::Bool, "1", "", Tier::Three, Fate::NoEffect("files are made one after another and flushed, outside the measured time")),
    option("create_on_open", &[], Kind::Bool, "0", "", Tier::One, Fate::Reader("a job that only writes begins with empty files (`fallocate=none`); others are refused")),
    option("create_only", &[], Kind::Bool, "0", "", Tier::One, Fate::Row),
    option("create_serialize", &[], Kind::Bool, "1", "", Tier::One, Fate::NoEffect("files are made one after another and flushed, outside the measured time")),
    option("dataplacement", &["data_placement"], Kind::Text, "none", "none fdp streams", Tier::Three, Fate::Refused { reason: "placement hints are NVMe passthrough", instead: "leave it out" }),
    option("dedupe_global", &[], Kind::Bool, "0", "", Tier::Three, Fate::Only { values: &["0"], reason: "jobs have content of their own", instead: "`dedupe_percentage`" }),
    option("dedupe_mode", &[], Kind::Text, "repeat", "repeat working_set", Tier::Two, Fate::Reader("`working_set`: repeats are drawn from as many blocks as `dedupe_working_set_percentage` of the size holds; `repeat`: from 16")),
    option("dedupe_percentage", &[], Kind::Number, "", "", Tier::OneC, Fate::Row),
    option("dedupe_working_set_percentage", &[], Kind::Number, "5", "", Tier::Three, Fate::Reader("how large the set of `dedupe_mode=working_set` is; without that no effect, as in fio")),
    option("description", &[], Kind::Text, "", "", Tier::One, Fate::Output("kept, and shown with the job")),
    option("direct", &[], Kind::Bool, "0", "", Tier::One, Fate::Row),
    option("directory", &[], Kind::Text, "", "", Tier::One, Fate::Reader("the directory of the files; of a list, each clone takes the next")),
    option("disable_bw_measurement", &["disable_bw"], Kind::Bool, "0", "", Tier::OneC, Fate::Row),
    option("disable_clat", &[], Kind::Bool, "0", "", Tier::One, Fate::Row),
    option("disable_lat", &[], Kind::Bool, "0", "", Tier::One, Fate::Row),
    option("disable_slat", &[], Kind::Bool, "0", "", Tier::One, Fate::Row),
    option("disk_util", &[], Kind::Bool, "1", "", Tier::One, Fate::Output("whether the disks are shown")),
    option("do_verify", &[], Kind::Bool, "1", "", Tier::One, Fate::Row),
    option("dp_scheme", &[], Kind::Text, "", "", Tier::Three, Fate::Refused { reason: "placement hints are NVMe passthrough", instead: "leave it out" }),
    option("end_fsync", &[], Kind::Bool, "0", "", Tier::One, Fate::Row),
    option("end_syncfs", &[], Kind::Bool, "0", "", Tier::Three, Fate::Only { values: &["0"], reason: "a whole filesystem is not flushed", instead: "`end_fsync=1`" }),
    option("error_dump", &[], Kind::Bool, "0", "", Tier::OneC, Fate::NoEffect("each failure is explained in the result")),
    option("exec_postrun", &[], Kind::Text, "", "", Tier::Two, Fate::Reader("a shell command before or after the job's phase, only with `--allow-exec`")),
    option("exec_prerun", &[], Kind::Text, "", "", Tier::Two, Fate::Reader("a shell command before or after the job's phase, only with `--allow-exec`")),
    option("exit_what", &[], Kind::Text, "group", "group stonewall all", Tier::OneC, Fate::Row),
    option("exitall", &[], Kind::Flag, "", "", Tier::One, Fate::Row),
    option("exitall_on_error", &[], Kind::Flag, "", "", Tier::OneC, Fate::Row),
    option("experimental_verify", &[], Kind::Bool, "", "", Tier::Two, Fate::NoEffect("what is read back is always generated again, and never kept in a list")),
    option("fadvise_hint", &[], Kind::Text, "1", "0 1 random sequential noreuse", Tier::One, Fate::Row),
    option("fallocate", &[], Kind::Text, "native", "none native posix keep truncate 0 1", Tier::One, Fate::Row),
    option("fdatasync", &[], Kind::Number, "0", "", Tier::One, Fate::Row),
    option("fdp", &[], Kind::Bool, "0", "", Tier::Three, Fate::Refused { reason: "placement hints are NVMe passthrough", instead: "leave it out" }),
    option("file_append", &[], Kind::Bool, "0", "", Tier::Two, Fate::Row),
    option("file_service_type", &[], Kind::Text, "roundrobin", "random zipf pareto normal gauss roundrobin sequential", Tier::One, Fate::Row),
    option("filename", &[], Kind::Text, "", "", Tier::One, Fate::Reader("the files or devices; what a job writes is thereby named for overwriting")),
    option("filename_format", &[], Kind::Text, "$jobname.$jobnum.$filenum", "", Tier::One, Fate::Reader("names of generated files: `$jobname`, `$jobnum`, `$filenum`, `$clientuid`")),
    option("filesize", &[], Kind::Text, "", "", Tier::One, Fate::Row),
    option("filetype", &[], Kind::Text, "none", "none file block char", Tier::Three, Fate::Only { values: &["none"], reason: "what a file is, is asked of the file", instead: "leave it out" }),
    option("fill_device", &["fill_fs"], Kind::Bool, "0", "", Tier::Two, Fate::Row),
    option("flow", &[], Kind::Number, "0", "", Tier::Two, Fate::Row),
    option("flow_id", &[], Kind::Number, "0", "", Tier::Two, Fate::Row),
    option("flow_sleep", &[], Kind::Number, "0", "", Tier::Two, Fate::Row),
    option("fsync", &[], Kind::Number, "0", "", Tier::One, Fate::Row),
    option("fsync_on_close", &[], Kind::Bool, "0", "", Tier::One, Fate::Row),
    option("gid", &[], Kind::Number, "", "", Tier::Two, Fate::Row),
    option("group_reporting", &[], Kind::Flag, "", "", Tier::One, Fate::Row),
    option("gtod_cpu", &[], Kind::Number, "", "", Tier::Three, Fate::NoEffect("the clock is chosen by what it costs, and its cost stands in the record")),
    option("gtod_reduce", &[], Kind::Bool, "0", "", Tier::One, Fate::Row),
    option("hugepage-size", &[], Kind::Number, "2097152", "", Tier::Three, Fate::Reader("`hugepage_size`: the size of the pages of `mem=mmaphuge` and `mem=shmhuge`")),
    option("ignore_error", &[], Kind::Text, "", "", Tier::OneC, Fate::Row),
    option("ignore_zone_limits", &[], Kind::Bool, "0", "", Tier::Two, Fate::Row),
    option("invalidate", &[], Kind::Bool, "1", "", Tier::One, Fate::Row),
    option("io_size", &["io_limit"], Kind::Size, "", "", Tier::One, Fate::Row),
    option("io_submit_mode", &[], Kind::Text, "inline", "inline offload", Tier::Two, Fate::Reader("`offload` with an engine of single calls: `iodepth` threads make the calls, as in fio (the engine `posixaio`); other engines are refused, as fio gives each thread an engine of depth 1 and calls that unreliable: under a rate latency counts from the moment an I/O was due without it, too")),
    option("iodepth", &[], Kind::Number, "1", "", Tier::One, Fate::Reader("the queue depth; capped at 1 on an engine that blocks, with a note, as in fio")),
    option("iodepth_batch", &["iodepth_batch_submit"], Kind::Number, "1", "", Tier::One, Fate::Reader("`iodepth_batch`; 0 is `iodepth`, and fio's default is 1")),
    option("iodepth_batch_complete_max", &[], Kind::Number, "", "", Tier::One, Fate::Row),
    option("iodepth_batch_complete_min", &["iodepth_batch_complete"], Kind::Number, "1", "", Tier::One, Fate::Reader("`iodepth_batch_complete_min`; 0 (poll) waits for one completion")),
    option("iodepth_low", &[], Kind::Number, "", "", Tier::One, Fate::Reader("`iodepth_low`; 0, and more than `iodepth`, are `iodepth`, as in fio")),
    option("ioengine", &[], Kind::Text, "psync", "sync psync vsync pvsync pvsync2 libaio io_uring posixaio mmap splice netsplice sg null net cpuio e4defrag falloc filecreate external nbd", Tier::One, Fate::Reader("the engine, under any of fio's names; the default is `psync`")),
    option("iopsavgtime", &[], Kind::Number, "500", "", Tier::OneC, Fate::Row),
    option("ioscheduler", &[], Kind::Text, "", "", Tier::Two, Fate::NoEffect("the machine is measured as it is; where a disk of the job has another scheduler, it is refused, with the command that sets it")),
    option("job_max_open_zones", &[], Kind::Number, "0", "", Tier::Two, Fate::Row),
    option("job_start_clock_id", &[], Kind::Number, "", "", Tier::Three, Fate::Only { values: &["0"], reason: "times of the start are those of the system's clock", instead: "leave it out" }),
    option("kb_base", &[], Kind::Text, "1024", "1024 1000", Tier::One, Fate::Reader("what `k`, `m`, `g` mean: 1024 (default; `kib` is then 1000) or 1000")),
    option("lat_percentiles", &[], Kind::Bool, "0", "", Tier::One, Fate::Row),
    option("latency_percentile", &[], Kind::Floats, "100", "", Tier::One, Fate::Row),
    option("latency_run", &[], Kind::Bool, "0", "", Tier::One, Fate::Row),
    option("latency_target", &[], Kind::Time, "", "", Tier::One, Fate::Row),
    option("latency_window", &[], Kind::Time, "", "", Tier::One, Fate::Row),
    option("lockfile", &[], Kind::Text, "none", "none exclusive readwrite", Tier::OneC, Fate::Row),
    option("lockmem", &[], Kind::Text, "0", "", Tier::Three, Fate::Only { values: &["0"], reason: "no memory is pinned", instead: "run in a control group with a memory limit" }),
    option("log_alternate_epoch", &["log_unix_epoch"], Kind::Bool, "", "", Tier::One, Fate::Row),
    option("log_alternate_epoch_clock_id", &[], Kind::Number, "", "", Tier::Three, Fate::Only { values: &["0"], reason: "the other epoch of logs is that of the system's clock", instead: "`log_alternate_epoch=1`" }),
    option("log_avg_msec", &[], Kind::Number, "0", "", Tier::One, Fate::Row),
    option("log_compression", &[], Kind::Number, "", "", Tier::Two, Fate::NoEffect("logs are written while the job runs and do not stay in memory")),
    option("log_compression_cpus", &[], Kind::Text, "", "", Tier::Two, Fate::NoEffect("logs are written while the job runs and do not stay in memory")),
    option("log_entries", &[], Kind::Number, "1024", "", Tier::Three, Fate::NoEffect("logs are written while the job runs and do not stay in memory")),
    option("log_hist_coarseness", &[], Kind::Number, "0", "", Tier::One, Fate::Row),
    option("log_hist_msec", &[], Kind::Number, "0", "", Tier::One, Fate::Row),
    option("log_issue_time", &[], Kind::Bool, "0", "", Tier::Three, Fate::Row),
    option("log_offset", &[], Kind::Bool, "0", "", Tier::One, Fate::Row),
    option("log_prio", &[], Kind::Bool, "0", "", Tier::Three, Fate::Row),
    option("log_store_compressed", &[], Kind::Bool, "", "", Tier::Two, Fate::Row),
    option("log_window_value", &["log_max_value"], Kind::Text, "avg", "avg max both 0 1", Tier::One, Fate::Row),
    option("loops", &[], Kind::Number, "1", "", Tier::One, Fate::Row),
    option("max_latency", &[], Kind::Number, "", "", Tier::Two, Fate::Row),
    option("max_open_zones", &[], Kind::Number, "0", "", Tier::Two, Fate::Row),
    option("iomem_align", &["mem_align"], Kind::Number, "0", "", Tier::Two, Fate::Reader("how many bytes behind the beginning of a page each buffer begins (`buffer_offset`), which is what fio makes of it; fio's further buffers of a queue lie `bs` apart")),
    option("mem", &["iomem"], Kind::Text, "malloc", "malloc shm shmhuge mmap mmapshared mmaphuge", Tier::One, Fate::Row),
    option("merge_blktrace_file", &[], Kind::Text, "", "", Tier::Three, Fate::Refused { reason: "binary traces are neither read nor merged", instead: "`blkparse` prints a trace; as lines of an iolog (`read_iolog`), merge them with `sort -n`" }),
    option("merge_blktrace_iters", &[], Kind::Floats, "", "", Tier::Three, Fate::Refused { reason: "binary traces are neither read nor merged", instead: "`blkparse` prints a trace; as lines of an iolog (`read_iolog`), merge them with `sort -n`" }),
    option("merge_blktrace_scalars", &[], Kind::Floats, "", "", Tier::Three, Fate::Refused { reason: "binary traces are neither read nor merged", instead: "`blkparse` prints a trace; as lines of an iolog (`read_iolog`), merge them with `sort -n`" }),
    option("name", &[], Kind::Text, "", "", Tier::One, Fate::Reader("the job's name; `numjobs` clones share it")),
    option("new_group", &[], Kind::Flag, "", "", Tier::One, Fate::Reader("a new reporting group begins, without waiting")),
    option("nice", &[], Kind::Number, "0", "", Tier::OneC, Fate::Row),
    option("norandommap", &[], Kind::Flag, "", "", Tier::One, Fate::Row),
    option("nrfiles", &["nr_files"], Kind::Number, "1", "", Tier::One, Fate::Reader("how many files are generated; with `filename` it has no effect, as in fio")),
    option("num_range", &[], Kind::Number, "1", "", Tier::Three, Fate::Only { values: &["1"], reason: "trims of several ranges at once are NVMe passthrough", instead: "leave it out: one range a trim" }),
    option("numa_cpu_nodes", &[], Kind::Text, "", "", Tier::OneC, Fate::Row),
    option("numa_mem_policy", &[], Kind::Text, "", "", Tier::Two, Fate::Row),
    option("number_ios", &[], Kind::Text, "0", "", Tier::One, Fate::Row),
    option("numjobs", &[], Kind::Number, "1", "", Tier::One, Fate::Reader("that many jobs, each with files and a seed of its own unless `filename` names the files")),
    option("offset", &["fileoffset"], Kind::Size, "0", "", Tier::One, Fate::Row),
    option("offset_align", &[], Kind::Number, "0", "", Tier::OneC, Fate::Row),
    option("offset_increment", &[], Kind::Size, "0", "", Tier::One, Fate::Reader("`offset` of each clone is larger by so much than that of the one before")),
    option("opendir", &[], Kind::Text, "", "", Tier::OneC, Fate::Reader("the job reads all regular files below the directory that hold anything, in the order of their names; a job that writes or trims is refused: files are named to be written")),
    option("openfiles", &[], Kind::Number, "", "", Tier::One, Fate::Row),
    option("overwrite", &[], Kind::Bool, "0", "", Tier::One, Fate::Row),
    option("per_job_logs", &[], Kind::Bool, "1", "", Tier::One, Fate::Row),
    option("percentage_random", &[], Kind::Number, "100,100,100", "", Tier::OneC, Fate::Row),
    option("percentile_list", &[], Kind::Floats, "1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99", "", Tier::One, Fate::Row),
    option("plid_select", &["fdp_pli_select"], Kind::Text, "roundrobin", "random roundrobin scheme", Tier::Three, Fate::Refused { reason: "placement hints are NVMe passthrough", instead: "leave it out" }),
    option("plids", &["fdp_pli"], Kind::Text, "", "", Tier::Three, Fate::Refused { reason: "placement hints are NVMe passthrough", instead: "leave it out" }),
    option("pre_read", &[], Kind::Bool, "0", "", Tier::One, Fate::Row),
    option("prio", &[], Kind::Number, "", "", Tier::OneC, Fate::Row),
    option("prioclass", &[], Kind::Number, "", "", Tier::OneC, Fate::Row),
    option("priohint", &[], Kind::Number, "", "", Tier::Three, Fate::Row),
    option("profile", &[], Kind::Text, "", "tiobench act", Tier::Three, Fate::Refused { reason: "fio's built-in workloads are not here", instead: "`trueio baseline`, or a job file" }),
    option("ramp_size", &[], Kind::Text, "", "", Tier::Three, Fate::Refused { reason: "a ramp is a time", instead: "`ramp_time`" }),
    option("ramp_time", &[], Kind::Time, "", "", Tier::One, Fate::Row),
    option("random_distribution", &[], Kind::Text, "random", "random zipf pareto normal zoned zoned_abs sequence", Tier::One, Fate::Row),
    option("random_generator", &[], Kind::Text, "tausworthe", "tausworthe lfsr tausworthe64", Tier::One, Fate::NoEffect("offsets come from one generator of 64 bits, which serves any size")),
    option("random_sequence_stride", &[], Kind::Bool, "0", "", Tier::Three, Fate::Only { values: &["0"], reason: "the sequence distribution does not exist here", instead: "`random_distribution=random`" }),
    option("randrepeat", &["allrandrepeat"], Kind::Bool, "1", "", Tier::One, Fate::Row),
    option("randseed", &[], Kind::Text, "0x89", "", Tier::One, Fate::Reader("the seed; each clone derives its own")),
    option("rate", &[], Kind::Number, "", "", Tier::One, Fate::Reader("bytes a second, of reads, writes and trims; with two rates the mix follows from them")),
    option("rate_cycle", &["ratecycle"], Kind::Number, "1000", "", Tier::OneC, Fate::Row),
    option("rate_ignore_thinktime", &[], Kind::Bool, "", "", Tier::Three, Fate::Only { values: &["0"], reason: "pauses are part of the rate", instead: "leave out `thinktime`" }),
    option("rate_iops", &[], Kind::Number, "", "", Tier::One, Fate::Reader("I/Os a second, of reads, writes and trims; with two rates the mix follows from them")),
    option("rate_iops_min", &[], Kind::Number, "", "", Tier::Two, Fate::Row),
    option("rate_min", &["ratemin"], Kind::Number, "", "", Tier::OneC, Fate::Row),
    option("rate_process", &[], Kind::Text, "linear", "linear poisson", Tier::One, Fate::Row),
    option("read_beyond_wp", &[], Kind::Bool, "0", "", Tier::Two, Fate::Row),
    option("read_iolog", &[], Kind::Text, "", "", Tier::Two, Fate::Reader("the log that is replayed (versions 2 and 3); of a list, each clone takes the next")),
    option("read_iolog_chunked", &[], Kind::Bool, "0", "", Tier::Two, Fate::NoEffect("a log is always read bit by bit")),
    option("recover_zbd_write_error", &[], Kind::Bool, "", "", Tier::Two, Fate::NoEffect("after a failed write the device is always asked where the write pointer is")),
    option("refill_buffers", &[], Kind::Flag, "", "", Tier::One, Fate::Row),
    option("replay_align", &[], Kind::Number, "", "", Tier::Two, Fate::Row),
    option("replay_no_stall", &[], Kind::Bool, "0", "", Tier::Two, Fate::Row),
    option("replay_redirect", &[], Kind::Text, "", "", Tier::Two, Fate::Row),
    option("replay_scale", &[], Kind::Number, "1", "", Tier::Two, Fate::Row),
    option("replay_skip", &[], Kind::Text, "", "", Tier::Two, Fate::Row),
    option("replay_time_scale", &[], Kind::Number, "100", "", Tier::Two, Fate::Row),
    option("runtime", &["timeout"], Kind::Time, "0", "", Tier::One, Fate::Row),
    option("rw", &["readwrite"], Kind::Text, "read", "read write trim randread randwrite randtrim rw readwrite randrw trimwrite randtrimwrite", Tier::One, Fate::Row),
    option("rw_sequencer", &[], Kind::Text, "sequential", "sequential identical", Tier::Three, Fate::Row),
    option("rwmixread", &[], Kind::Number, "50", "", Tier::One, Fate::Row),
    option("rwmixwrite", &[], Kind::Number, "50", "", Tier::One, Fate::Row),
    option("scramble_buffers", &[], Kind::Bool, "1", "", Tier::OneC, Fate::NoEffect("each 4 KiB that is written is stamped, so that no two are alike")),
    option("serialize_overlap", &[], Kind::Bool, "0", "", Tier::OneC, Fate::Row),
    option("significant_figures", &[], Kind::Number, "4", "", Tier::One, Fate::Output("how many digits text for people has")),
    option("size", &[], Kind::Size, "", "", Tier::One, Fate::Row),
    option("slat_percentiles", &[], Kind::Bool, "0", "", Tier::One, Fate::Row),
    option("sprandom", &[], Kind::Bool, "0", "", Tier::Three, Fate::Only { values: &["0"], reason: "devices are not preconditioned in one pass", instead: "`rw=randwrite` with `loops=2`" }),
    option("startdelay", &[], Kind::Time, "0", "", Tier::One, Fate::Reader("the wait before the first I/O; of a range, each clone draws its own: the same in each run, unless `randseed` is another")),
    option("stats", &[], Kind::Bool, "1", "", Tier::OneC, Fate::Output("a job with 0 is not reported")),
    option("steadystate", &["ss"], Kind::Text, "iops_slope:0.01%", "iops iops_slope bw bw_slope lat lat_slope", Tier::Two, Fate::Row),
    option("steadystate_check_interval", &["ss_interval"], Kind::Time, "1", "", Tier::Two, Fate::Row),
    option("steadystate_duration", &["ss_dur"], Kind::Time, "0", "", Tier::Two, Fate::Row),
    option("steadystate_ramp_time", &["ss_ramp"], Kind::Time, "0", "", Tier::Two, Fate::Row),
    option("stonewall", &["wait_for_previous"], Kind::Flag, "", "", Tier::One, Fate::Reader("the job waits for all before it, and a new reporting group begins")),
    option("sync", &[], Kind::Text, "none", "none 0 sync 1 dsync", Tier::One, Fate::Row),
    option("sync_file_range", &[], Kind::Text, "", "wait_before write wait_after", Tier::Two, Fate::Row),
    option("thinkcycles", &[], Kind::Number, "0", "", Tier::Three, Fate::Only { values: &["0"], reason: "a pause is idle, and counted in I/Os", instead: "`thinktime` and `thinktime_blocks`" }),
    option("thinktime", &[], Kind::Number, "0", "", Tier::One, Fate::Row),
    option("thinktime_blocks", &[], Kind::Number, "1", "", Tier::Two, Fate::Row),
    option("thinktime_blocks_type", &[], Kind::Text, "complete", "complete issue", Tier::Two, Fate::NoEffect("a pause comes after so many I/Os, when all of them have ended; fio does the same, but for its first pause with `complete`, which comes behind what is in flight")),
    option("thinktime_iotime", &[], Kind::Number, "0", "", Tier::Two, Fate::Row),
    option("thinktime_spin", &[], Kind::Number, "0", "", Tier::Two, Fate::Row),
    option("thread", &["threads"], Kind::Flag, "", "", Tier::One, Fate::NoEffect("workers are always threads")),
    option("time_based", &[], Kind::Flag, "", "", Tier::One, Fate::Reader("only `runtime` ends the job; without a `runtime` it has no effect, as in fio")),
    option("trim_backlog", &[], Kind::Text, "", "", Tier::Two, Fate::Row),
    option("trim_backlog_batch", &[], Kind::Number, "", "", Tier::Two, Fate::Row),
    option("trim_percentage", &[], Kind::Number, "0", "", Tier::Two, Fate::Row),
    option("trim_verify_zero", &[], Kind::Bool, "1", "", Tier::Two, Fate::Row),
    option("uid", &[], Kind::Number, "", "", Tier::Two, Fate::Row),
    option("unified_rw_reporting", &[], Kind::Text, "none", "none mixed both 0 1 2", Tier::One, Fate::Row),
    option("unique_filename", &[], Kind::Bool, "1", "", Tier::Three, Fate::Reader("at a server, files that are named for a job in a `directory` have the client's address before their names; 0: not")),
    option("unit_base", &[], Kind::Text, "", "0 8 1", Tier::One, Fate::Output("whether text for people has bytes or bits")),
    option("unlink", &[], Kind::Bool, "0", "", Tier::One, Fate::Row),
    option("unlink_each_loop", &[], Kind::Bool, "0", "", Tier::OneC, Fate::Row),
    option("verify", &[], Kind::Text, "0", "0 md5 crc64 crc32 crc32c-intel crc32c crc16 crc7 sha1 sha256 sha512 sha3-224 sha3-256 sha3-384 sha3-512 xxhash meta pattern pattern_hdr null", Tier::One, Fate::Row),
    option("verify_async", &[], Kind::Number, "0", "", Tier::OneC, Fate::Row),
    option("verify_backlog", &[], Kind::Text, "", "", Tier::OneC, Fate::Row),
    option("verify_backlog_batch", &[], Kind::Number, "", "", Tier::Two, Fate::Row),
    option("verify_dump", &[], Kind::Bool, "0", "", Tier::OneC, Fate::Row),
    option("verify_fatal", &[], Kind::Bool, "0", "", Tier::One, Fate::Row),
    option("verify_header_seed", &[], Kind::Bool, "1", "", Tier::Two, Fate::NoEffect("headers carry the offset and the number of the write")),
    option("verify_interval", &[], Kind::Number, "", "", Tier::OneC, Fate::Row),
    option("verify_offset", &[], Kind::Number, "", "", Tier::Two, Fate::Row),
    option("verify_only", &[], Kind::Flag, "", "", Tier::OneC, Fate::Row),
    option("verify_pattern", &[], Kind::Text, "", "", Tier::OneC, Fate::Row),
    option("verify_pattern_interval", &[], Kind::Number, "0", "", Tier::Two, Fate::Row),
    option("verify_policy", &[], Kind::Text, "completed", "completed fsynced", Tier::Two, Fate::Row),
    option("verify_state_load", &[], Kind::Bool, "", "", Tier::Two, Fate::Row),
    option("verify_state_save", &[], Kind::Bool, "1", "", Tier::OneC, Fate::Row),
    option("verify_write_sequence", &[], Kind::Bool, "1", "", Tier::Two, Fate::NoEffect("headers carry the offset and the number of the write")),
    option("wait_for", &[], Kind::Text, "", "", Tier::OneC, Fate::Reader("the job begins when all clones of the job of that name have ended; others beside it go on")),
    option("write_barrier", &[], Kind::Number, "0", "", Tier::Two, Fate::NoEffect("fio only marks such writes, and no engine that is here looks at the mark; `fsync=N` waits for the disk")),
    option("write_bw_log", &[], Kind::Text, "", "", Tier::One, Fate::Row),
    option("write_hint", &[], Kind::Text, "", "none short medium long extreme", Tier::Three, Fate::Only { values: &["none"], reason: "lifetime hints are not sent", instead: "leave it out" }),
    option("write_hist_log", &[], Kind::Text, "", "", Tier::One, Fate::Row),
    option("write_iolog", &[], Kind::Text, "", "", Tier::Two, Fate::Row),
    option("write_iops_log", &[], Kind::Text, "", "", Tier::One, Fate::Row),
    option("write_lat_log", &[], Kind::Text, "", "", Tier::One, Fate::Row),
    option("write_zone_remainder", &[], Kind::Bool, "", "", Tier::Two, Fate::Row),
    option("zero_buffers", &[], Kind::Flag, "", "", Tier::One, Fate::Row),
    option("zone_reset_frequency", &[], Kind::Floats, "", "", Tier::Two, Fate::Row),
    option("zone_reset_threshold", &[], Kind::Floats, "", "", Tier::Two, Fate::Row),
    option("zonecapacity", &[], Kind::Text, "0", "", Tier::Two, Fate::Row),
    option("zonemode", &[], Kind::Text, "none", "none strided zbd", Tier::Two, Fate::Row),
    option("zonerange", &[], Kind::Text, "0", "", Tier::Two, Fate::Row),
    option("zonesize", &[], Kind::Text, "0", "", Tier::Two, Fate::Row),
    option("zoneskip", &[], Kind::Size, "0", "", Tier::Two, Fate::Row),
    // ---- options of single engines, which `fio --cmdhelp` does not list
    option("hipri", &[], Kind::Flag, "", "", Tier::One, Fate::Row),
    option("fixedbufs", &[], Kind::Flag, "", "", Tier::One, Fate::Row),
    option("registerfiles", &[], Kind::Flag, "", "", Tier::One, Fate::Row),
    option("sqthread_poll", &[], Kind::Flag, "", "", Tier::One, Fate::Row),
    option("uncached", &[], Kind::Number, "", "", Tier::Two, Fate::Row),
    option("sqthread_poll_cpu", &[], Kind::Number, "", "", Tier::One, Fate::Row),
    option("force_async", &[], Kind::Number, "", "", Tier::One, Fate::Row),
    option("nonvectored", &[], Kind::Bool, "", "", Tier::One, Fate::Row),
    option("thp", &[], Kind::Bool, "0", "", Tier::Three, Fate::Refused { reason: "fio's mapping would be a private one, whose writes never reach the file", instead: "leave it out, or `mem=mmaphuge` for buffers in huge pages" }),
    option("stat_type", &[], Kind::Text, "stat", "stat lstat statx", Tier::Three, Fate::Row),
    option("userspace_reap", &[], Kind::Flag, "", "", Tier::Two, Fate::NoEffect("how an I/O is handed over is the engine's choice; it stands in the record")),
    option("nowait", &[], Kind::Bool, "0", "", Tier::Two, Fate::Row),
    option("hipri_percentage", &[], Kind::Number, "100", "", Tier::Two, Fate::Row),
    option("cmdprio_percentage", &[], Kind::Text, "", "", Tier::Two, Fate::Reader("`cmdprio_bssplit` of I/Os of any size; one number, or those of reads and writes")),
    option("cmdprio_class", &[], Kind::Text, "1", "", Tier::Two, Fate::Reader("the class where `cmdprio_bssplit` says none: 1 real time, 2 best effort, 3 idle")),
    option("cmdprio", &[], Kind::Text, "0", "", Tier::Two, Fate::Reader("the level where `cmdprio_bssplit` says none, 0 to 7")),
    option("cmdprio_hint", &[], Kind::Text, "0", "", Tier::Three, Fate::Reader("the hint where `cmdprio_bssplit` says none, 0 to 1023")),
    option("cmdprio_bssplit", &[], Kind::Text, "", "", Tier::Two, Fate::Reader("shares of the I/Os with priorities of their own, by size; not beside `cmdprio_percentage`")),
    option("program", &[], Kind::Text, "", "", Tier::Two, Fate::Reader("what `ioengine=exec` runs, only with `--allow-exec`; the job ends when it ends, and an error of it fails the run")),
    option("arguments", &[], Kind::Text, "", "", Tier::Two, Fate::Reader("the arguments of `program`, separated by blanks; `%r` is the `runtime` in seconds, `%n` the job's name")),
    option("grace_time", &[], Kind::Number, "1", "", Tier::Two, Fate::Reader("seconds that `program` may take to end before it is killed")),
    option("std_redirect", &[], Kind::Bool, "1", "", Tier::Two, Fate::Row),
    option("cpuload", &[], Kind::Number, "", "", Tier::Two, Fate::Row),
    option("cpuchunks", &[], Kind::Time, "", "", Tier::Two, Fate::Row),
    option("cpumode", &[], Kind::Text, "noop", "noop qsort", Tier::Two, Fate::Row),
    option("exit_on_io_done", &[], Kind::Bool, "0", "", Tier::Two, Fate::Row),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands beside an option is what becomes of it: a row of our table is not shadowed by an older word.
    #[test]
    fn an_option_that_our_table_has_says_so_or_says_how_it_is_read() {
        let has_old =
            |option: &&FioOption| option.row().is_some() && !matches!(option.fate, Fate::Row | Fate::Reader(_));
        let shadowed: Vec<&str> = OPTIONS.iter().filter(has_old).map(|option| option.name).collect();
        assert_eq!(shadowed, [""; 0]);
    }
}
