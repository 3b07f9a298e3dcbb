//! Which files a job gets, what is made of them, and what is never touched.

use super::*;

#[test]
fn a_job_without_filename_creates_its_own_file_and_removes_it() {
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
fn the_preparation_of_a_new_file_depends_on_the_load() {
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

/// Goal: each worker has `size` bytes of its own, the file holds them all, and a pass covers one region.
#[test]
fn workers_with_an_offset_increment_have_regions_of_their_own() {
    const MIB: u64 = 1 << 20;
    let eight = [("rw", "read"), ("bs", "64k"), ("size", "1m"), ("numjobs", "8"), ("offset_increment", "2m")];
    let job = plan_one(&eight).unwrap();
    assert_eq!((job.files[0].size_bytes, job.limits.io_bytes), (15 * MIB, MIB));
    assert_eq!([0, 1, 7].map(|worker| job.region_of(&job.files[0], worker)), [0, 2, 14].map(|at| (at * MIB, MIB)));
    // `/mnt/old` holds 1 MiB.
    let there =
        plan_one(&[("rw", "read"), ("filename", "/mnt/old"), ("numjobs", "2"), ("offset_increment", "64k")]).unwrap();
    let whole = plan_one(&[("rw", "read"), ("filename", "/mnt/old"), ("numjobs", "2")]).unwrap();
    assert_eq!(there.files, whole.files, "without a size, the regions together are the file");
    assert_eq!(there.region_of(&there.files[0], 1), (64 << 10, whole.files[0].size_bytes - (64 << 10)));
    let beyond =
        [("rw", "read"), ("filename", "/mnt/old"), ("size", "64k"), ("numjobs", "2"), ("offset_increment", "1g")];
    assert_eq!(rule_name(&beyond), "size_beyond_target");
    let refused = |more: (&'static str, &'static str)| {
        let options: Vec<_> = eight.iter().copied().filter(|(name, _)| *name != more.0).chain([more]).collect();
        rule_name(&options)
    };
    assert_eq!(refused(("offset_increment", "96k")), "bad_value", "no multiple of the block");
    assert_eq!(refused(("verify", "md5")), "contradiction");
    assert_eq!(refused(("random_distribution", "zipf:1.2")), "contradiction");
    let one = plan_one(&[("rw", "read"), ("size", "1m"), ("offset_increment", "2m")]).unwrap();
    assert_eq!((one.files[0].size_bytes, one.offset_increment_bytes), (MIB, 0), "one worker has no distance");
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
fn a_device_in_use_or_with_unnamed_signatures_is_refused() {
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
    // Two devices: a signature that only one of them has is enough.
    let both = "/dev/vdb:/dev/vdc";
    assert_eq!(with(both, "dos,ext4").err(), None);
    assert_eq!(with(both, "dos").err(), Some("signature_not_named"));
}

/// A closure returns only what exists, so a block device is not written.
#[test]
fn a_device_with_unknown_users_is_not_written() {
    let write = spec("a", &[("rw", "write"), ("filename", "/dev/vdb"), ("overwrite_existing", "/dev/vdb")]);
    let refusal = plan(&[write], &look, &machine()).expect_err("its users are unknown");
    assert_eq!(refusal.rule.name(), "device_not_examined");
    let read = spec("a", &[("rw", "read"), ("filename", "/dev/vdd")]);
    assert!(plan(&[read], &look, &machine()).is_ok(), "reading needs no permission");
}

#[test]
fn the_plan_notes_users_of_a_device_that_could_not_be_examined() {
    let write = spec("a", &[("rw", "write"), ("filename", "/dev/vdf"), ("overwrite_existing", "/dev/vdf")]);
    let plan = plan(&[write], &Described, &machine()).expect("a plan");
    assert_eq!(plan.notes, ["job `a`: the users of `/dev/vdf` are not all known: mounts of 3 processes"]);
    let read = spec("a", &[("rw", "read"), ("filename", "/dev/vdb"), ("overwrite_signature", "ext4")]);
    let notes = trueio_job::plan(&[read], &Described, &machine()).expect("a plan").notes;
    assert!(notes.iter().any(|note| note.contains("`overwrite_signature = ext4`") && note.contains("no effect")));
}

#[test]
fn files_in_a_directory_of_devices_are_refused() {
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
fn writing_or_trimming_an_existing_target_is_refused_unless_it_is_named_exactly() {
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
fn permission_to_overwrite_a_missing_path_is_refused() {
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

/// Goal: with `create_directories`, missing directories in the names of new files are created, each after its parent,
/// where files may be created, but not the one that `directory` names.
#[test]
fn create_directories_creates_the_directories_of_new_files() {
    let planned = |options: &[(&str, &str)]| {
        let options = [&[("create_directories", "true")], options].concat();
        plan(&[spec("a", &options)], &Described, &machine())
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
fn free_space_is_checked_for_all_files_and_a_shared_file_once() {
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
fn a_target_of_unknown_size_needs_a_size() {
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

#[test]
fn openfiles_is_refused_with_a_distribution_of_files() {
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
fn filesize_is_per_file_and_size_then_limits_the_transferred_bytes() {
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
fn directory_is_prepended_to_relative_names_and_contradicts_absolute_ones() {
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
fn a_file_created_by_an_earlier_job_can_be_read_without_a_size() {
    let write = [("rw", "write"), ("size", "1m"), ("filename", "/mnt/new")];
    let read = [("rw", "randread"), ("filename", "/mnt/new"), ("stonewall", "1"), ("unlink", "0")];
    let plan = plan(&[spec("w", &write), spec("r", &read)], &Described, &machine()).unwrap();
    assert_eq!(plan.jobs[1].files[0].size_bytes, 1 << 20);
    // Both plans of the shared file are the same: filled, because one job reads; kept, because one job keeps it.
    for job in &plan.jobs {
        assert_eq!((job.files[0].prepare, job.files[0].remove_after), (Prepare::CreateFilled, false), "{}", job.name);
    }
    assert!(plan.notes.iter().any(|note| note.contains("`/mnt/new` is prepared for this job")), "{:?}", plan.notes);
}

#[test]
fn each_path_is_examined_once_per_plan() {
    let looks = std::cell::RefCell::new(BTreeMap::<String, u32>::new());
    let counting = |path: &str| {
        *looks.borrow_mut().entry(path.to_owned()).or_default() += 1;
        look(path)
    };
    let options = [("filename", "/mnt/old:/mnt/new"), ("size", "64k")];
    plan(&[spec("a", &options), spec("b", &options)], &counting, &machine()).unwrap();
    assert!(looks.borrow().values().all(|count| *count == 1), "{:?}", looks.borrow());
}

/// Goal: a file that exists is made longer only where it is named for that, and what is added is as a new file.
#[test]
fn a_short_file_is_extended_only_if_extend_existing_names_it() {
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
    // A file that is long enough is used unchanged; the option has no effect, and a note reports that.
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

/// Goal: the appended region begins at the end of the file, and only if the file may be extended.
#[test]
fn appended_regions_begin_at_the_end_of_each_file() {
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
    // One job after the other, in an existing file and in a new one.
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
fn a_job_with_fill_device_writes_until_no_space_is_free() {
    let fill = [("rw", "write"), ("fill_device", "1")];
    let job = plan_one(&[&fill[..], &[("filename", "/mnt/new")]].concat()).unwrap();
    assert_eq!((job.files[0].prepare, job.files[0].size_bytes), (Prepare::CreateEmpty, 1 << 62));
    for errno in [28, 122] {
        assert!(job.is_ended_by(OpKind::Write, errno) && job.ignores(OpKind::Write, errno), "{errno}");
    }
    // What shortened a write is not known before the next one.
    assert!(!job.is_ended_by(OpKind::Write, 0) && job.goes_on_after(OpKind::Write, 0));
    assert!(!job.is_ended_by(OpKind::Write, 5) && !job.ignores(OpKind::Write, 5));
    // The expected end is not an option about errors: outputs report those only where such an option is set.
    assert!(!job.goes_on_after_some());
    let other = plan_one(&[&fill[..], &[("filename", "/mnt/new"), ("ignore_error", ",EIO")]].concat()).unwrap();
    assert!(other.goes_on_after_some());
    let sized = plan_one(&[&fill[..], &[("filename", "/mnt/new"), ("size", "900t")]].concat()).unwrap();
    assert_eq!(sized.files[0].size_bytes, 900 << 40);
    let two = plan_one(&[&fill[..], &[("nrfiles", "2")]].concat()).unwrap();
    assert_eq!(two.files[1].size_bytes, 1 << 61);
    let old = [("filename", "/mnt/old"), ("overwrite_existing", "/mnt/old"), ("extend_existing", "/mnt/old")];
    let grown = plan_one(&[&fill[..], &old].concat()).unwrap();
    assert_eq!((grown.files[0].extends_from, grown.files[0].prepare), (Some(1 << 20), Prepare::CreateEmpty));
    assert_eq!(rule_name(&[&fill[..], &old[..2]].concat()), "size_beyond_target");
    // The size of a device is fixed.
    let device = [("filename", "/dev/vdb"), ("overwrite_existing", "/dev/vdb")];
    let planned = plan(&[spec("a", &[&fill[..], &device].concat())], &Described, &machine()).unwrap();
    assert_eq!(planned.jobs[0].files[0].size_bytes, 1 << 30);
    assert!(planned.notes.iter().any(|note| note.contains("the size of a device is fixed")), "{:?}", planned.notes);
    for rw in ["read", "randwrite", "rw", "trimwrite"] {
        assert_eq!(rule_name(&[("rw", rw), ("fill_device", "1")]), "contradiction", "{rw}");
    }
    for other in [("overwrite", "1"), ("source", "http://known/")] {
        assert_eq!(rule_name(&[&fill[..], &[other]].concat()), "contradiction", "{other:?}");
    }
    for engine in ["null", "simulated", "mmap", "falloc", "filecreate"] {
        assert_eq!(rule_name(&[&fill[..], &[("ioengine", engine)]].concat()), "engine_lacks", "{engine}");
    }
}

#[test]
fn lockfile_needs_files() {
    let of = |more: &[(&'static str, &'static str)]| {
        plan_one(&[&[("size", "1m"), ("rw", "write"), ("lockfile", "exclusive")][..], more].concat())
    };
    assert_eq!(of(&[]).unwrap().handling.locking, Locking::Exclusive);
    assert_eq!(of(&[("lockfile", "readwrite")]).unwrap().handling.locking, Locking::Readwrite);
    assert_eq!(of(&[("ioengine", "null")]).unwrap().handling.locking, Locking::None);
    assert_eq!(rule_name(&[("rw", "write"), ("lockfile", "exclusive"), ("source", "http://known/")]), "contradiction");
    assert_eq!(rule_name(&[("size", "1m"), ("lockfile", "write")]), "bad_value");
}

/// Goal: a file is removed between two passes only if the run created it and no other job uses it.
#[test]
fn unlink_each_loop_is_refused_if_other_jobs_use_the_files() {
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
    // Another job may use the file after it, but not at the same time.
    let shared = |more: &[(&str, &str)]| {
        let name = ("filename", "/mnt/new");
        let other = [&[name, ("size", "1m"), ("rw", "read")][..], more].concat();
        let specs = [spec("a", &[&remade[..], &[name]].concat()), spec("b", &other)];
        plan(&specs, &Described, &machine())
    };
    assert!(shared(&[("stonewall", "1")]).is_ok());
    assert_eq!(shared(&[]).unwrap_err().rule.name(), "bad_value");
}
