//! Prints the speed of UAS in user space next to that of the kernel's drivers, in the lab, on an idle machine:
//! `cargo run --package trueio-lab --example usb_speed`.

#[path = "../tests/it/common.rs"]
mod common;

use common::{io_count, record_in};
use std::time::Duration;
use trueio_lab::sim::{Behaviour, Offers};
use trueio_lab::{Disk, Machine, Spec, fresh};
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
fn main() {
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
