//! The region of each clone's file, compared with what fio's HEAD used.
//!
//! `regions/fio-head.txt` holds what fio did (`fio-3.42-135-gf5344`). A row is `TARGET RW | OPTIONS | CLONE:BEGIN+LENGTH … | LENGTH`.
//! The target is a new file, a file of that size, or a loop device of 1 MiB; each line ran with `--name=a --filename=TARGET --bs=4k`
//! and `--write_lat_log --log_offset=1`. The begin is the least offset of the clone's log, the length reaches to the end of its last
//! I/O, and `-` is a clone without I/O. The last column is the file's length afterwards. The options were drawn from lists of sizes,
//! percentages and zones by a seeded generator; no row was changed or left out.

use crate::language::World;
use trueio_fio::language::{meet_targets, read};
use trueio_job::{FactsSource, InUse, Machine, Target, plan};
use trueio_model::{DirectFacts, DirectSupport, Fact, JobPlan, JobSpec, TargetFacts, TargetKind};

/// The length of the device.
const DEVICE_BYTES: u64 = 1 << 20;

const ROWS: &str = include_str!("regions/fio-head.txt");

/// A row of the table.
struct Row<'a> {
    /// The length of the target; `None`: it does not exist.
    there: Option<u64>,
    is_device: bool,
    rw: &'a str,
    options: &'a str,
    /// The clones with what each used, in fio's order of numbers.
    used: Vec<(u32, Option<(u64, u64)>)>,
    /// The file's length afterwards.
    length: Option<u64>,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Self {
        let parts: Vec<&str> = line.split('|').map(str::trim).collect();
        let [head, options, used, length] = parts[..] else { panic!("{line}: four columns") };
        let (target, rw) = head.split_once(' ').expect("a target and a direction");
        let there = match target {
            "new" => None,
            "device" => Some(DEVICE_BYTES),
            "file:64k" => Some(64 << 10),
            "file:512k" => Some(512 << 10),
            "file:1m" => Some(1 << 20),
            _ => panic!("{line}: no target"),
        };
        let used = used.split(' ').map(|clone| {
            let (number, region) = clone.split_once(':').expect("a clone");
            let region =
                region.split_once('+').map(|(begin, length)| (begin.parse().unwrap(), length.parse().unwrap()));
            (number.parse().unwrap(), region)
        });
        Self { there, is_device: target == "device", rw, options, used: used.collect(), length: length.parse().ok() }
    }

    /// Returns the length that `filesize` gives the file.
    fn filesize(&self) -> Option<u64> {
        let text = self.options.split(' ').find_map(|word| word.strip_prefix("--filesize="))?;
        let (digits, unit) = text.split_at(text.len() - 1);
        Some(digits.parse::<u64>().unwrap() << if unit == "m" { 20 } else { 10 })
    }
}

impl FactsSource for Row<'_> {
    fn look(&self, path: &str) -> Target {
        let kind = match (path, self.there) {
            ("f", Some(_)) if self.is_device => TargetKind::BlockDevice,
            ("f", Some(_)) => TargetKind::File,
            ("f", None) => return Target::Missing,
            _ => TargetKind::Directory,
        };
        let size_bytes = self.there.map_or_else(|| Fact::unknown("a directory"), |bytes| Fact::known(bytes, "the row"));
        let one = || Fact::known(1, "the row");
        Target::Present(Box::new(TargetFacts {
            path: path.to_owned(),
            kind,
            size_bytes,
            filesystem: None,
            stack: Vec::new(),
            disks: Vec::new(),
            direct: DirectFacts {
                support: DirectSupport::Direct,
                reason: "the row".to_owned(),
                memory_alignment_bytes: one(),
                write_alignment_bytes: one(),
                read_alignment_bytes: one(),
                atomic_write: Fact::unknown("the row"),
            },
            io_limits: Fact::unknown("the row"),
            driven: None,
        }))
    }

    fn in_use(&self, _path: &str) -> Result<InUse, String> {
        Ok(InUse { uses: Vec::new(), marks: Vec::new(), unseen: Vec::new() })
    }
}

impl Row<'_> {
    /// Returns the plans of the clones, with the numbers of the clones; `None`: it is refused.
    fn plans(&self) -> Vec<(u32, Option<JobPlan>)> {
        let line = format!("--name=a --filename=f --rw={} --bs=4k {}", self.rw, self.options);
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let mut request = read(&words, &World::default()).unwrap_or_else(|error| panic!("{line}\n{}", error.render()));
        meet_targets(&mut request.jobs, self, &request.settings).unwrap_or_else(|error| panic!("{}", error.render()));
        let mut accepted: Vec<JobSpec> = Vec::new();
        let mut plans = Vec::new();
        for job in request.jobs {
            let number = job.fio.as_ref().expect("a clone").clone;
            accepted.push(job);
            let planned = plan(&accepted, self, &Machine::unknown()).ok().and_then(|mut plan| plan.jobs.pop());
            if planned.is_none() {
                accepted.pop();
            }
            plans.push((number, planned));
        }
        plans
    }
}

/// Goal: each clone uses the part of its file that it uses in fio, and a file has the length that it has after fio.
/// Method: the rows are read, planned with the row's target, and compared. Two differences are documented. fio replaces a named file
/// that is too short for its reads by a longer one; ours ends the region where the file ends. And where a clone would begin after
/// `filesize`, fio's length of the region wraps around, and the clone extends the file; ours is refused.
#[test]
fn each_clone_uses_the_region_that_it_uses_in_fio() {
    let (mut rows, mut equal, mut replaced, mut wrapped) = (0, 0, 0, 0);
    let mut wrong = Vec::new();
    for line in ROWS.lines() {
        let row = Row::parse(line);
        rows += 1;
        let is_replaced = row.rw == "read" && !row.is_device && row.there.is_some() && row.length > row.there;
        let mut end_max = row.there.unwrap_or(0);
        let mut has_wrapped = false;
        for (number, planned) in row.plans() {
            let (_, theirs) = row.used.iter().find(|(clone, _)| *clone == number).expect("a clone of the row");
            let ours = planned.map(|job| {
                let file = &job.files[0];
                end_max = end_max.max(file.offset_bytes + file.size_bytes);
                (file.offset_bytes, file.size_bytes.min(job.limits.io_bytes))
            });
            let leaves =
                |end: Option<u64>| theirs.is_some_and(|(begin, length)| end.is_some_and(|end| begin + length > end));
            if is_replaced {
                replaced += 1;
                if ours.is_some_and(|(begin, length)| Some(begin + length) > row.there) {
                    wrong.push(format!("{line}\n  clone {number} leaves the file: {ours:?}"));
                }
            } else if leaves(row.filesize()) && leaves(row.there) {
                (wrapped, has_wrapped) = (wrapped + 1, true);
                if ours.is_some() {
                    wrong.push(format!("{line}\n  clone {number} leaves `filesize`: {ours:?}"));
                }
            } else if ours == *theirs {
                equal += 1;
            } else {
                wrong.push(format!("{line}\n  clone {number}: {ours:?}"));
            }
        }
        let is_compared =
            !is_replaced && !row.is_device && !has_wrapped && row.used.iter().any(|(_, used)| used.is_some());
        if is_compared && row.length.is_some_and(|length| length != end_max) {
            wrong.push(format!("{line}\n  the file has {end_max} bytes"));
        }
    }
    let seen = format!("{rows} rows, clones: {equal} equal, {replaced} in replaced files, {wrapped} wrapped");
    assert!(rows >= 200 && equal >= 400 && wrapped < 10, "{seen}");
    assert!(wrong.is_empty(), "{seen}, {} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Facts of files that another run fills, which notes who is waited for.
struct Filled(std::cell::RefCell<Vec<(String, u64)>>);

impl FactsSource for Filled {
    fn look(&self, _path: &str) -> Target {
        Target::Missing
    }

    fn await_filled(&self, path: &str, end_bytes: u64) -> bool {
        self.0.borrow_mut().push((path.to_owned(), end_bytes));
        true
    }
}

/// Goal: a job that reads waits for files that another run fills, up to the end of its part; a job that writes does not.
#[test]
fn a_job_that_reads_waits_for_files_that_another_run_fills() {
    for (words, expected) in [
        ("--rw=read --size=1m --filename=f", vec![("f", 1 << 20)]),
        ("--rw=randrw --size=1m --offset=64k --filename=a:b", vec![("a", 576 << 10), ("b", 576 << 10)]),
        ("--rw=randread --filesize=96k --filename=f", vec![("f", 96 << 10)]),
        ("--rw=randwrite --size=1m --filename=f", vec![]),
        ("--rw=read --size=50% --filename=f", vec![]),
        ("--rw=read --size=1m --ioengine=null", vec![]),
    ] {
        let arguments: Vec<String> = format!("--name=j {words}").split(' ').map(str::to_owned).collect();
        let mut request = read(&arguments, &World::default()).expect(words);
        let facts = Filled(std::cell::RefCell::default());
        let notes = meet_targets(&mut request.jobs, &facts, &request.settings).expect(words);
        let awaited = facts.0.into_inner();
        let found: Vec<(&str, u64)> = awaited.iter().map(|(path, end)| (path.as_str(), *end)).collect();
        assert_eq!(found, expected, "{words}");
        assert_eq!(notes.iter().any(|note| note.contains("waited while another program filled")), !found.is_empty());
    }
}
