//! The machine itself: it boots each kernel, runs what it is told, and sees the disks that it was given.

use std::time::Duration;
use trueio_lab::{Disk, Spec, on};

#[test]
fn debians_kernel_boots_with_our_program_inside() {
    on(&Spec::new(), |machine| {
        let release = machine.ok("uname -r");
        assert_eq!(release, machine.kernel_release);
        let ran = machine.trueio("--version").assert_code(0);
        assert!(ran.out.starts_with("trueio "), "{ran:?}");
    });
}

#[test]
fn exit_codes_output_and_files_come_back_as_they_were() {
    on(&Spec::new(), |machine| {
        let ran = machine.sh("echo out; echo err >&2; exit 7");
        assert_eq!((ran.code, &*ran.out, &*ran.err), (7, "out\n", "err\n"));
        let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        machine.put("/tmp/bytes", &bytes);
        assert!(machine.get("/tmp/bytes") == bytes, "a file was changed on its way");
        assert_eq!(machine.sh("kill -9 $$").code, 137);
        let late = machine.sh_within(Duration::from_millis(500), "sleep 100");
        assert_eq!(late.code, -1);
        // And what was left in the background keeps nobody waiting.
        assert_eq!(machine.ok("sleep 100 & echo on"), "on");
    });
}

#[test]
fn a_disk_that_offers_both_transports_binds_to_uas() {
    let spec = Spec::new().disk(Disk::usb("stick")).disk(Disk::usb("twin"));
    on(&spec, |machine| {
        let device = machine.device("stick");
        let name = device.strip_prefix("/dev/").unwrap();
        let path = machine.ok(&format!("readlink -f /sys/block/{name}/device/../../../driver"));
        assert!(path.ends_with("/uas"), "{path}");
        machine.ok(&format!("echo hello | dd of={device} bs=512 count=1 conv=sync,fsync oflag=direct 2>&1"));
        let content = machine.simulated("stick").on_medium(0, 6);
        assert_eq!(content, b"hello\n");
        assert!(machine.simulated("stick").counts().flushes > 0);
    });
}
