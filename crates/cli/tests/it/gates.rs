//! Limits (`--fail-if`, `[limits]`, `--against`) of `run`, `baseline`, `fio` and `compare`: exit statuses and outputs.
//!
//! A limit is met or missed only by a confirmed figure. On a busy machine a run may be disturbed, which a test cannot forbid: each run is
//! judged by the verdict that its own record has, so every outcome is asserted, and those that did not occur are printed.

use crate::common::*;
use std::fs;
use trueio_model::{Estimate, LimitOutcome, Mark, RunRecord, Verdict};

const NULL: &[&str] = &["run", "--ioengine", "null", "--number_ios", "2000", "--name", "reads"];

/// Reads of 4 KiB, one at a time, on the disk of the sandbox.
const READS: &[&str] = &[
    "run",
    "--name",
    "reads",
    "--rw",
    "randread",
    "--bs",
    "4k",
    "--ioengine",
    "psync",
    "--size",
    "16m",
    "--runtime",
    "900ms",
    "--time_based",
    "--direct",
    "require",
    "--directory",
    ".",
];

fn with<'a>(words: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [words, more].concat()
}

/// Returns the only limit of a record, with the mark of its first phase.
fn limit_of(record: &RunRecord) -> (LimitOutcome, String, String, Mark) {
    let answer = trueio_report::answer(record, &[]);
    let limit = answer.limits.first().expect("a limit");
    (limit.outcome, limit.sentence.clone(), limit.next_step.clone(), trueio_report::mark(&record.phases[0]))
}

#[test]
fn a_confirmed_run_exits_with_0_or_1_by_its_limit_and_another_with_3() {
    let sandbox = Sandbox::new();
    if has_no_disk(&sandbox) {
        return;
    }
    for (limit, code, outcome) in [("max > 1h", 0, LimitOutcome::Met), ("reads: max > 1ns", 1, LimitOutcome::Missed)] {
        let mut is_shown = false;
        for _ in 0..6 {
            let (ran, record) =
                sandbox.record(&with(READS, &["--fail-if", limit, "--junit", "tests.xml", "--html", "page.html"]));
            let (found, sentence, next_step, mark) = limit_of(&record);
            let junit = fs::read_to_string(sandbox.path("tests.xml")).expect("JUnit");
            let line = format!("limit {}: ", found.word());
            assert!(ran.out.contains(&line), "the screen lacks `{line}`: {ran:?}");
            assert!(fs::read_to_string(sandbox.path("page.html")).expect("a page").contains(&line));
            if mark == Mark::Confirmed {
                assert_eq!(found, outcome, "{sentence}");
                ran.assert_code(code);
                assert_eq!(junit.contains("<failure"), code == 1, "{junit}");
                is_shown = true;
                break;
            }
            assert_eq!((found, next_step.is_empty()), (LimitOutcome::Undecided, false), "{sentence}");
            ran.assert_code(3);
            assert!(junit.contains("<skipped message=\"undecided: "), "{junit}");
        }
        if !is_shown {
            println!("skipped: no run was confirmed on this busy machine, so `{limit}` was undecided each time");
        }
    }
}

#[test]
fn a_limit_on_an_unverified_figure_exits_with_3_and_what_would_decide_it() {
    let sandbox = Sandbox::new();
    let (ran, record) = sandbox.record(&with(NULL, &["--fail-if", "p99 > 1h", "--junit", "tests.xml"]));
    ran.assert_code(3);
    let (outcome, sentence, next_step, _) = limit_of(&record);
    assert_eq!(outcome, LimitOutcome::Undecided);
    assert!(sentence.starts_with("reads: p99 ") && sentence.contains("is unverified"), "{sentence}");
    assert!(next_step.contains("`trueio doctor`"), "{next_step}");
    assert!(ran.out.contains("limit undecided: reads: p99"), "{ran:?}");
    assert!(fs::read_to_string(sandbox.path("tests.xml")).expect("JUnit").contains("name=\"reads: p99 &gt; 1h\""));
    // Where stdout has no place for it, stderr has it.
    for words in [&["-q"][..], &["--json", "-"]] {
        let ran = sandbox.run(&with(&with(NULL, &["--fail-if", "p99 > 1h"]), words));
        ran.assert_code(3);
        assert!(ran.err.contains("limit undecided: reads: p99"), "{ran:?}");
    }
    // The record keeps it.
    let reported = sandbox.run(&["report", &record.id]);
    reported.assert_code(0);
    assert!(reported.out.contains("limit undecided: reads: p99"), "{reported:?}");
}

#[test]
fn a_limit_that_cannot_be_read_or_decided_is_refused_before_the_run() {
    let sandbox = Sandbox::new();
    let before = sandbox.listing();
    for (words, sentence) in [
        (&["--fail-if", "p98 > 1ms"][..], "a figure is expected, not `p98`"),
        (&["--fail-if", "p99 > 10"], "a time needs its unit"),
        (&["--fail-if", "writes: p99 > 1ms"], "there is no load `writes`; the loads are `reads`"),
        (&["--fail-if", "commits < 5"], "no load syncs"),
        (&["--fail-if", "cpu > 1us"], "`trueio compare` compares it"),
        (&["--fail-if", "IOPS < 95%"], "name a record with `--against ID`"),
        (
            &["--fail-if", "IOPS < 95%", "--against", "newest"],
            "the history has no complete `trueio run` with these loads",
        ),
        (&["--fail-if", "IOPS < 95%", "--against", "ffffffff"], "`trueio history` lists all runs"),
    ] {
        sandbox.run(&with(READS, words)).assert_refused(&[sentence]);
    }
    assert_eq!(sandbox.listing(), before);
}

#[test]
fn a_relative_limit_refers_to_a_record_that_does_the_same() {
    let sandbox = Sandbox::new();
    let (ran, first) = sandbox.record(NULL);
    ran.assert_code(0);
    let against = ["--fail-if", "IOPS < 95%", "--against"];
    for name in ["newest", &first.id[..8]] {
        let (ran, record) = sandbox.record(&with(&with(NULL, &against), &[name]));
        ran.assert_code(3);
        let limits = record.plan.limits.as_ref().expect("limits");
        let reference = limits.reference.as_ref().expect("a reference");
        assert!(name == "newest" || reference.record_id == first.id, "{reference:?}");
    }
    let other = with(&with(NULL, &["--bs", "8k"]), &against);
    sandbox.run(&with(&other, &[&first.id])).assert_refused(&["that does the same", "there it is "]);
    sandbox.run(&with(&other, &["newest"])).assert_refused(&["with these loads"]);
}

#[test]
fn a_job_file_has_limits_that_flags_add_to() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "job.toml",
        "[job.reads]\nioengine = \"null\"\nnumber_ios = 2000\n\n[limits]\nfail_if = [\"reads: p99 > 1h\"]\n",
    );
    let (ran, record) = sandbox.record(&["run", "job.toml", "--fail-if", "IOPS < 1"]);
    ran.assert_code(3);
    let limits = record.plan.limits.as_ref().expect("limits");
    assert_eq!(limits.conditions, ["reads: p99 > 1h", "IOPS < 1"]);
    let explained = sandbox.run(&["explain", "job.toml", "--json"]);
    assert!(explained.out.contains("reads: p99 > 1h"), "{explained:?}");
    sandbox.write("wrong.toml", "[job.a]\nioengine = \"null\"\nnumber_ios = 1\n[limits]\nfail_if = \"p99 > 10\"\n");
    sandbox.run(&["run", "wrong.toml"]).assert_refused(&["wrong.toml:5:", "a time needs its unit"]);
}

#[test]
fn a_baseline_has_limits() {
    let sandbox = Sandbox::new();
    let load = "rand-read-4k-q1";
    let words =
        ["baseline", "--quick", "--size", "16m", "--loads", load, "--runtime", "300ms", "--fail-if", "max > 1h"];
    let (ran, record) = sandbox.record(&words);
    let (outcome, sentence, _, mark) = limit_of(&record);
    assert!(sentence.starts_with(load), "{sentence}");
    let is_confirmed = mark == Mark::Confirmed;
    assert_eq!(outcome == LimitOutcome::Met, is_confirmed, "{sentence}");
    ran.assert_code(if is_confirmed { 0 } else { 3 });
    let missed = ["--no-evidence", "--fail-if", "nothing: p99 > 1ms"];
    sandbox.run(&with(&words[..8], &missed)).assert_refused(&["there is no load `nothing`"]);
}

#[test]
fn fio_has_limits_that_are_no_option_of_its_language() {
    let sandbox = Sandbox::new();
    let null = ["fio", "--name=a", "--ioengine=null", "--size=64k", "--output-format=json"];
    for words in [&["--fail-if", "p99 > 1h"][..], &["--fail-if=p99 > 1h"]] {
        let ran = sandbox.run(&with(&null, words));
        ran.assert_code(3);
        assert!(ran.err.contains("limit undecided: a: p99"), "{ran:?}");
        assert!(serde_json::from_str::<serde_json::Value>(&ran.out).is_ok(), "stdout has only the results: {ran:?}");
    }
    for (limit, sentence) in [("p99 > 10", "a time needs its unit"), ("b: p99 > 1ms", "there is no load `b`")] {
        let ran = sandbox.run(&with(&null, &["--fail-if", limit]));
        ran.assert_code(1);
        assert!(ran.err.contains(sentence), "{ran:?}");
    }
    sandbox.write("job.fio", "[a]\nioengine=null\nsize=64k\nfail-if=p99 > 1h\n");
    sandbox.run(&["fio", "job.fio"]).assert_code(1);
    let ran = sandbox.run(&["fio", "--client=sock:/nowhere", "job.fio", "--fail-if", "p99 > 1h"]);
    assert!(ran.err.contains("`--fail-if` does not work with `--client`"), "{ran:?}");

    if has_no_disk(&sandbox) {
        return;
    }
    let disk =
        ["fio", "--name=a", "--rw=randread", "--bs=4k", "--size=16m", "--direct=1", "--runtime=1", "--time_based"];
    for (limit, code) in [("max > 1h", 0), ("max > 1ns", 1)] {
        let ran = sandbox.run(&with(&disk, &["--fail-if", limit]));
        // A short job with a limit observes the idle disk, too; without that no figure could be confirmed.
        assert!(!ran.err.contains("unverified"), "{ran:?}");
        let expected = match ran.err.contains("limit undecided: ") {
            true => 3,
            false => code,
        };
        ran.assert_code(expected);
        assert_eq!(ran.err.contains("limit missed: a: max "), expected == 1, "{ran:?}");
    }
}

/// Writes a kept record whose loads are confirmed, with 100 operations per second, give or take one.
fn confirmed(sandbox: &Sandbox, name: &str) {
    let path = format!("{}/../store/tests/records/v1.json", env!("CARGO_MANIFEST_DIR"));
    let mut record = read_record(std::path::Path::new(&path));
    for phase in &mut record.phases {
        phase.checks.retain(|check| !check.objects());
        phase.verdict = Verdict::Supported;
        for op in phase.jobs.iter_mut().flat_map(|job| &mut job.ops) {
            op.ios_per_s = Some(Estimate { value: 100.0, low: 99.0, high: 101.0 });
        }
    }
    sandbox.write(name, trueio_report::json(&record));
}

#[test]
fn compare_judges_shares_of_the_first_side_and_absolute_limits_of_the_others() {
    let sandbox = Sandbox::new();
    let model =
        ["compare", "--rw", "randread", "--bs", "4k", "--ioengine", "simulated", "--size", "64m", "--order-seed", "7"];
    let live = ["--vary", "simulated=service=100us,service=110us", "--budget", "20s", "--slice", "50ms", "--fail-if"];
    for (limit, code) in [("iops < 95%", 1), ("IOPS < 80%", 0), ("B: iops < 95%", 1), ("p99 > 1h", 3)] {
        let ran = sandbox.run(&with(&with(&model, &live), &[limit]));
        ran.assert_code(code);
        assert!(code != 3 || ran.out.contains("is unverified"), "{ran:?}");
    }
    for (limit, sentence) in [("max > 1ms", "a comparison has no max"), ("C: iops < 95%", "there is no side `C`")] {
        sandbox.run(&with(&with(&model, &live), &[limit])).assert_refused(&[sentence]);
    }
    let job = "[job.a]\nrw = \"randread\"\nbs = \"4k\"\nioengine = \"simulated\"\nsize = \"64m\"\nsimulated = \"service=100us\"\n";
    sandbox.write("a.toml", job);
    sandbox.write("b.toml", format!("{}[limits]\nfail_if = \"a: iops < 95%\"\n", job.replace("100us", "110us")));
    sandbox.run(&["compare", "a.toml", "b.toml", "--live", "--budget", "20s", "--slice", "50ms"]).assert_code(1);
    confirmed(&sandbox, "a.json");
    confirmed(&sandbox, "b.json");
    for (limit, code) in [("IOPS < 1", 0), ("IOPS < 1000000", 1), ("IOPS < 100", 3), ("A: IOPS < 1", 0)] {
        let ran = sandbox.run(&["compare", "a.json", "b.json", "--fail-if", limit, "--junit", "tests.xml"]);
        ran.assert_code(code);
        let junit = fs::read_to_string(sandbox.path("tests.xml")).expect("JUnit");
        assert_eq!(junit.contains("<failure"), code == 1, "{junit}");
        assert_eq!(junit.contains("undecided: "), code == 3, "{junit}");
    }
}
