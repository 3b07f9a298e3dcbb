//! The record of `trueio powercut` in the history, and what it makes of commits that are measured on the same device.
//!
//! Records are simulated: the device is that of the kept baseline of an example disk, which has a serial number.

use crate::common::*;
use std::collections::BTreeMap;
use std::fs;
use trueio_model::{
    DeviceIdentity, Document, Fact, POWERCUT_FORMAT, POWERCUT_VERSION, PowerLoss, PowercutFigures, PowercutMethod,
    PowercutReach, PowercutRecord, PowercutVerdict, PowercutWay, RunRecord, ToolFacts, powercut_reach,
};

/// A baseline of an example disk with a serial number, whose commits are confirmed.
fn baseline() -> RunRecord {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../store/tests/records/v1.json");
    RunRecord::from_json(&fs::read_to_string(path).expect("a record")).expect("a record")
}

fn method(name: &str, verdict: PowercutVerdict, cuts: u64, lost: u64) -> PowercutMethod {
    let lost = if lost > 0 { BTreeMap::from([("older".to_owned(), lost)]) } else { BTreeMap::new() };
    let is_at_risk = verdict != PowercutVerdict::CannotTell;
    PowercutMethod {
        name: name.to_owned(),
        flushes: name.ends_with("sync") && !name.ends_with("dsync"),
        verdict,
        sentence: "its reason".to_owned(),
        figures: PowercutFigures {
            cuts,
            cuts_at_risk: if is_at_risk { cuts } else { 0 },
            cuts_with_loss: cuts.min(lost.values().sum()),
            acknowledged: 6_000 * cuts,
            at_risk: if is_at_risk { 4_821 * cuts } else { 0 },
            lost,
        },
    }
}

/// A record of ten cuts of the example disk at a second after 2026-12-03.
fn record(second: u64, methods: Vec<PowercutMethod>) -> PowercutRecord {
    let base = baseline();
    let verdicts: Vec<PowercutVerdict> = methods.iter().map(|method| method.verdict).collect();
    let verdict = [PowercutVerdict::Lost, PowercutVerdict::Kept].into_iter().find(|one| verdicts.contains(one));
    let started_unix_s = 1_796_256_000 + second;
    let (reach, reach_reason) = powercut_reach(&base.targets[0], &base.environment);
    PowercutRecord {
        format: POWERCUT_FORMAT.to_owned(),
        version: POWERCUT_VERSION,
        id: format!("{second:032x}"),
        started_unix_s,
        started_at: trueio_model::format_utc(started_unix_s),
        command: vec!["trueio".to_owned(), "powercut".to_owned()],
        tool: ToolFacts { name: "trueio".to_owned(), version: "0.1.0".to_owned(), build: "release".to_owned() },
        way: PowercutWay::Local,
        target: base.targets[0].clone(),
        environment: base.environment,
        cuts: 10,
        reach,
        reach_reason,
        verdict: verdict.unwrap_or(PowercutVerdict::CannotTell),
        sentence: "the reason of the disk".to_owned(),
        methods,
    }
}

const FDATASYNC: &str = "direct-fdatasync";

fn kept(second: u64) -> PowercutRecord {
    record(second, vec![method(FDATASYNC, PowercutVerdict::Kept, 10, 0)])
}

fn lost(second: u64) -> PowercutRecord {
    record(second, vec![method(FDATASYNC, PowercutVerdict::Lost, 10, 17)])
}

/// The report of the baseline in a new history with records; the first line about power loss, and the whole text.
fn reported(records: &[PowercutRecord], of: &RunRecord) -> (Option<String>, String) {
    let sandbox = Sandbox::new();
    for record in records {
        fs::write(sandbox.path("powercut.json"), record.to_json().expect("JSON")).expect("a file");
        sandbox.run(&["history", "import", "powercut.json"]).assert_code(0);
    }
    fs::write(sandbox.path("run.json"), of.to_json().expect("JSON")).expect("a file");
    let ran = sandbox.command(&["report", "run.json"]).env("COLUMNS", "200").output().expect("it runs");
    let text = String::from_utf8(ran.stdout).expect("UTF-8");
    assert!(ran.status.success(), "{text}");
    let line = text.lines().find(|line| line.contains("power loss") || line.contains("not the disk:"));
    (line.map(|line| line.trim().to_owned()), text)
}

const PROVED: &str = "Commits survive power loss: proved by 10 cuts on 2026-12-03 (level E4); none of 48,210 acknowledged writes at \
                      risk was lost.";
const DISPROVED: &str = "Commits survive power loss: disproved by 10 cuts on 2026-12-03 (level E4); 17 of 60,000 acknowledged writes \
                         were lost (direct-fdatasync).";

/// Goal: a kept, a lost and an undecided test say what they show of later commits on the device, and the newest one decides.
#[test]
fn commits_are_proved_or_disproved_by_cuts_of_the_same_device() {
    let run = baseline();
    let undecided = |second| record(second, vec![method(FDATASYNC, PowercutVerdict::CannotTell, 10, 0)]);
    // FUA alone is not how this load commits.
    let fua = record(1, vec![method("direct-dsync", PowercutVerdict::Kept, 10, 0)]);
    let fua_lost = record(
        1,
        vec![method(FDATASYNC, PowercutVerdict::Kept, 10, 0), method("direct-dsync", PowercutVerdict::Lost, 10, 17)],
    );
    let opposite = |text: &str| format!("{text} The test on 2026-12-03 showed the opposite.");
    for (records, expected) in [
        (vec![], None),
        (vec![kept(1)], Some(PROVED.to_owned())),
        (vec![lost(1)], Some(DISPROVED.to_owned())),
        (vec![undecided(1)], None),
        (vec![fua], None),
        (vec![fua_lost], Some(DISPROVED.replace(FDATASYNC, "direct-dsync"))),
        (vec![kept(1), undecided(2)], Some(PROVED.to_owned())),
        (vec![lost(1), kept(2)], Some(opposite(PROVED))),
        (vec![kept(1), lost(2)], Some(opposite(DISPROVED))),
    ] {
        let verdicts: Vec<&str> = records.iter().map(|record| record.verdict.word()).collect();
        let (line, text) = reported(&records, &run);
        assert_eq!(line, expected, "{verdicts:?}\n{text}");
    }
}

/// Goal: cuts of another disk, of one that is known by its filesystem's UUID only, and of a virtual machine prove nothing of this disk.
#[test]
fn cuts_of_another_or_an_uncertain_device_or_of_a_virtual_machine_prove_nothing_of_the_disk() {
    let run = baseline();
    let mut other = kept(1);
    other.target.disks[0].serial = Fact::known("EX0000000002".to_owned(), "test");
    let mut uncertain = (kept(1), run.clone());
    for target in [&mut uncertain.0.target, &mut uncertain.1.targets[0]] {
        target.disks[0].serial = Fact::unknown("not root");
        target.filesystem.as_mut().expect("a filesystem").uuid = Fact::known("c0ffee-1".to_owned(), "test");
    }
    let mut placeholder = (kept(1), run.clone());
    for target in [&mut placeholder.0.target, &mut placeholder.1.targets[0]] {
        target.disks[0].serial = Fact::known("0123456789ABCDEF".to_owned(), "test");
    }
    for (record, run) in [(&other, &run), (&uncertain.0, &uncertain.1), (&placeholder.0, &placeholder.1)] {
        let (line, text) = reported(std::slice::from_ref(record), run);
        assert_eq!(line, None, "{:?}\n{text}", DeviceIdentity::of(&record.target));
    }
    // A filesystem without barriers does not flush the disk; cuts of such a one count.
    let mut without = run.clone();
    without.targets[0].filesystem.as_mut().expect("a filesystem").options = "rw,nobarrier".to_owned();
    assert_eq!(reported(&[kept(1)], &without).0, None);
    let mut cut = lost(1);
    cut.target.filesystem.clone_from(&without.targets[0].filesystem);
    assert_eq!(reported(&[cut], &without).0.as_deref(), Some(DISPROVED));
    let mut machine = kept(1);
    machine.environment.hypervisor = Fact::known("KVM".to_owned(), "test");
    (machine.reach, machine.reach_reason) = powercut_reach(&machine.target, &machine.environment);
    let mut virtual_disk = kept(2);
    virtual_disk.target.disks[0].transport = Fact::known("loop".into(), "test");
    (virtual_disk.reach, virtual_disk.reach_reason) = powercut_reach(&virtual_disk.target, &virtual_disk.environment);
    for (record, reason) in [(&machine, "the machine is virtual"), (&virtual_disk, "is a virtual disk (loop)")] {
        let (line, text) = reported(std::slice::from_ref(record), &run);
        let line = line.unwrap_or_else(|| panic!("{text}"));
        assert!(line.contains("page cache and filesystem only, not the disk: ") && line.contains(reason), "{line}");
        assert!(!line.contains("E4") && !line.contains("survive"), "{line}");
        // A cut that reached the disk is worth more, also if it is older.
        let both = [record.clone(), kept(0)];
        assert_eq!(reported(&both, &run).0.as_deref(), Some(PROVED));
    }
}

/// Goal: no sentence stands without confirmed commits, and none rests on a verdict whose figures say something else.
#[test]
fn without_confirmed_commits_or_with_figures_that_contradict_there_is_no_sentence() {
    let run = baseline();
    let with_figures = |change: &dyn Fn(&mut PowercutFigures)| {
        let mut record = kept(1);
        change(&mut record.methods[0].figures);
        record
    };
    for record in [
        with_figures(&|figures| figures.cuts_at_risk = 0),
        with_figures(&|figures| figures.at_risk = 19),
        with_figures(&|figures| figures.acknowledged = 0),
        with_figures(&|figures| figures.lost = BTreeMap::from([("torn".to_owned(), 1)])),
        with_figures(&|figures| {
            figures.lost = BTreeMap::from([("torn".to_owned(), u64::MAX), ("older".to_owned(), 2)])
        }),
    ] {
        assert_eq!(PowerLoss::of(&record), None, "{:?}", record.methods);
        assert_eq!(reported(&[record], &run).0, None);
    }
    for lacks in ["append 4k fdatasync", "other"] {
        let mut other = run.clone();
        other.phases.retain(|phase| phase.name != lacks);
        assert_eq!(reported(&[kept(1)], &other).0.is_some(), lacks == "other", "{lacks}");
    }
}

/// Goal: the history lists the record under its device, `report`, `show`, `export` and `import` keep it, and a damaged one is refused.
#[test]
fn the_history_lists_reports_exports_and_imports_the_record() {
    let sandbox = Sandbox::new();
    let record = lost(1);
    fs::write(sandbox.path("powercut.json"), record.to_json().expect("JSON")).expect("a file");
    let imported = sandbox.run(&["history", "import", "powercut.json"]);
    assert!(imported.out.contains("cuts of power"), "{imported:?}");
    let list = sandbox.run(&["history", "--kind", "powercut"]);
    let words = ["00000000  2026-12-03T00:00:01Z  powercut  lost ", "the reason of the disk"];
    assert!(words.iter().all(|words| list.out.contains(words)), "{list:?}");
    let devices = sandbox.run(&["history", "devices"]);
    assert!(devices.out.contains("1 run,") && devices.out.contains("EX0000000001"), "{devices:?}");
    for name in [&record.id[..], "powercut.json"] {
        let text = sandbox.run(&["report", name]);
        text.assert_code(0);
        assert!(text.out.contains("\nLost: the reason of the disk\ndirect-fdatasync         lost "), "{text:?}");
        let json = sandbox.run(&["report", name, "--json", "-"]);
        assert_eq!(PowercutRecord::from_json(&json.out).expect("a record"), record);
        sandbox.run(&["report", name, "--markdown", "powercut.md"]).assert_code(0);
        let markdown = fs::read_to_string(sandbox.path("powercut.md")).expect("a file");
        assert!(markdown.contains("| direct-fdatasync | lost | 10 | 60,000 | 48,210 | 17 |"), "{markdown}");
        sandbox.run(&["report", name, "--html", "x.html"]).assert_refused(&["--html was not written", "--markdown"]);
    }
    assert!(
        sandbox.run(&["history", "show", &record.id]).out.contains("recognised by its serial number"),
        "the device"
    );
    sandbox.run(&["history", "export", "all.jsonl"]).assert_code(0);
    sandbox.run(&["history", "export", "all.csv"]).assert_code(0);
    let again = Sandbox::new();
    fs::copy(sandbox.path("all.jsonl"), again.path("all.jsonl")).expect("a copy");
    again.run(&["history", "import", "all.jsonl"]).assert_code(0);
    let shown = again.run(&["report", &record.id, "--json", "-"]);
    assert_eq!(PowercutRecord::from_json(&shown.out).expect("a record"), record);
    for (from, to, words) in [
        ("\"version\":1", "\"version\":9", "version 9"),
        ("\"methods\":[", "\"methods\":[7,", "damaged"),
        ("\"id\":\"0", "\"id\":\"-", "`id` is not 4 to 64"),
    ] {
        let text = record.to_json().expect("JSON").replacen(from, to, 1);
        fs::write(again.path("bad.json"), text).expect("a file");
        again.run(&["history", "import", "bad.json"]).assert_refused(&[words]);
    }
}

/// Goal: what a test of a loop device prints and keeps states that no disk was reached, and its document is valid.
#[test]
fn reach_is_the_disk_only_on_hardware_of_a_real_machine() {
    let base = baseline();
    assert_eq!(powercut_reach(&base.targets[0], &base.environment).0, PowercutReach::Disk);
    for (transport, reach) in [
        ("nvme", PowercutReach::Disk),
        ("usb", PowercutReach::Disk),
        ("mmc", PowercutReach::Disk),
        ("virtio", PowercutReach::Memory),
        ("nbd", PowercutReach::Memory),
        ("zram", PowercutReach::Memory),
        ("something new", PowercutReach::Memory),
    ] {
        let mut target = base.targets[0].clone();
        target.disks[0].transport = Fact::known(transport.into(), "test");
        assert_eq!(powercut_reach(&target, &base.environment).0, reach, "{transport}");
        target.disks.clear();
        assert_eq!(powercut_reach(&target, &base.environment).0, PowercutReach::Memory);
    }
}
