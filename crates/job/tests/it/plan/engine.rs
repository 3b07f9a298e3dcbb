//! Engines, queues, processors, memory, users.

use super::*;

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
fn a_queue_on_a_blocking_engine_is_refused_and_never_lowered() {
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
        Rule::ProcessorNotThere { option: "sqthread_poll_cpu", cpu: 9 }
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
fn priorities_of_shares_need_matching_operations_and_a_capable_engine() {
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
fn unknown_memory_nodes_are_refused() {
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
fn acting_as_another_user_needs_the_privilege_and_that_users_permission() {
    let size = ("size", "1m");
    let user_of = |options: &[(&str, &str)]| plan_one(&[&[size], options].concat()).unwrap().user;
    assert_eq!(user_of(&[("uid", "1000")]), Some(UserPlan { uid: 1000, gid: 0 }), "the group stays");
    assert_eq!(user_of(&[("gid", "7")]), Some(UserPlan { uid: 0, gid: 7 }));
    assert_eq!(user_of(&[("uid", "1000"), ("gid", "7")]), Some(UserPlan { uid: 1000, gid: 7 }));
    let planned = plan(&[spec("job", &[size, ("uid", "0")])], &Described, &machine()).unwrap();
    assert_eq!(planned.jobs[0].user, None);
    assert!(planned.notes.iter().any(|note| note.contains("`uid = 0`") && note.contains("no effect")));
    for option in ["uid", "gid"] {
        let Rule::UserNotPermitted { setting, reason } = refused(&[size, (option, "666")]) else { panic!("{option}") };
        assert_eq!((setting, reason), (format!("`{option} = 666` (--test)"), "Operation not permitted".to_owned()));
        assert_eq!(rule_name(&[size, (option, "4294967295")]), "bad_value", "it means: no change");
    }
    let write = [("filename", "/mnt/old"), ("rw", "write"), ("overwrite_existing", "/mnt/old")];
    let may_not = |uid: &str, options: &[(&str, &str)]| match refused(&[options, &[("uid", uid)]].concat()) {
        Rule::UserMayNot { user, path, verb, .. } => (user.uid.to_string() == uid).then_some((path, verb)),
        rule => panic!("{rule}"),
    };
    let refusal = |path: &str, verb| Some((path.to_owned(), verb));
    assert_eq!(may_not("1000", &write), refusal("/mnt/old", "write"));
    assert!(plan_one(&[("filename", "/mnt/old"), ("uid", "1000")]).is_ok(), "it reads");
    assert!(plan_one(&[&write[..], &[("uid", "1002")]].concat()).is_ok());
    assert_eq!(may_not("1001", &[("filename", "/mnt/old")]), refusal("/mnt/old", "read"));
    assert_eq!(may_not("1001", &[size]), refusal(".", "create files in"));
    let names = [("ioengine", "filecreate"), ("nrfiles", "3"), ("rw", "write")];
    assert_eq!(may_not("1001", &names), refusal(".", "create files in"));
    assert_eq!(may_not("1001", &[("read_iolog", "read.log")]), refusal("/mnt/old", "read"));
    let state = [size, ("rw", "write"), ("verify", "crc32c"), ("verify_state_save", "true"), ("directory", "/tmp")];
    assert_eq!(may_not("1001", &state), refusal(".", "create files in"));
    // A file is created by the first job that uses it, with access for that job's user only.
    let shared = |uid: &str| {
        let shared = [size, ("filename", "/tmp/new"), ("rw", "write")];
        let second = spec("b", &[&shared[..], &[("uid", uid), ("stonewall", "true")]].concat());
        plan(&[spec("a", &[&shared[..], &[("uid", "1000")]].concat()), second], &Described, &machine())
    };
    assert!(shared("1000").is_ok());
    let refusal = shared("1002").expect_err("it is user 1000's");
    assert_eq!(refusal.job.as_deref(), Some("b"));
    assert!(refusal.rule.to_string().contains("job `a` creates it as another user"), "{}", refusal.rule);
    assert_eq!(refusal.rule.name(), "user_may_not");
}

#[test]
fn the_real_time_class_needs_a_privilege() {
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
fn a_polled_submission_queue_with_fewer_than_two_processors_a_worker_is_noted() {
    let polled = |workers| [("size", "1m"), ("sqthread_poll", "1"), ("numjobs", workers)];
    let noted = |jobs: &[JobSpec]| {
        let notes = plan(jobs, &Described, &machine()).unwrap().notes;
        notes.into_iter().filter(|note| note.contains("threads share 4 processors")).collect::<Vec<_>>()
    };
    assert_eq!(noted(&[spec("a", &polled("2"))]), [""; 0]);
    assert_eq!(noted(&[spec("a", &polled("3"))]).len(), 1);
    let mut jobs = [spec("a", &polled("2")), spec("b", &polled("1"))];
    let notes = noted(&jobs);
    assert!(notes.len() == 1 && notes[0].contains("6 threads"), "jobs at the same time share them: {notes:?}");
    jobs[1].set("stonewall", "true", Origin::Default);
    assert_eq!(noted(&jobs), [""; 0], "one after the other they do not");
}

#[test]
fn workers_are_pinned_only_to_available_processors() {
    assert_eq!(plan_one(&[("size", "1m"), ("cpus_allowed", "1,3")]).unwrap().cpus, [1, 3]);
    assert_eq!(
        refused(&[("size", "1m"), ("cpus_allowed", "1,7")]),
        Rule::ProcessorNotThere { option: "cpus_allowed", cpu: 7 }
    );
}

#[test]
fn buffers_beyond_the_machines_memory_are_refused() {
    let options = [("size", "1g"), ("bs", "1g"), ("iodepth", "16")];
    let expected = Rule::BuffersBeyondMemory { needed_bytes: (16 << 30) + (64 << 10), memory_bytes: 8 << 30 };
    assert_eq!(refused(&options), expected);
}

/// Goal: no size aborts the program for lack of memory.
/// Method: 8191 PiB in units of 512 bytes are 2^54 - 2^41 bits; the first level is 2^51 - 2^38 bytes, the others 1/63 of it. Blocks
/// of one size, in order, or drawn again need no map.
#[test]
fn maps_of_used_blocks_beyond_the_machines_memory_are_refused() {
    let base = [("ioengine", "null"), ("size", "8191p"), ("bsrange", "512-64k")];
    let with = |more: &[(&'static str, &'static str)]| [&base[..], more].concat();
    let random = with(&[("rw", "randread")]);
    let Rule::MapsBeyondMemory { needed_bytes, memory_bytes } = refused(&random) else { panic!("another rule") };
    assert_eq!((needed_bytes >> 38, memory_bytes), (((1 << 13) - 1) * 64 / 63, 8 << 30));
    assert!(matches!(refused(&with(&[("rw", "randrw")])), Rule::MapsBeyondMemory { .. }));
    for sound in [
        with(&[("rw", "read")]),
        with(&[("rw", "randread"), ("norandommap", "1")]),
        vec![("ioengine", "null"), ("size", "8191p"), ("bs", "512"), ("rw", "randread")],
        vec![("ioengine", "null"), ("size", "1t"), ("bsrange", "4k-64k"), ("rw", "randread")],
    ] {
        assert!(plan_one(&sound).is_ok(), "{sound:?}");
    }
}

/// Goal: a disk that is driven in user space is written only if it is named for that, and what its commands do not have is
/// refused.
#[test]
fn a_usb_disk_is_driven_by_uas_alone_and_written_only_if_it_is_named() {
    let disk = [("ioengine", "uas"), ("filename", "usb:2-1")];
    let with = |options: &[(&'static str, &'static str)]| [&disk[..], options].concat();
    let job = plan_one(&with(&[("rw", "randread"), ("iodepth", "30")])).unwrap();
    assert_eq!((job.engine, job.queue.depth, job.direct), (EngineKind::Uas, 30, DirectPolicy::Require));
    let file = &job.files[0];
    assert_eq!((file.path.as_str(), file.prepare, file.size_bytes), ("usb:2-1", Prepare::UseExisting, 1 << 30));
    let write = ("rw", "randwrite");
    assert_eq!(rule_name(&with(&[write])), "existing_target_not_named");
    assert!(plan_one(&with(&[write, ("overwrite_existing", "usb:2-1")])).is_ok());
    // Signatures are those that are read through the transport.
    let third = [("ioengine", "uas"), ("filename", "usb:2-3"), write, ("overwrite_existing", "usb:2-3")];
    assert_eq!(rule_name(&third), "signature_not_named");
    let named = [&third[..], &[("overwrite_signature", "ext4,dos")]].concat();
    assert!(plan_one(&named).is_ok());
    // Durable writes have FUA set; a disk without it is refused.
    let durable = plan_one(&with(&[write, ("overwrite_existing", "usb:2-1"), ("sync", "dsync")])).unwrap();
    assert_eq!(durable.sync, SyncMode::Dsync);
    assert_eq!(rule_name(&[&named[..], &[("sync", "dsync")]].concat()), "engine_lacks");
    let trims = [("ioengine", "uas"), ("rw", "trim"), ("filename", "usb:2-2"), ("overwrite_existing", "usb:2-2")];
    assert_eq!(rule_name(&trims), "trim_unsupported");
    for engine in ["psync", "io_uring", "null"] {
        assert_eq!(rule_name(&[("ioengine", engine), ("filename", "usb:2-1")]), "engine_lacks", "{engine}");
    }
    for names in ["/dev/vdb", "usb:2-1:usb:2-2", "usb:2-1:/dev/vdb"] {
        assert_eq!(rule_name(&[("ioengine", "uas"), ("filename", names)]), "incomplete", "{names}");
    }
    assert_eq!(rule_name(&[("ioengine", "uas"), ("size", "1m")]), "incomplete");
    for option in [("sync_file_range", "write:1"), ("pre_read", "1"), ("zonemode", "zbd"), ("direct", "off")] {
        assert_eq!(rule_name(&with(&[option])), "engine_lacks", "{option:?}");
    }
    for option in [("uid", "1000"), ("gid", "1000"), ("nowait", "1"), ("hipri", "1"), ("fixedbufs", "1")] {
        assert_eq!(rule_name(&with(&[option])), "engine_lacks", "{option:?}");
    }
    assert_eq!(rule_name(&with(&[("bs", "1000")])), "misaligned");
}
