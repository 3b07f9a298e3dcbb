//! `trueio powercut disk`: what it refuses. Cuts with a filesystem are cases of the lab (`crates/lab/tests/it/powercut_disk.rs`); the
//! server itself is tested where it is.

use crate::common::*;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn what_cannot_be_served_or_cut_is_refused_and_nothing_is_left() {
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("small.img"), [0; 4096]).expect("a file");
    sandbox.data_file("disk.img", 2 << 20);
    symlink("disk.img", sandbox.path("link.img")).expect("a link");
    for (arguments, words) in [
        (&["none.img"][..], "`--size 1g` creates it"),
        (&["none.img", "--size", "4k"], "would be a disk of 4 KiB"),
        (&["small.img"], "would be a disk of 4 KiB"),
        (&["disk.img", "--size", "2m"], "without `--size` the file is served as it is"),
        (&["link.img"], "`link.img` cannot be opened"),
        (&["/dev/null"], "is not a file"),
        (&["disk.img", "--cut"], "`disk.img` is not served by `trueio powercut disk`"),
        (&["none.img", "--cut"], "`none.img` cannot be opened"),
        (&["disk.img", "--cut", "--size", "2m"], "cannot be used with"),
    ] {
        let ran = sandbox.run(&[&["powercut", "disk"][..], arguments].concat());
        ran.assert_code(2);
        assert!(ran.err.contains(words), "{arguments:?}: {ran:?}");
        assert!(!sandbox.path("none.img").exists(), "{arguments:?}");
    }
    if !std::path::Path::new("/sys/block/nbd0").exists() {
        let before = hash(&fs::read(sandbox.path("disk.img")).expect("the file"));
        let ran = sandbox.run(&["powercut", "disk", "disk.img", "--log", "writes.log"]);
        ran.assert_refused(&["the kernel's NBD client is not loaded", "`modprobe nbd`"]);
        assert_eq!(hash(&fs::read(sandbox.path("disk.img")).expect("the file")), before);
        assert!(!sandbox.path("writes.log").exists());
    }
}

/// Goal: a file that another program has locked is neither served nor cut.
#[test]
fn a_file_that_another_program_has_locked_is_left_alone() {
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.data_file("disk.img", 2 << 20);
    let file = fs::File::options().read(true).write(true).open(sandbox.path("disk.img")).expect("the file");
    rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::LockExclusive).expect("it is free");
    sandbox.run(&["powercut", "disk", "disk.img"]).assert_refused(&["served or locked by another process"]);
    let own = std::process::id();
    let words = format!("`disk.img` is locked by process {own}, which is another program");
    sandbox.run(&["powercut", "disk", "disk.img", "--cut"]).assert_refused(&[&words]);
}
