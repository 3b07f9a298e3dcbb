//! A kernel of Debian: its image, its modules, and the order in which modules are loaded.
//!
//! `modules.dep` lists the required dependencies of a module, `modules.softdep` the optional ones;
//! depmod(8) creates both, as on an installed system.
//!
//! Cannot see: modules that the kernel requests by an alias while it runs
//! (`request_module`), such as a CRC that a disk's driver needs; the caller names those.

use crate::packages::{Packages, output};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An unpacked kernel.
#[derive(Debug, Clone)]
pub struct Kernel {
    root: PathBuf,
    /// Its release, as `uname -r` prints it.
    pub release: String,
    /// Module name (underscores) → path below the folder of modules.
    paths: BTreeMap<String, String>,
    /// Path → paths of the modules that it needs, the last of which is loaded first.
    needs: BTreeMap<String, Vec<String>>,
    /// Module name → optional modules to load before it.
    wishes: BTreeMap<String, Vec<String>>,
    builtin: Vec<String>,
}

impl Kernel {
    /// The newest kernel of a series (`6.1`) that the registry has.
    ///
    /// # Errors
    /// If it has none, or depmod is missing.
    pub fn get(packages: &Packages, series: &str) -> Result<Self> {
        let prefix = format!("linux-image-{series}.");
        // A kernel that was fetched before is reused, so no network is needed.
        let name = match packages.fetched_name(&prefix)? {
            Some(name) => name,
            None => {
                let version = packages.newest_version("linux-image-amd64", &format!("{series}."))?;
                let depends = packages.dependencies("linux-image-amd64", &version)?;
                let name = depends.split([' ', ',']).find(|word| word.starts_with(&prefix));
                name.with_context(|| format!("linux-image-amd64 {version} depends on no {prefix}…"))?.to_owned()
            }
        };
        Self::unpacked(&packages.get(&name)?)
    }

    /// The kernel whose package was unpacked in `root`.
    fn unpacked(root: &Path) -> Result<Self> {
        let modules = root.join("lib/modules");
        let release = fs::read_dir(&modules)
            .with_context(|| format!("`{}`", modules.display()))?
            .next()
            .context("the kernel has no modules")??
            .file_name()
            .to_string_lossy()
            .into_owned();
        let folder = modules.join(&release);
        if !folder.join("modules.softdep").exists() {
            // Administrators' folders are often missing from a user's PATH.
            let depmod = ["/usr/sbin/depmod", "/sbin/depmod"].into_iter().find(|path| Path::new(path).exists());
            output(Command::new(depmod.unwrap_or("depmod")).arg("-b").arg(root).arg(&release))
                .context("depmod is in the package kmod")?;
        }
        let read = |name: &str| fs::read_to_string(folder.join(name)).with_context(|| name.to_owned());
        let (paths, needs) = parse_dep(&read("modules.dep")?);
        let builtin = read("modules.builtin")?.lines().map(name_of).collect();
        let wishes = parse_softdep(&read("modules.softdep")?);
        Ok(Self { root: root.to_owned(), release, paths, needs, wishes, builtin })
    }

    /// The file that is booted.
    pub fn image(&self) -> PathBuf {
        self.root.join("boot").join(format!("vmlinuz-{}", self.release))
    }

    /// The folder with the modules and depmod's files.
    pub fn modules_folder(&self) -> PathBuf {
        self.root.join("lib/modules").join(&self.release)
    }

    /// Returns true if it has this as a module.
    pub fn has_module(&self, name: &str) -> bool {
        self.paths.contains_key(&name.replace('-', "_"))
    }

    /// The paths of `names` and all that they need, in the order in which they can be loaded. Those
    /// that are built in have no path.
    ///
    /// # Errors
    /// If this kernel does not have a module.
    pub fn load_order(&self, names: &[&str]) -> Result<Vec<String>> {
        let mut order = Vec::new();
        for name in names {
            self.add(&name.replace('-', "_"), &mut order)?;
        }
        Ok(order)
    }

    fn add(&self, name: &str, order: &mut Vec<String>) -> Result<()> {
        let Some(path) = self.paths.get(name) else {
            if self.builtin.iter().any(|builtin| builtin == name) {
                return Ok(());
            }
            bail!("Linux {} has no module `{name}`", self.release);
        };
        let needed = self.needs.get(path).map(Vec::as_slice).unwrap_or_default();
        for path in needed.iter().rev().chain([path]) {
            for wish in self.wishes.get(&name_of(path)).into_iter().flatten() {
                // A soft dependency may be an alias, which has no file of that name.
                if self.paths.contains_key(wish) && name_of(path) != *wish && !order.contains(&self.paths[wish]) {
                    self.add(wish, order)?;
                }
            }
            if !order.contains(path) {
                order.push(path.clone());
            }
        }
        Ok(())
    }
}

/// `kernel/fs/ext4/ext4.ko.xz` → `ext4`; dashes become underscores, as in the kernel.
pub(crate) fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

/// Lines `path: path path`.
fn parse_dep(text: &str) -> (BTreeMap<String, String>, BTreeMap<String, Vec<String>>) {
    let (mut paths, mut needs) = (BTreeMap::new(), BTreeMap::new());
    for (path, needed) in text.lines().filter_map(|line| line.split_once(':')) {
        paths.insert(name_of(path), path.to_owned());
        needs.insert(path.to_owned(), needed.split_whitespace().map(str::to_owned).collect());
    }
    (paths, needs)
}

/// Lines `softdep NAME pre: NAME… post: NAME…`; only what comes before matters here.
fn parse_softdep(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut wishes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if words.next() != Some("softdep") {
            continue;
        }
        let Some(name) = words.next() else { continue };
        let before = words.skip_while(|word| *word != "pre:").skip(1).take_while(|word| *word != "post:");
        wishes.entry(name.replace('-', "_")).or_default().extend(before.map(|word| word.replace('-', "_")));
    }
    wishes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel() -> Kernel {
        let (paths, needs) = parse_dep(
            "kernel/a/usb-storage.ko: kernel/a/scsi_mod.ko kernel/a/usbcore.ko\nkernel/a/scsi_mod.ko:\n\
             kernel/a/usbcore.ko.xz:\nkernel/a/usbcore.ko:\nkernel/a/ext4.ko: kernel/a/jbd2.ko\nkernel/a/jbd2.ko:\n\
             kernel/a/crc32c.ko:\n",
        );
        let wishes = parse_softdep("# words\nsoftdep jbd2 pre: crc32c crypto-alias post: usbcore\n");
        let builtin = vec![name_of("kernel/b/serial-core.ko")];
        Kernel { root: PathBuf::new(), release: "6.0".into(), paths, needs, wishes, builtin }
    }

    #[test]
    fn what_a_module_needs_is_loaded_before_it_and_once() {
        let order = kernel().load_order(&["usb-storage", "usb_storage", "scsi_mod"]).unwrap();
        assert_eq!(order, ["kernel/a/usbcore.ko", "kernel/a/scsi_mod.ko", "kernel/a/usb-storage.ko"]);
    }

    #[test]
    fn what_a_needed_module_wishes_for_comes_before_it() {
        let order = kernel().load_order(&["ext4"]).unwrap();
        assert_eq!(order, ["kernel/a/crc32c.ko", "kernel/a/jbd2.ko", "kernel/a/ext4.ko"]);
    }

    #[test]
    fn a_module_that_is_built_in_needs_no_file_and_one_that_is_missing_is_an_error() {
        assert!(kernel().load_order(&["serial-core"]).unwrap().is_empty());
        let error = kernel().load_order(&["nothing"]).unwrap_err();
        assert_eq!(error.to_string(), "Linux 6.0 has no module `nothing`");
    }
}
