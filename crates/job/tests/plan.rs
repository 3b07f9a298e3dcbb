//! What is planned and what is refused, on targets that are described and not touched.

use std::collections::{BTreeMap, BTreeSet};
use trueio_job::value::ValueKind;
use trueio_job::{
    Beside, DeviceUse, EngineAvailability, EngineState, FactsSource, FileUse, Identity, InUse, Machine, Mark, PathUse,
    Refusal, Role, Rule, TABLE, Target, UseKind, explain, explain_refusal, parse_job_file, plan,
};
use trueio_model::*;

// ---- a machine that is only described --------------------------------------------------------

fn machine() -> Machine {
    Machine {
        memory_bytes: Some(8 << 30),
        cpus: vec![0, 1, 2, 3],
        entropy: 42,
        may_be_real_time: Some(true),
        idle_baseline_ns: 500_000_000,
        programs: vec!["dd".into()],
        ..Machine::unknown()
    }
}

fn facts(path: &str, kind: TargetKind, size: Option<u64>) -> TargetFacts {
    TargetFacts {
        path: path.into(),
        kind,
        size_bytes: size.map_or_else(|| Fact::unknown("not asked"), |size| Fact::known(size, "statx")),
        filesystem: (kind != TargetKind::BlockDevice).then(|| FilesystemFacts {
            kind: "ext4".into(),
            mount_point: "/mnt".into(),
            source: "/dev/vda1".into(),
            options: "rw,relatime".into(),
            size_bytes: Fact::known(100 << 30, "statvfs"),
            available_bytes: Fact::known(10 << 30, "statvfs"),
            block_bytes: Fact::known(4096, "statvfs"),
            uuid: Fact::unknown("not asked"),
        }),
        stack: Vec::new(),
        disks: Vec::new(),
        direct: DirectFacts {
            support: DirectSupport::Direct,
            reason: "statx reports an alignment".into(),
            memory_alignment_bytes: Fact::known(512, "statx DIOALIGN"),
            write_alignment_bytes: Fact::known(512, "statx DIOALIGN"),
            read_alignment_bytes: Fact::known(512, "statx DIOALIGN"),
            atomic_write: Fact::unknown("not asked"),
        },
    }
}

/// `.` and `/mnt` on ext4, `/mnt/old` of 1 MiB, `/dev/vdb` of 1 GiB, `/tmp` on tmpfs, `/dev`, a
/// read-only `/cdrom`; nothing else exists.
fn look(path: &str) -> Target {
    let present = |facts| Target::Present(Box::new(facts));
    match path {
        "." | "/mnt" | "/mnt/dir" => present(facts(path, TargetKind::Directory, None)),
        "/mnt/old" | "/mnt/./old" | "/mnt/old2" => present(facts(path, TargetKind::File, Some(1 << 20))),
        "/mnt/empty" => present(facts(path, TargetKind::File, Some(0))),
        "/dev/vdb" | "/dev/vdc" | "/dev/vdd" | "/dev/vde" | "/dev/vdf" | "/dev/vdg" => {
            present(facts(path, TargetKind::BlockDevice, Some(1 << 30)))
        }
        "/dev/null" => present(facts(path, TargetKind::CharacterDevice, None)),
        "/tmp" | "/dev" | "/cdrom" => {
            let mut facts = facts(path, TargetKind::Directory, None);
            let filesystem = facts.filesystem.as_mut().expect("a directory has a filesystem");
            filesystem.mount_point = path.into();
            match path {
                "/tmp" => {
                    filesystem.kind = "tmpfs".into();
                    facts.direct.support = DirectSupport::SilentlyBuffered;
                    facts.direct.reason = "tmpfs lives in the page cache".into();
                }
                "/dev" => filesystem.kind = "devtmpfs".into(),
                _ => filesystem.options = "ro,relatime".into(),
            }
            present(facts)
        }
        "/secret" => Target::Unreadable("Permission denied (os error 13)".into()),
        _ => Target::Missing,
    }
}

/// [`look`], and who uses what: `/dev/vdb` is free and bare, `/dev/vdc` carries a partition table and
/// a filesystem, `/dev/vdd` is mounted, `/dev/vde` cannot be examined; `/mnt/old` is free.
struct Described;

impl FactsSource for Described {
    fn look(&self, path: &str) -> Target {
        look(path)
    }

    fn in_use(&self, path: &str) -> Result<InUse, String> {
        let mark = |name: &str, offset_bytes| Mark { name: name.into(), offset_bytes };
        let is_mounted = DeviceUse {
            kind: UseKind::Mounted,
            device: "vdd1".into(),
            by: "/srv".into(),
            source: "/proc/1/mountinfo".into(),
        };
        match path {
            "/dev/vdc" => Ok(InUse { marks: vec![mark("ext4", 1080), mark("dos", 510)], ..InUse::default() }),
            "/dev/vdd" => Ok(InUse { uses: vec![is_mounted], marks: vec![mark("ext4", 1080)], ..InUse::default() }),
            "/dev/vde" => Err("its content cannot be read".into()),
            "/dev/vdg" => {
                let of = "btrfs 1111".to_owned();
                let member = DeviceUse { kind: UseKind::Member, device: "vdg".into(), by: of, source: "/sys".into() };
                Ok(InUse { uses: vec![member], ..InUse::default() })
            }
            "/dev/vdf" => Ok(InUse { unseen: vec!["mounts of 3 processes".into()], ..InUse::default() }),
            _ => Ok(InUse::default()),
        }
    }

    /// `http://known/` is 1,000,001 bytes long, `http://empty/` none; nobody else answers.
    fn memory_nodes(&self) -> Result<Vec<(u32, Vec<u32>)>, String> {
        Ok(vec![(0, vec![0, 1]), (1, vec![2, 3, 9])])
    }

    fn source_length(&self, address: &SourceAddress) -> Result<u64, String> {
        match address.host.as_str() {
            "known" => Ok(1_000_001),
            "empty" => Ok(0),
            _ => Err("it cannot be reached".into()),
        }
    }

    /// It is root's process, but nobody may be 666; `/mnt/old` is for user 1000 to read, `/tmp` to write to.
    fn user(&self, uid: Option<u32>, gid: Option<u32>) -> Result<Option<UserPlan>, String> {
        let user = UserPlan { uid: uid.unwrap_or(0), gid: gid.unwrap_or(0) };
        match user {
            UserPlan { uid: 666, .. } | UserPlan { gid: 666, .. } => Err("Operation not permitted".into()),
            UserPlan { uid: 0, gid: 0 } => Ok(None),
            user => Ok(Some(user)),
        }
    }

    fn may_use(&self, user: UserPlan, path: &str, usage: PathUse) -> Result<(), String> {
        match (user.uid, path, usage) {
            (1000, "/mnt/old", PathUse::Write) | (1001, "/mnt/old" | "read.log", _) => Err("Permission denied".into()),
            (1001, ".", PathUse::MakeFilesIn) | (_, "/dev", _) => Err("Permission denied".into()),
            _ => Ok(()),
        }
    }

    fn iolog(&self, log: &str, settings: &ReplaySettings) -> Result<IologSummary, String> {
        let lines = match log {
            "read.log" => "0 /mnt/old read 0 4096\n5 /mnt/old read 8192 4096\n9 /mnt/old sync 0 0\n",
            "write.log" => "0 /mnt/old write 0 4096\n5 /mnt/old read 512 512\n",
            "odd.log" => "0 /mnt/old read 100 4096\n",
            "beyond.log" => "0 /mnt/old read 1048576 512\n",
            "marked.log" => "0 /dev/vdc write 0 512\n",
            "mounted.log" => "0 /dev/vdd trim 0 512\n",
            "dev.log" => "0 /dev/mistyped write 0 512\n",
            "twice.log" => "0 /mnt/old read 0 512\n0 /mnt//old read 0 512\n",
            "nothing.log" => "",
            "bad.log" => "0 /mnt/old read 0 512\n0 /mnt/old write 0 x\n",
            _ => return Err("No such file or directory (os error 2)".into()),
        };
        let files: BTreeSet<&str> = lines.lines().filter_map(|line| line.split(' ').nth(1)).collect();
        let begin: String = files.iter().map(|file| format!("0 {file} add\n0 {file} open\n")).collect();
        let text = format!("fio version 3 iolog\n{begin}{lines}");
        scan_iolog(text.as_bytes(), settings).map_err(|error| error.to_string())
    }
}

fn spec(name: &str, options: &[(&str, &str)]) -> JobSpec {
    let mut spec = JobSpec::new(name);
    for (name, value) in options {
        spec.set(name, *value, Origin::Preset { name: "test".into() });
    }
    spec
}

fn plan_one(options: &[(&str, &str)]) -> Result<JobPlan, Refusal> {
    plan(&[spec("a", options)], &Described, &machine()).map(|mut plan| plan.jobs.remove(0))
}

fn refused(options: &[(&str, &str)]) -> Rule {
    *plan_one(options).expect_err("refused").rule
}

fn rule_name(options: &[(&str, &str)]) -> &'static str {
    plan_one(options).expect_err("refused").rule.name()
}

// ---- every row counts -------------------------------------------------------------------------

/// Goal: no option is read and then forgotten.
/// Method: for each row, a job with and without one word about it; the plans must differ in
/// something else than the list of values that `explain` prints.
#[test]
fn every_row_of_the_table_changes_the_plan() {
    type Case = (&'static str, &'static [(&'static str, &'static str)], &'static str);
    const ZBD: &[(&str, &str)] = &[("zonemode", "zbd"), ("zonesize", "64k"), ("rw", "write")];
    const ZBD_RESETS: &[(&str, &str)] = &[
        ("zonemode", "zbd"),
        ("zonesize", "64k"),
        ("rw", "write"),
        ("zone_reset_threshold", "0.5"),
        ("zone_reset_frequency", "0.5"),
    ];
    let cases: &[Case] = &[
        ("rw", &[], "randwrite"),
        ("rwmixread", &[("rw", "rw")], "70"),
        ("rwmixwrite", &[("rw", "rw")], "10"),
        ("bs", &[], "8k"),
        ("bsrange", &[], "4k-16k"),
        ("bssplit", &[], "4k/10:8k/90"),
        ("norandommap", &[("rw", "randread")], "true"),
        ("random_distribution", &[("rw", "randread")], "zipf:1.2"),
        ("random_every", &[("rw", "randread")], "8"),
        ("rw_sequencer", &[("rw", "randread"), ("random_every", "8")], "identical"),
        ("sequential_skip", &[], "4096"),
        ("percentage_random", &[("rw", "randread")], "50"),
        ("blockalign", &[("rw", "randread")], "512"),
        ("bs_unaligned", &[("bsrange", "1k-8k"), ("direct", "off")], "true"),
        ("zonemode", &[("zonemode", "zbd"), ("zonesize", "64k")], "strided"),
        ("zonesize", &[("zonemode", "strided"), ("zonesize", "64k")], "128k"),
        ("zonerange", &[("zonemode", "strided"), ("zonesize", "64k")], "256k"),
        ("zoneskip", &[("zonemode", "strided"), ("zonesize", "64k")], "64k"),
        ("zonecapacity", ZBD, "32k"),
        ("read_beyond_wp", ZBD, "true"),
        ("max_open_zones", ZBD, "2"),
        ("job_max_open_zones", ZBD, "1"),
        ("ignore_zone_limits", ZBD, "true"),
        ("zone_reset_threshold", ZBD_RESETS, "0.9"),
        ("zone_reset_frequency", ZBD_RESETS, "0.1"),
        ("write_zone_remainder", ZBD, "true"),
        ("randseed", &[], "7"),
        ("randrepeat", &[], "false"),
        ("filename", &[], "/mnt/new"),
        ("directory", &[], "/mnt/dir"),
        ("size", &[], "2m"),
        ("filesize", &[], "512k"),
        ("create_only", &[], "true"),
        ("lockfile", &[], "readwrite"),
        ("unlink_each_loop", &[("rw", "write"), ("loops", "2")], "true"),
        ("nrfiles", &[], "4"),
        ("file_service_type", &[("nrfiles", "2")], "random"),
        ("file_service_ios", &[("nrfiles", "2")], "4"),
        ("offset", &[], "64k"),
        ("offset_align", &[("filename", "/mnt/old"), ("offset", "33%"), ("size", "64k")], "64k"),
        ("overwrite", &[("rw", "write")], "true"),
        ("fallocate", &[("rw", "write")], "none"),
        ("unlink", &[], "false"),
        ("runtime", &[], "30s"),
        ("time_based", &[("runtime", "30s")], "true"),
        ("ramp_time", &[], "1s"),
        ("steady_state", &[], "true"),
        ("steady_state_round", &[("steady_state", "true")], "3s"),
        ("steady_state_rounds", &[("steady_state", "true")], "7"),
        ("io_size", &[], "16m"),
        ("loops", &[], "3"),
        ("number_ios", &[], "10"),
        ("fill_device", &[("rw", "write")], "true"),
        (
            "file_append",
            &[
                ("rw", "write"),
                ("filename", "/mnt/old"),
                ("overwrite_existing", "/mnt/old"),
                ("extend_existing", "/mnt/old"),
            ],
            "true",
        ),
        ("startdelay", &[], "1s"),
        ("stonewall", &[], "true"),
        ("ioengine", &[], "psync"),
        ("command", &[("rw", "write")], "dd of={file}"),
        ("iodepth", &[], "16"),
        ("iodepth_batch", &[("iodepth", "16")], "4"),
        ("iodepth_batch_complete_min", &[("iodepth", "16")], "4"),
        ("iodepth_batch_complete_max", &[("iodepth", "16")], "4"),
        ("iodepth_low", &[("iodepth", "16")], "4"),
        ("numjobs", &[], "2"),
        ("fixedbufs", &[], "false"),
        ("registerfiles", &[], "false"),
        ("sqthread_poll", &[], "true"),
        ("sqthread_poll_cpu", &[("sqthread_poll", "true")], "1"),
        ("force_async", &[], "4"),
        ("nonvectored", &[], "false"),
        ("drain", &[], "true"),
        ("serialize_overlap", &[("iodepth", "4"), ("ioengine", "io_uring")], "true"),
        ("hipri", &[], "true"),
        ("simulated", &[("ioengine", "simulated")], "service=1ms"),
        ("program", &[("ioengine", "exec"), ("program", "dd")], "dd --help"),
        ("grace_time", &[("ioengine", "exec"), ("program", "dd")], "3s"),
        ("std_redirect", &[("ioengine", "exec"), ("program", "dd")], "false"),
        ("cpuload", &[("ioengine", "cpuio"), ("runtime", "1s"), ("cpuload", "10")], "20"),
        ("cpumode", &[("ioengine", "cpuio"), ("runtime", "1s"), ("cpuload", "10")], "qsort"),
        ("exit_on_io_done", &[("ioengine", "cpuio"), ("runtime", "1s"), ("cpuload", "10")], "true"),
        ("priohint", &[], "3"),
        ("hipri_percentage", &[("ioengine", "pvsync2"), ("hipri", "true")], "30"),
        ("cpuchunks", &[("ioengine", "cpuio"), ("runtime", "1s"), ("cpuload", "10")], "7ms"),
        ("direct", &[], "off"),
        ("sync", &[], "dsync"),
        ("fsync", &[], "1"),
        ("fdatasync", &[], "1"),
        ("end_fsync", &[], "true"),
        ("end_fdatasync", &[], "true"),
        ("fsync_on_close", &[], "true"),
        ("rwf_dsync", &[], "true"),
        ("uncached", &[], "true"),
        ("atomic", &[], "true"),
        ("invalidate", &[], "false"),
        ("fadvise_hint", &[], "pattern"),
        ("stat_type", &[("ioengine", "filestat")], "lstat"),
        ("pre_read", &[], "true"),
        ("rate", &[], "10m"),
        ("rate_iops", &[], "1000"),
        ("rate_min", &[], "1m"),
        ("rate_iops_min", &[], "100"),
        ("rate_cycle", &[("rate_iops_min", "100")], "500"),
        ("max_latency", &[], "10ms"),
        ("latency_target", &[("latency_window", "1s")], "2ms"),
        ("latency_window", &[("latency_target", "2ms"), ("latency_window", "1s")], "2s"),
        ("latency_percentile", &[("latency_target", "2ms"), ("latency_window", "1s")], "99.9"),
        ("latency_run", &[("latency_target", "2ms"), ("latency_window", "1s")], "true"),
        ("steadystate", &[("steadystate_duration", "10s")], "bw:1%"),
        ("steadystate_duration", &[], "10s"),
        ("steadystate_ramp_time", &[("steadystate_duration", "10s")], "5s"),
        ("steadystate_check_interval", &[("steadystate_duration", "10s")], "2s"),
        ("flow", &[], "3"),
        ("flow_id", &[("flow", "3")], "7"),
        ("flow_sleep", &[("flow", "3")], "100"),
        ("wait_for", &[], "first"),
        ("rate_process", &[("rate_iops", "1000")], "poisson"),
        ("thinktime", &[], "1ms"),
        ("thinktime_blocks", &[("thinktime", "1ms")], "8"),
        ("thinktime_spin", &[("thinktime", "1ms")], "500us"),
        ("thinktime_iotime", &[("thinktime", "1ms")], "2s"),
        ("zero_buffers", &[("rw", "write")], "true"),
        ("refill_buffers", &[("rw", "write")], "true"),
        ("buffer_pattern", &[("rw", "write")], "0xff"),
        ("mem", &[], "shm"),
        ("hugepage_size", &[("mem", "mmaphuge")], "1g"),
        ("buffer_offset", &[], "1"),
        ("buffer_compress_percentage", &[("rw", "write")], "50"),
        ("buffer_compress_chunk", &[("rw", "write"), ("buffer_compress_percentage", "50")], "4k"),
        ("dedupe_percentage", &[("rw", "write")], "50"),
        ("dedupe_working_set_percentage", &[("rw", "write"), ("dedupe_percentage", "50")], "5"),
        (
            "trim_backlog_batch",
            &[("rw", "write"), ("verify", "xxhash"), ("trim_backlog", "8"), ("trim_percentage", "50")],
            "2",
        ),
        ("source", &[("rw", "write")], "http://127.0.0.1:8080/a"),
        ("verify", &[("rw", "write")], "crc32c"),
        ("do_verify", &[("rw", "write"), ("verify", "md5")], "false"),
        (
            "verify_only",
            &[("rw", "write"), ("verify", "md5"), ("filename", "/mnt/old"), ("overwrite_existing", "/mnt/old")],
            "true",
        ),
        ("verify_interval", &[("rw", "write"), ("verify", "sha256")], "1k"),
        ("verify_offset", &[("rw", "write"), ("verify", "sha3-512")], "64"),
        ("verify_pattern", &[("rw", "write"), ("verify", "crc7")], "%o0xab"),
        ("verify_pattern_interval", &[("rw", "write"), ("verify", "pattern"), ("verify_pattern", "%o")], "512"),
        ("verify_policy", &[("rw", "write"), ("verify", "crc7"), ("fsync", "8")], "fsynced"),
        ("sync_file_range", &[("rw", "write")], "wait_before,write:8"),
        ("verify_backlog", &[("rw", "write"), ("verify", "crc16")], "64"),
        ("verify_backlog_batch", &[("rw", "write"), ("verify", "crc32"), ("verify_backlog", "64")], "16"),
        ("verify_async", &[("rw", "write"), ("verify", "crc64")], "2"),
        ("verify_fatal", &[("rw", "write"), ("verify", "meta")], "true"),
        ("verify_dump", &[("rw", "write"), ("verify", "sha1")], "true"),
        ("verify_state_save", &[("rw", "write"), ("verify", "sha512")], "true"),
        (
            "verify_state_load",
            &[
                ("rw", "write"),
                ("verify", "md5"),
                ("filename", "/mnt/old"),
                ("overwrite_existing", "/mnt/old"),
                ("verify_only", "true"),
            ],
            "true",
        ),
        ("trim_percentage", &[("rw", "write"), ("verify", "xxhash"), ("trim_backlog", "8")], "50"),
        (
            "trim_verify_zero",
            &[("rw", "write"), ("verify", "xxhash"), ("trim_backlog", "8"), ("trim_percentage", "50")],
            "false",
        ),
        (
            "trim_backlog",
            &[("rw", "write"), ("verify", "xxhash"), ("trim_backlog", "8"), ("trim_percentage", "50")],
            "9",
        ),
        ("cpus_allowed", &[], "1"),
        ("cpus_allowed_policy", &[("cpus_allowed", "0,1")], "shared"),
        ("nowait", &[("ioengine", "libaio")], "true"),
        ("numa_cpu_nodes", &[], "1"),
        ("numa_mem_policy", &[], "bind:0"),
        ("prio", &[], "3"),
        ("prioclass", &[], "3"),
        ("cmdprio_bssplit", &[("ioengine", "libaio")], "*/20/2/1"),
        ("exitall", &[], "true"),
        ("exitall_on_error", &[], "true"),
        ("exit_what", &[("exitall", "true")], "all"),
        ("nice", &[], "5"),
        ("uid", &[], "1000"),
        ("openfiles", &[("nrfiles", "4")], "2"),
        ("gid", &[], "1000"),
        ("continue_on_error", &[], "all"),
        ("ignore_error", &[], "EIO,ENOSPC"),
        ("trace_syscalls", &[], "true"),
        ("strace", &[], "true"),
        ("group_reporting", &[], "true"),
        ("new_group", &[], "true"),
        ("clat_percentiles", &[], "false"),
        ("lat_percentiles", &[], "true"),
        ("slat_percentiles", &[], "true"),
        ("percentile_list", &[], "50:99.9"),
        ("disable_clat", &[], "true"),
        ("disable_lat", &[], "true"),
        ("disable_slat", &[], "true"),
        ("disable_bw_measurement", &[], "true"),
        ("gtod_reduce", &[], "true"),
        ("unified_rw_reporting", &[], "both"),
        ("bwavgtime", &[], "1000"),
        ("iopsavgtime", &[], "1000"),
        ("write_bw_log", &[], "l"),
        ("write_iops_log", &[], "l"),
        ("write_lat_log", &[], "l"),
        ("write_hist_log", &[], "l"),
        ("read_iolog", &[], "read.log"),
        ("replay_no_stall", &[("read_iolog", "read.log")], "true"),
        ("replay_time_scale", &[("read_iolog", "read.log")], "50"),
        ("replay_redirect", &[("read_iolog", "read.log")], "/dev/vdb"),
        ("replay_align", &[("read_iolog", "read.log")], "8k"),
        ("replay_scale", &[("read_iolog", "read.log")], "2"),
        ("replay_skip", &[("read_iolog", "read.log")], "sync"),
        ("write_iolog", &[], "l"),
        ("log_avg_msec", &[("write_bw_log", "l")], "500"),
        ("log_hist_msec", &[("write_hist_log", "l")], "500"),
        ("log_hist_coarseness", &[("write_hist_log", "l")], "2"),
        ("log_offset", &[("write_bw_log", "l")], "true"),
        ("log_prio", &[("write_bw_log", "l")], "true"),
        ("log_issue_time", &[("write_bw_log", "l")], "true"),
        ("log_window_value", &[("write_lat_log", "l")], "both"),
        ("log_alternate_epoch", &[("write_lat_log", "l")], "true"),
        ("per_job_logs", &[("write_lat_log", "l")], "false"),
        ("log_store_compressed", &[("write_lat_log", "l")], "true"),
    ];
    let covered: BTreeSet<&str> = cases.iter().map(|case| case.0).collect();
    let permissions = ["overwrite_existing", "overwrite_signature", "extend_existing"];
    for row in TABLE.iter().filter(|row| !permissions.contains(&row.name)) {
        assert!(covered.contains(row.name), "`{}` has no case here", row.name);
    }
    let planned = |options: &[(&str, &str)]| {
        // Jobs that run at the same time say the same of a steady state.
        let mut first = vec![("size", "1m")];
        first.extend(options.iter().filter(|option| option.0.starts_with("steady_state")));
        let specs = [spec("first", &first), spec("b", options)];
        let mut plan =
            plan(&specs, &Described, &machine()).unwrap_or_else(|e| panic!("{options:?}: {}", explain_refusal(&e)));
        let mut job = plan.jobs.remove(1);
        assert_eq!(job.values.len(), TABLE.len(), "every row has its value and origin");
        job.values.clear();
        job
    };
    for (name, context, value) in cases {
        let mut options = vec![("size", "1m")];
        options.extend_from_slice(context);
        let without = planned(&options);
        options.push((name, value));
        assert_ne!(planned(&options), without, "`{name} = {value}` changes nothing");
    }
    // Their effect is that there is a plan at all.
    let destroys = [("rw", "write"), ("filename", "/mnt/old")];
    assert_eq!(rule_name(&destroys), "existing_target_not_named");
    assert!(plan_one(&[destroys[0], destroys[1], ("overwrite_existing", "/mnt/old")]).is_ok());
    let marked = [("rw", "write"), ("filename", "/dev/vdc"), ("overwrite_existing", "/dev/vdc")];
    assert_eq!(rule_name(&marked), "signature_not_named");
    assert!(plan_one(&[&marked[..], &[("overwrite_signature", "dos,ext4")]].concat()).is_ok());
}

#[test]
fn every_value_stands_in_the_plan_in_the_tables_order_with_its_origin() {
    let job = plan_one(&[("size", "1m"), ("bs", "8K")]).unwrap();
    let names: Vec<&str> = job.values.iter().map(|value| value.name.as_str()).collect();
    assert_eq!(names, TABLE.iter().map(|row| row.name).collect::<Vec<_>>());
    let of = |name: &str| job.values.iter().find(|value| value.name == name).unwrap();
    assert_eq!((of("bs").value.as_str(), &of("bs").origin), ("8k", &Origin::Preset { name: "test".into() }));
    assert_eq!(of("iodepth").origin, Origin::Default);
    assert!(matches!(of("ioengine").origin, Origin::Derived { .. }));
}

/// Goal: a deliberately misaligned buffer is never taken for direct I/O that works.
#[test]
fn misaligned_buffers_turn_preferred_direct_io_off_and_leave_required_direct_io_to_fail() {
    let base = [("size", "1m"), ("rw", "write")];
    let with = |more: &[(&'static str, &'static str)]| {
        let specs = [spec("a", &[&base[..], more].concat())];
        plan(&specs, &Described, &machine()).unwrap()
    };
    let preferred = with(&[("buffer_offset", "1")]);
    assert_eq!((preferred.jobs[0].direct, preferred.jobs[0].buffer_offset_bytes), (DirectPolicy::Off, 1));
    assert!(preferred.notes.iter().any(|note| note.contains("no multiple of 512 bytes")), "{:?}", preferred.notes);
    let required = with(&[("buffer_offset", "1"), ("direct", "require")]);
    assert_eq!(required.jobs[0].direct, DirectPolicy::Require);
    assert!(required.notes.iter().any(|note| note.contains("may all fail")), "{:?}", required.notes);
    // Aligned enough for this target.
    assert_eq!(with(&[("buffer_offset", "512")]).jobs[0].direct, DirectPolicy::Prefer);
}

/// Goal: an engine that changes a file is held to the rules of writing, whatever the operation is called.
#[test]
fn engines_that_move_no_data_begin_with_an_empty_file_and_spare_what_exists() {
    for engine in ["falloc", "ftruncate"] {
        let job = plan_one(&[("size", "1m"), ("rw", "write"), ("ioengine", engine)]).unwrap();
        assert_eq!((job.files[0].prepare, job.direct), (Prepare::CreateEmpty, DirectPolicy::Off), "{engine}");
        assert!(job.modifies_files());
        let device =
            [("filename", "/dev/vdb"), ("overwrite_existing", "/dev/vdb"), ("rw", "write"), ("ioengine", engine)];
        assert_eq!(rule_name(&device), "engine_lacks", "{engine}");
    }
    let read = [("filename", "/mnt/old"), ("rw", "read"), ("ioengine", "falloc")];
    assert_eq!(rule_name(&read), "existing_target_not_named", "falloc allocates when it reads");
    assert!(plan_one(&[&read[..], &[("overwrite_existing", "/mnt/old")]].concat()).unwrap().modifies_files());
    let cut =
        [("filename", "/mnt/old"), ("overwrite_existing", "/mnt/old"), ("rw", "write"), ("ioengine", "ftruncate")];
    assert!(plan_one(&cut).is_ok(), "all that is cut was named");
    let behind = [&cut[..], &[("size", "4k")]].concat();
    assert_eq!(rule_name(&behind), "engine_lacks", "what lies behind the region is never cut");
    for engine in ["falloc", "ftruncate"] {
        let longer = [
            ("filename", "/mnt/old"),
            ("overwrite_existing", "/mnt/old"),
            ("rw", "write"),
            ("size", "1g"),
            ("ioengine", engine),
        ];
        assert_eq!(rule_name(&longer), "size_beyond_target", "{engine}");
        let job = plan_one(&[&longer[..], &[("extend_existing", "/mnt/old")]].concat()).unwrap();
        assert_eq!(job.files[0].prepare, Prepare::CreateEmpty, "{engine}");
        assert!(job.files[0].extends_from.is_some() && !job.files[0].remove_after, "{engine}");
    }
    assert_eq!(rule_name(&[("size", "1m"), ("rw", "read"), ("ioengine", "ftruncate")]), "engine_lacks");
    assert_eq!(plan_one(&[("size", "1m"), ("ioengine", "posixaio"), ("iodepth", "16")]).unwrap().queue.depth, 16);
}

/// Goal: what cannot be compared is refused, each with the option that is wrong.
#[test]
fn verification_that_contradicts_itself_is_refused() {
    let of =
        |more: &[(&'static str, &'static str)]| rule_name(&[&[("size", "1m"), ("rw", "write")][..], more].concat());
    let md5 = ("verify", "md5");
    assert_eq!(of(&[("verify", "pattern")]), "incomplete");
    assert_eq!(of(&[("verify_only", "1")]), "incomplete");
    assert_eq!(of(&[md5, ("trim_percentage", "10")]), "incomplete");
    assert_eq!(of(&[md5, ("verify_backlog_batch", "4")]), "incomplete");
    assert_eq!(of(&[md5, ("verify_state_load", "1")]), "incomplete");
    assert_eq!(of(&[md5, ("verify_interval", "3000")]), "bad_value");
    assert_eq!(of(&[md5, ("verify_interval", "32")]), "bad_value");
    assert_eq!(of(&[md5, ("verify_offset", "47")]), "bad_value");
    assert_eq!(of(&[md5, ("verify_interval", "512"), ("verify_offset", "465")]), "bad_value");
    assert_eq!(of(&[md5, ("verify_only", "1"), ("do_verify", "0")]), "contradiction");
    assert_eq!(of(&[md5, ("trim_percentage", "9"), ("trim_backlog", "8"), ("loops", "2")]), "verify_impossible");
    assert_eq!(of(&[md5, ("verify_pattern_interval", "512")]), "incomplete");
    // Only what was synced: something must be, and it must be known what.
    let fsynced = [md5, ("verify_policy", "fsynced")];
    let of_synced = |more: &[(&'static str, &'static str)]| of(&[&fsynced[..], more].concat());
    assert_eq!(of_synced(&[]), "incomplete");
    assert_eq!(of_synced(&[("fsync", "8"), ("verify_backlog", "8")]), "contradiction");
    assert_eq!(of_synced(&[("fsync", "8"), ("trim_percentage", "9"), ("trim_backlog", "8")]), "contradiction");
    assert_eq!(of_synced(&[("fsync", "8"), ("loops", "2")]), "verify_impossible");
    assert_eq!(of_synced(&[("fsync", "8"), ("nrfiles", "2")]), "verify_impossible");
    for syncs in [("fsync", "8"), ("end_fdatasync", "1"), ("sync", "dsync")] {
        let job = plan_one(&[&[("size", "1m"), ("rw", "write"), syncs][..], &fsynced].concat()).unwrap();
        assert!(job.verify.unwrap().synced_only, "{syncs:?}");
    }
    // Nothing is there that could be compared, and what is there is not written.
    assert_eq!(of(&[md5, ("verify_only", "1")]), "verify_impossible");
    let offline = plan_one(&[("filename", "/mnt/old"), ("rw", "write"), md5, ("verify_only", "1")]).unwrap();
    assert!(!offline.modifies_files(), "so it need not be named for overwriting");
    assert!(plan_one(&[("size", "1m"), ("rw", "write"), ("ioengine", "null"), ("verify", "null")]).is_ok());
    let read = plan_one(&[("filename", "/mnt/old"), ("rw", "read"), ("verify", "pattern"), ("verify_pattern", "0xff")]);
    assert!(read.is_ok());
}

/// Goal: names are counted, not bytes, and each is used once by who makes or removes it.
#[test]
fn engines_on_names_have_a_directory_of_their_own_and_one_io_a_name() {
    let of = |more: &[(&'static str, &'static str)]| {
        plan_one(&[&[("directory", "/mnt"), ("nrfiles", "300"), ("rw", "write")][..], more].concat())
    };
    for engine in ["filecreate", "filestat", "filedelete", "dircreate", "dirstat", "dirdelete"] {
        let job = of(&[("ioengine", engine), ("filesize", "4k"), ("size", "8m")]).unwrap();
        let file = &job.files[0];
        assert_eq!((file.path.as_str(), file.size_bytes, file.prepare), ("/mnt/trueio-a-names", 300, Prepare::Nothing));
        assert_eq!((job.limits.io_bytes, job.pattern.write_sizes), (300, BlockSizes::Fixed(1)), "{engine}");
        let again = of(&[("ioengine", engine), ("loops", "2")]);
        assert_eq!(again.is_ok(), engine.ends_with("stat"), "{engine}");
        assert!(of(&[("ioengine", engine), ("iodepth", "2")]).is_err());
        assert!(of(&[("ioengine", engine), ("verify", "md5")]).is_err());
    }
    assert_eq!(rule_name(&[("ioengine", "filestat"), ("filename", "/mnt/old"), ("rw", "read")]), "engine_lacks");
    assert_eq!(rule_name(&[("ioengine", "filestat"), ("directory", "/cdrom")]), "cannot_create_here");
    assert_eq!(rule_name(&[("ioengine", "cpuio"), ("cpuload", "50")]), "incomplete");
    assert_eq!(rule_name(&[("ioengine", "cpuio"), ("runtime", "1s")]), "incomplete");
    assert!(plan_one(&[("ioengine", "cpuio"), ("cpuload", "50"), ("exit_on_io_done", "1")]).is_ok());
}

/// Goal: of fio's jobs the I/Os and bytes are known that fio counts for names, and what they limit, in names; those of the
/// plan stay one name each.
#[test]
fn names_of_fios_jobs_are_counted_as_fio_counts_them() {
    let planned = |more: &[(&'static str, &'static str)]| {
        let own = [("directory", "/mnt"), ("nrfiles", "50"), ("rw", "write"), ("ioengine", "filestat")];
        let own = own.into_iter().filter(|(name, _)| !more.iter().any(|(other, _)| name == other));
        let spec = spec("a", &own.chain(more.iter().copied()).collect::<Vec<_>>());
        let spec = JobSpec { fio: Some(Box::default()), ..spec };
        plan(&[spec], &Described, &machine()).map(|mut plan| plan.jobs.remove(0))
    };
    // Names of a pass, and the I/Os and bytes of each that they are counted as.
    let of = |more: &[(&'static str, &'static str)]| {
        let job = planned(more).expect("it is planned");
        let counts = job.output.names.expect("it is fio's");
        assert_eq!((job.files[0].size_bytes, job.limits.io_bytes), (50.min(job.files[0].size_bytes), counts.names));
        assert_eq!(job.pattern.write_sizes, BlockSizes::Fixed(1));
        (counts.names, counts.ios, counts.block_bytes)
    };
    let (four, one) = (("filesize", "4k"), ("bs", "1k"));
    assert_eq!(of(&[]), (50, 50, 4096));
    assert_eq!(of(&[four]), (50, 50, 4096));
    assert_eq!(of(&[four, one]), (50, 200, 1024));
    assert_eq!(of(&[("size", "200k"), one]), (50, 200, 1024));
    assert_eq!(of(&[four, ("bs", "3000")]), (50, 50, 3000));
    assert_eq!(of(&[four, ("size", "80k")]), (20, 20, 4096));
    assert_eq!(of(&[four, ("size", "8m")]), (50, 50, 4096));
    assert_eq!(of(&[four, one, ("io_size", "50%")]), (50, 100, 1024));
    assert_eq!(of(&[four, one, ("io_size", "30k")]), (30, 30, 1024));
    assert_eq!(of(&[four, ("io_size", "50001"), ("bs", "3000")]), (17, 17, 3000));
    assert_eq!(of(&[four, ("io_size", "480k")]), (120, 120, 4096));
    assert_eq!(of(&[four, one, ("number_ios", "22")]), (22, 22, 1024));
    assert_eq!(of(&[four, one, ("number_ios", "122")]), (50, 122, 1024));
    assert_eq!(of(&[four, one, ("number_ios", "22"), ("file_service_type", "sequential")]), (6, 22, 1024));
    assert_eq!(of(&[("filesize", "4k-8k"), one]), (50, 300, 1024));
    let timed = [four, one, ("number_ios", "322"), ("io_size", "1k"), ("time_based", "1"), ("runtime", "1s")];
    assert_eq!(of(&timed), (50, 200, 1024));
    assert_eq!(planned(&timed).expect("it is planned").limits.io_count, Some(100));
    // Rates go by names, of which each is an I/O; a byte of ours is a block of fio's.
    let paced = planned(&[four, ("rate", "40k"), ("rate_min", "10000")]).expect("it is planned");
    assert_eq!((paced.pace.and_then(|pace| pace.bytes_per_s), paced.guard.bytes_per_s_min), (Some(10.0), 3));
    assert_eq!(planned(&[four, ("rate_iops", "7")]).expect("it is planned").pace.and_then(|p| p.ios_per_s), Some(7.0));
    let rule = |more: &[(&'static str, &'static str)]| planned(more).expect_err("it is refused").rule.name();
    for more in [
        &[four, one, ("rate", "40k")][..],
        &[four, one, ("rate_iops", "7")],
        &[four, one, ("thinktime", "1ms")],
        &[four, ("bsrange", "1k-4k")],
        &[four, ("rw", "rw"), ("bs", "1k,2k")],
        &[four, ("steadystate", "bw:10%"), ("steadystate_duration", "2s")],
        &[four, one, ("steadystate", "iops:10%"), ("steadystate_duration", "2s")],
        &[four, ("ioengine", "filecreate"), ("io_size", "400k")],
    ] {
        assert_eq!(rule(more), "engine_lacks", "{more:?}");
    }
    assert!(planned(&[four, ("steadystate", "iops:10%"), ("steadystate_duration", "2s")]).is_ok());
    // fio makes some of the names, or none, and says that all is well.
    assert_eq!(rule(&[four, ("bs", "16k")]), "block_beyond_size");
    assert_eq!(rule(&[("size", "100k")]), "block_beyond_size");
    // Jobs of ours count names.
    assert_eq!(plan_one(&[("ioengine", "filestat"), four]).expect("it is planned").output.names, None);
}

/// Goal: what steps through a region is refused where it is half said, and keeps no map.
#[test]
fn steps_are_whole_or_refused() {
    let of = |more: &[(&'static str, &'static str)]| plan_one(&[&[("size", "1m")][..], more].concat());
    let name = |more: &[(&'static str, &'static str)]| rule_name(&[&[("size", "1m")][..], more].concat());
    assert_eq!(name(&[("zonemode", "strided")]), "incomplete");
    // Any number of bytes may be the size of `bs` and `bssplit` anyway.
    for sizes in [("bs", "1000"), ("bssplit", "1000/50:1500/50")] {
        assert!(!of(&[sizes, ("bs_unaligned", "1")]).unwrap().pattern.steps.is_unaligned, "{sizes:?}");
    }
    // Zones without a mode would be no zones at all.
    assert_eq!(name(&[("zonesize", "64k")]), "incomplete");
    assert_eq!(name(&[("zonesize", "64k"), ("zoneskip", "64k"), ("zonemode", "none")]), "incomplete");
    assert!(of(&[("zonerange", "64k"), ("zoneskip", "64k")]).unwrap().pattern.steps.is_none(), "as in fio");
    // Of strided zones sizes count what is transferred in one.
    let strided = [("zonemode", "strided"), ("zonesize", "64k"), ("zonerange", "128k")];
    let job = of(&[&strided[..], &[("size", "4z"), ("offset", "1z")]].concat()).unwrap();
    assert_eq!((job.files[0].size_bytes, job.files[0].offset_bytes), (256 << 10, 64 << 10));
    assert_eq!(name(&[("size", "4z")]), "bad_value");
    // Writes of a mixed job have what stands behind the comma; others have what is their own.
    let random = [("percentage_random", "100,0"), ("blockalign", "8k,16k")];
    let steps = |rw| of(&[&random[..], &[("rw", rw)]].concat()).unwrap().pattern.steps;
    let of_writes = WriteSteps { align_bytes: 16 << 10, sequential_percent: 100 };
    assert_eq!((steps("randrw").align_bytes, steps("randrw").sequential_percent), (8 << 10, 0));
    assert_eq!(steps("randrw").of_writes, Some(of_writes));
    assert_eq!((steps("randread").align_bytes, steps("randread").of_writes), (8 << 10, None));
    assert_eq!((steps("randwrite").align_bytes, steps("randwrite").sequential_percent), (16 << 10, 100));
    assert_eq!(name(&[("rw", "randread"), ("rw_sequencer", "identical")]), "incomplete");
    let unaligned = [("bsrange", "1k-8k"), ("bs_unaligned", "1")];
    assert_eq!(name(&[&unaligned[..], &[("direct", "require")]].concat()), "contradiction");
    assert_eq!(of(&unaligned).unwrap().direct, DirectPolicy::Off);
    assert_eq!(name(&[("rw", "write:"), ("verify", "md5")]), "bad_value");
    assert_eq!(name(&[("rw", "write"), ("sequential_skip", "4096"), ("verify", "md5")]), "verify_impossible");
    let job = of(&[("rw", "randtrimwrite"), ("iodepth", "8")]).unwrap();
    assert!(job.pattern.steps.trims_first);
    assert!(matches!(job.pattern.order, Order::Random { each_block_once: true, .. }));
}

/// Goal: the loops that were published can be asked for, each in one job.
#[test]
fn the_published_loops_are_plans() {
    let of = |options: &[(&str, &str)]| plan_one(options).unwrap();
    // Seed 000, O_DIRECT + AMORTIZED_FDATASYNC of 4 KiB: a file that grows, the same 0xff in every write.
    let job = of(&[
        ("rw", "write"),
        ("bs", "4k"),
        ("size", "128m"),
        ("direct", "require"),
        ("ioengine", "psync"),
        ("fallocate", "none"),
        ("buffer_pattern", "0xff"),
        ("end_fdatasync", "true"),
        ("invalidate", "false"),
        ("number_ios", "128"),
    ]);
    assert_eq!((job.files[0].prepare, job.limits.io_count), (Prepare::CreateEmpty, Some(128)));
    assert_eq!((job.content.kind, &job.content.pattern[..]), (ContentKind::Pattern, &[0xff][..]));
    assert!(job.flush.end_fdatasync && !job.flush.end_fsync);
    // Seed 001: offsets drawn with repetition, O_SYNC on reads too, a buffer from `malloc`.
    for (rw, needs_word) in [("randread", false), ("randwrite", true)] {
        let mut options = vec![
            ("rw", rw),
            ("bs", "128k"),
            ("filename", "/mnt/old"),
            ("sync", "sync"),
            ("norandommap", "true"),
            ("number_ios", "15625"),
            ("time_based", "true"),
            ("runtime", "1h"),
            ("buffer_pattern", "0x58"),
            ("buffer_offset", "160"),
            ("direct", "require"),
            ("continue_on_error", "all"),
        ];
        if needs_word {
            options.push(("overwrite_existing", "/mnt/old"));
        }
        let job = of(&options);
        assert_eq!((job.sync, job.limits.io_count), (SyncMode::Sync, Some(15_625)), "{rw}");
        assert!(matches!(job.pattern.order, Order::Random { each_block_once: false, .. }), "{rw}");
    }
    // Seed 004: a sparse file, drained io_uring with a ring of 1,024.
    let job = of(&[
        ("rw", "write"),
        ("bs", "32k"),
        ("size", "5g"),
        ("fallocate", "truncate"),
        ("ioengine", "io_uring"),
        ("iodepth", "1024"),
        ("drain", "true"),
        ("zero_buffers", "true"),
    ]);
    assert_eq!((job.files[0].prepare, job.queue.depth, job.uring.drain), (Prepare::CreateSparse, 1024, true));
}

// ---- files ------------------------------------------------------------------------------------

#[test]
fn a_job_without_filename_makes_a_file_of_its_own_and_removes_it() {
    let job = plan_one(&[("rw", "randread"), ("size", "4m")]).unwrap();
    assert_eq!(
        job.files,
        [FilePlan {
            path: "trueio-a-0.dat".into(),
            prepare: Prepare::CreateFilled,
            remove_after: true,
            offset_bytes: 0,
            size_bytes: 4 << 20,
            extends_from: None,
        }]
    );
}

#[test]
fn what_a_new_file_holds_depends_on_what_is_done_with_it() {
    for (options, prepare) in [
        (&[("rw", "read")][..], Prepare::CreateFilled),
        (&[("rw", "randrw")], Prepare::CreateFilled),
        (&[("rw", "trim")], Prepare::CreateFilled),
        (&[("rw", "write")], Prepare::CreateAllocated),
        (&[("rw", "randwrite"), ("overwrite", "1")], Prepare::CreateFilled),
        (&[("rw", "write"), ("fallocate", "none")], Prepare::CreateEmpty),
        (&[("rw", "write"), ("fallocate", "truncate")], Prepare::CreateSparse),
        (&[("rw", "write"), ("fallocate", "keep")], Prepare::CreateReserved),
        (&[("rw", "randrw"), ("fallocate", "keep")], Prepare::CreateFilled),
        (&[("rw", "write"), ("fallocate", "keep"), ("overwrite", "1")], Prepare::CreateFilled),
        (&[("rw", "write"), ("ioengine", "null")], Prepare::Nothing),
    ] {
        let mut options = options.to_vec();
        options.push(("size", "1m"));
        assert_eq!(plan_one(&options).unwrap().files[0].prepare, prepare, "{options:?}");
    }
    // What has no length cannot be mapped.
    for word in ["none", "keep"] {
        let mapped = [("rw", "write"), ("size", "1m"), ("ioengine", "mmap"), ("fallocate", word)];
        assert_eq!(rule_name(&mapped), "engine_lacks");
    }
}

#[test]
fn an_existing_file_is_read_as_it_is_and_never_removed() {
    let job = plan_one(&[("rw", "randread"), ("filename", "/mnt/old"), ("unlink", "1")]).unwrap();
    let file = &job.files[0];
    assert_eq!((file.prepare, file.remove_after), (Prepare::UseExisting, false));
    assert_eq!((file.offset_bytes, file.size_bytes), (0, 1 << 20));
}

/// Goal: what is in use stays refused whatever is named, and each mark must be named exactly.
/// Method: described devices; every pair of a device and a list of names.
#[test]
fn a_device_that_is_used_or_carries_what_was_not_named_is_refused() {
    let with = |device: &str, names: &str| {
        let mut options = vec![("rw", "write"), ("filename", device), ("overwrite_existing", device)];
        options.extend((!names.is_empty()).then_some(("overwrite_signature", names)));
        plan_one(&options).map_err(|refusal| refusal.rule.name())
    };
    for (device, names, expected) in [
        ("/dev/vdb", "", None),
        ("/dev/vdb", "ext4", Some("signature_not_there")),
        ("/dev/vdc", "", Some("signature_not_named")),
        ("/dev/vdc", "ext4", Some("signature_not_named")),
        ("/dev/vdc", "xfs", Some("signature_not_named")),
        ("/dev/vdc", "dos, ext4", None),
        ("/dev/vdc", "dos,ext4,xfs", Some("signature_not_there")),
        ("/dev/vdd", "", Some("target_mounted")),
        ("/dev/vdd", "ext4", Some("target_mounted")),
        ("/dev/vde", "", Some("device_not_examined")),
        ("/dev/vdg", "", Some("target_member_of_filesystem")),
        ("/dev/vdf", "", None),
        ("/mnt/old", "", None),
        ("/mnt/old", "ext4", Some("signature_not_there")),
    ] {
        assert_eq!(with(device, names).err(), expected, "{device} {names}");
    }
    // Two devices: a name that only one of them carries is there.
    let both = "/dev/vdb:/dev/vdc";
    assert_eq!(with(both, "dos,ext4").err(), None);
    assert_eq!(with(both, "dos").err(), Some("signature_not_named"));
}

/// A closure knows no more than what exists, so it is no permission.
#[test]
fn a_device_of_which_nobody_said_who_uses_it_is_not_written() {
    let write = spec("a", &[("rw", "write"), ("filename", "/dev/vdb"), ("overwrite_existing", "/dev/vdb")]);
    let refusal = plan(&[write], &look, &machine()).expect_err("nobody looked");
    assert_eq!(refusal.rule.name(), "device_not_examined");
    let read = spec("a", &[("rw", "read"), ("filename", "/dev/vdd")]);
    assert!(plan(&[read], &look, &machine()).is_ok(), "reading needs no permission");
}

#[test]
fn what_could_not_be_seen_of_a_devices_users_stands_in_the_plan() {
    let write = spec("a", &[("rw", "write"), ("filename", "/dev/vdf"), ("overwrite_existing", "/dev/vdf")]);
    let plan = plan(&[write], &Described, &machine()).expect("a plan");
    assert_eq!(plan.notes, ["job `a`: who uses `/dev/vdf` could not be seen altogether: mounts of 3 processes"]);
    let read = spec("a", &[("rw", "read"), ("filename", "/dev/vdb"), ("overwrite_signature", "ext4")]);
    let notes = trueio_job::plan(&[read], &Described, &machine()).expect("a plan").notes;
    assert!(notes.iter().any(|note| note.contains("`overwrite_signature = ext4`") && note.contains("no effect")));
}

#[test]
fn a_directory_that_holds_devices_is_no_place_for_files_whatever_it_is_made_of() {
    let on_tmpfs = |path: &str| match look(path) {
        Target::Present(mut facts) if path == "/dev" => {
            facts.filesystem.as_mut().expect("a filesystem").kind = "tmpfs".into();
            Target::Present(facts)
        }
        other => other,
    };
    let slip = spec("a", &[("rw", "write"), ("size", "1m"), ("filename", "/dev/sdzz")]);
    let refusal = plan(&[slip], &on_tmpfs, &machine()).expect_err("refused");
    assert_eq!(refusal.rule.name(), "cannot_create_here");
}

#[test]
fn writing_or_trimming_what_exists_is_refused_unless_it_is_named_exactly() {
    for (rw, path) in [("write", "/mnt/old"), ("randrw", "/mnt/old"), ("trim", "/mnt/old"), ("randwrite", "/dev/vdb")] {
        let options = [("rw", rw), ("filename", path)];
        assert_eq!(rule_name(&options), "existing_target_not_named", "{rw} {path}");
        assert!(plan_one(&[options[0], options[1], ("overwrite_existing", path)]).is_ok(), "{rw} {path}");
    }
    let near = [("rw", "write"), ("filename", "/mnt/old"), ("overwrite_existing", "/mnt//old")];
    assert_eq!(rule_name(&near), "named_for_overwrite_not_used");
    // Permission for one of two files is no permission for the other.
    let one_of_two = [("rw", "write"), ("filename", "/mnt/old:/mnt/old2"), ("overwrite_existing", "/mnt/old")];
    assert_eq!(rule_name(&one_of_two), "existing_target_not_named");
}

#[test]
fn permission_to_destroy_what_does_not_exist_is_a_mistake_and_refused() {
    let options = [("rw", "write"), ("size", "1m"), ("filename", "/mnt/odl"), ("overwrite_existing", "/mnt/odl")];
    assert_eq!(rule_name(&options), "named_for_overwrite_missing");
}

#[test]
fn a_generated_name_that_is_taken_is_refused_even_for_reading() {
    let taken = |path: &str| match path {
        "trueio-a-0.dat" => Target::Present(Box::new(facts(path, TargetKind::File, Some(1 << 30)))),
        path => look(path),
    };
    for rw in ["read", "write"] {
        let refusal = plan(&[spec("a", &[("rw", rw), ("size", "1m")])], &taken, &machine()).unwrap_err();
        assert_eq!(refusal.rule.name(), "generated_name_taken");
    }
}

#[test]
fn a_new_file_needs_a_size_a_directory_and_room() {
    assert_eq!(rule_name(&[("rw", "read")]), "size_missing");
    assert_eq!(rule_name(&[("size", "50%")]), "percent_of_nothing");
    assert_eq!(rule_name(&[("size", "1m"), ("directory", "/nowhere")]), "directory_missing");
    assert_eq!(rule_name(&[("size", "1m"), ("directory", "/mnt/old")]), "wrong_kind_of_target");
    assert_eq!(rule_name(&[("size", "1m"), ("directory", "/cdrom")]), "cannot_create_here");
    assert_eq!(rule_name(&[("size", "1m"), ("filename", "/secret")]), "target_unreadable");
    assert_eq!(
        refused(&[("size", "11g")]),
        Rule::SizeBeyondFreeSpace { mount_point: "/mnt".into(), needed_bytes: 11 << 30, available_bytes: 10 << 30 }
    );
}

/// Goal: of fio's jobs alone, directories in the names of new files are made, each behind the one that it is in, where files
/// may be made, and not the one that `directory` says.
#[test]
fn directories_in_names_are_made_for_fios_jobs_where_files_may_be() {
    let planned = |options: &[(&str, &str)]| {
        let fio = FioJob { name: "a/b".into(), clones: 1, number: 1, ..FioJob::default() };
        let spec = JobSpec { fio: Some(Box::new(fio)), ..spec("a", options) };
        plan(&[spec], &Described, &machine())
    };
    let made = |options: &[(&str, &str)]| planned(options).expect("it is planned").jobs.remove(0).directories;
    let of_file = |filename: &str| made(&[("size", "1m"), ("filename", filename)]);
    assert_eq!(of_file("new"), [""; 0]);
    assert_eq!(of_file("/mnt/new"), [""; 0]);
    assert_eq!(of_file("/mnt/a//b/./new"), ["/mnt/a", "/mnt/a/b"]);
    assert_eq!(of_file("b/new:a/c/new:a/new"), ["a", "a/c", "b"]);
    assert_eq!(made(&[("size", "1m"), ("directory", "/mnt"), ("filename", "a/new")]), ["/mnt/a"]);
    let rule = |options: &[(&str, &str)]| planned(options).expect_err("it is refused").rule.name();
    for (filename, name) in [
        ("/dev/typo/new", "cannot_create_here"),
        ("/dev/typo/again/new", "cannot_create_here"),
        ("/cdrom/a/new", "cannot_create_here"),
        ("a/../new", "cannot_create_here"),
        ("a/new/", "cannot_create_here"),
        ("a:a/new", "cannot_create_here"),
        ("/dev/vdb/a", "wrong_kind_of_target"),
        ("/mnt/old/a/new", "wrong_kind_of_target"),
        ("/secret/a/new", "target_unreadable"),
        // In this world the root is nothing.
        ("/a/new", "directory_missing"),
    ] {
        assert_eq!(rule(&[("size", "1m"), ("filename", filename)]), name, "{filename}");
    }
    assert_eq!(rule(&[("size", "1m"), ("directory", "/mnt/a"), ("filename", "b/new")]), "directory_missing");
    assert_eq!(rule_name(&[("size", "1m"), ("filename", "/mnt/a/new")]), "directory_missing");
}

#[test]
fn room_is_counted_over_all_files_of_all_jobs_and_a_shared_file_once() {
    let six = [("size", "6g")];
    let refusal = plan(&[spec("a", &six), spec("b", &six)], &Described, &machine()).unwrap_err();
    assert_eq!(refusal.rule.name(), "size_beyond_free_space");
    let shared = [("size", "6g"), ("filename", "/mnt/new")];
    assert!(plan(&[spec("a", &shared), spec("b", &shared)], &Described, &machine()).is_ok());
}

/// fio makes a regular file in memory of a mistyped device and measures that (rc 0).
#[test]
fn a_mistyped_device_does_not_become_a_file_in_dev() {
    let rule = refused(&[("rw", "write"), ("size", "4k"), ("filename", "/dev/loop1p1")]);
    assert!(matches!(&rule, Rule::CannotCreateHere { reason, .. } if reason.contains("mistyped")), "{rule}");
}

#[test]
fn an_existing_file_is_never_used_beyond_its_end() {
    let old = ("filename", "/mnt/old");
    assert_eq!(rule_name(&[old, ("size", "2m")]), "size_beyond_target");
    assert_eq!(rule_name(&[old, ("size", "1048577")]), "size_beyond_target");
    assert!(plan_one(&[old, ("size", "1048576")]).is_ok());
    assert_eq!(rule_name(&[old, ("size", "1m"), ("offset", "4k")]), "size_beyond_target");
    assert_eq!(rule_name(&[old, ("offset", "1m")]), "size_beyond_target");
    assert_eq!(
        rule_name(&[old, ("offset", "4611686018427387904"), ("size", "4611686018427387904")]),
        "size_beyond_target"
    );
    assert_eq!(rule_name(&[("filename", "/mnt/empty")]), "block_beyond_size");
    let half = plan_one(&[old, ("size", "50%"), ("offset", "50%")]).unwrap();
    assert_eq!((half.files[0].offset_bytes, half.files[0].size_bytes), (512 << 10, 512 << 10));
}

#[test]
fn a_target_whose_size_nobody_says_needs_one() {
    let sizeless = |path: &str| match path {
        "/dev/vdb" => Target::Present(Box::new(facts(path, TargetKind::BlockDevice, None))),
        other => look(other),
    };
    let job = |options: &[(&str, &str)]| {
        let all = [&[("rw", "read"), ("filename", "/dev/vdb")], options].concat();
        plan(&[spec("a", &all)], &sizeless, &machine()).map_err(|refusal| refusal.rule.name())
    };
    assert_eq!(job(&[]).err(), Some("size_unknown"));
    assert_eq!(job(&[("size", "50%")]).err(), Some("size_unknown"));
    assert_eq!(job(&[("size", "1m"), ("offset", "0")]).err(), None);
}

#[test]
fn a_directory_or_character_device_is_no_target() {
    assert_eq!(rule_name(&[("filename", "/mnt")]), "wrong_kind_of_target");
    assert_eq!(rule_name(&[("filename", "/dev/null"), ("size", "1m")]), "wrong_kind_of_target");
}

/// As much as fio 3.33 transfers: bytes of a loop, loops, and I/Os of all of them.
#[test]
fn loops_are_rounded_up_together_and_each_goes_over_files_that_have_an_end() {
    let of = |more: &[(&'static str, &'static str)]| {
        let limits = plan_one(&[&[("rw", "read"), ("ioengine", "null"), ("size", "1000000")][..], more].concat())
            .unwrap()
            .limits;
        (limits.io_bytes, limits.loops, limits.io_count)
    };
    let whole = 244 * 4096;
    assert_eq!(of(&[("loops", "3")]), (whole, 3, None));
    assert_eq!(of(&[("loops", "3"), ("number_ios", "10")]), (whole, 3, Some(30)));
    let again = ("norandommap", "true");
    assert_eq!(of(&[("rw", "randread"), again]), (245 * 4096, 1, None));
    assert_eq!(of(&[("rw", "randread"), again, ("loops", "3")]), (1_000_000, 3, None));
    assert_eq!(of(&[("io_size", "500k"), ("loops", "3")]), (512_000, 3, None));
    // What is more than a pass: whole passes, at least as many as loops; of one loop to the last I/O, if that is a whole one.
    assert_eq!(of(&[("io_size", "3m"), ("loops", "2")]), (whole, 4, None));
    assert_eq!(of(&[("io_size", "3m"), ("loops", "9")]), (whole, 9, None));
    assert_eq!(of(&[("io_size", "2500000")]), (611 * 4096, 1, None));
    assert_eq!(of(&[("io_size", "2000000")]), (2 * whole, 1, None));
    assert_eq!(of(&[("io_size", "1000000")]), (whole, 1, None));
    assert_eq!(of(&[("io_size", "1003520")]), (245 * 4096, 1, None));
    // Skips: to where the next block would end behind the file, or without an end.
    assert_eq!(of(&[("bs", "8k"), ("sequential_skip", "8192")]), (61 * 8192, 1, None));
    assert_eq!(of(&[("bs", "8k"), ("sequential_skip", "-8192")]), (123 * 8192, 1, None));
    // Trims come with the writes, each block once or again.
    assert_eq!(of(&[("rw", "randtrimwrite"), ("bs", "48k")]), (20 * 49152, 1, None));
    assert_eq!(of(&[("rw", "randtrimwrite"), ("bs", "48k"), again]), (21 * 49152, 1, None));
    // Aligned to what it is aligned to anyway.
    assert_eq!(of(&[("rw", "randread"), ("blockalign", "4k")]), (whole, 1, None));
    assert_eq!(of(&[("rw", "randread"), ("blockalign", "512")]), (245 * 4096, 1, None));
}

/// As many bytes as fio 3.33 uses; where it ends the job at the first I/O behind the region, without a word, ours is refused.
#[test]
fn zones_of_bytes_must_lie_within_the_region() {
    let zones =
        |text: &'static str| [("rw", "randread"), ("size", "4m"), ("nrfiles", "2"), ("random_distribution", text)];
    let job = plan_one(&zones("zoned_abs:90/1m:10/1m")).unwrap();
    assert_eq!(
        job.pattern.order,
        Order::Random {
            distribution: Distribution::ZonedBytes { zones: vec![(90.0, 1 << 20), (10.0, 1 << 20)] },
            each_block_once: false
        }
    );
    let beyond = refused(&zones("zoned_abs:90/1m:10/1028k"));
    assert_eq!(
        beyond,
        Rule::SharesBeyondSize { path: "trueio-a-0.dat".into(), zones_bytes: (2 << 20) + 4096, region_bytes: 2 << 20 }
    );
    assert_eq!(rule_name(&zones("zoned_abs:100/9223372036854775807")), "shares_beyond_size");
    // In order nothing is drawn.
    assert!(plan_one(&[("size", "1m"), ("rw", "read"), ("random_distribution", "zoned_abs:100/8m")]).is_ok());
    for text in ["zoned:50/50:50/50", "zoned_abs:100/1m"] {
        let strided = [zones(text).as_slice(), &[("zonemode", "strided"), ("zonesize", "64k")]].concat();
        assert_eq!(rule_name(&strided), "contradiction");
    }
}

#[test]
fn files_that_are_drawn_by_a_distribution_are_not_limited() {
    let drawn = [("rw", "randwrite"), ("size", "4m"), ("nrfiles", "4"), ("file_service_type", "zipf")];
    let distribution = Distribution::Zipf { theta: 1.1, center: None };
    assert_eq!(plan_one(&drawn).unwrap().file_selection, FileSelection::Drawn { distribution });
    assert_eq!(rule_name(&[drawn.as_slice(), &[("openfiles", "2")]].concat()), "contradiction");
    assert!(plan_one(&[drawn.as_slice(), &[("openfiles", "4")]].concat()).is_ok());
    // What comes again is compared with its last write; what is trimmed must not come again.
    let verified = [drawn.as_slice(), &[("verify", "crc32c")]].concat();
    assert!(plan_one(&verified).is_ok());
    let trims = [verified.as_slice(), &[("trim_percentage", "10"), ("trim_backlog", "8")]].concat();
    assert_eq!(rule_name(&trims), "verify_impossible");
    // One of four files is done after a quarter of the bytes, so its cached pages matter, though the job has one pass.
    let invalidates = |option: &[(&str, &str)]| {
        let cached = [("direct", "off"), ("invalidate", "each_pass")];
        plan_one(&[drawn.as_slice(), &cached, option].concat()).unwrap().handling.invalidates_each_pass
    };
    assert!(invalidates(&[]) && !invalidates(&[("io_size", "1m")]));
}

#[test]
fn size_is_divided_over_the_files_and_a_block_must_fit_into_each() {
    let job = plan_one(&[("size", "1m"), ("nrfiles", "4")]).unwrap();
    assert!(job.files.len() == 4 && job.files.iter().all(|file| file.size_bytes == 256 << 10));
    assert_eq!(job.limits.io_bytes, 1 << 20);
    assert_eq!(
        refused(&[("size", "1m"), ("nrfiles", "4"), ("bs", "512k")]),
        Rule::BlockBeyondSize { path: "trueio-a-0.dat".into(), block_bytes: 512 << 10, region_bytes: 256 << 10 }
    );
    // Only the operations that the job performs count.
    assert!(plan_one(&[("size", "64k"), ("bs", "4k,1m"), ("rw", "read")]).is_ok());
}

#[test]
fn filesize_is_each_files_and_size_then_only_says_how_much_is_transferred_at_most() {
    let bytes = |size, more: &[(&'static str, &'static str)]| {
        let job = plan_one(&[&[("filesize", "1m"), ("nrfiles", "2"), ("size", size)][..], more].concat()).unwrap();
        assert_eq!(job.files[0].size_bytes, 1 << 20);
        (job.limits.io_bytes, job.limits.loops)
    };
    assert_eq!(bytes("64m", &[]), (2 << 20, 1), "a pass over the files ends the job");
    assert_eq!(bytes("64m", &[("loops", "3")]), (2 << 20, 3));
    assert_eq!(bytes("64m", &[("io_size", "64m")]), (64 << 20, 1));
    assert_eq!(bytes("99k", &[]), (100 << 10, 1), "by whole I/Os");
}

/// Goal: no block comes twice in a job of one pass, and where blocks have no end as much is transferred as files hold.
#[test]
fn a_pass_is_each_whole_block_of_the_files() {
    let bytes = |more: &[(&'static str, &'static str)]| {
        let job = plan_one(&[&[("size", "10m"), ("nrfiles", "100"), ("ioengine", "null")][..], more].concat()).unwrap();
        job.limits.io_bytes
    };
    for order in ["read", "write", "randread", "randrw"] {
        assert_eq!(bytes(&[("rw", order)]), 2500 * 4096, "{order}");
    }
    assert_eq!(bytes(&[("rw", "rw")]), 2560 * 4096);
    assert_eq!(bytes(&[("rw", "randread"), ("norandommap", "1")]), 2560 * 4096);
    assert_eq!(bytes(&[("bsrange", "4k-64k")]), 2500 * 4096);
    assert_eq!(bytes(&[("io_size", "10m")]), 10 << 20);
    // Skips end a file only where a block does.
    let skipping =
        |size| plan_one(&[("size", size), ("sequential_skip", "8192"), ("ioengine", "null")]).unwrap().limits.io_bytes;
    assert_eq!((skipping("1m"), skipping("1020k")), (86 * 4096, 255 * 4096));
}

#[test]
fn a_directory_stands_before_relative_names_and_contradicts_absolute_ones() {
    let job = plan_one(&[("size", "1m"), ("directory", "/mnt/"), ("filename", "new")]).unwrap();
    assert_eq!(job.files[0].path, "/mnt/new");
    assert_eq!(rule_name(&[("size", "1m"), ("directory", "/mnt"), ("filename", "/mnt/old")]), "contradiction");
}

#[test]
fn two_spellings_of_one_path_are_one_file() {
    let options = |path| [("size", "1m"), ("filename", path)];
    let plan = plan(&[spec("a", &options("new")), spec("b", &options("./new"))], &Described, &machine()).unwrap();
    assert_eq!(plan.jobs[1].files[0].path, "new");
    assert_eq!(rule_name(&options("new:./new")), "bad_value");
}

#[test]
fn a_file_that_an_earlier_job_creates_can_be_read_by_a_later_one_without_saying_its_size_again() {
    let write = [("rw", "write"), ("size", "1m"), ("filename", "/mnt/new")];
    let read = [("rw", "randread"), ("filename", "/mnt/new"), ("stonewall", "1"), ("unlink", "0")];
    let plan = plan(&[spec("w", &write), spec("r", &read)], &Described, &machine()).unwrap();
    assert_eq!(plan.jobs[1].files[0].size_bytes, 1 << 20);
    // Both say the same about the one file: filled, because one reads; kept, because one keeps it.
    for job in &plan.jobs {
        assert_eq!((job.files[0].prepare, job.files[0].remove_after), (Prepare::CreateFilled, false), "{}", job.name);
    }
    assert!(plan.notes.iter().any(|note| note.contains("`/mnt/new` is prepared for this job")), "{:?}", plan.notes);
}

#[test]
fn a_path_is_looked_at_once_so_that_a_plan_rests_on_one_answer() {
    let looks = std::cell::RefCell::new(BTreeMap::<String, u32>::new());
    let counting = |path: &str| {
        *looks.borrow_mut().entry(path.to_owned()).or_default() += 1;
        look(path)
    };
    let options = [("filename", "/mnt/old:/mnt/new"), ("size", "64k")];
    plan(&[spec("a", &options), spec("b", &options)], &counting, &machine()).unwrap();
    assert!(looks.borrow().values().all(|count| *count == 1), "{:?}", looks.borrow());
}

// ---- engine and queue -------------------------------------------------------------------------

fn plan_with(engines: Vec<EngineState>, options: &[(&str, &str)]) -> Result<JobPlan, Refusal> {
    let machine = Machine { engines: EngineAvailability { engines }, ..machine() };
    plan(&[spec("a", options)], &Described, &machine).map(|mut plan| plan.jobs.remove(0))
}

#[test]
fn the_engine_is_io_uring_where_it_works_and_the_fallback_fits_the_depth() {
    let size = ("size", "1m");
    let no_uring = || vec![EngineState::fails(EngineKind::IoUring, "kernel.io_uring_disabled is 2")];
    assert_eq!(plan_one(&[size]).unwrap().engine, EngineKind::IoUring);
    assert_eq!(plan_with(no_uring(), &[size]).unwrap().engine, EngineKind::Psync);
    assert_eq!(plan_with(no_uring(), &[size, ("rwf_dsync", "1")]).unwrap().engine, EngineKind::Pvsync2);
    let deep = plan_with(no_uring(), &[size, ("iodepth", "8")]).unwrap();
    assert_eq!((deep.engine, deep.queue.depth), (EngineKind::Libaio, 8));
    let origin = &deep.values.iter().find(|value| value.name == "ioengine").unwrap().origin;
    assert_eq!(origin.to_string(), "io_uring does not work here (kernel.io_uring_disabled is 2); libaio works here");
    let neither =
        vec![EngineState::fails(EngineKind::IoUring, "ENOSYS"), EngineState::fails(EngineKind::Libaio, "ENOSYS")];
    let refusal = plan_with(neither, &[size, ("iodepth", "8")]).unwrap_err();
    assert_eq!(refusal.rule.name(), "engine_unavailable");
    let refusal = plan_with(no_uring(), &[size, ("ioengine", "io_uring")]).unwrap_err();
    assert_eq!(refusal.rule.name(), "engine_unavailable");
}

#[test]
fn a_queue_on_an_engine_that_blocks_is_refused_and_never_lowered() {
    for engine in ["psync", "sync", "vsync", "pvsync", "pvsync2", "mmap", "splice"] {
        let rule = refused(&[("size", "1m"), ("ioengine", engine), ("iodepth", "2")]);
        assert!(matches!(rule, Rule::DepthOnBlockingEngine { depth: 2, .. }), "{engine}: {rule}");
    }
    for engine in ["libaio", "io_uring", "null", "simulated"] {
        let job = plan_one(&[("size", "1m"), ("ioengine", engine), ("iodepth", "2")]).unwrap();
        assert_eq!(job.queue.depth, 2, "{engine}");
    }
}

#[test]
fn flags_and_ring_options_are_refused_on_engines_that_do_not_have_them() {
    for option in ["rwf_dsync", "uncached", "atomic", "nowait"] {
        for engine in ["psync", "sync", "vsync", "pvsync", "mmap", "splice", "posixaio", "null", "simulated"] {
            let options = [("size", "1m"), ("ioengine", engine), (option, "1")];
            assert_eq!(rule_name(&options), "engine_lacks", "{option} on {engine}");
        }
        assert!(plan_one(&[("size", "1m"), ("ioengine", "pvsync2"), (option, "1")]).is_ok(), "{option}");
    }
    for option in ["fixedbufs", "registerfiles", "sqthread_poll", "drain", "force_async"] {
        assert_eq!(rule_name(&[("size", "1m"), ("ioengine", "libaio"), (option, "1")]), "engine_lacks", "{option}");
    }
    assert_eq!(rule_name(&[("size", "1m"), ("ioengine", "libaio"), ("nonvectored", "0")]), "engine_lacks");
    let size = ("size", "1m");
    assert_eq!(
        refused(&[size, ("sqthread_poll", "1"), ("sqthread_poll_cpu", "9")]),
        Rule::ProcessorNotThere { cpu: 9 }
    );
    assert_eq!(plan_one(&[size, ("sqthread_poll_cpu", "1")]).unwrap().uring.sqpoll_cpu, None, "no thread polls");
    for engine in ["libaio", "psync", "sync", "vsync", "pvsync", "mmap"] {
        assert_eq!(rule_name(&[("size", "1m"), ("ioengine", engine), ("hipri", "1")]), "engine_lacks", "{engine}");
    }
    let sync = plan_one(&[("size", "1m"), ("ioengine", "sync")]).unwrap();
    assert!(!sync.uring.registered_buffers && !sync.uring.registered_files);
    let polled = plan_one(&[("size", "1m"), ("ioengine", "pvsync2"), ("hipri", "1")]).unwrap();
    assert_eq!((polled.write_flags.hipri, polled.uring.iopoll), (true, false));
}

#[test]
fn shares_with_priorities_are_of_what_the_job_does_and_need_an_engine_that_can() {
    let shares = ("cmdprio_bssplit", "4k/10/2/1:*/5/3/0,8k/1/2/2/9");
    let plan = |options: &[(&str, &str)]| plan_one(&[&[("size", "1m"), shares], options].concat()).unwrap();
    let texts = |job: &JobPlan| -> Vec<String> {
        let text = |s: &PriorityShare| format!("{} {:?} {} {}", s.op, s.length_bytes, s.percent, s.priority);
        job.priorities.iter().map(text).collect()
    };
    let (reads, writes) = (["read Some(4096) 10 2/1", "read None 5 3/0"], "write Some(8192) 1 2/2/9");
    assert_eq!(texts(&plan(&[("rw", "randread")])), reads);
    assert_eq!(texts(&plan(&[("rw", "write"), ("bs", "8k")])), [writes]);
    assert_eq!(texts(&plan(&[("rw", "randrw"), ("ioengine", "libaio")])), [reads[0], reads[1], writes]);
    assert!(plan(&[("rw", "trim")]).priorities.is_empty());
    assert!(plan_one(&[("size", "1m")]).unwrap().priorities.is_empty());
    for engine in ["psync", "pvsync2", "mmap", "null", "simulated", "posixaio"] {
        assert_eq!(rule_name(&[("size", "1m"), ("ioengine", engine), shares]), "engine_lacks", "{engine}");
    }
}

#[test]
fn nodes_are_those_of_the_machine() {
    let size = ("size", "1m");
    for (nodes, cpus) in [("0", &[0, 1][..]), ("1", &[2, 3]), ("all", &[0, 1, 2, 3]), ("0-1", &[0, 1, 2, 3])] {
        let job = plan_one(&[size, ("numa_cpu_nodes", nodes)]).unwrap();
        assert_eq!((&job.cpus[..], job.scheduling.shares_cpus), (cpus, true), "{nodes}");
    }
    let policy = |text| plan_one(&[size, ("numa_mem_policy", text)]).unwrap().memory_policy.expect("one");
    assert_eq!(policy("interleave:all"), MemoryPolicy { mode: MemoryMode::Interleave, nodes: vec![0, 1] });
    assert_eq!(policy("prefer:1"), MemoryPolicy { mode: MemoryMode::Prefer, nodes: vec![1] });
    assert_eq!(policy("local"), MemoryPolicy { mode: MemoryMode::Local, nodes: vec![] });
    for (option, text, node) in [("numa_cpu_nodes", "0,2", 2), ("numa_mem_policy", "bind:0,7", 7)] {
        let Rule::NodeNotThere { option: found, node: absent, there } = refused(&[size, (option, text)]) else {
            panic!("{text}")
        };
        assert_eq!((found, absent, there), (option, node, vec![0, 1]));
    }
    assert_eq!(rule_name(&[size, ("numa_cpu_nodes", "0"), ("cpus_allowed", "1")]), "contradiction");
}

/// Goal: a job that acts as another user is refused before anything is touched if it may not, or if that user may not
/// use what the job uses.
#[test]
fn who_acts_as_another_user_may_and_that_user_may_use_the_files() {
    let size = ("size", "1m");
    let user_of = |options: &[(&str, &str)]| plan_one(&[&[size], options].concat()).unwrap().user;
    assert_eq!(user_of(&[("uid", "1000")]), Some(UserPlan { uid: 1000, gid: 0 }), "the group stays");
    assert_eq!(user_of(&[("gid", "7")]), Some(UserPlan { uid: 0, gid: 7 }));
    assert_eq!(user_of(&[("uid", "1000"), ("gid", "7")]), Some(UserPlan { uid: 1000, gid: 7 }));
    let planned = plan(&[spec("job", &[size, ("uid", "0")])], &Described, &machine()).unwrap();
    assert_eq!(planned.jobs[0].user, None);
    assert!(planned.notes.iter().any(|note| note.contains("`uid = 0`") && note.contains("no effect")));
    for option in ["uid", "gid"] {
        let Rule::UserNotPermitted { said, reason } = refused(&[size, (option, "666")]) else { panic!("{option}") };
        assert_eq!((said, reason), (format!("`{option} = 666` (preset test)"), "Operation not permitted".to_owned()));
        assert_eq!(rule_name(&[size, (option, "4294967295")]), "bad_value", "it means: no change");
    }
    let write = [("filename", "/mnt/old"), ("rw", "write"), ("overwrite_existing", "/mnt/old")];
    let may_not = |uid: &str, options: &[(&str, &str)]| match refused(&[options, &[("uid", uid)]].concat()) {
        Rule::UserMayNot { user, path, verb, .. } => (user.uid.to_string() == uid).then_some((path, verb)),
        rule => panic!("{rule}"),
    };
    let told = |path: &str, verb| Some((path.to_owned(), verb));
    assert_eq!(may_not("1000", &write), told("/mnt/old", "write"));
    assert!(plan_one(&[("filename", "/mnt/old"), ("uid", "1000")]).is_ok(), "it reads");
    assert!(plan_one(&[&write[..], &[("uid", "1002")]].concat()).is_ok());
    assert_eq!(may_not("1001", &[("filename", "/mnt/old")]), told("/mnt/old", "read"));
    assert_eq!(may_not("1001", &[size]), told(".", "make files in"));
    let names = [("ioengine", "filecreate"), ("nrfiles", "3"), ("rw", "write")];
    assert_eq!(may_not("1001", &names), told(".", "make files in"));
    assert_eq!(may_not("1001", &[("read_iolog", "read.log")]), told("/mnt/old", "read"));
    let state = [size, ("rw", "write"), ("verify", "crc32c"), ("verify_state_save", "true"), ("directory", "/tmp")];
    assert_eq!(may_not("1001", &state), told(".", "make files in"));
    // A file is made by the first job that uses it, for its user alone.
    let shared = |uid: &str| {
        let shared = [size, ("filename", "/tmp/new"), ("rw", "write")];
        let second = spec("b", &[&shared[..], &[("uid", uid), ("stonewall", "true")]].concat());
        plan(&[spec("a", &[&shared[..], &[("uid", "1000")]].concat()), second], &Described, &machine())
    };
    assert!(shared("1000").is_ok());
    let refusal = shared("1002").expect_err("it is user 1000's");
    assert_eq!(refusal.job.as_deref(), Some("b"));
    assert!(refusal.rule.to_string().contains("job `a` makes it"), "{}", refusal.rule);
    assert_eq!(refusal.rule.name(), "user_may_not");
}

#[test]
fn real_time_is_for_the_privileged() {
    let plan_as = |may_be_real_time, options: &[(&str, &str)]| {
        let machine = Machine { may_be_real_time, ..machine() };
        plan(&[spec("job", &[&[("size", "1m")], options].concat())], &Described, &machine).map(drop)
    };
    for option in [("prioclass", "1"), ("cmdprio_bssplit", "4k/5/2/0:8k/1/1/7"), ("cmdprio_bssplit", "*/5")] {
        let rule = plan_as(Some(false), &[option]).expect_err("it is refused").rule;
        assert_eq!(*rule, Rule::PriorityNotPermitted { option: option.0 });
        for may in [None, Some(true)] {
            assert!(plan_as(may, &[option]).is_ok(), "{option:?}");
        }
    }
    for option in [("prioclass", "2"), ("prioclass", "3"), ("cmdprio_bssplit", "*/5/2/0:8k/1/3/7")] {
        assert!(plan_as(Some(false), &[option]).is_ok(), "{option:?}");
    }
}

#[test]
fn batches_fit_into_the_queue() {
    let size = ("size", "1m");
    assert_eq!(plan_one(&[size, ("iodepth", "8")]).unwrap().queue.submit_batch, None);
    assert_eq!(plan_one(&[size, ("iodepth", "8"), ("iodepth_batch", "8")]).unwrap().queue.submit_batch, Some(8));
    assert_eq!(rule_name(&[size, ("iodepth", "8"), ("iodepth_batch", "9")]), "contradiction");
    assert_eq!(rule_name(&[size, ("iodepth_batch_complete_min", "2")]), "contradiction");
    let least_above_most =
        [size, ("iodepth", "8"), ("iodepth_batch_complete_min", "4"), ("iodepth_batch_complete_max", "2")];
    assert_eq!(rule_name(&least_above_most), "contradiction");
    let low = |low| plan_one(&[size, ("iodepth", "8"), ("iodepth_low", low)]).unwrap().queue.low;
    assert_eq!([low("1"), low("6"), low("7"), low("8")], [1, 6, 0, 0], "one completion makes room below the depth");
    assert_eq!(rule_name(&[size, ("iodepth", "8"), ("iodepth_low", "9")]), "contradiction");
}

#[test]
fn a_polled_submission_queue_needs_two_processors_a_worker() {
    let polled = |workers| [("size", "1m"), ("sqthread_poll", "1"), ("numjobs", workers)];
    assert!(plan_one(&polled("2")).is_ok());
    assert_eq!(refused(&polled("3")), Rule::TooFewProcessors { needed: 6, there: 4 });
    let jobs = [spec("a", &polled("2")), spec("b", &polled("1"))];
    assert!(plan(&jobs, &Described, &machine()).is_err(), "two jobs at the same time share the processors");
    let mut jobs = jobs;
    jobs[1].set("stonewall", "true", Origin::Default);
    assert!(plan(&jobs, &Described, &machine()).is_ok(), "one after the other they do not");
}

#[test]
fn workers_are_pinned_only_to_processors_that_are_there() {
    assert_eq!(plan_one(&[("size", "1m"), ("cpus_allowed", "1,3")]).unwrap().cpus, [1, 3]);
    assert_eq!(refused(&[("size", "1m"), ("cpus_allowed", "1,7")]), Rule::ProcessorNotThere { cpu: 7 });
}

#[test]
fn buffers_beyond_the_machines_memory_are_refused() {
    let options = [("size", "1g"), ("bs", "1g"), ("iodepth", "16")];
    let expected = Rule::BuffersBeyondMemory { needed_bytes: 16 << 30, memory_bytes: 8 << 30 };
    assert_eq!(refused(&options), expected);
}

// ---- page cache -------------------------------------------------------------------------------

#[test]
fn required_direct_io_is_refused_where_the_filesystem_would_buffer() {
    let tmpfs = [("size", "1m"), ("directory", "/tmp")];
    let required = [tmpfs[0], tmpfs[1], ("direct", "require")];
    assert!(matches!(refused(&required), Rule::DirectImpossible { .. }));
    assert_eq!(plan_one(&tmpfs).unwrap().direct, DirectPolicy::Prefer);
}

#[test]
fn a_block_that_direct_io_cannot_transfer_is_refused_if_required_and_buffered_aloud_if_preferred() {
    let odd = [("size", "1m"), ("bs", "1000")];
    let rule = refused(&[odd[0], odd[1], ("direct", "require")]);
    assert!(matches!(rule, Rule::Misaligned { value_bytes: 1000, alignment_bytes: 512, .. }), "{rule}");
    let plan = plan(&[spec("a", &odd)], &Described, &machine()).unwrap();
    assert_eq!(plan.jobs[0].direct, DirectPolicy::Off);
    assert!(plan.notes[0].contains("a block of 1000 is not a multiple of 512 bytes"), "{:?}", plan.notes);
    assert!(plan_one(&[odd[0], odd[1], ("direct", "off")]).is_ok());
    // One size of a split, or the offset, is enough.
    for (name, value) in [("bssplit", "4k/50:1000/50"), ("bsrange", "1000-4000"), ("offset", "100")] {
        assert_eq!(rule_name(&[("size", "1m"), ("direct", "require"), (name, value)]), "misaligned", "{name}");
    }
}

/// Goal: places that direct I/O cannot begin at are found while planning, in each direction, and what only looks odd is not.
#[test]
fn steps_to_places_that_direct_io_cannot_begin_at_are_refused_or_buffered() {
    let of = |more: &[(&'static str, &'static str)], direct| {
        plan_one(&[&[("size", "1m"), ("bs", "4k"), ("direct", direct)][..], more].concat())
    };
    let strided = |range, skip| {
        [("zonemode", "strided"), ("zonesize", "64k"), ("zonerange", range), ("zoneskip", skip), ("rw", "read")]
    };
    for (what, more) in [
        ("`blockalign` of 100 is", &[("rw", "randread"), ("blockalign", "100")][..]),
        ("`blockalign` of 100 is", &[("rw", "randwrite"), ("blockalign", "512,100")]),
        ("`blockalign` of 100 is", &[("rw", "randrw"), ("blockalign", "512,100")]),
        ("`blockalign` of 100 is", &[("rw", "randrw"), ("blockalign", "100,512")]),
        ("what is skipped of 1000 is", &[("rw", "read"), ("sequential_skip", "1000")]),
        ("what is skipped of 4100 is", &[("rw", "write"), ("sequential_skip", "-4100")]),
        (
            "the region that is gone over from its end of 100000 is",
            &[("rw", "read"), ("sequential_skip", "-4096"), ("size", "100000")],
        ),
        ("a zone, with what is skipped behind it, of 65636 is", &strided("64k", "100")),
        ("a zone of 1000 is", &strided("1000", "24")),
    ] {
        let refusal = of(more, "require").expect_err("it is refused");
        assert!(matches!(*refusal.rule, Rule::Misaligned { alignment_bytes: 512, .. }), "{more:?}: {refusal}");
        assert!(refusal.rule.to_string().starts_with(what), "{what}: {}", refusal.rule);
        assert_eq!(of(more, "prefer").expect("it is buffered").direct, DirectPolicy::Off, "{more:?}");
        assert_eq!(of(more, "off").expect("it is buffered").direct, DirectPolicy::Off, "{more:?}");
    }
    for more in [
        &[("rw", "randread"), ("blockalign", "512")][..],
        &[("rw", "randread"), ("blockalign", "8k,100")],
        &[("rw", "randwrite"), ("blockalign", "100,8k")],
        &[("rw", "randrw"), ("blockalign", "512,1536")],
        // It has no effect on a job in order, and neither has a skip on a random one.
        &[("rw", "read"), ("blockalign", "100")],
        &[("rw", "randread"), ("sequential_skip", "100")],
        &[("rw", "read"), ("sequential_skip", "-8192")],
        &strided("64k", "512"),
        &strided("65000", "536"),
    ] {
        assert_eq!(of(more, "require").expect("it is planned").direct, DirectPolicy::Require, "{more:?}");
    }
    // A device is trimmed in whole sectors, whatever the page cache does.
    let trims = [("filename", "/dev/vdb"), ("overwrite_existing", "/dev/vdb"), ("rw", "randtrim"), ("direct", "off")];
    assert_eq!(rule_name(&[&trims[..], &[("blockalign", "100")]].concat()), "misaligned");
    assert!(plan_one(&[&trims[..], &[("blockalign", "1k")]].concat()).is_ok());
}

#[test]
fn options_that_need_or_exclude_direct_io_settle_it_or_are_refused() {
    let with = |options: &[(&'static str, &'static str)]| {
        let mut all = vec![("size", "1m")];
        all.extend_from_slice(options);
        all
    };
    assert_eq!(plan_one(&with(&[("hipri", "1")])).unwrap().direct, DirectPolicy::Require);
    assert_eq!(plan_one(&with(&[("atomic", "1")])).unwrap().direct, DirectPolicy::Require);
    assert_eq!(plan_one(&with(&[("uncached", "1")])).unwrap().direct, DirectPolicy::Off);
    assert_eq!(plan_one(&with(&[("ioengine", "mmap")])).unwrap().direct, DirectPolicy::Off);
    assert_eq!(rule_name(&with(&[("hipri", "1"), ("direct", "off")])), "contradiction");
    assert_eq!(rule_name(&with(&[("uncached", "1"), ("direct", "require")])), "contradiction");
    assert_eq!(rule_name(&with(&[("uncached", "1"), ("atomic", "1")])), "contradiction");
    assert_eq!(rule_name(&with(&[("ioengine", "mmap"), ("direct", "require")])), "engine_lacks");
    assert_eq!(rule_name(&with(&[("ioengine", "mmap"), ("rw", "write"), ("sync", "dsync")])), "engine_lacks");
}

fn with_facts(path: &'static str, change: impl Fn(&mut TargetFacts)) -> impl Fn(&str) -> Target {
    move |asked: &str| match look(asked) {
        Target::Present(mut facts) if asked == path => {
            change(&mut facts);
            Target::Present(facts)
        }
        other => other,
    }
}

fn a_disk(can_poll: Option<bool>, atomic_write_max_bytes: Option<u64>) -> DiskFacts {
    let fact = |value| Fact { value, source: "/sys/block/vdb/queue/io_poll".into() };
    let text = || Fact::unknown("not asked");
    DiskFacts {
        name: "vdb".into(),
        device_number: (254, 16),
        model: text(),
        serial: text(),
        firmware: text(),
        wwid: text(),
        transport: text(),
        size_bytes: Fact::unknown("not asked"),
        logical_sector_bytes: Fact::known(512, "queue"),
        physical_sector_bytes: Fact::known(512, "queue"),
        is_rotational: Fact::unknown("not asked"),
        scheduler: text(),
        write_cache: text(),
        has_fua: Fact::unknown("not asked"),
        request_count: Fact::unknown("not asked"),
        max_request_bytes: Fact::unknown("not asked"),
        read_ahead_bytes: Fact::unknown("not asked"),
        counts_io: Fact::unknown("not asked"),
        limits: DiskLimits {
            can_poll: fact(can_poll),
            atomic_write_max_bytes: Fact { value: atomic_write_max_bytes, source: "queue/atomic".into() },
            ..DiskLimits::default()
        },
        usb: None,
    }
}

#[test]
fn atomic_writes_are_refused_where_the_target_says_that_it_cannot() {
    let on = |limits: Option<(u32, u32)>, options: &[(&str, &str)]| {
        let look = with_facts("/mnt", move |facts| {
            let atomic = limits.map(|(min_bytes, max_bytes)| AtomicWriteFacts { min_bytes, max_bytes });
            facts.direct.atomic_write = Fact { value: atomic, source: "statx".into() };
        });
        let all = [&[("rw", "write"), ("atomic", "1"), ("directory", "/mnt"), ("size", "1m")], options].concat();
        plan(&[spec("a", &all)], &look, &machine()).map_err(|refusal| refusal.rule.to_string())
    };
    let said = |limits, options: &[(&str, &str)]| on(limits, options).err().unwrap_or_default();
    assert!(said(Some((0, 0)), &[]).contains("it has none (statx)"));
    let xfs = Some((4096, 65_536));
    assert_eq!(said(xfs, &[]), "");
    assert_eq!(said(xfs, &[("bs", "64k")]), "");
    assert_eq!(said(None, &[("bs", "12k")]), "", "where nobody says, the kernel decides");
    assert!(said(xfs, &[("bs", "512")]).contains("512 is not within 4k to 64k (statx)"));
    assert!(said(xfs, &[("bs", "128k")]).contains("128k is not within 4k to 64k"));
    assert!(said(xfs, &[("bs", "12k")]).contains("12k is not a power of two"));
    assert!(said(xfs, &[("bsrange", "4k-16k")]).contains("several sizes"));
    assert!(
        said(xfs, &[("bs", "8k"), ("offset", "4k")]).contains("the offset of 4k is not a multiple of a block of 8k")
    );
    // A job that only reads has nothing to write atomically.
    assert_eq!(said(Some((0, 0)), &[("rw", "read")]), "");

    let device = |limit: Option<u64>| {
        let look = with_facts("/dev/vdb", move |facts| facts.disks = vec![a_disk(None, limit)]);
        let source = InUseOf(look);
        let options = [("rw", "write"), ("atomic", "1"), ("filename", "/dev/vdb"), ("overwrite_existing", "/dev/vdb")];
        plan(&[spec("a", &options)], &source, &machine()).map_err(|refusal| refusal.rule.name())
    };
    assert_eq!(device(Some(0)).err(), Some("atomic_impossible"));
    assert_eq!(device(None).err(), None);
    assert_eq!(device(Some(4096)).err(), None);
}

/// Facts of one's own, and [`Described`]'s word on who uses what.
struct InUseOf<F>(F);

impl<F: Fn(&str) -> Target> FactsSource for InUseOf<F> {
    fn look(&self, path: &str) -> Target {
        (self.0)(path)
    }

    fn in_use(&self, path: &str) -> Result<InUse, String> {
        Described.in_use(path)
    }
}

#[test]
fn polling_is_refused_where_the_disk_has_nothing_to_poll() {
    let on = |can_poll: Option<bool>, engine: &str| {
        let look = with_facts("/dev/vdb", move |facts| facts.disks = vec![a_disk(can_poll, None)]);
        let options = [("rw", "read"), ("hipri", "1"), ("filename", "/dev/vdb"), ("ioengine", engine)];
        plan(&[spec("a", &options)], &look, &machine()).map_err(|refusal| refusal.rule.name())
    };
    for engine in ["io_uring", "pvsync2"] {
        assert_eq!(on(Some(false), engine).err(), Some("poll_impossible"), "{engine}");
        assert_eq!(on(Some(true), engine).err(), None, "{engine}");
        assert_eq!(on(None, engine).err(), None, "{engine}: where nobody says, the kernel decides");
    }
}

#[test]
fn trims_of_a_device_are_whole_sectors_and_need_an_engine_that_trims() {
    let device = [("rw", "randtrim"), ("filename", "/dev/vdb"), ("overwrite_existing", "/dev/vdb")];
    let with = |more: (&'static str, &'static str)| [device[0], device[1], device[2], more];
    assert!(plan_one(&device).is_ok());
    assert_eq!(rule_name(&with(("bs", "1000"))), "misaligned");
    assert_eq!(rule_name(&with(("hipri", "1"))), "engine_lacks");
    let no_trim = vec![EngineState { can_trim: false, ..EngineState::works(EngineKind::IoUring) }];
    assert_eq!(plan_with(no_trim.clone(), &device).unwrap().engine, EngineKind::Psync, "another engine is chosen");
    let refusal = plan_with(no_trim, &with(("ioengine", "io_uring"))).unwrap_err();
    assert_eq!(refusal.rule.name(), "engine_lacks");
    let fat = |path: &str| {
        let mut facts = facts(path, TargetKind::File, Some(1 << 20));
        facts.filesystem.as_mut().unwrap().kind = "vfat".into();
        Target::Present(Box::new(facts))
    };
    let options = [("rw", "trim"), ("filename", "x"), ("overwrite_existing", "x")];
    let refusal = plan(&[spec("a", &options)], &fat, &machine()).unwrap_err();
    assert_eq!(refusal.rule.name(), "trim_unsupported");
}

/// Goal: trims that come with writes, before each or after it, are under the rules about trims.
#[test]
fn trims_beside_writes_are_trims() {
    let device = ("filename", "/dev/vdb");
    let named = ("overwrite_existing", "/dev/vdb");
    let before: &[(&str, &str)] = &[("rw", "trimwrite")];
    let after: &[(&str, &str)] =
        &[("rw", "write"), ("verify", "crc32c"), ("trim_percentage", "10"), ("trim_backlog", "8")];
    for trims in [before, after] {
        let with = |more: &[(&'static str, &'static str)]| [trims, &[device, named], more].concat();
        assert!(plan_one(&with(&[])).is_ok(), "{trims:?}");
        assert_eq!(rule_name(&with(&[("hipri", "1")])), "engine_lacks", "{trims:?}");
        assert_eq!(rule_name(&with(&[("bs", "1000"), ("direct", "off")])), "misaligned", "{trims:?}");
        let no_trim = vec![EngineState { can_trim: false, ..EngineState::works(EngineKind::IoUring) }];
        assert_eq!(plan_with(no_trim.clone(), &with(&[])).unwrap().engine, EngineKind::Psync, "{trims:?}");
        let refusal = plan_with(no_trim, &with(&[("ioengine", "io_uring")])).unwrap_err();
        assert_eq!(refusal.rule.name(), "engine_lacks", "{trims:?}");
        let told = refused(&[trims, &[device]].concat()).to_string();
        assert!(told.contains("trim"), "{trims:?}: {told}");
        let fat = |path: &str| {
            let mut facts = facts(path, TargetKind::File, Some(1 << 20));
            facts.filesystem.as_mut().unwrap().kind = "vfat".into();
            Target::Present(Box::new(facts))
        };
        let options = [trims, &[("filename", "x"), ("overwrite_existing", "x")]].concat();
        let refusal = plan(&[spec("a", &options)], &fat, &machine()).unwrap_err();
        assert_eq!(refusal.rule.name(), "trim_unsupported", "{trims:?}");
        // The writes beside them are direct where a file can have them so, and are held to it.
        let on_file = |more: &[(&'static str, &'static str)]| {
            [trims, &[("filename", "/mnt/old"), ("overwrite_existing", "/mnt/old"), ("bs", "1000")], more].concat()
        };
        assert_eq!(rule_name(&on_file(&[("direct", "require")])), "misaligned", "{trims:?}");
        assert_eq!(plan_one(&on_file(&[])).unwrap().direct, DirectPolicy::Off, "{trims:?}");
    }
    // What trims its own writes finds its file unwritten, as what only writes does; what trims first does not.
    let new = |trims: &[(&'static str, &'static str)]| plan_one(&[trims, &[("size", "1m")]].concat()).unwrap();
    assert_eq!(new(before).files[0].prepare, Prepare::CreateFilled);
    assert_eq!(new(after).files[0].prepare, Prepare::CreateAllocated);
    // Without anything to verify, or without a write, nothing is trimmed afterwards.
    for more in [&[("rw", "write"), ("trim_percentage", "10")][..], &[&[("verify_only", "1")], &after[..2]].concat()] {
        assert!(plan_one(&[more, &[("hipri", "1"), device, named]].concat()).is_ok(), "{more:?}");
    }
}

/// Goal: a file that exists is made longer only where it is named for that, and what is added is as a new file.
#[test]
fn a_file_that_is_too_short_is_made_longer_only_if_it_is_named_for_that() {
    let on = |path: &'static str, more: &[(&'static str, &'static str)]| {
        plan_one(&[&[("filename", path), ("overwrite_existing", path), ("size", "2m")], more].concat())
    };
    let beyond = |planned: Result<JobPlan, Refusal>| assert_eq!(planned.unwrap_err().rule.name(), "size_beyond_target");
    let write = ("rw", "write");
    for (path, there) in [("/mnt/old", 1 << 20), ("/mnt/empty", 0)] {
        beyond(on(path, &[write]));
        let grown = |more: &[(&'static str, &'static str)]| {
            let job = on(path, &[&[("extend_existing", path)], more].concat()).unwrap();
            assert!(!job.files[0].remove_after);
            (job.files[0].extends_from, job.files[0].prepare)
        };
        assert_eq!(grown(&[write]), (Some(there), Prepare::CreateAllocated));
        assert_eq!(grown(&[write, ("fallocate", "none")]), (Some(there), Prepare::CreateEmpty));
        assert_eq!(grown(&[write, ("overwrite", "1")]), (Some(there), Prepare::CreateFilled));
        assert_eq!(grown(&[("rw", "read")]), (Some(there), Prepare::CreateFilled));
    }
    // One that is long enough is used as it is, and the word has no effect, which is told.
    let long = [("filename", "/mnt/old"), ("size", "1m"), ("rw", "read"), ("extend_existing", "/mnt/old")];
    let planned = plan(&[spec("a", &long)], &Described, &machine()).unwrap();
    assert_eq!((planned.jobs[0].files[0].prepare, planned.jobs[0].files[0].extends_from), (Prepare::UseExisting, None));
    assert!(planned.notes.iter().any(|note| note.contains("`extend_existing = ")), "{:?}", planned.notes);
    // No device grows, no read of an engine that moves no data makes one longer, and the filesystem must have room.
    let device = [("filename", "/dev/vdb"), ("overwrite_existing", "/dev/vdb"), ("extend_existing", "/dev/vdb")];
    assert_eq!(rule_name(&[&device[..], &[("size", "2g"), write]].concat()), "size_beyond_target");
    beyond(on("/mnt/old", &[("extend_existing", "/mnt/old"), ("ioengine", "falloc"), ("rw", "read")]));
    let huge = [("filename", "/mnt/old"), ("overwrite_existing", "/mnt/old"), ("extend_existing", "/mnt/old")];
    assert_eq!(rule_name(&[&huge[..], &[("size", "900t"), write]].concat()), "size_beyond_free_space");
    // Jobs that share it agree on it.
    let name = ("filename", "/mnt/empty");
    let mine = [name, ("overwrite_existing", "/mnt/empty"), ("extend_existing", "/mnt/empty"), ("size", "1m")];
    let specs = [spec("a", &[&mine[..], &[write]].concat()), spec("b", &[&mine[..], &[("rw", "read")]].concat())];
    let planned = plan(&specs, &Described, &machine()).unwrap();
    for job in &planned.jobs {
        assert_eq!((job.files[0].extends_from, job.files[0].prepare), (Some(0), Prepare::CreateFilled));
    }
}

/// Goal: what is appended begins where the file ends, and only where the file may be made longer.
#[test]
fn what_is_appended_begins_where_each_file_ends() {
    const MIB: u64 = 1 << 20;
    let append = [("rw", "write"), ("size", "2m"), ("file_append", "1")];
    let named = |path: &'static str| [("filename", path), ("overwrite_existing", path), ("extend_existing", path)];
    let region = |job: &JobPlan| (job.files[0].offset_bytes, job.files[0].size_bytes, job.files[0].extends_from);
    let old = plan_one(&[&named("/mnt/old")[..], &append].concat()).unwrap();
    assert_eq!(region(&old), (MIB, 2 * MIB, Some(MIB)));
    assert_eq!(old.limits.io_bytes, 2 * MIB);
    assert_eq!(old.values.iter().find(|value| value.name == "offset").unwrap().value, "1m");
    let both = "/mnt/old:/mnt/empty";
    let several = plan_one(&[&named(both)[..], &append].concat()).unwrap();
    let regions: Vec<_> = several.files.iter().map(|file| (file.offset_bytes, file.size_bytes)).collect();
    assert_eq!(regions, [(MIB, MIB), (0, MIB)]);
    // One job behind the other, in a file that exists and in a new one.
    for (path, from) in [("/mnt/old", MIB), ("/mnt/new", 0)] {
        let named = if path == "/mnt/old" { named(path).to_vec() } else { vec![("filename", path)] };
        let specs = [spec("a", &[&named[..], &append].concat()), spec("b", &[&named[..], &append].concat())];
        let jobs = plan(&specs, &Described, &machine()).unwrap().jobs;
        let regions: Vec<_> = jobs.iter().map(|job| (job.files[0].offset_bytes, job.files[0].size_bytes)).collect();
        assert_eq!(regions, [(from, 2 * MIB), (from + 2 * MIB, 2 * MIB)], "{path}");
    }
    // Two spellings of one path are one file.
    let of = |path| [&named(path)[..], &append].concat();
    let jobs = plan(&[spec("a", &of("/mnt/./old")), spec("b", &of("/mnt/old"))], &Described, &machine()).unwrap().jobs;
    assert_eq!(jobs.iter().map(region).collect::<Vec<_>>(), [(MIB, 2 * MIB, Some(MIB)), (3 * MIB, 2 * MIB, Some(MIB))]);
    assert_eq!(jobs[1].files[0].path, "/mnt/./old");
    let not_extended = [&[("filename", "/mnt/old"), ("overwrite_existing", "/mnt/old")][..], &append].concat();
    assert_eq!(rule_name(&not_extended), "size_beyond_target");
    assert_eq!(rule_name(&[&[("filename", "/mnt/old")][..], &append].concat()), "existing_target_not_named");
    assert_eq!(rule_name(&[&named("/dev/vdb")[..], &append].concat()), "bad_value");
    assert_eq!(rule_name(&[&named("/mnt/old")[..], &append, &[("offset", "4k")]].concat()), "contradiction");
    for size in [&[][..], &[("size", "50%")]] {
        assert_eq!(rule_name(&[&named("/mnt/old")[..], &append[..1], &append[2..], size].concat()), "incomplete");
    }
}

/// Goal: a job that fills needs no size and no free space, ends well where space does, and is refused where it could not end.
#[test]
fn a_job_that_fills_goes_on_until_nothing_is_free() {
    let fill = [("rw", "write"), ("fill_device", "1")];
    let job = plan_one(&[&fill[..], &[("filename", "/mnt/new")]].concat()).unwrap();
    assert_eq!((job.files[0].prepare, job.files[0].size_bytes), (Prepare::CreateEmpty, 1 << 62));
    for errno in [28, 122] {
        assert!(job.is_ended_by(OpKind::Write, errno) && job.ignores(OpKind::Write, errno), "{errno}");
    }
    // What shortened a write is not known before the next one.
    assert!(!job.is_ended_by(OpKind::Write, 0) && job.goes_on_after(OpKind::Write, 0));
    assert!(!job.is_ended_by(OpKind::Write, 5) && !job.ignores(OpKind::Write, 5));
    // That is no word about errors: outputs tell of these only where one was said.
    assert!(!job.goes_on_after_some());
    let other = plan_one(&[&fill[..], &[("filename", "/mnt/new"), ("ignore_error", ",EIO")]].concat()).unwrap();
    assert!(other.goes_on_after_some());
    let said = plan_one(&[&fill[..], &[("filename", "/mnt/new"), ("size", "900t")]].concat()).unwrap();
    assert_eq!(said.files[0].size_bytes, 900 << 40);
    let two = plan_one(&[&fill[..], &[("nrfiles", "2")]].concat()).unwrap();
    assert_eq!(two.files[1].size_bytes, 1 << 61);
    let old = [("filename", "/mnt/old"), ("overwrite_existing", "/mnt/old"), ("extend_existing", "/mnt/old")];
    let grown = plan_one(&[&fill[..], &old].concat()).unwrap();
    assert_eq!((grown.files[0].extends_from, grown.files[0].prepare), (Some(1 << 20), Prepare::CreateEmpty));
    assert_eq!(rule_name(&[&fill[..], &old[..2]].concat()), "size_beyond_target");
    // A device is as large as it is.
    let device = [("filename", "/dev/vdb"), ("overwrite_existing", "/dev/vdb")];
    let planned = plan(&[spec("a", &[&fill[..], &device].concat())], &Described, &machine()).unwrap();
    assert_eq!(planned.jobs[0].files[0].size_bytes, 1 << 30);
    assert!(planned.notes.iter().any(|note| note.contains("a device is as large")), "{:?}", planned.notes);
    for rw in ["read", "randwrite", "rw", "trimwrite"] {
        assert_eq!(rule_name(&[("rw", rw), ("fill_device", "1")]), "contradiction", "{rw}");
    }
    for other in [("verify", "md5"), ("overwrite", "1"), ("source", "http://known/")] {
        assert_eq!(rule_name(&[&fill[..], &[other]].concat()), "contradiction", "{other:?}");
    }
    for engine in ["null", "simulated", "mmap", "falloc", "filecreate"] {
        assert_eq!(rule_name(&[&fill[..], &[("ioengine", engine)]].concat()), "engine_lacks", "{engine}");
    }
}

/// Goal: a rate of one direction leaves the other free, and is not mixed with what must be gone over again.
#[test]
fn a_rate_of_reads_or_of_writes_only_is_a_pace() {
    let of = |rate: &'static str, rw: &'static str| {
        plan_one(&[("size", "1m"), ("rw", rw), ("rate_iops", rate)]).unwrap().pace.map(|p| (p.ios_per_s, p.of_writes))
    };
    assert_eq!(of("100,0", "rw"), Some((Some(100.0), Some(0.0))));
    assert_eq!(of("0,100", "rw"), Some((Some(0.0), Some(100.0))));
    assert_eq!(of("0,100", "read"), None);
    assert_eq!(of("0,100", "trimwrite"), Some((Some(100.0), None)));
    let verified =
        [("size", "1m"), ("rw", "randrw"), ("rate_iops", "100,0"), ("verify", "md5"), ("filename", "/mnt/old")];
    let permitted = ("overwrite_existing", "/mnt/old");
    assert_eq!(rule_name(&[&verified[..], &[permitted]].concat()), "verify_impossible");
}

// ---- limits, rates, seeds ---------------------------------------------------------------------

#[test]
fn time_based_needs_a_runtime_where_fio_ignores_it() {
    assert_eq!(rule_name(&[("size", "1m"), ("time_based", "1")]), "incomplete");
    let job = plan_one(&[("size", "1m"), ("time_based", "1"), ("runtime", "30")]).unwrap();
    assert_eq!((job.limits.is_time_based, job.limits.runtime_ns), (true, Some(30_000_000_000)));
}

#[test]
fn words_that_contradict_each_other_are_refused() {
    let size = ("size", "1m");
    for (one, other) in [
        (("rate", "1m"), ("rate_iops", "10")),
        (("bs", "4k"), ("bssplit", "4k/50:8k/50")),
        (("zero_buffers", "1"), ("dedupe_percentage", "5")),
        (("zero_buffers", "1"), ("buffer_pattern", "0xff")),
        (("buffer_pattern", "0xff"), ("buffer_compress_percentage", "5")),
        (("end_fdatasync", "1"), ("end_fsync", "1")),
        (("end_fdatasync", "1"), ("fsync_on_close", "1")),
        (("drain", "1"), ("hipri", "1")),
        (("rwmixread", "30"), ("rwmixwrite", "30")),
        (("nrfiles", "2"), ("filename", "/mnt/old")),
        (("fsync", "1"), ("fdatasync", "1")),
    ] {
        assert_eq!(rule_name(&[size, ("rw", "rw"), one, other]), "contradiction", "{one:?} {other:?}");
    }
}

#[test]
fn nothing_to_transfer_is_refused() {
    for option in ["size", "filesize", "io_size"] {
        assert_eq!(rule_name(&[("size", "1m"), (option, "0")]), "bad_value", "{option}");
    }
    // What is said of the I/O is reached by whole blocks; a file is gone over as far as whole ones fit.
    let io_bytes = |options: &[(&str, &str)]| plan_one(options).unwrap().limits.io_bytes;
    assert_eq!(io_bytes(&[("size", "1m"), ("io_size", "1k")]), 4096);
    assert_eq!(io_bytes(&[("size", "1m"), ("bs", "64k"), ("io_size", "100k")]), 128 << 10);
    assert_eq!(io_bytes(&[("size", "1m"), ("bs", "64k"), ("io_size", "10%")]), 128 << 10);
    assert_eq!(io_bytes(&[("size", "1m"), ("bsrange", "4k-64k"), ("io_size", "1k")]), 4096);
    assert_eq!(io_bytes(&[("size", "100k"), ("bs", "64k")]), 64 << 10);
    assert_eq!(rule_name(&[("size", "1k"), ("bs", "4k")]), "block_beyond_size");
}

#[test]
fn the_same_job_has_the_same_seed_in_each_run_unless_told_otherwise() {
    let seeds = |options: &[(&str, &str)], entropy| {
        let machine = Machine { entropy, ..machine() };
        let plan = plan(&[spec("a", options), spec("b", options)], &Described, &machine).unwrap();
        [plan.jobs[0].seed, plan.jobs[1].seed]
    };
    let size = ("size", "1m");
    assert_eq!(seeds(&[size], 1), seeds(&[size], 2));
    assert_ne!(seeds(&[size], 1)[0], seeds(&[size], 1)[1], "two jobs of a run differ");
    assert_ne!(seeds(&[size, ("randrepeat", "0")], 1), seeds(&[size, ("randrepeat", "0")], 2));
    assert_eq!(seeds(&[size, ("randseed", "0x89")], 1), [137, 137]);
}

#[test]
fn jobs_run_together_until_a_stonewall() {
    let job = |name, stonewall| spec(name, &[("size", "1m"), ("stonewall", stonewall)]);
    let jobs = [job("a", "1"), job("b", "0"), job("c", "1"), job("d", "0")];
    let plan = plan(&jobs, &Described, &machine()).unwrap();
    assert_eq!(plan.jobs.iter().map(|job| job.phase).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert!(plan.notes[0].contains("no job comes before it"), "{:?}", plan.notes);
}

#[test]
fn a_word_without_effect_gets_a_sentence() {
    let options = [("size", "1m"), ("rw", "read"), ("fsync", "1"), ("rwmixread", "70"), ("rate_process", "poisson")];
    let notes = plan(&[spec("a", &options)], &Described, &machine()).unwrap().notes;
    for word in ["fsync = 1", "rwmixread = 70", "rate_process = poisson"] {
        assert!(notes.iter().any(|note| note.contains(word) && note.contains("has no effect")), "{word}: {notes:?}");
    }
}

#[test]
fn an_offset_in_percent_is_rounded_down_to_a_block_or_up_as_it_is_said() {
    let region = |more: &[(&'static str, &'static str)]| {
        let options = [&[("filename", "/mnt/old"), ("offset", "33%"), ("bs", "16k")][..], more].concat();
        let file = plan_one(&options).unwrap().files[0].clone();
        (file.offset_bytes, file.size_bytes)
    };
    const MIB: u64 = 1 << 20;
    assert_eq!(region(&[]), (21 << 14, MIB - (21 << 14)));
    assert_eq!(region(&[("offset_align", "0")]), (22 << 14, MIB - (22 << 14)));
    assert_eq!(region(&[("offset_align", "100")]), (346_100, MIB - 346_100));
    // What is rounded up takes nothing from beyond the end.
    assert_eq!(region(&[("offset_align", "64k"), ("size", "67%")]), (6 << 16, MIB - (6 << 16)));
    let beyond = [("filename", "/mnt/old"), ("offset", "33%"), ("offset_align", "2m")];
    assert_eq!(rule_name(&beyond), "size_beyond_target");
}

/// Goal: what is dropped again costs nothing where it cannot matter.
#[test]
fn pages_are_dropped_before_further_passes_only_where_there_are_such_and_memory_serves_them() {
    let of = |more: &[(&'static str, &'static str)]| {
        let options = [&[("filename", "/mnt/old"), ("invalidate", "each_pass"), ("direct", "off")][..], more].concat();
        plan_one(&options).unwrap().handling.invalidates_each_pass
    };
    assert!(!of(&[]), "one pass");
    assert!(of(&[("loops", "2")]));
    assert!(of(&[("io_size", "3m")]));
    let timed = [("time_based", "true"), ("runtime", "1s")];
    assert!(of(&timed));
    let with = |more: &[(&'static str, &'static str)]| of(&[&timed[..], more].concat());
    assert!(with(&[("rw", "randread")]));
    assert!(!with(&[("rw", "randread"), ("norandommap", "1")]), "blocks that come again know no pass");
    assert!(!with(&[("invalidate", "start")]));
    assert!(!with(&[("pre_read", "true")]));
    assert!(!with(&[("ioengine", "null")]));
    assert!(!with(&[("direct", "require")]));
}

#[test]
fn files_are_locked_only_where_there_are_files_to_lock() {
    let of = |more: &[(&'static str, &'static str)]| {
        plan_one(&[&[("size", "1m"), ("rw", "write"), ("lockfile", "exclusive")][..], more].concat())
    };
    assert_eq!(of(&[]).unwrap().handling.locking, Locking::Exclusive);
    assert_eq!(of(&[("lockfile", "readwrite")]).unwrap().handling.locking, Locking::Readwrite);
    assert_eq!(of(&[("ioengine", "null")]).unwrap().handling.locking, Locking::None);
    assert_eq!(rule_name(&[("rw", "write"), ("lockfile", "exclusive"), ("source", "http://known/")]), "contradiction");
    assert_eq!(rule_name(&[("size", "1m"), ("lockfile", "write")]), "bad_value");
}

/// Goal: a file is removed between two passes only if the run made it, and nobody misses it.
#[test]
fn files_are_made_again_between_passes_only_where_that_harms_nobody() {
    let remade = [("rw", "write"), ("size", "1m"), ("unlink_each_loop", "1"), ("loops", "2")];
    let of = |more: &[(&'static str, &'static str)]| plan_one(&[&remade[..], more].concat());
    let is_remade = |more: &[(&'static str, &'static str)]| of(more).unwrap().handling.remakes_each_pass;
    let rule = |more: &[(&'static str, &'static str)]| of(more).unwrap_err().rule.name();
    assert!(is_remade(&[]) && is_remade(&[("nrfiles", "3"), ("unlink", "false"), ("rw", "randwrite")]));
    assert!(is_remade(&[("loops", "1"), ("io_size", "3m")]));
    assert!(is_remade(&[("loops", "1"), ("time_based", "1"), ("runtime", "1s")]));
    assert!(!of(&[("ioengine", "io_uring")]).unwrap().uring.registered_files, "the ring would keep the first file");
    for idle in [&[("loops", "1")][..], &[("ioengine", "null")]] {
        let planned = plan(&[spec("a", &[&remade[..], idle].concat())], &Described, &machine()).unwrap();
        assert!(!planned.jobs[0].handling.remakes_each_pass, "{idle:?}");
        assert!(planned.notes.iter().any(|note| note.contains("`unlink_each_loop = true`")), "{idle:?}");
    }
    for (name, value) in [("rw", "read"), ("rw", "randrw"), ("rw", "trimwrite"), ("verify", "md5"), ("numjobs", "2")] {
        assert_eq!(rule(&[(name, value)]), "contradiction", "{name} = {value}");
    }
    assert_eq!(rule(&[("ioengine", "io_uring"), ("registerfiles", "1")]), "contradiction");
    for engine in ["mmap", "falloc"] {
        assert_eq!(rule(&[("ioengine", engine)]), "engine_lacks", "{engine}");
    }
    let old = [("filename", "/mnt/old"), ("overwrite_existing", "/mnt/old")];
    assert_eq!(rule(&old), "bad_value");
    assert_eq!(rule(&[&old[..], &[("extend_existing", "/mnt/old"), ("size", "2m")]].concat()), "bad_value");
    assert_eq!(rule(&[("io_size", "700k")]), "bad_value");
    assert!(is_remade(&[("io_size", "1536k")]), "two whole passes, as in fio");
    assert!(is_remade(&[("loops", "1"), ("io_size", "1536k")]), "it ends in the middle of a pass");
    // Another job may use the file after it, and not beside it.
    let shared = |more: &[(&str, &str)]| {
        let name = ("filename", "/mnt/new");
        let other = [&[name, ("size", "1m"), ("rw", "read")][..], more].concat();
        let specs = [spec("a", &[&remade[..], &[name]].concat()), spec("b", &other)];
        plan(&specs, &Described, &machine())
    };
    assert!(shared(&[("stonewall", "1")]).is_ok());
    assert_eq!(shared(&[]).unwrap_err().rule.name(), "bad_value");
}

#[test]
fn errors_are_ignored_by_direction_but_never_those_of_writes_that_are_compared() {
    let of = |more: &[(&str, &str)]| plan_one(&[&[("size", "1m"), ("rw", "write")][..], more].concat());
    let job = of(&[("ignore_error", "EIO,ENOSPC:5")]).unwrap();
    use OpKind::{Read, Trim, Write};
    for (op, errno, is_ignored) in [
        (Read, 5, true),
        (Read, 28, false),
        (Write, 28, true),
        (Trim, 5, true),
        // A write that is short ends where the space does; a read that is short does not.
        (Write, 0, true),
        (Read, 0, false),
    ] {
        assert_eq!(job.ignores(op, errno), is_ignored, "{op} {errno}");
        assert_eq!(job.goes_on_after(op, errno), is_ignored, "{op} {errno}");
    }
    let reads = of(&[("continue_on_error", "read")]).unwrap();
    assert!(reads.goes_on_after(Read, 5) && !reads.goes_on_after(Write, 5) && !reads.ignores(Read, 5));
    let writes = of(&[("continue_on_error", "write")]).unwrap();
    assert!(writes.goes_on_after(Trim, 0) && !writes.goes_on_after(Read, 5));
    let verified = [("size", "1m"), ("rw", "write"), ("verify", "md5"), ("ignore_error", ",ENOSPC")];
    assert_eq!(rule_name(&verified), "contradiction");
    assert!(of(&[("verify", "md5"), ("ignore_error", "EIO")]).is_ok());
    let set = [("size", "1m"), ("rw", "write"), ("dedupe_percentage", "60"), ("dedupe_working_set_percentage", "41")];
    assert_eq!(rule_name(&set), "contradiction");
}

// ---- verify -----------------------------------------------------------------------------------

#[test]
fn verify_is_refused_where_the_last_write_of_a_block_is_not_known() {
    let write = [("size", "1m"), ("verify", "crc32c"), ("rw", "randwrite")];
    let with = |more: (&'static str, &'static str)| [write[0], write[1], write[2], more];
    assert!(plan_one(&write).is_ok());
    for more in [
        ("blockalign", "512"),
        ("percentage_random", "50"),
        ("numjobs", "2"),
        ("dedupe_percentage", "10"),
        ("ioengine", "null"),
        ("bs", "32"),
        ("rw", "trim"),
    ] {
        assert_eq!(rule_name(&with(more)), "verify_impossible", "{more:?}");
    }
}

/// Goal: what the engine keeps apart is verified, and what nobody could tell is not.
#[test]
fn blocks_that_come_again_and_of_several_sizes_are_verified_where_the_last_write_is_known() {
    let verify = |more: &[(&'static str, &'static str)]| {
        let mut options = vec![("verify", "crc32c"), ("size", "1m"), ("iodepth", "32")];
        options.extend_from_slice(more);
        if !more.iter().any(|(name, _)| *name == "rw") {
            options.push(("rw", "randwrite"));
        }
        plan_one(&options).map(|_| ()).map_err(|refusal| refusal.rule.name())
    };
    let refused = Err("verify_impossible");
    let again = [("loops", "2"), ("io_size", "2m"), ("norandommap", "1"), ("random_distribution", "zipf:1.1")];
    for more in again {
        assert_eq!(verify(&[more]), Ok(()), "{more:?}");
        assert_eq!(verify(&[more, ("verify_backlog", "8")]), Ok(()), "{more:?}");
        assert_eq!(verify(&[more, ("bsrange", "4k-16k")]), Ok(()), "{more:?}");
        for beside in ["verify_backlog", "verify_only"] {
            assert_eq!(verify(&[more, ("bsrange", "4k-16k"), (beside, "1")]), refused, "{more:?} {beside}");
        }
        assert_eq!(verify(&[more, ("trim_percentage", "10"), ("trim_backlog", "8")]), refused, "{more:?}");
        let synced = [more, ("verify_policy", "fsynced"), ("end_fsync", "1")];
        assert_eq!(verify(&synced), refused, "{more:?}");
        assert_eq!(verify(&synced[1..]), Ok(()));
    }
    for rw in ["rw", "randrw", "write"] {
        assert_eq!(verify(&[("rw", rw)]), Ok(()));
        assert_eq!(verify(&[("rw", rw), ("bsrange", "4k-16k")]), Ok(()));
        assert_eq!(verify(&[("rw", rw), ("time_based", "1"), ("runtime", "10s")]), Ok(()));
    }
    assert_eq!(verify(&[("rw", "randrw"), ("bs", "4k,8k")]), Ok(()));
    assert_eq!(verify(&[("rw", "randrw"), ("bs", "4k,8k"), ("verify_only", "1")]), refused);
    let old = ("filename", "/mnt/old");
    let only = [("bsrange", "4k-16k"), ("verify_only", "1"), old, ("overwrite_existing", "/mnt/old")];
    assert_eq!(verify(&only), Ok(()), "each block once");
    assert_eq!(verify(&[("rw", "read"), ("filename", "/mnt/old"), ("bsrange", "4k-16k")]), refused);
    // A header must fit into the least that a block is cut to.
    assert_eq!(verify(&[("bssplit", "4k/50:4100/50")]), refused);
    assert_eq!(verify(&[("bssplit", "4k/50:6k/50"), ("verify_interval", "4k")]), Err("bad_value"));
    assert_eq!(verify(&[("bssplit", "4k/50:6k/50"), ("verify_interval", "2k")]), Ok(()));
}

#[test]
fn a_body_is_as_long_as_its_server_or_the_user_says_and_its_rest_is_told() {
    let base = [("rw", "write"), ("bs", "32k"), ("source", "http://known/")];
    let job = plan_one(&base).unwrap();
    let body = job.source.as_ref().expect("a source");
    assert_eq!((body.length_bytes, body.direct_bytes, body.is_verified), (1_000_001, 999_936, false));
    assert_eq!((job.files[0].size_bytes, job.limits.io_bytes, job.verify), (1_000_001, 1_000_001, None));
    let size = job.values.iter().find(|value| value.name == "size").unwrap();
    assert_eq!(size.value, "1000001");
    assert!(matches!(&size.origin, Origin::Derived { reason } if reason.contains("Content-Length")), "{size:?}");
    let notes = plan(&[spec("a", &base)], &Described, &machine()).unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("the last 65 of the body go through the page cache")), "{notes:?}");
    // Said: the server is not asked while planning. Through the page cache there is no rest.
    let said = [base[0], base[1], ("source", "http://127.0.0.1:1/a"), ("size", "100001"), ("direct", "off")];
    let body = plan_one(&[&said[..], &[("verify", "source")]].concat()).unwrap().source.unwrap();
    assert_eq!((body.length_bytes, body.direct_bytes, body.is_verified), (100_001, 100_001, true));
    assert!(plan_one(&[base[0], base[1], base[2], ("ioengine", "null")]).is_ok(), "read and thrown away");
}

#[test]
fn a_body_is_written_once_and_in_order_or_refused() {
    let base = [("rw", "write"), ("source", "http://known/")];
    assert!(plan_one(&base).is_ok());
    for more in [
        ("rw", "randwrite"),
        ("rw", "read"),
        ("rw", "rw"),
        ("bsrange", "4k-8k"),
        ("numjobs", "2"),
        ("nrfiles", "2"),
        ("filename", "/mnt/new:/mnt/new2"),
        ("ioengine", "simulated"),
        ("ioengine", "ftruncate"),
        ("atomic", "true"),
        ("hipri", "true"),
        ("io_size", "4k"),
        ("number_ios", "3"),
        ("filesize", "1m"),
        ("loops", "2"),
        ("ramp_time", "1s"),
        ("steady_state", "true"),
        ("verify", "crc32c"),
        ("size", "50%"),
        ("source", "http://empty/"),
        ("source", "http://unreachable/"),
    ] {
        let mut options: Vec<_> = base.into_iter().filter(|(name, _)| *name != more.0).collect();
        options.push(more);
        assert_eq!(rule_name(&options), "source_impossible", "{more:?}");
    }
    assert_eq!(rule_name(&[base[0], base[1], ("verify", "source"), ("ioengine", "null")]), "source_impossible");
    assert_eq!(rule_name(&[base[0], base[1], ("time_based", "1"), ("runtime", "3s")]), "source_impossible");
    assert_eq!(rule_name(&[("rw", "write"), ("size", "1m"), ("verify", "source")]), "incomplete");
    assert_eq!(rule_name(&[("rw", "write"), ("source", "https://known/")]), "bad_value");
    let notes = plan(&[spec("a", &[base[0], base[1], ("zero_buffers", "1")])], &Described, &machine()).unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("comes from `source`")), "{notes:?}");
}

#[test]
fn a_program_is_given_the_path_and_the_numbers_of_its_job() {
    let command = "dd if=/dev/zero of={file} bs={bs} count={count} conv=notrunc";
    let base = [("rw", "write"), ("bs", "512k"), ("size", "4m"), ("command", command)];
    let job = plan_one(&base).unwrap();
    let arguments = ["dd", "if=/dev/zero", "of={file}", "bs=524288", "count=8", "conv=notrunc"];
    assert_eq!(job.command.expect("a command").arguments, arguments);
    assert_eq!((job.engine, job.direct), (EngineKind::Command, DirectPolicy::Off));
    assert!(plan_one(&[&base[..], &[("fallocate", "truncate"), ("end_fsync", "1")]].concat()).is_ok());
    // What it should have written is known; a header of ours in it is not to be had.
    let compared = plan_one(&[&base[..], &[("verify", "pattern"), ("verify_pattern", "0x00")]].concat()).unwrap();
    assert!(compared.verify.is_some_and(|verify| verify.pattern.is_some()));
    assert_eq!(rule_name(&[&base[..], &[("verify", "xxhash")]].concat()), "command_impossible");
}

#[test]
fn a_job_file_starts_no_program_that_nobody_allowed() {
    for program in ["rm", "/bin/dd", "./dd", "sh"] {
        let command = format!("{program} {{file}}");
        let options = [("rw", "write"), ("size", "1m"), ("command", command.as_str())];
        assert_eq!(refused(&options), Rule::CommandNotAllowed { program: program.into() });
    }
    let nobody = Machine { programs: Vec::new(), ..machine() };
    let job = spec("a", &[("rw", "write"), ("size", "1m"), ("command", "dd of={file}")]);
    assert_eq!(plan(&[job], &Described, &nobody).unwrap_err().rule.name(), "command_not_allowed");
}

#[test]
fn exec_starts_no_program_that_nobody_allowed() {
    let of = |program| [("ioengine", "exec"), ("program", program)];
    let allowed = plan_one(&of("dd if=/dev/zero")).unwrap().exec.expect("a program");
    assert_eq!(allowed.arguments, ["dd", "if=/dev/zero"]);
    assert_eq!((allowed.grace_ns, allowed.output.as_deref()), (1_000_000_000, Some("a")));
    for program in ["rm -rf /", "/bin/dd", "sh -c dd"] {
        let word = program.split(' ').next().unwrap().to_owned();
        assert_eq!(refused(&of(program)), Rule::ExecNotAllowed { program: word });
    }
    assert_eq!(rule_name(&[("ioengine", "exec")]), "incomplete");
}

/// Goal: what a job without I/O cannot do is told, and nothing of it is left in the plan to replace a log or to be waited for.
#[test]
fn jobs_without_io_say_what_has_no_effect_on_them_and_keep_none_of_it() {
    let idle: [&[(&str, &str)]; 3] = [
        &[("create_only", "1"), ("size", "1m"), ("rw", "write")],
        &[("ioengine", "exec"), ("program", "dd")],
        &[("ioengine", "cpuio"), ("cpuload", "10"), ("runtime", "1s")],
    ];
    let meaningless: [&[(&str, &str)]; 14] = [
        &[("ramp_time", "1s")],
        &[("rate", "1m")],
        &[("rate_iops", "10")],
        &[("rate_min", "1m")],
        &[("max_latency", "1s")],
        &[("thinktime", "1ms")],
        &[("flow", "2")],
        &[("latency_target", "1ms"), ("latency_window", "1s")],
        &[("steadystate_duration", "5s")],
        &[("write_bw_log", "l")],
        &[("write_lat_log", "l"), ("log_avg_msec", "100")],
        &[("number_ios", "10")],
        &[("trace_syscalls", "1")],
        &[("end_fsync", "1")],
    ];
    for base in idle {
        let quiet = plan(&[spec("a", base)], &Described, &machine()).unwrap();
        for more in meaningless {
            let options = [base, more].concat();
            // It runs through the ramp of those beside it if it has an end.
            if more[0].0 == "ramp_time" && base[0].1 == "cpuio" {
                continue;
            }
            let told = plan(&[spec("a", &options)], &Described, &machine()).unwrap();
            let beginning = format!("`{} = ", more[0].0);
            let notes: Vec<_> = told.notes.iter().filter(|note| note.contains(&beginning)).collect();
            assert!(notes.len() == 1 && notes[0].contains("has no effect"), "{options:?}: {:?}", told.notes);
            let job = &told.jobs[0];
            assert_eq!((&job.control, &job.guard), (&quiet.jobs[0].control, &quiet.jobs[0].guard), "{options:?}");
            assert!(job.output.logs.is_empty() && job.pace.is_none() && job.think.is_none(), "{options:?}");
            assert!(!job.trace_syscalls, "{options:?}");
        }
    }
    let reduced = [("rw", "read"), ("ioengine", "null"), ("size", "1m"), ("write_lat_log", "l"), ("gtod_reduce", "1")];
    let reduced = plan(&[spec("a", &reduced)], &Described, &machine()).unwrap();
    assert!(reduced.notes.iter().any(|note| note.contains("has no effect: every latency")), "{:?}", reduced.notes);
    let with = |more: &[(&'static str, &'static str)]| [idle[0], more].concat();
    assert_eq!(rule_name(&with(&[("verify", "crc32c"), ("verify_only", "1")])), "contradiction");
    let quiet = plan_one(&with(&[("verify", "crc32c"), ("write_iolog", "l")])).unwrap();
    assert!(quiet.verify.is_none() && quiet.output.logs.iolog.is_none());
    assert!(plan_one(&[("read_iolog", "read.log"), ("create_only", "1")]).unwrap().replay.is_none());
    // With an end, a program runs as long as those beside it measure.
    let ramp = [idle[1], &[("ramp_time", "1s"), ("runtime", "2s"), ("rw", "write"), ("size", "4k")]].concat();
    let notes = plan(&[spec("a", &ramp)], &Described, &machine()).unwrap().notes;
    assert!(notes.iter().all(|note| !note.contains("ramp_time")), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("`size = 4k` (") && note.ends_with("exec does no I/O")), "{notes:?}");
}

#[test]
fn a_search_for_a_depth_is_not_kept_from_filling_its_queue() {
    let search = [("size", "1m"), ("iodepth", "8"), ("latency_target", "1ms"), ("latency_window", "1s")];
    assert!(plan_one(&search).is_ok());
    for (name, value) in
        [("rate", "1m"), ("rate_iops", "100"), ("thinktime", "1ms"), ("flow", "2"), ("iodepth_low", "2")]
    {
        assert_eq!(rule_name(&[&search[..], &[(name, value)]].concat()), "contradiction", "{name}");
    }
    assert!(plan_one(&[&search[..], &[("thinktime", "0"), ("flow", "0")]].concat()).is_ok());
}

#[test]
fn jobs_without_io_break_no_group_that_becomes_steady_together() {
    let steady = [("size", "1m"), ("steadystate_duration", "5s"), ("group_reporting", "1")];
    let exec = [("ioengine", "exec"), ("program", "dd"), ("group_reporting", "1")];
    let jobs = [spec("a", &steady), spec("b", &exec), spec("c", &steady)];
    let plan = plan(&jobs, &Described, &machine()).expect("a plan");
    assert_eq!(plan.jobs.iter().map(|job| job.control.criterion.is_some()).collect::<Vec<_>>(), [true, false, true]);
}

#[test]
fn what_means_nothing_for_another_program_is_refused() {
    let base = [("rw", "write"), ("size", "1m"), ("command", "dd of={file}")];
    assert!(plan_one(&base).is_ok());
    for more in [
        ("rw", "read"),
        ("rw", "randwrite"),
        ("iodepth", "2"),
        ("ioengine", "sync"),
        ("direct", "require"),
        ("numjobs", "2"),
        ("runtime", "3s"),
        ("fsync", "1"),
        ("verify", "crc32c"),
        ("source", "http://known/"),
        ("filename", "/mnt/new:/mnt/new2"),
        ("command", "dd"),
        ("command", "dd of={path} {file}"),
    ] {
        let mut options: Vec<_> = base.into_iter().filter(|(name, _)| *name != more.0).collect();
        options.push(more);
        assert_eq!(rule_name(&options), "command_impossible", "{more:?}");
    }
    let uneven = [("rw", "write"), ("size", "1m"), ("bs", "48k"), ("command", "dd of={file} count={count}")];
    assert_eq!(rule_name(&uneven), "command_impossible");
}

#[test]
fn a_job_that_mixes_reads_and_writes_verifies_alone_and_behind_another() {
    let mixed = [("rw", "randrw"), ("verify", "crc32c"), ("filename", "/mnt/new"), ("size", "1m")];
    assert!(plan(&[spec("m", &mixed)], &Described, &machine()).is_ok());
    let write = spec("w", &[("rw", "write"), mixed[1], mixed[2], mixed[3]]);
    let mut after = spec("m", &mixed);
    after.set("stonewall", "true", Origin::Default);
    assert!(plan(&[write, after], &Described, &machine()).is_ok());
}

#[test]
fn of_reads_and_writes_the_stricter_alignment_is_everyones() {
    let finer_reads = |path: &str| match look(path) {
        Target::Present(mut facts) => {
            facts.direct.write_alignment_bytes = Fact::known(4096, "statx DIOALIGN");
            Target::Present(facts)
        }
        other => other,
    };
    let with = |rw| [("rw", rw), ("size", "1m"), ("bs", "512,4k"), ("direct", "require")];
    assert!(plan(&[spec("a", &with("randread"))], &finer_reads, &machine()).is_ok());
    let refusal = plan(&[spec("a", &with("randrw"))], &finer_reads, &machine()).unwrap_err();
    assert_eq!(refusal.rule.name(), "misaligned");
}

#[test]
fn a_job_that_only_reads_verifies_what_was_written_before_it() {
    let read = |more: &[(&'static str, &'static str)]| {
        let mut options = vec![("rw", "read"), ("verify", "xxhash")];
        options.extend_from_slice(more);
        options
    };
    assert!(plan_one(&read(&[("filename", "/mnt/old")])).is_ok(), "an existing file may hold headers");
    assert_eq!(rule_name(&read(&[("size", "1m")])), "verify_impossible", "a file just filled holds none");
    let new = ("filename", "/mnt/new");
    let write = spec("w", &[("rw", "write"), ("verify", "xxhash"), ("size", "1m"), new]);
    let after = spec("r", &read(&[new, ("stonewall", "1")]));
    assert!(plan(&[write.clone(), after], &Described, &machine()).is_ok());
    let beside = spec("r", &read(&[new]));
    let refusal = plan(&[write, beside], &Described, &machine()).unwrap_err();
    assert_eq!(refusal.rule.name(), "verify_impossible");
}

/// Goal: no disk is accused of what another job of the plan wrote, or did not write.
#[test]
fn verification_knows_what_other_jobs_write_and_leave_out_whatever_they_call_the_file() {
    let verify = [("verify", "xxhash"), ("bs", "4k")];
    let two = |one: &[(&'static str, &'static str)], other: &[(&'static str, &'static str)]| {
        let specs = [spec("w", one), spec("r", other)];
        plan(&specs, &WithLinks, &machine()).map_err(|refusal| refusal.rule.to_string())
    };
    // At the same time, under another name.
    let old = [("rw", "read"), ("filename", "/mnt/old"), verify[0], verify[1]];
    let link = [("rw", "write"), ("filename", "/mnt/link"), ("overwrite_existing", "/mnt/link")];
    let sentence = two(&link, &old).unwrap_err();
    assert!(sentence.contains("`/mnt/link`, which is `/mnt/old`, at the same time"), "{sentence}");
    let data = |name| [("rw", "write"), ("filename", name), ("size", "1m"), verify[0], verify[1]];
    assert!(two(&data("x"), &data("./x")).unwrap_err().contains("at the same time"));
    // Before it, in part or not at all.
    let after =
        [("rw", "randread"), ("filename", "/mnt/new"), ("size", "1m"), ("stonewall", "1"), verify[0], verify[1]];
    let before = |more: &[(&'static str, &'static str)]| [&data("/mnt/new")[..], more].concat();
    assert!(two(&before(&[]), &after).is_ok());
    for more in [
        &[("create_only", "1")][..],
        &[("number_ios", "255")],
        &[("io_size", "512k")],
        &[("offset", "4k")],
        &[("trim_percentage", "10"), ("trim_backlog", "8")],
    ] {
        assert!(two(&before(more), &after).unwrap_err().contains("all of `/mnt/new`"), "{more:?}");
    }
    assert!(two(&before(&[("number_ios", "256")]), &after).is_ok());
    // As far as it reads.
    let reads = |more| [&[("rw", "read")], &after[1..], &[more]].concat();
    assert!(two(&before(&[("io_size", "512k")]), &reads(("io_size", "512k"))).is_ok());
    assert!(two(&before(&[("io_size", "512k")]), &reads(("io_size", "516k"))).is_err());
    // Several together.
    let half = |name, offset| {
        spec(
            name,
            &[("rw", "write"), ("filename", "/mnt/new"), ("size", "512k"), ("offset", offset), verify[0], verify[1]],
        )
    };
    let both = [half("w", "0"), half("x", "512k"), spec("r", &after)];
    let of = |specs: &[JobSpec]| plan(specs, &WithLinks, &machine()).map_err(|refusal| refusal.rule.to_string());
    assert!(of(&both).is_ok(), "two verify one file at once, each its part");
    let mut one_over_the_other = both.clone();
    one_over_the_other[1].set("offset", "508k", Origin::Default);
    assert!(of(&one_over_the_other).is_err_and(|why| why.contains("at the same time")));
    let mut later = both.clone();
    later[1].set("stonewall", "true", Origin::Default);
    assert!(of(&later).is_ok());
    later[1].set("offset", "516k", Origin::Default);
    assert!(of(&later).is_err(), "4 KiB between them are not written");
    // One in between that leaves nothing to compare.
    let plain = spec("p", &[("rw", "write"), ("filename", "/mnt/new"), ("size", "4k"), ("stonewall", "1")]);
    let why = of(&[spec("w", &before(&[])), plain, spec("r", &after)]).unwrap_err();
    assert!(why.contains("job `p`, before it, writes to `/mnt/new` without `verify`"), "{why}");
    let early = two(&before(&[("runtime", "5s")]), &after).unwrap();
    assert!(early.notes.iter().any(|note| note.contains("when its `runtime` ends")), "{:?}", early.notes);
}

// ---- the whole --------------------------------------------------------------------------------

#[test]
fn documents_that_no_table_has_accepted_are_refused_and_not_believed() {
    assert_eq!(plan(&[], &Described, &machine()).unwrap_err().rule.name(), "no_jobs");
    assert_eq!(rule_name(&[("iodpeth", "3")]), "unknown_option");
    assert_eq!(rule_name(&[("blocksize", "4k")]), "unknown_option");
    assert_eq!(rule_name(&[("iodepth", "many")]), "bad_value");
    for name in ["", "a/b", "../a", ".a", "a b"] {
        let refusal = plan(&[spec(name, &[("size", "1m")])], &Described, &machine()).unwrap_err();
        assert_eq!(refusal.rule.name(), "job_name", "{name:?}");
    }
    let twice = [spec("a", &[("size", "1m")]), spec("a", &[("size", "1m")])];
    assert_eq!(plan(&twice, &Described, &machine()).unwrap_err().rule.name(), "job_name_twice");
}

#[test]
fn a_refusal_says_what_did_not_happen_why_by_which_rule_and_what_to_do() {
    let jobs = parse_job_file("job.toml", "[job.wipe]\nrw = \"write\"\nfilename = \"/dev/vdb\"\n").unwrap();
    let refusal = plan(&jobs, &Described, &machine()).unwrap_err();
    assert_eq!(
        explain_refusal(&refusal),
        "\
error: job `wipe` was not started
  because: `/dev/vdb` exists (a block device) and the job would overwrite it
  said by: job.toml:2
  rule: existing_target_not_named

hint: what it holds would be lost; if that is meant, say `overwrite_existing = \"/dev/vdb\"`; without `filename` the job makes a file of its own
"
    );
}

#[test]
fn explain_prints_every_value_of_every_job_with_its_origin() {
    let text = "\
[defaults]
directory = \"/mnt\"
size = \"1g\"
runtime = \"30s\"

[job.read]
rw = \"randread\"
iodepth = 32
fsync = 1

[job.old]
stonewall = true
directory = \"/mnt/dir\"
bs = \"1000\"
";
    let jobs = parse_job_file("job.toml", text).unwrap();
    let plan = plan(&jobs, &Described, &machine()).unwrap();
    let expected = include_str!("explain.txt");
    let explained = explain(&plan);
    if std::env::var_os("TRUEIO_BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/explain.txt"), &explained).unwrap();
    } else {
        assert_eq!(explained, expected, "TRUEIO_BLESS=1 rewrites tests/explain.txt");
    }
}

// ---- logs that are replayed ---------------------------------------------------------------------

#[test]
fn a_log_says_what_is_done_and_to_which_files() {
    let job = plan_one(&[("read_iolog", "read.log")]).unwrap();
    let replay = job.replay.as_ref().expect("it replays");
    assert_eq!((&replay.names[..], &replay.ops[..]), (&["/mnt/old".to_owned()][..], &[OpKind::Read, OpKind::Sync][..]));
    assert_eq!((job.files[0].path.as_str(), job.files[0].size_bytes), ("/mnt/old", 12288));
    assert_eq!(job.files[0].prepare, Prepare::UseExisting);
    assert_eq!((job.limits.io_bytes, job.pattern.read_sizes.clone()), (8192, BlockSizes::Fixed(4096)));
    assert!(job.is_paced() && !job.modifies_files());
    // What the log says itself has no effect, and that is told.
    let specs = [spec("a", &[("read_iolog", "read.log"), ("rw", "write"), ("bs", "64k"), ("filename", "/mnt/old2")])];
    let planned = plan(&specs, &Described, &machine()).unwrap();
    for name in ["rw", "bs", "filename"] {
        let told = planned.notes.iter().any(|note| note.contains(&format!("`{name} = ")) && note.contains("no effect"));
        assert!(told, "{name}: {:?}", planned.notes);
    }
    assert_eq!(planned.jobs[0].files[0].path, "/mnt/old");
    // What is said beside the log does nothing else either: a log that reads trims nothing.
    for (said, names) in [
        (&[("rw", "trimwrite")][..], &["rw"][..]),
        (&[("rw", "read"), ("sequential_skip", "8192")], &["rw", "sequential_skip"]),
        (&[("rw", "randread"), ("random_every", "8")], &["rw", "random_every"]),
        (&[("rw", "randread"), ("rw_sequencer", "identical")], &["rw", "rw_sequencer"]),
    ] {
        let specs = [spec("a", &[&[("read_iolog", "read.log")], said].concat())];
        let planned = plan(&specs, &Described, &machine()).expect("a log that reads needs no permission");
        for name in names {
            assert!(
                planned.notes.iter().any(|note| note.contains(&format!("`{name} = "))),
                "{name}: {:?}",
                planned.notes
            );
        }
        assert!(planned.jobs[0].pattern.steps.is_none() && !planned.jobs[0].modifies_files(), "{said:?}");
    }
    // A log without a job's files is no replay of them.
    let redirected = plan_one(&[("read_iolog", "write.log"), ("replay_redirect", "/mnt/new")]).unwrap();
    assert_eq!((redirected.files[0].path.as_str(), redirected.files[0].prepare), ("/mnt/new", Prepare::CreateFilled));
    let simulated = plan_one(&[("read_iolog", "write.log"), ("ioengine", "simulated")]).unwrap();
    assert_eq!((simulated.files[0].prepare, simulated.files[0].size_bytes), (Prepare::Nothing, 4096));
}

/// Goal: a log has no more rights than `filename`: what it names goes through the same rules.
#[test]
fn the_files_of_a_log_are_written_only_if_they_are_named_and_free() {
    let permitted = |path: &'static str| ("overwrite_existing", path);
    for (log, more, rule) in [
        ("write.log", None, "existing_target_not_named"),
        ("write.log", Some(permitted("/mnt/old2")), "named_for_overwrite_not_used"),
        ("beyond.log", None, "size_beyond_target"),
        ("marked.log", Some(permitted("/dev/vdc")), "signature_not_named"),
        ("mounted.log", Some(permitted("/dev/vdd")), "target_mounted"),
        ("dev.log", None, "cannot_create_here"),
        ("twice.log", None, "iolog_unusable"),
    ] {
        let options: Vec<_> = [("read_iolog", log)].into_iter().chain(more).collect();
        assert_eq!(rule_name(&options), rule, "{log}");
    }
    let job = plan_one(&[("read_iolog", "write.log"), permitted("/mnt/old")]).unwrap();
    assert!(job.modifies_files());
    // What is left out is not written.
    assert!(!plan_one(&[("read_iolog", "write.log"), ("replay_skip", "write")]).unwrap().modifies_files());
    let redirect = [("read_iolog", "write.log"), ("replay_redirect", "/dev/vdd"), permitted("/dev/vdd")];
    assert_eq!(rule_name(&redirect), "target_mounted");
    // Offsets that direct I/O cannot transfer.
    assert_eq!(rule_name(&[("read_iolog", "odd.log"), ("direct", "require")]), "misaligned");
    let aligned = [("read_iolog", "odd.log"), ("direct", "require"), ("replay_align", "512")];
    assert!(plan_one(&aligned).is_ok());
}

#[test]
fn a_log_that_cannot_be_replayed_or_written_is_refused_with_its_line() {
    let sentence = |options: &[(&str, &str)]| refused(options).to_string();
    let bad = sentence(&[("read_iolog", "bad.log")]);
    assert!(bad.contains("`bad.log`") && bad.contains("line 5: the length `x` is not a whole number"), "{bad}");
    assert!(sentence(&[("read_iolog", "gone.log")]).contains("No such file"));
    assert!(sentence(&[("read_iolog", "nothing.log")]).contains("asks for no I/O"));
    for (name, value) in [
        ("rate_iops", "10"),
        ("thinktime", "1ms"),
        ("fsync", "1"),
        ("verify", "md5"),
        ("steady_state", "true"),
        ("zonemode", "strided"),
        ("latency_target", "1ms"),
        ("flow", "2"),
    ] {
        assert_eq!(rule_name(&[("read_iolog", "read.log"), (name, value)]), "contradiction", "{name}");
    }
    // What is off contradicts nothing.
    let off = [
        ("time_based", "0"),
        ("rate", "0"),
        ("rate_iops", "0,0"),
        ("thinktime", "0"),
        ("fsync", "0"),
        ("fdatasync", "0"),
        ("verify", "none"),
        ("zonemode", "none"),
        ("steady_state", "0"),
        ("latency_target", "0"),
        ("steadystate_duration", "0"),
        ("flow", "0"),
        ("atomic", "0"),
    ];
    for (name, value) in off {
        let planned = plan_one(&[("read_iolog", "read.log"), (name, value)]);
        assert!(planned.is_ok(), "{name}: {planned:?}");
    }
    for (name, value) in [("replay_align", "3k"), ("replay_skip", "reads")] {
        assert_eq!(rule_name(&[("read_iolog", "read.log"), (name, value)]), "bad_value", "{name}");
    }
    assert_eq!(rule_name(&[("read_iolog", "read.log"), ("ioengine", "filecreate")]), "engine_lacks");
    assert_eq!(rule_name(&[("size", "1m"), ("write_iolog", "l"), ("numjobs", "2")]), "iolog_unusable");
    assert_eq!(rule_name(&[("size", "1m"), ("write_iolog", "l"), ("filename", "a b")]), "iolog_unusable");
    assert_eq!(rule_name(&[("size", "4k"), ("write_iolog", "l"), ("ioengine", "dircreate")]), "engine_lacks");
}

// ---- outputs ----------------------------------------------------------------------------------

/// [`Described`], where `/mnt/link` is `/mnt/old`, `./x` is `x`, nothing goes to `/dev`, and `/mnt/loop` is a disk.
struct WithLinks;

impl FactsSource for WithLinks {
    fn look(&self, path: &str) -> Target {
        look(if path == "/mnt/link" { "/mnt/old" } else { path })
    }

    fn in_use(&self, path: &str) -> Result<InUse, String> {
        if path != "/mnt/loop" {
            return Ok(InUse::default());
        }
        let (device, by) = ("/mnt/loop".to_owned(), "loop0".to_owned());
        let carries = DeviceUse { kind: UseKind::Stacked, device, by, source: "/sys".into() };
        Ok(InUse { uses: vec![carries], ..InUse::default() })
    }

    fn iolog(&self, log: &str, settings: &ReplaySettings) -> Result<IologSummary, String> {
        Described.iolog(log, settings)
    }

    fn identity(&self, path: &str) -> Identity {
        match path {
            "/mnt/old" | "/mnt/link" => Identity::Inode { device: 1, inode: 2 },
            "/mnt/loop" => Identity::Inode { device: 1, inode: 3 },
            path => Identity::Name(path.trim_start_matches("./").to_owned()),
        }
    }

    fn obstacle(&self, path: &str, is_document: bool) -> Option<String> {
        (path.starts_with("/dev/") || path == "pipe" && !is_document).then(|| "it is no regular file".to_owned())
    }
}

/// Goal: nothing that is written beside the jobs replaces what is measured or read, or another output, in whatever phase
/// and under whatever name.
#[test]
fn outputs_replace_nothing_that_is_measured_or_read_and_no_other_output() {
    let with = |jobs: &[&[(&str, &str)]], beside: &[FileUse]| {
        let specs: Vec<_> = ["a", "b"].iter().zip(jobs).map(|(name, options)| spec(name, options)).collect();
        let machine = Machine { beside: Beside { files: beside.to_vec(), sends_logs: false }, ..machine() };
        plan(&specs, &WithLinks, &machine).map(drop).map_err(|refusal| (refusal.rule.name(), refusal.rule.to_string()))
    };
    let rule = |jobs: &[&[(&str, &str)]], beside: &[FileUse]| with(jobs, beside).err().map_or("", |(rule, _)| rule);
    let new = |more: &[(&'static str, &'static str)]| [&[("size", "1m")], more].concat();
    let reads: &[(&str, &str)] = &[("rw", "read"), ("filename", "/mnt/old")];
    for job in [
        // A target, under its name and another, of the same phase and a later one.
        &[reads, &new(&[("write_iolog", "/mnt/old")])][..],
        &[reads, &new(&[("write_iolog", "/mnt/link"), ("stonewall", "1")])],
        &[&new(&[("filename", "x"), ("write_iolog", "./x")])],
        &[&new(&[("filename", "x_bw.1.log"), ("write_bw_log", "./x")])],
        &[&new(&[("write_hist_log", "x"), ("log_hist_msec", "9")]), &new(&[("filename", "x_clat_hist.1.log")])],
        // A log that is replayed.
        &[&[("read_iolog", "read.log"), ("write_iolog", "./read.log")]],
        &[&[("read_iolog", "read.log")], &new(&[("write_iolog", "read.log"), ("stonewall", "1")])],
        // Each other.
        &[&new(&[("write_iolog", "l")]), &new(&[("write_iolog", "./l")])],
        &[&new(&[("write_iolog", "x_bw.2.log")]), &new(&[("write_bw_log", "x")])],
        &[
            &new(&[("rw", "write"), ("verify", "md5"), ("verify_state_save", "1")]),
            &new(&[("write_iolog", "local-a-0-verify.state")]),
        ],
    ] {
        assert_eq!(rule(job, &[]), "output_replaces", "{job:?}");
    }
    let (_, sentence) = with(&[reads, &new(&[("write_iolog", "/mnt/link")])], &[]).unwrap_err();
    assert_eq!(
        sentence,
        "`write_iolog` of job `b` would replace `/mnt/old`, which job `a` uses: `/mnt/link` is the same file"
    );
    // Logs of one name are one log, if the jobs say so.
    let shared = new(&[("write_bw_log", "x"), ("per_job_logs", "0")]);
    assert_eq!(with(&[&shared, &shared], &[]), Ok(()));
    assert_eq!(rule(&[&shared, &new(&[("write_iolog", "x_bw.log")])], &[]), "output_replaces");
    // With what the command reads and writes.
    let output = |path: &str| FileUse::new(path, "--json", Role::Document);
    let input = |path: &str| FileUse::new(path, "this command", Role::Input);
    let logs = new(&[("write_bw_log", "x"), ("write_iolog", "l")]);
    for beside in ["l", "./l", "x_bw.1.log"] {
        assert_eq!(rule(&[&logs], &[output(beside)]), "output_replaces", "{beside}");
        assert_eq!(rule(&[&logs], &[input(beside)]), "output_replaces", "{beside}");
    }
    assert_eq!(rule(&[reads], &[output("/mnt/link")]), "output_replaces");
    assert_eq!(rule(&[&[("read_iolog", "read.log")]], &[output("read.log")]), "output_replaces");
    assert_eq!(rule(&[&new(&[])], &[output("a.fio"), input("a.fio")]), "output_replaces");
    assert_eq!(with(&[&logs, reads], &[output("out"), input("a.fio"), input("a.fio")]), Ok(()));
    // A server sends its logs: no file of these names is made there.
    let machine = Machine { beside: Beside { files: vec![input("x_bw.1.log")], sends_logs: true }, ..machine() };
    assert!(plan(&[spec("a", &new(&[("write_bw_log", "x")]))], &WithLinks, &machine).is_ok());
}

#[test]
fn outputs_are_regular_files_that_nobody_uses_otherwise() {
    let rule = |path: &str| {
        let options = [("size", "1m"), ("write_iolog", path)];
        plan(&[spec("a", &options)], &WithLinks, &machine()).err().map_or("", |refusal| refusal.rule.name())
    };
    assert_eq!(rule("/dev/vdb"), "output_impossible");
    assert_eq!(rule("pipe"), "output_impossible");
    assert_eq!(rule("/mnt/loop"), "output_impossible");
    assert_eq!(rule("log"), "");
}

/// Goal: an option that names a file cannot be added without those who let strangers' words in knowing it.
/// Method: every option whose value is a text of one's own names a file, or stands here as one that does not.
#[test]
fn every_option_that_names_a_file_says_so() {
    let others = [
        // Names of marks on disks, of operations, of jobs.
        "overwrite_signature",
        "replay_skip",
        "wait_for",
        // A program, and its arguments: permitted by name alone.
        "command",
        "program",
        // An address.
        "source",
    ];
    let is_text = |kind| {
        matches!(kind, ValueKind::Path | ValueKind::Paths | ValueKind::Names | ValueKind::Words | ValueKind::Address)
    };
    let named: Vec<&str> = TABLE.iter().filter(|row| row.names_path()).map(|row| row.name).collect();
    for row in TABLE.iter().filter(|row| is_text(row.kind)) {
        assert!(row.names_path() != others.contains(&row.name), "`{}`: does it name a file?", row.name);
    }
    for name in ["filename", "read_iolog", "write_iolog", "replay_redirect", "write_bw_log", "overwrite_existing"] {
        assert!(named.contains(&name), "{name}");
    }
}

/// The length of a span is said even where nobody said it.
#[test]
fn a_steady_window_of_one_span_is_refused_with_the_length_of_a_span() {
    let options = [("rw", "read"), ("size", "1m"), ("steadystate", "iops:10%"), ("steadystate_duration", "1s")];
    let refusal = plan(&[spec("a", &options)], &Described, &machine()).unwrap_err();
    let text = refusal.rule.to_string();
    assert!(text.contains("of spans of 1s (`steadystate_check_interval`)"), "{text}");
}
