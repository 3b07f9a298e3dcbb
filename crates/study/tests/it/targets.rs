//! Where samples run: on the target that a row needs, under the name that it has then; and what a resumed study knows.
//!
//! Method: files replace disks, and the transport switch is simulated. Rows of each transport write a region and a
//! pattern of their own, so the files show afterwards which row wrote to them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use trueio_device::{System, target_facts};
use trueio_job::{FactsSource, Machine};
use trueio_model::{
    DirectFacts, DirectSupport, DiskFacts, DurabilityKind, Fact, JobSpec, Outcome, Plan, StudyRecord, StudyRow,
    TargetFacts, TargetIdentity, TargetKind,
};
use trueio_run::Observer;
use trueio_study::{
    Brought, Head, JOURNAL_FORMAT, Journal, JournalError, Order, Refused, Samples, Standing, Study, Surroundings,
    Target, Variables, Watcher, conduct,
};

const REGION: usize = 64 << 10;
const DEFINITION: &str = r#"
format = 1
title = "two transports"
question = "who wrote where?"
row_format = "{transport} {target}"
source = { title = "s", by = "b", date = "d", setting = "m" }
[published]
keys = { transport = "transport" }
figure = [{ column = "rate", metric = "iops", unit = "1/s" }]
[set]
rw = "write"
bs = "4k"
size = "64k"
ioengine = "psync"
iodepth = 1
direct = "off"
end_fsync = true
[[axis]]
key = "transport"
value = [
    { name = "bot", needs = { transport = "bot" }, set = { offset = 0, buffer_pattern = "0x11" } },
    { name = "uas", needs = { transport = "uas" }, set = { offset = "64k", buffer_pattern = "0x22" } },
]
[mode.faithful]
title = "as it was"
place = 1
[mode.improved]
title = "as it should be"
place = 2
samples = 3
order = "shuffled"
"#;

fn study() -> Study {
    Study::read("two", "two", DEFINITION, "transport,rate\nbot,100\nuas,300\n").expect("a study")
}

/// Where the disks are: one that changes its name with its transport, one that is a new device under its old name after
/// each switch, or two that stay.
enum Disks {
    One { folder: PathBuf, on: &'static str },
    Renewed { folder: PathBuf, on: &'static str },
    Two { folder: PathBuf },
}

/// Facts of this machine, with the identity of each target, as the program plans with.
struct WithIdentities;

impl FactsSource for WithIdentities {
    fn look(&self, path: &str) -> trueio_job::Target {
        match Path::new(path).exists() {
            false => trueio_job::Target::Missing,
            true => target_facts(&System::live(), Path::new(path)).map_or_else(
                |e| trueio_job::Target::Unreadable(e.to_string()),
                |f| trueio_job::Target::Present(f.into()),
            ),
        }
    }

    fn target_identity(&self, path: &str) -> Option<TargetIdentity> {
        trueio_device::target_identity(Path::new(path))
    }

    fn in_use(&self, _: &str) -> Result<trueio_job::InUse, String> {
        Ok(trueio_job::InUse::default())
    }
}

impl Disks {
    fn path(&self, transport: &str) -> PathBuf {
        match self {
            Disks::Renewed { folder, .. } => folder.join("sda"),
            Disks::One { folder, .. } | Disks::Two { folder } => {
                folder.join(if transport == "bot" { "sda" } else { "sdb" })
            }
        }
    }

    fn target(&self, transport: &str) -> Target {
        let path = self.path(transport).to_str().expect("UTF-8").to_owned();
        Target::Existing { path, overwrite: true, signatures: None }
    }
}

impl Surroundings for Disks {
    fn plan(&mut self, jobs: &[JobSpec], _: &[String]) -> Result<Plan, Refused> {
        trueio_job::plan(jobs, &WithIdentities, &Machine::unknown())
            .map_err(|refusal| Refused(trueio_job::explain_refusal(&refusal)))
    }

    fn holds(&mut self, needs: &BTreeMap<String, String>, target: &Target) -> Result<Option<Brought>, String> {
        let wanted = needs["transport"].as_str();
        let is_on = match self {
            Disks::One { on, .. } | Disks::Renewed { on, .. } => *on == wanted,
            Disks::Two { .. } => true,
        };
        let conditions = vec![("transport".to_owned(), wanted.to_owned())];
        Ok((is_on && *target == self.target(wanted)).then(|| Brought { conditions, ..Brought::default() }))
    }

    fn bring(&mut self, needs: &BTreeMap<String, String>, _: &Target) -> Result<Brought, String> {
        let wanted = if needs["transport"] == "bot" { "bot" } else { "uas" };
        let to = self.path(wanted);
        if let Disks::Renewed { on, .. } = self
            && *on != wanted
        {
            // The copy is made before the old file is removed, so that it has another inode.
            let copy = to.with_file_name("copy");
            std::fs::copy(&to, &copy).map_err(|error| error.to_string())?;
            std::fs::rename(copy, &to).map_err(|error| error.to_string())?;
            *on = wanted;
        }
        if let Disks::One { on, .. } = self
            && *on != wanted
        {
            let from = to.with_file_name(if *on == "bot" { "sda" } else { "sdb" });
            std::fs::rename(from, &to).map_err(|error| error.to_string())?;
            if let Disks::One { on, .. } = self {
                *on = wanted;
            }
        }
        let conditions = vec![("transport".to_owned(), wanted.to_owned())];
        Ok(Brought { target: Some(self.target(wanted)), notes: Vec::new(), conditions })
    }
}

#[derive(Default)]
struct Watched(Vec<(usize, usize, Option<u64>)>);

impl Observer for Watched {}

impl Watcher for Watched {
    fn standing(&mut self, standing: &Standing<'_>) {
        self.0.push((standing.done, standing.count, standing.left_ns));
    }
}

fn order(target: Target, others: Vec<Target>, seed: u64) -> Order {
    Order {
        modes: vec!["faithful".to_owned(), "improved".to_owned()],
        is_quick: false,
        samples: None,
        seed,
        target,
        others,
        extra: Vec::new(),
        only: Vec::new(),
        variables: Variables::new(),
        may_start_programs: false,
        has_evidence: false,
        interim_every: None,
        command: Vec::new(),
    }
}

fn conducted(order: &Order, disks: &mut Disks, journal: Option<Journal>, earlier: Samples) -> (StudyRecord, Watched) {
    let mut watched = Watched::default();
    let record = conduct(&study(), order, disks, journal, earlier, &AtomicBool::new(false), &mut watched);
    (record.expect("it can be run"), watched)
}

fn folder(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    for name in names {
        std::fs::write(folder.path().join(name), vec![0; 2 * REGION]).expect("a file");
    }
    folder
}

fn rows(record: &StudyRecord) -> impl Iterator<Item = &StudyRow> {
    record.modes.iter().flat_map(|mode| &mode.rows)
}

/// The names of the files that a row used.
fn names(row: &StudyRow) -> Vec<&str> {
    row.files.iter().filter_map(|file| file.path.rsplit('/').next()).collect()
}

/// Asserts that both modes ran completely, and that each sample records what was found on its transport.
fn assert_whole(record: &StudyRecord, seed: u64) {
    assert_eq!(record.outcome, Outcome::Complete, "seed {seed}");
    for (mode, samples) in record.modes.iter().zip([1, 3]) {
        for row in &mode.rows {
            assert_eq!((row.samples.len(), &row.failure), (samples, &None), "seed {seed}, {} {}", mode.name, row.name);
            for sample in &row.samples {
                assert_eq!(sample.conditions, [("transport".to_owned(), row.name.clone())], "seed {seed}");
            }
        }
    }
}

/// Goal: of two disks each sample is measured on the one that it is recorded for, in every mode.
/// Method: BOT is named first; the first mode ends on UAS; seeds with which the second begins with either.
#[test]
fn each_sample_runs_on_the_disk_that_is_on_its_transport() {
    for seed in 0..6 {
        let folder = folder(&["sda", "sdb"]);
        let mut disks = Disks::Two { folder: folder.path().to_owned() };
        let order = order(disks.target("bot"), vec![disks.target("uas")], seed);
        let (record, _) = conducted(&order, &mut disks, None, Samples::new());
        assert_whole(&record, seed);
        for row in rows(&record) {
            let expected = if row.name == "bot" { "sda" } else { "sdb" };
            assert_eq!(names(row), [expected], "seed {seed}, {}", row.name);
            let printed = row.as_published.as_deref().unwrap_or_default();
            assert!(printed.starts_with(&row.name) && printed.ends_with(expected), "seed {seed}: {printed}");
        }
        let [bot, uas] = ["sda", "sdb"].map(|name| std::fs::read(folder.path().join(name)).expect("content"));
        assert!(bot[..REGION].iter().all(|b| *b == 0x11) && uas[REGION..].iter().all(|b| *b == 0x22), "seed {seed}");
        assert!(bot[REGION..].iter().all(|b| *b == 0), "seed {seed}: a row of UAS wrote to the disk on BOT");
        assert!(uas[..REGION].iter().all(|b| *b == 0), "seed {seed}: a row of BOT wrote to the disk on UAS");
    }
}

#[test]
fn a_disk_that_comes_back_under_another_name_is_followed_from_mode_to_mode() {
    for seed in 0..6 {
        let folder = folder(&["sda"]);
        let mut disks = Disks::One { folder: folder.path().to_owned(), on: "bot" };
        let order = order(disks.target("bot"), Vec::new(), seed);
        let (record, _) = conducted(&order, &mut disks, None, Samples::new());
        assert_whole(&record, seed);
        for row in rows(&record) {
            assert_eq!(names(row), [if row.name == "bot" { "sda" } else { "sdb" }], "seed {seed}, {}", row.name);
        }
    }
}

/// Goal: a disk whose driver is bound again keeps its name and is a new device to the kernel; its rows are measured.
/// Method: a switch replaces the file by a copy of itself, so a plan with the old identity is refused before its phase.
#[test]
fn a_disk_that_is_a_new_device_under_its_old_name_is_measured_after_a_switch() {
    for seed in 0..6 {
        let folder = folder(&["sda"]);
        let mut disks = Disks::Renewed { folder: folder.path().to_owned(), on: "bot" };
        let order = order(disks.target("bot"), Vec::new(), seed);
        let (record, _) = conducted(&order, &mut disks, None, Samples::new());
        assert_whole(&record, seed);
        let content = std::fs::read(folder.path().join("sda")).expect("content");
        let (bot, uas) = content.split_at(REGION);
        assert!(bot.iter().all(|b| *b == 0x11) && uas.iter().all(|b| *b == 0x22), "seed {seed}");
    }
}

#[test]
fn the_time_left_is_estimated_from_the_samples_so_far() {
    let folder = folder(&["sda", "sdb"]);
    let mut disks = Disks::Two { folder: folder.path().to_owned() };
    let order = order(disks.target("bot"), vec![disks.target("uas")], 0);
    let (_, Watched(standings)) = conducted(&order, &mut disks, None, Samples::new());
    let counts: Vec<(usize, usize)> = standings.iter().map(|(done, count, _)| (*done, *count)).collect();
    assert_eq!(counts, (0..8).map(|done| (done, 8)).collect::<Vec<_>>());
    assert_eq!(standings[0].2, None, "nothing is known before the first sample");
    assert!(standings[1..].iter().all(|(_, _, left)| left.is_some_and(|ns| ns > 0)), "{standings:?}");
}

fn head(target: &str) -> Head {
    Head {
        format: JOURNAL_FORMAT.to_owned(),
        version: trueio_model::STUDY_VERSION,
        study: "two".to_owned(),
        definition: study().fingerprint,
        target: target.to_owned(),
        modes: vec!["faithful".to_owned(), "improved".to_owned()],
        is_quick: false,
        extra: Vec::new(),
        only: Vec::new(),
        samples: None,
        seed: 0,
    }
}

/// A whole study whose journal then loses all but its first samples, as if it had been interrupted; the disk is on UAS
/// by then, and has another name.
fn interrupted(folder: &Path, samples: usize) -> (PathBuf, Disks) {
    let journal = folder.join("journal.jsonl");
    let mut disks = Disks::One { folder: folder.to_owned(), on: "bot" };
    let order = order(disks.target("bot"), Vec::new(), 0);
    let made = Journal::create(&journal, &head("sda")).expect("a journal");
    conducted(&order, &mut disks, Some(made), Samples::new());
    let text = std::fs::read_to_string(&journal).expect("the journal");
    assert_eq!(text.lines().count(), 9, "a line for each sample, and one to begin with");
    let kept: String = text.split_inclusive('\n').take(1 + samples).collect();
    std::fs::write(&journal, kept).expect("the journal");
    disks.bring(&BTreeMap::from([("transport".to_owned(), "uas".to_owned())]), &order.target).expect("a rename");
    (journal, disks)
}

#[test]
fn a_study_goes_on_after_its_disk_got_another_name() {
    let folder = folder(&["sda"]);
    let (journal, mut disks) = interrupted(folder.path(), 5);
    let (journal, earlier) = Journal::resume(&journal, &head("sda")).expect("it can be gone on with");
    assert_eq!(earlier.len(), 5);
    let order = order(disks.target("uas"), Vec::new(), 0);
    let (record, _) = conducted(&order, &mut disks, Some(journal), earlier);
    assert_whole(&record, 0);
    let notes: Vec<&String> = record.modes.iter().flat_map(|mode| &mode.notes).collect();
    assert!(notes.iter().any(|note| note.starts_with("2 samples are from an earlier attempt")), "{notes:?}");
    assert!(notes.iter().any(|note| note.starts_with("3 samples are from an earlier attempt")), "{notes:?}");
    for row in rows(&record) {
        assert_eq!(names(row), [if row.name == "bot" { "sda" } else { "sdb" }], "{}", row.name);
    }
}

/// A disk that declares no volatile cache.
fn write_through(path: &Path) -> TargetFacts {
    let disk = DiskFacts {
        name: "sda".to_owned(),
        device_number: (8, 0),
        model: Fact::not_recorded(),
        serial: Fact::not_recorded(),
        firmware: Fact::not_recorded(),
        wwid: Fact::not_recorded(),
        transport: Fact::not_recorded(),
        size_bytes: Fact::not_recorded(),
        logical_sector_bytes: Fact::not_recorded(),
        physical_sector_bytes: Fact::not_recorded(),
        is_rotational: Fact::not_recorded(),
        scheduler: Fact::not_recorded(),
        write_cache: Fact::known("write through".into(), "a test"),
        has_fua: Fact::not_recorded(),
        request_count: Fact::not_recorded(),
        max_request_bytes: Fact::not_recorded(),
        read_ahead_bytes: Fact::not_recorded(),
        counts_io: Fact::not_recorded(),
        limits: Default::default(),
        usb: None,
        link: None,
    };
    TargetFacts {
        path: path.to_str().expect("UTF-8").to_owned(),
        kind: TargetKind::BlockDevice,
        size_bytes: Fact::not_recorded(),
        filesystem: None,
        stack: Vec::new(),
        disks: vec![disk],
        direct: DirectFacts {
            support: DirectSupport::Unknown,
            reason: String::new(),
            memory_alignment_bytes: Fact::not_recorded(),
            write_alignment_bytes: Fact::not_recorded(),
            read_alignment_bytes: Fact::not_recorded(),
            atomic_write: Fact::not_recorded(),
        },
        io_limits: Fact::not_recorded(),
        driven: None,
    }
}

/// Goal: a sample of an earlier attempt is durable by its disk's word if it was so then, and the disk is in the record.
/// Method: every sample is from the journal, whose disk is made one that declares no volatile cache.
#[test]
fn what_a_disk_declared_when_a_sample_was_taken_is_known_when_the_study_goes_on() {
    let folder = folder(&["sda"]);
    let (journal, mut disks) = interrupted(folder.path(), 8);
    let (journal, mut earlier) = Journal::resume(&journal, &head("sda")).expect("it can be gone on with");
    let facts = write_through(&disks.path("bot"));
    earlier.values_mut().for_each(|kept| kept.targets = vec![facts.clone()]);
    let order = order(disks.target("uas"), Vec::new(), 0);
    let (record, _) = conducted(&order, &mut disks, Some(journal), earlier);
    assert_whole(&record, 0);
    assert_eq!(record.targets, [facts]);
    for row in rows(&record) {
        assert_eq!(row.durability.as_ref().map(|found| found.is), Some(DurabilityKind::Declared), "{}", row.name);
    }
}

#[test]
fn the_newest_matching_journal_is_resumed_by_one_run_only() {
    let folder = folder(&[]);
    let path = |name: &str| folder.path().join(name);
    let all = || ["a", "b", "c"].map(path);
    let second = std::time::Duration::from_secs(1);
    let begin = std::time::SystemTime::now() - 60 * second;
    for (index, (name, target)) in [("a", "disk A"), ("b", "disk B"), ("c", "disk C")].into_iter().enumerate() {
        drop(Journal::create(&path(name), &head(target)).expect("a journal"));
        let file = std::fs::File::options().write(true).open(path(name)).expect("the journal");
        file.set_modified(begin + index as u32 * second).expect("a time");
    }
    assert_eq!(Journal::newest(all(), &head("disk A")).expect("it fits"), path("a"));
    assert_eq!(Journal::newest(all(), &head("disk B")).expect("it fits"), path("b"));
    let other = Journal::newest(all(), &head("disk D")).expect_err("none fits").expect("and why");
    assert!(matches!(&other, JournalError::Other { path: of, what: "target" } if *of == path("c")), "{other}");
    let of_another = Head { study: "three".to_owned(), ..head("disk A") };
    assert!(Journal::newest(all(), &of_another).is_err_and(|other| other.is_none()));

    let (going_on, _) = Journal::resume(&path("a"), &head("disk A")).expect("no other process has it");
    let refused = Journal::resume(&path("a"), &head("disk A")).expect_err("it is in use");
    assert!(matches!(refused, JournalError::InUse { .. }) && refused.to_string().contains("/a`"), "{refused}");
    drop(going_on);
    drop(Journal::resume(&path("a"), &head("disk A")).expect("it is free again"));
    // A new journal is locked, too.
    let begun = Journal::create(&path("d"), &head("disk D")).expect("a journal");
    assert!(matches!(Journal::resume(&path("d"), &head("disk D")), Err(JournalError::InUse { .. })));
    drop(begun);
}
