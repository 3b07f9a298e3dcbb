//! How much is transferred, where, how fast, and when a job ends.

use super::*;

/// Goal: incomplete options about steps through a region are refused, and jobs with steps keep no map.
#[test]
fn steps_of_partial_blocks_are_refused() {
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
    assert_eq!(name(&[("size", "4z")]), "incomplete");
    // Writes of a mixed job use the value after the comma; other jobs use that of their operation.
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
    assert_eq!(name(&[("rw", "write"), ("sequential_skip", "2048"), ("verify", "md5")]), "verify_impossible");
    assert!(of(&[("rw", "write"), ("sequential_skip", "4096"), ("verify", "md5")]).is_ok(), "blocks do not overlap");
    let job = of(&[("rw", "randtrimwrite"), ("iodepth", "8")]).unwrap();
    assert!(job.pattern.steps.trims_first);
    assert!(matches!(job.pattern.order, Order::Random { each_block_once: true, .. }));
}

/// As much as fio 3.33 transfers: bytes of a loop, loops, and I/Os of all of them.
#[test]
fn loops_are_rounded_up_together_and_each_is_a_pass_over_files_with_a_map() {
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
    // Skips: up to the block that would end beyond the file, or without an end.
    assert_eq!(of(&[("bs", "8k"), ("sequential_skip", "8192")]), (61 * 8192, 1, None));
    assert_eq!(of(&[("bs", "8k"), ("sequential_skip", "-8192")]), (123 * 8192, 1, None));
    // Trims come with the writes, each block once or again.
    assert_eq!(of(&[("rw", "randtrimwrite"), ("bs", "48k")]), (20 * 49152, 1, None));
    assert_eq!(of(&[("rw", "randtrimwrite"), ("bs", "48k"), again]), (21 * 49152, 1, None));
    // An alignment that all offsets have anyway.
    assert_eq!(of(&[("rw", "randread"), ("blockalign", "4k")]), (whole, 1, None));
    assert_eq!(of(&[("rw", "randread"), ("blockalign", "512")]), (245 * 4096, 1, None));
}

/// The same number of bytes as in fio 3.33. Where fio ends the job at the first I/O beyond the region, without a message, the
/// job is refused.
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

/// Goal: a rate of one direction does not limit the other, and is not combined with verification, which repeats the I/Os.
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

#[test]
fn time_based_needs_a_runtime_where_fio_ignores_it() {
    assert_eq!(rule_name(&[("size", "1m"), ("time_based", "1")]), "incomplete");
    let job = plan_one(&[("size", "1m"), ("time_based", "1"), ("runtime", "30")]).unwrap();
    assert_eq!((job.limits.is_time_based, job.limits.runtime_ns), (true, Some(30_000_000_000)));
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let size = ("size", "1m");
    for (one, other) in [
        (("rate", "1m"), ("rate_iops", "10")),
        (("bs", "4k"), ("bssplit", "4k/50:8k/50")),
        (("zero_buffers", "1"), ("dedupe_percentage", "5")),
        (("zero_buffers", "1"), ("buffer_pattern", "0xff")),
        (("buffer_pattern", "0xff"), ("dedupe_percentage", "5")),
        (("end_fdatasync", "1"), ("end_fsync", "1")),
        (("end_fdatasync", "1"), ("fsync_on_close", "1")),
        (("drain", "1"), ("hipri", "1")),
        (("rwmixread", "30"), ("rwmixwrite", "30")),
        (("nrfiles", "2"), ("filename", "/mnt/old")),
    ] {
        assert_eq!(rule_name(&[size, ("rw", "rw"), one, other]), "contradiction", "{one:?} {other:?}");
    }
}

#[test]
fn nothing_to_transfer_is_refused() {
    for option in ["size", "filesize", "io_size"] {
        assert_eq!(rule_name(&[("size", "1m"), (option, "0")]), "bad_value", "{option}");
    }
    // `io_size` is reached by whole blocks; a pass over a file ends with the last whole block.
    let io_bytes = |options: &[(&str, &str)]| plan_one(options).unwrap().limits.io_bytes;
    assert_eq!(io_bytes(&[("size", "1m"), ("io_size", "1k")]), 4096);
    assert_eq!(io_bytes(&[("size", "1m"), ("bs", "64k"), ("io_size", "100k")]), 128 << 10);
    assert_eq!(io_bytes(&[("size", "1m"), ("bs", "64k"), ("io_size", "10%")]), 128 << 10);
    assert_eq!(io_bytes(&[("size", "1m"), ("bsrange", "4k-64k"), ("io_size", "1k")]), 4096);
    assert_eq!(io_bytes(&[("size", "100k"), ("bs", "64k")]), 64 << 10);
    assert_eq!(rule_name(&[("size", "1k"), ("bs", "4k")]), "block_beyond_size");
}

#[test]
fn the_same_job_has_the_same_seed_in_each_run_by_default() {
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

/// Goal: ranks do not do the same I/Os; a job that uses another rank's region has that rank's stream; one process is rank 0.
#[test]
fn each_rank_has_a_stream_of_its_own_unless_a_job_wants_equal_ones() {
    let seed = |options: &[(&str, &str)], rank| {
        let machine = Machine { rank, ..machine() };
        let mut job = spec("a", options);
        // As a run of several ranks sets it.
        if let Some(place) = job.options.get_mut("rank_place") {
            place.origin = trueio_model::Origin::Derived { reason: "a rank".to_owned() };
        }
        plan(&[job], &Described, &machine).unwrap().jobs[0].seed
    };
    for given in [&[][..], &[("randseed", "137")], &[("randrepeat", "0")]] {
        let of = |more: &[(&str, &str)], rank| seed(&[&[("size", "1m")], given, more].concat(), rank);
        assert_eq!(of(&[], None), of(&[], Some(0)), "{given:?}");
        let seeds: std::collections::BTreeSet<u64> = (0..100).map(|rank| of(&[], Some(rank))).collect();
        assert_eq!(seeds.len(), 100, "{given:?}");
        assert_eq!(of(&[("rank_place", "3")], Some(2)), of(&[], Some(3)), "{given:?}");
        assert_eq!(of(&[("rank_streams", "equal")], Some(2)), of(&[], None), "{given:?}");
    }
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
fn an_option_without_effect_is_noted() {
    let options = [("size", "1m"), ("rw", "read"), ("fsync", "1"), ("rwmixread", "70"), ("rate_process", "poisson")];
    let notes = plan(&[spec("a", &options)], &Described, &machine()).unwrap().notes;
    for word in ["fsync = 1", "rwmixread = 70", "rate_process = poisson"] {
        assert!(notes.iter().any(|note| note.contains(word) && note.contains("has no effect")), "{word}: {notes:?}");
    }
}

#[test]
fn an_offset_in_percent_is_rounded_down_to_a_block_or_up_by_offset_align() {
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

#[test]
fn options_that_limit_the_queue_are_refused_with_latency_target() {
    let search = [("size", "1m"), ("iodepth", "8"), ("latency_target", "1ms"), ("latency_window", "1s")];
    assert!(plan_one(&search).is_ok());
    for (name, value) in
        [("rate", "1m"), ("rate_iops", "100"), ("thinktime", "1ms"), ("flow", "2"), ("iodepth_low", "2")]
    {
        assert_eq!(rule_name(&[&search[..], &[(name, value)]].concat()), "contradiction", "{name}");
    }
    assert!(plan_one(&[&search[..], &[("thinktime", "0"), ("flow", "0")]].concat()).is_ok());
}

/// The message contains the length of an interval, also if it is the default.
#[test]
fn a_steady_window_of_one_interval_is_refused_with_its_length() {
    let options = [("rw", "read"), ("size", "1m"), ("steadystate", "iops:10%"), ("steadystate_duration", "1s")];
    let refusal = plan(&[spec("a", &options)], &Described, &machine()).unwrap_err();
    let text = refusal.rule.to_string();
    assert!(text.contains("of intervals of 1s (`steadystate_check_interval`)"), "{text}");
}
