//! The initramfs of a machine.
//!
//! Contains the agent as `/init`, busybox, `trueio`, tools, and the requested modules with their dependencies, at the
//! paths of an installed system, so that `modprobe` and other programs find them. A compressed module (`.ko.xz`) stays
//! compressed in `/lib/modules`; the copy that the agent loads is decompressed.

use crate::cpio::Archive;
use crate::kernel::Kernel;
use crate::packages::Packages;
use crate::programs::{self, Tool};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The content.
pub(crate) struct Contents<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) packages: &'a Packages,
    /// The folder with the agent and the program, as they were built.
    pub(crate) programs: &'a Path,
    /// Loaded at the start.
    pub(crate) modules: &'a [&'a str],
    /// Available to `modprobe`.
    pub(crate) shelved: &'a [&'a str],
    pub(crate) tools: &'a [Tool],
}

/// Modules that other modules request by an alias while they start, and without which these fail or stay slow: the
/// checksums of `sd_mod`'s protection information, and of ext4. Later kernels have some built in.
const ASKED_FOR: [(&str, &[&str]); 5] = [
    ("sd_mod", &["crct10dif_generic", "crc64_rocksoft_generic"]),
    ("nvme", &["crct10dif_generic", "crc64_rocksoft_generic"]),
    ("virtio_blk", &["crct10dif_generic", "crc64_rocksoft_generic"]),
    ("ext4", &["crc32c_generic"]),
    ("btrfs", &["crc32c_generic", "xxhash_generic", "blake2b_generic", "sha256_generic"]),
];

/// Writes the archive.
pub(crate) fn write(contents: &Contents<'_>, path: &Path) -> Result<()> {
    let Contents { kernel, packages, .. } = contents;
    let mut archive = Archive::default();
    for folder in ["proc", "sys", "dev", "tmp", "run", "etc", "root", "mnt", "bin", "sbin", "usr/bin", "usr/sbin"] {
        archive.directory(folder);
    }
    archive.device("dev/console", 0o600, 5, 1);
    archive.device("dev/null", 0o666, 1, 3);
    archive.link("etc/mtab", "/proc/self/mounts");
    let release = "PRETTY_NAME=\"a machine of the trueio lab\"\nID=lab\n";
    archive.file("etc/os-release", 0o644, release.as_bytes());
    archive.file("etc/passwd", 0o644, b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n");
    archive.file("etc/group", 0o644, b"root:x:0:\nnogroup:x:65534:\n");
    let scratch = path.parent().context("the archive stands in the folder of its machine")?;
    programs::put_ours(&mut archive, contents.programs, scratch)?;
    for tool in [Tool::BUSYBOX].iter().chain(contents.tools) {
        tool.put(packages, &mut archive)?;
    }
    let loaded = kernel.load_order(&with_what_they_ask_for(kernel, contents.modules))?;
    let shelved = kernel.load_order(&with_what_they_ask_for(kernel, contents.shelved))?;
    let folder = format!("lib/modules/{}", kernel.release);
    let mut list = String::new();
    let mut kept = BTreeSet::new();
    for (path, is_loaded) in loaded.iter().map(|path| (path, true)).chain(shelved.iter().map(|path| (path, false))) {
        let file = kernel.modules_folder().join(path);
        let content = fs::read(&file).with_context(|| format!("`{}`", file.display()))?;
        archive.file(&format!("{folder}/{path}"), 0o644, &content);
        kept.insert(path.as_str());
        if is_loaded {
            let inside = match path.strip_suffix(".xz") {
                None => format!("/{folder}/{path}"),
                Some(plain) => {
                    let name = plain.rsplit('/').next().unwrap_or(plain);
                    archive.file(&format!("lab/unpacked/{name}"), 0o644, &unpack(&file)?);
                    format!("/lab/unpacked/{name}")
                }
            };
            list += &format!("{inside}\n");
        }
    }
    archive.file("lab/modules", 0o644, list.as_bytes());
    for name in ["modules.dep", "modules.builtin", "modules.alias", "modules.softdep"] {
        let text = fs::read_to_string(kernel.modules_folder().join(name)).with_context(|| name.to_owned())?;
        archive.file(&format!("{folder}/{name}"), 0o644, only_kept(name, &text, &kept).as_bytes());
    }
    fs::write(path, archive.finish()).with_context(|| format!("`{}`", path.display()))
}

/// Names with those that they ask for before them, as far as the kernel has these as modules.
fn with_what_they_ask_for<'a>(kernel: &Kernel, names: &[&'a str]) -> Vec<&'a str> {
    let mut all = Vec::new();
    for name in names {
        let asked = ASKED_FOR.iter().find(|(asking, _)| asking == name).map(|(_, asked)| *asked);
        all.extend(asked.into_iter().flatten().filter(|asked| kernel.has_module(asked)));
        all.push(*name);
    }
    all
}

/// The lines of a file of depmod's that are about modules in the archive: `modprobe` should not
/// look for others. Built-in modules are all there.
fn only_kept(name: &str, text: &str, kept: &BTreeSet<&str>) -> String {
    let names: BTreeSet<String> = kept.iter().map(|path| crate::kernel::name_of(path)).collect();
    let is_kept = |line: &str| match name {
        "modules.dep" => line.split(':').next().is_some_and(|path| kept.contains(path)),
        "modules.alias" => line.split_whitespace().nth(2).is_some_and(|name| names.contains(&name.replace('-', "_"))),
        "modules.softdep" => line.split_whitespace().nth(1).is_some_and(|name| names.contains(&name.replace('-', "_"))),
        _ => true,
    };
    text.lines().filter(|line| is_kept(line)).map(|line| format!("{line}\n")).collect()
}

fn unpack(path: &Path) -> Result<Vec<u8>> {
    let mut xz = Command::new("xz");
    let output = xz.args(["--decompress", "--stdout"]).arg(path).stdin(Stdio::null()).output().context("xz")?;
    if !output.status.success() {
        bail!("`{}` cannot be unpacked: {}", path.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_modules_that_are_there_are_listed() {
        let kept = BTreeSet::from(["kernel/a/usb-storage.ko"]);
        let dep = "kernel/a/usb-storage.ko: kernel/b.ko\nkernel/a/uas.ko: kernel/a/usb-storage.ko\n";
        assert_eq!(only_kept("modules.dep", dep, &kept), "kernel/a/usb-storage.ko: kernel/b.ko\n");
        let alias = "alias usb:v1 usb_storage\nalias usb:v2 uas\n";
        assert_eq!(only_kept("modules.alias", alias, &kept), "alias usb:v1 usb_storage\n");
        assert_eq!(only_kept("modules.builtin", "kernel/c.ko\n", &kept), "kernel/c.ko\n");
    }
}
