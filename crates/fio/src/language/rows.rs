//! The options that only fio's language has: no option of a [`JobSpec`](trueio_model::JobSpec) is their counterpart.
//!
//! Options with a counterpart are rows of the option table (`trueio_job::table`), which holds fio's names and defaults;
//! none of them is listed here. Options of engines that do not exist here are listed with those engines in `engines.rs`.
//!
//! Source: `fio --cmdhelp=all` of 3.42; for options of single engines HOWTO of fio 3.42.

/// The kinds of values, in fio's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing, 0 or 1; on the command line a value only follows `=`.
    Flag,
    /// 0 or 1.
    Bool,
    /// A number, with a suffix if wanted.
    Number,
    /// A duration.
    Time,
    /// Two numbers.
    Range,
    /// Numbers with fractions, separated by colons.
    Floats,
    /// A size, a percentage or a number of zones.
    Size,
    /// One of these words, separated by blanks; empty: any text.
    Text(&'static str),
}

impl Kind {
    /// Returns its description in `--cmdhelp`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Flag => "flag (0, 1 or nothing)",
            Kind::Bool => "boolean (0 or 1)",
            Kind::Number => "number, with a suffix if wanted (k, m, g)",
            Kind::Time => "time (us, ms, s, m, h, d)",
            Kind::Range => "range of numbers (LOW-HIGH)",
            Kind::Floats => "numbers, separated by colons",
            Kind::Size => "size, or percentage",
            Kind::Text(_) => "text",
        }
    }
}

/// What the language does with an option.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fate {
    /// It sets the row of the option table.
    Row,
    /// It applies the option by this rule.
    Rule(&'static str),
    /// It keeps the value with the job, for fio's outputs.
    Output(&'static str),
    /// It accepts the option, which has no effect for this reason; a note reports that.
    NoEffect(&'static str),
    /// It accepts these values, which change nothing, and refuses all others.
    Only {
        /// The values.
        values: &'static [&'static str],
        /// Why it refuses other values.
        reason: &'static str,
        /// The nearest alternative.
        instead: &'static str,
    },
    /// It refuses the option.
    Refused {
        /// Why.
        reason: &'static str,
        /// The nearest alternative.
        instead: &'static str,
    },
}

/// An option that only fio's language has.
#[derive(Debug, Clone, Copy)]
pub struct FioRow {
    /// The name under which fio lists it.
    pub name: &'static str,
    /// fio's other names.
    pub aliases: &'static [&'static str],
    /// The values that it takes.
    pub kind: Kind,
    /// fio's default; empty: none.
    pub default: &'static str,
    /// What the language does with it.
    pub fate: Fate,
    /// The engines whose own option it is; empty: an option of all jobs.
    pub engines: &'static [&'static str],
}

impl FioRow {
    const fn new(name: &'static str, kind: Kind, default: &'static str, fate: Fate) -> Self {
        Self { name, aliases: &[], kind, default, fate, engines: &[] }
    }

    const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn engines(self, engines: &'static [&'static str]) -> Self {
        Self { engines, ..self }
    }
}

/// The language applies the option by this rule.
const fn rule(name: &'static str, kind: Kind, default: &'static str, rule: &'static str) -> FioRow {
    FioRow::new(name, kind, default, Fate::Rule(rule))
}

/// The option changes fio's outputs.
const fn output(name: &'static str, kind: Kind, default: &'static str, what: &'static str) -> FioRow {
    FioRow::new(name, kind, default, Fate::Output(what))
}

/// The option is accepted and changes nothing.
const fn no_effect(name: &'static str, kind: Kind, default: &'static str, reason: &'static str) -> FioRow {
    FioRow::new(name, kind, default, Fate::NoEffect(reason))
}

/// Only these values are accepted.
const fn only(
    name: &'static str,
    kind: Kind,
    values: &'static [&'static str],
    reason: &'static str,
    instead: &'static str,
) -> FioRow {
    FioRow::new(name, kind, values[0], Fate::Only { values, reason, instead })
}

/// The option is refused.
const fn refused(name: &'static str, kind: Kind, reason: &'static str, instead: &'static str) -> FioRow {
    FioRow::new(name, kind, "", Fate::Refused { reason, instead })
}

const WITH_CMDPRIO: &[&str] = &["io_uring", "libaio"];
const BLKTRACE: &str = "binary traces are neither read nor merged";
const NOT_BLKTRACE: &str = "`blkparse` prints a trace; as lines of an iolog (`read_iolog`), merge them with `sort -n`";
const CLOCK: &str = "the clock with the lowest cost is used, and the record holds its cost";
const CREATION: &str = "files are created one after another and flushed, outside the measured time";
const EXEC: &str = "a shell command before or after the job's phase, only with `--allow-exec`";
const HEADERS: &str = "headers hold the offset and the number of the write";
const LOGS: &str = "logs are written while the job runs and do not stay in memory";
const PLACEMENT: &str = "placement hints are NVMe passthrough";
const WITH_PLACEMENT: &str = "it is read with `dataplacement` only";
const WITH_PLACEMENT_FILE: &str =
    "it is read with `dataplacement` only, so its file need not exist, as it must for fio";
const WITH_MERGE: &str = "it is read with `merge_blktrace_file` only";
const LEAVE_OUT: &str = "leave it out";

/// The rows: what is applied, what changes outputs, what changes nothing, what is accepted in part, what is refused.
pub const ROWS: &[FioRow] = &[
    rule("allow_file_create", Kind::Bool, "1", "0: a file that does not exist is refused"),
    rule("arguments", Kind::Text(""), "", "the arguments of `program`, separated by blanks; `%r` is the `runtime` in seconds, `%n` the job's name")
        .engines(&["exec"]),
    rule("bs_is_seq_rand", Kind::Bool, "0", "1: the sizes of `bs` are those of sequential and of random I/Os, instead of reads and writes"),
    rule("buffered", Kind::Bool, "1", "the opposite of `direct`; the last of the two applies"),
    rule("cmdprio", Kind::Text(""), "0", "the level where `cmdprio_bssplit` has none, 0 to 7").engines(WITH_CMDPRIO),
    rule("cmdprio_class", Kind::Text(""), "1", "the class where `cmdprio_bssplit` has none: 1 real time, 2 best effort, 3 idle")
        .engines(WITH_CMDPRIO),
    rule("cmdprio_hint", Kind::Text(""), "0", "the hint where `cmdprio_bssplit` has none, 0 to 1023").engines(WITH_CMDPRIO),
    rule("cmdprio_percentage", Kind::Text(""), "", "`cmdprio_bssplit` for I/Os of any size; one number, or those of reads and writes")
        .engines(WITH_CMDPRIO),
    rule("cpumask", Kind::Number, "", "`cpus_allowed` as a bit mask"),
    rule("create_on_open", Kind::Bool, "0", "a job that only writes begins with empty files (`fallocate=none`); those of a job that reads are created with data before it, with a note, and with engines of single calls, and for trims, they must exist"),
    rule("dedupe_mode", Kind::Text("repeat working_set"), "repeat", "`working_set`: repeats are drawn from the first `dedupe_working_set_percentage` of the blocks; `repeat`: from 16 blocks"),
    rule("donorname", Kind::Text(""), "", "`e4defrag` needs it; the donor is a new file without a name in the directory of the job's file, so that no existing file is changed")
        .engines(&["e4defrag"]),
    rule("exec_postrun", Kind::Text(""), "", EXEC),
    rule("exec_prerun", Kind::Text(""), "", EXEC),
    rule("filename_format", Kind::Text(""), "$jobname.$jobnum.$filenum", "names of generated files: `$jobname`, `$jobnum`, `$filenum`, `$clientuid`"),
    rule("io_submit_mode", Kind::Text("inline offload"), "inline", "`offload` with an engine of single calls: `iodepth` threads make the calls, as in fio (the engine `posixaio`); another engine submits its I/Os itself, because a thread for each would be another engine. Under a rate, latency counts from the time an I/O was due in either mode"),
    rule("iomem_align", Kind::Number, "0", "bytes between the beginning of a page and that of each buffer (`buffer_offset`), which is how fio applies it; further buffers of fio's queue lie `bs` apart")
        .aliases(&["mem_align"]),
    rule("kb_base", Kind::Text("1024 1000"), "1024", "what `k`, `m`, `g` mean: 1024 (default; `kib` is then 1000) or 1000"),
    rule("lockmem", Kind::Number, "0", "as much memory of the machine is locked (mlock) during the run, for each clone, so that less is left for the page cache"),
    rule("name", Kind::Text(""), "", "the job's name; `numjobs` clones share it"),
    rule("num_range", Kind::Number, "1", "no effect, as in fio, in a job that does not trim; above 1, one that does is refused"),
    rule("opendir", Kind::Text(""), "", "the job reads all regular, non-empty files below the directory, in the order of their names; a job that writes or trims is refused, because only named files are written"),
    rule("random_sequence_stride", Kind::Bool, "0", "each round of `random_distribution=sequence:…` begins as many blocks later as the sequence has"),
    rule("spr_cs", Kind::Number, "0", "with `sprandom`, the size of the disk's cache"),
    rule("spr_num_regions", Kind::Number, "100", "with `sprandom`, the number of parts of the disk"),
    rule("spr_op", Kind::Floats, "0.15", "with `sprandom`, the disk's over-provisioning, between 0 and 1"),
    rule("sprandom", Kind::Bool, "0", "writes the physical capacity of a flash disk once, so that it is in its steady state (`random_distribution=precondition:…`); `io_size` is that capacity"),
    rule("unique_filename", Kind::Bool, "1", "at a server, generated names of files in a `directory` begin with the client's address; 0: they do not"),
    rule("random_generator", Kind::Text("tausworthe lfsr tausworthe64"), "tausworthe", "`lfsr` visits each block once per pass, also with `norandommap`; otherwise no effect: offsets come from one generator of 64 bits, which serves any size"),
    output("description", Kind::Text(""), "", "kept, and shown with the job"),
    output("disk_util", Kind::Bool, "1", "whether the disks are shown"),
    output("significant_figures", Kind::Number, "4", "number of digits in text for people"),
    output("stats", Kind::Bool, "1", "a job with 0 is not reported"),
    output("unit_base", Kind::Text("0 8 1"), "", "whether text for people has bytes or bits"),
    no_effect("allow_mounted_write", Kind::Bool, "0", "a mounted device is never written, whatever this says; files of a mounted filesystem always are"),
    no_effect("block_error_percentiles", Kind::Bool, "0", "failures are listed one by one"),
    no_effect("clocksource", Kind::Text("gettimeofday clock_gettime cpu"), "", CLOCK),
    no_effect("comm", Kind::Text(""), "", "threads have the names of their jobs"),
    no_effect("create_fsync", Kind::Bool, "1", CREATION),
    no_effect("create_serialize", Kind::Bool, "1", CREATION),
    no_effect("dp_scheme", Kind::Text(""), "", WITH_PLACEMENT_FILE),
    no_effect("error_dump", Kind::Bool, "0", "each failure is explained in the result"),
    no_effect("experimental_verify", Kind::Bool, "", "expected content is always generated again, and never kept in a list"),
    no_effect("gtod_cpu", Kind::Number, "", CLOCK),
    no_effect("ioscheduler", Kind::Text(""), "", "the machine is measured as it is; where a disk of the job has another scheduler, the job is refused, with the command that sets it"),
    no_effect("libaio_vectored", Kind::Bool, "0", "an I/O is one piece of memory, so there is no list to submit").engines(&["libaio"]),
    no_effect("log_compression", Kind::Number, "", LOGS),
    no_effect("log_compression_cpus", Kind::Text(""), "", LOGS),
    no_effect("log_entries", Kind::Number, "1024", LOGS),
    no_effect("merge_blktrace_iters", Kind::Floats, "", WITH_MERGE),
    no_effect("merge_blktrace_scalars", Kind::Floats, "", WITH_MERGE),
    no_effect("plid_select", Kind::Text("random roundrobin scheme"), "random", WITH_PLACEMENT).aliases(&["fdp_pli_select"]),
    no_effect("plids", Kind::Text(""), "", WITH_PLACEMENT).aliases(&["fdp_pli"]),
    no_effect("profile", Kind::Text("tiobench act"), "", "in a job file it does nothing, as in fio; on the command line it is refused"),
    no_effect("read_iolog_chunked", Kind::Bool, "0", "a log is always read in pieces"),
    no_effect("recover_zbd_write_error", Kind::Bool, "", "after a failed write the write pointer is always read from the device"),
    no_effect("scramble_buffers", Kind::Bool, "1", "each 4 KiB that is written has a stamp, so that no two are alike"),
    no_effect("softrandommap", Kind::Bool, "0", "a permutation visits each block once without a map; only blocks of several sizes need one"),
    no_effect("thinktime_blocks_type", Kind::Text("complete issue"), "complete", "a pause comes after `thinktime_blocks` I/Os, when all of them have completed; fio does the same, except for the first pause with `complete`, which comes after the I/Os in flight"),
    no_effect("thread", Kind::Flag, "", "workers are always threads").aliases(&["threads"]),
    no_effect("userspace_reap", Kind::Flag, "", "the engine chooses how it submits and reaps; the record holds the choice")
        .engines(&["libaio"]),
    no_effect("verify_async_cpus", Kind::Text(""), "", "the threads of `verify_async` run where the job's other threads do"),
    no_effect("verify_header_seed", Kind::Bool, "1", HEADERS),
    no_effect("verify_write_sequence", Kind::Bool, "1", HEADERS),
    no_effect("verifysort", Kind::Bool, "1", "fio deprecated it"),
    no_effect("verifysort_nr", Kind::Number, "", "fio deprecated it"),
    no_effect("write_barrier", Kind::Number, "0", "fio only marks such writes, and no engine here reads the mark; `fsync=N` waits for the disk"),
    only("dataplacement", Kind::Text("none fdp streams"), &["none"], PLACEMENT, LEAVE_OUT).aliases(&["data_placement"]),
    only("end_syncfs", Kind::Bool, &["0"], "a whole filesystem is not flushed", "`end_fsync=1`"),
    only("filetype", Kind::Text("none file block char"), &["none", "file", "block"], "the type of a file is read from the file", LEAVE_OUT),
    only("job_start_clock_id", Kind::Number, &["0"], "start times are those of the system's clock", LEAVE_OUT),
    only("log_alternate_epoch_clock_id", Kind::Number, &["0"], "the other epoch of logs is that of the system's clock", "`log_alternate_epoch=1`"),
    only("rate_ignore_thinktime", Kind::Bool, &["0"], "pauses are part of the rate", "leave out `thinktime`"),
    only("thinkcycles", Kind::Number, &["0"], "a pause is idle, and counted in I/Os", "`thinktime` and `thinktime_blocks`"),
    refused("fdp", Kind::Bool, PLACEMENT, LEAVE_OUT),
    refused("merge_blktrace_file", Kind::Text(""), BLKTRACE, NOT_BLKTRACE),
    refused("ramp_size", Kind::Text(""), "a ramp is a time", "`ramp_time`"),
    refused("thp", Kind::Bool, "fio's mapping would be a private one, whose writes never reach the file", "leave it out, or `mem=mmaphuge` for buffers in huge pages")
        .engines(&["mmap"]),
];
