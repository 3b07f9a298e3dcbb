//! The words of the first screen, each with the situation that produces it: staged with the program, on this machine.
//!
//! The table of docs/dev/staged-results.md lists them; its words are compared with what is printed here.

use crate::common::*;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use trueio_report::Mark;
use trueio_testkit::assert_row;

const PAGE: &str = "docs/dev/staged-results.md";

/// Reads of 4 KiB, one at a time.
const READS: &str =
    "run --name reads --rw randread --bs 4k --ioengine psync --size 16m --runtime 900ms --time_based --color never";

/// One at a time: a run with priority over all programs would be another's neighbour.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Returns what the first screen says of the only load: its symbol and its words.
#[track_caller]
fn shown_by(command: Command) -> String {
    // Wide enough for every reason.
    let (text, code) = on_terminal(command, 140);
    let place = |line: &str| {
        Mark::ALL.iter().filter_map(|mark| line.find(&format!("  {} {}", mark.symbol(), mark.word()))).min()
    };
    let shown = text.lines().rev().find_map(|line| Some(&line[place(line)?..]));
    shown.unwrap_or_else(|| panic!("no word, {code:?}: {text}")).trim().to_owned()
}

/// Runs `command` until the first screen says something else than that the run waited for a processor, or a hypervisor took it, for a minute at
/// most: programs next to this test, or next to this machine, can make any run wait. The kernel gives them a twentieth of a processor that real-time
/// programs use up (`fair_server`), so a priority does not prevent it.
#[track_caller]
fn shown_undisturbed(command: impl Fn() -> Command) -> String {
    shown_without(&["waited for a processor", "processor stolen"], command)
}

/// Runs `command` until it is not disturbed by one of `causes`, for a minute at most.
#[track_caller]
fn shown_without(causes: &[&str], command: impl Fn() -> Command) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let shown = shown_by(command());
        let is_disturbed = causes.iter().any(|cause| shown.starts_with(&format!("! disturbed: {cause}")));
        if !is_disturbed || Instant::now() > deadline {
            return shown;
        }
        println!("the machine is busy: {shown}");
    }
}

/// Asserts that the page lists the situation with the words that were shown, which begin with `expected`.
#[track_caller]
fn assert_situation(situation: &str, shown: &str, expected: &str) {
    assert!(shown.starts_with(expected), "{situation}: `{shown}` was to begin with `{expected}`");
    assert_row(PAGE, "situations", situation, &[&[&format!("`{shown}`")], &["`cli/tests/it/situations.rs`"]]);
}

/// ext4 on a loop device that only the test uses; `None` with the reason printed.
fn private_disk() -> Option<Mount> {
    if lacks("root") || lacks("loop") {
        return None;
    }
    let below = Loop::create(64 << 20, &["--direct-io=on"]);
    below.and_then(|below| Mount::on("ext4", below, "noatime")).inspect_err(|why| println!("skipped: {why}")).ok()
}

fn reads(sandbox: &Sandbox, more: &str) -> Command {
    urgent(sandbox.command(&words(&format!("{READS} {more}"))))
}

/// Gives a command priority over all ordinary programs and over the run that `selftest` makes urgent, where that is permitted: what other
/// tests do to the processors is not staged here, and [`shown_undisturbed`] has few runs to repeat.
fn urgent(plain: Command) -> Command {
    if tool("chrt", &["-f", "50", "true"]).is_err() {
        return plain;
    }
    wrapped("chrt", &["-f", "50"], &plain)
}

/// Returns a command that runs `plain` through another program.
fn wrapped(program: &str, arguments: &[&str], plain: &Command) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).arg(plain.get_program()).args(plain.get_args());
    command.current_dir(plain.get_current_dir().expect("a sandbox"));
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

#[test]
fn cached_reads_and_holes_are_not_the_disk() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    if has_no_disk(&sandbox) {
        return;
    }
    std::fs::read(sandbox.data_file("cached", 16 << 20)).expect("it is cached");
    let shown = shown_undisturbed(|| reads(&sandbox, "--filename cached --direct off --invalidate false"));
    assert_situation("a file that is cached, read through the page cache", &shown, "* not the disk: ");

    let sparse = std::fs::File::create(sandbox.path("sparse")).expect("a file");
    sparse.set_len(16 << 20).expect("a hole");
    let shown = shown_undisturbed(|| reads(&sandbox, "--filename sparse --direct require"));
    assert_situation("a sparse file, read with direct I/O", &shown, "x withheld: 100 % never written");
}

/// Goal: the program that uses the disk is named.
/// Method: `dd` writes to the same filesystem from before the run until after it.
#[test]
fn dd_on_the_same_disk_disturbs_and_is_named() {
    let _alone = alone();
    if lacks("tracing") {
        return;
    }
    let Some(mount) = private_disk() else { return };
    let sandbox = Sandbox::new();
    let script = "while :; do dd if=/dev/zero of=$1 bs=1M count=16 conv=notrunc oflag=direct 2>/dev/null || exit; done";
    let mut dd = Command::new("sh");
    let neighbour = mount.path.join("neighbour");
    let dd = Running::start(dd.args(["-c", script, "sh"]).arg(&neighbour));
    dd.wait_until("the neighbour's file", || std::fs::metadata(&neighbour).is_ok_and(|file| file.len() >= 16 << 20));
    let options = format!("--direct require --directory {}", mount.path.display());
    let shown = shown_undisturbed(|| reads(&sandbox, &options));
    drop(dd);
    assert_situation("`dd` writes to the same disk", &shown, "! disturbed: dd wrote ");
}

/// Goal: nothing is confirmed where nothing can be seen. Method: a mount namespace whose `/sys` is empty.
#[test]
fn a_container_without_sys_is_unverified() {
    let _alone = alone();
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    let script = "mount -t tmpfs none /sys && exec \"$@\"";
    let shown = shown_undisturbed(|| {
        let plain = reads(&sandbox, "--direct prefer --directory .");
        wrapped("unshare", &["--mount", "--propagation", "private", "sh", "-c", script, "sh"], &plain)
    });
    assert_situation("a container without `/sys`", &shown, "? unverified");
}

#[test]
fn without_evidence_a_run_is_unverified() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let shown = shown_undisturbed(|| reads(&sandbox, "--direct prefer --directory . --no-evidence"));
    assert_situation("`--no-evidence`", &shown, "? unverified");
    let null = sandbox.command(&words("run --ioengine null --number_ios 2000 --color never"));
    assert_situation("an engine without a device (`null`)", &shown_by(null), "? unverified");
}

/// Goal: what a quota of processor time takes from the figure is named. Whether the figure is withheld depends on how much of
/// it the disk shows to be waiting.
#[test]
fn a_cpu_quota_of_10_percent_is_named_by_the_time_waited() {
    let _alone = alone();
    let Some(mount) = private_disk() else { return };
    let sandbox = Sandbox::new();
    let files = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "10000")];
    let group = match ControlGroup::create("cpu", &files) {
        Ok(group) => group,
        Err(why) => return println!("skipped: {why}"),
    };
    let line = format!("{} --direct require --directory {}", READS.replace("900ms", "1500ms"), mount.path.display());
    // Runs of other tests use the disk below the loop device.
    let shown = shown_without(&["trueio "], || {
        let mut command = sandbox.command(&words(&line));
        command.env_remove("TRUEIO_ACCEPT");
        group.hold(&mut command);
        command
    });
    let (mark, reason) = shown.split_once(": ").unwrap_or((&shown, ""));
    assert!(["x withheld", "! disturbed"].contains(&mark), "{shown}");
    assert_situation("a quota of 10 % of a processor", &shown, &format!("{mark}: waited for a processor "));
    assert!(!reason.is_empty(), "{shown}");
}

#[test]
fn a_throttled_control_group_is_not_the_disk() {
    let _alone = alone();
    let Some(mount) = private_disk() else { return };
    let sandbox = Sandbox::new();
    let source = mount_device(&mount.path);
    let limit = format!("{source} 262144");
    let group = match ControlGroup::create("blkio", &[("blkio.throttle.read_bps_device", limit.as_str())]) {
        Ok(group) => group,
        Err(why) => return println!("skipped: {why}"),
    };
    let options = format!("--direct require --directory {}", mount.path.display());
    let shown = shown_undisturbed(|| {
        let mut command = reads(&sandbox, &options);
        group.hold(&mut command);
        command
    });
    assert_situation("a control group that limits the disk", &shown, "* not the disk: limited to 256 KiB/s");
}

/// Returns the number of the device of a filesystem (`7:0`).
fn mount_device(path: &Path) -> String {
    let number = std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(path).expect("a directory"));
    format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number))
}

/// Goal: a correct run on a disk of its own is confirmed.
#[test]
fn a_correct_run_is_confirmed() {
    let _alone = alone();
    let Some(mount) = private_disk() else { return };
    let sandbox = Sandbox::new();
    let options = format!("--direct require --directory {}", mount.path.display());
    let shown = shown_undisturbed(|| reads(&sandbox, &options));
    assert_situation("direct reads of a stored file on a disk that no other program uses", &shown, "+ confirmed");
}

/// In virtual time: the disk's cache is full after 1.5 s.
#[test]
fn a_rate_that_falls_and_stays_is_unsteady() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let line = "run --ioengine simulated --simulated service=100us,channels=4,slow=1500ms*4 --rw randread --bs 4k --size 1g \
                --runtime 4s --time_based --color never";
    let shown = shown_by(sandbox.command(&words(line)));
    assert_situation("a cache that is full after 1.5 s (engine `simulated`)", &shown, "~ unsteady: fell from ");
}

#[test]
fn failed_calls_are_failed() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    if has_no_disk(&sandbox) {
        return;
    }
    sandbox.data_file("data", 1 << 20);
    let line = "--filename data --size 1m --direct require --buffer_offset 1 --continue_on_error all";
    let shown = shown_by(reads(&sandbox, line));
    assert_situation("each call fails (misaligned buffers)", &shown, "# failed: ");
}

#[test]
fn a_file_in_memory_is_not_the_disk() {
    let _alone = alone();
    if lacks("tmpfs") {
        return;
    }
    let sandbox = Sandbox::new();
    let mount = Mount::tmpfs(&sandbox, "memory", "64m");
    let options = format!("--direct prefer --directory {}", mount.path.display());
    let shown = shown_undisturbed(|| reads(&sandbox, &options));
    assert_situation("a file on tmpfs", &shown, "* not the disk: ");
}
