//! Writes the archive that a Linux kernel unpacks into its first root filesystem.
//!
//! The format is "newc", and the crate `cpio` writes it. Nothing is read from the system, so no root is needed to
//! make device nodes, and the same entries give the same bytes.
//!
//! Cannot do: hard links, times, owners other than root.
//!
//! Source: Linux `Documentation/driver-api/early-userspace/buffer-format.rst`.

use cpio::newc;
use std::collections::BTreeSet;
use std::io::Write;

/// An archive that is being written.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    names: BTreeSet<String>,
}

const IN_MEMORY: &str = "the archive is in memory";

const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

impl Archive {
    /// Adds a file with permission bits `mode`, and its parent directories. An existing name is
    /// not changed.
    pub fn file(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entry(name, FILE | mode, content, (0, 0));
    }

    /// Adds a directory, and those above it.
    pub fn directory(&mut self, name: &str) {
        self.entry(name, DIRECTORY | 0o755, &[], (0, 0));
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, name: &str, target: &str) {
        self.entry(name, LINK | 0o777, target.as_bytes(), (0, 0));
    }

    /// Adds a character device.
    pub fn device(&mut self, name: &str, mode: u32, major: u32, minor: u32) {
        self.entry(name, CHARACTER_DEVICE | mode, &[], (major, minor));
    }

    /// Returns the whole archive with its trailer.
    pub fn finish(self) -> Vec<u8> {
        newc::trailer(self.bytes).expect(IN_MEMORY)
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8], (major, minor): (u32, u32)) {
        let name = name.trim_matches('/');
        if let Some((parent, _)) = name.rsplit_once('/') {
            self.directory(parent);
        }
        if !self.names.insert(name.to_owned()) {
            return;
        }
        let length = u32::try_from(content.len()).expect("a file of the archive is below 4 GiB");
        let inode = u32::try_from(self.names.len()).expect("the archive has few entries");
        let header = newc::Builder::new(name).ino(inode).mode(mode).rdev_major(major).rdev_minor(minor);
        let mut writer = header.write(&mut self.bytes, length);
        writer.write_all(content).expect(IN_MEMORY);
        writer.finish().expect(IN_MEMORY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let mut archive = Archive::default();
        archive.file("a", 0o644, b"hello");
        let bytes = archive.finish();
        let head = "070701000000010000 81a400000000000000000000000100000000000000050000000000000000\
                    00000000000000000000000200000000a\0"
            .replace(' ', "");
        // 110 bytes of header and "a\0" are a multiple of four already.
        assert_eq!(&bytes[..112], head.as_bytes());
        assert_eq!(&bytes[112..120], b"hello\0\0\0");
        assert!(bytes[120..].starts_with(b"070701") && bytes.len() % 4 == 0);
    }

    #[test]
    fn directories_above_a_file_are_made_once_and_before_it() {
        let mut archive = Archive::default();
        archive.file("x/y/a", 0o755, b"");
        archive.file("/x/y/b", 0o755, b"");
        archive.file("x/y/a", 0o755, b"another");
        let text = String::from_utf8(archive.finish()).unwrap();
        let names: Vec<&str> = text.split("070701").skip(1).map(|e| e[104..].trim_end_matches('\0')).collect();
        assert_eq!(names, ["x", "x/y", "x/y/a", "x/y/b", "TRAILER!!!"]);
    }
}
