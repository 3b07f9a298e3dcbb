//! Direct I/O, alignment, trims, and what a disk can.

use super::*;

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
    assert!(preferred.notes.iter().any(|note| note.contains("not multiples of 512 bytes")), "{:?}", preferred.notes);
    let required = with(&[("buffer_offset", "1"), ("direct", "require")]);
    assert_eq!(required.jobs[0].direct, DirectPolicy::Require);
    assert!(required.notes.iter().any(|note| note.contains("all its calls may fail")), "{:?}", required.notes);
    // Aligned enough for this target.
    assert_eq!(with(&[("buffer_offset", "512")]).jobs[0].direct, DirectPolicy::Prefer);
}

/// Goal: the engine asserts for each I/O the alignment that the planner compared sizes and offsets with.
#[test]
fn a_plan_of_direct_io_holds_the_alignment_of_its_files() {
    let alignment = |direct| plan_one(&[("size", "1m"), ("direct", direct)]).unwrap().offset_alignment_bytes;
    assert_eq!((alignment("require"), alignment("prefer"), alignment("off")), (512, 512, 1));
    let trim = plan_one(&[("filename", "/dev/vdb"), ("overwrite_existing", "/dev/vdb"), ("rw", "trim")]).unwrap();
    assert_eq!(trim.offset_alignment_bytes, 1, "a trim transfers nothing");
}

#[test]
fn required_direct_io_is_refused_where_the_filesystem_would_buffer() {
    let tmpfs = [("size", "1m"), ("directory", "/tmp")];
    let required = [tmpfs[0], tmpfs[1], ("direct", "require")];
    assert!(matches!(refused(&required), Rule::DirectImpossible { .. }));
    assert_eq!(plan_one(&tmpfs).unwrap().direct, DirectPolicy::Prefer);
}

#[test]
fn a_misaligned_block_is_refused_with_required_direct_io_and_buffered_with_a_note_if_preferred() {
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

/// Goal: misaligned offsets are found while planning, for each operation, and aligned ones are accepted.
#[test]
fn steps_to_misaligned_offsets_are_refused_or_buffered() {
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
        ("the skip of 1000 is", &[("rw", "read"), ("sequential_skip", "1000")]),
        ("the skip of 4100 is", &[("rw", "write"), ("sequential_skip", "-4100")]),
        (
            "the region, which the job covers from its end, of 100000 is",
            &[("rw", "read"), ("sequential_skip", "-4096"), ("size", "100000")],
        ),
        ("a zone with the skip after it of 65636 is", &strided("64k", "100")),
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
    // A device is trimmed in whole sectors, also with buffered I/O.
    let trims = [("filename", "/dev/vdb"), ("overwrite_existing", "/dev/vdb"), ("rw", "randtrim"), ("direct", "off")];
    assert_eq!(rule_name(&[&trims[..], &[("blockalign", "100")]].concat()), "misaligned");
    assert!(plan_one(&[&trims[..], &[("blockalign", "1k")]].concat()).is_ok());
}

#[test]
fn options_that_need_or_exclude_direct_io_set_it_or_are_refused() {
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
    let synced = plan_one(&with(&[("ioengine", "mmap"), ("rw", "write"), ("sync", "dsync")])).unwrap();
    assert_eq!(synced.sync, trueio_model::SyncMode::Dsync);
}

#[test]
fn atomic_writes_are_refused_if_the_target_does_not_support_them() {
    let on = |limits: Option<(u32, u32)>, options: &[(&str, &str)]| {
        let look = with_facts("/mnt", move |facts| {
            let atomic = limits.map(|(min_bytes, max_bytes)| AtomicWriteFacts { min_bytes, max_bytes });
            facts.direct.atomic_write = Fact { value: atomic, source: "statx".into() };
        });
        let all = [&[("rw", "write"), ("atomic", "1"), ("directory", "/mnt"), ("size", "1m")], options].concat();
        plan(&[spec("a", &all)], &look, &machine()).map_err(|refusal| refusal.rule.to_string())
    };
    let error = |limits, options: &[(&str, &str)]| on(limits, options).err().unwrap_or_default();
    assert!(error(Some((0, 0)), &[]).contains("it supports none (statx)"));
    let xfs = Some((4096, 65_536));
    assert_eq!(error(xfs, &[]), "");
    assert_eq!(error(xfs, &[("bs", "64k")]), "");
    assert_eq!(error(None, &[("bs", "12k")]), "", "if it is unknown, the kernel decides");
    assert!(error(xfs, &[("bs", "512")]).contains("512 is not within 4k to 64k (statx)"));
    assert!(error(xfs, &[("bs", "128k")]).contains("128k is not within 4k to 64k"));
    assert!(error(xfs, &[("bs", "12k")]).contains("12k is not a power of two"));
    assert!(error(xfs, &[("bsrange", "4k-16k")]).contains("several sizes"));
    assert!(
        error(xfs, &[("bs", "8k"), ("offset", "4k")]).contains("the offset of 4k is not a multiple of a block of 8k")
    );
    // A job that only reads has nothing to write atomically.
    assert_eq!(error(Some((0, 0)), &[("rw", "read")]), "");

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

#[test]
fn polling_is_refused_if_the_disk_has_no_poll_queue() {
    let on = |can_poll: Option<bool>, engine: &str| {
        let look = with_facts("/dev/vdb", move |facts| facts.disks = vec![a_disk(can_poll, None)]);
        let options = [("rw", "read"), ("hipri", "1"), ("filename", "/dev/vdb"), ("ioengine", engine)];
        plan(&[spec("a", &options)], &look, &machine()).map_err(|refusal| refusal.rule.name())
    };
    for engine in ["io_uring", "pvsync2"] {
        assert_eq!(on(Some(false), engine).err(), Some("poll_impossible"), "{engine}");
        assert_eq!(on(Some(true), engine).err(), None, "{engine}");
        assert_eq!(on(None, engine).err(), None, "{engine}: if it is unknown, the kernel decides");
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
fn trims_in_a_job_with_writes_are_checked_as_trims() {
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
        let message = refused(&[trims, &[device]].concat()).to_string();
        assert!(message.contains("trim"), "{trims:?}: {message}");
        let fat = |path: &str| {
            let mut facts = facts(path, TargetKind::File, Some(1 << 20));
            facts.filesystem.as_mut().unwrap().kind = "vfat".into();
            Target::Present(Box::new(facts))
        };
        let options = [trims, &[("filename", "x"), ("overwrite_existing", "x")]].concat();
        let refusal = plan(&[spec("a", &options)], &fat, &machine()).unwrap_err();
        assert_eq!(refusal.rule.name(), "trim_unsupported", "{trims:?}");
        // The writes next to them are direct where the file supports it, and must be aligned.
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

/// Goal: what is dropped again costs nothing where it cannot matter.
#[test]
fn pages_are_dropped_before_further_passes_only_of_buffered_jobs() {
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
fn the_stricter_alignment_of_reads_and_writes_applies_to_both() {
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
