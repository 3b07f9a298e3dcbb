//! `mdtest`: its options become a job for each phase of each iteration.
//!
//! One worker of one rank is one task. Names differ from mdtest's (`tree/1/f.RANK.N`), so files that one program left
//! cannot be used by the other. Directories are not renamed.
//!
//! Source: mdtest 4.0: `mdtest.c`.

pub mod output;

use crate::words::{Fate, Given, Known, number, read, size};
use crate::{Lowered, job};
use trueio_model::{JobSpec, Origin};

/// A command line of mdtest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mdtest {
    /// Where the names are made (`-d`).
    pub directory: String,
    /// Items of each task (`-n`, or `-I` for each directory).
    pub items: u64,
    /// Items in each directory (`-I`).
    pub items_per_directory: Option<u64>,
    /// Levels of directories (`-z`).
    pub depth: u32,
    /// Directories in each directory (`-b`).
    pub branch: u32,
    /// Items only in the lowest directories (`-L`).
    pub in_leaves: bool,
    /// A tree for each task (`-u`).
    pub is_private: bool,
    /// Phases on files (`-F`) and on directories (`-D`).
    pub files: bool,
    /// See `files`.
    pub directories: bool,
    /// The phases: create (`-C`), stat (`-T`), read (`-E`), remove (`-r`).
    pub phases: [bool; 4],
    /// Hosts between the task that makes a name and the one that uses it in the next phase (`-N`).
    pub stride: u64,
    /// Iterations (`-i`).
    pub iterations: u64,
    /// Bytes written to each file (`-w`).
    pub write_bytes: u64,
    /// Bytes read from each file (`-e`).
    pub read_bytes: u64,
    /// Names in random order in stat (`-R`), and the seed.
    pub seed: Option<u64>,
    /// Rates are printed.
    pub prints_rate: bool,
    /// Times are printed (`-Z`, `-P`).
    pub prints_time: bool,
}

/// The largest stride: removing shifts by three of them, and a shift is at most 2^20.
const STRIDE_MAX: u64 = (1 << 20) / 3;

/// The phase that reads files.
pub(crate) const FILE_READ: &str = "file-read";

const fn used(letter: char, takes_value: bool) -> Known {
    Known { letter, name: "", takes_value, fate: Fate::Used }
}

const fn refused(letter: char, takes_value: bool, why: &'static str, instead: &'static str) -> Known {
    Known { letter, name: "", takes_value, fate: Fate::Refused(why, instead) }
}

const fn noted(letter: char, takes_value: bool, why: &'static str) -> Known {
    Known { letter, name: "", takes_value, fate: Fate::Noted(why) }
}

const fn long(name: &'static str, takes_value: bool, fate: Fate) -> Known {
    Known { letter: '\0', name, takes_value, fate }
}

const RANKS: &str = "the ranks are those that the launcher starts";
const RANKS_HINT: &str = "start that many: `mpirun -n N trueio mdtest …`";
const STONEWALL: &str = "metadata phases end when all items are done";
const STONEWALL_HINT: &str = "set fewer items with `-n`";
const DATA: &str = "the content of files is random, and is not compared";

/// The most items of a task: the range of the option that counts files.
const ITEMS_MAX: u64 = 1 << 32;

const KNOWN: &[Known] = &[
    used('a', true),
    used('b', true),
    refused('B', true, "phases are barriers", "leave it out"),
    refused('c', false, "each task creates its own items", "leave it out"),
    used('C', false),
    used('d', true),
    used('D', false),
    used('e', true),
    used('E', false),
    refused('f', true, RANKS, RANKS_HINT),
    used('F', false),
    noted('G', true, DATA),
    used('i', true),
    used('I', true),
    refused('k', false, "files are created by open(2)", "leave it out"),
    refused('l', true, RANKS, RANKS_HINT),
    used('L', false),
    used('n', true),
    used('N', true),
    refused('p', true, "iterations follow each other at once", "leave it out"),
    used('P', false),
    used('r', false),
    used('R', false),
    refused('s', true, RANKS, RANKS_HINT),
    refused('S', false, "each task has items of its own", "measure one shared file with `trueio ior`"),
    noted('t', false, "the top directory of each tree is created in the phase `tree`, and printed as Tree creation"),
    used('T', false),
    used('u', false),
    refused('U', false, "no engine renames directories", "choose phases: `-C -T -r`"),
    noted('v', false, "`trueio report` prints every detail of the record"),
    noted('V', true, "`trueio report` prints every detail of the record"),
    used('w', true),
    refused('W', true, STONEWALL, STONEWALL_HINT),
    refused('x', true, STONEWALL, STONEWALL_HINT),
    refused('X', false, DATA, "leave it out"),
    refused(
        'y',
        false,
        "files are not flushed one by one",
        "`--explain`, add `fsync = 1` (the directory) to the job, `trueio run`",
    ),
    refused('Y', false, "sync(2) flushes what other programs wrote, too", "leave it out"),
    used('z', true),
    used('Z', false),
    long("random-seed", true, Fate::Used),
    long("print-all-procs", false, Fate::Noted("`trueio mdtest --json FILE …` has every rank")),
    long("showRankStatistics", false, Fate::Noted("`trueio mdtest --json FILE …` has every rank")),
    long("dataPacketType", true, Fate::Noted(DATA)),
    long("verify-read", false, Fate::Refused(DATA, "leave it out")),
    long("verify-write", false, Fate::Refused(DATA, "leave it out")),
    long("run-cmd-before-phase", true, Fate::Refused("no program is started", "leave it out")),
    long("run-cmd-after-phase", true, Fate::Refused("no program is started", "leave it out")),
    long(
        "saveRankPerformanceDetails",
        true,
        Fate::Refused("it is not written", "`trueio mdtest --json FILE …` has every rank"),
    ),
    long(
        "savePerOpDataCSV",
        true,
        Fate::Refused("it is not written", "`trueio mdtest --json FILE …` has every interval"),
    ),
    long("warningAsErrors", false, Fate::Noted("the exit code is 1 if evidence contradicts a figure")),
];

impl Default for Mdtest {
    fn default() -> Self {
        Self {
            directory: "./out".to_owned(),
            items: 0,
            items_per_directory: None,
            depth: 0,
            branch: 1,
            in_leaves: false,
            is_private: false,
            files: false,
            directories: false,
            phases: [false; 4],
            stride: 0,
            iterations: 1,
            write_bytes: 0,
            read_bytes: 0,
            seed: None,
            prints_rate: true,
            prints_time: false,
        }
    }
}

impl Mdtest {
    /// Reads a command line, without the program's name. Sentences about options that change nothing go to `notes`.
    ///
    /// # Errors
    /// An option that is unknown or not done here, or options that contradict each other.
    pub fn read(words: &[String], notes: &mut Vec<String>) -> Result<Self, String> {
        let mut mdtest = Self::default();
        let (mut is_random, mut seed) = (false, 1);
        let mut typed = ["0".to_owned(), "0".to_owned()];
        for Given { key, value } in read("mdtest", words, KNOWN, notes)? {
            let count = |text: &str| number(&format!("-{key}"), text);
            let small = |text: &str| count(text).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
            let bytes = |text: &str| if text == "0" { Ok(0) } else { size(&format!("-{key}"), text) };
            match key.as_str() {
                "a" if value.eq_ignore_ascii_case("posix") => {}
                "a" => {
                    return Err(format!(
                        "`-a {value}` of mdtest is not done here\n  because: names are made by POSIX calls\n\nhint: use \
                         `-a POSIX`"
                    ));
                }
                "b" => mdtest.branch = small(&value)?,
                "C" => mdtest.phases[0] = true,
                "T" => mdtest.phases[1] = true,
                "E" => mdtest.phases[2] = true,
                "r" => mdtest.phases[3] = true,
                "d" => mdtest.directory = value,
                "D" => mdtest.directories = true,
                "F" => mdtest.files = true,
                "e" => (mdtest.read_bytes, typed[0]) = (bytes(&value)?, value),
                "w" => (mdtest.write_bytes, typed[1]) = (bytes(&value)?, value),
                "i" => mdtest.iterations = count(&value)?.max(1),
                "I" => mdtest.items_per_directory = Some(size("-I", &value)?),
                "L" => mdtest.in_leaves = true,
                "n" => mdtest.items = size("-n", &value)?,
                "N" => {
                    mdtest.stride = count(&value)?;
                    if mdtest.stride > STRIDE_MAX {
                        return Err(format!("`-N {value}` is more than the largest stride, {STRIDE_MAX}"));
                    }
                }
                "P" => mdtest.prints_time = true,
                "Z" => (mdtest.prints_rate, mdtest.prints_time) = (false, true),
                "R" => is_random = true,
                "random-seed" => seed = count(&value)?,
                "u" => mdtest.is_private = true,
                "z" => mdtest.depth = small(&value)?,
                _ => {}
            }
        }
        if !mdtest.files && !mdtest.directories {
            (mdtest.files, mdtest.directories) = (true, true);
        }
        if mdtest.phases == [false; 4] {
            mdtest.phases = [true; 4];
            notes.push("directories are not renamed: `Directory rename` is 0".to_owned());
        }
        mdtest.seed = is_random.then_some(seed);
        mdtest.spread(notes)?;
        if mdtest.phases[0] && mdtest.phases[2] && mdtest.read_bytes > mdtest.write_bytes {
            let [reads, writes] = typed;
            return Err(format!(
                "`-e {reads}` reads more than `-w {writes}` writes\n\nhint: set `-w` to at least `-e`"
            ));
        }
        Ok(mdtest)
    }

    /// Sets the number of items, which the directories of the tree share evenly.
    fn spread(&mut self, notes: &mut Vec<String>) -> Result<(), String> {
        if self.branch == 0 {
            return Err("`-b 0` of mdtest is no number of directories\n\nhint: use `-b 1` or more".to_owned());
        }
        let branch = u64::from(self.branch);
        let level = |level: u32| branch.checked_pow(level).unwrap_or(u64::MAX);
        let all = (0..=self.depth.min(64)).fold(0_u64, |sum, at| sum.saturating_add(level(at)));
        let holders = if self.in_leaves { level(self.depth) } else { all };
        match (self.items, self.items_per_directory) {
            (0, None) => {
                return Err("mdtest needs the number of items\n\nhint: set `-n 1000` for each task, or `-I 10` for each directory".into());
            }
            (0, Some(each)) => {
                self.items = each.saturating_mul(holders);
                if self.items > ITEMS_MAX {
                    let tree = format!("`-z {} -b {branch}`", self.depth);
                    let (each, counted) =
                        (format!("`-I {each}`"), if self.in_leaves { "leaves" } else { "directories" });
                    return Err(format!(
                        "{each} items in each of the {counted} of the tree ({tree}) are more than {ITEMS_MAX}, the most of a \
                         task\n\nhint: set a smaller tree, or fewer items"
                    ));
                }
            }
            (_, Some(each)) => {
                return Err(format!(
                    "`-n` with `-I {each}` of mdtest is not done here\n  because: it makes several trees\n\nhint: set only one of \
                     them"
                ));
            }
            (items, None) if items > ITEMS_MAX => {
                return Err(format!(
                    "`-n {items}` is more than {ITEMS_MAX}, the most of a task\n\nhint: set fewer items"
                ));
            }
            (items, None) => {
                self.items = items - items % holders.max(1);
                if self.items == 0 {
                    return Err(format!(
                        "`-n {items}` are fewer items than the {holders} directories of the tree (`-z {} -b {branch}`)",
                        self.depth
                    ));
                }
                if self.items != items {
                    notes.push(format!(
                        "`-n {items}`: {} items, which {holders} directories share evenly, as in mdtest",
                        self.items
                    ));
                }
            }
        }
        if !self.phases[0] && self.phases[3] {
            return Err(
                "`-r` of mdtest without `-C` is not done here\n  because: it would remove what this run did not \
                        create\n\nhint: `-C -r` removes what it created; else use `rm -r`"
                    .into(),
            );
        }
        if !self.phases[0] && self.iterations > 1 {
            return Err(
                "`-i` of mdtest without `-C` is not done here\n  because: each iteration has names of its own\n\n\
                        hint: leave `-i` out"
                    .into(),
            );
        }
        Ok(())
    }

    fn name(&self, phase: &str, iteration: u64) -> String {
        if self.iterations == 1 { phase.to_owned() } else { format!("{phase}-{}", iteration + 1) }
    }

    fn directory_of(&self, iteration: u64) -> String {
        format!("{}/trueio-{}", self.directory.trim_end_matches('/'), self.name("mdtest", iteration))
    }

    /// Returns the directory that an earlier run must have made; `None`: this run makes it.
    pub fn needed_directory(&self) -> Option<String> {
        (!self.phases[0]).then(|| self.directory_of(0))
    }

    /// Returns the jobs.
    pub fn jobs(&self) -> Vec<JobSpec> {
        let [creates, stats, reads, removes] = self.phases;
        let mut jobs = Vec::new();
        for iteration in 0..self.iterations {
            let mut add = |phase: &str, engine: &str, hop: u64, more: &[(&str, &str)]| {
                let mut spec = self.common(&self.name(phase, iteration), iteration);
                spec.options.extend(job("", "mdtest", &[("ioengine", engine)]).options);
                if hop > 0 && self.stride > 0 {
                    let shift = (hop * self.stride).to_string();
                    let shifts = [("rank_shift", shift.as_str()), ("rank_shift_by", "host")];
                    spec.options.extend(job("", "mdtest", &shifts).options);
                }
                spec.options.extend(job("", "mdtest", more).options);
                if phase == FILE_READ
                    && let Some(bytes) = spec.options.get_mut("name_bytes")
                {
                    bytes.origin = Origin::Flag { flag: "-e".to_owned() };
                }
                jobs.push(spec);
            };
            let first_rank: &[(&str, &str)] = if self.is_private { &[] } else { &[("ranks", "0")] };
            let of_tree = [&[("name_tree", "true")], first_rank].concat();
            let bytes = |bytes: u64| bytes.to_string();
            let seed = self.seed.map(|seed| seed.to_string());
            let random: &[(&str, &str)] = match &seed {
                Some(seed) => &[("rw", "randread"), ("randseed", seed)],
                None => &[],
            };
            if creates {
                add("tree-create", "dircreate", 0, &of_tree);
            }
            if self.directories {
                if creates {
                    add("directory-create", "dircreate", 0, &[]);
                }
                if stats {
                    add("directory-stat", "dirstat", 1, random);
                }
                if removes {
                    add("directory-remove", "dirdelete", 3, &[]);
                }
            }
            if self.files {
                if creates {
                    add("file-create", "filecreate", 0, &[("name_bytes", &bytes(self.write_bytes))]);
                }
                if stats {
                    add("file-stat", "filestat", 1, random);
                }
                if reads {
                    add(FILE_READ, "fileread", 2, &[("name_bytes", &bytes(self.read_bytes))]);
                }
                if removes {
                    add("file-remove", "filedelete", 3, &[]);
                }
            }
            if removes {
                add("tree-remove", "dirdelete", 0, &of_tree);
            }
        }
        if let Some(first) = jobs.first_mut() {
            first.options.remove("stonewall");
        }
        jobs
    }

    fn common(&self, name: &str, iteration: u64) -> JobSpec {
        let directory = self.directory_of(iteration);
        let stays = !self.phases[3];
        let mut options = vec![
            ("name_directory", directory),
            ("create_directories", "true".to_owned()),
            ("nrfiles", self.items.to_string()),
            ("unlink", (!stays).to_string()),
            ("stonewall", "true".to_owned()),
        ];
        if self.depth > 0 {
            options.push(("name_depth", self.depth.to_string()));
            options.push(("name_branch", self.branch.to_string()));
            options.push(("name_leaves", self.in_leaves.to_string()));
        }
        options.push(("name_private", self.is_private.to_string()));
        let options: Vec<(&str, &str)> = options.iter().map(|(name, value)| (*name, value.as_str())).collect();
        job(name, "mdtest", &options)
    }

    /// Returns the jobs, and what is done in another way than mdtest does it.
    pub fn lower(&self, notes: Vec<String>) -> Lowered {
        Lowered { jobs: self.jobs(), notes }
    }
}

#[cfg(test)]
mod tests;
