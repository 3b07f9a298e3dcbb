//! Disks that this computer does not have: their facts as `trueio` reports them, its refusals to write to them,
//! and what their counters prove. One machine has them all, and every case gives it back as it was.
//!
//! Each disk's medium is simulated, so what reached it is counted here, outside the machine.

mod evidence;
mod facts;
mod refusals;

use std::time::{Duration, Instant};
use trueio_lab::sim::Behaviour;
use trueio_lab::{Disk, Machine, Ran, Spec, Tool};

/// Makes an ext4 that has nothing left to do afterwards, so that the disk is quiet.
const EXT4: &str = "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0";

/// The machine of these cases.
fn shelf() -> Spec {
    let kept = |disk: Disk| disk.behaving(Behaviour::default());
    Spec::new()
        .disk(kept(Disk::nvme("fast").sectors(4096, 4096)))
        .disk(kept(Disk::virtio("virt").sectors(512, 4096)))
        .disk(kept(Disk::scsi("emulated").sectors(512, 4096).rotating(7200)))
        .disk(kept(Disk::scsi("native").sectors(4096, 4096)).write_through())
        .disk(kept(Disk::scsi("forced").with_fua()))
        .disk(Disk::usb("stick"))
        .module("ext4")
        .module("dm_mod")
        .module("raid1")
        .shelved_module("null_blk")
        .tool(Tool::DMSETUP)
        .tool(Tool::MDADM)
        .tool(Tool::LVM)
        .tool(Tool::SFDISK)
        .tool(Tool::MKFS_EXT4)
}

/// Asks for writes to `path`, which is named as that which may be overwritten, and more words.
fn writes_to(machine: &mut Machine, path: &str, words: &str) -> Ran {
    machine.trueio(&format!(
        "run --rw write --bs 4k --size 64k --direct require --filename {path} --overwrite_existing {path} \
         --no-history --no-evidence --json - {words}"
    ))
}

/// Waits until the disk is not written any more: a filesystem that was just created, or an array that
/// was just put together, has things to do of its own.
fn wait_until_quiet(machine: &mut Machine, name: &str) {
    machine.ok("sync");
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut quiet_since = Instant::now();
    let mut writes = machine.simulated(name).counts().writes;
    while quiet_since.elapsed() < Duration::from_millis(700) {
        assert!(Instant::now() < deadline, "`{name}` is written to without an end");
        std::thread::sleep(Duration::from_millis(20));
        let now = machine.simulated(name).counts().writes;
        if now != writes {
            (writes, quiet_since) = (now, Instant::now());
        }
    }
}

/// Runs something that must not write to the disk, not even what is there already.
fn assert_unwritten<T>(machine: &mut Machine, name: &str, run: impl FnOnce(&mut Machine) -> T) -> T {
    wait_until_quiet(machine, name);
    let state = |machine: &Machine| (machine.simulated(name).counts().writes, machine.simulated(name).fingerprint());
    let before = state(machine);
    let result = run(machine);
    machine.ok("sync");
    assert_eq!(state(machine), before, "`{name}` was written to");
    result
}
