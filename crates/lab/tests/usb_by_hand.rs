//! Measurements and long runs of UAS in user space, which are started by hand:
//! `cargo test --workspace --test usb_by_hand NAME -- --ignored --nocapture`.

mod common;

use common::{io_count, record_in};
use std::time::{Duration, Instant};
use trueio_lab::sim::{Behaviour, Offers};
use trueio_lab::{Disk, Machine, Spec, Tool, fresh};
use trueio_model::OpKind;

/// Doubts of an emulated processor on a busy computer.
const EMULATED: &str =
    "achieved_depth,clock_and_cpu,processor_wait,steadiness,stops,zero_blocks,latency_floor,usb_link";

/// Reads 4 KiB at random for `seconds`; returns I/Os per second, and the processor time of the program for one I/O in
/// microseconds. What the kernel does in interrupts is not in it.
fn reads(machine: &mut Machine, engine: &str, target: &str, depth: u32, seconds: u32) -> (f64, f64) {
    let job = format!(
        "--ioengine {engine} --filename {target} --rw randread --bs 4k --direct require --iodepth {depth} --runtime {seconds} \
         --time_based --norandommap"
    );
    let command = format!(
        "TRUEIO_ACCEPT={EMULATED} trueio run --no-history --json /tmp/record.json {job} > /tmp/out 2>&1; echo $?"
    );
    let ran = machine.sh_within(Duration::from_secs(120), &command);
    assert_eq!(ran.out.trim(), "0", "{}", machine.ok("cat /tmp/out"));
    let record = record_in(machine, "/tmp/record.json");
    let (count, phase) = (io_count(&record, OpKind::Read) as f64, &record.phases[0]);
    (count * 1e9 / phase.elapsed_ns as f64, phase.cpu.total_ns() as f64 / 1e3 / count)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints I/Os per second and processor time of the program on each transport, interleaved: BOT, the kernel's `uas`, and UAS in user space.
#[test]
#[ignore = "measures; by hand, on an idle machine"]
fn uas_in_user_space_and_in_the_kernel_and_bot_interleaved() {
    const ROUNDS: usize = 5;
    for (name, latency, channels) in
        [("no latency", 0, 1), ("1 ms, 8 at once", 1_000, 8), ("4 ms, 4 at once", 4_000, 4)]
    {
        let physics = Behaviour { latency: Duration::from_micros(latency), channels, ..Behaviour::default() };
        let spec = Spec::new()
            .disk(Disk::usb("stick").offering(Offers::Uas).behaving(physics.clone()))
            .disk(Disk::usb("bulk").offering(Offers::Bot).behaving(physics));
        fresh(&spec, |machine| {
            let bot = machine.device("bulk");
            let sides = [("uas in user space", 14), ("uas", 14), ("uas in user space", 30), ("uas", 30), ("bot", 32)];
            let mut found = vec![(Vec::new(), Vec::new()); sides.len()];
            for _ in 0..ROUNDS {
                for (at, (side, depth)) in sides.iter().enumerate() {
                    let device = machine.device("stick");
                    let (iops, cpu_us) = match *side {
                        "uas" => reads(machine, "io_uring", &device, *depth, 2),
                        "bot" => reads(machine, "io_uring", &bot, *depth, 2),
                        _ => {
                            let list = machine.trueio("usb list --json").json();
                            let disks = list["disks"].as_array().expect("disks");
                            let stick =
                                disks.iter().find(|disk| disk["usb"]["serial"]["value"] == "STICK").expect("it");
                            let port = stick["usb"]["device"].as_str().expect("a name").to_owned();
                            reads(machine, "uas", &format!("usb:{port}"), *depth, 2)
                        }
                    };
                    found[at].0.push(iops);
                    found[at].1.push(cpu_us);
                }
            }
            println!("{name}: median of {ROUNDS} rounds of 2 s, 4 KiB random reads");
            for ((side, depth), (iops, cpu_us)) in sides.iter().zip(&mut found) {
                println!(
                    "  {side}, depth {depth}: {:.0} IOPS, {:.0} us of processor per I/O; {iops:.0?}",
                    median(iops),
                    median(cpu_us)
                );
            }
        });
    }
}

/// Goal: ten minutes of random writes, read back and verified, through a served disk and through the engine, without a difference.
#[test]
#[ignore = "takes 10 minutes"]
fn ten_minutes_of_random_writes_are_read_back_without_a_difference() {
    let minutes = std::env::var("TRUEIO_LAB_MINUTES").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let spec = Spec::new()
        .without_module("uas")
        .shelved_module("uas")
        .module("nbd")
        .tool(Tool::MKFS_EXT4)
        .disk(Disk::usb("stick").offering(Offers::Uas))
        .disk(Disk::qemu_uas("emulated"))
        .disk(Disk::usb("bulk").offering(Offers::Bot));
    fresh(&spec, |machine| {
        machine.device("bulk");
        let begin = Instant::now();
        let (mut passes, mut blocks) = (0, 0);
        while begin.elapsed() < Duration::from_secs(minutes * 60) {
            let serial = ["STICK", "EMULATED"][passes % 2];
            machine.ok("rm -f /tmp/device");
            let process = machine.ok(&format!("trueio usb serve {serial} > /tmp/device 2> /tmp/said & echo $!"));
            machine.ok("while ! [ -s /tmp/device ]; do sleep 0.1; done");
            let device = machine.ok("cat /tmp/device");
            let job = "--rw randwrite --bsrange 4k-64k --blockalign 4k --size 48m --iodepth 16 --ioengine io_uring --direct require \
                       --verify crc32c --end_fsync";
            let command = format!(
                "TRUEIO_ACCEPT={EMULATED} trueio run --no-history --json /tmp/record.json {job} --filename {device} \
                 --overwrite_existing {device} > /tmp/out 2>&1; echo $?"
            );
            let ran = machine.sh_within(Duration::from_secs(200), &command);
            let record = record_in(machine, "/tmp/record.json");
            let jobs = || record.phases.iter().flat_map(|phase| &phase.jobs);
            assert_eq!(jobs().map(|job| job.verify_failure_count).sum::<u64>(), 0, "{ran:?}");
            let verified: u64 = jobs().map(|job| job.verified_block_count).sum();
            assert!(verified > 0, "{ran:?}\n{}", machine.ok("cat /tmp/out"));
            (passes, blocks) = (passes + 1, blocks + verified);
            machine.ok(&format!("kill -TERM {process}; while kill -0 {process} 2>/dev/null; do sleep 0.1; done"));
            assert!(!machine.ok("cat /tmp/said").contains("timeouts"), "{}", machine.ok("cat /tmp/said"));
        }
        println!("{passes} passes of 48 MiB, {blocks} blocks verified, no difference, in {:.0?}", begin.elapsed());
    });
}

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
    let process = machine.ok(&format!("trueio usb serve {serial} --timeout 1s > /tmp/device 2> /tmp/said & echo $!"));
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

/// Writes the captures that `crates/uas/tests/replay.rs` replays.
#[test]
#[ignore = "rewrites recorded exchanges"]
fn record_exchanges_for_the_replay() {
    use trueio_lab::sim::{Speed, UasFault};
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
