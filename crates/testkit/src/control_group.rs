//! Control groups of version 1 that are removed on drop.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A control group of one controller, removed on drop.
#[derive(Debug)]
pub struct ControlGroup {
    /// Its directory.
    pub path: PathBuf,
}

impl ControlGroup {
    /// Makes a group below the root of a version 1 controller (`cpu`, `blkio`, `memory`) and writes these files.
    ///
    /// # Errors
    /// What failed, as a sentence without a full stop: the controller is not mounted here, or this is not root.
    pub fn create(controller: &str, files: &[(&str, &str)]) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("trueio-test-{}-{number}", std::process::id());
        let path = Path::new("/sys/fs/cgroup").join(controller).join(name);
        fs::create_dir(&path).map_err(|error| format!("no control group of {controller}: {error}"))?;
        let group = Self { path };
        for (file, text) in files {
            let path = group.path.join(file);
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(group)
    }

    /// Makes `command` start in this group.
    ///
    /// # Panics
    /// If the path contains a zero byte.
    pub fn hold(&self, command: &mut Command) {
        let procs = self.path.join("cgroup.procs").into_os_string().into_encoded_bytes();
        let procs = CString::new(procs).expect("a path without a zero byte");
        let enter = move || {
            // SAFETY: plain calls that are async-signal-safe; the path and the text live in the closure and the program.
            let written = unsafe {
                let file = libc::open(procs.as_ptr(), libc::O_WRONLY);
                // 0: the writing process itself.
                let written = if file < 0 { -1 } else { libc::write(file, c"0".as_ptr().cast(), 1) };
                libc::close(file);
                written
            };
            if written == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        // SAFETY: between fork and exec the closure makes only async-signal-safe calls and allocates nothing.
        unsafe { command.pre_exec(enter) };
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // The kernel releases a group shortly after its last process.
        for _ in 0..100 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
