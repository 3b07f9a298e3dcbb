//! The machine itself: it boots each kernel, executes requests, and ends with its test.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use trueio_lab::{Disk, Spec, end, fresh, lacks, on};

#[test]
fn debians_kernel_boots_with_our_program_inside() {
    on(&Spec::new(), |machine| {
        let release = machine.ok("uname -r");
        assert_eq!(release, machine.kernel_release);
        let ran = machine.trueio("--version").assert_code(0);
        assert!(ran.out.starts_with("trueio "), "{ran:?}");
        machine.trueio("run --ioengine null --number_ios 1000 --no-history").assert_code(0);
    });
}

/// Its modules are packed, and some of what 6.1 has as modules is built in.
#[test]
fn the_newer_kernel_of_debian_boots_with_disks_of_every_kind() {
    let spec = Spec::new()
        .kernel("6.12")
        .disk(Disk::nvme("fast").sectors(4096, 4096))
        .disk(Disk::scsi("plain"))
        .disk(Disk::virtio("virt"))
        .disk(Disk::usb("stick"))
        .module("ext4")
        .shelved_module("dm_mod");
    fresh(&spec, |machine| {
        assert!(machine.ok("uname -r").starts_with("6.12."), "{}", machine.kernel_release);
        machine.ok("modprobe dm_mod && grep -q device-mapper /proc/misc");
        for name in ["fast", "plain", "virt", "stick"] {
            let device = machine.device(name);
            let job = "run --rw write --bs 4k --size 64k --direct require --no-history --no-evidence";
            machine.trueio(&format!("{job} --filename {device} --overwrite_existing {device}")).assert_code(0);
        }
    });
}

#[test]
fn exit_codes_output_and_files_are_returned_unchanged() {
    on(&Spec::new(), |machine| {
        let ran = machine.sh("echo out; echo err >&2; exit 7");
        assert_eq!((ran.code, &*ran.out, &*ran.err), (7, "out\n", "err\n"));
        let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        machine.put("/tmp/bytes", &bytes);
        assert!(machine.get("/tmp/bytes") == bytes, "a file was changed in transfer");
        assert_eq!(machine.sh("kill -9 $$").code, 137);
    });
}

#[test]
fn a_step_over_its_time_limit_is_ended_and_the_machine_continues() {
    on(&Spec::new(), |machine| {
        let late = machine.sh_within(Duration::from_millis(500), "sleep 100");
        assert_eq!(late.code, trueio_lab::wire::Reply::LATE);
        // A program left in the background does not delay the reply.
        assert_eq!(machine.ok("sleep 100 & echo on"), "on");
        machine.ok("killall sleep");
    });
}

#[test]
fn parts_of_sysfs_are_returned_as_an_archive_of_files_and_links() {
    on(&Spec::new(), |machine| {
        let tar = machine.tar("/sys", &["class/tty/ttyS0", "devices/system/cpu/online", "class/nothing"]);
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("tar"), tar).expect("a file");
        let status = Command::new("tar").args(["-xf", "tar"]).current_dir(folder.path()).status().expect("tar");
        assert!(status.success());
        let online = std::fs::read_to_string(folder.path().join("devices/system/cpu/online")).expect("a file");
        assert_eq!(online, "0\n");
        assert!(folder.path().join("class/tty/ttyS0").is_symlink());
        assert!(!folder.path().join("class/nothing").exists());
    });
}

/// The part of the test below that is killed: it boots a machine, prints that, and waits.
const VICTIM: &str = "TRUEIO_LAB_VICTIM";

fn is_running(pid: &str) -> bool {
    // A process that is dead and not yet reaped has no command line.
    std::fs::read(Path::new("/proc").join(pid).join("cmdline")).is_ok_and(|line| !line.is_empty())
}

/// Goal: a machine does not outlive its test, even if that is killed, and leaves the lock and no files.
/// Method: this test starts itself once more; that one boots a machine and is killed by SIGKILL.
/// Whether QEMU is gone is asked of /proc; that the lock is free, of the next machine.
#[test]
fn a_machine_dies_with_its_test_and_leaves_no_files() {
    let name = "boot::a_machine_dies_with_its_test_and_leaves_no_files";
    if std::env::var_os(VICTIM).is_some() {
        fresh(&Spec::new(), |_| {
            println!("\nup");
            std::thread::sleep(Duration::from_secs(300));
        });
        return;
    }
    if lacks("6.1") {
        return;
    }
    // This process may not hold the turn that the other waits for.
    end();
    let scratch = tempfile::tempdir().expect("a folder");
    let mut victim = Command::new(std::env::current_exe().expect("a path"))
        .args([name, "--exact", "--nocapture"])
        .envs([(VICTIM, Path::new("yes")), ("TMPDIR", scratch.path())])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(victim.stdout.take().expect("a pipe")).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line == "up")), "the other test did not come up");
    let tasks = format!("/proc/{0}/task", victim.id());
    let children: Vec<String> = std::fs::read_dir(&tasks)
        .expect("threads")
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert!(!children.is_empty() && children.iter().all(|pid| is_running(pid)), "{children:?}");
    victim.kill().expect("it is ours");
    victim.wait().expect("it is ours");
    let deadline = Instant::now() + Duration::from_secs(10);
    while children.iter().any(|pid| is_running(pid)) {
        assert!(Instant::now() < deadline, "QEMU lives on: {children:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let left: Vec<_> = std::fs::read_dir(scratch.path()).expect("a folder").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["trueio-lab.lock"]);
}
