//! Removes a path only if it refers to a given open file.
//!
//! `unlink` removes a name, whichever file it refers to, and another program may replace that file at any time. So the
//! name is compared with the open file, renamed to a random name, and compared again. If it refers to another file, it
//! is renamed back.
//!
//! Limit: a program that opens the path between the two renames does not find it.
//!
//! Source: renameat2(2) `RENAME_NOREPLACE`, unlink(2).

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of the name that the temporary name keeps: a name has at most 255.
const NAME_BYTES_MAX: usize = 200;

/// Removes `path` if it refers to the open file.
///
/// # Errors
/// The kernel's error, or that the path refers to another file or is a link; it is then not removed.
pub fn unlink_same(path: &Path, file: &File) -> io::Result<()> {
    let another = || Err(io::Error::other("its path now refers to another file, which was not removed"));
    if !leads_to(path, file)? {
        return another();
    }
    // The standard library seeds its hasher from the system's randomness.
    let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    // The temporary name begins with the old one: `/proc/self/fd` shows it until the file is closed.
    let name = path.file_name().unwrap_or_default().as_bytes();
    let mut aside = OsString::from(".");
    aside.push(OsStr::from_bytes(&name[..name.len().min(NAME_BYTES_MAX)]));
    aside.push(format!(".removed-{random:016x}"));
    let aside = path.with_file_name(aside);
    match renameat_with(CWD, path, CWD, &aside, RenameFlags::NOREPLACE) {
        Ok(()) if leads_to(&aside, file)? => std::fs::remove_file(&aside),
        Ok(()) => {
            renameat_with(CWD, &aside, CWD, path, RenameFlags::NOREPLACE).map_err(|error| {
                let aside = aside.display();
                io::Error::other(format!(
                    "its path referred to another file, which was renamed to `{aside}` and could not be renamed back \
                     ({error})"
                ))
            })?;
            another()
        }
        // The filesystem does not support `RENAME_NOREPLACE`.
        Err(Errno::INVAL | Errno::NOSYS) => std::fs::remove_file(path),
        Err(error) => Err(error.into()),
    }
}

fn leads_to(path: &Path, file: &File) -> io::Result<bool> {
    let (named, open) = (std::fs::symlink_metadata(path)?, file.metadata()?);
    Ok((named.dev(), named.ino()) == (open.dev(), open.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_the_open_file_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let names = || {
            let entries = std::fs::read_dir(folder.path()).expect("a folder").flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect();
            names.sort();
            names
        };
        let ours = File::create_new(path("ours")).expect("a file");
        std::fs::rename(path("ours"), path("moved")).expect("moved");
        std::fs::write(path("ours"), "another's").expect("a file");
        unlink_same(&path("ours"), &ours).expect_err("it is another file");
        std::fs::remove_file(path("ours")).expect("removed");
        std::os::unix::fs::symlink("moved", path("ours")).expect("a link");
        unlink_same(&path("ours"), &ours).expect_err("it is a link");
        assert_eq!(names(), ["moved", "ours"]);
        unlink_same(&path("moved"), &ours).expect("it is ours");
        assert_eq!(names(), ["ours"]);
        assert_eq!(unlink_same(&path("moved"), &ours).expect_err("it is gone").kind(), io::ErrorKind::NotFound);
    }
}
