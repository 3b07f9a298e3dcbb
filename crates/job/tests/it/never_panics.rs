//! Whatever is in a file, reading it ends in a document or in a report.
//!
//! Goal: no input makes the parsers of job files and records panic, nor the planner.
//! Method: the same entry points as `fuzz/fuzz_targets/`, fed with text made of the pieces that
//! these formats are made of (so that it gets past the first line), and with single characters of
//! valid documents removed, doubled or replaced. libFuzzer goes further; this much runs in CI.

use proptest::prelude::*;
use trueio_job::{Machine, TABLE, Target, explain, explain_refusal, parse_job_file, plan};
use trueio_model::{EngineKind, JobSpec, Origin, RunRecord};

fn machine() -> Machine {
    Machine { memory_bytes: Some(1 << 30), cpus: vec![0, 1], ..Machine::unknown() }
}

/// As `fuzz_targets/job_toml.rs`: read, plan without any target in reach, print.
fn read_and_plan(text: &str) -> bool {
    match parse_job_file("job.toml", text).map(|file| file.jobs) {
        Ok(jobs) => {
            assert!(!jobs.is_empty(), "a file without a job is an error");
            plan_and_print(&jobs)
        }
        Err(error) => {
            assert!(!error.problems.is_empty(), "an error describes a problem");
            assert!(error.render().starts_with("error: "));
            for problem in &error.problems {
                assert!(text.get(problem.span.clone()).is_some(), "a span is a part of the text");
            }
            false
        }
    }
}

fn plan_and_print(jobs: &[JobSpec]) -> bool {
    match plan(jobs, &|_: &str| Target::Missing, &machine()) {
        Ok(plan) => {
            assert!(explain(&plan, false).starts_with("job "));
            for job in &plan.jobs {
                // What the engine relies on.
                assert!(job.queue.depth == 1 || job.engine.holds_a_queue());
                assert!(job.buffer_alignment_bytes.is_power_of_two());
                assert!(job.limits.runtime_ns.is_some() || !job.limits.is_time_based);
                for file in &job.files {
                    assert!(file.size_bytes > 0 && file.offset_bytes.checked_add(file.size_bytes).is_some());
                }
            }
            true
        }
        Err(refusal) => {
            assert!(explain_refusal(&refusal).starts_with("error: "));
            false
        }
    }
}

const JOB: &str = "\
# a comment
[defaults]
size = \"1g\"
ioengine = \"null\"
runtime = 1.5

[job.a]
rw = 'randrw'
bs = \"4k,8k\"
filename = [\"x\", \"y\"]
cpus_allowed = [0, 1]
iodepth = 32

[job.\"ü\"]
bssplit = \"4k/60:64k/40\"
random_distribution = \"zoned:60/10:40/90\"
direct = true
stonewall = 1
";

/// A value that has the right letters for some option.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| n.to_string()),
        any::<bool>().prop_map(|b| b.to_string()),
        "[0-9kmgt.,:/%+a-z=\\-]{0,12}".prop_map(|text| format!("\"{text}\"")),
        "\\PC{0,8}",
        Just("[\"a\", 1]".to_owned()),
        Just("{ a = 1 }".to_owned()),
        Just("1979-05-27".to_owned()),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => (0..TABLE.len()).prop_map(|index| TABLE[index].name.to_owned()),
        1 => "[a-z_.\"]{1,8}",
    ]
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (key(), value()).prop_map(|(key, value)| format!("{key} = {value}")),
        1 => "\\[{1,2}(job|defaults|job\\.[a-z. \"]{0,4})\\]{1,2}",
        1 => Just("[job.a]".to_owned()),
        1 => "\\PC{0,20}",
    ]
}

proptest! {
    // A failure found here becomes a named test next to the code that failed.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_job_file_of_any_lines_ends_in_jobs_or_in_a_report(
        lines in proptest::collection::vec(line(), 0..12),
        ending in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
    ) {
        read_and_plan(&format!("[job.z]{ending}{}", lines.join(ending)));
    }

    #[test]
    fn a_job_file_of_any_characters_ends_in_jobs_or_in_a_report(text in any::<String>()) {
        read_and_plan(&text);
    }

    #[test]
    fn a_good_job_file_with_one_character_changed_ends_in_jobs_or_in_a_report(
        at in 0..JOB.chars().count(),
        replacement in "\\PC{0,2}|[\\[\\]\"'=\\n.\\x00]{0,2}",
    ) {
        let text: String = JOB.chars().take(at).chain(replacement.chars()).chain(JOB.chars().skip(at + 1)).collect();
        read_and_plan(&text);
    }

    #[test]
    fn canonical_text_is_read_back_as_the_same_value(index in 0..TABLE.len(), text in "[0-9kmgt.,:/%+a-z=\\-]{0,16}") {
        let row = &TABLE[index];
        if let Ok(value) = row.kind.read(&text) {
            let canonical = row.kind.write(&value);
            let again = row.kind.read(&canonical);
            prop_assert!(again.as_ref().is_ok_and(|again| row.kind.write(again) == canonical),
                "{}: {text:?} -> {canonical:?} -> {again:?}", row.name);
        }
    }

    #[test]
    fn an_arbitrary_specification_is_planned_or_refused(
        options in proptest::collection::vec((key(), "[0-9kmgt.,:/%+a-z=\\-]{0,12}"), 0..6),
        engine in 0..EngineKind::ALL.len(),
    ) {
        let mut spec = JobSpec::new("a");
        spec.set("ioengine", EngineKind::ALL[engine].name(), Origin::Default);
        for (key, value) in options {
            spec.set(&key, value, Origin::Default);
        }
        plan_and_print(&[spec]);
    }

    #[test]
    fn a_record_of_any_text_is_read_or_refused(text in "[\\{\\}\\[\\]\":,0-9a-z_ \\-.]{0,200}") {
        let _ = serde_json::from_str::<RunRecord>(&text);
    }
}

#[test]
fn the_good_job_file_is_planned_so_that_the_tests_above_reach_the_planner() {
    assert!(read_and_plan(JOB));
}
