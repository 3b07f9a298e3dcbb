//! `compare --live` and `fio` on several ranks.

use crate::common::*;
use crate::ranks_common::*;
use serde_json::Value;
use trueio_model::{Comparison, Conclusion, Metric, Outcome};

fn comparison_at(sandbox: &Sandbox, name: &str) -> Comparison {
    let text = std::fs::read_to_string(sandbox.aside(name)).expect("rank 0 wrote the comparison");
    serde_json::from_str(&text).expect("a comparison")
}

/// A comparison of a job with a rate and the same job with twice that rate, on simulated I/O.
fn comparison(json: &str) -> Vec<&str> {
    vec![
        "compare",
        "--ioengine",
        "null",
        "--bs",
        "4k",
        "--size",
        "1m",
        "--vary",
        "rate_iops=500,1000",
        "--until",
        "iops",
        "--slice",
        "100ms",
        "--budget",
        "60s",
        "--order-seed",
        "7",
        "--no-evidence",
        "--json",
        json,
    ]
}

#[test]
fn a_comparison_runs_each_slice_on_all_ranks_and_sums_their_rates() {
    let sandbox = Sandbox::new();
    let path = sandbox.aside("comparison.json");
    let ran = run_ranks(&sandbox, 3, |_| comparison(path.to_str().expect("UTF-8")));
    for (number, ran) in ran.iter().enumerate() {
        ran.assert_code(0);
        assert_eq!(ran.out.is_empty(), number > 0, "only rank 0 prints: {ran:?}");
    }
    let comparison = comparison_at(&sandbox, "comparison.json");
    assert_eq!(comparison.outcome, Outcome::Complete);
    let part = &comparison.parts[0];
    let answer = part.answers.iter().find(|answer| answer.metric == Metric::Iops).expect("of IOPS");
    // On a busy machine a side is disturbed, and then there is no winner.
    let may_win = part.without_a_winner(1).is_empty();
    assert_eq!(answer.conclusion, if may_win { Conclusion::Better } else { Conclusion::CannotTell }, "{answer:?}");
    let ratio = answer.ratio.as_ref().expect("a ratio");
    assert!(ratio.low <= 2.0 && ratio.high >= 2.0 && ratio.low > 1.5, "{ratio:?}");
    // Three ranks at 500 I/Os a second are 1,500: one rank's figures would be a third.
    let figure = |side: usize| {
        let figures = &part.sides[side].figures;
        figures.iter().find(|figure| figure.metric == Metric::Iops).map(|figure| figure.value).expect("IOPS")
    };
    assert!((1_200.0..1_800.0).contains(&figure(0)), "{}", figure(0));
    assert!((2_400.0..3_600.0).contains(&figure(1)), "{}", figure(1));
    let notes = comparison.notes.join("\n");
    assert!(notes.contains("3 ranks on 1 host; a slice is the sum of all ranks"), "{notes}");
    assert!(notes.contains("the slowest rank is "), "{notes}");
    assert!(sandbox.listing().is_empty(), "{:?}", sandbox.listing());
}

/// Goal: each rank writes files of its own, and they are removed at the end.
#[test]
fn a_comparison_on_files_gives_each_rank_its_own() {
    let sandbox = Sandbox::new();
    let path = sandbox.aside("comparison.json");
    let arguments = [
        "compare",
        "--rw",
        "randwrite",
        "--bs",
        "4k",
        "--size",
        "1m",
        "--ioengine",
        "psync",
        "--direct",
        "off",
        "--vary",
        "iodepth=1,1",
        "--slice",
        "50ms",
        "--budget",
        "4s",
        "--no-evidence",
        "--json",
        path.to_str().expect("UTF-8"),
    ];
    let ran = run_ranks(&sandbox, 2, |_| arguments.to_vec());
    ran.iter().for_each(|ran| ran.assert_code(0));
    let comparison = comparison_at(&sandbox, "comparison.json");
    let setting = comparison.setting.as_ref().expect("rank 0's record");
    let file = &setting.plan.jobs[0].files[0].path;
    assert!(file.contains("-rank0-"), "{file}");
    assert!(sandbox.listing().is_empty(), "{:?}", sandbox.listing());
}

#[test]
fn ranks_that_compare_other_things_are_refused() {
    let sandbox = Sandbox::new();
    let path = sandbox.aside("comparison.json");
    let ran = run_ranks(&sandbox, 2, |number| {
        let mut arguments = comparison(path.to_str().expect("UTF-8"));
        if number == 1 {
            arguments.extend(["--margin", "7%"]);
        }
        arguments
    });
    ran.iter().for_each(|ran| ran.assert_code(2));
    assert!(ran[0].err.contains("the ranks differ: rank 1 (") && ran[0].err.contains("margin = 0.07"), "{:?}", ran[0]);
    assert!(!path.exists(), "nothing was compared");
}

/// Goal: a rank that dies or is interrupted in a comparison ends it on all ranks, and what was measured is printed.
/// Method: a comparison that would take a minute; the signal comes when each rank has done an I/O, which a log of its own shows.
#[test]
fn a_comparison_ends_on_all_ranks_when_one_dies_or_is_interrupted() {
    for (signal, signalled) in [(libc::SIGKILL, 1), (libc::SIGINT, 1), (libc::SIGINT, 0)] {
        let sandbox = Sandbox::new();
        let path = sandbox.aside("comparison.json");
        let seen = sandbox.aside("seen-$rank");
        let arguments = [
            "compare",
            "--ioengine",
            "null",
            "--size",
            "1m",
            "--vary",
            "rate_iops=100,101",
            "--budget",
            "60s",
            "--no-evidence",
            "--write_iops_log",
            seen.to_str().expect("UTF-8"),
            "--json",
            path.to_str().expect("UTF-8"),
        ];
        let port = free_port();
        let started: Vec<Running> =
            (0..2).map(|number| Running::start(&mut rank(&sandbox, number, 2, port, &arguments))).collect();
        for (number, running) in started.iter().enumerate() {
            running.wait_for_io(&sandbox.aside(&format!("seen-{number}_iops.1.log")));
        }
        started[signalled].signal(signal);
        let ended: Vec<(Ran, Option<i32>)> = started.into_iter().map(Running::wait).collect();
        for (number, (ran, by)) in ended.iter().enumerate() {
            if signal == libc::SIGKILL && number == signalled {
                assert_eq!(*by, Some(signal));
            } else {
                ran.assert_code(1);
            }
        }
        let comparison = comparison_at(&sandbox, "comparison.json");
        match &comparison.outcome {
            Outcome::Failed { reason } => {
                assert!(signal == libc::SIGKILL && reason.starts_with("rank 1 ("), "{reason}");
            }
            Outcome::Interrupted { signal: by } => assert_eq!((signal, by.as_str()), (libc::SIGINT, "SIGINT")),
            Outcome::Complete => panic!("it was ended"),
        }
    }
}

/// Goal: records of another number of ranks are compared, and the difference is named.
#[test]
fn a_comparison_of_records_names_another_number_of_ranks() {
    let sandbox = Sandbox::new();
    let paths = [2, 3].map(|size| {
        let path = sandbox.aside(&format!("ranks{size}.json")).to_str().expect("UTF-8").to_owned();
        let job = [
            "run",
            "--ioengine",
            "null",
            "--size",
            "1m",
            "--runtime",
            "300ms",
            "--time_based",
            "--no-history",
            "--json",
        ];
        let arguments = [&job[..], &[path.as_str()]].concat();
        run_ranks(&sandbox, size, |_| arguments.clone()).iter().for_each(|ran| ran.assert_code(0));
        path
    });
    let json = sandbox.aside("comparison.json");
    sandbox.run(&["compare", &paths[0], &paths[1], "--json", json.to_str().expect("UTF-8")]).assert_code(0);
    let comparison = comparison_at(&sandbox, "comparison.json");
    let ranks = comparison.differences.iter().find(|difference| difference.name == "ranks").expect("a difference");
    assert_eq!((ranks.first.as_str(), ranks.this.as_str(), ranks.forbids), ("2", "3", false));
}

/// Goal: fio's results on several ranks are the sums of all; only rank 0 prints them.
#[test]
fn fio_on_several_ranks_prints_the_sums_and_each_rank_has_files_of_its_own() {
    let sandbox = Sandbox::new();
    let arguments = [
        "fio",
        "--name=job",
        "--rw=write",
        "--bs=64k",
        "--size=1m",
        "--numjobs=2",
        "--output-format=json",
        "--ioengine=psync",
    ];
    // As with fio, a second run uses the files of the first.
    run_ranks(&sandbox, 3, |_| arguments.to_vec()).iter().for_each(|ran| ran.assert_code(0));
    let ran = run_ranks(&sandbox, 3, |_| arguments.to_vec());
    for (number, ran) in ran.iter().enumerate() {
        ran.assert_code(0);
        assert_eq!(ran.out.is_empty(), number > 0, "only rank 0 prints: {ran:?}");
    }
    let result: Value = serde_json::from_str(&ran[0].out_joined()).expect("fio's JSON");
    let written = result["jobs"].as_array().expect("jobs").iter().map(|job| job["write"]["io_bytes"].as_u64());
    assert_eq!(written.map(Option::unwrap_or_default).sum::<u64>(), 6 << 20);
    assert!(ran[0].err.contains("3 ranks"), "{}", ran[0].err);
    let names: Vec<String> = sandbox.listing().into_iter().collect();
    let named = |rank: usize, job: usize| format!("rank{rank}.job.{job}.0");
    for (rank, job) in (0..3).flat_map(|rank| [(rank, 0), (rank, 1)]) {
        assert!(names.iter().any(|name| name.contains(&named(rank, job))), "{names:?}");
    }
}

/// Goal: a rank that cannot read its jobs ends all, and one sentence names it.
/// Method: the job file of rank 1 is missing.
#[test]
fn a_rank_that_cannot_read_a_job_file_of_fio_ends_all_ranks() {
    let sandbox = Sandbox::new();
    let files = [sandbox.aside("job-0.fio"), sandbox.aside("job-1.fio")];
    std::fs::write(&files[0], "[job]\nioengine=null\nsize=1m\nrw=read\n").expect("a job file");
    let ran = run_ranks(&sandbox, 2, |number| vec!["fio", files[number].to_str().expect("UTF-8")]);
    ran.iter().for_each(|ran| ran.assert_code(2));
    assert!(ran[0].err.contains("rank 1 (") && ran[0].err.contains("job-1.fio` cannot be read"), "{:?}", ran[0]);
    assert_eq!((ran[0].err.matches("error:").count(), ran[1].err.as_str()), (1, ""), "{:?}", ran[0]);
}

#[test]
fn fio_on_several_ranks_refuses_what_each_rank_would_do_by_itself() {
    for (options, words) in [
        (&["--status-interval=1"][..], "`--status-interval` is for a run of one process"),
        (&["--write_bw_log=log"], "each rank would write the log of `write_bw_log` under the same name"),
        (&["--exec_prerun=true", "--allow-exec"], "`exec_prerun and exec_postrun` is for a run of one process"),
    ] {
        let sandbox = Sandbox::new();
        let arguments = [&["fio", "--name=job", "--ioengine=null", "--size=1m"][..], options].concat();
        let ran = run_ranks(&sandbox, 2, |_| arguments.clone());
        ran.iter().for_each(|ran| ran.assert_code(2));
        assert!(ran[0].err.contains(words), "{:?}", ran[0]);
        assert!(sandbox.listing().is_empty(), "{:?}", sandbox.listing());
    }
    let sandbox = Sandbox::new();
    let arguments =
        ["fio", "--name=job", "--ioengine=null", "--size=1m", "--write_bw_log=log-$rank", "--output-format=terse"];
    let ran = run_ranks(&sandbox, 2, |_| arguments.to_vec());
    ran.iter().for_each(|ran| ran.assert_code(0));
    assert_eq!(sandbox.listing().len(), 2, "a log of each rank: {:?}", sandbox.listing());
}
