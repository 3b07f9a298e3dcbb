//! `ior`: its options become a job that writes and a job that reads, for each repetition.
//!
//! One rank is one task. A job of this program is prepared before its measured part, and the ranks begin together at an agreed
//! instant, so opening and creating files is not part of the time, and IOR's barriers (`-g`) are always there. The page cache
//! is dropped before each phase, which IOR does not do.
//!
//! Source: IOR 4.0: `parse_options.c`, `ior.c`.

pub mod output;

use crate::words::{Fate, Given, Known, number, read, size};
use crate::{Lowered, job};
use trueio_model::JobSpec;

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
    /// Seconds after which each phase ends (`-D`).
    pub deadline_s: u64,
    /// All tasks then complete the work of the one with the most (`-O stoneWallingWearOut=1`).
    pub wears_out: bool,
    /// Random offsets (`-z`), and their seed.
    pub random: bool,
    /// The seed (`--random-offset-seed`).
    pub seed: u64,
    /// Direct I/O.
    pub direct: bool,
    /// A number for the summary (`-A`).
    pub reference: u64,
    /// Only the jobs are printed (`--dryRun`).
    pub is_dry: bool,
}

const MPI: &str = "files are read and written by POSIX calls; MPI and other libraries are not linked";
const VERIFY: &str = "the content is this program's own";
const VERIFY_HINT: &str =
    "print the jobs with `--explain`, add `verify = \"crc32c\"` to them, and run them with `trueio run`";

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
    Known { letter: 'c', name: "collective", takes_value: false, fate: Fate::Refused(MPI, "leave it out") },
    used('C', false),
    refused('d', true, "repetitions follow each other at once", "leave it out, or start `trueio ior` in a loop"),
    used('D', true),
    used('e', false),
    used('E', false),
    refused('f', true, "configuration files are not read", "give the options on the command line, or write a job file"),
    used('F', false),
    noted('g', false, "all ranks begin each phase together at an agreed instant"),
    noted('G', true, "the content is random, so that no layer can leave it out"),
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
    refused('m', false, "each repetition that writes has a file of its own anyway", "leave it out"),
    refused('M', true, "no memory is occupied; the page cache is dropped before each phase", "leave it out"),
    refused('N', true, "the ranks are those that the launcher starts", "start that many: `mpirun -n N trueio ior …`"),
    used('o', true),
    used('O', true),
    used('Q', true),
    used('r', false),
    refused('R', false, VERIFY, VERIFY_HINT),
    used('s', true),
    used('t', true),
    refused('T', true, "repetitions are not cut off", "set fewer with `-i`, or a deadline with `-D`"),
    refused('u', false, "files are in one directory", "put `$rank` into the path: `-o '/mnt/$rank/file'`"),
    noted('v', false, "`trueio report` prints every detail of the record"),
    used('w', false),
    refused('W', false, VERIFY, VERIFY_HINT),
    noted('x', false, "a short transfer is never completed by a second one"),
    refused('X', true, "`-Z` is not there", "use `-C`"),
    refused('y', false, "there is one mount point", "leave it out"),
    used('Y', false),
    used('z', false),
    refused(
        'Z',
        false,
        "with random places several tasks may read one region, which the page cache of their host then serves",
        "use `-C`: each task reads the region of one on another host",
    ),
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

/// Names of `-O NAME=VALUE`, in lower case, and the options that they are; a flag is set by 1.
const DIRECTIVES: &[(&str, &str)] = &[
    ("api", "a"),
    ("refnum", "A"),
    ("blocksize", "b"),
    ("reordertasksconstant", "C"),
    ("reordertasks", "C"),
    ("deadlineforstonewalling", "D"),
    ("fsync", "e"),
    ("useexistingtestfile", "E"),
    ("fileperproc", "F"),
    ("repetitions", "i"),
    ("keepfile", "k"),
    ("testfile", "o"),
    ("taskpernodeoffset", "Q"),
    ("readfile", "r"),
    ("segmentcount", "s"),
    ("transfersize", "t"),
    ("writefile", "w"),
    ("fsyncperwrite", "Y"),
    ("randomoffset", "z"),
    ("useo_direct", "posix.odirect"),
    ("stonewallingwearout", "wearout"),
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
            deadline_s: 0,
            wears_out: false,
            random: false,
            seed: 1,
            direct: false,
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
        let (mut reorders, mut distance, mut shuffles) = (false, 1, 0);
        for Given { key, value } in directives(read("ior", words, KNOWN, notes)?)? {
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
                "C" => reorders = true,
                "D" => ior.deadline_s = count(&value)?,
                "e" => ior.fsync = true,
                "E" => ior.uses_existing = true,
                "F" => ior.file_per_task = true,
                "i" => ior.repetitions = count(&value)?.max(1),
                "k" => ior.keeps = true,
                "o" => ior.file = value,
                "Q" => distance = count(&value)?,
                "r" => ior.reads = true,
                "s" => ior.segments = size("-s", &value)?,
                "t" => ior.transfer_bytes = size("-t", &value)?,
                "w" => ior.writes = true,
                "wearout" => ior.wears_out = true,
                "Y" => ior.fsync_per_write = true,
                "z" => shuffles += 1,
                "random-offset-seed" => ior.seed = count(&value)?,
                "posix.odirect" => ior.direct = true,
                "dryRun" => ior.is_dry = true,
                _ => {}
            }
        }
        if !ior.reads && !ior.writes {
            (ior.reads, ior.writes) = (true, true);
        }
        ior.random = shuffles > 0;
        ior.reorder = reorders.then_some(distance);
        ior.check(shuffles)?;
        Ok(ior)
    }

    fn check(&self, shuffles: u32) -> Result<(), String> {
        let Self { block_bytes, transfer_bytes, .. } = self;
        if !block_bytes.is_multiple_of(*transfer_bytes) {
            return Err(format!("`-b` is {block_bytes} bytes, which is no multiple of `-t`, {transfer_bytes} bytes"));
        }
        if self.wears_out && self.deadline_s == 0 {
            return Err(
                "`-O stoneWallingWearOut=1` has an effect only after a deadline\n\nhint: set one: `-D 60`".into()
            );
        }
        if shuffles > 1 {
            return Err(
                "`-z -z` of ior is not done here\n  because: offsets are shuffled, so that each is used once\n\n\
                        hint: use `-z`, or a job with `norandommap = true`"
                    .into(),
            );
        }
        if self.random && self.segments > 1 {
            let block = block_bytes.saturating_mul(self.segments);
            return Err(format!(
                "`-z` with `-s {}` of ior is not done here\n  because: offsets are shuffled over the whole region of a task, not \
                 within each segment\n\nhint: use `-z -s 1 -b {block}`",
                self.segments
            ));
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

    /// Returns the file of a repetition. Each that is written anew has one of its own; the last has the name that was given.
    fn file_of(&self, repetition: u64) -> String {
        let base = match self.writes && !self.uses_existing && repetition + 1 < self.repetitions {
            true => format!("{}.repetition{}", self.file, repetition + 1),
            false => self.file.clone(),
        };
        // A colon separates files.
        let base = base.replace(':', "\\:");
        if self.file_per_task { format!("{base}.${{rank8}}") } else { base }
    }

    /// Returns the file of a rank, in the last repetition.
    pub fn file_of_rank(&self, rank: u32) -> String {
        let suffix = if self.file_per_task { format!(".{rank:08}") } else { String::new() };
        format!("{}{suffix}", self.file)
    }

    /// Returns the jobs.
    pub fn jobs(&self) -> Vec<JobSpec> {
        let mut jobs = Vec::new();
        for repetition in 0..self.repetitions {
            let mut last = None;
            if self.writes {
                let name = self.name("write", repetition);
                jobs.push(self.write(&name, repetition, repetition > 0));
                last = Some(name.clone());
                if self.wears_out {
                    let rest = self.name("write-rest", repetition);
                    let mut job = self.write(&rest, repetition, true);
                    job.options.remove("runtime");
                    jobs.push(with(job, &[("complete_ios_of", &name)]));
                    last = Some(rest);
                }
            }
            if self.reads {
                jobs.push(self.read_job(&self.name("read", repetition), repetition, last.as_deref()));
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
        let keeps = self.keeps && repetition + 1 == self.repetitions;
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
                ("unlink", if keeps { "false" } else { "true" }),
                ("stonewall", "true"),
            ],
        );
        if self.segments > 1 && !self.file_per_task {
            spec = with(spec, &[("shared_segments", &self.segments.to_string())]);
        }
        if self.deadline_s > 0 {
            spec = with(spec, &[("runtime", &format!("{}s", self.deadline_s))]);
        }
        if self.random {
            spec = with(spec, &[("randseed", &self.seed.to_string())]);
        }
        spec
    }

    fn write(&self, name: &str, repetition: u64, waits: bool) -> JobSpec {
        let rw = if self.random { "randwrite" } else { "write" };
        let mut spec = with(self.common(name, repetition), &[("rw", rw), ("fallocate", "truncate")]);
        if !waits {
            spec.options.remove("stonewall");
        }
        if self.fsync {
            spec = with(spec, &[("end_fsync", "true")]);
        }
        if self.fsync_per_write {
            spec = with(spec, &[("fsync", "1")]);
        }
        if self.uses_existing {
            spec = with(spec, &[("overwrite_existing", &self.file_of(repetition))]);
        }
        spec
    }

    fn read_job(&self, name: &str, repetition: u64, written: Option<&str>) -> JobSpec {
        let rw = if self.random { "randread" } else { "read" };
        let mut spec = with(self.common(name, repetition), &[("rw", rw)]);
        if let Some(distance) = self.reorder {
            spec = with(spec, &[("rank_shift", &distance.to_string()), ("rank_shift_by", "host")]);
        }
        if let Some(written) = written {
            spec = with(spec, &[("repeat_ios_of", written)]);
        }
        spec
    }

    /// Returns the jobs, and what is done in another way than IOR does it.
    pub fn lower(&self, mut notes: Vec<String>) -> Lowered {
        if self.random && !self.file_per_task {
            notes.push(
                "`-z` shuffles the offsets of each task within its own block; IOR deals those of all tasks anew".into(),
            );
        }
        if self.writes && self.repetitions > 1 && !self.uses_existing {
            notes.push(format!(
                "`-i {}`: each repetition writes a file of its own, and all exist until the end of the run",
                self.repetitions
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

/// Replaces each `-O NAME=VALUE,…` by the options that it is.
fn directives(given: Vec<Given>) -> Result<Vec<Given>, String> {
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
            if lower == "summaryformat" && value.eq_ignore_ascii_case("default") || lower == "verbose" {
                continue;
            }
            let Some((_, key)) = DIRECTIVES.iter().find(|(known, _)| *known == lower) else {
                let hint = match lower.as_str() {
                    "summaryformat" | "summaryfile" => "`trueio ior --json FILE …` writes the whole record",
                    "saverankperformancedetailscsv" | "saveperopdatacsv" => {
                        "`trueio ior --json FILE …` has every rank and interval"
                    }
                    "stonewallingstatusfile" | "stonewallingwearoutiterations" => {
                        "let one command write and read (`-w -r`): it reads back as far as was written"
                    }
                    "mintimeduration" => "use a job with `time_based = true` and `runtime`",
                    _ => "leave it out, or print the jobs with `--explain` and change them",
                };
                return Err(format!("`-O {name}` of ior is not done here\n\nhint: {hint}"));
            };
            let is_flag = KNOWN
                .iter()
                .any(|known| !known.takes_value && (known.letter.to_string() == *key || known.name == *key))
                || *key == "wearout";
            if is_flag && value == "0" {
                continue;
            }
            out.push(Given { key: (*key).to_owned(), value: value.to_owned() });
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
