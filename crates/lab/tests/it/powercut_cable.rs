//! `trueio powercut` by hand: the cable of a USB disk with a losable cache is pulled under load, and plugged in again.
//!
//! The disk is simulated: its cache is lost with its power, and it may lie about flushes and FUA.

use trueio_lab::sim::Behaviour;
use trueio_lab::{Disk, Machine, Spec, on};
use trueio_model::{Document, PowercutReach, PowercutRecord, PowercutVerdict};

fn spec(kernel: &str) -> Spec {
    Spec::new().kernel(kernel).disk(Disk::usb("stick"))
}

/// Waits until the program has printed words; if it ends before, prints what it said.
fn wait_for(machine: &mut Machine, words: &str) {
    machine.ok(&format!(
        "for i in $(seq 900); do grep -q '{words}' /tmp/said && exit 0; [ -e /tmp/code ] && break; sleep 0.1; done; \
         cat /tmp/said /tmp/out >&2; exit 1"
    ));
}

/// Cuts the power of the disk once under a load; returns the record.
fn cut(machine: &mut Machine, methods: &str, before: &str, change: impl FnOnce(&mut Behaviour)) -> PowercutRecord {
    let device = machine.device("stick");
    machine.simulated("stick").behave(|disk| {
        *disk = Behaviour::default();
        change(disk);
    });
    if !before.is_empty() {
        let block = device.trim_start_matches("/dev/");
        machine.ok(&format!("echo '{before}' > /sys/block/{block}/queue/write_cache"));
    }
    machine.ok(&format!(
        "rm -f /tmp/code /tmp/record.json; (trueio powercut {device} --overwrite {device} --load 2s --size 1m --methods {methods} \
         --json /tmp/record.json > /tmp/out 2> /tmp/said; echo $? > /tmp/code) > /dev/null 2>&1 &"
    ));
    wait_for(machine, "pull the cable now");
    machine.simulated("stick").cut_power();
    wait_for(machine, "the disk is gone");
    machine.simulated("stick").plug();
    machine.ok("for i in $(seq 1100); do [ -e /tmp/code ] && exit 0; sleep 0.1; done; cat /tmp/said >&2; exit 1");
    let text = String::from_utf8(machine.get("/tmp/record.json")).expect("UTF-8");
    let record =
        PowercutRecord::from_json(&text).unwrap_or_else(|error| panic!("{error}: {}", machine.ok("cat /tmp/said")));
    let code = if record.verdict == PowercutVerdict::Kept { "0" } else { "1" };
    assert_eq!(machine.ok("cat /tmp/code").trim(), code, "{record:?}");
    // The lab is a virtual machine.
    assert_eq!(record.reach, PowercutReach::Memory, "{}", record.reach_reason);
    record
}

fn verdict(record: &PowercutRecord, name: &str) -> PowercutVerdict {
    let method = record.methods.iter().find(|method| method.name == name);
    method.unwrap_or_else(|| panic!("{name}: {record:?}")).verdict
}

/// Goal: an honest disk is kept by each method that flushes; one that answers flushes without doing them, and one whose cache the
/// kernel does not know, are found.
fn a_pulled_cable_shows_honest_disks_and_lies(machine: &mut Machine) {
    let flushing = "direct-fdatasync,buffered-fdatasync,buffered-fsync";
    let honest = cut(machine, flushing, "", |_| {});
    for name in flushing.split(',') {
        assert_eq!(verdict(&honest, name), PowercutVerdict::Kept, "{name}: {honest:#?}");
    }
    let control = honest.methods.iter().find(|method| method.name == "direct").expect("it is always one");
    assert!(control.figures.lost_count() > 0, "unsynced writes were lost: {control:?}");
    let lying = cut(machine, flushing, "", |disk| disk.lies_about_flushes = true);
    assert_eq!(verdict(&lying, "direct-fdatasync"), PowercutVerdict::Lost, "{lying:#?}");
    let unknown = cut(machine, "direct-fdatasync", "write through", |_| {});
    assert_eq!(verdict(&unknown, "direct-fdatasync"), PowercutVerdict::Lost, "{unknown:#?}");
}

#[test]
fn a_pulled_cable_shows_honest_disks_and_lies_on_6_12() {
    on(&spec("6.12"), a_pulled_cable_shows_honest_disks_and_lies);
}

#[test]
fn a_pulled_cable_shows_honest_disks_and_lies_on_6_1() {
    on(&spec("6.1"), a_pulled_cable_shows_honest_disks_and_lies);
}
