//! What the targets of fio's language share: surroundings, and what must be true of every result.

use trueio_fio::language::{FioError, FioRequest, Surroundings, meet_targets, show_command};
use trueio_job::{Machine, Target, explain, explain_refusal, plan};

/// Every file is the input, so that what includes includes itself.
pub struct World<'a>(pub &'a str);

impl Surroundings for World<'_> {
    fn read_file(&self, _path: &str) -> Result<String, String> {
        Ok(self.0.to_owned())
    }
    fn files_below(&self, _: &str) -> Result<(Vec<String>, u64), String> {
        Err("no such directory".to_owned())
    }
    fn variable(&self, name: &str) -> Option<String> {
        (name.len() < 2).then(|| "4k".to_owned())
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

/// Asserts that a result is a report of problems, or jobs that end in a plan or a refusal.
pub fn check(result: Result<FioRequest, FioError>) {
    let mut request = match result {
        Ok(request) => request,
        Err(error) => {
            assert!(!error.problems.is_empty());
            assert!(error.render().starts_with("error: "));
            return;
        }
    };
    assert!(show_command(&request.jobs).starts_with("fio"));
    let nothing = |_: &str| Target::Missing;
    if meet_targets(&mut request.jobs, &nothing, &request.settings).is_err() {
        return;
    }
    let machine = Machine { memory_bytes: Some(1 << 30), cpus: vec![0, 1], ..Machine::unknown() };
    request.jobs.truncate(20);
    match plan(&request.jobs, &nothing, &machine) {
        Ok(plan) => assert!(request.jobs.is_empty() || explain(&plan, false).starts_with("job ")),
        Err(refusal) => assert!(explain_refusal(&refusal).starts_with("error: ")),
    }
}
