//! Parsing any job file or command line of fio's language returns jobs or an error.
//!
//! Goal: no input makes the parser or the planner panic, hang, or allocate memory without bound.
//! Method: the same entry points as `fuzz/fuzz_targets/fio_*.rs`, fed with the pieces that the language
//! consists of. libFuzzer tests more; this part runs in every test run.

use proptest::prelude::*;
use trueio_fio::language::options::options_of_fio;
use trueio_fio::language::{FioError, FioRequest, Surroundings, meet_targets, read, read_job_file, show_command};
use trueio_job::{Machine, Target, explain, explain_refusal, plan};

/// One file, which includes itself, and a variable.
struct World(String);

impl Surroundings for World {
    fn read_file(&self, path: &str) -> Result<String, String> {
        if path.contains('x') { Err("there is none".to_owned()) } else { Ok(self.0.clone()) }
    }
    fn files_below(&self, _: &str) -> Result<(Vec<String>, u64), String> {
        Err("no such directory".to_owned())
    }
    fn variable(&self, name: &str) -> Option<String> {
        (name == "A").then(|| "${A}4k;#\n[b]".to_owned())
    }
    fn page_bytes(&self) -> u64 {
        4096
    }
    fn memory_bytes(&self) -> u64 {
        1 << 30
    }
    fn processors(&self) -> u64 {
        2
    }
}

fn judge(result: Result<FioRequest, FioError>) -> bool {
    let mut request = match result {
        Ok(request) => request,
        Err(error) => {
            assert!(!error.problems.is_empty() && error.problems.len() <= 100);
            assert!(error.render().starts_with("error: "));
            return false;
        }
    };
    assert!(request.jobs.len() <= 4096);
    assert!(show_command(&request.jobs).starts_with("fio"));
    let nothing = |_: &str| Target::Missing;
    if meet_targets(&mut request.jobs, &nothing, &request.settings).is_err() {
        return false;
    }
    let machine = Machine { memory_bytes: Some(1 << 30), cpus: vec![0, 1], ..Machine::unknown() };
    request.jobs.truncate(20);
    match plan(&request.jobs, &nothing, &machine) {
        Ok(plan) => explain(&plan, false).starts_with("job "),
        Err(refusal) => {
            assert!(explain_refusal(&refusal).starts_with("error: "));
            false
        }
    }
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[0-9]{1,4}[kmgtpzKMGbi%]{0,3}",
        2 => "[0-9kmgt.,:/%+a-z=\\-*$]{0,12}",
        1 => Just("${A}".to_owned()),
        1 => Just("$ncpus*$mb_memory/$pagesize".to_owned()),
        1 => any::<i64>().prop_map(|n| n.to_string()),
        1 => "\\PC{0,8}",
        1 => (any::<prop::sample::Index>(), 0..8_usize).prop_map(|(index, word)| {
            index.get(&options_of_fio()).words().get(word).map_or("1", |word| word).to_owned()
        }),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => any::<prop::sample::Index>().prop_map(|index| index.get(&options_of_fio()).name().to_owned()),
        2 => prop_oneof![Just("rw"), Just("bs"), Just("size"), Just("numjobs"), Just("ioengine"), Just("filename")]
            .prop_map(str::to_owned),
        1 => "[a-z_-]{1,8}",
    ]
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (name(), value()).prop_map(|(name, value)| format!("{name}={value}")),
        1 => name(),
        1 => "\\[(global|a|b|\\PC{0,6})\\]",
        1 => Just("include a".to_owned()),
        1 => "\\PC{0,20}",
    ]
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (name(), value()).prop_map(|(name, value)| format!("--{name}={value}")),
        2 => name().prop_map(|name| format!("-{name}")),
        2 => value(),
        2 => Just("--name=a".to_owned()),
        1 => Just("--output-format=json+".to_owned()),
        1 => Just("a.fio".to_owned()),
        1 => "\\PC{0,12}",
    ]
}

proptest! {
    // A failure found here becomes a test with a name, next to the code that it tests.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_job_file_of_any_lines_ends_in_jobs_or_in_a_report(lines in proptest::collection::vec(line(), 0..12)) {
        let text = format!("[a]\nsize=1m\n{}\n", lines.join("\n"));
        judge(read_job_file("a.fio", &text, &World(text.clone())));
    }

    #[test]
    fn a_job_file_of_any_characters_ends_in_jobs_or_in_a_report(text in any::<String>()) {
        judge(read_job_file("a.fio", &text, &World(String::new())));
    }

    #[test]
    fn a_command_line_of_any_words_ends_in_jobs_or_in_a_report(
        words in proptest::collection::vec(word(), 0..12),
        lines in proptest::collection::vec(line(), 0..4),
    ) {
        judge(read(&words, &World(format!("[b]\nsize=1m\n{}\n", lines.join("\n")))));
    }
}

#[test]
fn a_good_job_is_planned_so_that_the_tests_above_reach_the_planner() {
    let words: Vec<String> = ["--name=a", "--ioengine=null", "--size=1m"].map(str::to_owned).into();
    assert!(judge(read(&words, &World(String::new()))));
}

/// Inputs that multiply: includes of includes, clones of jobs with many options, many files, long lists.
#[test]
fn inputs_that_multiply_are_refused_before_they_do() {
    let doubling = "include a\n".repeat(1000);
    let many_words = format!("[global]\n{}[a]\nsize=1m\nnumjobs=4096\n", "percentile_list=1\n".repeat(900));
    let many_jobs = "[a]\n".repeat(100_000);
    let alternating = "[global]\nbs=4k\n[a]\n".repeat(3000);
    let files = "[a]\nsize=1m\nnrfiles=65536\nnumjobs=4096\n".to_owned();
    let long = format!("[a]\nsize=1m\nfilename={}\n", "a:".repeat(1 << 20));
    let deep = format!("[a]\nsize={}\n", "9".repeat(1 << 20));
    for text in [doubling, many_words, many_jobs, alternating, files, long, deep] {
        assert!(!judge(read_job_file("a", &text, &World(text.clone()))), "{}", &text[..40]);
    }
}
