//! `trueio ior` and `trueio mdtest`, alone and on several ranks.

use crate::common::*;
use crate::ranks_common::*;
use trueio_model::RunRecord;

fn job_of<'r>(record: &'r RunRecord, name: &str) -> &'r trueio_model::JobRecord {
    let jobs = record.phases.iter().flat_map(|phase| &phase.jobs);
    jobs.into_iter().find(|job| job.name == name).unwrap_or_else(|| panic!("no job {name}"))
}

fn ios(record: &RunRecord, name: &str) -> u64 {
    job_of(record, name).ops.iter().filter(|op| op.op != trueio_model::OpKind::Sync).map(|op| op.io_count).sum()
}

/// Returns the fields of the line of a summary that begins with a word.
fn line<'t>(text: &'t str, begin: &str) -> Vec<&'t str> {
    let line = text.lines().find(|line| line.trim_start().starts_with(begin));
    line.unwrap_or_else(|| panic!("no line `{begin}` in\n{text}")).split_whitespace().collect()
}

#[test]
fn ior_alone_prints_iors_summary_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["ior", "--no-evidence", "--no-history", "-b", "1m", "-t", "64k", "-i", "2", "-e"]);
    ran.assert_code(0);
    let words = |begin: &str| line(&ran.out, begin);
    let written = words("Max Write:");
    assert_eq!((written[3], written[5]), ("MiB/sec", "MB/sec)"), "{ran:?}");
    let mib: f64 = written[2].parse().expect("a number");
    let mb: f64 = written[4].trim_start_matches('(').parse().expect("a number");
    assert!(mib > 0.0 && (mib * 1.048_576 - mb).abs() < 0.02 * mb, "{ran:?}");
    assert!(words("Max Read:")[2].parse::<f64>().expect("a number") > 0.0);
    // 27 columns, those of IOR 4.0.
    let heads = words("Operation");
    let summary: Vec<&str> = ran
        .out
        .split("Summary of all tests:")
        .nth(1)
        .expect("a summary")
        .lines()
        .nth(2)
        .expect("a line")
        .split_whitespace()
        .collect();
    assert_eq!(summary.len(), heads.len(), "{summary:?}\n{heads:?}");
    let of = |head: &str| summary[heads.iter().position(|known| *known == head).expect("a column")];
    assert_eq!(
        (of("Operation"), of("#Tasks"), of("reps"), of("blksiz"), of("xsize")),
        ("write", "1", "2", "1048576", "65536")
    );
    assert_eq!((of("aggs(MiB)"), of("API"), of("Stonewall(s)")), ("1.0", "POSIX", "NA"));
    let results = ran.out.lines().filter(|line| line.starts_with("write ") || line.starts_with("read ")).count();
    assert_eq!(results, 6, "two results of each, and two lines of the summary: {ran:?}");
    assert!(sandbox.listing().is_empty());
}

/// Goal: what `--explain` prints is what was run.
/// Method: the printed jobs are run by `trueio run`; both records have the same jobs with the same I/Os.
#[test]
fn the_jobs_that_explain_prints_run_as_they_are() {
    let sandbox = Sandbox::new();
    for (program, arguments) in [
        ("ior", &["-F", "-b", "512k", "-t", "64k", "-z", "-w", "-r"][..]),
        ("mdtest", &["-n", "14", "-z", "2", "-b", "2", "-d", "names", "-w", "100", "-e", "50"]),
    ] {
        let explained = sandbox.run(&[&[program, "--explain"][..], arguments].concat());
        explained.assert_code(0);
        let job = sandbox.aside(&format!("{program}.toml"));
        std::fs::write(&job, &explained.out).expect("a job file");
        let path = sandbox.aside("record.json");
        let json = path.to_str().expect("UTF-8");
        let options = ["--no-evidence", "--no-history", "--json", json];
        let mut records = Vec::new();
        for command in [
            [&["run", job.to_str().expect("UTF-8")][..], &options].concat(),
            [&[program][..], &options, arguments].concat(),
        ] {
            sandbox.run(&command).assert_code(0);
            records.push(record_at(&sandbox, "record.json"));
            std::fs::remove_file(&path).expect("it was written");
        }
        let counts = |record: &RunRecord| -> Vec<(String, u64)> {
            record
                .phases
                .iter()
                .flat_map(|phase| &phase.jobs)
                .map(|job| (job.name.clone(), ios(record, &job.name)))
                .collect()
        };
        assert_eq!(counts(&records[0]), counts(&records[1]));
        assert!(counts(&records[0]).iter().all(|(_, ios)| *ios > 0), "{:?}", counts(&records[0]));
    }
    // Of the job file.
    let _ = std::fs::remove_dir(sandbox.root().join("names"));
    assert!(sandbox.listing().is_empty(), "{:?}", sandbox.listing());
}

#[test]
fn what_ior_keeps_it_reads_later_and_a_missing_file_is_refused() {
    let sandbox = Sandbox::new();
    let common = ["ior", "--no-evidence", "--no-history", "-o", "kept", "-b", "256k", "-t", "64k", "-F"];
    sandbox.run(&[&common[..], &["-r"]].concat()).assert_refused(&["`kept.00000000`, which does not exist"]);
    sandbox.run(&[&common[..], &["-w", "-k"]].concat()).assert_code(0);
    assert_eq!(std::fs::metadata(sandbox.root().join("kept.00000000")).expect("it stays").len(), 256 << 10);
    let ran = sandbox.run(&[&common[..], &["-r"]].concat());
    ran.assert_code(0);
    assert!(!ran.out.contains("Max Write"), "{ran:?}");
    // It is not written again without its name.
    let refused = &["`kept.00000000` exists, and `-w` would overwrite it", "add `-E`"];
    sandbox.run(&[&common[..], &["-w"]].concat()).assert_refused(refused);
    sandbox.run(&[&common[..], &["-w", "-E"]].concat()).assert_code(0);
    let directory = ["ior", "--no-evidence", "--no-history", "-o", ".", "-b", "256k", "-t", "64k"];
    sandbox.run(&directory).assert_refused(&["`.` is a directory", "name a file in it: `-o ./FILE`"]);
}

#[test]
fn ranks_of_ior_write_their_segments_and_read_those_of_another() {
    let sandbox = Sandbox::new();
    let path = sandbox.aside("record.json");
    let json = path.to_str().expect("UTF-8");
    let arguments = [
        "ior",
        "--no-evidence",
        "--no-history",
        "--json",
        json,
        "-b",
        "128k",
        "-t",
        "64k",
        "-s",
        "4",
        "-C",
        "-k",
        "-o",
        "f",
    ];
    let ran = run_ranks(&sandbox, 3, |_| arguments.to_vec());
    ran.iter().for_each(|ran| ran.assert_code(0));
    let record = record_at(&sandbox, "record.json");
    assert_sums(&record, 3);
    assert_eq!((ios(&record, "write"), ios(&record, "read")), (24, 24));
    let cluster = record.cluster.as_ref().expect("several ranks");
    let offsets = |job: usize| -> Vec<u64> {
        cluster.ranks.iter().map(|rank| rank.record.plan.jobs[job].files[0].offset_bytes >> 17).collect()
    };
    // All run on one kernel, so the next host is the next rank.
    assert_eq!((offsets(0), offsets(1)), (vec![0, 1, 2], vec![1, 2, 0]));
    let data = std::fs::read(sandbox.root().join("f")).expect("it stays");
    assert_eq!(data.len(), 3 * 4 * (128 << 10));
    assert!(
        data.chunks(4096).all(|page| page.iter().any(|byte| *byte != 0)),
        "every segment of every rank was written"
    );
    let summary = line(ran[0].out.split("Summary of all tests:").nth(1).expect("a summary"), "write");
    assert_eq!((summary[13], summary[14]), ("3", "3"), "tasks and tasks of a node: {summary:?}");
}

/// Goal: after a deadline, each rank completes the work of the one with the most, and reads all of it back.
/// Method: pauses keep both ranks from writing all before the deadline, so that they end at different numbers of I/Os.
#[test]
fn wear_out_lets_all_ranks_reach_the_work_of_the_one_with_the_most() {
    let sandbox = Sandbox::new();
    let explained = sandbox.run(&[
        "ior",
        "--explain",
        "-w",
        "-r",
        "-D",
        "1",
        "-O",
        "stoneWallingWearOut=1",
        "-b",
        "8m",
        "-t",
        "4k",
        "-o",
        "f",
    ]);
    explained.assert_code(0);
    // Each I/O of the write phase takes a millisecond or more, so that no rank completes its 2,048 of them.
    let slow = explained.out.replace("[job.write]\n", "[job.write]\nthinktime = \"1ms\"\n");
    let job = sandbox.aside("job.toml");
    std::fs::write(&job, slow).expect("a job file");
    let path = sandbox.aside("record.json");
    let arguments =
        ["run", job.to_str().expect("UTF-8"), "--no-evidence", "--no-history", "--json", path.to_str().expect("UTF-8")];
    let ran = run_ranks(&sandbox, 2, |_| arguments.to_vec());
    ran.iter().for_each(|ran| ran.assert_code(0));
    let record = record_at(&sandbox, "record.json");
    let cluster = record.cluster.as_ref().expect("several ranks");
    let own = |rank: usize, job: &str| {
        let found =
            cluster.ranks[rank].record.phases.iter().flat_map(|phase| &phase.jobs).find(|found| found.name == job);
        found.map_or(0, |found| found.ops.iter().map(|op| op.io_count).sum::<u64>())
    };
    let written = |rank| own(rank, "write") + own(rank, "write-rest");
    let most = own(0, "write").max(own(1, "write"));
    assert!(most > 0 && most < 2048, "{most}");
    assert_eq!((written(0), written(1)), (most, most));
    assert_eq!((own(0, "read"), own(1, "read")), (most, most), "as far as it was written, and no further");
}

/// Goal: what one command writes with `-G`, another reads and compares with `-R`, as far as the number in the status file.
#[test]
fn ior_compares_what_an_earlier_command_wrote_as_far_as_its_status_file_says() {
    let sandbox = Sandbox::new();
    let path = sandbox.aside("record.json");
    let json = path.to_str().expect("UTF-8");
    let run = |more: &str| {
        let _ = std::fs::remove_file(&path);
        let options = "ior --no-evidence --no-history --json";
        let line = "-F -b 47008 -t 47008 -s 20 -G 27 -k -o f -O stoneWallingStatusFile=status";
        let words = options.split(' ').chain([json]).chain(line.split(' ')).chain(more.split(' '));
        sandbox.run(&words.collect::<Vec<_>>())
    };
    run("-w -D 60 -O stoneWallingWearOut=1").assert_code(0);
    assert_eq!(std::fs::read_to_string(sandbox.root().join("status")).expect("it was written"), "20");
    std::fs::write(sandbox.root().join("status"), "7").expect("a file");
    run("-r -R").assert_code(0);
    let record = record_at(&sandbox, "record.json");
    assert_eq!((ios(&record, "read"), job_of(&record, "read").verified_block_count), (7, 7));
    let file = sandbox.root().join("f.00000000");
    let mut data = std::fs::read(&file).expect("it stays");
    data[3 * 47008 + 100] ^= 1;
    std::fs::write(&file, data).expect("a file");
    let ran = run("-r -R");
    ran.assert_code(1);
    assert!(ran.err.contains("WARNING: read: failed"), "{ran:?}");
    assert!(!ran.out.contains("WARNING"), "{ran:?}");
    // Only a file that holds a number is replaced.
    std::fs::write(sandbox.root().join("status"), "a diary").expect("a file");
    run("-w -E").assert_refused(&["`-O stoneWallingStatusFile=status` holds no number"]);
}

#[test]
fn ior_writes_its_summary_to_a_file_in_the_format_that_is_set() {
    let sandbox = Sandbox::new();
    let options = ["ior", "--no-evidence", "--no-history", "-b", "64k", "-t", "64k", "-w"];
    let ran = sandbox.run(&[&options[..], &["-O", "summaryFormat=JSON,summaryFile=results"]].concat());
    ran.assert_code(0);
    assert_eq!(ran.out, "Writing output to results\n");
    let text = std::fs::read_to_string(sandbox.root().join("results")).expect("it was written");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let result = &json["tests"][0]["Results"][0];
    let seconds = |key: &str| result[key].as_f64().expect("a number");
    let sum = seconds("openTime") + seconds("wrRdTime") + seconds("closeTime");
    assert!(seconds("openTime") > 0.0 && (sum - seconds("totalTime")).abs() < 1e-9, "{result}");
    let refused = ["-o", "same", "-O", "summaryFile=same"];
    sandbox.run(&[&options[..], &refused].concat()).assert_refused(&["`-O summaryFile=same` and `-o`"]);
}

/// Goal: a job empties the file that an earlier one wrote, as IOR does between repetitions.
/// Method: the second job writes the first block only; the rest of the file, which the first job filled, is empty again.
#[test]
fn a_file_that_is_written_anew_keeps_nothing_of_the_repetition_before() {
    let sandbox = Sandbox::new();
    let job = sandbox.aside("job.toml");
    let text = "[defaults]\nfilename = \"f\"\nsize = \"64k\"\nbs = \"4k\"\nunlink = false\n[job.a]\nrw = \"write\"\n\
                [job.b]\nstonewall = true\nrw = \"write\"\nnumber_ios = 1\n";
    for (more, is_empty) in [("", false), ("renew_files = true\n", true)] {
        std::fs::write(&job, format!("{text}{more}")).expect("a job file");
        sandbox.run(&["run", job.to_str().expect("UTF-8"), "--no-evidence", "--no-history"]).assert_code(0);
        let data = std::fs::read(sandbox.root().join("f")).expect("it stays");
        assert_eq!(data.len(), 64 << 10);
        assert!(data[..4096].iter().any(|byte| *byte != 0));
        assert_eq!(data[4096..].iter().all(|byte| *byte == 0), is_empty, "{more}");
        std::fs::remove_file(sandbox.root().join("f")).expect("it is removed");
    }
}

#[test]
fn ranks_of_ior_compare_the_regions_of_random_ranks() {
    let sandbox = Sandbox::new();
    let path = sandbox.aside("record.json");
    let json = path.to_str().expect("UTF-8");
    let options = "ior --no-evidence --no-history --json";
    let line = "-b 128k -t 64k -s 4 -Z -X 3 -w -W -r -R -o f";
    let arguments: Vec<&str> = options.split(' ').chain([json]).chain(line.split(' ')).collect();
    let ran = run_ranks(&sandbox, 3, |_| arguments.clone());
    ran.iter().for_each(|ran| ran.assert_code(0));
    let record = record_at(&sandbox, "record.json");
    for name in ["check-write", "read"] {
        assert_eq!(job_of(&record, name).verified_block_count, 24, "{name}");
    }
    let cluster = record.cluster.as_ref().expect("several ranks");
    let moved = cluster.ranks.iter().filter(|rank| {
        let offset = |job: usize| rank.record.plan.jobs[job].files[0].offset_bytes;
        offset(0) != offset(2)
    });
    assert!(moved.count() > 0, "a distance of at least 1 leads to another region");
    assert!(sandbox.listing().is_empty(), "{:?}", sandbox.listing());
}

/// Goal: the phases of mdtest can be commands of their own, as IO500 runs them.
#[test]
fn mdtest_splits_its_phases_over_commands_by_a_status_file() {
    let sandbox = Sandbox::new();
    let run = |more: &str| {
        let line = "mdtest --no-evidence --no-history -F -u -L -n 30 -d out -x status -w 3901 -e 3901";
        sandbox.run(&line.split(' ').chain(more.split(' ')).collect::<Vec<_>>())
    };
    run("-C -W 60 -Y -y -G 5").assert_code(0);
    assert_eq!(std::fs::read_to_string(sandbox.root().join("status")).expect("it was written"), "30");
    let file = sandbox.root().join("out/trueio-mdtest/tree.0/f.0.3");
    assert_eq!(std::fs::metadata(&file).expect("it stays").len(), 3901);
    run("-T").assert_code(0);
    run("-E -X -G 5").assert_code(0);
    // Other content is a failed read, which names the directory.
    let ran = run("-E -X -G 6");
    ran.assert_code(1);
    assert!(ran.err.contains("`out/trueio-mdtest` failed: Bad message"), "{ran:?}");
    run("-C").assert_refused(&["`out/trueio-mdtest` exists"]);
    run("-r").assert_code(0);
    assert!(!sandbox.root().join("out/trueio-mdtest").exists());
}

#[test]
fn mdtest_removes_what_an_earlier_command_left() {
    let sandbox = Sandbox::new();
    let run = |more: &str| {
        let line = "mdtest --no-evidence --no-history -n 12 -z 1 -b 2 -d .";
        sandbox.run(&line.split(' ').chain(more.split(' ')).collect::<Vec<_>>())
    };
    run("-C").assert_code(0);
    assert!(sandbox.root().join("trueio-mdtest/tree/2/f.0.11").exists());
    run("-r").assert_code(0);
    assert!(sandbox.listing().is_empty(), "{:?}", sandbox.listing());
}

#[test]
fn mdtest_alone_prints_mdtests_summary_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&[
        "mdtest",
        "--no-evidence",
        "--no-history",
        "-n",
        "42",
        "-z",
        "1",
        "-b",
        "6",
        "-i",
        "2",
        "-d",
        ".",
    ]);
    ran.assert_code(0);
    assert!(ran.out.contains("\nSUMMARY rate: (of 2 iterations)\n"), "{ran:?}");
    for name in [
        "Directory creation",
        "Directory stat",
        "Directory removal",
        "File creation",
        "File stat",
        "File read",
        "File removal",
        "Tree creation",
        "Tree removal",
    ] {
        let fields = line(&ran.out, name);
        assert_eq!(fields.len(), 6, "{fields:?}");
        let [max, min, mean] = [2, 3, 4].map(|index| fields[index].parse::<f64>().expect("a number"));
        assert!(max >= mean && mean >= min && min > 0.0, "{fields:?}");
    }
    assert_eq!(line(&ran.out, "Directory rename")[2], "0.000");
    assert!(sandbox.listing().is_empty(), "{:?}", sandbox.listing());
}

#[test]
fn ranks_of_mdtest_share_a_tree_and_use_the_names_of_another() {
    for private in [false, true] {
        let sandbox = Sandbox::new();
        let path = sandbox.aside("record.json");
        let json = path.to_str().expect("UTF-8");
        let mut arguments = vec!["mdtest", "--no-evidence", "--no-history", "--json", json];
        arguments.extend(["-n", "21", "-z", "2", "-b", "2", "-N", "1", "-d", "out", "-w", "10", "-e", "10"]);
        if private {
            arguments.push("-u");
        }
        let ran = run_ranks(&sandbox, 3, |_| arguments.clone());
        ran.iter().for_each(|ran| ran.assert_code(0));
        let record = record_at(&sandbox, "record.json");
        for name in [
            "directory-create",
            "directory-stat",
            "directory-remove",
            "file-create",
            "file-stat",
            "file-read",
            "file-remove",
        ] {
            assert_eq!(ios(&record, name), 63, "{name}");
        }
        let trees = if private { 21 } else { 7 };
        assert_eq!((ios(&record, "tree-create"), ios(&record, "tree-remove")), (trees, trees));
        assert!(line(&ran[0].out, "File stat")[2].parse::<f64>().expect("a number") > 0.0);
        assert!(!sandbox.root().join("out").exists(), "nothing is left, and the directory goes, too");
    }
}

/// Goal: names of an interrupted or failed run do not stay, and those of other programs do.
#[test]
fn names_that_a_run_leaves_behind_are_removed_with_their_directory() {
    let sandbox = Sandbox::new();
    let arguments = ["mdtest", "--no-evidence", "--no-history", "-n", "5", "-F", "-C", "-d", "."];
    sandbox.run(&arguments).assert_code(0);
    assert!(sandbox.root().join("trueio-mdtest/tree/f.0.4").exists(), "without -r they stay");
    sandbox.run(&arguments).assert_refused(&["`./trueio-mdtest` exists"]);
    let elsewhere = ["mdtest", "--no-evidence", "--no-history", "-n", "5", "-F", "-E", "-d", "elsewhere"];
    sandbox.run(&elsewhere).assert_refused(&["`elsewhere/trueio-mdtest`, which does not exist", "add `-C`"]);
    let stat = sandbox.run(&["mdtest", "--no-evidence", "--no-history", "-n", "5", "-F", "-T", "-d", "."]);
    stat.assert_code(0);
    assert!(sandbox.root().join("trueio-mdtest/tree/f.0.4").exists(), "a run that created none removes none");
    std::fs::remove_dir_all(sandbox.root().join("trueio-mdtest")).expect("it is removed");
    let job = sandbox.aside("job.toml");
    std::fs::write(
        &job,
        "[defaults]\nname_directory = \"set\"\nnrfiles = 3\n[job.tree]\nioengine = \"dircreate\"\nname_tree = true\n\
         [job.create]\nstonewall = true\nioengine = \"filecreate\"\n",
    )
    .expect("a job file");
    sandbox.run(&["run", job.to_str().expect("UTF-8"), "--no-evidence", "--no-history"]).assert_code(0);
    assert!(sandbox.listing().is_empty(), "{:?}", sandbox.listing());
}

/// Goal: the job files after IO500 can be planned as they are, and their phases fit together on several ranks.
/// Method: the quick one is run on two ranks, with smaller sizes.
#[test]
fn the_job_files_after_io500_are_planned_and_run() {
    let sandbox = Sandbox::new();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../jobs");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a job file");
    let job = sandbox.aside("job.toml");
    let run = |text: &str, arguments: &[&str]| {
        std::fs::write(&job, text).expect("a job file");
        sandbox.run(&[&["explain", job.to_str().expect("UTF-8")], arguments].concat())
    };
    // The sizes of the long one are more than the disk of a test has.
    let long =
        read("io500-long.toml").replace("\"1t\"", "\"4m\"").replace("94016000000", "4700800").replace("2000000", "100");
    run(&long, &["--directory", "."]).assert_code(0);
    run(&read("io500-quick.toml"), &["--directory", "."]).assert_code(0);
    let small =
        read("io500-quick.toml").replace("\"1g\"", "\"4m\"").replace("192544768", "470080").replace("= 4096", "= 10");
    let small = small.replace("nrfiles = 2000", "nrfiles = 20").replace("nrfiles = 1000", "nrfiles = 10");
    std::fs::write(&job, small).expect("a job file");
    let path = sandbox.aside("record.json");
    let json = path.to_str().expect("UTF-8");
    let arguments =
        ["run", job.to_str().expect("UTF-8"), "--directory", ".", "--no-evidence", "--no-history", "--json", json];
    let ran = run_ranks(&sandbox, 2, |_| arguments.to_vec());
    ran.iter().for_each(|ran| ran.assert_code(0));
    let record = record_at(&sandbox, "record.json");
    for (name, count) in [
        ("ior-easy-write", 4),
        ("ior-easy-read", 4),
        ("ior-hard-write", 20),
        ("ior-hard-read", 20),
        ("mdtest-easy-write", 40),
        ("mdtest-easy-stat", 40),
        ("mdtest-easy-delete", 40),
        ("mdtest-hard-write", 20),
        ("mdtest-hard-stat", 20),
        ("mdtest-hard-read", 20),
        ("mdtest-hard-delete", 20),
    ] {
        assert_eq!(ios(&record, name), count, "{name}");
    }
    assert!(sandbox.listing().is_empty(), "{:?}", sandbox.listing());
}
