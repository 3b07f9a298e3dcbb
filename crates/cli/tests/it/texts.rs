//! Texts that a user names: files that never end or never answer are refused at once.

use crate::common::Sandbox;
use std::path::Path;
use std::process::Command;

/// Goal: every text of a command line is read by the same bounded reader.
/// Method: a device without an end, a file of the kernel, and a pipe without a writer as job file, included file,
/// record, imported result, list of hosts and log; without the reader these commands do not end.
#[test]
fn what_never_ends_is_refused_as_every_text() {
    let sandbox = Sandbox::new();
    let made = Command::new("mkfifo").arg(sandbox.path("pipe.fio")).status().expect("mkfifo starts");
    assert!(made.success());
    for ending in ["toml", "fio"] {
        std::os::unix::fs::symlink("/dev/zero", sandbox.path(&format!("zero.{ending}"))).expect("a link");
    }
    std::os::unix::fs::symlink("/proc/kmsg", sandbox.path("kmsg.toml")).expect("a link");
    sandbox.write("include.fio", "include zero.fio\n[a]\nioengine=null\nsize=1m\n");
    for (words, reason) in [
        (&["run", "zero.toml"][..], "it is a character device"),
        (&["run", "kmsg.toml"], "it is a file of the kernel"),
        (&["run", "zero.fio"], "it is a character device"),
        (&["run", "pipe.fio"], "it is a pipe that no process writes to"),
        (&["fio", "zero.fio"], "it is a character device"),
        (&["fio", "include.fio"], "it is a character device"),
        (&["fio", "pipe.fio"], "it is a pipe that no process writes to"),
        (&["fio", "--name=a", "--ioengine=null", "--read_iolog=zero.fio"], "it is not a regular file"),
        (&["history", "import", "zero.fio"], "it is a character device"),
        (&["report", "/proc/kmsg"], "it is a file of the kernel"),
        (&["compare", "/proc/kmsg", "/proc/kmsg"], "it is a file of the kernel"),
    ] {
        let ran = sandbox.run(words);
        assert!(ran.code != Some(0) && ran.err.contains(reason), "{words:?}: {ran:?}");
    }
    assert!(Path::new(&sandbox.path("pipe.fio")).exists());
}

#[test]
fn the_file_of_a_pattern_is_read_as_other_texts_are() {
    let sandbox = trueio_testkit::Sandbox::new();
    for (pattern, words) in [("/proc/kmsg", "it is a file of the kernel"), ("/dev/zero", "it is a character device")] {
        for option in ["buffer_pattern", "verify_pattern"] {
            let ran = sandbox.run(&[
                "fio",
                "--name=j",
                "--rw=write",
                "--size=64k",
                "--filename=f",
                "--verify=pattern",
                &format!("--{option}='{pattern}'"),
            ]);
            assert!(ran.code != Some(0) && ran.err.contains(words), "{option}: {ran:?}");
        }
    }
}
