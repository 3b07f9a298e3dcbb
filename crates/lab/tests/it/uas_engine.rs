//! The engine `uas`: a USB disk is measured through UAS in user space where the kernel has no driver for it.

use std::time::Duration;
use trueio_lab::sim::{Behaviour, Offers};
use trueio_lab::{Disk, Machine, Spec, Tool, on};
use trueio_model::{EvidenceLevel, OpKind, Outcome, RunRecord, Verdict};

/// QEMU's UAS disk, one of ours, and one on BOT, on a kernel without `uas`.
fn spec() -> Spec {
    Spec::new()
        .kernel("6.1")
        .without_module("uas")
        .shelved_module("uas")
        .module("ext4")
        .tool(Tool::MKFS_EXT4)
        .disk(Disk::qemu_uas("emulated"))
        .disk(Disk::usb("stick").offering(Offers::Uas))
        .disk(Disk::usb("both").ids(0x152d, 0x0578))
        .disk(Disk::usb("bulk").offering(Offers::Bot))
}

/// Doubts of an emulated processor on a busy computer.
const EMULATED: &str = "achieved_depth,clock_and_cpu,processor_wait,steadiness,stops,zero_blocks,latency_floor";

/// The name of a disk as a target: `usb:` and its port.
fn name(machine: &mut Machine, serial: &str) -> String {
    machine.device("bulk");
    let list = machine.trueio("usb list --json").json();
    let disks = list["disks"].as_array().expect("disks");
    let disk = disks.iter().find(|disk| disk["usb"]["serial"]["value"] == serial).expect("the disk");
    format!("usb:{}", disk["usb"]["device"].as_str().expect("a name"))
}

fn run(machine: &mut Machine, arguments: &str) -> RunRecord {
    let command = format!(
        "TRUEIO_ACCEPT={EMULATED} trueio run --ioengine uas --no-history --json /tmp/record.json {arguments} > /tmp/out 2>&1; \
         echo $?"
    );
    let code = machine.sh_within(Duration::from_secs(120), &command);
    let out = machine.ok("cat /tmp/out");
    assert_eq!(code.out.trim(), "0", "{out}");
    let text = String::from_utf8(machine.get("/tmp/record.json")).expect("UTF-8");
    trueio_report::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Goal: reads, and writes that are read back, on both kinds of disks; the record says how far the evidence reaches.
#[test]
fn a_disk_without_a_driver_is_read_written_and_verified() {
    on(&spec(), |machine| {
        for serial in ["EMULATED", "STICK"] {
            let disk = name(machine, serial);
            let record = run(machine, &format!("--filename {disk} --rw randread --bs 4k --iodepth 14 --size 8m"));
            assert_eq!(record.outcome, Outcome::Complete);
            let phase = &record.phases[0];
            let check = phase.checks.iter().find(|check| check.name == "usb_transfers").expect("the check");
            assert_eq!(phase.level, EvidenceLevel::E1, "{check:?}");
            assert!(matches!(phase.verdict, Verdict::Supported | Verdict::Suspect), "{:?}", phase.checks);
            assert!(check.sentence.contains("agree with the calls"), "{check:?}");
            assert!(record.targets[0].stack[0].name.contains("in user space"), "{:?}", record.targets);
            let record = run(
                machine,
                &format!(
                    "--filename {disk} --rw randwrite --bs 16k --iodepth 8 --size 8m --verify crc32c --end_fsync \
                     --overwrite_existing {disk}"
                ),
            );
            let job = &record.phases[0].jobs[0];
            assert_eq!((job.verified_block_count, job.verify_failure_count), (512, 0), "{serial}");
            assert!(job.ops.iter().any(|op| op.op == OpKind::Sync && op.io_count == 1), "{:?}", job.ops);
        }
        assert_eq!(machine.simulated("stick").dirty_blocks(), 0, "the flush reached the disk");
    });
}

/// Goal: `baseline` and `compare` drive a disk by its port; the disk is only read and is given back.
/// Method: a disk that does four commands of 4 ms at once, so eight in flight do four times the reads of one.
#[test]
fn baseline_and_compare_drive_a_disk_by_its_port() {
    let physics = Behaviour { latency: Duration::from_millis(4), channels: 4, ..Behaviour::default() };
    on(&spec(), |machine| {
        let disk = name(machine, "STICK");
        let before = machine.simulated("stick").fingerprint();
        machine.simulated("stick").behave(|behaviour| *behaviour = physics);
        let command =
            format!("TRUEIO_ACCEPT={EMULATED} trueio baseline --quick {disk} --no-history --json /tmp/baseline.json");
        let ran = machine.sh_within(Duration::from_secs(200), &command);
        let text = String::from_utf8(machine.get("/tmp/baseline.json")).expect("UTF-8");
        let record = trueio_report::parse(&text).unwrap_or_else(|error| panic!("{error}\n{ran:?}"));
        assert_eq!(record.outcome, Outcome::Complete, "{ran:?}");
        assert!(!record.phases.is_empty(), "{ran:?}");
        for phase in &record.phases {
            assert_eq!(phase.level, EvidenceLevel::E1, "{}: {:?}", phase.name, phase.checks);
            assert!(phase.checks.iter().any(|check| check.name == "usb_transfers"), "{}", phase.name);
        }
        let command = format!(
            "TRUEIO_ACCEPT={EMULATED} trueio compare --vary iodepth=1,8 --ioengine uas --filename {disk} --rw randread --bs 4k \
             --size 16m --budget 20s --slice 500ms --json /tmp/compare.json"
        );
        let ran = machine.sh_within(Duration::from_secs(120), &command);
        assert_eq!(ran.code, 0, "{ran:?}");
        let text = String::from_utf8(machine.get("/tmp/compare.json")).expect("UTF-8");
        let comparison: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let part = &comparison["parts"][0];
        let answers = part["answers"].as_array().expect("answers");
        let iops = answers.iter().find(|answer| answer["metric"] == "iops").expect("an answer");
        println!("8 in flight against 1: {iops}");
        assert!(iops["ratio"]["low"].as_f64() > Some(2.0), "{iops}");
        assert!(part["sides"].as_array().expect("sides").iter().all(|side| side["level"] == "E1"), "{ran:?}");
        assert_eq!(machine.simulated("stick").fingerprint(), before, "it was only read");
        machine.simulated("stick").behave(|behaviour| *behaviour = Behaviour::default());
        let list = machine.trueio("usb list --json").assert_code(0).out;
        assert!(!list.contains("usbfs"), "nothing stays claimed: {list}");
    });
}

/// Goal: nothing is written without the disk's name; what is on it is found through the transport; a disk that the kernel
/// drives and uses is not taken away.
#[test]
fn a_disk_that_is_not_named_or_is_in_use_is_left_alone() {
    on(&spec(), |machine| {
        let (stick, bulk) = (name(machine, "STICK"), name(machine, "BULK"));
        let before = machine.simulated("stick").fingerprint();
        let run = |machine: &mut Machine, arguments: &str| {
            machine.trueio(&format!("run --ioengine uas --no-history {arguments}"))
        };
        run(machine, &format!("--filename {stick} --rw write --size 1m")).assert_refused(&["overwrite_existing"]);
        run(machine, &format!("--filename {bulk} --rw read --size 1m")).assert_refused(&["does not offer UAS"]);
        run(machine, "--filename usb:9-9 --rw read").assert_refused(&["no USB disk is at port 9-9", &stick]);
        machine.trueio(&format!("run --filename {stick} --rw read")).assert_refused(&["--ioengine uas"]);
        // Its facts, and those of the disk behind the bridge.
        let facts = machine.trueio(&format!("device {stick}")).assert_code(0).out;
        for words in ["streams", "SMART 194 temperature", "33 °C", "memory of usbfs"] {
            assert!(facts.contains(words), "{words}: {facts}");
        }
        assert_eq!(machine.simulated("stick").fingerprint(), before);
        // On BOT, as on a kernel without UAS: mounted, it is refused; with a filesystem, it is not written.
        let both = name(machine, "BOTH");
        let interface = format!("{}:1.0", both.trim_start_matches("usb:"));
        machine.ok(&format!(
            "echo 152d:0578:u > /sys/module/usb_storage/parameters/quirks; echo {interface} > /sys/bus/usb/drivers_probe"
        ));
        let device = machine.device("both");
        machine.ok(&format!("mkfs.ext4 -q -F {device} && mkdir -p /mnt && mount -t ext4 {device} /mnt"));
        run(machine, &format!("--filename {both} --rw read --size 1m")).assert_refused(&["is mounted at"]);
        machine.ok("umount /mnt");
        let write = format!("--filename {both} --rw write --size 1m --overwrite_existing {both}");
        run(machine, &write).assert_refused(&["ext4"]);
        // It comes back to the kernel's driver each time.
        let device = machine.device("both");
        run(machine, &format!("--filename {both} --rw read --size 1m")).assert_code(0);
        let again = machine.device("both");
        machine.ok(&format!(
            "mount -t ext4 {again} /mnt && umount /mnt; echo > /sys/module/usb_storage/parameters/quirks"
        ));
        assert!(device.starts_with("/dev/sd"));
    });
}

/// Goal: `study usb-transport` compares BOT with UAS on a kernel without `uas`, and gives the disk back.
/// Method: a disk that does four commands of 4 ms at once; with a full queue UAS does four times the reads of BOT.
#[test]
fn a_study_measures_uas_in_user_space_where_the_kernel_has_no_driver() {
    let physics = Behaviour { latency: Duration::from_millis(4), channels: 4, ..Behaviour::default() };
    let spec = Spec::new()
        .kernel("6.1")
        .without_module("uas")
        .disk(Disk::usb("both").ids(0x152d, 0x0578).behaving(physics))
        .disk(Disk::usb("bulk").offering(Offers::Bot));
    on(&spec, |machine| {
        let disk = name(machine, "BOTH");
        let interface = format!("{}:1.0", disk.trim_start_matches("usb:"));
        machine.ok(&format!(
            "echo 152d:0578:u > /sys/module/usb_storage/parameters/quirks; echo {interface} > /sys/bus/usb/drivers_probe"
        ));
        let device = machine.device("both");
        let before = machine.simulated("both").fingerprint();
        let command = format!(
            "TRUEIO_ACCEPT={EMULATED} trueio study usb-transport {device} --mode faithful --only job=read_iops --set size=16m \
             --set runtime=1s --set ramp_time=0 --no-journal --json /tmp/study.json"
        );
        let ran = machine.sh_within(Duration::from_secs(120), &command);
        assert_eq!(ran.code, 0, "{ran:?}");
        let text = String::from_utf8(machine.get("/tmp/study.json")).expect("UTF-8");
        let study = trueio_report::parse_study(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let [bot, uas] = &study.modes[0].rows[..] else { panic!("{:?}", study.modes[0].rows) };
        let found = &uas.samples[0].conditions[0].1;
        assert!(found.contains(&format!("{disk} in user space")), "{found}");
        assert!(bot.samples[0].conditions[0].1.contains("driver usb-storage"), "{:?}", bot.samples[0].conditions);
        let (slow, fast) = (bot.samples[0].io_count, uas.samples[0].io_count);
        println!("reads in a second: BOT {slow}, UAS {fast}");
        assert!(fast >= 2 * slow, "UAS {fast}, BOT {slow}");
        assert_eq!(machine.simulated("both").fingerprint(), before, "it was only read");
        // Given back: the kernel's driver has it.
        let again = machine.device("both");
        machine.ok(&format!("head -c 512 {again} > /dev/null; echo > /sys/module/usb_storage/parameters/quirks"));
    });
}
