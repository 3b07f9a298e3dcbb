//! The programs that run inside the machines: ours, and tools of Debian's packages, with the shared
//! libraries that they ask for.
//!
//! Ours are built by the cargo that runs the tests, as they are released, so what is tested is what
//! stands in the working tree. cargo does nothing if they are up to date. They use this computer's C
//! library, which goes into the machine with them.

use crate::cpio::Archive;
use crate::packages::{Packages, output};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Ours: their names, and where they stand inside. The agent is the first process.
const OURS: [(&str, &str); 2] = [("trueio-lab-agent", "init"), ("trueio", "bin/trueio")];

/// The root of the repository.
fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the lab lives in crates/lab")
}

/// The directory that cargo builds into: `CARGO_TARGET_DIR`, otherwise `target` of the repository.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from)
}

/// True if `name` is a program in PATH or an administrator's folder.
pub(crate) fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.into_iter().any(|folder| folder.join(name).is_file())
}

/// Builds the agent and the program, and returns their folder.
///
/// # Errors
/// If the build fails; the compiler has printed the reason on standard error.
pub(crate) fn build() -> Result<PathBuf> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(repository());
    for (name, _) in std::env::vars_os() {
        // What `cargo test` set for this process is not meant for another cargo's build scripts.
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") || text.starts_with("CARGO_BIN_") {
            cargo.env_remove(name);
        }
    }
    cargo.args(["build", "--quiet", "--release", "--package", "trueio-cli", "--package", "trueio-lab", "--bins"]);
    let status = cargo.status().context("cargo cannot be started")?;
    if !status.success() {
        bail!("the programs for the machines were not built: {status}");
    }
    Ok(target_dir().join("release"))
}

/// Puts the agent and the program of this folder, which [`build`] named, and their libraries into the archive, without
/// what is for debuggers: that is four fifths of them. `scratch` is a folder for what stands between.
pub(crate) fn put_ours(archive: &mut Archive, folder: &Path, scratch: &Path) -> Result<()> {
    for (name, inside) in OURS {
        let (program, stripped) = (folder.join(name), scratch.join(name));
        output(Command::new("strip").arg("-o").arg(&stripped).arg(&program))?;
        put_file(archive, inside, &stripped)?;
        for (name, path) in libraries_of(&program, &[])? {
            put_file(archive, &name, &path)?;
        }
    }
    Ok(())
}

/// A tool: the package that holds it and its path there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    package: &'static str,
    path: &'static str,
    /// Its name inside. busybox's shell prefers its own tools to files of the same name.
    name: &'static str,
    /// Packages with libraries that a usual machine does not have.
    libraries: &'static [&'static str],
}

impl Tool {
    /// busybox's shell and small tools. Every machine has it.
    pub const BUSYBOX: Tool = Tool { package: "busybox-static", path: "bin/busybox", name: "busybox", libraries: &[] };
    /// The device mapper: linear, error, delay, flakey, crypt …
    pub const DMSETUP: Tool =
        Tool { package: "dmsetup", path: "sbin/dmsetup", name: "dmsetup", libraries: &["libdevmapper1.02.1"] };
    /// Software RAID.
    pub const MDADM: Tool = Tool { package: "mdadm", path: "sbin/mdadm", name: "mdadm", libraries: &[] };
    /// Logical volumes.
    pub const LVM: Tool = Tool {
        package: "lvm2",
        path: "sbin/lvm",
        name: "lvm",
        libraries: &["libdevmapper1.02.1", "libdevmapper-event1.02.1", "libaio1", "libedit2", "libbsd0"],
    };
    /// Makes ext4; busybox knows ext2 only.
    pub const MKFS_EXT4: Tool = Tool { package: "e2fsprogs", path: "sbin/mke2fs", name: "mkfs.ext4", libraries: &[] };
    /// Makes btrfs.
    pub const MKFS_BTRFS: Tool =
        Tool { package: "btrfs-progs", path: "sbin/mkfs.btrfs", name: "mkfs.btrfs", libraries: &["liblzo2-2"] };
    /// Makes F2FS.
    pub const MKFS_F2FS: Tool =
        Tool { package: "f2fs-tools", path: "sbin/mkfs.f2fs", name: "mkfs.f2fs", libraries: &[] };
    /// Makes exFAT.
    pub const MKFS_EXFAT: Tool =
        Tool { package: "exfatprogs", path: "usr/sbin/mkfs.exfat", name: "mkfs.exfat", libraries: &[] };
    /// Makes NTFS.
    pub const MKFS_NTFS: Tool =
        Tool { package: "ntfs-3g", path: "sbin/mkntfs", name: "mkfs.ntfs", libraries: &["libntfs-3g89"] };
    /// Partition tables; busybox's fdisk asks a person.
    pub const SFDISK: Tool = Tool { package: "fdisk", path: "sbin/sfdisk", name: "sfdisk", libraries: &["libfdisk1"] };

    /// Puts it and its libraries into the archive, below `/sbin` and the libraries' own paths.
    pub(crate) fn put(&self, packages: &Packages, archive: &mut Archive) -> Result<()> {
        let folder = packages.get(self.package)?;
        let program = folder.join(self.path);
        let folder_inside = if *self == Tool::BUSYBOX { "bin" } else { "sbin" };
        put_file(archive, &format!("{folder_inside}/{}", self.name), &program)?;
        let mut folders = Vec::new();
        for package in self.libraries {
            let root = packages.get(package)?;
            folders.extend(["lib", "usr/lib"].map(|lib| root.join(lib).join("x86_64-linux-gnu")));
        }
        for (name, path) in libraries_of(&program, &folders)? {
            put_file(archive, &name, &path)?;
        }
        Ok(())
    }
}

/// The libraries of a program, looked for in `folders`, too: path inside → file outside. ldd(1) starts the loader, which
/// prints what it would load.
fn libraries_of(program: &Path, folders: &[PathBuf]) -> Result<Vec<(String, PathBuf)>> {
    let path = std::env::join_paths(folders)?;
    let text = Command::new("ldd").arg(program).env("LD_LIBRARY_PATH", path).output().context("ldd")?;
    // A static program has none, and ldd fails.
    parse_ldd(&String::from_utf8_lossy(&text.stdout)).with_context(|| format!("`{}`", program.display()))
}

fn put_file(archive: &mut Archive, name: &str, path: &Path) -> Result<()> {
    let content = fs::read(path).with_context(|| format!("`{}`", path.display()))?;
    archive.file(name, 0o755, &content);
    Ok(())
}

/// Lines `NAME => PATH (ADDRESS)` and `PATH (ADDRESS)`; the latter is the loader, whose path stays.
fn parse_ldd(text: &str) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [name, "=>", "not", "found"] => bail!("it needs the library {name}, which is not here"),
            [name, "=>", path, _] => {
                found.push((format!("lib/x86_64-linux-gnu/{name}"), PathBuf::from(path)));
            }
            [path, _] if path.starts_with('/') => found.push((path.to_owned(), PathBuf::from(path))),
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_found_is_named() {
        let text = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x2)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x3)\n";
        let names: Vec<String> = parse_ldd(text).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
        assert!(parse_ldd("\tstatically linked\n").unwrap().is_empty());
        let error = parse_ldd("\tlibaio.so.1 => not found\n").unwrap_err().to_string();
        assert!(error.contains("libaio.so.1"), "{error}");
    }
}
