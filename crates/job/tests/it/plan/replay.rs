//! Logs of I/O that are replayed.

use super::*;

#[test]
fn a_log_sets_operations_and_files_of_the_plan() {
    let job = plan_one(&[("read_iolog", "read.log")]).unwrap();
    let replay = job.replay.as_ref().expect("it replays");
    assert_eq!((&replay.names[..], &replay.ops[..]), (&["/mnt/old".to_owned()][..], &[OpKind::Read, OpKind::Sync][..]));
    assert_eq!((job.files[0].path.as_str(), job.files[0].size_bytes), ("/mnt/old", 12288));
    assert_eq!(job.files[0].prepare, Prepare::UseExisting);
    assert_eq!((job.limits.io_bytes, job.pattern.read_sizes.clone()), (8192, BlockSizes::Fixed(4096)));
    assert!(job.is_paced() && !job.modifies_files());
    // Options that the log sets have no effect, and a note reports that.
    let specs = [spec("a", &[("read_iolog", "read.log"), ("rw", "write"), ("bs", "64k"), ("filename", "/mnt/old2")])];
    let planned = plan(&specs, &Described, &machine()).unwrap();
    for name in ["rw", "bs", "filename"] {
        let is_noted =
            planned.notes.iter().any(|note| note.contains(&format!("`{name} = ")) && note.contains("no effect"));
        assert!(is_noted, "{name}: {:?}", planned.notes);
    }
    assert_eq!(planned.jobs[0].files[0].path, "/mnt/old");
    // Other options next to the log have no effect either: a log that reads trims nothing.
    for (options, names) in [
        (&[("rw", "trimwrite")][..], &["rw"][..]),
        (&[("rw", "read"), ("sequential_skip", "8192")], &["rw", "sequential_skip"]),
        (&[("rw", "randread"), ("random_every", "8")], &["rw", "random_every"]),
        (&[("rw", "randread"), ("rw_sequencer", "identical")], &["rw", "rw_sequencer"]),
    ] {
        let specs = [spec("a", &[&[("read_iolog", "read.log")], options].concat())];
        let planned = plan(&specs, &Described, &machine()).expect("a log that reads needs no permission");
        for name in names {
            assert!(
                planned.notes.iter().any(|note| note.contains(&format!("`{name} = "))),
                "{name}: {:?}",
                planned.notes
            );
        }
        assert!(planned.jobs[0].pattern.steps.is_none() && !planned.jobs[0].modifies_files(), "{options:?}");
    }
    // A log without a job's files is no replay of them.
    let redirected = plan_one(&[("read_iolog", "write.log"), ("replay_redirect", "/mnt/new")]).unwrap();
    assert_eq!((redirected.files[0].path.as_str(), redirected.files[0].prepare), ("/mnt/new", Prepare::CreateFilled));
    let simulated = plan_one(&[("read_iolog", "write.log"), ("ioengine", "simulated")]).unwrap();
    assert_eq!((simulated.files[0].prepare, simulated.files[0].size_bytes), (Prepare::Nothing, 4096));
}

/// Goal: the same rules apply to the files of a log as to those in `filename`.
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
    assert!(sentence(&[("read_iolog", "nothing.log")]).contains("contains no I/O"));
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
