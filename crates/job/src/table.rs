//! The option table: what may be asked of a job, once.
//!
//! One row is one option. Its name is fio's name wherever fio has the option; further names that
//! fio accepts are accepted here too. The readers, the flags, `--help`, `docs/job-options.md` and
//! the names in a record are all made from the rows, and tests speak about the table as a whole:
//! no name twice, every default readable, every row with an effect on the plan.
//!
//! Where we differ from fio the row's `detail` says so. The differences of meaning are few:
//! `direct` is `prefer` by default (fio: off), `unlink` is true (fio keeps files), an existing file
//! is written only if `overwrite_existing` names it, and `size` never truncates one, nor extends one that
//! `extend_existing` does not name.

use crate::value::{Choice, ValueKind};
use std::collections::BTreeMap;
use trueio_model::{JobSpec, Origin, SpecValue};

/// One option.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OptionRow {
    /// The name in job files, records and output; `--NAME` is the flag.
    pub name: &'static str,
    /// fio's names for it, other than `name`; accepted wherever `name` is.
    pub fio_names: &'static [&'static str],
    /// Whether fio has the option under `name` or one of `fio_names`.
    pub is_in_fio: bool,
    /// What values it takes.
    pub kind: ValueKind,
    /// The unit of its value, for people.
    pub unit: &'static str,
    /// What holds when nobody says anything.
    pub default: DefaultValue,
    /// One sentence without a full stop: what it does.
    pub summary: &'static str,
    /// What the summary leaves out; empty if nothing.
    pub detail: &'static str,
    /// Where it stands in the documentation.
    pub section: Section,
    /// Options that a nearer word on this one replaces: a job's `bssplit` replaces a `bs` of
    /// `[defaults]`. Both at the same place are a contradiction, which the plan refuses.
    pub replaces: &'static [&'static str],
}

/// What holds when nobody says anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultValue {
    /// This value.
    Text(&'static str),
    /// No value; what happens then, in words.
    Unset(&'static str),
}

/// The sections of the reference, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Which operations, where, how large.
    Pattern,
    /// Files and devices.
    Target,
    /// When a job begins and ends.
    Limits,
    /// Engines, queue depth, batches.
    Engine,
    /// The page cache and durability.
    Durability,
    /// Rates and pauses.
    Pace,
    /// What is written, and whether it is read back.
    Content,
    /// Processors, priority, errors.
    Process,
    /// What is written of it, in fio's formats.
    Output,
}

impl Section {
    /// All of them, in order.
    pub const ALL: [Section; 9] = [
        Section::Pattern,
        Section::Target,
        Section::Limits,
        Section::Engine,
        Section::Durability,
        Section::Pace,
        Section::Content,
        Section::Process,
        Section::Output,
    ];

    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Section::Pattern => "Pattern",
            Section::Target => "Files and devices",
            Section::Limits => "Beginning and end",
            Section::Engine => "Engine and queue",
            Section::Durability => "Page cache and durability",
            Section::Pace => "Rate and pauses",
            Section::Content => "Content and verification",
            Section::Process => "Processors and errors",
            Section::Output => "fio's outputs",
        }
    }
}

impl OptionRow {
    /// The flag: `--iodepth`.
    pub fn flag(&self) -> String {
        format!("--{}", self.name)
    }

    /// Other spellings of the flag, without the dashes: fio's names, and each with hyphens.
    pub fn flag_aliases(&self) -> Vec<String> {
        let names = std::iter::once(self.name).chain(self.fio_names.iter().copied());
        let mut aliases: Vec<String> = self.fio_names.iter().map(|name| (*name).to_owned()).collect();
        aliases.extend(names.filter(|name| name.contains('_')).map(|name| name.replace('_', "-")));
        aliases
    }

    /// True if its value is the name of a file, a directory or a device: whoever lets strangers' words in looks at it.
    pub fn names_path(&self) -> bool {
        matches!(self.kind, ValueKind::Path | ValueKind::Paths)
    }

    /// What stands for the value in `--help`.
    pub fn value_name(&self) -> &'static str {
        self.kind.value_name()
    }

    /// The words it takes; empty if it does not take words.
    pub fn choices(&self) -> &'static [Choice] {
        match self.kind {
            ValueKind::Choice(choices) => choices,
            _ => &[],
        }
    }

    /// True if the flag may stand without a value, and then means true.
    pub fn is_switch(&self) -> bool {
        matches!(self.kind, ValueKind::Bool)
    }

    /// The default, in words: the value, or what happens without one.
    pub fn default_text(&self) -> &'static str {
        match self.default {
            DefaultValue::Text(text) | DefaultValue::Unset(text) => text,
        }
    }

    /// Reads a value and gives its canonical text.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the text.
    pub fn canonical(&self, text: &str) -> Result<String, String> {
        self.kind.read(text).map(|value| self.kind.write(&value))
    }
}

/// The row of a name or of one of its aliases.
pub fn row(name: &str) -> Option<&'static OptionRow> {
    TABLE.iter().find(|row| row.name == name || row.fio_names.contains(&name))
}

/// Where the row of a name stands in the table. The planner asks some hundred times a job.
pub(crate) fn place_of(name: &str) -> Option<usize> {
    let found = BY_NAME.binary_search_by(|place| TABLE[usize::from(*place)].name.as_bytes().cmp(name.as_bytes()));
    found.ok().map(|index| usize::from(BY_NAME[index]))
}

/// The places of the rows, in the order of their names.
const BY_NAME: [u16; TABLE.len()] = {
    let mut places = [0; TABLE.len()];
    let mut count = 0;
    while count < TABLE.len() {
        let mut index = count;
        while index > 0 && is_before(TABLE[count].name.as_bytes(), TABLE[places[index - 1] as usize].name.as_bytes()) {
            places[index] = places[index - 1];
            index -= 1;
        }
        places[index] = count as u16;
        count += 1;
    }
    places
};

/// `one < other`, while compiling.
const fn is_before(one: &[u8], other: &[u8]) -> bool {
    let mut index = 0;
    while index < one.len() && index < other.len() {
        if one[index] != other[index] {
            return one[index] < other[index];
        }
        index += 1;
    }
    one.len() < other.len()
}

/// Lays one level of words over a specification: a job's table over `[defaults]`, flags over both.
/// An option that one of these words replaces (`bs` by `bssplit`) is dropped first, so that the
/// nearer word wins; two that contradict each other within the level both stay, for the plan to
/// refuse.
pub(crate) fn overlay(spec: &mut JobSpec, level: &BTreeMap<&'static str, SpecValue>) {
    for name in level.keys() {
        for replaced in row(name).map_or(&[][..], |row| row.replaces) {
            spec.options.remove(*replaced);
        }
    }
    for (name, value) in level {
        spec.set(name, value.text.clone(), value.origin.clone());
    }
}

/// Lays options over a specification, as one level of words: those of a preset or a study, by their names in the
/// table.
///
/// # Errors
/// A sentence about the first that is not an option or whose value is not acceptable; `spec` is unchanged.
pub fn lay_over<'a>(
    spec: &mut JobSpec,
    options: impl IntoIterator<Item = (&'a str, &'a str)>,
    origin: &Origin,
) -> Result<(), String> {
    let mut level = BTreeMap::new();
    for (name, text) in options {
        let row = row(name).ok_or_else(|| format!("`{name}` is not an option"))?;
        let value = spec_value(row, text, origin.clone()).map_err(|why| format!("`{name}`: {why}"))?;
        level.insert(row.name, value);
    }
    overlay(spec, &level);
    Ok(())
}

/// What to do about a value that a row did not accept, for the `reason` it gave: the nearest of its
/// words; else what it takes, unless the reason says that already.
pub(crate) fn value_hint(row: &OptionRow, text: &str, reason: &str) -> Option<String> {
    let nearest = row
        .choices()
        .iter()
        .map(|choice| (strsim::osa_distance(text, choice.name), choice.name))
        .min()
        .filter(|(distance, name)| *distance <= 1 + name.len() / 3)
        .map(|(_, name)| format!("did you mean `{name}`?"));
    let takes = row.kind.takes();
    nearest.or_else(|| (!reason.contains(&takes)).then(|| format!("it takes {takes}")))
}

/// An option as it was given: the row's name, canonical text, and origin.
pub(crate) fn spec_value(row: &OptionRow, text: &str, origin: Origin) -> Result<SpecValue, String> {
    Ok(SpecValue { text: row.canonical(text)?, origin })
}

/// What to say about a name that is not in the table: what it is called here, or why it is not
/// needed. `None` if nothing comes close.
pub fn suggestion(name: &str) -> Option<String> {
    let plain = name.trim().trim_start_matches('-').replace('-', "_").to_ascii_lowercase();
    if let Some(row) = row(&plain) {
        return Some(format!("did you mean `{}`?", row.name));
    }
    if let Some((_, sentence)) = ELSEWHERE.iter().find(|(word, _)| *word == plain) {
        return Some((*sentence).to_owned());
    }
    // A slip of the finger changes a third of a word at most; beyond that a suggestion is noise.
    let (distance, best) = TABLE
        .iter()
        .flat_map(|row| std::iter::once(row.name).chain(row.fio_names.iter().copied()).map(move |word| (word, row)))
        .map(|(word, row)| (strsim::osa_distance(&plain, word), row))
        .min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + plain.chars().count() / 4 && plain.chars().count() > 1)
        .then(|| format!("did you mean `{}`?", best.name))
}

/// Words that are not options here, and what to write instead.
const ELSEWHERE: &[(&str, &str)] = &[
    ("block_size", "the block size is called `bs`, as in fio"),
    ("buffered", "write `direct = \"off\"` for I/O through the page cache"),
    ("depth", "the queue depth is called `iodepth`, as in fio"),
    ("description", "write a TOML comment (`# …`); descriptions are not kept"),
    ("duration", "the time limit is called `runtime`, as in fio"),
    ("engine", "the engine is called `ioengine`, as in fio"),
    ("file", "the target is called `filename`, as in fio"),
    ("iopoll", "polled completions are called `hipri`, as in fio"),
    ("job", "a job is a table of its own: `[job.NAME]`"),
    ("mode", "the operations are called `rw`, as in fio"),
    ("name", "a job's name stands in its table: `[job.NAME]`"),
    ("offset_increment", "not supported: the workers of a job share its files and offsets"),
    ("path", "the target is called `filename`, as in fio"),
    ("queue_depth", "the queue depth is called `iodepth`, as in fio"),
    ("ramp", "the time before measuring is called `ramp_time`, as in fio"),
    ("rwf", "each flag is an option: `rwf_dsync`, `uncached`, `atomic`, `hipri`"),
    ("seed", "the seed is called `randseed`, as in fio"),
    ("sqpoll", "a polled submission queue is called `sqthread_poll`, as in fio"),
    ("target", "the target is called `filename`, as in fio"),
    ("thread", "not needed: workers are threads"),
    ("threads", "the number of workers is called `numjobs`, as in fio"),
    ("time", "the time limit is called `runtime`, as in fio"),
    ("workers", "the number of workers is called `numjobs`, as in fio"),
];

const fn choice(name: &'static str, aliases: &'static [&'static str], sentence: &'static str) -> Choice {
    Choice { name, aliases, sentence }
}

const RW: &[Choice] = &[
    choice("read", &[], "sequential reads"),
    choice("write", &[], "sequential writes"),
    choice("trim", &[], "sequential trims (discards; holes in files)"),
    choice("randread", &[], "random reads"),
    choice("randwrite", &[], "random writes"),
    choice("randtrim", &[], "random trims"),
    choice("rw", &["readwrite"], "sequential reads and writes, mixed by `rwmixread`"),
    choice("randrw", &[], "random reads and writes, mixed by `rwmixread`"),
    choice("trimwrite", &[], "sequential; each block is trimmed and then written"),
    choice("randtrimwrite", &[], "random; each block is trimmed and then written"),
];

const RW_SEQUENCER: &[Choice] =
    &[choice("sequential", &[], "they go on from it"), choice("identical", &[], "they are all at it")];

const EXIT_WHAT: &[Choice] = &[
    choice("stonewall", &["group"], "the jobs that run at the same time"),
    choice("all", &[], "those, and the run: jobs behind them do not begin"),
];
const ZONE_MODE: &[Choice] = &[
    choice("none", &["0"], "the region is used as a whole"),
    choice("strided", &[], "zones are used one after another"),
    choice("zbd", &[], "zones are written by the rules of zoned devices"),
];

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

const DIRECT: &[Choice] = &[
    choice("require", &["1", "true"], "direct or not at all: refused where it cannot be had"),
    choice("prefer", &[], "direct where it can be had; the record says what was granted"),
    choice("off", &["0", "false"], "through the page cache"),
];

const SYNC: &[Choice] = &[
    choice("none", &["0", "false"], "none"),
    choice("dsync", &[], "O_DSYNC: the data, and what is needed to read it back"),
    choice("sync", &["1", "true"], "O_SYNC: the data and all of the file's metadata"),
];

const CPU_MODE: &[Choice] = &[
    choice("noop", &[], "multiplies numbers: the processor's core is busy, and nothing else"),
    choice("qsort", &[], "sorts 65,536 numbers, up and down: caches are used, too"),
];

const VERIFY_POLICY: &[Choice] = &[
    choice("completed", &[], "all that ended well"),
    choice("fsynced", &[], "those before the last sync call that succeeded: a power cut may take the others"),
];

const LOCKING: &[Choice] = &[
    choice("none", &[], "nobody waits for anybody"),
    choice("exclusive", &[], "one worker at a time does I/O on a file"),
    choice("readwrite", &[], "several may read at a time; who writes or trims is alone"),
];

const FALLOCATE: &[Choice] = &[
    choice("native", &["posix", "1", "true"], "space is allocated before the job, nothing is written to it"),
    choice("truncate", &[], "the file has its length before the job and is a hole: no space is allocated"),
    choice("keep", &[], "space is allocated before the job and the file stays empty: the job extends it"),
    choice("none", &["0", "false"], "the file is created empty and the job extends it"),
];

const INVALIDATE: &[Choice] = &[
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

const MEMORY: &[Choice] = &[
    choice("malloc", &[], "in memory of the process, aligned"),
    choice("mmap", &[], "in a private anonymous mapping"),
    choice("mmapshared", &[], "in a shared anonymous mapping"),
    choice("mmaphuge", &[], "in a mapping of huge pages"),
    choice("shm", &[], "in a segment of System V shared memory"),
    choice("shmhuge", &[], "in such a segment, of huge pages"),
];

const RATE_PROCESS: &[Choice] = &[
    choice("linear", &[], "at equal distances"),
    choice("poisson", &[], "a Poisson process: independent arrivals with exponential distances"),
];

const VERIFY: &[Choice] = &[
    choice("none", &["0"], "nothing is compared"),
    choice("crc32c", &["crc32c-intel"], "CRC-32C"),
    choice("xxhash", &[], "XXH3, 64 bits"),
    choice("md5", &[], "MD5; of this and all longer ones the first 64 bits are kept"),
    choice("crc64", &[], "CRC-64 (XZ)"),
    choice("crc32", &[], "CRC-32"),
    choice("crc16", &[], "CRC-16 (ARC)"),
    choice("crc7", &[], "CRC-7 (MMC)"),
    choice("sha1", &[], "SHA-1"),
    choice("sha256", &[], "SHA-256"),
    choice("sha512", &[], "SHA-512"),
    choice("sha3-224", &[], "SHA3-224"),
    choice("sha3-256", &[], "SHA3-256"),
    choice("sha3-384", &[], "SHA3-384"),
    choice("sha3-512", &[], "SHA3-512"),
    choice("meta", &[], "no checksum: the header's place, write and run"),
    choice("pattern", &[], "no header: the whole block is `verify_pattern`"),
    choice("pattern_hdr", &[], "a header, and behind it `verify_pattern`"),
    choice("null", &[], "nothing is compared, and the blocks are not touched"),
    choice("source", &[], "what `source` sends when it is asked once more"),
];

const CPUS_POLICY: &[Choice] =
    &[choice("split", &[], "each worker has one of them"), choice("shared", &[], "each worker may run on all of them")];

const CONTINUE_ON_ERROR: &[Choice] = &[
    choice("none", &["0", "false"], "the job ends at the first failed I/O"),
    choice("all", &["1", "true", "io"], "failed I/Os are counted and the job goes on; the run still fails"),
    choice("read", &[], "so it does after failed reads, and ends at a failed write"),
    choice("write", &[], "so it does after failed writes and trims, and ends at a failed read"),
    choice("verify", &[], "as `none`: blocks that differ end a job only with `verify_fatal`"),
];

const UNIFIED: &[Choice] = &[
    choice("none", &["0"], "each by itself"),
    choice("mixed", &["1"], "only all of them together"),
    choice("both", &["2"], "each by itself, and all together"),
];

const LOG_WINDOW: &[Choice] = &[
    choice("avg", &["0"], "the mean"),
    choice("max", &["1"], "the largest value"),
    choice("both", &["2"], "the mean, and the largest value in a column behind it"),
];

/// A row with what most rows have; each row below says what is its own.
const BASE: OptionRow = OptionRow {
    name: "",
    fio_names: &[],
    is_in_fio: true,
    kind: ValueKind::Bool,
    unit: "yes or no",
    default: DefaultValue::Text("false"),
    summary: "",
    detail: "",
    section: Section::Pattern,
    replaces: &[],
};

/// Every option, in the order of the documentation.
pub const TABLE: &[OptionRow] = &[
    OptionRow {
        name: "rw",
        fio_names: &["readwrite"],
        kind: ValueKind::Choice(RW),
        unit: "word",
        default: DefaultValue::Text("read"),
        summary: "The operations of the job, and whether they are sequential or random",
        ..BASE
    },
    OptionRow {
        name: "rwmixread",
        kind: ValueKind::Percent,
        unit: "percent",
        default: DefaultValue::Text("50"),
        summary: "The share of reads in `rw` and `randrw`",
        detail: "Drawn for each I/O from the job's seed.",
        replaces: &["rwmixwrite"],
        ..BASE
    },
    OptionRow {
        name: "rwmixwrite",
        kind: ValueKind::Percent,
        unit: "percent",
        default: DefaultValue::Unset("what `rwmixread` leaves"),
        summary: "The share of writes in `rw` and `randrw`, said the other way round",
        replaces: &["rwmixread"],
        ..BASE
    },
    OptionRow {
        name: "bs",
        fio_names: &["blocksize"],
        kind: ValueKind::BlockSizes,
        unit: "bytes",
        default: DefaultValue::Text("4k"),
        summary: "The size of each I/O",
        detail: "Three sizes are for reads, writes and trims (`8k,16k,1m`); of two, the second is for trims too. \
                 A last block that does not fit whole into the region is not issued. At most 1g.",
        replaces: &["bsrange", "bssplit"],
        ..BASE
    },
    OptionRow {
        name: "bsrange",
        fio_names: &["blocksize_range"],
        kind: ValueKind::BlockRanges,
        unit: "bytes",
        default: DefaultValue::Unset("all I/Os have the size `bs`"),
        summary: "Sizes drawn alike from the multiples of the smallest, up to the largest",
        detail: "`4k-64k` draws 4k, 8k, … 64k. Instead of `bs`, not beside it.",
        replaces: &["bs", "bssplit"],
        ..BASE
    },
    OptionRow {
        name: "bssplit",
        kind: ValueKind::BlockSplits,
        unit: "bytes / percent",
        default: DefaultValue::Unset("all I/Os have the size `bs`"),
        summary: "Sizes drawn by weight",
        detail: "`4k/60:64k/40`. The percentages sum to 100, which fio does not check; blank ones share the rest. \
                 Instead of `bs`, not beside it.",
        replaces: &["bs", "bsrange"],
        ..BASE
    },
    OptionRow {
        name: "norandommap",
        summary: "Random offsets are drawn independently, so a block may come twice before all came",
        detail: "By default every block comes exactly once a pass. A distribution other than `random` never keeps \
                 a map.",
        ..BASE
    },
    OptionRow {
        name: "random_distribution",
        kind: ValueKind::Distribution,
        unit: "name and number",
        default: DefaultValue::Text("random"),
        summary: "How random offsets are spread over the blocks",
        detail: "`random`: all alike. `zipf:1.1`: exponent above 0. `pareto:0.2`: 80 % of the I/O to about 20 % of \
                 the blocks. `normal:20`: around the middle, deviation in percent of the region. \
                 A second number is the centre, from 0 to 1 (`zipf:1.1:0.3`): the most popular block, or the middle \
                 of `normal`, is at this part of the region. \
                 `zoned:60/10:40/90`: percent of the I/O / percent of the region, zone by zone, both summing to 100. \
                 `zoned_abs:60/10g:40/90g`: percent of the I/O / bytes, from the region's beginning on; what is behind \
                 the last zone is not used.",
        ..BASE
    },
    OptionRow {
        name: "random_every",
        is_in_fio: false,
        kind: ValueKind::Count { min: 1, max: u64::MAX },
        unit: "I/Os",
        default: DefaultValue::Text("1"),
        summary: "I/Os to one random offset; `rw_sequencer` says where the others go",
        detail: "fio writes it behind `rw`: `rw=randread:8`. Keeps no map.",
        ..BASE
    },
    OptionRow {
        name: "rw_sequencer",
        kind: ValueKind::Choice(RW_SEQUENCER),
        unit: "word",
        default: DefaultValue::Text("sequential"),
        summary: "Where the further I/Os of `random_every` go",
        ..BASE
    },
    OptionRow {
        name: "sequential_skip",
        is_in_fio: false,
        kind: ValueKind::Integer { min: -(1 << 50), max: 1 << 50 },
        unit: "bytes",
        default: DefaultValue::Text("0"),
        summary: "Bytes between the end of a sequential I/O and the next; negative: backwards from the end",
        detail: "fio writes it behind `rw`: `rw=write:4k`.",
        ..BASE
    },
    OptionRow {
        name: "percentage_random",
        kind: ValueKind::Percents,
        unit: "percent",
        default: DefaultValue::Text("100"),
        summary: "The share of a random job's I/Os that have an offset of their own; the others go on from the last",
        detail: "Below 100 it keeps no map. With commas it is that of reads, writes, trims; of two, trims have the second.",
        ..BASE
    },
    OptionRow {
        name: "blockalign",
        fio_names: &["ba"],
        kind: ValueKind::BytesEach,
        unit: "bytes",
        default: DefaultValue::Unset("the block size"),
        summary: "What random offsets are multiples of",
        detail: "Keeps no map, as in fio. With commas it is that of reads, writes, trims; of two, trims have the second.",
        ..BASE
    },
    OptionRow {
        name: "bs_unaligned",
        fio_names: &["blocksize_unaligned"],
        summary: "The sizes of `bsrange` are any number of bytes, not multiples of the smallest",
        detail: "Excludes direct I/O, which becomes `off` if it was preferred. Keeps no map. Sizes of `bs` and `bssplit` are any \
                 number of bytes without it.",
        ..BASE
    },
    OptionRow {
        name: "zonemode",
        kind: ValueKind::Choice(ZONE_MODE),
        unit: "word",
        default: DefaultValue::Text("none"),
        summary: "Whether the region is used zone by zone",
        detail: "`zbd`: a sequential zone is written at its write pointer, one write at a time, and reset when it is full \
                 and written again; reads stay below the pointers; trims reset zones. The zones are the device's; other \
                 devices and files get some of `zonesize`, empty at first. Workers and jobs share write pointers. A \
                 job that writes uses whole zones, and direct I/O on a device with zones.",
        ..BASE
    },
    OptionRow {
        name: "zonesize",
        kind: ValueKind::Bytes,
        unit: "bytes",
        default: DefaultValue::Unset("must be said for zones; a zoned device says its own"),
        summary: "Bytes transferred in a zone before the next; with `zbd` the length of a zone",
        ..BASE
    },
    OptionRow {
        name: "zonerange",
        kind: ValueKind::Bytes,
        unit: "bytes",
        default: DefaultValue::Unset("as much as `zonesize`"),
        summary: "Length of a zone",
        ..BASE
    },
    OptionRow {
        name: "zoneskip",
        kind: ValueKind::Bytes,
        unit: "bytes",
        default: DefaultValue::Text("0"),
        summary: "Bytes between two zones",
        ..BASE
    },
    OptionRow {
        name: "zonecapacity",
        kind: ValueKind::Bytes,
        unit: "bytes",
        default: DefaultValue::Unset("as much as `zonesize`; a zoned device says its own"),
        summary: "Bytes of a zone that can be written",
        ..BASE
    },
    OptionRow { name: "read_beyond_wp", summary: "Reads go beyond write pointers, where nothing was written", ..BASE },
    OptionRow {
        name: "max_open_zones",
        kind: ValueKind::Count { min: 0, max: 1_000_000 },
        unit: "zones",
        default: DefaultValue::Text("0"),
        summary: "Zones partly written at a time, of all jobs together; 0: as many as the device allows",
        detail: "At the limit a write goes to an open zone of the region; where there is none it waits, and a zone that \
                 a job has left is finished.",
        ..BASE
    },
    OptionRow {
        name: "job_max_open_zones",
        kind: ValueKind::Count { min: 0, max: 1_000_000 },
        unit: "zones",
        default: DefaultValue::Text("0"),
        summary: "The same of each worker; 0: not limited",
        ..BASE
    },
    OptionRow {
        name: "ignore_zone_limits",
        summary: "What the device says of open and active zones limits nothing",
        ..BASE
    },
    OptionRow {
        name: "zone_reset_threshold",
        kind: ValueKind::Part,
        unit: "part",
        default: DefaultValue::Text("0"),
        summary: "The part of the region that is written before zones are reset though they have room",
        ..BASE
    },
    OptionRow {
        name: "zone_reset_frequency",
        kind: ValueKind::Part,
        unit: "resets a write",
        default: DefaultValue::Text("0"),
        summary: "How often that is: 0.01 is one reset in a hundred writes",
        ..BASE
    },
    OptionRow {
        name: "write_zone_remainder",
        summary: "What is left of a zone and is less than a block is written by a smaller write",
        ..BASE
    },
    OptionRow {
        name: "randseed",
        kind: ValueKind::Seed,
        unit: "number",
        default: DefaultValue::Unset("derived from a constant and the job's place, the same in each run"),
        summary: "The seed of offsets, sizes, mix, arrivals and content",
        detail: "The same seed gives the same offsets on every engine. Each worker derives its own from it.",
        replaces: &["randrepeat"],
        ..BASE
    },
    OptionRow {
        name: "randrepeat",
        fio_names: &["allrandrepeat"],
        default: DefaultValue::Text("true"),
        summary: "The same seed in each run",
        detail: "If false, the seed differs from run to run; the record keeps it.",
        replaces: &["randseed"],
        ..BASE
    },
    // ---- files and devices ------------------------------------------------------------------
    OptionRow {
        name: "read_iolog",
        kind: ValueKind::Path,
        unit: "path",
        default: DefaultValue::Unset("the pattern is drawn"),
        summary: "A log of I/O (fio's iolog, version 2 or 3) is replayed, each line at its time",
        detail: "The log says what is done: to which files, where, how much, when. It is read once while planning, and \
                 its files go through the same rules as those of `filename`: one that exists is written only if \
                 `overwrite_existing` names it, and none is made longer. Latency counts from the moment of the line. \
                 `-` is standard input, if that is a file. Each worker replays the whole log.",
        section: Section::Pattern,
        ..BASE
    },
    OptionRow {
        name: "replay_no_stall",
        summary: "The log's times are passed over: its I/Os follow each other as fast as the depth allows",
        section: Section::Pattern,
        ..BASE
    },
    OptionRow {
        name: "replay_time_scale",
        kind: ValueKind::Count { min: 1, max: 1_000_000 },
        unit: "%",
        default: DefaultValue::Text("100"),
        summary: "The pace of a replay in percent of the log's; 200 is twice as fast",
        section: Section::Pattern,
        ..BASE
    },
    OptionRow {
        name: "replay_redirect",
        kind: ValueKind::Path,
        unit: "path",
        default: DefaultValue::Unset("each I/O goes to the log's file"),
        summary: "All I/O of a log goes to this file or device",
        section: Section::Pattern,
        ..BASE
    },
    OptionRow {
        name: "replay_align",
        kind: ValueKind::Bytes,
        unit: "bytes",
        default: DefaultValue::Unset("offsets are the log's"),
        summary: "The log's offsets are rounded down to multiples of it, a power of two",
        section: Section::Pattern,
        ..BASE
    },
    OptionRow {
        name: "replay_scale",
        kind: ValueKind::Count { min: 1, max: 1 << 40 },
        unit: "number",
        default: DefaultValue::Text("1"),
        summary: "The log's offsets are divided by it, before `replay_align`",
        section: Section::Pattern,
        ..BASE
    },
    OptionRow {
        name: "replay_skip",
        kind: ValueKind::Names,
        unit: "names",
        default: DefaultValue::Unset("nothing is left out"),
        summary: "What of a log is left out: `read`, `write`, `trim`, `sync`",
        section: Section::Pattern,
        ..BASE
    },
    OptionRow {
        name: "filename",
        kind: ValueKind::Paths,
        unit: "paths",
        default: DefaultValue::Unset("files of its own, `trueio-JOB-N.dat`, under names that must not exist yet"),
        summary: "The files or devices under test",
        detail: "Existing ones are used as they are: never truncated or removed, written only if `overwrite_existing` \
                 names them, and extended only if `extend_existing` does. One that does not exist is created, and removed at the end unless \
                 `unlink` is false. Several are separated by colons, or are a TOML list. All workers share them.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "directory",
        kind: ValueKind::Path,
        unit: "path",
        default: DefaultValue::Unset("the current directory"),
        summary: "The directory of the files",
        detail: "Stands before relative names in `filename` and before the names of generated files.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "extend_existing",
        is_in_fio: false,
        kind: ValueKind::Paths,
        unit: "paths",
        default: DefaultValue::Unset("no existing file is made longer"),
        summary: "Existing files that may be made longer, if the job needs more than they hold",
        detail: "What they hold stays. What is added is prepared as a new file would be, and stays, too.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "file_append",
        summary: "The region used begins where each file ends, and makes it longer by `size`",
        detail: "An existing file must be named in `overwrite_existing` and in `extend_existing`. Jobs that append to one \
                 file do so one behind the other, in the order of the jobs. A further pass (`loops`) goes over the same bytes \
                 again; fio ends after the first.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "overwrite_existing",
        is_in_fio: false,
        kind: ValueKind::Paths,
        unit: "paths",
        default: DefaultValue::Unset("nothing that exists is written"),
        summary: "The existing files or devices that this job may destroy by writing or trimming",
        detail: "Each must be spelled exactly as the target is (`directory` and `filename` joined), so that \
                 destruction is always asked for by name.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "overwrite_signature",
        is_in_fio: false,
        kind: ValueKind::Names,
        unit: "names",
        default: DefaultValue::Unset("a device that carries a signature is not written"),
        summary: "The signatures on block devices that this job may destroy: filesystems, RAID, LVM, partition tables",
        detail: "Each that is found must be named, as `blkid` and `wipefs` call it (`ext4`, `crypto_LUKS`, `gpt`, \
                 `dos` …), and each that is named must be found: a wrong name may mean the wrong device. The device \
                 is named in `overwrite_existing` besides. No name makes a mounted device writable.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "size",
        kind: ValueKind::Extent,
        unit: "bytes, percent or zones",
        default: DefaultValue::Unset("the whole of an existing file or device; must be said for a new file"),
        summary: "How much of the files is used, all files together",
        detail: "Divided evenly over several files. A percentage is of each existing file or device. More than an \
                 existing file holds is refused; fio would rewrite the file.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "filesize",
        kind: ValueKind::BytesRange,
        unit: "bytes",
        default: DefaultValue::Unset("`size`, divided by the number of files"),
        summary: "How much of each single file is used",
        detail: "If it is given, `size` says how much each worker transfers at most: one pass over the files, unless \
                 `io_size` or `loops` say more. `4k-1m` draws each file's size by the job's seed, in whole blocks.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "nrfiles",
        fio_names: &["nr_files"],
        kind: ValueKind::Count { min: 1, max: 65_536 },
        unit: "files",
        default: DefaultValue::Text("1"),
        summary: "How many files are generated",
        detail: "Only without `filename`. All workers share them (fio generates files for each clone).",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "file_service_type",
        kind: ValueKind::FileSelection,
        unit: "name and number",
        default: DefaultValue::Text("roundrobin"),
        summary: "Which of several files the next I/O goes to",
        detail: "`roundrobin`: each in turn. `sequential`: one after another, each to its end. `random`: all alike. A \
                 file whose pass is over waits for the others. A job that draws blocks again (`norandommap`, a \
                 `random_distribution`) has no passes, unless `openfiles` limits the files. \
                 `zipf:1.1`, `pareto:0.2`, `normal:20`: drawn by a distribution over 1024 places a file, in the files' \
                 order, as `random_distribution` has it for blocks; files wait for none. The most popular file is the one \
                 that the seed says, or that where a second number is, from 0 to 1 (`zipf:1.1:0.3`); those behind it \
                 come next. `normal` is around the middle of them; its deviation is in percent of all.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "file_service_ios",
        is_in_fio: false,
        kind: ValueKind::Count { min: 1, max: 1 << 31 },
        unit: "I/Os",
        default: DefaultValue::Text("1"),
        summary: "I/Os to a file before the next one is chosen, unless its pass is over before",
        detail: "fio writes it behind `file_service_type`: `file_service_type=roundrobin:4`.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "openfiles",
        kind: ValueKind::Count { min: 0, max: 65_536 },
        unit: "files",
        default: DefaultValue::Unset("all of them"),
        summary: "How many of several files are in use at a time; 0: all",
        detail: "The next file begins when the pass over one of them is over: for blocks that may come again, when as much \
                 as it holds was transferred. All stay open nevertheless, so that nothing is opened or closed between the \
                 I/Os; the limit of open files is raised as far as the system lets it, and a run that needs more ends \
                 before a file is made, with the number that it needs.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "offset",
        fio_names: &["fileoffset"],
        kind: ValueKind::Extent,
        unit: "bytes, percent or zones",
        default: DefaultValue::Text("0"),
        summary: "Where the region used begins in each file",
        detail: "A percentage is of an existing file or device, rounded down to a whole block.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "offset_align",
        kind: ValueKind::Bytes,
        unit: "bytes",
        default: DefaultValue::Unset("an `offset` in percent is rounded down to a whole block"),
        summary: "What an `offset` in percent is rounded up to a multiple of; 0: the smallest block",
        detail: "fio rounds up to the smallest block if nothing is said, and so does `trueio fio`.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "overwrite",
        summary: "A file created for a write job is filled first, so that the job overwrites",
        detail: "Without it, space is only allocated for jobs that just write, and the filesystem converts \
                 unwritten extents as it goes. Jobs that read or trim always get a really written file.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "fallocate",
        kind: ValueKind::Choice(FALLOCATE),
        unit: "word",
        default: DefaultValue::Text("native"),
        summary: "How space is prepared in a file created for a write job",
        detail: "`none` measures appending: each write extends the file, and `keep` measures it with the space there. \
                 `truncate` measures the first writing of a \
                 sparse file, allocation included.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "unlink",
        default: DefaultValue::Text("true"),
        summary: "Files that the run created are removed at its end, however it ends",
        detail: "fio keeps them. A file that existed before is never removed.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "lockfile",
        kind: ValueKind::Choice(LOCKING),
        unit: "word",
        default: DefaultValue::Text("none"),
        summary: "Workers and jobs that run at the same time and share a file wait for each other's I/O on it",
        detail: "A file is locked from just before an I/O is issued until it has completed, among the jobs that say so. \
                 What a worker keeps in flight is one use of the file; it ends when others wait. Waiting is no part of \
                 the latency, but for jobs with a rate, whose latency counts from when the I/O was due.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "unlink_each_loop",
        summary: "The files are removed before each further pass, and made again, empty",
        detail: "For files that the run creates, in jobs of one worker that only write: a further pass begins where \
                 `loops`, `io_size` or `time_based` go over the files again. What that costs is measured with the job.",
        section: Section::Target,
        ..BASE
    },
    OptionRow {
        name: "create_only",
        summary: "The files are made ready as the job needs them, and no I/O is done",
        detail: "They stay only with `unlink = false`.",
        section: Section::Target,
        ..BASE
    },
    // ---- beginning and end ------------------------------------------------------------------
    OptionRow {
        name: "runtime",
        fio_names: &["timeout"],
        kind: ValueKind::Duration,
        unit: "time",
        default: DefaultValue::Text("0s"),
        summary: "Measured time after which the job ends, ramp excluded; 0: no limit",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "time_based",
        summary: "Only `runtime` and `number_ios` end the job: it starts over when all bytes are done",
        detail: "Refused without `runtime`.",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "ramp_time",
        kind: ValueKind::Duration,
        unit: "time",
        default: DefaultValue::Text("0s"),
        summary: "I/O is done but not recorded for this long before the measured part",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "steady_state",
        is_in_fio: false,
        summary: "The phase is repeated in rounds until it is steady, and measured only then",
        detail: "The rule is SNIA's: over five rounds, throughput and 99th percentile of latency stay within a range of \
                 20 % of their mean, and their fitted line gains or loses at most 10 %. What is measured is a fresh \
                 span after that. If it is not attained, the phase is measured all the same and is suspect. Jobs that \
                 run at the same time must all say the same.",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "steady_state_round",
        is_in_fio: false,
        kind: ValueKind::Duration,
        unit: "time",
        default: DefaultValue::Text("10s"),
        summary: "Length of a round of `steady_state`",
        detail: "A round needs some 400 I/Os, or its 99th percentile is not known.",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "steady_state_rounds",
        is_in_fio: false,
        kind: ValueKind::Count { min: 5, max: 10_000 },
        unit: "rounds",
        default: DefaultValue::Text("25"),
        summary: "Rounds after which `steady_state` is given up",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "io_size",
        fio_names: &["io_limit"],
        kind: ValueKind::Extent,
        unit: "bytes, percent or zones",
        default: DefaultValue::Unset("as much as `size`"),
        summary: "How much each worker transfers in a loop",
        detail: "If it is not given, a loop is one pass over the files, each as far as whole blocks go; what has no end \
                 (blocks that may come again, reads and writes in order) ends when as much as the files hold was \
                 transferred. May be less or more than the files hold. A percentage is of the files' regions together. The last I/O is \
                 a whole one; files that are gone over block by block are not begun again for less than a block.",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "loops",
        kind: ValueKind::Count { min: 1, max: u64::MAX },
        unit: "times",
        default: DefaultValue::Text("1"),
        summary: "How often `io_size` is transferred",
        detail: "What is left of a loop for no whole I/O is transferred in the next; what is left of all is rounded up. Files \
                 that are gone over block by block are gone over in each loop: an `io_size` of more than a pass is then what all \
                 loops together are at least, by whole passes.",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "fill_device",
        fio_names: &["fill_fs"],
        summary: "A sequential write goes on until nothing is free (ENOSPC, EDQUOT), which is its end and no failure",
        detail: "Without `size`, a file is written for as long as there is room; with it, that far at most. A block device \
                 is written to its end, as without it.",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "number_ios",
        kind: ValueKind::Count { min: 0, max: u64::MAX },
        unit: "I/Os",
        default: DefaultValue::Text("0"),
        summary: "I/Os after which a worker ends, for each of its `loops`; 0: no limit",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "startdelay",
        kind: ValueKind::Duration,
        unit: "time",
        default: DefaultValue::Text("0s"),
        summary: "Wait before the job's first I/O",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "stonewall",
        fio_names: &["wait_for_previous"],
        summary: "The job begins when all jobs before it have ended",
        detail: "Without it, jobs run at the same time, as in fio.",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "wait_for",
        kind: ValueKind::Names,
        unit: "names",
        default: DefaultValue::Unset("the job begins with those beside it"),
        summary: "The job begins when all workers of the jobs of these names have ended",
        detail: "They stand before it; others that run beside it go on. Its time, its delay and its ramp count from then. \
                 `stonewall` waits for all, and what it begins is judged by itself.",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "exitall",
        summary: "When a worker of this job ends, all that run at the same time are ended",
        detail: "They end as at their runtime: what they measured stands.",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "steadystate",
        fio_names: &["ss"],
        kind: ValueKind::Criterion,
        unit: "criterion",
        default: DefaultValue::Text("iops_slope:0.01%"),
        summary: "What is to be steady for `steadystate_duration`, which then ends the job",
        detail: "fio's rule. `iops`, `bw`, `lat`: of the window's values none is further than the limit from their mean; \
                 with `_slope`: the straight line through them rises or falls by less than the limit from one to the \
                 next. With `%` the limit is a part of their mean. Jobs that are reported as one group are judged as \
                 one and end together. The figures are of the whole job, unlike those of `steady_state`, which come \
                 from a fresh span after it was steady.",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "steadystate_duration",
        fio_names: &["ss_dur"],
        kind: ValueKind::Duration,
        unit: "time",
        default: DefaultValue::Unset("the job does not end because it is steady"),
        summary: "How long `steadystate` must hold to end the job",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "steadystate_ramp_time",
        fio_names: &["ss_ramp"],
        kind: ValueKind::Duration,
        unit: "time",
        default: DefaultValue::Unset("at once"),
        summary: "How long `steadystate` waits for its first value",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "steadystate_check_interval",
        fio_names: &["ss_interval"],
        kind: ValueKind::Duration,
        unit: "time",
        default: DefaultValue::Unset("1s"),
        summary: "How long each value of `steadystate` is measured",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "exit_what",
        kind: ValueKind::Choice(EXIT_WHAT),
        unit: "word",
        default: DefaultValue::Text("stonewall"),
        summary: "What `exitall` ends",
        section: Section::Limits,
        ..BASE
    },
    OptionRow {
        name: "exitall_on_error",
        summary: "When a worker of this job fails, all that run at the same time are ended",
        detail: "The run has failed in any case, and no later phase begins.",
        section: Section::Limits,
        ..BASE
    },
    // ---- engine and queue -------------------------------------------------------------------
    OptionRow {
        name: "ioengine",
        kind: ValueKind::Choice(ENGINES),
        unit: "word",
        default: DefaultValue::Unset("io_uring where it works; else libaio for a queue, psync or pvsync2 for one I/O"),
        summary: "How I/O is handed to the kernel",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "command",
        is_in_fio: false,
        kind: ValueKind::Words,
        unit: "words",
        default: DefaultValue::Unset("an engine of this program does the I/O"),
        summary: "Another program that does the job's I/O in place of an engine (studies only)",
        detail: "`dd if=/dev/zero of={file} bs={bs} count={count} conv=notrunc`: `{file}` becomes the path of the job's \
                 file, `{bs}`, `{size}` and `{count}` numbers. It is timed from its start to its end, with the sync calls \
                 that the job asks for at its end, and watched as an engine is; what it does within is not seen. \
                 `verify = \"pattern\"` reads back what it should have written. A job file cannot start a program: \
                 only a study can.",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "iodepth",
        kind: ValueKind::Count { min: 1, max: 32_768 },
        unit: "I/Os",
        default: DefaultValue::Text("1"),
        summary: "I/Os that each worker keeps in flight",
        detail: "Engines that block hold one; the plan refuses more, and never lowers it in silence.",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "iodepth_batch",
        fio_names: &["iodepth_batch_submit"],
        kind: ValueKind::Count { min: 1, max: 32_768 },
        unit: "I/Os",
        default: DefaultValue::Unset("adapted to the device's latency, so that batching does not lengthen it"),
        summary: "I/Os handed over in one submission",
        detail: "At most `iodepth`. fio's default is 1.",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "iodepth_batch_complete_min",
        fio_names: &["iodepth_batch_complete"],
        kind: ValueKind::Count { min: 1, max: 32_768 },
        unit: "I/Os",
        default: DefaultValue::Text("1"),
        summary: "Completions waited for at least when the queue is full",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "iodepth_batch_complete_max",
        kind: ValueKind::Count { min: 0, max: 32_768 },
        unit: "I/Os",
        default: DefaultValue::Text("0"),
        summary: "Completions taken at most in one go; 0: all that are there",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "iodepth_low",
        kind: ValueKind::Count { min: 1, max: 32_768 },
        unit: "I/Os",
        default: DefaultValue::Unset("it is refilled as soon as there is room"),
        summary: "Once the queue is full, nothing is issued until so few I/Os are in flight",
        detail: "The depth then swings between this and `iodepth`.",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "serialize_overlap",
        summary: "An I/O that overlaps one in flight waits for it, unless both just read",
        detail: "Within a worker. fio lets reads wait for reads, too.",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "numjobs",
        kind: ValueKind::Count { min: 1, max: 4096 },
        unit: "threads",
        default: DefaultValue::Text("1"),
        summary: "Workers (threads) that do the same to the same files",
        detail: "They share the job's files and differ in their seeds. fio gives each clone files of its own unless \
                 `filename` is said.",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "fixedbufs",
        default: DefaultValue::Text("true"),
        summary: "Buffers are registered with the ring (io_uring)",
        detail: "fio's default is false. The record says if the kernel refused.",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "registerfiles",
        default: DefaultValue::Text("true"),
        summary: "Files are registered with the ring (io_uring)",
        detail: "fio's default is false.",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "sqthread_poll",
        summary: "A kernel thread polls the submission queue (io_uring)",
        detail: "It takes a processor for itself, so a plan with fewer than two processors a worker is refused.",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "sqthread_poll_cpu",
        kind: ValueKind::Count { min: 0, max: 8191 },
        unit: "processor",
        default: DefaultValue::Unset("any"),
        summary: "The processor of the kernel thread of `sqthread_poll`",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "force_async",
        kind: ValueKind::Count { min: 0, max: u32::MAX as u64 },
        unit: "I/Os",
        default: DefaultValue::Text("0"),
        summary: "Every so manyth transfer is given to the kernel's own threads at once (io_uring: IOSQE_ASYNC)",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "nonvectored",
        default: DefaultValue::Text("true"),
        summary: "Transfers are READ and WRITE; without it READV and WRITEV with one piece (io_uring)",
        detail: "With `fixedbufs` they are READ_FIXED and WRITE_FIXED in either case.",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "drain",
        is_in_fio: false,
        summary: "Each I/O begins when all before it have completed (io_uring: IOSQE_IO_DRAIN)",
        detail: "The queue is filled all the same, and the kernel works through it one by one. Not beside `hipri`.",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "hipri",
        summary: "Completions are polled for (io_uring: IOPOLL; pvsync2: RWF_HIPRI)",
        detail: "Needs direct I/O, and becomes `direct = \"require\"` if nothing was said.",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "hipri_percentage",
        kind: ValueKind::Percent,
        unit: "percent",
        default: DefaultValue::Text("100"),
        summary: "Of how many I/Os `hipri` polls for the completion (pvsync2)",
        detail: "Drawn at random. A ring of io_uring polls for all completions or for none.",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "program",
        kind: ValueKind::Words,
        unit: "words",
        default: DefaultValue::Unset("must be said for `exec`"),
        summary: "The program that `exec` runs, with its arguments",
        detail: "Ends the job when it ends, and is ended with the job's `runtime`. A job file alone starts none: only \
                 `trueio fio --allow-exec` does, where arguments stand in `arguments`.",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "grace_time",
        kind: ValueKind::Duration,
        unit: "time",
        default: DefaultValue::Text("1s"),
        summary: "How long the program of `exec` may take to end before it is killed",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "std_redirect",
        default: DefaultValue::Text("true"),
        summary: "What the program of `exec` prints goes to `JOB.stdout` and `JOB.stderr` in the working directory",
        detail: "Otherwise to the standard error of this program.",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "cpuload",
        kind: ValueKind::Count { min: 1, max: 100 },
        unit: "percent",
        default: DefaultValue::Unset("must be said for `cpuio`"),
        summary: "The share of its time for which `cpuio` keeps a processor busy",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "cpuchunks",
        kind: ValueKind::DurationMicros,
        unit: "time (bare: µs)",
        default: DefaultValue::Text("50ms"),
        summary: "Length of a busy span of `cpuio`",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "cpumode",
        kind: ValueKind::Choice(CPU_MODE),
        unit: "word",
        default: DefaultValue::Text("noop"),
        summary: "What `cpuio` does while it is busy",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "exit_on_io_done",
        summary: "`cpuio` ends when all jobs beside it that do I/O have ended",
        detail: "Then it needs no `runtime`. Jobs that wait for it are not waited for.",
        section: Section::Engine,
        ..BASE
    },
    OptionRow {
        name: "simulated",
        is_in_fio: false,
        kind: ValueKind::Simulated,
        unit: "model",
        default: DefaultValue::Text("service=100us,channels=1"),
        summary: "The modelled disk of the `simulated` engine",
        detail: "`service`: time of one I/O. `channels`: how many are served at once. `stall=BEGIN+LENGTH`: a span of \
                 virtual time in which nothing is served. `slow=BEGIN*FACTOR`: from then on an I/O takes FACTOR times \
                 as long. `fail=N`: the I/O that fails, from 0. The last three may be repeated.",
        section: Section::Engine,
        ..BASE
    },
    // ---- page cache and durability ----------------------------------------------------------
    OptionRow {
        name: "direct",
        kind: ValueKind::Choice(DIRECT),
        unit: "word",
        default: DefaultValue::Text("prefer"),
        summary: "Past the page cache, or through it",
        detail: "fio's `direct=1` is `require`, `direct=0` is `off`; fio's default is off. With `prefer`, a block \
                 size that direct I/O cannot transfer makes the plan fall back to the page cache and say so.",
        section: Section::Durability,
        ..BASE
    },
    OptionRow {
        name: "sync",
        kind: ValueKind::Choice(SYNC),
        unit: "word",
        default: DefaultValue::Text("none"),
        summary: "Open flags that make each write durable before it returns",
        section: Section::Durability,
        ..BASE
    },
    OptionRow {
        name: "fsync",
        kind: ValueKind::Count { min: 0, max: u64::MAX },
        unit: "writes",
        default: DefaultValue::Text("0"),
        summary: "`fsync` after every so many writes; 0: never",
        detail: "Not beside `fdatasync`: a job makes one kind of sync call.",
        section: Section::Durability,
        ..BASE
    },
    OptionRow {
        name: "fdatasync",
        kind: ValueKind::Count { min: 0, max: u64::MAX },
        unit: "writes",
        default: DefaultValue::Text("0"),
        summary: "`fdatasync` after every so many writes; 0: never",
        section: Section::Durability,
        ..BASE
    },
    OptionRow {
        name: "end_fsync",
        summary: "`fsync` once at the end, inside the measured time",
        section: Section::Durability,
        ..BASE
    },
    OptionRow {
        name: "end_fdatasync",
        is_in_fio: false,
        summary: "`fdatasync` once at the end, inside the measured time",
        detail: "Not beside `end_fsync` or `fsync_on_close`, which include what it does.",
        section: Section::Durability,
        ..BASE
    },
    OptionRow {
        name: "fsync_on_close",
        summary: "`fsync` of each file before it is closed, inside the measured time",
        detail: "Files are closed when the job has ended, so beside `end_fsync` it adds nothing. fio makes these calls \
                 after the time that it reports.",
        section: Section::Durability,
        ..BASE
    },
    OptionRow {
        name: "sync_file_range",
        kind: ValueKind::RangeSync,
        unit: "writes",
        default: DefaultValue::Unset("never"),
        summary: "`sync_file_range` on what was written since the last call, after every so many writes",
        detail: "It has the kernel write out pages, or waits for them, and makes nothing durable: the disk's cache and \
                 the file's metadata stay as they are. Its calls are counted as sync calls are, and no evidence takes \
                 them for one. Not beside `fsync` or `fdatasync`.",
        section: Section::Durability,
        ..BASE
    },
    OptionRow {
        name: "rwf_dsync",
        is_in_fio: false,
        summary: "Each write carries RWF_DSYNC (pvsync2, libaio, io_uring)",
        detail: "On a device with FUA the write itself is durable and no flush is sent.",
        section: Section::Durability,
        ..BASE
    },
    OptionRow {
        name: "uncached",
        summary: "Each I/O carries RWF_DONTCACHE (pvsync2, libaio, io_uring)",
        detail: "Through the page cache, and the pages are dropped afterwards. Linux 6.14. Excludes direct I/O, and \
                 becomes `direct = \"off\"` if nothing was said.",
        section: Section::Durability,
        ..BASE
    },
    OptionRow {
        name: "nowait",
        summary: "Each I/O carries RWF_NOWAIT (pvsync2, libaio, io_uring): one that would have to wait fails",
        detail: "With EAGAIN (the data is not cached, a lock is held, blocks would be allocated, no request is free), which ends \
                 the job; `continue_on_error = \"all\"` counts such I/Os as failed and goes on. Not every filesystem takes \
                 it for buffered writes.",
        section: Section::Durability,
        ..BASE
    },
    OptionRow {
        name: "atomic",
        summary: "Each write carries RWF_ATOMIC (pvsync2, libaio, io_uring)",
        detail: "All or nothing across a power cut. Linux 6.11. Needs direct I/O, and becomes \
                 `direct = \"require\"` if nothing was said.",
        section: Section::Durability,
        ..BASE
    },
    OptionRow {
        name: "invalidate",
        kind: ValueKind::Choice(INVALIDATE),
        unit: "word",
        default: DefaultValue::Text("start"),
        summary: "When the files' cached pages are dropped",
        detail: "fio's `invalidate=1` is `each_pass`.",
        section: Section::Durability,
        ..BASE
    },
    OptionRow {
        name: "stat_type",
        kind: ValueKind::Choice(STAT),
        unit: "word",
        default: DefaultValue::Text("statx"),
        summary: "The call by which `filestat` and `dirstat` ask about names",
        detail: "fio's default is `stat`.",
        section: Section::Durability,
        ..BASE
    },
    OptionRow {
        name: "fadvise_hint",
        kind: ValueKind::Choice(ADVICE),
        unit: "word",
        default: DefaultValue::Text("none"),
        summary: "What the kernel is told of the way the files will be used (posix_fadvise; madvise of a mapping)",
        detail: "It changes how far buffered reads are read ahead. fio's default is `pattern`.",
        section: Section::Durability,
        ..BASE
    },
    OptionRow {
        name: "pre_read",
        kind: ValueKind::Bool,
        unit: "yes or no",
        default: DefaultValue::Text("false"),
        summary: "The files are read into the page cache before the measured part",
        detail: "For measuring the cache on purpose, or for telling what it does to a measurement. Reads that it then \
                 serves are contradicted by the disk's counters, unless `--accept` names those checks. What does not \
                 fit into memory does not stay there.",
        section: Section::Durability,
        ..BASE
    },
    // ---- rate and pauses --------------------------------------------------------------------
    OptionRow {
        name: "rate",
        kind: ValueKind::RateBytes,
        unit: "bytes/s",
        default: DefaultValue::Text("0"),
        summary: "Bytes a second that each worker offers; 0: as fast as the depth allows",
        detail: "An open loop: latency also counts from the moment an I/O was due, so a stall is charged to every \
                 I/O that was due in it. `20m,5m` gives reads and writes rates of their own, each with its \
                 own schedule; one rate is of all I/Os together. `20m,0` is a rate of reads only: writes have none, and are \
                 made whenever no read is due.",
        section: Section::Pace,
        replaces: &["rate_iops"],
        ..BASE
    },
    OptionRow {
        name: "rate_iops",
        kind: ValueKind::RateIops,
        unit: "I/Os/s",
        default: DefaultValue::Text("0"),
        summary: "I/Os a second that each worker offers; 0: as fast as the depth allows",
        detail: "As `rate`, counted in I/Os, and for reads and writes apart if wanted (`300,100`); not both.",
        section: Section::Pace,
        replaces: &["rate"],
        ..BASE
    },
    OptionRow {
        name: "rate_min",
        fio_names: &["ratemin"],
        kind: ValueKind::RateBytes,
        unit: "bytes/s",
        default: DefaultValue::Text("0"),
        summary: "Bytes a second below which a worker ends the run as failed; 0: none",
        detail: "`1m,2m`: of reads and of writes, each by itself.",
        section: Section::Pace,
        ..BASE
    },
    OptionRow {
        name: "rate_iops_min",
        kind: ValueKind::RateIops,
        unit: "I/Os/s",
        default: DefaultValue::Text("0"),
        summary: "I/Os a second below which a worker ends the run as failed; 0: none",
        section: Section::Pace,
        ..BASE
    },
    OptionRow {
        name: "rate_cycle",
        fio_names: &["ratecycle"],
        kind: ValueKind::Count { min: 1, max: 3_600_000 },
        unit: "ms",
        default: DefaultValue::Text("1000"),
        summary: "Over how long `rate_min` and `rate_iops_min` are averaged",
        detail: "Looked at ten times a second, so no finer than 100.",
        section: Section::Pace,
        ..BASE
    },
    OptionRow {
        name: "max_latency",
        kind: ValueKind::DurationMicros,
        unit: "time (bare: µs)",
        default: DefaultValue::Text("0s"),
        summary: "Latency above which an I/O ends the run as failed; 0: none",
        detail: "Looked at ten times a second.",
        section: Section::Pace,
        ..BASE
    },
    OptionRow {
        name: "latency_target",
        kind: ValueKind::DurationMicros,
        unit: "time (bare: µs)",
        default: DefaultValue::Unset("the queue is as deep as `iodepth` says"),
        summary: "The highest queue depth is looked for, up to `iodepth`, at which I/Os take no longer",
        detail: "Each depth is tried for a `latency_window`, `iodepth` first, then by halves; the job ends when the depth is \
                 found. The figures are of all windows. A window counts the I/Os that were issued and completed in \
                 it, and one without any is longer. If not even one I/O at a time keeps the target, the job runs \
                 to its end; where every I/O must keep it, the run has failed.",
        section: Section::Pace,
        ..BASE
    },
    OptionRow {
        name: "latency_window",
        kind: ValueKind::DurationMicros,
        unit: "time (bare: µs)",
        default: DefaultValue::Unset("`latency_target` needs it"),
        summary: "How long each queue depth is tried for `latency_target`",
        section: Section::Pace,
        ..BASE
    },
    OptionRow {
        name: "latency_percentile",
        kind: ValueKind::Percentiles,
        unit: "percent",
        default: DefaultValue::Text("100"),
        summary: "The share of a window's I/Os that must keep `latency_target`",
        section: Section::Pace,
        ..BASE
    },
    OptionRow {
        name: "latency_run",
        summary: "The job goes on when the queue depth for `latency_target` is found, and adjusts it",
        detail: "After a window that misses the target a lower depth is looked for, after five that keep it a higher one.",
        section: Section::Pace,
        ..BASE
    },
    OptionRow {
        name: "flow",
        kind: ValueKind::Count { min: 0, max: 1000 },
        unit: "weight",
        default: DefaultValue::Unset("the job runs as fast as it can"),
        summary: "Workers of one `flow_id` that run at the same time keep their I/Os in the proportion of these weights; 0: no flow",
        detail: "A worker that is ahead by more than a few I/Os waits for the others. One that begins later begins at par, and one that ends is \
                 not waited for.",
        section: Section::Pace,
        ..BASE
    },
    OptionRow {
        name: "flow_id",
        kind: ValueKind::Count { min: 0, max: u64::MAX },
        unit: "number",
        default: DefaultValue::Unset("0"),
        summary: "Which flow the job belongs to",
        section: Section::Pace,
        ..BASE
    },
    OptionRow {
        name: "flow_sleep",
        kind: ValueKind::DurationMicros,
        unit: "time (bare: µs)",
        default: DefaultValue::Unset("it keeps looking"),
        summary: "How long a worker that is ahead of its flow sleeps before it looks again",
        section: Section::Pace,
        ..BASE
    },
    OptionRow {
        name: "rate_process",
        kind: ValueKind::Choice(RATE_PROCESS),
        unit: "word",
        default: DefaultValue::Text("linear"),
        summary: "How the I/Os of a rate are spread over time",
        section: Section::Pace,
        ..BASE
    },
    OptionRow {
        name: "thinktime",
        kind: ValueKind::DurationMicros,
        unit: "time (bare: µs)",
        default: DefaultValue::Text("0s"),
        summary: "A pause after every `thinktime_blocks` I/Os; 0: none",
        detail: "A bare number is microseconds, as in fio; all other durations are seconds.",
        section: Section::Pace,
        ..BASE
    },
    OptionRow {
        name: "thinktime_blocks",
        kind: ValueKind::Count { min: 1, max: u64::MAX },
        unit: "I/Os",
        default: DefaultValue::Text("1"),
        summary: "I/Os between two pauses",
        section: Section::Pace,
        ..BASE
    },
    OptionRow {
        name: "thinktime_spin",
        kind: ValueKind::DurationMicros,
        unit: "time (bare: µs)",
        default: DefaultValue::Text("0s"),
        summary: "How much of a pause keeps the processor busy",
        section: Section::Pace,
        ..BASE
    },
    OptionRow {
        name: "thinktime_iotime",
        kind: ValueKind::Duration,
        unit: "time",
        default: DefaultValue::Text("0s"),
        summary: "Time of I/O after which a pause comes; 0: `thinktime_blocks` alone says",
        detail: "Beside `thinktime_blocks`, a pause comes after whichever is first.",
        section: Section::Pace,
        ..BASE
    },
    // ---- content and verification -----------------------------------------------------------
    OptionRow {
        name: "zero_buffers",
        summary: "Zeros are written instead of random content",
        detail: "Many devices and filesystems never store zeros; the record says that they were written.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "refill_buffers",
        summary: "Fresh content is generated for every write",
        detail: "Without it the buffers are filled once and each 4 KiB is stamped, so that no two writes are alike.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "buffer_pattern",
        kind: ValueKind::Pattern,
        unit: "bytes",
        default: DefaultValue::Unset("random content"),
        summary: "The same bytes are written over and over, from the beginning of each buffer to its end",
        detail: "`0xdeadface`, `\"text\"`, a decimal number, or several of them in a row. No write differs from another, \
                 and the record says so. In fio's job files and command lines `'name'` is the content of a file.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "mem",
        fio_names: &["iomem"],
        kind: ValueKind::Choice(MEMORY),
        unit: "word",
        default: DefaultValue::Text("malloc"),
        summary: "Where the I/O buffers are",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "hugepage_size",
        is_in_fio: false,
        kind: ValueKind::Bytes,
        unit: "bytes",
        default: DefaultValue::Text("2m"),
        summary: "The size of the huge pages of `mem = \"mmaphuge\"` and `\"shmhuge\"`",
        detail: "fio writes `hugepage-size`.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "buffer_offset",
        is_in_fio: false,
        kind: ValueKind::Count { min: 0, max: 4095 },
        unit: "bytes",
        default: DefaultValue::Text("0"),
        summary: "How far behind an aligned address each I/O buffer begins",
        detail: "Deliberately misaligned: what a program does that takes its buffer from `malloc`. With direct I/O the \
                 kernel refuses such a call with EINVAL, unless the buffer lies within one page and the kernel is \
                 new; `continue_on_error = \"all\"` counts them all.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "buffer_compress_percentage",
        kind: ValueKind::Percent,
        unit: "percent",
        default: DefaultValue::Text("0"),
        summary: "How much of each piece of content compresses away",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "buffer_compress_chunk",
        kind: ValueKind::Bytes,
        unit: "bytes",
        default: DefaultValue::Text("512"),
        summary: "How long the pieces are of which `buffer_compress_percentage` compresses away; 0: as long as the block",
        detail: "The end of each piece is zeros.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "dedupe_percentage",
        kind: ValueKind::Percent,
        unit: "percent",
        default: DefaultValue::Text("0"),
        summary: "The share of blocks that repeat an earlier one",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "dedupe_working_set_percentage",
        kind: ValueKind::Percent,
        unit: "percent",
        default: DefaultValue::Unset("they repeat one of 16 blocks"),
        summary: "Repeated blocks are drawn from as many different ones as this share of the size holds",
        detail: "The first different blocks of a worker are these. fio takes it with `dedupe_mode=working_set`.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "source",
        is_in_fio: false,
        kind: ValueKind::Address,
        unit: "address",
        default: DefaultValue::Unset("what is written is made by this program"),
        summary: "The bytes that are written are fetched from there, in order, as a download does",
        detail: "Plain `http://` with a `Content-Length`, which is the job's `size`; no redirects. Each buffer is filled \
                 from the connection before its write is handed over, and only after its last write completed. The \
                 connection is made before the measured time, the request is sent within it; the time spent with the \
                 source is kept apart from the latencies of the writes. What is left behind the last whole unit of direct \
                 I/O goes through the page cache. No address is contacted but this one, once more while planning if no \
                 `size` is said.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "verify",
        kind: ValueKind::Choice(VERIFY),
        unit: "word",
        default: DefaultValue::Text("none"),
        summary: "What was written is read back and compared, by this",
        detail: "Each block carries a header that names its offset and its write. A job that writes reads its blocks back \
                 at its end; a job that reads compares each block with the header that an earlier job or run left. \
                 Refused where it is not known which write of a block came last: several workers, several block sizes, \
                 offsets that repeat, and a second pass with more than one I/O in flight.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "do_verify",
        default: DefaultValue::Text("true"),
        summary: "A job that writes verifiable blocks reads them back at its end",
        detail: "If false, a later job compares them: one that reads, or one with `verify_only`.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "verify_only",
        summary: "Nothing is written: the blocks that the job would write are read and compared",
        detail: "The job must be the same as the one that wrote, its seed included. With `verify_state_load` it compares \
                 as far as that one came.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "verify_interval",
        kind: ValueKind::Bytes,
        unit: "bytes",
        default: DefaultValue::Unset("one header a block"),
        summary: "From one verification header to the next",
        detail: "A part of the block without a rest, 48 bytes or more.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "verify_offset",
        kind: ValueKind::Bytes,
        unit: "bytes",
        default: DefaultValue::Text("0"),
        summary: "Where in its interval the header stands, exchanged with the data there",
        detail: "0, or 48 bytes or more, so that the header and its place do not overlap.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "verify_pattern",
        kind: ValueKind::BlockPattern,
        unit: "bytes",
        default: DefaultValue::Unset("the job's content"),
        summary: "What fills verified blocks",
        detail: "As `buffer_pattern`, and `%o` is the block's offset, eight bytes with the lowest first.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "verify_pattern_interval",
        kind: ValueKind::Bytes,
        unit: "bytes",
        default: DefaultValue::Unset("once, with the block"),
        summary: "From one beginning of `verify_pattern` to the next",
        detail: "`%o` is then the offset of that beginning: with 512, of each sector.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "verify_policy",
        kind: ValueKind::Choice(VERIFY_POLICY),
        unit: "word",
        default: DefaultValue::Text("completed"),
        summary: "Which writes are compared",
        detail: "`verify_state_load` needs it, too, to compare later, such as after a power cut, what a run that ended had synced. \
                 Where nothing was synced, nothing is compared, and the run fails.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "verify_backlog",
        kind: ValueKind::Count { min: 0, max: 1 << 20 },
        unit: "writes",
        default: DefaultValue::Text("0"),
        summary: "Writes after which they are read back at once; 0: only at the end",
        detail: "Within the measured time, and not counted as reads. What is buffered may come from the page cache; at the \
                 end all is read from the disk once more.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "verify_backlog_batch",
        kind: ValueKind::Count { min: 0, max: 1 << 20 },
        unit: "blocks",
        default: DefaultValue::Text("0"),
        summary: "How many of the `verify_backlog` are read back in one go; 0: all",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "verify_async",
        kind: ValueKind::Count { min: 0, max: 64 },
        unit: "threads",
        default: DefaultValue::Text("0"),
        summary: "Threads that compare what is read back at the end; 0: the worker does",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "verify_fatal",
        summary: "The first block that differs ends the job",
        detail: "A run in which a block differs fails in any case.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "verify_dump",
        summary: "Blocks that differ are kept in files of the current directory",
        detail: "The first 16, as `NAME.OFFSET.received`.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "verify_state_save",
        summary: "How far the job came is kept in a file of the current directory",
        detail: "`local-JOB-WORKER-verify.state`, also when the run is interrupted. fio's default is true.",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "verify_state_load",
        summary: "`verify_only` compares as far as the saved state says, and only what that run wrote",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "trim_percentage",
        kind: ValueKind::Percent,
        unit: "percent",
        default: DefaultValue::Text("0"),
        summary: "The share of verified blocks that is trimmed after it was written",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "trim_verify_zero",
        default: DefaultValue::Text("true"),
        summary: "Trimmed blocks must read as zeros; otherwise they are not looked at",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "trim_backlog",
        kind: ValueKind::Count { min: 0, max: 1 << 20 },
        unit: "writes",
        default: DefaultValue::Text("0"),
        summary: "Writes after which the share `trim_percentage` of them is trimmed",
        section: Section::Content,
        ..BASE
    },
    OptionRow {
        name: "trim_backlog_batch",
        kind: ValueKind::Count { min: 0, max: 1 << 20 },
        unit: "blocks",
        default: DefaultValue::Text("0"),
        summary: "How many blocks `trim_backlog` trims in one go, and the others later; 0: all",
        section: Section::Content,
        ..BASE
    },
    // ---- processors and errors --------------------------------------------------------------
    OptionRow {
        name: "cpus_allowed",
        kind: ValueKind::Cpus,
        unit: "processor numbers",
        default: DefaultValue::Unset("workers are not pinned"),
        summary: "The processors that the workers are pinned to, one each in turn",
        section: Section::Process,
        ..BASE
    },
    OptionRow {
        name: "cpus_allowed_policy",
        kind: ValueKind::Choice(CPUS_POLICY),
        unit: "word",
        default: DefaultValue::Text("split"),
        summary: "How the workers share the processors of `cpus_allowed`",
        detail: "fio's default is `shared`.",
        section: Section::Process,
        ..BASE
    },
    OptionRow {
        name: "numa_cpu_nodes",
        kind: ValueKind::Nodes,
        unit: "node numbers",
        default: DefaultValue::Unset("workers are not pinned"),
        summary: "The nodes on whose processors the workers may run",
        detail: "Each worker on all of them, of those that this process may use. Excludes `cpus_allowed`.",
        section: Section::Process,
        ..BASE
    },
    OptionRow {
        name: "numa_mem_policy",
        kind: ValueKind::MemoryPolicy,
        unit: "policy",
        default: DefaultValue::Unset("left as it is"),
        summary: "The nodes from which the workers' memory comes, I/O buffers included",
        detail: "By set_mempolicy(2), for the workers' threads. Pages of the page cache that a worker brings in come from there, too.",
        section: Section::Process,
        ..BASE
    },
    OptionRow {
        name: "prio",
        kind: ValueKind::Count { min: 0, max: 7 },
        unit: "level",
        default: DefaultValue::Unset("left as it is"),
        summary: "The workers' level of I/O priority, 0 the highest",
        detail: "Within its class: best effort, unless `prioclass` says another. Which schedulers heed it, the kernel \
                 decides: `none` does not.",
        section: Section::Process,
        ..BASE
    },
    OptionRow {
        name: "prioclass",
        kind: ValueKind::Count { min: 0, max: 3 },
        unit: "class",
        default: DefaultValue::Unset("left as it is"),
        summary: "The workers' class of I/O priority: 1 real time, 2 best effort, 3 idle",
        detail: "Real time needs privilege.",
        section: Section::Process,
        ..BASE
    },
    OptionRow {
        name: "priohint",
        kind: ValueKind::Count { min: 0, max: 1023 },
        unit: "hint",
        default: DefaultValue::Text("0"),
        summary: "A hint for the device, beside the workers' I/O priority; 0: none",
        detail: "Linux 6.5; 1 to 7 are limits of duration. Best effort of level 0, unless `prioclass` and `prio` say \
                 another.",
        section: Section::Process,
        ..BASE
    },
    OptionRow {
        name: "cmdprio_bssplit",
        kind: ValueKind::Priorities,
        unit: "shares",
        default: DefaultValue::Unset("all I/Os have the worker's priority"),
        summary: "Shares of the I/Os with a priority of their own: size, percentage, class, level, hint",
        detail: "`4k/10/2/1:64k/5/3/0`: of 4 KiB I/Os 10 % are best effort of level 1, of 64 KiB 5 % are idle. `*` is any \
                 size; `*/20/2/0,` is for reads only, `,*/20/2/0` for writes only. Without class and level they are \
                 real time of level 0, which needs privilege; a hint is a fifth number (Linux 6.5). For `io_uring` and \
                 `libaio`; latencies of each priority stand in the results. In fio's language `cmdprio_percentage`, \
                 `cmdprio_class`, `cmdprio` and `cmdprio_hint` say it too. Which schedulers heed it, the kernel decides.",
        section: Section::Process,
        ..BASE
    },
    OptionRow {
        name: "nice",
        kind: ValueKind::Integer { min: -20, max: 19 },
        unit: "nice value",
        default: DefaultValue::Unset("left as it is"),
        summary: "The workers' nice value",
        detail: "Below 0 needs privilege.",
        section: Section::Process,
        ..BASE
    },
    OptionRow {
        name: "uid",
        kind: ValueKind::Count { min: 0, max: 4_294_967_294 },
        unit: "user's number",
        default: DefaultValue::Unset("who runs the program"),
        summary: "The user that the job acts as",
        detail: "Its files are made and opened, and its I/O is done, with that user's rights, without further groups; what \
                 is looked at beside the I/O, and whether a target may be written, stays ours. Processors, priorities \
                 and the nice value are set before. Another user than who runs the program needs CAP_SETUID and \
                 CAP_SETGID. fio makes files before it changes users, so that its job may not write them.",
        section: Section::Process,
        ..BASE
    },
    OptionRow {
        name: "gid",
        kind: ValueKind::Count { min: 0, max: 4_294_967_294 },
        unit: "group's number",
        default: DefaultValue::Unset("that of who runs the program"),
        summary: "The group that the job acts as",
        detail: "As `uid`. Beside a `uid` alone it stays ours.",
        section: Section::Process,
        ..BASE
    },
    OptionRow {
        name: "continue_on_error",
        kind: ValueKind::Choice(CONTINUE_ON_ERROR),
        unit: "word",
        default: DefaultValue::Text("none"),
        summary: "Whether the job goes on after a failed I/O",
        section: Section::Process,
        ..BASE
    },
    OptionRow {
        name: "ignore_error",
        kind: ValueKind::ErrorLists,
        unit: "errors",
        default: DefaultValue::Unset("none"),
        summary: "Errors that are expected: the job goes on after them, and the run does not fail",
        detail: "Of reads, and behind a comma of writes and trims: `EIO,ENOSPC:EDQUOT`. They are counted and told of; \
                 no figure has them. With `ENOSPC` or `EDQUOT` a write may be short, too. Not for writes of a job that \
                 verifies.",
        section: Section::Process,
        ..BASE
    },
    OptionRow {
        name: "trace_syscalls",
        is_in_fio: false,
        summary: "Every system call of the workers in the measured part is recorded, with its cost",
        detail: "By the kernel's tracepoints, for root only (`--trace-syscalls` is the same flag). Each call costs some \
                 hundred nanoseconds more; the record says what was lost if the kernel's buffers were full. What \
                 the kernel does by itself (io_uring's own threads) is no system call of ours.",
        section: Section::Process,
        ..BASE
    },
    OptionRow {
        name: "strace",
        is_in_fio: false,
        summary: "The phase runs under `strace -f -tt`, to measure what that costs",
        detail: "strace stops the workers twice in every call: what is measured is strace. Its output goes to \
                 `/dev/null`. For studies that repeat what was published so.",
        section: Section::Process,
        ..BASE
    },
    // ---- fio's outputs ----------------------------------------------------------------------
    OptionRow {
        name: "group_reporting",
        default: DefaultValue::Unset("a job's workers are reported together, jobs apart"),
        summary: "In fio's formats the jobs of a group are one result; `false`: each worker is one",
        detail: "With `false` the record keeps each worker's results beside those of all together. fio's default is false.",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "new_group",
        summary: "A group of results begins with this job, even without a stonewall",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "clat_percentiles",
        default: DefaultValue::Text("true"),
        summary: "Percentiles of the completion latency",
        detail: "This and what follows changes what fio's formats show. The record has every latency all the same.",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "lat_percentiles",
        summary: "Percentiles of the total latency",
        detail: "Under a rate they are always there, and count from the moment an I/O was due.",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "slat_percentiles",
        summary: "Percentiles of the submission latency",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "percentile_list",
        kind: ValueKind::Percentiles,
        unit: "percent",
        default: DefaultValue::Text("1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99"),
        summary: "Which percentiles, 20 at most",
        section: Section::Output,
        ..BASE
    },
    OptionRow { name: "disable_clat", summary: "The completion latency is left out", section: Section::Output, ..BASE },
    OptionRow { name: "disable_lat", summary: "The total latency is left out", section: Section::Output, ..BASE },
    OptionRow { name: "disable_slat", summary: "The submission latency is left out", section: Section::Output, ..BASE },
    OptionRow {
        name: "disable_bw_measurement",
        fio_names: &["disable_bw"],
        summary: "Bandwidth and IOPS over time are left out",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "gtod_reduce",
        summary: "All four of them are left out",
        detail: "Every latency is measured all the same; it is cheap, and the record has it.",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "unified_rw_reporting",
        kind: ValueKind::Choice(UNIFIED),
        unit: "word",
        default: DefaultValue::Text("none"),
        summary: "Reads, writes and trims as one",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "bwavgtime",
        kind: ValueKind::Count { min: 1, max: 3_600_000 },
        unit: "ms",
        default: DefaultValue::Text("500"),
        summary: "The span whose bandwidths are compared for minimum, maximum and deviation",
        detail: "Counted in whole rows of the record, which are 100 ms or longer.",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "iopsavgtime",
        kind: ValueKind::Count { min: 1, max: 3_600_000 },
        unit: "ms",
        default: DefaultValue::Text("500"),
        summary: "The same for IOPS",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "write_bw_log",
        kind: ValueKind::Path,
        unit: "path",
        default: DefaultValue::Unset("no log"),
        summary: "Bandwidth is logged while the job runs, in `PATH_bw.N.log`",
        detail: "In fio's columns. `N` counts workers over all jobs. A file of that name is replaced. Lines are \
                 written ten times a second, and memory does not grow; a worker that is faster than its log waits \
                 for it between two I/Os, and the record says so.",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "write_iops_log",
        kind: ValueKind::Path,
        unit: "path",
        default: DefaultValue::Unset("no log"),
        summary: "IOPS are logged, in `PATH_iops.N.log`",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "write_lat_log",
        kind: ValueKind::Path,
        unit: "path",
        default: DefaultValue::Unset("no log"),
        summary: "Latencies are logged, in `PATH_slat.N.log`, `PATH_clat.N.log` and `PATH_lat.N.log`",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "write_hist_log",
        kind: ValueKind::Path,
        unit: "path",
        default: DefaultValue::Unset("no log"),
        summary: "Histograms of completion latencies are logged, in `PATH_clat_hist.N.log`",
        detail: "A line every `log_hist_msec`; without that there are none.",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "write_iolog",
        kind: ValueKind::Path,
        unit: "path",
        default: DefaultValue::Unset("no log"),
        summary: "What is issued is written down while the job runs, in fio's iolog format (version 3), for `read_iolog`",
        detail: "A file of that name is replaced. For a job with one worker. Times count from the worker's beginning.",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "log_avg_msec",
        kind: ValueKind::Count { min: 0, max: 3_600_000 },
        unit: "ms",
        default: DefaultValue::Text("0"),
        summary: "A line is the mean of so many milliseconds; 0: a line an I/O",
        detail: "Lines stand at multiples of it. Without I/O there is a line with 0 in the logs of bandwidth and IOPS.",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "log_hist_msec",
        kind: ValueKind::Count { min: 0, max: 3_600_000 },
        unit: "ms",
        default: DefaultValue::Text("0"),
        summary: "A histogram is logged every so many milliseconds",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "log_hist_coarseness",
        kind: ValueKind::Count { min: 0, max: 6 },
        unit: "times",
        default: DefaultValue::Text("0"),
        summary: "How often neighbouring columns of a histogram are joined in pairs",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "log_offset",
        summary: "Logs have a column with each I/O's offset",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "log_prio",
        summary: "The last column of the logs is each I/O's priority as the kernel's number, in hexadecimal",
        detail: "Without it the column is 1 for I/Os of the class real time and 0 for all others. Averages have 0.",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "log_issue_time",
        summary: "The last column of the logs is when each I/O was issued, in nanoseconds",
        detail: "It counts from where the log's times begin, also with `log_alternate_epoch`: from the beginning of the measured \
                 part. Averages, and what was issued in the ramp, have 0; in fio all lines of `lat`, bandwidth and IOPS \
                 have it, too.",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "log_window_value",
        fio_names: &["log_max_value"],
        kind: ValueKind::Choice(LOG_WINDOW),
        unit: "word",
        default: DefaultValue::Text("avg"),
        summary: "What a line of averaged latencies says",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "log_alternate_epoch",
        fio_names: &["log_unix_epoch"],
        summary: "Times in logs are milliseconds since 1970, not since the measured part began",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "log_store_compressed",
        summary: "Logs are stored compressed, as fio stores them, under names that end with `.fz`",
        detail: "`fio --inflate-log=FILE` prints their lines. Histograms stay text. A run that is killed loses up to 64 KiB \
                 of each log, of what that is before it is compressed.",
        section: Section::Output,
        ..BASE
    },
    OptionRow {
        name: "per_job_logs",
        default: DefaultValue::Text("true"),
        summary: "Each worker has log files of its own; `false`: those of a job share them, without a number",
        detail: "Jobs that name the same prefix share them, too, in all phases of a run.",
        section: Section::Output,
        ..BASE
    },
];

#[cfg(test)]
mod tests {
    #[test]
    fn every_row_is_found_where_it_stands_and_nothing_else_is() {
        for (place, row) in TABLE.iter().enumerate() {
            assert_eq!(place_of(row.name), Some(place));
        }
        for name in ["", "r", "rwm", "rwmixreads", "zzz", "RW"] {
            assert_eq!(place_of(name), None, "{name}");
        }
    }

    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_name_stands_twice_in_the_table_aliases_and_other_words_included() {
        let mut seen = BTreeSet::new();
        for row in TABLE {
            for name in std::iter::once(&row.name).chain(row.fio_names) {
                assert!(seen.insert(*name), "`{name}` stands twice");
            }
        }
        for (word, _) in ELSEWHERE {
            assert!(seen.insert(word), "`{word}` is an option and explained as none");
        }
    }

    #[test]
    fn every_row_has_a_unit_a_default_and_a_sentence_without_full_stop() {
        for row in TABLE {
            assert!(!row.unit.is_empty(), "{}", row.name);
            assert!(!row.default_text().is_empty(), "{}", row.name);
            assert!(row.summary.len() > 10 && !row.summary.ends_with('.'), "{}", row.name);
            assert!(row.detail.is_empty() || row.detail.ends_with('.'), "{}", row.name);
            for choice in row.choices() {
                assert!(!choice.sentence.is_empty() && !choice.sentence.ends_with('.'), "{}", row.name);
            }
        }
    }

    #[test]
    fn every_default_is_accepted_by_its_own_row_in_canonical_text() {
        for row in TABLE {
            if let DefaultValue::Text(text) = row.default {
                assert_eq!(row.canonical(text).as_deref(), Ok(text), "{}", row.name);
            }
        }
    }

    #[test]
    fn no_word_of_a_choice_stands_twice() {
        for row in TABLE {
            let mut seen = BTreeSet::new();
            for choice in row.choices() {
                for word in std::iter::once(&choice.name).chain(choice.aliases) {
                    assert!(seen.insert(*word), "{}: `{word}` stands twice", row.name);
                }
            }
        }
    }

    #[test]
    fn replacement_names_rows_of_the_table_and_is_mutual() {
        for row in TABLE {
            for replaced in row.replaces {
                let other = TABLE.iter().find(|other| other.name == *replaced);
                assert!(other.is_some_and(|o| o.replaces.contains(&row.name)), "{} and {replaced}", row.name);
            }
        }
    }

    /// Goal: who knows fio need not learn a second language.
    /// Method: the list of fio 3.42's options stands in `tests/fio-names.txt` (name, alias), made
    /// from `fio --cmdhelp`; the options of single engines, which that list lacks, stand here.
    #[test]
    fn a_row_that_says_it_is_fios_is_in_fios_own_list_and_no_other_is() {
        const OF_ENGINES: [&str; 19] = [
            "hipri",
            "fixedbufs",
            "registerfiles",
            "sqthread_poll",
            "sqthread_poll_cpu",
            "force_async",
            "nonvectored",
            "program",
            "grace_time",
            "std_redirect",
            "uncached",
            "cmdprio_bssplit",
            "nowait",
            "cpuload",
            "cpuchunks",
            "cpumode",
            "exit_on_io_done",
            "hipri_percentage",
            "stat_type",
        ];
        const OF_EARLIER_VERSIONS: [&str; 0] = [];
        let known: BTreeSet<&str> = include_str!("../tests/fio-names.txt")
            .split_whitespace()
            .chain(OF_ENGINES)
            .chain(OF_EARLIER_VERSIONS)
            .collect();
        for row in TABLE {
            assert_eq!(row.is_in_fio, known.contains(row.name), "{}", row.name);
            for alias in row.fio_names {
                assert!(known.contains(alias), "{}: `{alias}` is not fio's", row.name);
            }
        }
    }

    #[test]
    fn a_near_miss_gets_the_option_that_was_meant_and_a_far_one_nothing() {
        let of = |name| suggestion(name);
        assert_eq!(of("iodpeth").as_deref(), Some("did you mean `iodepth`?"));
        assert_eq!(of("bfs").as_deref(), Some("did you mean `bs`?"));
        assert_eq!(of("--time-based").as_deref(), Some("did you mean `time_based`?"));
        assert_eq!(of("queue_depth").as_deref(), Some("the queue depth is called `iodepth`, as in fio"));
        assert_eq!(of("zzzzzzzz"), None);
        assert_eq!(of("x"), None);
    }

    #[test]
    fn a_nearer_word_replaces_its_alternative_and_two_at_one_place_both_stay() {
        let value = |text: &str| SpecValue { text: text.into(), origin: Origin::Default };
        let mut spec = JobSpec::new("a");
        overlay(&mut spec, &BTreeMap::from([("bs", value("4k"))]));
        overlay(&mut spec, &BTreeMap::from([("bssplit", value("4k/50:8k/50"))]));
        assert_eq!(spec.options.keys().collect::<Vec<_>>(), ["bssplit"]);
        overlay(&mut spec, &BTreeMap::from([("bs", value("4k")), ("bsrange", value("4k-8k"))]));
        assert_eq!(spec.options.keys().collect::<Vec<_>>(), ["bs", "bsrange"]);
    }
}
