//! The facts that `trueio device` prints for disks of every kind, compared with their configuration.

use super::shelf;
use serde_json::{Value, json};
use trueio_lab::{Machine, on};

/// The facts of a whole disk, without their sources.
fn facts(machine: &mut Machine, device: &str) -> Value {
    let all = machine.trueio(&format!("device {device} --json")).assert_code(0).json();
    let disk = &all["disks"][0];
    let value = |name: &str| disk[name]["value"].clone();
    json!({
        "serial": value("serial"),
        "transport": value("transport"),
        "sectors": [value("logical_sector_bytes"), value("physical_sector_bytes")],
        "rotates": value("is_rotational"),
        "cache": value("write_cache"),
        "fua": value("has_fua"),
        "size": value("size_bytes"),
    })
}

fn assert_facts(name: &str, expected: Value) {
    on(&shelf(), |machine| {
        let device = machine.device(name);
        assert_eq!(facts(machine, &device), expected);
    });
}

const SIZE: u64 = 64 << 20;

#[test]
fn an_nvme_disk_of_4096_byte_sectors_has_a_serial_number_and_fua() {
    assert_facts(
        "fast",
        json!({"serial": "FAST", "transport": "nvme", "sectors": [4096, 4096], "rotates": false,
               "cache": "write back", "fua": true, "size": SIZE}),
    );
}

#[test]
fn a_virtio_disk_has_a_serial_number_and_no_fua() {
    // Linux takes a virtio disk for a rotating one.
    assert_facts(
        "virt",
        json!({"serial": "VIRT", "transport": "virtio", "sectors": [512, 4096], "rotates": true,
               "cache": "write back", "fua": false, "size": SIZE}),
    );
}

#[test]
fn a_rotating_scsi_disk_with_512_byte_logical_and_4096_byte_physical_sectors_is_recognised() {
    assert_facts(
        "emulated",
        json!({"serial": "EMULATED", "transport": "virtio", "sectors": [512, 4096], "rotates": true,
               "cache": "write back", "fua": false, "size": SIZE}),
    );
}

#[test]
fn a_write_through_scsi_disk_of_4096_byte_sectors_is_recognised() {
    assert_facts(
        "native",
        json!({"serial": "NATIVE", "transport": "virtio", "sectors": [4096, 4096], "rotates": false,
               "cache": "write through", "fua": false, "size": SIZE}),
    );
}

#[test]
fn a_scsi_disk_with_dpofua_has_fua() {
    assert_facts(
        "forced",
        json!({"serial": "FORCED", "transport": "virtio", "sectors": [512, 512], "rotates": false,
               "cache": "write back", "fua": true, "size": SIZE}),
    );
}

#[test]
fn a_usb_disk_on_uas_has_its_true_sectors_and_does_not_rotate() {
    assert_facts(
        "stick",
        json!({"serial": "STICK", "transport": "usb", "sectors": [512, 4096], "rotates": false,
               "cache": "write back", "fua": true, "size": SIZE}),
    );
}

/// null_blk has no hardware, so missing facts are reported as unknown.
#[test]
fn a_null_block_device_has_neither_a_serial_number_nor_a_transport() {
    on(&shelf(), |machine| {
        machine.ok("modprobe null_blk nr_devices=0 && mount -t configfs none /sys/kernel/config");
        let made = "cd /sys/kernel/config/nullb && mkdir lab0 && cd lab0 && echo 64 > size && echo 1 > memory_backed && \
                    echo 4096 > blocksize && echo 8 > cache_size && echo 1 > power";
        machine.ok(made);
        // Its name is `nullb0`, or since some version the folder's.
        let device = machine.ok("for node in /dev/nullb* /dev/lab0; do [ ! -b $node ] || echo $node; done");
        let found = facts(machine, &device);
        machine.ok("rmdir /sys/kernel/config/nullb/lab0; umount /sys/kernel/config; rmmod null_blk");
        let expected = json!({"serial": null, "transport": null, "sectors": [4096, 4096], "rotates": false,
                              "cache": "write back", "fua": true, "size": SIZE});
        assert_eq!(found, expected);
    });
}
