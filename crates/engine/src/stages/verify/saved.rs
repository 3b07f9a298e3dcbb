//! What verification leaves in files of the current directory, if the job sets that: how far it came
//! (`verify_state_save`), and blocks that differ (`verify_dump`).
//!
//! A state has fio's format, so that fio's `fio-verify-state` prints it:
//!
//! | bytes      | field      | meaning                                                                 |
//! |------------|------------|-------------------------------------------------------------------------|
//! | 0..8       | `version`  | 7                                                                       |
//! | 8..16      | `size`     | bytes from 24 on                                                        |
//! | 16..24     | `crc`      | CRC-32C of them, without the final inversion                            |
//! | 24..28     | `depth`    | queue depth                                                             |
//! | 32..40     | `numberio` | writes issued                                                           |
//! | 40..48     | `index`    | number of the worker in its job, from 0                                 |
//! | 48..56     | `use64`    | 1                                                                       |
//! | 56..104    | `rand`     | fio's generator; here seed, run, requests issued, those synced, 0, magic |
//! | 104..168   | `name`     | the job's name, cut off after 63 bytes                                  |
//! | 168..      | `inflight` | for each slot the number of its write; here always none (all bits set)  |
//!
//! Little-endian. A state that fio wrote has no magic and is refused: fio's generator gives other offsets.
//!
//! Cannot: know that the file that is read belongs to the disk that is compared; it names the job's seed and worker, and
//! what does not agree is refused.
//!
//! Source: `verify-state.h` of fio 3.42, by the output of its `fio-verify-state`.

use crate::context::WorkerContext;
use crate::verify::EXPECTED;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use trueio_model::{BlockSizes, JobPlan, OpMix};

const VERSION: u64 = 7;
const HEADER_BYTES: usize = 24;
/// Bytes of a state without its slots.
const STATE_BYTES: usize = 144;
const NAME_BYTES: usize = 64;
/// In the place of the generator's last word: which fio leaves 0.
const MAGIC: u64 = u64::from_le_bytes(*b"TRUEIO\0\x01");
/// No write in flight.
const NOT_IN_FLIGHT: u64 = u64::MAX;

/// Returns the most I/Os that the bytes of a job's limits permit; `u64::MAX` if these do not end it alone, or its blocks differ in size.
fn steps_max(job: &JobPlan) -> u64 {
    let (limits, pattern) = (&job.limits, &job.pattern);
    let ends_by_bytes = !limits.is_time_based && limits.ramp_ns == 0 && job.zones.is_none() && job.replay.is_none();
    let is_alike = matches!(pattern.mix, OpMix::Only(_)) || pattern.read_sizes == pattern.write_sizes;
    match pattern.write_sizes {
        BlockSizes::Fixed(bytes) if ends_by_bytes && is_alike => {
            limits.io_bytes.div_ceil(bytes).saturating_mul(limits.loops)
        }
        _ => u64::MAX,
    }
}

/// How far a worker came.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct VerifyState {
    job: String,
    worker: u32,
    seed: u64,
    depth: u32,
    /// What its blocks carry.
    run: u64,
    /// Requests issued.
    issued: u64,
    /// Writes among them.
    writes: u64,
    /// Those of the requests that were issued before the last sync call that succeeded.
    synced: Option<u64>,
}

impl VerifyState {
    /// `counts`: requests issued, writes among them, and requests synced, if that was noted.
    pub(super) fn new(job: &JobPlan, worker: u32, counts: (u64, u64, Option<u64>), run: u64) -> Self {
        let (issued, writes, synced) = counts;
        let (seed, depth) = (job.seed, job.queue.depth);
        Self { job: job.name.clone(), worker, seed, depth, run, issued, writes, synced }
    }

    /// How many requests are compared: all that were issued, or those that were synced.
    ///
    /// # Errors
    /// A sentence, if what was synced was not noted, there is nothing to compare, or `reader` ends before it has compared them all.
    pub(super) fn compared(&self, reader: &JobPlan, synced_only: bool) -> Result<u64, String> {
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
        // Sync calls are requests, too, and are no bytes. Only a mixed job without them has known reads among its requests.
        let has_only_transfers = matches!(reader.pattern.mix, OpMix::ReadWrite { .. }) && !reader.flush.is_between();
        let others = if has_only_transfers { 0 } else { self.issued.saturating_sub(self.writes) };
        let transfers = compared.saturating_sub(others);
        match compared {
            _ if transfers > steps_max(reader) => Err(format!(
                "the verify state of `{name}` says that {transfers} I/Os were {what}, and this job ends after {}: its files are \
                 shorter, or its options are not those of the job that wrote",
                steps_max(reader)
            )),
            0 => Err(format!("the verify state of `{name}` says that nothing was {what}: there is nothing to compare")),
            count => Ok(count),
        }
    }

    /// What its blocks carry.
    pub(super) fn run(&self) -> u64 {
        self.run
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

    fn to_bytes(&self) -> Vec<u8> {
        let mut state = Vec::with_capacity(STATE_BYTES + 8 * self.depth as usize);
        state.extend(u64::from(self.depth).to_le_bytes());
        let synced = self.synced.map_or(0, |count| count.saturating_add(1));
        let rand = [self.seed, self.run, self.issued, synced, 0, MAGIC];
        for word in [self.writes, u64::from(self.worker), 1].into_iter().chain(rand) {
            state.extend(word.to_le_bytes());
        }
        let name: Vec<u8> = self.job.bytes().take(NAME_BYTES - 1).collect();
        state.extend(&name);
        state.resize(STATE_BYTES, 0);
        for _ in 0..self.depth {
            state.extend(NOT_IN_FLIGHT.to_le_bytes());
        }
        let mut file = Vec::with_capacity(HEADER_BYTES + state.len());
        for word in [VERSION, state.len() as u64, u64::from(fio_crc(&state))] {
            file.extend(word.to_le_bytes());
        }
        file.extend(state);
        file
    }

    /// Reads a state from the bytes of the file `name`.
    fn from_bytes(name: &str, file: &[u8]) -> Result<Self, String> {
        let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().expect("eight bytes"));
        let foreign = || format!("`{name}` is no verify state that this program reads");
        if file.len() < HEADER_BYTES + STATE_BYTES || word(0) != VERSION {
            return Err(foreign());
        }
        let state = &file[HEADER_BYTES..];
        if word(8) != state.len() as u64 || word(16) != u64::from(fio_crc(state)) {
            return Err(format!("the verify state `{name}` is damaged"));
        }
        if word(96) != MAGIC {
            return Err(format!("`{name}` is a verify state of fio, whose generator gives other offsets"));
        }
        let name_bytes = &file[104..104 + NAME_BYTES];
        let length = name_bytes.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
        Ok(Self {
            job: String::from_utf8_lossy(&name_bytes[..length]).into_owned(),
            worker: word(40) as u32,
            seed: word(56),
            depth: word(24) as u32,
            run: word(64),
            issued: word(72),
            writes: word(32),
            synced: word(80).checked_sub(1),
        })
    }

    /// Writes it to a file that `create` returns, with the reason if it has another name; returns a sentence with its name.
    ///
    /// # Errors
    /// A sentence: it could not be written, or has another name.
    pub(super) fn save(
        &self,
        name: &str,
        create: impl FnOnce(&Path) -> io::Result<(File, Option<String>)>,
    ) -> Result<String, String> {
        // It states what can be compared after a power cut, so it must outlast one.
        let write = |(mut file, problem): (File, Option<String>)| {
            file.write_all(&self.to_bytes()).and_then(|()| file.sync_all()).map(|()| problem)
        };
        let failed = |reason: String| format!("the verify state could not be written to `{name}`: {reason}");
        match create(Path::new(name)).and_then(write) {
            Ok(None) => Ok(format!("verify: the state is in `{name}`")),
            Ok(Some(problem)) => Err(failed(problem)),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

/// CRC-32C as fio computes it: without the final inversion.
fn fio_crc(bytes: &[u8]) -> u32 {
    !crc32c::crc32c(bytes)
}

/// Saves the state of a worker that wrote nothing, because its job only creates files, if the job saves one; returns a sentence
/// with the file's name, or with the error.
pub fn save_empty_state(context: &WorkerContext<'_>) -> Option<Result<String, String>> {
    let plan = context.plan;
    plan.verify.as_ref().filter(|verify| verify.saves_state)?;
    let state = VerifyState::new(plan, context.worker, (0, 0, None), 0);
    Some(state.save(&plan.verify_state_file(context.worker), |path| (context.host.create_file)(plan, path)))
}

/// The longest state that is read, in bytes.
const STATE_BYTES_MAX: u64 = 1 << 30;

/// Reads what an earlier run left.
pub(super) fn load(job: &JobPlan, worker: u32) -> Result<VerifyState, String> {
    let name = job.verify_state_file(worker);
    let file = trueio_files::read_own(Path::new(&name), STATE_BYTES_MAX)
        .map_err(|e| format!("the verify state `{name}` cannot be read: {e}"))?;
    let state = VerifyState::from_bytes(&name, &file)?;
    state.check(&name, job.seed, worker)?;
    Ok(state)
}

/// Keeps a block that differs, or what it should hold, in a directory or the current one; returns a sentence with the file's
/// name, or with the error.
pub(super) fn dump(directory: Option<&str>, path: &str, offset: u64, kind: &str, block: &[u8]) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let directory = directory.map_or(String::new(), |directory| format!("{}/", directory.trim_end_matches('/')));
    let name = format!("{directory}{file}.{offset}.{kind}");
    let what = if kind == EXPECTED { "expected" } else { "read" };
    // No access control list of another user's directory lets anybody write to it.
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(&name);
    match made.and_then(|mut made| made.write_all(block)) {
        Ok(()) => format!("verify: the block that was {what} at offset {offset} of `{path}` is in `{name}`"),
        Err(error) => {
            format!("verify: the block at offset {offset} of `{path}` could not be kept in `{name}`: {error}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::EngineKind;

    fn job() -> JobPlan {
        JobPlan { seed: 7, ..JobPlan::plain(EngineKind::Psync, 1 << 20) }
    }

    #[test]
    fn a_state_of_another_worker_is_not_taken_for_one_of_another_seed() {
        let job = job();
        let state = VerifyState::new(&job, 0, (10, 10, None), 1);
        assert_eq!(state.compared(&job, false), Ok(10));
        assert!(state.compared(&job, true).unwrap_err().contains("does not say what was synced"));
        assert_eq!(VerifyState::new(&job, 0, (10, 10, Some(4)), 1).compared(&job, true), Ok(4));
        let of_nothing = VerifyState::new(&job, 0, (10, 10, Some(0)), 1).compared(&job, true).unwrap_err();
        assert!(of_nothing.contains("nothing was synced"), "{of_nothing}");
        let ends_early = VerifyState::new(&job, 0, (257, 257, None), 1).compared(&job, false).unwrap_err();
        assert!(ends_early.contains("257 I/Os were written, and this job ends after 256"), "{ends_early}");
        // A sync call after every 16 writes is a request, and no I/O of the job's bytes.
        for (synced, synced_only) in [(Some(272), true), (None, false)] {
            assert_eq!(VerifyState::new(&job, 0, (272, 256, synced), 1).compared(&job, synced_only), Ok(272));
            let beyond = VerifyState::new(&job, 0, (273, 257, synced.map(|count| count + 1)), 1);
            let beyond = beyond.compared(&job, synced_only).unwrap_err();
            assert!(beyond.contains("says that 257 I/Os were"), "{beyond}");
        }
        let nothing = VerifyState::new(&job, 0, (0, 0, None), 1).compared(&job, false).unwrap_err();
        assert!(nothing.contains("nothing was written"), "{nothing}");
        assert_eq!(state.check("f", 7, 0), Ok(()));
        let of_seed = state.check("f", 8, 0).unwrap_err();
        assert!(of_seed.contains("the seed 7, and this one has 8"), "{of_seed}");
        let of_worker = state.check("f", 7, 1).unwrap_err();
        assert!(of_worker.contains("of worker 0") && !of_worker.contains("seed"), "{of_worker}");
    }

    #[test]
    fn a_state_is_read_as_it_was_written_and_a_damaged_or_foreign_one_is_refused() {
        for synced in [None, Some(0), Some(9)] {
            let state = VerifyState::new(&job(), 0, (10, 8, synced), 0x1234_5678_9abc_def1);
            let file = state.to_bytes();
            assert_eq!(VerifyState::from_bytes("f", &file), Ok(state));
            let damaged: Vec<u8> = file.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at == 60)).collect();
            assert!(VerifyState::from_bytes("f", &damaged).unwrap_err().contains("damaged"));
            let mut foreign = file.clone();
            foreign[96..104].fill(0);
            let crc = u64::from(fio_crc(&foreign[HEADER_BYTES..])).to_le_bytes();
            foreign[16..24].copy_from_slice(&crc);
            assert!(VerifyState::from_bytes("f", &foreign).unwrap_err().contains("a verify state of fio"));
            assert!(VerifyState::from_bytes("f", &file[..100]).is_err());
            assert!(VerifyState::from_bytes("f", b"{}").is_err());
        }
    }
}
