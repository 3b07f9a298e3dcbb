//! What a client's job may name and be: checked before a file or device is examined.
//!
//! To examine a file that a job names already has effects: it tells whether there is one, opens a device, waits for a pipe. So the names are
//! compared with the paths of the server's command line first, as texts, and then by where their links lead. While planning, both and what is
//! created are checked again: a name may lead elsewhere by then.

use super::process::ALLOW_PRIORITY;
use super::sandbox::Sandbox;
use crate::language::{FioRequest, directories, paths};
use std::path::{Component, Path, PathBuf};
use trueio_job::options::engine::rows::IOENGINE;
use trueio_job::options::process::rows::{CMDPRIO_BSSPLIT, NICE, PRIOCLASS};
use trueio_job::value::Value;
use trueio_model::{EngineKind, IoPriority, JobSpec};

/// The paths of the server's command line.
#[derive(Debug)]
pub(super) struct Names {
    permitted: Vec<PathBuf>,
    /// The beginning of relative names.
    home: Option<PathBuf>,
    may_raise_priority: bool,
}

impl Names {
    /// `permitted` are the paths of the server's command line; relative names of jobs begin at `home`.
    pub(super) fn new(permitted: Vec<PathBuf>, home: Option<PathBuf>, may_raise_priority: bool) -> Self {
        Self { permitted, home, may_raise_priority }
    }

    /// Checks the jobs of a client. `paths` is what its jobs may use, as a part of a sentence.
    ///
    /// # Errors
    /// The refusal.
    pub(super) fn check(&self, request: &FioRequest, paths: &str) -> Result<(), String> {
        for job in &request.jobs {
            let refused = |why: String| Err(format!("job `{}` was not started\n  because: {why}", job.name));
            if let Some(path) = named(job).into_iter().find(|path| !self.permits(path, job)) {
                return refused(format!(
                    "it names `{path}`, and {paths}\n\nhint: if that is intended, start the server with `--allow-read={path}` or \
                     `--allow-write={path}`"
                ));
            }
            if let Some(what) = raised_priority(job).filter(|_| !self.may_raise_priority) {
                return refused(format!(
                    "{what} goes before other processes of the server\n\nhint: leave it out, or start the server with `{ALLOW_PRIORITY}`"
                ));
            }
        }
        Ok(())
    }

    fn permits(&self, path: &str, job: &JobSpec) -> bool {
        let path = Path::new(path);
        let engine = IOENGINE.value_in(job).unwrap_or(EngineKind::Psync);
        let is_below_home = plain(&Path::new("/home").join(path)).starts_with("/home") && path.is_relative();
        if is_below_home && !engine.opens_files() && !engine.works_on_names() {
            // No file has this name: fio's language makes one for each job.
            return true;
        }
        let whole = match (&self.home, path.is_absolute()) {
            (_, true) => plain(path),
            (Some(home), false) => plain(&home.join(path)),
            (None, false) => return false,
        };
        self.permitted.iter().any(|permitted| whole.starts_with(permitted))
    }
}

/// A name that leads out of the permitted paths. The text is the same whatever is there: it does not tell a client which files there are.
#[derive(Debug, thiserror::Error)]
#[error(
    "job `{job}` was not started\n  because: `{path}` leads elsewhere, and this server's clients may read {readable}, and its clients may \
     write {writable}\n\nhint: name a path without symbolic links, or start the server with `--allow-read=` or `--allow-write=` and the \
     directory to which they lead"
)]
pub(super) struct LeadsElsewhere {
    job: String,
    path: String,
    /// What clients may read, and write, as parts of a sentence.
    readable: String,
    writable: String,
}

/// Follows the links of the names of all jobs.
///
/// # Errors
/// The first that leads out of the permitted paths.
pub(super) fn check_links(request: &FioRequest, sandbox: &Sandbox) -> Result<(), LeadsElsewhere> {
    for job in &request.jobs {
        if let Some(path) = opened(job).into_iter().find(|path| !sandbox.may_read(Path::new(path))) {
            let (readable, writable) = (sandbox.read(), sandbox.written());
            return Err(LeadsElsewhere { job: job.name.clone(), path, readable, writable });
        }
    }
    Ok(())
}

/// Returns the paths that a job names and its engine opens.
fn opened(job: &JobSpec) -> Vec<String> {
    let engine = IOENGINE.value_in(job).unwrap_or(EngineKind::Psync);
    if engine.opens_files() || engine.works_on_names() { named(job) } else { Vec::new() }
}

/// Returns the paths that a job names: of its files, and of directories.
fn named(job: &JobSpec) -> Vec<String> {
    paths(job).into_iter().chain(directories(job)).collect()
}

/// Returns which option gives a job a priority above that of other processes.
fn raised_priority(job: &JobSpec) -> Option<String> {
    if let Some(nice) = NICE.value_in(job).filter(|nice| *nice < 0) {
        return Some(format!("`nice={nice}`"));
    }
    if PRIOCLASS.value_in(job) == Some(u64::from(IoPriority::REAL_TIME)) {
        return Some("`prioclass=1` (real time)".to_owned());
    }
    let text = job.options.get(CMDPRIO_BSSPLIT.name).map_or("", |value| value.text.as_str());
    let shares = trueio_job::row(CMDPRIO_BSSPLIT.name).and_then(|row| row.kind.read(text).ok());
    let is_real_time = match shares {
        Some(Value::Priorities(shares)) => shares.iter().any(|share| share.priority.class == IoPriority::REAL_TIME),
        _ => false,
    };
    is_real_time.then(|| "a share of I/Os with real-time priority (`cmdprio_…`)".to_owned())
}

/// Removes `.` and `..` from an absolute path, as text.
fn plain(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            Component::CurDir => {}
            part => found.push(part),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::Origin;

    fn job(options: &[(&str, &str)]) -> JobSpec {
        let mut job = JobSpec::new("j");
        options.iter().for_each(|(name, value)| job.set(name, *value, Origin::Default));
        job
    }

    #[test]
    fn names_are_compared_with_the_permitted_paths_as_text() {
        let names = Names::new(vec!["/pool/a".into(), "/dev/sdx".into()], Some("/pool/a".into()), false);
        for (path, is_permitted) in [
            ("/pool/a", true),
            ("/pool/a/b", true),
            ("b/c", true),
            ("/dev/sdx", true),
            ("/dev/sdx1", false),
            ("/pool/ab", false),
            ("/pool/a/../b", false),
            ("../a/b", true),
            ("../b", false),
            ("/etc/shadow", false),
            ("/", false),
            ("", true),
        ] {
            assert_eq!(names.permits(path, &job(&[])), is_permitted, "{path}");
        }
        let nothing = Names::new(Vec::new(), None, false);
        assert!(!nothing.permits("j.0.0", &job(&[])) && !nothing.permits("/x", &job(&[("ioengine", "null")])));
        assert!(
            nothing.permits("j.0.0", &job(&[("ioengine", "null")]))
                && !nothing.permits("../x", &job(&[("ioengine", "null")]))
        );
    }

    #[test]
    fn all_names_of_a_job_are_found() {
        assert_eq!(named(&job(&[("filename", "a:/b:c\\:d")])), ["a", "/b", "c:d"]);
        assert_eq!(named(&job(&[("filename", "a:/b"), ("directory", "/d")])), ["/d/a", "/d//b", "/d"]);
        assert_eq!(named(&job(&[("name_directory", "/n")])), ["/n"]);
    }

    #[test]
    fn priorities_above_those_of_others_are_found() {
        for options in
            [("nice", "-1"), ("prioclass", "1"), ("cmdprio_bssplit", "4k/10/1/0"), ("cmdprio_bssplit", "*/10")]
        {
            assert!(raised_priority(&job(&[options])).is_some(), "{options:?}");
        }
        for options in
            [("nice", "5"), ("prioclass", "2"), ("prioclass", "3"), ("prio", "0"), ("cmdprio_bssplit", "4k/10/2/1")]
        {
            assert_eq!(raised_priority(&job(&[options])), None, "{options:?}");
        }
    }
}
