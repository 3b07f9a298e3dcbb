//! Values of options, and options that combine.

use super::{World, line, text, words, wrong};
use trueio_fio::language::{FioRequest, read, read_job_file};
use trueio_model::JobSpec;

#[test]
fn an_engine_on_names_gets_its_count_and_no_file_names_and_cpuio_its_load() {
    let job = &line("--name=n --ioengine=filecreate --nrfiles=500 --filesize=4k --rw=write").jobs[0];
    assert_eq!((text(job, "nrfiles"), text(job, "filename")), ("500", ""));
    let job = &line("--name=b --ioengine=cpuio --cpuload=30 --cpuchunks=1000 --runtime=1").jobs[0];
    assert_eq!((text(job, "cpuload"), text(job, "cpuchunks")), ("30", "1ms"));
}

#[test]
fn a_number_after_rw_sets_random_every_or_sequential_skip() {
    let job = |text: &str| line(&format!("--name=j --size=1m {text}")).jobs[0].clone();
    assert_eq!(text(&job("--rw=randread:8"), "random_every"), "8");
    let skips = job("--rw=write:4k");
    assert_eq!((text(&skips, "rw"), text(&skips, "sequential_skip")), ("write", "4096"));
    assert_eq!(text(&job("--rw=read:-8k"), "sequential_skip"), "-8192");
    assert_eq!(text(&job("--rw=randtrimwrite"), "rw"), "randtrimwrite");
    assert_eq!(text(&job("--ba=512"), "blockalign"), "512");
    assert_eq!(text(&job("--ba=8k,16k"), "blockalign"), "8k,16k,16k");
    assert_eq!(text(&job("--percentage_random=100,0"), "percentage_random"), "100,0,0");
    assert!(wrong("--name=j --size=1m --rw=write:x").render().contains("is not a number"));
}

/// Goal: the numbers and sizes that fio uses out of several are used.
#[test]
fn numbers_of_directions_may_be_separated_by_colons_and_the_most_specific_size_applies() {
    let job = |text: &str| line(&format!("--name=j --size=1m {text}")).jobs[0].clone();
    for text_ in ["1m,2m", "1m:2m", "1m-2m"] {
        assert_eq!(text(&job(&format!("--rw=rw --rate={text_}")), "rate"), "1m,2m", "{text_}");
    }
    assert_eq!(text(&job("--rw=write --rate_iops=100-200"), "rate_iops"), "200");
    let sizes = |job: &JobSpec| ["bs", "bsrange", "bssplit"].map(|name| text(job, name).to_owned());
    // In any order.
    for options in ["--bs=4k --bsrange=1k-2k", "--bsrange=1k-2k --bs=4k"] {
        assert_eq!(sizes(&job(options)), ["", "1k-2k", ""], "{options}");
    }
    let request = line("--name=j --size=1m --bs=4k --bsrange=1k-2k --bssplit=8k/50:16k/50");
    assert_eq!(sizes(&request.jobs[0]), ["", "", "8k/50:16k/50"]);
    assert!(
        request.notes.contains(&"`bs` has no effect next to `bssplit`, as in fio".to_owned()),
        "{:?}",
        request.notes
    );
    assert_eq!(text(&job("--loops=0"), "loops"), "1", "as in fio");
    // A job's own option overrides that of all jobs.
    let request = line("--bsrange=1k-2k --name=j --size=1m --bs=4k");
    assert_eq!(sizes(&request.jobs[0]), ["4k", "", ""]);
}

/// Goal: `iomem_align` sets the number of bytes after the start of a page, as in fio.
#[test]
fn buffers_begin_at_the_offset_from_a_page_that_iomem_align_sets() {
    let offset =
        |options: &str| text(&line(&format!("--name=j --size=1m {options}")).jobs[0], "buffer_offset").to_owned();
    for (align, bytes) in [("512", "512"), ("4k", "0"), ("16k", "0"), ("3000", "3000"), ("5000", "904"), ("0", "0")] {
        assert_eq!(offset(&format!("--iomem_align={align}")), bytes, "{align}");
    }
    assert_eq!(offset("--mem_align=1"), "1");
    assert!(wrong("--name=j --size=1m --iomem_align=x").render().contains("not a number"));
    assert!(wrong("--name=j --size=1m --iomem_align=1 --buffer_offset=2").render().contains("set only one of them"));
    assert!(wrong("--name=j --size=1m --ioengine=mmap --thp=1").render().contains("never reach the file"));
    let stat = |more: &str| text(&line(&format!("--name=j --size=1m {more}")).jobs[0], "stat_type").to_owned();
    assert_eq!(stat("--ioengine=filestat"), "stat", "as in fio");
    assert_eq!(stat("--ioengine=filestat --stat_type=statx"), "statx");
    assert_eq!(stat("--ioengine=psync"), "");
}

#[test]
fn a_job_has_a_name() {
    for (words, file) in [("--name= --rw=read --size=4k", None), ("j.fio", Some("[a]\nname=\nsize=4k\n"))] {
        let world = World::with(&file.map(|text| ("j.fio", text)).into_iter().collect::<Vec<_>>());
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let error = read(&words, &world).expect_err("a job without a name").render();
        assert!(error.contains("`name` is empty"), "{error}");
    }
}

#[test]
fn each_clone_replays_the_next_log_of_a_list() {
    let request = line("--name=a --read_iolog=x:y --numjobs=3 --read_iolog_chunked=1");
    let logs: Vec<&str> = request.jobs.iter().map(|job| job.options["read_iolog"].text.as_str()).collect();
    assert_eq!(logs, ["x", "x", "y"], "clones 0, 2 and 1");
    assert!(request.jobs.iter().all(|job| !job.options.contains_key("filename")), "the log names the files");
}

#[test]
fn fios_five_options_of_priorities_become_cmdprio_bssplit() {
    let shares = |options: &str| {
        let request = line(&format!("--name=a --size=1m --ioengine=libaio --rw=randrw {options}"));
        text(&request.jobs[0], "cmdprio_bssplit").to_owned()
    };
    for (options, expected) in [
        ("--cmdprio_percentage=20", "*/20/1/0"),
        ("--cmdprio_percentage=20,0 --cmdprio_class=2 --cmdprio=1", "*/20/2/1,"),
        ("--cmdprio_percentage=20,30,40 --cmdprio_class=2,3 --cmdprio=1,2 --cmdprio_hint=0,7", "*/20/2/1,*/30/3/2/7"),
        ("--cmdprio_percentage=5 --cmdprio_class=0", "*/5/1/0"),
        ("--cmdprio_percentage=0", ""),
        ("--cmdprio_percentage=0 --cmdprio_bssplit=4k/10", "4k/10/1/0"),
        ("--cmdprio_bssplit=4k/10:64k/20/3/0,8k/50/2/1/4 --cmdprio_class=2", "4k/10/2/0:64k/20/3/0,8k/50/2/1/4"),
        ("--cmdprio_bssplit=4k/10, --cmdprio=3", "4k/10/1/3,"),
        ("--cmdprio_bssplit=4k/0:8k", ""),
        ("--cmdprio_bssplit=4k/1,8k/2,16k/3", "4k/1/1/0,8k/2/1/0"),
    ] {
        assert_eq!(shares(options), expected, "{options}");
    }
    let lonely = line("--name=a --size=1m --ioengine=libaio --cmdprio_class=2");
    assert!(lonely.notes.iter().any(|note| note.contains("`cmdprio_class` has no effect")), "{:?}", lonely.notes);
}

#[test]
fn priorities_that_contradict_each_other_or_cannot_be_are_refused() {
    for (options, needle) in [
        ("--cmdprio_percentage=20 --cmdprio_bssplit=4k/10", "contradict each other"),
        ("--cmdprio_percentage=101", "from 0 to 100"),
        ("--cmdprio_percentage=1,2,3,4", "are three"),
        ("--cmdprio=8", "from 0 to 7"),
        ("--cmdprio_class=4", "from 0 to 3"),
        ("--cmdprio_hint=1024", "from 0 to 1023"),
        ("--cmdprio_bssplit=4k/70:4k/40", "sum to 110"),
        ("--cmdprio_bssplit=4k/10/2/9", "from 0 to 7"),
        ("--cmdprio_bssplit=4k/10/2", "SIZE/PERCENT"),
        ("--cmdprio_bssplit=4kx/10", "not a unit"),
    ] {
        let error = wrong(&format!("--name=a --size=1m --ioengine=libaio {options}")).render();
        assert!(error.contains(needle), "{options}: {error}");
    }
}

#[test]
fn opendir_names_files_to_read_and_none_to_write() {
    let request = line("--name=o --opendir=tree --rw=randread --nrfiles=3");
    assert_eq!(text(&request.jobs[0], "filename"), "tree/a:tree/b\\:c");
    assert_eq!(request.notes.len(), 2, "{:?}", request.notes);
    for (more, words) in [
        ("--opendir=tree --rw=randwrite", "only files that are named are written"),
        ("--opendir=tree --filename=x", "both set the files"),
        ("--opendir=bare", "no file below `bare`"),
        ("--opendir=gone", "there is none"),
    ] {
        let error = wrong(&format!("--name=o {more}")).render();
        assert!(error.contains(words), "{more}\n{error}");
    }
}

#[test]
fn conditional_options_set_their_row_only_if_the_condition_holds() {
    let of = |text: &str| line(&format!("--name=a --size=1m --rw=write {text}")).jobs.remove(0);
    let percent = "dedupe_working_set_percentage";
    assert_eq!(text(&of("--dedupe_mode=working_set"), percent), "5");
    assert_eq!(text(&of("--dedupe_mode=working_set --dedupe_working_set_percentage=20"), percent), "20");
    assert_eq!(text(&of("--dedupe_mode=repeat --dedupe_working_set_percentage=20"), percent), "");
    assert_eq!(text(&of("--offset=10% --offset_align=4k"), "offset_align"), "4k");
    assert_eq!(text(&of(""), "invalidate"), "each_pass");
    assert_eq!(text(&of("--invalidate=0"), "invalidate"), "off");
    assert_eq!(text(&of("--ignore_error=,ENOSPC:EDQUOT --error_dump=0"), "ignore_error"), ",ENOSPC:EDQUOT");
    assert!(wrong("--name=a --size=1m --ignore_error=,,EILSEQ").render().contains("would ignore blocks"));
    for text in ["--write_barrier=8", "--experimental_verify=1 --verify=crc32c", "--continue_on_error=write"] {
        of(text);
    }
}

/// What fio f5344384 accepts and refuses under `--parse-only`, of each option alone.
#[test]
fn values_are_refused_where_fio_refuses_them() {
    let job = |value: &str| format!("--name=j --size=1m {value}");
    for value in [
        "--stonewall=",
        "--thread=",
        "--time_based=",
        "--invalidate=",
        "--overwrite=",
        "--group_reporting=",
        "--description=",
        "--ioscheduler=",
        "--write_bw_log=",
        "--plids=",
        "--plids=70000",
        "--plids=99999999999999999999",
        "--fdp_pli=1,0x10000",
        "--plids=5-2",
        "--plids=0-128",
        "--zonemode=0",
        "--log_window_value=2",
        "--dataplacement=0",
        "--max_open_zones=70000",
        "--log_entries=1,2",
        "--num_range=257",
        "--num_range=2 --rw=randtrim",
        "--num_range=2 --rw=trimwrite",
    ] {
        wrong(&job(value));
    }
    for value in [
        "--stonewall",
        "--plids=1,2,3",
        "--plids=0x10-20",
        "--plids=0-127",
        "--plids=-1",
        "--plids=x",
        "--zonemode=none",
        "--dataplacement=none",
        "--max_open_zones=4096",
        "--log_entries=1024,2",
        "--num_range=0",
        "--num_range=256 --rw=randread",
        "--num_range=1 --rw=randtrim",
        "--direct=1.5",
        "--direct=0,1",
        "--invalidate=1,0",
    ] {
        line(&job(value));
    }
    for (value, spelled) in
        [("--io_limit=5x", "`io_limit`: "), ("--fdp_pli=70000", "`fdp_pli`: "), ("--blocksize=x", "`blocksize`: ")]
    {
        let error = wrong(&job(value)).render();
        assert!(error.contains(spelled), "{error}");
    }
    let skip = |words: &str| text(&line(&job(words)).jobs[0], "zoneskip").to_owned();
    assert_eq!(skip("--zonemode=zbd --zonesize=64k --zoneskip=2z"), "128k");
    assert_eq!(skip("--zoneskip=2z --zonemode=zbd --zonesize=64k --zoneskip=4k"), "4k");
    assert!(wrong(&job("--zonemode=zbd --zoneskip=2z")).render().contains("counts zones"));
    let file = |line: &str| {
        let text = format!("[a]\nsize=4k\n{line}\n");
        read(&["j.fio".to_owned()], &World::with(&[("j.fio", text.as_str())]))
    };
    for line in ["stonewall=", "end_fsync= ", "opendir=", "write_iolog="] {
        let error = file(line).expect_err("nothing after the sign").render();
        assert!(error.contains("has no value"), "{line}: {error}");
    }
    for line in ["stonewall", "write_bw_log=", "write_bw_log", "plids="] {
        assert!(file(line).is_ok(), "{line}");
    }
}

/// Values in the example job files of fio.
#[test]
fn values_of_fios_example_files_are_accepted() {
    let names =
        line("--name=t0 --create_on_open=1 --nrfiles=31250 --ioengine=filecreate --fallocate=none --filesize=4k");
    assert!(names.notes.iter().any(|note| note.contains("`create_on_open` has no effect")), "{:?}", names.notes);
    let zones = line("--name=z --size=2g --rw=randread --norandommap --random_distribution=zoned:50/5:30/15:20/");
    assert_eq!(text(&zones.jobs[0], "random_distribution"), "zoned:50/5:30/15:20/80");
    let threads = line("--name=a --size=1m --threads=1 --threads");
    assert!(threads.notes.iter().any(|note| note.contains("always threads")), "{:?}", threads.notes);
    for (given, used) in
        [("16-8k", "4k-8k"), ("8k-16", "4k-8k"), ("4k,8k", "4k-8k"), ("8k/4k", "8k"), ("8M-512M", "8m-512m")]
    {
        let job = line(&format!("--name=a --nrfiles=4 --bs=4k --rw=write --filesize={given}")).jobs.remove(0);
        assert_eq!(text(&job, "filesize"), used, "{given}");
    }
    let switch = line("--name=a --size=1m --per_job_logs=0/1 --group_reporting=1x");
    assert_eq!(text(&switch.jobs[0], "per_job_logs"), "false");
    assert!(switch.warnings.iter().any(|warning| warning.contains("`per_job_logs=0/1` is read as `0`")), "{switch:?}");
    let mixed = line("--name=a --size=1m --rw=randrw --create_on_open=1");
    assert!(mixed.notes.iter().any(|note| note.contains("must exist")), "{:?}", mixed.notes);
    let queued = line("--name=a --size=1m --rw=randrw --create_on_open=1 --ioengine=libaio");
    assert!(queued.notes.iter().any(|note| note.contains("created with data before it")), "{:?}", queued.notes);
}

#[test]
fn a_number_after_file_service_type_sets_the_ios_of_each_file() {
    let lowered = |value: &str| {
        let job = line(&format!("--name=z --size=2m --nrfiles=4 --file_service_type={value}")).jobs.remove(0);
        let ios = job.options.get("file_service_ios").map_or(String::new(), |value| value.text.clone());
        format!("{} {ios}", text(&job, "file_service_type"))
    };
    assert_eq!(lowered("roundrobin:4"), "roundrobin 4");
    assert_eq!(lowered("random:8"), "random 8");
    assert_eq!(lowered("sequential:2"), "sequential ");
    assert_eq!(lowered("roundrobin:0"), "sequential ");
    assert_eq!(lowered("random:8 --file_service_type=roundrobin"), "roundrobin ");
    // Or the position of the most popular file.
    assert_eq!(lowered("zipf"), "zipf:1.1 ");
    assert_eq!(lowered("random:8 --file_service_type=zipf:1.2:0.3"), "zipf:1.2:0.3 ");
    assert_eq!(lowered("pareto:0.2"), "pareto:0.2 ");
    assert_eq!((lowered("gauss"), lowered("normal:20")), ("normal:8.33 ".into(), "normal:10.14 ".into()));
    for (bad, reason) in
        [("zipf:", "``"), ("pareto:1", "between 0 and 1"), ("normal:101", "at most 100"), ("zipf:1.1x", "`1.1x`")]
    {
        let problems = wrong(&format!("--name=z --size=2m --nrfiles=4 --file_service_type={bad}")).render();
        assert!(problems.contains(reason), "{problems}");
    }
}

/// Goal: random offsets have the spread of fio's, whose numbers are drawn as those of files are; without a number it has one, too.
#[test]
fn normal_offsets_are_drawn_as_wide_as_fio_draws_them() {
    for (value, lowered) in [
        ("normal", "normal:8.33"),
        ("normal:0", "normal:8.33"),
        ("normal:20", "normal:10.14"),
        ("normal:20:0.3", "normal:10.14:0.3"),
        ("zipf:1.2", "zipf:1.2"),
    ] {
        let job = line(&format!("--name=z --size=2m --rw=randread --random_distribution={value}")).jobs.remove(0);
        assert_eq!(text(&job, "random_distribution"), lowered);
    }
    let bad = wrong("--name=z --size=2m --rw=randread --random_distribution=normal:101").render();
    assert!(bad.contains("at most 100"), "{bad}");
}

/// Goal: clones take the paths of a list in turn, also if a path is in the list several times.
#[test]
fn a_directory_may_be_in_the_list_several_times() {
    for list in ["directory", "read_iolog"] {
        let jobs = line(&format!("--name=j --size=1m --numjobs=4 --{list}=x:y:x")).jobs;
        assert_eq!(jobs.len(), 4);
        // (Clones are listed as 0, 3, 2, 1.)
        let mut taken: Vec<&str> = jobs.iter().map(|job| text(job, list)).collect();
        taken.sort_unstable();
        assert_eq!(taken, ["x", "x", "x", "y"]);
    }
    assert!(wrong("--name=j --size=1m --directory=x::y").render().contains("empty"));
}

/// Goal: what fio sets aside for mappings is no contradiction.
#[test]
fn files_of_a_mapping_are_extended_before_it_whatever_is_set() {
    for words in ["fallocate=none", "fallocate=keep", "create_on_open=1"] {
        let request = line(&format!("--name=j --size=1m --rw=write --ioengine=mmap --{words}"));
        let name = words.split('=').next().expect("a name");
        assert!(request.notes.iter().any(|note| note.contains(&format!("`{name}"))), "{words}: {:?}", request.notes);
        assert!(!["none", "keep"].contains(&text(&request.jobs[0], "fallocate")), "{words}");
    }
}

#[test]
fn zones_of_bytes_are_read_with_fios_units() {
    let lowered = |value: &str| {
        text(&line(&format!("--name=z --size=2g --rw=randread {value}")).jobs[0], "random_distribution").to_owned()
    };
    assert_eq!(lowered("--random_distribution=zoned_abs:50/100k:30/200k:20/500k"), "zoned_abs:50/100k:30/200k:20/500k");
    assert_eq!(lowered("--random_distribution=zoned_abs:60/4M:40/1048576"), "zoned_abs:60/4m:40/1m");
    assert_eq!(lowered("--kb_base=1000 --random_distribution=zoned_abs:100/1MB"), "zoned_abs:100/1000000");
    let bad = wrong("--name=z --size=2g --rw=randread --random_distribution=zoned_abs:50/1m:50/2q").render();
    assert!(bad.contains("2q"), "{bad}");
}

/// Goal: the plan contains the bytes of a file instead of its name, the record the text as typed, and a note reports
/// truncation.
#[test]
fn a_files_bytes_are_the_pattern_that_names_it() {
    let around = World::with(&[("pat", "HELLO"), ("long", &"x".repeat(20_000))]);
    let of = |text: &str| read(&words(text), &around);
    let request =
        of("--name=a --size=1m --rw=write --buffer_pattern=0x12'pat'\"it's\" --verify_pattern=%o'pat'").unwrap();
    let job = &request.jobs[0];
    assert_eq!(text(job, "buffer_pattern"), "0x1248454c4c4f69742773");
    assert_eq!(text(job, "verify_pattern"), "%o0x48454c4c4f");
    let fio = job.fio.as_ref().expect("of fio");
    assert_eq!(fio.word("verify_pattern").map(|word| word.text.as_str()), Some("%o'pat'"));
    assert!(request.notes.is_empty(), "{:?}", request.notes);
    let request = of("--name=a --size=1m --rw=write --buffer_pattern='long'").unwrap();
    assert_eq!(text(&request.jobs[0], "buffer_pattern").len(), 2 + 2 * 16_384);
    assert!(request.notes[0].contains("of the 20000 bytes of `long` the first 16384"), "{:?}", request.notes);
    for wrong in ["'nosuch'", "'pat", "'pat'x", "%o'pat'"] {
        let error = of(&format!("--name=a --size=1m --rw=write --buffer_pattern={wrong}")).expect_err(wrong);
        assert!(error.render().contains("`buffer_pattern`") && error.render().contains('^'), "{}", error.render());
    }
    let file = "[global]\nbuffer_pattern='pat'\n[a]\nsize=1m\nrw=write\n";
    let request = read_job_file("job.fio", file, &around).unwrap();
    assert_eq!(text(&request.jobs[0], "buffer_pattern"), "0x48454c4c4f");
}

/// Goal: buffers that fio maps from a file are mapped without the file if that makes no difference, with a note.
#[test]
fn a_file_for_buffers_is_left_alone_or_refused() {
    for (value, taken) in [("mmap:b", "mmap"), ("mmaphuge:/huge/b", "mmaphuge"), ("mmapshared", "mmapshared")] {
        let request = line(&format!("--name=a --size=1m --rw=write --iomem={value}"));
        assert_eq!(text(&request.jobs[0], "mem"), taken);
        let note_count = request.notes.iter().filter(|note| note.contains("is not touched")).count();
        assert_eq!(note_count, usize::from(value.contains(':')), "{:?}", request.notes);
    }
    for value in ["mmapshared:b", "mmap:", "malloc:b"] {
        assert!(wrong(&format!("--name=a --size=1m --mem={value}")).render().contains(value), "{value}");
    }
}

/// Goal: percentages that do not sum to 100 are those of fio, with a note; those that do have none.
#[test]
fn percentages_of_sizes_that_do_not_sum_to_100_are_drawn_as_in_fio_with_a_note() {
    for (split, drawn) in [("4k/33:8k/33:16k/33", "4k/33:8k/33:16k/34"), ("4k/80:8k/80", "4k/80:8k/20")] {
        let request = line(&format!("--name=j --size=1m --bssplit={split}"));
        assert_eq!(text(&request.jobs[0], "bssplit"), drawn);
        let note = format!("`bssplit={split}` is drawn as `{drawn}`, as in fio");
        assert!(request.notes.iter().any(|said| said.contains(&note)), "{:?}", request.notes);
    }
    assert!(line("--name=j --size=1m --bssplit=4k/33:8k/67").notes.is_empty());
}

/// Goal: of a calculation the first number is read, as in fio, with a warning; a unit that does not exist is refused.
#[test]
fn of_a_calculation_the_first_number_is_read_with_a_warning() {
    for (option, name, value) in [
        ("--ioengine=libaio --iodepth=128*1", "iodepth", "128"),
        ("--runtime=40+30", "runtime", "40s"),
        ("--runtime=60*5", "runtime", "60s"),
        ("--ramp_time=5+5", "ramp_time", "5s"),
        ("--size=4m*2", "size", "4m"),
        ("--loops=2*3", "loops", "2"),
        ("--rwmixread=70/30", "rwmixread", "70"),
        ("--thinktime=10*2", "thinktime", "10us"),
        ("--numjobs=1+1", "numjobs", ""),
        ("--rw=randrw --number_ios=5^2", "number_ios", "5"),
        ("--bs=4k*2", "bs", "4k"),
        ("--bs=4*1024", "bs", "4"),
        ("--rw=rw --bs=4k*2,8k+1", "bs", "4k,8k,8k"),
        ("--bsrange=1k*2-4k*2", "bsrange", "1k-4k"),
    ] {
        let request = line(&format!("--name=j --size=1m {option}"));
        assert_eq!((request.jobs.len(), text(&request.jobs[0], name)), (1, value), "{option}");
        let FioRequest { notes, warnings, .. } = request;
        assert!(warnings.len() == 1 && warnings[0].contains("nothing is calculated"), "{option}: {warnings:?}");
        assert!(notes.contains(&warnings[0]), "the record holds it: {notes:?}");
    }
    assert!(wrong("--name=j --size=1m --iodepth=4kfoo").render().contains("is not a unit"));
    let written = line("--name=j --size=1m --runtime=40+30").jobs.remove(0).fio.unwrap();
    assert_eq!(written.word("runtime").unwrap().text, "40+30", "the record holds it as typed");
}

#[test]
fn a_number_that_has_no_largest_value_in_fio_is_the_largest_here() {
    for (option, most) in [
        ("verify_backlog", "1048576"),
        ("verify_backlog_batch", "1048576"),
        ("trim_backlog", "1048576"),
        ("trim_backlog_batch", "1048576"),
        ("openfiles", "65536"),
        ("log_avg_msec", "3600000"),
    ] {
        let options = "--rw=randrw --verify=md5 --nrfiles=2 --trim_percentage=10 --verify_backlog=9 --trim_backlog=9";
        let request = line(&format!("--name=j --size=1m {options} --{option}=10000000"));
        assert_eq!(text(&request.jobs[0], option), most, "{option}");
        let note = format!("`{option}=10000000` becomes {most}");
        assert!(request.notes.iter().any(|text| text.contains(&note)), "{:?}", request.notes);
    }
    let deep = line("--name=j --size=1m --ioengine=libaio --iodepth=40000");
    assert_eq!(text(&deep.jobs[0], "iodepth"), "32768");
    assert!(deep.notes.iter().any(|note| note.contains("`iodepth=40000` becomes 32768")), "{:?}", deep.notes);
    let error = wrong("--name=j --size=1m --ioengine=libaio --iodepth=10000000").render();
    assert_eq!(error.matches("error:").count(), 1, "another depth is another measurement\n{error}");
}

/// Goal: of a calculation in a list, in a value with a word, and in a number of a rule, the first number is used, with a warning.
/// Method: the values are those that fio's HEAD used.
#[test]
fn nothing_is_calculated_in_any_kind_of_value() {
    for (option, name, value) in [
        ("--rate=128k*1", "rate", "128k"),
        ("--rate_iops=300+10", "rate_iops", "300"),
        ("--rate_min=30+10,20*2", "rate_min", "30,20,20"),
        ("--bssplit=4k*2/50:8k/50", "bssplit", "4k/50:8k/50"),
        ("--bssplit=4k/50*1:8k/50", "bssplit", "4k/50:8k/50"),
        ("--rw=write:4k*2", "sequential_skip", "4096"),
        ("--random_distribution=zipf:1.2*1", "random_distribution", "zipf:1.2"),
        ("--random_distribution=zoned:60*1/10:40/90+3", "random_distribution", "zoned:60/10:40/90"),
        ("--percentile_list=50*1:99+1", "percentile_list", "50:99"),
        ("--percentage_random=50*1,20+1", "percentage_random", "50,20,20"),
        ("--randseed=30+10", "randseed", "30"),
        ("--sync_file_range=write:4*2 --rw=write", "sync_file_range", "write:4"),
        ("--cpus_allowed=0,1+5", "cpus_allowed", "0,1"),
        ("--file_service_type=roundrobin:4*2 --nrfiles=2", "file_service_ios", "4"),
        ("--ss=iops:10*2", "steadystate", "iops:10"),
    ] {
        let request = line(&format!("--name=j --size=1m {option}"));
        assert_eq!(text(&request.jobs[0], name), value, "{option}");
        assert_eq!(request.warnings.len(), 1, "{option}: {:?}", request.warnings);
        assert!(request.warnings[0].ends_with("nothing is calculated"), "{:?}", request.warnings);
    }
    let many: Vec<String> = (1..=22).map(|percent| percent.to_string()).collect();
    let request = line(&format!("--name=j --size=1m --percentile_list={}", many.join(":")));
    assert_eq!(text(&request.jobs[0], "percentile_list"), many[..20].join(":"));
    assert!(request.warnings[0].ends_with("at most 20 numbers"), "{:?}", request.warnings);
    for (typed, read) in [("50:101:99", "50:99"), ("-1:50", "50"), ("0:50", "50")] {
        let request = line(&format!("--name=j --size=1m --percentile_list={typed}"));
        assert_eq!(text(&request.jobs[0], "percentile_list"), read);
        assert!(request.warnings[0].ends_with("is no percentile, and ends fio's list"), "{:?}", request.warnings);
    }
    assert!(line("--name=j --size=1m --percentile_list=0.1:100").warnings.is_empty());
    for list in ["101", "50:abc"] {
        wrong(&format!("--name=j --size=1m --percentile_list={list}"));
    }
    assert_eq!(line("--name=j --size=1m --num_range=1,2").warnings.len(), 1);
    wrong("--name=j --size=1m --bs=4kfoo*2,8k");
}

/// Goal: a message has the option's name as typed, and says what fio reads only where it reads the same.
#[test]
fn messages_have_names_as_typed() {
    let request = line("--name=j --size=1m --iomem=mmap:/tmp/x --runtime=1s+1s --max_latency=40+2");
    assert!(request.notes.iter().any(|note| note.contains("`iomem=mmap:/tmp/x`")), "{:?}", request.notes);
    let warnings = request.warnings.join("\n");
    assert!(warnings.contains("`runtime=1s+1s` is read as `1s`, where fio reads microseconds"), "{warnings}");
    assert!(warnings.contains("`max_latency=40+2` is read as `40`, as in fio"), "{warnings}");
    let error = wrong("--name=j --size=1m --stonewall=").render();
    assert!(error.contains("`stonewall=` has no value") && error.contains("write `stonewall`, or"), "{error}");
    assert!(wrong("--name=j --size=1g --nrfiles=70000").render().contains("at most 65536 files"));
}

/// Goal: names of one file are one file, as in fio, also if they are spelled in several ways.
#[test]
fn several_spellings_of_a_file_are_used_again() {
    let request = line("--name=j --rw=write --size=96k --filename=f:./f:.//g");
    let job = &request.jobs[0];
    assert_eq!([text(job, "filename"), text(job, "size"), text(job, "io_size")], ["f:.//g", "64k", "96k"]);
    let request = line("--name=j --filename=f:./f:g");
    assert!(request.notes.iter().any(|note| note.contains("`size` sets the amount")), "{:?}", request.notes);
}

/// Goal: spans of no length and a maximum below the minimum are as in fio, with what becomes of them.
#[test]
fn values_that_fio_raises_are_raised() {
    let request = line("--name=j --size=1m --bwavgtime=0 --iopsavgtime=0");
    assert_eq!([text(&request.jobs[0], "bwavgtime"), text(&request.jobs[0], "iopsavgtime")], ["1", "1"]);
    let batches = "--iodepth_batch_complete_min=4 --iodepth_batch_complete_max=2";
    let request = line(&format!("--name=j --size=1m --ioengine=libaio --iodepth=8 {batches}"));
    assert_eq!(text(&request.jobs[0], "iodepth_batch_complete_max"), "4");
    assert!(request.notes.iter().any(|note| note.contains("`iodepth_batch_complete_max=2` is less")));
}

/// Goal: of a list for an option of one number, the number that fio uses is used, with a warning.
/// Method: the values are those of fio's HEAD.
#[test]
fn one_number_of_a_list_is_used_where_an_option_has_one() {
    for (option, name, value) in [
        ("--size=16k:32k", "size", "32k"),
        ("--size=16k,32k", "size", "32k"),
        ("--size=16k-32k", "size", "32k"),
        ("--size=16k-", "size", "16k"),
        ("--size=64k:64k:64k", "size", "64k"),
        ("--offset=4k-8k", "offset", "8k"),
        ("--io_size=16k-32k", "io_size", "32k"),
        ("--rwmixread=70:30", "rwmixread", "30"),
        ("--loops=2:3", "loops", "2"),
        ("--ioengine=libaio --iodepth=2-4", "iodepth", "2"),
    ] {
        let request = line(&format!("--name=j --rw=rw --size=1m {option}"));
        assert_eq!(text(&request.jobs[0], name), value, "{option}");
        let warnings = request.warnings;
        assert!(warnings.len() == 1 && warnings[0].contains("one number of a list"), "{option}: {warnings:?}");
    }
}

#[test]
fn a_number_out_of_fios_bounds_is_refused() {
    for option in [
        "log_hist_coarseness=9",
        "significant_figures=0",
        "significant_figures=11",
        "log_entries=10",
        "verify_interval=3",
        "verify_offset=1",
        "replay_align=3",
        "ba=0",
    ] {
        let error = wrong(&format!("--name=j --size=1m --{option}")).render();
        assert!(error.contains("is out of range: ") && error.matches("error:").count() == 1, "{option}: {error}");
    }
    line("--name=j --size=1m --rw=write --verify=md5 --verify_interval=96 --log_entries=1024 --significant_figures=10");
}

#[test]
fn a_number_that_is_zero_in_fio_is_one_and_a_seed_may_be_any_number() {
    let job = |option: &str| line(&format!("--name=j --rw=write --size=1m {option}")).jobs.remove(0);
    assert_eq!(text(&job("--thinktime=10 --thinktime_blocks=0"), "thinktime_blocks"), "1");
    assert_eq!(text(&job("--randseed=-1"), "randseed"), u64::MAX.to_string());
    assert_eq!(text(&job("--randseed=1k"), "randseed"), "1024");
    assert_eq!(text(&job("--randseed=0x10"), "randseed"), "16");
}

#[test]
fn a_limit_of_the_steady_state_may_have_a_unit() {
    for (given, limit) in [
        ("bw_slope:4k", "bw_slope:4096"),
        ("bw:1m", "bw:1048576"),
        ("lat:10us", "lat:10000"),
        ("lat_slope:2ms", "lat_slope:2000000"),
        ("iops:4k", "iops:4096"),
        ("iops_slope:0.3%", "iops_slope:0.3%"),
        ("bw:1.5", "bw:1.5"),
    ] {
        let job = line(&format!("--name=j --size=1m --ss={given}")).jobs.remove(0);
        assert_eq!(text(&job, "steadystate"), limit, "{given}");
    }
    assert!(wrong("--name=j --size=1m --ss=bw:4x").render().contains("`x` after the number is not a unit"));
}

#[test]
fn a_number_of_zero_is_fios_default() {
    let request = line("--name=j --size=1m --io_size=0 --nrfiles=0");
    assert_eq!(["io_size", "filename"].map(|name| text(&request.jobs[0], name)), ["", "j.0.0"]);
}

#[test]
fn a_directory_precedes_an_absolute_name() {
    let request = line("--name=j --size=1m --directory=/mnt/x --filename=/a/b:c");
    assert_eq!(["directory", "filename"].map(|name| text(&request.jobs[0], name)), ["/mnt/x", "a/b:c"]);
    assert!(request.notes.iter().any(|note| note.contains("`/mnt/x/a/b`")), "{:?}", request.notes);
}

/// Goal: on a command line, `directory` and `nrfiles` apply to names as in fio, which reads words in their order.
/// Method: the values are those of fio's HEAD.
#[test]
fn on_a_command_line_the_order_of_files_directory_and_count_decides() {
    for (words, directory, names) in [
        ("--filename=/a/b --directory=d", "", "/a/b"),
        ("--filename=x --directory=d", "", "x"),
        ("--directory=c --filename=x --directory=d", "c", "x"),
        ("--directory=d --filename=x", "d", "x"),
        ("--filename=x:y:z --nrfiles=2", "", "x:y"),
        ("--nrfiles=1 --filename=x:y", "", "x:y"),
        ("--filename=x:y --nrfiles=3", "", "x:y"),
    ] {
        let request = line(&format!("--name=j --size=1m {words}"));
        let found = ["directory", "filename"].map(|name| text(&request.jobs[0], name));
        assert_eq!(found, [directory, names], "{words}");
    }
    let file = "[j]\nfilename=x:y\nnrfiles=1\ndirectory=d\nsize=1m\n";
    let job = read_job_file("job.fio", file, &World::default()).expect("a job").jobs.remove(0);
    assert_eq!(["directory", "filename"].map(|name| text(&job, name)), ["d", "x:y"], "a file has no order");
}

#[test]
fn placement_hints_are_refused_only_where_they_would_be_sent() {
    for options in ["--dataplacement=none", "--fdp=0 --plids=1,2 --plid_select=roundrobin", "--filetype=file"] {
        line(&format!("--name=j --size=1m {options}"));
    }
    assert!(wrong("--name=j --size=1m --dataplacement=fdp").render().contains("is not done here"));
}

/// `filesize` in parts and in percent; fio HEAD's files have these sizes.
#[test]
fn the_parts_of_a_filesize_are_those_that_fio_reads() {
    let of = |given: &str| line(&format!("--name=a --nrfiles=4 --bs=4k --rw=write --filesize={given}"));
    for (given, used) in [
        ("4k-", "4k"),
        ("4k-x", "4k"),
        ("4k:", "4k"),
        ("4k:64k", "4k-64k"),
        ("4k-8k-64k", "4k-64k"),
        ("4k-64k-x", "4k"),
        ("4k-16k,64k", "4k-64k"),
        ("16-8k/8M-512M", "4k-512m"),
    ] {
        let request = of(given);
        assert_eq!(text(&request.jobs[0], "filesize"), used, "{given}");
        let is_noted = request.notes.iter().any(|note| note.contains(&format!("`filesize={given}` is read as")));
        assert!(is_noted, "{given}: {:?}", request.notes);
    }
    let limited = line("--name=a --bs=4k --rw=write --filesize=10% --size=64k");
    assert_eq!(text(&limited.jobs[0], "filesize"), "");
    assert!(limited.notes.iter().any(|note| note.contains("no effect next to `size`")), "{:?}", limited.notes);
    for unlimited in ["--rw=write --filesize=10%", "--rw=read --size=64k --filesize=10%"] {
        let error = wrong(&format!("--name=a {unlimited}")).render();
        assert!(error.contains("`filesize` has no percentages"), "{unlimited}: {error}");
    }
    let replaced = line("--name=a --rw=read --size=64k --filesize=10% --filesize=8k").jobs.remove(0);
    assert_eq!(text(&replaced, "filesize"), "8k");
}
