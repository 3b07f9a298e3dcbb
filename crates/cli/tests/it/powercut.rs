//! `trueio powercut`: a staged cut, honest and lying disks, and what it refuses. Models of disks are tested in `crates/powercut`.

use crate::common::*;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use trueio_model::{Document, PowercutReach, PowercutRecord, PowercutVerdict};

const SIZE: u64 = 64 << 20;
/// What is used without `--methods`, and promises durability.
const METHODS: [&str; 5] =
    ["direct-fdatasync", "direct-dsync", "direct-rwf-dsync", "buffered-fdatasync", "buffered-fsync"];

/// A library below the program: a volatile cache in front of block devices, which is lost when the file `CUT` exists and something is
/// at risk; from then on every call fails with ENODEV. Each second cut comes after 200 durable writes of each of `METHODS` without a flush.
/// `READY` is created when each of them has written enough. `LIE=flush`: syncs store nothing; `LIE=fua`: nor do durable writes; `LIE=eio`:
/// the 50th sync fails, and the file `AFTER` is created if a sync follows. `LIE=files`: nothing is cached, and after 2,000 syncs of files
/// `CUT` lets them fail.
const CACHE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#define BLOCKS (64 << 8)
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *cached[BLOCKS];
static int dirty, dead, cuts;
/* Of this power cycle: syncs of each descriptor, durable writes by flag of the descriptor and of the call, and those since the last flush. */
static int syncs, synced[1024], durable[2], unflushed[2];
static int uses(const char *method) { return strstr(getenv("METHODS"), method) != 0; }
/* Each method with FUA has written 200 blocks. */
static int all_written(int *counts) {
    return (counts[0] >= 200 || !uses("direct-dsync")) && (counts[1] >= 200 || !uses("direct-rwf-dsync"));
}
/* Each method that flushes has synced 4 epochs. */
static int all_synced(void) {
    int n = uses("direct-fdatasync") + uses("buffered-fdatasync") + uses("buffered-fsync");
    for (int i = 0; i < 1024; i++) n -= synced[i] >= 4;
    return n <= 0;
}
static void start_again(void) {
    dead = syncs = 0;
    memset(synced, 0, sizeof synced); memset(durable, 0, sizeof durable); memset(unflushed, 0, sizeof unflushed);
}
static int is_disk(int fd) { struct stat st; return fstat(fd, &st) == 0 && S_ISBLK(st.st_mode); }
static int lies(const char *how) { const char *lie = getenv("LIE"); return lie && !strcmp(lie, how); }
static void touch(const char *name) { const char *path = getenv(name); if (path) close(open(path, O_CREAT | O_WRONLY, 0600)); }
static void drop(void) {
    for (int i = 0; i < BLOCKS; i++) { free(cached[i]); cached[i] = 0; }
    dirty = 0;
}
static int is_dead(void) {
    int cut = access(getenv("CUT"), F_OK) == 0;
    if (!cut) { if (dead) start_again(); }
    else if (!dead && dirty >= 8 && (all_written(unflushed) || !(lies("fua") || cuts % 2))) { dead = 1; cuts++; drop(); }
    return dead;
}
static ssize_t raw_write(int fd, const void *data, size_t n, off_t at) {
    static ssize_t (*next)(int, const void *, size_t, off_t);
    if (!next) next = dlsym(RTLD_NEXT, "pwrite64");
    return next(fd, data, n, at);
}
static int raw_sync(const char *name, int fd) { int (*next)(int) = dlsym(RTLD_NEXT, name); return next(fd); }
static ssize_t put(int fd, const void *data, size_t n, off_t at, int is_durable, int by_call) {
    if (!is_disk(fd) || n != 4096 || at % 4096) return raw_write(fd, data, n, at);
    ssize_t result = n;
    pthread_mutex_lock(&lock);
    int block = at / 4096;
    if (is_dead()) { errno = ENODEV; result = -1; }
    else if (is_durable && !lies("fua")) {
        durable[by_call]++; unflushed[by_call]++;
        if (cached[block]) { free(cached[block]); cached[block] = 0; dirty--; }
        result = raw_write(fd, data, n, at);
    } else {
        if (is_durable) { durable[by_call]++; unflushed[by_call]++; }
        if (!cached[block]) { if (posix_memalign((void **)&cached[block], 4096, 4096)) abort(); dirty++; }
        memcpy(cached[block], data, n);
    }
    if (syncs >= 40 && all_synced() && all_written(durable)) touch("READY");
    pthread_mutex_unlock(&lock);
    return result;
}
ssize_t pwrite64(int fd, const void *data, size_t n, off_t at) {
    return put(fd, data, n, at, (fcntl(fd, F_GETFL) & O_DSYNC) != 0, 0);
}
ssize_t pwritev64v2(int fd, const struct iovec *iov, int count, off_t at, int flags) {
    return put(fd, iov[0].iov_base, iov[0].iov_len, at, (flags & RWF_DSYNC) != 0, 1);
}
ssize_t pwritev2(int fd, const struct iovec *iov, int count, off_t at, int flags) {
    return pwritev64v2(fd, iov, count, at, flags);
}
static int flush(const char *name, int fd) {
    static int files;
    if (!is_disk(fd)) {
        if (!lies("files")) return raw_sync(name, fd);
        if (__sync_add_and_fetch(&files, 1) == 2000) touch("READY");
        if (access(getenv("CUT"), F_OK)) return raw_sync(name, fd);
        errno = ENODEV;
        return -1;
    }
    int result = 0;
    pthread_mutex_lock(&lock);
    if (is_dead()) { errno = ENODEV; result = -1; }
    else {
        syncs++; synced[fd % 1024]++; unflushed[0] = unflushed[1] = 0;
        if (lies("eio") && syncs == 50) { errno = EIO; result = -1; }
        else if (lies("eio") && syncs > 50) touch("AFTER");
        else if (!lies("flush")) {
            for (int i = 0; i < BLOCKS && result == 0; i++) {
                if (!cached[i]) continue;
                if (raw_write(fd, cached[i], 4096, (off_t)i * 4096) != 4096) result = -1;
                free(cached[i]); cached[i] = 0; dirty--;
            }
            if (result == 0) result = raw_sync(name, fd);
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}
int fdatasync(int fd) { return flush("fdatasync", fd); }
int fsync(int fd) { return flush("fsync", fd); }
"#;

/// A disk with a volatile cache.
struct Stage {
    sandbox: Sandbox,
    disk: Loop,
    library: PathBuf,
}

impl Stage {
    /// `None`: this machine has no compiler.
    fn new() -> Option<Self> {
        let sandbox = Sandbox::new();
        let disk = Loop::new(&sandbox, "disk.img", SIZE);
        let (source, library) = (sandbox.path("cache.c"), sandbox.path("cache.so"));
        fs::write(&source, CACHE).expect("a source");
        let shown = |path: &PathBuf| path.to_str().expect("UTF-8").to_owned();
        let built = tool("gcc", &["-shared", "-fPIC", "-pthread", "-o", &shown(&library), &shown(&source)]);
        built.inspect_err(|reason| println!("skipped: {reason}")).ok()?;
        Some(Self { sandbox, disk, library })
    }

    fn start(&self, lie: &str, more: &[&str]) -> Running {
        let device = self.disk.device.as_str();
        let arguments = ["powercut", device, "--overwrite", device, "--load", "1s", "--size", "1m"];
        self.start_with(lie, &[&arguments[..], more].concat())
    }

    fn start_with(&self, lie: &str, arguments: &[&str]) -> Running {
        let mut command = self.sandbox.command(arguments);
        let methods = arguments.iter().skip_while(|argument| **argument != "--methods").nth(1);
        let methods = methods.map_or_else(|| METHODS.join(","), |methods| (*methods).to_owned());
        command.env("LD_PRELOAD", &self.library).env("LIE", lie).env("METHODS", methods);
        for name in ["CUT", "READY", "AFTER"] {
            command.env(name, self.sandbox.aside(name));
        }
        Running::start(&mut command)
    }

    /// Pulls the cable when enough has been written, and plugs it in again once the program has closed the disk.
    fn cut(&mut self, running: &Running) {
        let device = PathBuf::from(&self.disk.device);
        self.pull(running, |path| *path == device);
        let backing = self.disk.backing.clone();
        self.disk.attach_again(&backing).expect("it is attached again");
    }

    /// Pulls the cable when enough has been written; returns when no path that `is_below` is open.
    fn pull(&self, running: &Running, is_below: impl Fn(&PathBuf) -> bool) {
        let [cut, ready] = ["CUT", "READY"].map(|name| self.sandbox.aside(name));
        running.wait_until("enough is written", || ready.exists());
        fs::write(&cut, "").expect("a file");
        let folder = format!("/proc/{}/fd", running.id());
        let is_open = || {
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            entries.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|link| is_below(&link))
        };
        running.wait_until("the program has closed the disk", || !is_open());
        let _ = fs::remove_file(&ready);
        fs::remove_file(&cut).expect("it is there");
    }
}

/// Checks the record of two cuts of a loop device: in the file of `--json` with its schema, and in the history.
fn assert_is_recorded(sandbox: &Sandbox) {
    let text = fs::read_to_string(sandbox.path("powercut.json")).expect("a record");
    let record = PowercutRecord::from_json(&text).expect("a record");
    assert_eq!((record.cuts, record.verdict), (2, PowercutVerdict::Kept));
    assert_eq!(record.reach, PowercutReach::Memory, "{}", record.reach_reason);
    let method = record.methods.iter().find(|method| method.name == "direct-fdatasync").expect("it was tested");
    assert!(method.flushes && method.figures.cuts_at_risk == 2 && method.figures.at_risk >= 40, "{method:?}");
    let listed = sandbox.run(&["history", "--kind", "powercut", "--json", "-"]);
    assert!(listed.out.contains(&record.id) && listed.out.contains("\"verdict\": \"kept\""), "{listed:?}");
    // The runner of the sandbox compares it with its schema.
    let shown = sandbox.run(&["report", &record.id, "--json", "-"]);
    assert_eq!(PowercutRecord::from_json(&shown.out).expect("a record"), record);
}

/// Returns the first word of a method's verdict.
fn verdict<'a>(ran: &'a Ran, method: &str) -> &'a str {
    let line = ran.out.lines().find(|line| line.split_whitespace().next() == Some(method));
    line.and_then(|line| line.split_whitespace().nth(1)).unwrap_or_default()
}

/// Goal: an honest disk is kept after two cuts, with its bound; unsynced writes are lost, which shows that the cuts were real.
#[test]
fn an_honest_disk_keeps_what_it_acknowledged() {
    if lacks("loop") {
        return;
    }
    let Some(mut stage) = Stage::new() else { return };
    let running = stage.start("none", &["--cuts", "2", "--json", "powercut.json"]);
    stage.cut(&running);
    stage.cut(&running);
    let (ran, _) = running.wait();
    ran.assert_code(0);
    assert_is_recorded(&stage.sandbox);
    assert!(ran.out.contains("\nNot the disk: "), "{ran:?}");
    assert!(ran.out.starts_with("Kept: no acknowledged write was lost in 2 cuts, "), "{ran:?}");
    assert!(ran.out.contains("below 78 % a cut with 95 % confidence; 3 cuts bring it below 64 %"), "{ran:?}");
    for method in METHODS {
        assert_eq!(verdict(&ran, method), "kept", "{method}: {ran:?}");
    }
    assert!(ran.out.contains("it promises nothing;") && ran.out.contains("writes were lost"), "{ran:?}");
    for words in ["cut 1 of 2: kept", "cut 2 of 2: kept", "writes were acknowledged. Now plug it in again"] {
        assert!(ran.err.contains(words), "{words}: {ran:?}");
    }
}

/// Goal: a disk that answers flushes without doing them loses what was synced, one that ignores FUA what was written durably.
#[test]
fn a_disk_that_lies_about_flush_or_fua_is_found() {
    if lacks("loop") {
        return;
    }
    for (lie, method, other) in
        [("flush", "direct-fdatasync", "direct-dsync"), ("fua", "direct-dsync", "direct-fdatasync")]
    {
        let Some(mut stage) = Stage::new() else { return };
        let running = stage.start(lie, &["--methods", "direct-fdatasync,direct-dsync"]);
        stage.cut(&running);
        let (ran, _) = running.wait();
        ran.assert_code(1);
        assert!(ran.out.starts_with("Lost: acknowledged writes are lost when the power goes"), "{lie}: {ran:?}");
        assert_eq!(verdict(&ran, method), "lost", "{lie}: {ran:?}");
        assert_ne!(verdict(&ran, other), "lost", "{lie}: {ran:?}");
        assert!(ran.out.contains("cut 1: write "), "{lie}: {ran:?}");
        let again =
            format!("To reproduce: trueio powercut {0} --overwrite {0} --methods {method}\n", stage.disk.device);
        assert!(ran.out.contains(&again), "{lie}: {ran:?}");
    }
}

/// Goal: on a filesystem every way of writing is tested, and what is missing after the cut is named.
/// Method: the filesystem is unmounted, not cut, so nothing is lost; then files that were renamed and synced are removed, and appended blocks.
#[test]
fn on_a_filesystem_files_that_were_synced_and_are_missing_are_named() {
    if lacks("loop") {
        return;
    }
    let Some(mut stage) = Stage::new() else { return };
    for is_damaged in [false, true] {
        stage.disk.make_ext4();
        let mounted = Mount::ext4(&stage.sandbox, "mounted", &stage.disk.device);
        let running = stage.start_with("files", &["powercut", "mounted", "--load", "1s", "--size", "256k"]);
        let root = stage.sandbox.path("mounted");
        let paths_in = |folder: &Path| -> Vec<PathBuf> {
            fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
        };
        let folder_of_run =
            || paths_in(&root).into_iter().find(|path| path.to_string_lossy().contains("trueio-powercut-"));
        // More than one epoch of a burst has.
        let has_renamed = || folder_of_run().is_some_and(|folder| paths_in(&folder.join("rename")).len() > 100);
        running.wait_until("files are renamed", has_renamed);
        stage.pull(&running, |path| path.starts_with(&root));
        let folder = folder_of_run().expect("the folder of the run");
        if is_damaged {
            for path in paths_in(&folder.join("rename")) {
                fs::remove_file(path).expect("a renamed file");
            }
            let append = File::options().write(true).open(folder.join("append")).expect("the file");
            append.set_len(append.metadata().expect("its length").len() / 2).expect("it is cut");
        }
        drop(mounted);
        let backing = stage.disk.backing.clone();
        stage.disk.attach_again(&backing).expect("it is attached again");
        let mounted = Mount::ext4(&stage.sandbox, "mounted", &stage.disk.device);
        let (ran, _) = running.wait();
        ran.assert_code(1);
        assert!(ran.err.contains("mount it where `mounted` was"), "{ran:?}");
        let synced = ["direct-fdatasync", "direct-dsync", "buffered-fsync", "append", "truncate", "new-file", "rename"];
        for method in synced {
            let is_lost = is_damaged && ["append", "rename"].contains(&method);
            assert_eq!(verdict(&ran, method), if is_lost { "lost" } else { "cannot" }, "{method}: {ran:?}");
        }
        for method in ["new-file-only", "new-file-directory-only", "new-file-unsynced", "direct"] {
            assert_eq!(verdict(&ran, method), "counted", "{method}: {ran:?}");
        }
        assert_eq!(ran.out.contains(" did not exist"), is_damaged, "{ran:?}");
        assert!(ran.out.contains("also none of "), "{ran:?}");
        assert_eq!(folder.exists(), is_damaged, "the folder stays only if something was lost");
        drop(mounted);
    }
}

/// Goal: what was put on the disk while it was away is not written over.
#[test]
fn a_disk_that_returns_with_a_new_filesystem_is_not_written() {
    if lacks("loop") {
        return;
    }
    let Some(mut stage) = Stage::new() else { return };
    let running = stage.start("none", &["--methods", "direct-fdatasync,direct-dsync", "--cuts", "2"]);
    let device = PathBuf::from(&stage.disk.device);
    stage.pull(&running, |path| *path == device);
    let backing = stage.disk.backing.clone();
    trueio_testkit::make_filesystem("ext4", backing.to_str().expect("UTF-8")).expect("a filesystem");
    let formatted = hash(&fs::read(&backing).expect("the file"));
    stage.disk.attach_again(&backing).expect("it is attached again");
    let (ran, _) = running.wait();
    ran.assert_refused(&["has the signature `ext4`, which it did not have before the cut"]);
    assert_eq!(stage.disk.content(), formatted);
}

/// Goal: a sync that fails while the disk is there ends the test, and no sync follows.
#[test]
fn a_sync_that_fails_ends_the_test_and_is_not_repeated() {
    if lacks("loop") {
        return;
    }
    let Some(stage) = Stage::new() else { return };
    let (ran, _) = stage.start("eio", &["--methods", "direct-fdatasync"]).wait();
    ran.assert_code(1);
    assert!(ran.err.contains("failed, and is still there: the test ends"), "{ran:?}");
    assert!(ran.err.contains("direct-fdatasync: the sync of write "), "{ran:?}");
    assert!(!stage.sandbox.aside("AFTER").exists(), "a sync followed the one that failed");
}

/// Goal: what other commands refuse to write, this one refuses, too.
#[test]
fn a_disk_that_is_in_use_or_not_named_is_refused() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let disk = Loop::new(&sandbox, "disk.img", SIZE);
    let device = disk.device.as_str();
    let refused = |arguments: &[&str], sentences: &[&str]| {
        sandbox.run(&[&["powercut"], arguments].concat()).assert_refused(sentences);
    };
    refused(&["missing"], &["`missing` cannot be used: No such file or directory", "a directory on it"]);
    refused(&[device], &["its content would be lost", &format!("--overwrite {device}")]);
    refused(&[device, "--overwrite", "/dev/other"], &["both must be spelled the same"]);
    refused(&[".", "--overwrite", "."], &["is a directory", "leave `--overwrite` out"]);
    disk.make_ext4();
    let mounted = Mount::ext4(&sandbox, "mounted", device);
    refused(&[device, "--overwrite", device], &["is mounted at", "free it first"]);
    drop(mounted);
    let formatted = disk.content();
    refused(&[device, "--overwrite", device], &["rule: signature_not_named"]);
    assert_eq!(disk.content(), formatted);
}

#[test]
fn a_signal_ends_the_load_without_a_verdict() {
    let sandbox = Sandbox::new();
    if has_no_disk(&sandbox) {
        return;
    }
    let running = Running::start(&mut sandbox.command(&["powercut", ".", "--size", "1m"]));
    let folders = || {
        let entries = fs::read_dir(sandbox.root()).expect("a folder").flatten().map(|entry| entry.path());
        entries.filter(|path| path.to_string_lossy().contains("trueio-powercut-")).collect::<Vec<_>>()
    };
    running.wait_until("the files exist", || folders().iter().any(|folder| folder.join("rename/0").exists()));
    running.signal(libc::SIGINT);
    let (ran, _) = running.wait();
    ran.assert_code(1);
    assert_eq!(ran.out, "No cut was observed.\n", "{ran:?}");
    assert_eq!(folders(), Vec::<PathBuf>::new(), "its folder is left");
}
