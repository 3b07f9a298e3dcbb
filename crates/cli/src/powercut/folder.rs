//! The folder of a run on a filesystem, and its files.
//!
//! The directory around it may belong to another user, who can exchange the folder's name at any time. So it is opened by its name,
//! compared by its inode, and its files are opened through it; no link in it is followed.

use super::media::{Append, Buffered, Direct, Files, ReadFile, ReadFiles, Truncate};
use super::subject::BLOCK;
use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use trueio_direct::{OpenOptions, Policy, SyncMode, sync_directory};
use trueio_powercut::BLOCK_BYTES;
use trueio_powercut::cut::{Medium, Method, Place, Readback, Region};

/// The folder, open.
struct Folder(OwnedFd);

/// A file in it, found but not open.
struct Found(OwnedFd);

impl Found {
    /// A name that leads to this file only.
    fn path(&self) -> PathBuf {
        path_of(&self.0)
    }
}

fn path_of(descriptor: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()))
}

impl Folder {
    /// Opens a folder, if it is the one with this inode.
    fn open(root: &Path, inode: u64) -> io::Result<Self> {
        let folder = Self::new(root)?;
        match folder.inode()? {
            found if found == inode => Ok(folder),
            _ => Err(io::Error::other("another program exchanged the folder of the run")),
        }
    }

    fn new(root: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(open(root, flags, Mode::empty())?))
    }

    fn inode(&self) -> io::Result<u64> {
        Ok(fstat(&self.0)?.st_ino)
    }

    /// Finds a file; a link, and a file that has another name, too, are refused.
    fn file(&self, name: &str) -> io::Result<Found> {
        let found = openat(&self.0, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        let stat = fstat(&found)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_nlink != 1 {
            return Err(io::Error::other(format!("another program exchanged `{name}` in the folder of the run")));
        }
        Ok(Found(found))
    }

    /// Opens a directory.
    fn directory(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, Mode::empty())?.into())
    }
}

/// Opens a region as its method writes it. `None`: the filesystem does not support it.
pub(super) fn medium(root: &Path, inode: u64, region: Region) -> io::Result<Option<Box<dyn Medium + Send>>> {
    let folder = Folder::open(root, inode)?;
    let open = |name: &str| File::options().read(true).write(true).open(folder.file(name)?.path());
    Ok(Some(match region.method {
        Method::Append => {
            let file = open("append")?;
            file.set_len(0).and_then(|()| file.sync_all())?;
            Box::new(Append(file))
        }
        Method::Truncate => Box::new(Truncate { region, file: open("truncate")? }),
        method if method.place() == Place::Files => Box::new(Files::new(method, folder.directory(method.name())?)),
        Method::BufferedFdatasync | Method::BufferedFsync => Box::new(Buffered { region, file: open("blocks")? }),
        method => {
            let sync = if method == Method::DirectDsync { SyncMode::Dsync } else { SyncMode::None };
            let options = OpenOptions::new().read(true).write(true).policy(Policy::Require).sync(sync);
            match options.open(folder.file("blocks")?.path()) {
                Ok(file) => Box::new(Direct::new(region, file)?),
                // A filesystem without direct I/O.
                Err(_) => return Ok(None),
            }
        }
    }))
}

/// Opens a region to read it back.
pub(super) fn readback(root: &Path, inode: u64, region: Region) -> io::Result<Box<dyn Readback>> {
    let folder = Folder::open(root, inode)?;
    let file = |name: &str| Ok::<_, io::Error>(Box::new(ReadFile(region, File::open(folder.file(name)?.path())?)));
    Ok(match region.method {
        Method::Append | Method::Truncate => file(region.method.name())?,
        method if method.place() == Place::Files => Box::new(ReadFiles(folder.directory(method.name())?)),
        _ => file("blocks")?,
    })
}

/// Creates the folder and its files, written and durable; returns its inode.
pub(super) fn create(root: &Path, regions: &[Region]) -> io::Result<u64> {
    std::fs::DirBuilder::new().mode(0o700).create(root)?;
    let folder = Folder::new(root)?;
    let inside = path_of(&folder.0);
    let blocks = regions.iter().filter(|region| region.method.place() == Place::Blocks);
    let end = blocks.map(|region| region.start + region.position_count).max().unwrap_or(0);
    let file = |name: &str, block_count: u64| -> io::Result<()> {
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(inside.join(name))?;
        let zeros = vec![0; 256 * BLOCK_BYTES];
        let mut left = block_count * BLOCK;
        while left > 0 {
            let part = left.min(zeros.len() as u64);
            file.write_all(&zeros[..part as usize])?;
            left -= part;
        }
        file.sync_all()
    };
    file("blocks", end)?;
    for region in regions.iter().filter(|region| region.method.place() == Place::Files) {
        match region.method {
            Method::Append => file("append", 0)?,
            Method::Truncate => file("truncate", region.position_count)?,
            method => {
                std::fs::DirBuilder::new().mode(0o700).create(inside.join(method.name()))?;
                folder.directory(method.name())?.sync_all()?;
            }
        }
    }
    sync_directory(&inside)?;
    sync_directory(root.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    folder.inode()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use trueio_powercut::cut::Order;

    const METHODS: [Method; 5] =
        [Method::BufferedFdatasync, Method::DirectFdatasync, Method::Append, Method::Truncate, Method::Rename];

    fn regions() -> Vec<Region> {
        METHODS.map(|method| Region { id: 0, method, start: 0, position_count: 4, order: Order::Overwrite }).to_vec()
    }

    /// Goal: who can write to the directory around the folder leads no write and no read of another user anywhere.
    /// Method: the folder is exchanged for one of the same name, and its files for links and other names of a file; on the version that opened
    /// names, `append` truncated that file.
    #[test]
    fn a_folder_or_file_that_was_exchanged_is_neither_written_nor_read() {
        let around = trueio_testkit::folder();
        let (root, precious) = (around.path().join("run"), around.path().join("precious"));
        fs::write(&precious, "precious").expect("a file");
        let inode = create(&root, &regions()).expect("a folder");
        for region in regions() {
            medium(&root, inode, region).expect("it is ours");
            readback(&root, inode, region).expect("it is ours");
        }
        let refused = |when: &str| {
            for region in regions() {
                assert!(medium(&root, inode, region).is_err(), "{when}: {:?}", region.method);
                assert!(readback(&root, inode, region).is_err(), "{when}: {:?}", region.method);
            }
            assert_eq!(fs::read(&precious).expect("it is there"), b"precious", "{when}");
        };
        for (name, is_link) in [("link", true), ("hard link", false)] {
            for file in ["blocks", "append", "truncate"] {
                fs::remove_file(root.join(file)).expect("a file");
                match is_link {
                    true => symlink(&precious, root.join(file)).expect("a link"),
                    false => fs::hard_link(&precious, root.join(file)).expect("a name"),
                }
            }
            let _ = fs::remove_dir(root.join("rename"));
            let _ = symlink(around.path(), root.join("rename"));
            refused(name);
        }
        fs::rename(&root, around.path().join("away")).expect("renamed");
        create(&root, &regions()).expect("another folder");
        refused("another folder");
        fs::remove_dir_all(&root).expect("removed");
        symlink(around.path().join("away"), &root).expect("a link");
        refused("a link to the folder");
    }
}
