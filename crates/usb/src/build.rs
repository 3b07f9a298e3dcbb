//! Builds the kernel's own driver `uas` from a kernel's source tree that the user has, for a kernel that was built without it.
//!
//! Five files are copied to a directory of their own and built against the headers of the running kernel. Everything that can
//! be known is checked first, and the module is compared with one of the kernel's own before it is loaded. No source of the
//! kernel is part of this program.
//!
//! Cannot see: whether the tree's patches are those of the running kernel, beyond its version and the checksums of symbols.
//!
//! Source: Linux `Documentation/kbuild/modules.rst`.

use crate::plan::Refusal;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use trueio_device::System;
use trueio_device::usb::{Driver, compare_builds, parse_module_build};
use trueio_files::{PathError, Problem, changed_by_root_only};

/// The directory of the driver in a kernel's tree.
const DIRECTORY: &str = "drivers/usb/storage";
/// The files that the driver needs.
pub const FILES: [&str; 5] = ["uas.c", "uas-detect.h", "unusual_uas.h", "usb.h", "scsiglue.h"];
/// Symbols that the kernel must export; the build finds the others.
const EXPORTS: [&str; 3] = ["usb_stor_adjust_quirks", "usb_alloc_streams", "scsi_add_host_with_dma"];
/// What the kernel must be configured with.
const CONFIG: [&str; 4] = ["CONFIG_MODULES", "CONFIG_SCSI", "CONFIG_USB", "CONFIG_USB_STORAGE"];

/// A build that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildPlan {
    /// The kernel's source tree.
    pub tree: PathBuf,
    /// The headers and build files of the running kernel.
    pub headers: PathBuf,
    /// The release that both are for.
    pub release: String,
}

/// Why the build failed.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A file cannot be copied or written.
    #[error("`{}` cannot be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A path that make or the shells it starts would interpret.
    #[error(
        "`{}` cannot be passed to make: its shells would interpret characters other than letters, digits and `/._+-`; {hint}",
        path.display()
    )]
    Words {
        /// The path.
        path: PathBuf,
        /// What to do.
        hint: &'static str,
    },
    /// Root would execute, or load into the kernel, what another user can change.
    #[error(
        "root does not build a driver from files that another user can change; `chown -R root:root` and `chmod -R go-w` \
             make a copy root's"
    )]
    NotRoots(#[source] PathError),
    /// make cannot be started.
    #[error("`make` cannot be started")]
    Make(#[source] io::Error),
    /// make failed.
    #[error("`{command}` failed:\n{output}")]
    Failed {
        /// The command.
        command: String,
        /// The end of what it printed.
        output: String,
    },
}

/// Reads a file of the machine; empty if there is none.
fn read(system: &System, path: &str) -> String {
    fs::read_to_string(system.locate(path)).unwrap_or_default()
}

/// Returns where the headers of a release usually are.
pub fn usual_headers(release: &str) -> PathBuf {
    PathBuf::from(format!("/lib/modules/{release}/build"))
}

/// Checks that a driver for the running kernel can be built from a tree with its headers.
///
/// # Errors
/// [`Refusal`] with every reason.
pub fn plan_build(system: &System, tree: &Path, headers: Option<&Path>) -> Result<BuildPlan, Refusal> {
    let release = read(system, "/proc/sys/kernel/osrelease").trim().to_owned();
    let headers = headers.map_or_else(|| usual_headers(&release), Path::to_owned);
    let mut reasons = Vec::new();
    let uas = Driver::find(system, "uas");
    if uas.is_loaded || uas.is_built_in || uas.file.is_some() {
        let place = uas.file.unwrap_or_else(|| "the kernel".to_owned());
        reasons.push(format!("this kernel has the driver already ({place}); `modprobe uas` loads it"));
    }
    let missing: Vec<&str> = FILES.into_iter().filter(|file| !tree.join(DIRECTORY).join(file).is_file()).collect();
    if !missing.is_empty() {
        reasons.push(format!("`{}` has no {}", tree.join(DIRECTORY).display(), missing.join(", ")));
    }
    match tree_version(tree) {
        None => reasons.push(format!("`{}` is not the Makefile of a kernel", tree.join("Makefile").display())),
        Some(version) if !is_of(&release, &version) => {
            reasons.push(format!("the tree is Linux {version}, and this kernel is {release}"));
        }
        Some(_) => {}
    }
    let in_headers = |file: &str| fs::read_to_string(headers.join(file));
    match headers_release(&headers) {
        None => reasons.push(format!(
            "`{}` holds no headers of a kernel that was built (include/generated/utsrelease.h); --headers names them",
            headers.display()
        )),
        Some(of) if of != release => reasons.push(format!("the headers are of {of}, and this kernel is {release}")),
        Some(_) => {
            reasons.extend(lacking_config(&in_headers("include/config/auto.conf").unwrap_or_default()));
            reasons.extend(lacking_exports(&in_headers("Module.symvers").unwrap_or_default()));
        }
    }
    if reasons.is_empty() {
        return Ok(BuildPlan { tree: tree.to_owned(), headers, release });
    }
    let hint = "the manufacturer's GPL source of exactly this kernel, and the headers of its toolchain".to_owned();
    Err(Refusal { reasons, hint: Some(hint) })
}

/// Returns the release that modules built with these headers are for. Distributions may set another one than that in
/// `include/config/kernel.release` (Debian does).
fn headers_release(headers: &Path) -> Option<String> {
    let text = fs::read_to_string(headers.join("include/generated/utsrelease.h")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("#define UTS_RELEASE"))?;
    Some(line.trim().trim_matches('"').to_owned())
}

/// Reads `VERSION.PATCHLEVEL.SUBLEVEL` from a kernel's Makefile.
fn tree_version(tree: &Path) -> Option<String> {
    let text = fs::read_to_string(tree.join("Makefile")).ok()?;
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('='));
        let value = lines.next()?.trim();
        value.parse::<u32>().is_ok().then(|| value.to_owned())
    };
    Some(format!("{}.{}.{}", value("VERSION")?, value("PATCHLEVEL")?, value("SUBLEVEL")?))
}

/// Returns true if a release is of a version. Distributions leave out the last number (`6.1.0-56-amd64` of 6.1.192), so it
/// counts only if the release has it.
fn is_of(release: &str, version: &str) -> bool {
    let number = |text: &str| -> Vec<u32> {
        let digits = text.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
        digits.split('.').filter_map(|part| part.parse().ok()).collect()
    };
    let (release, version) = (number(release), number(version));
    let last = |numbers: &[u32]| numbers.get(2).copied().unwrap_or(0);
    release.len() >= 2
        && release.get(..2) == version.get(..2)
        && (last(&release) == 0 || last(&release) == last(&version))
}

fn lacking_config(text: &str) -> Vec<String> {
    let set: BTreeSet<&str> = text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    let lacking = CONFIG.into_iter().filter(|name| !set.contains(name));
    lacking.map(|name| format!("the kernel was built without {name}")).collect()
}

fn lacking_exports(text: &str) -> Vec<String> {
    if text.is_empty() {
        return vec!["the headers have no Module.symvers, so what the kernel exports is unknown".to_owned()];
    }
    let exported: BTreeSet<&str> = text.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    let lacking = EXPORTS.into_iter().filter(|name| !exported.contains(name));
    lacking.map(|name| format!("the kernel does not export `{name}`, which the driver needs")).collect()
}

/// Copies the files into a directory, builds the module there, and returns its path. `say` gets each command.
///
/// # Errors
/// [`BuildError`].
pub fn build(plan: &BuildPlan, directory: &Path, say: &mut dyn FnMut(&str)) -> Result<PathBuf, BuildError> {
    check_words(&plan.headers, "move the headers, or name a link to them (--headers)")?;
    check_words(directory, "set TMPDIR to another directory")?;
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        check_owners(plan).map_err(BuildError::NotRoots)?;
    }
    let failed = |path: PathBuf| move |source| BuildError::Write { path, source };
    for file in FILES {
        let from = plan.tree.join(DIRECTORY).join(file);
        say(&format!("cp {} {}", from.display(), directory.display()));
        fs::copy(&from, directory.join(file)).map_err(failed(directory.join(file)))?;
    }
    let makefile = directory.join("Makefile");
    say(&format!("echo 'obj-m := uas.o' > {}", makefile.display()));
    fs::write(&makefile, "obj-m := uas.o\n").map_err(failed(makefile.clone()))?;
    let mut make = Command::new("make");
    if is_root {
        // `MAKEFLAGS`, `CC` and others are programs that the caller chooses (`sudo -E`).
        make.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
    }
    make.arg("-C").arg(&plan.headers).arg(format!("M={}", directory.display())).arg("modules");
    let command = format!("make -C {} M={} modules", plan.headers.display(), directory.display());
    say(&command);
    let output = make.stdin(Stdio::null()).output().map_err(BuildError::Make)?;
    let module = directory.join("uas.ko");
    if output.status.success() && module.is_file() {
        return Ok(module);
    }
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let output = lines[lines.len().saturating_sub(12)..].join("\n");
    Err(BuildError::Failed { command, output })
}

/// Refuses a path that make or a shell would not take as one word. The rules of a kernel's build do not quote paths.
fn check_words(path: &Path, hint: &'static str) -> Result<(), BuildError> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._+-".contains(byte);
    let bytes = path.as_os_str().as_bytes();
    if bytes.iter().all(is_plain) && !bytes.starts_with(b"-") {
        return Ok(());
    }
    Err(BuildError::Words { path: path.to_owned(), hint })
}

/// Checks that only root can change the files of a plan: the five of the driver, and all headers and build files.
///
/// # Errors
/// The first file or directory that another user can change.
fn check_owners(plan: &BuildPlan) -> Result<(), PathError> {
    for file in FILES {
        changed_by_root_only(&plan.tree.join(DIRECTORY).join(file))?;
    }
    let mut seen = BTreeSet::new();
    let mut left = vec![changed_by_root_only(&plan.headers)?];
    while let Some(directory) = left.pop() {
        let failed = |error: io::Error| PathError { path: directory.clone(), problem: error.into() };
        // A link may lead to a directory above.
        if !seen.insert(directory.clone()) {
            continue;
        }
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let found = match changed_by_root_only(&path) {
                Ok(found) => found,
                // A link without a target is not read.
                Err(PathError { problem: Problem::Io(error), .. }) if error.kind() == io::ErrorKind::NotFound => {
                    continue;
                }
                Err(error) => return Err(error),
            };
            if found.is_dir() {
                left.push(found);
            }
        }
    }
    Ok(())
}

/// Compares a module that was built with one of the running kernel. Returns what was compared, as a sentence.
///
/// # Errors
/// [`Refusal`]: the kernel would not load it, or must not.
pub fn verify(system: &System, module: &[u8]) -> Result<String, Refusal> {
    let refuse = |reasons| Err(Refusal { reasons, hint: None });
    let built = match parse_module_build(module) {
        Ok(built) => built,
        Err(error) => return refuse(vec![format!("the module cannot be read: {error}")]),
    };
    let known = ["usb-storage", "uas"].into_iter().filter_map(|name| Driver::find(system, name).file).next();
    let known = known.and_then(|path| Some((parse_module_build(&fs::read(system.locate(&path)).ok()?).ok()?, path)));
    let Some((known, path)) = known else {
        return Ok(format!(
            "it was built for `{}`; no module of this kernel was found to compare it with, so the kernel decides",
            built.vermagic
        ));
    };
    match compare_builds(&built, &known) {
        (reasons, count) if reasons.is_empty() => Ok(format!(
            "it was built for `{}`, and the checksums of {count} symbols are those of {path}",
            built.vermagic
        )),
        (reasons, _) => refuse(reasons),
    }
}

/// Returns why this kernel loads no module without a signature, one sentence each.
pub fn why_not_loadable(system: &System) -> Vec<String> {
    let mut reasons = Vec::new();
    let lockdown = "/sys/kernel/security/lockdown";
    let text = read(system, lockdown);
    if let Some(mode) = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(mode, _)| mode)
        && mode != "none"
    {
        reasons.push(format!(
            "the kernel is locked down ({lockdown}: {mode}), as with secure boot: it loads signed modules only"
        ));
    }
    let enforce = "/sys/module/module/parameters/sig_enforce";
    if read(system, enforce).trim() == "Y" {
        reasons.push(format!("the kernel loads signed modules only ({enforce} is Y)"));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine without `uas`, a kernel's tree and headers, and a `make` that writes a module.
    struct Staged {
        folder: tempfile::TempDir,
    }

    impl Staged {
        fn new() -> Self {
            let staged = Self { folder: trueio_testkit::roots_folder() };
            staged.put("machine/paths", "");
            staged.put("machine/proc/sys/kernel/osrelease", "4.4.302+\n");
            staged.put("tree/Makefile", "# SPDX\nVERSION = 4\nPATCHLEVEL = 4\nSUBLEVEL = 302\nEXTRAVERSION =\n");
            for file in FILES {
                staged.put(&format!("tree/{DIRECTORY}/{file}"), file);
            }
            staged.put("headers/include/generated/utsrelease.h", "#define UTS_RELEASE \"4.4.302+\"\n");
            let config: Vec<String> = CONFIG.iter().map(|name| format!("{name}=y")).collect();
            staged.put("headers/include/config/auto.conf", &config.join("\n"));
            let exports: Vec<String> =
                EXPORTS.iter().map(|name| format!("0x00000001\t{name}\tvmlinux\tEXPORT_SYMBOL_GPL")).collect();
            staged.put("headers/Module.symvers", &exports.join("\n"));
            // The makefile of the headers stands for the kernel's.
            staged.put("headers/Makefile", "modules:\n\tcat $(M)/Makefile $(M)/uas.c > $(M)/uas.ko\n");
            staged
        }

        fn path(&self, path: &str) -> PathBuf {
            self.folder.path().join(path)
        }

        fn put(&self, path: &str, text: &str) {
            let path = self.path(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
            fs::write(path, text).expect("a file");
        }

        fn system(&self) -> System {
            System::recorded(&self.path("machine")).expect("a machine")
        }

        fn plan(&self) -> Result<BuildPlan, Refusal> {
            plan_build(&self.system(), &self.path("tree"), Some(&self.path("headers")))
        }

        #[track_caller]
        fn refused(&self, words: &str) {
            let reasons = self.plan().expect_err("refused").reasons;
            assert!(reasons.iter().any(|reason| reason.contains(words)), "{words}: {reasons:?}");
        }
    }

    #[test]
    fn five_files_are_copied_and_built_and_each_command_is_reported() {
        let staged = Staged::new();
        let plan = staged.plan().expect("everything is there");
        let directory = staged.path("build");
        fs::create_dir(&directory).expect("a directory");
        let mut printed = Vec::new();
        let module = match build(&plan, &directory, &mut |command| printed.push(command.to_owned())) {
            Err(BuildError::Make(error)) => {
                eprintln!("skipped: make is not installed: {error}");
                return;
            }
            built => built.expect("the module"),
        };
        assert_eq!(fs::read_to_string(module).expect("a file"), "obj-m := uas.o\nuas.c");
        assert_eq!(printed.len(), 7);
        assert!(printed[6].starts_with("make -C ") && printed[6].ends_with(" modules"), "{printed:?}");
        staged.put("headers/Makefile", "modules:\n\t@echo 'ERROR: modpost: \"usb_x\" undefined!'; false\n");
        fs::remove_file(directory.join("uas.ko")).expect("a file");
        let error = build(&plan, &directory, &mut |_| {}).expect_err("make fails").to_string();
        assert!(error.contains("\"usb_x\" undefined"), "{error}");
    }

    /// Goal: each thing that would end in a module that the kernel refuses, or in one for another kernel, is refused before
    /// anything is built.
    #[test]
    fn what_does_not_fit_the_running_kernel_is_refused_with_its_reason() {
        let staged = Staged::new();
        staged.put("tree/Makefile", "VERSION = 4\nPATCHLEVEL = 4\nSUBLEVEL = 180\n");
        staged.refused("the tree is Linux 4.4.180, and this kernel is 4.4.302+");
        for other in ["VERSION = x\nPATCHLEVEL =\nSUBLEVEL =\n", "VERSION = 4\nPATCHLEVEL = 4\n", "all:\n"] {
            staged.put("tree/Makefile", other);
            staged.refused("is not the Makefile of a kernel");
        }
        let staged = Staged::new();
        fs::remove_file(staged.path("tree/drivers/usb/storage/uas-detect.h")).expect("a file");
        staged.refused("has no uas-detect.h");
        let staged = Staged::new();
        staged.put("headers/include/generated/utsrelease.h", "#define UTS_RELEASE \"4.4.59+\"\n");
        staged.refused("the headers are of 4.4.59+, and this kernel is 4.4.302+");
        let staged = Staged::new();
        fs::remove_dir_all(staged.path("headers")).expect("a directory");
        staged.refused("holds no headers of a kernel");
        let staged = Staged::new();
        staged.put("headers/include/config/auto.conf", "CONFIG_MODULES=y\nCONFIG_SCSI=y\nCONFIG_USB=y\n");
        staged.refused("without CONFIG_USB_STORAGE");
        let staged = Staged::new();
        staged.put("headers/Module.symvers", "0x1\tusb_alloc_streams\tvmlinux\tEXPORT_SYMBOL_GPL\n");
        staged.refused("does not export `usb_stor_adjust_quirks`");
        let staged = Staged::new();
        staged.put("machine/lib/modules/4.4.302+/kernel/drivers/usb/storage/uas.ko", "");
        staged.refused("this kernel has the driver already");
        assert!(is_of("6.1.0-56-amd64", "6.1.192") && is_of("4.4.302+", "4.4.302"));
        assert!(!is_of("6.12.1", "6.1.1") && !is_of("6.1.5-custom", "6.1.4"));
    }

    /// Goal: no path becomes a command of make or of its shells.
    #[test]
    fn paths_that_make_would_interpret_are_refused_before_anything_is_copied() {
        for name in ["a b", "$(touch x)", "`x`", "a;b", "a:b", "a#b", "a=b", "a*", "~", "a\\b", "a'b", "ä"] {
            let staged = Staged::new();
            let plan = staged.plan().expect("everything is there");
            let directory = staged.path(name);
            fs::create_dir(&directory).expect("a directory");
            let headers = BuildPlan { headers: directory.clone(), ..plan.clone() };
            for (plan, into) in [(&plan, &directory), (&headers, &staged.path("tree"))] {
                let error = build(plan, into, &mut |_| panic!("a command")).expect_err(name);
                assert!(matches!(&error, BuildError::Words { path, .. } if *path == directory), "{name}: {error}");
            }
        }
    }

    /// Goal: root executes no file of a kernel's tree that another user can change.
    #[test]
    fn root_builds_only_from_files_that_only_root_can_change() {
        if trueio_testkit::lacks("root") {
            return;
        }
        use std::os::unix::fs::{PermissionsExt, chown, symlink};
        let set = |path: PathBuf, owner: u32, mode: u32| {
            chown(&path, Some(owner), None).expect("root may");
            fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("a mode");
        };
        let names = ["tree/drivers", "tree/drivers/usb/storage/uas.c", "headers", "headers/Makefile"];
        for (name, (owner, mode)) in names.into_iter().flat_map(|name| {
            [(trueio_testkit::NOBODY, 0o755), (0, 0o775), (0, 0o757)].into_iter().map(move |change| (name, change))
        }) {
            let staged = Staged::new();
            let plan = staged.plan().expect("everything is there");
            check_owners(&plan).expect("all is root's");
            set(staged.path(name), owner, mode);
            let error = build(&plan, &staged.path("tree"), &mut |_| panic!("a command")).expect_err(name);
            let BuildError::NotRoots(PathError { path, .. }) = &error else { panic!("{name}: {error}") };
            assert_eq!(*path, staged.path(name));
        }
        // A directory of another user that is reached through a link in the headers.
        let staged = Staged::new();
        let plan = staged.plan().expect("everything is there");
        fs::create_dir(staged.path("elsewhere")).expect("a directory");
        symlink(staged.path("elsewhere"), staged.path("headers/source")).expect("a link");
        symlink("..", staged.path("headers/above")).expect("a link");
        symlink("nothing", staged.path("headers/dangling")).expect("a link");
        check_owners(&plan).expect("all is root's");
        set(staged.path("elsewhere"), trueio_testkit::NOBODY, 0o755);
        assert!(matches!(build(&plan, &staged.path("tree"), &mut |_| ()), Err(BuildError::NotRoots(_))));
    }

    #[test]
    fn a_locked_kernel_is_recognised() {
        let staged = Staged::new();
        assert_eq!(why_not_loadable(&staged.system()), [""; 0]);
        staged.put("machine/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
        staged.put("machine/sys/module/module/parameters/sig_enforce", "Y\n");
        let reasons = why_not_loadable(&staged.system());
        assert!(reasons[0].contains("locked down") && reasons[1].contains("sig_enforce is Y"), "{reasons:?}");
        staged.put("machine/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
        staged.put("machine/sys/module/module/parameters/sig_enforce", "N\n");
        assert_eq!(why_not_loadable(&staged.system()), [""; 0]);
        assert!(verify(&staged.system(), b"text").is_err(), "no module");
    }
}
