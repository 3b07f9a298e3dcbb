//! fio's defaults and rules: the jobs that options are lowered to.

use super::{World, line, text, wrong, wrong_file};
use std::collections::BTreeSet;
use trueio_fio::language::read_job_file;
use trueio_model::{JobSpec, Origin};

#[test]
fn fios_defaults_are_set_in_the_job_with_their_origin() {
    let job = &line("--name=a --size=1m").jobs[0];
    for (option, value) in [("direct", "off"), ("unlink", "false"), ("ioengine", "psync"), ("filename", "a.0.0")] {
        assert_eq!(text(job, option), value);
        assert_eq!(job.options[option].origin, Origin::Preset { name: "fio".into() }, "{option}");
    }
}

#[test]
fn each_clone_is_a_job_with_files_and_a_seed_of_its_own() {
    let request = line("--name=a --size=1m --numjobs=3 --nrfiles=2 --directory=x:y --randseed=7 --offset_increment=1m");
    let files: Vec<&str> = request.jobs.iter().map(|job| text(job, "filename")).collect();
    assert_eq!(files, ["a.0.0:a.0.1", "a.2.0:a.2.1", "a.1.0:a.1.1"], "in the order of fio's results");
    let directories: Vec<&str> = request.jobs.iter().map(|job| text(job, "directory")).collect();
    assert_eq!(directories, ["x", "x", "y"]);
    let seeds: BTreeSet<&str> = request.jobs.iter().map(|job| text(job, "randseed")).collect();
    assert!(seeds.len() == 3 && seeds.contains("7"));
    let distances: Vec<&str> = request.jobs.iter().map(|job| text(job, "region_number")).collect();
    assert_eq!(distances, ["0", "2", "1"]);
    assert!(request.jobs.iter().all(|job| text(job, "offset_increment") == "1m"));
    let names: Vec<&str> = request.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["a.0", "a.2", "a.1"]);
    let numbers: Vec<u32> = request.jobs.iter().map(|job| job.fio.as_ref().unwrap().number).collect();
    assert_eq!(numbers, [1, 2, 3]);

    let shared = line("--name=a --size=1m --numjobs=2 --filename=/dev/sdx");
    assert!(shared.jobs.iter().all(|job| text(job, "filename") == "/dev/sdx"));
    let named = line("--name=a --size=1m --filename_format=f.$FILENUM.$jobname --nrfiles=2");
    assert_eq!(text(&named.jobs[0], "filename"), "f.0.a:f.1.a");
}

/// Goal: jobs with the same name have different drawn delays, and a given seed changes them.
#[test]
fn a_delay_from_a_range_is_drawn_by_the_jobs_position_or_its_seed() {
    let delays = |words: &str| {
        let request = line(&format!("--size=1m --startdelay=1-9 {words}"));
        request.jobs.iter().map(|job| text(job, "startdelay").to_owned()).collect::<Vec<_>>()
    };
    let of_place = delays("--name=a --name=a --name=b --numjobs=2");
    let different: BTreeSet<&String> = of_place.iter().collect();
    assert_eq!((of_place.len(), different.len()), (4, 4), "{of_place:?}");
    assert_eq!(delays("--name=c --name=a --name=b --numjobs=2"), of_place, "a name has no part in it");
    assert_ne!(delays("--randseed=5 --name=a"), delays("--randseed=6 --name=a"));
    assert_eq!(delays("--randseed=5 --name=a"), delays("--name=b --randseed=5"));
}

#[test]
fn groups_begin_at_a_stonewall_and_at_a_new_group_if_a_job_came_before() {
    let request =
        line("--size=1m --name=a --stonewall --name=b --new_group --name=c --stonewall --name=d --wait_for=c --name=e");
    let of = |job: &JobSpec| (job.fio.as_ref().unwrap().group, text(job, "stonewall") == "true");
    let groups: Vec<(u32, bool)> = request.jobs.iter().map(of).collect();
    assert_eq!(groups, [(0, false), (1, false), (2, true), (2, true), (2, false)]);
    let jobs = line("--size=1m --name=a --numjobs=2 --name=b --name=c --wait_for=a").jobs;
    assert_eq!(jobs[3].options["wait_for"].text, "a.0,a.1");
    assert!(jobs.iter().all(|job| !job.options.contains_key("stonewall")), "the parallel jobs continue");
    assert!(wrong("--size=1m --name=a --name=b --wait_for=z").render().contains("names no job before this one"));
}

#[test]
fn a_depth_on_a_blocking_engine_becomes_one_with_a_note() {
    let request = line("--name=a --size=1m --iodepth=32");
    assert_eq!(text(&request.jobs[0], "iodepth"), "1");
    assert!(request.notes[0].contains("`iodepth=32` becomes 1"), "{:?}", request.notes);
    let request = line("--name=a --size=1m --iodepth=32 --ioengine=libaio --iodepth_batch=0");
    assert_eq!((text(&request.jobs[0], "iodepth"), text(&request.jobs[0], "iodepth_batch")), ("32", "32"));
    let request = line("--name=a --size=1m --iodepth=32 --warnings-fatal");
    assert!(request.notes[0].contains("becomes 1"), "a note of ours is no warning of fio's: {:?}", request.notes);
}

/// Goal: `--warnings-fatal` refuses what fio 3.42 refuses with it, and nothing else. Each line was given to fio.
#[test]
fn only_warnings_of_fio_are_fatal() {
    let of = |options: &str| format!("--size=1m --warnings-fatal {options}");
    for options in [
        "--name=a --thread --hipri=0 --clocksource=cpu --iodepth=8",
        "--name=a --ioengine=mmap --direct=1",
        "--name=a --ba=4k --rw=randread",
        "--name=a --ba=8k --rw=read",
        "--name=a --ba=8k --rw=randread --norandommap",
        "--name=a --rw=write --verify=md5 --numjobs=2",
        "--name=a --rw=read --verify=md5 --numjobs=2 --filename=f",
        "--name=a --rw=randrw --verify=md5 --time_based --runtime=1",
        "--name=a --rw=write --verify=md5 --time_based --runtime=1 --verify_backlog=8",
        "--name=a --rw=randwrite --verify=md5 --norandommap",
    ] {
        line(&of(options));
    }
    for (options, warning) in [
        ("--name=a --time_based", "`time_based` has no effect"),
        ("--name=a --ba=8k --rw=randread", "`blockalign` turns the random map off"),
        ("--name=a --rw=write --verify=md5 --numjobs=2 --filename=f", "several jobs write to one file"),
        ("--name=a --rw=write --verify=md5 --time_based --runtime=1", "never reads back"),
        ("--name=a --rw=randwrite --verify=md5 --norandommap --bsrange=4k-8k", "without a random map"),
    ] {
        let error = wrong(&of(options)).render();
        assert!(error.contains(warning), "{options}\n{error}");
        line(&of(&format!("--parse-only {options}")));
    }
}

#[test]
fn the_number_of_reaped_completions_is_the_awaited_one_unless_polling_or_a_maximum_is_set() {
    let of = |options: &str| {
        let job = line(&format!("--name=a --size=1m --iodepth=8 --ioengine=libaio {options}")).jobs.remove(0);
        text(&job, "iodepth_batch_complete_max").to_owned()
    };
    assert_eq!(of(""), "1");
    assert_eq!(of("--iodepth_batch_complete=4"), "4");
    assert_eq!(of("--iodepth_batch_complete_max=6"), "6");
    assert_eq!(of("--iodepth_batch_complete_min=0"), "", "all that are there");
    assert_eq!(of("--iodepth=1"), "");
}

#[test]
fn trims_without_a_backlog_have_no_effect() {
    let of = |words: &str| {
        let request = line(&format!("--name=a --size=1m --rw=write --verify=md5 {words}"));
        let options = &request.jobs[0].options;
        (["trim_percentage", "trim_backlog_batch"].map(|name| options.contains_key(name)), request.notes.concat())
    };
    for (words, name) in [("--trim_percentage=20", "trim_percentage"), ("--trim_backlog_batch=2", "trim_backlog_batch")]
    {
        let (set, notes) = of(words);
        assert_eq!(set, [false; 2], "{words}");
        assert!(notes.contains(&format!("`{name}` has no effect without `trim_backlog`, as in fio")), "{notes}");
    }
    let (set, notes) = of("--trim_percentage=20 --trim_backlog_batch=2 --trim_backlog=4");
    assert!(set == [true; 2] && !notes.contains("no effect without"), "{notes}");
}

#[test]
fn reads_and_writes_keep_their_own_rates() {
    let of = |options: &str| {
        let job = line(&format!("--name=a --size=1m {options}")).jobs.remove(0);
        (text(&job, "rate").to_owned(), text(&job, "rate_iops").to_owned(), text(&job, "rwmixread").to_owned())
    };
    let expect = |rate: &str, iops: &str, mix: &str| (rate.to_owned(), iops.to_owned(), mix.to_owned());
    assert_eq!(of("--rate=1m"), expect("1m", "", ""));
    assert_eq!(of("--rw=write --rate=1m,2m"), expect("2m", "", ""));
    assert_eq!(of("--rw=randrw --rate_iops=300,100"), expect("", "300,100", ""));
    assert_eq!(of("--rw=randrw --rwmixread=70 --rate_iops=100"), expect("", "100,100", "70"));
    let least = |words: &str| line(&format!("--name=a --size=1m --rw=rw {words}")).jobs.remove(0);
    assert_eq!(text(&least("--rate_min=1m"), "rate_min"), "1m,1m");
    assert_eq!(text(&least("--rate_min=0 --rate_iops_min=10,5"), "rate_iops_min"), "10,5,5");
    assert!(wrong("--name=a --size=1m --rate_min=1m --rate_iops_min=1").render().contains("exclude each other"));
    // As in fio, a minimum above a rate is refused of whichever direction, and one up to it, or without a rate, is not.
    for words in
        ["--rate=1m --rate_min=2m", "--rate_iops=10,5 --rate_iops_min=6", "--rw=read --rate=2m,1m --ratemin=1m,2m"]
    {
        assert!(wrong(&format!("--name=a --size=1m {words}")).render().contains("the job could only fail"), "{words}");
    }
    assert_eq!(text(&least("--rate=1m --rate_min=1m"), "rate_min"), "1m,1m");
    assert_eq!(text(&least("--rate=1m,0 --rate_min=1m,2m"), "rate_min"), "1m,2m,2m");
    let read = line("--name=a --size=1m --rate_min=1m").jobs.remove(0);
    assert_eq!(text(&read, "rate_min"), "1m");
    // One direction may have no rate, and `trimwrite` has that of the writes.
    assert_eq!(of("--rw=rw --rate=1m,"), expect("1m,0", "", ""));
    assert_eq!(of("--rw=randrw --rate_iops=,100"), expect("", "0,100", ""));
    assert_eq!(of("--rw=trimwrite --rate=,1m"), expect("1m", "", ""));
    assert_eq!(of("--rw=randtrimwrite --rate=1m,"), expect("0", "", ""));
}

#[test]
fn the_last_of_direct_and_buffered_applies() {
    assert_eq!(text(&line("--name=a --size=1m --buffered=0").jobs[0], "direct"), "require");
    assert_eq!(text(&line("--direct=1 --name=a --size=1m --buffered=1").jobs[0], "direct"), "off");
    for (words, direct) in [
        ("--direct=1 --buffered=1", "off"),
        ("--buffered=1 --direct=1", "require"),
        ("--direct=0 --buffered=0", "require"),
        ("--buffered=0 --direct=0", "off"),
    ] {
        let both = line(&format!("--name=a --size=1m {words}"));
        assert_eq!(text(&both.jobs[0], "direct"), direct, "{words}");
        assert!(both.notes.iter().any(|note| note.contains("the last applies")), "{words}: {:?}", both.notes);
    }
    assert_eq!(line("--name=a --size=1m --direct=1 --buffered=0").notes, Vec::<String>::new());
    let mapped = line("--name=a --size=1m --ioengine=mmap --direct=1");
    assert_eq!(text(&mapped.jobs[0], "direct"), "off");
    assert!(mapped.notes.iter().any(|note| note.contains("page cache")), "{:?}", mapped.notes);
}

#[test]
fn a_verify_interval_that_does_not_fit_becomes_fios() {
    let of = |words: &str| {
        let job = line(&format!("--name=a --size=1m --rw=write --verify=md5 {words}")).jobs.remove(0);
        text(&job, "verify_interval").to_owned()
    };
    assert_eq!(of("--bs=4k --verify_interval=3000"), "4096");
    assert_eq!(of("--bs=4k --verify_interval=8k"), "4096");
    assert_eq!(of("--bs=12k --verify_interval=8k"), "12288");
    assert_eq!(of("--bsrange=8k-12k --verify_interval=8k"), "4096");
    assert_eq!(of("--bs=4k --verify_interval=512"), "512");
    assert_eq!(of("--bs=1k,4k --rw=rw --verify_interval=4k"), "1024");
}

#[test]
fn a_block_that_differs_ends_the_job_unless_it_is_to_continue() {
    let of = |words: &str| {
        let job = line(&format!("--name=a --size=1m --verify=md5 {words}")).jobs.remove(0);
        job.options.get("verify_fatal").map(|set| set.text.clone())
    };
    assert_eq!(of("").as_deref(), Some("true"));
    assert_eq!(of("--verify_fatal=0").as_deref(), Some("true"));
    assert_eq!(of("--continue_on_error=verify"), None);
    assert_eq!(of("--continue_on_error=verify --verify_fatal=1").as_deref(), Some("true"));
    assert_eq!(line("--name=a --size=1m").jobs[0].options.get("verify_fatal"), None);
}

#[test]
fn a_generator_that_visits_each_block_once_needs_no_map() {
    let of = |words: &str| {
        let request = line(&format!("--name=a --size=1m --rw=randread {words}"));
        (text(&request.jobs[0], "norandommap").to_owned(), request.notes.len())
    };
    assert_eq!(of("--norandommap --random_generator=lfsr"), ("false".to_owned(), 0));
    assert_eq!(of("--norandommap --random_generator=tausworthe64"), ("true".to_owned(), 1));
}

#[test]
fn commands_in_a_job_are_refused_unless_the_command_line_allows_them() {
    let error = wrong_file("[a]\nsize=1m\nexec_prerun=rm -rf /\n");
    assert!(error.contains("--allow-exec"), "{error}");
    let request = line("--allow-exec --name=a --size=1m --exec_prerun=true");
    assert!(request.settings.allows_exec);
}

#[test]
fn a_job_file_permits_no_destruction_no_program_and_no_network() {
    for option in
        ["overwrite_signature=ext4", "overwrite_existing=/dev/sdx", "command=rm", "source=http://x/y", "strace=1"]
    {
        let error = wrong_file(&format!("[a]\nsize=1m\n{option}\n"));
        assert!(error.contains("job.fio:3:1"), "{error}");
    }
    assert_eq!(text(&line("--name=a --size=1m --overwrite_signature=ext4").jobs[0], "overwrite_signature"), "ext4");
    assert!(wrong("--name=a --size=1m --source=http://x/y").render().contains("not an option of fio's language"));
}

#[test]
fn unsupported_options_are_refused_by_name_with_the_nearest_alternative() {
    for (options, sentence) in [
        ("--ramp_size=1m", "instead: `ramp_time`"),
        ("--ioengine=rados", "storage across a network"),
        ("--merge_blktrace_file=x", "`blkparse` prints a trace"),
        ("--bssplit=4k/80:8k/80:16k/", "sum to 160"),
    ] {
        let error = wrong(&format!("--name=a --size=1m {options}")).render();
        assert!(error.contains(sentence), "{options}: {error}");
    }
}

#[test]
fn options_without_effect_are_noted_unless_they_are_off() {
    let request = line("--name=a --size=1m --thread --random_generator=lfsr --verify=0 --zonemode=none --pre_read=0");
    assert_eq!(request.notes.len(), 2, "{:?}", request.notes);
    assert!(request.notes[0].starts_with("`thread` has no effect"));
}

#[test]
fn fios_units_apply_and_ignored_text_after_a_number_is_refused() {
    let of =
        |options: &str, option: &str| text(&line(&format!("--name=a --size=1g {options}")).jobs[0], option).to_owned();
    assert_eq!(of("--runtime=1min", "runtime"), "60s");
    assert_eq!(of("--runtime=1sec", "runtime"), "1s");
    assert_eq!(of("--io_size=1.5m", "io_size"), "1536k");
    assert_eq!(of("--io_size=1mib", "io_size"), "1000000");
    assert_eq!(of("--kb_base=1000 --io_size=4k", "io_size"), "4000");
    // On the command line it applies from its position on, also to options of the parser itself.
    assert_eq!(of("--io_size=4k --kb_base=1000", "io_size"), "4k");
    assert_eq!(of("--rate=4k --kb_base=1000", "rate"), of("--rate=4096", "rate"));
    assert_eq!(of("--kb_base=1000 --rate=4k --kb_base=1024", "rate"), of("--rate=4000", "rate"));
    assert_eq!(of("--thinktime=50", "thinktime"), "50us");
    for delay in ["2-2", "2:2", "2s,2s", "2000ms:", "2:2:5"] {
        assert_eq!(of(&format!("--startdelay={delay}"), "startdelay"), "2s", "{delay}");
    }
    for (option, expected) in [("runtime", "4s"), ("bs", "4k"), ("offset", "4k"), ("loops", "4"), ("size", "4k")] {
        let unit = expected.trim_start_matches('4');
        assert_eq!(of(&format!("--{option}=+4{unit}"), option), expected);
    }
    assert_eq!(of("--cpumask=5", "cpus_allowed"), "0,2");
    assert_eq!(of("--bs=4096B", "bs"), "4k");
}

/// Goal: every `filename` adds files, on the command line, in a job file, and in a job after `[global]`. fio has done so
/// for ever: 23 public job files name devices that way.
#[test]
fn each_filename_adds_files_as_in_fio() {
    assert_eq!(text(&line("--name=j --size=1m --filename=a --filename=b:c").jobs[0], "filename"), "a:b:c");
    let file = "[global]\nsize=1m\nfilename=a\n[j]\nfilename=b\nfilename=c\n[k]\n";
    let request =
        read_job_file("job.fio", file, &World::default()).unwrap_or_else(|error| panic!("{}", error.render()));
    let files: Vec<&str> = request.jobs.iter().map(|job| text(job, "filename")).collect();
    assert_eq!(files, ["a:b:c", "a"]);
}

#[test]
fn delays_count_from_the_start_of_the_run() {
    let job = &line("--name=j --size=1m --stonewall --startdelay=2").jobs[0];
    assert_eq!((text(job, "startdelay"), text(job, "startdelay_from")), ("2s", "run"));
}

#[test]
fn number_ios_has_no_effect_next_to_time_based_with_a_runtime() {
    let request = line("--name=j --size=1m --number_ios=10 --time_based --runtime=1");
    assert_eq!(text(&request.jobs[0], "number_ios"), "");
    assert!(request.notes.iter().any(|note| note.contains("`number_ios` has no effect")), "{:?}", request.notes);
    let without = line("--name=j --size=1m --number_ios=10 --time_based");
    assert_eq!(text(&without.jobs[0], "number_ios"), "10");
}

/// Goal: of a switch any number but 0 is on.
#[test]
fn a_switch_is_on_with_any_number_other_than_0() {
    for (word, is_on) in [("time_based", "true"), ("time_based=600", "true"), ("time_based=0", "")] {
        let job = &line(&format!("--name=j --size=1m --runtime=1 --{word}")).jobs[0];
        assert_eq!(text(job, "time_based"), is_on, "{word}");
    }
    let job = &line("--name=j --size=1m --norandommap=2 --refill_buffers=0x10 --thread=16").jobs[0];
    assert_eq!((text(job, "norandommap"), text(job, "refill_buffers")), ("true", "true"));
    let bad = wrong("--name=j --size=1m --time_based=long").render();
    assert!(bad.contains("`long` is not a whole number"), "{bad}");
}

/// Goal: a negative number is on, as in fio, which compares the values of an option that is 0 or 1 with the largest one only.
#[test]
fn a_switch_is_on_with_a_negative_number() {
    let values = |value: &str| {
        let job = &line(&format!(
            "--name=j --size=1m --rw=write --runtime=1 --time_based={value} --end_fsync={value} --direct={value} --invalidate={value}"
        ))
        .jobs[0];
        ["time_based", "end_fsync", "direct", "invalidate"].map(|name| text(job, name).to_owned())
    };
    let (off, on) = (values("0"), values("1"));
    for value in ["-1", "+1", "0x1", "-7"] {
        assert_eq!(values(value), on, "{value}");
    }
    assert!(values("-0") == off && values("00") == off && off != on, "{off:?} {on:?}");
    let job = &line("--name=j --size=1m --buffered=-1").jobs[0];
    assert_eq!(text(job, "direct"), "off");
    for word in ["direct=2", "direct=-", "end_fsync=-x", "disk_util=2", "disk_util=--1", "thread=-"] {
        let bad = wrong(&format!("--name=j --size=1m --{word}")).render();
        assert!(bad.contains(" is not "), "{word}: {bad}");
    }
    line("--name=j --size=1m --disk_util=-1 --thread=-1");
}

/// Goal: a size of 0 is fio's default, as far as the files go, and a fraction of zeros of a percentage has no effect.
#[test]
fn a_size_of_0_is_no_size_and_percentages_may_have_a_fraction_of_zeros() {
    let job =
        &line("--size=1m --name=j --size=0 --filename=a --rw=randrw --rwmixread=70.0 --percentage_random=50.0").jobs[0];
    assert_eq!((text(job, "size"), text(job, "rwmixread"), text(job, "percentage_random")), ("", "70", "50"));
    assert_eq!(text(&line("--size=0 --name=j --size=4k").jobs[0], "size"), "4k");
    assert!(wrong("--name=j --size=1m --rwmixread=70.5").render().contains("70.5"));
}

#[test]
fn sprandom_is_a_distribution_of_random_writes_with_fios_conditions() {
    let job =
        &line("--name=a --size=32m --rw=randwrite --sprandom=1 --spr_op=0.1 --spr_num_regions=50 --spr_cs=32k").jobs[0];
    assert_eq!(text(job, "random_distribution"), "precondition:0.1:50:32k");
    let job = &line("--name=a --size=32m --rw=randwrite --sprandom=1 --norandommap --random_generator=lfsr").jobs[0];
    assert_eq!(text(job, "random_distribution"), "precondition:0.15:100:0");
    for words in [
        "--rw=randread",
        "--rw=write",
        "--rw=randwrite --norandommap=0",
        "--rw=randwrite --random_generator=tausworthe",
        "--rw=randwrite --spr_op=1.5",
    ] {
        assert!(wrong(&format!("--name=a --size=32m --sprandom=1 {words}")).render().contains("sprandom"), "{words}");
    }
}

/// Goal: a file that is named several times is used as often, as in fio, which has a file of its own for each name.
#[test]
fn a_file_with_several_names_is_used_as_often() {
    let job = &line("--filename=a --name=j --filename=a --size=1m").jobs[0];
    let texts = ["filename", "size", "io_size"].map(|option| text(job, option));
    assert_eq!(texts, ["a", "512k", "1m"]);
    let job = &line("--name=j --filename=a:b:a:b --loops=3").jobs[0];
    assert_eq!(["filename", "loops"].map(|option| text(job, option)), ["a:b", "6"]);
}

#[test]
fn sizes_of_sequential_and_random_ios_are_chosen_by_the_order() {
    for (rw, size) in [("read", "4k"), ("randwrite", "16k"), ("randrw", "16k")] {
        let job = &line(&format!("--name=a --size=1m --rw={rw} --bs=4k,16k --bs_is_seq_rand=1")).jobs[0];
        assert_eq!(text(job, "bs"), size, "{rw}");
    }
    assert!(
        wrong("--name=a --size=1m --rw=randread --bs_is_seq_rand=1 --percentage_random=50")
            .render()
            .contains("seq_rand")
    );
}

/// Goal: what one job reads back, no parallel job is writing; jobs that use other blocks, or run later, keep their backlog.
#[test]
fn a_backlog_in_a_file_that_parallel_jobs_write_is_read_back_at_the_end() {
    let job = "--rw=write --size=1m --verify=md5 --verify_backlog=8 --filename=f";
    let backlogs = |line_text: &str| {
        let request = line(line_text);
        let noted =
            request.notes.iter().any(|note| note.contains("`verify_backlog` in files that parallel jobs write"));
        let of_jobs: Vec<bool> = request.jobs.iter().map(|job| !text(job, "verify_backlog").is_empty()).collect();
        assert_eq!(noted, of_jobs.contains(&false), "{line_text}");
        of_jobs
    };
    assert_eq!(backlogs(&format!("--name=a {job} --numjobs=2")), [false, false]);
    assert_eq!(backlogs(&format!("--name=a {job} --name=b {job}")), [false, false]);
    assert_eq!(backlogs(&format!("--name=a {job} --name=b {job} --stonewall")), [true, true]);
    assert_eq!(backlogs(&format!("--name=a {job} --name=b {job} --offset=1m")), [true, true]);
    assert_eq!(backlogs(&format!("--name=a {job} --name=b {job} --offset=512k")), [false, false]);
    assert_eq!(backlogs(&format!("--name=a {job} --name=b {job} --filename=g")), [false, false], "f is in both");
    let other = job.replace("=f", "=g");
    assert_eq!(backlogs(&format!("--name=a {job} --name=b {other}")), [true, true]);
}

#[test]
fn defragmenting_needs_the_name_of_a_donor_as_in_fio() {
    let job = "--name=a --size=1m --rw=write --ioengine=e4defrag";
    assert!(wrong(job).render().contains("has no `donorname`"));
    let job = line(&format!("{job} --donorname=d --inplace=1")).jobs.remove(0);
    assert_eq!((text(&job, "ioengine"), text(&job, "inplace")), ("e4defrag", "true"));
}

/// Goal: what is left out is refused by its name, also by its letter and a part of the name, with an alternative.
#[test]
fn profiles_and_measurements_of_the_tool_are_refused_by_name() {
    for (words, name, instead) in [
        ("--profile=tiobench --size=2", "profile", "as a job file"),
        ("--profile=act --device-names=/dev/sdx", "profile", "as a job file"),
        ("-p tiobench", "profile", "as a job file"),
        ("--prof tiobench", "profile", "as a job file"),
        ("--crctest", "crctest", "`verify`"),
        ("--crctest=crc32c", "crctest", "`verify`"),
        ("-G", "crctest", "`verify`"),
        ("--cpuclock-test", "cpuclock-test", "`clock_and_cpu`"),
        ("-T", "cpuclock-test", "`clock_and_cpu`"),
    ] {
        let error = wrong(words).render();
        assert!(error.contains(&format!("`--{name}` is not done here")) && error.contains(instead), "{words}: {error}");
    }
}

#[test]
fn repeats_replace_fixed_content_as_in_fio() {
    for (words, name) in [("--zero_buffers", "zero_buffers"), ("--buffer_pattern=0xff", "buffer_pattern")] {
        let request = line(&format!("--name=a --size=1m --rw=write --dedupe_percentage=30 {words}"));
        assert_eq!(text(&request.jobs[0], name), "");
        assert!(
            request.notes.iter().any(|note| note.contains("has no effect next to `dedupe_percentage=30`")),
            "{name}"
        );
        let request = line(&format!("--name=a --size=1m --rw=write --dedupe_percentage=0 {words}"));
        assert_ne!(text(&request.jobs[0], name), "");
    }
    let request = line("--name=a --size=1m --rw=write --zero_buffers --buffer_pattern=0xff");
    assert_eq!(text(&request.jobs[0], "zero_buffers"), "");
    assert!(
        request.notes.iter().any(|note| note.contains("no effect next to `buffer_pattern`")),
        "{:?}",
        request.notes
    );
}

#[test]
fn what_has_no_effect_next_to_verify_is_dropped_as_in_fio() {
    for (words, name, partner) in [
        ("--verify=null --verify_pattern_interval=512", "verify_pattern_interval", "`verify_pattern`"),
        ("--verify=meta --verify_backlog_batch=4", "verify_backlog_batch", "`verify_backlog`"),
        ("--verify=meta --verify_backlog=0 --verify_backlog_batch=4", "verify_backlog_batch", "`verify_backlog`"),
        ("--verify_pattern=0xff --dedupe_percentage=30", "dedupe_percentage", "`verify`"),
        ("--verify=xxhash --zero_buffers", "zero_buffers", "`verify`"),
    ] {
        let request = line(&format!("--name=a --size=1m --rw=write {words}"));
        assert_eq!(text(&request.jobs[0], name), "", "{words}");
        assert!(
            request.notes.iter().any(|note| note.contains(name) && note.contains(partner)),
            "{words}: {:?}",
            request.notes
        );
    }
    let both = "--verify_pattern=0xff --verify_pattern_interval=512 --verify_backlog=8 --verify_backlog_batch=4";
    let kept = line(&format!("--name=a --size=1m --rw=write {both}")).jobs.remove(0);
    assert_eq!((text(&kept, "verify_pattern_interval"), text(&kept, "verify_backlog_batch")), ("512", "4"));
    // Blocks without headers may repeat each other.
    for (words, name, value) in
        [("--dedupe_percentage=30", "dedupe_percentage", "30"), ("--zero_buffers", "zero_buffers", "true")]
    {
        let null = line(&format!("--name=a --size=1m --rw=write --verify=null {words}")).jobs.remove(0);
        assert_eq!(text(&null, name), value);
    }
}

#[test]
fn root_saves_a_verification_state_and_other_users_do_not() {
    let of = |user: &str| {
        let job = line(&format!("--name=a --size=1m --rw=write --verify=md5 {user}")).jobs.remove(0);
        text(&job, "verify_state_save").to_owned()
    };
    assert_eq!([of(""), of("--uid=0"), of("--gid=0")], ["true"; 3]);
    assert_eq!([of("--uid=65534"), of("--uid=0 --gid=65534")], [""; 2]);
}

#[test]
fn a_job_that_appends_ends_with_its_first_pass_as_in_fio() {
    let of = |words: &str| {
        let job = line(&format!("--name=a --size=64k --rw=write {words}")).jobs.remove(0);
        text(&job, "io_size").to_owned()
    };
    assert_eq!(of("--file_append=1 --io_size=2m"), "");
    assert_eq!([of("--file_append=1 --io_size=32k"), of("--io_size=2m")], ["32k", "2m"]);
}

/// In fio a file that is appended to is not laid out before: drawn set 114722.
#[test]
fn a_job_that_appends_does_not_write_its_file_before_as_in_fio() {
    let of = |words: &str| {
        let job = line(&format!("--name=a --size=64k --rw=randwrite {words}")).jobs.remove(0);
        text(&job, "overwrite").to_owned()
    };
    assert_eq!([of("--overwrite=1"), of("--overwrite=1 --file_append=1")], ["true", ""]);
}
