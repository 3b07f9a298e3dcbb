//! What verification leaves in files of the current directory, if the job sets that: how far it came
//! (`verify_state_save`), and blocks that differ (`verify_dump`).
//!
//! Cannot: know that the file that is read belongs to the disk that is compared; it names the job, its seed and its
//! worker, and what does not agree is refused.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use trueio_model::JobPlan;

const FORMAT: &str = "trueio-verify-state";
const VERSION: u32 = 1;

/// How far a worker came.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VerifyState {
    format: String,
    version: u32,
    job: String,
    worker: u32,
    seed: u64,
    /// What its blocks carry, as hexadecimal digits.
    run: String,
    /// Requests issued.
    issued: u64,
    /// Those of them before the last sync call that succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    synced: Option<u64>,
}

impl VerifyState {
    pub(super) fn new(job: &JobPlan, worker: u32, issued: u64, synced: Option<u64>, run: u64) -> Self {
        let run = format!("{run:016x}");
        let (format, version) = (FORMAT.to_owned(), VERSION);
        Self { format, version, job: job.name.clone(), worker, seed: job.seed, run, issued, synced }
    }

    /// How many requests are compared: all that were issued, or those that were synced.
    ///
    /// # Errors
    /// A sentence, if what was synced was not noted, or there is nothing to compare.
    pub(super) fn compared(&self, synced_only: bool) -> Result<u64, String> {
        let name = &self.job;
        let (compared, what) = match (synced_only, self.synced) {
            (false, _) => (self.issued, "written"),
            (true, Some(synced)) => (synced, "synced"),
            (true, None) => {
                return Err(format!(
                    "the verify state of `{name}` does not say what was synced: the job that wrote was without \
                     `verify_policy=fsynced`"
                ));
            }
        };
        match compared {
            0 => Err(format!("the verify state of `{name}` says that nothing was {what}: there is nothing to compare")),
            count => Ok(count),
        }
    }

    /// What its blocks carry.
    ///
    /// # Errors
    /// A sentence, if the file is damaged.
    pub(super) fn run(&self) -> Result<u64, String> {
        u64::from_str_radix(&self.run, 16).map_err(|e| format!("the verify state's `run` is damaged: {e}"))
    }

    /// Compares the state, which was read from the file `name`, with the worker that uses it.
    fn check(&self, name: &str, seed: u64, worker: u32) -> Result<(), String> {
        if self.seed != seed {
            let theirs = self.seed;
            return Err(format!(
                "`{name}` is of a job with the seed {theirs}, and this one has {seed}: they write other blocks"
            ));
        }
        if self.worker != worker {
            let theirs = self.worker;
            return Err(format!("`{name}` is of worker {theirs} of its job, and this is worker {worker}"));
        }
        Ok(())
    }

    /// Writes it to a file; returns a sentence with its name, or with the error.
    pub(super) fn save(&self, name: &str, create: impl FnOnce(&Path) -> io::Result<File>) -> String {
        let text = serde_json::to_string(self).unwrap_or_else(|e| unreachable!("plain values are JSON: {e}"));
        // It states what can be compared after a power cut, so it must outlast one.
        let write = |mut file: File| file.write_all((text + "\n").as_bytes()).and_then(|()| file.sync_all());
        match create(Path::new(name)).and_then(write) {
            Ok(()) => format!("verify: the state is in `{name}`"),
            Err(error) => format!("verify: the state could not be written to `{name}`: {error}"),
        }
    }
}

/// Reads what an earlier run left.
pub(super) fn load(job: &JobPlan, worker: u32) -> Result<VerifyState, String> {
    let name = job.verify_state_file(worker);
    let text = std::fs::read_to_string(&name).map_err(|e| format!("the verify state `{name}` cannot be read: {e}"))?;
    let state: VerifyState =
        serde_json::from_str(&text).map_err(|e| format!("`{name}` is no verify state of trueio: {e}"))?;
    if state.format != FORMAT || state.version != VERSION {
        return Err(format!("`{name}` is no verify state that this program reads"));
    }
    state.check(&name, job.seed, worker)?;
    Ok(state)
}

/// Keeps a block that differs; returns a sentence with the file's name, or with the error.
pub(super) fn dump(path: &str, offset: u64, block: &[u8]) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let name = format!("{file}.{offset}.received");
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(&name);
    match made.and_then(|mut made| made.write_all(block)) {
        Ok(()) => format!("verify: the block that was read at offset {offset} of `{path}` is in `{name}`"),
        Err(error) => {
            format!("verify: the block at offset {offset} of `{path}` could not be kept in `{name}`: {error}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::EngineKind;

    #[test]
    fn a_state_of_another_worker_is_not_taken_for_one_of_another_seed() {
        let job = JobPlan { seed: 7, ..JobPlan::plain(EngineKind::Psync, 1 << 20) };
        let state = VerifyState::new(&job, 0, 10, None, 1);
        assert_eq!(state.compared(false), Ok(10));
        assert!(state.compared(true).unwrap_err().contains("does not say what was synced"));
        assert_eq!(VerifyState::new(&job, 0, 10, Some(4), 1).compared(true), Ok(4));
        let of_nothing = VerifyState::new(&job, 0, 10, Some(0), 1).compared(true).unwrap_err();
        assert!(of_nothing.contains("nothing was synced"), "{of_nothing}");
        assert!(VerifyState::new(&job, 0, 0, None, 1).compared(false).unwrap_err().contains("nothing was written"));
        assert_eq!(state.check("f", 7, 0), Ok(()));
        let of_seed = state.check("f", 8, 0).unwrap_err();
        assert!(of_seed.contains("the seed 7, and this one has 8"), "{of_seed}");
        let of_worker = state.check("f", 7, 1).unwrap_err();
        assert!(of_worker.contains("of worker 0") && !of_worker.contains("seed"), "{of_worker}");
    }
}
