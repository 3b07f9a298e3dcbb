//! `mdtest`: its options become a job for each phase of each iteration.
//!
//! One worker of one rank is one task. Names differ from mdtest's (`tree/1/f.RANK.N`), so files that one program left
//! cannot be used by the other. Directories are not renamed.
//!
//! Source: mdtest 4.0: `mdtest.c`.

pub mod output;

use crate::words::{Fate, Given, Known, number, read, size};
use crate::{Lowered, figures, job};
use trueio_model::{JobSpec, Origin, RunRecord};

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
    /// Seconds after which the creation of files ends (`-W`); all tasks then create as many as the one with the most.
    pub deadline_s: u64,
    /// Where the number of items that each task has created is kept (`-x`).
    pub status_file: Option<String>,
    /// Items that each task uses of those that an earlier command created; `None`: all.
    pub reached_items: Option<u64>,
    /// Each new file is flushed (`-y`).
    pub syncs_files: bool,
    /// The filesystem is flushed at the end of each phase that changes it (`-Y`).
    pub syncs_phases: bool,
    /// What is read is compared (`-X`).
    pub is_compared: bool,
    /// The seed of the content (`-G`), so that a later command can compare it.
    pub content_seed: Option<u64>,
    /// Seconds before each iteration (`-p`).
    pub delay_s: u64,
    /// Rates are printed.
    pub prints_rate: bool,
    /// Times are printed (`-Z`, `-P`).
    pub prints_time: bool,
}

/// The largest stride: removing shifts by three of them, and a shift is at most 2^20.
const STRIDE_MAX: u64 = (1 << 20) / 3;

/// The phase that reads files.
pub(crate) const FILE_READ: &str = "file-read";
/// The phase that creates files.
pub(crate) const FILE_CREATE: &str = "file-create";
/// The phase in which all tasks create as many as the one with the most, after the deadline.
pub(crate) const FILE_CREATE_REST: &str = "file-create-rest";

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
const DATA: &str = "the content of files is random, so that no layer can leave it out";

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
    used('G', true),
    used('i', true),
    used('I', true),
    refused('k', false, "files are created by open(2)", "leave it out"),
    refused('l', true, RANKS, RANKS_HINT),
    used('L', false),
    used('n', true),
    used('N', true),
    used('p', true),
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
    used('W', true),
    used('x', true),
    Known { letter: 'X', name: "verify-read", takes_value: false, fate: Fate::Used },
    used('y', false),
    used('Y', false),
    used('z', true),
    used('Z', false),
    long("random-seed", true, Fate::Used),
    long("print-all-procs", false, Fate::Noted("`trueio mdtest --json FILE …` has every rank")),
    long("showRankStatistics", false, Fate::Noted("`trueio mdtest --json FILE …` has every rank")),
    long("dataPacketType", true, Fate::Noted(DATA)),
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
            deadline_s: 0,
            status_file: None,
            reached_items: None,
            syncs_files: false,
            syncs_phases: false,
            is_compared: false,
            content_seed: None,
            delay_s: 0,
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
                "p" => mdtest.delay_s = count(&value)?,
                "P" => mdtest.prints_time = true,
                "G" => mdtest.content_seed = Some(count(&value)?),
                "W" => mdtest.deadline_s = count(&value)?,
                "x" => mdtest.status_file = Some(value),
                "X" => mdtest.is_compared = true,
                "y" => mdtest.syncs_files = true,
                "Y" => mdtest.syncs_phases = true,
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
        if is_random && (mdtest.deadline_s > 0 || mdtest.status_file.is_some()) {
            return Err(
                "`-R` draws the names of all items, and after a deadline (`-W`, `-x`) not all of them exist\n\n\
                        hint: leave one of them out"
                    .into(),
            );
        }
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
        Ok(())
    }

    fn name(&self, phase: &str, iteration: u64) -> String {
        if self.iterations == 1 { phase.to_owned() } else { format!("{phase}-{}", iteration + 1) }
    }

    fn directory_of(&self, iteration: u64) -> String {
        format!("{}/trueio-{}", self.directory.trim_end_matches('/'), self.name("mdtest", iteration))
    }

    /// True if it creates names.
    pub fn creates(&self) -> bool {
        self.phases[0]
    }

    /// True if it removes names.
    pub fn removes(&self) -> bool {
        self.phases[3]
    }

    /// Returns the directories that an earlier run must have made; none: this run makes them.
    pub fn needed_directories(&self) -> Vec<String> {
        (0..self.iterations).filter(|_| !self.phases[0]).map(|iteration| self.directory_of(iteration)).collect()
    }

    /// Returns the items that the task with the most has created, for the file of `-x`.
    pub fn reached(&self, record: &RunRecord) -> Option<u64> {
        let names = [FILE_CREATE, FILE_CREATE_REST].map(|phase| self.name(phase, self.iterations - 1));
        (self.phases[0] && self.files).then(|| figures::most_of_rank(record, &names))
    }

    /// Returns the jobs.
    pub fn jobs(&self) -> Vec<JobSpec> {
        let [creates, stats, reads, removes] = self.phases;
        let mut jobs = Vec::new();
        for iteration in 0..self.iterations {
            let first = jobs.len();
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
                self.complete(&mut spec, engine, iteration);
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
                let is_seeded = self.is_compared || self.content_seed.is_some();
                let content = self.content_seed.unwrap_or(0).to_string();
                let content: &[(&str, &str)] = if is_seeded { &[("randseed", &content)] } else { &[] };
                let written = bytes(self.write_bytes);
                let create = [&[("name_bytes", written.as_str())][..], content].concat();
                // After a deadline, the items that there are.
                let rest = self.name(FILE_CREATE_REST, iteration);
                let known = self.reached_items.map(|items| items.to_string());
                let follows: &[(&str, &str)] = match (&known, self.deadline_s > 0 && creates) {
                    (_, true) => &[("repeat_ios_of", &rest)],
                    (Some(items), false) if !creates => &[("number_ios", items)],
                    _ => &[],
                };
                if creates && self.deadline_s > 0 {
                    let runtime = format!("{}s", self.deadline_s);
                    add(FILE_CREATE, "filecreate", 0, &[&create[..], &[("runtime", &runtime)]].concat());
                    let first = self.name(FILE_CREATE, iteration);
                    add(FILE_CREATE_REST, "filecreate", 0, &[&create[..], &[("complete_ios_of", &first)]].concat());
                } else if creates {
                    add(FILE_CREATE, "filecreate", 0, &create);
                }
                if stats {
                    add("file-stat", "filestat", 1, &[random, follows].concat());
                }
                if reads {
                    let read = bytes(self.read_bytes);
                    add(FILE_READ, "fileread", 2, &[&[("name_bytes", read.as_str())][..], content, follows].concat());
                }
                if removes {
                    add("file-remove", "filedelete", 3, follows);
                }
            }
            if removes {
                add("tree-remove", "dirdelete", 0, &of_tree);
            }
            if self.delay_s > 0
                && let Some(job_of_iteration) = jobs.get_mut(first)
            {
                let delay = format!("{}s", self.delay_s);
                job_of_iteration.options.extend(job("", "mdtest", &[("startdelay", &delay)]).options);
            }
        }
        if let Some(first) = jobs.first_mut() {
            first.options.remove("stonewall");
        }
        jobs
    }

    /// Adds the options that depend on what an engine does with its names.
    fn complete(&self, spec: &mut JobSpec, engine: &str, iteration: u64) {
        let mut add = |option: &str, value: &str| spec.options.extend(job("", "mdtest", &[(option, value)]).options);
        if self.syncs_phases && !matches!(engine, "filestat" | "dirstat" | "fileread") {
            add("end_fsync", "true");
        }
        if self.syncs_files && engine == "filecreate" {
            add("name_fsync", "true");
        }
        if self.is_compared && engine == "fileread" {
            add("name_verify", "true");
        }
        if !self.creates() && matches!(engine, "filedelete" | "dirdelete") {
            // `-r` alone: `-d` names what an earlier command left.
            add("overwrite_existing", &self.directory_of(iteration).replace(':', "\\:"));
        }
    }

    fn common(&self, name: &str, iteration: u64) -> JobSpec {
        let directory = self.directory_of(iteration);
        let stays = !self.phases[3];
        let mut options = vec![
            ("name_directory", directory),
            ("create_directories", "true".to_owned()),
            ("new_file_access", "group".to_owned()),
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
