//! Writes the recorded exchanges in `crates/uas/tests/captures`, which `crates/uas/tests/it/replay.rs` replays:
//! `cargo run --package trueio-lab --example usb_captures`.

use trueio_lab::sim::{Offers, Speed, UasFault};
use trueio_lab::{Disk, Machine, Spec, fresh};

/// Records the exchange with a disk for the tests of `crates/uas`; `load` runs while it is served. The first line has the
/// streams, the time limit of a command, and the endpoints of the four pipes.
fn record(
    machine: &mut Machine,
    serial: &str,
    endpoints: &str,
    streams: u32,
    mut load: impl FnMut(&mut Machine, &str),
) -> String {
    machine
        .ok("rm -f /tmp/device; mkdir -p /sys/kernel/debug; mount -t debugfs none /sys/kernel/debug 2>/dev/null; true");
    let monitor = machine.ok("cat /sys/kernel/debug/usb/usbmon/0u > /tmp/capture & echo $!");
    let process = machine
        .ok(&format!("trueio usb serve --foreground {serial} --timeout 1s > /tmp/device 2> /tmp/said & echo $!"));
    machine.ok("while ! [ -s /tmp/device ]; do sleep 0.1; done");
    let device = machine.ok("cat /tmp/device");
    load(machine, &device);
    machine
        .ok(&format!("kill -TERM {process}; while kill -0 {process} 2>/dev/null; do sleep 0.1; done; kill {monitor}"));
    let text = String::from_utf8(machine.get("/tmp/capture")).expect("text");
    // Of the bulk pipes only, without the disks that the kernel's drivers use.
    let bulk = |line: &&str| line.contains(" Bi:") || line.contains(" Bo:");
    let lines: Vec<&str> = text.lines().filter(bulk).collect();
    format!("# {streams} 1 {endpoints}\n{}\n", lines.join("\n"))
}

fn main() {
    let spec = Spec::new()
        .without_module("uas")
        .module("nbd")
        .module("usbmon")
        .disk(Disk::usb("stick").offering(Offers::Uas))
        .disk(Disk::usb("slow").offering(Offers::Uas).at(Speed::High))
        .disk(Disk::qemu_uas("emulated"));
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../uas/tests/captures");
    std::fs::create_dir_all(&folder).expect("a folder");
    let plain = |machine: &mut Machine, device: &str| {
        machine.ok(&format!(
            "dd if=/dev/urandom of={device} bs=8k count=8 conv=fsync 2>/dev/null; echo 3 > /proc/sys/vm/drop_caches; \
             dd if={device} of=/dev/null bs=8k count=8 2>/dev/null"
        ));
    };
    fresh(&spec, |machine| {
        machine.ok("for i in $(seq 200); do trueio usb list --json | grep -q SLOW && break; sleep 0.1; done");
        let faults = |name: &'static str| {
            move |machine: &mut Machine, device: &str| {
                for fault in [UasFault::StallStatus, UasFault::WrongTag, UasFault::LoseStatus, UasFault::TaskSetFull] {
                    machine.simulated(name).behave(|disk| disk.uas_faults.push(fault));
                    machine.ok(&format!("dd if={device} of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null"));
                }
            }
        };
        let ours = "Bo4 Bi3 Bi1 Bo2";
        for (file, text) in [
            ("qemu.txt", record(machine, "EMULATED", "Bo1 Bi2 Bi3 Bo4", 16, plain)),
            ("streams.txt", record(machine, "STICK", ours, 32, plain)),
            ("high-speed.txt", record(machine, "SLOW", ours, 0, plain)),
            ("streams-faults.txt", record(machine, "STICK", ours, 32, faults("stick"))),
            ("high-speed-faults.txt", record(machine, "SLOW", ours, 0, faults("slow"))),
        ] {
            println!("{file}: {} lines; {}", text.lines().count(), machine.ok("cat /tmp/said"));
            std::fs::write(folder.join(file), text).expect("a file");
        }
    });
}
