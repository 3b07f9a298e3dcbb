//! What is planned and refused of zones, on targets that are described and not touched.

use trueio_job::{FactsSource, InUse, Machine, Refusal, Target, plan};
use trueio_model::*;

/// `/dev/zoned` has zones of 64 MiB, `/dev/plain` none; both have 1 GiB. Nothing else exists but the directory.
struct Described;

impl FactsSource for Described {
    fn look(&self, path: &str) -> Target {
        let (kind, word) = match path {
            "." => (TargetKind::Directory, "none"),
            "/dev/zoned" => (TargetKind::BlockDevice, "host-managed"),
            "/dev/plain" => (TargetKind::BlockDevice, "none"),
            _ => return Target::Missing,
        };
        let aligned = || Fact::known(4096, "statx DIOALIGN");
        let limits = DiskLimits {
            zoned: Fact::known(word.into(), "queue/zoned"),
            chunk_bytes: Fact::known(64 << 20, "queue/chunk_sectors"),
            ..DiskLimits::default()
        };
        let disk = DiskFacts {
            name: path.trim_start_matches("/dev/").into(),
            device_number: (250, 0),
            model: Fact::not_recorded(),
            serial: Fact::not_recorded(),
            firmware: Fact::not_recorded(),
            wwid: Fact::not_recorded(),
            transport: Fact::not_recorded(),
            size_bytes: Fact::known(1 << 30, "size"),
            logical_sector_bytes: Fact::known(4096, "queue/logical_block_size"),
            physical_sector_bytes: Fact::not_recorded(),
            is_rotational: Fact::not_recorded(),
            scheduler: Fact::not_recorded(),
            write_cache: Fact::not_recorded(),
            has_fua: Fact::not_recorded(),
            request_count: Fact::not_recorded(),
            max_request_bytes: Fact::not_recorded(),
            read_ahead_bytes: Fact::not_recorded(),
            counts_io: Fact::not_recorded(),
            limits,
            usb: None,
            link: None,
        };
        Target::Present(Box::new(TargetFacts {
            path: path.into(),
            kind,
            size_bytes: Fact::known(1 << 30, "BLKGETSIZE64"),
            filesystem: None,
            stack: Vec::new(),
            disks: if kind == TargetKind::BlockDevice { vec![disk] } else { Vec::new() },
            direct: DirectFacts {
                support: DirectSupport::Direct,
                reason: "statx reports an alignment".into(),
                memory_alignment_bytes: aligned(),
                write_alignment_bytes: aligned(),
                read_alignment_bytes: aligned(),
                atomic_write: Fact::unknown("not read"),
            },
            io_limits: Fact::not_recorded(),
            driven: None,
        }))
    }

    fn in_use(&self, _: &str) -> Result<InUse, String> {
        Ok(InUse::default())
    }
}

fn planned(options: &[(&str, &str)]) -> Result<Plan, Refusal> {
    let mut spec = JobSpec::new("a");
    for (name, value) in [("zonemode", "zbd")].iter().chain(options) {
        spec.set(name, *value, Origin::Flag { flag: "--test".into() });
    }
    plan(&[spec], &Described, &Machine::unknown())
}

fn job(options: &[(&str, &str)]) -> JobPlan {
    planned(options).expect("planned").jobs.remove(0)
}

/// The name of the rule, and its sentence.
fn refused(options: &[(&str, &str)]) -> (&'static str, String) {
    let refusal = planned(options).expect_err("refused");
    (refusal.rule.name(), refusal.rule.to_string())
}

const ZONED: &[(&str, &str)] =
    &[("filename", "/dev/zoned"), ("overwrite_existing", "/dev/zoned"), ("rw", "write"), ("bs", "64k")];
const PLAIN: &[(&str, &str)] = &[
    ("filename", "/dev/plain"),
    ("overwrite_existing", "/dev/plain"),
    ("rw", "write"),
    ("bs", "64k"),
    ("zonesize", "1m"),
];

fn with<'a>(base: &[(&'a str, &'a str)], more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [base, more].concat()
}

#[test]
fn zones_come_from_the_device_and_are_emulated_on_other_targets() {
    let on_device = job(ZONED);
    let zones = on_device.zones.expect("zones");
    assert_eq!((zones.zone_bytes, zones.is_emulated), (64 << 20, false));
    assert_eq!(on_device.direct, DirectPolicy::Require, "preferred direct I/O is required on a zoned device");
    let zones = job(&with(PLAIN, &[("zonecapacity", "768k")])).zones.expect("zones");
    assert_eq!((zones.zone_bytes, zones.capacity_bytes, zones.is_emulated), (1 << 20, 768 << 10, true));
    let (rule, sentence) = refused(&with(ZONED, &[("zonesize", "1m")]));
    assert!(rule == "zones_impossible" && sentence.contains("are 64m long"), "{sentence}");
    assert_eq!(refused(&PLAIN[..4]).0, "incomplete");
}

#[test]
fn a_job_that_writes_uses_whole_zones_of_its_region_with_a_note() {
    let all = planned(&with(ZONED, &[("offset", "1m"), ("size", "200m")])).unwrap();
    let file = &all.jobs[0].files[0];
    assert_eq!((file.offset_bytes, file.size_bytes), (64 << 20, 128 << 20));
    assert!(all.notes.iter().any(|note| note.contains("whole zones")), "{:?}", all.notes);
    let (rule, sentence) = refused(&with(ZONED, &[("offset", "1m"), ("size", "100m")]));
    assert!(rule == "zones_impossible" && sentence.contains("no whole zone"), "{sentence}");
    // A job that only reads destroys nothing.
    let read = [("filename", "/dev/zoned"), ("rw", "read"), ("bs", "64k"), ("offset", "1m"), ("size", "100m")];
    assert_eq!(job(&read).files[0].offset_bytes, 1 << 20);
}

#[test]
fn sizes_may_count_zones() {
    let sized = job(&with(ZONED, &[("offset", "2z"), ("size", "3z"), ("io_size", "6z")]));
    let file = &sized.files[0];
    assert_eq!((file.offset_bytes, file.size_bytes, sized.limits.io_bytes), (128 << 20, 192 << 20, 384 << 20));
    assert_eq!(job(&with(PLAIN, &[("size", "3z")])).files[0].size_bytes, 3 << 20);
    let (rule, sentence) = refused(&with(ZONED, &[("size", "999999999999z")]));
    assert!(rule == "bad_value" && sentence.contains("more than a file can hold"), "{sentence}");
    let (rule, sentence) = refused(&with(&[("zonemode", "none"), ("ioengine", "null")], &[("size", "3z")]));
    assert!(rule == "incomplete" && sentence.contains("counts zones"), "{sentence}");
    let unzoned = [("filename", "/dev/vdb"), ("zonemode", "zbd"), ("rw", "read"), ("offset", "1z")];
    let (rule, sentence) = refused(&unzoned);
    assert!(rule == "zones_impossible" && sentence.contains("length is unknown"), "{sentence}");
}

#[test]
fn jobs_that_break_the_rules_of_zones_are_refused() {
    for (base, more, rule, words) in [
        (ZONED, &[("direct", "off")][..], "zones_impossible", "page cache writes in an order"),
        (ZONED, &[("rw", "trim"), ("bs", "1m")], "zones_impossible", "a trim resets a zone"),
        (ZONED, &[("rw", "randwrite"), ("blockalign", "4k")], "zones_impossible", "in order"),
        (ZONED, &[("zoneskip", "1m")], "bad_value", "is not a number of zones"),
        (ZONED, &[("ioengine", "cpuio"), ("runtime", "1s"), ("cpuload", "10")], "engine_lacks", "zone"),
        (ZONED, &[("verify", "crc32c"), ("verify_only", "true")], "verify_impossible", "write pointers"),
        (ZONED, &[("zone_reset_threshold", "0.5")], "incomplete", "zone_reset_frequency"),
        (ZONED, &[("zone_reset_threshold", "1.5")], "bad_value", "0 to 1"),
        (PLAIN, &[("unlink_each_loop", "true")], "zones_impossible", "for all its jobs"),
        (PLAIN, &[("sync_file_range", "write:8")], "zones_impossible", "when it is submitted"),
        (
            PLAIN,
            &[("verify", "crc32c"), ("verify_policy", "fsynced"), ("fsync", "8")],
            "verify_impossible",
            "synced or not",
        ),
        (PLAIN, &[("flow", "1")], "zones_impossible", "would delay the other jobs of the flow"),
        (
            PLAIN,
            &[("ioengine", "null"), ("size", "1t"), ("zonesize", "4k"), ("bs", "4k")],
            "zones_impossible",
            "are kept",
        ),
        (PLAIN, &[("lockfile", "exclusive")], "zones_impossible", "keep the file locked"),
        (PLAIN, &[("fill_device", "true")], "zones_impossible", "for all its jobs"),
        (PLAIN, &[("bs", "2m")], "zones_impossible", "does not fit into a zone"),
        (PLAIN, &[("zonecapacity", "2m")], "bad_value", "more than a zone"),
        (PLAIN, &[("zonesize", "66k")], "bad_value", "not a multiple"),
        (
            PLAIN,
            &[("filename", "/dev/plain:/dev/zoned"), ("overwrite_existing", "/dev/plain:/dev/zoned")],
            "zones_impossible",
            "another",
        ),
    ] {
        let (found, sentence) = refused(&with(base, more));
        assert!(found == rule && sentence.contains(words), "{more:?}: {found}: {sentence}");
    }
    // Resetting destroys: the permission to overwrite is needed as for any write.
    let unnamed = [("filename", "/dev/zoned"), ("rw", "trim"), ("bs", "64m")];
    assert_eq!(refused(&unnamed).0, "existing_target_not_named");
}

/// Jobs `a`, `b` …, each with `zonemode = zbd`, one after another.
fn in_phases(jobs: &[&[(&str, &str)]]) -> Result<Plan, Refusal> {
    let specs: Vec<JobSpec> = jobs
        .iter()
        .zip(["a", "b", "c"])
        .map(|(options, name)| {
            let mut spec = JobSpec::new(name);
            for (name, value) in [("zonemode", "zbd"), ("stonewall", "true")].iter().chain(*options) {
                spec.set(name, *value, Origin::Flag { flag: "--test".into() });
            }
            spec
        })
        .collect();
    plan(&specs, &Described, &Machine::unknown())
}

#[test]
fn jobs_that_share_a_file_set_the_same_zones() {
    let job = |more: &[(&'static str, &'static str)]| with(PLAIN, more);
    let two = |more: &[(&'static str, &'static str)]| in_phases(&[&job(&[]), &job(more)]);
    assert!(two(&[("bs", "32k")]).is_ok());
    for more in [&[("zonesize", "2m")][..], &[("zonecapacity", "512k")]] {
        let refusal = two(more).expect_err("other zones");
        assert_eq!((refusal.rule.name(), refusal.job.as_deref()), ("zones_impossible", Some("b")));
        assert!(refusal.rule.to_string().contains("`a` has them of 1m, 1m of each used"), "{}", refusal.rule);
    }
    // Of two files each has its own.
    let null =
        |name, zone| [("ioengine", "null"), ("rw", "write"), ("filename", name), ("size", "4m"), ("zonesize", zone)];
    assert!(in_phases(&[&null("x", "1m"), &null("y", "2m")]).is_ok());
    assert!(in_phases(&[&null("x", "1m"), &null("./x", "2m")]).is_err());
}

/// Goal: blocks of zones that were never written cause no false positive.
#[test]
fn data_in_zones_is_verified_up_to_the_write_pointers() {
    let verify = ("verify", "crc32c");
    let base = [("filename", "new"), ("size", "4m"), ("bs", "64k"), ("zonesize", "1m")];
    let job = |rw: &'static str, more: &[(&'static str, &'static str)]| [&[("rw", rw)], &base[..], more].concat();
    let plain = |rw: &'static str, more: &[(&'static str, &'static str)]| {
        [&[("rw", rw)], &base[..3], &[("zonemode", "none")], more].concat()
    };
    // A job that reads everything may meet what no zone was written with.
    for writer in [job("write", &[verify]), job("randwrite", &[verify]), job("write", &[verify, ("zoneskip", "1m")])] {
        for reader in [plain("read", &[verify]), job("read", &[verify, ("read_beyond_wp", "true")])] {
            let refusal = in_phases(&[&writer, &reader]).expect_err("not all of it was written");
            assert_eq!(refusal.rule.name(), "verify_impossible");
        }
        // One that stays below the pointers does not.
        assert!(in_phases(&[&writer, &job("randread", &[verify])]).is_ok());
    }
    assert!(in_phases(&[&plain("write", &[verify]), &plain("read", &[verify])]).is_ok());
    // Data that was written without headers exists, too.
    let without = in_phases(&[&job("write", &[]), &job("read", &[verify])]).expect_err("no headers");
    assert!(
        without.rule.to_string().contains("job `a`, before it, writes to `new` without `verify`"),
        "{}",
        without.rule
    );
    let pattern = [("verify", "pattern"), ("verify_pattern", "0xaa")];
    assert!(in_phases(&[&job("write", &[]), &job("read", &pattern)]).is_err(), "random content is no pattern");
    assert!(in_phases(&[&job("write", &pattern), &job("read", &pattern)]).is_ok());
    let both = [&job("write", &[])[..], &job("randwrite", &[verify]), &job("read", &[verify])];
    assert!(in_phases(&both).is_err(), "zones of the first may be left");
    // A mixed job reads its own writes.
    assert!(in_phases(&[&job("randrw", &[verify, ("iodepth", "8")])]).is_ok());
}

#[test]
fn verification_in_zones_supports_random_io_queues_and_passes() {
    let deep = [("verify", "crc32c"), ("rw", "randwrite"), ("iodepth", "32"), ("norandommap", "true")];
    assert!(job(&with(ZONED, &with(&deep, &[("io_size", "2g")]))).verify.is_some());
}
