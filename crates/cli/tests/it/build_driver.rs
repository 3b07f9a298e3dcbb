//! `trueio usb build-driver`: what reaches make, and what does not.
//!
//! Staged: a kernel's tree and headers of the running release, in a directory that only root can change. The makefile of the
//! headers stands for the kernel's: it does not quote `M`, as the kernel's does not.

use crate::common::*;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use trueio_testkit::{NOBODY, copy_program, roots_folder};

/// Each would be a command of make or of a shell, two words, or another rule.
const NAMES: [&[u8]; 20] = [
    b"$(shell touch pwned)",
    b"$(touch pwned)",
    b"${shell touch pwned}",
    b"`touch pwned`",
    b"a;touch pwned",
    b"a|touch pwned",
    b"a&touch pwned",
    b"a\ntouch pwned",
    b"a'b",
    b"a\"b",
    b"a b",
    b"a\tb",
    b"a#b",
    b"a:b",
    b"a%b",
    b"a=b",
    b"a\\b",
    b"~",
    b"*",
    b"\xff",
];

/// A tree and headers for which the program starts make.
struct Staged {
    folder: tempfile::TempDir,
}

impl Staged {
    fn new() -> Self {
        let staged = Self { folder: roots_folder() };
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel");
        let release = release.trim();
        let version = release.split(|c: char| !c.is_ascii_digit() && c != '.').next().expect("a version");
        let mut numbers = version.split('.').chain(["0", "0"]);
        let mut number = || numbers.next().expect("a number").to_owned();
        let (major, minor, last) = (number(), number(), number());
        staged.put("tree/Makefile", &format!("VERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = {last}\n"));
        for file in ["uas.c", "uas-detect.h", "unusual_uas.h", "usb.h", "scsiglue.h"] {
            staged.put(&format!("tree/drivers/usb/storage/{file}"), file);
        }
        staged.put("headers/include/generated/utsrelease.h", &format!("#define UTS_RELEASE \"{release}\"\n"));
        staged.put(
            "headers/include/config/auto.conf",
            "CONFIG_MODULES=y\nCONFIG_SCSI=y\nCONFIG_USB=y\nCONFIG_USB_STORAGE=y\n",
        );
        let exports = ["usb_stor_adjust_quirks", "usb_alloc_streams", "scsi_add_host_with_dma"];
        let exports: String = exports.map(|name| format!("0x1\t{name}\tvmlinux\tEXPORT_SYMBOL_GPL\n")).concat();
        staged.put("headers/Module.symvers", &exports);
        staged.put("headers/Makefile", "modules:\n\tenv > ../environment\n\techo $(M) > ../directory\n\tfalse\n");
        // What is named there by another user is his.
        staged.directory(OsStr::new("intruder"));
        std::os::unix::fs::chown(staged.path("intruder"), Some(NOBODY), Some(NOBODY)).ok();
        fs::set_permissions(staged.folder.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
        staged
    }

    fn path(&self, path: impl AsRef<OsStr>) -> PathBuf {
        self.folder.path().join(path.as_ref())
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
        fs::write(path, text).expect("a file");
    }

    fn directory(&self, name: &OsStr) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).expect("a directory");
        path
    }

    /// A program with the name `make` that notes its words, each on a line, and its variables.
    fn fake_make(&self) -> PathBuf {
        let started = self.path("intruder/started");
        self.put(
            "bin/make",
            &format!("#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" > {0}\nenv > {0}.env\nexit 3\n", started.display()),
        );
        fs::set_permissions(self.path("bin/make"), fs::Permissions::from_mode(0o755)).expect("a mode");
        self.path("bin")
    }

    /// The command, whose directory for temporary files is this one.
    fn command(&self, temporary: &OsStr, headers: &OsStr) -> Command {
        let program = self.path("trueio");
        if !program.exists() {
            copy_program(env!("CARGO_BIN_EXE_trueio"), &program);
        }
        let mut command = Command::new(program);
        command.args(["usb", "build-driver", "--kernel-tree", "tree", "--headers"]).arg(headers);
        command.current_dir(self.folder.path()).env("TMPDIR", temporary).env("HOME", self.path("intruder"));
        command
    }

    /// The names `pwned` below the folder.
    fn pwned(&self) -> Vec<PathBuf> {
        let mut left = vec![self.folder.path().to_owned()];
        let mut found = Vec::new();
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(&directory).expect("a directory") {
                let path = entry.expect("an entry").path();
                if path.file_name() == Some(OsStr::new("pwned")) {
                    found.push(path.clone());
                }
                if path.is_dir() && !path.is_symlink() {
                    left.push(path);
                }
            }
        }
        found
    }
}

fn ran(mut command: Command) -> Ran {
    Ran::of(command.stdin(std::process::Stdio::null()).output().expect("the program starts"))
}

/// Goal: neither TMPDIR nor `--headers` becomes a command of make, or of a shell that it starts, as root and as another user.
/// Method: the machine's make, and a makefile that does not quote; each name in turn.
#[test]
fn no_name_of_a_directory_is_a_command_for_make() {
    let is_root = trueio_testkit::is_root();
    for user in [Some(NOBODY), None] {
        if user.is_some() && !is_root {
            continue;
        }
        let staged = Staged::new();
        staged.directory(OsStr::new("plain"));
        for name in NAMES {
            let name = OsStr::from_bytes(name);
            let temporary = staged.directory(&[OsStr::new("intruder/"), name].join(OsStr::new("")));
            if let Some(user) = user {
                std::os::unix::fs::chown(&temporary, Some(user), Some(user)).expect("root may");
            } else if is_root {
                std::os::unix::fs::chown(staged.path("intruder"), Some(0), Some(0)).expect("root may");
            }
            // The same headers under such a name.
            std::os::unix::fs::symlink("headers", staged.path(name)).expect("a link");
            let plain = staged.path("plain");
            if let Some(user) = user {
                std::os::unix::fs::chown(&plain, Some(user), Some(user)).expect("root may");
            }
            let of_headers = staged.command(plain.as_os_str(), name);
            // The command line has no name with a line feed; the environment may.
            let is_refused_first = name.as_bytes().iter().any(|byte| matches!(byte, b'\n' | b'\r'));
            let first = (2, "has a line feed");
            let later = (1, "cannot be passed to make");
            for (mut command, (code, words)) in [
                (staged.command(temporary.as_os_str(), OsStr::new("headers")), later),
                (of_headers, if is_refused_first { first } else { later }),
            ] {
                user.into_iter().for_each(|user| {
                    command.uid(user).gid(user);
                });
                let ran = ran(command);
                assert_eq!(staged.pwned(), Vec::<PathBuf>::new(), "{name:?}: {ran:?}");
                assert_eq!(ran.code, Some(code), "{name:?}: {ran:?}");
                assert!(ran.err.contains(words) && !ran.err.contains("make -C"), "{name:?}: {ran:?}");
                assert!(!staged.path("environment").exists(), "{name:?}: make was started");
            }
        }
    }
}

/// Goal: make gets these four words and no other one.
/// Method: another user's `make` is the first of PATH; it notes its words.
#[test]
fn make_gets_the_directory_as_one_word() {
    if lacks("root") {
        return;
    }
    let staged = Staged::new();
    let (bin, temporary) = (staged.fake_make(), staged.path("intruder"));
    let mut command = staged.command(temporary.as_os_str(), OsStr::new("headers"));
    let path = std::env::var("PATH").unwrap_or_default();
    command.uid(NOBODY).gid(NOBODY).env("PATH", format!("{}:{path}", bin.display()));
    let ran = ran(command);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let words = fs::read_to_string(staged.path("intruder/started")).expect("make was started");
    let words: Vec<&str> = words.lines().collect();
    let [count, "-C", "headers", directory, "modules"] = words[..] else { panic!("{words:?}") };
    assert_eq!(count, "4");
    let directory = directory.strip_prefix("M=").expect("the directory");
    let name = directory.strip_prefix(temporary.to_str().expect("a text")).expect("below TMPDIR");
    assert!(name.starts_with("/trueio-uas-"), "{directory}");
    assert!(!PathBuf::from(directory).exists(), "it is removed");
}

/// Goal: root starts the machine's make, with no variable that names a program or a makefile.
/// Method: `sudo -E` of a user whose PATH and variables name his own.
#[test]
fn root_starts_no_make_and_passes_no_variable_of_its_caller() {
    if lacks("root") {
        return;
    }
    let staged = Staged::new();
    let bin = staged.fake_make();
    staged.put("intruder/evil.mk", "$(shell touch pwned)\n");
    let temporary = staged.directory(OsStr::new("plain"));
    let mut command = staged.command(temporary.as_os_str(), OsStr::new("headers"));
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", bin.display()));
    let evil = staged.path("intruder/evil.mk");
    let names = [
        "MAKEFLAGS",
        "GNUMAKEFLAGS",
        "MAKEFILES",
        "CC",
        "KCFLAGS",
        "SHELL",
        "BASH_ENV",
        "LD_PRELOAD_",
        "KBUILD_OUTPUT",
    ];
    for name in names {
        command.env(
            name,
            if name.ends_with("FLAGS") { OsStr::new("--eval=$(shell touch pwned)") } else { evil.as_os_str() },
        );
    }
    let ran = ran(command);
    if ran.err.contains("`make` cannot be started") {
        return trueio_testkit::skip("make", "it is not installed");
    }
    assert_eq!((ran.code, staged.pwned()), (Some(1), Vec::new()), "{ran:?}");
    assert!(!staged.path("intruder/started").exists(), "another user's make was started: {ran:?}");
    let environment = fs::read_to_string(staged.path("environment")).expect("the machine's make was started");
    assert!(!environment.contains("intruder") && !environment.contains("pwned"), "{environment}");
    let directory = fs::read_to_string(staged.path("directory")).expect("the machine's make was started");
    assert!(directory.trim().starts_with(temporary.to_str().expect("a text")), "{directory}");
}
