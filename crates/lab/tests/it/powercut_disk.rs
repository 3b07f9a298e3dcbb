//! `trueio powercut disk`: a file as a disk with a losable cache, through the kernel's NBD client, with ext4 on it.

use crate::served::{end, ended, started};
use trueio_lab::{Machine, Spec, Tool, on};

fn spec(kernel: &str) -> Spec {
    Spec::new().kernel(kernel).module("nbd").module("ext4").tool(Tool::MKFS_EXT4)
}

const IMAGE: &str = "/tmp/disk.img";
/// Without work in the background that a small disk does not need.
const MKFS: &str = "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0";

/// Starts the server of the image; returns the device and the process.
fn serve(machine: &mut Machine, more: &str) -> (String, String) {
    started(machine, &format!("trueio powercut disk {IMAGE} {more}"))
}

/// Commits files on a mounted filesystem, cuts the power in between, mounts again, and returns how many acknowledged commits are
/// missing, of how many.
///
/// A commit is a new file with its number, written and synced; its number is then kept in the memory of the machine, which lives on.
fn commits_lost(machine: &mut Machine, options: &str, seed: u64) -> (u64, u64) {
    machine.ok(&format!("rm -f {IMAGE} /tmp/acknowledged /tmp/done"));
    let (device, process) = serve(machine, &format!("--size 32m --seed {seed}"));
    machine.ok(&format!("{MKFS} {device} && mkdir -p /mnt && mount -t ext4 {options} {device} /mnt && sync"));
    machine.ok(
        "(i=0; while i=$((i + 1)); echo commit $i | dd of=/mnt/$i conv=fsync 2>/dev/null; do echo $i >> /tmp/acknowledged; done; \
          echo done > /tmp/done) > /dev/null 2>&1 &",
    );
    let wanted = 30 + seed;
    machine.ok(&format!(
        "for i in $(seq 600); do [ $(wc -l < /tmp/acknowledged) -ge {wanted} ] 2>/dev/null && exit 0; sleep 0.1; done; exit 1"
    ));
    let cut = machine.trueio(&format!("powercut disk {IMAGE} --cut"));
    assert_eq!(cut.code, 0, "{cut:?}");
    ended(machine, &process);
    let said = machine.ok("cat /tmp/said");
    assert!(said.contains("the power is cut: "), "{said}");
    machine.ok("for i in $(seq 600); do [ -e /tmp/done ] && break; sleep 0.1; done; umount -l /mnt");
    let (device, process) = serve(machine, "");
    let mounted = machine.sh(&format!("mount -t ext4 {device} /mnt"));
    let total: u64 = machine.ok("wc -l < /tmp/acknowledged").trim().parse().expect("a number");
    let lost = if mounted.code == 0 {
        let count = machine.ok(
            "n=0; for i in $(cat /tmp/acknowledged); do [ \"$(cat /mnt/$i 2>/dev/null)\" = \"commit $i\" ] || n=$((n + 1)); done; echo $n",
        );
        machine.ok("umount /mnt");
        count.trim().parse().expect("a number")
    } else {
        total
    };
    end(machine, &process);
    (lost, total)
}

/// Goal: ext4 keeps what it acknowledged through cuts at different moments; without barriers it does not, which shows that the cuts are
/// real.
fn acknowledged_commits_survive(machine: &mut Machine) {
    for seed in 1..=3 {
        let (lost, total) = commits_lost(machine, "", seed);
        assert_eq!(lost, 0, "of {total} commits, seed {seed}");
    }
    let lost: u64 = (1..=3).map(|seed| commits_lost(machine, "-o nobarrier", seed).0).sum();
    assert!(lost > 0, "cuts of ext4 without barriers lost nothing");
}

#[test]
fn commits_on_ext4_survive_cuts_and_without_barriers_do_not_on_6_12() {
    on(&spec("6.12"), acknowledged_commits_survive);
}

#[test]
fn commits_on_ext4_survive_cuts_and_without_barriers_do_not_on_6_1() {
    on(&spec("6.1"), acknowledged_commits_survive);
}
