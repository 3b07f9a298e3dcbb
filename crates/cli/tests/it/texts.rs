//! Texts that a user names: files that never end or never answer are refused at once.

use crate::common::{Sandbox, lacks, listing};
use crate::servers::ended;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::path::Path;
use std::process::Command;
use trueio_testkit::NOBODY;

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

/// Goal: no text of a command line is read from what has no end, does not answer, or belongs to another user's device, whatever
/// option names it.
/// Method: each door, with each kind of file; a door that waits is killed, and the test fails.
#[test]
fn every_text_of_a_command_line_refuses_what_is_no_text() {
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    let node = |name: &str, kind: FileType, device: u64| {
        mknodat(CWD, sandbox.path(name), kind, Mode::from_raw_mode(0o666), device).expect("root may");
        std::os::unix::fs::chown(sandbox.path(name), Some(NOBODY), Some(NOBODY)).expect("root may");
    };
    let own = "own-pipe";
    mknodat(CWD, sandbox.path(own), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    node("his-pipe", FileType::Fifo, 0);
    node("his-zero", FileType::CharacterDevice, rustix::fs::makedev(1, 5));
    node("his-loop", FileType::BlockDevice, rustix::fs::makedev(7, 99_999));
    let _socket = std::os::unix::net::UnixListener::bind(sandbox.path("socket")).expect("a socket");
    sandbox.data_file("disk", 1 << 20);
    sandbox.write("j.fio", "[j]\nioengine=null\nsize=64k\n");
    let kinds = [own, "his-pipe", "his-zero", "his-loop", "socket", "/dev/zero", "/dev/full", "/dev/tty", "/proc/kmsg"];
    let names = kinds.map(|path| (path, path.trim_start_matches('/').replace('/', "-")));
    for (path, name) in &names {
        for ending in ["toml", "fio"] {
            std::os::unix::fs::symlink(path, sandbox.path(&format!("{name}.{ending}"))).expect("a link");
        }
        sandbox.write(&format!("include-{name}.fio"), format!("include {name}.fio\n[a]\nioengine=null\nsize=1m\n"));
    }
    // Its connections wait; a client reads its token first.
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("its address").port();
    let null = "--name=a --ioengine=null --size=64k";
    let write = "--name=a --rw=write --filename=f --size=64k --verify=pattern";
    let doors = [
        "run NAME.toml",
        "run NAME.fio",
        "explain NAME.toml",
        "fio NAME.fio",
        "fio include-NAME.fio",
        &format!("fio {null} --read_iolog=NAME.fio"),
        "run --ioengine null --size 64k --read_iolog NAME.fio",
        &format!("fio {write} --buffer_pattern='NAME.fio'"),
        &format!("fio {write} --verify_pattern='NAME.fio'"),
        "fio --inflate-log=NAME.fio",
        "fio --server=127.0.0.1,0 --allow-read=. --token=NAME.fio",
        &format!("fio --client=127.0.0.1,{port} j.fio --token=NAME.fio"),
        "report NAME.fio",
        "compare NAME.fio NAME.fio",
        "history import NAME.fio",
        "capacity disk --restore NAME.fio",
        "usb build-driver --spk out.spk --program NAME.fio",
        "powercut witness --listen 127.0.0.1:0 --token-file NAME.fio",
        "powercut verify --witness 127.0.0.1:1 --token-file NAME.fio disk",
        "powercut arm --witness 127.0.0.1:1 --token-file NAME.fio --overwrite disk disk",
    ];
    let before = listing(sandbox.root());
    for door in doors {
        for (path, name) in &names {
            let words = door.replace("NAME", name);
            let words: Vec<&str> = words.split(' ').collect();
            let ran = ended(sandbox.command(&words).spawn().expect("the program starts"));
            assert!(matches!(ran.code, Some(1 | 2)), "{words:?} ({path}): {ran:?}");
            let reasons = [
                "it is a pipe that no process writes to",
                "it is a character device, and only",
                "it is a block device, and only",
                "it is a socket, and only",
                "it is a file of the kernel",
                "it is not a regular file",
                "it is no regular file",
                "it is a link or a pipe",
            ];
            assert!(reasons.iter().any(|reason| ran.err.contains(reason)), "{words:?} ({path}): {ran:?}");
            assert_eq!(listing(sandbox.root()), before, "{words:?} ({path}): {ran:?}");
        }
    }
}

/// Goal: a record is read from a pipe that ends, as from a file: `trueio compare <(ssh a cat r.json) r.json`.
#[test]
fn a_record_is_read_from_a_pipe_that_ends() {
    let sandbox = Sandbox::new();
    let run = ["run", "--ioengine", "null", "--size", "64k", "--no-evidence", "--no-history", "--json", "r.json"];
    sandbox.run(&run).assert_code(0);
    let record = std::fs::read(sandbox.path("r.json")).expect("the record");
    mknodat(CWD, sandbox.path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    for words in [&["report", "pipe"][..], &["report", "pipe", "--json", "out.json"], &["compare", "pipe", "r.json"]] {
        let (path, record) = (sandbox.path("pipe"), record.clone());
        let writer = std::thread::spawn(move || std::fs::write(path, record));
        // The program reads without waiting, so the writer must be there first.
        let held = std::fs::File::open(sandbox.path("pipe")).expect("a reader");
        let child = sandbox.command(words).spawn().expect("the program starts");
        let ran = ended(child);
        drop(held);
        let _ = writer.join().expect("no panic");
        assert!(!ran.err.contains("pipe") && ran.code != Some(2), "{words:?}: {ran:?}");
    }
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
