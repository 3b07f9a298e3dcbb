//! A host-managed device: null_blk with zones, which refuses every write that is not at a write pointer.
//!
//! One machine for all. What the kernel refused would be an I/O error, and a failed run.

use trueio_lab::{Machine, Spec, on};

fn machine() -> Spec {
    Spec::new().shelved_module("null_blk")
}

/// 16 zones of 4 MiB, 3 MiB of each used, the first 2 conventional; at most 4 are open. Its node.
fn zoned(machine: &mut Machine) -> String {
    machine.ok("modprobe null_blk nr_devices=0 && mount -t configfs none /sys/kernel/config");
    machine.ok("cd /sys/kernel/config/nullb && mkdir lab0 && cd lab0 && echo 64 > size && echo 1 > memory_backed && \
         echo 4096 > blocksize && echo 1 > zoned && echo 4 > zone_size && echo 3 > zone_capacity && \
         echo 2 > zone_nr_conv && echo 4 > zone_max_open && echo 1 > power");
    let device = machine.ok("for node in /dev/nullb* /dev/lab0; do [ ! -b $node ] || echo $node; done");
    machine
        .ok(&format!("echo mq-deadline > /sys/block/{}/queue/scheduler || true", device.trim_start_matches("/dev/")));
    device
}

fn gone(machine: &mut Machine) {
    machine.ok("rmdir /sys/kernel/config/nullb/lab0; umount /sys/kernel/config; rmmod null_blk");
}

/// A run that must succeed: every job's I/Os of reads, writes and trims, and its zones reset.
fn fio(machine: &mut Machine, device: &str, words: &str) -> Vec<([u64; 3], u64)> {
    let ran = machine.trueio(&format!(
        "fio --output-format=json --zonemode=zbd --direct=1 --filename={device} --overwrite_existing={device} {words}"
    ));
    assert_eq!(ran.code, 0, "{words}: {}{}", ran.out, ran.err);
    let document: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let count = |job: &serde_json::Value, name: &str| job[name]["total_ios"].as_u64().unwrap_or(0);
    let of = |job: &serde_json::Value| {
        (["read", "write", "trim"].map(|name| count(job, name)), job["zone_resets"].as_u64().unwrap_or(0))
    };
    document["jobs"].as_array().expect("jobs").iter().map(of).collect()
}

/// Trims zones: there are some, and each is in the log with the length of a zone.
fn assert_trims_are_logged(machine: &mut Machine, device: &str, words: &str) {
    let trimmed = machine.trueio(&format!(
        "fio --output-format=json --zonemode=zbd --direct=1 --filename={device} --overwrite_existing={device} --name=t \
         --bs=4m --write_lat_log=/tmp/t {words}"
    ));
    assert_eq!(trimmed.code, 0, "{words}: {}{}", trimmed.out, trimmed.err);
    let document: serde_json::Value = serde_json::from_str(&trimmed.out).expect("JSON");
    let trim = &document["jobs"][0]["trim"];
    let count = trim["total_ios"].as_u64().expect("a number");
    assert!(count > 0 && trim["iops"].as_f64() > Some(0.0), "{words}: {trim}");
    let logged = machine.ok("grep -c ', 2, 4194304, ' /tmp/t_lat.1.log; rm /tmp/t_*.log");
    assert_eq!(logged, count.to_string(), "{words}");
}

#[test]
fn a_zoned_device_is_written_at_its_write_pointers_and_refuses_nothing() {
    on(&machine(), |machine| {
        let device = zoned(machine);
        // After the conventional zones: 14 zones of 3 MiB are 672 blocks of 64 KiB.
        let sequential = "--offset=2z --size=14z --bs=64k";
        let passes =
            fio(machine, &device, &format!("--name=w --rw=write {sequential} --iodepth=8 --ioengine=io_uring"));
        assert_eq!(passes, [([0, 672, 0], 0)]);
        // All is full: the second time every zone is reset first. Then what is there is read, and no more.
        let again = "--name=w --rw=write --ioengine=psync --name=r --stonewall --rw=read --ioengine=libaio --iodepth=4";
        assert_eq!(
            fio(machine, &device, &again.replace("--rw", &format!("{sequential} --rw"))),
            [([0, 672, 0], 14), ([672, 0, 0], 0)]
        );
        // Deep, at random, by three workers of two jobs, over conventional zones too; the device allows four open zones.
        let random = "--bs=64k --ioengine=libaio --iodepth=8 --io_size=64m";
        let both = format!(
            "--name=a --rw=randwrite {random} --numjobs=2 --group_reporting --name=b --new_group --rw=randrw {random}"
        );
        let found = fio(machine, &device, &both);
        assert_eq!(found[0].0, [0, 2048, 0]);
        // 128 MiB, an eighth of it in conventional zones as chance has it: some 37 times 3 MiB.
        assert!(found[0].1 >= 30, "{found:?}");
        assert_eq!(found[1].0[0] + found[1].0[1], 1024);
        // One open zone, blocks that leave a rest, and what was written is read back.
        let verified = "--name=v --rw=randwrite --bs=160k --offset=2z --size=14z --io_size=96m --iodepth=16 \
                        --ioengine=io_uring --verify=crc32c --max_open_zones=2";
        let found = fio(machine, &device, verified);
        assert!(found[0].0[1] >= 614 && found[0].1 > 10, "{found:?}");
        // What stood in a zone before is not taken for what a job with `verify` wrote.
        fio(machine, &device, "--name=b --rw=trim --bs=4m --offset=2z --size=14z");
        fio(machine, &device, "--name=b --rw=write --bs=64k --offset=2z --size=1z --io_size=256k");
        let both = "--verify=crc32c --bs=64k --offset=2z --size=2z";
        let found = fio(machine, &device, &format!("--name=w --rw=write {both} --name=r --stonewall --rw=read {both}"));
        // What is read back is read, as in fio.
        assert_eq!((found[0], found[1].0), (([96, 96, 0], 1), [96, 0, 0]));
        // A trim resets a zone; empty ones and conventional ones have nothing to lose.
        assert_trims_are_logged(machine, &device, "--rw=randtrim");
        fio(machine, &device, &format!("--name=w --rw=write {sequential}"));
        assert_trims_are_logged(machine, &device, "--rw=trim --ioengine=io_uring --iodepth=4 --rate_iops=500");
        fio(machine, &device, &format!("--name=w --rw=write {sequential}"));
        assert_trims_are_logged(machine, &device, "--rw=trim --ioengine=libaio --iodepth=4");
        let empty = machine.trueio(&format!(
            "fio --zonemode=zbd --direct=1 --filename={device} --name=r --rw=read --offset=2z --size=14z"
        ));
        assert!(empty.code != 0 && empty.err.contains("holds data to read"), "{}{}", empty.out, empty.err);
        // Zones that a job left open, or with too little room, are finished: what was never written there is not read.
        let finished = "--bs=160k --verify=crc32c --ioengine=io_uring --iodepth=4 --max_open_zones=2 \
                        --name=a --rw=randwrite --offset=2z --size=7z --io_size=10m \
                        --name=b --stonewall --rw=randwrite --offset=9z --size=7z --io_size=10m \
                        --name=r --stonewall --rw=read --offset=2z --size=14z";
        let found = fio(machine, &device, finished);
        assert!((20..=128).contains(&found[2].0[0]), "{found:?}");
        // Reads during writes and resets, also in conventional zones, are compared and are correct.
        let mixed = "--name=m --rw=randrw --bs=160k --io_size=64m --iodepth=16 --ioengine=io_uring --verify=crc32c";
        let found = fio(machine, &device, mixed);
        assert!(found[0].0[0] > 100 && found[0].0[1] > 100, "{found:?}");
        assert_eq!(machine.ok("dmesg | grep -c 'I/O error' || true"), "0", "the kernel refused no request");
        gone(machine);
    });
}

#[test]
fn what_a_zoned_device_does_not_allow_is_refused_before_it_is_touched() {
    on(&machine(), |machine| {
        let device = zoned(machine);
        let common = format!("fio --zonemode=zbd --filename={device} --overwrite_existing={device} --name=w --bs=64k");
        for (words, sentence) in [
            ("--rw=write --direct=0", "page cache writes in an order"),
            ("--rw=write --direct=1 --zonesize=1m", "are 4m long"),
            ("--rw=write --direct=1 --max_open_zones=8", "more than the 4"),
            ("--rw=trim --direct=1", "a trim resets a zone"),
            ("--rw=write --direct=1 --bs=4m --runtime=60 --time_based=1", "does not fit into each zone"),
        ] {
            let ran = machine.trueio(&format!("{common} {words}"));
            assert!(ran.code != 0 && ran.err.contains(sentence), "{words}: {}{}", ran.out, ran.err);
        }
        gone(machine);
    });
}
