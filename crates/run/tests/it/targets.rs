//! A run writes only the targets that were checked, even if another program changes paths and devices in between. Each
//! test makes the change at an exact point: between plan and run, or while an event is handled.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use trueio_job::{FactsSource, Machine};
use trueio_model::{JobSpec, Origin, Outcome, Plan, RunRecord};
use trueio_run::machine::MachineFacts;
use trueio_run::planning::planned_and_claimed;
use trueio_run::{Event, Observer, Reporting, Request, Targets, run};
use trueio_testkit::{Loop, folder, tool};

/// Calls `deed` once, at the first event for which `is_time` returns true.
struct Meanwhile<'a> {
    is_time: fn(&Event<'_>) -> bool,
    deed: Option<&'a dyn Fn()>,
}

impl Observer for Meanwhile<'_> {
    fn notify(&mut self, event: Event<'_>) {
        if (self.is_time)(&event)
            && let Some(deed) = self.deed.take()
        {
            deed();
        }
    }
}

/// The files of the first phase are prepared, and no later phase has begun.
fn in_phase_1(event: &Event<'_>) -> bool {
    matches!(event, Event::PhaseBegins { index: 0, .. })
}

/// A piece of a file was written before the run.
fn while_filling(event: &Event<'_>) -> bool {
    matches!(event, Event::Preparing { .. })
}

/// Jobs, each in its own phase.
fn specs(jobs: &[&[(&str, &str)]]) -> Vec<JobSpec> {
    let spec = |(index, options): (usize, &&[(&str, &str)])| {
        let mut spec = JobSpec::new(format!("j{index}"));
        let mut set = |name: &str, value: &str| spec.set(name, value, Origin::Preset { name: "test".into() });
        options.iter().for_each(|(name, value)| set(name, value));
        set("stonewall", "true");
        spec
    };
    jobs.iter().enumerate().map(spec).collect()
}

/// A plan whose targets the run opens.
fn planned(jobs: &[&[(&str, &str)]]) -> Plan {
    trueio_job::plan(&specs(jobs), &MachineFacts::probing(), &Machine::unknown()).expect("a plan")
}

/// A plan whose targets are open and claimed, as the commands make it.
fn claimed(jobs: &[&[(&str, &str)]]) -> (Plan, Targets) {
    planned_and_claimed(&specs(jobs), &Machine::unknown(), |_| Ok(())).expect("a plan")
}

fn ran(plan: Plan, stop: &AtomicBool, meanwhile: &mut Meanwhile<'_>) -> RunRecord {
    ran_on((plan, Targets::default()), stop, meanwhile)
}

fn ran_on((plan, targets): (Plan, Targets), stop: &AtomicBool, meanwhile: &mut Meanwhile<'_>) -> RunRecord {
    let request = Request {
        kind: "run".into(),
        command: Vec::new(),
        spec: Vec::new(),
        plan,
        targets,
        has_evidence: false,
        reporting: Reporting::default(),
    };
    let record = run(request, stop, meanwhile);
    assert!(meanwhile.deed.is_none(), "nothing was staged: {:?}", record.outcome);
    record
}

#[track_caller]
fn assert_failed(record: &RunRecord, words: &str) {
    let Outcome::Failed { reason } = &record.outcome else { panic!("{:?}", record.outcome) };
    assert!(reason.contains(words), "{reason}");
}

const NULL: &[(&str, &str)] = &[("ioengine", "null"), ("size", "64k")];

fn write_of(path: &str) -> [(&str, &str); 4] {
    [("rw", "write"), ("size", "64k"), ("filename", path), ("overwrite_existing", path)]
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Goal: the file that was named is written, or nothing. Method: while phase 1 runs, the file of phase 2 is renamed, and its
/// name given to a link to another file, to that file itself, or to nothing; by jobs that write and that read.
#[test]
fn a_file_that_is_replaced_during_phase_1_ends_the_run_before_phase_2() {
    let swaps: [fn(&Path, &Path); 3] = [
        |name, other| symlink(other, name).expect("a link"),
        |name, other| fs::hard_link(other, name).expect("a link"),
        |_, _| {},
    ];
    for (index, swap) in swaps.iter().enumerate() {
        for rw in ["write", "read"] {
            let folder = folder();
            let [name, other, kept] = ["b.dat", "precious", "kept"].map(|name| folder.path().join(name));
            fs::write(&name, vec![1; 1 << 20]).expect("a file");
            fs::write(&other, vec![2; 1 << 20]).expect("a file");
            let write = write_of(text(&name));
            let read = [("rw", "read"), ("filename", text(&name))];
            let plan = planned(&[NULL, if rw == "write" { &write } else { &read }]);
            let deed = || {
                fs::rename(&name, &kept).expect("moved");
                swap(&name, &other);
            };
            let mut meanwhile = Meanwhile { is_time: in_phase_1, deed: Some(&deed) };
            let record = ran(plan, &AtomicBool::new(false), &mut meanwhile);
            // A job that only reads follows links, and finds another file.
            assert_failed(&record, "has changed since the run was planned: ");
            assert_eq!(record.phases.len(), 1, "{rw} {index}");
            assert!(fs::read(&other).expect("a file") == vec![2; 1 << 20], "another file was written");
            assert!(fs::read(&kept).expect("a file") == vec![1; 1 << 20]);
        }
    }
}

/// The same of a file that is not the one of the plan when the run begins, and of one that is longer or shorter.
#[test]
fn a_file_that_changes_between_plan_and_run_is_not_written() {
    let changes: [fn(&Path); 3] = [
        |name| {
            fs::remove_file(name).expect("removed");
            fs::write(name, vec![2; 1 << 20]).expect("a file");
        },
        |name| fs::write(name, vec![2; 2 << 20]).expect("a file"),
        |name| fs::write(name, vec![2; 1 << 19]).expect("a file"),
    ];
    for change in changes {
        let folder = folder();
        let name = folder.path().join("b.dat");
        fs::write(&name, vec![1; 1 << 20]).expect("a file");
        let plan = planned(&[&write_of(text(&name))]);
        change(&name);
        let record = ran(plan, &AtomicBool::new(false), &mut Meanwhile { is_time: in_phase_1, deed: None });
        assert_failed(&record, "has changed since the run was planned: ");
        assert!(fs::read(&name).expect("a file").iter().all(|&byte| byte == 2), "it was written");
    }
}

/// A disk with an ext4 on it, in a file.
fn ext4_image(folder: &Path) -> PathBuf {
    let image = folder.join("ext4");
    File::create(&image).and_then(|file| file.set_len(16 << 20)).expect("an image");
    tool("mkfs.ext4", &["-q", "-F", text(&image)]).expect("mkfs.ext4");
    image
}

/// Goal: a device under the same name and number that is another disk is not written.
/// Method: a loop device, bare when planned, that is attached again to an image with ext4.
#[test]
fn a_device_that_is_another_disk_when_the_run_begins_is_not_written() {
    if trueio_testkit::lacks("loop") {
        return;
    }
    let folder = folder();
    let image = ext4_image(folder.path());
    let mut disk = Loop::create(16 << 20, &[]).expect("a loop device");
    let plan = planned(&[&write_of(&disk.device)]);
    // As another test that looks through the machine's devices.
    let held = File::open(&disk.device).expect("a device");
    let other = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        drop(held);
    });
    disk.attach_again(&image).expect("attached");
    other.join().expect("it closes the device");
    let before = fs::read(&image).expect("an image");
    let record = ran(plan, &AtomicBool::new(false), &mut Meanwhile { is_time: in_phase_1, deed: None });
    assert_failed(&record, "its path now refers to another disk");
    assert!(fs::read(&image).expect("an image") == before, "the filesystem was written");
}

/// Goal: from the end of planning on, no other program can claim a device that will be written, and its name cannot become
/// another disk. Method: after planning, an exclusive open and `losetup --detach` with another image are tried; the run
/// writes the disk that was planned. When the run is over, the device is free again.
#[test]
fn a_device_is_claimed_when_its_plan_is_complete() {
    if trueio_testkit::lacks("loop") {
        return;
    }
    let folder = folder();
    let image = ext4_image(folder.path());
    let before = fs::read(&image).expect("an image");
    let disk = Loop::create(16 << 20, &[]).expect("a loop device");
    let claim = || {
        let mut options = fs::OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_EXCL);
        options.read(true).open(&disk.device).map(drop).map_err(|error| error.raw_os_error())
    };
    let planned = claimed(&[&write_of(&disk.device)]);
    assert_eq!(claim(), Err(Some(libc::EBUSY)));
    disk.mark_detached().expect("marked");
    tool("losetup", &[&disk.device, text(&image)]).expect_err("it is held");
    let record = ran_on(planned, &AtomicBool::new(false), &mut Meanwhile { is_time: in_phase_1, deed: None });
    assert_eq!(record.outcome, Outcome::Complete);
    assert!(fs::read(&disk.backing).expect("an image")[..64 << 10] != [0; 64 << 10], "the disk was not written");
    assert!(fs::read(&image).expect("an image") == before, "the filesystem was written");
}

/// Goal: the file that was examined is the one that is open, also if its inode number is free again meanwhile.
/// Method: the planned file is removed and another one made under its name, many times over: ext4 gives the first free
/// inode again. Without a descriptor the numbers could be equal.
#[test]
fn a_file_is_open_when_its_plan_is_complete() {
    let folder = folder();
    let name = folder.path().join("b.dat");
    fs::write(&name, vec![1; 1 << 20]).expect("a file");
    let inode = fs::metadata(&name).expect("a file").ino();
    let planned = claimed(&[&write_of(text(&name))]);
    for _ in 0..20 {
        fs::remove_file(&name).expect("removed");
        fs::write(&name, vec![2; 1 << 20]).expect("a file");
        assert_ne!(fs::metadata(&name).expect("a file").ino(), inode, "the planned file is held");
    }
    let record = ran_on(planned, &AtomicBool::new(false), &mut Meanwhile { is_time: in_phase_1, deed: None });
    assert_failed(&record, "has changed since the run was planned: its path now refers to another file");
    assert!(fs::read(&name).expect("a file").iter().all(|&byte| byte == 2), "it was written");
}

/// Goal: a device that another program claims between its examination and the end of planning is refused, not measured.
#[test]
fn a_device_that_cannot_be_claimed_is_refused_while_planning() {
    if trueio_testkit::lacks("loop") {
        return;
    }
    let disk = Loop::create(16 << 20, &[]).expect("a loop device");
    let mut options = fs::OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_EXCL);
    let other = std::cell::RefCell::new(None);
    let check = |_: &Plan| {
        other.replace(Some(options.clone().read(true).open(&disk.device).expect("a claim")));
        Ok(())
    };
    let error = planned_and_claimed(&specs(&[&write_of(&disk.device)]), &Machine::unknown(), check).expect_err("busy");
    let line = format!("because: `{}` cannot be claimed for writing (O_EXCL)", disk.device);
    assert!(error.into_text().contains(&line));
}

/// The same during phase 1: the kernel does not detach a device that is held.
#[test]
fn a_device_cannot_become_another_disk_during_the_run() {
    if trueio_testkit::lacks("loop") {
        return;
    }
    let folder = folder();
    let image = ext4_image(folder.path());
    let disk = Loop::create(16 << 20, &[]).expect("a loop device");
    let plan = planned(&[NULL, &write_of(&disk.device)]);
    let before = fs::read(&image).expect("an image");
    let deed = || {
        disk.mark_detached().expect("marked");
        tool("losetup", &[&disk.device, text(&image)]).expect_err("it is held");
    };
    let record = ran(plan, &AtomicBool::new(false), &mut Meanwhile { is_time: in_phase_1, deed: Some(&deed) });
    assert_eq!((&record.outcome, record.phases.len()), (&Outcome::Complete, 2));
    assert!(fs::read(&image).expect("an image") == before, "the filesystem was written");
    assert!(fs::read(&disk.backing).expect("an image")[..64 << 10] != [0; 64 << 10], "the disk was not written");
}

#[test]
fn a_device_that_carries_something_else_before_its_first_phase_is_not_written() {
    if trueio_testkit::lacks("loop") {
        return;
    }
    let disk = Loop::create(16 << 20, &[]).expect("a loop device");
    let plan = planned(&[NULL, &write_of(&disk.device)]);
    let deed = || {
        let device = fs::OpenOptions::new().write(true).open(&disk.device).expect("a device");
        device.write_all_at(b"XFSB", 0).and_then(|()| device.sync_all()).expect("a signature");
    };
    let record = ran(plan, &AtomicBool::new(false), &mut Meanwhile { is_time: in_phase_1, deed: Some(&deed) });
    assert_failed(&record, "its signatures were none, and are xfs (at byte 0) now");
    assert_eq!(&fs::read(&disk.backing).expect("an image")[..4], b"XFSB");
}

/// Goal: the users and signatures that the plan refuses are those of the disk whose identity it keeps.
/// Method: between the two questions, a path of a disk with ext4 becomes a node of a bare disk; then the disk with ext4 is
/// detached, and the bare disk's image attached under its number. Without a change the answers are the same disk's.
#[test]
fn a_device_that_is_swapped_while_it_is_examined_is_examined_as_the_first_disk() {
    if trueio_testkit::lacks("loop") {
        return;
    }
    let folder = folder();
    let full = Loop::over(&ext4_image(folder.path()), &[]);
    let bare = Loop::create(16 << 20, &[]).expect("a loop device");
    let node_of = |disk: &Loop, name: &str| {
        let number = fs::metadata(&disk.device).expect("a device").rdev();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let path = folder.path().join(name);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::BlockDevice, mode, number).expect("a node");
        path
    };
    let names = |facts: &MachineFacts, path: &Path| -> Vec<String> {
        facts.in_use(text(path)).expect("examined").marks.into_iter().map(|mark| mark.name).collect()
    };
    let (path, other) = (node_of(&full, "disk"), node_of(&bare, "other"));
    let facts = MachineFacts::without_probing();
    let identity = facts.target_identity(text(&path)).expect("a device");
    assert_eq!(names(&facts, &path), ["ext4"]);
    fs::rename(&other, &path).expect("swapped");
    assert_eq!(names(&facts, &path), ["ext4"]);
    // The kernel keeps the disk's number as long as it is being examined.
    full.mark_detached().expect("marked");
    tool("losetup", &[&full.device, text(&bare.backing)]).expect_err("it is held");
    assert_eq!(names(&facts, &path), ["ext4"]);
    let now = MachineFacts::without_probing().target_identity(text(&path)).expect("a device");
    assert!(!identity.is_same(&now), "the run compares them");
}

/// The same for files, of which only the first ones are kept open: users of another file are not taken for those of this one.
#[test]
fn a_file_that_is_swapped_while_it_is_examined_is_not_examined_as_another() {
    let folder = folder();
    let facts = MachineFacts::without_probing();
    let paths: Vec<PathBuf> = (0..300).map(|index| folder.path().join(format!("{index}"))).collect();
    for path in &paths {
        fs::write(path, "ours").expect("a file");
        facts.target_identity(text(path)).expect("a file");
    }
    let swap = |path: &Path| {
        fs::write(folder.path().join("theirs"), "theirs").expect("a file");
        fs::rename(folder.path().join("theirs"), path).expect("swapped");
    };
    for path in [&paths[0], &paths[299]] {
        assert_eq!(facts.in_use(text(path)).map(|found| found.uses.len()), Ok(0));
    }
    swap(&paths[0]);
    facts.in_use(text(&paths[0])).expect("the first file, which is held");
    swap(&paths[299]);
    let reason = facts.in_use(text(&paths[299])).expect_err("it is another file");
    assert_eq!(reason, "another program replaced it meanwhile");
}

/// Goal: clean-up removes the file that was made and no other. Method: while it is filled, the file is moved aside and its
/// name given to another one; then the run is interrupted.
#[test]
fn clean_up_leaves_another_file_that_got_the_name_meanwhile() {
    let folder = folder();
    let [name, aside] = ["data", "aside"].map(|name| folder.path().join(name));
    let plan = planned(&[&[("rw", "read"), ("size", "16m"), ("filename", text(&name)), ("unlink", "false")]]);
    let stop = AtomicBool::new(false);
    let deed = || {
        fs::rename(&name, &aside).expect("moved");
        fs::write(&name, "another's").expect("a file");
        stop.store(true, Relaxed);
    };
    let record = ran(plan, &stop, &mut Meanwhile { is_time: while_filling, deed: Some(&deed) });
    assert!(matches!(record.outcome, Outcome::Interrupted { .. }), "{:?}", record.outcome);
    assert_eq!(fs::read(&name).expect("a file"), b"another's");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
}

#[test]
fn clean_up_leaves_a_file_to_which_another_program_appended() {
    let folder = folder();
    let name = folder.path().join("data");
    let plan = planned(&[&[("rw", "read"), ("size", "16m"), ("filename", text(&name)), ("unlink", "false")]]);
    let stop = AtomicBool::new(false);
    let deed = || {
        append(&name);
        stop.store(true, Relaxed);
    };
    ran(plan, &stop, &mut Meanwhile { is_time: while_filling, deed: Some(&deed) });
    assert!(fs::read(&name).expect("a file").ends_with(LINE));
}

const LINE: &[u8] = b"a line of another program\n";

fn append(path: &Path) {
    fs::OpenOptions::new().append(true).open(path).and_then(|mut file| file.write_all(LINE)).expect("appended");
}

/// Goal: what another program appends while a file is made longer is neither written over nor cut off.
/// Method: it does so while the file is filled; then the run is interrupted, or goes on and finds it.
#[test]
fn a_line_that_another_program_appends_while_a_file_is_extended_is_kept() {
    for is_interrupted in [true, false] {
        let folder = folder();
        let name = folder.path().join("data");
        fs::write(&name, [7; 1000]).expect("a file");
        let path = text(&name);
        let extended = [("rw", "read"), ("size", "16m"), ("filename", path), ("extend_existing", path), ("bs", "4k")];
        let stop = AtomicBool::new(false);
        let deed = || {
            append(&name);
            stop.store(is_interrupted, Relaxed);
        };
        let record = ran(planned(&[&extended]), &stop, &mut Meanwhile { is_time: while_filling, deed: Some(&deed) });
        match is_interrupted {
            true => assert!(matches!(record.outcome, Outcome::Interrupted { .. }), "{:?}", record.outcome),
            false => assert_failed(&record, "another program appended to it at the same time"),
        }
        let content = fs::read(&name).expect("a file");
        assert!(content.starts_with(&[7; 1000]));
        assert!(content.ends_with(LINE), "the line is gone, of {} bytes", content.len());
    }
    // Without such a line, the file is as long as it was.
    let folder = folder();
    let name = folder.path().join("data");
    fs::write(&name, [7; 1000]).expect("a file");
    let path = text(&name);
    let extended = [("rw", "read"), ("size", "16m"), ("filename", path), ("extend_existing", path), ("bs", "4k")];
    let stop = AtomicBool::new(false);
    let deed = || stop.store(true, Relaxed);
    ran(planned(&[&extended]), &stop, &mut Meanwhile { is_time: while_filling, deed: Some(&deed) });
    assert_eq!(fs::read(&name).expect("a file"), [7; 1000]);
}
