//! `ior`: its options become a job that writes and a job that reads, for each repetition.
//!
//! One rank is one task. A job of this program is prepared before its measured part, and the ranks begin together at an agreed
//! instant, so opening and creating files is not part of the time, and IOR's barriers (`-g`) are always there. The page cache
//! is dropped before each phase, which IOR does not do.
//!
//! Source: IOR 4.0: `parse_options.c`, `ior.c`.

pub mod output;

use crate::words::{Fate, Given, Known, note, number, read, size};
use crate::{Lowered, figures, job};
use trueio_model::{JobSpec, RunRecord};

/// A command line of IOR.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ior {
    /// The file (`-o`).
    pub file: String,
    /// Bytes of each task in a segment (`-b`).
    pub block_bytes: u64,
    /// Bytes of an I/O (`-t`).
    pub transfer_bytes: u64,
    /// Segments (`-s`).
    pub segments: u64,
    /// Repetitions (`-i`).
    pub repetitions: u64,
    /// A file for each task (`-F`).
    pub file_per_task: bool,
    /// It writes (`-w`).
    pub writes: bool,
    /// It reads (`-r`).
    pub reads: bool,
    /// `fsync` after writing (`-e`).
    pub fsync: bool,
    /// `fsync` after each write (`-Y`).
    pub fsync_per_write: bool,
    /// Files stay (`-k`).
    pub keeps: bool,
    /// An existing file is written (`-E`).
    pub uses_existing: bool,
    /// Each task reads what one on another host wrote (`-C`), this number of hosts away (`-Q`).
    pub reorder: Option<u64>,
    /// Each task reads what a random one wrote (`-Z`), with this seed (`-X`).
    pub reorder_random: Option<u64>,
    /// The number of hosts of `-Q`, for both.
    pub distance: u64,
    /// Seconds after which each phase ends (`-D`).
    pub deadline_s: u64,
    /// All tasks then complete the work of the one with the most (`-O stoneWallingWearOut=1`).
    pub wears_out: bool,
    /// Random offsets (`-z`), and their seed.
    pub random: bool,
    /// Random offsets that may repeat (`-z -z`).
    pub overlaps: bool,
    /// The seed (`--random-offset-seed`).
    pub seed: u64,
    /// Direct I/O.
    pub direct: bool,
    /// Each repetition has a file of its own (`-m`).
    pub multi_file: bool,
    /// Each task has a directory of its own (`-u`).
    pub unique_directory: bool,
    /// What was written is read and compared (`-W`).
    pub checks_writes: bool,
    /// What is read is compared (`-R`).
    pub checks_reads: bool,
    /// The content can be compared later, by another command (`-G`).
    pub is_signed: bool,
    /// Seconds before each phase (`-d`).
    pub delay_s: u64,
    /// Tasks that take part (`-N`); 0: all.
    pub task_count: u64,
    /// Where the number of transfers of a task is kept (`-O stoneWallingStatusFile`).
    pub status_file: Option<String>,
    /// Transfers after which a task ends (`-O stoneWallingWearOutIterations`); 0: all.
    pub iterations: u64,
    /// The file that gets the summary instead of stdout (`-O summaryFile`).
    pub summary_file: Option<String>,
    /// What is printed (`-O summaryFormat`).
    pub format: Format,
    /// A number for the summary (`-A`).
    pub reference: u64,
    /// Only the jobs are printed (`--dryRun`).
    pub is_dry: bool,
}

/// The format of the summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Tables.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// A line for each result.
    Csv,
}

const MPI: &str = "files are read and written by POSIX calls; MPI and other libraries are not linked";

const fn used(letter: char, takes_value: bool) -> Known {
    Known { letter, name: "", takes_value, fate: Fate::Used }
}

const fn noted(letter: char, takes_value: bool, why: &'static str) -> Known {
    Known { letter, name: "", takes_value, fate: Fate::Noted(why) }
}

const fn refused(letter: char, takes_value: bool, why: &'static str, instead: &'static str) -> Known {
    Known { letter, name: "", takes_value, fate: Fate::Refused(why, instead) }
}

const fn long(name: &'static str, takes_value: bool, fate: Fate) -> Known {
    Known { letter: '\0', name, takes_value, fate }
}

const KNOWN: &[Known] = &[
    used('a', true),
    used('A', true),
    used('b', true),
    used('B', false),
    Known { letter: 'c', name: "collective", takes_value: false, fate: Fate::Refused(MPI, "leave it out") },
    used('C', false),
    used('d', true),
    used('D', true),
    used('e', false),
    used('E', false),
    refused('f', true, "configuration files are not read", "give the options on the command line, or write a job file"),
    used('F', false),
    noted('g', false, "all ranks begin each phase together at an agreed instant"),
    used('G', true),
    used('i', true),
    noted('j', true, "the check `straggler` reports ranks that are slower than the others"),
    used('k', false),
    noted('K', false, "nothing is compared, so no file has errors"),
    Known {
        letter: 'l',
        name: "dataPacketType",
        takes_value: true,
        fate: Fate::Noted("the content is random, so that no layer can leave it out"),
    },
    used('m', false),
    noted('M', true, "no memory is occupied: the page cache is dropped on each host before each phase"),
    used('N', true),
    used('o', true),
    used('O', true),
    used('Q', true),
    used('r', false),
    used('R', false),
    used('s', true),
    used('t', true),
    used('T', true),
    used('u', false),
    noted('v', false, "`trueio report` prints every detail of the record"),
    used('w', false),
    used('W', false),
    noted('x', false, "a short transfer is never completed by a second one"),
    used('X', true),
    refused('y', false, "there is one mount point", "leave it out"),
    used('Y', false),
    used('z', false),
    used('Z', false),
    long("random-offset-seed", true, Fate::Used),
    long(
        "randomPrefill",
        true,
        Fate::Refused("files are not filled before", "write them first with `-w -k`, then run `-w -E -z`"),
    ),
    long("warningAsErrors", false, Fate::Noted("the exit code is 1 if evidence contradicts a figure")),
    long("posix.odirect", false, Fate::Used),
    long("dryRun", false, Fate::Used),
];

/// Names of `-O NAME=VALUE`, in lower case, and the options that they are; a flag is set by 1, and 0 sets nothing.
const DIRECTIVES: &[(&str, &str)] = &[
    ("api", "a"),
    ("blocksize", "b"),
    ("checkread", "R"),
    ("checkwrite", "W"),
    ("collective", "c"),
    ("datapackettype", "l"),
    ("deadlineforstonewalling", "D"),
    ("dualmount", "y"),
    ("fileperproc", "F"),
    ("fsync", "e"),
    ("fsyncperwrite", "Y"),
    ("intertestdelay", "d"),
    ("intratestbarriers", "g"),
    ("keepfile", "k"),
    ("keepfilewitherror", "K"),
    ("maxtimeduration", "T"),
    ("memorypernode", "M"),
    ("memorypertask", "M"),
    ("mintimeduration", "minTimeDuration"),
    ("multifile", "m"),
    ("numtasks", "N"),
    ("outlierthreshold", "j"),
    ("randomoffset", "z"),
    ("readfile", "r"),
    ("refnum", "A"),
    ("reordertasks", "C"),
    ("reordertasksconstant", "C"),
    ("reordertasksrandom", "Z"),
    ("reordertasksrandomseed", "X"),
    ("repetitions", "i"),
    ("segmentcount", "s"),
    ("settimestampsignature", "G"),
    ("singlexferattempt", "x"),
    ("stonewallingstatusfile", "statusFile"),
    ("stonewallingwearout", "wearout"),
    ("stonewallingwearoutiterations", "iterations"),
    ("summaryalways", "v"),
    ("summaryfile", "summaryFile"),
    ("summaryformat", "format"),
    ("taskpernodeoffset", "Q"),
    ("testfile", "o"),
    ("transfersize", "t"),
    ("uniquedir", "u"),
    ("useexistingtestfile", "E"),
    ("useo_direct", "posix.odirect"),
    ("verbose", "v"),
    ("warningaserrors", "warningAsErrors"),
    ("writefile", "w"),
];

impl Default for Ior {
    fn default() -> Self {
        Self {
            file: "testFile".to_owned(),
            block_bytes: 1 << 20,
            transfer_bytes: 256 << 10,
            segments: 1,
            repetitions: 1,
            file_per_task: false,
            writes: false,
            reads: false,
            fsync: false,
            fsync_per_write: false,
            keeps: false,
            uses_existing: false,
            reorder: None,
            reorder_random: None,
            distance: 1,
            deadline_s: 0,
            wears_out: false,
            random: false,
            overlaps: false,
            seed: 1,
            direct: false,
            multi_file: false,
            unique_directory: false,
            checks_writes: false,
            checks_reads: false,
            is_signed: false,
            delay_s: 0,
            task_count: 0,
            status_file: None,
            iterations: 0,
            summary_file: None,
            format: Format::Text,
            reference: 0,
            is_dry: false,
        }
    }
}

impl Ior {
    /// Reads a command line, without the program's name. Sentences about options that change nothing go to `notes`.
    ///
    /// # Errors
    /// An option that is unknown or not done here, or options that contradict each other.
    pub fn read(words: &[String], notes: &mut Vec<String>) -> Result<Self, String> {
        let mut ior = Self::default();
        let mut max_minutes = 0;
        let (mut reorders, mut reorders_randomly, mut reorder_seed, mut shuffles) = (false, false, 0, 0);
        for Given { key, value } in directives(read("ior", words, KNOWN, notes)?, notes)? {
            let count = |text: &str| number(&format!("-{key}"), text);
            match key.as_str() {
                "a" if value.eq_ignore_ascii_case("posix") => {}
                "a" => {
                    return Err(format!(
                        "`-a {value}` of ior is not done here\n  because: {MPI}\n\nhint: use `-a POSIX`"
                    ));
                }
                "A" => ior.reference = count(&value)?,
                "b" => ior.block_bytes = size("-b", &value)?,
                "B" | "posix.odirect" => ior.direct = true,
                "C" => reorders = true,
                "d" => ior.delay_s = count(&value)?,
                "D" => ior.deadline_s = count(&value)?,
                "e" => ior.fsync = true,
                "E" => ior.uses_existing = true,
                "F" => ior.file_per_task = true,
                "G" => ior.is_signed = true,
                "i" => ior.repetitions = count(&value)?.max(1),
                "k" => ior.keeps = true,
                "m" => ior.multi_file = true,
                "N" => ior.task_count = count(&value)?,
                "o" => ior.file = value,
                "Q" => ior.distance = count(&value)?,
                "r" => ior.reads = true,
                "R" => (ior.reads, ior.checks_reads) = (true, true),
                "s" => ior.segments = size("-s", &value)?,
                "t" => ior.transfer_bytes = size("-t", &value)?,
                "T" => max_minutes = count(&value)?,
                "u" => ior.unique_directory = true,
                "w" => ior.writes = true,
                "W" => ior.checks_writes = true,
                "wearout" => ior.wears_out = true,
                "statusFile" => ior.status_file = Some(value),
                "iterations" => ior.iterations = number("-O stoneWallingWearOutIterations", &value)?,
                "summaryFile" => ior.summary_file = Some(value),
                "format" => ior.format = format_of(&value)?,
                "X" => {
                    let number = value.trim_start_matches('-');
                    reorder_seed = number.parse().map_err(|_| format!("`-X {value}` is no whole number"))?;
                }
                "Y" => ior.fsync_per_write = true,
                "z" => shuffles += 1,
                "Z" => reorders_randomly = true,
                "random-offset-seed" => ior.seed = count(&value)?,
                "dryRun" => ior.is_dry = true,
                _ => {}
            }
        }
        if !ior.reads && !ior.writes && !ior.checks_writes {
            (ior.reads, ior.writes) = (true, true);
        }
        (ior.random, ior.overlaps) = (shuffles > 0, shuffles > 1);
        ior.reorder = reorders.then_some(ior.distance);
        ior.reorder_random = reorders_randomly.then_some(reorder_seed);
        // It ends no repetition that has begun.
        if max_minutes > 0 && ior.repetitions > 1 {
            return Err(format!(
                "`-T {max_minutes}` with `-i {}` of ior is not done here\n  because: the number of repetitions is fixed before \
                 the first\n\nhint: set fewer with `-i`, or a deadline for each with `-D`",
                ior.repetitions
            ));
        }
        ior.check()?;
        Ok(ior)
    }

    fn check(&self) -> Result<(), String> {
        let Self { block_bytes, transfer_bytes, .. } = self;
        if !block_bytes.is_multiple_of(*transfer_bytes) {
            return Err(format!("`-b` is {block_bytes} bytes, which is no multiple of `-t`, {transfer_bytes} bytes"));
        }
        if self.reorder.is_some() && self.reorder_random.is_some() {
            return Err("`-C` and `-Z` both set the task whose region is read\n\nhint: use one of them".into());
        }
        if self.unique_directory && !self.file_per_task {
            return Err("`-u` gives each task a directory for its file, and needs `-F`\n\nhint: add `-F`".into());
        }
        if self.status_file.is_some() && self.writes && !self.keeps && !self.reads {
            return Err(
                "`-O stoneWallingStatusFile` is for a file that another command reads, and this one removes it\n\n\
                        hint: add `-k`"
                    .into(),
            );
        }
        if self.checks_writes && !self.writes {
            return Err("`-W` compares what this command wrote, and `-w` is not set\n\nhint: `-R` reads and compares \
                        what an earlier command wrote with `-G`"
                .into());
        }
        if self.overlaps && (self.checks_writes || self.checks_reads) {
            return Err(
                "`-z -z` leaves parts of the file unwritten, so `-W` and `-R` have nothing to compare there\n\n\
                        hint: use one `-z`"
                    .into(),
            );
        }
        if self.file.contains('@') {
            return Err(
                "several files (`@` in `-o`) are not done here\n\nhint: name one file, or put `$rank` into its path"
                    .into(),
            );
        }
        Ok(())
    }

    /// Returns the name of a phase in a repetition, from 0: `write`, `write-2`.
    fn name(&self, phase: &str, repetition: u64) -> String {
        if self.repetitions == 1 { phase.to_owned() } else { format!("{phase}-{}", repetition + 1) }
    }

    /// Returns the name of the file of a repetition, with `rank` and `rank8` for its task.
    fn path(&self, repetition: u64, rank: &str, rank8: &str) -> String {
        let mut path = self.file.clone();
        if self.unique_directory {
            let (directory, name) = path.rsplit_once('/').map_or((".", path.as_str()), |(at, name)| (at, name));
            path = format!("{directory}/{rank}/{name}");
        }
        if self.file_per_task {
            path = format!("{path}.{rank8}");
        }
        if self.multi_file { format!("{path}.{repetition}") } else { path }
    }

    /// Returns the file of a repetition in the language of jobs.
    fn file_of(&self, repetition: u64) -> String {
        // A colon separates files.
        self.path(repetition, "$rank", "${rank8}").replace(':', "\\:")
    }

    /// Returns the files of a rank.
    pub fn files_of_rank(&self, rank: u32) -> Vec<String> {
        let count = if self.multi_file { self.repetitions } else { 1 };
        (0..count).map(|repetition| self.path(repetition, &rank.to_string(), &format!("{rank:08}"))).collect()
    }

    /// Returns the jobs.
    pub fn jobs(&self) -> Vec<JobSpec> {
        let mut jobs = Vec::new();
        for repetition in 0..self.repetitions {
            let mut last = None;
            if self.writes {
                let name = self.name("write", repetition);
                jobs.push(self.write(&name, repetition));
                last = Some(name.clone());
                if self.wears_out && self.deadline_s > 0 {
                    let rest = self.name("write-rest", repetition);
                    let mut job = self.write(&rest, repetition);
                    for option in ["runtime", "startdelay", "renew_files"] {
                        job.options.remove(option);
                    }
                    jobs.push(with(job, &[("complete_ios_of", &name)]));
                    last = Some(rest);
                }
            }
            if self.checks_writes {
                let name = self.name("check-write", repetition);
                let mut job = self.read_job(&name, repetition, last.as_deref(), 2);
                for option in ["runtime", "startdelay"] {
                    job.options.remove(option);
                }
                jobs.push(with(job, &[("verify", VERIFIED)]));
            }
            if self.reads {
                jobs.push(self.read_job(&self.name("read", repetition), repetition, last.as_deref(), 1));
            }
        }
        if let Some(first) = jobs.first_mut() {
            first.options.remove("stonewall");
        }
        jobs
    }

    /// The options that all jobs have.
    fn common(&self, name: &str, repetition: u64) -> JobSpec {
        let region = self.block_bytes.saturating_mul(self.segments);
        let mut spec = job(
            name,
            "ior",
            &[
                ("filename", &self.file_of(repetition)),
                ("shared_file", "true"),
                ("size", &region.to_string()),
                ("bs", &self.transfer_bytes.to_string()),
                ("ioengine", "psync"),
                ("direct", if self.direct { "require" } else { "off" }),
                ("unlink", if self.keeps { "false" } else { "true" }),
                ("stonewall", "true"),
            ],
        );
        if self.segments > 1 && !self.file_per_task && !self.random {
            spec = with(spec, &[("shared_segments", &self.segments.to_string())]);
        }
        if self.deadline_s > 0 {
            spec = with(spec, &[("runtime", &format!("{}s", self.deadline_s))]);
        }
        if self.random {
            spec = with(spec, &[("randseed", &self.seed.to_string())]);
        }
        if self.overlaps {
            spec = with(spec, &[("norandommap", "true")]);
        }
        if self.delay_s > 0 {
            spec = with(spec, &[("startdelay", &format!("{}s", self.delay_s))]);
        }
        if self.unique_directory {
            spec = with(spec, &[("create_directories", "true")]);
        }
        if self.task_count > 0 {
            spec = with(spec, &[("ranks", &format!("0-{}", self.task_count - 1))]);
        }
        if self.iterations > 0 {
            spec = with(spec, &[("number_ios", &self.iterations.to_string())]);
        }
        spec
    }

    /// True if what is written can be compared: here, or by a later command.
    fn is_verifiable(&self) -> bool {
        self.checks_writes || self.checks_reads || self.is_signed
    }

    fn write(&self, name: &str, repetition: u64) -> JobSpec {
        let rw = if self.random { "randwrite" } else { "write" };
        let mut spec =
            with(self.common(name, repetition), &[("rw", rw), ("fallocate", "truncate"), ("new_file_access", "group")]);
        if self.fsync {
            spec = with(spec, &[("end_fsync", "true")]);
        }
        if self.fsync_per_write {
            spec = with(spec, &[("fsync", "1")]);
        }
        if self.uses_existing {
            spec = with(spec, &[("overwrite_existing", &self.file_of(repetition))]);
        } else if repetition > 0 && !self.multi_file {
            spec = with(spec, &[("renew_files", "true")]);
        }
        if self.is_verifiable() {
            spec = with(spec, &[("verify", VERIFIED), ("do_verify", "false")]);
        }
        spec
    }

    /// A job that reads. `distance`: how often the number of hosts of `-C` is between a task and the one whose region it reads.
    fn read_job(&self, name: &str, repetition: u64, written: Option<&str>, distance: u64) -> JobSpec {
        let rw = if self.random { "randread" } else { "read" };
        let mut spec = with(self.common(name, repetition), &[("rw", rw)]);
        if let Some(hosts) = self.reorder {
            spec = with(spec, &[("rank_shift", &(hosts * distance).to_string()), ("rank_shift_by", "host")]);
        } else if let Some(seed) = self.reorder_random {
            let shift = [
                ("rank_shift", self.distance.to_string()),
                ("rank_shift_by", "random".to_owned()),
                ("rank_shift_seed", (seed + repetition).to_string()),
            ];
            spec = with(spec, &shift.each_ref().map(|(option, value)| (*option, value.as_str())));
        }
        if self.checks_reads {
            spec = with(spec, &[("verify", VERIFIED)]);
        }
        if let Some(written) = written {
            spec = with(spec, &[("repeat_ios_of", written)]);
            spec.options.remove("number_ios");
        }
        spec
    }

    /// Returns the transfers of the task with the most, for the file of `-O stoneWallingStatusFile`.
    pub fn reached(&self, record: &RunRecord) -> Option<u64> {
        let names = ["write", "write-rest"].map(|phase| self.name(phase, self.repetitions - 1));
        self.writes.then(|| figures::most_of_rank(record, &names))
    }

    /// Returns the jobs, and what is done in another way than IOR does it.
    pub fn lower(&self, mut notes: Vec<String>) -> Lowered {
        if self.random && !self.file_per_task {
            notes.push(
                "`-z` shuffles the offsets of each task within its own part of the file; IOR deals those of all tasks anew"
                    .into(),
            );
        }
        if self.random && self.segments > 1 {
            notes.push(format!(
                "`-z` with `-s {}` shuffles the offsets over all segments of a task, not within each",
                self.segments
            ));
        }
        if self.wears_out && self.deadline_s == 0 {
            notes.push("`-O stoneWallingWearOut=1` changes nothing without a deadline (`-D`)".into());
        }
        if self.is_verifiable() {
            notes.push(format!(
                "each block has a header with its checksum ({VERIFIED}), which `-W` and `-R` compare; IOR compares a pattern"
            ));
        }
        if self.reads && !self.direct {
            notes.push("the page cache is dropped on each host before each phase, which IOR does not do".into());
        }
        Lowered { jobs: self.jobs(), notes }
    }
}

fn with(mut spec: JobSpec, options: &[(&str, &str)]) -> JobSpec {
    spec.options.extend(job("", "ior", options).options);
    spec
}

/// The check of blocks that `-W` and `-R` compare.
const VERIFIED: &str = "crc32c";

fn format_of(text: &str) -> Result<Format, String> {
    match text.to_ascii_lowercase().as_str() {
        "default" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        "csv" => Ok(Format::Csv),
        _ => Err(format!("`-O summaryFormat={text}` is no format of ior\n\nhint: use `default`, `JSON` or `CSV`")),
    }
}

/// Replaces each `-O NAME=VALUE,…` by the options that it is.
fn directives(given: Vec<Given>, notes: &mut Vec<String>) -> Result<Vec<Given>, String> {
    let mut out = Vec::new();
    for one in given {
        if one.key != "O" {
            out.push(one);
            continue;
        }
        for directive in one.value.split(',') {
            let Some((name, value)) = directive.split_once('=').map(|(name, value)| (name.trim(), value.trim())) else {
                return Err(format!("`-O {directive}` has no value\n\nhint: `-O {directive}=1`"));
            };
            let lower = name.to_ascii_lowercase();
            let Some((_, key)) = DIRECTIVES.iter().find(|(known, _)| *known == lower) else {
                let hint = match lower.as_str() {
                    "saverankperformancedetailscsv" | "saveperopdatacsv" => {
                        "`trueio ior --json FILE …` has every rank and interval"
                    }
                    _ => "leave it out, or print the jobs with `--explain` and change them",
                };
                return Err(format!("`-O {name}` of ior is not done here\n\nhint: {hint}"));
            };
            let known = KNOWN.iter().find(|known| known.letter.to_string() == *key || known.name == *key);
            let is_flag = known.is_some_and(|known| !known.takes_value) || *key == "wearout";
            if value == "0" && (is_flag || *key == "minTimeDuration") {
                continue;
            }
            if *key == "minTimeDuration" {
                return Err(format!(
                    "`-O {name}` of ior is not done here\n\nhint: use a job with `time_based = true` and `runtime`"
                ));
            }
            if let Some(known) = known {
                note("ior", known, &format!("-O {name}={value}"), notes)?;
            }
            // `randomOffset=2` is `-z -z`.
            let times = if is_flag && *key != "wearout" { value.parse().unwrap_or(1).clamp(1, 2) } else { 1 };
            for _ in 0..times {
                out.push(Given { key: (*key).to_owned(), value: value.to_owned() });
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
