//! A control group that limits the disk: the plan shows the limit, and the verdict names it.

use crate::common::*;
use std::path::Path;
use trueio_model::{Check, CheckOutcome, RunRecord, Verdict};

/// Direct reads of 4 KiB on a filesystem of its own, for a span in which the limit allows 128 of them.
fn run_in(group: &ControlGroup, sandbox: &Sandbox, directory: &Path) -> (Ran, RunRecord) {
    let path = sandbox.aside("record.json");
    let reads =
        ["run", "--rw", "randread", "--bs", "4k", "--ioengine", "psync", "--direct", "require", "--size", "4m", "-v"];
    let place = ["--directory", directory.to_str().expect("UTF-8"), "--json", path.to_str().expect("UTF-8")];
    let mut command = sandbox.command(&[&reads[..], &["--runtime", "500ms", "--time_based"], &place].concat());
    group.hold(&mut command);
    let ran = Ran::of(command.output().expect("the program starts"));
    assert!(path.exists(), "no record was written\n{ran:?}");
    (ran, read_record(&path))
}

fn check(record: &RunRecord) -> &Check {
    record.phases[0].checks.iter().find(|check| check.name == "io_limits").expect("the check ran")
}

/// Goal: a limit of a control group on the disk is in the plan and makes the run suspect; without it nothing is said.
/// Method: ext4 on a loop device in a directory of its own; a group limits reads of the loop device to 256 KiB/s, then of
/// nothing.
#[test]
fn a_throttled_control_group_is_named_and_one_without_limits_is_not() {
    if lacks("root") || lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let below = match Loop::create(64 << 20, &["--direct-io=on"]) {
        Ok(below) => below,
        Err(why) => return println!("skipped: {why}"),
    };
    let name = below.name().to_owned();
    let number = std::fs::read_to_string(format!("/sys/block/{name}/dev")).expect("a device number");
    let mount = match Mount::on("ext4", below, "") {
        Ok(mount) => mount,
        Err(why) => return println!("skipped: {why}"),
    };
    let limit = format!("{} 262144", number.trim());
    let groups = [&[("blkio.throttle.read_bps_device", limit.as_str())][..], &[]]
        .map(|files| ControlGroup::create("blkio", files));
    let [Ok(limited), Ok(free)] = groups else {
        return println!("skipped: no control groups of version 1 for blkio");
    };

    let (ran, record) = run_in(&limited, &sandbox, &mount.path);
    let found = check(&record);
    assert_eq!(found.outcome, CheckOutcome::Suspect, "{found:?}\n{ran:?}");
    let group = limited.path.file_name().expect("a name").to_str().expect("UTF-8");
    let words = format!("The control group `/{group}` limits reads of {name} to 256 KiB/s; its processes reached ");
    assert!(found.sentence.starts_with(&words), "{found:?}");
    assert_listed("a control group that limits reads of the disk to 256 KiB/s", Some(found));
    assert_ne!(record.phases[0].verdict, Verdict::Supported);
    let note = format!("the control group `/{group}` limits reads of {name} to 256 KiB/s");
    assert!(record.plan.notes.iter().any(|known| known.ends_with(&note)), "{:?}", record.plan.notes);
    assert!(ran.out.contains(&format!("control group /{group} limits reads of {name}")), "{ran:?}");

    let (ran, record) = run_in(&free, &sandbox, &mount.path);
    let found = check(&record);
    assert_eq!(found.outcome, CheckOutcome::Passed, "{found:?}\n{ran:?}");
    assert!(found.sentence.starts_with("No control group limits"), "{found:?}");
    assert!(!ran.out.contains("limits reads of"), "{ran:?}");
    assert_listed("a control group without limits", None);
}
