//! `trueio capacity`: honest and fake disks, what it keeps, and what it refuses. Models of fake disks are tested in
//! `crates/powercut`.

use crate::common::*;
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Sampled: 32,768 blocks.
const SIZE: u64 = 128 << 20;

/// Fills the file of a disk with content of its own.
fn fill(backing: &Path) -> u64 {
    let file = File::options().write(true).open(backing).expect("the file");
    let content: Vec<u8> = (0..1_u32 << 18).flat_map(|word| word.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    for mib in 0..SIZE >> 20 {
        file.write_all_at(&content, mib << 20).expect("content");
        file.write_all_at(&mib.to_le_bytes(), mib << 20).expect("content");
    }
    file.sync_all().expect("stored");
    hash(&fs::read(backing).expect("content"))
}

/// Returns whether the last block has a test's content: the end is written first.
fn is_being_tested(backing: &Path) -> bool {
    let mut begin = [0; 8];
    File::open(backing).and_then(|file| file.read_exact_at(&mut begin, SIZE - 4096)).is_ok() && &begin == b"trueioCP"
}

/// A disk with content, and a folder on another disk.
struct Stage {
    sandbox: Sandbox,
    disk: Loop,
    _mount: Mount,
    journal: PathBuf,
    before: u64,
}

impl Stage {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let disk = Loop::new(&sandbox, "disk.img", SIZE);
        let before = fill(&disk.backing);
        let mount = Mount::tmpfs(&sandbox, "elsewhere", "400m");
        let journal = sandbox.path("elsewhere").join("journal");
        Self { sandbox, disk, _mount: mount, journal, before }
    }

    fn arguments(&self) -> [&str; 4] {
        ["capacity", &self.disk.device, "--journal", self.journal.to_str().expect("UTF-8")]
    }

    #[track_caller]
    fn assert_as_before(&self) {
        assert_eq!(self.disk.content(), self.before, "the content of the disk changed");
        assert!(!self.journal.exists(), "the journal is left");
    }
}

#[test]
fn an_honest_disk_is_genuine_and_keeps_its_content() {
    if lacks("loop") {
        return;
    }
    let stage = Stage::new();
    let ran = stage.sandbox.run(&stage.arguments());
    ran.assert_code(0);
    assert!(ran.out.starts_with("Genuine: the disk stores the 128 MiB that it reports.\n"), "{}", ran.out);
    assert!(ran.out.contains("At most 0.1 % of the disk can be missing (95 % confidence)"), "{}", ran.out);
    assert!(ran.out.ends_with("The content of the disk is as it was before.\n"), "{}", ran.out);
    stage.assert_as_before();
    let ran = stage.sandbox.run(&[&stage.arguments()[..], &["--full", "--json", "-"]].concat());
    ran.assert_code(0);
    let document: Value = serde_json::from_str(&ran.out).expect("a document");
    assert_eq!(document["kind"], "genuine");
    assert_eq!((&document["found"]["intact"], &document["content"]), (&(SIZE / 4096).into(), &"restored".into()));
    stage.assert_as_before();
}

/// Goal: nothing is lost by a signal that can be caught, nor by one that cannot.
/// Method: the signal follows as soon as the disk holds test blocks.
#[test]
fn the_content_returns_after_an_interrupt_and_after_a_kill() {
    if lacks("loop") {
        return;
    }
    let stage = Stage::new();
    let arguments = [&stage.arguments()[..], &["--full"]].concat();
    for signal in [libc::SIGINT, libc::SIGKILL] {
        let running = Running::start(&mut stage.sandbox.command(&arguments));
        running.wait_until("the disk holds test blocks", || is_being_tested(&stage.disk.backing));
        running.signal(signal);
        let (ran, _) = running.wait();
        if signal == libc::SIGINT {
            ran.assert_code(1);
            assert!(ran.err.contains("it was interrupted"), "{ran:?}");
            assert!(ran.err.contains("the content of the disk is as it was before"), "{ran:?}");
            stage.assert_as_before();
        }
    }
    assert_ne!(stage.disk.content(), stage.before, "the kill came too late to show anything");
    let journal = stage.journal.to_str().expect("UTF-8");
    let other = Loop::new(&stage.sandbox, "other.img", SIZE / 2);
    stage
        .sandbox
        .run(&["capacity", &other.device, "--restore", journal])
        .assert_refused(&["it is of another disk, which was", &stage.disk.device]);
    let restore = ["capacity", stage.disk.device.as_str(), "--restore", journal];
    stage.disk.make_ext4();
    stage.sandbox.run(&restore).assert_refused(&["has the signature `ext4`, which it did not have when it was tested"]);
    let wiped =
        File::options().write(true).open(&stage.disk.device).and_then(|disk| disk.write_all_at(&[0; 1 << 16], 0));
    wiped.expect("the signature is wiped");
    stage.sandbox.run(&restore).assert_code(0);
    stage.assert_as_before();
}

/// Goal: another user does not choose what is written to a disk, nor which file is removed, and a pipe does not keep the program.
#[test]
fn a_journal_that_another_user_could_have_written_is_refused() {
    if lacks("loop") {
        return;
    }
    let stage = Stage::new();
    let path = |name: &str| stage.sandbox.aside(name);
    for (name, mode) in [("foreign", 0o600), ("writable", 0o666), ("own", 0o600)] {
        fs::write(path(name), "trueio-capacity-undo-1\n\n").expect("a file");
        fs::set_permissions(path(name), std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("it is ours");
    }
    std::os::unix::fs::chown(path("foreign"), Some(trueio_testkit::NOBODY), None).expect("root may");
    std::os::unix::fs::symlink("own", path("link")).expect("a link");
    rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), rustix::fs::Mode::RUSR).expect("a pipe");
    for (name, why) in [
        ("foreign", "it belongs to another user"),
        ("writable", "other users may write to it (mode 0666)"),
        ("link", "it is a link or a pipe"),
        ("pipe", "it is a link or a pipe"),
        ("own", "it is not a journal of `trueio capacity`"),
    ] {
        let journal = path(name);
        let journal = journal.to_str().expect("UTF-8");
        let ran = stage.sandbox.run(&["capacity", &stage.disk.device, "--restore", journal]);
        ran.assert_refused(&["cannot be used", why]);
        assert!(path(name).symlink_metadata().is_ok(), "{name} is left");
    }
    assert_eq!(stage.disk.content(), stage.before);
}

#[test]
fn a_file_that_took_the_name_of_the_journal_is_not_removed() {
    if lacks("loop") {
        return;
    }
    let stage = Stage::new();
    let running = Running::start(&mut stage.sandbox.command(&[&stage.arguments()[..], &["--full"]].concat()));
    running.wait_until("the disk holds test blocks", || is_being_tested(&stage.disk.backing));
    fs::rename(&stage.journal, stage.journal.with_extension("moved")).expect("it is there");
    fs::write(&stage.journal, "of another program").expect("the name is free");
    let (ran, _) = running.wait();
    ran.assert_code(0);
    assert!(ran.err.contains("cannot be removed: another file has this name"), "{ran:?}");
    assert_eq!(fs::read_to_string(&stage.journal).expect("it is kept"), "of another program");
    assert_eq!(stage.disk.content(), stage.before);
}

/// A library that maps all direct I/O beyond 48 MiB: to its offset modulo 48 MiB, or with `LOSES` to an error.
const FAKE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
static const off_t usable = 48 << 20;
static int is_fake(int fd, size_t n, off_t at) {
    return at + (off_t)n > usable && (fcntl(fd, F_GETFL) & O_DIRECT) && n > 512;
}
#define MAPPED(name, type) \
    ssize_t name(int fd, type data, size_t n, off_t at) { \
        ssize_t (*next)(int, type, size_t, off_t) = dlsym(RTLD_NEXT, #name); \
        if (!is_fake(fd, n, at)) return next(fd, data, n, at); \
        if (getenv("LOSES")) { errno = EIO; return -1; } \
        for (size_t done = 0; done < n; done += 4096) \
            if (next(fd, (char *)data + done, 4096, (at + done) % usable) != 4096) return -1; \
        return n; \
    }
MAPPED(pread64, void *)
MAPPED(pwrite64, const void *)
"#;

/// Goal: the program finds a fake disk, with the size that it has, and restores what is on it.
/// Method: a library below the program maps its direct I/O.
#[test]
fn a_fake_disk_is_found_with_its_size() {
    if lacks("loop") {
        return;
    }
    let stage = Stage::new();
    let source = stage.sandbox.path("fake.c");
    let library = stage.sandbox.path("fake.so");
    fs::write(&source, FAKE).expect("a source");
    let [source, shown] = [&source, &library].map(|path| path.to_str().expect("UTF-8"));
    if let Err(reason) = tool("gcc", &["-shared", "-fPIC", "-o", shown, source]) {
        println!("skipped: {reason}");
        return;
    }
    let run = |variable: &str, more: &[&str]| {
        let mut command = stage.sandbox.command(&[&stage.arguments()[..], more].concat());
        Ran::of(command.env("LD_PRELOAD", &library).env(variable, "1").output().expect("it runs"))
    };
    let ran = run("NOTHING", &[]);
    ran.assert_code(1);
    let answer = "Fake: the disk reports 128 MiB and stores 48 MiB; later blocks replace earlier ones.";
    assert!(ran.out.contains(answer), "{ran:?}");
    let line = format!("echo 'start=2048, size=94208, type=c' | sfdisk --label dos {}", stage.disk.device);
    assert!(ran.out.contains(&line), "{ran:?}");
    stage.assert_as_before();
    let ran = run("LOSES", &["--json", "-"]);
    ran.assert_code(1);
    let document: Value = serde_json::from_str(&ran.out).expect("a document");
    assert_eq!((&document["kind"], &document["usable_bytes"]), (&"fails".into(), &(48 << 20).into()));
    stage.assert_as_before();
}

/// Goal: what other commands refuse to write, this one refuses, too.
#[test]
fn a_disk_that_is_in_use_or_has_an_unnamed_signature_is_refused() {
    if lacks("loop") {
        return;
    }
    let stage = Stage::new();
    let device = stage.disk.device.as_str();
    let refused = |arguments: &[&str], sentences: &[&str]| {
        stage.sandbox.run(&[&["capacity"], arguments].concat()).assert_refused(sentences);
        assert!(!stage.journal.exists(), "{arguments:?}");
    };
    refused(&[device], &["where to keep its content is not set", "--journal FILE"]);
    refused(&[device, "--overwrite", "/dev/other"], &["both must be spelled the same"]);
    refused(&["nowhere", "--overwrite", "nowhere"], &["`nowhere` does not exist"]);
    refused(&[".", "--overwrite", "."], &["neither a block device nor a file"]);
    stage.disk.make_ext4();
    let mounted = Mount::ext4(&stage.sandbox, "mounted", device);
    for more in [&["--overwrite", device][..], &stage.arguments()[2..]] {
        refused(&[&[device], more].concat(), &["is mounted at", "free it first"]);
    }
    drop(mounted);
    let formatted = stage.disk.content();
    for more in [&["--overwrite", device][..], &stage.arguments()[2..]] {
        refused(&[&[device], more].concat(), &["rule: signature_not_named", "--overwrite-signature ext4"]);
    }
    assert_eq!(stage.disk.content(), formatted);
    fs::write(&stage.journal, "mine").expect("a file");
    let arguments = [&stage.arguments()[..], &["--overwrite-signature", "ext4"]].concat();
    stage.sandbox.run(&arguments).assert_refused(&["cannot be created", "File exists"]);
    assert_eq!(fs::read(&stage.journal).expect("the file"), b"mine");
}

#[test]
fn a_file_is_tested_like_a_disk() {
    let sandbox = Sandbox::new();
    if has_no_disk(&sandbox) {
        return;
    }
    sandbox.data_file("data", 1 << 20);
    let ran = sandbox.run(&["capacity", "data", "--overwrite", "data"]);
    ran.assert_code(0);
    assert!(ran.out.contains("All 256 blocks of 4 KiB were written before any was read back"), "{}", ran.out);
    sandbox.run(&["capacity", "data", "--journal", "journal"]).assert_refused(&[
        "the journal `journal` would be on",
        "which is also the disk under test",
        "name a file on another disk",
    ]);
    assert!(!sandbox.path("journal").exists());
    sandbox.data_file("small", 64 << 10);
    sandbox.run(&["capacity", "small", "--overwrite", "small"]).assert_refused(&["at least 1 MiB is needed"]);
}
