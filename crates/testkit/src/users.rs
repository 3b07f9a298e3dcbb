//! Other users, and settings of the kernel that protect users from each other. For tests that run as root.

use std::fs::{self, File};
use std::path::PathBuf;

/// A user without rights; the number is `nobody` on most systems.
pub const NOBODY: u32 = 65_534;

/// Runs a function as a user without further groups, in a thread of its own. The group has the user's number.
///
/// # Panics
/// This process may not change users, or the function panics.
#[cfg(target_os = "linux")]
pub fn as_user<T: Send>(uid: u32, run: impl FnOnce() -> T + Send) -> T {
    let change = || {
        // The C library's functions change all threads of the process; the kernel's calls change only this one.
        // SAFETY: plain system calls with numbers, and no list of groups.
        let failed = unsafe {
            libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()) != 0
                || libc::syscall(libc::SYS_setresgid, uid, uid, uid) != 0
                || libc::syscall(libc::SYS_setresuid, uid, uid, uid) != 0
        };
        assert!(!failed, "acting as user {uid}: {}", std::io::Error::last_os_error());
        run()
    };
    std::thread::scope(|scope| scope.spawn(change).join().expect("the function as another user"))
}

/// A setting below `/proc/sys`, restored on drop. Tests of all processes that change the same setting take turns.
#[derive(Debug)]
pub struct Sysctl {
    path: PathBuf,
    before: String,
    _lock: File,
}

impl Sysctl {
    /// Waits for other tests, and sets `name` (`fs/protected_regular`).
    ///
    /// # Panics
    /// The setting cannot be changed.
    pub fn set(name: &str, value: &str) -> Self {
        let path = PathBuf::from("/proc/sys").join(name);
        let lock = std::env::temp_dir().join(format!("trueio-test-{}.lock", name.replace('/', "-")));
        let lock = File::options().append(true).create(true).open(lock).expect("a lock file");
        lock.lock().expect("a lock");
        let before = fs::read_to_string(&path).expect("a setting of the kernel");
        fs::write(&path, value).expect("root may change it");
        Self { path, before, _lock: lock }
    }
}

impl Drop for Sysctl {
    fn drop(&mut self) {
        let _ = fs::write(&self.path, &self.before);
    }
}
