//! Every row of the table has an effect, every value has its origin, and refusals and `explain` report both.

use super::*;

/// Goal: no option is read and then forgotten.
/// Method: for each row, a job with and without one word about it; the plans must differ in
/// something else than the list of values that `explain` prints.
#[test]
#[expect(clippy::too_many_lines, reason = "one table of rows")]
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
    const NAMES: &[(&str, &str)] = &[("ioengine", "filecreate"), ("name_directory", "/mnt/names"), ("nrfiles", "12")];
    const NAMES_BELOW: &[(&str, &str)] =
        &[("ioengine", "filecreate"), ("name_directory", "/mnt/names"), ("nrfiles", "12"), ("name_depth", "1")];
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
        ("new_file_access", &[], "umask"),
        ("lockfile", &[], "readwrite"),
        ("unlink_each_loop", &[("rw", "write"), ("loops", "2")], "true"),
        ("nrfiles", &[], "4"),
        ("file_service_type", &[("nrfiles", "2")], "random"),
        ("file_service_ios", &[("nrfiles", "2")], "4"),
        ("offset", &[], "64k"),
        ("offset_align", &[("filename", "/mnt/old"), ("offset", "33%"), ("size", "64k")], "64k"),
        ("region_number", &[("offset_increment", "64k")], "3"),
        ("region_rules", &[("filesize", "512k"), ("offset", "64k")], "fio"),
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
        ("start_after_failure", &[], "true"),
        ("startdelay", &[], "1s"),
        ("startdelay_from", &[("startdelay", "1s")], "run"),
        ("stonewall", &[], "true"),
        ("ioengine", &[], "psync"),
        ("command", &[("rw", "write")], "dd of={file}"),
        ("iodepth", &[], "16"),
        ("iodepth_batch", &[("iodepth", "16")], "4"),
        ("iodepth_batch_complete_min", &[("iodepth", "16")], "4"),
        ("iodepth_batch_complete_max", &[("iodepth", "16")], "4"),
        ("iodepth_low", &[("iodepth", "16")], "4"),
        ("inplace", &[("ioengine", "e4defrag"), ("rw", "write")], "true"),
        ("numjobs", &[], "2"),
        ("offset_increment", &[("numjobs", "2")], "64k"),
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
        ("write_hint", &[("rw", "write")], "short"),
        ("stat_type", &[("ioengine", "filestat")], "lstat"),
        ("pre_read", &[], "true"),
        ("rate", &[], "10m"),
        ("rate_iops", &[], "1000"),
        ("rate_min", &[], "1m"),
        ("rate_iops_min", &[], "100"),
        ("rate_cycle", &[("rate_iops_min", "100")], "500"),
        ("max_latency", &[], "10ms"),
        ("rate_settle_time", &[("rate_iops_min", "10")], "2s"),
        ("short_ramp", &[("ramp_time", "1s")], "measure"),
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
        ("flow_watermark", &[("flow", "3")], "9"),
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
            "dedupe_global",
            &[("rw", "write"), ("dedupe_percentage", "50"), ("dedupe_working_set_percentage", "5")],
            "true",
        ),
        (
            "trim_backlog_batch",
            &[("rw", "write"), ("verify", "xxhash"), ("trim_backlog", "8"), ("trim_percentage", "50")],
            "2",
        ),
        ("source", &[("rw", "write")], "http://127.0.0.1:8080/a"),
        ("verify", &[("rw", "write")], "crc32c"),
        ("do_verify", &[("rw", "write"), ("verify", "md5")], "false"),
        ("verify_each_loop", &[("rw", "write"), ("verify", "md5"), ("loops", "2")], "true"),
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
        ("verify_dump_directory", &[("rw", "write"), ("verify", "sha1"), ("verify_dump", "true")], "dumps"),
        ("verify_state_save", &[("rw", "write"), ("verify", "sha512")], "true"),
        ("verify_state_file", &[("rw", "write"), ("verify", "md5"), ("verify_state_save", "true")], "w.state"),
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
        ("cgroup", &[], "slow"),
        ("cgroup_weight", &[("cgroup", "slow")], "500"),
        ("cgroup_nodelete", &[("cgroup", "slow")], "true"),
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
        ("name_accounting", &[("ioengine", "filestat"), ("directory", "/mnt")], "blocks"),
        ("name_directory", &[("ioengine", "filecreate"), ("directory", "/mnt")], "names"),
        ("name_depth", NAMES, "1"),
        ("name_branch", NAMES_BELOW, "3"),
        ("name_leaves", NAMES_BELOW, "true"),
        ("name_private", NAMES, "true"),
        ("name_tree", &[("ioengine", "dircreate"), ("name_directory", "/mnt/names")], "true"),
        ("name_bytes", NAMES, "100"),
        ("name_fsync", NAMES, "true"),
        ("name_verify", NAMES, "true"),
        ("renew_files", &[("rw", "write")], "true"),
        ("rank_place", NAMES, "2"),
        ("rank_streams", &[("rank_place", "2")], "equal"),
        ("repeat_ios_of", &[("stonewall", "true")], "first"),
        ("complete_ios_of", &[("stonewall", "true")], "first"),
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
    let permissions = ["overwrite_existing", "overwrite_signature", "extend_existing", "create_directories"];
    // `crates/cluster` applies all but the first before it plans a rank; a test below covers that.
    let of_ranks =
        ["ranks", "shared_file", "shared_region", "shared_segments", "rank_shift", "rank_shift_by", "rank_shift_seed"];
    for row in TABLE.iter().filter(|row| !permissions.contains(&row.name) && !of_ranks.contains(&row.name)) {
        assert!(covered.contains(row.name), "`{}` has no case here", row.name);
    }
    let planned = |options: &[(&str, &str)]| {
        // Parallel jobs must set the same steady state.
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
fn the_plan_contains_every_value_in_the_tables_order_with_its_origin() {
    let job = plan_one(&[("size", "1m"), ("bs", "8K")]).unwrap();
    let names: Vec<&str> = job.values.iter().map(|value| &*value.name).collect();
    assert_eq!(names, TABLE.iter().map(|row| row.name).collect::<Vec<_>>());
    let of = |name: &str| job.values.iter().find(|value| value.name == name).unwrap();
    assert_eq!((&*of("bs").value, &of("bs").origin), ("8k", &Origin::Flag { flag: "--test".into() }));
    assert_eq!(of("iodepth").origin, Origin::Default);
    assert!(matches!(of("ioengine").origin, Origin::Derived { .. }));
}

/// Goal: each published benchmark loop is possible in one job.
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

#[test]
fn unchecked_specifications_are_validated_and_refused() {
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
fn a_refusal_names_the_job_the_reason_the_rule_and_the_remedy() {
    let jobs = parse_job_file("job.toml", "[job.wipe]\nrw = \"write\"\nfilename = \"/dev/vdb\"\n").unwrap().jobs;
    let refusal = plan(&jobs, &Described, &machine()).unwrap_err();
    assert_eq!(
        explain_refusal(&refusal),
        "\
error: job `wipe` was not started
  because: `/dev/vdb` exists (a block device) and the job would overwrite it
  set by: job.toml:2
  rule: existing_target_not_named

hint: its content would be lost; if that is intended, set `overwrite_existing = \"/dev/vdb\"`; without `filename` the job creates its own file
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
    let jobs = parse_job_file("job.toml", text).unwrap().jobs;
    let plan = plan(&jobs, &Described, &machine()).unwrap();
    let expected = include_str!("../../explain.txt");
    let explained = explain(&plan, true);
    if std::env::var_os("TRUEIO_BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/explain.txt"), &explained).unwrap();
    } else {
        assert_eq!(explained, expected, "TRUEIO_BLESS=1 rewrites tests/explain.txt");
    }
}

#[test]
fn a_job_of_other_ranks_is_left_out_and_its_phase_stays() {
    let specs =
        [spec("some", &[("size", "1m"), ("ranks", "1-2")]), spec("all", &[("size", "1m"), ("stonewall", "true")])];
    let phases = |rank| {
        let plan = plan(&specs, &Described, &Machine { rank, ..machine() }).expect("a plan");
        let jobs = plan.jobs.iter().map(|job| (job.name.clone(), job.phase, job.files[0].path.clone()));
        (jobs.collect::<Vec<_>>(), plan.notes)
    };
    let job = |name: &str, phase: u32, path: &str| (name.to_owned(), phase, path.to_owned());
    let (jobs, notes) = phases(Some(0));
    assert_eq!(jobs, [job("all", 1, "trueio-all-rank0-0.dat")]);
    assert!(notes.contains(&"job `some`: it does not run here: this is rank 0".to_owned()), "{notes:?}");
    let both = [job("some", 0, "trueio-some-rank2-0.dat"), job("all", 1, "trueio-all-rank2-0.dat")];
    assert_eq!(phases(Some(2)).0, both);
    assert_eq!(phases(None).0, [job("all", 1, "trueio-all-0.dat")], "a process that is alone is rank 0");
    let alone = plan(&specs[..1], &Described, &machine()).expect_err("no job runs");
    assert!(explain_refusal(&alone).contains("no job runs on rank 0"), "{}", explain_refusal(&alone));
}
