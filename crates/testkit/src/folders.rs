//! Temporary folders, and what lies in one.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

/// A new folder on the filesystem of the build directory, removed on drop. Its name has the number of this process, by which
/// `cargo xtask ci` recognises the folders of tests that were killed.
///
/// # Panics
/// If it cannot be made.
pub fn folder() -> tempfile::TempDir {
    let prefix = format!("test-{}-", std::process::id());
    tempfile::Builder::new().prefix(&prefix).tempdir_in(build_folder()).expect("a folder in the build directory")
}

/// The same where root alone can change each directory above it, which need not hold of the build directory. For another user, [`folder`].
///
/// # Panics
/// If it cannot be made.
pub fn roots_folder() -> tempfile::TempDir {
    if !crate::is_root() {
        return folder();
    }
    let prefix = format!("trueio-test-{}-", std::process::id());
    tempfile::Builder::new().prefix(&prefix).tempdir_in("/var/lib").expect("a folder in /var/lib")
}

/// `tmp` of the build directory, where cargo's `CARGO_TARGET_TMPDIR` is, too; that variable exists for integration
/// tests only. A test program is `target/PROFILE/deps/NAME`.
fn build_folder() -> PathBuf {
    let program = if cfg!(miri) { None } else { std::env::current_exe().ok() };
    let target = program.as_deref().and_then(|program| program.ancestors().nth(3));
    let folder = target.map_or_else(std::env::temp_dir, |target| target.join("tmp"));
    fs::create_dir_all(&folder).expect("a folder in the build directory");
    folder
}

/// Every name in a folder with its size, time of change and content, sorted.
///
/// # Panics
/// If the folder cannot be read.
pub fn listing(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let metadata = entry.metadata().expect("metadata");
        let content = if metadata.is_file() { hash(&fs::read(entry.path()).expect("content")) } else { 0 };
        let changed = metadata.modified().expect("a time");
        names.push(format!("{:?} {} {changed:?} {content:016x}", entry.file_name(), metadata.len()));
    }
    names.sort();
    names
}

/// A number that differs where the content does.
pub fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
