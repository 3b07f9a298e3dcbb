//! One budget of memory, locked memory and descriptors for all sessions of a server, and one of lines on its standard error.
//!
//! A session is a process of its own, and each alone would fit the machine. So all of a server write what they take into one ledger: a file
//! without a name (memfd_create(2)), which they inherit. A session takes a share before it reads jobs and another one for its plan, and the
//! kernel holds it to that (`RLIMIT_DATA`, `RLIMIT_MEMLOCK`, `RLIMIT_NOFILE`); the server returns it when it has reaped the session.
//!
//! Limits: shares are estimates of the plan; memory of the kernel (rings, page cache) and of shared mappings is not in `RLIMIT_DATA`.
//!
//! Source: getrlimit(2), memfd_create(2), fcntl(2) "Advisory record locking" (the locks belong to a process, and end with it).

use rustix::fs::{FlockOperation, MemfdFlags, fcntl_lock, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;
use trueio_model::units::format_bytes;
use trueio_run::machine;

/// Largest number of sessions at once.
pub(super) const SESSIONS_MAX: usize = 64;
/// Lines about clients in one minute; what is beyond is counted.
const LINES_MAX: u64 = 20;
const LINES_WINDOW: Duration = Duration::from_secs(60);
/// Words of 64 bits: the budget, a share for each session, the lines.
const SHARE_WORDS: usize = 3;
const LINE_WORDS: usize = 3;
const WORDS: usize = SHARE_WORDS * (SESSIONS_MAX + 1) + LINE_WORDS;
const WORD_BYTES: usize = size_of::<u64>();

/// What a session may use, or all together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// Memory, in bytes.
    pub(super) memory_bytes: u64,
    /// Of it locked, in bytes.
    pub(super) locked_bytes: u64,
    /// Descriptors.
    pub(super) files: u64,
}

impl Share {
    fn words(self) -> [u64; SHARE_WORDS] {
        [self.memory_bytes, self.locked_bytes, self.files]
    }

    fn of(words: &[u64]) -> Self {
        Self { memory_bytes: words[0], locked_bytes: words[1], files: words[2] }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
            locked_bytes: self.locked_bytes.saturating_add(other.locked_bytes),
            files: self.files.saturating_add(other.files),
        }
    }

    /// Returns what this machine has for all sessions: three quarters of its memory (or of this control group's), a quarter of that
    /// locked, and as many descriptors as the server itself may have.
    pub(super) fn of_machine() -> Self {
        let memory_bytes = machine::machine(0).memory_bytes.unwrap_or(1 << 30) / 4 * 3;
        let files = getrlimit(Resource::Nofile).maximum.unwrap_or(1 << 20).min(1 << 20);
        Self { memory_bytes, locked_bytes: memory_bytes / 4, files }
    }

    /// Holds this process to the share.
    pub(super) fn enforce(self) {
        for (resource, most) in [
            (Resource::Data, self.memory_bytes),
            (Resource::Memlock, self.locked_bytes),
            (Resource::Nofile, self.files),
        ] {
            let before = getrlimit(resource);
            let most = before.maximum.map_or(most, |maximum| maximum.min(most));
            // A larger limit of before is no reason to end the session.
            let _ = setrlimit(resource, Rlimit { current: Some(most), ..before });
        }
    }
}

/// The ledger, in the server and in each session.
#[derive(Debug)]
pub(super) struct Ledger {
    file: File,
}

/// The lock of a ledger; it ends with its process.
struct Locked<'a>(&'a File);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let _ = fcntl_lock(self.0, FlockOperation::Unlock);
    }
}

impl Ledger {
    /// Creates the ledger of a server.
    ///
    /// # Errors
    /// The system has no memory or descriptor for it.
    pub(super) fn create(all: Share) -> io::Result<Self> {
        // Inherited by the sessions, which close it in what they start.
        let file = File::from(memfd_create("trueio-sessions", MemfdFlags::empty())?);
        let ledger = Self { file };
        let mut words = [0; WORDS];
        words[..SHARE_WORDS].copy_from_slice(&all.words());
        ledger.write(0, &words)?;
        Ok(ledger)
    }

    /// Returns the number of its descriptor, for a session's command line.
    pub(super) fn number(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Takes over the ledger that this session inherited; `None`: the number is none of a ledger.
    pub(super) fn inherited(number: &str) -> Option<Self> {
        let number: RawFd = number.parse().ok().filter(|number| *number > 2)?;
        // SAFETY: the server passes the number of a descriptor that this process inherited and that nothing else here owns. If it is not open,
        // the next call fails, and the descriptor is not closed.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(number) });
        let is_ledger = file.metadata().is_ok_and(|found| found.len() == (WORDS * WORD_BYTES) as u64)
            && fcntl_setfd(&file, FdFlags::CLOEXEC).is_ok();
        if !is_ledger {
            std::mem::forget(file);
            return None;
        }
        Some(Self { file })
    }

    fn lock(&self) -> io::Result<Locked<'_>> {
        fcntl_lock(&self.file, FlockOperation::LockExclusive)?;
        Ok(Locked(&self.file))
    }

    fn read(&self) -> io::Result<[u64; WORDS]> {
        let mut bytes = [0; WORDS * WORD_BYTES];
        self.file.read_exact_at(&mut bytes, 0)?;
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(WORD_BYTES)) {
            *word = u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
        }
        Ok(words)
    }

    fn write(&self, at: usize, words: &[u64]) -> io::Result<()> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.file.write_all_at(&bytes, (at * WORD_BYTES) as u64)
    }

    /// Takes a share for session `slot` instead of the one that it has.
    ///
    /// # Errors
    /// Why not: the other sessions have too much of the budget, or it never has that much.
    pub(super) fn take(&self, slot: usize, wanted: Share) -> Result<(), String> {
        let failed = |error: io::Error| format!("the server's ledger cannot be used: {error}");
        let locked = self.lock().map_err(failed)?;
        let words = self.read().map_err(failed)?;
        let all = Share::of(&words);
        let others = (0..SESSIONS_MAX)
            .filter(|other| *other != slot)
            .map(|other| Share::of(&words[SHARE_WORDS * (other + 1)..]))
            .fold(Share::default(), Share::plus);
        let bytes: fn(u64) -> String = format_bytes;
        for (what, show, wanted, others, all) in [
            (" of memory", bytes, wanted.memory_bytes, others.memory_bytes, all.memory_bytes),
            (" of locked memory", bytes, wanted.locked_bytes, others.locked_bytes, all.locked_bytes),
            (" descriptors", |files| files.to_string(), wanted.files, others.files, all.files),
        ] {
            if others.saturating_add(wanted) > all {
                let (wanted, others, all) = (show(wanted), show(others), show(all));
                return Err(format!(
                    "the jobs need {wanted}{what}, and all sessions of this server together may use {all}, of which others have \
                     {others}"
                ));
            }
        }
        self.write(SHARE_WORDS * (slot + 1), &wanted.words()).map_err(failed)?;
        drop(locked);
        Ok(())
    }

    /// Returns the share of a session that was reaped.
    pub(super) fn give_back(&self, slot: usize) {
        // Without the lock the share stays taken, which refuses too much rather than too little.
        if let Ok(_locked) = self.lock() {
            let _ = self.write(SHARE_WORDS * (slot + 1), &Share::default().words());
        }
    }

    /// Counts a line about a client at a time, in seconds. Returns how many earlier ones were left out, if this one may be printed.
    pub(super) fn may_print(&self, now_s: u64) -> Option<u64> {
        const AT: usize = SHARE_WORDS * (SESSIONS_MAX + 1);
        let _locked = self.lock().ok()?;
        let words = self.read().ok()?;
        let [mut begin_s, mut count, mut left_out] = [words[AT], words[AT + 1], words[AT + 2]];
        if now_s.saturating_sub(begin_s) >= LINES_WINDOW.as_secs() {
            (begin_s, count) = (now_s, 0);
        }
        let is_printed = count < LINES_MAX;
        let before = left_out;
        if is_printed {
            (count, left_out) = (count + 1, 0);
        } else {
            left_out = left_out.saturating_add(1);
        }
        self.write(AT, &[begin_s, count, left_out]).ok()?;
        is_printed.then_some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Share = Share { memory_bytes: 1000, locked_bytes: 100, files: 50 };

    fn share(memory_bytes: u64, locked_bytes: u64, files: u64) -> Share {
        Share { memory_bytes, locked_bytes, files }
    }

    #[test]
    fn sessions_take_from_one_budget_and_the_server_returns_it() {
        let ledger = Ledger::create(ALL).expect("a ledger");
        ledger.take(0, share(600, 0, 10)).expect("it fits");
        let reason = ledger.take(1, share(600, 0, 10)).expect_err("together they do not fit");
        assert!(
            reason.contains("600 B of memory") && reason.contains("1000 B, of which others have 600 B"),
            "{reason}"
        );
        ledger.take(1, share(400, 0, 10)).expect("it fits");
        // A session's own share is replaced, not added.
        ledger.take(0, share(100, 60, 10)).expect("it is less");
        let reason = ledger.take(1, share(400, 50, 10)).expect_err("too much is locked");
        assert!(reason.contains("50 B of locked memory"), "{reason}");
        assert!(ledger.take(63, share(0, 0, 31)).expect_err("too many").contains("31 descriptors"));
        ledger.give_back(0);
        ledger.take(2, share(600, 100, 40)).expect("it was returned");
    }

    #[test]
    fn a_share_that_overflows_is_refused() {
        let ledger = Ledger::create(ALL).expect("a ledger");
        ledger.take(0, share(1, 0, 0)).expect("it fits");
        assert!(ledger.take(1, share(u64::MAX, u64::MAX, u64::MAX)).is_err());
    }

    #[test]
    fn lines_are_limited_and_those_left_out_are_counted() {
        let ledger = Ledger::create(ALL).expect("a ledger");
        let printed = (0..1_000).filter(|_| ledger.may_print(100).is_some()).count() as u64;
        assert_eq!(printed, LINES_MAX);
        assert_eq!(ledger.may_print(100 + LINES_WINDOW.as_secs()), Some(1_000 - LINES_MAX));
        assert_eq!(ledger.may_print(100 + LINES_WINDOW.as_secs()), Some(0));
    }

    #[test]
    fn another_descriptor_is_no_ledger() {
        for number in ["", "x", "-1", "0", "2", "1000000"] {
            assert!(Ledger::inherited(number).is_none(), "{number}");
        }
    }
}
