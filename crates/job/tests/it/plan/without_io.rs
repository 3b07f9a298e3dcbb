//! Jobs that transfer nothing: engines on names and on empty files.

use super::*;

/// Goal: the rules of writing apply to every engine that changes a file, whatever its operation is called.
#[test]
fn engines_without_data_create_empty_files_and_keep_existing_content() {
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
    let cut_short = [&cut[..], &[("size", "4k")]].concat();
    assert_eq!(rule_name(&cut_short), "engine_lacks", "data after the region is never cut off");
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

/// Goal: `e4defrag` moves blocks that exist, and only writes.
#[test]
fn defragmenting_needs_allocated_blocks_of_a_named_file() {
    let of = |more: &[(&'static str, &'static str)]| [&[("ioengine", "e4defrag"), ("size", "1m")][..], more].concat();
    let job = plan_one(&of(&[("rw", "write")])).unwrap();
    assert_eq!((job.files[0].prepare, job.modifies_files()), (Prepare::CreateAllocated, true));
    for rw in ["read", "randrw", "trimwrite"] {
        assert_eq!(rule_name(&of(&[("rw", rw)])), "engine_lacks", "{rw}");
    }
    let old = of(&[("rw", "write"), ("filename", "/mnt/old")]);
    assert_eq!(rule_name(&old), "existing_target_not_named");
    assert!(plan_one(&[&old[..], &[("overwrite_existing", "/mnt/old")]].concat()).is_ok());
    assert_eq!(rule_name(&of(&[("rw", "write"), ("verify", "md5")])), "verify_impossible");
}

/// Goal: names are counted, not bytes, and engines that create or remove names use each once.
#[test]
fn metadata_engines_have_a_separate_directory_and_one_io_per_name() {
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

/// Goal: jobs of one `name_directory` agree about it, and no run removes or expects names that no job created.
#[test]
fn jobs_that_share_names_agree_about_them_and_the_directory_is_new() {
    let jobs = |list: &[&[(&'static str, &'static str)]]| {
        let common = [("directory", "/mnt"), ("name_directory", "set"), ("nrfiles", "12")];
        let of = |(index, own): (usize, &&[(&'static str, &'static str)])| {
            let taken = |name: &str| own.iter().any(|(other, _)| *other == name);
            let options: Vec<_> =
                common.into_iter().filter(|(name, _)| !taken(name)).chain(own.iter().copied()).collect();
            spec(["a", "b", "c"][index], &options)
        };
        let specs: Vec<_> = list.iter().enumerate().map(of).collect();
        plan(&specs, &Described, &machine()).map(|plan| plan.jobs).map_err(|refusal| explain_refusal(&refusal))
    };
    const CREATE: &[(&str, &str)] = &[("ioengine", "filecreate")];
    const STAT: &[(&str, &str)] = &[("ioengine", "filestat"), ("stonewall", "true"), ("rank_place", "3")];
    let planned = jobs(&[CREATE, STAT]).expect("it is planned");
    assert_eq!((planned[0].files[0].path.as_str(), planned[1].files[0].size_bytes), ("/mnt/set", 12));
    let sets: Vec<_> = planned.iter().map(|job| job.names.clone().expect("they share names")).collect();
    assert_eq!((sets[0].owner, sets[1].owner), (0, 3));
    assert!(sets.iter().all(|set| set.is_new && set.is_made_here && !set.stays));
    let tree = [("ioengine", "dircreate"), ("name_tree", "true"), ("name_depth", "2"), ("name_branch", "3")];
    assert_eq!(jobs(&[&tree]).expect("it is planned")[0].files[0].size_bytes, 13);
    for (list, reason) in [
        (&[&[("ioengine", "filestat")][..]][..], "does not exist, and no job creates names"),
        (
            &[&[("ioengine", "filecreate"), ("name_directory", "/mnt/dir")]],
            "exists, and the run would create names in it",
        ),
        (&[&[("ioengine", "filedelete"), ("name_directory", "/mnt/dir")]], "names that this run did not create"),
        (&[CREATE, &[("ioengine", "filestat"), ("nrfiles", "11")]], "job `a` uses the same names, and needs the same"),
        (
            &[&[("ioengine", "filecreate"), ("name_depth", "2"), ("name_branch", "3")]],
            "12 names cannot be spread evenly over 13",
        ),
        (&[&[("ioengine", "filecreate"), ("name_tree", "true")]], "filecreate is an engine of files"),
        (
            &[&[("ioengine", "dircreate"), ("name_tree", "true"), ("name_depth", "30"), ("name_branch", "9")]],
            "are more than",
        ),
        (&[&[("ioengine", "filecreate"), ("name_bytes", "1g")]], "at most 64 MiB"),
    ] {
        let refusal = jobs(list).expect_err(reason);
        assert!(refusal.contains(reason), "{reason}: {refusal}");
    }
}

/// Goal: a job repeats or completes only I/Os that it would do itself.
#[test]
fn a_job_follows_one_of_an_earlier_phase_with_the_same_ios() {
    let jobs = |write: &[(&'static str, &'static str)], read: &[(&'static str, &'static str)]| {
        let common = [("size", "1m"), ("filename", "/mnt/new")];
        let specs =
            [spec("a", &[&common[..], &[("rw", "write")], write].concat()), spec("b", &[&common[..], read].concat())];
        plan(&specs, &Described, &machine()).map(|plan| plan.jobs).map_err(|refusal| explain_refusal(&refusal))
    };
    const READ: [(&str, &str); 3] = [("rw", "read"), ("repeat_ios_of", "a"), ("stonewall", "true")];
    let planned = jobs(&[], &READ).expect("it is planned");
    assert_eq!(planned[0].files[0].prepare, Prepare::CreateAllocated, "what is written needs no content before");
    assert_eq!(planned[1].follows.as_ref().map(|follow| follow.job.as_str()), Some("a"));
    let random = [("rw", "randread"), ("repeat_ios_of", "a"), ("stonewall", "true")];
    for (write, read, reason) in [
        (&[][..], &READ[..2], "is not in an earlier phase"),
        (&[("bs", "8k")], &READ, "does other I/Os"),
        (&[("numjobs", "2")], &READ, "does other I/Os"),
        (&[("rw", "randwrite")], &random, "does other I/Os"),
        (&[], &[READ[0], ("repeat_ios_of", "c"), READ[2]], "there is no job `c`"),
        (&[], &[READ[0], ("repeat_ios_of", "a,c"), READ[2]], "the name of one job"),
        (&[], &[READ[0], READ[1], READ[2], ("number_ios", "3")], "leave one of them out"),
        (&[], &[READ[0], READ[1], READ[2], ("complete_ios_of", "a")], "both set the number of I/Os"),
    ] {
        let refusal = jobs(write, read).expect_err(reason);
        assert!(refusal.contains(reason), "{reason}: {refusal}");
    }
    let seeded = [random[0], random[1], random[2], ("randseed", "7")];
    assert!(jobs(&[("randseed", "7")], &READ).is_ok());
    let both = jobs(&[("randseed", "7")], &seeded).expect_err("one is sequential");
    assert!(both.contains("does other I/Os"), "{both}");
}

/// Goal: with `name_accounting = blocks`, the plan holds the I/Os and bytes that fio counts for names, and the limits that
/// follow, in names; an I/O of the plan stays one name.
#[test]
fn names_are_counted_as_blocks_where_that_is_set() {
    let planned = |more: &[(&'static str, &'static str)]| {
        let own = [
            ("directory", "/mnt"),
            ("nrfiles", "50"),
            ("rw", "write"),
            ("ioengine", "filestat"),
            ("name_accounting", "blocks"),
        ];
        let own = own.into_iter().filter(|(name, _)| !more.iter().any(|(other, _)| name == other));
        let spec = spec("a", &own.chain(more.iter().copied()).collect::<Vec<_>>());
        plan(&[spec], &Described, &machine()).map(|mut plan| plan.jobs.remove(0))
    };
    // Names of a pass, and the I/Os and bytes of each that they are counted as.
    let of = |more: &[(&'static str, &'static str)]| {
        let job = planned(more).expect("it is planned");
        let counts = job.output.names.expect("they are counted");
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
    // fio creates some of the names, or none, and reports success.
    assert_eq!(rule(&[four, ("bs", "16k")]), "block_beyond_size");
    assert_eq!(rule(&[("size", "100k")]), "block_beyond_size");
    // Jobs of ours count names.
    assert_eq!(plan_one(&[("ioengine", "filestat"), four]).expect("it is planned").output.names, None);
}

/// Goal: options without effect in a job without I/O are noted, and leave nothing in the plan that would replace a log or
/// delay a job.
#[test]
fn options_without_effect_on_jobs_without_io_are_noted_and_dropped() {
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
            // With an end of its own it also runs during the ramp of the parallel jobs.
            if more[0].0 == "ramp_time" && base[0].1 == "cpuio" {
                continue;
            }
            let planned = plan(&[spec("a", &options)], &Described, &machine()).unwrap();
            let beginning = format!("`{} = ", more[0].0);
            let notes: Vec<_> = planned.notes.iter().filter(|note| note.contains(&beginning)).collect();
            assert!(notes.len() == 1 && notes[0].contains("has no effect"), "{options:?}: {:?}", planned.notes);
            let job = &planned.jobs[0];
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
    // With an end, a program runs as long as the parallel jobs measure.
    let ramp = [idle[1], &[("ramp_time", "1s"), ("runtime", "2s"), ("rw", "write"), ("size", "4k")]].concat();
    let notes = plan(&[spec("a", &ramp)], &Described, &machine()).unwrap().notes;
    assert!(notes.iter().all(|note| !note.contains("ramp_time")), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("`size = 4k` (") && note.ends_with("exec does no I/O")), "{notes:?}");
}

#[test]
fn jobs_without_io_do_not_affect_the_steady_state_of_a_group() {
    let steady = [("size", "1m"), ("steadystate_duration", "5s"), ("group_reporting", "1")];
    let exec = [("ioengine", "exec"), ("program", "dd"), ("group_reporting", "1")];
    let jobs = [spec("a", &steady), spec("b", &exec), spec("c", &steady)];
    let plan = plan(&jobs, &Described, &machine()).expect("a plan");
    assert_eq!(plan.jobs.iter().map(|job| job.control.criterion.is_some()).collect::<Vec<_>>(), [true, false, true]);
}
