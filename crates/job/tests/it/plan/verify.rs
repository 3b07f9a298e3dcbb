//! What can be verified, and what is refused because it cannot.

use super::*;

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
    // There is no data to compare, and existing data is not written.
    assert_eq!(of(&[md5, ("verify_only", "1")]), "verify_impossible");
    let offline = plan_one(&[("filename", "/mnt/old"), ("rw", "write"), md5, ("verify_only", "1")]).unwrap();
    assert!(!offline.modifies_files(), "so it need not be named for overwriting");
    assert!(plan_one(&[("size", "1m"), ("rw", "write"), ("ioengine", "null"), ("verify", "null")]).is_ok());
    let read = plan_one(&[("filename", "/mnt/old"), ("rw", "read"), ("verify", "pattern"), ("verify_pattern", "0xff")]);
    assert!(read.is_ok());
}

#[test]
fn errors_are_ignored_by_direction() {
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
    for errors in [",ENOSPC", "EIO"] {
        assert!(of(&[("verify", "md5"), ("ignore_error", errors)]).is_ok(), "{errors}");
    }
    let set = [("size", "1m"), ("rw", "write"), ("dedupe_percentage", "60"), ("dedupe_working_set_percentage", "41")];
    assert_eq!(rule_name(&set), "contradiction");
}

#[test]
fn verify_is_refused_if_the_last_write_of_a_block_is_unknown() {
    let write = [("size", "1m"), ("verify", "crc32c"), ("rw", "randwrite")];
    let with = |more: (&'static str, &'static str)| [write[0], write[1], write[2], more];
    assert!(plan_one(&write).is_ok());
    for more in [
        ("blockalign", "512"),
        ("numjobs", "2"),
        ("dedupe_percentage", "10"),
        ("ioengine", "null"),
        ("bs", "32"),
        ("rw", "trim"),
    ] {
        assert_eq!(rule_name(&with(more)), "verify_impossible", "{more:?}");
    }
    // Blocks that begin at multiples of their size do not overlap in part; larger ones than that distance do.
    for align in ["4k", "8k", "12k"] {
        assert!(plan_one(&with(("blockalign", align))).is_ok(), "{align}");
    }
    assert_eq!(rule_name(&[&with(("blockalign", "8k"))[..], &[("bs", "16k")]].concat()), "verify_impossible");
    assert_eq!(rule_name(&with(("blockalign", "6k"))), "verify_impossible");
    // Blocks of one size are overwritten whole or not at all; those of several sizes may begin within another.
    let mixed = with(("percentage_random", "50"));
    assert!(plan_one(&mixed).is_ok());
    assert_eq!(rule_name(&[&mixed[..], &[("bsrange", "4k-16k")]].concat()), "verify_impossible");
}

/// Goal: a job is verified if the last write of each block is known, and refused otherwise.
#[test]
fn repeated_blocks_of_several_sizes_are_verified_if_the_last_write_is_known() {
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
        for option in ["verify_backlog", "verify_only"] {
            assert_eq!(verify(&[more, ("bsrange", "4k-16k"), (option, "1")]), refused, "{more:?} {option}");
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
    // With a header for each piece of the smallest size, a block may be overwritten in part.
    let pieces = [("bsrange", "4k-16k"), ("verify_interval", "4k")];
    assert_eq!(verify(&[&[("rw", "read"), ("filename", "/mnt/old")], &pieces[..]].concat()), Ok(()));
    for more in again {
        assert_eq!(verify(&[&[more, ("verify_backlog", "1")], &pieces[..]].concat()), Ok(()), "{more:?}");
        assert_eq!(
            verify(&[&[more, old, ("overwrite_existing", "/mnt/old"), ("verify_only", "1")], &pieces[..]].concat()),
            Ok(())
        );
    }
    // A header must fit into the least that a block is cut to.
    assert_eq!(verify(&[("bssplit", "4k/50:4100/50")]), refused);
    assert_eq!(verify(&[("bssplit", "4k/50:6k/50"), ("verify_interval", "4k")]), Err("bad_value"));
    assert_eq!(verify(&[("bssplit", "4k/50:6k/50"), ("verify_interval", "2k")]), Ok(()));
}

#[test]
fn a_mixed_job_verifies_alone_and_after_another() {
    let mixed = [("rw", "randrw"), ("verify", "crc32c"), ("filename", "/mnt/new"), ("size", "1m")];
    assert!(plan(&[spec("m", &mixed)], &Described, &machine()).is_ok());
    let write = spec("w", &[("rw", "write"), mixed[1], mixed[2], mixed[3]]);
    let mut after = spec("m", &mixed);
    after.set("stonewall", "true", Origin::Default);
    assert!(plan(&[write, after], &Described, &machine()).is_ok());
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
    let parallel = spec("r", &read(&[new]));
    let refusal = plan(&[write, parallel], &Described, &machine()).unwrap_err();
    assert_eq!(refusal.rule.name(), "verify_impossible");
}

/// Goal: no disk is accused of what another job of the plan wrote, or did not write.
#[test]
fn verification_accounts_for_writes_of_other_jobs_under_any_file_name() {
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
    let shared = two(&data("x"), &data("./x")).expect("both write the same kind of blocks");
    assert!(shared.jobs.iter().all(|job| job.verify.as_ref().is_some_and(|verify| verify.is_shared)));
    assert!(shared.notes.iter().any(|note| note.contains("any write of the parallel jobs")), "{:?}", shared.notes);
    for other in [("verify", "md5"), ("bs", "8k"), ("verify_interval", "2k"), ("verify_backlog", "4")] {
        let other = [&data("./x")[..3], &[verify[0], verify[1], other]].concat();
        assert!(two(&data("x"), &other).unwrap_err().contains("at the same time"), "{other:?}");
    }
    // `e4defrag` moves blocks, and their data stays.
    let moved = [&data("./x")[..3], &[("ioengine", "e4defrag")]].concat();
    assert!(
        two(&moved, &data("x")).is_ok_and(|plan| plan.jobs[1].verify.as_ref().is_some_and(|verify| !verify.is_shared))
    );
    assert!(two(&data("./x")[..3], &data("x")).is_err());
    // Who compares nothing accepts everything.
    let silent = |name| [&data(name)[..], &[("do_verify", "0")]].concat();
    assert!(two(&silent("x"), &[&silent("./x")[..], &[("bs", "8k")]].concat()[..]).is_ok());
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
    assert!(of(&one_over_the_other[..2]).is_ok(), "a block of one is a block of the other");
    one_over_the_other[1].set("offset", "510k", Origin::Default);
    assert!(of(&one_over_the_other).is_err_and(|why| why.contains("at the same time")));
    let mut later = both.clone();
    later[1].set("stonewall", "true", Origin::Default);
    assert!(of(&later).is_ok());
    later[1].set("offset", "516k", Origin::Default);
    assert!(of(&later).is_err(), "4 KiB between them are not written");
    // One in between that changes blocks: the later one finds that.
    let plain = spec("p", &[("rw", "write"), ("filename", "/mnt/new"), ("size", "4k"), ("stonewall", "1")]);
    let why = of(&[plain.clone(), spec("r", &after)]).unwrap_err();
    assert!(why.contains("job `p`, before it, writes to `/mnt/new` without `verify`"), "{why}");
    let changed = of(&[spec("w", &before(&[])), plain, spec("r", &after)]).unwrap();
    let sentence = "blocks of `/mnt/new` that job `p`, before it, writes without `verify` count as wrong";
    assert!(changed.notes.iter().any(|note| note.contains(sentence)), "{:?}", changed.notes);
    let early = two(&before(&[("runtime", "5s")]), &after).unwrap();
    assert!(early.notes.iter().any(|note| note.contains("when its `runtime` ends")), "{:?}", early.notes);
}
