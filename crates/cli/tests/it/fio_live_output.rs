//! Output of `trueio fio` while jobs run, in addition to results: `--bandwidth-log` and `--debug`.
//!
//! The same jobs run with the installed fio. Without one, only our side is tested, and a line reports that.

use crate::common::*;
use std::fs;

fn theirs(sandbox: &Sandbox, line: &str) -> Option<Ran> {
    real_fio(sandbox, line).map(|mut command| Ran::of(command.output().expect("fio starts")))
}

const LOGS: [&str; 3] = ["agg-read_bw.log", "agg-write_bw.log", "agg-trim_bw.log"];

/// Returns the lines of the three logs: time and rate.
fn logged(sandbox: &Sandbox) -> [Vec<(u64, u64)>; 3] {
    [0, 1, 2].map(|direction| {
        let text = fs::read_to_string(sandbox.path(LOGS[direction])).expect("a log");
        let line = |line: &str| {
            let columns: Vec<u64> = line.split(", ").map(|word| word.parse().expect("a number")).collect();
            assert_eq!((columns.len(), &columns[2..]), (5, &[direction as u64, 0, 0][..]), "{line}");
            (columns[0], columns[1])
        };
        text.lines().map(line).collect()
    })
}

/// Goal: the logs have the bandwidth of all jobs, over all phases, with and without a terminal, in fio's columns.
#[test]
fn the_bandwidth_of_all_jobs_is_logged_by_direction_and_over_all_phases() {
    let sandbox = Sandbox::new();
    for log in LOGS {
        sandbox.write(log, "500, 7, 0, 0, 0\n");
    }
    let job = |name: &str, more: &str| {
        format!("--name={name} --ioengine=null --size=1g --bs=4k --rate_iops=1000 --time_based --runtime=600ms {more}")
    };
    let jobs = [job("rw", "--rw=randrw"), job("t", "--rw=trim"), job("later", "--rw=read --stonewall")].join(" ");
    let line = format!("--bandwidth-log {jobs}");
    let ran = sandbox.fio(&line);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let of_ours = logged(&sandbox);
    let times = |lines: &[(u64, u64)]| lines.iter().map(|line| line.0).collect::<Vec<_>>();
    // Each phase is longer than a span.
    assert!(of_ours[0].len() >= 2, "{of_ours:?}");
    assert!(of_ours[0].windows(2).all(|pair| pair[0].0 < pair[1].0), "{of_ours:?}");
    assert!(of_ours.iter().all(|lines| times(lines) == times(&of_ours[0])), "{of_ours:?}");
    assert!(of_ours.iter().all(|lines| lines.iter().any(|line| line.1 > 0)), "{of_ours:?}");
    let [reads, writes, trims] = &of_ours;
    let last = of_ours[0].len() - 1;
    assert_eq!((writes[last].1, trims[last].1), (0, 0), "the last phase only reads: {of_ours:?}");
    assert!(reads.iter().zip(writes).any(|(read, write)| read.1 > 0 && write.1 == 0), "{of_ours:?}");
    // fio fills them only if it shows progress; fio 3.42 always.
    if theirs(&sandbox, &format!("--eta=always {line}")).is_some() {
        let of_theirs = logged(&sandbox);
        assert!(of_theirs[0].iter().any(|line| line.1 > 0) && of_theirs[2].iter().any(|line| line.1 > 0));
    }
    // A job that reports all directions as one has all of it in the first log.
    let ran = sandbox.fio(&format!("--bandwidth-log {}", job("one", "--rw=write --unified_rw_reporting=mixed")));
    let [reads, writes, _] = logged(&sandbox);
    assert!(
        ran.code == Some(0) && reads.iter().any(|line| line.1 > 0) && writes.iter().all(|line| line.1 == 0),
        "{reads:?} {writes:?}"
    );
}

#[test]
fn a_bandwidth_log_replaces_no_measured_file_and_is_refused_with_a_client() {
    let sandbox = Sandbox::new();
    let ran = sandbox.fio("--bandwidth-log --name=a --filename=agg-write_bw.log --rw=write --size=64k");
    assert!(ran.code == Some(1) && ran.err.contains("`--bandwidth-log`"), "{ran:?}");
    assert!(!sandbox.path("agg-write_bw.log").exists() && !sandbox.path("agg-read_bw.log").exists());
    sandbox.write("job.fio", "[x]\nioengine=null\nsize=8k\n");
    for (option, words) in [("--bandwidth-log", "write_bw_log"), ("--debug=random", "without `--client`")] {
        let ran = sandbox.fio(&format!("{option} --client=127.0.0.1 job.fio"));
        assert!(ran.code == Some(1) && ran.err.contains(words), "{ran:?}");
    }
}

/// Returns the lines of one part of `--debug`, without process and address.
fn debugged(text: &str, part: &str) -> Vec<String> {
    let line = |line: &str| {
        let (process, rest) = line.strip_prefix(&format!("{part:<8} "))?.split_once(' ')?;
        process.parse::<u32>().ok()?;
        let word = |word: &str| if word.starts_with("0x") { "0x…".to_owned() } else { word.to_owned() };
        // An address is a whole word, or all of it but a trailing mark.
        Some(rest.trim_start().split(' ').map(word).collect::<Vec<_>>().join(" "))
    };
    text.lines().filter_map(line).collect()
}

/// Goal: each random block is printed once, before its I/O, and is the block of the I/O.
#[test]
fn debug_random_prints_drawn_blocks_and_no_sequential_ones() {
    let sandbox = Sandbox::new();
    let line = "--debug=io,random --name=x --ioengine=null --rw=randrw --bs=4k --size=256k";
    let ran = sandbox.fio(line);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let lines: Vec<&str> =
        ran.out.lines().filter(|line| line.contains("off rand ") || line.contains(" fill: ")).collect();
    let mut blocks = Vec::new();
    for pair in lines.chunks(2) {
        let block: u64 = pair[0].split("off rand ").nth(1).expect("a block").parse().expect("a number");
        assert!(pair[1].contains(&format!("off={:#x},len=0x1000", block * 4096)), "{pair:?}");
        blocks.push(block);
    }
    blocks.sort_unstable();
    assert_eq!(blocks, (0..64).collect::<Vec<u64>>());
    assert!(ran.out.contains("rand_seeds[0]="), "the seed of the job: {}", ran.out);
    if let Some(theirs) = theirs(&sandbox, &format!("{line} --thread")) {
        let drawn = debugged(&theirs.out, "random");
        assert!(drawn.iter().filter(|line| line.starts_with("off rand ")).count() >= 64, "{drawn:?}");
    }
    let count = |options: &str| {
        let ran = sandbox.fio(&format!("--debug=random --name=x --ioengine=null --bs=4k {options}"));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{options}");
        debugged(&ran.out, "random").iter().filter(|line| line.starts_with("off rand ")).count()
    };
    assert_eq!(count("--rw=read --size=64k"), 0);
    assert_eq!(count("--rw=randread:4 --size=64k --norandommap"), 4);
    assert_eq!(count("--rw=randread --size=64k --norandommap --random_distribution=zipf:1.1"), 16);
    assert_eq!(count("--rw=randtrimwrite --size=64k"), 16);
    let some = count("--rw=randread --size=4m --percentage_random=50 --norandommap");
    assert!((400..600).contains(&some), "{some} of 1024");
    assert_eq!(count("--rw=randread --bsrange=4k-8k --size=64k --numjobs=2 --debug=job:1 --number_ios=5"), 5);
}

/// Goal: with `--output` the lines are in that file, before the results, as in fio.
#[test]
fn debug_lines_go_to_the_output_of_the_results() {
    let sandbox = Sandbox::new();
    let line = "--debug=io,random --output=o --name=x --ioengine=null --rw=randread --size=8k";
    let check = |ran: &Ran| {
        assert_eq!((ran.code, ran.out.contains("io_u")), (Some(0), false), "{ran:?}");
        let text = fs::read_to_string(sandbox.path("o")).expect("results");
        assert_eq!(debugged(&text, "io").iter().filter(|line| line.starts_with("complete:")).count(), 2, "{text}");
        assert!(text.rfind("off rand") < text.find("err= 0"), "{text}");
    };
    check(&sandbox.fio(line));
    if let Some(theirs) = theirs(&sandbox, &format!("{line} --thread")) {
        check(&theirs);
    }
    let ran = sandbox.fio("--debug=io --output=nosuch/o --name=x --ioengine=null --size=8k");
    assert!(ran.code == Some(1) && ran.err.contains("nosuch/o"), "{ran:?}");
}

/// Goal: filling and comparing are printed for each header, in fio's order.
#[test]
fn debug_verify_prints_filling_and_comparing() {
    let sandbox = Sandbox::new();
    for options in ["--verify=md5 --verify_interval=2k", "--verify=crc32c", "--verify=sha512 --bs=8k"] {
        let line = format!("--debug=verify --thread --name=x --filename=f --rw=write --size=16k {options}");
        // fio also prints lines about its own loop.
        let lines = |ran: &Ran| {
            let mut lines = debugged(&ran.out, "verify");
            lines.retain(|line| !line.contains("get_next_verify") && !line.contains("loop"));
            lines
        };
        let ran = sandbox.fio(&line);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{line}");
        let of_ours = lines(&ran);
        assert!(of_ours.iter().any(|line| line.contains(" verify io_u 0x…")), "{of_ours:?}");
        if let Some(theirs) = theirs(&sandbox, &line) {
            assert_eq!(of_ours, lines(&theirs), "{line}");
        }
    }
    let ran = sandbox
        .fio("--debug=verify --name=x --filename=f --rw=write --size=4k --verify=pattern --verify_pattern=0xabcd");
    assert_eq!(debugged(&ran.out, "verify"), ["fill verify pattern b=2 len=4096"], "{ran:?}");
}

#[test]
fn debug_file_prints_the_file_of_each_io_and_open_files() {
    let sandbox = Sandbox::new();
    let line = "--debug=file --thread --name=x --filename=f:g --rw=write --size=16k";
    let lines = |ran: &Ran| {
        let mut lines = debugged(&ran.out, "file");
        lines.retain(|line| line.starts_with("fd ") || line.starts_with("get_next_file: ") || line == "close files");
        lines
    };
    let ran = sandbox.fio(line);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let of_ours = lines(&ran);
    let [f, g] = ["get_next_file: 0x… [f]", "get_next_file: 0x… [g]"];
    assert_eq!(of_ours, ["fd open f", "fd open g", f, g, f, g, "close files", "fd close f", "fd close g"]);
    if let Some(theirs) = theirs(&sandbox, line) {
        let mut of_theirs = lines(&theirs);
        // fio opens a file when an I/O first goes to it.
        of_theirs.sort();
        let mut of_ours = of_ours;
        of_ours.sort();
        assert_eq!(of_ours, of_theirs);
    }
}

/// Goal: the options are printed in fio's order, global ones once, with and without a run.
#[test]
fn debug_parse_prints_the_options_that_were_read() {
    let sandbox = Sandbox::new();
    let text = "[global]\nbs=8k\ntime_based\n[a]\nsize=1m\nruntime=10ms\nioengine=null\n\
                [b]\nsize=2m\nruntime=10ms\nioengine=null\nnumjobs=2\nstonewall\n";
    sandbox.write("j.fio", text);
    let lines = |ran: &Ran| {
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let mut lines = debugged(&ran.out, "parse");
        lines.retain(|line| line.starts_with("handle_option="));
        lines
    };
    for line in [
        "--debug=parse --parse-only j.fio",
        "--debug=parse j.fio",
        "--debug=parse --parse-only --bs=4k --name=x --size=1m",
    ] {
        let ran = sandbox.fio(line);
        assert!(ran.err.is_empty(), "{ran:?}");
        let of_ours = lines(&ran);
        assert!(of_ours.len() >= 3, "{of_ours:?}");
        if let Some(theirs) = theirs(&sandbox, line) {
            assert_eq!(of_ours, lines(&theirs), "{line}");
        }
    }
    let one = sandbox.fio("--debug=parse,job:1 --parse-only j.fio");
    let stonewall = "handle_option=stonewall, ptr=(null)";
    assert_eq!(lines(&one).last().map(String::as_str), Some(stonewall), "{one:?}");
    let ran = sandbox.fio("--debug=parse --output=o j.fio");
    assert!(ran.code == Some(0) && ran.out.is_empty(), "{ran:?}");
    let text = fs::read_to_string(sandbox.path("o")).expect("results");
    assert!(text.starts_with("parse ") && text.contains("err= 0"), "{text}");
    let quiet = sandbox.fio("--parse-only j.fio");
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (Some(0), "", ""));
}

/// Goal: scripts that look for fio's lines about a steady state find them, also where there is no job.
#[test]
fn debug_parse_prints_the_limit_of_a_steady_state() {
    let sandbox = Sandbox::new();
    let cases = [
        ("iops:10", "set steady state IOPS threshold to 10.000000"),
        ("iops_slope:.1%", "set steady state threshold to 0.100000%"),
        ("bw:12", "set steady state BW threshold to 12"),
    ];
    for (limit, sentence) in cases {
        for job in ["", "--name=a --size=1m --runtime=60"] {
            let line = format!("--parse-only --debug=parse --ss_dur=10s --ss={limit} --ss_ramp=5 {job}");
            let ran = sandbox.fio(&line);
            assert!(ran.code == Some(0) && ran.out.contains(sentence), "{line}: {ran:?}");
            if let Some(theirs) = theirs(&sandbox, &line) {
                assert!(theirs.out.contains(sentence), "fio {line}: {theirs:?}");
            }
        }
    }
    let ran = sandbox.fio("--parse-only --bs=x");
    assert_eq!(ran.code, Some(1), "options without a job are read, too: {ran:?}");
}

/// Goal: results so far have the disks' counters, as fio's have.
/// Method: a file on the disk of the tests' folder, whose counters are in the documents while the job runs and do not decrease.
#[test]
fn results_so_far_have_the_counters_of_the_disks() {
    let sandbox = Sandbox::new();
    let line = "--name=a --filename=f --rw=write --size=4m --bs=64k --fdatasync=1 --time_based --runtime=1500ms \
                --status-interval=400ms --output-format=json";
    let ran = sandbox.fio(line);
    let documents: Vec<serde_json::Value> =
        serde_json::Deserializer::from_str(&ran.out).into_iter().collect::<Result<_, _>>().expect("documents");
    assert!(documents.len() >= 2, "{ran:?}");
    let written = |document: &serde_json::Value| -> Option<u64> {
        document["disk_util"].as_array()?.iter().map(|disk| disk["write_ios"].as_u64()).sum()
    };
    let counts: Vec<Option<u64>> = documents.iter().map(written).collect();
    if counts.last() == Some(&Some(0))
        || documents.last().is_some_and(|last| last["disk_util"].as_array().is_none_or(Vec::is_empty))
    {
        println!("skipped: the folder of tests is on no disk");
        return;
    }
    assert!(counts.windows(2).all(|pair| pair[0].is_some() && pair[0] <= pair[1]), "{counts:?}");
    assert!(counts[0] > Some(0), "{counts:?}");
}
