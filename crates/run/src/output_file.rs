//! Files that are written beside what is measured: logs, states, what programs print.
//!
//! Such a name comes from a job file, which may come from a stranger, and what stands under it may have changed since
//! the plan looked. So it is opened without being changed, a link at its end is not followed, and only then, if it is
//! a regular file, is anything of it taken away: a block device keeps every byte, a pipe that nobody reads does not
//! hold the run up.
//!
//! Cannot see: which file it is. That it is no target and nobody's input the plan has made sure.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file for an output, makes it if it is missing, and leaves what it holds; each write goes to its end.
///
/// # Errors
/// Links, whatever is no regular file, and what the kernel refuses.
pub fn open_output(path: impl AsRef<Path>) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why);
    let opened = OpenOptions::new().append(true).create(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => refused("it is a symbolic link, and outputs of jobs are not written through one"),
        // A pipe that nobody reads.
        Some(libc::ENXIO) => refused("it is no regular file"),
        _ => error,
    })?;
    if !file.metadata()?.is_file() {
        return Err(refused("it is no regular file"));
    }
    Ok(file)
}

/// The same, and what an earlier run left in it is gone.
///
/// # Errors
/// As [`open_output`].
pub fn create_output(path: impl AsRef<Path>) -> io::Result<File> {
    let file = open_output(path)?;
    file.set_len(0)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    /// Goal: whatever stands under the name, only a regular file loses what it held.
    #[test]
    fn only_a_regular_file_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("data"), "precious").expect("a file");
        symlink("data", path("link")).expect("a link");
        symlink("nothing", path("dangling")).expect("a link");
        let pipe = std::ffi::CString::new(path("pipe").to_str().expect("a path")).expect("no zero byte");
        // SAFETY: a plain call with a string that ends.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        for name in ["link", "dangling", "pipe", ".", "missing/file"] {
            assert!(create_output(path(name)).is_err(), "{name}");
        }
        assert!(create_output("/dev/null").is_err());
        assert_eq!(std::fs::read_to_string(path("data")).expect("it is there"), "precious");
        assert!(!path("nothing").exists());
        open_output(path("data")).and_then(|mut file| file.write_all(b" data")).expect("written");
        assert_eq!(std::fs::read_to_string(path("data")).expect("it is there"), "precious data");
        create_output(path("data")).expect("replaced");
        assert_eq!(std::fs::read_to_string(path("data")).expect("it is there"), "");
    }
}
